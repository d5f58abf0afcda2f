/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers on a GPU: how they are registered, and how buffers are filled and compared, wherever they are. A GPU's memory is
 * registered as a dma-buf file where its driver exports one and the RDMA device's takes it, else by its address, which
 * works where nvidia-peermem is loaded. The CPU does not touch it: the program's hooks copy.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/rdma/rdma.h"

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

/* Always for writing: kernels before 6.2 force their way to what is only read, and without nvidia-peermem would take
 * empty pages of the address range that the driver keeps for the GPU's memory. */
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

int rdma_gpu_memory_open(struct net_end *e, struct rdma_rail *rail, struct rdma_memory *m,
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
