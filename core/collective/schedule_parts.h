/* SPDX-License-Identifier: Apache-2.0 */
/* What the makers of schedules (schedule_*.c) share. */
#ifndef PLUMB_CORE_COLLECTIVE_SCHEDULE_PARTS_H
#define PLUMB_CORE_COLLECTIVE_SCHEDULE_PARTS_H

#include "core/collective/schedule.h"

struct maker {
    struct schedule *s;
    enum collective_op op;
    uint64_t count, block; /* elements of the vector, and of a block of it */
    unsigned n, me;
    bool in_place;
    int err; /* the first one */
};

/* A run of elements somewhere. */
struct span {
    enum action_space space;
    uint64_t first, count;
};

static inline struct span span(enum action_space space, uint64_t first, uint64_t count)
{
    return (struct span){space, first, count};
}

/* Where nothing is to be done (no elements, a copy to itself) no action is added. */
void make_send(struct maker *k, unsigned peer, struct span from);
void make_receive(struct maker *k, unsigned peer, struct span to);
/* to = what is at from (+) what comes */
void make_reduce(struct maker *k, unsigned peer, struct span to, enum action_space source,
                 uint64_t from);
void make_copy(struct maker *k, struct span to, enum action_space source, uint64_t from);

/* Where this member's input is: a piece of it, or, in place, of the vector that it is a part of. */
enum action_space make_input(const struct maker *k);

/* The makers: one operation by one algorithm each. */
typedef void make_fn(struct maker *k);
make_fn make_ring_allreduce, make_ring_reduce_scatter, make_ring_all_gather, make_chain_broadcast,
    make_all_to_all, make_send_receive;
make_fn make_halving_allreduce, make_halving_reduce_scatter, make_doubling_allreduce,
    make_doubling_all_gather, make_tree_broadcast;

#endif
