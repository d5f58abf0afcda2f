/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that mpirun or srun started together. The module plumb-mpi.so (core/group/mpi, built with mpicc) knows
 * MPI; it is opened only where the environment says that a launcher started several.
 */
#ifndef PLUMB_CORE_GROUP_MPI_H
#define PLUMB_CORE_GROUP_MPI_H

#include <stdbool.h>
#include <stddef.h>

#include "core/group/channel.h"

/* How many processes the launcher started, by its environment alone; 1: none, or one. So that a program that
 * cannot join them refuses to run instead of measuring each rank alone. */
unsigned mpi_launched(void);
/* Was that torchrun? Its processes are not MPI's. */
bool mpi_torchrun(void);
/* The variable by which a launcher numbers this process, where nothing tells of how many: it may have started others, and a program that goes on alone
 * would measure beside them. NULL: none does, or it is known how many there are. */
const char *mpi_unknown(void);
/* True where one does: then text says so, and what to do, without the program's own ways. */
bool mpi_unknown_says(char *text, size_t len);

/* Starts MPI: this process' rank and how many there are. 0; -EOPNOTSUPP: no module, or another MPI than the
 * launcher's (each process is alone), with error and remedy. Called again it only tells; MPI ends with
 * mpi_end(), which is left out where no launcher started several. */
int mpi_begin(unsigned *rank, unsigned *size, char *error, size_t len);
void mpi_end(void);

/* A channel to another rank: both must call it. */
int mpi_channel(struct channel **c, unsigned rank);

#endif
