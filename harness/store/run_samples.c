/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of a run folder: see run_folder.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "harness/store/run_folder.h"
#include "harness/text.h"

#define FILE_BYTES_MAX ((size_t)16 << 30)

struct error {
    char *text;
    size_t len;
};

__attribute__((format(printf, 3, 4))) static int fail(struct error e, int code, const char *format,
                                                      ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(e.text, e.len, format, args);
    va_end(args);
    return code;
}

struct wanted {
    const char *case_id, *repeat;
    size_t row, columns[3];
};

static bool is_wanted(const struct table *t, char *const *cells, void *arg)
{
    struct wanted *w = arg;
    uint64_t row;

    for (size_t i = 0; i < 3; i++)
        w->columns[i] = table_column(t, (const char *[]){"case", "repeat", "row"}[i]);
    for (size_t i = 0; i < 3; i++)
        if (w->columns[i] == TABLE_NO_COLUMN)
            return true; /* seen, and refused, when the table is there */
    return !strcmp(cells[w->columns[0]], w->case_id) && !strcmp(cells[w->columns[1]], w->repeat) &&
           !units_parse_u64(cells[w->columns[2]], &row) && row == w->row;
}

/* The number of samples that the row itself speaks of; 0 when there is no such row. */
static uint64_t samples_promised(const struct run_folder *run, const char *bench,
                                 const struct wanted *w)
{
    uint64_t samples = 0;
    size_t at = 0;

    for (size_t b = 0; b < run->n_benches; b++) {
        const struct table *rows = &run->benches[b].rows;

        for (size_t i = 0; !strcmp(run->benches[b].name, bench) && i < rows->n_rows; i++)
            if (!strcmp(table_text(rows, i, "case"), w->case_id) &&
                !strcmp(table_text(rows, i, "repeat"), w->repeat) && at++ == w->row)
                units_parse_u64(table_text(rows, i, "samples"), &samples);
    }
    return samples;
}

static int take_values(const struct table *t, const struct wanted *w, const char *path,
                       double **values, size_t *n, struct error e)
{
    size_t column = table_column(t, "value");

    if (!t->n_columns || column == TABLE_NO_COLUMN || w->columns[0] == TABLE_NO_COLUMN ||
        w->columns[1] == TABLE_NO_COLUMN || w->columns[2] == TABLE_NO_COLUMN)
        return fail(e, -EBADMSG, "\"%s\" is damaged: its columns are not case,repeat,row,value",
                    path);
    *values = malloc((t->n_rows + 1) * sizeof(**values));
    if (!*values)
        return fail(e, -ENOMEM, "out of memory");
    for (*n = 0; *n < t->n_rows; ++*n)
        if (units_parse_double(table_cell(t, *n, column), &(*values)[*n]))
            return fail(e, -EBADMSG, "\"%s\" is damaged: sample \"%s\" is no number", path,
                        table_cell(t, *n, column));
    return 0;
}

static int parse_samples(const struct run_folder *run, const char *bench, struct wanted *w,
                         const char *path, const struct buffer *text, double **values, size_t *n,
                         struct error e)
{
    uint64_t promised = samples_promised(run, bench, w);
    struct table t;
    int torn, err = table_parse_where(path, text->text, text->size, is_wanted, w, &t, &torn, e.text,
                                      e.len);

    if (err)
        return err;
    if (promised && !t.n_rows)
        err = fail(e, -ENOENT, "\"%s\" keeps no samples of case %s, repeat %s, row %zu", path,
                   w->case_id, w->repeat, w->row);
    else if (promised != t.n_rows)
        err = fail(e, -EBADMSG,
                   "\"%s\" is damaged: case %s, repeat %s, row %zu has %zu samples, its row says "
                   "%llu",
                   path, w->case_id, w->repeat, w->row, t.n_rows, (unsigned long long)promised);
    if (!err)
        err = take_values(&t, w, path, values, n, e);
    table_release(&t);
    return err;
}

int run_folder_samples(const struct run_folder *run, const char *bench, const char *case_id,
                       const char *repeat, size_t row, double **values, size_t *n, char *error,
                       size_t len)
{
    struct wanted w = {.case_id = case_id, .repeat = repeat, .row = row};
    struct error e = {error, len};
    struct buffer text = {0};
    char *path;
    int err;

    *values = NULL;
    *n = 0;
    if (asprintf(&path, "%s/samples/%s.csv", run->path, bench) < 0)
        return fail(e, -ENOMEM, "out of memory");
    err = file_read(path, FILE_BYTES_MAX, &text);
    if (err)
        fail(e, err, "cannot read \"%s\": %s", path, strerror(-err));
    else
        err = parse_samples(run, bench, &w, path, &text, values, n, e);
    if (err) {
        free(*values);
        *values = NULL;
        *n = 0;
    }
    buffer_release(&text);
    free(path);
    return err;
}
