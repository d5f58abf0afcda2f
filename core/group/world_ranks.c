/* SPDX-License-Identifier: Apache-2.0 */
/* Who is a rank of the world that gathers, and who is not: see world_sock.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/group/bytes.h"
#include "core/group/world_sock.h"

/* 0, or why it cannot be let in. */
static int is_wrong(const struct world *w, const struct world_hello *h, char *why, size_t len)
{
    if (h->size != w->size)
        return world_fail(-EINVAL, why, len,
                          "rank %u was told of %u processes, rank 0 of %u: tell all the same",
                          h->rank, h->size, w->size);
    if (h->rank >= w->size)
        return world_fail(-ERANGE, why, len,
                          "rank %u is out of range: %u processes are numbered from 0 to %u",
                          h->rank, w->size, w->size - 1);
    if (h->rank == 0)
        return world_fail(-EEXIST, why, len, "rank 0 is the one that listens");
    if (w->channels[h->rank])
        return world_fail(-EEXIST, why, len,
                          "rank %u has come already, as process %d of '%s': give each a number of "
                          "its own",
                          h->rank, (int)w->members[h->rank].pid, w->members[h->rank].host);
    return 0;
}

void gather_judge(struct gather *g, struct gather_place *p, const struct world_hello *h)
{
    struct world *w = g->w;
    struct channel *c = p->c;
    uint64_t now_ns = clock_now_ns();
    uint8_t left[8];
    char why[256];
    int err = is_wrong(w, h, why, sizeof(why));

    p->c = NULL;
    if (err) {
        serve_complain(&g->log, "'%s' was turned away: %s", channel_peer(c), why);
        world_refuse(c, err, why);
        channel_close(c);
        return;
    }
    w->members[h->rank] = h->member;
    world_adopt(w, h->rank, c);
    g->missing--;
    bytes_put64(left, g->until_ns > now_ns ? g->until_ns - now_ns : 0);
    channel_send(c, WORLD_ACCEPTED, left, sizeof(left)); /* if it has gone: gather_look() */
}

void gather_look(struct gather *g)
{
    struct world *w = g->w;
    char error[CHANNEL_ERROR_BYTES];
    unsigned rank = 0;

    while (world_alive(w, &rank, error, sizeof(error))) {
        serve_complain(&g->log, "a rank that had come has left: %s", error);
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

void gather_missing(const struct world *w, char *text, size_t len)
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
