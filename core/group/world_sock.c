/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 waits until all have come over a socket: see world.h. Until they have proved themselves
 * those that connect have a place of a fixed number, for a short time. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/group/channel.h"
#include "core/group/meet.h"
#include "core/group/secret.h"
#include "core/group/world.h"

struct gather {
    const struct world_meeting *m;
    struct world *w;
    unsigned missing;
    uint64_t until_ns, looked_ns; /* looked: whether those that have come are still there */
    struct meet_door door;
};

/* ---- Who is a rank of the world that gathers, and who is not ---- */

/* 0, or why it cannot be let in. */
static int is_wrong(const struct world *w, const struct world_hello *h, char *why, size_t len)
{
    if (h->size != w->size)
        return group_fail(
            -EINVAL, why, len,
            "rank %u expects %u processes, rank 0 expects %u: give all ranks the same number",
            h->rank, h->size, w->size);
    if (h->rank >= w->size)
        return group_fail(-ERANGE, why, len,
                          "rank %u is out of range: %u processes are numbered from 0 to %u",
                          h->rank, w->size, w->size - 1);
    if (h->rank == 0)
        return group_fail(-EEXIST, why, len, "rank 0 is the one that listens");
    if (w->channels[h->rank])
        return group_fail(-EEXIST, why, len,
                          "rank %u has come already, as process %d of '%s': give each a number of "
                          "its own",
                          h->rank, (int)w->members[h->rank].pid, world_host(w, h->rank));
    return 0;
}

/* Lets in who has proved itself and said its rank, or turns it away; its channel is not the place's
 * any more. */
static void gather_judge(struct gather *g, struct meet_place *p, const struct world_hello *h)
{
    struct world *w = g->w;
    struct channel *c = p->c;
    uint64_t now_ns = clock_now_ns();
    char why[256];
    int err = is_wrong(w, h, why, sizeof(why));

    p->c = NULL;
    if (err) {
        door_complain(&g->door.log, "'%s' was turned away: %s", channel_peer(c), why);
        world_refuse(c, err, why);
        channel_close(c);
        return;
    }
    w->members[h->rank] = h->member;
    world_adopt(w, h->rank, c);
    g->missing--;
    uint64_t left_ns = g->until_ns > now_ns ? g->until_ns - now_ns : 0;
    channel_send(c, WORLD_ACCEPTED, &left_ns, sizeof(left_ns)); /* if it has gone: gather_look() */
}

/* Those that have come and gone may come again. */
static void gather_look(struct gather *g)
{
    struct world *w = g->w;
    char error[CHANNEL_ERROR_BYTES];
    unsigned rank = 0;

    while (world_alive(w, &rank, error, sizeof(error))) {
        door_complain(&g->door.log, "a rank that had come has left: %s", error);
        channel_close(w->channels[rank]);
        w->channels[rank] = NULL;
        memset(&w->members[rank], 0, sizeof(w->members[rank]));
        g->missing++;
    }
    g->looked_ns = clock_now_ns();
}

/* The first rank from `rank` on that has come, or that has not; or the size. */
static unsigned next(const struct world *w, unsigned rank, bool come)
{
    while (rank < w->size && (rank == 0 || w->channels[rank]) != come)
        rank++;
    return rank;
}

/* "ranks 1, 4-6 and 9 of 12" */
static void say_missing(const struct world *w, char *text, size_t len)
{
    const unsigned first = next(w, 0, false);
    char list[160] = "";
    size_t at = 0;
    unsigned n = 0;

    for (unsigned from = first, after; from < w->size; from = after) {
        unsigned end = next(w, from, true);
        if (end - from == 2)
            end--; /* "3-4" is no shorter than "3 and 4" */
        after = next(w, end, false);
        n += end - from;
        const char *before = from == first ? "" : after < w->size ? ", " : " and ";
        if (at > sizeof(list) - 40) {
            snprintf(list + at, sizeof(list) - at, " and others");
            break;
        }
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%u", before, from);
        if (end - from > 1)
            at += (size_t)snprintf(list + at, sizeof(list) - at, "-%u", end - 1);
    }
    snprintf(text, len, "%s %s of %u", n == 1 ? "rank" : "ranks", list, w->size);
}

/* ---- A rank that comes to rank 0 over a socket ---- */

#define TELL_NS 60000000000u /* rank 0 tells one after the other, and many they may be */

int world_join(struct world **world, const struct world_meeting *m, char *error, size_t len)
{
    struct meet_connect to = {.host = m->address,
                              .port = m->port,
                              .secret = m->secret,
                              .protocol = m->protocol,
                              .wait_ns = m->wait_ns,
                              .cancel = m->cancel};
    struct world_hello h = {.rank = m->rank, .size = m->size};
    struct channel *c = NULL;
    struct world *w = NULL;
    uint64_t left_ns = 0;

    world_self(&h.member);
    int err = meet_connect(&to, &c, error, len);
    if (err && m->cancel && *m->cancel)
        err =
            group_fail(-EINTR, error, len, "stopped while looking for rank 0 at '%s'", m->address);
    if (err)
        return err;
    /* A number that cannot be is rank 0's to refuse: so both ends are told. */
    err = channel_send(c, WORLD_HELLO, &h, sizeof(h));
    if (err)
        group_fail(err, error, len, "%s", channel_error(c));
    else
        err = world_expect(c, WORLD_ACCEPTED, &left_ns, sizeof(left_ns), CHANNEL_WAIT_NS, m->cancel,
                           error, len);
    if (!err)
        err = world_new(&w, "sock", m->rank, m->size, error, len);
    if (!err)
        err = world_hear(w, c, left_ns > UINT64_MAX - TELL_NS ? left_ns : left_ns + TELL_NS,
                         m->cancel, error, len);
    if (err) {
        world_free(w);
        channel_close(c);
        return err;
    }
    /* Rank 0, and who shares its network, are where this process has found it: rank 0 may have an
     * address for each network that it is in, and tells everybody one. */
    struct sockaddr_storage own, peer;
    const uint64_t here = w->members[w->rank].network, there = w->members[0].network;
    if (!(here && here == there) && !channel_address(c, &own, &peer))
        for (unsigned i = 0; i < w->size; i++)
            if (i == 0 || (there && w->members[i].network == there))
                w->members[i].address = peer;
    world_adopt(w, 0, c);
    *world = w;
    return 0;
}

#define HELLO_NS 5000000000u /* for one that has proved itself to say its rank */

/* One that has proved itself is let in: from here on it costs memory. Then it says its rank. */
static void hear(void *arg, struct meet_place *p)
{
    struct gather *g = arg;
    struct world_hello h;

    if (!p->c && door_let_in(p)) {
        door_turn_away(&g->door, p, "left");
        return;
    }
    int err = world_hello_recv(p->c, &h, 0);
    if (err == -EAGAIN)
        return;
    if (err) {
        door_turn_away(&g->door, p,
                       err == -ECONNRESET ? "disconnected before it sent its rank"
                                          : "spoke out of turn: is it another program?");
        return;
    }
    gather_judge(g, p, &h);
    door_free(p);
}

static void look_at_times(struct gather *g)
{
    uint64_t now_ns = clock_now_ns();

    for (size_t i = 0; i < DOOR_PLACES; i++) {
        struct meet_place *p = &g->door.places[i];
        if (p->taken && p->c && now_ns - p->proved_ns > HELLO_NS)
            door_turn_away(&g->door, p, "had not said its rank in time");
    }
    if (now_ns - g->looked_ns > DOOR_SLICE_MS * 1000000ull)
        gather_look(g);
}

/* Those that have come shall know why it comes to nothing. */
static int give_up(struct gather *g, int err, char *error, size_t len)
{
    char who[256];

    say_missing(g->w, who, sizeof(who));
    if (err == -EINTR)
        group_fail(err, error, len, "stopped while waiting for %s", who);
    else if (err == -ETIMEDOUT)
        group_fail(err, error, len, "%s %s not come in %.3g s", who,
                   g->missing == 1 ? "has" : "have", (double)g->m->wait_ns / 1e9);
    else
        group_fail(err, error, len, "cannot listen any more for %s: %s", who, strerror(-err));
    for (unsigned i = 1; i < g->w->size; i++)
        if (g->w->channels[i])
            world_refuse(g->w->channels[i], err == -EINTR ? -ECANCELED : err, error);
    return err;
}

static int wait_for_all(struct gather *g, char *error, size_t len)
{
    int err = 0;

    while (!err && g->missing) {
        if (g->m->cancel && *g->m->cancel)
            err = -EINTR;
        else if (clock_now_ns() >= g->until_ns)
            err = -ETIMEDOUT;
        if (!err) {
            err = door_turn(&g->door, hear, g);
            look_at_times(g);
        }
        if (!err && !g->missing)
            gather_look(g); /* one may have left while the last one came */
    }
    return err ? give_up(g, err, error, len) : 0;
}

/* Where each can be reached from other networks: as its channel's addresses say. Who shares rank
 * 0's network, is where that is, not where it is seen from within. */
static void write_addresses(struct world *w)
{
    struct world_member *zero = &w->members[0];
    struct sockaddr_storage own, peer;
    bool outside = false;

    for (unsigned i = 1; i < w->size; i++) {
        struct world_member *m = &w->members[i];
        bool far = !zero->network || m->network != zero->network;
        memset(&m->address, 0, sizeof(m->address));
        if (channel_address(w->channels[i], &own, &peer))
            continue;
        m->address = peer;
        if (zero->address.ss_family == AF_UNSPEC || (far && !outside))
            zero->address = own;
        outside |= far;
    }
    for (unsigned i = 1; i < w->size; i++)
        if (zero->network && w->members[i].network == zero->network)
            w->members[i].address = zero->address;
}

static int tell_all(struct gather *g, char *error, size_t len)
{
    int err = secret_random(g->w->key, sizeof(g->w->key));

    if (err)
        return group_fail(err, error, len, "no random numbers: %s", strerror(-err));
    write_addresses(g->w);
    world_number(g->w);
    for (unsigned i = 1; i < g->w->size && !err; i++)
        err = world_tell(g->w, i, error, len);
    return err;
}

static int gather_all(struct gather *g, char *error, size_t len)
{
    const struct world_meeting *m = g->m;
    uint16_t port = m->port;
    int err = door_open(&g->door, m->address, &port, m->secret, m->protocol, error, len);

    if (err)
        return err;
    if (m->ready)
        m->ready(m->arg, m->address ? m->address : "localhost", port);
    err = wait_for_all(g, error, len);
    door_close(&g->door);
    return err ? err : tell_all(g, error, len);
}

int world_gather(struct world **world, const struct world_meeting *m, char *error, size_t len)
{
    if (m->rank)
        return group_fail(-EINVAL, error, len, "rank 0 gathers the others, rank %u joins it",
                          m->rank);
    struct gather *g = xcalloc(1, sizeof(*g));
    int err = world_new(&g->w, "sock", 0, m->size, error, len);
    if (!err) {
        world_self(&g->w->members[0]);
        g->m = m;
        g->missing = m->size - 1;
        g->until_ns = fd_until(m->wait_ns);
        err = g->missing ? gather_all(g, error, len) : tell_all(g, error, len);
    }
    if (err)
        world_close(g->w);
    else
        *world = g->w;
    secret_wipe(g, sizeof(*g));
    free(g);
    return err;
}
