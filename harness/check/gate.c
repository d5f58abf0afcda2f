/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: see check.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/program.h"
#include "harness/check/check.h"
#include "harness/report/show.h"

#define SUSPECT_LEVEL  0.05
#define SUSPECT_LOSSES 4

/* ---- The gate's sentences ---- */

#define UNREST_TOLD 1.5

const char *words_percent(struct pool *pool, double share)
{
    return pool_text(pool, "%.3g %%", 100 * share);
}

/* Why a case that is not held against anything is not. */
static const char *reason_of(const struct pair *pair, const char *other)
{
    return *pair->reason ? pair->reason : other;
}

/* What was accepted of a case that lost. */
static const char *accepted_words(const struct gate *g, const struct gate_case *c)
{
    struct pool *pool = &g->p->report.pool;
    const struct accepted_level *level = accepted_of(g->options.accepted, c->pair->key);

    if (!level || c->pair->decide.decision != DECISION_WORSE)
        return "";
    return pool_text(pool,
                     c->state == GATE_ACCEPTED ? "accepted at %s: "
                                               : "worse than the level that was accepted, %s: ",
                     accepted_text(pool, level));
}

static const char *words_case(const struct gate *g, const struct gate_case *c)
{
    struct pool *pool = &g->p->report.pool;
    char sentence[1024];

    switch (c->state) {
    case GATE_REFUSED:
        return pool_text(pool, "refused: %s", reason_of(c->pair, "figures of another sort"));
    case GATE_WRONG:
    case GATE_FAILED:
    case GATE_MISSING:
        return reason_of(c->pair, "this run has no value of it");
    case GATE_NEW:
        return g->options.first ? "new: there is no baseline for it"
                                : "new: the baseline has no value of it";
    case GATE_ABSENT:
        return pool_text(pool, "absent: %s", reason_of(c->pair, "neither side has a value"));
    default:
        if (c->pair->state == PAIR_TAKEN)
            return pool_text(pool,
                             "inconclusive: %s: their time does not show the speed of this machine",
                             c->pair->reason);
        decide_sentence(&c->pair->decide, sentence, sizeof(sentence));
        return pool_text(pool, "%s%s%s%s", accepted_words(g, c), sentence,
                         *c->pair->taken ? "; left out, as others took the CPU: " : "",
                         c->pair->taken);
    }
}

static const char *add_count(struct pool *pool, const char *list, size_t n, const char *what)
{
    return n ? show_joined(pool, list, pool_text(pool, "%zu %s", n, what)) : list;
}

static const char *counts_of(const struct gate *g)
{
    struct pool *pool = &g->p->report.pool;
    const char *list = "";

    for (int s = 0; s < GATE_STATES; s++)
        if (s != GATE_UNSEEN && s != GATE_REGRESSED) /* lost_of() has these */
            list = add_count(pool, list,
                             g->counts[s] + (s == GATE_INCONCLUSIVE ? g->counts[GATE_UNSEEN] : 0),
                             gate_state_name((enum gate_state)s));
    return *list || g->counts[GATE_REGRESSED] ? list : "no case";
}

static const char *taken_of(const struct gate *g)
{
    return g->n_taken ? pool_text(&g->p->report.pool,
                                  "; in %s launches are left out, as other guests took the CPU "
                                  "(steal; --steal)",
                                  show_count(&g->p->report.pool, g->n_taken, "case"))
                      : "";
}

static const char *undecided(const struct gate *g)
{
    struct pool *pool = &g->p->report.pool;

    const struct decide_overall *o = &g->p->overall;

    if (!g->tally.held)
        return "no case of the run has a baseline";
    if (g->tally.doubtful && o->together)
        return pool_text(pool,
                         "%zu of %zu cases lost together (%.1f %% in the middle, %zu gained): "
                         "maybe the whole run "
                         "is slower; add baselines",
                         o->n_down, o->n_judged, 100 * (1 - o->moved), o->n_up);
    if (g->tally.doubtful)
        return pool_text(pool, "a loss is likely in %s, but not proven: add baselines",
                         show_count(pool, g->tally.doubtful, "case"));
    if (g->tally.unseen == g->tally.held && o->runs_unknown)
        return pool_text(pool, "one baseline of %s does not show how runs differ: add baselines",
                         show_count(pool, o->n_judged, "case"));
    if (g->tally.unseen == g->tally.held)
        return pool_text(pool, "no case could have shown a loss of %s",
                         words_percent(pool, g->options.see));
    if (g->tally.unseen)
        return pool_text(pool,
                         "--strict asks for all cases: %zu of %zu could not "
                         "have shown a loss of %s",
                         g->tally.unseen, g->tally.held, words_percent(pool, g->options.see));
    return "--strict asks for no loss at all";
}

/* A loss that the margin lets pass is a loss. */
static const char *within_of(const struct gate *g)
{
    struct pool *pool = &g->p->report.pool;

    if (!g->tally.within)
        return "";
    const struct decide_case *c = &g->within->pair->decide;

    return pool_text(pool,
                     "; within the margin a loss is proven in %s, the largest %s of %s in '%s'",
                     show_count(pool, g->tally.within, "case"), words_percent(pool, 1 - c->ratio),
                     words_percent(pool, c->margin), g->within->pair->label);
}

/* "1 case of 50 lost: memory triad, 1 GiB: bandwidth by 7.3 %". */
static const char *lost_of(const struct gate *g)
{
    struct pool *pool = &g->p->report.pool;
    const char *list = "";
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++) {
        const struct gate_case *c = &g->cases[i];
        const struct decide_case *d = &c->pair->decide;
        double ratio = d->slipped ? d->anchor_ratio : d->ratio;

        if (c->state == GATE_REGRESSED && n++ < WORDS_NAMED_MAX)
            list = pool_text(pool, "%s%s%s by %.1f %%%s", list, *list ? "; " : "", c->pair->label,
                             100 * (1 - ratio), d->slipped ? " since the first baselines" : "");
    }
    if (n > WORDS_NAMED_MAX)
        list = pool_text(pool, "%s; and %zu more", list, n - WORDS_NAMED_MAX);
    return pool_text(pool, "%s of %zu lost: %s", show_count(pool, n, "case"), g->tally.held, list);
}

/* How much more runs differ than launches do: what one baseline cannot see through. */
static const char *unrest_of(const struct gate *g)
{
    double unrest = g->p->overall.unrest;

    return unrest >= UNREST_TOLD && g->verdict != GATE_FIRST
               ? pool_text(&g->p->report.pool,
                           "; the two runs differ %.1f times as much as their launches do: add "
                           "baselines to find smaller losses",
                           unrest)
               : "";
}

static const char *words_verdict(const struct gate *g)
{
    struct pool *pool = &g->p->report.pool;
    const char *what = "";

    switch (g->verdict) {
    case GATE_LOST:
        what = g->counts[GATE_REGRESSED] ? lost_of(g) : "the run gave wrong data";
        break;
    case GATE_INCOMPLETE:
        what = *g->state ? pool_text(pool, "the run is '%s'", g->state)
                         : "cases of the baseline have no value in this run";
        if (!*g->state && !g->counts[GATE_MISSING] && !g->counts[GATE_REFUSED])
            what = "cases of this run failed";
        break;
    case GATE_UNDECIDED:
        what = undecided(g);
        break;
    case GATE_FIRST:
        what = "nothing was judged: there is no baseline";
        break;
    default:
        what = "no regression is proven";
    }
    const char *counts = counts_of(g);

    return pool_text(pool, "%s%s%s%s%s%s", what, *counts ? "; " : "", counts, within_of(g),
                     unrest_of(g), taken_of(g));
}

static const char *words_unseen(const struct gate *g)
{
    struct pool *pool = &g->p->report.pool;
    const char *see = words_percent(pool, g->options.see);

    if (g->options.first)
        return pool_text(pool, "no case could have shown a loss of %s: nothing was judged", see);
    if (!g->tally.held)
        return pool_text(pool,
                         "no case was compared with a baseline, so none could have shown a "
                         "loss of %s",
                         see);
    if (!g->tally.unseen)
        return g->tally.held == 1
                   ? pool_text(pool, "none: the one case would have shown a loss of %s", see)
                   : pool_text(pool, "none: all %zu cases would have shown a loss of %s",
                               g->tally.held, see);
    return pool_text(pool, "%zu of %s could not have shown a loss of %s: there it may be missed",
                     g->tally.unseen, show_count(pool, g->tally.held, "case"), see);
}

struct words_figures words_figures(struct pool *pool, const struct pair *pair)
{
    const struct decide_case *c = &pair->decide;
    bool better = c->decision == DECISION_BETTER;
    struct words_figures f = {"", "", ""};
    double p = better ? c->p_better : c->p_worse;

    if (isfinite(c->ratio))
        f.ratio = isfinite(c->low)
                      ? pool_text(pool, "%.3f (%.3f to %.3f)", c->ratio, c->low, c->high)
                      : pool_text(pool, "%.3f", c->ratio);
    if (isfinite(p))
        f.proof = p < 1e-15 ? "p < 1e-15" : pool_text(pool, "p %.1g", p);
    if (isfinite(c->detectable))
        f.detectable = words_loss(pool, c->detectable);
    return f;
}

const char *words_whole(struct pool *pool, const struct gate_case *c)
{
    const char *differs = c->pair->differs;

    return differs && *differs ? pool_text(pool, "%s; differs: %s", c->text, differs) : c->text;
}

const char *words_side(const char *text)
{
    return *text ? text : "not known";
}

const char *words_differences(struct pool *pool, const struct machine_difference *all, size_t n)
{
    const char *text = "";

    for (size_t i = 0; i < n; i++)
        text = pool_text(pool, "%s%s%s %s against %s", text, i ? "; " : "", all[i].what,
                         words_side(all[i].a), words_side(all[i].b));
    return text;
}

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
    static const char *const names[] = {"regressed", "wrong",      "failed", "missing",
                                        "refused",   "accepted",   "unseen", "inconclusive",
                                        "better",    "equivalent", "new",    "absent"};

    return names[state];
}

/* Of the last runs of the level that have the case decide_suite() picks the best; all of them tell
 * what varies. */
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

/* An interval that happens to lie above the loss is no sight: of many noisy cases one always does.
 * One that lies within the margin is narrow. */
bool gate_is_blind(const struct decide_case *c, double see)
{
    if (c->decision == DECISION_WORSE)
        return false;
    if (c->margin > see)
        return true;
    if (c->decision == DECISION_EQUIVALENT)
        return false;
    return !(c->detectable <= see);
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
    if (ready && pair->decide.decision == DECISION_WORSE) {
        const struct accepted_level *level = accepted_of(g->options.accepted, pair->key);

        return level && accepted_covers(g->options.accepted, level, &pair->decide) ? GATE_ACCEPTED
                                                                                   : GATE_REGRESSED;
    }
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
    /* That a known loss shows is no sign that another one would. */
    if (is_decided(g, c) && c->state != GATE_ACCEPTED)
        gate_count(&g->tally, &pair->decide, g->options.see, g->p->overall.n_judged);
    else if (pair->state == PAIR_TAKEN && !g->options.first) {
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
    if (!g->tally.held && g->counts[GATE_ACCEPTED])
        return GATE_PASSED;
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

int gate_accept(struct gate *g, const char *const *keys, size_t n)
{
    memset(g->counts, 0, sizeof(g->counts));
    g->tally = (struct gate_tally){0};
    g->n_taken = 0;
    for (size_t i = 0; i < g->n; i++) {
        if (is_among(g->cases[i].pair->key, keys, n))
            g->cases[i].state = GATE_ACCEPTED;
        count_case(g, &g->cases[i]);
    }
    qsort(g->cases, g->n, sizeof(*g->cases), compare_cases);
    find_worst(g);
    g->verdict = verdict_of(g);
    g->sentence = words_verdict(g);
    return g->p->report.pool.failed ? -ENOMEM : 0;
}
