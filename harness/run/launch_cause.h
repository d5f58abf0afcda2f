/* SPDX-License-Identifier: Apache-2.0 */
/* Whose failure began it, by what the ranks of a group said. */
#ifndef PLUMB_HARNESS_LAUNCH_CAUSE_H
#define PLUMB_HARNESS_LAUNCH_CAUSE_H

#include <stddef.h>

/* `said`: all lines that a launch over a group wrote to standard error, where rank 0 gave no rows. What a rank says of itself, that it ends since another one is lost,
 * is what followed. So: the first that rank 0 says of another rank, which leads and judges first; else the first that another one says of
 * rank 0. "rank 0 (node1) is gone: it was killed, or has ended (said by rank 2)". Text is "" where nobody is named. Returns text. */
const char *launch_cause(const char *said, char *text, size_t len);

#endif
