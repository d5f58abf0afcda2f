// SPDX-License-Identifier: Apache-2.0
/* Lays out a table once all of it is known. */
#include "harness/probe/grid.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int grid_init(struct grid *table, const char *heading)
{
    *table = (struct grid){.columns = 1};
    for (const char *c = heading; *c; c++)
        table->columns += *c == '|';
    while (heading) {
        const char *bar = strchr(heading, '|');

        grid_cell(table, "%.*s", (int)(bar ? (size_t)(bar - heading) : strlen(heading)), heading);
        heading = bar ? bar + 1 : NULL;
    }
    return table->cell ? 0 : -ENOMEM;
}

void grid_release(struct grid *table)
{
    free(table->cell);
    *table = (struct grid){0};
}

static bool grid_grow(struct grid *table)
{
    char(*more)[GRID_CELL];

    if (table->filled < table->rows * table->columns)
        return true;
    more = realloc(table->cell, (table->rows + 1) * table->columns * sizeof(*more));
    if (!more)
        return false;
    table->cell = more;
    table->rows++;
    return true;
}

void grid_cell(struct grid *table, const char *format, ...)
{
    va_list args;
    int length;

    if (!grid_grow(table))
        return;
    va_start(args, format);
    length = vsnprintf(table->cell[table->filled], GRID_CELL, format, args);
    va_end(args);
    if (length >= GRID_CELL)
        strcpy(table->cell[table->filled] + GRID_CELL - 4, "...");
    table->filled++;
}

static const char *cell_at(const struct grid *table, size_t row, size_t column)
{
    size_t i = row * table->columns + column;

    return i < table->filled ? table->cell[i] : "";
}

/* The width of a column; 0 where it says nothing. */
static int column_width(const struct grid *table, size_t column)
{
    size_t width = strlen(cell_at(table, 0, column));
    bool says = false;

    for (size_t row = 1; row < table->rows; row++) {
        const char *text = cell_at(table, row, column);

        says = says || strcmp(text, "-");
        width = strlen(text) > width ? strlen(text) : width;
    }
    return says ? (int)width : 0;
}

void grid_print(FILE *out, const struct grid *table)
{
    int width[GRID_COLUMNS];
    size_t last = 0;

    for (size_t i = 0; i < table->columns && i < GRID_COLUMNS; i++) {
        width[i] = column_width(table, i);
        last = width[i] ? i : last;
    }
    for (size_t row = 0; row < table->rows; row++) {
        fputs("  ", out);
        for (size_t i = 0; i < last; i++)
            if (width[i])
                fprintf(out, "%-*s  ", width[i], cell_at(table, row, i));
        fprintf(out, "%s\n", cell_at(table, row, last));
    }
}
