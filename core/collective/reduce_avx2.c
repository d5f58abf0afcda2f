/* SPDX-License-Identifier: Apache-2.0 */
/* The loops for AVX2 with F16C: 32 bytes at a time. Not every compiler's builtin can ask for F16C;
 * no CPU has both AVX2 and FMA without it. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

#define R_ISA     reduce_avx2
#define R_NAME    "avx2"
#define R_PRESENT __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
#define R_TARGET  __attribute__((target("avx2,f16c")))
#define R_BYTES   32

typedef uint16_t half_vector __attribute__((vector_size(R_BYTES / 2)));

#define F16_STEP(name, step)                                                                       \
    R_TARGET static inline __attribute__((always_inline)) half_vector name(half_vector a,          \
                                                                           half_vector b)          \
    {                                                                                              \
        return (half_vector)_mm256_cvtps_ph(                                                       \
            step(_mm256_cvtph_ps((__m128i)a), _mm256_cvtph_ps((__m128i)b)),                        \
            _MM_FROUND_TO_NEAREST_INT);                                                            \
    }
F16_STEP(r_f16_sum, _mm256_add_ps)
F16_STEP(r_f16_max, _mm256_max_ps)
F16_STEP(r_f16_min, _mm256_min_ps)
F16_STEP(r_f16_prod, _mm256_mul_ps)

#define R_F16 r_f16_sum
#include "core/collective/reduce_body.h"
#endif
