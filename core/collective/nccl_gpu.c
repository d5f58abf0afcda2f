/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of a rank, its stream and buffers: see nccl_state.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/collective/nccl_state.h"

#define WORD_BYTES    256
#define ABORT_STEPS   100 /* of 10 ms */
#define ABORT_STEP_NS 10000000

/* A GPU that did not answer is asked nothing more in this process: each call would wait for it, too. */
static bool gpu_is_silent;

/* Ranks of the whole world on this one's node: NCCL asks for NCCL_HOSTID once in a process. */
static unsigned ranks_here(const struct collective *c)
{
    unsigned own = world_member(c->world, world_rank(c->world))->node, n = 0;

    for (unsigned i = 0; i < world_size(c->world); i++)
        n += world_member(c->world, i)->node == own;
    return n;
}

/* Before NCCL's first call. */
static void stand_apart(struct collective *c, unsigned gpus)
{
    struct nccl_state *s = c->state;
    char id[96];

    s->shared = ranks_here(c) > gpus;
    snprintf(id, sizeof(id), "%s-rank-%u", world_member(c->world, world_rank(c->world))->host,
             world_rank(c->world));
    if (s->shared)
        setenv("NCCL_HOSTID", id, 0);
}

static int take(struct collective *c, size_t bytes, void **at)
{
    struct nccl_state *s = c->state;
    const struct gpu_ops *ops = gpu_ops(s->gpu);
    size_t whole = (bytes + 3) / 4 * 4;
    int err = ops->alloc(s->gpu, GPU_DEVICE, whole, at);

    if (!err)
        err = ops->set(s->stream, *at, 0, whole);
    return err ? collective_fail(c, err, "nccl: %s", gpu_error(s->gpu)) : 0;
}

int nccl_gpu_buffers(struct collective *c)
{
    struct nccl_state *s = c->state;
    const struct collective_point *p = c->point;
    size_t size = collective_type_bytes(p->type);
    uint64_t input = collective_input_count(p->op, p->count, c->n) * size;
    uint64_t result = collective_result_count(p->op, p->count, c->n) * size;
    int err = take(c, WORD_BYTES, &s->word);

    if (!err)
        err = take(c, p->in_place ? p->count * size : result, &s->result);
    if (!err && !p->in_place)
        err = take(c, input, &s->input);
    if (p->in_place)
        s->input = s->result;
    return err ? err : nccl_await_stream(c, (double)(input + result));
}

int nccl_gpu_open(struct collective *c)
{
    struct nccl_state *s = c->state;
    char error[GPU_ERROR_BYTES] = "";
    unsigned local = world_member(c->world, world_rank(c->world))->local;

    if (gpu_is_silent)
        return collective_fail(c, -EIO,
                               "nccl: not tried: the GPU did not answer in a case before this one");
    s->gpus = gpus_open();
    if (!s->gpus)
        return collective_fail(c, -ENOMEM, "nccl: out of memory");
    unsigned count = gpus_count(s->gpus);
    int err = gpus_get(s->gpus, count ? local % count : 0, &s->gpu, error, sizeof(error));
    if (err)
        return collective_fail(c, err, "nccl: %s", error);
    stand_apart(c, count);
    err = gpu_ops(s->gpu)->stream_open(s->gpu, &s->stream);
    s->native = err ? NULL : gpu_ops(s->gpu)->stream_native(s->stream);
    return s->native ? 0 : collective_fail(c, err ? err : -EIO, "nccl: %s", gpu_error(s->gpu));
}

/* What was aborted comes to its end soon, unless the GPU hangs. */
static bool is_idle(const struct nccl_state *s)
{
    const struct timespec pause = {.tv_nsec = ABORT_STEP_NS};
    int err = -EAGAIN;

    for (unsigned i = 0; i < ABORT_STEPS && err == -EAGAIN; i++) {
        err = gpu_ops(s->gpu)->stream_query(s->stream);
        if (err == -EAGAIN)
            nanosleep(&pause, NULL);
    }
    return err != -EAGAIN;
}

static void give_back(struct nccl_state *s)
{
    const struct gpu_ops *ops = gpu_ops(s->gpu);

    if (s->input != s->result)
        ops->free(s->gpu, GPU_DEVICE, s->input);
    ops->free(s->gpu, GPU_DEVICE, s->result);
    ops->free(s->gpu, GPU_DEVICE, s->word);
    ops->stream_close(s->stream);
}

void nccl_gpu_close(struct collective *c)
{
    struct nccl_state *s = c->state;

    if (s->stream && s->broken && !is_idle(s))
        gpu_base(s->gpu)->silent = gpu_is_silent = true; /* all below would wait for it */
    if (s->gpu && !gpu_base(s->gpu)->silent)
        give_back(s);
    gpus_close(s->gpus);
}
