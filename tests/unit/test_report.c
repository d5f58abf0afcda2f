/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the report: how launches are combined, which case is a headline and what is said of it,
 * how cases are cut into plots, that no text from a file breaks out, and what is written. */
#include "harness/report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "harness/document/html.h"
#include "harness/document/utf8.h"
#include "harness/report/headline.h"
#include "harness/report/plot.h"
#include "harness/report/series.h"
#include "harness/report/show.h"
#include "harness/text.h"
#include "tests/unit/fake_run.h"
#include "tests/unit/verdict_said.h"

#define META "{\"schema\": 1, \"run\": \"one\", \"machine\": {}}\n"

static const char *const memory_params[] = {"op", "stores", "size", "level"};
static const char *const gemm_params[] = {"dtype", "library", "m", "n", "k"};

/* A run of one benchmark, written row by row. */
struct writer {
    const struct fake_run *f;
    FILE *rows, *plan;
    const char *bench;
    const char *const *params;
    size_t n_params;
};

static struct writer begin(const struct fake_run *f, const char *bench, const char *const *params,
                           size_t n)
{
    struct writer w = {f, NULL, NULL, bench, params, n};
    char name[64];

    fake_run_write(f, "run.json", META);
    snprintf(name, sizeof(name), "%s.csv", bench);
    w.rows = fake_run_open(f, name, "w");
    w.plan = fake_run_open(f, "plan.csv", "w");
    fputs(FAKE_PLAN_HEADER, w.plan);
    row_print_csv_header(w.rows, params, n);
    return w;
}

static void add(struct writer *w, struct row *row, const char *const *values)
{
    row->param_names = w->params;
    row->n_params = w->n_params;
    for (size_t i = 0; i < w->n_params; i++)
        row->params[i] = values[i];
    row_print_csv(w->rows, row);
    fprintf(w->plan, "done,0001,1,%s,%llu,%s,,60\n", row->case_id, (unsigned long long)row->repeat,
            w->bench);
}

static void end(struct writer *w)
{
    fclose(w->rows);
    fclose(w->plan);
}

static struct row memory_row(const char *case_id, uint64_t repeat, double value)
{
    struct row row;

    fake_row_init(&row, case_id, repeat, "bandwidth", "GB/s", value);
    return row;
}

static int make_folder(void **state)
{
    struct fake_run *f = malloc(sizeof(*f));

    fake_run_init(f);
    *state = f;
    return 0;
}

static int remove_folder(void **state)
{
    fake_run_release(*state);
    free(*state);
    return 0;
}

static struct report loaded(const struct fake_run *f)
{
    const char *paths[] = {f->path};
    struct report r;
    char error[512] = "";

    if (report_load(&r, paths, 1, error, sizeof(error)))
        fail_msg("%s", error);
    return r;
}

static const struct report_point *only_point(const struct report *r)
{
    assert_int_equal(r->n_benches, 1);
    assert_int_equal(r->benches[0].n_cases, 1);
    return &r->benches[0].cases[0].points[0];
}

static const char *const triad[] = {"triad", "regular", "65536", "L1"};

static void write_launches(const struct fake_run *f, const double *values, size_t n)
{
    struct writer w = begin(f, "memory", memory_params, 4);

    for (size_t i = 0; i < n; i++) {
        struct row row = memory_row("1", i + 1, values[i]);

        add(&w, &row, triad);
    }
    end(&w);
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * fabs(b)))
        fail_msg("%.9g is not %.9g", a, b);
}

/* By hand: log 10, 20 and 30 have the mean 2.900799 and the standard deviation 0.5554; t of 2 degrees
 * of freedom, 4.302653 x 0.5554 / sqrt(3), is 1.3797. */
static void few_launches_bear_students_interval(void **state)
{
    write_launches(*state, (const double[]){30, 10, 20}, 3);
    struct report r = loaded(*state);
    const struct report_point *p = only_point(&r);

    assert_int_equal(p->n_values, 3);
    assert_near(p->value, cbrt(30 * 10 * 20));
    assert_true(p->low > 4.57 && p->low < 4.58);
    assert_true(p->high > 72.2 && p->high < 72.3);
    assert_int_equal(p->two, TWO_NOT);
    report_release(&r);
}

/* Its own samples say nothing of the next launch. */
static void one_launch_has_no_interval(void **state)
{
    write_launches(*state, (const double[]){10}, 1);
    struct report r = loaded(*state);
    const struct report_point *p = only_point(&r);

    assert_near(p->value, 10);
    assert_true(isnan(p->low) && isnan(p->high));
    report_release(&r);
}

static void many_launches_bear_an_interval(void **state)
{
    const double values[] = {10.00, 10.01, 10.02, 9.99,  9.98, 10.03, 10.05, 9.97,
                             10.04, 10.00, 9.96,  10.02, 9.99, 10.01, 10.03};

    write_launches(*state, values, 15);
    struct report r = loaded(*state);
    const struct report_point *p = only_point(&r);

    assert_near(p->value, 10.006635569);
    assert_true(p->low >= 9.96 && p->low < 10.01);
    assert_true(p->high <= 10.05 && p->high > 10.01);
    report_release(&r);
}

static void launches_on_two_levels_are_told(void **state)
{
    write_launches(*state, (const double[]){10, 12, 10.001, 12.001, 10.002, 12.002, 10.003, 12.003},
                   8);
    struct report r = loaded(*state);
    const struct report_point *p = only_point(&r);

    assert_int_equal(p->two, TWO_LAUNCHES);
    assert_true(fabs(p->levels.low - 10) < 0.01 && fabs(p->levels.high - 12) < 0.01);
    assert_near(p->levels.share_low, 0.5);
    report_release(&r);
}

static void samples_on_two_levels_are_told(void **state)
{
    struct writer w = begin(*state, "memory", memory_params, 4);
    struct row row = memory_row("1", 1, 10);

    row.levels =
        (struct levels){.two = true, .low = 8, .high = 10, .share_low = 0.3, .share_high = 0.7};
    add(&w, &row, triad);
    end(&w);
    struct report r = loaded(*state);
    assert_int_equal(only_point(&r)->two, TWO_SAMPLES);
    assert_near(only_point(&r)->levels.low, 8);
    report_release(&r);
}

/* Nor does a wrong launch of few samples take away the tail of those that are right. */
static void a_wrong_launch_has_no_levels(void **state)
{
    struct writer w = begin(*state, "memory", memory_params, 4);

    for (size_t i = 1; i <= 3; i++) {
        struct row row = memory_row("1", i, 10);

        row.samples = i < 3 ? 1000 : 10;
        row.summary.p999 = 12;
        if (i == 3) {
            row.status = "wrong";
            row.levels = (struct levels){
                .two = true, .low = 8, .high = 10, .share_low = 0.3, .share_high = 0.7};
        }
        add(&w, &row, triad);
    }
    end(&w);
    struct report r = loaded(*state);

    assert_int_equal(only_point(&r)->two, TWO_NOT);
    assert_int_equal(only_point(&r)->n_two, 0);
    assert_near(only_point(&r)->p999, 12);
    report_release(&r);
}

/* A wrong value is in no median, and the case says that it was wrong. */
static void wrong_launches_have_no_value(void **state)
{
    struct writer w = begin(*state, "memory", memory_params, 4);
    struct row good = memory_row("1", 1, 10), wrong = memory_row("1", 2, 1000);

    wrong.status = "wrong";
    wrong.reason = "entry 5 differs";
    add(&w, &good, triad);
    add(&w, &wrong, triad);
    end(&w);
    struct report r = loaded(*state);
    const struct report_point *p = only_point(&r);

    assert_int_equal(p->n_rows, 2);
    assert_int_equal(p->n_values, 1);
    assert_near(p->value, 10);
    assert_true(isnan(p->high));
    assert_string_equal(p->status, "wrong");
    assert_string_equal(p->reason, "entry 5 differs");
    report_release(&r);
}

/* Launches of few samples have no interval of their own; their medians do. */
static void launches_without_intervals_bear_one(void **state)
{
    struct writer w = begin(*state, "memory", memory_params, 4);

    for (unsigned i = 0; i < FAKE_LAUNCHES; i++) {
        struct row row = memory_row("1", i + 1, fake_launch(10, i));

        row.summary.ci_low = row.summary.ci_high = NAN;
        add(&w, &row, triad);
    }
    end(&w);
    struct report r = loaded(*state);
    assert_near(only_point(&r)->value, 10);
    assert_near(only_point(&r)->low, 10 / 1.01);
    assert_near(only_point(&r)->high, 10.1);
    report_release(&r);
}

struct memory_case {
    const char *op, *stores, *size, *level, *metric, *unit, *status;
    double value, limit;
};

static void add_memory(struct writer *w, const struct memory_case *c, const char *id,
                       uint64_t repeat, double value)
{
    struct row row;

    fake_row_init(&row, id, repeat, c->metric, c->unit, value);
    if (c->status) {
        row.status = c->status;
        row.reason = "because of a test";
    }
    if (c->limit > 0) {
        row.limit = c->limit;
        row.percent_of_limit = 100 * value / c->limit;
        row.limit_kind = "measured";
        row.limit_source = "measured: reads";
    }
    if (isnan(value))
        row.samples = 0;
    add(w, &row, (const char *[]){c->op, c->stores, c->size, c->level});
}

/* Each case so many times: once, or FAKE_LAUNCHES times for an interval of +/- 1 %. */
static void write_memory_launches(const struct fake_run *f, const struct memory_case *cases,
                                  size_t n, unsigned launches)
{
    struct writer w = begin(f, "memory", memory_params, 4);

    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < launches; k++) {
            char id[24];

            snprintf(id, sizeof(id), "%zu", i + 1);
            add_memory(&w, &cases[i], id, k + 1,
                       launches > 1 ? fake_launch(cases[i].value, k) : cases[i].value);
        }
    end(&w);
}

static void write_memory(const struct fake_run *f, const struct memory_case *cases, size_t n)
{
    write_memory_launches(f, cases, n, FAKE_LAUNCHES);
}

static const struct headline *line_of(const struct headlines *h, const char *pipe,
                                      const char *label)
{
    for (size_t i = 0; i < h->n; i++)
        if (!strcmp(h->all[i].pipe, pipe) && !strcmp(h->all[i].label, label))
            return &h->all[i];
    fail_msg("no headline \"%s\" \"%s\"", pipe, label);
    return NULL;
}

static struct headlines headlines_of(struct report *r)
{
    struct headlines h;

    assert_int_equal(headlines_make(r, &h), 0);
    return h;
}

static const struct memory_case memory_cases[] = {
    {"triad", "regular", "16384", "L1", "bandwidth", "GB/s", NULL, 200, 250},
    {"triad", "nt", "16384", "L1", "bandwidth", "GB/s", NULL, 20, 250},
    {"triad", "regular", "1048576", "DRAM", "bandwidth", "GB/s", NULL, 30, 40},
    {"triad", "regular", "67108864", "DRAM", "bandwidth", "GB/s", NULL, 12, 24},
    {"triad", "nt", "67108864", "DRAM", "bandwidth", "GB/s", "noisy", 18, 24},
    {"latency", "", "16384", "L1", "latency", "ns", NULL, 1, 0},
    {"latency", "", "67108864", "DRAM", "latency", "ns", NULL, 99, 0},
    {"read", "", "67108864", "DRAM", "bandwidth", "GB/s", "skipped", NAN, 0},
};

static void headlines_take_the_best_at_the_right_place(void **state)
{
    write_memory(*state, memory_cases, 8);
    struct report r = loaded(*state);
    struct headlines h = headlines_of(&r);
    const struct headline *memory = line_of(&h, "Memory", "triad");
    const struct headline *cache = line_of(&h, "Caches", "triad in L1");
    const struct headline *latency = line_of(&h, "Latency", "random load, page walks included");

    assert_near(memory->runs[0].point->value, 18); /* not the 30 of a smaller size */
    assert_string_equal(memory->runs[0].what, "stores nt, size 64M");
    assert_int_equal(memory->runs[0].candidates, 2);
    assert_string_equal(headline_what(&r.pool, &memory->runs[0]), "stores nt, size 64M, best of 2");
    assert_string_equal(headline_what(&r.pool, &latency->runs[0]), "size 64M"); /* of one */
    assert_near(cache->runs[0].point->value, 200);
    assert_near(latency->runs[0].point->value, 99); /* lower is better, but at the largest size */
    assert_non_null(strstr(h.missing, "Matrix core"));
    assert_non_null(strstr(h.missing, "Copies"));
    assert_null(strstr(h.missing, "Memory"));
    report_release(&r);
}

static void the_best_latency_is_the_lowest(void **state)
{
    struct memory_case cases[] = {
        {"latency", "a", "67108864", "DRAM", "latency", "ns", NULL, 99, 0},
        {"latency", "b", "67108864", "DRAM", "latency", "ns", NULL, 90, 0},
        {"latency", "c", "67108864", "DRAM", "latency", "ns", NULL, 95, 0},
    };

    write_memory(*state, cases, 3);
    struct report r = loaded(*state);
    struct headlines h = headlines_of(&r);

    assert_near(line_of(&h, "Latency", "random load, page walks included")->runs[0].point->value,
                90);
    assert_string_equal(line_of(&h, "Latency", "random load, page walks included")->runs[0].what,
                        "stores b, size 64M");
    report_release(&r);
}

/* Of the first run. */
static void assert_said(const struct headlines *h, const char *pipe, const char *label,
                        const char *said, enum tone tone)
{
    const struct verdict *v = &line_of(h, pipe, label)->runs[0].verdict;

    assert_string_equal(verdict_said(v), said);
    assert_int_equal(v->tone, tone);
}

static void verdicts_are_plain(void **state)
{
    struct memory_case cases[8];

    memcpy(cases, memory_cases, sizeof(cases));
    write_memory(*state, cases, 8);
    struct report r = loaded(*state);
    struct headlines h = headlines_of(&r);

    assert_said(&h, "Caches", "triad in L1", "normal", TONE_NONE);
    assert_said(&h, "Memory", "triad",
                "normal; noisy: launches ended before their interval was as narrow as asked; "
                "because of a test",
                TONE_NONE);
    assert_said(&h, "Memory", "read", "not measured; because of a test", TONE_NONE);
    assert_said(&h, "Latency", "random load, page walks included", "no limit", TONE_NONE);
    report_release(&r);
}

/* Three launches of one case, of which one met the machine in a good state. */
static void write_ceilings(const struct fake_run *f, const char *kind)
{
    static const double values[] = {69.87, 41.94, 43.75}, limits[] = {97.75, 43.52, 44.30};
    struct writer w = begin(f, "memory", memory_params, 4);

    for (size_t i = 0; i < 3; i++) {
        struct row row = memory_row("1", i + 1, values[i]);

        row.limit = limits[i];
        row.percent_of_limit = 100 * values[i] / limits[i];
        row.limit_kind = kind;
        add(&w, &row, (const char *[]){"triad", "nt", "67108864", "DRAM"});
    }
    end(&w);
}

/* The ceilings of the others were as low as what they are held against. */
static void the_best_ceiling_of_a_run_counts(void **state)
{
    write_ceilings(*state, "measured");
    struct report r = loaded(*state);
    const struct report_point *p = only_point(&r);

    assert_near(p->limit, 97.75);
    assert_near(p->percent, 100 * p->value / 97.75);
    assert_true(p->percent < 60);
    assert_false(p->reference);
    report_release(&r);
}

/* A row whose limit is made of what was found at `loads`, and at `stores` where share is below 1. */
static bool slip; /* of rows that are added: noisy, and above the ceiling that was measured */

static void add_made_of(struct writer *w, const char *id, const char *op, const char *host,
                        const char *kind, double share, const char *loads, double load,
                        const char *stores, double store, double limit)
{
    struct row row = memory_row(id, 1, 10);

    row.host = host;
    row.limit = limit;
    row.limit_kind = kind;
    if (slip) {
        row.status = "noisy";
        row.limit_raised_from = 70;
    }
    row.ceiling_place = loads;
    row.ceiling = load;
    row.ceiling_share = share;
    row.ceiling_fill = 0;
    row.ceiling2_place = stores;
    row.ceiling2 = store;
    add(w, &row, (const char *[]){op, "nt", id, "DRAM"});
}

static double limit_of_case(const struct report *r, const char *size)
{
    for (size_t i = 0; i < r->benches[0].n_cases; i++)
        if (!strcmp(report_param(&r->benches[0], &r->benches[0].cases[i], "size"), size))
            return r->benches[0].cases[i].points[0].limit;
    fail_msg("no case of size %s", size);
    return NAN;
}

/* By hand: two thirds by loads at 112 and one by stores at 60 GB/s take 2/336 and 1/180 of a second. */
static void ceilings_of_one_place_are_shared(void **state)
{
    struct writer w = begin(*state, "memory", memory_params, 4);

    add_made_of(&w, "1", "read", "a", "reference", 1, "loads here", 73, "", NAN, 73);
    add_made_of(&w, "2", "triad", "a", "measured", 2 / 3., "loads here", 112, "nt", 50, 150);
    add_made_of(&w, "3", "write", "a", "reference", 0, "", NAN, "nt", 60, 60);
    add_made_of(&w, "4", "read", "a", "reference", 1, "loads there", 70, "", NAN, 70);
    add_made_of(&w, "5", "read", "b", "reference", 1, "loads here", 71, "", NAN, 71);
    add_made_of(&w, "6", "read", "a", "datasheet", 1, "loads here", 72, "", NAN, 200);
    add_made_of(&w, "7", "triad", "a", "measured", 2 / 3., "loads here", 80, "odd", NAN, 90);
    add_made_of(&w, "8", "copy", "a", "measured", 0.5, "loads here", 80, "far", 10, 20);
    add_made_of(&w, "9", "copy", "a", "measured", 0.5, "loads here", 80, "far", 10, 23);
    slip = true;
    add_made_of(&w, "10", "read", "a", "reference", 1, "loads there", 700, "", NAN, 700);
    slip = false;
    end(&w);
    struct report r = loaded(*state);

    assert_near(limit_of_case(&r, "1"), 112);
    assert_near(limit_of_case(&r, "2"), 168);
    assert_near(limit_of_case(&r, "3"), 60);
    assert_near(limit_of_case(&r, "4"),
                70); /* another place, and a slip there is for itself alone */
    assert_near(limit_of_case(&r, "5"), 71);  /* another machine */
    assert_near(limit_of_case(&r, "6"), 200); /* what the vendor says is not measured */
    assert_near(limit_of_case(&r, "7"), 90);  /* a part is unknown */
    assert_near(limit_of_case(&r, "8"), 23);  /* as its like was raised */
    report_release(&r);
}

/* The case of five launches of these values, whose ceilings are these. */
static const char *said_of(const struct fake_run *f, const double *values, const double *limits,
                           char *text, size_t len)
{
    struct writer w = begin(f, "memory", memory_params, 4);

    for (size_t i = 0; i < 5; i++) {
        struct row row = memory_row("1", i + 1, values[i]);

        row.limit = row.ceiling = limits[i];
        row.limit_kind = "measured";
        row.ceiling_place = "loads";
        row.ceiling_share = 1;
        row.ceiling_fill = 0;
        add(&w, &row, (const char *[]){"triad", "nt", "67108864", "DRAM"});
    }
    end(&w);
    struct report r = loaded(f);
    struct headlines h = headlines_of(&r);
    assert_near(only_point(&r)->limit, limits[4]);
    snprintf(text, len, "%s", verdict_said(&line_of(&h, "Memory", "triad")->runs[0].verdict));
    report_release(&r);
    return text;
}

static const char *said_of_ceilings(const struct fake_run *f, const double *limits, char *text,
                                    size_t len)
{
    return said_of(f, (double[]){80, 80, 80, 80, 80}, limits, text, len);
}

/* Values that follow their own ceilings tell of the machine, and not of what was tested. */
static void a_machine_that_changed_between_launches_is_told(void **state)
{
    char text[2048];

    assert_non_null(strstr(said_of(*state, (double[]){60, 61, 63, 60, 140},
                                   (double[]){80, 81, 83, 80, 175}, text, sizeof(text)),
                           "each launch reached 75 to 80 % of the ceiling measured beside it, and "
                           "that was 80.00 to 175.0 GB/s: the machine itself changed"));
}

static void values_that_do_not_follow_their_ceilings_tell_of_no_change(void **state)
{
    char text[2048];

    assert_null(strstr(said_of(*state, (double[]){60, 61, 120, 60, 61},
                               (double[]){80, 81, 83, 80, 175}, text, sizeof(text)),
                       "machine itself"));
}

static void near_ceilings_tell_of_no_change(void **state)
{
    char text[2048];

    assert_null(strstr(said_of(*state, (double[]){80, 85, 90, 84, 95},
                               (double[]){100, 106, 112, 105, 119}, text, sizeof(text)),
                       "machine itself"));
}

/* The last launch's own loads are the slowest, and those of another case the fastest of all. */
static void a_limit_of_another_case_names_it(void **state)
{
    struct writer w = begin(*state, "memory", memory_params, 4);

    add_made_of(&w, "1", "read", "a", "reference", 1, "loads here", 129, "", NAN, 129);
    add_made_of(&w, "2", "triad", "a", "measured", 2 / 3., "loads here", 62, "nt", 88, 94);
    end(&w);
    struct report r = loaded(*state);

    for (size_t i = 0; i < r.benches[0].n_cases; i++)
        assert_string_equal(r.benches[0].cases[i].points[0].limit_from,
                            r.benches[0].cases[i].points[0].limit > 150 ? "op read, size 1" : "");
    report_release(&r);
}

static void a_ceiling_of_one_launch_alone_is_noted(void **state)
{
    char text[1024];

    assert_non_null(strstr(
        said_of_ceilings(*state, (double[]){87, 82, 86, 85, 164}, text, sizeof(text)),
        "the limit, 164.0 GB/s, is of the best ceilings that the run measured; the median of the "
        "ceilings of this case is 86.00 GB/s"));
}

static void ceilings_that_are_near_are_not_noted(void **state)
{
    char text[1024];

    assert_null(strstr(said_of_ceilings(*state, (double[]){87, 82, 86, 85, 94}, text, sizeof(text)),
                       "best ceilings that the run"));
}

/* Two of three launches found another ceiling afterwards: said once, with the worst, and marked. */
static void unsteady_ceilings_are_one_note(void **state)
{
    static const double after[] = {95, 79, 126};
    struct writer w = begin(*state, "memory", memory_params, 4);
    char *text = NULL;
    size_t size;

    for (size_t i = 0; i < 3; i++) {
        struct row row = memory_row("1", i + 1, 50);

        row.limit = row.limit_before = 100;
        row.limit_after = after[i];
        row.limit_kind = "measured";
        add(&w, &row, (const char *[]){"triad", "nt", "67108864", "DRAM"});
    }
    for (size_t i = 0; i < 2; i++) { /* one that was steady, and one that a datasheet bounds */
        struct row row = memory_row(i ? "3" : "2", 1, 50);

        row.limit = 100;
        row.limit_kind = i ? "datasheet" : "measured";
        row.limit_before = row.limit_after = i ? NAN : 100;
        add(&w, &row, (const char *[]){i ? "copy" : "read", "nt", "67108864", "DRAM"});
    }
    end(&w);
    struct report r = loaded(*state);
    struct headlines h = headlines_of(&r);
    const struct headline_run *run = &line_of(&h, "Memory", "triad")->runs[0];
    FILE *out = open_memstream(&text, &size);

    assert_int_equal(run->point->n_unsteady, 2);
    assert_near(run->point->unsteady, 0.21);
    assert_non_null(strstr(verdict_said(&run->verdict), "; the ceilings of 1 of 2 cases"));
    assert_int_equal(report_summary(out, &r.runs[0]), 0);
    fclose(out);
    const char *note = strstr(text, ") the ceilings of 1 of 2 cases");
    assert_non_null(note);
    assert_non_null(strstr(note, "up to 21 %"));
    assert_null(strstr(note + 10, "the ceilings of"));
    free(text);
    report_release(&r);
}

/* The same figures where the loop is held against itself: shown, and not judged. */
static void a_reference_is_not_judged(void **state)
{
    write_ceilings(*state, "reference");
    struct report r = loaded(*state);
    struct headlines h = headlines_of(&r);
    const struct headline_run *run = &line_of(&h, "Memory", "triad")->runs[0];
    static const char begin[] =
        "not judged; ref.: a share of the best rate of the same work, which is no limit";

    assert_true(run->point->reference);
    assert_near(run->point->limit, 97.75);
    assert_memory_equal(verdict_said(&run->verdict), begin, sizeof(begin) - 1);
    assert_int_equal(run->verdict.tone, TONE_NONE);
    report_release(&r);
}

static void a_low_value_names_the_finding(void **state)
{
    struct memory_case low = {"triad", "nt", "67108864", "DRAM", "bandwidth", "GB/s", NULL, 6, 24};

    write_memory(*state, &low, 1);
    fake_run_write(
        *state, "run.json",
        "{\"schema\": 1, \"run\": \"one\", \"machine\": {\"host\": {\"clocksource\": \"hpet\"},"
        " \"memory\": {\"transparent_huge_pages\": {\"enabled\": \"never\"}}}}");
    struct report r = loaded(*state);
    struct headlines h = headlines_of(&r);

    assert_said(&h, "Memory", "triad",
                "low; memory: transparent huge pages are off: large buffers pay for small pages",
                TONE_LOW);
    report_release(&r);
}

/* Just below and just above 60 % of the limit, where "low" begins, with an interval across it. */
static void a_verdict_holds_for_the_whole_interval(void **state)
{
    static const double values[] = {14.3, 14.5};
    static const char *const ranges[] = {"59 % to 60.2 %", "59.8 % to 61 %"};

    for (int i = 0; i < 2; i++) {
        struct memory_case near = {"triad", "nt", "67108864", "DRAM", "bandwidth",
                                   "GB/s",  NULL, values[i],  24};

        write_memory(*state, &near, 1);
        struct report r = loaded(*state);
        struct headlines h = headlines_of(&r);

        assert_said(&h, "Memory", "triad", "undecided", TONE_NONE);
        assert_string_equal(line_of(&h, "Memory", "triad")->runs[0].verdict.range, ranges[i]);
        report_release(&r);
    }
}

#define ABOVE_LIMIT "the limit is too low, or the data did not take that path"

/* Neither low nor normal, however far from the threshold. */
static void one_launch_has_no_verdict(void **state)
{
    static const struct {
        double value;
        const char *said;
        enum tone tone;
    } all[] = {{6, "undecided; a single launch has no interval", TONE_NONE},
               {23, "undecided; a single launch has no interval", TONE_NONE},
               {30, "undecided; a single launch has no interval; " ABOVE_LIMIT, TONE_LOW}};

    for (int i = 0; i < 3; i++) {
        struct memory_case one = {"triad", "nt", "67108864",   "DRAM", "bandwidth",
                                  "GB/s",  NULL, all[i].value, 24};

        write_memory_launches(*state, &one, 1, 1);
        struct report r = loaded(*state);
        struct headlines h = headlines_of(&r);

        assert_said(&h, "Memory", "triad", all[i].said, all[i].tone);
        report_release(&r);
    }
}

static void above_the_limit_is_not_normal(void **state)
{
    struct memory_case high = {"triad", "nt", "67108864", "DRAM", "bandwidth",
                               "GB/s",  NULL, 30,         24};

    write_memory(*state, &high, 1);
    struct report r = loaded(*state);
    struct headlines h = headlines_of(&r);

    assert_said(&h, "Memory", "triad", "above limit; " ABOVE_LIMIT, TONE_LOW);
    report_release(&r);
}

static void wrong_data_is_the_worst(void **state)
{
    struct memory_case wrong = {"triad", "nt",    "67108864", "DRAM", "bandwidth",
                                "GB/s",  "wrong", 30,         24};

    write_memory(*state, &wrong, 1);
    struct report r = loaded(*state);
    struct headlines h = headlines_of(&r);
    const struct headline_run *run = &line_of(&h, "Memory", "triad")->runs[0];

    assert_int_equal(run->point->n_values, 0);
    assert_said(&h, "Memory", "triad", "wrong data; because of a test", TONE_BAD);
    report_release(&r);
}

static const char *const odd_params[] = {"colour", "speed", "depth"};

/* A benchmark that no rule knows: 3 colours, 2 depths, 5 speeds. */
static void write_odd(const struct fake_run *f, const char *origin)
{
    struct writer w = begin(f, "odd", odd_params, 3);
    unsigned id = 0;

    for (int colour = 0; colour < 3; colour++)
        for (int depth = 1; depth <= 2; depth++)
            for (int speed = 1; speed <= 16; speed *= 2) {
                char case_id[16], speed_text[16], depth_text[16];
                struct row row;

                snprintf(case_id, sizeof(case_id), "%u", ++id);
                snprintf(speed_text, sizeof(speed_text), "%d", speed);
                snprintf(depth_text, sizeof(depth_text), "%d", depth);
                fake_row_init(&row, case_id, 1, "pace", "furlong/s", speed + colour);
                row.origin = origin;
                add(&w, &row,
                    (const char *[]){(const char *[]){"red", "green", "blue"}[colour], speed_text,
                                     depth_text});
            }
    end(&w);
}

static struct figures *figures_of(struct report *r)
{
    struct figures *figures = pool_alloc(&r->pool, 1, sizeof(*figures));

    assert_non_null(figures);
    assert_int_equal(figures_make(r, figures), 0);
    return figures;
}

static void an_unknown_benchmark_is_reported(void **state)
{
    write_odd(*state, "simulated");
    struct report r = loaded(*state);
    struct headlines h = headlines_of(&r);
    struct figures *figures = figures_of(&r);
    const struct plot *plot = &figures->all[0].plot;

    assert_near(line_of(&h, "odd", "pace")->runs[0].point->value, 18);
    assert_said(&h, "odd", "pace", "simulated", TONE_NONE);
    assert_int_equal(figures->n, 1);
    assert_int_equal(plot->n_lines, 6);
    assert_string_equal(plot->x_label, "speed");
    assert_string_equal(plot->y_label, "pace (furlong/s)");
    assert_string_equal(plot->lines[0].label, "red, depth 1 (simulated)");
    assert_string_equal(plot->lines[5].label, "blue, depth 2 (simulated)");
    assert_int_equal(plot->lines[0].n, 5);
    assert_near(plot->lines[0].points[4].x, 16);
    assert_near(plot->lines[5].points[4].y, 18);
    assert_true(isnan(plot->lines[5].points[4].high)); /* of a single launch */
    assert_true(plot->x_log);
    assert_string_equal(plot->watermark, "simulated");
    report_release(&r);
}

/* 24 lines are too many for one plot: the parameter with the fewest values makes plots. */
static void too_many_lines_become_plots(void **state)
{
    struct writer w = begin(*state, "odd", odd_params, 3);
    unsigned id = 0;

    for (int colour = 0; colour < 12; colour++)
        for (int depth = 1; depth <= 2; depth++)
            for (int speed = 1; speed <= 16; speed++) {
                char texts[4][16];
                struct row row;

                snprintf(texts[0], 16, "%u", ++id);
                snprintf(texts[1], 16, "c%d", colour);
                snprintf(texts[2], 16, "%d", speed);
                snprintf(texts[3], 16, "%d", depth);
                fake_row_init(&row, texts[0], 1, "pace", "Mop/s", 1);
                add(&w, &row, (const char *[]){texts[1], texts[2], texts[3]});
            }
    end(&w);
    struct report r = loaded(*state);
    struct figures *figures = figures_of(&r);

    assert_int_equal(figures->n, 2);
    assert_string_equal(figures->all[0].subtitle, "depth 1");
    assert_string_equal(figures->all[1].subtitle, "depth 2");
    assert_int_equal(figures->all[1].plot.n_lines, 12);
    assert_string_equal(figures->all[0].plot.name, "odd-pace-1");
    assert_string_equal(figures->all[1].plot.name, "odd-pace-2");
    report_release(&r);
}

static void a_missing_value_breaks_the_line(void **state)
{
    struct memory_case cases[] = {
        {"triad", "nt", "16384", "L1", "bandwidth", "GB/s", NULL, 30, 0},
        {"triad", "nt", "65536", "L1", "bandwidth", "GB/s", "failed", NAN, 0},
        {"triad", "nt", "262144", "L1", "bandwidth", "GB/s", NULL, 31, 0},
    };

    write_memory(*state, cases, 3);
    struct report r = loaded(*state);
    const struct plot *plot = &figures_of(&r)->all[0].plot;

    assert_int_equal(plot->lines[0].n, 3);
    assert_true(isnan(plot->lines[0].points[1].y));
    assert_string_equal(plot->ticks[1].label, "64K");
    assert_string_equal(plot->x_label, "size (bytes)");
    report_release(&r);
}

static void square_products_have_an_axis_and_shapes_a_list(void **state)
{
    static const char *const shapes[][3] = {{"512", "512", "512"},
                                            {"1024", "1024", "1024"},
                                            {"512", "2304", "768"},
                                            {"512", "768", "3072"}};
    struct writer w = begin(*state, "gemm", gemm_params, 5);

    for (int i = 0; i < 8; i++) {
        char id[16];
        struct row row;

        snprintf(id, sizeof(id), "%d", i + 1);
        fake_row_init(&row, id, 1, "throughput", "TFLOP/s", 0.1 * (i + 1));
        add(&w, &row,
            (const char *[]){i < 4 ? "f32" : "f64", "onednn", shapes[i % 4][0], shapes[i % 4][1],
                             shapes[i % 4][2]});
    }
    end(&w);
    struct report r = loaded(*state);
    struct headlines h = headlines_of(&r);
    struct figures *figures = figures_of(&r);

    assert_int_equal(figures->n, 2);
    assert_string_equal(figures->all[0].plot.x_label, "m = n = k");
    assert_int_equal(figures->all[0].plot.n_lines, 2);
    assert_string_equal(figures->all[0].plot.lines[0].label, "f32");
    assert_int_equal(figures->all[0].plot.lines[0].n, 2);
    assert_true(figures->all[1].plot.categories);
    assert_string_equal(figures->all[1].plot.ticks[0].label, "512x2304x768, f32");
    assert_string_not_equal(figures->all[0].plot.name, figures->all[1].plot.name);
    assert_string_equal(line_of(&h, "Matrix core", "f32")->runs[0].what, "512x768x3072");
    assert_near(line_of(&h, "Matrix core", "f64")->runs[0].point->value, 0.8);
    report_release(&r);
}

static void runs_stand_side_by_side(void **state)
{
    struct fake_run other;
    const char *paths[2];
    struct report r;
    char error[512] = "";

    fake_run_init(&other);
    write_memory(*state, memory_cases, 8);
    write_memory(&other, memory_cases, 4);
    paths[0] = ((struct fake_run *)*state)->path;
    paths[1] = other.path;
    assert_int_equal(report_load(&r, paths, 2, error, sizeof(error)), 0);
    struct headlines h = headlines_of(&r);
    const struct headline *latency = line_of(&h, "Latency", "random load, page walks included");

    assert_string_equal(r.names[0], "one");
    assert_string_equal(r.names[1], "one (2)");
    assert_int_equal(r.benches[0].n_cases, 8);
    assert_near(line_of(&h, "Memory", "triad")->runs[0].point->value, 18);
    assert_near(line_of(&h, "Memory", "triad")->runs[1].point->value, 12);
    assert_null(latency->runs[1].best);
    assert_string_equal(verdict_said(&latency->runs[1].verdict),
                        "not measured; this run has no such case");
    assert_true(figures_of(&r)->all[0].plot.lines[1].dashed);
    report_release(&r);
    fake_run_release(&other);
}

/* A machine with less memory was measured at a smaller size: its own largest is what counts. */
static void each_run_has_its_own_largest_size(void **state)
{
    static const struct memory_case small[] = {
        {"triad", "nt", "1048576", "DRAM", "bandwidth", "GB/s", NULL, 20, 24},
        {"triad", "nt", "33554432", "DRAM", "bandwidth", "GB/s", NULL, 6, 24},
    };
    struct fake_run other;
    struct report r;
    char error[512] = "";

    fake_run_init(&other);
    write_memory(*state, memory_cases, 8);
    write_memory(&other, small, 2);
    const char *paths[] = {((struct fake_run *)*state)->path, other.path};
    assert_int_equal(report_load(&r, paths, 2, error, sizeof(error)), 0);
    struct headlines h = headlines_of(&r);
    const struct headline_run *runs = line_of(&h, "Memory", "triad")->runs;

    assert_near(runs[0].point->value, 18);
    assert_non_null(runs[1].best);
    assert_near(runs[1].point->value, 6); /* not the 20 of a smaller size */
    assert_int_equal(runs[1].candidates, 1);
    assert_non_null(strstr(runs[1].what, "size 32M"));
    assert_int_equal(runs[1].verdict.kind, VERDICT_LOW);
    report_release(&r);
    fake_run_release(&other);
}

static char *read_file(const struct fake_run *f, const char *name)
{
    struct buffer text = {0};
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    if (file_read(path, 64u << 20, &text))
        fail_msg("cannot read %s", path);
    return text.text;
}

static const char *made(const struct fake_run *f)
{
    const char *paths[] = {f->path};
    char error[512] = "";

    if (report_make(paths, 1, NULL, error, sizeof(error)))
        fail_msg("%s", error);
    return f->path;
}

static bool has_gnuplot(void)
{
    return !access("/usr/bin/gnuplot", X_OK) || !access("/usr/local/bin/gnuplot", X_OK);
}

static void the_page_is_written_whole(void **state)
{
    write_memory(*state, memory_cases, 8);
    made(*state);
    char *page = read_file(*state, "report.html");

    assert_non_null(strstr(page, "<!doctype html>"));
    assert_non_null(strstr(page, "</html>"));
    assert_non_null(strstr(page, ">18.00 GB/s</td>"));
    assert_non_null(strstr(page, "not measured"));
    assert_non_null(strstr(page, "because of a test"));
    assert_null(strstr(page, "src="));
    assert_null(strstr(page, "url("));
    free(page);
    if (!has_gnuplot())
        skip();
    char *svg = read_file(*state, "plots/memory-bandwidth.svg");
    assert_non_null(strstr(svg, "bandwidth (GB/s)"));
    free(svg);
    char *png = read_file(*state, "plots/memory-bandwidth.png");
    assert_memory_equal(png, "\x89PNG", 4);
    free(png);
    char *script = read_file(*state, "plots/plots.gp");
    assert_non_null(strstr(script, "memory-bandwidth.svg"));
    free(script);
}

static void without_gnuplot_the_page_is_whole(void **state)
{
    const char *old = getenv("PATH");
    char *path = strdup(old ? old : "/usr/bin:/bin");

    write_memory(*state, memory_cases, 8);
    setenv("PATH", "/nowhere", 1);
    made(*state);
    setenv("PATH", path, 1);
    free(path);
    char *page = read_file(*state, "report.html");
    assert_non_null(strstr(page, "there is no gnuplot: install the package gnuplot-nox"));
    assert_non_null(strstr(page, ">18.00 GB/s</td>"));
    assert_non_null(strstr(page, "<figure id='plot-memory-bandwidth'>"));
    assert_null(strstr(page, "memory-bandwidth.png"));
    free(page);
}

/* Only what says something of a row that is listed is a column; a range is one cell. */
static void the_ledger_has_the_columns_it_needs(void **state)
{
    struct writer w = begin(*state, "memory", memory_params, 4);
    struct row row = memory_row("1", 1, 18);

    row.disturbed = "steal 2.0 %";
    row.ledger.steal_percent = 2;
    row.ledger.throttle_events = 0;
    row.ledger.quota_throttled_ms = NAN;
    row.ledger.cpu_mhz_low = 1500;
    row.ledger.cpu_mhz_high = 3000;
    row.gpu.temperature_c = NAN;
    add(&w, &row, triad);
    row = memory_row("1", 2, 18); /* is not listed */
    row.gpu.temperature_c = 70;
    add(&w, &row, triad);
    end(&w);
    made(*state);
    char *page = read_file(*state, "report.html");
    char *ledger = strstr(page, "Noise ledger");
    assert_non_null(ledger);
    assert_non_null(strstr(ledger, "<th scope='col'>steal, %</th>"));
    assert_non_null(strstr(ledger, "<td>1500 to 3000</td>"));
    assert_null(strstr(ledger, "<th scope='col'>throttled, times</th>"));
    assert_null(strstr(ledger, "<th scope='col'>quota, ms</th>"));
    assert_null(strstr(ledger, "<th scope='col'>GPU, \302\260C</th>"));
    free(page);
}

static void numbers_are_read_by_people(void **state)
{
    struct pool pool = {0};

    (void)state;
    assert_string_equal(document_percent(&pool, 29123), "29123 %"); /* no exponent */
    assert_string_equal(document_percent(&pool, 999.6), "1000 %");
    assert_string_equal(document_percent(&pool, 999.4), "999 %");
    assert_string_equal(document_percent(&pool, 9.94), "9.9 %");
    assert_string_equal(show_count(&pool, 1, "row"), "1 row");
    assert_string_equal(show_count(&pool, 0, "row"), "0 rows");
    assert_string_equal(show_count(&pool, 2, "row"), "2 rows");
    pool_release(&pool);
}

static const char *const net_params[] = {"transport", "pattern", "size", "node", "peer_node"};

/* A launch that died says no metric: which headlines it belongs to follows from its parameters. */
static void a_failed_launch_is_in_the_headlines_of_its_own_kind(void **state)
{
    static const char *const own[][3] = {
        {"bandwidth", "Network", "tcp"},
        {"latency", "Network latency", "smallest message by tcp"},
        {"loaded-latency", "Network latency", "under load, by tcp"},
        {"rate", "Network rate", "messages by tcp"}};

    for (size_t i = 0; i < 4; i++) {
        struct writer w = begin(*state, "net", net_params, 5);
        struct row row;

        fake_row_init(&row, "1", 1, "", "", NAN);
        row.status = "failed";
        row.reason = "cannot reach 'gone'";
        row.samples = 0;
        add(&w, &row, (const char *[]){"tcp", own[i][0], "64", "", ""});
        end(&w);
        struct report r = loaded(*state);
        struct headlines h = headlines_of(&r);
        assert_int_equal(h.n, 1);
        assert_said(&h, own[i][1], own[i][2], "failed; cannot reach 'gone'", TONE_BAD);
        report_release(&r);
    }
}

static void add_net(struct writer *w, const char *id, const char *metric, double value,
                    const char *size, const char *node, const char *disturbed)
{
    struct row row;

    fake_row_init(&row, id, 1, metric, "us", value);
    row.disturbed = disturbed;
    add(w, &row, (const char *[]){"tcp", "latency", size, node, "near"});
}

/* 0 everywhere is a line, and so is a case that would have a plot of its own. */
static void what_a_line_says_is_no_plot(void **state)
{
    struct writer w = begin(*state, "net", net_params, 5);

    add_net(&w, "1", "latency", 8, "8", "near", "");
    add_net(&w, "2", "latency", 9, "64", "near", "steal 2.0 %");
    add_net(&w, "3", "latency", 9, "64", "far", "");
    add_net(&w, "4", "retransmits", 0, "8", "near", "");
    add_net(&w, "5", "retransmits", 0, "64", "near", "");
    add_net(&w, "6", "losses", 0, "8", "near", "");
    add_net(&w, "7", "losses", 1, "64", "near", "");
    end(&w);
    struct report r = loaded(*state);
    struct figures *figures = figures_of(&r);
    assert_int_equal(figures->n, 2); /* latency and losses, one of which is not 0 */
    assert_string_equal(figures->all[0].plot.name, "net-latency");
    assert_string_equal(figures->all[1].plot.name, "net-losses");
    assert_int_equal(figures->n_words, 1);
    assert_string_equal(figures->words[0].metric, "retransmits");
    assert_string_equal(figures->words[0].value, "0 in all 2 cases");
    report_release(&r);
    made(*state);
    char *page = read_file(*state, "report.html");
    assert_non_null(strstr(page, "0 in all 2 cases"));
    /* Not what all cases share, and the name where the value alone could be another's. */
    assert_non_null(strstr(page, "<td class='text'>latency: size 64, near</td>"));
    free(page);
}

/* 13 lines are too many for one plot, and the parameter that makes two leaves one case alone. */
static void a_plot_of_one_case_is_a_line(void **state)
{
    struct writer w = begin(*state, "odd", odd_params, 3);

    for (int i = 0; i < 12 * 4 + 1; i++) {
        char texts[3][16];
        struct row row;

        snprintf(texts[0], 16, "%d", i + 1);
        snprintf(texts[1], 16, "c%d", i / 4 % 12);
        snprintf(texts[2], 16, "%d", i % 4 + 1);
        fake_row_init(&row, texts[0], 1, "pace", "Mop/s", i + 1);
        add(&w, &row, (const char *[]){texts[1], texts[2], i < 48 ? "1" : "2"});
    }
    end(&w);
    struct report r = loaded(*state);
    struct figures *figures = figures_of(&r);
    assert_int_equal(figures->n, 1);
    assert_int_equal(figures->all[0].plot.n_lines, 12);
    assert_int_equal(figures->n_words, 1);
    assert_string_equal(figures->words[0].value, "49.00 Mop/s");
    assert_non_null(strstr(figures->words[0].subtitle, "speed 1"));
    assert_non_null(strstr(figures->words[0].subtitle, "depth 2"));
    report_release(&r);
}

#define HOSTILE "</script><script>alert(1)</script>\"'`touch /tmp/plumb-test-pwned`<img src=x>&"

/* Texts that try to be markup, script, a shell command, or gnuplot. */
static void no_text_breaks_out(void **state)
{
    struct writer w = begin(*state, "odd", odd_params, 3);

    for (int i = 0; i < 6; i++) {
        char id[16], speed[16];
        struct row row;

        snprintf(id, sizeof(id), "%d", i + 1);
        snprintf(speed, sizeof(speed), "%d", i / 2);
        fake_row_init(&row, id, 1, "'; system('touch /tmp/plumb-test-pwned'); '", "<u>", i + 1);
        row.reason = row.host = row.disturbed = HOSTILE "\x1b[31m\xff\xfe";
        row.status = i == 4 ? "failed" : "ok";
        add(&w, &row, (const char *[]){i % 2 ? HOSTILE : "plain", speed, "1"});
    }
    end(&w);
    fake_run_write(*state, "run.json",
                   "{\"schema\": 1, \"run\": \"</title><script>alert(3)</script>\", \"machine\": "
                   "{\"host\": {\"hostname\": \"<img src=x>\", \"clocksource\": "
                   "\"<script>alert(4)</script>\"}}, "
                   "\"command\": [\"plumb\", \"run\", \"a'b`c\"], \"config\": \"</pre><script>\"}");
    unlink("/tmp/plumb-test-pwned");
    made(*state);
    assert_int_not_equal(access("/tmp/plumb-test-pwned", F_OK), 0);
    char *page = read_file(*state, "report.html");
    size_t scripts = 0;
    for (const char *at = page; (at = strstr(at, "<script")); at++)
        scripts++;
    assert_int_equal(scripts, 2); /* the data and the program */
    assert_null(strstr(page, "<img"));
    assert_null(strstr(page, "\x1b"));
    assert_null(strstr(page, "\xff"));
    assert_non_null(strstr(page, "plumb run &#39;a&#39;\\&#39;&#39;b`c&#39;"));
    if (has_gnuplot())
        assert_non_null(strstr(page, "<figure"));
    free(page);
}

static void an_old_page_stays_when_a_new_one_cannot_be_made(void **state)
{
    const struct fake_run *f = *state;
    const char *paths[] = {f->path};
    char error[512] = "";

    write_memory(f, memory_cases, 8);
    fake_run_write(f, "report.html", "old");
    fake_run_append(f, "memory.csv", "torn,row\n");
    assert_int_equal(report_make(paths, 1, NULL, error, sizeof(error)), -EBADMSG);
    assert_non_null(strstr(error, "memory.csv\" is damaged"));
    char *page = read_file(f, "report.html");
    assert_string_equal(page, "old");
    free(page);
}

/* No file may grow beyond 4000 bytes: the page does not fit. */
static void a_page_that_does_not_fit_leaves_the_old_one(void **state)
{
    const struct fake_run *f = *state;
    const char *paths[] = {f->path};
    struct rlimit old, small;
    char error[512] = "";
    int err;

    write_memory(f, memory_cases, 8);
    fake_run_write(f, "report.html", "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){4000, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    err = report_make(paths, 1, NULL, error, sizeof(error));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(err, -EFBIG);
    assert_non_null(strstr(error, "cannot write \""));
    char *page = read_file(f, "report.html");
    assert_string_equal(page, "old");
    free(page);
}

static void refuses_what_it_cannot_place(void **state)
{
    const char *paths[] = {"/nowhere/a", "/nowhere/b"};
    char error[512] = "";

    (void)state;
    assert_int_equal(report_make(paths, 2, NULL, error, sizeof(error)), -EINVAL);
    assert_non_null(strstr(error, "--out"));
    assert_int_equal(report_make(paths, 1, NULL, error, sizeof(error)), -ENOENT);
    assert_string_equal(error, "there is no run folder \"/nowhere/a\"");
}

static void the_summary_is_a_table(void **state)
{
    char *text = NULL, error[512] = "";
    size_t size;
    struct run_folder run;
    FILE *out = open_memstream(&text, &size);

    write_memory(*state, memory_cases, 8);
    assert_int_equal(run_folder_load(((struct fake_run *)*state)->path, &run, error, 512), 0);
    assert_int_equal(report_summary(out, &run), 0);
    fclose(out);
    assert_non_null(strstr(text, "\nMemory "));
    assert_non_null(strstr(text, "18.00 GB/s"));
    assert_non_null(strstr(text, "  +/- 1 %  "));
    assert_non_null(strstr(text, "  75 %  normal"));
    assert_null(strstr(text, "75 % of the limit")); /* the line says it */
    assert_non_null(strstr(text, "not in this run: Matrix core, Copies\n"));
    assert_int_equal(run.n_benches, 1); /* still the caller's */
    run_folder_release(&run);
    free(text);
}

/* A machine that does not tell its caches: they were measured, and it is not known which is which. */
static void rows_without_a_headline_are_not_told_as_missing(void **state)
{
    static const char *const unknown[] = {"triad", "regular", "65536", ""};
    char *text = NULL, error[512] = "";
    size_t size;
    struct run_folder run;
    FILE *out = open_memstream(&text, &size);
    struct writer w = begin(*state, "memory", memory_params, 4);
    struct row row = memory_row("1", 1, 18);

    add(&w, &row, unknown);
    end(&w);
    assert_int_equal(run_folder_load(((struct fake_run *)*state)->path, &run, error, 512), 0);
    assert_int_equal(report_summary(out, &run), 0);
    fclose(out);
    assert_non_null(strstr(text, "not in this run: Matrix core, Copies\n"));
    assert_non_null(strstr(text, "not tested by the rows here: Caches, Latency\n"));
    run_folder_release(&run);
    free(text);
}

static void a_page_says_whether_rows_are_there_or_only_no_headline(void **state)
{
    static const char *const unknown[] = {"latency", "", "65536", ""};
    static const char none[] = "There is no row to take a headline from";
    static const char unheaded[] = "No headline is taken from these rows: the report lists them";
    struct writer w = begin(*state, "memory", memory_params, 4);
    struct row row = memory_row("1", 1, 18);

    add(&w, &row, unknown);
    end(&w);
    made(*state);
    char *page = read_file(*state, "report.html");
    assert_non_null(strstr(page, unheaded));
    assert_null(strstr(page, none));
    free(page);
    w = begin(*state, "memory", memory_params, 4);
    end(&w);
    made(*state);
    page = read_file(*state, "report.html");
    assert_non_null(strstr(page, none));
    assert_null(strstr(page, unheaded));
    free(page);
}

/* A number, none, not known and why, and a probe that was silent. */
static void limits_of_the_machine_are_told(void **state)
{
    static const struct {
        const char *limits, *want;
    } cases[] = {
        {"{\"cpu_quota\": \"none\", \"memory_bytes\": \"none\", \"allowed_cpus\": \"0-3\"}",
         "no CPU quota, no memory limit, CPUs 0-3 may be used"},
        {"{\"cpu_quota\": 2.5, \"memory_bytes\": 8589934592}",
         "CPU quota: 2.5 CPUs, memory limit: 8 GiB"},
        {"{\"cpu_quota\": null, \"cpu_quota_why\": \"a reason\", \"memory_bytes\": \"none\"}",
         "CPU quota not known: a reason, no memory limit"},
        {"{}", "not recorded"},
    };
    char text[512], cell[256];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        write_memory(*state, memory_cases, 8);
        snprintf(text, sizeof(text),
                 "{\"schema\": 1, \"run\": \"one\", \"machine\": {\"virtualization\": {\"limits\": "
                 "%s}}}\n",
                 cases[i].limits);
        fake_run_write(*state, "run.json", text);
        made(*state);
        char *page = read_file(*state, "report.html");
        snprintf(cell, sizeof(cell), "limits of CPU time and memory</th><td data-run='one'>%s</td>",
                 cases[i].want);
        if (!strstr(page, cell))
            fail_msg("case %zu: no '%s'", i, cell);
        free(page);
    }
}

/* On the 100 columns of what is no terminal: nothing is cut, the judgement stays in the line. */
static void the_summary_fits_the_line(void **state)
{
    static const char *const long_level[] = {"triad", "regular", "65536",
                                             "a level whose name is far too long for one line"};
    struct writer w = begin(*state, "memory", memory_params, 4);
    struct row row = memory_row("1", 1, 18);
    struct run_folder run;
    char *text = NULL, error[512] = "";
    size_t size;
    FILE *out = open_memstream(&text, &size);

    row.limit = 24;
    row.percent_of_limit = 75;
    row.status = "noisy";
    row.reason =
        "the first remark of a row that has a lot to say; the second remark, which is long, "
        "too, and ends with a figure: 123456.789";
    add(&w, &row, long_level);
    end(&w);
    assert_int_equal(run_folder_load(((struct fake_run *)*state)->path, &run, error, 512), 0);
    assert_int_equal(report_summary(out, &run), 0);
    fclose(out);
    assert_non_null(strstr(text, "  75 %  undecided ("));
    assert_non_null(strstr(text, "the first remark"));
    assert_non_null(strstr(text, "123456.789\n"));
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
        if (strcspn(at, "\n") > 100)
            fail_msg("too long: %.*s", (int)strcspn(at, "\n"), at);
    run_folder_release(&run);
    free(text);
}

static char *escaped(void (*write)(FILE *, const char *), const char *text)
{
    char *result = NULL;
    size_t size;
    FILE *out = open_memstream(&result, &size);

    write(out, text);
    fclose(out);
    return result;
}

static void assert_escaped(void (*write)(FILE *, const char *), const char *text,
                           const char *expected)
{
    char *result = escaped(write, text);

    assert_string_equal(result, expected);
    free(result);
}

static void escapes_texts(void **state)
{
    (void)state;
    assert_escaped(html_text, "a<b>&\"'c", "a&#60;b&#62;&#38;&#34;&#39;c");
    assert_escaped(html_text, "caf\xc3\xa9\n\x01\xc2\x85", "caf\xc3\xa9   ");
    assert_escaped(html_text, "\xff\xc0\x80\xed\xa0\x80",
                   UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT
                       UTF8_REPLACEMENT UTF8_REPLACEMENT);
    assert_escaped(html_json_string, "</script>\\\"&",
                   "\"\\u003c/script\\u003e\\u005c\\u0022\\u0026\"");
}

static void tells_utf8(void **state)
{
    (void)state;
    assert_int_equal(utf8_length("a"), 1);
    assert_int_equal(utf8_length(""), 0);
    assert_int_equal(utf8_length("\xc3\xa9"), 2);
    assert_int_equal(utf8_length("\xe2\x82\xac"), 3);
    assert_int_equal(utf8_length("\xf0\x9f\x98\x80"), 4);
    assert_int_equal(utf8_length("\xc1\xbf"), 0);         /* overlong */
    assert_int_equal(utf8_length("\xe0\x9f\xbf"), 0);     /* overlong */
    assert_int_equal(utf8_length("\xed\xa0\x80"), 0);     /* a surrogate */
    assert_int_equal(utf8_length("\xf4\x90\x80\x80"), 0); /* over 10FFFF */
    assert_int_equal(utf8_length("\xe2\x82"), 0);         /* cut off */
    assert_int_equal(utf8_length("\x80"), 0);
}

static void shows_numbers(void **state)
{
    struct pool pool = {0};

    (void)state;
    assert_string_equal(document_number(&pool, NAN), "");
    assert_string_equal(document_number(&pool, 0), "0");
    assert_string_equal(document_number(&pool, 0.012345), "0.01235");
    assert_string_equal(document_number(&pool, 1.23456), "1.235");
    assert_string_equal(document_number(&pool, 12.3456), "12.35");
    assert_string_equal(document_number(&pool, 123.456), "123.5");
    assert_string_equal(document_number(&pool, 123456), "123456");
    assert_string_equal(document_number(&pool, 1.5e9), "1.5e+09");
    assert_string_equal(document_number(&pool, -12.3456), "-12.35");
    assert_string_equal(document_percent(&pool, 91.66), "91.7 %");
    assert_string_equal(document_percent(&pool, 0.4321), "0.43 %");
    assert_string_equal(document_percent(&pool, NAN), "");
    pool_release(&pool);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(few_launches_bear_students_interval),
        TEST(one_launch_has_no_interval),
        TEST(many_launches_bear_an_interval),
        TEST(launches_on_two_levels_are_told),
        TEST(samples_on_two_levels_are_told),
        TEST(a_wrong_launch_has_no_levels),
        TEST(wrong_launches_have_no_value),
        TEST(launches_without_intervals_bear_one),
        TEST(headlines_take_the_best_at_the_right_place),
        TEST(the_best_latency_is_the_lowest),
        TEST(verdicts_are_plain),
        TEST(the_best_ceiling_of_a_run_counts),
        TEST(ceilings_of_one_place_are_shared),
        TEST(a_ceiling_of_one_launch_alone_is_noted),
        TEST(a_machine_that_changed_between_launches_is_told),
        TEST(values_that_do_not_follow_their_ceilings_tell_of_no_change),
        TEST(near_ceilings_tell_of_no_change),
        TEST(a_limit_of_another_case_names_it),
        TEST(ceilings_that_are_near_are_not_noted),
        TEST(unsteady_ceilings_are_one_note),
        TEST(a_reference_is_not_judged),
        TEST(a_low_value_names_the_finding),
        TEST(a_verdict_holds_for_the_whole_interval),
        TEST(one_launch_has_no_verdict),
        TEST(above_the_limit_is_not_normal),
        TEST(wrong_data_is_the_worst),
        TEST(an_unknown_benchmark_is_reported),
        TEST(too_many_lines_become_plots),
        TEST(a_missing_value_breaks_the_line),
        TEST(square_products_have_an_axis_and_shapes_a_list),
        TEST(runs_stand_side_by_side),
        TEST(each_run_has_its_own_largest_size),
        TEST(the_page_is_written_whole),
        TEST(without_gnuplot_the_page_is_whole),
        TEST(the_ledger_has_the_columns_it_needs),
        TEST(a_failed_launch_is_in_the_headlines_of_its_own_kind),
        TEST(what_a_line_says_is_no_plot),
        TEST(a_plot_of_one_case_is_a_line),
        TEST(numbers_are_read_by_people),
        TEST(no_text_breaks_out),
        TEST(an_old_page_stays_when_a_new_one_cannot_be_made),
        TEST(a_page_that_does_not_fit_leaves_the_old_one),
        TEST(the_summary_is_a_table),
        TEST(rows_without_a_headline_are_not_told_as_missing),
        TEST(the_summary_fits_the_line),
        TEST(a_page_says_whether_rows_are_there_or_only_no_headline),
        TEST(limits_of_the_machine_are_told),
        cmocka_unit_test(refuses_what_it_cannot_place),
        cmocka_unit_test(escapes_texts),
        cmocka_unit_test(tells_utf8),
        cmocka_unit_test(shows_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
