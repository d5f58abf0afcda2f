/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmark `net` is made of: its parameters, the names of their values, its hooks. */
#ifndef PLUMB_BENCHES_NET_NET_WORK_H
#define PLUMB_BENCHES_NET_NET_WORK_H

#include "core/bench/bench.h"
#include "core/wire/net.h"

enum net_pattern { NET_BANDWIDTH, NET_LATENCY, NET_MESSAGE_RATE, NET_LOADED_LATENCY };
enum net_way { NET_WAY_FORWARD, NET_WAY_REVERSE, NET_WAY_BOTH };

/* NULL-terminated, in the order of the enums. */
extern const char *const net_patterns[], *const net_ways[], *const net_waits[],
                                                                *const net_injects[];

struct net_params {
    const char *host, *secret_file, *listen, *device, *peer_device, *memory, *peer_memory;
    uint64_t port, data_port, wait_ns, runs, iterations, duration_ns;
    int transport, pattern, way;
    uint64_t size, load_size, streams, threads;
    int node, peer_node; /* NET_NODE_* or a number */
    bool sizes_chosen;   /* by us: each pattern takes those that say something of it */
    bool samples_chosen; /* by us: a latency ends when its percentiles are there */
    bool no_cpu, tune;
    /* TCP */
    int mode, wait, inject;
    bool zerocopy;
    uint64_t busy_poll_us, buffer_bytes;
    const char *congestion;
    /* RDMA */
    int verb, connect, completion;
    uint64_t depth, signal_every, mtu, timeout, retry;
    int gid_index, inline_bytes; /* -1: chosen */
};

/* For OPT_CUSTOM options; *value is an int. */
int net_parse_node(const char *text, void *value, char *error, size_t len); /* near far N */
/* *value is the text: "eth0+eth1", none of them twice. */
int net_parse_devices(const char *text, void *value, char *error, size_t len);

/* The point that these parameters mean. */
void net_point_of(const struct net_params *p, uint64_t seed, struct net_point *point);

/* Hooks of struct bench. */
int net_bench_defaults(struct opts *o);
int net_bench_instead(struct opts *o, const struct bench_common *common,
                      const volatile int *cancel);
bool net_bench_wanted(struct point *pt);
int net_bench_open(struct point *ctx);
void net_bench_close(struct point *ctx);
int net_bench_setup(struct point *pt);
int net_bench_begin(struct point *pt);
int net_bench_sample(struct point *pt, uint64_t inner, uint64_t *ns);
int net_bench_check(struct point *pt);
int net_bench_evidence(struct point *pt);
void net_bench_teardown(struct point *pt);
void net_bench_backends(backend_say_fn *say, void *arg);

/* Columns that are outcomes. */

#endif
