/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a rank does a step with: its communicators. See plan.h. */
#include <errno.h>
#include <stdlib.h>

#include "benches/step/plan.h"
#include "core/alloc.h"

/* A rank's place, whose parts are made. */
struct place {
    struct step_plan *plan;
    const struct step_spec *spec;
    const struct step_layer *layers;
    unsigned rank, data, stage, tensor;
    unsigned first, end; /* layers of its stage */
};

static unsigned rank_at(const struct place *w, unsigned data, unsigned stage, unsigned tensor)
{
    return (data * w->spec->pp + stage) * w->spec->tp + tensor;
}

static const struct {
    enum collective_op op;
    enum step_lane lane;
    bool in_place;
} kinds[STEP_PART_KINDS] = {
    [PART_ALL] = {COLLECTIVE_ALLREDUCE, LANE_DATA, false},
    [PART_SUM] = {COLLECTIVE_ALLREDUCE, LANE_DATA, true},
    [PART_SCATTER] = {COLLECTIVE_REDUCE_SCATTER, LANE_DATA, false},
    [PART_GATHER] = {COLLECTIVE_ALL_GATHER, LANE_DATA, true},
    [PART_EXPERT_SUM] = {COLLECTIVE_ALLREDUCE, LANE_DATA, true},
    [PART_TENSOR] = {COLLECTIVE_ALLREDUCE, LANE_TENSOR, false},
    [PART_EXCHANGE] = {COLLECTIVE_ALL_TO_ALL, LANE_EXCHANGE, false},
    [PART_ROWS] = {COLLECTIVE_ALL_TO_ALL, LANE_EXCHANGE, false},
    [PART_FORWARD] = {COLLECTIVE_BROADCAST, LANE_TO_NEXT, false},
    [PART_BACKWARD] = {COLLECTIVE_BROADCAST, LANE_TO_PREVIOUS, false},
    [PART_PUSH] = {COLLECTIVE_BROADCAST, LANE_PUSH, false},
    [PART_PULL] = {COLLECTIVE_BROADCAST, LANE_PULL, false},
    [PART_ASK] = {COLLECTIVE_BROADCAST, LANE_WORD, false},
    [PART_ANSWER] = {COLLECTIVE_BROADCAST, LANE_WORD, false},
};

/* NULL: one member alone. */
static struct step_part *add_part(struct place *w, enum step_part_kind kind,
                                  const unsigned *members, unsigned n)
{
    struct step_part *part = &w->plan->parts[w->plan->n_parts];

    if (n < 2)
        return NULL;
    unsigned lowest = members[0];
    *part = (struct step_part){.kind = kind,
                               .op = kinds[kind].op,
                               .lane = kinds[kind].lane,
                               .in_place = kinds[kind].in_place,
                               .n = n};
    part->members = xmemdup(members, n * sizeof(*members));
    for (unsigned i = 0; i < n; i++) {
        part->me = members[i] == w->rank ? i : part->me;
        lowest = members[i] < lowest ? members[i] : lowest;
    }
    bool pair = kind >= PART_PUSH && kind <= PART_ANSWER;
    part->id = (kind * WORLD_RANKS_MAX + lowest) * WORLD_RANKS_MAX +
               (pair ? members[0] + members[1] - lowest : 0);
    w->plan->n_parts++;
    return part;
}

struct step_part *parts_find(const struct step_plan *p, enum step_part_kind kind, bool sends)
{
    for (unsigned i = 0; i < p->n_parts; i++) {
        struct step_part *part = &p->parts[i];
        bool passes = kind == PART_FORWARD || kind == PART_BACKWARD;
        if (part->kind == kind && (!passes || sends == !part->me))
            return part;
    }
    return NULL;
}

struct step_part *parts_pair(const struct step_plan *p, enum step_part_kind kind, unsigned other)
{
    for (unsigned i = 0; i < p->n_parts; i++) {
        struct step_part *part = &p->parts[i];
        if (part->kind == kind && part->members[!part->me] == other)
            return part;
    }
    return NULL;
}

int parts_vector(struct step_part *part, uint64_t count, bool anew)
{
    if (part->op != COLLECTIVE_ALLREDUCE && part->op != COLLECTIVE_BROADCAST)
        count = (count + part->n - 1) / part->n * part->n; /* as many blocks as members */
    for (unsigned i = 0; i < part->n_calls && !anew; i++)
        if (part->calls[i].count == count)
            return (int)i;
    if (part->n_calls == COLLECTIVE_CALLS_MAX)
        return -E2BIG;
    *ARRAY_ADD(part->calls, part->n_calls) = (struct collective_call){part->count, count};
    part->count += count;
    return (int)part->n_calls - 1;
}

static void add_pass(struct place *w, unsigned stage)
{
    unsigned down[2] = {rank_at(w, w->data, stage, w->tensor),
                        rank_at(w, w->data, stage + 1, w->tensor)};
    unsigned up[2] = {down[1], down[0]};
    struct step_part *part = add_part(w, PART_FORWARD, down, 2);

    if (part && part->me)
        part->lane = LANE_FROM_PREVIOUS;
    part = add_part(w, PART_BACKWARD, up, 2);
    if (part && part->me)
        part->lane = LANE_FROM_NEXT;
}

static int by_id(const void *a, const void *b)
{
    const struct step_part *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

/* A push and a pull of each worker and server, of which this rank is one. */
static void add_pairs(struct place *w)
{
    unsigned workers = step_dp(w->spec), n = w->spec->ranks;
    bool serves = step_is_server(w->spec, w->rank);

    for (unsigned i = serves ? 0 : workers; i < (serves ? workers : n); i++) {
        unsigned push[2] = {serves ? i : w->rank, serves ? w->rank : i};
        unsigned pull[2] = {push[1], push[0]};
        add_part(w, PART_PUSH, push, 2);
        add_part(w, PART_PULL, pull, 2);
        if (w->spec->asynchronous) { /* a word each */
            parts_vector(add_part(w, PART_ASK, push, 2), 1, true);
            parts_vector(add_part(w, PART_ANSWER, pull, 2), 1, true);
        }
    }
}

static bool has_tables(const struct place *w)
{
    for (unsigned i = w->first; i < w->end; i++)
        if (w->layers[i].kind == MODEL_TABLE)
            return true;
    return false;
}

/* Those that share a layer's experts, and those that have the same ones. */
static void add_experts(struct place *w, unsigned dp)
{
    unsigned ep = w->spec->ep, members[WORLD_RANKS_MAX];

    if (ep < 2)
        return;
    for (unsigned i = 0; i < ep; i++)
        members[i] = rank_at(w, w->data / ep * ep + i, w->stage, w->tensor);
    add_part(w, PART_EXCHANGE, members, ep);
    for (unsigned i = 0; i < dp / ep; i++)
        members[i] = rank_at(w, i * ep + w->data % ep, w->stage, w->tensor);
    add_part(w, PART_EXPERT_SUM, members, dp / ep);
}

/* All that this rank is a member of, in the order in which all ranks have them. */
static void add_all(struct place *w)
{
    const struct step_spec *s = w->spec;
    unsigned dp = step_dp(s), members[WORLD_RANKS_MAX];

    for (unsigned i = 0; i < s->ranks; i++)
        members[i] = i;
    add_part(w, PART_ALL, members, s->ranks);
    if (s->servers) {
        add_pairs(w);
        qsort(w->plan->parts, w->plan->n_parts, sizeof(*w->plan->parts), by_id);
        return;
    }
    for (unsigned i = 0; i < dp; i++)
        members[i] = rank_at(w, i, w->stage, w->tensor);
    if (!s->zero)
        add_part(w, PART_SUM, members, dp);
    else
        add_part(w, PART_SCATTER, members, dp);
    if (has_tables(w))
        add_part(w, PART_ROWS, members, dp);
    if (s->zero)
        add_part(w, PART_GATHER, members, dp);
    add_experts(w, dp);
    for (unsigned i = 0; i < s->tp; i++)
        members[i] = rank_at(w, w->data, w->stage, i);
    add_part(w, PART_TENSOR, members, s->tp);
    if (w->stage)
        add_pass(w, w->stage - 1);
    if (w->stage + 1 < s->pp)
        add_pass(w, w->stage);
    qsort(w->plan->parts, w->plan->n_parts, sizeof(*w->plan->parts), by_id);
}

int parts_make(struct step_plan *p, const struct step_spec *s, const struct step_layer *layers,
               unsigned rank)
{
    unsigned cuts[WORLD_RANKS_MAX + 1];
    struct place w = {.plan = p,
                      .spec = s,
                      .layers = layers,
                      .rank = rank,
                      .tensor = rank % s->tp,
                      .stage = rank / s->tp % s->pp,
                      .data = rank / s->tp / s->pp};

    p->parts = xcalloc(STEP_PART_KINDS + 4 * s->ranks, sizeof(*p->parts));
    int err = step_cut(layers, s->n_layers, s->pp, cuts);
    if (err)
        return err;
    w.first = cuts[w.stage];
    w.end = cuts[w.stage + 1];
    add_all(&w);
    return 0;
}
