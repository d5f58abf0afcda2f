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

int chase_build(struct chase *c, void *at, size_t bytes, uint64_t seed)
{
    struct rng rng;

    *c = (struct chase){.at = at, .lines = bytes / CHASE_LINE};
    if (c->lines < 2 || c->lines > UINT32_MAX)
        return -EINVAL;
    c->order = malloc(c->lines * sizeof(*c->order));
    if (!c->order)
        return -ENOMEM;
    for (uint64_t i = 0; i < c->lines; i++)
        c->order[i] = (uint32_t)i;
    rng_seed(&rng, seed);
    rng_shuffle_u32(&rng, c->order, c->lines);
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
