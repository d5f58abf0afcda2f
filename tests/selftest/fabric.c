/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up clusters, stepped through message by message: see fabric.h. */
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

struct run {
    const struct fabric *f;
    struct rng *rng;
    size_t n, rounds;
    enum fabric_way way;
    double bytes, slower;
    struct flow flows[FABRIC_HOSTS];
    size_t round[FABRIC_HOSTS];               /* that the rank is in */
    bool got[FABRIC_HOSTS][2 * FABRIC_HOSTS]; /* the message of a round */
    double begins[FABRIC_HOSTS];
    size_t out[FABRIC_HOSTS], in[FABRIC_HOSTS], up[FABRIC_HOSTS],
        down[FABRIC_HOSTS]; /* flows of a host, of a switch */
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

    if (r->way == WAY_RING) {
        *to = (rank + 1) % r->n;
        *bytes = r->bytes / (double)r->n;
        return;
    }
    if (r->way == WAY_HALVING)
        level = round < steps ? round : 2 * steps - 1 - round;
    /* halves go to the farthest first */
    *to = rank ^ (r->way == WAY_HALVING ? r->n >> (level + 1) : (size_t)1 << level);
    *bytes = r->way == WAY_HALVING ? r->bytes / (double)((size_t)2 << level) : r->bytes;
}

static size_t leaf_of(const struct fabric *f, size_t rank)
{
    return f->leaf ? f->place[rank] / f->leaf : 0;
}

static void begin(struct run *r, size_t rank, double now)
{
    struct flow *flow = &r->flows[rank];

    if (r->round[rank] == r->rounds) {
        flow->phase = PHASE_DONE;
        return;
    }
    message_of(r, rank, r->round[rank], &flow->to, &flow->left);
    flow->phase = PHASE_FLIES;
    flow->at_us = now + r->f->latency_us * r->slower * exp(r->f->jitter * rng_normal(r->rng));
}

static void count(struct run *r, size_t rank, int by)
{
    size_t to = r->flows[rank].to, from_leaf = leaf_of(r->f, rank), to_leaf = leaf_of(r->f, to);

    r->out[rank] += (size_t)by;
    r->in[to] += (size_t)by;
    if (from_leaf != to_leaf) {
        r->up[from_leaf] += (size_t)by;
        r->down[to_leaf] += (size_t)by;
    }
}

static double rate_of(const struct run *r, size_t rank)
{
    const struct fabric *f = r->f;
    size_t to = r->flows[rank].to, from_leaf = leaf_of(f, rank), to_leaf = leaf_of(f, to);
    double rate = fmin(f->rate[f->place[rank]] / (double)r->out[rank],
                       f->rate[f->place[to]] / (double)r->in[to]);

    if (from_leaf != to_leaf)
        rate = fmin(rate,
                    f->uplink / (double)(r->up[from_leaf] > r->down[to_leaf] ? r->up[from_leaf]
                                                                             : r->down[to_leaf]));
    return rate / r->slower;
}

/* A rank's round has ended when it has sent its message and got the one of that round. */
static bool goes_on(const struct run *r, size_t rank)
{
    return r->flows[rank].phase == PHASE_WAITS && r->round[rank] > 0 &&
           r->got[rank][r->round[rank] - 1];
}

static double next_event(const struct run *r, double now)
{
    double step = HUGE_VAL;

    for (size_t i = 0; i < r->n; i++) {
        if (r->flows[i].phase == PHASE_FLIES)
            step = fmin(step, r->flows[i].at_us - now);
        else if (r->flows[i].phase == PHASE_FLOWS)
            step = fmin(step, r->flows[i].left / rate_of(r, i));
    }
    return fmax(step, 0);
}

static void arrive(struct run *r, size_t i)
{
    count(r, i, -1);
    r->flows[i].phase = PHASE_WAITS;
    r->got[r->flows[i].to][r->round[i]++] = true;
}

static void pass(struct run *r, double now, double step, double *end)
{
    double moved[FABRIC_HOSTS];

    for (size_t i = 0; i < r->n; i++)
        moved[i] = r->flows[i].phase == PHASE_FLOWS ? rate_of(r, i) * step : 0;
    for (size_t i = 0; i < r->n; i++) {
        struct flow *flow = &r->flows[i];

        flow->left -= moved[i];
        if (flow->phase == PHASE_FLIES && flow->at_us <= now + SMALL) {
            flow->phase = PHASE_FLOWS;
            count(r, i, 1);
        } else if (flow->phase == PHASE_FLOWS && flow->left <= SMALL * r->bytes) {
            arrive(r, i);
        }
    }
    for (size_t i = 0; i < r->n; i++) {
        if (!goes_on(r, i))
            continue;
        end[i] = now;
        begin(r, i, now);
    }
}

static enum fabric_way way_of(const struct fabric *f, size_t n, double bytes)
{
    return bytes <= f->small ? WAY_DOUBLING : f->later && n >= f->later ? f->way_later : f->way;
}

void fabric_sum(const struct fabric *f, struct rng *rng, size_t n, double bytes, double slower,
                const double *start, double *end)
{
    struct run r = {
        .f = f, .rng = rng, .n = n, .way = way_of(f, n, bytes), .bytes = bytes, .slower = slower};
    double now = 0;

    r.rounds = rounds_of(r.way, n);
    memcpy(end, start, n * sizeof(*end));
    for (size_t i = 0; i < n; i++)
        begin(&r, i, start[i]);
    for (double step = next_event(&r, now); step < HUGE_VAL; step = next_event(&r, now)) {
        now += step;
        pass(&r, now, step, end);
    }
}

double fabric_sum_us(const struct fabric *f, struct rng *rng, size_t n, double bytes, double slower)
{
    double start[FABRIC_HOSTS] = {0}, end[FABRIC_HOSTS], last = 0;

    fabric_sum(f, rng, n, bytes, slower, start, end);
    for (size_t i = 0; i < n; i++)
        last = fmax(last, end[i]);
    return last;
}

/* Where the rank's compute is after `work` more, from `at` on, while its sum goes on until `busy`. */
static double after(double at, double work, double busy, double together)
{
    double shared = fmax(0, busy - at);

    return work <= shared * together ? at + work / together
                                     : at + shared + work - shared * together;
}

double fabric_step_us(const struct fabric *f, struct rng *rng, size_t n,
                      const struct fabric_job *job, double slower)
{
    double at[FABRIC_HOSTS] = {0}, sums[FABRIC_HOSTS] = {0}, last = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < job->layers; k++)
            at[i] += job->forward_us * f->work[f->place[i]] * exp(f->work_jitter * rng_normal(rng));
    for (size_t k = 0; k < job->layers; k++) {
        double start[FABRIC_HOSTS];

        for (size_t i = 0; i < n; i++) {
            double work =
                job->backward_us * f->work[f->place[i]] * exp(f->work_jitter * rng_normal(rng));

            at[i] = after(at[i], work, sums[i], job->together);
            start[i] = fmax(at[i], sums[i]);
        }
        fabric_sum(f, rng, n, job->bytes, slower, start, sums);
    }
    for (size_t i = 0; i < n; i++)
        last = fmax(last, fmax(at[i], sums[i]));
    return last;
}
