/* SPDX-License-Identifier: Apache-2.0 */
/* Where all ranks are alive and nothing moves: between which of their hosts can no connection be made? See pulse.h. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "benches/allreduce/pulse_parts.h"
#include "core/clock.h"

#define TRIAL_NS  3000000000u
#define ANSWER_NS 5000000000u /* for all of them */
#define NAMES     3           /* of pairs in one sentence */

/* Who refuses has answered: the network is not dead. */
static enum pulse_way way_of(int error)
{
    switch (error) {
    case 0:
    case ECONNREFUSED:
    case ECONNRESET:
        return PULSE_PASSES;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return PULSE_CLOSED;
    default:
        return PULSE_UNKNOWN;
    }
}

static void answer(struct pulse *p, uint32_t rank, enum pulse_way way)
{
    pulse_say(&p->peers[0], &(struct pulse_beat){.come = p->come, .rank = rank, .port = way});
}

static int address_of(const struct pulse *p, uint32_t rank, uint16_t port,
                      struct sockaddr_storage *to)
{
    const struct world_member *own = world_member(p->world, world_rank(p->world)),
                              *other = world_member(p->world, rank);
    struct sockaddr_in *four = (struct sockaddr_in *)to;

    *to = other->address;
    if (own->network && own->network == other->network)
        *four =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return port ? pulse_aim(to, &own->address, port) : -EINVAL;
}

static void begin_trial(struct pulse *p, const struct pulse_beat *b, uint64_t now_ns)
{
    struct sockaddr_storage to;

    if (b->rank >= world_size(p->world) || b->port > UINT16_MAX ||
        p->n_trials == PULSE_TRIALS_MAX || address_of(p, b->rank, (uint16_t)b->port, &to)) {
        answer(p, b->rank, PULSE_UNKNOWN);
        return;
    }
    int fd = pulse_reach(&to);
    if (fd < 0)
        answer(p, b->rank, way_of(-fd));
    else
        p->trials[p->n_trials++] =
            (struct pulse_trial){.fd = fd, .rank = b->rank, .until_ns = now_ns + TRIAL_NS};
}

void pulse_try_on(struct pulse *p, uint64_t now_ns)
{
    for (unsigned i = p->n_trials; i-- > 0;) {
        struct pulse_trial *t = &p->trials[i];
        struct pollfd ready = {.fd = t->fd, .events = POLLOUT};
        int error = ETIMEDOUT;
        socklen_t len = sizeof(error);
        bool ended = poll(&ready, 1, 0) == 1;
        if (!ended && now_ns < t->until_ns)
            continue;
        if (ended)
            getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &len);
        answer(p, t->rank, way_of(error));
        close(t->fd);
        *t = p->trials[--p->n_trials];
    }
}

void pulse_note(struct pulse *p, unsigned number, const struct pulse_beat *b, uint64_t now_ns)
{
    if (!b->rank)
        return;
    if (!p->leads) {
        begin_trial(p, b, now_ns);
        return;
    }
    for (size_t i = 0; p->pairs && i < p->n_pairs; i++)
        if (p->pairs[i].a == number && p->pairs[i].b == b->rank)
            p->pairs[i].way = b->port == PULSE_PASSES || b->port == PULSE_CLOSED
                                  ? (enum pulse_way)b->port
                                  : PULSE_UNKNOWN;
}

/* One rank of each host that is not this one's: between those and here it is known that something passes. Returns how many; 0: too many. */
static unsigned choose(const struct pulse *p, const unsigned *ranks, unsigned n,
                       unsigned chosen[PULSE_TRIALS_MAX])
{
    unsigned some = 0;

    for (unsigned i = 0; i < n; i++) {
        uint32_t node = world_member(p->world, ranks[i])->node;
        bool known = node == world_member(p->world, 0)->node;
        for (unsigned k = 0; k < some; k++)
            known |= world_member(p->world, chosen[k])->node == node;
        if (known)
            continue;
        if (some == PULSE_TRIALS_MAX)
            return 0;
        chosen[some++] = ranks[i];
    }
    return some;
}

static void ask(struct pulse *p, const unsigned *ranks, unsigned n)
{
    unsigned chosen[PULSE_TRIALS_MAX], some = choose(p, ranks, n, chosen);

    p->n_pairs = 0;
    p->asked_ns = clock_now_ns();
    p->pairs = calloc((size_t)some * some / 2 + 1, sizeof(*p->pairs));
    for (unsigned i = 0; p->pairs && i < some; i++)
        for (unsigned k = i + 1; k < some; k++) {
            struct pulse_pair *pair = &p->pairs[p->n_pairs++];
            *pair = (struct pulse_pair){chosen[i], chosen[k], PULSE_ASKED};
            pulse_say(&p->peers[pair->a], &(struct pulse_beat){.come = p->come,
                                                               .rank = pair->b,
                                                               .port = p->peers[pair->b].port});
        }
}

static size_t count(const struct pulse *p, enum pulse_way way)
{
    size_t n = 0;

    for (size_t i = 0; p->pairs && i < p->n_pairs; i++)
        n += p->pairs[i].way == way;
    return n;
}

static void name_closed(const struct pulse *p, char *text, size_t len)
{
    char a[WORLD_NAME_MAX + 32], b[WORLD_NAME_MAX + 32];
    size_t found = 0, used = 0;

    used += (size_t)snprintf(text, len, "no TCP connection can be made between ");
    for (size_t i = 0; i < p->n_pairs && used < len; i++) {
        if (p->pairs[i].way != PULSE_CLOSED || ++found > NAMES)
            continue;
        used += (size_t)snprintf(text + used, len - used, "%s%s and %s", found > 1 ? ", " : "",
                                 world_name(p->world, p->pairs[i].a, a, sizeof(a)),
                                 world_name(p->world, p->pairs[i].b, b, sizeof(b)));
    }
    if (found > NAMES && used < len)
        snprintf(text + used, len - used, " and %zu pairs more", found - NAMES);
}

bool pulse_between(struct pulse *p, const unsigned *ranks, unsigned n, char *text, size_t len)
{
    text[0] = 0;
    if (!p)
        return true;
    pthread_mutex_lock(&p->lock);
    if (!p->pairs)
        ask(p, ranks, n);
    bool known = !count(p, PULSE_ASKED) || clock_now_ns() - p->asked_ns > ANSWER_NS;
    if (known && count(p, PULSE_CLOSED))
        name_closed(p, text, len);
    else if (known && p->n_pairs && count(p, PULSE_PASSES) == p->n_pairs)
        snprintf(text, len, "TCP connections can be made between all of their hosts");
    pthread_mutex_unlock(&p->lock);
    return known;
}
