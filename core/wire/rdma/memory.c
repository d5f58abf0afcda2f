/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the host, or of a GPU, registered for what the verb needs and no more. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/wire/rdma/rdma.h"

#define WHY_BYTES 224
#define PAGE      4096u

/* A GPU's memory is registered as a dma-buf file where its driver exports one and the RDMA
 * device's takes it, else by its address, which works where nvidia-peermem is loaded. */

static const char *peermem(void)
{
    return !access("/sys/module/nvidia_peermem", F_OK) || !access("/sys/module/nv_peer_mem", F_OK)
               ? "nvidia-peermem is loaded"
               : "nvidia-peermem is not loaded";
}

/* 0, or -errno and which step was refused. */
static int by_dmabuf(const struct rdma_rail *rail, const struct wire_memory *m, int access,
                     struct ibv_mr **mr, char *why, size_t len)
{
    int err = m->file < 0 ? m->file : 0;

    snprintf(why, len, "%s", err && m->why ? m->why : "");
    if (err)
        return err;
    *mr = ibv_reg_dmabuf_mr(rail->pd, 0, m->bytes, (uintptr_t)m->at, m->file, access);
    err = *mr ? 0 : errno ? -errno : -EIO;
    if (err)
        snprintf(why, len, "ibv_reg_dmabuf_mr: %s", strerror(-err));
    return err;
}

static int refused(struct wire *w, const struct rdma_rail *rail, const struct wire_memory *m,
                   int file_err, const char *file_why, int address_err)
{
    if (file_err == -ENOMEM || address_err == -ENOMEM)
        return rdma_fail(
            w, -ENOMEM,
            "registering %zu KiB of '%s' with '%s:%u' was refused: as dma-buf: %.120s; "
            "by address: %s; use smaller buffers: the GPU's window (BAR1) may be full",
            m->bytes / 1024, m->device, rail->device, rail->port, file_why, strerror(-address_err));
    return rdma_fail(w, WIRE_UNREGISTERED,
                     "memory '%s' cannot be registered with '%s:%u': as dma-buf: %.150s; by "
                     "address: ibv_reg_mr: %s (%s); load nvidia-peermem, or use host memory",
                     m->device, rail->device, rail->port, file_why, strerror(-address_err),
                     peermem());
}

int rdma_no_inline(struct wire *w, const char *device)
{
    return rdma_fail(w, -EOPNOTSUPP,
                     "messages are sent inline by the CPU, which does not reach the memory of "
                     "'%s': leave --inline out",
                     device);
}

static int add_gpu(struct wire *w, const struct rdma_rail *rail, struct wire_memory *m, int access,
                   struct ibv_mr **mr)
{
    char why[WHY_BYTES];
    int32_t inline_bytes = w->options.rdma.inline_bytes;

    if (inline_bytes > 0 && w->options.message_most <= (uint64_t)inline_bytes && !rdma_reads(w))
        return rdma_no_inline(w, m->device);
    int file_err = by_dmabuf(rail, m, access, mr, why, sizeof(why));

    m->way = "dma-buf";
    if (!file_err)
        return 0;
    /* Always for writing: kernels before 6.2 force their way to what is only read, and without
     * nvidia-peermem would take empty pages of the address range that the driver keeps for the
     * GPU's memory. */
    *mr = ibv_reg_mr(rail->pd, m->at, m->bytes, access | IBV_ACCESS_LOCAL_WRITE);
    int err = *mr ? 0 : errno ? -errno : -EIO;
    m->way = "peermem";
    return err ? refused(w, rail, m, file_err, why, err) : 0;
}

int rdma_no_memory(struct wire *w, const char *what, const struct rdma_rail *rail, uint64_t bytes,
                   int err)
{
    struct rlimit l;
    char limit[32];
    bool limited = !getrlimit(RLIMIT_MEMLOCK, &l) && l.rlim_cur != RLIM_INFINITY;
    if (limited)
        snprintf(limit, sizeof(limit), "%llu KiB", (unsigned long long)l.rlim_cur / 1024);
    if (err != ENOMEM && err != EAGAIN)
        return rdma_fail(w, err ? -err : -EIO, "%s on '%s:%u' was refused: %s", what, rail->device,
                         rail->port, strerror(err ? err : EIO));
    if (!limited)
        return rdma_fail(
            w, -ENOMEM,
            "%s (%llu KiB) on '%s:%u' was refused: the device or the machine is out of "
            "memory; use fewer connections, less depth or smaller messages",
            what, (unsigned long long)bytes / 1024, rail->device, rail->port);
    return rdma_fail(w, -ENOMEM,
                     "%s (%llu KiB) on '%s:%u' was refused: this process may lock %s (ulimit -l); "
                     "raise it: ulimit -l unlimited, memlock in /etc/security/limits.conf, "
                     "LimitMEMLOCK= of a service, --ulimit memlock=-1 of a container",
                     what, (unsigned long long)bytes / 1024, rail->device, rail->port, limit);
}

/* iWARP fetches by a write of the other end into the reader's memory. */
static int access_of(const struct wire *w, const struct rdma_rail *rail, enum wire_side sides)
{
    enum rdma_verb verb = (enum rdma_verb)w->options.rdma.verb;
    bool writes = verb == RDMA_WRITE || verb == RDMA_WRITE_IMM ||
                  (verb == RDMA_READ && rail->protocol == NIC_IWARP);
    int relaxed = w->options.rdma.relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0;

    if (!(sides & WIRE_IN))
        return relaxed | (verb == RDMA_READ ? IBV_ACCESS_REMOTE_READ : 0);
    return relaxed | IBV_ACCESS_LOCAL_WRITE | (writes ? IBV_ACCESS_REMOTE_WRITE : 0);
}

int rdma_memory_add(struct wire *w, struct wire_memory *m)
{
    struct rdma *r = rdma_of(w);
    struct rdma_rail *rail = &r->rails[m->rail];
    struct rdma_region new = {.at = (uintptr_t)m->at, .bytes = m->bytes, .device = m->device};
    int access = access_of(w, rail, m->sides), err = 0;

    if (m->device)
        err = add_gpu(w, rail, m, access, &new.mr);
    else if (!(new.mr = ibv_reg_mr(rail->pd, m->at, m->bytes, access)))
        err = rdma_no_memory(w, "registering buffers", rail, m->bytes, errno);
    if (!err)
        *ARRAY_ADD(r->regions[m->rail], r->n_regions[m->rail]) = new;
    return err;
}

const struct rdma_region *rdma_region_of(const struct rdma_queue *q, const void *at, size_t bytes)
{
    const struct rdma *r = rdma_of(rdma_wire_of(q));
    unsigned rail = (unsigned)(q->rail - r->rails);

    for (unsigned i = 0; i < r->n_regions[rail]; i++) {
        const struct rdma_region *region = &r->regions[rail][i];
        size_t offset = (uintptr_t)at - region->at;
        if (offset < region->bytes && bytes <= region->bytes - offset)
            return region;
    }
    return NULL;
}

void rdma_regions_close(struct rdma *r)
{
    for (unsigned rail = 0; rail < r->n_rails; rail++) {
        for (unsigned i = 0; i < r->n_regions[rail]; i++)
            ibv_dereg_mr(r->regions[rail][i].mr);
        free(r->regions[rail]);
    }
}

int rdma_memory_open(struct rdma_queue *q, struct rdma_memory *m, size_t bytes, int access)
{
    struct wire *w = rdma_wire_of(q);

    m->at = xaligned(PAGE, bytes);
    m->mr = ibv_reg_mr(q->rail->pd, m->at, bytes, access);
    return m->mr ? 0 : rdma_no_memory(w, "registering buffers", q->rail, bytes, errno);
}

void rdma_memory_close(struct rdma_memory *m)
{
    if (m->mr)
        ibv_dereg_mr(m->mr);
    free(m->at);
    *m = (struct rdma_memory){0};
}
