/* SPDX-License-Identifier: Apache-2.0 */
/* A point's life, led by rank 0: see session.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hw/machine.h"
#include "core/session/session_state.h"

const char *session_error(const struct session *s)
{
    return s->error;
}

const char *session_loss(const struct session *s)
{
    return s->talk.loss;
}

bool session_broken(const struct session *s)
{
    return s->talk.broken;
}

void session_find(struct session *s, const struct collective_ops *(*find)(const char *name))
{
    s->own.find = find;
}

/* While rank 0 waits in its own part: has another one failed? Who, is found out after it. */
static int look(struct member *m)
{
    struct session *s = m->arg;

    session_watch(s);
    if (talk_receive(&s->talk, 0) || (m->c.ops->own && talk_listen(&s->talk)))
        return collective_fail(&m->c, -ECANCELED, "another rank has failed");
    return 0;
}

static uint64_t others_still_ns(struct member *m)
{
    return talk_still_ns(&((struct session *)m->arg)->talk);
}

/* FNV-1a over the CPUs, in the order of topo_spread(), which is the same for the same CPUs. */
void hello_fill(struct collective_hello *hello, const struct topo *topo)
{
    unsigned n = topo ? topo_cpus(topo) : 0, *cpus = xcalloc(n, sizeof(*cpus));
    uint32_t hash = 2166136261u;

    hello->idle_cores = hello->idle_softirq = NAN;
    hello->cpus = n;
    if (n && !topo_spread(topo, -1, n, cpus))
        for (unsigned i = 0; i < n; i++)
            hash = (hash ^ cpus[i]) * 16777619u;
    hello->cpus_hash = hash;
    free(cpus);
}

static bool same_machine(const struct session *s, unsigned a, unsigned b)
{
    const struct world_member *x = world_member(s->world, a), *y = world_member(s->world, b);

    return x->node == y->node || machine_same(x->machine, y->machine);
}

static int greet(struct session *s, uint64_t idle_ns)
{
    struct collective_hello *own = &s->ranks[0].hello;
    int err = 0;

    for (unsigned rank = 1; rank < s->size && !err; rank++) {
        struct collective_hello hello = {.idle_ns = idle_ns};
        for (unsigned i = 0; i < rank; i++) /* the first of its machine watches it */
            hello.idle_ns = same_machine(s, i, rank) ? 0 : hello.idle_ns;
        err = talk_post(&s->talk, rank, COLLECTIVE_ASK_HELLO, &hello, sizeof(hello));
    }
    own->idle_ns = idle_ns;
    hello_fill(own, s->topo);
    if (!err && idle_ns)
        cpu_watch(idle_ns, &own->idle_cores, &own->idle_softirq);
    err = session_settle(s, err ? -ECANCELED : 0, COLLECTIVE_ASK_HELLO, NULL);
    for (unsigned rank = 1; rank < s->size && !err; rank++)
        memcpy(&s->ranks[rank].hello, talk_reply(&s->talk, rank), sizeof(*own));
    return err;
}

int session_open(struct session **session, struct world *w, const struct topo *topo,
                 uint64_t idle_ns)
{
    struct session *s = *session = xcalloc(1, sizeof(*s));

    s->world = w;
    s->topo = topo;
    s->size = world_size(w);
    s->own = (struct member){.world = w,
                             .topo = topo,
                             .find = collective_find,
                             .look = look,
                             .others_still_ns = others_still_ns,
                             .await = session_await,
                             .arg = s};
    s->ranks = xcalloc(s->size, sizeof(*s->ranks));
    s->times = xcalloc(s->size, sizeof(*s->times));
    s->accounts = xcalloc(s->size, sizeof(*s->accounts));
    s->all = xcalloc(s->size, sizeof(*s->all));
    s->nodes = xcalloc(s->size, sizeof(*s->nodes));
    int err = talk_open(&s->talk, w->channels, s->size, session_requests, COLLECTIVE_REQUESTS);
    if (err)
        return session_fail(s, err, "no signs of life can be given: %s", strerror(-err));
    s->talk.aside = session_tried;
    s->talk.arg = s;
    session_tell_ends(s);
    return greet(s, idle_ns);
}

void session_close(struct session *s)
{
    if (!s)
        return;
    session_finish(s);
    beat_tell(s->talk.beat, NULL, NULL); /* they are let go */
    talk_close(&s->talk);
    bool left = helper_abandoned(s->own.helper); /* it may still look at all of this */
    member_end(&s->own);
    if (left)
        return;
    free(s->ranks);
    free(s->times);
    free(s->accounts);
    free(s->all);
    free(s->nodes);
    free(s->trials);
    talk_free(&s->extra);
    free(s);
}

/* Among the members that may use the same CPUs of the same machine. */
static void find_cpu_rank(const struct session *s, unsigned member, struct collective_order *order)
{
    unsigned rank = s->members[member];

    order->cpu_rank = order->cpu_ranks = 0;
    for (unsigned i = 0; i < s->n; i++) {
        unsigned other = s->members[i];
        if (!same_machine(s, rank, other) ||
            s->ranks[rank].hello.cpus_hash != s->ranks[other].hello.cpus_hash)
            continue;
        order->cpu_rank += i < member;
        order->cpu_ranks++;
    }
}

/* The same for all, but for who each is. */
static int post_orders(struct session *s, struct collective_order *order,
                       const struct collective_call *calls)
{
    struct talk_bytes b = {0};
    int err = talk_add(&b, order, sizeof(*order));

    if (!err)
        err = talk_add(&b, calls, order->n_calls * sizeof(*calls));
    for (unsigned i = 0; i < s->n && !err; i++)
        err = talk_add(&b, &s->members[i], sizeof(s->members[i]));
    if (!err && s->extra.len)
        err = talk_add(&b, s->extra.bytes, s->extra.len);
    for (unsigned i = 1; i < s->n && !err; i++) {
        order->me = i;
        find_cpu_rank(s, i, order);
        memcpy(b.bytes, order, sizeof(*order));
        s->ranks[s->members[i]].open = true;
        err = talk_post(&s->talk, s->members[i], COLLECTIVE_ASK_OPEN, b.bytes, b.len);
    }
    talk_free(&b);
    return err;
}

static int open_all(struct session *s, const struct collective_point *point,
                    const struct collective_call *calls, unsigned n_calls,
                    struct address_list *addresses)
{
    struct collective_order order = {
        .point = *point, .n = s->n, .n_calls = n_calls, .n_extra = (uint32_t)s->extra.len};
    struct member_job job = {.what = COLLECTIVE_ASK_OPEN,
                             .order = &order,
                             .members = s->members,
                             .calls = calls,
                             .extra = s->extra.bytes};
    int err = post_orders(s, &order, calls);

    order.me = 0;
    find_cpu_rank(s, 0, &order);
    s->own.c.error[0] = 0;
    err = err ? -ECANCELED : member_do(&s->own, &job);
    if (!err)
        err = member_addresses(&s->own, addresses);
    return session_settle(s, err, COLLECTIVE_ASK_OPEN, NULL);
}

/* Addresses of one member go to those that they are for, in its name. */
static int route_from(const struct session *s, unsigned from, const struct address_list *addresses,
                      struct address_list *to)
{
    const uint8_t *address;
    size_t at = 0, len;
    unsigned target;
    int err = 0;

    while (!err && addresses_next(addresses, &at, &target, &address, &len))
        err = target < s->n ? addresses_add(&to[target], from, address, len) : -EPROTO;
    return err;
}

static int route_all(struct session *s, const struct address_list *own, struct address_list *to)
{
    int err = route_from(s, 0, own, to);

    for (unsigned i = 1; i < s->n && !err; i++) {
        struct address_list list = {0};
        err = addresses_take(&list, session_reply(s, i), talk_reply_len(&s->talk, s->members[i]),
                             s->n);
        if (!err)
            err = route_from(s, i, &list, to);
        addresses_free(&list);
    }
    if (err)
        return collective_fail(&s->own.c, err, "addresses cannot be passed on: %s", strerror(-err));
    for (unsigned i = 1; i < s->n && !err; i++)
        err = talk_post(&s->talk, s->members[i], COLLECTIVE_ASK_JOIN, to[i].packed.bytes,
                        to[i].packed.len)
                  ? -ECANCELED
                  : 0;
    return err;
}

static int join_all(struct session *s, const struct address_list *own)
{
    struct address_list *to = xcalloc(s->n, sizeof(*to));
    int err = route_all(s, own, to);

    if (!err)
        err = member_do(&s->own,
                        &(struct member_job){.what = COLLECTIVE_ASK_JOIN, .addresses = &to[0]});
    for (unsigned i = 0; i < s->n; i++)
        addresses_free(&to[i]);
    free(to);
    return session_settle(s, err, COLLECTIVE_ASK_JOIN, NULL);
}

static void reset(struct session *s, const unsigned *members, unsigned n)
{
    s->error[0] = 0;
    s->told = false;
    s->n_nodes = 0;
    s->seconds = 0;
    s->n = n;
    memcpy(s->members, members, n * sizeof(*members));
    for (unsigned rank = 1; rank < s->size; rank++) {
        s->talk.peers[rank].err = 0;
        s->talk.peers[rank].silent = s->talk.peers[rank].sure = false;
    }
}

int session_extra(struct session *s, const void *bytes, size_t len)
{
    talk_free(&s->extra);
    return len ? talk_add(&s->extra, bytes, len) : 0;
}

int session_begin(struct session *s, const struct collective_point *p, const unsigned *members,
                  unsigned n, const struct collective_call *calls, unsigned n_calls)
{
    struct address_list addresses = {0};

    session_finish(s);
    reset(s, members, n);
    /* Nobody has asked for a while: is somebody gone? Only a member's loss is this point's. */
    for (unsigned rank = 1; rank < s->size; rank++) {
        struct talk_peer *peer = &s->talk.peers[rank];
        int gone = peer->gone ? 0 : channel_alive(peer->channel);
        if (gone)
            talk_lose(&s->talk, rank, gone, channel_error(peer->channel));
        peer->err = 0;
    }
    if (s->parted)
        return session_fail(s, -ECONNRESET, "%s", s->talk.loss);
    int err = open_all(s, p, calls, n_calls, &addresses);
    if (!err)
        err = join_all(s, &addresses);
    addresses_free(&addresses);
    if (err)
        session_finish(s);
    return err;
}

int session_run(struct session *s, const struct session_run *run,
                const struct collective_times **times, uint64_t *slowest)
{
    struct member_job job = {.what = COLLECTIVE_ASK_RUN, .run = *run};
    int err = session_post_all(s, COLLECTIVE_ASK_RUN, run, sizeof(*run));

    err = err ? -ECANCELED : member_do(&s->own, &job);
    s->times[0] = job.times;
    err = session_settle(s, err, COLLECTIVE_ASK_RUN, run);
    *slowest = 0;
    for (unsigned i = 0; i < s->n && !err; i++) {
        if (i)
            memcpy(&s->times[i], session_reply(s, i), sizeof(s->times[i]));
        if (s->times[i].ns > *slowest)
            *slowest = s->times[i].ns;
    }
    *times = s->times;
    s->operations += run->operations;
    s->runs++;
    return err;
}

int session_overlap_alone(struct session *s, uint64_t overlap_ns, uint64_t *ns)
{
    struct member_job job = {.what = COLLECTIVE_ASK_OVERLAP, .overlap_ns = overlap_ns};
    int err = session_post_all(s, COLLECTIVE_ASK_OVERLAP, &overlap_ns, sizeof(overlap_ns));

    err = err ? -ECANCELED : member_do(&s->own, &job);
    *ns = job.ns;
    err = session_settle(s, err, COLLECTIVE_ASK_OVERLAP, NULL);
    for (unsigned i = 1; i < s->n && !err; i++) {
        uint64_t theirs_ns;
        memcpy(&theirs_ns, session_reply(s, i), sizeof(theirs_ns));
        *ns = theirs_ns > *ns ? theirs_ns : *ns;
    }
    return err;
}

/* The others first: what is still under way then ends here with an error that nobody reads. */
void session_finish(struct session *s)
{
    char error[sizeof(s->error)];

    memcpy(error, s->error, sizeof(error));
    for (unsigned rank = 1; rank < s->size; rank++) {
        struct talk_peer *p = &s->talk.peers[rank];
        p->err = 0;
        if (s->ranks[rank].open && !p->gone)
            talk_post(&s->talk, rank, COLLECTIVE_ASK_CLOSE, NULL, 0);
        s->ranks[rank].open = false;
    }
    member_do(&s->own, &(struct member_job){.what = COLLECTIVE_ASK_CLOSE});
    session_settle(s, 0, COLLECTIVE_ASK_CLOSE, NULL);
    memcpy(s->error, error, sizeof(error));
}
