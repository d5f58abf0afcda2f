/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict as JSON: see output.h, and docs/check.md for the keys. null is what cannot be told.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/version.h"
#include "harness/check/output.h"
#include "harness/compare/view.h"

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

/* The verdict for programs: no blank in it. */
static const char *verdict_word(enum gate_verdict verdict)
{
    return verdict == GATE_FIRST ? "first" : gate_verdict_name(verdict);
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

static json_t *baseline_json(const struct check_result *r)
{
    static const char *const keys[] = {
        [DECIDE_LEVEL] = "runs", [DECIDE_ANCHOR] = "anchors", [DECIDE_SPREAD] = "spread"};
    const struct baseline *b = r->baseline_of;
    json_t *o = json_pack("{s:o, s:[], s:[], s:[], s:i}", "what", text(r, r->baseline), "runs",
                          "anchors", "spread", "best_of", (int)r->best_of);

    for (size_t i = 0; i < b->n; i++) {
        enum decide_role role = b->choice.n_roles ? b->choice.roles[0].runs[i].role : DECIDE_LEVEL;

        json_array_append_new(json_object_get(o, keys[role]), text(r, b->names[i]));
    }
    return o;
}

static json_t *counts_json(const struct gate *g)
{
    json_t *o = json_object();

    for (int s = 0; s < GATE_STATES; s++)
        json_object_set_new(o, gate_state_name((enum gate_state)s),
                            json_integer((json_int_t)g->counts[s]));
    return o;
}

static void add_figures(json_t *o, const struct decide_case *c, double see)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"baseline", c->a_value},      {"value", c->b_value},
                   {"ratio", c->ratio},           {"ratio_low", c->low},
                   {"ratio_high", c->high},       {"p_worse", c->p_worse},
                   {"p_better", c->p_better},     {"smallest_loss", c->smallest},
                   {"margin", c->margin},         {"anchor_ratio", c->anchor_ratio},
                   {"anchor_low", c->anchor_low}, {"anchor_high", c->anchor_high}};

    json_object_set_new(o, "decision", json_string(decision_name(c->decision)));
    json_object_set_new(o, "proven", json_boolean(c->proven));
    json_object_set_new(o, "beyond_margin", json_boolean(c->beyond));
    json_object_set_new(o, "doubt", json_string(decide_obstacle_name(c->obstacle)));
    json_object_set_new(o, "slipped", json_boolean(c->slipped));
    json_object_set_new(o, "could_show_loss", json_boolean(!gate_is_blind(c, see)));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        json_object_set_new(o, numbers[i].key, number(numbers[i].value));
    json_object_set_new(
        o, "more", c->more_launches ? json_integer((json_int_t)c->more_launches) : json_null());
    json_object_set_new(o, "more_of", json_string(c->by_runs ? "baselines" : "launches"));
}

static json_t *case_json(const struct check_result *r, const struct gate_case *c)
{
    const struct pair *pair = c->pair;
    json_t *o =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "key", text(r, pair->key),
                  "label", text(r, pair->label), "pipe", text(r, pair->pipe), "bench",
                  text(r, pair->bench->name), "metric", text(r, pair->c->metric), "unit",
                  text(r, pair->c->unit), "state", gate_state_name(c->state), "sentence",
                  text(r, c->text), "differs", text(r, pair->differs ? pair->differs : ""));

    if (o && pair->state == PAIR_READY && !r->gate.options.first)
        add_figures(o, &pair->decide, r->gate.options.see);
    return o;
}

static json_t *cases_json(const struct check_result *r)
{
    json_t *all = json_array();

    for (size_t i = 0; i < r->gate.n; i++)
        json_array_append_new(all, case_json(r, &r->gate.cases[i]));
    return all;
}

static json_t *differences_json(const struct check_result *r)
{
    json_t *all = json_array();

    for (size_t i = 0; i < r->n_differences; i++)
        json_array_append_new(
            all, json_pack("{s:o, s:o, s:o}", "what", text(r, r->differences[i].what), "baseline",
                           text(r, r->differences[i].a), "run", text(r, r->differences[i].b)));
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
    json_object_set_new(o, "cases_doubtful", json_integer((json_int_t)g->tally.doubtful));
    json_object_set_new(o, "cases_lost_within_margin", json_integer((json_int_t)g->tally.within));
}

int output_json(FILE *out, const struct check_result *r)
{
    const struct gate *g = &r->gate;
    json_t *o = json_pack(
        "{s:i, s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:f, s:f, s:b, s:I, s:I, s:o, s:b, s:o, "
        "s:o, s:o, s:o}",
        "schema", CHECK_JSON_SCHEMA, "program", "plumb check", "version", PLUMB_VERSION, "verdict",
        verdict_word(g->verdict), "exit", r->exit, "sentence", text(r, g->sentence), "unseen",
        text(r, g->unseen), "run", run_json(r), "baseline", baseline_json(r), "margin", r->margin,
        "see", g->options.see, "strict", (int)g->options.strict, "cases_held",
        (json_int_t)g->tally.held, "cases_unseen", (json_int_t)g->tally.unseen, "unrest",
        number(g->p->overall.unrest), "accepted", (int)r->accepted, "history",
        *r->history ? text(r, r->history) : json_null(), "counts", counts_json(g), "differences",
        differences_json(r), "cases", cases_json(r));
    int err = o ? 0 : -ENOMEM;

    if (o)
        add_suite(o, g);
    if (o && (json_dumpf(o, out, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS)) ||
              fputc('\n', out) == EOF))
        err = -EIO;
    json_decref(o);
    return err;
}
