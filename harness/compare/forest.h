/* SPDX-License-Identifier: Apache-2.0 */
/* An interval drawn in characters, with the margin as a band behind it. */
#ifndef PLUMB_COMPARE_FOREST_H
#define PLUMB_COMPARE_FOREST_H

#include "harness/compare/view.h"

#define FOREST_COLUMNS_MAX 60
#define FOREST_BYTES       (FOREST_COLUMNS_MAX * 4 + 1)

/* Does this locale's encoding have more than ASCII: LC_ALL, LC_CTYPE, LANG, in their order? */
bool forest_locale_is_utf8(void);

/* The axis that all these cases are drawn on. */
struct view_axis forest_axis(const struct view *v);

/* `columns` characters. What lies outside of the axis is an arrow at its end. */
const char *forest_bar(const struct view_axis *axis, const struct decide_case *c, size_t columns,
                       bool utf8, char text[FOREST_BYTES]);

/* The line above the bars: the axis' ends, and 1 where it is. */
const char *forest_scale(const struct view_axis *axis, size_t columns, char text[FOREST_BYTES]);

/* "o the ratio, - its interval, . the margin" */
const char *forest_legend(bool utf8);

#endif
