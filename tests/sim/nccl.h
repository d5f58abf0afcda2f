/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the simulated libnccl.so.2.
 *
 * A communicator's processes share a piece of memory, which the one that made the unique id keeps: each puts what it sends there, and
 * takes what it needs when all have. A collective is a task of the simulated driver (task.h) that is ready from then on, and whose time is
 * what a ring over the slowest of the links would take.
 */
#ifndef PLUMB_TESTS_SIM_NCCL_H
#define PLUMB_TESTS_SIM_NCCL_H

#include "tests/sim/task.h"

#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>

#define NCCL_RANKS      32
#define NCCL_SLOT_BYTES (UINT64_C(8) << 30) /* addresses; pages come as they are written */

extern const char plumb_simulated[];

enum nccl_kind {
    NCCL_ALL_REDUCE,
    NCCL_REDUCE_SCATTER,
    NCCL_ALL_GATHER,
    NCCL_BROADCAST,
    NCCL_REDUCE,
    NCCL_P2P
};

struct nccl_member {
    _Atomic uint64_t posted, done; /* operations */
    _Atomic int here;
    uint64_t host;      /* a hash of NCCL_HOSTID, or of the machine */
    uint64_t signature; /* of what it posted last */
    uint64_t card;      /* a hash of its GPU's UUID */
    int gpu;
    struct {
        uint64_t at, bytes; /* in its slot: what it sends to each; of collectives, [0] is all */
    } part[NCCL_RANKS];
};

struct nccl_share {
    _Atomic uint64_t magic;
    int ranks;
    struct nccl_member member[NCCL_RANKS];
};

struct ncclComm {
    struct ncclComm *next; /* of this process */
    int rank, ranks, gpu;
    uint64_t key;                     /* of its id: the same in all ranks */
    uint64_t user;                    /* the thread that used it last; 0: none did */
    uint64_t card, operations, begun; /* asked for; begun in the stream */
    struct nccl_op *captured;         /* of graphs: a list */
    int registered;                   /* buffers that it was told of, and not since of their end */
    struct nccl_share *share;
    size_t share_bytes;
    ncclResult_t error; /* for good */
    bool blocking, told, symmetric;
    atomic_bool aborted;
    bool deaf;                        /* a fault: it waits, even where it is aborted */
    uint64_t threads;                 /* that NCCL started for operations */
    char algorithm[16], protocol[16]; /* as the environment had them when it was made */
};

/* One operation, until it has been run. */
struct nccl_op {
    struct ncclComm *comm;
    struct nccl_op *next;       /* of the list; of others nothing */
    bool captured;              /* it is run again */
    uint64_t number, signature; /* 0: not begun */
    enum nccl_kind kind;
    ncclDataType_t type;
    ncclRedOp_t sum;
    uint64_t count; /* as the call has it */
    int root;
    struct {
        uint64_t at, bytes; /* from the beginning of what is sent, or received */
    } send[NCCL_RANKS], receive[NCCL_RANKS];
};

/* nccl_share.c */
uint64_t nccl_hash(const char *text);
ncclResult_t nccl_share_make(ncclUniqueId *id);
ncclResult_t nccl_share_join(struct ncclComm *comm, const ncclUniqueId *id);
bool nccl_share_whole(const struct ncclComm *comm); /* all are here */
void nccl_share_leave(struct ncclComm *comm);
bool nccl_op_ready(const void *args, void *const at[SIM_RANGES]);
void nccl_op_run(const void *args, void *const at[SIM_RANGES]);
unsigned char *nccl_slot(const struct ncclComm *comm, int rank);

/* nccl_data.c */
size_t nccl_type_bytes(ncclDataType_t type); /* 0: not known here */
/* to = to (+) with */
void nccl_reduce(ncclDataType_t type, ncclRedOp_t sum, void *to, const void *with, uint64_t count);
/* What is done to each rank's elements before that, and to the result. */
void nccl_before(ncclDataType_t type, ncclRedOp_t sum, int ranks, void *at, uint64_t count);
void nccl_after(ncclDataType_t type, ncclRedOp_t sum, int ranks, void *at, uint64_t count);

/* nccl_say.c: NCCL_DEBUG_FILE, in the real one's words. */
void nccl_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void nccl_say_forget(void);                      /* the environment is asked again */
void nccl_say_made(const struct ncclComm *comm); /* networks, and what is between the ranks */
void nccl_say_op(const struct nccl_op *op, uint64_t bytes);
bool nccl_same_host(const struct ncclComm *comm, int a, int b);

#endif
