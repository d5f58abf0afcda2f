/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a link that are posted and not through, one way, oldest first: for transports whose bytes get through bit by bit. */
#ifndef PLUMB_CORE_WIRE_FABRIC_POSTS_H
#define PLUMB_CORE_WIRE_FABRIC_POSTS_H

#include <errno.h>

#include "core/wire/fabric.h"

struct fabric_post {
    char *at;
    size_t bytes;
};

struct fabric_posts {
    struct fabric_post ring[FABRIC_POSTS];
    unsigned first, n;
    size_t done; /* bytes of the first that are through */
};

static inline struct fabric_post *fabric_posts_at(struct fabric_posts *q, unsigned i)
{
    return &q->ring[(q->first + i) % FABRIC_POSTS];
}

static inline int fabric_posts_add(struct fabric *f, struct fabric_posts *q, const void *at,
                                   size_t bytes)
{
    if (q->n == FABRIC_POSTS)
        return -EAGAIN;
    if (!bytes || bytes > f->options.message_most)
        return fabric_fail(f, -EINVAL, "a message of %zu bytes is out of bounds: 1 to %llu", bytes,
                           (unsigned long long)f->options.message_most);
    *fabric_posts_at(q, q->n++) = (struct fabric_post){(char *)(uintptr_t)at, bytes};
    return 0;
}

/* So many more bytes are through, of one or several; returns how many messages are now, whole. */
static inline unsigned fabric_posts_moved(struct fabric_posts *q, size_t bytes)
{
    unsigned whole = 0;

    q->done += bytes;
    while (q->n && q->done >= q->ring[q->first].bytes) {
        q->done -= q->ring[q->first].bytes;
        q->first = (q->first + 1) % FABRIC_POSTS;
        q->n--;
        whole++;
    }
    return whole;
}

static inline void fabric_sent(struct fabric_link *l, struct fabric_posts *q, size_t bytes)
{
    l->sent += bytes;
    l->messages_out += fabric_posts_moved(q, bytes);
}

static inline void fabric_received(struct fabric_link *l, struct fabric_posts *q, size_t bytes)
{
    l->received += bytes;
    l->messages_in += fabric_posts_moved(q, bytes);
}

#endif
