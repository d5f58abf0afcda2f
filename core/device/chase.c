/* SPDX-License-Identifier: Apache-2.0 */
/* Pointer chase: see chase.h. */
#include "core/device/chase.h"

#include <errno.h>
#include <stdlib.h>

#include "core/device/entries.h"
#include "core/rng.h"

static void **line_at(const struct chase *c, uint64_t step)
{
    return (void **)(c->at + (uint64_t)c->order[step] * CHASE_LINE);
}

static void **line_after(const struct chase *c, uint64_t step)
{
    return line_at(c, step + 1 == c->lines ? 0 : step + 1);
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
    *c = (struct chase){.at = at, .lines = bytes / CHASE_LINE};
    int err = chase_order(&c->order, c->lines, seed);
    if (err)
        return err;
    entries_fill_bits(at, c->lines * CHASE_LINE, seed + 1);
    for (uint64_t i = 0; i < c->lines; i++)
        *line_at(c, i) = line_after(c, i);
    c->now = line_at(c, 0);
    return 0;
}

int chase_look(const struct chase *c)
{
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < c->lines; i++)
        wrong += *line_at(c, i) != line_after(c, i) ? 1 : 0;
    return wrong ? -EBADMSG : 0;
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
