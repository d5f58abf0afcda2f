/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, replies, and who does not answer: see talk.h. */
#include "core/group/talk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"

#define SEND_WAIT_NS   8000000000u
#define SLICE_NS       5000000u    /* of waiting for one peer, before all others are looked at */
#define ECHO_EVERY_NS  1000000000u /* from peers that are at work */
#define DOUBT_NS       5000000000u /* nothing has moved for so long: from here on */
#define DOUBT_EVERY_NS 100000000u
#define WATCH_EVERY_NS 500000000u  /* of peers that are asked nothing */
#define ANSWER_NS      1000000000u /* for an echo */
#define LEAVE_NS       2000000000u /* to give up, for peers that answer */
#define LATE_NS        300000000u  /* for the others */
#define SURE_NS        DOUBT_NS    /* silent for so long: no process stands still by chance */
#define QUIET_NS       3000000000u /* the same without its signs of life */
#define IDLE_NS        1000000000u /* of a peer that waits for requests */
#define ABSENT_NS      50000000u

_Static_assert(TALK_STILL_NS + ANSWER_NS + LEAVE_NS + LATE_NS < BEAT_NAMED_NS,
               "who hangs is named in time");

int talk_add(struct talk_bytes *b, const void *data, size_t len)
{
    size_t room = b->room ? b->room : 256;

    if (len > TALK_BYTES_MAX - b->len)
        return -EMSGSIZE;
    while (room < b->len + len)
        room *= 2;
    if (room > b->room) {
        b->bytes = xrealloc(b->bytes, room);
        b->room = room;
    }
    if (len && data)
        memcpy(b->bytes + b->len, data, len);
    else
        memset(b->bytes + b->len, 0, len);
    b->len += len;
    return 0;
}

void talk_free(struct talk_bytes *b)
{
    free(b->bytes);
    *b = (struct talk_bytes){0};
}

/* In as many frames as it takes. */
static int send_all(struct channel *c, uint16_t type, const void *data, size_t len)
{
    const uint8_t *at = data;
    int err = 0;

    for (; !err && len > CHANNEL_FRAME_MAX; at += CHANNEL_FRAME_MAX, len -= CHANNEL_FRAME_MAX)
        err = c->ops->send(c, type | TALK_MORE, at, CHANNEL_FRAME_MAX, SEND_WAIT_NS);
    return err ? err : c->ops->send(c, type, at, len, SEND_WAIT_NS);
}

/* ---- The end that is led ---- */

static int echo(struct talk_server *s, const void *what, size_t len)
{
    uint64_t now_ns = clock_now_ns();
    struct talk_echo own = {0};

    s->asked_ns = now_ns;
    if (s->moved_ns)
        own.still_ms = (uint32_t)((now_ns - *s->moved_ns) / 1000000);
    memcpy(&own.number, what, len < sizeof(own.number) ? len : sizeof(own.number));
    return channel_send(s->channel, TALK_ECHO | TALK_REPLY, &own, sizeof(own));
}

/* One frame that comes while a request is worked on. 1: there is none. */
static int look_once(struct talk_server *s, bool answers, uint64_t wait_ns)
{
    uint16_t type = 0;
    size_t len = 0;
    int err = channel_recv(s->channel, &type, s->frame, sizeof(s->frame), &len, wait_ns);

    if (err == -EAGAIN || err == -ETIMEDOUT)
        return 1;
    if (!err && type == TALK_ECHO && answers)
        err = echo(s, s->frame, len);
    if (err)
        return talk_fail(s, -ECONNRESET, "%s", channel_error(s->channel));
    if (type == TALK_ASIDE && s->aside && answers)
        s->aside(s, s->frame, len);
    s->given_up |= type == TALK_GIVE_UP;
    if (type == TALK_ECHO || type == TALK_GIVE_UP || type == TALK_ASIDE)
        return 0;
    return talk_fail(s, -EPROTO, "a request came before the last one was answered");
}

static int look_on(struct talk_server *s, bool answers, uint64_t wait_ns)
{
    int err = 0;

    while (!s->given_up && (!err || (err == 1 && wait_ns)))
        err = look_once(s, answers, wait_ns);
    if (s->given_up)
        return talk_fail(s, -ECANCELED, "rank 0 has given up");
    return err < 0 ? err : 0;
}

int talk_look(struct talk_server *s)
{
    return look_on(s, true, 0);
}

int talk_send_aside(struct channel *c, bool reply, const void *data, size_t len)
{
    return channel_send(c, reply ? TALK_ASIDE | TALK_REPLY : TALK_ASIDE, data, len);
}

int talk_be_absent(struct talk_server *s)
{
    return look_on(s, false, ABSENT_NS);
}

void *talk_body(struct talk_server *s, size_t len)
{
    s->out.len = sizeof(struct talk_head);
    s->body = talk_add(&s->out, NULL, len) ? NULL : s->out.bytes + sizeof(struct talk_head);
    return s->body;
}

static int do_request(struct talk_server *s, uint16_t type)
{
    const struct talk_request *r = type < s->n_requests ? &s->requests[type] : NULL;
    int err;

    if (!r || !r->answer || s->state < r->from || s->state > r->to ||
        (r->size != TALK_ANY && r->size != s->in.len))
        return -EPROTO;
    if (!talk_body(s, r->reply == TALK_ANY ? 0 : r->reply))
        return -EMSGSIZE;
    err = s->before ? s->before(s, r) : 0;
    if (!err)
        err = r->answer(s);
    if (!err && r->then != TALK_STAYS)
        s->state = r->then;
    if (err && s->failed)
        s->failed(s);
    return err;
}

static int answer(struct talk_server *s, uint16_t type)
{
    struct talk_head head = {0};

    s->given_up = false;
    s->error[0] = 0;
    s->asked_ns = clock_now_ns();
    head.err = do_request(s, type);
    if (!head.err) {
        memcpy(s->out.bytes, &head, sizeof(head));
        return send_all(s->channel, type | TALK_REPLY, s->out.bytes, s->out.len);
    }
    char reply[sizeof(head) + sizeof(s->error)];
    memcpy(reply, &head, sizeof(head));
    int n = snprintf(reply + sizeof(head), sizeof(s->error), "%s",
                     s->error[0]           ? s->error
                     : head.err == -EPROTO ? "a request that cannot be, or not now"
                                           : strerror(-head.err));
    return send_all(s->channel, type | TALK_REPLY, reply, sizeof(head) + (size_t)n);
}

static int take(struct talk_server *s, uint16_t type, size_t len)
{
    if (type == TALK_ECHO)
        return echo(s, s->frame, len);
    if (type == TALK_GIVE_UP || type == TALK_ASIDE) /* of what has been answered */
        return 0;
    int err = talk_add(&s->in, s->frame, len);
    if (err || type & TALK_MORE)
        return err;
    err = answer(s, type);
    s->in.len = 0;
    return err;
}

/* The leader may ask nothing as long as it likes: its own measuring takes time. */
int talk_serve(struct talk_server *s)
{
    uint16_t type = 0;
    size_t len = 0;
    int err = beat_start(&s->beat, &s->channel, 1, BEAT_LEADING_NS);

    if (err)
        return err;
    err = talk_add(&s->in, NULL, 1); /* so that there are bytes where none came */
    for (s->in.len = 0; !err;) {
        err = channel_recv(s->channel, &type, s->frame, sizeof(s->frame), &len, IDLE_NS);
        if (!err && type == TALK_BYE)
            break;
        if (!err)
            err = take(s, type, len);
        else if (err == -ETIMEDOUT)
            err = channel_alive(s->channel);
    }
    if (err && s->lost)
        s->lost(s, err);
    beat_end(s->beat);
    s->beat = NULL;
    talk_free(&s->in);
    talk_free(&s->out);
    return err;
}

/* ---- The end that leads ---- */

int talk_open(struct talk *t, struct channel *const *channels, unsigned n,
              const struct talk_request *requests, unsigned n_requests)
{
    t->requests = requests;
    t->n_requests = n_requests;
    t->peers = xcalloc(n, sizeof(*t->peers));
    t->n = n;
    for (unsigned i = 0; i < n; i++)
        t->peers[i].channel = channels[i];
    return beat_start(&t->beat, channels, n, BEAT_LED_NS);
}

void talk_close(struct talk *t)
{
    for (unsigned i = 0; i < t->n; i++) {
        struct talk_peer *p = &t->peers[i];
        if (p->channel && !p->gone)
            send_all(p->channel, TALK_BYE, NULL, 0);
        talk_free(&p->reply);
    }
    beat_end(t->beat);
    free(t->peers);
    t->peers = NULL;
    t->n = 0;
}

void talk_break(struct talk *t, const char *text)
{
    t->broken = true;
    if (!t->loss[0])
        snprintf(t->loss, sizeof(t->loss), "%s", text);
}

void talk_lose(struct talk *t, unsigned peer, int err, const char *text)
{
    struct talk_peer *p = &t->peers[peer];

    p->gone = true;
    p->cut = err == -EHOSTUNREACH || err == -ETIMEDOUT;
    p->pending = 0;
    p->err = err;
    snprintf(p->error, sizeof(p->error), "%s", text);
    talk_break(t, text);
}

static int send_to(struct talk *t, unsigned peer, uint16_t type, const void *data, size_t len)
{
    struct talk_peer *p = &t->peers[peer];

    if (p->gone)
        return p->err = -ECONNRESET;
    int err = send_all(p->channel, type, data, len);
    if (err)
        talk_lose(t, peer, err, channel_error(p->channel));
    return err;
}

int talk_post(struct talk *t, unsigned peer, uint16_t request, const void *data, size_t len)
{
    struct talk_peer *p = &t->peers[peer];
    int err = send_to(t, peer, request, data, len);

    if (err)
        return err;
    p->pending = request;
    p->err = 0;
    p->reply.len = 0;
    p->silent = p->sure = false;
    p->still_ns = 0;
    p->heard_ns = t->posted_ns = t->echoed_ns = t->listened_ns = clock_now_ns();
    return 0;
}

/* The whole reply has come. */
static void take_reply(struct talk *t, struct talk_peer *p)
{
    uint32_t want = t->requests[p->pending].reply;
    size_t n = p->reply.len - sizeof(struct talk_head);
    struct talk_head head;

    memcpy(&head, p->reply.bytes, sizeof(head));
    p->pending = 0;
    p->err = head.err;
    if (head.err < 0)
        snprintf(p->error, sizeof(p->error), "%.*s", (int)(n < sizeof(p->error) ? n : 0),
                 (const char *)p->reply.bytes + sizeof(head));
    if (head.err < 0 || (!head.err && (want == TALK_ANY || n == want)))
        return;
    p->err = -EPROTO;
    snprintf(p->error, sizeof(p->error), "it answered what cannot be");
}

/* What a peer may say at any time. */
static bool is_word(struct talk *t, unsigned peer, uint16_t type, size_t len)
{
    struct talk_peer *p = &t->peers[peer];
    struct talk_echo e;

    if (type == (TALK_ASIDE | TALK_REPLY) && t->aside) {
        t->aside(t->arg, peer, t->frame, len);
        return true;
    }
    if (type != (TALK_ECHO | TALK_REPLY) || len != sizeof(e))
        return false;
    memcpy(&e, t->frame, len);
    p->echoed = e.number;
    p->still_ns = e.still_ms * 1000000ull;
    return true;
}

static int take_frame(struct talk *t, unsigned peer, uint16_t type, size_t len)
{
    struct talk_peer *p = &t->peers[peer];

    p->heard_ns = clock_now_ns();
    if (is_word(t, peer, type, len))
        return 0;
    if (!p->pending || (type & ~TALK_MORE) != (p->pending | TALK_REPLY))
        return -EPROTO;
    int err = talk_add(&p->reply, t->frame, len);
    if (err || type & TALK_MORE)
        return err;
    if (p->reply.len < sizeof(struct talk_head))
        return -EPROTO;
    take_reply(t, p);
    return 0;
}

static void lose_liar(struct talk *t, unsigned peer, int err)
{
    char text[TALK_ERROR_BYTES];

    snprintf(text, sizeof(text), "%s answered something else than was asked",
             channel_peer(t->peers[peer].channel));
    talk_lose(t, peer, err, text);
}

/* All frames that are there, after waiting so long for the first. */
static void take_from(struct talk *t, unsigned peer, uint64_t wait_ns)
{
    struct talk_peer *p = &t->peers[peer];
    int err = 0;

    while (!err && p->pending) {
        uint16_t type = 0;
        size_t len = 0;
        err = channel_recv(p->channel, &type, t->frame, sizeof(t->frame), &len, wait_ns);
        if (err == -EAGAIN || err == -ETIMEDOUT)
            return;
        if (err)
            talk_lose(t, peer, err, channel_error(p->channel));
        else
            err = take_frame(t, peer, type, len);
        if (err && !p->gone)
            lose_liar(t, peer, err);
        wait_ns = 0;
    }
}

bool talk_receive(struct talk *t, uint64_t wait_ns)
{
    bool failed = false;

    for (unsigned i = 0; i < t->n; i++) {
        struct talk_peer *p = &t->peers[i];
        if (p->pending) {
            take_from(t, i, wait_ns);
            wait_ns = p->pending ? 0 : wait_ns; /* once for all of them */
        }
    }
    for (unsigned i = 0; i < t->n; i++)
        failed |= t->peers[i].err != 0;
    return failed;
}

/* An echo may come after the reply to what was asked. No other frame of a peer that was asked
 * nothing is of this protocol. */
static bool watch_one(struct talk *t, unsigned peer)
{
    struct talk_peer *p = &t->peers[peer];
    uint16_t type = 0;
    size_t len = 0;
    int err = !p->channel || p->gone || p->pending
                  ? -EAGAIN
                  : channel_recv(p->channel, &type, t->frame, sizeof(t->frame), &len, 0);

    if (err == -EAGAIN || (!err && is_word(t, peer, type, len)))
        return false;
    if (err)
        talk_lose(t, peer, err, channel_error(p->channel));
    else
        lose_liar(t, peer, -EPROTO);
    p->err = 0; /* it is not this request's */
    return true;
}

unsigned talk_watch(struct talk *t)
{
    uint64_t now_ns = clock_now_ns();
    unsigned lost = 0;

    if (!t->beat || now_ns - t->watched_ns < WATCH_EVERY_NS)
        return 0;
    t->watched_ns = now_ns;
    for (unsigned i = 0; i < t->n; i++)
        if (watch_one(t, i) && !lost)
            lost = i;
    return lost;
}

static enum talk_looks looks(const struct talk *t, const struct talk_peer *p)
{
    return p->pending ? t->requests[p->pending].looks : TALK_NEVER;
}

static bool awaits_any(const struct talk *t)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->peers[i].pending)
            return true;
    return false;
}

static void ask_echo(struct talk *t, enum talk_looks least)
{
    t->echo++;
    for (unsigned i = 0; i < t->n; i++)
        if (t->peers[i].pending && looks(t, &t->peers[i]) >= least)
            send_to(t, i, TALK_ECHO, &t->echo, sizeof(t->echo));
}

/* A peer that has not answered for long may have told what is not true any more. */
uint64_t talk_still_ns(const struct talk *t)
{
    uint64_t now_ns = clock_now_ns(), least_ns = UINT64_MAX;

    for (unsigned i = 0; i < t->n; i++) {
        const struct talk_peer *p = &t->peers[i];
        uint64_t still_ns = p->pending ? now_ns - p->heard_ns : UINT64_MAX;
        if (p->pending && p->still_ns > still_ns)
            still_ns = p->still_ns;
        if (still_ns < least_ns)
            least_ns = still_ns;
    }
    return least_ns;
}

/* While this end did not look, it could not hear the others. */
static void forgive(struct talk *t, uint64_t now_ns)
{
    uint64_t gap_ns = now_ns - t->listened_ns;

    t->listened_ns = now_ns;
    for (unsigned i = 0; i < t->n && gap_ns > ECHO_EVERY_NS; i++) {
        uint64_t *heard_ns = &t->peers[i].heard_ns;
        *heard_ns = now_ns - *heard_ns > gap_ns ? *heard_ns + gap_ns : now_ns;
    }
}

bool talk_listen(struct talk *t)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t every_ns = talk_still_ns(t) < DOUBT_NS ? ECHO_EVERY_NS : DOUBT_EVERY_NS;
    bool silent = false;

    forgive(t, now_ns);
    if (now_ns - t->echoed_ns >= every_ns) {
        ask_echo(t, TALK_SOMETIMES);
        t->echoed_ns = now_ns;
    }
    for (unsigned i = 0; i < t->n; i++)
        silent |=
            looks(t, &t->peers[i]) == TALK_ALWAYS && now_ns - t->peers[i].heard_ns >= TALK_STILL_NS;
    return silent;
}

/* Has one of them been quiet for too long, or does nothing move in any? */
static bool is_over(struct talk *t, const struct talk_patience *patience, uint64_t begin_ns)
{
    uint64_t now_ns = clock_now_ns();
    bool moving = !patience->still_ns;

    forgive(t, now_ns); /* this end may have stood still since it listened */
    for (unsigned i = 0; i < t->n; i++) {
        const struct talk_peer *p = &t->peers[i];
        uint64_t since_ns = p->heard_ns > begin_ns ? p->heard_ns : begin_ns;
        if (p->pending && now_ns >= since_ns + patience->quiet_ns)
            return true;
        moving |= p->pending && looks(t, p) != TALK_ALWAYS;
    }
    return !moving && talk_still_ns(t) >= patience->still_ns;
}

bool talk_settle(struct talk *t, const struct talk_patience *patience)
{
    uint64_t begin_ns = clock_now_ns();
    bool failed = talk_receive(t, 0);

    while (!failed && awaits_any(t)) {
        talk_listen(t);
        failed = talk_receive(t, SLICE_NS) || (patience->heed && patience->heed(patience->arg)) ||
                 (awaits_any(t) && is_over(t, patience, begin_ns));
    }
    return !failed;
}

int talk_take(struct talk *t, unsigned peer, const struct talk_patience *patience, void *data,
              size_t size, size_t *len)
{
    struct talk_peer *p = &t->peers[peer];
    const char *name = channel_peer(p->channel);

    if (!talk_settle(t, patience) && p->pending) {
        snprintf(t->said, sizeof(t->said),
                 "%s has not answered for %.3g s: it hangs, or is cut off", name,
                 (double)(clock_now_ns() - t->posted_ns) / 1e9);
        talk_lose(t, peer, -ETIMEDOUT, t->said);
    }
    if (p->gone) /* whose loss names it */
        snprintf(t->said, sizeof(t->said), "%s", p->error);
    else
        snprintf(t->said, sizeof(t->said), "%.150s: %s", name, p->error);
    if (p->err)
        return p->err;
    size_t n = talk_reply_len(t, peer);
    if (n > size || (!len && n != size)) {
        snprintf(t->said, sizeof(t->said), "%s answered %zu bytes where %zu were expected", name, n,
                 size);
        return -EPROTO;
    }
    if (len)
        *len = n;
    if (n)
        memcpy(data, talk_reply(t, peer), n);
    return 0;
}

int talk_call(struct talk *t, unsigned peer, uint16_t request, const void *data, size_t len,
              void *reply, size_t size, uint64_t wait_ns)
{
    talk_post(t, peer, request, data, len); /* what fails is taken as a loss below */
    return talk_take(t, peer, &(struct talk_patience){.quiet_ns = wait_ns}, reply, size, NULL);
}

typedef bool peer_is_fn(const struct talk *t, const struct talk_peer *p);

static bool owes_echo(const struct talk *t, const struct talk_peer *p)
{
    return p->pending && p->echoed != t->echo;
}

static bool owes_reply(const struct talk *t, const struct talk_peer *p)
{
    (void)t;
    return p->pending && !p->silent;
}

static bool owes_anything(const struct talk *t, const struct talk_peer *p)
{
    (void)t;
    return p->pending != 0;
}

static void wait_while(struct talk *t, peer_is_fn *is, uint64_t wait_ns)
{
    uint64_t begin_ns = clock_now_ns();
    bool any;

    talk_receive(t, 0);
    do {
        any = false;
        for (unsigned i = 0; i < t->n; i++)
            any |= is(t, &t->peers[i]);
        if (any)
            talk_receive(t, SLICE_NS);
    } while (any && clock_now_ns() - begin_ns < wait_ns);
}

/* Before all are asked: who has been silent for so long that it is sure to be the one, if it is
 * silent then, too. Nothing is known of one that does not look at its channel. */
static void look_back(struct talk *t)
{
    uint64_t now_ns = clock_now_ns();

    for (unsigned i = 0; i < t->n; i++) {
        struct talk_peer *p = &t->peers[i];
        bool looked = looks(t, p) != TALK_NEVER && now_ns - p->heard_ns >= SURE_NS;
        p->sure = !p->gone && p->channel && (looked || channel_quiet_ns(p->channel) >= QUIET_NS);
    }
}

static void lose_late(struct talk *t)
{
    for (int sure = 1; sure >= 0; sure--)
        for (unsigned i = 0; i < t->n; i++) {
            const struct talk_peer *p = &t->peers[i];
            char text[TALK_ERROR_BYTES];
            if (!p->pending || p->sure != sure)
                continue;
            snprintf(text, sizeof(text), "%s %s", channel_peer(p->channel),
                     p->silent ? "did not answer: it hangs or was cut off"
                               : "answers, but does not give up");
            talk_lose(t, i, -ETIMEDOUT, text);
        }
}

void talk_hurry(struct talk *t, uint64_t wait_ns)
{
    look_back(t);
    wait_while(t, owes_anything, wait_ns);
    for (unsigned i = 0; i < t->n; i++)
        t->peers[i].silent |= t->peers[i].pending != 0;
    lose_late(t);
}

void talk_give_up(struct talk *t, uint64_t deaf_ns)
{
    uint64_t gone_ns = clock_now_ns() - t->posted_ns;

    look_back(t);
    ask_echo(t, TALK_NEVER);
    wait_while(t, owes_echo, deaf_ns > gone_ns + ANSWER_NS ? deaf_ns - gone_ns : ANSWER_NS);
    for (unsigned i = 0; i < t->n; i++)
        t->peers[i].silent = t->peers[i].sure && owes_echo(t, &t->peers[i]);
    for (unsigned i = 0; i < t->n; i++)
        if (t->peers[i].pending)
            send_to(t, i, TALK_GIVE_UP, NULL, 0);
    wait_while(t, owes_reply, LEAVE_NS);
    wait_while(t, owes_anything, LATE_NS);
    for (unsigned i = 0; i < t->n; i++)
        t->peers[i].silent |= owes_echo(t, &t->peers[i]);
    lose_late(t);
}

int talk_weight(int err)
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
