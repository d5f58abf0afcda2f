/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leader: points one after another with one peer, samples of them, and what both ends say.
 * Errors are 0 or -errno, with a sentence in net_lead_error() that names the end that failed.
 */
#ifndef PLUMB_BENCHES_NET_LEAD_H
#define PLUMB_BENCHES_NET_LEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "benches/net/end.h"
#include "core/row.h"

/* Serves one leader until it says goodbye: a channel_child_fn. 0, 1, or -EHOSTUNREACH: it fell
 * silent. `arg`: struct net_service. */
struct net_service {
    /* this end's command line; fields that are unset are the leader's to say */
    const struct net_local *own;
};
int net_serve(struct channel *c, void *arg);

#define NET_QUANTITY 1e9 /* bytes, or messages: a stream's sample is the time that so many take */
#define NET_BLOCKS   64  /* readings of CPU time that are kept */
#define NET_BLOCK_NS 1000000000u

struct net_lead;

/* Greets the peer; with idle_ns both ends measure how busy their machines are while nothing runs.
 * Takes the channel in any case: it is closed with the lead. */
int net_lead_open(struct net_lead **lead, struct channel *c, const struct topo *topo,
                  uint64_t idle_ns);
void net_lead_close(struct net_lead *lead); /* NULL is left alone */
const char *net_lead_error(struct net_lead *lead);

/* Opens a point at both ends, connects, and starts what streams and answers. On an error the
 * point is closed. */
int net_lead_begin(struct net_lead *lead, const struct net_point *point,
                   const struct net_local *own, const struct net_local *peers);

/* Waits until `window_ns` after the last reading and until something has arrived in each rate,
 * then: ns[0..n) as net_lead_rates() counts them. A call begins where the one before ended. */
int net_lead_stream(struct net_lead *lead, uint64_t window_ns, const volatile int *cancel,
                    uint64_t *ns);
/* One message there and back: the time of one way. */
int net_lead_ping(struct net_lead *lead, uint64_t *ns);

/* What net_lead_stream() measures: each rail of each direction, where there are several the sum of
 * a direction, and the sum of both. */
struct net_rate_name {
    const char *direction; /* of net_direction_word(), or "sum" */
    char rail[64];         /* "" where there is one; "all" for a sum of them */
    double limit_gbps;     /* GB/s, of the slower end; NAN: not known, or parts of it are shared */
    enum limit_kind limit_kind;
    const char *limit_link; /* NULL: none */
    char limit_source[200];
};
#define NET_RATES_MAX (NET_DIRECTIONS * (NIC_RAILS_MAX + 1) + 1)
unsigned net_lead_rates(struct net_lead *lead, struct net_rate_name *rates);
/* What rows call a direction: "forward" or "reverse" where it is streamed alone; where both are,
 * "both-forward" or "both-reverse", which are other cases. */
const char *net_direction_word(const struct net_point *p, enum net_direction d);

/* Whole messages that have arrived since net_lead_mark(), of all rates. */
uint64_t net_lead_messages(const struct net_lead *lead);

/* All bytes since net_lead_mark() over all of the time, stalls and all, by the clock of the end
 * that counts them: GB/s, all rates' sum. After net_lead_end(). */
double net_lead_average(const struct net_lead *lead);

/* Call when the warm-up is over: CPU time, facts and the load's rate count from here. */
int net_lead_mark(struct net_lead *lead);

/* Stops, drains, compares data, and takes the proof of the path. 0; -EBADMSG: wrong data, or the
 * bytes went another way; or as any. */
int net_lead_end(struct net_lead *lead);

/* After net_lead_end(). What the threads of one end, or its machine, have
 * spent since net_lead_mark(). */
enum net_side { NET_OWN, NET_PEER, NET_SIDES };
enum net_spent {
    NET_SPENT_THREADS, /* CPU seconds of all threads that move data */
    NET_SPENT_MACHINE, /* of the whole machine, less what it spends when idle; NAN: not measured */
    NET_SPENT_SOFTIRQ, /* the same */
    NET_SPENT
};
struct net_cost {
    double bytes; /* arrived meanwhile, both directions */
    double seconds;
    double cpu_seconds; /* with the readings at both ends in it: what CPUs did fits into that */
    double spent_s[NET_SPENT];
};
/* Of one thread over all of the sampling: CPU seconds a second. How many threads; cores
 * NULL: only that. */
unsigned net_lead_threads(struct net_lead *lead, enum net_side side, double *cores);

/* Closes the point at both ends, however far it came. */
void net_lead_finish(struct net_lead *lead);

/* Read by who leads; written by lead.c (the life of a point) and lead_rates.c (readings, rates,
 * limits) alone. */

struct net_readings { /* both ends' readings of about the same moment */
    struct net_reading of[NET_SIDES];
};

struct net_lead {
    struct channel *channel;
    struct talk talk; /* by enum net_side; broken: no further point can be led */
    const struct topo *topo;
    struct net_hello hello[NET_SIDES];
    bool same_machine, peer_failed;
    bool open, peer_open; /* a point is */
    struct net_order order;
    struct net_end end;
    struct net_report reports[NET_SIDES];
    struct net_readings last; /* where the next sample begins */
    uint64_t last_ns;
    /* The longest time between two readings that saw arrivals, since net_lead_mark(): a sample in
     * which the stream stalled takes this long, and is one sample all the same. */
    uint64_t longest_ns;
    struct net_readings mark, block; /* where sampling began; where the block that is open did */
    struct net_readings final;
    struct net_cost blocks[NET_SIDES][NET_BLOCKS]; /* of about a second */
    unsigned n_blocks;
    uint64_t block_ns;
    struct sockaddr_storage address; /* of this end, as the channel has it; AF_UNSPEC: none */
    int err;                         /* that goes with the error */
    char said[NET_ERROR_BYTES];      /* in its place: this end itself is cut off */
    char error[2 * NET_ERROR_BYTES], peer_error[NET_ERROR_BYTES];
};

int net_lead_fail(struct net_lead *l, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int net_lead_send(struct net_lead *l, enum net_request request, const void *data, size_t len);
/* The reply to what was sent. len NULL: exactly `size` bytes must come. */
int net_lead_reply(struct net_lead *l, void *data, size_t size, size_t *len, uint64_t wait_ns);
int net_lead_own(struct net_lead *l, int err);
int net_lead_first_reading(struct net_lead *l);
int net_lead_last_reading(struct net_lead *l);

#endif
