/* SPDX-License-Identifier: Apache-2.0 */
/* How data connections come about: what connect.c (who connects) and accept.c (who listens) share. */
#ifndef PLUMB_CORE_WIRE_TCP_CONNECT_H
#define PLUMB_CORE_WIRE_TCP_CONNECT_H

#include "core/wire/tcp/tcp.h"

/* Sent as it is: both ends are of one layout (net_protocol()). */
struct tcp_card {
    uint32_t n;
    struct sockaddr_storage addresses[NET_RAILS_MAX]; /* where the peer listens */
};

/* What the leader says first on a data connection. The answer is a token of another purpose. */
struct tcp_hello {
    uint8_t token[CHANNEL_TOKEN_BYTES];
    uint32_t number; /* big endian */
};

int tcp_hello_send(struct net_end *e, int fd, unsigned number);
/* 0; -ECONNRESET: the other side dropped it, without an answer; else after net_fail() or -ETIMEDOUT. */
int tcp_answer_receive(struct net_end *e, int fd, unsigned number, uint64_t until_ns);

/* Takes the connections that say the right token, until all are there. */
int tcp_accept_all(struct net_end *e);

#endif
