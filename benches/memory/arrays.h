/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays that a team's kernels go over. Each thread has a contiguous part of every array in a
 * buffer of its own, which it touched first, so that the pages lie where the thread runs (or on the
 * node that was asked for). What the arrays hold: entries.h.
 */
#ifndef PLUMB_BENCHES_MEMORY_ARRAYS_H
#define PLUMB_BENCHES_MEMORY_ARRAYS_H

#include "core/bench/bench.h"
#include "core/hw/host_buffer.h"
#include "core/hw/host_kernels.h"
#include "core/hw/team.h"

struct arrays_config {
    const struct topo *topo;
    enum kernel_op op;
    enum kernel_type type;
    uint64_t
        bytes; /* of all arrays of all threads together, at most; rounded down to whole blocks */
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

uint64_t arrays_set_bytes(const struct arrays *a);  /* the working set */
uint64_t arrays_pass_bytes(const struct arrays *a); /* counted for one pass, by the STREAM rule */

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
 * The bound in GB/s for an operation of r arrays read and w written: all reads at the read ceiling R
 * and all stores at the write ceiling W, both at the same time.
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

#endif
