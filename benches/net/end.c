/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a point: its CPUs, its threads, its life. See end.h. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "benches/net/end.h"
#include "core/hw/machine.h"
#include "core/hw/nic.h"
#include "core/units.h"

int net_fail(struct net_end *e, int err, const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&e->error_lock);
    if (!atomic_load(&e->error_code)) { /* what follows is, as a rule, for the first one's sake */
        va_start(args, format);
        vsnprintf(e->error, sizeof(e->error), format, args);
        va_end(args);
        atomic_store(&e->error_code, err);
    }
    atomic_store(&e->give_up, true);
    pthread_mutex_unlock(&e->error_lock);
    return err;
}

/* ---- CPUs and memory: near the device, apart from the other end's ---- */

/* All CPUs of a node that may be used, best first; how many. */
static unsigned cpus_of(const struct topo *topo, int node, unsigned *cpus, unsigned most)
{
    unsigned n = topo_cpus(topo);

    for (n = n < most ? n : most; n && topo_spread(topo, node, n, cpus); n--) {
    }
    return n;
}

static int node_of(const struct net_end *e)
{
    int near = e->rails[0].node, asked = e->local->node;

    if (asked >= 0)
        return asked;
    if (asked == NET_NODE_NEAR || near < 0)
        return near;
    for (unsigned i = 0; i < topo_nodes(e->topo); i++)
        if ((int)topo_node_id(e->topo, i) != near)
            return (int)topo_node_id(e->topo, i);
    return -1;
}

static bool is_in(unsigned cpu, const uint32_t *taken, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (taken[i] == cpu)
            return true;
    return false;
}

/* Threads of this end that want a CPU of their own. */
static unsigned threads_of(const struct net_end *e)
{
    unsigned n = e->point->ping ? 1 : 0;

    for (int d = 0; d < NET_DIRECTIONS; d++)
        if (e->point->stream[d] && net_needs_worker(e, net_sends(e, d)))
            n += e->point->threads;
    return n ? n : 1;
}

/* Of a machine that both ends are on, the leader takes half of the cores at most. */
static unsigned share_of(const struct net_end *e, unsigned n)
{
    unsigned want = threads_of(e), half = topo_cores(e->topo) / 2;

    if (e->leader && e->same_machine && want > half)
        want = half ? half : 1;
    return want < n ? want : n;
}

/* Chooses e->cpus: near the first rail's device, none of `taken` if it can be helped. */
static int choose_cpus(struct net_end *e, const uint32_t *taken, unsigned n_taken)
{
    unsigned all[1024], n, want;
    int node = node_of(e);

    if (e->local->node == NET_NODE_FAR && (node < 0 || topo_nodes(e->topo) < 2))
        return net_fail(e, -EOPNOTSUPP,
                        "there is no node that is far from '%s': this machine has one node, or the "
                        "device's is not known",
                        e->rails[0].name);
    n = cpus_of(e->topo, node, all, sizeof(all) / sizeof(*all));
    if (!n && e->local->node >= 0)
        return net_fail(e, -EOPNOTSUPP, "no CPU of node %d may be used here", node);
    if (!n) { /* the device's node has none that this process may use: say so where rows show it */
        n = cpus_of(e->topo, -1, all, sizeof(all) / sizeof(*all));
        node = -1;
    }
    want = share_of(e, n);
    e->n_cpus = 0;
    for (int again = 0; again < 2 && !e->n_cpus; again++) /* all are taken: share them */
        for (unsigned i = 0; i < n && e->n_cpus < want && e->n_cpus < NET_WORKERS_MAX; i++)
            if (again || !is_in(all[i], taken, n_taken))
                e->cpus[e->n_cpus++] = all[i];
    e->memory_node = node;
    return e->n_cpus ? 0 : net_fail(e, -ENODEV, "no CPU may be used here");
}

/* ---- Threads ---- */

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
    else if ((err = net_work(w)) != 0)
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
                                         .sends = net_sends(e, direction),
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
            if (!e->point->stream[d] || net_sends(e, d) != sender || !net_needs_worker(e, sender))
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
static void net_workers_end(struct net_end *e)
{
    atomic_store(&e->give_up, true);
    join_workers(e, true);
    join_workers(e, false);
    net_pong_end(e);
}

static void *run_pong(void *arg)
{
    struct net_end *e = arg;
    int err = topo_bind_self(e->topo, e->cpus[e->n_cpus - 1]);

    if (!err)
        err = net_pong(e);
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
    if (flags & NET_READ_MACHINE)
        read_machine(e, r);
    r->now_ns = clock_now_ns();
}

/* ---- An end: opened, described, closed ---- */

/* Bounds of what came from the other end: it proved who it is, not that it is sound. */
static int check_point(struct net_end *e, const struct net_point *p)
{
    bool streams = p->stream[NET_FORWARD] || p->stream[NET_REVERSE];

    if (p->message_bytes > NET_BYTES_MAX || p->ping_bytes > NET_BYTES_MAX)
        return net_fail(e, -EINVAL, "messages of more than %llu bytes are out of bounds",
                        (unsigned long long)NET_BYTES_MAX);
    if (p->connections > NET_CONNECTIONS_MAX || p->threads > NET_WORKERS_MAX / 2 ||
        (streams && (!p->connections || !p->threads || !p->message_bytes)) ||
        (p->ping && !p->ping_bytes) || (!streams && !p->ping))
        return net_fail(
            e, -EINVAL,
            "%u connections over %u threads with messages of %llu bytes are out of bounds: "
            "at most %d over %d, of 1 byte or more",
            p->connections, p->threads, (unsigned long long)p->message_bytes, NET_CONNECTIONS_MAX,
            NET_WORKERS_MAX / 2);
    return 0;
}

/* By two names, it may be: an interface's and its address. Its rate would count twice in the sum's
 * limit, and the rows be one case. */
static int check_rails(struct net_end *e)
{
    for (unsigned i = 0; i < e->n_rails; i++)
        for (unsigned k = 0; k < i; k++)
            if (!strcmp(e->rails[i].name, e->rails[k].name))
                return net_fail(e, -EINVAL, "'%.64s' is '%s' twice: each device once",
                                e->local->devices, e->rails[i].name);
    return 0;
}

int net_end_open(struct net_end *e, const struct net_order *order, struct channel *c,
                 const struct topo *topo, bool leader, bool same_machine)
{
    *e = (struct net_end){.point = &order->point,
                          .local = &order->local,
                          .topo = topo,
                          .channel = c,
                          .leader = leader,
                          .same_machine = same_machine,
                          .memory_node = -1};
    pthread_mutex_init(&e->error_lock, NULL);
    int err = check_point(e, e->point);
    if (err)
        return err;
    e->ops = wire_find(e->point->transport);
    if (!e->ops)
        return net_fail(e, -EOPNOTSUPP, "this build knows no transport '%.15s'",
                        e->point->transport);
    size_t n = e->point->connections + 1u;
    e->counts = aligned_alloc(_Alignof(struct net_count), n * sizeof(*e->counts));
    e->expect = calloc(n, sizeof(*e->expect));
    if (!e->counts || !e->expect)
        return net_fail(e, -ENOMEM, "out of memory");
    memset(e->counts, 0, n * sizeof(*e->counts));
    err = net_wire_open(e);
    if (err)
        return net_fail(e, err, "%s: %s", e->ops->name, strerror(-err));
    err = check_rails(e);
    if (err)
        return err;
    if (e->point->connections && e->point->connections < e->n_rails)
        return net_fail(e, -EINVAL, "%u devices want a stream each: --streams %u or more",
                        e->n_rails, e->n_rails);
    return choose_cpus(e, order->cpus, order->n_cpus);
}

void net_end_close(struct net_end *e)
{
    net_workers_end(e);
    path_close(e->path);
    net_wire_close(e);
    free(e->workers);
    free(e->counts);
    free(e->expect);
    pthread_mutex_destroy(&e->error_lock);
    *e = (struct net_end){0};
}

void net_end_rails(const struct net_end *e, struct net_rails *rails)
{
    *rails =
        (struct net_rails){.n = e->n_rails, .n_cpus = e->n_cpus, .memory_node = e->memory_node};
    memcpy(rails->rails, e->rails, sizeof(rails->rails));
    for (unsigned i = 0; i < e->n_cpus; i++)
        rails->cpus[i] = e->cpus[i];
}

/* Where the kernel's counters cannot be read there is no proof, and the row says so. */
void net_prove_begin(struct net_end *e)
{
    if (path_begin(&e->path))
        e->path = NULL;
}

void net_received(const struct net_end *e, uint64_t *received)
{
    for (unsigned i = 0; i <= e->point->connections; i++)
        received[i] = atomic_load(&e->counts[i].received);
}

static double larger(uint64_t a, uint64_t b)
{
    return (double)(a > b ? a : b);
}

/* A message of its own is a packet at least; TCP puts many of a stream into one. */
static bool tells_messages(const struct net_end *e, unsigned connection)
{
    return connection == e->point->connections ||
           (!e->ops->streams && strncmp(e->rails[net_rail_of(e, connection)].kind, "iwarp", 5));
}

/* Whose memory is written or read by the other end's NIC counts nothing itself: the
 * other end knows. */
static void add_claims(const struct net_end *e, const uint64_t *others_received,
                       struct path_claim *claims)
{
    const struct net_point *p = e->point;

    for (unsigned i = 0; i <= p->connections; i++) {
        struct path_claim *claim = &claims[net_rail_of(e, i)];
        double bytes = (double)(i == p->connections ? p->ping_bytes : p->message_bytes);
        double sent = larger(atomic_load(&e->counts[i].sent), others_received[i]);
        double received = larger(atomic_load(&e->counts[i].received), e->expect[i]);
        claim->out_bytes += bytes * sent;
        claim->in_bytes += bytes * received;
        if (tells_messages(e, i)) {
            claim->out_messages += sent;
            claim->in_messages += received;
        }
    }
}

void net_prove_end(struct net_end *e, const uint64_t *others_received)
{
    struct path_claim claims[NET_RAILS_MAX] = {0};

    if (!e->path)
        return;
    for (unsigned i = 0; i < e->n_rails; i++) {
        snprintf(claims[i].device, sizeof(claims[i].device), "%s",
                 e->leader && e->point->inject == NET_ELSEWHERE ? "nowhere0" : e->rails[i].name);
        claims[i].message_bytes =
            (double)(e->point->message_bytes ? e->point->message_bytes : e->point->ping_bytes);
        claims[i].mtu_bytes = e->rails[i].mtu_bytes;
    }
    add_claims(e, others_received, claims);
    path_end(e->path, claims, e->n_rails, &e->proof);
    path_close(e->path);
    e->path = NULL;
}

static void less_mark(const struct net_end *e, struct wire_fact *fact)
{
    for (size_t i = 0; i < e->n_mark_facts; i++)
        if (!strcmp(fact->unit, "count") && !strcmp(fact->metric, e->mark_facts[i].metric))
            fact->value -= e->mark_facts[i].value;
}

void net_facts_take(struct net_end *e)
{
    e->n_facts = net_facts(e, e->facts);
    for (size_t i = 0; i < e->n_facts; i++)
        less_mark(e, &e->facts[i]);
}

void net_report_make(struct net_end *e, struct net_report *report)
{
    *report = (struct net_report){.proof = e->proof, .n_facts = (uint32_t)e->n_facts};
    memcpy(report->facts, e->facts, sizeof(report->facts));
    net_end_rails(e, &report->rails);
}

#define END(text) ((text)[sizeof(text) - 1] = 0)

bool net_rails_sound(struct net_rails *rails)
{
    if (!rails->n || rails->n > NET_RAILS_MAX || rails->n_cpus > NET_WORKERS_MAX)
        return false;
    for (unsigned i = 0; i < rails->n; i++) {
        struct net_rail *r = &rails->rails[i];
        END(r->name);
        END(r->kind);
        END(r->text);
        END(r->line_source);
    }
    return true;
}

bool net_report_sound(struct net_report *report)
{
    END(report->proof.text);
    if (report->n_facts > WIRE_FACTS_MAX || !net_rails_sound(&report->rails))
        return false;
    for (unsigned i = 0; i < report->n_facts; i++) {
        END(report->facts[i].metric);
        END(report->facts[i].unit);
        if (!units_find(report->facts[i].unit))
            return false;
    }
    return true;
}
