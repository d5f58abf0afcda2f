/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What benchmarks over a network have in common in their tables: options of the transports, for
 * struct opt, and metrics, for struct bench_metric. The caller adds flags and the member (`...`),
 * and the scope where the rows say one.
 */
#ifndef PLUMB_CORE_WIRE_OPTIONS_H
#define PLUMB_CORE_WIRE_OPTIONS_H

#include "core/bench_rows.h"
#include "core/option.h"
#include "core/wire/net.h"

/* clang-format off */
#define WIRE_OPT_BUFFER(...)                                                                       \
    {.name = "buffer", .type = OPT_SIZE, __VA_ARGS__, .def = "0", .max = 1ull << 31,               \
     .help = "SO_SNDBUF and SO_RCVBUF; 0: the kernel tunes them"}
#define WIRE_OPT_BUSY_POLL(...)                                                                    \
    {.name = "busy-poll", .type = OPT_U64, __VA_ARGS__, .def = "0", .max = 1000000,                \
     .help = "SO_BUSY_POLL in us; 0: the system's value"}
#define WIRE_OPT_CONGESTION(...)                                                                   \
    {.name = "congestion", .type = OPT_STRING, __VA_ARGS__, .arg = "NAME"}
#define WIRE_OPT_DATA_PORT(...)                                                                    \
    {.name = "data-port", .type = OPT_U64, __VA_ARGS__, .def = "0", .max = 65000}
#define WIRE_OPT_MTU(...)                                                                          \
    {.name = "mtu", .type = OPT_U64, __VA_ARGS__, .def = "0", .max = 4096,                         \
     .help = "path MTU; 0: the port's"}
#define WIRE_OPT_GID_INDEX(...)                                                                    \
    {.name = "gid-index", .letter = 'x', .type = OPT_CUSTOM, __VA_ARGS__, .def = "auto",           \
     .arg = "auto|N", .parse = net_parse_auto, .help = "index of the port's GID (RoCE v1 or v2)"}
#define WIRE_OPT_COMPLETION(...)                                                                   \
    {.name = "completion", .type = OPT_CHOICE, __VA_ARGS__, .choices = net_completions,            \
     .def = "poll"}

#define WIRE_COUNTS "counts or extremes: their spread is none of a launch's median"
#define WIRE_STATE  "neither more nor less is better by itself"

/* The round-trip time is measured while the stream fills its queues. */
#define WIRE_METRICS                                                                               \
    {.name = "cpu_per_gb", .units = "s/GB"},                                                       \
    {.name = "cpu_cores", .units = "cores",                                                        \
     .unjudged = "CPU time per byte times the rate: both of these are judged"},                    \
    {.name = "retransmits", .units = "count", .unjudged = WIRE_COUNTS},                            \
    {.name = "rnr naks", .units = "count", .unjudged = WIRE_COUNTS},                               \
    {.name = "out of sequence", .units = "count", .unjudged = WIRE_COUNTS},                        \
    {.name = "congestion notices", .units = "count", .unjudged = WIRE_COUNTS},                     \
    {.name = "rtt", .units = "us", .unjudged = WIRE_STATE},                                        \
    {.name = "cwnd", .units = "packets", .unjudged = WIRE_STATE},                                  \
    {.name = "limited_by_receiver", .units = "percent", .unjudged = WIRE_STATE},                   \
    {.name = "limited_by_buffer", .units = "percent", .unjudged = WIRE_STATE},                     \
    {.name = "zerocopy_copied", .units = "percent", .unjudged = WIRE_STATE}
/* clang-format on */

#endif
