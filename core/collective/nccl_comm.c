/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL itself, opened at run time: some hundred megabytes that only collectives on GPUs need. See
 * nccl_rank.h. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/collective/nccl_rank.h"
#include "core/hw/nvidia_library.h"

/* ---- What nccl.h says, which is not needed to build: no version has changed it ---- */

enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };

struct nccl_id { /* passed by value */
    char bytes[NCCL_ID_BYTES];
};

/* As 2.14 has it: what a newer library has after it, it takes for not set. */
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking;
};
#define NCCL_CONFIG_MAGIC   0xcafebeefu
#define NCCL_CONFIG_VERSION 21400

#define WINDOW_SYMMETRIC 1 /* NCCL_WIN_COLL_SYMMETRIC */

static const int types[COLLECTIVE_TYPES] = {
    [COLLECTIVE_I8] = 0,   [COLLECTIVE_I32] = 2,   [COLLECTIVE_I64] = 4,
    [COLLECTIVE_F16] = 6,  [COLLECTIVE_F32] = 7,   [COLLECTIVE_F64] = 8,
    [COLLECTIVE_BF16] = 9, [COLLECTIVE_E4M3] = 10, [COLLECTIVE_E5M2] = 11};

static const int sums[COLLECTIVE_SUMS] = {[COLLECTIVE_SUM] = 0,
                                          [COLLECTIVE_PROD] = 1,
                                          [COLLECTIVE_MAX] = 2,
                                          [COLLECTIVE_MIN] = 3,
                                          [COLLECTIVE_AVG] = 4};

/* Every function that is called: whether all libraries that will do have it, from 2.14 on. Of a
 * communicator, a type, a sum, a root and a stream. */
#define NCCL_FUNCTIONS(X)                                                                          \
    X(true, int, ncclGetVersion, (int *version))                                                   \
    X(true, int, ncclGetUniqueId, (struct nccl_id * id))                                           \
    X(true, const char *, ncclGetErrorString, (int result))                                        \
    X(true, const char *, ncclGetLastError, (void *comm))                                          \
    X(true, int, ncclCommInitRankConfig,                                                           \
      (void **comm, int n, struct nccl_id id, int rank, struct nccl_config *config))               \
    X(true, int, ncclCommGetAsyncError, (void *comm, int *result))                                 \
    X(true, int, ncclCommFinalize, (void *comm))                                                   \
    X(true, int, ncclCommDestroy, (void *comm))                                                    \
    X(true, int, ncclCommAbort, (void *comm))                                                      \
    X(true, int, ncclGroupStart, (void))                                                           \
    X(true, int, ncclGroupEnd, (void))                                                             \
    X(true, int, ncclAllReduce,                                                                    \
      (const void *from, void *to, size_t count, int type, int sum, void *comm, void *stream))     \
    X(true, int, ncclReduceScatter,                                                                \
      (const void *from, void *to, size_t count, int type, int sum, void *comm, void *stream))     \
    X(true, int, ncclAllGather,                                                                    \
      (const void *from, void *to, size_t count, int type, void *comm, void *stream))              \
    X(true, int, ncclReduce,                                                                       \
      (const void *from, void *to, size_t count, int type, int sum, int root, void *comm,          \
       void *stream))                                                                              \
    X(true, int, ncclBroadcast,                                                                    \
      (const void *from, void *to, size_t count, int type, int root, void *comm, void *stream))    \
    X(true, int, ncclSend,                                                                         \
      (const void *from, size_t count, int type, int peer, void *comm, void *stream))              \
    X(true, int, ncclRecv, (void *to, size_t count, int type, int peer, void *comm, void *stream)) \
    X(false, void, ncclResetDebugInit, (void))                                                     \
    X(false, int, ncclMemAlloc, (void **at, size_t bytes))                                         \
    X(false, int, ncclMemFree, (void *at))                                                         \
    X(false, int, ncclCommRegister, (void *comm, void *at, size_t bytes, void **handle))           \
    X(false, int, ncclCommDeregister, (void *comm, void *handle))                                  \
    X(false, int, ncclCommWindowRegister,                                                          \
      (void *comm, void *at, size_t bytes, void **window, int flags))                              \
    X(false, int, ncclCommWindowDeregister, (void *comm, void *window))

struct library {
    void *handle;
#define NCCL_DECLARE(needed, type, name, args) type(*name) args;
    NCCL_FUNCTIONS(NCCL_DECLARE)
};

static const struct {
    const char *symbol;
    size_t offset;
    bool needed;
} functions[] = {
#define NCCL_FIND(needed, type, name, args) {#name, offsetof(struct library, name), needed},
    NCCL_FUNCTIONS(NCCL_FIND)};

/* ---- Finds NCCL ---- */

#define FILE_NAME "libnccl.so.2"

/* Opened once, and mapped for good. */
static struct library lib;

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

int nccl_library(char *error, size_t len)
{
    struct library found = {0};

    if (lib.handle)
        return 0;
    int err = find(&found.handle, error, len);
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions) && !err; i++) {
        void *at = dlsym(found.handle, functions[i].symbol);
        memcpy((char *)&found + functions[i].offset, &at, sizeof(at));
        if (at || !functions[i].needed)
            continue;
        snprintf(error, len,
                 "the NCCL that was found has no %s: install version 2.14 or newer, or name "
                 "another in PLUMB_LIBNCCL",
                 functions[i].symbol);
        err = -ELIBACC;
    }
    if (!err)
        lib = found;
    return err;
}

unsigned nccl_version(char *text, size_t len)
{
    int v = 0;

    lib.ncclGetVersion(&v); /* 22809; before 2.9 it had a digit less */
    snprintf(text, len, "NCCL %d.%d.%d", v / 10000, v / 100 % 100, v % 100);
    return (unsigned)v;
}

const char *nccl_file(void)
{
    return nvidia_path(lib.handle);
}

bool nccl_is_simulated(void)
{
    return dlsym(lib.handle, "plumb_simulated") != NULL;
}

bool nccl_debug_again(void)
{
    if (lib.ncclResetDebugInit)
        lib.ncclResetDebugInit();
    return lib.ncclResetDebugInit != NULL;
}

/* ---- A communicator ---- */

typedef int helper_fn(struct nccl_comm *comm);

/* A thread for one call of NCCL's that may never return: who asked for it looks whether it has. One
 * call at a time. It, and the communicator, must stay until the thread has ended. */
struct helper {
    pthread_t thread;
    bool running; /* started, and its end was not seen */
    atomic_bool ended;
    helper_fn *fn;
    struct nccl_comm *comm;
    int result;
};

struct nccl_comm {
    void *nccl; /* NCCL writes it as soon as it can be aborted */
    unsigned n, me;
    struct library_gpu *gpu;
    struct helper helper, aborter;
    const char *asked; /* what the helper is at, or was */
    struct nccl_id id; /* for the helper, as is all below */
    struct nccl_call call;
    enum collective_register how;
    void *buffers[2], *handles[2]; /* what is registered; NULL: not, or not taken */
    size_t bytes[2];
};

#define STEP_NS      10000000
#define HELPER_STEPS 100 /* of them: a second */

static void *help(void *arg)
{
    struct helper *h = arg;

    library_gpu_enter(h->comm->gpu); /* the other thread asks nothing of the GPU meanwhile */
    h->result = h->fn(h->comm);
    atomic_store(&h->ended, true);
    return NULL;
}

/* 0 or -errno */
static int helper_start(struct helper *h, helper_fn *fn, struct nccl_comm *comm)
{
    h->fn = fn;
    h->comm = comm;
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

static int ask_helper(struct nccl_rank *r, helper_fn *fn, const char *asked)
{
    struct nccl_comm *comm = r->comm;

    comm->asked = asked;
    int err = helper_start(&comm->helper, fn, comm);
    return err ? collective_fail(&r->c, err, "nccl: %s: no thread for it: %s", asked,
                                 strerror(-err))
               : 0;
}

/* -EAGAIN for what goes on; NCCL's words for what failed. */
static int check(struct collective *c, void *comm, int result, const char *call)
{
    char text[256];

    if (result == NCCL_SUCCESS)
        return 0;
    if (result == NCCL_IN_PROGRESS)
        return -EAGAIN;
    const char *last = lib.ncclGetLastError(comm);
    snprintf(text, sizeof(text), "%s: %s (%d)%s%.160s", call, lib.ncclGetErrorString(result),
             result, last && *last ? ": " : "", last ? last : "");
    return collective_fail(c, -EIO, "nccl: %.*s", (int)strcspn(text, "\n"), text);
}

int nccl_make_id(struct collective *c)
{
    static const uint8_t none[NCCL_ID_BYTES];
    struct nccl_state *s = c->state;
    struct nccl_id made = {0};

    if (memcmp(s->id, none, sizeof(none)) != 0)
        return 0;
    int err = check(c, NULL, lib.ncclGetUniqueId(&made), "ncclGetUniqueId");
    memcpy(s->id, &made, sizeof(made));
    return err;
}

static int init_rank(struct nccl_comm *comm)
{
    struct nccl_config config = {sizeof(config), NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, 1};

    return lib.ncclCommInitRankConfig(&comm->nccl, (int)comm->n, comm->id, (int)comm->me, &config);
}

int nccl_begin_comm(struct nccl_rank *r)
{
    r->comm = xcalloc(1, sizeof(*r->comm));
    memcpy(&r->comm->id, r->s->id, sizeof(r->comm->id));
    r->comm->n = r->c.n;
    r->comm->me = r->c.me;
    r->comm->gpu = &r->gpu;
    int err = ask_helper(r, init_rank, "ncclCommInitRankConfig");
    if (err) {
        free(r->comm);
        r->comm = NULL;
    }
    return err;
}

int nccl_look_comm(struct collective *c, struct library_gpu *g)
{
    const struct nccl_rank *r = c->state;
    struct nccl_comm *comm = r->comm;
    int result = NCCL_SUCCESS, err = comm ? helper_state(&comm->helper, &result) : 0;

    (void)g;
    if (!comm || err == -EAGAIN)
        return err;
    if (!err) /* it ended just now */
        return check(c, comm->nccl, result, comm->asked);
    if (!comm->nccl)
        return 0;
    err = check(c, comm->nccl, lib.ncclCommGetAsyncError(comm->nccl, &result),
                "ncclCommGetAsyncError");
    return err ? err : check(c, comm->nccl, result, "NCCL's communicator");
}

/* ---- Operations ---- */

/* One result of several calls: the first that is neither success nor under way. */
static int worse(int a, int b)
{
    return a == NCCL_SUCCESS || a == NCCL_IN_PROGRESS ? b : a;
}

static int exchange(const struct nccl_comm *comm, const struct nccl_call *call, size_t block_bytes,
                    void *stream)
{
    const char *input = call->input;
    char *result = call->result;
    int type = types[call->type];
    int r = lib.ncclGroupStart();

    for (unsigned peer = 0; peer < comm->n; peer++) {
        size_t block = call->count / comm->n;
        r = worse(r, lib.ncclSend(input + peer * block_bytes, block, type, (int)peer, comm->nccl,
                                  stream));
        r = worse(r, lib.ncclRecv(result + peer * block_bytes, block, type, (int)peer, comm->nccl,
                                  stream));
    }
    return worse(r, lib.ncclGroupEnd());
}

/* As nccl-tests has them before NCCL 2.28: the root's own block, too. */
static int to_or_from_root(const struct nccl_comm *comm, const struct nccl_call *call,
                           size_t block_bytes, void *stream)
{
    bool gathers = call->op == COLLECTIVE_GATHER;
    const char *input = call->input;
    char *result = call->result;
    size_t block = call->count / comm->n;
    int type = types[call->type];
    int root = (int)call->root;
    int r = lib.ncclGroupStart();

    for (unsigned peer = 0; peer < comm->n && comm->me == call->root; peer++)
        r = worse(r, gathers ? lib.ncclRecv(result + peer * block_bytes, block, type, (int)peer,
                                            comm->nccl, stream)
                             : lib.ncclSend(input + peer * block_bytes, block, type, (int)peer,
                                            comm->nccl, stream));
    r = worse(r, gathers ? lib.ncclSend(input, block, type, root, comm->nccl, stream)
                         : lib.ncclRecv(result, block, type, root, comm->nccl, stream));
    return worse(r, lib.ncclGroupEnd());
}

/* *asked: what was called, for messages. */
static int call_nccl(const struct nccl_comm *comm, const struct nccl_call *call, void *stream,
                     const char **asked)
{
    int type = types[call->type];
    int sum = sums[call->sum];
    size_t block = call->count / comm->n;

    switch (call->op) {
    case COLLECTIVE_ALLREDUCE:
        *asked = "ncclAllReduce";
        return lib.ncclAllReduce(call->input, call->result, call->count, type, sum, comm->nccl,
                                 stream);
    case COLLECTIVE_REDUCE_SCATTER:
        *asked = "ncclReduceScatter";
        return lib.ncclReduceScatter(call->input, call->result, block, type, sum, comm->nccl,
                                     stream);
    case COLLECTIVE_ALL_GATHER:
        *asked = "ncclAllGather";
        return lib.ncclAllGather(call->input, call->result, block, type, comm->nccl, stream);
    case COLLECTIVE_BROADCAST:
        *asked = "ncclBroadcast";
        return lib.ncclBroadcast(call->input, call->result, call->count, type, (int)call->root,
                                 comm->nccl, stream);
    case COLLECTIVE_REDUCE:
        *asked = "ncclReduce";
        return lib.ncclReduce(call->input, call->result, call->count, type, sum, (int)call->root,
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
        int r = lib.ncclGroupStart();
        r = worse(r, lib.ncclSend(call->input, call->count, types[call->type],
                                  (int)((comm->me + 1) % comm->n), comm->nccl, stream));
        r = worse(r, lib.ncclRecv(call->result, call->count, types[call->type],
                                  (int)((comm->me + comm->n - 1) % comm->n), comm->nccl, stream));
        return worse(r, lib.ncclGroupEnd());
    }
}

static int queue_first(struct nccl_comm *comm)
{
    return call_nccl(comm, &comm->call, comm->gpu->native, &comm->asked);
}

int nccl_enqueue(struct nccl_rank *r, const struct nccl_call *call, bool first)
{
    const char *asked;

    if (first) {
        r->comm->call = *call;
        return ask_helper(r, queue_first, "the first call");
    }
    int result = call_nccl(r->comm, call, r->gpu.native, &asked);
    return check(&r->c, r->comm->nccl, result, asked);
}

int nccl_group(struct collective *c, bool begin)
{
    const struct nccl_state *s = c->state;
    void *comm = s->ranks[0].comm->nccl;

    return begin ? check(c, comm, lib.ncclGroupStart(), "ncclGroupStart")
                 : check(c, comm, lib.ncclGroupEnd(), "ncclGroupEnd");
}

/* ---- Memory of NCCL's, and buffers that it is told of ---- */

static int memory_take(struct collective *c, size_t bytes, void **at)
{
    return check(c, NULL, lib.ncclMemAlloc(at, bytes), "ncclMemAlloc");
}

static void memory_free(void *at)
{
    lib.ncclMemFree(at);
}

void nccl_take_memory(struct library_gpu *g)
{
    if (!lib.ncclMemAlloc || !lib.ncclMemFree)
        return;
    g->take = memory_take;
    g->give_back = memory_free;
}

/* A window is made by all members together. */
static int register_buffers(struct nccl_comm *comm)
{
    int r = NCCL_SUCCESS;

    for (unsigned i = 0; i < 2 && r == NCCL_SUCCESS; i++) {
        if (!comm->buffers[i])
            continue;
        r = comm->how == COLLECTIVE_REGISTER_SYMMETRIC
                ? lib.ncclCommWindowRegister(comm->nccl, comm->buffers[i], comm->bytes[i],
                                             &comm->handles[i], WINDOW_SYMMETRIC)
                : lib.ncclCommRegister(comm->nccl, comm->buffers[i], comm->bytes[i],
                                       &comm->handles[i]);
    }
    return r;
}

/* The same bytes in all ranks. */
int nccl_begin_register(struct nccl_rank *r)
{
    const struct collective_point *p = r->c.point;
    bool symmetric = p->registered == COLLECTIVE_REGISTER_SYMMETRIC;
    bool can = symmetric ? lib.ncclCommWindowRegister && lib.ncclCommWindowDeregister
                         : lib.ncclCommRegister && lib.ncclCommDeregister;
    bool apart = r->gpu.input != r->gpu.result;
    size_t size = collective_type_bytes(p->type);
    struct nccl_comm *comm = r->comm;

    if (!can)
        return collective_fail(&r->c, -EOPNOTSUPP, "nccl: registered buffers need NCCL %s or newer",
                               symmetric ? "2.27" : "2.19");
    comm->how = p->registered;
    comm->buffers[0] = r->gpu.result;
    comm->bytes[0] = (apart ? collective_result_count(p->op, p->count, r->c.n) : p->count) * size;
    comm->buffers[1] = apart ? r->gpu.input : NULL;
    comm->bytes[1] = collective_input_count(p->op, p->count, r->c.n) * size;
    return ask_helper(r, register_buffers,
                      symmetric ? "ncclCommWindowRegister" : "ncclCommRegister");
}

int nccl_check_registered(struct nccl_rank *r)
{
    const struct nccl_comm *comm = r->comm;
    bool taken = comm->how != COLLECTIVE_REGISTER_NONE;

    for (unsigned i = 0; i < 2; i++)
        taken = taken && (!comm->buffers[i] || comm->handles[i]);
    if (taken)
        return 0;
    return collective_fail(&r->c, -EOPNOTSUPP,
                           "nccl: it did not register the buffers (--register %s): this "
                           "communicator, or a setting of NCCL's, has no such thing",
                           collective_register_names[r->c.point->registered]);
}

/* ---- Its end ---- */

static int finalize(struct nccl_comm *comm)
{
    for (unsigned i = 0; i < 2; i++) {
        void *handle = comm->handles[i];
        comm->handles[i] = NULL;
        if (handle && comm->how == COLLECTIVE_REGISTER_SYMMETRIC)
            lib.ncclCommWindowDeregister(comm->nccl, handle);
        else if (handle)
            lib.ncclCommDeregister(comm->nccl, handle);
    }
    return lib.ncclCommFinalize(comm->nccl);
}

/* By a helper thread of each: NCCL may wait for the other ranks in it. */
void nccl_begin_finalize(struct nccl_rank *r)
{
    if (r->comm && !r->gpu.broken && ask_helper(r, finalize, "ncclCommFinalize"))
        r->gpu.broken = true;
}

static int abort_comm(struct nccl_comm *comm)
{
    return lib.ncclCommAbort(comm->nccl);
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
        nanosleep(&(const struct timespec){.tv_nsec = STEP_NS}, NULL);
    }
    return -ETIMEDOUT;
}

void nccl_close_comm(struct nccl_rank *r)
{
    struct nccl_comm *comm = r->comm;

    if (!comm)
        return;
    r->gpu.left = r->gpu.broken && give_up(comm);
    if (!r->gpu.broken)
        lib.ncclCommDestroy(comm->nccl);
    if (!r->gpu.left)
        free(comm); /* else the threads that are left have it */
    r->comm = NULL;
}
