/* SPDX-License-Identifier: Apache-2.0 */
/* What lies on the way of bytes, and how fast each of it is. */
#include "tests/sim/sim.h"

/* Numbers of resources: each kind has its range. */
enum {
    HOST = 0,
    CROSS = HOST + SIM_NODES,
    UP = CROSS + SIM_NODES * SIM_NODES,
    DOWN = UP + SIM_SWITCHES,
    IN = DOWN + SIM_SWITCHES,
    OUT = IN + SIM_GPUS,
    BOTH = OUT + SIM_GPUS,
    MEMORY = BOTH + SIM_GPUS,
    CACHE = MEMORY + SIM_GPUS,
    CORES = CACHE + SIM_GPUS,
    LINK = CORES + SIM_GPUS,
    LINK_BOTH = LINK + SIM_GPUS * SIM_GPUS,
    PORT_OUT = LINK_BOTH + SIM_GPUS * SIM_GPUS, /* of a GPU at NVSwitches: all its NVLinks */
    PORT_IN = PORT_OUT + SIM_GPUS,
    RESOURCES = PORT_IN + SIM_GPUS
};

unsigned sim_resource_memory(unsigned gpu)
{
    return MEMORY + gpu;
}

unsigned sim_resource_cache(unsigned gpu)
{
    return CACHE + gpu;
}

unsigned sim_resource_cores(unsigned gpu)
{
    return CORES + gpu;
}

static double of_gpu(const struct sim_gpu *gpu, unsigned kind)
{
    double stream = gpu->streaming_factor > 1 ? gpu->streaming_factor : 1;

    switch (kind) {
    case IN:
        return gpu->h2d_gbps;
    case OUT:
        return gpu->d2h_gbps;
    case BOTH:
        return gpu->both_gbps;
    case MEMORY:
        return gpu->hbm_gbps * stream;
    case CACHE:
        return gpu->l2_gbps;
    default:
        return 1;
    }
}

double sim_capacity(const struct sim *sim, unsigned resource)
{
    const struct sim_machine *m = &sim->machine;
    unsigned pair;

    if (resource < CROSS)
        return m->host_gbps;
    if (resource < UP)
        return m->cross_gbps;
    if (resource < IN)
        return m->at[(resource - UP) % SIM_SWITCHES].uplink_gbps;
    if (resource < LINK)
        return of_gpu(&m->gpu[(resource - IN) % SIM_GPUS],
                      IN + (resource - IN) / SIM_GPUS * SIM_GPUS);
    if (resource >= PORT_OUT)
        return m->nvswitch_gbps;
    pair = (resource - LINK) % (SIM_GPUS * SIM_GPUS);
    return resource < LINK_BOTH ? sim_link(m, pair / SIM_GPUS, pair % SIM_GPUS)->gbps
                                : sim_link(m, pair / SIM_GPUS, pair % SIM_GPUS)->both_gbps;
}

void sim_flow_use(struct sim_flow *flow, unsigned resource, double weight)
{
    for (unsigned i = 0; i < flow->uses; i++) {
        if (flow->use[i].resource != resource)
            continue;
        flow->use[i].weight += weight;
        return;
    }
    if (flow->uses < SIM_USES)
        flow->use[flow->uses++] = (struct sim_use){resource, weight};
}

static void lower(struct sim_flow *flow, double cap)
{
    if (cap < flow->cap)
        flow->cap = cap;
}

/* Between a GPU and what its switch is plugged into. */
static void use_gpu(const struct sim *sim, unsigned gpu, bool in, bool past_switch,
                    struct sim_flow *flow)
{
    int at = sim->machine.gpu[gpu].at_switch;

    sim_flow_use(flow, (in ? IN : OUT) + gpu, 1);
    sim_flow_use(flow, BOTH + gpu, 1);
    if (past_switch && at >= 0)
        sim_flow_use(flow, (in ? DOWN : UP) + (unsigned)at, 1);
}

static void use_cross(unsigned from, unsigned to, struct sim_flow *flow)
{
    if (from != to)
        sim_flow_use(flow, CROSS + from * SIM_NODES + to, 1);
}

static double host_cap(const struct sim *sim, const struct sim_gpu *gpu, bool to_device,
                       enum sim_mover mover, const struct sim_where *host)
{
    double cap = to_device ? gpu->h2d_gbps : gpu->d2h_gbps;

    if (host->node != gpu->numa_node)
        cap *= sim->machine.remote_factor;
    if (host->place == SIM_PAGEABLE)
        cap *= gpu->pageable_factor;
    if (host->place == SIM_COMBINED && to_device)
        cap *= gpu->write_combined_factor;
    if (host->place == SIM_MANAGED)
        cap *= gpu->prefetch_factor;
    return mover == SIM_BY_KERNEL ? cap * gpu->sm_copy_factor : cap;
}

static double host_path(const struct sim *sim, enum sim_mover mover, const struct sim_where *from,
                        const struct sim_where *to, struct sim_flow *flow)
{
    bool to_device = to->gpu >= 0;
    unsigned gpu = (unsigned)(to_device ? to->gpu : from->gpu);
    const struct sim_where *host = to_device ? from : to;
    const struct sim_gpu *g = &sim->machine.gpu[gpu];

    lower(flow, host_cap(sim, g, to_device, mover, host));
    sim_flow_use(flow, HOST + host->node, 1);
    use_cross(to_device ? host->node : g->numa_node, to_device ? g->numa_node : host->node, flow);
    use_gpu(sim, gpu, to_device, true, flow);
    if (host->place == SIM_PAGEABLE)
        return g->pageable_latency_us * 1e3;
    return (to_device ? g->h2d_latency_us : g->d2h_latency_us) * 1e3;
}

static double pcie_cap(const struct sim_machine *m, unsigned i, unsigned j)
{
    const struct sim_gpu *a = &m->gpu[i], *b = &m->gpu[j];

    if (sim_link(m, i, j)->pcie_gbps > 0)
        return sim_link(m, i, j)->pcie_gbps;
    if (a->numa_node != b->numa_node)
        return m->p2p_cross_gbps;
    return a->at_switch >= 0 && a->at_switch == b->at_switch ? m->p2p_switch_gbps
                                                             : m->p2p_bridge_gbps;
}

static void use_pcie(const struct sim *sim, unsigned from, unsigned to, bool through_host,
                     struct sim_flow *flow)
{
    const struct sim_gpu *a = &sim->machine.gpu[from], *b = &sim->machine.gpu[to];
    bool past = through_host || a->at_switch < 0 || a->at_switch != b->at_switch;

    use_gpu(sim, from, false, past, flow);
    use_gpu(sim, to, true, past, flow);
    use_cross(a->numa_node, b->numa_node, flow);
}

/* Copies and kernels of `gpu` reach the other's memory: what it enabled counts, or, of memory that is
 * mapped by handles, who may use it. */
static bool direct(const struct sim *sim, unsigned gpu, const struct sim_where *from,
                   const struct sim_where *to)
{
    const struct sim_where *other = gpu == (unsigned)from->gpu ? to : from;

    return sim->device[gpu].peer[other->gpu] || (other->block && other->block->by_handle);
}

static double peer_path(const struct sim *sim, unsigned gpu, enum sim_mover mover,
                        const struct sim_where *src, const struct sim_where *dst,
                        struct sim_flow *flow)
{
    const struct sim_machine *m = &sim->machine;
    unsigned from = (unsigned)src->gpu, to = (unsigned)dst->gpu;
    const struct sim_link *link = sim_link(m, from, to);
    const struct sim_fault *slow = sim_fault_has(m, SIM_SLOW_LINK, (int)from, (int)to);
    double factor = slow ? slow->factor : 1, out = m->gpu[from].d2h_gbps, in = m->gpu[to].h2d_gbps;

    factor *= mover == SIM_BY_KERNEL ? m->gpu[gpu].sm_copy_factor : 1;
    factor *= gpu == to ? link->read_factor : 1;
    if (!direct(sim, gpu, src, dst)) {
        lower(flow, m->staged_factor * (out < in ? out : in) * factor);
        use_pcie(sim, from, to, true, flow);
        sim_flow_use(flow, HOST + m->gpu[from].numa_node, 2);
        return (m->gpu[from].d2h_latency_us + m->gpu[to].h2d_latency_us) * 1e3;
    }
    if (link->kind == SIM_NVLINK) {
        lower(flow, link->gbps * factor);
        sim_flow_use(flow, LINK + from * SIM_GPUS + to, 1);
        sim_flow_use(flow, LINK_BOTH + (from < to ? from * SIM_GPUS + to : to * SIM_GPUS + from),
                     1);
        if (m->nvswitch_gbps > 0) {
            sim_flow_use(flow, PORT_OUT + from, 1);
            sim_flow_use(flow, PORT_IN + to, 1);
        }
    } else {
        double way = pcie_cap(m, from, to);

        way = way < out ? way : out;
        lower(flow, (way < in ? way : in) * factor);
        use_pcie(sim, from, to, false, flow);
    }
    return link->latency_us * 1e3;
}

/* Within one device, or within the host. */
static double short_path(const struct sim *sim, const struct sim_where *from, struct sim_flow *flow)
{
    const struct sim_gpu *g;
    double weight;

    if (from->gpu < 0) {
        lower(flow, sim->machine.host_gbps / 4);
        sim_flow_use(flow, HOST + from->node, 2);
        return 1e3;
    }
    g = &sim->machine.gpu[from->gpu];
    weight = g->hbm_gbps / g->d2d_gbps;
    lower(flow, g->d2d_gbps);
    sim_flow_use(flow, MEMORY + (unsigned)from->gpu, weight < 2 ? weight : 2);
    return g->d2d_latency_us * 1e3;
}

static bool is_foreign(const struct sim_where *where)
{
    return where->block && where->block->foreign;
}

/* To and from memory of another process, over whatever lies between: as fast as one link. */
static double foreign_path(const struct sim *sim, unsigned gpu, enum sim_mover mover,
                           struct sim_flow *flow)
{
    const struct sim_link *link = sim_link(&sim->machine, gpu, gpu ? 0 : 1);

    lower(flow, link->gbps * (mover == SIM_BY_KERNEL ? sim->machine.gpu[gpu].sm_copy_factor : 1));
    return link->latency_us * 1e3;
}

double sim_path(struct sim *sim, unsigned gpu, enum sim_mover mover, const struct sim_where *from,
                const struct sim_where *to, struct sim_flow *flow)
{
    double latency_ns;

    if (is_foreign(from) || is_foreign(to))
        return foreign_path(sim, gpu, mover, flow);

    if (from->gpu == to->gpu)
        return short_path(sim, from, flow);
    if (from->gpu >= 0 && to->gpu >= 0)
        latency_ns = peer_path(sim, gpu, mover, from, to, flow);
    else
        latency_ns = host_path(sim, mover, from, to, flow);
    if (from->gpu >= 0)
        sim_flow_use(flow, MEMORY + (unsigned)from->gpu, 1);
    if (to->gpu >= 0)
        sim_flow_use(flow, MEMORY + (unsigned)to->gpu, 1);
    return latency_ns;
}
