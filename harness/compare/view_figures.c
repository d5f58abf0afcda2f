/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of one case, as texts: see view.h. */
#include <math.h>
#include <string.h>

#include "harness/compare/view.h"
#include "harness/report/show.h"
#include "harness/report/utf8.h"

#define DECIMALS      3
#define DECIMALS_MOST 6

const char *view_printable(struct pool *pool, const char *text)
{
    size_t n, used, at = 0;
    char *kept = pool_alloc(pool, 3 * strlen(text) + 1, 1); /* a replacement takes three bytes */

    for (; kept && *text; text += used, at += n) {
        const char *c = utf8_printable(text, &n, &used);

        memcpy(kept + at, c, n);
    }
    return kept ? kept : "";
}

const char *view_percent(struct pool *pool, double share)
{
    return isfinite(share) ? pool_text(pool, "%.3g %%", 100 * share) : "";
}

/* As many digits as mean something of a loss that is not measured but reckoned with. */
static const char *smallest_text(struct pool *pool, double share)
{
    if (share > 0.995)
        return "over 99 %";
    return isfinite(share) ? pool_text(pool, "%.*f %%", share < 0.0995 ? 1 : 0, 100 * share) : "";
}

/* Would `value` be written as `mark` is, though it is another? */
static bool hides(double value, double mark, int decimals)
{
    double unit = pow(10, -decimals);

    return value != mark && isfinite(value) && round(value / unit) == round(mark / unit);
}

/* What no digits that are written would tell apart is the same, and asks for none. */
static int decimals_to_tell(double value, double mark)
{
    int decimals = DECIMALS;

    while (decimals < DECIMALS_MOST && hides(value, mark, decimals))
        decimals++;
    return hides(value, mark, decimals) ? DECIMALS : decimals;
}

/* As many as tell an end of the interval from 1 and from the margin, on which the verdict hangs. */
static int decimals_of(const struct decide_case *c)
{
    const double marks[] = {1, 1 - c->margin, 1 / (1 - c->margin)}, ends[] = {c->low, c->high};
    int decimals = DECIMALS;

    for (size_t i = 0; i < 2 * sizeof(marks) / sizeof(*marks); i++) {
        int needed = decimals_to_tell(ends[i % 2], marks[i / 2]);

        decimals = needed > decimals ? needed : decimals;
    }
    return decimals;
}

static const char *number(struct pool *pool, double value, int decimals)
{
    if (!isfinite(value))
        return isnan(value) ? "" : "unbounded";
    return value < 100 && value >= 0.01 ? pool_text(pool, "%.*f", decimals, value)
                                        : show_number(pool, value);
}

bool view_is_beyond_alone(const struct pair *pair)
{
    return pair->decide.decision == DECISION_INCONCLUSIVE && pair->decide.beyond &&
           pair->decide.obstacle == OBSTACLE_NONE;
}

struct view_figures view_figures(struct pool *pool, const struct pair *pair)
{
    const struct decide_case *c = &pair->decide;
    int decimals = decimals_of(c);
    struct view_figures f = {.ratio = number(pool, c->ratio, decimals),
                             .interval = "",
                             .verdict = decision_name(c->decision),
                             .more = "",
                             .smallest = smallest_text(pool, c->smallest)};

    if (!isnan(c->low) && !isnan(c->high))
        f.interval = pool_text(pool, "%s to %s", number(pool, c->low, decimals),
                               number(pool, c->high, decimals));
    f.both = !*f.ratio     ? "no ratio"
             : *f.interval ? pool_text(pool, "%s (%s)", f.ratio, f.interval)
                           : pool_text(pool, "%s (no interval)", f.ratio);
    if (c->beyond && c->decision != DECISION_INCONCLUSIVE)
        f.verdict = pool_text(pool, "%s, beyond", f.verdict);
    else if (view_is_beyond_alone(pair))
        f.verdict = pool_text(pool, "%s, beyond by itself", f.verdict);
    if (c->decision == DECISION_INCONCLUSIVE && c->more_launches)
        f.more = pool_text(pool, "+%zu", c->more_launches);
    return f;
}

const char *view_left_text(struct pool *pool, const struct view_left *left)
{
    return pool_text(pool, "%s%s", left->state == PAIR_REFUSED ? "not comparable: " : "",
                     left->reason);
}

const char *view_explain(struct view *v)
{
    bool runs = v->p->overall.by_runs;

    return pool_text(
        v->pool,
        "A ratio is B over A, turned round where lower is better, so that below 1 B has lost; its "
        "95 %% interval stands beside. Equivalent: the whole interval lies within the margin. "
        "Worse, better: a difference is proven, over the whole suite, and is not within the "
        "margin; beyond: the whole interval is past the margin. Inconclusive: neither, which is "
        "not the same as alike; \"more\" are the further %s a side that would decide, if nothing "
        "else changes. \"Would show\" is the smallest loss that this data would have proven four "
        "times in five.",
        runs ? "runs (or launches, where there is one run)" : "launches");
}
