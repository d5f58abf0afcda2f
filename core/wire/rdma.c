/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA: the module plumb-rdma.so, opened when it is first asked for. See wire.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/backend.h"
#include "core/group/secret.h"
#include "core/hw/nic.h"
#include "core/wire/wire.h"

static const struct module_kind kind = {
    .file = "plumb-rdma.so",
    .environment = "PLUMB_RDMA_MODULE",
    .what = "RDMA module",
    .unbuilt = "for want of its headers: install libibverbs-dev and librdmacm-dev, then make "
               "config && make",
    .symbol = RDMA_MODULE_SYMBOL,
};

/* NULL: there is none, and why. */
static const struct rdma_module *load(char *why, size_t len)
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

static void backends(backend_say_fn *say, void *arg)
{
    char why[WIRE_ERROR_BYTES];
    const struct rdma_module *module = load(why, sizeof(why));

    if (module)
        module->backends(say, arg);
    else
        say(arg, &(struct backend){.name = "rdma", .why = why});
}

static void token(const struct world *w, unsigned from, unsigned to, unsigned number,
                  uint8_t to_token[CHANNEL_TOKEN_BYTES])
{
    char purpose[64];

    snprintf(purpose, sizeof(purpose), "wire rdma %u", number);
    secret_token(to_token, world_key(w), purpose, from * WORLD_RANKS_MAX + to);
}

static const struct rdma_core core = {
    .fail = wire_fail,
    .has_tag = nic_has_tag,
    .fill = nic_fill_rdma,
    .name = world_name,
    .token = token,
};

static bool on_one_machine(const struct world *w)
{
    const char *first = world_member(w, 0)->machine;

    for (unsigned i = 0; i < world_size(w); i++)
        if (!*first || strcmp(world_member(w, i)->machine, first))
            return false;
    return true;
}

/* A read is the receiver's own doing; of a write nothing tells the receiver. */
static void traits(const struct wire_options *o, struct wire_traits *t)
{
    if (o->rdma.events) {
        t->way = t->probe_way = WIRE_EVENTS;
        t->busy = false;
    }
    if (o->rdma.verb == RDMA_READ)
        t->acts = WIRE_IN;
    else if (o->rdma.verb == RDMA_WRITE)
        t->acts = WIRE_OUT;
}

/* The module puts its own table into w->ops. */
static int open_module(struct wire *w)
{
    char why[WIRE_ERROR_BYTES];
    const struct rdma_module *module = load(why, sizeof(why));
    int err = module ? module->open(w, &core) : wire_fail(w, -EOPNOTSUPP, "%s", why);

    for (unsigned i = 0; i < w->n_rails && !err; i++)
        nic_fill_rdma(NULL, &w->rails[i], on_one_machine(w->world));
    return err;
}

static void close_nothing(struct wire *w)
{
    (void)w;
}

const struct wire_ops wire_rdma = {
    .name = "rdma",
    .ways = WIRE_CAN(WIRE_YIELD) | WIRE_CAN(WIRE_POLL) | WIRE_CAN(WIRE_EVENTS),
    .windows = true,
    .backends = backends,
    .traits = traits,
    .open = open_module,
    .close = close_nothing,
};
