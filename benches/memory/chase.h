/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load latency: a chain of pointers through every cache line of a buffer in one random cycle, so
 * that each load must wait for the one before it and no prefetcher can guess the next.
 */
#ifndef PLUMB_BENCHES_MEMORY_CHASE_H
#define PLUMB_BENCHES_MEMORY_CHASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHASE_LINE 64u

#define CHASE_PAGE 4096u /* the smallest page that hardware translates */

struct chase {
    char *at;
    uint32_t *order; /* the lines in the order of the cycle */
    uint64_t lines;
    size_t offset; /* of the pointer in its line */
    void **now;    /* where the chain has got to */
    uint64_t hops; /* loads so far */
};

/* The numbers 0 to lines - 1 in random order, new memory: a cycle, since each order of all is one.
 * 0; -EINVAL: fewer than 2 or more than 2^32; -ENOMEM. */
int chase_order(uint32_t **order, uint64_t lines, uint64_t seed);

/* Builds the cycle in bytes / CHASE_LINE lines at `at`, which starts on a line, and fills the rest
 * of the lines with random bytes. 0; -EINVAL: fewer than 2 lines or more than 2^32; -ENOMEM. */
int chase_build(struct chase *c, void *at, size_t bytes, uint64_t seed);
void chase_release(struct chase *c); /* not the buffer */

/* A second cycle beside that of chase_build(), in the same lines: all pages in random order, and in
 * each page one line of every two neighbours, in random order, before the next page. So a
 * translation serves 32 loads, and a prefetcher that fetches the neighbour of a line gains nothing.
 * -EINVAL: fewer than 2 pages. */
int chase_build_pages(struct chase *c, void *at, size_t bytes, uint64_t seed);

/* Does the hardware translate this memory by small pages, whatever the system that runs here set?
 * Loads from 8192 lines far apart, against as many close by, which the same caches hold:
 *   far   a line in each 16 KiB: a TLB that joins four neighbouring small pages needs an entry a
 *         line, too, and none has so many
 *   near  all lines of two neighbouring pages in each 2 MiB, so that of huge pages both need the
 *         same number
 * Overwrites the memory. 0 with the times of a load; -ERANGE: under 128 MiB, or too unsteady a
 * machine, to tell; -ENOMEM. */
#define CHASE_TRANSLATION_LINES 8192u
#define CHASE_TRANSLATION_GROUP (4 * CHASE_PAGE)
/* Of a second-level cache: twice what the chains touch, so that it holds the far one's lines, which
 * fall on its sets by chance. */
#define CHASE_TRANSLATION_CACHE (1u << 20)
struct chase_translation {
    double far_ns, near_ns;
};
int chase_translation(void *at, size_t bytes, uint64_t seed, struct chase_translation *out);
/* The two chains that it follows; to be released in any case. 0, -ERANGE or -ENOMEM. */
int chase_translation_build(void *at, size_t bytes, uint64_t seed, struct chase *far,
                            struct chase *near);
bool chase_pages_are_small(const struct chase_translation *t);

/* Looks at every line once, in the order of the cycle but without waiting for one to know the next,
 * so that it takes a tenth of the time of a walk and leaves caches and TLB as that would. Does each
 * lead to the one after it? 0 or -EBADMSG. */
int chase_look(const struct chase *c);

/* The timed thing: `hops` dependent loads. */
void chase_run(struct chase *c, uint64_t hops);

/* Is the chain where `hops` steps along the cycle lead? 0 or -EBADMSG. */
int chase_check(const struct chase *c);

#endif
