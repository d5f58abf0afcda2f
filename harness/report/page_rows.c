/* SPDX-License-Identifier: Apache-2.0 */
/* Every row, as JSON that report.js shows in tables which sort and filter. */
#include <stdlib.h>
#include <string.h>

#include "core/row.h"
#include "harness/document/html.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define FEW_ROWS 4 /* so few are shown with what they have in common */

/* The columns of a benchmark's table: its parameters, then those of core/row.h. */
struct columns {
    const char **names;
    size_t n;
    bool *same; /* one value in all rows: said once, above the table */
};

static size_t count_rows(const struct page *page, const struct report_bench *b)
{
    size_t n = 0;

    for (size_t run = 0; run < page->r->n_runs; run++)
        n += b->rows[run].table ? b->rows[run].table->n_rows : 0;
    return n;
}

static bool is_same(const struct page *page, const struct report_bench *b, const char *name)
{
    const char *first = NULL;

    if (!strcmp(name, "metric") || !strcmp(name, "value") || !strcmp(name, "status"))
        return false;

    for (size_t run = 0; run < page->r->n_runs; run++) {
        const struct table *t = b->rows[run].table;
        size_t column = t ? table_column(t, name) : 0;

        for (size_t row = 0; t && row < t->n_rows; row++) {
            const char *text = table_cell(t, row, column);

            if (first && strcmp(first, text) != 0)
                return false;
            first = text;
        }
    }
    /* What was not measured says so in every row. */
    if (!strcmp(name, "origin") && first && strcmp(first, "measured") != 0)
        return false;
    return !first || !*first || count_rows(page, b) >= FEW_ROWS;
}

static void list_columns(const struct page *page, const struct report_bench *b, struct columns *c)
{
    size_t n_row = 0;

    while (row_columns[n_row].name)
        n_row++;
    c->names = pool_alloc(&page->r->pool, b->n_params + n_row, sizeof(*c->names));
    c->same = pool_alloc(&page->r->pool, b->n_params + n_row, sizeof(*c->same));
    c->n = 0;
    for (size_t i = 0; i < b->n_params; i++)
        c->names[c->n++] = b->params[i];
    for (size_t i = 0; i < n_row; i++)
        c->names[c->n++] = row_columns[i].name;
    for (size_t i = 0; i < c->n; i++)
        c->same[i] = is_same(page, b, c->names[i]);
}

static const char *help_of(const char *column)
{
    for (const struct row_column *c = row_columns; c->name; c++)
        if (!strcmp(c->name, column))
            return c->help;
    return "a parameter of the benchmark";
}

/* "columns": [[name, help, is a parameter], ...] of those that vary; "same": [[name, value], ...]
 * of the others. */
static void write_columns(const struct page *page, const struct report_bench *b,
                          const struct columns *c, bool same)
{
    FILE *out = page->out;
    size_t run = 0, n = 0;

    while (!b->rows[run].table)
        run++;
    fputs(same ? ",\"same\":[" : ",\"columns\":[", out);
    for (size_t i = 0; i < c->n; i++) {
        if (c->same[i] != same)
            continue;
        fputs(n++ ? ",[" : "[", out);
        html_json_string(out, c->names[i]);
        fputc(',', out);
        html_json_string(out, same ? table_text(b->rows[run].table, 0, c->names[i])
                                   : help_of(c->names[i]));
        fputs(same ? "]" : i < b->n_params ? ",1]" : ",0]", out);
    }
    fputc(']', out);
}

static void write_run_rows(const struct page *page, const struct report_bench *b,
                           const struct columns *c, size_t run, bool *first)
{
    const struct table *t = b->rows[run].table;
    size_t *at = pool_alloc(&page->r->pool, c->n, sizeof(*at)), n = 0;

    for (size_t i = 0; i < c->n; i++)
        if (!c->same[i])
            at[n++] = table_column(t, c->names[i]);
    for (size_t row = 0; row < t->n_rows; row++) {
        fprintf(page->out, "%s\n[%zu", *first ? "" : ",", run);
        *first = false;
        for (size_t i = 0; i < n; i++) {
            fputc(',', page->out);
            html_json_string(page->out, table_cell(t, row, at[i]));
        }
        fputc(']', page->out);
    }
}

static void write_bench(const struct page *page, const struct report_bench *b)
{
    struct columns c;
    bool first = true;

    list_columns(page, b, &c);
    fputs("{\"name\":", page->out);
    html_json_string(page->out, b->name);
    write_columns(page, b, &c, false);
    write_columns(page, b, &c, true);
    fputs(",\"rows\":[", page->out);
    for (size_t run = 0; run < page->r->n_runs; run++)
        if (b->rows[run].table)
            write_run_rows(page, b, &c, run, &first);
    fputs("]}", page->out);
}

void page_rows(const struct page *page)
{
    FILE *out = page->out;

    page_fold(page, "rows", "Every row");
    html_print(out,
               "<p>%s. Click a heading to sort by it; "
               "filter by words, or by a column, as in <code>op=triad threads&gt;1</code>.</p>\n"
               "<noscript><p class='banner'>The tables need JavaScript. The same rows are in the "
               "CSV files of the run folder, one for each benchmark.</p></noscript>\n"
               "<div id='tables'></div>\n<script type='application/json' id='data'>{\"runs\":[",
               show_count(&page->r->pool, page->r->n_rows, "row"));
    for (size_t i = 0; i < page->r->n_runs; i++) {
        fputs(i ? "," : "", out);
        html_json_string(out, page->r->names[i]);
    }
    fputs("],\"benches\":[", out);
    for (size_t b = 0; b < page->r->n_benches; b++) {
        fputs(b ? ",\n" : "\n", out);
        write_bench(page, &page->r->benches[b]);
    }
    fputs("]}</script>\n", out);
    page_fold_end(page);
}
