/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the CUDA module share: its structs, and how a call of the driver is checked. */
#ifndef PLUMB_CORE_HW_CUDA_GPU_CUDA_H
#define PLUMB_CORE_HW_CUDA_GPU_CUDA_H

#include "core/hw/cuda/driver.h"
#include "core/hw/gpu.h"

#define CUDA_GPUS_MAX 256

/* What init opened, in one process: the one thing here that is not const (module.c). */
struct cuda_state {
    struct cuda_driver driver;
    unsigned count;
    bool reset[CUDA_GPUS_MAX]; /* the device was lost: to be reset when it is opened again */
    void *gemm_library;        /* NULL until one was opened */
};

struct cuda_state *cuda_state(void);

extern const struct gpu_ops plumb_gpu_module; /* GPU_MODULE_SYMBOL */

struct gpu {
    struct gpu_base base;
    const struct cuda_driver *driver;
    CUdevice device;
    CUcontext context; /* the primary one, which libraries take too */
    CUmodule module;   /* NULL until a kernel was asked for */
    struct gpu_kernel *kernels;
};

/* Host memory that the spin kernel of one stream looks at: see cuda_hold(). */
struct cuda_control {
    uint32_t go;
    uint32_t gave_up;
};

struct gpu_stream {
    struct gpu *gpu;
    CUstream stream;
    struct gpu_kernel *spin;
    struct cuda_control *control;
    uint32_t turn; /* the last hold's number; held while control->go is behind */
};

struct gpu_event {
    struct gpu *gpu;
    CUevent event;
};

struct gpu_kernel {
    struct gpu *gpu;
    CUfunction function;
    unsigned block_max;
    struct gpu_kernel *next;
    char name[64];
};

struct gpu_graph {
    struct gpu *gpu;
    CUgraph graph;
    CUgraphExec exec;
};

/* CUDA(gpu, cuMemAlloc, &at, bytes): the call, and 0 or -errno with gpu_error() set. */
#define CUDA(gpu, call, ...) cuda_check(gpu, (gpu)->driver->call(__VA_ARGS__), #call)

int cuda_check(struct gpu *gpu, CUresult result, const char *call);
/* Sets gpu_error() and returns err. */
int cuda_error(struct gpu *gpu, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds to gpu_error(), and returns err. */
int cuda_error_add(struct gpu *gpu, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)". Returns text. */
const char *cuda_error_text(const struct cuda_driver *driver, CUresult result, char *text,
                            size_t len);
int cuda_errno(CUresult result);
const char *cuda_error_hint(CUresult result); /* what to do; "" where nothing is to be said */

/* Makes the device's context this thread's; each call of the table begins with it. -EIO for a device
 * that was lost. */
int cuda_enter(struct gpu *gpu);
/* What threads know of the context that is theirs holds no more: one was taken down, or another library was let in, which may change it. */
void cuda_forget_contexts(void);
/* For those that give back and return nothing: whether there is a context to give back to. */
bool cuda_enter_quietly(struct gpu *gpu);

/* "12.3 GiB". Returns text. */
const char *cuda_size_text(uint64_t bytes, char *text, size_t len);

/* wait.c: asks until the answer is another than -EAGAIN, which it returns; -ETIMEDOUT, and the device is
 * silent, when it gives up. */
typedef int cuda_query_fn(void *arg);
int cuda_wait(struct gpu *gpu, cuda_query_fn *query, void *arg);

/* facts.c */
int cuda_facts(unsigned index, struct gpu_facts *facts);
int cuda_link(unsigned from, unsigned to, struct gpu_link *link);

/* device.c */
int cuda_open(unsigned index, struct gpu **gpu, char *error, size_t len);
void cuda_close(struct gpu *gpu);
int cuda_peer(struct gpu *gpu, struct gpu *other, bool enable);

/* memory.c */
int cuda_free_bytes(struct gpu *gpu, uint64_t *bytes);
int cuda_driver_call(struct gpu *gpu);
int cuda_alloc(struct gpu *gpu, enum gpu_memory kind, size_t bytes, void **at);
void cuda_free(struct gpu *gpu, enum gpu_memory kind, void *at);
int cuda_pin(struct gpu *gpu, void *at, size_t bytes);
void cuda_unpin(struct gpu *gpu, void *at);
int cuda_alloc_ordered(struct gpu_stream *stream, size_t bytes, void **at);
int cuda_free_ordered(struct gpu_stream *stream, void *at);

/* export.c */
int cuda_export(struct gpu *gpu, void *at, size_t bytes, int *fd);
int cuda_flush_writes(struct gpu *gpu);

/* stream.c */
int cuda_stream_open(struct gpu *gpu, struct gpu_stream **stream);
void cuda_stream_close(struct gpu_stream *stream);
int cuda_stream_wait(struct gpu_stream *stream);
int cuda_stream_sync(struct gpu_stream *stream);
int cuda_stream_query(struct gpu_stream *stream);
int cuda_stream_after(struct gpu_stream *stream, struct gpu_event *event);
void *cuda_stream_native(struct gpu_stream *stream);
int cuda_hold(struct gpu_stream *stream);
int cuda_release(struct gpu_stream *stream);
bool cuda_held(const struct gpu_stream *stream);
int cuda_copy(struct gpu_stream *stream, void *dst, const void *src, size_t bytes);
int cuda_set(struct gpu_stream *stream, void *dst, uint32_t word, size_t bytes);
int cuda_prefetch(struct gpu_stream *stream, void *at, size_t bytes, bool to_device);

/* event.c */
int cuda_event_open(struct gpu *gpu, struct gpu_event **event);
void cuda_event_close(struct gpu_event *event);
int cuda_event_record(struct gpu_event *event, struct gpu_stream *stream);
int cuda_event_wait(struct gpu_event *event);
int cuda_event_sync(struct gpu_event *event);
int cuda_event_query(struct gpu_event *event);
int cuda_event_elapsed(struct gpu_event *from, struct gpu_event *to, double *ns);
int cuda_graph_begin(struct gpu_stream *stream);
int cuda_graph_end(struct gpu_stream *stream, struct gpu_graph **graph);
int cuda_graph_launch(struct gpu_stream *stream, struct gpu_graph *graph);
void cuda_graph_close(struct gpu_graph *graph);

/* kernel.c */
int cuda_kernel(struct gpu *gpu, const char *name, struct gpu_kernel **kernel);
int cuda_occupancy(struct gpu_kernel *kernel, unsigned block, unsigned *blocks_per_sm);
int cuda_launch(struct gpu_stream *stream, struct gpu_kernel *kernel, unsigned grid, unsigned block,
                const void *args);
void cuda_kernels_close(struct gpu *gpu); /* the kernels and their module */

#endif
