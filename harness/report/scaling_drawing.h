/* SPDX-License-Identifier: Apache-2.0 */
/* A plot over ranks while it is made: scaling_lines.c puts the lines in, scaling_figures.c the rest. */
#ifndef PLUMB_REPORT_SCALING_DRAWING_H
#define PLUMB_REPORT_SCALING_DRAWING_H

#include "harness/report/scaling.h"
#include "harness/report/series.h"

#define SERIES_DRAWN 6 /* in one plot, each with its levels, its model and its ideal */
#define LINES_ROOM   (4 * SERIES_DRAWN)

/* One plot while it is made: series that differ in backend, transport and run alone. */
struct drawing {
    struct report *r;
    struct figures *out;
    size_t before; /* figures of other sections */
    const struct scaling_series *series[SERIES_DRAWN];
    size_t n_series, left_out;
    double size; /* bytes of `size` */
    const char *size_text;
    bool bus; /* bus bandwidth, else time */
    bool ms;  /* which is in ms then, not us */
    struct plot_line lines[LINES_ROOM];
    struct plot_point *points[LINES_ROOM]; /* theirs */
    struct figure_line named[LINES_ROOM];
    size_t n;
    double low, high;
    const char *watermark;
};

/* All lines of the plot; none where nothing of it was measured. */
void scaling_lines(struct drawing *d);

#endif
