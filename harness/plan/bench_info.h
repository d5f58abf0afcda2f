/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmarks that are installed, as they describe themselves (plumb-NAME --describe). The
 * harness knows no benchmark by name: options, types, bounds and columns come from here.
 *
 * They are looked for beside the running program, then in PATH, as git finds its commands.
 */
#ifndef PLUMB_HARNESS_BENCH_INFO_H
#define PLUMB_HARNESS_BENCH_INFO_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/backend.h"
#include "core/bench_rows.h"
#include "core/option.h"

/* What benchmarks said of their rows (core/bench_rows.h), read from JSON: of --describe, or of a
 * run folder, whose run.json keeps the object `rows` of every benchmark that was installed, by
 * name, under `benchmarks`. */

/* Reads one such object. All tables are there, ended as bench_rows.h says; their texts are the
 * JSON's, which is to live as long. A text that every entry needs is there. 0; -EBADMSG: it is
 * damaged, error says where. *rows is empty on an error. */
int rows_described_read(const json_t *told, struct bench_rows *rows, char *error, size_t len);
void rows_described_release(struct bench_rows *rows);

/* Adds those columns of `from` that `rows` lacks: another version's. */
void rows_described_add_columns(struct bench_rows *rows, const struct bench_rows *from);

/* As core/backend.h; a text that is not known is "". */
struct bench_backend {
    char *name, *version, *what, *why;
    enum backend_state state;
    bool simulated;
    char address[16]; /* in lower case, so that addresses sort as texts */
};

struct bench_info {
    char *name, *path, *help, *needs, *origin;
    /* Ends with a NULL name; offset is not used; OPT_LIST, OPT_COLUMN and OPT_KEPT are set. */
    struct opt *options;
    char **defaults; /* for each option: its values as one text, "a,b"; "" when unset */
    size_t n_own;    /* the first n_own options are the benchmark's, the others are those that all
                        share */
    char **columns;  /* of the parameters in its rows */
    size_t n_columns;
    struct bench_backend *backends;
    size_t n_backends;
    json_t *described; /* of its rows, as run.json keeps it */
    struct bench_rows rows;
};

struct bench_list {
    struct bench_info *benches; /* by name */
    size_t n;
    char *problems; /* a line for each program without a description, "" when none; owned */
};

/* Finds and asks all, at the same time. */
void bench_list_load(struct bench_list *list);
void bench_list_release(struct bench_list *list);

/* Asks for the defaults that hold beside other options: `words` are those, as on a command line,
 * ended by NULL. A new array as bench_info.defaults, ended by NULL (texts_free), or NULL with
 * error. */
char **bench_ask_defaults(const struct bench_info *b, const char *const *words, char *error,
                          size_t len);

/* Does it say that it needs this: "peer", "gpu"? */
bool bench_needs(const struct bench_info *b, const char *what);
/* May its cases be run between two hosts: all ("peer"), or those that ask for it
 * ("peer-if-asked")? */
bool bench_takes_peer(const struct bench_info *b);

const struct bench_info *bench_list_find(const struct bench_list *list, const char *name);

/* Path of plumb-NAME as a new text, or NULL: beside this program first, then PATH. */
char *bench_find_program(const char *name);

/* The folder of the running program, no '/' at the end. */
int program_folder(char *path, size_t len);

#endif
