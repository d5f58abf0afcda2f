/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated NCCL: its interface, and the mark of a stand-in. Faults come from the simulated machine: `error:call=ncclX:code=N`
 * for calls, `hang:kernel=AllReduce` and the like for what is in a stream.
 */
#include "tests/sim/nccl.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING_STEP_NS 3000.0
#define SOCKETS_GBPS 2.0 /* between ranks that share a GPU */
#define DEFAULT_GBPS 10.0
#define POLL_NS      200000

const char plumb_simulated[] = "libnccl";

struct driver {
    const struct sim_machine *machine;
    CUresult (*submit)(CUstream, const struct sim_task *);
    bool (*captures)(CUstream);
    CUresult (*take)(CUdeviceptr *, size_t);
    CUresult (*give_back)(CUdeviceptr);
    int (*turn)(int);
    int gpu;
};

/* Between ncclGroupStart and ncclGroupEnd of a thread: its depth, and sends and receives of each communicator. */
static _Thread_local unsigned depth;
static _Thread_local struct group {
    struct ncclComm *comm;
    cudaStream_t stream;
    ncclDataType_t type;
    const unsigned char *send[NCCL_RANKS];
    unsigned char *receive[NCCL_RANKS];
    uint64_t send_bytes[NCCL_RANKS], receive_bytes[NCCL_RANKS];
} groups[NCCL_RANKS];
/* Of this process. */
static struct ncclComm *comms;
static pthread_mutex_t comms_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_error[160];

static ncclResult_t fail(ncclResult_t r, const char *why)
{
    snprintf(last_error, sizeof(last_error), "%s", why);
    return r;
}

static bool driver_of(struct driver *d)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const struct sim_machine *(*machine)(void);
    int (*current)(void);

    if (!library || !plumb_simulated[0])
        return false;
    *(void **)&machine = dlsym(library, "plumb_sim_machine");
    *(void **)&current = dlsym(library, "plumb_sim_current");
    *(void **)&d->submit = dlsym(library, "plumb_sim_submit");
    *(void **)&d->captures = dlsym(library, "plumb_sim_captures");
    *(void **)&d->take = dlsym(library, "cuMemAlloc_v2");
    *(void **)&d->give_back = dlsym(library, "cuMemFree_v2");
    *(void **)&d->turn = dlsym(library, "plumb_sim_turn");
    dlclose(library);
    if (!machine || !current || !d->submit)
        return false;
    d->machine = machine();
    d->gpu = current();
    return d->gpu >= 0;
}

/* The fault that strikes a call, as its result. */
static ncclResult_t struck(const char *call)
{
    struct driver d;
    const struct sim_fault *fault = NULL;

    if (driver_of(&d))
        fault = sim_fault_strikes((struct sim_machine *)(uintptr_t)d.machine, SIM_ERROR,
                                  (struct sim_event){.gpu = d.gpu, .peer = -1, .call = call});
    return fault ? fail((ncclResult_t)fault->code, "a fault of the simulated machine")
                 : ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};

    return (size_t)result < sizeof(texts) / sizeof(*texts) ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last_error;
}

void ncclResetDebugInit(void); /* NOLINT(readability-redundant-declaration) */
void ncclResetDebugInit(void)
{
    nccl_say_forget();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    ncclResult_t r = struck("ncclGetUniqueId");

    return r ? r : nccl_share_make(id);
}

/* Two ranks on one GPU of one machine are refused, as the real one does. */
static ncclResult_t look_for_doubles(const struct ncclComm *comm)
{
    const struct nccl_member *m = comm->share->member;

    for (int i = 0; i < comm->ranks; i++)
        if (i != comm->rank && m[i].card == comm->card && nccl_same_host(comm, i, comm->rank))
            return fail(ncclInvalidUsage, "Duplicate GPU detected");
    return ncclSuccess;
}

/* Whether the fault `hang:kernel=CALL` strikes a call. */
static bool hangs(const struct driver *d, const char *call)
{
    return sim_fault_strikes((struct sim_machine *)(uintptr_t)d->machine, SIM_HANG,
                             (struct sim_event){.gpu = d->gpu, .peer = -1, .kernel = call});
}

static ncclResult_t state_of(struct ncclComm *comm)
{
    if (comm->error && !comm->deaf)
        return comm->error;
    if (comm->deaf || !nccl_share_whole(comm))
        return ncclInProgress;
    if (!comm->told)
        comm->error = look_for_doubles(comm);
    if (!comm->told && !comm->error)
        nccl_say_made(comm);
    comm->told = true;
    return comm->error;
}

static ncclResult_t wait_for_all(struct ncclComm *comm)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    ncclResult_t r;

    while ((r = state_of(comm)) == ncclInProgress && (!comm->aborted || comm->deaf))
        nanosleep(&pause, NULL);
    return r == ncclInProgress ? fail(ncclInternalError, "aborted") : r;
}

static void name_of(const char *variable, const char *otherwise, char text[16])
{
    const char *set = getenv(variable);

    snprintf(text, 16, "%s", set ? set : otherwise);
    for (char *p = text; *p; p++)
        *p = (char)toupper((unsigned char)*p);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    struct driver d;
    ncclResult_t r = struck("ncclCommInitRankConfig");

    *out = NULL;
    if (r)
        return r;
    if (!driver_of(&d))
        return fail(ncclUnhandledCudaError, "the libcuda.so.1 of this process is no stand-in");
    if (ranks < 1 || ranks > NCCL_RANKS || rank < 0 || rank >= ranks)
        return fail(ncclInvalidArgument, "ranks");
    struct ncclComm *comm = calloc(1, sizeof(*comm));
    if (!comm)
        return ncclSystemError;
    *comm = (struct ncclComm){
        .rank = rank, .ranks = ranks, .gpu = d.gpu, .card = nccl_hash(d.machine->gpu[d.gpu].uuid)};
    name_of("NCCL_ALGO", "RING", comm->algorithm);
    name_of("NCCL_PROTO", "SIMPLE", comm->protocol);
    comm->blocking = !config || config->blocking != 0;
    comm->deaf = hangs(&d, "ncclCommInitRankConfig");
    r = comm->deaf ? 0 : nccl_share_join(comm, &id);
    if (r) {
        free(comm);
        return fail(r, "no memory of that id: its process is gone, or on another machine");
    }
    pthread_mutex_lock(&comms_lock);
    comm->next = comms;
    comms = comm;
    pthread_mutex_unlock(&comms_lock);
    *out = comm;
    return comm->blocking ? wait_for_all(comm) : ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    ncclResult_t r = struck("ncclCommGetAsyncError");

    if (r)
        comm->error = r;
    *state = state_of(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return comm->error;
}

/* For tests: how many operations there were, and for how many NCCL started a thread. */
static void tally(const struct ncclComm *comm)
{
    const char *path = getenv("PLUMB_SIM_NCCL_TALLY");
    FILE *file = path && *path ? fopen(path, "a") : NULL;

    if (!file)
        return;
    fprintf(file, "operations=%llu threads=%llu registered=%d\n",
            (unsigned long long)comm->operations, (unsigned long long)comm->threads,
            comm->registered);
    fclose(file);
}

static void forget(const struct ncclComm *comm)
{
    struct ncclComm **at = &comms;

    pthread_mutex_lock(&comms_lock);
    while (*at && *at != comm)
        at = &(*at)->next;
    if (*at)
        *at = comm->next;
    pthread_mutex_unlock(&comms_lock);
}

/* A thread that asks several ranks of one communicator for the same, one after another, may wait for good in the first: that is for a group. */
static bool wants_group(struct ncclComm *comm)
{
    static _Atomic uint64_t threads;
    static _Thread_local uint64_t self; /* ids of threads are used again */
    bool found = false;

    self = self ? self : ++threads;
    pthread_mutex_lock(&comms_lock);
    for (const struct ncclComm *other = comms; other && !depth; other = other->next)
        found |= other != comm && !other->aborted && other->user == self && other->key == comm->key;
    comm->user = self;
    pthread_mutex_unlock(&comms_lock);
    return found;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    forget(comm);
    tally(comm);
    nccl_share_leave(comm);
    while (comm->captured) {
        struct nccl_op *op = comm->captured;
        comm->captured = op->next;
        free(op);
    }
    free(comm);
    return ncclSuccess;
}

/* What is still in a stream comes to its end, and looks at the communicator for that: it stays. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm->aborted = true;
    comm->error = ncclInternalError;
    return ncclSuccess;
}

/* --- memory and its registration: what it is told of must be its own, as far as the real one wants it --- */

#define OWN_MOST  64
#define ALIGNMENT 4096

static struct {
    uintptr_t at;
    size_t bytes;
} own[OWN_MOST];

ncclResult_t ncclMemAlloc(void **at, size_t bytes)
{
    struct driver d;
    CUdeviceptr taken;
    ncclResult_t r = struck("ncclMemAlloc");

    if (r || !driver_of(&d))
        return r ? r : ncclUnhandledCudaError;
    if (d.take(&taken, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT))
        return fail(ncclUnhandledCudaError, "out of memory");
    *at = (void *)taken;
    for (int i = 0; i < OWN_MOST; i++)
        if (!own[i].at) {
            own[i].at = taken;
            own[i].bytes = bytes;
            break;
        }
    return ncclSuccess;
}

ncclResult_t ncclMemFree(void *at)
{
    struct driver d;

    for (int i = 0; i < OWN_MOST; i++)
        if (own[i].at == (uintptr_t)at)
            own[i].at = 0;
    return driver_of(&d) && !d.give_back((CUdeviceptr)at) ? ncclSuccess : ncclUnhandledCudaError;
}

static bool is_own(const void *at, size_t bytes)
{
    for (int i = 0; i < OWN_MOST; i++)
        if (own[i].at && own[i].at <= (uintptr_t)at &&
            (uintptr_t)at + bytes <= own[i].at + own[i].bytes)
            return true;
    return false;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *at, size_t bytes, void **handle)
{
    const char *allowed = getenv("NCCL_LOCAL_REGISTER");
    ncclResult_t r = struck("ncclCommRegister");

    (void)at;
    (void)bytes;
    bool taken = !r && (!allowed || strcmp(allowed, "0") != 0);
    *handle = taken ? comm : NULL;
    comm->registered += taken;
    return r;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    comm->registered -= handle != NULL;
    return ncclSuccess;
}

/* A communicator of several machines has no symmetric memory here: the window is none, and that is no error. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *at, size_t bytes, ncclWindow_t *window,
                                    int flags)
{
    ncclResult_t r = struck("ncclCommWindowRegister");
    bool one_host = true;

    *window = NULL;
    for (int i = 0; i < comm->ranks; i++)
        one_host = one_host && nccl_same_host(comm, i, 0);
    if (r || !one_host)
        return r;
    if (!is_own(at, bytes) || (uintptr_t)at % ALIGNMENT || flags != NCCL_WIN_COLL_SYMMETRIC)
        return fail(ncclInvalidArgument, "memory that is not of ncclMemAlloc");
    *window = (ncclWindow_t)comm;
    comm->symmetric = true;
    comm->registered++;
    return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    comm->registered -= window != NULL;
    return ncclSuccess;
}

static double gbps(const struct ncclComm *comm, const struct sim_machine *m, int a, int b)
{
    int i = comm->share->member[a].gpu, j = comm->share->member[b].gpu;

    if (!nccl_same_host(comm, a, b))
        return SOCKETS_GBPS;
    if (i == j)
        return DEFAULT_GBPS;
    const struct sim_link *link = &m->link[i < j ? i : j][i < j ? j : i];
    return link->kind == SIM_NVLINK ? link->gbps
           : link->pcie_gbps > 0    ? link->pcie_gbps
                                    : DEFAULT_GBPS;
}

/* Of a ring: each member passes `bytes` on. */
static double ring_ns(const struct ncclComm *comm, const struct sim_machine *m, double bytes)
{
    double slowest = 1e9;

    for (int i = 0; i < comm->ranks && comm->ranks > 1; i++) {
        double rate = gbps(comm, m, i, (i + 1) % comm->ranks);
        slowest = rate < slowest ? rate : slowest;
    }
    return RING_STEP_NS * comm->ranks + bytes / slowest;
}

static void *nothing(void *arg)
{
    return arg;
}

/* From 2.23 on a group of a communicator that does not block is launched by a thread of its own, each of them. */
static void start_thread(struct ncclComm *comm)
{
    pthread_t thread;

    if (comm->blocking || pthread_create(&thread, NULL, nothing, NULL))
        return;
    pthread_join(thread, NULL);
    comm->threads++;
}

/* input, result: what is read and written, `in` and `out` bytes of it; `moved`: that each passes on. */
static ncclResult_t submit(const struct nccl_op *of, const char *name, const void *input,
                           uint64_t in, void *result, uint64_t out, double moved,
                           cudaStream_t stream)
{
    struct driver d;
    struct sim_task task = {
        .ranges = 2, .zeros_factor = 1, .run = nccl_op_run, .ready = nccl_op_ready};
    struct nccl_op *op = malloc(sizeof(*op));

    if (wants_group(of->comm)) {
        free(op);
        return fail(ncclInvalidUsage, "ranks of one thread outside of a group");
    }
    if (!op || !driver_of(&d) || of->comm->error || in > NCCL_SLOT_BYTES) {
        free(op);
        return fail(ncclInvalidUsage, "not now, or too large for a stand-in");
    }
    *op = *of;
    op->comm->operations++;
    int before = d.turn(op->comm->gpu); /* as the real one does, whichever is the thread's */
    op->captured = d.captures && d.captures((CUstream)stream);
    if (op->captured) {
        op->next = op->comm->captured;
        op->comm->captured = op;
    }
    op->signature = (uint64_t)op->kind << 56 ^ (uint64_t)op->type << 48 ^ (uint64_t)op->sum << 40 ^
                    (op->kind == NCCL_P2P ? 0 : op->count);
    snprintf(task.name, sizeof(task.name), "%s", name);
    /* Who sends nothing, or gets nothing, has no bytes of the other's. */
    task.range[0] = (struct sim_range){(uintptr_t)(in ? input : result), in, false};
    task.range[1] = (struct sim_range){(uintptr_t)(out ? result : input), out, true};
    task.ns = ring_ns(op->comm, d.machine, moved);
    memcpy(task.args, &op, sizeof(op));
    nccl_say_op(op, in);
    start_thread(op->comm);
    CUresult rc = d.submit((CUstream)stream, &task);
    d.turn(before);
    return rc ? fail(ncclUnhandledCudaError, "the stream") : ncclSuccess;
}

static ncclResult_t collective(struct nccl_op op, const char *call, const void *input, void *result,
                               cudaStream_t stream)
{
    double n = op.comm->ranks, size = (double)nccl_type_bytes(op.type);
    uint64_t bytes = op.count * nccl_type_bytes(op.type), all = bytes * (uint64_t)op.comm->ranks;
    bool gathers = op.kind == NCCL_ALL_GATHER, scatters = op.kind == NCCL_REDUCE_SCATTER;
    double moved = size * (double)op.count *
                   (gathers || scatters          ? n - 1
                    : op.kind == NCCL_ALL_REDUCE ? 2 * (n - 1) / n
                                                 : 1);
    ncclResult_t r = struck(call);

    if (r)
        return r;
    if (!bytes)
        return fail(ncclInvalidArgument, "no elements, or a type that the stand-in has not");
    op.send[0].bytes = scatters ? all : bytes;
    return submit(&op, call + strlen("nccl"), input, op.send[0].bytes, result,
                  gathers ? all : bytes, moved, stream);
}

ncclResult_t ncclAllReduce(const void *input, void *result, size_t count, ncclDataType_t type,
                           ncclRedOp_t sum, ncclComm_t comm, cudaStream_t stream)
{
    return collective(
        (struct nccl_op){
            .comm = comm, .kind = NCCL_ALL_REDUCE, .type = type, .sum = sum, .count = count},
        "ncclAllReduce", input, result, stream);
}

ncclResult_t ncclReduceScatter(const void *input, void *result, size_t count, ncclDataType_t type,
                               ncclRedOp_t sum, ncclComm_t comm, cudaStream_t stream)
{
    return collective(
        (struct nccl_op){
            .comm = comm, .kind = NCCL_REDUCE_SCATTER, .type = type, .sum = sum, .count = count},
        "ncclReduceScatter", input, result, stream);
}

ncclResult_t ncclAllGather(const void *input, void *result, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return collective(
        (struct nccl_op){.comm = comm, .kind = NCCL_ALL_GATHER, .type = type, .count = count},
        "ncclAllGather", input, result, stream);
}

ncclResult_t ncclReduce(const void *input, void *result, size_t count, ncclDataType_t type,
                        ncclRedOp_t sum, int root, ncclComm_t comm, cudaStream_t stream)
{
    return collective((struct nccl_op){.comm = comm,
                                       .kind = NCCL_REDUCE,
                                       .type = type,
                                       .sum = sum,
                                       .count = count,
                                       .root = root},
                      "ncclReduce", input, result, stream);
}

ncclResult_t ncclBroadcast(const void *input, void *result, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream)
{
    return collective(
        (struct nccl_op){
            .comm = comm, .kind = NCCL_BROADCAST, .type = type, .count = count, .root = root},
        "ncclBroadcast", input, result, stream);
}

/* NOLINTBEGIN(readability-redundant-declaration): the header's have no prototypes */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
/* NOLINTEND(readability-redundant-declaration) */

ncclResult_t ncclGroupStart(void)
{
    if (!depth)
        memset(groups, 0, sizeof(groups));
    depth++;
    return ncclSuccess;
}

/* NULL: not in a group. */
static struct group *join_group(int peer, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    struct group *g = groups;

    if (!depth || peer < 0 || peer >= comm->ranks) {
        fail(ncclInvalidUsage, "the stand-in has sends and receives in a group alone");
        return NULL;
    }
    while (g->comm && g->comm != comm)
        g++;
    g->comm = comm;
    g->stream = stream;
    g->type = type;
    return g;
}

ncclResult_t ncclSend(const void *input, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    struct group *g = join_group(peer, type, comm, stream);

    if (!g)
        return ncclInvalidUsage;
    g->send[peer] = input;
    g->send_bytes[peer] = count * nccl_type_bytes(type);
    return ncclSuccess;
}

ncclResult_t ncclRecv(void *result, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    struct group *g = join_group(peer, type, comm, stream);

    if (!g)
        return ncclInvalidUsage;
    g->receive[peer] = result;
    g->receive_bytes[peer] = count * nccl_type_bytes(type);
    return ncclSuccess;
}

struct span {
    uintptr_t low, high;
};

static void widen(struct span *s, const void *at, uint64_t bytes)
{
    if (!bytes)
        return;
    s->low = !s->low || (uintptr_t)at < s->low ? (uintptr_t)at : s->low;
    s->high = (uintptr_t)at + bytes > s->high ? (uintptr_t)at + bytes : s->high;
}

static ncclResult_t submit_group(const struct group *g)
{
    struct nccl_op op = {.comm = g->comm, .kind = NCCL_P2P, .type = g->type};
    struct span in = {0}, out = {0};
    double moved = 0;

    for (int i = 0; i < NCCL_RANKS; i++) {
        widen(&in, g->send[i], g->send_bytes[i]);
        widen(&out, g->receive[i], g->receive_bytes[i]);
    }
    for (int i = 0; i < NCCL_RANKS; i++) {
        op.send[i].at = g->send_bytes[i] ? (uintptr_t)g->send[i] - in.low : 0;
        op.send[i].bytes = g->send_bytes[i];
        op.receive[i].at = g->receive_bytes[i] ? (uintptr_t)g->receive[i] - out.low : 0;
        op.receive[i].bytes = g->receive_bytes[i];
        moved += i == op.comm->rank ? 0 : (double)op.send[i].bytes;
    }
    return submit(&op, "SendRecv", (const void *)in.low, in.high - in.low, (void *)out.low,
                  out.high - out.low, moved, g->stream);
}

ncclResult_t ncclGroupEnd(void)
{
    if (!depth || depth > 1 || !groups[0].comm) {
        depth -= depth > 0;
        return ncclSuccess;
    }
    ncclResult_t r = struck("ncclGroupEnd");
    for (const struct group *g = groups; g < groups + NCCL_RANKS && g->comm && !r; g++)
        r = submit_group(g);
    depth = 0;
    return r;
}
