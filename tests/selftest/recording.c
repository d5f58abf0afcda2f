/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/selftest/recording.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "core/units.h"
#include "harness/store/run_folder.h"

/* Where a launch's samples stand. */
struct place {
    const char *bench, *case_id, *repeat;
    size_t row;
};

static void *grown(void *array, size_t n, size_t size)
{
    void *more = realloc(array, (n + 1) * size);

    if (!more)
        abort();
    return more;
}

static struct recorded_case *case_of(struct recording *r, const char *id, size_t source)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->cases[i].source == source && !strcmp(r->cases[i].id, id))
            return &r->cases[i];
    }
    r->cases = grown(r->cases, r->n, sizeof(*r->cases));
    struct recorded_case *c = &r->cases[r->n++];

    *c = (struct recorded_case){.source = source};
    snprintf(c->id, sizeof(c->id), "%s", id);
    return c;
}

static void launch_add(struct recording *r, const char *id, size_t source,
                       const struct recorded_launch *launch)
{
    struct recorded_case *c = case_of(r, id, source);

    c->launches = grown(c->launches, c->n, sizeof(*c->launches));
    c->launches[c->n++] = *launch;
}

/* The line of a launch's row; n_rows: there is none. */
static size_t row_of(const struct table *t, const struct place *at)
{
    size_t row = at->row;

    for (size_t i = 0; i < t->n_rows; i++) {
        if (!strcmp(table_text(t, i, "case"), at->case_id) &&
            !strcmp(table_text(t, i, "repeat"), at->repeat) && row-- == 0)
            return i;
    }
    return t->n_rows;
}

static const char *arguments_of(const struct table *plan, const char *case_id)
{
    for (size_t i = 0; i < plan->n_rows; i++) {
        if (!strcmp(table_text(plan, i, "case"), case_id))
            return table_text(plan, i, "arguments");
    }
    return "";
}

static double or_zero(double x)
{
    return isfinite(x) ? x : 0;
}

/* +1; -1: lower is better; 0: nothing that can be used. */
static int direction(const struct table *rows, size_t line)
{
    const struct unit *unit =
        line < rows->n_rows ? units_find(table_text(rows, line, "unit")) : NULL;

    return !unit ? 0 : unit->higher_is_better ? 1 : -1;
}

/* Lines from..to of the samples are one launch's row. */
static void samples_add(struct recording *r, const struct run_folder *run,
                        const struct run_bench *b, const struct table *t, size_t from, size_t to,
                        size_t source)
{
    struct place at = {b->name, table_text(t, from, "case"), table_text(t, from, "repeat"),
                       (size_t)table_number(t, from, "row")};
    size_t line = row_of(&b->rows, &at);
    int sign = direction(&b->rows, line);
    struct recorded_launch launch = {.n = to - from, .run = r->n_runs};
    char id[sizeof(r->cases->id)];

    if (sign == 0)
        return;
    launch.samples = grown(NULL, launch.n, sizeof(*launch.samples));
    for (size_t i = from; i < to; i++)
        launch.samples[i - from] = sign * log(table_number(t, i, "value"));
    if (stats_check(launch.samples, launch.n, 0.95)) {
        free(launch.samples);
        return;
    }
    launch.steal = or_zero(table_number(&b->rows, line, "steal_percent"));
    launch.switches = or_zero(table_number(&b->rows, line, "ctx_involuntary") /
                              table_number(&b->rows, line, "elapsed_s"));
    const char *arguments = arguments_of(&run->plan, at.case_id);
    const char *budget = strstr(arguments, " --budget"); /* how long, and no part of the case */

    snprintf(id, sizeof(id), "%s %.*s %s %zu", b->name,
             (int)(budget ? budget - arguments : (ptrdiff_t)strlen(arguments)), arguments,
             table_text(&b->rows, line, "metric"), at.row);
    launch_add(r, id, source, &launch);
}

static bool is_same_launch(const struct table *t, size_t a, size_t b)
{
    static const char *const key[] = {"case", "repeat", "row"};

    for (size_t i = 0; i < 3; i++) {
        if (strcmp(table_text(t, a, key[i]), table_text(t, b, key[i])))
            return false;
    }
    return true;
}

static void bench_add(struct recording *r, const struct run_folder *run, const struct run_bench *b,
                      size_t source, size_t least)
{
    struct table t;
    char file[4096], error[256];

    snprintf(file, sizeof(file), "%s/samples/%s.csv", run->path, b->name);
    if (table_load(file, &t, error, sizeof(error)))
        return; /* a benchmark that keeps none */
    for (size_t from = 0, to; from < t.n_rows; from = to) {
        for (to = from + 1; to < t.n_rows && is_same_launch(&t, from, to); to++)
            ;
        if (to - from >= least)
            samples_add(r, run, b, &t, from, to, source);
    }
    table_release(&t);
}

int recording_add_run(struct recording *r, const char *path, size_t source, size_t least)
{
    struct run_folder run;
    char error[512];

    if (run_folder_load(path, &run, error, sizeof(error))) {
        fprintf(stderr, "selftest: %s\n", error);
        return -1;
    }
    for (size_t i = 0; i < run.n_benches; i++)
        bench_add(r, &run, &run.benches[i], source, least);
    run_folder_release(&run);
    r->n_runs++;
    return 0;
}

int recording_add_table(struct recording *r, const char *path, size_t source)
{
    struct table t;
    char error[512], column[24];
    size_t before = r->n_runs;

    if (table_load(path, &t, error, sizeof(error))) {
        fprintf(stderr, "selftest: %s\n", error);
        return -1;
    }
    for (size_t i = 0; i < t.n_rows; i++) {
        struct recorded_launch launch = {.n = RECORDING_QUANTILES,
                                         .run = before + (size_t)table_number(&t, i, "run"),
                                         .steal = table_number(&t, i, "steal"),
                                         .switches = table_number(&t, i, "switches")};

        launch.samples = grown(NULL, launch.n, sizeof(*launch.samples));
        for (size_t k = 0; k < launch.n; k++) {
            snprintf(column, sizeof(column), "q%zu", k);
            launch.samples[k] = table_number(&t, i, "median") + table_number(&t, i, column) / 1000;
        }
        if (launch.run >= r->n_runs)
            r->n_runs = launch.run + 1;
        launch_add(r, table_text(&t, i, "id"), source, &launch);
    }
    table_release(&t);
    return 0;
}

static void case_release(struct recorded_case *c)
{
    for (size_t k = 0; k < c->n; k++)
        free(c->launches[k].samples);
    free(c->launches);
}

void recording_keep(struct recording *r, size_t launches)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->n; i++) {
        if (r->cases[i].n < launches)
            case_release(&r->cases[i]);
        else
            r->cases[kept++] = r->cases[i];
    }
    r->n = kept;
}

void recording_release(struct recording *r)
{
    for (size_t i = 0; i < r->n; i++)
        case_release(&r->cases[i]);
    free(r->cases);
    *r = (struct recording){0};
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

static void launch_write(const struct recorded_case *c, const struct recorded_launch *l, FILE *to)
{
    double *sorted = grown(NULL, l->n, sizeof(*sorted)), median;

    memcpy(sorted, l->samples, l->n * sizeof(*sorted));
    qsort(sorted, l->n, sizeof(*sorted), ascending);
    median = stats_quantile_sorted(sorted, l->n, 0.5);
    fprintf(to, "%zu,%s,%.2g,%.3g,%.5f", l->run, c->id, l->steal, l->switches, median);
    for (size_t k = 0; k < RECORDING_QUANTILES; k++) {
        double at = ((double)k + 0.5) / RECORDING_QUANTILES;

        fprintf(to, ",%.0f", 1000 * (stats_quantile_sorted(sorted, l->n, at) - median));
    }
    fputc('\n', to);
    free(sorted);
}

void recording_write(const struct recording *r, FILE *to)
{
    fputs("run,id,steal,switches,median", to);
    for (size_t k = 0; k < RECORDING_QUANTILES; k++)
        fprintf(to, ",q%zu", k);
    fputc('\n', to);
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->cases[i].n; k++)
            launch_write(&r->cases[i], &r->cases[i].launches[k], to);
}
