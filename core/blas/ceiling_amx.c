/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ceiling loops for the tile unit of x86-64 (AMX). A tile is 16 rows of 64 bytes; one instruction
 * adds the product of a 16 x 64-byte and a transposed-in-pairs 64-byte x 16 tile to a 16 x 16 tile
 * of 4-byte sums (Intel SDM, TDPBF16PS and TDPBUSD). Six tiles are sums, two are operands: the
 * latency is 52 cycles, the throughput one in 16.
 *
 * Linux gives the tile registers to a process that asks (Documentation/arch/x86/xstate.rst); the
 * permission is the whole process', and new threads inherit it.
 */
#include "core/blas/ceiling.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_XTILEDATA  18

#define TILES      8
#define ROWS       16
#define ROW_BYTES  64
#define TILE_BYTES (ROWS * ROW_BYTES)
#define SUMS       6

/* The memory that LDTILECFG reads, palette 1. */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

_Static_assert(sizeof(struct tile_config) == 64, "LDTILECFG reads 64 bytes");
_Static_assert(CEILING_IN_BYTES >= 2 * TILE_BYTES && CEILING_OUT_BYTES >= TILE_BYTES,
               "two operand tiles in, one tile of sums out");

static bool permitted(void)
{
    return !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
}

static void fill_config(struct tile_config *config)
{
    *config = (struct tile_config){.palette = 1};
    for (int i = 0; i < TILES; i++) {
        config->row_bytes[i] = ROW_BYTES;
        config->rows[i] = ROWS;
    }
}

/* The intrinsics take tile numbers as constants. Each sum is stored over the one before: what
 * counts is that it is used. */
#define TILE_LOOP(NAME, UNIT, MULTIPLY)                                                            \
    __attribute__((target("amx-tile," UNIT), noinline)) static void NAME(                          \
        uint64_t turns, const void *in, void *out)                                                 \
    {                                                                                              \
        struct tile_config config;                                                                 \
        fill_config(&config);                                                                      \
        _tile_loadconfig(&config);                                                                 \
        _tile_loadd(6, in, ROW_BYTES);                                                             \
        _tile_loadd(7, (const char *)in + TILE_BYTES, ROW_BYTES);                                  \
        _tile_zero(0);                                                                             \
        _tile_zero(1);                                                                             \
        _tile_zero(2);                                                                             \
        _tile_zero(3);                                                                             \
        _tile_zero(4);                                                                             \
        _tile_zero(5);                                                                             \
        for (; turns; turns--) {                                                                   \
            MULTIPLY(0, 6, 7);                                                                     \
            MULTIPLY(1, 6, 7);                                                                     \
            MULTIPLY(2, 6, 7);                                                                     \
            MULTIPLY(3, 6, 7);                                                                     \
            MULTIPLY(4, 6, 7);                                                                     \
            MULTIPLY(5, 6, 7);                                                                     \
        }                                                                                          \
        _tile_stored(0, out, ROW_BYTES);                                                           \
        _tile_stored(1, out, ROW_BYTES);                                                           \
        _tile_stored(2, out, ROW_BYTES);                                                           \
        _tile_stored(3, out, ROW_BYTES);                                                           \
        _tile_stored(4, out, ROW_BYTES);                                                           \
        _tile_stored(5, out, ROW_BYTES);                                                           \
        _tile_release();                                                                           \
    }

TILE_LOOP(tile_bf16, "amx-bf16", _tile_dpbf16ps)
TILE_LOOP(tile_int8, "amx-int8", _tile_dpbusd)

static bool has_bf16(const struct cpu_features *f)
{
    return f->amx_bf16 && permitted();
}

static bool has_int8(const struct cpu_features *f)
{
    return f->amx_int8 && permitted();
}

/* One instruction: 16 x 16 sums of 32 (bf16) or 64 (int8) products. */
const struct ceiling_loop ceiling_amx[] = {
    {GEMM_BF16, "measured: register-only amx_bf16 tile loop", SUMS * 16.0 * 16 * 32 * 2, has_bf16,
     tile_bf16},
    {GEMM_INT8, "measured: register-only amx_int8 tile loop", SUMS * 16.0 * 16 * 64 * 2, has_int8,
     tile_int8},
    {.run = NULL},
};

#else
const struct ceiling_loop ceiling_amx[] = {{.run = NULL}};
#endif
