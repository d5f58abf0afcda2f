/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA: the module plumb-rdma.so, opened when it is first asked for. See net.h and
 * wire.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "core/hw/gpu.h"
#include "core/hw/nic.h"
#include "core/hw/place.h"
#include "core/rng.h"
#include "core/wire/wire.h"

/* Memory of a GPU for the RDMA module: taken, filled and checked through a page-locked buffer of
 * the host, a part at a time; the CPU never touches it itself. See struct rdma_gpu_core. */

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

/* Devices that register it by its address want the GPU's whole pages, and no other's memory in
 * them. */
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

/* A completion says that the data is on its way into the GPU's memory, which need not mean that the
 * GPU sees it. */
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

static const struct module_kind kind = {
    .file = "plumb-rdma.so",
    .environment = "PLUMB_RDMA_MODULE",
    .what = "RDMA module",
    .unbuilt = "for want of its headers: install libibverbs-dev and librdmacm-dev, then make "
               "config && make",
    .symbol = RDMA_MODULE_SYMBOL,
};

static const struct rdma_core core = {
    .fail = net_fail,
    .fill = pattern_fill,
    .check = pattern_check,
    .has_tag = nic_has_tag,
    .gpu = &rdma_gpu_core,
};

/* NULL: there is none, and why. Opened when it is first asked for. */
static const struct rdma_module *rdma_module_load(char *why, size_t len)
{
    const struct rdma_module *module = module_open(&kind, why, len);

    if (module && (module->abi != RDMA_MODULE_ABI || module->layout != RDMA_LAYOUT)) {
        snprintf(
            why, len,
            "the RDMA module is of another build (interface %u, layout %zu; this program has %u "
            "and %zu): build both from the same source, with make, or install both together",
            module->abi, (size_t)module->layout, RDMA_MODULE_ABI, (size_t)RDMA_LAYOUT);
        return NULL;
    }
    return module;
}

static const struct rdma_module *module_of(const struct net_end *e)
{
    return ((const struct rdma_state *)e->state)->module;
}

static void rdma_backends(backend_say_fn *say, void *arg)
{
    char why[NET_ERROR_BYTES];
    const struct rdma_module *module = rdma_module_load(why, sizeof(why));

    if (module) {
        module->backends(say, arg);
        return;
    }
    say(arg, &(struct backend){.name = "rdma", .why = why});
}

/* A write is through when its completion says so: nothing tells the receiver. A read is the
 * receiver's own. Sends, and writes with immediate data, complete at the receiver. */
static bool rdma_counted_by_sender(const struct net_point *p, enum net_direction d)
{
    (void)d;
    return p->rdma.verb == NET_WRITE;
}

static bool rdma_needs_worker(const struct net_point *p, enum net_direction d, bool sends)
{
    (void)d;
    return sends ? !rdma_is_read(p) : rdma_is_read(p) || rdma_takes_receives(p);
}

/* A read goes there and comes back. */
static bool rdma_ping_is_whole(const struct net_point *p)
{
    return rdma_is_read(p);
}

static int rdma_open(struct net_end *e)
{
    char why[NET_ERROR_BYTES];
    const struct rdma_module *module = rdma_module_load(why, sizeof(why));
    int err = module ? module->open(e, &core) : net_fail(e, -EOPNOTSUPP, "%s", why);

    for (unsigned i = 0; i < e->n_rails && !err; i++)
        nic_fill_rdma(NULL, &e->rails[i], e->same_machine);
    return err;
}

static int rdma_address(struct net_end *e, void *address, size_t *len)
{
    return module_of(e)->address(e, address, len);
}

static int rdma_join(struct net_end *e, const void *address, size_t len)
{
    return module_of(e)->join(e, address, len);
}

static int rdma_work(struct net_worker *w)
{
    return module_of(w->end)->work(w);
}

static int rdma_ping(struct net_end *e, bool last, uint64_t *ns)
{
    return module_of(e)->ping(e, last, ns);
}

static int rdma_pong(struct net_end *e)
{
    return module_of(e)->pong(e);
}

static int rdma_check(struct net_end *e)
{
    return module_of(e)->check(e);
}

static size_t rdma_facts(struct net_end *e, struct net_fact *facts)
{
    return module_of(e)->facts(e, facts);
}

static void rdma_close(struct net_end *e)
{
    if (e->state)
        module_of(e)->close(e);
    e->state = NULL;
}

static bool rdma_polls(const struct net_point *p)
{
    return !p->rdma.events;
}

const struct net_ops net_rdma = {
    .name = "rdma",
    .counts_whole = true,
    .polls = rdma_polls,
    .help = "RDMA verbs over reliable connections: InfiniBand, RoCE, iWARP",
    .ping_is_whole = rdma_ping_is_whole,
    .backends = rdma_backends,
    .counted_by_sender = rdma_counted_by_sender,
    .needs_worker = rdma_needs_worker,
    .open = rdma_open,
    .address = rdma_address,
    .join = rdma_join,
    .work = rdma_work,
    .ping = rdma_ping,
    .pong = rdma_pong,
    .check = rdma_check,
    .facts = rdma_facts,
    .close = rdma_close,
};

/* A wire over RDMA: core's side of the module plumb-rdma.so, which does all of it. See wire.h
 * and wire.h. */

static const struct rdma_wire_core wire_core = {
    .core = {.fail = net_fail,
             .fill = pattern_fill,
             .check = pattern_check,
             .has_tag = nic_has_tag},
    .name = world_name,
    .member = world_member,
    .rank = world_rank,
};

static const struct wire_ops *ops_of(const struct wire *f)
{
    return ((const struct rdma_state *)f->state)->module->wire;
}

static int open_wire(struct wire *f)
{
    char why[NET_ERROR_BYTES];
    const struct rdma_module *module = rdma_module_load(why, sizeof(why));

    return module ? module->wire_open(f, &wire_core) : wire_fail(f, -EOPNOTSUPP, "%s", why);
}

static void backends(backend_say_fn *say, void *arg)
{
    net_rdma.backends(say, arg);
}

static int memory(struct wire *f, void *at, size_t bytes)
{
    return ops_of(f)->memory(f, at, bytes);
}

static int link_to(struct wire_link *l)
{
    return ops_of(l->worker->wire)->link(l);
}

static int address(struct wire_link *l, void *at, size_t *len)
{
    return ops_of(l->worker->wire)->address(l, at, len);
}

static int join(struct wire *f, const void *const *addresses, const size_t *lens)
{
    return ops_of(f)->join(f, addresses, lens);
}

static int send_message(struct wire_link *l, const void *at, size_t bytes)
{
    return ops_of(l->worker->wire)->send(l, at, bytes);
}

static int receive(struct wire_link *l, void *at, size_t bytes)
{
    return ops_of(l->worker->wire)->receive(l, at, bytes);
}

static int progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    return ops_of(k->wire)->progress(k, sides, wait_ns);
}

static void describe(struct wire *f, char *text, size_t len)
{
    ops_of(f)->describe(f, text, len);
}

static size_t facts(struct wire *f, struct net_fact *out)
{
    return ops_of(f)->facts(f, out);
}

static int rail(struct wire *f, struct net_rail *out)
{
    int err = ops_of(f)->rail(f, out);

    if (!err)
        nic_fill_rdma(NULL, out, false); /* it is told of members of other nodes */
    return err;
}

static void close_wire(struct wire *f)
{
    if (f->state)
        ops_of(f)->close(f);
    f->state = NULL;
}

const struct wire_ops wire_rdma = {
    .name = "rdma",
    .help = "RDMA verbs: writes with immediate data into what the receiver opened for them",
    .ways = WIRE_CAN(WIRE_YIELD),
    .backends = backends,
    .open = open_wire,
    .memory = memory,
    .link = link_to,
    .address = address,
    .join = join,
    .send = send_message,
    .receive = receive,
    .progress = progress,
    .describe = describe,
    .facts = facts,
    .rail = rail,
    .close = close_wire,
};
