/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charts as files, by gnuplot: for each NAME.svg and NAME.png, with a legend. All are drawn by one
 * script, plots.gp, which has their data and stays beside them: `gnuplot plots.gp` in that folder
 * draws the files again. Pages have charts of their own (harness/document/plot.h).
 *
 * Texts may hold anything: they reach gnuplot in single quotes, in which it interprets nothing.
 */
#ifndef PLUMB_HARNESS_PLOT_H
#define PLUMB_HARNESS_PLOT_H

#include "harness/document/plot.h"

#define PLOT_SCRIPT "plots.gp"

/* Draws into `folder`, which is there already. 0; -ENOENT: there is no gnuplot, the script alone is
 * written; -EIO: gnuplot did not draw, error has its message; other -errno: a file could not be
 * written. */
int plot_draw(const struct plot *plots, size_t n, const char *folder, char *error, size_t len);

/* The script; used by plot.c alone. */
void plot_script_write(FILE *out, const struct plot *plots, size_t n);

#endif
