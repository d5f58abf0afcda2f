/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: see gate.h. */
#include "harness/check/gate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/exit_code.h"
#include "harness/check/words.h"

int gate_exit(enum gate_verdict verdict)
{
    static const int codes[] = {[GATE_PASSED] = EXIT_GOOD,
                                [GATE_LOST] = EXIT_BAD,
                                [GATE_UNDECIDED] = EXIT_UNDECIDED,
                                [GATE_INCOMPLETE] = EXIT_INCOMPLETE,
                                [GATE_FIRST] = EXIT_UNDECIDED};

    return codes[verdict];
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
    static const char *const names[] = {"regressed",  "wrong",  "failed",       "missing",
                                        "refused",    "unseen", "inconclusive", "better",
                                        "equivalent", "new",    "absent"};

    return names[state];
}

/* Of the last runs of the level that have the case decide_suite() picks the best; all of them tell what varies. */
static void pick_best(struct decide_case *c, size_t last)
{
    size_t n = 0;

    for (size_t i = 0; i < c->a.n; i++)
        n += c->a.runs[i].n > 0 && c->a.runs[i].role == DECIDE_LEVEL;
    c->best_of = (unsigned)(n < last ? n : last);
}

int gate_pick_best(struct pairs *p, size_t n, const struct decide_options *options)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->all[i].state == PAIR_READY)
            pick_best(&p->all[i].decide, n);
    return pairs_decide(p, options);
}

/* An interval that happens to lie above the loss is no sight: of many noisy cases one always does. One
 * that lies within the margin is narrow. */
bool gate_is_blind(const struct decide_case *c, double see)
{
    if (c->decision == DECISION_WORSE)
        return false;
    if (c->margin > see)
        return true;
    if (c->decision == DECISION_EQUIVALENT)
        return false;
    return !(c->smallest <= see);
}

static bool is_doubtful(const struct decide_case *c)
{
    return c->obstacle == OBSTACLE_TOGETHER || c->obstacle == OBSTACLE_JUMPS ||
           c->obstacle == OBSTACLE_SHAPE;
}

bool gate_is_suspect(const struct decide_case *c, double see, size_t n)
{
    if (c->decision != DECISION_INCONCLUSIVE || !(c->ratio < 1 - c->margin))
        return false;
    if (is_doubtful(c))
        return true;
    if (c->obstacle == OBSTACLE_RUNS)
        return c->ratio < 1 - see;
    if (isnan(c->p_likely))
        return c->ratio < 1 - SUSPECT_LOSSES * see;
    return c->p_likely * (c->best_of > 1 ? c->best_of : 1) * (double)n <= SUSPECT_LEVEL;
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
    case DECISION_WORSE:
        return GATE_REGRESSED;
    case DECISION_BETTER:
        return GATE_BETTER;
    case DECISION_EQUIVALENT:
        return GATE_EQUIVALENT;
    default:
        return gate_is_blind(c, g->options.see) ? GATE_UNSEEN : GATE_INCONCLUSIVE;
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
        return g->options.first ? GATE_NEW : GATE_UNSEEN;
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

void gate_count(struct gate_tally *t, const struct decide_case *c, double see, size_t n_judged)
{
    bool suspect = gate_is_suspect(c, see, n_judged);

    t->held++;
    t->lost += c->decision == DECISION_WORSE;
    t->unseen += gate_is_blind(c, see);
    t->suspect += suspect;
    t->doubtful += suspect && is_doubtful(c);
    t->within += lost_within(c);
}

enum gate_verdict gate_tally_verdict(const struct gate_tally *t, bool strict)
{
    if (t->lost)
        return GATE_LOST;
    if (t->unseen == t->held || t->doubtful || (strict && (t->unseen || t->within)))
        return GATE_UNDECIDED;
    return GATE_PASSED;
}

static bool is_decided(const struct gate *g, const struct gate_case *c)
{
    return c->pair->state == PAIR_READY && !g->options.first;
}

static const struct gate_case *worse_of(const struct gate_case *a, const struct gate_case *b)
{
    return !a || b->pair->decide.ratio < a->pair->decide.ratio ? b : a;
}

static void find_worst(struct gate *g)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct gate_case *c = &g->cases[i];

        if (!is_decided(g, c))
            continue;
        if (gate_is_suspect(&c->pair->decide, g->options.see, g->p->overall.n_judged))
            g->suspect = worse_of(g->suspect, c);
        if (lost_within(&c->pair->decide))
            g->within = worse_of(g->within, c);
    }
}

static void count_case(struct gate *g, const struct gate_case *c)
{
    const struct pair *pair = c->pair;

    g->counts[c->state]++;
    if (is_decided(g, c)) {
        gate_count(&g->tally, &pair->decide, g->options.see, g->p->overall.n_judged);
    } else if (pair->state == PAIR_TAKEN && !g->options.first) {
        g->tally.held++;
        g->tally.unseen++;
    }
    g->n_taken += *pair->taken != 0;
}

static void take_case(struct gate *g, const struct pair *pair)
{
    struct gate_case *c = &g->cases[g->n++];

    c->pair = pair;
    c->state = state_of(g, pair);
    c->text = words_case(g, c);
    count_case(g, c);
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

static enum gate_verdict verdict_of(const struct gate *g)
{
    if (g->counts[GATE_REGRESSED] || g->counts[GATE_WRONG])
        return GATE_LOST;
    if (g->counts[GATE_FAILED] || g->counts[GATE_MISSING] || g->counts[GATE_REFUSED] || *g->state)
        return GATE_INCOMPLETE;
    if (g->options.first)
        return GATE_FIRST;
    return gate_tally_verdict(&g->tally, g->options.strict);
}

int gate_make(struct gate *g, struct pairs *p, const struct gate_options *options)
{
    *g = (struct gate){.p = p, .options = *options, .state = ""};
    g->cases = pool_alloc(&p->report.pool, p->n + 1, sizeof(*g->cases));
    if (!g->cases)
        return -ENOMEM;
    for (size_t i = 0; i < p->n; i++)
        take_case(g, &p->all[i]);
    qsort(g->cases, g->n, sizeof(*g->cases), compare_cases);
    find_worst(g);
    g->state = unfinished(p);
    g->verdict = verdict_of(g);
    g->sentence = words_verdict(g);
    g->unseen = words_unseen(g);
    return p->report.pool.failed ? -ENOMEM : 0;
}

static bool is_among(const char *key, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(keys[i], key))
            return true;
    return false;
}

int gate_without(struct gate *rest, const struct gate *g, const char *const *keys, size_t n)
{
    *rest = (struct gate){
        .p = g->p, .options = g->options, .state = g->state, .sentence = "", .unseen = ""};
    rest->cases = pool_alloc(&g->p->report.pool, g->n + 1, sizeof(*rest->cases));
    if (!rest->cases)
        return -ENOMEM;
    for (size_t i = 0; i < g->n; i++) {
        if (is_among(g->cases[i].pair->key, keys, n))
            continue;
        rest->cases[rest->n] = g->cases[i];
        count_case(rest, &rest->cases[rest->n++]);
    }
    find_worst(rest);
    rest->verdict = verdict_of(rest);
    return 0;
}
