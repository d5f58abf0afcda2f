// SPDX-License-Identifier: Apache-2.0
// The seeded generator: published reference outputs, and the laws of what is drawn from it.
#include "core/rng.h"
#include "tests/unit/unit.h"

TEST(test_splitmix64_reference)
{
    // Outputs of Vigna's splitmix64.c for the state 1234567.
    static const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u,
                                        9817491932198370423u, 4593380528125082431u,
                                        16408922859458223821u};
    uint64_t seed = 1234567;
    for (int i = 0; i < 5; i++)
        assert_int_equal(rng_splitmix64(&seed), expected[i]);
}

TEST(test_xoshiro_reference)
{
    // Outputs of Blackman and Vigna's xoshiro256starstar.c for the state 1, 2, 3, 4.
    static const uint64_t expected[] = {11520u,
                                        0u,
                                        1509978240u,
                                        1215971899390074240u,
                                        1216172134540287360u,
                                        607988272756665600u,
                                        16172922978634559625u,
                                        8476171486693032832u,
                                        10595114339597558777u,
                                        2904607092377533576u};
    struct rng r = {{1, 2, 3, 4}};
    for (int i = 0; i < 10; i++)
        assert_int_equal(rng_u64(&r), expected[i]);
    uint64_t seed = 1234567;
    rng_seed(&r, 1234567);
    for (int i = 0; i < 4; i++)
        assert_int_equal(r.s[i], rng_splitmix64(&seed));
}

TEST(test_double_is_in_the_half_open_unit_interval)
{
    struct rng r;
    double sum = 0, least = 1, most = 0;
    rng_seed(&r, 1);
    for (int i = 0; i < 20000; i++) {
        double u = rng_double(&r);

        sum += u;
        least = fmin(least, u);
        most = fmax(most, u);
    }
    assert_true(least >= 0 && least < 1e-3 && most < 1 && most > 1 - 1e-3);
    assert_float_equal(sum / 20000, 0.5, 5 * sqrt(1.0 / 12 / 20000));
    // All bits set draw the largest double below 1: the state is chosen so that the output is ~0.
    struct rng ones = {{0, 0, 0, 0}};

    // rotl(s1 * 5, 7) * 9 = 2^64 - 1, solved for s1 by the inverses of 9 and 5 modulo 2^64.
    uint64_t ninth = UINT64_MAX * 0x8e38e38e38e38e39u;
    ones.s[1] = ((ninth >> 7) | (ninth << 57)) * 0xcccccccccccccccdu;
    assert_true(rng_double(&ones) == 1 - 0x1p-53);
}

// The mean, the variance and the share within one deviation.
TEST(test_normal)
{
    struct rng r;
    const int n = 40000;
    double sum = 0, squares = 0;
    int within_one = 0;
    rng_seed(&r, 3);
    for (int i = 0; i < n; i++) {
        double z = rng_normal(&r);

        sum += z;
        squares += z * z;
        within_one += fabs(z) < 1;
    }
    assert_float_equal(sum / n, 0, 5 * sqrt(1.0 / n));
    assert_float_equal(squares / n, 1, 5 * sqrt(2.0 / n));
    assert_float_equal((double)within_one / n, 0.682689, 5 * sqrt(0.2166 / n));
}

TEST(test_below_is_unbiased)
{
    struct rng r;
    int counts[3] = {0};
    // Without rejection half of the numbers below 3 * 2^62 would be multiples of 3.
    const uint64_t large = 3ull << 62;
    int multiples = 0, count = 6000;
    rng_seed(&r, 2);
    for (int i = 0; i < count; i++) {
        uint64_t small = rng_below(&r, 3);

        assert_true(small < 3);
        counts[small]++;
        uint64_t v = rng_below(&r, large);

        assert_true(v < large);
        multiples += v % 3 == 0;
    }
    for (int i = 0; i < 3; i++)
        assert_float_equal(counts[i], count / 3.0, 5 * sqrt(count * 2 / 9.0));
    assert_float_equal(multiples, count / 3.0, 5 * sqrt(count * 2 / 9.0));
    assert_int_equal(rng_below(&r, 1), 0);
    assert_int_equal(rng_below(&r, 0), 0);
}

TEST(test_shuffle_reaches_every_order_equally)
{
    struct rng r;
    int counts[27] = {0};
    const int n = 6000;
    rng_seed(&r, 4);
    for (int i = 0; i < n; i++) {
        uint32_t a[3] = {0, 1, 2};

        rng_shuffle_u32(&r, a, 3);
        assert_int_equal(a[0] + a[1] + a[2], 3);
        counts[a[0] * 9 + a[1] * 3 + a[2]]++;
    }
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            if (a != b)
                assert_float_equal(counts[a * 9 + b * 3 + (3 - a - b)], n / 6.0,
                                   5 * sqrt(n * 5 / 36.0));
    rng_shuffle_u32(&r, NULL, 0);
}
