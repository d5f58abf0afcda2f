/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that mpirun or srun started together. The module plumb-mpi.so (core/group/mpi, built
 * with mpicc) knows MPI; it is opened only where the environment says that a launcher started
 * several.
 */
#ifndef PLUMB_CORE_GROUP_MPI_H
#define PLUMB_CORE_GROUP_MPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct channel;

/* How many processes the launcher started, by its environment alone; 1: none, or one. So that a
 * program that cannot join them refuses to run instead of measuring each rank alone. */
unsigned mpi_launched(void);
/* The variable that tells it; NULL: none. */
const char *mpi_launcher(void);
/* Was that torchrun? Its processes are not MPI's. */
bool mpi_torchrun(void);
/* The variable by which a launcher numbers this process, where nothing tells of how many: it may
 * have started others, and a program that goes on alone would measure beside them. NULL: none does,
 * or it is known how many there are. */
const char *mpi_unknown(void);
/* True where one does: then text says so, and what to do, without the program's own ways. */
bool mpi_unknown_text(char *text, size_t len);

/* Starts MPI: this process' rank and how many there are. 0; -EOPNOTSUPP: no module, or another MPI
 * than the launcher's (each process is alone), with error and remedy. Called again it only tells;
 * MPI ends with mpi_end(), which is left out where no launcher started several. */
int mpi_begin(unsigned *rank, unsigned *size, char *error, size_t len);
void mpi_end(void);

/* Of two ranks: the channel to the other one. Both must call it, once. 0 or -errno with error. */
int mpi_peer(struct channel **c, char *error, size_t len);

/* ---- The module, which alone is linked with an MPI ---- */

#define MPI_MODULE_ABI    8u
#define MPI_MODULE_SYMBOL "plumb_mpi_module" /* const struct mpi_module, its one symbol */

struct mpi_collectives; /* core/collective/library.h */

struct mpi_module {
    unsigned abi;
    /* 0 or -EIO with error. Called again it only tells. */
    int (*begin)(unsigned *rank, unsigned *size, char *error, size_t len);
    void (*end)(void);
    void (*version)(char *text, size_t len); /* of the library, its first line */
    /* One message; both wait until `until_ns` (CLOCK_MONOTONIC_RAW). 0; -ETIMEDOUT; -EMSGSIZE; -EIO
     * with error. receive: *n bytes of at most `size`; until_ns 0: -EAGAIN where nothing is
     * there. */
    int (*send)(unsigned rank, const void *data, size_t n, uint64_t until_ns, char *error,
                size_t len);
    int (*receive)(unsigned rank, void *data, size_t size, size_t *n, uint64_t until_ns,
                   char *error, size_t len);
    /* Does it take pointers to a GPU's memory, as far as it says? Where not, *why, and what to do.
     * Known after begin(). */
    bool (*cuda_aware)(char *why, size_t len);
    const struct mpi_collectives *collectives;
};

/* core's: the module, whether MPI was started or not; NULL with the reason and the remedy. */
const struct mpi_module *mpi_module_find(char *error, size_t len);

#endif
