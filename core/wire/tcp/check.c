/* SPDX-License-Identifier: Apache-2.0 */
/* Was what arrived what was sent? See tcp.h. */
#include <errno.h>
#include <string.h>

#include "core/rng.h"
#include "core/wire/tcp/tcp.h"

static int compare(struct net_end *e, unsigned number, enum net_direction d, unsigned round,
                   size_t at)
{
    const struct tcp_connection *c = &tcp_of(e)->connections[number];
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

/* The ping's first byte is a flag: what it would be is put back for the comparison. */
static void put_back_flag(struct net_end *e, unsigned number, enum net_direction d)
{
    if (number == e->point->connections)
        pattern_fill(tcp_of(e)->connections[number].in, 1, net_seed(e->point, d, number, 0));
}

/* As many of the last messages as the buffer held. */
static int check_last(struct net_end *e, unsigned number, enum net_direction d)
{
    struct tcp_connection *c = &tcp_of(e)->connections[number];
    size_t held = c->in_total < c->in_bytes ? (size_t)c->in_total : c->in_bytes;
    int err = 0;

    if (held)
        put_back_flag(e, number, d);
    for (size_t at = 0; at < held && !err; at += c->message_bytes)
        err = compare(e, number, d, 0, at);
    return err;
}

static int receive_fresh(struct net_end *e, unsigned number, enum net_direction d)
{
    struct tcp_connection *c = &tcp_of(e)->connections[number];

    memset(c->in, 0, c->in_bytes);
    int err = tcp_receive_all(e, c->fd, c->in, c->message_bytes);
    err = err ? err : compare(e, number, d, 1, 0);
    c->in_total = c->in_at = 0;
    return err;
}

static bool streams(const struct net_end *e, unsigned number, enum net_direction d)
{
    return number == e->point->connections ? e->point->ping : e->point->stream[d];
}

/* One direction of one connection after the other: no two ends wait for each other with full buffers. */
int tcp_check(struct net_end *e)
{
    struct tcp *t = tcp_of(e);
    int err = 0;

    for (unsigned i = t->first; i < t->first + t->n; i++)
        for (int d = 0; d < NET_DIRECTIONS && !err; d++) {
            enum net_direction direction = (enum net_direction)d;
            if (!streams(e, i, direction))
                continue;
            if (tcp_sends(e, direction)) {
                tcp_ready_out(e, i, direction, 1);
                err = tcp_send_all(e, t->connections[i].fd, t->connections[i].out,
                                   t->connections[i].message_bytes);
            } else {
                err = check_last(e, i, direction);
                err = err ? err : receive_fresh(e, i, direction);
            }
        }
    return err;
}
