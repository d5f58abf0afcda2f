/* SPDX-License-Identifier: Apache-2.0 */
/* Between libcuda.so.1 (api_export.c) and the RDMA devices' side of it (rdma_gpu.c). */
#ifndef PLUMB_TESTS_SIM_EXPORT_H
#define PLUMB_TESTS_SIM_EXPORT_H

#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT_MAGIC UINT64_C(0x646d616275663031)

/* What the file holds that stands for a dma-buf: good in the process that made it. */
struct sim_export {
    uint64_t magic, at, bytes;
};

/* An RDMA device is to write there and to read it: where the host finds the bytes, NULL where this is no device memory
 * or a GPU that lets no other device reach it. */
void *plumb_sim_share(uintptr_t at, size_t bytes);
typedef void *plumb_sim_share_fn(uintptr_t at, size_t bytes);

#endif
