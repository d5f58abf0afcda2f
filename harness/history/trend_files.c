/* SPDX-License-Identifier: Apache-2.0 */
/* A history for programs: CSV with a line a change, and JSON with every case. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>

#include "core/csv.h"
#include "harness/history/history_db_build.h"
#include "harness/history/trend.h"
#include "harness/report/utf8.h"

#define JSON_SCHEMA 1
#define DIGITS      12 /* of a figure: 0.05, and not 0.050000000000000003 */

/* What a step has not is empty. */
static void csv_slip(FILE *out, const struct trend *t, const struct change_point *p)
{
    const double numbers[] = {p->a_run, p->a_run_low, p->a_run_high};
    bool slip = p->kind == CHANGE_SLIP;
    const char *texts[] = {trend_kind(p), slip ? t->runs[p->end]->name : "",
                           slip ? t->runs[p->end]->started_utc : "",
                           !slip        ? ""
                           : p->goes_on ? "yes"
                                        : "no"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        fputc(',', out);
        csv_print(out, texts[i]);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        fputc(',', out);
        if (slip)
            csv_print_number(out, numbers[i]);
    }
}

static void csv_change(FILE *out, struct pool *pool, const struct trend *t, size_t point)
{
    const struct change_point *p = &t->points[point];
    const struct trend_differ *d = &t->steps[point].all[0];
    const char *texts[] = {t->series->host,
                           t->series->suite,
                           t->series->pipe,
                           t->series->key,
                           t->series->label,
                           t->series->unit,
                           trend_is_worse(t, p) ? "worse" : "better",
                           t->runs[p->at]->name,
                           t->runs[p->at]->started_utc,
                           t->runs[p->at]->version,
                           t->runs[p->at]->commit,
                           t->runs[p->at_low]->started_utc,
                           t->runs[p->at_high]->started_utc,
                           t->runs[p->seen]->name};
    const double numbers[] = {p->before, p->after, p->ratio, p->low, p->high, p->p};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        csv_print(out, texts[i]);
        fputc(',', out);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        csv_print_number(out, numbers[i]);
        fputc(',', out);
    }
    csv_print(out,
              !d->n && !trend_differ_known(d) ? "not known" : trend_differ_text(pool, d, SIZE_MAX));
    csv_slip(out, t, p);
    fputc('\n', out);
}

void trends_csv(FILE *out, const struct trends *t)
{
    fputs("host,suite,pipe,key,label,unit,direction,run,started_utc,version,commit,earliest_utc,"
          "latest_utc,seen_run,before,after,ratio,ratio_low,ratio_high,p,differences,kind,end_run,"
          "end_utc,goes_on,ratio_a_run,ratio_a_run_low,ratio_a_run_high\n",
          out);
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->all[i].n_points; k++)
            csv_change(out, &t->history->pool, &t->all[i], k);
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Bytes that are no UTF-8 would be refused by jansson. */
static json_t *text(struct pool *pool, const char *from)
{
    const char *kept = "";
    size_t n, used;

    for (; *from; from += used) {
        const char *c = utf8_printable(from, &n, &used);

        kept = pool_text(pool, "%s%.*s", kept, (int)n, c);
    }
    return json_string(kept);
}

static json_t *run_json(struct pool *pool, const struct history_run *run)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "name", text(pool, run->name), "started_utc",
                     text(pool, run->started_utc), "version", text(pool, run->version), "commit",
                     text(pool, run->commit));
}

static json_t *differ_json(struct pool *pool, const struct trend *t, const struct trend_differ *d)
{
    json_t *all = json_array();

    for (size_t i = 0; i < d->n; i++)
        json_array_append_new(
            all, json_pack("{s:o, s:o, s:o, s:o, s:b}", "what", text(pool, d->all[i].what),
                           "before", text(pool, d->all[i].a), "after", text(pool, d->all[i].b),
                           "pipes", text(pool, d->all[i].pipes), "may_weigh", i < d->n_near));
    return json_pack("{s:o, s:o, s:b, s:b, s:o, s:o}", "run", run_json(pool, t->runs[d->at]),
                     "run_before",
                     d->before == SIZE_MAX ? json_null() : run_json(pool, t->runs[d->before]),
                     "machine_known", d->whole, "rows_known", d->before != SIZE_MAX && !*d->unkept,
                     "unsteady", text(pool, d->unsteady), "differences", all);
}

/* null: a step. */
static json_t *slip_json(struct pool *pool, const struct trend *t, const struct change_point *p)
{
    if (p->kind != CHANGE_SLIP)
        return json_null();
    return json_pack("{s:o, s:b, s:i, s:o, s:o, s:o}", "end", run_json(pool, t->runs[p->end]),
                     "goes_on", p->goes_on, "runs", (int)(p->end - p->at + 1), "ratio_a_run",
                     number(p->a_run), "ratio_a_run_low", number(p->a_run_low), "ratio_a_run_high",
                     number(p->a_run_high));
}

static json_t *change_json(struct pool *pool, const struct trend *t, size_t point)
{
    const struct change_point *p = &t->points[point];
    json_t *steps = json_array();

    for (size_t i = 0; i < t->steps[point].n; i++)
        json_array_append_new(steps, differ_json(pool, t, &t->steps[point].all[i]));
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "kind", trend_kind(p), "direction", trend_is_worse(t, p) ? "worse" : "better",
                     "run", run_json(pool, t->runs[p->at]), "earliest",
                     run_json(pool, t->runs[p->at_low]), "latest",
                     run_json(pool, t->runs[p->at_high]), "seen", run_json(pool, t->runs[p->seen]),
                     "before", number(p->before), "after", number(p->after), "ratio",
                     number(p->ratio), "ratio_low", number(p->low), "ratio_high", number(p->high),
                     "p", number(p->p), "runs_later", json_integer((json_int_t)(p->seen - p->at)),
                     "slip", slip_json(pool, t, p), "differing", steps);
}

static json_t *case_json(struct pool *pool, const struct trend *t)
{
    const struct history_series *s = t->series;
    json_t *changes = json_array(), *values = json_array();

    for (size_t i = 0; i < t->n_points; i++)
        json_array_append_new(changes, change_json(pool, t, i));
    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(values,
                              json_pack("{s:o, s:o, s:o, s:o}", "run", text(pool, t->runs[i]->name),
                                        "value", number(t->values[i]), "taken_launches",
                                        json_integer((json_int_t)t->n_taken[i]), "taken_value",
                                        number(t->taken[i])));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o}", "host",
                     text(pool, s->host), "suite", text(pool, s->suite), "pipe",
                     text(pool, s->pipe), "key", text(pool, s->key), "label", text(pool, s->label),
                     "unit", text(pool, s->unit), "higher_is_better", s->higher_is_better,
                     "too_few_runs", t->n_values < CHANGE_FIRST + CHANGE_SHORT, "changes", changes,
                     "values", values);
}

int trends_json(FILE *out, const struct trends *t)
{
    const struct history *h = t->history;
    json_t *cases = json_array(), *left = json_array(), *all;
    int err = 0;

    for (size_t i = 0; i < h->n_left_out; i++)
        json_array_append_new(left, text(&t->history->pool, h->left_out[i]));
    for (size_t i = 0; i < t->n; i++)
        if (json_array_append_new(cases, case_json(&t->history->pool, &t->all[i])))
            err = -ENOMEM;
    all = json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "schema", JSON_SCHEMA, "runs",
                    (json_int_t)t->n_runs, "cases_changed", (json_int_t)t->n_changed,
                    "cases_with_too_few_runs", (json_int_t)t->n_short, "cases_with_taken_launches",
                    (json_int_t)t->n_taken, "runs_with_taken_cases", (json_int_t)t->n_gone,
                    "runs_left_out", left, "cases", cases);
    if (!all || json_object_set_new(all, "accepted", history_accepted_json(t->history)) ||
        t->history->pool.failed)
        err = -ENOMEM;
    if (!err && (json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS)) ||
                 fputc('\n', out) == EOF))
        err = -EIO;
    json_decref(all);
    return err;
}
