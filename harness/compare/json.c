/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as JSON: null is what cannot be told. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "harness/compare/view.h"

#define JSON_SCHEMA 1

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Bytes that are no UTF-8 would be refused by jansson. */
static json_t *text(struct view *v, const char *from)
{
    return json_string(view_printable(v->pool, from));
}

static json_t *runs_json(struct view *v, size_t first, size_t n)
{
    json_t *runs = json_array();

    for (size_t i = first; i < first + n; i++)
        json_array_append_new(runs, json_pack("{s:o, s:o}", "name", text(v, v->p->report.names[i]),
                                              "path", text(v, v->p->report.runs[i].path)));
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

static json_t *pipe_json(struct view *v, const struct view_pipe *pipe)
{
    return json_pack("{s:o, s:I, s:o, s:o}", "pipe", text(v, pipe->name), "cases",
                     (json_int_t)pipe->n, "counts", counts_json(pipe->counts), "worst",
                     pipe->worst ? text(v, pipe->worst->key) : json_null());
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
                   {"p_worse", c->p_worse},
                   {"p_better", c->p_better},
                   {"standard_error", c->error},
                   {"degrees_of_freedom", c->freedom},
                   {"smallest_loss_shown", c->smallest}};

    json_object_set_new(o, "verdict", json_string(decision_name(c->decision)));
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
    json_object_set_new(o, "differs", text(v, pair->differs));
}

static json_t *case_json(struct view *v, const struct pair *pair)
{
    static const char *const states[] = {
        [PAIR_READY] = "compared",   [PAIR_REFUSED] = "refused",     [PAIR_LOST_A] = "lost-a",
        [PAIR_LOST_B] = "lost-b",    [PAIR_LOST_BOTH] = "lost-both", [PAIR_TAKEN] = "taken",
        [PAIR_LEFT_OUT] = "left-out"};
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:s, s:b, s:o}", "key", text(v, pair->key), "label",
                          text(v, pair->label), "pipe", text(v, pair->pipe), "unit",
                          text(v, pair->c->unit), "state", states[pair->state], "failed_b",
                          (int)pair->failed_b, "reason", text(v, pair->reason));

    if (o && pair->state == PAIR_READY)
        add_decision(v, o, pair);
    return o;
}

static json_t *difference_json(struct view *v, const struct machine_difference *d)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "what", text(v, d->what), "a",
                     *d->a ? text(v, d->a) : json_null(), "b", *d->b ? text(v, d->b) : json_null(),
                     "pipes", text(v, d->pipes));
}

int view_print_json(FILE *out, struct view *v)
{
    const struct decide_overall *all = &v->p->overall;
    size_t counts[VIEW_DECISIONS] = {[DECISION_EQUIVALENT] = all->n_equivalent,
                                     [DECISION_BETTER] = all->n_better,
                                     [DECISION_WORSE] = all->n_worse,
                                     [DECISION_INCONCLUSIVE] = all->n_inconclusive};
    json_t *pipes = json_array(), *cases = json_array(), *differences = json_array();
    json_t *o;
    int err = -ENOMEM;

    for (size_t i = 0; i < v->n_pipes; i++)
        json_array_append_new(pipes, pipe_json(v, &v->pipes[i]));
    for (size_t i = 0; i < v->p->n; i++)
        json_array_append_new(cases, case_json(v, &v->p->all[i]));
    for (size_t i = 0; i < v->n_differences; i++)
        json_array_append_new(differences, difference_json(v, &v->differences[i]));
    o = json_pack("{s:i, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", JSON_SCHEMA,
                  "verdict", decision_name(all->decision), "exit", view_exit(v), "sentence",
                  text(v, v->verdict), "basis", text(v, v->basis), "counts", counts_json(counts),
                  "a", runs_json(v, 0, v->p->n_a), "b", runs_json(v, v->p->n_a, v->p->n_b), "pipes",
                  pipes, "cases", cases, "differences", differences);
    if (o) {
        err = json_dumpf(o, out, JSON_INDENT(1)) || fputc('\n', out) == EOF ? -EIO : 0;
        json_decref(o);
    }
    return err;
}
