/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ceiling loops for the vector units of arm64. The 128-bit forms run at the full rate of the cores
 * in servers today (a wider SVE unit does the same work in fewer instructions); where a core's SVE
 * is wider than what its NEON units do together, as on A64FX, a row may exceed this ceiling, and
 * then says so.
 *
 * The loops are words of machine code: compilers spill the sums of intrinsics, a build for plain
 * armv8-a has none for the newer instructions, and not every assembler knows their names. Those run
 * only where AT_HWCAP tells of them.
 */
#include "benches/gemm/ceiling.h"

#if defined(__aarch64__)
#include <arm_neon.h>

/* One loop of 20 instructions `WORD` + d, d the register of the sum; operands in v30 and v31. */
#define WORDS_4(w, d)                                                                              \
    ".inst " w " + " #d "\n\t.inst " w " + " #d " + 1\n\t.inst " w " + " #d " + 2\n\t.inst " w     \
    " + " #d " + 3\n\t"
#define WORD_LOOP(NAME, WORD)                                                                      \
    __attribute__((noinline)) static void NAME(uint64_t turns, const void *in, void *out)          \
    {                                                                                              \
        register uint8x16_t x __asm__("v30") = vld1q_u8(in);                                       \
        register uint8x16_t y __asm__("v31") = vld1q_u8((const uint8_t *)in + 64);                 \
        register uint8x16_t sum __asm__("v0") = y;                                                 \
        for (; turns; turns--)                                                                     \
            __asm__ volatile(WORDS_4(WORD, 0) WORDS_4(WORD, 4) WORDS_4(WORD, 8) WORDS_4(WORD, 12)  \
                                 WORDS_4(WORD, 16)                                                 \
                             : "+w"(sum)                                                           \
                             : "w"(x), "w"(y)                                                      \
                             : "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", \
                               "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19");            \
        vst1q_u8(out, sum);                                                                        \
    }

WORD_LOOP(f32_neon, "0x4e3fcfc0")  /* fmla v0.4s, v30.4s, v31.4s */
WORD_LOOP(f64_neon, "0x4e7fcfc0")  /* fmla v0.2d, v30.2d, v31.2d */
WORD_LOOP(bf16_mmla, "0x6e5fefc0") /* bfmmla v0.4s, v30.8h, v31.8h */
WORD_LOOP(int8_mmla, "0x4e9fafc0") /* usmmla v0.4s, v30.16b, v31.16b */
WORD_LOOP(int8_dot, "0x6e9f97c0")  /* udot v0.4s, v30.16b, v31.16b */
/* smlal v0.8h, v30.8b, v31.8b: 16-bit sums, without the widening that a product needs on top: an
 * upper bound. */
WORD_LOOP(int8_mlal, "0x0e3f83c0")

static bool has_neon(const struct cpu_features *f)
{
    return f->neon;
}

static bool has_bf16(const struct cpu_features *f)
{
    return f->bf16;
}

static bool has_i8mm(const struct cpu_features *f)
{
    return f->i8mm;
}

static bool has_dotprod(const struct cpu_features *f)
{
    return f->dotprod;
}

#define MEASURED "measured: register-only "

/* bfmmla: 2 x 2 sums of 4 products; usmmla: 2 x 2 sums of 8; udot: 4 sums of 4. */
const struct ceiling_loop ceiling_arm[] = {
    {GEMM_F32, MEASURED "neon FMA loop", 20 * 4 * 2, has_neon, f32_neon},
    {GEMM_F64, MEASURED "neon FMA loop", 20 * 2 * 2, has_neon, f64_neon},
    {GEMM_BF16, MEASURED "neon bfmmla loop", 20 * 4 * 4 * 2, has_bf16, bf16_mmla},
    {GEMM_BF16, MEASURED "neon f32 FMA loop (no bf16 loop is faster here)", 20 * 4 * 2, has_neon,
     f32_neon},
    {GEMM_INT8, MEASURED "neon usmmla loop", 20 * 4 * 8 * 2, has_i8mm, int8_mmla},
    {GEMM_INT8, MEASURED "neon udot loop", 20 * 4 * 4 * 2, has_dotprod, int8_dot},
    {GEMM_INT8, MEASURED "neon smlal loop", 20 * 8 * 2, has_neon, int8_mlal},
    {.run = NULL},
};

#else
const struct ceiling_loop ceiling_arm[] = {{.run = NULL}};
#endif
