/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of plumb check: the command and its two halves. */
#ifndef PLUMB_CHECK_CMD_PARTS_H
#define PLUMB_CHECK_CMD_PARTS_H

#include "core/exit_code.h"
#include "core/option.h"
#include "harness/check/baseline.h"
#include "harness/check/output.h"

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

/* Judges, keeps the history, and writes. The exit status. */
int check_run(struct check_command *c);

/* Adds the run to the history with the standing that its verdict and its environment ask for. *kept says what became of it; its
 * sentence does also where this fails. 0 or -errno with c->error set. */
int check_update(struct check_command *c, const struct gate *g, struct check_kept *kept);
/* Which cases --accept is of: 0; -ENOENT: none matches --only, -ENOMEM, with c->error set. Without --only n is 0: all. */
int check_accepted_keys(struct check_command *c, const struct gate *g, const char *const **keys,
                        size_t *n);

/* Everything that was asked for. 0, or -errno with c->error set. */
int check_write(struct check_command *c, const struct check_result *r);

#endif
