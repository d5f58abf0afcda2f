/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a GPU for the RDMA module: taken, filled and checked through a page-locked buffer of the host, a part at a time;
 * the CPU never touches it itself. See struct rdma_gpu_core.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/gpu.h"
#include "core/hw/nic.h"
#include "core/hw/place.h"
#include "core/rng.h"
#include "core/wire/rdma/rdma_module.h"

#define STAGING (1u << 20) /* of 8 */

struct block {
    void *raw, *at; /* as taken, and its first whole page */
    struct block *next;
};

struct rdma_gpu {
    struct net_end *end;
    struct gpus *gpus;
    struct gpu *gpu;
    struct gpu_stream *stream;
    uint8_t *staging;
    struct block *blocks;
    char name[32];
};

static int failed(struct rdma_gpu *g, const char *what, int err)
{
    return net_fail(g->end, err, "%s of '%s': %s", what, g->name, gpu_error(g->gpu));
}

static int open_gpu(struct rdma_gpu *g, unsigned index)
{
    char error[GPU_ERROR_BYTES] = "";
    int err = gpus_get(g->gpus, index, &g->gpu, error, sizeof(error));

    if (err)
        return net_fail(g->end, err, "%s", error);
    const struct gpu_ops *ops = gpu_ops(g->gpu);
    snprintf(g->name, sizeof(g->name), "%s:%u", ops->name, index);
    err = ops->stream_open(g->gpu, &g->stream);
    if (!err)
        err = ops->alloc(g->gpu, GPU_PINNED, STAGING, (void **)&g->staging);
    return err ? failed(g, "a buffer for checking memory", err) : 0;
}

static void close_gpu(struct rdma_gpu *g)
{
    if (!g)
        return;
    if (g->gpu && !gpus_silent(g->gpus)) {
        gpu_ops(g->gpu)->free(g->gpu, GPU_PINNED, g->staging);
        if (g->stream)
            gpu_ops(g->gpu)->stream_close(g->stream);
    }
    gpus_close(g->gpus);
    free(g);
}

static int open_memory(struct net_end *e, struct rdma_gpu **gpu)
{
    const char *memory = e->local->memory;
    char error[256] = "";
    struct place place;

    *gpu = NULL;
    if (!*memory || !strcmp(memory, "host"))
        return 0;
    int err = place_parse(memory, PLACE_GPU, &place, error, sizeof(error));
    if (err)
        return net_fail(e, err, "%s", error);
    struct rdma_gpu *g = calloc(1, sizeof(*g));
    if (g) {
        g->end = e;
        g->gpus = gpus_open();
    }
    err = !g || !g->gpus ? net_fail(e, -ENOMEM, "out of memory") : open_gpu(g, place.index);
    if (err && g)
        close_gpu(g);
    *gpu = err ? NULL : g;
    return err;
}

static const char *name(const struct rdma_gpu *g)
{
    return g->name;
}

static bool simulated(const struct rdma_gpu *g)
{
    return !strcmp(gpus_origin(g->gpus), "simulated");
}

static const char *way(const struct rdma_gpu *g, const char *device)
{
    return nic_way(NULL, device, gpu_base(g->gpu)->facts.address);
}

/* Devices that register it by its address want the GPU's whole pages, and no other's memory in them. */
static int take(struct rdma_gpu *g, size_t bytes, void **at)
{
    struct block *block = calloc(1, sizeof(*block));

    *at = NULL;
    if (!block)
        return net_fail(g->end, -ENOMEM, "out of memory");
    int err = gpu_ops(g->gpu)->alloc(g->gpu, GPU_DEVICE, bytes + RDMA_GPU_ALIGN, &block->raw);
    if (err) {
        free(block);
        return failed(g, "memory for buffers", err);
    }
    uintptr_t first = (uintptr_t)block->raw;
    block->at = (void *)((first + RDMA_GPU_ALIGN - 1) / RDMA_GPU_ALIGN * RDMA_GPU_ALIGN);
    block->next = g->blocks;
    g->blocks = block;
    *at = block->at;
    return 0;
}

static void give_back(struct rdma_gpu *g, void *at)
{
    struct block **to = &g->blocks, *block;

    while ((block = *to) && block->at != at)
        to = &block->next;
    if (!block)
        return;
    *to = block->next;
    if (!gpus_silent(g->gpus))
        gpu_ops(g->gpu)->free(g->gpu, GPU_DEVICE, block->raw);
    free(block);
}

static int export_memory(struct rdma_gpu *g, void *at, size_t bytes, int *fd, char *why, size_t len)
{
    int err = gpu_ops(g->gpu)->export_memory(g->gpu, at, bytes, fd);

    snprintf(why, len, "%s", err ? gpu_error(g->gpu) : "");
    return err;
}

static int copy(struct rdma_gpu *g, void *to, const void *from, size_t bytes)
{
    int err = gpu_ops(g->gpu)->copy(g->stream, to, from, bytes);

    return err ? err : gpu_ops(g->gpu)->stream_wait(g->stream);
}

static size_t part(size_t left)
{
    return left < STAGING ? left : STAGING;
}

static int fill(struct rdma_gpu *g, void *at, size_t bytes, uint64_t seed, bool wrong)
{
    int err = 0;

    for (size_t done = 0, n; done < bytes && !err; done += n) {
        n = part(bytes - done);
        pattern_fill(g->staging, n, pattern_after(seed, done));
        for (size_t i = 0; i < n && wrong; i++)
            g->staging[i] = (uint8_t)~g->staging[i];
        err = copy(g, (char *)at + done, g->staging, n);
    }
    return err ? failed(g, "filling memory", err) : 0;
}

/* A completion says that the data is on its way into the GPU's memory, which need not mean that the GPU sees it. */
static int check(struct rdma_gpu *g, const void *at, size_t bytes, uint64_t seed, size_t *first)
{
    int err = 0;

    *first = PATTERN_RIGHT;
    for (size_t done = 0, n; done < bytes && !err && *first == PATTERN_RIGHT; done += n) {
        n = part(bytes - done);
        err = gpu_ops(g->gpu)->flush_writes(g->gpu);
        if (!err)
            err = copy(g, g->staging, (const char *)at + done, n);
        size_t wrong =
            err ? PATTERN_RIGHT : pattern_check(g->staging, n, pattern_after(seed, done));
        *first = wrong == PATTERN_RIGHT ? wrong : done + wrong;
    }
    return err ? failed(g, "reading memory", err) : 0;
}

const struct rdma_gpu_core rdma_gpu_core = {
    .open = open_memory,
    .close = close_gpu,
    .name = name,
    .simulated = simulated,
    .way = way,
    .alloc = take,
    .free = give_back,
    .export_memory = export_memory,
    .fill = fill,
    .check = check,
};
