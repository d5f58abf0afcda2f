/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What launches took in kept runs of this machine (the column launch_s), to state how long a plan
 * will take.
 *
 *   runs     of the EARLIER_LOOKED_MAX newest in these folders, the newest EARLIER_RUNS_MAX by this
 *            version of the program, under the same rule for processes, on this machine: host,
 *            model and number of CPUs, GPUs by address and name, simulated or not
 *   launch   by benchmark and arguments; the first of a case apart from its later ones, which may
 *            use what the first one chose. For a later one the first may stand, not the other way.
 *            One that was skipped counts only where none that was done is known, as what is absent
 *            then may be there now. Those that failed or were late, and those on several hosts, count for nothing
 *   time     the mean over all runs: it has its share of what a process pays once
 */
#ifndef PLUMB_HARNESS_EARLIER_H
#define PLUMB_HARNESS_EARLIER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/plan/plan.h"

#define EARLIER_RUNS_MAX   8
#define EARLIER_LOOKED_MAX 64 /* of the newest, whichever machine they are of */

struct earlier {
    struct earlier_launch {
        char *key; /* benchmark and arguments */
        bool first, skipped;
        double seconds;
    } * all; /* by key, first and skipped */
    size_t n, n_runs;
    char newest[256]; /* the folder of the newest of these runs; "" */
};

/* Reads the runs below each of these folders, which ends with NULL; one that is not there has none,
 * and one that is damaged is passed by. machine: as plumb probe sees it. 0 or -ENOMEM; *e is to be
 * released in any case. */
int earlier_load(struct earlier *e, const char *const *folders, const json_t *machine,
                 const char *processes);
void earlier_release(struct earlier *e);

/* How long this launch took then; NaN: not known. */
double earlier_seconds(const struct earlier *e, const struct launch *l);

#endif
