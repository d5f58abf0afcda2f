/* SPDX-License-Identifier: Apache-2.0 */
/* One run of plumb run while it goes on; between run.c, run_start.c and run_launches.c. */
#ifndef PLUMB_HARNESS_RUN_STATE_H
#define PLUMB_HARNESS_RUN_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/exit_code.h"
#include "harness/hosts/hosts_run.h"
#include "harness/plan/plan.h"
#include "harness/plan/suite.h"
#include "harness/run/estimate.h"
#include "harness/run/kept.h"
#include "harness/run/progress.h"
#include "harness/store/store.h"

struct run_options {
    const char *out, *resume, *only;
    const char *hosts, *rsh, *remote_dir, *launcher_args;
    const char *against, *of; /* commands that start targets: harness/against */
    int launcher;             /* of run_launchers; -1: not given */
    uint64_t seed, port, host_wait_ns, slots, repeat; /* repeat: 0: as the suite says */
    bool retry, dry_run, no_report, agent, help;
};

struct run {
    struct run_options options;
    struct bench_list benches;
    struct suite suite;
    struct plan plan;
    struct hosts_run hosts;
    struct store *store;
    struct kept kept;
    json_t *meta;
    char *path, *name;
    struct progress progress;
    struct pace pace;
    size_t failed, late, skipped, done;
    bool wrong;
    uint64_t planned_ns, child_ns, own_ns; /* where the time went */
    const volatile int *cancel; /* set: what is under way ends, and no more is launched */
    char error[1024];
};

extern const char *const run_launchers[]; /* local, ssh, mpirun, srun, NULL */

/* Says r->error and returns status. */
int run_fail(const struct run *r, int status);

/* Both make r ready to launch, and return an exit code; EXIT_GOOD without a store is the end of a
 * dry run. */
int run_start_new(struct run *r, const char *suite_name, int argc, char **argv);
int run_start_again(struct run *r);

/* Says what of the plan is run where, of a run that has hosts. 0 or -ENOMEM. */
int run_say_spread(const struct run *r);

/* Says for how long what is to do is asked to measure: see estimate.h. */
void run_say_time(const struct run *r);

/* Launches all that is to do, stores, reports. Returns the exit code. */
int run_and_finish(struct run *r);

#endif
