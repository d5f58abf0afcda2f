/* SPDX-License-Identifier: Apache-2.0 */
/* memory on a GPU: what is the same for every operation. See gpu_memory.h. */
#include "benches/memory/gpu_memory.h"

#include <errno.h>
#include <string.h>

#include "core/hw/place.h"

#define L1_SURE_BYTES  ((uint64_t)32 << 10)
#define L1_NEVER_BYTES ((uint64_t)512 << 10)
#define GDDR_BITS_MAX  512u
#define KEPT_FREE      16u /* a 16th of the memory that is free is left alone */

/* Sizes of any GPU, four times apart; those that one has not got are skipped with the reason. */
#define SIZES "256K..4Gx4"
/* A set so many times L2 takes next to nothing from it: with less, marked stores and random order leave
 * up to a quarter there, and a row in HBM would be faster than HBM. */
#define PAST_L2       8
#define SIZES_LATENCY "16K..1Gx4"

int memory_defaults(struct opts *o)
{
    const struct opt_values *devices = opts_values(o, "device"), *ops = opts_values(o, "op");
    bool gpu = false, latency = ops && ops->n;

    for (size_t i = 0; devices && i < devices->n; i++)
        gpu = gpu || strcmp(devices->texts[i], "host") != 0;
    for (size_t i = 0; ops && i < ops->n; i++)
        latency = latency && !strcmp(ops->texts[i], memory_ops[MEMORY_LATENCY]);
    if (!gpu)
        return opts_default(o, "size", latency ? memory_host_latency_sizes() : NULL);
    return opts_default(o, "size", latency ? SIZES_LATENCY : SIZES);
}

const char *gpu_memory_level(const struct gpu_facts *facts, uint64_t set_bytes)
{
    if (!facts->l2_bytes)
        return "";
    if (set_bytes <= facts->l2_bytes / 2)
        return "L2";
    if (set_bytes < PAST_L2 * facts->l2_bytes)
        return "";
    return facts->memory_bus_bits > GDDR_BITS_MAX ? "HBM" : "DRAM";
}

const char *gpu_latency_level(const struct gpu_facts *facts, uint64_t set_bytes)
{
    if (set_bytes <= L1_SURE_BYTES)
        return "L1";
    return set_bytes < L1_NEVER_BYTES ? "" : gpu_memory_level(facts, set_bytes);
}

int gpu_memory_refuse(struct point *pt, const struct memory_params *p)
{
    if (p->engine != MEMORY_DRIVER)
        return 0;
    if (p->op == MEMORY_LATENCY)
        return point_reason(pt, -EOPNOTSUPP, "the driver has nothing for latency: --engine kernel");
    if (p->op != KERNEL_COPY && p->op != KERNEL_WRITE)
        return point_reason(pt, -EOPNOTSUPP,
                            "the driver has a copy and a set (--op copy,write), no '%s'",
                            memory_ops[p->op]);
    return 0;
}

static int check_room(struct point *pt, struct gpu *gpu, uint64_t set_bytes)
{
    uint64_t free_bytes;
    int err = gpu_ops(gpu)->free_bytes(gpu, &free_bytes);

    if (err)
        return point_gpu_failed(pt, gpu, err);
    if (set_bytes > free_bytes - free_bytes / KEPT_FREE)
        return point_reason(pt, -EOPNOTSUPP, "not enough memory: %llu MiB of the GPU's are free",
                            (unsigned long long)(free_bytes >> 20));
    return 0;
}

int gpu_memory_open(struct point *pt, const struct memory_params *p, uint64_t set_bytes,
                    struct gpu **gpu)
{
    char error[160];
    struct place place;
    int err = place_find(p->device, point_topo(pt), &place, error, sizeof(error));

    *gpu = NULL;
    if (err)
        return point_reason(pt, err, "%s", error);
    point_option(pt, "device", "%s", place_name(place).text);
    point_column(pt, "working_set", "%llu", (unsigned long long)set_bytes);
    err = point_gpu(pt, place.index, gpu);
    if (err)
        return err;
    const struct gpu_facts *facts = &gpu_base(*gpu)->facts;
    point_column(pt, "address", "%s", facts->address);
    point_column(pt, "level", "%s",
                 p->op == MEMORY_LATENCY ? gpu_latency_level(facts, set_bytes)
                                         : gpu_memory_level(facts, set_bytes));
    return check_room(pt, *gpu, set_bytes);
}
