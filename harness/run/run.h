/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a suite: plan, launch, store, report. Its command line is in harness/plumb/run.c. */
#ifndef PLUMB_HARNESS_RUN_H
#define PLUMB_HARNESS_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/hosts/hosts.h"
#include "harness/plan/bench_info.h"

/* The options of the command. Texts that were not given are NULL, numbers 0. */
struct run_options {
    const char *out, *resume, *only;
    struct hosts_options hosts;
    const char *processes;    /* of process_rules */
    const char *against, *of; /* commands that start targets: harness/against */
    uint64_t seed;
    uint64_t repeat;   /* launches of each case; 0: as the suite says */
    uint64_t again_ns; /* for repetitions beyond these */
    bool again_given;  /* else as the suite says */
    bool retry, dry_run, no_report, allow_skip, help;
};

/* Measures a suite into a new run folder, and shows its results. argc and argv are the command line
 * as run.json keeps it. Returns the exit code. */
int run_suite(const struct run_options *o, const char *suite, int argc, char **argv);

/* The same of the run in o->resume: its launches that are still to do. */
int run_resume(const struct run_options *o);

/* ---- run.json: what a run is, on which machine, and how to do it again ---- */

struct run_meta {
    const struct bench_list *benches;
    const char *name, *suite, *config, *only;
    size_t config_size;
    uint64_t seed;
    const char *processes;
    unsigned pairs, pairs_of; /* of GPUs, drawn of so many; 0: none were left out */
    json_t *hosts;            /* taken over; NULL: it is all on this machine */
    int argc;
    char **argv;
};

/* Probes the machine and looks up its limits: takes a second or so. A new object. */
json_t *run_meta_make(const struct run_meta *m);

/* The command line, by its words, as run.json has it; argv begins with "run". */
json_t *run_meta_command(int argc, char **argv);

/* Are this program and this host those of the run? 0, or -ESTALE with error: one run never mixes
 * two builds or two machines. */
int run_meta_same(const json_t *meta, char *error, size_t len);

/* Does a row of this run folder say wrong data? 0, or as run_folder_load(). */
int run_has_wrong(const char *path, bool *wrong, char *error, size_t len);

/* The end of a run: its state, its time, and where the time went. These are of this session, and
 * are added to those of the sessions before it. */
void run_meta_finish(json_t *meta, const char *state, uint64_t planned_ns, uint64_t stored_ns,
                     uint64_t benchmarks_ns);
/* Where time went since the last call of these, while the run goes on: of a session that is killed
 * this stays. */
void run_meta_spent(json_t *meta, uint64_t planned_ns, uint64_t stored_ns, uint64_t benchmarks_ns);

#endif
