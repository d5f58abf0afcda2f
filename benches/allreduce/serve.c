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
        6, /* of the requests: raise it when their order or meaning changes */
        sizeof(struct world_member),
        sizeof(struct collective_hello),
        sizeof(struct collective_order),
        sizeof(struct collective_call),
        sizeof(struct collective_times),
        sizeof(struct collective_account),
        sizeof(struct collective_claims),
        sizeof(struct collective_proof),
        sizeof(struct session_run),
    };

    return meet_protocol(layout, sizeof(layout) / sizeof(*layout));
}

/* --- lists of addresses, packed --- */

struct head {
    uint32_t member, len;
};

int addresses_add(struct address_list *l, unsigned member, const void *address, size_t len)
{
    struct head h = {member, (uint32_t)len};

    if (len > COLLECTIVE_ADDRESS_MAX)
        return -EMSGSIZE;
    int err = talk_add(&l->packed, &h, sizeof(h));
    if (!err)
        err = talk_add(&l->packed, address, len);
    l->n += !err;
    return err;
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

int addresses_take(struct address_list *l, const void *packed, size_t len, unsigned members)
{
    const uint8_t *bytes = packed;
    unsigned n = 0;
    struct head h;

    for (size_t at = 0, size; at < len; at += size, n++) {
        size = address_size(bytes + at, len - at, &h);
        if (!size || h.member >= members || l->n + n >= members)
            return -EPROTO;
    }
    int err = talk_add(&l->packed, packed, len);
    l->n += err ? 0 : n;
    return err;
}

bool addresses_next(const struct address_list *l, size_t *at, unsigned *member,
                    const uint8_t **address, size_t *len)
{
    struct head h;
    size_t left = l->packed.len - *at, size = address_size(l->packed.bytes + *at, left, &h);

    if (!size)
        return false;
    *member = h.member;
    *address = l->packed.bytes + *at + sizeof(h);
    *len = h.len;
    *at += size;
    return true;
}

void addresses_free(struct address_list *l)
{
    talk_free(&l->packed);
    l->n = 0;
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

#define IDLE_MOST_NS 10000000000u /* that rank 0 may ask to watch the idle machine */

/* How far a point has come. */
enum state { NOTHING, OPENED, JOINED };

_Static_assert(sizeof(struct collective_order) % _Alignof(struct collective_call) == 0,
               "calls follow an order as they are");

struct server {
    struct talk_server talk;
    struct member m;
};

static struct server *of(struct talk_server *s)
{
    return s->arg;
}

/* While rank 0 asks, it is rank 0 that judges: it hears of all. */
static uint64_t others_still_ns(struct member *m)
{
    return clock_now_ns() - ((struct server *)m->arg)->talk.asked_ns;
}

static int look(struct member *m)
{
    struct talk_server *s = &((struct server *)m->arg)->talk;
    int err = talk_look(s);

    return err ? collective_fail(&m->c, err, "%s", s->error) : 0;
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

static int hello(struct talk_server *s, const void *data, size_t len)
{
    struct collective_hello *own = s->body;
    struct member *m = &of(s)->m;

    memcpy(own, data, len);
    hello_fill(own, m->topo);
    if (own->idle_ns && own->idle_ns <= IDLE_MOST_NS)
        hello_watch(own);
    if (!m->heartbeat)
        member_stand_beside(m, own);
    return 0;
}

static int open_point(struct talk_server *s, const void *data, size_t len)
{
    struct member *m = &of(s)->m;
    unsigned size = world_size(m->world);
    struct address_list addresses = {0};
    struct collective_order order;
    uint32_t members[WORLD_RANKS_MAX];

    if (len < sizeof(order) || m->open)
        return -EPROTO;
    memcpy(&order, data, sizeof(order));
    if (!order_sound(&order, size))
        return -EPROTO;
    const struct collective_call *calls = (const void *)((const struct collective_order *)data + 1);
    if (len != sizeof(order) + order.n_calls * sizeof(*calls) + order.n * sizeof(*members))
        return -EPROTO;
    memcpy(members, calls + order.n_calls, order.n * sizeof(*members));
    if (!members_sound(&order, members, world_rank(m->world), size) ||
        !calls_sound(&order.point, calls, order.n_calls))
        return -EPROTO;
    int err = member_do(
        m, &(struct member_job){
               .what = COLLECTIVE_ASK_OPEN, .order = &order, .members = members, .calls = calls});
    if (!err)
        err = member_addresses(m, &addresses);
    if (!err && !talk_body(s, addresses.packed.len))
        err = -ENOMEM;
    if (!err && addresses.packed.len)
        memcpy(s->body, addresses.packed.bytes, addresses.packed.len);
    addresses_free(&addresses);
    return err;
}

static int join(struct talk_server *s, const void *data, size_t len)
{
    struct address_list addresses = {0};
    int err = addresses_take(&addresses, data, len, of(s)->m.c.n);

    if (!err)
        err = member_do(&of(s)->m,
                        &(struct member_job){.what = COLLECTIVE_ASK_JOIN, .addresses = &addresses});
    addresses_free(&addresses);
    return err;
}

static int run(struct talk_server *s, const void *data, size_t len)
{
    struct member_job job = {.what = COLLECTIVE_ASK_RUN};
    struct member *m = &of(s)->m;

    memcpy(&job.run, data, len);
    if (!job.run.operations)
        return -EPROTO;
    int err = member_is_absent(m) ? talk_be_absent(s) : member_do(m, &job);
    memcpy(s->body, &job.times, sizeof(job.times));
    return err;
}

static int overlap(struct talk_server *s, const void *data, size_t len)
{
    struct member_job job = {.what = COLLECTIVE_ASK_OVERLAP};

    memcpy(&job.overlap_ns, data, len);
    int err = member_do(&of(s)->m, &job);
    memcpy(s->body, &job.ns, sizeof(job.ns));
    return err;
}

static int mark(struct talk_server *s, const void *data, size_t len)
{
    (void)data, (void)len;
    return member_mark(&of(s)->m);
}

static int tell(struct talk_server *s, const void *data, size_t len)
{
    (void)data, (void)len;
    member_tell(&of(s)->m, s->body);
    return 0;
}

static int check(struct talk_server *s, const void *data, size_t len)
{
    (void)data, (void)len;
    return member_do(&of(s)->m, &(struct member_job){.what = COLLECTIVE_ASK_CHECK});
}

static int prove(struct talk_server *s, const void *data, size_t len)
{
    struct collective_claims claims;

    memcpy(&claims, data, len);
    if (!claims_sound(&claims))
        return -EPROTO;
    member_prove(&of(s)->m, &claims, s->body);
    return 0;
}

static int links(struct talk_server *s, const void *data, size_t len)
{
    (void)data, (void)len;
    return member_links(&of(s)->m, COLLECTIVE_UNHEARD_NS);
}

static int close_point(struct talk_server *s, const void *data, size_t len)
{
    (void)data, (void)len;
    member_do(&of(s)->m, &(struct member_job){.what = COLLECTIVE_ASK_CLOSE});
    return 0;
}

const struct talk_request session_requests[COLLECTIVE_REQUESTS] = {
    [COLLECTIVE_ASK_HELLO] = {sizeof(struct collective_hello), sizeof(struct collective_hello),
                              NOTHING, NOTHING, NOTHING, TALK_NEVER, hello},
    [COLLECTIVE_ASK_OPEN] = {TALK_ANY, TALK_ANY, NOTHING, NOTHING, OPENED, TALK_SOMETIMES,
                             open_point},
    [COLLECTIVE_ASK_JOIN] = {TALK_ANY, 0, OPENED, OPENED, JOINED, TALK_SOMETIMES, join},
    [COLLECTIVE_ASK_RUN] = {sizeof(struct session_run), sizeof(struct collective_times), JOINED,
                            JOINED, JOINED, TALK_ALWAYS, run},
    [COLLECTIVE_ASK_OVERLAP] = {sizeof(uint64_t), sizeof(uint64_t), JOINED, JOINED, JOINED,
                                TALK_ALWAYS, overlap},
    [COLLECTIVE_ASK_MARK] = {0, 0, JOINED, JOINED, JOINED, TALK_SOMETIMES, mark},
    [COLLECTIVE_ASK_TELL] = {0, sizeof(struct collective_account), JOINED, JOINED, JOINED,
                             TALK_SOMETIMES, tell},
    [COLLECTIVE_ASK_CHECK] = {0, 0, JOINED, JOINED, JOINED, TALK_ALWAYS, check},
    [COLLECTIVE_ASK_PROVE] = {sizeof(struct collective_claims), sizeof(struct collective_proof),
                              JOINED, JOINED, JOINED, TALK_SOMETIMES, prove},
    [COLLECTIVE_ASK_LINKS] = {0, 0, JOINED, JOINED, JOINED, TALK_SOMETIMES, links},
    [COLLECTIVE_ASK_CLOSE] = {0, 0, NOTHING, JOINED, NOTHING, TALK_SOMETIMES, close_point},
};

static int before(struct talk_server *s, const struct talk_request *r)
{
    (void)r;
    of(s)->m.c.error[0] = 0;
    return 0;
}

static void failed(struct talk_server *s)
{
    if (of(s)->m.c.error[0])
        snprintf(s->error, sizeof(s->error), "%s", of(s)->m.c.error);
}

static int idle(struct talk_server *s)
{
    return ending_heed(&of(s)->m) ? -ECANCELED : channel_alive(s->channel);
}

static int serve(struct server *s)
{
    int err = talk_serve(&s->talk);

    if (err == -ETIMEDOUT)
        return ending_untaken(&s->m, s->talk.channel);
    if (err == -ECONNRESET || err == -EHOSTUNREACH)
        ending_cut(&s->m, s->talk.channel);
    return err;
}

int session_serve(struct world *w, void *arg)
{
    const struct session_service *service = arg;
    struct server *s = calloc(1, sizeof(*s));
    struct topo *topo = NULL;
    struct beat *beat = NULL;

    if (!s)
        return EXIT_INCOMPLETE;
    int err = topo_open(&topo);
    s->talk = (struct talk_server){.channel = world_channel(w, 0),
                                   .requests = session_requests,
                                   .n_requests = COLLECTIVE_REQUESTS,
                                   .arg = s,
                                   .before = before,
                                   .failed = failed,
                                   .idle = idle,
                                   .moved_ns = &s->m.moved_ns};
    s->m = (struct member){.world = w,
                           .topo = topo,
                           .find = service && service->find ? service->find : collective_find,
                           .device = service ? service->device : NULL,
                           .look = look,
                           .others_still_ns = others_still_ns,
                           .await = ending_await,
                           .arg = s};
    if (!err)
        err = beat_start(&beat, &s->talk.channel, 1, BEAT_LEADING_NS);
    if (!err || err == -EOPNOTSUPP)
        err = serve(s);
    beat_end(beat);
    member_do(&s->m, &(struct member_job){.what = COLLECTIVE_ASK_CLOSE});
    member_stand_alone(&s->m);
    topo_close(topo);
    free(s);
    return err ? EXIT_INCOMPLETE : 0;
}
