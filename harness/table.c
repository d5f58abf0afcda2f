/* SPDX-License-Identifier: Apache-2.0 */
/* Reading CSV: see table.h. */
#include "harness/table.h"

#include <csv.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/row.h"
#include "core/units.h"
#include "harness/text.h"

/*
 * libcsv is given one line at a time, so that the offset of each row's end is known: a row ends
 * with the line in which it is reported. A line in which none is reported lies inside quotes, or is
 * empty.
 */
struct reader {
    const char *name;
    struct table *t;
    size_t n_cells;
    size_t row_cells; /* cells of the row that is being read; they are the last of n_cells */
    size_t used;      /* bytes of t->texts */
    size_t line, line_end;
    size_t rows_in_line;
    bool in_row;
    char *error;
    size_t len;
    int status;
};

__attribute__((format(printf, 2, 3))) static int damaged(struct reader *r, const char *format, ...)
{
    va_list args;
    int n;

    if (r->status)
        return r->status;
    n = snprintf(r->error, r->len, "\"%s\" is damaged at line %zu: ", r->name, r->line);
    va_start(args, format);
    if (n >= 0 && (size_t)n < r->len)
        vsnprintf(r->error + n, r->len - (size_t)n, format, args);
    va_end(args);
    return r->status = -EBADMSG;
}

/* The texts of all cells with their ends fit in the source's size and one: each but the last is
 * followed by a comma or a line end. */
static void on_field(void *text, size_t size, void *arg)
{
    struct reader *r = arg;

    if (r->status)
        return;
    *ARRAY_ADD(r->t->cells, r->n_cells) = r->t->texts + r->used;
    if (size)
        memcpy(r->t->texts + r->used, text, size);
    r->used += size;
    r->t->texts[r->used++] = 0;
    r->row_cells++;
}

static int take_header(struct reader *r)
{
    struct table *t = r->t;

    for (size_t i = 0; i < r->row_cells; i++) {
        if (!*t->cells[i])
            return damaged(r, "column %zu has no name", i + 1);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(t->cells[i], t->cells[k]))
                return damaged(r, "column \"%s\" is there twice", t->cells[i]);
    }
    t->columns = t->cells;
    t->n_columns = r->row_cells;
    t->header_end = r->line_end;
    t->cells = NULL;
    r->n_cells = 0;
    return 0;
}

static int take_row(struct reader *r)
{
    struct table *t = r->t;

    if (r->row_cells != t->n_columns)
        return damaged(r, "%zu cells where the header has %zu", r->row_cells, t->n_columns);
    *ARRAY_ADD(t->ends, t->n_rows) = r->line_end;
    return 0;
}

static void on_row(int end, void *arg)
{
    struct reader *r = arg;

    (void)end;
    if (r->status)
        return;
    if (r->rows_in_line++)
        damaged(r, "a carriage return inside a line");
    else if (r->t->columns)
        take_row(r);
    else
        take_header(r);
    r->row_cells = 0;
}

/* Blanks belong to the cell. */
static int no_space(unsigned char c)
{
    (void)c;
    return 0;
}

static int read_line(struct reader *r, struct csv_parser *parser, const char *line, size_t size)
{
    r->rows_in_line = 0;
    if (csv_parse(parser, line, size, on_field, on_row, r) != size && !r->status) {
        if (csv_error(parser) != CSV_EPARSE)
            alloc_fail(size);
        return damaged(r, "a quote where none may be");
    }
    if (!r->status && !r->rows_in_line && !r->in_row && line[strspn(line, "\r")] == '\n')
        return damaged(r, "an empty line");
    r->in_row = !r->rows_in_line;
    return r->status;
}

static int read_lines(struct reader *r, struct csv_parser *parser, const char *data, size_t size)
{
    const char *end = data;
    size_t at = 0;

    while (!r->status && at < size && (end = memchr(data + at, '\n', size - at))) {
        r->line++;
        r->line_end = (size_t)(end - data) + 1;
        read_line(r, parser, data + at, r->line_end - at);
        at = r->line_end;
    }
    if (!r->status && at < size)
        r->in_row = true;
    return r->status;
}

static int refuse_nul(struct reader *r, const char *data, size_t size)
{
    const char *nul = size ? memchr(data, 0, size) : NULL;

    if (!nul)
        return 0;
    for (const char *c = data; c < nul; c++)
        r->line += *c == '\n';
    r->line++;
    return damaged(r, "a NUL byte");
}

/* What is left at the end: nothing, or a row that was not finished. */
static int settle_end(struct reader *r, int *torn)
{
    if (torn) {
        *torn = r->in_row;
        r->n_cells -= r->row_cells;
        return 0;
    }
    if (r->in_row)
        return damaged(r, "it ends inside this row: the file was cut off");
    if (!r->t->columns) {
        r->line = 1;
        return damaged(r, "there is no header");
    }
    return 0;
}

static int parse_table(struct reader *r, const char *data, size_t size, int *torn)
{
    struct csv_parser parser;

    *r->t = (struct table){.texts = xrealloc(NULL, size + 1)};
    if (torn)
        *torn = 0;
    csv_init(&parser, CSV_STRICT);
    csv_set_space_func(&parser, no_space);
    if (!refuse_nul(r, data, size) && !read_lines(r, &parser, data, size))
        settle_end(r, torn);
    csv_free(&parser);
    if (r->status)
        table_release(r->t);
    return r->status;
}

int table_parse(const char *name, const char *data, size_t size, struct table *t, char *error,
                size_t len)
{
    struct reader r = {.name = name, .t = t, .error = error, .len = len};

    return parse_table(&r, data, size, NULL);
}

int table_parse_tail(const char *name, const char *data, size_t size, struct table *t, int *torn,
                     char *error, size_t len)
{
    struct reader r = {.name = name, .t = t, .error = error, .len = len};

    return parse_table(&r, data, size, torn);
}

int table_load(const char *path, struct table *t, char *error, size_t len)
{
    struct buffer text = {0};
    int err = file_read(path, SIZE_MAX / 4, &text);

    *t = (struct table){0};
    if (err)
        snprintf(error, len, "cannot read \"%s\": %s", path, strerror(-err));
    else
        err = table_parse(path, text.text, text.size, t, error, len);
    buffer_release(&text);
    return err;
}

void table_keep(struct table *t, const bool *keep)
{
    size_t n = 0;

    for (size_t row = 0; row < t->n_rows; row++) {
        if (!keep[row])
            continue;
        memmove(t->cells + n * t->n_columns, t->cells + row * t->n_columns,
                t->n_columns * sizeof(char *));
        t->ends[n++] = t->ends[row];
    }
    t->n_rows = n;
}

size_t table_add_row(struct table *t)
{
    static char empty[] = "";
    size_t end = t->n_rows ? t->ends[t->n_rows - 1] : t->header_end;

    t->cells = xrealloc(t->cells, (t->n_rows + 1) * t->n_columns * sizeof(*t->cells));
    for (size_t i = 0; i < t->n_columns; i++)
        t->cells[t->n_rows * t->n_columns + i] = empty;
    *ARRAY_ADD(t->ends, t->n_rows) = end;
    return t->n_rows - 1;
}

void table_set(struct table *t, size_t row, const char *column, const char *text)
{
    size_t i = table_column(t, column);

    if (i != TABLE_NO_COLUMN)
        t->cells[row * t->n_columns + i] = *ARRAY_ADD(t->set, t->n_set) = xstrdup(text);
}

void table_release(struct table *t)
{
    for (size_t i = 0; i < t->n_set; i++)
        free(t->set[i]);
    free(t->set);
    free(t->columns);
    free(t->cells);
    free(t->ends);
    free(t->texts);
    *t = (struct table){0};
}

size_t table_column(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (!strcmp(t->columns[i], name))
            return i;
    return TABLE_NO_COLUMN;
}

const char *table_cell(const struct table *t, size_t row, size_t column)
{
    return column == TABLE_NO_COLUMN ? "" : t->cells[row * t->n_columns + column];
}

const char *table_text(const struct table *t, size_t row, const char *name)
{
    return table_cell(t, row, table_column(t, name));
}

const char *table_param(const struct table *t, size_t row, const char *name)
{
    char column[64];
    const char *chosen = "";

    if (snprintf(column, sizeof(column), "%s%s", name, ROW_USED) < (int)sizeof(column))
        chosen = table_text(t, row, column);
    return *chosen ? chosen : table_text(t, row, name);
}

double table_number(const struct table *t, size_t row, const char *name)
{
    double value;

    return units_parse_double(table_text(t, row, name), &value) ? NAN : value;
}
