/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons as CSV and JSON: see compare.h. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "harness/compare/compare.h"
#include "harness/document/record.h"
#include "harness/forecast/versus.h"

#define VIEW_JSON_SCHEMA 4
#define MANY_JSON_SCHEMA 5

/* ---- What both formats have of a case, by one name: a column of the CSV, a key of the JSON ---- */

#define CASE_FIELDS        9
#define FIGURE_FIELDS      25
#define DISTURBANCE_FIELDS 14
#define SIDE_FIELDS        9
#define FIELDS             (CASE_FIELDS + FIGURE_FIELDS + DISTURBANCE_FIELDS + SIDE_FIELDS)

static size_t count_runs(const struct decide_side *side)
{
    size_t n = 0;

    for (size_t i = 0; i < side->n; i++)
        n += side->runs[i].n > 0;
    return n;
}

static size_t count_launches(const struct decide_side *side)
{
    size_t n = 0;

    for (size_t i = 0; i < side->n; i++)
        n += side->runs[i].n;
    return n;
}

/* What comes from files is printable in both; NULL: missing. */
static struct record_field printable(struct pool *pool, const char *name, const char *text)
{
    return record_text(name, text ? view_printable(pool, text) : NULL);
}

static void case_fields(struct pool *pool, const struct pair *pair, struct record_field *fields)
{
    const struct record_field all[CASE_FIELDS] = {
        printable(pool, "pipe", pair->pipe),       printable(pool, "key", pair->key),
        printable(pool, "label", pair->label),     record_text("state", view_state(pair)->code),
        printable(pool, "unit", pair->c->unit),    printable(pool, "reason", pair->reason),
        printable(pool, "differs", pair->differs), printable(pool, "code", pair->code),
        record_yes("failed_b", pair->failed_b)};

    memcpy(fields, all, sizeof(all));
}

/* Of a case that was compared. */
static void figure_fields(const struct pair *pair, struct record_field *fields)
{
    const struct decide_case *c = &pair->decide;
    const struct record_field all[FIGURE_FIELDS] = {
        record_text("verdict", decision_name(c->decision)),
        record_text("word", view_word(pair)->code),
        record_yes("proven", c->proven),
        record_yes("beyond", c->beyond),
        record_number("ratio", c->ratio),
        record_number("ratio_low", c->low),
        record_number("ratio_high", c->high),
        record_number("margin", c->margin),
        record_text("judged_by", decide_figure_name(c->judged_by)),
        record_yes("by_pairs", c->by_pairs),
        record_number("p_worse", c->p_worse),
        record_number("p_better", c->p_better),
        record_number("standard_error", c->error),
        record_number("degrees_of_freedom", c->freedom),
        record_number("detectable_slowdown", c->detectable),
        c->more_launches ? record_count("more", c->more_launches) : record_missing("more"),
        record_text("more_of", !c->more_launches ? NULL
                               : c->by_runs      ? "runs"
                                                 : "launches"),
        record_number("a_value", c->a_value),
        record_number("b_value", c->b_value),
        record_number("a_sustained", c->sustained_a),
        record_number("b_sustained", c->sustained_b),
        record_count("a_runs", count_runs(&c->a)),
        record_count("b_runs", count_runs(&c->b)),
        record_count("a_launches", count_launches(&c->a)),
        record_count("b_launches", count_launches(&c->b)),
    };

    memcpy(fields, all, sizeof(all));
}

static void disturbance_fields(const struct pair *pair, struct record_field *fields)
{
    const struct disturbance *a = &pair->noise_a, *b = &pair->noise_b;
    const struct record_field all[DISTURBANCE_FIELDS] = {
        record_count("a_rows", a->rows),
        record_count("b_rows", b->rows),
        record_count("a_noisy", a->noisy),
        record_count("b_noisy", b->noisy),
        record_count("a_throttled", a->throttled),
        record_count("b_throttled", b->throttled),
        record_number("a_steal_percent", a->steal_percent),
        record_number("b_steal_percent", b->steal_percent),
        record_number("a_taken", a->taken),
        record_number("b_taken", b->taken),
        record_number("a_quota_percent", a->quota_percent),
        record_number("b_quota_percent", b->quota_percent),
        record_number("a_gpu_throttled_percent", a->gpu_percent),
        record_number("b_gpu_throttled_percent", b->gpu_percent),
    };

    memcpy(fields, all, sizeof(all));
}

/* What a side of one run has of the case, compared or not; NULL. */
static const struct report_point *point_of(const struct view *v, const struct pair *pair, bool of_b)
{
    size_t n = of_b ? v->p->n_b : v->p->n_a;

    return n == 1 && pair->bench && pair->c->points ? &pair->c->points[of_b ? v->p->n_a : 0] : NULL;
}

/* By itself, as in the summary.csv of its run. */
static void side_fields(const struct view *v, const struct pair *pair, struct record_field *fields)
{
    static const char *const names[2][4] = {{"a_machine", "a_low", "a_high", "a_limit"},
                                            {"b_machine", "b_low", "b_high", "b_limit"}};
    size_t n = 0;

    fields[n++] = record_text("benchmark", pair->bench ? pair->bench->name : NULL);
    for (int side = 0; side < 2; side++) {
        const struct report_point *p = point_of(v, pair, side);
        const struct report_rows *rows =
            p && p->n_rows ? &pair->bench->rows[side ? v->p->n_a : 0] : NULL;

        fields[n++] = printable(v->pool, names[side][0],
                                rows ? row_text(rows, p->rows[0], FIELD_HOST) : NULL);
        fields[n++] = record_number(names[side][1], rows ? p->low : NAN);
        fields[n++] = record_number(names[side][2], rows ? p->high : NAN);
        fields[n++] = record_number(names[side][3], rows ? p->limit : NAN);
    }
}

static json_t *values_json(const struct decide_side *side)
{
    json_t *runs = json_array();

    for (size_t i = 0; i < side->n; i++) {
        json_t *launches = json_array();

        for (size_t k = 0; k < side->runs[i].n; k++)
            json_array_append_new(launches, json_number(side->runs[i].values[k]));
        json_array_append_new(runs, launches);
    }
    return runs;
}

void view_figures_json(struct pool *pool, const struct pair *pair, json_t *o)
{
    struct record_field fields[FIGURE_FIELDS];

    figure_fields(pair, fields);
    record_json(pool, o, fields, FIGURE_FIELDS);
    json_object_set_new(o, "a_launches", values_json(&pair->decide.a));
    json_object_set_new(o, "b_launches", values_json(&pair->decide.b));
}

static json_t *case_json(const struct view *v, const struct pair *pair)
{
    struct record_field fields[CASE_FIELDS + DISTURBANCE_FIELDS + SIDE_FIELDS];
    struct pool *pool = v->pool;
    json_t *o = json_object();

    case_fields(pool, pair, fields);
    record_json(pool, o, fields, CASE_FIELDS);
    side_fields(v, pair, fields);
    record_json(pool, o, fields, SIDE_FIELDS);
    if (pair->state == PAIR_READY) {
        view_figures_json(pool, pair, o);
        disturbance_fields(pair, fields);
        record_json(pool, o, fields, DISTURBANCE_FIELDS);
    }
    return o;
}

/* ---- CSV: a line a case, whatever became of it. Of launches it has their number. ---- */

int view_print_csv(FILE *out, struct view *views, size_t n)
{
    struct record_field run[FIELDS + 1], *fields = run + 1;
    size_t skip = n > 1 ? 0 : 1; /* one alone needs no letter */

    run[0] = record_missing("run");
    /* A pair of nothing has the names. */
    const struct pair names = {.c = &(const struct report_case){.unit = NULL}};

    case_fields(views->pool, &names, fields);
    figure_fields(&names, fields + CASE_FIELDS);
    disturbance_fields(&names, fields + CASE_FIELDS + FIGURE_FIELDS);
    side_fields(views, &names, fields + FIELDS - SIDE_FIELDS);
    record_csv_head(out, run + skip, FIELDS + 1 - skip);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < views[i].p->n; k++) {
            const struct pair *pair = &views[i].p->all[k];

            run[0] = record_text("run", view_letters[i + 1]);
            case_fields(views[i].pool, pair, fields);
            figure_fields(pair, fields + CASE_FIELDS);
            disturbance_fields(pair, fields + CASE_FIELDS + FIGURE_FIELDS);
            for (size_t f = CASE_FIELDS; pair->state != PAIR_READY && f < FIELDS - SIDE_FIELDS; f++)
                fields[f] = record_missing(fields[f].name);
            side_fields(&views[i], pair, fields + FIELDS - SIDE_FIELDS);
            record_csv(out, run + skip, FIELDS + 1 - skip);
        }
    return ferror(out) ? -EIO : 0;
}

/* ---- JSON ---- */

static json_t *runs_json(struct view *v, size_t first, size_t n)
{
    json_t *runs = json_array();

    for (size_t i = first; i < first + n; i++)
        json_array_append_new(runs, json_pack("{s:o, s:o}", "name",
                                              json_text(v->pool, v->p->report.names[i]), "path",
                                              json_text(v->pool, v->p->report.runs[i].path)));
    return runs;
}

static json_t *counts_json(const size_t *counts)
{
    json_t *o = json_object();

    for (int d = 0; d < VIEW_DECISIONS; d++)
        json_object_set_new(o, decision_name((enum decision)d),
                            json_integer((json_int_t)counts[d]));
    return o;
}

static json_t *training_json(struct pool *pool, const struct versus *of)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "model",
                     json_text(pool, of->model), "a_dtype", json_text(pool, of->dtypes[0]),
                     "b_dtype", json_text(pool, of->dtypes[1]), "a_samples_per_s",
                     json_number(of->a), "b_samples_per_s", json_number(of->b), "ratio",
                     json_number(of->ratio), "ratio_low", json_number(of->low), "ratio_high",
                     json_number(of->high), "reason", json_text(pool, of->why), "a_recomputes",
                     (int)of->tight[0], "b_recomputes", (int)of->tight[1]);
}

static json_t *view_json(struct view *v)
{
    const struct decide_overall *all = &v->p->overall;
    size_t counts[VIEW_DECISIONS] = {[DECISION_EQUIVALENT] = all->n_equivalent,
                                     [DECISION_BETTER] = all->n_better,
                                     [DECISION_WORSE] = all->n_worse,
                                     [DECISION_INCONCLUSIVE] = all->n_inconclusive};
    json_t *pipes = json_array(), *cases = json_array(), *differences = json_array();

    for (size_t i = 0; i < v->n_pipes; i++) {
        const struct view_pipe *pipe = &v->pipes[i];
        json_array_append_new(
            pipes,
            json_pack("{s:o, s:I, s:o, s:o}", "pipe", json_text(v->pool, pipe->name), "cases",
                      (json_int_t)pipe->n_cases, "counts", counts_json(pipe->counts), "worst",
                      json_text(v->pool, pipe->worst ? pipe->worst->key : NULL)));
    }
    for (size_t i = 0; i < v->p->n; i++)
        json_array_append_new(cases, case_json(v, &v->p->all[i]));
    for (size_t i = 0; i < v->n_differences; i++) {
        const struct machine_difference *d = &v->differences[i];
        json_array_append_new(differences,
                              json_pack("{s:o, s:o, s:o, s:o}", "what", json_text(v->pool, d->what),
                                        "a", json_text(v->pool, *d->a ? d->a : NULL), "b",
                                        json_text(v->pool, *d->b ? d->b : NULL), "pipes",
                                        json_text(v->pool, d->pipes)));
    }
    const struct reference *r = v->reference;
    json_t *o =
        json_pack("{s:i, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
                  VIEW_JSON_SCHEMA, "verdict", decision_name(all->decision), "exit",
                  view_exit(v, 1), "sentence", json_text(v->pool, v->verdict), "basis",
                  json_text(v->pool, v->basis), "counts", counts_json(counts), "a",
                  runs_json(v, 0, v->p->n_a), "b", runs_json(v, v->p->n_a, v->p->n_b), "pipes",
                  pipes, "cases", cases, "differences", differences, "reference",
                  r ? json_pack("{s:o, s:o, s:I, s:I, s:f, s:o}", "name",
                                json_text(v->pool, r->name), "path", json_text(v->pool, r->path),
                                "alike", (json_int_t)r->n_alike, "facts", (json_int_t)r->n_facts,
                                "distance", r->distance, "differs", json_text(v->pool, r->differs))
                    : json_null());

    if (v->versus)
        json_object_set_new(o, "training", training_json(v->pool, v->versus));
    return o;
}

int view_print_json(FILE *out, struct view *views, size_t n)
{
    json_t *all = json_array(), *o;

    for (size_t i = 0; i < n; i++)
        json_array_append_new(all, view_json(&views[i]));
    for (size_t i = 0; n > 1 && i < n; i++)
        json_object_set_new(json_array_get(all, i), "run", json_string(view_letters[i + 1]));
    o = n > 1 ? json_pack("{s:i, s:i, s:O}", "schema", MANY_JSON_SCHEMA, "exit",
                          view_exit(views, n), "comparisons", all)
              : json_incref(json_array_get(all, 0));
    json_decref(all);
    return json_write(o, out);
}
