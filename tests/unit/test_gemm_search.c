/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the search for the fastest shape, on made-up rates and a made-up clock. */
#include "benches/gemm/library.h"
#include "tests/unit/unit.h"

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

static struct gemm_search_result result_of(struct machine *m, uint64_t budget_ns, unsigned units,
                                           int err)
{
    const struct gemm_search config = {.rate = rate_of,
                                       .now_ns = machine_now,
                                       .arg = m,
                                       .budget_ns = budget_ns,
                                       .longest = 32768,
                                       .units = units};
    struct gemm_search_result result;

    assert_int_equal(gemm_search_run(&config, &result), err);
    return result;
}

#define MINUTE 60000000000u

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

/* The share of 132 units that do a tile of 128 x 256 each: the last round leaves some idle. */
static double busy(const struct gemm_shape *s)
{
    double blocks = ceil((double)s->m / 128) * ceil((double)s->n / 256);

    return blocks / (ceil(blocks / 132) * 132);
}

static double tiles(const struct gemm_shape *s)
{
    return 900e3 * busy(s) * (double)s->k / ((double)s->k + 300);
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

/* On a hill, with units that want whole rounds of tiles, and where doubling alone helps; the same times
 * give the same search. */
TEST(the_best_is_found)
{
    struct machine on_hill = {.rate = hill, .try_ns = 1000000},
                   units = {.rate = tiles, .try_ns = 1000000}, again = units,
                   doubling = {.rate = powers, .try_ns = 1000000};

    struct gemm_search_result r = result_of(&on_hill, MINUTE, 0, 0);
    assert_true(r.operations_per_ns > 0.99 * 800e3 && r.operations_per_ns == hill(&r.best));
    assert_int_equal(r.tried, on_hill.tries);
    assert_true(r.tried < 120);
    r = result_of(&units, MINUTE, 132, 0);
    assert_true(r.operations_per_ns > 0.97 * 900e3); /* squares of powers of two reach 0.95 */
    assert_true(busy(&r.best) > 0.98);
    struct gemm_search_result same = result_of(&again, MINUTE, 132, 0);
    assert_memory_equal(&same, &r, sizeof(r));
    assert_memory_equal(again.seen, units.seen, sizeof(units.seen));
    r = result_of(&doubling, MINUTE, 0, 0);
    assert_true(r.best.n >= 64 * r.best.m);
}

/* Neither one shape that takes an eighth of the time, nor what does not fit, nor a side beyond the
 * bounds. */
TEST(what_is_not_tried)
{
    struct machine sluggish = {.rate = slow, .try_ns = 1000000},
                   tight = {.rate = hill, .try_ns = 1000000, .most_bytes = 60000000},
                   none = {.rate = hill, .try_ns = 1000000, .most_bytes = 1},
                   up = {.rate = slow, .try_ns = 1}, down = {.rate = small, .try_ns = 1};

    struct gemm_search_result r = result_of(&sluggish, MINUTE, 0, 0);
    assert_true(r.too_long >= 1 && r.best.m > 0);
    for (int i = 1; i < sluggish.tries; i++) /* eight times over, at 5 operations a ns */
        assert_true(gemm_operations(&sluggish.seen[i]) * 8 / 4.9 < 60e9 / 8);
    r = result_of(&tight, MINUTE, 0, 0);
    assert_true(r.refused > 0);
    assert_true(2 * (r.best.m * r.best.k + r.best.k * r.best.n + r.best.m * r.best.n) <= 60000000);
    assert_int_equal(r.tried + r.refused, tight.tries);
    r = result_of(&none, MINUTE, 0, 0);
    assert_int_equal(r.best.m, 0);
    assert_int_equal(r.refused, 6);
    result_of(&up, UINT64_C(1) << 62, 132, 0);
    for (int i = 0; i < up.tries; i++)
        for (int side = 0; side < 3; side++) {
            uint64_t of[] = {up.seen[i].m, up.seen[i].n, up.seen[i].k};
            assert_in_range(of[side], 256, 32768);
            assert_int_equal(of[side] % 128, 0);
        }
    r = result_of(&down, UINT64_C(1) << 62, 0, 0);
    assert_true(r.best.m == 256 && r.best.n == 256 && r.best.k == 256);
}

/* Where nothing is gained in 24 tries, together; when its time is over; at an error. */
TEST(it_stops)
{
    struct machine even = {.rate = flat, .try_ns = 1000000}, crawl = even, walk = even,
                   late = {.rate = hill, .try_ns = 100000000},
                   broken = {.rate = hill, .try_ns = 1000000, .fail_at = 7};
    char text[200];

    crawl.creep =
        0.0001; /* 24 tries of 0.01 % make no gain; 0.1 % each make one every sixth time */
    walk.creep = 0.001;
    struct gemm_search_result r = result_of(&even, MINUTE, 0, 0);
    assert_int_equal(r.stop, SEARCH_NO_GAIN);
    assert_int_equal(r.tried, 1 + GEMM_SEARCH_PATIENCE);
    assert_true(strstr(gemm_search_text(&r, text, sizeof(text)), "25") && strstr(text, "0.025 s"));
    r = result_of(&crawl, MINUTE, 0, 0);
    assert_int_equal(r.stop, SEARCH_NO_GAIN);
    assert_int_equal(r.tried, 1 + GEMM_SEARCH_PATIENCE);
    assert_true(result_of(&walk, MINUTE, 0, 0).tried > 100);
    r = result_of(&late, 850000000, 0, 0);
    assert_int_equal(r.stop, SEARCH_TIME);
    assert_int_equal(r.tried, 9); /* the last one begins at 800 ms */
    assert_int_equal(r.elapsed_ns, 900000000);
    result_of(&broken, MINUTE, 0, -EIO);
    assert_int_equal(broken.tries, 7);
}
