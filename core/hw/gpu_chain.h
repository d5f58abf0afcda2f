/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain of loads by one thread of a GPU: the first word of each line of some memory has the address
 * of the next, in one random cycle, so that each load waits for the one before it.
 */
#ifndef PLUMB_CORE_HW_GPU_CHAIN_H
#define PLUMB_CORE_HW_GPU_CHAIN_H

#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"

#define GPU_CHAIN_LINE 128u /* of the caches of every NVIDIA GPU: bytes that are fetched together */

struct gpu_chain {
    struct gpu *gpu;
    struct gpu_kernel *kernel;
    uint64_t *memory; /* of whoever opened it; an address of the GPU's */
    uint64_t lines, loads;
    uint32_t *order; /* the lines, as they are visited */
    uint64_t *end;   /* device memory: where the last launch has got to */
    struct gpu_chase_args args;
};

/* `kernel` is "chase" or "chase_sys". lines: 2 to UINT32_MAX. 0, -ENOMEM, or -errno with the reason in
 * gpu_error(). To be closed in any case. */
int gpu_chain_open(struct gpu_chain *c, struct gpu *gpu, const char *kernel, void *memory,
                   uint64_t lines, uint64_t seed);
void gpu_chain_close(struct gpu_chain *c); /* a zeroed one is left alone */

/* Writes all lines, with random words behind the first: by way of `staging`, so many bytes of the
 * host's memory; NULL: the chain lies there itself. Errors as above. */
int gpu_chain_write(struct gpu_chain *c, struct gpu_stream *stream, uint64_t *staging,
                    uint64_t bytes, uint64_t seed);

/* The address that so many loads lead to, from the first line on. */
uint64_t gpu_chain_place(const struct gpu_chain *c, uint64_t loads);

/* Queues further loads, or times them: the launch is in the time, once. */
int gpu_chain_queue(struct gpu_chain *c, struct gpu_stream *stream, uint64_t loads);
int gpu_chain_run(struct gpu_chain *c, struct gpu_timer *timer, uint64_t loads, uint64_t *ns);

/* Where the GPU has got to: gpu_chain_place(c, c->loads), if all is right. */
int gpu_chain_end(struct gpu_chain *c, struct gpu_stream *stream, uint64_t *end);

#endif
