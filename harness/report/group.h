/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of one benchmark and metric, and how they are cut into plots; between series.c, which
 * plans, and figure.c, which draws. */
#ifndef PLUMB_REPORT_GROUP_H
#define PLUMB_REPORT_GROUP_H

#include "harness/report/dimension.h"
#include "harness/report/series.h"
#include "harness/report/told.h"

struct group {
    struct report *r;
    const struct report_bench *bench;
    const struct bench_plot *hint; /* or NULL */
    const char *metric, *unit;
    const char *gpu_drawn; /* whose cases stand for those of other GPUs; "": all are drawn */
    bool gpu;              /* the cases on GPUs; else the others */
    bool listed;           /* the hint's x does not say all: the cases are listed */
    size_t *cases, n;
    struct dimension *dims;    /* one a parameter */
    const struct dimension *x; /* NULL: the cases are listed */
    const struct dimension **lines, **facets;
    size_t n_lines, n_facets;         /* dimensions */
    struct classes facet_of, line_of; /* classes of the cases */
};

/* The most lines in one plot, each of which every run has. */
size_t group_lines_max(const struct group *g);

/* What becomes of a facet: nothing where nothing in it was measured, and words where those say all. */
enum figure_kind { FIGURE_NONE, FIGURE_WORD, FIGURE_PLOT };

/* Fills the figure of one facet, or the words that do. 0 or -ENOMEM. */
int figure_make(const struct group *g, size_t facet, size_t number, struct figure *f,
                struct figure_word *word, enum figure_kind *kind);

#endif
