/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For backends that wait in a library, where nothing of ours gets its turn: a thread that ends the process when a
 * deadline goes by, having said on stderr what hangs. The others then see that this rank is gone.
 */
#ifndef PLUMB_BENCHES_ALLREDUCE_WATCHDOG_H
#define PLUMB_BENCHES_ALLREDUCE_WATCHDOG_H

#include <stdint.h>

struct watchdog;

int watchdog_open(struct watchdog **d);
/* From now on. `what`: of the sentence "WHAT has not ended after 20 s". Again: another deadline. */
void watchdog_set(struct watchdog *d, uint64_t ns, const char *what);
void watchdog_feed(struct watchdog *d);  /* the same time again from now; NULL is left alone */
void watchdog_rest(struct watchdog *d);  /* no deadline; NULL is left alone */
void watchdog_close(struct watchdog *d); /* NULL is left alone */

#endif
