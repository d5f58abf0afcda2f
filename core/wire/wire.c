/* SPDX-License-Identifier: Apache-2.0 */
/* What all transports share: see wire.h. */
#include "core/wire/wire.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/machine.h"

int wire_fail(struct wire *w, int err, const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&w->lock);
    if (!atomic_load(&w->failed)) { /* what follows is, as a rule, for the first one's sake */
        va_start(args, format);
        vsnprintf(w->error, sizeof(w->error), format, args);
        va_end(args);
        atomic_store(&w->failed, err);
    }
    pthread_mutex_unlock(&w->lock);
    return err;
}

/* This rank's own of "mlx5_0+mlx5_1". */
static char *own_device(const struct world *w, const char *devices)
{
    unsigned n = 1;

    for (const char *at = devices; (at = strchr(at, '+')) != NULL; at++)
        n++;
    for (unsigned skip = world_member(w, world_rank(w))->machine_rank % n; skip; skip--)
        devices = strchr(devices, '+') + 1;
    return xstrndup(devices, strcspn(devices, "+"));
}

int wire_open(struct wire **wire, const struct wire_ops *ops, const struct world *world,
              const struct wire_options *options, char *error, size_t len)
{
    struct wire *w = xcalloc(1, sizeof(*w));

    pthread_mutex_init(&w->lock, NULL);
    w->ops = ops;
    w->world = world;
    const char *device = options->device ? options->device : "";
    /* Links and workers have their place from the start, so that a transport may keep what points
     * to one. */
    struct wire_options *o = &w->options;
    *o = *options;
    o->links_most = o->links_most ? o->links_most : world_size(world);
    o->workers_most = o->workers_most ? o->workers_most : 1;
    o->device = o->every ? xstrdup(device) : own_device(world, device);
    w->links = xaligned(_Alignof(struct wire_link), o->links_most * sizeof(*w->links));
    w->workers = xaligned(_Alignof(struct wire_worker), o->workers_most * sizeof(*w->workers));
    int err =
        options->message_most
            ? ops->open(w)
            : wire_fail(w, -EINVAL, "the longest message must be known before links are made");
    if (err) {
        snprintf(error, len, "%s", w->error);
        wire_close(w);
        return err;
    }
    *wire = w;
    return 0;
}

void wire_close(struct wire *w)
{
    if (!w)
        return;
    w->ops->close(w);
    for (unsigned i = 0; i < w->n_workers; i++) {
        free(w->workers[i].out.moved);
        free(w->workers[i].in.moved);
    }
    free(w->workers);
    free(w->links);
    free((char *)(uintptr_t)w->options.device);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

struct wire_traits wire_traits_of(const struct wire_ops *ops, const struct wire_options *o)
{
    static const enum wire_way ways[] = {WIRE_POLL, WIRE_BLOCK, WIRE_EVENTS, WIRE_YIELD};
    struct wire_traits t = {.acts = WIRE_BOTH};
    size_t i = 0;

    while (i + 1 < sizeof(ways) / sizeof(*ways) && !(ops->ways & WIRE_CAN(ways[i])))
        i++;
    t.way = t.probe_way = ways[i];
    t.busy = t.way == WIRE_POLL;
    if (ops->traits)
        ops->traits(o, &t);
    return t;
}

void wire_facts_less(struct wire_fact *facts, size_t n, const struct wire_fact *mark, size_t n_mark)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_mark && !strcmp(facts[i].unit, "count"); k++)
            if (!strcmp(facts[i].metric, mark[k].metric)) {
                facts[i].value -= mark[k].value;
                break;
            }
}

int wire_memory_of(struct wire *w, struct wire_memory *m)
{
    return w->ops->memory ? w->ops->memory(w, m) : 0;
}

int wire_memory(struct wire *w, void *at, size_t bytes)
{
    return wire_memory_of(
        w, &(struct wire_memory){.at = at, .bytes = bytes, .sides = WIRE_BOTH, .file = -ENODATA});
}

int wire_worker(struct wire *w, enum wire_way way, unsigned rail)
{
    struct wire_worker *k = &w->workers[w->n_workers];

    if (w->n_workers == w->options.workers_most)
        return wire_fail(w, -EINVAL, "at most %u workers", w->options.workers_most);
    if (!(w->ops->ways & WIRE_CAN(way)))
        return wire_fail(w, -EOPNOTSUPP, "'%s' does not wait in that way", w->ops->name);
    *k = (struct wire_worker){
        .wire = w, .index = w->n_workers, .rail = rail, .way = way, .links = &w->links[w->n_links]};
    if (w->ops->worker)
        w->ops->worker(k);
    return (int)w->n_workers++;
}

/* How many links there are to that rank, and the first of them: its index, or -1. */
static unsigned count_links(const struct wire *w, unsigned rank, int *first)
{
    unsigned n = 0;

    *first = -1;
    for (unsigned i = w->n_links; i-- > 0;)
        if (w->links[i].peer == rank) {
            *first = (int)i;
            n++;
        }
    return n;
}

int wire_link(struct wire *w, unsigned rank, const struct wire_window *window)
{
    unsigned size = world_size(w->world), number;
    int err = w->n_workers ? 0 : wire_worker(w, WIRE_YIELD, 0), first;

    if (err < 0)
        return err;
    if (rank >= size || rank == world_rank(w->world))
        return wire_fail(w, -EINVAL, "rank %u of %u has no link to rank %u", world_rank(w->world),
                         size, rank);
    number = count_links(w, rank, &first);
    if (first >= 0 && !window)
        return first;
    if (w->n_links == w->options.links_most)
        return wire_fail(w, -EINVAL, "at most %u links", w->options.links_most);
    struct wire_worker *k = &w->workers[w->n_workers - 1];
    struct wire_link *l = &w->links[w->n_links];
    *l = (struct wire_link){.worker = k, .index = w->n_links, .peer = rank, .number = number};
    if (window)
        l->window = *window;
    err = w->ops->link(l);
    if (err)
        return err;
    k->n_links++;
    return (int)w->n_links++;
}

int wire_address(struct wire *w, unsigned link, void *address, size_t *len)
{
    if (link >= w->n_links)
        return wire_fail(w, -EINVAL, "there is no link %u, but %u", link, w->n_links);
    memset(address, 0, WIRE_ADDRESS_MAX);
    return w->ops->address(&w->links[link], address, len);
}

int wire_join(struct wire *w, const void *const *addresses, const size_t *lens)
{
    for (unsigned i = 0; i < w->n_workers; i++) {
        struct wire_worker *k = &w->workers[i];
        k->out.moved = xcalloc(k->n_links, sizeof(struct wire_link *));
        k->in.moved = xcalloc(k->n_links, sizeof(struct wire_link *));
    }
    return w->n_links ? w->ops->join(w, addresses, lens) : 0;
}

int wire_unheard(const struct wire *w, uint64_t for_ns, const char **device)
{
    for (unsigned i = 0; i < w->n_links && w->ops->unheard; i++) {
        const struct wire_link *l = &w->links[i];
        if (!w->ops->unheard(l, for_ns))
            continue;
        *device = l->device;
        return (int)l->peer;
    }
    return -1;
}

int wire_spin(struct wire_worker *k, enum wire_side sides, wire_look_fn *look, unsigned looks,
              uint64_t start_ns, uint64_t wait_ns)
{
    struct wire_turn *turn = sides & WIRE_OUT ? &k->out : &k->in;
    bool crowded = k->wire->options.crowded;
    uint64_t most_ns = wait_ns < WIRE_SPINS_NS ? wait_ns : WIRE_SPINS_NS;
    uint64_t now_ns = start_ns, before_ns;
    int rc = 0;

    while (!rc && now_ns - start_ns < most_ns) {
        bool yields = now_ns >= turn->yield_ns;
        if (crowded && !yields)
            return 0;
        for (unsigned i = 0; i < looks && !rc && !crowded; i++) {
            cpu_pause();
            rc = look(k, sides);
        }
        if (rc)
            return rc;
        if (yields)
            sched_yield();
        before_ns = now_ns;
        now_ns = clock_now_ns();
        if (yields && now_ns - before_ns > WIRE_LATE_NS)
            turn->yield_ns = now_ns + WIRE_LATE_SHARE * (now_ns - before_ns);
        rc = look(k, sides);
    }
    return rc;
}
