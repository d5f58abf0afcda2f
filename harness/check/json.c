/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict as JSON: see check.h, and docs/check.md for the keys. null is what cannot be told.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/program.h"
#include "harness/check/check.h"
#include "harness/compare/compare.h"
#include "harness/document/record.h"

#define CHECK_JSON_SCHEMA 4

#define ADD(pool, object, fields)                                                                  \
    record_json(pool, object, fields, sizeof(fields) / sizeof(*(fields)))

static json_t *run_json(struct pool *pool, const struct check_result *r)
{
    const json_t *meta = r->gate.p->report.runs[r->gate.p->n_a].meta;
    const json_t *host = json_object_get(json_object_get(meta, "machine"), "host");
    static const char *const keys[] = {"suite", "started_utc", "version", "commit", "state"};
    json_t *o = json_object();
    const struct record_field named[] = {
        record_text("path", r->run),
        record_text("name", json_string_value(json_object_get(meta, "run"))),
        record_text("host", json_string_value(json_object_get(host, "hostname")))};

    ADD(pool, o, named);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        json_object_set_new(o, keys[i],
                            json_text(pool, json_string_value(json_object_get(meta, keys[i]))));
    return o;
}

static json_t *baseline_json(struct pool *pool, const struct baseline *b)
{
    json_t *o = json_pack("{s:o, s:[], s:[], s:[]}", "what", json_text(pool, b->text), "runs",
                          "anchors", "accepted");

    for (size_t i = 0; i < b->n; i++) {
        enum pairs_role role = b->choice.roles[0].runs[i];

        if (role != PAIRS_NO_PART)
            json_array_append_new(json_object_get(o, role == PAIRS_LEVEL ? "runs" : "anchors"),
                                  json_text(pool, b->names[i]));
    }
    for (size_t i = 0; i < b->choice.n_accepted; i++)
        json_array_append_new(json_object_get(o, "accepted"),
                              history_acceptance_json(pool, &b->choice.accepted[i]));
    return o;
}

static json_t *case_json(struct pool *pool, const struct gate *g, const struct gate_case *of)
{
    const struct pair *pair = of->pair;
    const struct decide_case *c = &pair->decide;
    json_t *o = json_object();
    const struct record_field fields[] = {
        record_text("key", pair->key),
        record_text("label", pair->label),
        record_text("pipe", pair->pipe),
        record_text("bench", pair->bench->name),
        record_text("metric", pair->c->metric),
        record_text("unit", pair->c->unit),
        record_text("state", gate_state_name(of->state)),
        record_text("sentence", of->text),
        record_text("differs", pair->differs ? pair->differs : ""),
        record_text("code", pair->code)};
    /* a: the baseline; b: the run. What plumb compare has not, as it has no baseline of many runs: */
    const struct record_field figures[] = {
        record_text("doubt", decide_obstacle_name(c->obstacle)),
        record_yes("slipped", c->slipped),
        record_yes("likely", c->likely),
        record_number("anchor_ratio", c->anchor_ratio),
        record_number("anchor_low", c->anchor_low),
        record_number("anchor_high", c->anchor_high),
        record_number("median_ratio",
                      c->judged_by == DECIDE_BY_MEDIAN ? c->ratio : c->median_ratio)};

    ADD(pool, o, fields);
    if (pair->state == PAIR_READY && !g->options.first) {
        view_figures_json(pool, pair, o);
        ADD(pool, o, figures);
    }
    return o;
}

int output_json(FILE *out, const struct check_result *r)
{
    const struct gate *g = &r->gate;
    const struct sight *s = &r->sight;
    const struct check_kept *k = &r->kept;
    const struct decide_overall *all = &g->p->overall;
    struct pool *pool = &g->p->report.pool;
    struct check_fact facts[CHECK_FACTS];
    size_t n_facts = check_facts(r, facts);
    json_t *o = json_object(), *counts = json_object(), *differences = json_array(),
           *cases = json_array(), *words = json_object(), *together = json_object(),
           *detectable = json_object();
    const struct record_field verdict[] = {
        record_count("schema", CHECK_JSON_SCHEMA),
        record_text("program", "plumb check"),
        record_text("version", PLUMB_VERSION),
        record_text("verdict", g->verdict == GATE_FIRST ? "first" : gate_verdict_name(g->verdict)),
        record_count("exit", (size_t)r->exit),
        record_text("sentence", words_verdict(r)),
        record_number("margin", r->margin),
        record_number("detect", g->options.detect > 0 ? g->options.detect : NAN),
        record_count("cases_held", g->tally.held),
        record_count("cases_unseen", g->tally.unseen),
        record_count("cases_likely", g->tally.likely),
        record_count("cases_doubtful", g->tally.doubtful),
        record_count("cases_slower_within_margin", g->tally.within),
        record_number("unrest", all->unrest),
        record_yes("runs_unknown", all->runs_unknown),
        record_yes("accepted", r->accepted),
        record_text("history", *k->sentence ? k->sentence : NULL)};
    const struct record_field moved[] = {
        record_yes("seen", all->together), record_count("down", all->n_down),
        record_count("up", all->n_up), record_number("ratio", all->moved)};
    const struct record_field sight[] = {
        record_number("slowdown", s->today),      record_count("cases", s->n),
        record_count("cases_that_see", s->n_see), record_number("then", s->then),
        record_count("nights", s->nights),        record_count("repeat", s->repeat),
        record_number("minutes", s->minutes),     record_text("sentence", s->sentence)};

    ADD(pool, o, verdict);
    ADD(pool, together, moved);
    ADD(pool, detectable, sight);
    for (int i = 0; i < GATE_STATES; i++)
        json_object_set_new(counts, gate_state_name((enum gate_state)i),
                            json_integer((json_int_t)g->counts[i]));
    for (size_t i = 0; i < r->n_differences; i++) {
        const struct machine_difference *d = &r->differences[i];
        const struct record_field of[] = {record_text("what", d->what),
                                          record_text("baseline", d->a), record_text("run", d->b),
                                          record_yes("environment", d->environment)};
        json_t *one = json_object();

        ADD(pool, one, of);
        json_array_append_new(differences, one);
    }
    for (size_t i = 0; i < g->n; i++)
        json_array_append_new(cases, case_json(pool, g, &g->cases[i]));
    for (size_t i = 0; i < n_facts; i++)
        json_object_set_new(words, facts[i].name, json_text(pool, facts[i].text));
    json_object_set_new(o, "run", run_json(pool, r));
    json_object_set_new(o, "baseline", baseline_json(pool, r->baseline));
    json_object_set_new(o, "moved_together", together);
    json_object_set_new(o, "detectable", detectable);
    /* null: it was not asked for, or could not be done */
    json_object_set_new(o, "kept",
                        !k->done ? json_null()
                                 : json_pack("{s:b, s:b, s:o}", "good", (int)k->judged.good,
                                             "taken", (int)k->taken, "accepted",
                                             k->judged.acceptance
                                                 ? history_acceptance_json(pool, &k->acceptance)
                                                 : json_null()));
    json_object_set_new(o, "counts", counts);
    json_object_set_new(o, "differences", differences);
    json_object_set_new(o, "cases", cases);
    json_object_set_new(o, "facts", words);
    return json_write(o, out);
}
