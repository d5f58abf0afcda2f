/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation that begins now will take, or how it fails. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

static const struct sim_gpu *gpu_of(const struct sim *sim, const struct sim_op *op)
{
    return &sim->machine.gpu[op->gpu];
}

static bool shut(const struct sim_where *where, unsigned gpu)
{
    return where->block && where->block->by_handle &&
           (where->block->multicast || !(where->block->access >> gpu & 1));
}

static CUresult copy_cost(struct sim *sim, struct sim_op *op, double *delay_ns)
{
    struct sim_where from = sim_where(sim, op->copy.src, op->copy.bytes, op->node);
    struct sim_where to = sim_where(sim, op->copy.dst, op->copy.bytes, op->node);

    if (op->copy.staged)
        from = (struct sim_where){.place = SIM_PAGEABLE, .gpu = -1, .node = op->node};
    if (from.bad || to.bad || shut(&from, op->gpu) || shut(&to, op->gpu))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    op->flow.amount = (double)op->copy.bytes;
    *delay_ns += sim_path(sim, op->gpu, SIM_BY_ENGINE, &from, &to, &op->flow);
    return CUDA_SUCCESS;
}

static CUresult set_cost(struct sim *sim, struct sim_op *op, double *delay_ns)
{
    const struct sim_gpu *gpu = gpu_of(sim, op);
    struct sim_where to = sim_where(sim, op->set.at, op->set.bytes, op->node);
    struct sim_where own = {.place = SIM_DEVICE, .gpu = (int)op->gpu};

    if (to.bad || to.place == SIM_PAGEABLE || shut(&to, op->gpu))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    op->flow.amount = (double)op->set.bytes;
    if (to.gpu != own.gpu) {
        *delay_ns += sim_path(sim, op->gpu, SIM_BY_ENGINE, &own, &to, &op->flow);
        return CUDA_SUCCESS;
    }
    op->flow.cap = gpu->memset_gbps;
    sim_flow_use(&op->flow, sim_resource_memory(op->gpu),
                 gpu->memset_gbps > gpu->hbm_gbps ? gpu->hbm_gbps / gpu->memset_gbps : 1);
    *delay_ns += gpu->memset_latency_us * 1e3;
    return CUDA_SUCCESS;
}

static CUresult prefetch_cost(struct sim *sim, struct sim_op *op, double *delay_ns)
{
    struct sim_where at = sim_where(sim, op->prefetch.at, op->prefetch.bytes, 0);
    struct sim_where from = at, to = at;
    uint64_t bytes;

    if (at.bad || at.place != SIM_MANAGED)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    bytes = sim_managed_away(sim, op->prefetch.at, op->prefetch.bytes, op->prefetch.to);
    to.gpu = op->prefetch.to;
    if (from.gpu == to.gpu) /* its first page is there; the others are where they were */
        from.gpu = to.gpu < 0 ? (int)op->gpu : -1;
    op->flow.amount = (double)bytes;
    *delay_ns += sim_path(sim, op->gpu, SIM_BY_ENGINE, &from, &to, &op->flow);
    sim_managed_move(sim, op->prefetch.at, op->prefetch.bytes, op->prefetch.to);
    return CUDA_SUCCESS;
}

static bool zeros(struct sim *sim, const struct sim_range *range)
{
    const unsigned char *at = sim_bytes(sim, range->at);

    for (uint64_t i = 0; i < range->bytes && i < 1024; i++)
        if (at[i])
            return false;
    return true;
}

static CUresult task_cost(struct sim *sim, struct sim_op *op)
{
    const struct sim_fault *throttle = sim_fault_has(&sim->machine, SIM_THROTTLE, (int)op->gpu, -1);
    bool all_zeros = true;

    if (throttle && !sim_fault_holds(throttle, sim->now_ns))
        throttle = NULL;
    for (unsigned i = 0; i < op->task.ranges; i++) {
        const struct sim_range *range = &op->task.range[i];
        struct sim_where where = sim_where(sim, range->at, range->bytes, 0);

        if (where.bad || where.place == SIM_PAGEABLE ||
            (where.gpu >= 0 && where.gpu != (int)op->gpu && !sim->device[op->gpu].peer[where.gpu]))
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        all_zeros = all_zeros && (range->write || zeros(sim, range));
    }
    op->flow.amount =
        op->task.ns / (throttle ? throttle->factor : 1) / (all_zeros ? op->task.zeros_factor : 1);
    op->flow.cap = 1;
    sim_flow_use(&op->flow, sim_resource_cores(op->gpu), 1);
    return CUDA_SUCCESS;
}

static const char *name_of(const struct sim_op *op)
{
    switch (op->kind) {
    case SIM_OP_COPY:
        return "copy";
    case SIM_OP_SET:
        return "set";
    case SIM_OP_PREFETCH:
        return "prefetch";
    case SIM_OP_KERNEL:
        return op->launch.kernel.name;
    case SIM_OP_TASK:
        return op->task.name;
    default:
        return NULL;
    }
}

/* A test can wait for it. */
static void tell_hung(void)
{
    const char *path = getenv("PLUMB_SIM_HUNG");
    FILE *file = path ? fopen(path, "w") : NULL;

    if (file)
        fclose(file);
}

static CUresult struck(struct sim *sim, struct sim_op *op, double *delay_ns)
{
    static const struct {
        enum sim_fault_kind kind;
        CUresult error;
    } failures[] = {{SIM_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED},
                    {SIM_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS},
                    {SIM_ECC, CUDA_ERROR_ECC_UNCORRECTABLE}};
    bool kernel = op->kind == SIM_OP_KERNEL || op->kind == SIM_OP_TASK;
    struct sim_event event = {.gpu = (int)op->gpu, .peer = -1, .kernel = name_of(op)};
    struct sim_range range[SIM_RANGES];
    unsigned ranges = sim_op_ranges(op, range);

    if (sim_fault_strikes(&sim->machine, SIM_LOST, event)) {
        sim->device[op->gpu].lost = true;
        return CUDA_ERROR_UNKNOWN; /* as when it has fallen off the bus */
    }
    for (unsigned i = 0; kernel && i < 3; i++)
        if (sim_fault_strikes(&sim->machine, failures[i].kind, event)) {
            sim->device[op->gpu].ecc_errors += failures[i].kind == SIM_ECC;
            return failures[i].error;
        }
    if (sim_fault_strikes(&sim->machine, SIM_HANG, event)) {
        *delay_ns = SIM_NEVER;
        tell_hung();
    }
    for (unsigned i = 0; i < ranges; i++)
        if (range[i].write && range[i].bytes) {
            op->corrupt = sim_fault_strikes(&sim->machine, SIM_CORRUPT, event) != NULL;
            break;
        }
    return CUDA_SUCCESS;
}

static void hiccup(struct sim *sim, const struct sim_op *op, double *delay_ns)
{
    const struct sim_gpu *gpu = gpu_of(sim, op);

    if (gpu->hiccup_every && ++sim->device[op->gpu].operations % gpu->hiccup_every == 0)
        *delay_ns += gpu->hiccup_us * 1e3;
}

CUresult sim_cost(struct sim *sim, struct sim_op *op, double *delay_ns)
{
    CUresult rc;

    *delay_ns = 0;
    op->flow = (struct sim_flow){.cap = SIM_NEVER};
    if (op->kind == SIM_OP_RECORD || op->kind == SIM_OP_AFTER || op->kind == SIM_OP_FREE)
        return CUDA_SUCCESS;
    rc = struck(sim, op, delay_ns);
    if (rc)
        return rc;
    hiccup(sim, op, delay_ns);
    switch (op->kind) {
    case SIM_OP_COPY:
        return copy_cost(sim, op, delay_ns);
    case SIM_OP_SET:
        return set_cost(sim, op, delay_ns);
    case SIM_OP_PREFETCH:
        return prefetch_cost(sim, op, delay_ns);
    case SIM_OP_KERNEL:
        return sim_kernel_cost(sim, op, delay_ns);
    default:
        return task_cost(sim, op);
    }
}
