/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up clusters, stepped through event by event: see fabric.h. */
#include "tests/selftest/fabric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 1e-9

enum phase { PHASE_AHEAD, PHASE_WAITS, PHASE_FLIES, PHASE_FLOWS, PHASE_WORKS, PHASE_DONE };

struct op {
    enum fabric_lane lane;
    size_t after[FABRIC_AFTER];
    double us;    /* of compute */
    size_t call;  /* or FABRIC_NONE */
    size_t me;    /* which of its members this is */
    size_t below; /* the next of its lane */
    /* of this run */
    enum phase phase;
    size_t round, to;  /* the message that it sends, and the rank that gets it */
    uint64_t got[2];   /* rounds whose message has come */
    double at_us;      /* when the first byte of its message arrives */
    double left, rate; /* bytes of it, or us of compute */
    double wire, sent,
        got_rate; /* its rate by the wires alone, and what that is of either end's memory */
    uint64_t of;  /* which change of flows these are of */
};

struct call {
    struct fabric_group group;
    enum fabric_what what;
    double bytes;
    size_t below; /* the next of its group */
    size_t ops[FABRIC_RANKS];
    /* of this run */
    enum fabric_way way;
    size_t rounds;
};

struct list {
    struct op *ops;
    size_t n, room;
    size_t first[LANES], last[LANES];
    size_t waits[FABRIC_AFTER], n_waits;
    size_t calls[FABRIC_TAGS]; /* its last one */
};

struct fabric_plan {
    size_t ranks;
    double appetite;
    struct list lists[FABRIC_RANKS];
    struct call **calls;
    size_t n_calls, room;
    size_t heads[FABRIC_TAGS][FABRIC_RANKS];
    bool full; /* no memory */
};

/* ---- the list of what ranks do ---- */

struct fabric_plan *fabric_plan_new(size_t ranks, double appetite)
{
    struct fabric_plan *plan = calloc(1, sizeof(*plan));

    if (!plan)
        return NULL;
    plan->ranks = ranks;
    plan->appetite = appetite;
    memset(plan->heads, 0xff, sizeof(plan->heads));
    for (size_t i = 0; i < ranks; i++) {
        memset(plan->lists[i].first, 0xff, sizeof(plan->lists[i].first));
        memset(plan->lists[i].last, 0xff, sizeof(plan->lists[i].last));
        memset(plan->lists[i].calls, 0xff, sizeof(plan->lists[i].calls));
    }
    return plan;
}

void fabric_plan_free(struct fabric_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->ranks; i++)
        free(plan->lists[i].ops);
    for (size_t i = 0; i < plan->n_calls; i++)
        free(plan->calls[i]);
    free(plan->calls);
    free(plan);
}

void fabric_wait(struct fabric_plan *plan, size_t rank, size_t op)
{
    struct list *l = &plan->lists[rank];

    if (op == FABRIC_NONE)
        return;
    if (l->n_waits == FABRIC_AFTER)
        plan->full = true;
    else
        l->waits[l->n_waits++] = op;
}

static bool make_room(void **at, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return true;
    size_t more = *room ? 2 * *room : 64;
    void *to = realloc(*at, more * size);
    if (!to)
        return false;
    *at = to;
    *room = more;
    return true;
}

static struct op *add_op(struct fabric_plan *plan, size_t rank, enum fabric_lane lane)
{
    struct list *l = &plan->lists[rank];

    if (!make_room((void **)&l->ops, l->n, &l->room, sizeof(*l->ops))) {
        plan->full = true;
        return NULL;
    }
    struct op *op = &l->ops[l->n];
    *op = (struct op){.lane = lane, .call = FABRIC_NONE, .below = FABRIC_NONE};
    for (size_t i = 0; i < FABRIC_AFTER; i++)
        op->after[i] = i < l->n_waits ? l->waits[i] : FABRIC_NONE;
    l->n_waits = 0;
    *(l->last[lane] == FABRIC_NONE ? &l->first[lane] : &l->ops[l->last[lane]].below) = l->n;
    l->last[lane] = l->n++;
    return op;
}

size_t fabric_work(struct fabric_plan *plan, size_t rank, double us)
{
    struct op *op = add_op(plan, rank, LANE_WORK);

    if (!op)
        return FABRIC_NONE;
    op->us = us;
    return plan->lists[rank].n - 1;
}

/* The next call of a group: the first member that comes to it makes it. */
static size_t call_of(struct fabric_plan *plan, size_t *at, const struct fabric_group *group,
                      enum fabric_what what, double bytes)
{
    if (*at != FABRIC_NONE)
        return *at;
    struct call *call = calloc(1, sizeof(*call));
    if (!call || !make_room((void **)&plan->calls, plan->n_calls, &plan->room, sizeof(call))) {
        free(call);
        plan->full = true;
        return FABRIC_NONE;
    }
    *call = (struct call){.group = *group, .what = what, .bytes = bytes, .below = FABRIC_NONE};
    plan->calls[plan->n_calls] = call;
    return *at = plan->n_calls++;
}

size_t fabric_call(struct fabric_plan *plan, size_t rank, enum fabric_lane lane,
                   const struct fabric_group *group, enum fabric_what what, double bytes)
{
    struct list *l = &plan->lists[rank];
    size_t last = l->calls[group->tag];
    /* a rank may be the last of one pair and the first of another: those have two tags */
    size_t *at =
        last == FABRIC_NONE ? &plan->heads[group->tag][group->first] : &plan->calls[last]->below;
    struct op *op = add_op(plan, rank, lane);
    size_t call = op ? call_of(plan, at, group, what, bytes) : FABRIC_NONE;

    if (call == FABRIC_NONE)
        return FABRIC_NONE;
    op->call = l->calls[group->tag] = call;
    op->me = (rank - group->first) / group->stride;
    plan->calls[call]->ops[op->me] = l->n - 1;
    return l->n - 1;
}

/* ---- collectives as they are sent ---- */

struct rank {
    size_t at[LANES]; /* operations */
    bool changed, computes;
    size_t in, inner_out, inner_in; /* flows: that come; to and from others of its host */
    double wants, share;            /* of memory */
};

struct active {
    struct op *op;
    size_t rank;
};

struct run {
    const struct fabric *f;
    struct fabric_plan *plan;
    struct rng *rng;
    double slower, now, end;
    struct rank ranks[FABRIC_RANKS];
    size_t host[FABRIC_RANKS], leaf[FABRIC_RANKS]; /* where a rank is */
    size_t out[FABRIC_HOSTS][FABRIC_RAILS], in[FABRIC_HOSTS][FABRIC_RAILS];
    size_t up[FABRIC_HOSTS], down[FABRIC_HOSTS];                    /* flows of a switch */
    uint64_t changes, of_host[FABRIC_HOSTS], of_leaf[FABRIC_HOSTS]; /* the last one at each */
    struct active active[FABRIC_RANKS * LANES];
    size_t n;
};

static size_t log2_of(size_t n)
{
    size_t steps = 0;

    while ((size_t)1 << (steps + 1) <= n)
        steps++;
    return steps;
}

static enum fabric_way way_of(const struct fabric *f, const struct call *call)
{
    enum fabric_way way = f->later && call->group.n >= f->later ? f->way_later : f->way;

    if (call->what == FABRIC_SUM && call->bytes <= f->small)
        return WAY_DOUBLING;
    /* libraries scatter and gather by a ring, but for those that change */
    return call->what == FABRIC_SUM || way == f->way_later ? way : WAY_RING;
}

static size_t rounds_of(const struct call *call)
{
    size_t n = call->group.n, once = call->way == WAY_RING ? n - 1 : log2_of(n);

    switch (call->what) {
    case FABRIC_SUM:
        return call->way == WAY_DOUBLING ? once : 2 * once;
    case FABRIC_SCATTER:
    case FABRIC_GATHER:
        return once;
    case FABRIC_EXCHANGE:
        return n - 1;
    case FABRIC_MESSAGE:
    case FABRIC_THERE:
    case FABRIC_BACK:
        break;
    }
    return 1;
}

static bool sends(const struct call *call, size_t me)
{
    return call->what < FABRIC_THERE || me == (call->what == FABRIC_BACK);
}

static bool gets(const struct call *call, size_t me)
{
    return call->what < FABRIC_THERE || me == (call->what == FABRIC_THERE);
}

/* By halves: scattered to the farthest first, and gathered from the nearest. */
static void halves(const struct call *call, size_t me, size_t round, size_t *to, double *bytes)
{
    size_t steps = log2_of(call->group.n), level = round;

    if (call->what == FABRIC_GATHER)
        level = steps - 1 - round;
    else if (round >= steps)
        level = 2 * steps - 1 - round;
    *to = me ^ (call->group.n >> (level + 1));
    *bytes = call->bytes / (double)((size_t)2 << level);
}

/* To which rank. */
static size_t message_of(const struct call *call, size_t me, size_t round, double *bytes)
{
    size_t n = call->group.n, to = (me + 1) % n;

    *bytes = call->bytes;
    if (call->what == FABRIC_EXCHANGE) {
        to = (me + round + 1) % n;
        *bytes /= (double)n;
    } else if (call->what < FABRIC_EXCHANGE && call->way == WAY_RING) {
        *bytes /= (double)n;
    } else if (call->what < FABRIC_EXCHANGE && call->way == WAY_HALVING) {
        halves(call, me, round, &to, bytes);
    } else if (call->what < FABRIC_EXCHANGE) {
        to = me ^ (size_t)1 << round;
    }
    return call->group.first + to * call->group.stride;
}

/* Both ends choose the same, as hashes do. */
static size_t rail_of(const struct fabric *f, size_t from, size_t to)
{
    uint64_t low = from < to ? from : to, high = from < to ? to : from;

    return f->second > 0 ? ((low * FABRIC_HOSTS + high + 1) * (f->chance | 1)) >> 60 & 1 : 0;
}

static void count(struct run *r, size_t rank, size_t to_rank, int by)
{
    size_t from = r->host[rank], to = r->host[to_rank];
    size_t from_leaf = r->leaf[rank], to_leaf = r->leaf[to_rank];
    size_t rail = rail_of(r->f, from, to);

    r->ranks[to_rank].in += (size_t)by;
    r->of_host[from] = r->of_host[to] = ++r->changes;
    if (from == to) {
        r->ranks[rank].inner_out += (size_t)by;
        r->ranks[to_rank].inner_in += (size_t)by;
        return;
    }
    r->out[from][rail] += (size_t)by;
    r->in[to][rail] += (size_t)by;
    if (from_leaf != to_leaf) {
        r->up[from_leaf] += (size_t)by;
        r->down[to_leaf] += (size_t)by;
        r->of_leaf[from_leaf] = r->of_leaf[to_leaf] = r->changes;
    }
}

/* ---- rates of this moment ---- */

/* By the wires alone. */
static double wire_rate(const struct run *r, size_t rank, size_t to_rank)
{
    const struct fabric *f = r->f;
    size_t from = r->host[rank], to = r->host[to_rank], rail = rail_of(f, from, to);
    size_t from_leaf = r->leaf[rank], to_leaf = r->leaf[to_rank];

    if (from == to)
        return f->inside /
               fmax((double)r->ranks[rank].inner_out, (double)r->ranks[to_rank].inner_in) /
               r->slower;
    double times = rail ? f->second : 1;
    double rate = times * fmin(f->rate[from] / (double)r->out[from][rail],
                               f->rate[to] / (double)r->in[to][rail]);
    if (from_leaf != to_leaf)
        rate = fmin(rate,
                    f->uplink / (double)(r->up[from_leaf] > r->down[to_leaf] ? r->up[from_leaf]
                                                                             : r->down[to_leaf]));
    return rate / r->slower;
}

/* Sent bytes are copied; those that came are read, added to others and written. */
#define MOVES_SENT 2
#define MOVES_GOT  3

/* Most flows are what they were at the event before. */
static void find_wire(const struct run *r, size_t rank, struct op *op)
{
    size_t from = r->host[rank], to = r->host[op->to];

    if (op->of >= r->of_host[from] && op->of >= r->of_host[to] &&
        op->of >= r->of_leaf[r->leaf[rank]] && op->of >= r->of_leaf[r->leaf[op->to]])
        return;
    op->of = r->changes;
    op->wire = wire_rate(r, rank, op->to);
    op->sent = MOVES_SENT * op->wire / r->f->memory;
    op->got_rate = MOVES_GOT * op->wire / r->f->memory;
}

static void share(struct run *r)
{
    for (size_t i = 0; i < r->plan->ranks; i++)
        r->ranks[i].wants = r->ranks[i].computes ? r->plan->appetite : 0;
    for (size_t i = 0; i < r->n; i++) {
        struct op *op = r->active[i].op;
        size_t rank = r->active[i].rank;

        if (op->phase != PHASE_FLOWS)
            continue;
        find_wire(r, rank, op);
        r->ranks[rank].wants += op->sent;
        r->ranks[op->to].wants += op->got_rate;
    }
    for (size_t i = 0; i < r->plan->ranks; i++)
        r->ranks[i].share = r->ranks[i].wants > 1 ? 1 / r->ranks[i].wants : 1;
    for (size_t i = 0; i < r->n; i++) {
        struct op *op = r->active[i].op;
        const struct rank *rank = &r->ranks[r->active[i].rank];

        if (op->phase == PHASE_WORKS)
            op->rate = rank->share * (rank->in ? 1 - r->f->steals : 1);
        else if (op->phase == PHASE_FLOWS)
            op->rate = op->wire * (rank->share < r->ranks[op->to].share ? rank->share
                                                                        : r->ranks[op->to].share);
    }
}

/* ---- events ---- */

static void act(struct run *r, size_t rank, struct op *op, enum phase phase)
{
    op->phase = phase;
    r->active[r->n++] = (struct active){op, rank};
}

static void end_op(struct run *r, size_t i, struct op *op)
{
    struct rank *rank = &r->ranks[i];

    op->phase = PHASE_DONE;
    rank->at[op->lane] = op->below;
    rank->changed = true;
    r->end = r->now;
}

static bool is_ready(const struct list *l, const struct op *op)
{
    for (size_t i = 0; i < FABRIC_AFTER; i++)
        if (op->after[i] != FABRIC_NONE && l->ops[op->after[i]].phase != PHASE_DONE)
            return false;
    return true;
}

static struct op *op_at(const struct run *r, size_t i, size_t lane)
{
    size_t at = r->ranks[i].at[lane];

    return at == FABRIC_NONE ? NULL : &r->plan->lists[i].ops[at];
}

static void begin_work(struct run *r, size_t i)
{
    struct op *op = op_at(r, i, LANE_WORK);

    if (!op || op->phase != PHASE_AHEAD || !is_ready(&r->plan->lists[i], op))
        return;
    op->left = op->us * r->f->work[r->host[i]] * exp(r->f->work_jitter * rng_normal(r->rng));
    r->ranks[i].computes = true;
    act(r, i, op, PHASE_WORKS);
}

static bool has_got(const struct op *op, size_t round)
{
    return op->got[round / 64] >> (round % 64) & 1;
}

static struct op *op_of(const struct run *r, const struct call *call, size_t rank)
{
    size_t me = (rank - call->group.first) / call->group.stride;

    return &r->plan->lists[rank].ops[call->ops[me]];
}

static void begin_message(struct run *r, size_t i, struct op *op, const struct call *call)
{
    double bytes;
    size_t to = message_of(call, op->me, op->round, &bytes);
    bool inside = r->host[i] == r->host[to];

    if (r->f->meets && op_of(r, call, to)->phase == PHASE_AHEAD)
        return;
    op->to = to;
    op->left = bytes;
    op->at_us = r->now + (inside ? r->f->inside_us : r->f->latency_us) * r->slower *
                             (r->ranks[i].computes ? r->f->lag : 1) *
                             exp(r->f->jitter * rng_normal(r->rng));
    act(r, i, op, PHASE_FLIES);
}

/* Who waits for it to ask for a message may go on. */
static void tell_others(struct run *r, const struct call *call)
{
    for (size_t i = 0; r->f->meets && i < call->group.n; i++)
        r->ranks[call->group.first + i * call->group.stride].changed = true;
}

/* The next message, where the rank has what it needs for it: the message of the round before, or what it was to wait for. */
static void go_on(struct run *r, size_t i, struct op *op)
{
    const struct call *call = r->plan->calls[op->call];
    bool first = op->phase == PHASE_AHEAD;

    if (first && !is_ready(&r->plan->lists[i], op))
        return;
    if (first) {
        op->phase = PHASE_WAITS;
        tell_others(r, call);
    }
    if (op->phase != PHASE_WAITS)
        return;
    bool more = sends(call, op->me) && op->round < call->rounds;
    size_t needs = more ? op->round : call->rounds;
    if (needs && gets(call, op->me) && !has_got(op, needs - 1))
        return;
    if (more)
        begin_message(r, i, op, call);
    else
        end_op(r, i, op);
}

static void begin_calls(struct run *r, size_t i)
{
    for (size_t lane = LANE_WORK + 1; lane < LANES; lane++) {
        struct op *op = op_at(r, i, lane);

        if (op)
            go_on(r, i, op);
    }
}

/* Until nothing more begins at this moment. */
static void begin(struct run *r)
{
    for (bool any = true; any;) {
        bool changed[FABRIC_RANKS];

        any = false;
        for (size_t i = 0; i < r->plan->ranks; i++) {
            any |= changed[i] = r->ranks[i].changed;
            r->ranks[i].changed = false;
            if (changed[i])
                begin_work(r, i);
        }
        for (size_t i = 0; i < r->plan->ranks; i++)
            if (changed[i])
                begin_calls(r, i);
    }
}

static double next_event(const struct run *r)
{
    double step = HUGE_VAL;

    for (size_t i = 0; i < r->n; i++) {
        const struct op *op = r->active[i].op;

        double until = op->phase == PHASE_FLIES ? op->at_us - r->now : op->left / op->rate;

        step = until < step ? until : step;
    }
    return step > 0 ? step : 0;
}

/* What has happened to it at this moment; whether it stays active. */
static bool pass(struct run *r, size_t i, struct op *op)
{
    if (op->phase == PHASE_WORKS) {
        if (op->left > SMALL * op->us)
            return true;
        r->ranks[i].computes = false;
        end_op(r, i, op);
        return false;
    }
    struct call *call = r->plan->calls[op->call];
    if (op->phase == PHASE_FLIES && op->at_us <= r->now + SMALL) {
        op->phase = PHASE_FLOWS;
        count(r, i, op->to, 1);
    } else if (op->phase == PHASE_FLOWS && op->left <= SMALL * call->bytes) {
        count(r, i, op->to, -1);
        op_of(r, call, op->to)->got[op->round / 64] |= (uint64_t)1 << (op->round % 64);
        op->round++;
        op->phase = PHASE_WAITS;
        r->ranks[i].changed = r->ranks[op->to].changed = true;
        return false;
    }
    return true;
}

static void step_to(struct run *r, double step)
{
    size_t n = 0;

    r->now += step;
    for (size_t i = 0; i < r->n; i++)
        if (r->active[i].op->phase != PHASE_FLIES)
            r->active[i].op->left -= r->active[i].op->rate * step;
    for (size_t i = 0; i < r->n; i++)
        if (pass(r, r->active[i].rank, r->active[i].op))
            r->active[n++] = r->active[i];
    r->n = n;
    begin(r);
    share(r);
}

static void set_up(struct run *r)
{
    for (size_t i = 0; i < r->plan->ranks; i++) {
        r->host[i] = r->f->place[r->f->per_host ? i / r->f->per_host : i];
        r->leaf[i] = r->f->leaf ? r->host[i] / r->f->leaf : 0;
    }
    for (size_t i = 0; i < r->plan->n_calls; i++) {
        struct call *call = r->plan->calls[i];

        call->way = way_of(r->f, call);
        call->rounds = rounds_of(call);
    }
    for (size_t i = 0; i < r->plan->ranks; i++) {
        struct list *l = &r->plan->lists[i];

        memcpy(r->ranks[i].at, l->first, sizeof(l->first));
        for (size_t k = 0; k < l->n; k++) {
            l->ops[k].phase = PHASE_AHEAD;
            l->ops[k].round = l->ops[k].got[0] = l->ops[k].got[1] = l->ops[k].of = 0;
        }
    }
    for (size_t i = 0; i < r->plan->ranks; i++) {
        begin_work(r, i);
        begin_calls(r, i);
    }
    begin(r);
    share(r);
}

double fabric_run_us(const struct fabric *f, struct rng *rng, struct fabric_plan *plan,
                     double slower)
{
    struct run r = {.f = f, .plan = plan, .rng = rng, .slower = slower};

    if (!plan || plan->full)
        return NAN;
    set_up(&r);
    for (double step = next_event(&r); r.n; step = next_event(&r))
        step_to(&r, step);
    for (size_t i = 0; i < plan->ranks; i++)
        for (size_t lane = 0; lane < LANES; lane++)
            if (r.ranks[i].at[lane] != FABRIC_NONE)
                return NAN;
    return r.end;
}

/* ---- what is measured ---- */

/* Compute, a collective, or both beside each other. */
static double both_us(const struct fabric *f, struct rng *rng, enum fabric_what what, size_t n,
                      double work_us, double bytes, double appetite, double slower)
{
    struct fabric_plan *plan = fabric_plan_new(n, appetite);
    const struct fabric_group all = {.stride = 1, .n = n};

    for (size_t i = 0; plan && i < n; i++) {
        if (work_us > 0)
            fabric_work(plan, i, work_us);
        if (bytes > 0)
            fabric_call(plan, i, LANE_DATA, &all, what, bytes);
    }
    double us = fabric_run_us(f, rng, plan, slower);
    fabric_plan_free(plan);
    return us;
}

double fabric_collective_us(const struct fabric *f, struct rng *rng, enum fabric_what what,
                            size_t n, double bytes, double slower)
{
    return both_us(f, rng, what, n, 0, bytes, 0, slower);
}

double fabric_hidden(const struct fabric *f, struct rng *rng, size_t n, double bytes,
                     double appetite, double slower)
{
    double sum = both_us(f, rng, FABRIC_SUM, n, 0, bytes, 0, slower);
    double work = both_us(f, rng, FABRIC_SUM, n, sum, 0, appetite, slower);
    double both = both_us(f, rng, FABRIC_SUM, n, sum, bytes, appetite, slower);

    return (sum + work - both) / fmin(sum, work);
}
