/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of probe_print(). Each reads one part of the object and prints it, with its heading. */
#ifndef PLUMB_PROBE_PRINT_H
#define PLUMB_PROBE_PRINT_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* The text under key, or "?". */
const char *print_text(const json_t *object, const char *key);

/* The number under key, or "?". */
const char *print_integer(const json_t *object, const char *key, char buf[24]);

/* Bytes as "32 KiB", "23.5 GiB". */
const char *print_bytes(double bytes, char buf[32]);

/* The line of a section: two blanks, the label in a column of its own, the text. */
void print_line(FILE *out, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void print_pci(FILE *out, const json_t *machine);
void print_network(FILE *out, const json_t *machine);
void print_rdma(FILE *out, const json_t *machine);
void print_gpus(FILE *out, const json_t *machine);
void print_findings(FILE *out, const json_t *machine);

/* ---- A small table of text whose columns are as wide as their widest cell ---- */

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
