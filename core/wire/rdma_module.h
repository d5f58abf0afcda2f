/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between core (core/wire/rdma.c) and the module plumb-rdma.so: the hooks of struct net_ops and of
 * struct fabric_ops, and what the module calls back. What a point asks for can be told without the
 * module: the functions below.
 */
#ifndef PLUMB_CORE_WIRE_RDMA_MODULE_H
#define PLUMB_CORE_WIRE_RDMA_MODULE_H

#include "core/backend.h"
#include "core/wire/fabric.h"
#include "core/wire/net.h"

#define RDMA_MODULE_SYMBOL "plumb_rdma_module"
#define RDMA_MODULE_ABI    5u

/* Memory of a GPU, for the module, which knows none (core/wire/rdma.c). Errors are said by
 * net_fail(), but for export_memory()'s, which is a reason among others. */
struct rdma_gpu;
struct rdma_gpu_core {
    /* The GPU that e->local->memory names; *gpu is NULL where that is the host. */
    int (*open)(struct net_end *e, struct rdma_gpu **gpu);
    void (*close)(struct rdma_gpu *gpu); /* NULL is left alone */
    const char *(*name)(const struct rdma_gpu *gpu);
    bool (*simulated)(const struct rdma_gpu *gpu);
    /* The way to an RDMA device, in the words of nvidia-smi topo: "PIX"; "" where the system does
     * not say. */
    const char *(*way)(const struct rdma_gpu *gpu, const char *device);
    /* At a multiple of RDMA_GPU_ALIGN; bytes are a multiple of it. */
    int (*alloc)(struct rdma_gpu *gpu, size_t bytes, void **at);
    void (*free)(struct rdma_gpu *gpu, void *at); /* NULL is left alone */
    int (*export_memory)(struct rdma_gpu *gpu, void *at, size_t bytes, int *fd, char *why,
                         size_t len);
    /* As fill and check below. `wrong`: every byte is another one than that. */
    int (*fill)(struct rdma_gpu *gpu, void *at, size_t bytes, uint64_t seed, bool wrong);
    int (*check)(struct rdma_gpu *gpu, const void *at, size_t bytes, uint64_t seed, size_t *first);
};
#define RDMA_GPU_ALIGN 65536u /* of a GPU's pages */

/* Of the program, for the module. */
struct rdma_core {
    int (*fail)(struct net_end *e, int err, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    void (*fill)(void *at, size_t bytes, uint64_t seed);
    size_t (*check)(const void *at, size_t bytes, uint64_t seed);
    bool (*has_tag)(const char *root, const char *interface); /* nic_has_tag() */
    const struct rdma_gpu_core *gpu;                          /* of net's ends */
};

/* For fabrics: what the module asks of the world. */
struct rdma_fabric_core {
    struct rdma_core core;
    const char *(*name)(const struct world *w, unsigned rank, char *text, size_t len);
    const struct world_member *(*member)(const struct world *w, unsigned rank);
    unsigned (*rank)(const struct world *w);
};

struct rdma_module {
    uint32_t abi;
    uint32_t layout; /* rdma_layout() of the sources it was built from */
    void (*backends)(backend_say_fn *say, void *arg);
    /* What the system says of the ports (line, PCIe link) the program puts into the rails:
     * nic_fill_rdma(). */
    int (*open)(struct net_end *e, const struct rdma_core *core);
    int (*card)(struct net_end *e, void *card, size_t *len);
    int (*join)(struct net_end *e, const void *card, size_t len);
    int (*work)(struct net_worker *w);
    int (*ping)(struct net_end *e, bool last, uint64_t *ns);
    int (*pong)(struct net_end *e);
    int (*check)(struct net_end *e);
    size_t (*facts)(struct net_end *e, struct net_fact *facts);
    void (*close)(struct net_end *e);
    int (*fabric_open)(struct fabric *f, const struct rdma_fabric_core *core);
    const struct fabric_ops *fabric; /* all but open */
};

extern const struct rdma_gpu_core rdma_gpu_core;

/* What net_end.state and fabric.state point to begins with this, so that core finds the module's
 * hooks. */
struct rdma_state {
    const struct rdma_module *module;
};

/* Changes with the structs that both sides use. */
#define RDMA_LAYOUT                                                                                \
    ((uint32_t)(sizeof(struct net_end) * 31 + sizeof(struct net_point) * 7 +                       \
                sizeof(struct net_worker) * 5 + sizeof(struct net_rail) * 3 +                      \
                offsetof(struct net_end, state) + sizeof(struct net_local) +                       \
                sizeof(struct fabric) * 11 + sizeof(struct fabric_link) * 13))

static inline bool rdma_is_read(const struct net_point *p)
{
    return p->rdma.verb == NET_READ;
}

/* Does a message take a work request of its receiver? */
static inline bool rdma_takes_receives(const struct net_point *p)
{
    return p->rdma.verb == NET_SEND || p->rdma.verb == NET_WRITE_IMM;
}

#endif
