/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plots by gnuplot: a few numbers and words in, pictures out.
 *
 * For each plot: NAME.svg and NAME.png with a legend, to be shown by themselves, and two SVG
 * fragments without a legend to be put into a page, one for a wide and one for a narrow screen. The
 * fragments take their colours from the page: text and axes are currentColor, lines
 * var(--series-0..7), the grid var(--grid); their markers are defined once, by
 * plot_svg_definitions. All is written by one script, plots.gp, which stays beside the pictures:
 * `gnuplot plots.gp` in that folder draws the files again.
 *
 * Texts may hold anything: they reach gnuplot in single quotes, in which it interprets nothing.
 */
#ifndef PLUMB_HARNESS_PLOT_H
#define PLUMB_HARNESS_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define PLOT_COLOURS 8 /* the palette; further lines differ by marker and dash too */

struct plot_point {
    double x, y;      /* y NaN: a gap in the line */
    double low, high; /* NaN: no interval is known, none is drawn */
};

struct plot_line {
    const char *label;
    const struct plot_point *points;
    size_t n;
    size_t colour, marker; /* any number: taken modulo what there is */
    bool dashed;           /* dashed line, open markers: the second of two runs */
    bool plain;            /* no markers: not measured, but what a model says */
    bool apart;            /* markers alone: values that no line belongs between */
};

struct plot_tick {
    double at;
    const char *label;
};

/* A thin line across the plot, with a label at its end. */
struct plot_mark {
    double at;
    bool horizontal;
    double from, to;           /* of a horizontal one: where on x it holds; NaN: all over */
    const char *label, *brief; /* brief: where there is little room */
};

struct plot {
    const char *name; /* of the files, without the ending: letters, digits, '-' and '_' only */
    const char *title, *x_label, *y_label;
    bool x_log, y_log, y_from_zero;
    bool categories; /* the y axis names things, its ticks are all shown; x carries the values */
    const struct plot_tick *ticks; /* of x, or of y where `categories`; those that fit are shown */
    size_t n_ticks;
    const struct plot_line *lines;
    size_t n_lines;
    const struct plot_mark *marks;
    size_t n_marks;
    double y_top;          /* the value axis reaches at least there; 0: as the values need */
    const char *watermark; /* NULL: none */
};

struct plot_picture {
    char *wide, *narrow; /* SVG */
};

/* Draws into `folder`, which is there already. pictures[i] is the caller's to release, whatever is
 * returned. 0; -ENOENT: there is no gnuplot; -EIO: gnuplot did not draw, error says what it said;
 * other -errno: a file could not be written. */
int plot_draw(const struct plot *plots, size_t n, const char *folder, struct plot_picture *pictures,
              char *error, size_t len);
void plot_picture_release(struct plot_picture *picture);

extern const char *const plot_svg_definitions; /* one <svg>, not visible, for the page */

/* The colours of the page: light is what the files have. "#0072b2" */
extern const char *const plot_colours_light[PLOT_COLOURS];
extern const char *const plot_colours_dark[PLOT_COLOURS];

/* The gnuplot point type of a marker; its symbol in plot_svg_definitions is "gpPtN", N one less. */
int plot_marker_type(size_t marker, bool open);

/* A gnuplot SVG file made into a fragment for a page, without ids; the labels of plot->lines become
 * tooltips. A new text, or NULL when memory is short or it is no picture of gnuplot's. */
char *plot_svg_fragment(const char *svg, const struct plot *plot);

/* ---- The gnuplot script of plots; used by plot.c alone ---- */

#define PLOT_SCRIPT        "plots.gp"
#define PLOT_SCRIPT_INLINE ".pages.gp"

/* pages: the fragments for a page (.NAME.wide.svg, .NAME.narrow.svg); else the files NAME.svg and
 * NAME.png. */
void plot_script_write(FILE *out, const struct plot *plots, size_t n, bool pages);

#endif
