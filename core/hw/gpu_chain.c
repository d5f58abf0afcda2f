/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of loads: see gpu_chain.h. */
#include "core/hw/gpu_chain.h"

#include <errno.h>
#include <stdlib.h>

#include "core/rng.h"

#define WORDS (GPU_CHAIN_LINE / sizeof(uint64_t))

int gpu_chain_open(struct gpu_chain *c, struct gpu *gpu, const char *kernel, void *memory,
                   uint64_t lines, uint64_t seed)
{
    *c = (struct gpu_chain){.gpu = gpu, .memory = memory, .lines = lines};
    int err = rng_order(&c->order, lines, seed);

    if (!err)
        err = gpu_ops(gpu)->kernel(gpu, kernel, &c->kernel);
    return err ? err : gpu_ops(gpu)->alloc(gpu, GPU_DEVICE, sizeof(*c->end), (void **)&c->end);
}

void gpu_chain_close(struct gpu_chain *c)
{
    if (c->gpu)
        gpu_ops(c->gpu)->free(c->gpu, GPU_DEVICE, c->end);
    free(c->order);
    *c = (struct gpu_chain){0};
}

uint64_t gpu_chain_place(const struct gpu_chain *c, uint64_t loads)
{
    return (uintptr_t)(c->memory + c->order[loads % c->lines] * WORDS);
}

int gpu_chain_write(struct gpu_chain *c, struct gpu_stream *stream, uint64_t *staging,
                    uint64_t bytes, uint64_t seed)
{
    uint64_t most = staging ? bytes / GPU_CHAIN_LINE : c->lines, n;
    uint32_t *next = malloc(c->lines * sizeof(*next));
    int err = next ? 0 : -ENOMEM;

    for (uint64_t i = 0; !err && i < c->lines; i++)
        next[c->order[i]] = c->order[i + 1 == c->lines ? 0 : i + 1];
    for (uint64_t first = 0; !err && first < c->lines; first += n) {
        uint64_t *at = staging ? staging : c->memory;

        n = c->lines - first < most ? c->lines - first : most;
        for (uint64_t i = 0; i < n; i++, at += WORDS) {
            at[0] = (uintptr_t)(c->memory + next[first + i] * WORDS);
            for (uint64_t k = 1; k < WORDS; k++)
                at[k] = gpu_hash(seed, (first + i) * WORDS + k);
        }
        if (staging)
            err = gpu_ops(c->gpu)->copy(stream, c->memory + first * WORDS, staging,
                                        n * GPU_CHAIN_LINE);
        err = err ? err : gpu_ops(c->gpu)->stream_wait(stream);
    }
    free(next);
    return err;
}

static int queue_chase(void *arg, struct gpu_stream *stream, uint64_t i)
{
    const struct gpu_chain *c = arg;

    (void)i;
    return gpu_ops(c->gpu)->launch(stream, c->kernel, 1, 1, &c->args);
}

/* The next launch goes on where the last one got to. */
static void aim(struct gpu_chain *c, uint64_t loads)
{
    c->args = (struct gpu_chase_args){
        .start = c->memory + c->order[c->loads % c->lines] * WORDS, .hops = loads, .end = c->end};
    c->loads += loads;
}

int gpu_chain_queue(struct gpu_chain *c, struct gpu_stream *stream, uint64_t loads)
{
    aim(c, loads);
    return queue_chase(c, stream, 0);
}

int gpu_chain_run(struct gpu_chain *c, struct gpu_timer *timer, uint64_t loads, uint64_t *ns)
{
    aim(c, loads);
    return gpu_timer_run(timer, queue_chase, c, 1, 1, ns);
}

int gpu_chain_end(struct gpu_chain *c, struct gpu_stream *stream, uint64_t *end)
{
    int err = gpu_ops(c->gpu)->copy(stream, end, c->end, sizeof(*end));

    return err ? err : gpu_ops(c->gpu)->stream_wait(stream);
}
