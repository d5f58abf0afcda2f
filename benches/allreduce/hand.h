/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that does what may never end, for one that has to go on: a call of MPI that waits for a rank which is gone cannot be ended by anybody. One of the two
 * threads works at a time, as if there were one.
 */
#ifndef PLUMB_BENCHES_ALLREDUCE_HAND_H
#define PLUMB_BENCHES_ALLREDUCE_HAND_H

#include <stdbool.h>

struct hand;

int hand_open(struct hand **h);
/* Does fn(arg) in the thread, and calls look(look_arg) here about every 20 ms meanwhile. Returns what fn does; or what look does, where that is not 0: then the
 * thread is left where it is, for good, with all that it works on, which must not be freed; and this process ends without the exit handlers
 * of the library that it is in. */
int hand_do(struct hand *h, int (*fn)(void *arg), void *arg, int (*look)(void *look_arg),
            void *look_arg);
/* Of what fn does: between these two look() is not called, and hand_do() does not return. Neither returns in a thread that was left. NULL: harmless. */
void hand_hold(struct hand *h);
void hand_let(struct hand *h);
bool hand_left(const struct hand *h); /* NULL: no */
void hand_close(struct hand *h);      /* NULL is left alone, and so is one that was left */

#endif
