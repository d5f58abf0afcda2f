/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launch shape of a memory kernel on a GPU: how many accesses a thread has in flight, whether
 * they are marked as streaming, threads in a block and blocks. Which one is best differs from
 * device to device, so it is searched for: all shapes once, the better ones again, the best of
 * them most often.
 */
#ifndef PLUMB_BENCHES_MEMORY_GPU_TUNE_H
#define PLUMB_BENCHES_MEMORY_GPU_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_shape {
    unsigned unroll; /* accesses of 16 bytes in flight: 1, 2, 4 or 8 */
    bool streaming;  /* marked "evict first" */
    unsigned block, grid;
};

/* What may be chosen from. */
struct gpu_tune_space {
    uint64_t bytes; /* of each array */
    unsigned sms;
    /* No more blocks than run at the same time, which a kernel that makes several passes
     * must have: else each block would make all its passes over its own few bytes before the
     * next one starts. */
    bool resident;
    /* Blocks of this shape (but for its grid) that run at once on one SM; 0: it does not run. */
    unsigned (*blocks_per_sm)(void *arg, const struct gpu_shape *shape);
    void *arg; /* of both calls */
    /* The time of a short run; 0 or -errno, which ends the search. */
    int (*time)(void *arg, const struct gpu_shape *shape, uint64_t *ns);
};

/* One access of 16 bytes a thread, 256 threads a block, blocks until all is covered (or, where
 * it must be, until the device is full): the kernel as one writes it first. 0; -EOPNOTSUPP:
 * does not run. */
int gpu_shape_plain(const struct gpu_tune_space *space, struct gpu_shape *shape);

/* "u4 cs 256 threads x 1056 blocks". Returns text. */
const char *gpu_shape_text(const struct gpu_shape *shape, char *text, size_t len);

struct gpu_tuned {
    struct gpu_shape shape;
    unsigned tried, of; /* shapes timed, of so many: fewer when the time was over */
};

/* The fastest shape, the plain one among them, in about budget_ns (over 0). 0, or -errno of time(),
 * -ENOMEM, or -EOPNOTSUPP when no shape runs. */
int gpu_tune(const struct gpu_tune_space *space, uint64_t budget_ns, struct gpu_tuned *best);

/* Shapes that were found in this process, so that each is searched for once. */
struct gpu_tunings { /* zeroed: empty */
    struct gpu_tuning {
        char key[64]; /* device, kernel and size */
        struct gpu_tuned tuned;
    } * all;
    size_t n;
};

const struct gpu_tuned *gpu_tunings_find(const struct gpu_tunings *t,
                                         const char *key); /* or NULL */
int gpu_tunings_add(struct gpu_tunings *t, const char *key, const struct gpu_tuned *tuned);
void gpu_tunings_release(struct gpu_tunings *t);

#endif
