/* SPDX-License-Identifier: Apache-2.0 */
/* A peer whose answers do not come: from an echo on, for good, or until it was told to give up. So the
 * process that stands still is made by what is sent, and not by how long anything takes. */
#ifndef PLUMB_TESTS_LATE_CHANNEL_H
#define PLUMB_TESTS_LATE_CHANNEL_H

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "core/group/talk.h"

struct late_one {
    const struct channel_ops *real;
    struct channel_ops ops;
    struct channel *channel;
    bool comes_back, told;
    unsigned echoes; /* that it answers yet */
};

static struct {
    struct late_one one[4];
    unsigned n;
} late_all;

static inline struct late_one *late_of(const struct channel *c)
{
    for (unsigned i = 0; i < late_all.n; i++)
        if (late_all.one[i].channel == c)
            return &late_all.one[i];
    return NULL;
}

static inline int late_send(struct channel *c, uint16_t type, const void *data, size_t len,
                            uint64_t wait_ns)
{
    struct late_one *one = late_of(c);

    one->told |= type == TALK_GIVE_UP;
    if (type == TALK_ECHO && one->echoes)
        one->echoes--;
    return one->real->send(c, type, data, len, wait_ns);
}

static inline int late_recv(struct channel *c, uint16_t *type, void *data, size_t size, size_t *len,
                            uint64_t wait_ns)
{
    const struct late_one *one = late_of(c);

    if (one->echoes || (one->told && one->comes_back))
        return one->real->recv(c, type, data, size, len, wait_ns);
    usleep((useconds_t)(wait_ns / 1000));
    return wait_ns ? -ETIMEDOUT : -EAGAIN;
}

/* It answers so many echoes yet. */
static inline void late_begin(struct channel *c, bool comes_back, unsigned echoes)
{
    struct late_one *one = &late_all.one[late_all.n++];

    *one = (struct late_one){.real = channel_base(c)->ops,
                             .ops = *channel_base(c)->ops,
                             .channel = c,
                             .comes_back = comes_back,
                             .echoes = echoes};
    one->ops.send = late_send;
    one->ops.recv = late_recv;
    channel_base(c)->ops = &one->ops;
}

static inline void late_end(void)
{
    while (late_all.n) {
        const struct late_one *one = &late_all.one[--late_all.n];
        channel_base(one->channel)->ops = one->real;
    }
}

#endif
