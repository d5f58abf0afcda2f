/* SPDX-License-Identifier: Apache-2.0 */
/* launch: what it costs to make a GPU do something, by the host's clock.
 *
 * Timed: sample() -> launch_once(), or launch_many() of launch-rate -> the `once` of an operation: the
 * first functions of gpu_launch.c, which call the driver. */
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "benches/launch/gpu_launch.h"
#include "core/alloc.h"
#include "core/bench/bench.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_watch.h"
#include "core/hw/host_buffer.h"
#include "core/hw/place.h"
#include "core/hw/topo.h"
#include "core/row.h"

/* For a percentile to p99.9; and one at least 10 ms long, of which 200 do. */
#define MIN_SAMPLES    "10000"
#define MANY_SAMPLE_NS 10000000u
#define MANY_SAMPLES   200

#define KEPT_FREE 16 /* a 16th of the memory that is free is left to others */

#define NODE_NEAR (-2) /* that of the GPU */

struct params {
    const char *device;
    int op, node;
    uint64_t nodes, size;
};

struct state {
    const struct params *params;
    struct launch launch;
    bool open, bound;
};

static int set_defaults(struct opts *o)
{
    return opts_default(o, "min-samples", MIN_SAMPLES);
}

static int possible(struct point *pt)
{
    const struct params *p = pt->params;

    if (!point_topo(pt))
        return -EIO;
    if (p->node >= 0 && !placement_has_node(point_topo(pt), p->node))
        return point_reason(pt, -EOPNOTSUPP, "this machine has no NUMA node %d", p->node);
    return 0;
}

/* Memory that the operation takes must be there: else it is not the call that is measured. */
static int check_room(struct point *pt, struct gpu *gpu, const struct launch_op *op, uint64_t bytes)
{
    bool twice = op->flags & LAUNCH_KEEPS && bytes <= UINT64_MAX / 2,
         host = op->flags & LAUNCH_ON_HOST;
    uint64_t need = twice ? 2 * bytes : bytes, has = host ? host_available() : 0;

    if (!(op->flags & LAUNCH_BYTES))
        return 0;
    int err = host ? 0 : gpu_ops(gpu)->free_bytes(gpu, &has);
    if (err)
        return point_gpu_failed(pt, gpu, err);
    if (has != UINT64_MAX)
        has -= has / KEPT_FREE;
    if (need > has)
        return point_reason(pt, -EOPNOTSUPP,
                            "needs %.3f GB of %s, has %.3f GB: take a smaller --size",
                            (double)need * 1e-9, host ? "the host's memory" : "the GPU's memory",
                            (double)has * 1e-9);
    return 0;
}

/* The calling thread runs on CPUs of that NUMA node, whichever the scheduler likes. */
static int bind_to(struct point *pt, struct state *st, int node)
{
    struct hwloc_topology *topology = topo_hwloc(point_topo(pt));

    point_option(pt, "node", "%s", "any");
    if (node < 0)
        return 0;
    hwloc_obj_t at = hwloc_get_numanode_obj_by_os_index(topology, (unsigned)node);

    if (!at || !at->cpuset || hwloc_bitmap_iszero(at->cpuset))
        return point_reason(pt, -EOPNOTSUPP, "no CPU of node %d may be used here", node);
    if (hwloc_set_cpubind(topology, at->cpuset, HWLOC_CPUBIND_THREAD))
        return point_reason(pt, -errno, "cannot bind to the CPUs of node %d: %s", node,
                            strerror(errno));
    st->bound = true;
    point_option(pt, "node", "%d", node);
    return 0;
}

static int setup(struct point *pt)
{
    const struct params *p = pt->params;
    const struct launch_op *op = launch_find(launch_names[p->op]);
    struct state *st = pt->state = xcalloc(1, sizeof(*st));
    struct gpu *gpu = NULL;
    char error[160] = "";
    struct place place;

    if (!point_topo(pt))
        return -EIO;
    st->params = p;
    bool many = op->flags & LAUNCH_MANY;
    point_series(pt, many ? "interval" : "latency", "us", 0);
    if (many || !strcmp(op->name, "graph-complete"))
        point_series(pt, "rate", "Mop/s", op->flags & LAUNCH_NODES ? (double)p->nodes : 1);
    if (many) {
        pt->sample_ns = MANY_SAMPLE_NS;
        pt->max_samples = pt->max_samples < MANY_SAMPLES ? pt->max_samples : MANY_SAMPLES;
    }
    int err = place_parse(p->device, PLACE_GPU, &place, error, sizeof(error));
    if (err)
        return point_reason(pt, err, "%s", error);
    err = point_gpu(pt, place.index, &gpu);
    if (err)
        return err;
    point_option(pt, "device", "%s:%u", gpu_ops(gpu)->name, gpu_base(gpu)->index);
    point_column(pt, "address", "%s", gpu_base(gpu)->facts.address);
    err = check_room(pt, gpu, op, p->size);
    if (err)
        return err;
    err = bind_to(pt, st, p->node == NODE_NEAR ? gpu_base(gpu)->facts.numa_node : p->node);
    if (err)
        return err;
    st->open = true;
    err = launch_open(&st->launch, gpu, op, p->nodes, p->size);
    return err ? point_gpu_failed(pt, gpu, err) : 0;
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    struct state *st = pt->state;
    uint64_t again_ns;
    int err =
        pt->sample_ns ? launch_many(&st->launch, inner, &ns[0]) : launch_once(&st->launch, ns);

    for (size_t i = 1; i < pt->n_series; i++)
        ns[i] = ns[0];
    if (!err && gpu_watch_look(pt->watch)) /* which leaves cold caches behind */
        err = launch_once(&st->launch, &again_ns);
    return err ? point_gpu_failed(pt, st->launch.gpu, err) : 0;
}

static int check(struct point *pt)
{
    struct state *st = pt->state;
    char what[160] = "";
    int err = launch_check(&st->launch, pt->common->seed + st->launch.count, what, sizeof(what));

    if (err == -EBADMSG)
        return point_reason(pt, err, "%s", what);
    return err ? point_gpu_failed(pt, st->launch.gpu, err) : 0;
}

static int evidence(struct point *pt)
{
    const struct state *st = pt->state;

    evidence_add(pt->evidence, sizeof(pt->evidence),
                 "%s: %llu operations, then a kernel wrote %d words that were compared",
                 gpu_base(st->launch.gpu)->facts.name, (unsigned long long)st->launch.count,
                 LAUNCH_WORDS);
    return 0;
}

static void teardown(struct point *pt)
{
    struct state *st = pt->state;

    if (!st)
        return;
    if (st->open)
        launch_close(&st->launch);
    if (st->bound)
        topo_unbind_self(point_topo(pt));
    free(st);
}

/* ---- Options ---- */

static int parse_node(const char *text, void *value, char *error, size_t len)
{
    if (strcmp(text, "near") != 0)
        return placement_parse_node(text, value, error, len);
    *(int *)value = NODE_NEAR;
    return 0;
}

#define AT(field) .offset = offsetof(struct params, field)

static const struct opt_scope graphs = {"op=graph*", "graphs (--op graph, graph-complete)"};
static const struct opt_scope allocations = {
    "op=*alloc*", "allocations (--op alloc, alloc-ordered, pinned-alloc)"};

static const struct opt options[] = {
    {.name = "device",
     .letter = 'd',
     OPT_READ(OPT_SWEPT | OPT_PLACE, device, "cuda", "cuda[:N]", place_read_gpu),
     .expand = place_words,
     .help = "the GPU; gpus: each of them"},
    {.name = "op",
     OPT_WORD(
         OPT_SWEPT, op,
         "launch,launch-complete,launch-rate,graph,graph-complete,stream-sync,event,event-query,"
         "alloc,alloc-ordered,pinned-alloc,driver-call,copy-small",
         launch_names),
     .help = "operation: see docs/launch.md"},
    {.name = "nodes",
     OPT_NUMBER(OPT_U64, OPT_COLUMN, nodes, "20", 1, 100000),
     .scope = &graphs,
     .help = "number of kernels in a graph"},
    {.name = "size",
     .letter = 's',
     OPT_NUMBER(OPT_SIZE, OPT_COLUMN, size, "4K", 1, 0),
     .scope = &allocations,
     .help = "size of an allocation"},
    {.name = "node",
     OPT_READ(OPT_SWEPT, node, "near", "near|any|N", parse_node),
     .left_by = "near",
     .help = "NUMA node of the calling CPU; near: the GPU's node"},
    {.name = NULL},
};

const struct bench bench = {
    .name = "launch",
    .help = "launch cost and the latency of calls to a GPU",
    .about = "Each sample is one operation, timed by the host's clock from the call to its\n"
             "return. So percentiles up to p99.9 are those of operations (at least 10000,\n"
             "unless --min-samples or --budget sets fewer). Only launch-rate times many\n"
             "operations in a row. If a GPU is shared in time slices or reached over a\n"
             "network, p99.9 and max show it first.",
    .needs = "gpu",
    .options = options,
    .params_size = sizeof(struct params),
    .rows = &bench_rows,
    .defaults = set_defaults,
    .possible = possible,
    .setup = setup,
    .sample = sample,
    .check = check,
    .evidence = evidence,
    .teardown = teardown,
    .backends = gpus_say,
};
