/* SPDX-License-Identifier: Apache-2.0 */
/* What the leader's files share: lead.c (a point's life), lead_rates.c (readings). */
#ifndef PLUMB_BENCHES_NET_LEAD_STATE_H
#define PLUMB_BENCHES_NET_LEAD_STATE_H

#include "benches/net/lead.h"
#include "core/group/beat.h"

/* Opening, connecting and checking have deadlines of their own at the peer, of NET_STILL_NS for each step. A peer that is at work on one
 * says so (NET_BEAT): one that is silent for CHANNEL_WAIT_NS hangs. */
#define STEP_WAIT_NS (3 * NET_STILL_NS)

struct net_pair { /* both ends' readings of about the same moment */
    struct net_reading of[NET_SIDES];
};

struct net_lead {
    struct channel *channel;
    struct beat *beat; /* NULL: the channel is a library's */
    const struct topo *topo;
    struct net_hello hello[NET_SIDES];
    bool same_machine, broken, peer_failed;
    bool open, peer_open; /* a point is */
    struct net_order order;
    struct net_end end;
    struct net_told told[NET_SIDES];
    struct net_pair last; /* where the next sample begins */
    uint64_t last_ns, longest_ns;
    struct net_pair mark, block; /* where sampling began; where the block that is open did */
    struct net_pair final;
    struct {
        struct net_cost of[NET_SIDES];
    } blocks[NET_BLOCKS];
    unsigned n_blocks;
    uint64_t block_ns;
    struct sockaddr_storage address; /* of this end, as the channel has it; AF_UNSPEC: none */
    int err;                         /* that goes with the error */
    char said[NET_ERROR_BYTES];      /* in its place: this end itself is cut off */
    char error[2 * NET_ERROR_BYTES], peer_error[NET_ERROR_BYTES];
    _Alignas(8) char in[CHANNEL_FRAME_MAX];
};

int net_lead_fail(struct net_lead *l, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int net_lead_send(struct net_lead *l, enum net_request request, const void *data, size_t len);
/* len NULL: exactly `size` bytes must come. */
int net_lead_reply(struct net_lead *l, enum net_request request, void *data, size_t size,
                   size_t *len, uint64_t wait_ns);
int net_lead_ask(struct net_lead *l, enum net_request request, void *data, size_t size);
int net_lead_own(struct net_lead *l, int err);
int net_lead_first_reading(struct net_lead *l);
int net_lead_last_reading(struct net_lead *l);

#endif
