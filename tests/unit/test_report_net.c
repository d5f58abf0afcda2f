/* SPDX-License-Identifier: Apache-2.0 */
/* What the report makes of rows of net: one way and both ways at once are apart, several devices count as their sum. */
#include <math.h>

#include "harness/report/cases.h"
#include "harness/report/report.h"
#include "tests/unit/report_scene.h"

static const char *const params[] = {"transport", "pattern", "direction", "size", "device", "from",
                                     "to",        "side",    "scope",     "rail", NULL};

static const char *size = "1048576"; /* of the rows to come */

static void rate(struct scene *s, const char *direction, const char *from, const char *to,
                 const char *rail, double value)
{
    char values[128];

    snprintf(values, sizeof(values), "tcp bandwidth %s %s %s %s %s - - %s", direction, size,
             *rail ? "eth0+eth1" : "-", from ? from : "-", to ? to : "-", rail);
    put(s, "bandwidth", value, NAN, NULL, values);
}

static void latency(struct scene *s, const char *from, const char *to, double us, bool noisy)
{
    struct row row = row_of(s, "latency", "us", us);
    char values[128];

    if (noisy) {
        row.status = "noisy";
        row.summary.ci_low = us / 2;
        row.summary.ci_high = us * 3 / 2;
    }
    snprintf(values, sizeof(values), "tcp latency - %s - %s %s", size, from, to);
    add(s, &row, values);
}

static void start(struct scene *s)
{
    size = "1048576";
    begin(s, false, "net", params);
}

static double best(const struct scene *s, const char *pipe, const char *label)
{
    return run_of(s, pipe, label)->point->value;
}

/* A suite with `forward` and `both` of the same streams. */
static void add_both_kinds(struct scene *s)
{
    rate(s, "both-forward", NULL, NULL, "", 3);
    rate(s, "both-reverse", NULL, NULL, "", 4);
    rate(s, "sum", NULL, NULL, "", 7);
    rate(s, "forward", NULL, NULL, "", 5);
}

static void one_way_and_a_part_of_both_are_two_cases(void **state)
{
    struct scene *s = *state;

    start(s);
    add_both_kinds(s);
    rate(s, "forward", NULL, NULL, "", 5.5); /* another launch */
    load(s);
    const struct report_bench *b = &s->r.benches[0];
    assert_int_equal(b->n_cases, 4);
    for (size_t i = 0; i < b->n_cases; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(case_key(&s->r.pool, b, &b->cases[i]),
                                    case_key(&s->r.pool, b, &b->cases[k]));
    assert_string_equal(
        case_key(&s->r.pool, b, &b->cases[3]),
        "net|direction=forward|pattern=bandwidth|size=1048576|transport=tcp|bandwidth|Gb/s");
    assert_int_equal(b->cases[3].points[0].n_rows, 2);
    assert_float_equal(b->cases[3].points[0].value, sqrt(5 * 5.5), 1e-9);
    assert_true(b->cases[0].points[0].value == 3);
}

/* Of a suite with nothing but both ways the better part: it says what it is. */
static void the_headlines_take_the_best_of_a_way_and_the_sum(void **state)
{
    struct scene *s = *state;

    start(s);
    add_both_kinds(s);
    load(s);
    assert_true(best(s, "Network", "tcp") == 5);
    assert_true(best(s, "Network", "both ways, sum, tcp") == 7);
    start(s);
    rate(s, "both-forward", NULL, NULL, "", 3);
    rate(s, "both-reverse", NULL, NULL, "", 4);
    load(s);
    assert_true(best(s, "Network", "tcp") == 4);
    assert_non_null(strstr(run_of(s, "Network", "tcp")->what, "both-reverse"));
}

static const char *const hosts[] = {"a", "b", "c", "d", "e", "f"};

/* From a to b, b to c, c to a, and back: as `forward` and `reverse` of three launches. */
static void add_ring(struct scene *s, const char *forward, const char *reverse, const char *rail,
                     double from)
{
    for (size_t i = 0; i < 3; i++) {
        rate(s, forward, hosts[i], hosts[(i + 1) % 3], rail, from + (double)i);
        rate(s, reverse, hosts[i], hosts[(i + 1) % 3], rail, from + 10 + (double)i);
    }
}

static void holds(const struct matrix *m, size_t from, size_t to, double value)
{
    assert_non_null(m->cells[from * m->n + to].c);
    assert_true(m->cells[from * m->n + to].point->value == value);
}

static void is_ring(const struct matrix *m, double from)
{
    assert_int_equal(m->n, 3);
    assert_int_equal(m->measured, 6);
    for (size_t i = 0; i < 3; i++) {
        holds(m, i, (i + 1) % 3, from + (double)i);
        holds(m, (i + 1) % 3, i, from + 10 + (double)i);
    }
}

static void a_matrix_is_of_one_way_or_of_both(void **state)
{
    struct scene *s = *state;

    start(s);
    add_ring(s, "both-forward", "both-reverse", "", 100);
    add_ring(s, "forward", "reverse", "", 200);
    load(s);
    assert_int_equal(s->h.matrices.n, 2);
    is_ring(&s->h.matrices.all[0], 100);
    is_ring(&s->h.matrices.all[1], 200);
    assert_non_null(strstr(s->h.matrices.all[0].title, "both ways at once"));
    assert_null(strstr(s->h.matrices.all[1].title, "both ways"));
    for (size_t i = 0; i < 2; i++)
        assert_null(strstr(s->h.matrices.all[i].title, "direction"));
}

/* All ways between four hosts at 10, the first at `odd`, in one launch more. */
static void add_all_ways(struct scene *s, bool is_latency, double odd, double others)
{
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            double value = i == 0 && k == 1 ? odd : others;

            if (i != k && is_latency)
                latency(s, hosts[i], hosts[k], value, false);
            else if (i != k)
                rate(s, "forward", hosts[i], hosts[k], "", value);
        }
}

/* An alarm rests on launches that agree, and is far below the others; never on one launch. Of a latency
 * less is better. */
static void a_slow_pair_is_proven_or_looks_slow(void **state)
{
    static const struct {
        double odd[5];
        size_t launches;
        bool latency;
        size_t slow, looks;
    } cases[] = {
        {{3}, 1, false, 0, 1},
        {{10, 10, 4}, 3, false, 0, 1},
        {{7, 7.05, 6.95}, 3, false, 1, 0},
        {{3, 3.1}, 2, false, 0, 1}, /* of 12 pairs one may stall twice */
        {{3, 3.75, 2.55, 3.6, 2.4}, 5, false, 1, 0},
        {{30, 31, 32}, 3, true, 1, 0},
        {{9.9, 10, 9.95}, 3, false, 0, 0},
    };
    struct scene *s = *state;

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        start(s);
        for (size_t i = 0; i < cases[c].launches; i++)
            add_all_ways(s, cases[c].latency, cases[c].odd[i],
                         10 + (cases[c].latency ? (double)i : 0));
        load(s);
        const struct matrix *m = &s->h.matrices.all[0];
        if (m->slow != cases[c].slow || m->looks_slow != cases[c].looks || m->n_slow_hosts)
            fail_msg("case %zu: %zu slow, %zu look so", c, m->slow, m->looks_slow);
        assert_true(!cases[c].looks || m->cells[1].looks_slow);
        assert_int_equal(strstr(matrix_looks_slow_text(&s->r, m), "a -> b") != NULL,
                         cases[c].looks);
    }
}

/* What noise makes of the links between hosts, both ways. */
static double noisy(size_t from, size_t to, size_t launch)
{
    return 10 * (1 + 0.01 * (double)((3 * from + 5 * to + 7 * launch) % 4) / 4);
}

/* A host is slow on all of its links, or on those of one way, beside others that are alike. */
static void slow_hosts_are_named(void **state)
{
    static const struct {
        size_t hosts, launches;
        struct {
            size_t host;
            double factor;
            enum links_way way;
        } slow[2]; /* factor 0: none */
        size_t named, links;
    } cases[] = {
        {3, 3, {{2, 0.53, LINKS_BOTH}}, 1, 2},
        {6, 1, {{2, 0.53, LINKS_BOTH}}, 1, 5},
        {6, 1, {{0}}, 0, 0},
        {4, 2, {{3, 0.5, LINKS_FROM}}, 1, 3},
        {4, 2, {{0, 0.5, LINKS_TO}}, 1, 3},
        {5, 2, {{1, 0.5, LINKS_BOTH}, {4, 0.7, LINKS_BOTH}}, 2, 3}, /* not those of the other one */
        {5, 2, {{2, 0.93, LINKS_BOTH}}, 0, 0},
        {5, 2, {{2, 0.87, LINKS_BOTH}}, 1, 4},
    };
    struct scene *s = *state;

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        start(s);
        for (size_t launch = 0; launch < cases[c].launches; launch++)
            for (size_t i = 0; i < cases[c].hosts; i++)
                for (size_t k = 0; k < cases[c].hosts; k++) {
                    double value = noisy(i, k, launch);

                    for (size_t n = 0; n < 2 && cases[c].slow[n].factor > 0; n++) {
                        enum links_way way = cases[c].slow[n].way;
                        size_t host = cases[c].slow[n].host;

                        if ((way != LINKS_TO && i == host) || (way != LINKS_FROM && k == host))
                            value = fmin(value, noisy(i, k, launch) * cases[c].slow[n].factor);
                    }
                    if (i != k)
                        rate(s, "forward", hosts[i], hosts[k], "", value);
                }
        load(s);
        const struct matrix *m = &s->h.matrices.all[0];
        if (m->n_slow_hosts != cases[c].named)
            fail_msg("case %zu: %zu", c, m->n_slow_hosts);
        for (size_t i = 0; i < cases[c].named; i++) {
            assert_int_equal(m->slow_hosts[i].host, cases[c].slow[i].host);
            assert_int_equal(m->slow_hosts[i].way, cases[c].slow[i].way);
            assert_int_equal(m->slow_hosts[i].others->peers, cases[c].links);
            assert_true(fabs(m->slow_hosts[i].others->ratio - cases[c].slow[i].factor) < 0.02);
        }
    }
}

/* One link, however slow, makes nobody slow; nor does a host of which the others differ as much. */
static void one_link_is_no_slow_host(void **state)
{
    struct scene *s = *state;

    for (size_t n = 3; n <= 6; n++) {
        start(s);
        for (size_t launch = 0; launch < 3; launch++)
            for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < n; k++)
                    if (i != k)
                        rate(s, "forward", hosts[i], hosts[k], "",
                             noisy(i, k, launch) * (i + k == 1 ? 0.3 : 1));
        load(s);
        assert_int_equal(s->h.matrices.all[0].n_slow_hosts, 0);
    }
    start(s);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 5; k++)
            if (i != k)
                rate(s, "forward", hosts[i], hosts[k], "",
                     (10 + 3.5 * (double)((7 * (5 * i + k)) % 3) - 3.5) *
                         (i == 2 || k == 2 ? 0.8 : 1));
    load(s);
    assert_int_equal(s->h.matrices.all[0].n_slow_hosts, 0);
}

static uint64_t seed = 88172645463325252u;

static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

/* Links and launches vary, and launches stall, losing a fifth to a half: of hosts that are equal none is named, nor is a pair. A host
 * that lost a quarter is. */
static void hosts_are_named_as_promised(void **state)
{
    static const struct {
        size_t hosts, launches;
        double sd, stalls, lost; /* by the second host */
        unsigned runs, named,
            missed; /* at most: runs in which another place is named, or it is not */
    } cases[] = {
        {6, 1, 0.03, 0, 0, 25, 1, 0},       {4, 2, 0.03, 0, 0, 25, 1, 0},
        {5, 2, 0.01, 0.1, 0, 40, 1, 0},     {4, 3, 0.01, 0.03, 0, 25, 1, 0},
        {6, 1, 0.02, 0, 0.25, 20, 1, 1},    {4, 3, 0.02, 0.02, 0.25, 20, 1, 6},
        {6, 3, 0.02, 0.02, 0.25, 12, 1, 1},
    };
    struct scene *s = *state;

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        unsigned named = 0, missed = 0;

        for (unsigned run = 0; run < cases[c].runs; run++) {
            bool found = false, other = false;

            start(s);
            for (size_t i = 0; i < cases[c].hosts; i++)
                for (size_t k = 0; k < cases[c].hosts; k++) {
                    double link = exp(cases[c].sd * sqrt(-2 * log(uniform())) *
                                      cos(6.283185307179586 * uniform()));

                    for (size_t l = 0; i != k && l < cases[c].launches; l++) {
                        double launch = cases[c].sd * (2 * uniform() - 1);
                        double stall = uniform() < cases[c].stalls ? 0.5 + 0.3 * uniform() : 1;
                        double lost = i == 1 || k == 1 ? 1 - cases[c].lost : 1;

                        rate(s, "forward", hosts[i], hosts[k], "",
                             10 * link * exp(launch) * stall * lost);
                    }
                }
            load(s);
            const struct matrix *m = &s->h.matrices.all[0];
            for (size_t i = 0; i < m->n_slow_hosts; i++)
                *(m->slow_hosts[i].host == 1 && cases[c].lost > 0 ? &found : &other) = true;
            for (size_t i = 0; i < m->n * m->n; i++)
                other |= matrix_is_listed(m, i);
            named += other;
            missed += cases[c].lost > 0 && !found;
        }
        if (named > cases[c].named || missed > cases[c].missed)
            fail_msg("case %zu: %u of %u runs named, %u missed", c, named, cases[c].runs, missed);
    }
}

/* All ways between four hosts; those from and to the first have 0.4 of the rate. */
static void a_slow_host_is_named_though_two_launches_differ(void **state)
{
    struct scene *s = *state;

    start(s);
    for (int launch = 0; launch < 2; launch++)
        for (size_t i = 0; i < 4; i++)
            for (size_t k = 0; k < 4; k++)
                if (i != k)
                    rate(s, "forward", hosts[i], hosts[k], "",
                         (i && k ? 10 : 4) * (launch ? 1.03 : 1));
    load(s);
    assert_int_equal(s->h.matrices.all[0].n_slow_hosts, 1);
    assert_int_equal(s->h.matrices.all[0].slow_hosts[0].host, 0);
}

/* Noise made two links of one host slow. */
static void no_host_is_named_of_noisy_pairs(void **state)
{
    static const double us[] = {24.4, 33.4, 36.8, 28.4, 28.7, 25.1};
    struct scene *s = *state;
    size_t n = 0;

    start(s);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = i + 1; k < 4; k++)
            latency(s, hosts[i], hosts[k], us[n++], true);
    load(s);
    assert_true(s->h.matrices.all[0].looks_slow >= 2);
    assert_int_equal(s->h.matrices.all[0].n_slow_hosts, 0);
}

/* Of a smaller size, in which the best of all lies. */
static void the_headline_tells_of_a_slow_link_though_its_best_is_of_another_size(void **state)
{
    struct scene *s = *state;

    start(s);
    for (int launch = 0; launch < 3; launch++)
        add_all_ways(s, false, 4, 10);
    size = "65536";
    add_all_ways(s, false, 11, 11);
    load(s);
    const struct headline_run *h = run_of(s, "Network", "tcp");
    assert_true(h->point->value == 11);
    assert_non_null(strstr(verdict_said(&h->verdict), "slowest: a -> b"));
    assert_non_null(h->verdict.look);
}

static void message_rate(struct scene *s, double value, const char *rail)
{
    struct row row = row_of(s, "message_rate", "Mop/s", value);
    char values[64];

    snprintf(values, sizeof(values), "tcp rate forward %s - - - - - %s", size, rail);
    add(s, &row, values);
}

static void several_devices_count_as_their_sum(void **state)
{
    struct scene *s = *state;

    start(s);
    add_ring(s, "forward", "reverse", "eth0", 1000);
    add_ring(s, "forward", "reverse", "eth1", 2000);
    add_ring(s, "forward", "reverse", "all", 500);
    message_rate(s, 9, "eth0");
    message_rate(s, 8, "all");
    load(s);
    assert_int_equal(s->h.matrices.n, 1);
    is_ring(&s->h.matrices.all[0], 500);
    assert_true(best(s, "Network", "tcp") == 510);
    assert_non_null(strstr(run_of(s, "Network", "tcp")->what, "over eth0+eth1"));
    assert_true(best(s, "Network rate", "message rate tcp") == 8);
}

static void of_several_words_any_will_do(void **state)
{
    struct scene *s = *state;

    start(s);
    rate(s, "forward", NULL, NULL, "all", 5);
    load(s);
    const struct report_bench *b = &s->r.benches[0];
    const struct report_case *c = &b->cases[0];
    static const struct {
        const char *condition;
        bool holds;
    } cases[] = {{"direction=reverse,forward rail=,all", true},
                 {"from=,all nosuch=,all direction=x,f*d", true},
                 {"direction=reverse,both rail=all", false},
                 {"rail=,eth0", false},
                 {"rail!=,all", false},
                 {"rail!=,eth0", true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_true(described_matches(b, c, cases[i].condition) == cases[i].holds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_way_and_a_part_of_both_are_two_cases),
        TEST(the_headlines_take_the_best_of_a_way_and_the_sum),
        TEST(a_matrix_is_of_one_way_or_of_both),
        TEST(a_slow_pair_is_proven_or_looks_slow),
        TEST(slow_hosts_are_named),
        TEST(one_link_is_no_slow_host),
        TEST(hosts_are_named_as_promised),
        TEST(no_host_is_named_of_noisy_pairs),
        TEST(the_headline_tells_of_a_slow_link_though_its_best_is_of_another_size),
        TEST(a_slow_host_is_named_though_two_launches_differ),
        TEST(several_devices_count_as_their_sum),
        TEST(of_several_words_any_will_do)};

    return cmocka_run_group_tests(tests, told_ask, told_forget);
}
