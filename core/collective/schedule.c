/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: the table of who makes what, and the list itself. */
#include "core/collective/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/collective/schedule_parts.h"

static void add(struct maker *k, const struct action *a)
{
    struct schedule *s = k->s;

    if (k->err || !a->count)
        return;
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        struct action *more = realloc(s->actions, room * sizeof(*more));
        if (!more) {
            k->err = -ENOMEM;
            return;
        }
        s->actions = more;
        s->room = room;
    }
    if (a->kind != ACTION_SEND && a->target == SPACE_SCRATCH && a->first + a->count > s->scratch)
        s->scratch = a->first + a->count;
    s->actions[s->n++] = *a;
}

void make_send(struct maker *k, unsigned peer, struct span from)
{
    add(k, &(struct action){.kind = ACTION_SEND,
                            .source = (uint8_t)from.space,
                            .peer = peer,
                            .from = from.first,
                            .count = from.count});
}

void make_receive(struct maker *k, unsigned peer, struct span to)
{
    add(k, &(struct action){.kind = ACTION_RECEIVE,
                            .target = (uint8_t)to.space,
                            .peer = peer,
                            .first = to.first,
                            .count = to.count});
}

void make_reduce(struct maker *k, unsigned peer, struct span to, enum action_space source,
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

void make_copy(struct maker *k, struct span to, enum action_space source, uint64_t from)
{
    if (to.space != source || to.first != from)
        add(k, &(struct action){.kind = ACTION_COPY,
                                .source = (uint8_t)source,
                                .target = (uint8_t)to.space,
                                .from = from,
                                .first = to.first,
                                .count = to.count});
}

enum action_space make_input(const struct maker *k)
{
    return k->in_place ? SPACE_RESULT : SPACE_INPUT;
}

static make_fn *const makers[][COLLECTIVE_OPS] = {
    [SCHEDULE_RING] = {[COLLECTIVE_ALLREDUCE] = make_ring_allreduce,
                       [COLLECTIVE_REDUCE_SCATTER] = make_ring_reduce_scatter,
                       [COLLECTIVE_ALL_GATHER] = make_ring_all_gather,
                       [COLLECTIVE_BROADCAST] = make_chain_broadcast,
                       [COLLECTIVE_ALL_TO_ALL] = make_all_to_all,
                       [COLLECTIVE_SEND_RECEIVE] = make_send_receive},
    [SCHEDULE_HALVING] = {[COLLECTIVE_ALLREDUCE] = make_halving_allreduce,
                          [COLLECTIVE_REDUCE_SCATTER] = make_halving_reduce_scatter,
                          [COLLECTIVE_ALL_GATHER] = make_doubling_all_gather,
                          [COLLECTIVE_BROADCAST] = make_tree_broadcast,
                          [COLLECTIVE_ALL_TO_ALL] = make_all_to_all,
                          [COLLECTIVE_SEND_RECEIVE] = make_send_receive},
    [SCHEDULE_DOUBLING] = {[COLLECTIVE_ALLREDUCE] = make_doubling_allreduce,
                           [COLLECTIVE_ALL_GATHER] = make_doubling_all_gather,
                           [COLLECTIVE_BROADCAST] = make_tree_broadcast,
                           [COLLECTIVE_ALL_TO_ALL] = make_all_to_all,
                           [COLLECTIVE_SEND_RECEIVE] = make_send_receive},
};

int schedule_make(struct schedule *s, enum schedule_algorithm algorithm, enum collective_op op,
                  uint64_t count, unsigned members, unsigned me, bool in_place)
{
    struct maker k = {.s = s,
                      .op = op,
                      .count = count,
                      .block = count / members,
                      .n = members,
                      .me = me,
                      .in_place = in_place};
    make_fn *make = makers[algorithm][op];

    *s = (struct schedule){.members = members, .me = me, .hops = 1};
    if (!make || (in_place && (op == COLLECTIVE_ALL_TO_ALL || op == COLLECTIVE_SEND_RECEIVE)))
        return -EOPNOTSUPP;
    make(&k);
    return k.err;
}

int schedule_barrier(struct schedule *s, unsigned members, unsigned me)
{
    struct maker k = {.s = s, .n = members, .me = me};

    *s = (struct schedule){.members = members, .me = me, .hops = 1};
    for (unsigned have = 1; have < members; have *= 2) {
        unsigned count = have < members - have ? have : members - have;
        make_send(&k, (me + members - have) % members, span(SPACE_RESULT, 0, count));
        make_receive(&k, (me + have) % members, span(SPACE_RESULT, have, count));
        s->longest = count > s->longest ? count : s->longest;
    }
    return k.err;
}

void schedule_release(struct schedule *s)
{
    free(s->actions);
    *s = (struct schedule){0};
}

uint64_t schedule_sent(const struct schedule *s, unsigned peer)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->actions[i].kind == ACTION_SEND && s->actions[i].peer == peer)
            sum += s->actions[i].count;
    return sum;
}

uint64_t schedule_received(const struct schedule *s, unsigned peer)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s->n; i++)
        if ((s->actions[i].kind == ACTION_RECEIVE || s->actions[i].kind == ACTION_REDUCE) &&
            s->actions[i].peer == peer)
            sum += s->actions[i].count;
    return sum;
}
