/* SPDX-License-Identifier: Apache-2.0 */
/* One message at a time: pings, and the fresh messages that show whether what arrives is what was
 * sent. */
#include "benches/net/mover.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/rng.h"

#define BURST_NS 20000000u /* of pings back to back, at most */
#define REST_US  10000     /* of an end that is read: between two looks whether that is over */
#define WATCH_NS 100000000
#define LAST     0x80u /* of a ping's mark */

/* Until so many bytes are through on one way of a link. Guarded, each wait has no end. */
static int until(struct net_end *e, const struct net_connection *c, enum wire_side side,
                 uint64_t through)
{
    struct wire_link *l = c->link;
    uint64_t wait_ns = e->guard.started ? WIRE_FOREVER : NET_TICK_NS;
    const struct wire_flow *f = side == WIRE_OUT ? &l->out : &l->in;
    struct clock_wait still = {0};
    int err = 0;

    while (f->through < through && !err) {
        int rc = wire_progress(l->worker, side, wait_ns);
        if (rc > 0)
            still = (struct clock_wait){0};
        else
            err = net_stood_still(e, c, rc, &still);
    }
    return err;
}

/* One whole message. Room for it comes with what went before. */
static int push(struct net_end *e, struct net_connection *c)
{
    uint64_t through = c->link->out.through + c->message_bytes;
    int err;

    while ((err = wire_send(c->link, c->out, c->message_bytes)) == -EAGAIN) {
        err = net_over(e) ? -ECANCELED : wire_progress(c->link->worker, WIRE_OUT, NET_TICK_NS);
        if (err < 0)
            break;
    }
    err = err ? net_wire_failed(e, err) : until(e, c, WIRE_OUT, through);
    return err ? err : net_settle(e, c);
}

/* One more, until so many bytes are through. */
static int pull(struct net_end *e, struct net_connection *c, uint64_t through)
{
    int err = wire_receive(c->link, c->in, c->message_bytes);

    c->in_held = c->message_bytes;
    return err ? net_wire_failed(e, err) : until(e, c, WIRE_IN, through);
}

/* An empty message goes, and is there. */
static int say_word(struct net_end *e, struct net_connection *c)
{
    struct clock_wait still = {0};
    int err = e->wire->ops->word(c->link), rc;

    err = err ? net_wire_failed(e, err) : 0;
    c->said++;
    while (!err && c->link->words_out < c->said)
        if ((rc = wire_progress(c->link->worker, WIRE_BOTH, NET_TICK_NS)) <= 0)
            err = net_stood_still(e, c, rc, &still);
    return err;
}

/* ---- Waits without end ---- */

/* A wait with an end arms a timer each time, which costs some per cent of a round trip. So a thread
 * that sleeps most of the time ends them where nothing has moved for too long, or where everything
 * is over. */
static void *watch(void *arg)
{
    struct net_end *e = arg;
    struct net_connection *c = net_connection(e, e->point->connections);
    struct clock_wait still = {0};
    uint64_t seen = 0;
    struct timespec rest = {.tv_nsec = WATCH_NS};

    while (!atomic_load(&e->guard.end)) {
        uint64_t turns = atomic_load_explicit(&e->guard.turns, memory_order_relaxed);
        if (turns != seen)
            still = (struct clock_wait){0};
        seen = turns;
        if (net_stood_still(e, c, 0, &still)) {
            e->wire->ops->interrupt(c->link);
            break;
        }
        nanosleep(&rest, NULL);
    }
    return NULL;
}

/* Left alone where waits without end are so already. */
static int guard_start(struct net_end *e)
{
    struct net_guard *g = &e->guard;

    if (g->started || !e->wire->ops->interrupt)
        return 0;
    atomic_store(&g->end, false);
    int err = net_thread_start(e, &g->thread, watch, e);
    g->started = !err;
    return err;
}

void net_guard_stop(struct net_end *e)
{
    if (!e->guard.started)
        return;
    atomic_store(&e->guard.end, true);
    pthread_join(e->guard.thread, NULL);
    e->guard.started = false;
}

/* ---- Pings ----
 *
 * The last byte of each message has its number, modulo 127 and from 1, and LAST: so what came
 * before is not taken for it. Where CPUs cannot reach buffers, or the transport has a place for it,
 * it travels beside the message.
 *
 * Of a wire with windows, the leader sends many back to back, and hands their times out one by one:
 * between two calls of its hook much else runs, which leaves the way cold: the first three after it
 * are slower by a tenth. The time of each is from its own beginning to the next one's, so that all
 * that a message costs is in it: the posting of receives and the reading of completions, too. */

/* They are asked for when all is over. */
static void count_pings(struct net_end *e, uint64_t n)
{
    struct net_count *counts = &e->counts[e->point->connections];

    net_count_add(&counts->sent, net_ping_is_read(e) ? 0 : n);
    net_count_add(&counts->received, n);
}

static void count_turn(struct net_end *e)
{
    if (e->guard.started)
        net_count_add(&e->guard.turns, 1);
}

static uint8_t mark_of(uint64_t number, bool last)
{
    return (uint8_t)(number % 127 + 1) | (last ? LAST : 0);
}

static int say_mark(struct net_end *e, struct net_connection *c, uint8_t mark)
{
    c->link->turn_out = mark;
    if (!c->link->turns_beside)
        c->out[c->message_bytes - 1] = (char)mark;
    return push(e, c);
}

static int hear(struct net_end *e, struct net_connection *c, uint8_t *mark)
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

static int burst(struct net_end *e, struct net_connection *c, bool last)
{
    struct net_burst *b = &e->burst;
    unsigned most = e->ops->windows ? NET_BURST : 1;
    uint64_t begin_ns = clock_now_ns(), since_ns = begin_ns, now_ns;
    int err;

    b->n = b->taken = 0;
    do {
        uint8_t mark = mark_of(c->pings, last);
        err = net_ping_is_read(e) ? pull(e, c, c->link->in.through + c->message_bytes)
                                  : say_mark(e, c, mark);
        if (!err && !net_ping_is_read(e))
            err = hear(e, c, &mark);
        c->pings++;
        count_turn(e);
        now_ns = clock_now_ns();
        b->ns[b->n++] = now_ns - since_ns;
        since_ns = now_ns;
    } while (!err && !last && b->n < most && now_ns - begin_ns < BURST_NS);
    count_pings(e, b->n - (err != 0));
    return err;
}

int net_ping(struct net_end *e, bool last, uint64_t *ns)
{
    struct net_connection *c = net_connection(e, e->point->connections);
    struct net_burst *b = &e->burst;
    int err = 0;

    net_ready_out(e, c);
    net_ready_in(c);
    err = guard_start(e);
    if (!err && (last || b->taken == b->n)) {
        err = burst(e, c, last);
        if (!err && last && net_ping_is_read(e))
            err = say_word(e, c);
    }
    *ns = b->ns[b->taken++];
    if (last)
        net_guard_stop(e);
    return err;
}

/* Who is read has nothing to do but to wait for the word that it is over; it leaves its CPU
 * alone. */
static int wait_word(struct net_end *e, struct net_connection *c)
{
    int rc = 0;

    c->heard++;
    while (c->link->words_in < c->heard && !net_over(e)) {
        rc = wire_progress(c->link->worker, WIRE_BOTH, 0);
        if (rc < 0)
            return net_wire_failed(e, rc);
        if (!rc)
            usleep(REST_US);
    }
    return 0;
}

int net_pong(struct net_end *e)
{
    struct net_connection *c = net_connection(e, e->point->connections);
    uint64_t before = c->pings;
    uint8_t mark = 0;
    int err = 0;

    net_ready_out(e, c);
    net_ready_in(c);
    err = guard_start(e);
    if (!err && net_ping_is_read(e))
        err = wait_word(e, c);
    while (!(mark & LAST) && !err && !net_ping_is_read(e)) {
        err = hear(e, c, &mark);
        err = err ? err : say_mark(e, c, mark);
        c->pings += !err;
        count_turn(e);
    }
    count_pings(e, net_ping_is_read(e) ? 0 : c->pings - before);
    net_guard_stop(e);
    return net_over(e) ? atomic_load(&e->error_code) : err;
}

static void *run_pong(void *arg)
{
    struct net_end *e = arg;
    unsigned cpu = e->cpus[e->n_cpus - 1];
    int err = topo_bind_self(e->topo, cpu);

    if (err)
        net_fail(e, err, "cannot bind a thread to CPU %u: %s", cpu, strerror(-err));
    else if ((err = net_pong(e)))
        net_fail(e, err, "%s: answering failed: %s", e->ops->name, strerror(-err));
    return NULL;
}

int net_pong_start(struct net_end *e)
{
    int err = net_thread_start(e, &e->pong, run_pong, e);

    e->pong_started = !err;
    return err;
}

int net_pong_end(struct net_end *e)
{
    if (e->pong_started)
        pthread_join(e->pong, NULL);
    e->pong_started = false;
    return atomic_load(&e->error_code);
}

/* ---- Was what arrived what was sent? ---- */

static int compare(struct net_end *e, const struct net_connection *c, const char *in, size_t bytes,
                   unsigned round)
{
    size_t wrong;
    int err = net_find_wrong(e, in, bytes, net_seed(e, c, WIRE_IN, round), &wrong);

    if (err)
        return err;
    if (wrong == PATTERN_RIGHT)
        return 0;
    return net_fail(
        e, -EBADMSG,
        "wrong data on connection %u from %s: byte %zu of %zu of %s message is not what was sent",
        c->number, channel_peer(e->channel), wrong, c->message_bytes,
        round ? "a fresh" : "the last");
}

/* As many of the last messages as the buffer held; a ping's last byte may be its mark. */
static int check_last(struct net_end *e, const struct net_connection *c)
{
    bool marked = c->ping && !net_ping_is_read(e) && !c->link->turns_beside;
    size_t held = c->in_held - c->in_held % c->message_bytes;
    int err = 0;

    if (!c->ping && !net_needs_worker(e, false) && e->expect[c->number])
        /* they came without this end's doing */
        held = c->message_bytes;
    for (size_t at = 0; at < held && !err; at += c->message_bytes)
        err = compare(e, c, c->in + at, c->message_bytes - marked, 0);
    return err;
}

/* Both ends are here, and all that the other one posted before on this connection is through. */
static int meet(struct net_end *e, struct net_connection *c)
{
    struct clock_wait still = {0};
    int err, rc;

    if (!e->wire->ops->word)
        return 0;
    err = say_word(e, c);
    c->heard++;
    while (!err && c->link->words_in < c->heard)
        if ((rc = wire_progress(c->link->worker, WIRE_BOTH, NET_TICK_NS)) <= 0)
            err = net_stood_still(e, c, rc, &still);
    return err;
}

static int send_fresh(struct net_end *e, struct net_connection *c)
{
    int err = net_fill(e, c->out, c->message_bytes, net_seed(e, c, WIRE_OUT, 1), false);

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
    return net_fill(e, c->out, c->message_bytes, net_seed(e, c, WIRE_OUT, 0), false);
}

/* Where something is to come in, every byte is wrong before it does. A peer that finds nothing
 * wrong still wants to be met. */
static int receive_fresh(struct net_end *e, struct net_connection *c)
{
    uint64_t through = c->link->in.through + c->message_bytes; /* it may come as soon as they met */
    int wrong = check_last(e, c);

    if (wrong && !e->wire->ops->word)
        return wrong;
    int err = net_fill(e, c->in, c->message_bytes, net_seed(e, c, WIRE_IN, 1), true);
    err = err ? err : meet(e, c);
    if (!err && net_needs_worker(e, false))
        err = pull(e, c, through);
    err = err ? err : meet(e, c);
    c->in_seen = c->link->in.through;
    c->in_held = 0;
    err = err ? err : compare(e, c, c->in, c->message_bytes, 1);
    if (!err && c->ping && !e->gpu)
        c->in[c->message_bytes - 1] = 0; /* no ping's mark */
    return wrong ? wrong : err;
}

/* One direction of one connection after the other, at both ends: no two ends wait for each other
 * with full buffers. */
int net_check(struct net_end *e)
{
    int err = 0;

    for (unsigned i = 0; i < e->n; i++)
        for (int d = 0; d < NET_DIRECTIONS && !err; d++) {
            struct net_connection *c = &e->connections[i];
            bool sends = net_sends(e, (enum net_direction)d);
            if (sends ? c->out_bytes : c->in_bytes)
                err = sends ? send_fresh(e, c) : receive_fresh(e, c);
        }
    return err;
}
