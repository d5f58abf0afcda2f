/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that does what may never end, for one that has to go on: a call of MPI that waits for a
 * rank which is gone cannot be ended by anybody. One of the two threads works at a time, as if
 * there were one.
 */
#ifndef PLUMB_BENCHES_ALLREDUCE_HELPER_H
#define PLUMB_BENCHES_ALLREDUCE_HELPER_H

#include <stdbool.h>
#include <stdint.h>

struct helper;

int helper_open(struct helper **h);
/* Does fn(arg) in the thread, and calls look(look_arg) here about every 20 ms meanwhile. Returns
 * what fn does; or what look does, where that is not 0: then the thread is left where it is, for
 * good, with all that it works on, which must not be freed; and this process ends without the exit
 * handlers of the library that it is in. */
int helper_do(struct helper *h, int (*fn)(void *arg), void *arg, int (*look)(void *look_arg),
              void *look_arg);
/* Of what fn does: between these two look() is not called, and helper_do() does not return. Neither
 * returns in a thread that was left. NULL: harmless. */
void helper_hold(struct helper *h);
void helper_let(struct helper *h);
bool helper_abandoned(const struct helper *h); /* NULL: no */
void helper_close(struct helper *h);           /* NULL is left alone, and so is one that was left */

/* For backends that wait in a library, where nothing of ours gets its turn: a thread that ends the
 * process when a deadline goes by, having said on stderr what hangs. The others then see that this
 * rank is gone. */

struct watchdog;

int watchdog_open(struct watchdog **d);
/* From now on. `what`: of the sentence "WHAT has not ended after 20 s". Again: another deadline. */
void watchdog_set(struct watchdog *d, uint64_t ns, const char *what);
void watchdog_feed(struct watchdog *d);  /* the same time again from now; NULL is left alone */
void watchdog_rest(struct watchdog *d);  /* no deadline; NULL is left alone */
void watchdog_close(struct watchdog *d); /* NULL is left alone */

#endif
