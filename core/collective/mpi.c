/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of an MPI, between ranks that its launcher started: the module plumb-mpi.so (group/mpi_module.h) calls them. Buffers are
 * in host memory.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/collective/collective.h"
#include "core/collective/data.h"
#include "core/collective/library.h"
#include "core/collective/sockets.h"
#include "core/group/mpi.h"
#include "core/group/mpi_module.h"

#define LOOK_NS 50000000 /* attend: twenty times a second */
#define TURNS   64       /* between two looks at the clock */

struct mpi_state {
    const struct mpi_collectives *ops;
    struct mpi_collective *mpi;
    double bytes, calls; /* of all that ran */
    bool stuck;          /* MPI may still write to the buffers */
};

static void mpi_backends(void (*say)(void *arg, const char *name, const char *state), void *arg)
{
    char error[256], version[128], state[448];
    const struct mpi_module *mpi = mpi_module_find(error, sizeof(error));

    if (!mpi || mpi->abi != MPI_MODULE_ABI) {
        snprintf(state, sizeof(state), "absent: %s", error);
    } else {
        mpi->version(version, sizeof(version));
        snprintf(state, sizeof(state), "present: %s, under mpirun or srun%s", version,
                 mpi->cuda_aware() ? "; takes a GPU's memory (not used here)" : "");
    }
    say(arg, "mpi", state);
}

/* MPI 3 counts in int. */
static int fits(const struct collective_point *p, unsigned n, char *why, size_t len)
{
    bool whole = p->op == COLLECTIVE_ALLREDUCE || p->op == COLLECTIVE_BROADCAST ||
                 p->op == COLLECTIVE_SEND_RECEIVE;
    uint64_t count = whole ? p->count : p->count / n;

    if (count <= INT_MAX)
        return 0;
    snprintf(why, len,
             "mpi: a call of MPI 3 takes at most %d elements, this one has %llu: take a smaller "
             "--size, or a wider --dtype",
             INT_MAX, (unsigned long long)count);
    return -EOPNOTSUPP;
}

static int mpi_supports(const struct collective_point *p, unsigned n, char *why, size_t len)
{
    const char *reason = NULL;

    if (mpi_launched() < 2)
        reason = "mpi: its ranks, two or more, are started by mpirun or srun: mpirun -np 4 "
                 "plumb-allreduce ...";
    else if (p->in_place && p->op == COLLECTIVE_REDUCE_SCATTER)
        reason = "mpi: reduce-scatter in place leaves each block at the beginning of the vector, "
                 "not at its own place: leave --in-place out";
    else if (p->in_place && (p->op == COLLECTIVE_ALL_TO_ALL || p->op == COLLECTIVE_SEND_RECEIVE))
        reason = "mpi: all-to-all and send-receive are not in place: leave --in-place out";
    if (!reason)
        return fits(p, n, why, len);
    snprintf(why, len, "%s", reason);
    return -EOPNOTSUPP;
}

static int mpi_open(struct collective *c)
{
    char error[256];
    const struct mpi_module *mpi = mpi_module_find(error, sizeof(error));
    struct mpi_state *s;

    if (!mpi)
        return collective_fail(c, -EOPNOTSUPP, "mpi: %s", error);
    if (strcmp(world_group(c->world), "mpi") != 0)
        return collective_fail(c, -EOPNOTSUPP,
                               "mpi: these ranks do not know each other by MPI: start them by "
                               "mpirun or srun");
    c->state = s = calloc(1, sizeof(*s));
    if (!s)
        return collective_fail(c, -ENOMEM, "mpi: out of memory");
    s->ops = mpi->collectives;
    int err = library_devices(c);
    return err ? err : collective_host_alloc(c);
}

/* MPI's calls leave a plain "MPI_X: error N: text". */
static int said(struct collective *c, int err, const char *error)
{
    return err ? collective_fail(c, err, "mpi: %s", error) : 0;
}

static int mpi_join(struct collective *c, const struct collective_card *cards, unsigned n)
{
    struct mpi_state *s = c->state;
    const struct mpi_setup setup = {.members = c->members,
                                    .n = c->n,
                                    .me = c->me,
                                    .point = c->point,
                                    .element_bytes = collective_type_bytes(c->point->type),
                                    .op_name = collective_ops_names[c->point->op],
                                    .reduce = data_reduce};
    char error[256] = "";

    (void)cards;
    (void)n;
    return said(c, s->ops->open(&s->mpi, &setup, error, sizeof(error)), error);
}

/* Until what was begun is done, looking after the channels; the CPU is for others where there are more ranks than CPUs. */
static int finish(struct collective *c)
{
    struct mpi_state *s = c->state;
    uint64_t begin_ns = clock_now_ns(), looked_ns = begin_ns;
    char error[256] = "";
    bool done = false;

    for (unsigned turns = 1;; turns++) {
        int err = s->ops->test(s->mpi, &done, error, sizeof(error));
        if (err || done)
            return said(c, err, error);
        if (c->point->crowded)
            sched_yield();
        if (turns % TURNS)
            continue;
        uint64_t now_ns = clock_now_ns();
        if (now_ns - looked_ns < LOOK_NS)
            continue;
        looked_ns = now_ns;
        err = c->attend ? c->attend(c, now_ns - begin_ns) : 0;
        if (err) {
            s->stuck = true;
            return err;
        }
    }
}

/* First one that a lost rank cannot hang, then one that leaves less between the ranks: Open MPI's larger operations have two levels, and
 * which one they are on hangs on how far apart the ranks begin. */
static int mpi_barrier(struct collective *c)
{
    struct mpi_state *s = c->state;
    char error[256] = "";
    int err = s->ops->barrier(s->mpi, error, sizeof(error));

    err = err ? said(c, err, error) : finish(c);
    return err ? err : said(c, s->ops->align(s->mpi, error, sizeof(error)), error);
}

static struct mpi_call call_of(const struct collective *c, unsigned call)
{
    struct library_part part = library_part(c, &c->calls[call]);
    char *result = c->result, *input = c->point->in_place ? result : c->input;

    if (c->point
            ->in_place) /* MPI_IN_PLACE stands for the input: what it takes is the whole result */
        part.result = c->calls[call].first * collective_type_bytes(c->point->type);
    return (struct mpi_call){input + part.input, result + part.result, c->calls[call].count};
}

static void count(struct collective *c, unsigned call)
{
    struct mpi_state *s = c->state;

    s->bytes += (double)c->calls[call].count * (double)collective_type_bytes(c->point->type);
    s->calls++;
}

static int mpi_run(struct collective *c, unsigned call)
{
    struct mpi_state *s = c->state;
    struct mpi_call of = call_of(c, call);
    char error[256] = "";

    count(c, call);
    return said(c, s->ops->run(s->mpi, &of, error, sizeof(error)), error);
}

static int mpi_start(struct collective *c, unsigned call)
{
    struct mpi_state *s = c->state;
    struct mpi_call of = call_of(c, call);
    char error[256] = "";

    count(c, call);
    s->stuck = true;
    return said(c, s->ops->start(s->mpi, &of, error, sizeof(error)), error);
}

static int mpi_test(struct collective *c, bool *done)
{
    struct mpi_state *s = c->state;
    char error[256] = "";
    int err = s->ops->test(s->mpi, done, error, sizeof(error));

    s->stuck = err || !*done;
    return said(c, err, error);
}

static void mpi_tell(struct collective *c, struct collective_told *told)
{
    const struct mpi_state *s = c->state;
    struct mpi_told mpi;

    s->ops->tell(s->mpi, &mpi);
    snprintf(told->algorithm, sizeof(told->algorithm), "%s", mpi.algorithm);
    snprintf(told->detail, sizeof(told->detail), "%s", mpi.detail);
    sockets_of_mpi(&mpi.settings, told->sockets, sizeof(told->sockets));
    library_flow(told, c->point->device, library_least(c, s->bytes),
                 s->calls > 0 ? s->bytes / s->calls : 0);
}

static void mpi_close(struct collective *c)
{
    struct mpi_state *s = c->state;

    if (!s)
        return;
    if (s->mpi)
        s->ops->close(s->mpi);
    if (!s->stuck)
        collective_host_free(c);
    free(s);
    c->state = NULL;
}

const struct collective_ops collective_mpi = {
    .name = "mpi",
    .help = "the collectives of MPI, between ranks that mpirun or srun started",
    .blocks = true,
    .backends = mpi_backends,
    .supports = mpi_supports,
    .open = mpi_open,
    .join = mpi_join,
    .barrier = mpi_barrier,
    .run = mpi_run,
    .start = mpi_start,
    .test = mpi_test,
    .tell = mpi_tell,
    .close = mpi_close,
};
