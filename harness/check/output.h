/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict, written for people and for programs. Each writer escapes what comes from files. */
#ifndef PLUMB_CHECK_OUTPUT_H
#define PLUMB_CHECK_OUTPUT_H

#include <stdio.h>

#include "harness/check/baseline.h"
#include "harness/check/gate.h"

/* What became of the run in the history. */
struct check_kept {
    const char *sentence; /* "" : it was not asked for */
    bool done;            /* what follows is filled in */
    bool taken; /* others took the CPU in all its launches: no later run is held against it */
    struct history_judged judged;
    struct gate rest;                     /* the cases that were not accepted */
    struct history_acceptance acceptance; /* of this run, where judged.acceptance is set */
    struct environment_word environment;  /* of the run against the history's baselines */
    size_t n_environments; /* of them, that tell of theirs; 0: nothing was compared */
};

struct check_result {
    struct gate gate;
    const char *run;                    /* its path, as it was given */
    const char *baseline;               /* "3 runs of the history 'results/history.db'" */
    const struct baseline *baseline_of; /* its runs */
    unsigned best_of;                   /* 0: all of them */
    double margin;
    struct check_kept kept;
    bool
        accepted; /* its level, or that of some cases, is the start of later runs', whatever was found */
    int exit;           /* status, but for files that cannot be written */
    const char *advice; /* what to do next, where there is no baseline or a case is missing; "" */
    struct machine_difference *differences;
    size_t n_differences;
};

void output_text(FILE *out, const struct check_result *r);
int output_junit(FILE *out, const struct check_result *r);
int output_markdown(FILE *out, const struct check_result *r);
int output_json(FILE *out, const struct check_result *r);
int output_github(FILE *out, const struct check_result *r); /* workflow commands */

/* Escapes of each, for their tests. */
void junit_text(FILE *out, const char *text);
void github_data(FILE *out, const char *text, bool property);

#endif
