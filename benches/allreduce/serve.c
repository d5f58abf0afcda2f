/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that are led: they do what rank 0 asks, request by request, until it says goodbye. See
 * session.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "benches/allreduce/member.h"
#include "benches/allreduce/session.h"
#include "core/clock.h"
#include "core/group/channel.h"
#include "core/group/meet.h"
#include "core/group/notice.h"
#include "core/hw/nic.h"
#include "core/program.h"

/* Orders as they come from rank 0, which proved who it is, not that what it says is sound. */

#define END(text) ((text)[sizeof(text) - 1] = 0)

/* What the order says is within bounds, texts end. */
static bool order_sound(struct collective_order *order, unsigned world_size)
{
    struct collective_point *p = &order->point;

    END(p->backend);
    END(p->transport);
    END(p->device);
    END(p->algorithm);
    END(p->tcp.congestion);
    return p->op < COLLECTIVE_OPS && p->type < COLLECTIVE_TYPES && p->sum <= COLLECTIVE_MAX &&
           p->inject <= COLLECTIVE_ABSENT && p->count &&
           p->count <= COLLECTIVE_BYTES_MAX / collective_type_bytes(p->type) && order->n &&
           order->n <= world_size && order->me < order->n && order->n_calls &&
           order->n_calls <= COLLECTIVE_CALLS_MAX && order->cpu_rank < order->cpu_ranks &&
           order->cpu_ranks <= WORLD_RANKS_MAX;
}

static bool members_sound(const struct collective_order *order, const uint32_t *members,
                          unsigned rank, unsigned world_size)
{
    bool seen[WORLD_RANKS_MAX] = {false}, sound = members[0] == 0 && members[order->me] == rank;

    for (unsigned i = 0; sound && i < order->n; i++) {
        sound = members[i] < world_size && !seen[members[i]];
        if (sound)
            seen[members[i]] = true;
    }
    return sound;
}

bool calls_sound(const struct collective_point *p, const struct collective_call *calls, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!calls[i].count || calls[i].count > p->count ||
            calls[i].first > p->count - calls[i].count)
            return false;
    return true;
}

uint32_t session_protocol(void)
{
    static const uint32_t layout[] = {
        5, /* of the requests: raise it when their order or meaning changes */
        sizeof(struct world_member),
        sizeof(struct collective_echo),
        sizeof(struct collective_hello),
        sizeof(struct collective_order),
        sizeof(struct collective_call),
        sizeof(struct collective_times),
        sizeof(struct collective_account),
        sizeof(struct collective_claims),
        sizeof(struct collective_proof),
        sizeof(struct session_run),
        sizeof(struct collective_reply),
    };

    return meet_protocol(layout, sizeof(layout) / sizeof(*layout));
}

/* --- lists of addresses, packed --- */

struct head {
    uint32_t member, len;
};

static int make_room(struct address_list *l, size_t more)
{
    size_t room = l->room ? l->room : 1024;

    if (l->len + more <= l->room)
        return 0;
    while (room < l->len + more)
        room *= 2;
    void *bytes = realloc(l->bytes, room);
    if (!bytes)
        return -ENOMEM;
    l->bytes = bytes;
    l->room = room;
    return 0;
}

int addresses_add(struct address_list *l, unsigned member, const void *address, size_t len)
{
    struct head h = {member, (uint32_t)len};

    if (len > COLLECTIVE_ADDRESS_MAX)
        return -EMSGSIZE;
    int err = make_room(l, sizeof(h) + len);
    if (err)
        return err;
    memcpy(l->bytes + l->len, &h, sizeof(h));
    if (len)
        memcpy(l->bytes + l->len + sizeof(h), address, len);
    l->len += sizeof(h) + len;
    l->n++;
    return 0;
}

/* The size of the address that begins here, head and all; 0: none does. */
static size_t address_size(const uint8_t *bytes, size_t left, struct head *h)
{
    if (left < sizeof(*h))
        return 0;
    memcpy(h, bytes, sizeof(*h));
    if (h->len > COLLECTIVE_ADDRESS_MAX || h->len > left - sizeof(*h))
        return 0;
    return sizeof(*h) + h->len;
}

int addresses_take(struct address_list *l, const void *frame, size_t len, unsigned members)
{
    const uint8_t *bytes = frame;
    unsigned n = 0;
    struct head h;

    for (size_t at = 0, size; at < len; at += size, n++) {
        size = address_size(bytes + at, len - at, &h);
        if (!size || h.member >= members || l->n + n >= members)
            return -EPROTO;
    }
    int err = make_room(l, len);
    if (err || !len)
        return err;
    memcpy(l->bytes + l->len, frame, len);
    l->len += len;
    l->n += n;
    return 0;
}

bool addresses_next(const struct address_list *l, size_t *at, unsigned *member,
                    const uint8_t **address, size_t *len)
{
    struct head h;
    size_t size = *at < l->len ? address_size(l->bytes + *at, l->len - *at, &h) : 0;

    if (!size)
        return false;
    *member = h.member;
    *address = l->bytes + *at + sizeof(h);
    *len = h.len;
    *at += size;
    return true;
}

int addresses_send(struct channel *c, uint16_t type, const struct address_list *l)
{
    const uint8_t *address;
    size_t begin = 0, at = 0, len;
    unsigned member;
    int err = 0;

    while (!err && begin < l->len) {
        size_t end = begin;
        while (addresses_next(l, &at, &member, &address, &len) && at - begin <= CHANNEL_FRAME_MAX)
            end = at;
        err = channel_send(c, type, l->bytes + begin, end - begin);
        begin = at = end;
    }
    return err;
}

void addresses_free(struct address_list *l)
{
    free(l->bytes);
    *l = (struct address_list){0};
}

/* --- how a rank ends where rank 0 is gone and nobody else may be able to say it --- */

static void say(const struct member *m, const char *why)
{
    char name[WORLD_NAME_MAX + 32];

    fprintf(stderr, "%s: %s: this process ends\n",
            world_name(m->world, world_rank(m->world), name, sizeof(name)), why);
}

static void blame(const struct member *m, unsigned rank, int err, const char *why)
{
    struct notice lost = heartbeat_notice(m->heartbeat, rank, err);
    char name[WORLD_NAME_MAX + 32];

    notice_send(&lost, "%s: %s: this process ends",
                world_name(m->world, world_rank(m->world), name, sizeof(name)), why);
}

/* -errno, and said: rank 0 is lost, by its signs of life. */
static int ending_heed(const struct member *m)
{
    char text[COLLECTIVE_ERROR_BYTES];
    unsigned leader = 0;
    int err = heartbeat_lost(m->heartbeat, &leader, 1, &leader, text, sizeof(text));

    if (err && heartbeat_stood_still(m->heartbeat))
        say(m, text);
    else if (err)
        blame(m, leader, err, text);
    return err;
}

/* Rank 0 took no answer from this channel: said. Returns -ECONNRESET. Where rank 0 has ended, what
 * it said is the reason. */
static int ending_untaken(const struct member *m, struct channel *channel)
{
    if (!ending_heed(m))
        say(m, channel_error(channel));
    return -ECONNRESET;
}

/* The channel to rank 0 is cut: said, where it is a socket's; of processes of one machine rank 0
 * says what there is to say. Whose own link is down is cut off itself. */
static void ending_cut(const struct member *m, struct channel *channel)
{
    const struct sockaddr_storage *own = &world_member(m->world, world_rank(m->world))->address;
    char why[160] = "", text[192];

    if (strcmp(world_group(m->world), "sock") != 0)
        return;
    bool cut = own->ss_family != AF_UNSPEC && nic_is_cut((const void *)own, why, sizeof(why));
    snprintf(text, sizeof(text), "it is cut off: %s", why);
    say(m, cut ? text : channel_error(channel));
}

/* member.await, while the rank is in a library: 0, or the process ends there and then with
 * EXIT_INCOMPLETE. Nobody can be told: who led is lost, or should have noticed. */
static int ending_await(struct member *m)
{
    uint64_t still_ns = member_still_ns(m);
    bool lost = ending_heed(m) != 0;
    char why[128];

    if (!lost && still_ns < __atomic_load_n(&m->limit_ns, __ATOMIC_RELAXED) + COLLECTIVE_ENDS_NS)
        return 0;
    snprintf(why, sizeof(why), "'%s' has not ended after %.0f s", m->point.backend,
             (double)still_ns / 1e9);
    if (!lost)
        say(m, why);
    fflush(stderr);
    _exit(EXIT_INCOMPLETE);
}

#define SLICE_NS     1000000000u
#define ABSENT_NS    50000000u
#define IDLE_MOST_NS 10000000000u /* that rank 0 may ask to watch the idle machine */

/* How far a point has come: requests out of turn are refused, since each builds on the one
 * before. */
enum state { NOTHING, OPENED, JOINED };

struct server {
    struct channel *channel;
    struct member m;
    enum state state;
    bool given_up;     /* rank 0 has, of the request that is being worked on */
    uint64_t asked_ns; /* rank 0 has last asked something */
    struct collective_order order;
    struct address_list addresses; /* that have come for this member */
    int addresses_err;
    char in[CHANNEL_FRAME_MAX];
    struct {
        struct collective_reply head;
        union collective_body body;
    } out;
    size_t out_len; /* of the body */
};
_Static_assert(sizeof(struct collective_reply) % _Alignof(union collective_body) == 0,
               "the body begins where the head ends");

static int echo(struct server *s, const void *what, size_t len)
{
    uint64_t now_ns = clock_now_ns();
    struct collective_echo own = {.still_ms = (uint32_t)((now_ns - s->m.moved_ns) / 1000000)};

    s->asked_ns = now_ns;
    memcpy(&own.number, what, len < sizeof(own.number) ? len : sizeof(own.number));
    return channel_send(s->channel, COLLECTIVE_ASK_ECHO | COLLECTIVE_REPLY, &own, sizeof(own));
}

/* While rank 0 asks, it is rank 0 that judges: it hears of all. */
static uint64_t others_still_ns(struct member *m)
{
    return clock_now_ns() - ((struct server *)m->arg)->asked_ns;
}

static int cut_off(struct server *s)
{
    return collective_fail(&s->m.c, -ECONNRESET, "%s", channel_error(s->channel));
}

/* One frame that comes while a request is worked on. 1: there is none. */
static int look_once(struct server *s, bool answers, uint64_t wait_ns)
{
    char frame[64];
    uint16_t type = 0;
    size_t len = 0;
    int err = channel_recv(s->channel, &type, frame, sizeof(frame), &len, wait_ns);

    if (err == -EAGAIN || err == -ETIMEDOUT)
        return 1;
    if (err && err != -EMSGSIZE)
        return cut_off(s);
    if (!err && type == COLLECTIVE_ASK_ECHO)
        return answers && echo(s, frame, len) ? cut_off(s) : 0;
    if (!err && type == COLLECTIVE_ASK_GIVE_UP) {
        s->given_up = true;
        return 1;
    }
    return collective_fail(&s->m.c, -EPROTO, "a request came before the last one was answered");
}

static int look(struct member *m)
{
    struct server *s = m->arg;
    int err = 0;

    while (!err && !s->given_up)
        err = look_once(s, true, 0);
    if (s->given_up)
        return collective_fail(&m->c, -ECANCELED, "rank 0 has given up");
    return err < 0 ? err : 0;
}

/* The fault of a rank that never runs and answers nothing, until rank 0 gives up. */
static int be_absent(struct server *s)
{
    int err = 0;

    while (err >= 0 && !s->given_up)
        err = look_once(s, false, ABSENT_NS);
    return err < 0 ? err : collective_fail(&s->m.c, -ECANCELED, "rank 0 has given up");
}

void hello_watch(struct collective_hello *hello)
{
    struct timespec t = {.tv_sec = (time_t)(hello->idle_ns / 1000000000u),
                         .tv_nsec = (long)(hello->idle_ns % 1000000000u)};
    struct cpu_reading before, after;
    bool known = !cpu_read(&before);

    while (nanosleep(&t, &t) && errno == EINTR) {
    }
    if (!known || cpu_read(&after))
        return;
    hello->idle_cores = cpu_busy(&before, &after);
    hello->idle_softirq = cpu_softirq(&before, &after);
}

static int hello(struct server *s, size_t len)
{
    struct collective_hello *own = &s->out.body.hello;

    if (len != sizeof(*own))
        return -EPROTO;
    memcpy(own, s->in, len);
    hello_fill(own, s->m.topo);
    if (own->idle_ns && own->idle_ns <= IDLE_MOST_NS)
        hello_watch(own);
    if (!s->m.heartbeat)
        member_stand_beside(&s->m, own);
    s->out_len = sizeof(*own);
    return 0;
}

/* The calls follow in frames of their own. */
static int take_calls(struct server *s, struct collective_call *calls, unsigned n)
{
    int err = 0;

    for (unsigned have = 0; have < n && !err;) {
        uint16_t type = 0;
        size_t len = 0, left = (n - have) * sizeof(*calls);
        err = channel_recv(s->channel, &type, s->in, sizeof(s->in), &len, CHANNEL_WAIT_NS);
        if (!err && (type != COLLECTIVE_ASK_CALLS || !len || len > left || len % sizeof(*calls)))
            err = -EPROTO;
        if (!err)
            memcpy(calls + have, s->in, len);
        have += (unsigned)(len / sizeof(*calls));
    }
    return err;
}

static int open_sound(struct server *s, const uint32_t *members)
{
    struct collective_call *calls = malloc(s->order.n_calls * sizeof(*calls));
    struct address_list addresses = {0};
    int err = calls ? take_calls(s, calls, s->order.n_calls) : -ENOMEM;

    if (!err && !calls_sound(&s->order.point, calls, s->order.n_calls))
        err = -EPROTO;
    if (!err)
        err = member_do(&s->m, &(struct member_job){.what = COLLECTIVE_ASK_OPEN,
                                                    .order = &s->order,
                                                    .members = members,
                                                    .calls = calls});
    if (!err)
        err = member_addresses(&s->m, &addresses);
    if (!err)
        err = addresses_send(s->channel, COLLECTIVE_ASK_ADDRESSES | COLLECTIVE_REPLY, &addresses);
    s->out.body.n = addresses.n;
    s->out_len = sizeof(s->out.body.n);
    addresses_free(&addresses);
    free(calls);
    return err;
}

static int open_point(struct server *s, size_t len)
{
    uint32_t members[WORLD_RANKS_MAX];
    unsigned size = world_size(s->m.world);

    if (len < sizeof(s->order) || s->m.open)
        return -EPROTO;
    memcpy(&s->order, s->in, sizeof(s->order));
    len -= sizeof(s->order);
    if (!order_sound(&s->order, size) || len != s->order.n * sizeof(*members))
        return -EPROTO;
    memcpy(members, s->in + sizeof(s->order), len);
    if (!members_sound(&s->order, members, world_rank(s->m.world), size))
        return -EPROTO;
    addresses_free(&s->addresses);
    s->addresses_err = 0;
    return open_sound(s, members);
}

static int join(struct server *s, size_t len)
{
    uint32_t n = 0;

    if (len != sizeof(n))
        return -EPROTO;
    memcpy(&n, s->in, len);
    if (s->addresses_err || n != s->addresses.n)
        return s->addresses_err ? s->addresses_err : -EPROTO;
    return member_do(&s->m,
                     &(struct member_job){.what = COLLECTIVE_ASK_JOIN, .addresses = &s->addresses});
}

static int run(struct server *s, size_t len)
{
    struct member_job job = {.what = COLLECTIVE_ASK_RUN};

    if (len != sizeof(job.run))
        return -EPROTO;
    memcpy(&job.run, s->in, len);
    if (!job.run.operations)
        return -EPROTO;
    s->out_len = sizeof(s->out.body.times);
    int err = member_is_absent(&s->m) ? be_absent(s) : member_do(&s->m, &job);
    s->out.body.times = job.times;
    return err;
}

static int overlap(struct server *s, size_t len)
{
    struct member_job job = {.what = COLLECTIVE_ASK_OVERLAP};

    if (len != sizeof(job.overlap_ns))
        return -EPROTO;
    memcpy(&job.overlap_ns, s->in, len);
    s->out_len = sizeof(job.ns);
    int err = member_do(&s->m, &job);
    s->out.body.ns = job.ns;
    return err;
}

static int mark(struct server *s, size_t len)
{
    return len ? -EPROTO : member_mark(&s->m);
}

static int tell(struct server *s, size_t len)
{
    member_tell(&s->m, &s->out.body.account);
    s->out_len = sizeof(s->out.body.account);
    return len ? -EPROTO : 0;
}

static int check(struct server *s, size_t len)
{
    return len ? -EPROTO : member_do(&s->m, &(struct member_job){.what = COLLECTIVE_ASK_CHECK});
}

static int prove(struct server *s, size_t len)
{
    struct collective_claims claims;

    if (len != sizeof(claims))
        return -EPROTO;
    memcpy(&claims, s->in, len);
    if (!claims_sound(&claims))
        return -EPROTO;
    member_prove(&s->m, &claims, &s->out.body.proof);
    s->out_len = sizeof(s->out.body.proof);
    return 0;
}

static int links(struct server *s, size_t len)
{
    return len ? -EPROTO : member_links(&s->m, COLLECTIVE_UNHEARD_NS);
}

static int close_point(struct server *s, size_t len)
{
    member_do(&s->m, &(struct member_job){.what = COLLECTIVE_ASK_CLOSE});
    return len ? -EPROTO : 0;
}

static int answer(struct server *s, uint16_t type, size_t len);

static const struct {
    int (*answer)(struct server *s, size_t len);
    enum state from, to, then; /* taken in states from..to, which it leads to `then` */
} requests[COLLECTIVE_REQUESTS] = {
    [COLLECTIVE_ASK_HELLO] = {hello, NOTHING, NOTHING, NOTHING},
    [COLLECTIVE_ASK_OPEN] = {open_point, NOTHING, NOTHING, OPENED},
    [COLLECTIVE_ASK_JOIN] = {join, OPENED, OPENED, JOINED},
    [COLLECTIVE_ASK_RUN] = {run, JOINED, JOINED, JOINED},
    [COLLECTIVE_ASK_OVERLAP] = {overlap, JOINED, JOINED, JOINED},
    [COLLECTIVE_ASK_MARK] = {mark, JOINED, JOINED, JOINED},
    [COLLECTIVE_ASK_TELL] = {tell, JOINED, JOINED, JOINED},
    [COLLECTIVE_ASK_CHECK] = {check, JOINED, JOINED, JOINED},
    [COLLECTIVE_ASK_PROVE] = {prove, JOINED, JOINED, JOINED},
    [COLLECTIVE_ASK_LINKS] = {links, JOINED, JOINED, JOINED},
    [COLLECTIVE_ASK_CLOSE] = {close_point, NOTHING, JOINED, NOTHING},
};

static int do_request(struct server *s, uint16_t type, size_t len)
{
    if (type >= COLLECTIVE_REQUESTS || !requests[type].answer || s->state < requests[type].from ||
        s->state > requests[type].to)
        return -EPROTO;
    int err = requests[type].answer(s, len);
    if (!err)
        s->state = requests[type].then;
    return err;
}

static int answer(struct server *s, uint16_t type, size_t len)
{
    memset(&s->out, 0, sizeof(s->out));
    s->out_len = 0;
    s->given_up = false;
    s->m.c.error[0] = 0;
    s->asked_ns = clock_now_ns();
    int err = do_request(s, type, len);
    if (err)
        snprintf(s->out.head.error, sizeof(s->out.head.error), "%s",
                 s->m.c.error[0]  ? s->m.c.error
                 : err == -EPROTO ? "a request that cannot be, or not now"
                                  : strerror(-err));
    s->out.head.err = err;
    return channel_send(s->channel, type | COLLECTIVE_REPLY, &s->out,
                        sizeof(s->out.head) + (err ? 0 : s->out_len));
}

static int take(struct server *s, uint16_t type, size_t len)
{
    switch (type) {
    case COLLECTIVE_ASK_ECHO:
        return echo(s, s->in, len);
    case COLLECTIVE_ASK_GIVE_UP: /* of what has been answered */
    case COLLECTIVE_ASK_CALLS:   /* of an order that was refused */
        return 0;
    case COLLECTIVE_ASK_ADDRESSES:
        if (!s->addresses_err)
            s->addresses_err = s->state == OPENED
                                   ? addresses_take(&s->addresses, s->in, len, s->order.n)
                                   : -EPROTO;
        return 0;
    default:
        return answer(s, type, len);
    }
}

/* Rank 0 may be silent as long as it likes: its own measuring takes time, and points are of
 * others. */
static int serve(struct server *s)
{
    for (;;) {
        uint16_t type = 0;
        size_t len = 0;
        int err = channel_recv(s->channel, &type, s->in, sizeof(s->in), &len, SLICE_NS);
        if (err == -ETIMEDOUT)
            err = ending_heed(&s->m) ? -ECONNRESET : channel_alive(s->channel);
        else if (!err && type == COLLECTIVE_ASK_BYE)
            return 0;
        else if (!err && (err = take(s, type, len)) == -ETIMEDOUT)
            err = ending_untaken(&s->m, s->channel);
        else if (err == -ECONNRESET || err == -EHOSTUNREACH)
            ending_cut(&s->m, s->channel);
        if (err)
            return err;
    }
}

int session_serve(struct world *w, void *arg)
{
    const struct session_service *service = arg;
    struct server *s = calloc(1, sizeof(*s));
    struct topo *topo = NULL;
    struct beat *beat = NULL;

    if (!s)
        return EXIT_INCOMPLETE;
    s->channel = world_channel(w, 0);
    int err = topo_open(&topo);
    s->m = (struct member){.world = w,
                           .topo = topo,
                           .find = service && service->find ? service->find : collective_find,
                           .device = service ? service->device : NULL,
                           .look = look,
                           .others_still_ns = others_still_ns,
                           .await = ending_await,
                           .arg = s};
    if (!err)
        err = beat_start(&beat, &s->channel, 1, BEAT_LEADING_NS);
    if (!err || err == -EOPNOTSUPP)
        err = serve(s);
    beat_end(beat);
    member_do(&s->m, &(struct member_job){.what = COLLECTIVE_ASK_CLOSE});
    member_stand_alone(&s->m);
    addresses_free(&s->addresses);
    topo_close(topo);
    free(s);
    return err ? EXIT_INCOMPLETE : 0;
}
