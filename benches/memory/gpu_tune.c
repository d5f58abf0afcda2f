/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the best launch shape: see gpu_tune.h. */
#include "benches/memory/gpu_tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/search.h"

#define GPU_ACCESS_BYTES 16u
#define GPU_PLAIN_BLOCK  256u

#define CANDIDATES_MAX 512
#define GRID_MAX       INT32_MAX /* blocks in x, of every GPU since 2012 */

static const unsigned unrolls[] = {1, 2, 4, 8};
static const unsigned blocks[] = {128, 256, 512, 1024};

struct shapes {
    const struct gpu_tune_space *space;
    struct gpu_shape *all;
    unsigned n;
};

/* Blocks until each access of the array has a thread. */
static unsigned cover(const struct gpu_tune_space *space, const struct gpu_shape *shape)
{
    uint64_t each = (uint64_t)shape->block * shape->unroll * GPU_ACCESS_BYTES;
    uint64_t grid = (space->bytes + each - 1) / each;

    return grid > GRID_MAX ? GRID_MAX : grid ? (unsigned)grid : 1;
}

int gpu_shape_plain(const struct gpu_tune_space *space, struct gpu_shape *shape)
{
    *shape = (struct gpu_shape){.unroll = 1, .block = GPU_PLAIN_BLOCK};
    unsigned each = space->blocks_per_sm(space->arg, shape);
    uint64_t resident = (uint64_t)each * space->sms;

    shape->grid = cover(space, shape);
    if (space->resident && shape->grid > resident)
        shape->grid = (unsigned)resident;
    return each ? 0 : -EOPNOTSUPP;
}

const char *gpu_shape_text(const struct gpu_shape *shape, char *text, size_t len)
{
    snprintf(text, len, "u%u%s %u threads x %u blocks", shape->unroll,
             shape->streaming ? " cs" : "", shape->block, shape->grid);
    return text;
}

static void add(struct shapes *s, struct gpu_shape shape, uint64_t grid)
{
    const struct gpu_shape *last = s->n ? &s->all[s->n - 1] : NULL;
    unsigned most = cover(s->space, &shape);

    shape.grid = grid < most ? (unsigned)grid : most;
    bool again = last && last->unroll == shape.unroll && last->streaming == shape.streaming &&
                 last->block == shape.block && last->grid == shape.grid;
    if (!again && s->n < CANDIDATES_MAX)
        s->all[s->n++] = shape;
}

/* 1, 2, 4, ... blocks on each SM, as many as fit, and as many as cover the array. */
static void add_grids(struct shapes *s, struct gpu_shape shape)
{
    unsigned each = s->space->blocks_per_sm(s->space->arg, &shape);

    for (unsigned k = 1; k < each; k *= 2)
        add(s, shape, (uint64_t)k * s->space->sms);
    if (each)
        add(s, shape, (uint64_t)each * s->space->sms);
    if (each && !s->space->resident)
        add(s, shape, GRID_MAX);
}

static void list_candidates(struct shapes *s)
{
    for (size_t u = 0; u < sizeof(unrolls) / sizeof(unrolls[0]); u++)
        for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++)
            for (int streaming = 0; streaming < 2; streaming++)
                add_grids(s, (struct gpu_shape){unrolls[u], streaming, blocks[b], 0});
}

/* A run of a search. */
static int time_shape(void *arg, unsigned i, uint64_t passes, struct search_run *run)
{
    struct shapes *s = arg;
    int err = s->space->time(s->space->arg, &s->all[i], &run->ns);

    (void)passes;
    run->cost = (double)run->ns;
    return err;
}

int gpu_tune(const struct gpu_tune_space *space, uint64_t budget_ns, struct gpu_tuned *best)
{
    struct shapes s = {.space = space, .all = calloc(CANDIDATES_MAX, sizeof(*s.all))};
    struct search search = {
        .policy = &search_halving, .run = time_shape, .arg = &s, .budget_ns = budget_ns};
    struct search_result found;

    *best = (struct gpu_tuned){0};
    if (!s.all)
        return -ENOMEM;
    list_candidates(&s);
    search.n = s.n;
    int err = search_run(&search, &found);
    *best = (struct gpu_tuned){.shape = s.all[found.best], .tried = found.tried, .of = s.n};
    free(s.all);
    return err;
}

const struct gpu_tuned *gpu_tunings_find(const struct gpu_tunings *t, const char *key)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->all[i].key, key))
            return &t->all[i].tuned;
    return NULL;
}

int gpu_tunings_add(struct gpu_tunings *t, const char *key, const struct gpu_tuned *tuned)
{
    struct gpu_tuning *grown = realloc(t->all, (t->n + 1) * sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    t->all = grown;
    grown[t->n] = (struct gpu_tuning){.tuned = *tuned};
    snprintf(grown[t->n++].key, sizeof(grown[0].key), "%s", key);
    return 0;
}

void gpu_tunings_release(struct gpu_tunings *t)
{
    free(t->all);
    *t = (struct gpu_tunings){0};
}
