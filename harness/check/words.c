/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's sentences: see check.h. */
#include <math.h>
#include <string.h>

#include "core/stats.h"
#include "harness/check/check.h"
#include "harness/report/show.h"

#define GROUP_LEAST 3 /* regressed cases of a component that are told together */

static struct pool *pool_of(const struct gate *g)
{
    return &g->p->report.pool;
}

const char *words_percent(struct pool *pool, double share)
{
    return pool_text(pool, "%.3g %%", 100 * share);
}

const char *words_slowdown(struct pool *pool, double share)
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

/* "memory triad, 1 GiB -6.2 % (-7.4 to -5.0)". */
static const char *slowdown_of(struct pool *pool, const struct pair *pair)
{
    const struct decide_case *d = &pair->decide;
    double ratio = d->slipped ? d->anchor_ratio : d->ratio;
    double low = d->slipped ? d->anchor_low : d->low, high = d->slipped ? d->anchor_high : d->high;
    const char *text = pool_text(pool, "%s %+.1f %%", pair->name, 100 * (ratio - 1));

    if (isfinite(low) && isfinite(high))
        text = pool_text(pool, "%s (%+.1f to %+.1f)", text, 100 * (low - 1), 100 * (high - 1));
    return d->slipped ? pool_text(pool, "%s since the first nights", text) : text;
}

/* "Memory -15 % (14 cases; worst: memory add, 1 GiB -17.3 % (-19.5 to -15.0))", of the component that begins
 * with this case: the median of its cases. */
static const char *component_of(const struct gate *g, size_t first, size_t cases)
{
    double *ratios = pool_alloc(pool_of(g), cases, sizeof(*ratios));
    const struct pair *worst = g->cases[first].pair;
    size_t n = 0;

    for (size_t i = first; i < g->counts[GATE_REGRESSED]; i++)
        if (!strcmp(g->cases[i].pair->pipe, worst->pipe))
            ratios[n++] = g->cases[i].pair->decide.ratio;
    return pool_text(pool_of(g), "%s %+.0f %% (%zu cases; worst: %s)", worst->pipe,
                     100 * (stats_median(ratios, n) - 1), n, slowdown_of(pool_of(g), worst));
}

/* What regressed, the largest slowdown first; several of a component as one. */
static const char *regressions_of(const struct gate *g)
{
    struct pool *pool = pool_of(g);
    struct show_list list = {.pool = pool, .max = WORDS_NAMED_MAX};

    for (size_t i = 0; i < g->counts[GATE_REGRESSED]; i++) {
        size_t before = 0, all = 0;

        for (size_t k = 0; k < g->counts[GATE_REGRESSED]; k++) {
            bool same = !strcmp(g->cases[k].pair->pipe, g->cases[i].pair->pipe);

            all += same;
            before += same && k < i;
        }
        if (all < GROUP_LEAST)
            show_list_add(&list, slowdown_of(pool, g->cases[i].pair));
        else if (!before)
            show_list_add(&list, component_of(g, i, all));
    }
    return show_list_text(&list);
}

/* The first cases of some state, each with its words. */
static const char *cases_of(const struct gate *g, enum gate_state first, enum gate_state last)
{
    struct show_list list = {.pool = pool_of(g), .max = WORDS_NAMED_MAX};

    for (size_t i = 0; i < g->n; i++)
        if (g->cases[i].state >= first && g->cases[i].state <= last)
            show_list_add(
                &list, pool_text(pool_of(g), "%s: %s", g->cases[i].pair->name, g->cases[i].text));
    return show_list_text(&list);
}

static const char *inconclusive(const struct gate *g)
{
    struct pool *pool = pool_of(g);
    const struct decide_overall *o = &g->p->overall;

    if (g->tally.doubtful && o->together)
        return pool_text(pool,
                         "%zu of %s are slower together (%.1f %% in the median, %zu faster): maybe "
                         "the whole run is slower",
                         o->n_down, show_count(pool, o->n_judged, "case"), 100 * (1 - o->moved),
                         o->n_up);
    if (!g->tally.seeing && g->n && g->cases[0].pair->state == PAIR_READY)
        return pool_text(pool, "nothing could be decided, as in %s: %s", g->cases[0].pair->name,
                         g->cases[0].text);
    if (!g->tally.seeing)
        return "no case of the run could be compared with a baseline";
    if (g->tally.doubtful)
        return pool_text(pool, "a slowdown is likely in %s, but not proven%s%s",
                         show_count(pool, g->tally.doubtful, "case"), g->likely ? ": " : "",
                         g->likely ? slowdown_of(pool, g->likely->pair) : "");
    return pool_text(pool, "%s could not have shown a slowdown of %s (--detect)",
                     show_count(pool, g->tally.unseen, "case"),
                     words_percent(pool, g->options.detect));
}

/* Cases all of whose repetitions are left out. */
static size_t count_taken(const struct gate *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++)
        n += g->cases[i].pair->state == PAIR_TAKEN;
    return n;
}

static const char *lost_words(const struct check_result *r)
{
    const struct gate *g = &r->gate;
    size_t ok = g->counts[GATE_UNSEEN] + g->counts[GATE_INCONCLUSIVE] + g->counts[GATE_BETTER] +
                g->counts[GATE_EQUIVALENT] - count_taken(g);
    bool level = false;

    for (size_t i = 0; i < g->counts[GATE_REGRESSED]; i++)
        level = level || !g->cases[i].pair->decide.slipped;
    return pool_text(pool_of(g), "%s%s%s; no regression in %s",
                     g->counts[GATE_REGRESSED] ? regressions_of(g)
                                               : cases_of(g, GATE_WRONG, GATE_WRONG),
                     level ? " against " : "", level ? r->baseline->against : "",
                     show_count(pool_of(g), ok, "other case"));
}

/* "93 cases, no regression; detects a slowdown of 4 % in the median case" */
static const char *passed_words(const struct check_result *r)
{
    const struct gate *g = &r->gate;
    struct pool *pool = pool_of(g);
    const char *text =
        pool_text(pool, "%s, no regression", show_count(pool, g->tally.held, "case"));

    text = r->sight.today < SIGHT_NONE
               ? pool_text(pool, "%s; detects a slowdown of %s in the median case", text,
                           words_slowdown(pool, r->sight.today))
               : pool_text(pool, "%s; which slowdown would be detected is not known", text);
    return g->likely ? pool_text(pool, "%s; a slowdown is likely: %s", text,
                                 slowdown_of(pool, g->likely->pair))
                     : text;
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
    static const enum gate_state states[] = {GATE_WRONG,    GATE_FAILED, GATE_MISSING, GATE_REFUSED,
                                             GATE_ACCEPTED, GATE_BETTER, GATE_NEW};
    const struct gate *g = &r->gate;
    struct pool *pool = pool_of(g);
    const char *text = g->verdict == GATE_LOST        ? lost_words(r)
                       : g->verdict == GATE_FIRST     ? "nothing was judged: there is no baseline"
                       : g->verdict == GATE_UNDECIDED ? inconclusive(g)
                       : g->verdict == GATE_PASSED    ? passed_words(r)
                       : *g->state                    ? pool_text(pool, "the run is '%s'", g->state)
                                                      : cases_of(g, GATE_FAILED, GATE_REFUSED);

    if (g->verdict != GATE_FIRST && count_taken(g))
        text = pool_text(pool, "%s; %s not judged, as " STEAL_WHY, text,
                         show_count(pool, count_taken(g), "case"));
    for (size_t i = 0; g->verdict != GATE_FIRST && i < sizeof(states) / sizeof(*states); i++)
        if (g->counts[states[i]])
            text = pool_text(pool, "%s; %zu %s", text, g->counts[states[i]],
                             gate_state_name(states[i]));
    return text;
}

/* A slowdown that the margin lets pass is one. */
const char *words_within(const struct gate *g)
{
    struct pool *pool = pool_of(g);

    if (!g->tally.within)
        return "";
    const struct decide_case *c = &g->within->pair->decide;

    return pool_text(pool,
                     "a slowdown is proven in %s within the margin, the largest %s of %s in '%s'",
                     show_count(pool, g->tally.within, "case"), words_percent(pool, 1 - c->ratio),
                     words_percent(pool, c->margin), g->within->pair->name);
}

const char *words_taken(const struct gate *g)
{
    return g->n_taken ? pool_text(pool_of(g), "in %s repetitions are left out, as " STEAL_WHY,
                                  show_count(pool_of(g), g->n_taken, "case"))
                      : "";
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

/* The benchmarks of what regressed, as a pattern. */
static const char *benches_of(const struct gate *g)
{
    const char *list = "", *last = "";

    for (size_t i = 0; i < g->p->n; i++)
        for (size_t k = 0; k < g->counts[GATE_REGRESSED]; k++) {
            const char *name = g->p->all[i].bench->name;

            if (g->cases[k].pair != &g->p->all[i] || !strcmp(name, last))
                continue;
            list = pool_join(pool_of(g), list, "|", name);
            last = name;
        }
    return list;
}

const char *words_next(const struct check_result *r)
{
    const struct gate *g = &r->gate;
    struct pool *pool = pool_of(g);

    if (!g->counts[GATE_REGRESSED])
        return "";
    const char *only = quoted(pool, benches_of(g));

    return pool_text(pool,
                     "plumb run %s --only %s --out results/again && plumb check results/again "
                     "--baseline %s --only %s",
                     quoted(pool, suite_of(g)), only, quoted(pool, r->spec), only);
}

const char *words_accept(const struct check_result *r)
{
    const struct gate *g = &r->gate;
    struct pool *pool = pool_of(g);

    if (!g->counts[GATE_REGRESSED] || !baseline_is_history(r->spec))
        return "";
    const char *history = strcmp(r->history, HISTORY_DEFAULT) != 0
                              ? pool_text(pool, " --history %s", quoted(pool, r->history))
                              : "";
    /* Of one case a pattern that is of it only; of several their benchmarks. */
    const char *label[] = {g->cases[0].pair->label, NULL};
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++)
        n += only_keeps(label, &(struct only_case){.key = g->cases[i].pair->key,
                                                   .label = g->cases[i].pair->label});
    const char *pattern = g->counts[GATE_REGRESSED] > 1 ? benches_of(g)
                          : n == 1                      ? label[0]
                                                        : g->cases[0].pair->key;

    return pool_text(pool, "plumb check %s --accept %s --reason TEXT%s", quoted(pool, r->run),
                     quoted(pool, pattern), history);
}
