/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA devices that can register simulated device memory: put before libibverbs by LD_PRELOAD. $PLUMB_SIM_RDMA has the ways
 * that there are, of "peermem" (by address, as with nvidia-peermem) and "dmabuf"; other memory, and other ways, are
 * libibverbs' own. What is registered are the bytes, under the device's addresses.
 */
#include "tests/sim/export.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef ibv_reg_mr

typedef struct ibv_mr *reg_iova_fn(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                   unsigned access);
typedef struct ibv_mr *reg_dmabuf_fn(struct ibv_pd *pd, uint64_t offset, size_t length,
                                     uint64_t iova, int fd, int access);

/* libibverbs is there, or nobody could have called: it is a module's, so that it is not in the order of RTLD_NEXT. */
static void *real(const char *name)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *at = library ? dlsym(library, name) : NULL;

    if (!at)
        abort();
    return at;
}

static struct ibv_mr *reg_bytes(struct ibv_pd *pd, void *at, size_t length, uint64_t iova,
                                unsigned access)
{
    reg_iova_fn *reg;

    *(void **)&reg = real("ibv_reg_mr_iova2");
    return reg(pd, at, length, iova, access);
}

static void *share(uintptr_t at, size_t length, const char *way)
{
    const char *ways = getenv("PLUMB_SIM_RDMA"), *path = getenv("PLUMB_LIBCUDA");
    void *cuda = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    plumb_sim_share_fn *fn = NULL;

    if (cuda && ways && strstr(ways, way))
        *(void **)&fn = dlsym(cuda, "plumb_sim_share");
    return fn ? fn(at, length) : NULL;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access)
{
    void *bytes = share((uintptr_t)addr, length, "peermem");

    return reg_bytes(pd, bytes ? bytes : addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, int access)
{
    struct sim_export export = {0};
    reg_dmabuf_fn *reg;
    char *bytes = NULL;

    if (pread(fd, &export, sizeof(export), 0) == (ssize_t)sizeof(export) &&
        export.magic == SIM_EXPORT_MAGIC && offset + length <= export.bytes)
        bytes = share(export.at, export.bytes, "dmabuf");
    if (bytes)
        return reg_bytes(pd, bytes + offset, length, iova, (unsigned)access);
    *(void **)&reg = real("ibv_reg_dmabuf_mr");
    return reg(pd, offset, length, iova, fd, access);
}
