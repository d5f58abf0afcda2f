/* SPDX-License-Identifier: Apache-2.0 */
/* How far the rows can be trusted: what disturbed them, what falls on two levels, what is not
 * there. */
#include <math.h>
#include <string.h>

#include "core/row.h"
#include "harness/document/tree.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define LISTED_MAX 200 /* lines of one table here; the rows' own table has them all */

/* A table that is begun with its first line, and stops after LISTED_MAX of them and says so. Its
 * first columns say which row a line is of: run, benchmark, case, launch. */
struct listing {
    const struct page *page;
    struct document *d;
    const char *title;
    const struct document_column *columns;
    size_t n_columns;
    struct document_table *t;
    size_t n;
};

static void end(const struct listing *l, const char *nothing)
{
    if (!l->n && nothing) {
        document_heading(l->d, 3, l->title, "");
        document_paragraph(l->d, nothing);
    }
    if (l->n > LISTED_MAX)
        document_paragraph(l->d,
                           pool_text(&l->page->r->pool, "For %zu more see the tables of rows.",
                                     l->n - LISTED_MAX));
}

/* The line of a case, and of one of its rows (NULL: of all), or NULL where there is no room. */
static struct cell *line(struct listing *l, const struct report_bench *b,
                         const struct report_case *c, size_t run, const size_t *row)
{
    const char *origin = show_origin(&l->page->r->pool, c->points[run].origin);

    if (l->n++ >= LISTED_MAX)
        return NULL;
    if (!l->t) {
        document_heading(l->d, 3, l->title, "");
        l->t = document_table(l->d, l->columns, l->n_columns);
    }
    struct cell *cells = document_row(l->t);
    cells[0] = cell_text(l->page->r->n_runs > 1 ? l->page->r->names[run] : "");
    cells[1] = cell_text(b->name);
    cells[2] = cell_text(pool_text(&l->page->r->pool, "%s%s", case_text(l->page->r, b, c), origin));
    cells[3] = cell_text(row ? row_text(&b->rows[run], *row, FIELD_REPEAT) : "");
    return cells + 4;
}

/* Calls fn for each row, with the first case that it is of: a launch that died is of several. */
typedef void row_fn(struct listing *l, const struct report_bench *b, const struct report_case *c,
                    size_t run, const size_t *row);

static void each_row(struct listing *l, row_fn *fn)
{
    for (size_t run = 0; run < l->page->r->n_runs; run++)
        for (const struct report_bench *b = l->page->r->benches;
             b < l->page->r->benches + l->page->r->n_benches; b++) {
            const struct table *t = b->rows[run].table;
            bool *told = pool_alloc(&l->page->r->pool, t ? t->n_rows : 0, sizeof(*told));

            for (const struct report_case *c = b->cases; c < b->cases + b->n_cases; c++)
                for (size_t i = 0; i < c->points[run].n_rows; i++) {
                    const size_t *row = &c->points[run].rows[i];

                    if (!told[*row])
                        fn(l, b, c, run, row);
                    told[*row] = true;
                }
        }
}

/* The same for each case, with its first row. */
static void each_case(struct listing *l, row_fn *fn)
{
    for (size_t run = 0; run < l->page->r->n_runs; run++)
        for (const struct report_bench *b = l->page->r->benches;
             b < l->page->r->benches + l->page->r->n_benches; b++)
            for (const struct report_case *c = b->cases; c < b->cases + b->n_cases; c++)
                if (c->points[run].n_rows)
                    fn(l, b, c, run, c->points[run].rows);
}

#define C(name)                                                                                    \
    {                                                                                              \
        name, COLUMN_STAYS, false                                                                  \
    }
#define N(name)                                                                                    \
    {                                                                                              \
        name, COLUMN_STAYS, true                                                                   \
    }
#define WHICH C("run"), C("benchmark"), C("case"), N("launch")

/* ---- how many rows there are of each status */

static void add_counts(const struct page *page, struct document *d)
{
    static struct document_column columns[16] = {C("run"), N("rows")};
    size_t n = 2;

    for (size_t i = 0; row_statuses[i]; i++)
        columns[n++] = (struct document_column){row_statuses[i], COLUMN_STAYS, true};
    columns[n++] = (struct document_column){"disturbed", COLUMN_STAYS, true};
    columns[n++] = (struct document_column){"on two levels", COLUMN_STAYS, true};
    struct document_table *t = document_table(d, columns, n);
    for (size_t run = 0; run < page->r->n_runs; run++) {
        struct cell *cells = document_row(t);
        size_t counts[16] = {0};

        for (size_t b = 0; b < page->r->n_benches; b++) {
            const struct report_rows *rows = &page->r->benches[b].rows[run];

            for (size_t row = 0; rows->table && row < rows->table->n_rows; row++) {
                counts[1]++;
                for (size_t i = 2; i + 2 < n; i++)
                    counts[i] += !strcmp(row_text(rows, row, FIELD_STATUS), columns[i].name);
                counts[n - 2] += *row_text(rows, row, FIELD_DISTURBED) != 0;
                counts[n - 1] += !isnan(row_number(rows, row, FIELD_LEVEL_LOW));
            }
        }
        cells[0] = cell_text(page->r->names[run]);
        for (size_t i = 1; i < n; i++)
            cells[i] = cell_text(pool_text(&page->r->pool, "%zu", counts[i]));
    }
}

/* ---- rows without a value, those of one benchmark, status and reason together */

static void add_lack(struct listing *l, const struct report_bench *b, const struct report_case *c,
                     size_t run, const size_t *row)
{
    const char *status = row_text(&b->rows[run], *row, FIELD_STATUS);
    const char *reason = row_text(&b->rows[run], *row, FIELD_REASON);
    reason = *reason ? reason : "no reason is given";
    struct cell *cells;

    if (!strcmp(status, "ok") || !strcmp(status, "noisy"))
        return;
    for (struct document_row *r = l->t ? l->t->rows : NULL; r; r = r->next)
        if (!strcmp(r->cells[1].text, b->name) && !strcmp(r->cells[4].text, status) &&
            !strcmp(r->cells[5].text, reason) &&
            (l->page->r->n_runs < 2 || !strcmp(r->cells[0].text, l->page->r->names[run]))) {
            size_t n = (size_t)++r->cells[6].value;

            r->cells[6].text = pool_text(&l->page->r->pool, "%zu", n);
            return;
        }
    if (!(cells = line(l, b, c, run, row)))
        return;
    cells[0] = cell_text(status);
    cells[0].tone = strcmp(status, "skipped") ? TONE_BAD : TONE_NONE;
    cells[1] = cell_text(reason);
    cells[2] = cell_text("1");
    cells[2].value = 1;
}

/* ---- what its launches fell on, and chose */

static void add_levels(struct listing *l, const struct report_bench *b, const struct report_case *c,
                       size_t run, const size_t *row)
{
    const struct report_point *p = &c->points[run];
    struct pool *pool = &l->page->r->pool;
    struct cell *cells = p->two == TWO_NOT ? NULL : line(l, b, c, run, NULL);

    (void)row;
    if (!cells)
        return;
    cells[0] = cell_text(p->two == TWO_LAUNCHES ? "launches" : "samples of a launch");
    cells[1] = cell_text(pool_text(pool, "%s %s", document_number(pool, p->levels.low), c->unit));
    cells[2] = cell_share(100 * p->levels.share_low, false);
    cells[3] = cell_text(pool_text(pool, "%s %s", document_number(pool, p->levels.high), c->unit));
    cells[4] = cell_share(100 * p->levels.share_high, false);
}

static void add_choice(struct listing *l, const struct report_bench *b, const struct report_case *c,
                       size_t run, const size_t *row)
{
    const char *chose = c->points[run].chose;
    struct cell *cells = *chose ? line(l, b, c, run, NULL) : NULL;

    (void)row;
    if (cells)
        cells[0] = cell_text(chose);
}

/* ---- the noise ledger: one value, or the two ends of a range; what is 0 or unknown in all of its
 * rows is not shown */

static const enum row_field ledger[][2] = {{FIELD_STEAL, FIELD_STEAL},
                                           {FIELD_INVOLUNTARY, FIELD_INVOLUNTARY},
                                           {FIELD_MHZ_LOW, FIELD_MHZ_HIGH},
                                           {FIELD_THROTTLE, FIELD_THROTTLE},
                                           {FIELD_QUOTA, FIELD_QUOTA},
                                           {FIELD_GPU_MHZ_LOW, FIELD_GPU_MHZ_HIGH},
                                           {FIELD_GPU_TEMPERATURE, FIELD_GPU_TEMPERATURE},
                                           {FIELD_GPU_WATTS, FIELD_GPU_WATTS},
                                           {FIELD_GPU_THROTTLED, FIELD_GPU_THROTTLED}};

static void add_ledger(struct listing *l, const struct report_bench *b, const struct report_case *c,
                       size_t run, const size_t *row)
{
    const struct report_rows *rows = &b->rows[run];
    struct pool *pool = &l->page->r->pool;
    const char *by = row_text(rows, *row, FIELD_DISTURBED);
    struct cell *cells = *by ? line(l, b, c, run, row) : NULL;

    if (!cells)
        return;
    cells[0] = cell_text(by);
    for (size_t i = 0; i < sizeof(ledger) / sizeof(*ledger); i++) {
        const char *low = row_text(rows, *row, ledger[i][0]),
                   *high = row_text(rows, *row, ledger[i][1]);

        low = *low ? document_number(pool, row_number(rows, *row, ledger[i][0])) : "";
        high = *high ? document_number(pool, row_number(rows, *row, ledger[i][1])) : low;
        cells[1 + i] =
            cell_text(!*low || !strcmp(low, high) ? high : pool_text(pool, "%s to %s", low, high));
    }
}

static void hide_zeros(const struct document_table *t)
{
    for (size_t i = 0; i < sizeof(ledger) / sizeof(*ledger); i++) {
        bool any = false;

        for (const struct document_row *r = t->rows; r; r = r->next)
            any = any || (*r->cells[5 + i].text && strcmp(r->cells[5 + i].text, "0") != 0);
        for (struct document_row *r = t->rows; r && !any; r = r->next)
            r->cells[5 + i].text = "";
    }
}

#define COLUMNS(a) a, sizeof(a) / sizeof(*(a))

void page_quality(const struct page *page)
{
    static const struct document_column lacks[] = {WHICH, C("status"), C("reason"),
                                                   N("rows like it")},
                                        levels[] = {WHICH,     C("what falls on two"),
                                                    N("low"),  C("how often"),
                                                    N("high"), C("how often")},
                                        choices[] = {WHICH,
                                                     C("what its launches chose by themselves")},
                                        disturbed[] = {WHICH,
                                                       C("by"),
                                                       N("steal, %"),
                                                       N("pushed off a CPU"),
                                                       N("clock, MHz"),
                                                       N("throttled, times"),
                                                       N("quota, ms"),
                                                       N("GPU clock, MHz"),
                                                       N("GPU, \302\260C"),
                                                       N("GPU, W"),
                                                       N("GPU held back, ms")};
    static const struct {
        const char *title, *nothing;
        const struct document_column *columns;
        size_t n;
        void (*each)(struct listing *l, row_fn *fn);
        row_fn *add;
    } tables[] = {
        {"Rows without a value", "Every row has a value.", COLUMNS(lacks), each_row, add_lack},
        {"Cases on two levels", "No case falls on two levels.", COLUMNS(levels), each_case,
         add_levels},
        {"Cases whose launches chose differently", NULL, COLUMNS(choices), each_case, add_choice},
        {"Noise ledger: rows that were disturbed", "Nothing was seen that disturbed a row.",
         COLUMNS(disturbed), each_row, add_ledger}};
    struct document *d = document_new(&page->r->pool);

    page_fold(page, "quality", "Quality: what disturbed it, what has no value");
    add_counts(page, d);
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        struct listing l = {page, d, tables[i].title, tables[i].columns, tables[i].n, NULL, 0};

        tables[i].each(&l, tables[i].add);
        if (l.t && tables[i].add == add_ledger)
            hide_zeros(l.t);
        end(&l, tables[i].nothing);
    }
    document_write_html(d, page->out);
    page_fold_end(page);
}
