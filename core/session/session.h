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
#ifndef PLUMB_CORE_SESSION_SESSION_H
#define PLUMB_CORE_SESSION_SESSION_H

#include <stdbool.h>

#include "core/collective/collective.h"
#include "core/group/talk.h"
#include "core/hw/path.h"
#include "core/ledger.h"

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
/* Backends by another function than collective_find(). The other ranks have theirs from struct
 * session_service. */
void session_find(struct session *s, const struct collective_ops *(*find)(const char *name));

/* Opens a point in the members and connects them. members[0] is 0. On an error the point is
 * closed. */
int session_begin(struct session *s, const struct collective_point *p, const unsigned *members,
                  unsigned n, const struct collective_call *calls, unsigned n_calls);

/* For the points from here on: bytes that all members get with their order, as collective.extra;
 * copied. 0, or -EMSGSIZE: more than TALK_BYTES_MAX. */
int session_extra(struct session *s, const void *bytes, size_t len);

struct session_run {
    uint64_t operations; /* each is all of the calls */
    /* before each of them it sleeps so long, then all meet at a barrier; not in ns */
    uint64_t gap_ns;
    /* non-blocking: while each is on its way this thread multiplies matrices, as much as takes so
     * long alone; 0: blocking */
    uint64_t overlap_ns;
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
/* PCI addresses, '+' between them; "": none */
const char *session_gpu_address(const struct session *s, unsigned member);
/* Of the members' buffers: "base+thp" also where theirs differ; "". */
const char *session_pages(const struct session *s);
const struct collective_report *session_report(const struct session *s, unsigned member);
/* A library took sockets where an RDMA port is up, and nobody asked for them. */
enum collective_fallen { FALLEN_NOT, FALLEN_INFINIBAND, FALLEN_ETHERNET, FALLEN_KINDS };
/* The links of a node that carried what a library sent to and from other nodes, by their counters:
 * path_wires(), nic_fill_wires(). n 0: it is not known, and why; "": nobody asked, as a backend of
 * ours tells itself, or a point ended before. */
struct collective_wire {
    uint32_t n, fallen; /* enum collective_fallen */
    struct nic_rail rails[NIC_RAILS_MAX];
    char why[PATH_TEXT_BYTES];
};
struct session_node { /* of the members' */
    unsigned member;  /* the first one on it */
    char host[WORLD_NAME_MAX];
    struct path_proof proof;
    struct collective_wire wire;
    /* of its machine since the mark, less what it spends when idle; NAN: not known. Only the first
     * node of a machine has them */
    double busy_cores, softirq_cores;
};
unsigned session_nodes(const struct session *s, const struct session_node **nodes);
double session_seconds(const struct session *s); /* from mark to end */

void session_finish(struct session *s); /* closes the point in all members, however far it came */

/* Addresses of many members on their way, packed. Pure. */

/* Each: uint32_t member, uint32_t length, the address's bytes. */
struct address_list {
    struct talk_bytes packed;
    unsigned n;
};

/* 0, or -EMSGSIZE: longer than COLLECTIVE_ADDRESS_MAX. */
int addresses_add(struct address_list *l, unsigned member, const void *address, size_t len);
/* Packed ones are added: 0, or -EPROTO: not whole, of no member, or more than one for each member;
 * then none is. */
int addresses_take(struct address_list *l, const void *packed, size_t len, unsigned members);
/* The next one from *at on, which begins at 0. */
bool addresses_next(const struct address_list *l, size_t *at, unsigned *member,
                    const uint8_t **address, size_t *len);
void addresses_free(struct address_list *l); /* leaves an empty list */

enum collective_request {
    COLLECTIVE_ASK_HELLO = 1, /* struct collective_hello; the same comes back, filled in */
    COLLECTIVE_ASK_OPEN,      /* struct collective_order, struct collective_call[n_calls],
                               uint32_t members[n], extra[n_extra]; addresses, packed */
    COLLECTIVE_ASK_JOIN,      /* addresses, packed; - */
    COLLECTIVE_ASK_RUN,       /* struct session_run; struct collective_times */
    COLLECTIVE_ASK_OVERLAP,   /* uint64_t, ns; uint64_t, ns */
    COLLECTIVE_ASK_MARK,      /* -; - */
    COLLECTIVE_ASK_TELL,      /* -; struct collective_account */
    COLLECTIVE_ASK_CHECK,     /* -; - */
    COLLECTIVE_ASK_PROVE,     /* struct collective_claims; struct collective_proof */
    COLLECTIVE_ASK_CLOSE,     /* -; - : the point is over, however far it came */
    COLLECTIVE_ASK_LINKS,     /* -; - : -EHOSTUNREACH where a link of it is dead */
    COLLECTIVE_REQUESTS
};
extern const struct talk_request session_requests[COLLECTIVE_REQUESTS];

#define COLLECTIVE_CLAIMS_MAX 32
/* Where nothing moves, a link that was silent for so long is to blame: TCP has sent again four
 * times, and not all ends fall silent at once. */
#define COLLECTIVE_UNHEARD_NS 3500000000u
/* A rank that is in a library ends its process so long after the limit of the call. Rank 0 has
 * named by then who hangs: a launcher ends all ranks when one ends. */
#define COLLECTIVE_ENDS_NS 10000000000u

/* Aside, of ranks that are alive and wait for nothing that moves: other ranks, uint32_t each, that
 * are to be reached by TCP; struct collective_tried, of each. */
enum collective_way {
    WAY_ASKED, /* no answer yet */
    WAY_PASSES,
    WAY_CLOSED,  /* no connection can be made */
    WAY_UNKNOWN, /* it could not be tried */
};
#define COLLECTIVE_TRIALS_MAX 64
struct collective_tried {
    uint32_t rank, way;
};

struct collective_hello {
    uint64_t idle_ns;                /* asked: how long to watch the idle machine; 0: not at all */
    double idle_cores, idle_softirq; /* busy while idle; NAN: not measured */
    uint32_t cpus;                   /* that this rank may use */
    uint32_t cpus_hash;              /* of which those are */
};

struct collective_order {
    struct collective_point point;
    uint32_t n, me, n_calls;
    uint32_t cpu_rank, cpu_ranks; /* among the members that share this one's CPUs */
    uint32_t n_extra;
};

/* What a member has to say at the end: of since the mark. */
struct collective_account {
    struct collective_report told;
    double busy_cores, softirq_cores;        /* of the machine, in its first member; else NAN */
    struct gpu_ledger gpu;                   /* this member's; rank 0's is watched by its point */
    char gpu_address[COLLECTIVE_GPUS_BYTES]; /* as in struct collective; rank 0's, too */
    char pages[16];                          /* as collective_host_pages() has it */
};

struct collective_claims {
    uint32_t n, reserved;
    struct path_claim claims[COLLECTIVE_CLAIMS_MAX]; /* n 0: none is claimed, tell what moved */
    /* What a library must have sent to and received from other nodes since the mark: by which
     * links? Both 0: that is not asked. */
    double least_out_bytes, least_in_bytes;
};

struct collective_proof {
    struct path_proof proof;
    struct collective_wire wire;
};

/* Adds what a member's flows claim. Devices beyond COLLECTIVE_CLAIMS_MAX are left out: the proof
 * counts them as others. */
void claims_add(struct collective_claims *claims, const struct collective_report *told);

/* What the order says is within bounds, texts end. */
bool claims_sound(struct collective_claims *claims);

/* Which CPUs this process may use. */
void hello_fill(struct collective_hello *hello, const struct topo *topo);

#endif
