/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver's interface, opened at run time: libcuda.so.1 comes with the driver and nothing else
 * is needed to move bytes and run kernels, so that a run-time library of some version is one thing less
 * to carry and to go wrong. Symbols are those of the header that this was built with.
 */
#ifndef PLUMB_CORE_HW_CUDA_DRIVER_H
#define PLUMB_CORE_HW_CUDA_DRIVER_H

#include <cuda.h>
#include <stddef.h>

/*
 * Where headers of CUDA 11, 12 and 13 differ. Names as in 13: its header leads to the second version of
 * what had two.
 */
#if CUDA_VERSION < 13000
#define cuDeviceGetUuid cuDeviceGetUuid_v2
#endif
/* Since 12.2; an older driver says that it does not know it. */
#define CUDA_ATTRIBUTE_HOST_NUMA_ID ((CUdevice_attribute)134)
/* Of memory that other devices reach: since 11.3, the last one 11.7. */
#define CUDA_ATTRIBUTE_RDMA          ((CUdevice_attribute)116)
#define CUDA_ATTRIBUTE_RDMA_FLUSH    ((CUdevice_attribute)117)
#define CUDA_ATTRIBUTE_RDMA_ORDERING ((CUdevice_attribute)118)
#define CUDA_ATTRIBUTE_DMABUF        ((CUdevice_attribute)124)
#define CUDA_RDMA_FLUSH_BY_HOST      1
#define CUDA_RDMA_ORDERED            100 /* for the GPU itself; and more */
#define CUDA_RDMA_TO_OWNER           100
#define CUDA_RANGE_DMABUF            1
/* Codes that older headers have no names for. */
#define CUDA_RESULT_NEEDS_NEWER_DRIVER ((CUresult)36)
#define CUDA_RESULT_CONTAINED          ((CUresult)226)
#define CUDA_RESULT_TENSOR_MEMORY_LEAK ((CUresult)721)
#define CUDA_RESULT_MPS_CLIENT_ENDED   ((CUresult)810)

/* Every function that is called. The header's macros turn cuMemAlloc into cuMemAlloc_v2 and so on. */
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

struct cuda_driver {
    void *library;
    int version; /* 13000 is 13.0 */
#define CUDA_DECLARE(name) __typeof__(&name) name;
    CUDA_FUNCTIONS(CUDA_DECLARE)
#undef CUDA_DECLARE
    /* NULL in an older driver: of 11.7 and 11.3. Older headers do not know them. */
    CUresult (*cuMemGetHandleForAddressRange)(void *handle, CUdeviceptr at, size_t bytes, int kind,
                                              unsigned long long flags);
    CUresult (*cuFlushGPUDirectRDMAWrites)(int target, int scope);
};

/* Opens the library and starts the driver. 0; -ENODEV or -EOPNOTSUPP with what is missing and what to
 * do. Once in a process. */
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

#endif
