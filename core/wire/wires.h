/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wires by name, and what benchmarks over them have in common: choices of options, what a rail
 * can carry at most, and entries of their tables: options of the transports, for struct opt, and
 * metrics, for struct bench_metric.
 */
#ifndef PLUMB_CORE_WIRE_WIRES_H
#define PLUMB_CORE_WIRE_WIRES_H

#include "core/bench_rows.h"
#include "core/option.h"
#include "core/row.h"
#include "core/wire/wire.h"

extern const char *const wire_names[]; /* in that order; NULL-terminated */
const struct wire_ops *wire_find(const char *name);
void wire_backends(backend_say_fn *say, void *arg); /* of all of them */

/* Choices of options, NULL-terminated, in the order of the enums; completions: polled for, or
 * waited for by events. */
extern const char *const wire_tcp_modes[], *const wire_verbs[], *const wire_connects[],
                                                                    *const wire_completions[];
/* As struct opt's `parse`, of an int: "auto" (-1) or a number. */
int wire_parse_auto(const char *text, void *value, char *error, size_t len);
/* The same, of a uint64_t: 0, or what RDMA has as an MTU. */
int wire_parse_mtu(const char *text, void *value, char *error, size_t len);

/* What is sent over a rail. */
struct wire_load {
    enum rdma_verb verb; /* of RDMA */
    uint64_t message_bytes;
    unsigned mtu;     /* RDMA: of the path, where the rail does not say */
    unsigned threads; /* shared memory: that copy at once */
};

/*
 * What one rail can carry at most in one direction, payload, GB/s, and how that is known, for
 * limit_source: "sysfs: 100 Gb/s less RoCE v2 framing at MTU 4096 (98.0 %)"; the less of line and
 * PCIe link: "PCIe 3.0 x16: 126 Gb/s, narrower than the line (sysfs: 200 Gb/s)". NaN where the line
 * or its framing is not known, or there is none: `source` says why.
 */
double wire_limit_gbps(const struct nic_rail *r, const struct wire_load *p, char *source,
                       size_t len);
/* The same limit's limit_kind and limit_link. */
enum limit_kind wire_limit_kind(const struct nic_rail *r);
const char *wire_limit_link(const struct nic_rail *r, const struct wire_load *p);
/* Are there switches of its line that sum what goes through them? Of InfiniBand (SHARP); of
 * Ethernet none, whatever its PCIe link. */
bool wire_switches_may_sum(const struct nic_rail *r);

/* The caller adds flags and the member (`...`), and the scope where the rows say one. */

/* clang-format off */
#define WIRE_OPT_BUFFER(...)                                                                       \
    {.name = "buffer", .type = OPT_SIZE, __VA_ARGS__, .def = "0", .max = 1ull << 31,               \
     .help = "SO_SNDBUF and SO_RCVBUF; 0: the kernel tunes them"}
#define WIRE_OPT_BUSY_POLL(...)                                                                    \
    {.name = "busy-poll", .type = OPT_U64, __VA_ARGS__, .def = "0", .max = 1000000,                \
     .help = "SO_BUSY_POLL in us; 0: the system's value"}
#define WIRE_OPT_CONGESTION(...)                                                                   \
    {.name = "congestion", .type = OPT_STRING, __VA_ARGS__, .arg = "NAME"}
#define WIRE_OPT_SEGMENT(...)                                                                      \
    {.name = "segment", .type = OPT_SIZE, __VA_ARGS__, .def = "0", .max = 65535,                   \
     .help = "TCP_MAXSEG: longest segment, with TCP's options; 0: the path's"}
#define WIRE_OPT_DATA_PORT(...)                                                                    \
    {.name = "data-port", .type = OPT_U64, __VA_ARGS__, .def = "0", .max = 65000}
#define WIRE_OPT_MTU(...)                                                                          \
    {.name = "mtu", .type = OPT_CUSTOM, __VA_ARGS__, .def = "0", .arg = "N",                       \
     .parse = wire_parse_mtu, .help = "path MTU; 0: the port's"}
#define WIRE_OPT_GID_INDEX(...)                                                                    \
    {.name = "gid-index", .letter = 'x', .type = OPT_CUSTOM, __VA_ARGS__, .def = "auto",           \
     .arg = "auto|N", .parse = wire_parse_auto, .help = "index of the port's GID (RoCE v1 or v2)"}
#define WIRE_OPT_COMPLETION(...)                                                                   \
    {.name = "completion", .type = OPT_CHOICE, __VA_ARGS__, .choices = wire_completions,           \
     .def = "poll"}

#define WIRE_COUNTS "counts or extremes: their spread is none of a launch's median"
#define WIRE_STATE  "neither more nor less is better by itself"

/* The round-trip time is measured while the stream fills its queues. */
#define WIRE_METRICS                                                                               \
    {.name = "cpu_per_gb", .units = "s/GB", .says = "CPU seconds for each GB of payload"},         \
    {.name = "cpu_cores",                                                                          \
     .units = "cores",                                                                             \
     .unjudged = "CPU time per byte times the rate: both of these are judged",                     \
     .says = "CPUs that were busy meanwhile"},                                                     \
    {.name = "retransmits",                                                                        \
     .units = "count",                                                                             \
     .unjudged = WIRE_COUNTS,                                                                      \
     .says = "Packets that TCP sent again"},                                                       \
    {.name = "rnr naks", .units = "count", .unjudged = WIRE_COUNTS},                               \
    {.name = "out of sequence", .units = "count", .unjudged = WIRE_COUNTS},                        \
    {.name = "congestion notices", .units = "count", .unjudged = WIRE_COUNTS},                     \
    {.name = "rtt",                                                                                \
     .units = "us",                                                                                \
     .unjudged = WIRE_STATE,                                                                       \
     .says = "The time to the peer and back, as TCP estimates it"},                                \
    {.name = "cwnd",                                                                               \
     .units = "packets",                                                                           \
     .unjudged = WIRE_STATE,                                                                       \
     .says = "Packets that TCP allows on the way (congestion window)"},                            \
    {.name = "limited_by_receiver",                                                                \
     .units = "percent",                                                                           \
     .unjudged = WIRE_STATE,                                                                       \
     .says = "Share of the time in which TCP waited for room at the receiver"},                    \
    {.name = "limited_by_buffer",                                                                  \
     .units = "percent",                                                                           \
     .unjudged = WIRE_STATE,                                                                       \
     .says = "Share of the time in which TCP waited for room in its send buffer"},                 \
    {.name = "zerocopy_copied", .units = "percent", .unjudged = WIRE_STATE}

#endif
