/* SPDX-License-Identifier: Apache-2.0 */
/* dial: what is said of its rows. */
#include "core/bench_rows.h"

static const struct bench_column columns[] = {{.name = "setting", .flags = COLUMN_OUTCOME},
                                              {.name = NULL}};

static const struct bench_metric metrics[] = {
    {.name = "rate", .units = "Mop/s"},
    {.name = "hits", .units = "percent", .better = BETTER_MORE},
    {.name = "misses", .units = "count"},
    {.name = "spare", .units = "us", .unjudged = "the same samples, turned round"},
    {.name = NULL},
};

static const struct bench_headline headlines[] = {
    {.pipe = "Dial", .label = "by hand", .where = "metric=rate", .at = "+turns", .low_below = 70},
    {.pipe = NULL},
};

static const struct bench_plot plots[] = {{.x = "turns", .undrawn = "spare hits"}, {.x = NULL}};
static const struct bench_pipe pipes[] = {{.pipe = "Dial"}, {.pipe = NULL}};

#define TURN(id, one, other, ...)                                                                  \
    {                                                                                              \
        .check = id, .cause = "a dial that is set lower", .lost = "turns", .with = "--speed " one, \
        .without = "--speed " other, .metric = "rate", .pipe = "Dial", __VA_ARGS__                 \
    }

/* One costs a fifth, one nothing, one a quarter of the time; one counts what shows its cause, one
 * counts none of it; one is for no machine, and one is of the environment. */
static const struct bench_experiment experiments[] = {
    TURN("dial-low", "80", "100"),
    TURN("dial-same", "100", "100", .both = "--turns 4"),
    {.check = "dial-late",
     .cause = "a dial that is set lower",
     .lost = "time of a turn",
     .with = "--speed 80",
     .without = "--speed 100",
     .metric = "spare",
     .pipe = "Dial"},
    TURN("dial-hit", "80", "100", .counts = "hits", .absent = "nothing was hit"),
    TURN("dial-missed", "80", "100", .counts = "misses", .absent = "nothing was missed"),
    TURN("dial-none", "80", "100", .machine = "nodes=none", .lacks = "it has NUMA nodes"),
    TURN("dial-brake", "100", "100", .unset = "DIAL_* NOT_THERE"),
    {.check = NULL},
};

const struct bench_rows bench_rows = {
    .stage = STAGE_CALL,
    .columns = columns,
    .metrics = metrics,
    .headlines = headlines,
    .plots = plots,
    .pipes = pipes,
    .experiments = experiments,
};
