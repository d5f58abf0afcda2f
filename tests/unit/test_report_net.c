/* SPDX-License-Identifier: Apache-2.0 */
/* What the report makes of rows of net: one way and both ways at once are apart, several devices count as their sum. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/report/cases.h"
#include "harness/report/headline.h"
#include "harness/report/report.h"
#include "tests/unit/fake_run.h"
#include "tests/unit/verdict_said.h"

static const char *const params[] = {"transport", "pattern", "direction", "size",
                                     "device",    "from",    "to",        "side",
                                     "scope",     "rail",    "peer_host", "detail"};
#define N_PARAMS (sizeof(params) / sizeof(*params))

struct scene {
    const char *status; /* of the rows to come; NULL: as they are */
    const char *size;   /* the same; NULL: 1 MiB */
    struct fake_run f;
    FILE *rows, *plan;
    char number[16];
    unsigned launches;
    struct report r;
    struct headlines h;
};

static int make_folder(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));

    fake_run_init(&s->f);
    fake_run_write(&s->f, "run.json", "{\"schema\": 1, \"run\": \"one\", \"machine\": {}}\n");
    s->plan = fake_run_open(&s->f, "plan.csv", "w");
    fputs(FAKE_PLAN_HEADER, s->plan);
    s->rows = fake_run_open(&s->f, "net.csv", "w");
    row_print_csv_header(s->rows, params, N_PARAMS);
    *state = s;
    return 0;
}

static int remove_folder(void **state)
{
    struct scene *s = *state;

    report_release(&s->r);
    fake_run_release(&s->f);
    free(s);
    return 0;
}

struct is { /* what a row is of; NULL: "" */
    const char *transport, *pattern, *direction, *device, *from, *to, *side, *scope, *rail;
};

static void add(struct scene *s, const char *metric, const char *unit, double value, struct is is)
{
    const char *values[] = {is.transport, is.pattern, is.direction, s->size ? s->size : "1048576",
                            is.device,    is.from,    is.to,        is.side,
                            is.scope,     is.rail,    "b",          "eth0 cubic, MSS 1448"};
    struct row row;

    snprintf(s->number, sizeof(s->number), "%u", ++s->launches);
    fake_row_init(&row, s->number, 1, metric, unit, value);
    if (s->status)
        row.status = s->status;
    if (s->status && !strcmp(s->status, "noisy")) {
        row.summary.ci_low = value / 2;
        row.summary.ci_high = value * 3 / 2;
    }
    row.param_names = params;
    row.n_params = N_PARAMS;
    for (size_t i = 0; i < N_PARAMS; i++)
        row.params[i] = values[i] ? values[i] : "";
    row_print_csv(s->rows, &row);
    fprintf(s->plan, "done,0001,%u,%u,1,net,,60\n", s->launches, s->launches);
}

static void rate(struct scene *s, const char *direction, const char *from, const char *to,
                 const char *rail, double value)
{
    add(s, "bandwidth", "GB/s", value,
        (struct is){.transport = "tcp",
                    .pattern = "bandwidth",
                    .direction = direction,
                    .device = *rail ? "eth0+eth1" : "",
                    .from = from,
                    .to = to,
                    .rail = rail});
}

static void load(struct scene *s)
{
    const char *paths[] = {s->f.path};
    char error[512] = "";

    fclose(s->rows);
    fclose(s->plan);
    if (report_load(&s->r, paths, 1, error, sizeof(error)))
        fail_msg("%s", error);
    assert_int_equal(headlines_make(&s->r, &s->h), 0);
}

static const struct headline *line(const struct scene *s, const char *pipe, const char *label)
{
    for (size_t i = 0; i < s->h.n; i++)
        if (!strcmp(s->h.all[i].pipe, pipe) && !strcmp(s->h.all[i].label, label))
            return &s->h.all[i];
    fail_msg("no headline '%s %s'", pipe, label);
    return NULL;
}

static double best(const struct scene *s, const char *pipe, const char *label)
{
    return line(s, pipe, label)->runs[0].point->value;
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
        "net|direction=forward|pattern=bandwidth|size=1048576|transport=tcp|bandwidth|GB/s");
    assert_int_equal(b->cases[3].points[0].n_rows, 2);
    assert_float_equal(b->cases[3].points[0].value, sqrt(5 * 5.5), 1e-9);
    assert_true(b->cases[0].points[0].value == 3);
}

static void the_headlines_take_the_best_of_a_way_and_the_sum(void **state)
{
    struct scene *s = *state;

    add_both_kinds(s);
    load(s);
    assert_true(best(s, "Network", "tcp") == 5);
    assert_true(best(s, "Network", "both ways at once, sum, by tcp") == 7);
}

/* Of a suite with nothing but both ways the better part, as ever: it says what it is. */
static void a_part_of_both_is_the_headline_where_there_is_nothing_else(void **state)
{
    struct scene *s = *state;

    rate(s, "both-forward", NULL, NULL, "", 3);
    rate(s, "both-reverse", NULL, NULL, "", 4);
    rate(s, "sum", NULL, NULL, "", 7);
    load(s);
    assert_true(best(s, "Network", "tcp") == 4);
    assert_non_null(strstr(line(s, "Network", "tcp")->runs[0].what, "direction both-reverse"));
}

static void add_cost(struct scene *s, const char *direction, const char *side, double value)
{
    add(s, "cpu_per_gb", "s/GB", value,
        (struct is){.transport = "tcp",
                    .pattern = "bandwidth",
                    .direction = direction,
                    .side = side,
                    .scope = "threads"});
}

static void each_rate_has_its_own_cost(void **state)
{
    struct scene *s = *state;

    add_cost(s, "both", "own", 0.5);
    add_cost(s, "both", "peer", 0.75);
    add_both_kinds(s);
    load(s);
    const struct report_bench *b = &s->r.benches[0];
    static const char *const costs[] = {"both-forward", "both-reverse", "sum", NULL};
    for (size_t i = 2; i < b->n_cases; i++) {
        const char *direction = report_param(b, &b->cases[i], "direction");
        bool has = false;
        for (size_t k = 0; costs[k]; k++)
            has |= !strcmp(costs[k], direction);
        assert_string_equal(headline_cost(&s->r, b, &b->cases[i], 0),
                            has ? "CPU 0.500 s/GB at this end, 0.750 at the peer's" : "");
    }
}

/* From a to b, b to c, c to a, and back: as `forward` and `reverse` of three launches. */
static void add_ring(struct scene *s, const char *forward, const char *reverse, const char *rail,
                     double from)
{
    static const char *const hosts[] = {"a", "b", "c"};

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

/* All ways between four hosts at `value`, the first at `odd`: noisy by half of what it is, or not. */
static void add_all_ways(struct scene *s, double value, double odd, bool noisy)
{
    static const char *const hosts[] = {"a", "b", "c", "d"};

    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            bool first = i == 0 && k == 1;
            if (i == k)
                continue;
            s->status = first && noisy ? "noisy" : "ok";
            rate(s, "forward", hosts[i], hosts[k], "", first ? odd : value);
        }
    s->status = NULL;
}

static void no_alarm_rests_on_a_noisy_row(void **state)
{
    struct scene *s = *state;

    add_all_ways(s, 10, 7, true);
    load(s);
    const struct matrix *m = &s->h.matrices.all[0];
    assert_int_equal(m->slow, 0);
    assert_int_equal(m->vague, 1);
    assert_true(m->cells[1].vague);
    assert_string_equal(
        matrix_vague_text(&s->r, m),
        "1 pair seems slow, not proven: a -> b; measure again with a higher --repeat");
}

static void no_alarm_rests_on_launches_that_disagree(void **state)
{
    struct scene *s = *state;

    add_all_ways(s, 10, 10, false);
    add_all_ways(s, 10, 10, false);
    add_all_ways(s, 10, 4, false);
    load(s);
    assert_int_equal(s->h.matrices.all[0].slow, 0);
    assert_int_equal(s->h.matrices.all[0].vague, 1);
    assert_int_equal(s->h.matrices.all[0].n_slow_hosts, 0);
}

static void a_single_launch_proves_no_slow_row(void **state)
{
    struct scene *s = *state;

    add_all_ways(s, 10, 3, false);
    load(s);
    assert_int_equal(s->h.matrices.all[0].slow, 0); /* a single launch has no interval */
    assert_int_equal(s->h.matrices.all[0].vague, 1);
}

static void is_slow(struct scene *s, const double *odd, size_t launches)
{
    for (size_t i = 0; i < launches; i++)
        add_all_ways(s, 10, odd[i], false);
    load(s);
    assert_int_equal(s->h.matrices.all[0].slow, 1);
    assert_int_equal(s->h.matrices.all[0].vague, 0);
}

static void launches_that_agree_on_a_slow_row_are_told(void **state)
{
    is_slow(*state, (double[]){7, 7.05, 6.95}, 3);
}

/* Their interval is wide, and all of it is far behind the others. */
static void two_launches_that_differ_prove_a_row_that_is_far_behind(void **state)
{
    is_slow(*state, (double[]){3, 3.1}, 2);
}

static void five_launches_that_differ_prove_a_row_that_is_far_behind(void **state)
{
    is_slow(*state, (double[]){3, 3.75, 2.55, 3.6, 2.4}, 5);
}

/* All ways between four hosts; those from and to the first have 0.4 of the rate. */
static void a_slow_host_is_named_though_two_launches_differ(void **state)
{
    static const char *const hosts[] = {"a", "b", "c", "d"};
    struct scene *s = *state;

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

/* Noise made two links of one host slow. Without these two, the links of another host are the slowest. */
static void no_host_is_named_because_noisy_pairs_are_left_out(void **state)
{
    static const struct {
        const char *from, *to;
        double us;
    } pairs[] = {{"a", "b", 24.4}, {"a", "c", 33.4}, {"a", "d", 36.8},
                 {"b", "c", 28.4}, {"b", "d", 28.7}, {"c", "d", 25.1}};
    struct scene *s = *state;

    s->status = "noisy";
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
        add(s, "latency", "us", pairs[i].us,
            (struct is){.transport = "tcp",
                        .pattern = "latency",
                        .from = pairs[i].from,
                        .to = pairs[i].to});
    load(s);
    assert_int_equal(s->h.matrices.all[0].vague, 2);
    assert_int_equal(s->h.matrices.all[0].n_slow_hosts, 0);
}

/* Less is better: the lower end counts. */
static void a_latency_that_is_surely_long_is_told(void **state)
{
    static const char *const hosts[] = {"a", "b", "c", "d"};
    struct scene *s = *state;

    for (int launch = 0; launch < 2; launch++)
        for (size_t i = 0; i < 4; i++)
            for (size_t k = 0; k < 4; k++)
                if (i != k)
                    add(s, "latency", "us", (i == 0 && k == 1 ? 30 : 10) + launch,
                        (struct is){.transport = "tcp",
                                    .pattern = "latency",
                                    .from = hosts[i],
                                    .to = hosts[k]});
    load(s);
    assert_int_equal(s->h.matrices.all[0].slow, 1);
    assert_int_equal(s->h.matrices.all[0].vague, 0);
}

/* Of a smaller size, in which the best of all lies. */
static void the_headline_tells_of_a_slow_link_though_its_best_is_of_another_size(void **state)
{
    struct scene *s = *state;

    add_all_ways(s, 10, 4, false);
    add_all_ways(s, 10, 4, false);
    s->size = "65536";
    add_all_ways(s, 11, 11, false);
    load(s);
    const struct headline_run *h = &line(s, "Network", "tcp")->runs[0];
    assert_true(h->point->value == 11);
    assert_non_null(strstr(verdict_said(&h->verdict), "slowest: a -> b"));
    assert_non_null(h->verdict.look);
}

static void several_devices_count_as_their_sum(void **state)
{
    struct scene *s = *state;

    add_ring(s, "forward", "reverse", "eth0", 1000);
    add_ring(s, "forward", "reverse", "eth1", 2000);
    add_ring(s, "forward", "reverse", "all", 500);
    add(s, "message_rate", "Mop/s", 9,
        (struct is){.transport = "tcp", .pattern = "rate", .direction = "forward", .rail = "eth0"});
    add(s, "message_rate", "Mop/s", 8,
        (struct is){.transport = "tcp", .pattern = "rate", .direction = "forward", .rail = "all"});
    load(s);
    assert_int_equal(s->h.matrices.n, 1);
    is_ring(&s->h.matrices.all[0], 500);
    assert_true(best(s, "Network", "tcp") == 512);
    assert_non_null(strstr(line(s, "Network", "tcp")->runs[0].what, "over eth0+eth1"));
    assert_true(best(s, "Network rate", "messages by tcp") == 8);
}

static void of_several_words_any_will_do(void **state)
{
    struct scene *s = *state;

    rate(s, "forward", NULL, NULL, "all", 5);
    load(s);
    const struct report_bench *b = &s->r.benches[0];
    const struct report_case *c = &b->cases[0];
    assert_true(described_matches(b, c, "direction=reverse,forward rail=,all"));
    assert_true(described_matches(b, c, "from=,all nosuch=,all direction=x,f*d"));
    assert_false(described_matches(b, c, "direction=reverse,both rail=all"));
    assert_false(described_matches(b, c, "rail=,eth0"));
    assert_false(described_matches(b, c, "rail!=,all"));
    assert_true(described_matches(b, c, "rail!=,eth0"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_way_and_a_part_of_both_are_two_cases),
        TEST(the_headlines_take_the_best_of_a_way_and_the_sum),
        TEST(a_part_of_both_is_the_headline_where_there_is_nothing_else),
        TEST(each_rate_has_its_own_cost),
        TEST(a_matrix_is_of_one_way_or_of_both),
        TEST(no_alarm_rests_on_a_noisy_row),
        TEST(no_host_is_named_because_noisy_pairs_are_left_out),
        TEST(no_alarm_rests_on_launches_that_disagree),
        TEST(a_single_launch_proves_no_slow_row),
        TEST(launches_that_agree_on_a_slow_row_are_told),
        TEST(the_headline_tells_of_a_slow_link_though_its_best_is_of_another_size),
        TEST(two_launches_that_differ_prove_a_row_that_is_far_behind),
        TEST(five_launches_that_differ_prove_a_row_that_is_far_behind),
        TEST(a_slow_host_is_named_though_two_launches_differ),
        TEST(a_latency_that_is_surely_long_is_told),
        TEST(several_devices_count_as_their_sum),
        TEST(of_several_words_any_will_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
