/* SPDX-License-Identifier: Apache-2.0 */
/* The module's one symbol: the table of nccl_module.h. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/collective/nccl/nccl_library.h"
#include "core/collective/nccl_module.h"
#include "core/hw/nvidia_library.h"

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
    X(ncclReduce)                                                                                  \
    X(ncclBroadcast)                                                                               \
    X(ncclSend)                                                                                    \
    X(ncclRecv)

struct nccl_library {
    void *handle;
    /* NULL: this version has none */
    void (*reset_debug)(void);
    ncclResult_t (*memory)(void **at, size_t bytes);
    ncclResult_t (*memory_free)(void *at);
    ncclResult_t (*register_local)(ncclComm_t comm, void *at, size_t bytes, void **handle);
    ncclResult_t (*deregister_local)(ncclComm_t comm, void *handle);
    ncclResult_t (*register_window)(ncclComm_t comm, void *at, size_t bytes, void **window,
                                    int flags);
    ncclResult_t (*deregister_window)(ncclComm_t comm, void *window);
#define NCCL_DECLARE(name) __typeof__(&name) name;
    NCCL_FUNCTIONS(NCCL_DECLARE)
#undef NCCL_DECLARE
};

/* ---- Finds NCCL ---- */

#define FILE_NAME      "libnccl.so.2"
#define FUNCTION(name) {#name, offsetof(struct nccl_library, name)},

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {NCCL_FUNCTIONS(FUNCTION)};

/* Of versions after the oldest that will do; headers may be older, too. */
static const struct {
    const char *symbol;
    size_t offset;
} newer[] = {{"ncclResetDebugInit", offsetof(struct nccl_library, reset_debug)},
             {"ncclMemAlloc", offsetof(struct nccl_library, memory)},
             {"ncclMemFree", offsetof(struct nccl_library, memory_free)},
             {"ncclCommRegister", offsetof(struct nccl_library, register_local)},
             {"ncclCommDeregister", offsetof(struct nccl_library, deregister_local)},
             {"ncclCommWindowRegister", offsetof(struct nccl_library, register_window)},
             {"ncclCommWindowDeregister", offsetof(struct nccl_library, deregister_window)}};

static int find(void **handle, char *error, size_t len)
{
    const char *given = getenv("PLUMB_LIBNCCL");

    *handle = given && *given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : nvidia_open(FILE_NAME);
    if (*handle)
        return 0;
    if (given && *given)
        snprintf(error, len, "the library named by PLUMB_LIBNCCL does not load: %.200s", dlerror());
    else
        snprintf(
            error, len,
            "no NCCL (" FILE_NAME
            "): install libnccl2 of NVIDIA's, or torch, whose environment is looked into if it "
            "is active or its python3 is the first on PATH, or set PLUMB_LIBNCCL to its path");
    return -ELIBACC;
}

/* 0; -ELIBACC with which library is missing, and where one may be had. It stays mapped. */
static int nccl_library_open(struct nccl_library *lib, char *error, size_t len)
{
    int err = find(&lib->handle, error, len);

    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions) && !err; i++) {
        void *at = dlsym(lib->handle, functions[i].symbol);
        memcpy((char *)lib + functions[i].offset, &at, sizeof(at));
        if (at)
            continue;
        snprintf(error, len,
                 "the NCCL that was found has no %s: install version 2.14 or newer, or name "
                 "another in PLUMB_LIBNCCL",
                 functions[i].symbol);
        err = -ELIBACC;
    }
    for (size_t i = 0; i < sizeof(newer) / sizeof(*newer) && !err; i++) {
        void *at = dlsym(lib->handle, newer[i].symbol);
        memcpy((char *)lib + newer[i].offset, &at, sizeof(at));
    }
    return err;
}

#define HELPER_STEPS 100 /* of helper_pause(): a second */

/* All-zero at first. It and what `arg` points at must stay until the thread has ended. */
struct helper {
    pthread_t thread;
    bool running; /* started, and its end was not seen */
    atomic_bool ended;
    helper_fn *fn;
    void *arg;
    int result;
};

#define STEP_NS 10000000

static void *help(void *arg)
{
    struct helper *h = arg;

    h->result = h->fn(h->arg);
    atomic_store(&h->ended, true);
    return NULL;
}

/* 0 or -errno */
static int helper_start(struct helper *h, helper_fn *fn, void *arg)
{
    h->fn = fn;
    h->arg = arg;
    atomic_store(&h->ended, false);
    int err = pthread_create(&h->thread, NULL, help, h);
    h->running = !err;
    return -err;
}

/* -EAGAIN: it is in the call; 0: it has ended since it was last asked, with *result; -EALREADY:
 * nothing was started since. */
static int helper_state(struct helper *h, int *result)
{
    if (!h->running)
        return -EALREADY;
    if (!atomic_load(&h->ended))
        return -EAGAIN;
    pthread_join(h->thread, NULL);
    h->running = false;
    *result = h->result;
    return 0;
}

static void helper_pause(void)
{
    nanosleep(&(const struct timespec){.tv_nsec = STEP_NS}, NULL);
}

struct nccl_comm {
    ncclComm_t nccl; /* NCCL writes it as soon as it can be aborted */
    unsigned n, me;
    struct nccl_enter enter;
    struct helper helper, aborter;
    const char *asked; /* what the helper is at, or was */
    ncclUniqueId id;   /* for the helper, as is all below */
    struct nccl_call call;
    void *stream;
    enum collective_register how;
    void *buffers[2], *handles[2]; /* what is registered; NULL: not, or not taken */
    size_t bytes[2];
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

static const char *file(void)
{
    return nvidia_path(the_library.handle);
}

static unsigned number(void)
{
    int v = 0;

    the_library.ncclGetVersion(&v);
    return (unsigned)v;
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
    _Static_assert(NCCL_UNIQUE_ID_BYTES == NCCL_ID_BYTES, "NCCL's id is what an address holds");
    ncclUniqueId made;
    int err = check(NULL, the_library.ncclGetUniqueId(&made), "ncclGetUniqueId", error, len);

    memcpy(id, &made, sizeof(made));
    return err;
}

static int ask_helper(struct nccl_comm *comm, helper_fn *fn, const char *asked, char *error,
                      size_t len)
{
    comm->asked = asked;
    int err = helper_start(&comm->helper, fn, comm);
    if (err)
        snprintf(error, len, "%s: no thread for it: %s", asked, strerror(-err));
    return err;
}

static int init_rank(void *arg)
{
    struct nccl_comm *comm = arg;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    comm->enter.enter(comm->enter.arg);
    config.blocking = 1;
    return the_library.ncclCommInitRankConfig(&comm->nccl, (int)comm->n, comm->id, (int)comm->me,
                                              &config);
}

static int comm_open(struct nccl_comm **out, const uint8_t id[NCCL_ID_BYTES], unsigned n,
                     unsigned me, const struct nccl_enter *enter, char *error, size_t len)
{
    struct nccl_comm *comm = xcalloc(1, sizeof(*comm));

    *out = NULL;
    memcpy(&comm->id, id, sizeof(comm->id));
    comm->n = n;
    comm->me = me;
    comm->enter = *enter;
    int err = ask_helper(comm, init_rank, "ncclCommInitRankConfig", error, len);
    if (err)
        free(comm);
    else
        *out = comm;
    return err;
}

static int comm_state(struct nccl_comm *comm, char *error, size_t len)
{
    ncclResult_t state = ncclSuccess;
    int result = ncclSuccess, err = helper_state(&comm->helper, &result);

    if (err == -EAGAIN)
        return err;
    if (!err) /* it ended just now */
        return check(comm, (ncclResult_t)result, comm->asked, error, len);
    if (!comm->nccl)
        return 0;
    err = check(comm, the_library.ncclCommGetAsyncError(comm->nccl, &state),
                "ncclCommGetAsyncError", error, len);
    return err ? err : check(comm, state, "NCCL's communicator", error, len);
}

/* As headers from 2.24 on have them. */
#define NCCL_E4M3 10
#define NCCL_E5M2 11

static ncclDataType_t type_of(enum collective_type type)
{
    static const ncclDataType_t types[COLLECTIVE_TYPES] = {
        [COLLECTIVE_F32] = ncclFloat32,
        [COLLECTIVE_F16] = ncclFloat16,
        [COLLECTIVE_BF16] = ncclBfloat16,
        [COLLECTIVE_F64] = ncclFloat64,
        [COLLECTIVE_I32] = ncclInt32,
        [COLLECTIVE_I8] = ncclInt8,
        [COLLECTIVE_I64] = ncclInt64,
        [COLLECTIVE_E4M3] = (ncclDataType_t)NCCL_E4M3,
        [COLLECTIVE_E5M2] = (ncclDataType_t)NCCL_E5M2};

    return types[type];
}

static ncclRedOp_t sum_of(enum collective_sum sum)
{
    static const ncclRedOp_t sums[COLLECTIVE_SUMS] = {[COLLECTIVE_SUM] = ncclSum,
                                                      [COLLECTIVE_MAX] = ncclMax,
                                                      [COLLECTIVE_MIN] = ncclMin,
                                                      [COLLECTIVE_PROD] = ncclProd,
                                                      [COLLECTIVE_AVG] = ncclAvg};

    return sums[sum];
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

/* As nccl-tests has them before NCCL 2.28: the root's own block, too. */
static ncclResult_t to_or_from_root(const struct nccl_comm *comm, const struct nccl_call *call,
                                    size_t block_bytes, cudaStream_t stream)
{
    bool gathers = call->op == COLLECTIVE_GATHER;
    const char *input = call->input;
    char *result = call->result;
    size_t block = call->count / comm->n;
    ncclDataType_t type = type_of(call->type);
    int root = (int)call->root;
    ncclResult_t r = the_library.ncclGroupStart();

    for (unsigned peer = 0; peer < comm->n && comm->me == call->root; peer++)
        r = worse(r, gathers ? the_library.ncclRecv(result + peer * block_bytes, block, type,
                                                    (int)peer, comm->nccl, stream)
                             : the_library.ncclSend(input + peer * block_bytes, block, type,
                                                    (int)peer, comm->nccl, stream));
    r = worse(r, gathers ? the_library.ncclSend(input, block, type, root, comm->nccl, stream)
                         : the_library.ncclRecv(result, block, type, root, comm->nccl, stream));
    return worse(r, the_library.ncclGroupEnd());
}

/* *asked: what was called, for messages. */
static ncclResult_t call_nccl(const struct nccl_comm *comm, const struct nccl_call *call,
                              void *stream, const char **asked)
{
    const struct nccl_library *lib = &the_library;
    ncclDataType_t type = type_of(call->type);
    ncclRedOp_t sum = sum_of(call->sum);
    size_t block = call->count / comm->n;

    switch (call->op) {
    case COLLECTIVE_ALLREDUCE:
        *asked = "ncclAllReduce";
        return lib->ncclAllReduce(call->input, call->result, call->count, type, sum, comm->nccl,
                                  stream);
    case COLLECTIVE_REDUCE_SCATTER:
        *asked = "ncclReduceScatter";
        return lib->ncclReduceScatter(call->input, call->result, block, type, sum, comm->nccl,
                                      stream);
    case COLLECTIVE_ALL_GATHER:
        *asked = "ncclAllGather";
        return lib->ncclAllGather(call->input, call->result, block, type, comm->nccl, stream);
    case COLLECTIVE_BROADCAST:
        *asked = "ncclBroadcast";
        return lib->ncclBroadcast(call->input, call->result, call->count, type, (int)call->root,
                                  comm->nccl, stream);
    case COLLECTIVE_REDUCE:
        *asked = "ncclReduce";
        return lib->ncclReduce(call->input, call->result, call->count, type, sum, (int)call->root,
                               comm->nccl, stream);
    case COLLECTIVE_GATHER:
    case COLLECTIVE_SCATTER:
        *asked = "ncclSend and ncclRecv";
        return to_or_from_root(comm, call, block * call->element_bytes, stream);
    case COLLECTIVE_ALL_TO_ALL:
        *asked = "ncclSend and ncclRecv";
        return exchange(comm, call, block * call->element_bytes, stream);
    default:
        *asked = "ncclSend and ncclRecv";
        return pass_on(comm, call, stream);
    }
}

static int queue_first(void *arg)
{
    struct nccl_comm *comm = arg;

    comm->enter.enter(comm->enter.arg);
    return call_nccl(comm, &comm->call, comm->stream, &comm->asked);
}

static int enqueue(struct nccl_comm *comm, const struct nccl_call *call, void *stream, bool first,
                   char *error, size_t len)
{
    const char *asked;

    if (!first) {
        ncclResult_t r = call_nccl(comm, call, stream, &asked);
        return check(comm, r, asked, error, len);
    }
    comm->call = *call;
    comm->stream = stream;
    int err = ask_helper(comm, queue_first, "the first call", error, len);
    return err ? err : -EAGAIN;
}

static int group(struct nccl_comm *comm, bool begin, char *error, size_t len)
{
    return begin ? check(comm, the_library.ncclGroupStart(), "ncclGroupStart", error, len)
                 : check(comm, the_library.ncclGroupEnd(), "ncclGroupEnd", error, len);
}

/* ---- Memory of NCCL's, and buffers that it is told of ---- */

static int memory_take(void **at, size_t bytes, char *error, size_t len)
{
    return check(NULL, the_library.memory(at, bytes), "ncclMemAlloc", error, len);
}

static int (*memory(void))(void **at, size_t bytes, char *error, size_t len)
{
    return the_library.memory && the_library.memory_free ? memory_take : NULL;
}

static void memory_free(void *at)
{
    the_library.memory_free(at);
}

#define WINDOW_SYMMETRIC 1 /* NCCL_WIN_COLL_SYMMETRIC, of headers from 2.27 on */

/* A window is made by all members together. */
static int register_buffers(void *arg)
{
    struct nccl_comm *comm = arg;
    ncclResult_t r = ncclSuccess;

    comm->enter.enter(comm->enter.arg);
    for (unsigned i = 0; i < 2 && r == ncclSuccess; i++) {
        if (!comm->buffers[i])
            continue;
        r = comm->how == COLLECTIVE_REGISTER_SYMMETRIC
                ? the_library.register_window(comm->nccl, comm->buffers[i], comm->bytes[i],
                                              &comm->handles[i], WINDOW_SYMMETRIC)
                : the_library.register_local(comm->nccl, comm->buffers[i], comm->bytes[i],
                                             &comm->handles[i]);
    }
    return r;
}

static int comm_register(struct nccl_comm *comm, enum collective_register how, void *const at[2],
                         const size_t bytes[2], char *error, size_t len)
{
    bool symmetric = how == COLLECTIVE_REGISTER_SYMMETRIC;
    bool can = symmetric ? the_library.register_window && the_library.deregister_window
                         : the_library.register_local && the_library.deregister_local;

    if (!can) {
        snprintf(error, len, "registered buffers need NCCL %s or newer",
                 symmetric ? "2.27" : "2.19");
        return -EOPNOTSUPP;
    }
    comm->how = how;
    for (unsigned i = 0; i < 2; i++) {
        comm->buffers[i] = at[i];
        comm->bytes[i] = bytes[i];
    }
    int err = ask_helper(comm, register_buffers,
                         symmetric ? "ncclCommWindowRegister" : "ncclCommRegister", error, len);
    return err ? err : -EAGAIN;
}

static bool is_registered(const struct nccl_comm *comm)
{
    for (unsigned i = 0; i < 2; i++)
        if (comm->buffers[i] && !comm->handles[i])
            return false;
    return comm->how != COLLECTIVE_REGISTER_NONE;
}

static void deregister(struct nccl_comm *comm)
{
    for (unsigned i = 0; i < 2; i++) {
        void *handle = comm->handles[i];
        comm->handles[i] = NULL;
        if (handle && comm->how == COLLECTIVE_REGISTER_SYMMETRIC)
            the_library.deregister_window(comm->nccl, handle);
        else if (handle)
            the_library.deregister_local(comm->nccl, handle);
    }
}

static int finalize(void *arg)
{
    struct nccl_comm *comm = arg;

    comm->enter.enter(comm->enter.arg);
    deregister(comm);
    return the_library.ncclCommFinalize(comm->nccl);
}

static int comm_finalize(struct nccl_comm *comm, char *error, size_t len)
{
    return ask_helper(comm, finalize, "ncclCommFinalize", error, len);
}

static int abort_comm(void *arg)
{
    struct nccl_comm *comm = arg;

    comm->enter.enter(comm->enter.arg);
    return the_library.ncclCommAbort(comm->nccl);
}

/*
 * ncclCommAbort makes what waits for a peer in NCCL end with an error. NCCL promises that only
 * where no thread is in a call of it (user guide, "Fault Tolerance"), so it may hang just as well,
 * and is called by a thread of its own: all of it has a second, then both threads are left.
 */
static int give_up(struct nccl_comm *comm)
{
    bool aborted = false;
    int result;

    for (unsigned i = 0; i < HELPER_STEPS; i++) {
        if (!aborted && __atomic_load_n(&comm->nccl, __ATOMIC_ACQUIRE))
            aborted = !helper_start(&comm->aborter, abort_comm, comm);
        bool in_call = helper_state(&comm->helper, &result) == -EAGAIN;
        bool aborting = helper_state(&comm->aborter, &result) == -EAGAIN;
        if (!in_call && !aborting && (aborted || !comm->nccl))
            return 0;
        helper_pause();
    }
    return -ETIMEDOUT;
}

static int comm_close(struct nccl_comm *comm, bool abort)
{
    int err = comm && abort ? give_up(comm) : 0;

    if (comm && !abort)
        the_library.ncclCommDestroy(comm->nccl);
    if (!err)
        free(comm); /* else the threads that are left have it */
    return err;
}

__attribute__((visibility("default"))) const struct nccl_module plumb_nccl_module = {
    .abi = NCCL_MODULE_ABI,
    .open = open_library,
    .version = version,
    .file = file,
    .number = number,
    .simulated = simulated,
    .debug_again = debug_again,
    .unique = unique,
    .comm_open = comm_open,
    .comm_state = comm_state,
    .enqueue = enqueue,
    .group = group,
    .memory = memory,
    .memory_free = memory_free,
    .comm_register = comm_register,
    .is_registered = is_registered,
    .comm_finalize = comm_finalize,
    .comm_close = comm_close,
};
