/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of an end: their buffers, their links, and what all threads do with one. */
#include "benches/net/mover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"

#define RECEIVE_LEAST ((size_t)128 << 10) /* a receive has so many bytes, or one message */
#define LOOK_NS       50000000u           /* between two looks whether the other end lives */
#define STALL_NS      1000000000u         /* of messages: then signs of life are looked at, too */
#define RING_BYTES    4194304u            /* of shared memory: larger than the caches of one core */

/* Why it ended: an error of any thread, or the other end gave up. */
static int over(const struct net_end *e)
{
    int err = atomic_load(&e->error_code);

    return err ? err : -ECANCELED;
}

int net_wire_failed(struct net_end *e, int err)
{
    if (err == -ECANCELED && net_over(e))
        return err;
    return net_fail(e, err, "%s", e->wire->error);
}

/* The leader finds out while nothing moves, from any thread, whether the peer is silent. */
static bool net_unheard(struct net_end *e)
{
    char text[NET_ERROR_BYTES];

    return e->leader && channel_unheard(e->channel, BEAT_LED_NS, text, sizeof(text)) &&
           net_fail(e, -EHOSTUNREACH, "%s", text);
}

int net_stood_still(struct net_end *e, const struct net_connection *c, int rc,
                    struct clock_wait *still)
{
    uint64_t still_ns = clock_waited_ns(still);

    if (net_over(e))
        return over(e);
    if (rc < 0)
        return net_wire_failed(e, rc);
    if (still_ns > STALL_NS && net_unheard(e))
        return over(e);
    if (still_ns < e->still_ns)
        return 0;
    return net_fail(e, -ETIMEDOUT,
                    "nothing moved on connection %u between here and %s for %.3g s over '%s': its "
                    "process was stopped or hangs, or the link is down",
                    c->number, channel_peer(e->channel), (double)e->still_ns / 1e9,
                    e->rails[net_rail_of(e, c->number)].name);
}

int net_settle(struct net_end *e, struct net_connection *c)
{
    struct clock_wait still = {0};
    int rc = e->wire->ops->settle ? 0 : 1, err = 0;

    while (rc <= 0 && !err) {
        rc = e->wire->ops->settle(c->link);
        err = rc <= 0 ? net_stood_still(e, c, rc, &still) : 0;
    }
    return err;
}

uint64_t net_seed(const struct net_end *e, const struct net_connection *c, enum wire_side side,
                  unsigned round)
{
    bool forward = (side == WIRE_OUT) == e->leader;

    return e->point->seed + 0x9e3779b97f4a7c15u * (1 + c->number) + 0xd1b54a32d192ed03u * round +
           (forward ? NET_FORWARD : NET_REVERSE);
}

void net_ready_out(struct net_end *e, struct net_connection *c)
{
    if (!c->out_ready)
        pattern_fill(c->out, c->message_bytes, net_seed(e, c, WIRE_OUT, 0));
    c->out_ready = true;
}

void net_ready_in(struct net_connection *c)
{
    if (!c->in_ready)
        memset(c->in, 0, c->in_bytes);
    c->in_ready = true;
}

/* ---- Opened and closed ---- */

/* Does anything go that way on that connection? A ping that is read comes, and nothing goes. */
static bool goes(const struct net_end *e, const struct net_connection *c, enum net_direction d)
{
    if (c->ping)
        return d == NET_REVERSE || !net_ping_is_read(e);
    return e->point->stream[d];
}

/* Small messages arrive many at once where bytes have no bounds, in a buffer of whole ones. */
static void set_sizes(const struct net_end *e, struct net_connection *c, unsigned number)
{
    bool ping = number == e->point->connections;
    uint64_t bytes = ping ? e->point->ping_bytes : e->point->message_bytes;
    bool many = !ping && e->ops->streams && bytes < RECEIVE_LEAST;

    *c = (struct net_connection){.number = number, .ping = ping, .message_bytes = bytes};
    for (int d = 0; d < NET_DIRECTIONS; d++) {
        if (!goes(e, c, (enum net_direction)d))
            continue;
        if (net_sends(e, (enum net_direction)d))
            c->out_bytes = bytes;
        else
            c->in_bytes = bytes * (many ? RECEIVE_LEAST / bytes : 1);
    }
}

static void make_connections(struct net_end *e)
{
    const struct net_point *p = e->point;

    e->still_ns = net_still_ns(e);
    e->first = net_streams(e->point) ? 0 : p->connections;
    e->n = p->connections + (p->ping ? 1 : 0) - e->first;
    e->connections = xaligned(_Alignof(struct net_connection), e->n * sizeof(*e->connections));
    for (unsigned i = 0; i < e->n; i++)
        set_sizes(e, &e->connections[i], e->first + i);
}

/* While connections are made: is all over, or has the other end ended? */
static int attend(void *arg)
{
    struct net_end *e = arg;
    uint64_t now_ns = clock_now_ns();

    if (net_over(e))
        return -ECANCELED;
    if (now_ns - e->looked_ns < LOOK_NS)
        return 0;
    e->looked_ns = now_ns;
    if (net_unheard(e))
        return over(e);
    return channel_alive(e->channel)
               ? net_fail(e, -ECONNRESET, "%s ended before its data connections were made",
                          channel_peer(e->channel))
               : 0;
}

/* A rail's streams, over its share of the threads. */
static void add_shares(struct net_end *e, unsigned rail, unsigned first, unsigned end)
{
    unsigned threads = net_rail_threads(e->point, e->n_rails, end - first), from = first;

    for (unsigned k = 0; k < threads && e->n_shares < NET_WORKERS_MAX; k++) {
        unsigned to = first + (end - first) * (k + 1) / threads;
        e->shares[e->n_shares++] = (struct net_share){rail, from, to - from};
        from = to;
    }
}

static int share_out(struct net_end *e)
{
    unsigned connections = e->point->connections, at = e->first;

    if (e->n_rails > 1 && e->n_rails > connections && (connections || e->ops->windows))
        return net_fail(e, -EINVAL, "%u devices want a stream each: --streams %u or more",
                        e->n_rails, e->n_rails);
    e->n_shares = 0;
    for (unsigned rail = 0; rail < e->n_rails && at < connections; rail++) {
        unsigned end = at;
        while (end < connections && net_rail_of(e, end) == rail)
            end++;
        add_shares(e, rail, at, end);
        at = end;
    }
    return 0;
}

int net_wire_open(struct net_end *e)
{
    struct wire_options options = {.device = e->local->devices,
                                   .every = true,
                                   .reference = true,
                                   .tcp = e->point->tcp,
                                   .rdma = e->point->rdma,
                                   .windows = true,
                                   .ring_bytes = RING_BYTES,
                                   .node = e->local->node >= 0 ? e->local->node : -1,
                                   .attend = attend,
                                   .attend_arg = e};
    char error[NET_ERROR_BYTES] = "";

    e->traits = wire_traits_of(e->ops, &options);
    if (net_streams(e->point) && e->traits.way == WIRE_BLOCK &&
        e->point->threads < e->point->connections)
        return net_fail(e, -EOPNOTSUPP,
                        "a thread that blocks serves one connection: %u threads for %u "
                        "connections, or epoll",
                        e->point->connections, e->point->connections);
    make_connections(e);
    options.message_most = 1;
    for (unsigned i = 0; i < e->n; i++) {
        const struct net_connection *c = &e->connections[i];
        uint64_t most = c->out_bytes > c->in_bytes ? c->out_bytes : c->in_bytes;
        if (most > options.message_most)
            options.message_most = most;
    }
    options.links_most = options.workers_most = e->n;
    int err = world_pair(&e->world, e->channel, e->leader, e->same_machine, error, sizeof(error));
    if (!err)
        err = wire_open(&e->wire, e->ops, e->world, &options, error, sizeof(error));
    if (err)
        return net_fail(e, err, "%s", error);
    err = e->wire->ops->rails ? e->wire->ops->rails(e->wire, e->leader ? 0 : 1) : 0;
    if (err)
        return net_wire_failed(e, err);
    e->rails = e->wire->rails;
    e->n_rails = e->wire->n_rails;
    err = net_memory_open(e);
    return err ? err : share_out(e);
}

void net_wire_close(struct net_end *e)
{
    net_guard_stop(e); /* it looks at the flags ten times a second */
    wire_close(e->wire);
    world_free(e->world);
    net_memory_close(e); /* after what was registered of it */
    free(e->connections);
    e->wire = NULL;
    e->world = NULL;
    e->connections = NULL;
    e->rails = NULL;
    e->n_rails = 0;
}

/* ---- Links ---- */

static int make_link(struct net_end *e, struct net_connection *c)
{
    struct wire_window window = {.out = c->out_bytes ? c->out : NULL,
                                 .in = c->in_bytes ? c->in : NULL,
                                 .message_bytes = c->message_bytes,
                                 .turns = c->ping};
    int link = wire_link(e->wire, e->leader ? 0 : 1, &window);

    if (link < 0)
        return net_wire_failed(e, link);
    c->link = &e->wire->links[link];
    return 0;
}

/* A worker for each thread, and the ping's. */
static int make_links(struct net_end *e)
{
    int worker = 0, err = 0;

    for (unsigned i = 0; i < e->n_shares && !err; i++) {
        const struct net_share *s = &e->shares[i];
        worker = wire_worker(e->wire, e->traits.way, s->rail);
        if (worker < 0)
            return net_wire_failed(e, worker);
        for (unsigned k = 0; k < s->n && !err; k++)
            err = make_link(e, net_connection(e, s->first + k));
    }
    if (err || !e->point->ping)
        return err;
    worker = wire_worker(e->wire, e->traits.probe_way, 0);
    if (worker < 0)
        return net_wire_failed(e, worker);
    e->wire->workers[worker].probes = true;
    return make_link(e, net_connection(e, e->point->connections));
}

/* A link's address as it goes to the other end: u16 how long, then it. */
static int pack(struct net_end *e, char *to, size_t *len)
{
    struct wire *w = e->wire;
    size_t n = 0;
    int err = 0;

    *len = 0;
    for (unsigned i = 0; i < w->n_links && !err; i++) {
        uint8_t *head = (uint8_t *)to + *len;
        if (*len + 2 + WIRE_ADDRESS_MAX > NET_ADDRESS_MAX)
            return net_fail(e, -EINVAL, "addresses of %u connections are too long", w->n_links);
        err = wire_address(w, i, head + 2, &n);
        bytes_put16(head, (uint16_t)n);
        *len += 2 + n;
    }
    return err ? net_wire_failed(e, err) : 0;
}

int net_address(struct net_end *e, void *address, size_t *len)
{
    e->wire->options.node = e->memory_node;
    int err = net_memory_make(e);
    err = err ? err : make_links(e);
    bool bound = !err && !topo_bind_self(e->topo, e->cpus[0]); /* it may measure a reference */
    err = err ? err : pack(e, address, len);
    if (bound)
        topo_unbind_self(e->topo);
    return err;
}

int net_join(struct net_end *e, const void *address, size_t len)
{
    struct wire *w = e->wire;
    const void **addresses = xcalloc(w->n_links, sizeof(*addresses));
    size_t *lens = xcalloc(w->n_links, sizeof(*lens)), at = 0;
    const uint8_t *bytes = address;
    unsigned n = 0;
    int err = 0;

    for (; n < w->n_links && len - at >= 2; n++) {
        lens[n] = bytes_get16(bytes + at);
        addresses[n] = bytes + at + 2;
        if (len - at - 2 < lens[n])
            break;
        at += 2 + lens[n];
    }
    if (n < w->n_links || at != len)
        err = net_fail(e, -EPROTO, "%s sent addresses that this end cannot read",
                       channel_peer(e->channel));
    else if ((err = wire_join(w, addresses, lens)) != 0)
        net_wire_failed(e, err);
    free(addresses);
    free(lens);
    return err;
}

size_t net_facts(struct net_end *e, struct wire_fact *facts)
{
    return e->wire->ops->facts ? e->wire->ops->facts(e->wire, facts) : 0;
}
