/* SPDX-License-Identifier: Apache-2.0 */
/* A history for programs: CSV with a line a change, and JSON with every case. The names are the
 * same in both. See history.h. */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "harness/document/record.h"
#include "harness/history/history.h"

#define JSON_SCHEMA 2

#define CASE_FIELDS   6
#define CHANGE_FIELDS 19

static void case_fields(const struct history_series *s, struct record_field *fields)
{
    const struct record_field all[CASE_FIELDS] = {
        record_text("host", s->host), record_text("suite", s->suite), record_text("pipe", s->pipe),
        record_text("key", s->key),   record_text("label", s->label), record_text("unit", s->unit)};

    memcpy(fields, all, sizeof(all));
}

static void change_fields(struct pool *pool, const struct trend *t, size_t point,
                          struct record_field *fields)
{
    const struct change_point *p = &t->points[point];
    const struct history_run *at = t->runs[p->at], *early = t->runs[p->at_low],
                             *late = t->runs[p->at_high], *seen = t->runs[p->seen];
    const struct record_field all[CHANGE_FIELDS] = {
        record_text("direction", trend_is_worse(t, p) ? "worse" : "better"),
        record_text("run", at->name),
        record_text("started_utc", at->started_utc),
        record_text("version", at->version),
        record_text("commit", at->commit),
        record_text("earliest_run", early->name),
        record_text("earliest_utc", early->started_utc),
        record_text("latest_run", late->name),
        record_text("latest_utc", late->started_utc),
        record_text("seen_run", seen->name),
        record_text("seen_utc", seen->started_utc),
        record_count("runs_later", p->seen - p->at),
        record_number("before", p->before),
        record_number("after", p->after),
        record_number("ratio", p->ratio),
        record_number("ratio_low", p->low),
        record_number("ratio_high", p->high),
        record_number("p", p->p),
        record_text("differences", trend_differ_text(pool, &t->steps[point].all[0], SIZE_MAX)),
    };

    memcpy(fields, all, sizeof(all));
}

void trends_csv(FILE *out, const struct trends *t)
{
    struct record_field fields[CASE_FIELDS + CHANGE_FIELDS];
    /* A change of nothing has the names. */
    static const struct history_series nothing = {.n = 1};
    const struct history_run *runs[] = {&(const struct history_run){.name = ""}};
    struct change_point point = {.at = 0};
    struct trend_differ differ = {.at = 0};
    struct trend_step step = {.all = &differ, .n = 1};
    const struct trend of = {.series = &nothing, .runs = runs, .points = &point, .steps = &step};

    case_fields(&nothing, fields);
    change_fields(&t->history->pool, &of, 0, fields + CASE_FIELDS);
    record_csv_head(out, fields, CASE_FIELDS + CHANGE_FIELDS);
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->all[i].n_points; k++) {
            case_fields(t->all[i].series, fields);
            change_fields(&t->history->pool, &t->all[i], k, fields + CASE_FIELDS);
            record_csv(out, fields, CASE_FIELDS + CHANGE_FIELDS);
        }
}

static json_t *change_json(struct pool *pool, const struct trend *t, size_t point)
{
    struct record_field fields[CHANGE_FIELDS];
    json_t *change = json_object(), *steps = json_array();

    change_fields(pool, t, point, fields);
    record_json(pool, change, fields, CHANGE_FIELDS);
    for (size_t i = 0; i < t->steps[point].n; i++) {
        const struct trend_differ *d = &t->steps[point].all[i];
        bool known = d->before != SIZE_MAX;
        const struct record_field of[] = {
            record_text("run", t->runs[d->at]->name),
            record_text("run_before", known ? t->runs[d->before]->name : NULL)};
        json_t *step = json_object(), *all = json_array();

        record_json(pool, step, of, sizeof(of) / sizeof(*of));
        for (size_t k = 0; k < d->n; k++) {
            const struct record_field difference[] = {
                record_text("what", d->all[k].what), record_text("before", d->all[k].a),
                record_text("after", d->all[k].b), record_text("pipes", d->all[k].pipes),
                record_yes("may_weigh", k < d->n_near)};
            json_t *one = json_object();

            record_json(pool, one, difference, sizeof(difference) / sizeof(*difference));
            json_array_append_new(all, one);
        }
        json_object_set_new(step, "differences", all);
        json_array_append_new(steps, step);
    }
    json_object_set_new(change, "differing", steps);
    return change;
}

static json_t *case_json(struct pool *pool, const struct trend *t)
{
    struct record_field fields[CASE_FIELDS];
    const struct record_field more[] = {
        record_yes("higher_is_better", t->series->higher_is_better),
        record_yes("too_few_runs", t->n_values < CHANGE_FIRST + CHANGE_SHORT),
        record_count("newest_runs_without_value", t->n_missing),
        record_text("unit_since", t->now ? t->now->unit : NULL)};
    json_t *one = json_object(), *changes = json_array(), *values = json_array();

    case_fields(t->series, fields);
    record_json(pool, one, fields, CASE_FIELDS);
    record_json(pool, one, more, sizeof(more) / sizeof(*more));
    for (size_t k = 0; k < t->n_points; k++)
        json_array_append_new(changes, change_json(pool, t, k));
    for (size_t k = 0; k < t->n; k++) {
        const struct record_field value[] = {record_text("run", t->runs[k]->name),
                                             record_number("value", t->values[k]),
                                             record_count("taken_launches", t->n_taken[k]),
                                             record_number("taken_value", t->taken[k])};
        json_t *of = json_object();

        record_json(pool, of, value, sizeof(value) / sizeof(*value));
        json_array_append_new(values, of);
    }
    json_object_set_new(one, "changes", changes);
    json_object_set_new(one, "values", values);
    return one;
}

int trends_json(FILE *out, const struct trends *t)
{
    const struct history *h = t->history;
    struct pool *pool = &t->history->pool;
    const struct record_field counts[] = {
        record_count("schema", JSON_SCHEMA),
        record_count("runs", t->n_runs),
        record_count("cases_changed", t->n_changed),
        record_count("cases_with_too_few_runs", t->n_short),
        record_count("cases_with_taken_launches", t->n_taken),
        record_count("runs_with_taken_cases", t->n_gone),
        record_count("cases_without_value_in_the_newest_run", t->n_missing)};
    json_t *all = json_object(), *left = json_array(), *said = json_array(), *cases = json_array(),
           *accepted = json_array();
    const char *remarks[TRENDS_REMARKS];
    size_t n_remarks = trends_remarks(t, remarks);

    record_json(pool, all, counts, sizeof(counts) / sizeof(*counts));
    for (size_t i = 0; i < h->n_left_out; i++)
        json_array_append_new(left, json_text(pool, h->left_out[i]));
    for (size_t i = 0; i < n_remarks; i++)
        json_array_append_new(said, json_text(pool, remarks[i]));
    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(cases, case_json(pool, &t->all[i]));
    for (size_t i = 0; i < h->n_accepted; i++)
        json_array_append_new(accepted, history_acceptance_json(pool, &h->accepted[i]));
    json_object_set_new(all, "runs_left_out", left);
    json_object_set_new(all, "remarks", said);
    json_object_set_new(all, "cases", cases);
    json_object_set_new(all, "accepted", accepted);
    return json_write(all, out);
}
