/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends in one process: see net_pair.h. */
#include "net_pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/group/channel.h"

struct net_point net_pair_point(const char *transport, unsigned connections)
{
    struct net_point p = {.stream = {1, 0},
                          .connections = connections,
                          .threads = connections,
                          .message_bytes = 65536,
                          .ping_bytes = 1,
                          .seed = 42,
                          .rdma = {.depth = 16, .inline_bytes = -1, .gid_index = -1}};

    snprintf(p.transport, sizeof(p.transport), "%s", transport);
    return p;
}

int net_pair_channels(struct channel *channels[NET_PAIR_ENDS])
{
    int fds[NET_PAIR_ENDS];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return -errno;
    for (int i = 0; i < NET_PAIR_ENDS; i++) {
        struct fd_channel *c = fd_channel_new(&fd_channel_local_ops, fds[i], NULL);
        snprintf(c->base.peer, sizeof(c->base.peer), "the %s", i ? "leader" : "peer");
        channels[i] = (struct channel *)c;
    }
    return 0;
}

static int first_error(const struct net_pair *pair)
{
    for (int i = 0; i < NET_PAIR_ENDS; i++)
        if (atomic_load(&pair->ends[i].error_code))
            return atomic_load(&pair->ends[i].error_code);
    return 0;
}

const char *net_pair_error(const struct net_pair *pair)
{
    return pair->ends[0].error[0] ? pair->ends[0].error : pair->ends[1].error;
}

/* What fails at one end ends the other, as the engine's channel would tell it. */
static void give_up(struct net_pair *pair)
{
    for (int i = 0; i < NET_PAIR_ENDS; i++)
        atomic_store(&pair->ends[i].give_up, true);
}

static int prepare_end(struct net_pair *pair, int i, const struct wire_ops *ops)
{
    struct net_end *e = &pair->ends[i];
    unsigned usable = topo_cpus(pair->topo);

    e->ops = ops;
    e->point = &pair->point;
    e->local = &pair->locals[i];
    e->topo = pair->topo;
    e->channel = pair->channels[i];
    e->leader = i == NET_PAIR_LEADER;
    e->same_machine = true;
    e->memory_node = -1;
    pthread_mutex_init(&e->error_lock, NULL);
    e->counts = aligned_alloc(64, (pair->point.connections + 1) * sizeof(*e->counts));
    memset(e->counts, 0, (pair->point.connections + 1) * sizeof(*e->counts));
    e->expect = calloc(pair->point.connections + 1, sizeof(*e->expect));
    int err = net_wire_open(e);
    if (err)
        return err;
    e->n_cpus = usable < NET_WORKERS_MAX ? usable : NET_WORKERS_MAX;
    return topo_spread(pair->topo, -1, e->n_cpus, e->cpus);
}

int net_pair_prepare(struct net_pair *pair, const struct wire_ops *ops,
                     const struct net_point *point, const struct net_local *leader,
                     const struct net_local *peer)
{
    struct net_local nothing = {.node = NET_NODE_NEAR, .memory = "host"};

    memset(pair, 0, sizeof(*pair));
    pair->point = *point;
    pair->locals[NET_PAIR_LEADER] = leader ? *leader : nothing;
    pair->locals[NET_PAIR_PEER] = peer ? *peer : nothing;
    int err = topo_open(&pair->topo);
    if (!err)
        err = net_pair_channels(pair->channels);
    for (int i = 0; i < NET_PAIR_ENDS && !err; i++)
        err = prepare_end(pair, i, ops);
    return err;
}

/* One call at each end, at once. */
struct call {
    struct net_pair *pair;
    int (*fn)(struct net_pair *pair, struct net_end *e, void *arg);
    void *arg;
    int err;
};

static void *call_peer(void *arg)
{
    struct call *c = arg;

    c->err = c->fn(c->pair, &c->pair->ends[NET_PAIR_PEER], c->arg);
    if (c->err)
        give_up(c->pair);
    return NULL;
}

static int call_both(struct net_pair *pair,
                     int (*fn)(struct net_pair *pair, struct net_end *e, void *arg), void *arg)
{
    struct call peer = {pair, fn, arg, 0};
    pthread_t thread;

    if (pthread_create(&thread, NULL, call_peer, &peer))
        return -EAGAIN;
    int err = fn(pair, &pair->ends[NET_PAIR_LEADER], arg);
    if (err)
        give_up(pair);
    pthread_join(thread, NULL);
    if (!first_error(pair)) /* an end that fails without net_fail() still fails */
        return err ? err : peer.err;
    return first_error(pair);
}

enum { NO_ADDRESS, ADDRESS };

static int receive_address(struct net_end *e, char *address, size_t *len)
{
    uint16_t type = NO_ADDRESS;
    int err = channel_recv(e->channel, &type, address, NET_ADDRESS_MAX, len, CHANNEL_WAIT_NS);

    return err ? err : type == ADDRESS ? 0 : -ECANCELED;
}

static int send_address(struct net_end *e)
{
    char *own = malloc(NET_ADDRESS_MAX);
    size_t len = NET_ADDRESS_MAX;
    int err = net_address(e, own, &len);
    int sent = channel_send(e->channel, err ? NO_ADDRESS : ADDRESS, own, err ? 0 : len);

    free(own);
    return err ? err : sent;
}

/* As the engine does: the peer's address first, the leader's in answer. */
static int join_end(struct net_pair *pair, struct net_end *e, void *arg)
{
    char *address = malloc(NET_ADDRESS_MAX);
    size_t len = 0;
    int err = e->leader ? receive_address(e, address, &len) : send_address(e);

    (void)pair;
    (void)arg;
    if (!err)
        err = e->leader ? send_address(e) : receive_address(e, address, &len);
    if (!err)
        err = net_join(e, address, len);
    free(address);
    return err;
}

int net_pair_join(struct net_pair *pair)
{
    return call_both(pair, join_end, NULL);
}

int net_pair_open(struct net_pair *pair, const struct wire_ops *ops, const struct net_point *point,
                  const struct net_local *leader, const struct net_local *peer)
{
    int err = net_pair_prepare(pair, ops, point, leader, peer);

    return err ? err : net_pair_join(pair);
}

static void *run_worker(void *arg)
{
    struct net_worker *w = arg;
    int err = net_work(w);

    if (err)
        net_fail(w->end, err, "a worker ended with %d and no text", err);
    return NULL;
}

int net_pair_begin(struct net_pair *pair)
{
    pair->stream_ns = clock_now_ns();
    for (int i = 0; i < NET_PAIR_ENDS; i++) {
        struct net_end *e = &pair->ends[i];
        atomic_store(&e->stop_sending, false);
        atomic_store(&e->expect_known, false);
        net_workers_make(e);
        for (unsigned k = 0; k < e->n_workers; k++)
            e->workers[k].started =
                (e->workers[k].sends || !pair->deaf) &&
                !pthread_create(&e->workers[k].thread, NULL, run_worker, &e->workers[k]);
    }
    return first_error(pair);
}

static void join_workers(struct net_pair *pair, bool sends)
{
    for (int i = 0; i < NET_PAIR_ENDS; i++)
        for (unsigned k = 0; k < pair->ends[i].n_workers; k++) {
            struct net_worker *w = &pair->ends[i].workers[k];
            if (!w->started || w->sends != sends)
                continue;
            pthread_join(w->thread, NULL);
            w->started = false;
            if (first_error(pair))
                give_up(pair);
        }
}

static void tell_expected(struct net_pair *pair)
{
    for (int i = 0; i < NET_PAIR_ENDS; i++) {
        struct net_end *e = &pair->ends[i], *other = &pair->ends[!i];
        for (unsigned k = 0; k <= pair->point.connections; k++)
            e->expect[k] = atomic_load(&other->counts[k].sent);
        atomic_store(&e->expect_known, true);
    }
}

/* Adds up the tallies of those that count a direction, and finds the last arrival. */
static void add_tallies(struct net_pair *pair, uint64_t *bytes)
{
    uint64_t last_ns = pair->stream_ns;

    bytes[NET_FORWARD] = bytes[NET_REVERSE] = 0;
    for (int i = 0; i < NET_PAIR_ENDS; i++)
        for (unsigned k = 0; k < pair->ends[i].n_workers; k++) {
            struct net_worker *w = &pair->ends[i].workers[k];
            if (w->sends != net_counted_by_sender(&pair->ends[i]))
                continue;
            bytes[w->direction] += atomic_load(&w->tally.bytes);
            uint64_t at_ns = atomic_load(&w->tally.last_ns);
            last_ns = at_ns > last_ns ? at_ns : last_ns;
        }
    pair->stream_ns = last_ns - pair->stream_ns;
}

int net_pair_end(struct net_pair *pair, uint64_t *bytes)
{
    for (int i = 0; i < NET_PAIR_ENDS; i++)
        atomic_store(&pair->ends[i].stop_sending, true);
    if (first_error(pair))
        give_up(pair);
    join_workers(pair, true);
    tell_expected(pair);
    join_workers(pair, false);
    add_tallies(pair, bytes);
    return first_error(pair);
}

int net_pair_stream(struct net_pair *pair, unsigned ms, uint64_t *bytes)
{
    uint64_t until_ns = clock_now_ns() + (uint64_t)ms * 1000000;

    net_pair_begin(pair);
    while (clock_now_ns() < until_ns && !first_error(pair))
        usleep(2000);
    return net_pair_end(pair, bytes);
}

/* Since the last stream: `expect` still says what had been sent by then. */
static bool has_passed(const struct net_pair *pair, int direction)
{
    int leads = direction == NET_FORWARD;
    const struct net_end *from = &pair->ends[leads ? NET_PAIR_LEADER : NET_PAIR_PEER];
    const struct net_end *to = &pair->ends[leads ? NET_PAIR_PEER : NET_PAIR_LEADER];

    for (unsigned i = 0; i < pair->point.connections && pair->point.stream[direction]; i++)
        if (atomic_load(&from->counts[i].sent) <= to->expect[i] &&
            atomic_load(&to->counts[i].received) <= to->expect[i])
            return false;
    return true;
}

int net_pair_some(struct net_pair *pair, uint64_t *bytes)
{
    uint64_t until_ns = clock_now_ns() + 60000000000u;

    net_pair_begin(pair);
    while (!(has_passed(pair, NET_FORWARD) && has_passed(pair, NET_REVERSE)) &&
           !first_error(pair) && clock_now_ns() < until_ns)
        usleep(500);
    return net_pair_end(pair, bytes);
}

struct pings {
    size_t n;
    uint64_t *ns;
};

static int ping_end(struct net_pair *pair, struct net_end *e, void *arg)
{
    struct pings *pings = arg;
    int err = 0;

    (void)pair;
    if (!e->leader)
        return net_pong(e);
    for (size_t i = 0; i < pings->n && !err; i++)
        err = net_ping(e, i + 1 == pings->n, &pings->ns[i]);
    return err;
}

int net_pair_ping(struct net_pair *pair, size_t n, uint64_t *ns)
{
    struct pings pings = {n, ns};

    return call_both(pair, ping_end, &pings);
}

static int check_end(struct net_pair *pair, struct net_end *e, void *arg)
{
    (void)pair;
    (void)arg;
    return net_check(e);
}

int net_pair_check(struct net_pair *pair)
{
    return call_both(pair, check_end, NULL);
}

void net_pair_close(struct net_pair *pair)
{
    for (int i = 0; i < NET_PAIR_ENDS; i++) {
        struct net_end *e = &pair->ends[i];
        net_wire_close(e);
        channel_close(pair->channels[i]);
        free(e->workers);
        free(e->counts);
        free(e->expect);
    }
    topo_close(pair->topo);
}
