/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of an end: see net.h and order.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "benches/net/order.h"
#include "core/hw/machine.h"

static bool sends(const struct net_end *e, int direction)
{
    return (direction == NET_FORWARD) == e->leader;
}

/* Signals are for the thread that leads or serves. */
static int start_thread(pthread_t *thread, void *(*body)(void *), void *arg)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = -pthread_create(thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

static void *run_worker(void *arg)
{
    struct net_worker *w = arg;
    struct net_end *e = w->end;

    int err = topo_bind_self(e->topo, w->cpu);
    if (err)
        net_fail(e, err, "cannot bind a thread to CPU %u: %s", w->cpu, strerror(-err));
    else if ((err = e->ops->work(w)) != 0)
        net_fail(e, err, "%s: %s", e->ops->name, strerror(-err)); /* where it said nothing itself */
    return NULL;
}

/* A rail's connections [first, end), and its threads. */
static unsigned rail_threads(const struct net_end *e, unsigned rail, unsigned *first, unsigned *end)
{
    *first = 0;
    while (*first < e->point->connections && net_rail_of(e, *first) != rail)
        ++*first;
    for (*end = *first; *end < e->point->connections && net_rail_of(e, *end) == rail; ++*end) {
    }
    return net_rail_threads(e->point, e->n_rails, *end - *first);
}

unsigned net_threads(const struct net_end *e)
{
    unsigned n = 0, first, end;

    for (unsigned rail = 0; rail < e->n_rails; rail++)
        n += rail_threads(e, rail, &first, &end);
    return n;
}

/* Connections of one rail in one direction over its share of the threads. */
static unsigned add_workers(struct net_end *e, struct net_worker *workers, unsigned n,
                            int direction, unsigned rail)
{
    unsigned first, end, threads = rail_threads(e, rail, &first, &end);

    for (unsigned k = 0; k < threads && n < NET_WORKERS_MAX; k++, n++) {
        unsigned from = first + (end - first) * k / threads;
        workers[n] = (struct net_worker){.end = e,
                                         .direction = (enum net_direction)direction,
                                         .sends = sends(e, direction),
                                         .index = n,
                                         .rail = rail,
                                         .cpu = e->cpus[n % e->n_cpus],
                                         .first = from,
                                         .n = first + (end - first) * (k + 1) / threads - from};
    }
    return n;
}

/* Receivers first: they are there when the first byte comes. */
static int lay_out(struct net_end *e)
{
    e->workers =
        aligned_alloc(_Alignof(struct net_worker), NET_WORKERS_MAX * sizeof(struct net_worker));
    if (!e->workers)
        return net_fail(e, -ENOMEM, "out of memory");
    e->n_workers = 0;
    for (int sender = 0; sender < 2; sender++)
        for (int d = 0; d < NET_DIRECTIONS; d++) {
            if (!e->point->stream[d] || sends(e, d) != sender ||
                !e->ops->needs_worker(e->point, d, sender))
                continue;
            for (unsigned rail = 0; rail < e->n_rails; rail++)
                e->n_workers = add_workers(e, e->workers, e->n_workers, d, rail);
        }
    return 0;
}

int net_workers_start(struct net_end *e)
{
    int err = lay_out(e);

    for (unsigned i = 0; !err && i < e->n_workers; i++) {
        err = start_thread(&e->workers[i].thread, run_worker, &e->workers[i]);
        if (err)
            net_fail(e, err, "cannot start a thread: %s", strerror(-err));
        else
            e->workers[i].started = true;
    }
    return err;
}

static void join_one(pthread_t thread, net_beat_fn *beat, void *arg)
{
    struct timespec until;

    do {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        if (!pthread_timedjoin_np(thread, NULL, &until))
            return;
        if (beat)
            beat(arg);
    } while (true);
}

static void join_workers(struct net_end *e, bool senders, net_beat_fn *beat, void *arg)
{
    for (unsigned i = 0; i < e->n_workers; i++)
        if (e->workers[i].started && e->workers[i].sends == senders) {
            join_one(e->workers[i].thread, beat, arg);
            e->workers[i].started = false;
        }
}

/* A direction that the receiver fetches has no sender's thread: nothing is sent that was not received. */
int net_workers_stop(struct net_end *e, uint64_t *sent, net_beat_fn *beat, void *arg)
{
    atomic_store(&e->stop_sending, true);
    join_workers(e, true, beat, arg);
    for (unsigned i = 0; i < e->point->connections; i++)
        sent[i] = atomic_load(&e->counts[i].sent);
    return atomic_load(&e->error_code);
}

int net_workers_drain(struct net_end *e, const uint64_t *sent, net_beat_fn *beat, void *arg)
{
    memcpy(e->expect, sent, e->point->connections * sizeof(*sent));
    atomic_store(&e->expect_known, true);
    join_workers(e, false, beat, arg);
    return atomic_load(&e->error_code);
}

void net_workers_end(struct net_end *e)
{
    atomic_store(&e->give_up, true);
    join_workers(e, true, NULL, NULL);
    join_workers(e, false, NULL, NULL);
    net_pong_end(e);
}

static void *run_pong(void *arg)
{
    struct net_end *e = arg;
    int err = topo_bind_self(e->topo, e->cpus[e->n_cpus - 1]);

    if (!err)
        err = e->ops->pong(e);
    if (err)
        net_fail(e, err, "%s: answering failed: %s", e->ops->name, strerror(-err));
    return NULL;
}

int net_pong_start(struct net_end *e)
{
    int err = start_thread(&e->pong, run_pong, e);

    if (err)
        return net_fail(e, err, "cannot start a thread: %s", strerror(-err));
    e->pong_started = true;
    return 0;
}

int net_pong_end(struct net_end *e)
{
    if (e->pong_started)
        pthread_join(e->pong, NULL);
    e->pong_started = false;
    return atomic_load(&e->error_code);
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

static void read_machine(struct net_end *e, struct net_reading *r)
{
    struct cpu_reading cpu;

    for (unsigned i = 0; i < e->n_workers; i++)
        if (e->workers[i].started)
            r->worker_ns[i] = cpu_of_thread(e->workers[i].thread);
    r->machine_known = !cpu_read(&cpu);
    r->busy_ns = cpu.busy_ns;
    r->softirq_ns = cpu.softirq_ns;
}

void net_read(struct net_end *e, struct net_reading *r, uint32_t flags)
{
    if ((flags & NET_READ_MARK) && e->ops->facts) /* first: it may wait for counters */
        e->n_mark_facts = e->ops->facts(e, e->mark_facts);
    *r = (struct net_reading){.n_workers = e->n_workers, .from_ns = clock_now_ns()};
    for (unsigned i = 0; i < e->n_workers; i++) {
        const struct net_worker *w = &e->workers[i];
        if (e->ops->counted_by_sender(e->point, w->direction) == w->sends) {
            struct net_rate one = tally_read(&w->tally), *sum = &r->rates[w->direction][w->rail];
            sum->bytes += one.bytes;
            sum->messages += one.messages;
            sum->last_ns = sum->last_ns > one.last_ns ? sum->last_ns : one.last_ns;
        }
    }
    if (flags & NET_READ_MACHINE)
        read_machine(e, r);
    r->now_ns = clock_now_ns();
}
