/* SPDX-License-Identifier: Apache-2.0 */
/* A document for a terminal: see document.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/text.h"
#include "harness/document/tree.h"
#include "harness/document/utf8.h"

#define GAP        2  /* blanks between columns */
#define HANG       2  /* what goes on in the next line */
#define WRAPPED    30 /* columns to which texts are wrapped before anything else gives way */
#define BESIDE_BAR 26 /* the same of a bar */

struct pen {
    FILE *out;
    struct pool *pool;
    struct document_terminal at;
    int bar; /* shares are also drawn: cells of 100 %; 0: no room for it */
};

/* ---- texts */

static bool is_utf8_locale(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

struct document_terminal document_terminal_of(FILE *out)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    int fd = fileno(out);
    bool is_terminal = fd >= 0 && isatty(fd) && term && *term && strcmp(term, "dumb") != 0;

    return (struct document_terminal){.width = wrap_width(out),
                                      .colour = is_terminal && !(no_colour && *no_colour),
                                      .utf8 = is_utf8_locale()};
}

/* What comes from files may hold what a terminal obeys: only what is printable is kept. */
static const char *clean(const struct pen *p, const char *text)
{
    return utf8_text(p->pool, text, p->at.utf8);
}

static size_t columns_of(const char *text)
{
    return wrap_columns(text, strlen(text));
}

/* As wrap_take(), but a word that is longer than the line is cut: no line is longer than asked. */
static size_t take(const char *text, size_t width, size_t *next)
{
    size_t n = wrap_take(text, width, next);

    if (wrap_columns(text, n) <= width)
        return n;
    for (n = 0; text[n] && wrap_columns(text, n + 1) <= width; n++)
        ;
    while (((unsigned char)text[n] & 0xc0) == 0x80)
        n++;
    *next = n;
    return n;
}

static void blanks(const struct pen *p, size_t n)
{
    fprintf(p->out, "%*s", (int)n, "");
}

static void toned(const struct pen *p, enum tone tone, const char *text, size_t n)
{
    bool colour = p->at.colour && tone != TONE_NONE;

    if (colour)
        fputs(tone == TONE_BAD ? "\033[1;31m" : "\033[33m", p->out);
    fwrite(text, 1, n, p->out);
    if (colour)
        fputs("\033[0m", p->out);
}

/* The text from column `at` on, further lines from column `hang` on; ends the line. */
static void flow(const struct pen *p, const char *text, size_t at, size_t hang)
{
    size_t next, n = take(text, p->at.width > at ? p->at.width - at : 1, &next);

    fwrite(text, 1, n, p->out);
    fputc('\n', p->out);
    for (text += next; *text; text += next) {
        n = take(text, p->at.width - hang, &next);
        blanks(p, hang);
        fwrite(text, 1, n, p->out);
        fputc('\n', p->out);
    }
}

static void strong(const struct pen *p, const char *text, size_t n)
{
    fprintf(p->out, p->at.colour ? "\033[1m%.*s\033[0m" : "%.*s", (int)n, text);
}

static void title(const struct pen *p, const char *text)
{
    fputs(p->at.colour ? "\033[1m" : "", p->out);
    flow(p, text, 0, 0);
    fputs(p->at.colour ? "\033[0m" : "", p->out);
}

/* ---- tables */

struct columns {
    size_t *widths; /* 0: it goes under the line, or is not shown */
    size_t n;
    /* 1: the first column goes above the lines that have the same text in it; 2: and the second one
     * above each of its lines */
    size_t above;
};

static const int bar_cells[] = {10, 5, 0}; /* the most that there is room for */

/* "########    78 %" */
static const char *bar_shown(const struct pen *p, const struct cell *cell)
{
    const char *bar = "";
    double cells = fmin(fmax(cell->value, 0), 100) * p->bar / 100;
    const char *share = pool_text(p->pool, "%.1f %%", cell->value);

    for (int i = 0; i < p->bar; i++)
        bar = pool_text(p->pool, "%s%s", bar, i + 0.5 > cells ? " " : p->at.utf8 ? "█" : "#");
    return pool_text(p->pool, "%s %6s", bar, share);
}

static const char *shown(const struct pen *p, const struct cell *cell)
{
    const char *notes = cell_notes(p->pool, cell);
    const char *text = cell->bar && p->bar ? bar_shown(p, cell) : cell_shown(p->pool, cell);

    return clean(p, *text && *notes ? pool_text(p->pool, "%s %s", text, notes)
                    : *notes        ? notes
                                    : text);
}

static size_t line_width(const struct columns *c)
{
    size_t width = 0;

    for (size_t i = 0; i < c->n; i++)
        width += c->widths[i] ? c->widths[i] + (width ? GAP : 0) : 0;
    return width + HANG * c->above;
}

static void natural_widths(const struct pen *p, const struct document_table *t, struct columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        c->widths[i] = columns_of(t->columns[i].name);
        for (const struct document_row *row = t->rows; row; row = row->next) {
            size_t width = columns_of(shown(p, &row->cells[i]));

            c->widths[i] = width > c->widths[i] ? width : c->widths[i];
        }
        if (!c->widths[i])
            c->widths[i] = 1;
        if (column_is_empty(t, i))
            c->widths[i] = 0;
    }
}

/* The widest column of texts that may still be made narrower; n: none. */
static size_t widest_text(const struct document_table *t, const struct columns *c, size_t least)
{
    size_t found = c->n;

    for (size_t i = 0; i < c->n; i++)
        if (!t->columns[i].number && c->widths[i] > least &&
            (found == c->n || c->widths[i] > c->widths[found]))
            found = i;
    return found;
}

/* The last column of those at this place; n: none is left. */
static size_t last_of_place(const struct document_table *t, const struct columns *c,
                            enum column_place place)
{
    for (size_t i = c->n; i-- > 0;)
        if (c->widths[i] && t->columns[i].place == place)
            return i;
    return c->n;
}

static void wrap_texts(const struct pen *p, const struct document_table *t, struct columns *c,
                       size_t least)
{
    size_t i;

    while (line_width(c) > p->at.width && (i = widest_text(t, c, least)) < c->n)
        c->widths[i]--;
}

/* A first column that repeats itself can go above its lines. */
static bool has_groups(const struct document_table *t)
{
    bool any = false;

    for (const struct document_row *row = t->rows; row; row = row->next) {
        if (row->cells[0].kind != CELL_TEXT || row->cells[0].n_notes)
            return false;
        any = any || (row->next && row_repeats(row, row->next));
    }
    return any;
}

/* So many columns go above the lines. */
static void take_above(const struct pen *p, const struct document_table *t, struct columns *c,
                       size_t n)
{
    c->above = n;
    natural_widths(p, t, c);
    for (size_t i = 0; i < n; i++)
        c->widths[i] = 0;
}

static void drop(const struct pen *p, const struct document_table *t, struct columns *c,
                 enum column_place place)
{
    size_t i;

    while (line_width(c) > p->at.width && (i = last_of_place(t, c, place)) < c->n)
        c->widths[i] = 0;
}

/* Texts are wrapped before a column leaves the line, and then more of it. */
static void fit_widths(const struct pen *p, const struct document_table *t, struct columns *c)
{
    static const struct {
        size_t least; /* columns of text are wrapped to this */
        enum column_place leaves;
    } steps[] = {{18, COLUMN_LEAVES}, {14, COLUMN_GOES_FIRST}, {12, COLUMN_GOES_LAST}};

    if (t->columns[0].place == COLUMN_ABOVE)
        take_above(p, t, c, 1);
    else
        natural_widths(p, t, c);
    wrap_texts(p, t, c, WRAPPED);
    drop(p, t, c, COLUMN_LEAVES);
    if (line_width(c) > p->at.width && !c->above && has_groups(t))
        take_above(p, t, c, 1);
    wrap_texts(p, t, c, 18);
    if (line_width(c) > p->at.width && c->above && c->n > 2 && !t->columns[1].number)
        take_above(p, t, c, 2);
    for (size_t step = 0; step < sizeof(steps) / sizeof(*steps); step++) {
        wrap_texts(p, t, c, steps[step].least);
        drop(p, t, c, steps[step].leaves);
    }
    wrap_texts(p, t, c, 1);
}

/* The first group's name stands in it, in place of that of a column of names. */
static void print_header(const struct pen *p, const struct document_table *t,
                         const struct columns *c, const char *group)
{
    size_t pad = *group ? 0 : HANG * c->above;

    for (size_t i = 0; i < c->n; i++) {
        const char *name = i == 1 && *group ? group : t->columns[i].name;
        size_t n, next, width = c->widths[i] + (i == 1 && *group ? HANG : 0);

        if (!c->widths[i])
            continue;
        if (!*name) { /* no blanks at the end of a line */
            pad += width + GAP;
            continue;
        }
        n = take(name, width, &next);
        if (t->columns[i].number)
            pad += width - wrap_columns(name, n);
        blanks(p, pad);
        if (i == 1 && *group)
            strong(p, name, n);
        else
            fwrite(name, 1, n, p->out);
        pad = GAP + (t->columns[i].number ? 0 : width - wrap_columns(name, n));
    }
    fputc('\n', p->out);
}

/* One line of a row's cells; false where none of them has anything left. */
static bool print_cells(const struct pen *p, const struct document_table *t,
                        const struct columns *c, const struct document_row *row, const char **texts)
{
    size_t pad = HANG * c->above;
    bool any = false;

    for (size_t i = 0; i < c->n; i++)
        any = any || (c->widths[i] && *texts[i]);
    for (size_t i = 0; any && i < c->n; i++) {
        size_t next = 0, width = c->widths[i], n = width ? take(texts[i], width, &next) : 0;
        size_t blank = width - wrap_columns(texts[i], n);

        if (!width)
            continue;
        if (n) {
            blanks(p, pad + (t->columns[i].number ? blank : 0));
            toned(p, row->cells[i].tone, texts[i], n);
            pad = t->columns[i].number ? GAP : blank + GAP;
        } else {
            pad += width + GAP;
        }
        texts[i] += next;
    }
    if (any)
        fputc('\n', p->out);
    return any;
}

static void print_under(const struct pen *p, const struct document_table *t,
                        const struct columns *c, const struct document_row *row)
{
    const char *text = "";

    for (size_t i = 0; i < c->n; i++) {
        const char *cell = shown(p, &row->cells[i]), *name = clean(p, t->columns[i].name);
        bool named = !strncmp(cell, name, strlen(name)); /* "+/- 3 %" */

        if (!c->widths[i] && *cell && i >= c->above && t->columns[i].place != COLUMN_LEAVES)
            text = pool_text(p->pool, "%s%s%s%s%s", text, *text ? "; " : "", named ? "" : name,
                             named ? "" : ": ", cell);
    }
    if (!*text)
        return;
    blanks(p, HANG * (c->above + 1));
    flow(p, text, HANG * (c->above + 1), HANG * (c->above + 1));
}

static void print_table(const struct pen *outer, const struct document_table *t)
{
    struct pen pen = *outer, *p = &pen;
    struct columns c = {.widths = pool_alloc(p->pool, t->n_columns, sizeof(*c.widths)),
                        .n = t->n_columns};
    const char **texts = pool_alloc(p->pool, t->n_columns, sizeof(*texts));
    const struct document_row *above = NULL;

    for (const int *cells = bar_cells;; cells++) {
        pen.bar = *cells;
        natural_widths(p, t, &c);
        if (t->columns[0].place == COLUMN_ABOVE)
            take_above(p, t, &c, 1);
        wrap_texts(p, t, &c, BESIDE_BAR);
        if (!*cells || line_width(&c) <= p->at.width)
            break;
    }
    fit_widths(p, t, &c);
    const char *group = c.above == 1 && !t->columns[1].number ? shown(p, &t->rows->cells[0]) : "";

    if (columns_of(group) > c.widths[1] + HANG)
        group = "";
    print_header(p, t, &c, group);
    for (const struct document_row *row = t->rows; row; above = row, row = row->next) {
        if (c.above && !row_repeats(above, row) && (above || !*group))
            title(p, shown(p, &row->cells[0]));
        if (c.above > 1) {
            blanks(p, HANG);
            flow(p, shown(p, &row->cells[1]), HANG, HANG);
        }
        for (size_t i = 0; i < c.n; i++)
            texts[i] = !i && row_repeats(above, row) ? "" : shown(p, &row->cells[i]);
        while (print_cells(p, t, &c, row, texts))
            ;
        print_under(p, t, &c, row);
    }
}

/* ---- blocks */

/* Of the answers that follow each other: the widest label. */
static size_t label_width(const struct pen *p, const struct block *first)
{
    size_t width = 0;

    for (const struct block *b = first; b && b->kind == BLOCK_ANSWER; b = b->next) {
        size_t n = columns_of(clean(p, b->label));

        width = n > width ? n : width;
    }
    return width + GAP;
}

static const char *line_text(const struct pen *p, const struct answer_line *line)
{
    return *line->command ? pool_text(p->pool, "%s: %s", line->text, line->command) : line->text;
}

static void print_answer(const struct pen *p, const struct block *b, size_t width)
{
    const char *label = clean(p, b->label), *word = clean(p, b->word);
    const char *text = clean(p, b->text);
    size_t at = width;

    strong(p, label, strlen(label));
    blanks(p, width - columns_of(label));
    if (*word) {
        toned(p, b->tone, word, strlen(word));
        fputs(*text ? ": " : "", p->out);
        at += columns_of(word) + (*text ? 2 : 0);
    }
    flow(p, text, at, width);
    for (const struct answer_line *line = b->lines; line; line = line->next) {
        blanks(p, width);
        flow(p, clean(p, line_text(p, line)), width, width + HANG);
    }
}

static void print_notes(const struct pen *p, const struct block *b)
{
    const struct note *note = b->notes;

    for (size_t i = 0; note && i < b->n_notes; i++, note = note->next) {
        int n = fprintf(p->out, "(%zu) ", note->number);

        flow(p, clean(p, note->text), n > 0 ? (size_t)n : 0, n > 0 ? (size_t)n : 0);
    }
}

#define ROW_WIDTH  60
#define ROW_LEVELS 8

/* The first line of a chart in a row of characters, one a point, or the mean of several where there
 * are more than ROW_WIDTH. Under it ^ at each mark, and - up to where what it marks ends. */
static void print_row(const struct pen *p, const struct plot *plot)
{
    static const char *const levels[][ROW_LEVELS] = {{"_", ".", "-", "=", "+", "*", "%", "#"},
                                                     {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}};
    const struct plot_line *line = &plot->lines[0];
    size_t width = line->n < ROW_WIDTH ? line->n : ROW_WIDTH, n[ROW_WIDTH] = {0};
    double sum[ROW_WIDTH] = {0}, low = INFINITY, high = -INFINITY;
    char under[ROW_WIDTH + 1] = "";

    for (size_t i = 0; i < line->n; i++)
        if (!isnan(line->points[i].y)) {
            sum[i * width / line->n] += line->points[i].y;
            n[i * width / line->n]++;
        }
    for (size_t c = 0; c < width; c++) {
        sum[c] /= (double)n[c]; /* NaN: no value is there */
        low = fmin(low, sum[c]);
        high = fmax(high, sum[c]);
    }
    for (size_t c = 0; c < width; c++) {
        int level = n[c] && high > low ? (int)((sum[c] - low) / (high - low) * ROW_LEVELS) : 3;

        level = level < ROW_LEVELS ? level : ROW_LEVELS - 1;
        fputs(n[c] ? levels[p->at.utf8][level] : " ", p->out);
    }
    fputc('\n', p->out);
    memset(under, ' ', width);
    for (size_t m = 0; m < plot->n_marks; m++) {
        char mark = '^';

        for (size_t i = 0; i < line->n; i++) {
            size_t c = i * width / line->n;

            if (line->points[i].x < plot->marks[m].at || line->points[i].x > plot->marks[m].to ||
                (mark == '-' && under[c] == '^'))
                continue;
            under[c] = mark;
            mark = '-';
        }
    }
    while (width && under[width - 1] == ' ')
        width--;
    if (width)
        fprintf(p->out, "%.*s\n", (int)width, under);
}

/* The words of a chart. */
static void print_figure(const struct pen *p, const struct block *b)
{
    const struct plot *plot = b->plot;
    const char *origin = plot->watermark ? pool_text(p->pool, " (%s)", plot->watermark) : "";

    flow(p, clean(p, pool_text(p->pool, "%s%s", b->text, origin)), 0, HANG);
    if (plot->in_a_row) {
        print_row(p, plot);
    } else {
        flow(p, clean(p, b->label), 0, HANG);
        if (b->table->n_rows)
            print_table(p, b->table);
    }
    if (*b->word)
        flow(p, clean(p, b->word), 0, HANG);
}

static void print_blocks(const struct pen *p, const struct document *d);

static void print_block(const struct pen *p, const struct block *b, size_t answers)
{
    switch (b->kind) {
    case BLOCK_HEADING:
        title(p, clean(p, b->text));
        break;
    case BLOCK_PARAGRAPH:
        flow(p, clean(p, b->text), 0, 0);
        break;
    case BLOCK_ANSWER:
        print_answer(p, b, answers);
        break;
    case BLOCK_ITEM:
        fputs("- ", p->out);
        flow(p, clean(p, b->text), HANG, HANG);
        break;
    case BLOCK_TABLE:
        if (b->table->n_rows)
            print_table(p, b->table);
        break;
    case BLOCK_NOTES:
        print_notes(p, b);
        break;
    case BLOCK_FIGURE:
        print_figure(p, b);
        break;
    case BLOCK_TERMS:
        for (size_t i = 0; i < b->n_terms; i++)
            flow(p, clean(p, pool_text(p->pool, "%s: %s", b->terms[i].word, b->terms[i].meaning)),
                 0, HANG);
        break;
    case BLOCK_FOLD:
        title(p, clean(p, b->text));
        if (p->at.folds)
            print_blocks(p, b->fold);
        break;
    }
}

static bool same_group(const struct block *a, const struct block *b)
{
    return a->kind == b->kind && (a->kind == BLOCK_ANSWER || a->kind == BLOCK_ITEM);
}

static void print_blocks(const struct pen *p, const struct document *d)
{
    const struct block *above = NULL;
    size_t answers = 0;

    for (const struct block *b = d->blocks; b; above = b, b = b->next) {
        if (above && !same_group(above, b) && above->kind != BLOCK_HEADING &&
            !(above->kind == BLOCK_FIGURE && above->plot->in_a_row && b->kind == BLOCK_ITEM))
            fputc('\n', p->out);
        if (b->kind == BLOCK_ANSWER && !(above && same_group(above, b)))
            answers = label_width(p, b);
        print_block(p, b, answers);
    }
}

int document_write_terminal(const struct document *d, const struct document_terminal *terminal,
                            FILE *out)
{
    struct pen p = {.out = out, .pool = d->pool, .at = *terminal};

    if (p.at.width < DOCUMENT_WIDTH_LEAST)
        p.at.width = DOCUMENT_WIDTH_LEAST;
    print_blocks(&p, d);
    return ferror(out) ? -EIO : 0;
}
