/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL, opened at run time: some hundred megabytes that only collectives on GPUs need. */
#ifndef PLUMB_CORE_COLLECTIVE_NCCL_NCCL_LIBRARY_H
#define PLUMB_CORE_COLLECTIVE_NCCL_NCCL_LIBRARY_H

#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Every function that is called; a library from 2.14 on has them. */
#define NCCL_FUNCTIONS(X)                                                                          \
    X(ncclGetVersion)                                                                              \
    X(ncclGetUniqueId)                                                                             \
    X(ncclGetErrorString)                                                                          \
    X(ncclGetLastError)                                                                            \
    X(ncclCommInitRankConfig)                                                                      \
    X(ncclCommGetAsyncError)                                                                       \
    X(ncclCommFinalize)                                                                            \
    X(ncclCommDestroy)                                                                             \
    X(ncclCommAbort)                                                                               \
    X(ncclGroupStart)                                                                              \
    X(ncclGroupEnd)                                                                                \
    X(ncclAllReduce)                                                                               \
    X(ncclReduceScatter)                                                                           \
    X(ncclAllGather)                                                                               \
    X(ncclBroadcast)                                                                               \
    X(ncclSend)                                                                                    \
    X(ncclRecv)

struct nccl_library {
    void *handle;
    void (*reset_debug)(void); /* NULL: it has none */
#define NCCL_DECLARE(name) __typeof__(&name) name;
    NCCL_FUNCTIONS(NCCL_DECLARE)
#undef NCCL_DECLARE
};

/* 0; -ENODEV with which library is missing, and where one may be had. It stays mapped. */
int nccl_library_open(struct nccl_library *lib, char *error, size_t len);

/* A thread for one call of a library that may never return: who asked for it looks whether it has.
 * One call at a time. */

typedef int helper_fn(void *arg);

#endif
