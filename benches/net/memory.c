/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of an end's buffers: the host's, or a GPU's, which is filled and checked through a
 * page-locked buffer of the host, a part at a time; the CPU never touches it itself. */
#include "benches/net/mover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/hw/gpu.h"
#include "core/hw/nic.h"
#include "core/hw/place.h"
#include "core/hw/rail.h"
#include "core/rng.h"

#define ALIGN     4096u
#define GPU_ALIGN 65536u     /* of a GPU's pages */
#define STAGING   (1u << 20) /* of 8 */

struct block {
    void *raw;
    struct block *next;
};

struct net_gpu {
    struct gpus *gpus;
    struct gpu *gpu;
    struct gpu_stream *stream;
    uint8_t *staging;
    struct block *blocks;
    char name[32];
    char error[GPU_ERROR_BYTES + 128];
};

static int failed(struct net_gpu *m, const char *what, int err)
{
    snprintf(m->error, sizeof(m->error), "%s of '%s': %s", what, m->name, gpu_error(m->gpu));
    return err;
}

static int open_gpu(struct net_gpu *m, unsigned index)
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

static void gpu_memory_close(struct net_gpu *m)
{
    if (!m)
        return;
    bool silent = !m->gpus || gpus_silent(m->gpus);
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

/* Devices that register it by its address want the GPU's whole pages, and no other's memory in
 * them. */
static int gpu_memory_take(struct net_gpu *m, size_t bytes, void **at)
{
    struct block *block = xcalloc(1, sizeof(*block));

    *at = NULL;
    bytes = (bytes + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN;
    int err = gpu_ops(m->gpu)->alloc(m->gpu, GPU_DEVICE, bytes + GPU_ALIGN, &block->raw);
    if (err) {
        free(block);
        return failed(m, "memory for buffers", err);
    }
    uintptr_t first = (uintptr_t)block->raw;
    *at = (void *)((first + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN);
    block->next = m->blocks;
    m->blocks = block;
    return 0;
}

static int copy(struct net_gpu *m, void *to, const void *from, size_t bytes)
{
    int err = gpu_ops(m->gpu)->copy(m->stream, to, from, bytes);

    return err ? err : gpu_ops(m->gpu)->stream_wait(m->stream);
}

static size_t part(size_t left)
{
    return left < STAGING ? left : STAGING;
}

static int gpu_memory_fill(struct net_gpu *m, void *at, size_t bytes, uint64_t seed, bool wrong)
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
static int gpu_memory_check(struct net_gpu *m, const void *at, size_t bytes, uint64_t seed,
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

/* ---- A rail: the device and the GPU that its number means here ---- */

int net_rail_paired(const struct net_local *local, const struct rail *rail, char *error, size_t len)
{
    if (local->paired && (local->paired == NET_PAIRED_GPU) != (rail->gpu >= 0)) {
        snprintf(error, len,
                 "rail %u of this end has %s GPU, that of the other end has %s: their numbers do "
                 "not match",
                 local->rail - 1, rail->gpu >= 0 ? "a" : "no", rail->gpu >= 0 ? "none" : "one");
        return -ENODEV;
    }
    if (local->paired_of && local->paired_of != rail->of) {
        snprintf(error, len, "%u rails here, %u there: their numbers do not match", rail->of,
                 local->paired_of);
        return -ENODEV;
    }
    if (local->paired_seat && rail->seat && local->paired_seats == rail->seats &&
        local->paired_seat != rail->seat) {
        snprintf(error, len,
                 "rail %u is GPU %u of the %u of this machine, and GPU %u there: the two ends see "
                 "different ones (CUDA_VISIBLE_DEVICES)",
                 local->rail - 1, rail->seat, rail->seats, local->paired_seat);
        return -ENODEV;
    }
    return 0;
}

static int apply_rail(struct net_local *local, const struct rail *rail, char *error, size_t len)
{
    if (local->devices[0]) {
        snprintf(error, len,
                 "this end is given --device %s, and rail %u has one of its own: leave "
                 "--device out",
                 local->devices, local->rail - 1);
        return -EINVAL;
    }
    if (net_rail_paired(local, rail, error, len))
        return -ENODEV;
    snprintf(local->devices, sizeof(local->devices), "%s", rail->port);
    if (strcmp(local->memory, NET_MEMORY_RAIL) != 0)
        return 0;
    if (rail->gpu < 0) {
        snprintf(error, len, "rail %u has no GPU: programs on this machine can use none",
                 local->rail - 1);
        return -ENODEV;
    }
    snprintf(local->memory, sizeof(local->memory), PLACE_GPU_PREFIX "%d", rail->gpu);
    return 0;
}

int net_rail_find(struct net_local *local, struct rail *rail, char *error, size_t len)
{
    *rail = (struct rail){.gpu = -1, .way = ""};
    if (!local->rail)
        return 0;
    struct gpus *gpus = gpus_open();
    int err = rail_get(gpus, local->rail - 1, rail, error, len);
    gpus_close(gpus);
    return err ? err : apply_rail(local, rail, error, len);
}

/* ---- Buffers, wherever they are ---- */

int net_fill(struct net_end *e, char *at, size_t bytes, uint64_t seed, bool wrong)
{
    if (e->gpu) {
        int err = gpu_memory_fill(e->gpu, at, bytes, seed, wrong);
        return err ? net_fail(e, err, "%s", e->gpu->error) : 0;
    }
    pattern_fill(at, bytes, seed);
    for (size_t i = 0; i < bytes && wrong; i++)
        at[i] = (char)~at[i];
    return 0;
}

int net_find_wrong(struct net_end *e, const char *at, size_t bytes, uint64_t seed, size_t *wrong)
{
    *wrong = PATTERN_RIGHT;
    if (!e->gpu)
        *wrong = pattern_check(at, bytes, seed);
    int err = e->gpu && bytes ? gpu_memory_check(e->gpu, at, bytes, seed, wrong) : 0;
    return err ? net_fail(e, err, "%s", e->gpu->error) : 0;
}

/* Only some wires send memory of a GPU. */
int net_memory_open(struct net_end *e)
{
    const char *text = e->ops->windows ? e->local->memory : "";
    char error[NET_ERROR_BYTES] = "";
    struct place place;

    if (!*text || !strcmp(text, "host"))
        return 0;
    int err = place_parse(text, PLACE_GPU, &place, error, sizeof(error));
    if (err)
        return net_fail(e, err, "%s", error);
    e->gpu = xcalloc(1, sizeof(*e->gpu));
    e->gpu->gpus = gpus_open();
    err = open_gpu(e->gpu, place.index);
    for (unsigned i = 0; i < e->n_rails; i++)
        e->rails[i].simulated = !strcmp(gpus_origin(e->gpu->gpus), "simulated");
    return err ? net_fail(e, err, "%s", e->gpu->error) : 0;
}

void net_memory_close(struct net_end *e)
{
    host_free(&e->buffer);
    gpu_memory_close(e->gpu);
    e->gpu = NULL;
}

static size_t rounded(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Where both ends are on one machine, both take theirs from the same memory. */
static int refuse(struct net_end *e, uint64_t bytes)
{
    uint64_t available = host_available();

    if (available == UINT64_MAX)
        return 0;
    available = (available - available / 8) / (e->same_machine ? 2 : 1);
    if (bytes <= available)
        return 0;
    return net_fail(e, -EOPNOTSUPP,
                    "buffers of all connections need %llu MiB of memory, %llu can be had: smaller "
                    "messages or fewer connections",
                    (unsigned long long)(bytes >> 20), (unsigned long long)(available >> 20));
}

/* Of a rail's connections, one way: one after the other from `at`. Returns how much that is. */
static size_t place(struct net_end *e, unsigned rail, enum wire_side side, char *at)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < e->n; i++) {
        struct net_connection *c = &e->connections[i];
        if (net_rail_of(e, c->number) != rail)
            continue;
        if (at && side == WIRE_OUT)
            c->out = at + bytes;
        else if (at)
            c->in = at + bytes;
        bytes += rounded(side == WIRE_OUT ? c->out_bytes : c->in_bytes);
    }
    return bytes;
}

/* In the rail's text: "cuda:0 by dma-buf and peermem, PIX". */
static void tell_memory(struct net_end *e, unsigned rail, const char *out, const char *in)
{
    struct nic_rail *r = &e->rails[rail];
    size_t at = strlen(r->text), len = sizeof(r->text);

    if (!in && !out)
        return;
    const char *way = nic_way(NULL, r->name, gpu_base(e->gpu->gpu)->facts.address);
    bool two = in && out && strcmp(in, out) != 0;
    snprintf(r->text + at, len - at, ", %s by %s%s%s%s%s", e->gpu->name, in ? in : out,
             two ? " and " : "", two ? out : "", *way ? ", " : "", way);
}

static int expose(struct net_end *e, struct wire_memory *m)
{
    char why[GPU_ERROR_BYTES] = "";

    m->file = -ENODATA;
    if (e->gpu) {
        m->bytes = (m->bytes + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN;
        m->device = e->gpu->name;
        int fd = -1,
            export_err = gpu_ops(e->gpu->gpu)->export_memory(e->gpu->gpu, m->at, m->bytes, &fd);
        snprintf(why, sizeof(why), "%s", export_err ? gpu_error(e->gpu->gpu) : "");
        m->file = export_err ? export_err : fd;
        m->why = why;
    }
    int err = wire_memory_of(e->wire, m);
    if (m->file >= 0)
        close(m->file);
    return err ? net_wire_failed(e, err) : 0;
}

/* Buffers of a rail's connections, each way by itself: what goes out need not be open to writes. */
static int make_rail_buffers(struct net_end *e, unsigned rail, char **at)
{
    static const enum wire_side sides[] = {WIRE_OUT, WIRE_IN};
    const char *ways[2] = {NULL, NULL};
    int err = 0;

    for (int i = 0; i < 2 && !err; i++) {
        struct wire_memory m = {
            .at = *at, .bytes = place(e, rail, sides[i], NULL), .sides = sides[i], .rail = rail};
        if (e->gpu && m.bytes && (err = gpu_memory_take(e->gpu, m.bytes, &m.at)) != 0)
            return net_fail(e, err, "%s", e->gpu->error);
        place(e, rail, sides[i], m.at);
        if (!e->gpu)
            *at += m.bytes;
        err = m.bytes ? expose(e, &m) : 0;
        ways[i] = m.way;
    }
    if (!err && e->gpu)
        tell_memory(e, rail, ways[0], ways[1]);
    return err;
}

int net_memory_make(struct net_end *e)
{
    uint64_t bytes = ALIGN;
    char error[160] = "", *at = NULL;
    int err = 0;

    for (unsigned i = 0; i < e->n && !e->gpu; i++)
        bytes += rounded(e->connections[i].out_bytes) + rounded(e->connections[i].in_bytes);
    if (!e->gpu && (err = refuse(e, bytes)) != 0)
        return err;
    if (!e->gpu && (err = host_alloc(&e->buffer, e->topo, bytes, HOST_PAGES_THP, e->memory_node,
                                     error, sizeof(error))) != 0)
        return net_fail(e, err, "%s", error);
    at = e->buffer.at;
    for (unsigned rail = 0; rail < e->n_rails && !err; rail++)
        err = make_rail_buffers(e, rail, &at);
    /* Where an end may not act, its buffers are ready before it is read or written. */
    for (unsigned i = 0; i < e->n && !err && e->ops->windows; i++) {
        struct net_connection *c = &e->connections[i];
        if (c->out_bytes)
            err = net_fill(e, c->out, c->out_bytes, net_seed(e, c, WIRE_OUT, 0), false);
        c->out_ready = c->in_ready = true;
    }
    return err;
}
