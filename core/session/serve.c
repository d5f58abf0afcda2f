/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that are led: they do what rank 0 asks, request by request, until it says goodbye. See
 * session.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/group/channel.h"
#include "core/group/meet.h"
#include "core/group/notice.h"
#include "core/hw/nic.h"
#include "core/program.h"
#include "core/session/member.h"
#include "core/session/session.h"

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
    return p->op < COLLECTIVE_OPS && p->type < COLLECTIVE_TYPES && p->sum < COLLECTIVE_SUMS &&
           p->inject <= COLLECTIVE_ABSENT && p->registered < COLLECTIVE_REGISTERS &&
           p->pipelined <= COLLECTIVE_QUEUED_MAX && p->aggregated <= COLLECTIVE_QUEUED_MAX &&
           p->graphs <= COLLECTIVE_QUEUED_MAX && p->count &&
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

static bool calls_sound(const struct collective_point *p, const struct collective_call *calls,
                        unsigned n)
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
        9, /* of the requests: raise it when their order or meaning changes */
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

_Static_assert(sizeof(struct collective_order) % _Alignof(struct collective_call) == 0,
               "calls follow an order as they are");

struct server {
    struct talk_server talk;
    struct member m;
};

/* --- how a rank ends where rank 0 is gone and nobody else may be able to say it --- */

static void say(const struct member *m, const char *why)
{
    char name[WORLD_NAME_MAX + 32];

    fprintf(stderr, "%s: %s: this process ends\n",
            world_name(m->world, world_rank(m->world), name, sizeof(name)), why);
}

/* Rank 0 is lost, or takes no answer: said, unless it says itself what there is to say, as of
 * processes that it has started. Whose own link is down is cut off itself. */
static void ending(struct talk_server *t, int err)
{
    const struct member *m = &((const struct server *)t->arg)->m;
    const struct sockaddr_storage *own = &world_member(m->world, world_rank(m->world))->address;
    const char *lost = channel_error(t->channel);
    struct notice notice = {.kind = err == -ECONNRESET ? NOTICE_GONE : NOTICE_SILENT};
    char why[160] = "", text[192], name[WORLD_NAME_MAX + 32];

    if (err != -ETIMEDOUT && err != -ECONNRESET && err != -EHOSTUNREACH)
        return;
    if (!strcmp(world_group(m->world), "local") && err != -ETIMEDOUT)
        return;
    bool sock = !strcmp(world_group(m->world), "sock");
    if (sock && own->ss_family != AF_UNSPEC && nic_is_cut((const void *)own, why, sizeof(why))) {
        snprintf(text, sizeof(text), "it is cut off: %s", why);
        lost = text;
    }
    snprintf(notice.host, sizeof(notice.host), "%s", world_host(m->world, 0));
    if (sock || err == -ETIMEDOUT || beat_stood_ns(t->beat) > BEAT_LEADING_NS)
        say(m, lost);
    else
        notice_send(&notice, "%s: %s: this process ends",
                    world_name(m->world, world_rank(m->world), name, sizeof(name)), lost);
}

/* member.await, while the rank is in a library: 0, or the process ends there and then with
 * EXIT_INCOMPLETE. Nobody can be told: who led is lost, or should have noticed. */
static int ending_await(struct member *m)
{
    struct talk_server *t = &((struct server *)m->arg)->talk;
    uint64_t still_ns = member_still_ns(m);
    int err = channel_alive(t->channel);
    char why[128];

    if (!err && talk_look(t) == -ECONNRESET)
        err = -ECONNRESET;
    if (!err && still_ns < __atomic_load_n(&m->limit_ns, __ATOMIC_RELAXED) + COLLECTIVE_ENDS_NS)
        return 0;
    snprintf(why, sizeof(why), "'%s' has not ended after %.0f s", m->point.backend,
             (double)still_ns / 1e9);
    if (err)
        ending(t, err);
    else
        say(m, why);
    fflush(stderr);
    _exit(EXIT_INCOMPLETE);
}

/* ---- Can other hosts be reached? ---- */

#define TRIAL_NS 3000000000u

/* Who refuses has answered: the network is not dead. */
static enum collective_way way_of(int error)
{
    switch (error) {
    case 0:
    case ECONNREFUSED:
    case ECONNRESET:
        return WAY_PASSES;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return WAY_CLOSED;
    default:
        return WAY_UNKNOWN;
    }
}

/* A TCP connection to a rank's host, which is being made: its socket, or -errno. */
static int begin_trial(const struct member *m, uint32_t rank)
{
    const struct world_member *own = world_member(m->world, world_rank(m->world)),
                              *other = world_member(m->world, rank);

    if (!other)
        return -EINVAL;
    struct sockaddr_storage to = other->address;
    struct sockaddr_in *four = (struct sockaddr_in *)&to;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&to;
    if (own->network && own->network == other->network)
        *four =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    /* A link's own address goes by this machine's name for the link, not by the other one's. */
    if (to.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) &&
        own->address.ss_family == AF_INET6)
        six->sin6_scope_id = ((const struct sockaddr_in6 *)&own->address)->sin6_scope_id;
    four->sin_port = htons(MEET_PORT); /* at the same place in both */
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (!connect(fd, (const void *)&to, to.ss_family == AF_INET ? sizeof(*four) : sizeof(*six)) ||
        errno == EINPROGRESS)
        return fd;
    int err = -errno;
    close(fd);
    return err;
}

static int end_trial(int fd, uint64_t until_ns)
{
    int error = ETIMEDOUT;
    socklen_t len = sizeof(error);

    if (fd < 0)
        return -fd;
    if (!fd_wait(fd, POLLOUT, until_ns, NULL))
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    close(fd);
    return error;
}

/* All at the same time. */
static void try_others(struct talk_server *t, const void *data, size_t len)
{
    const struct member *m = &((struct server *)t->arg)->m;
    struct collective_tried tried[COLLECTIVE_TRIALS_MAX];
    unsigned n = (unsigned)(len / sizeof(uint32_t));
    uint64_t until_ns = fd_until(TRIAL_NS);
    int fds[COLLECTIVE_TRIALS_MAX];

    for (unsigned i = 0; i < n && n <= COLLECTIVE_TRIALS_MAX; i++) {
        memcpy(&tried[i].rank, (const char *)data + i * sizeof(uint32_t), sizeof(uint32_t));
        fds[i] = begin_trial(m, tried[i].rank);
    }
    for (unsigned i = 0; i < n && n <= COLLECTIVE_TRIALS_MAX; i++)
        tried[i].way = way_of(end_trial(fds[i], until_ns));
    if (n <= COLLECTIVE_TRIALS_MAX)
        talk_send_aside(t->channel, true, tried, n * sizeof(*tried));
}

#define IDLE_MOST_NS 10000000000u /* that rank 0 may ask to watch the idle machine */

/* How far a point has come. */
enum state { NOTHING, OPENED, JOINED };

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

static int hello(struct talk_server *s)
{
    struct collective_hello *own = s->body;
    struct member *m = &of(s)->m;

    memcpy(own, s->in.bytes, sizeof(*own));
    hello_fill(own, m->topo);
    if (own->idle_ns && own->idle_ns <= IDLE_MOST_NS)
        cpu_watch(own->idle_ns, &own->idle_cores, &own->idle_softirq);
    return 0;
}

static int open_point(struct talk_server *s)
{
    struct member *m = &of(s)->m;
    unsigned size = world_size(m->world);
    struct address_list addresses = {0};
    struct collective_order order;
    uint32_t members[WORLD_RANKS_MAX];
    const uint8_t *data = s->in.bytes;
    size_t len = s->in.len;

    if (len < sizeof(order) || m->open)
        return -EPROTO;
    memcpy(&order, data, sizeof(order));
    if (!order_sound(&order, size))
        return -EPROTO;
    const struct collective_call *calls = (const void *)(data + sizeof(order));
    size_t fixed = sizeof(order) + order.n_calls * sizeof(*calls) + order.n * sizeof(*members);
    if (len != fixed + order.n_extra)
        return -EPROTO;
    memcpy(members, calls + order.n_calls, order.n * sizeof(*members));
    if (!members_sound(&order, members, world_rank(m->world), size) ||
        !calls_sound(&order.point, calls, order.n_calls))
        return -EPROTO;
    int err = member_do(m, &(struct member_job){.what = COLLECTIVE_ASK_OPEN,
                                                .order = &order,
                                                .members = members,
                                                .calls = calls,
                                                .extra = data + fixed});
    if (!err)
        err = member_addresses(m, &addresses);
    if (!err && !talk_body(s, addresses.packed.len))
        err = -EMSGSIZE;
    if (!err && addresses.packed.len)
        memcpy(s->body, addresses.packed.bytes, addresses.packed.len);
    addresses_free(&addresses);
    return err;
}

static int join(struct talk_server *s)
{
    struct address_list addresses = {0};
    int err = addresses_take(&addresses, s->in.bytes, s->in.len, of(s)->m.c.n);

    if (!err)
        err = member_do(&of(s)->m,
                        &(struct member_job){.what = COLLECTIVE_ASK_JOIN, .addresses = &addresses});
    addresses_free(&addresses);
    return err;
}

static int run(struct talk_server *s)
{
    struct member_job job = {.what = COLLECTIVE_ASK_RUN};
    struct member *m = &of(s)->m;

    memcpy(&job.run, s->in.bytes, sizeof(job.run));
    if (!job.run.operations)
        return -EPROTO;
    bool absent = m->point.inject == COLLECTIVE_ABSENT && m->c.n > 1 && m->c.me == m->c.n - 1;
    int err = absent ? talk_be_absent(s) : member_do(m, &job);
    memcpy(s->body, &job.times, sizeof(job.times));
    return err;
}

static int overlap(struct talk_server *s)
{
    struct member_job job = {.what = COLLECTIVE_ASK_OVERLAP};

    memcpy(&job.overlap_ns, s->in.bytes, sizeof(job.overlap_ns));
    int err = member_do(&of(s)->m, &job);
    memcpy(s->body, &job.ns, sizeof(job.ns));
    return err;
}

static int mark(struct talk_server *s)
{
    return member_mark(&of(s)->m);
}

static int tell(struct talk_server *s)
{
    member_tell(&of(s)->m, s->body);
    return 0;
}

static int check(struct talk_server *s)
{
    return member_do(&of(s)->m, &(struct member_job){.what = COLLECTIVE_ASK_CHECK});
}

static int prove(struct talk_server *s)
{
    struct collective_claims claims;

    memcpy(&claims, s->in.bytes, sizeof(claims));
    if (!claims_sound(&claims))
        return -EPROTO;
    member_prove(&of(s)->m, &claims, s->body);
    return 0;
}

static int links(struct talk_server *s)
{
    return member_links(&of(s)->m, COLLECTIVE_UNHEARD_NS);
}

static int close_point(struct talk_server *s)
{
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

int session_serve(struct world *w, void *arg)
{
    const struct session_service *service = arg;
    struct server *s = xcalloc(1, sizeof(*s));
    struct topo *topo = NULL;
    int err = topo_open(&topo);

    s->talk = (struct talk_server){.channel = world_channel(w, 0),
                                   .requests = session_requests,
                                   .n_requests = COLLECTIVE_REQUESTS,
                                   .arg = s,
                                   .before = before,
                                   .failed = failed,
                                   .aside = try_others,
                                   .lost = ending,
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
        err = talk_serve(&s->talk);
    member_do(&s->m, &(struct member_job){.what = COLLECTIVE_ASK_CLOSE});
    member_end(&s->m);
    topo_close(topo);
    free(s);
    return err ? EXIT_INCOMPLETE : 0;
}
