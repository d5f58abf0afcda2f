/* SPDX-License-Identifier: Apache-2.0 */
/* One of the two targets that are measured in turn, seen by the leader: its agent, its plan, its
 * run folder; and the messages of leader and agent. */
#ifndef PLUMB_AGAINST_TARGET_H
#define PLUMB_AGAINST_TARGET_H

#include <jansson.h>
#include <stdint.h>

#include "harness/hosts/end.h"
#include "harness/plan/plan.h"
#include "harness/run/progress.h"

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

/* All: 0 or -errno with error: -ECANCELED by a signal, -EPIPE where the agent ended, -ETIMEDOUT
 * where it did not answer. */

/* Starts the agent. */
int target_start(struct target *t, char *error, size_t len);
/* Sends the message, which is taken over. */
int target_ask(struct target *t, json_t *message, char *error, size_t len);
/* The next answer; an {"error": ...} is -EREMOTEIO. *answer is the caller's. */
int target_answer(struct target *t, uint64_t within_ns, json_t **answer, char *error, size_t len);
/* Takes the answer to "plan". */
int target_take_plan(struct target *t, json_t *answer, char *error, size_t len);
/* Runs launch i there and stores its rows. */
int target_launch(struct target *t, size_t i, char *error, size_t len);

void target_release(struct target *t); /* ends the agent */

/* ---- The messages of leader and agent ---- */

/*
 * One JSON object a line, on the agent's standard input and output:
 *
 *   leader  {"ask": "plan", "protocol": 2, "suite": ..., "config": ..., "seed": ..., "only": ...}
 *   agent   {"protocol": 2, "meta": run.json, "launches": [LAUNCH]}
 *   leader  {"ask": "launch", LAUNCH, "run"}
 *   agent   {"state": "done", "n_rows", "header", "rows", "samples", "log", "wrong", "summary",
 *           "elapsed_ns"}
 *   leader  {"ask": "keep", LAUNCH, "rows"}: in a run that goes on, header and rows of an earlier
 *           launch (harness/run/kept.h)
 *   agent   {"kept": true}
 *
 * LAUNCH is "case", "repeat", "bench", "arguments", "timeout_ns" and, where the suite has one,
 * "margin" (0.01: 1 %). The answer {"error": ...} gives the reason why there is none.
 *
 * Protocol 1 had no margins: cases would be judged by a wider one than the suite's.
 */
#define WIRE_PROTOCOL 2

/* Text of any bytes: those that are no UTF-8 become '?'. */
json_t *wire_text(const char *text);

/* Takes the message over. 0 or -errno. */
int wire_send(int fd, json_t *message);

json_t *wire_launch(const struct launch *l);
/* The other way; *l is released with its plan. 0, -EBADMSG: it lacks something, -ENOMEM. */
int wire_take_launch(const json_t *message, struct launch *l);

#endif
