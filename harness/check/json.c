/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict as JSON: see check.h, and docs/check.md for the keys. null is what cannot be told.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/program.h"
#include "harness/check/check.h"
#include "harness/compare/compare.h"

#define CHECK_JSON_SCHEMA 2

#define DIGITS 12 /* of a figure: 0.05, and not 0.050000000000000003 */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Bytes that are no UTF-8 would be refused by jansson. */
static json_t *text(const struct check_result *r, const char *from)
{
    return json_string(view_printable(&r->gate.p->report.pool, from));
}

static json_t *run_json(const struct check_result *r)
{
    const json_t *meta = r->gate.p->report.runs[r->gate.p->n_a].meta;
    const json_t *host = json_object_get(json_object_get(meta, "machine"), "host");
    static const char *const keys[] = {"run", "suite", "started_utc", "version", "commit", "state"};
    json_t *o = json_object();

    json_object_set_new(o, "path", text(r, r->run));
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        const char *value = json_string_value(json_object_get(meta, keys[i]));

        json_object_set_new(o, i ? keys[i] : "name", value ? text(r, value) : json_null());
    }
    const char *name = json_string_value(json_object_get(host, "hostname"));
    json_object_set_new(o, "host", name ? text(r, name) : json_null());
    return o;
}

/* cases: null where it is all of them. */
static json_t *acceptance_json(const struct check_result *r, const struct history_acceptance *a)
{
    json_t *keys = a->n_keys ? json_array() : json_null();

    for (size_t i = 0; i < a->n_keys; i++)
        json_array_append_new(keys, text(r, a->keys[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "run", a->run ? text(r, a->run) : json_null(),
                     "reason", *a->reason ? text(r, a->reason) : json_null(), "by",
                     *a->by ? text(r, a->by) : json_null(), "at_utc", text(r, a->at_utc), "cases",
                     keys);
}

static json_t *baseline_json(const struct check_result *r)
{
    const struct baseline *b = r->baseline;
    json_t *o = json_pack("{s:o, s:[], s:[], s:[]}", "what", text(r, b->text), "runs", "anchors",
                          "accepted");

    for (size_t i = 0; i < b->n; i++) {
        enum pairs_role role = b->choice.roles[0].runs[i];

        if (role != PAIRS_NO_PART)
            json_array_append_new(json_object_get(o, role == PAIRS_LEVEL ? "runs" : "anchors"),
                                  text(r, b->names[i]));
    }
    for (size_t i = 0; i < b->choice.n_accepted; i++)
        json_array_append_new(json_object_get(o, "accepted"),
                              acceptance_json(r, &b->choice.accepted[i]));
    return o;
}

/* null: it was not asked for, or could not be done. */
static json_t *kept_json(const struct check_result *r)
{
    const struct check_kept *k = &r->kept;

    if (!k->done)
        return json_null();
    return json_pack("{s:b, s:b, s:o}", "good", (int)k->judged.good, "taken", (int)k->taken,
                     "accepted",
                     k->judged.acceptance ? acceptance_json(r, &k->acceptance) : json_null());
}

static json_t *counts_json(const struct gate *g)
{
    json_t *o = json_object();

    for (int s = 0; s < GATE_STATES; s++)
        json_object_set_new(o, gate_state_name((enum gate_state)s),
                            json_integer((json_int_t)g->counts[s]));
    return o;
}

static void add_figures(json_t *o, const struct decide_case *c)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"baseline", c->a_value},
                   {"value", c->b_value},
                   {"ratio", c->ratio},
                   {"ratio_low", c->low},
                   {"ratio_high", c->high},
                   {"p_worse", c->p_worse},
                   {"p_better", c->p_better},
                   {"detectable_loss", c->detectable},
                   {"margin", c->margin},
                   {"anchor_ratio", c->anchor_ratio},
                   {"anchor_low", c->anchor_low},
                   {"anchor_high", c->anchor_high},
                   {"median_ratio", c->judged_by == DECIDE_BY_MEDIAN ? c->ratio : c->median_ratio},
                   {"baseline_sustained", c->sustained_a},
                   {"sustained", c->sustained_b}};

    json_object_set_new(o, "decision", json_string(decision_name(c->decision)));
    json_object_set_new(o, "judged_by", json_string(decide_figure_name(c->judged_by)));
    json_object_set_new(o, "proven", json_boolean(c->proven));
    json_object_set_new(o, "beyond_margin", json_boolean(c->beyond));
    json_object_set_new(o, "doubt", json_string(decide_obstacle_name(c->obstacle)));
    json_object_set_new(o, "slipped", json_boolean(c->slipped));
    json_object_set_new(o, "likely", json_boolean(c->likely));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        json_object_set_new(o, numbers[i].key, number(numbers[i].value));
    json_object_set_new(
        o, "more", c->more_launches ? json_integer((json_int_t)c->more_launches) : json_null());
    json_object_set_new(o, "more_of", json_string(c->by_runs ? "baselines" : "launches"));
}

static json_t *case_json(const struct check_result *r, const struct gate_case *c)
{
    const struct pair *pair = c->pair;
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "key",
                          text(r, pair->key), "label", text(r, pair->label), "pipe",
                          text(r, pair->pipe), "bench", text(r, pair->bench->name), "metric",
                          text(r, pair->c->metric), "unit", text(r, pair->c->unit), "state",
                          gate_state_name(c->state), "sentence", text(r, c->text), "differs",
                          text(r, pair->differs ? pair->differs : ""), "code", text(r, pair->code));

    if (o && pair->state == PAIR_READY && !r->gate.options.first)
        add_figures(o, &pair->decide);
    return o;
}

/* What all outputs say, in words. */
static json_t *facts_json(const struct check_result *r)
{
    struct check_fact facts[CHECK_FACTS];
    size_t n = check_facts(r, facts);
    json_t *all = json_object();

    for (size_t i = 0; i < n; i++)
        json_object_set_new(all, facts[i].name, text(r, facts[i].text));
    return all;
}

/* What the suite as a whole says of its runs. */
static void add_suite(json_t *o, const struct gate *g)
{
    const struct decide_overall *all = &g->p->overall;

    json_object_set_new(o, "runs_unknown", json_boolean(all->runs_unknown));
    json_object_set_new(o, "moved_together",
                        json_pack("{s:b, s:I, s:I, s:o}", "seen", (int)all->together, "down",
                                  (json_int_t)all->n_down, "up", (json_int_t)all->n_up, "ratio",
                                  number(all->moved)));
    json_object_set_new(o, "cases_likely", json_integer((json_int_t)g->tally.likely));
    json_object_set_new(o, "cases_doubtful", json_integer((json_int_t)g->tally.doubtful));
    json_object_set_new(o, "cases_lost_within_margin", json_integer((json_int_t)g->tally.within));
}

int output_json(FILE *out, const struct check_result *r)
{
    const struct gate *g = &r->gate;
    json_t *all = json_array();

    for (size_t i = 0; i < r->gate.n; i++)
        json_array_append_new(all, case_json(r, &r->gate.cases[i]));
    json_t *differences = json_array();

    for (size_t i = 0; i < r->n_differences; i++) {
        const struct machine_difference *d = &r->differences[i];

        json_array_append_new(differences,
                              json_pack("{s:o, s:o, s:o, s:b}", "what", text(r, d->what),
                                        "baseline", text(r, d->a), "run", text(r, d->b),
                                        "environment", (int)d->environment));
    }
    json_t *o = json_pack(
        "{s:i, s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:f, s:o, s:I, s:I, s:o, s:b, s:o, s:o, s:o, "
        "s:o, s:o}",
        "schema", CHECK_JSON_SCHEMA, "program", "plumb check", "version", PLUMB_VERSION, "verdict",
        g->verdict == GATE_FIRST ? "first" : gate_verdict_name(g->verdict), "exit", r->exit,
        "sentence", text(r, words_verdict(r)), "run", run_json(r), "baseline", baseline_json(r),
        "margin", r->margin, "detect",
        g->options.detect > 0 ? json_real(g->options.detect) : json_null(), "cases_held",
        (json_int_t)g->tally.held, "cases_unseen", (json_int_t)g->tally.unseen, "unrest",
        number(g->p->overall.unrest), "accepted", (int)r->accepted, "history",
        *r->kept.sentence ? text(r, r->kept.sentence) : json_null(), "kept", kept_json(r), "counts",
        counts_json(g), "differences", differences, "cases", all);

    add_suite(o, g);
    json_object_set_new(o, "detectable",
                        json_pack("{s:o, s:I, s:I, s:o, s:I, s:I, s:o, s:s}", "loss",
                                  number(r->sight.today), "cases", (json_int_t)r->sight.n,
                                  "cases_that_see", (json_int_t)r->sight.n_see, "then",
                                  number(r->sight.then), "nights", (json_int_t)r->sight.nights,
                                  "repeat", (json_int_t)r->sight.repeat, "minutes",
                                  number(r->sight.minutes), "sentence", r->sight.sentence));
    json_object_set_new(o, "facts", facts_json(r));
    int err =
        json_dumpf(o, out, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS)) || fputc('\n', out) == EOF
            ? -EIO
            : 0;
    json_decref(o);
    return err;
}
