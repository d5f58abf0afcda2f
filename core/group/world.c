/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds of any kind, and one of this process and its children: see world.h. */
#include "core/group/world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/group/channel.h"
#include "core/group/meet.h"
#include "core/group/notice.h"
#include "core/group/secret.h"
#include "core/hw/machine.h"

/* ---- Where in the network this process is ---- */

/* How well others reach it: 0: not at all. */
static int worth(const struct ifaddrs *i)
{
    const struct sockaddr_in6 *six = (const void *)i->ifa_addr;

    if (!six || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
        return 0;
    if (six->sin6_family == AF_INET6)
        return IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ? 1 : 2;
    return six->sin6_family == AF_INET ? 3 : 0;
}

unsigned host_addresses(struct sockaddr_storage *all, unsigned most)
{
    struct ifaddrs *list = NULL;
    unsigned n = 0;

    if (getifaddrs(&list))
        return 0;
    for (int best = 3; best > 0; best--)
        for (struct ifaddrs *i = list; i; i = i->ifa_next)
            if (n < most && worth(i) == best)
                memcpy(&all[n++], i->ifa_addr,
                       best == 3 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    freeifaddrs(list);
    return n;
}

void host_known_as(char *text, size_t len)
{
    const char *given = getenv(NOTICE_HOST);

    if (given && *given)
        snprintf(text, len, "%s", given);
    else if (gethostname(text, len))
        snprintf(text, len, "no name");
    text[len - 1] = 0;
}

uint64_t host_network(void)
{
    char boot[64] = "";
    struct stat st;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    uint64_t id = 1469598103934665603u;
    bool known = f && fgets(boot, sizeof(boot), f) && !stat("/proc/self/ns/net", &st);

    if (f)
        fclose(f);
    for (const char *p = boot; known && *p; p++)
        id = (id ^ (unsigned char)*p) * 1099511628211u;
    return known ? (id ^ st.st_ino) * 1099511628211u : 0;
}

/* ---- What all worlds have ---- */

#define OTHER_FILES 256 /* what a program may have open besides its channels */

int world_new(struct world **world, const char *group, unsigned rank, unsigned size, char *error,
              size_t len)
{
    size_t bytes = size * sizeof(struct world_member);

    if (size < 1 || size > WORLD_RANKS_MAX)
        return group_fail(-EINVAL, error, len, "%u processes are not possible: 1 to %u are", size,
                          WORLD_RANKS_MAX);
    if (rank >= size)
        return group_fail(-EINVAL, error, len,
                          "rank %u is out of range: %u processes are numbered from 0 to %u", rank,
                          size, size - 1);
    struct world *w = xcalloc(1, sizeof(*w) + size * sizeof(w->channels[0]));
    void *members = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (members == MAP_FAILED)
        alloc_fail(bytes);
    /* A channel is an open file, and many systems let a process have 1024 unless it asks for
     * more. */
    struct rlimit limit;
    rlim_t want = (rlim_t)size + OTHER_FILES;
    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < want) {
        limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    w->group = group;
    w->rank = rank;
    w->size = size;
    w->members = members;
    *world = w;
    return 0;
}

void world_free(struct world *w)
{
    if (!w)
        return;
    munmap(w->members, w->size * sizeof(*w->members));
    secret_wipe(w->key, sizeof(w->key));
    free(w);
}

void world_close(struct world *w)
{
    if (!w)
        return;
    channel_end_children(w->channels, w->size);
    for (unsigned i = 0; i < w->size; i++)
        channel_close(w->channels[i]);
    world_free(w);
}

void world_adopt(struct world *w, unsigned rank, struct channel *c)
{
    w->channels[rank] = c;
    world_name(w, rank, c->peer, sizeof(c->peer));
    world_name(w, w->rank, c->own, sizeof(c->own));
}

void world_self(struct world_member *m)
{
    char host[WORLD_NAME_MAX + 1] = "";

    memset(m, 0, sizeof(*m));
    if (gethostname(host, sizeof(host) - 1))
        snprintf(host, sizeof(host), "no name");
    shake_text(m->host, sizeof(m->host), host, sizeof(host));
    if (getenv(NOTICE_HOST))
        host_known_as(m->name, sizeof(m->name));
    _Static_assert(sizeof(m->machine) >= MACHINE_ID_BYTES, "a machine's name fits");
    machine_id(m->machine);
    m->network = host_network();
    m->pid = getpid();
}

/* Node and rank on the machine of `m`, after those before it. Returns how many nodes there are
 * now. */
static unsigned number_one(struct world_member *all, struct world_member *m, unsigned nodes)
{
    m->node = nodes;
    m->local = m->machine_rank = 0;
    for (const struct world_member *o = all; o < m; o++) {
        if (machine_same(o->machine, m->machine))
            m->machine_rank++;
        /* What is not known is nobody's: host names alone are often alike. */
        if (machine_same(o->machine, m->machine) && !strcmp(o->host, m->host) &&
            o->network == m->network) {
            m->node = o->node;
            m->local++;
        }
    }
    return m->node == nodes ? nodes + 1 : nodes;
}

void world_number(struct world *w)
{
    struct world_member *all = w->members;

    w->nodes = 0;
    for (unsigned i = 0; i < w->size; i++)
        w->nodes = number_one(all, &all[i], w->nodes);
    /* The last of a machine knows how many they are. */
    for (unsigned i = w->size; i-- > 0;) {
        all[i].machine_ranks = all[i].machine_rank + 1;
        for (unsigned k = i + 1; k < w->size && all[i].machine_ranks == all[i].machine_rank + 1;
             k++)
            if (machine_same(all[i].machine, all[k].machine))
                all[i].machine_ranks = all[k].machine_ranks;
    }
}

unsigned world_rank(const struct world *w)
{
    return w->rank;
}

unsigned world_size(const struct world *w)
{
    return w->size;
}

const struct world_member *world_member(const struct world *w, unsigned rank)
{
    return rank < w->size ? &w->members[rank] : NULL;
}

unsigned world_nodes(const struct world *w)
{
    return w->nodes;
}

const char *world_group(const struct world *w)
{
    return w->group;
}

const uint8_t *world_key(const struct world *w)
{
    return w->key;
}

struct channel *world_channel(struct world *w, unsigned rank)
{
    return rank < w->size ? w->channels[rank] : NULL;
}

int world_pair(struct world **world, struct channel *c, bool leads, bool same_machine, char *error,
               size_t len)
{
    struct world *w = NULL;
    int err = world_new(&w, "pair", leads ? 1 : 0, 2, error, len);

    if (!w) /* just where it fails */
        return err;
    struct world_member *own = &w->members[w->rank], *peer = &w->members[!w->rank];
    w->channels[!w->rank] = c;
    w->nodes = same_machine ? 1 : 2;
    machine_id(own->machine);
    own->node = !same_machine && leads;
    peer->node = !same_machine && !leads;
    if (same_machine)
        memcpy(peer->machine, own->machine, sizeof(peer->machine));
    else
        snprintf(peer->machine, sizeof(peer->machine), "another");
    own->machine_ranks = peer->machine_ranks = same_machine ? 2 : 1;
    if (channel_address(c, &own->address, &peer->address))
        own->address.ss_family = peer->address.ss_family = AF_UNSPEC;
    channel_token(c, "world", 0, w->key);
    *world = w;
    return 0;
}

const char *world_host(const struct world *w, unsigned rank)
{
    return w->members[rank].name[0] ? w->members[rank].name : w->members[rank].host;
}

/* Of a pair each end calls the other one what its channel does. */
const char *world_name(const struct world *w, unsigned rank, char *text, size_t len)
{
    if (!strcmp(w->group, "pair") && rank < w->size && w->channels[rank])
        snprintf(text, len, "%s", channel_peer(w->channels[rank]));
    else if (rank < w->size && w->members[rank].host[0])
        snprintf(text, len, "rank %u (%s)", rank, world_host(w, rank));
    else
        snprintf(text, len, "rank %u", rank);
    return text;
}

int world_alive(struct world *w, unsigned *rank, char *error, size_t len)
{
    for (unsigned i = 0; i < w->size; i++) {
        if (!w->channels[i] || !channel_alive(w->channels[i]))
            continue;
        *rank = i;
        return group_fail(-ECONNRESET, error, len, "%s", channel_error(w->channels[i]));
    }
    return 0;
}

/* ---- What ranks tell each other of the world ---- */

/* What is sent as it is: all ranks are of one layout, as their protocols say. */
struct head {
    uint32_t size, nodes;
    uint8_t key[WORLD_KEY_BYTES];
};
_Static_assert(WORLD_CHUNK * sizeof(struct world_member) <= CHANNEL_FRAME_MAX,
               "a chunk is a frame");

#define REASON_BYTES 256

void world_member_clean(struct world_member *m)
{
    shake_text(m->host, sizeof(m->host), m->host, sizeof(m->host));
    shake_text(m->machine, sizeof(m->machine), m->machine, sizeof(m->machine));
    shake_text(m->name, sizeof(m->name), m->name, sizeof(m->name));
    if (m->address.ss_family != AF_INET && m->address.ss_family != AF_INET6)
        memset(&m->address, 0, sizeof(m->address));
    ((struct sockaddr_in *)&m->address)->sin_port = 0; /* at the same place in both */
}

int world_hello_recv(struct channel *c, struct world_hello *h, uint64_t wait_ns)
{
    uint16_t type = 0;
    size_t n = 0;
    int err = channel_recv(c, &type, h, sizeof(*h), &n, wait_ns);

    if (err)
        return err;
    if (type != WORLD_HELLO || n != sizeof(*h))
        return -EPROTO;
    world_member_clean(&h->member);
    return 0;
}

int world_tell(struct world *w, unsigned rank, char *error, size_t len)
{
    struct head head = {.size = w->size, .nodes = w->nodes};
    struct channel *c = w->channels[rank];

    memcpy(head.key, w->key, sizeof(head.key));
    int err = channel_send(c, WORLD_HEAD, &head, sizeof(head));
    for (unsigned i = 0; i < w->size && !err; i += WORLD_CHUNK) {
        unsigned n = w->size - i < WORLD_CHUNK ? w->size - i : WORLD_CHUNK;
        err = channel_send(c, WORLD_MEMBERS, &w->members[i], n * sizeof(w->members[i]));
    }
    return err ? group_fail(err, error, len, "%s", channel_error(c)) : 0;
}

void world_refuse(struct channel *c, int err, const char *why)
{
    uint8_t bytes[4 + REASON_BYTES];
    size_t n = strnlen(why, REASON_BYTES);

    bytes_put32(bytes, (uint32_t)-err);
    memcpy(bytes + 4, why, n);
    channel_send(c, WORLD_REFUSED, bytes, 4 + n);
}

/* A frame, while nobody cancels. */
static int recv_slices(struct channel *c, uint16_t *type, void *data, size_t size, size_t *n,
                       uint64_t wait_ns, const volatile int *cancel)
{
    const uint64_t slice_ns = FD_SLICE_MS * 1000000u;
    int err = -ETIMEDOUT;

    while (err == -ETIMEDOUT && wait_ns && !(cancel && *cancel)) {
        uint64_t now_ns = cancel && wait_ns > slice_ns ? slice_ns : wait_ns;
        err = channel_recv(c, type, data, size, n, now_ns);
        wait_ns -= now_ns;
    }
    return err == -ETIMEDOUT && cancel && *cancel ? -EINTR : err;
}

int world_expect(struct channel *c, uint16_t type, void *data, size_t size, uint64_t wait_ns,
                 const volatile int *cancel, char *error, size_t len)
{
    uint8_t bytes[WORLD_CHUNK * sizeof(struct world_member)];
    uint16_t got = 0;
    size_t n = 0;
    int err = recv_slices(c, &got, bytes, sizeof(bytes), &n, wait_ns, cancel);

    if (err == -EINTR)
        return group_fail(err, error, len, "stopped while waiting for '%s'", channel_peer(c));
    if (err == -ETIMEDOUT)
        return group_fail(err, error, len, "'%s' sent nothing for %.3g s: it hangs, or is cut off",
                          channel_peer(c), (double)wait_ns / 1e9);
    if (err)
        return group_fail(err, error, len, "%s", channel_error(c));
    if (got == WORLD_REFUSED) {
        uint32_t refused = n >= 4 ? bytes_get32(bytes) : 0;
        char why[REASON_BYTES + 1] = "it does not say why";
        if (n > 4)
            shake_text(why, sizeof(why), bytes + 4, n - 4);
        return group_fail(refused > 0 && refused < 4096 ? -(int)refused : -EPROTO, error, len,
                          "'%s' turned this process away: %s", channel_peer(c), why);
    }
    if (got != type || n != size)
        return group_fail(-EPROTO, error, len,
                          "'%s' sent a message out of turn: is it another program, or another "
                          "version?",
                          channel_peer(c));
    memcpy(data, bytes, n);
    return 0;
}

int world_hear(struct world *w, struct channel *c, uint64_t wait_ns, const volatile int *cancel,
               char *error, size_t len)
{
    struct head head;
    int err = world_expect(c, WORLD_HEAD, &head, sizeof(head), wait_ns, cancel, error, len);

    if (!err && head.size != w->size)
        err = group_fail(-EPROTO, error, len, "'%s' has %u processes, this one expects %u",
                         channel_peer(c), head.size, w->size);
    if (err)
        return err;
    w->nodes = head.nodes;
    if (w->nodes < 1 || w->nodes > w->size)
        return group_fail(-EPROTO, error, len, "'%s' tells of %u nodes of %u processes",
                          channel_peer(c), w->nodes, w->size);
    memcpy(w->key, head.key, sizeof(head.key));
    for (unsigned i = 0; i < w->size && !err; i += WORLD_CHUNK) {
        unsigned n = w->size - i < WORLD_CHUNK ? w->size - i : WORLD_CHUNK;
        err = world_expect(c, WORLD_MEMBERS, &w->members[i], n * sizeof(w->members[i]),
                           CHANNEL_WAIT_NS, cancel, error, len);
    }
    for (unsigned i = 0; i < w->size && !err; i++) {
        /* Callers count nodes and ranks of machines in arrays of as many as there are ranks. */
        struct world_member *m = &w->members[i];
        world_member_clean(m);
        if (m->node >= w->nodes || m->local >= w->size || m->machine_rank >= m->machine_ranks ||
            m->machine_ranks > w->size)
            err = group_fail(-EPROTO, error, len, "'%s' tells of a rank %u that cannot be",
                             channel_peer(c), i);
    }
    return err;
}

#define GO 0x574fu /* the members are all written down */
#define GO_WAIT_NS                                                                                 \
    120000000000u /* the parent still forks the others; should it die, this process does */

struct birth {
    struct world *w;
    unsigned rank;
    world_fn *fn;
    void *arg;
};

static int be_born(struct channel *to_parent, void *arg)
{
    const struct birth *b = arg;
    uint32_t nodes = 0;
    uint16_t type = 0;
    size_t n = 0;

    /* In the child: the parent's channels to the children before this one are none of its own. */
    struct world *w = b->w;
    for (unsigned i = 0; i < w->size; i++) {
        channel_forget(w->channels[i]);
        w->channels[i] = NULL;
    }
    w->rank = b->rank;
    world_adopt(w, 0, to_parent);
    mprotect(w->members, w->size * sizeof(*w->members), PROT_READ);
    int err = channel_recv(to_parent, &type, &nodes, sizeof(nodes), &n, GO_WAIT_NS);
    if (!err && (type != GO || n != sizeof(nodes)))
        err = -EPROTO;
    b->w->nodes = nodes;
    return err ? err : b->fn(b->w, b->arg);
}

int world_fork(struct world **world, unsigned size, world_fn *fn, void *arg, char *error,
               size_t len)
{
    struct world *w = NULL;
    int err = world_new(&w, "local", 0, size, error, len);

    if (!w) /* just where it fails */
        return err;
    /* All but the processes' numbers is known before there are any. */
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    world_self(&w->members[0]);
    memcpy(&w->members[0].address, &loopback, sizeof(loopback));
    for (unsigned i = 1; i < size; i++)
        w->members[i] = w->members[0];
    world_number(w);
    err = secret_random(w->key, sizeof(w->key));
    if (err)
        group_fail(err, error, len, "no random numbers: %s", strerror(-err));
    for (unsigned i = 1; i < size && !err; i++) {
        struct birth b = {.w = w, .rank = i, .fn = fn, .arg = arg};
        struct channel *c = NULL;
        err = channel_fork(&c, be_born, &b);
        if (err) {
            group_fail(err, error, len, "cannot start rank %u of %u: %s%s", i, size, strerror(-err),
                       err == -EAGAIN   ? " (a limit of processes: 'ulimit -u', or the container's)"
                       : err == -EMFILE ? " (a limit of open files: 'ulimit -n')"
                                        : "");
            break;
        }
        w->members[i].pid = channel_child(c);
        world_adopt(w, i, c);
    }
    for (unsigned i = 1; i < size && !err; i++) {
        uint32_t nodes = w->nodes;
        err = channel_send(w->channels[i], GO, &nodes, sizeof(nodes));
        if (err)
            group_fail(err, error, len, "%s", channel_error(w->channels[i]));
    }
    if (err) {
        world_close(w);
        return err;
    }
    *world = w;
    return 0;
}
