/* SPDX-License-Identifier: Apache-2.0 */
/* What the vector units can do at most: loops by architecture, and their race. See library.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "benches/gemm/library.h"
#include "core/alloc.h"
#include "core/hw/topo.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define MEASURED  "measured: register-only "
#define NO_FASTER " (no bf16 loop is faster here)"

/* The instructions of a loop: those of its type, or those of f32. */
#define OWN    false
#define BY_F32 true

/*
 * CEILING_LOOP defines a loop with N sums, each in a variable of its own, so that any compiler
 * keeps them in registers. N is 8, 12 or 20: it hides the latency (4 to 6 cycles on the cores of
 * today, times two units) and fits the registers beside the operands. STEP(sum, x, y) gives the
 * next sum. ATTRIBUTES is the function's target.
 */
#define CEILING_X8(DO, ARG)                                                                        \
    DO(0, ARG) DO(1, ARG) DO(2, ARG) DO(3, ARG) DO(4, ARG) DO(5, ARG) DO(6, ARG) DO(7, ARG)
#define CEILING_X12(DO, ARG) CEILING_X8(DO, ARG) DO(8, ARG) DO(9, ARG) DO(10, ARG) DO(11, ARG)
#define CEILING_X20(DO, ARG)                                                                       \
    CEILING_X12(DO, ARG)                                                                           \
    DO(12, ARG) DO(13, ARG) DO(14, ARG) DO(15, ARG) DO(16, ARG) DO(17, ARG) DO(18, ARG) DO(19, ARG)

#define CEILING_LOAD(I, TYPE)                                                                      \
    TYPE sum##I;                                                                                   \
    memcpy(&sum##I, from + 128 + (I) * sizeof(TYPE), sizeof(TYPE));
#define CEILING_STEP(I, STEP)  sum##I = STEP(sum##I, x, y);
#define CEILING_STORE(I, TYPE) memcpy(to + (I) * sizeof(TYPE), &sum##I, sizeof(TYPE));

/* clang-format off */
#define CEILING_LOOP(NAME, ATTRIBUTES, SUM, OPERAND, N, STEP)                                      \
    ATTRIBUTES static void NAME(uint64_t turns, const void *in, void *out)                         \
    {                                                                                              \
        const char *from = in;                                                                     \
        char *to = out;                                                                            \
        OPERAND x, y;                                                                              \
        memcpy(&x, from, sizeof(x));                                                               \
        memcpy(&y, from + 64, sizeof(y));                                                          \
        CEILING_X##N(CEILING_LOAD, SUM)                                                            \
        for (; turns; turns--) {                                                                   \
            CEILING_X##N(CEILING_STEP, STEP)                                                       \
        }                                                                                          \
        CEILING_X##N(CEILING_STORE, SUM)                                                           \
    }
/* clang-format on */

/* ---- The tile unit of x86-64 (AMX) ---- */

/*
 * A tile is 16 rows of 64 bytes. One instruction adds the product of a 16 x 64-byte and a
 * transposed-in-pairs 64-byte x 16 tile to a 16 x 16 tile of 4-byte sums (Intel SDM, TDPBF16PS and
 * TDPBUSD). Six tiles are sums, two are operands: the latency is 52 cycles, the throughput one in
 * 16.
 *
 * Linux gives the tile registers to a process that asks (Documentation/arch/x86/xstate.rst); the
 * permission is the whole process', and new threads inherit it.
 */

#if defined(__x86_64__)
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

static bool has_amx_bf16(const struct cpu_features *f)
{
    return f->amx_bf16 && permitted();
}

static bool has_amx_int8(const struct cpu_features *f)
{
    return f->amx_int8 && permitted();
}

/* One instruction: 16 x 16 sums of 32 (bf16) or 64 (int8) products. */
const struct ceiling_loop ceiling_amx[] = {
    {GEMM_BF16, OWN, MEASURED "amx_bf16 tile loop", SUMS * 16.0 * 16 * 32 * 2, has_amx_bf16,
     tile_bf16},
    {GEMM_INT8, OWN, MEASURED "amx_int8 tile loop", SUMS * 16.0 * 16 * 64 * 2, has_amx_int8,
     tile_int8},
    {.run = NULL},
};

#else
const struct ceiling_loop ceiling_amx[] = {{.run = NULL}};
#endif

/* ---- The vector units of x86-64, widest first ---- */

#if defined(__x86_64__)
#define TARGET(t) __attribute__((target(t), noinline))

/* Assembly, not intrinsics: compilers copy and spill the sums of some intrinsics, and would take
 * what does not depend on the sum out of the loop. FMA is sum x + y, near y / (1 - x). */
#define ASM(text, s, x, y)                                                                         \
    __extension__({                                                                                \
        __asm__ volatile(text : "+v"(s) : "v"(x), "v"(y));                                         \
        s;                                                                                         \
    })
#define ASM_TEMPORARY(text, type, s, x, y)                                                         \
    __extension__({                                                                                \
        type t;                                                                                    \
        __asm__ volatile(text : "+x"(s), "=&x"(t) : "x"(x), "x"(y));                               \
        s;                                                                                         \
    })
#define STEP_F32_FMA(s, x, y)  ASM("vfmadd213ps %2, %1, %0", s, x, y)
#define STEP_F64_FMA(s, x, y)  ASM("vfmadd213pd %2, %1, %0", s, x, y)
#define STEP_BF16(s, x, y)     ASM("vdpbf16ps %2, %1, %0", s, x, y)
#define STEP_VNNI(s, x, y)     ASM("vpdpbusd %2, %1, %0", s, x, y)
#define STEP_VNNI_256(s, x, y) ASM("%{vex%} vpdpbusd %2, %1, %0", s, x, y)
#define STEP_F32_SSE(s, x, y)  ASM("mulps %1, %0\n\taddps %2, %0", s, x, y)
#define STEP_F64_SSE(s, x, y)  ASM("mulpd %1, %0\n\taddpd %2, %0", s, x, y)
#define STEP_INT8_256(s, x, y)                                                                     \
    ASM_TEMPORARY("vpmaddubsw %3, %2, %1\n\tvpmaddwd %3, %1, %1\n\tvpaddd %1, %0, %0", __m256i, s, \
                  x, y)
#define STEP_INT8_128(s, x, y)                                                                     \
    ASM_TEMPORARY("movdqa %2, %1\n\tpmaddwd %3, %1\n\tpaddd %1, %0", __m128i, s, x, y)

CEILING_LOOP(f32_512, TARGET("avx512f"), __m512, __m512, 20, STEP_F32_FMA)
CEILING_LOOP(f64_512, TARGET("avx512f"), __m512d, __m512d, 20, STEP_F64_FMA)
CEILING_LOOP(bf16_512, TARGET("avx512f"), __m512, __m512i, 20, STEP_BF16)
CEILING_LOOP(int8_512, TARGET("avx512f"), __m512i, __m512i, 20, STEP_VNNI)
CEILING_LOOP(f32_256, TARGET("avx2"), __m256, __m256, 12, STEP_F32_FMA)
CEILING_LOOP(f64_256, TARGET("avx2"), __m256d, __m256d, 12, STEP_F64_FMA)
CEILING_LOOP(vnni_256, TARGET("avx2"), __m256i, __m256i, 12, STEP_VNNI_256)
CEILING_LOOP(int8_256, TARGET("avx2"), __m256i, __m256i, 8, STEP_INT8_256)
CEILING_LOOP(f32_128, TARGET("sse2"), __m128, __m128, 12, STEP_F32_SSE)
CEILING_LOOP(f64_128, TARGET("sse2"), __m128d, __m128d, 12, STEP_F64_SSE)
CEILING_LOOP(int8_128, TARGET("sse2"), __m128i, __m128i, 8, STEP_INT8_128)

static bool has_avx512f(const struct cpu_features *f)
{
    return f->avx512f;
}

static bool has_avx512_bf16(const struct cpu_features *f)
{
    return f->avx512_bf16;
}

static bool has_avx512_vnni(const struct cpu_features *f)
{
    return f->avx512_vnni;
}

static bool has_fma(const struct cpu_features *f)
{
    return f->avx2 && f->fma;
}

static bool has_avx_vnni(const struct cpu_features *f)
{
    return f->avx_vnni;
}

static bool has_avx2(const struct cpu_features *f)
{
    return f->avx2;
}

static bool has_sse2(const struct cpu_features *f)
{
    (void)f; /* every x86-64 CPU */
    return true;
}

/* Operations: sums x lanes x 2 for a multiply-add; a dot-product step adds 2 (bf16) or 4 (int8)
 * products a lane; vpmaddubsw makes 32 products of 256 bits, pmaddwd 8 of 128. */
const struct ceiling_loop ceiling_x86[] = {
    {GEMM_F32, OWN, MEASURED "avx512f FMA loop", 20 * 16 * 2, has_avx512f, f32_512},
    {GEMM_F32, OWN, MEASURED "avx2 FMA loop", 12 * 8 * 2, has_fma, f32_256},
    {GEMM_F32, OWN, MEASURED "sse2 multiply and add loop", 12 * 4 * 2, has_sse2, f32_128},
    {GEMM_F64, OWN, MEASURED "avx512f FMA loop", 20 * 8 * 2, has_avx512f, f64_512},
    {GEMM_F64, OWN, MEASURED "avx2 FMA loop", 12 * 4 * 2, has_fma, f64_256},
    {GEMM_F64, OWN, MEASURED "sse2 multiply and add loop", 12 * 2 * 2, has_sse2, f64_128},
    {GEMM_BF16, OWN, MEASURED "avx512_bf16 vdpbf16ps loop", 20 * 16 * 2 * 2, has_avx512_bf16,
     bf16_512},
    {GEMM_BF16, BY_F32, MEASURED "avx512f f32 FMA loop" NO_FASTER, 20 * 16 * 2, has_avx512f,
     f32_512},
    {GEMM_BF16, BY_F32, MEASURED "avx2 f32 FMA loop" NO_FASTER, 12 * 8 * 2, has_fma, f32_256},
    {GEMM_BF16, BY_F32, MEASURED "sse2 f32 loop" NO_FASTER, 12 * 4 * 2, has_sse2, f32_128},
    {GEMM_INT8, OWN, MEASURED "avx512_vnni vpdpbusd loop", 20 * 16 * 4 * 2, has_avx512_vnni,
     int8_512},
    {GEMM_INT8, OWN, MEASURED "avx_vnni vpdpbusd loop", 12 * 8 * 4 * 2, has_avx_vnni, vnni_256},
    {GEMM_INT8, OWN, MEASURED "avx2 vpmaddubsw loop", 8 * 32 * 2, has_avx2, int8_256},
    {GEMM_INT8, OWN, MEASURED "sse2 pmaddwd loop", 8 * 8 * 2, has_sse2, int8_128},
    {.run = NULL},
};

#else
const struct ceiling_loop ceiling_x86[] = {{.run = NULL}};
#endif

/* ---- The vector units of arm64 ---- */

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
#if defined(__aarch64__)
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

/* bfmmla: 2 x 2 sums of 4 products; usmmla: 2 x 2 sums of 8; udot: 4 sums of 4. */
const struct ceiling_loop ceiling_arm[] = {
    {GEMM_F32, OWN, MEASURED "neon FMA loop", 20 * 4 * 2, has_neon, f32_neon},
    {GEMM_F64, OWN, MEASURED "neon FMA loop", 20 * 2 * 2, has_neon, f64_neon},
    {GEMM_BF16, OWN, MEASURED "neon bfmmla loop", 20 * 4 * 4 * 2, has_bf16, bf16_mmla},
    {GEMM_BF16, BY_F32, MEASURED "neon f32 FMA loop" NO_FASTER, 20 * 4 * 2, has_neon, f32_neon},
    {GEMM_INT8, OWN, MEASURED "neon usmmla loop", 20 * 4 * 8 * 2, has_i8mm, int8_mmla},
    {GEMM_INT8, OWN, MEASURED "neon udot loop", 20 * 4 * 4 * 2, has_dotprod, int8_dot},
    {GEMM_INT8, OWN, MEASURED "neon smlal loop", 20 * 8 * 2, has_neon, int8_mlal},
    {.run = NULL},
};

#else
const struct ceiling_loop ceiling_arm[] = {{.run = NULL}};
#endif

/* ---- Plain C with vectors of 128 bits, for all other CPUs ---- */

/* A library with better instructions may exceed these loops. Its row then says so. */

typedef float f32x4 __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));

#define PLAIN         __attribute__((noinline))
#define STEP(s, x, y) ((s) * (x) + (y))

CEILING_LOOP(f32_plain, PLAIN, f32x4, f32x4, 12, STEP)
CEILING_LOOP(f64_plain, PLAIN, f64x2, f64x2, 12, STEP)
CEILING_LOOP(int_plain, PLAIN, u32x4, u32x4, 12, STEP)

static bool always(const struct cpu_features *f)
{
    (void)f;
    return true;
}

const struct ceiling_loop ceiling_generic[] = {
    {GEMM_F32, OWN, MEASURED "plain C loop of 128 bits", 12 * 4 * 2, always, f32_plain},
    {GEMM_F64, OWN, MEASURED "plain C loop of 128 bits", 12 * 2 * 2, always, f64_plain},
    {GEMM_BF16, BY_F32, MEASURED "plain C loop of 128 bits in f32", 12 * 4 * 2, always, f32_plain},
    {GEMM_INT8, OWN, MEASURED "plain C loop of 128 bits in 32-bit integers", 12 * 4 * 2, always,
     int_plain},
    {.run = NULL},
};

/* ---- Which of them is the fastest here ---- */

#define RUN_NS      2000000u /* long against the microseconds that a team's start costs */
#define RUNS        25
#define RUNS_FIRST  5   /* of each loop */
#define NEAR        0.8 /* of the fastest: whether it stays there is not decided yet */
#define TURNS_FIRST 1000

static const struct ceiling_loop *const tables[] = {ceiling_amx, ceiling_x86, ceiling_arm,
                                                    ceiling_generic};

size_t ceiling_loops(enum gemm_dtype dtype, const struct cpu_features *f,
                     const struct ceiling_loop *loops[CEILING_LOOPS_MAX])
{
    size_t n = 0;

    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
        for (const struct ceiling_loop *loop = tables[t]; loop->run; loop++)
            if (loop->dtype == dtype && loop->usable(f) && n < CEILING_LOOPS_MAX)
                loops[n++] = loop;
    return n;
}

struct run {
    const struct ceiling_loop *loop;
    uint64_t turns;
    const void *in;
    char *out;         /* CEILING_OUT_BYTES for each thread */
    uint64_t *each_ns; /* of each thread */
};

static void run_member(void *arg, unsigned thread, unsigned threads)
{
    const struct run *run = arg;

    (void)threads;
    run->loop->run(run->turns, run->in, run->out + (size_t)thread * CEILING_OUT_BYTES);
}

static uint64_t run_once(struct team *team, struct run *run)
{
    uint64_t ns;

    team_run(team, run_member, run, &ns, run->each_ns);
    return ns;
}

static double best_rate(struct team *team, struct run *run, int runs)
{
    double best = 0;
    uint64_t ns = run_once(team, run);

    while (ns < RUN_NS / 2) { /* also brings the clock up */
        run->turns *= ns < RUN_NS / 16 ? 8 : 2;
        ns = run_once(team, run);
    }
    for (int i = 0; i < runs; i++) {
        run_once(team, run);
        /* Each thread at its own speed: cores of two kinds do not wait for each other. */
        double operations = run->loop->operations * (double)run->turns, rate = 0;
        for (unsigned k = 0; k < team_size(team); k++)
            rate += operations / (double)(run->each_ns[k] ? run->each_ns[k] : 1);
        best = rate > best ? rate : best;
    }
    return best;
}

/* All loops briefly, then those near the front for as long as a maximum needs: a wide unit may be
 * slower than a narrow one, and a type's own instruction than the detour by another type. */
static void race(struct team *team, struct run *run, const struct ceiling_loop *const *loops,
                 size_t n, struct ceiling_rate *best)
{
    double rates[CEILING_LOOPS_MAX] = {0}, front = 0;

    *best = (struct ceiling_rate){loops[0], 0, 0};
    for (size_t i = 0; i < n; i++) {
        run->loop = loops[i];
        run->turns = TURNS_FIRST;
        rates[i] = best_rate(team, run, RUNS_FIRST);
        front = rates[i] > front ? rates[i] : front;
        if (!loops[i]->is_detour && rates[i] > best->own_per_ns)
            best->own_per_ns = rates[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (rates[i] < NEAR * front)
            continue;
        run->loop = loops[i];
        run->turns = TURNS_FIRST;
        double rate = best_rate(team, run, RUNS);

        rate = rates[i] > rate ? rates[i] : rate;
        if (!loops[i]->is_detour && rate > best->own_per_ns)
            best->own_per_ns = rate;
        if (rate > best->operations_per_ns)
            *best = (struct ceiling_rate){loops[i], rate, best->own_per_ns};
    }
}

int ceiling_measure(const struct ceiling_loop *const *loops, size_t n_loops,
                    const struct topo *topo, const unsigned *cpus, unsigned n,
                    struct ceiling_rate *best)
{
    struct team *team;
    int err = !n_loops || n_loops > CEILING_LOOPS_MAX ? -EINVAL : team_open(&team, topo, cpus, n);

    if (err)
        return err;
    unsigned char *in = xaligned(64, CEILING_IN_BYTES);
    char *out = xaligned(64, (size_t)n * CEILING_OUT_BYTES);
    uint64_t *each_ns = xcalloc(n, sizeof(*each_ns));
    struct run run = {.in = in, .out = out, .each_ns = each_ns};
    /* Operands that keep sums finite: 0x3e.. read as a float, a bf16 or a double is a fraction;
     * read as bytes they are small. */
    for (unsigned i = 0; i < CEILING_IN_BYTES; i++)
        in[i] = (unsigned char)(i & 1 ? 0x3e : 0x10 + i % 61);
    race(team, &run, loops, n_loops, best);
    team_close(team);
    free(in);
    free(out);
    free(each_ns);
    return 0;
}
