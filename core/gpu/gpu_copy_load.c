/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of loads by a GPU from memory at the other end: see gpu_copy.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/gpu/gpu_copy.h"
#include "core/gpu/gpu_kernels.h"
#include "core/rng.h"

#define LINE       128u /* bytes that a GPU fetches together */
#define LINE_WORDS (LINE / sizeof(uint64_t))

/* Visits the first word of every line once, in random order, and closes. Each of these words holds the
 * address of the next, which is the same for the GPU that follows it as for who wrote it. */
struct gpu_copy_chain {
    struct gpu_copy_lane *lane; /* whose source holds the chain, and whose timer is used */
    struct gpu_kernel *kernel;
    void *end;       /* device memory: where the chain has got to */
    uint32_t *order; /* the lines, as they are visited */
    uint64_t lines, at;
    struct gpu_chase_args args; /* of the next launch */
};

static int make_order(struct gpu_copy_chain *chain, uint64_t seed)
{
    struct rng rng;

    chain->order = malloc(chain->lines * sizeof(*chain->order));
    if (!chain->order)
        return -ENOMEM;
    for (uint64_t i = 0; i < chain->lines; i++)
        chain->order[i] = (uint32_t)i;
    rng_seed(&rng, seed);
    rng_shuffle_u32(&rng, chain->order, chain->lines);
    return 0;
}

/* The words of the memory itself up to the one that is `step` steps along the chain. */
static uint64_t word_of(const struct gpu_copy_chain *chain, uint64_t step)
{
    return (uint64_t)chain->order[step % chain->lines] * LINE_WORDS;
}

static const uint64_t *place_of(const struct gpu_copy_chain *chain, uint64_t step)
{
    return (const uint64_t *)chain->lane->src.at + word_of(chain, step);
}

/* By way of the host's own memory, wherever the chain is to lie. */
static int write_chain(struct gpu_copy_chain *chain)
{
    struct gpu_copy_memory *m = &chain->lane->src;
    const struct gpu_ops *ops = gpu_ops(m->config.gpu);
    uint64_t *next = calloc(chain->lines, LINE);
    int err = next ? 0 : -ENOMEM;

    for (uint64_t i = 0; !err && i < chain->lines; i++)
        next[word_of(chain, i)] = (uintptr_t)place_of(chain, i + 1);
    if (!err && m->config.on_host)
        memcpy(m->at, next, chain->lines * LINE);
    else if (!err)
        err = ops->copy(m->stream, m->at, next, chain->lines * LINE);
    if (!err)
        err = ops->stream_wait(m->stream);
    free(next);
    return err;
}

static int queue_chase(void *arg, struct gpu_stream *stream, uint64_t i)
{
    const struct gpu_copy_chain *chain = arg;

    (void)i;
    return gpu_ops(chain->lane->gpu)->launch(stream, chain->kernel, 1, 1, &chain->args);
}

/* The next launch goes on where the last one got to. */
static void aim(struct gpu_copy_chain *chain, uint64_t hops)
{
    chain->args = (struct gpu_chase_args){
        .start = place_of(chain, chain->at), .hops = hops, .end = chain->end};
}

/* One load that is not held: what the driver loads late is loaded then. */
static int warm_chain(struct gpu_copy_chain *chain)
{
    struct gpu_stream *stream = chain->lane->timer.stream;

    aim(chain, 1);
    int err = queue_chase(chain, stream, 0);
    chain->at = 1;
    return err ? err : gpu_ops(chain->lane->gpu)->stream_wait(stream);
}

/* `inner` loads by one thread: the launch is in the time, once. */
int gpu_copy_run_chain(struct gpu_copy *c, uint64_t inner, uint64_t *ns)
{
    struct gpu_copy_chain *chain = c->chain;

    aim(chain, inner);
    int err = gpu_timer_run(&chain->lane->timer, queue_chase, chain, 1, 1, ns);
    if (!err)
        gpu_copy_level_add(&c->time_ns, (double)*ns / (double)inner);
    chain->at = (chain->at + inner) % chain->lines;
    return err;
}

int gpu_copy_chain_open(struct point *pt, struct gpu_copy *c)
{
    struct gpu_copy_chain *chain = calloc(1, sizeof(*chain));
    struct gpu_copy_lane *lane = &c->lanes[0];
    const struct gpu_ops *ops = gpu_ops(lane->gpu);

    c->chain = chain;
    if (!chain)
        return -ENOMEM;
    *chain = (struct gpu_copy_chain){.lane = lane, .lines = c->params->size / LINE};
    if (chain->lines < 2 || chain->lines > UINT32_MAX)
        return point_reason(pt, -EOPNOTSUPP, "a chain of loads takes from %u bytes to %u GiB",
                            2 * LINE, LINE << 2);
    int err = make_order(chain, pt->common->seed);
    if (err)
        return err;
    if ((err = ops->kernel(lane->gpu, "chase_cg", &chain->kernel)) ||
        (err = ops->alloc(lane->gpu, GPU_DEVICE, LINE, &chain->end)) ||
        (err = write_chain(chain)) || (err = warm_chain(chain)))
        return gpu_copy_failed(pt, c, err);
    return 0;
}

void gpu_copy_chain_close(struct gpu_copy *c)
{
    if (!c->chain)
        return;
    if (c->chain->lane)
        gpu_ops(c->chain->lane->gpu)->free(c->chain->lane->gpu, GPU_DEVICE, c->chain->end);
    free(c->chain->order);
    free(c->chain);
    c->chain = NULL;
}

int gpu_copy_chain_check(struct point *pt, struct gpu_copy *c)
{
    struct gpu_copy_chain *chain = c->chain;
    const struct gpu_ops *ops = gpu_ops(chain->lane->gpu);
    struct gpu_stream *stream = chain->lane->timer.stream;
    uint64_t end = UINT64_MAX, right = (uintptr_t)place_of(chain, chain->at);
    int err = ops->copy(stream, &end, chain->end, sizeof(end));

    if (!err)
        err = ops->stream_wait(stream);
    if (err)
        return gpu_copy_failed(pt, c, err);
    if (c->params->inject == COPY_CORRUPT)
        end++;
    if (end != right)
        return point_reason(pt, -EBADMSG,
                            "the chain of loads went astray: it ended at %#llx, not %#llx",
                            (unsigned long long)end, (unsigned long long)right);
    return 0;
}
