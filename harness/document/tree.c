/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a document: see document.h. */
#include "harness/document/tree.h"

#include <math.h>
#include <string.h>

struct document *document_new(struct pool *pool)
{
    struct document *d = pool_alloc(pool, 1, sizeof(*d));

    d->pool = pool;
    d->end = &d->blocks;
    d->notes_end = &d->notes;
    d->root = d;
    return d;
}

static struct block *add(struct document *d, enum block_kind kind)
{
    struct block *b = pool_alloc(d->pool, 1, sizeof(*b));

    b->kind = kind;
    b->text = b->label = b->word = b->anchor = "";
    b->lines_end = &b->lines;
    *d->end = b;
    d->end = &b->next;
    d->last = b;
    return b;
}

void document_heading(struct document *d, unsigned level, const char *text, const char *anchor)
{
    struct block *b = add(d, BLOCK_HEADING);

    b->level = level;
    b->text = text;
    b->anchor = anchor;
}

static void add_text(struct document *d, enum block_kind kind, const char *text)
{
    add(d, kind)->text = text;
}

void document_paragraph(struct document *d, const char *text)
{
    add_text(d, BLOCK_PARAGRAPH, text);
}

void document_item(struct document *d, const char *text)
{
    add_text(d, BLOCK_ITEM, text);
}

void document_answer(struct document *d, const char *label, const char *word, enum tone tone,
                     const char *text)
{
    struct block *b = add(d, BLOCK_ANSWER);

    b->label = label;
    b->word = word;
    b->tone = tone;
    b->text = text;
}

void document_answer_more(struct document *d, const char *text, const char *command)
{
    struct answer_line *line = pool_alloc(d->pool, 1, sizeof(*line));

    if (!d->last || d->last->kind != BLOCK_ANSWER)
        return;
    line->text = text;
    line->command = command;
    *d->last->lines_end = line;
    d->last->lines_end = &line->next;
}

struct cell cell_text(const char *text)
{
    return (struct cell){.kind = *text ? CELL_TEXT : CELL_EMPTY, .text = text};
}

struct cell cell_value(double value, const char *unit)
{
    return (struct cell){
        .kind = isnan(value) ? CELL_EMPTY : CELL_VALUE, .text = unit, .value = value};
}

struct cell cell_interval(double value, double low, double high)
{
    bool none = isnan(value) || isnan(low) || isnan(high);

    return (struct cell){.kind = none ? CELL_EMPTY : CELL_INTERVAL,
                         .text = "",
                         .value = value,
                         .low = low,
                         .high = high};
}

struct cell cell_share(double percent, bool reference)
{
    return (struct cell){.kind = isnan(percent) ? CELL_EMPTY : CELL_SHARE,
                         .text = "",
                         .value = percent,
                         .reference = reference};
}

struct cell cell_word(const char *word, enum tone tone)
{
    return (struct cell){.kind = CELL_WORD, .text = word, .tone = tone};
}

void cell_note(struct cell *cell, size_t note)
{
    size_t at = 0;

    while (at < cell->n_notes && cell->notes[at] < note)
        at++;
    if (!note || cell->n_notes == CELL_NOTES_MAX || (at < cell->n_notes && cell->notes[at] == note))
        return;
    for (size_t i = cell->n_notes++; i > at; i--)
        cell->notes[i] = cell->notes[i - 1];
    cell->notes[at] = note;
}

static struct document_table *new_table(struct pool *pool, const struct document_column *columns,
                                        size_t n)
{
    struct document_table *t = pool_alloc(pool, 1, sizeof(*t));

    t->pool = pool;
    t->columns = columns;
    t->n_columns = n;
    t->end = &t->rows;
    return t;
}

struct document_table *document_table(struct document *d, const struct document_column *columns,
                                      size_t n)
{
    return add(d, BLOCK_TABLE)->table = new_table(d->pool, columns, n);
}

struct cell *document_row(struct document_table *t)
{
    struct document_row *row = pool_alloc(t->pool, 1, sizeof(*row));

    row->cells = pool_alloc(t->pool, t->n_columns, sizeof(*row->cells));
    for (size_t i = 0; i < t->n_columns; i++)
        row->cells[i].text = "";
    *t->end = row;
    t->end = &row->next;
    t->n_rows++;
    return row->cells;
}

size_t document_note(struct document *d, const char *text)
{
    struct document *root = d->root;
    struct note *note;

    if (!*text)
        return 0;
    for (note = root->notes; note; note = note->next)
        if (!strcmp(note->text, text))
            return note->number;
    note = pool_alloc(root->pool, 1, sizeof(*note));
    note->text = text;
    note->number = ++root->n_notes;
    if (!root->listed)
        root->listed = note;
    *root->notes_end = note;
    root->notes_end = &note->next;
    return note->number;
}

void document_notes(struct document *d)
{
    struct document *root = d->root;

    if (!root->listed)
        return;
    struct block *b = add(d, BLOCK_NOTES);
    b->notes = root->listed;
    b->n_notes = root->n_notes - root->n_listed;
    root->n_listed = root->n_notes;
    root->listed = NULL;
}

void document_link_terms(struct document *d, const struct document_term *terms, size_t n)
{
    d->linked = terms;
    d->n_linked = n;
}

void document_terms(struct document *d, const struct document_term *terms, size_t n)
{
    struct block *b = add(d, BLOCK_TERMS);

    b->terms = terms;
    b->n_terms = n;
}

/* ---- figures, as the words that stand for them where no picture can be */

#define FIGURE_ROWS_MAX 16 /* of a table; more rows become a range */

static const struct document_column figure_rows[] = {{.name = "row"},
                                                     {.name = "series"},
                                                     {.name = "value", .number = true},
                                                     {.name = "+/-", .number = true},
                                                     {.name = "note"}};
static const struct document_column figure_lines[] = {{.name = "line"}, {.name = "range"}};

static void add_figure_row(struct document_table *t, const struct plot *plot, size_t tick,
                           size_t line)
{
    const struct plot_line *l = &plot->lines[line];

    for (size_t i = 0; i < l->n; i++) {
        const struct plot_point *p = &l->points[i];
        struct cell *row;

        if (p->x != plot->ticks[tick].at || isnan(p->y))
            continue;
        row = document_row(t);
        row[0] = cell_text(plot->ticks[tick].label);
        row[1] = cell_text(plot->n_lines > 1 ? l->label : "");
        row[2] = plot->ratio ? cell_text(pool_text(t->pool, "%+.1f %%", 100 * (p->y - 1)))
                             : cell_text(document_number(t->pool, p->y));
        row[3] = isnan(p->low) ? cell_text("") : cell_interval(p->y, p->low, p->high);
        if (plot->rows && plot->rows[tick].note)
            row[4] = cell_word(plot->rows[tick].note, plot->rows[tick].tone);
    }
}

static struct document_table *figure_table(struct pool *pool, const struct plot *plot)
{
    bool rows = plot->categories && plot->n_ticks * plot->n_lines <= FIGURE_ROWS_MAX;
    struct document_table *t =
        rows ? new_table(pool, figure_rows, 5) : new_table(pool, figure_lines, 2);

    for (size_t i = 0; rows && i < plot->n_ticks; i++)
        for (size_t k = 0; k < plot->n_lines; k++)
            add_figure_row(t, plot, i, k);
    for (size_t k = 0; !rows && k < plot->n_lines; k++) {
        struct cell *row = document_row(t);

        row[0] = cell_text(plot->lines[k].label);
        row[1] = cell_text(plot_range_text(pool, plot, &plot->lines[k]));
    }
    return t;
}

void document_figure(struct document *d, const struct plot *plot, const char *note)
{
    struct block *b = add(d, BLOCK_FIGURE);

    b->plot = plot;
    b->text = plot->title;
    b->word = note;
    b->label = plot->categories ? plot->x_label
                                : pool_text(d->pool, "%s over %s", plot->y_label, plot->x_label);
    b->table = figure_table(d->pool, plot);
}

struct document *document_fold(struct document *d, const char *title)
{
    struct block *b = add(d, BLOCK_FOLD);

    b->text = title;
    b->fold = document_new(d->pool);
    b->fold->root = d->root;
    return b->fold;
}

/* ---- what the writers share */

const char *document_number(struct pool *pool, double value)
{
    double size = fabs(value);

    if (isnan(value))
        return "";
    if (size != 0 && (size < 1e-4 || size >= 1e7))
        return pool_text(pool, "%.4g", value);
    if (size >= 1000)
        return pool_text(pool, "%.0f", value);
    return pool_text(pool, "%.*f",
                     size == 0     ? 0
                     : size >= 100 ? 1
                     : size >= 10  ? 2
                                   : 3 - (int)floor(log10(size)),
                     value);
}

const char *document_percent(struct pool *pool, double percent)
{
    if (isnan(percent))
        return "";
    return pool_text(pool,
                     fabs(percent) < 10      ? "%.2g %%"
                     : fabs(percent) < 999.5 ? "%.3g %%"
                                             : "%.0f %%",
                     percent);
}

#define SIDES_ALIKE   1.25
#define SIDES_ROUNDED 1e-9 /* in %: what rounding leaves of no interval */
#define SIDE_MOST     1000 /* in %: a longer one tells nothing, and its digits even less */

/* Two digits, and no more behind the point. */
static const char *side_shown(struct pool *pool, double percent)
{
    if (percent > SIDE_MOST)
        return pool_text(pool, "+over %d", SIDE_MOST);
    return pool_text(pool, fabs(percent) < 9.95 ? "%+.2g" : "%+.0f", percent);
}

/* "+/- 1.3 %", or "-5.4/+8.7 %" where one side is longer. */
static const char *interval_shown(struct pool *pool, const struct cell *cell)
{
    double below = 100 * (cell->low - cell->value) / fabs(cell->value);
    double above = 100 * (cell->high - cell->value) / fabs(cell->value);
    double longer = fmax(-below, above), shorter = fmin(-below, above);

    if (cell->value == 0)
        return "";
    if (fmax(fabs(below), fabs(above)) < SIDES_ROUNDED)
        return "+/- 0 %";
    if (shorter >= 0 && longer <= SIDES_ALIKE * shorter)
        return pool_text(pool, "+/- %s %%", side_shown(pool, longer) + 1);
    return pool_text(pool, "%s/%s %%", side_shown(pool, below), side_shown(pool, above));
}

const char *cell_shown(struct pool *pool, const struct cell *cell)
{
    switch (cell->kind) {
    case CELL_EMPTY:
        return "";
    case CELL_TEXT:
    case CELL_WORD:
        return cell->text;
    case CELL_VALUE:
        return pool_text(pool, "%s%s%s", document_number(pool, cell->value), *cell->text ? " " : "",
                         cell->text);
    case CELL_INTERVAL:
        return interval_shown(pool, cell);
    case CELL_SHARE:
        return pool_text(pool, "%s%s", cell->reference ? "ref. " : "",
                         document_percent(pool, cell->value));
    }
    return "";
}

const char *cell_notes(struct pool *pool, const struct cell *cell)
{
    const char *text = "";

    for (size_t i = 0; i < cell->n_notes; i++)
        text = pool_text(pool, "%s%s%zu", text, *text ? "," : "", cell->notes[i]);
    return *text ? pool_text(pool, "(%s)", text) : "";
}

bool column_is_empty(const struct document_table *t, size_t column)
{
    for (const struct document_row *row = t->rows; row; row = row->next)
        if (row->cells[column].kind != CELL_EMPTY || row->cells[column].n_notes)
            return false;
    return true;
}

bool row_repeats(const struct document_row *above, const struct document_row *row)
{
    return above && row->cells[0].kind == CELL_TEXT && above->cells[0].kind == CELL_TEXT &&
           !row->cells[0].n_notes && !strcmp(above->cells[0].text, row->cells[0].text);
}
