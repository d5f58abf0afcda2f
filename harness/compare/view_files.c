/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons as CSV and JSON: see compare.h. */
#include <errno.h>
#include <math.h>

#include "core/text.h"
#include "harness/compare/compare.h"
#include "harness/forecast/versus.h"

#define VIEW_JSON_SCHEMA 3
#define MANY_JSON_SCHEMA 4

/* ---- What both formats have of a case ---- */

/* MORE: a count of which 0 is none. RUNS, LAUNCHES: of a side. */
enum kind { TEXT, WORD, FLAG, NUMBER, COUNT, MORE, RUNS, LAUNCHES };

/* A column of the CSV and a key of the JSON: the CSV is written from the JSON's values, and an empty
 * cell is a null: what cannot be told. */
struct field {
    const char *name;
    enum kind kind;
    size_t at;                                    /* in struct pair */
    const char *(*word)(const struct pair *pair); /* of WORD; NULL: there is none */
    bool decided;                                 /* only of a case that was compared */
};

static const char *state_word(const struct pair *pair)
{
    return view_state(pair)->code;
}

static const char *unit_word(const struct pair *pair)
{
    return pair->c->unit;
}

static const char *verdict_word(const struct pair *pair)
{
    return decision_name(pair->decide.decision);
}

static const char *code_word(const struct pair *pair)
{
    return view_word(pair)->code;
}

static const char *more_of_word(const struct pair *pair)
{
    const struct decide_case *c = &pair->decide;

    return !c->more_launches ? NULL : c->by_runs ? "runs" : "launches";
}

static const char *judged_by_word(const struct pair *pair)
{
    return decide_figure_name(pair->decide.judged_by);
}

#define OF(NAME, KIND, MEMBER)                                                                     \
    {                                                                                              \
        NAME, KIND, offsetof(struct pair, MEMBER), NULL, false                                     \
    }
#define DECIDED(NAME, KIND, MEMBER)                                                                \
    {                                                                                              \
        NAME, KIND, offsetof(struct pair, MEMBER), NULL, true                                      \
    }
#define BOTH(NAME, KIND, MEMBER)                                                                   \
    DECIDED("a_" NAME, KIND, noise_a.MEMBER), DECIDED("b_" NAME, KIND, noise_b.MEMBER)

static const struct field fields[] = {
    OF("pipe", TEXT, pipe),
    OF("key", TEXT, key),
    OF("label", TEXT, label),
    {"state", WORD, 0, state_word, false},
    {"verdict", WORD, 0, verdict_word, true},
    DECIDED("proven", FLAG, decide.proven),
    DECIDED("beyond", FLAG, decide.beyond),
    DECIDED("ratio", NUMBER, decide.ratio),
    DECIDED("ratio_low", NUMBER, decide.low),
    DECIDED("ratio_high", NUMBER, decide.high),
    DECIDED("margin", NUMBER, decide.margin),
    DECIDED("a_value", NUMBER, decide.a_value),
    DECIDED("b_value", NUMBER, decide.b_value),
    {"unit", WORD, 0, unit_word, false},
    DECIDED("a_runs", RUNS, decide.a),
    DECIDED("a_launches", LAUNCHES, decide.a),
    DECIDED("b_runs", RUNS, decide.b),
    DECIDED("b_launches", LAUNCHES, decide.b),
    DECIDED("p_worse", NUMBER, decide.p_worse),
    DECIDED("p_better", NUMBER, decide.p_better),
    DECIDED("more", MORE, decide.more_launches),
    {"more_of", WORD, 0, more_of_word, true},
    DECIDED("detectable_loss", NUMBER, decide.detectable),
    OF("reason", TEXT, reason),
    OF("differs", TEXT, differs),
    DECIDED("by_pairs", FLAG, decide.by_pairs),
    {"word", WORD, 0, code_word, true},
    BOTH("steal_percent", NUMBER, steal_percent),
    BOTH("taken", NUMBER, taken),
    {"judged_by", WORD, 0, judged_by_word, true},
    DECIDED("a_sustained", NUMBER, decide.sustained_a),
    DECIDED("b_sustained", NUMBER, decide.sustained_b),
    OF("code", TEXT, code),
    OF("failed_b", FLAG, failed_b),
    DECIDED("standard_error", NUMBER, decide.error),
    DECIDED("degrees_of_freedom", NUMBER, decide.freedom),
    BOTH("rows", COUNT, rows),
    BOTH("noisy", COUNT, noisy),
    BOTH("throttled", COUNT, throttled),
    BOTH("quota_percent", NUMBER, quota_percent),
    BOTH("gpu_throttled_percent", NUMBER, gpu_percent),
};

#define N_FIELDS (sizeof(fields) / sizeof(*fields))

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Bytes that are no UTF-8 would be refused by jansson. */
static json_t *text(struct pool *pool, const char *from)
{
    return from ? json_string(view_printable(pool, from)) : json_null();
}

static json_t *count(size_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *values_json(const struct decide_side *side)
{
    json_t *runs = json_array();

    for (size_t i = 0; i < side->n; i++) {
        json_t *launches = json_array();

        for (size_t k = 0; k < side->runs[i].n; k++)
            json_array_append_new(launches, number(side->runs[i].values[k]));
        json_array_append_new(runs, launches);
    }
    return runs;
}

static json_t *value_json(struct pool *pool, const struct pair *pair, const struct field *f)
{
    const void *at = (const char *)pair + f->at;
    const struct decide_side *side = at;
    size_t n = 0;

    if (f->decided && pair->state != PAIR_READY)
        return json_null();
    switch (f->kind) {
    case TEXT:
        return text(pool, *(const char *const *)at);
    case WORD:
        return text(pool, f->word(pair));
    case FLAG:
        return json_boolean(*(const bool *)at);
    case NUMBER:
        return number(*(const double *)at);
    case COUNT:
        return count(*(const size_t *)at);
    case MORE:
        n = *(const size_t *)at;
        return n ? count(n) : json_null();
    case RUNS:
        for (size_t i = 0; i < side->n; i++)
            n += side->runs[i].n > 0;
        return count(n);
    case LAUNCHES:
        return values_json(side);
    }
    return json_null();
}

void view_case_json(struct pool *pool, const struct pair *pair, json_t *o)
{
    for (size_t f = 0; f < N_FIELDS; f++)
        if (!fields[f].decided || pair->state == PAIR_READY)
            json_object_set_new(o, fields[f].name, value_json(pool, pair, &fields[f]));
}

/* ---- CSV: a line a case, whatever became of it ---- */

/* Of launches their number: the JSON has the value of each. */
static void put_cell(FILE *out, const json_t *value)
{
    const json_t *run;
    size_t i, launches = 0;

    if (json_is_array(value)) {
        json_array_foreach (value, i, run)
            launches += json_array_size(run);
        fprintf(out, "%zu", launches);
    } else if (json_is_string(value)) {
        csv_print(out, json_string_value(value));
    } else if (json_is_boolean(value)) {
        fputs(json_is_true(value) ? "yes" : "no", out);
    } else if (json_is_number(value)) {
        fprintf(out, "%.9g", json_number_value(value));
    }
}

int view_print_csv(FILE *out, struct view *views, size_t n)
{
    fputs(n > 1 ? "run" : "", out);
    for (size_t f = 0; f < N_FIELDS; f++)
        fprintf(out, "%s%s", f || n > 1 ? "," : "", fields[f].name);
    fputc('\n', out);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < views[i].p->n; k++) {
            fputs(n > 1 ? view_letters[i + 1] : "", out);
            for (size_t f = 0; f < N_FIELDS; f++) {
                json_t *value = value_json(views[i].pool, &views[i].p->all[k], &fields[f]);

                fputs(f || n > 1 ? "," : "", out);
                put_cell(out, value);
                json_decref(value);
            }
            fputc('\n', out);
        }
    return ferror(out) ? -EIO : 0;
}

/* ---- JSON ---- */

static json_t *runs_json(struct view *v, size_t first, size_t n)
{
    json_t *runs = json_array();

    for (size_t i = first; i < first + n; i++)
        json_array_append_new(runs,
                              json_pack("{s:o, s:o}", "name", text(v->pool, v->p->report.names[i]),
                                        "path", text(v->pool, v->p->report.runs[i].path)));
    return runs;
}

static json_t *counts_json(const size_t *counts)
{
    json_t *o = json_object();

    for (int d = 0; d < VIEW_DECISIONS; d++)
        json_object_set_new(o, decision_name((enum decision)d), count(counts[d]));
    return o;
}

static json_t *training_json(struct pool *pool, const struct versus *of)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "model",
                     text(pool, of->model), "a_dtype", text(pool, of->dtypes[0]), "b_dtype",
                     text(pool, of->dtypes[1]), "a_samples_per_s", number(of->a), "b_samples_per_s",
                     number(of->b), "ratio", number(of->ratio), "ratio_low", number(of->low),
                     "ratio_high", number(of->high), "reason", text(pool, of->why), "a_recomputes",
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
            pipes, json_pack("{s:o, s:I, s:o, s:o}", "pipe", text(v->pool, pipe->name), "cases",
                             (json_int_t)pipe->n_cases, "counts", counts_json(pipe->counts),
                             "worst", text(v->pool, pipe->worst ? pipe->worst->key : NULL)));
    }
    for (size_t i = 0; i < v->p->n; i++) {
        json_t *o = json_object();

        view_case_json(v->pool, &v->p->all[i], o);
        json_array_append_new(cases, o);
    }
    for (size_t i = 0; i < v->n_differences; i++) {
        const struct machine_difference *d = &v->differences[i];
        json_array_append_new(differences,
                              json_pack("{s:o, s:o, s:o, s:o}", "what", text(v->pool, d->what), "a",
                                        text(v->pool, *d->a ? d->a : NULL), "b",
                                        text(v->pool, *d->b ? d->b : NULL), "pipes",
                                        text(v->pool, d->pipes)));
    }
    const struct reference *r = v->reference;
    json_t *o = json_pack(
        "{s:i, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", VIEW_JSON_SCHEMA,
        "verdict", decision_name(all->decision), "exit", view_exit(v, 1), "sentence",
        text(v->pool, v->verdict), "basis", text(v->pool, v->basis), "counts", counts_json(counts),
        "a", runs_json(v, 0, v->p->n_a), "b", runs_json(v, v->p->n_a, v->p->n_b), "pipes", pipes,
        "cases", cases, "differences", differences, "reference",
        r ? json_pack("{s:o, s:o, s:I, s:I, s:f, s:o}", "name", text(v->pool, r->name), "path",
                      text(v->pool, r->path), "alike", (json_int_t)r->n_alike, "facts",
                      (json_int_t)r->n_facts, "distance", r->distance, "differs",
                      text(v->pool, r->differs))
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
    int err = json_dumpf(o, out, JSON_INDENT(1)) || fputc('\n', out) == EOF ? -EIO : 0;
    json_decref(o);
    json_decref(all);
    return err;
}
