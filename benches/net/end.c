/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a point: its CPUs, its threads, its life. See end.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/net/end.h"
#include "core/alloc.h"
#include "core/wire/wires.h"

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
    /* Of a machine that both ends are on, the leader takes half of the cores at most. */
    unsigned half = topo_cores(e->topo) / 2;
    want = e->point->ping ? 1 : 0;
    for (int d = 0; d < NET_DIRECTIONS; d++)
        if (e->point->stream[d] && net_needs_worker(e, net_sends(e, d)))
            want += e->point->threads;
    want = want ? want : 1;
    if (e->leader && e->same_machine && want > half)
        want = half ? half : 1;
    want = want < n ? want : n;
    e->n_cpus = 0;
    for (int again = 0; again < 2 && !e->n_cpus; again++) /* all are taken: share them */
        for (unsigned i = 0; i < n && e->n_cpus < want && e->n_cpus < NET_WORKERS_MAX; i++)
            if (again || !is_in(all[i], taken, n_taken))
                e->cpus[e->n_cpus++] = all[i];
    e->memory_node = node;
    return e->n_cpus ? 0 : net_fail(e, -ENODEV, "no CPU may be used here");
}

/* ---- An end: opened, described, closed ---- */

/* Bounds of what came from the other end: it proved who it is, not that it is sound. */
static int check_point(struct net_end *e, const struct net_point *p)
{
    bool streams = net_streams(p);

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
    e->counts = xaligned(_Alignof(struct net_count), n * sizeof(*e->counts));
    e->expect = xcalloc(n, sizeof(*e->expect));
    err = net_wire_open(e);
    if (err)
        return net_fail(e, err, "%s: %s", e->ops->name, strerror(-err));
    /* By two names, it may be: an interface's and its address. Its rate would count twice in the
     * sum's limit, and the rows be one case. */
    for (unsigned i = 0; i < e->n_rails; i++)
        for (unsigned k = 0; k < i; k++)
            if (!strcmp(e->rails[i].name, e->rails[k].name))
                return net_fail(e, -EINVAL, "'%.64s' is '%s' twice: each device once",
                                e->local->devices, e->rails[i].name);
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
    if (e->n_rails)
        memcpy(rails->rails, e->rails, e->n_rails * sizeof(*e->rails));
    for (unsigned i = 0; i < e->n_cpus; i++)
        rails->cpus[i] = e->cpus[i];
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
    }
}

void net_prove_end(struct net_end *e, const uint64_t *others_received)
{
    struct path_claim claims[NIC_RAILS_MAX] = {0};

    if (!e->path)
        return;
    for (unsigned i = 0; i < e->n_rails; i++)
        snprintf(claims[i].device, sizeof(claims[i].device), "%s",
                 e->leader && e->point->inject == NET_ELSEWHERE ? PATH_NOWHERE : e->rails[i].name);
    add_claims(e, others_received, claims);
    path_end(e->path, claims, e->n_rails, &e->proof);
    path_close(e->path);
    e->path = NULL;
}

void net_facts_take(struct net_end *e)
{
    e->n_facts = net_facts(e, e->facts);
    wire_facts_less(e->facts, e->n_facts, e->mark_facts, e->n_mark_facts);
}

void net_report_make(struct net_end *e, struct net_report *report)
{
    *report = (struct net_report){.proof = e->proof, .n_facts = (uint32_t)e->n_facts};
    memcpy(report->facts, e->facts, sizeof(report->facts));
    net_end_rails(e, &report->rails);
}
