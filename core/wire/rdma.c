/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA: the module plumb-rdma.so, opened when it is first asked for. See net.h and rdma/rdma_module.h. */
#include <errno.h>
#include <stdio.h>

#include "core/hw/nic.h"
#include "core/module.h"
#include "core/rng.h"
#include "core/wire/rdma/rdma_module.h"

static const struct module_kind kind = {
    .file = "plumb-rdma.so",
    .environment = "PLUMB_RDMA_MODULE",
    .what = "RDMA module",
    .unbuilt = "for want of its headers: install libibverbs-dev and librdmacm-dev, then make "
               "config && make",
    .symbol = RDMA_MODULE_SYMBOL,
};

static const struct rdma_core core = {
    .fail = net_fail,
    .fill = pattern_fill,
    .check = pattern_check,
    .has_tag = nic_has_tag,
    .gpu = &rdma_gpu_core,
};

const struct rdma_module *rdma_module_load(char *why, size_t len)
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

static const struct rdma_module *module_of(const struct net_end *e)
{
    return ((const struct rdma_state *)e->state)->module;
}

static void rdma_backends(backend_say_fn *say, void *arg)
{
    char why[NET_ERROR_BYTES];
    const struct rdma_module *module = rdma_module_load(why, sizeof(why));

    if (module) {
        module->backends(say, arg);
        return;
    }
    say(arg, &(struct backend){.name = "rdma", .why = why});
}

/* A write is through when its completion says so: nothing tells the receiver. A read is the receiver's own. Sends,
 * and writes with immediate data, complete at the receiver. */
static bool rdma_counted_by_sender(const struct net_point *p, enum net_direction d)
{
    (void)d;
    return p->rdma.verb == NET_WRITE;
}

static bool rdma_needs_worker(const struct net_point *p, enum net_direction d, bool sends)
{
    (void)d;
    return sends ? !rdma_is_read(p) : rdma_is_read(p) || rdma_takes_receives(p);
}

/* A read goes there and comes back. */
static bool rdma_ping_is_whole(const struct net_point *p)
{
    return rdma_is_read(p);
}

static int rdma_open(struct net_end *e)
{
    char why[NET_ERROR_BYTES];
    const struct rdma_module *module = rdma_module_load(why, sizeof(why));
    int err = module ? module->open(e, &core) : net_fail(e, -EOPNOTSUPP, "%s", why);

    for (unsigned i = 0; i < e->n_rails && !err; i++)
        nic_fill_rdma(NULL, &e->rails[i], e->same_machine);
    return err;
}

static int rdma_card(struct net_end *e, void *card, size_t *len)
{
    return module_of(e)->card(e, card, len);
}

static int rdma_join(struct net_end *e, const void *card, size_t len)
{
    return module_of(e)->join(e, card, len);
}

static int rdma_work(struct net_worker *w)
{
    return module_of(w->end)->work(w);
}

static int rdma_ping(struct net_end *e, bool last, uint64_t *ns)
{
    return module_of(e)->ping(e, last, ns);
}

static int rdma_pong(struct net_end *e)
{
    return module_of(e)->pong(e);
}

static int rdma_check(struct net_end *e)
{
    return module_of(e)->check(e);
}

static size_t rdma_facts(struct net_end *e, struct net_fact *facts)
{
    return module_of(e)->facts(e, facts);
}

static void rdma_close(struct net_end *e)
{
    if (e->state)
        module_of(e)->close(e);
    e->state = NULL;
}

static bool rdma_polls(const struct net_point *p)
{
    return !p->rdma.events;
}

const struct net_ops net_rdma = {
    .name = "rdma",
    .counts_whole = true,
    .polls = rdma_polls,
    .help = "RDMA verbs over reliable connections: InfiniBand, RoCE, iWARP",
    .ping_is_whole = rdma_ping_is_whole,
    .backends = rdma_backends,
    .counted_by_sender = rdma_counted_by_sender,
    .needs_worker = rdma_needs_worker,
    .open = rdma_open,
    .card = rdma_card,
    .join = rdma_join,
    .work = rdma_work,
    .ping = rdma_ping,
    .pong = rdma_pong,
    .check = rdma_check,
    .facts = rdma_facts,
    .close = rdma_close,
};
