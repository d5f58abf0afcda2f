/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of all sizes between all ranks, compared: see wire_fixture.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/rng.h"
#include "wire_fixture.h"

#define STILL_NS 30000000000u

/* One way of one link. */
struct flow {
    uint64_t seed;
    uint64_t bytes[WIRE_POSTS]; /* of those that are posted, by number */
    char *data[WIRE_POSTS];
    unsigned posted, through;
    uint64_t total; /* bytes posted */
};

/* Of all sizes alike, by their logarithm. Both ends work it out. */
static uint64_t size_of(const struct wire_traffic *t, uint64_t seed, unsigned number)
{
    uint64_t state = seed + number, random = rng_splitmix64(&state);
    unsigned bits = 1;

    while (t->most >> bits)
        bits++;
    uint64_t bytes = random >> (64 - 1 - rng_splitmix64(&state) % bits);
    return 1 + bytes % t->most;
}

static uint64_t seed_of(const struct wire_traffic *t, unsigned from, unsigned to)
{
    return t->seed + 0x9e3779b97f4a7c15u * (1 + from * 4096 + to);
}

static int post(struct wire_party *p, struct wire_link *l, struct flow *w, bool out)
{
    const struct wire_traffic *t = p->arg;
    int err = 0;

    while (w->posted < t->messages && w->posted - w->through < t->depth && !err) {
        uint64_t bytes = size_of(t, w->seed, w->posted);
        unsigned at = w->posted % WIRE_POSTS;
        w->data[at] = malloc(bytes);
        w->bytes[at] = bytes;
        if (out)
            pattern_fill(w->data[at], bytes, w->seed + w->posted);
        err = out ? wire_send(l, w->data[at], bytes) : wire_receive(l, w->data[at], bytes);
        w->total += bytes;
        w->posted++;
    }
    return err ? wire_fault(p, err, "post %u: %s", w->posted - 1, p->wire->error) : 0;
}

static int reap(struct wire_party *p, const struct wire_link *l, struct flow *w, bool out)
{
    uint64_t messages = out ? l->out.messages : l->in.messages;

    for (; w->through < messages; w->through++) {
        unsigned at = w->through % WIRE_POSTS;
        size_t wrong =
            out ? PATTERN_RIGHT : pattern_check(w->data[at], w->bytes[at], w->seed + w->through);
        free(w->data[at]);
        if (wrong != PATTERN_RIGHT)
            return wire_fault(p, -EBADMSG, "message %u from rank %u: byte %zu of %llu is wrong",
                              w->through, l->peer, wrong, (unsigned long long)w->bytes[at]);
    }
    return 0;
}

static int serve(struct wire_party *p, unsigned i, struct flow *flows, bool *busy)
{
    const struct wire_traffic *t = p->arg;
    struct wire_link *l = &p->wire->links[i];
    int err = 0;

    for (unsigned out = 0; out < 2 && !err; out++) {
        err = reap(p, l, &flows[out], out);
        err = err ? err : post(p, l, &flows[out], out);
        *busy = *busy || flows[out].through < t->messages;
    }
    if (!err && (l->out.through > l->out.posted || l->in.through > l->in.posted ||
                 l->out.posted != flows[1].total || l->in.posted != flows[0].total))
        err = wire_fault(p, -ERANGE, "the counters of the link to rank %u are wrong", l->peer);
    return err;
}

static int at_end(struct wire_party *p)
{
    const struct wire_traffic *t = p->arg;

    for (unsigned i = 0; i < p->wire->n_links; i++) {
        const struct wire_link *l = &p->wire->links[i];
        if (l->out.through != l->out.posted || l->in.through != l->in.posted ||
            l->in.messages != t->messages || l->out.messages != t->messages || !l->device[0])
            return wire_fault(p, -ERANGE, "the link to rank %u ('%s'): %llu of %llu bytes sent",
                              l->peer, l->device, (unsigned long long)l->out.through,
                              (unsigned long long)l->out.posted);
    }
    return 0;
}

int wire_all_to_all(struct wire_party *p)
{
    const struct wire_traffic *t = p->arg;
    struct flow(*flows)[2] = calloc(p->size, sizeof(*flows));
    uint64_t moved_ns = clock_now_ns();
    bool busy = true;
    int err = 0;

    for (unsigned i = 0; i < p->wire->n_links; i++) {
        flows[i][0].seed = seed_of(t, p->wire->links[i].peer, p->rank);
        flows[i][1].seed = seed_of(t, p->rank, p->wire->links[i].peer);
    }
    while (busy && !err) {
        busy = false;
        for (unsigned i = 0; i < p->wire->n_links && !err; i++)
            err = serve(p, i, flows[i], &busy);
        int rc = busy && !err ? wire_progress(p->wire->workers, WIRE_BOTH, t->wait_ns) : 1;
        moved_ns = rc > 0 ? clock_now_ns() : moved_ns;
        if (rc < 0)
            err = wire_fault(p, rc, "%s", p->wire->error);
        else if (clock_now_ns() - moved_ns > STILL_NS)
            err = wire_fault(p, -ETIMEDOUT, "nothing moves");
    }
    for (unsigned i = 0; i < p->wire->n_links; i++)
        for (unsigned out = 0; out < 2 && err; out++)
            for (unsigned k = flows[i][out].through; k < flows[i][out].posted; k++)
                free(flows[i][out].data[k % WIRE_POSTS]);
    free(flows);
    return err ? err : at_end(p);
}
