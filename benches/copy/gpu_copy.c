/* SPDX-License-Identifier: Apache-2.0 */
/* Copies with a GPU at one end or both: see gpu_copy.h. */
#include "benches/copy/gpu_copy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/row.h"
#include "core/stats.h"

/* ---- The ways to take one sample of a GPU's copies ---- */

/* An engine that begins and ends costs some us between the events, which shall stay far
 * under 1 %. */
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

static enum gpu_copy_how gpu_copy_how_of(const struct gpu_copy *c)
{
    bool managed = gpu_copy_host_end(c) >= 0 && c->memory == COPY_MANAGED;

    if (c->spread)
        return GPU_COPY_SPREAD;
    if (managed)
        return c->engine == COPY_SM ? GPU_COPY_FAULTS : GPU_COPY_MIGRATE;
    return c->engine == COPY_SM ? GPU_COPY_KERNEL : GPU_COPY_ENGINE;
}

/* Lanes that this GPU runs; the pairs or the lanes tell, as they are open or not. */
static unsigned lanes_of(const struct gpu_copy *c, const struct gpu *gpu)
{
    unsigned n = 0;

    for (unsigned g = 0; gpu_copy_pattern(c) && g < c->groups; g++)
        n += gpu_copy_runner(c, c->group[g].pair[0], c->group[g].pair[1]) == gpu;
    return n ? n : gpu_copy_peers(c) ? 1 : c->each;
}

static bool by_host_clock(const struct gpu_copy *c)
{
    bool buffered =
        gpu_copy_host_end(c) >= 0 && (c->memory == COPY_PAGEABLE || c->memory == COPY_HUGE ||
                                      c->memory == COPY_HUGETLB || c->memory == COPY_MANAGED);

    return buffered || c->params->metric == COPY_LATENCY;
}

/* Lanes that copy at once: all pairs of a pattern, whose bytes are of all and whose time lasts until
 * the last is done; one way; or both ways, each by its own time, and their span. */
static int run_lanes(struct gpu_copy *c, uint64_t inner, uint64_t *ns)
{
    unsigned n = c->each * c->groups;
    uint64_t each[GPU_COPY_LANES_MAX], span;
    int err = gpu_copy_time_by_events(c->all, n, inner, &c->times.alone, each, &span);

    if (err)
        return err;
    if (n > 1)
        gpu_copy_level_add(&c->times.overlap, c->times.alone.overlap);
    ns[0] = c->groups > 1 ? span : each[0];
    if (c->each == 2) {
        ns[1] = each[1];
        ns[2] = span;
    }
    return 0;
}

/* What is timed, all of it in gpu_copy_lane.c: `inner` copies that wait in each lane's stream until
 * they are released, between two events (run_lanes() -> gpu_copy_time_by_events()); or, where the
 * host has to work for them, from the first call until all has arrived (gpu_copy_time_by_host()); or
 * loads, each of which waits for the one before (gpu_copy_run_chain()). */
static int run(struct gpu_copy *c, uint64_t inner, uint64_t *ns)
{
    enum gpu_copy_how how = c->lanes[0].how;

    if (c->chain)
        return gpu_copy_run_chain(c, inner, ns);
    if (how == GPU_COPY_MIGRATE || how == GPU_COPY_FAULTS)
        return gpu_copy_time_moving(c->all[0], inner, ns);
    if (by_host_clock(c))
        return gpu_copy_time_by_host(c->all[0], inner, ns);
    return c->groups > 1 && !gpu_copy_pattern(c) ? gpu_copy_run_together(c, inner, ns)
                                                 : run_lanes(c, inner, ns);
}

/* Lanes of the GPU that runs most of them; two at least, as both lanes of a pair may be one's. */
static unsigned most_on_one(const struct gpu_copy *c)
{
    unsigned most = 2;

    for (unsigned i = 0; i < c->groups; i++) {
        unsigned same = lanes_of(c, c->lanes[i].gpu);
        most = same > most ? same : most;
    }
    return most;
}

/* The column `clock`, and what the sampler must know of these runs. */
static void choose_samples(struct point *pt, struct gpu_copy *c)
{
    if (c->params->metric == COPY_LATENCY)
        pt->sample_ns = 0;
    else
        pt->sample_ns = c->each * c->groups > 1 ? SAMPLE_NS * FINER : SAMPLE_NS;
    if (!by_host_clock(c))
        pt->max_inner = gpu_copy_most(c->each * c->groups, most_on_one(c), c->lanes[0].staged);
    point_column(pt, "clock", "%s", by_host_clock(c) ? "host" : "events");
}

/* ---- Copies to, from, between and within GPUs ---- */

#define OVERLAP                                                                                    \
    0.9 /* lanes that run beside one another for less of their time are worth a remark */

bool gpu_copy_peers(const struct gpu_copy *c)
{
    return copy_peer_end(c->params) < 0 && c->ends[0].gpu && c->ends[1].gpu &&
           c->ends[0].index != c->ends[1].index;
}

bool gpu_copy_local(const struct gpu_copy *c)
{
    return copy_peer_end(c->params) < 0 && c->ends[0].gpu && c->ends[1].gpu &&
           c->ends[0].index == c->ends[1].index;
}

int gpu_copy_host_end(const struct gpu_copy *c)
{
    return !c->ends[0].gpu ? 0 : !c->ends[1].gpu ? 1 : -1;
}

bool gpu_copy_pattern(const struct gpu_copy *c)
{
    return copy_is_all(c->params->source) || copy_is_all(c->params->destination);
}

struct gpu *gpu_copy_runner(const struct gpu_copy *c, struct gpu *from, struct gpu *to)
{
    bool reads = c->params->op == COPY_READ || c->params->metric == COPY_LOAD_LATENCY;

    return reads ? to : from;
}

/* Which GPU runs the copies from `end`: of two GPUs the one that writes, or the one that reads. */
static struct gpu *runs(const struct gpu_copy *c, int end)
{
    if (!c->gpu[0] || !c->gpu[1])
        return c->gpu[0] ? c->gpu[0] : c->gpu[1];
    return gpu_copy_runner(c, c->gpu[end], c->gpu[1 - end]);
}

struct gpu *gpu_copy_main(const struct gpu_copy *c)
{
    return runs(c, 0);
}

/* The GPU that was lost, or else one whose driver said something in this point. */
static struct gpu *blame(const struct gpu_copy *c)
{
    struct gpu *all[GPU_COPY_GROUPS_MAX + 2] = {gpu_copy_main(c), c->gpu[0], c->gpu[1]},
                                          *said = NULL;

    for (unsigned g = 1; g < c->groups; g++)
        all[g + 2] = c->group[g].runner;
    for (unsigned i = 1; c->spread && i < c->spread->n; i++)
        all[i + 1] = c->spread->gpus[i];
    for (unsigned i = 0; i < GPU_COPY_GROUPS_MAX + 2; i++) {
        if (all[i] && gpu_base(all[i])->lost)
            return all[i];
        if (all[i] && !said && gpu_error(all[i])[0])
            said = all[i];
    }
    return said;
}

int gpu_copy_failed(struct point *pt, const struct gpu_copy *c, int err)
{
    struct gpu *blamed = blame(c);

    if (!blamed && c->peer)
        return gpu_copy_peer_failed(pt, c, err);
    return blamed ? point_gpu_failed(pt, blamed, err)
                  : point_reason(pt, err, "copying failed: %s", strerror(-err));
}

int gpu_copy_open_gpu(struct point *pt, unsigned index, struct gpu **gpu)
{
    int err = point_gpu(pt, index, gpu);

    if (!err)
        gpu_base(*gpu)->error[0] = 0; /* what it said in earlier points */
    return err;
}

static int open_gpus(struct point *pt, struct gpu_copy *c)
{
    int err = 0;

    for (int end = 0; !err && end < 2; end++)
        if (end && gpu_copy_local(c))
            c->gpu[1] = c->gpu[0];
        else if (c->ends[end].gpu && end != copy_peer_end(c->params))
            err = gpu_copy_open_gpu(pt, c->ends[end].index, &c->gpu[end]);
    if (err)
        return err;
    c->groups = 1;
    if ((err = gpu_copy_open_others(pt, c)))
        return err;
    const char *from = c->gpu[0] ? gpu_base(c->gpu[0])->facts.address : "",
               *to = c->gpu[1] && c->gpu[1] != c->gpu[0] ? gpu_base(c->gpu[1])->facts.address : "";
    if (gpu_copy_pattern(c)) /* no one link's */
        from = c->end_address ? c->end_address : "", to = "";
    point_column(pt, "address", "%s%s%s", from, *from && *to ? "+" : "", to);
    return 0;
}

static int enable_peers(struct point *pt, struct gpu_copy *c)
{
    int err = 0;

    if (!gpu_copy_peers(c) || c->spread || c->params->access != COPY_DIRECT)
        return 0;
    c->peers_enabled = true;
    for (unsigned g = 0; !err && g < c->groups; g++)
        for (int end = 0; !err && end < 2; end++) {
            struct gpu *own = c->group[g].pair[end], *other = c->group[g].pair[1 - end];
            err = gpu_ops(own)->peer(own, other, true);
            if (!err)
                continue;
            point_column(pt, "path", "%s", "");
            point_column(pt, "atomics", "%s", "");
            err = point_gpu_failed(pt, own, err);
        }
    return err;
}

/* One end of direction d with GPU g. */
static int alloc_side(struct point *pt, struct gpu_copy *c, unsigned g, int d, int end,
                      struct gpu_copy_memory *m)
{
    struct gpu *gpu = gpu_copy_peers(c) ? c->group[g].pair[end]
                      : g               ? c->group[g].runner
                      : c->gpu[end]     ? c->gpu[end]
                                        : gpu_copy_main(c);
    bool remote = end == copy_peer_end(c->params);
    struct copy_memory_config config = {.gpu = gpu,
                                        .remote = remote ? c->peer->remote : NULL,
                                        .remote_memory = (unsigned)d,
                                        .handle = remote ? c->peer->memory.handle[d] : NULL,
                                        .kind = c->memory,
                                        .on_host = end == gpu_copy_host_end(c),
                                        .node = gpu_copy_node(pt, c, g),
                                        .fabric =
                                            gpu_copy_peers(c) && c->params->handle == COPY_FABRIC,
                                        .beside = c->each * c->groups,
                                        .bytes = c->params->size};
    char error[GPU_ERROR_BYTES + 64];
    int err = gpu_copy_memory_alloc(m, point_topo(pt), &config, error, sizeof(error));

    return err ? point_reason(pt, err, "%s", error) : 0;
}

/* Lane of direction d with GPU g: memory, stream, events. A chain of loads takes
 * its source only. */
static int open_lane(struct point *pt, struct gpu_copy *c, unsigned g, int d)
{
    struct gpu_copy_lane *l = &c->lanes[g * c->each + (unsigned)d];
    int from = d, to = 1 - d;
    int err;

    *l = (struct gpu_copy_lane){.gpu = g ? c->group[g].runner : runs(c, from),
                                .how = gpu_copy_how_of(c),
                                .to_device = from == gpu_copy_host_end(c),
                                .staged = gpu_copy_peers(c) && c->params->access == COPY_STAGED,
                                .bytes = c->params->size};
    c->all[g * c->each + (unsigned)d] = l;
    bool one_sided =
        l->how == GPU_COPY_MIGRATE || c->spread || c->params->metric == COPY_LOAD_LATENCY;
    if (l->how == GPU_COPY_MIGRATE)
        err = alloc_side(pt, c, g, d, gpu_copy_host_end(c), &l->src);
    else
        err = alloc_side(pt, c, g, d, from, &l->src);
    if (!err && !one_sided)
        err = alloc_side(pt, c, g, d, to, &l->dst);
    if (!err && c->spread)
        err = gpu_copy_spread_alloc(pt, c, l);
    if (err)
        return err;
    err = gpu_copy_lane_open(l, lanes_of(c, l->gpu), pt->watch);
    return err ? gpu_copy_failed(pt, c, err) : 0;
}

static int open_lanes(struct point *pt, struct gpu_copy *c)
{
    int err = 0;

    for (unsigned g = 0; !err && g < c->groups; g++) {
        err = gpu_copy_node_begin(pt, c, g);
        for (unsigned d = 0; !err && d < c->each; d++)
            err = open_lane(pt, c, g, (int)d);
        gpu_copy_node_end(pt, c, g);
    }
    return err;
}

static uint64_t lane_seed(uint64_t seed, unsigned lane)
{
    return seed * 2 * GPU_COPY_GROUPS_MAX + lane;
}

/* A first copy of each lane finds what does not work, and has the driver load what it loads late:
 * it could not while a stream is held. */
static int warm_lanes(struct point *pt, struct gpu_copy *c)
{
    int err = 0;

    for (unsigned i = 0; !err && i < c->each * c->groups; i++) {
        uint64_t seed = lane_seed(pt->common->seed, i);
        err = gpu_copy_lane_fill(&c->lanes[i], seed);
        if (!err)
            err = gpu_copy_lane_once(&c->lanes[i]);
        if (!err)
            err = gpu_copy_lane_fill(&c->lanes[i], seed);
    }
    return err ? gpu_copy_failed(pt, c, err) : 0;
}

static void choose_series(struct point *pt, const struct gpu_copy *c)
{
    double bytes = (double)c->params->size;

    if (gpu_copy_pattern(c)) {
        copy_series(pt, "one-way", bytes * c->groups);
    } else if (c->groups > 1) {
        gpu_copy_together_series(pt, c);
    } else if (c->params->direction == COPY_ONE_WAY) {
        copy_series(pt, "one-way", bytes);
    } else {
        copy_series(pt, "forward", bytes);
        copy_series(pt, "reverse", bytes);
        copy_series(pt, "sum", 2 * bytes);
    }
}

/* What can be said before memory is taken; the rows of what is refused have their metric, too. */
static int prepare(struct point *pt, struct gpu_copy *c)
{
    int err = copy_ends(pt, c->ends);

    if (!err) {
        gpu_copy_resolve(pt, c);
        topo_unbind_self(point_topo(pt)); /* a driver's threads are bound as who starts it */
        err = open_gpus(pt, c);
    }
    choose_series(pt, c);
    if (!err)
        err = gpu_copy_refuse(pt, c);
    if (!err)
        err = gpu_copy_fits(pt, c);
    return err || copy_peer_end(c->params) < 0 ? err : gpu_copy_peer_open(pt, c);
}

static int setup(struct point *pt)
{
    struct gpu_copy *c = pt->state = xcalloc(1, sizeof(*c));
    int err;

    c->params = pt->params;
    c->cpu = -1;
    c->each = c->params->direction == COPY_BOTH ? 2 : 1;
    if ((err = prepare(pt, c)) || (err = gpu_copy_bind(pt, c)) || (err = enable_peers(pt, c)) ||
        (err = open_lanes(pt, c)))
        return err;
    choose_samples(pt, c);
    return c->params->metric == COPY_LOAD_LATENCY ? gpu_copy_chain_open(pt, c) : warm_lanes(pt, c);
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    struct gpu_copy *c = pt->state;
    int err = c->peer ? copy_remote_alive(c->peer->remote) : 0;

    if (err)
        return gpu_copy_peer_failed(pt, c, err);
    err = run(c, inner, ns);
    if (err)
        return gpu_copy_failed(pt, c, err);
    c->times.inner = inner;
    return 0;
}

/* What each lane left: all that was timed wrote the same. */
static int check_lanes(struct point *pt, struct gpu_copy *c, uint64_t seed, const char *when)
{
    size_t wrong_at;

    for (unsigned i = 0; i < c->each * c->groups; i++) {
        int err = gpu_copy_lane_check(&c->lanes[i], lane_seed(seed, i), &wrong_at);
        if (err)
            return gpu_copy_failed(pt, c, err);
        if (wrong_at != COPY_MEMORY_RIGHT && c->spread)
            return point_reason(pt, -EBADMSG, "wrong data %s: byte %zu of %llu on %s:%u", when,
                                wrong_at, (unsigned long long)c->params->size,
                                gpu_ops(c->gpu[0])->name,
                                gpu_base(c->spread->gpus[c->spread->wrong])->index);
        if (wrong_at != COPY_MEMORY_RIGHT)
            return point_reason(pt, -EBADMSG, "wrong data %s: byte %zu of %llu%s", when, wrong_at,
                                (unsigned long long)c->params->size,
                                i % c->each ? ", on the way back" : "");
    }
    return 0;
}

/* The last timed copy; then one more of other data, which no earlier copy can have left there. */
static int check(struct point *pt)
{
    struct gpu_copy *c = pt->state;
    uint64_t other_seed = pt->common->seed + 1, ns[SAMPLER_SERIES_MAX];
    int err = 0;

    if (c->chain)
        return gpu_copy_chain_check(pt, c);
    if (c->params->inject == COPY_CORRUPT) {
        /* Of several GPUs' memory the last one's: a check that stops early does not see it. */
        struct gpu_copy_lane *first = c->all[0];
        err = gpu_copy_memory_spoil(c->spread       ? &c->spread->memory[c->spread->n - 1]
                                    : first->dst.at ? &first->dst
                                                    : &first->src);
    }
    if (err)
        return gpu_copy_failed(pt, c, err);
    if ((err = check_lanes(pt, c, pt->common->seed, "after the last timed copy")))
        return err;
    for (unsigned i = 0; !err && i < c->each * c->groups; i++)
        err = gpu_copy_lane_fill(&c->lanes[i], lane_seed(other_seed, i));
    if (!err)
        err = run(c, 1, ns);
    if (err)
        return gpu_copy_failed(pt, c, err);
    return check_lanes(pt, c, other_seed, "in a copy of fresh data");
}

static void describe(struct point *pt, const struct gpu_copy *c)
{
    const struct gpu_copy_lane *l = &c->lanes[0];
    const struct gpu_base *gpu = gpu_base(l->gpu);
    char *text = pt->evidence;
    size_t len = sizeof(pt->evidence);

    evidence_add(text, len, "%s:%u %s", gpu->ops->name, gpu->index, gpu->facts.name);
    if (c->chain)
        evidence_add(text, len, "one thread of kernel chase_sys");
    else if (l->kernel)
        evidence_add(text, len, "kernel %s, %u blocks of %u", l->kernel_name, l->grid, l->block);
    else
        evidence_add(text, len,
                     l->how == GPU_COPY_MIGRATE ? "the driver's prefetch" : "the driver's copy");
    if (c->spread)
        evidence_add(text, len, "one address for %u GPUs", c->spread->n);
    if (l->staged)
        evidence_add(text, len, "not held");
    evidence_add(text, len, "called from cpu%d", c->cpu);
    if (c->groups > 1)
        evidence_add(text, len, "%u %s at once", c->groups, gpu_copy_pattern(c) ? "pairs" : "GPUs");
    gpu_tell_connections(text, len);
}

static int evidence(struct point *pt)
{
    struct gpu_copy *c = pt->state;
    char text[160];

    describe(pt, c);
    if (c->peer)
        gpu_copy_peer_evidence(pt, c);
    gpu_copy_node_evidence(pt, c);
    double share = gpu_copy_level_median(&c->times.overlap);
    if (share < OVERLAP)
        point_reason(
            pt, 0,
            "the first to be done was so after %.0f %% of the time: the rest of the others' "
            "bytes went without it",
            100 * share);
    if (gpu_timer_disagreement(&c->lanes[0].timer, text, sizeof(text))[0])
        point_reason(pt, 0, "%s", text);
    return gpu_copy_pattern(c) ? 0 : gpu_copy_together_verdict(pt, c);
}

static void teardown(struct point *pt)
{
    struct gpu_copy *c = pt->state;

    if (!c)
        return;
    gpu_copy_chain_close(c);
    for (unsigned i = 0; i < c->each * c->groups; i++)
        gpu_copy_lane_close(&c->lanes[i]);
    gpu_copy_spread_close(c);
    gpu_copy_peer_close(c);
    /* Copies after this one shall not find access that they did not ask for. */
    for (unsigned g = 0; c->peers_enabled && g < c->groups; g++)
        for (int end = 0; end < 2; end++)
            gpu_ops(c->gpu[0])->peer(c->group[g].pair[end], c->group[g].pair[1 - end], false);
    if (c->cpu >= 0)
        topo_unbind_self(point_topo(pt));
    free(c);
}

const struct device_work gpu_copy_work = {
    .setup = setup,
    .sample = sample,
    .check = check,
    .evidence = evidence,
    .teardown = teardown,
};
