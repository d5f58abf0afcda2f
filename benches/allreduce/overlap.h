/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work for the thread that waits for a collective: products of 64 x 64 matrices of f32, C = A B, in
 * the CPU's nearest caches, so that they are bound by its arithmetic and not by the memory that the
 * collective needs, too. They are plain C, a part of the CPU's peak (that is measured by the
 * benchmark gemm); what matters here is how long a fixed amount of such work takes alone and beside
 * a collective.
 *
 * The unit is a panel of four rows of C (32768 floating-point operations). Work is done in slices
 * of about OVERLAP_SLICE_NS, between which the collective gets its turn.
 */
#ifndef PLUMB_BENCHES_ALLREDUCE_OVERLAP_H
#define PLUMB_BENCHES_ALLREDUCE_OVERLAP_H

#include <stdint.h>

#define OVERLAP_SLICE_NS 30000u

struct overlap {
    float *matrices; /* A, B, C; NULL: closed */
    double unit_ns;  /* a unit alone, of the calibration */
    unsigned row;    /* where the next unit begins */
};

/* Calibrates, which takes some milliseconds. 0 or -ENOMEM. */
int overlap_open(struct overlap *o);
void overlap_close(struct overlap *o); /* harmless when it is closed */

/* Work that takes so long alone, cut to slices. */
struct overlap_work {
    uint64_t slices, units_each;
};
struct overlap_work overlap_work(const struct overlap *o, uint64_t ns);
void overlap_slice(struct overlap *o, const struct overlap_work *work);

#endif
