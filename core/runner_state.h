/* SPDX-License-Identifier: Apache-2.0 */
/* What the runner's two files share: how points are walked (runner.c), how they become rows
 * (runner_rows.c). */
#ifndef PLUMB_CORE_RUNNER_STATE_H
#define PLUMB_CORE_RUNNER_STATE_H

#include "core/ledger.h"
#include "core/row.h"
#include "core/runner.h"

struct runner {
    const struct bench *b;
    struct opts *o;
    const struct bench_common *common;
    const volatile int *cancel;
    FILE *out, *samples_out;
    struct runner_columns columns;
    struct row_table table;
    size_t n_own;     /* options in bench->options */
    size_t first_own; /* index of the first of them in opts */
    char host[256];
    struct point proto; /* what every point starts from: open()'s state and the topology */
    uint64_t repeat, launch_rows;
    struct runner_result *result;
};

/* What is the same in every row of a point. */
struct outcome {
    int err;         /* of setup or sampling */
    int check_error; /* of check */
    struct samples samples;
    struct ledger ledger;
    struct gpu_ledger gpu;
    char disturbed[384], time_utc[24];
};

/* Why a GPU of the point was held back while this sample was taken, as gpu_watch_held() has it. */
unsigned runner_held(const struct point *pt, const struct samples *samples, uint64_t i);

/* Prints the row of series `index` of a point (the first where it has none), and keeps its samples. */
void runner_emit(struct runner *r, struct point *pt, const size_t *pick, struct outcome *oc,
                 size_t index);

/* The point's figures: a row each, or for people one text below its rows. */
void runner_emit_figures(struct runner *r, struct point *pt, const size_t *pick,
                         const struct outcome *oc);

/* Chooses what is a column of the table for people. */
void runner_lay_out_table(struct runner *r);

#endif
