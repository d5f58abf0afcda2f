/* SPDX-License-Identifier: Apache-2.0 */
/* Several runs on a terminal: a line a test, a column a run. */
#include <string.h>

#include "harness/report/report.h"
#include "harness/report/show.h"
#include "harness/report/summary_scene.h"

#define COLUMNS_BEFORE 2

/* what: of the case that names the line; another one has its own behind its value. */
static const char *value_of(struct pool *pool, const struct headline_run *at, const char *what)
{
    const struct report_point *p = at->point;
    const char *word = at->verdict.tone == TONE_NONE ? "" : at->verdict.word;

    if (!p || !p->n_values)
        return at->verdict.word;
    struct show_scale scale = show_scale(pool, line_value(at), at->best->unit);
    const char *text = pool_text(pool, "%s %s%s", show_short(pool, line_value(at) * scale.factor),
                                 scale.unit, show_origin(pool, p->origin));
    if (strcmp(at->what, what) != 0)
        text = pool_text(pool, "%s (%s)", text, at->what);
    return show_joined(pool, text, word);
}

static void add_table(struct report *r, const struct headlines *h, struct document *d)
{
    struct document_column *columns =
        pool_alloc(&r->pool, r->n_runs + COLUMNS_BEFORE, sizeof(*columns));

    columns[0] = (struct document_column){"component", COLUMN_ABOVE, false};
    columns[1].name = "case";
    for (size_t run = 0; run < r->n_runs; run++)
        columns[COLUMNS_BEFORE + run] = (struct document_column){
            pool_text(&r->pool, "%c", (char)('A' + run)), COLUMN_STAYS, true};
    struct document_table *t = document_table(d, columns, r->n_runs + COLUMNS_BEFORE);
    for (size_t i = 0; i < h->n; i++) {
        struct cell *row = document_row(t);

        row[0] = cell_text(h->all[i].component);
        size_t first = 0;
        while (first + 1 < r->n_runs && !h->all[i].runs[first].best)
            first++;
        row[1] = cell_text(headline_name(&r->pool, &h->all[i], first));
        for (size_t run = 0; run < r->n_runs; run++) {
            const struct headline_run *at = &h->all[i].runs[run];

            row[COLUMNS_BEFORE + run] =
                cell_text(value_of(&r->pool, at, h->all[i].runs[first].what));
            row[COLUMNS_BEFORE + run].tone = at->verdict.tone;
        }
    }
}

int report_runs(FILE *out, const char *const *runs, size_t n)
{
    struct document_terminal terminal = document_terminal_of(out);
    struct headlines headlines;
    struct report r;
    char error[256];
    int err = report_load(&r, runs, n, error, sizeof(error));

    if (!err) {
        struct document *d = document_new(&r.pool);
        const char *next = "Next: plumb compare";

        headlines_make(&r, &headlines);
        for (size_t run = 0; run < n; run++) {
            next = pool_text(&r.pool, "%s %s", next, runs[run]);
            document_answer(d, pool_text(&r.pool, "%c", (char)('A' + run)), "", TONE_NONE,
                            r.names[run]);
        }
        add_table(&r, &headlines, d);
        document_paragraph(d, next);
        fputc('\n', out);
        err = document_write_terminal(d, &terminal, out);
        fputc('\n', out);
    }
    report_release(&r);
    return err;
}
