/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: the list of actions, what makes it for each algorithm, and the table of who makes
 * what. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/collective/engine.h"

struct maker {
    struct schedule *s;
    enum collective_op op;
    uint64_t count, block; /* elements of the vector, and of a block of it */
    unsigned n, me;
    unsigned root; /* where there is one, members are counted from it on: `me` is 0 in the root */
    bool in_place;
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

/* The makers: one operation by one algorithm each. */
typedef void make_fn(struct maker *k);

static make_fn make_ring_allreduce, make_ring_reduce_scatter, make_ring_all_gather,
    make_chain_broadcast, make_all_to_all, make_send_receive;

static make_fn make_halving_allreduce, make_halving_reduce_scatter, make_doubling_allreduce,
    make_doubling_all_gather, make_tree_broadcast;

/* --- around the ring, and what needs only the neighbours, or everybody at once --- */

static unsigned next(const struct maker *k)
{
    return (k->me + 1) % k->n;
}

static unsigned previous(const struct maker *k)
{
    return (k->me + k->n - 1) % k->n;
}

/* The part that is `back` places behind this member's own. */
static unsigned behind(const struct maker *k, unsigned back)
{
    return (k->me + 2 * k->n - back) % k->n;
}

/* n parts as equal as can be: where count does not divide, some have an element more; of fewer
 * elements than members, some have none. */
static struct span part(const struct maker *k, enum action_space space, unsigned i)
{
    uint64_t first = k->count * i / k->n;

    return span(space, first, k->count * (i + 1) / k->n - first);
}

static unsigned true_member(const struct maker *k, unsigned counted)
{
    return (counted + k->root) % k->n;
}

/* The block of a member that is counted from the root on. */
static struct span block_of(const struct maker *k, enum action_space space, unsigned counted)
{
    return span(space, true_member(k, counted) * k->block, k->block);
}

static void add(struct maker *k, const struct action *a)
{
    struct schedule *s = k->s;

    if (!a->count)
        return;
    if (a->kind != ACTION_SEND && a->target == SPACE_SCRATCH && a->first + a->count > s->scratch)
        s->scratch = a->first + a->count;
    struct action *new = ARRAY_ADD(s->actions, s->n);
    *new = *a;
    new->peer = true_member(k, a->peer);
}

/* Where nothing is to be done (no elements, a copy to itself) no action is added. */
static void make_send(struct maker *k, unsigned peer, struct span from)
{
    add(k, &(struct action){.kind = ACTION_SEND,
                            .source = (uint8_t)from.space,
                            .peer = peer,
                            .from = from.first,
                            .count = from.count});
}

static void make_receive(struct maker *k, unsigned peer, struct span to)
{
    add(k, &(struct action){.kind = ACTION_RECEIVE,
                            .target = (uint8_t)to.space,
                            .peer = peer,
                            .first = to.first,
                            .count = to.count});
}

/* to = what is at from (+) what comes. */
static void make_reduce(struct maker *k, unsigned peer, struct span to, enum action_space source,
                        uint64_t from)
{
    add(k, &(struct action){.kind = ACTION_REDUCE,
                            .source = (uint8_t)source,
                            .target = (uint8_t)to.space,
                            .peer = peer,
                            .from = from,
                            .first = to.first,
                            .count = to.count});
}

static void make_copy(struct maker *k, struct span to, enum action_space source, uint64_t from)
{
    if (to.space != source || to.first != from)
        add(k, &(struct action){.kind = ACTION_COPY,
                                .source = (uint8_t)source,
                                .target = (uint8_t)to.space,
                                .from = from,
                                .first = to.first,
                                .count = to.count});
}

/* Where this member's input is: a piece of it, or, in place, of the vector that it is a part of. */
static enum action_space make_input(const struct maker *k)
{
    return k->in_place ? SPACE_RESULT : SPACE_INPUT;
}

/* Parts travel on, growing into the sum of all; then the whole sums do. */
static void make_ring_allreduce(struct maker *k)
{
    enum action_space input = make_input(k);

    k->s->longest = (k->count + k->n - 1) / k->n;
    if (k->n == 1)
        make_copy(k, span(SPACE_RESULT, 0, k->count), input, 0);
    for (unsigned i = 0; i + 1 < k->n; i++) {
        struct span to = part(k, SPACE_RESULT, behind(k, i + 1));
        make_send(k, next(k), part(k, i ? SPACE_RESULT : input, behind(k, i)));
        make_reduce(k, previous(k), to, input, to.first);
    }
    for (unsigned i = 0; i + 1 < k->n; i++) {
        make_send(k, next(k), part(k, SPACE_RESULT, behind(k, i + k->n - 1)));
        make_receive(k, previous(k), part(k, SPACE_RESULT, behind(k, i)));
    }
}

/* Where the sum that is made in step i is put: in place, where it belongs; else there is but one
 * block of result, for the last step; the others use two of scratch in turns, so that one fills
 * while the other is sent. */
static struct span scattered(const struct maker *k, unsigned i)
{
    if (k->in_place)
        return span(SPACE_RESULT, behind(k, i + 2) * k->block, k->block);
    if (i + 2 == k->n)
        return span(SPACE_RESULT, 0, k->block);
    return span(SPACE_SCRATCH, (i % 2) * k->block, k->block);
}

static void make_ring_reduce_scatter(struct maker *k)
{
    enum action_space input = make_input(k);

    k->s->longest = k->block;
    if (k->n == 1)
        make_copy(k, span(SPACE_RESULT, 0, k->count), input, 0);
    for (unsigned i = 0; i + 1 < k->n; i++) {
        struct span from = span(input, behind(k, 1) * k->block, k->block);
        make_send(k, next(k), i ? scattered(k, i - 1) : from);
        make_reduce(k, previous(k), scattered(k, i), input, behind(k, i + 2) * k->block);
    }
}

static void make_ring_all_gather(struct maker *k)
{
    uint64_t own = k->me * k->block;
    enum action_space input = make_input(k);

    k->s->longest = k->block;
    make_copy(k, span(SPACE_RESULT, own, k->block), input, k->in_place ? own : 0);
    for (unsigned i = 0; i + 1 < k->n; i++) {
        struct span from = span(input, k->in_place ? own : 0, k->block);
        if (i)
            from = span(SPACE_RESULT, behind(k, i) * k->block, k->block);
        make_send(k, next(k), from);
        make_receive(k, previous(k), span(SPACE_RESULT, behind(k, i + 1) * k->block, k->block));
    }
}

static void make_chain_broadcast(struct maker *k)
{
    struct span all = span(SPACE_RESULT, 0, k->count);

    k->s->longest = k->count;
    k->s->hops = k->n > 1 ? k->n - 1 : 1;
    if (k->me)
        make_receive(k, previous(k), all);
    if (k->me + 1 < k->n)
        make_send(k, next(k), k->me ? all : span(make_input(k), 0, k->count));
    if (!k->me)
        make_copy(k, all, make_input(k), 0);
}

static void make_all_to_all(struct maker *k)
{
    k->s->longest = k->block;
    for (unsigned i = 1; i < k->n; i++) {
        unsigned to = (k->me + i) % k->n, from = behind(k, i);
        make_send(k, to, span(SPACE_INPUT, to * k->block, k->block));
        make_receive(k, from, span(SPACE_RESULT, from * k->block, k->block));
    }
    make_copy(k, span(SPACE_RESULT, k->me * k->block, k->block), SPACE_INPUT, k->me * k->block);
}

/* To the root by a chain, which adds on the way. */
static void make_chain_reduce(struct maker *k)
{
    struct span all = span(SPACE_RESULT, 0, k->count);
    enum action_space input = make_input(k);
    bool last = k->me + 1 == k->n;

    k->s->longest = k->count;
    k->s->hops = k->n > 1 ? k->n - 1 : 1;
    if (!last)
        make_reduce(k, next(k), all, input, 0);
    if (k->me)
        make_send(k, previous(k), last ? span(input, 0, k->count) : all);
    if (k->n == 1)
        make_copy(k, all, input, 0);
}

/* Blocks to the root, or from it, each by itself. */
static void make_gather(struct maker *k)
{
    struct span own = block_of(k, SPACE_RESULT, k->me);
    struct span from = span(make_input(k), k->in_place ? own.first : 0, k->block);

    k->s->longest = k->block;
    if (k->me)
        make_send(k, 0, from);
    for (unsigned i = 1; i < k->n && !k->me; i++)
        make_receive(k, i, block_of(k, SPACE_RESULT, i));
    if (!k->me)
        make_copy(k, own, from.space, from.first);
}

static void make_scatter(struct maker *k)
{
    struct span own = block_of(k, make_input(k), k->me);
    struct span to = span(SPACE_RESULT, k->in_place ? own.first : 0, k->block);

    k->s->longest = k->block;
    if (k->me)
        make_receive(k, 0, to);
    for (unsigned i = 1; i < k->n && !k->me; i++)
        make_send(k, i, block_of(k, make_input(k), i));
    if (!k->me)
        make_copy(k, to, own.space, own.first);
}

static void make_send_receive(struct maker *k)
{
    struct span all = span(SPACE_RESULT, 0, k->count);

    k->s->longest = k->count;
    if (k->n == 1) {
        make_copy(k, all, SPACE_INPUT, 0);
        return;
    }
    make_send(k, next(k), span(SPACE_INPUT, 0, k->count));
    make_receive(k, previous(k), all);
}

/* Recursive halving and doubling. They want a power of two: the core. Of n members, `over` more
 * than that, the first 2 x over are pairs: the even one hands its vector to the odd one, which is
 * in the core, and gets the result from it. */

struct core {
    unsigned size, over;     /* members in the core, and beyond it */
    unsigned me;             /* this member's number in it */
    bool beyond;             /* this member is not in it: its partner is the next member */
    bool partner;            /* this member has one beyond, the one before it */
    enum action_space space; /* where the elements are that are combined next, */
    enum action_space work;  /* and where they go: the same positions in all */
};

static struct core core_of(const struct maker *k)
{
    struct core c = {.size = 1, .space = make_input(k), .work = SPACE_RESULT};

    while (c.size * 2 <= k->n)
        c.size *= 2;
    c.over = k->n - c.size;
    c.beyond = k->me < 2 * c.over && k->me % 2 == 0;
    c.partner = k->me < 2 * c.over && k->me % 2 == 1;
    c.me = k->me < 2 * c.over ? k->me / 2 : k->me - c.over;
    return c;
}

static unsigned member_of(const struct core *c, unsigned number)
{
    return number < c->over ? 2 * number + 1 : number + c->over;
}

/* Where the elements begin that number i of the core answers for: an equal share of the vector;
 * where there are blocks, those of its members. */
static uint64_t bound(const struct maker *k, const struct core *c, unsigned i)
{
    if (k->op == COLLECTIVE_ALLREDUCE)
        return k->count * i / c->size;
    return k->block * (i < c->over ? 2 * i : i + c->over);
}

static struct span share(const struct maker *k, const struct core *c, enum action_space space,
                         unsigned first, unsigned n)
{
    uint64_t at = bound(k, c, first);

    return span(space, at, bound(k, c, first + n) - at);
}

/* The vectors of those beyond the core are added to their partners'. */
static void fold(struct maker *k, struct core *c)
{
    if (c->beyond)
        make_send(k, k->me + 1, span(c->space, 0, k->count));
    if (c->partner) {
        make_reduce(k, k->me - 1, span(c->work, 0, k->count), c->space, 0);
        c->space = c->work;
    }
}

/* Each step sends half of what is left to the partner, and adds the partner's half to the other. */
static void halve(struct maker *k, struct core *c, unsigned down_to)
{
    for (unsigned d = c->size / 2; d >= down_to; d /= 2) {
        unsigned mine = c->me & ~(d - 1), its = mine ^ d;
        struct span keep = share(k, c, c->work, mine, d);
        make_send(k, member_of(c, c->me ^ d), share(k, c, c->space, its, d));
        make_reduce(k, member_of(c, c->me ^ d), keep, c->space, keep.first);
        c->space = c->work;
    }
}

static void gather(struct maker *k, const struct core *c, unsigned from)
{
    for (unsigned d = from; d < c->size; d *= 2) {
        unsigned mine = c->me & ~(d - 1), peer = member_of(c, c->me ^ d);
        make_send(k, peer, share(k, c, SPACE_RESULT, mine, d));
        make_receive(k, peer, share(k, c, SPACE_RESULT, mine ^ d, d));
    }
}

/* What those beyond the core get at the end. */
static void unfold(struct maker *k, const struct core *c)
{
    struct span all = span(SPACE_RESULT, 0, k->count);

    if (c->beyond)
        make_receive(k, k->me + 1, all);
    if (c->partner)
        make_send(k, k->me - 1, all);
}

static void make_halving_allreduce(struct maker *k)
{
    struct core c = core_of(k);

    k->s->longest = c.over ? k->count : (k->count + 1) / 2;
    if (k->n == 1)
        make_copy(k, span(SPACE_RESULT, 0, k->count), make_input(k), 0);
    fold(k, &c);
    if (!c.beyond) {
        halve(k, &c, 1);
        gather(k, &c, 1);
    }
    unfold(k, &c);
}

/* Out of place the result has room for one block: the rest is worked out in scratch. The last step
 * goes by blocks, so that this member's own goes to the result at once. */
static void make_halving_reduce_scatter(struct maker *k)
{
    struct core c = core_of(k);
    struct span own = span(SPACE_RESULT, k->in_place ? k->me * k->block : 0, k->block);

    k->s->longest = c.over ? k->count : k->n > 1 ? k->count / 2 : 0;
    c.work = k->in_place ? SPACE_RESULT : SPACE_SCRATCH;
    if (k->n == 1)
        make_copy(k, own, make_input(k), 0);
    fold(k, &c);
    if (c.beyond) {
        make_receive(k, k->me + 1, own);
        return;
    }
    halve(k, &c, 2);
    if (c.size > 1) {
        unsigned other = c.me ^ 1, peer = member_of(&c, other);
        for (unsigned b = peer - (other < c.over); b <= peer; b++)
            make_send(k, peer, span(c.space, b * k->block, k->block));
        /* for itself or for the one beyond */
        for (unsigned b = k->me - c.partner; b <= k->me; b++)
            make_reduce(k, peer,
                        b == k->me && !k->in_place ? span(SPACE_RESULT, 0, k->block)
                                                   : span(c.work, b * k->block, k->block),
                        c.space, b * k->block);
    }
    if (c.partner)
        make_send(k, k->me - 1, span(c.work, (k->me - 1) * k->block, k->block));
}

/* Whole vectors in each step. What is sent in one step must not be written before it has gone, so
 * that steps go from the result to scratch and back; the last one ends in the result. */
static void make_doubling_allreduce(struct maker *k)
{
    struct core c = core_of(k);
    unsigned steps = 0;

    for (unsigned d = 1; d < c.size; d *= 2)
        steps++;
    k->s->longest = k->count;
    if (k->n == 1)
        make_copy(k, span(SPACE_RESULT, 0, k->count), make_input(k), 0);
    c.work = steps % 2 ? SPACE_SCRATCH : SPACE_RESULT;
    fold(k, &c);
    for (unsigned d = 1; d < c.size && !c.beyond; d *= 2) {
        unsigned peer = member_of(&c, c.me ^ d);
        c.work = --steps % 2 ? SPACE_SCRATCH : SPACE_RESULT;
        make_send(k, peer, span(c.space, 0, k->count));
        make_reduce(k, peer, span(c.work, 0, k->count), c.space, 0);
        c.space = c.work;
    }
    unfold(k, &c);
}

/* The first exchange goes by blocks, so that this member's own is sent from the input and waits for
 * no copy. */
static void gather_first(struct maker *k, const struct core *c, struct span own)
{
    unsigned other = c->me ^ 1, peer = member_of(c, other);

    if (c->size == 1)
        return;
    if (c->partner)
        make_send(k, peer, span(SPACE_RESULT, (k->me - 1) * k->block, k->block));
    make_send(k, peer, own);
    for (unsigned b = peer - (other < c->over); b <= peer; b++)
        make_receive(k, peer, span(SPACE_RESULT, b * k->block, k->block));
}

static void make_doubling_all_gather(struct maker *k)
{
    struct core c = core_of(k);
    uint64_t at = k->me * k->block, after = at + k->block;
    struct span own = span(make_input(k), k->in_place ? at : 0, k->block);

    k->s->longest = k->count;
    make_copy(k, span(SPACE_RESULT, at, k->block), own.space, own.first);
    if (c.beyond) {
        make_send(k, k->me + 1, own);
        make_receive(k, k->me + 1, span(SPACE_RESULT, 0, at));
        make_receive(k, k->me + 1, span(SPACE_RESULT, after, k->count - after));
        return;
    }
    if (c.partner)
        make_receive(k, k->me - 1, span(SPACE_RESULT, at - k->block, k->block));
    gather_first(k, &c, own);
    gather(k, &c, 2);
    if (c.partner) {
        make_send(k, k->me - 1, span(SPACE_RESULT, 0, at - k->block));
        make_send(k, k->me - 1, span(SPACE_RESULT, at, k->count - at));
    }
}

/* A binomial tree: who has it passes it on at distances that double, so that the first to get it
 * have the most below them. */
static void make_tree_broadcast(struct maker *k)
{
    struct span all = span(SPACE_RESULT, 0, k->count);
    unsigned d = 1;

    k->s->longest = k->count;
    while (2 * d <= k->me)
        d *= 2;
    if (k->me) {
        make_receive(k, k->me - d, all);
        d *= 2;
    }
    for (; k->me + d < k->n; d *= 2)
        make_send(k, k->me + d, k->me ? all : span(make_input(k), 0, k->count));
    if (!k->me)
        make_copy(k, all, make_input(k), 0);
}

/* The tree of a broadcast, the other way: the farthest, which have the most below them, come last. */
static void make_tree_reduce(struct maker *k)
{
    struct span all = span(SPACE_RESULT, 0, k->count);
    enum action_space from = make_input(k);
    unsigned parent = 1, d = 1;

    k->s->longest = k->count;
    while (2 * parent <= k->me)
        parent *= 2;
    while (d <= k->me)
        d *= 2;
    for (; k->me + d < k->n; d *= 2) {
        make_reduce(k, k->me + d, all, from, 0);
        from = SPACE_RESULT;
    }
    if (k->me)
        make_send(k, k->me - parent, span(from, 0, k->count));
    if (k->n == 1)
        make_copy(k, all, from, 0);
}

static make_fn *const makers[][COLLECTIVE_OPS] = {
    [SCHEDULE_RING] = {[COLLECTIVE_ALLREDUCE] = make_ring_allreduce,
                       [COLLECTIVE_REDUCE_SCATTER] = make_ring_reduce_scatter,
                       [COLLECTIVE_ALL_GATHER] = make_ring_all_gather,
                       [COLLECTIVE_BROADCAST] = make_chain_broadcast,
                       [COLLECTIVE_ALL_TO_ALL] = make_all_to_all,
                       [COLLECTIVE_SEND_RECEIVE] = make_send_receive,
                       [COLLECTIVE_REDUCE] = make_chain_reduce,
                       [COLLECTIVE_GATHER] = make_gather,
                       [COLLECTIVE_SCATTER] = make_scatter},
    [SCHEDULE_HALVING] = {[COLLECTIVE_ALLREDUCE] = make_halving_allreduce,
                          [COLLECTIVE_REDUCE_SCATTER] = make_halving_reduce_scatter,
                          [COLLECTIVE_ALL_GATHER] = make_doubling_all_gather,
                          [COLLECTIVE_BROADCAST] = make_tree_broadcast,
                          [COLLECTIVE_ALL_TO_ALL] = make_all_to_all,
                          [COLLECTIVE_SEND_RECEIVE] = make_send_receive,
                          [COLLECTIVE_REDUCE] = make_tree_reduce,
                          [COLLECTIVE_GATHER] = make_gather,
                          [COLLECTIVE_SCATTER] = make_scatter},
    [SCHEDULE_DOUBLING] = {[COLLECTIVE_ALLREDUCE] = make_doubling_allreduce,
                           [COLLECTIVE_ALL_GATHER] = make_doubling_all_gather,
                           [COLLECTIVE_BROADCAST] = make_tree_broadcast,
                           [COLLECTIVE_ALL_TO_ALL] = make_all_to_all,
                           [COLLECTIVE_SEND_RECEIVE] = make_send_receive,
                           [COLLECTIVE_REDUCE] = make_tree_reduce,
                           [COLLECTIVE_GATHER] = make_gather,
                           [COLLECTIVE_SCATTER] = make_scatter},
};

int schedule_make(struct schedule *s, enum schedule_algorithm algorithm,
                  const struct collective_point *p, uint64_t count, unsigned members, unsigned me)
{
    enum collective_op op = (enum collective_op)p->op;
    unsigned root = collective_has_root(op) ? p->root % members : 0;
    struct maker k = {.s = s,
                      .op = op,
                      .count = count,
                      .block = count / members,
                      .n = members,
                      .me = (me + members - root) % members,
                      .root = root,
                      .in_place = p->in_place};
    make_fn *make = makers[algorithm][op];

    *s = (struct schedule){.members = members, .me = me, .hops = 1};
    if (!make || (p->in_place && (op == COLLECTIVE_ALL_TO_ALL || op == COLLECTIVE_SEND_RECEIVE)))
        return -EOPNOTSUPP;
    make(&k);
    return 0;
}

void schedule_barrier(struct schedule *s, unsigned members, unsigned me)
{
    struct maker k = {.s = s, .n = members, .me = me};

    *s = (struct schedule){.members = members, .me = me, .hops = 1};
    for (unsigned have = 1; have < members; have *= 2) {
        unsigned count = have < members - have ? have : members - have;
        make_send(&k, (me + members - have) % members, span(SPACE_RESULT, 0, count));
        make_receive(&k, (me + have) % members, span(SPACE_RESULT, have, count));
        s->longest = count > s->longest ? count : s->longest;
    }
}

void schedule_release(struct schedule *s)
{
    free(s->actions);
    *s = (struct schedule){0};
}
