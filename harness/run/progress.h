/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a run is, and how long it takes.
 *
 *   progress   the line on the terminal: a bar, launch k of n, what is running, time left. Without
 *              a terminal: a line a minute, or every $PLUMB_PROGRESS (10s)
 *   estimate   the time that the launches of a plan are expected to take
 */
#ifndef PLUMB_HARNESS_PROGRESS_H
#define PLUMB_HARNESS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/plan/plan.h"
#include "harness/run/earlier.h"
#include "harness/run/launch.h"

struct progress {
    FILE *out;                  /* a terminal, for the bar */
    FILE *log;                  /* else where the lines go */
    uint64_t every_ns, next_ns; /* of these */
    size_t total, done, first;  /* launches; first: done before this start */
    uint64_t begin_ns;
    /* The time that was left at left_at_ns, and the part of it that is of later launches. While
     * left_at_ns is 0 they are unknown, and launches count as equally long. */
    uint64_t left_at_ns;
    double left_ns, rest_ns;
    char now[160];       /* what is running */
    const char *command; /* of plumb, in the lines of the log; NULL: "run" */
};

void progress_start(struct progress *p, FILE *out, size_t total, size_t done);
void progress_show(struct progress *p);  /* draws the line anew; of the log: when it is time */
void progress_clear(struct progress *p); /* takes it away, before something else is printed */

/* The line itself, without control characters, at most `width` characters; for tests. */
const char *progress_line(const struct progress *p, uint64_t now_ns, int width, char *text,
                          size_t len);
/* The same for a log. */
const char *progress_log_line(const struct progress *p, uint64_t now_ns, char *text, size_t len);

/*
 * The time that each launch is expected to take: what it took in the last run of the suite
 * (earlier.h), else the warm-up and sampling that it asks for. Start, set-up and checks come on top
 * of the latter, and a narrow confidence interval ends it earlier, so while the run goes on each is
 * expected to take as much longer or shorter as those that ended did, in the mean.
 */
struct estimate {
    double *expected_ns; /* of each launch of the plan */
    size_t n;
    /* At the start: launches to do, those of them that the earlier run knows, and their times. */
    size_t todo, known;
    double all_ns, least_ns, most_ns;
    double beyond_ns; /* what launches took beyond what was expected: the sum of those that ended */
    size_t ended;
};

/* Warm-up, samples, and other options that are durations. A launch that needs a group and names no
 * --ranks measures a communicator for each power of two up to its ranks: `group_ranks` over hosts,
 * its --np on this machine. 0 of a benchmark that is not here. */
uint64_t launch_asked_ns(const struct bench_list *benches, const struct launch *l,
                         unsigned group_ranks);

/* earlier: NULL: none. Release it. */
void estimate_make(struct estimate *e, const struct bench_list *benches, const struct plan *plan,
                   unsigned group_ranks, const struct earlier *earlier);
void estimate_again(struct estimate *e, size_t i); /* the plan has one more, like launch i */
void estimate_release(struct estimate *e);

#define ESTIMATE_BYTES 640
/* "expected time: about 14 min, as 305 of 305 launches took in results/gpu-20261124-222300" */
const char *estimate_text(const struct estimate *e, const struct earlier *earlier,
                          char text[ESTIMATE_BYTES]);

/* Launch i took this long, from before it was started until it was stored. */
void estimate_ended(struct estimate *e, const struct plan *plan, size_t i, uint64_t ns);

/* While the run goes on, after a launch ended: of launch i, not below 0, and of all that are to do. */
double estimate_expects_ns(const struct estimate *e, size_t i);
double estimate_left_ns(const struct estimate *e, const struct plan *plan);

#endif
