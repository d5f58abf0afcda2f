// SPDX-License-Identifier: Apache-2.0
/* A small table of text whose columns are as wide as their widest cell. */
#ifndef PLUMB_PROBE_GRID_H
#define PLUMB_PROBE_GRID_H

#include <stddef.h>
#include <stdio.h>

enum { GRID_COLUMNS = 20, GRID_CELL = 48 };

struct grid {
    size_t columns;
    size_t rows;
    char (*cell)[GRID_CELL]; /* rows x columns */
    size_t filled;           /* cells written so far */
};

/* The first row is the heading: its cells, separated by '|'. Returns 0 or -ENOMEM. */
int grid_init(struct grid *table, const char *heading);
void grid_release(struct grid *table);

/* Writes the next cell, from left to right; a new row begins by itself. Long text ends in "...". */
void grid_cell(struct grid *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Columns in which every cell below the heading is "-" are left out. */
void grid_print(FILE *out, const struct grid *table);

#endif
