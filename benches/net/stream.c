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
#include <unistd.h>

#include "benches/net/end.h"
#include "benches/net/memory.h"
#include "core/hw/host_buffer.h"
#include "core/rng.h"

#define ALIGN         4096u
#define RECEIVE_LEAST ((size_t)128 << 10) /* a receive has so many bytes, or one message */
#define TICK_NS       20000000u           /* a wait comes back so often to look at flags */
#define LOOK_NS       50000000u           /* between two looks whether the other end lives */
#define RING_BYTES    4194304u            /* of shared memory: larger than the caches of one core */
#define BURST         1024                /* pings back to back, at most, and for so long */
#define BURST_NS      20000000u
#define REST_US       10000 /* of an end that is read: between two looks whether that is over */
#define LAST          0x80u /* of a ping's mark */

/* Who sends and who receives on a connection are two threads: each has lines of its own. */
struct connection {
    _Alignas(64) struct wire_link *link;
    size_t message_bytes, out_bytes, in_bytes; /* 0: this end does not send, receive on it */
    _Alignas(64) char *out;                    /* one message */
    bool out_ready;                            /* it has been filled */
    uint64_t out_seen, out_messages;           /* bytes and messages that have been counted */
    _Alignas(64) char *in;                     /* whole messages as they arrive */
    bool in_ready;                             /* it has been touched */
    uint64_t in_seen;                          /* bytes that have been counted */
    size_t in_held;                            /* of `in`, what has come since the last check */
    uint64_t pings;                            /* there and back */
    uint64_t said, heard;                      /* wire_link.words_out, words_in, as they must be */
};

/* Pings that were timed together, of which `told` have been handed out. */
struct burst {
    unsigned n, told;
    uint64_t ns[BURST];
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
    struct device_memory *gpu; /* where buffers are instead; NULL: the host has them */
    struct burst burst;
    bool ping_is_read; /* by the leader, alone */
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

static unsigned number_of(const struct net_end *e, const struct connection *c)
{
    return stream_of(e)->first + (unsigned)(c - stream_of(e)->connections);
}

static bool is_ping(const struct net_end *e, unsigned number)
{
    return number == e->point->connections;
}

/* Is a ping what the leader reads? */
static bool ping_is_read(const struct net_end *e)
{
    return stream_of(e)->ping_is_read;
}

/* Does anything go that way on that connection? */
static bool goes(const struct net_end *e, unsigned number, enum net_direction d)
{
    if (is_ping(e, number))
        return e->point->ping && (d == NET_REVERSE || !ping_is_read(e));
    return e->point->stream[d];
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
    bool many = !is_ping(e, number) && e->ops->streams && bytes < RECEIVE_LEAST;

    *c = (struct connection){.message_bytes = bytes};
    for (int d = 0; d < NET_DIRECTIONS; d++) {
        if (!goes(e, number, (enum net_direction)d))
            continue;
        if (net_sends(e, (enum net_direction)d))
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
    s->still_ns = net_still_ns(e);
    s->ping_is_read = e->traits.acts == WIRE_IN;
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

/* What only some wires can: memory of a GPU, one message posted several times. */
static int open_windows(struct net_end *e)
{
    struct stream *s = stream_of(e);
    unsigned connections = e->point->connections;

    if (e->n_rails > 1 && e->n_rails > connections)
        return net_fail(e, -EINVAL, "%u devices need at least as many connections, not %u",
                        e->n_rails, connections);
    for (unsigned i = 0; i < e->n_rails; i++)
        s->wire->rails[i].simulated = s->gpu && device_memory_simulated(s->gpu);
    return 0;
}

static int open_gpu(struct net_end *e)
{
    char error[NET_ERROR_BYTES] = "";
    int err = e->ops->windows
                  ? device_memory_open(&stream_of(e)->gpu, e->local->memory, error, sizeof(error))
                  : 0;

    return err ? net_fail(e, err, "%s", error) : 0;
}

static int check_stream(struct net_end *e)
{
    const struct net_point *p = e->point;

    if (!p->stream[NET_FORWARD] && !p->stream[NET_REVERSE])
        return 0;
    if (!e->ops->retract && !e->ops->windows)
        return net_fail(e, -EOPNOTSUPP, "'%s' takes no receive back, as a stream ends",
                        e->ops->name);
    if (e->traits.way != WIRE_BLOCK || p->threads >= p->connections)
        return 0;
    return net_fail(e, -EOPNOTSUPP,
                    "a thread that blocks serves one connection: %u threads for %u connections, "
                    "or epoll",
                    p->connections, p->connections);
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
    int err = check_stream(e);
    err = err ? err : make_connections(e);
    err = err ? err : open_gpu(e);
    if (err)
        return err;
    struct stream *s = stream_of(e);
    options.message_most = longest(s);
    options.links_most = options.workers_most = s->n;
    err = world_pair(&s->world, e->channel, e->leader, e->same_machine, error, sizeof(error));
    if (!err)
        err = wire_open(&s->wire, e->ops, s->world, &options, error, sizeof(error));
    if (err)
        return net_fail(e, err, "%s", error);
    err = wire_rails(s->wire, e->leader ? 0 : 1);
    if (err)
        return wire_failed(e, err);
    e->n_rails = s->wire->n_rails;
    err = e->ops->windows ? open_windows(e) : 0;
    memcpy(e->rails, s->wire->rails, sizeof(e->rails));
    return err;
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

/* Of a rail's connections, one way: one after the other from `at`. Returns how much that is. */
static size_t place(struct net_end *e, unsigned rail, enum wire_side side, char *at)
{
    const struct stream *s = stream_of(e);
    size_t bytes = 0;

    for (unsigned i = s->first; i < s->first + s->n; i++) {
        struct connection *c = connection(e, i);
        if (net_rail_of(e, i) != rail)
            continue;
        if (at && side == WIRE_OUT)
            c->out = at + bytes;
        else if (at)
            c->in = at + bytes;
        bytes += rounded(side == WIRE_OUT ? c->out_bytes : c->in_bytes);
    }
    return bytes;
}

/* In the rail's text: "cuda:0 by dma-buf and peermem, PIX". */
static void tell_memory(struct net_end *e, unsigned rail, const char *out, const char *in)
{
    struct stream *s = stream_of(e);
    struct net_rail *r = &s->wire->rails[rail];
    size_t at = strlen(r->text), len = sizeof(r->text);

    if (!in && !out)
        return;
    const char *way = device_memory_way(s->gpu, r->name);
    bool two = in && out && strcmp(in, out) != 0;
    snprintf(r->text + at, len - at, ", %s by %s%s%s%s%s", device_memory_name(s->gpu),
             in ? in : out, two ? " and " : "", two ? out : "", *way ? ", " : "", way);
}

static int expose(struct net_end *e, struct wire_memory *m)
{
    struct stream *s = stream_of(e);
    char why[160] = "";

    m->file = -ENODATA;
    if (s->gpu) {
        m->bytes = (m->bytes + DEVICE_MEMORY_ALIGN - 1) / DEVICE_MEMORY_ALIGN * DEVICE_MEMORY_ALIGN;
        m->device = device_memory_name(s->gpu);
        m->file = device_memory_export(s->gpu, m->at, m->bytes, why, sizeof(why));
        m->why = why;
    }
    int err = wire_memory_of(s->wire, m);
    if (m->file >= 0)
        close(m->file);
    return err ? wire_failed(e, err) : 0;
}

/* Buffers of a rail's connections, each way by itself: what goes out need not be open to writes. */
static int make_rail_buffers(struct net_end *e, unsigned rail, char **at)
{
    static const enum wire_side sides[] = {WIRE_OUT, WIRE_IN};
    struct stream *s = stream_of(e);
    const char *ways[2] = {NULL, NULL};
    int err = 0;

    for (int i = 0; i < 2 && !err; i++) {
        struct wire_memory m = {
            .at = *at, .bytes = place(e, rail, sides[i], NULL), .sides = sides[i], .rail = rail};
        if (s->gpu && m.bytes && (err = device_memory_take(s->gpu, m.bytes, &m.at)) != 0)
            return net_fail(e, err, "%s", device_memory_error(s->gpu));
        place(e, rail, sides[i], m.at);
        if (!s->gpu)
            *at += m.bytes;
        err = m.bytes ? expose(e, &m) : 0;
        ways[i] = m.way;
    }
    if (!err && s->gpu)
        tell_memory(e, rail, ways[0], ways[1]);
    return err;
}

/* Every byte is another one than the pattern's, where `wrong`. */
static int fill(struct net_end *e, char *at, size_t bytes, uint64_t seed, bool wrong)
{
    struct stream *s = stream_of(e);

    if (s->gpu) {
        int err = device_memory_fill(s->gpu, at, bytes, seed, wrong);
        return err ? net_fail(e, err, "%s", device_memory_error(s->gpu)) : 0;
    }
    pattern_fill(at, bytes, seed);
    for (size_t i = 0; i < bytes && wrong; i++)
        at[i] = (char)~at[i];
    return 0;
}

/* Where an end may not act, its buffers are ready before it is read or written. */
static int fill_buffers(struct net_end *e)
{
    struct stream *s = stream_of(e);
    enum net_direction d = e->leader ? NET_FORWARD : NET_REVERSE;
    int err = 0;

    for (unsigned i = s->first; i < s->first + s->n && !err && e->ops->windows; i++) {
        struct connection *c = connection(e, i);
        if (c->out_bytes)
            err = fill(e, c->out, c->out_bytes, net_seed(e->point, d, i, 0), false);
        c->out_ready = c->in_ready = true;
    }
    return err;
}

static int make_buffers(struct net_end *e)
{
    struct stream *s = stream_of(e);
    uint64_t bytes = ALIGN;
    char error[160] = "", *at = NULL;
    int err = 0;

    for (unsigned i = 0; i < s->n && !s->gpu; i++)
        bytes += rounded(s->connections[i].out_bytes) + rounded(s->connections[i].in_bytes);
    if (!s->gpu && (err = refuse(e, bytes)) != 0)
        return err;
    if (!s->gpu && (err = host_alloc(&s->buffer, e->topo, bytes, HOST_PAGES_THP, e->memory_node,
                                     error, sizeof(error))) != 0)
        return net_fail(e, err, "%s", error);
    at = s->buffer.at;
    for (unsigned rail = 0; rail < e->n_rails && !err; rail++)
        err = make_rail_buffers(e, rail, &at);
    return err ? err : fill_buffers(e);
}

static int make_link(struct net_end *e, unsigned number)
{
    struct stream *s = stream_of(e);
    struct connection *c = connection(e, number);
    struct wire_window window = {.out = c->out_bytes ? c->out : NULL,
                                 .in = c->in_bytes ? c->in : NULL,
                                 .message_bytes = c->message_bytes,
                                 .turns = is_ping(e, number)};
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
        err = wire_worker(stream_of(e)->wire, e->traits.way, rail);
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
    err = wire_worker(stream_of(e)->wire, e->traits.probe_way, 0);
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

int net_address(struct net_end *e, void *address, size_t *len)
{
    struct stream *s = stream_of(e);

    s->wire->options.node = e->memory_node;
    int err = make_buffers(e);
    err = err ? err : make_links(e);
    bool bound = !err && !topo_bind_self(e->topo, e->cpus[0]); /* it may measure a reference */
    err = err ? err : pack(e, address, len);
    if (bound)
        topo_unbind_self(e->topo);
    return err;
}

int net_join(struct net_end *e, const void *address, size_t len)
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

void net_wire_close(struct net_end *e)
{
    struct stream *s = stream_of(e);

    if (!s)
        return;
    guard_stop(e); /* it looks at the flags ten times a second */
    wire_close(s->wire);
    world_free(s->world);
    host_free(&s->buffer);
    device_memory_close(s->gpu); /* after what was registered of it */
    free(s->connections);
    free(s);
    e->state = NULL;
}

size_t net_facts(struct net_end *e, struct wire_fact *facts)
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
static int stood_still(struct net_end *e, unsigned number, int rc, uint64_t *since_ns)
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
                    "nothing moved on connection %u between here and %s for %.3g s over '%s': its "
                    "process was stopped or hangs, or the link is down",
                    number, channel_peer(e->channel), (double)s->still_ns / 1e9,
                    e->rails[net_rail_of(e, number)].name);
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

/* Of a window, as many as there is room for, but not few: that costs less than each by itself. */
static int post_window(struct connection *c, enum wire_side side)
{
    struct wire_link *l = c->link;
    const struct wire_flow *f = side == WIRE_OUT ? &l->out : &l->in;
    uint64_t room = l->ahead - (f->posted - f->through), n = room / c->message_bytes;

    if (!n || room < l->ahead / 8)
        return 0;
    return side == WIRE_OUT ? wire_send(l, c->out, n * c->message_bytes)
                            : wire_receive(l, c->in, n * c->message_bytes);
}

static int send_more(struct connection *c)
{
    const struct wire_flow *out = &c->link->out;
    uint64_t most = worth(c->link, c->message_bytes);
    int err = 0;

    if (c->link->worker->wire->ops->windows)
        return post_window(c, WIRE_OUT);
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

    if (c->link->worker->wire->ops->windows)
        return post_window(c, WIRE_IN);
    while (!err && in->posted - in->through + c->in_bytes <= most)
        err = wire_receive(c->link, c->in, c->in_bytes);
    return err;
}

/* Until the memory of what went out may be written again. */
static int settle(struct net_end *e, unsigned number, struct wire_link *l)
{
    int (*settled)(struct wire_link * l) = l->worker->wire->ops->settle;
    uint64_t since_ns = 0;
    int rc = settled ? 0 : 1, err = 0;

    while (rc <= 0 && !err) {
        rc = settled(l);
        err = rc <= 0 ? stood_still(e, number, rc, &since_ns) : 0;
    }
    return err;
}

/* What has moved on a connection since it was looked at. */
struct sum {
    uint64_t bytes, messages;
};

/* A message is posted as it is sent; what comes in may be many. */
static void look_out(struct net_end *e, unsigned number, struct sum *m)
{
    struct connection *c = connection(e, number);
    const struct wire_flow *f = &c->link->out;
    uint64_t whole = f->messages - c->out_messages;

    m->bytes += f->through - c->out_seen;
    m->messages += whole;
    c->out_seen = f->through;
    c->out_messages = f->messages;
    if (whole)
        count(&e->counts[number].sent, whole);
}

static void look_in(struct net_end *e, unsigned number, struct sum *m)
{
    struct connection *c = connection(e, number);
    const struct wire_flow *f = &c->link->in;
    uint64_t through = f->through, pending = (f->posted - through) % c->in_bytes;
    uint64_t whole = through / c->message_bytes - c->in_seen / c->message_bytes;
    size_t held = c->in_bytes - (size_t)pending;

    c->in_held = held > c->in_held ? held : c->in_held;
    m->bytes += through - c->in_seen;
    m->messages += whole;
    c->in_seen = through;
    if (whole)
        count(&e->counts[number].received, whole);
}

static bool is_stopping(const struct net_end *e)
{
    return net_stop(e) || atomic_load_explicit(&e->expect_known, memory_order_acquire);
}

/* Who acts: of what goes out, and of what comes in where the other end does not act. More is posted
 * as it gets through, unless it is to stop: then there is one connection less when all has. */
static int initiate(struct net_worker *w, enum wire_side side)
{
    struct net_end *e = w->end;
    struct wire_worker *k = connection(e, w->first)->link->worker;
    const struct wire_turn *turn = side == WIRE_OUT ? &k->out : &k->in;
    bool counts = net_counted_by_sender(e) == w->sends;
    uint64_t since_ns = 0;
    unsigned left = w->n;
    int err = 0;

    for (unsigned i = w->first; i < w->first + w->n && !err; i++)
        err = side == WIRE_OUT ? send_more(connection(e, i)) : receive_more(connection(e, i));
    while (left && !err) {
        struct sum moved = {0};
        int rc = wire_progress(k, side, TICK_NS);
        if (rc <= 0)
            err = stood_still(e, w->first, rc, &since_ns);
        else
            since_ns = 0;
        bool stop = is_stopping(e);
        for (unsigned i = 0; i < turn->n_moved && !err; i++) {
            unsigned number = w->first + (unsigned)(turn->moved[i] - k->links);
            struct connection *c = connection(e, number);
            (side == WIRE_OUT ? look_out : look_in)(e, number, &moved);
            const struct wire_flow *f = side == WIRE_OUT ? &c->link->out : &c->link->in;
            if (stop)
                left -= f->posted == f->through;
            else
                err = side == WIRE_OUT ? send_more(c) : receive_more(c);
        }
        if (counts && moved.bytes)
            net_tally_add(&w->tally, moved.bytes, moved.messages);
        err = net_over(e) ? -ECANCELED : err;
    }
    for (unsigned i = w->first; i < w->first + w->n && !err; i++)
        err = settle(e, i, connection(e, i)->link);
    return err && !net_over(e) ? wire_failed(e, err) : err;
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
        struct sum moved = {0};
        int rc = wire_progress(k, WIRE_IN, TICK_NS);
        if (rc <= 0)
            err = stood_still(e, w->first, rc, &since_ns);
        else
            since_ns = 0;
        for (unsigned i = 0; i < k->in.n_moved && !err; i++) {
            unsigned number = w->first + (unsigned)(k->in.moved[i] - k->links);
            look_in(e, number, &moved);
            err = receive_more(connection(e, number));
        }
        if (moved.bytes)
            net_tally_add(&w->tally, moved.bytes, moved.messages);
        err = net_over(e) ? -ECANCELED : err;
    }
    for (unsigned i = w->first; i < w->first + w->n; i++)
        if (k->wire->ops->retract)
            k->wire->ops->retract(connection(e, i)->link);
    return err && !net_over(e) ? wire_failed(e, err) : err;
}

int net_work(struct net_worker *w)
{
    struct net_end *e = w->end;
    bool fetches = !w->sends && !net_needs_worker(e, true);

    for (unsigned i = w->first; i < w->first + w->n; i++) {
        if (w->sends)
            ready_out(e, i, w->direction);
        else
            ready_in(connection(e, i));
    }
    int err = w->sends ? initiate(w, WIRE_OUT) : fetches ? initiate(w, WIRE_IN) : stream_in(w);
    return net_over(e) ? atomic_load(&e->error_code) : err;
}

/* Until so many bytes are through on one way of a link. Guarded, each wait has no end. */
static int until(struct net_end *e, const struct connection *c, enum wire_side side,
                 uint64_t through)
{
    struct wire_link *l = c->link;
    uint64_t wait_ns = stream_of(e)->guard.started ? WIRE_FOREVER : TICK_NS;
    const struct wire_flow *f = side == WIRE_OUT ? &l->out : &l->in;
    uint64_t since_ns = 0;
    int err = 0;

    while (f->through < through && !err) {
        int rc = wire_progress(l->worker, side, wait_ns);
        if (rc > 0)
            since_ns = 0;
        else
            err = stood_still(e, number_of(e, c), rc, &since_ns);
    }
    return err;
}

/* One whole message. Room for it comes with what went before. */
static int push(struct net_end *e, struct connection *c)
{
    uint64_t through = c->link->out.through + c->message_bytes;
    int err;

    while ((err = wire_send(c->link, c->out, c->message_bytes)) == -EAGAIN) {
        err = net_over(e) ? -ECANCELED : wire_progress(c->link->worker, WIRE_OUT, TICK_NS);
        if (err < 0)
            break;
    }
    err = err ? wire_failed(e, err) : until(e, c, WIRE_OUT, through);
    return err ? err : settle(e, number_of(e, c), c->link);
}

/* One more, until so many bytes are through. */
static int pull(struct net_end *e, struct connection *c, uint64_t through)
{
    int err = wire_receive(c->link, c->in, c->message_bytes);

    c->in_held = c->message_bytes;
    return err ? wire_failed(e, err) : until(e, c, WIRE_IN, through);
}

/* They are asked for when all is over. */
static void count_pings(struct net_end *e, uint64_t n)
{
    struct net_count *counts = &e->counts[e->point->connections];

    count(&counts->sent, ping_is_read(e) ? 0 : n);
    count(&counts->received, n);
}

static void count_turn(struct net_end *e)
{
    if (stream_of(e)->guard.started)
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
        if (stood_still(e, e->point->connections, 0, &since_ns)) {
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

/* ---- Pings ----
 *
 * The last byte of each message has its number, modulo 127 and from 1, and LAST: so what came
 * before is not taken for it. Where CPUs cannot reach buffers, or the transport has a place for it,
 * it travels beside the message.
 *
 * Where ops->bursts, the leader sends many back to back, and hands their times out one by one:
 * between two calls of its hook much else runs, which leaves the way cold: the first three after it
 * are slower by a tenth. The time of each is from its own beginning to the next one's, so that all
 * that a message costs is in it: the posting of receives and the reading of completions, too. */

static uint8_t mark_of(uint64_t number, bool last)
{
    return (uint8_t)(number % 127 + 1) | (last ? LAST : 0);
}

static int say_mark(struct net_end *e, struct connection *c, uint8_t mark)
{
    c->link->turn_out = mark;
    if (!c->link->turns_beside)
        c->out[c->message_bytes - 1] = (char)mark;
    return push(e, c);
}

static int hear(struct net_end *e, struct connection *c, uint8_t *mark)
{
    uint8_t expected = mark_of(c->pings, false);

    c->link->turn_in = expected;
    int err = pull(e, c, c->link->in.through + c->message_bytes);
    if (err)
        return err;
    *mark = c->link->turns_beside ? c->link->turn_in : (uint8_t)c->in[c->message_bytes - 1];
    return (*mark & ~LAST) == expected
               ? 0
               : net_fail(e, -EBADMSG, "a message from %s came out of its order",
                          channel_peer(e->channel));
}

static int there_and_back(struct net_end *e, struct connection *c, bool last)
{
    uint8_t mark = mark_of(c->pings, last);
    int err =
        ping_is_read(e) ? pull(e, c, c->link->in.through + c->message_bytes) : say_mark(e, c, mark);

    if (!err && !ping_is_read(e))
        err = hear(e, c, &mark);
    c->pings++;
    count_turn(e);
    return err;
}

static int burst(struct net_end *e, struct connection *c, bool last)
{
    struct burst *b = &stream_of(e)->burst;
    unsigned most = e->ops->windows ? BURST : 1;
    uint64_t begin_ns = clock_now_ns(), since_ns = begin_ns, now_ns;
    int err;

    b->n = b->told = 0;
    do {
        err = there_and_back(e, c, last);
        now_ns = clock_now_ns();
        b->ns[b->n++] = now_ns - since_ns;
        since_ns = now_ns;
    } while (!err && !last && b->n < most && now_ns - begin_ns < BURST_NS);
    count_pings(e, b->n - (err != 0));
    return err;
}

/* An empty message goes, and is there. */
static int say_word(struct net_end *e, struct connection *c)
{
    uint64_t since_ns = 0;
    int err = c->link->worker->wire->ops->word(c->link), rc;

    err = err ? wire_failed(e, err) : 0;
    c->said++;
    while (!err && c->link->words_out < c->said)
        if ((rc = wire_progress(c->link->worker, WIRE_BOTH, TICK_NS)) <= 0)
            err = stood_still(e, e->point->connections, rc, &since_ns);
    return err;
}

int net_ping(struct net_end *e, bool last, uint64_t *ns)
{
    struct connection *c = connection(e, e->point->connections);
    struct burst *b = &stream_of(e)->burst;
    int err = 0;

    ready_out(e, e->point->connections, NET_FORWARD);
    ready_in(c);
    err = guard_start(e);
    if (!err && (last || b->told == b->n)) {
        err = burst(e, c, last);
        if (!err && last && ping_is_read(e))
            err = say_word(e, c);
    }
    *ns = b->ns[b->told++];
    if (last)
        guard_stop(e);
    return err;
}

/* Who is read has nothing to do but to wait for the word that it is over; it leaves its CPU
 * alone. */
static int wait_word(struct net_end *e, struct connection *c)
{
    int rc = 0;

    c->heard++;
    while (c->link->words_in < c->heard && !net_over(e)) {
        rc = wire_progress(c->link->worker, WIRE_BOTH, 0);
        if (rc < 0)
            return wire_failed(e, rc);
        if (!rc)
            usleep(REST_US);
    }
    return 0;
}

int net_pong(struct net_end *e)
{
    struct connection *c = connection(e, e->point->connections);
    uint64_t before = c->pings;
    uint8_t mark = 0;
    int err = 0;

    ready_out(e, e->point->connections, NET_REVERSE);
    ready_in(c);
    err = guard_start(e);
    if (!err && ping_is_read(e))
        err = wait_word(e, c);
    while (!(mark & LAST) && !err && !ping_is_read(e)) {
        err = hear(e, c, &mark);
        err = err ? err : say_mark(e, c, mark);
        c->pings += !err;
        count_turn(e);
    }
    count_pings(e, ping_is_read(e) ? 0 : c->pings - before);
    guard_stop(e);
    return net_over(e) ? atomic_load(&e->error_code) : err;
}

bool net_ping_is_whole(const struct net_end *e)
{
    return ping_is_read(e);
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

static int compare(struct net_end *e, unsigned number, const char *in, size_t bytes, unsigned round)
{
    struct stream *s = stream_of(e);
    uint64_t seed = net_seed(e->point, e->leader ? NET_REVERSE : NET_FORWARD, number, round);
    size_t wrong = PATTERN_RIGHT;
    int err = s->gpu && bytes ? device_memory_check(s->gpu, in, bytes, seed, &wrong) : 0;

    if (err)
        return net_fail(e, err, "%s", device_memory_error(s->gpu));
    if (!s->gpu)
        wrong = pattern_check(in, bytes, seed);
    if (wrong == PATTERN_RIGHT)
        return 0;
    return net_fail(
        e, -EBADMSG,
        "wrong data on connection %u from %s: byte %zu of %zu of %s message is not what was sent",
        number, channel_peer(e->channel), wrong, connection(e, number)->message_bytes,
        round ? "a fresh" : "the last");
}

/* As many of the last messages as the buffer held; a ping's last byte may be its mark. */
static int check_last(struct net_end *e, unsigned number)
{
    struct connection *c = connection(e, number);
    bool marked = is_ping(e, number) && !ping_is_read(e) && !c->link->turns_beside;
    size_t held = c->in_held - c->in_held % c->message_bytes;
    int err = 0;

    if (!is_ping(e, number) && !net_needs_worker(e, false) &&
        e->expect[number]) /* they came without this end's doing */
        held = c->message_bytes;
    for (size_t at = 0; at < held && !err; at += c->message_bytes)
        err = compare(e, number, c->in + at, c->message_bytes - marked, 0);
    return err;
}

/* Both ends are here, and all that the other one posted before on this connection is through. */
static int meet(struct net_end *e, struct connection *c)
{
    uint64_t since_ns = 0;
    int err, rc;

    if (!c->link->worker->wire->ops->word)
        return 0;
    err = say_word(e, c);
    c->heard++;
    while (!err && c->link->words_in < c->heard)
        if ((rc = wire_progress(c->link->worker, WIRE_BOTH, TICK_NS)) <= 0)
            err = stood_still(e, e->point->connections, rc, &since_ns);
    return err;
}

static int send_fresh(struct net_end *e, unsigned number, enum net_direction d)
{
    struct connection *c = connection(e, number);
    int err = fill(e, c->out, c->message_bytes, net_seed(e->point, d, number, 1), false);

    c->out_ready = false;
    err = err ? err : meet(e, c);
    if (!err && net_needs_worker(e, true))
        err = push(e, c);
    err = err ? err : meet(e, c);
    c->out_seen = c->link->out.through;
    c->out_messages = c->link->out.messages;
    if (err || !e->ops->windows)
        return err;
    c->out_ready = true;
    return fill(e, c->out, c->message_bytes, net_seed(e->point, d, number, 0), false);
}

/* Where something is to come in, every byte is wrong before it does. A peer that finds nothing
 * wrong still wants to be met. */
static int receive_fresh(struct net_end *e, unsigned number, enum net_direction d)
{
    struct connection *c = connection(e, number);
    uint64_t through = c->link->in.through + c->message_bytes; /* it may come as soon as they met */
    int wrong = check_last(e, number);

    if (wrong && !c->link->worker->wire->ops->word)
        return wrong;
    int err = fill(e, c->in, c->message_bytes, net_seed(e->point, d, number, 1), true);
    err = err ? err : meet(e, c);
    if (!err && net_needs_worker(e, false))
        err = pull(e, c, through);
    err = err ? err : meet(e, c);
    c->in_seen = c->link->in.through;
    c->in_held = 0;
    err = err ? err : compare(e, number, c->in, c->message_bytes, 1);
    if (!err && is_ping(e, number) && !stream_of(e)->gpu)
        c->in[c->message_bytes - 1] = 0; /* no ping's mark */
    return wrong ? wrong : err;
}

/* One direction of one connection after the other, at both ends: no two ends wait for each other
 * with full buffers. */
int net_check(struct net_end *e)
{
    struct stream *s = stream_of(e);
    int err = 0;

    for (unsigned i = s->first; i < s->first + s->n; i++)
        for (int k = 0; k < NET_DIRECTIONS && !err; k++) {
            enum net_direction d = (enum net_direction)k;
            if (goes(e, i, d))
                err = net_sends(e, d) ? send_fresh(e, i, d) : receive_fresh(e, i, d);
        }
    return err;
}
