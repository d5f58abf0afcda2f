/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of interfaces and RDMA ports: see counters.h. */
#include "core/hw/counters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/hw/nic_sys.h"

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

/* "  eth0: bytes packets errs drop fifo frame compressed multicast bytes packets ..."; in comes first. */
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

/* The kernel keeps what it read of a device's hw_counters for `lifespan` ms, whoever asked for it. */
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

static int add_device(void *arg, const char *device)
{
    struct port_place *p = arg;

    p->device = device;
    return sys_list(p->root, add_port, p, "sys/class/infiniband/%s/ports", device);
}

static int read_all(struct port_place *p)
{
    int rc = read_interfaces(p->c, p->root);

    return rc ? rc : sys_list(p->root, add_device, p, "sys/class/infiniband");
}

/* The kernel counts that time in whole jiffies, of 10 ms at most, and a reading is still the old one in the last of them. */
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

const struct counter *counters_find(const struct counters *c, const char *name)
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
