/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask a long command of plumb to end. */
#ifndef PLUMB_HARNESS_CANCEL_H
#define PLUMB_HARNESS_CANCEL_H

/* SIGINT, SIGTERM and SIGHUP (unless it is ignored: nohup stays nohup) set what this points to from now on; it is 0
 * until then, and lives as long as the process. */
const volatile int *cancel_on_signals(void);

#endif
