/* SPDX-License-Identifier: Apache-2.0 */
/* How long a rank is waited for, and when one has failed, who it was. See session.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/group/notice.h"
#include "core/hw/nic.h"
#include "core/session/session_state.h"

#define LEAVE_NS   2000000000u
#define QUIET_NS   3000000000u /* without a sign of life */
#define NAMES      4           /* of ranks in one sentence */
#define CONNECT_NS 1000000000u /* of a join, in which a rank does not look at its channel */
#define RANK_NS    100000000u  /* to start each rank */
#define TOUCH_GBPS 0.5         /* memory of all ranks of a machine is made at this rate at least */

_Static_assert(SESSION_LIBRARY_NS + 5300000000u < COLLECTIVE_ENDS_NS,
               "rank 0 names who hangs before any rank ends for it, with 2 s for a busy machine");

/* ---- How long ---- */

int session_post_all(struct session *s, enum collective_request request, const void *data,
                     size_t len)
{
    int err = 0;

    for (unsigned i = 1; i < s->n && !err; i++)
        err = talk_post(&s->talk, s->members[i], request, data, len);
    return err;
}

void session_watch(struct session *s)
{
    if (talk_watch(&s->talk))
        session_say_loss(s, s->talk.loss);
}

/* Memory of a member is touched, or filled, in so long. */
static uint64_t touch_ns(const struct session *s)
{
    const struct member *m = &s->own;

    return (uint64_t)(2.0 * (double)m->point.count * (double)collective_type_bytes(m->point.type) *
                      (s->n ? s->n : 1) / TOUCH_GBPS);
}

static bool is_ours(const struct session *s)
{
    return s->own.c.ops && s->own.c.ops->own;
}

/* How long a rank may be quiet at a request. */
static uint64_t quiet_ns_of(const struct session *s, enum collective_request request,
                            const struct session_run *run)
{
    if (request == COLLECTIVE_ASK_HELLO)
        return CHANNEL_WAIT_NS + s->ranks[0].hello.idle_ns + (uint64_t)RANK_NS * s->size;
    if (!is_ours(s))
        return member_patience_ns(&s->own, request, run) + SESSION_LIBRARY_NS;
    bool touches = request == COLLECTIVE_ASK_OPEN || request == COLLECTIVE_ASK_JOIN;
    return COLLECTIVE_STILL_NS + (touches ? touch_ns(s) : 0);
}

static bool heed(void *arg)
{
    session_watch(arg);
    return session_heed(arg);
}

static int blame(struct session *s, int own_err);

/* Nothing moves in our own backends, though all answer; how long a library may take is
 * quiet_ns_of()'s. */
int session_settle(struct session *s, int own_err, enum collective_request request,
                   const struct session_run *run)
{
    const struct talk_patience patience = {.quiet_ns = quiet_ns_of(s, request, run),
                                           .still_ns = is_ours(s) ? TALK_STILL_NS
                                                                  : quiet_ns_of(s, request, run),
                                           .heed = heed,
                                           .arg = s};

    if (own_err)
        talk_receive(&s->talk, 0);
    else if (talk_settle(&s->talk, &patience))
        return 0;
    session_heed(s);
    /* And how long it may be at it without looking at its channel, from when it was asked. */
    uint64_t deaf_ns =
        session_requests[request].looks == TALK_ALWAYS ? 0 : quiet_ns_of(s, request, NULL);
    if (request == COLLECTIVE_ASK_JOIN && is_ours(s))
        deaf_ns = CONNECT_NS + touch_ns(s);
    talk_give_up(&s->talk, deaf_ns);
    int err = blame(s, own_err);
    session_say_loss(s, s->error);
    return err;
}

/* ---- Who ---- */

__attribute__((format(printf, 2, 3))) static void say(struct session *s, const char *format, ...)
{
    size_t used = strlen(s->error);
    va_list args;

    va_start(args, format);
    vsnprintf(s->error + used, sizeof(s->error) - used, format, args);
    va_end(args);
}

typedef bool peer_is_fn(const struct talk_peer *p);

static bool any(const struct session *s, peer_is_fn *is)
{
    for (unsigned rank = 1; rank < s->size; rank++)
        if (is(&s->talk.peers[rank]))
            return true;
    return false;
}

/* "rank 2 (node2)", "rank 1 (a), rank 2 (b) and 5 more". Returns how many. */
static unsigned name_all(struct session *s, peer_is_fn *is)
{
    char name[WORLD_NAME_MAX + 32];
    unsigned n = 0;

    for (unsigned rank = 1; rank < s->size; rank++) {
        if (!is(&s->talk.peers[rank]) || ++n > NAMES)
            continue;
        say(s, "%s%s", n > 1 ? ", " : "", world_name(s->world, rank, name, sizeof(name)));
    }
    if (n > NAMES)
        say(s, " and %u more", n - NAMES);
    return n;
}

static bool is_silent(const struct talk_peer *p)
{
    return p->silent;
}

static bool is_surely_silent(const struct talk_peer *p)
{
    return p->silent && p->sure;
}

static bool is_perhaps_silent(const struct talk_peer *p)
{
    return p->silent && !p->sure;
}

static bool is_lost(const struct talk_peer *p)
{
    return p->gone && p->err && !p->silent;
}

/* Or was lost before. */
static bool has_ended(const struct talk_peer *p)
{
    return is_lost(p) && !(p->cut && p->err != -ECONNRESET);
}

/* What the ranks say, most telling first: the first of these. Rank 0 is this one. */
static unsigned most_telling(const struct session *s, int own_err, int *err)
{
    unsigned best = 0;

    *err = own_err;
    for (unsigned rank = 1; rank < s->size; rank++) {
        const struct talk_peer *p = &s->talk.peers[rank];
        if (!p->gone && talk_weight(p->err) > talk_weight(*err)) {
            *err = p->err;
            best = rank;
        }
    }
    return best;
}

static void say_one(struct session *s, unsigned rank)
{
    const char *text = rank ? s->talk.peers[rank].error : s->stuck[0] ? s->stuck : s->own.c.error;
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
        bool still = rank ? s->talk.peers[rank].err == -ETIMEDOUT : own_err == -ETIMEDOUT;
        if (!still)
            continue;
        say(s, "; ");
        say_one(s, rank);
    }
}

static void say_lost(struct session *s);
static void say_silent(struct session *s);

/* A member that has done its part may be the one whose bytes do not arrive: so all are asked, and
 * not only those that wait. Who does not even answer, or is lost meanwhile, is the one to name. */
static void ask_links(struct session *s)
{
    char still[SESSION_ERROR_BYTES];

    memcpy(still, s->error, sizeof(still));
    s->own.c.error[0] = 0;
    bool dead = member_links(&s->own, COLLECTIVE_UNHEARD_NS) != 0;
    session_post_all(s, COLLECTIVE_ASK_LINKS, NULL, 0);
    talk_hurry(&s->talk, LEAVE_NS);
    s->error[0] = 0;
    if (dead)
        say_one(s, 0);
    for (unsigned rank = 1; rank < s->size; rank++) {
        struct talk_peer *p = &s->talk.peers[rank];
        if (p->err != -EHOSTUNREACH || p->gone)
            continue;
        say(s, "%s", dead ? "; " : "");
        say_one(s, rank);
        dead = true;
    }
    if (!dead && any(s, is_lost))
        say_lost(s);
    else if (!dead && any(s, is_silent))
        say_silent(s);
    else if (!dead)
        memcpy(s->error, still, sizeof(still));
}

static bool is_cut_off(const struct talk_peer *p)
{
    return is_silent(p) || (p->gone && p->cut);
}

static bool is_quiet(const struct talk_peer *p)
{
    return channel_quiet_ns(p->channel) >= QUIET_NS;
}

static void say_lost(struct session *s)
{
    unsigned n = 0, others = 0;

    for (unsigned rank = 1; rank < s->size; rank++) {
        const struct talk_peer *p = &s->talk.peers[rank];
        if (is_lost(p) && n++ < NAMES)
            say(s, "%s%s", n > 1 ? "; " : "", p->error);
        /* nothing is lost on the way here */
        others += world_member(s->world, rank)->node != world_member(s->world, 0)->node &&
                  !p->gone && !p->silent && !is_quiet(p);
    }
    if (others && any(s, is_cut_off)) /* so the link of this end is not to blame */
        say(s, "; ranks on other hosts answer");
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
        /* Or is about to be: they are not found out all at once. */
        const struct talk_peer *p = &s->talk.peers[rank];
        if (p->gone || is_cut_off(p) ? !is_cut_off(p) : !is_quiet(p))
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
        snprintf(s->talk.loss, sizeof(s->talk.loss), "%.380s", s->error);
    return s->error[0] != 0;
}

/* Who has answered until shortly before is not proven to be the one, where another is to blame. */
static void say_perhaps(struct session *s)
{
    unsigned n = name_all(s, is_perhaps_silent);

    say(s, " %s not answer, but did until shortly before: perhaps %s only late",
        n == 1 ? "does" : "do", n == 1 ? "it is" : "they are");
}

static void say_silent(struct session *s)
{
    bool sure = any(s, is_surely_silent), perhaps = any(s, is_perhaps_silent);
    bool blamed = sure || any(s, is_lost);

    if (!sure && blamed) {
        say_perhaps(s);
        return;
    }
    unsigned n = name_all(s, sure ? is_surely_silent : is_silent);
    if (n == 1)
        say(s, " does not answer: it hangs or was cut off");
    else
        say(s, " do not answer: they hang or were cut off");
    if (sure && perhaps) {
        say(s, "; ");
        say_perhaps(s);
    }
}

static int blame(struct session *s, int own_err)
{
    int err;
    /* A member may have answered, and be lost while others wait for what it has sent. Where all are
     * parted from, it is known already who is to blame. */
    for (unsigned i = 1; i < s->n && !s->parted; i++) {
        struct talk_peer *p = &s->talk.peers[s->members[i]];
        if (p->gone && !p->err)
            p->err = p->cut ? -EHOSTUNREACH : -ECONNRESET;
    }
    unsigned rank = most_telling(s, own_err, &err);
    bool lost = any(s, is_lost), silent = any(s, is_silent);
    char name[WORLD_NAME_MAX + 32];

    if (is_cut(s))
        return -ECONNRESET;
    s->error[0] = 0;
    if ((lost || silent) && beat_stood_ns(s->talk.beat) > BEAT_LED_NS)
        say(s, "%s itself stood still for %.0f s; after that, ",
            world_name(s->world, 0, name, sizeof(name)), (double)beat_stood_ns(s->talk.beat) / 1e9);
    if (talk_weight(err) > talk_weight(-ECONNRESET)) {
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
    if (s->talk.broken && !s->said && !strcmp(world_group(s->world), "sock"))
        notice_send(&(struct notice){.kind = NOTICE_LOST}, "%s", text);
    s->said |= s->talk.broken;
}

/* ---- Ranks that are lost while a library is waited for ---- */

#define GRACE_NS  1500000000u /* the helper itself notices first, where it can */
#define TRIALS_NS 5000000000u /* for all of them */

/* A launcher of MPI ends all ranks when one has ended, and this one may have no time for more. Where
 * this one itself stood still, the others have ended for it. */
static void say_gone(void *arg, unsigned rank)
{
    struct session *s = arg;
    struct notice lost = {.kind = NOTICE_GONE, .rank = rank};
    char name[WORLD_NAME_MAX + 32];

    if (s->gone_said || beat_stood_ns(s->talk.beat) > BEAT_LED_NS)
        return;
    s->gone_said = true; /* those that end thereafter may do so for it */
    snprintf(lost.host, sizeof(lost.host), "%s", world_host(s->world, rank));
    notice_send(&lost, "%s %s", world_name(s->world, rank, name, sizeof(name)),
                notice_words(NOTICE_GONE));
}

void session_tell_ends(struct session *s)
{
    if (s->size > 1 && !strcmp(world_group(s->world), "mpi"))
        beat_tell(s->talk.beat, say_gone, s);
}

static void part(struct session *s, const char *text)
{
    for (unsigned rank = 1; rank < s->size; rank++) {
        s->talk.peers[rank].gone = true;
        s->talk.peers[rank].pending = 0;
    }
    s->parted = true;
    talk_break(&s->talk, text);
}

bool session_heed(struct session *s)
{
    if (!s->own.by_helper || s->parted)
        return s->parted;
    for (unsigned rank = 1; rank < s->size; rank++) {
        struct talk_peer *p = &s->talk.peers[rank];
        if (!p->gone)
            continue;
        p->err = p->cut ? -EHOSTUNREACH : -ECONNRESET;
        part(s, p->error);
        return true;
    }
    return false;
}

/* ---- Where all are alive and nothing moves: between which of their hosts is the network dead? */

struct session_trial {
    unsigned a, b;
    uint32_t way; /* enum collective_way */
};

/* One rank of each host that is not this one's: between those and here it is known that something
 * passes. Returns how many; 0: too many. */
static unsigned choose(const struct session *s, unsigned chosen[COLLECTIVE_TRIALS_MAX])
{
    unsigned some = 0;

    for (unsigned i = 1; i < s->n; i++) {
        uint32_t node = world_member(s->world, s->members[i])->node;
        bool known = node == world_member(s->world, 0)->node;
        for (unsigned k = 0; k < some; k++)
            known |= world_member(s->world, chosen[k])->node == node;
        if (known)
            continue;
        if (some == COLLECTIVE_TRIALS_MAX)
            return 0;
        chosen[some++] = s->members[i];
    }
    return some;
}

/* Each is asked to reach those after it. */
static void ask_trials(struct session *s)
{
    unsigned chosen[COLLECTIVE_TRIALS_MAX], some = choose(s, chosen);

    s->n_trials = 0;
    s->tried_ns = clock_now_ns();
    s->trials = xcalloc((size_t)some * some / 2 + 1, sizeof(*s->trials));
    for (unsigned i = 0; i + 1 < some; i++) {
        for (unsigned k = i + 1; k < some; k++)
            s->trials[s->n_trials++] = (struct session_trial){.a = chosen[i], .b = chosen[k]};
        talk_send_aside(world_channel(s->world, chosen[i]), false, chosen + i + 1,
                        (some - i - 1) * sizeof(*chosen));
    }
}

void session_tried(void *arg, unsigned rank, const void *data, size_t len)
{
    struct collective_tried tried;
    struct session *s = arg;

    for (size_t at = 0; at + sizeof(tried) <= len; at += sizeof(tried)) {
        memcpy(&tried, (const char *)data + at, sizeof(tried));
        for (unsigned i = 0; i < s->n_trials; i++)
            if (s->trials[i].a == rank && s->trials[i].b == tried.rank)
                s->trials[i].way = tried.way;
    }
}

static unsigned count_trials(const struct session *s, uint32_t way)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->n_trials; i++)
        n += s->trials[i].way == way;
    return n;
}

/* True: it is known, and text is a clause, or "": nothing could be tried. */
static bool know_between(struct session *s, char *text, size_t len)
{
    char a[WORLD_NAME_MAX + 32], b[WORLD_NAME_MAX + 32];
    unsigned found = 0, closed;
    size_t used;

    text[0] = 0;
    if (!s->trials)
        ask_trials(s);
    if (count_trials(s, WAY_ASKED) && clock_now_ns() - s->tried_ns <= TRIALS_NS)
        return false;
    closed = count_trials(s, WAY_CLOSED);
    if (!closed && s->n_trials && count_trials(s, WAY_PASSES) == s->n_trials)
        snprintf(text, len, "TCP connections can be made between all of their hosts");
    if (!closed)
        return true;
    used = (size_t)snprintf(text, len, "no TCP connection can be made between ");
    for (unsigned i = 0; i < s->n_trials && used < len; i++)
        if (s->trials[i].way == WAY_CLOSED && ++found < NAMES)
            used += (size_t)snprintf(text + used, len - used, "%s%s and %s", found > 1 ? ", " : "",
                                     world_name(s->world, s->trials[i].a, a, sizeof(a)),
                                     world_name(s->world, s->trials[i].b, b, sizeof(b)));
    if (closed >= NAMES && used < len)
        snprintf(text + used, len - used, " and %u pairs more", closed - NAMES + 1);
    return true;
}

/* It gives no signs of life, and will give some or be lost. One that is not expected to is neither. */
static bool is_in_doubt(const struct talk_peer *p)
{
    return is_quiet(p) && channel_quiet_ns(p->channel) < BEAT_LEADING_NS + QUIET_NS;
}

/* Why nothing moves, though nobody is lost. False: it is still being found out. */
static bool say_stuck(struct session *s, uint64_t still_ns)
{
    char more[COLLECTIVE_ERROR_BYTES / 2];
    double seconds = (double)still_ns / 1e9;

    /* Time in which this process stood still counts for the library, and not for signs of life. */
    if (!know_between(s, more, sizeof(more)) || any(s, is_in_doubt))
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

    session_watch(s);
    talk_receive(&s->talk, 0);
    talk_listen(&s->talk);
    if (session_heed(s))
        return -ECANCELED;
    if (still_ns <= __atomic_load_n(&m->limit_ns, __ATOMIC_RELAXED) + GRACE_NS)
        return 0;
    if (!say_stuck(s, still_ns))
        return 0;
    part(s, s->stuck);
    return -ETIMEDOUT;
}
