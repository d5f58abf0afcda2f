/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a run is, and how long it takes.
 *
 *   progress   the line on the terminal: a bar, launch k of n, what is running, time left. Without
 *              a terminal: a line a minute, or every $PLUMB_PROGRESS (10s)
 *   estimate   the time that the launches of a plan are expected to take, before the run
 *   pace       the time that the launches to do will take, from those that ended
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
 * The time that launches are expected to take, in two parts:
 *
 *   asked   warm-up, samples, and other options that are durations. A launch whose interval is
 *           narrow ends earlier, and one that measures further points takes longer
 *   start   of processes, and what the benchmarks say of their set-up, searches and checks
 *           (bench_start). What a process pays once counts once for each process
 *
 * It is for a machine that nobody measured yet: the time may be half of it, or twice. Kept runs of
 * this machine tell better, and launches of this run that ended: struct pace.
 */
struct estimate {
    uint64_t all_ns; /* asked */
    uint64_t start_ns;
    uint64_t least_ns, most_ns; /* asked of one launch */
    size_t n;                   /* launches that are to do */
    uint64_t alone_ns;          /* start, if each launch had a process of its own */
    /* Of those that kept runs of this machine know (earlier.h): what they took then, and what they
     * count in all_ns and start_ns. */
    uint64_t known_ns, known_asked_ns, known_start_ns;
    size_t n_known;
};

/* A launch that needs a group and names no --ranks measures a communicator for each power of two up
 * to its ranks: `group_ranks` over hosts, its --np on this machine. earlier: NULL: none. */
struct estimate estimate_plan(const struct bench_list *benches, const struct plan *plan,
                              unsigned group_ranks, enum process_rule rule,
                              const struct earlier *earlier);

#define ESTIMATE_BYTES 640
/* "expected time: about 14 min, or half to twice that: 9 min of warm-up and sampling (305 launches x
 * 800 ms to 1.3 s), 5 min of start, set-up and checks"; or what launches took in kept runs. Where
 * these are off the benchmarks' own figures by over twice, it says so. */
const char *estimate_text(const struct estimate *e, const struct earlier *earlier,
                          char text[ESTIMATE_BYTES]);

/* How long launches take as a whole, by those that ended. Zeroed, it is empty. */
struct pace {
    size_t n, n_cases, n_benches, ended;
    uint64_t *asked_ns;         /* of each launch, as in the estimate */
    size_t *bench;              /* of each launch; n_benches - 1: one that is not here */
    double *case_ns;            /* sums over the launches that ended, by case_number */
    double *bench_ns;           /* the same of what they took beyond what was asked, by bench */
    double beyond_ns;           /* of all of them */
    size_t *of_case, *of_bench; /* how many these are */
};

/* While the pace is used, the plan's launches may change only their state. 0 or -ENOMEM; release it
 * in any case. */
int pace_make(struct pace *p, const struct bench_list *benches, const struct plan *plan,
              unsigned group_ranks);
void pace_release(struct pace *p);

/* Launch i took this long, from before it was started until it was stored. One that was late tells
 * of its own case alone. */
void pace_ended(struct pace *p, const struct plan *plan, size_t i, uint64_t ns);

/* The time that launch i is expected to take, not below 0; 0 before any launch ended. It is the
 * first of these that is known:
 *
 *   - the mean of its case's launches
 *   - what it asks for, plus the mean that its benchmark's launches took beyond what they asked
 *   - the same with the mean of all launches */
double pace_expects_ns(const struct pace *p, const struct plan *plan, size_t i);

/* The sum over all that are to do. */
double pace_left_ns(const struct pace *p, const struct plan *plan);

#endif
