/* SPDX-License-Identifier: Apache-2.0 */
/* What arrays hold: see entries.h. */
#include "benches/memory/entries.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/rng.h"

#define ENTRIES_BLOCK 64u

/* A cache line as a vector, which the compiler cuts into whatever vectors the CPU has. */
typedef uint64_t words __attribute__((vector_size(ENTRIES_BLOCK), may_alias));
typedef double f64s __attribute__((vector_size(ENTRIES_BLOCK), may_alias));
typedef float f32s __attribute__((vector_size(ENTRIES_BLOCK), may_alias));

#define LANES       (ENTRIES_BLOCK / sizeof(uint64_t))
#define COUNT(type) (ENTRIES_BLOCK / ((type) == KERNEL_F32 ? sizeof(float) : sizeof(double)))
#define COUNT_MAX   (ENTRIES_BLOCK / sizeof(float))

/* Eight xorshift64 generators side by side (G. Marsaglia, "Xorshift RNGs", 2003): no
 * multiplication, which vector units lack for 64 bits, and one number does not wait
 * for its neighbour. */
struct stream {
    words state;
};

static void stream_open(struct stream *s, uint64_t seed)
{
    for (size_t lane = 0; lane < LANES; lane++)
        s->state[lane] = rng_splitmix64(&seed) | 1; /* zero would stay zero */
}

static inline void stream_step(struct stream *s)
{
    s->state ^= s->state << 13;
    s->state ^= s->state >> 7;
    s->state ^= s->state << 17;
}

/* Ten random bits as the upper ones of a mantissa whose exponent stands for 1024 are a number from
 * 1024 to 2047: no conversion, which vector units lack for 64 bits, too. */
static inline void next_f64(struct stream *s, f64s *entries)
{
    stream_step(s);
    *entries = (f64s)((s->state >> 12 & 0x000ffc0000000000u) | 0x4090000000000000u) - 1023.0;
}

static inline void next_f32(struct stream *s, f32s *entries)
{
    stream_step(s);
    *entries = (f32s)((s->state >> 9 & 0x007fe000007fe000u) | 0x4480000044800000u) - 1023.0f;
}

static uint64_t added(const words *sums)
{
    uint64_t sum = 0;

    for (size_t lane = 0; lane < LANES; lane++)
        sum += (*sums)[lane];
    return sum;
}

static uint64_t ored(const words *bits)
{
    uint64_t any = 0;

    for (size_t lane = 0; lane < LANES; lane++)
        any |= (*bits)[lane];
    return any;
}

void entries_fill_bits(void *at, size_t bytes, uint64_t seed)
{
    words *p = at, *end = p + bytes / sizeof(*p);
    struct stream s;

    for (stream_open(&s, seed); p < end; p++) {
        stream_step(&s);
        *p = s.state;
    }
}

/* dst = of_a a + of_b b + plus: one formula for every operation that stores. */
struct formula {
    double of_a, of_b, plus;
};

static struct formula formula_of(enum kernel_op op, double scalar)
{
    switch (op) {
    case KERNEL_WRITE:
        return (struct formula){.plus = scalar};
    case KERNEL_COPY:
        return (struct formula){.of_a = 1};
    case KERNEL_SCALE:
        return (struct formula){.of_a = scalar};
    case KERNEL_ADD:
        return (struct formula){.of_a = 1, .of_b = 1};
    default:
        return (struct formula){.of_a = 1, .of_b = scalar};
    }
}

/* Written once for both types.
 *
 * differ_*: the bits in which anything differs from what it must be; no entry is 0 or negative, so
 * equal values have equal bits. An array that the operation has not got is NULL; as a source it
 * takes part as random numbers times 0. */
#define OF_TYPE(type, vec, elem)                                                                   \
    static uint64_t fill_##type(vec *p, size_t blocks, uint64_t seed)                              \
    {                                                                                              \
        words sums = {0};                                                                          \
        struct stream s;                                                                           \
        vec v;                                                                                     \
                                                                                                   \
        stream_open(&s, seed);                                                                     \
        for (size_t i = 0; i < blocks; i++) {                                                      \
            next_##type(&s, &v);                                                                   \
            sums += (words)v;                                                                      \
            p[i] = v;                                                                              \
        }                                                                                          \
        return added(&sums);                                                                       \
    }                                                                                              \
                                                                                                   \
    static uint64_t differ_##type(const struct formula *f, const struct kernel_args *args,         \
                                  uint64_t seed_a, uint64_t seed_b)                                \
    {                                                                                              \
        const vec *dst = args->dst, *a = args->a, *b = args->b;                                    \
        vec of_a = (vec){0} + (elem)f->of_a, of_b = (vec){0} + (elem)f->of_b,                      \
            plus = (vec){0} + (elem)f->plus, v, w;                                                 \
        struct stream sa, sb;                                                                      \
        words bits = {0};                                                                          \
                                                                                                   \
        stream_open(&sa, seed_a);                                                                  \
        stream_open(&sb, seed_b);                                                                  \
        for (size_t i = 0; i < args->bytes / sizeof(vec); i++) {                                   \
            next_##type(&sa, &v);                                                                  \
            next_##type(&sb, &w);                                                                  \
            bits |= (words)dst[i] ^ (words)(of_a * v + of_b * w + plus);                           \
            if (a)                                                                                 \
                bits |= (words)a[i] ^ (words)v;                                                    \
            if (b)                                                                                 \
                bits |= (words)b[i] ^ (words)w;                                                    \
        }                                                                                          \
        return ored(&bits);                                                                        \
    }

OF_TYPE(f32, f32s, float)
OF_TYPE(f64, f64s, double)

uint64_t entries_fill(void *at, size_t bytes, enum kernel_type type, uint64_t seed)
{
    return type == KERNEL_F32 ? fill_f32(at, bytes / ENTRIES_BLOCK, seed)
                              : fill_f64(at, bytes / ENTRIES_BLOCK, seed);
}

static double entry(const void *at, enum kernel_type type, size_t i)
{
    return type == KERNEL_F32 ? (double)((const float *)at)[i] : ((const double *)at)[i];
}

/* `want` of the entries of the next block. */
static void next_block(struct stream *s, enum kernel_type type, double *want)
{
    union {
        f32s f32;
        f64s f64;
    } made;

    if (type == KERNEL_F32)
        next_f32(s, &made.f32);
    else
        next_f64(s, &made.f64);
    for (size_t i = 0; i < COUNT(type); i++)
        want[i] = entry(&made, type, i);
}

/* Is there an entry, of those of a block that start with number `first`, that is not as wanted? */
static bool find(const void *at, enum kernel_type type, size_t first, const double *want,
                 struct entries_wrong *wrong)
{
    for (size_t i = 0; at && i < COUNT(type); i++) {
        wrong->entry = first + i;
        wrong->got = entry(at, type, wrong->entry);
        wrong->want = want[i];
        if (wrong->got != wrong->want)
            return true;
    }
    return false;
}

/* Which one it is, when it is known that there is one. In double, which holds
 * every value exactly. */
static void find_first(const struct formula *f, enum kernel_type type,
                       const struct kernel_args *args, uint64_t seed_a, uint64_t seed_b,
                       struct entries_wrong *wrong)
{
    double dst[COUNT_MAX], a[COUNT_MAX], b[COUNT_MAX];
    size_t n = COUNT(type);
    struct stream sa, sb;

    stream_open(&sa, seed_a);
    stream_open(&sb, seed_b);
    for (size_t first = 0; first < args->bytes / ENTRIES_BLOCK * n; first += n) {
        next_block(&sa, type, a);
        next_block(&sb, type, b);
        for (size_t i = 0; i < n; i++)
            dst[i] = f->of_a * a[i] + f->of_b * b[i] + f->plus;
        wrong->array = ENTRIES_A;
        if (find(args->a, type, first, a, wrong))
            return;
        wrong->array = ENTRIES_B;
        if (find(args->b, type, first, b, wrong))
            return;
        wrong->array = ENTRIES_DST;
        if (find(args->dst, type, first, dst, wrong))
            return;
    }
    wrong->array = ENTRIES_GONE;
}

int entries_check(enum kernel_op op, enum kernel_type type, const struct kernel_args *args,
                  uint64_t seed_a, uint64_t seed_b, struct entries_wrong *wrong)
{
    const struct formula f = formula_of(op, args->scalar);
    uint64_t bits = type == KERNEL_F32 ? differ_f32(&f, args, seed_a, seed_b)
                                       : differ_f64(&f, args, seed_a, seed_b);

    if (!bits)
        return 0;
    find_first(&f, type, args, seed_a, seed_b, wrong);
    return -EBADMSG;
}
