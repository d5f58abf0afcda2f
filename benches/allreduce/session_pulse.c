/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are lost while a library is waited for: see session_state.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "benches/allreduce/session_state.h"

#define GRACE_NS 1500000000u /* the hand itself notices first, where it can */
#define NAMES    4           /* of ranks in one sentence */

static void part(struct session *s, const char *text)
{
    for (unsigned rank = 1; rank < s->size; rank++) {
        s->peers[rank].gone = true;
        s->peers[rank].pending = 0;
    }
    session_break(s, text);
}

bool session_heed(struct session *s)
{
    char text[COLLECTIVE_ERROR_BYTES];
    unsigned rank = 0;
    int err = pulse_gone(s->own.pulse, &rank, text, sizeof(text));

    if (!err && s->n > 1)
        err = pulse_lost(s->own.pulse, s->members + 1, s->n - 1, &rank, text, sizeof(text));

    if (!err)
        return false;
    part(s, text);
    session_lose(s, rank, err, text);
    return true;
}

/* "rank 2 (node2)", of those that cannot be heard. Returns how many. */
static unsigned name_deaf(const struct session *s, const unsigned *ranks, unsigned n, char *text,
                          size_t len)
{
    char name[WORLD_NAME_MAX + 32];
    unsigned found = 0;
    size_t used = 0;

    text[0] = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned rank = ranks ? ranks[i] : i + 1;
        if (s->peers[rank].hello.port || ++found > NAMES || used >= len)
            continue;
        used += (size_t)snprintf(text + used, len - used, "%s%s", found > 1 ? ", " : "",
                                 world_name(s->world, rank, name, sizeof(name)));
    }
    if (found > NAMES && used < len)
        snprintf(text + used, len - used, " and %u more", found - NAMES);
    return found;
}

/* Why nothing moves, though nobody is lost. False: it is still being found out. */
static bool say_stuck(struct session *s, uint64_t still_ns)
{
    char more[COLLECTIVE_ERROR_BYTES / 2];
    double seconds = (double)still_ns / 1e9;

    if (s->n > 1 && name_deaf(s, s->members + 1, s->n - 1, more, sizeof(more))) {
        snprintf(s->stuck, sizeof(s->stuck),
                 "'%s' has not ended after %.0f s; there are no signs of life of %s, by which it "
                 "would be known who hangs",
                 s->own.point.backend, seconds, more);
        return true;
    }
    if (!pulse_between(s->own.pulse, s->members + 1, s->n - 1, more, sizeof(more)))
        return false;
    snprintf(s->stuck, sizeof(s->stuck),
             "'%s' has not ended after %.0f s; each rank has come to it and is alive: it hangs in "
             "the library, or on the network%s%s",
             s->own.point.backend, seconds, *more ? ": " : "", more);
    return true;
}

int session_await(struct member *m)
{
    struct session *s = m->arg;
    uint64_t still_ns = member_still_ns(m);

    if (session_heed(s))
        return -ECANCELED;
    if (still_ns <= __atomic_load_n(&m->limit_ns, __ATOMIC_RELAXED) + GRACE_NS)
        return 0;
    if (!say_stuck(s, still_ns))
        return 0;
    part(s, s->stuck);
    return -ETIMEDOUT;
}

void session_say_deaf(const struct session *s)
{
    char deaf[COLLECTIVE_ERROR_BYTES / 2];

    if (!s->peers[0].hello.beside || !name_deaf(s, NULL, s->size - 1, deaf, sizeof(deaf)))
        return;
    fprintf(stderr,
            "no signs of life can be had from %s (TCP to rank 0, any port): a rank that hangs is "
            "found late, and perhaps not named\n",
            deaf);
}
