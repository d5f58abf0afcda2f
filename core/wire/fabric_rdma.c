/* SPDX-License-Identifier: Apache-2.0 */
/* A fabric over RDMA: core's side of the module plumb-rdma.so, which does all of it. See fabric.h and rdma/rdma_module.h. */
#include <errno.h>

#include "core/hw/nic.h"
#include "core/rng.h"
#include "core/wire/rdma/rdma_module.h"

static const struct rdma_fabric_core core = {
    .core = {.fail = net_fail,
             .fill = pattern_fill,
             .check = pattern_check,
             .has_tag = nic_has_tag},
    .name = world_name,
    .member = world_member,
    .rank = world_rank,
};

static const struct fabric_ops *ops_of(const struct fabric *f)
{
    return ((const struct rdma_state *)f->state)->module->fabric;
}

static int open_fabric(struct fabric *f)
{
    char why[NET_ERROR_BYTES];
    const struct rdma_module *module = rdma_module_load(why, sizeof(why));

    return module ? module->fabric_open(f, &core) : fabric_fail(f, -EOPNOTSUPP, "%s", why);
}

static void backends(backend_say_fn *say, void *arg)
{
    net_rdma.backends(say, arg);
}

static int memory(struct fabric *f, void *at, size_t bytes)
{
    return ops_of(f)->memory(f, at, bytes);
}

static int link_to(struct fabric *f, struct fabric_link *l)
{
    return ops_of(f)->link(f, l);
}

static int card(struct fabric *f, struct fabric_link *l, void *at, size_t *len)
{
    return ops_of(f)->card(f, l, at, len);
}

static int join(struct fabric *f, const void *const *cards, const size_t *lens)
{
    return ops_of(f)->join(f, cards, lens);
}

static int send_message(struct fabric *f, struct fabric_link *l, const void *at, size_t bytes)
{
    return ops_of(f)->send(f, l, at, bytes);
}

static int receive(struct fabric *f, struct fabric_link *l, void *at, size_t bytes)
{
    return ops_of(f)->receive(f, l, at, bytes);
}

static int progress(struct fabric *f, uint64_t wait_ns)
{
    return ops_of(f)->progress(f, wait_ns);
}

static void describe(const struct fabric *f, char *text, size_t len)
{
    ops_of(f)->describe(f, text, len);
}

static size_t facts(struct fabric *f, struct net_fact *out)
{
    return ops_of(f)->facts(f, out);
}

static int rail(const struct fabric *f, struct net_rail *out)
{
    int err = ops_of(f)->rail(f, out);

    if (!err)
        nic_fill_rdma(NULL, out, false); /* it is told of members of other nodes */
    return err;
}

static void close_fabric(struct fabric *f)
{
    if (f->state)
        ops_of(f)->close(f);
    f->state = NULL;
}

const struct fabric_ops fabric_rdma = {
    .name = "rdma",
    .help = "RDMA verbs: writes with immediate data into what the receiver opened for them",
    .backends = backends,
    .open = open_fabric,
    .memory = memory,
    .link = link_to,
    .card = card,
    .join = join,
    .send = send_message,
    .receive = receive,
    .progress = progress,
    .describe = describe,
    .facts = facts,
    .rail = rail,
    .close = close_fabric,
};
