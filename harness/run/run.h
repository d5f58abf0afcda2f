/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a suite: plan, launch, store, report. Its command line is in harness/plumb/run.c. */
#ifndef PLUMB_HARNESS_RUN_H
#define PLUMB_HARNESS_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* The options of the command. Texts that were not given are NULL, numbers 0. */
struct run_options {
    const char *out, *resume, *only;
    const char *hosts, *launcher, *rsh, *remote_dir, *launcher_args;
    const char *against, *of; /* commands that start targets: harness/against */
    uint64_t seed, port, host_wait_ns, slots;
    uint64_t repeat; /* launches of each case; 0: as the suite says */
    bool retry, dry_run, no_report, agent, help;
};

/* Measures a suite into a new run folder, and shows its results. argc and argv are the command line
 * as run.json keeps it. Returns the exit code. */
int run_suite(const struct run_options *o, const char *suite, int argc, char **argv);

/* The same of the run in o->resume: its launches that are still to do. */
int run_resume(const struct run_options *o);

#endif
