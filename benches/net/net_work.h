/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark `net`, from its options to its rows. net.c has the options, net_work.c the life of
 * a point and its rows, peer.c the way to the peer.
 */
#ifndef PLUMB_BENCHES_NET_NET_WORK_H
#define PLUMB_BENCHES_NET_NET_WORK_H

#include "benches/net/lead.h"
#include "core/bench/bench.h"
#include "core/group/pair.h"

enum net_pattern { NET_BANDWIDTH, NET_LATENCY, NET_MESSAGE_RATE, NET_LOADED_LATENCY };

struct net_params {
    struct pair_params meet;
    const char *device, *peer_device, *memory, *peer_memory, *rail;
    uint64_t data_port, iterations, duration_ns;
    int transport, pattern, way;
    uint64_t size, load_size, streams, threads;
    int node, peer_node; /* NET_NODE_* or a number */
    bool sizes_chosen;   /* by us: each pattern takes those that say something of it */
    bool samples_chosen; /* by us: a latency ends when its percentiles are there */
    bool no_cpu;
    /* TCP */
    int mode, wait, inject;
    bool zerocopy;
    uint64_t busy_poll_us, buffer_bytes, segment_bytes;
    const char *congestion;
    /* RDMA */
    int verb, connect, completion, relaxed;
    uint64_t depth, signal_every, mtu, timeout, retry;
    int gid_index, inline_bytes; /* -1: chosen */
};

/* For OPT_CUSTOM options; *value is the text: "eth0+eth1", none of them twice. */
int net_parse_devices(const char *text, void *value, char *error, size_t len);
/* The same: the host, a GPU, or NET_MEMORY_RAIL. */
int net_parse_memory(const char *text, void *value, char *error, size_t len);

/* Hooks of struct bench: a point. */
void net_bench_close(struct point *ctx);
int net_bench_possible(struct point *pt);
int net_bench_setup(struct point *pt);
int net_bench_begin(struct point *pt);
int net_bench_sample(struct point *pt, uint64_t inner, uint64_t *ns);
int net_bench_check(struct point *pt);
int net_bench_evidence(struct point *pt);
void net_bench_teardown(struct point *pt);

/*
 * The leader gets its peer in one of three ways: a listener on another machine, rank 1 of mpirun or
 * srun, or, if neither is asked for, a child process. This process may also be the peer.
 */

/* The leader's channel to its peer. The secret is loaded at the first call. 0, or -errno
 * with error: -EBUSY, where a child is wanted that is to use a GPU, and this process has
 * used one (gpus_used()). */
int net_peer_open(struct channel **c, const struct net_params *p, struct meet_secret *secret,
                  const volatile int *cancel, char *error, size_t len);

/* Are buffers in `memory` (as --memory and --peer-memory have it; NULL: the default) a GPU's? */
bool net_peer_gpu(const char *memory);

/* Where the options or the launcher make this process the peer: serves, and returns the exit
 * status; -1: it is not the peer. */
int net_peer_serve(const struct net_params *p, const volatile int *cancel);

/* This end's own part of the options; and the part of the peer. */
void net_peer_locals(const struct net_params *p, struct net_local *own, struct net_local *peers);

/* ---- Rows (net_work.c) ---- */

struct net_windows { /* of a stream, the last rate of each sample: times of NET_QUANTITY */
    double *ns;
    size_t n, capacity;
};

struct net_session { /* pt->bench_state: outlives the points */
    struct net_lead *lead;
    struct meet_secret secret;
    int unreachable; /* no peer could be had: not tried again for each point */
    char why_unreachable[512];
    struct net_point point;
    bool begun, bound;
    uint64_t samples;                          /* that count */
    struct net_rate_name rates[NET_RATES_MAX]; /* the names that the rows' series point to */
    unsigned n_rates;
    struct net_windows windows;
    char cpu_limit[160]; /* the CPUs, not the link, are the limit: how that shows; "" */
};

/* Limits of the series of s->rates, in their units. */
void net_rows_limits(struct point *pt, const struct net_session *s);

#endif
