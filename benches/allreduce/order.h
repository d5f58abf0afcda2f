/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rank 0 asks of the others over their channels, and what every member does for it, rank 0 itself too (member.c). One request at a time to a rank;
 * its reply begins with struct collective_reply, and nothing follows where err is not 0. Structs are sent as they are: see
 * session_protocol().
 *
 * While a member works on a request its channel carries two things more, which may also come when
 * nothing is asked:
 * - An echo. The member answers at once, with how long nothing has moved in it. So rank 0 knows
 *   whether anything moves in any rank.
 * - The word to give up, which ends the request with -ECANCELED.
 */
#ifndef PLUMB_BENCHES_ALLREDUCE_ORDER_H
#define PLUMB_BENCHES_ALLREDUCE_ORDER_H

#include "benches/allreduce/cards.h"
#include "benches/allreduce/hand.h"
#include "benches/allreduce/overlap.h"
#include "benches/allreduce/pulse.h"
#include "benches/allreduce/session.h"
#include "benches/allreduce/watchdog.h"
#include "core/hw/gpu_watch.h"
#include "core/hw/machine.h"
#include "core/hw/path.h"

enum collective_request {
    COLLECTIVE_ASK_HELLO = 1, /* struct collective_hello; the same comes back, filled in */
    COLLECTIVE_ASK_OPEN,    /* struct collective_order, its members, then frames of calls; frames of
                               cards come back, then uint32_t: how many */
    COLLECTIVE_ASK_CALLS,   /* struct collective_call[]; no reply */
    COLLECTIVE_ASK_CARDS,   /* cards.h; no reply */
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
#define COLLECTIVE_UNHEARD_NS  3500000000u
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
    uint32_t beside;                 /* the channels are a library's: have a hand, and a pulse */
    uint32_t port; /* of rank 0's pulse, 0: it has none; answered: 0: it cannot be reached */
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
    /* What a library must have sent to and received from other nodes since the mark: by which links? Both 0: that is not asked. */
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

typedef const struct collective_ops *collective_find_fn(const char *name);

/* One rank's part of one point. */
struct member {
    struct world *world;
    const struct topo *topo;  /* NULL: it is not bound to a CPU */
    collective_find_fn *find; /* backends by name */
    const char *device;       /* of its own command line, or NULL */
    /* Looks after the channels while this rank waits: as collective.attend, with c.error. */
    int (*look)(struct member *m);
    /* How long nothing has moved in all other ranks that rank 0 waits for, as far as this one
     * knows. UINT64_MAX: there are none. */
    uint64_t (*others_still_ns)(struct member *m);
    void *arg;
    uint64_t looked_ns, links_ns;
    uint64_t moved_ns; /* when something last moved here */
    /* What stands still for so long in all ranks, or takes as long in a library, has failed. */
    uint64_t still_ns;
    struct collective_point point;
    unsigned members[WORLD_RANKS_MAX];
    struct collective_call *calls;
    struct collective c;
    bool open, bound, first_of_node, first_of_machine;
    struct watchdog *dog; /* of backends that wait in a library */
    struct hand *hand;    /* or what they are done by; NULL: the channels are not a library's */
    struct pulse *pulse;  /* NULL: none */
    bool handed;          /* this point is */
    /* Called by the one who waits for the hand; not 0: it is left where it is. */
    int (*await)(struct member *m);
    uint64_t request; /* for the pulse */
    uint64_t fed_ns,
        limit_ns; /* atomic: of the hand: when it was last seen to move, and how long it may not be */
    struct member_job *job; /* of the hand, which may never end with it */
    uint64_t operation_ns;  /* of the last run, each; 0: there was none */
    uint64_t filled_seed;   /* that the inputs are of */
    bool ran;               /* there are results of these inputs */
    struct overlap overlap; /* open where it has matrices */
    struct collective_told mark;
    struct cpu_reading cpu_mark;
    bool cpu_known;
    struct path *path;
    struct gpu_watch *watch; /* of this member's GPU; NULL: it has none, or is rank 0 */
};

/* What rank 0 has asked, done by the hand where the point is handed: else, and by it, as it is below. 0 or -errno: from await() where the hand was left, and from then
 * on. Of `what`: order, members, calls; cards to join; run, and times; overlap_ns, and ns; nothing. */
struct member_job {
    enum collective_request what;
    const struct collective_order *order;
    const uint32_t *members;
    const struct collective_call *calls;
    const struct card_list *cards;
    struct session_run run;
    struct collective_times times; /* out */
    uint64_t overlap_ns, ns;       /* in, out */
    struct member *member;
};
int member_do(struct member *m, struct member_job *job);
/* Nothing moves in the hand, for longer than may be: for so long; 0: it does. */
uint64_t member_still_ns(const struct member *m);
/* A hand, and a pulse that rank 0 made or the others follow. What cannot be had is left out. */
void member_stand_beside(struct member *m, struct collective_hello *hello);
void member_stand_alone(struct member *m);

/* Each 0, or -errno with m->c.error. `members` and calls are copied. */
int member_open(struct member *m, const struct collective_order *order, const uint32_t *members,
                const struct collective_call *calls);
int member_cards(struct member *m, struct card_list *cards);      /* for whom each is */
int member_join(struct member *m, const struct card_list *cards); /* from whom */
int member_run(struct member *m, const struct session_run *run, struct collective_times *times);
int member_overlap_alone(struct member *m, uint64_t overlap_ns, uint64_t *ns);
int member_mark(struct member *m);
void member_tell(struct member *m, struct collective_account *account);
int member_check(struct member *m);
void member_prove(struct member *m, const struct collective_claims *claims,
                  struct collective_proof *proof);
/* 0; -EHOSTUNREACH where a link of it has sent what nobody acknowledged for so long, in c.error. */
int member_links(struct member *m, uint64_t for_ns);
void member_close(struct member *m); /* however far it came; harmless when nothing is open */

/* How long one request may take before something must be wrong, where a backend waits in a library and
 * nothing can be seen of its progress. */
uint64_t member_patience_ns(const struct member *m, enum collective_request request,
                            const struct session_run *run);
/* From here on that is the limit; the watchdog's too, where there is one, until it is told to rest. */
void member_watch(struct member *m, enum collective_request request, const struct session_run *run);
/* Fills the inputs. */
int member_fill(struct member *m, uint64_t seed);
/* Is it the one that is to be missing (COLLECTIVE_ABSENT)? */
bool member_is_absent(const struct member *m);

/* Adds what a member's flows claim. Devices beyond COLLECTIVE_CLAIMS_MAX are left out: the proof counts them as others. */
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
