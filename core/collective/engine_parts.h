/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an engine: engine.c (its life), engine_deps.c (what waits for what), engine_move.c (one round of work). */
#ifndef PLUMB_CORE_COLLECTIVE_ENGINE_PARTS_H
#define PLUMB_CORE_COLLECTIVE_ENGINE_PARTS_H

#include "core/collective/engine.h"

#define ENGINE_SLOTS                                                                               \
    8 /* segments of a link that may have come, or be on their way, before they are reduced */

/* Elements begin to end of an action (its own count of them) want the action `earlier` to have done those that are `shift` further on in it. */
struct dep {
    uint32_t earlier;
    int64_t shift;
    uint64_t begin, end;
};

/* Of action i: all[first[i]] to all[first[i + 1]]. */
struct deps {
    struct dep *all;
    size_t n, room, *first;
};

/* 0 or -ENOMEM; release it in any case. As many as actions that meet in a place, not as pairs of actions. */
int deps_make(struct deps *d, const struct schedule *s);
void deps_release(struct deps *d);

/* A segment that has been posted. */
struct piece {
    uint32_t action;
    uint64_t begin, end; /* elements of the action */
    uint64_t end_bytes;  /* of the link, when it is through */
    void *slot;          /* where it waits to be reduced; NULL: it goes where it belongs */
};

/* What goes to, or comes from, one peer. */
struct way {
    struct fabric_link *link;
    unsigned peer; /* member */
    bool out;
    uint32_t *actions, n, next;        /* the next one to post, */
    uint64_t at;                       /* and its next element */
    struct piece pieces[FABRIC_POSTS]; /* posted and not done: a ring */
    unsigned oldest, posted;
    uint64_t bytes;  /* of the link, when all that is posted is through */
    unsigned index;  /* in fabric->links */
    uint8_t *slots;  /* NULL: nothing to reduce */
    unsigned in_use; /* slots, taken and given back in turn */
    unsigned next_slot;
};

struct engine {
    struct collective *c;
    struct fabric *fabric;
    const struct schedule *schedule;
    enum collective_type type;
    enum collective_sum sum;
    size_t element_bytes;
    uint64_t segment;       /* elements */
    uint8_t *scratch;       /* of the caller */
    uint8_t *space[SPACES]; /* of this operation */
    struct deps deps;
    uint64_t *done;  /* of each action: elements through, in their place, put together */
    uint32_t *queue; /* of all ways, then of copies */
    struct way *ways;
    unsigned n_ways, *open, n_open; /* those with something left to do */
    uint32_t *copies, n_copies, next_copy;
    uint64_t idle_since_ns; /* 0: something has just moved */
    uint64_t attended_ns;
    unsigned rounds; /* modulo ATTEND_ROUNDS, over operations */
};

/* Has all been done that elements begin to end of the action want? */
bool engine_ready(const struct engine *e, uint32_t action, uint64_t begin, uint64_t end);
/* One round over all ways: 1: something was posted or done; 0; -errno with c->error. */
int engine_move(struct engine *e);
/* A piece of a copy: it waits until there is nothing else to do. True: one was made. */
bool engine_copy(struct engine *e);
bool engine_finished(const struct engine *e);

#endif
