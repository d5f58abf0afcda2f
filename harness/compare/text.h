/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison in characters, for a terminal and inside of Markdown. */
#ifndef PLUMB_COMPARE_TEXT_H
#define PLUMB_COMPARE_TEXT_H

#include "harness/compare/view.h"

struct text {
    FILE *out;
    struct view *v;
    size_t width; /* of a line */
    size_t most;  /* cases of a pipe; 0: as many as it has */
    bool utf8;
    bool all;    /* the equivalent cases, too */
    bool causes; /* say under a pipe what may weigh on it */
};

/* A line a case that is not equivalent, by pipe. */
void text_forest(const struct text *t);

/* First line at `indent`, the following ones deeper. */
void text_wrapped(const struct text *t, size_t indent, const char *text);

/* ---- An interval drawn in characters, with the margin as a band behind it ---- */

#define FOREST_COLUMNS_MAX 60
#define FOREST_BYTES       (FOREST_COLUMNS_MAX * 4 + 1)

/* Does this locale's encoding have more than ASCII: LC_ALL, LC_CTYPE, LANG, in their order? */
bool forest_locale_is_utf8(void);

/* The axis that all these cases are drawn on. */
struct view_axis forest_axis(const struct view *v);

/* `columns` characters. What lies outside of the axis is an arrow at its end. */
const char *forest_bar(const struct view_axis *axis, const struct decide_case *c, size_t columns,
                       bool utf8, char text[FOREST_BYTES]);

#endif
