/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb run --against: two targets measured in turn, so that drift affects both alike.
 *
 *   target   what a command starts: this plumb, another build's, one in a guest, on another host or
 *            in another environment ("ssh guest plumb", "OMP_NUM_THREADS=1 plumb"). sh runs the
 *            command with " run --agent" behind it
 *   agent    reports its machine and the launches that it would make of the suite. Then it runs one
 *            launch at a time on request (agent.c, target.h). An agent that loses its leader stops
 *            its launch and ends
 *   leader   launches each case on both, one right after the other (leader.c). The order alternates
 *            from launch to launch of a case: A B, B A, A B ... (common.h). It stores both runs, in
 *            OUT/a and OUT/b: each is a run folder
 */
#ifndef PLUMB_AGAINST_H
#define PLUMB_AGAINST_H

#include <stdbool.h>
#include <stdint.h>

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

/* plumb run --agent: answers the messages on standard input. */
int against_agent(void);

#endif
