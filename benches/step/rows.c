/* SPDX-License-Identifier: Apache-2.0 */
/* step: what is said of its rows. */
#include "core/bench_rows.h"

static const struct bench_column columns[] = {
    {.name = "dp", .width = 3, .flags = COLUMN_OUTCOME | COLUMN_DECIDES},
    {.name = "nodes", .width = 5, .flags = COLUMN_OUTCOME | COLUMN_DECIDES},
    {.name = "kernel", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "compute_ms", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "simulated", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "update_ms", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "chosen", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "rank", .width = 4},
    {.name = "part", .width = 11},
    {.name = "rank_host", .width = 9, .flags = COLUMN_OUTCOME},
    {.name = "detail", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = NULL},
};

#define SAME  "the same samples as another metric, turned round"
#define SHARE "a share of the step, whose time is judged"
#define GIVEN "it follows from the options"

static const struct bench_metric metrics[] = {
    {.name = "step_time", .units = "ms", .where = "model!="},
    {.name = "throughput", .units = "samples/s", .unjudged = SAME, .where = "model!="},
    {.name = "compute_alone", .units = "ms", .unjudged = GIVEN},
    {.name = "compute_slowdown",
     .units = "percent",
     .unjudged = SHARE,
     .says = "By how much compute takes longer in the step than alone"},
    {.name = "update_time", .units = "ms", .unjudged = SHARE},
    {.name = "update_moved", .units = "MB", .unjudged = GIVEN},
    {.name = "memory", .units = "MB", .unjudged = GIVEN},
    {.name = "exposed",
     .units = "percent",
     .unjudged = SHARE,
     .says = "Share of the step in which compute waits for sums, gathers and exchanges"},
    {.name = "bubble",
     .units = "percent",
     .unjudged = SHARE,
     .says = "Share of the step in which ranks wait for other stages of the pipeline"},
    {.name = "waited",
     .units = "ms",
     .unjudged = SHARE,
     .says = "How long the compute of a rank waits in a step"},
    {.name = "sent", .units = "MB", .unjudged = GIVEN},
    {.name = NULL},
};

static const struct bench_headline headlines[] = {
    {.pipe = "Training step",
     .label = "training step of",
     .where = "metric=throughput",
     .by = "model",
     .at = "+ranks",
     .flags = HEADLINE_QUIET},
    {.pipe = NULL},
};

/* What another size of the buckets would gain is told only where it was measured. */
#define BUCKETS(size, bytes)                                                                       \
    {                                                                                              \
        .title = "buckets of 25 MiB against " size,                                                \
        .where = "metric=throughput bucket=26214400 ranks!=1", .column = "bucket",                 \
        .other = "bucket=" bytes, .by = "model transport",                                         \
        .lower = "with buckets of " size " it is %s slower than with 25 MiB",                      \
        .higher = "with buckets of " size " it is %s faster than with 25 MiB",                     \
        .same = "buckets of " size " make no difference"                                           \
    }

static const struct bench_contrast contrasts[] = {
    {.title = "sums beside the backward pass against behind it",
     .where = "metric=throughput overlap=backward ranks!=1",
     .column = "overlap",
     .other = "overlap=none",
     .by = "model transport",
     .lower = "without overlap it is %s slower",
     .higher = "without overlap it is %s faster",
     .same = "overlap of sums and compute makes no difference"},
    BUCKETS("1 MiB", "1048576"),
    BUCKETS("5 MiB", "5242880"),
    BUCKETS("100 MiB", "104857600"),
    {.title = "whole parameters on each rank against ZeRO 3",
     .where = "metric=throughput zero=0 ranks!=1",
     .column = "zero",
     .other = "zero=3",
     .by = "model transport",
     .lower = "with ZeRO 3 it is %s slower",
     .higher = "with ZeRO 3 it is %s faster",
     .same = "ZeRO 3 makes no difference"},
    {.title = NULL},
};

static const struct bench_job jobs[] = {
    {.label = "Training",
     .where = "metric=throughput",
     .by = "model",
     .at = "+ranks",
     .on = "ranks",
     .thing = "rank",
     .stated = "compute is stated, not measured",
     .stated_where = "simulated=compute",
     .gain = 2},
    {.label = NULL},
};

static const struct bench_bound bounds[] = {
    {.where = "metric=exposed nodes!=1",
     .word = "the network",
     .says = "%s of the step waits for it",
     .todo = "a faster network, fewer bytes (--dtype bf16 in place of f32) or, for gradients, a "
             "larger batch would save most"},
    {.where = "metric=exposed nodes=1",
     .word = "communication inside the host",
     .says = "%s of the step waits for it",
     .todo = "fewer bytes (--dtype bf16 in place of f32) or, for gradients, a larger batch would "
             "save most"},
    {.where = "metric=bubble batch!=@micro_batches",
     .word = "the pipeline",
     .says = "ranks wait for other stages in %s of the step",
     .todo = "more micro-batches make its bubble smaller, unless stages are unequal or activations "
             "on their way hold them up"},
    /* A micro-batch has a sample at least. */
    {.where = "metric=bubble batch=@micro_batches",
     .word = "the pipeline",
     .says = "ranks wait for other stages in %s of the step",
     .todo = "a larger batch in more micro-batches makes its bubble smaller, unless stages are "
             "unequal or activations on their way hold them up"},
    {.where = "metric=throughput",
     .word = "compute",
     .says = "%s of the step computes",
     .flags = BOUND_REST},
    {.where = NULL},
};

static const struct bench_advice advice[] = {
    {.column = "bucket",
     .where = "dp!=1",
     .says = "buckets of %s",
     .measure = "--bucket 1M,5M,25M,100M"},
    {.column = "overlap",
     .where = "dp!=1",
     .says = "--overlap %s",
     .measure = "--overlap none,backward"},
    {.column = "transport", .says = "--transport %s"},
    {.column = "backend", .says = "--backend %s"},
    {.column = "schedule", .says = "--schedule %s"},
    {.column = "prefetch", .says = "--prefetch %s"},
    {.column = NULL},
};

static const struct bench_plot plots[] = {
    {.x = "ranks",
     .lines = "model backend transport zero tp pp bucket",
     .ignore = "rank",
     .undrawn = "step_time waited sent compute_alone update_time update_moved memory"},
    {.x = NULL},
};

static const struct bench_pipe pipes[] = {{.pipe = "Training step"}, {.pipe = NULL}};

static const struct bench_part parts[] = {
    {.where = "metric=step_time", .of = JOB_STEP, .measure = "plumb run train --hosts FILE"},
    {.where = NULL}};

const struct bench_rows bench_rows = {
    .stage = STAGE_GROUP,
    .columns = columns,
    .metrics = metrics,
    .headlines = headlines,
    .contrasts = contrasts,
    .plots = plots,
    .pipes = pipes,
    .parts = parts,
    .jobs = jobs,
    .bounds = bounds,
    .advice = advice,
    .context = "model backend transport dtype batch ranks",
};
