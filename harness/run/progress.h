/* SPDX-License-Identifier: Apache-2.0 */
/* The line on the terminal that shows how far a run is: how many cases are done, which is measured,
 * its value so far, the time left. Without a terminal: a line a minute, or every $PLUMB_PROGRESS
 * (10s). */
#ifndef PLUMB_HARNESS_PROGRESS_H
#define PLUMB_HARNESS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *out;                  /* a terminal */
    FILE *log;                  /* else where the lines go */
    uint64_t every_ns, next_ns; /* of these */
    size_t total, done, first;  /* launches; first: done before this start */
    uint64_t begin_ns;
    /* The time that was left at left_at_ns, and the part of it that is of later launches. While
     * left_at_ns is 0 they are unknown, and launches count as equally long. */
    uint64_t left_at_ns;
    double left_ns, rest_ns;
    char now[160];       /* what is running */
    char label[96];      /* the same in few words; "": as now */
    int estimate;        /* the file that benchmarks write to; -1: none */
    const char *command; /* of plumb, in the lines of the log; NULL: "run" */
};

void progress_start(struct progress *p, FILE *out, size_t total, size_t done);
/* Something else runs now, of which nothing is known yet. label: the same in few words; "". */
void progress_now(struct progress *p, const char *now, const char *label);
void progress_show(struct progress *p);  /* draws the line anew; of the log: when it is time */
void progress_clear(struct progress *p); /* takes it away, before something else is printed */
void progress_end(struct progress *p);   /* for good */

/* The line of a log. */
const char *progress_log_line(const struct progress *p, uint64_t now_ns, char *text, size_t len);

#endif
