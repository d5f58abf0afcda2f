/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: copies of one message by one GPU, one after the other, from memory to memory. Several lanes
 * run at once from a common start.
 */
#ifndef PLUMB_CORE_GPU_GPU_COPY_LANE_H
#define PLUMB_CORE_GPU_GPU_COPY_LANE_H

#include "core/gpu/gpu_copy_memory.h"
#include "core/gpu/gpu_time.h"

#define GPU_COPY_LANES_MAX 32

enum gpu_copy_how {
    GPU_COPY_ENGINE,  /* the driver's copy */
    GPU_COPY_KERNEL,  /* of threads: copy16, or copy1 where the length asks for it */
    GPU_COPY_MIGRATE, /* managed pages moved by the driver: source and destination are one */
    GPU_COPY_FAULTS,  /* managed pages, called over by a kernel's faults on them */
};

struct gpu_copy_lane { /* zeroed: not open */
    struct gpu *gpu;   /* which runs the copies */
    enum gpu_copy_how how;
    struct gpu_timer timer;
    struct gpu_copy_memory src, dst; /* dst is not used where pages are moved */
    bool to_device;
    bool staged; /* through host memory by the driver, which may have to work for it: never held */
    size_t bytes;
    struct gpu_kernel *kernel;
    const char *kernel_name;
    unsigned grid, block;
};

/* Opens stream and events, and finds the kernel: `share` of the GPU's threads, 1 is all. src and dst
 * are allocated already, and freed by close. */
int gpu_copy_lane_open(struct gpu_copy_lane *l, unsigned share, struct gpu_watch *watch);
void gpu_copy_lane_close(struct gpu_copy_lane *l);

/* Data of `seed` at the source, poison at the destination; at the side that the copies come from. */
int gpu_copy_lane_fill(struct gpu_copy_lane *l, uint64_t seed);
/* See gpu_copy_memory_check(): of what arrived, read from where it was to arrive. */
int gpu_copy_lane_check(struct gpu_copy_lane *l, uint64_t seed, size_t *wrong_at);

/* One copy, not timed. */
int gpu_copy_lane_once(struct gpu_copy_lane *l);

/* How lanes that run at once keep each other company: those that are slower make fewer copies, by
 * their times in the run before, so that all are at work from the start to the end. Zeroed: nothing is
 * known yet. One for each set of lanes. */
struct gpu_copy_pace {
    double each_ns[GPU_COPY_LANES_MAX]; /* of one copy */
    uint64_t count[GPU_COPY_LANES_MAX]; /* made in the last run */
    double overlap;                     /* in it: the shortest lane's time over the longest's */
};

/*
 * What is timed: `count` copies in the fastest lane.
 *
 * By events: all is queued first, then released (staged: it runs while it is queued). ns[i] is lane
 * i's own time by its GPU's events, *span_ns from the common start until the last lane is done, by the
 * first lane's GPU; both as if every lane had made `count` copies at its rate. Lanes on other GPUs
 * start when they hear of the first one's start, some us later. No more than gpu_copy_most() copies.
 */
int gpu_copy_time_by_events(struct gpu_copy_lane *const *lanes, unsigned n, uint64_t count,
                            struct gpu_copy_pace *pace, uint64_t *ns, uint64_t *span_ns);
uint64_t gpu_copy_most(unsigned lanes, bool staged); /* 0: any number */
/* Of the first n lanes of the run before, all on one GPU: the same span of them alone. */
int gpu_copy_span(struct gpu_copy_lane *const *lanes, unsigned n, uint64_t count,
                  const struct gpu_copy_pace *pace, uint64_t *span_ns);

/* One lane by the host's clock, from the first call until the host knows that all is there. */
int gpu_copy_time_by_host(struct gpu_copy_lane *l, uint64_t count, uint64_t *ns);
/* The same for managed pages, which are brought back before each copy, outside of the time. */
int gpu_copy_time_moving(struct gpu_copy_lane *l, uint64_t count, uint64_t *ns);

#endif
