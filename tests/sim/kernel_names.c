/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels by their names, as gpu_kernels.h has them. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum sim_kernel_family family;
    size_t args_bytes;
} plain[] = {
    {"spin", SIM_SPIN, sizeof(struct gpu_spin_args)},
    {"empty", SIM_EMPTY, sizeof(struct gpu_empty_args)},
    {"chase", SIM_CHASE, sizeof(struct gpu_chase_args)},
    {"chase_sys", SIM_CHASE, sizeof(struct gpu_chase_args)},
    {"copy16", SIM_COPY16, sizeof(struct gpu_copy_args)},
    {"multicast16", SIM_MULTICAST, sizeof(struct gpu_copy_args)},
    {"copy1", SIM_COPY1, sizeof(struct gpu_copy_args)},
    {"fill", SIM_FILL, sizeof(struct gpu_fill_args)},
};

static const char *const passes[] = {
    [SIM_READ] = "read",   [SIM_WRITE] = "write", [SIM_PASS_COPY] = "copy",
    [SIM_SCALE] = "scale", [SIM_ADD] = "add",     [SIM_TRIAD] = "triad",
};

static bool pass_by_name(const char *name, struct sim_kernel *k)
{
    static const unsigned registers[] = {[1] = 32, [2] = 32, [4] = 40, [8] = 64};
    char made[40];

    for (unsigned op = 0; op < sizeof(passes) / sizeof(*passes); op++)
        for (unsigned wide = 0; wide < 2; wide++)
            for (unsigned u = 1; u <= 8; u *= 2)
                for (unsigned cs = 0; cs < 2; cs++) {
                    snprintf(made, sizeof(made), "%s_%s_u%u%s", passes[op], wide ? "f64" : "f32", u,
                             cs ? "_cs" : "");
                    if (strcmp(made, name))
                        continue;
                    k->family = SIM_PASS;
                    k->pass = (enum sim_pass)op;
                    k->element_bytes = wide ? 8 : 4;
                    k->unroll = u;
                    k->registers = registers[u];
                    k->streaming = cs;
                    k->args_bytes = sizeof(struct gpu_pass_args);
                    return true;
                }
    return false;
}

bool sim_kernel_by_name(const char *name, struct sim_kernel *k)
{
    *k = (struct sim_kernel){.registers = 32, .unroll = 4};
    if (strlen(name) >= sizeof(k->name))
        return false;
    memcpy(k->name, name, strlen(name) + 1);
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (!strcmp(plain[i].name, name)) {
            k->family = plain[i].family;
            k->args_bytes = plain[i].args_bytes;
            k->round_l1 = !strcmp(name, "chase_sys");
            return true;
        }
    return pass_by_name(name, k);
}

unsigned sim_kernel_occupancy(const struct sim_gpu *gpu, const struct sim_kernel *k, unsigned block)
{
    unsigned warps = (block + 31) / 32, by_threads, by_registers, blocks = 32;

    if (!block || block > 1024)
        return 0;
    by_threads = gpu->max_threads_per_sm / (warps * 32);
    by_registers = 65536 / (warps * 32 * k->registers);
    blocks = by_threads < blocks ? by_threads : blocks;
    return by_registers < blocks ? by_registers : blocks;
}

static unsigned add(struct sim_range *range, unsigned n, const volatile void *at, uint64_t bytes,
                    bool write)
{
    range[n] = (struct sim_range){(uintptr_t)at, bytes, write};
    return n + 1;
}

static unsigned pass_ranges(const struct sim_kernel *k, const struct gpu_pass_args *args,
                            struct sim_range *range)
{
    bool two = k->pass == SIM_ADD || k->pass == SIM_TRIAD;
    unsigned n = 0;

    if (k->pass != SIM_READ)
        n = add(range, n, args->dst, args->bytes, true);
    else
        n = add(range, n, args->sum, sizeof(uint64_t), true);
    if (k->pass != SIM_WRITE)
        n = add(range, n, args->a, args->bytes, false);
    if (two)
        n = add(range, n, args->b, args->bytes, false);
    return n;
}

/* The memory that a kernel touches. Of a chain, the part that is known beforehand. */
unsigned sim_kernel_ranges(const struct sim_kernel *k, const union sim_args *args,
                           struct sim_range range[SIM_RANGES])
{
    unsigned n = 0;

    switch (k->family) {
    case SIM_PASS:
        n = pass_ranges(k, &args->pass, range);
        break;
    case SIM_COPY16:
    case SIM_COPY1:
    case SIM_MULTICAST:
        n = add(range, n, args->copy.dst, args->copy.bytes, true);
        n = add(range, n, args->copy.src, args->copy.bytes, false);
        break;
    case SIM_FILL:
        n = add(range, n, args->fill.dst, args->fill.count * gpu_value_bytes(args->fill.type),
                true);
        break;
    case SIM_CHASE:
        n = add(range, n, args->chase.end, sizeof(uint64_t), true);
        n = add(range, n, args->chase.start, sizeof(uint64_t), false);
        break;
    default:
        break;
    }
    return n;
}
