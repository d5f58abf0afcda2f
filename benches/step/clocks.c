/* SPDX-License-Identifier: Apache-2.0 */
/* How far workers of an asynchronous parameter server are: see clocks.h. */
#include "benches/step/clocks.h"

void clocks_begin(struct clocks *c, unsigned workers, uint64_t target, uint64_t bound)
{
    *c = (struct clocks){.workers = workers, .target = target, .bound = bound};
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
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < c->workers; i++)
        least = c->steps[i] < least ? c->steps[i] : least;
    return !clocks_over(c) && c->steps[worker] - least > c->bound;
}

void clocks_pull(struct clocks *c, unsigned worker)
{
    c->pulled[worker] = c->updates;
}

void clocks_leave(struct clocks *c, unsigned worker)
{
    c->steps[worker] = UINT64_MAX;
}
