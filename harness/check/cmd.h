/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of plumb check: the command and its two halves. */
#ifndef PLUMB_CHECK_CMD_PARTS_H
#define PLUMB_CHECK_CMD_PARTS_H

#include "core/option.h"
#include "harness/check/baseline.h"
#include "harness/check/output.h"

enum { CHECK_GOOD = 0, CHECK_USAGE = 2, CHECK_INCOMPLETE = 4, CHECK_DAMAGED = 5 };

struct check_options {
    const char *baseline, *history, *only, *junit, *markdown, *json;
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

/* Adds the run to the history with the standing that its verdict asks for; says what became of it. *taken: others took the CPU
 * in all its launches, so that no later run is held against it. */
int check_update(struct check_command *c, const struct gate *g, const char **sentence, bool *taken);

/* Everything that was asked for. 0, or -errno with c->error set. */
int check_write(struct check_command *c, const struct check_result *r);

#endif
