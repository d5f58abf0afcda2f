/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the first screen, and what has no line in it: see summary.h. */
#include <math.h>

#include "harness/report/report.h"
#include "harness/report/show.h"
#include "harness/report/summary.h"

#define SLOW_MAX 4 /* pairs of GPUs that are named */

struct shown {
    struct report *r;
    struct pool *pool;
    const struct headlines *h;
    size_t run;
    struct document *d;
};

enum { PIPE, TEST, RUN, VALUE, SIDES, SHARE, WORD, COLUMNS };

/* Of one run: without RUN. */
static const struct document_column columns[COLUMNS] = {
    [PIPE] = {"component", COLUMN_STAYS, false}, [TEST] = {"test", COLUMN_STAYS, false},
    [RUN] = {"run", COLUMN_STAYS, false},        [VALUE] = {"value", COLUMN_STAYS, true},
    [SIDES] = {"+/-", COLUMN_GOES_FIRST, true},  [SHARE] = {"of limit", COLUMN_GOES_LAST, true},
    [WORD] = {"word", COLUMN_STAYS, false}};

struct lines {
    struct document_table *table;
    struct document_column columns[COLUMNS];
    size_t at[COLUMNS]; /* of each of the above its place; COLUMNS: there is none */
};

static struct cell *cell_of(const struct lines *l, struct cell *row, size_t column)
{
    return &row[l->at[column]];
}

static void fill_row(const struct shown *s, const struct lines *l, size_t i)
{
    const struct headline_run *at = &s->h->all[i].runs[s->run];
    const struct report_point *p = at->point;
    const char *what = headline_what(s->pool, at), *label = s->h->all[i].label;
    struct cell *row = document_row(l->table), *word = cell_of(l, row, WORD);
    struct show_scale scale;

    *cell_of(l, row, PIPE) = cell_text(s->h->all[i].pipe);
    *cell_of(l, row, TEST) = cell_text(*what ? pool_text(s->pool, "%s (%s)", label, what) : label);
    if (s->r->n_runs > 1)
        *cell_of(l, row, RUN) = cell_text(s->r->names[s->run]);
    *word =
        cell_word(at->verdict.two_levels ? pool_text(s->pool, "%s, two levels", at->verdict.word)
                                         : at->verdict.word,
                  at->verdict.tone);
    for (const struct verdict_remark *m = at->verdict.remarks; m; m = m->next)
        cell_note(word, document_note(s->d, m->text));
    if (!p || !p->n_values)
        return;
    bool pauses = isfinite(p->sustained.value);
    double value = pauses ? p->sustained.value : p->value;
    scale = show_scale(value, at->best->unit);
    *cell_of(l, row, VALUE) = cell_value(value * scale.factor, scale.unit);
    *cell_of(l, row, SIDES) = pauses ? cell_interval(value, p->sustained.low, p->sustained.high)
                                     : cell_interval(value, p->low, p->high);
    *cell_of(l, row, SHARE) = cell_share(p->percent * value / p->value, p->reference);
}

/* The first few, of each matrix; the page has all. Slow hosts are remarks on their tests. */
static void list_slow_pairs(const struct shown *s, const struct matrix *m, size_t *listed)
{
    if (m->looks_slow)
        document_item(s->d, pool_text(s->pool, "undecided: %s, %s: %s", m->metric, m->title,
                                      matrix_looks_slow_text(s->r, m)));
    for (size_t k = 0; k < m->n * m->n; k++)
        if (matrix_is_listed(m, k) && ++*listed <= SLOW_MAX)
            document_item(s->d, pool_text(s->pool, "slow: %s, %s: %s%s", m->metric, m->title,
                                          matrix_slow_text(s->r, m, k),
                                          show_origin(s->pool, m->cells[k].point->origin)));
}

static void list_rest(const struct shown *s)
{
    size_t listed = 0;

    for (size_t i = 0; i < s->h->matrices.n; i++)
        list_slow_pairs(s, &s->h->matrices.all[i], &listed);
    if (listed > SLOW_MAX)
        document_item(
            s->d, pool_text(s->pool, "slow: %zu more pairs, see the report", listed - SLOW_MAX));
    if (*s->h->unheaded)
        document_item(s->d, pool_text(s->pool, "not tested by the rows here: %s", s->h->unheaded));
    if (*s->h->no_gpu)
        document_item(s->d, headlines_no_gpu_text(s->pool, s->h));
}

static struct lines *new_lines(struct report *r, struct document *d)
{
    struct lines *l = pool_alloc(&r->pool, 1, sizeof(*l));
    size_t n = 0;

    for (size_t i = 0; i < COLUMNS; i++)
        if (i != RUN || r->n_runs > 1) {
            l->at[i] = n;
            l->columns[n++] = columns[i];
        }
    l->table = document_table(d, l->columns, n);
    return l;
}

void summary_table(struct report *r, const struct headlines *h, struct document *d)
{
    struct shown s = {r, &r->pool, h, 0, d};
    struct lines *l = h->n ? new_lines(r, d) : NULL;

    if (!h->n)
        document_paragraph(d, r->n_rows
                                  ? "No headline is taken from these rows: the report lists them."
                                  : "There is no row to take a headline from.");
    for (size_t i = 0; i < h->n; i++)
        for (s.run = 0; s.run < r->n_runs; s.run++)
            fill_row(&s, l, i);
    document_notes(d);
    list_rest(&s);
}
