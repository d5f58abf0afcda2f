/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory at one end of a GPU's copies: of the device, or of the host in the kinds that a driver tells
 * apart. Filled with words that are a function of their position (gpu_values.h), so that any part of
 * what arrived can be checked without keeping a second copy of it.
 */
#ifndef PLUMB_CORE_GPU_GPU_COPY_MEMORY_H
#define PLUMB_CORE_GPU_GPU_COPY_MEMORY_H

#include "core/device/copy_work.h"
#include "core/gpu/gpu.h"

#define COPY_MEMORY_RIGHT SIZE_MAX

struct copy_memory_config {
    struct gpu *gpu; /* whose memory it is; of host memory: the GPU that it is pinned for */
    enum copy_memory kind;
    bool on_host;
    int node; /* of host memory; -1: any */
    size_t bytes;
};

struct gpu_copy_memory { /* zeroed: not allocated */
    struct copy_memory_config config;
    void *at;
    size_t rounded;              /* to whole words of the device */
    struct device_buffer buffer; /* where it is not the driver's own */
    bool pinned;
    struct gpu_stream *stream; /* for what is not timed */
};

/* Host memory comes from the node of the calling thread, or where it is not the driver's own from
 * config->node. 0 or -errno with *error; release in any case. */
int gpu_copy_memory_alloc(struct gpu_copy_memory *m, const struct topo *topo,
                          const struct copy_memory_config *config, char *error, size_t len);
void gpu_copy_memory_free(struct gpu_copy_memory *m);

/* The words of `seed`, written by the device, or by the host where it can; done when these return. */
int gpu_copy_memory_fill(struct gpu_copy_memory *m, uint64_t seed, bool by_device);
int gpu_copy_memory_poison(struct gpu_copy_memory *m);
/* The offset of the first byte that is not of `seed`, or COPY_MEMORY_RIGHT. Looks at all of up to
 * 256 MiB, of more (and of memory that is slow to read) at windows from the first to the last byte.
 * by_device: fetched by a copy of the device's, which reads it where it then lies. */
int gpu_copy_memory_check(struct gpu_copy_memory *m, uint64_t seed, bool by_device,
                          size_t *wrong_at);
/* For tests: makes the byte in the middle wrong. */
int gpu_copy_memory_spoil(struct gpu_copy_memory *m);

#endif
