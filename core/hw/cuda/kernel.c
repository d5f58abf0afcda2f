/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels by name, out of the image that is part of the module. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/cuda/gpu_cuda.h"
#include "cuda/image.h" /* made by build.mk: CUDA_IMAGE, CUDA_CAPABILITIES */

/*
 * What nvcc made of kernels.cu: machine code for several GPUs and PTX. The assembler takes it in as it
 * is; the build says where it lies.
 */
__asm__(".pushsection .rodata.cuda_image,\"a\"\n"
        ".balign 64\n"
        ".hidden cuda_image\n"
        ".global cuda_image\n"
        ".type cuda_image, %object\n"
        "cuda_image:\n"
        ".incbin \"" CUDA_IMAGE "\"\n"
        ".size cuda_image, . - cuda_image\n"
        ".popsection\n");
extern const unsigned char cuda_image[] __attribute__((visibility("hidden")));

static int load(struct gpu *gpu)
{
    int err = gpu->module ? 0 : CUDA(gpu, cuModuleLoadData, &gpu->module, cuda_image);

    if (err == -EOPNOTSUPP)
        cuda_error_add(gpu, err,
                       "; this build has code for compute capabilities " CUDA_CAPABILITIES
                       ", the GPU is %u.%u: build with a toolkit that knows it",
                       gpu->base.facts.major, gpu->base.facts.minor);
    return err;
}

static int find(struct gpu *gpu, struct gpu_kernel *kernel)
{
    int block_max = 0;
    CUresult result =
        gpu->driver->cuModuleGetFunction(&kernel->function, gpu->module, kernel->name);

    if (result == CUDA_ERROR_NOT_FOUND)
        return cuda_error(gpu, -EINVAL, "the module has no kernel '%s'", kernel->name);
    int err = cuda_check(gpu, result, "cuModuleGetFunction");
    if (!err)
        err = CUDA(gpu, cuFuncGetAttribute, &block_max, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                   kernel->function);
    kernel->block_max = (unsigned)block_max;
    return err;
}

int cuda_kernel(struct gpu *gpu, const char *name, struct gpu_kernel **out)
{
    struct gpu_kernel *kernel;
    int err = cuda_enter(gpu);

    *out = NULL;
    for (kernel = gpu->kernels; kernel && !err; kernel = kernel->next) {
        if (!strcmp(kernel->name, name)) {
            *out = kernel;
            return 0;
        }
    }
    if (err || (err = load(gpu)))
        return err;
    kernel = calloc(1, sizeof(*kernel));
    if (!kernel)
        return cuda_error(gpu, -ENOMEM, "out of host memory");
    kernel->gpu = gpu;
    snprintf(kernel->name, sizeof(kernel->name), "%s", name);
    err = find(gpu, kernel);
    if (err) {
        free(kernel);
        return err;
    }
    kernel->next = gpu->kernels;
    gpu->kernels = kernel;
    *out = kernel;
    return 0;
}

int cuda_occupancy(struct gpu_kernel *kernel, unsigned block, unsigned *blocks_per_sm)
{
    struct gpu *gpu = kernel->gpu;
    int blocks = 0, err = cuda_enter(gpu);

    *blocks_per_sm = 0;
    if (!err && block <= kernel->block_max) /* 0: a block of so many threads cannot run */
        err = CUDA(gpu, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, kernel->function,
                   (int)block, 0);
    if (!err)
        *blocks_per_sm = (unsigned)blocks;
    return err;
}

int cuda_launch(struct gpu_stream *stream, struct gpu_kernel *kernel, unsigned grid, unsigned block,
                const void *args)
{
    struct gpu *gpu = stream->gpu;
    void *parameters[] = {(void *)args};
    int err = cuda_enter(gpu);

    if (!err && (!grid || !block))
        err = cuda_error(gpu, -EINVAL, "kernel '%s': asked for %u blocks of %u threads",
                         kernel->name, grid, block);
    if (!err)
        err = CUDA(gpu, cuLaunchKernel, kernel->function, grid, 1, 1, block, 1, 1, 0,
                   stream->stream, parameters, NULL);
    else
        return err;
    return err ? cuda_error_add(gpu, err, " (kernel '%s', %u x %u threads)", kernel->name, grid,
                                block)
               : 0;
}

void cuda_kernels_close(struct gpu *gpu)
{
    while (gpu->kernels) {
        struct gpu_kernel *kernel = gpu->kernels;
        gpu->kernels = kernel->next;
        free(kernel);
    }
    if (gpu->module && cuda_enter_quietly(gpu))
        gpu->driver->cuModuleUnload(gpu->module);
    gpu->module = NULL;
}
