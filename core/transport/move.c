/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over a transport: see transport.h. */
#include "core/clock.h"
#include "core/transport/transport.h"

/* Where a sequence of messages stands. */
struct progress {
    uint64_t left; /* messages */
    size_t done;   /* bytes of the present one */
};

/* Takes n more bytes, of messages of `bytes`. */
static void advance(struct progress *p, size_t n, size_t bytes)
{
    p->done += n;
    if (p->done == bytes) {
        p->done = 0;
        p->left--;
    }
}

int transport_move(struct transport *t, const void *out, void *in, size_t bytes, uint64_t count,
                   uint64_t *arrived_ns)
{
    struct progress sending = {out ? count : 0, 0}, receiving = {in ? count : 0, 0};
    struct group_wait wait = {0};

    while (sending.left || receiving.left) {
        ssize_t sent = 0, received = 0;
        if (sending.left)
            sent = t->ops->push(t, (const char *)out + sending.done, bytes - sending.done);
        if (sent < 0)
            return (int)sent;
        if (receiving.left)
            received = t->ops->pull(t, (char *)in + receiving.done, bytes - receiving.done);
        if (received < 0)
            return (int)received;
        if (sent)
            advance(&sending, (size_t)sent, bytes);
        if (received) {
            advance(&receiving, (size_t)received, bytes);
            if (!receiving.left)
                *arrived_ns = clock_now_ns();
        }
        int err = sent || received ? 0 : group_pause(t->group, &wait);
        if (err)
            return err;
        if (sent || received)
            wait = (struct group_wait){0};
    }
    return 0;
}
