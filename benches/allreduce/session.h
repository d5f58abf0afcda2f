/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank 0 leads the world through points: tells all what to do, does its own part, collects what
 * they say. Errors are 0 or -errno, with a sentence in session_error() that names the rank that
 * failed.
 *
 * A rank that is gone, stands still or never comes ends the point within 10 s, in all ranks:
 * whoever waits looks after its channel (collective.attend), tells the leader, and the leader tells
 * everybody to give up. Ranks that answer again serve the next point. A rank that was lost stays
 * so: points without it go on.
 */
#ifndef PLUMB_BENCHES_ALLREDUCE_SESSION_H
#define PLUMB_BENCHES_ALLREDUCE_SESSION_H

#include "core/collective/collective.h"
#include "core/hw/path.h"

struct session;

/* What other ranks run: serves the leader until it says goodbye. A world_fn; arg: struct
 * session_service, or NULL. */
struct session_service {
    const char *device; /* of this rank's own command line; NULL or "": the leader's to say */
    const struct collective_ops *(*find)(const char *name); /* NULL: collective_find */
};
int session_serve(struct world *w, void *arg);
/* All ranks must have the same: it changes with the layout of what they send each other as it is.
 * For struct world_meeting. */
uint32_t session_protocol(void);

/* Rank 0. The world is the caller's. `idle_ns`: each machine is watched for so long while nothing
 * runs, 0: it is not. */
int session_open(struct session **s, struct world *w, const struct topo *topo, uint64_t idle_ns);
void session_close(
    struct session *s); /* says goodbye to those that are there; NULL is left alone */
const char *session_error(const struct session *s);
/* A rank of the world is gone, or did not give up when it was told to. The others are still there,
 * unless the channels are a library's: points without it can be run, one with it fails at once, by
 * its name. */
bool session_broken(const struct session *s);
const char *session_loss(const struct session *s); /* the first of them; "": none */
/* For tests: backends by another function than collective_find(). The others have theirs from
 * struct session_service. */
void session_find(struct session *s, const struct collective_ops *(*find)(const char *name));

/* Opens a point in the members and connects them. members[0] is 0. On an error the point is
 * closed. */
int session_begin(struct session *s, const struct collective_point *p, const unsigned *members,
                  unsigned n, const struct collective_call *calls, unsigned n_calls);

struct session_run {
    uint64_t operations; /* each is all of the calls */
    uint64_t
        gap_ns; /* before each of them it sleeps so long, then all meet at a barrier; not in ns */
    uint64_t
        /* non-blocking: while each is on its way this thread multiplies matrices, as much as
         * takes so long alone; 0: blocking */
        overlap_ns;
};
/* A barrier, then so many operations, by all members. Each member's times, in the order of members;
 * valid until the next call. *slowest: the largest ns. */
int session_run(struct session *s, const struct session_run *run,
                const struct collective_times **times, uint64_t *slowest);
/* How long the work of overlap_ns takes alone, now, in the slowest member. */
int session_overlap_alone(struct session *s, uint64_t overlap_ns, uint64_t *ns);

/* The warm-up is over: flows, counters and CPU count from here. */
int session_mark(struct session *s);

/* The results of the last operation (where not in place) and of a fresh one are compared whole, in
 * every member; then the path's proof is taken in every node. 0; -EBADMSG: wrong data, or bytes
 * went another way, told in session_error(). */
int session_end(struct session *s);

/* After session_end(). */
/* What a member saw of its GPU since the mark; rank 0 sees its own by itself. NULL before
 * session_end(). */
const struct gpu_ledger *session_gpu(const struct session *s, unsigned member);
const char *session_gpu_address(const struct session *s, unsigned member); /* PCI; "": none */
const struct collective_told *session_told(const struct session *s, unsigned member);
/* A library took sockets where an RDMA port is up, and nobody asked for them. */
enum collective_fallen { FALLEN_NOT, FALLEN_INFINIBAND, FALLEN_ETHERNET, FALLEN_KINDS };
/* The links of a node that carried what a library sent to and from other nodes, by their counters:
 * path_wires(), nic_fill_wires(). n 0: it is not known, and why; "": nobody asked, as a backend of
 * ours tells itself, or a point ended before. */
struct collective_wire {
    uint32_t n, fallen; /* enum collective_fallen */
    struct net_rail rails[NET_RAILS_MAX];
    char why[PATH_TEXT_BYTES];
};
struct session_node { /* of the members' */
    unsigned member;  /* the first one on it */
    char host[WORLD_NAME_MAX];
    struct path_proof proof;
    struct collective_wire wire;
    double line_out_bytes,
        line_in_bytes; /* to and from other nodes since the mark, where known exactly; NAN */
    double busy_cores,
        softirq_cores; /* of its machine since the mark, less what it spends when idle; NAN: not known. Machines are
                                         told at their first node alone */
};
unsigned session_nodes(const struct session *s, const struct session_node **nodes);
double session_seconds(const struct session *s); /* from mark to end */

void session_finish(struct session *s); /* closes the point in all members, however far it came */

#endif
