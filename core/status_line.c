/* SPDX-License-Identifier: Apache-2.0 */
/* The line of a measurement that goes on: see status_line.h. */
#include "core/status_line.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LABEL_LEAST 10 /* columns for the label; rather than less, something else goes */

/* Whole words of the label in so many columns. */
static int label_bytes(const char *label, size_t room)
{
    size_t n = strlen(label);

    while (n > room) {
        while (n && label[n - 1] != ' ')
            n--;
        while (n && label[n - 1] == ' ')
            n--;
    }
    return (int)n;
}

static void time_left(double left_s, bool is_long, char *text, size_t len)
{
    unsigned s = (unsigned)(left_s + 0.5);
    const char *about = is_long ? "   about " : "  ";

    if (s >= 3600)
        snprintf(text, len, "%s%u:%02u:%02u left", about, s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, len, "%s%u:%02u left", about, s / 60, s % 60);
}

const char *status_line(const struct status_line *s, size_t width, char text[STATUS_LINE_BYTES])
{
    /* What goes first where there is no room. */
    static const struct {
        bool whole, estimate, left, is_long; /* whole: the label */
    } shapes[] = {{true, true, true, true},
                  {true, true, true, false},
                  {false, true, true, false},
                  {false, false, true, false},
                  {0}};
    size_t digits = (size_t)snprintf(text, STATUS_LINE_BYTES, "%zu", s->total);

    width = width < STATUS_LINE_BYTES ? width : STATUS_LINE_BYTES - 1;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        char left[32] = "";
        size_t n = strlen(s->label), least = shapes[i].whole || n < LABEL_LEAST ? n : LABEL_LEAST;
        bool has_estimate = shapes[i].estimate && *s->estimate;

        if (shapes[i].left && isfinite(s->left_s))
            time_left(s->left_s, shapes[i].is_long, left, sizeof(left));
        size_t others = 2 * digits + strlen("[/] ") + strlen(left) +
                        (has_estimate ? strlen("  ") + strlen(s->estimate) : 0);
        if (others + least > width)
            continue;
        snprintf(text, STATUS_LINE_BYTES, "[%*zu/%zu] %.*s%s%s%s", (int)digits, s->done, s->total,
                 label_bytes(s->label, width - others), s->label, has_estimate ? "  " : "",
                 has_estimate ? s->estimate : "", left);
        return text;
    }
    text[0] = 0;
    return text;
}
