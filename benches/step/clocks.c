/* SPDX-License-Identifier: Apache-2.0 */
/* How far workers of an asynchronous parameter server are: see clocks.h. */
#include "benches/step/clocks.h"

void clocks_begin(struct clocks *c, unsigned workers, uint64_t target, uint64_t bound)
{
    *c = (struct clocks){.workers = workers, .target = target, .bound = bound};
}

/* How far a worker is ahead of the slowest one, and at most the bound: a push may be one over it. */
static uint64_t lead_of(const struct clocks *c, unsigned worker)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < c->workers; i++)
        least = c->ahead[i] + c->steps[i] < least ? c->ahead[i] + c->steps[i] : least;
    uint64_t lead = c->ahead[worker] + c->steps[worker] - least;
    return lead < c->bound ? lead : c->bound;
}

uint64_t clocks_leads(const struct clocks *c)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < c->workers; i++)
        sum += lead_of(c, i);
    return sum;
}

void clocks_next(struct clocks *c)
{
    uint64_t leads[WORLD_RANKS_MAX];

    for (unsigned i = 0; i < c->workers; i++)
        leads[i] = lead_of(c, i);
    for (unsigned i = 0; i < c->workers; i++) {
        c->ahead[i] = leads[i];
        c->steps[i] = c->pulled[i] = 0;
        c->left[i] = false;
    }
    c->updates = 0;
}

uint64_t clocks_push(struct clocks *c, unsigned worker)
{
    c->steps[worker]++;
    return c->updates++ - c->pulled[worker];
}

bool clocks_over(const struct clocks *c)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < c->workers; i++)
        least = c->steps[i] < least ? c->steps[i] : least;
    return c->updates >= c->target && least >= CLOCKS_STEPS_LEAST;
}

bool clocks_must_wait(const struct clocks *c, unsigned worker)
{
    uint64_t least = c->ahead[worker] + c->steps[worker], its = least;

    for (unsigned i = 0; i < c->workers; i++)
        if (!c->left[i] && c->ahead[i] + c->steps[i] < least)
            least = c->ahead[i] + c->steps[i];
    return !clocks_over(c) && its - least > c->bound;
}

void clocks_pull(struct clocks *c, unsigned worker)
{
    c->pulled[worker] = c->updates;
}

void clocks_leave(struct clocks *c, unsigned worker)
{
    c->left[worker] = true;
}
