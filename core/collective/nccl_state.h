/* SPDX-License-Identifier: Apache-2.0 */
/* Between nccl.c (a point's life) and nccl_run.c (operations, and waiting for them). */
#ifndef PLUMB_CORE_COLLECTIVE_NCCL_STATE_H
#define PLUMB_CORE_COLLECTIVE_NCCL_STATE_H

#include "core/collective/library_gpu.h"
#include "core/collective/nccl_module.h"
#include "core/collective/nccl_says.h"

struct nccl_state {
    const struct nccl_module *nccl;
    struct library_gpu gpu; /* its word is the barriers'; broken: the communicator may be, too */
    struct nccl_comm *comm;
    uint8_t id[NCCL_ID_BYTES];
    bool shared;         /* several ranks on one GPU */
    double bytes, calls; /* of all that ran */
    double ns_per_byte;  /* of the last that was waited for; 0: none was */
    struct nccl_says says;
};

/* Each 0, or -errno with c->error. */
int nccl_await_comm(struct collective *c); /* until NCCL is done with what it was asked for last */
int nccl_look_comm(struct collective *c, struct library_gpu *g); /* a library_look_fn */
/* The first of its kind: NCCL may wait for its peers in it. Queued, and waited for. */
int nccl_call_first(struct collective *c, unsigned call);
int nccl_barrier_first(struct collective *c);

int nccl_barrier(struct collective *c);
int nccl_run(struct collective *c, unsigned call);
int nccl_start(struct collective *c, unsigned call);
int nccl_test(struct collective *c, bool *done);
int nccl_write(struct collective *c, uint64_t offset, const void *from, size_t bytes);
int nccl_read(struct collective *c, uint64_t offset, void *to, size_t bytes);

#endif
