/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels do to the data, bit for bit: gpu_kernels.h says it. */
#include "tests/sim/sim.h"

#include <math.h>
#include <string.h>

/* A pass of one type over arrays that the host can follow. Written out for both, so that the compiler
 * vectorises it. */
#define PASS(type, fused)                                                                          \
    static void pass_##type(enum sim_pass pass, type *dst, const type *a, const type *b,           \
                            uint64_t count, type s)                                                \
    {                                                                                              \
        if (pass == SIM_WRITE)                                                                     \
            for (uint64_t i = 0; i < count; i++)                                                   \
                dst[i] = s;                                                                        \
        else if (pass == SIM_PASS_COPY)                                                            \
            memmove(dst, a, count * sizeof(type));                                                 \
        else if (pass == SIM_SCALE)                                                                \
            for (uint64_t i = 0; i < count; i++)                                                   \
                dst[i] = s * a[i];                                                                 \
        else if (pass == SIM_ADD)                                                                  \
            for (uint64_t i = 0; i < count; i++)                                                   \
                dst[i] = a[i] + b[i];                                                              \
        else if (pass == SIM_TRIAD)                                                                \
            for (uint64_t i = 0; i < count; i++)                                                   \
                dst[i] = fused(s, b[i], a[i]);                                                     \
    }

#if defined(__x86_64__)
#define FUSED __attribute__((target_clones("arch=haswell", "default")))
#else
#define FUSED
#endif
FUSED PASS(float, fmaf)
FUSED PASS(double, fma)

    static uint64_t sum_words(const uint32_t *words, uint64_t count)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < count; i++)
        sum += words[i];
    return sum;
}

static bool overlap(uintptr_t a, uintptr_t b, uint64_t bytes)
{
    return a < b + bytes && b < a + bytes;
}

static void run_pass(struct sim *sim, struct sim_op *op)
{
    const struct sim_kernel *k = &op->launch.kernel;
    const struct gpu_pass_args *args = &op->launch.args.pass;
    void *dst = sim_bytes(sim, (uintptr_t)args->dst);
    const void *a = sim_bytes(sim, (uintptr_t)args->a), *b = sim_bytes(sim, (uintptr_t)args->b);
    uint64_t *sum = sim_bytes(sim, (uintptr_t)args->sum);
    bool again = overlap((uintptr_t)args->dst, (uintptr_t)args->a, args->bytes) ||
                 overlap((uintptr_t)args->dst, (uintptr_t)args->b, args->bytes);

    if (k->pass == SIM_READ) {
        op->value = sum_words(a, args->bytes / 4);
        *sum += op->value * args->passes;
        return;
    }
    /* Another pass over other arrays than it writes does the same again. */
    for (uint64_t i = 0; i < (again ? args->passes : args->passes > 0); i++)
        if (k->element_bytes == 8)
            pass_double(k->pass, dst, a, b, args->bytes / 8, args->scalar);
        else
            pass_float(k->pass, dst, a, b, args->bytes / 4, (float)args->scalar);
}

static void run_fill(struct sim *sim, const struct gpu_fill_args *args)
{
    unsigned bytes = gpu_value_bytes(args->type);
    unsigned char *at = sim_bytes(sim, (uintptr_t)args->dst);

    if (args->kind == GPU_ZEROS) {
        memset(at, 0, args->count * bytes);
        return;
    }
    for (uint64_t i = 0; i < args->count; i++) {
        uint64_t bits = gpu_value_bits(args->type, args->kind, args->seed, args->first + i);

        memcpy(at + i * bytes, &bits, bytes); /* little endian, as the devices are */
    }
}

CUresult sim_chase(struct sim *sim, const struct gpu_chase_args *args, uint64_t *end,
                   uint64_t *span_bytes)
{
    uintptr_t at = (uintptr_t)args->start, low = at, high = at;
    const struct sim_block *block = sim_space_find(sim, at);
    const unsigned char *bytes;

    if (!block || block->bytes < sizeof(uint64_t))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    bytes = sim_bytes(sim, block->at);
    for (uint64_t i = 0; i < args->hops; i++) {
        if (at < block->at || at - block->at > block->bytes - sizeof(uint64_t))
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (at % sizeof(uint64_t))
            return CUDA_ERROR_MISALIGNED_ADDRESS;
        low = at < low ? at : low;
        high = at > high ? at : high;
        at = *(const uint64_t *)(bytes + (at - block->at));
    }
    *end = at;
    *span_bytes = high - low + sizeof(uint64_t);
    return CUDA_SUCCESS;
}

static void run_chase(struct sim *sim, const struct sim_op *op)
{
    uint64_t *end = sim_bytes(sim, (uintptr_t)op->launch.args.chase.end);

    *end = op->value;
}

static void run_copy(struct sim *sim, const struct gpu_copy_args *args)
{
    if (args->passes)
        memmove(sim_bytes(sim, (uintptr_t)args->dst), sim_bytes(sim, (uintptr_t)args->src),
                args->bytes);
}

static void run_multicast(struct sim *sim, const struct gpu_copy_args *args)
{
    const struct sim_block *block = sim_space_find(sim, (uintptr_t)args->dst), *member[SIM_GPUS];
    unsigned n = sim_multicast_members(sim, block, member, SIM_GPUS);
    uintptr_t offset = (uintptr_t)args->dst - block->at;

    for (unsigned i = 0; args->passes && i < n; i++) {
        memmove(sim_bytes(sim, member[i]->at + offset), sim_bytes(sim, (uintptr_t)args->src),
                args->bytes);
        sim_forget(sim, member[i]->at + offset, args->bytes);
    }
}

static void run_spin(struct sim *sim, const struct sim_op *op)
{
    uint32_t *gave_up = sim_bytes(sim, (uintptr_t)op->launch.args.spin.gave_up);

    if (op->gave_up)
        *gave_up = 1;
}

void sim_kernel_run(struct sim *sim, struct sim_op *op)
{
    switch (op->launch.kernel.family) {
    case SIM_SPIN:
        run_spin(sim, op);
        break;
    case SIM_EMPTY:
        break;
    case SIM_PASS:
        run_pass(sim, op);
        break;
    case SIM_CHASE:
        run_chase(sim, op);
        break;
    case SIM_COPY16:
    case SIM_COPY1:
        run_copy(sim, &op->launch.args.copy);
        break;
    case SIM_MULTICAST:
        run_multicast(sim, &op->launch.args.copy);
        break;
    case SIM_FILL:
        run_fill(sim, &op->launch.args.fill);
        break;
    }
}
