/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of every benchmark whose bytes go over a network, for its table: struct bench_metric. */
#ifndef PLUMB_BENCHES_NET_NET_METRICS_H
#define PLUMB_BENCHES_NET_NET_METRICS_H

#include "core/bench_rows.h"

#define NET_COUNTS "counts or extremes: their spread is none of a launch's median"
#define NET_STATE  "neither more nor less is better by itself"

/* clang-format off */
#define NET_METRICS                                                                                \
    {.name = "cpu_per_gb", .units = "s/GB", .unjudged = NULL},                                                      \
    {.name = "cpu_cores", .units = "cores",                                                                         \
     .unjudged = "CPU time per byte times the rate: both of these are judged"},                    \
    {.name = "retransmits", .units = "count", .unjudged = NET_COUNTS},                                              \
    {.name = "rnr naks", .units = "count", .unjudged = NET_COUNTS},                                                 \
    {.name = "out of sequence", .units = "count", .unjudged = NET_COUNTS},                                          \
    {.name = "congestion notices", .units = "count", .unjudged = NET_COUNTS},                                       \
    {.name = "rtt", .units = "us", .unjudged = NET_STATE}, /* while the stream fills its queues */                  \
    {.name = "cwnd", .units = "packets", .unjudged = NET_STATE},                                                    \
    {.name = "limited_by_receiver", .units = "percent", .unjudged = NET_STATE},                                     \
    {.name = "limited_by_buffer", .units = "percent", .unjudged = NET_STATE},                                       \
    {.name = "zerocopy_copied", .units = "percent", .unjudged = NET_STATE}
/* clang-format on */

#endif
