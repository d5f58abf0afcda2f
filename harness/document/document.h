/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document that is made once and written for a terminal, as HTML and as Markdown.
 *
 * It is a list of blocks, in the order in which they are added: headings, paragraphs, answers,
 * lists, tables, notes, figures, and folds, which hold blocks of their own.
 *
 *   memory    All is in the pool of document_new(), and lives as long as it. Texts are not copied:
 *             they must live as long, too.
 *   texts     may hold anything: each writer escapes them for its format. Control characters become
 *             blanks, bytes that are not UTF-8 the replacement character.
 *   tones     are the only colour there is, beside the lines of charts. A tone never says more than
 *             the word that has it.
 *   numbers   are cells with a type, so that each writer aligns and words them alike.
 */
#ifndef PLUMB_DOCUMENT_H
#define PLUMB_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "harness/document/plot.h"
#include "harness/document/pool.h"

struct document;
struct document_table;

struct document *document_new(struct pool *pool);

/* level: 1 to 6. anchor: what a link names it by, "" for none. */
void document_heading(struct document *d, unsigned level, const char *text, const char *anchor);
void document_paragraph(struct document *d, const char *text);

/* One line of an answer: "Sensitivity   C: ...". Answers that follow each other are aligned. word may be
 * "". */
void document_answer(struct document *d, const char *label, const char *word, enum tone tone,
                     const char *text);
/* A further line of the last answer. command: what is to be typed, or "". */
void document_answer_more(struct document *d, const char *text, const char *command);

/* Items that follow each other are one list. */
void document_item(struct document *d, const char *text);

/* ---- tables */

/* Which columns leave the line first where a terminal is narrow: they go under it, with their
 * names; one that LEAVES is not shown at all then, and goes before a text is wrapped to less than
 * WRAPPED. A first column may stand above the lines that have the same text in it. */
enum column_place {
    COLUMN_STAYS,
    COLUMN_GOES_LAST,
    COLUMN_GOES_FIRST,
    COLUMN_LEAVES,
    COLUMN_ABOVE
};

struct document_column {
    const char *name;
    enum column_place place;
    bool number; /* aligned to the right */
};

enum cell_kind { CELL_EMPTY, CELL_TEXT, CELL_VALUE, CELL_INTERVAL, CELL_SHARE, CELL_WORD };

#define CELL_NOTES_MAX 16

struct cell {
    enum cell_kind kind;
    const char *text;        /* the text, the word, or the unit */
    double value, low, high; /* of an interval, its ends; share: value is in % */
    bool reference;          /* the share is of a reference, not of a limit */
    bool bar;                /* a share that is also drawn, where there is room */
    enum tone tone;
    size_t notes[CELL_NOTES_MAX]; /* numbers of document_note() */
    size_t n_notes;
};

struct cell cell_text(const char *text);
struct cell cell_value(double value, const char *unit); /* NaN: an empty cell; so the next two */
struct cell cell_interval(double value, double low, double high); /* "+/- 1.3 %", "-5.4/+8.7 %" */
struct cell cell_share(double percent, bool reference);
struct cell cell_word(const char *word, enum tone tone);
/* Adds the number of a note, at most CELL_NOTES_MAX of them, in rising order; 0 adds none. */
void cell_note(struct cell *cell, size_t note);

/* columns are the caller's, and live as long as the document. A first column with the same text as
 * in the row above is shown once. */
struct document_table *document_table(struct document *d, const struct document_column *columns,
                                      size_t n);
/* The cells of a further row, one a column, all empty: to be assigned. */
struct cell *document_row(struct document_table *t);

/* The number of the note with this text, from 1: equal texts are one note. "" is none: 0. */
size_t document_note(struct document *d, const char *text);
/* Lists the notes that were numbered so far and not listed yet. */
void document_notes(struct document *d);

/* ---- terms */

struct document_term {
    const char *word, *meaning;
};

/* In HTML, the first time that a word stands in an answer, a cell, a note or a list, it links to
 * its meaning, "#term-0" for the first; also before an "s" or "es". The terms are the caller's,
 * as columns. */
void document_link_terms(struct document *d, const struct document_term *terms, size_t n);
/* Lists them: what those links lead to. */
void document_terms(struct document *d, const struct document_term *terms, size_t n);

/* The chart, with its title, and a note below it (or ""). It must live as long as the document.
 * HTML shows the picture, the others a table: the rows of a chart of few rows, else the range of
 * each line. */
void document_figure(struct document *d, const struct plot *plot, const char *note);

/* What is added to the document that is returned can be unfolded in HTML and Markdown. A terminal
 * shows the title alone, unless asked for more. */
struct document *document_fold(struct document *d, const char *title);

/* ---- writers. Each returns 0, or -EIO where `out` has an error. */

#define DOCUMENT_WIDTH_LEAST 60

struct document_terminal {
    size_t width; /* columns; less than DOCUMENT_WIDTH_LEAST counts as that */
    bool colour, utf8, folds;
};

/* Of the terminal that `out` is, of NO_COLOR, TERM and the locale; no colour where it is none. */
struct document_terminal document_terminal_of(FILE *out);

int document_write_terminal(const struct document *d, const struct document_terminal *terminal,
                            FILE *out);
/* Blocks for a page, in elements with classes of document_style. */
int document_write_html(const struct document *d, FILE *out);
/* GitHub's Markdown. */
int document_write_markdown(const struct document *d, FILE *out);

/* The style sheet of the blocks: phone, desktop, dark and print. */
extern const char document_style[];

/* ---- numbers in words, as the writers show them */

/* Four digits, no exponent between 0.0001 and 1e7: 0.01234, 12.34, 1234, 123456. NaN: "". */
const char *document_number(struct pool *pool, double value);
const char *document_percent(struct pool *pool, double percent); /* "91.7 %", "0.43 %"; NaN: "" */

#endif
