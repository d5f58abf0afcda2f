/* SPDX-License-Identifier: Apache-2.0 */
/* What all wires share: see wire.h. */
#include "core/wire/wire.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/hw/machine.h"

int wire_fail(struct wire *f, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(f->error, sizeof(f->error), format, args);
    va_end(args);
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
    return strndup(devices, strcspn(devices, "+"));
}

/* Links have their place from the start, so that a transport may keep what points to one. */
static int make_room(struct wire *f, const struct wire_options *options)
{
    f->links = calloc(world_size(f->world), sizeof(*f->links));
    f->options.device = own_device(f->world, options->device ? options->device : "");
    return f->links && f->options.device ? 0 : wire_fail(f, -ENOMEM, "out of memory");
}

int wire_open(struct wire **wire, const struct wire_ops *ops, const struct world *world,
              const struct wire_options *options, char *error, size_t len)
{
    struct wire *f = calloc(1, sizeof(*f));
    int err;

    if (!f) {
        snprintf(error, len, "out of memory");
        return -ENOMEM;
    }
    f->ops = ops;
    f->world = world;
    f->options = *options;
    f->options.device = NULL;
    err = make_room(f, options);
    if (!err && !options->message_most)
        err = wire_fail(f, -EINVAL, "the longest message must be known before links are made");
    err = err ? err : ops->open(f);
    if (err) {
        snprintf(error, len, "%s", f->error);
        wire_close(f);
        return err;
    }
    *wire = f;
    return 0;
}

void wire_close(struct wire *f)
{
    if (!f)
        return;
    f->ops->close(f);
    free(f->links);
    free((char *)(uintptr_t)f->options.device);
    free(f);
}

int wire_memory(struct wire *f, void *at, size_t bytes)
{
    return f->ops->memory ? f->ops->memory(f, at, bytes) : 0;
}

int wire_link(struct wire *f, unsigned rank)
{
    unsigned size = world_size(f->world);

    if (rank >= size || rank == world_rank(f->world))
        return wire_fail(f, -EINVAL, "rank %u of %u has no link to rank %u", world_rank(f->world),
                         size, rank);
    for (unsigned i = 0; i < f->n_links; i++)
        if (f->links[i].peer == rank)
            return (int)i;
    struct wire_link *l = &f->links[f->n_links];
    *l = (struct wire_link){.peer = rank};
    int err = f->ops->link(f, l);
    return err ? err : (int)f->n_links++;
}

int wire_address(struct wire *f, unsigned link, void *address, size_t *len)
{
    if (link >= f->n_links)
        return wire_fail(f, -EINVAL, "there is no link %u, but %u", link, f->n_links);
    memset(address, 0, WIRE_ADDRESS_MAX);
    return f->ops->address(f, &f->links[link], address, len);
}

int wire_join(struct wire *f, const void *const *addresses, const size_t *lens)
{
    return f->n_links ? f->ops->join(f, addresses, lens) : 0;
}

int wire_unheard(const struct wire *f, uint64_t for_ns, const char **device)
{
    for (unsigned i = 0; i < f->n_links && f->ops->unheard; i++) {
        const struct wire_link *l = &f->links[i];
        if (!f->ops->unheard(f, l, for_ns))
            continue;
        *device = l->device;
        return (int)l->peer;
    }
    return -1;
}

int wire_spin(struct wire *f, int (*look)(struct wire *f), unsigned looks, uint64_t start_ns,
              uint64_t wait_ns)
{
    uint64_t most_ns = wait_ns < WIRE_SPINS_NS ? wait_ns : WIRE_SPINS_NS;
    uint64_t now_ns = start_ns, before_ns;
    int rc = 0;

    while (!rc && now_ns - start_ns < most_ns) {
        bool yields = now_ns >= f->yield_ns;
        if (f->options.crowded && !yields)
            return 0;
        for (unsigned i = 0; i < looks && !rc && !f->options.crowded; i++) {
            cpu_pause();
            rc = look(f);
        }
        if (rc)
            return rc;
        if (yields)
            sched_yield();
        before_ns = now_ns;
        now_ns = clock_now_ns();
        if (yields && now_ns - before_ns > WIRE_LATE_NS)
            f->yield_ns = now_ns + WIRE_LATE_SHARE * (now_ns - before_ns);
        rc = look(f);
    }
    return rc;
}
