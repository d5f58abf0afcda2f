/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of MPI among some of the ranks: see mpi_module.h. */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/group/mpi/mpi_check.h"

#define TAGS 30000 /* the standard promises 32767; below, the control messages' */

struct mpi_collective {
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op sum;
    bool own_type, own_sum;
    MPI_Request requests[2];
    int n_requests; /* under way */
    int n, me;
    enum collective_op op;
    bool in_place;
    size_t element_bytes;
    /* a broadcast's root, out of place, still has to do its own part */
    const struct mpi_call *local;
    struct mpi_call local_call;
    mpi_copy_fn *copy; /* NULL: the buffers are the host's */
    void *copy_arg;
    struct mpi_told told;
};

static const char *const calls[COLLECTIVE_OPS] = {
    "MPI_Allreduce", "MPI_Reduce_scatter_block", "MPI_Allgather", "MPI_Bcast", "MPI_Alltoall",
    "MPI_Sendrecv",
};

/* A function of MPI's operations gets no argument of ours. */
static mpi_reduce_fn *the_reduce;

#define OWN_SUM(name, type, sum)                                                                   \
    static void name(void *in, void *both, int *n, MPI_Datatype *of)                               \
    {                                                                                              \
        (void)of;                                                                                  \
        the_reduce(type, sum, both, in, both, (uint64_t)*n);                                       \
    }
OWN_SUM(f16_sum, COLLECTIVE_F16, COLLECTIVE_SUM)
OWN_SUM(f16_max, COLLECTIVE_F16, COLLECTIVE_MAX)
OWN_SUM(bf16_sum, COLLECTIVE_BF16, COLLECTIVE_SUM)
OWN_SUM(bf16_max, COLLECTIVE_BF16, COLLECTIVE_MAX)

/* MPI 3 has no 16-bit floating point: two bytes, and a sum that is ours. */
static int make_own_type(struct mpi_collective *c, const struct mpi_setup *s, char *error,
                         size_t len)
{
    static MPI_User_function *const functions[2][2] = {{f16_sum, f16_max}, {bf16_sum, bf16_max}};
    MPI_User_function *f =
        functions[s->point->type == COLLECTIVE_BF16][s->point->sum == COLLECTIVE_MAX];

    the_reduce = s->reduce;
    CHECK(MPI_Type_contiguous, 2, MPI_BYTE, &c->type);
    c->own_type = true;
    CHECK(MPI_Type_commit, &c->type);
    CHECK(MPI_Op_create, f, 1, &c->sum);
    c->own_sum = true;
    return 0;
}

static int make_type(struct mpi_collective *c, const struct mpi_setup *s, char *error, size_t len)
{
    c->sum = s->point->sum == COLLECTIVE_MAX ? MPI_MAX : MPI_SUM;
    switch (s->point->type) {
    case COLLECTIVE_F32:
        c->type = MPI_FLOAT;
        return 0;
    case COLLECTIVE_F64:
        c->type = MPI_DOUBLE;
        return 0;
    case COLLECTIVE_I32:
        c->type = MPI_INT32_T;
        return 0;
    default:
        return make_own_type(c, s, error, len);
    }
}

static int make_comm(struct mpi_collective *c, const struct mpi_setup *s, char *error, size_t len)
{
    int tag = (int)(s->point->seed % TAGS), ranks[WORLD_RANKS_MAX];
    MPI_Group world, group;

    for (unsigned i = 0; i < s->n; i++)
        ranks[i] = (int)s->members[i];
    CHECK(MPI_Comm_group, MPI_COMM_WORLD, &world);
    CHECK(MPI_Group_incl, world, (int)s->n, ranks, &group);
    CHECK(MPI_Comm_create_group, MPI_COMM_WORLD, group, tag, &c->comm);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    CHECK(MPI_Comm_set_errhandler, c->comm, MPI_ERRORS_RETURN);
    return 0;
}

/* The algorithm is fixed when the communicator is made. */
static int make_chosen(struct mpi_collective *c, const struct mpi_setup *s, char *error, size_t len)
{
    const char *asked = s->point->algorithm;
    int before = 0;
    int err = *asked ? mpi_control_choose(s, &before, error, len) : 0;

    if (err)
        return err;
    mpi_control_tell(c->op, *asked, c->told.algorithm, sizeof(c->told.algorithm));
    err = make_comm(c, s, error, len);
    if (*asked)
        mpi_control_restore(c->op, before);
    return err;
}

static void describe(struct mpi_collective *c)
{
    struct mpi_settings *set = &c->told.settings;

    mpi_control_detail(c->told.detail, sizeof(c->told.detail));
    mpi_control_text("pml", set->pml, sizeof(set->pml));
    mpi_control_text("btl", set->btl, sizeof(set->btl));
    mpi_control_text("mtl_ofi_provider_include", set->providers, sizeof(set->providers));
    size_t used = strlen(c->told.detail);
    if (c->own_sum && (c->op == COLLECTIVE_ALLREDUCE || c->op == COLLECTIVE_REDUCE_SCATTER))
        snprintf(c->told.detail + used, sizeof(c->told.detail) - used,
                 ", sum of 16-bit numbers by plumb");
}

static void release(struct mpi_collective *c)
{
    if (c->n_requests) /* may still come: MPI writes to it */
        return;
    if (c->comm != MPI_COMM_NULL)
        MPI_Comm_free(&c->comm);
    if (c->own_sum)
        MPI_Op_free(&c->sum);
    if (c->own_type)
        MPI_Type_free(&c->type);
    free(c);
}

static int open_collective(struct mpi_collective **out, const struct mpi_setup *s, char *error,
                           size_t len)
{
    struct mpi_collective *c = calloc(1, sizeof(*c));

    *out = NULL;
    if (!c)
        return -ENOMEM;
    c->comm = MPI_COMM_NULL;
    c->op = s->point->op;
    c->n = (int)s->n;
    c->me = (int)s->me;
    c->in_place = s->point->in_place;
    c->element_bytes = s->element_bytes;
    c->copy = s->copy;
    c->copy_arg = s->copy_arg;
    int err = make_type(c, s, error, len);
    if (!err)
        err = make_chosen(c, s, error, len);
    if (err) {
        release(c);
        return err;
    }
    describe(c);
    *out = c;
    return 0;
}

static void close_collective(struct mpi_collective *c)
{
    if (c)
        release(c);
}

/* Out of place, MPI_Bcast leaves the root's result to the root. */
static int finish_local(struct mpi_collective *c, const struct mpi_call *call, char *error,
                        size_t len)
{
    size_t bytes = call->count * c->element_bytes;

    if (c->op != COLLECTIVE_BROADCAST || c->in_place || c->me != 0)
        return 0;
    if (!c->copy) {
        memcpy(call->result, call->input, bytes);
        return 0;
    }
    int err = c->copy(c->copy_arg, call->result, call->input, bytes);
    if (err)
        snprintf(error, len, "the root's own part cannot be copied");
    return err;
}

static void *broadcast_at(const struct mpi_collective *c, const struct mpi_call *call)
{
    return c->me == 0 && !c->in_place ? call->input : call->result;
}

static int neighbour(const struct mpi_collective *c, int step)
{
    return (c->me + step + c->n) % c->n;
}

static int call_blocking(const struct mpi_collective *c, const struct mpi_call *call)
{
    int count = (int)call->count, block = count / c->n;
    const void *from = c->in_place ? MPI_IN_PLACE : call->input;

    switch (c->op) {
    case COLLECTIVE_ALLREDUCE:
        return MPI_Allreduce(from, call->result, count, c->type, c->sum, c->comm);
    case COLLECTIVE_REDUCE_SCATTER:
        return MPI_Reduce_scatter_block(from, call->result, block, c->type, c->sum, c->comm);
    case COLLECTIVE_ALL_GATHER:
        return MPI_Allgather(from, block, c->type, call->result, block, c->type, c->comm);
    case COLLECTIVE_BROADCAST:
        return MPI_Bcast(broadcast_at(c, call), count, c->type, 0, c->comm);
    case COLLECTIVE_ALL_TO_ALL:
        return MPI_Alltoall(from, block, c->type, call->result, block, c->type, c->comm);
    default:
        return MPI_Sendrecv(call->input, count, c->type, neighbour(c, 1), 0, call->result, count,
                            c->type, neighbour(c, -1), 0, c->comm, MPI_STATUS_IGNORE);
    }
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): test() waits for them */
/* To the next, from the one before; without the first request there is no second. */
static int pass_on(struct mpi_collective *c, const struct mpi_call *call, int count)
{
    MPI_Request *r = c->requests;
    int code = MPI_Irecv(call->result, count, c->type, neighbour(c, -1), 0, c->comm, &r[0]);

    r[1] = MPI_REQUEST_NULL;
    return code == MPI_SUCCESS
               ? MPI_Isend(call->input, count, c->type, neighbour(c, 1), 0, c->comm, &r[1])
               : code;
}

static int call_begun(struct mpi_collective *c, const struct mpi_call *call)
{
    int count = (int)call->count, block = count / c->n;
    const void *from = c->in_place ? MPI_IN_PLACE : call->input;
    MPI_Request *r = c->requests;

    switch (c->op) {
    case COLLECTIVE_ALLREDUCE:
        return MPI_Iallreduce(from, call->result, count, c->type, c->sum, c->comm, r);
    case COLLECTIVE_REDUCE_SCATTER:
        return MPI_Ireduce_scatter_block(from, call->result, block, c->type, c->sum, c->comm, r);
    case COLLECTIVE_ALL_GATHER:
        return MPI_Iallgather(from, block, c->type, call->result, block, c->type, c->comm, r);
    case COLLECTIVE_BROADCAST:
        return MPI_Ibcast(broadcast_at(c, call), count, c->type, 0, c->comm, r);
    case COLLECTIVE_ALL_TO_ALL:
        return MPI_Ialltoall(from, block, c->type, call->result, block, c->type, c->comm, r);
    default:
        return pass_on(c, call, count);
    }
}

static int run(struct mpi_collective *c, const struct mpi_call *call, char *error, size_t len)
{
    int code = call_blocking(c, call);

    return code == MPI_SUCCESS ? finish_local(c, call, error, len)
                               : mpi_failed(calls[c->op], code, error, len);
}

static int start(struct mpi_collective *c, const struct mpi_call *call, char *error, size_t len)
{
    int err = c->copy ? mpi_cuda_may_start(c->op, error, len) : 0;

    if (err)
        return err;
    int code = call_begun(c, call);
    c->n_requests = c->op == COLLECTIVE_SEND_RECEIVE ? 2 : 1;
    c->local_call = *call;
    c->local = &c->local_call;
    return code == MPI_SUCCESS ? 0 : mpi_failed(calls[c->op], code, error, len);
}

static int barrier(struct mpi_collective *c, char *error, size_t len)
{
    CHECK(MPI_Ibarrier, c->comm, &c->requests[0]);
    c->n_requests = 1;
    c->local = NULL;
    return 0;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

static int align(struct mpi_collective *c, char *error, size_t len)
{
    CHECK(MPI_Barrier, c->comm);
    return 0;
}

static int test(struct mpi_collective *c, bool *done, char *error, size_t len)
{
    int one = 1;

    for (int i = 0; i < c->n_requests && one; i++)
        CHECK(MPI_Test, &c->requests[i], &one, MPI_STATUS_IGNORE);
    *done = one;
    if (!one)
        return 0;
    c->n_requests = 0;
    const struct mpi_call *local = c->local;
    c->local = NULL;
    return local ? finish_local(c, local, error, len) : 0;
}

static void tell(const struct mpi_collective *c, struct mpi_told *told)
{
    *told = c->told;
}

const struct mpi_collectives mpi_collectives = {
    .open = open_collective,
    .close = close_collective,
    .run = run,
    .start = start,
    .barrier = barrier,
    .align = align,
    .test = test,
    .tell = tell,
};
