/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays that a team's kernels go over. Each thread has a contiguous part of every array in a
 * buffer of its own, which it touched first, so that the pages lie where the thread runs (or on the
 * node that was asked for).
 */
#ifndef PLUMB_BENCHES_MEMORY_ARRAYS_H
#define PLUMB_BENCHES_MEMORY_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bench/bench.h"
#include "core/hw/host_buffer.h"
#include "core/hw/host_kernels.h"
#include "core/hw/topo.h"

struct arrays_config {
    const struct topo *topo;
    enum kernel_op op;
    enum kernel_type type;
    /* of all arrays of all threads together, at most; rounded down to whole blocks */
    uint64_t bytes;
    enum host_pages memory;
    int node; /* -1: where the thread runs that touches it */
    bool nt;  /* the operation's stores go round the caches: the ceiling's do, too */
    uint64_t seed;
};

struct arrays_part {
    struct kernel_args args;
    uint64_t sum; /* of the words made for `a`: what KERNEL_READ must find in one pass */
    int err;      /* of allocation or of the last check */
    char error[160];
    char pad[64]; /* parts do not share a cache line */
};

struct arrays {
    struct arrays_config config;
    unsigned threads;
    size_t part_bytes;           /* of one array of one thread */
    struct host_buffer *buffers; /* one a thread */
    struct arrays_part *parts;
    kernel_fn *kernel; /* the one that arrays_time() runs */
    uint64_t passes;
};

/* 0; -ERANGE: too small for so many threads; -ENOMEM or what the device says, with *error. */
int arrays_open(struct arrays *a, const struct arrays_config *config, struct team *team,
                char *error, size_t len);
void arrays_close(struct arrays *a); /* a zeroed one is left alone */

/* The timed thing: the kernel over all parts, `passes` times, with this scalar. ns: first start to
 * last end. */
void arrays_time(struct arrays *a, struct team *team, kernel_fn *kernel, uint64_t passes,
                 double scalar, uint64_t *ns);

/* Is every entry of every array what the last arrays_time() of the config's own operation must
 * have left? Each thread checks its own part. Of KERNEL_READ: are the sums right? 0, or
 * -EBADMSG with *error. */
int arrays_check(struct arrays *a, struct team *team, char *error, size_t len);

/* Are the sums of the last arrays_time() of KERNEL_READ right? Cheap. */
bool arrays_sums_right(const struct arrays *a);

uint64_t arrays_set_bytes(const struct arrays *a); /* the working set */

/* What this place can deliver and take at this size. A form's number tells which of the loops
 * reached a rate, counted from 1 on; 0: the rate is not known. */
struct arrays_ceiling {
    double read_gbps, write_gbps;
    unsigned read_form, write_form;
};

/* Measures what *ceiling does not know yet and the operation needs, loads unless it only writes
 * and stores unless it only reads: the best of short runs that only load, and that only store in
 * the operation's way, over the same memory, on the two widest vector units and in all forms of
 * the loop. A form that is behind after a run or two gets no more of them (core/search.h). The
 * arrays are as after arrays_open(). */
void arrays_ceiling(struct arrays *a, struct team *team, struct arrays_ceiling *ceiling);

/* The same once more with the forms of `before` alone, to see whether the place is what it was. The
 * arrays hold anything afterwards. */
void arrays_ceiling_again(struct arrays *a, struct team *team, const struct arrays_ceiling *before,
                          struct arrays_ceiling *ceiling);

/* The higher rate of each kind, of two that were measured in one place with the same forms. */
struct arrays_ceiling arrays_ceiling_best(const struct arrays_ceiling *a,
                                          const struct arrays_ceiling *b);

/*
 * The bound in GB/s for an operation of r arrays read and w written: all reads at the read ceiling
 * R and all stores at the write ceiling W, both at the same time.
 *     (r + w) / max((r + f) / R, w / W)
 * fills: a line is read before a regular store fills it, so that f = w. If stores alone are faster
 * than loads alone, the hardware leaves some of these reads out: only f = w R / W of them are sure.
 * Without fills, or if nothing else is read, f = 0.
 */
double arrays_limit(enum kernel_op op, bool fills, const struct arrays_ceiling *ceiling);
/* What it is made of, without the places. */
struct limit_parts arrays_limit_parts(enum kernel_op op, bool fills,
                                      const struct arrays_ceiling *ceiling);

/* For tests: spoils one entry of what the check looks at, or of what is read. */
void arrays_spoil(struct arrays *a);

/*
 * What the arrays of host memory hold: random numbers that follow from a seed, made as fast as
 * memory takes them, so that setting up and checking a gigabyte costs little more than going over
 * it.
 *
 * Entries are whole numbers from 1 to 1024, the scalar is a whole number up to 7: every result is
 * exact in f32, with or without fused multiply-add, and can be compared bit by bit.
 *
 * All memory here starts on a cache line (64 bytes) and is a multiple of 64 bytes long.
 */

/* Random bits. */
void entries_fill_bits(void *at, size_t bytes, uint64_t seed);

/* Entries. Returns the sum, modulo 2^64, of the 64-bit words that were made, not of those that
 * memory gives back. */
uint64_t entries_fill(void *at, size_t bytes, enum kernel_type type, uint64_t seed);

/* The first entry that is wrong. ENTRIES_GONE: what was read first was wrong, but no longer is. */
struct entries_wrong {
    enum entries_array { ENTRIES_A, ENTRIES_B, ENTRIES_DST, ENTRIES_GONE } array;
    size_t entry;
    double got, want;
};

/* Is every entry of `a` and `b` (NULL: there is none) what entries_fill() made of their seeds,
 * and every entry of dst what `op` makes of those with the scalar of `args`? 0; -EBADMSG with
 * *wrong. `op` stores. */
int entries_check(enum kernel_op op, enum kernel_type type, const struct kernel_args *args,
                  uint64_t seed_a, uint64_t seed_b, struct entries_wrong *wrong);

/* Load latency: a chain of pointers through every cache line of a buffer in one random cycle, so
 * that each load must wait for the one before it and no prefetcher can guess the next. */

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
