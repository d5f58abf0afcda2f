/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between core and the module plumb-nccl.so, which alone knows NCCL's header. The module opens
 * libnccl.so.2 itself, when it is first asked. Memory and streams come from the GPU module (gpu.h):
 * its device's context is the calling thread's in every call here.
 *
 * Communicators block: since 2.23 NCCL starts a thread for each operation of one that does not, in
 * the time that is measured. What may wait for a peer in NCCL is called by a helper thread: no call
 * here waits, it answers -EAGAIN, and comm_state() is asked until it says otherwise. Errors: 0 or
 * -errno with `error`.
 */
#ifndef PLUMB_CORE_COLLECTIVE_NCCL_MODULE_H
#define PLUMB_CORE_COLLECTIVE_NCCL_MODULE_H

#include "core/collective/collective.h"

#define NCCL_MODULE_ABI    2u
#define NCCL_MODULE_SYMBOL "plumb_nccl_module" /* const struct nccl_module, its one symbol */
#define NCCL_ID_BYTES      128

struct nccl_comm;

struct nccl_call {
    enum collective_op op;
    enum collective_type type;
    enum collective_sum sum;
    const void *input; /* the device's */
    void *result;
    uint64_t count; /* of the vector */
    size_t element_bytes;
};

/* Makes the GPU's context that of the calling thread, for helper threads. */
struct nccl_enter {
    void (*enter)(void *arg);
    void *arg;
};

struct nccl_module {
    unsigned abi;
    /* The library. -ENODEV with what is missing and where one may be had. Called again it only
     * tells. */
    int (*open)(char *error, size_t len);
    /* After open(). */
    void (*version)(char *text, size_t len); /* "NCCL 2.28.9" */
    bool (*simulated)(void);                 /* the library is a stand-in */
    /* Takes NCCL_DEBUG and its kin from the environment once more. false: this library cannot. */
    bool (*debug_again)(void);

    int (*unique)(uint8_t id[NCCL_ID_BYTES], char *error, size_t len);
    int (*comm_open)(struct nccl_comm **comm, const uint8_t id[NCCL_ID_BYTES], unsigned n,
                     unsigned me, const struct nccl_enter *enter, char *error, size_t len);
    /* 0: what was asked for last is done, or in its stream; -EAGAIN: not yet; -EIO: it failed, or
     * this communicator did since, with NCCL's own words. */
    int (*comm_state)(struct nccl_comm *comm, char *error, size_t len);
    /* `first`: of its kind and size, for which NCCL may still have to connect, and so by a helper
     * thread (-EAGAIN). Any other one is queued when this returns, by the calling thread. */
    int (*enqueue)(struct nccl_comm *comm, const struct nccl_call *call, void *stream, bool first,
                   char *error, size_t len);
    int (*comm_finalize)(struct nccl_comm *comm, char *error, size_t len);
    /* Finalized; or with `abort`, whatever it is at. NULL is left alone. -ETIMEDOUT: a thread is
     * left in NCCL for good, which must not be used in this process any more, nor its GPU. */
    int (*comm_close)(struct nccl_comm *comm, bool abort);
};

#endif
