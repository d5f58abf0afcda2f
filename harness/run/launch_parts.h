/* SPDX-License-Identifier: Apache-2.0 */
/* One launch while it goes on; between launch.c and launch_failed.c. */
#ifndef PLUMB_HARNESS_LAUNCH_PARTS_H
#define PLUMB_HARNESS_LAUNCH_PARTS_H

#include <stdbool.h>
#include <stdio.h>

#include "harness/run/launch.h"

#define ARGUMENTS_MAX 128

struct launching {
    const struct launch_context *c;
    const struct launch *l;
    const struct bench_info *bench;
    struct launched *out;
    const struct kept_case *kept; /* choices that it is given; NULL: none */
    char *words;                  /* the arguments, split in place */
    const char *argv[ARGUMENTS_MAX + 12];
    char seed[24];
};

/* Names of the benchmark's parameters, ended by NULL; to be freed. NULL when memory is short. */
const char **launch_column_names(const struct bench_info *b);

/* Rows of a benchmark that may run between hosts or over a group of them say which, in a run that has hosts: the columns in
 * front of its own, "from,to,", "hosts," or "". */
const char *launch_host_columns(const struct launching *g);
void launch_print_between(const struct launching *g, FILE *out);

/* The row of a launch that gave none: its parameters, status failed and why. 0 or -ENOMEM. */
int launch_failed_row(struct launching *g, const char *reason, FILE *out);

#endif
