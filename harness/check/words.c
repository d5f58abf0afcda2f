/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's sentences: see words.h. */
#include "harness/check/words.h"

#include <math.h>
#include <string.h>

#include "harness/report/show.h"

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

const char *words_case(const struct gate *g, const struct gate_case *c)
{
    struct pool *pool = &g->p->report.pool;
    char sentence[1024];

    switch (c->state) {
    case GATE_REFUSED:
        return pool_text(pool, "refused: %s", reason_of(c->pair, "figures of another sort"));
    case GATE_WRONG:
    case GATE_FAILED:
    case GATE_MISSING:
        return pool_text(pool, "%s: %s", gate_state_name(c->state),
                         reason_of(c->pair, "this run has no value of it"));
    case GATE_NEW:
        return g->options.first ? "new: there is no baseline for it"
                                : "new: the baseline has no value of it";
    case GATE_ABSENT:
        return pool_text(pool, "absent: %s", reason_of(c->pair, "neither side has a value"));
    default:
        if (c->pair->state == PAIR_TAKEN)
            return pool_text(pool, "inconclusive: %s: their time tells nothing of this machine",
                             c->pair->reason);
        decide_sentence(&c->pair->decide, sentence, sizeof(sentence));
        return pool_text(pool, "%s%s%s", sentence,
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
        if (s != GATE_UNSEEN)
            list = add_count(pool, list,
                             g->counts[s] + (s == GATE_INCONCLUSIVE ? g->counts[GATE_UNSEEN] : 0),
                             gate_state_name((enum gate_state)s));
    return *list ? list : "no case";
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
        return pool_text(
            pool,
            "%zu of %zu cases lost together (%.1f %% in the middle, %zu gained), as where "
            "a run comes up slower in all: more baselines would tell",
            o->n_down, o->n_judged, 100 * (1 - o->moved), o->n_up);
    if (g->tally.doubtful)
        return pool_text(
            pool, "a loss is likely in %s, and not proven by these baselines: more would tell",
            show_count(pool, g->tally.doubtful, "case"));
    if (g->tally.unseen == g->tally.held && o->runs_unknown)
        return pool_text(pool,
                         "one baseline of %s does not tell how runs differ: more baselines would",
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

/* How much more runs differ than launches do: what one baseline cannot see through. */
static const char *unrest_of(const struct gate *g)
{
    double unrest = g->p->overall.unrest;

    return unrest >= UNREST_TOLD && g->verdict != GATE_FIRST
               ? pool_text(&g->p->report.pool,
                           "; the two runs differ %.1f times as much as their launches do: more "
                           "baselines would tell losses sooner",
                           unrest)
               : "";
}

const char *words_verdict(const struct gate *g)
{
    struct pool *pool = &g->p->report.pool;
    const char *what = "";

    switch (g->verdict) {
    case GATE_LOST:
        what = g->counts[GATE_REGRESSED]
                   ? pool_text(pool, "%s of %zu lost against the baseline",
                               show_count(pool, g->counts[GATE_REGRESSED], "case"), g->tally.held)
                   : "the run gave wrong data";
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
        what = "nothing was judged: there is no baseline to hold this run against";
        break;
    default:
        what = "no regression is proven";
    }
    return pool_text(pool, "%s; %s%s%s%s", what, counts_of(g), within_of(g), unrest_of(g),
                     taken_of(g));
}

const char *words_unseen(const struct gate *g)
{
    struct pool *pool = &g->p->report.pool;
    const char *see = words_percent(pool, g->options.see);

    if (g->options.first)
        return pool_text(pool, "no case could have shown a loss of %s: nothing was judged", see);
    if (!g->tally.held)
        return pool_text(pool,
                         "no case was held against a baseline, so none could have shown a "
                         "loss of %s",
                         see);
    if (!g->tally.unseen)
        return pool_text(pool, "0 of %s could not have shown a loss of %s: all would have",
                         show_count(pool, g->tally.held, "case"), see);
    return pool_text(pool, "%zu of %s could not have shown a loss of %s: a pass says nothing of %s",
                     g->tally.unseen, show_count(pool, g->tally.held, "case"), see,
                     g->tally.unseen == 1 ? "it" : "them");
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
    if (isfinite(c->smallest))
        f.smallest = words_percent(pool, c->smallest);
    return f;
}

const char *words_whole(struct pool *pool, const struct gate_case *c)
{
    const char *differs = c->pair->differs;

    return differs && *differs ? pool_text(pool, "%s; differs: %s", c->text, differs) : c->text;
}

const char *words_differences(struct pool *pool, const struct machine_difference *all, size_t n)
{
    const char *text = "";

    for (size_t i = 0; i < n; i++)
        text = pool_text(pool, "%s%s%s %s against %s", text, i ? "; " : "", all[i].what,
                         *all[i].a ? all[i].a : "nothing", *all[i].b ? all[i].b : "nothing");
    return text;
}
