/* SPDX-License-Identifier: Apache-2.0 */
/* The peer: does what the leader asks, request by request, until it says goodbye. See lead.h. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "benches/net/lead.h"
#include "core/group/channel.h"
#include "core/hw/machine.h"

/* A leader may be idle between two points for as long as its own measuring takes. */
#define IDLE_WAIT_NS 60000000000u
#define IDLE_MOST_NS 10000000000u /* that it may ask to watch the idle machine */

struct server {
    struct channel *channel;
    pthread_t beat;
    pthread_mutex_t lock; /* of the channel: taken, but while a request is worked on */
    pthread_cond_t tick;
    bool beats, over;
    uint64_t since_ns; /* a request is worked on; 0: none is */
    const struct net_service *service;
    struct topo *topo;
    bool same_machine;
    struct net_order order; /* of the point that is open */
    struct net_end end;
    bool open;
    unsigned state; /* enum state */
    _Alignas(8) char in[CHANNEL_FRAME_MAX];
    struct {
        struct net_reply head;
        char body[CHANNEL_FRAME_MAX - sizeof(struct net_reply)];
    } out;
    size_t out_len; /* of the body */
};

static int refuse(struct server *s, int err, const char *text)
{
    snprintf(s->out.head.error, sizeof(s->out.head.error), "%s", text);
    return err;
}

static int hello(struct server *s, size_t len)
{
    const struct net_hello *asked = (const void *)s->in;
    struct net_hello *own = (void *)s->out.body;

    if (len != sizeof(*asked))
        return -EPROTO;
    *own = (struct net_hello){.idle_ns = asked->idle_ns, .idle_cores = NAN, .idle_softirq = NAN};
    machine_id(own->machine);
    gethostname(own->host, sizeof(own->host) - 1);
    char theirs[sizeof(asked->machine)];
    memcpy(theirs, asked->machine, sizeof(theirs));
    theirs[sizeof(theirs) - 1] = 0;
    s->same_machine = machine_same(own->machine, theirs);
    if (asked->idle_ns && asked->idle_ns <= IDLE_MOST_NS && !s->same_machine)
        net_watch_idle(asked->idle_ns, own);
    s->out_len = sizeof(*own);
    return 0;
}

/* What this end's own command line says goes before what the leader asks. */
static void add_own(struct net_local *local, const struct net_local *own)
{
    if (!own)
        return;
    if (own->devices[0])
        memcpy(local->devices, own->devices, sizeof(local->devices));
    if (own->node != NET_NODE_NEAR)
        local->node = own->node;
    if (own->memory[0])
        memcpy(local->memory, own->memory, sizeof(local->memory));
}

static int open_point(struct server *s, size_t len)
{
    if (len != sizeof(s->order) || s->open)
        return -EPROTO;
    memcpy(&s->order, s->in, sizeof(s->order));
    s->order.point.transport[sizeof(s->order.point.transport) - 1] = 0;
    s->order.point.tcp.congestion[sizeof(s->order.point.tcp.congestion) - 1] = 0;
    s->order.local.devices[sizeof(s->order.local.devices) - 1] = 0;
    s->order.local.memory[sizeof(s->order.local.memory) - 1] = 0;
    if (s->order.n_cpus > NET_WORKERS_MAX)
        return -EPROTO;
    add_own(&s->order.local, s->service->own);
    s->open = true;
    int err = net_end_open(&s->end, &s->order, s->channel, s->topo, false, s->same_machine);
    if (!err)
        net_end_rails(&s->end, (void *)s->out.body);
    s->out_len = sizeof(struct net_rails);
    return err;
}

static int address(struct server *s, size_t len)
{
    size_t n = 0;
    int err = s->end.ops->address(&s->end, s->out.body, &n);

    (void)len;
    s->out_len = n;
    return err;
}

static int join(struct server *s, size_t len)
{
    return s->end.ops->join(&s->end, s->in, len);
}

static int start(struct server *s, size_t len)
{
    (void)len;
    net_prove_begin(&s->end);
    int err = net_workers_start(&s->end);
    return err || !s->end.point->ping ? err : net_pong_start(&s->end);
}

static int read_end(struct server *s, size_t len)
{
    uint32_t flags = 0;

    if (len != sizeof(flags))
        return -EPROTO;
    memcpy(&flags, s->in, len);
    net_read(&s->end, (void *)s->out.body, flags);
    s->out_len = sizeof(struct net_reading);
    return atomic_load(&s->end.error_code);
}

static int stop(struct server *s, size_t len)
{
    (void)len;
    net_facts_take(&s->end);
    s->out_len = s->end.point->connections * sizeof(uint64_t);
    return net_workers_stop(&s->end, (void *)s->out.body, NULL, NULL);
}

static int drain(struct server *s, size_t len)
{
    uint64_t sent[NET_CONNECTIONS_MAX];

    if (len != s->end.point->connections * sizeof(*sent))
        return -EPROTO;
    memcpy(sent, s->in, len);
    int err = net_workers_drain(&s->end, sent, NULL, NULL);
    int pong_err = net_pong_end(&s->end);
    return err ? err : pong_err;
}

static int prove(struct server *s, size_t len)
{
    uint64_t received[NET_CONNECTIONS_MAX + 1];

    s->out_len = (s->end.point->connections + 1u) * sizeof(*received);
    if (len != s->out_len)
        return -EPROTO;
    memcpy(received, s->in, len);
    net_prove_end(&s->end, received);
    net_received(&s->end, (void *)s->out.body);
    return 0;
}

static int check(struct server *s, size_t len)
{
    (void)len;
    return s->end.ops->check(&s->end);
}

static int report(struct server *s, size_t len)
{
    (void)len;
    net_report_make(&s->end, (void *)s->out.body);
    s->out_len = sizeof(struct net_report);
    return 0;
}

static int close_point(struct server *s, size_t len)
{
    (void)len;
    if (s->open)
        net_end_close(&s->end);
    s->open = false;
    return 0;
}

/* How far a point has come: requests out of turn are refused, since each builds on
 * the one before. */
enum state { NOTHING, OPENED, ADDRESSED, JOINED, STARTED, STOPPED, DRAINED };

static int answer(struct server *s, uint16_t type, size_t len);

static const struct {
    int (*answer)(struct server *s, size_t len);
    enum state from, to, then; /* taken in states from..to, which it leads to `then` */
} requests[] = {
    [NET_ASK_HELLO] = {hello, NOTHING, NOTHING, NOTHING},
    [NET_ASK_OPEN] = {open_point, NOTHING, NOTHING, OPENED},
    [NET_ASK_ADDRESS] = {address, OPENED, OPENED, ADDRESSED},
    [NET_ASK_JOIN] = {join, ADDRESSED, ADDRESSED, JOINED},
    [NET_ASK_START] = {start, JOINED, JOINED, STARTED},
    [NET_ASK_READ] = {read_end, OPENED, DRAINED, NOTHING},
    [NET_ASK_STOP] = {stop, STARTED, STARTED, STOPPED},
    [NET_ASK_DRAIN] = {drain, STOPPED, STOPPED, DRAINED},
    [NET_ASK_PROVE] = {prove, DRAINED, DRAINED, NOTHING},
    [NET_ASK_CHECK] = {check, DRAINED, DRAINED, NOTHING},
    [NET_ASK_REPORT] = {report, DRAINED, DRAINED, NOTHING},
    [NET_ASK_CLOSE] = {close_point, NOTHING, DRAINED, NOTHING},
};

/* Says that this process is at work, when an answer takes long. */
static void *beat(void *arg)
{
    struct server *s = arg;

    pthread_mutex_lock(&s->lock);
    while (!s->over) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += NET_BEAT_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&s->tick, &s->lock, &until);
        if (s->since_ns && clock_now_ns() - s->since_ns >= NET_BEAT_NS)
            channel_send(s->channel, NET_BEAT, NULL, 0); /* an error is the answer's, too */
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int tick_start(struct server *s)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->tick, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_lock(&s->lock);
    int err = net_beats(s->channel) ? -pthread_create(&s->beat, NULL, beat, s) : 0;
    s->beats = net_beats(s->channel) && !err;
    return err;
}

static void tick_end(struct server *s)
{
    s->over = true;
    pthread_cond_signal(&s->tick);
    pthread_mutex_unlock(&s->lock);
    if (s->beats)
        pthread_join(s->beat, NULL);
    pthread_cond_destroy(&s->tick);
    pthread_mutex_destroy(&s->lock);
}

static int work_on(struct server *s, uint16_t type, size_t len)
{
    s->since_ns = clock_now_ns();
    pthread_mutex_unlock(&s->lock);
    int err = requests[type].answer(s, len);
    pthread_mutex_lock(&s->lock);
    s->since_ns = 0;
    return err;
}

/* A thread may have failed while nothing was asked: its error is the next answer. */
static int do_request(struct server *s, uint16_t type, size_t len)
{
    int err = 0;

    if (type >= sizeof(requests) / sizeof(*requests) || !requests[type].answer ||
        s->state < requests[type].from || s->state > requests[type].to)
        return -EPROTO;
    if (requests[type].from > NOTHING)
        err = atomic_load(&s->end.error_code);
    if (!err)
        err = work_on(s, type, len);
    if (!s->open)
        s->state = NOTHING;
    else if (requests[type].then &&
             (!err || type == NET_ASK_OPEN)) /* one that failed half-way is closed like any */
        s->state = requests[type].then;
    return err;
}

static int answer(struct server *s, uint16_t type, size_t len)
{
    memset(&s->out.head, 0, sizeof(s->out.head));
    s->out_len = 0;
    int err = do_request(s, type, len);
    if (err && s->open && s->end.error[0])
        refuse(s, err, s->end.error);
    else if (err)
        refuse(s, err, strerror(-err));
    s->out.head.err = err;
    return channel_send(s->channel, type | NET_REPLY, &s->out,
                        sizeof(s->out.head) + (err ? 0 : s->out_len));
}

/* Pings come without requests; when they stop, pong() ends with an error. A leader that stops
 * finishes its messages first, however long they take: it says so (NET_ASK_BEAT). */
static bool is_answering(const struct server *s)
{
    return s->open && s->end.pong_started && !atomic_load(&s->end.error_code);
}

/* While a point is open a leader asks all the time; silence then is a leader that hangs or
 * was cut off. */
static int serve(struct server *s)
{
    for (;;) {
        uint16_t type;
        size_t len;
        uint64_t quiet_ns = 0;
        int err;
        while ((err = channel_recv(s->channel, &type, s->in, sizeof(s->in), &len, 1000000000u)) ==
               -ETIMEDOUT) {
            quiet_ns += 1000000000u;
            if (quiet_ns >= (s->open ? 2 * CHANNEL_WAIT_NS : IDLE_WAIT_NS) && !is_answering(s))
                break;
        }
        if (!err && type == NET_ASK_BYE)
            return 0;
        if (!err && type == NET_ASK_BEAT)
            continue;
        if (!err)
            err = answer(s, type, len);
        if (err)
            return err;
    }
}

int net_serve(struct channel *c, void *arg)
{
    struct server *s = calloc(1, sizeof(*s));

    if (!s)
        return 1;
    s->channel = c;
    s->service = arg;
    struct beat *signs = NULL;
    int err = tick_start(s);
    if (!err)
        err = topo_open(&s->topo);
    if (!err)
        err = beat_start(&signs, &c, 1, BEAT_LEADING_NS);
    if (!err || err == -EOPNOTSUPP)
        err = serve(s);
    beat_end(signs);
    tick_end(s);
    if (s->open)
        net_end_close(&s->end);
    topo_close(s->topo);
    free(s);
    return err == -EHOSTUNREACH ? err : err ? 1 : 0;
}
