/* SPDX-License-Identifier: Apache-2.0 */
/* Pointer chase: see arrays.h. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "benches/memory/arrays.h"
#include "core/clock.h"
#include "core/rng.h"

static void **line_at(const struct chase *c, uint64_t step)
{
    return (void **)(c->at + (uint64_t)c->order[step] * CHASE_LINE + c->offset);
}

static void **line_after(const struct chase *c, uint64_t step)
{
    return line_at(c, step + 1 == c->lines ? 0 : step + 1);
}

static void link_lines(struct chase *c)
{
    for (uint64_t i = 0; i < c->lines; i++)
        *line_at(c, i) = line_after(c, i);
    c->now = line_at(c, 0);
}

struct filling {
    void *at;
    size_t bytes;
    uint64_t seed;
};

static void *fill(void *arg)
{
    const struct filling *f = arg;

    entries_fill_bits(f->at, f->bytes, f->seed);
    return NULL;
}

int chase_build(struct chase *c, void *at, size_t bytes, uint64_t seed)
{
    *c = (struct chase){.at = at, .lines = bytes / CHASE_LINE};
    /* Of gigabytes either takes seconds: the pages come with the fill. */
    struct filling f = {at, c->lines * CHASE_LINE, seed + 1};
    pthread_t filler;
    bool beside = !pthread_create(&filler, NULL, fill, &f);
    int err = rng_order(&c->order, c->lines, seed);

    if (beside)
        pthread_join(filler, NULL);
    if (err)
        return err;
    if (!beside)
        fill(&f);
    link_lines(c);
    return 0;
}

#define PAGE_LINES (CHASE_PAGE / CHASE_LINE)
#define PAGE_HOPS  (PAGE_LINES / 2)

int chase_build_pages(struct chase *c, void *at, size_t bytes, uint64_t seed)
{
    uint64_t pages = bytes / CHASE_PAGE;
    uint32_t *page_order;
    struct rng rng;

    *c = (struct chase){.at = at, .lines = pages * PAGE_HOPS, .offset = sizeof(void *)};
    if (pages * PAGE_LINES > UINT32_MAX)
        return -EINVAL;
    int err = rng_order(&page_order, pages, seed);
    if (err)
        return err;
    c->order = calloc(c->lines, sizeof(*c->order));
    rng_seed(&rng, seed + 2);
    for (uint64_t i = 0; c->order && i < pages; i++) {
        /* The lines of one page that the cycle visits, in its order. */
        uint32_t *order = c->order + i * PAGE_HOPS;
        for (uint32_t k = 0; k < PAGE_HOPS; k++)
            order[k] = page_order[i] * PAGE_LINES + 2 * k + (uint32_t)rng_below(&rng, 2);
        rng_shuffle_u32(&rng, order, PAGE_HOPS);
    }
    free(page_order);
    if (!c->order)
        return -ENOMEM;
    link_lines(c);
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

#define TRANSLATION_RUNS 20   /* of each at least; short ones, so that some are not disturbed */
#define TRANSLATION_MOST 400  /* where no two of them agree */
#define TRANSLATION_NEAR 1.05 /* the second best of the best */
#define HUGE_PAGE        (2u << 20)
#define GROUP_LINES      (CHASE_TRANSLATION_GROUP / CHASE_LINE)
#define HUGE_LINES       (HUGE_PAGE / CHASE_LINE)
#define NEAR_LINES       (HUGE_LINES / GROUP_LINES) /* in each huge page */
/* Of huge pages both are alike; a walk for a small one costs as much as a load from the
 * cache, or more. */
#define SMALL_FROM 1.5

struct shortest {
    double first, second;
};

static void run_shortest(struct chase *c, struct shortest *s)
{
    chase_run(c, c->lines); /* fetches its lines again */
    uint64_t begin_ns = clock_now_ns();

    chase_run(c, c->lines);
    double ns = (double)(clock_now_ns() - begin_ns) / (double)c->lines;
    s->second = fmin(s->second, fmax(s->first, ns));
    s->first = fmin(s->first, ns);
}

/* The place of a line of each kind: at random in its group; or the k-th of its huge page, in
 * pages that move on from one huge page to the next, so that they do not meet in the same sets
 * of a cache. */
static uint32_t far_line(struct rng *rng, uint32_t i)
{
    return i * GROUP_LINES + (uint32_t)rng_below(rng, GROUP_LINES);
}

static uint32_t near_line(struct rng *rng, uint32_t i)
{
    uint32_t page = i / NEAR_LINES;

    (void)rng;
    return page * (HUGE_LINES + NEAR_LINES) + i % NEAR_LINES;
}

/* Such lines, all in random order. */
static int build_spread(struct chase *c, void *at, size_t offset, uint64_t seed,
                        uint32_t (*line)(struct rng *, uint32_t))
{
    struct rng rng;

    *c = (struct chase){.at = at, .lines = CHASE_TRANSLATION_LINES, .offset = offset};
    int err = rng_order(&c->order, c->lines, seed);

    if (err)
        return err;
    rng_seed(&rng, seed + 3);
    for (uint64_t i = 0; i < c->lines; i++)
        c->order[i] = line(&rng, c->order[i]);
    link_lines(c);
    return 0;
}

int chase_translation_build(void *at, size_t bytes, uint64_t seed, struct chase *far,
                            struct chase *near)
{
    *far = *near = (struct chase){0};
    if (bytes < (size_t)CHASE_TRANSLATION_LINES * CHASE_TRANSLATION_GROUP)
        return -ERANGE;
    int err = build_spread(far, at, 0, seed, far_line);

    return err ? err : build_spread(near, at, sizeof(void *), seed + 1, near_line);
}

static bool agree(const struct shortest *s)
{
    return s->second <= TRANSLATION_NEAR * s->first;
}

/* In turns, so that what disturbs hits both. */
static int compare(struct chase *far, struct chase *near, struct chase_translation *out)
{
    struct shortest a = {INFINITY, INFINITY}, b = a;

    for (int i = 0; i < TRANSLATION_MOST; i++) {
        run_shortest(far, &a);
        run_shortest(near, &b);
        if (i >= TRANSLATION_RUNS && agree(&a) && agree(&b))
            break;
    }
    *out = (struct chase_translation){a.first, b.first};
    return agree(&a) && agree(&b) ? 0 : -ERANGE;
}

int chase_translation(void *at, size_t bytes, uint64_t seed, struct chase_translation *out)
{
    struct chase far, near;
    int err = chase_translation_build(at, bytes, seed, &far, &near);

    if (!err)
        err = compare(&far, &near, out);
    chase_release(&far);
    chase_release(&near);
    return err;
}

bool chase_pages_are_small(const struct chase_translation *t)
{
    return t->far_ns > SMALL_FROM * t->near_ns;
}
