/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the simulated libcuda.so.1.
 *
 * Three things are kept apart. The *schedule* says when each operation begins and ends, in a time that the
 * real clock paces; it is worked out when the host asks (sim_advance), from the times at which operations
 * were queued. The *effects* of operations on the data are applied when the host waits for them or finds
 * them due (sim_apply). The *space* knows every block of memory and whose it is.
 *
 * One lock guards all of it; functions here want it held, but for those of the interface (api_*.c).
 */
#ifndef PLUMB_TESTS_SIM_SIM_H
#define PLUMB_TESTS_SIM_SIM_H

#include "core/hw/gpu_kernels.h"
#include "tests/sim/machine.h"
#include "tests/sim/task.h"

#include <cuda.h>
#include <pthread.h>
#include <stdint.h>

#define SIM_NEVER   1e30
#define SIM_USES    16
#define SIM_MEMOS   256
#define SIM_TOUCHES 64

/* Memory. */

enum sim_place { SIM_PAGEABLE, SIM_PINNED, SIM_COMBINED, SIM_MANAGED, SIM_DEVICE };

struct sim_block {
    uintptr_t at;
    size_t bytes;
    enum sim_place place;
    unsigned gpu;              /* that it was allocated on */
    unsigned node;             /* of host memory */
    bool registered, returned; /* returned: freed in stream order, no longer counted */
    bool shared;               /* an RDMA device writes to it, too */
    bool flushed;              /* since the last copy of it */
    bool by_handle;            /* reserved room, for what is mapped there: */
    unsigned mapped, access;   /* number of its memory, 0: none; a bit for each device */
    bool multicast;            /* what is mapped is a multicast object */
    bool foreign;              /* what is mapped is another process' memory */
    size_t alignment;          /* that was asked for the room */
    short *home; /* of managed memory: the device where each page is, -1 for the host */
};

struct sim_arena {
    uintptr_t at;
    size_t bytes, next; /* 0 bytes: not reserved yet */
};

struct sim_space {
    struct sim_block *blocks; /* by address */
    size_t count, room;
    struct sim_arena device[SIM_GPUS], host;
    uint64_t used_bytes[SIM_GPUS];
};

/* Where the bytes of a pointer are. */
struct sim_where {
    enum sim_place place;
    int gpu; /* that holds them; -1: the host */
    unsigned node;
    const struct sim_block *block; /* NULL: pageable */
    bool bad;                      /* freed, or beyond the end of its block */
};

/* What shares its speed with others: each has a capacity, in units per ns. */
struct sim_use {
    unsigned resource;
    double weight;
};

struct sim_flow {
    double amount, cap; /* units; units per ns when alone */
    struct sim_use use[SIM_USES];
    unsigned uses;
};

/* Operations. */

enum sim_op_kind {
    SIM_OP_COPY,
    SIM_OP_SET,
    SIM_OP_KERNEL,
    SIM_OP_PREFETCH,
    SIM_OP_TASK,
    SIM_OP_RECORD,
    SIM_OP_AFTER,
    SIM_OP_FREE
};

enum sim_kernel_family {
    SIM_SPIN,
    SIM_EMPTY,
    SIM_PASS,
    SIM_CHASE,
    SIM_COPY16,
    SIM_COPY1,
    SIM_MULTICAST,
    SIM_FILL
};
enum sim_pass { SIM_READ, SIM_WRITE, SIM_PASS_COPY, SIM_SCALE, SIM_ADD, SIM_TRIAD };

struct sim_kernel {
    char name[40];
    enum sim_kernel_family family;
    enum sim_pass pass;
    unsigned element_bytes, unroll, registers;
    bool streaming, round_l1;
    size_t args_bytes;
};

union sim_args {
    struct gpu_spin_args spin;
    struct gpu_empty_args empty;
    struct gpu_pass_args pass;
    struct gpu_chase_args chase;
    struct gpu_copy_args copy;
    struct gpu_fill_args fill;
};

enum sim_state { SIM_QUEUED, SIM_DELAY, SIM_FLOW, SIM_HELD, SIM_DONE };

struct sim_op {
    struct sim_op *next;
    enum sim_op_kind kind;
    unsigned gpu;
    uint64_t seq;
    bool in_graph;
    union {
        struct {
            uintptr_t dst, src;
            uint64_t bytes;
            unsigned char *staged; /* pageable bytes, taken when it was queued */
        } copy;
        struct {
            uintptr_t at;
            uint64_t bytes;
            uint32_t word;
        } set;
        struct {
            struct sim_kernel kernel;
            union sim_args args;
            unsigned grid, block;
        } launch;
        struct {
            uintptr_t at;
            uint64_t bytes;
            int to; /* -1: the host */
        } prefetch;
        struct sim_task task;
        struct {
            struct sim_event_object *event;
            uint64_t generation;
        } record;
        struct {
            uint64_t stream, seq;
        } after;
        uintptr_t free_at;
    };
    unsigned node; /* that pageable memory is on: of the thread that queued it */
    /* the schedule */
    enum sim_state state;
    double ready_ns, until_ns, left, rate, released_ns;
    double delay_ns; /* of a task that had to wait, from then on */
    struct sim_flow flow;
    /* the effects */
    bool applied, corrupt, gave_up;
    uint64_t value; /* what a kernel found out beforehand */
};

struct sim_stream {
    uint64_t id;
    struct sim_stream *next;
    unsigned gpu;
    bool closed;                 /* by the program: goes when it is drained */
    struct sim_op *first, *last; /* first: not yet both done and applied */
    struct sim_op *head;         /* first that is not done */
    uint64_t queued_seq, done_seq;
    struct sim_graph *capture; /* not NULL: what is queued goes there */
    CUstreamCaptureMode capture_mode;
    bool capture_bad;
};

struct sim_event_object {
    struct sim_event_object *next;
    unsigned gpu, refs;
    bool timing, recorded, done, captured;
    uint64_t generation, stream, seq;
    double at_ns;
};

struct sim_graph {
    uint64_t magic;
    unsigned gpu;
    struct sim_op *first, *last;
};

struct sim_module {
    uint64_t magic;
    unsigned gpu;
    struct sim_module *next;
    struct sim_function *functions;
};

struct sim_function {
    uint64_t magic;
    struct sim_function *next;
    struct sim_kernel kernel;
    unsigned gpu;
    bool loaded; /* else its first launch loads it, see sim_load_lazily() */
};

/* A context is the primary one of its device: there is no other. */
struct sim_device {
    unsigned index, retained;
    bool active;    /* not after a reset, until it is retained again */
    CUresult error; /* sticky, of a kernel or of the device */
    bool lost, peer[SIM_GPUS];
    uint64_t operations, ecc_errors;
    struct sim_module *modules;
    /* what the second-level cache may hold: when each array was last gone over, in bytes of traffic */
    struct {
        uintptr_t at;
        uint64_t bytes, stamp;
    } touched[SIM_TOUCHES];
    uint64_t traffic_bytes;
    unsigned touch_next;
    bool products_loaded; /* of cuBLASLt */
};

/* An effect that need not be applied again while its ranges are as they were. */
struct sim_memo {
    bool valid, on_host;
    bool elsewhere; /* it wrote to more than its ranges */
    enum sim_op_kind kind;
    unsigned char key[160];
    size_t key_bytes;
    struct sim_range range[SIM_RANGES];
    unsigned ranges;
    uint64_t epoch, value;
};

struct sim {
    pthread_mutex_t lock;
    bool started, many_threads;
    pid_t pid;        /* that started it: a child that it forks cannot use it */
    pthread_t thread; /* that called first */
    struct sim_machine machine;
    struct sim_space space;
    struct sim_device device[SIM_GPUS];
    struct sim_stream *streams;
    struct sim_event_object *events;
    uint64_t stream_ids, base_ns;
    double now_ns; /* the schedule is known up to here */
    bool rates_stale;
    struct sim_memo memo[SIM_MEMOS];
    unsigned memo_next;
    uint64_t host_epoch; /* counts moments after which the host may have changed its memory */
};

/* state.c: the mark, the lock, and what every call checks first. */
extern const char plumb_simulated[];
/* Takes the lock. Not CUDA_SUCCESS: the call fails with that; sim_leave in any case. */
CUresult sim_enter(struct sim **sim, const char *call);
/* The same for calls that need a current context, which is *device. */
CUresult sim_enter_device(struct sim **sim, struct sim_device **device, const char *call);
CUresult sim_leave(struct sim *sim, CUresult rc);
CUresult sim_start(struct sim *sim);
struct sim_device *sim_current(struct sim *sim);
double sim_clock(const struct sim *sim); /* ns since the start */
void sim_busy(const struct sim *sim, double us);
void sim_call_cost(const struct sim *sim, const struct sim_device *device);

/* space.c */
enum { SIM_HOST_ARENA = -1 };
/* NULL: out of memory, or too many blocks */
void *sim_space_take(struct sim *sim, int arena, size_t bytes, enum sim_place place, unsigned gpu);
int sim_space_register(struct sim *sim, uintptr_t at, size_t bytes, unsigned gpu);
void sim_space_give_back(struct sim *sim, const struct sim_block *block);
struct sim_block *sim_space_find(struct sim *sim, uintptr_t at);
struct sim_where sim_where(struct sim *sim, uintptr_t at, uint64_t bytes, unsigned node);
/* Where the host finds the bytes. */
void *sim_bytes(struct sim *sim, uintptr_t at);
/* The bytes of a managed range that are not on `to`; then moves them there. */
uint64_t sim_managed_away(struct sim *sim, uintptr_t at, uint64_t bytes, int to);
void sim_managed_move(struct sim *sim, uintptr_t at, uint64_t bytes, int to);

void sim_space_unmap(struct sim *sim);

/* path.c: what lies on the way of bytes. */
enum sim_mover { SIM_BY_ENGINE, SIM_BY_KERNEL };
/* Adds to the flow, whose cap it lowers; returns the latency in ns. */
double sim_path(struct sim *sim, unsigned gpu, enum sim_mover mover, const struct sim_where *from,
                const struct sim_where *to, struct sim_flow *flow);
void sim_flow_use(struct sim_flow *flow, unsigned resource, double weight);
double sim_capacity(const struct sim *sim, unsigned resource);
unsigned sim_resource_memory(unsigned gpu); /* HBM */
unsigned sim_resource_cache(unsigned gpu);  /* L2 */
unsigned sim_resource_cores(unsigned gpu);  /* capacity 1 */

/* share.c: the rates of what flows now. */
void sim_share(struct sim *sim);

/* cost.c: what an operation that begins now will take. 0, or the error with which it fails. */
CUresult sim_cost(struct sim *sim, struct sim_op *op, double *delay_ns);

/* kernel_*.c */
bool sim_kernel_by_name(const char *name, struct sim_kernel *kernel);
unsigned sim_kernel_occupancy(const struct sim_gpu *gpu, const struct sim_kernel *kernel,
                              unsigned block);
CUresult sim_kernel_cost(struct sim *sim, struct sim_op *op, double *delay_ns);
unsigned sim_kernel_ranges(const struct sim_kernel *kernel, const union sim_args *args,
                           struct sim_range range[SIM_RANGES]);
void sim_kernel_run(struct sim *sim, struct sim_op *op);
/* Follows a chain: an error where a word that it loads is outside the block that it began in. */
CUresult sim_chase(struct sim *sim, const struct gpu_chase_args *args, uint64_t *end,
                   uint64_t *span_bytes);

/* schedule.c */
struct sim_stream *sim_stream_by_id(struct sim *sim, uint64_t id);
void sim_queue(struct sim *sim, struct sim_stream *stream, struct sim_op *op);
void sim_poll(struct sim *sim); /* looks at the words that held streams wait for */
void sim_advance(struct sim *sim, double now_ns);
double sim_next(struct sim *sim); /* when something happens next; SIM_NEVER */
void sim_op_free(struct sim_op *op);
void sim_event_drop(struct sim_event_object *event); /* one user less */
void sim_streams_reap(struct sim *sim);              /* frees those that are closed and drained */
void sim_stream_free(struct sim *sim, struct sim_stream *stream);

/* effects.c */
unsigned sim_op_ranges(const struct sim_op *op, struct sim_range range[SIM_RANGES]);
/* Applies what has begun in the stream, up to `seq`. */
void sim_apply(struct sim *sim, struct sim_stream *stream, uint64_t seq);
void sim_host_acted(struct sim *sim);
void sim_forget(struct sim *sim, uintptr_t at, uint64_t bytes); /* that range changed otherwise */

/* wait.c: each waits, with the lock given away meanwhile, and applies. */
CUresult sim_wait(struct sim *sim, uint64_t stream, uint64_t seq);
CUresult sim_wait_device(struct sim *sim, unsigned gpu);
/* CUDA_ERROR_NOT_READY */
CUresult sim_query(struct sim *sim, uint64_t stream, uint64_t seq);
/* Until the driver's queue has room, as it is bounded. */
CUresult sim_wait_room(struct sim *sim, struct sim_stream *stream);

/* api_multicast.c: the mappings of the memory that is bound to the object that is mapped there, one for each member; their number.
 * `most` of them. */
unsigned sim_multicast_members(struct sim *sim, const struct sim_block *block,
                               const struct sim_block **member, unsigned most);
/* What the calls of memory by handles (api_fabric.c) ask about a multicast object: NULL, there is none of that number. */
struct sim_multicast;
struct sim_multicast *sim_multicast_of(CUmemGenericAllocationHandle handle);
CUresult sim_multicast_map(struct sim *sim, const struct sim_multicast *object,
                           const struct sim_block *block);
void sim_multicast_release(struct sim_multicast *object);
/* api_fabric.c: the device and the size of memory by its handle; CUDA_ERROR_INVALID_VALUE: no such memory. */
CUresult sim_handle_memory(CUmemGenericAllocationHandle handle, unsigned *gpu, size_t *bytes,
                           bool *shareable);

/* api_export.c: does a copy from there read what is not all there yet, for want of a flush? It uses the flush up. */
bool sim_export_stale(struct sim *sim, uintptr_t at);

/* api_*.c */
CUresult sim_stream_of(struct sim *sim, const struct sim_device *device, CUstream handle,
                       struct sim_stream **stream);
CUresult sim_submit(struct sim *sim, struct sim_stream *stream, const struct sim_op *op);
bool sim_capturing(const struct sim *sim);
void sim_modules_free(struct sim_device *device);

#define SIM_GRAPH_MAGIC    UINT64_C(0x6772617068303031)
#define SIM_MODULE_MAGIC   UINT64_C(0x6d6f64756c653031)
#define SIM_FUNCTION_MAGIC UINT64_C(0x66756e6374303031)

#endif
