/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MPI that takes a simulated device's memory: put before any MPI by LD_PRELOAD (mpirun's -x or -genv), and compiled with that one's mpicc. It says that it is
 * CUDA-aware, and gives MPI the bytes in place of the device's addresses, which a host that follows them crashes at. As a real one it finds
 * the device by the calling thread's context, and ends the process where there is none.
 *
 * $PLUMB_SIM_MPI_NAME: what it calls itself; then it says no to who asks, as some do that have a switch of their own.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/group/mpi/mpi_check.h"
#include "tests/sim/export.h"

typedef int current_fn(void);

int MPIX_GPU_query_support(int kind, int *is_supported);
int MPIX_Query_cuda_support(void);

static void *cuda_symbol(const char *name)
{
    const char *path = getenv("PLUMB_LIBCUDA");
    void *cuda = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;

    return cuda ? dlsym(cuda, name) : NULL;
}

/* Host memory is left as it is. */
static void *bytes_of(const void *at, size_t bytes)
{
    plumb_sim_share_fn *share;
    current_fn *current;
    void *shared;

    *(void **)&share = cuda_symbol("plumb_sim_share");
    shared = share && at != MPI_IN_PLACE ? share((uintptr_t)at, bytes) : NULL;
    if (!shared)
        return (void *)(uintptr_t)at;
    *(void **)&current = cuda_symbol("plumb_sim_current");
    if (!current || current() < 0) {
        fprintf(stderr, "mpi_gpu: device memory, and no context in the thread that calls MPI\n");
        _Exit(70);
    }
    return shared;
}

static size_t size_of(mpi_count count, MPI_Datatype type)
{
    int bytes = 0;

    PMPI_Type_size(type, &bytes);
    return (size_t)count * (size_t)bytes;
}

static size_t size_of_all(mpi_count count, MPI_Datatype type, MPI_Comm comm)
{
    int n = 0;

    PMPI_Comm_size(comm, &n);
    return (size_t)n * size_of(count, type);
}

int MPIX_Query_cuda_support(void)
{
    return !getenv("PLUMB_SIM_MPI_NAME");
}

int MPI_Get_library_version(char *text, int *len)
{
    const char *name = getenv("PLUMB_SIM_MPI_NAME");

    if (!name)
        return PMPI_Get_library_version(text, len);
    *len = snprintf(text, MPI_MAX_LIBRARY_VERSION_STRING, "%s", name);
    return MPI_SUCCESS;
}

int MPIX_GPU_query_support(int kind, int *is_supported)
{
    *is_supported = kind == 0 && MPIX_Query_cuda_support();
    return MPI_SUCCESS;
}

#define ONE(at, count, type)       bytes_of(at, size_of(count, type))
#define ALL(at, count, type, comm) bytes_of(at, size_of_all(count, type, comm))

/* Each blocking, and with a request at its end. */
#define BOTH(name, i_name, parameters, i_parameters, arguments, i_arguments)                       \
    int LARGE(MPI_##name) parameters                                                               \
    {                                                                                              \
        return LARGE(PMPI_##name) arguments;                                                       \
    }                                                                                              \
    int LARGE(MPI_##i_name) i_parameters                                                           \
    {                                                                                              \
        return LARGE(PMPI_##i_name) i_arguments;                                                   \
    }

#define SUM_IN                                                                                     \
    const void *in, void *out, mpi_count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define MOVE_IN                                                                                    \
    const void *in, mpi_count n, MPI_Datatype type, void *out, mpi_count n_out, MPI_Datatype to,   \
        MPI_Comm comm
#define SUM      ONE(in, count, type), ONE(out, count, type), count, type, op, comm
#define SCATTER  ALL(in, count, type, comm), ONE(out, count, type), count, type, op, comm
#define GATHER   ONE(in, n, type), n, type, ALL(out, n_out, to, comm), n_out, to, comm
#define EXCHANGE ALL(in, n, type, comm), n, type, ALL(out, n_out, to, comm), n_out, to, comm

BOTH(Allreduce, Iallreduce, (SUM_IN), (SUM_IN, MPI_Request *r), (SUM), (SUM, r))
BOTH(Reduce_scatter_block, Ireduce_scatter_block, (SUM_IN), (SUM_IN, MPI_Request *r), (SCATTER),
     (SCATTER, r))
BOTH(Allgather, Iallgather, (MOVE_IN), (MOVE_IN, MPI_Request *r), (GATHER), (GATHER, r))
BOTH(Alltoall, Ialltoall, (MOVE_IN), (MOVE_IN, MPI_Request *r), (EXCHANGE), (EXCHANGE, r))
BOTH(Bcast, Ibcast, (void *at, mpi_count n, MPI_Datatype type, int root, MPI_Comm comm),
     (void *at, mpi_count n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *r),
     (ONE(at, n, type), n, type, root, comm), (ONE(at, n, type), n, type, root, comm, r))

int LARGE(MPI_Sendrecv)(const void *in, mpi_count n, MPI_Datatype type, int to, int tag, void *out,
                        mpi_count n_out, MPI_Datatype type_out, int from, int tag_out,
                        MPI_Comm comm, MPI_Status *status)
{
    return LARGE(PMPI_Sendrecv)(ONE(in, n, type), n, type, to, tag, ONE(out, n_out, type_out),
                                n_out, type_out, from, tag_out, comm, status);
}

int LARGE(MPI_Isend)(const void *at, mpi_count n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *r)
{
    return LARGE(PMPI_Isend)(ONE(at, n, type), n, type, to, tag, comm, r);
}

int LARGE(MPI_Irecv)(void *at, mpi_count n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Request *r)
{
    return LARGE(PMPI_Irecv)(ONE(at, n, type), n, type, from, tag, comm, r);
}
