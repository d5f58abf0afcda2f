/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmarks that are installed, as they describe themselves (plumb-NAME --describe). The
 * harness knows no benchmark by name: options, types, bounds and columns come from here.
 *
 * They are looked for beside the running program, then in PATH, as git finds its commands.
 */
#ifndef PLUMB_HARNESS_BENCH_INFO_H
#define PLUMB_HARNESS_BENCH_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/backend.h"
#include "core/option.h"
#include "harness/plan/rows_told.h"

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
    json_t *told; /* of its rows, as run.json keeps it */
    struct bench_rows rows;
};

struct bench_list {
    struct bench_info *benches; /* by name */
    size_t n;
    char *problems; /* a line for each program without a description, "" when none; owned */
};

/* Finds and asks all, at the same time. 0 or -ENOMEM. */
int bench_list_load(struct bench_list *list);
void bench_list_release(struct bench_list *list);

/* Asks for the defaults that hold beside other options: `words` are those, as on a command line,
 * ended by NULL. A new array as bench_info.defaults, ended by NULL (texts_free), or NULL with
 * error. */
char **bench_ask_defaults(const struct bench_info *b, const char *const *words, char *error,
                          size_t len);

/* Does it say that it needs this: "peer", "gpu"? */
bool bench_needs(const struct bench_info *b, const char *what);

const struct bench_info *bench_list_find(const struct bench_list *list, const char *name);

/* Path of plumb-NAME as a new text, or NULL: beside this program first, then PATH. */
char *bench_find_program(const char *name);

/* The folder of the running program, no '/' at the end. */
int program_folder(char *path, size_t len);

#endif
