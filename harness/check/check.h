/* SPDX-License-Identifier: Apache-2.0 */
/* plumb check: the gate for CI. */
#ifndef PLUMB_CHECK_CHECK_H
#define PLUMB_CHECK_CHECK_H

#include "core/option.h"
#include "harness/check/baseline.h"
#include "harness/check/output.h"

int cmd_check(int argc, char **argv);

/* ---- The command, and what becomes of the run in the history (kept.c) ---- */

struct check_options {
    const char *baseline, *history, *only, *reason, *junit, *markdown, *json;
    double margin, see, steal;
    uint64_t best_of;
    bool strict, github, update, accept, help;
};

struct check_command {
    struct opts o;
    struct check_options options;
    const char **only; /* NULL-ended; NULL: all */
    bool forced;       /* the margin was given */
    const char *run;
    char error[2048];
};

/* Adds the run to the history with the standing that its verdict and its environment ask for. *kept
 * says what became of it; its sentence does also where this fails. 0 or -errno with c->error set.
 */
int check_update(struct check_command *c, const struct gate *g, struct check_kept *kept);
/* Which cases --accept is of: 0; -ENOENT: none matches --only, -ENOMEM, with c->error set. Without
 * --only n is 0: all. */
int check_accepted_keys(struct check_command *c, const struct gate *g, const char *const **keys,
                        size_t *n);

#endif
