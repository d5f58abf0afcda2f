/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's sentences: see check.h. */
#include <math.h>
#include <string.h>

#include "harness/check/check.h"
#include "harness/report/show.h"

#define MOST_TOLD 1.25 /* the noisiest case is told from so many times the median on */

static struct pool *pool_of(const struct gate *g)
{
    return &g->p->report.pool;
}

const char *words_percent(struct pool *pool, double share)
{
    return pool_text(pool, "%.3g %%", 100 * share);
}

const char *words_loss(struct pool *pool, double share)
{
    return words_percent(pool, decide_detectable_percent(share) / 100);
}

/* ---- a case */

static const char *or_else(const char *text, const char *other)
{
    return *text ? text : other;
}

const char *words_case(const struct gate *g, const struct gate_case *c)
{
    struct pool *pool = pool_of(g);
    const struct pair *pair = c->pair;
    char sentence[1024];

    switch (c->state) {
    case GATE_REFUSED:
        return pool_text(pool, "refused: %s", or_else(pair->reason, "figures of another sort"));
    case GATE_WRONG:
    case GATE_FAILED:
    case GATE_MISSING:
        return or_else(pair->reason, "this run has no value of it");
    case GATE_NEW:
        return g->options.first ? "new: there is no baseline for it"
                                : "new: the baseline has no value of it";
    case GATE_ABSENT:
        return pool_text(pool, "absent: %s", or_else(pair->reason, "neither side has a value"));
    default:
        if (pair->state == PAIR_TAKEN)
            return pool_text(pool,
                             "inconclusive: %s: their time does not show the speed of this machine",
                             pair->reason);
        decide_sentence(&pair->decide, sentence, sizeof(sentence));
        return pool_text(pool, "%s%s%s", sentence,
                         *pair->taken ? "; left out, as others took the CPU: " : "", pair->taken);
    }
}

const char *words_whole(struct pool *pool, const struct gate_case *c)
{
    const char *differs = c->pair->differs;

    return differs && *differs ? pool_text(pool, "%s; differs: %s", c->text, differs) : c->text;
}

/* ---- the verdict over all cases */

/* "memory triad, 1 GiB: bandwidth -6.2 % (-7.4 to -5.0)". */
static const char *loss_of(struct pool *pool, const struct pair *pair)
{
    const struct decide_case *d = &pair->decide;
    double ratio = d->slipped ? d->anchor_ratio : d->ratio;
    double low = d->slipped ? d->anchor_low : d->low, high = d->slipped ? d->anchor_high : d->high;
    const char *text = pool_text(pool, "%s %+.1f %%", pair->label, 100 * (ratio - 1));

    if (isfinite(low) && isfinite(high))
        text = pool_text(pool, "%s (%+.1f to %+.1f)", text, 100 * (low - 1), 100 * (high - 1));
    return d->slipped ? pool_text(pool, "%s since the first nights", text) : text;
}

/* The first cases of some state, each with its words. */
static const char *cases_of(const struct gate *g, enum gate_state first, enum gate_state last)
{
    struct pool *pool = pool_of(g);
    const char **said = pool_alloc(pool, g->n, sizeof(*said));
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++) {
        const struct gate_case *c = &g->cases[i];

        if (c->state >= first && c->state <= last)
            said[n++] = c->state == GATE_REGRESSED
                            ? loss_of(pool, c->pair)
                            : pool_text(pool, "%s: %s", c->pair->label, c->text);
    }
    return pool_list(pool, said, n, WORDS_NAMED_MAX, ", ");
}

/* "a slowdown of 4 % would have been detected in the median case". */
static const char *sight_of(struct pool *pool, const struct sight *s)
{
    if (!(s->today < SIGHT_NONE))
        return "it is not known which slowdown would have been detected";
    const char *text = pool_text(pool, "a slowdown of %s would have been detected%s",
                                 words_loss(pool, s->today), s->n > 1 ? " in the median case" : "");

    if (!(s->most < SIGHT_NONE))
        return pool_text(pool, "%s, none in some cases", text);
    return s->most > MOST_TOLD * s->today
               ? pool_text(pool, "%s, %s in the noisiest", text, words_loss(pool, s->most))
               : text;
}

static const char *undecided(const struct gate *g)
{
    struct pool *pool = pool_of(g);
    const struct decide_overall *o = &g->p->overall;

    if (g->tally.doubtful && o->together)
        return pool_text(pool,
                         "%zu of %s lost together (%.1f %% in the middle, %zu gained): maybe the "
                         "whole run is slower",
                         o->n_down, show_count(pool, o->n_judged, "case"), 100 * (1 - o->moved),
                         o->n_up);
    if (!g->tally.seeing && g->n && g->cases[0].pair->state == PAIR_READY)
        return pool_text(pool, "nothing could be decided, as in %s: %s", g->cases[0].pair->label,
                         g->cases[0].text);
    if (!g->tally.seeing)
        return "no case of the run could be held against a baseline";
    if (g->tally.doubtful)
        return pool_text(pool, "a loss is likely in %s, but not proven%s%s",
                         show_count(pool, g->tally.doubtful, "case"), g->likely ? ": " : "",
                         g->likely ? loss_of(pool, g->likely->pair) : "");
    return pool_text(pool, "%s could not have shown a loss of %s (--detect)",
                     show_count(pool, g->tally.unseen, "case"),
                     words_percent(pool, g->options.detect));
}

/* A loss that the margin lets pass is a loss. */
static const char *within_of(const struct gate *g)
{
    struct pool *pool = pool_of(g);

    if (!g->tally.within)
        return "";
    const struct decide_case *c = &g->within->pair->decide;

    return pool_text(pool,
                     "; within the margin a loss is proven in %s, the largest %s of %s in '%s'",
                     show_count(pool, g->tally.within, "case"), words_percent(pool, 1 - c->ratio),
                     words_percent(pool, c->margin), g->within->pair->label);
}

static const char *lost_words(const struct check_result *r)
{
    const struct gate *g = &r->gate;
    enum gate_state last = g->counts[GATE_REGRESSED] ? GATE_REGRESSED : GATE_WRONG;
    size_t ok = g->counts[GATE_UNSEEN] + g->counts[GATE_INCONCLUSIVE] + g->counts[GATE_BETTER] +
                g->counts[GATE_EQUIVALENT];
    bool level = false;

    for (size_t i = 0; i < g->counts[GATE_REGRESSED]; i++)
        level = level || !g->cases[i].pair->decide.slipped;
    return pool_text(pool_of(g), "%s%s%s; no regression in %s", cases_of(g, GATE_REGRESSED, last),
                     level ? " against " : "", level ? r->baseline->against : "",
                     show_count(pool_of(g), ok, "other case"));
}

const char *words_headline(const struct check_result *r)
{
    static const char *const words[] = {[GATE_PASSED] = "ok",
                                        [GATE_LOST] = "REGRESSION",
                                        [GATE_UNDECIDED] = "INCONCLUSIVE",
                                        [GATE_INCOMPLETE] = "INCOMPLETE",
                                        [GATE_FIRST] = "NO BASELINE"};
    const struct gate *g = &r->gate;

    if (r->accepted && !r->exit)
        return "ACCEPTED";
    return g->verdict == GATE_LOST && !g->counts[GATE_REGRESSED] ? "WRONG DATA" : words[g->verdict];
}

const char *words_verdict(const struct check_result *r)
{
    const struct gate *g = &r->gate;
    struct pool *pool = pool_of(g);
    const char *what;

    switch (g->verdict) {
    case GATE_LOST:
        what = lost_words(r);
        break;
    case GATE_INCOMPLETE:
        what = *g->state ? pool_text(pool, "the run is '%s'", g->state)
                         : cases_of(g, GATE_FAILED, GATE_REFUSED);
        break;
    case GATE_UNDECIDED:
        what = undecided(g);
        break;
    case GATE_FIRST:
        what = "nothing was judged: there is no baseline";
        break;
    default:
        what = pool_text(pool, "%s, no regression; %s", show_count(pool, g->tally.held, "case"),
                         sight_of(pool, &r->sight));
    }
    static const enum gate_state states[] = {GATE_WRONG,    GATE_FAILED, GATE_MISSING, GATE_REFUSED,
                                             GATE_ACCEPTED, GATE_BETTER, GATE_NEW};
    const char *list = "";

    for (size_t i = 0; g->verdict != GATE_FIRST && i < sizeof(states) / sizeof(*states); i++)
        if (g->counts[states[i]])
            list = pool_text(pool, "%s; %zu %s", list, g->counts[states[i]],
                             gate_state_name(states[i]));
    return pool_text(pool, "%s%s%s%s", what, list, within_of(g),
                     g->n_taken ? pool_text(pool, "; in %s repetitions are left out, as " STEAL_WHY,
                                            show_count(pool, g->n_taken, "case"))
                                : "");
}

/* ---- what else differs */

const char *words_side(const char *text)
{
    return *text ? text : "not known";
}

/* What a run records of the machine and of how it was measured; the program and the suite last. */
const char *words_changed(const struct gate *g, const struct machine_difference *all, size_t n)
{
    struct pool *pool = pool_of(g);
    const char *list = g->p->overall.new_boot ? "booted again" : "";

    for (int environment = 1; environment >= 0; environment--)
        for (size_t i = 0; i < n; i++)
            if (all[i].environment == environment)
                list = show_joined(pool, list,
                                   pool_text(pool, "%s %s to %s", all[i].what, words_side(all[i].a),
                                             words_side(all[i].b)));
    return list;
}

/* ---- what to do next */

/* For a shell. */
static const char *quoted(struct pool *pool, const char *text)
{
    return strpbrk(text, " '\"$`\\*?[]()|&;<>~#!") && !strchr(text, '\'')
               ? pool_text(pool, "'%s'", text)
               : text;
}

/* As plumb run was given it, where it was a file. */
static const char *suite_of(const struct gate *g)
{
    const json_t *meta = g->p->report.runs[g->p->n_a].meta;
    const char *word = json_string_value(json_array_get(json_object_get(meta, "command"), 2));
    size_t n = word ? strlen(word) : 0;

    if (n > 5 && !strcmp(word + n - 5, ".yaml"))
        return word;
    word = json_string_value(json_object_get(meta, "suite"));
    return word ? word : "SUITE";
}

const char *words_next(const struct check_result *r)
{
    const struct gate *g = &r->gate;
    struct pool *pool = pool_of(g);
    bool of_history = baseline_is_history(r->spec);
    const char *history = of_history && strcmp(r->history, HISTORY_DEFAULT) != 0
                              ? pool_text(pool, " --history %s", quoted(pool, r->history))
                              : "";
    const char *accept = "";

    if (!g->counts[GATE_REGRESSED])
        return "";
    /* The benchmarks of what regressed, as a pattern. */
    const char *list = "", *last = "";

    for (size_t i = 0; i < g->p->n; i++)
        for (size_t k = 0; k < g->counts[GATE_REGRESSED]; k++) {
            const char *name = g->p->all[i].bench->name;

            if (g->cases[k].pair != &g->p->all[i] || !strcmp(name, last))
                continue;
            list = pool_text(pool_of(g), "%s%s%s", list, *list ? "|" : "", name);
            last = name;
        }
    const char *only = quoted(pool, list);
    if (of_history) {
        /* A pattern that is of this case alone. */
        const char *label[] = {g->cases[0].pair->label, NULL};
        size_t n = 0;

        for (size_t i = 0; i < g->n; i++)
            n += only_keeps(label, &(struct only_case){.key = g->cases[i].pair->key,
                                                       .label = g->cases[i].pair->label});
        accept = pool_text(pool, "; if it is meant: plumb check %s --accept %s --reason TEXT%s",
                           quoted(pool, r->run),
                           quoted(pool, n == 1 ? g->cases[0].pair->label : g->cases[0].pair->key),
                           history);
    }
    return pool_text(pool,
                     "to measure again: plumb run %s --only %s --out results/again, and plumb "
                     "check results/again --baseline %s --only %s%s%s",
                     quoted(pool, suite_of(g)), only, quoted(pool, r->spec), only, history, accept);
}
