/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded samples, replayed. A launch is a block of SUITE_SAMPLES samples as they followed each
 * other in one recorded launch of a case (round its end where it has no more), moved by what
 * launches were seen to differ by: the case's own spread (moderated by the others', since few launches
 * tell it), in a shape drawn from all cases. What the recorded launch's own median was is taken out
 * first, so that the spread between launches comes in once.
 */
#ifndef PLUMB_SELFTEST_REPLAY_H
#define PLUMB_SELFTEST_REPLAY_H

#include <stddef.h>

#include "core/rng.h"

#define REPLAY_SAMPLES 50 /* shorter launches are left out */

struct replay;

/* Reads run folders. NULL, with a message on stderr, where one cannot be read, or where no case has
 * two launches of REPLAY_SAMPLES samples. */
struct replay *replay_load(char *const *folders, size_t n);
void replay_release(struct replay *replay);

size_t replay_cases(const struct replay *replay);
double replay_spread(const struct replay *replay); /* between launches: median over the cases */

/* One launch of the recorded case that stands for case c. */
void replay_launch(const struct replay *replay, struct rng *r, size_t c, double *samples);

#endif
