/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of host_kernels.h, written once for all vector units. A file that includes this sets
 *
 *   K_ISA           its table: host_isa_avx512
 *   K_NAME          "avx512"
 *   K_PRESENT       expression: this CPU has it
 *   K_TARGET        attribute of every function, or nothing
 *   K_BYTES         bytes of a vector
 *   K_REG           asm constraint of a vector register
 *   K_STREAM(p, v)  non-temporal store of one vector; left out where there is none
 *   K_FENCE()       orders those stores, inside the timed part
 *
 * K_KEEP() makes a vector pass through a register, unknown to the compiler: so no loop becomes a
 * call of memcpy or memset, and none is left out.
 */
#include "core/hw/host_kernels.h"

#define K_KEEP(v) __asm__ volatile("" : "+" K_REG(v))

typedef float k_f32 __attribute__((vector_size(K_BYTES), may_alias));
typedef double k_f64 __attribute__((vector_size(K_BYTES), may_alias));
typedef uint64_t k_u64 __attribute__((vector_size(K_BYTES), may_alias));

/* `step` for one vector, and for a block of 4 x 64, 8 x 32 or 8 x 16 bytes. */
#define K_STEPS_FAR(step, ...) step(__VA_ARGS__, 0)
#define K_STEPS_4(step, ...)                                                                       \
    step(__VA_ARGS__, 0) step(__VA_ARGS__, 1) step(__VA_ARGS__, 2) step(__VA_ARGS__, 3)
#if K_BYTES == 64
#define K_NEAR            4
#define K_STEPS_NEAR(...) K_STEPS_4(__VA_ARGS__)
#else
#define K_NEAR 8
#define K_STEPS_NEAR(step, ...)                                                                    \
    K_STEPS_4(step, __VA_ARGS__)                                                                   \
    step(__VA_ARGS__, 4) step(__VA_ARGS__, 5) step(__VA_ARGS__, 6) step(__VA_ARGS__, 7)
#endif
#define K_FAR 1

_Static_assert(KERNEL_BLOCK % (K_NEAR * K_BYTES) == 0, "kernels have no tail");

#define K_WRITE(i) (s)
#define K_COPY(i)  (a[i])
#define K_SCALE(i) (s * a[i])
#define K_ADD(i)   (a[i] + b[i])
#define K_TRIAD(i) (a[i] + s * b[i])

#define K_REGULAR(p, v) (*(p) = (v))
#define K_NOTHING()     ((void)0)

#define K_STEP(vec, value, store, j)                                                               \
    {                                                                                              \
        vec v = value(i + j);                                                                      \
        K_KEEP(v);                                                                                 \
        store(dst + i + j, v);                                                                     \
    }

/* Every pass stores and loads anew: the compiler must take memory for changed. */
#define K_KERNEL(name, vec, elem, value, form, store, fence)                                       \
    K_TARGET static void name(struct kernel_args *k)                                               \
    {                                                                                              \
        const vec *a = k->a, *b = k->b;                                                            \
        vec *dst = k->dst, s = (vec){0} + (elem)k->scalar;                                         \
        size_t n = k->bytes / sizeof(vec);                                                         \
                                                                                                   \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        K_KEEP(s);                                                                                 \
        for (uint64_t pass = 0; pass < k->passes; pass++) {                                        \
            for (size_t i = 0; i < n; i += K_##form) {                                             \
                K_STEPS_##form(K_STEP, vec, value, store)                                          \
            }                                                                                      \
            fence();                                                                               \
            __asm__ volatile("" ::: "memory");                                                     \
        }                                                                                          \
    }

#define K_ALL_FORMS(op, type, elem, value)                                                         \
    K_KERNEL(op##_##type##_near, k_##type, elem, value, NEAR, K_REGULAR, K_NOTHING)                \
    K_KERNEL(op##_##type##_far, k_##type, elem, value, FAR, K_REGULAR, K_NOTHING)                  \
    K_NT_FORM(op##_##type##_nt, k_##type, elem, value)

#ifdef K_STREAM
#define K_NT_FORM(name, vec, elem, value) K_KERNEL(name, vec, elem, value, NEAR, K_STREAM, K_FENCE)
#define K_NT_NAME(name)                   name
#else
#define K_NT_FORM(name, vec, elem, value)
#define K_NT_NAME(name) NULL
#endif

#define K_BOTH_TYPES(op, value)                                                                    \
    K_ALL_FORMS(op, f32, float, value)                                                             \
    K_ALL_FORMS(op, f64, double, value)

K_BOTH_TYPES(write, K_WRITE)
K_BOTH_TYPES(copy, K_COPY)
K_BOTH_TYPES(scale, K_SCALE)
K_BOTH_TYPES(add, K_ADD)
K_BOTH_TYPES(triad, K_TRIAD)

/* Words are added as integers: exact in any order, so that every timed sample can be checked; the
 * same loads for both types. Several sums, since one would wait for itself. One form is as fast as
 * any at every size. */
#define K_SUM_0 s0
#define K_SUM_1 s1
#define K_SUM_2 s2
#define K_SUM_3 s3
#define K_SUM_4 s0
#define K_SUM_5 s1
#define K_SUM_6 s2
#define K_SUM_7 s3
#define K_READ_STEP(array, j)                                                                      \
    K_SUM_##j += array[i + j];                                                                     \
    K_KEEP(K_SUM_##j);

K_TARGET static void read_words(struct kernel_args *k)
{
    const k_u64 *a = k->a;
    k_u64 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    size_t n = k->bytes / sizeof(*a);

    for (uint64_t pass = 0; pass < k->passes; pass++) {
        for (size_t i = 0; i < n; i += K_NEAR) {
            K_STEPS_NEAR(K_READ_STEP, a)
        }
        __asm__ volatile("" ::: "memory");
    }
    s0 += s1 + s2 + s3;
    k->sum = 0;
    for (size_t lane = 0; lane < K_BYTES / sizeof(uint64_t); lane++)
        k->sum += s0[lane];
}

/* The same of several streams at once, which some memory controllers and prefetchers serve faster
 * than one: the parts of `a`, one behind the other. */
#define K_READ_STREAMS(name, count, steps)                                                         \
    K_TARGET static void name(struct kernel_args *k)                                               \
    {                                                                                              \
        k_u64 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};                                              \
        size_t n = k->bytes / (count) / KERNEL_BLOCK * (KERNEL_BLOCK / sizeof(k_u64));             \
        const k_u64 *a = k->a, *b = a + n, *c = b + n;                                             \
                                                                                                   \
        (void)c;                                                                                   \
        for (uint64_t pass = 0; pass < k->passes; pass++) {                                        \
            for (size_t i = 0; i < n; i += K_NEAR) {                                               \
                steps                                                                              \
            }                                                                                      \
            __asm__ volatile("" ::: "memory");                                                     \
        }                                                                                          \
        s0 += s1 + s2 + s3;                                                                        \
        k->sum = 0;                                                                                \
        for (size_t lane = 0; lane < K_BYTES / sizeof(uint64_t); lane++)                           \
            k->sum += s0[lane];                                                                    \
    }

K_READ_STREAMS(read_2_streams, 2, K_STEPS_NEAR(K_READ_STEP, a) K_STEPS_NEAR(K_READ_STEP, b))
K_READ_STREAMS(read_3_streams, 3,
               K_STEPS_NEAR(K_READ_STEP, a) K_STEPS_NEAR(K_READ_STEP, b)
                   K_STEPS_NEAR(K_READ_STEP, c))

static bool present(void)
{
    return K_PRESENT;
}

#define K_FORMS(name)                                                                              \
    {                                                                                              \
        [KERNEL_NEAR] = name##_near, [KERNEL_FAR] = name##_far, [KERNEL_NT] = K_NT_NAME(name##_nt) \
    }
#define K_ROW(op)                                                                                  \
    {                                                                                              \
        [KERNEL_F32] = K_FORMS(op##_f32), [KERNEL_F64] = K_FORMS(op##_f64)                         \
    }

const struct host_isa K_ISA = {
    .name = K_NAME,
    .present = present,
    .kernels = {[KERNEL_READ] = {{read_words, read_words}, {read_words, read_words}},
                [KERNEL_WRITE] = K_ROW(write),
                [KERNEL_COPY] = K_ROW(copy),
                [KERNEL_SCALE] = K_ROW(scale),
                [KERNEL_ADD] = K_ROW(add),
                [KERNEL_TRIAD] = K_ROW(triad)},
    .read_streams = {read_words, read_2_streams, read_3_streams},
};
