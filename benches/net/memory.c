/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a GPU: see memory.h. */
#include "benches/net/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/gpu.h"
#include "core/hw/nic.h"
#include "core/hw/place.h"
#include "core/rng.h"

#define STAGING (1u << 20) /* of 8 */

struct block {
    void *raw;
    struct block *next;
};

struct device_memory {
    struct gpus *gpus;
    struct gpu *gpu;
    struct gpu_stream *stream;
    uint8_t *staging;
    struct block *blocks;
    char name[32];
    char error[GPU_ERROR_BYTES + 128];
};

static int failed(struct device_memory *m, const char *what, int err)
{
    snprintf(m->error, sizeof(m->error), "%s of '%s': %s", what, m->name, gpu_error(m->gpu));
    return err;
}

static int open_gpu(struct device_memory *m, unsigned index)
{
    int err = gpus_get(m->gpus, index, &m->gpu, m->error, GPU_ERROR_BYTES);

    if (err)
        return err;
    const struct gpu_ops *ops = gpu_ops(m->gpu);
    snprintf(m->name, sizeof(m->name), "%s:%u", ops->name, index);
    err = ops->stream_open(m->gpu, &m->stream);
    if (!err)
        err = ops->alloc(m->gpu, GPU_PINNED, STAGING, (void **)&m->staging);
    return err ? failed(m, "a buffer for checking memory", err) : 0;
}

int device_memory_open(struct device_memory **memory, const char *text, char *error, size_t len)
{
    struct place place;

    *memory = NULL;
    if (!*text || !strcmp(text, "host"))
        return 0;
    int err = place_parse(text, PLACE_GPU, &place, error, len);
    if (err)
        return err;
    struct device_memory *m = calloc(1, sizeof(*m));
    if (!m || !(m->gpus = gpus_open())) {
        snprintf(error, len, "out of memory");
        free(m);
        return -ENOMEM;
    }
    err = open_gpu(m, place.index);
    if (err) {
        snprintf(error, len, "%s", m->error);
        device_memory_close(m);
        return err;
    }
    *memory = m;
    return 0;
}

void device_memory_close(struct device_memory *m)
{
    if (!m)
        return;
    bool silent = gpus_silent(m->gpus);
    for (struct block *b = m->blocks, *next; b; b = next) {
        next = b->next;
        if (!silent)
            gpu_ops(m->gpu)->free(m->gpu, GPU_DEVICE, b->raw);
        free(b);
    }
    if (m->gpu && !silent) {
        gpu_ops(m->gpu)->free(m->gpu, GPU_PINNED, m->staging);
        if (m->stream)
            gpu_ops(m->gpu)->stream_close(m->stream);
    }
    gpus_close(m->gpus);
    free(m);
}

const char *device_memory_name(const struct device_memory *m)
{
    return m->name;
}

const char *device_memory_error(const struct device_memory *m)
{
    return m->error;
}

bool device_memory_simulated(const struct device_memory *m)
{
    return !strcmp(gpus_origin(m->gpus), "simulated");
}

const char *device_memory_way(const struct device_memory *m, const char *device)
{
    return nic_way(NULL, device, gpu_base(m->gpu)->facts.address);
}

/* Devices that register it by its address want the GPU's whole pages, and no other's memory in
 * them. */
int device_memory_take(struct device_memory *m, size_t bytes, void **at)
{
    struct block *block = calloc(1, sizeof(*block));

    *at = NULL;
    if (!block) {
        snprintf(m->error, sizeof(m->error), "out of memory");
        return -ENOMEM;
    }
    bytes = (bytes + DEVICE_MEMORY_ALIGN - 1) / DEVICE_MEMORY_ALIGN * DEVICE_MEMORY_ALIGN;
    int err = gpu_ops(m->gpu)->alloc(m->gpu, GPU_DEVICE, bytes + DEVICE_MEMORY_ALIGN, &block->raw);
    if (err) {
        free(block);
        return failed(m, "memory for buffers", err);
    }
    uintptr_t first = (uintptr_t)block->raw;
    *at = (void *)((first + DEVICE_MEMORY_ALIGN - 1) / DEVICE_MEMORY_ALIGN * DEVICE_MEMORY_ALIGN);
    block->next = m->blocks;
    m->blocks = block;
    return 0;
}

int device_memory_export(struct device_memory *m, void *at, size_t bytes, char *why, size_t len)
{
    int fd = -1, err = gpu_ops(m->gpu)->export_memory(m->gpu, at, bytes, &fd);

    snprintf(why, len, "%s", err ? gpu_error(m->gpu) : "");
    return err ? err : fd;
}

static int copy(struct device_memory *m, void *to, const void *from, size_t bytes)
{
    int err = gpu_ops(m->gpu)->copy(m->stream, to, from, bytes);

    return err ? err : gpu_ops(m->gpu)->stream_wait(m->stream);
}

static size_t part(size_t left)
{
    return left < STAGING ? left : STAGING;
}

int device_memory_fill(struct device_memory *m, void *at, size_t bytes, uint64_t seed, bool wrong)
{
    int err = 0;

    for (size_t done = 0, n; done < bytes && !err; done += n) {
        n = part(bytes - done);
        pattern_fill(m->staging, n, pattern_after(seed, done));
        for (size_t i = 0; i < n && wrong; i++)
            m->staging[i] = (uint8_t)~m->staging[i];
        err = copy(m, (char *)at + done, m->staging, n);
    }
    return err ? failed(m, "filling memory", err) : 0;
}

/* A completion says that the data is on its way into the GPU's memory, which need not mean that the
 * GPU sees it. */
int device_memory_check(struct device_memory *m, const void *at, size_t bytes, uint64_t seed,
                        size_t *first)
{
    int err = 0;

    *first = PATTERN_RIGHT;
    for (size_t done = 0, n; done < bytes && !err && *first == PATTERN_RIGHT; done += n) {
        n = part(bytes - done);
        err = gpu_ops(m->gpu)->flush_writes(m->gpu);
        if (!err)
            err = copy(m, m->staging, (const char *)at + done, n);
        size_t wrong =
            err ? PATTERN_RIGHT : pattern_check(m->staging, n, pattern_after(seed, done));
        *first = wrong == PATTERN_RIGHT ? wrong : done + wrong;
    }
    return err ? failed(m, "reading memory", err) : 0;
}
