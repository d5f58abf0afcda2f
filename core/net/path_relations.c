/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices move the same bytes: by the links that the system shows between interfaces. */
#include <string.h>

#include "core/net/nic_sys.h"
#include "core/net/path_parts.h"

enum { DEPTH_MAX = 6 };

struct descent {
    const char *root, *below;
    unsigned depth;
};

static bool is_above(const char *root, const char *upper, const char *below, unsigned depth);

static int step_down(void *arg, const char *entry)
{
    struct descent *d = arg;

    return !strncmp(entry, "lower_", 6) && is_above(d->root, entry + 6, d->below, d->depth + 1);
}

/* A bond, bridge or VLAN `upper` that stands, over whatever is between, on `below`. */
static bool is_above(const char *root, const char *upper, const char *below, unsigned depth)
{
    struct descent d = {root, below, depth};

    if (sys_exists(root, "sys/class/net/%s/lower_%s", upper, below))
        return true;
    return depth < DEPTH_MAX && sys_list(root, step_down, &d, "sys/class/net/%s", upper) != 0;
}

/* Does `d` move what the claimed device `c` moves? */
static bool moves_same(const struct path_view *v, const struct path_device *d,
                       const struct path_device *c)
{
    if (c->port)
        return !d->port && c->facts.software && !strcmp(c->facts.interface, d->name);
    if (d->port)
        return !strcmp(d->facts.link_layer, "InfiniBand") && !strcmp(d->facts.interface, c->name);
    return is_above(v->root, d->name, c->name, 0) || is_above(v->root, c->name, d->name, 0);
}

/* Over another interface of the list, which counts the bytes already. */
static bool is_stacked(const struct path_view *v, const struct path_device *d)
{
    for (size_t i = 0; i < v->n && !d->port; i++)
        if (!v->list[i].port && &v->list[i] != d && is_above(v->root, d->name, v->list[i].name, 0))
            return true;
    return false;
}

void path_relate(struct path_view *v)
{
    for (size_t i = 0; i < v->n; i++) {
        struct path_device *d = &v->list[i];
        if (d->claimed)
            continue;
        d->same_bytes = is_stacked(v, d);
        for (size_t k = 0; k < v->n && !d->same_bytes; k++)
            d->same_bytes = v->list[k].claimed && moves_same(v, d, &v->list[k]);
    }
}
