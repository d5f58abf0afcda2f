/* SPDX-License-Identifier: Apache-2.0 */
/* A document as HTML: see document.h. Classes begin with "d-", as they stand in document.css. */
#include "harness/document/tree.h"
#include "harness/report/html.h"

/* The assembler takes it in as it is; the path is from the root of the sources, where make runs. */
__asm__(".pushsection .rodata.document_style,\"a\"\n"
        ".global document_style\n"
        ".type document_style, %object\ndocument_style:\n"
        ".incbin \"harness/document/document.css\"\n"
        ".byte 0\n"
        ".size document_style, . - document_style\n"
        ".popsection\n");

static const char *const tones[] = {[TONE_NONE] = "", [TONE_LOW] = " d-low", [TONE_BAD] = " d-bad"};

static const char *const kinds[] = {
    [CELL_EMPTY] = "d-empty",    [CELL_TEXT] = "d-text",   [CELL_VALUE] = "d-value",
    [CELL_INTERVAL] = "d-sides", [CELL_SHARE] = "d-share", [CELL_WORD] = "d-word"};

static void write_cell(struct pool *pool, const struct document_column *column,
                       const struct cell *cell, bool repeats, FILE *out)
{
    html_print(out, "<td class='%s%s%s%s' data-of='%s'>", kinds[cell->kind], tones[cell->tone],
               column->number ? " d-number" : "", repeats ? " d-repeats" : "", column->name);
    html_text(out, cell_shown(pool, cell));
    for (size_t i = 0; i < cell->n_notes; i++)
        fprintf(out, "<sup>%s<a href='#note-%zu'>%zu</a></sup>", i ? ", " : "", cell->notes[i],
                cell->notes[i]);
    fputs("</td>", out);
}

static void write_table(const struct document_table *t, FILE *out)
{
    const struct document_row *above = NULL;

    fputs("<table class='d-table'>\n<thead><tr>", out);
    for (size_t i = 0; i < t->n_columns; i++)
        html_print(out, "<th scope='col'%s>%s</th>", "", t->columns[i].name);
    fputs("</tr></thead>\n<tbody>\n", out);
    for (const struct document_row *row = t->rows; row; above = row, row = row->next) {
        fputs("<tr>", out);
        for (size_t i = 0; i < t->n_columns; i++)
            write_cell(t->pool, &t->columns[i], &row->cells[i], !i && row_repeats(above, row), out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody>\n</table>\n", out);
}

static void write_answer(const struct block *b, FILE *out)
{
    html_print(out, "<dt>%s</dt><dd>", b->label);
    if (*b->word) {
        html_print(out, "<b class='d-grade%s'>%s</b>", tones[b->tone], b->word);
        fputs(*b->text ? ": " : "", out);
    }
    html_text(out, b->text);
    for (const struct answer_line *line = b->lines; line; line = line->next) {
        html_print(out, "<span class='d-more'>%s", line->text);
        if (*line->command)
            html_print(out, ": <code>%s</code>", line->command);
        fputs("</span>", out);
    }
    fputs("</dd>\n", out);
}

static void write_notes(const struct block *b, FILE *out)
{
    const struct note *note = b->notes;

    if (note)
        fprintf(out, "<ol class='d-notes' start='%zu'>\n", note->number);
    for (size_t i = 0; note && i < b->n_notes; i++, note = note->next) {
        fprintf(out, "<li id='note-%zu'>", note->number);
        html_text(out, note->text);
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

static void write_blocks(const struct document *d, FILE *out);

static void write_block(const struct block *b, FILE *out)
{
    switch (b->kind) {
    case BLOCK_HEADING:
        write_heading(b, out);
        break;
    case BLOCK_PARAGRAPH:
        html_print(out, "<p>%s</p>\n", b->text);
        break;
    case BLOCK_ANSWER:
        write_answer(b, out);
        break;
    case BLOCK_ITEM:
        html_print(out, "<li>%s</li>\n", b->text);
        break;
    case BLOCK_TABLE:
        if (b->table && b->table->n_rows)
            write_table(b->table, out);
        break;
    case BLOCK_NOTES:
        write_notes(b, out);
        break;
    case BLOCK_FIGURE:
        fprintf(out, "<figure class='d-figure'>\n%s\n<figcaption>", b->svg);
        html_text(out, b->text);
        fputs("</figcaption></figure>\n", out);
        break;
    case BLOCK_FOLD:
        html_print(out, "<details class='d-fold'><summary>%s</summary>\n", b->text);
        if (b->fold)
            write_blocks(b->fold, out);
        fputs("</details>\n", out);
        break;
    }
}

/* The element around blocks that follow each other; NULL: none. */
static const char *group_of(const struct block *b)
{
    return !b ? NULL : b->kind == BLOCK_ANSWER ? "dl" : b->kind == BLOCK_ITEM ? "ul" : NULL;
}

static void write_blocks(const struct document *d, FILE *out)
{
    const char *inside = NULL;

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
        write_block(b, out);
    }
    if (inside)
        fprintf(out, "</%s>\n", inside);
}

int document_write_html(const struct document *d, FILE *out)
{
    if (d)
        write_blocks(d, out);
    return document_result(d, out);
}
