/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers and their buffers: see transfer.h. */
#include "benches/copy/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hw/host_kernels.h"
#include "core/hw/topo.h"
#include "core/rng.h"

/* ---- Buffers of a transfer ---- */

static uint64_t lane_seed(uint64_t seed, unsigned lane)
{
    return 2 * seed + lane;
}

int lanes_alloc(struct lanes *l, const struct topo *topo, enum host_pages memory, char *error,
                size_t len)
{
    bool bind = topo_nodes(topo) > 1; /* else there is no need, and containers may refuse */
    int err = 0;

    for (unsigned i = 0; !err && i < l->used; i++) {
        int from = bind ? (int)l->ends[i].index : -1, to = bind ? (int)l->ends[1 - i].index : -1;
        err = host_alloc(&l->lane[i].src, topo, l->bytes, memory, from, error, len);
        if (!err)
            err = host_alloc(&l->lane[i].dst, topo, l->bytes, memory, to, error, len);
    }
    return err;
}

void lanes_free(struct lanes *l)
{
    for (unsigned i = 0; i < l->used; i++) {
        host_free(&l->lane[i].src);
        host_free(&l->lane[i].dst);
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

/* Is what an end received the other's pattern? The first wrong byte, or PATTERN_RIGHT. */
static size_t lanes_check(const struct lanes *l, unsigned end, uint64_t seed)
{
    if (!lanes_in(l, end))
        return PATTERN_RIGHT;
    return pattern_check(lanes_in(l, end), l->bytes, lane_seed(seed, 1 - end));
}

void lanes_where(const struct lanes *l, unsigned end, struct host_where *where)
{
    struct host_buffer buffers[2];
    size_t n = 0;

    if (lanes_out(l, end))
        buffers[n++] = l->lane[end].src;
    if (lanes_in(l, end))
        buffers[n++] = l->lane[1 - end].dst;
    host_where(buffers, n, where);
}

/* ---- Transfers ---- */

struct transfer {
    struct transfer_config config;
    const struct lanes *lanes;
    struct team *team;
    uint64_t count;
    uint64_t number; /* of the run: what the stamps must say */
    uint64_t wrong;
};

static void copy_lane(void *arg, unsigned thread, unsigned threads)
{
    struct transfer *t = arg;

    (void)threads;
    copy_by_memcpy(lanes_in(t->lanes, 1 - thread), lanes_out(t->lanes, thread), t->lanes->bytes,
                   t->count);
}

int transfer_open(struct transfer **transfer, const struct transfer_config *config)
{
    struct transfer *t = xcalloc(1, sizeof(*t));

    t->config = *config;
    t->lanes = config->lanes;
    lanes_fill(t->lanes, 0, config->seed);
    lanes_fill(t->lanes, 1, config->seed);
    int err = team_open(&t->team, config->topo, config->cpus, t->lanes->used);
    if (err)
        transfer_close(t);
    else
        *transfer = t;
    return err;
}

void transfer_close(struct transfer *t)
{
    if (!t)
        return;
    team_close(t->team);
    free(t);
}

void transfer_run(struct transfer *t, uint64_t count, uint64_t ns[3])
{
    const size_t bytes = t->lanes->bytes;
    uint64_t each[2], all;

    t->count = count;
    t->number++;
    for (unsigned end = 0; end < t->lanes->used; end++)
        pattern_stamp(lanes_out(t->lanes, end), bytes,
                      t->number + (t->config.corrupt && !end ? 1 : 0));
    team_run(t->team, copy_lane, t, &all, each);
    for (unsigned end = 0; end < t->lanes->used; end++)
        t->wrong +=
            pattern_check_stamp(lanes_in(t->lanes, 1 - end), bytes, t->number) != PATTERN_RIGHT;
    ns[0] = each[0];
    if (t->lanes->used == 2) {
        ns[1] = each[1];
        ns[2] = all;
    }
}

void transfer_verify(struct transfer *t, uint64_t seed)
{
    uint64_t ns;

    lanes_fill(t->lanes, 0, seed);
    lanes_fill(t->lanes, 1, seed);
    t->count = 1;
    team_run(t->team, copy_lane, t, &ns, NULL);
    for (unsigned end = 0; end < 2; end++)
        t->wrong += lanes_check(t->lanes, end, seed) != PATTERN_RIGHT;
}

uint64_t transfer_wrong(const struct transfer *t)
{
    return t->wrong;
}
