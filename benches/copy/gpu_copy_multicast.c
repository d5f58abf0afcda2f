/* SPDX-License-Identifier: Apache-2.0 */
/* Copies by a kernel of one GPU to an address that stands for memory of all GPUs: see gpu_copy.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "benches/copy/gpu_copy.h"
#include "core/alloc.h"

#define STEP 16u

static int add(struct point *pt, struct gpu_copy_spread *s, unsigned index)
{
    if (s->n == GPU_COPY_LANES_MAX)
        return point_reason(pt, -EOPNOTSUPP, "over %u GPUs at once", s->n);
    int err = gpu_copy_open_gpu(pt, index, &s->gpus[s->n]);
    s->n += !err;
    return err;
}

/* All bytes leave the source once, by its NVLinks where it has no other links to the others. */
static int find_end(struct gpu_copy *c)
{
    const struct gpu_copy_spread *s = c->spread;
    unsigned native = 0;
    int err = 0;

    for (unsigned i = 1; !err && i < s->n; i++) {
        struct gpu_link link = {0};
        err = gpu_ops(c->gpu[0])->link(gpu_base(c->gpu[0])->index, gpu_base(s->gpus[i])->index,
                                       &link);
        native += link.atomics;
    }
    if (!err && native + 1 == s->n)
        c->end_address = gpu_base(c->gpu[0])->facts.address;
    return err;
}

int gpu_copy_spread_open(struct point *pt, struct gpu_copy *c)
{
    unsigned n = gpus_count(point_gpus(pt)), source = gpu_base(c->gpu[0])->index;

    c->spread = xcalloc(1, sizeof(*c->spread));
    int err = add(pt, c->spread, source);
    for (unsigned i = 0; !err && i < n; i++)
        if (i != source)
            err = add(pt, c->spread, i);
    return err ? err : find_end(c);
}

int gpu_copy_spread_refuse(struct point *pt, struct gpu_copy *c)
{
    const struct gpu_copy_spread *s = c->spread;

    if (c->params->size % STEP)
        return point_reason(pt, -EOPNOTSUPP,
                            "stores to a multicast address are of %u bytes each: take a --size "
                            "that is a multiple of that",
                            STEP);
    for (unsigned i = 0; i < s->n; i++)
        if (!gpu_base(s->gpus[i])->facts.multicast)
            return point_reason(pt, -EOPNOTSUPP,
                                "the driver has no multicast for %s:%u: it takes a GPU of compute "
                                "capability 9.0 or newer and NVLink over switches",
                                gpu_ops(s->gpus[i])->name, gpu_base(s->gpus[i])->index);
    return 0;
}

int gpu_copy_spread_alloc(struct point *pt, struct gpu_copy *c, struct gpu_copy_lane *l)
{
    struct gpu_copy_spread *s = c->spread;
    void *at[GPU_COPY_LANES_MAX];
    char error[GPU_ERROR_BYTES + 64];
    int err =
        gpu_ops(l->gpu)->multicast_open(s->gpus, s->n, l->src.rounded, &s->all, at, &s->group);

    if (err)
        return gpu_copy_failed(pt, c, err);
    for (unsigned i = 0; !err && i < s->n; i++) {
        struct copy_memory_config config = {
            .gpu = s->gpus[i], .bytes = l->bytes, .lent = at[i], .beside = s->n};
        err = gpu_copy_memory_alloc(&s->memory[i], point_topo(pt), &config, error, sizeof(error));
    }
    l->spread = s;
    return err ? point_reason(pt, err, "%s", error) : 0;
}

void gpu_copy_spread_close(struct gpu_copy *c)
{
    struct gpu_copy_spread *s = c->spread;

    if (!s)
        return;
    for (unsigned i = 0; i < s->n; i++)
        gpu_copy_memory_free(&s->memory[i]);
    if (s->group)
        gpu_ops(c->gpu[0])->multicast_close(s->group);
    free(s);
}

int gpu_copy_spread_poison(struct gpu_copy_spread *s)
{
    int err = 0;

    for (unsigned i = 0; !err && i < s->n; i++)
        err = gpu_copy_memory_poison(&s->memory[i]);
    return err;
}

int gpu_copy_spread_check(struct gpu_copy_spread *s, uint64_t seed, size_t *wrong_at)
{
    int err = 0;

    *wrong_at = COPY_MEMORY_RIGHT;
    for (unsigned i = 0; !err && i < s->n && *wrong_at == COPY_MEMORY_RIGHT; i++) {
        s->wrong = i;
        err = gpu_copy_memory_check(&s->memory[i], seed, false, wrong_at);
    }
    return err;
}
