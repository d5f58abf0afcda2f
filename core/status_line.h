/* SPDX-License-Identifier: Apache-2.0 */
/* How far a measurement is, as one line of a terminal that is drawn again and again. */
#ifndef PLUMB_CORE_STATUS_LINE_H
#define PLUMB_CORE_STATUS_LINE_H

#include <stddef.h>

#define STATUS_LINE_BYTES 320
#define STATUS_ESTIMATE   64 /* bytes of an estimate's text */

/* The file, by its path, to which a benchmark writes its estimate while it measures; the text of
 * STATUS_ESTIMATE bytes ends with 0. Set by a harness that shows it. */
#define STATUS_ESTIMATE_ENV "PLUMB_ESTIMATE"

struct status_line {
    size_t done, total;   /* cases */
    const char *label;    /* of the case at work: "memory triad DRAM" */
    const char *estimate; /* so far: "42.9 GB/s +/- 2.4 %"; "" */
    double left_s;        /* NaN: not known */
};

/* "[ 37/174] memory triad DRAM  42.9 GB/s +/- 2.4 %   about 1:10 left", in at most `width` columns:
 * where that is too long, whole words go. */
const char *status_line(const struct status_line *s, size_t width, char text[STATUS_LINE_BYTES]);

#endif
