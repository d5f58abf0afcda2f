/* SPDX-License-Identifier: Apache-2.0 */
/* Memory at the ends of copies, the node that it is on, and one address for memory of all GPUs: see
 * gpu_copy.h. */
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/copy/gpu_copy.h"
#include "core/alloc.h"
#include "core/hw/gpu_kernels.h"
#include "core/hw/host_buffer.h"
#include "core/row.h"

/* ---- Memory of a GPU's copies ---- */

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
        return m->config.fabric || m->config.remote ? GPU_FABRIC : GPU_DEVICE;
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
    enum host_pages pages = m->config.kind == COPY_HUGETLB    ? HOST_PAGES_HUGETLB
                            : m->config.kind == COPY_PAGEABLE ? HOST_PAGES_BASE
                                                              : HOST_PAGES_THP;
    int err = host_alloc(&m->buffer, topo, m->rounded, pages, m->config.node, error, len);

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
    int err = gpu_aside_open(config->gpu, &m->stream);

    if (err)
        return fail(m, err, error, len);
    m->at = config->lent;
    if (m->at)
        return 0;
    if (config->remote) {
        err = ops_of(m)->reach(config->gpu, config->handle, m->rounded, &m->at);
        return err ? fail(m, err, error, len) : 0;
    }
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
        host_free(&m->buffer);
    else if (!m->config.lent)
        ops_of(m)->free(m->config.gpu, driver_kind(m), m->at);
    if (m->stream)
        gpu_aside_close(m->config.gpu);
    *m = (struct gpu_copy_memory){0};
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
    if (m->config.remote)
        return copy_remote_do(m->config.remote, COPY_REMOTE_FILL, m->config.remote_memory, seed,
                              NULL);
    if (by_device || !m->config.on_host)
        return fill_by_device(m, seed);
    for (size_t i = 0; i < m->rounded / WORD; i++) {
        uint64_t word = gpu_hash(seed, i);
        memcpy((char *)m->at + i * WORD, &word, WORD);
    }
    return 0;
}

int gpu_copy_memory_poison(struct gpu_copy_memory *m)
{
    if (m->config.remote)
        return copy_remote_do(m->config.remote, COPY_REMOTE_POISON, m->config.remote_memory, 0,
                              NULL);
    if (m->config.on_host) {
        memset(m->at, POISON, m->rounded);
        return 0;
    }
    int err = ops_of(m)->set(m->stream, m->at, POISON * 0x01010101u, m->rounded);
    return err ? err : ops_of(m)->stream_wait(m->stream);
}

/* `at` holds the bytes from `offset` on, a multiple of a word. Returns the first
 * wrong one's offset. */
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
    bool slow = m->config.kind == COPY_WRITE_COMBINED && m->config.on_host;
    size_t all = m->config.bytes, beside = m->config.beside ? m->config.beside : 1,
           most = (slow ? LOOKED_AT_WC : LOOKED_AT) / beside, n = all > most ? WINDOWS : 1,
           window = all > most ? most / WINDOWS / WORD * WORD : all;
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

    if (m->config.remote)
        return copy_remote_do(m->config.remote, COPY_REMOTE_CHECK, m->config.remote_memory, seed,
                              wrong_at);
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

    if (m->config.remote)
        return copy_remote_do(m->config.remote, COPY_REMOTE_SPOIL, m->config.remote_memory, 0,
                              NULL);
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

/* ---- Where the host's side of a GPU's copies lies, and what that costs ---- */

#define ELSEWHERE_SHARE 0.05

static unsigned host_node(const struct gpu_copy *c)
{
    return c->ends[gpu_copy_host_end(c)].index;
}

int gpu_copy_bind(struct point *pt, struct gpu_copy *c)
{
    int near = gpu_base(gpu_copy_main(c))->facts.numa_node;
    unsigned cpu = 0;
    /* A CPU of the host's node; of a node without CPUs, and near to a GPU that does not say where
     * it is, any. */
    int node = gpu_copy_host_end(c) < 0 ? near : (int)host_node(c);
    int err = topo_spread(point_topo(pt), node, 1, &cpu);

    if (err)
        err = topo_spread(point_topo(pt), -1, 1, &cpu);
    c->cpu = -1;
    if (gpu_copy_host_end(c) >= 0 && near >= 0)
        point_column(pt, "numa", "%s", near == (int)host_node(c) ? "local" : "remote");
    if (!err)
        err = topo_bind_self(point_topo(pt), cpu);
    if (err)
        return point_reason(pt, err, "no CPU to copy from: %s", strerror(-err));
    c->cpu = (int)cpu;
    return 0;
}

int gpu_copy_node(struct point *pt, const struct gpu_copy *c, unsigned g)
{
    bool several = topo_nodes(point_topo(pt)) > 1; /* else no need, and containers may refuse */

    if (!several || gpu_copy_host_end(c) < 0)
        return -1;
    /* The point's own GPU copies from and to the node that was asked for; those beside it have
     * their own node, as programs on them would: on one node for all, that node's memory would be
     * what they share. */
    int near = g ? gpu_base(c->group[g].runner)->facts.numa_node : -1;
    return near >= 0 ? near : (int)host_node(c);
}

static void set_policy(struct point *pt, int node, hwloc_membind_policy_t policy)
{
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();

    hwloc_bitmap_only(nodes, (unsigned)node);
    hwloc_set_membind(topo_hwloc(point_topo(pt)), nodes, policy,
                      HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET);
    hwloc_bitmap_free(nodes);
}

/* Where a policy is refused the node of the thread's CPU decides; the pages are
 * looked at afterwards. */
int gpu_copy_node_begin(struct point *pt, const struct gpu_copy *c, unsigned g)
{
    int node = gpu_copy_node(pt, c, g);
    unsigned cpu;

    if (node < 0)
        return 0;
    if (g && node != (int)host_node(c) && !topo_spread(point_topo(pt), node, 1, &cpu)) {
        int err = topo_bind_self(point_topo(pt), cpu);
        if (err)
            return point_reason(pt, err, "no CPU of node%d to take memory from: %s", node,
                                strerror(-err));
    }
    set_policy(pt, node, HWLOC_MEMBIND_BIND);
    return 0;
}

void gpu_copy_node_end(struct point *pt, const struct gpu_copy *c, unsigned g)
{
    int node = gpu_copy_node(pt, c, g);

    if (node < 0)
        return;
    set_policy(pt, node, HWLOC_MEMBIND_DEFAULT);
    if (g && c->cpu >= 0)
        topo_bind_self(point_topo(pt), (unsigned)c->cpu);
}

/* Evidence, and a remark where the pages are not on the node that was asked for. */
void gpu_copy_node_evidence(struct point *pt, const struct gpu_copy *c)
{
    if (gpu_copy_host_end(c) < 0)
        return;
    const struct gpu_copy_lane *lane = &c->lanes[0];
    const struct gpu_copy_memory *m = lane->src.config.on_host ? &lane->src : &lane->dst;
    struct host_buffer pages = {.at = m->at, .bytes = m->rounded};
    unsigned node = host_node(c);
    struct host_where where;
    char text[96];

    host_where(&pages, 1, &where);
    evidence_add(pt->evidence, sizeof(pt->evidence), "host memory: %s",
                 host_where_text(&where, text, sizeof(text)));
    if (where.looked_at && gpu_copy_node(pt, c, 0) >= 0 && node < HOST_NODES_MAX &&
        (double)(where.looked_at - where.on_node[node]) > ELSEWHERE_SHARE * (double)where.looked_at)
        point_reason(pt, 0, "%llu of %llu pages looked at are not on node%u",
                     (unsigned long long)(where.looked_at - where.on_node[node]),
                     (unsigned long long)where.looked_at, node);
    double share = host_huge_share(&where);
    if ((c->memory == COPY_HUGE || c->memory == COPY_PINNED_HUGE) && share < 0.95)
        point_reason(pt, 0, "asked for huge pages, but only %.3g %% is on them", 100 * share);
}

/* ---- Memory of all GPUs behind one address, which a kernel of one stores to ---- */

#define SPREAD_STEP 16u

static int spread_add(struct point *pt, struct gpu_copy_spread *s, unsigned index)
{
    if (s->n == GPU_COPY_LANES_MAX)
        return point_reason(pt, -EOPNOTSUPP, "over %u GPUs at once", s->n);
    int err = gpu_copy_open_gpu(pt, index, &s->gpus[s->n]);
    s->n += !err;
    return err;
}

/* All bytes leave the source once, by its NVLinks where it has no other links to the others. */
static int spread_find_end(struct gpu_copy *c)
{
    const struct gpu_copy_spread *s = c->spread;
    unsigned native = 0;
    int err = 0;

    for (unsigned i = 1; !err && i < s->n; i++) {
        struct gpu_link link = {0};
        err = gpu_ops(c->gpu[0])->link(gpu_base(c->gpu[0])->index, gpu_base(s->gpus[i])->index,
                                       &link);
        native += link.atomics;
    }
    if (!err && native + 1 == s->n)
        c->end_address = gpu_base(c->gpu[0])->facts.address;
    return err;
}

int gpu_copy_spread_open(struct point *pt, struct gpu_copy *c)
{
    unsigned n = gpus_count(point_gpus(pt)), source = gpu_base(c->gpu[0])->index;

    c->spread = xcalloc(1, sizeof(*c->spread));
    int err = spread_add(pt, c->spread, source);
    for (unsigned i = 0; !err && i < n; i++)
        if (i != source)
            err = spread_add(pt, c->spread, i);
    return err ? err : spread_find_end(c);
}

int gpu_copy_spread_refuse(struct point *pt, struct gpu_copy *c)
{
    const struct gpu_copy_spread *s = c->spread;

    if (c->params->size % SPREAD_STEP)
        return point_reason(pt, -EOPNOTSUPP,
                            "stores to a multicast address are of %u bytes each: take a --size "
                            "that is a multiple of that",
                            SPREAD_STEP);
    for (unsigned i = 0; i < s->n; i++)
        if (!gpu_base(s->gpus[i])->facts.multicast)
            return point_reason(pt, -EOPNOTSUPP,
                                "the driver has no multicast for %s:%u: it takes a GPU of compute "
                                "capability 9.0 or newer and NVLink over switches",
                                gpu_ops(s->gpus[i])->name, gpu_base(s->gpus[i])->index);
    return 0;
}

int gpu_copy_spread_alloc(struct point *pt, struct gpu_copy *c, struct gpu_copy_lane *l)
{
    struct gpu_copy_spread *s = c->spread;
    void *at[GPU_COPY_LANES_MAX];
    char error[GPU_ERROR_BYTES + 64];
    int err =
        gpu_ops(l->gpu)->multicast_open(s->gpus, s->n, l->src.rounded, &s->all, at, &s->group);

    if (err)
        return gpu_copy_failed(pt, c, err);
    for (unsigned i = 0; !err && i < s->n; i++) {
        struct copy_memory_config config = {
            .gpu = s->gpus[i], .bytes = l->bytes, .lent = at[i], .beside = s->n};
        err = gpu_copy_memory_alloc(&s->memory[i], point_topo(pt), &config, error, sizeof(error));
    }
    l->spread = s;
    return err ? point_reason(pt, err, "%s", error) : 0;
}

void gpu_copy_spread_close(struct gpu_copy *c)
{
    struct gpu_copy_spread *s = c->spread;

    if (!s)
        return;
    for (unsigned i = 0; i < s->n; i++)
        gpu_copy_memory_free(&s->memory[i]);
    if (s->group)
        gpu_ops(c->gpu[0])->multicast_close(s->group);
    free(s);
}

int gpu_copy_spread_poison(struct gpu_copy_spread *s)
{
    int err = 0;

    for (unsigned i = 0; !err && i < s->n; i++)
        err = gpu_copy_memory_poison(&s->memory[i]);
    return err;
}

int gpu_copy_spread_check(struct gpu_copy_spread *s, uint64_t seed, size_t *wrong_at)
{
    int err = 0;

    *wrong_at = COPY_MEMORY_RIGHT;
    for (unsigned i = 0; !err && i < s->n && *wrong_at == COPY_MEMORY_RIGHT; i++) {
        s->wrong = i;
        err = gpu_copy_memory_check(&s->memory[i], seed, false, wrong_at);
    }
    return err;
}
