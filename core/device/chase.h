/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load latency: a chain of pointers through every cache line of a buffer in one random cycle, so that
 * each load must wait for the one before it and no prefetcher can guess the next.
 */
#ifndef PLUMB_CORE_DEVICE_CHASE_H
#define PLUMB_CORE_DEVICE_CHASE_H

#include <stddef.h>
#include <stdint.h>

#define CHASE_LINE 64u

struct chase {
    char *at;
    uint32_t *order; /* the lines in the order of the cycle */
    uint64_t lines;
    void **now;    /* where the chain has got to */
    uint64_t hops; /* loads so far */
};

/* The numbers 0 to lines - 1 in random order, new memory: a cycle, since each order of all is one. 0;
 * -EINVAL: fewer than 2 or more than 2^32; -ENOMEM. */
int chase_order(uint32_t **order, uint64_t lines, uint64_t seed);

/* Builds the cycle in bytes / CHASE_LINE lines at `at`, which starts on a line, and fills the rest of
 * the lines with random bytes. 0; -EINVAL: fewer than 2 lines or more than 2^32; -ENOMEM. */
int chase_build(struct chase *c, void *at, size_t bytes, uint64_t seed);
void chase_release(struct chase *c); /* not the buffer */

/* Looks at every line once, in the order of the cycle but without waiting for one to know the next, so
 * that it takes a tenth of the time of a walk and leaves caches and TLB as that would. Does each lead to
 * the one after it? 0 or -EBADMSG. */
int chase_look(const struct chase *c);

/* The timed thing: `hops` dependent loads. */
void chase_run(struct chase *c, uint64_t hops);

/* Is the chain where `hops` steps along the cycle lead? 0 or -EBADMSG. */
int chase_check(const struct chase *c);

#endif
