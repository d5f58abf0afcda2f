/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of a table say of a job: see runner.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bench/runner.h"
#include "core/job.h"
#include "core/stats.h"
#include "core/text.h"
#include "core/units.h"

#define JOBS_MAX    16
#define REPEATS_MAX 64

/* All repeats of a case. */
struct kept {
    char *params[ROW_PARAMS_MAX];
    char metric[40], unit[16];
    bool simulated, failed; /* in any repeat */
    size_t point, number;   /* of the sweep; of all that are kept */
    double values[REPEATS_MAX];
    size_t n;
    double low, high; /* of one repeat its own; NaN: not known */
};

struct runner_jobs {
    struct runner_columns columns;
    struct bench_column told[ROW_PARAMS_MAX + 1]; /* of each, and a NULL name */
    struct kept *all;
    size_t n;
};

struct runner_jobs *runner_jobs_new(const struct bench *b)
{
    if (!b->rows || !b->rows->jobs)
        return NULL;
    struct runner_jobs *j = xcalloc(1, sizeof(*j));
    runner_columns(b, &j->columns);
    for (size_t i = 0; i < j->columns.n; i++) {
        j->told[i] = runner_column(b, j->columns.list[i]);
        j->told[i].name = j->columns.list[i];
    }
    return j;
}

static const char *param(const struct row *row, size_t i)
{
    return row->params[i] ? row->params[i] : "";
}

/* Outcomes may differ between repeats; the first one's are kept. */
static bool is_same(const struct runner_jobs *j, const struct kept *k, const struct row *row)
{
    bool same = !strcmp(k->metric, row->metric) && !strcmp(k->unit, row->unit);

    for (size_t i = 0; i < j->columns.n && same; i++)
        same = j->told[i].flags & COLUMN_OUTCOME || !strcmp(k->params[i], param(row, i));
    return same;
}

static struct kept *keep(struct runner_jobs *j, size_t point, const struct row *row)
{
    struct kept *k = ARRAY_ADD(j->all, j->n);

    *k = (struct kept){.simulated = row->origin && !strcmp(row->origin, "simulated"),
                       .point = point,
                       .number = j->n};
    snprintf(k->metric, sizeof(k->metric), "%s", row->metric);
    snprintf(k->unit, sizeof(k->unit), "%s", row->unit);
    for (size_t i = 0; i < j->columns.n; i++)
        k->params[i] = xstrdup(param(row, i));
    return k;
}

void runner_jobs_note(struct runner_jobs *j, size_t point, const struct row *row)
{
    struct kept *k = NULL;
    bool failed = row->status && (!strcmp(row->status, "wrong") || !strcmp(row->status, "failed"));

    if (!j || !row->metric || !row->unit || (isnan(row->value) && !failed))
        return;
    for (size_t i = 0; i < j->n && !k; i++)
        k = is_same(j, &j->all[i], row) ? &j->all[i] : NULL;
    k = k ? k : keep(j, point, row);
    k->failed |= failed;
    if (failed || k->n == REPEATS_MAX)
        return;
    k->values[k->n++] = row->value;
    k->low = row->summary.ci_low;
    k->high = row->summary.ci_high;
}

/* Of several repeats, their own interval. */
static double combined(struct kept *k)
{
    struct median_ci ci;

    if (k->failed || !k->n)
        return NAN;
    if (k->n < 2)
        return k->values[0];
    k->low = k->high = NAN;
    if (!stats_ci_launches(k->values, k->n, 0.95, &ci)) {
        k->low = ci.low;
        k->high = ci.high;
    }
    return stats_centre(k->values, k->n);
}

struct saving {
    double value, low, high; /* of the job's time, in percent; NaN: not known */
};

/* A rate, or a time, against the job's. */
static struct saving saving_of(const struct job_rows *rows, const struct kept *job, size_t job_row,
                               const struct kept *way, size_t way_row)
{
    const struct unit *unit = units_find(job->unit);
    double old = rows->rows[job_row].value, new = rows->rows[way_row].value;

    return unit && unit->higher_is_better
               ? (struct saving){100 * (1 - old / new), 100 * (1 - job->high / way->low),
                                 100 * (1 - job->low / way->high)}
               : (struct saving){100 * (1 - new / old), 100 * (1 - way->high / job->low),
                                 100 * (1 - way->low / job->high)};
}

/* The way that saves most, of those whose intervals are beside the job's. */
static const struct job_way *best_way(const struct runner_jobs *j, const struct job_rows *rows,
                                      const struct job *job, struct saving *best)
{
    const struct job_way *found = NULL;

    for (size_t i = 0; i < job->n_ways; i++) {
        const struct job_way *way = &job->ways[i];
        struct saving s = saving_of(rows, &j->all[job->row], job->row, &j->all[way->row], way->row);
        if (!(s.low > 0) || !(s.value >= job->rule->gain) || (found && s.value <= best->value))
            continue;
        found = way;
        *best = s;
    }
    return found;
}

static void say_line(FILE *out, const char *before, const char *text)
{
    char line[512];

    snprintf(line, sizeof(line), "%s%s", before, text);
    wrap_print(out, line, 2, wrap_width(out));
}

static void say(const struct runner_jobs *j, const struct job_rows *rows, const struct job *job,
                FILE *out)
{
    const struct kept *k = &j->all[job->row];
    char text[256], line[512];
    struct saving saving;

    if (job->failed < rows->n) {
        bool on = *job_on_text(rows, job, job->failed, text, 64);
        fprintf(out, "%s%s%s: failed\n", job->name, on ? " on " : "", text);
    }
    if (isnan(rows->rows[job->row].value))
        return;
    bool on = *job_on_text(rows, job, job->row, text, 64);
    const char *origin = !k->simulated ? "" : job->stated ? job->rule->stated : "simulated";
    fprintf(out, "%s%s%s: %.4g %s%s%s%s\n", job->name, on ? " on " : "", text,
            rows->rows[job->row].value, k->unit, *origin ? " (" : "", origin, *origin ? ")" : "");
    if (*job_bound_text(job, text, sizeof(text)))
        say_line(out, "", text);
    const struct job_way *way = best_way(j, rows, job, &saving);
    if (way) {
        int digits = saving.high - saving.low < 3; /* else the interval has none of them */
        snprintf(line, sizeof(line),
                 "%s would save %.*f %% of the time (%.*f %% to %.*f %%), by these rows",
                 job_way_text(rows, way, text, sizeof(text)), digits, saving.value, digits,
                 saving.low, digits, saving.high);
        say_line(out, "", line);
    } else if (job->n_ways) {
        say_line(out, "", "no other way in this table is proven faster");
    }
    if (!way && job->bound && job->bound->todo)
        say_line(out, "", job->bound->todo);
    if (*job_unmeasured_text(rows, job, text, sizeof(text)))
        say_line(out, "not measured, and perhaps faster: ", text);
}

/* Repeats are shuffled; the job is the first of the command line. */
static int by_point(const void *x, const void *y)
{
    const struct kept *a = x, *b = y;

    return a->point != b->point ? (a->point > b->point) - (a->point < b->point)
                                : (a->number > b->number) - (a->number < b->number);
}

void runner_jobs_say(struct runner_jobs *j, const struct bench *b, FILE *out)
{
    if (!j || !j->n)
        return;
    struct job *jobs = xcalloc(JOBS_MAX, sizeof(*jobs));
    struct job_row *all = xcalloc(j->n, sizeof(*all));
    struct bench_rows told = *b->rows;

    qsort(j->all, j->n, sizeof(*j->all), by_point);
    for (size_t i = 0; i < j->n; i++)
        all[i] = (struct job_row){j->all[i].metric, j->all[i].unit,
                                  (const char *const *)j->all[i].params, combined(&j->all[i]),
                                  j->all[i].failed};
    told.columns = j->told;
    struct job_rows rows = {&told, j->columns.list, j->columns.n, all, j->n};
    size_t n = jobs_find(&rows, jobs, JOBS_MAX);
    if (n)
        fputc('\n', out);
    for (size_t i = 0; i < n; i++)
        say(j, &rows, &jobs[i], out);
    free(all);
    free(jobs);
}

void runner_jobs_free(struct runner_jobs *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->n; i++)
        for (size_t k = 0; k < ROW_PARAMS_MAX; k++)
            free(j->all[i].params[k]);
    free(j->all);
    free(j);
}
