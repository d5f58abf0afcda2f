/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest slowdown that a night can detect, and what would lower it: see check.h. */
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "harness/check/check.h"
#include "harness/report/show.h"
#include "harness/report/summary.h"

#define NIGHTS_MAX   30  /* further baselines that are considered */
#define NIGHTS_LEAST 5   /* fewer do not tell how much nights differ */
#define REPEAT_MAX   50  /* launches of a case */
#define GAIN_LEAST   0.9 /* a forecast that is not below so much of today's is none */
#define SECONDS_UPTO 90

struct sighting {
    const struct gate *g;
    const struct sight_asked *asked;
    struct decide_case *cases; /* a copy of all that are decided */
    double *slowdowns;
    size_t n, n_wanted; /* decided; of these, those that were asked for come first */
    size_t n_taken;     /* asked for, and without a launch that counts */
    bool by_runs;       /* runs are what varies */
};

static double aim_of(const struct gate *g)
{
    return g->options.detect > 0 ? g->options.detect : SIGHT_AIM;
}

/* The median over the cases that were asked for. What cannot be told could have hidden anything. */
static double median_with(struct sighting *s, const struct decide_later *later)
{
    struct decide_options options = s->asked->decide;
    struct decide_overall overall;

    options.later = *later;
    options.later.runs_most = s->asked->runs_most;
    if (decide_suite(s->cases, s->n, &options, &overall))
        return NAN;
    s->by_runs = overall.by_runs;
    for (size_t i = 0; i < s->n_wanted; i++)
        s->slowdowns[i] = isnan(s->cases[i].detectable) ? 1 : s->cases[i].detectable;
    for (size_t i = 0; i < s->n_taken; i++)
        s->slowdowns[s->n_wanted + i] = 1;
    return stats_median(s->slowdowns, s->n_wanted + s->n_taken);
}

/* With so many more nights; where launches are given, with so many launches in place of these. */
static double median_after(struct sighting *s, size_t n, size_t launches)
{
    struct decide_later later = {0};

    if (launches)
        later.launches = (double)n / (double)launches;
    else
        later.runs = n;
    return median_with(s, &later);
}

/* More data never detects less: the smallest number of nights or launches is halved towards. */
static size_t least(struct sighting *s, size_t no, size_t yes, size_t launches)
{
    double see = aim_of(s->g);

    if (no >= yes || !(median_after(s, yes, launches) <= see))
        return 0;
    while (yes - no > 1) {
        size_t middle = no + (yes - no) / 2;

        if (median_after(s, middle, launches) <= see)
            yes = middle;
        else
            no = middle;
    }
    return yes;
}

static void forecast(struct sighting *s, struct sight *out)
{
    /* How many launches the run has of a case. */
    for (size_t i = 0; i < s->n_wanted; i++)
        s->slowdowns[i] = s->cases[i].b.n ? (double)s->cases[i].b.runs[0].n : 0;
    size_t launches = (size_t)stats_median(s->slowdowns, s->n_wanted);

    out->by_runs = s->by_runs;
    if (out->by_runs)
        out->nights = least(s, 0, NIGHTS_MAX, 0);
    out->then = aim_of(s->g);
    if (launches)
        out->repeat = least(s, launches, REPEAT_MAX, launches);
    if (out->repeat)
        out->minutes = trust_minutes(&s->g->p->report, s->g->p->n_a, (double)out->repeat);
    if (out->nights || out->repeat || !out->by_runs)
        return;
    out->then = median_after(s, NIGHTS_MAX, 0);
    if (out->then < GAIN_LEAST * out->today)
        out->nights = NIGHTS_MAX;
}

/* ---- in words */

static const char *forecast_text(struct pool *pool, const struct sight *s)
{
    bool minutes = 60 * s->minutes >= SECONDS_UPTO;
    const char *nights =
        s->nights ? pool_text(pool, "after %s", show_count(pool, s->nights, "more night")) : "";
    const char *repeat =
        s->repeat ? pool_text(pool, "with --repeat %zu every night", s->repeat) : "";

    if (!s->nights && !s->repeat)
        return s->by_runs ? "; the nights differ too much for a smaller one: neither 30 more nor "
                            "--repeat 50 would do"
                          : "; add baselines for a smaller one";
    if (s->repeat && !isnan(s->minutes))
        repeat = pool_text(pool, minutes ? "%s (%.0f min)" : "%s (%.0f s)", repeat,
                           ceil(minutes ? s->minutes : 60 * s->minutes));
    return pool_text(pool, "; %s %s", words_slowdown(pool, s->then),
                     pool_join(pool, nights, ", or ", repeat));
}

void sight_make(struct sight *out, const struct gate *g, const struct sight_asked *asked)
{
    struct sighting s = {.g = g, .asked = asked};
    const struct pairs *p = s.g->p;

    s.cases = xcalloc(p->n_all, sizeof(*s.cases));
    s.slowdowns = xcalloc(p->n_all, sizeof(*s.slowdowns));
    for (size_t i = 0; i < p->n_all; i++) {
        if (p->all[i].state == PAIR_READY)
            s.cases[s.n++] = p->all[i].decide;
        s.n_taken += i < p->n && p->all[i].state == PAIR_TAKEN;
        s.n_wanted = i < p->n ? s.n : s.n_wanted;
    }
    *out = (struct sight){.today = NAN, .most = NAN, .then = NAN, .minutes = NAN, .sentence = ""};
    out->n = s.n_wanted + s.n_taken;
    if (out->n && !g->options.first) {
        out->today = median_with(&s, &(struct decide_later){0});
        for (size_t i = 0; i < out->n; i++)
            out->most = fmax(out->most, s.slowdowns[i]);
        for (size_t i = 0; i < s.n_wanted; i++)
            out->n_see += !gate_is_blind(&s.cases[i], aim_of(g));
        if (out->today > aim_of(g) && out->today < SIGHT_NONE && g->p->n_a >= NIGHTS_LEAST)
            forecast(&s, out);
    }
    struct pool *pool = &g->p->report.pool;
    const char *share =
        pool_text(pool, "%s detected or ruled out in %zu of %s", words_percent(pool, aim_of(g)),
                  out->n_see, show_count(pool, out->n, "case"));

    out->sentence = isnan(out->today)
                        ? (g->options.first ? "unknown: there is no run to compare with"
                                            : "unknown: no case was compared with a baseline")
                    : !(out->today < SIGHT_NONE)
                        ? pool_text(pool, "unknown in the median case (%s): add baselines", share)
                        : pool_text(pool, "%s today in the median case (%s)%s",
                                    words_slowdown(pool, out->today), share,
                                    out->today > aim_of(g) ? forecast_text(pool, out) : "");
    free(s.cases);
    free(s.slowdowns);
}
