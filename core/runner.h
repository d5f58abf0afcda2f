/* SPDX-License-Identifier: Apache-2.0 */
/* The runner: walks a benchmark's sweep and prints its rows. Used by core/main.c alone. */
#ifndef PLUMB_CORE_RUNNER_H
#define PLUMB_CORE_RUNNER_H

#include "core/bench.h"
#include "core/row.h"

struct runner_result {
    uint64_t rows, wrong, failed;
    bool interrupted;
    bool stuck; /* a device does not answer: leave by _exit() */
};

/* Runs every point of the sweep, `common->repeats` times in shuffled order. Rows go to `out`;
 * samples, where asked for, to common->samples_path. 0, or -errno of what kept it from running at
 * all, with a message on stderr. Takes back an alarm() that came with *cancel when it did not catch
 * it at work on a device. */
int runner_run(const struct bench *b, struct opts *o, const struct bench_common *common, FILE *out,
               const volatile int *cancel, struct runner_result *result);

/* The names of the parameter columns: OPT_COLUMN options with '_' for '-', then bench->rows->columns. At
 * most ROW_PARAMS_MAX; texts live in *names. */
struct runner_columns {
    char names[ROW_PARAMS_MAX][40];
    const char *list[ROW_PARAMS_MAX];
    size_t n, n_options;
};
void runner_columns(const struct bench *b, struct runner_columns *columns);

#endif
