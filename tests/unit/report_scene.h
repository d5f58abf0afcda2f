/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is made up row by row, and what the report makes of it. */
#ifndef PLUMB_TESTS_REPORT_SCENE_H
#define PLUMB_TESTS_REPORT_SCENE_H

#include "harness/report/headline.h"
#include "harness/report/report.h"
#include "harness/report/series.h"
#include "tests/unit/told_run.h"
#include "tests/unit/verdict_said.h"

/* The rows of a run, written one by one. */
struct scene {
    struct fake_run f;
    FILE *rows, *plan;
    const char *bench, *const *params;
    unsigned cases;
    bool launched; /* FAKE_LAUNCHES times, each, so that there is an interval */
    char number[16];
    struct report r;
    struct headlines h;
    struct figures figures;
};

static inline int make_folder(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));

    fake_run_init(&s->f);
    *state = s;
    return 0;
}

static inline int remove_folder(void **state)
{
    struct scene *s = *state;

    report_release(&s->r);
    fake_run_release(&s->f);
    free(s);
    return 0;
}

static inline size_t count(const char *const *names)
{
    size_t n = 0;

    while (names[n])
        n++;
    return n;
}

/* Rows of another benchmark, in the same run. */
static inline void go_on(struct scene *s, const char *bench, const char *const *params)
{
    char name[64];

    if (s->rows)
        fclose(s->rows);
    s->bench = bench;
    s->params = params;
    snprintf(name, sizeof(name), "%s.csv", bench);
    s->rows = fake_run_open(&s->f, name, "w");
    row_print_csv_header(s->rows, params, count(params));
}

/* A run anew. */
static inline void begin(struct scene *s, bool launched, const char *bench,
                         const char *const *params)
{
    report_release(&s->r);
    s->r = (struct report){0};
    s->cases = 0;
    s->launched = launched;
    told_write(&s->f, "\"machine\": {}");
    s->plan = fake_run_open(&s->f, "plan.csv", "w");
    fputs(FAKE_PLAN_HEADER, s->plan);
    go_on(s, bench, params);
}

static inline void load(struct scene *s)
{
    const char *paths[] = {s->f.path};
    char error[512] = "";

    fclose(s->rows);
    fclose(s->plan);
    s->rows = NULL;
    if (report_load(&s->r, paths, 1, error, sizeof(error)))
        fail_msg("%s", error);
    headlines_make(&s->r, &s->h);
    figures_make(&s->r, &s->figures);
}

static inline struct row row_of(struct scene *s, const char *metric, const char *unit, double value)
{
    struct row row;

    snprintf(s->number, sizeof(s->number), "%u", ++s->cases);
    fake_row_init(&row, s->number, 1, metric, unit, value);
    return row;
}

/* Of another launch of the case. */
static inline struct row launch_of(struct scene *s, uint64_t repeat, const char *metric,
                                   const char *unit, double value)
{
    s->cases -= repeat > 1;
    struct row row = row_of(s, metric, unit, value);

    row.repeat = repeat;
    return row;
}

/* A row with these values of its parameters, which blanks part; "" behind those that are given, and for "-". */
static inline void add(struct scene *s, struct row *row, const char *values)
{
    double value = row->value, percent = row->percent_of_limit;
    char text[256], *next, *at = strcpy(text, values);

    row->param_names = s->params;
    row->n_params = count(s->params);
    for (size_t i = 0; i < row->n_params; i++) {
        next = strsep(&at, " ");
        row->params[i] = next && strcmp(next, "-") != 0 ? next : "";
    }
    for (unsigned i = 0; i < (s->launched ? FAKE_LAUNCHES : 1); i++) {
        row->repeat += i > 0;
        row->value = s->launched ? fake_launch(value, i) : value;
        row->percent_of_limit = percent * row->value / value;
        row_print_csv(s->rows, row);
        fprintf(s->plan, "done,0001,1,%s,%llu,%s,,60\n", row->case_id,
                (unsigned long long)row->repeat, s->bench);
    }
}

/* A row of this value, limit and status; NULL: ok. */
static inline void put(struct scene *s, const char *metric, double value, double limit,
                       const char *status, const char *values)
{
    struct row row = row_of(s, metric, "x/s", value);

    row.unit = !strcmp(metric, "throughput")  ? "TFLOP/s"
               : !strcmp(metric, "bandwidth") ? (!strcmp(s->bench, "net") ? "Gb/s" : "GB/s")
               : !strcmp(metric, "latency")   ? "us"
                                              : "";
    row.limit = limit;
    row.percent_of_limit = 100 * value / limit;
    row.status = status ? status : "ok";
    row.reason = status ? "a reason" : "";
    add(s, &row, values);
}

/* The headline in the first run. */
static inline const struct headline_run *run_of(const struct scene *s, const char *pipe,
                                                const char *label)
{
    for (size_t i = 0; i < s->h.n; i++)
        if (!strcmp(s->h.all[i].pipe, pipe) && !strcmp(s->h.all[i].label, label))
            return s->h.all[i].runs;
    fail_msg("no headline %s, %s", pipe, label);
    return NULL;
}

static inline const struct verdict *verdict_of(const struct scene *s, const char *pipe,
                                               const char *label)
{
    return &run_of(s, pipe, label)->verdict;
}

/* Each of the texts, which '|' parts; those behind '!' are not said. */
static inline void says(struct scene *s, const char *pipe, const char *label, const char *texts)
{
    const char *said = verdict_said(verdict_of(s, pipe, label));
    char copy[512], *at = strcpy(copy, texts);

    for (char *text; (text = strsep(&at, "|"));)
        if (*text == '!' ? strstr(said, text + 1) != NULL : !strstr(said, text))
            fail_msg("'%s', of: %s", text, said);
}

static inline void near(double x, double y)
{
    if (!(fabs(x - y) <= 1e-6 * fabs(y))) /* NaN is near nothing */
        fail_msg("%g is not %g", x, y);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

#endif
