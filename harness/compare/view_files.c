/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons as CSV and JSON: see compare.h. */
#include <errno.h>
#include <math.h>

#include "core/text.h"
#include "harness/compare/compare.h"
#include "harness/forecast/versus.h"

/* A comparison as CSV: a line a case, whatever became of it; an empty cell is what cannot be
 * told. */

static const char header[] =
    "pipe,key,label,state,verdict,proven,beyond,ratio,ratio_low,ratio_high,margin,a_value,b_value,"
    "unit,a_runs,a_launches,b_runs,b_launches,p_worse,p_better,more,more_of,detectable_loss,"
    "reason,differs,by_pairs,word,a_steal_percent,b_steal_percent,a_taken,b_taken,judged_by,"
    "a_sustained,b_sustained,code\n";

static void put_number(FILE *out, double value)
{
    fputc(',', out);
    if (isfinite(value))
        fprintf(out, "%.9g", value);
}

static void put_count(FILE *out, const struct decide_side *side)
{
    size_t runs = 0, launches = 0;

    for (size_t i = 0; i < side->n; i++) {
        runs += side->runs[i].n > 0;
        launches += side->runs[i].n;
    }
    fprintf(out, ",%zu,%zu", runs, launches);
}

static const char *word_code(const struct pair *pair)
{
    static const char *const codes[] = {[WORD_UNDECIDED] = "undecided",
                                        [WORD_DISTURBED] = "disturbed",
                                        [WORD_LIKELY_WORSE] = "likely-worse",
                                        [WORD_LIKELY_BETTER] = "likely-better"};
    enum view_word word = view_word(pair);

    return word == WORD_DECIDED ? decision_name(pair->decide.decision) : codes[word];
}

static const char *state_name(const struct pair *pair)
{
    static const char *const names[] = {[PAIR_READY] = "compared",
                                        [PAIR_REFUSED] = "not comparable",
                                        [PAIR_LOST_A] = "no value in A",
                                        [PAIR_LOST_B] = "no value in B",
                                        [PAIR_LOST_BOTH] = "no value in either",
                                        [PAIR_TAKEN] = "taken CPU",
                                        [PAIR_LEFT_OUT] = "left out"};

    return pair->state == PAIR_LOST_B && pair->failed_b ? "B failed" : names[pair->state];
}

int view_print_csv_head(FILE *out, const char *first)
{
    return fprintf(out, "%s%s", first, header) < 0 ? -EIO : 0;
}

int view_print_csv(FILE *out, struct view *v)
{
    int err = view_print_csv_head(out, "");

    return err ? err : view_print_csv_rows(out, v, NULL);
}

int view_print_csv_rows(FILE *out, struct view *v, const char *run)
{
    for (size_t i = 0; i < v->p->n; i++) {
        const struct pair *pair = &v->p->all[i];
        const char *texts[] = {pair->pipe, pair->key, pair->label, state_name(pair)};

        if (run)
            fprintf(out, "%s,", run);
        for (size_t k = 0; k < 4; k++) {
            fputs(k ? "," : "", out);
            csv_print(out, texts[k]);
        }
        if (pair->state == PAIR_READY) {
            const struct decide_case *c = &pair->decide;

            fprintf(out, ",%s,%s,%s", decision_name(c->decision), c->proven ? "yes" : "no",
                    c->beyond ? "yes" : "no");
            put_number(out, c->ratio);
            put_number(out, c->low);
            put_number(out, c->high);
            put_number(out, c->margin);
            put_number(out, c->a_value);
            put_number(out, c->b_value);
            fputc(',', out);
            csv_print(out, pair->c->unit);
            put_count(out, &c->a);
            put_count(out, &c->b);
            put_number(out, c->p_worse);
            put_number(out, c->p_better);
            if (c->more_launches)
                fprintf(out, ",%zu,%s", c->more_launches, c->by_runs ? "runs" : "launches");
            else
                fputs(",,", out);
            put_number(out, c->detectable);
        } else
            fputs(",,,,,,,,,,,,,,,,,,,", out);
        fputc(',', out);
        csv_print(out, pair->reason);
        fputc(',', out);
        csv_print(out, pair->differs);
        if (pair->state == PAIR_READY) {
            fprintf(out, ",%s,%s", pair->decide.by_pairs ? "yes" : "no", word_code(pair));
            put_number(out, pair->noise_a.steal_percent);
            put_number(out, pair->noise_b.steal_percent);
            put_number(out, pair->noise_a.taken);
            put_number(out, pair->noise_b.taken);
            fprintf(out, ",%s", decide_figure_name(pair->decide.judged_by));
            put_number(out, pair->decide.sustained_a);
            put_number(out, pair->decide.sustained_b);
        } else
            fputs(",,,,,,,,", out);
        fputc(',', out);
        csv_print(out, pair->code);
        fputc('\n', out);
    }
    return ferror(out) ? -EIO : 0;
}

/* ---- A comparison as JSON: null is what cannot be told ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Bytes that are no UTF-8 would be refused by jansson. */
static json_t *text(struct pool *pool, const char *from)
{
    return json_string(view_printable(pool, from));
}

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
        json_object_set_new(o, decision_name((enum decision)d),
                            json_integer((json_int_t)counts[d]));
    return o;
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

static json_t *disturbance_json(const struct disturbance *d)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "rows", (json_int_t)d->rows, "noisy",
                     (json_int_t)d->noisy, "throttled", (json_int_t)d->throttled, "steal_percent",
                     number(d->steal_percent), "quota_percent", number(d->quota_percent),
                     "gpu_throttled_percent", number(d->gpu_percent), "taken", number(d->taken));
}

static void add_decision(struct view *v, json_t *o, const struct pair *pair)
{
    const struct decide_case *c = &pair->decide;
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"ratio", c->ratio},
                   {"ratio_low", c->low},
                   {"ratio_high", c->high},
                   {"margin", c->margin},
                   {"a_value", c->a_value},
                   {"b_value", c->b_value},
                   {"a_sustained", c->sustained_a},
                   {"b_sustained", c->sustained_b},
                   {"p_worse", c->p_worse},
                   {"p_better", c->p_better},
                   {"standard_error", c->error},
                   {"degrees_of_freedom", c->freedom},
                   {"detectable_loss", c->detectable}};

    json_object_set_new(o, "verdict", json_string(decision_name(c->decision)));
    json_object_set_new(o, "judged_by", json_string(decide_figure_name(c->judged_by)));
    json_object_set_new(o, "proven", json_boolean(c->proven));
    json_object_set_new(o, "beyond", json_boolean(c->beyond));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        json_object_set_new(o, numbers[i].name, number(numbers[i].value));
    json_object_set_new(
        o, "more", c->more_launches ? json_integer((json_int_t)c->more_launches) : json_null());
    json_object_set_new(o, "more_of", json_string(c->by_runs ? "runs" : "launches"));
    json_object_set_new(o, "by_pairs", json_boolean(c->by_pairs));
    json_object_set_new(o, "a_launches", values_json(&c->a));
    json_object_set_new(o, "b_launches", values_json(&c->b));
    json_object_set_new(o, "differs", text(v->pool, pair->differs));
    json_object_set_new(o, "word", json_string(word_code(pair)));
    json_object_set_new(o, "a_disturbance", disturbance_json(&pair->noise_a));
    json_object_set_new(o, "b_disturbance", disturbance_json(&pair->noise_b));
}

static json_t *case_json(struct view *v, const struct pair *pair)
{
    static const char *const states[] = {
        [PAIR_READY] = "compared",   [PAIR_REFUSED] = "refused",     [PAIR_LOST_A] = "lost-a",
        [PAIR_LOST_B] = "lost-b",    [PAIR_LOST_BOTH] = "lost-both", [PAIR_TAKEN] = "taken",
        [PAIR_LEFT_OUT] = "left-out"};
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:s, s:b, s:o, s:o}", "key",
                          text(v->pool, pair->key), "label", text(v->pool, pair->label), "pipe",
                          text(v->pool, pair->pipe), "unit", text(v->pool, pair->c->unit), "state",
                          states[pair->state], "failed_b", (int)pair->failed_b, "reason",
                          text(v->pool, pair->reason), "code", text(v->pool, pair->code));

    if (o && pair->state == PAIR_READY)
        add_decision(v, o, pair);
    return o;
}

json_t *view_json(struct view *v, const char *run)
{
    const struct decide_overall *all = &v->p->overall;
    size_t counts[VIEW_DECISIONS] = {[DECISION_EQUIVALENT] = all->n_equivalent,
                                     [DECISION_BETTER] = all->n_better,
                                     [DECISION_WORSE] = all->n_worse,
                                     [DECISION_INCONCLUSIVE] = all->n_inconclusive};
    json_t *pipes = json_array(), *cases = json_array(), *differences = json_array();
    json_t *o;

    for (size_t i = 0; i < v->n_pipes; i++) {
        const struct view_pipe *pipe = &v->pipes[i];
        json_array_append_new(
            pipes, json_pack("{s:o, s:I, s:o, s:o}", "pipe", text(v->pool, pipe->name), "cases",
                             (json_int_t)pipe->n_cases, "counts", counts_json(pipe->counts),
                             "worst", pipe->worst ? text(v->pool, pipe->worst->key) : json_null()));
    }
    for (size_t i = 0; i < v->p->n; i++)
        json_array_append_new(cases, case_json(v, &v->p->all[i]));
    for (size_t i = 0; i < v->n_differences; i++) {
        const struct machine_difference *d = &v->differences[i];
        json_array_append_new(differences,
                              json_pack("{s:o, s:o, s:o, s:o}", "what", text(v->pool, d->what), "a",
                                        *d->a ? text(v->pool, d->a) : json_null(), "b",
                                        *d->b ? text(v->pool, d->b) : json_null(), "pipes",
                                        text(v->pool, d->pipes)));
    }
    const struct reference *r = v->reference;

    o = json_pack("{s:i, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
                  VIEW_JSON_SCHEMA, "verdict", decision_name(all->decision), "exit", view_exit(v),
                  "sentence", text(v->pool, v->verdict), "basis", text(v->pool, v->basis), "counts",
                  counts_json(counts), "a", runs_json(v, 0, v->p->n_a), "b",
                  runs_json(v, v->p->n_a, v->p->n_b), "pipes", pipes, "cases", cases, "differences",
                  differences, "reference",
                  r ? json_pack("{s:o, s:o, s:I, s:I, s:f, s:o}", "name", text(v->pool, r->name),
                                "path", text(v->pool, r->path), "alike", (json_int_t)r->n_alike,
                                "facts", (json_int_t)r->n_facts, "distance", r->distance, "differs",
                                text(v->pool, r->differs))
                    : json_null());
    if (o && v->versus) {
        const struct versus *of = v->versus;

        json_object_set_new(
            o, "training",
            json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "model",
                      text(v->pool, of->model), "a_dtype", text(v->pool, of->dtypes[0]), "b_dtype",
                      text(v->pool, of->dtypes[1]), "a_samples_per_s", number(of->a),
                      "b_samples_per_s", number(of->b), "ratio", number(of->ratio), "ratio_low",
                      number(of->low), "ratio_high", number(of->high), "reason",
                      text(v->pool, of->why), "a_recomputes", (int)of->tight[0], "b_recomputes",
                      (int)of->tight[1]));
    }
    if (o && run)
        json_object_set_new(o, "run", json_string(run));
    return o;
}

int view_print_json(FILE *out, struct view *v)
{
    json_t *o = view_json(v, NULL);
    int err = json_dumpf(o, out, JSON_INDENT(1)) || fputc('\n', out) == EOF ? -EIO : 0;

    json_decref(o);
    return err;
}
