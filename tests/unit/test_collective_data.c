/* SPDX-License-Identifier: Apache-2.0 */
/* Data of collectives: sums are exact whatever their order, every wrong element is found, and all vector units add the same. */
#include "core/alloc.h"
#include "core/collective/data.h"
#include "core/rng.h"
#include "tests/unit/unit.h"

static const double exact[COLLECTIVE_TYPES] = {
    [COLLECTIVE_F32] = 16777216,         [COLLECTIVE_F16] = 2048,       [COLLECTIVE_BF16] = 256,
    [COLLECTIVE_F64] = 9007199254740992, [COLLECTIVE_I32] = 2147483647, [COLLECTIVE_I8] = 127,
    [COLLECTIVE_I64] = 9007199254740992, [COLLECTIVE_E4M3] = 16,        [COLLECTIVE_E5M2] = 8};

static bool is_whole(enum collective_type type)
{
    return type == COLLECTIVE_I32 || type == COLLECTIVE_I8 || type == COLLECTIVE_I64;
}

/* Half-precision numbers by their definition, from doubles. */
static double half_value(unsigned bits, unsigned exponent_bits, unsigned fraction_bits)
{
    unsigned fraction = bits & ((1u << fraction_bits) - 1);
    int exponent = (int)(bits >> fraction_bits & ((1u << exponent_bits) - 1));
    int bias = (1 << (exponent_bits - 1)) - 1;
    double sign = bits >> (exponent_bits + fraction_bits) ? -1 : 1;

    if (exponent == (1 << exponent_bits) - 1)
        return fraction ? NAN : sign * INFINITY;
    if (!exponent)
        return sign * ldexp(fraction, 1 - bias - (int)fraction_bits);
    return sign * ldexp(1 + ldexp(fraction, -(int)fraction_bits), exponent - bias);
}

/* Each number by its definition; halfway between two neighbours goes to the even one, a little more or less to the nearer. */
TEST(half_precision_is_by_definition)
{
    static const struct {
        unsigned exponent_bits, fraction_bits;
        unsigned least; /* where middles are floats */
        float (*get)(uint16_t);
        uint16_t (*put)(float);
    } kinds[] = {{5, 10, 0, reduce_float_of_f16, reduce_f16_of_float},
                 {8, 7, 0x80, reduce_float_of_bf16, reduce_bf16_of_float}};

    for (int k = 0; k < 2; k++) {
        unsigned e = kinds[k].exponent_bits, f = kinds[k].fraction_bits;
        unsigned top = ((1u << e) - 1) << f;
        for (unsigned bits = 0; bits < 65536; bits++) {
            double x = half_value(bits, e, f);
            if (isnan(x))
                continue;
            assert_true(kinds[k].get((uint16_t)bits) == x);
            assert_int_equal(kinds[k].put((float)x), bits);
            if (bits < kinds[k].least || bits + 1 >= top)
                continue;
            float middle = (float)((x + half_value(bits + 1, e, f)) / 2);
            assert_int_equal(kinds[k].put(middle), bits + (bits & 1));
            assert_int_equal(kinds[k].put(nextafterf(middle, 0)), bits);
            assert_int_equal(kinds[k].put(nextafterf(middle, INFINITY)), bits + 1);
        }
    }
    assert_int_equal(reduce_f16_of_float(65519), 0x7bff);
    assert_int_equal(reduce_f16_of_float(65520), 0x7c00);
}

/* fp8 by the tables of its definition: e4m3 has 448 as its largest and one NaN, e5m2 is half precision cut short. */
TEST(fp8_is_by_definition)
{
    double one[1];

    for (unsigned bits = 0; bits < 256; bits++) {
        uint8_t code = (uint8_t)bits;
        double x = half_value(bits << 8, 5, 10), y = half_value(bits, 4, 3);
        if (!isnan(x) && !isinf(x)) {
            assert_true(data_get(COLLECTIVE_E5M2, &code, 0) == x);
            data_put(COLLECTIVE_E5M2, one, 0, x);
            assert_memory_equal(one, &code, 1);
        }
        if ((bits & 0x78) == 0x78) /* no infinity: numbers go on */
            y = (bits & 0x80 ? -1 : 1) * ldexp(8 + (bits & 7), 5);
        if ((bits & 0x7f) == 0x7f)
            continue;
        assert_true(data_get(COLLECTIVE_E4M3, &code, 0) == y);
        data_put(COLLECTIVE_E4M3, one, 0, y);
        assert_memory_equal(one, &code, 1);
    }
    static const struct {
        double value, e4m3, e5m2;
    } cases[] = {{17, 16, 16},
                 {18, 18, 16},
                 {19, 20, 20},
                 {500, 448, 512},
                 {1e9, 448, 57344},
                 {-9, -9, -8},
                 {0.0009, 0, 0.0008544921875},
                 {3.25, 3.25, 3},
                 {3.75, 3.75, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        data_put(COLLECTIVE_E4M3, one, 0, cases[i].value);
        assert_true(data_get(COLLECTIVE_E4M3, one, 0) == cases[i].e4m3);
        data_put(COLLECTIVE_E5M2, one, 0, cases[i].value);
        assert_true(data_get(COLLECTIVE_E5M2, one, 0) == cases[i].e5m2);
    }
}

/* A whole number of a type's width, and back: what does not fit wraps. */
static int64_t whole_at(enum collective_type type, const void *at)
{
    int64_t x = 0;

    memcpy(&x, at, collective_type_bytes(type)); /* the lowest bytes come first here */
    unsigned beyond = 64 - 8 * (unsigned)collective_type_bytes(type);
    return (int64_t)((uint64_t)x << beyond) >> beyond;
}

static void combine_whole(enum collective_type type, enum collective_sum sum, void *to,
                          const void *with)
{
    int64_t a = whole_at(type, to), b = whole_at(type, with);
    int64_t x = sum == COLLECTIVE_MAX    ? (a < b ? b : a)
                : sum == COLLECTIVE_MIN  ? (a < b ? a : b)
                : sum == COLLECTIVE_PROD ? (int64_t)((uint64_t)a * (uint64_t)b)
                                         : (int64_t)((uint64_t)a + (uint64_t)b);

    memcpy(to, &x, collective_type_bytes(type));
}

static double combine_real(enum collective_type type, enum collective_sum sum, double a, double b)
{
    bool wide = type == COLLECTIVE_F64;

    return sum == COLLECTIVE_MAX    ? (a < b ? b : a)
           : sum == COLLECTIVE_MIN  ? (a < b ? a : b)
           : sum == COLLECTIVE_PROD ? (wide ? a * b : (double)((float)a * (float)b))
                                    : (wide ? a + b : (double)((float)a + (float)b));
}

/* to = to (+) with, one element, rounded to the type. */
static void combine(enum collective_type type, enum collective_sum sum, void *to, const void *with)
{
    if (is_whole(type))
        combine_whole(type, sum, to, with);
    else
        data_put(type, to, 0,
                 combine_real(type, sum, data_get(type, to, 0), data_get(type, with, 0)));
}

static void fill_any(enum collective_type type, char *at, size_t n, struct rng *rng)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = rng_u64(rng);
        if (is_whole(type))
            memcpy(at + i * collective_type_bytes(type), &bits, collective_type_bytes(type));
        else
            data_put(type, at, i, ldexp((rng_double(rng) - 0.4) * 60000, -(int)rng_below(rng, 30)));
    }
}

/* Any number of elements, at any place, into a third vector or one of the two; nothing is written beside. */
static void one_loop(const struct reduce_isa *isa, enum collective_type type,
                     enum collective_sum sum, struct rng *rng)
{
    size_t size = collective_type_bytes(type), n = rng_below(rng, 200), room = (n + 64) * size;
    unsigned into = (unsigned)rng_below(rng, 3);
    char *memory[3], *at[3];

    for (int k = 0; k < 3; k++) {
        memory[k] = xrealloc(NULL, room);
        memset(memory[k], 0x77, room);
        at[k] = memory[k] + rng_below(rng, 32) * size;
        fill_any(type, at[k], n, rng);
    }
    char *before[3];
    for (int k = 0; k < 3; k++)
        before[k] = memcpy(xrealloc(NULL, room), memory[k], room);
    isa->reduce[type][sum](at[into], at[0], at[1], n);
    for (size_t i = 0; i < n; i++) {
        const char *a = before[0] + (at[0] - memory[0]) + i * size;
        const char *b = before[1] + (at[1] - memory[1]) + i * size;
        char one[8] = {0};
        memcpy(one, a, size);
        combine(type, sum, one, b);
        if (memcmp(one, at[into] + i * size, size))
            fail_msg("%s, %s, %s: %g and %g make %g", isa->name, collective_type_names[type],
                     collective_sum_names[sum], data_get(type, a, 0), data_get(type, b, 0),
                     data_get(type, at[into], i));
    }
    memcpy(before[into] + (at[into] - memory[into]), at[into], n * size);
    for (int k = 0; k < 3; k++) {
        assert_memory_equal(before[k], memory[k], room);
        free(before[k]);
        free(memory[k]);
    }
}

TEST(all_vector_units_add_the_same)
{
    struct rng rng;
    unsigned units = 0;

    rng_seed(&rng, 5);
    for (size_t i = 0; reduce_isas[i]; i++)
        for (int type = 0; type < COLLECTIVE_TYPES && reduce_isas[i]->present(); type++)
            for (int k = 0; k < 100; k++, units++) {
                enum collective_sum sum = (enum collective_sum)(k % COLLECTIVE_SUMS);
                bool fp8 = type == COLLECTIVE_E4M3 || type == COLLECTIVE_E5M2;
                assert_true(!reduce_isas[i]->reduce[type][sum] == (fp8 || sum == COLLECTIVE_AVG));
                if (reduce_isas[i]->reduce[type][sum])
                    one_loop(reduce_isas[i], (enum collective_type)type, sum, &rng);
            }
    assert_true(units);
}

static struct collective_point point(uint32_t op, uint32_t type, uint32_t sum, uint64_t count)
{
    return (struct collective_point){.op = op, .type = type, .sum = sum, .count = count, .seed = 9};
}

/* Partial sums of whole numbers up to a limit are exact when the whole sum is. */
TEST(sums_stay_exact_for_any_number_of_members)
{
    static const unsigned numbers[] = {1, 3, 16, 257, 1024};
    double *x = xrealloc(NULL, DATA_PERIOD * 8);

    for (uint32_t type = 0; type < COLLECTIVE_TYPES; type++)
        for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers); k++) {
            struct collective_point p = point(COLLECTIVE_ALLREDUCE, type, COLLECTIVE_SUM, 300);
            double sums[300] = {0}, largest = 0, most = 0;
            for (unsigned m = 0; m < numbers[k]; m++) {
                data_fill(x, 300, 0, &p, numbers[k], m);
                for (unsigned i = 0; i < 300; i++) {
                    double v = data_get((enum collective_type)type, x, i);
                    assert_true(v >= 0 && v == trunc(v));
                    sums[i] += v;
                    most = v > most ? v : most;
                }
            }
            for (unsigned i = 0; i < 300; i++)
                largest = sums[i] > largest ? sums[i] : largest;
            assert_true(largest <= exact[type]);
            assert_true(most >= (exact[type] < 20 ? 3 : 5)); /* and yet they tell members apart */
        }
    free(x);
}

/* The mean of floating-point numbers: multiplied by 1/n in the type before, as NCCL does it, or the exact sum divided at the end. */
static void average(enum collective_type type, void *to, const char *const inputs[], unsigned n,
                    uint64_t i, bool before)
{
    double scale[1], one[1], sum = 0;

    data_put(type, scale, 0, 1.0 / n);
    data_put(type, to, 0, 0);
    for (unsigned k = 0; k < n; k++) {
        double x = data_get(type, inputs[k], i);
        sum += x;
        data_put(type, one, 0, x * data_get(type, scale, 0));
        combine(type, COLLECTIVE_SUM, to, one);
    }
    if (!before)
        data_put(type, to, 0, sum / n);
}

/* Element i of all inputs but that of `without`, beginning with any of them. */
static void reduce_one(const struct collective_point *p, void *to, const char *const inputs[],
                       unsigned n, uint64_t i, unsigned without)
{
    enum collective_type type = (enum collective_type)p->type;
    size_t size = collective_type_bytes(type);
    unsigned first = (unsigned)(i % n);
    bool any = false;

    if (p->sum == COLLECTIVE_AVG && !is_whole(type)) {
        average(type, to, inputs, n, i, i % 2);
        return;
    }
    for (unsigned k = 0; k < n; k++) {
        unsigned m = (first + k) % n;
        if (m == without)
            continue;
        if (any)
            combine(type, p->sum, to, inputs[m] + i * size);
        else
            memcpy(to, inputs[m] + i * size, size);
        any = true;
    }
    if (p->sum == COLLECTIVE_AVG) {
        int64_t mean = whole_at(type, to) / (int64_t)n;
        memcpy(to, &mean, size);
    }
}

/* The result as it must be, made from the members' inputs one by one. */
static void make_result(void *to, const struct collective_point *p, unsigned n, unsigned m)
{
    uint64_t in = collective_input_count(p->op, p->count, n), block = p->count / n;
    uint64_t out = collective_result_count(p->op, p->count, n);
    size_t size = collective_type_bytes(p->type), bytes = block * size;
    char *inputs[64];

    memset(to, 0, out * size);
    for (unsigned k = 0; k < n; k++) {
        inputs[k] = xrealloc(NULL, in * size);
        data_fill(inputs[k], in, 0, p, n, k);
        if (p->op == COLLECTIVE_ALL_GATHER || p->op == COLLECTIVE_GATHER)
            memcpy((char *)to + k * bytes, inputs[k], bytes);
        else if (p->op == COLLECTIVE_ALL_TO_ALL)
            memcpy((char *)to + k * bytes, inputs[k] + m * bytes, bytes);
        else if (p->op == COLLECTIVE_SCATTER && k == p->root)
            memcpy(to, inputs[k] + m * bytes, bytes);
        else if (p->op != COLLECTIVE_SCATTER &&
                 k == (p->op == COLLECTIVE_BROADCAST ? p->root : (m + n - 1) % n))
            memcpy(to, inputs[k], out * size);
    }
    uint64_t first = p->op == COLLECTIVE_REDUCE_SCATTER ? m * block : 0;
    for (uint64_t i = 0; i < out && collective_reduces(p->op); i++)
        reduce_one(p, (char *)to + i * size, (const char *const *)inputs, n, first + i, UINT32_MAX);
    for (unsigned k = 0; k < n; k++)
        free(inputs[k]);
}

/* In pieces, since that is how they are read. */
static uint64_t look(const struct data_expected *x, const char *at, uint64_t n, size_t size,
                     double *got, double *wanted)
{
    for (uint64_t i = 0, run = 1; i < n; i += run, run = run * 5 % 7919) {
        run = run < n - i ? run : n - i;
        uint64_t wrong = data_check(x, at + i * size, run, i, got, wanted);
        if (wrong != DATA_RIGHT)
            return wrong;
    }
    return DATA_RIGHT;
}

TEST(every_wrong_element_is_found)
{
    struct rng rng;

    rng_seed(&rng, 3);
    for (uint32_t op = 0; op < COLLECTIVE_OPS; op++)
        for (uint32_t type = 0; type < COLLECTIVE_TYPES; type++)
            for (unsigned n = 1; n <= 5; n += 2) {
                uint32_t sum = (uint32_t)rng_below(&rng, COLLECTIVE_AVG);
                struct collective_point p = point(op, type, sum, 4200ull * n);
                uint64_t out = collective_result_count(op, p.count, n);
                size_t size = collective_type_bytes(type);
                char *result = xrealloc(NULL, out * size);
                struct data_expected *x;
                double got, wanted;
                unsigned m = (unsigned)rng_below(&rng, n);
                p.root = (uint32_t)rng_below(&rng, n);
                if (op == COLLECTIVE_REDUCE || op == COLLECTIVE_GATHER)
                    m = p.root; /* others have none */
                make_result(result, &p, n, m);
                x = data_expect(&p, p.count, n, m);
                assert_true(look(x, result, out, size, &got, &wanted) == DATA_RIGHT);
                for (int k = 0; k < 8; k++) {
                    uint64_t at = k < 2 ? k * (out - 1) : rng_below(&rng, out);
                    char *byte = result + at * size + rng_below(&rng, size);
                    *byte ^= 1;
                    assert_int_equal(look(x, result, out, size, &got, &wanted), at);
                    assert_true(got == data_get(type, result, at) || isnan(got));
                    assert_true(wanted != got || type == COLLECTIVE_I64 || wanted == 0);
                    *byte ^= 1;
                }
                data_expect_free(x);
                free(result);
            }
}

/* Is an element of the result without one of the members refused? */
static bool is_missed(const struct collective_point *p, const struct data_expected *x,
                      const char *const inputs[], unsigned n, unsigned without)
{
    double got, wanted;
    char one[8];

    for (uint64_t i = 0; i < p->count; i++) {
        reduce_one(p, one, inputs, n, i, without);
        if (data_check(x, one, 1, i, &got, &wanted) != DATA_RIGHT)
            return true;
    }
    return false;
}

/* Whatever is reduced, of whatever type: no member can be left out of it. */
TEST(each_member_counts)
{
    uint64_t count = DATA_PERIOD;
    char *result = xrealloc(NULL, count * 8), *inputs[11];

    for (uint32_t type = 0; type < COLLECTIVE_TYPES; type++)
        for (uint32_t sum = 0; sum < COLLECTIVE_SUMS; sum++)
            for (unsigned n = 2; n <= 11; n += 9) {
                struct collective_point p = point(COLLECTIVE_ALLREDUCE, type, sum, count);
                struct data_expected *x;
                double got, wanted;
                x = data_expect(&p, count, n, 0);
                make_result(result, &p, n, 0);
                if (data_check(x, result, count, 0, &got, &wanted) != DATA_RIGHT)
                    fail_msg("%s of %s, %u members: %.9g is refused, wanted %.9g",
                             collective_sum_names[sum], collective_type_names[type], n, got,
                             wanted);
                for (unsigned m = 0; m < n; m++) {
                    inputs[m] = xrealloc(NULL, count * 8);
                    data_fill(inputs[m], count, 0, &p, n, m);
                }
                for (unsigned m = 0; m < n && !(sum == COLLECTIVE_AVG && !is_whole(type)); m++)
                    assert_true(is_missed(&p, x, (const char *const *)inputs, n, m));
                for (unsigned m = 0; m < n; m++)
                    free(inputs[m]);
                data_expect_free(x);
            }
    free(result);
}

/* Of an average as many neighbours are right as roundings can reach; where n is a power of two none is but the one. */
TEST(an_average_is_no_wider_than_its_roundings)
{
    static const uint32_t types[] = {COLLECTIVE_F32, COLLECTIVE_F16,  COLLECTIVE_BF16,
                                     COLLECTIVE_F64, COLLECTIVE_E4M3, COLLECTIVE_E5M2};
    char *result = xrealloc(NULL, DATA_PERIOD * 8);

    for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++)
        for (unsigned n = 2; n <= 12; n += n < 5 ? 1 : 7) {
            struct collective_point p =
                point(COLLECTIVE_ALLREDUCE, types[t], COLLECTIVE_AVG, DATA_PERIOD);
            size_t size = collective_type_bytes(p.type);
            struct data_expected *x;
            double got, wanted;
            make_result(result, &p, n, 0);
            x = data_expect(&p, p.count, n, 0);
            for (uint64_t i = 0; i < 500; i++) {
                uint64_t bits = 0, right;
                memcpy(&right, result + i * size, size);
                memcpy(&bits, result + i * size, size);
                unsigned wide = 0;
                for (; wide < 10; wide++) {
                    bits++;
                    memcpy(result + i * size, &bits, size);
                    if (data_check(x, result + i * size, 1, i, &got, &wanted) != DATA_RIGHT)
                        break;
                }
                memcpy(result + i * size, &right, size);
                assert_true(wide <= ((n & (n - 1)) == 0 ? 0 : 4));
            }
            data_expect_free(x);
        }
    free(result);
}

/* A piece is what the whole has in its place; a corrupt one has one element that differs, another seed more. */
TEST(pieces_fit_together)
{
    enum { N = 20000 };
    static float whole[N], pieces[N];
    struct collective_point p = point(COLLECTIVE_ALLREDUCE, COLLECTIVE_F32, COLLECTIVE_SUM, N);

    p.inject = COLLECTIVE_CORRUPT;
    data_fill(whole, N, 0, &p, 3, 1);
    for (uint64_t i = 0; i < N; i += 777)
        data_fill(pieces + i, N - i < 777 ? N - i : 777, i, &p, 3, 1);
    assert_memory_equal(whole, pieces, sizeof(whole));
    p.inject = COLLECTIVE_SOUND;
    for (int k = 0; k < 2; k++) {
        unsigned other = 0;
        p.seed += k;
        data_fill(pieces, N, 0, &p, 3, 1);
        for (unsigned i = 0; i < N; i++)
            other += whole[i] != pieces[i];
        assert_true(k ? other > 1 : other == 1);
    }
}

TEST(factors_and_counts)
{
    static const struct {
        enum collective_op op;
        double factor;    /* of 4 members */
        uint64_t in, out; /* of 12 elements */
    } cases[] = {{COLLECTIVE_ALLREDUCE, 1.5, 12, 12},  {COLLECTIVE_ALL_TO_ALL, 0.75, 12, 12},
                 {COLLECTIVE_BROADCAST, 1, 12, 12},    {COLLECTIVE_REDUCE, 1, 12, 12},
                 {COLLECTIVE_GATHER, 0.75, 3, 12},     {COLLECTIVE_SCATTER, 0.75, 12, 3},
                 {COLLECTIVE_ALL_GATHER, 0.75, 3, 12}, {COLLECTIVE_REDUCE_SCATTER, 0.75, 12, 3}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_true(collective_bus_factor(cases[i].op, 4) == cases[i].factor);
        assert_true(collective_bus_factor(cases[i].op, 1) == 0);
        assert_int_equal(collective_input_count(cases[i].op, 12, 4), cases[i].in);
        assert_int_equal(collective_result_count(cases[i].op, 12, 4), cases[i].out);
    }
}
