/* SPDX-License-Identifier: Apache-2.0 */
/* The runner: walks a benchmark's sweep and prints its rows. Used by core/bench/main.c alone. */
#ifndef PLUMB_CORE_BENCH_RUNNER_H
#define PLUMB_CORE_BENCH_RUNNER_H

#include "core/bench/bench.h"
#include "core/bench/teller.h"
#include "core/ledger.h"
#include "core/row.h"

struct runner_result {
    uint64_t rows, wrong, failed;
    bool interrupted;
    bool stuck; /* a device does not answer: leave by _exit() */
};

/* What a process keeps from one command line to the next: what open() made, the topology, and the
 * devices that are open. Zeroed, nothing is; release it in any case. */
struct runner_session {
    struct point proto; /* what every point starts from */
};

void runner_session_release(const struct bench *b, struct runner_session *session);

/* Runs every point of the sweep, `common->repeats` times in shuffled order. Rows go to `out`;
 * samples, where asked for, to common->samples_path. 0, or -errno of what kept it from running at
 * all, with a message on stderr. Takes back an alarm() that came with *cancel when it did not catch
 * it at work on a device. */
int runner_run(const struct bench *b, struct opts *o, const struct bench_common *common, FILE *out,
               const volatile int *cancel, struct runner_session *session,
               struct runner_result *result);

/* The parameter columns: OPT_COLUMN options with '_' for '-', then bench->rows->columns, then
 * NAME_used of each option that may be left to the benchmark. */
struct runner_columns {
    char names[ROW_PARAMS_MAX][40];
    const char *list[ROW_PARAMS_MAX];
    size_t own[ROW_PARAMS_MAX];  /* of the benchmark's: its place in bench->rows->columns */
    size_t used[ROW_PARAMS_MAX]; /* of an option's: its column NAME_used; 0: it has none */
    size_t n, n_options, n_own;
};
void runner_columns(const struct bench *b, struct runner_columns *columns);

/* What is said of one of them; an option says the rest of its own. */
struct bench_column runner_column(const struct bench *b, const char *name);

/* What the runner's files share: how points are walked (runner.c), and how they become rows
 * (runner_rows.c). */

struct runner {
    const struct bench *b;
    struct opts *o;
    const struct bench_common *common;
    const volatile int *cancel;
    FILE *out, *samples_out;
    struct runner_columns columns;
    struct row_table table;
    struct teller teller;
    size_t n_own;     /* options in bench->options */
    size_t first_own; /* index of the first of them in opts */
    char host[256];
    struct point proto; /* what every point starts from: the benchmark's state and the topology */
    uint64_t repeat, launch_rows;
    unsigned gpus; /* of this machine, and 1; 0: not counted */
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

/* Prints the row of series `index` of a point (the first where it has none), and keeps its
 * samples. */
void runner_emit(struct runner *r, struct point *pt, const size_t *pick, struct outcome *oc,
                 size_t index);

/* The point's figures: a row each, or for people one text below its rows. */
void runner_emit_figures(struct runner *r, struct point *pt, const size_t *pick,
                         const struct outcome *oc);

/* Chooses what is a column of the table for people. */
void runner_lay_out_table(struct runner *r);

#endif
