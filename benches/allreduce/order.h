/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rank 0 asks of the others over their channels, and what they answer. What every member does
 * for it: member.h. One request at a time to a rank; its reply begins with struct collective_reply,
 * and nothing follows where err is not 0. Structs are sent as they are: see session_protocol().
 *
 * While a member works on a request its channel carries two things more, which may also come when
 * nothing is asked:
 * - An echo. The member answers at once, with how long nothing has moved in it. So rank 0 knows
 *   whether anything moves in any rank.
 * - The word to give up, which ends the request with -ECANCELED.
 */
#ifndef PLUMB_BENCHES_ALLREDUCE_ORDER_H
#define PLUMB_BENCHES_ALLREDUCE_ORDER_H

#include <stdbool.h>

#include "benches/allreduce/session.h"
#include "core/collective/collective.h"
#include "core/hw/gpu_watch.h"
#include "core/hw/path.h"

/* Cards of many members on their way, packed: what frames of them carry. Pure, but for
 * cards_send(). */

/* Each: uint32_t member, uint32_t length, the card's bytes. */
struct card_list {
    uint8_t *bytes;
    size_t len, room;
    unsigned n;
};

/* 0, -ENOMEM; -EMSGSIZE: longer than COLLECTIVE_CARD_MAX. */
int cards_add(struct card_list *l, unsigned member, const void *card, size_t len);
/* A frame's cards are added: 0, -ENOMEM; -EPROTO: not whole, of no member, or more than one for
 * each member; then none is. */
int cards_take(struct card_list *l, const void *frame, size_t len, unsigned members);
/* The next one from *at on, which begins at 0. */
bool cards_next(const struct card_list *l, size_t *at, unsigned *member, const uint8_t **card,
                size_t *len);
/* In frames of whole cards. */
int cards_send(struct channel *c, uint16_t type, const struct card_list *l);
void cards_free(struct card_list *l); /* leaves an empty list */

enum collective_request {
    COLLECTIVE_ASK_HELLO = 1, /* struct collective_hello; the same comes back, filled in */
    COLLECTIVE_ASK_OPEN,    /* struct collective_order, its members, then frames of calls; frames of
                               cards come back, then uint32_t: how many */
    COLLECTIVE_ASK_CALLS,   /* struct collective_call[]; no reply */
    COLLECTIVE_ASK_CARDS,   /* order.h; no reply */
    COLLECTIVE_ASK_JOIN,    /* uint32_t: how many cards came; - */
    COLLECTIVE_ASK_RUN,     /* struct session_run; struct collective_times */
    COLLECTIVE_ASK_OVERLAP, /* uint64_t, ns; uint64_t, ns */
    COLLECTIVE_ASK_MARK,    /* -; - */
    COLLECTIVE_ASK_TELL,    /* -; struct collective_account */
    COLLECTIVE_ASK_CHECK,   /* -; - */
    COLLECTIVE_ASK_PROVE,   /* struct collective_claims; struct collective_proof */
    COLLECTIVE_ASK_CLOSE,   /* -; - : the point is over, however far it came */
    COLLECTIVE_ASK_BYE,     /* the session is over; no reply */
    COLLECTIVE_ASK_ECHO,    /* uint32_t; struct collective_echo, at any time */
    COLLECTIVE_ASK_GIVE_UP, /* no reply of its own */
    COLLECTIVE_ASK_LINKS,   /* -; - : -EHOSTUNREACH where a link of it is dead */
    COLLECTIVE_REQUESTS
};
#define COLLECTIVE_REPLY      0x8000u
#define COLLECTIVE_CLAIMS_MAX 32
/* Where nothing moves, a link that was silent for so long is to blame: TCP has sent again four
 * times, and not all ends fall silent at once. */
#define COLLECTIVE_UNHEARD_NS 3500000000u
/* A rank that is in a library ends its process so long after the limit of the call. Rank 0 has
 * named by then who hangs: a launcher ends all ranks when one ends. */
#define COLLECTIVE_ENDS_NS     10000000000u
#define COLLECTIVE_CALLS_FRAME 2048 /* calls of a frame */

struct collective_reply {
    int32_t err;
    uint32_t reserved; /* so that what follows begins where it ends */
    char error[COLLECTIVE_ERROR_BYTES];
};

struct collective_echo {
    uint32_t number;   /* of the echo that was asked for */
    uint32_t still_ms; /* nothing has moved in this rank for so long */
};

struct collective_hello {
    uint64_t idle_ns;                /* asked: how long to watch the idle machine; 0: not at all */
    double idle_cores, idle_softirq; /* busy while idle; NAN: not measured */
    uint32_t cpus;                   /* that this rank may use */
    uint32_t cpus_hash;              /* of which those are */
    uint32_t beside; /* the channels are a library's: have a helper thread and heartbeats */
    uint32_t port;   /* of rank 0's heartbeats, 0: it has none; answered: 0: it cannot be reached */
};

struct collective_order {
    struct collective_point point;
    uint32_t n, me, n_calls;
    uint32_t seat, seats; /* among the members that share this one's CPUs */
    uint32_t serial;      /* of the point, in this session: from 1 */
};

/* What a member has to say at the end: of since the mark. */
struct collective_account {
    struct collective_told told;
    double busy_cores, softirq_cores; /* of the machine, in its first member; else NAN */
    struct gpu_ledger gpu;            /* this member's; rank 0's is watched by its point */
    char gpu_address[24];             /* PCI address, rank 0's too; "": it has none */
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

/* All that a frame of a reply holds besides its head, at most. */
union collective_body {
    struct collective_hello hello;
    struct collective_times times;
    struct collective_account account;
    struct collective_proof proof;
    uint64_t ns;
    uint32_t n;
};

/* Adds what a member's flows claim. Devices beyond COLLECTIVE_CLAIMS_MAX are left out: the proof
 * counts them as others. */
void claims_add(struct collective_claims *claims, const struct collective_told *told);
/* When all are added. `elsewhere`: in the name of a device that does not carry them. */
void claims_settle(struct collective_claims *claims, bool elsewhere);
/* What flows moved to and from other nodes, added; NAN where it is not known exactly. */
void claims_line(const struct collective_told *told, double *out_bytes, double *in_bytes);

/* What the order says is within bounds, texts end. */
bool order_sound(struct collective_order *order, unsigned world_size);
bool members_sound(const struct collective_order *order, const uint32_t *members, unsigned rank,
                   unsigned world_size);
bool calls_sound(const struct collective_point *p, const struct collective_call *calls, unsigned n);
bool account_sound(struct collective_account *account);
bool claims_sound(struct collective_claims *claims);
bool proof_sound(struct collective_proof *proof);

/* Which CPUs this process may use, and the idle machine, watched for so long. */
void hello_fill(struct collective_hello *hello, const struct topo *topo);
void hello_watch(struct collective_hello *hello);

#endif
