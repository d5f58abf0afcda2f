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

#define NCCL_MODULE_ABI    6u
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
    unsigned root; /* where the op has one */
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
    const char *(*file)(void);               /* the library's path */
    unsigned (*number)(void);                /* 22809 of 2.28.9 */
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
    /* What is enqueued between `begin` and not `begin` is given to NCCL at once. */
    int (*group)(struct nccl_comm *comm, bool begin, char *error, size_t len);

    /* Memory of a device as NCCL likes it (ncclMemAlloc, 2.19). NULL where this library has no such
     * function: after open(). 0 or -EIO. */
    int (*(*memory)(void))(void **at, size_t bytes, char *error, size_t len);
    void (*memory_free)(void *at);
    /* Tells NCCL of these buffers until the communicator is finalized, by a helper thread: -EAGAIN,
     * then comm_state() and is_registered(). -EOPNOTSUPP with `error`: this library cannot. NULL
     * buffers are left out. */
    int (*comm_register)(struct nccl_comm *comm, enum collective_register how, void *const at[2],
                         const size_t bytes[2], char *error, size_t len);
    /* NCCL has taken them all: it may say yes, and do nothing. */
    bool (*is_registered)(const struct nccl_comm *comm);

    int (*comm_finalize)(struct nccl_comm *comm, char *error, size_t len);
    /* Finalized; or with `abort`, whatever it is at. NULL is left alone. -ETIMEDOUT: a thread is
     * left in NCCL for good, which must not be used in this process any more, nor its GPU. */
    int (*comm_close)(struct nccl_comm *comm, bool abort);
};

/* What NCCL says of itself: there is no way to ask it which algorithm and which wires it took, but
 * its debug output tells. That goes to a file in memory while a communicator is made and tried
 * once, and is switched off again, since it costs a line for each call. Where somebody set
 * NCCL_DEBUG, that is left as it is and nothing is read. */

struct nccl_log {
    /* "ring/simple, channels 0-3"; "": it did not say (the communicator's first member does) */
    char algorithm[64];
    char chose[24], protocol[40]; /* "ring", "simple": parts of that, as in collective.h */
    unsigned channels;            /* 0: not said */
    char wires[64];               /* "NET/IB and P2P/CUMEM"; "": nothing was connected */
    unsigned carriers;            /* the kinds of path that these are: row.h */
    bool network;                 /* one of them is a network */
    char devices[64];             /* of its network, "mlx5_0:1 mlx5_1:1" */
    unsigned n_devices;
    bool
        members_add; /* no switch adds on the way: by tree, ring or pat, or a kernel without that */
    bool switches_add; /* by the others of them that are told */
    bool heard;        /* there was something to read */
    bool chatty;       /* it still writes a line for each call: times are longer */
    int fd;            /* of a file in memory that NCCL writes to; below 1: none */
};

/* Before NCCL's first call of this point. */
void nccl_log_begin(struct nccl_log *s, const struct nccl_module *nccl);
/* Reads what came, and switches it off. */
void nccl_log_end(struct nccl_log *s, const struct nccl_module *nccl);
/* After a further call of NCCL's: has that been written down, too? */
void nccl_log_check(struct nccl_log *s);
void nccl_log_close(struct nccl_log *s); /* harmless when it was never begun */

/* The text of such a file, which is changed. */
void nccl_log_parse(struct nccl_log *s, char *text);

/* NCCL_ALGO and NCCL_PROTO of "ring" or "ring/simple". 0; -EOPNOTSUPP with the names that there
 * are. */
int nccl_log_algorithm(const char *asked, const char **algorithm, const char **protocol, char *why,
                       size_t len);

#endif
