/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the other ranks, and their replies: see session_state.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "benches/allreduce/session_state.h"
#include "core/clock.h"

#define SEND_WAIT_NS   8000000000u
#define SLICE_NS       5000000u    /* of waiting for one rank, before all others are looked at */
#define ECHO_EVERY_NS  1000000000u /* from ranks that are at work */
#define DOUBT_NS       5000000000u /* nothing has moved for so long: from here on */
#define DOUBT_EVERY_NS 100000000u
#define WATCH_EVERY_NS 500000000u  /* of ranks that are asked nothing */
#define CONNECT_NS     1000000000u /* of a join, in which a rank does not look at its channel */
#define RANK_NS        100000000u  /* to start each rank */
#define TOUCH_GBPS     0.5 /* memory of all ranks of a machine is made at this rate at least */

/* What follows a reply's head where there is no error. */
static const size_t bodies[COLLECTIVE_REQUESTS] = {
    [COLLECTIVE_ASK_HELLO] = sizeof(struct collective_hello),
    [COLLECTIVE_ASK_OPEN] = sizeof(uint32_t),
    [COLLECTIVE_ASK_RUN] = sizeof(struct collective_times),
    [COLLECTIVE_ASK_OVERLAP] = sizeof(uint64_t),
    [COLLECTIVE_ASK_TELL] = sizeof(struct collective_account),
    [COLLECTIVE_ASK_PROVE] = sizeof(struct collective_proof),
};

void session_break(struct session *s, const char *text)
{
    s->broken = true;
    if (!s->loss[0])
        snprintf(s->loss, sizeof(s->loss), "%s", text);
}

void session_lose(struct session *s, unsigned rank, int err, const char *text)
{
    struct session_peer *p = &s->peers[rank];

    p->gone = true;
    p->cut = err == -EHOSTUNREACH || err == -ETIMEDOUT;
    p->pending = 0;
    p->err = err;
    snprintf(p->error, sizeof(p->error), "%s", text);
    session_break(s, text);
}

int session_send(struct session *s, unsigned rank, enum collective_request request,
                 const void *data, size_t len)
{
    struct channel *c = world_channel(s->world, rank);
    struct session_peer *p = &s->peers[rank];

    if (p->gone)
        return p->err = -ECONNRESET;
    int err = channel_base(c)->ops->send(c, (uint16_t)request, data, len, SEND_WAIT_NS);
    if (err)
        session_lose(s, rank, err, channel_error(c));
    return err;
}

int session_post(struct session *s, unsigned rank, enum collective_request request,
                 const void *data, size_t len)
{
    struct session_peer *p = &s->peers[rank];
    int err = session_send(s, rank, request, data, len);

    if (err)
        return err;
    p->pending = (uint16_t)request;
    p->err = 0;
    p->silent = false;
    p->still_ns = 0;
    p->heard_ns = s->posted_ns = s->echoed_ns = s->listened_ns = clock_now_ns();
    return 0;
}

int session_post_all(struct session *s, enum collective_request request, const void *data,
                     size_t len)
{
    int err = 0;

    for (unsigned i = 1; i < s->n && !err; i++)
        err = session_post(s, s->members[i], request, data, len);
    return err;
}

static void take_reply(struct session *s, struct session_peer *p, size_t len)
{
    const struct collective_reply *head = (const void *)s->in;
    size_t body = len - sizeof(*head);
    uint16_t request = p->pending;

    p->pending = 0;
    p->err = head->err;
    snprintf(p->error, sizeof(p->error), "%.*s", (int)sizeof(head->error) - 1, head->error);
    if (head->err < 0)
        return;
    if (!head->err && body == bodies[request])
        memcpy(&p->body, s->in + sizeof(*head), body);
    else
        p->err = -EPROTO;
    if (request == COLLECTIVE_ASK_OPEN && !p->err && p->body.n != p->addresses.n)
        p->err = -EPROTO;
    if (p->err)
        snprintf(p->error, sizeof(p->error), "it answered what cannot be");
}

static bool is_echo(struct session *s, struct session_peer *p, uint16_t type, size_t len)
{
    struct collective_echo echo;

    if (type != (COLLECTIVE_ASK_ECHO | COLLECTIVE_REPLY) || len != sizeof(echo))
        return false;
    memcpy(&echo, s->in, len);
    p->echoed = echo.number;
    p->still_ns = echo.still_ms * 1000000ull;
    return true;
}

static int take_frame(struct session *s, unsigned rank, uint16_t type, size_t len)
{
    struct session_peer *p = &s->peers[rank];

    p->heard_ns = clock_now_ns();
    if (is_echo(s, p, type, len))
        return 0;
    if (p->pending == COLLECTIVE_ASK_OPEN && type == (COLLECTIVE_ASK_ADDRESSES | COLLECTIVE_REPLY))
        return addresses_take(&p->addresses, s->in, len, s->n);
    if (!p->pending || type != (p->pending | COLLECTIVE_REPLY) ||
        len < sizeof(struct collective_reply))
        return -EPROTO;
    take_reply(s, p, len);
    return 0;
}

static void lose_liar(struct session *s, unsigned rank, int err)
{
    char name[WORLD_NAME_MAX + 32], text[COLLECTIVE_ERROR_BYTES];

    snprintf(text, sizeof(text), "%s answered something else than was asked",
             world_name(s->world, rank, name, sizeof(name)));
    session_lose(s, rank, err, text);
}

/* All frames that are there, after waiting so long for the first. */
static void take_from(struct session *s, unsigned rank, uint64_t wait_ns)
{
    struct session_peer *p = &s->peers[rank];
    struct channel *c = world_channel(s->world, rank);
    int err = 0;

    while (!err && p->pending) {
        uint16_t type = 0;
        size_t len = 0;
        err = channel_recv(c, &type, s->in, sizeof(s->in), &len, wait_ns);
        if (err == -EAGAIN || err == -ETIMEDOUT)
            return;
        if (err)
            session_lose(s, rank, err, channel_error(c));
        else
            err = take_frame(s, rank, type, len);
        if (err && !p->gone)
            lose_liar(s, rank, err);
        wait_ns = 0;
    }
}

bool session_receive(struct session *s, uint64_t wait_ns)
{
    bool failed = false;

    for (unsigned rank = 1; rank < s->size; rank++) {
        struct session_peer *p = &s->peers[rank];
        if (!p->pending)
            continue;
        take_from(s, rank, wait_ns);
        wait_ns = p->pending ? 0 : wait_ns; /* once for all of them */
    }
    for (unsigned rank = 1; rank < s->size; rank++)
        failed |= s->peers[rank].err != 0;
    return failed;
}

/* An echo may come after the reply to what was asked. No other frame of a rank that was asked
 * nothing is of this protocol. */
static void watch_one(struct session *s, unsigned rank)
{
    struct session_peer *p = &s->peers[rank];
    struct channel *c = world_channel(s->world, rank);
    uint16_t type = 0;
    size_t len = 0;
    int err =
        p->gone || p->pending ? -EAGAIN : channel_recv(c, &type, s->in, sizeof(s->in), &len, 0);

    if (!err && is_echo(s, p, type, len))
        return;
    if (!err)
        lose_liar(s, rank, -EPROTO);
    else if (err != -EAGAIN)
        session_lose(s, rank, err, channel_error(c));
    if (err == -EAGAIN)
        return;
    session_say_loss(s, s->loss);
    p->err = 0;
}

void session_watch(struct session *s)
{
    uint64_t now_ns = clock_now_ns();

    if (!s->beat || now_ns - s->watched_ns < WATCH_EVERY_NS)
        return;
    s->watched_ns = now_ns;
    for (unsigned rank = 1; rank < s->size; rank++)
        watch_one(s, rank);
}

static bool session_awaits(const struct session *s)
{
    for (unsigned rank = 1; rank < s->size; rank++)
        if (s->peers[rank].pending)
            return true;
    return false;
}

void session_echo(struct session *s)
{
    s->echo++;
    for (unsigned rank = 1; rank < s->size; rank++)
        if (s->peers[rank].pending)
            session_send(s, rank, COLLECTIVE_ASK_ECHO, &s->echo, sizeof(s->echo));
}

/* A rank that has not answered for long may have told what is not true any more. */
uint64_t session_still_ns(const struct session *s)
{
    uint64_t now_ns = clock_now_ns(), least_ns = UINT64_MAX;

    for (unsigned rank = 1; rank < s->size; rank++) {
        const struct session_peer *p = &s->peers[rank];
        uint64_t still_ns = p->pending ? now_ns - p->heard_ns : UINT64_MAX;
        if (p->pending && p->still_ns > still_ns)
            still_ns = p->still_ns;
        if (still_ns < least_ns)
            least_ns = still_ns;
    }
    return least_ns;
}

/* Requests at which a rank looks at its channel all the time. */
static bool attends(enum collective_request request)
{
    return request == COLLECTIVE_ASK_RUN || request == COLLECTIVE_ASK_CHECK ||
           request == COLLECTIVE_ASK_OVERLAP;
}

/* While this rank did not look, it could not hear the others. */
static void forgive(struct session *s, uint64_t now_ns)
{
    uint64_t gap_ns = now_ns - s->listened_ns;

    s->listened_ns = now_ns;
    for (unsigned rank = 1; rank < s->size && gap_ns > ECHO_EVERY_NS; rank++) {
        uint64_t *heard_ns = &s->peers[rank].heard_ns;
        *heard_ns = now_ns - *heard_ns > gap_ns ? *heard_ns + gap_ns : now_ns;
    }
}

bool session_listen(struct session *s)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t every_ns = session_still_ns(s) < DOUBT_NS ? ECHO_EVERY_NS : DOUBT_EVERY_NS;
    bool silent = false;

    forgive(s, now_ns);
    if (now_ns - s->echoed_ns >= every_ns) {
        session_echo(s);
        s->echoed_ns = now_ns;
    }
    for (unsigned rank = 1; rank < s->size; rank++) {
        const struct session_peer *p = &s->peers[rank];
        silent |= p->pending && attends((enum collective_request)p->pending) &&
                  now_ns - p->heard_ns >= COLLECTIVE_STILL_NS;
    }
    return silent;
}

/* The rank that has been quiet for longest has been so since then. */
static uint64_t quiet_since(const struct session *s, uint64_t begin_ns)
{
    uint64_t since_ns = UINT64_MAX;

    for (unsigned rank = 1; rank < s->size; rank++) {
        const struct session_peer *p = &s->peers[rank];
        if (p->pending && p->heard_ns < since_ns)
            since_ns = p->heard_ns;
    }
    return since_ns > begin_ns ? since_ns : begin_ns;
}

/* Memory of a member is touched, or filled, in so long. */
static uint64_t touch_ns(const struct session *s)
{
    const struct member *m = &s->own;

    return (uint64_t)(2.0 * (double)m->point.count * (double)collective_type_bytes(m->point.type) *
                      (s->n ? s->n : 1) / TOUCH_GBPS);
}

/* How long a rank may be quiet at a request. */
static uint64_t quiet_ns_of(const struct session *s, enum collective_request request,
                            const struct session_run *run)
{
    const struct member *m = &s->own;

    if (request == COLLECTIVE_ASK_HELLO)
        return CHANNEL_WAIT_NS + s->peers[0].hello.idle_ns + (uint64_t)RANK_NS * s->size;
    if (!m->c.ops || !m->c.ops->own)
        return member_patience_ns(m, request, run) + SESSION_LIBRARY_NS;
    bool touches = request == COLLECTIVE_ASK_OPEN || request == COLLECTIVE_ASK_JOIN;
    return COLLECTIVE_STILL_NS + (touches ? touch_ns(s) : 0);
}

/* And how long it may be at it without looking at its channel, from when it was asked. */
static uint64_t deaf_ns_of(const struct session *s, enum collective_request request)
{
    if (request == COLLECTIVE_ASK_JOIN && s->own.c.ops && s->own.c.ops->own)
        return CONNECT_NS + touch_ns(s);
    return attends(request) ? 0 : quiet_ns_of(s, request, NULL);
}

/* Nothing moves in our own backends, though all answer; how long a library may take is
 * quiet_ns_of()'s. */
static bool is_stuck(const struct session *s, enum collective_request request)
{
    return s->own.c.ops && s->own.c.ops->own && attends(request) &&
           session_still_ns(s) >= COLLECTIVE_STILL_NS;
}

int session_settle(struct session *s, int own_err, enum collective_request request,
                   const struct session_run *run)
{
    uint64_t begin_ns = clock_now_ns();
    uint64_t quiet_ns = quiet_ns_of(s, request, run);
    bool failed = session_receive(s, 0) || own_err;

    while (!failed && session_awaits(s)) {
        session_listen(s);
        failed = session_receive(s, SLICE_NS) || session_heed(s);
        session_watch(s);
        uint64_t since_ns = quiet_since(s, begin_ns);
        failed |=
            session_awaits(s) && (clock_now_ns() >= since_ns + quiet_ns || is_stuck(s, request));
    }
    return failed ? session_give_up(s, own_err, deaf_ns_of(s, request)) : 0;
}
