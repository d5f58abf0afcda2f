/* SPDX-License-Identifier: Apache-2.0 */
/* The fastest of several ways: see search.h. */
#include "core/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/stats.h"

#define STEADY 1.05
#define STRIDE 7919u /* a prime above all numbers of ways: neighbours in it are far apart */

/* Where runs are short, in caches, a stage is many of them. */
static const struct search_stage peak_stages[] = {
    {1, 2000000, 1 / 0.5, 0, 0}, {2, 5000000, 1 / 0.8, 2, 0}, {3, 20000000, 0, 0, 0}, {0}};
const struct search_policy search_peak = {
    .stages = peak_stages, .run_ns = 500000, .near = 0.97, .near_runs = 8};

static const struct search_stage contest_stages[] = {
    {1, 0, 1.1, 8, 0}, {SEARCH_MEDIAN_RUNS, 0, 0, 0, 0}, {0}};
const struct search_policy search_contest = {.stages = contest_stages,
                                             .median = true,
                                             .favoured = 1,
                                             .tie = 0.005,
                                             .first_share = 0.5,
                                             .rounds = 4};

static const struct search_stage halving_stages[] = {
    {1, 0, 0, 4, 3}, {1 + 5, 0, 0, 4, 4}, {6 + 9, 0, 0, 4, 4}, {15 + 27, 0, 0, 0, 0}, {0}};
const struct search_policy search_halving = {
    .stages = halving_stages, .spread = true, .first_share = 1, .rounds = 1};

struct way {
    bool in;       /* takes part */
    unsigned runs; /* 0: it was not measured, or cannot */
    uint64_t passes, spent_ns;
    double least, second, kept[SEARCH_MEDIAN_RUNS];
};

struct state {
    const struct search *config;
    const struct search_policy *policy;
    struct search_result *out;
    struct way *ways;
    unsigned *order; /* room to sort in */
    unsigned n, round;
    bool over; /* the budget is used up */
    uint64_t begin_ns;
};

static uint64_t elapsed_ns(const struct state *s)
{
    const struct search *c = s->config;

    return (c->now_ns ? c->now_ns(c->arg) : clock_now_ns()) - s->begin_ns;
}

static double cost(const struct state *s, const struct way *w)
{
    return s->policy->median ? stats_median(w->kept, w->runs) : w->least;
}

/* One run that counts. 0, also where the way drops out, or -errno. */
static int run_one(struct state *s, unsigned i)
{
    struct way *w = &s->ways[i];
    struct search_run run = {.cost = INFINITY};
    int err = s->config->run(s->config->arg, i, w->passes, &run);

    while (!err && run.ns < s->policy->run_ns) {
        w->passes *= 2;
        err = s->config->run(s->config->arg, i, w->passes, &run);
    }
    if (!err) {
        if (w->runs < SEARCH_MEDIAN_RUNS)
            w->kept[w->runs] = run.cost;
        w->second = fmin(w->second, fmax(run.cost, w->least));
        w->least = fmin(w->least, run.cost);
        w->spent_ns += run.ns;
        s->out->tried += !w->runs++;
    }
    if (err != -EOPNOTSUPP)
        return err;
    s->out->tried -= w->runs > 0;
    s->out->refused++;
    w->runs = 0;
    w->in = false;
    return 0;
}

static bool wants(const struct way *w, const struct search_stage *stage)
{
    return w->in && (w->runs < stage->runs || w->spent_ns < stage->ns);
}

/* Who wants to, once. What the first round has no time for does not take part. */
static int run_round(struct state *s, const struct search_stage *stage)
{
    int err = 0;

    for (unsigned k = 0; !err && k < s->n; k++) {
        unsigned turn = s->round % 2 ? s->n - 1 - k : k,
                 i = s->policy->spread ? (unsigned)((uint64_t)turn * STRIDE % s->n) : turn;
        if (!wants(&s->ways[i], stage))
            continue;
        if (!s->round && s->out->tried && s->config->budget_ns &&
            (double)elapsed_ns(s) >= s->policy->first_share * (double)s->config->budget_ns) {
            s->ways[i].in = false;
            s->out->stop = SEARCH_TIME;
        } else {
            err = run_one(s, i);
        }
    }
    s->round++;
    return err;
}

static int run_stage(struct state *s, const struct search_stage *stage)
{
    int err = 0;
    bool more = true;

    while (!err && more) {
        more = false;
        for (unsigned i = 0; i < s->n; i++)
            more = more || wants(&s->ways[i], stage);
        /* Rounds go in pairs, as often one way as the other. */
        s->over = more && s->round && s->config->budget_ns && s->round >= s->policy->rounds &&
                  s->round % 2 == 0 && elapsed_ns(s) >= s->config->budget_ns;
        more = more && !s->over;
        err = more ? run_round(s, stage) : 0;
    }
    return err;
}

/* Those that take part and were measured, the fastest first, by number where they are equal.
 * Returns how many. */
static unsigned rank(struct state *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->n; i++) {
        unsigned at = n;
        if (!s->ways[i].in || !s->ways[i].runs)
            continue;
        for (; at && cost(s, &s->ways[s->order[at - 1]]) > cost(s, &s->ways[i]); at--)
            s->order[at] = s->order[at - 1];
        s->order[at] = i;
        n++;
    }
    return n;
}

/* How many ways can make all rounds that there must be in the time that is left. */
static double have_time(const struct state *s, const struct way *fastest)
{
    double left_ns = (double)s->config->budget_ns - (double)elapsed_ns(s),
           run_ns = (double)fastest->spent_ns / fastest->runs;

    return s->config->budget_ns ? fmax(1, left_ns / (s->policy->rounds * run_ns)) : INFINITY;
}

/* Returns how many stay. */
static unsigned choose_who_stays(struct state *s, const struct search_stage *stage)
{
    unsigned n = rank(s), most = stage->most ? stage->most : n, stay = 0;

    if (!n)
        return 0;
    if (stage->share && n / stage->share > most)
        most = n / stage->share;
    const struct way *fastest = &s->ways[s->order[0]];
    if (have_time(s, fastest) < most)
        most = (unsigned)have_time(s, fastest);
    double limit = stage->behind > 0 ? cost(s, fastest) * stage->behind : INFINITY;
    for (unsigned k = 0; k < n; k++) {
        struct way *w = &s->ways[s->order[k]];
        w->in = (k < most && cost(s, w) <= limit) || s->order[k] < s->policy->favoured;
        stay += w->in;
    }
    return stay;
}

/* A single way has nobody to be compared with. It goes on only where its own rate must be sure. */
static int run_stages(struct state *s)
{
    const struct search_stage *stage = s->policy->stages;
    int err = 0;

    for (unsigned stay = s->n; !err && stay && stage->runs; stage++) {
        err = run_stage(s, stage);
        if (!err)
            stay = choose_who_stays(s, stage);
        if (s->over || (stay == 1 && !(s->policy->near > 0)))
            break;
    }
    s->out->stop = s->over ? SEARCH_TIME : s->out->stop;
    /* A best run that no other one comes near may be a lucky one among disturbed ones, and a better
     * one still to come. */
    unsigned n = err ? 0 : rank(s);
    struct way *w = n ? &s->ways[s->order[0]] : NULL;
    while (!err && w && w->in && w->runs < s->policy->near_runs &&
           w->least < s->policy->near * w->second)
        err = run_one(s, s->order[0]);
    return err;
}

static void judge(struct state *s)
{
    struct search_result *out = s->out;
    unsigned n = rank(s);

    if (!n)
        return;
    const struct way *first = &s->ways[0];
    double least = cost(s, &s->ways[s->order[0]]);
    out->best = s->order[0];
    for (unsigned i = 0; i < s->n && i < s->policy->favoured; i++)
        if (s->ways[i].runs && cost(s, &s->ways[i]) <= least * (1 + s->policy->tie)) {
            out->best = i;
            break;
        }
    out->cost = cost(s, &s->ways[out->best]);
    const struct way *best = &s->ways[out->best];
    unsigned runs = best->runs < SEARCH_MEDIAN_RUNS ? best->runs : SEARCH_MEDIAN_RUNS;
    out->steady = stats_median(best->kept, runs) <= STEADY * best->least;
    out->gap = !first->runs ? NAN : out->best ? cost(s, first) / out->cost - 1 : 0;
}

/* Each way once, as they come. `mark` is the cost at the last gain. */
static int walk(struct state *s)
{
    const struct search *c = s->config;
    unsigned barren = 0;
    double mark = INFINITY;
    int err = 0;

    for (unsigned i = 0; !err && barren < s->policy->patience; i++) {
        s->out->stop = SEARCH_EXHAUSTED;
        if (i == s->n || !c->next(c->arg, i, s->out))
            return 0;
        s->out->stop = SEARCH_TIME;
        if (c->budget_ns && elapsed_ns(s) >= c->budget_ns)
            return 0;
        s->ways[i].in = true;
        err = run_one(s, i);
        if (!s->ways[i].runs)
            continue;
        double now = s->ways[i].least;
        if (now < s->out->cost) {
            s->out->cost = now;
            s->out->best = i;
        }
        bool gained = now * (1 + s->policy->gain) < mark;
        mark = gained ? now : mark;
        barren = gained ? 0 : barren + 1;
    }
    s->out->stop = SEARCH_NO_GAIN;
    return err;
}

int search_run(const struct search *config, struct search_result *out)
{
    struct state s = {.config = config, .policy = config->policy, .out = out, .n = config->n};

    *out = (struct search_result){.cost = INFINITY, .gap = NAN};
    s.ways = xcalloc(s.n + 1, sizeof(*s.ways));
    s.order = xcalloc(s.n + 1, sizeof(*s.order));
    for (unsigned i = 0; i < s.n; i++)
        s.ways[i] =
            (struct way){.in = !config->next, .passes = 1, .least = INFINITY, .second = INFINITY};
    s.begin_ns = elapsed_ns(&s);
    int err = config->next ? walk(&s) : run_stages(&s);
    out->elapsed_ns = elapsed_ns(&s);
    if (!err)
        judge(&s);
    free(s.ways);
    free(s.order);
    return err || out->tried ? err : -EOPNOTSUPP;
}
