/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: host memory on the node that the end's threads are near, or memory of a GPU (memory.c),
 * registered for what the verb needs and no more.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/wire/rdma/rdma.h"

/* Buffers on a GPU: how they are registered, and how buffers are filled and compared, wherever they
 * are. A GPU's memory is registered as a dma-buf file where its driver exports one and the RDMA
 * device's takes it, else by its address, which works where nvidia-peermem is loaded. The CPU does
 * not touch it: the program's hooks copy. */

#define WHY_BYTES 224

static const char *peermem(void)
{
    return !access("/sys/module/nvidia_peermem", F_OK) || !access("/sys/module/nv_peer_mem", F_OK)
               ? "nvidia-peermem is loaded"
               : "nvidia-peermem is not loaded";
}

/* 0, or -errno and which step was refused. */
static int by_dmabuf(struct net_end *e, const struct rdma_rail *rail, struct rdma_memory *m,
                     int access, char *why, size_t len)
{
    struct rdma_end *r = rdma_of(e);
    int fd = -1, err = r->core->gpu->export_memory(r->gpu, m->at, m->bytes, &fd, why, len);

    if (err)
        return err;
    m->mr = ibv_reg_dmabuf_mr(rail->pd, 0, m->bytes, (uintptr_t)m->at, fd, access);
    err = m->mr ? 0 : errno ? -errno : -EIO;
    close(fd); /* the registration has its own */
    if (err)
        snprintf(why, len, "ibv_reg_dmabuf_mr: %s", strerror(-err));
    return err;
}

/* Always for writing: kernels before 6.2 force their way to what is only read, and without
 * nvidia-peermem would take empty pages of the address range that the driver keeps for the GPU's
 * memory. */
static int by_address(const struct rdma_rail *rail, struct rdma_memory *m, int access)
{
    m->mr = ibv_reg_mr(rail->pd, m->at, m->bytes, access | IBV_ACCESS_LOCAL_WRITE);
    return m->mr ? 0 : errno ? -errno : -EIO;
}

static int refused(struct net_end *e, const struct rdma_rail *rail, const struct rdma_memory *m,
                   int file_err, const char *file_why, int address_err)
{
    const struct rdma_end *r = rdma_of(e);

    if (file_err == -ENOMEM || address_err == -ENOMEM)
        return rdma_fail(
            e, -ENOMEM,
            "registering %zu KiB of '%s' with '%s:%u' was refused: as dma-buf: %.120s; "
            "by address: %s; use smaller buffers: the GPU's window (BAR1) may be full",
            m->bytes / 1024, r->core->gpu->name(r->gpu), rail->device, rail->port, file_why,
            strerror(-address_err));
    return rdma_fail(e, -EOPNOTSUPP,
                     "memory '%s' cannot be registered with '%s:%u': as dma-buf: %.150s; by "
                     "address: ibv_reg_mr: %s (%s); load nvidia-peermem, or use host memory",
                     r->core->gpu->name(r->gpu), rail->device, rail->port, file_why,
                     strerror(-address_err), peermem());
}

/* Memory of a GPU; and what is the same for both: `wrong` makes every byte another one,
 * *first is SIZE_MAX where all is right. */
static int rdma_gpu_memory_open(struct net_end *e, struct rdma_rail *rail, struct rdma_memory *m,
                                int access)
{
    struct rdma_end *r = rdma_of(e);
    char why[WHY_BYTES];

    m->bytes = (m->bytes + RDMA_GPU_ALIGN - 1) / RDMA_GPU_ALIGN * RDMA_GPU_ALIGN;
    int err = r->core->gpu->alloc(r->gpu, m->bytes, (void **)&m->at);
    if (err)
        return err;
    int file_err = by_dmabuf(e, rail, m, access, why, sizeof(why));
    m->way = "dma-buf";
    if (!file_err)
        return 0;
    err = by_address(rail, m, access);
    m->way = "peermem";
    return err ? refused(e, rail, m, file_err, why, err) : 0;
}

void rdma_memory_tell(struct net_end *e, unsigned i)
{
    struct rdma_end *r = rdma_of(e);
    const struct rdma_rail *rail = &r->rails[i];
    const char *in = rail->in.way, *out = rail->out.way;
    char *text = e->rails[i].text;
    size_t at = strlen(text), len = sizeof(e->rails[i].text);

    if (!r->gpu || (!in && !out))
        return;
    const char *way = r->core->gpu->way(r->gpu, e->rails[i].name);
    snprintf(text + at, len - at, ", %s by %s%s%s%s%s", r->core->gpu->name(r->gpu), in ? in : out,
             in && out && strcmp(in, out) != 0 ? " and " : "",
             in && out && strcmp(in, out) != 0 ? out : "", *way ? ", " : "", way);
}

int rdma_fill(struct net_end *e, void *at, uint64_t bytes, uint64_t seed, bool wrong)
{
    const struct rdma_end *r = rdma_of(e);
    uint8_t *byte = at;

    if (r->gpu)
        return r->core->gpu->fill(r->gpu, at, bytes, seed, wrong);
    r->core->fill(at, bytes, seed);
    for (uint64_t i = 0; i < bytes && wrong; i++)
        byte[i] = (uint8_t)~byte[i];
    return 0;
}

int rdma_compare(struct net_end *e, const void *at, uint64_t bytes, uint64_t seed, size_t *first)
{
    const struct rdma_end *r = rdma_of(e);

    if (r->gpu)
        return r->core->gpu->check(r->gpu, at, bytes, seed, first);
    *first = r->core->check(at, bytes, seed);
    return 0;
}

#define PAGE 4096u
#define HUGE (2u << 20)

static void limit_text(char *text, size_t len)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_MEMLOCK, &l) || l.rlim_cur == RLIM_INFINITY)
        snprintf(text, len, "unlimited");
    else
        snprintf(text, len, "%llu KiB", (unsigned long long)l.rlim_cur / 1024);
}

int rdma_no_memory(struct net_end *e, const char *what, const struct rdma_rail *rail,
                   uint64_t bytes, int err)
{
    char limit[32];

    limit_text(limit, sizeof(limit));
    if (err != ENOMEM && err != EAGAIN)
        return rdma_fail(e, err ? -err : -EIO, "%s on '%s:%u' was refused: %s", what, rail->device,
                         rail->port, strerror(err ? err : EIO));
    if (!strcmp(limit, "unlimited"))
        return rdma_fail(
            e, -ENOMEM,
            "%s (%llu KiB) on '%s:%u' was refused: the device or the machine is out of "
            "memory; use fewer connections, less depth or smaller messages",
            what, (unsigned long long)bytes / 1024, rail->device, rail->port);
    return rdma_fail(e, -ENOMEM,
                     "%s (%llu KiB) on '%s:%u' was refused: this process may lock %s (ulimit -l); "
                     "raise it: ulimit -l unlimited, memlock in /etc/security/limits.conf, "
                     "LimitMEMLOCK= of a service, --ulimit memlock=-1 of a container",
                     what, (unsigned long long)bytes / 1024, rail->device, rail->port, limit);
}

static int bind_memory(struct net_end *e, struct rdma_memory *m)
{
    unsigned long nodes[16] = {0};
    unsigned node = (unsigned)e->memory_node, bits = 8 * sizeof(*nodes);

    if (e->memory_node < 0 || node >= 16 * bits)
        return 0;
    nodes[node / bits] = 1ul << node % bits;
    if (!syscall(SYS_mbind, m->at, m->bytes, MPOL_BIND, nodes, 16 * bits, 0))
        return 0;
    if (errno == ENOSYS && !node) /* a kernel without NUMA has one node */
        return 0;
    return rdma_fail(
        e, errno == ENOSYS || errno == EPERM ? -EOPNOTSUPP : -errno,
        "memory cannot be bound to node %u: %s; in a container, add --cap-add SYS_NICE", node,
        strerror(errno));
}

/* A fault on a machine that has no more would kill the process. */
static int enough(struct net_end *e, uint64_t bytes)
{
    char line[128];
    unsigned long long kb = 0;
    FILE *f = fopen("/proc/meminfo", "re");

    while (f && !kb && fgets(line, sizeof(line), f))
        (void)!sscanf(line, "MemAvailable: %llu", &kb);
    if (f)
        fclose(f);
    if (!kb || bytes / 1024 < kb / 10 * 9)
        return 0;
    return rdma_fail(
        e, -ENOMEM,
        "buffers of %llu MiB are more than the %llu MiB that this machine has left: use "
        "smaller messages or fewer connections",
        (unsigned long long)bytes >> 20, kb >> 10);
}

int rdma_host_memory_open(struct net_end *e, const struct rdma_rail *rail, struct rdma_memory *m,
                          int access)
{
    int err = m->bytes ? enough(e, m->bytes) : 0;

    if (!m->bytes || err)
        return err;
    m->at = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->at == MAP_FAILED) {
        m->at = NULL;
        return rdma_no_memory(e, "memory for buffers", rail, m->bytes, errno);
    }
    if (m->bytes >= HUGE)
        madvise(m->at, m->bytes, MADV_HUGEPAGE); /* where the system likes to */
    err = bind_memory(e, m);
    if (err)
        return err;
    memset(m->at, 0, m->bytes);
    m->mr = ibv_reg_mr(rail->pd, m->at, m->bytes, access);
    return m->mr ? 0 : rdma_no_memory(e, "registering buffers", rail, m->bytes, errno);
}

int rdma_memory_open(struct net_end *e, struct rdma_rail *rail, struct rdma_memory *m,
                     uint64_t buffer_bytes, unsigned n, int access)
{
    m->stride = (buffer_bytes + PAGE - 1) / PAGE * PAGE;
    m->bytes = m->stride * n;
    if (m->bytes && rdma_of(e)->gpu)
        return rdma_gpu_memory_open(e, rail, m, access);
    return rdma_host_memory_open(e, rail, m, access);
}

void rdma_memory_close(struct rdma_end *r, struct rdma_memory *m)
{
    if (m->mr)
        ibv_dereg_mr(m->mr);
    if (m->way)
        r->core->gpu->free(r->gpu, m->at);
    else if (m->at)
        munmap(m->at, m->bytes);
    *m = (struct rdma_memory){0};
}
