/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From cases to plots. For each benchmark and metric: the x axis is the numeric parameter with the
 * most values (or the one that the benchmark names), other parameters that vary and do not follow
 * from those make lines, and where lines are too many, the parameters with the fewest values make
 * plots of their own. Without a numeric parameter that varies the cases are listed, one under
 * another. Several runs are laid over each other.
 */
#ifndef PLUMB_REPORT_SERIES_H
#define PLUMB_REPORT_SERIES_H

#include "harness/document/plot.h"
#include "harness/report/described.h"
#include "harness/report/model.h"

struct scaling_series;

#define SERIES_LINES_MAX      12 /* in one plot, over all runs: 24 */
#define OVERLAID_MAX          6  /* in one plot, with what is drawn beside each */
#define SERIES_CATEGORIES_MAX 24
#define SERIES_PLOTS_MAX      6 /* of one benchmark and metric */
#define REPORT_PLOTS_MAX      24
#define UNDRAWN_MAX           24
#define NODES_DRAWN           3 /* pairs of NUMA nodes: the best, the one in the middle, the worst */
#define SCALING_PLOTS_MAX     12 /* beside them */
#define FIGURES_MAX           (REPORT_PLOTS_MAX + SCALING_PLOTS_MAX)

/* What a line of a plot is: its label without the run's name, and the run. */
struct figure_line {
    const char *series;
    const char *origin; /* " (simulated)" where a value of it was not measured, else "" */
    size_t run;
};

/* Among the plots, or in the section on scaling. */
enum figure_place { FIGURE_AMONG_PLOTS, FIGURE_OF_SCALING };

/* A plot with what the page says about it. */
struct figure {
    struct plot plot;
    struct figure_line *lines; /* one a line of the plot */
    const struct report_bench *bench;
    const char *heading, *subtitle; /* "gemm throughput (GFLOP/s)", "dtype f64, threads 2" */
    const char *note;               /* what the metric is; what was left out, and why; or "" */
    enum figure_place place;
    bool caches, limits; /* are marked */
    unsigned rank;       /* less is drawn before; FIGURE_ASIDE: what it costs beside, folded away */
};

#define FIGURE_ASIDE 1000

/* Values of one metric that make no chart: one alone, or nothing but 0. */
struct undrawn {
    const struct report_bench *bench;
    const struct report_case *c; /* the first of them */
    size_t n;
};

struct figures {
    struct figure all[FIGURES_MAX];
    size_t n;
    struct undrawn undrawn[UNDRAWN_MAX];
    size_t n_undrawn;
    const char *left_out; /* a sentence on plots that are not there, or "" */
};

/* Everything lives in the report's pool. */
void figures_make(struct report *r, struct figures *out);

/* The parameters of a group of cases as dimensions: which values there are, which parameters say
 * something of their own, and which follow from others. */

struct dimension {
    size_t param;        /* of the benchmark */
    const char **values; /* each once: by size where all are numbers, else in the suite's order */
    double *numbers;     /* of the values; NULL where one is no number */
    size_t n_values;
    size_t *of_case; /* index in values, for each case of the group */
};

/* A partition of the cases: of_case[i] is below n. */
struct classes {
    size_t *of_case, n;
};

/* The cases of one benchmark and metric, and how they are cut into plots; between series.c, which
 * plans, and figure.c, which draws. */

struct group {
    struct report *r;
    const struct report_bench *bench;
    const struct bench_plot *hint; /* or NULL */
    const char *metric, *unit;
    const char *gpu_drawn; /* whose cases stand for those of other GPUs; "": all are drawn */
    size_t other_gpus;     /* how many these are */
    /* Of many pairs of NUMA nodes, cases of those that are drawn; and how many there are */
    const struct report_case *nodes_drawn[NODES_DRAWN];
    size_t node_pairs;
    bool gpu;    /* the cases on GPUs; else the others */
    bool listed; /* the hint's x does not say all: the cases are listed */
    enum figure_place place;
    const char *name;                /* of the files; NULL: by benchmark and metric */
    const struct overlays *overlays; /* what is drawn beside its values; NULL: nothing */
    size_t *cases, n;
    struct dimension *dims;    /* one a parameter */
    const struct dimension *x; /* NULL: the cases are listed */
    const struct dimension **lines, **facets;
    size_t n_lines, n_facets;         /* dimensions */
    struct classes facet_of, line_of; /* classes of the cases */
};

/* Lines beside those of the values, one or none of a series: what a model says, and the ideal. A plot
 * that has them shows points with two levels as two, and no limit. */
struct overlays {
    const struct scaling_series *const *series;
    size_t n;
};

/* The most lines in one plot, each of which every run has. */
size_t group_lines_max(const struct group *g);

/* Chooses what x, lines and, among the plots, facets are of the group's cases. */
void group_plan(struct group *g);

/* The figure of one facet. False: it has fewer than two values, or 0 alone, of which the rows say
 * as much. */
bool figure_make(const struct group *g, size_t facet, size_t number, struct figure *f);

/* ---- A plot while it is made: figure_lines.c puts the values in, figure.c the rest ---- */

#define LIMITS_MAX 6

struct figure_drawing {
    const struct group *g;
    struct pool *pool;
    size_t facet;
    struct figure *f;
    struct plot_line *lines;
    struct plot_point **points; /* of each line */
    size_t room;                /* for lines */
    size_t *colours;            /* of each class of lines; SIZE_MAX: it is not drawn */
    struct plot_tick *ticks;
    struct plot_row *rows;
    struct plot_mark *marks;
    const char *unit; /* of the values' axis */
    double low, high; /* of the values; NaN: none yet */
    double top;       /* of the values and their intervals */
    double limits[LIMITS_MAX + 1];
    double limit_from[LIMITS_MAX + 1], limit_to[LIMITS_MAX + 1]; /* x of the points that have it */
    size_t n_limits;
    size_t lines_left_out, empty_lines;
};

static inline const struct report_case *drawing_case(const struct group *g, size_t i)
{
    return &g->bench->cases[g->cases[i]];
}

/* Another line with so many points at most; NULL: there is no room. */
struct plot_line *drawing_add_line(struct figure_drawing *d, const struct figure_line *named,
                                   const char *label, size_t colour, size_t n);
void drawing_note(struct figure_drawing *d, double y);
/* What the group's overlays draw. */
void drawing_add_overlays(struct figure_drawing *d);

/* The parameters that a listed shape is made of are shown together: 512x2304x768. */
bool drawing_is_of_shape(const struct group *g, size_t param);

/* The lines of the facet, in the order of the suite, and the ticks of x. */
void drawing_add_lines(struct figure_drawing *d);
/* Instead, where there is no x: every case is a place on the y axis, every run a line of points. */
void drawing_add_categories(struct figure_drawing *d);

#endif
