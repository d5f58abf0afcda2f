/* SPDX-License-Identifier: Apache-2.0 */
/* Between core and the module plumb-mpi.so, which alone is linked with an MPI. */
#ifndef PLUMB_CORE_GROUP_MPI_MODULE_H
#define PLUMB_CORE_GROUP_MPI_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define MPI_MODULE_ABI    1u
#define MPI_MODULE_SYMBOL "plumb_mpi_module" /* const struct mpi_module, its one symbol */

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
};

#endif
