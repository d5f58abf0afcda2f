/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the NCCL backend: its ranks in this process, and what is asked of NCCL for all of them.
 * nccl.c has their life, operations and waiting for them; nccl_comm.c calls the library.
 *
 * Errors: 0, or -errno, said in the error of the struct collective that was given, or of the rank's.
 */
#ifndef PLUMB_CORE_COLLECTIVE_NCCL_RANK_H
#define PLUMB_CORE_COLLECTIVE_NCCL_RANK_H

#include "core/collective/library.h"
#include "core/collective/nccl_log.h"
#include "core/hw/gpu.h"

#define NCCL_ID_BYTES 128

struct nccl_call {
    enum collective_op op;
    enum collective_type type;
    enum collective_sum sum;
    const void *input; /* the device's */
    void *result;
    uint64_t count; /* of the vector */
    size_t element_bytes;
    unsigned root; /* where the op has one */
};

/* A rank of NCCL's. `c` is what a member with this one rank alone would be: `n` and `me` are of ranks,
 * its state is this. */
struct nccl_rank {
    struct collective c;
    struct collective_point point;
    struct nccl_state *s;
    struct library_gpu gpu; /* its word is the barriers'; broken: the communicator may be, too */
    struct nccl_comm *comm;
    struct gpu_graph *graph; /* of the point's operations; NULL: none is asked for */
    bool captures;           /* its stream */
};

struct nccl_state {
    struct nccl_rank *ranks; /* of this process: one, or as many as the point asks for */
    unsigned n_ranks;
    unsigned *members; /* of each rank of the communicator: its process' rank in the world */
    uint8_t id[NCCL_ID_BYTES];
    /* What all ranks are asked for next. */
    uint64_t seed;
    unsigned call;
    bool first; /* of its kind and size */
    uint64_t expected_ns;
    bool shared;        /* several ranks on one GPU */
    double bytes;       /* of all that ran */
    double ns_per_byte; /* of the last that was waited for; 0: none was */
    struct nccl_log says;
};

typedef int nccl_rank_fn(struct nccl_rank *r);

/* ---- The library ---- */

/* 0; -ELIBACC with what is missing, and where one may be had. Called again it only tells. */
int nccl_library(char *error, size_t len);
/* After it: "NCCL 2.28.9", and 22809. */
unsigned nccl_version(char *text, size_t len);
const char *nccl_file(void);
bool nccl_is_simulated(void);
/* Takes NCCL_DEBUG and its kin from the environment once more. false: this library cannot. */
bool nccl_debug_again(void);

/* Communicators block: since 2.23 NCCL starts a thread for each operation of one that does not, in
 * the time that is measured. What may wait for a peer in NCCL is called by a helper thread: what is
 * begun here is done when nccl_look_comm() says so. */

/* Makes the communicator's id, by one rank of it. */
int nccl_make_id(struct collective *c);
/* Begins to make the rank's communicator. */
nccl_rank_fn nccl_begin_comm;
/* Begins to tell NCCL of the buffers, if it can, until the communicator is finalized; has it taken
 * them? It may say yes, and do nothing. */
nccl_rank_fn nccl_begin_register, nccl_check_registered;
/* Buffers of NCCL's own memory (2.19), where this library has such a thing. */
void nccl_take_memory(struct library_gpu *g);
/* `first`: of its kind and size, for which NCCL may still have to connect, and so only begun. Any
 * other one is queued when this returns, by the calling thread. */
int nccl_enqueue(struct nccl_rank *r, const struct nccl_call *call, bool first);
/* What is enqueued between `begin` and not `begin` is given to NCCL at once. */
int nccl_group(struct collective *c, bool begin);
void nccl_begin_finalize(struct nccl_rank *r);
/* After what was begun is done. Of a broken one nothing is waited for that may never come: it is thrown
 * away. */
void nccl_close_comm(struct nccl_rank *r);

/* Is what was begun last done, or in its stream? A library_look_fn, of a rank's c: 0; -EAGAIN; or it
 * failed, or the communicator did since. */
int nccl_look_comm(struct collective *c, struct library_gpu *g);
#endif
