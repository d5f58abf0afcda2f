/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of probe_print() share. Each reads one part of the machine's object and adds it to the
 * document, with its heading. */
#ifndef PLUMB_PROBE_PRINT_H
#define PLUMB_PROBE_PRINT_H

#include <jansson.h>

#include "harness/document/document.h"

struct print {
    struct document *d;
    struct pool *pool;
    const json_t *machine;
};

/* The text, or the whole number, under key; "?" where it is not known. */
const char *print_text(const json_t *object, const char *key);
const char *print_integer(struct print *p, const json_t *object, const char *key);
/* Bytes as "32 KiB", "23.5 GiB"; "?" where they are not known. */
const char *print_bytes(struct print *p, const json_t *object, const char *key);
/* "1 thread", "? threads". */
const char *print_count(struct print *p, const json_t *object, const char *key, const char *one);

/* A line of a section: its label, and the text. */
#define print_line(p, label, ...)                                                                  \
    document_answer((p)->d, label, "", TONE_NONE, pool_text((p)->pool, __VA_ARGS__))

void print_pci(struct print *p);
void print_network(struct print *p);
void print_rdma(struct print *p);
void print_gpus(struct print *p);
void print_findings(struct print *p);

/* ---- Tables, whose cells are written from left to right; a new row begins by itself ---- */

struct rows {
    struct print *p;
    struct document_table *table; /* NULL: none yet */
    struct document_column *columns;
    size_t n, at;
    struct cell *row;
};

/* The names of the columns, with '|' between; '>' before those that leave a narrow line first. A table
 * without a row is none. */
struct rows rows_begin(struct print *p, const char *names);
void rows_cell(struct rows *t, const char *text); /* "": nothing to say */
#define rows_print(t, ...) rows_cell(t, pool_text((t)->p->pool, __VA_ARGS__))
/* Members of the object, their keys with '|' between: a text or a whole number, else `other`. */
void rows_keys(struct rows *t, const json_t *object, const char *keys, const char *other);

#endif
