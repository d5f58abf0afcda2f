/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a point over a wire: its buffers, what each thread streams, pings, and whether what
 * arrived is what was sent. Nothing here knows which transport it is.
 *
 * Connection i is the wire's link i, the ping's the last. A worker of the wire has the connections
 * of one thread; where both directions stream, one thread drives each of its sides.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/hw/host_buffer.h"
#include "core/rng.h"
#include "core/wire/wire.h"

#define ALIGN         4096u
#define RECEIVE_LEAST ((size_t)128 << 10) /* a receive has so many bytes, or one message */
#define TICK_NS       20000000u           /* a wait comes back so often to look at flags */
#define LOOK_NS       50000000u           /* between two looks whether the other end lives */
#define RING_BYTES    4194304u            /* of shared memory: larger than the caches of one core */

/* Who sends and who receives on a connection are two threads: each has lines of its own. */
struct connection {
    _Alignas(64) struct wire_link *link;
    size_t message_bytes, out_bytes, in_bytes; /* 0: this end does not send, receive on it */
    _Alignas(64) char *out;                    /* one message */
    bool out_ready;                            /* it has been filled */
    uint64_t out_seen;                         /* messages that have been counted */
    _Alignas(64) char *in;                     /* whole messages as they arrive */
    bool in_ready;                             /* it has been touched */
    uint64_t in_seen;                          /* bytes that have been counted */
    size_t in_held;                            /* of `in`, what has come since the last check */
};

/* Watches over pings that wait without end: a wait with an end arms a timer each time, which costs
 * some per cent of a round trip. So a thread that sleeps most of the time ends them where nothing
 * has moved for too long, or where everything is over. */
struct guard {
    pthread_t thread;
    bool started;
    _Atomic bool end;
    _Atomic uint64_t turns; /* messages that came over the ping's connection */
};

struct stream {
    struct world *world;
    struct wire *wire;
    struct connection *connections; /* number `connections` of the point is the ping's */
    unsigned first, n;              /* those that exist: [first, first + n) */
    struct host_buffer buffer;
    uint64_t still_ns; /* nothing moved for so long: given up */
    uint64_t looked_ns;
    struct guard guard;
};

static inline struct stream *stream_of(const struct net_end *e)
{
    return e->state;
}

static inline struct connection *connection(const struct net_end *e, unsigned number)
{
    return &stream_of(e)->connections[number - stream_of(e)->first];
}

static bool is_ping(const struct net_end *e, unsigned number)
{
    return number == e->point->connections;
}

static bool sends(const struct net_end *e, enum net_direction d)
{
    return (d == NET_FORWARD) == e->leader;
}

/* Does anything go that way on that connection? */
static bool goes(const struct net_end *e, unsigned number, enum net_direction d)
{
    return is_ping(e, number) ? e->point->ping : e->point->stream[d];
}

/* What ended because all is over is no error of its own. */
static int wire_failed(struct net_end *e, int err)
{
    if (err == -ECANCELED && net_over(e))
        return err;
    return net_fail(e, err, "%s", stream_of(e)->wire->error);
}

/* ---- Opened, connected, closed ---- */

static size_t rounded(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Small messages arrive many at once where bytes have no bounds, in a buffer of whole ones. */
static void set_sizes(const struct net_end *e, unsigned number)
{
    struct connection *c = connection(e, number);
    uint64_t bytes = is_ping(e, number) ? e->point->ping_bytes : e->point->message_bytes;
    bool many = !is_ping(e, number) && e->ops->wire->streams && bytes < RECEIVE_LEAST;

    *c = (struct connection){.message_bytes = bytes};
    for (int d = 0; d < NET_DIRECTIONS; d++) {
        if (!goes(e, number, (enum net_direction)d))
            continue;
        if (sends(e, (enum net_direction)d))
            c->out_bytes = bytes;
        else
            c->in_bytes = bytes * (many ? RECEIVE_LEAST / bytes : 1);
    }
}

static int make_connections(struct net_end *e)
{
    const struct net_point *p = e->point;
    struct stream *s = calloc(1, sizeof(*s));
    bool streams = p->stream[NET_FORWARD] || p->stream[NET_REVERSE];

    e->state = s;
    if (!s)
        return net_fail(e, -ENOMEM, "out of memory");
    s->still_ns = NET_STILL_NS;
    s->first = streams ? 0 : p->connections;
    s->n = p->connections + (p->ping ? 1 : 0) - s->first;
    s->connections = aligned_alloc(_Alignof(struct connection), s->n * sizeof(*s->connections));
    if (!s->connections)
        return net_fail(e, -ENOMEM, "out of memory");
    for (unsigned i = s->first; i < s->first + s->n; i++)
        set_sizes(e, i);
    return 0;
}

static uint64_t longest(const struct stream *s)
{
    uint64_t most = 1;

    for (unsigned i = 0; i < s->n; i++) {
        const struct connection *c = &s->connections[i];
        most = c->out_bytes > most ? c->out_bytes : most;
        most = c->in_bytes > most ? c->in_bytes : most;
    }
    return most;
}

/* While connections are made: is all over, or has the other end ended? */
static int attend(void *arg)
{
    struct net_end *e = arg;
    struct stream *s = stream_of(e);
    uint64_t now_ns = clock_now_ns();

    if (net_over(e))
        return -ECANCELED;
    if (now_ns - s->looked_ns < LOOK_NS)
        return 0;
    s->looked_ns = now_ns;
    return channel_alive(e->channel)
               ? net_fail(e, -ECONNRESET, "%s ended before its data connections were made",
                          channel_peer(e->channel))
               : 0;
}

static int net_stream_open(struct net_end *e)
{
    struct wire_options options = {.device = e->local->devices,
                                   .every = true,
                                   .reference = true,
                                   .tcp = e->point->tcp,
                                   .rdma = e->point->rdma,
                                   .ring_bytes = RING_BYTES,
                                   .node = -1,
                                   .attend = attend,
                                   .attend_arg = e,
                                   .links_most = e->point->connections + 1,
                                   .workers_most = e->point->connections + 1};
    char error[NET_ERROR_BYTES] = "";
    int err = make_connections(e);

    if (err)
        return err;
    struct stream *s = stream_of(e);
    options.message_most = longest(s);
    err = world_pair(&s->world, e->channel, e->leader, e->same_machine, error, sizeof(error));
    if (!err)
        err = wire_open(&s->wire, e->ops->wire, s->world, &options, error, sizeof(error));
    if (err)
        return net_fail(e, err, "%s", error);
    err = wire_rails(s->wire, e->leader ? 0 : 1);
    if (err)
        return wire_failed(e, err);
    e->n_rails = s->wire->n_rails;
    memcpy(e->rails, s->wire->rails, sizeof(e->rails));
    return 0;
}

/* Where both ends are on one machine, both take theirs from the same memory. */
static int refuse(struct net_end *e, uint64_t bytes)
{
    uint64_t available = host_available();

    if (available == UINT64_MAX)
        return 0;
    available = (available - available / 8) / (e->same_machine ? 2 : 1);
    if (bytes <= available)
        return 0;
    return net_fail(e, -EOPNOTSUPP,
                    "buffers of all connections need %llu MiB of memory, %llu can be had: smaller "
                    "messages or fewer connections",
                    (unsigned long long)(bytes >> 20), (unsigned long long)(available >> 20));
}

static int make_buffers(struct net_end *e)
{
    struct stream *s = stream_of(e);
    uint64_t bytes = ALIGN;
    char error[160] = "";

    for (unsigned i = 0; i < s->n; i++)
        bytes += rounded(s->connections[i].out_bytes) + rounded(s->connections[i].in_bytes);
    int err = refuse(e, bytes);
    if (err)
        return err;
    err = host_alloc(&s->buffer, e->topo, bytes, HOST_PAGES_THP, e->memory_node, error,
                     sizeof(error));
    if (err)
        return net_fail(e, err, "%s", error);
    char *at = s->buffer.at;
    for (unsigned i = 0; i < s->n; i++) {
        struct connection *c = &s->connections[i];
        c->out = at;
        c->in = at + rounded(c->out_bytes);
        at = c->in + rounded(c->in_bytes);
    }
    err = wire_memory(s->wire, s->buffer.at, bytes);
    return err ? wire_failed(e, err) : 0;
}

static int make_link(struct net_end *e, unsigned number)
{
    struct stream *s = stream_of(e);
    struct connection *c = connection(e, number);
    struct wire_window window = {.out = c->out_bytes ? c->out : NULL,
                                 .in = c->in_bytes ? c->in : NULL,
                                 .message_bytes = c->message_bytes};
    int link = wire_link(s->wire, e->leader ? 0 : 1, &window);

    if (link < 0)
        return wire_failed(e, link);
    c->link = &s->wire->links[link];
    return 0;
}

/* A worker for the connections of each thread of one rail: as many as the engine starts. */
static int make_workers(struct net_end *e, unsigned rail, unsigned first, unsigned end)
{
    unsigned threads = net_rail_threads(e->point, e->n_rails, end - first), at = first;
    int err = 0;

    for (unsigned k = 0; k < threads && err >= 0; k++) {
        unsigned to = first + (end - first) * (k + 1) / threads;
        err = wire_worker(stream_of(e)->wire, (enum wire_way)e->ops->way(e->point, false), rail);
        if (err < 0)
            return wire_failed(e, err);
        for (; at < to && err >= 0; at++)
            err = make_link(e, at);
    }
    return err < 0 ? err : 0;
}

static int make_links(struct net_end *e)
{
    const struct net_point *p = e->point;
    unsigned at = stream_of(e)->first;
    int err = 0;

    for (unsigned rail = 0; rail < e->n_rails && at < p->connections && !err; rail++) {
        unsigned end = at;
        while (end < p->connections && net_rail_of(e, end) == rail)
            end++;
        err = make_workers(e, rail, at, end);
        at = end;
    }
    if (err || !p->ping)
        return err;
    err = wire_worker(stream_of(e)->wire, (enum wire_way)e->ops->way(p, true), 0);
    if (err < 0)
        return wire_failed(e, err);
    stream_of(e)->wire->workers[err].probes = true;
    return make_link(e, p->connections);
}

/* A link's address as it goes to the other end: u16 how long, then it. */
static int pack(struct net_end *e, char *to, size_t *len)
{
    struct wire *w = stream_of(e)->wire;
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
    return err ? wire_failed(e, err) : 0;
}

static int net_stream_address(struct net_end *e, void *address, size_t *len)
{
    struct stream *s = stream_of(e);

    s->wire->options.node = e->memory_node;
    memcpy(s->wire->rails, e->rails, sizeof(e->rails)); /* the engine has added what it knows */
    int err = make_buffers(e);
    err = err ? err : make_links(e);
    bool bound = !err && !topo_bind_self(e->topo, e->cpus[0]); /* it may measure a reference */
    err = err ? err : pack(e, address, len);
    if (bound)
        topo_unbind_self(e->topo);
    return err;
}

static int net_stream_join(struct net_end *e, const void *address, size_t len)
{
    struct wire *w = stream_of(e)->wire;
    const void **addresses = calloc(w->n_links + 1, sizeof(*addresses));
    size_t *lens = calloc(w->n_links + 1, sizeof(*lens)), at = 0;
    const uint8_t *bytes = address;
    unsigned n = 0;
    int err = 0;

    for (; addresses && lens && n < w->n_links && len - at >= 2; n++) {
        lens[n] = bytes_get16(bytes + at);
        addresses[n] = bytes + at + 2;
        if (len - at - 2 < lens[n])
            break;
        at += 2 + lens[n];
    }
    if (!addresses || !lens)
        err = net_fail(e, -ENOMEM, "out of memory");
    else if (n < w->n_links || at != len)
        err = net_fail(e, -EPROTO, "%s sent addresses that this end cannot read",
                       channel_peer(e->channel));
    else if ((err = wire_join(w, addresses, lens)) != 0)
        wire_failed(e, err);
    free(addresses);
    free(lens);
    memcpy(e->rails, w->rails, sizeof(e->rails));
    return err;
}

static void guard_stop(struct net_end *e)
{
    struct guard *g = &stream_of(e)->guard;

    if (!g->started)
        return;
    atomic_store(&g->end, true);
    pthread_join(g->thread, NULL);
    g->started = false;
}

static void net_stream_close(struct net_end *e)
{
    struct stream *s = stream_of(e);

    if (!s)
        return;
    guard_stop(e); /* it looks at the flags ten times a second */
    wire_close(s->wire);
    world_free(s->world);
    host_free(&s->buffer);
    free(s->connections);
    free(s);
    e->state = NULL;
}

static size_t net_stream_facts(struct net_end *e, struct net_fact *facts)
{
    struct wire *w = stream_of(e)->wire;
    size_t n = w->ops->facts ? w->ops->facts(w, facts) : 0;

    for (unsigned i = 0; i < e->n_rails; i++) { /* more is known of a rail by now */
        memcpy(e->rails[i].text, w->rails[i].text, sizeof(e->rails[i].text));
        e->rails[i].segment_bytes = w->rails[i].segment_bytes;
    }
    return n;
}

/* ---- Bytes ---- */

static void count(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* Why it ended: an error of any thread, or it was told to. */
static int over(const struct net_end *e)
{
    int err = atomic_load(&e->error_code);

    return err ? err : -ECANCELED;
}

/* A turn in which nothing moved, or an error. */
static int stood_still(struct net_end *e, int rc, uint64_t *since_ns)
{
    const struct stream *s = stream_of(e);
    uint64_t now_ns = clock_now_ns();

    if (net_over(e))
        return over(e);
    if (rc < 0)
        return wire_failed(e, rc);
    if (!*since_ns)
        *since_ns = now_ns;
    if (now_ns - *since_ns < s->still_ns)
        return 0;
    return net_fail(e, -ETIMEDOUT,
                    "nothing moved between here and %s for %.3g s over '%s': its process was "
                    "stopped or hangs, or the link is down",
                    channel_peer(e->channel), (double)s->still_ns / 1e9, e->rails[0].name);
}

static void ready_out(struct net_end *e, unsigned number, enum net_direction d)
{
    struct connection *c = connection(e, number);

    if (!c->out_ready)
        pattern_fill(c->out, c->message_bytes, net_seed(e->point, d, number, 0));
    c->out_ready = true;
}

/* Touched by the thread that will write it. */
static void ready_in(struct connection *c)
{
    if (!c->in_ready)
        memset(c->in, 0, c->in_bytes);
    c->in_ready = true;
}

/* Posts of `bytes` that are worth having at once, in bytes: few, so that a stream that is to stop
 * soon does. */
static uint64_t worth(const struct wire_link *l, uint64_t bytes)
{
    uint64_t n = l->ahead / bytes;

    return (n > WIRE_POSTS ? WIRE_POSTS : n ? n : 1) * bytes;
}

static int send_more(struct connection *c)
{
    const struct wire_flow *out = &c->link->out;
    uint64_t most = worth(c->link, c->message_bytes);
    int err = 0;

    while (!err && out->posted - out->through + c->message_bytes <= most)
        err = wire_send(c->link, c->out, c->message_bytes);
    return err;
}

/* All go to the same place. */
static int receive_more(struct connection *c)
{
    const struct wire_flow *in = &c->link->in;
    uint64_t most = worth(c->link, c->in_bytes);
    int err = 0;

    while (!err && in->posted - in->through + c->in_bytes <= most)
        err = wire_receive(c->link, c->in, c->in_bytes);
    return err;
}

/* Until the memory of what went out may be written again. */
static int settle(struct net_end *e, struct wire_link *l)
{
    int (*settled)(struct wire_link * l) = l->worker->wire->ops->settle;
    uint64_t since_ns = 0;
    int rc = settled ? 0 : 1, err = 0;

    while (rc <= 0 && !err) {
        rc = settled(l);
        err = rc <= 0 ? stood_still(e, rc, &since_ns) : 0;
    }
    return err;
}

/* What has gone out on a connection since it was looked at, and more is posted, unless it is to
 * stop: then there is one connection less when all has gone. */
static int went(struct net_end *e, struct connection *c, unsigned number, unsigned *left)
{
    uint64_t messages = c->link->out.messages;

    if (messages == c->out_seen)
        return 0;
    count(&e->counts[number].sent, messages - c->out_seen);
    c->out_seen = messages;
    if (!net_stop(e))
        return send_more(c);
    *left -= c->link->out.posted == c->link->out.through;
    return 0;
}

static int stream_out(struct net_worker *w)
{
    struct net_end *e = w->end;
    struct wire_worker *k = connection(e, w->first)->link->worker;
    uint64_t since_ns = 0;
    unsigned left = w->n;
    int err = 0;

    for (unsigned i = w->first; i < w->first + w->n && !err; i++)
        err = send_more(connection(e, i));
    while (left && !err) {
        int rc = wire_progress(k, WIRE_OUT, TICK_NS);
        if (rc <= 0)
            err = stood_still(e, rc, &since_ns);
        else
            since_ns = 0;
        for (unsigned i = 0; i < k->out.n_moved && !err; i++) {
            unsigned number = w->first + (unsigned)(k->out.moved[i] - k->links);
            err = went(e, connection(e, number), number, &left);
        }
        err = net_over(e) ? -ECANCELED : err;
    }
    for (unsigned i = w->first; i < w->first + w->n && !err; i++)
        err = settle(e, connection(e, i)->link);
    return err && !net_over(e) ? wire_failed(e, err) : err;
}

/* What has come in on a connection since it was looked at; it waits for more. */
static int came(struct net_end *e, struct connection *c, unsigned number, uint64_t *bytes,
                uint64_t *messages)
{
    uint64_t through = c->link->in.through;
    uint64_t whole = through / c->message_bytes - c->in_seen / c->message_bytes;

    size_t pending = (size_t)(c->link->in.posted - through) % c->in_bytes;
    size_t held = c->in_bytes - pending;

    c->in_held = held > c->in_held ? held : c->in_held;
    *bytes += through - c->in_seen;
    *messages += whole;
    c->in_seen = through;
    if (whole)
        count(&e->counts[number].received, whole);
    return receive_more(c);
}

static bool all_drained(const struct net_worker *w)
{
    for (unsigned i = w->first; i < w->first + w->n; i++)
        if (!net_drained(w->end, i))
            return false;
    return true;
}

static int stream_in(struct net_worker *w)
{
    struct net_end *e = w->end;
    struct wire_worker *k = connection(e, w->first)->link->worker;
    uint64_t since_ns = 0;
    int err = 0;

    for (unsigned i = w->first; i < w->first + w->n && !err; i++)
        err = receive_more(connection(e, i));
    while (!err && !all_drained(w)) {
        uint64_t bytes = 0, messages = 0;
        int rc = wire_progress(k, WIRE_IN, TICK_NS);
        if (rc <= 0)
            err = stood_still(e, rc, &since_ns);
        else
            since_ns = 0;
        for (unsigned i = 0; i < k->in.n_moved && !err; i++) {
            unsigned number = w->first + (unsigned)(k->in.moved[i] - k->links);
            err = came(e, connection(e, number), number, &bytes, &messages);
        }
        if (bytes)
            net_tally_add(&w->tally, bytes, messages);
        err = net_over(e) ? -ECANCELED : err;
    }
    for (unsigned i = w->first; i < w->first + w->n; i++)
        if (k->wire->ops->retract)
            k->wire->ops->retract(connection(e, i)->link);
    return err;
}

static int net_stream_work(struct net_worker *w)
{
    struct net_end *e = w->end;

    for (unsigned i = w->first; i < w->first + w->n; i++) {
        if (w->sends)
            ready_out(e, i, w->direction);
        else
            ready_in(connection(e, i));
    }
    int err = w->sends ? stream_out(w) : stream_in(w);
    return net_over(e) ? atomic_load(&e->error_code) : err;
}

/* Until so many bytes are through on one way of a link. Guarded, each wait has no end. */
static int until(struct net_end *e, struct wire_link *l, enum wire_side side, uint64_t through)
{
    uint64_t wait_ns = stream_of(e)->guard.started ? WIRE_FOREVER : TICK_NS;
    const struct wire_flow *f = side == WIRE_OUT ? &l->out : &l->in;
    uint64_t since_ns = 0;
    int err = 0;

    while (f->through < through && !err) {
        int rc = wire_progress(l->worker, side, wait_ns);
        if (rc > 0)
            since_ns = 0;
        else
            err = stood_still(e, rc, &since_ns);
    }
    return err;
}

/* One whole message. */
static int push(struct net_end *e, struct connection *c)
{
    uint64_t through = c->link->out.through + c->message_bytes;
    int err = wire_send(c->link, c->out, c->message_bytes);

    err = err ? wire_failed(e, err) : until(e, c->link, WIRE_OUT, through);
    return err ? err : settle(e, c->link);
}

static int pull(struct net_end *e, struct connection *c)
{
    uint64_t through = c->link->in.through + c->message_bytes;
    int err = wire_receive(c->link, c->in, c->message_bytes);

    c->in_held = c->message_bytes;
    return err ? wire_failed(e, err) : until(e, c->link, WIRE_IN, through);
}

static void count_ping(struct net_end *e)
{
    count(&e->counts[e->point->connections].sent, 1);
    count(&e->counts[e->point->connections].received, 1);
    count(&stream_of(e)->guard.turns, 1);
}

#define WATCH_NS 100000000

static void *watch(void *arg)
{
    struct net_end *e = arg;
    struct stream *s = stream_of(e);
    uint64_t seen = 0, since_ns = clock_now_ns();
    struct timespec rest = {.tv_nsec = WATCH_NS};

    while (!atomic_load(&s->guard.end)) {
        uint64_t turns = atomic_load_explicit(&s->guard.turns, memory_order_relaxed);
        if (turns != seen)
            since_ns = clock_now_ns();
        seen = turns;
        if (stood_still(e, 0, &since_ns)) {
            s->wire->ops->interrupt(connection(e, e->point->connections)->link);
            break;
        }
        nanosleep(&rest, NULL);
    }
    return NULL;
}

/* Where waits without end are cheaper. Left alone where it is so already. */
static int guard_start(struct net_end *e)
{
    struct guard *g = &stream_of(e)->guard;
    sigset_t all, before;

    if (g->started || !stream_of(e)->wire->ops->interrupt)
        return 0;
    atomic_store(&g->end, false);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = -pthread_create(&g->thread, NULL, watch, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    g->started = !err;
    return err ? net_fail(e, err, "cannot start a thread: %s", strerror(-err)) : 0;
}

/* The first byte of the leader's message says whether it is the last. */
static int net_stream_ping(struct net_end *e, bool last, uint64_t *ns)
{
    struct connection *c = connection(e, e->point->connections);

    ready_out(e, e->point->connections, NET_FORWARD);
    ready_in(c);
    c->out[0] = last;
    int err = guard_start(e);
    uint64_t start_ns = clock_now_ns();
    err = err ? err : push(e, c);
    err = err ? err : pull(e, c);
    *ns = clock_now_ns() - start_ns;
    if (!err)
        count_ping(e);
    if (last)
        guard_stop(e);
    return err;
}

static int net_stream_pong(struct net_end *e)
{
    struct connection *c = connection(e, e->point->connections);
    bool last = false;
    int err = 0;

    ready_out(e, e->point->connections, NET_REVERSE);
    ready_in(c);
    err = guard_start(e);
    while (!last && !err) {
        err = pull(e, c);
        last = c->in[0];
        c->out[0] = c->in[0];
        err = err ? err : push(e, c);
        if (!err)
            count_ping(e);
    }
    guard_stop(e);
    return net_over(e) ? atomic_load(&e->error_code) : err;
}

struct wire *net_stream_wire(struct net_end *e)
{
    return stream_of(e)->wire;
}

char *net_stream_memory(struct net_end *e, unsigned number, size_t at)
{
    return connection(e, number)->in + at;
}

void net_stream_patience(struct net_end *e, uint64_t still_ns)
{
    stream_of(e)->still_ns = still_ns;
}

/* ---- Was what arrived what was sent? ---- */

static int compare(struct net_end *e, unsigned number, enum net_direction d, unsigned round,
                   size_t at)
{
    const struct connection *c = connection(e, number);
    size_t wrong =
        pattern_check(c->in + at, c->message_bytes, net_seed(e->point, d, number, round));

    if (wrong == PATTERN_RIGHT)
        return 0;
    return net_fail(
        e, -EBADMSG,
        "wrong data: byte %zu of %zu of %s message from %s on connection %u is not what "
        "was sent",
        wrong, c->message_bytes, round ? "a fresh" : "the last", channel_peer(e->channel), number);
}

/* As many of the last messages as the buffer held; a ping's flag is put back to what it covers. */
static int check_last(struct net_end *e, unsigned number, enum net_direction d)
{
    struct connection *c = connection(e, number);
    size_t held = c->in_held - c->in_held % c->message_bytes;
    int err = 0;

    if (held && is_ping(e, number))
        pattern_fill(c->in, 1, net_seed(e->point, d, number, 0));
    for (size_t at = 0; at < held && !err; at += c->message_bytes)
        err = compare(e, number, d, 0, at);
    return err;
}

static int send_fresh(struct net_end *e, unsigned number, enum net_direction d)
{
    struct connection *c = connection(e, number);

    pattern_fill(c->out, c->message_bytes, net_seed(e->point, d, number, 1));
    c->out_ready = false;
    int err = push(e, c);
    c->out_seen = c->link->out.messages;
    return err;
}

static int receive_fresh(struct net_end *e, unsigned number, enum net_direction d)
{
    struct connection *c = connection(e, number);
    int err = check_last(e, number, d);

    if (err)
        return err;
    memset(c->in, 0, c->in_bytes);
    err = pull(e, c);
    c->in_seen = c->link->in.through;
    c->in_held = 0;
    return err ? err : compare(e, number, d, 1, 0);
}

/* One direction of one connection after the other, at both ends: no two ends wait for each other
 * with full buffers. */
static int net_stream_check(struct net_end *e)
{
    struct stream *s = stream_of(e);
    int err = 0;

    for (unsigned i = s->first; i < s->first + s->n; i++)
        for (int k = 0; k < NET_DIRECTIONS && !err; k++) {
            enum net_direction d = (enum net_direction)k;
            if (goes(e, i, d))
                err = sends(e, d) ? send_fresh(e, i, d) : receive_fresh(e, i, d);
        }
    return err;
}

static bool never_by_sender(const struct net_point *p, enum net_direction d)
{
    (void)p;
    (void)d;
    return false;
}

static bool both_work(const struct net_point *p, enum net_direction d, bool sends)
{
    (void)p;
    (void)d;
    (void)sends;
    return true;
}

static bool always(const struct net_point *p)
{
    (void)p;
    return true;
}

static int polls_always(const struct net_point *p, bool ping)
{
    (void)p;
    (void)ping;
    return WIRE_POLL;
}

static void shm_backends(backend_say_fn *say, void *arg)
{
    wire_shm.backends(say, arg);
}

const struct net_ops net_shm = {
    .name = "shm",
    .help = "memory that two processes of one machine share",
    .wire = &wire_shm,
    .way = polls_always,
    .backends = shm_backends,
    .counted_by_sender = never_by_sender,
    .needs_worker = both_work,
    .polls = always,
    .open = net_stream_open,
    .address = net_stream_address,
    .join = net_stream_join,
    .work = net_stream_work,
    .ping = net_stream_ping,
    .pong = net_stream_pong,
    .check = net_stream_check,
    .facts = net_stream_facts,
    .close = net_stream_close,
};

static bool polls_busily(const struct net_point *p)
{
    return p->tcp.busy_poll_us > 0;
}

static int tcp_way(const struct net_point *p, bool ping)
{
    if (ping)
        return p->tcp.spin ? WIRE_POLL : WIRE_BLOCK;
    return p->tcp.mode == NET_TCP_EPOLL ? WIRE_EVENTS : WIRE_BLOCK;
}

static void tcp_say(backend_say_fn *say, void *arg)
{
    wire_tcp.backends(say, arg);
}

/* A thread that blocks has one connection. */
static int open_tcp(struct net_end *e)
{
    const struct net_point *p = e->point;
    bool streams = p->stream[NET_FORWARD] || p->stream[NET_REVERSE];

    if (streams && p->tcp.mode == NET_TCP_BLOCKING && p->threads < p->connections)
        return net_fail(
            e, -EOPNOTSUPP,
            "a thread that blocks serves one connection: %u threads for %u connections, "
            "or epoll",
            p->connections, p->connections);
    return net_stream_open(e);
}

const struct net_ops net_tcp = {
    .name = "tcp",
    .help = "TCP over any network: blocking threads or epoll",
    .wire = &wire_tcp,
    .way = tcp_way,
    .backends = tcp_say,
    .counted_by_sender = never_by_sender,
    .needs_worker = both_work,
    .polls = polls_busily,
    .open = open_tcp,
    .address = net_stream_address,
    .join = net_stream_join,
    .work = net_stream_work,
    .ping = net_stream_ping,
    .pong = net_stream_pong,
    .check = net_stream_check,
    .facts = net_stream_facts,
    .close = net_stream_close,
};
