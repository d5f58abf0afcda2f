/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a communicator's processes share, and operations through it. */
#include "tests/sim/nccl.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x6e63636c73696d31)

struct nccl_name { /* what an id holds */
    uint64_t magic;
    int32_t pid, fd;
};

static size_t head_bytes(void)
{
    return (sizeof(struct nccl_share) + 0xffff) & ~(size_t)0xffff;
}

ncclResult_t nccl_share_make(ncclUniqueId *id)
{
    struct nccl_name name = {MAGIC, getpid(), memfd_create("plumb-sim-nccl", MFD_CLOEXEC)};

    memset(id, 0, sizeof(*id));
    memcpy(id, &name, sizeof(name));
    if (name.fd < 0 || ftruncate(name.fd, (off_t)(head_bytes() + NCCL_RANKS * NCCL_SLOT_BYTES)))
        return ncclSystemError;
    return ncclSuccess;
}

uint64_t nccl_hash(const char *text)
{
    uint64_t h = 1469598103934665603u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

static ncclResult_t map(struct ncclComm *comm, const struct nccl_name *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", name->pid, name->fd);
    int fd = name->magic == MAGIC ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return ncclSystemError;
    comm->share_bytes = head_bytes() + (size_t)comm->ranks * NCCL_SLOT_BYTES;
    void *at =
        mmap(NULL, comm->share_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    comm->share = at == MAP_FAILED ? NULL : at;
    return comm->share ? ncclSuccess : ncclSystemError;
}

ncclResult_t nccl_share_join(struct ncclComm *comm, const ncclUniqueId *id)
{
    const char *host = getenv("NCCL_HOSTID");
    struct nccl_member *own;
    struct nccl_name name;

    memcpy(&name, id, sizeof(name));
    ncclResult_t r = map(comm, &name);
    if (r)
        return r;
    comm->key = (uint64_t)name.pid << 32 | (uint32_t)name.fd;
    own = &comm->share->member[comm->rank];
    own->gpu = comm->gpu;
    own->card = comm->card;
    own->host = nccl_hash(host ? host : "this machine");
    atomic_store(&own->here, 1);
    return ncclSuccess;
}

bool nccl_share_whole(const struct ncclComm *comm)
{
    for (int i = 0; i < comm->ranks; i++)
        if (!atomic_load(&comm->share->member[i].here))
            return false;
    return true;
}

void nccl_share_leave(struct ncclComm *comm)
{
    if (comm->share)
        munmap(comm->share, comm->share_bytes);
    comm->share = NULL;
}

unsigned char *nccl_slot(const struct ncclComm *comm, int rank)
{
    return (unsigned char *)comm->share + head_bytes() + (size_t)rank * NCCL_SLOT_BYTES;
}

static bool all_done(const struct ncclComm *comm, uint64_t number)
{
    for (int i = 0; i < comm->ranks; i++)
        if (atomic_load(&comm->share->member[i].done) < number)
            return false;
    return true;
}

static bool all_posted(const struct ncclComm *comm, uint64_t number)
{
    for (int i = 0; i < comm->ranks; i++)
        if (atomic_load(&comm->share->member[i].posted) < number)
            return false;
    return true;
}

/* What others still read is not written over. */
static void post(const struct nccl_op *op, const unsigned char *from)
{
    struct ncclComm *comm = op->comm;
    struct nccl_member *own = &comm->share->member[comm->rank];
    uint64_t at = 0;

    for (int i = 0; i < comm->ranks; i++) {
        own->part[i].at = at;
        own->part[i].bytes = op->send[i].bytes;
        memcpy(nccl_slot(comm, comm->rank) + at, from + op->send[i].at, op->send[i].bytes);
        at += op->send[i].bytes;
    }
    own->signature = op->signature;
    atomic_store(&own->posted, op->number);
}

/* All that have come must be at the same. */
static bool agree(const struct nccl_op *op)
{
    for (int i = 0; i < op->comm->ranks; i++)
        if (op->comm->share->member[i].signature != op->signature)
            return false;
    return true;
}

bool nccl_op_ready(const void *args, void *const at[SIM_RANGES])
{
    struct nccl_op *op;

    memcpy(&op, args, sizeof(op));
    struct ncclComm *comm = op->comm;
    if (comm->aborted)
        return true;
    if (!op->number)
        op->number = ++comm->begun;
    if (atomic_load(&comm->share->member[comm->rank].posted) < op->number &&
        all_done(comm, op->number - 1))
        post(op, at[0]);
    if (all_posted(comm, op->number)) {
        if (!agree(op))
            comm->error = ncclInvalidUsage;
        return !comm->error;
    }
    sched_yield(); /* there may be more ranks than CPUs */
    return false;
}

static const unsigned char *part_of(const struct nccl_op *op, int rank, int to)
{
    return nccl_slot(op->comm, rank) + op->comm->share->member[rank].part[to].at;
}

static void reduce_parts(const struct nccl_op *op, unsigned char *to, uint64_t first)
{
    size_t size = nccl_type_bytes(op->type), bytes = op->count * size;
    int ranks = op->comm->ranks;
    void *one = malloc(bytes);

    for (int i = 0; i < ranks && one; i++) {
        memcpy(i ? one : to, part_of(op, i, 0) + first * size, bytes);
        nccl_before(op->type, op->sum, ranks, i ? one : to, op->count);
        if (i)
            nccl_reduce(op->type, op->sum, to, one, op->count);
    }
    nccl_after(op->type, op->sum, ranks, to, op->count);
    free(one);
}

void nccl_op_run(const void *args, void *const at[SIM_RANGES])
{
    unsigned char *to = at[1];
    struct nccl_op *op;

    memcpy(&op, args, sizeof(op));
    struct ncclComm *comm = op->comm;
    size_t bytes = op->count * nccl_type_bytes(op->type);
    if (comm->aborted) {
        if (!op->captured)
            free(op);
        return;
    }
    if (op->kind == NCCL_ALL_REDUCE || (op->kind == NCCL_REDUCE && comm->rank == op->root))
        reduce_parts(op, to, 0);
    if (op->kind == NCCL_REDUCE_SCATTER)
        reduce_parts(op, to, (uint64_t)comm->rank * op->count);
    if (op->kind == NCCL_BROADCAST)
        memcpy(to, part_of(op, op->root, 0), bytes);
    for (int i = 0; op->kind == NCCL_ALL_GATHER && i < comm->ranks; i++)
        memcpy(to + (size_t)i * bytes, part_of(op, i, 0), bytes);
    for (int i = 0; op->kind == NCCL_P2P && i < comm->ranks; i++)
        memcpy(to + op->receive[i].at, part_of(op, i, comm->rank), op->receive[i].bytes);
    atomic_store(&comm->share->member[comm->rank].done, op->number);
    op->number = 0;
    if (!op->captured)
        free(op);
}
