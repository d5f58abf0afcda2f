/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target of the CSV reader. Beside not crashing: what it accepts reads the same after it was
 * written again, each row's end is where a shorter file would end whole, and the tail reader agrees
 * with the strict one.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "harness/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth, const char *what)
{
    if (truth)
        return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

/* An empty text in a table of one column has no text of its own in CSV, but quotes. */
static void print_cell(FILE *out, const struct table *t, const char *cell)
{
    if (t->n_columns == 1 && !*cell)
        fputs("\"\"", out);
    else
        csv_print(out, cell);
}

static char *written(const struct table *t, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);

    require(out != NULL, "memory");
    for (size_t i = 0; i < t->n_columns; i++) {
        print_cell(out, t, t->columns[i]);
        fputc(i + 1 < t->n_columns ? ',' : '\n', out);
    }
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        print_cell(out, t, t->cells[i]);
        fputc((i + 1) % t->n_columns ? ',' : '\n', out);
    }
    fclose(out);
    return text;
}

static void require_same(const struct table *a, const struct table *b)
{
    require(a->n_columns == b->n_columns && a->n_rows == b->n_rows, "the same shape");
    for (size_t i = 0; i < a->n_columns; i++)
        require(!strcmp(a->columns[i], b->columns[i]), "the same columns");
    for (size_t i = 0; i < a->n_rows * a->n_columns; i++)
        require(!strcmp(a->cells[i], b->cells[i]), "the same cells");
}

static void check_accepted(const struct table *t, const char *data, size_t size)
{
    char error[256], *text;
    struct table again;
    size_t n;
    int torn;

    require(t->n_columns > 0 && (t->n_rows ? t->ends[t->n_rows - 1] : t->header_end) == size,
            "the last row ends the file");
    text = written(t, &n);
    require(!table_parse("again", text, n, &again, error, sizeof(error)), "it reads its own");
    require_same(t, &again);
    table_release(&again);
    free(text);
    require(!table_parse_tail("tail", data, size, &again, &torn, error, sizeof(error)) && !torn,
            "a whole file is not torn");
    require_same(t, &again);
    table_release(&again);
}

static void check_tail(const char *data, size_t size)
{
    struct table tail, whole;
    char error[256] = "";
    size_t end;
    int torn;

    if (table_parse_tail("tail", data, size, &tail, &torn, error, sizeof(error))) {
        require(strstr(error, "\"tail\" is damaged at line ") == error, "a message");
        return;
    }
    end = tail.n_rows ? tail.ends[tail.n_rows - 1] : tail.header_end;
    require(torn ? end < size : end == size, "torn says whether something is left");
    if (tail.n_columns) {
        require(!table_parse("cut", data, end, &whole, error, sizeof(error)),
                "cut at the last end, the file is whole");
        require_same(&tail, &whole);
        table_release(&whole);
    }
    table_release(&tail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct table t;
    char error[256] = "";

    if (!table_parse("fuzz", (const char *)data, size, &t, error, sizeof(error)))
        check_accepted(&t, (const char *)data, size);
    else
        require(*error != 0, "an error has a message");
    table_release(&t);
    check_tail((const char *)data, size);
    return 0;
}
