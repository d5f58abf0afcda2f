/* SPDX-License-Identifier: Apache-2.0 */
/* What each rank of a job does: see jobs.h. */
#include "tests/selftest/jobs.h"

#include <math.h>

/* Calls of one kind and one first member are of one group. A stage is the last of one pair and the
 * first of another, so pairs have two tags each. */
enum tag { TAG_DATA, TAG_EXPERT, TAG_TENSOR, TAG_EXCHANGE, TAG_THERE, TAG_BACK = TAG_THERE + 2 };

struct writer {
    const struct job *job;
    struct fabric_plan *plan;
    bool messages;
    size_t rank, tensor, stage, data, from, to; /* its layers */
    size_t last;                                /* what the next pass of a layer waits for */
    size_t work;                                /* the last compute */
    size_t sum;                                 /* the last call of the data lane */
    /* ZeRO 3 */
    size_t groups, gathered, turn;
    size_t gathers[2 * JOB_LAYERS * 8], passes[2 * JOB_LAYERS * 8];
};

static size_t stride_of_data(const struct job *job)
{
    return job->tp * job->pp;
}

static size_t rank_of(const struct job *job, size_t data, size_t stage, size_t tensor)
{
    return (data * job->pp + stage) * job->tp + tensor;
}

static struct fabric_group group_of(const struct writer *w, enum tag tag)
{
    const struct job *j = w->job;
    size_t stride = stride_of_data(j);

    switch (tag) {
    case TAG_TENSOR:
        return (struct fabric_group){tag, rank_of(j, w->data, w->stage, 0), 1, j->tp};
    case TAG_EXPERT: /* the same experts of each group of ep */
        return (struct fabric_group){tag, rank_of(j, w->data % j->ep, w->stage, w->tensor),
                                     stride * j->ep, j->dp / j->ep};
    case TAG_EXCHANGE:
        return (struct fabric_group){tag, rank_of(j, w->data / j->ep * j->ep, w->stage, w->tensor),
                                     stride, j->ep};
    default:
        return (struct fabric_group){TAG_DATA, rank_of(j, 0, w->stage, w->tensor), stride, j->dp};
    }
}

static size_t call(struct writer *w, enum tag tag, enum fabric_what what, double bytes)
{
    const struct fabric_group group = group_of(w, tag);
    enum fabric_lane lane = tag == TAG_DATA || tag == TAG_EXPERT ? LANE_DATA : LANE_GROUP;

    if (!w->messages || group.n < 2 || !(bytes > 0))
        return FABRIC_NONE;
    return fabric_call(w->plan, w->rank, lane, &group, what, bytes);
}

/* On the way of the passes: what comes next waits for it. */
static void call_between(struct writer *w, enum tag tag, enum fabric_what what, double bytes)
{
    const struct fabric_group group = group_of(w, tag);

    if (!w->messages || group.n < 2 || !(bytes > 0))
        return;
    fabric_wait(w->plan, w->rank, w->last);
    w->last = call(w, tag, what, bytes);
}

static void compute(struct writer *w, double us)
{
    fabric_wait(w->plan, w->rank, w->last);
    w->last = w->work = fabric_work(w->plan, w->rank, us);
}

/* ---- gradients ---- */

/* A bucket has layers first .. end - 1; those of experts are a vector of their own. */
static void call_bucket(struct writer *w, size_t first, size_t end, enum fabric_what what,
                        size_t after)
{
    double bytes[2] = {0, 0};

    for (size_t i = first; i < end; i++)
        bytes[w->job->layers[i].expert && w->job->ep > 1] += w->job->layers[i].gradients;
    for (size_t kind = 0; kind < 2; kind++) {
        enum tag tag = kind ? TAG_EXPERT : TAG_DATA;

        if (!w->messages || !(bytes[kind] > 0) || group_of(w, tag).n < 2)
            continue;
        fabric_wait(w->plan, w->rank, after);
        w->sum = call(w, tag, what, bytes[kind]);
    }
}

static enum fabric_what sum_of(const struct job *job)
{
    return job->zero ? FABRIC_SCATTER : FABRIC_SUM;
}

static size_t bucket_below(const struct writer *w, size_t end)
{
    return end - w->from > w->job->per_bucket ? end - w->job->per_bucket : w->from;
}

/* All of them, from the last. */
static void call_buckets(struct writer *w, enum fabric_what what)
{
    for (size_t end = w->to; end > w->from; end = bucket_below(w, end))
        call_bucket(w, bucket_below(w, end), end, what, w->work);
}

/* ---- ZeRO 3 ---- */

static bool is_sharded(const struct writer *w)
{
    return w->job->zero == 3 && w->messages && w->job->dp > 1;
}

static void gather(struct writer *w, size_t turn)
{
    size_t pass = turn / w->groups, at = turn % w->groups;
    size_t group = pass % 2 ? w->groups - 1 - at : at;
    size_t first = w->from + group * w->job->per_bucket, end = first + w->job->per_bucket;

    call_bucket(w, first, end < w->to ? end : w->to, FABRIC_GATHER,
                w->turn ? w->passes[w->turn - 1] : FABRIC_NONE);
    w->gathers[turn] = w->sum;
}

static void enter_turn(struct writer *w)
{
    size_t ahead = w->job->overlap ? w->job->prefetch : 0, all = 2 * w->job->micro * w->groups;

    for (; w->gathered < all && w->gathered <= w->turn + ahead; w->gathered++)
        gather(w, w->gathered);
    fabric_wait(w->plan, w->rank, w->gathers[w->turn]);
}

static void leave_turn(struct writer *w)
{
    w->passes[w->turn++] = w->work;
}

static bool enters(const struct writer *w, size_t layer, bool backward)
{
    size_t at = layer - w->from, n = w->job->per_bucket;

    return is_sharded(w) && (backward ? layer + 1 == w->to || (at + 1) % n == 0 : at % n == 0);
}

static bool leaves(const struct writer *w, size_t layer, bool backward)
{
    size_t at = layer - w->from, n = w->job->per_bucket;

    return is_sharded(w) && (backward ? at % n == 0 : layer + 1 == w->to || (at + 1) % n == 0);
}

/* ---- passes ---- */

static void pass_layer(struct writer *w, size_t i, bool backward)
{
    const struct job_layer *l = &w->job->layers[i];

    if (enters(w, i, backward))
        enter_turn(w);
    call_between(w, TAG_EXCHANGE, FABRIC_EXCHANGE, l->tokens);
    compute(w, backward ? l->backward_us : l->forward_us);
    call_between(w, TAG_EXCHANGE, FABRIC_EXCHANGE, l->tokens);
    call_between(w, TAG_TENSOR, FABRIC_SUM, backward ? l->sum_backward : l->sum_forward);
    if (leaves(w, i, backward))
        leave_turn(w);
}

static struct fabric_group pair(const struct writer *w, size_t stage, enum tag tag)
{
    return (struct fabric_group){tag + stage % 2, rank_of(w->job, w->data, stage, w->tensor),
                                 w->job->tp, 2};
}

/* The pair of this stage and the next is that of `stage`. */
static size_t pass_on(struct writer *w, size_t stage, enum tag tag, enum fabric_lane lane)
{
    const struct fabric_group two = pair(w, stage, tag);

    return fabric_call(w->plan, w->rank, lane, &two, tag == TAG_THERE ? FABRIC_THERE : FABRIC_BACK,
                       w->job->message);
}

static void get(struct writer *w, size_t stage, enum tag tag, enum fabric_lane lane)
{
    if (w->messages)
        fabric_wait(w->plan, w->rank, pass_on(w, stage, tag, lane));
}

static void put(struct writer *w, size_t stage, enum tag tag, enum fabric_lane lane)
{
    if (!w->messages)
        return;
    fabric_wait(w->plan, w->rank, w->last);
    size_t sent = pass_on(w, stage, tag, lane);
    if (w->job->blocks)
        w->last = sent;
}

static void go_forward(struct writer *w)
{
    if (w->stage)
        get(w, w->stage - 1, TAG_THERE, LANE_FROM_PREVIOUS);
    for (size_t i = w->from; i < w->to; i++)
        pass_layer(w, i, false);
    if (w->stage + 1 < w->job->pp)
        put(w, w->stage, TAG_THERE, LANE_TO_NEXT);
}

static void go_back(struct writer *w, bool last)
{
    bool sums = last || w->job->zero >= 2;
    size_t end = w->to;

    if (w->stage + 1 < w->job->pp)
        get(w, w->stage, TAG_BACK, LANE_FROM_NEXT);
    for (size_t i = w->to; i-- > w->from;) {
        pass_layer(w, i, true);
        if (!sums || !w->job->overlap || i != bucket_below(w, end))
            continue;
        call_bucket(w, i, end, sum_of(w->job), w->work);
        end = i;
    }
    if (w->stage)
        put(w, w->stage - 1, TAG_BACK, LANE_TO_PREVIOUS);
    if (!sums || w->job->overlap)
        return;
    call_buckets(w, sum_of(w->job));
    fabric_wait(w->plan, w->rank, w->sum);
    w->sum = FABRIC_NONE;
}

/* One forward, one backward, once as many micro-batches are on their way as stages follow. */
static void write_rank(struct writer *w)
{
    size_t micro = w->job->micro, ahead = w->job->pp - 1 - w->stage, back = 0;

    for (size_t i = 0; i < micro; i++) {
        go_forward(w);
        if (i < ahead)
            continue;
        go_back(w, ++back == micro);
    }
    while (back < micro)
        go_back(w, ++back == micro);
    if (w->job->zero == 1 || w->job->zero == 2)
        call_buckets(w, FABRIC_GATHER);
}

double job_step_us(const struct job *job, const struct fabric *f, struct rng *rng, double slower,
                   bool messages)
{
    size_t ranks = job->dp * job->tp * job->pp, each = job->n_layers / job->pp;
    struct fabric_plan *plan = fabric_plan_new(ranks, job->appetite);

    for (size_t i = 0; plan && i < ranks; i++) {
        struct writer w = {.job = job,
                           .plan = plan,
                           .messages = messages,
                           .rank = i,
                           .tensor = i % job->tp,
                           .stage = i / job->tp % job->pp,
                           .data = i / job->tp / job->pp,
                           .last = FABRIC_NONE,
                           .work = FABRIC_NONE,
                           .sum = FABRIC_NONE};

        w.from = w.stage * each;
        w.to = w.from + each;
        w.groups = (each + job->per_bucket - 1) / job->per_bucket;
        write_rank(&w);
    }
    double us = fabric_run_us(f, rng, plan, slower);
    fabric_plan_free(plan);
    return us;
}
