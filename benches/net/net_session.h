/* SPDX-License-Identifier: Apache-2.0 */
/* Between net_work.c (a point's life) and net_rows.c (its rows). */
#ifndef PLUMB_BENCHES_NET_NET_SESSION_H
#define PLUMB_BENCHES_NET_NET_SESSION_H

#include "benches/net/lead.h"
#include "benches/net/party.h"
#include "core/bench/bench.h"

struct net_windows { /* of a stream, the last rate of each sample: times of NET_QUANTITY */
    double *ns;
    size_t n, capacity;
};

struct net_session { /* pt->bench_state: outlives the points */
    struct net_lead *lead;
    struct net_secret secret;
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

/* The series of a point: of these rates, or (n 0) of the directions as asked for. */
void net_rows_series_of(struct point *pt, struct net_session *s, const struct net_rate_name *rates,
                        unsigned n);
void net_rows_series(struct point *pt, struct net_session *s);
/* CPU cost, the load's rate, the transport's facts. */
void net_rows_figures(struct point *pt, struct net_session *s);
/* A stream that stalls: its median alone does not show it. */
void net_rows_judge(struct point *pt, struct net_session *s);
void net_rows_evidence(struct point *pt, struct net_session *s);

#endif
