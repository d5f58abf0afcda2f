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

/* Who takes part: children of this process, ranks that find each other by sockets, or those of an
 * MPI launcher. By options and environment. */
enum collective_group { COLLECTIVE_LOCAL, COLLECTIVE_SOCK, COLLECTIVE_MPI };

static enum collective_group group_of(const struct collective_params *p)
{
    if (p->leader || p->listen)
        return COLLECTIVE_SOCK;
    return mpi_launched() > 1 ? COLLECTIVE_MPI : COLLECTIVE_LOCAL;
}

static void say_ready(void *arg, const char *address, uint16_t port)
{
    (void)arg;
    notice_send(&(struct notice){.kind = NOTICE_LISTENING}, "%s: listening on %s port %u",
                program_invocation_short_name, address, port);
}

static struct world_meeting meeting_of(const struct collective_params *p,
                                       const struct meet_secret *secret, const volatile int *cancel)
{
    const char *address = p->leader ? p->leader : p->listen;

    if (address && !p->leader && !strcmp(address, "loopback"))
        address = NULL;
    return (struct world_meeting){.address = address,
                                  .port = (uint16_t)p->port,
                                  .rank = (unsigned)p->rank,
                                  .size = (unsigned)p->np,
                                  .secret = secret,
                                  .protocol = session_protocol(),
                                  .wait_ns = p->wait_ns,
                                  .cancel = cancel,
                                  .ready = say_ready};
}

static int gather(struct collective_work *w, const struct collective_params *p,
                  const volatile int *cancel, char *error, size_t len)
{
    struct world_meeting m = meeting_of(p, &w->secret, cancel);
    int err = w->has_secret ? 0 : meet_secret_need(p->secret_file, &w->secret, error, len);

    w->has_secret = !err;
    return err ? err : world_gather(&w->world, &m, error, len);
}

/* Rank 0: its world, made at the first call. 0, or -errno with error. */
static int collective_world(struct collective_work *w, const struct collective_params *p,
                            const volatile int *cancel, char *error, size_t len)
{
    if (w->world)
        return 0;
    switch (group_of(p)) {
    case COLLECTIVE_SOCK:
        return gather(w, p, cancel, error, len);
    case COLLECTIVE_MPI:
        return world_mpi(&w->world, error, len);
    default:
        return world_fork(&w->world, (unsigned)p->np, session_serve, NULL, error, len);
    }
}

static void collective_leave(struct collective_work *w)
{
    bool broken = w->session && session_broken(w->session);
    bool mpi = w->world && !strcmp(world_group(w->world), "mpi");

    session_close(w->session);
    world_close(w->world);
    w->session = NULL;
    w->world = NULL;
    if (mpi &&
        !broken) /* a rank that hangs would be waited for without end: the launcher ends it */
        mpi_end();
}

/* What the command line or its files are to blame for. */
static int exit_of(int err)
{
    static const int usage[] = {-EINVAL, -EADDRINUSE, -EACCES, -EOPNOTSUPP, -ENOENT};

    for (size_t i = 0; i < sizeof(usage) / sizeof(*usage); i++)
        if (err == usage[i])
            return EXIT_USAGE;
    return err ? EXIT_INCOMPLETE : EXIT_GOOD;
}

static int join(struct world **world, const struct collective_params *p, const volatile int *cancel,
                char *error, size_t len)
{
    struct meet_secret secret = {0};
    struct world_meeting m = meeting_of(p, &secret, cancel);
    int err = meet_secret_need(p->secret_file, &secret, error, len);

    return err ? err : world_join(world, &m, error, len);
}

static int serve_world(struct world *world, const struct collective_params *p)
{
    struct session_service service = {.device = p->device};
    bool mpi = !strcmp(world_group(world), "mpi");
    int status = session_serve(world, &service);

    world_close(world);
    if (mpi && !status)
        mpi_end();
    return status;
}

/* Is this process another rank than 0, by the options or by the launcher? -errno with error: it
 * cannot be told. */
static int is_other(const struct collective_params *p, char *error, size_t len)
{
    unsigned rank = 0, size = 0;

    if (group_of(p) != COLLECTIVE_MPI)
        return p->leader != NULL;
    int err = mpi_begin(&rank, &size, error, len);
    return err ? err : rank > 0;
}

static int serve(const struct collective_params *p, const volatile int *cancel, char *error,
                 size_t len)
{
    struct world *world = NULL;
    int err = group_of(p) == COLLECTIVE_MPI ? world_mpi(&world, error, len)
                                            : join(&world, p, cancel, error, len);

    return err ? err : serve_world(world, p);
}

static int tell(int err, const char *error)
{
    notice_error(err, error[0] ? error : strerror(-err));
    return exit_of(err);
}

/* Where this process is another rank: serves, and returns the exit status; -1: it is rank 0. */
static int collective_serve(const struct collective_params *p, const volatile int *cancel)
{
    char error[512] = "";
    int status = is_other(p, error, sizeof(error));

    if (!status)
        return -1;
    if (status > 0)
        status = serve(p, cancel, error, sizeof(error));
    return status < 0 ? tell(status, error) : status;
}

/* As mpirun's users print their hosts before they trust a run. */
static void print_members(const struct world *world)
{
    puts("rank,node,host,pid,machine_ranks,group");
    for (unsigned i = 0; i < world_size(world); i++) {
        const struct world_member *m = world_member(world, i);
        printf("%u,%u,%s,%d,%u,%s\n", i, m->node, m->host, m->pid, m->machine_ranks,
               world_group(world));
    }
}

/* --who: a line for each rank. Returns the exit status. */
static int collective_who(const struct collective_params *p, const volatile int *cancel)
{
    struct collective_work *w = calloc(1, sizeof(*w));
    char error[512] = "";
    int err = w ? collective_world(w, p, cancel, error, sizeof(error)) : -ENOMEM;

    if (!err)
        err = session_open(&w->session, w->world, NULL, 0);
    if (!err)
        print_members(w->world);
    else
        tell(err, error);
    if (w)
        collective_leave(w);
    free(w);
    return exit_of(err);
}

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
        err = session_run(w->session, &run, &times, &ns);
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
    int err = session_run(w->session, &run, &times, &alone_ns);

    if (!err)
        err = session_overlap_alone(w->session, o->wanted_ns, &work_ns);
    if (err || !w->begun || o->n == OVERLAP_SAMPLES)
        return err;
    o->alone_ns[o->n] = (double)alone_ns;
    o->work_ns[o->n] = (double)work_ns;
    return 0;
}

static void work_overlap_both(struct collective_work *w, uint64_t both_ns)
{
    if (w->overlap.n < OVERLAP_SAMPLES)
        w->overlap.both_ns[w->overlap.n++] = (double)both_ns;
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

#define IDLE_NS 1000000000u /* how long idle machines are watched */
/* long against what a barrier leaves of differences between starts */
#define SAMPLE_NS         2000000u
#define ITERATION_SAMPLES 20 /* that --iterations come in */

int collective_bench_instead(struct opts *o, const struct bench_common *common,
                             const volatile int *cancel)
{
    struct collective_params p = {0};
    char unknown[320];

    (void)common;
    if (opts_apply(o, o->tables[0], NULL, &p))
        return EXIT_USAGE;
    if (p.leader && !p.rank) {
        fprintf(stderr,
                "%s: --leader HOST is for ranks 1 and on: say which by --rank, or leave --leader "
                "out and --listen on this one\n",
                program_invocation_short_name);
        return EXIT_USAGE;
    }
    if (group_of(&p) == COLLECTIVE_MPI && p.np != mpi_launched()) {
        fprintf(stderr,
                "%s: --np %llu, but the launcher started %u: leave --np out, and take --ranks for "
                "fewer\n",
                program_invocation_short_name, (unsigned long long)p.np, mpi_launched());
        return EXIT_USAGE;
    }
    if (group_of(&p) == COLLECTIVE_LOCAL && !opts_values(o, "np")->given &&
        mpi_unknown_text(unknown, sizeof(unknown))) {
        fprintf(stderr,
                "%s: %s. Or give --listen to one and --leader to the others; --np N is for N "
                "processes of this one alone\n",
                program_invocation_short_name, unknown);
        return EXIT_USAGE;
    }
    int status = collective_serve(&p, cancel);
    return status < 0 && p.who ? collective_who(&p, cancel) : status;
}

int collective_bench_open(struct point *ctx)
{
    ctx->bench_state = calloc(1, sizeof(struct collective_work));
    return ctx->bench_state ? 0 : -ENOMEM;
}

void collective_bench_close(struct point *ctx)
{
    collective_leave(ctx->bench_state);
    free(ctx->bench_state);
}

static int open_session(struct point *pt, struct collective_work *w)
{
    const struct collective_params *p = pt->params;
    char error[512] = "";
    int err = collective_world(w, p, pt->cancel, error, sizeof(error));

    /* Whoever started the ranks one by one looks there, and may try another port. */
    if (err && group_of(p) == COLLECTIVE_SOCK)
        notice_error(err, error);
    if (!err)
        err = session_open(&w->session, w->world, point_topo(pt), p->no_cpu ? 0 : IDLE_NS);
    if (err && !error[0])
        snprintf(error, sizeof(error), "%s",
                 w->session ? session_error(w->session) : strerror(-err));
    if (err)
        collective_leave(w);
    if (err)
        return point_reason(pt, err, "%s", error);
    return 0;
}

/*
 * Ranks that were lost, and the points that are left. Processes that were forked here are started
 * anew, if they can be: a child of a process that has used a GPU cannot use it. Ranks that came by
 * sockets are kept: those that are left serve on, and a communicator with a lost one fails by its
 * name. Of a launcher's ranks none is left: it ends them all.
 */
static void count_losses(struct collective_work *w)
{
    const char *group = world_group(w->world);
    bool mpi = !strcmp(group, "mpi");

    if (!session_broken(w->session))
        return;
    if (mpi && !w->unreachable) {
        w->unreachable = -EPIPE;
        snprintf(w->why_unreachable, sizeof(w->why_unreachable),
                 "a rank was lost in an earlier case: %s", session_loss(w->session));
    }
    if (mpi || (!strcmp(group, "local") && !gpus_used()))
        collective_leave(w);
}

/* One world for all points, as long as it can be kept. */
static int need_session(struct point *pt, struct collective_work *w)
{
    if (w->session)
        count_losses(w);
    if (w->session)
        return 0;
    if (w->unreachable)
        return point_reason(pt, w->unreachable, "%s", w->why_unreachable);
    int err = open_session(pt, w);
    if (err && err != -EINTR) {
        w->unreachable = err;
        snprintf(w->why_unreachable, sizeof(w->why_unreachable), "%s", pt->reason);
    }
    return err;
}

static int choose_members(struct point *pt, struct collective_work *w)
{
    const struct collective_params *p = pt->params;
    unsigned size = world_size(w->world), most, fewest;

    w->n = (unsigned)p->ranks;
    if (w->n > size)
        return point_reason(pt, -EOPNOTSUPP,
                            "a communicator of %u ranks, but there are %u: give --np %u, or start "
                            "more",
                            w->n, size, w->n);
    place_members(w->world, p->fill, w->n, w->members);
    w->n_machines = place_machines(w->world, w->members, w->n, w->machine);
    point_column(pt, "nodes", "%u", place_nodes(w->world, w->members, w->n, &most, &fewest));
    return 0;
}

/* Rank 0's GPU, as its backend takes it: its clocks, and whether it is simulated, go into the rows.
 * The other ranks watch theirs. */
static int watch_gpu(struct point *pt, const struct collective_work *w)
{
    const struct collective_params *p = pt->params;
    unsigned local = world_member(w->world, 0)->local;
    struct gpu *gpu;

    if (!collective_find(collective_names[p->backend])->device_memory)
        return 0;
    unsigned count = gpus_count(point_gpus(pt));
    if (w->n > 1)
        snprintf(pt->watch_of, sizeof(pt->watch_of), "rank 0: ");
    return point_gpu(pt, count ? local % count : 0, &gpu);
}

/* Ranks may share a GPU, each of which reads its counters. */
static void add_gpus(struct point *pt, struct collective_work *w)
{
    char text[192], name[WORLD_NAME_MAX + 32];
    struct gpu_sight sights[WORLD_RANKS_MAX] = {{0}};
    unsigned n = 0;

    w->gpus.disturbed[0] = 0;
    for (; n < w->n && session_gpu(w->session, n); n++) {
        const struct gpu_ledger *gpu = session_gpu(w->session, n);
        sights[n] = (struct gpu_sight){w->machine[n], session_gpu_address(w->session, n), gpu};
        if (n && *gpu_ledger_disturbance(gpu, text, sizeof(text)))
            evidence_add(w->gpus.disturbed, sizeof(w->gpus.disturbed), "%s: %s",
                         world_name(w->world, w->members[n], name, sizeof(name)), text);
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
    w->n = (unsigned)p->ranks;
    pt->sample_ns = p->gap_ns || p->overlap ? 0 : SAMPLE_NS;
    if (p->iterations) /* in so many samples as an interval wants */
        pt->max_inner = p->iterations > ITERATION_SAMPLES ? p->iterations / ITERATION_SAMPLES : 1;
    int err = collective_point_of(pt, w->n, &w->point, w->calls, &w->n_calls);
    w->vector_bytes = 0;
    for (unsigned i = 0; !err && i < w->n_calls; i++)
        w->vector_bytes += w->calls[i].count * collective_type_bytes(p->dtype);
    rows_series(pt, w); /* so that a row that fails says what it was to measure */
    if (err || !point_topo(pt))
        return err ? err : -EIO;
    err = need_session(pt, w);
    if (!err)
        err = choose_members(pt, w);
    if (!err)
        err = watch_gpu(pt, w);
    if (err)
        return err;
    err = session_begin(w->session, &w->point, w->members, w->n, w->calls, w->n_calls);
    if (err)
        return point_reason(pt, err, "%s", session_error(w->session));
    err = p->overlap ? work_overlap_size(w) : 0;
    return err ? point_reason(pt, err, "%s", session_error(w->session)) : 0;
}

int collective_bench_begin(struct point *pt)
{
    struct collective_work *w = pt->bench_state;
    int err = session_mark(w->session);

    w->begun = true;
    return err ? point_reason(pt, err, "%s", session_error(w->session)) : 0;
}

int collective_bench_sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    const struct collective_params *p = pt->params;
    struct collective_work *w = pt->bench_state;
    struct session_run run = {.operations = inner,
                              .gap_ns = p->gap_ns,
                              .overlap_ns = p->overlap ? w->overlap.wanted_ns : 0};
    const struct collective_times *times;
    uint64_t slowest = 0;
    int err = p->overlap ? work_overlap_alone(w) : 0;

    uint64_t begin_ns = clock_now_ns();
    if (!err)
        err = session_run(w->session, &run, &times, &slowest);
    if (err)
        return point_reason(pt, err, "%s", session_error(w->session));
    uint64_t wall_ns = clock_now_ns() - begin_ns;
    for (size_t i = 0; i < pt->n_series; i++)
        ns[i] = slowest;
    if (pt->watch)
        gpu_watch_look(pt->watch); /* between samples */
    if (!w->begun)
        return 0;
    w->operations += inner;
    if (p->overlap)
        work_overlap_both(w, slowest);
    rows_count(w, times, slowest, wall_ns);
    pt->enough = p->iterations && w->operations >= p->iterations;
    return 0;
}

int collective_bench_check(struct point *pt)
{
    struct collective_work *w = pt->bench_state;
    int err = session_end(w->session);

    rows_finish(pt, w);
    add_gpus(pt, w);
    if (!err && session_broken(w->session))
        point_reason(pt, 0, "a rank that has no part in this is lost: %s",
                     session_loss(w->session));
    return err ? point_reason(pt, err, "%s", session_error(w->session)) : 0;
}

int collective_bench_evidence(struct point *pt)
{
    rows_evidence(pt, pt->bench_state);
    return 0;
}

void collective_bench_teardown(struct point *pt)
{
    struct collective_work *w = pt->bench_state;

    if (w->session)
        session_finish(w->session);
}

void collective_bench_backends(backend_say_fn *say, void *arg)
{
    for (size_t i = 0; collective_names[i]; i++) {
        const struct collective_ops *ops = collective_find(collective_names[i]);
        if (ops->backends)
            ops->backends(say, arg);
        else
            say(arg, &(struct backend){.name = ops->name, .state = BACKEND_PRESENT});
    }
    wire_backends(say, arg);
}
