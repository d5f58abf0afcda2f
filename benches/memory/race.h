/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of several ways to do one thing is the fastest, and how fast, found in few runs: all ways run
 * once, those that are not hopeless once more, and only the foremost two for as long as a maximum needs.
 * Which way wins differs from machine to machine and from size to size; that it is one of those near the
 * front shows at once. Where a run is long, this takes a third of the runs that as many of each would. Where
 * no run comes near the best one, since the machine is disturbed, the winner runs some times more.
 */
#ifndef PLUMB_BENCHES_MEMORY_RACE_H
#define PLUMB_BENCHES_MEMORY_RACE_H

#include <stdint.h>

#define RACE_WAYS_MAX 8

/* Does way number `way` `passes` times and writes how long that took. Returns the bytes that one pass
 * moves; 0: it moved nothing, and this way cannot win. */
typedef double race_fn(void *arg, unsigned way, uint64_t passes, uint64_t *ns);

/* The best rate in GB/s of all runs of half a millisecond and more, since what disturbs can only lengthen them, and the
 * number of the way that reached it. In shorter ones the clock weighs: they are repeated with more passes, and do not
 * count. 0 where no way moves anything. */
double race_best(race_fn *fn, void *arg, unsigned ways, unsigned *best);

/* The same of one way alone, with as many runs as the winner of a race has. */
double race_alone(race_fn *fn, void *arg, unsigned way);

#endif
