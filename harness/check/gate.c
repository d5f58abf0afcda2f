/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: see check.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/program.h"
#include "harness/check/check.h"

/* Who did not ask for a sensitivity is woken by what regressed, is missing, or would have regressed but
 * for a doubt; and where nothing at all could be decided, unless a history is still too short. */
int gate_exit(const struct gate *g)
{
    bool wakes = g->options.detect > 0 || g->tally.doubtful || !g->options.history;
    const int codes[] = {[GATE_PASSED] = EXIT_GOOD,
                         [GATE_LOST] = EXIT_BAD,
                         [GATE_UNDECIDED] = wakes ? EXIT_UNDECIDED : EXIT_GOOD,
                         [GATE_INCOMPLETE] = EXIT_INCOMPLETE,
                         [GATE_FIRST] = EXIT_UNDECIDED};

    return codes[g->verdict];
}

const char *gate_verdict_name(enum gate_verdict verdict)
{
    static const char *const names[] = {[GATE_PASSED] = "passed",
                                        [GATE_LOST] = "regressed",
                                        [GATE_UNDECIDED] = "inconclusive",
                                        [GATE_INCOMPLETE] = "incomplete",
                                        [GATE_FIRST] = "first run"};

    return names[verdict];
}

const char *gate_state_name(enum gate_state state)
{
    static const char *const names[] = {"regressed", "wrong",      "failed", "missing",
                                        "refused",   "accepted",   "unseen", "inconclusive",
                                        "better",    "equivalent", "new",    "absent"};

    return names[state];
}

/* An interval that happens to lie above the loss is no sight: of many noisy cases one always does.
 * One that lies within the margin is narrow. */
bool gate_is_blind(const struct decide_case *c, double loss)
{
    if (c->decision == DECISION_WORSE)
        return false;
    if (c->margin > loss)
        return true;
    if (c->decision == DECISION_EQUIVALENT)
        return false;
    return !(c->detectable <= loss);
}

/* Did a launch of the run give wrong data? */
static bool is_wrong(const struct pairs *p, const struct pair *pair)
{
    for (size_t run = p->n_a; run < p->report.n_runs; run++) {
        const struct report_point *at = &pair->c->points[run];

        for (size_t i = 0; i < at->n_rows; i++)
            if (!strcmp(row_text(&pair->bench->rows[run], at->rows[i], FIELD_STATUS), "wrong"))
                return true;
    }
    return false;
}

static enum gate_state state_of_decision(const struct gate *g, const struct decide_case *c)
{
    switch (c->decision) {
    case DECISION_BETTER:
        return GATE_BETTER;
    case DECISION_EQUIVALENT:
        return GATE_EQUIVALENT;
    default:
        return g->options.detect > 0 && gate_is_blind(c, g->options.detect) ? GATE_UNSEEN
                                                                            : GATE_INCONCLUSIVE;
    }
}

/* A case that lost says so, though one of its launches failed, too. */
static enum gate_state state_of(const struct gate *g, const struct pair *pair)
{
    bool ready = pair->state == PAIR_READY && !g->options.first;

    if (is_wrong(g->p, pair))
        return GATE_WRONG;
    if (ready && pair->decide.decision == DECISION_WORSE)
        return GATE_REGRESSED;
    if (pair->failed_b)
        return GATE_FAILED;
    switch (pair->state) {
    case PAIR_READY:
        return ready ? state_of_decision(g, &pair->decide) : GATE_NEW;
    case PAIR_REFUSED:
        return GATE_REFUSED;
    case PAIR_LOST_B:
        return GATE_MISSING;
    case PAIR_LOST_A:
        return GATE_NEW;
    case PAIR_TAKEN:
        return g->options.first        ? GATE_NEW
               : g->options.detect > 0 ? GATE_UNSEEN
                                       : GATE_INCONCLUSIVE;
    default:
        return GATE_ABSENT;
    }
}

static int compare_cases(const void *a, const void *b)
{
    const struct gate_case *x = a, *y = b;
    double rx = x->pair->decide.ratio, ry = y->pair->decide.ratio;
    int d = (x->state > y->state) - (x->state < y->state);

    if (!d && x->pair->state == PAIR_READY && y->pair->state == PAIR_READY && rx != ry)
        d = (rx > ry) - (rx < ry);
    return d ? d : (x->pair > y->pair) - (x->pair < y->pair);
}

static bool lost_within(const struct decide_case *c)
{
    return c->decision == DECISION_EQUIVALENT && c->proven && c->ratio < 1;
}

void gate_count(struct gate_tally *t, const struct decide_case *c, double detect)
{
    t->held += isfinite(c->error);
    t->seeing +=
        isfinite(c->error) && (c->detectable < SIGHT_NONE || c->decision != DECISION_INCONCLUSIVE);
    t->lost += c->decision == DECISION_WORSE;
    t->unseen += detect > 0 && gate_is_blind(c, detect);
    t->likely += c->likely;
    t->doubtful += c->decision == DECISION_INCONCLUSIVE && c->ratio < 1 - c->margin &&
                   (c->obstacle == OBSTACLE_TOGETHER || c->obstacle == OBSTACLE_STRANGE ||
                    c->obstacle == OBSTACLE_SHAPE || (c->obstacle == OBSTACLE_RUNS && c->likely));
    t->within += lost_within(c);
}

enum gate_verdict gate_tally_verdict(const struct gate_tally *t)
{
    if (t->lost)
        return GATE_LOST;
    return !t->seeing || t->unseen || t->doubtful ? GATE_UNDECIDED : GATE_PASSED;
}

static const struct gate_case *worse_of(const struct gate_case *a, const struct gate_case *b)
{
    return !a || b->pair->decide.ratio < a->pair->decide.ratio ? b : a;
}

/* A run that was cut short may lack launches of any case. */
static const char *unfinished(const struct pairs *p)
{
    for (size_t run = p->n_a; run < p->report.n_runs; run++) {
        const char *state = json_string_value(json_object_get(p->report.runs[run].meta, "state"));

        if (state && strcmp(state, "complete") != 0)
            return state;
    }
    return "";
}

/* By the cases' states. */
static void judge(struct gate *g)
{
    memset(g->counts, 0, sizeof(g->counts));
    g->tally = (struct gate_tally){0};
    g->n_taken = 0;
    g->likely = g->within = NULL;
    qsort(g->cases, g->n, sizeof(*g->cases), compare_cases);
    for (size_t i = 0; i < g->n; i++) {
        const struct gate_case *c = &g->cases[i];
        const struct pair *pair = c->pair;
        bool counts = !g->options.first && c->state != GATE_ACCEPTED;

        g->counts[c->state]++;
        g->n_taken += *pair->taken != 0;
        if (counts && pair->state == PAIR_TAKEN)
            g->tally.unseen += g->options.detect > 0;
        if (counts && pair->state == PAIR_READY) {
            gate_count(&g->tally, &pair->decide, g->options.detect);
            if (pair->decide.likely)
                g->likely = worse_of(g->likely, c);
            if (lost_within(&pair->decide))
                g->within = worse_of(g->within, c);
        }
    }
    g->verdict =
        g->counts[GATE_REGRESSED] || g->counts[GATE_WRONG] ? GATE_LOST
        : g->counts[GATE_FAILED] || g->counts[GATE_MISSING] || g->counts[GATE_REFUSED] || *g->state
            ? GATE_INCOMPLETE
        : g->options.first ? GATE_FIRST
                           : gate_tally_verdict(&g->tally);
    g->good = g->verdict != GATE_LOST && g->verdict != GATE_INCOMPLETE && !g->tally.likely;
}

void gate_make(struct gate *g, struct pairs *p, const struct gate_options *options)
{
    *g = (struct gate){.p = p, .options = *options, .state = unfinished(p)};
    g->cases = pool_alloc(&p->report.pool, p->n, sizeof(*g->cases));
    for (size_t i = 0; i < p->n; i++) {
        struct gate_case *c = &g->cases[g->n++];

        c->pair = &p->all[i];
        c->state = state_of(g, c->pair);
        c->text = words_case(g, c);
    }
    judge(g);
}

void gate_accept(struct gate *g, const char *const *keys, size_t n_keys)
{
    for (size_t i = 0; i < g->n; i++) {
        struct gate_case *c = &g->cases[i];
        bool likely = c->pair->state == PAIR_READY && c->pair->decide.likely, asked = !n_keys;

        for (size_t k = 0; k < n_keys; k++)
            asked = asked || !strcmp(keys[k], c->pair->key);
        if ((c->state > GATE_REFUSED && !likely) || !asked)
            continue;
        c->state = GATE_ACCEPTED;
        c->text = pool_text(&g->p->report.pool, "accepted: %s", c->text);
    }
    judge(g);
}
