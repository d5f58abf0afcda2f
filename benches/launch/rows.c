/* SPDX-License-Identifier: Apache-2.0 */
/* launch: what is said of its rows. */
#include "core/bench_rows.h"

static const struct bench_column columns[] = {{.name = "address", .flags = COLUMN_OUTCOME},
                                              {.name = NULL}};

static const struct bench_metric metrics[] = {
    {.name = "latency", .units = "us"},
    {.name = "interval", .units = "us"},
    {.name = "rate",
     .units = "Mop/s",
     .unjudged = "the same samples as another metric, turned round"},
    {.name = NULL},
};

#define GPU_LAUNCH(what, operation)                                                                \
    {                                                                                              \
        .pipe = "GPU launch", .label = what, .where = "metric=latency op=" operation,              \
        .flags = HEADLINE_GPU | HEADLINE_TAIL                                                      \
    }

static const struct bench_headline headlines[] = {
    GPU_LAUNCH("kernel launch", "launch"),
    GPU_LAUNCH("kernel launch to completion", "launch-complete"),
    GPU_LAUNCH("driver call", "driver-call"),
    {.pipe = NULL},
};

static const struct bench_plot plots[] = {
    {.x = "size", .lines = "op device", .flags = PLOT_BYTES | PLOT_GPU}, {.x = NULL}};

static const struct bench_pipe pipes[] = {
    {.pipe = "GPU launch", .flags = HEADLINE_GPU}, {.pipe = "GPU launch"}, {.pipe = NULL}};

static const struct bench_part parts[] = {{.where = "metric=interval op=launch-rate",
                                           .of = JOB_CALL,
                                           .measure = "plumb run gpu --only launch"},
                                          {.where = NULL}};

/* Host memory is page-locked for each GPU that the process has opened: in a process with other cases
 * that would depend on those before. */
static const struct bench_start starts[] = {
    {.what = "driver and context of the GPU, its kernels", .where = "op!=pinned-alloc op!=alloc"},
    {.what = NULL},
};

const struct bench_rows bench_rows = {
    .stage = STAGE_CALL,
    .columns = columns,
    .metrics = metrics,
    .headlines = headlines,
    .plots = plots,
    .pipes = pipes,
    .parts = parts,
    .starts = starts,
    .context = "device",
};
