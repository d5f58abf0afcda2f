/* SPDX-License-Identifier: Apache-2.0 */
/* The leader of a run in turn, between leader.c and resume.c alone. */
#ifndef PLUMB_AGAINST_LEADER_PARTS_H
#define PLUMB_AGAINST_LEADER_PARTS_H

#include "core/exit_code.h"
#include "harness/against/against.h"
#include "harness/against/target.h"

struct leader {
    const struct against_options *options;
    struct target t[2]; /* a and b */
    struct progress progress;
    char *path;
    char pair[80]; /* the same in both runs, and in no other */
    char error[1024];
};

/* Says g->error and returns status. */
int leader_fail(const struct leader *g, int status);
int leader_status(int err); /* the exit code of an error */

void leader_begin(struct leader *g, const struct against_options *o);
void leader_release(struct leader *g);

/* Starts both agents and takes their plans. 0 or -errno with g->error. */
int leader_ask_plans(struct leader *g, const char *suite, const char *config, const char *only,
                     uint64_t seed);
/* Measures what is to do, closes both runs, compares. An exit code. */
int leader_measure(struct leader *g);

#endif
