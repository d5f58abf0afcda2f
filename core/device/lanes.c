/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of a transfer: see lanes.h. */
#include "core/device/lanes.h"

#include <string.h>

#include "core/pattern.h"

static uint64_t lane_seed(uint64_t seed, unsigned lane)
{
    return 2 * seed + lane;
}

int lanes_alloc(struct lanes *l, const struct topo *topo, enum device_memory memory, char *error,
                size_t len)
{
    bool bind = topo_nodes(topo) > 1; /* else there is no need, and containers may refuse */
    int err = 0;

    for (unsigned i = 0; !err && i < l->used; i++) {
        const struct place *from = &l->ends[i], *to = &l->ends[1 - i];
        err = from->device->alloc(&l->lane[i].src, topo, l->bytes, memory,
                                  bind ? (int)from->index : -1, error, len);
        if (!err)
            err = to->device->alloc(&l->lane[i].dst, topo, l->bytes, memory,
                                    bind ? (int)to->index : -1, error, len);
    }
    return err;
}

void lanes_free(struct lanes *l)
{
    for (unsigned i = 0; i < l->used; i++) {
        if (l->lane[i].src.at) /* else the end may not even have a device */
            l->ends[i].device->free(&l->lane[i].src);
        if (l->lane[i].dst.at)
            l->ends[1 - i].device->free(&l->lane[i].dst);
    }
}

void *lanes_out(const struct lanes *l, unsigned end)
{
    return end < l->used ? l->lane[end].src.at : NULL;
}

void *lanes_in(const struct lanes *l, unsigned end)
{
    return 1 - end < l->used ? l->lane[1 - end].dst.at : NULL;
}

void lanes_fill(const struct lanes *l, unsigned end, uint64_t seed)
{
    if (lanes_out(l, end))
        pattern_fill(lanes_out(l, end), l->bytes, lane_seed(seed, end));
    if (lanes_in(l, end))
        memset(lanes_in(l, end), 0x55, l->bytes);
}

size_t lanes_check(const struct lanes *l, unsigned end, uint64_t seed)
{
    if (!lanes_in(l, end))
        return PATTERN_RIGHT;
    return pattern_check(lanes_in(l, end), l->bytes, lane_seed(seed, 1 - end));
}

void lanes_where(const struct lanes *l, unsigned end, struct device_where *where)
{
    struct device_buffer buffers[2];
    size_t n = 0;

    if (lanes_out(l, end))
        buffers[n++] = l->lane[end].src;
    if (lanes_in(l, end))
        buffers[n++] = l->lane[1 - end].dst;
    l->ends[end].device->where(buffers, n, where);
}
