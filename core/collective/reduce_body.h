/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of data.h, written once for all vector units. A file that includes this sets
 *
 *   R_ISA       its table: reduce_avx512
 *   R_NAME      "avx512"
 *   R_PRESENT   expression: this CPU has it
 *   R_TARGET    attribute of every function, or nothing
 *   R_BYTES     bytes of a vector
 *   R_F16       defined: the file has r_f16_sum(), _max(), _min() and _prod() of its own, of half a
 *               vector of bytes; left out: by integers
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
typedef uint64_t r_u64 __attribute__((vector_size(R_BYTES)));
typedef int8_t r_i8 __attribute__((vector_size(R_BYTES)));
typedef uint8_t r_u8 __attribute__((vector_size(R_BYTES)));

#define R_INLINE static inline __attribute__((always_inline))

/* Of numbers whose vectors are `vector`: as whole numbers `bits` without sign, so that what overflows
 * wraps, and `less` where one is smaller than the other, compared as `order`. */
#define R_STEPS(name, vector, bits, less, order)                                                   \
    R_TARGET R_INLINE vector name##_sum(vector a, vector b)                                        \
    {                                                                                              \
        return a + b;                                                                              \
    }                                                                                              \
    R_TARGET R_INLINE vector name##_prod(vector a, vector b)                                       \
    {                                                                                              \
        return a * b;                                                                              \
    }                                                                                              \
    R_TARGET R_INLINE vector name##_max(vector a, vector b)                                        \
    {                                                                                              \
        less smaller = (order)a < (order)b;                                                        \
        return (vector)(((bits)a & ~(bits)smaller) | ((bits)b & (bits)smaller));                   \
    }                                                                                              \
    R_TARGET R_INLINE vector name##_min(vector a, vector b)                                        \
    {                                                                                              \
        less smaller = (order)a < (order)b;                                                        \
        return (vector)(((bits)b & ~(bits)smaller) | ((bits)a & (bits)smaller));                   \
    }
R_STEPS(r_f32, r_f32, r_u32, r_i32, r_f32)
R_STEPS(r_f64, r_f64, r_u64, r_i64, r_f64)
R_STEPS(r_i32, r_u32, r_u32, r_i32, r_i32)
R_STEPS(r_i64, r_u64, r_u64, r_i64, r_i64)
R_STEPS(r_i8, r_u8, r_u8, r_i8, r_i8)

/* bf16 is the upper half of an f32: of each pair the upper one is there once the lower is masked,
 * the lower one by a shift. Rounded to nearest, ties to even. */
R_TARGET R_INLINE r_u32 r_rounded(r_f32 x)
{
    r_u32 bits = (r_u32)x;

    return bits + 0x7fff + (bits >> 16 & 1);
}

#define R_BF16_STEP(name, rounded, step)                                                           \
    R_TARGET R_INLINE r_u32 name(r_u32 a, r_u32 b)                                                 \
    {                                                                                              \
        r_u32 upper = rounded(step((r_f32)(a & 0xffff0000), (r_f32)(b & 0xffff0000)));             \
        r_u32 lower = rounded(step((r_f32)(a << 16), (r_f32)(b << 16)));                           \
        return (upper & 0xffff0000) | lower >> 16;                                                 \
    }
R_BF16_STEP(r_bf16_sum, r_rounded, r_f32_sum)
R_BF16_STEP(r_bf16_prod, r_rounded, r_f32_prod)
R_BF16_STEP(r_bf16_max, (r_u32), r_f32_max)
R_BF16_STEP(r_bf16_min, (r_u32), r_f32_min)

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

#define R_F16_STEP(name, step)                                                                     \
    R_TARGET R_INLINE r_half name(r_half a, r_half b)                                              \
    {                                                                                              \
        r_u32 upper = r_f16_of_f32(step(r_f32_of_f16(a >> 16), r_f32_of_f16(b >> 16)));            \
        r_u32 lower = r_f16_of_f32(step(r_f32_of_f16(a & 0xffff), r_f32_of_f16(b & 0xffff)));      \
        return upper << 16 | lower;                                                                \
    }
R_F16_STEP(r_f16_sum, r_f32_sum)
R_F16_STEP(r_f16_prod, r_f32_prod)
R_F16_STEP(r_f16_max, r_f32_max)
R_F16_STEP(r_f16_min, r_f32_min)
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

#define R_LOOPS(name, vector, element_bytes)                                                       \
    R_LOOP(r_loop_##name##_sum, vector, element_bytes, r_##name##_sum)                             \
    R_LOOP(r_loop_##name##_max, vector, element_bytes, r_##name##_max)                             \
    R_LOOP(r_loop_##name##_min, vector, element_bytes, r_##name##_min)                             \
    R_LOOP(r_loop_##name##_prod, vector, element_bytes, r_##name##_prod)
#define R_ALL(name)                                                                                \
    {                                                                                              \
        [COLLECTIVE_SUM] = r_loop_##name##_sum, [COLLECTIVE_MAX] = r_loop_##name##_max,            \
        [COLLECTIVE_MIN] = r_loop_##name##_min, [COLLECTIVE_PROD] = r_loop_##name##_prod,          \
    }
R_LOOPS(f32, r_f32, 4)
R_LOOPS(f64, r_f64, 8)
R_LOOPS(i32, r_u32, 4)
R_LOOPS(i64, r_u64, 8)
R_LOOPS(i8, r_u8, 1)
R_LOOPS(bf16, r_u32, 2)
R_LOOPS(f16, r_half, 2)

static bool r_present(void)
{
    return R_PRESENT;
}

extern const struct reduce_isa R_ISA;
const struct reduce_isa R_ISA = {
    .name = R_NAME,
    .present = r_present,
    .reduce = {[COLLECTIVE_F32] = R_ALL(f32),
               [COLLECTIVE_F16] = R_ALL(f16),
               [COLLECTIVE_BF16] = R_ALL(bf16),
               [COLLECTIVE_F64] = R_ALL(f64),
               [COLLECTIVE_I32] = R_ALL(i32),
               [COLLECTIVE_I8] = R_ALL(i8),
               [COLLECTIVE_I64] = R_ALL(i64)},
};
