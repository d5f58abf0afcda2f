/* SPDX-License-Identifier: Apache-2.0 */
/* The price of a cause: turns, their interval and their end, against sides whose truth is planted. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "harness/doctor/doctor.h"
#include "harness/doctor/measure.h"

/* A machine on which all is planted. */
struct scene {
    double with, without; /* the true figures */
    double noise;         /* standard deviation of a side, as a share */
    double drift;         /* each measurement finds the machine so much slower: 0.99 */
    double outliers;      /* share of the measurements with the cause that take ten times as long */
    int fails_at, error;  /* from 1; 0: never */
    int n;                /* measurements so far */
    struct rng rng;
};

static int planted(void *arg, struct measurement *m, bool with, double *value)
{
    struct scene *s = arg;
    double far = with && rng_double(&s->rng) < s->outliers ? 10 : 1;

    if (++s->n == s->fails_at) {
        if (s->error != -ECANCELED)
            snprintf(m->reason, sizeof(m->reason), "planted");
        return s->error;
    }
    m->more_is_better = true;
    *value = (with ? s->with : s->without) * pow(s->drift, s->n) *
             exp(s->noise * rng_normal(&s->rng)) / far;
    return 0;
}

static const struct bench_experiment cause = {
    .check = "planted", .cause = "a planted cause", .lost = "turns", .metric = "rate", .pipe = "P"};

static struct measurement measured(struct scene s, double width)
{
    struct measurement m = {.cause = &cause};
    struct measure_rule rule = {.width = width, .budget_ns = UINT64_MAX / 4};

    s.drift = s.drift ? s.drift : 1;
    rng_seed(&s.rng, 7);
    assert_int_equal(measure_turns(&m, &rule, planted, &s), 0);
    return m;
}

static void check_share(struct measurement *m, double truth, double off)
{
    double low, high;

    assert_int_equal(m->state, MEASURE_DONE);
    assert_true(measure_share(m, &low, &high));
    if (low > truth || high < truth || high - low > 2 * off)
        fail_msg("planted %g, found %g to %g", truth, low, high);
    measurement_release(m);
}

static void test_a_planted_loss_is_found(void **state)
{
    struct measurement m =
        measured((struct scene){.with = 80, .without = 100, .noise = 0.01}, 0.01);

    (void)state;
    check_share(&m, 0.2, 0.02);
}

static void test_equal_sides_cost_nothing(void **state)
{
    struct measurement m =
        measured((struct scene){.with = 100, .without = 100, .noise = 0.005}, 0.01);
    char text[200];

    (void)state;
    assert_non_null(strstr(measure_text(&m, text, sizeof(text)), "no cost seen in turns (-"));
    check_share(&m, 0, 0.01);
}

/* Each measurement is 2 % below the one before: over a turn, by far more than the 1 % that is to be
 * found. */
static void test_drift_cancels(void **state)
{
    struct measurement m =
        measured((struct scene){.with = 99, .without = 100, .drift = 0.98}, 0.01);

    (void)state;
    check_share(&m, 0.01, 1e-9);
    m = measured((struct scene){.with = 80, .without = 100, .drift = 1.03, .noise = 0.005}, 0.01);
    check_share(&m, 0.2, 0.01);
}

/* One in fifteen of the measurements of one side is ten times as slow. */
static void test_outliers_of_one_side(void **state)
{
    struct measurement m = measured(
        (struct scene){.with = 80, .without = 100, .noise = 0.01, .outliers = 0.066}, 0.01);

    (void)state;
    assert_true(m.n_turns > MEASURE_TURNS_MIN);
    check_share(&m, 0.2, 0.03);
}

static size_t count_covered(const struct scene *planned, size_t runs, double *turns)
{
    size_t covered = 0;

    *turns = 0;

    for (size_t i = 0; i < runs; i++) {
        struct measurement m = {.cause = &cause};
        struct measure_rule rule = {.width = 0.01, .budget_ns = UINT64_MAX / 4};
        struct scene s = *planned;
        double low, high;

        s.with = 90;
        s.without = 100;
        rng_seed(&s.rng, i + 1);
        assert_int_equal(measure_turns(&m, &rule, planted, &s), 0);
        assert_true(measure_share(&m, &low, &high));
        covered += low <= 0.1 && high >= 0.1;
        *turns += (double)m.n_turns / (double)runs;
        measurement_release(&m);
    }
    return covered;
}

/* The interval is looked at several times, and the first narrow one ends it: it covers the truth
 * all the same. */
static void test_coverage(void **state)
{
    double turns;
    static const struct scene scenes[] = {
        {.drift = 1, .noise = 0.003},
        {.drift = 1, .noise = 0.01},
        {.drift = 1, .noise = 0.015},
        {.drift = 1, .noise = 0.02},
        {.drift = 1, .noise = 0.03},
        {.drift = 1, .noise = 0.1},
        {.drift = 0.99, .noise = 0.015},
        {.drift = 1.02, .noise = 0.03},
        {.drift = 1, .noise = 0.01, .outliers = 0.03},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
        size_t covered = count_covered(&scenes[i], 2000, &turns);
        print_message("noise %g %%, drift %+g %%, outliers %g %%: covers %.1f %%, %.1f turns\n",
                      scenes[i].noise * 100, scenes[i].drift * 100 - 100, scenes[i].outliers * 100,
                      (double)covered / 20, turns);
        if (covered < 1900)
            fail_msg("scene %zu: %zu of 2000", i, covered);
    }
}

static void test_a_time_grows(void **state)
{
    struct measurement m = measured((struct scene){.with = 150, .without = 100}, 0.01);
    double low, high;
    char text[200];

    (void)state;
    m.more_is_better = false;
    assert_true(measure_share(&m, &low, &high));
    assert_true(fabs(low - 0.5) < 1e-9 && fabs(high - 0.5) < 1e-9);
    assert_string_equal(measure_text(&m, text, sizeof(text)), "50 % to 50 % more turns");
    measurement_release(&m);
}

/* No new turn once the time is used up, but for those that an interval needs. */
/* An interval that holds no change is a result only where it is narrow. */
static void test_words(void **state)
{
    static const struct {
        double low, high;
        bool more;
        const char *text;
    } words[] = {
        {0.79, 0.81, true, "19 % to 21 % less turns"},
        {1.02, 1.04, true, "no cost: 2 % to 4 % more turns"},
        {0.99, 1.01, true, "no cost seen in turns (-1 % to 1 %)"},
        {0.8, 1.2, true, "undecided: between 20 % more and 20 % less turns"},
        {0.9, 3, true, "undecided: between 3 times and 10 % less turns"},
        {1.5, 2.5, false, "1.5 to 2.5 times the turns"},
        {1.5, 1.9, false, "50 % to 90 % more turns"},
        {0.9, 0.95, false, "no cost: 5 % to 10 % less turns"},
        {0.95, 3, false, "undecided: between 5 % less and 3 times the turns"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        struct measurement m = {.cause = &cause,
                                .state = MEASURE_DONE,
                                .more_is_better = words[i].more,
                                .low = words[i].low,
                                .high = words[i].high};
        char text[200];
        assert_string_equal(measure_text(&m, text, sizeof(text)), words[i].text);
        assert_int_equal(measure_decides(&m), strncmp(words[i].text, "undecided", 9) != 0);
    }
}

static void test_the_budget_ends_it(void **state)
{
    struct measurement m = {.cause = &cause};
    struct measure_rule rule = {.width = 1e-9, .budget_ns = 0};
    struct scene s = {.with = 80, .without = 100, .noise = 0.1, .drift = 1};

    (void)state;
    rng_seed(&s.rng, 1);
    assert_int_equal(measure_turns(&m, &rule, planted, &s), 0);
    assert_int_equal(m.n_turns, MEASURE_TURNS_MIN);
    assert_int_equal(m.state, MEASURE_DONE);
    measurement_release(&m);
    m = measured((struct scene){.with = 80, .without = 100, .noise = 0.1}, 1e-9);
    assert_int_equal(m.n_turns, MEASURE_TURNS_MAX);
    measurement_release(&m);
}

static void test_an_end_before_the_end(void **state)
{
    struct measurement m = measured(
        (struct scene){
            .with = 80, .without = 100, .noise = 1e-7, .fails_at = 39, .error = -ECANCELED},
        0);
    char text[200];

    (void)state;
    assert_int_equal(m.state, MEASURE_STOPPED);
    assert_int_equal(m.n_turns, 9);
    assert_string_equal(measure_text(&m, text, sizeof(text)), "20 % to 20 % less turns");
    measurement_release(&m);
    m = measured((struct scene){.with = 80, .without = 100, .fails_at = 7, .error = -ECANCELED}, 0);
    assert_string_equal(measure_text(&m, text, sizeof(text)),
                        "not known: too few turns for an interval (1)");
    measurement_release(&m);
    m = measured((struct scene){.with = 80, .without = 100, .fails_at = 2, .error = -EOPNOTSUPP},
                 0);
    assert_int_equal(m.state, MEASURE_SKIPPED);
    assert_string_equal(measure_text(&m, text, sizeof(text)), "skipped: planted");
    measurement_release(&m);
    m = measured((struct scene){.with = 0, .without = 100}, 0);
    assert_int_equal(m.state, MEASURE_FAILED);
    measurement_release(&m);
}

/* What is written is enough to calculate it again. */
static void test_json_has_all_turns(void **state)
{
    struct measurement m =
        measured((struct scene){.with = 80, .without = 100, .noise = 0.02}, 0.001);
    json_t *json = measure_json(&m), *turn;
    size_t i, n = 0;

    (void)state;
    json_array_foreach (json_object_get(json, "turns"), i, turn) {
        const json_t *values = json_object_get(turn, "values");
        bool first = !strcmp(json_string_value(json_object_get(turn, "first")), "with");
        double v[4];
        for (int k = 0; k < 4; k++)
            v[k] = json_real_value(json_array_get(values, (size_t)k));
        double outer = sqrt(v[0] * v[3]), inner = sqrt(v[1] * v[2]);
        n += (first ? outer / inner : inner / outer) <
             json_real_value(json_object_get(json, "ratio"));
        assert_int_equal(first, i % 2 == 0);
    }
    assert_int_equal(i, m.n_turns);
    assert_int_equal(n, m.n_turns / 2);
    json_decref(json);
    measurement_release(&m);
}

/* A variable that was set on both sides has no price. */
static void test_the_price_of_a_variable_is_of_no_other(void **state)
{
    struct measurement m = {.cause = &cause, .variable = strdup("ONE")};

    (void)state;
    assert_true(measure_is_of(&m, "planted", "ONE"));
    assert_false(measure_is_of(&m, "planted", "OTHER"));
    assert_false(measure_is_of(&m, "other", "ONE"));
    measurement_release(&m);
    m.variable = m.command = NULL;
    m.turns = NULL;
    assert_true(measure_is_of(&m, "planted", "eth0"));
}

static void check_fact(const json_t *machine, const char *name, const char *expected)
{
    char text[64];
    const char *found = measure_fact(machine, name, strlen(name), text, sizeof(text));

    if (!expected != !found || (expected && strcmp(found, expected) != 0))
        fail_msg("%s: '%s', not '%s'", name, found ? found : "NULL", expected ? expected : "NULL");
}

static void test_facts_of_a_machine(void **state)
{
    static const char text[] =
        "{\"virtualization\": {\"guest\": true, \"limits\": {\"allowed_cpus\": \"0-3,8\","
        " \"cpu_quota\": 1.5}}, \"numa\": {\"nodes\": [{\"memory_bytes\": 1}, {\"memory_bytes\": "
        "0},"
        " {\"memory_bytes\": 2}]}, \"gpus\": {\"devices\": [{}], \"cuda\": {\"devices\": 1}},"
        " \"rdma\": [], \"tcp\": {\"congestion_controls\": [\"reno\", \"bbr\"]},"
        " \"memory\": {\"transparent_huge_pages\": {\"enabled\": \"madvise\"}}}";
    json_t *machine = json_loads(text, 0, NULL), *empty = json_object();

    (void)state;
    check_fact(machine, "cpus", "5");
    check_fact(machine, "nodes", "2");
    check_fact(machine, "gpus", "1");
    check_fact(machine, "rdma", "0");
    check_fact(machine, "huge_pages", "madvise");
    check_fact(machine, "quota", "1.5");
    check_fact(machine, "guest", "true");
    check_fact(machine, "congestion", "+reno+bbr+");
    check_fact(machine, "rdma_mtu", NULL);
    json_object_set_new(machine, "rdma",
                        json_pack("[{s:[{s:i}, {s:i}]}, {s:[{s:n}]}]", "ports", "roce_mtu_bytes",
                                  4096, "roce_mtu_bytes", 1024, "ports", "roce_mtu_bytes"));
    check_fact(machine, "rdma_mtu", "1024");
    check_fact(machine, "moon", NULL);
    check_fact(empty, "cpus", NULL);
    check_fact(empty, "gpus", NULL);
    check_fact(empty, "rdma", NULL);
    check_fact(empty, "congestion", NULL);
    json_decref(machine);
    json_decref(empty);
}

/* What doctor prints of the four findings of a machine, each with this cost. */
static char *printed(double low, double high)
{
    json_t *machine =
        json_pack("{s:{s:{s:f, s:s}}, s:{s:i, s:{s:[s], s:[s]}}, s:{s:s}, s:{s:{s:s}}}",
                  "virtualization", "limits", "cpu_quota", 2.0, "allowed_cpus", "0-7", "cpu",
                  "threads", 8, "clock", "governors", "ondemand", "drivers", "acpi-cpufreq", "host",
                  "clocksource", "hpet", "memory", "transparent_huge_pages", "enabled", "never");
    struct exam *x = exam_new(machine);
    char *text = NULL;
    size_t size = 0, found = 0;
    FILE *out = open_memstream(&text, &size);

    for (struct exam_result *r = exam_results(x); r; r = r->next) {
        if (r->state != EXAM_FOUND)
            continue;
        found++;
        r->cost = (struct exam_cost){
            .basis = EXAM_MEASURED, .low = low, .high = high, .of = "CPU time", .source = "this"};
        exam_remedy(x, r, "remove it");
    }
    assert_int_equal(found, 4);
    doctor_print_results(out, x, true);
    doctor_print_first(out, x, true, true);
    fclose(out);
    exam_free(x);
    json_decref(machine);
    return text;
}

/* It stays a finding, but is nothing to do first. */
static void test_a_finding_that_costs_nothing(void **state)
{
    char *text = printed(0.7, 0.8);

    (void)state;
    assert_non_null(strstr(text, "70 to 80 % of the CPU time (measured: this)"));
    assert_non_null(strstr(text, "DO FIRST"));
    free(text);
    text = printed(-0.01, 0.02);
    assert_non_null(strstr(text, "none seen in CPU time: -1 to 2 % (measured: this)"));
    assert_null(strstr(text, "DO FIRST"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_planted_loss_is_found),
        cmocka_unit_test(test_equal_sides_cost_nothing),
        cmocka_unit_test(test_drift_cancels),
        cmocka_unit_test(test_outliers_of_one_side),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_a_time_grows),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_the_budget_ends_it),
        cmocka_unit_test(test_an_end_before_the_end),
        cmocka_unit_test(test_json_has_all_turns),
        cmocka_unit_test(test_the_price_of_a_variable_is_of_no_other),
        cmocka_unit_test(test_facts_of_a_machine),
        cmocka_unit_test(test_a_finding_that_costs_nothing),
    };

    return cmocka_run_group_tests_name("measure", tests, NULL, NULL);
}
