/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by MPI: what the module plumb-mpi.so (core/group/mpi.h) offers to mpi.c. */
#ifndef PLUMB_CORE_COLLECTIVE_MPI_MODULE_H
#define PLUMB_CORE_COLLECTIVE_MPI_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/collective/collective.h"
#include "core/collective/sockets.h"

/* Collectives of some of the ranks, on a communicator of their own. */
struct mpi_collective;

typedef void mpi_reduce_fn(enum collective_type type, enum collective_sum sum, void *to,
                           const void *a, const void *b, uint64_t count);

/* Within one rank's buffers, done when it returns. 0; -errno, said by its owner. */
typedef int mpi_copy_fn(void *arg, void *to, const void *from, size_t bytes);

struct mpi_setup {
    const unsigned *members; /* ranks of the world */
    unsigned n, me;
    const struct collective_point *point;
    size_t element_bytes;
    const char *op_name;   /* "allreduce" */
    mpi_reduce_fn *reduce; /* for types that MPI has not: f16, bf16; of host memory */
    mpi_copy_fn *copy;     /* where the buffers are a GPU's; NULL: they are the host's */
    void *copy_arg;
};

struct mpi_call {
    void *input, *result; /* of this call; in place: both the one vector */
    uint64_t count;       /* of the vector */
};

struct mpi_told {
    char algorithm[96]; /* "ring, as asked for"; "its own choice"; "": it has none */
    char detail[160];   /* "Open MPI v4.1.4, btl tcp,self, btl_tcp_flags 315" */
    struct mpi_settings settings;
};

struct mpi_collectives {
    /* All members at the same time. -EOPNOTSUPP: what the point asks for cannot be had of this
     * MPI. */
    int (*open)(struct mpi_collective **c, const struct mpi_setup *setup, char *error, size_t len);
    /* NULL is left alone. What has not ended is left as it is, memory and all. */
    void (*close)(struct mpi_collective *c);
    /* Until it is done: for good, where a rank does not come. */
    int (*run)(struct mpi_collective *c, const struct mpi_call *call, char *error, size_t len);
    /* Begun; test() moves them on. One at a time. -EOPNOTSUPP: this MPI does not take a GPU's
     * memory there; nothing was begun. */
    int (*start)(struct mpi_collective *c, const struct mpi_call *call, char *error, size_t len);
    int (*barrier)(struct mpi_collective *c, char *error, size_t len);
    /* When all have come: a blocking barrier, from which all leave as close to one another as MPI
     * can. */
    int (*align)(struct mpi_collective *c, char *error, size_t len);
    int (*test)(struct mpi_collective *c, bool *done, char *error, size_t len);
    void (*tell)(const struct mpi_collective *c, struct mpi_told *told);
};

#endif
