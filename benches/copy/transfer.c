/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers, their buffers and the two processes between which they go: see transfer.h. */
#include "benches/copy/transfer.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/group/channel.h"
#include "core/hw/host_kernels.h"
#include "core/hw/machine.h"
#include "core/hw/topo.h"
#include "core/rng.h"

/* ---- A group of two processes on this machine ---- */

#define TURNS_A_LOOK       1024  /* some tens of us */
#define TURNS_BEFORE_SLEEP 20000 /* the peer sleeps between runs, when nothing comes for so long */

struct control {
    _Alignas(64) _Atomic uint32_t generation; /* one more for each run; a futex */
    group_fn *fn;                             /* the same address in both: the peer is a fork */
    uint64_t count;
    _Alignas(64) _Atomic uint32_t ready, done; /* the peer's: generation it has started, ended */
    _Atomic int error;                         /* of the peer, before it exits */
    struct group_times times;
    _Alignas(64) char shared[];
};

struct group {
    struct control *control;
    size_t bytes;
    void *arg;
    const struct topo *topo;
    const unsigned *cpus;
    struct channel *channel; /* to the other one */
    unsigned rank;
};

unsigned group_rank(const struct group *g)
{
    return g->rank;
}

/* Only the parent looks: without it there is no child. */
static int look_at_peer(struct group *g)
{
    int error = g->rank ? 0 : atomic_load(&g->control->error);

    return error || g->rank ? error : channel_alive(g->channel);
}

/* Is the other still there, and does it move? 0 or an error as of group_run(). */
static int look(struct group *g, struct group_wait *wait)
{
    uint64_t now_ns = clock_now_ns();

    if (!wait->since_ns)
        wait->since_ns = now_ns;
    return now_ns - wait->since_ns > GROUP_STILL_NS ? -ETIMEDOUT : look_at_peer(g);
}

int group_pause(struct group *g, struct group_wait *wait)
{
    cpu_pause();
    if (++wait->turns % TURNS_A_LOOK)
        return 0;
    sched_yield();
    return look(g, wait);
}

static uint32_t wait_for_next(struct control *c, uint32_t seen)
{
    uint32_t now = seen;

    for (int turns = 0; now == seen && turns < TURNS_BEFORE_SLEEP; turns++) {
        cpu_pause();
        now = atomic_load_explicit(&c->generation, memory_order_acquire);
    }
    while (now == seen) {
        syscall(SYS_futex, &c->generation, FUTEX_WAIT, seen, NULL, NULL, 0);
        now = atomic_load_explicit(&c->generation, memory_order_acquire);
    }
    return now;
}

static int be_the_peer(struct channel *channel, void *arg)
{
    struct group *g = arg;
    struct control *c = g->control;

    g->rank = 1;
    g->channel = channel;
    int err = topo_bind_self(g->topo, g->cpus[1]);
    for (uint32_t seen = 0; !err;) {
        seen = wait_for_next(c, seen);
        c->times = (struct group_times){0};
        atomic_store(&c->ready, seen);
        err = c->fn(g, g->arg, c->count, &c->times);
        if (err)
            atomic_store(&c->error, err);
        atomic_store(&c->done, seen);
    }
    atomic_store(&c->error, err);
    return err;
}

int group_open(struct group **group, const struct topo *topo, const unsigned cpus[2], void *arg,
               size_t shared_bytes)
{
    struct group *g = calloc(1, sizeof(*g));

    if (!g)
        return -ENOMEM;
    int err = topo_bind_self(topo, cpus[0]);
    if (err)
        goto free_group;
    *g = (struct group){
        .arg = arg, .topo = topo, .cpus = cpus, .bytes = sizeof(struct control) + shared_bytes};
    g->control = mmap(NULL, g->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g->control == MAP_FAILED) {
        err = -errno;
        goto free_group;
    }
    err = channel_fork(&g->channel, be_the_peer, g);
    if (err)
        goto unmap;
    *group = g;
    return 0;
unmap:
    munmap(g->control, g->bytes);
free_group:
    free(g);
    return err;
}

void group_close(struct group *g)
{
    if (!g)
        return;
    kill(channel_child(g->channel), SIGKILL); /* it holds nothing that needs an orderly end */
    channel_close(g->channel);
    munmap(g->control, g->bytes);
    free(g);
}

static int wait_until(struct group *g, _Atomic uint32_t *what, uint32_t generation)
{
    struct group_wait wait = {0};
    int err = 0;

    while (!err && atomic_load_explicit(what, memory_order_acquire) != generation)
        err = group_pause(g, &wait);
    return err;
}

int group_run(struct group *g, group_fn *fn, uint64_t count, struct group_times times[2])
{
    struct control *c = g->control;

    c->fn = fn;
    c->count = count;
    times[0] = times[1] = (struct group_times){0};
    uint32_t generation = atomic_fetch_add(&c->generation, 1) + 1;
    syscall(SYS_futex, &c->generation, FUTEX_WAKE, 1, NULL, NULL, 0);
    int err = wait_until(g, &c->ready, generation);
    if (!err)
        err = fn(g, g->arg, count, &times[0]);
    if (!err)
        err = wait_until(g, &c->done, generation);
    times[1] = c->times;
    /* The parent's own error is often that the peer has gone; why it went is the peer's. */
    int peer_error = atomic_load(&c->error);
    return peer_error ? peer_error : err;
}

/* ---- Messages over a wire ---- */

#define ADDRESS    0x4c01u    /* type of the frame that holds it */
#define RING_BYTES (4u << 20) /* larger than a core's own caches */

/* In one direction the ends may sleep, where the system wakes them; in both, one that sleeps until
 * it can send could not receive. */
static int open_link(struct group *g, struct group_link *l, const struct wire_ops *ops,
                     size_t bytes, bool both, int node)
{
    bool sleeps = !both && ops->ways & WIRE_CAN(WIRE_BLOCK);
    struct wire_options options = {.message_most = bytes,
                                   .ring_bytes = RING_BYTES,
                                   .node = node,
                                   .own_cpus = g->cpus[0] != g->cpus[1]};
    char error[WIRE_ERROR_BYTES];
    int rc = world_pair(&l->world, g->channel, g->rank == 1, true, error, sizeof(error));

    rc = rc ? rc : wire_open(&l->wire, ops, l->world, &options, error, sizeof(error));
    rc = rc ? rc : wire_worker(l->wire, sleeps ? WIRE_BLOCK : WIRE_POLL, 0);
    return rc < 0 ? rc : wire_link(l->wire, !g->rank, NULL);
}

/* Of both ranks at once. 0 or -errno; then, too, group_leave() undoes it. */
static int group_join(struct group *g, struct group_link *l, const struct wire_ops *ops,
                      size_t bytes, bool both, int node)
{
    uint8_t own[WIRE_ADDRESS_MAX], theirs[WIRE_ADDRESS_MAX];
    const void *addresses[] = {theirs};
    uint16_t type = 0;
    size_t len = 0;
    int err = open_link(g, l, ops, bytes, both, node);

    err = err ? err : wire_address(l->wire, 0, own, &len);
    err = err ? err : channel_send(g->channel, ADDRESS, own, len);
    err =
        err ? err : channel_recv(g->channel, &type, theirs, sizeof(theirs), &len, CHANNEL_WAIT_NS);
    if (!err && type != ADDRESS)
        err = -EPROTO;
    return err ? err : wire_join(l->wire, addresses, &len);
}

/* After group_close(); a zeroed one is left alone. */
static void group_leave(struct group_link *l)
{
    wire_close(l->wire);
    world_free(l->world);
    *l = (struct group_link){0};
}

typedef int post_fn(struct wire_link *l, void *at, size_t bytes);

static inline int send_one(struct wire_link *l, void *at, size_t bytes)
{
    return wire_send(l, at, bytes);
}

/* As many as may be posted, of those that are left. */
static inline int post(struct wire_link *l, post_fn *one, void *at, size_t bytes, uint64_t *left)
{
    int err = 0;

    while (*left && !(err = one(l, at, bytes)))
        --*left;
    return err == -EAGAIN ? 0 : err;
}

/* One side of `count` messages of `bytes` from `out`, where not NULL, and to `in`, where not NULL,
 * at the same time. *arrived_ns is set when the last one is in. 0 or -errno, also group_pause()'s. */
static int transfer_move(struct wire_link *l, struct group *g, const void *out, void *in,
                         size_t bytes, uint64_t count, uint64_t *arrived_ns)
{
    enum wire_side sides = (out ? WIRE_OUT : 0) | (in ? WIRE_IN : 0);
    uint64_t to_send = out ? count : 0, to_receive = in ? count : 0;
    const uint64_t sent = l->out.messages + to_send, received = l->in.messages + to_receive;
    struct group_wait wait = {0};
    bool arrives = in;
    int rc = post(l, send_one, (void *)(uintptr_t)out, bytes, &to_send);

    if (!rc && out && in) /* it is on its way before anything else is done */
        rc = wire_progress(l->worker, WIRE_OUT, 0);
    while (rc >= 0 && (l->out.messages < sent || l->in.messages < received)) {
        rc = post(l, send_one, (void *)(uintptr_t)out, bytes, &to_send);
        rc = rc ? rc : post(l, wire_receive, in, bytes, &to_receive);
        rc = rc ? rc : wire_progress(l->worker, sides, WIRE_FOREVER);
        if (rc > 0 && arrives && l->in.messages == received) {
            *arrived_ns = clock_now_ns();
            arrives = false;
        }
        if (rc > 0)
            wait = (struct group_wait){0};
        else if (!rc)
            rc = look(g, &wait);
    }
    return rc < 0 ? rc : 0;
}

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
    struct group *group; /* two processes */
    struct group_link link;
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
    t->shared = (void *)g->control->shared;
    lanes_fill(t->lanes, group_rank(g), seed);
    int node = topo_nodes(t->config.topo) > 1 ? (int)t->lanes->ends[group_rank(g)].index : -1;
    return group_join(g, &t->link, t->config.wire, t->lanes->bytes, t->lanes->used == 2, node);
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
    int err =
        transfer_move(t->link.wire->links, g, out, in, t->lanes->bytes, count, &times->arrived_ns);
    check_stamp(t, end);
    return err;
}

static int verify_end(struct group *g, void *arg, uint64_t seed, struct group_times *times)
{
    struct transfer *t = arg;
    unsigned end = group_rank(g);
    void *out = lanes_out(t->lanes, end), *in = lanes_in(t->lanes, end);

    lanes_fill(t->lanes, end, seed);
    int err =
        transfer_move(t->link.wire->links, g, out, in, t->lanes->bytes, 1, &times->arrived_ns);
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
    int err = group_open(&t->group, t->config.topo, t->config.cpus, t, sizeof(struct shared));

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
    int err = config->wire ? open_processes(t) : open_threads(t);
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
    group_leave(&t->link);
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
        t->link.wire->ops->describe(t->link.wire, how, sizeof(how));
    if (t->group)
        snprintf(text, len, "cpu%u to cpu%u, %s", cpus[0], cpus[1], how);
    else if (t->lanes->used == 2)
        snprintf(text, len, "forward by cpu%u, back by cpu%u", cpus[0], cpus[1]);
    else
        snprintf(text, len, "by cpu%u", cpus[0]);
    return text;
}
