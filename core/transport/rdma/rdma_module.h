/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between core (core/transport/rdma.c) and the module plumb-rdma.so: the hooks of struct net_ops, and what the
 * module calls back. What a point asks for can be told without the module: the functions below.
 */
#ifndef PLUMB_CORE_TRANSPORT_RDMA_RDMA_MODULE_H
#define PLUMB_CORE_TRANSPORT_RDMA_RDMA_MODULE_H

#include "core/net/net.h"

#define RDMA_MODULE_SYMBOL "plumb_rdma_module"
#define RDMA_MODULE_ABI    1u

/* Of the program, for the module. */
struct rdma_core {
    int (*fail)(struct net_end *e, int err, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    void (*fill)(void *at, size_t bytes, uint64_t seed);
    size_t (*check)(const void *at, size_t bytes, uint64_t seed);
};

struct rdma_module {
    uint32_t abi;
    uint32_t layout; /* rdma_layout() of the sources it was built from */
    void (*backends)(void (*say)(void *arg, const char *name, const char *state), void *arg);
    int (*open)(struct net_end *e, const struct rdma_core *core);
    int (*card)(struct net_end *e, void *card, size_t *len);
    int (*join)(struct net_end *e, const void *card, size_t len);
    int (*work)(struct net_worker *w);
    int (*ping)(struct net_end *e, bool last, uint64_t *ns);
    int (*pong)(struct net_end *e);
    int (*check)(struct net_end *e);
    size_t (*facts)(struct net_end *e, struct net_fact *facts);
    void (*close)(struct net_end *e);
};

/* What net_end.state points to begins with this, so that core finds the module's hooks. */
struct rdma_state {
    const struct rdma_module *module;
};

/* Changes with the structs that both sides use. */
#define RDMA_LAYOUT                                                                                \
    ((uint32_t)(sizeof(struct net_end) * 31 + sizeof(struct net_point) * 7 +                       \
                sizeof(struct net_worker) * 5 + sizeof(struct net_rail) * 3 +                      \
                offsetof(struct net_end, state) + sizeof(struct net_local)))

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
