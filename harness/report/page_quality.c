/* SPDX-License-Identifier: Apache-2.0 */
/* How far the rows can be trusted: what disturbed them, what falls on two levels, what is not
 * there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/row.h"
#include "harness/document/html.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define LISTED_MAX 200 /* lines of one table here; the rows' own table has them all */

/* A table that is begun with its first line, and stops after LISTED_MAX of them and says so. */
struct listing {
    const char *columns; /* behind benchmark and case */
    size_t listed, all;
};

/* Calls fn for every row of a run, benchmark by benchmark. */
typedef void row_fn(const struct page *page, const struct report_bench *b, size_t run, size_t row,
                    void *arg);

static void each_row(const struct page *page, size_t run, row_fn *fn, void *arg)
{
    for (size_t b = 0; b < page->r->n_benches; b++) {
        const struct report_bench *bench = &page->r->benches[b];
        const struct table *t = bench->rows[run].table;

        for (size_t row = 0; t && row < t->n_rows; row++)
            fn(page, bench, run, row, arg);
    }
}

/* Whether one more line has room; begins the table with the first. */
static bool begin_line(const struct page *page, struct listing *l)
{
    if (l->all++ >= LISTED_MAX)
        return false;
    if (!l->listed++)
        fprintf(page->out,
                "<div class='scroll'><table class='plain'><thead><tr>%s<th scope='col'>benchmark"
                "</th><th scope='col'>case</th>%s</tr></thead>\n<tbody>\n",
                page->r->n_runs > 1 ? "<th scope='col'>run</th>" : "", l->columns);
    fputs("<tr>", page->out);
    return true;
}

static void end_table(const struct page *page, const struct listing *l, const char *nothing)
{
    if (l->all)
        fputs("</tbody></table></div>\n", page->out);
    else
        html_print(page->out, "<p>%s</p>\n", nothing);
    if (l->all > l->listed)
        html_print(page->out, "<p>For %zu more see the tables of rows.</p>\n", l->all - l->listed);
}

struct counts {
    size_t statuses[8], rows, disturbed, two_levels;
};

static void count_row(const struct page *page, const struct report_bench *b, size_t run, size_t row,
                      void *arg)
{
    const struct report_rows *rows = &b->rows[run];
    struct counts *c = arg;

    (void)page;
    c->rows++;
    for (size_t i = 0; row_statuses[i]; i++)
        c->statuses[i] += !strcmp(row_text(rows, row, FIELD_STATUS), row_statuses[i]);
    c->disturbed += *row_text(rows, row, FIELD_DISTURBED) != 0;
    c->two_levels += !isnan(row_number(rows, row, FIELD_LEVEL_LOW));
}

static void write_counts(const struct page *page)
{
    FILE *out = page->out;

    fputs("<div class='scroll'><table class='plain counts'><thead><tr><th scope='col'>run</th><th "
          "scope='col'>rows</th>",
          out);
    for (size_t i = 0; row_statuses[i]; i++)
        html_print(out, "<th scope='col'>%s</th>", row_statuses[i]);
    fputs("<th scope='col'>disturbed</th><th scope='col'>on two levels</th></tr></thead>\n<tbody>",
          out);
    for (size_t run = 0; run < page->r->n_runs; run++) {
        struct counts c = {0};

        each_row(page, run, count_row, &c);
        html_print(out, "<tr><th scope='row'>%s</th><td>%zu</td>", page->r->names[run], c.rows);
        for (size_t i = 0; row_statuses[i]; i++)
            html_print(out, "<td>%zu</td>", c.statuses[i]);
        html_print(out, "<td>%zu</td><td>%zu</td></tr>\n", c.disturbed, c.two_levels);
    }
    fputs("</tbody></table></div>\n", out);
}

static const struct report_case *case_of(const struct report_bench *b, size_t run, size_t row)
{
    for (size_t i = 0; i < b->n_cases; i++)
        for (size_t k = 0; k < b->cases[i].points[run].n_rows; k++)
            if (b->cases[i].points[run].rows[k] == row)
                return &b->cases[i];
    return NULL;
}

static void write_case_cells(const struct page *page, const struct report_bench *b, size_t run,
                             size_t row)
{
    const struct report_case *c = case_of(b, run, row);

    if (page->r->n_runs > 1)
        html_print(page->out, "<td>%s</td>", page->r->names[run]);
    html_print(page->out, "<td>%s</td><td class='text'>%s", b->name,
               c ? case_text(page->r, b, c) : "");
    if (strcmp(row_text(&b->rows[run], row, FIELD_ORIGIN), "measured") != 0)
        html_print(page->out, " <span class='badge'>%s</span>",
                   *row_text(&b->rows[run], row, FIELD_ORIGIN)
                       ? row_text(&b->rows[run], row, FIELD_ORIGIN)
                       : "origin unknown");
    html_print(page->out, "</td><td>%s</td>", row_text(&b->rows[run], row, FIELD_REPEAT));
}

/* Columns of the noise ledger: one value, or the two ends of a range. */
static const struct ledger_column {
    const char *name;
    enum row_field low, high;
} ledger_columns[] = {
    {"steal, %", FIELD_STEAL, FIELD_STEAL},
    {"pushed off a CPU", FIELD_INVOLUNTARY, FIELD_INVOLUNTARY},
    {"clock, MHz", FIELD_MHZ_LOW, FIELD_MHZ_HIGH},
    {"throttled, times", FIELD_THROTTLE, FIELD_THROTTLE},
    {"quota, ms", FIELD_QUOTA, FIELD_QUOTA},
    {"GPU clock, MHz", FIELD_GPU_MHZ_LOW, FIELD_GPU_MHZ_HIGH},
    {"GPU, \302\260C", FIELD_GPU_TEMPERATURE, FIELD_GPU_TEMPERATURE},
    {"GPU, W", FIELD_GPU_WATTS, FIELD_GPU_WATTS},
    {"GPU held back, ms", FIELD_GPU_THROTTLED, FIELD_GPU_THROTTLED},
};
#define LEDGER_COLUMNS (sizeof(ledger_columns) / sizeof(*ledger_columns))

struct ledger_listing {
    struct listing listing;
    bool shown[LEDGER_COLUMNS]; /* it is over 0 in a row that is listed */
};

static void find_columns(const struct page *page, const struct report_bench *b, size_t run,
                         size_t row, void *arg)
{
    struct ledger_listing *l = arg;

    (void)page;
    for (size_t i = 0; *row_text(&b->rows[run], row, FIELD_DISTURBED) && i < LEDGER_COLUMNS; i++)
        l->shown[i] |= row_number(&b->rows[run], row, ledger_columns[i].high) > 0;
}

static void write_ledger_cell(const struct page *page, const struct report_rows *rows, size_t row,
                              const struct ledger_column *c)
{
    struct pool *pool = &page->r->pool;
    const char *low = document_number(pool, row_number(rows, row, c->low));
    const char *high = document_number(pool, row_number(rows, row, c->high));
    bool range = strcmp(low, high) != 0 && *low && *high;

    html_print(page->out, "<td>%s%s%s</td>", low, range ? " to " : "",
               range  ? high
               : *low ? ""
                      : high);
}

static void list_disturbed(const struct page *page, const struct report_bench *b, size_t run,
                           size_t row, void *arg)
{
    const struct report_rows *rows = &b->rows[run];
    struct ledger_listing *l = arg;

    if (!*row_text(rows, row, FIELD_DISTURBED) || !begin_line(page, &l->listing))
        return;
    write_case_cells(page, b, run, row);
    html_print(page->out, "<td class='cause'>%s</td>", row_text(rows, row, FIELD_DISTURBED));
    for (size_t i = 0; i < LEDGER_COLUMNS; i++)
        if (l->shown[i])
            write_ledger_cell(page, rows, row, &ledger_columns[i]);
    fputs("</tr>\n", page->out);
}

static void write_ledger(const struct page *page)
{
    struct pool *pool = &page->r->pool;
    struct ledger_listing l = {.listing.columns =
                                   "<th scope='col'>launch</th><th scope='col'>by</th>"};

    for (size_t run = 0; run < page->r->n_runs; run++)
        each_row(page, run, find_columns, &l);
    for (size_t i = 0; i < LEDGER_COLUMNS; i++)
        if (l.shown[i])
            l.listing.columns = pool_text(pool, "%s<th scope='col'>%s</th>", l.listing.columns,
                                          ledger_columns[i].name);
    html_element(page->out, "h3", "Noise ledger: rows that were disturbed");
    for (size_t run = 0; run < page->r->n_runs; run++)
        each_row(page, run, list_disturbed, &l);
    end_table(page, &l.listing, "Nothing was seen that disturbed a row.");
    if (l.listing.all)
        html_element(page->out, "p", "What is 0 or unknown in all of them has no column here.");
}

static void write_two_level_case(const struct page *page, const struct report_bench *b,
                                 const struct report_case *c, size_t run, struct listing *l)
{
    const struct report_point *p = &c->points[run];
    struct pool *pool = &page->r->pool;

    if (p->two == TWO_NOT || !begin_line(page, l))
        return;
    if (page->r->n_runs > 1)
        html_print(page->out, "<td>%s</td>", page->r->names[run]);
    html_print(page->out, "<td>%s</td><td class='text'>%s</td>", b->name, case_text(page->r, b, c));
    html_print(page->out, "<td>%s</td><td>%s %s</td><td>%s</td><td>%s %s</td><td>%s</td></tr>\n",
               p->two == TWO_LAUNCHES ? "launches" : "samples of a launch",
               document_number(pool, p->levels.low), c->unit,
               document_percent(pool, 100 * p->levels.share_low),
               document_number(pool, p->levels.high), c->unit,
               document_percent(pool, 100 * p->levels.share_high));
}

static void write_levels(const struct page *page)
{
    struct listing l = {.columns = "<th scope='col'>what falls on two</th><th scope='col'>low</th>"
                                   "<th scope='col'>how often</th><th scope='col'>high</th>"
                                   "<th scope='col'>how often</th>"};

    html_element(page->out, "h3", "Cases on two levels");
    for (size_t run = 0; run < page->r->n_runs; run++)
        for (size_t b = 0; b < page->r->n_benches; b++)
            for (size_t i = 0; i < page->r->benches[b].n_cases; i++)
                write_two_level_case(page, &page->r->benches[b], &page->r->benches[b].cases[i], run,
                                     &l);
    end_table(page, &l, "No case falls on two levels.");
}

/* One case each, though what they measured was not done the same way. */
static void write_choices(const struct page *page)
{
    struct listing l = {.columns = "<th scope='col'>what its launches chose by themselves</th>"};

    for (size_t run = 0; run < page->r->n_runs; run++)
        for (size_t k = 0; k < page->r->n_benches; k++)
            for (size_t i = 0; i < page->r->benches[k].n_cases; i++) {
                const struct report_bench *b = &page->r->benches[k];
                const char *chose = b->cases[i].points[run].chose;

                if (!chose || !*chose)
                    continue;
                if (!l.all)
                    html_element(page->out, "h3", "Cases whose launches chose differently");
                if (!begin_line(page, &l))
                    continue;
                if (page->r->n_runs > 1)
                    html_print(page->out, "<td>%s</td>", page->r->names[run]);
                html_print(page->out, "<td>%s</td><td class='text'>%s</td><td>%s</td></tr>\n",
                           b->name, case_text(page->r, b, &b->cases[i]), chose);
            }
    if (l.all)
        end_table(page, &l, "");
}

/* Rows without a value, those of one benchmark, status and reason together. */
struct lack {
    const char *run, *bench, *status, *reason;
    const struct report_bench *b;
    size_t run_index, row, n;
};

static int compare_kinds(const struct lack *a, const struct lack *b)
{
    int d = (a->run_index > b->run_index) - (a->run_index < b->run_index);

    d = d ? d : strcmp(a->bench, b->bench);
    return d ? d : strcmp(a->status, b->status);
}

/* As the rows came. */
static int compare_rows(const void *x, const void *y)
{
    const struct lack *a = x, *b = y;
    int d = compare_kinds(a, b);

    return d ? d : (a->row > b->row) - (a->row < b->row);
}

/* Those of one reason side by side. */
static int compare_reasons(const void *x, const void *y)
{
    const struct lack *a = x, *b = y;
    int d = compare_kinds(a, b);

    d = d ? d : strcmp(a->reason, b->reason);
    return d ? d : compare_rows(x, y);
}

struct lacks {
    struct lack *all;
    size_t n;
};

static void list_lack(const struct page *page, const struct report_bench *b, size_t run, size_t row,
                      void *arg)
{
    const struct report_rows *rows = &b->rows[run];
    const char *status = row_text(rows, row, FIELD_STATUS);
    struct lacks *lacks = arg;

    if (!strcmp(status, "ok") || !strcmp(status, "noisy"))
        return;
    lacks->all[lacks->n++] = (struct lack){.run = page->r->names[run],
                                           .bench = b->name,
                                           .status = status,
                                           .reason = row_text(rows, row, FIELD_REASON),
                                           .b = b,
                                           .run_index = run,
                                           .row = row,
                                           .n = 1};
}

/* Each reason once, with how often and one case of it. */
static size_t merge_lacks(struct lacks *lacks)
{
    size_t kept = 0;

    qsort(lacks->all, lacks->n, sizeof(*lacks->all), compare_reasons);
    for (size_t i = 0; i < lacks->n; i++) {
        struct lack *last = kept ? &lacks->all[kept - 1] : NULL, *at = &lacks->all[i];

        if (last && last->run_index == at->run_index && !strcmp(last->bench, at->bench) &&
            !strcmp(last->status, at->status) && !strcmp(last->reason, at->reason))
            last->n++;
        else
            lacks->all[kept++] = *at;
    }
    qsort(lacks->all, kept, sizeof(*lacks->all), compare_rows); /* no order hangs on a sentence */
    return kept;
}

static void write_lacks(const struct page *page)
{
    struct lacks lacks = {xcalloc(page->r->n_rows, sizeof(*lacks.all)), 0};
    struct listing l = {.columns = "<th scope='col'>launch</th><th scope='col'>status</th>"
                                   "<th scope='col'>reason</th><th scope='col'>rows like it</th>"};
    size_t n;

    html_element(page->out, "h3", "Rows without a value");
    for (size_t run = 0; run < page->r->n_runs; run++)
        each_row(page, run, list_lack, &lacks);
    n = merge_lacks(&lacks);
    for (const struct lack *at = lacks.all; at < lacks.all + n; at++) {
        if (!begin_line(page, &l))
            continue;
        write_case_cells(page, at->b, at->run_index, at->row);
        html_print(page->out,
                   "<td><span class='status %s'>%s</span></td><td class='text'>%s</td>"
                   "<td>%zu</td></tr>\n",
                   at->status, at->status, *at->reason ? at->reason : "no reason is given", at->n);
    }
    end_table(page, &l, "Every row has a value.");
    free(lacks.all);
}

void page_quality(const struct page *page)
{
    page_fold(page, "quality", "Quality: what disturbed it, what has no value");
    write_counts(page);
    write_lacks(page);
    write_levels(page);
    write_choices(page);
    write_ledger(page);
    page_fold_end(page);
}
