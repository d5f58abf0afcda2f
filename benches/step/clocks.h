/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an asynchronous parameter server knows of its workers: how many updates it has applied, and how far each worker is.
 * Pure: no thread, no network. The caller has a lock.
 *
 *   a step of a worker   it computes with the parameters that it has, pushes its gradients, which are applied at once,
 *                        and pulls the parameters, which have all updates until then
 *   staleness            of an update: how many others were applied between the worker's pull and its push
 *   bound                (Q. Ho and others, NIPS 2013: stale synchronous parallel) a worker that is more than `bound`
 *                        steps ahead of the slowest pulls when that one has come closer. Between a pull and the
 *                        push that follows, each of the others then pushes 2 bound + 1 times at most
 *   window               ends with the update number `target`, or later, when each worker has made 3 steps, of which the
 *                        second is between two of its own: each worker that pushes from then on is told so
 *   in the long run      with a bound, whoever is faster than the slowest is in the end as far ahead of it as the bound
 *                        allows, and goes at its pace. That takes as many steps as it takes: a window goes on from the
 *                        one before
 *
 * Over a window without bound, the staleness of a worker's updates after the first adds up to the number of others' updates
 * between its first and its last. So a worker with a step of T among others with steps of T_i has T / T_1 + T / T_2 + ... of
 * it on average, and the mean over the updates of all workers is their number less one.
 */
#ifndef PLUMB_BENCHES_STEP_CLOCKS_H
#define PLUMB_BENCHES_STEP_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/group/world.h"

#define CLOCKS_STEPS_LEAST 3u /* of each worker in a window */

struct clocks {
    unsigned workers;
    uint64_t target, bound, updates;
    uint64_t steps[WORLD_RANKS_MAX]; /* of each worker, in this window */
    uint64_t ahead[WORLD_RANKS_MAX]; /* of the slowest one, at its begin */
    bool left[WORLD_RANKS_MAX];
    uint64_t pulled[WORLD_RANKS_MAX]; /* updates that its parameters have */
};

/* All workers have the same parameters, of no update. bound UINT64_MAX: none. */
void clocks_begin(struct clocks *c, unsigned workers, uint64_t target, uint64_t bound);
/* Another window, once all have left: each is as far ahead as it was, and at most the bound. So all begin
 * as at the end of a step of the slowest one. */
void clocks_next(struct clocks *c);
/* By how many steps all workers together are ahead of the slowest one, as clocks_next() goes on: while
 * they go at one pace, it stays as it is. */
uint64_t clocks_leads(const struct clocks *c);
/* All of a worker's gradients are there. Returns the update's staleness. */
uint64_t clocks_push(struct clocks *c, unsigned worker);
bool clocks_over(const struct clocks *c);
/* Must it wait for a slower one? Never once the window is over. */
bool clocks_must_wait(const struct clocks *c, unsigned worker);
void clocks_pull(struct clocks *c, unsigned worker);
/* It makes no step more: nobody waits for it. */
void clocks_leave(struct clocks *c, unsigned worker);

#endif
