/* SPDX-License-Identifier: Apache-2.0 */
/* What rank 0's files share: session.c (a point's life), session_fault.c (who failed), prove.c. */
#ifndef PLUMB_CORE_SESSION_SESSION_STATE_H
#define PLUMB_CORE_SESSION_SESSION_STATE_H

#include "core/group/talk.h"
#include "core/session/member.h"

#define SESSION_ERROR_BYTES (2 * COLLECTIVE_ERROR_BYTES)
/* A rank in a library notices by itself, where it can, that a call takes too long: so long after
 * that, rank 0 gives up. */
#define SESSION_LIBRARY_NS 4000000000u

/* A rank, as rank 0 knows it. */
struct session_rank {
    bool open; /* it may have a point open */
    struct collective_hello hello;
};

struct session {
    struct world *world;
    struct talk talk; /* by rank */
    const struct topo *topo;
    struct member own;
    struct session_rank *ranks;
    unsigned size;
    bool said; /* the first loss, on stderr */
    /* A library's ranks after the loss of one: nothing can be asked of any. */
    bool parted;
    bool gone_said;               /* the first rank that has ended, by the thread that sees it */
    struct session_trial *trials; /* NULL: nobody was asked */
    unsigned n_trials;
    uint64_t tried_ns;
    unsigned members[WORLD_RANKS_MAX], n;
    struct collective_times *times;
    struct collective_account *accounts; /* of what was measured */
    struct collective_account *all;      /* and of the operation that was checked */
    struct session_node *nodes;
    unsigned n_nodes;
    bool told;
    struct talk_bytes extra;
    uint64_t mark_ns;
    uint64_t operations, runs; /* since the mark; a run has some operations */
    double seconds;
    /* of this rank's own part, which was left; "": it was not */
    char stuck[COLLECTIVE_ERROR_BYTES];
    char error[SESSION_ERROR_BYTES];
};

/* What a member has answered, of the size that the table says. */
static inline const void *session_reply(const struct session *s, unsigned member)
{
    return talk_reply(&s->talk, s->members[member]);
}

/* Keeps the sentence, and returns err. */
#define session_fail(s, err, ...) group_fail((err), (s)->error, sizeof((s)->error), __VA_ARGS__)

/* To all members but this one. */
int session_post_all(struct session *s, enum collective_request request, const void *data,
                     size_t len);
/* Takes the signs of life of ranks of which nothing is awaited. Who is lost is said, and is not
 * this point's loss. */
void session_watch(struct session *s);
/* On stderr, once, where ranks were started one by one: points without the lost rank may go on for
 * long. */
void session_say_loss(struct session *s, const char *text);
/* session_fault.c. Of a point that a helper is at: is a rank lost? Then nothing is asked of any
 * from here on: the library cannot be trusted with them any more. */
bool session_heed(struct session *s);
/* Under a launcher of MPI: who ends is said at once. */
void session_tell_ends(struct session *s);
/* talk.aside: what a rank found of the network between hosts. */
void session_tried(void *arg, unsigned rank, const void *data, size_t len);
/* While the helper does the own part: as member.await. */
int session_await(struct member *m);

/* RDMA takes two: nodes that fell back from the same kind of port are wrong, a single one is
 * told. */
void session_judge_fallen(struct session *s);
/* All replies to a request; `own_err`: of this rank's own part in it, which is over. A rank of
 * which nothing is heard for too long has failed. Where any has, everybody gives up: -errno with
 * the sentence that says who did. */
int session_settle(struct session *s, int own_err, enum collective_request request,
                   const struct session_run *run);
#endif
