/* SPDX-License-Identifier: Apache-2.0 */
/* When a rank has failed: everybody gives up, and it is found out who it was. See session.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "benches/allreduce/session_state.h"
#include "core/clock.h"
#include "core/group/notice.h"
#include "core/hw/nic.h"

#define ANSWER_NS 1000000000u /* for an echo */
#define LEAVE_NS  2000000000u /* to give up, for ranks that answer */
#define LATE_NS   300000000u  /* for the others */
#define SLICE_NS  5000000u
#define QUIET_NS  3000000000u /* without a sign of life */
#define NAMES     4           /* of ranks in one sentence */

_Static_assert(COLLECTIVE_STILL_NS + ANSWER_NS + LEAVE_NS + LATE_NS < BEAT_NAMED_NS,
               "who hangs is named in time");
_Static_assert(SESSION_LIBRARY_NS + ANSWER_NS + LEAVE_NS + LATE_NS + 2000000000u <
                   COLLECTIVE_ENDS_NS,
               "rank 0 names who hangs before any rank ends for it, with 2 s for a busy machine");

int session_fail(struct session *s, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(s->error, sizeof(s->error), format, args);
    va_end(args);
    return err;
}

__attribute__((format(printf, 2, 3))) static void say(struct session *s, const char *format, ...)
{
    size_t used = strlen(s->error);
    va_list args;

    va_start(args, format);
    vsnprintf(s->error + used, sizeof(s->error) - used, format, args);
    va_end(args);
}

typedef bool peer_is_fn(const struct session *s, const struct session_peer *p);

static bool owes_echo(const struct session *s, const struct session_peer *p)
{
    return p->pending && p->echoed != s->echo;
}

static bool owes_reply(const struct session *s, const struct session_peer *p)
{
    (void)s;
    return p->pending && !p->silent;
}

static bool owes_anything(const struct session *s, const struct session_peer *p)
{
    (void)s;
    return p->pending != 0;
}

static bool any(const struct session *s, peer_is_fn *is)
{
    for (unsigned rank = 1; rank < s->size; rank++)
        if (is(s, &s->peers[rank]))
            return true;
    return false;
}

static void wait_while(struct session *s, peer_is_fn *is, uint64_t wait_ns)
{
    uint64_t begin_ns = clock_now_ns();

    session_receive(s, 0);
    while (any(s, is) && clock_now_ns() - begin_ns < wait_ns)
        session_receive(s, SLICE_NS);
}

static void send_to_pending(struct session *s, enum collective_request request, const void *data,
                            size_t len)
{
    for (unsigned rank = 1; rank < s->size; rank++)
        if (s->peers[rank].pending)
            session_send(s, rank, request, data, len);
}

/* "rank 2 (node2)", "rank 1 (a), rank 2 (b) and 5 more". Returns how many. */
static unsigned name_all(struct session *s, peer_is_fn *is)
{
    char name[WORLD_NAME_MAX + 32];
    unsigned n = 0;

    for (unsigned rank = 1; rank < s->size; rank++) {
        if (!is(s, &s->peers[rank]) || ++n > NAMES)
            continue;
        say(s, "%s%s", n > 1 ? ", " : "", world_name(s->world, rank, name, sizeof(name)));
    }
    if (n > NAMES)
        say(s, " and %u more", n - NAMES);
    return n;
}

static bool is_silent(const struct session *s, const struct session_peer *p)
{
    (void)s;
    return p->silent;
}

static bool is_lost(const struct session *s, const struct session_peer *p)
{
    (void)s;
    return p->gone && p->err && !p->silent;
}

/* Or was lost before. */
static bool has_ended(const struct session *s, const struct session_peer *p)
{
    return is_lost(s, p) && !(p->cut && p->err != -ECONNRESET);
}

/* An error that says more goes before one that follows from it. */
static int weight(int err)
{
    switch (err) {
    case 0:
        return 0;
    case -ECANCELED:
        return 1;
    case -ETIMEDOUT:
        return 2;
    case -ECONNRESET:
        return 3;
    case -EBADMSG:
        return 5;
    default:
        return 4;
    }
}

/* What the ranks say, most telling first: the first of these. Rank 0 is this one. */
static unsigned most_telling(const struct session *s, int own_err, int *err)
{
    unsigned best = 0;

    *err = own_err;
    for (unsigned rank = 1; rank < s->size; rank++) {
        const struct session_peer *p = &s->peers[rank];
        if (!p->gone && weight(p->err) > weight(*err)) {
            *err = p->err;
            best = rank;
        }
    }
    return best;
}

static void say_one(struct session *s, unsigned rank)
{
    const char *text = rank ? s->peers[rank].error : s->stuck[0] ? s->stuck : s->own.c.error;
    char name[WORLD_NAME_MAX + 32];

    say(s, "%s: %s", world_name(s->world, rank, name, sizeof(name)), text);
}

/* All answer, and yet nothing moves: what each of them waits for. */
static void say_still(struct session *s, int own_err)
{
    if (s->stuck[0]) {
        say_one(s, 0);
        return;
    }
    say(s, "nothing moves, though all ranks answer");
    for (unsigned rank = 0; rank < s->size; rank++) {
        bool still = rank ? s->peers[rank].err == -ETIMEDOUT : own_err == -ETIMEDOUT;
        if (!still)
            continue;
        say(s, "; ");
        say_one(s, rank);
    }
}

/* It was to answer, or to give up, and has not. */
static void lose_late(struct session *s, unsigned rank)
{
    char text[COLLECTIVE_ERROR_BYTES], name[WORLD_NAME_MAX + 32];

    snprintf(text, sizeof(text), "%s %s", world_name(s->world, rank, name, sizeof(name)),
             s->peers[rank].silent ? "did not answer: it hangs or was cut off"
                                   : "answers, but does not give up");
    session_lose(s, rank, -ETIMEDOUT, text);
}

/* A member that has done its part may be the one whose bytes do not arrive: so all are asked, and
 * not only those that wait. */
static void ask_links(struct session *s)
{
    char still[SESSION_ERROR_BYTES];

    memcpy(still, s->error, sizeof(still));
    s->own.c.error[0] = 0;
    bool dead = member_links(&s->own, COLLECTIVE_UNHEARD_NS) != 0;
    session_post_all(s, COLLECTIVE_ASK_LINKS, NULL, 0);
    wait_while(s, owes_anything, LEAVE_NS);
    s->error[0] = 0;
    if (dead)
        say_one(s, 0);
    for (unsigned rank = 1; rank < s->size; rank++) {
        struct session_peer *p = &s->peers[rank];
        if (p->pending)
            lose_late(s, rank);
        if (p->err != -EHOSTUNREACH || p->gone)
            continue;
        say(s, "%s", dead ? "; " : "");
        say_one(s, rank);
        dead = true;
    }
    if (!dead)
        memcpy(s->error, still, sizeof(still));
}

static void say_lost(struct session *s)
{
    unsigned n = 0;

    for (unsigned rank = 1; rank < s->size; rank++) {
        const struct session_peer *p = &s->peers[rank];
        if (is_lost(s, p) && n++ < NAMES)
            say(s, "%s%s", n > 1 ? "; " : "", p->error);
    }
}

static bool is_cut_off(const struct session *s, const struct session_peer *p)
{
    return is_silent(s, p) || (p->gone && p->cut);
}

/* Or is about to be: they are not found out all at once. */
static bool seems_cut_off(struct session *s, unsigned rank)
{
    const struct session_peer *p = &s->peers[rank];
    struct channel *c = world_channel(s->world, rank);

    if (p->gone || is_cut_off(s, p))
        return is_cut_off(s, p);
    return channel_base(c)->ops->quiet_ns && channel_base(c)->ops->quiet_ns(c) >= QUIET_NS;
}

/* How many other nodes there are, wherever on them the ranks are; 0: of one of them a rank is
 * there, or has ended. */
static unsigned nodes_cut_off(struct session *s)
{
    const struct world_member *own = world_member(s->world, 0), *other;

    if (!any(s, is_cut_off))
        return 0;
    for (unsigned rank = 1; rank < s->size; rank++) {
        other = world_member(s->world, rank);
        if (other->node == own->node)
            continue;
        if (!seems_cut_off(s, rank))
            return 0;
    }
    return world_nodes(s->world) - 1;
}

/* Who has lost all others at once, or whose own link is down, is the one to name. */
static bool is_cut(struct session *s)
{
    const struct sockaddr_storage *own = &world_member(s->world, 0)->address;
    char name[WORLD_NAME_MAX + 32], why[160];
    unsigned nodes = nodes_cut_off(s);

    world_name(s->world, 0, name, sizeof(name));
    s->error[0] = 0;
    if (own->ss_family != AF_UNSPEC && any(s, is_cut_off) &&
        nic_is_cut((const void *)own, why, sizeof(why)))
        say(s, "%s, which leads, is cut off: %s", name, why);
    else if (nodes > 1)
        say(s,
            "%s, which leads, has lost all %u other hosts at once: it is cut off, or they all are",
            name, nodes);
    if (s->error[0])
        snprintf(s->loss, sizeof(s->loss), "%.380s", s->error);
    return s->error[0] != 0;
}

/* Without signs of life, who waits in a library for the rank that hangs does not answer either. */
static bool is_in_library(const struct session *s, const struct session_peer *p)
{
    bool own = s->own.c.ops && s->own.c.ops->own;

    return p->silent && !own && s->peers[0].hello.beside && !p->hello.port;
}

static void say_silent(struct session *s)
{
    unsigned n = name_all(s, is_silent);

    if (n == 1)
        say(s, " does not answer: it hangs or was cut off");
    else if (any(s, is_in_library))
        say(s, " do not answer, and there are no signs of life by which it would be known who of "
               "them hangs");
    else
        say(s, " do not answer: they hang or were cut off");
}

static int blame(struct session *s, int own_err)
{
    int err;
    unsigned rank = most_telling(s, own_err, &err);
    bool lost = any(s, is_lost), silent = any(s, is_silent);

    if (is_cut(s))
        return -ECONNRESET;
    s->error[0] = 0;
    if (weight(err) > weight(-ECONNRESET)) {
        say_one(s, rank);
        if (!lost && !silent)
            return err;
        say(s, "; ");
    } else if (lost) {
        err = any(s, has_ended) ? -ECONNRESET : -ETIMEDOUT;
    } else if (silent) {
        err = -ETIMEDOUT;
    } else if (err == -ETIMEDOUT) {
        say_still(s, own_err);
        if (s->own.c.ops && s->own.c.ops->unheard)
            ask_links(s);
    } else {
        say_one(s, rank);
    }
    if (lost)
        say_lost(s);
    if (lost && silent)
        say(s, "; ");
    if (silent)
        say_silent(s);
    return err;
}

void session_say_loss(struct session *s, const char *text)
{
    if (s->broken && !s->said && !strcmp(world_group(s->world), "sock"))
        notice_send(&(struct notice){.kind = NOTICE_LOST}, "%s", text);
    s->said |= s->broken;
}

int session_give_up(struct session *s, int own_err, uint64_t deaf_ns)
{
    uint64_t gone_ns = clock_now_ns() - s->posted_ns;

    session_echo(s);
    wait_while(s, owes_echo, deaf_ns > gone_ns + ANSWER_NS ? deaf_ns - gone_ns : ANSWER_NS);
    for (unsigned rank = 1; rank < s->size; rank++)
        s->peers[rank].silent = owes_echo(s, &s->peers[rank]);
    send_to_pending(s, COLLECTIVE_ASK_GIVE_UP, NULL, 0);
    wait_while(s, owes_reply, LEAVE_NS);
    wait_while(s, owes_anything, LATE_NS);
    for (unsigned rank = 1; rank < s->size; rank++) {
        if (!s->peers[rank].pending)
            continue;
        lose_late(s, rank);
    }
    int err = blame(s, own_err);
    session_say_loss(s, s->error);
    return err;
}

/* --- ranks that are lost while a library is waited for --- */

#define GRACE_NS 1500000000u /* the helper itself notices first, where it can */

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
    int err = heartbeat_gone(s->own.heartbeat, &rank, text, sizeof(text));

    if (!err && s->n > 1)
        err = heartbeat_lost(s->own.heartbeat, s->members + 1, s->n - 1, &rank, text, sizeof(text));

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
    if (!heartbeat_between(s->own.heartbeat, s->members + 1, s->n - 1, more, sizeof(more)))
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
