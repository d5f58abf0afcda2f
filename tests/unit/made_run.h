/* SPDX-License-Identifier: Apache-2.0 */
/* A run of one benchmark that is made up row by row, and what a report makes of it: for tests of the report's judgement. */
#ifndef PLUMB_TESTS_MADE_RUN_H
#define PLUMB_TESTS_MADE_RUN_H

#include "harness/document/document.h"
#include "harness/report/headline.h"
#include "harness/report/report.h"
#include "harness/report/summary.h"
#include "tests/unit/told_run.h"
#include "tests/unit/unit.h"

struct scene {
    struct fake_run f;
    FILE *rows, *plan;
    unsigned cases;
    struct report r;
    struct headlines h;
};

static inline void scene_begin(struct scene *s, const char *bench, const char *const *params,
                               size_t n)
{
    char name[64];

    *s = (struct scene){.cases = 0};
    fake_run_init(&s->f);
    told_write(&s->f, "\"machine\": {}");
    s->plan = fake_run_open(&s->f, "plan.csv", "w");
    fputs(FAKE_PLAN_HEADER, s->plan);
    snprintf(name, sizeof(name), "%s.csv", bench);
    s->rows = fake_run_open(&s->f, name, "w");
    row_print_csv_header(s->rows, params, n);
}

static inline void scene_row(struct scene *s, struct row *row, const char *const *params,
                             const char *const *values, size_t n)
{
    row->param_names = params;
    row->n_params = n;
    memcpy(row->params, values, n * sizeof(*values));
    row_print_csv(s->rows, row);
}

static inline void scene_read(struct scene *s)
{
    const char *paths[] = {s->f.path};
    char error[512] = "";

    fclose(s->rows);
    fclose(s->plan);
    if (report_load(&s->r, paths, 1, error, sizeof(error)))
        fail_msg("%s", error);
    headlines_make(&s->r, &s->h);
}

/* All that the answers say, as Markdown; to be freed. */
static inline char *scene_answers(struct scene *s)
{
    struct document *d = document_new(&s->r.pool);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    summary_answers(&s->r, &s->h, 0, false, d);
    assert_int_equal(document_write_markdown(d, out), 0);
    fclose(out);
    return text;
}

static inline void scene_release(struct scene *s)
{
    report_release(&s->r);
    fake_run_release(&s->f);
}

#endif
