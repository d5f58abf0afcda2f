/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for the shape of a matrix product with the highest rate. Squares first, 512 to 16384;
 * from the best of them uphill: m and n rounded to what the units can share evenly in tiles of 128
 * x 256, each side longer and shorter by 1024, doubled and halved, then by 512, 256 and 128. The
 * first neighbour that is faster is the next place to look round from.
 *
 * Pure: times come from the callbacks, and the same times give the same search.
 */
#ifndef PLUMB_BENCHES_GEMM_SEARCH_H
#define PLUMB_BENCHES_GEMM_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "benches/gemm/matrix.h"
#include "core/search.h"

#define GEMM_SEARCH_GAIN     0.005 /* what counts as a gain */
#define GEMM_SEARCH_PATIENCE 24    /* shapes without one, after which it stops */
#define GEMM_SEARCH_PRODUCTS 8     /* products that a try may need */

struct gemm_search {
    /* Operations a ns of a shape. 0; -EOPNOTSUPP, -ENOMEM: it cannot be done, and is passed over;
     * any other -errno ends the search. */
    int (*rate)(void *arg, const struct gemm_shape *shape, double *operations_per_ns);
    uint64_t (*now_ns)(void *arg); /* NULL: the clock */
    void *arg;
    uint64_t budget_ns; /* no shape is begun after it, nor one that would take an eighth of it */
    uint64_t longest;   /* side */
    unsigned units;     /* that share a product; 0, 1: not known */
};

struct gemm_search_result {
    struct gemm_shape best; /* m 0: no shape could be done */
    double operations_per_ns;
    unsigned tried, refused, too_long;
    uint64_t elapsed_ns;
    enum search_stop stop;
};

int gemm_search_run(const struct gemm_search *s, struct gemm_search_result *out);

/* "the best of 57 shapes in 20.3 s; stopped: no gain over 0.5 % in the last 24". Returns text. */
const char *gemm_search_text(const struct gemm_search_result *r, char *text, size_t len);

#endif
