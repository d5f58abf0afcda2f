/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From cases to plots. For each benchmark and metric: the x axis is the numeric parameter with the
 * most values (or the one that the benchmark names), other parameters that vary and do not follow from
 * those make lines, and where lines are too many, the parameters with the fewest values make plots of
 * their own. Without a numeric parameter that varies the cases are listed, one under another.
 * Several runs are laid over each other.
 */
#ifndef PLUMB_REPORT_SERIES_H
#define PLUMB_REPORT_SERIES_H

#include "harness/report/model.h"
#include "harness/report/plot.h"

#define SERIES_LINES_MAX      12 /* in one plot, over all runs: 24 */
#define SERIES_CATEGORIES_MAX 24
#define SERIES_PLOTS_MAX      6 /* of one benchmark and metric */
#define REPORT_PLOTS_MAX      24
#define SCALING_PLOTS_MAX     12 /* beside them */
#define FIGURES_MAX           (REPORT_PLOTS_MAX + SCALING_PLOTS_MAX)
#define REPORT_WORDS_MAX      64 /* lines in place of plots */

/* What a line of a plot is: its label without the run's name, and the run. */
struct figure_line {
    const char *series;
    const char *origin; /* " (simulated)" where a value of it was not measured, else "" */
    size_t run;
};

/* Among the plots, or in the section on scaling: over ranks, and over buckets of gradients. */
enum figure_place { FIGURE_AMONG_PLOTS, FIGURE_OF_RANKS, FIGURE_OF_BUCKETS };

/* A plot with what the page says about it. */
struct figure {
    struct plot plot;
    struct figure_line *lines; /* one a line of the plot */
    const struct report_bench *bench;
    const char *subtitle; /* "dtype f64, threads 2" */
    const char *note;     /* what was left out, and why; or "" */
    enum figure_place place;
};

/* What a plot would say no more of than a line: one case alone, or 0 everywhere. */
struct figure_word {
    const struct report_bench *bench;
    const char *metric, *subtitle, *value; /* "0 in all 12 cases" */
};

struct figures {
    struct figure all[FIGURES_MAX];
    size_t n;
    struct figure_word words[REPORT_WORDS_MAX];
    size_t n_words;
    const char *left_out; /* a sentence on plots that are not there, or "" */
};

/* Everything lives in the report's pool. 0 or -ENOMEM. */
int figures_make(struct report *r, struct figures *out);

#endif
