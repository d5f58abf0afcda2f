/* SPDX-License-Identifier: Apache-2.0 */
/* A plot while it is made: figure_lines.c puts the values in, figure.c the rest. */
#ifndef PLUMB_REPORT_FIGURE_DRAW_H
#define PLUMB_REPORT_FIGURE_DRAW_H

#include "harness/report/group.h"

#define LIMITS_MAX 3

struct drawing {
    const struct group *g;
    struct pool *pool;
    size_t facet;
    struct figure *f;
    struct plot_line *lines;
    struct plot_tick *ticks;
    struct plot_mark *marks;
    double low, high; /* of the values; NaN: none yet */
    double limits[LIMITS_MAX + 1];
    double limit_from[LIMITS_MAX + 1], limit_to[LIMITS_MAX + 1]; /* x of the points that have it */
    size_t n_limits;
    size_t lines_left_out, empty_lines;
};

static inline const struct report_case *drawing_case(const struct group *g, size_t i)
{
    return &g->bench->cases[g->cases[i]];
}

/* The parameters that a listed shape is made of are shown together: 512x2304x768. */
bool drawing_is_of_shape(const struct group *g, size_t param);

/* The lines of the facet, in the order of the suite, and the ticks of x. 0 or -ENOMEM. */
int drawing_add_lines(struct drawing *d);
/* Instead, where there is no x: every case is a place on the y axis, every run a line of points. */
int drawing_add_categories(struct drawing *d);

#endif
