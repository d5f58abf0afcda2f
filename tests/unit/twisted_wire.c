/* SPDX-License-Identifier: Apache-2.0 */
#include "twisted_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/group/world.h"

struct twisted_end {
    struct twisted_net *net;
    unsigned me;
};

static struct twisted_end *end_of(struct wire *f)
{
    return f->state;
}

static struct twisted_pipe *pipe_of(struct twisted_net *net, unsigned from, unsigned to)
{
    return &net->pipes[from * net->n + to];
}

static int push(struct twisted_queue *q, void *at, size_t bytes)
{
    if (q->n == WIRE_POSTS)
        return -EAGAIN;
    struct twisted_message *m = &q->all[(q->first + q->n++) % WIRE_POSTS];
    *m = (struct twisted_message){at, malloc(bytes), bytes};
    memcpy(m->copy, at, bytes);
    return 0;
}

static void pop(struct twisted_queue *q)
{
    free(q->all[q->first].copy);
    q->first = (q->first + 1) % WIRE_POSTS;
    q->n--;
}

static int twisted_link(struct wire_link *l)
{
    (void)l;
    return 0;
}

static int twisted_send(struct wire_link *l, const void *at, size_t bytes)
{
    struct twisted_end *e = end_of(l->worker->wire);
    int err = push(&pipe_of(e->net, e->me, l->peer)->sends, (void *)(uintptr_t)at, bytes);

    l->out.posted += err ? 0 : bytes;
    return err;
}

static int twisted_receive(struct wire_link *l, void *at, size_t bytes)
{
    struct twisted_end *e = end_of(l->worker->wire);
    unsigned char garbage = (unsigned char)rng_u64(&e->net->rng);

    if (pipe_of(e->net, l->peer, e->me)->receives.n == WIRE_POSTS)
        return -EAGAIN;
    memset(at, garbage, bytes);
    l->in.posted += bytes;
    return push(&pipe_of(e->net, l->peer, e->me)->receives, at, bytes);
}

static void check(struct twisted_net *net, const struct twisted_message *m)
{
    net->misused += memcmp(m->at, m->copy, m->bytes) != 0;
}

/* Of so many bytes that could be moved. */
static size_t some(struct twisted_net *net, size_t left)
{
    return net->whole || !rng_below(&net->rng, 4) ? left : 1 + rng_below(&net->rng, left);
}

static bool take(struct twisted_net *net, struct twisted_pipe *p)
{
    if (p->taken == p->sends.n || p->wire.n == WIRE_POSTS)
        return false;
    if (!net->buffers && (p->wire.n || !p->receives.n))
        return false;
    const struct twisted_message *m = &p->sends.all[(p->sends.first + p->taken++) % WIRE_POSTS];
    check(net, m);
    return !push(&p->wire, m->at, m->bytes);
}

static bool deliver(struct twisted_net *net, struct twisted_pipe *p, struct wire_link *to)
{
    if (!p->wire.n || !p->receives.n)
        return false;
    const struct twisted_message *from = &p->wire.all[p->wire.first];
    struct twisted_message *into = &p->receives.all[p->receives.first];
    if (from->bytes != into->bytes) {
        net->uneven++;
        return false;
    }
    size_t bytes = some(net, into->bytes - p->moved);
    check(net, into);
    memcpy(into->at + p->moved, from->copy + p->moved, bytes);
    memcpy(into->copy + p->moved, from->copy + p->moved, bytes);
    p->moved += bytes;
    to->in.through += bytes;
    if (p->moved == into->bytes) {
        p->moved = 0;
        to->in.messages++;
        pop(&p->receives);
        pop(&p->wire);
    }
    return true;
}

/* In buffers they are through when taken; else when delivered. */
static bool tell(struct twisted_net *net, struct twisted_pipe *p, struct wire_link *from)
{
    if (p->taken <= (net->buffers ? 0 : p->wire.n) || rng_below(&net->rng, 8) < net->laziness)
        return false;
    const struct twisted_message *m = &p->sends.all[p->sends.first];
    size_t bytes = some(net, m->bytes - p->told);
    check(net, m);
    from->out.through += bytes;
    p->told += bytes;
    if (p->told == m->bytes) {
        p->told = 0;
        p->taken--;
        from->out.messages++;
        pop(&p->sends);
    }
    return true;
}

static int twisted_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    struct twisted_end *e = end_of(k->wire);
    struct twisted_net *net = e->net;
    bool any = false;

    (void)sides;
    (void)wait_ns;
    for (unsigned i = 0; i < k->n_links; i++) {
        struct wire_link *l = &k->links[i];
        if (rng_below(&net->rng, 8) < net->laziness)
            continue;
        any |= tell(net, pipe_of(net, e->me, l->peer), l);
        any |= take(net, pipe_of(net, l->peer, e->me));
        any |= deliver(net, pipe_of(net, l->peer, e->me), l);
    }
    return any;
}

static struct twisted_net *current; /* what wires that are opened now belong to */

static int twisted_start(struct wire *f)
{
    struct twisted_end *e = calloc(1, sizeof(*e));

    if (!e)
        abort();
    *e = (struct twisted_end){current, world_rank(f->world)};
    f->state = e;
    return 0;
}

static int twisted_address(struct wire_link *l, void *address, size_t *len)
{
    unsigned says[2] = {end_of(l->worker->wire)->me, l->peer};

    *len = sizeof(says);
    memcpy(address, says, sizeof(says));
    return 0;
}

/* Is each address the one that this peer made for this end? */
static int twisted_join(struct wire *f, const void *const *addresses, const size_t *lens)
{
    for (unsigned i = 0; i < f->n_links; i++) {
        unsigned says[2] = {f->links[i].peer, end_of(f)->me};
        if (lens[i] != sizeof(says) || memcmp(addresses[i], says, sizeof(says)))
            return wire_fail(f, -EPROTO, "an address went astray");
        snprintf(f->links[i].device, sizeof(f->links[i].device), "wire%u", f->links[i].peer / 3);
    }
    return 0;
}

static void twisted_stop(struct wire *f)
{
    free(f->state);
}

const struct wire_ops twisted_ops = {.name = "twisted",
                                     .ways = WIRE_CAN(WIRE_YIELD),
                                     .open = twisted_start,
                                     .link = twisted_link,
                                     .address = twisted_address,
                                     .join = twisted_join,
                                     .send = twisted_send,
                                     .receive = twisted_receive,
                                     .progress = twisted_progress,
                                     .close = twisted_stop};

void twisted_open(struct twisted_net *net, unsigned n, uint64_t seed)
{
    struct wire_options options = {.message_most = 1 << 20};
    char error[160];

    *net = (struct twisted_net){.n = n,
                                .pipes = calloc((size_t)n * n, sizeof(*net->pipes)),
                                .wires = calloc(n, sizeof(struct wire *)),
                                .worlds = calloc(n, sizeof(struct world *))};
    current = net;
    rng_seed(&net->rng, seed);
    net->whole = rng_below(&net->rng, 2);
    net->buffers = rng_below(&net->rng, 2);
    net->laziness = (unsigned)rng_below(&net->rng, 7);
    for (unsigned i = 0; i < n; i++) {
        if (world_new(&net->worlds[i], "twisted", i, n, error, sizeof(error)) ||
            wire_open(&net->wires[i], &twisted_ops, net->worlds[i], &options, error, sizeof(error)))
            abort();
    }
}

static void drop(struct twisted_queue *q)
{
    while (q->n)
        pop(q);
}

void twisted_close(struct twisted_net *net)
{
    for (unsigned i = 0; i < net->n; i++) {
        wire_close(net->wires[i]);
        world_free(net->worlds[i]);
    }
    for (size_t i = 0; i < (size_t)net->n * net->n; i++) {
        drop(&net->pipes[i].sends);
        drop(&net->pipes[i].receives);
        drop(&net->pipes[i].wire);
    }
    free(net->pipes);
    free(net->wires);
    free(net->worlds);
}
