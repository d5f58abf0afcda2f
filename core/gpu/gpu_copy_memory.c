/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a GPU's copies: see gpu_copy_memory.h. */
#include "core/gpu/gpu_copy_memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/gpu/gpu_kernels.h"
#include "core/gpu/gpu_values.h"

#define WORD          sizeof(uint64_t)
#define ROUND         16u /* what the widest copy kernel takes at once */
#define POISON        0x55
#define FETCHED_BYTES ((size_t)4 << 20)
#define LOOKED_AT     ((size_t)256 << 20)
#define LOOKED_AT_WC  ((size_t)16 << 20) /* the CPU reads it past its caches, some 100 MB/s */
#define WINDOWS       16u

static const struct gpu_ops *ops_of(const struct gpu_copy_memory *m)
{
    return gpu_ops(m->config.gpu);
}

/* What the driver calls it; GPU_DEVICE for host memory means: not the driver's own. */
static enum gpu_memory driver_kind(const struct gpu_copy_memory *m)
{
    if (!m->config.on_host)
        return GPU_DEVICE;
    return m->config.kind == COPY_PINNED           ? GPU_PINNED
           : m->config.kind == COPY_WRITE_COMBINED ? GPU_WRITE_COMBINED
           : m->config.kind == COPY_MANAGED        ? GPU_MANAGED
                                                   : GPU_DEVICE;
}

static int fail(const struct gpu_copy_memory *m, int err, char *error, size_t len)
{
    snprintf(error, len, "%zu bytes of %s memory: %s", m->config.bytes,
             m->config.on_host ? copy_memories[m->config.kind] : "device",
             gpu_error(m->config.gpu));
    return err;
}

static int alloc_pages(struct gpu_copy_memory *m, const struct topo *topo, char *error, size_t len)
{
    enum device_memory pages = m->config.kind == COPY_HUGETLB    ? DEVICE_HUGETLB
                               : m->config.kind == COPY_PAGEABLE ? DEVICE_BASE
                                                                 : DEVICE_THP;
    int err = device_host.alloc(&m->buffer, topo, m->rounded, pages, m->config.node, error, len);

    m->at = m->buffer.at;
    if (err || m->config.kind != COPY_PINNED_HUGE)
        return err;
    memset(m->at, 0, m->rounded); /* touched here, while the thread is on its node */
    err = ops_of(m)->pin(m->config.gpu, m->at, m->rounded);
    m->pinned = !err;
    return err ? fail(m, err, error, len) : 0;
}

int gpu_copy_memory_alloc(struct gpu_copy_memory *m, const struct topo *topo,
                          const struct copy_memory_config *config, char *error, size_t len)
{
    *m = (struct gpu_copy_memory){.config = *config,
                                  .rounded = (config->bytes + ROUND - 1) / ROUND * ROUND};
    int err = ops_of(m)->stream_open(config->gpu, &m->stream);

    if (err)
        return fail(m, err, error, len);
    if (config->on_host && driver_kind(m) == GPU_DEVICE)
        return alloc_pages(m, topo, error, len);
    err = ops_of(m)->alloc(config->gpu, driver_kind(m), m->rounded, &m->at);
    return err ? fail(m, err, error, len) : 0;
}

void gpu_copy_memory_free(struct gpu_copy_memory *m)
{
    if (!m->config.gpu)
        return;
    if (m->pinned)
        ops_of(m)->unpin(m->config.gpu, m->at);
    if (m->buffer.at)
        device_host.free(&m->buffer);
    else
        ops_of(m)->free(m->config.gpu, driver_kind(m), m->at);
    if (m->stream)
        ops_of(m)->stream_close(m->stream);
    *m = (struct gpu_copy_memory){0};
}

static void fill_by_host(void *at, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes / WORD; i++) {
        uint64_t word = gpu_hash(seed, i);
        memcpy((char *)at + i * WORD, &word, WORD);
    }
}

static int fill_by_device(struct gpu_copy_memory *m, uint64_t seed)
{
    const struct gpu_ops *ops = ops_of(m);
    struct gpu_fill_args args = {.dst = m->at,
                                 .count = m->rounded / WORD,
                                 .seed = seed,
                                 .type = GPU_U64,
                                 .kind = GPU_RANDOM};
    uint64_t blocks = (args.count + 255) / 256, most = 8 * gpu_base(m->config.gpu)->facts.sms + 1;
    struct gpu_kernel *fill;
    int err = ops->kernel(m->config.gpu, "fill", &fill);

    if (!err)
        err = ops->launch(m->stream, fill, (unsigned)(blocks < most ? blocks : most), 256, &args);
    return err ? err : ops->stream_wait(m->stream);
}

int gpu_copy_memory_fill(struct gpu_copy_memory *m, uint64_t seed, bool by_device)
{
    if (by_device || !m->config.on_host)
        return fill_by_device(m, seed);
    fill_by_host(m->at, m->rounded, seed);
    return 0;
}

int gpu_copy_memory_poison(struct gpu_copy_memory *m)
{
    if (m->config.on_host) {
        memset(m->at, POISON, m->rounded);
        return 0;
    }
    int err = ops_of(m)->set(m->stream, m->at, POISON * 0x01010101u, m->rounded);
    return err ? err : ops_of(m)->stream_wait(m->stream);
}

/* `at` holds the bytes from `offset` on, a multiple of a word. Returns the first wrong one's offset. */
static size_t compare(const char *at, size_t offset, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i += WORD) {
        uint64_t word = gpu_hash(seed, (offset + i) / WORD);
        char right[WORD];
        size_t n = bytes - i < WORD ? bytes - i : WORD, k = 0;
        memcpy(right, &word, WORD);
        if (!memcmp(at + i, right, n))
            continue;
        while (at[i + k] == right[k])
            k++;
        return offset + i + k;
    }
    return COPY_MEMORY_RIGHT;
}

/* A window, fetched piece by piece into page-locked memory. */
static int check_fetched(struct gpu_copy_memory *m, char *bounce, size_t offset, size_t bytes,
                         uint64_t seed, size_t *wrong_at)
{
    int err = 0;

    for (size_t i = 0; !err && i < bytes && *wrong_at == COPY_MEMORY_RIGHT; i += FETCHED_BYTES) {
        size_t n = bytes - i < FETCHED_BYTES ? bytes - i : FETCHED_BYTES;
        memset(bounce, 0, n);
        err = ops_of(m)->copy(m->stream, bounce, (char *)m->at + offset + i, n);
        if (!err)
            err = ops_of(m)->stream_wait(m->stream);
        if (!err)
            *wrong_at = compare(bounce, offset + i, n, seed);
    }
    return err;
}

static int check_windows(struct gpu_copy_memory *m, char *bounce, uint64_t seed, size_t *wrong_at)
{
    size_t all = m->config.bytes,
           most = m->config.kind == COPY_WRITE_COMBINED && m->config.on_host ? LOOKED_AT_WC
                                                                             : LOOKED_AT,
           n = all > most ? WINDOWS : 1, window = all > most ? most / WINDOWS : all;
    int err = 0;

    for (size_t i = 0; !err && i < n && *wrong_at == COPY_MEMORY_RIGHT; i++) {
        size_t offset = n == 1 ? 0 : (all - window) / (n - 1) * i / WORD * WORD;
        size_t bytes = i + 1 == n ? all - offset : window; /* the last one to the very end */
        if (bounce)
            err = check_fetched(m, bounce, offset, bytes, seed, wrong_at);
        else
            *wrong_at = compare((char *)m->at + offset, offset, bytes, seed);
    }
    return err;
}

int gpu_copy_memory_check(struct gpu_copy_memory *m, uint64_t seed, bool by_device,
                          size_t *wrong_at)
{
    bool fetch = by_device || !m->config.on_host;
    size_t piece = m->rounded < FETCHED_BYTES ? m->rounded : FETCHED_BYTES;
    void *bounce = NULL;
    int err = fetch ? ops_of(m)->alloc(m->config.gpu, GPU_PINNED, piece, &bounce) : 0;

    *wrong_at = COPY_MEMORY_RIGHT;
    if (!err)
        err = check_windows(m, bounce, seed, wrong_at);
    ops_of(m)->free(m->config.gpu, GPU_PINNED, bounce);
    return err;
}

int gpu_copy_memory_spoil(struct gpu_copy_memory *m)
{
    char *byte = (char *)m->at + m->config.bytes / 2;
    void *bounce = NULL;

    if (m->config.on_host) {
        *byte ^= 1;
        return 0;
    }
    int err = ops_of(m)->alloc(m->config.gpu, GPU_PINNED, 1, &bounce);
    if (!err)
        err = ops_of(m)->copy(m->stream, bounce, byte, 1);
    if (!err)
        err = ops_of(m)->stream_wait(m->stream);
    if (!err)
        *(char *)bounce ^= 1;
    if (!err)
        err = ops_of(m)->copy(m->stream, byte, bounce, 1);
    if (!err)
        err = ops_of(m)->stream_wait(m->stream);
    ops_of(m)->free(m->config.gpu, GPU_PINNED, bounce);
    return err;
}
