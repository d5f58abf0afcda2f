/* SPDX-License-Identifier: Apache-2.0 */
/* What rank 0's files share: session.c (a point's life), session_ask.c (requests and replies),
 * session_fault.c (who failed), prove.c. */
#ifndef PLUMB_BENCHES_ALLREDUCE_SESSION_STATE_H
#define PLUMB_BENCHES_ALLREDUCE_SESSION_STATE_H

#include "benches/allreduce/member.h"
#include "core/group/channel.h"

#define SESSION_ERROR_BYTES (2 * COLLECTIVE_ERROR_BYTES)
/* A rank in a library notices by itself, where it can, that a call takes too long: so long after
 * that, rank 0 gives up. */
#define SESSION_LIBRARY_NS 4000000000u

/* Another rank, as rank 0 knows it. */
struct session_peer {
    uint16_t pending; /* the request whose reply has not come; 0 */
    bool open;        /* it may have a point open */
    bool cut;         /* it was lost by its silence: its process may be there */
    bool gone;        /* nothing can be asked of it any more */
    bool silent;      /* it did not answer an echo, the last time that all were asked */
    uint32_t echoed;  /* number of the last echo that it answered */
    uint64_t heard_ns;
    uint64_t still_ns; /* nothing had moved in it for so long, as it said then */
    int err;           /* of its last reply, or of its loss */
    char error[COLLECTIVE_ERROR_BYTES];
    union collective_body body;
    struct address_list addresses; /* from it */
    struct collective_hello hello;
};

struct session {
    struct world *world;
    struct beat *beat; /* NULL: the channels are a library's */
    const struct topo *topo;
    struct member own;
    struct session_peer *peers; /* by rank; [0] is of this process: hello alone */
    unsigned size;
    bool broken;
    bool said; /* the first loss, on stderr */
    unsigned members[WORLD_RANKS_MAX], n;
    uint32_t echo; /* the last one's number */
    uint64_t echoed_ns, listened_ns;
    uint64_t watched_ns;
    uint64_t posted_ns; /* when the last request was sent */
    struct collective_times *times;
    struct collective_account *accounts; /* of what was measured */
    struct collective_account *all;      /* and of the operation that was checked */
    struct session_node *nodes;
    unsigned n_nodes;
    bool told;
    uint64_t mark_ns;
    uint64_t operations, runs; /* since the mark; a run has some operations */
    double seconds;
    uint32_t serial; /* of the point */
    /* of this rank's own part, which was left; "": it was not */
    char stuck[COLLECTIVE_ERROR_BYTES];
    char loss[COLLECTIVE_ERROR_BYTES]; /* the first rank that was lost */
    char error[SESSION_ERROR_BYTES];
    char in[CHANNEL_FRAME_MAX];
};

static inline struct session_peer *session_peer(struct session *s, unsigned member)
{
    return &s->peers[s->members[member]];
}

/* Keeps the sentence, and returns err. */
int session_fail(struct session *s, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Without a reply. A rank that does not take it is gone: -errno. */
int session_send(struct session *s, unsigned rank, enum collective_request request,
                 const void *data, size_t len);
/* Of which a reply is awaited. */
int session_post(struct session *s, unsigned rank, enum collective_request request,
                 const void *data, size_t len);
/* To all members but this one. */
int session_post_all(struct session *s, enum collective_request request, const void *data,
                     size_t len);
/* Takes what has come from ranks whose reply is awaited; waits so long for something. Returns
 * whether a rank has failed since it was asked. */
bool session_receive(struct session *s, uint64_t wait_ns);
/* All whose reply is awaited are asked for an echo. */
void session_echo(struct session *s);
/* The same from time to time, from the start of a request. True: a rank that can answer at this
 * request has not for too long. */
bool session_listen(struct session *s);
/* How long nothing has moved in any rank whose reply is awaited; UINT64_MAX: there is none. */
uint64_t session_still_ns(const struct session *s);
/* Takes the signs of life of ranks of which nothing is awaited. Who is lost is said, and is not
 * this point's loss; NULL is left alone. */
void session_watch(struct session *s);
void session_lose(struct session *s, unsigned rank, int err, const char *text);
/* Something is lost for good: why, unless an earlier loss has been told. */
void session_break(struct session *s, const char *text);
/* On stderr, once, where ranks were started one by one: points without the lost rank may go on for
 * long. */
void session_say_loss(struct session *s, const char *text);
/* session_fault.c. Has a member been lost, by its signs of life? Then the channels are left alone
 * from here on: they are a library's, which cannot be trusted with them any more. */
bool session_heed(struct session *s);
/* While the helper does the own part: as member.await. */
int session_await(struct member *m);

/* RDMA takes two: nodes that fell back from the same kind of port are wrong, a single one is
 * told. */
void session_judge_fallen(struct session *s);
/* Says which ranks have no signs of life, where they should have. */
void session_say_deaf(const struct session *s);

/* All replies to a request; `own_err`: of this rank's own part in it, which is over. A rank of
 * which nothing is heard for too long has failed. Where any has, everybody gives up: -errno with
 * the sentence that says who did. */
int session_settle(struct session *s, int own_err, enum collective_request request,
                   const struct session_run *run);
/* deaf_ns: what the ranks are at may take so long from when it was asked, and is not
 * interrupted. */
int session_give_up(struct session *s, int own_err, uint64_t deaf_ns);

#endif
