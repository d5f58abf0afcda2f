/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the best launch shape: see gpu_tune.h. */
#include "benches/memory/gpu_tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

#define CANDIDATES_MAX 512
#define GRID_MAX       INT32_MAX /* blocks in x, of every GPU since 2012 */
#define KEEP_SHARE     4         /* a quarter goes on to the next round ... */
#define RUNS_GROWTH    3         /* ... and is timed three times as often */
#define FINALISTS      4
#define STRIDE         7919 /* a prime: shapes are tried all over the space from the start */

static const unsigned unrolls[] = {1, 2, 4, 8};
static const unsigned blocks[] = {128, 256, 512, 1024};

struct candidate {
    struct gpu_shape shape;
    uint64_t ns; /* the least of its runs; UINT64_MAX: none yet */
};

struct search {
    const struct gpu_tune_space *space;
    struct candidate *all;
    size_t n;
    uint64_t end_ns;
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

static void add(struct search *s, struct gpu_shape shape, uint64_t grid)
{
    const struct gpu_shape *last = s->n ? &s->all[s->n - 1].shape : NULL;
    unsigned most = cover(s->space, &shape);

    shape.grid = grid < most ? (unsigned)grid : most;
    bool again = last && last->unroll == shape.unroll && last->streaming == shape.streaming &&
                 last->block == shape.block && last->grid == shape.grid;
    if (!again && s->n < CANDIDATES_MAX)
        s->all[s->n++] = (struct candidate){shape, UINT64_MAX};
}

/* 1, 2, 4, ... blocks on each SM, as many as fit, and as many as cover the array. */
static void add_grids(struct search *s, struct gpu_shape shape)
{
    unsigned each = s->space->blocks_per_sm(s->space->arg, &shape);

    for (unsigned k = 1; k < each; k *= 2)
        add(s, shape, (uint64_t)k * s->space->sms);
    if (each)
        add(s, shape, (uint64_t)each * s->space->sms);
    if (each && !s->space->resident)
        add(s, shape, GRID_MAX);
}

static void list_candidates(struct search *s)
{
    for (size_t u = 0; u < sizeof(unrolls) / sizeof(unrolls[0]); u++)
        for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++)
            for (int streaming = 0; streaming < 2; streaming++)
                add_grids(s, (struct gpu_shape){unrolls[u], streaming, blocks[b], 0});
}

static int compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static int time_one(struct search *s, struct candidate *c)
{
    uint64_t ns;
    int err = s->space->time(s->space->arg, &c->shape, &ns);

    if (!err && ns < c->ns) /* what disturbs can only lengthen */
        c->ns = ns;
    return err;
}

/* Times the first n candidates once, in an order that is spread over them; stops when the time is
 * over. 0, 1 when it was, or -errno. */
static int time_all(struct search *s, size_t n)
{
    for (size_t i = 0, at = 0; i < n; i++, at = (at + STRIDE) % n) {
        if (clock_now_ns() >= s->end_ns && s->all[0].ns != UINT64_MAX)
            return 1;
        int err = time_one(s, &s->all[at]);
        if (err)
            return err;
    }
    return 0;
}

/* Halving: the time goes to those that may be the best. */
static int halve(struct search *s, unsigned *tried)
{
    int over = time_all(s, s->n);

    *tried = 0;
    for (size_t i = 0; i < s->n; i++)
        *tried += s->all[i].ns != UINT64_MAX ? 1 : 0;
    qsort(s->all, s->n, sizeof(*s->all), compare);
    size_t n = *tried;
    for (unsigned runs = RUNS_GROWTH; !over && n > FINALISTS; runs *= RUNS_GROWTH) {
        n = n / KEEP_SHARE > FINALISTS ? n / KEEP_SHARE : FINALISTS;
        for (unsigned i = 0; !over && i < runs; i++)
            over = time_all(s, n);
        qsort(s->all, n, sizeof(*s->all), compare);
    }
    return over < 0 ? over : 0;
}

int gpu_tune(const struct gpu_tune_space *space, uint64_t budget_ns, struct gpu_tuned *best)
{
    struct search s = {.space = space, .end_ns = clock_now_ns() + budget_ns};
    int err;

    *best = (struct gpu_tuned){0};
    s.all = calloc(CANDIDATES_MAX, sizeof(*s.all));
    if (!s.all)
        return -ENOMEM;
    list_candidates(&s);
    err = s.n ? halve(&s, &best->tried) : -EOPNOTSUPP;
    best->shape = s.all[0].shape;
    best->of = (unsigned)s.n;
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
