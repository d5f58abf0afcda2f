/* SPDX-License-Identifier: Apache-2.0 */
/* Which copies with a GPU there are, and what is said of those that there are not: see gpu_copy.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/gpu/gpu_copy.h"

#define KEPT_FREE ((uint64_t)64 << 20) /* of a GPU's memory, for the driver itself */

static int refuse(struct point *pt, const char *why)
{
    return point_reason(pt, -EOPNOTSUPP, "%s", why);
}

static bool pages_of_host(enum copy_memory memory)
{
    return memory == COPY_PAGEABLE || memory == COPY_HUGE || memory == COPY_HUGETLB;
}

static bool wants_together(const struct gpu_copy *c)
{
    return strcmp(c->params->together, "none") != 0;
}

/* What the options came to. Those that say nothing between these ends are empty already. */
static void show_options(struct point *pt, const struct gpu_copy *c)
{
    point_option(pt, "engine", "%s", copy_engines[c->engine]);
    if (gpu_copy_host_end(c) >= 0)
        point_option(pt, "memory", "%s", copy_memories[c->memory]);
    if (c->params->metric == COPY_LOAD_LATENCY && gpu_copy_peers(c))
        point_option(pt, "op", "%s", copy_ops[COPY_READ]);
}

static int refuse_engine(struct point *pt, const struct gpu_copy *c)
{
    if (c->engine < COPY_CE)
        return point_reason(pt, -EOPNOTSUPP,
                            "'%s' copies between places of the host: with a GPU at an end take "
                            "--engine ce or sm",
                            copy_engines[c->engine]);
    if (c->params->inject == COPY_PEER_DIES)
        return refuse(pt, "there is no other process that could die");
    return 0;
}

static int refuse_metric(struct point *pt, const struct gpu_copy *c)
{
    const struct copy_params *p = c->params;

    if (p->metric == COPY_BANDWIDTH)
        return 0;
    if (p->direction == COPY_BOTH)
        return refuse(pt, "a latency is that of one copy at a time: take --direction one-way");
    if (wants_together(c) && gpu_copy_host_end(c) >= 0)
        return refuse(pt, "a latency is that of one copy at a time: take --together none");
    if (p->metric == COPY_LATENCY)
        return 0;
    if (c->engine != COPY_SM)
        return refuse(pt, "loads are a kernel's: take --engine sm");
    if (gpu_copy_host_end(c) == 1)
        return refuse(pt, "a GPU loads from the source: make it the destination");
    return 0;
}

/* Memory that the driver copies through a buffer of its own while the call lasts, or that moves. */
static int refuse_memory(struct point *pt, const struct gpu_copy *c)
{
    bool several = c->params->direction == COPY_BOTH || wants_together(c);

    if (gpu_copy_host_end(c) < 0)
        return 0;
    if (pages_of_host(c->memory) && c->engine == COPY_SM)
        return point_reason(
            pt, -EOPNOTSUPP,
            "a kernel does not reach '%s' memory: take --memory pinned, or --engine "
            "ce",
            copy_memories[c->memory]);
    if (pages_of_host(c->memory) && several)
        return point_reason(pt, -EOPNOTSUPP,
                            "a copy of '%s' memory keeps its thread until it is done, so that "
                            "several do not run at once: take --memory pinned",
                            copy_memories[c->memory]);
    /* Its address in the device need not be the host's, and where it is not, a kernel that takes the
     * host's is the end of the context. */
    if (c->memory == COPY_WRITE_COMBINED && c->engine == COPY_SM)
        return refuse(pt, "a kernel does not read or write write-combined memory: take --memory "
                          "pinned, or --engine ce");
    if (c->memory != COPY_MANAGED)
        return 0;
    if (several)
        return refuse(pt, "managed memory is moved one way at a time: take --direction one-way and "
                          "--together none");
    if (c->params->metric == COPY_LOAD_LATENCY)
        return refuse(pt,
                      "managed memory moves to the GPU that loads from it: take --memory pinned");
    if (c->engine == COPY_SM && gpu_copy_host_end(c) == 1)
        return refuse(pt, "managed pages go back to the host by the CPU's faults, not by a kernel: "
                          "--engine ce moves them");
    return 0;
}

void gpu_copy_resolve(struct point *pt, struct gpu_copy *c)
{
    const struct copy_params *p = c->params;

    c->engine = p->engine;
    c->memory = p->memory;
    if (c->engine == COPY_ENGINE_AUTO)
        c->engine = p->metric == COPY_LOAD_LATENCY ? COPY_SM : COPY_CE;
    if (c->memory == COPY_MEMORY_AUTO)
        c->memory = COPY_PINNED;
    show_options(pt, c);
}

static int refuse_peers(struct point *pt, const struct gpu_copy *c)
{
    const struct gpu_ops *ops = gpu_ops(c->gpu[0]);
    struct gpu_link there = {0}, back = {0};
    int err = ops->link(c->ends[0].index, c->ends[1].index, &there);

    if (!err)
        err = ops->link(c->ends[1].index, c->ends[0].index, &back);
    if (err)
        return gpu_copy_failed(pt, c, err);
    if (c->params->access == COPY_STAGED) {
        point_column(pt, "path", "through host memory");
        if (c->engine == COPY_SM)
            return refuse(pt, "a kernel reaches another GPU's memory by peer access alone: take "
                              "--access on, or --engine ce");
        return 0;
    }
    if (!there.access || !back.access)
        return point_reason(
            pt, -EOPNOTSUPP,
            "%s:%u and %s:%u have no peer access, says the driver: look at the IOMMU "
            "and at ACS, in a guest at its topology; --access off measures the way "
            "through host memory",
            ops->name, c->ends[0].index, ops->name, c->ends[1].index);
    if (there.performance >= 0)
        point_column(pt, "path", "peer access, rank %d%s", there.performance,
                     there.atomics ? ", atomics" : "");
    else
        point_column(pt, "path", "peer access%s", there.atomics ? ", atomics" : "");
    return 0;
}

static int refuse_host(struct point *pt, const struct gpu_copy *c)
{
    const struct gpu_facts *facts = &gpu_base(gpu_copy_main(c))->facts;

    if (c->memory == COPY_PINNED_HUGE && !facts->host_register)
        return refuse(pt, "this GPU's driver does not page-lock memory that is there already: take "
                          "--memory pinned");
    if (c->memory == COPY_MANAGED && (!facts->managed || !facts->managed_concurrent))
        return refuse(pt,
                      "here managed memory does not move by page faults: that takes Linux, a GPU "
                      "from Pascal on, and no vGPU without unified memory");
    return 0;
}

int gpu_copy_refuse(struct point *pt, struct gpu_copy *c)
{
    const struct gpu_facts *facts = &gpu_base(gpu_copy_main(c))->facts;
    int err = refuse_engine(pt, c);

    if (err || (err = refuse_metric(pt, c)) || (err = refuse_memory(pt, c)))
        return err;
    if (gpu_copy_local(c))
        point_column(pt, "path", "within the GPU");
    if (c->engine == COPY_CE && c->params->direction == COPY_BOTH && facts->copy_engines == 1)
        point_reason(pt, 0, "this GPU has one copy engine: the directions take turns");
    if (gpu_copy_peers(c))
        return refuse_peers(pt, c);
    return gpu_copy_local(c) ? 0 : refuse_host(pt, c);
}

static int too_large(struct point *pt, uint64_t needed, uint64_t available, const char *where)
{
    return point_reason(pt, -EOPNOTSUPP, "%llu MiB are needed %s, %llu are free",
                        (unsigned long long)(needed >> 20), where,
                        (unsigned long long)(available >> 20));
}

static int fits_in_gpu(struct point *pt, const struct gpu_copy *c, struct gpu *gpu)
{
    uint64_t buffers = c->each, available = 0;
    char where[24];

    if (gpu_copy_local(c) || (c->memory == COPY_MANAGED && c->engine == COPY_SM))
        buffers *= 2;
    int err = gpu_ops(gpu)->free_bytes(gpu, &available);
    if (err)
        return point_gpu_failed(pt, gpu, err);
    snprintf(where, sizeof(where), "on %s:%u", gpu_ops(gpu)->name, gpu_base(gpu)->index);
    available = available > KEPT_FREE ? available - KEPT_FREE : 0;
    if (c->params->size > available / buffers)
        return too_large(pt, c->params->size * buffers, available, where);
    return 0;
}

static int fits_in_host(struct point *pt, const struct gpu_copy *c)
{
    uint64_t buffers = (uint64_t)c->each * c->gpus, available = device_host.available();

    available -= available / 8;
    if (c->params->size > available / buffers)
        return too_large(pt, c->params->size * buffers, available, "of the host");
    return 0;
}

int gpu_copy_fits(struct point *pt, const struct gpu_copy *c)
{
    int err = gpu_copy_host_end(c) < 0 ? 0 : fits_in_host(pt, c);

    for (int end = 0; !err && end < 2; end++)
        if (c->gpu[end])
            err = fits_in_gpu(pt, c, c->gpu[end]);
    for (unsigned g = 1; !err && g < c->gpus; g++)
        err = fits_in_gpu(pt, c, c->others[g]);
    return err;
}
