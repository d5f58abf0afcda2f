/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a chart that plot.c puts together: axes and their ticks (plot_scale.c), texts
 * (plot_words.c). */
#ifndef PLUMB_DOCUMENT_PLOT_PARTS_H
#define PLUMB_DOCUMENT_PLOT_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/document/plot.h"

struct scale {
    double low, high; /* values; on a logarithmic axis above 0, and low < high */
    bool log;
    double from, to; /* in the picture: where low and high lie */
};

/* Where a value lies in the picture. */
double scale_at(const struct scale *s, double value);

/* Is it a number that the axis of values can have? */
bool plot_shows(const struct plot *p, double value);
/* The range of the values of a chart, and of the places along its x axis: low < high. */
void scale_of_values(const struct plot *p, struct scale *s);
void scale_of_places(const struct plot *p, struct scale *s);

#define SCALE_TICKS_MAX 24

struct scale_ticks {
    double at[SCALE_TICKS_MAX];
    const char *labels[SCALE_TICKS_MAX];
    size_t n;
};

/* At most `most` ticks (3 at the least), at round values. Unless fixed, low and high of the scale
 * go out to ticks. ratio: the values are ratios, and the labels their changes: "-5 %", "x2". */
void scale_ticks(struct pool *pool, struct scale *s, size_t most, bool ratio, bool fixed,
                 struct scale_ticks *ticks);

/* Of a logarithmic axis of sizes: at powers of two, "64K". */
void scale_byte_ticks(struct pool *pool, const struct scale *s, size_t most,
                      struct scale_ticks *ticks);

/* No font of a page draws the text wider, in sans-serif of this size. */
double text_width(const char *text, double font);

/* The text, cut to a width with "..." at its end. */
const char *text_cut(struct pool *pool, const char *text, double font, double width);

/* "triad: size (bytes) 64K, 12.3 (12.1 to 12.4)": the tooltip of a point. */
const char *plot_point_text(struct pool *pool, const struct plot *plot,
                            const struct plot_line *line, const struct plot_point *point);

#endif
