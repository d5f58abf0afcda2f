/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent and where it arrives: see tcp.h. */
#include <errno.h>
#include <string.h>

#include "core/rng.h"
#include "core/wire/tcp/tcp.h"

#define ALIGN 4096u

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Small messages arrive many at once, in a buffer that holds whole ones. */
static void set_sizes(const struct net_end *e, unsigned number)
{
    struct tcp_connection *c = &tcp_of(e)->connections[number];
    bool ping = number == e->point->connections;
    uint64_t bytes = ping ? e->point->ping_bytes : e->point->message_bytes;
    uint64_t at_once = ping || bytes >= TCP_RECEIVE_LEAST ? 1 : TCP_RECEIVE_LEAST / bytes;

    c->message_bytes = bytes;
    for (int d = 0; d < NET_DIRECTIONS; d++) {
        if (!ping && !e->point->stream[d])
            continue;
        if (tcp_sends(e, (enum net_direction)d))
            c->out_bytes = bytes;
        else
            c->in_bytes = bytes * at_once;
    }
}

static uint64_t needed(const struct tcp *t)
{
    uint64_t sum = 0;

    for (unsigned i = t->first; i < t->first + t->n; i++)
        sum += rounded(t->connections[i].out_bytes) + rounded(t->connections[i].in_bytes);
    return sum;
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

int tcp_make_buffers(struct net_end *e)
{
    struct tcp *t = tcp_of(e);
    char error[160] = "";

    for (unsigned i = t->first; i < t->first + t->n; i++)
        set_sizes(e, i);
    int err = refuse(e, needed(t));
    if (err)
        return err;
    err = host_alloc(&t->buffer, e->topo, needed(t) + ALIGN, HOST_PAGES_THP, e->memory_node, error,
                     sizeof(error));
    if (err)
        return net_fail(e, err, "%s", error);
    char *at = t->buffer.at;
    for (unsigned i = t->first; i < t->first + t->n; i++) {
        struct tcp_connection *c = &t->connections[i];
        c->out = at;
        c->in = at + rounded(c->out_bytes);
        at = c->in + rounded(c->in_bytes);
    }
    return 0;
}

void tcp_ready_out(struct net_end *e, unsigned number, enum net_direction d, unsigned round)
{
    struct tcp_connection *c = &tcp_of(e)->connections[number];

    if (c->out_ready && !round)
        return;
    pattern_fill(c->out, c->message_bytes, net_seed(e->point, d, number, round));
    c->out_ready = !round;
}

/* Touched by the thread that will write it. */
void tcp_ready_in(struct tcp_connection *c)
{
    if (!c->in_ready)
        memset(c->in, 0, c->in_bytes);
    c->in_ready = true;
}
