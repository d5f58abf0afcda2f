/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison in characters, for a terminal and inside of Markdown; between text.c, text_forest.c and markdown.c. */
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

#endif
