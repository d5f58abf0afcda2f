/* SPDX-License-Identifier: Apache-2.0 */
/* What the backends over a library have in common: which part of the buffers a call is of, and what
 * must at least have gone from node to node, whatever the library did. */
#ifndef PLUMB_CORE_COLLECTIVE_LIBRARY_H
#define PLUMB_CORE_COLLECTIVE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/collective/collective.h"

/* Bytes from the beginning of the input and of the result; in place, of the one vector. */
struct library_part {
    uint64_t input, result;
};
struct library_part library_part(const struct collective *c, const struct collective_call *call);

/* Bytes that this member's node must send to and receive from others in an operation of `bytes`
 * (the vector), at the least: what no algorithm and no reduction on the way can save. Told by the
 * node's first member; 0 for its others. */
struct collective_load library_least(const struct collective *c, double bytes);

/* Is all that the point's `device` names here, each of "eth0+eth1" an interface or an RDMA port? 0;
 * -ENODEV with error, which lists those that there are. */
int library_devices(struct collective *c);

/* The flow of all that, over `device` ("a+b": over all of them together); none where that is "" or
 * nothing must have gone. */
void library_flow(struct collective_report *told, const char *device, struct collective_load least);

/* A rank's GPU for backends over a library that works in a GPU's memory: which of them, its stream,
 * the buffers, and waiting for them by asking, so that the channels are looked after and nothing
 * waits for good. What it says begins with the backend's name. */

/* What `chosen` begins with where ranks share GPUs. */
#define LIBRARY_GPU_SHARED "rehearsal, ranks share GPUs; "

struct library_gpu;
/* 0, -EAGAIN, or an error that is said */
typedef int library_look_fn(struct collective *c, struct library_gpu *g);

struct library_gpu {
    unsigned each, number; /* ranks of this process, and which of them this is; 0, 0: one */
    struct gpus *gpus;
    struct gpu *gpu;
    struct gpu_stream *stream;
    void *native;         /* the same, as a library takes it */
    void *input, *result; /* the device's; in place, input is the result */
    /* Whose memory these two are: NULL: the GPU's own. 0 or -errno, said. */
    int (*take)(struct collective *c, size_t bytes, void **at);
    void (*give_back)(void *at); /* not NULL */
    void *word;                  /* of library_gpu_take(), where a backend wants one; else NULL */
    bool left;                   /* a thread of this process is in the library for good */
    bool broken;                 /* what is in the stream cannot be waited for any more */
    /* has the library, or has it not (0, -EAGAIN)? NULL: it tells nothing */
    library_look_fn *failed;
};

/* All that return int: 0, or -errno with c->error. */
/* GPU: this rank's number on its node (of a process with several: local number x each + number),
 * modulo the GPUs that it sees (*count); and a stream. Its
 * context is this thread's then. */
int library_gpu_open(struct collective *c, struct library_gpu *g, unsigned *count);
/* So many bytes of its memory, all-zero as soon as the stream is idle. */
int library_gpu_take(struct collective *c, struct library_gpu *g, size_t bytes, void **at);
/* Input and result for the point, all-zero; waits until the stream is idle. */
int library_gpu_buffers(struct collective *c, struct library_gpu *g);
void library_gpu_close(struct library_gpu *g); /* however far it came */

/* Its context is this thread's from here on. */
void library_gpu_enter(struct library_gpu *g);

/* Until look() says something else than -EAGAIN, which need not be of a GPU (`g` all zeros). Twenty
 * times a second the channels are seen to, and failed() is asked. Nothing counts as standing still before `expected_ns`. Whoever gave up
 * cannot know what the library and the device are still at: broken. */
int library_gpu_await(struct collective *c, struct library_gpu *g, library_look_fn *look,
                      uint64_t expected_ns);
int library_gpu_look(struct collective *c, struct library_gpu *g); /* is the stream idle? */
/* What `bytes` of a vector may take on a network that is slow. */
uint64_t library_gpu_slowest_ns(const struct collective *c, double bytes);
/* Until it is; `bytes` of a vector are under way. */
int library_gpu_wait(struct collective *c, struct library_gpu *g, double bytes);
/* Done when it returns. */
int library_gpu_copy(struct collective *c, struct library_gpu *g, void *to, const void *from,
                     size_t bytes);

/* Which GPU this is, for others: nothing, where it has no name of its own. They may have something
 * else before it, up to `from`. */
void library_gpu_address(struct library_gpu *g, struct collective_address *address);
/* Is it this one? */
bool library_gpu_is(struct library_gpu *g, const struct collective_address *address, size_t from);
/* Member 0 gets those of all others: do any two members have the same? */
bool library_gpu_shared(struct library_gpu *g, const struct collective_address *addresses,
                        unsigned n, size_t from);
bool library_gpu_simulated(const struct library_gpu *g);

/* Did whoever started the program choose sockets for a library's bytes, where RDMA might carry
 * them? By the library's own settings; `--device` is another way to say so: member_prove(). */

/* Open MPI's settings, as it has them; "": not set. One that fills its room was cut: what it
 * chooses is not known. */
struct mpi_settings {
    char pml[256], btl[256];
    char providers[256]; /* mtl_ofi_provider_include */
};

/*
 * The setting that says so, "UCX_TLS=tcp,self"; "": none. Returns text. Names of transports without
 * any of RDMA among them; a list of what is not to be taken ("^openib") chooses nothing, but for
 * all of InfiniBand ("^ib").
 *
 * mpi: beside Open MPI's settings UCX_TLS, UCX_NET_DEVICES, FI_PROVIDER, I_MPI_FABRICS,
 * I_MPI_OFI_PROVIDER and MPIR_CVAR_OFI_USE_PROVIDER, which are of the environment; where the pml is
 * said, those of the layer that it takes alone. nccl: NCCL_IB_DISABLE and NCCL_NET, which a file
 * nccl.conf may have put there.
 */
const char *sockets_of_mpi(const struct mpi_settings *s, char *text, size_t len);
const char *sockets_of_nccl(char *text, size_t len);

/* ---- Collectives by MPI: what the module plumb-mpi.so (core/group/mpi.h) offers to mpi.c ---- */

/* Collectives of some of the ranks, on a communicator of their own. */
struct mpi_collective;

typedef void mpi_reduce_fn(enum collective_type type, enum collective_sum sum, void *to,
                           const void *a, const void *b, uint64_t count);

/* Within one rank's buffers, done when it returns. 0; -errno, said by its owner. */
typedef int mpi_copy_fn(void *arg, void *to, const void *from, size_t bytes);

struct mpi_call {
    void *input, *result; /* of this call; in place: both the one vector */
    uint64_t count;       /* of the vector */
};

struct mpi_setup {
    const unsigned *members; /* ranks of the world */
    unsigned n, me;
    const struct collective_point *point;
    const struct mpi_call *calls; /* that run() and start() know by their number; copied */
    unsigned n_calls;
    size_t element_bytes;
    const char *op_name;   /* "allreduce" */
    mpi_reduce_fn *reduce; /* for sums that MPI has not: see most(); of host memory */
    mpi_copy_fn *copy;     /* where the buffers are a GPU's; NULL: they are the host's */
    void *copy_arg;
};

struct mpi_given {
    char algorithm[96]; /* "ring, as asked for"; "its own choice"; "": it has none */
    char detail[160];   /* "Open MPI v4.1.4, btl tcp,self, btl_tcp_flags 315" */
    struct mpi_settings settings;
};

struct mpi_collectives {
    /* Elements that one call takes: 2^63 - 1 of MPI 4, 2^31 - 1 of MPI 3, or fewer by
     * $PLUMB_MPI_ELEMENTS. A longer vector is cut: each call takes a part of at most half as many,
     * of every block where the op has blocks. The sums of a reduce-scatter that is cut are plumb's,
     * as those of f16 and bf16 always are: MPI's own sum no parts of blocks. */
    uint64_t (*most)(void);
    /* All members at the same time. -EOPNOTSUPP: what the point asks for cannot be had of this
     * MPI. */
    int (*open)(struct mpi_collective **c, const struct mpi_setup *setup, char *error, size_t len);
    /* What has not ended is left as it is, memory and all. */
    void (*close)(struct mpi_collective *c);
    /* So many times, until it is done: for good, where a rank does not come. What is timed: all that it needs but
     * the calls of MPI was made by open(). */
    int (*run)(struct mpi_collective *c, unsigned call, uint64_t times, char *error, size_t len);
    /* Begun; test() moves them on. One at a time. -EOPNOTSUPP: this MPI does not take a GPU's
     * memory there; nothing was begun. */
    int (*start)(struct mpi_collective *c, unsigned call, char *error, size_t len);
    int (*barrier)(struct mpi_collective *c, char *error, size_t len);
    /* When all have come: a blocking barrier, from which all leave as close to one another as MPI
     * can. */
    int (*align)(struct mpi_collective *c, char *error, size_t len);
    int (*test)(struct mpi_collective *c, bool *done, char *error, size_t len);
    void (*tell)(const struct mpi_collective *c, struct mpi_given *told);
};

#endif
