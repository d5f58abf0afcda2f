/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a group reduces: the contract between what is measured the same of every backend
 * (core/session, and the rows of benchmarks) and the backends, each a const table of operations.
 *
 * Members. The n ranks of a world that take part in a point, numbered 0 to n - 1 in the order of
 * the communicator; rank 0 of the world is always member 0.
 *
 * Sizes, as nccl-tests has them. `count` elements are the vector; blocks are count / n of them:
 *
 *   op              input of each    result of each              busbw / algbw
 *   allreduce       count            count, of all               2 (n - 1) / n
 *   reduce-scatter  count            block m, of all, at m       (n - 1) / n
 *   all-gather      block            count                       (n - 1) / n
 *   broadcast       count (of root)  count                       1
 *   all-to-all      count            count, block m from m       (n - 1) / n
 *   send-receive    count            count, from the one before  1
 *   reduce          count            count, of all, in the root  1
 *   gather          block            count, in the root alone    (n - 1) / n
 *   scatter         count (of root)  block m                     (n - 1) / n
 *
 *   algbw = bytes of the vector / time; busbw = algbw x that factor: what each wire carries when
 *     no wire carries anything twice
 *   (nccl-tests, doc/PERFORMANCE.md). Time is the slowest member's.
 *
 * A member is a rank, but where a point asks for several ranks in each: then n and m above are of
 * ranks, member i has ranks i * per_process and on, and the backend alone knows of them.
 *
 * In place: input and result are one buffer; reduce-scatter's result is block m of it, all-gather's
 * input, too; gather and scatter likewise. all-to-all and send-receive are not in place. The buffers
 * of all members are as long as those of the one that has the whole.
 *
 * The life of a point, in every member at the same time:
 *
 *   open -> addresses, exchanged by the session -> join -> barrier and run, many times -> tell ->
 *     close
 */
#ifndef PLUMB_CORE_COLLECTIVE_COLLECTIVE_H
#define PLUMB_CORE_COLLECTIVE_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/backend.h"
#include "core/condition.h"
#include "core/group/world.h"
#include "core/hw/topo.h"
#include "core/wire/wire.h"

#define COLLECTIVE_CALLS_MAX   4096
#define COLLECTIVE_ADDRESS_MAX 8192
#define COLLECTIVE_FLOWS_MAX   8
#define COLLECTIVE_ERROR_BYTES 384
#define COLLECTIVE_OWN_MAX     12
#define COLLECTIVE_EACH_MAX    16 /* ranks of a member */
#define COLLECTIVE_GPUS_BYTES  (COLLECTIVE_EACH_MAX * 16)
#define COLLECTIVE_STILL_NS    6500000000u /* nothing moved in any rank: somebody is gone */
#define COLLECTIVE_BYTES_MAX   (1ull << 36)
/* Operations before one wait: a device's queue is bounded (of CUDA to some 1024 launches), and who
 * queues more stands still in it, where nobody sees whether a rank is lost. */
#define COLLECTIVE_QUEUED_MAX 512u

enum collective_op {
    COLLECTIVE_ALLREDUCE,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_BROADCAST,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_SEND_RECEIVE,
    COLLECTIVE_REDUCE,
    COLLECTIVE_GATHER,
    COLLECTIVE_SCATTER,
    COLLECTIVE_OPS
};
enum collective_type {
    COLLECTIVE_F32,
    COLLECTIVE_F16,
    COLLECTIVE_BF16,
    COLLECTIVE_F64,
    COLLECTIVE_I32,
    COLLECTIVE_I8,
    COLLECTIVE_I64,
    COLLECTIVE_E4M3, /* fp8: moved by all, reduced by NCCL alone */
    COLLECTIVE_E5M2,
    COLLECTIVE_TYPES
};
enum collective_sum {
    COLLECTIVE_SUM,
    COLLECTIVE_MAX,
    COLLECTIVE_MIN,
    COLLECTIVE_PROD,
    COLLECTIVE_AVG, /* the sum over the number of members: NCCL's alone */
    COLLECTIVE_SUMS
};
/* Whether the library is told of the buffers before it is given them. */
enum collective_register {
    COLLECTIVE_REGISTER_NONE,
    COLLECTIVE_REGISTER_LOCAL,     /* each member for itself */
    COLLECTIVE_REGISTER_SYMMETRIC, /* all members together: at the same place in each */
    COLLECTIVE_REGISTERS
};
enum collective_inject {
    COLLECTIVE_SOUND,
    COLLECTIVE_CORRUPT,   /* one member's input is not what the others count on: must be found */
    COLLECTIVE_ELSEWHERE, /* the claim names another device: must be found */
    COLLECTIVE_ABSENT,    /* the last member never runs: must end the point, with its name */
};

/* NULL-terminated, in the order of the enums. */
extern const char *const collective_ops_names[], *const collective_type_names[],
                                                     *const collective_sum_names[],
                                                         *const collective_register_names[];
size_t collective_type_bytes(enum collective_type type);
bool collective_reduces(enum collective_op op);
bool collective_has_blocks(enum collective_op op); /* counts are multiples of n */
/* One member, the root, gives all, or gets all: some are done before others have begun. */
bool collective_has_root(enum collective_op op);
/* busbw / algbw; 0 where n is 1. */
double collective_bus_factor(enum collective_op op, unsigned n);
/* Elements that a member puts in and gets out. count is a multiple of n where there are blocks. */
uint64_t collective_input_count(enum collective_op op, uint64_t count, unsigned n);
uint64_t collective_result_count(enum collective_op op, uint64_t count, unsigned n);

/* One point, as all members must know it: sent as it is. */
struct collective_point {
    char backend[16];   /* ring halving doubling auto mpi mpi-cuda nccl */
    char transport[16]; /* of our own backends: shm tcp rdma; "" of others */
    char device[192];   /* NIC or RDMA device, "": chosen; "a+b": see struct wire_options */
    char algorithm[48]; /* asked of a library's backend; "": its own choice */
    uint32_t op, type, sum, inject;
    uint8_t in_place, crowded;
    uint8_t registered;  /* enum collective_register */
    uint8_t per_process; /* ranks of the library in each member, with a GPU each; 0: 1 */
    uint8_t reserved[4];
    /* Of run_batch(): operations that are queued before one wait, so many times; of that number, so
     * many are given to the library at once; 0 graphs: queued one by one, else kept as a graph of
     * `pipelined` x `aggregated` operations, launched so many times. 0 stands for 1. */
    uint32_t pipelined, aggregated, graphs;
    uint32_t root;  /* the rank that gives all, or gets all; 0 where the op has none */
    uint64_t count; /* elements of the vector: buffers are for so many, and every call lies in it */
    uint64_t segment_bytes; /* of our own backends: what a message is cut to; 0: chosen */
    uint64_t seed;
    struct wire_tcp_options tcp;
    struct wire_rdma_options rdma;
};

/* Has this member a result? Of reduce and gather, the root alone. */
bool collective_has_result(const struct collective_point *p, unsigned me);
unsigned collective_each(const struct collective_point *p); /* per_process, at least 1 */
/* Operations that one run_batch() does; 1: the point asks for none. */
uint64_t collective_batch(const struct collective_point *p);

/* What one operation consists of: calls one after another, each of `count` elements from `first`
 * on. One call as a rule; as many as buckets for a model's gradients. */
struct collective_call {
    uint64_t first, count;
};

/* Of the vector, what must go through a node's link each way, whatever the algorithm and whoever adds
 * on the way; 0: the node has none of the members, or all of them. `members` are ranks of the world,
 * `root` is one of them by its number, where the op has one. */
struct collective_load {
    double out, in;
};
struct collective_load collective_load(const struct world *w, enum collective_op op,
                                       const unsigned *members, unsigned n, unsigned root,
                                       unsigned node);

/* What went through a device of this member, payload, since join. */
struct collective_flow {
    char device[192]; /* "eth0", "mlx5_0:1", "lo", "shm"; "eth0+eth1": together */
    double out_bytes, in_bytes;
    uint32_t exact;      /* 0: at least so much: a library moved it, and does not say */
    uint32_t other_node; /* to a member of another node */
};

struct collective_report {
    char algorithm
        [96]; /* "ring, segments of 256 KiB"; what a library says that it chose; "" not told */
    /* The same of a library in parts, each only as far as it says so: "ring", "nvls", or "symmetric"
     * (kernels on a window of all ranks); "simple", or the name of such a kernel; 0: not told */
    char library_algorithm[24], library_protocol[40];
    uint32_t library_channels;
    char detail[160]; /* "cubic, MSS 1448"; the library's name and version */
    char sockets[48]; /* the setting by which a library was told to use sockets; "": it was not */
    uint32_t
        /* the kinds of path that a library says that it connected, as in row.h; 0: not
         * told */
        carriers;
    uint32_t n_flows, n_facts, has_rail;
    uint32_t members_add; /* a library says that its members alone add: no switch does on the way */
    uint32_t switches_add; /* a library says that they do; neither: it does not say */
    uint32_t simulated;    /* by a stand-in for a GPU or for its library: rows say so */
    uint32_t gpu_shared;   /* members share a GPU: a rehearsal, no bandwidth of any link */
    struct collective_flow flows[COLLECTIVE_FLOWS_MAX];
    struct wire_fact facts[WIRE_FACTS_MAX];
    struct nic_rail rail; /* that its bytes take to members of other nodes */
};

/* Of one run of some operations, by a member's own clock. */
struct collective_times {
    uint64_t ns;         /* from after the barrier to the end of the last one, gaps left out */
    uint64_t waited_ns;  /* of it, with nothing to do but wait for others' data; 0: not known */
    uint64_t blocked_ns; /* of it, with data to send that the link did not take; 0: not known */
    /* how long the barrier before it took this member: who waits there was early */
    uint64_t slack_ns;
    uint64_t cpu_ns;     /* around the operations: of the thread, or of the process of a library */
    uint64_t reading_ns; /* of that, what the readings cost: as many around nothing, beside them */
    /* From before the first operation to after the last one, with all that parts them: the same CPU
     * time, and this rank's clock. */
    uint64_t span_cpu_ns, begin_ns, end_ns;
    uint64_t own_ns[COLLECTIVE_OWN_MAX]; /* what the backend counts beside: collective.own_ns */
};

struct collective { /* NOLINT(clang-analyzer-optin.performance.Padding): in the order of its life */
    const struct collective_ops *ops;
    const struct collective_point *point;
    struct world *world;
    const struct topo *topo;
    const unsigned *members; /* ranks of the world */
    unsigned n, me;          /* me: this member's number */
    const struct collective_call *calls;
    unsigned n_calls;
    void *input,
        *result; /* host memory; NULL until open(), where the backend's is elsewhere: see write() */
    /* PCI addresses of the GPUs that this member's are in, '+' between them; "": of none */
    char gpu[COLLECTIVE_GPUS_BYTES];
    uint64_t waited_ns, blocked_ns;      /* since the session last zeroed them */
    uint64_t own_ns[COLLECTIVE_OWN_MAX]; /* the same, of what the backend alone knows */
    const void *extra; /* of session_extra(): for a backend that needs more than the point */
    size_t n_extra;
    /* To be called at least ten times a second by what waits or works for long. `still_ns`: how
     * long nothing has moved here. 0; -ECANCELED: the leader has given up; -ECONNRESET, -ETIMEDOUT:
     * a rank is gone, or nothing moves in any rank, said in error already. */
    int (*attend)(struct collective *c, uint64_t still_ns);
    void *attend_arg;
    char error[COLLECTIVE_ERROR_BYTES];
    void *held;  /* of collective_host_alloc() */
    void *state; /* the backend's */
};

struct collective_address {
    unsigned member; /* whom it is for, or from */
    size_t len;
    uint8_t bytes[COLLECTIVE_ADDRESS_MAX];
};

struct collective_ops {
    const char *name;     /* ring */
    uint64_t chosen_most; /* bytes; longer ones only where sizes were asked for (0: any) */
    bool own;             /* over a wire: `transport` and what belongs to it say something */
    bool device_memory;   /* its buffers are a GPU's */
    bool blocks; /* it waits in a library for good where a rank is gone, without attend() */
    void (*backends)(backend_say_fn *say, void *arg);

    /* Could this point be run, as far as can be told from it alone? 0; -EOPNOTSUPP with why. */
    int (*supports)(const struct collective_point *p, unsigned n, char *why, size_t len);

    /* Buffers, devices; the session sets all but state, input, result. -EOPNOTSUPP and -ENODEV: not
     * here. */
    int (*open)(struct collective *c);
    /* Whom this member has addresses for, and each of them: *n at most c->n. NULL: none. */
    int (*peers)(struct collective *c, unsigned *peers, unsigned *n);
    int (*address)(struct collective *c, unsigned peer, struct collective_address *address);
    int (*join)(struct collective *c, const struct collective_address *addresses, unsigned n);

    /* All members have come. */
    int (*barrier)(struct collective *c);
    /* Call number `call`, done when it returns: this member's result is in its place, its input may
     * be changed. */
    int (*run)(struct collective *c, unsigned call);
    /* So many operations, each all of the calls, one after another without a pause. NULL: run() is
     * called. */
    int (*run_times)(struct collective *c, uint64_t times);
    /* A call as for run(), begun; test() moves it on and says whether it is done. NULL: it cannot. One at a
     * time. */
    int (*start)(struct collective *c, unsigned call);
    int (*test)(struct collective *c, bool *done);

    /* collective_batch() operations, each all of the calls, queued as the point says and waited for
     * once. NULL: it cannot; points with a batch are not given to it. */
    int (*run_batch)(struct collective *c);

    /* After join: has a link of this member sent something, and heard nothing of its peer for so
     * long? 0: no; -EHOSTUNREACH, said in error. NULL: it is never known. */
    int (*unheard)(struct collective *c, uint64_t for_ns);

    /* Bytes to the input, from the result. NULL: c->input and c->result are in host memory. */
    int (*write)(struct collective *c, uint64_t offset, const void *from, size_t bytes);
    int (*read)(struct collective *c, uint64_t offset, void *to, size_t bytes);

    /* Where a member has several ranks, or a backend is made of several others: what
     * collective_fill() and collective_compare() (data.h) call. NULL: they do it. */
    int (*fill)(struct collective *c, uint64_t seed);
    int (*compare)(struct collective *c, uint64_t seed);
    /* Of a backend that is made of several others: what it runs is not the point's op. The work that
     * it does beside them, without them, and how long that took. NULL else. */
    int (*alone)(struct collective *c, uint64_t *ns);

    void (*tell)(struct collective *c, struct collective_report *told);
    void (*close)(struct collective *c); /* undoes open, also one that failed half-way */
};

/* Every backend: its symbol and its name, in the order of --help: our own algorithms (ops->own), of
 * which the options of transports say something; libraries; and those of them that take operations
 * in batches (ops->run_batch). A new one is a file and a line here. */
#define COLLECTIVE_OWN(first, more)                                                                \
    first(ring, "ring") more(halving, "halving") more(doubling, "doubling") more(auto, "auto")
#define COLLECTIVE_CALLED(first, more)  first(mpi, "mpi") more(mpi_cuda, "mpi-cuda")
#define COLLECTIVE_BATCHED(first, more) first(nccl, "nccl")
#define COLLECTIVE_BACKENDS(X)                                                                     \
    COLLECTIVE_OWN(X, X)                                                                           \
    COLLECTIVE_CALLED(X, X)                                                                        \
    COLLECTIVE_BATCHED(X, X)

#define COLLECTIVE_DECLARE(symbol, name) extern const struct collective_ops collective_##symbol;
COLLECTIVE_BACKENDS(COLLECTIVE_DECLARE)
#undef COLLECTIVE_DECLARE

/* For conditions: "ring,halving,doubling,auto"; "mpi,mpi-cuda,nccl"; "nccl". */
#define COLLECTIVE_OWN_WORDS COLLECTIVE_OWN(CONDITION_FIRST, CONDITION_MORE)
#define COLLECTIVE_LIBRARY_WORDS                                                                   \
    COLLECTIVE_CALLED(CONDITION_FIRST, CONDITION_MORE)                                             \
    COLLECTIVE_BATCHED(CONDITION_MORE, CONDITION_MORE)
#define COLLECTIVE_BATCHED_WORDS COLLECTIVE_BATCHED(CONDITION_FIRST, CONDITION_MORE)

#define COLLECTIVE_COUNT_ONE(symbol, name) +1
enum { COLLECTIVE_BACKEND_COUNT = 0 COLLECTIVE_BACKENDS(COLLECTIVE_COUNT_ONE) };
#undef COLLECTIVE_COUNT_ONE

extern const char *const collective_names[]; /* NULL-terminated */
const struct collective_ops *collective_find(const char *name);

/* Keeps the first sentence and returns err. */
int collective_fail(struct collective *c, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For backends whose buffers are in host memory: c->input and c->result, as large as the point's
 * count asks for, on this thread's node, huge pages where they can be had; all-zero. 0, or -ENOMEM
 * with error. */
int collective_host_alloc(struct collective *c);
void collective_host_free(struct collective *c);
/* What these buffers lie on, by the system: "base", "thp", or "base+thp" where some of each; "":
 * that is not known, or there are none. */
const char *collective_host_pages(const struct collective *c);

#endif
