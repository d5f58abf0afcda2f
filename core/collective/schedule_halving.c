/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recursive halving and doubling. They want a power of two: the core. Of n members, `over` more than that, the first 2 x over are pairs: the even one
 * hands its vector to the odd one, which is in the core, and gets the result from it.
 */
#include "core/collective/schedule_parts.h"

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

/* Where the elements begin that number i of the core answers for: an equal share of the vector; where there are blocks, those of its members. */
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

void make_halving_allreduce(struct maker *k)
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

/* The sum of block b, made by this member for itself or for the one beyond: the last step of halving. */
static void reduce_block(struct maker *k, const struct core *c, unsigned peer, unsigned b)
{
    struct span to = span(c->work, b * k->block, k->block);

    if (b == k->me && !k->in_place)
        to = span(SPACE_RESULT, 0, k->block);
    make_reduce(k, peer, to, c->space, b * k->block);
}

/* Out of place the result has room for one block: the rest is worked out in scratch. The last step goes by blocks, so that this member's own
 * goes to the result at once. */
void make_halving_reduce_scatter(struct maker *k)
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
        for (unsigned b = k->me - c.partner; b <= k->me; b++)
            reduce_block(k, &c, peer, b);
    }
    if (c.partner)
        make_send(k, k->me - 1, span(c.work, (k->me - 1) * k->block, k->block));
}

/* Whole vectors in each step. What is sent in one step must not be written before it has gone, so that steps go from the result to scratch and
 * back; the last one ends in the result. */
void make_doubling_allreduce(struct maker *k)
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

/* The first exchange goes by blocks, so that this member's own is sent from the input and waits for no copy. */
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

void make_doubling_all_gather(struct maker *k)
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

/* A binomial tree: who has it passes it on at distances that double, so that the first to get it have the most below them. */
void make_tree_broadcast(struct maker *k)
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
