/* SPDX-License-Identifier: Apache-2.0 */
/* What arrays hold: the numbers that are made, and that the check finds any one that is not right. */
#include "benches/memory/arrays.h"
#include "tests/unit/unit.h"

#define BYTES (3 * KERNEL_BLOCK)

static _Alignas(64) char dst[BYTES], a[BYTES], b[BYTES];

static size_t size_of(int type)
{
    return type == KERNEL_F32 ? sizeof(float) : sizeof(double);
}

static double get(const char *at, int type, size_t i)
{
    return type == KERNEL_F32 ? (double)((const float *)at)[i] : ((const double *)at)[i];
}

static void put(char *at, int type, size_t i, double value)
{
    if (type == KERNEL_F32)
        ((float *)at)[i] = (float)value;
    else
        ((double *)at)[i] = value;
}

/* Whole numbers from 1 to 1024, each about as often as any other. */
TEST(test_values)
{
    enum { ALL = 1 << 20 };
    static _Alignas(64) char many[ALL * sizeof(double)];
    static unsigned times[1025];

    for (int type = 0; type < KERNEL_TYPES; type++) {
        uint64_t made = entries_fill(many, ALL * size_of(type), (enum kernel_type)type, 7), sum = 0;
        for (size_t i = 0; i < ALL * size_of(type) / sizeof(sum); i++)
            sum += ((uint64_t *)(void *)many)[i];
        assert_true(made == sum);
        memset(times, 0, sizeof(times));
        for (size_t i = 0; i < ALL; i++) {
            double value = get(many, type, i);
            assert_true(value >= 1 && value <= 1024 && value == (double)(int)value);
            times[(int)value]++;
        }
        for (int value = 1; value <= 1024; value++)
            assert_in_range(times[value], 1024 - 200, 1024 + 200); /* 6 standard deviations */
    }
}

/* The same seed gives the same numbers, another one others, also at other places nearby. */
TEST(test_seeds)
{
    size_t n = BYTES / sizeof(double);

    entries_fill(a, BYTES, KERNEL_F64, 7);
    entries_fill(b, BYTES, KERNEL_F64, 7);
    assert_memory_equal(a, b, BYTES);
    entries_fill(b, BYTES, KERNEL_F64, 8);
    for (size_t shift = 0; shift < 16; shift++) {
        unsigned same = 0;
        for (size_t i = 0; i + shift < n; i++)
            same += get(a, KERNEL_F64, i + shift) == get(b, KERNEL_F64, i) ? 1 : 0;
        assert_in_range(same, 0, 5); /* 0.1 is what chance gives */
    }
    entries_fill_bits(a, BYTES, 7);
    entries_fill_bits(b, BYTES, 7);
    assert_memory_equal(a, b, BYTES);
    for (size_t i = 1; i < BYTES / sizeof(uint64_t); i++)
        assert_true(((uint64_t *)a)[i] != ((uint64_t *)a)[i - 1]);
}

/* What the operation means, apart from how the check works it out. */
static double result(int op, double x, double y, double s)
{
    const double results[] = {[KERNEL_WRITE] = s,
                              [KERNEL_COPY] = x,
                              [KERNEL_SCALE] = s * x,
                              [KERNEL_ADD] = x + y,
                              [KERNEL_TRIAD] = x + s * y};

    return results[op];
}

static struct kernel_args compute(int op, int type)
{
    unsigned arrays = kernel_arrays((enum kernel_op)op);
    struct kernel_args args = {.dst = dst,
                               .a = arrays > 1 ? a : NULL,
                               .b = arrays > 2 ? b : NULL,
                               .bytes = BYTES,
                               .scalar = 5};

    entries_fill(a, BYTES, (enum kernel_type)type, 1);
    entries_fill(b, BYTES, (enum kernel_type)type, 2);
    for (size_t i = 0; i < BYTES / size_of(type); i++)
        put(dst, type, i, result(op, get(a, type, i), get(b, type, i), args.scalar));
    return args;
}

/* Every bit of an array, one after the other. */
static void spoil_each(int op, int type, const struct kernel_args *args, char *at, int array)
{
    struct entries_wrong w;

    for (size_t bit = 0; bit < BYTES * 8; bit++) {
        at[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_equal(entries_check((enum kernel_op)op, (enum kernel_type)type, args, 1, 2, &w),
                         -EBADMSG);
        assert_int_equal(w.array, array);
        assert_int_equal(w.entry, bit / 8 / size_of(type));
        assert_true(w.got != w.want);
        at[bit / 8] ^= (char)(1 << bit % 8);
        assert_true(w.want == get(at, type, w.entry));
    }
}

TEST(test_check_finds_every_bit)
{
    struct entries_wrong w;

    for (int op = KERNEL_WRITE; op < KERNEL_OPS; op++)
        for (int type = 0; type < KERNEL_TYPES; type++) {
            struct kernel_args args = compute(op, type);
            spoil_each(op, type, &args, dst, ENTRIES_DST);
            if (args.a)
                spoil_each(op, type, &args, a, ENTRIES_A);
            if (args.b)
                spoil_each(op, type, &args, b, ENTRIES_B);
            assert_int_equal(
                entries_check((enum kernel_op)op, (enum kernel_type)type, &args, 1, 2, &w), 0);
        }
}

/* Data of another seed, or the result of another scalar, is not taken for right. */
TEST(test_check_is_of_this_data)
{
    struct entries_wrong w;

    for (int type = 0; type < KERNEL_TYPES; type++) {
        struct kernel_args args = compute(KERNEL_TRIAD, type);
        enum kernel_type t = (enum kernel_type)type;
        assert_int_equal(entries_check(KERNEL_TRIAD, t, &args, 1, 2, &w), 0);
        assert_int_equal(entries_check(KERNEL_TRIAD, t, &args, 3, 2, &w), -EBADMSG);
        assert_int_equal(w.array, ENTRIES_A);
        assert_int_equal(entries_check(KERNEL_TRIAD, t, &args, 1, 3, &w), -EBADMSG);
        assert_int_equal(w.array, ENTRIES_B);
        args.scalar = 4;
        assert_int_equal(entries_check(KERNEL_TRIAD, t, &args, 1, 2, &w), -EBADMSG);
        assert_int_equal(w.array, ENTRIES_DST);
        assert_int_equal(w.entry, 0);
        memset(dst, 0xff, sizeof(dst)); /* not a number */
        assert_int_equal(entries_check(KERNEL_TRIAD, t, &args, 1, 2, &w), -EBADMSG);
    }
}
