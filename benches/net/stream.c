/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: the threads of an end, what each of them sends or receives, and readings of that. */
#include "benches/net/mover.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hw/machine.h"

/* ---- A rate's counters ---- */

/* `bytes` more have arrived just now, and with them `messages` whole ones. */
static void tally_add(struct net_tally *t, uint64_t bytes, uint64_t messages)
{
    uint32_t sequence = atomic_load_explicit(&t->sequence, memory_order_relaxed);
    uint64_t now_ns = clock_now_ns();

    atomic_store_explicit(&t->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    net_count_add(&t->bytes, bytes);
    net_count_add(&t->messages, messages);
    atomic_store_explicit(&t->last_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&t->sequence, sequence + 2, memory_order_release);
}

static struct net_rate tally_read(const struct net_tally *t)
{
    struct net_rate rate;
    uint32_t before, after;

    do {
        before = atomic_load_explicit(&t->sequence, memory_order_acquire);
        rate.bytes = atomic_load_explicit(&t->bytes, memory_order_relaxed);
        rate.messages = atomic_load_explicit(&t->messages, memory_order_relaxed);
        rate.last_ns = atomic_load_explicit(&t->last_ns, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        after = atomic_load_explicit(&t->sequence, memory_order_relaxed);
    } while (before != after || before & 1);
    return rate;
}

/* ---- What one thread sends or receives ---- */

/* Posts of `bytes` that are worth having at once, in bytes: few, so that a stream that is to stop
 * soon does. */
static uint64_t worth(const struct wire_link *l, uint64_t bytes)
{
    uint64_t n = l->ahead / bytes;

    return (n > WIRE_POSTS ? WIRE_POSTS : n ? n : 1) * bytes;
}

/* Of a window, as many as there is room for, but not few: that costs less than each by itself. */
static int post_window(struct net_connection *c, enum wire_side side)
{
    struct wire_link *l = c->link;
    const struct wire_flow *f = side == WIRE_OUT ? &l->out : &l->in;
    uint64_t room = l->ahead - (f->posted - f->through), n = room / c->message_bytes;

    if (!n || room < l->ahead / 8)
        return 0;
    return side == WIRE_OUT ? wire_send(l, c->out, n * c->message_bytes)
                            : wire_receive(l, c->in, n * c->message_bytes);
}

/* Sends come all from the same place, receives go all to one. */
static int more(struct net_connection *c, enum wire_side side)
{
    const struct wire_flow *f = side == WIRE_OUT ? &c->link->out : &c->link->in;
    uint64_t bytes = side == WIRE_OUT ? c->message_bytes : c->in_bytes;
    int err = 0;

    if (c->link->worker->wire->ops->windows)
        return post_window(c, side);
    uint64_t most = worth(c->link, bytes);
    while (!err && f->posted - f->through + bytes <= most)
        err = side == WIRE_OUT ? wire_send(c->link, c->out, bytes)
                               : wire_receive(c->link, c->in, bytes);
    return err;
}

/* What has moved on connections since they were looked at. */
struct sum {
    uint64_t bytes, messages;
};

/* A message is posted as it is sent. */
static void look_out(struct net_end *e, struct net_connection *c, struct sum *m)
{
    const struct wire_flow *f = &c->link->out;
    uint64_t whole = f->messages - c->out_messages;

    m->bytes += f->through - c->out_seen;
    m->messages += whole;
    c->out_seen = f->through;
    c->out_messages = f->messages;
    if (whole)
        net_count_add(&e->counts[c->number].sent, whole);
}

/* What comes in may be many. */
static void look_in(struct net_end *e, struct net_connection *c, struct sum *m)
{
    const struct wire_flow *f = &c->link->in;
    uint64_t through = f->through, pending = (f->posted - through) % c->in_bytes;
    uint64_t whole = through / c->message_bytes - c->in_seen / c->message_bytes;
    size_t held = c->in_bytes - (size_t)pending;

    c->in_held = held > c->in_held ? held : c->in_held;
    m->bytes += through - c->in_seen;
    m->messages += whole;
    c->in_seen = through;
    if (whole)
        net_count_add(&e->counts[c->number].received, whole);
}

/* What moved in one turn is counted, and more is posted. Where this end ends the stream (`own`),
 * nothing more is once it is to stop: then *left is one less for each connection on which all that
 * was posted is through. */
static inline int turn(struct net_worker *w, enum wire_side side, bool own, unsigned *left,
                       struct clock_wait *still)
{
    struct net_end *e = w->end;
    struct wire_worker *k = w->connections->link->worker;
    const struct wire_turn *t = side == WIRE_OUT ? &k->out : &k->in;
    struct sum moved = {0};
    int rc = wire_progress(k, side, NET_TICK_NS), err = 0;

    if (rc <= 0)
        err = net_stood_still(e, w->connections, rc, still);
    else
        *still = (struct clock_wait){0};
    bool stop =
        own && (net_over(e) || atomic_load_explicit(&e->stop_sending, memory_order_relaxed) ||
                atomic_load_explicit(&e->expect_known, memory_order_acquire));
    for (unsigned i = 0; i < t->n_moved && !err; i++) {
        struct net_connection *c = &w->connections[t->moved[i] - k->links];
        const struct wire_flow *f = side == WIRE_OUT ? &c->link->out : &c->link->in;
        (side == WIRE_OUT ? look_out : look_in)(e, c, &moved);
        if (stop)
            *left -= f->posted == f->through;
        else
            err = more(c, side);
    }
    if (moved.bytes && net_counted_by_sender(e) == w->sends)
        tally_add(&w->tally, moved.bytes, moved.messages);
    return net_over(e) ? -ECANCELED : err;
}

/* Has this receiver all that it will get? */
static bool all_drained(const struct net_worker *w)
{
    const struct net_end *e = w->end;
    bool all = atomic_load_explicit(&e->expect_known, memory_order_acquire);

    for (unsigned i = 0; i < w->n && all; i++) {
        unsigned number = w->connections[i].number;
        all = atomic_load_explicit(&e->counts[number].received, memory_order_relaxed) >=
              e->expect[number];
    }
    return all;
}

static int receive(struct net_worker *w)
{
    const struct wire_ops *ops = w->end->wire->ops;
    unsigned left = w->n;
    struct clock_wait still = {0};
    int err = 0;

    while (!err && !all_drained(w))
        err = turn(w, WIRE_IN, false, &left, &still);
    for (unsigned i = 0; i < w->n && ops->retract; i++)
        ops->retract(w->connections[i].link);
    return err;
}

int net_work(struct net_worker *w)
{
    struct net_end *e = w->end;
    enum wire_side side = w->sends ? WIRE_OUT : WIRE_IN;
    int err = 0;

    for (unsigned i = 0; i < w->n; i++)
        if (w->sends)
            net_ready_out(e, &w->connections[i]);
        else
            net_ready_in(&w->connections[i]);
    for (unsigned i = 0; i < w->n && !err; i++)
        err = more(&w->connections[i], side);
    struct clock_wait still = {0};
    if (!err && !w->sends && net_needs_worker(e, true)) {
        err = receive(w);
    } else { /* who acts: of what goes out, and of what comes in where the other end does not */
        for (unsigned left = w->n; left && !err;)
            err = turn(w, side, true, &left, &still);
        for (unsigned i = 0; i < w->n && !err; i++)
            err = net_settle(e, &w->connections[i]);
    }
    if (err && !net_over(e))
        net_wire_failed(e, err);
    return net_over(e) ? atomic_load(&e->error_code) : err;
}

/* ---- Threads ---- */

/* Signals are for the thread that leads or serves. */
int net_thread_start(struct net_end *e, pthread_t *thread, void *(*body)(void *), void *arg)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = -pthread_create(thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err ? net_fail(e, err, "cannot start a thread: %s", strerror(-err)) : 0;
}

static void *run_worker(void *arg)
{
    struct net_worker *w = arg;
    struct net_end *e = w->end;

    int err = topo_bind_self(e->topo, w->cpu);
    if (err)
        net_fail(e, err, "cannot bind a thread to CPU %u: %s", w->cpu, strerror(-err));
    else if ((err = net_work(w)) != 0)
        net_fail(e, err, "%s: %s", e->ops->name, strerror(-err)); /* where it said nothing itself */
    return NULL;
}

static void lay_out_direction(struct net_end *e, enum net_direction d, bool sends)
{
    for (unsigned i = 0; i < e->n_shares && e->n_workers < NET_WORKERS_MAX; i++) {
        unsigned n = e->n_workers++;
        e->workers[n] = (struct net_worker){.end = e,
                                            .direction = d,
                                            .sends = sends,
                                            .rail = e->shares[i].rail,
                                            .cpu = e->cpus[n % e->n_cpus],
                                            .connections = net_connection(e, e->shares[i].first),
                                            .n = e->shares[i].n};
    }
}

/* Receivers first: they are there when the first byte comes. */
void net_workers_make(struct net_end *e)
{
    if (!e->workers)
        e->workers =
            xaligned(_Alignof(struct net_worker), NET_WORKERS_MAX * sizeof(struct net_worker));
    e->n_workers = 0;
    for (int sends = 0; sends < 2; sends++)
        for (int d = 0; d < NET_DIRECTIONS; d++)
            if (e->point->stream[d] && net_sends(e, (enum net_direction)d) == sends &&
                net_needs_worker(e, sends))
                lay_out_direction(e, (enum net_direction)d, sends);
}

int net_workers_start(struct net_end *e)
{
    int err = 0;

    net_workers_make(e);
    for (unsigned i = 0; !err && i < e->n_workers; i++) {
        err = net_thread_start(e, &e->workers[i].thread, run_worker, &e->workers[i]);
        e->workers[i].started = !err;
    }
    return err;
}

static void join_workers(struct net_end *e, bool senders)
{
    for (unsigned i = 0; i < e->n_workers; i++)
        if (e->workers[i].started && e->workers[i].sends == senders) {
            pthread_join(e->workers[i].thread, NULL);
            e->workers[i].started = false;
        }
}

/* A direction that the receiver fetches has no sender's thread: nothing is sent that
 * was not received. */
int net_workers_stop(struct net_end *e, uint64_t *sent)
{
    atomic_store(&e->stop_sending, true);
    join_workers(e, true);
    for (unsigned i = 0; i < e->point->connections; i++)
        sent[i] = atomic_load(&e->counts[i].sent);
    return atomic_load(&e->error_code);
}

int net_workers_drain(struct net_end *e, const uint64_t *sent)
{
    memcpy(e->expect, sent, e->point->connections * sizeof(*sent));
    atomic_store(&e->expect_known, true);
    join_workers(e, false);
    return atomic_load(&e->error_code);
}

/* Ends all threads at once. */
void net_workers_end(struct net_end *e)
{
    atomic_store(&e->give_up, true);
    join_workers(e, true);
    join_workers(e, false);
    net_pong_end(e);
}

/* ---- Readings ---- */

void net_read(struct net_end *e, struct net_reading *r, uint32_t flags)
{
    if (flags & NET_READ_MARK) /* first: it may wait for counters */
        e->n_mark_facts = net_facts(e, e->mark_facts);
    *r = (struct net_reading){.n_workers = e->n_workers, .from_ns = clock_now_ns()};
    for (unsigned i = 0; i < e->n_workers; i++) {
        const struct net_worker *w = &e->workers[i];
        if (net_counted_by_sender(e) == w->sends) {
            struct net_rate one = tally_read(&w->tally), *sum = &r->rates[w->direction][w->rail];
            sum->bytes += one.bytes;
            sum->messages += one.messages;
            sum->last_ns = sum->last_ns > one.last_ns ? sum->last_ns : one.last_ns;
        }
    }
    struct cpu_reading cpu;
    for (unsigned i = 0; flags & NET_READ_MACHINE && i < e->n_workers; i++)
        if (e->workers[i].started)
            r->worker_ns[i] = cpu_of_thread(e->workers[i].thread);
    if (flags & NET_READ_MACHINE) {
        r->machine_known = !cpu_read(&cpu);
        r->busy_ns = cpu.busy_ns;
        r->softirq_ns = cpu.softirq_ns;
    }
    r->now_ns = clock_now_ns();
}
