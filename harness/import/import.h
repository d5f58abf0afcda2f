/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb import: rows of a run folder out of what programs of others printed (harness/foreign). Which
 * case of which benchmark a line is equal to, the benchmark says (bench_imported).
 *
 * A file is a launch. Files whose rows are of the same cases are launches of one case, in the order
 * of the command line. What a file does not tell of a case is the pattern "*" in its row. The
 * machine is not known: run.json has none, and no row has a limit.
 */
#ifndef PLUMB_HARNESS_IMPORT_H
#define PLUMB_HARNESS_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/row.h"
#include "harness/foreign/foreign.h"
#include "harness/plan/bench_info.h"

int cmd_import(int argc, char **argv); /* the exit status */

/* ---- Inside of this folder: from lines to rows (rows.c) ---- */

/* What the user knows and the files do not tell: "size" and "512M". */
struct import_known {
    const char *column, *value;
    bool used;
    /* Of the file at hand: a row of it did not tell the column; what the first other one says. */
    bool fits;
    const char *says;
};

struct import_rows {
    const struct bench_info *bench;
    const char **names; /* of its parameters */
    struct row *rows;
    const char **keys; /* of each row's case */
    size_t n;
    const char *key; /* of its cases: the same text, the same cases in the same order */
};

enum import_lack {
    LACK_CASE,    /* no benchmark knows such results */
    LACK_PURPOSE, /* left out, and a benchmark says why (bench_imported) */
    LACK_NAME     /* the file does not state of what its results are */
};

/* Lines that have no case here. */
struct import_left {
    enum import_lack lack;
    const char *why;  /* the reason, or what is not stated: "verb, test" */
    const char *such; /* the first of them: "test all_to_host_memcpy_ce" */
    size_t n;
};
#define IMPORT_LEFT_MAX 16

struct import_file {
    const char *path, *name; /* name: without its folders */
    struct foreign_output output;
    struct import_rows *benches; /* those that its lines are of */
    size_t n_benches;
    size_t n_rows;
    struct import_left left[IMPORT_LEFT_MAX];
    size_t n_left;
    const char *unknown; /* columns that it does not tell, ", " between */
};

/* Fills in all but path, name and output. `known` ends with a NULL column. 0; -EINVAL: what is known
 * contradicts the file; -EBADMSG: results of it are of one case; with error. All is in the output's
 * pool. */
int import_rows_make(struct import_file *f, const struct bench_list *benches,
                     struct import_known *known, char *error, size_t len);

#endif
