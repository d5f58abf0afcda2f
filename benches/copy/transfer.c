/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between two ends, and their buffers: see transfer.h. */
#include "benches/copy/transfer.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/hw/host_kernels.h"
#include "core/hw/team.h"
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

size_t lanes_check(const struct lanes *l, unsigned end, uint64_t seed)
{
    if (!lanes_in(l, end))
        return PATTERN_RIGHT;
    return pattern_check(lanes_in(l, end), l->bytes, lane_seed(seed, 1 - end));
}

/* Where an end's pages lie, for a process in which they are touched. */
static void lanes_where(const struct lanes *l, unsigned end, struct host_where *where)
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

#define SETTLE_NS    20000u /* longer than a receiver takes to go to sleep */
#define DEATH_NUMBER 5      /* of the message at which the peer dies, when it is to */

/* What both processes see. */
struct shared {
    uint64_t number; /* of the run: what the stamps must say */
    _Atomic uint64_t wrong;
    struct host_where where[2];
};

struct transfer {
    struct transfer_config config;
    const struct lanes *lanes;
    struct shared *shared;
    struct team *team; /* memcpy */
    struct shared own;
    uint64_t count;
    struct transport transport; /* two processes */
    struct group *group;
};

static void stamp(const struct transfer *t, unsigned end)
{
    uint64_t number = t->shared->number;
    bool spoil = t->config.fault == TRANSFER_CORRUPT && end == 0;

    if (lanes_out(t->lanes, end))
        pattern_stamp(lanes_out(t->lanes, end), t->lanes->bytes, number + (spoil ? 1 : 0));
}

static void check_stamp(const struct transfer *t, unsigned end)
{
    const void *in = lanes_in(t->lanes, end);

    if (in && pattern_check_stamp(in, t->lanes->bytes, t->shared->number) != PATTERN_RIGHT)
        atomic_fetch_add(&t->shared->wrong, 1);
}

static void check_all(const struct transfer *t, unsigned end, uint64_t seed)
{
    if (lanes_check(t->lanes, end, seed) != PATTERN_RIGHT)
        atomic_fetch_add(&t->shared->wrong, 1);
}

/* Two processes: each runs these for its own end. */

static int prepare_end(struct group *g, void *arg, uint64_t seed, struct group_times *times)
{
    struct transfer *t = arg;

    (void)times;
    t->group = g;
    t->transport.group = g;
    t->shared = group_shared(g);
    lanes_fill(t->lanes, group_rank(g), seed);
    return t->transport.ops->attach(&t->transport);
}

static int move_end(struct group *g, void *arg, uint64_t count, struct group_times *times)
{
    struct transfer *t = arg;
    unsigned end = group_rank(g);
    void *out = lanes_out(t->lanes, end), *in = lanes_in(t->lanes, end);

    if (t->config.fault == TRANSFER_PEER_DIES && end == 1 && t->shared->number == DEATH_NUMBER)
        raise(SIGKILL);
    stamp(t, end);
    times->begin_ns = clock_now_ns();
    if (t->config.settle && out)
        for (uint64_t at = times->begin_ns + SETTLE_NS; times->begin_ns < at;)
            times->begin_ns = clock_now_ns();
    int err = transport_move(&t->transport, out, in, t->lanes->bytes, count, &times->arrived_ns);
    check_stamp(t, end);
    return err;
}

static int verify_end(struct group *g, void *arg, uint64_t seed, struct group_times *times)
{
    struct transfer *t = arg;
    unsigned end = group_rank(g);
    void *out = lanes_out(t->lanes, end), *in = lanes_in(t->lanes, end);

    lanes_fill(t->lanes, end, seed);
    int err = transport_move(&t->transport, out, in, t->lanes->bytes, 1, &times->arrived_ns);
    if (!err)
        check_all(t, end, seed);
    return err;
}

static int look_at_end(struct group *g, void *arg, uint64_t count, struct group_times *times)
{
    struct transfer *t = arg;

    (void)count;
    (void)times;
    lanes_where(t->lanes, group_rank(g), &t->shared->where[group_rank(g)]);
    return 0;
}

static int open_processes(struct transfer *t)
{
    struct group_times times[2];

    t->transport = (struct transport){.ops = t->config.transport, .both = t->lanes->used == 2};
    int err = t->transport.ops->open(&t->transport);
    if (!err)
        err = group_open(&t->group, t->config.topo, t->config.cpus, t, sizeof(struct shared));
    if (!err)
        err = group_run(t->group, prepare_end, t->config.seed, times);
    if (!err)
        err = group_run(t->group, move_end, 1, times);
    return err;
}

/* The receiver's reading of the machine's one clock against the sender's. */
static int run_processes(struct transfer *t, uint64_t count, uint64_t ns[3])
{
    struct group_times at[2];
    int err = group_run(t->group, move_end, count, at);

    if (err)
        return err;
    ns[0] = at[1].arrived_ns - at[0].begin_ns;
    if (t->lanes->used == 2) {
        uint64_t begin = at[0].begin_ns < at[1].begin_ns ? at[0].begin_ns : at[1].begin_ns;
        uint64_t end = at[0].arrived_ns > at[1].arrived_ns ? at[0].arrived_ns : at[1].arrived_ns;
        ns[1] = at[0].arrived_ns - at[1].begin_ns;
        ns[2] = end - begin;
    }
    return 0;
}

/* One process: thread 0 copies forward, thread 1 back. */

static void copy_lane(void *arg, unsigned thread, unsigned threads)
{
    struct transfer *t = arg;

    (void)threads;
    copy_by_memcpy(lanes_in(t->lanes, 1 - thread), lanes_out(t->lanes, thread), t->lanes->bytes,
                   t->count);
}

static int run_threads(struct transfer *t, uint64_t count, uint64_t ns[3])
{
    uint64_t each[2], all;

    t->count = count;
    stamp(t, 0);
    stamp(t, 1);
    team_run(t->team, copy_lane, t, &all, each);
    check_stamp(t, 0);
    check_stamp(t, 1);
    ns[0] = each[0];
    if (t->lanes->used == 2) {
        ns[1] = each[1];
        ns[2] = all;
    }
    return 0;
}

static int open_threads(struct transfer *t)
{
    t->shared = &t->own;
    lanes_fill(t->lanes, 0, t->config.seed);
    lanes_fill(t->lanes, 1, t->config.seed);
    return team_open(&t->team, t->config.topo, t->config.cpus, t->lanes->used);
}

int transfer_open(struct transfer **transfer, const struct transfer_config *config)
{
    struct transfer *t = calloc(1, sizeof(*t));

    if (!t)
        return -ENOMEM;
    t->config = *config;
    t->lanes = config->lanes;
    int err = config->transport ? open_processes(t) : open_threads(t);
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
    group_close(t->group);
    if (t->transport.ops)
        t->transport.ops->close(&t->transport);
    team_close(t->team);
    free(t);
}

int transfer_run(struct transfer *t, uint64_t count, uint64_t ns[3])
{
    t->shared->number++;
    return t->group ? run_processes(t, count, ns) : run_threads(t, count, ns);
}

int transfer_verify(struct transfer *t, uint64_t seed)
{
    uint64_t ns;

    if (t->group) {
        struct group_times times[2];
        return group_run(t->group, verify_end, seed, times);
    }
    lanes_fill(t->lanes, 0, seed);
    lanes_fill(t->lanes, 1, seed);
    t->count = 1;
    team_run(t->team, copy_lane, t, &ns, NULL);
    check_all(t, 0, seed);
    check_all(t, 1, seed);
    return 0;
}

uint64_t transfer_wrong(const struct transfer *t)
{
    return atomic_load(&t->shared->wrong);
}

int transfer_where(struct transfer *t, struct host_where where[2])
{
    struct group_times times[2];
    int err = t->group ? group_run(t->group, look_at_end, 0, times) : 0;

    for (unsigned end = 0; end < 2; end++) {
        if (t->group)
            where[end] = t->shared->where[end];
        else
            lanes_where(t->lanes, end, &where[end]);
    }
    return err;
}

const char *transfer_describe(const struct transfer *t, char *text, size_t len)
{
    const unsigned *cpus = t->config.cpus;
    char how[64] = "";

    if (t->group)
        t->transport.ops->describe(&t->transport, how, sizeof(how));
    if (t->group)
        snprintf(text, len, "cpu%u to cpu%u, %s", cpus[0], cpus[1], how);
    else if (t->lanes->used == 2)
        snprintf(text, len, "forward by cpu%u, back by cpu%u", cpus[0], cpus[1]);
    else
        snprintf(text, len, "by cpu%u", cpus[0]);
    return text;
}
