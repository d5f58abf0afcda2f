/* SPDX-License-Identifier: Apache-2.0 */
/* Between core and the module plumb-mpi.so, which alone is linked with an MPI. */
#ifndef PLUMB_CORE_GROUP_MPI_MODULE_H
#define PLUMB_CORE_GROUP_MPI_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/collective/collective.h"
#include "core/collective/sockets.h"

#define MPI_MODULE_ABI    6u
#define MPI_MODULE_SYMBOL "plumb_mpi_module" /* const struct mpi_module, its one symbol */

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
    /* All members at the same time. -EOPNOTSUPP: what the point asks for cannot be had of this MPI. */
    int (*open)(struct mpi_collective **c, const struct mpi_setup *setup, char *error, size_t len);
    /* NULL is left alone. What has not ended is left as it is, memory and all. */
    void (*close)(struct mpi_collective *c);
    /* Until it is done: for good, where a rank does not come. */
    int (*run)(struct mpi_collective *c, const struct mpi_call *call, char *error, size_t len);
    /* Begun; test() moves them on. One at a time. -EOPNOTSUPP: this MPI does not take a GPU's memory there; nothing was begun. */
    int (*start)(struct mpi_collective *c, const struct mpi_call *call, char *error, size_t len);
    int (*barrier)(struct mpi_collective *c, char *error, size_t len);
    /* When all have come: a blocking barrier, from which all leave as close to one another as MPI can. */
    int (*align)(struct mpi_collective *c, char *error, size_t len);
    int (*test)(struct mpi_collective *c, bool *done, char *error, size_t len);
    void (*tell)(const struct mpi_collective *c, struct mpi_told *told);
};

struct mpi_module {
    unsigned abi;
    /* 0 or -EIO with error. Called again it only tells. */
    int (*begin)(unsigned *rank, unsigned *size, char *error, size_t len);
    void (*end)(void);
    void (*version)(char *text, size_t len); /* of the library, its first line */
    /* One message; both wait until `until_ns` (CLOCK_MONOTONIC_RAW). 0; -ETIMEDOUT; -EMSGSIZE; -EIO with
     * error. receive: *n bytes of at most `size`; until_ns 0: -EAGAIN where nothing is there. */
    int (*send)(unsigned rank, const void *data, size_t n, uint64_t until_ns, char *error,
                size_t len);
    int (*receive)(unsigned rank, void *data, size_t size, size_t *n, uint64_t until_ns,
                   char *error, size_t len);
    /* Does it take pointers to a GPU's memory, as far as it says? Where not, *why, and what to do. Known after begin(). */
    bool (*cuda_aware)(char *why, size_t len);
    const struct mpi_collectives *collectives;
};

/* core's: the module, whether MPI was started or not; NULL with the reason and the remedy. */
const struct mpi_module *mpi_module_find(char *error, size_t len);

#endif
