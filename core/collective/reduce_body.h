/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of data.h, written once for all vector units. A file that includes this sets
 *
 *   R_ISA       its table: reduce_avx512
 *   R_NAME      "avx512"
 *   R_PRESENT   expression: this CPU has it
 *   R_TARGET    attribute of every function, or nothing
 *   R_BYTES     bytes of a vector
 *   R_F16       defined: the file has r_f16_sum() and r_f16_max() of its own, of half a vector of
 *               bytes; left out: by integers
 *
 * The compiler's own vectors, since what is told to it is the width and nothing else.
 */
#include <string.h>

#include "core/collective/data.h"

typedef float r_f32 __attribute__((vector_size(R_BYTES)));
typedef double r_f64 __attribute__((vector_size(R_BYTES)));
typedef uint32_t r_u32 __attribute__((vector_size(R_BYTES)));
typedef int32_t r_i32 __attribute__((vector_size(R_BYTES)));
typedef int64_t r_i64 __attribute__((vector_size(R_BYTES)));

#define R_INLINE static inline __attribute__((always_inline))

R_TARGET R_INLINE r_f32 r_f32_sum(r_f32 a, r_f32 b)
{
    return a + b;
}

R_TARGET R_INLINE r_f32 r_f32_max(r_f32 a, r_f32 b)
{
    r_i32 less = a < b;

    return (r_f32)(((r_i32)a & ~less) | ((r_i32)b & less));
}

R_TARGET R_INLINE r_f64 r_f64_sum(r_f64 a, r_f64 b)
{
    return a + b;
}

R_TARGET R_INLINE r_f64 r_f64_max(r_f64 a, r_f64 b)
{
    r_i64 less = a < b;

    return (r_f64)(((r_i64)a & ~less) | ((r_i64)b & less));
}

/* Without sign: what overflows wraps. */
R_TARGET R_INLINE r_u32 r_i32_sum(r_u32 a, r_u32 b)
{
    return a + b;
}

R_TARGET R_INLINE r_u32 r_i32_max(r_u32 a, r_u32 b)
{
    r_i32 less = (r_i32)a < (r_i32)b;

    return (r_u32)(((r_i32)a & ~less) | ((r_i32)b & less));
}

/* bf16 is the upper half of an f32: of each pair the upper one is there once the lower is masked,
 * the lower one by a shift. Rounded to nearest, ties to even. */
R_TARGET R_INLINE r_u32 r_rounded(r_f32 x)
{
    r_u32 bits = (r_u32)x;

    return bits + 0x7fff + (bits >> 16 & 1);
}

R_TARGET R_INLINE r_u32 r_bf16_sum(r_u32 a, r_u32 b)
{
    r_u32 upper = r_rounded((r_f32)(a & 0xffff0000) + (r_f32)(b & 0xffff0000));
    r_u32 lower = r_rounded((r_f32)(a << 16) + (r_f32)(b << 16));

    return (upper & 0xffff0000) | lower >> 16;
}

R_TARGET R_INLINE r_u32 r_bf16_max(r_u32 a, r_u32 b)
{
    r_u32 upper = (r_u32)r_f32_max((r_f32)(a & 0xffff0000), (r_f32)(b & 0xffff0000));
    r_u32 lower = (r_u32)r_f32_max((r_f32)(a << 16), (r_f32)(b << 16));

    return upper | lower >> 16;
}

#ifndef R_F16
typedef r_u32 r_half; /* pairs, as of bf16 */

R_TARGET R_INLINE r_u32 r_select(r_i32 where, r_u32 yes, r_u32 no)
{
    return ((r_u32)where & yes) | (~(r_u32)where & no);
}

/* As reduce_float_of_f16() and reduce_f16_of_float() do it, of the lower halves. */
R_TARGET R_INLINE r_f32 r_f32_of_f16(r_u32 x)
{
    r_u32 sign = (x & 0x8000) << 16, magnitude = x & 0x7fff;
    r_u32 finite = (r_u32)((r_f32)(magnitude << 13) * 0x1p112f);
    r_u32 other = 0x7f800000 | (magnitude & 0x3ff) << 13;

    return (r_f32)(sign | r_select(magnitude >= 0x7c00, other, finite));
}

R_TARGET R_INLINE r_u32 r_f16_of_f32(r_f32 x)
{
    r_u32 sign = (r_u32)x >> 16 & 0x8000, magnitude = (r_u32)x & 0x7fffffff;
    r_u32 normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    r_u32 small = (r_u32)((r_f32)magnitude + 0.5f) - 0x3f000000; /* less the bits of 0.5f */
    r_u32 large = r_select(magnitude > 0x7f800000, (r_u32){0} + 0x7e00, (r_u32){0} + 0x7c00);

    normal = r_select(magnitude < 0x38800000, small, normal);
    return sign | r_select(magnitude >= 0x477ff000, large, normal);
}

R_TARGET R_INLINE r_half r_f16_sum(r_half a, r_half b)
{
    r_u32 upper = r_f16_of_f32(r_f32_of_f16(a >> 16) + r_f32_of_f16(b >> 16));
    r_u32 lower = r_f16_of_f32(r_f32_of_f16(a & 0xffff) + r_f32_of_f16(b & 0xffff));

    return upper << 16 | lower;
}

R_TARGET R_INLINE r_half r_f16_max(r_half a, r_half b)
{
    r_i32 upper = r_f32_of_f16(a >> 16) < r_f32_of_f16(b >> 16);
    r_i32 lower = r_f32_of_f16(a & 0xffff) < r_f32_of_f16(b & 0xffff);

    return r_select(upper, b & 0xffff0000, a & 0xffff0000) |
           r_select(lower, b & 0xffff, a & 0xffff);
}
#else
typedef uint16_t r_half __attribute__((vector_size(R_BYTES / 2)));
#endif

/* Whole vectors wherever they begin; what is left over goes through vectors of its own. */
#define R_LOOP(name, vector, element_bytes, step)                                                  \
    R_TARGET static void name(void *to, const void *a, const void *b, size_t n)                    \
    {                                                                                              \
        const char *from_a = a, *from_b = b;                                                       \
        char *into = to;                                                                           \
        size_t bytes = n * (element_bytes), i = 0;                                                 \
        vector x, y;                                                                               \
        for (; i + sizeof(x) <= bytes; i += sizeof(x)) {                                           \
            memcpy(&x, from_a + i, sizeof(x));                                                     \
            memcpy(&y, from_b + i, sizeof(y));                                                     \
            x = step(x, y);                                                                        \
            memcpy(into + i, &x, sizeof(x));                                                       \
        }                                                                                          \
        if (i < bytes) {                                                                           \
            memset(&x, 0, sizeof(x));                                                              \
            memset(&y, 0, sizeof(y));                                                              \
            memcpy(&x, from_a + i, bytes - i);                                                     \
            memcpy(&y, from_b + i, bytes - i);                                                     \
            x = step(x, y);                                                                        \
            memcpy(into + i, &x, bytes - i);                                                       \
        }                                                                                          \
    }

R_LOOP(r_loop_f32_sum, r_f32, 4, r_f32_sum)
R_LOOP(r_loop_f32_max, r_f32, 4, r_f32_max)
R_LOOP(r_loop_f64_sum, r_f64, 8, r_f64_sum)
R_LOOP(r_loop_f64_max, r_f64, 8, r_f64_max)
R_LOOP(r_loop_i32_sum, r_u32, 4, r_i32_sum)
R_LOOP(r_loop_i32_max, r_u32, 4, r_i32_max)
R_LOOP(r_loop_bf16_sum, r_u32, 2, r_bf16_sum)
R_LOOP(r_loop_bf16_max, r_u32, 2, r_bf16_max)
R_LOOP(r_loop_f16_sum, r_half, 2, r_f16_sum)
R_LOOP(r_loop_f16_max, r_half, 2, r_f16_max)

static bool r_present(void)
{
    return R_PRESENT;
}

extern const struct reduce_isa R_ISA;
const struct reduce_isa R_ISA = {
    .name = R_NAME,
    .present = r_present,
    .reduce = {[COLLECTIVE_F32] = {r_loop_f32_sum, r_loop_f32_max},
               [COLLECTIVE_F16] = {r_loop_f16_sum, r_loop_f16_max},
               [COLLECTIVE_BF16] = {r_loop_bf16_sum, r_loop_bf16_max},
               [COLLECTIVE_F64] = {r_loop_f64_sum, r_loop_f64_max},
               [COLLECTIVE_I32] = {r_loop_i32_sum, r_loop_i32_max}},
};
