/* SPDX-License-Identifier: Apache-2.0 */
/* Devices with what they moved and what is claimed of them: see path.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/hw/machine.h"
#include "core/hw/path.h"
#include "core/row.h"

/* ---- Counters of interfaces and RDMA ports ---- */

enum { GROWTH = 32 };

static struct counter *add(struct counters *c)
{
    if (c->n % GROWTH == 0) {
        struct counter *more = realloc(c->list, (c->n + GROWTH) * sizeof(*more));
        if (!more)
            return NULL;
        c->list = more;
    }
    c->list[c->n] = (struct counter){.unit = 1};
    return &c->list[c->n++];
}

/* "  eth0: bytes packets errs drop fifo frame compressed multicast bytes packets ..."; in comes
 * first. */
static int add_interface(struct counters *c, const char *line)
{
    const char *colon = strrchr(line, ':');
    struct counter found = {.unit = 1, .has_data = true, .has_packets = true}, *new;
    size_t blank = strspn(line, " "), n;

    if (!colon || colon < line + blank)
        return 0; /* a line of the head */
    n = (size_t)(colon - line) - blank;
    if (n >= sizeof(found.name) ||
        sscanf(colon + 1, "%" SCNu64 " %" SCNu64 " %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64,
               &found.data[COUNTER_IN], &found.packets[COUNTER_IN], &found.data[COUNTER_OUT],
               &found.packets[COUNTER_OUT]) != 4)
        return 0;
    memcpy(found.name, line + blank, n);
    new = add(c);
    if (!new)
        return -ENOMEM;
    *new = found;
    return 0;
}

static int read_interfaces(struct counters *c, const char *root)
{
    FILE *f = sys_open(root, "proc/net/dev");
    char line[512];
    int rc = 0;

    while (f && !rc && fgets(line, sizeof(line), f))
        rc = add_interface(c, line);
    if (f)
        fclose(f);
    return rc;
}

/* Names of what goes out and comes in, among a port's files. Those of one sum are added up. */
struct counter_names {
    const char *out, *in;
    unsigned unit;
    bool adds; /* to the line above, which was there */
};

static const struct counter_names data_names[] = {
    {"counters/port_xmit_data", "counters/port_rcv_data", 4, false},
    {"hw_counters/tx_bytes", "hw_counters/rx_bytes", 1, false},         /* efa, bnxt_re, mana */
    {"hw_counters/tx_bytes_cnt", "hw_counters/rx_bytes_cnt", 1, false}, /* erdma */
    {"hw_counters/hw_tx_bytes_cnt", "hw_counters/hw_rx_bytes_cnt", 1, false},
    {"hw_counters/tx_rdma_ucast_bytes", "hw_counters/rx_rdma_ucast_bytes", 1, false}, /* ionic */
    {"hw_counters/ip4OutOctets", "hw_counters/ip4InOctets", 1, false},                /* irdma */
    {"hw_counters/ip6OutOctets", "hw_counters/ip6InOctets", 1, true},
};
static const struct counter_names packet_names[] = {
    {"counters/port_xmit_packets", "counters/port_rcv_packets", 1, false},
    {"hw_counters/sent_pkts", "hw_counters/rcvd_pkts", 1, false}, /* rxe */
    {"hw_counters/tx_pkts", "hw_counters/rx_pkts", 1, false},
};

struct port_place {
    struct counters *c;
    const char *root, *device;
    unsigned old_ms; /* what was read of hw_counters may be as old as that */
};

#define OLD_MS_MOST 100
#define JIFFY_MS    10

/* The kernel keeps what it read of a device's hw_counters for `lifespan` ms, whoever asked for
 * it. */
static void note_age(struct port_place *p, const char *port)
{
    uint64_t ms;

    if (sys_counter(p->root, &ms, "sys/class/infiniband/%s/ports/%s/hw_counters/lifespan",
                    p->device, port))
        return;
    ms = ms < OLD_MS_MOST ? ms : OLD_MS_MOST;
    p->old_ms = ms > p->old_ms ? (unsigned)ms : p->old_ms;
}

static bool read_pair(const struct port_place *p, const char *port, const struct counter_names *n,
                      uint64_t value[COUNTER_WAYS])
{
    return !sys_counter(p->root, &value[COUNTER_OUT], "sys/class/infiniband/%s/ports/%s/%s",
                        p->device, port, n->out) &&
           !sys_counter(p->root, &value[COUNTER_IN], "sys/class/infiniband/%s/ports/%s/%s",
                        p->device, port, n->in);
}

static bool read_named(struct port_place *p, const char *port, const struct counter_names *names,
                       size_t n, uint64_t sum[COUNTER_WAYS], unsigned *unit)
{
    uint64_t value[COUNTER_WAYS];
    bool found = false;

    for (size_t i = 0; i < n; i++) {
        if (found != names[i].adds || !read_pair(p, port, &names[i], value))
            continue;
        sum[COUNTER_OUT] += value[COUNTER_OUT];
        sum[COUNTER_IN] += value[COUNTER_IN];
        *unit = names[i].unit;
        found = true;
        if (!strncmp(names[i].out, "hw_counters/", 12))
            note_age(p, port);
    }
    return found;
}

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static int add_port(void *arg, const char *port)
{
    struct port_place *p = arg;
    struct counter *new = add(p->c);
    unsigned unit;

    if (!new)
        return -ENOMEM;
    if (snprintf(new->name, sizeof(new->name), "%s:%s", p->device, port) >=
        (int)sizeof(new->name)) {
        p->c->n--;
        return 0;
    }
    new->port = true;
    new->has_data = read_named(p, port, data_names, COUNT(data_names), new->data, &new->unit);
    new->has_packets = read_named(p, port, packet_names, COUNT(packet_names), new->packets, &unit);
    return 0;
}

static int add_ports(void *arg, const char *device)
{
    struct port_place *p = arg;

    p->device = device;
    return sys_list(p->root, add_port, p, "sys/class/infiniband/%s/ports", device);
}

static int read_all(struct port_place *p)
{
    int rc = read_interfaces(p->c, p->root);

    return rc ? rc : sys_list(p->root, add_ports, p, "sys/class/infiniband");
}

/* The kernel counts that time in whole jiffies, of 10 ms at most, and a reading is still the old
 * one in the last of them. */
static void wait_until_new(unsigned old_ms)
{
    unsigned jiffies = (old_ms + JIFFY_MS - 1) / JIFFY_MS + 1;
    struct timespec left = {.tv_nsec = jiffies * JIFFY_MS * 1000000L};

    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

int counters_read(struct counters *c, const char *root)
{
    struct port_place p = {.c = c, .root = root};
    int rc;

    *c = (struct counters){0};
    rc = read_all(&p);
    if (!rc && p.old_ms) {
        wait_until_new(p.old_ms);
        counters_free(c);
        rc = read_all(&p);
    }
    if (rc)
        counters_free(c);
    return rc;
}

void counters_free(struct counters *c)
{
    free(c->list);
    *c = (struct counters){0};
}

/* or NULL */
static const struct counter *counters_find(const struct counters *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->list[i].name, name))
            return &c->list[i];
    return NULL;
}

/* False: set back to nothing in between, as when a driver is loaded again. */
static bool difference(uint64_t before, uint64_t after, double *moved, bool *at_least)
{
    uint64_t by = after - before;

    if (after < before) {
        if (before > UINT32_MAX)
            return false;
        by = (uint32_t)by;
        *at_least = true;
    }
    *moved = (double)by;
    return true;
}

struct moved counters_moved(const struct counter *before, const struct counter *after)
{
    struct moved m = {0};

    if (!before || !after)
        return m;
    m.known = before->has_data && after->has_data;
    m.packets_known = before->has_packets && after->has_packets;
    m.narrow = after->unit > 1;
    for (int way = 0; way < COUNTER_WAYS; way++) {
        bool stuck = after->port && after->data[way] == UINT32_MAX, narrow_packets = false;
        if (m.known)
            m.known = difference(before->data[way], after->data[way], &m.bytes[way], &m.at_least);
        if (m.packets_known)
            m.packets_known = difference(before->packets[way], after->packets[way], &m.packets[way],
                                         &narrow_packets);
        m.bytes[way] *= after->unit;
        m.at_least |= stuck;
        m.narrow &= before->data[way] <= UINT32_MAX && after->data[way] <= UINT32_MAX;
    }
    return m;
}

/* ---- The words of a proof. ---- */

void path_say(struct path_words *w, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(w->text + w->used, w->len - w->used, format, args);
    va_end(args);
    if (n > 0)
        w->used += (size_t)n < w->len - w->used ? (size_t)n : w->len - w->used - 1;
}

void path_carried_by(struct path_words *w, const struct path_device *d)
{
    if (w->carriers)
        return;
    if (strchr(d->name, ':')) /* of a port, or several of them together */
        w->carriers = CARRIER_RDMA;
    else
        w->carriers = strcmp(d->name, "lo") ? CARRIER_SOCKETS : CARRIER_LOOPBACK;
}

struct path_amount path_amount(const struct path_view *v, double amount)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    struct path_amount a;
    size_t i = 0;

    if (v->by == PATH_PACKETS) {
        snprintf(a.text, sizeof(a.text), "%.0f packets", amount);
        return a;
    }
    for (; amount >= 999.5 && i < 4; i++)
        amount /= 1e3;
    snprintf(a.text, sizeof(a.text), amount >= 100 ? "%.0f %s" : "%.3g %s", amount, units[i]);
    return a;
}

struct path_device *path_find(const struct path_view *v, const char *name)
{
    for (size_t i = 0; i < v->n; i++)
        if (!strcmp(v->list[i].name, name))
            return &v->list[i];
    return NULL;
}

/* ---- Which devices move the same bytes: by the links that the system shows between interfaces.
 * ---- */

enum { DEPTH_MAX = 6 };

struct descent {
    const char *root, *below;
    unsigned depth;
};

static bool is_above(const char *root, const char *upper, const char *below, unsigned depth);

static int step_down(void *arg, const char *entry)
{
    struct descent *d = arg;

    return !strncmp(entry, "lower_", 6) && is_above(d->root, entry + 6, d->below, d->depth + 1);
}

/* A bond, bridge or VLAN `upper` that stands, over whatever is between, on `below`. */
static bool is_above(const char *root, const char *upper, const char *below, unsigned depth)
{
    struct descent d = {root, below, depth};

    if (sys_exists(root, "sys/class/net/%s/lower_%s", upper, below))
        return true;
    return depth < DEPTH_MAX && sys_list(root, step_down, &d, "sys/class/net/%s", upper) != 0;
}

/* Does `d` move what the claimed device `c` moves? */
static bool moves_same(const struct path_view *v, const struct path_device *d,
                       const struct path_device *c)
{
    if (c->port)
        return !d->port && c->facts.software && !strcmp(c->facts.interface, d->name);
    if (d->port)
        return !strcmp(d->facts.link_layer, "InfiniBand") && !strcmp(d->facts.interface, c->name);
    return is_above(v->root, d->name, c->name, 0) || is_above(v->root, c->name, d->name, 0);
}

/* Over another interface of the list, which counts the bytes already. */
static bool is_stacked(const struct path_view *v, const struct path_device *d)
{
    for (size_t i = 0; i < v->n && !d->port; i++)
        if (!v->list[i].port && &v->list[i] != d && is_above(v->root, d->name, v->list[i].name, 0))
            return true;
    return false;
}

/* Marks the devices that move the same bytes as another. */
static void path_relate(struct path_view *v)
{
    for (size_t i = 0; i < v->n; i++) {
        struct path_device *d = &v->list[i];
        if (d->claimed)
            continue;
        d->same_bytes = is_stacked(v, d);
        for (size_t k = 0; k < v->n && !d->same_bytes; k++)
            d->same_bytes = v->list[k].claimed && moves_same(v, d, &v->list[k]);
    }
}

/* ---- What is held to have gone through a claimed device, by what its driver counts. ---- */

#define DEFAULT_SEGMENT 1400.0
#define NARROW_BYTES    (4 * 4294967296.0)

bool path_is_none(const struct path_device *d)
{
    return !d->name[0] || !strcmp(d->name, "shm");
}

double path_segment_bytes(const struct path_device *d)
{
    double segment = d->mtu_bytes > 0 ? d->mtu_bytes : DEFAULT_SEGMENT;

    return d->message_bytes > 0 && d->message_bytes < segment ? d->message_bytes : segment;
}

/* Payload of packets that are full but for the last of each message: the most that so many can have
 * carried. */
static double of_packets(const struct path_device *d, double packets)
{
    double message = d->message_bytes > 0 ? d->message_bytes : path_segment_bytes(d);

    return packets * message / ceil(message / path_segment_bytes(d));
}

static const struct path_device *own_interface(const struct path_view *v,
                                               const struct path_device *d)
{
    return d->port && d->facts.interface[0] ? path_find(v, d->facts.interface) : NULL;
}

static const struct moved *own_bytes(const struct path_view *v, const struct path_device *d)
{
    const struct path_device *i = own_interface(v, d);

    return i && i->moved.known ? &i->moved : NULL;
}

static bool is_infiniband(const struct path_device *d)
{
    return d->port && !strcmp(d->facts.link_layer, "InfiniBand");
}

static double carried_bytes(const struct path_view *v, const struct path_device *d, int way)
{
    const struct moved *m = &d->moved, *interface = own_bytes(v, d);
    double claim = d->claim[PATH_BYTES][way];
    double packets = m->packets_known ? of_packets(d, m->packets[way]) : NAN;

    if (m->known && is_infiniband(d) && interface)
        return fmax(0, m->bytes[way] - interface->bytes[way]); /* less IPoIB */
    if (m->known && m->narrow && claim >= NARROW_BYTES && packets >= m->bytes[way])
        return packets;
    if (m->known)
        return m->bytes[way];
    /* rxe: packets say that it was rxe, the interface how many bytes. Between two of its own queue
     * pairs there is none. */
    if (m->packets_known && interface && packets >= PATH_MET * claim &&
        interface->bytes[way] >= PATH_MET * claim)
        return interface->bytes[way];
    if (m->packets_known)
        return packets;
    return d->facts.software && interface ? interface->bytes[way] : NAN;
}

static double carried_packets(const struct path_view *v, const struct path_device *d, int way)
{
    const struct path_device *i = own_interface(v, d);
    const struct moved *interface = i && i->moved.packets_known ? &i->moved : NULL;

    if (d->moved.packets_known && is_infiniband(d) && interface)
        return fmax(0, d->moved.packets[way] - interface->packets[way]);
    if (d->moved.packets_known)
        return d->moved.packets[way];
    return d->facts.software && interface ? interface->packets[way] : NAN;
}

/* Soft-iWARP is TCP: between two ends on one machine the kernel takes lo, whatever interface the
 * device is on. */
static void take_lo(struct path_view *v, struct path_device *d)
{
    const struct moved *own = own_bytes(v, d);
    struct path_device *lo = path_find(v, "lo");
    bool met = true, by_lo = true;

    if (strcmp(d->facts.driver, "siw") != 0 || !lo || !lo->moved.known || !own)
        return;
    for (int way = 0; way < COUNTER_WAYS; way++) {
        met &= own->bytes[way] >= PATH_MET * d->claim[PATH_BYTES][way];
        by_lo &= lo->moved.bytes[way] >= PATH_MET * d->claim[PATH_BYTES][way];
    }
    if (met || !by_lo)
        return;
    strcpy(d->facts.interface, "lo");
    lo->same_bytes = true;
}

/* All of them together. A device in software counts nothing that tells without a claim of its
 * own. */
static void carry_set(struct path_view *v)
{
    struct path_device *set = &v->set;

    memset(set->got, 0, sizeof(set->got));
    set->moved = (struct moved){.known = true};
    for (size_t i = 0; i < v->n; i++) {
        const struct path_device *d = &v->list[i];
        for (int by = 0; by < PATH_MEASURES && d->in_set; by++)
            for (int way = 0; way < COUNTER_WAYS; way++)
                set->got[by][way] += d->facts.software ? NAN : d->got[by][way];
        set->moved.at_least |= d->in_set && d->moved.at_least;
    }
}

void path_carry(struct path_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->list[i].claimed)
            take_lo(v, &v->list[i]);
    for (size_t i = 0; i < v->n; i++) {
        struct path_device *d = &v->list[i];
        for (int way = 0; way < COUNTER_WAYS && d->claimed; way++) {
            d->got[PATH_BYTES][way] = path_is_none(d) ? 0 : carried_bytes(v, d, way);
            d->got[PATH_PACKETS][way] = path_is_none(d) ? 0 : carried_packets(v, d, way);
        }
    }
    if (v->set.name[0])
        carry_set(v);
}

/* ---- The list of devices. ---- */

static struct path_device *add_device(struct path_view *v, const char *name)
{
    struct path_device *d = &v->list[v->n++];
    char device[NIC_NAME];
    unsigned port;

    *d = (struct path_device){0};
    snprintf(d->name, sizeof(d->name), "%s", name);
    d->port = strchr(name, ':') && !nic_parse_port(v->root, name, device, &port);
    if (d->port)
        nic_read_port(v->root, device, port, &d->facts);
    return d;
}

/* By any of its names. */
static struct path_device *find_or_add(struct path_view *v, const char *claimed, size_t len)
{
    char name[sizeof(v->list->name)], device[NIC_NAME];
    struct path_device *d;
    unsigned port;

    snprintf(name, sizeof(name), "%.*s", (int)(len < 61 ? len : 61), claimed);
    /* "mlx5_0" is its first port. */
    if (!path_find(v, name) && !strchr(name, ':') && !nic_parse_port(v->root, name, device, &port))
        strcat(name, ":1");
    d = path_find(v, name);
    if (!d)
        d = add_device(v, name);
    d->claimed = true;
    return d;
}

static unsigned devices_of(const struct path_claim *claim)
{
    unsigned n = 1;

    for (const char *at = claim->device; (at = strchr(at, '+')); at++)
        n++;
    return n;
}

/* Of devices that are claimed together none is claimed alone. */
static struct path_device *add_set(struct path_view *v, const struct path_claim *claim)
{
    for (const char *at = claim->device; *at; at += *at == '+') {
        size_t n = strcspn(at, "+");
        find_or_add(v, at, n)->in_set = true;
        at += n;
    }
    snprintf(v->set.name, sizeof(v->set.name), "%.63s", claim->device);
    v->set.claimed = true;
    return &v->set;
}

/* Of several claims on one device the messages of the last one count; they are of one point, so of
 * one size. */
static void add_claim(struct path_view *v, const struct path_claim *claim)
{
    struct path_device *d = devices_of(claim) > 1
                                ? add_set(v, claim)
                                : find_or_add(v, claim->device, strlen(claim->device));

    d->at_least |= claim->at_least;
    d->claim[PATH_BYTES][COUNTER_OUT] += claim->out_bytes;
    d->claim[PATH_BYTES][COUNTER_IN] += claim->in_bytes;
    d->claim[PATH_PACKETS][COUNTER_OUT] += claim->out_messages;
    d->claim[PATH_PACKETS][COUNTER_IN] += claim->in_messages;
    d->message_bytes = claim->message_bytes;
    d->mtu_bytes = claim->mtu_bytes;
}

static int make_view(struct path_view *v, const char *root, const struct counters *now,
                     const struct path_claim *claims, size_t n)
{
    size_t more = 1;

    for (size_t i = 0; i < n; i++)
        more += devices_of(&claims[i]);
    *v = (struct path_view){.root = root, .list = calloc(now->n + more, sizeof(*v->list))};
    if (!v->list)
        return -ENOMEM;
    for (size_t i = 0; i < now->n; i++)
        add_device(v, now->list[i].name);
    for (size_t i = 0; i < n; i++)
        add_claim(v, &claims[i]);
    path_relate(v);
    return 0;
}

int path_look(struct path_view *v, const char *root, const struct counters *before,
              const struct path_claim *claims, size_t n)
{
    struct counters now;
    int rc = counters_read(&now, root);

    if (rc)
        return rc;
    if (!v->list)
        rc = make_view(v, root, &now, claims, n);
    for (size_t i = 0; !rc && i < v->n; i++)
        v->list[i].moved = counters_moved(counters_find(before, v->list[i].name),
                                          counters_find(&now, v->list[i].name));
    counters_free(&now);
    return rc;
}
