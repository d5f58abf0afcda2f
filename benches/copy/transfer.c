/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers and their buffers: see transfer.h. */
#include "benches/copy/transfer.h"

#include <string.h>

#include "core/hw/host_kernels.h"
#include "core/hw/topo.h"
#include "core/rng.h"

static uint64_t lane_seed(uint64_t seed, unsigned lane)
{
    return 2 * seed + lane;
}

int transfer_alloc(struct transfer *t, const struct topo *topo, enum host_pages memory, char *error,
                   size_t len)
{
    bool bind = topo_nodes(topo) > 1; /* else there is no need, and containers may refuse */
    int err = 0;

    for (unsigned i = 0; !err && i < t->used; i++) {
        int from = bind ? (int)t->ends[i].index : -1, to = bind ? (int)t->ends[1 - i].index : -1;
        err = host_alloc(&t->lane[i].src, topo, t->bytes, memory, from, error, len);
        if (!err)
            err = host_alloc(&t->lane[i].dst, topo, t->bytes, memory, to, error, len);
    }
    return err;
}

void *transfer_out(const struct transfer *t, unsigned end)
{
    return end < t->used ? t->lane[end].src.at : NULL;
}

void *transfer_in(const struct transfer *t, unsigned end)
{
    return 1 - end < t->used ? t->lane[1 - end].dst.at : NULL;
}

void transfer_fill(const struct transfer *t, unsigned end, uint64_t seed)
{
    if (transfer_out(t, end))
        pattern_fill(transfer_out(t, end), t->bytes, lane_seed(seed, end));
    if (transfer_in(t, end))
        memset(transfer_in(t, end), 0x55, t->bytes);
}

void transfer_where(const struct transfer *t, unsigned end, struct host_where *where)
{
    struct host_buffer buffers[2];
    size_t n = 0;

    if (transfer_out(t, end))
        buffers[n++] = t->lane[end].src;
    if (transfer_in(t, end))
        buffers[n++] = t->lane[1 - end].dst;
    host_where(buffers, n, where);
}

static void copy_lane(void *arg, unsigned thread, unsigned threads)
{
    struct transfer *t = arg;

    (void)threads;
    copy_by_memcpy(transfer_in(t, 1 - thread), transfer_out(t, thread), t->bytes, t->count);
}

int transfer_open(struct transfer *t, const struct topo *topo, const unsigned cpus[2],
                  uint64_t seed)
{
    transfer_fill(t, 0, seed);
    transfer_fill(t, 1, seed);
    return team_open(&t->team, topo, cpus, t->used);
}

void transfer_close(struct transfer *t)
{
    team_close(t->team);
    for (unsigned i = 0; i < t->used; i++) {
        host_free(&t->lane[i].src);
        host_free(&t->lane[i].dst);
    }
}

void transfer_run(struct transfer *t, uint64_t count, uint64_t ns[3])
{
    uint64_t each[2], all;

    t->count = count;
    t->number++;
    for (unsigned end = 0; end < t->used; end++)
        pattern_stamp(transfer_out(t, end), t->bytes, t->number + (t->corrupt && !end ? 1 : 0));
    team_run(t->team, copy_lane, t, &all, each);
    for (unsigned end = 0; end < t->used; end++)
        t->wrong +=
            pattern_check_stamp(transfer_in(t, 1 - end), t->bytes, t->number) != PATTERN_RIGHT;
    ns[0] = each[0];
    if (t->used == 2) {
        ns[1] = each[1];
        ns[2] = all;
    }
}

void transfer_verify(struct transfer *t, uint64_t seed)
{
    uint64_t ns;

    transfer_fill(t, 0, seed);
    transfer_fill(t, 1, seed);
    t->count = 1;
    team_run(t->team, copy_lane, t, &ns, NULL);
    for (unsigned end = 0; end < 2; end++)
        if (transfer_in(t, end))
            t->wrong += pattern_check(transfer_in(t, end), t->bytes, lane_seed(seed, 1 - end)) !=
                        PATTERN_RIGHT;
}
