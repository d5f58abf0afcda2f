/* SPDX-License-Identifier: Apache-2.0 */
/* A record as named values, in one order, from which its line of CSV and its JSON are both written:
 * what a value is called, and when it is missing, is said once. */
#ifndef PLUMB_DOCUMENT_RECORD_H
#define PLUMB_DOCUMENT_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "harness/document/pool.h"

enum record_kind {
    RECORD_TEXT,
    RECORD_NUMBER,
    RECORD_COUNT,
    RECORD_YES /* CSV: yes, no */
};

/* A value that is missing is an empty cell, and null. */
struct record_field {
    const char *name;
    enum record_kind kind;
    const char *text; /* RECORD_TEXT; NULL: missing */
    double number;    /* the others; NaN: missing */
};

struct record_field record_text(const char *name, const char *text);
struct record_field record_number(const char *name, double value); /* infinite: missing */
struct record_field record_count(const char *name, size_t count);
struct record_field record_yes(const char *name, bool yes);
struct record_field record_missing(const char *name);

void record_csv_head(FILE *out, const struct record_field *fields, size_t n); /* a whole line */
void record_csv(FILE *out, const struct record_field *fields, size_t n);
/* Adds them to the object. */
void record_json(struct pool *pool, json_t *object, const struct record_field *fields, size_t n);

/* A text out of a file, as valid UTF-8; NULL: null. */
json_t *json_text(struct pool *pool, const char *text);
json_t *json_number(double value); /* NaN, infinite: null */
/* Indented, with a newline behind it; the object is released. 0 or -EIO. */
int json_write(json_t *object, FILE *out);

#endif
