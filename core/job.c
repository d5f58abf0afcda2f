/* SPDX-License-Identifier: Apache-2.0 */
/* A whole job among rows: see job.h. */
#include "core/job.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/condition.h"
#include "core/units.h"

static const char *param_of(const struct job_rows *rows, const struct job_row *row,
                            const char *name, size_t len)
{
    for (size_t i = 0; i < rows->n_columns; i++)
        if (strlen(rows->columns[i]) == len && !memcmp(rows->columns[i], name, len))
            return row->params[i] ? row->params[i] : "";
    return "";
}

const char *job_param(const struct job_rows *rows, size_t row, const char *column)
{
    return param_of(rows, &rows->rows[row], column, strlen(column));
}

struct subject {
    const struct job_rows *rows;
    const struct job_row *row;
};

static const char *value_of(const void *arg, const char *name, size_t len)
{
    const struct subject *s = arg;

    if (len == 6 && !memcmp(name, "metric", len))
        return s->row->metric;
    if (len == 4 && !memcmp(name, "unit", len))
        return s->row->unit;
    return param_of(s->rows, s->row, name, len);
}

static bool matches(const struct job_rows *rows, size_t row, const char *where)
{
    return !where || condition_holds(where, value_of, &(struct subject){rows, &rows->rows[row]});
}

static const struct bench_column *column_of(const struct job_rows *rows, const char *name)
{
    const struct bench_column *c = rows->told->columns;

    while (c && c->name && strcmp(c->name, name) != 0)
        c++;
    return c && c->name ? c : NULL;
}

/* In how many columns that make a case they differ, without this one; *in: do they in this one? */
static size_t differ(const struct job_rows *rows, size_t x, size_t y, const char *but, bool *in)
{
    size_t n = 0;

    *in = false;
    for (size_t i = 0; i < rows->n_columns; i++) {
        const char *name = rows->columns[i];
        const struct bench_column *c = column_of(rows, name);
        if ((c && c->flags & COLUMN_OUTCOME) ||
            !strcmp(job_param(rows, x, name), job_param(rows, y, name)))
            continue;
        if (but && !strcmp(name, but))
            *in = true;
        else
            n++;
    }
    return n;
}

static bool is_of(const struct job_rows *rows, size_t row, const struct bench_job *rule,
                  const char *name)
{
    return !isnan(rows->rows[row].value) && matches(rows, row, rule->where) &&
           (!name || !strcmp(job_param(rows, row, rule->by), name));
}

static double at_of(const struct job_rows *rows, size_t row, const struct bench_job *rule)
{
    double at = 0;

    if (rule->at && units_parse_double(job_param(rows, row, rule->at + 1), &at))
        at = NAN;
    return rule->at && *rule->at == '-' ? -at : at;
}

/* Rows of the job's kind, and what failed before it could say what it measures: that has no metric. */
static bool may_be(const struct job_rows *rows, size_t row, const struct bench_job *rule,
                   const char *name)
{
    bool failed = rows->rows[row].failed && !strcmp(job_param(rows, row, rule->by), name);

    return failed || is_of(rows, row, rule, name);
}

/* The first of this name at the most, or least, of rule->at, whether it failed or not. What failed may
 * not know at how many: it was to go as far as the others. */
static size_t first_of(const struct job_rows *rows, const struct bench_job *rule, const char *name)
{
    size_t found = rows->n;
    double most = NAN;

    for (size_t i = 0; i < rows->n; i++)
        if (may_be(rows, i, rule, name))
            most = fmax(most, at_of(rows, i, rule));
    for (size_t i = 0; i < rows->n && found == rows->n; i++) {
        double at = may_be(rows, i, rule, name) ? at_of(rows, i, rule) : -INFINITY;
        bool unknown = isnan(at) && (rows->rows[i].failed || isnan(most));
        found = at == most || unknown ? i : found;
    }
    return found;
}

/* The same as what failed, with a value, at the most of rule->at that has one; rows->n: there is none. */
static size_t same_as(const struct job_rows *rows, const struct bench_job *rule, const char *name,
                      size_t failed)
{
    size_t found = rows->n;
    bool in;

    for (size_t i = 0; i < rows->n && rule->at; i++)
        if (is_of(rows, i, rule, name) && !differ(rows, failed, i, rule->at + 1, &in) &&
            (found == rows->n || at_of(rows, i, rule) > at_of(rows, found, rule)))
            found = i;
    return found;
}

/* Against the same at the least of rule->at: 100 if its rate grew as that did. */
static double scaled_of(const struct job_rows *rows, const struct bench_job *rule, size_t row)
{
    size_t least = row;
    bool in;

    for (size_t i = 0; i < rows->n && rule->at; i++)
        if (is_of(rows, i, rule, NULL) && !differ(rows, row, i, rule->at + 1, &in) &&
            at_of(rows, i, rule) < at_of(rows, least, rule))
            least = i;
    return least == row ? NAN
                        : 100 * rows->rows[row].value / rows->rows[least].value *
                              at_of(rows, least, rule) / at_of(rows, row, rule);
}

static double beside(const struct job_rows *rows, size_t row, const char *where)
{
    bool in;

    for (size_t i = 0; i < rows->n; i++)
        if (!isnan(rows->rows[i].value) && matches(rows, i, where) &&
            !differ(rows, row, i, NULL, &in))
            return rows->rows[i].value;
    return NAN;
}

static void find_bound(const struct job_rows *rows, struct job *job)
{
    const struct bench_bound *rest = NULL;
    double left = 100;
    bool any = false;

    job->share = NAN;
    for (const struct bench_bound *b = rows->told->bounds; b && b->where; b++) {
        if (b->flags & BOUND_REST) {
            rest = !rest && matches(rows, job->row, b->where) ? b : rest;
            continue;
        }
        double share = beside(rows, job->row, b->where);
        if (isnan(share))
            continue;
        any = true;
        left -= share;
        if (isnan(job->share) || share > job->share) {
            job->share = share;
            job->bound = b;
        }
    }
    job->lost = any ? 100 - left : NAN;
    if (rest && any && left >= job->share) {
        job->share = left;
        job->bound = rest;
    }
}

static bool is_known(const struct job *jobs, size_t n, const struct bench_job *rule,
                     const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (jobs[i].rule == rule && !strcmp(jobs[i].name, name))
            return true;
    return false;
}

size_t jobs_find(const struct job_rows *rows, struct job *jobs, size_t most)
{
    size_t n = 0;

    for (const struct bench_job *rule = rows->told->jobs; rule && rule->label; rule++)
        for (size_t i = 0; i < rows->n && n < most; i++) {
            const char *name = job_param(rows, i, rule->by);
            bool failed = rows->rows[i].failed && *name;
            if ((!is_of(rows, i, rule, NULL) && !failed) || is_known(jobs, n, rule, name))
                continue;
            struct job *job = &jobs[n++];
            *job = (struct job){.rule = rule, .name = name};
            job->row = first_of(rows, rule, name);
            job->failed = rows->rows[job->row].failed ? job->row : rows->n;
            if (job->failed < rows->n) {
                size_t same = same_as(rows, rule, name, job->failed);
                job->row = same < rows->n ? same : job->row;
            }
            job->stated = rule->stated && matches(rows, job->row, rule->stated_where);
            job->scaled = scaled_of(rows, rule, job->row);
            find_bound(rows, job);
            bool in;
            const struct bench_advice *a = rows->told->advice;
            for (; !isnan(rows->rows[job->row].value) && a && a->column; a++)
                for (size_t k = 0; k < rows->n && job->n_ways < JOB_WAYS_MAX; k++)
                    if (is_of(rows, k, rule, NULL) && !differ(rows, job->row, k, a->column, &in) &&
                        in)
                        job->ways[job->n_ways++] = (struct job_way){k, a};
        }
    return n;
}

/* ---- In words ---- */

/* The text with `value` in place of its first "%s". */
static void fill(char *text, size_t len, const char *form, const char *value)
{
    const char *at = strstr(form, "%s");

    if (at)
        snprintf(text, len, "%.*s%s%s", (int)(at - form), form, value, at + 2);
    else
        snprintf(text, len, "%s", form);
}

const char *job_bound_text(const struct job *job, char *text, size_t len)
{
    char share[32], says[160];

    *text = 0;
    if (!job->bound)
        return text;
    snprintf(share, sizeof(share), "%.0f %%", job->share);
    fill(says, sizeof(says), job->bound->says, share);
    snprintf(text, len, "bounded by %s: %s", job->bound->word, says);
    return text;
}

const char *job_way_text(const struct job_rows *rows, const struct job_way *way, char *text,
                         size_t len)
{
    const struct bench_column *column = column_of(rows, way->advice->column);
    const char *value = job_param(rows, way->row, way->advice->column);
    uint64_t bytes;
    char size[32];

    if (column && column->flags & COLUMN_BYTES && !units_parse_size(value, &bytes))
        value = units_format_bytes(bytes, size, sizeof(size));
    fill(text, len, way->advice->says, value);
    return text;
}

const char *job_on_text(const struct job_rows *rows, const struct job *job, size_t row, char *text,
                        size_t len)
{
    bool told = job->rule->on && job->rule->thing;
    const char *n = told ? job_param(rows, row, job->rule->on) : "";

    *text = 0;
    if (*n)
        snprintf(text, len, "%s %s%s", n, job->rule->thing, strcmp(n, "1") ? "s" : "");
    return text;
}

static bool has_way(const struct job *job, const struct bench_advice *advice)
{
    for (size_t i = 0; i < job->n_ways; i++)
        if (job->ways[i].advice == advice)
            return true;
    return false;
}

const char *job_unmeasured_text(const struct job_rows *rows, const struct job *job, char *text,
                                size_t len)
{
    size_t at = 0;

    *text = 0;
    for (const struct bench_advice *a = rows->told->advice; a && a->column; a++)
        if (a->measure && !has_way(job, a) && matches(rows, job->row, a->where) &&
            job->lost >= job->rule->gain && at < len)
            at += (size_t)snprintf(text + at, len - at, "%s%s", at ? ", " : "", a->measure);
    return text;
}
