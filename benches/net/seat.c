/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs and which memory an end uses: near its device, apart from the other end's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "benches/net/order.h"

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
        if (e->point->stream[d] &&
            e->ops->needs_worker(e->point, d, (d == NET_FORWARD) == e->leader))
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

int net_seat(struct net_end *e, const uint32_t *taken, unsigned n_taken)
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
