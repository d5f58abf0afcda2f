/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of the benchmark `allreduce` that measure, and the ranks that take part. See work.h; its
 * options and its points: allreduce.c; its rows: row_values.c. */
#include "benches/allreduce/work.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "core/clock.h"
#include "core/group/mpi.h"
#include "core/group/notice.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_watch.h"
#include "core/program.h"
#include "core/row.h"
#include "core/stats.h"
#include "core/wire/wires.h"

#define OVERLAP_BLOCKS 16

/* Operations that are under way while their rank multiplies matrices: what each takes alone, and
 * both at once. See work.h. */

#define TRIES 5

/* How long the product is to take: 0 or -errno of the session. */
static int work_overlap_size(struct collective_work *w)
{
    struct session_run run = {.operations = 1, .overlap_ns = 1};
    const struct collective_times *times;
    uint64_t ns = 0, least = UINT64_MAX;
    int err = 0;

    for (int i = 0; i < TRIES && !err; i++) {
        err = session_run(w->ranks.session, &run, &times, &ns);
        least = ns < least ? ns : least;
    }
    w->overlap.wanted_ns = least;
    return err;
}

/* Before each sample of both: the operation without a product to speak of, begun and waited for as
 * beside one; then the product without the operation. */
static int work_overlap_alone(struct collective_work *w)
{
    struct session_run run = {.operations = 1, .overlap_ns = 1};
    struct collective_overlap *o = &w->overlap;
    const struct collective_times *times;
    uint64_t alone_ns = 0, work_ns = 0;
    int err = session_run(w->ranks.session, &run, &times, &alone_ns);

    if (!err)
        err = session_overlap_alone(w->ranks.session, o->wanted_ns, &work_ns);
    if (err || !w->begun || o->n == OVERLAP_SAMPLES)
        return err;
    o->alone_ns[o->n] = (double)alone_ns;
    o->work_ns[o->n] = (double)work_ns;
    return 0;
}

/* How much of the shorter one of operation and product went on beside the other: 100 % where both
 * together take as long as the longer. Each sample has all three, one after another; medians of
 * blocks of samples, so that there is an interval. */
void work_overlap_figures(struct point *pt, const struct collective_work *w)
{
    const struct collective_overlap *o = &w->overlap;
    size_t blocks = o->n < OVERLAP_BLOCKS ? o->n : OVERLAP_BLOCKS,
           each = blocks ? o->n / blocks : 0;
    struct figure *alone, *work, *share;

    if (!blocks)
        return;
    alone = point_figure(pt, "operation_alone", "us");
    work = point_figure(pt, "product_alone", "us");
    share = point_figure(pt, "overlap", "percent");
    for (size_t i = 0; i < blocks; i++) {
        double a = stats_median(o->alone_ns + i * each, each),
               p = stats_median(o->work_ns + i * each, each);
        double both = stats_median(o->both_ns + i * each, each);
        figure_value(alone, a / 1e3);
        figure_value(work, p / 1e3);
        figure_value(share, 100 * (a + p - both) / fmin(a, p));
    }
}

/* long against what a barrier leaves of differences between starts */
#define SAMPLE_NS         2000000u
#define ITERATION_SAMPLES 20 /* that --iterations come in */

int collective_bench_instead(struct opts *o, const struct bench_common *common,
                             const volatile int *cancel)
{
    struct collective_params p = {0};
    char why[320];

    (void)common;
    if (nccl_tests_refuse(o, why, sizeof(why))) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
        return EXIT_USAGE;
    }
    if (opts_apply(o, o->tables[0], NULL, &p))
        return EXIT_USAGE;
    struct session_service service = {.device = p.way.device};
    return ranks_instead(o, &p.group, &service, cancel);
}

void collective_bench_close(struct point *ctx)
{
    ranks_leave(&((struct collective_work *)ctx->bench_state)->ranks);
}

static int choose_members(struct point *pt, struct collective_work *w)
{
    const struct collective_params *p = pt->params;
    unsigned size = world_size(w->ranks.world), most, fewest;

    if (w->n > size)
        return point_reason(pt, -EOPNOTSUPP,
                            "a communicator of %u ranks, but there are %u: give --np %u, or start "
                            "more",
                            w->n, size, w->n);
    place_members(w->ranks.world, p->fill, w->n, w->members);
    w->n_machines = place_machines(w->ranks.world, w->members, w->n, w->machine);
    point_column(pt, "nodes", "%u", links_nodes(w->ranks.world, w->members, w->n, &most, &fewest));
    return 0;
}

/* Rank 0's GPU, as its backend takes it: its clocks, and whether it is simulated, go into the rows.
 * The other ranks watch theirs. */
static int watch_gpu(struct point *pt, const struct collective_work *w)
{
    const struct collective_params *p = pt->params;
    unsigned local = world_member(w->ranks.world, 0)->local;
    struct gpu *gpu;

    if (!collective_find(collective_names[p->way.backend])->device_memory)
        return 0;
    unsigned count = gpus_count(point_gpus(pt)), each = collective_each(&w->point);
    int err = 0;

    if (w->n > 1)
        snprintf(pt->watch_of, sizeof(pt->watch_of), "rank 0: ");
    for (unsigned i = 0; i < each && !err; i++)
        err = point_gpu(pt, count ? (local * each + i) % count : 0, &gpu);
    return err;
}

/* Ranks may share a GPU, each of which reads its counters. */
static void add_gpus(struct point *pt, struct collective_work *w)
{
    char text[192], name[WORLD_NAME_MAX + 32];
    struct gpu_sight sights[WORLD_RANKS_MAX] = {{0}};
    unsigned n = 0;

    w->gpus.disturbed[0] = 0;
    for (; n < w->n && session_gpu(w->ranks.session, n); n++) {
        const struct gpu_ledger *gpu = session_gpu(w->ranks.session, n);
        sights[n] =
            (struct gpu_sight){w->machine[n], session_gpu_address(w->ranks.session, n), gpu};
        if (n && *gpu_ledger_disturbance(gpu, text, sizeof(text)))
            evidence_add(w->gpus.disturbed, sizeof(w->gpus.disturbed), "%s: %s",
                         world_name(w->ranks.world, w->members[n], name, sizeof(name)), text);
    }
    gpu_ledger_join(sights, n, &w->gpus.same, &w->gpus.ledger);
    if (n > 1)
        pt->elsewhere = &w->gpus;
}

int collective_bench_setup(struct point *pt)
{
    const struct collective_params *p = pt->params;
    struct collective_work *w = pt->bench_state;

    w->begun = false;
    w->samples = w->operations = 0;
    w->overlap.n = 0;
    w->clocks_differ = false;
    memset(w->each, 0, sizeof(w->each));
    memset(w->machines, 0, sizeof(w->machines));
    w->size = (unsigned)p->ranks;
    pt->sample_ns = p->gap_ns || p->overlap ? 0 : SAMPLE_NS;
    if (p->iterations) /* in so many samples as an interval wants */
        pt->max_inner = p->iterations > ITERATION_SAMPLES ? p->iterations / ITERATION_SAMPLES : 1;
    int err = collective_point_of(pt, w->size, &w->point, w->calls, &w->n_calls);
    w->n = w->size / collective_each(&w->point);
    w->vector_bytes = 0;
    for (unsigned i = 0; !err && i < w->n_calls; i++)
        w->vector_bytes += w->calls[i].count * collective_type_bytes(p->dtype);
    rows_series(pt, w); /* so that a row that fails says what it was to measure */
    if (err || !point_topo(pt))
        return err ? err : -EIO;
    err = ranks_need(pt, &w->ranks, &p->group, !p->no_cpu);
    if (!err)
        err = choose_members(pt, w);
    if (!err)
        err = watch_gpu(pt, w);
    if (err)
        return err;
    err = session_begin(w->ranks.session, &w->point, w->members, w->n, w->calls, w->n_calls);
    if (err)
        return point_reason(pt, err, "%s", session_error(w->ranks.session));
    err = p->overlap ? work_overlap_size(w) : 0;
    return err ? point_reason(pt, err, "%s", session_error(w->ranks.session)) : 0;
}

int collective_bench_begin(struct point *pt)
{
    struct collective_work *w = pt->bench_state;
    int err = session_mark(w->ranks.session);

    w->begun = true;
    return err ? point_reason(pt, err, "%s", session_error(w->ranks.session)) : 0;
}

int collective_bench_sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    const struct collective_params *p = pt->params;
    struct collective_work *w = pt->bench_state;
    uint64_t batch = collective_batch(&w->point);
    struct session_run run = {.operations = inner * batch,
                              .gap_ns = p->gap_ns,
                              .overlap_ns = p->overlap ? w->overlap.wanted_ns : 0};
    const struct collective_times *times;
    uint64_t slowest = 0;
    int err = p->overlap ? work_overlap_alone(w) : 0;

    uint64_t begin_ns = clock_now_ns();
    if (!err)
        err = session_run(w->ranks.session, &run, &times, &slowest);
    if (err)
        return point_reason(pt, err, "%s", session_error(w->ranks.session));
    uint64_t wall_ns = clock_now_ns() - begin_ns;
    for (size_t i = 0; i < pt->n_series; i++)
        ns[i] = slowest / batch;
    if (pt->watch)
        gpu_watch_look(pt->watch); /* between samples */
    if (!w->begun)
        return 0;
    w->operations += inner * batch;
    if (p->overlap && w->overlap.n < OVERLAP_SAMPLES)
        w->overlap.both_ns[w->overlap.n++] = (double)slowest;
    rows_count(w, times, slowest, wall_ns);
    pt->enough = p->iterations && w->operations >= p->iterations;
    return 0;
}

int collective_bench_check(struct point *pt)
{
    struct collective_work *w = pt->bench_state;
    int err = session_end(w->ranks.session);

    rows_finish(pt, w);
    add_gpus(pt, w);
    if (!err && session_broken(w->ranks.session))
        point_reason(pt, 0, "a rank that has no part in this is lost: %s",
                     session_loss(w->ranks.session));
    return err ? point_reason(pt, err, "%s", session_error(w->ranks.session)) : 0;
}

int collective_bench_evidence(struct point *pt)
{
    ranks_evidence(pt, &((struct collective_work *)pt->bench_state)->ranks);
    return 0;
}

void collective_bench_teardown(struct point *pt)
{
    struct collective_work *w = pt->bench_state;

    if (w->ranks.session)
        session_finish(w->ranks.session);
}
