/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chart as data, and its picture as SVG for a page: lines over an axis, named rows with values
 * and intervals (also as ratios around 1).
 *
 *   colours   text and axes are currentColor; those of lines, and of what needs an action, are
 *             classes of plot.css, so that dark and print work.
 *   sizes     two pictures are written, for a wide and a narrow screen. No label is cut and no two
 *             labels overlap: ticks that have no room are left out. No point of a line is left out;
 *             only its marker is, where it would hide the one before.
 *   tooltips  each marker has a title with the line's label, x, value and interval.
 *   texts     may hold anything: they are escaped.
 *
 * document_figure() (document.h) puts a chart into a document. plot_write_html() writes it alone,
 * plot_write_files() as files for a slide or a README.
 */
#ifndef PLUMB_DOCUMENT_PLOT_H
#define PLUMB_DOCUMENT_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "harness/document/pool.h"

/* Colour, in charts and in all else of a document, is for where someone should act. */
enum tone {
    TONE_NONE,
    TONE_LOW, /* low, worse, not to be trusted */
    TONE_BAD  /* failed, wrong data */
};

#define PLOT_COLOURS 8 /* the palette; further lines differ by marker and dash too */

struct plot_point {
    double x, y; /* y: the value; NaN: a gap. x: its place, a tick's where `categories` */
    double low,
        high; /* NaN: no interval is known, none is drawn; infinite: that end is unbounded */
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

/* A thin line across the plot, with a label at its end: a limit, a cache. */
struct plot_mark {
    double at;
    bool horizontal;           /* at a value; else at a place on x */
    double from, to;           /* of a horizontal one: where on x it holds; NaN: all over. Of one in
                                  a row (below), `to`: where what begins at it ends */
    const char *label, *brief; /* brief: where there is little room */
};

/* What is said of a row, where `categories`. */
struct plot_row {
    const char *note; /* beside the row: "-3.2 %, worse"; or NULL */
    enum tone tone;   /* colours its marker and its note */
    double limit;     /* marked in the row; 0: none */
};

struct plot {
    const char *name; /* of the files, without the ending: letters, digits, '-' and '_' only */
    /* axes with their units: "bandwidth (GB/s)". What the title has is not said again */
    const char *title, *x_label, *y_label;
    bool x_log, y_log, y_from_zero;
    bool x_bytes; /* x is a size: where it is logarithmic, its labels are at powers of two: 64K */
    /* the y axis names things, its ticks are all shown; x carries the values: bars from 0, or
     * markers where the axis has no 0 */
    bool categories;
    bool ratio; /* the values are ratios: their axis shows "-5 %", or "x2" where it is wide */
    const struct plot_tick *ticks; /* of x, or of y where `categories`; those that fit are shown */
    size_t n_ticks;
    const struct plot_row *rows; /* one a tick, where `categories`; or NULL */
    const struct plot_line *lines;
    size_t n_lines;
    const struct plot_mark *marks;
    size_t n_marks;
    double y_top;                 /* the value axis reaches at least there; 0: as the values need */
    double band_low, band_high;   /* shaded, as a margin around 1; both 0: none */
    double shown_low, shown_high; /* the value axis ends there, what lies beyond gets an arrow; 0 */
    const char *watermark;        /* "simulated"; NULL: none */
    /* A terminal draws the first line in a row of characters, and the marks on x under it, in place
     * of the lines' ranges. */
    bool in_a_row;
};

/* The legend and both pictures. */
void plot_write_html(struct pool *pool, const struct plot *plot, FILE *out);

/* One picture: well-formed XML. */
void plot_write_svg(struct pool *pool, const struct plot *plot, bool narrow, FILE *out);

/* Each as NAME.svg in the folder, which is made if it is not there, with its title and its legend.
 * 0, or -EIO with a sentence in error. */
int plot_write_files(struct pool *pool, const struct plot *plots, size_t n, const char *folder,
                     char *error, size_t len);

/* "10.2 to 25.3 over 64K to 1G, 24 points": what is said of a line where no picture can be; "" of a
 * line without a value. */
const char *plot_range_text(struct pool *pool, const struct plot *plot,
                            const struct plot_line *line);

/* What the picture shows, in words: the axes, and the range of each line. */
const char *plot_description(struct pool *pool, const struct plot *plot);

#endif
