/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of life of a channel over a stream socket: see channel.h and fd_channel.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "core/group/fd_channel.h"

#define UNSEEN_NS 1000000000u /* between two looks at what has come: longer, this end was away */

/* What did not look did not hear either. */
void fd_look(struct fd_channel *c)
{
    uint64_t now_ns = clock_now_ns();

    if (now_ns - c->looked_ns > UNSEEN_NS)
        c->heard_ns += now_ns - c->looked_ns;
    c->looked_ns = now_ns;
}

/* Nothing is there to be read: for too long? */
int fd_silence(struct fd_channel *c)
{
    fd_look(c);
    if (!c->silent_ns || !c->beaten || c->looked_ns < c->heard_ns + c->silent_ns)
        return 0;
    snprintf(c->base.error, sizeof(c->base.error), "'%s' does not answer: it hangs or was cut off",
             c->base.peer);
    return -EHOSTUNREACH;
}

void fd_channel_expect(struct channel *channel, uint64_t silent_ns)
{
    struct fd_channel *c = (struct fd_channel *)channel;

    c->silent_ns = silent_ns;
    c->heard_ns = c->looked_ns = clock_now_ns();
}

uint64_t fd_channel_quiet_ns(struct channel *channel)
{
    struct fd_channel *c = (struct fd_channel *)channel;
    struct pollfd p = {.fd = c->fd, .events = POLLIN};

    fd_look(c);
    return poll(&p, 1, 0) > 0 || c->heard_ns > c->looked_ns ? 0 : c->looked_ns - c->heard_ns;
}

/* All of it or nothing, and without a word: who uses the channel finds out by itself what is wrong with it. */
void fd_channel_beat(struct channel *channel)
{
    struct fd_channel *c = (struct fd_channel *)channel;
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};

    if (pthread_mutex_trylock(&c->out_lock)) /* it is sending */
        return;
    if (!c->out_err && poll(&p, 1, 0) == 1 && p.revents == POLLOUT) {
        size_t n = (size_t)frame_encode(&c->out_link, FD_BEAT, NULL, 0, c->out);
        ssize_t sent = send(c->fd, c->out, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0)
            c->out_link.sequence--;
        else if ((size_t)sent < n)
            shutdown(c->fd, SHUT_WR); /* what came next would not be understood */
    }
    pthread_mutex_unlock(&c->out_lock);
}
