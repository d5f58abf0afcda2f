/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of life beside the channels: see heartbeat.h. */
#include "benches/allreduce/heartbeat.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/group/notice.h"
#include "core/group/world.h"

/* Where all ranks are alive and nothing moves: between which of their hosts can no connection be
 * made? See heartbeat.h. */

#define TRIAL_NS  3000000000u
#define ANSWER_NS 5000000000u /* for all of them */
#define NAMES     3           /* of pairs in one sentence */

/* Who refuses has answered: the network is not dead. */
static enum heartbeat_way way_of(int error)
{
    switch (error) {
    case 0:
    case ECONNREFUSED:
    case ECONNRESET:
        return HEARTBEAT_PASSES;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return HEARTBEAT_CLOSED;
    default:
        return HEARTBEAT_UNKNOWN;
    }
}

static void answer(struct heartbeat *p, uint32_t rank, enum heartbeat_way way)
{
    heartbeat_say(&p->peers[0],
                  &(struct heartbeat_message){.come = p->come, .rank = rank, .port = way});
}

static int address_of(const struct heartbeat *p, uint32_t rank, uint16_t port,
                      struct sockaddr_storage *to)
{
    const struct world_member *own = world_member(p->world, world_rank(p->world)),
                              *other = world_member(p->world, rank);
    struct sockaddr_in *four = (struct sockaddr_in *)to;

    *to = other->address;
    if (own->network && own->network == other->network)
        *four =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return port ? heartbeat_aim(to, &own->address, port) : -EINVAL;
}

static void begin_trial(struct heartbeat *p, const struct heartbeat_message *b, uint64_t now_ns)
{
    struct sockaddr_storage to;

    if (b->rank >= world_size(p->world) || b->port > UINT16_MAX ||
        p->n_trials == HEARTBEAT_TRIALS_MAX || address_of(p, b->rank, (uint16_t)b->port, &to)) {
        answer(p, b->rank, HEARTBEAT_UNKNOWN);
        return;
    }
    int fd = heartbeat_reach(&to);
    if (fd < 0)
        answer(p, b->rank, way_of(-fd));
    else
        p->trials[p->n_trials++] =
            (struct heartbeat_trial){.fd = fd, .rank = b->rank, .until_ns = now_ns + TRIAL_NS};
}

static void heartbeat_try_on(struct heartbeat *p, uint64_t now_ns)
{
    for (unsigned i = p->n_trials; i-- > 0;) {
        struct heartbeat_trial *t = &p->trials[i];
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

void heartbeat_note(struct heartbeat *p, unsigned number, const struct heartbeat_message *b,
                    uint64_t now_ns)
{
    if (!b->rank)
        return;
    if (!p->leads) {
        begin_trial(p, b, now_ns);
        return;
    }
    for (size_t i = 0; p->pairs && i < p->n_pairs; i++)
        if (p->pairs[i].a == number && p->pairs[i].b == b->rank)
            p->pairs[i].way = b->port == HEARTBEAT_PASSES || b->port == HEARTBEAT_CLOSED
                                  ? (enum heartbeat_way)b->port
                                  : HEARTBEAT_UNKNOWN;
}

/* One rank of each host that is not this one's: between those and here it is known that something
 * passes. Returns how many; 0: too many. */
static unsigned choose(const struct heartbeat *p, const unsigned *ranks, unsigned n,
                       unsigned chosen[HEARTBEAT_TRIALS_MAX])
{
    unsigned some = 0;

    for (unsigned i = 0; i < n; i++) {
        uint32_t node = world_member(p->world, ranks[i])->node;
        bool known = node == world_member(p->world, 0)->node;
        for (unsigned k = 0; k < some; k++)
            known |= world_member(p->world, chosen[k])->node == node;
        if (known)
            continue;
        if (some == HEARTBEAT_TRIALS_MAX)
            return 0;
        chosen[some++] = ranks[i];
    }
    return some;
}

static void ask(struct heartbeat *p, const unsigned *ranks, unsigned n)
{
    unsigned chosen[HEARTBEAT_TRIALS_MAX], some = choose(p, ranks, n, chosen);

    p->n_pairs = 0;
    p->asked_ns = clock_now_ns();
    p->pairs = calloc((size_t)some * some / 2 + 1, sizeof(*p->pairs));
    for (unsigned i = 0; p->pairs && i < some; i++)
        for (unsigned k = i + 1; k < some; k++) {
            struct heartbeat_pair *pair = &p->pairs[p->n_pairs++];
            *pair = (struct heartbeat_pair){chosen[i], chosen[k], HEARTBEAT_ASKED};
            heartbeat_say(&p->peers[pair->a],
                          &(struct heartbeat_message){
                              .come = p->come, .rank = pair->b, .port = p->peers[pair->b].port});
        }
}

static size_t count(const struct heartbeat *p, enum heartbeat_way way)
{
    size_t n = 0;

    for (size_t i = 0; p->pairs && i < p->n_pairs; i++)
        n += p->pairs[i].way == way;
    return n;
}

static void name_closed(const struct heartbeat *p, char *text, size_t len)
{
    char a[WORLD_NAME_MAX + 32], b[WORLD_NAME_MAX + 32];
    size_t found = 0, used = 0;

    used += (size_t)snprintf(text, len, "no TCP connection can be made between ");
    for (size_t i = 0; i < p->n_pairs && used < len; i++) {
        if (p->pairs[i].way != HEARTBEAT_CLOSED || ++found > NAMES)
            continue;
        used += (size_t)snprintf(text + used, len - used, "%s%s and %s", found > 1 ? ", " : "",
                                 world_name(p->world, p->pairs[i].a, a, sizeof(a)),
                                 world_name(p->world, p->pairs[i].b, b, sizeof(b)));
    }
    if (found > NAMES && used < len)
        snprintf(text + used, len - used, " and %zu pairs more", found - NAMES);
}

bool heartbeat_between(struct heartbeat *p, const unsigned *ranks, unsigned n, char *text,
                       size_t len)
{
    text[0] = 0;
    if (!p)
        return true;
    pthread_mutex_lock(&p->lock);
    if (!p->pairs)
        ask(p, ranks, n);
    bool known = !count(p, HEARTBEAT_ASKED) || clock_now_ns() - p->asked_ns > ANSWER_NS;
    if (known && count(p, HEARTBEAT_CLOSED))
        name_closed(p, text, len);
    else if (known && p->n_pairs && count(p, HEARTBEAT_PASSES) == p->n_pairs)
        snprintf(text, len, "TCP connections can be made between all of their hosts");
    pthread_mutex_unlock(&p->lock);
    return known;
}

#define TURN_MS  100
#define TURN_NS  100000000u
#define PAUSE_NS 500000000u /* a turn that took longer: this process itself stood still */

static uint64_t since(uint64_t then_ns, uint64_t now_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

static void beat(struct heartbeat *p, uint64_t now_ns)
{
    struct heartbeat_message b = {.come = p->come};

    if (now_ns - p->beat_ns < HEARTBEAT_EVERY_NS)
        return;
    p->beat_ns = now_ns;
    for (unsigned i = 0; i < p->n; i++)
        heartbeat_say(&p->peers[i], &b);
}

/* What did not look did not hear either. */
static void forgive(struct heartbeat *p, uint64_t now_ns)
{
    uint64_t gap_ns = now_ns - p->turn_ns;

    p->turn_ns = now_ns;
    if (gap_ns <= PAUSE_NS)
        return;
    p->stood_ns = gap_ns > p->stood_ns ? gap_ns : p->stood_ns;
    for (unsigned i = 0; i < p->n; i++)
        p->peers[i].heard_ns += gap_ns;
}

struct notice heartbeat_notice(const struct heartbeat *p, unsigned rank, int err)
{
    struct notice lost = {.kind = err == -ECONNRESET ? NOTICE_GONE : NOTICE_SILENT, .rank = rank};

    snprintf(lost.host, sizeof(lost.host), "%s", world_member(p->world, rank)->host);
    return lost;
}

bool heartbeat_stood_still(struct heartbeat *p)
{
    pthread_mutex_lock(&p->lock);
    bool stood = p->stood_ns > HEARTBEAT_SILENT_NS;
    pthread_mutex_unlock(&p->lock);
    return stood;
}

/* At once, since a launcher may kill this process, too, before it can make a row of it. Those that
 * end thereafter may do so for it, or be killed like it: they are not named. */
static void say_gone(struct heartbeat *p)
{
    char name[WORLD_NAME_MAX + 32];

    if (!p->leads || p->quiet)
        return;
    for (unsigned rank = 1; rank < p->n; rank++) {
        if (!p->peers[rank].gone)
            continue;
        struct notice lost = heartbeat_notice(p, rank, -ECONNRESET);
        notice_send(&lost, "%s %s", world_name(p->world, rank, name, sizeof(name)),
                    notice_words(lost.kind));
        p->quiet = true;
    }
}

/* Ended connections wake it; what others say can wait for the turn. */
static void turn(struct heartbeat *p)
{
    uint64_t now_ns = clock_now_ns();

    pthread_mutex_lock(&p->lock);
    forgive(p, now_ns);
    if (p->n_listeners)
        heartbeat_welcome(p);
    for (unsigned i = 0; i < p->n; i++)
        heartbeat_hear(p, i, now_ns);
    heartbeat_try_on(p, now_ns);
    say_gone(p);
    beat(p, now_ns);
    for (unsigned i = 0; i < p->n; i++)
        p->fds[i] = (struct pollfd){.fd = p->peers[i].fd, .events = POLLRDHUP};
    pthread_mutex_unlock(&p->lock);
    poll(p->fds, p->n, TURN_MS);
}

static void *live(void *arg)
{
    struct heartbeat *p = arg;

    while (!__atomic_load_n(&p->over, __ATOMIC_ACQUIRE))
        turn(p);
    return NULL;
}

int heartbeat_start(struct heartbeat *p)
{
    p->since_ns = p->turn_ns = clock_now_ns();
    int err = -pthread_create(&p->thread, NULL, live, p);
    p->started = !err;
    return err;
}

void heartbeat_close(struct heartbeat *p)
{
    if (!p)
        return;
    __atomic_store_n(&p->over, true, __ATOMIC_RELEASE);
    if (p->started)
        pthread_join(p->thread, NULL);
    for (unsigned i = 0; i < p->n; i++)
        if (p->peers[i].fd >= 0)
            close(p->peers[i].fd);
    for (size_t i = 0; i < p->n_listeners; i++)
        close(p->listeners[i]);
    for (unsigned i = 0; i < p->n_trials; i++)
        close(p->trials[i].fd);
    free(p->pairs);
    pthread_mutex_destroy(&p->lock);
    free(p->fds);
    free(p->peers);
    free(p);
}

void heartbeat_part(struct heartbeat *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->quiet = true;
    pthread_mutex_unlock(&p->lock);
}

void heartbeat_at(struct heartbeat *p, uint64_t request)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->at = request != 0;
    p->come = request ? request : p->come;
    free(p->pairs); /* what was found out was of the one before */
    p->pairs = NULL;
    p->since_ns = clock_now_ns();
    pthread_mutex_unlock(&p->lock);
}

/* By its rank: those of another rank than 0 have rank 0 alone. */
static struct heartbeat_peer *peer_of(struct heartbeat *p, unsigned rank)
{
    return &p->peers[p->n > 1 ? rank : 0];
}

bool heartbeat_hears(struct heartbeat *p, unsigned rank)
{
    if (!p)
        return false;
    pthread_mutex_lock(&p->lock);
    bool heard = peer_of(p, rank)->heard;
    pthread_mutex_unlock(&p->lock);
    return heard;
}

static bool is_absent(const struct heartbeat *p, const struct heartbeat_peer *peer, uint64_t now_ns)
{
    return p->leads && p->at && peer->last.come < p->come &&
           since(p->since_ns, now_ns) > HEARTBEAT_ABSENT_NS;
}

static int judge(const struct heartbeat *p, const struct heartbeat_peer *peer, uint64_t now_ns,
                 const char **what)
{
    uint64_t silent_ns = since(peer->heard_ns, now_ns);

    if (!peer->heard)
        return 0;
    if (peer->gone) {
        *what = notice_words(NOTICE_GONE);
        return -ECONNRESET;
    }
    *what = notice_words(NOTICE_SILENT);
    if (silent_ns > (p->leads ? HEARTBEAT_SILENT_NS : HEARTBEAT_LEADER_NS))
        return -ETIMEDOUT;
    *what = "answers, but has not come to the operation: it is kept by something else";
    return is_absent(p, peer, now_ns) ? -ETIMEDOUT : 0;
}

/* Who stood still for so long that the others gave it up is not to blame them. */
static void say(const struct heartbeat *p, unsigned rank, const char *what, char *text, size_t len)
{
    char name[WORLD_NAME_MAX + 32];
    size_t used = 0;

    if (p->stood_ns > HEARTBEAT_SILENT_NS)
        used = (size_t)snprintf(text, len, "%s itself stood still for %.0f s; after that, ",
                                world_name(p->world, world_rank(p->world), name, sizeof(name)),
                                (double)p->stood_ns / 1e9);
    if (used < len)
        snprintf(text + used, len - used, "%s %s", world_name(p->world, rank, name, sizeof(name)),
                 what);
}

int heartbeat_lost(struct heartbeat *p, const unsigned *ranks, unsigned n, unsigned *rank,
                   char *text, size_t len)
{
    const char *what = NULL;
    int err = 0;

    if (!p)
        return 0;
    pthread_mutex_lock(&p->lock);
    uint64_t now_ns = clock_now_ns();
    /* What this process has slept through is for its thread to see first. */
    for (unsigned i = 0; i < n && !err && since(p->turn_ns, now_ns) <= PAUSE_NS; i++) {
        *rank = ranks[i];
        err = judge(p, peer_of(p, ranks[i]), now_ns, &what);
    }
    if (err)
        say(p, *rank, what, text, len);
    pthread_mutex_unlock(&p->lock);
    return err;
}

int heartbeat_gone(struct heartbeat *p, unsigned *rank, char *text, size_t len)
{
    int err = 0;

    if (!p)
        return 0;
    pthread_mutex_lock(&p->lock);
    for (*rank = 1; *rank < p->n && !p->peers[*rank].gone;)
        ++*rank;
    if (*rank < p->n) {
        err = -ECONNRESET;
        say(p, *rank, notice_words(NOTICE_GONE), text, len);
    }
    pthread_mutex_unlock(&p->lock);
    return err;
}
