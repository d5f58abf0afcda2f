/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's communicators, and its operations: each way of working in parallel writes its own. See
 * plan.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "benches/step/plan.h"
#include "core/alloc.h"

/* ---- Whom a rank does a step with: its communicators ---- */

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
    part->id = kind * WORLD_RANKS_MAX + lowest;
    w->plan->n_parts++;
    return part;
}

/* The one of this kind, and of those that pass on to another stage, in which this rank sends, or not;
 * NULL: it is in none. */
static struct step_part *find_part(const struct step_plan *p, enum step_part_kind kind, bool sends)
{
    for (unsigned i = 0; i < p->n_parts; i++) {
        struct step_part *part = &p->parts[i];
        bool passes = kind == PART_FORWARD || kind == PART_BACKWARD;
        if (part->kind == kind && (!passes || sends == !part->me))
            return part;
    }
    return NULL;
}

/* The number of its call of a vector of so many elements: a new one if none is so long, or in any case
 * where `anew`. -E2BIG: it has COLLECTIVE_CALLS_MAX. */
static int add_vector(struct step_part *part, uint64_t count, bool anew)
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

/* All parts that it is a member of, by id, without calls. 0, or as step_cut(). */
static int make_parts(struct step_plan *p, const struct step_spec *s,
                      const struct step_layer *layers, unsigned rank)
{
    unsigned cuts[WORLD_RANKS_MAX + 1];
    struct place w = {.plan = p,
                      .spec = s,
                      .layers = layers,
                      .rank = rank,
                      .tensor = rank % s->tp,
                      .stage = rank / s->tp % s->pp,
                      .data = rank / s->tp / s->pp};

    p->parts = xcalloc(STEP_PART_KINDS + 2, sizeof(*p->parts));
    int err = step_cut(layers, s->n_layers, s->pp, cuts);
    if (err)
        return err;
    w.first = cuts[w.stage];
    w.end = cuts[w.stage + 1];
    add_all(&w);
    return 0;
}

/* ---- Its operations ---- */

#define NO_OP     UINT32_MAX
#define WAITS_MAX 64

/* Gradients that are summed apart from each other. */
enum sums { OF_LAYERS, OF_EXPERTS, SUMS };

/* A rank's plan in the making. */
struct writer {
    struct step_plan *plan;
    const struct step_spec *spec;
    const struct step_layer *layers;
    unsigned rank, stage; /* its place */
    unsigned first, end;  /* layers of its stage */
    double samples;       /* of a micro-batch */
    struct step_op piece; /* compute that grows until somebody waits for it */
    bool grows;
    uint32_t waits[WAITS_MAX]; /* of the next piece of compute */
    unsigned n_waits;
    uint32_t last; /* piece of compute; NO_OP: none yet */
    struct {
        uint64_t elements; /* gradients of the bucket that is being filled */
        unsigned late;     /* buckets that wait for the end of the backward pass */
    } sums[SUMS];
    unsigned n_scattered; /* buckets of this pass: each pass has the same */
    /* zero 3: groups of layers, and where their gathers are in the list */
    unsigned *group_ends, n_groups;
    uint32_t *group_done, *group_gathers, n_done, n_gathered;
    int err;
};

static uint32_t add_op(struct writer *w, const struct step_op *op, const uint32_t *deps, unsigned n)
{
    struct step_plan *p = w->plan;
    struct step_op *new = ARRAY_ADD(p->ops, p->n_ops);

    for (unsigned i = 0; i < n; i++)
        if (deps[i] != NO_OP)
            *ARRAY_ADD(p->deps, p->n_deps) = deps[i];
    *new = *op;
    new->n_deps = (uint32_t)p->n_deps - op->first_dep;
    return (uint32_t)p->n_ops - 1;
}

/* What was computed so far is a piece of its own. Returns the last piece. */
static uint32_t settle(struct writer *w)
{
    if (!w->grows)
        return w->last;
    w->piece.first_dep = (uint32_t)w->plan->n_deps;
    w->last = add_op(w, &w->piece, w->waits, w->n_waits);
    w->grows = false;
    w->n_waits = 0;
    return w->last;
}

static void wait_for(struct writer *w, uint32_t op)
{
    settle(w);
    if (op != NO_OP && w->n_waits < WAITS_MAX)
        w->waits[w->n_waits++] = op;
}

static void compute(struct writer *w, enum step_kind kind, unsigned layer, unsigned micro)
{
    const struct step_layer *l = &w->layers[layer];
    double flop = kind == STEP_FORWARD ? l->forward_flop : l->backward_flop;

    if (l->split != MODEL_WHOLE)
        flop /= w->spec->tp;
    if (w->grows && (w->piece.kind != kind || w->piece.micro != micro))
        settle(w);
    if (!w->grows)
        w->piece = (struct step_op){
            .lane = LANE_COMPUTE, .kind = (uint8_t)kind, .micro = micro, .first_layer = layer};
    w->grows = true;
    w->piece.first_layer = layer < w->piece.first_layer ? layer : w->piece.first_layer;
    w->piece.n_layers++;
    w->piece.flop += flop * w->samples;
}

static uint32_t call_after(struct writer *w, const struct step_part *part, unsigned number,
                           const uint32_t *deps, unsigned n)
{
    struct step_op op = {.lane = (uint8_t)part->lane,
                         .kind = STEP_CALL,
                         .first_dep = (uint32_t)w->plan->n_deps,
                         .part = (uint32_t)(part - w->plan->parts),
                         .call = number};

    return add_op(w, &op, deps, n);
}

static uint32_t call(struct writer *w, const struct step_part *part, unsigned number,
                     uint32_t after)
{
    return call_after(w, part, number, &after, 1);
}

/* Of activations as they are by now: computed, and also summed or come in, if nothing was computed
 * of that since. */
static uint32_t call_next(struct writer *w, const struct step_part *part, unsigned number)
{
    uint32_t deps[WAITS_MAX + 1] = {settle(w)};

    memcpy(deps + 1, w->waits, w->n_waits * sizeof(*w->waits));
    return call_after(w, part, number, deps, w->n_waits + 1);
}

/* ---- Gradients and parameters, over data-parallel ranks ---- */

static uint64_t bytes_of(const struct writer *w, uint64_t elements)
{
    return elements * collective_type_bytes((enum collective_type)w->spec->type);
}

/* add_vector(), whose error is the writer's. */
static unsigned vector_of(struct writer *w, struct step_part *part, uint64_t count, bool anew)
{
    int number = w->err ? 0 : add_vector(part, count, anew);

    w->err = number < 0 ? number : w->err;
    return number < 0 ? 0 : (unsigned)number;
}

/* Of so many parameters, behind these. */
static uint32_t add_update(struct writer *w, double parameters, const uint32_t *deps, unsigned n)
{
    const struct step_op op = {
        .lane = LANE_COMPUTE,
        .kind = STEP_UPDATE,
        .first_dep = (uint32_t)w->plan->n_deps,
        .bytes = parameters *
                 model_update_bytes((enum model_update)w->spec->update, (double)bytes_of(w, 1))};

    return add_op(w, &op, deps, n);
}

static enum step_part_kind kind_of(const struct writer *w, enum sums of)
{
    return of == OF_EXPERTS ? PART_EXPERT_SUM : w->spec->zero ? PART_SCATTER : PART_SUM;
}

/* The bucket is whole: it goes on its way now, or when the backward pass is over. */
static void close_bucket(struct writer *w, enum sums of)
{
    enum step_part_kind kind = kind_of(w, of);
    struct step_part *part = find_part(w->plan, kind, false);
    uint64_t elements = w->sums[of].elements;

    w->sums[of].elements = 0;
    if (part && elements) {
        bool again = kind == PART_SCATTER && w->n_scattered < part->n_calls;
        unsigned number = again ? w->n_scattered : vector_of(w, part, elements, true);
        w->n_scattered += kind == PART_SCATTER;
        if (w->spec->overlap)
            call(w, part, number, settle(w));
        else
            w->sums[of].late++;
    }
}

static void add_gradient(struct writer *w, unsigned layer)
{
    bool apart = w->layers[layer].kind == MODEL_EXPERT && w->spec->ep > 1;
    enum sums of = apart ? OF_EXPERTS : OF_LAYERS;

    w->sums[of].elements += step_parameters(w->spec, &w->layers[layer]);
    if (bytes_of(w, w->sums[of].elements) >= w->spec->bucket_bytes)
        close_bucket(w, of);
}

/* ZeRO 2 and 3 keep no whole gradients: each micro-batch's are scattered. The others add them up. */
static bool scatters_each(const struct writer *w)
{
    return w->spec->zero >= 2 && find_part(w->plan, PART_SCATTER, false);
}

/* Without overlap the next pass waits. */
static void end_pass(struct writer *w)
{
    struct step_part *part = find_part(w->plan, PART_SCATTER, false);
    uint32_t op = NO_OP;

    if (!scatters_each(w))
        return;
    close_bucket(w, OF_LAYERS);
    for (unsigned i = 0; i < w->sums[OF_LAYERS].late; i++)
        op = call(w, part, i, settle(w));
    wait_for(w, op);
    w->sums[OF_LAYERS].late = w->n_scattered = 0;
}

/* Of its layers' parameters, or of its part of them, when their gradients have come. */
static void update(struct writer *w)
{
    double parameters = 0, share = w->spec->zero ? step_dp(w->spec) : 1;
    static const enum step_part_kind sums[] = {PART_SUM, PART_SCATTER, PART_EXPERT_SUM};

    for (unsigned i = w->first; i < w->end; i++)
        parameters += (double)step_parameters(w->spec, &w->layers[i]);
    if (!w->spec->update || !(parameters > 0))
        return;
    for (size_t k = 0; k < sizeof(sums) / sizeof(*sums); k++) {
        const struct step_part *part = find_part(w->plan, sums[k], false);
        size_t i = w->plan->n_ops;
        while (part && i-- > 0)
            if (w->plan->ops[i].kind == STEP_CALL &&
                &w->plan->parts[w->plan->ops[i].part] == part) {
                wait_for(w, (uint32_t)i);
                break;
            }
    }
    settle(w);
    w->last = add_update(w, parameters / share, w->waits, w->n_waits);
    w->n_waits = 0;
}

/* What the end of the backward passes leaves to do. */
static void end_gradients(struct writer *w)
{
    for (enum sums of = 0; of < SUMS; of++)
        close_bucket(w, of);
    for (enum sums of = 0; of < SUMS; of++)
        for (unsigned i = 0; i < w->sums[of].late; i++)
            call(w, find_part(w->plan, kind_of(w, of), false), i, settle(w));
    update(w);
    struct step_part *gather = find_part(w->plan, PART_GATHER, false);
    const struct step_part *scatter = find_part(w->plan, PART_SCATTER, false);
    for (unsigned i = 0; gather && scatter && w->spec->zero < 3 && i < scatter->n_calls; i++)
        call(w, gather, vector_of(w, gather, scatter->calls[i].count, true), settle(w));
}

/* ---- ZeRO 3: groups of layers are gathered ahead ---- */

static void make_groups(struct writer *w)
{
    struct step_part *gather = find_part(w->plan, PART_GATHER, false);
    uint64_t elements = 0;

    if (w->spec->zero != 3 || !gather)
        return;
    w->group_ends = xcalloc(w->spec->n_layers + 1u, sizeof(*w->group_ends));
    w->group_done = xcalloc(2 * w->spec->micro * (w->spec->n_layers + 1u), sizeof(*w->group_done));
    w->group_gathers =
        xcalloc(2 * w->spec->micro * (w->spec->n_layers + 1u), sizeof(*w->group_gathers));
    for (unsigned i = w->first; i < w->end; i++) {
        elements += step_parameters(w->spec, &w->layers[i]);
        if (!elements || (bytes_of(w, elements) < w->spec->bucket_bytes && i + 1 < w->end))
            continue;
        vector_of(w, gather, elements, true);
        w->group_ends[w->n_groups++] = i + 1;
        elements = 0;
    }
    if (w->n_groups)
        w->group_ends[w->n_groups - 1] = w->end;
}

/* Which group is the turn number `turn`: forward passes have them in order, backward passes the other
 * way round. There is one stage. */
static unsigned group_at(const struct writer *w, unsigned turn)
{
    unsigned pass = turn / w->n_groups, number = turn % w->n_groups;
    bool forwards = w->spec->order == STEP_1F1B ? pass % 2 == 0 : pass < w->spec->micro;

    return forwards ? number : w->n_groups - 1 - number;
}

/* The next group is about to be computed. The gather of the group `prefetch` later is asked for when
 * the one before this is done; before this pass' gradients in the list, and so on its lane. */
static void enter_group(struct writer *w)
{
    unsigned ahead = w->spec->overlap ? w->spec->prefetch : 0, turns = 2 * w->spec->micro;
    struct step_part *gather = find_part(w->plan, PART_GATHER, false);

    settle(w);
    turns *= w->n_groups;
    for (; w->n_gathered < turns && w->n_gathered <= w->n_done + ahead; w->n_gathered++)
        w->group_gathers[w->n_gathered] = call(w, gather, group_at(w, w->n_gathered),
                                               w->n_done ? w->group_done[w->n_done - 1] : NO_OP);
    wait_for(w, w->group_gathers[w->n_done]);
}

static void leave_group(struct writer *w)
{
    w->group_done[w->n_done++] = settle(w);
}

/* ---- The passes of a stage over a micro-batch ---- */

static void sum_activations(struct writer *w, unsigned layer, enum model_split of)
{
    const struct step_layer *l = &w->layers[layer];
    struct step_part *part = find_part(w->plan, PART_TENSOR, false);

    if (!part || l->split != of || !(l->sum > 0))
        return;
    unsigned number = vector_of(w, part, (uint64_t)llround(l->sum * w->samples), false);
    wait_for(w, call_next(w, part, number));
}

static void exchange(struct writer *w, enum step_part_kind kind, unsigned layer)
{
    struct step_part *part = find_part(w->plan, kind, false);
    double elements = w->layers[layer].sent * w->samples;

    if (!part || !(elements > 0))
        return;
    unsigned number = vector_of(w, part, (uint64_t)llround(elements), false);
    wait_for(w, call_next(w, part, number));
}

/* Is it the first, or the last of a block's experts? */
static bool is_edge(const struct writer *w, unsigned layer, int beside)
{
    const struct step_layer *l = &w->layers[layer];
    bool inside = beside < 0 ? layer > w->first : layer + 1 < w->end;

    return l->kind == MODEL_EXPERT &&
           (!inside || l[beside].kind != MODEL_EXPERT || l[beside].block != l->block);
}

static void forward_layer(struct writer *w, unsigned layer, unsigned micro)
{
    if (is_edge(w, layer, -1))
        exchange(w, PART_EXCHANGE, layer);
    compute(w, STEP_FORWARD, layer, micro);
    sum_activations(w, layer, MODEL_ROW);
    if (w->layers[layer].kind == MODEL_TABLE)
        exchange(w, PART_ROWS, layer);
    if (is_edge(w, layer, 1))
        exchange(w, PART_EXCHANGE, layer);
}

static void backward_layer(struct writer *w, unsigned layer, unsigned micro, bool last)
{
    if (is_edge(w, layer, 1))
        exchange(w, PART_EXCHANGE, layer);
    if (w->layers[layer].kind == MODEL_TABLE)
        exchange(w, PART_ROWS, layer);
    compute(w, STEP_BACKWARD, layer, micro);
    sum_activations(w, layer, MODEL_COLUMN);
    if (is_edge(w, layer, -1))
        exchange(w, PART_EXCHANGE, layer);
    if (last || scatters_each(w))
        add_gradient(w, layer);
}

/* What goes over the border between a stage and the next, of a micro-batch. */
static uint64_t border(const struct writer *w, unsigned end)
{
    for (unsigned i = end; i-- > 0;)
        if (w->layers[i].output > 0)
            return (uint64_t)llround(w->layers[i].output * w->samples);
    return 1;
}

static void take_in(struct writer *w, enum step_part_kind kind, unsigned end)
{
    struct step_part *part = find_part(w->plan, kind, false);

    if (part)
        wait_for(w, call(w, part, vector_of(w, part, border(w, end), false), NO_OP));
}

static void pass_on(struct writer *w, enum step_part_kind kind, unsigned end)
{
    struct step_part *part = find_part(w->plan, kind, true);

    if (part)
        call_next(w, part, vector_of(w, part, border(w, end), false));
}

static void forward(struct writer *w, unsigned micro)
{
    unsigned group = 0;

    take_in(w, PART_FORWARD, w->first);
    for (unsigned i = w->first; i < w->end; i++) {
        if (group < w->n_groups && i == (group ? w->group_ends[group - 1] : w->first))
            enter_group(w);
        forward_layer(w, i, micro);
        if (group < w->n_groups && i + 1 == w->group_ends[group]) {
            leave_group(w);
            group++;
        }
    }
    settle(w);
    pass_on(w, PART_FORWARD, w->end);
}

static void backward(struct writer *w, unsigned micro, bool last)
{
    unsigned group = w->n_groups;

    take_in(w, PART_BACKWARD, w->end);
    for (unsigned i = w->end; i-- > w->first;) {
        if (group && i + 1 == w->group_ends[group - 1])
            enter_group(w);
        backward_layer(w, i, micro, last);
        if (group && i == (group > 1 ? w->group_ends[group - 2] : w->first)) {
            leave_group(w);
            group--;
        }
    }
    settle(w);
    pass_on(w, PART_BACKWARD, w->first);
    end_pass(w);
}

/* All forward passes, then all backward passes; or each backward pass as early as it can be. */
static void passes(struct writer *w)
{
    unsigned m = w->spec->micro, ahead = m;

    if (w->spec->order == STEP_1F1B && w->spec->pp - w->stage < m)
        ahead = w->spec->pp - w->stage;
    for (unsigned i = 0; i < ahead; i++)
        forward(w, i);
    for (unsigned i = 0; i < m; i++) {
        backward(w, i, i + 1 == m);
        if (ahead + i < m)
            forward(w, ahead + i);
    }
    settle(w);
}

int step_plan_make(struct step_plan *p, const struct step_spec *s, const struct step_layer *layers,
                   unsigned rank)
{
    unsigned cuts[WORLD_RANKS_MAX + 1];
    struct writer w = {.plan = p,
                       .spec = s,
                       .layers = layers,
                       .rank = rank,
                       .stage = rank / s->tp % s->pp,
                       .samples = (double)s->batch / s->micro,
                       .last = NO_OP};

    *p = (struct step_plan){.parts = NULL};
    int err = step_cut(layers, s->n_layers, s->pp, cuts);
    if (!err)
        err = make_parts(p, s, layers, rank);
    if (err)
        return err;
    w.first = cuts[w.stage];
    w.end = cuts[w.stage + 1];
    struct step_part *all = find_part(p, PART_ALL, false);
    if (all)
        vector_of(&w, all, all->n, true);
    make_groups(&w);
    if (!w.err)
        passes(&w);
    end_gradients(&w);
    free(w.group_ends);
    free(w.group_done);
    free(w.group_gathers);
    return w.err;
}
