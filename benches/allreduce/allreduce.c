/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allreduce: how long a group of processes takes to sum a vector, and the other collectives, from 1
 * to N ranks.
 *
 * What is timed: sample() has all ranks do so many operations behind a barrier; each takes its own
 * time in operations() of core/session/member_run.c, between two readings of the clock around
 *
 *   ops->run_times(c, n), ops->run_batch(c) or ops->run(c, call): own_run(), mpi_run() ...
 *
 * of its backend (core/collective), and the slowest rank's time is the sample. check() compares every
 * element of a result. Options, and what they mean for a point, its calls and its members: options.c;
 * nccl-tests' dialect of them: nccl_tests.c; rows: row_values.c, rows.c.
 */
#include "benches/allreduce/work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_watch.h"
#include "core/program.h"
#include "core/row.h"

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

/* long against what a barrier leaves of differences between starts */
#define SAMPLE_NS         2000000u
#define ITERATION_SAMPLES 20 /* that --iterations come in */

static int instead(struct opts *o, const struct bench_common *common, const volatile int *cancel)
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

static void leave(struct point *ctx)
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

static int setup(struct point *pt)
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

static int begin(struct point *pt)
{
    struct collective_work *w = pt->bench_state;
    int err = session_mark(w->ranks.session);

    w->begun = true;
    return err ? point_reason(pt, err, "%s", session_error(w->ranks.session)) : 0;
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
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

static int check(struct point *pt)
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

/* A sweep has what can be; and where nobody chose sizes, those that are worth measuring with a
 * backend. */
static bool wanted(struct point *pt)
{
    const struct collective_params *p = pt->params;
    const struct collective_ops *ops = collective_find(collective_names[p->way.backend]);
    struct collective_point c;
    struct collective_call call;
    unsigned n_calls = 1, n = (unsigned)p->ranks;
    char why[256];

    if (p->model && p->model[0])
        return p->op == COLLECTIVE_ALLREDUCE;
    if (p->sizes_chosen && ops->chosen_most && p->size > ops->chosen_most)
        return false;
    bool can = !collective_point_of(pt, n, &c, &call, &n_calls) &&
               (!ops->supports || !ops->supports(&c, n, why, sizeof(why)));
    pt->reason[0] = 0;
    return can;
}

static int possible(struct point *pt)
{
    const struct collective_params *p = pt->params;
    struct collective_call *calls = xcalloc(COLLECTIVE_CALLS_MAX, sizeof(*calls));
    struct collective_point c;
    unsigned n_calls;
    int err = collective_point_of(pt, (unsigned)p->ranks, &c, calls, &n_calls);

    free(calls);
    if (!err && p->per_process == 1)
        err = ranks_possible(pt, &p->group, p->ranks);
    return err;
}

const struct bench bench = {
    .name = "allreduce",
    .help = "allreduce and the other collectives, over groups of 1 to N processes",
    .about = "On one machine: `plumb-allreduce --np 4`. With a launcher: `mpirun -np 8\n"
             "plumb-allreduce` or `srun`. Without one, start each rank: `--np 4 --rank 0\n"
             "--listen 0.0.0.0 --secret-file F` and `--np 4 --rank R --leader HOST\n"
             "--secret-file F`. One launch measures every communicator of --ranks.\n"
             "\n"
             "`time` is that of the slowest rank. algbw is the bytes of the vector over\n"
             "`time`. busbw is algbw x 2(n-1)/n for allreduce, (n-1)/n for reduce-scatter,\n"
             "all-gather, all-to-all, gather and scatter, 1 for broadcast, reduce and\n"
             "send-receive. This is the traffic\n"
             "of each wire if no wire carries data twice: compare it with the rate of the\n"
             "wire. Data are whole numbers with exact sums, and every element of every result\n"
             "is compared. The system's counters of every NIC prove which path the bytes took.",
    .needs = "group",
    .options = allreduce_options,
    .params_size = sizeof(struct collective_params),
    .rows = &bench_rows,
    .defaults = allreduce_defaults,
    .instead = instead,
    .wanted = wanted,
    .possible = possible,
    .bench_state_size = sizeof(struct collective_work),
    .close = leave,
    .setup = setup,
    .begin = begin,
    .sample = sample,
    .check = check,
    .evidence = ranks_evidence,
    .teardown = ranks_teardown,
    .backends = way_backends,
};
