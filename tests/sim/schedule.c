/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When operations begin and end. What is known up to sim->now_ns is carried on from one moment at which
 * something happens to the next, until the time that is asked for.
 */
#include "tests/sim/sim.h"

#include <stdlib.h>

#define EPSILON_NS 1e-2

struct sim_stream *sim_stream_by_id(struct sim *sim, uint64_t id)
{
    struct sim_stream *stream = sim->streams;

    while (stream && stream->id != id)
        stream = stream->next;
    return stream;
}

void sim_event_drop(struct sim_event_object *event)
{
    if (!--event->refs)
        free(event);
}

void sim_op_free(struct sim_op *op)
{
    if (op->kind == SIM_OP_COPY)
        free(op->copy.staged);
    if (op->kind == SIM_OP_RECORD)
        sim_event_drop(op->record.event);
    free(op);
}

void sim_stream_free(struct sim *sim, struct sim_stream *stream)
{
    struct sim_stream **at = &sim->streams;

    while (*at && *at != stream)
        at = &(*at)->next;
    if (*at)
        *at = stream->next;
    while (stream->first) {
        struct sim_op *op = stream->first;

        stream->first = op->next;
        sim_op_free(op);
    }
    sim->rates_stale = true;
    free(stream);
}

void sim_streams_reap(struct sim *sim)
{
    struct sim_stream *stream = sim->streams, *next;

    for (; stream; stream = next) {
        next = stream->next;
        if (!stream->closed || stream->head)
            continue;
        sim_apply(sim, stream, stream->queued_seq);
        sim_stream_free(sim, stream);
    }
}

/* One that comes to the front of its stream, which was idle when it was queued, has to get to the
 * device first. */
static void submit(struct sim *sim, struct sim_op *op)
{
    bool work = op->kind != SIM_OP_RECORD && op->kind != SIM_OP_AFTER && op->kind != SIM_OP_FREE;

    if (work && op->ready_ns >= sim->now_ns)
        op->ready_ns += sim->machine.gpu[op->gpu].submit_us * 1e3;
}

void sim_queue(struct sim *sim, struct sim_stream *stream, struct sim_op *op)
{
    op->next = NULL;
    op->seq = ++stream->queued_seq;
    op->state = SIM_QUEUED;
    op->released_ns = -1;
    op->ready_ns = sim_clock(sim);
    if (stream->first)
        stream->last->next = op;
    else
        stream->first = op;
    stream->last = op;
    if (stream->head)
        return;
    stream->head = op;
    submit(sim, op);
}

static bool is_spin(const struct sim_op *op)
{
    return op->kind == SIM_OP_KERNEL && op->launch.kernel.family == SIM_SPIN;
}

static bool is_task_to_wait(const struct sim_op *op)
{
    return op->kind == SIM_OP_TASK && op->task.ready;
}

/* The first error of a device stays until it is reset. */
static void fail(struct sim_device *device, CUresult error)
{
    if (!device->error)
        device->error = error;
}

static bool task_ready(struct sim *sim, struct sim_op *op)
{
    void *at[SIM_RANGES] = {0};

    for (unsigned i = 0; i < op->task.ranges; i++)
        at[i] = sim_bytes(sim, op->task.range[i].at);
    return op->task.ready(op->task.args, at);
}

/* A word counts as released from the moment that it was first seen so. */
void sim_poll(struct sim *sim)
{
    double now_ns = -1;

    for (struct sim_stream *stream = sim->streams; stream; stream = stream->next) {
        struct sim_op *op = stream->head;
        const struct gpu_spin_args *args;

        if (op && is_task_to_wait(op) && op->state == SIM_HELD && op->released_ns < 0 &&
            task_ready(sim, op))
            op->released_ns = now_ns = now_ns < 0 ? sim_clock(sim) : now_ns;
        if (!op || !is_spin(op) || op->state != SIM_HELD || op->released_ns >= 0)
            continue;
        args = &op->launch.args.spin;
        if (!sim_space_find(sim, (uintptr_t)args->go)) { /* freed while it is waited for */
            fail(&sim->device[op->gpu], CUDA_ERROR_ILLEGAL_ADDRESS);
            continue;
        }
        if ((int32_t)(__atomic_load_n(args->go, __ATOMIC_ACQUIRE) - args->turn) < 0)
            continue;
        now_ns = now_ns < 0 ? sim_clock(sim) : now_ns;
        op->released_ns = now_ns;
    }
}

static void finish(struct sim *sim, struct sim_stream *stream)
{
    struct sim_op *op = stream->head;

    sim->rates_stale = sim->rates_stale || op->state == SIM_FLOW;
    op->state = SIM_DONE;
    stream->head = op->next;
    stream->done_seq = op->seq;
    if (stream->head)
        submit(sim, stream->head);
    if (op->kind == SIM_OP_RECORD && op->record.event->generation == op->record.generation) {
        op->record.event->done = true;
        op->record.event->at_ns = sim->now_ns;
    }
}

static bool may_begin(struct sim *sim, const struct sim_op *op)
{
    struct sim_stream *other;

    if (op->ready_ns > sim->now_ns)
        return false;
    if (op->kind != SIM_OP_AFTER || sim->device[op->gpu].error)
        return true;
    other = sim_stream_by_id(sim, op->after.stream);
    return !other || other->done_seq >= op->after.seq;
}

/* An operation whose time or error hangs on the data sees what was done before it. */
static bool looks_at_data(const struct sim_op *op)
{
    return op->kind == SIM_OP_TASK ||
           (op->kind == SIM_OP_KERNEL && op->launch.kernel.family == SIM_CHASE);
}

static void begin(struct sim *sim, struct sim_stream *stream)
{
    struct sim_op *op = stream->head;
    struct sim_device *device = &sim->device[op->gpu];
    CUresult rc = device->error;
    double delay_ns = 0;

    if (!rc && looks_at_data(op))
        sim_apply(sim, stream, op->seq - 1);
    rc = rc ? rc : sim_cost(sim, op, &delay_ns);
    if (rc) {
        fail(device, rc);
        op->applied = true;
        finish(sim, stream);
        return;
    }
    op->state = SIM_DELAY;
    op->until_ns = sim->now_ns + delay_ns;
    if (is_task_to_wait(op)) {
        op->state = SIM_HELD;
        op->delay_ns = delay_ns;
        op->until_ns = SIM_NEVER;
        sim_poll(sim);
    }
    if (is_spin(op)) {
        op->state = SIM_HELD;
        op->until_ns = sim->now_ns + (double)op->launch.args.spin.limit_ns;
        sim_poll(sim);
    }
}

static bool held_ended(const struct sim *sim, struct sim_op *op)
{
    if (op->released_ns >= 0 && op->released_ns <= sim->now_ns)
        return true;
    op->gave_up = op->until_ns <= sim->now_ns + EPSILON_NS;
    return op->gave_up;
}

/* What happens to the head of a stream at sim->now_ns; false: nothing. */
static bool turn(struct sim *sim, struct sim_stream *stream)
{
    struct sim_op *op = stream->head;

    if (!op)
        return false;
    if (op->state == SIM_QUEUED) {
        if (!may_begin(sim, op))
            return false;
        begin(sim, stream);
        return true;
    }
    if (sim->device[op->gpu].error) {
        op->applied = true;
        finish(sim, stream);
        return true;
    }
    if (op->state == SIM_DELAY && op->until_ns <= sim->now_ns + EPSILON_NS && op->flow.amount > 0) {
        op->state = SIM_FLOW;
        op->left = op->flow.amount;
        sim->rates_stale = true;
        return true;
    }
    if (op->state == SIM_HELD && is_task_to_wait(op) && op->released_ns >= 0 &&
        op->released_ns <= sim->now_ns) {
        op->state = SIM_DELAY;
        op->until_ns = sim->now_ns + op->delay_ns;
        return true;
    }
    if ((op->state == SIM_DELAY && op->until_ns <= sim->now_ns + EPSILON_NS) ||
        (op->state == SIM_HELD && !is_task_to_wait(op) && held_ended(sim, op)) ||
        (op->state == SIM_FLOW && !sim->rates_stale && op->left <= op->rate * EPSILON_NS)) {
        finish(sim, stream);
        return true;
    }
    return false;
}

static void settle(struct sim *sim)
{
    bool moved;

    do {
        moved = false;
        for (struct sim_stream *stream = sim->streams; stream; stream = stream->next)
            while (turn(sim, stream))
                moved = true;
        if (sim->rates_stale) {
            sim_share(sim);
            sim->rates_stale = false;
            moved = true;
        }
    } while (moved);
}

static double next_of(const struct sim *sim, const struct sim_op *op)
{
    switch (op->state) {
    case SIM_QUEUED: /* what waits for another stream goes on when that does */
        return op->ready_ns > sim->now_ns ? op->ready_ns : SIM_NEVER;
    case SIM_DELAY:
        return op->until_ns;
    case SIM_HELD:
        return op->released_ns >= 0 ? op->released_ns : op->until_ns;
    case SIM_FLOW:
        return op->rate > 0 ? sim->now_ns + op->left / op->rate : SIM_NEVER;
    default:
        return SIM_NEVER;
    }
}

double sim_next(struct sim *sim)
{
    double next = SIM_NEVER, at;

    for (struct sim_stream *stream = sim->streams; stream; stream = stream->next) {
        at = stream->head ? next_of(sim, stream->head) : SIM_NEVER;
        next = at < next ? at : next;
    }
    return next;
}

static void flow_on(struct sim *sim, double until_ns)
{
    for (struct sim_stream *stream = sim->streams; stream; stream = stream->next)
        if (stream->head && stream->head->state == SIM_FLOW)
            stream->head->left -= stream->head->rate * (until_ns - sim->now_ns);
    sim->now_ns = until_ns;
}

void sim_advance(struct sim *sim, double now_ns)
{
    double next;

    settle(sim);
    while (sim->now_ns < now_ns) {
        next = sim_next(sim);
        flow_on(sim, next < now_ns ? (next > sim->now_ns ? next : sim->now_ns) : now_ns);
        settle(sim);
    }
}
