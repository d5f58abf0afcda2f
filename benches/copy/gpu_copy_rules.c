/* SPDX-License-Identifier: Apache-2.0 */
/* What can be copied between these ends, and which GPUs copy at once: see gpu_copy.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/copy/gpu_copy.h"
#include "core/alloc.h"

/* ---- The same copy on several GPUs at once, against one alone ---- */

#define SHARED     0.9 /* a GPU that keeps less of its rate shares something */
#define PAIR_TRIES 9

static int add_gpu(struct point *pt, struct gpu_copy *c, unsigned index)
{
    for (unsigned g = 0; g < c->groups; g++)
        if (gpu_base(g ? c->group[g].runner : gpu_copy_main(c))->index == index)
            return 0;
    if ((c->groups + 1) * c->each > GPU_COPY_LANES_MAX)
        return point_reason(pt, -EOPNOTSUPP, "over %u GPUs at once", c->groups);
    int err = gpu_copy_open_gpu(pt, index, &c->group[c->groups].runner);
    c->groups += !err;
    return err;
}

/* "cuda:1+cuda:2" */
static int add_named(struct point *pt, struct gpu_copy *c)
{
    char *names = xstrdup(c->params->together), *rest = names, error[160] = "";
    int err = 0;

    for (char *name; !err && (name = strsep(&rest, "+")) != NULL;) {
        struct place place;
        err = place_find(name, point_topo(pt), &place, error, sizeof(error));
        if (!err && !place.gpu) {
            snprintf(error, sizeof(error), "option '--together': '%s' is not a GPU", name);
            err = -EINVAL;
        }
        if (err)
            point_reason(pt, err, "%s", error);
        else
            err = add_gpu(pt, c, place.index);
    }
    free(names);
    return err;
}

/* ---- Pairs of GPUs at once: one to all, all to one, all to all ---- */

static int add_pair(struct point *pt, struct gpu_copy *c, unsigned from, unsigned to)
{
    unsigned g = from == c->ends[0].index && to == c->ends[1].index ? 0 : c->groups;
    int err = 0;

    if (g == GPU_COPY_GROUPS_MAX)
        return point_reason(pt, -EOPNOTSUPP, "over %d pairs of GPUs at once", GPU_COPY_GROUPS_MAX);
    if (!(err = gpu_copy_open_gpu(pt, from, &c->group[g].pair[0])))
        err = gpu_copy_open_gpu(pt, to, &c->group[g].pair[1]);
    if (err)
        return err;
    c->group[g].runner = gpu_copy_runner(c, c->group[g].pair[0], c->group[g].pair[1]);
    c->groups += g > 0;
    return 0;
}

/* All bytes pass the one end. Where its links are of one kind, so does the limit. */
static int find_end(struct gpu_copy *c, bool from_all, bool to_all)
{
    unsigned native = 0;
    int err = 0;

    for (unsigned g = 0; !err && g < c->groups; g++) {
        struct gpu_link link = {0};
        err = gpu_ops(c->gpu[0])->link(gpu_base(c->group[g].pair[0])->index,
                                       gpu_base(c->group[g].pair[1])->index, &link);
        native += link.atomics;
    }
    if (!err && from_all != to_all && (!native || native == c->groups))
        c->end_address = gpu_base(c->gpu[from_all])->facts.address;
    return err;
}

static int add_pairs(struct point *pt, struct gpu_copy *c)
{
    bool from_all = copy_is_all(c->params->source), to_all = copy_is_all(c->params->destination);
    unsigned n = gpus_count(point_gpus(pt));
    int err = 0;

    for (unsigned i = 0; !err && i < n; i++)
        for (unsigned k = 0; !err && k < n; k++)
            if (i != k && (from_all || i == c->ends[0].index) && (to_all || k == c->ends[1].index))
                err = add_pair(pt, c, i, k);
    if (!err)
        err = find_end(c, from_all, to_all);
    if (!err && c->groups < 2)
        return point_reason(pt, -EOPNOTSUPP, "all other GPUs are one here: take it by its name");
    return err;
}

int gpu_copy_open_others(struct point *pt, struct gpu_copy *c)
{
    bool all = !strcmp(c->params->together, "all");
    int err = 0;

    if (gpu_copy_peers(c)) {
        c->group[0].pair[0] = c->gpu[0];
        c->group[0].pair[1] = c->gpu[1];
        if (c->params->handle == COPY_MULTICAST)
            return gpu_copy_spread_open(pt, c);
        return gpu_copy_pattern(c) ? add_pairs(pt, c) : 0;
    }
    if (!strcmp(c->params->together, "none") || gpu_copy_host_end(c) < 0)
        return 0;
    for (unsigned i = 0; all && !err && i < gpus_count(point_gpus(pt)); i++)
        err = add_gpu(pt, c, i);
    if (!all)
        err = add_named(pt, c);
    if (!err && c->groups < 2)
        return point_reason(pt, -EOPNOTSUPP, "there is no other GPU to copy at the same time");
    return err;
}

static void add_series(struct point *pt, const struct gpu_copy *c, const char *load)
{
    double bytes = (double)c->params->size;
    const char *const names[] = {"forward", "reverse", "sum"};
    unsigned n = c->each == 1 ? 1 : 3;

    for (unsigned i = 0; i < n; i++) {
        struct series *s =
            copy_series(pt, n == 1 ? "one-way" : names[i], i == 2 ? 2 * bytes : bytes);
        s->set[1].column = "load";
        s->set[1].value = load;
    }
}

void gpu_copy_together_series(struct point *pt, const struct gpu_copy *c)
{
    add_series(pt, c, "alone");
    add_series(pt, c, "together");
    struct series *s = copy_series(pt, c->each == 1 ? "one-way" : "sum",
                                   (double)c->params->size * c->each * c->groups);
    s->set[1].column = "load";
    s->set[1].value = "all";
    s->set[2].column = "address"; /* no one link's limit is its limit */
    s->set[2].value = "";
}

/* This GPU's times alone (ns[0], and both ways ns[1] and their span ns[2]), then with the others,
 * then the span of all: as the series are. */
int gpu_copy_run_together(struct gpu_copy *c, uint64_t inner, uint64_t *ns)
{
    uint64_t each[GPU_COPY_GROUPS_MAX * 2], span;
    unsigned rows = c->each == 1 ? 1 : 3;
    int err = gpu_copy_time_by_events(c->all, c->each, inner, &c->times.alone, each, &span);

    if (err)
        return err;
    memcpy(ns, each, c->each * sizeof(*ns));
    if (rows == 3)
        ns[2] = span;
    err =
        gpu_copy_time_by_events(c->all, c->each * c->groups, inner, &c->times.beside, each, &span);
    if (err)
        return err;
    memcpy(ns + rows, each, c->each * sizeof(*ns));
    if (rows == 3 && (err = gpu_copy_span(c->all, 2, inner, &c->times.beside, &ns[rows + 2])))
        return err;
    ns[2 * rows] = span;
    gpu_copy_level_add(&c->times.overlap, c->times.beside.overlap);
    gpu_copy_level_add(&c->times.together, (double)ns[0] / (double)ns[rows]);
    return 0;
}

/* What this GPU keeps of its rate when GPU number g alone copies beside it. */
static int measure_pair(struct gpu_copy *c, unsigned g, double *kept)
{
    struct gpu_copy_lane *lanes[4];
    struct gpu_copy_pace alone_pace = {0}, both_pace = {0};
    struct gpu_copy_level level = {0};
    uint64_t alone[2], both[4], span;
    unsigned each = c->each;
    int err = 0;

    memcpy(lanes, c->all, each * sizeof(*lanes));
    memcpy(lanes + each, c->all + g * each, each * sizeof(*lanes));
    for (int i = 0; !err && i < PAIR_TRIES; i++) {
        err = gpu_copy_time_by_events(lanes, each, c->times.inner, &alone_pace, alone, &span);
        if (!err)
            err = gpu_copy_time_by_events(lanes, 2 * each, c->times.inner, &both_pace, both, &span);
        if (!err)
            gpu_copy_level_add(&level, (double)alone[0] / (double)both[0]);
    }
    *kept = gpu_copy_level_median(&level);
    return err;
}

static int find_sharers(struct gpu_copy *c, char *text, size_t len)
{
    size_t at = 0;
    int err = 0;

    text[0] = 0;
    for (unsigned g = 1; !err && g < c->groups; g++) {
        double kept = NAN;
        err = measure_pair(c, g, &kept);
        if (!err && kept < SHARED && at < len)
            at += (size_t)snprintf(text + at, len - at, "%s%s:%u (%.0f %%)", at ? ", " : "",
                                   gpu_ops(c->group[g].runner)->name,
                                   gpu_base(c->group[g].runner)->index, 100 * kept);
    }
    return err;
}

int gpu_copy_together_verdict(struct point *pt, struct gpu_copy *c)
{
    double kept = gpu_copy_level_median(&c->times.together);
    char sharers[160];

    if (c->groups < 2 || !(kept < SHARED))
        return 0;
    if (c->groups == 2)
        return point_reason(
            pt, 0, "beside %s:%u this GPU keeps %.0f %% of its rate: they share a link",
            gpu_ops(c->group[1].runner)->name, gpu_base(c->group[1].runner)->index, 100 * kept);
    int err = find_sharers(c, sharers, sizeof(sharers));
    if (err)
        return gpu_copy_failed(pt, c, err);
    if (sharers[0])
        point_reason(
            pt, 0,
            "with all %u at once this GPU keeps %.0f %% of its rate: it shares a link with "
            "%s",
            c->groups, 100 * kept, sharers);
    else
        point_reason(
            pt, 0,
            "with all %u at once this GPU keeps %.0f %% of its rate, but beside any single "
            "one over %.0f %%: what is shared is farther up, such as the host's memory",
            c->groups, 100 * kept, 100 * SHARED);
    return 0;
}

/* ---- Which copies with a GPU there are, and what is said of those that there are not ---- */

#define KEPT_FREE     ((uint64_t)64 << 20) /* of a GPU's memory, for the driver itself */
#define PAGES         " memory=pageable,huge,hugetlb"
#define NO_GPU_HERE   PLACES_OF_HOST "," COPY_PEER
#define OF_HOST(more) AN_END(PLACES_OF_HOST, more)

static int refuse(struct point *pt, const char *why)
{
    return point_reason(pt, -EOPNOTSUPP, "%s", why);
}

/* Of what driver and GPUs are, nothing is asked here. */
static const struct bench_rule rules[] = {
    {"engine=memcpy", "memcpy copies between places of the host: with a GPU at an end take "
                      "--engine ce or sm"},
    {AN_END(COPY_PEER, " handle=multicast"),
     "multicast over several processes is not measured: take --handle fabric"},
    {TWO_GPUS(" source=" COPY_ALL " handle=multicast") " | " TWO_GPUS(" destination!=" COPY_ALL
                                                                      " handle=multicast"),
     "with multicast one GPU stores to all: take --source cuda:0 --destination " COPY_ALL},
    {AN_END(COPY_ALL, " direction=both"),
     "with " COPY_ALL " take --direction one-way: both ways at once is from " COPY_ALL
     " to " COPY_ALL},
    {AN_END(COPY_ALL, " metric!=bandwidth"),
     "a latency is that of one copy at a time: name one GPU in place of " COPY_ALL},
    {"metric!=bandwidth direction=both",
     "a latency is that of one copy at a time: take --direction one-way"},
    {OF_HOST(" metric!=bandwidth together!=none"),
     "a latency is that of one copy at a time: take --together none"},
    {"metric=load-latency engine=ce", "loads are a kernel's: take --engine sm"},
    {"metric=load-latency destination=" PLACES_OF_HOST,
     "a GPU loads from the source: make it the destination"},
    /* Memory that the driver copies through a buffer of its own while the call lasts, or that moves. */
    {OF_HOST(PAGES " engine=sm") " | " OF_HOST(PAGES " metric=load-latency"),
     "a kernel does not reach this kind of memory: take --memory pinned, or --engine ce"},
    {OF_HOST(PAGES " direction=both") " | " OF_HOST(PAGES " together!=none"),
     "a copy of this kind of memory keeps its thread until it is done, so that several do not run "
     "at once: take --memory pinned"},
    /* Its address in the device need not be the host's, and where it is not, a kernel that takes the
     * host's is the end of the context. */
    {OF_HOST(" memory=wc engine=sm") " | " OF_HOST(" memory=wc metric=load-latency"),
     "a kernel does not read or write write-combined memory: take --memory pinned, or --engine ce"},
    {OF_HOST(" memory=managed direction=both") " | " OF_HOST(" memory=managed together!=none"),
     "managed memory is moved one way at a time: take --direction one-way and --together none"},
    {OF_HOST(" memory=managed metric=load-latency"),
     "managed memory moves to the GPU that loads from it: take --memory pinned"},
    {"memory=managed engine=sm destination=" PLACES_OF_HOST,
     "managed pages go back to the host by the CPU's faults, not by a kernel: --engine ce moves "
     "them"},
    {"source=" COPY_ALL " destination=" NO_GPU_HERE " | destination=" COPY_ALL
     " source=" NO_GPU_HERE,
     COPY_ALL " is for copies between GPUs: with the host name one GPU, and take --together all"},
    {TWO_GPUS(" handle=multicast engine=ce"),
     "to a multicast address a kernel stores: take --engine sm"},
    {TWO_GPUS(" handle=multicast op=read"),
     "to a multicast address the source's GPU stores: take --op write"},
    {TWO_GPUS(" access=off handle!=none") " | " AN_END(COPY_PEER, " access=off"),
     "memory of a fabric handle is reached directly alone, multicast too: take --access on"},
    {TWO_GPUS(" access=off engine=sm") " | " TWO_GPUS(" access=off metric=load-latency"),
     "a kernel reaches another GPU's memory by peer access alone: take --access on, or --engine "
     "ce"},
    /* The GPU here runs the copies, and takes their time: it writes to the other one, or reads from it. */
    {"metric=load-latency destination=" COPY_PEER,
     "a GPU loads from the source: take --source " COPY_PEER " and a GPU here as --destination"},
    {"metric!=load-latency op=read destination=" COPY_PEER
     " | metric!=load-latency op=write source=" COPY_PEER,
     "the GPU here runs the copies: take --op write to " COPY_PEER ", --op read from it"},
    {NULL, NULL}};

static bool multicast(const struct gpu_copy *c)
{
    bool gpus = c->ends[0].gpu && c->ends[1].gpu;

    return gpus && c->params->handle == COPY_MULTICAST;
}

void gpu_copy_resolve(struct point *pt, struct gpu_copy *c)
{
    const struct copy_params *p = c->params;

    c->engine = p->engine;
    c->memory = p->memory;
    if (c->engine == COPY_ENGINE_AUTO)
        c->engine = p->metric == COPY_LOAD_LATENCY || multicast(c) ? COPY_SM : COPY_CE;
    if (c->memory == COPY_MEMORY_AUTO)
        c->memory = COPY_PINNED;
    point_option(pt, "engine", "%s", copy_engines[c->engine]);
    if (gpu_copy_host_end(c) >= 0)
        point_option(pt, "memory", "%s", copy_memories[c->memory]);
    if (p->metric == COPY_LOAD_LATENCY && gpu_copy_peers(c))
        point_option(pt, "op", "%s", copy_ops[COPY_READ]);
    if (copy_peer_end(p) >= 0 && p->handle != COPY_MULTICAST)
        point_option(pt, "handle", "%s", "fabric");
}

static int refuse_pair(struct point *pt, const struct gpu_copy *c, unsigned g)
{
    unsigned from = gpu_base(c->group[g].pair[0])->index, to = gpu_base(c->group[g].pair[1])->index;
    const struct gpu_ops *ops = gpu_ops(c->gpu[0]);
    struct gpu_link there = {0}, back = {0};
    int err = ops->link(from, to, &there);

    if (!err)
        err = ops->link(to, from, &back);
    if (err)
        return gpu_copy_failed(pt, c, err);
    if (c->params->access == COPY_STAGED) {
        point_column(pt, "path", "through host memory");
        return 0;
    }
    if (!there.access || !back.access)
        return point_reason(
            pt, -EOPNOTSUPP,
            "%s:%u and %s:%u have no peer access, says the driver: look at the IOMMU "
            "and at ACS, in a guest at its topology; --access off measures the way "
            "through host memory",
            ops->name, from, ops->name, to);
    if (there.performance >= 0)
        point_column(pt, "path", "peer access, rank %d", there.performance);
    else
        point_column(pt, "path", "peer access");
    point_column(pt, "atomics", there.atomics ? "native" : "none");
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
    int err = point_refuse(pt, rules);

    if (!err && c->spread)
        err = gpu_copy_spread_refuse(pt, c);
    if (err)
        return err;
    if (gpu_copy_local(c))
        point_column(pt, "path", "within the GPU");
    if (c->engine == COPY_CE && c->params->direction == COPY_BOTH && facts->copy_engines == 1)
        point_reason(pt, 0, "this GPU has one copy engine: the directions take turns");
    if (gpu_copy_peers(c)) {
        for (unsigned g = c->groups; !err && g > 0; g--) /* the columns are those of the first */
            err = refuse_pair(pt, c, g - 1);
        return err;
    }
    if (copy_peer_end(c->params) >= 0)
        return gpu_copy_peer_refuse(pt, c);
    return gpu_copy_local(c) ? 0 : refuse_host(pt, c);
}

static int too_large(struct point *pt, uint64_t needed, uint64_t available, const char *where)
{
    return point_reason(pt, -EOPNOTSUPP, "%llu MiB are needed %s, %llu are free",
                        (unsigned long long)(needed >> 20), where,
                        (unsigned long long)(available >> 20));
}

/* Of all pairs at once. */
static uint64_t ends_at(const struct gpu_copy *c, const struct gpu *gpu)
{
    uint64_t n = 0;

    if (c->spread) /* where it arrives, on each; and the source */
        return 1 + (gpu == c->gpu[0]);
    for (unsigned g = 0; g < c->groups; g++)
        n += (c->group[g].pair[0] == gpu) + (c->group[g].pair[1] == gpu);
    return n;
}

static int fits_in_gpu(struct point *pt, const struct gpu_copy *c, struct gpu *gpu)
{
    uint64_t buffers = c->each, available = 0;
    char where[24];

    if (gpu_copy_local(c) || (c->memory == COPY_MANAGED && c->engine == COPY_SM))
        buffers *= 2;
    if (gpu_copy_pattern(c))
        buffers = ends_at(c, gpu);
    int err = gpu_ops(gpu)->free_bytes(gpu, &available);
    if (err)
        return point_gpu_failed(pt, gpu, err);
    snprintf(where, sizeof(where), "on %s:%u", gpu_ops(gpu)->name, gpu_base(gpu)->index);
    available = available > KEPT_FREE ? available - KEPT_FREE : 0;
    if (buffers && c->params->size > available / buffers)
        return too_large(pt, c->params->size * buffers, available, where);
    return 0;
}

int gpu_copy_fits(struct point *pt, const struct gpu_copy *c)
{
    uint64_t buffers = (uint64_t)c->each * c->groups, available = host_available();
    int err = 0;

    available -= available / 8;
    if (gpu_copy_host_end(c) >= 0 && c->params->size > available / buffers)
        err = too_large(pt, c->params->size * buffers, available, "of the host");
    for (int end = 0; !err && end < 2; end++)
        if (c->gpu[end])
            err = fits_in_gpu(pt, c, c->gpu[end]);
    for (unsigned g = 1; !err && g < c->groups; g++)
        err = fits_in_gpu(pt, c, c->group[g].runner);
    for (unsigned g = 0; !err && gpu_copy_pattern(c) && g < c->groups; g++)
        for (int end = 0; !err && end < 2; end++)
            err = fits_in_gpu(pt, c, c->group[g].pair[end]);
    for (unsigned i = 0; !err && c->spread && i < c->spread->n; i++)
        err = fits_in_gpu(pt, c, c->spread->gpus[i]);
    return err;
}
