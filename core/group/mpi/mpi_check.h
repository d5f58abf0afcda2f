/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the MPI module share. */
#ifndef PLUMB_CORE_GROUP_MPI_MPI_CHECK_H
#define PLUMB_CORE_GROUP_MPI_MPI_CHECK_H

#include <limits.h>
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "core/collective/library.h"
#include "core/group/mpi.h"

/* Says which call failed, with its code and text; -EIO. */
int mpi_failed(const char *call, int code, char *error, size_t len);
void mpi_version(char *text, size_t len); /* "Open MPI v4.1.4", "MPICH 4.0.2" */
/* What MPICH was built for, "ch4:ucx"; "" of others. Returns text. */
const char *mpi_device(char *text, size_t len);

/* MPI 4 counts in 64 bits, in functions with names of their own; MPI 3 in int. */
#if MPI_VERSION >= 4
typedef MPI_Count mpi_count;
#define MOST_OF_MPI ((uint64_t)INT64_MAX)
#define LARGE(name) name##_c
#else
typedef int mpi_count;
#define MOST_OF_MPI ((uint64_t)INT_MAX)
#define LARGE(name) name
#endif

/* One CHECK for all calls; `error` and `len` are the caller's. */
#define CHECK(call, ...) CHECK_CALL(call, __VA_ARGS__)
#define CHECK_CALL(call, ...)                                                                      \
    do {                                                                                           \
        int code_ = call(__VA_ARGS__);                                                             \
        if (code_ != MPI_SUCCESS)                                                                  \
            return mpi_failed(#call, code_, error, len);                                           \
    } while (0)

extern const struct mpi_collectives mpi_collectives;

/* module.c: which calls that do not block leave a GPU's memory alone. -EOPNOTSUPP with error. */
int mpi_cuda_may_start(enum collective_op op, char *error, size_t len);

/* ---- collective.c: the library's own variables (MPI_T) ---- */

/* Before MPI_Init: what lets an algorithm be chosen for each communicator, and changes nothing
 * where none is. 0, or -EIO with error: then MPI_Init is not to be called. */
int mpi_control_prepare(char *error, size_t len);
/* Text of a variable; "" where there is none of that name, or nothing in it. Returns text. */
const char *mpi_control_text(const char *name, char *text, size_t len);

#endif
