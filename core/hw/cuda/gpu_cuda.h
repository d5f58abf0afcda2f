/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the CUDA module share: its structs, and how a call of the driver is checked. */
#ifndef PLUMB_CORE_HW_CUDA_GPU_CUDA_H
#define PLUMB_CORE_HW_CUDA_GPU_CUDA_H

#include <cuda.h>
#include <stddef.h>

#include "core/hw/gpu.h"

/* The CUDA driver's interface, opened at run time: libcuda.so.1 comes with the driver and nothing
 * else is needed to move bytes and run kernels, so that a run-time library of some version is one
 * thing less to carry and to go wrong. Symbols are those of the header that this was built with. */

/*
 * Where headers of CUDA 11, 12 and 13 differ. Names as in 13: its header leads to the second
 * version of what had two.
 */
#if CUDA_VERSION < 13000
#define cuDeviceGetUuid cuDeviceGetUuid_v2
#endif
/* Since 12.2; an older driver says that it does not know it. */
#define CUDA_ATTRIBUTE_HOST_NUMA_ID ((CUdevice_attribute)134)
/* Of memory that other devices reach: since 11.3, the last one 11.7. */
#define CUDA_ATTRIBUTE_RDMA            ((CUdevice_attribute)116)
#define CUDA_ATTRIBUTE_RDMA_FLUSH      ((CUdevice_attribute)117)
#define CUDA_ATTRIBUTE_RDMA_ORDERING   ((CUdevice_attribute)118)
#define CUDA_ATTRIBUTE_DMABUF          ((CUdevice_attribute)124)
#define CUDA_ATTRIBUTE_FABRIC          ((CUdevice_attribute)128)
#define CUDA_ATTRIBUTE_MULTICAST       ((CUdevice_attribute)132) /* since 12.1 */
#define CUDA_RDMA_FLUSH_BY_HOST        1
#define CUDA_RDMA_ORDERED              100 /* for the GPU itself; and more */
#define CUDA_RDMA_TO_OWNER             100
#define CUDA_RANGE_DMABUF              1
#define CUDA_RESULT_CONTAINED          ((CUresult)226)
#define CUDA_RESULT_TENSOR_MEMORY_LEAK ((CUresult)721)
#define CUDA_RESULT_MPS_CLIENT_ENDED   ((CUresult)810)

/* Every function that is called. The header's macros turn cuMemAlloc into cuMemAlloc_v2 and so
 * on. */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetUuid)                                                                             \
    X(cuDeviceGetPCIBusId)                                                                         \
    X(cuDeviceTotalMem)                                                                            \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDeviceCanAccessPeer)                                                                       \
    X(cuDeviceGetP2PAttribute)                                                                     \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuDevicePrimaryCtxReset)                                                                     \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxSynchronize)                                                                            \
    X(cuCtxEnablePeerAccess)                                                                       \
    X(cuCtxDisablePeerAccess)                                                                      \
    X(cuMemGetInfo)                                                                                \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemHostGetDevicePointer)                                                                   \
    X(cuMemFreeHost)                                                                               \
    X(cuMemHostRegister)                                                                           \
    X(cuMemHostUnregister)                                                                         \
    X(cuMemAllocManaged)                                                                           \
    X(cuMemPrefetchAsync)                                                                          \
    X(cuMemAllocAsync)                                                                             \
    X(cuMemFreeAsync)                                                                              \
    X(cuMemcpyAsync)                                                                               \
    X(cuMemsetD32Async)                                                                            \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamQuery)                                                                               \
    X(cuStreamWaitEvent)                                                                           \
    X(cuStreamBeginCapture)                                                                        \
    X(cuStreamEndCapture)                                                                          \
    X(cuGraphInstantiateWithFlags)                                                                 \
    X(cuGraphLaunch)                                                                               \
    X(cuGraphExecDestroy)                                                                          \
    X(cuGraphDestroy)                                                                              \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuEventSynchronize)                                                                          \
    X(cuEventQuery)                                                                                \
    X(cuEventElapsedTime)                                                                          \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuFuncGetAttribute)                                                                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                 \
    X(cuLaunchKernel)

/* CUmulticastObjectProp, of 12.1. */
struct cuda_multicast {
    unsigned devices;
    size_t bytes;
    unsigned long long handle_types, flags;
};

struct cuda_driver {
    void *library;
    int version; /* 13000 is 13.0 */
#define CUDA_DECLARE(name) __typeof__(&name) name;
    CUDA_FUNCTIONS(CUDA_DECLARE)
#undef CUDA_DECLARE
    /* NULL in an older driver: of 11.7, 11.3 and 12.4. Older headers do not know them. */
    CUresult (*cuMemGetHandleForAddressRange)(void *handle, CUdeviceptr at, size_t bytes, int kind,
                                              unsigned long long flags);
    CUresult (*cuFlushGPUDirectRDMAWrites)(int target, int scope);
    CUresult (*cuFuncLoad)(CUfunction function);
    /* Memory by handles, of 10.2; the header's own types. */
#define CUDA_BY_HANDLE(X)                                                                          \
    X(cuMemGetAllocationGranularity)                                                               \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemExportToShareableHandle)                                                                \
    X(cuMemImportFromShareableHandle)                                                              \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemAddressFree)                                                                            \
    X(cuMemMap)                                                                                    \
    X(cuMemUnmap)                                                                                  \
    X(cuMemSetAccess)
#define CUDA_DECLARE(name) __typeof__(&name) name;
    CUDA_BY_HANDLE(CUDA_DECLARE)
#undef CUDA_DECLARE
    /* One address for the memory of several devices, of 12.1. */
    CUresult (*cuMulticastGetGranularity)(size_t *bytes, const struct cuda_multicast *object,
                                          int option);
    CUresult (*cuMulticastCreate)(CUmemGenericAllocationHandle *object,
                                  const struct cuda_multicast *properties);
    CUresult (*cuMulticastAddDevice)(CUmemGenericAllocationHandle object, CUdevice device);
    CUresult (*cuMulticastBindMem)(CUmemGenericAllocationHandle object, size_t at,
                                   CUmemGenericAllocationHandle memory, size_t from, size_t bytes,
                                   unsigned long long flags);
    CUresult (*cuMulticastUnbind)(CUmemGenericAllocationHandle object, CUdevice device, size_t at,
                                  size_t bytes);
};

/* Opens the library and starts the driver. 0; -ENODEV or -EOPNOTSUPP with what is missing and what
 * to do. Once in a process. */
int cuda_driver_open(struct cuda_driver *driver, char *error, size_t len);

/* Moves managed pages to `device`; to the host where that is CU_DEVICE_CPU. */
static inline CUresult cuda_driver_prefetch(const struct cuda_driver *driver, CUdeviceptr at,
                                            size_t bytes, CUdevice device, CUstream stream)
{
#if CUDA_VERSION < 13000
    return driver->cuMemPrefetchAsync(at, bytes, device, stream);
#else
    CUmemLocation to = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};

    if (device == CU_DEVICE_CPU)
        to = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    return driver->cuMemPrefetchAsync(at, bytes, to, 0, stream);
#endif
}

#define CUDA_GPUS_MAX 256

/* What init opened, in one process: the one thing here that is not const (module.c). */
struct cuda_state {
    struct cuda_driver driver;
    unsigned count;
    bool reset[CUDA_GPUS_MAX]; /* the device was lost: to be reset when it is opened again */
    struct cuda_mapping *left[CUDA_GPUS_MAX]; /* what a lost device had mapped then: fabric.c */
    void *gemm_library;                       /* NULL until one was opened */
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
    struct cuda_mapping *mappings; /* fabric.c */
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

struct gpu_kernel {
    struct gpu *gpu;
    CUfunction function;
    unsigned block_max;
    struct gpu_kernel *next;
    char name[64];
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

/* Makes the device's context this thread's; each call of the table begins with it. -EIO for a
 * device that was lost. */
int cuda_enter(struct gpu *gpu);
/* What threads know of the context that is theirs holds no more: one was taken down, or another
 * library was let in, which may change it. */
void cuda_forget_contexts(void);
/* For those that give back and return nothing: whether there is a context to give back to. */
bool cuda_enter_quietly(struct gpu *gpu);

/* "12.3 GiB". Returns text. */
const char *cuda_size_text(uint64_t bytes, char *text, size_t len);

/* device.c */
int cuda_facts(unsigned index, struct gpu_facts *facts);
int cuda_link(unsigned from, unsigned to, struct gpu_link *link);

int cuda_open(unsigned index, struct gpu **gpu, char *error, size_t len);
void cuda_close(struct gpu *gpu);
int cuda_peer(struct gpu *gpu, struct gpu *other, bool enable);

int cuda_free_bytes(struct gpu *gpu, uint64_t *bytes);
int cuda_driver_call(struct gpu *gpu);
int cuda_alloc(struct gpu *gpu, enum gpu_memory kind, size_t bytes, void **at);
void cuda_free(struct gpu *gpu, enum gpu_memory kind, void *at);
int cuda_pin(struct gpu *gpu, void *at, size_t bytes);
void cuda_unpin(struct gpu *gpu, void *at);
int cuda_alloc_ordered(struct gpu_stream *stream, size_t bytes, void **at);
int cuda_free_ordered(struct gpu_stream *stream, void *at);

int cuda_export(struct gpu *gpu, void *at, size_t bytes, int *fd);
int cuda_flush_writes(struct gpu *gpu);

/* fabric.c: 0 or -errno with gpu_error() set */
int cuda_fabric_alloc(struct gpu *gpu, size_t bytes, CUdeviceptr *at);
void cuda_fabric_free(struct gpu *gpu, CUdeviceptr at);
/* A reset ends a context, and no memory that is mapped by handles. A lost device's is left, and given
 * back when it is opened again. One that does not answer keeps it until the process ends. */
void cuda_fabric_leave(struct gpu *gpu);
void cuda_fabric_clear(struct gpu *gpu);
int cuda_share(struct gpu *gpu, const void *at, unsigned char handle[GPU_HANDLE_BYTES]);
int cuda_reach(struct gpu *gpu, const unsigned char handle[GPU_HANDLE_BYTES], size_t bytes,
               void **at);

/* multicast.c */
int cuda_multicast_open(struct gpu *const *gpus, unsigned n, size_t bytes, void **all, void **at,
                        struct gpu_multicast **group);
void cuda_multicast_close(struct gpu_multicast *group);

/* module.c */
/* Asks until the answer is another than -EAGAIN, which it returns. -ETIMEDOUT, and the device is
 * silent: it gave up. */
typedef int cuda_query_fn(void *arg);
int cuda_wait(struct gpu *gpu, cuda_query_fn *query, void *arg);
bool cuda_held(const struct gpu_stream *stream);
void cuda_kernels_close(struct gpu *gpu); /* the kernels and their module */

#endif
