/* SPDX-License-Identifier: Apache-2.0 */
/* Around the ring, and what needs no more than the neighbours or everybody at once. */
#include "core/collective/schedule_parts.h"

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

/* n parts as equal as can be: where count does not divide, some have an element more; of fewer elements than members, some have none. */
static struct span part(const struct maker *k, enum action_space space, unsigned i)
{
    uint64_t first = k->count * i / k->n;

    return span(space, first, k->count * (i + 1) / k->n - first);
}

/* Parts travel on, growing into the sum of all; then the whole sums do. */
void make_ring_allreduce(struct maker *k)
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

/* Where the sum that is made in step i is put: in place, where it belongs; else there is but one block of result, for the last step; the others
 * use two of scratch in turns, so that one fills while the other is sent. */
static struct span scattered(const struct maker *k, unsigned i)
{
    if (k->in_place)
        return span(SPACE_RESULT, behind(k, i + 2) * k->block, k->block);
    if (i + 2 == k->n)
        return span(SPACE_RESULT, 0, k->block);
    return span(SPACE_SCRATCH, (i % 2) * k->block, k->block);
}

void make_ring_reduce_scatter(struct maker *k)
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

void make_ring_all_gather(struct maker *k)
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

void make_chain_broadcast(struct maker *k)
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

void make_all_to_all(struct maker *k)
{
    k->s->longest = k->block;
    for (unsigned i = 1; i < k->n; i++) {
        unsigned to = (k->me + i) % k->n, from = behind(k, i);
        make_send(k, to, span(SPACE_INPUT, to * k->block, k->block));
        make_receive(k, from, span(SPACE_RESULT, from * k->block, k->block));
    }
    make_copy(k, span(SPACE_RESULT, k->me * k->block, k->block), SPACE_INPUT, k->me * k->block);
}

void make_send_receive(struct maker *k)
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
