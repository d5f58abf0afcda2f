/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the NCCL backend: its ranks in this process, and what is asked of NCCL for all of them.
 * nccl.c has their life from open to close, nccl_queue.c operations and waiting for them.
 *
 * Errors: 0, or -errno, said in the error of the struct collective that was given, or of the rank's.
 */
#ifndef PLUMB_CORE_COLLECTIVE_NCCL_RANK_H
#define PLUMB_CORE_COLLECTIVE_NCCL_RANK_H

#include "core/collective/library.h"
#include "core/collective/nccl_module.h"
#include "core/hw/gpu.h"

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
    const struct nccl_module *nccl;
    struct nccl_rank *ranks; /* of this process: one, or as many as the point asks for */
    unsigned n_ranks;
    unsigned *members; /* of each rank of the communicator: its process' rank in the world */
    uint8_t id[NCCL_ID_BYTES];
    bool shared;        /* several ranks on one GPU */
    double bytes;       /* of all that ran */
    double ns_per_byte; /* of the last that was waited for; 0: none was */
    struct nccl_log says;
};

typedef int nccl_rank_fn(struct nccl_rank *r, const void *arg);

/* Each rank of this process in turn; what one of them says is said in c->error. */
int nccl_each(struct collective *c, nccl_rank_fn *fn, const void *arg);

/* a library_look_fn, of a rank's c */
int nccl_look_comm(struct collective *c, struct library_gpu *g);
/* Until NCCL is done with what it was asked for last: an nccl_rank_fn. */
int nccl_await_comm(struct nccl_rank *r, const void *arg);

/* The first of its kind: NCCL may wait for its peers in it. Queued, and waited for. */
int nccl_call_first(struct collective *c, unsigned call);
int nccl_barrier_first(struct collective *c);
/* After all of NCCL's connections were made. */
int nccl_make_graph(struct collective *c);

/* Hooks of struct collective_ops. */
int nccl_barrier(struct collective *c);
int nccl_run(struct collective *c, unsigned call);
int nccl_run_batch(struct collective *c);
int nccl_start(struct collective *c, unsigned call);
int nccl_test(struct collective *c, bool *done);

#endif
