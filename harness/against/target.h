/* SPDX-License-Identifier: Apache-2.0 */
/* One of the two that are measured in turn, as the leader sees it: its agent, its plan, its run folder. */
#ifndef PLUMB_AGAINST_TARGET_H
#define PLUMB_AGAINST_TARGET_H

#include <jansson.h>
#include <stdint.h>

#include "harness/hosts/end.h"
#include "harness/plan/plan.h"
#include "harness/run/progress.h"
#include "harness/store/store.h"

struct target {
    const char *side;    /* a, b */
    const char *command; /* NULL: this program */
    struct end agent;
    json_t *meta; /* run.json */
    struct plan plan;
    struct store *store;
    char *path; /* of its run folder */
    size_t done, failed, late;
    bool wrong;
    uint64_t child_ns;
    const volatile int *cancel;
    struct progress *progress; /* shown while it is waited for; NULL: not */
};

/* All: 0 or -errno with error: -ECANCELED by a signal, -EPIPE where the agent ended, -ETIMEDOUT where it said nothing. */

/* Starts the agent. */
int target_start(struct target *t, char *error, size_t len);
/* Sends the message, which is taken over. */
int target_ask(struct target *t, json_t *message, char *error, size_t len);
/* The next answer; an {"error": ...} is -EREMOTEIO. *answer is the caller's. */
int target_answer(struct target *t, uint64_t within_ns, json_t **answer, char *error, size_t len);
/* Takes the answer to "plan". */
int target_take_plan(struct target *t, json_t *answer, char *error, size_t len);
/* Runs launch i there and keeps what it gave. */
int target_launch(struct target *t, size_t i, char *error, size_t len);

void target_release(struct target *t); /* ends the agent */

#endif
