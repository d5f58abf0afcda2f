/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one clock: CLOCK_MONOTONIC_RAW in nanoseconds, which no time daemon bends. Nothing else in
 * the project times an interval.
 */
#ifndef PLUMB_CORE_CLOCK_H
#define PLUMB_CORE_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU time that this thread has used, for accounts of what the program itself costs. */
static inline uint64_t clock_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A wait for something that may never come. All zero at first, and where something has come. */
struct clock_wait {
    uint64_t since_ns, looked_ns, away_ns;
};

#define CLOCK_AWAY_NS      1000000000u  /* between two looks: longer, this process stood still */
#define CLOCK_AWAY_MOST_NS 60000000000u /* in all: a wait that is looked at that seldom ends, too */

/* To be called at each look: how long it lasts, of the time in which somebody looked. Of what
 * happened while this process was stopped, or had no CPU, it knows nothing yet. */
static inline uint64_t clock_waited_ns(struct clock_wait *w)
{
    uint64_t now_ns = clock_now_ns();

    if (!w->since_ns)
        w->since_ns = now_ns;
    else if (now_ns - w->looked_ns > CLOCK_AWAY_NS && w->away_ns < CLOCK_AWAY_MOST_NS) {
        w->away_ns += now_ns - w->looked_ns;
        w->since_ns += now_ns - w->looked_ns;
    }
    w->looked_ns = now_ns;
    return now_ns - w->since_ns;
}

/* What the clock itself costs on this machine, measured. */
struct clock_quality {
    uint64_t resolution_ns; /* the smallest step seen between two different readings */
    double cost_ns;         /* time of one reading, the median of batches */
};

struct clock_quality clock_measure(void); /* takes about a millisecond */

/* "2026-01-31T12:00:00Z" of now, from the wall clock: for labels only. Needs 24 bytes. */
const char *clock_utc(char *text, size_t len);

#endif
