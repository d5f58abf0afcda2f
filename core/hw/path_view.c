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

#include "core/alloc.h"
#include "core/hw/path.h"
#include "core/hw/sys.h"
#include "core/row.h"

/* ---- Counters of interfaces and RDMA ports ---- */

/* "  eth0: bytes packets errs drop fifo frame compressed multicast bytes packets ..."; in comes
 * first. */
static void add_interface(struct counters *c, const char *line)
{
    const char *colon = strrchr(line, ':');
    struct counter interface = {.unit = 1, .known = true};
    size_t blank = strspn(line, " "), n;

    if (!colon || colon < line + blank)
        return; /* a line of the head */
    n = (size_t)(colon - line) - blank;
    if (n >= sizeof(interface.name) ||
        sscanf(colon + 1, "%" SCNu64 " %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
               &interface.data[COUNTER_IN], &interface.data[COUNTER_OUT]) != 2)
        return;
    memcpy(interface.name, line + blank, n);
    *ARRAY_ADD(c->list, c->n) = interface;
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

#define OLD_MS_MOST 100
#define JIFFY_MS    10

/* A file of a port, "mlx5_0:1", that counts. */
static bool read_count(const char *root, const char *port, const char *file, uint64_t *value)
{
    int n = (int)strcspn(port, ":");

    return !sys_counter(root, value, "sys/class/infiniband/%.*s/ports/%s/%s", n, port, port + n + 1,
                        file);
}

/* The kernel keeps what it read of a device's hw_counters for `lifespan` ms, whoever asked for it:
 * *old_ms is the longest of these times. */
static void read_data(const char *root, struct counter *c, unsigned *old_ms)
{
    uint64_t value[COUNTER_WAYS], ms;

    for (size_t i = 0; i < sizeof(data_names) / sizeof(*data_names); i++) {
        const struct counter_names *names = &data_names[i];

        if (c->known != names->adds ||
            !read_count(root, c->name, names->out, &value[COUNTER_OUT]) ||
            !read_count(root, c->name, names->in, &value[COUNTER_IN]))
            continue;
        c->data[COUNTER_OUT] += value[COUNTER_OUT];
        c->data[COUNTER_IN] += value[COUNTER_IN];
        c->unit = names->unit;
        c->known = true;
        if (!strncmp(names->out, "hw_counters/", 12) &&
            read_count(root, c->name, "hw_counters/lifespan", &ms)) {
            ms = ms < OLD_MS_MOST ? ms : OLD_MS_MOST;
            *old_ms = ms > *old_ms ? (unsigned)ms : *old_ms;
        }
    }
}

/* Returns how old, in ms, what was read may be. */
static unsigned read_all(const char *root, struct counters *c)
{
    struct names ports = nic_ports(root);
    FILE *f = sys_open(root, "proc/net/dev");
    unsigned old_ms = 0;
    char line[512];

    while (f && fgets(line, sizeof(line), f))
        add_interface(c, line);
    if (f)
        fclose(f);
    for (size_t i = 0; i < ports.count; i++) {
        struct counter counter = {.unit = 1};

        if (strlen(ports.name[i]) >= sizeof(counter.name))
            continue;
        strcpy(counter.name, ports.name[i]);
        read_data(root, &counter, &old_ms);
        *ARRAY_ADD(c->list, c->n) = counter;
    }
    names_free(&ports);
    return old_ms;
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

struct counters counters_read(const char *root)
{
    struct counters c = {0};
    unsigned old_ms = read_all(root, &c);

    if (old_ms) {
        wait_until_new(old_ms);
        counters_free(&c);
        read_all(root, &c);
    }
    return c;
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

struct moved counters_moved(const struct counter *before, const struct counter *after)
{
    struct moved m = {.known = before && after && before->known && after->known};

    for (int way = 0; way < COUNTER_WAYS && m.known; way++) {
        uint64_t from = before->data[way], to = after->data[way];
        m.known = to >= from && (after->unit == 1 || to != UINT32_MAX);
        m.bytes[way] = (double)(to - from) * after->unit;
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

unsigned path_carrier(const struct path_device *d)
{
    if (d->port)
        return CARRIER_RDMA;
    return strcmp(d->name, "lo") ? CARRIER_SOCKETS : CARRIER_LOOPBACK;
}

struct path_amount path_amount(double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    struct path_amount a;
    size_t i = 0;

    for (; bytes >= 999.5 && i < 4; i++)
        bytes /= 1e3;
    snprintf(a.text, sizeof(a.text), bytes >= 100 ? "%.0f %s" : "%.3g %s", bytes, units[i]);
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

/* A bond, bridge or VLAN `upper` that stands, over whatever is between, on `below`. */
static bool is_above(const char *root, const char *upper, const char *below, unsigned depth)
{
    struct names names;
    bool above = false;

    sys_list(root, &names, "sys/class/net/%s", upper);
    for (size_t i = 0; i < names.count && !above; i++)
        if (!strncmp(names.name[i], "lower_", 6))
            above = !strcmp(names.name[i] + 6, below) ||
                    (depth < DEPTH_MAX && is_above(root, names.name[i] + 6, below, depth + 1));
    names_free(&names);
    return above;
}

bool path_is_infiniband(const struct path_device *d)
{
    return d->port && !strcmp(d->facts.link_layer, "InfiniBand");
}

const struct path_device *path_ipoib(const struct path_view *v, const struct path_device *d)
{
    const struct path_device *i = path_is_infiniband(d) ? path_find(v, d->facts.interface) : NULL;

    return i && i->moved.known ? i : NULL;
}

double path_counted(const struct path_view *v, const struct path_device *d, int way)
{
    const struct path_device *i = path_ipoib(v, d);

    if (!d->moved.known)
        return NAN;
    return fmax(0, d->moved.bytes[way] - (i ? i->moved.bytes[way] : 0));
}

/* Does `d` move what the claimed device `c` moves? An InfiniBand port counts its IPoIB, which counts
 * nothing of the port; of an Ethernet port and its interface nobody knows with most drivers. */
static bool moves_same(const struct path_view *v, const struct path_device *d,
                       const struct path_device *c)
{
    const struct path_device *port = c->port ? c : d, *other = c->port ? d : c;

    if (!port->port)
        return is_above(v->root, d->name, c->name, 0) || is_above(v->root, c->name, d->name, 0);
    if (strcmp(port->facts.interface, other->name) != 0)
        return false;
    return path_is_infiniband(port) ? port == d : !nic_counts_apart(port->facts.driver);
}

/* Over another interface of the list, which counts the bytes already. */
static bool is_stacked(const struct path_view *v, const struct path_device *d)
{
    for (size_t i = 0; i < v->n && !d->port; i++)
        if (!v->list[i].port && &v->list[i] != d && is_above(v->root, d->name, v->list[i].name, 0))
            return true;
    return false;
}

/* ---- The list of devices, and what is claimed of them. ---- */

static struct path_device *add_device(struct path_view *v, const char *name)
{
    struct path_device *d = ARRAY_ADD(v->list, v->n);
    char device[NIC_NAME];
    unsigned port;

    *d = (struct path_device){.claim = -1};
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
    unsigned port;

    snprintf(name, sizeof(name), "%.*s", (int)(len < 61 ? len : 61), claimed);
    /* "mlx5_0" is its first port. */
    if (!path_find(v, name) && !strchr(name, ':') && !nic_parse_port(v->root, name, device, &port))
        strcat(name, ":1");
    struct path_device *d = path_find(v, name);
    return d ? d : add_device(v, name);
}

bool path_is_none(const struct path_claim *claim)
{
    return !claim->device[0] || !strcmp(claim->device, "shm");
}

/* Two rails to this machine's own addresses are both lo: such claims are one. */
static void add_claim(struct path_view *v, const struct path_claim *claim)
{
    size_t k = v->n_claims, n;

    v->asked[COUNTER_OUT] |= claim->out_bytes > 0;
    v->asked[COUNTER_IN] |= claim->in_bytes > 0;
    for (const char *at = claim->device; *at && !path_is_none(claim); at += n + (at[n] == '+')) {
        n = strcspn(at, "+");
        struct path_device *d = find_or_add(v, at, n);
        if (d->claim >= 0)
            k = (size_t)d->claim;
        d->claim = (int)k;
    }
    for (size_t i = 0; i < v->n; i++) /* those before the one that an earlier claim has, too */
        if (v->list[i].claim == (int)v->n_claims)
            v->list[i].claim = (int)k;
    if (k == v->n_claims) {
        v->claims[v->n_claims++] = *claim;
        return;
    }
    v->claims[k].out_bytes += claim->out_bytes;
    v->claims[k].in_bytes += claim->in_bytes;
}

static void make_view(struct path_view *v, const char *root, const struct counters *now,
                      const struct path_claim *claims, size_t n)
{
    *v = (struct path_view){.root = root, .claims = xcalloc(n, sizeof(*claims))};
    for (size_t i = 0; i < now->n; i++)
        add_device(v, now->list[i].name);
    for (size_t i = 0; i < n; i++)
        add_claim(v, &claims[i]);
    for (size_t i = 0; i < v->n; i++) {
        struct path_device *d = &v->list[i];
        if (d->claim >= 0)
            continue;
        d->same_bytes = is_stacked(v, d);
        for (size_t k = 0; k < v->n && !d->same_bytes; k++)
            d->same_bytes = v->list[k].claim >= 0 && moves_same(v, d, &v->list[k]);
    }
}

void path_look(struct path_view *v, const char *root, const struct counters *before,
               const struct path_claim *claims, size_t n)
{
    struct counters now = counters_read(root);

    if (!v->claims)
        make_view(v, root, &now, claims, n);
    for (struct path_device *d = v->list; d < v->list + v->n; d++)
        d->moved = strcmp(d->name, PATH_NOWHERE) ? counters_moved(counters_find(before, d->name),
                                                                  counters_find(&now, d->name))
                                                 : (struct moved){.known = true};
    counters_free(&now);
}

void path_view_free(struct path_view *v)
{
    free(v->list);
    free(v->claims);
}
