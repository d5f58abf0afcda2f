/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb run --against: two targets measured in turn, so that drift affects both alike.
 *
 *   target   what a command starts: this plumb, another build's, one in a guest, on another host or
 *            in another environment ("ssh guest plumb", "OMP_NUM_THREADS=1 plumb"). sh runs the
 *            command with " agent" behind it
 *   agent    reports its machine and the launches that it would make of the suite. Then it runs one
 *            launch at a time on request (target.c). An agent that loses its leader stops
 *            its launch and ends
 *   leader   launches each case on both, one right after the other (leader.c). The order alternates
 *            from launch to launch of a case: A B, B A, A B ... It stores both runs,
 *            in OUT/a and OUT/b: each is a run folder
 */
#ifndef PLUMB_AGAINST_H
#define PLUMB_AGAINST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/hosts/end.h"
#include "harness/plan/plan.h"
#include "harness/run/progress.h"

struct against_options {
    const char *of, *against; /* commands; of NULL: this program */
    const char *out, *only;
    uint64_t seed;
    bool dry_run, no_report; /* no_report: no page; the verdicts are printed all the same */
    int argc;                /* of plumb run, for run.json */
    char **argv;
};

/* Both return an exit code of plumb run; once both runs are whole, that of plumb compare OUT/a
 * OUT/b. */
int against_run(const char *suite, const struct against_options *o);
int against_resume(const char *path, const struct against_options *o);

/* Is this the folder of such a pair of runs? */
bool against_is_pair(const char *path);

/* plumb agent without a word: answers the messages on standard input. Returns the exit code. */
int against_agent(void);

/* One of the two targets that are measured in turn, seen by the leader: its agent, its plan, its
 * run folder; and the messages of leader and agent. */

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
/* Sends the message, which is taken over; NULL, of a text that is no UTF-8, is -EILSEQ. */
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
 * Orders of an agent (hosts/agent.h) that come on its standard input:
 *
 *   leader  {"ask": "plan", "protocol": 3, "suite": ..., "config": ..., "seed": ..., "only": ...}
 *   agent   {"protocol": 3, "meta": run.json, "launches": [LAUNCH]}
 *   leader  {"ask": "launch", LAUNCH, "run"}
 *   agent   {"state": "done", "n_rows", "header", "rows", "samples", "log", "wrong", "summary",
 *           "elapsed_ns"}
 *   leader  {"ask": "keep", "launches": [LAUNCH], "rows"}: in a run that goes on, the file BENCH.csv
 *           of the launches of a benchmark that are done (harness/run/launch.h)
 *   agent   {"kept": true}
 *
 * LAUNCH is "case", "repeat", "rows", "bench", "arguments", "timeout_ns" and, where the suite has one,
 * "margin" (0.01: 1 %). The answer {"error": ...} gives the reason why there is none.
 */

json_t *wire_launch(const struct launch *l);
/* The other way; *l is released with its plan. 0, or -EBADMSG: it lacks something. */
int wire_take_launch(const json_t *message, struct launch *l);

/* ---- The launches that two targets both can make, and their order. Pure functions. ---- */

struct common {
    size_t n_only_a, n_only_b;     /* launches that the other side does not have */
    char only_a[160], only_b[160]; /* the first of them: "memory --op triad"; "" */
};

/* Leaves in both plans the launches that both have (the same benchmark, arguments and repeat), in
 * the order of a. b takes a's numbers of cases, and each launch the longer time-out. Each plan
 * keeps its own margins. 0, or -ENOENT where there is none. */
int common_plan(struct plan *a, struct plan *b, struct common *common);

/*
 * Sets `turn` in each launch of two common plans: which target goes first.
 *
 *   - The launches of a case go a b, b a, a b ... or b a, a b, b a ...: each target goes first in
 *     half of them, and with an odd number in one more or less.
 *   - Half of the cases begin with a, drawn by the seed, and half of those with an odd number of
 *     launches. So over the suite the two numbers differ by one launch at most.
 */
void common_turns(struct plan *a, struct plan *b, uint64_t seed);

/* Which target goes first in pair i, 0 (a) or 1 (b)? -1: the two plans do not belong together. */
int common_first(const struct plan *a, const struct plan *b, size_t i);

#endif
