/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operations do to the data. One that was done before on the same bytes is not done again: a
 * benchmark repeats the same copy thousands of times. Memory that the host can write is the same only
 * until the host may have acted (sim->host_epoch).
 */
#include "tests/sim/sim.h"

#include <string.h>

void sim_host_acted(struct sim *sim)
{
    sim->host_epoch++;
}

unsigned sim_op_ranges(const struct sim_op *op, struct sim_range range[SIM_RANGES])
{
    switch (op->kind) {
    case SIM_OP_COPY:
        range[0] = (struct sim_range){op->copy.dst, op->copy.bytes, true};
        range[1] = (struct sim_range){op->copy.src, op->copy.bytes, false};
        return 2;
    case SIM_OP_SET:
        range[0] = (struct sim_range){op->set.at, op->set.bytes, true};
        return 1;
    case SIM_OP_KERNEL:
        return sim_kernel_ranges(&op->launch.kernel, &op->launch.args, range);
    case SIM_OP_TASK:
        memcpy(range, op->task.range, op->task.ranges * sizeof(*range));
        return op->task.ranges;
    default:
        return 0;
    }
}

static bool meet(const struct sim_range *a, uintptr_t at, uint64_t bytes)
{
    return a->at < at + bytes && at < a->at + a->bytes;
}

void sim_forget(struct sim *sim, uintptr_t at, uint64_t bytes)
{
    for (unsigned i = 0; i < SIM_MEMOS; i++)
        for (unsigned r = 0; sim->memo[i].valid && r < sim->memo[i].ranges; r++)
            if (sim->memo[i].elsewhere || meet(&sim->memo[i].range[r], at, bytes))
                sim->memo[i].valid = false;
}

static void forget_writes(struct sim *sim, const struct sim_range *range, unsigned ranges)
{
    for (unsigned i = 0; i < ranges; i++)
        if (range[i].write)
            sim_forget(sim, range[i].at, range[i].bytes);
}

static bool is_read(const struct sim_op *op)
{
    return op->kind == SIM_OP_KERNEL && op->launch.kernel.family == SIM_PASS &&
           op->launch.kernel.pass == SIM_READ;
}

/* Whether doing it twice leaves the same as doing it once. */
static bool repeatable(const struct sim_op *op, const struct sim_range *range, unsigned ranges)
{
    if (!ranges || (op->kind == SIM_OP_COPY && op->copy.staged))
        return false;
    if (op->kind == SIM_OP_TASK && op->task.ready)
        return false;
    if (op->kind == SIM_OP_KERNEL && op->launch.kernel.family == SIM_CHASE)
        return false;
    for (unsigned i = 0; i < ranges; i++)
        for (unsigned j = 0; j < ranges; j++)
            if (i != j && range[i].write && meet(&range[i], range[j].at, range[j].bytes))
                return false;
    return true;
}

static void kernel_key(const struct sim_op *op, struct sim_memo *memo)
{
    struct {
        unsigned family, pass, element_bytes, unused;
        union sim_args args;
    } key;

    memset(&key, 0, sizeof(key));
    key.family = op->launch.kernel.family;
    key.pass = op->launch.kernel.pass;
    key.element_bytes = op->launch.kernel.element_bytes;
    memcpy(&key.args, &op->launch.args, op->launch.kernel.args_bytes);
    if (op->launch.kernel.family == SIM_PASS) { /* what the result does not hang on */
        key.args.pass.passes = key.args.pass.passes ? 1 : 0;
        key.args.pass.sum = NULL;
    }
    memcpy(memo->key, &key, sizeof(key));
    memo->key_bytes = sizeof(key);
}

static void make_key(const struct sim_op *op, struct sim_memo *memo)
{
    memo->kind = op->kind;
    if (op->kind == SIM_OP_KERNEL) {
        kernel_key(op, memo);
    } else if (op->kind == SIM_OP_TASK) {
        memcpy(memo->key, op->task.args, sizeof(op->task.args));
        memo->key_bytes = sizeof(op->task.args);
    } else if (op->kind == SIM_OP_SET) {
        memcpy(memo->key, &op->set.word, sizeof(op->set.word));
        memo->key_bytes = sizeof(op->set.word);
    } /* of a copy, the ranges say all */
}

static struct sim_memo memo_of(struct sim *sim, const struct sim_op *op,
                               const struct sim_range *range, unsigned ranges)
{
    unsigned first = is_read(op); /* the sum is added to each time */
    struct sim_memo memo = {.valid = true,
                            .epoch = sim->host_epoch,
                            .elsewhere = op->kind == SIM_OP_KERNEL &&
                                         op->launch.kernel.family == SIM_MULTICAST};

    make_key(op, &memo);
    memo.ranges = ranges - first;
    memcpy(memo.range, range + first, memo.ranges * sizeof(*range));
    for (unsigned i = 0; i < memo.ranges; i++) {
        struct sim_where where = sim_where(sim, range[first + i].at, 0, 0);

        memo.on_host =
            memo.on_host || where.place != SIM_DEVICE || (where.block && where.block->shared);
    }
    return memo;
}

static bool same_ranges(const struct sim_memo *a, const struct sim_memo *b)
{
    for (unsigned i = 0; i < a->ranges; i++)
        if (a->range[i].at != b->range[i].at || a->range[i].bytes != b->range[i].bytes)
            return false;
    return a->ranges == b->ranges;
}

static struct sim_memo *find(struct sim *sim, const struct sim_memo *memo)
{
    for (unsigned i = 0; i < SIM_MEMOS; i++) {
        struct sim_memo *m = &sim->memo[i];

        if (m->valid && (!m->on_host || m->epoch == sim->host_epoch) && m->kind == memo->kind &&
            same_ranges(m, memo) && m->key_bytes == memo->key_bytes &&
            !memcmp(m->key, memo->key, m->key_bytes))
            return m;
    }
    return NULL;
}

static void run_copy(struct sim *sim, const struct sim_op *op)
{
    const void *from =
        op->copy.staged ? op->copy.staged : (unsigned char *)sim_bytes(sim, op->copy.src);

    memmove(sim_bytes(sim, op->copy.dst), from, op->copy.bytes);
    if (!op->copy.staged && sim_export_stale(sim, op->copy.src))
        *(unsigned char *)sim_bytes(sim, op->copy.dst) ^= 0xff;
}

static void run_set(struct sim *sim, const struct sim_op *op)
{
    uint32_t *at = sim_bytes(sim, op->set.at);

    for (uint64_t i = 0; i < op->set.bytes / 4; i++)
        at[i] = op->set.word;
}

static void run(struct sim *sim, struct sim_op *op)
{
    struct sim_block *block;
    void *at[SIM_RANGES] = {0};

    switch (op->kind) {
    case SIM_OP_COPY:
        run_copy(sim, op);
        break;
    case SIM_OP_SET:
        run_set(sim, op);
        break;
    case SIM_OP_KERNEL:
        sim_kernel_run(sim, op);
        break;
    case SIM_OP_TASK:
        for (unsigned i = 0; i < op->task.ranges; i++)
            at[i] = sim_bytes(sim, op->task.range[i].at);
        op->task.run(op->task.args, at);
        break;
    case SIM_OP_FREE:
        block = sim_space_find(sim, op->free_at);
        if (block)
            sim_space_give_back(sim, block);
        break;
    default:
        break;
    }
}

/* One byte wrong, the top one of a word; of a product, one in each 8 bytes. Added to, so that twice does
 * not make it right again. */
static void corrupt(struct sim *sim, const struct sim_op *op, const struct sim_range *range)
{
    unsigned char *bytes = sim_bytes(sim, range->at);
    uint64_t at = range->bytes / 2 / 8 * 8 + 7;

    if (op->kind == SIM_OP_TASK)
        for (uint64_t i = 7; i < range->bytes; i += 8)
            bytes[i] += 0x35;
    else
        bytes[at < range->bytes ? at : range->bytes - 1] += 0x35;
}

static void apply(struct sim *sim, struct sim_op *op)
{
    struct sim_range range[SIM_RANGES];
    unsigned ranges = sim_op_ranges(op, range);
    bool memorable = repeatable(op, range, ranges) && !op->corrupt;
    struct sim_memo memo, *known = NULL;

    if (memorable) {
        memo = memo_of(sim, op, range, ranges);
        known = find(sim, &memo);
    }
    if (known && is_read(op))
        *(uint64_t *)sim_bytes(sim, range[0].at) += known->value * op->launch.args.pass.passes;
    if (!known)
        run(sim, op);
    if (op->corrupt)
        for (unsigned i = 0; i < ranges; i++)
            if (range[i].write && range[i].bytes) {
                corrupt(sim, op, &range[i]);
                break;
            }
    if (known && !is_read(op))
        return;
    forget_writes(sim, range, ranges);
    if (known || !memorable)
        return;
    memo.value = op->value;
    sim->memo[sim->memo_next++ % SIM_MEMOS] = memo;
}

static void reap(struct sim_stream *stream)
{
    while (stream->first && stream->first->state == SIM_DONE && stream->first->applied) {
        struct sim_op *op = stream->first;

        stream->first = op->next;
        sim_op_free(op);
    }
}

static struct sim_op *first_to_apply(struct sim_stream *stream)
{
    struct sim_op *op;

    reap(stream);
    op = stream->first;
    while (op && op->applied)
        op = op->next;
    return op;
}

void sim_apply(struct sim *sim, struct sim_stream *stream, uint64_t seq)
{
    struct sim_op *op;

    while ((op = first_to_apply(stream)) && op->seq <= seq && op->state != SIM_QUEUED &&
           op->state != SIM_HELD) {
        op->applied = true;
        if (op->kind == SIM_OP_AFTER) {
            struct sim_stream *other = sim_stream_by_id(sim, op->after.stream);

            if (other)
                sim_apply(sim, other, op->after.seq);
        } else {
            apply(sim, op);
        }
    }
    reap(stream);
}
