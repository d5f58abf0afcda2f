/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timing work on a GPU: by events of its own stream, with the cost of queueing kept out (the stream is
 * held until all is queued), and by the host's clock beside it, as a check: the events' clock cannot
 * have run longer than the host's between release and return, and not much shorter.
 */
#ifndef PLUMB_CORE_HW_GPU_TIME_H
#define PLUMB_CORE_HW_GPU_TIME_H

#include "core/hw/gpu.h"

struct gpu_watch; /* gpu_watch.h */

/* Queues operation number `i` of a sample. 0 or -errno. */
typedef int gpu_queue_fn(void *arg, struct gpu_stream *stream, uint64_t i);

struct gpu_timer {
    struct gpu *gpu;
    struct gpu_stream *stream;
    struct gpu_event *begin, *end;
    struct gpu_watch *watch; /* looked at while the device works; NULL: not */
    /* Of the run that the host saw end soonest: the one that a busy host disturbed least. */
    double device_ns, host_ns;
    uint64_t compared; /* runs that were long enough to compare */
};

int gpu_timer_open(struct gpu_timer *t, struct gpu *gpu, struct gpu_watch *watch);
void gpu_timer_close(struct gpu_timer *t); /* also what an open left half-way; a zeroed one */

/* Times `n` operations that `queue` puts into t->stream one after the other; each operation may queue
 * up to `each` things (calls of gpu_ops). More than GPU_HELD_MAX things are held and timed in parts,
 * and the parts' times added. 0 with *ns, or -errno. */
int gpu_timer_run(struct gpu_timer *t, gpu_queue_fn *queue, void *arg, uint64_t n, unsigned each,
                  uint64_t *ns);

/* For those that time by themselves: the same span by both clocks, the host's from the release to the end
 * of the wait. Too short ones are left out. */
void gpu_timer_compare(struct gpu_timer *t, double device_ns, double host_ns);

/* How the two clocks compare: "" where they agree (or nothing was long enough to tell), else a
 * sentence for the reason: events say 5.1 % less than the host's clock. Returns text. */
const char *gpu_timer_disagreement(const struct gpu_timer *t, char *text, size_t len);

#endif
