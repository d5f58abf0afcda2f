/* SPDX-License-Identifier: Apache-2.0 */
/* Text: fields of CSV, and lines that fit a terminal. */
#ifndef PLUMB_CORE_TEXT_H
#define PLUMB_CORE_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* ---- Writing CSV (RFC 4180). Reading is the harness' affair. ---- */

/* One field, quoted if it holds , " CR or LF; NULL prints nothing. */
void csv_print(FILE *out, const char *field);
void csv_print_number(FILE *out, double value); /* nine digits; NaN prints nothing: not measured */
/* Flushes, and closes what is not stdout. 0, or -errno where not all of it was written, which the
 * caller says. */
int stream_finish(FILE *out);
/* A string of JSON, with its quotes. Texts may hold any bytes: what is not UTF-8 becomes '?'. */
void json_print(FILE *out, const char *text);

/* ---- Lines that fit a terminal: broken at blanks, never inside a word or a number ---- */

#define WRAP_DEFAULT 100 /* columns, where there is no terminal to ask */

/* Columns of the terminal that `out` is, or WRAP_DEFAULT. */
size_t wrap_width(FILE *out);

/* Columns that the first n bytes of `text` take: characters of UTF-8. */
size_t wrap_columns(const char *text, size_t n);

/* How many bytes of `text` fit a line of `width` columns: up to a blank, or all of it. A word that
 * is longer stays whole. What follows begins at text + *next. */
size_t wrap_take(const char *text, size_t width, size_t *next);

/* Prints `text` as lines of at most `width` columns, each after `indent` blanks. */
void wrap_print(FILE *out, const char *text, size_t indent, size_t width);

#endif
