/* SPDX-License-Identifier: Apache-2.0 */
/* Ceiling loops for the vector units of x86-64, widest first. The tile unit is in ceiling_amx.c. */
#include "core/blas/ceiling.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "core/blas/ceiling_sums.h"

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

#define MEASURED "measured: register-only "
#define BY_F32   " (no bf16 loop is faster here)"

/* Operations: sums x lanes x 2 for a multiply-add; a dot-product step adds 2 (bf16) or 4 (int8)
 * products a lane; vpmaddubsw makes 32 products of 256 bits, pmaddwd 8 of 128. */
const struct ceiling_loop ceiling_x86[] = {
    {GEMM_F32, MEASURED "avx512f FMA loop", 20 * 16 * 2, has_avx512f, f32_512},
    {GEMM_F32, MEASURED "avx2 FMA loop", 12 * 8 * 2, has_fma, f32_256},
    {GEMM_F32, MEASURED "sse2 multiply and add loop", 12 * 4 * 2, has_sse2, f32_128},
    {GEMM_F64, MEASURED "avx512f FMA loop", 20 * 8 * 2, has_avx512f, f64_512},
    {GEMM_F64, MEASURED "avx2 FMA loop", 12 * 4 * 2, has_fma, f64_256},
    {GEMM_F64, MEASURED "sse2 multiply and add loop", 12 * 2 * 2, has_sse2, f64_128},
    {GEMM_BF16, MEASURED "avx512_bf16 vdpbf16ps loop", 20 * 16 * 2 * 2, has_avx512_bf16, bf16_512},
    {GEMM_BF16, MEASURED "avx512f f32 FMA loop" BY_F32, 20 * 16 * 2, has_avx512f, f32_512},
    {GEMM_BF16, MEASURED "avx2 f32 FMA loop" BY_F32, 12 * 8 * 2, has_fma, f32_256},
    {GEMM_BF16, MEASURED "sse2 f32 loop" BY_F32, 12 * 4 * 2, has_sse2, f32_128},
    {GEMM_INT8, MEASURED "avx512_vnni vpdpbusd loop", 20 * 16 * 4 * 2, has_avx512_vnni, int8_512},
    {GEMM_INT8, MEASURED "avx_vnni vpdpbusd loop", 12 * 8 * 4 * 2, has_avx_vnni, vnni_256},
    {GEMM_INT8, MEASURED "avx2 vpmaddubsw loop", 8 * 32 * 2, has_avx2, int8_256},
    {GEMM_INT8, MEASURED "sse2 pmaddwd loop", 8 * 8 * 2, has_sse2, int8_128},
    {.run = NULL},
};

#else
const struct ceiling_loop ceiling_x86[] = {{.run = NULL}};
#endif
