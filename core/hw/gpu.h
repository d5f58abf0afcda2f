/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs: the table of operations that a module (plumb-cuda.so) fills in, and how it is found.
 * Programs are not linked with any GPU library: the module is opened at first use, and what is
 * missing is a reason with a remedy, which becomes a skipped row.
 *
 * Errors are 0 or -errno, as everywhere: -ENODEV and -EOPNOTSUPP mean "not here" (skipped), -ENOMEM
 * out of memory, any other is a failure. A call of an opened device that fails leaves a sentence in
 * gpu_error(): the driver's call, code and text, and what to do. After an error of a kernel or of
 * the device itself (-EIO), every call of it fails until it is opened again. A device that does not
 * answer (-ETIMEDOUT, see stream_wait) is never asked anything again, nor closed: each of these
 * would wait for it too. Its memory goes with the process.
 *
 * Threads: one thread uses a device and its streams at a time.
 */
#ifndef PLUMB_CORE_HW_GPU_H
#define PLUMB_CORE_HW_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/backend.h"
#include "core/hw/gpu_kernels.h"

#define GPU_MODULE_ABI    9u
#define GPU_MODULE_SYMBOL "plumb_gpu_module" /* const struct gpu_ops, the module's one symbol */
#define GPU_ERROR_BYTES   320
#define GPU_HANDLE_BYTES  64

struct gpu;        /* an opened device; begins with struct gpu_base */
struct gpu_stream; /* operations in order; of one device */
struct gpu_event;
struct gpu_kernel;
struct gpu_graph;
struct gpu_multicast;
struct gpu_gemm;

/* What the driver tells. What it does not is 0 or "" (numa_node: -1). */
struct gpu_facts {
    char name[96], address[24] /* "0000:3b:00.0" */, uuid[48];
    int numa_node;
    unsigned major, minor; /* compute capability */
    unsigned sms, copy_engines, max_threads_per_sm;
    uint64_t memory_bytes, l2_bytes;
    double clock_mhz, memory_clock_mhz; /* the highest */
    unsigned memory_bus_bits;
    bool ecc, integrated, managed, managed_concurrent, host_register;
    bool rdma, dmabuf; /* other devices can reach its memory; by a dma-buf file */
    bool fabric;       /* its memory can be exported as a fabric handle */
    bool multicast;    /* one store can reach its memory and that of others, says the driver */
    int driver_version, toolkit_version; /* 12040 is 12.4 */
};

enum gpu_memory {
    GPU_DEVICE,
    GPU_PINNED,         /* host memory, page-locked, mapped into the device */
    GPU_WRITE_COMBINED, /* the same, round the host's caches: slow to read by the CPU */
    GPU_MANAGED,        /* moves between both by page faults */
    GPU_FABRIC, /* of the device, mapped through a fabric handle; other GPUs reach it without peer() */
};

/* How two devices reach one another. */
struct gpu_link {
    bool access;     /* peer access is possible */
    bool atomics;    /* native atomics over it: NVLink, as a rule */
    int performance; /* the driver's rank, 0 is the best; -1 unknown */
};

struct gpu_gemm_ops;

struct gpu_ops {
    const char *name; /* of its places: "cuda" for cuda:0, cuda:1, ... */
    unsigned abi;     /* GPU_MODULE_ABI */

    /* Starts the driver. 0; -ENODEV or -EOPNOTSUPP with the reason and the remedy; -ELIBBAD, the
     * same, where the driver is of an older major version than the toolkit that this module was
     * built with: one of an older toolkit may do. Once it has started, another call finds it so. */
    int (*init)(char *error, size_t len);
    /* "measured", or "simulated" where any library underneath is a stand-in. After init, also one
     * that failed. */
    const char *(*origin)(void);
    unsigned (*count)(void);
    int (*facts)(unsigned index, struct gpu_facts *facts);
    int (*link)(unsigned from, unsigned to, struct gpu_link *link);

    /* A device that was lost or had a failing kernel is reset first. */
    int (*open)(unsigned index, struct gpu **gpu, char *error, size_t len);
    void (*close)(struct gpu *gpu); /* NULL is left alone */
    int (*free_bytes)(struct gpu *gpu, uint64_t *bytes);

    /* Zeroed: no. A buffer of GPU_PINNED has the same address on both sides; one of
     * GPU_WRITE_COMBINED is for copy() and the host alone. Host memory comes from the node of the
     * calling thread (bind it first). */
    int (*alloc)(struct gpu *gpu, enum gpu_memory kind, size_t bytes, void **at);
    void (*free)(struct gpu *gpu, enum gpu_memory kind, void *at); /* NULL is left alone */
    /* Page-locks host memory that is there already (huge pages, say), same address on both
     * sides. */
    int (*pin)(struct gpu *gpu, void *at, size_t bytes);
    void (*unpin)(struct gpu *gpu, void *at);

    /* The handle of GPU_FABRIC memory, by which a GPU of another process reaches it: on this host,
     * or on one that its NVLinks lead to. Good as long as the memory is not freed. */
    int (*share)(struct gpu *gpu, const void *at, unsigned char handle[GPU_HANDLE_BYTES]);
    /* The memory of such a handle, `bytes` as its owner asked for; freed as GPU_FABRIC, which leaves
     * the owner's. -EOPNOTSUPP: the driver, or a service of these hosts, does not let it. */
    int (*reach)(struct gpu *gpu, const unsigned char handle[GPU_HANDLE_BYTES], size_t bytes,
                 void **at);

    int (*stream_open)(struct gpu *gpu, struct gpu_stream **stream);
    void (*stream_close)(struct gpu_stream *stream);
    /* Until all of it is done, asking again and again. Gives up with -ETIMEDOUT when that takes
     * longer than anything may (see struct gpu_base), or soon after the program was told to end. */
    int (*stream_wait)(struct gpu_stream *stream);
    /* The same by the driver's own call, for those who time that one: it may never return. */
    int (*stream_sync)(struct gpu_stream *stream);
    int (*stream_query)(struct gpu_stream *stream); /* 0 done, -EAGAIN not yet */
    /* What is queued next in this stream waits until `event` (of any stream) was reached. */
    int (*stream_after)(struct gpu_stream *stream, struct gpu_event *event);
    /* The driver's own stream (CUstream), for a library that queues work into it; its device's
     * context is made the calling thread's, which such a library wants too. NULL with
     * gpu_error(). */
    void *(*stream_native)(struct gpu_stream *stream);

    /* What is queued from here on waits for gpu_release(), so that the cost of queueing is not in
     * the times. A hold that is not released ends by itself after GPU_HOLD_NS, and the next
     * stream_wait then fails with -ETIMEDOUT. Queue no more than GPU_HELD_MAX operations meanwhile:
     * the driver's queue is bounded, and a full one would wait for itself. With GPU_NO_HOLD in the
     * environment nothing waits, and what is timed says nothing. */
    int (*hold)(struct gpu_stream *stream);
    int (*release)(struct gpu_stream *stream);

    int (*event_open)(struct gpu *gpu, struct gpu_event **event);
    void (*event_close)(struct gpu_event *event);
    int (*event_record)(struct gpu_event *event, struct gpu_stream *stream);
    int (*event_wait)(struct gpu_event *event);  /* as stream_wait */
    int (*event_sync)(struct gpu_event *event);  /* as stream_sync */
    int (*event_query)(struct gpu_event *event); /* 0 reached, -EAGAIN not yet */
    /* Between two reached events of one device, by its own clock (half a us fine, as a rule). */
    int (*event_elapsed)(struct gpu_event *from, struct gpu_event *to, double *ns);

    /* By a copy engine, where the driver takes one; either side any memory the driver knows,
     * pageable host memory too. */
    int (*copy)(struct gpu_stream *stream, void *dst, const void *src, size_t bytes);
    int (*set)(struct gpu_stream *stream, void *dst, uint32_t word, size_t bytes /* of 4 */);
    /* Moves pages of GPU_MANAGED memory to the device, or to the host. */
    int (*prefetch)(struct gpu_stream *stream, void *at, size_t bytes, bool to_device);

    /* A kernel of gpu_kernels.h by its name; lives as long as the device is open. */
    int (*kernel)(struct gpu *gpu, const char *name, struct gpu_kernel **kernel);
    /* Blocks of so many threads that an SM holds at a time; 0: not even one. */
    int (*occupancy)(struct gpu_kernel *kernel, unsigned block, unsigned *blocks_per_sm);
    /* `args`: the kernel's one argument, a struct of gpu_kernels.h; copied before the call
     * returns. */
    int (*launch)(struct gpu_stream *stream, struct gpu_kernel *kernel, unsigned grid,
                  unsigned block, const void *args);

    /* Lets kernels and copies of `gpu` use memory of `other` directly, or no longer. */
    int (*peer)(struct gpu *gpu, struct gpu *other, bool enable);

    /* What is queued between begin and end is not done but kept as a graph. */
    int (*graph_begin)(struct gpu_stream *stream);
    int (*graph_end)(struct gpu_stream *stream, struct gpu_graph **graph);
    int (*graph_launch)(struct gpu_stream *stream, struct gpu_graph *graph);
    void (*graph_close)(struct gpu_graph *graph);

    /* For what a call of the driver costs: one that only asks it (free memory: goes to the kernel
     * driver or, where the GPU is mediated, to the host), and memory taken and given back in stream
     * order. */
    int (*driver_call)(struct gpu *gpu);
    int (*alloc_ordered)(struct gpu_stream *stream, size_t bytes, void **at);
    int (*free_ordered)(struct gpu_stream *stream, void *at);

    /* A range of GPU_DEVICE memory as a dma-buf file, which an RDMA device can register; the caller
     * closes it. Both of whole pages of the host, else -EINVAL. -EOPNOTSUPP: the driver, the kernel
     * or the GPU has no such thing. */
    int (*export_memory)(struct gpu *gpu, void *at, size_t bytes, int *fd);
    /* What other devices have written into its memory, and said so, is there for what is queued
     * from here on; where the device keeps that order by itself, or its driver cannot make it,
     * nothing is done. */
    int (*flush_writes)(struct gpu *gpu);

    /* `bytes` of memory on each of n devices, at[i] on gpus[i], and one address at which gpus[0]
     * stores into all of them at once: *all, for the kernel multicast16 and nothing else. Peer
     * access is not needed. -EOPNOTSUPP: the driver, or one of the devices, has no such thing;
     * errors are gpu_error() of gpus[0]. Closed before any of the devices is. */
    int (*multicast_open)(struct gpu *const *gpus, unsigned n, size_t bytes, void **all, void **at,
                          struct gpu_multicast **group);
    void (*multicast_close)(struct gpu_multicast *group); /* NULL is left alone */

    const struct gpu_gemm_ops *gemm; /* NULL: no library for matrix products was built in */
};

#define GPU_NO_HOLD  "PLUMB_NO_HOLD" /* for tools that run kernels one by one */
#define GPU_HOLD_NS  10000000000u
#define GPU_HELD_MAX 256

struct gpu_base { /* what every struct gpu begins with */
    const struct gpu_ops *ops;
    unsigned index;
    struct gpu_facts facts;
    char error[GPU_ERROR_BYTES]; /* of the last call that failed */
    bool lost;                   /* it must be opened again */
    bool silent;                 /* it does not answer: lost for good */
    /* A wait gives up after GPU_PATIENCE_NS and what the work is expected to take, where that is
     * known to be long, and GPU_PATIENCE_TIMES the longest wait so far; and GPU_CANCEL_NS after it
     * sees *cancel set (NULL: never). */
    uint64_t patience_ns;             /* 0: GPU_PATIENCE_NS */
    uint64_t expected_ns, longest_ns; /* the first is set where a product is planned */
    const volatile int *cancel;
    struct gpu_stream *aside; /* see gpu_aside_open() */
    unsigned asides;
};

#define GPU_PATIENCE_NS    60000000000u
#define GPU_PATIENCE_TIMES 20
#define GPU_CANCEL_NS      1000000000u

static inline struct gpu_base *gpu_base(struct gpu *gpu)
{
    return (struct gpu_base *)gpu;
}

static inline const struct gpu_ops *gpu_ops(struct gpu *gpu)
{
    return gpu_base(gpu)->ops;
}

static inline const char *gpu_error(struct gpu *gpu)
{
    return gpu_base(gpu)->error;
}

/*
 * The module and its devices, opened once in a process (gpu.c).
 *
 * The module is $PLUMB_CUDA_MODULE where that is set, else plumb-cuda.so beside the program or in
 * ../lib/plumbline or ../lib. Where that is too new for the driver, plumb-cuda12.so (built with
 * CUDA 12) at the same places.
 */
struct gpus;

struct gpus *gpus_open(void);       /* nothing else happens until the first use */
void gpus_close(struct gpus *gpus); /* closes the devices; NULL is left alone */
/* The GPU's one stream for what is not timed. A GPU has 8 hardware queues (CUDA_DEVICE_MAX_CONNECTIONS), round which its
 * streams go: two timed ones that share a queue wait for each other, and each stream beside them makes that likelier.
 * Opened for the first that asks, closed with the last. */
int gpu_aside_open(struct gpu *gpu, struct gpu_stream **stream);
void gpu_aside_close(struct gpu *gpu);
/* Adds CUDA_DEVICE_MAX_CONNECTIONS to evidence, where it is set: it limits the queues. */
void gpu_tell_connections(char *text, size_t len);
/* Waits for devices that are opened from now on end soon after *cancel is set. */
void gpus_heed(struct gpus *gpus, const volatile int *cancel);
/* This process, or the one that it was forked from, has started a GPU's driver: a child that is
 * forked from here on can use no GPU (gpus_module() says so there). */
bool gpus_used(void);
/* A device does not answer, of these or of others that were opened in this process: leave by
 * _exit(), since what the driver does at exit() may wait for it. */
bool gpus_silent(const struct gpus *gpus);

/* The module's table, started; NULL where there is none or it does not start, with the reason (not
 * to be freed) in *why: what is missing, and what to do. */
const struct gpu_ops *gpus_module(struct gpus *gpus, const char **why);
unsigned gpus_count(struct gpus *gpus); /* 0 where there is no module */
/* The same, asked by a child process: for a process that forks later. A driver that was started is
 * of no use to children. */
unsigned gpus_count_apart(void);
/* The sentence for a number that none of so many has. -EINVAL; -ENODEV where there is none. */
int gpus_no_such(const char *name, unsigned count, unsigned index, char *error, size_t len);
/* "simulated" where a library underneath is a stand-in, whether it started or not; else
 * "measured". */
const char *gpus_origin(struct gpus *gpus);
/* Device `index`, opened at the first use, and again after it was lost. 0, or -errno with *error:
 * -ENODEV where there is no GPU, -EINVAL where there are, but none of that number. */
int gpus_get(struct gpus *gpus, unsigned index, struct gpu **gpu, char *error, size_t len);

/* For a benchmark's `backends` hook: says each GPU ("cuda:0", "present: NAME at ADDRESS"), or once
 * that there is none, and why ("cuda", "absent: ..."). */
void gpus_say(backend_say_fn *say, void *arg);
void gpus_say_on(struct gpus *gpus, backend_say_fn *say, void *arg);

/* Matrix products of a GPU module's library (cuBLASLt). Row-major and dense: A is m x k, B is k x n
 * or, where `b_is_nk`, given as its transpose (n x k: each column of B contiguous, as a model's
 * weights are and as 8-bit units need it), C is m x n. All in device memory. */

enum gpu_gemm_compute {
    GPU_GEMM_F64,
    GPU_GEMM_F32,     /* f32 multiplied and summed as f32 */
    GPU_GEMM_TF32,    /* f32 rounded to 10 bits of fraction, summed in f32 */
    GPU_GEMM_F32_SUM, /* narrower types, summed in f32 */
    /* 8-bit floating types: partial sums kept with fewer bits, as frameworks do */
    GPU_GEMM_F32_FAST,
    GPU_GEMM_F16_SUM, /* f16 summed in f16 */
    GPU_GEMM_S32_SUM,
};

enum gpu_gemm_c { GPU_GEMM_C_F64, GPU_GEMM_C_F32, GPU_GEMM_C_F16, GPU_GEMM_C_BF16, GPU_GEMM_C_S32 };

struct gpu_gemm_problem {
    enum gpu_value a, b;
    enum gpu_gemm_c c;
    enum gpu_gemm_compute compute;
    bool b_is_nk;
    uint64_t m, n, k;
};

struct gpu_gemm_ops {
    /* -ENODEV where the library is not here; gpu_error() says which, and what to do. */
    int (*open)(struct gpu *gpu, struct gpu_gemm **gemm);
    void (*close)(struct gpu_gemm *gemm);                /* NULL is left alone */
    const char *(*version)(const struct gpu_gemm *gemm); /* "cuBLASLt 13.1.0" */
    const char *(*file)(const struct gpu_gemm *gemm);    /* the library's path */

    /* Asks the library's heuristics for at most `most` ways to compute this problem, its choice
     * first, which fit in the workspace; their number in *n. -EOPNOTSUPP: none, on this device. One
     * plan at a time; unplan in any case. */
    int (*plan)(struct gpu_gemm *gemm, const struct gpu_gemm_problem *problem, unsigned most,
                unsigned *n);
    void (*unplan)(struct gpu_gemm *gemm);
    uint64_t (*workspace_bytes)(const struct gpu_gemm *gemm); /* taken by open */
    /* "algo 66 tile 128x256 stages 4 split-k 1": what candidate i is. Returns text. */
    const char *(*describe)(struct gpu_gemm *gemm, unsigned i, char *text, size_t len);
    /* The same number for the same candidate of another plan for this problem, by the same version
     * of the library, also in another process. */
    uint64_t (*identity)(const struct gpu_gemm *gemm, unsigned i);
    /* Queues C = A B by candidate i. */
    int (*run)(struct gpu_gemm *gemm, unsigned i, struct gpu_stream *stream, const void *a,
               const void *b, void *c);
};

/* Timing work on a GPU: by events of its own stream, with the cost of queueing kept out (the stream
 * is held until all is queued), and by the host's clock beside it, as a check: the events' clock
 * cannot have run longer than the host's between release and return, and not much shorter. */

struct gpu_watch; /* gpu_watch.h */

/* Queues operation number `i` of a sample. 0 or -errno. */
typedef int gpu_queue_fn(void *arg, struct gpu_stream *stream, uint64_t i);

struct gpu_timer {
    struct gpu *gpu;
    struct gpu_stream *stream;
    struct gpu_event *begin, *end;
    struct gpu_watch *watch; /* looked at while the device works; NULL: not */
    /* Of the run that the host saw end soonest: the one that a busy host disturbed least. */
    double device_ns, host_ns;
    uint64_t compared; /* runs that were long enough to compare */
};

int gpu_timer_open(struct gpu_timer *t, struct gpu *gpu, struct gpu_watch *watch);
void gpu_timer_close(struct gpu_timer *t); /* also what an open left half-way; a zeroed one */

/* Times `n` operations that `queue` puts into t->stream one after the other; each operation may
 * queue up to `each` things (calls of gpu_ops). More than GPU_HELD_MAX things are held and timed in
 * parts, and the parts' times added. 0 with *ns, or -errno. */
int gpu_timer_run(struct gpu_timer *t, gpu_queue_fn *queue, void *arg, uint64_t n, unsigned each,
                  uint64_t *ns);

/* For those that time by themselves: the same span by both clocks, the host's from the release to
 * the end of the wait. Too short ones are left out. */
void gpu_timer_compare(struct gpu_timer *t, double device_ns, double host_ns);

/* How the two clocks compare: "" where they agree (or nothing was long enough to tell), else a
 * sentence for the reason: events say 5.1 % less than the host's clock. Returns text. */
const char *gpu_timer_disagreement(const struct gpu_timer *t, char *text, size_t len);

#endif
