/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: host memory on the node that the end's threads are near, or memory of a GPU (buffer.c), registered for what the
 * verb needs and no more.
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
