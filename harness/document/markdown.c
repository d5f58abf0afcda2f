/* SPDX-License-Identifier: Apache-2.0 */
/* A document as GitHub's Markdown: see document.h. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "harness/document/markdown_text.h"
#include "harness/document/tree.h"

/* At the beginning of a line these begin a list, a heading, or underline one. */
static void line_text(FILE *out, const char *text)
{
    text += strspn(text, " \t\r\n");
    size_t digits = strspn(text, "0123456789");

    if (digits && text[digits] && strchr(".)", text[digits])) {
        fprintf(out, "%.*s\\%c", (int)digits, text, text[digits]);
        text += digits + 1;
    } else if (*text && strchr("-+=", *text)) {
        fprintf(out, "\\%c", *text++);
    }
    markdown_text(out, text);
}

static void write_row(const struct document_table *t, const struct document_row *row, FILE *out)
{
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct cell *cell = &row->cells[i];
        bool strong = cell->tone != TONE_NONE;

        if (column_is_empty(t, i))
            continue;
        fputs(strong ? "| **" : "| ", out);
        markdown_text(out, cell_shown(t->pool, cell));
        fputs(strong ? "**" : "", out);
        fprintf(out, cell->n_notes ? " %s " : " ", cell_notes(t->pool, cell));
    }
    fputs("|\n", out);
}

static void write_table(const struct document_table *t, FILE *out)
{
    for (size_t i = 0; i < t->n_columns; i++) {
        if (column_is_empty(t, i))
            continue;
        fputs("| ", out);
        markdown_text(out, t->columns[i].name);
        fputc(' ', out);
    }
    fputs("|\n", out);
    for (size_t i = 0; i < t->n_columns; i++)
        if (!column_is_empty(t, i))
            fputs(t->columns[i].number ? "|---:" : "|---", out);
    fputs("|\n", out);
    for (const struct document_row *row = t->rows; row; row = row->next)
        write_row(t, row, out);
}

/* In a span of code nothing is escaped: its quotes are longer than any inside. */
static void write_code(FILE *out, struct pool *pool, const char *command)
{
    size_t longest = 0, n = 0;
    char *shown = pool_alloc(pool, strlen(command) + 1, 1);

    for (size_t i = 0; command[i]; i++) {
        shown[i] = iscntrl((unsigned char)command[i]) ? ' ' : command[i];
        n = command[i] == '`' ? n + 1 : 0;
        longest = n > longest ? n : longest;
    }
    for (size_t i = 0; i <= longest; i++)
        fputc('`', out);
    fprintf(out, longest ? " %s " : "%s", shown);
    for (size_t i = 0; i <= longest; i++)
        fputc('`', out);
}

static void write_answer(struct pool *pool, const struct block *b, FILE *out)
{
    fputs("- **", out);
    markdown_text(out, b->label);
    fputs("**: ", out);
    if (*b->word) {
        fputs(b->tone == TONE_NONE ? "" : "**", out);
        markdown_text(out, b->word);
        fputs(b->tone == TONE_NONE ? "" : "**", out);
        fputs(*b->text ? ": " : "", out);
    }
    markdown_text(out, b->text);
    for (const struct answer_line *line = b->lines; line; line = line->next) {
        fputs("<br>\n  ", out);
        line_text(out, line->text);
        if (!*line->command)
            continue;
        fputs(": ", out);
        write_code(out, pool, line->command);
    }
    fputc('\n', out);
}

static void write_notes(const struct block *b, FILE *out)
{
    const struct note *note = b->notes;

    for (size_t i = 0; note && i < b->n_notes; i++, note = note->next) {
        fprintf(out, "%s(%zu) ", i ? "<br>\n" : "", note->number);
        markdown_text(out, note->text);
    }
    fputc('\n', out);
}

/* The words of a chart. */
static void write_figure(const struct block *b, FILE *out)
{
    fputs("**", out);
    markdown_text(out, b->text);
    fputs("**", out);
    if (b->plot->watermark) {
        fputs(" (", out);
        markdown_text(out, b->plot->watermark);
        fputc(')', out);
    }
    fputs("<br>", out);
    markdown_text(out, b->label);
    fputs("\n\n", out);
    if (b->table->n_rows)
        write_table(b->table, out);
    if (*b->word) {
        fputc('\n', out);
        markdown_text(out, b->word);
        fputc('\n', out);
    }
}

static void write_blocks(const struct document *d, FILE *out);

static void write_block(struct pool *pool, const struct block *b, FILE *out)
{
    static const char marks[] = "######";

    switch (b->kind) {
    case BLOCK_HEADING:
        fprintf(out, "%.*s ", b->level < 1 ? 1 : b->level > 6 ? 6 : (int)b->level, marks);
        markdown_text(out, b->text);
        fputc('\n', out);
        break;
    case BLOCK_PARAGRAPH:
        line_text(out, b->text);
        fputc('\n', out);
        break;
    case BLOCK_ANSWER:
        write_answer(pool, b, out);
        break;
    case BLOCK_ITEM:
        fputs("- ", out);
        line_text(out, b->text);
        fputc('\n', out);
        break;
    case BLOCK_TABLE:
        if (b->table->n_rows)
            write_table(b->table, out);
        break;
    case BLOCK_NOTES:
        write_notes(b, out);
        break;
    case BLOCK_FIGURE:
        write_figure(b, out);
        break;
    case BLOCK_TERMS:
        for (size_t i = 0; i < b->n_terms; i++) {
            fputs("- **", out);
            markdown_text(out, b->terms[i].word);
            fputs("**: ", out);
            markdown_text(out, b->terms[i].meaning);
            fputc('\n', out);
        }
        break;
    case BLOCK_FOLD:
        fputs("<details><summary>", out);
        markdown_text(out, b->text);
        fputs("</summary>\n\n", out);
        write_blocks(b->fold, out);
        fputs("\n</details>\n", out);
        break;
    }
}

static void write_blocks(const struct document *d, FILE *out)
{
    const struct block *above = NULL;

    for (const struct block *b = d->blocks; b; above = b, b = b->next) {
        bool list = b->kind == BLOCK_ANSWER || b->kind == BLOCK_ITEM;

        if (above && !(list && above->kind == b->kind))
            fputc('\n', out);
        write_block(d->pool, b, out);
    }
}

int document_write_markdown(const struct document *d, FILE *out)
{
    write_blocks(d, out);
    return ferror(out) ? -EIO : 0;
}
