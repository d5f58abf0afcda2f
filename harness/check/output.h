/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict, written for people and for programs. Each writer escapes what comes from files. */
#ifndef PLUMB_CHECK_OUTPUT_H
#define PLUMB_CHECK_OUTPUT_H

#include <stdio.h>

#include "harness/check/baseline.h"
#include "harness/check/gate.h"

#define CHECK_JSON_SCHEMA 1

struct check_result {
    struct gate gate;
    const char *run;                    /* its path, as it was given */
    const char *baseline;               /* "3 runs of the history 'results/history.db'" */
    const struct baseline *baseline_of; /* its runs */
    unsigned best_of;                   /* 0: all of them */
    double margin;
    const char *history; /* what became of the run in the history, a sentence; "" */
    bool accepted;       /* its level is the start of later runs', whatever was found */
    int exit;            /* status, but for files that cannot be written */
    const char *advice;  /* what to do next, where there is no baseline or a case is missing; "" */
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
