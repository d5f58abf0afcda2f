/* SPDX-License-Identifier: Apache-2.0 */
/* step: what is said of its rows. */
#include "core/bench_rows.h"

static const struct bench_column columns[] = {
    {.name = "dp", .width = 3, .flags = COLUMN_OUTCOME | COLUMN_DECIDES},
    {.name = "nodes", .width = 5, .flags = COLUMN_OUTCOME | COLUMN_DECIDES},
    {.name = "chosen", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "rank", .width = 4},
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
    {.name = "compute_slowdown", .units = "percent", .unjudged = SHARE},
    {.name = "efficiency",
     .units = "percent",
     .better = BETTER_MORE,
     .unjudged = "made of `throughput` of two cases"},
    {.name = "exposed", .units = "percent", .unjudged = SHARE},
    {.name = "bubble", .units = "percent", .unjudged = SHARE},
    {.name = "waited", .units = "ms", .unjudged = SHARE},
    {.name = "sent", .units = "MB", .unjudged = GIVEN},
    {.name = NULL},
};

static const struct bench_headline headlines[] = {
    {.pipe = "Training step",
     .label = "samples a second of",
     .where = "metric=throughput",
     .by = "model",
     .at = "+ranks",
     .flags = HEADLINE_QUIET},
    {.pipe = NULL},
};

static const struct bench_plot plots[] = {
    {.x = "ranks",
     .lines = "model backend transport zero tp pp bucket",
     .ignore = "rank",
     .undrawn = "step_time waited sent compute_alone"},
    {.x = NULL},
};

static const struct bench_pipe pipes[] = {{.pipe = "Training step"}, {.pipe = NULL}};

const struct bench_rows bench_rows = {
    .stage = STAGE_GROUP,
    .columns = columns,
    .metrics = metrics,
    .headlines = headlines,
    .plots = plots,
    .pipes = pipes,
};
