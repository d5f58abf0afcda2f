/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of an MPI, between ranks that its launcher started: the module plumb-mpi.so
 * (library.h) calls them. Buffers are in host memory (mpi), or in the memory of the rank's GPU
 * (mpi-cuda), of which an MPI that is CUDA-aware takes the pointers.
 *
 * MPI knows nothing of streams: what writes to a buffer must be done before MPI is given it (so all
 * here waits for its stream), and what MPI was asked for is there when a call has returned, or
 * MPI_Test has said so (MPI 3.1, 3.4 and 3.7.3: from then on buffers may be used), for memory of
 * whatever kind.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/collective/collective.h"
#include "core/collective/data.h"
#include "core/collective/library.h"
#include "core/group/mpi.h"
#include "core/group/world.h"
#include "core/hw/gpu.h"

struct mpi_state {
    const struct mpi_collectives *ops;
    struct mpi_collective *mpi;
    struct library_gpu gpu; /* of mpi-cuda; else nothing */
    bool shared;            /* several ranks on one GPU, as far as member 0 knows */
    uint64_t elements;      /* of all that ran */
    bool stuck;             /* MPI may still write to the buffers */
    char error[256];        /* what the module says of a call that failed */
};

#define MPI_WORDS 256

/* NULL: it is absent. */
static const struct mpi_module *present(struct backend *b, char text[MPI_WORDS])
{
    const struct mpi_module *mpi = mpi_module_find(text, MPI_WORDS);

    b->why = mpi ? NULL : text;
    if (!mpi)
        return NULL;
    mpi->version(text, MPI_WORDS);
    b->state = BACKEND_PRESENT;
    b->version = text;
    b->what = "under mpirun or srun";
    return mpi;
}

static void mpi_backends(backend_say_fn *say, void *arg)
{
    struct backend b = {.name = "mpi"};
    char text[MPI_WORDS];

    present(&b, text);
    say(arg, &b);
}

static void mpi_cuda_backends(backend_say_fn *say, void *arg)
{
    struct backend b = {.name = "mpi-cuda"};
    char text[MPI_WORDS], why[MPI_WORDS] = "";
    const struct mpi_module *mpi = present(&b, text);
    struct gpus *gpus = gpus_open();
    const char *no_gpu;

    if (mpi && !gpus_module(gpus, &no_gpu))
        b = (struct backend){.name = "mpi-cuda", .why = no_gpu};
    else if (mpi && !mpi->cuda_aware(why, sizeof(why)))
        b.why = why;
    say(arg, &b);
    gpus_close(gpus);
}

static int mpi_supports(const struct collective_point *p, unsigned n, char *why, size_t len)
{
    (void)n;
    const char *reason = data_lacks(p);

    if (mpi_launched() < 2) {
        snprintf(why, len,
                 "%s: its ranks, two or more, are started by mpirun or srun: mpirun -np 4 %s ...",
                 p->backend, program_invocation_short_name);
        return -EOPNOTSUPP;
    }
    if (!reason && p->in_place && p->op == COLLECTIVE_REDUCE_SCATTER)
        reason = "reduce-scatter in place leaves each block at the beginning of the vector, "
                 "not at its own place: leave --in-place out";
    else if (!reason && p->in_place &&
             (p->op == COLLECTIVE_ALL_TO_ALL || p->op == COLLECTIVE_SEND_RECEIVE))
        reason = "all-to-all and send-receive are not in place: leave --in-place out";
    if (!reason)
        return 0;
    snprintf(why, len, "%s: %s", p->backend, reason);
    return -EOPNOTSUPP;
}

/* An MPI that does not say that it takes a GPU's memory is never given any; nor is a sum of ours,
 * which is made on the host. */
static int mpi_cuda_supports(const struct collective_point *p, unsigned n, char *why, size_t len)
{
    bool half = p->type == COLLECTIVE_F16 || p->type == COLLECTIVE_BF16;
    char error[256] = "";
    int err = mpi_supports(p, n, why, len);

    if (err)
        return err;
    const struct mpi_module *mpi = mpi_module_find(error, sizeof(error));
    if (half && collective_reduces(p->op))
        snprintf(error, sizeof(error),
                 "MPI 3 has no 16-bit floating point, and plumb's sum of it is made on the host: "
                 "take another type, or --backend mpi");
    else if (mpi && p->op == COLLECTIVE_REDUCE_SCATTER && p->count > mpi->collectives->most())
        snprintf(error, sizeof(error),
                 "a reduce-scatter of more than %llu elements is cut for this MPI, and plumb's sum "
                 "of the parts is made on the host: take a smaller --size, or --backend mpi",
                 (unsigned long long)mpi->collectives->most());
    else if (mpi && mpi->cuda_aware(error, sizeof(error)))
        return 0;
    snprintf(why, len, "%s: %s", p->backend, error);
    return -EOPNOTSUPP;
}

static int copy(void *arg, void *to, const void *from, size_t bytes)
{
    struct collective *c = arg;
    struct mpi_state *s = c->state;

    return library_gpu_copy(c, &s->gpu, to, from, bytes);
}

static int mpi_write(struct collective *c, uint64_t offset, const void *from, size_t bytes)
{
    const struct mpi_state *s = c->state;

    return copy(c, (char *)s->gpu.input + offset, from, bytes);
}

static int mpi_read(struct collective *c, uint64_t offset, void *to, size_t bytes)
{
    const struct mpi_state *s = c->state;

    return copy(c, to, (const char *)s->gpu.result + offset, bytes);
}

static int mpi_open(struct collective *c)
{
    char error[256];
    const struct mpi_module *mpi = mpi_module_find(error, sizeof(error));

    if (!mpi)
        return collective_fail(c, -EOPNOTSUPP, "%s: %s", c->ops->name, error);
    if (strcmp(world_group(c->world), "mpi") != 0)
        return collective_fail(c, -EOPNOTSUPP,
                               "%s: these ranks do not know each other by MPI: start them by "
                               "mpirun or srun",
                               c->ops->name);
    struct mpi_state *s = c->state = xcalloc(1, sizeof(*s));
    s->ops = mpi->collectives;
    int err = library_devices(c);
    if (err)
        return err;
    if (!c->ops->device_memory)
        return collective_host_alloc(c);
    unsigned count;
    err = library_gpu_open(c, &s->gpu, &count);
    return err ? err : library_gpu_buffers(c, &s->gpu);
}

/* MPI's calls leave a plain "MPI_X: error N: text". */
static int said(struct collective *c, int err)
{
    const struct mpi_state *s = c->state;

    return err ? collective_fail(c, err, "%s: %s", c->ops->name, s->error) : 0;
}

/* Which GPU each has, to member 0, which tells whether they share any. */
static int mpi_peers(struct collective *c, unsigned *peers, unsigned *n)
{
    *n = c->me != 0;
    peers[0] = 0;
    return 0;
}

static int mpi_address(struct collective *c, unsigned peer, struct collective_address *address)
{
    struct mpi_state *s = c->state;

    (void)peer;
    library_gpu_address(&s->gpu, address);
    return 0;
}

static struct mpi_call call_of(const struct collective *c, unsigned call)
{
    struct library_part part = library_part(c, &c->calls[call]);
    const struct mpi_state *s = c->state;
    bool gpu = c->ops->device_memory;
    char *result = gpu ? s->gpu.result : c->result, *own = gpu ? s->gpu.input : c->input;
    char *input = c->point->in_place ? result : own;

    /* MPI_IN_PLACE stands for the input: what it takes is the whole result. Of a scatter it is the
     * root's own block. */
    if (c->point->in_place && c->point->op != COLLECTIVE_SCATTER)
        part.result = c->calls[call].first * collective_type_bytes(c->point->type);
    return (struct mpi_call){input + part.input, result + part.result, c->calls[call].count};
}

static int mpi_join(struct collective *c, const struct collective_address *addresses, unsigned n)
{
    struct mpi_state *s = c->state;
    struct mpi_call *calls = xcalloc(c->n_calls, sizeof(*calls));
    const struct mpi_setup setup = {.members = c->members,
                                    .n = c->n,
                                    .me = c->me,
                                    .point = c->point,
                                    .calls = calls,
                                    .n_calls = c->n_calls,
                                    .element_bytes = collective_type_bytes(c->point->type),
                                    .op_name = collective_ops_names[c->point->op],
                                    .reduce = data_reduce,
                                    .copy = c->ops->device_memory ? copy : NULL,
                                    .copy_arg = c};

    for (unsigned i = 0; i < c->n_calls; i++)
        calls[i] = call_of(c, i);
    if (c->ops->device_memory) {
        s->shared = library_gpu_shared(&s->gpu, addresses, n, 0);
        library_gpu_enter(&s->gpu); /* MPI finds a GPU by its calling thread */
    }
    int err = s->ops->open(&s->mpi, &setup, s->error, sizeof(s->error));
    free(calls);
    return said(c, err);
}

/* Is what was begun done? Until it is, MPI may write to the buffers. */
static int look(struct collective *c, struct library_gpu *g)
{
    struct mpi_state *s = c->state;
    bool done = false;
    int err = s->ops->test(s->mpi, &done, s->error, sizeof(s->error));

    (void)g;
    s->stuck = !err && !done;
    return err ? said(c, err) : done ? 0 : -EAGAIN;
}

/* First one that a lost rank cannot hang, then one that leaves less between the ranks: Open MPI's
 * larger operations have two levels, and which one they are on hangs on how far apart the ranks
 * begin. */
static int mpi_barrier(struct collective *c)
{
    struct mpi_state *s = c->state;
    int err = s->ops->barrier(s->mpi, s->error, sizeof(s->error));

    err = err ? said(c, err) : library_gpu_await(c, &s->gpu, look, 0);
    return err ? err : said(c, s->ops->align(s->mpi, s->error, sizeof(s->error)));
}

static void count(struct collective *c, unsigned call, uint64_t times)
{
    struct mpi_state *s = c->state;

    s->elements += times * c->calls[call].count;
}

static int run_call(struct collective *c, unsigned call, uint64_t times)
{
    struct mpi_state *s = c->state;

    count(c, call, times);
    return said(c, s->ops->run(s->mpi, call, times, s->error, sizeof(s->error)));
}

static int mpi_run(struct collective *c, unsigned call)
{
    return run_call(c, call, 1);
}

/* Of one call, all in the module: each step on the way there would count in a small sum. */
static int mpi_run_times(struct collective *c, uint64_t times)
{
    uint64_t each = c->n_calls == 1 ? times : 1;
    int err = 0;

    for (uint64_t i = 0; i < times && !err; i += each)
        for (unsigned call = 0; call < c->n_calls && !err; call++)
            err = run_call(c, call, each);
    return err;
}

static int mpi_start(struct collective *c, unsigned call)
{
    struct mpi_state *s = c->state;

    count(c, call, 1);
    int err = s->ops->start(s->mpi, call, s->error, sizeof(s->error));
    s->stuck = err != -EOPNOTSUPP; /* then nothing was begun */
    return said(c, err);
}

static int mpi_test(struct collective *c, bool *done)
{
    struct mpi_state *s = c->state;
    int err = s->ops->test(s->mpi, done, s->error, sizeof(s->error));

    s->stuck = err || !*done;
    return said(c, err);
}

static void mpi_tell(struct collective *c, struct collective_report *told)
{
    const struct mpi_state *s = c->state;
    struct mpi_given mpi;

    s->ops->tell(s->mpi, &mpi);
    const char *shared = s->shared ? LIBRARY_GPU_SHARED : "";
    snprintf(told->algorithm, sizeof(told->algorithm), "%s%.*s", shared,
             (int)(sizeof(told->algorithm) - 1 - strlen(shared)), mpi.algorithm);
    snprintf(told->detail, sizeof(told->detail), "%s", mpi.detail);
    told->gpu_shared = s->shared;
    told->simulated = c->ops->device_memory && library_gpu_simulated(&s->gpu);
    sockets_of_mpi(&mpi.settings, told->sockets, sizeof(told->sockets));
    double bytes = (double)s->elements * (double)collective_type_bytes(c->point->type);
    library_flow(told, c->point->device, library_least(c, bytes));
}

static void mpi_close(struct collective *c)
{
    struct mpi_state *s = c->state;

    if (!s)
        return;
    if (s->mpi)
        s->ops->close(s->mpi);
    if (!s->stuck && c->ops->device_memory)
        library_gpu_close(&s->gpu);
    else if (!s->stuck)
        collective_host_free(c);
    free(s);
    c->state = NULL;
}

const struct collective_ops collective_mpi = {
    .name = "mpi",
    .blocks = true,
    .backends = mpi_backends,
    .supports = mpi_supports,
    .open = mpi_open,
    .join = mpi_join,
    .barrier = mpi_barrier,
    .run = mpi_run,
    .run_times = mpi_run_times,
    .start = mpi_start,
    .test = mpi_test,
    .tell = mpi_tell,
    .close = mpi_close,
};

const struct collective_ops collective_mpi_cuda = {
    .name = "mpi-cuda",
    .device_memory = true,
    .blocks = true,
    .backends = mpi_cuda_backends,
    .supports = mpi_cuda_supports,
    .open = mpi_open,
    .peers = mpi_peers,
    .address = mpi_address,
    .join = mpi_join,
    .barrier = mpi_barrier,
    .run = mpi_run,
    .run_times = mpi_run_times,
    .start = mpi_start,
    .test = mpi_test,
    .write = mpi_write,
    .read = mpi_read,
    .tell = mpi_tell,
    .close = mpi_close,
};
