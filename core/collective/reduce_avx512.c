/* SPDX-License-Identifier: Apache-2.0 */
/* The loops for AVX-512 (F): 64 bytes at a time. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

#define R_ISA     reduce_avx512
#define R_NAME    "avx512"
#define R_PRESENT __builtin_cpu_supports("avx512f")
#define R_TARGET  __attribute__((target("avx512f")))
#define R_BYTES   64

typedef uint16_t half_vector __attribute__((vector_size(R_BYTES / 2)));

#define F16_STEP(name, step)                                                                       \
    R_TARGET static inline __attribute__((always_inline)) half_vector name(half_vector a,          \
                                                                           half_vector b)          \
    {                                                                                              \
        return (half_vector)_mm512_cvtps_ph(                                                       \
            step(_mm512_cvtph_ps((__m256i)a), _mm512_cvtph_ps((__m256i)b)),                        \
            _MM_FROUND_TO_NEAREST_INT);                                                            \
    }
F16_STEP(r_f16_sum, _mm512_add_ps)
F16_STEP(r_f16_max, _mm512_max_ps)
F16_STEP(r_f16_min, _mm512_min_ps)
F16_STEP(r_f16_prod, _mm512_mul_ps)

#define R_F16 r_f16_sum
#include "core/collective/reduce_body.h"
#endif
