/* SPDX-License-Identifier: Apache-2.0 */
/* What goes through the memory that both ends share: see shm_net.h. */
#include <errno.h>
#include <sched.h>

#include "core/rng.h"
#include "core/wire/shm_net.h"

#define TURNS_A_YIELD 64u
#define TURNS_A_LOOK  1024u /* at clock and flags */

struct idle {
    unsigned turns;
    uint64_t since_ns;
};

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int look(struct net_end *e, struct idle *idle)
{
    uint64_t now_ns = clock_now_ns();

    if (net_over(e))
        return -ECANCELED;
    if (!idle->since_ns)
        idle->since_ns = now_ns;
    if (now_ns - idle->since_ns < shm_of(e)->still_ns)
        return 0;
    return net_fail(
        e, -ETIMEDOUT,
        "nothing moved between here and %s for %.3g s in shared memory: its process was "
        "stopped or hangs",
        channel_peer(e->channel), (double)shm_of(e)->still_ns / 1e9);
}

/* Nothing can move now. */
static inline int wait_a_turn(struct net_end *e, struct idle *idle)
{
    pause_cpu();
    if (++idle->turns % TURNS_A_YIELD)
        return 0;
    sched_yield();
    return idle->turns % TURNS_A_LOOK ? 0 : look(e, idle);
}

static void count(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static size_t push(struct net_end *e, unsigned number)
{
    struct shm_connection *c = &shm_of(e)->connections[number];
    size_t n = shm_ring_push(c->out_ring, c->out + c->out_at, c->message_bytes - c->out_at);

    c->out_at += n;
    if (c->out_at == c->message_bytes) {
        c->out_at = 0;
        count(&e->counts[number].sent, 1);
    }
    return n;
}

static size_t pull(struct net_end *e, unsigned number, uint64_t *messages)
{
    struct shm_connection *c = &shm_of(e)->connections[number];
    size_t n = shm_ring_pull(c->in_ring, c->in + c->in_at, c->in_bytes - c->in_at);

    *messages = (c->in_at + n) / c->message_bytes - c->in_at / c->message_bytes;
    c->in_at += n;
    if (c->in_at == c->in_bytes)
        c->in_at = 0;
    c->in_total += n;
    if (*messages)
        count(&e->counts[number].received, *messages);
    return n;
}

/* A chunk of each connection in turn. Returns how many bytes; *busy: some connection is not done. */
static size_t send_round(struct net_worker *w, bool *busy)
{
    struct net_end *e = w->end;
    size_t moved = 0;

    *busy = false;
    for (unsigned i = w->first; i < w->first + w->n; i++)
        if (shm_of(e)->connections[i].out_at || !net_stop(e)) {
            *busy = true;
            moved += push(e, i);
        }
    return moved;
}

static size_t receive_round(struct net_worker *w, bool *busy)
{
    struct net_end *e = w->end;
    size_t moved = 0;

    *busy = false;
    for (unsigned i = w->first; i < w->first + w->n; i++)
        if (!net_drained(e, i)) {
            uint64_t messages;
            size_t n = pull(e, i, &messages);
            *busy = true;
            moved += n;
            if (n)
                net_tally_add(&w->tally, n, messages);
        }
    return moved;
}

static void ready_out(struct net_end *e, unsigned number, enum net_direction d)
{
    struct shm_connection *c = &shm_of(e)->connections[number];

    if (!c->out_ready)
        pattern_fill(c->out, c->message_bytes, net_seed(e->point, d, number, 0));
    c->out_ready = true;
}

/* Touched by the thread that will write it; the ring by reading, since the sender may be at work. So both
 * lie where the receiver runs. */
static void ready_in(struct shm_connection *c)
{
    const volatile char *data = c->in_ring->data;

    if (!c->in_ready) {
        memset(c->in, 0, c->in_bytes);
        for (size_t i = 0; i < SHM_RING_BYTES; i += SHM_PAGE_BYTES)
            (void)data[i];
    }
    c->in_ready = true;
}

int shm_work(struct net_worker *w)
{
    struct net_end *e = w->end;
    struct idle idle = {0};
    bool busy = true;
    int err = 0;

    for (unsigned i = w->first; i < w->first + w->n; i++) {
        if (w->sends)
            ready_out(e, i, w->direction);
        else
            ready_in(&shm_of(e)->connections[i]);
    }
    while (busy && !err && !net_over(e)) {
        if (w->sends ? send_round(w, &busy) : receive_round(w, &busy))
            idle = (struct idle){0};
        else if (busy)
            err = wait_a_turn(e, &idle);
    }
    return net_over(e) ? atomic_load(&e->error_code) : err;
}

/* One whole message. */
static int push_all(struct net_end *e, unsigned number)
{
    struct shm_connection *c = &shm_of(e)->connections[number];
    struct idle idle = {0};
    int err = 0;

    for (size_t done = 0; done < c->message_bytes && !err;) {
        size_t n = shm_ring_push(c->out_ring, c->out + done, c->message_bytes - done);
        done += n;
        if (n)
            idle = (struct idle){0};
        else
            err = wait_a_turn(e, &idle);
    }
    return err;
}

static int pull_all(struct net_end *e, unsigned number)
{
    struct shm_connection *c = &shm_of(e)->connections[number];
    struct idle idle = {0};
    int err = 0;

    for (size_t done = 0; done < c->message_bytes && !err;) {
        size_t n = shm_ring_pull(c->in_ring, c->in + done, c->message_bytes - done);
        done += n;
        if (n)
            idle = (struct idle){0};
        else
            err = wait_a_turn(e, &idle);
    }
    return err;
}

static void count_ping(struct net_end *e)
{
    unsigned number = e->point->connections;

    count(&e->counts[number].sent, 1);
    count(&e->counts[number].received, 1);
    shm_of(e)->connections[number].in_total += e->point->ping_bytes;
}

/* The first byte of the leader's message says whether it is the last. */
int shm_ping(struct net_end *e, bool last, uint64_t *ns)
{
    unsigned number = e->point->connections;
    struct shm_connection *c = &shm_of(e)->connections[number];

    ready_out(e, number, NET_FORWARD);
    ready_in(c);
    c->out[0] = last;
    uint64_t start_ns = clock_now_ns();
    int err = push_all(e, number);
    err = err ? err : pull_all(e, number);
    *ns = clock_now_ns() - start_ns;
    if (!err)
        count_ping(e);
    return err;
}

int shm_pong(struct net_end *e)
{
    unsigned number = e->point->connections;
    struct shm_connection *c = &shm_of(e)->connections[number];
    bool last = false;
    int err = 0;

    ready_out(e, number, NET_REVERSE);
    ready_in(c);
    while (!last && !err) {
        err = pull_all(e, number);
        last = c->in[0];
        c->out[0] = c->in[0];
        err = err ? err : push_all(e, number);
        if (!err)
            count_ping(e);
    }
    return net_over(e) ? atomic_load(&e->error_code) : err;
}

static int compare(struct net_end *e, unsigned number, enum net_direction d, unsigned round,
                   size_t at)
{
    const struct shm_connection *c = &shm_of(e)->connections[number];
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
    struct shm_connection *c = &shm_of(e)->connections[number];
    size_t held = c->in_total < c->in_bytes ? (size_t)c->in_total : c->in_bytes;
    int err = 0;

    if (held && number == e->point->connections)
        pattern_fill(c->in, 1, net_seed(e->point, d, number, 0));
    for (size_t at = 0; at < held && !err; at += c->message_bytes)
        err = compare(e, number, d, 0, at);
    return err;
}

static int send_fresh(struct net_end *e, unsigned number, enum net_direction d)
{
    struct shm_connection *c = &shm_of(e)->connections[number];

    pattern_fill(c->out, c->message_bytes, net_seed(e->point, d, number, 1));
    c->out_ready = false;
    return push_all(e, number);
}

static int receive_fresh(struct net_end *e, unsigned number, enum net_direction d)
{
    struct shm_connection *c = &shm_of(e)->connections[number];
    int err = check_last(e, number, d);

    if (err)
        return err;
    memset(c->in, 0, c->in_bytes);
    err = pull_all(e, number);
    c->in_total = c->in_at = 0;
    return err ? err : compare(e, number, d, 1, 0);
}

/* One direction of one connection after the other, at both ends. */
int shm_check(struct net_end *e)
{
    int err = 0;

    for (unsigned i = 0; i < shm_of(e)->n; i++)
        for (int k = 0; k < NET_DIRECTIONS && !err; k++) {
            enum net_direction d = (enum net_direction)k;
            if (shm_goes(e, i, d))
                err = shm_sends(e, d) ? send_fresh(e, i, d) : receive_fresh(e, i, d);
        }
    return err;
}
