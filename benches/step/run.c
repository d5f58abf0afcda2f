/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a step and the collectives that they call, as a backend of the session: see run.h. */
#include "benches/step/run.h"
#include "benches/step/products.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/collective/data.h"
#include "core/session/member.h"

#define NAP_NS  20000000u /* between two looks at the channels, and at whether others failed */
#define NO_PART UINT32_MAX
#define IDLE    STEP_LANES /* lanes beside those of the plan */
#define LANES   (IDLE + 1)

_Static_assert(STEP_COUNTS <= COLLECTIVE_OWN_MAX, "all counts of a rank");

struct runner;

struct lane {
    struct runner *runner;
    unsigned number;
    pthread_t thread;
    bool started;
    uint32_t *ops; /* its part of the plan */
    size_t n_ops;
    uint64_t turn;             /* that it has done */
    _Atomic uint64_t still_ns; /* nothing has moved for so long in the call that it is in */
    _Atomic bool inside;       /* it is in a call */
    uint64_t counts[STEP_COUNTS];
};

/* A part of the plan: a collective of its own by the same backend. */
struct piece {
    struct collective c;
    struct collective_point point;
};

struct runner {
    struct collective *c;
    const struct collective_ops *by; /* what the parts are of */
    struct step_spec spec;
    struct step_layer *layers;
    struct step_plan plan;
    struct piece *pieces;     /* of each part; NULL: not yet */
    struct lane lanes[LANES]; /* IDLE has nothing to do */
    unsigned own_lane;        /* of the thread that the session calls; it sees to the channels */
    bool alone;               /* calls are left out */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool ready, over;
    struct products *products; /* where compute is real */
    uint64_t turn, begin_ns;
    uint64_t *done_ns; /* of each operation in this turn; 0: not yet */
    uint64_t compute_end_ns;
    _Atomic int failed;
    char error[COLLECTIVE_ERROR_BYTES];
};

/* ---- Waiting ---- */

/* How long nothing has moved in this rank: a rank that computes moves. */
static uint64_t still_ns(struct runner *r)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = LANE_COMPUTE + 1; i < LANES; i++)
        if (atomic_load(&r->lanes[i].inside) && atomic_load(&r->lanes[i].still_ns) < least)
            least = atomic_load(&r->lanes[i].still_ns);
    return least == UINT64_MAX || atomic_load(&r->lanes[LANE_COMPUTE].inside) ? 0 : least;
}

static void fail(struct runner *r, int err, const char *why)
{
    pthread_mutex_lock(&r->lock);
    if (!r->failed) {
        snprintf(r->error, sizeof(r->error), "%s", why);
        r->failed = err;
    }
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
}

/* Of the session's own thread alone. */
static void see_to_channels(struct runner *r)
{
    int err = r->c->attend ? r->c->attend(r->c, still_ns(r)) : 0;

    if (err)
        fail(r, err, r->c->error);
}

/* collective.attend of a part: whoever is in it. */
static int attend(struct collective *c, uint64_t for_ns)
{
    struct lane *l = c->attend_arg;
    struct runner *r = l->runner;

    atomic_store(&l->still_ns, for_ns);
    if (!l->started) /* the session's thread */
        see_to_channels(r);
    return atomic_load(&r->failed) ? -ECANCELED : 0;
}

/* Under the lock: until something has moved, or for a nap. */
static void nap(struct runner *r, const struct lane *l)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += NAP_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&r->moved, &r->lock, &until);
    if (l->started)
        return;
    pthread_mutex_unlock(&r->lock);
    see_to_channels(r);
    pthread_mutex_lock(&r->lock);
}

/* The operation that is waited for; NO_PART: all have ended. *last_ns: when the last one had. */
static uint32_t missing(const struct runner *r, const struct step_op *op, uint64_t *last_ns)
{
    *last_ns = r->begin_ns;
    for (uint32_t i = 0; i < op->n_deps; i++) {
        uint32_t dep = r->plan.deps[op->first_dep + i];
        uint64_t ns = r->done_ns[dep];
        if (!ns && !(r->alone && r->plan.ops[dep].kind == STEP_CALL))
            return dep;
        *last_ns = ns > *last_ns ? ns : *last_ns;
    }
    return NO_PART;
}

/* From when the lane was free, until each that it waited for had ended, by the clocks of these: that this thread
 * woke up later is no wait. Returns the kind of the last of them; STEP_COUNTS: it waited for none. */
static enum step_count count_waits(struct lane *l, const struct step_op *op, uint64_t *from_ns)
{
    const struct runner *r = l->runner;
    enum step_count last = STEP_COUNTS;

    for (uint32_t i = 0; i < op->n_deps; i++) {
        uint32_t dep = r->plan.deps[op->first_dep + i];
        if (r->done_ns[dep] <= *from_ns)
            continue;
        const struct step_op *o = &r->plan.ops[dep];
        uint32_t kind = o->kind == STEP_CALL ? r->plan.parts[o->part].kind : PART_ALL;
        last = kind == PART_FORWARD || kind == PART_BACKWARD ? STEP_NS_PIPE : STEP_NS_SUMS;
        l->counts[last] += r->done_ns[dep] - *from_ns;
        *from_ns = r->done_ns[dep];
    }
    return last;
}

/* When it could begin, by the clock of those that it waited for. Real compute begins when its thread wakes up. */
static uint64_t wait_for(struct lane *l, const struct step_op *op, uint64_t from_ns)
{
    struct runner *r = l->runner;
    uint64_t ready_ns = r->begin_ns;

    pthread_mutex_lock(&r->lock);
    while (!r->failed && missing(r, op, &ready_ns) != NO_PART)
        nap(r, l);
    enum step_count last = count_waits(l, op, &from_ns);
    if (last != STEP_COUNTS && r->spec.compute == STEP_PRODUCT)
        l->counts[last] += clock_now_ns() - from_ns;
    pthread_mutex_unlock(&r->lock);
    return ready_ns;
}

/* ---- The operations ---- */

static void count_compute(struct lane *l, const struct step_op *op, uint64_t ns)
{
    l->counts[STEP_NS_COMPUTE] += ns;
    if (op->kind == STEP_UPDATE)
        l->counts[STEP_NS_UPDATE] += ns;
}

/* The products of the piece's layers, or the update. Returns when they ended. */
static uint64_t multiply(struct lane *l, const struct step_op *op)
{
    struct runner *r = l->runner;
    double times = r->c->me == r->spec.slow_rank ? r->spec.slow_times : 1;
    char why[GEMM_WHY_BYTES] = "";
    uint64_t begin_ns = clock_now_ns();

    atomic_store(&l->inside, true);
    int err = products_run(r->products, op, times, &r->failed, why);
    atomic_store(&l->inside, false);
    if (err)
        fail(r, err, why);
    uint64_t end_ns = clock_now_ns();
    count_compute(l, op, end_ns - begin_ns);
    return end_ns;
}

/* Returns when the clock shows that, or others have failed. */
static void sleep_until(struct lane *l, uint64_t end_ns)
{
    struct runner *r = l->runner;
    uint64_t now_ns;

    while ((now_ns = clock_now_ns()) < end_ns && !atomic_load(&r->failed)) {
        uint64_t left_ns = end_ns - now_ns;
        nanosleep(&(struct timespec){.tv_nsec = (long)(left_ns < NAP_NS ? left_ns : NAP_NS)}, NULL);
        if (!l->started)
            see_to_channels(r);
    }
}

static uint64_t do_call(struct lane *l, unsigned part, unsigned call)
{
    struct runner *r = l->runner;
    struct collective *c = &r->pieces[part].c;
    uint64_t begin_ns = clock_now_ns();

    atomic_store(&l->still_ns, 0);
    atomic_store(&l->inside, true);
    int err = r->by->run(c, call);
    atomic_store(&l->inside, false);
    if (err)
        fail(r, err, c->error[0] ? c->error : strerror(-err));
    uint64_t end_ns = clock_now_ns();
    l->counts[STEP_NS_CALLS] += end_ns - begin_ns;
    return end_ns;
}

/* A lane's part of a step. */
static void do_lane(struct lane *l)
{
    struct runner *r = l->runner;
    uint64_t free_ns = r->begin_ns;

    for (size_t i = 0; i < l->n_ops && !atomic_load(&r->failed); i++) {
        const struct step_op *op = &r->plan.ops[l->ops[i]];
        if (op->kind == STEP_CALL && r->alone)
            continue;
        uint64_t ready_ns = wait_for(l, op, free_ns);
        if (atomic_load(&r->failed))
            break;
        if (op->kind == STEP_CALL)
            free_ns = do_call(l, op->part, op->call);
        else if (r->spec.compute == STEP_PRODUCT)
            free_ns = multiply(l, op);
        else {
            /* A wait of the piece's length. It begins where it could, and not where this thread has
             * woken: an accelerator that computes so long does not wait for a scheduler. */
            uint64_t ns = (uint64_t)step_op_ns(op, &r->spec, r->c->me);
            free_ns = (ready_ns > free_ns ? ready_ns : free_ns) + ns;
            atomic_store(&l->inside, true);
            sleep_until(l, free_ns);
            atomic_store(&l->inside, false);
            count_compute(l, op, ns);
        }
        pthread_mutex_lock(&r->lock);
        r->done_ns[l->ops[i]] = free_ns;
        pthread_cond_broadcast(&r->moved);
        pthread_mutex_unlock(&r->lock);
    }
    if (l->number == LANE_COMPUTE)
        r->compute_end_ns = free_ns;
}

static void *lane_main(void *arg)
{
    struct lane *l = arg;
    struct runner *r = l->runner;

    pthread_mutex_lock(&r->lock);
    while (!r->over) {
        if (l->turn == r->turn) {
            pthread_cond_wait(&r->moved, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        do_lane(l);
        pthread_mutex_lock(&r->lock);
        l->turn = r->turn;
        pthread_cond_broadcast(&r->moved);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static bool all_done(const struct runner *r)
{
    for (unsigned i = 0; i < LANES; i++)
        if (r->lanes[i].started && r->lanes[i].turn != r->turn)
            return false;
    return true;
}

/* Own counts of the lanes into those of the rank. */
static void count(struct runner *r, uint64_t end_ns)
{
    uint64_t *own = r->c->own_ns;
    struct lane *l = &r->lanes[LANE_COMPUTE];

    own[STEP_NS_COMPUTE] += l->counts[STEP_NS_COMPUTE];
    own[STEP_NS_UPDATE] += l->counts[STEP_NS_UPDATE];
    own[STEP_NS_SUMS] += l->counts[STEP_NS_SUMS];
    own[STEP_NS_PIPE] += l->counts[STEP_NS_PIPE];
    own[STEP_NS_TAIL] += end_ns > r->compute_end_ns ? end_ns - r->compute_end_ns : 0;
    for (unsigned i = 0; i < STEP_LANES; i++)
        own[STEP_NS_CALLS] += r->lanes[i].counts[STEP_NS_CALLS];
}

static int step(struct runner *r)
{
    struct lane *own = &r->lanes[r->own_lane];

    pthread_mutex_lock(&r->lock);
    memset(r->done_ns, 0, r->plan.n_ops * sizeof(*r->done_ns));
    for (unsigned i = 0; i < STEP_LANES; i++)
        memset(r->lanes[i].counts, 0, sizeof(r->lanes[i].counts));
    r->begin_ns = clock_now_ns();
    r->compute_end_ns = r->begin_ns;
    r->turn++;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
    do_lane(own);
    pthread_mutex_lock(&r->lock);
    while (!all_done(r))
        nap(r, own);
    pthread_mutex_unlock(&r->lock);
    count(r, clock_now_ns());
    return r->failed ? collective_fail(r->c, r->failed, "%s", r->error) : 0;
}

/* ---- From open to close ---- */

static void make_lanes(struct runner *r)
{
    for (unsigned i = 0; i < LANES; i++) {
        struct lane *l = &r->lanes[i];
        l->runner = r;
        l->number = i;
        l->ops = xcalloc(r->plan.n_ops, sizeof(*l->ops));
        for (size_t k = 0; k < r->plan.n_ops; k++)
            if (r->plan.ops[k].lane == i)
                l->ops[l->n_ops++] = (uint32_t)k;
    }
    r->done_ns = xcalloc(r->plan.n_ops, sizeof(*r->done_ns));
}

/* A library takes calls of one thread alone: that of the session. NCCL's communicators of one GPU may deadlock if several
 * threads use them in an order of their own. A product may take long, and
 * meanwhile nobody else would see to the channels. */
static int choose_own_lane(struct runner *r)
{
    unsigned lanes = 0, last = LANE_COMPUTE;

    for (unsigned i = LANE_COMPUTE + 1; i < STEP_LANES; i++)
        if (r->lanes[i].n_ops) {
            lanes++;
            last = i;
        }
    r->own_lane = !r->by->own ? last : r->spec.compute == STEP_PRODUCT ? IDLE : LANE_COMPUTE;
    if (!r->by->own && lanes > 1)
        return collective_fail(r->c, -EOPNOTSUPP,
                               "'%s' does one kind of communication at a time here, and this step "
                               "has %u: take --backend ring, halving or doubling",
                               r->by->name, lanes);
    return 0;
}

static int start_lanes(struct runner *r)
{
    int err = 0;

    for (unsigned i = 0; i < LANES && !err; i++) {
        struct lane *l = &r->lanes[i];
        if (i == r->own_lane || !l->n_ops)
            continue;
        l->turn = r->turn;
        err = -pthread_create(&l->thread, NULL, lane_main, l);
        l->started = !err;
    }
    return err ? collective_fail(r->c, err, "no thread for a lane: %s", strerror(-err)) : 0;
}

static int init_locks(struct runner *r)
{
    pthread_condattr_t attr;
    int err = pthread_mutex_init(&r->lock, NULL);

    if (!err)
        err = pthread_condattr_init(&attr);
    if (err)
        return -err;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    err = pthread_cond_init(&r->moved, &attr);
    pthread_condattr_destroy(&attr);
    r->ready = !err;
    return -err;
}

static int open_products(struct runner *r)
{
    const struct collective *c = r->c;
    char why[GEMM_WHY_BYTES] = "";
    unsigned sharing = 0, node = world_member(c->world, c->members[c->me])->node;

    for (unsigned i = 0; i < c->n; i++)
        sharing += world_member(c->world, c->members[i])->node == node;
    int err =
        products_open(&r->products, r->by->device_memory ? &products_on_gpu : &products_on_host,
                      &r->spec, r->layers, &r->plan, sharing, c->gpu, why);
    return err ? collective_fail(r->c, err, "%s", why) : 0;
}

/* ---- The parts of the plan, each a collective of its own ---- */

/* Its members become ranks of the world. */
static int open_piece(struct runner *r, unsigned number)
{
    struct step_part *part = &r->plan.parts[number];
    struct piece *one = &r->pieces[number];
    char why[COLLECTIVE_ERROR_BYTES] = "";

    one->point = *r->c->point;
    one->point.op = part->op;
    one->point.sum = COLLECTIVE_SUM;
    one->point.in_place = part->in_place;
    one->point.count = part->count;
    if (!part->n_calls)
        return 0;
    for (unsigned i = 0; i < part->n; i++) /* from numbers of members to ranks of the world */
        part->members[i] = r->c->members[part->members[i]];
    one->c = (struct collective){.ops = r->by,
                                 .point = &one->point,
                                 .world = r->c->world,
                                 .topo = r->c->topo,
                                 .members = part->members,
                                 .n = part->n,
                                 .me = part->me,
                                 .calls = part->calls,
                                 .n_calls = part->n_calls,
                                 .other_nodes = r->c->other_nodes,
                                 .attend = attend,
                                 .attend_arg = &r->lanes[part->lane]};
    int err = r->by->supports ? r->by->supports(&one->point, part->n, why, sizeof(why)) : 0;
    if (err)
        return collective_fail(r->c, err, "%s", why);
    err = r->by->open(&one->c);
    memcpy(r->c->gpu, one->c.gpu, sizeof(r->c->gpu));
    return err ? collective_fail(r->c, err, "%s", one->c.error) : 0;
}

static bool is_open(const struct runner *r, unsigned part)
{
    return r->pieces && r->pieces[part].c.ops;
}

static int step_peers(struct collective *c, unsigned *peers, unsigned *n)
{
    struct runner *r = c->state;
    bool seen[WORLD_RANKS_MAX] = {false};

    *n = 0;
    for (unsigned i = 0; i < r->plan.n_parts; i++) {
        unsigned its[WORLD_RANKS_MAX], n_its = 0;
        int err = is_open(r, i) && r->by->peers ? r->by->peers(&r->pieces[i].c, its, &n_its) : 0;
        if (err)
            return err;
        for (unsigned k = 0; k < n_its; k++) {
            unsigned rank = r->plan.parts[i].members[its[k]], member = 0;
            while (r->c->members[member] != rank)
                member++;
            if (!seen[member])
                peers[(*n)++] = member;
            seen[member] = true;
        }
    }
    return 0;
}

struct packed {
    uint32_t id, len;
};

static int add_address(struct runner *r, unsigned part, unsigned member,
                       struct collective_address *all)
{
    struct collective_address one = {.member = member};
    struct packed head = {.id = r->plan.parts[part].id};
    int err = r->by->address(&r->pieces[part].c, member, &one);

    if (err)
        return collective_fail(r->c, err, "%s", r->pieces[part].c.error);
    head.len = (uint32_t)one.len;
    if (all->len + sizeof(head) + one.len > sizeof(all->bytes))
        return collective_fail(r->c, -EMSGSIZE, "too many addresses for one rank");
    memcpy(all->bytes + all->len, &head, sizeof(head));
    memcpy(all->bytes + all->len + sizeof(head), one.bytes, one.len);
    all->len += sizeof(head) + one.len;
    return 0;
}

/* The number in this part of a member of the whole; -1: it has none. */
static int number_in(const struct runner *r, unsigned part, unsigned member)
{
    const struct step_part *its = &r->plan.parts[part];

    for (unsigned i = 0; i < its->n; i++)
        if (its->members[i] == r->c->members[member])
            return (int)i;
    return -1;
}

static int step_address(struct collective *c, unsigned peer, struct collective_address *address)
{
    struct runner *r = c->state;
    int err = 0;

    address->member = peer;
    address->len = 0;
    for (unsigned i = 0; i < r->plan.n_parts && !err; i++) {
        unsigned its[WORLD_RANKS_MAX], n_its = 0;
        int number = number_in(r, i, peer);
        err = is_open(r, i) && r->by->peers ? r->by->peers(&r->pieces[i].c, its, &n_its) : 0;
        for (unsigned k = 0; k < n_its && !err; k++)
            if (number >= 0 && its[k] == (unsigned)number)
                err = add_address(r, i, its[k], address);
    }
    return err;
}

/* What this peer sent of the part: 1 with the address, 0: nothing; -EPROTO. */
static int find_address(const struct collective_address *from, uint32_t id,
                        struct collective_address *to)
{
    struct packed head;

    for (size_t at = 0; at < from->len; at += sizeof(head) + head.len) {
        if (from->len - at < sizeof(head))
            return -EPROTO;
        memcpy(&head, from->bytes + at, sizeof(head));
        if (head.len > from->len - at - sizeof(head))
            return -EPROTO;
        if (head.id != id)
            continue;
        to->len = head.len;
        memcpy(to->bytes, from->bytes + at + sizeof(head), head.len);
        return 1;
    }
    return 0;
}

static int join_piece(struct runner *r, unsigned part, const struct collective_address *addresses,
                      unsigned n, struct collective_address *its)
{
    unsigned n_its = 0;

    if (!is_open(r, part))
        return 0;
    for (unsigned i = 0; i < n; i++) {
        int number = number_in(r, part, addresses[i].member);
        int found =
            number < 0 ? 0 : find_address(&addresses[i], r->plan.parts[part].id, &its[n_its]);
        if (found < 0)
            return collective_fail(r->c, found, "an address that is none");
        if (found)
            its[n_its++].member = (unsigned)number;
    }
    struct collective *c = &r->pieces[part].c;
    int err = r->by->join(c, its, n_its);
    return err ? collective_fail(r->c, err, "%s: %s", step_part_names[r->plan.parts[part].kind],
                                 c->error)
               : 0;
}

static int step_join(struct collective *c, const struct collective_address *addresses, unsigned n)
{
    struct runner *r = c->state;
    struct collective_address *its = xcalloc(n, sizeof(*its));
    int err = 0;

    for (unsigned i = 0; i < r->plan.n_parts && !err; i++)
        err = join_piece(r, i, addresses, n, its);
    free(its);
    return err ? err : start_lanes(r);
}

/* The part of all ranks is the first. */
static int step_barrier(struct collective *c)
{
    struct runner *r = c->state;

    if (c->n < 2)
        return 0;
    bool started = r->lanes[LANE_DATA].started;
    r->lanes[LANE_DATA].started = false; /* its thread rests; this one sees to the channels */
    int err = r->by->barrier(&r->pieces[0].c);
    r->lanes[LANE_DATA].started = started;
    return err ? collective_fail(c, err, "%s", r->pieces[0].c.error) : 0;
}

/* Each part, which has data of its own: collective_fill() or collective_compare(). */
static int each_data(struct runner *r, uint64_t seed,
                     int (*each)(struct collective *c, uint64_t seed))
{
    int err = 0;

    for (unsigned i = 0; i < r->plan.n_parts && !err; i++) {
        uint32_t kind = r->plan.parts[i].kind;
        if (!is_open(r, i) || kind == PART_ALL)
            continue;
        err = each(&r->pieces[i].c, seed + r->plan.parts[i].id);
        if (err)
            collective_fail(r->c, err, "%s: %s", step_part_names[r->plan.parts[i].kind],
                            r->pieces[i].c.error[0] ? r->pieces[i].c.error : strerror(-err));
    }
    return err;
}

static int step_unheard(struct collective *whole, uint64_t for_ns)
{
    struct runner *r = whole->state;

    if (!r)
        return 0;
    for (unsigned i = 0; i < r->plan.n_parts && r->pieces && r->by->unheard; i++) {
        const struct collective *c = &r->pieces[i].c;
        /* What does not change while a lane works on it: that writes its counts and its error. */
        struct collective seen = {.ops = c->ops, .world = c->world, .state = c->state};

        int err = seen.ops ? r->by->unheard(&seen, for_ns) : 0;
        if (err)
            return collective_fail(r->c, err, "%s", seen.error);
    }
    return 0;
}

static void add_flow(struct collective_report *told, const struct collective_flow *f)
{
    struct collective_flow *to = told->flows;

    for (uint32_t i = 0; i < told->n_flows; i++, to++)
        if (!strcmp(to->device, f->device) && to->other_node == f->other_node) {
            to->out_bytes += f->out_bytes;
            to->in_bytes += f->in_bytes;
            to->exact &= f->exact;
            return;
        }
    if (told->n_flows < COLLECTIVE_FLOWS_MAX)
        told->flows[told->n_flows++] = *f;
}

static void add_facts(struct collective_report *told, const struct collective_report *more)
{
    for (uint32_t i = 0; i < more->n_facts; i++)
        for (uint32_t k = 0; k < told->n_facts; k++)
            if (!strcmp(told->facts[k].metric, more->facts[i].metric) &&
                !strcmp(told->facts[k].unit, "count"))
                told->facts[k].value += more->facts[i].value;
}

/* Of all parts together. */
static void step_tell(struct collective *c, struct collective_report *told)
{
    struct runner *r = c->state;
    struct collective_report one;
    bool any = false;

    *told = (struct collective_report){0};
    for (unsigned i = 0; i < r->plan.n_parts; i++) {
        if (!is_open(r, i) || !r->by->tell)
            continue;
        one = (struct collective_report){0};
        r->by->tell(&r->pieces[i].c, &one);
        if (!any)
            *told = one;
        else
            add_facts(told, &one);
        for (uint32_t k = 0; any && k < one.n_flows; k++)
            add_flow(told, &one.flows[k]);
        told->carriers |= one.carriers;
        told->simulated |= one.simulated;
        any = true;
    }
    if (r->products)
        products_tell(r->products, told);
}

/* ---- A backend of the session ---- */

static int step_open(struct collective *c)
{
    struct runner *r = c->state = xcalloc(1, sizeof(*r));
    char why[COLLECTIVE_ERROR_BYTES] = "";

    r->c = c;
    r->by = collective_find(c->point->backend);
    int err = init_locks(r);
    if (!err)
        err = step_spec_take(&r->spec, &r->layers, c->n, c->extra, c->n_extra, why, sizeof(why));
    if (!err)
        err = step_plan_make(&r->plan, &r->spec, r->layers, c->me);
    if (err == -E2BIG)
        return collective_fail(c, -EOPNOTSUPP, "more than %d buckets: give a larger --bucket",
                               COLLECTIVE_CALLS_MAX);
    if (!err) {
        make_lanes(r);
        err = choose_own_lane(r);
    }
    if (!err)
        r->pieces = xcalloc(r->plan.n_parts, sizeof(*r->pieces));
    for (unsigned i = 0; i < r->plan.n_parts && !err; i++)
        err = open_piece(r, i);
    if (!err && r->spec.compute == STEP_PRODUCT) /* on the GPU of the pieces */
        err = open_products(r);
    return err ? collective_fail(c, err, "%s", why[0] ? why : strerror(-err)) : 0;
}

static int step_run(struct collective *c, unsigned number)
{
    struct runner *r = c->state;

    (void)number;
    return step(r);
}

static int step_alone(struct collective *c, uint64_t *ns)
{
    struct runner *r = c->state;
    uint64_t before_ns = c->own_ns[STEP_NS_COMPUTE];

    r->alone = true;
    int err = step(r);
    r->alone = false;
    *ns = c->own_ns[STEP_NS_COMPUTE] -
          before_ns; /* as in a step: without what a thread takes to wake up */
    return err;
}

static int step_fill(struct collective *c, uint64_t seed)
{
    struct runner *r = c->state;

    return each_data(r, seed, collective_fill);
}

static int step_compare(struct collective *c, uint64_t seed)
{
    struct runner *r = c->state;
    char why[GEMM_WHY_BYTES] = "";
    int err = each_data(r, seed, collective_compare);

    if (err || !r->products)
        return err;
    err = products_check(r->products, why);
    return err ? collective_fail(c, err, "%s", why) : 0;
}

static void step_close(struct collective *c)
{
    struct runner *r = c->state;

    if (!r)
        return;
    if (r->ready) {
        pthread_mutex_lock(&r->lock);
        r->over = true;
        pthread_cond_broadcast(&r->moved);
        pthread_mutex_unlock(&r->lock);
        for (unsigned i = 0; i < LANES; i++)
            if (r->lanes[i].started)
                pthread_join(r->lanes[i].thread, NULL);
    }
    for (unsigned i = r->plan.n_parts; i-- > 0;)
        if (is_open(r, i))
            r->by->close(&r->pieces[i].c);
    free(r->pieces);
    for (unsigned i = 0; i < LANES; i++)
        free(r->lanes[i].ops);
    step_plan_release(&r->plan);
    free(r->layers);
    free(r->done_ns);
    products_close(r->products);
    if (r->ready) {
        pthread_cond_destroy(&r->moved);
        pthread_mutex_destroy(&r->lock);
    }
    free(r);
    c->state = NULL;
}

/* One of each backend, which says of itself what the parts' says. */
const struct collective_ops *step_find(const char *name)
{
    static struct collective_ops all[COLLECTIVE_BACKEND_COUNT];
    const struct collective_ops *by = collective_find(name);
    unsigned i = 0;

    while (by && collective_names[i] && strcmp(collective_names[i], name) != 0)
        i++;
    if (!by)
        return NULL;
    all[i] = (struct collective_ops){.name = by->name,
                                     .help = by->help,
                                     .own = by->own,
                                     .device_memory = by->device_memory,
                                     .blocks = by->blocks,
                                     .open = step_open,
                                     .peers = step_peers,
                                     .address = step_address,
                                     .join = step_join,
                                     .barrier = step_barrier,
                                     .run = step_run,
                                     .unheard = by->unheard ? step_unheard : NULL,
                                     .fill = step_fill,
                                     .compare = step_compare,
                                     .alone = step_alone,
                                     .tell = step_tell,
                                     .close = step_close};
    return &all[i];
}
