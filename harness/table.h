/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading CSV: a whole file or buffer into a table of texts, by libcsv, with the checks that tell a
 * damaged file from a good one.
 *
 * All texts lie in one block owned by the table. Numbers are read when asked for; an empty cell is
 * NaN: not measured.
 */
#ifndef PLUMB_TABLE_H
#define PLUMB_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table {
    char **columns;
    size_t n_columns;
    char **cells; /* n_rows * n_columns, row by row */
    size_t n_rows;
    size_t *ends; /* byte offset in the source just behind each row, for cutting off a torn tail */
    size_t header_end;
    char *texts; /* what the cells point into */
    char **set;  /* what table_set() put there */
    size_t n_set;
};

#define TABLE_NO_COLUMN ((size_t)-1)

/* 0; -EBADMSG: damaged (error says where and what): no header, a row with another number of cells,
 * a quote that is not closed, a NUL byte, a column twice, or a last line without its end; -ENOENT
 * and other -errno of reading. *t is empty on an error. */
int table_load(const char *path, struct table *t, char *error, size_t len);
int table_parse(const char *name, const char *data, size_t size, struct table *t, char *error,
                size_t len);

/* The same, but a torn last row (a writer was killed) is left out, and *torn says so. Nothing at
 * all, or a torn header, is a table without columns. */
int table_parse_tail(const char *name, const char *data, size_t size, struct table *t, int *torn,
                     char *error, size_t len);

/* Leaves in the table only the rows whose keep[] is set. */
void table_keep(struct table *t, const bool *keep);

/* Adds a row of empty cells, and returns its number. It is in no source: its end is that of the row
 * before it. */
size_t table_add_row(struct table *t);
/* Replaces a cell; without such a column nothing is done. */
void table_set(struct table *t, size_t row, const char *column, const char *text);

void table_release(struct table *t);

size_t table_column(const struct table *t,
                    const char *name); /* TABLE_NO_COLUMN when there is none */
const char *table_cell(const struct table *t, size_t row,
                       size_t column); /* "" for TABLE_NO_COLUMN */
const char *table_text(const struct table *t, size_t row, const char *name);
/* The same of a parameter: where it was left to the benchmark, what that chose (core/row.h). */
const char *table_param(const struct table *t, size_t row, const char *name);
double table_number(const struct table *t, size_t row,
                    const char *name); /* NaN: empty, no such column, or no number */

#endif
