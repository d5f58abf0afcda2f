/* SPDX-License-Identifier: Apache-2.0 */
/* A document as HTML: see document.h. Classes begin with "d-", as they stand in document.css
 * and, for charts, in plot.css. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "harness/document/html.h"
#include "harness/document/tree.h"

/* The assembler takes it in as it is; the path is from the root of the sources, where make runs. */
__asm__(".pushsection .rodata.document_style,\"a\"\n"
        ".global document_style\n"
        ".type document_style, %object\ndocument_style:\n"
        ".incbin \"harness/document/plot.css\"\n"
        ".incbin \"harness/document/document.css\"\n"
        ".byte 0\n"
        ".size document_style, . - document_style\n"
        ".popsection\n");

static const char *const tones[] = {[TONE_NONE] = "", [TONE_LOW] = " d-low", [TONE_BAD] = " d-bad"};

static const char *const kinds[] = {
    [CELL_EMPTY] = "d-empty",    [CELL_TEXT] = "d-text",   [CELL_VALUE] = "d-value",
    [CELL_INTERVAL] = "d-sides", [CELL_SHARE] = "d-share", [CELL_WORD] = "d-word"};

struct pen {
    FILE *out;
    struct pool *pool;
    const struct document *d;
    bool *met; /* the terms that are linked already */
};

/* ---- terms */

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* The length of the word in the text, with an "s" or "es" behind it; 0: it does not begin there. */
static size_t match(const char *text, const char *word)
{
    size_t n = strlen(word);

    if (strncasecmp(text, word, n) != 0)
        return 0;
    n += !strncmp(text + n, "es", 2) && !is_letter(text[n + 2]) ? 2 : text[n] == 's';
    return is_letter(text[n]) ? 0 : n;
}

/* The first place where a term stands that is not linked yet; *length 0: there is none. */
static const char *find_term(const struct pen *p, const char *text, size_t *term, size_t *length)
{
    *length = 0;
    for (const char *at = text; *at; at++)
        for (size_t i = 0; (at == text || !is_letter(at[-1])) && i < p->d->n_linked; i++) {
            *length = p->met[i] ? 0 : match(at, p->d->linked[i].word);
            *term = i;
            if (*length)
                return at;
        }
    return text;
}

static void write_text(const struct pen *p, const char *text)
{
    size_t term, length;

    for (const char *at; (at = find_term(p, text, &term, &length), length); text = at + length) {
        html_print(p->out, "%s<a class='d-term' href='#term-%zu' title='%s'>%s</a>",
                   pool_text(p->pool, "%.*s", (int)(at - text), text), term,
                   p->d->linked[term].meaning, pool_text(p->pool, "%.*s", (int)length, at));
        p->met[term] = true;
    }
    html_text(p->out, text);
}

/* ---- tables */

static void write_cell(const struct pen *p, const struct document_column *column,
                       const struct cell *cell, bool repeats)
{
    FILE *out = p->out;

    html_print(out, "<td class='%s%s%s%s%s' data-of='%s'", kinds[cell->kind], tones[cell->tone],
               column->number ? " d-number" : "", repeats ? " d-repeats" : "",
               cell->reference ? " d-reference" : "", column->name);
    if (cell->bar)
        fprintf(out, " style='--share:%.0f%%'", fmin(fmax(cell->value, 0), 100));
    fputs(">", out);
    write_text(p, cell_shown(p->pool, cell));
    for (size_t i = 0; i < cell->n_notes; i++)
        fprintf(out, "<sup>%s<a href='#note-%zu'>%zu</a></sup>", i ? ", " : "", cell->notes[i],
                cell->notes[i]);
    fputs("</td>", out);
}

#define MANY_COLUMNS 8 /* they are printed across the sheet */

static void write_table(const struct pen *p, const struct document_table *t)
{
    const struct document_row *above = NULL;
    FILE *out = p->out;
    size_t shown = 0;

    for (size_t i = 0; i < t->n_columns; i++)
        shown += !column_is_empty(t, i);
    fprintf(out, "<table class='d-table%s'>\n<thead><tr>", shown >= MANY_COLUMNS ? " d-many" : "");
    for (size_t i = 0; i < t->n_columns; i++)
        if (!column_is_empty(t, i))
            html_print(out, "<th scope='col' class='%s'>%s</th>",
                       t->columns[i].number ? "d-number" : "", t->columns[i].name);
    fputs("</tr></thead>\n<tbody>\n", out);
    for (const struct document_row *row = t->rows; row; above = row, row = row->next) {
        fputs("<tr>", out);
        for (size_t i = 0; i < t->n_columns; i++)
            if (!column_is_empty(t, i))
                write_cell(p, &t->columns[i], &row->cells[i], !i && row_repeats(above, row));
        fputs("</tr>\n", out);
    }
    fputs("</tbody>\n</table>\n", out);
}

/* ---- blocks */

static void write_answer(const struct pen *p, const struct block *b)
{
    FILE *out = p->out;

    html_print(out, "<dt>%s</dt><dd>", b->label);
    if (*b->word) {
        html_print(out, "<b class='d-grade%s'>%s</b>", tones[b->tone], b->word);
        fputs(*b->text ? ": " : "", out);
    }
    write_text(p, b->text);
    for (const struct answer_line *line = b->lines; line; line = line->next) {
        fputs("<span class='d-more'>", out);
        write_text(p, line->text);
        if (*line->command)
            html_print(out, ": <code>%s</code>", line->command);
        fputs("</span>", out);
    }
    fputs("</dd>\n", out);
}

static void write_notes(const struct pen *p, const struct block *b)
{
    FILE *out = p->out;
    const struct note *note = b->notes;

    if (note)
        fprintf(out, "<ol class='d-notes' start='%zu'>\n", note->number);
    for (size_t i = 0; note && i < b->n_notes; i++, note = note->next) {
        fprintf(out, "<li id='note-%zu'>", note->number);
        write_text(p, note->text);
        fputs("</li>\n", out);
    }
    if (b->notes)
        fputs("</ol>\n", out);
}

static void write_heading(const struct block *b, FILE *out)
{
    unsigned level = b->level < 1 ? 1 : b->level > 6 ? 6 : b->level;

    fprintf(out, "<h%u", level);
    if (*b->anchor)
        html_print(out, " id='%s'", b->anchor);
    fputc('>', out);
    html_text(out, b->text);
    fprintf(out, "</h%u>\n", level);
}

static void write_figure(const struct pen *p, const struct block *b)
{
    html_print(p->out, "<figure class='d-figure'>\n<figcaption>%s", b->text);
    if (b->plot->watermark)
        html_print(p->out, " <span class='d-origin'>%s</span>", b->plot->watermark);
    fputs("</figcaption>\n", p->out);
    plot_write_html(p->pool, b->plot, p->out);
    if (*b->word)
        html_print(p->out, "<p class='d-more'>%s</p>\n", b->word);
    fputs("</figure>\n", p->out);
}

static void write_blocks(const struct pen *p, const struct document *d);

static void write_block(const struct pen *p, const struct block *b)
{
    FILE *out = p->out;

    switch (b->kind) {
    case BLOCK_HEADING:
        write_heading(b, out);
        break;
    case BLOCK_PARAGRAPH:
        html_print(out, "<p>%s</p>\n", b->text);
        break;
    case BLOCK_ANSWER:
        write_answer(p, b);
        break;
    case BLOCK_ITEM:
        fputs("<li>", out);
        write_text(p, b->text);
        fputs("</li>\n", out);
        break;
    case BLOCK_TABLE:
        if (b->table->n_rows)
            write_table(p, b->table);
        break;
    case BLOCK_NOTES:
        write_notes(p, b);
        break;
    case BLOCK_FIGURE:
        write_figure(p, b);
        break;
    case BLOCK_TERMS:
        fputs("<dl class='d-terms'>\n", out);
        for (size_t i = 0; i < b->n_terms; i++)
            html_print(out, "<dt id='term-%zu'>%s</dt><dd>%s</dd>\n", i, b->terms[i].word,
                       b->terms[i].meaning);
        fputs("</dl>\n", out);
        break;
    case BLOCK_FOLD:
        html_print(out, "<details class='d-fold'><summary>%s</summary>\n", b->text);
        write_blocks(p, b->fold);
        fputs("</details>\n", out);
        break;
    }
}

/* The element around blocks that follow each other; NULL: none. */
static const char *group_of(const struct block *b)
{
    return !b ? NULL : b->kind == BLOCK_ANSWER ? "dl" : b->kind == BLOCK_ITEM ? "ul" : NULL;
}

static void write_blocks(const struct pen *p, const struct document *d)
{
    const char *inside = NULL;
    FILE *out = p->out;

    for (const struct block *b = d->blocks; b; b = b->next) {
        const char *group = group_of(b);

        if (group != inside) {
            if (inside)
                fprintf(out, "</%s>\n", inside);
            if (group)
                fprintf(out, "<%s class='d-%s'>\n", group,
                        b->kind == BLOCK_ANSWER ? "answers" : "items");
        }
        inside = group;
        write_block(p, b);
    }
    if (inside)
        fprintf(out, "</%s>\n", inside);
}

int document_write_html(const struct document *d, FILE *out)
{
    write_blocks(&(struct pen){.out = out,
                               .pool = d->pool,
                               .d = d,
                               .met = pool_alloc(d->pool, d->n_linked, sizeof(bool))},
                 d);
    return ferror(out) ? -EIO : 0;
}
