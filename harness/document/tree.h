/* SPDX-License-Identifier: Apache-2.0 */
/* What document.h hides: the blocks, between tree.c, which makes them, and the writers. */
#ifndef PLUMB_DOCUMENT_TREE_H
#define PLUMB_DOCUMENT_TREE_H

#include "harness/document/document.h"

enum block_kind {
    BLOCK_HEADING,
    BLOCK_PARAGRAPH,
    BLOCK_ANSWER,
    BLOCK_ITEM,
    BLOCK_TABLE,
    BLOCK_NOTES,
    BLOCK_FIGURE,
    BLOCK_TERMS,
    BLOCK_FOLD
};

struct answer_line {
    struct answer_line *next;
    const char *text, *command;
};

struct document_row {
    struct document_row *next;
    struct cell *cells;
};

struct document_table {
    struct pool *pool;
    const struct document_column *columns;
    size_t n_columns, n_rows;
    struct document_row *rows, **end;
};

struct note {
    struct note *next;
    size_t number;
    const char *text;
};

struct block {
    struct block *next;
    enum block_kind kind;
    unsigned level;
    enum tone tone;
    const char *text, *label, *word, *anchor;
    const struct plot *plot;
    struct answer_line *lines, **lines_end;
    struct document_table *table;
    const struct note *notes; /* n_notes from here */
    size_t n_notes;
    const struct document_term *terms;
    size_t n_terms;
    struct document *fold;
};

struct document {
    struct pool *pool;
    struct block *blocks, **end, *last;
    struct note *notes, **notes_end, *listed; /* listed: the first that is not */
    size_t n_notes, n_listed;
    const struct document_term *linked; /* terms that are linked to */
    size_t n_linked;
    struct document *root; /* whose notes are used; itself outside of folds */
};

/* The text that a cell shows, without its notes. */
const char *cell_shown(struct pool *pool, const struct cell *cell);
/* "(1, 3)"; "" without notes. */
const char *cell_notes(struct pool *pool, const struct cell *cell);
/* Is no cell of the column filled? Then no writer shows it. */
bool column_is_empty(const struct document_table *t, size_t column);
/* Does the row begin with the text that the row above begins with? */
bool row_repeats(const struct document_row *above, const struct document_row *row);

#endif
