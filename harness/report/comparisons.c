/* SPDX-License-Identifier: Apache-2.0 */
/* Whether cases of one run differ: see comparisons.h. */
#include "harness/report/comparisons.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "harness/report/cases.h"

#define ALARM_LEVEL   0.01 /* of a run, over all topics of places, and again over all others */
#define CONFIDENCE    0.95
#define OTHERS_MAX    128 /* of many places so many, evenly over them, are held against */
#define PEERS_MIN     2   /* by one link alone nobody knows which end of it is slow */
#define TELLS_NOTHING 10  /* an interval that spans such a factor */

/* Launches of cases, and those of them that fell behind the others of their own case. */
struct stalls {
    size_t launches, behind;
};

struct comparison_topic {
    const void *about;
    const struct report_bench *bench;
    size_t run, first, n;
    bool alike;
    size_t
        *others; /* like how many each case of the benchmark is; the same of all topics of a run */
};

static struct comparison_topic *topic_of(const struct comparisons *q)
{
    return &q->topics[q->n_topics - 1];
}

void comparisons_topic(struct comparisons *q, const void *about, const struct report_bench *b,
                       size_t run, bool alike)
{
    struct comparison_topic topic = {about, b, run, .first = q->n, .alike = alike};

    for (size_t i = 0; i < q->n_topics; i++)
        if (q->topics[i].bench == b && q->topics[i].run == run)
            topic.others = q->topics[i].others;
    if (!topic.others)
        topic.others = pool_alloc(&q->r->pool, b->n_cases, sizeof(*topic.others));
    *POOL_ADD(&q->r->pool, q->topics, q->n_topics) = topic;
}

static struct decide_run run_of(const struct comparisons *q, const struct comparison_topic *t,
                                const struct report_case *c)
{
    const struct report_point *p = &c->points[t->run];
    double *values = pool_alloc(&q->r->pool, p->n_rows, sizeof(*values));

    return (struct decide_run){.values = values,
                               .n = combine_values(&t->bench->rows[t->run], p, values)};
}

/* runs: of the others, then its own. */
static size_t add(struct comparisons *q, const struct report_case *c, const struct decide_run *runs,
                  size_t n_others, size_t n_own, double margin)
{
    if (!n_others || !n_own || !(margin > 0) || !(margin < 1))
        return COMPARISON_NONE;
    q->cases = pool_grow(&q->r->pool, q->cases, q->n, sizeof(*q->cases));
    q->cases[q->n] = (struct decide_case){.a = {runs, n_others},
                                          .b = {runs + n_others, n_own},
                                          .margin = margin,
                                          .higher_is_better = c->more_is_better};
    *POOL_ADD(&q->r->pool, q->all, q->n) = (struct comparison){.bench = topic_of(q)->bench,
                                                               .run = topic_of(q)->run,
                                                               .c = c,
                                                               .n_own = n_own,
                                                               .group = q->groups,
                                                               .margin = margin,
                                                               .decision = DECISION_INCONCLUSIVE,
                                                               .ratio = NAN,
                                                               .low = NAN,
                                                               .high = NAN};
    topic_of(q)->n++;
    return q->n - 1;
}

void comparisons_like(struct comparisons *q, const struct report_case *c, size_t others)
{
    size_t *at = &topic_of(q)->others[c - topic_of(q)->bench->cases];

    *at = topic_of(q)->alike && others > *at ? others : *at;
}

size_t comparisons_alike(const struct comparisons *q, const struct report_bench *b, size_t run,
                         const struct report_case *c)
{
    for (size_t i = 0; i < q->n_topics; i++)
        if (q->topics[i].bench == b && q->topics[i].run == run)
            return q->topics[i].others[c - b->cases];
    return 0;
}

size_t comparisons_add(struct comparisons *q, const struct report_case *c,
                       const struct report_case *other, double margin)
{
    struct decide_run *runs = pool_alloc(&q->r->pool, 2, sizeof(*runs));

    runs[0] = run_of(q, topic_of(q), other);
    runs[1] = run_of(q, topic_of(q), c);
    comparisons_like(q, c, 1);
    q->groups++;
    return add(q, c, runs, 1, 1, margin);
}

/* ---- Places that are alike ---- */

struct places {
    const struct comparison_group *g;
    struct decide_run *runs; /* of each case */
    bool *low;               /* of each place: it is none to be held against */
    size_t fine;             /* places that are not */
    size_t *met;             /* of each place: the last one that it is a peer of, counted from 1 */
};

static bool is_of(const struct comparison_group *g, size_t i, size_t place)
{
    return g->place[i] == place || (g->both && g->other[i] == place);
}

static bool is_low(const struct places *p, size_t place)
{
    return place < p->g->n_places && p->low[place];
}

/* Turned round where less is better: the more the better. */
static double level_of(const struct comparisons *q, const struct report_case *c)
{
    double value = c->points[topic_of(q)->run].value;

    return c->more_is_better ? value : 1 / value;
}

/* With a strict majority of hosts that are fine, at least half of a fine host's links go to such: so
 * its level is the upper median of its cases. */
static void find_low(const struct comparisons *q, struct places *p, double margin)
{
    const struct comparison_group *g = p->g;
    double *levels = xcalloc(g->n_places, sizeof(*levels));
    double *sorted = xcalloc(g->n + g->n_places, sizeof(*sorted));
    size_t known = 0;

    for (size_t place = 0; place < g->n_places; place++) {
        size_t n = 0;

        for (size_t i = 0; i < g->n; i++)
            if (is_of(g, i, place))
                sorted[n++] = level_of(q, g->cases[i]);
        qsort(sorted, n, sizeof(*sorted), stats_ascending);
        levels[place] = n ? sorted[n / 2] : NAN;
    }
    for (size_t place = 0; place < g->n_places; place++)
        if (!isnan(levels[place]))
            sorted[known++] = levels[place];
    qsort(sorted, known, sizeof(*sorted), stats_ascending);
    for (size_t place = 0; known && place < g->n_places; place++) {
        p->low[place] = levels[place] < (1 - margin) * sorted[known / 2];
        p->fine += levels[place] >= (1 - margin) * sorted[known / 2];
    }
    free(sorted);
    free(levels);
}

/* The other end of the place's link. */
static size_t far_end(const struct comparison_group *g, size_t i, size_t place)
{
    return g->place[i] == place ? g->other[i] : g->place[i];
}

static bool is_own(const struct places *p, size_t i, size_t place)
{
    return is_of(p->g, i, place) && !is_low(p, far_end(p->g, i, place));
}

static bool is_others(const struct places *p, size_t i, size_t place)
{
    const struct comparison_group *g = p->g;

    return g->place[i] != place && g->other[i] != place && !is_low(p, g->place[i]) &&
           !is_low(p, g->other[i]);
}

static size_t add_place(struct comparisons *q, struct places *p, size_t place, double margin)
{
    const struct comparison_group *g = p->g;
    size_t n_own = 0, n_others = 0, peers = 0, seen = 0, taken = 0;
    const struct report_case *first = NULL;
    bool links = false;

    for (size_t i = 0; i < g->n; i++) {
        size_t far = far_end(g, i, place);

        links = links || g->other[i] < g->n_places;
        n_others += is_others(p, i, place);
        if (!is_own(p, i, place))
            continue;
        first = first ? first : g->cases[i];
        n_own++;
        if (far < g->n_places && p->met[far] != place + 1) {
            p->met[far] = place + 1;
            peers++;
        }
    }
    if (links && (peers < PEERS_MIN || p->fine - !p->low[place] < PEERS_MIN))
        return COMPARISON_NONE;
    size_t most = n_others < OTHERS_MAX ? n_others : OTHERS_MAX;
    struct decide_run *runs = pool_alloc(&q->r->pool, most + n_own, sizeof(*runs));
    struct decide_run *own = runs + most;
    for (size_t i = 0; i < g->n; i++) {
        if (is_own(p, i, place))
            *own++ = p->runs[i];
        else if (is_others(p, i, place) && seen++ * most / n_others == taken)
            runs[taken++] = p->runs[i];
    }
    size_t number = add(q, first, runs, most, n_own, margin);
    if (number != COMPARISON_NONE)
        q->all[number].peers = peers;
    return number;
}

void comparisons_add_group(struct comparisons *q, const struct comparison_group *group,
                           double margin, size_t *at)
{
    struct places p = {.g = group,
                       .runs = xcalloc(group->n, sizeof(*p.runs)),
                       .low = xcalloc(group->n_places, sizeof(*p.low)),
                       .met = xcalloc(group->n_places, sizeof(*p.met))};

    find_low(q, &p, margin);
    q->groups++;
    for (size_t i = 0; i < group->n; i++) {
        p.runs[i] = run_of(q, topic_of(q), group->cases[i]);
        comparisons_like(q, group->cases[i], group->n - 1);
    }
    for (size_t place = 0; place < group->n_places; place++) {
        size_t number = add_place(q, &p, place, margin);

        if (at)
            at[place] = number;
    }
    free(p.met);
    free(p.low);
    free(p.runs);
}

/* ---- Deciding ---- */

/* Held against the upper median of its own case, by which one that is slow in each launch has none. */
static void add_stalls(const struct decide_run *run, bool more_is_better, double margin,
                       struct stalls *stalls)
{
    double *levels = xcalloc(run->n, sizeof(*levels));

    for (size_t i = 0; i < run->n; i++)
        levels[i] = more_is_better ? run->values[i] : 1 / run->values[i];
    qsort(levels, run->n, sizeof(*levels), stats_ascending);
    for (size_t i = 0; i < run->n; i++)
        stalls->behind += levels[i] < (1 - margin) * levels[run->n / 2];
    stalls->launches += run->n;
    free(levels);
}

/* The launches of its own side, and those that are below the others, each by itself: one of two that
 * stalled is noise. */
static struct stalls launches_below(const struct decide_case *d)
{
    struct stalls own = {0};

    for (size_t k = 0; k < d->b.n; k++)
        for (size_t i = 0; i < d->b.runs[k].n; i++) {
            double value = d->b.runs[k].values[i];
            double ratio = d->higher_is_better ? value / d->a_value : d->a_value / value;

            own.launches++;
            own.behind += ratio < 1 - d->margin;
        }
    return own;
}

/*
 * The chance that at least so many of n launches stall, where so many of the others did: each with
 * the same chance, of which the others tell (beta-binomial, with Jeffreys' prior).
 */
static double chance_of_stalls(const struct stalls *own, const struct stalls *others)
{
    double a = 0.5 + (double)others->behind;
    double b = 0.5 + (double)(others->launches - others->behind), all = 1, sum = 0;

    for (size_t i = 0; i < own->launches; i++)
        all *= (b + (double)i) / (a + b + (double)i);
    for (size_t k = 0; k <= own->launches; k++) {
        double left = (double)(own->launches - k);
        sum += k >= own->behind ? all : 0;
        all *= left * (a + (double)k) / ((double)(k + 1) * (b + left - 1));
    }
    return sum;
}

/* The comparisons of a topic share their values, and so know how places differ no better than the
 * others of one do. */
static void take_interval(const struct decide_case *d, struct comparison *c)
{
    double freedom = fmin(d->freedom, fmax(1, (double)d->a.n - 1));
    double half = isnan(d->error) || isnan(d->freedom)
                      ? NAN
                      : d->error * dist_t_quantile(0.5 + CONFIDENCE / 2, freedom);

    c->low = d->a.n > 1 ? d->ratio * exp(-half) : d->low;
    c->high = d->a.n > 1 ? d->ratio * exp(half) : d->high;
}

/* all: stalls of the cases of all places; most: the chance that an alarm may have. */
static void judge(const struct decide_case *d, bool alike, const struct stalls *all, double most,
                  struct comparison *c)
{
    struct stalls below, others = *all;

    c->decision = d->decision;
    c->proven = d->proven;
    c->ratio = d->ratio;
    take_interval(d, c);
    if (!alike || !(d->ratio < 1 - c->margin))
        return;
    below = launches_below(d);
    for (size_t i = 0; i < d->b.n; i++) {
        struct stalls own = {0};

        add_stalls(&d->b.runs[i], d->higher_is_better, c->margin, &own);
        others.launches -= own.launches;
        others.behind -= own.behind;
    }
    c->slow = below.launches > 1 && /* a single launch proves nothing */
              (d->decision == DECISION_WORSE || d->obstacle == OBSTACLE_FEW) &&
              c->high < 1 - c->margin && chance_of_stalls(&below, &others) <= most;
    c->looks_slow = !c->slow;
}

void comparisons_decide(struct comparisons *q)
{
    for (const struct comparison_topic *t = q->topics; t < q->topics + q->n_topics; t++) {
        struct decide_options options = {.confidence = CONFIDENCE};
        struct decide_overall overall;
        struct stalls stalls = {0};
        size_t topics = 0;

        for (size_t i = 0; i < q->n_topics; i++)
            topics +=
                q->topics[i].run == t->run && q->topics[i].alike == t->alike && q->topics[i].n;
        options.alarm_level = ALARM_LEVEL / (double)topics;
        if (!t->n || decide_suite(&q->cases[t->first], t->n, &options, &overall))
            continue;
        for (size_t i = 0; t->alike && i < t->bench->n_cases; i++)
            if (t->others[i]) {
                const struct report_case *c = &t->bench->cases[i];
                struct decide_run run = run_of(q, t, c);

                add_stalls(&run, c->more_is_better, q->all[t->first].margin, &stalls);
            }
        for (size_t i = t->first; i < t->first + t->n; i++)
            judge(&q->cases[i], t->alike, &stalls, options.alarm_level / (double)t->n, &q->all[i]);
    }
}

const struct comparison *comparisons_about(const struct comparisons *q, const void *about,
                                           const struct report_bench *b, size_t run, size_t *n)
{
    *n = 0;
    for (const struct comparison_topic *t = q->topics; t < q->topics + q->n_topics; t++)
        if (t->n && t->about == about && t->bench == b && t->run == run) {
            *n = t->n;
            return &q->all[t->first];
        }
    return NULL;
}

const struct comparison *comparison_of(const struct comparisons *q, size_t number)
{
    return number == COMPARISON_NONE ? NULL : &q->all[number];
}

const char *comparison_interval_text(struct pool *pool, const struct comparison *c)
{
    if (isnan(c->low))
        return "";
    if (c->high > TELLS_NOTHING * c->low)
        return " (its launches differ too much for an interval)";
    return pool_text(pool, " (%#.3g to %#.3g)", c->low, c->high);
}
