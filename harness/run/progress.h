/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line of a run: a bar, case k of n, what is running, time left. Only on a terminal;
 * else a line now and then is not printed either. */
#ifndef PLUMB_HARNESS_PROGRESS_H
#define PLUMB_HARNESS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *out;                 /* NULL: say nothing */
    size_t total, done, first; /* launches; first: done before this start */
    uint64_t begin_ns;
    char now[160]; /* what is running */
};

void progress_start(struct progress *p, FILE *out, size_t total,
                    size_t done);        /* silent unless `out` is a terminal */
void progress_show(struct progress *p);  /* draws the line anew */
void progress_clear(struct progress *p); /* takes it away, before something else is printed */

/* The line itself, without control characters, at most `width` characters; for tests. */
const char *progress_line(const struct progress *p, uint64_t now_ns, int width, char *text,
                          size_t len);

#endif
