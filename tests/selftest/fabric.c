/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up clusters, stepped through event by event: see fabric.h. */
#include "tests/selftest/fabric.h"

#include <math.h>
#include <string.h>

#define SMALL 1e-9

enum phase { PHASE_WAITS, PHASE_FLIES, PHASE_FLOWS, PHASE_DONE };

/* What a rank sends in its present round. */
struct flow {
    enum phase phase;
    size_t to;
    double at_us; /* when it begins, or when its first byte arrives */
    double left;  /* bytes */
};

/* What each rank does: works one after another, and sums one after another, each when so many works have ended. */
struct plan {
    size_t works, sums;
    double work_us[2 * FABRIC_LAYERS];
    size_t after[FABRIC_LAYERS];
    double bytes; /* of a sum */
    double appetite;
};

struct rank {
    size_t work; /* that it is at */
    double work_left_us;
    size_t round; /* of all sums: the message that it sends */
    struct flow flow;
    bool got[2 * FABRIC_HOSTS * FABRIC_LAYERS]; /* the message of a round */
    double end_us;                              /* of its last work or sum */
    /* of this moment */
    size_t out, in;
    double share; /* of what it wants of memory */
    double flow_rate, work_rate;
};

struct run {
    const struct fabric *f;
    const struct plan *plan;
    struct rng *rng;
    size_t n, rounds; /* of a sum */
    enum fabric_way way;
    double slower;
    struct rank ranks[FABRIC_HOSTS];
    size_t up[FABRIC_HOSTS], down[FABRIC_HOSTS]; /* flows of a switch */
};

static size_t log2_of(size_t n)
{
    size_t steps = 0;

    while ((size_t)1 << (steps + 1) <= n)
        steps++;
    return steps;
}

static size_t rounds_of(enum fabric_way way, size_t n)
{
    return way == WAY_RING ? 2 * (n - 1) : way == WAY_HALVING ? 2 * log2_of(n) : log2_of(n);
}

static void message_of(const struct run *r, size_t rank, size_t round, size_t *to, double *bytes)
{
    size_t steps = log2_of(r->n), level = round;
    double all = r->plan->bytes;

    if (r->way == WAY_RING) {
        *to = (rank + 1) % r->n;
        *bytes = all / (double)r->n;
        return;
    }
    if (r->way == WAY_HALVING)
        level = round < steps ? round : 2 * steps - 1 - round;
    /* halves go to the farthest first */
    *to = rank ^ (r->way == WAY_HALVING ? r->n >> (level + 1) : (size_t)1 << level);
    *bytes = r->way == WAY_HALVING ? all / (double)((size_t)2 << level) : all;
}

static size_t leaf_of(const struct fabric *f, size_t rank)
{
    return f->leaf ? f->place[rank] / f->leaf : 0;
}

static bool computes(const struct run *r, const struct rank *rank)
{
    return rank->work < r->plan->works;
}

static void count(struct run *r, size_t i, int by)
{
    size_t to = r->ranks[i].flow.to, from_leaf = leaf_of(r->f, i), to_leaf = leaf_of(r->f, to);

    r->ranks[i].out += (size_t)by;
    r->ranks[to].in += (size_t)by;
    if (from_leaf != to_leaf) {
        r->up[from_leaf] += (size_t)by;
        r->down[to_leaf] += (size_t)by;
    }
}

/* ---- rates of this moment ---- */

/* By the wires alone. */
static double wire_rate(const struct run *r, size_t i)
{
    const struct fabric *f = r->f;
    size_t to = r->ranks[i].flow.to, from_leaf = leaf_of(f, i), to_leaf = leaf_of(f, to);
    double rate = fmin(f->rate[f->place[i]] / (double)r->ranks[i].out,
                       f->rate[f->place[to]] / (double)r->ranks[to].in);

    if (from_leaf != to_leaf)
        rate = fmin(rate,
                    f->uplink / (double)(r->up[from_leaf] > r->down[to_leaf] ? r->up[from_leaf]
                                                                             : r->down[to_leaf]));
    return rate / r->slower;
}

/* Sent bytes are copied; those that came are read, added to others and written. */
#define MOVES_SENT 2
#define MOVES_GOT  3

static void share(struct run *r)
{
    double wanted[FABRIC_HOSTS];

    for (size_t i = 0; i < r->n; i++)
        wanted[i] = computes(r, &r->ranks[i]) ? r->plan->appetite : 0;
    for (size_t i = 0; i < r->n; i++) {
        struct rank *rank = &r->ranks[i];

        if (rank->flow.phase != PHASE_FLOWS)
            continue;
        rank->flow_rate = wire_rate(r, i);
        wanted[i] += MOVES_SENT * rank->flow_rate / r->f->memory;
        wanted[rank->flow.to] += MOVES_GOT * rank->flow_rate / r->f->memory;
    }
    for (size_t i = 0; i < r->n; i++) {
        struct rank *rank = &r->ranks[i];

        rank->share = fmin(1, 1 / fmax(wanted[i], SMALL));
        rank->work_rate = rank->share * (rank->in ? 1 - r->f->steals : 1);
    }
    for (size_t i = 0; i < r->n; i++)
        r->ranks[i].flow_rate *= fmin(r->ranks[i].share, r->ranks[r->ranks[i].flow.to].share);
}

/* ---- events ---- */

static void begin_work(struct run *r, size_t i)
{
    struct rank *rank = &r->ranks[i];

    if (computes(r, rank))
        rank->work_left_us = r->plan->work_us[rank->work] * r->f->work[r->f->place[i]] *
                             exp(r->f->work_jitter * rng_normal(r->rng));
}

/* The next message, where the rank has what it needs for it: the message of the round before, or the works before the sum. */
static void begin_message(struct run *r, size_t i, double now)
{
    struct rank *rank = &r->ranks[i];
    size_t sum = rank->round / r->rounds;

    if (rank->flow.phase != PHASE_WAITS || (rank->round > 0 && !rank->got[rank->round - 1]))
        return;
    if (sum == r->plan->sums) {
        rank->flow.phase = PHASE_DONE;
        rank->end_us = now;
        return;
    }
    if (rank->round % r->rounds == 0 && rank->work < r->plan->after[sum])
        return;
    message_of(r, i, rank->round % r->rounds, &rank->flow.to, &rank->flow.left);
    rank->flow.phase = PHASE_FLIES;
    rank->flow.at_us = now + r->f->latency_us * r->slower * (computes(r, rank) ? r->f->lag : 1) *
                                 exp(r->f->jitter * rng_normal(r->rng));
}

static double next_event(const struct run *r, double now)
{
    double step = HUGE_VAL;

    for (size_t i = 0; i < r->n; i++) {
        const struct rank *rank = &r->ranks[i];

        if (computes(r, rank))
            step = fmin(step, rank->work_left_us / rank->work_rate);
        if (rank->flow.phase == PHASE_FLIES)
            step = fmin(step, rank->flow.at_us - now);
        else if (rank->flow.phase == PHASE_FLOWS)
            step = fmin(step, rank->flow.left / rank->flow_rate);
    }
    return fmax(step, 0);
}

static void move(struct run *r, double step)
{
    for (size_t i = 0; i < r->n; i++) {
        struct rank *rank = &r->ranks[i];

        if (computes(r, rank))
            rank->work_left_us -= rank->work_rate * step;
        if (rank->flow.phase == PHASE_FLOWS)
            rank->flow.left -= rank->flow_rate * step;
    }
}

static void pass(struct run *r, double now)
{
    for (size_t i = 0; i < r->n; i++) {
        struct rank *rank = &r->ranks[i];
        struct flow *flow = &rank->flow;

        if (computes(r, rank) && rank->work_left_us <= SMALL * r->plan->work_us[rank->work]) {
            rank->work++;
            rank->end_us = now;
            begin_work(r, i);
        }
        if (flow->phase == PHASE_FLIES && flow->at_us <= now + SMALL) {
            flow->phase = PHASE_FLOWS;
            count(r, i, 1);
        } else if (flow->phase == PHASE_FLOWS && flow->left <= SMALL * r->plan->bytes) {
            count(r, i, -1);
            flow->phase = PHASE_WAITS;
            r->ranks[flow->to].got[rank->round++] = true;
        }
    }
    for (size_t i = 0; i < r->n; i++)
        begin_message(r, i, now);
    share(r);
}

static enum fabric_way way_of(const struct fabric *f, size_t n, double bytes)
{
    return bytes <= f->small ? WAY_DOUBLING : f->later && n >= f->later ? f->way_later : f->way;
}

static double run_us(const struct fabric *f, struct rng *rng, size_t n, const struct plan *plan,
                     double slower)
{
    struct run r = {.f = f,
                    .plan = plan,
                    .rng = rng,
                    .n = n,
                    .way = way_of(f, n, plan->bytes),
                    .slower = slower};
    double now = 0, last = 0;

    r.rounds = n > 1 ? rounds_of(r.way, n) : 1;
    for (size_t i = 0; i < n; i++) {
        begin_work(&r, i);
        begin_message(&r, i, 0);
    }
    share(&r);
    for (double step = next_event(&r, now); step < HUGE_VAL; step = next_event(&r, now)) {
        move(&r, step);
        now += step;
        pass(&r, now);
    }
    for (size_t i = 0; i < n; i++)
        last = fmax(last, r.ranks[i].end_us);
    return last;
}

double fabric_sum_us(const struct fabric *f, struct rng *rng, size_t n, double bytes, double slower)
{
    const struct plan plan = {.sums = 1, .bytes = bytes};

    return run_us(f, rng, n, &plan, slower);
}

static struct plan plan_of(const struct fabric_job *job, bool sums)
{
    struct plan plan = {.works = 2 * job->layers,
                        .sums = sums ? job->layers : 0,
                        .bytes = job->bytes,
                        .appetite = job->appetite};

    for (size_t k = 0; k < job->layers; k++) {
        plan.work_us[k] = job->forward_us;
        plan.work_us[job->layers + k] = job->backward_us;
        plan.after[k] = job->layers + k + 1;
    }
    return plan;
}

double fabric_step_us(const struct fabric *f, struct rng *rng, size_t n,
                      const struct fabric_job *job, double slower)
{
    const struct plan plan = plan_of(job, true);

    return run_us(f, rng, n, &plan, slower);
}

double fabric_passes_us(const struct fabric *f, struct rng *rng, size_t n,
                        const struct fabric_job *job)
{
    const struct plan plan = plan_of(job, false);

    return run_us(f, rng, n, &plan, 1);
}

double fabric_hidden(const struct fabric *f, struct rng *rng, size_t n, double bytes,
                     double appetite, double slower)
{
    double sum = fabric_sum_us(f, rng, n, bytes, slower);
    struct plan plan = {.works = 1, .work_us = {sum}, .bytes = bytes, .appetite = appetite};
    double work = run_us(f, rng, n, &plan, slower);

    plan.sums = 1;
    double both = run_us(f, rng, n, &plan, slower);
    return (sum + work - both) / fmin(sum, work);
}
