/* SPDX-License-Identifier: Apache-2.0 */
/* The gnuplot script of plots; used by plot.c alone. */
#ifndef PLUMB_HARNESS_PLOT_SCRIPT_H
#define PLUMB_HARNESS_PLOT_SCRIPT_H

#include <stdio.h>

#include "harness/report/plot.h"

#define PLOT_SCRIPT        "plots.gp"
#define PLOT_SCRIPT_INLINE ".pages.gp"

/* pages: the fragments for a page (.NAME.wide.svg, .NAME.narrow.svg); else the files NAME.svg and
 * NAME.png. */
void plot_script_write(FILE *out, const struct plot *plots, size_t n, bool pages);

#endif
