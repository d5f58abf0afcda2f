/* SPDX-License-Identifier: Apache-2.0 */
/* The module's one symbol: the table of nccl_module.h, over NCCL's communicators that do not block. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/collective/nccl/nccl_library.h"
#include "core/collective/nccl_module.h"

struct nccl_comm {
    ncclComm_t nccl;
    unsigned n, me;
};

/* What open() found: a table of functions has no other place for it. */
static struct nccl_library the_library;

static int open_library(char *error, size_t len)
{
    struct nccl_library lib = {0};
    int err = the_library.handle ? 0 : nccl_library_open(&lib, error, len);

    if (!err && !the_library.handle)
        the_library = lib;
    return err;
}

static void version(char *text, size_t len)
{
    int v = 0;

    the_library.ncclGetVersion(&v); /* 22809; before 2.9 it had a digit less */
    snprintf(text, len, "NCCL %d.%d.%d", v / 10000, v / 100 % 100, v % 100);
}

static bool simulated(void)
{
    return dlsym(the_library.handle, "plumb_simulated") != NULL;
}

static bool debug_again(void)
{
    if (the_library.reset_debug)
        the_library.reset_debug();
    return the_library.reset_debug != NULL;
}

/* -EAGAIN for what goes on; NCCL's words for what failed. */
static int check(const struct nccl_comm *comm, ncclResult_t result, const char *call, char *error,
                 size_t len)
{
    const char *last;

    if (result == ncclSuccess)
        return 0;
    if (result == ncclInProgress)
        return -EAGAIN;
    last = the_library.ncclGetLastError(comm ? comm->nccl : NULL);
    snprintf(error, len, "%s: %s (%d)%s%.160s", call, the_library.ncclGetErrorString(result),
             (int)result, last && *last ? ": " : "", last ? last : "");
    error[strcspn(error, "\n")] = 0;
    return -EIO;
}

static int unique(uint8_t id[NCCL_ID_BYTES], char *error, size_t len)
{
    _Static_assert(NCCL_UNIQUE_ID_BYTES == NCCL_ID_BYTES, "NCCL's id is what a card holds");
    ncclUniqueId made;
    int err = check(NULL, the_library.ncclGetUniqueId(&made), "ncclGetUniqueId", error, len);

    memcpy(id, &made, sizeof(made));
    return err;
}

/* 0 also where it has only begun: the next question is comm_state()'s. */
static int begun(int err)
{
    return err == -EAGAIN ? 0 : err;
}

static int comm_open(struct nccl_comm **out, const uint8_t id[NCCL_ID_BYTES], unsigned n,
                     unsigned me, char *error, size_t len)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    struct nccl_comm *comm = calloc(1, sizeof(*comm));
    ncclUniqueId of;

    *out = NULL;
    if (!comm)
        return -ENOMEM;
    config.blocking = 0; /* or a member that never comes would hold this one for good */
    memcpy(&of, id, sizeof(of));
    comm->n = n;
    comm->me = me;
    int err = begun(
        check(NULL, the_library.ncclCommInitRankConfig(&comm->nccl, (int)n, of, (int)me, &config),
              "ncclCommInitRankConfig", error, len));
    if (err)
        free(comm);
    else
        *out = comm;
    return err;
}

static int comm_state(struct nccl_comm *comm, char *error, size_t len)
{
    ncclResult_t state = ncclSuccess;
    int err = check(comm, the_library.ncclCommGetAsyncError(comm->nccl, &state),
                    "ncclCommGetAsyncError", error, len);

    return err ? err : check(comm, state, "NCCL's communicator", error, len);
}

static ncclDataType_t type_of(enum collective_type type)
{
    static const ncclDataType_t types[COLLECTIVE_TYPES] = {ncclFloat32, ncclFloat16, ncclBfloat16,
                                                           ncclFloat64, ncclInt32};

    return types[type];
}

/* One result of several calls: the first that is neither success nor under way. */
static ncclResult_t worse(ncclResult_t a, ncclResult_t b)
{
    return a == ncclSuccess || a == ncclInProgress ? b : a;
}

static ncclResult_t exchange(const struct nccl_comm *comm, const struct nccl_call *call,
                             size_t block_bytes, cudaStream_t stream)
{
    const char *input = call->input;
    char *result = call->result;
    ncclDataType_t type = type_of(call->type);
    ncclResult_t r = the_library.ncclGroupStart();

    for (unsigned peer = 0; peer < comm->n; peer++) {
        size_t block = call->count / comm->n;
        r = worse(r, the_library.ncclSend(input + peer * block_bytes, block, type, (int)peer,
                                          comm->nccl, stream));
        r = worse(r, the_library.ncclRecv(result + peer * block_bytes, block, type, (int)peer,
                                          comm->nccl, stream));
    }
    return worse(r, the_library.ncclGroupEnd());
}

static ncclResult_t pass_on(const struct nccl_comm *comm, const struct nccl_call *call,
                            cudaStream_t stream)
{
    int to = (int)((comm->me + 1) % comm->n), from = (int)((comm->me + comm->n - 1) % comm->n);
    ncclDataType_t type = type_of(call->type);
    ncclResult_t r = the_library.ncclGroupStart();

    r = worse(r, the_library.ncclSend(call->input, call->count, type, to, comm->nccl, stream));
    r = worse(r, the_library.ncclRecv(call->result, call->count, type, from, comm->nccl, stream));
    return worse(r, the_library.ncclGroupEnd());
}

static int enqueue(struct nccl_comm *comm, const struct nccl_call *call, void *stream, char *error,
                   size_t len)
{
    const struct nccl_library *lib = &the_library;
    ncclDataType_t type = type_of(call->type);
    ncclRedOp_t sum = call->sum == COLLECTIVE_MAX ? ncclMax : ncclSum;
    size_t block = call->count / comm->n;
    ncclResult_t r;

    switch (call->op) {
    case COLLECTIVE_ALLREDUCE:
        r = lib->ncclAllReduce(call->input, call->result, call->count, type, sum, comm->nccl,
                               stream);
        return check(comm, r, "ncclAllReduce", error, len);
    case COLLECTIVE_REDUCE_SCATTER:
        r = lib->ncclReduceScatter(call->input, call->result, block, type, sum, comm->nccl, stream);
        return check(comm, r, "ncclReduceScatter", error, len);
    case COLLECTIVE_ALL_GATHER:
        r = lib->ncclAllGather(call->input, call->result, block, type, comm->nccl, stream);
        return check(comm, r, "ncclAllGather", error, len);
    case COLLECTIVE_BROADCAST:
        r = lib->ncclBroadcast(call->input, call->result, call->count, type, 0, comm->nccl, stream);
        return check(comm, r, "ncclBroadcast", error, len);
    case COLLECTIVE_ALL_TO_ALL:
        r = exchange(comm, call, block * call->element_bytes, stream);
        return check(comm, r, "ncclSend and ncclRecv", error, len);
    default:
        r = pass_on(comm, call, stream);
        return check(comm, r, "ncclSend and ncclRecv", error, len);
    }
}

static int comm_finalize(struct nccl_comm *comm, char *error, size_t len)
{
    return begun(
        check(comm, the_library.ncclCommFinalize(comm->nccl), "ncclCommFinalize", error, len));
}

static void comm_close(struct nccl_comm *comm, bool abort)
{
    if (!comm)
        return;
    if (abort)
        the_library.ncclCommAbort(comm->nccl);
    else
        the_library.ncclCommDestroy(comm->nccl);
    free(comm);
}

__attribute__((visibility("default"))) const struct nccl_module plumb_nccl_module = {
    .abi = NCCL_MODULE_ABI,
    .open = open_library,
    .version = version,
    .simulated = simulated,
    .debug_again = debug_again,
    .unique = unique,
    .comm_open = comm_open,
    .comm_state = comm_state,
    .enqueue = enqueue,
    .comm_finalize = comm_finalize,
    .comm_close = comm_close,
};
