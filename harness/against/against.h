/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb run --against: two targets measured in turn, so that what drifts hits both alike.
 *
 * A target is whatever a command starts: this plumb, another build's, one in a guest, on another host or in
 * another environment ("ssh guest plumb", "OMP_NUM_THREADS=1 plumb"). The command is given to sh with " run
 * --agent" behind it. Such an agent says what its machine is and which launches it would make of the suite, then
 * runs one launch at a time as it is told (agent.c, wire.h). The leader (leader.c) launches each case on both, one
 * right after the other. Which of the two comes first alternates from launch to launch of the case: A B, B A, A B ...
 * (common.h). The leader keeps both runs, in OUT/a and OUT/b: each a run folder like any other. An agent that loses
 * its leader ends what it runs, and itself.
 */
#ifndef PLUMB_AGAINST_H
#define PLUMB_AGAINST_H

#include <stdbool.h>
#include <stdint.h>

struct against_options {
    const char *of, *against; /* commands; of NULL: this program */
    const char *out, *only;
    uint64_t seed;
    bool dry_run, no_report; /* no_report: no page; the verdicts are told all the same */
    int argc;                /* of plumb run, for run.json */
    char **argv;
};

/* Both return an exit code of plumb run; once both runs are whole, that of plumb compare OUT/a OUT/b. */
int against_run(const char *suite, const struct against_options *o);
int against_resume(const char *path, const struct against_options *o);

/* Is this the folder of such a pair of runs? */
bool against_is_pair(const char *path);

/* plumb run --agent: obeys what comes on standard input. */
int against_agent(void);

#endif
