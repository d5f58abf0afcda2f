/* SPDX-License-Identifier: Apache-2.0 */
/* net: what is said of its rows. */
#include "core/wire/options.h"

static const struct bench_column columns[] = {
    {.name = "side", .width = 4},
    {.name = "scope", .width = 8},
    {.name = "rail", .width = 5},
    {.name = "peer_host", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "cpus", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "detail", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "peer_detail", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = NULL},
};

static const struct bench_metric metrics[] = {
    {.name = "bandwidth", .units = "GB/s", .where = "pattern=bandwidth"},
    {.name = "message_rate", .units = "Mop/s", .where = "pattern=rate"},
    {.name = "latency", .units = "us", .where = "pattern=latency"},
    {.name = "loaded_latency", .units = "us", .where = "pattern=loaded-latency"},
    {.name = "average_bandwidth",
     .units = "GB/s"}, /* of stalls the median of the windows knows nothing */
    {.name = "load_bandwidth", .units = "GB/s"}, /* less of it makes loaded_latency look better */
    {.name = "longest_window", .units = "ms", .unjudged = WIRE_COUNTS},
    WIRE_METRICS,
    {.name = NULL},
};

/* Of a line's payload TCP and RDMA reach all but a few percent, where the CPU does not bound them. */
static const struct bench_headline headlines[] = {
    {.pipe = "Network",
     .label = "%s",
     .where = "metric=bandwidth direction!=both,sum transport!=shm rail=,all",
     .by = "transport",
     .low_below = 85,
     .subjects = "network cpu numa",
     .flags = HEADLINE_OVER | HEADLINE_QUIET | HEADLINE_COST},
    {.pipe = "Network",
     .label = "both ways at once, sum, by",
     .where = "metric=bandwidth direction=sum",
     .by = "transport",
     .subjects = "network cpu numa",
     .flags = HEADLINE_OVER | HEADLINE_QUIET | HEADLINE_COST},
    {.pipe = "Network latency",
     .label = "smallest message by",
     .where = "metric=latency pattern=latency",
     .by = "transport",
     .at = "-size",
     .subjects = "network cpu numa clock",
     .flags = HEADLINE_OVER | HEADLINE_QUIET},
    {.pipe = "Network latency",
     .label = "under load, by",
     .where = "metric=loaded_latency",
     .by = "transport",
     .at = "-size",
     .subjects = "network cpu numa clock",
     .flags = HEADLINE_OVER | HEADLINE_QUIET | HEADLINE_TAIL},
    {.pipe = "Network rate",
     .label = "messages by",
     .where = "metric=message_rate rail=,all",
     .by = "transport",
     .at = "-size",
     .subjects = "network cpu numa",
     .flags = HEADLINE_OVER | HEADLINE_QUIET},
    {.pipe = "Between two processes",
     .label = "shared memory",
     .where = "metric=bandwidth transport=shm",
     .subjects = "numa clock limits",
     .flags = HEADLINE_QUIET | HEADLINE_COST},
    {.pipe = NULL},
};

static const struct bench_plot plots[] = {
    {.x = "size",
     .lines = "transport streams direction verb mode zerocopy poll side scope from to threads",
     .ignore = "pattern",
     .flags = PLOT_BYTES},
    {.x = NULL},
};

static const struct bench_pipe pipes[] = {
    {.pipe = "Copies", .where = "transport=shm"}, {.pipe = "Network"}, {.pipe = NULL}};

const struct bench_rows bench_rows = {
    .stage = STAGE_NETWORK,
    .columns = columns,
    .metrics = metrics,
    .headlines = headlines,
    .plots = plots,
    .pipes = pipes,
};
