/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel takes. */
#include "tests/sim/sim.h"

#define LINK_LATENCY_NS 2000 /* the bytes in flight over a link that keep it busy, in time */

static const struct sim_gpu *gpu_of(const struct sim *sim, const struct sim_op *op)
{
    return &sim->machine.gpu[op->gpu];
}

static unsigned alignment(const struct sim_kernel *k)
{
    bool wide = k->family == SIM_PASS || k->family == SIM_COPY16 || k->family == SIM_MULTICAST;

    return wide ? 16 : k->family == SIM_CHASE ? 8 : 1;
}

/* A multicast address is for the stores of one kernel, and that kernel stores to nothing else. */
static bool multicast_misused(const struct sim_op *op, const struct sim_where *where, bool write)
{
    bool stores = op->launch.kernel.family == SIM_MULTICAST && write;

    return stores != (where->block && where->block->multicast);
}

/* What the kernel touches must be there for its device, aligned. */
static CUresult check(struct sim *sim, const struct sim_op *op, const struct sim_range *range,
                      unsigned ranges)
{
    unsigned align = alignment(&op->launch.kernel);

    for (unsigned i = 0; i < ranges; i++) {
        struct sim_where where = sim_where(sim, range[i].at, range[i].bytes, 0);

        if (!range[i].bytes)
            continue;
        if (where.bad || where.place == SIM_PAGEABLE ||
            multicast_misused(op, &where, range[i].write))
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (where.block && where.block->by_handle) {
            if (!(where.block->access >> op->gpu & 1))
                return CUDA_ERROR_ILLEGAL_ADDRESS;
        } else if (where.gpu >= 0 && where.gpu != (int)op->gpu && where.place != SIM_MANAGED &&
                   !sim->device[op->gpu].peer[where.gpu])
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (range[i].at % (range[i].bytes % align ? 1 : align))
            return CUDA_ERROR_MISALIGNED_ADDRESS;
    }
    return CUDA_SUCCESS;
}

/* Managed pages that are elsewhere come here, page fault by page fault. */
static double migrate(struct sim *sim, const struct sim_op *op, const struct sim_range *range,
                      unsigned ranges)
{
    const struct sim_gpu *gpu = gpu_of(sim, op);
    double ns = 0;

    for (unsigned i = 0; i < ranges; i++) {
        ns += (double)sim_managed_away(sim, range[i].at, range[i].bytes, (int)op->gpu) /
              (gpu->h2d_gbps * gpu->fault_factor);
        sim_managed_move(sim, range[i].at, range[i].bytes, (int)op->gpu);
    }
    return ns;
}

static double bytes_in_flight(const struct sim_gpu *gpu, const struct sim_op *op)
{
    const struct sim_kernel *k = &op->launch.kernel;
    double slots = (double)gpu->sms * sim_kernel_occupancy(gpu, k, op->launch.block);
    double blocks = op->launch.grid < slots ? op->launch.grid : slots;

    return blocks * op->launch.block * k->unroll * 16;
}

/* The share of the full rate that this launch gets: threads enough to keep the memory busy, and no
 * last wave of blocks that leaves most of the device idle. */
static double shape(const struct sim_gpu *gpu, const struct sim_op *op)
{
    double busy = bytes_in_flight(gpu, op) / (double)gpu->inflight_bytes;
    uint64_t slots =
        (uint64_t)gpu->sms * sim_kernel_occupancy(gpu, &op->launch.kernel, op->launch.block);
    uint64_t waves = slots ? (op->launch.grid + slots - 1) / slots : 1;

    busy = busy > 1 ? 1 : busy;
    return waves > 1 ? busy * op->launch.grid / (double)(waves * slots) : busy;
}

/* Whether the second-level cache still has this array from before: what went through it since, and the
 * array itself, fit. */
static bool cached(const struct sim_device *device, const struct sim_range *range,
                   uint64_t l2_bytes)
{
    for (unsigned i = 0; i < SIM_TOUCHES; i++)
        if (device->touched[i].at == range->at && device->touched[i].bytes >= range->bytes)
            return device->traffic_bytes - device->touched[i].stamp + device->touched[i].bytes <=
                   l2_bytes;
    return false;
}

static void touch(struct sim_device *device, const struct sim_range *range)
{
    unsigned i = 0;

    device->traffic_bytes += range->bytes;
    while (i < SIM_TOUCHES && device->touched[i].at != range->at)
        i++;
    if (i == SIM_TOUCHES)
        i = device->touch_next++ % SIM_TOUCHES;
    device->touched[i].at = range->at;
    device->touched[i].bytes = range->bytes;
    device->touched[i].stamp = device->traffic_bytes;
}

/* In another device's memory, the host's, or another process'. */
static bool elsewhere(struct sim *sim, const struct sim_op *op, uintptr_t at, uint64_t bytes)
{
    struct sim_where where = sim_where(sim, at, bytes, 0);

    return where.gpu != (int)op->gpu || (where.block && where.block->foreign);
}

/* Arrays that a kernel goes over, in the device's own memory. */
struct local {
    unsigned arrays;
    uint64_t bytes, hits;
};

static struct local look_local(struct sim *sim, struct sim_op *op, const struct sim_range *range,
                               unsigned ranges, uint64_t passes)
{
    struct sim_device *device = &sim->device[op->gpu];
    uint64_t l2_bytes = gpu_of(sim, op)->l2_bytes;
    struct local local = {0};

    for (unsigned i = 0; i < ranges; i++)
        if (!elsewhere(sim, op, range[i].at, range[i].bytes)) {
            local.arrays++;
            local.bytes += range[i].bytes;
        }
    for (unsigned i = 0; i < ranges; i++) {
        if (elsewhere(sim, op, range[i].at, range[i].bytes))
            continue;
        if (cached(device, &range[i], l2_bytes))
            local.hits += range[i].bytes;
        touch(device, &range[i]);
    }
    if (local.bytes <= l2_bytes)
        local.hits += local.bytes * (passes - 1);
    local.bytes *= passes;
    return local;
}

static void use_local(struct sim *sim, struct sim_op *op, const struct local *local)
{
    const struct sim_gpu *gpu = gpu_of(sim, op);
    double factor = shape(gpu, op), hbm = gpu->hbm_gbps, ns;
    double hits = (double)local->hits, all = (double)local->bytes;

    if (op->launch.kernel.streaming)
        hbm *= gpu->streaming_factor;
    if (op->launch.kernel.family == SIM_COPY1)
        factor *= gpu->copy1_factor;
    ns = ((all - hits) / hbm + hits / gpu->l2_gbps) / factor;
    if (ns > 0 && op->flow.amount / ns < op->flow.cap)
        op->flow.cap = op->flow.amount / ns;
    sim_flow_use(&op->flow, sim_resource_memory(op->gpu), local->arrays * (all - hits) / all);
    sim_flow_use(&op->flow, sim_resource_cache(op->gpu), local->arrays * hits / all);
}

static void lower_cap(struct sim_flow *flow, double factor, double most)
{
    flow->cap *= factor;
    if (flow->cap > most)
        flow->cap = most;
}

/* Arrays elsewhere: each goes over its way, all at the pace of the slowest. */
static void use_remote(struct sim *sim, struct sim_op *op, const struct sim_range *range)
{
    const struct sim_gpu *gpu = gpu_of(sim, op);
    struct sim_where own = {.place = SIM_DEVICE, .gpu = (int)op->gpu};
    struct sim_where other = sim_where(sim, range->at, range->bytes, 0);
    bool byte_wise = op->launch.kernel.family == SIM_COPY1;

    if (range->write)
        sim_path(sim, op->gpu, SIM_BY_KERNEL, &own, &other, &op->flow);
    else
        sim_path(sim, op->gpu, SIM_BY_KERNEL, &other, &own, &op->flow);
    lower_cap(&op->flow, byte_wise ? gpu->copy1_factor : 1,
              bytes_in_flight(gpu, op) / LINK_LATENCY_NS);
}

static void arrays_cost(struct sim *sim, struct sim_op *op, uint64_t bytes, uint64_t passes)
{
    struct sim_range range[SIM_RANGES];
    unsigned ranges = sim_kernel_ranges(&op->launch.kernel, &op->launch.args, range), first = 0;
    struct local local;

    if (!bytes || !passes)
        return;
    op->flow.amount = (double)bytes * (double)passes;
    if (op->launch.kernel.family == SIM_PASS && op->launch.kernel.pass == SIM_READ)
        first = 1; /* the sum is no array */
    local = look_local(sim, op, range + first, ranges - first, passes);
    for (unsigned i = first; i < ranges; i++)
        if (elsewhere(sim, op, range[i].at, range[i].bytes))
            use_remote(sim, op, &range[i]);
    if (local.arrays)
        use_local(sim, op, &local);
}

/* Over the link to one member, as a copy to it; the switches do the rest. */
static void multicast_cost(struct sim *sim, struct sim_op *op)
{
    const struct gpu_copy_args *args = &op->launch.args.copy;
    struct sim_range src = {(uintptr_t)args->src, args->bytes, false};
    struct sim_where dst = sim_where(sim, (uintptr_t)args->dst, args->bytes, 0);
    const struct sim_block *member[SIM_GPUS];
    unsigned n = sim_multicast_members(sim, dst.block, member, SIM_GPUS);
    struct local local;

    if (!args->bytes || !args->passes)
        return;
    op->flow.amount = (double)args->bytes * (double)args->passes;
    local = look_local(sim, op, &src, 1, args->passes);
    for (unsigned i = 0; i < n; i++)
        if (member[i]->gpu != op->gpu) {
            struct sim_range to = {member[i]->at, args->bytes, true};
            use_remote(sim, op, &to);
            break;
        }
    if (local.arrays)
        use_local(sim, op, &local);
}

static CUresult chase_cost(struct sim *sim, struct sim_op *op, double *delay_ns)
{
    const struct gpu_chase_args *args = &op->launch.args.chase;
    const struct sim_gpu *gpu = gpu_of(sim, op);
    struct sim_where where = sim_where(sim, (uintptr_t)args->start, 8, 0);
    uint64_t span;
    double hop = gpu->hbm_ns;
    CUresult rc = sim_chase(sim, args, &op->value, &span);

    if (rc)
        return rc;
    if (span <= gpu->l1_bytes && !op->launch.kernel.round_l1)
        hop = gpu->l1_ns; /* wherever the memory is */
    else if (where.gpu < 0)
        hop = gpu->host_ns;
    else if (where.block && where.block->foreign)
        hop = sim_link(&sim->machine, op->gpu, op->gpu ? 0 : 1)->hop_ns;
    else if (where.gpu != (int)op->gpu)
        hop = sim_link(&sim->machine, op->gpu, (unsigned)where.gpu)->hop_ns;
    else if (span <= gpu->l2_bytes)
        hop = gpu->l2_ns;
    *delay_ns += hop * (double)args->hops;
    return CUDA_SUCCESS;
}

/* The word must be where both sides can see it. */
static CUresult spin_cost(struct sim *sim, const struct gpu_spin_args *args)
{
    struct sim_where go = sim_where(sim, (uintptr_t)args->go, 4, 0);
    struct sim_where gave_up = sim_where(sim, (uintptr_t)args->gave_up, 4, 0);

    return go.bad || go.place == SIM_PAGEABLE || go.gpu >= 0 || gave_up.bad ||
                   gave_up.place == SIM_PAGEABLE
               ? CUDA_ERROR_ILLEGAL_ADDRESS
               : CUDA_SUCCESS;
}

CUresult sim_kernel_cost(struct sim *sim, struct sim_op *op, double *delay_ns)
{
    const struct sim_gpu *gpu = gpu_of(sim, op);
    const union sim_args *args = &op->launch.args;
    struct sim_range range[SIM_RANGES];
    unsigned ranges = sim_kernel_ranges(&op->launch.kernel, args, range);
    CUresult rc = check(sim, op, range, ranges);

    if (rc)
        return rc;
    *delay_ns += (op->in_graph ? gpu->graph_node_us : gpu->kernel_us) * 1e3;
    *delay_ns += migrate(sim, op, range, ranges);
    switch (op->launch.kernel.family) {
    case SIM_SPIN:
        return spin_cost(sim, &args->spin);
    case SIM_EMPTY:
        break;
    case SIM_CHASE:
        return chase_cost(sim, op, delay_ns);
    case SIM_PASS:
        arrays_cost(sim, op, args->pass.bytes, args->pass.passes);
        break;
    case SIM_COPY16:
    case SIM_COPY1:
        arrays_cost(sim, op, args->copy.bytes, args->copy.passes);
        break;
    case SIM_MULTICAST:
        multicast_cost(sim, op);
        break;
    case SIM_FILL:
        arrays_cost(sim, op, args->fill.count * gpu_value_bytes(args->fill.type), 1);
        break;
    }
    return CUDA_SUCCESS;
}
