/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to take one sample of a GPU's copies: see gpu_copy.h. */
#include <math.h>

#include "core/gpu/gpu_copy.h"
#include "core/stats.h"

/* An engine that begins and ends costs some us between the events, which shall stay far under 1 %. */
#define SAMPLE_NS 4000000u
#define FINER     4 /* several lanes: more copies of each, so that they end together */

void gpu_copy_level_add(struct gpu_copy_level *l, double value)
{
    l->last[l->n++ % GPU_COPY_RATIOS] = value;
}

double gpu_copy_level_median(const struct gpu_copy_level *l)
{
    return l->n ? stats_median(l->last, l->n < GPU_COPY_RATIOS ? l->n : GPU_COPY_RATIOS) : NAN;
}

enum gpu_copy_how gpu_copy_how_of(const struct gpu_copy *c)
{
    bool managed = gpu_copy_host_end(c) >= 0 && c->memory == COPY_MANAGED;

    if (managed)
        return c->engine == COPY_SM ? GPU_COPY_FAULTS : GPU_COPY_MIGRATE;
    return c->engine == COPY_SM ? GPU_COPY_KERNEL : GPU_COPY_ENGINE;
}

static int keep_time(struct gpu_copy *c, int err, uint64_t ns, uint64_t inner)
{
    if (!err)
        gpu_copy_level_add(&c->time_ns, (double)ns / (double)inner);
    return err;
}

static int run_one(struct gpu_copy *c, uint64_t inner, uint64_t *ns)
{
    uint64_t span;
    int err = gpu_copy_time_by_events(c->all, 1, inner, &c->alone, ns, &span);

    return keep_time(c, err, *ns, inner);
}

static int run_both(struct gpu_copy *c, uint64_t inner, uint64_t *ns)
{
    int err = gpu_copy_time_by_events(c->all, 2, inner, &c->alone, ns, &ns[2]);

    if (!err)
        gpu_copy_level_add(&c->overlap, c->alone.overlap);
    return keep_time(c, err, ns[2], inner);
}

static int run_by_host(struct gpu_copy *c, uint64_t inner, uint64_t *ns)
{
    int err = gpu_copy_time_by_host(c->all[0], inner, ns);

    return keep_time(c, err, *ns, inner);
}

static int run_moving(struct gpu_copy *c, uint64_t inner, uint64_t *ns)
{
    int err = gpu_copy_time_moving(c->all[0], inner, ns);

    return keep_time(c, err, *ns, inner);
}

static bool by_host_clock(const struct gpu_copy *c)
{
    bool buffered =
        gpu_copy_host_end(c) >= 0 && (c->memory == COPY_PAGEABLE || c->memory == COPY_HUGE ||
                                      c->memory == COPY_HUGETLB || c->memory == COPY_MANAGED);

    return buffered || c->params->metric == COPY_LATENCY;
}

void gpu_copy_choose_run(struct point *pt, struct gpu_copy *c)
{
    enum gpu_copy_how h = gpu_copy_how_of(c);

    if (h == GPU_COPY_MIGRATE || h == GPU_COPY_FAULTS)
        c->run = run_moving;
    else if (by_host_clock(c))
        c->run = run_by_host;
    else if (c->gpus > 1)
        c->run = gpu_copy_run_together;
    else
        c->run = c->each == 2 ? run_both : run_one;
    if (c->params->metric == COPY_LOAD_LATENCY)
        c->run = gpu_copy_run_chain;
    if (c->params->metric == COPY_LATENCY)
        pt->sample_ns = 0;
    else
        pt->sample_ns = c->each * c->gpus > 1 ? SAMPLE_NS * FINER : SAMPLE_NS;
    if (!by_host_clock(c))
        pt->max_inner = gpu_copy_most(c->each * c->gpus, c->lanes[0].staged);
    point_column(pt, "clock", "%s", by_host_clock(c) ? "host" : "events");
}
