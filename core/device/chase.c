/* SPDX-License-Identifier: Apache-2.0 */
/* Pointer chase: see chase.h. */
#include "core/device/chase.h"

#include <errno.h>
#include <stdlib.h>

#include "core/rng.h"

static void **line_at(const struct chase *c, uint64_t step)
{
    return (void **)(c->at + (uint64_t)c->order[step] * CHASE_LINE);
}

static void link_lines(struct chase *c, struct rng *rng)
{
    for (uint64_t i = 0; i < c->lines; i++) {
        void **line = line_at(c, i);
        line[0] = line_at(c, i + 1 == c->lines ? 0 : i + 1);
        for (size_t k = 1; k < CHASE_LINE / sizeof(void *); k++)
            line[k] = (void *)(uintptr_t)rng_u64(rng);
    }
}

int chase_order(uint32_t **order, uint64_t lines, uint64_t seed)
{
    struct rng rng;

    *order = NULL;
    if (lines < 2 || lines > UINT32_MAX)
        return -EINVAL;
    *order = malloc(lines * sizeof(**order));
    if (!*order)
        return -ENOMEM;
    for (uint64_t i = 0; i < lines; i++)
        (*order)[i] = (uint32_t)i;
    rng_seed(&rng, seed);
    rng_shuffle_u32(&rng, *order, lines);
    return 0;
}

int chase_build(struct chase *c, void *at, size_t bytes, uint64_t seed)
{
    struct rng rng;

    *c = (struct chase){.at = at, .lines = bytes / CHASE_LINE};
    int err = chase_order(&c->order, c->lines, seed);
    if (err)
        return err;
    rng_seed(&rng, seed + 1);
    link_lines(c, &rng);
    c->now = line_at(c, 0);
    return 0;
}

void chase_release(struct chase *c)
{
    free(c->order);
    *c = (struct chase){0};
}

#define HOP(p) ((p) = (void **)*(p))

void chase_run(struct chase *c, uint64_t hops)
{
    void **p = c->now;

    for (uint64_t left = hops / 8; left; left--) {
        HOP(p);
        HOP(p);
        HOP(p);
        HOP(p);
        HOP(p);
        HOP(p);
        HOP(p);
        HOP(p);
    }
    for (uint64_t left = hops % 8; left; left--)
        HOP(p);
    c->now = p; /* the result is kept: no load can be left out */
    c->hops += hops;
}

int chase_check(const struct chase *c)
{
    return c->now == line_at(c, c->hops % c->lines) ? 0 : -EBADMSG;
}
