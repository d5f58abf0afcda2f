/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the search for the fastest shape, on made-up rates and a made-up clock. */
#include "benches/gemm/library.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* --- the search ----------------------------------------------------------------------------- */

struct machine {
    double (*rate)(const struct gemm_shape *s);
    uint64_t clock_ns, try_ns;
    uint64_t most_bytes; /* bf16 operands: beyond, -ENOMEM; 0: no bound */
    double creep;        /* each try is so much faster than the one before */
    int fail_at, tries;
    struct gemm_shape seen[1024];
};

static int rate_of(void *arg, const struct gemm_shape *s, double *rate)
{
    struct machine *m = arg;
    uint64_t bytes = 2 * (s->m * s->k + s->k * s->n + s->m * s->n);

    for (int i = 0; i < m->tries; i++)
        assert_memory_not_equal(&m->seen[i], s, sizeof(*s)); /* never twice */
    m->seen[m->tries++] = *s;
    m->clock_ns += m->try_ns;
    if (m->fail_at && m->tries == m->fail_at)
        return -EIO;
    if (m->most_bytes && bytes > m->most_bytes)
        return -ENOMEM;
    *rate = m->rate(s) * (1 + m->creep * m->tries);
    return 0;
}

static uint64_t machine_now(void *arg)
{
    return ((struct machine *)arg)->clock_ns;
}

static struct gemm_search_result run(struct machine *m, uint64_t budget_ns, unsigned units)
{
    const struct gemm_search config = {.rate = rate_of,
                                       .now_ns = machine_now,
                                       .arg = m,
                                       .budget_ns = budget_ns,
                                       .longest = 32768,
                                       .units = units};
    struct gemm_search_result result;

    assert_int_equal(gemm_search_run(&config, &result), 0);
    return result;
}

static bool was_tried(const struct machine *m, uint64_t m_of, uint64_t n_of, uint64_t k)
{
    for (int i = 0; i < m->tries; i++)
        if (m->seen[i].m % m_of == 0 && m->seen[i].n % n_of == 0 && m->seen[i].k == k)
            return true;
    return false;
}

static double bump(double x, double at, double width)
{
    double d = (log2(x) - log2(at)) / width;

    return 1 / (1 + d * d);
}

/* A hill: best at 6144 x 9216 x 4096. */
static double hill(const struct gemm_shape *s)
{
    return 800e3 * bump((double)s->m, 6144, 2) * bump((double)s->n, 9216, 2) *
           bump((double)s->k, 4096, 2);
}

/* 132 units that do a tile of 128 x 256 each: what the last round leaves idle is lost. */
static double tiles(const struct gemm_shape *s)
{
    double blocks = ceil((double)s->m / 128) * ceil((double)s->n / 256);
    double rounds = ceil(blocks / 132);

    return 900e3 * blocks / (rounds * 132) * (double)s->k / ((double)s->k + 300);
}

static double flat(const struct gemm_shape *s)
{
    return 100e3 * (1 + 1e-4 * bump((double)s->m * (double)s->n, 4096.0 * 4096, 1));
}

static double small(const struct gemm_shape *s)
{
    return 100e3 * bump((double)s->m * (double)s->n * (double)s->k, 1, 10);
}

/* Powers of two alone are fast, and the faster the wider: steps lead nowhere. */
static double powers(const struct gemm_shape *s)
{
    bool all = !(s->m & (s->m - 1)) && !(s->n & (s->n - 1)) && !(s->k & (s->k - 1));

    return all ? 100e3 * (20 + log2((double)s->n / (double)s->m)) : 1;
}

static double slow(const struct gemm_shape *s)
{
    return 5 * bump((double)s->m * (double)s->n * (double)s->k, 1e12, 40); /* larger is better */
}

static void the_hill_is_climbed(void **state)
{
    struct machine m = {.rate = hill, .try_ns = 1000000};

    (void)state;
    struct gemm_search_result r = run(&m, 60000000000, 0);
    assert_true(r.operations_per_ns > 0.99 * 800e3);
    assert_true(r.operations_per_ns == hill(&r.best));
    assert_int_equal(r.tried, m.tries);
    assert_true(r.tried < 120);
}

static void tiles_that_fit_the_units_are_found(void **state)
{
    struct machine m = {.rate = tiles, .try_ns = 1000000};

    (void)state;
    struct gemm_search_result r = run(&m, 60000000000, 132);
    double share = r.operations_per_ns / 900e3;
    assert_true(share > 0.97); /* squares of powers of two reach 0.95 at most */
    double blocks = ceil((double)r.best.m / 128) * ceil((double)r.best.n / 256);
    assert_true(blocks / (ceil(blocks / 132) * 132) > 0.98);
    assert_true(was_tried(&m, 128 * 11, 256 * 12, 16384)); /* 132 = 11 x 12, from 16384^3 */
    assert_true(was_tried(&m, 128 * 12, 256 * 11, 16384));
}

static void sides_are_doubled_and_halved(void **state)
{
    struct machine m = {.rate = powers, .try_ns = 1000000};

    (void)state;
    struct gemm_search_result r = run(&m, 60000000000, 0);
    assert_true(r.best.n >= 64 * r.best.m);
}

static void it_stops_where_nothing_is_gained(void **state)
{
    struct machine m = {.rate = flat, .try_ns = 1000000};
    char text[200];

    (void)state;
    struct gemm_search_result r = run(&m, 60000000000, 0);
    assert_int_equal(r.stop, SEARCH_NO_GAIN);
    assert_int_equal(r.tried, 1 + GEMM_SEARCH_PATIENCE);
    assert_non_null(strstr(gemm_search_text(&r, text, sizeof(text)),
                           "the best of 25 shapes in 0.025 s; no gain over 0.5 % in the "
                           "last 24"));
}

/* 24 tries of 0.01 % make no gain; 0.1 % each make one every sixth time. */
static void small_steps_count_together(void **state)
{
    struct machine crawl = {.rate = flat, .try_ns = 1000000, .creep = 0.0001};
    struct machine walk = {.rate = flat, .try_ns = 1000000, .creep = 0.001};

    (void)state;
    struct gemm_search_result r = run(&crawl, 60000000000, 0);
    assert_int_equal(r.stop, SEARCH_NO_GAIN);
    assert_int_equal(r.tried, 1 + GEMM_SEARCH_PATIENCE);
    r = run(&walk, 60000000000, 0);
    assert_true(r.tried > 100);
}

static void it_stops_when_its_time_is_over(void **state)
{
    struct machine m = {.rate = hill, .try_ns = 100000000};
    char text[200];

    (void)state;
    struct gemm_search_result r = run(&m, 850000000, 0);
    assert_int_equal(r.stop, SEARCH_TIME);
    assert_int_equal(r.tried, 9); /* the last one begins at 800 ms */
    assert_int_equal(r.elapsed_ns, 900000000);
    assert_non_null(strstr(gemm_search_text(&r, text, sizeof(text)), "its time was used up"));
}

/* 5 operations a ns: 1024^3 takes 0.4 s, 2048^3 3.4 s, eight times over. */
static void a_slow_machine_is_not_kept_busy_by_one_shape(void **state)
{
    struct machine m = {.rate = slow, .try_ns = 1000000};

    (void)state;
    struct gemm_search_result r = run(&m, 60000000000, 0);
    assert_true(r.too_long >= 1);
    for (int i = 0; i < m.tries; i++)
        assert_true(gemm_operations(&m.seen[i]) * 8 / 4.9 < 60e9 / 8 || !i);
    assert_true(r.best.m > 0);
}

static void what_does_not_fit_is_passed_over(void **state)
{
    struct machine m = {.rate = hill, .try_ns = 1000000, .most_bytes = 60000000};
    struct machine none = {.rate = hill, .try_ns = 1000000, .most_bytes = 1};
    char text[200];

    (void)state;
    struct gemm_search_result r = run(&m, 60000000000, 0);
    assert_true(r.refused > 0);
    assert_true(2 * (r.best.m * r.best.k + r.best.k * r.best.n + r.best.m * r.best.n) <= 60000000);
    assert_int_equal(r.tried + r.refused, m.tries);
    assert_non_null(strstr(gemm_search_text(&r, text, sizeof(text)), "not possible"));
    r = run(&none, 60000000000, 0);
    assert_int_equal(r.best.m, 0);
    assert_int_equal(r.refused, 6);
}

static void an_error_ends_it(void **state)
{
    struct machine m = {.rate = hill, .try_ns = 1000000, .fail_at = 7};
    const struct gemm_search config = {.rate = rate_of,
                                       .now_ns = machine_now,
                                       .arg = &m,
                                       .budget_ns = 60000000000,
                                       .longest = 32768};
    struct gemm_search_result result;

    (void)state;
    assert_int_equal(gemm_search_run(&config, &result), -EIO);
    assert_int_equal(m.tries, 7);
}

static void the_same_times_give_the_same_search(void **state)
{
    struct machine a = {.rate = tiles, .try_ns = 1000000}, b = a;

    (void)state;
    struct gemm_search_result x = run(&a, 60000000000, 132), y = run(&b, 60000000000, 132);
    assert_memory_equal(&x, &y, sizeof(x));
    assert_int_equal(a.tries, b.tries);
    assert_memory_equal(a.seen, b.seen, sizeof(a.seen));
}

static void sides_stay_within_bounds(void **state)
{
    struct machine up = {.rate = slow, .try_ns = 1}, down = {.rate = small, .try_ns = 1};

    (void)state;
    run(&up, UINT64_C(1) << 62, 132);
    for (int i = 0; i < up.tries; i++) {
        const struct gemm_shape *s = &up.seen[i];
        assert_true(s->m >= 256 && s->n >= 256 && s->k >= 256);
        assert_true(s->m <= 32768 && s->n <= 32768 && s->k <= 32768);
        assert_true(s->m % 128 == 0 && s->n % 128 == 0 && s->k % 128 == 0);
    }
    struct gemm_search_result r = run(&down, UINT64_C(1) << 62, 0);
    assert_int_equal(r.best.m, 256);
    assert_int_equal(r.best.n, 256);
    assert_int_equal(r.best.k, 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hill_is_climbed),
        cmocka_unit_test(tiles_that_fit_the_units_are_found),
        cmocka_unit_test(sides_are_doubled_and_halved),
        cmocka_unit_test(it_stops_where_nothing_is_gained),
        cmocka_unit_test(small_steps_count_together),
        cmocka_unit_test(it_stops_when_its_time_is_over),
        cmocka_unit_test(a_slow_machine_is_not_kept_busy_by_one_shape),
        cmocka_unit_test(what_does_not_fit_is_passed_over),
        cmocka_unit_test(an_error_ends_it),
        cmocka_unit_test(the_same_times_give_the_same_search),
        cmocka_unit_test(sides_stay_within_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
