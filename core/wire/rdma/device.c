/* SPDX-License-Identifier: Apache-2.0 */
/* Which ports of which devices carry the bytes: rails. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/rdma/rdma.h"

/* By which address a port is reached. RoCE has a table of GIDs, one or more for each address of its
 * interface; the best: RoCE v2 with the channel's own IPv4 address, v2 with another one, v2 with an
 * IPv6 address, with a link-local one, then v1. */

#define GIDS_MAX 256

static bool is_v4(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/* The same address? */
static bool is_address(const union ibv_gid *gid, const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET)
        return is_v4(gid) && !memcmp(gid->raw + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
    return a->ss_family == AF_INET6 &&
           !memcmp(gid->raw, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
}

static int worth(const struct ibv_gid_entry *g, const struct sockaddr_storage *own)
{
    bool v2 = g->gid_type == IBV_GID_TYPE_ROCE_V2;

    if (!v2)
        return is_v4(&g->gid) ? 2 : 1;
    if (is_address(&g->gid, own))
        return 6;
    bool link_local = g->gid.raw[0] == 0xfe && (g->gid.raw[1] & 0xc0) == 0x80;
    return is_v4(&g->gid) ? 5 : link_local ? 3 : 4;
}

static unsigned read_table(struct ibv_context *context, unsigned port, struct ibv_gid_entry *table)
{
    struct ibv_gid_entry all[GIDS_MAX];
    ssize_t n = ibv_query_gid_table(context, all, GIDS_MAX, 0);
    unsigned kept = 0;

    for (ssize_t i = 0; i < n; i++)
        if (all[i].port_num == port)
            table[kept++] = all[i];
    return kept;
}

static const char *gid_address(const union ibv_gid *gid, char text[INET6_ADDRSTRLEN])
{
    if (is_v4(gid))
        return inet_ntop(AF_INET, gid->raw + 12, text, INET6_ADDRSTRLEN);
    return inet_ntop(AF_INET6, gid->raw, text, INET6_ADDRSTRLEN);
}

static const char *type_name(uint32_t type)
{
    return type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
           : type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                          : "IB";
}

/* "0: RoCE v2 fe80::1, 1: RoCE v2 10.0.0.1" */
static const char *table_text(const struct ibv_gid_entry *table, unsigned n, char *text, size_t len)
{
    char address[INET6_ADDRSTRLEN];
    size_t at = 0;

    snprintf(text, len, "none");
    for (unsigned i = 0; i < n && at < len; i++)
        at +=
            (size_t)snprintf(text + at, len - at, "%s%u: %s %s", i ? ", " : "", table[i].gid_index,
                             type_name(table[i].gid_type), gid_address(&table[i].gid, address));
    return text;
}

static const struct ibv_gid_entry *best(const struct ibv_gid_entry *table, unsigned n, int given,
                                        const struct sockaddr_storage *own)
{
    const struct ibv_gid_entry *found = NULL;

    for (unsigned i = 0; i < n; i++) {
        if (given >= 0 && (int)table[i].gid_index != given)
            continue;
        if (!found || worth(&table[i], own) > worth(found, own))
            found = &table[i];
    }
    return found;
}

/* The IPv4 address, else the IPv6 one, of an interface: by its number, or by its MAC (an iWARP GID
 * begins with it). */
static void interface_address(unsigned index, const uint8_t mac[6], struct sockaddr_storage *a)
{
    struct ifaddrs *all, *i;
    char name[IF_NAMESIZE] = "";

    if (getifaddrs(&all))
        return;
    if (index)
        if_indextoname(index, name);
    for (i = all; i && !*name; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET &&
            !memcmp(((struct sockaddr_ll *)(void *)i->ifa_addr)->sll_addr, mac, 6))
            snprintf(name, sizeof(name), "%s", i->ifa_name);
    for (i = all; i; i = i->ifa_next) {
        if (!i->ifa_addr || strcmp(i->ifa_name, name))
            continue;
        if (i->ifa_addr->sa_family == AF_INET)
            memcpy(a, i->ifa_addr, sizeof(struct sockaddr_in));
        else if (i->ifa_addr->sa_family == AF_INET6 && !a->ss_family)
            memcpy(a, i->ifa_addr, sizeof(struct sockaddr_in6));
    }
    freeifaddrs(all);
}

/* Each of a port's VLANs has GIDs of its own. */
static bool has_tag(const struct wire *w, const struct ibv_gid_entry *g)
{
    char name[IF_NAMESIZE];

    return g->ndev_ifindex && if_indextoname(g->ndev_ifindex, name) &&
           rdma_of(w)->core->has_tag(NULL, name);
}

/* How the port is addressed; fills in gid, gid_index, protocol, vlan and address. `own`:
 * the channel's address at this end. */
static int rdma_gid_choose(struct wire *w, struct rdma_rail *rail,
                           const struct sockaddr_storage *own)
{
    struct ibv_gid_entry table[GIDS_MAX];
    unsigned n = read_table(rail->own, rail->port, table);
    const struct ibv_gid_entry *g = best(table, n, w->options.rdma.gid_index, own);
    char text[240];

    if (!g &&
        (w->options.rdma.gid_index >= 0 || rail->port_attr.link_layer != IBV_LINK_LAYER_INFINIBAND))
        return w->options.rdma.gid_index >= 0
                   ? rdma_fail(w, -EINVAL, "'%s:%u' has no GID %d; it has %s", rail->device,
                               rail->port, w->options.rdma.gid_index,
                               table_text(table, n, text, sizeof(text)))
                   : rdma_fail(w, -ENODEV,
                               "'%s:%u' has no GID: give its interface an address, and bring it up",
                               rail->device, rail->port);
    if (g) {
        rail->gid = g->gid;
        rail->gid_index = g->gid_index;
        struct sockaddr_in *v4 = (struct sockaddr_in *)&rail->address;
        memset(&rail->address, 0, sizeof(rail->address));
        if (is_v4(&g->gid)) {
            v4->sin_family = AF_INET;
            memcpy(&v4->sin_addr, g->gid.raw + 12, 4);
        } else {
            interface_address(g->ndev_ifindex, g->gid.raw, &rail->address);
        }
    }
    if (rail->own->device->transport_type == IBV_TRANSPORT_IWARP)
        rail->protocol = NIC_IWARP;
    else if (rail->port_attr.link_layer != IBV_LINK_LAYER_ETHERNET)
        rail->protocol = NIC_INFINIBAND;
    else
        rail->protocol = g->gid_type == IBV_GID_TYPE_ROCE_V2 ? NIC_ROCE_V2 : NIC_ROCE_V1;
    rail->vlan = (rail->protocol == NIC_ROCE_V1 || rail->protocol == NIC_ROCE_V2) && has_tag(w, g);
    return 0;
}

/* RoCE, or InfiniBand without LIDs. */
static bool rdma_gid_in_use(const struct rdma_rail *rail)
{
    return rail->protocol != NIC_IWARP &&
           (rail->protocol != NIC_INFINIBAND || !rail->port_attr.lid);
}

static void rdma_gid_text(const struct rdma_rail *rail, char *text, size_t len)
{
    char address[INET6_ADDRSTRLEN];

    if (rail->protocol == NIC_IWARP)
        snprintf(text, len, "iWARP");
    else if (!rdma_gid_in_use(rail))
        snprintf(text, len, "LID %u", rail->port_attr.lid);
    else
        snprintf(text, len, "GID %u (%s, %s)", rail->gid_index,
                 type_name(rail->protocol == NIC_ROCE_V2   ? IBV_GID_TYPE_ROCE_V2
                           : rail->protocol == NIC_ROCE_V1 ? IBV_GID_TYPE_ROCE_V1
                                                           : IBV_GID_TYPE_IB),
                 gid_address(&rail->gid, address));
}

#define NO_DEVICE                                                                                  \
    "no RDMA device: 'ibv_devices' lists none; load the adapter's driver and ib_uverbs (in a "     \
    "container: --device=/dev/infiniband), or make a soft one: rdma link add rxe0 type rxe "       \
    "netdev "                                                                                      \
    "eth0"
#define NO_PROVIDER                                                                                \
    "no RDMA device can be opened, though the kernel has '%s': install ibverbs-providers, and "    \
    "let "                                                                                         \
    "this process reach /dev/infiniband"

static unsigned mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

/* The first name in /sys/class/infiniband; false: there is none. */
static bool kernel_has(char *name, size_t len)
{
    DIR *folder = opendir("/sys/class/infiniband");
    const struct dirent *entry;
    bool any = false;

    while (folder && !any && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.') {
            snprintf(name, len, "%.60s", entry->d_name);
            any = true;
        }
    if (folder)
        closedir(folder);
    return any;
}

/* Devices without reliable connections: EFA and usNIC. */
static bool has_connections(const struct ibv_device *d)
{
    return d->transport_type == IBV_TRANSPORT_IB || d->transport_type == IBV_TRANSPORT_IWARP;
}

static int open_device(struct wire *w, struct rdma_rail *rail, struct ibv_device *d)
{
    snprintf(rail->device, sizeof(rail->device), "%s", ibv_get_device_name(d));
    rail->own = ibv_open_device(d);
    if (!rail->own)
        return rdma_fail(w, errno == EACCES ? -EACCES : -ENODEV,
                         "'%s' cannot be opened: %s; let this user read and write /dev/infiniband",
                         rail->device, strerror(errno));
    rdma_sysfs_driver(rail);
    if (!has_connections(d))
        return rdma_fail(w, -EOPNOTSUPP,
                         "'%s' (%s) has no reliable connections (RC): it cannot do these verbs; "
                         "use tcp over its interface",
                         rail->device, rail->driver);
    if (ibv_query_device(rail->own, &rail->attr))
        return rdma_fail(w, -ENODEV, "'%s' does not say what it can do: %s", rail->device,
                         strerror(errno));
    return 0;
}

static int open_port(struct wire *w, struct rdma_rail *rail, unsigned port)
{
    rail->port = port;
    if (port < 1 || port > rail->attr.phys_port_cnt)
        return rdma_fail(w, -EINVAL, "'%s' has no port %u: it has 1..%u", rail->device, port,
                         rail->attr.phys_port_cnt);
    if (ibv_query_port(rail->own, (uint8_t)port, &rail->port_attr))
        return rdma_fail(w, -ENODEV, "port '%s:%u' does not answer: %s", rail->device, port,
                         strerror(errno));
    if (rail->port_attr.state != IBV_PORT_ACTIVE)
        return rdma_fail(w, -ENODEV,
                         "port '%s:%u' is not active but %s: bring its link up (and, for "
                         "InfiniBand, a subnet manager)",
                         rail->device, port, ibv_port_state_str(rail->port_attr.state));
    return 0;
}

static int choose_mtu(struct wire *w, struct rdma_rail *rail)
{
    unsigned active = mtu_bytes(rail->port_attr.active_mtu), asked = w->options.rdma.mtu;

    if (asked && (asked < 256 || asked > 4096 || asked & (asked - 1)))
        return rdma_fail(w, -EINVAL, "a path MTU is 256, 512, 1024, 2048 or 4096, not %u", asked);
    if (asked > active)
        return rdma_fail(w, -EINVAL,
                         "MTU %u is more than the active %u of '%s:%u': ask for less, or raise the "
                         "interface's",
                         asked, active, rail->device, rail->port);
    rail->mtu_bytes = asked ? asked : active;
    return 0;
}

static void describe(const struct rdma_rail *rail, struct nic_rail *out)
{
    char gid[96];

    *out = (struct nic_rail){.node = rdma_sysfs_node(rail),
                             .protocol = (uint8_t)rail->protocol,
                             .mtu_bytes = rail->mtu_bytes,
                             .ipv6 = rail->protocol == NIC_ROCE_V2 && !is_v4(&rail->gid),
                             .vlan = rail->vlan};
    snprintf(out->name, sizeof(out->name), "%.48s:%u", rail->device, rail->port);
    if (rdma_gid_in_use(rail))
        out->gid = (uint16_t)(rail->gid_index + 1);
    rdma_gid_text(rail, gid, sizeof(gid));
    snprintf(out->text, sizeof(out->text), "%.80s, MTU %u, %s, firmware %.24s", gid,
             rail->mtu_bytes, *rail->driver ? rail->driver : "driver unknown", rail->attr.fw_ver);
}

static int check_verb(struct wire *w, const struct rdma_rail *rail)
{
    if (rail->protocol != NIC_IWARP)
        return 0;
    if (w->options.rdma.verb == RDMA_WRITE_IMM)
        return rdma_fail(w, -EOPNOTSUPP,
                         "'%s' is iWARP, which has no write with immediate data: %s", rail->device,
                         w->options.windows ? "use write or send" : "use tcp over its interface");
    if (w->options.rdma.mtu || w->options.rdma.gid_index >= 0)
        return rdma_fail(w, -EOPNOTSUPP, "'%s' is iWARP, which has neither path MTU nor GIDs",
                         rail->device);
    return 0;
}

/* The port stands: how it is addressed, its MTU, its protection domain. */
static int finish(struct wire *w, struct rdma_rail *rail)
{
    struct rdma *r = rdma_of(w);
    int err = rdma_gid_choose(w, rail, &r->own);

    if (!err)
        err = check_verb(w, rail);
    if (!err)
        err = choose_mtu(w, rail);
    if (err)
        return err;
    r->by_cm |= rail->protocol == NIC_IWARP;
    rail->context = rail->own;
    if (r->by_cm && (err = rdma_cm_open(w, rail)) != 0)
        return err;
    fcntl(rail->context->async_fd, F_SETFL, O_NONBLOCK);
    rail->pd = ibv_alloc_pd(rail->context);
    if (!rail->pd)
        return rdma_no_memory(w, "a protection domain", rail, 0, errno);
    describe(rail, &w->rails[w->n_rails]);
    w->n_rails++;
    return 0;
}

/* "mlx5_0:1": the port may be left out. */
static int open_named(struct wire *w, struct rdma_rail *rail, struct ibv_device **list, int n,
                      const char *name)
{
    const char *colon = strchr(name, ':');
    size_t len = colon ? (size_t)(colon - name) : strlen(name);
    char *end = NULL;
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 1;

    if (end && (*end || end == colon + 1))
        return rdma_fail(w, -EINVAL, "'%s' is no port: DEVICE or DEVICE:PORT", name);
    for (int i = 0; i < n; i++) {
        if (strncmp(ibv_get_device_name(list[i]), name, len) || ibv_get_device_name(list[i])[len])
            continue;
        int err = open_device(w, rail, list[i]);
        return err ? err : open_port(w, rail, (unsigned)port);
    }
    char have[160];
    size_t at = 0;
    have[0] = 0;
    for (int i = 0; i < n && at < sizeof(have); i++)
        at += (size_t)snprintf(have + at, sizeof(have) - at, "%s%s", i ? ", " : "",
                               ibv_get_device_name(list[i]));
    return rdma_fail(w, -ENODEV, "there is no RDMA device '%.*s': there are %s", (int)len, name,
                     have);
}

/* How good an active port is for an end that was told none; 0: not at all. */
static int worth_of_rail(struct wire *w, const struct rdma_rail *rail, unsigned port,
                         const struct sockaddr_storage *own)
{
    struct ibv_port_attr attr;

    if (ibv_query_port(rail->own, (uint8_t)port, &attr) || attr.state != IBV_PORT_ACTIVE)
        return 0;
    struct ibv_gid_entry table[GIDS_MAX];
    bool has = false;
    for (unsigned i = read_table(rail->own, port, table); i-- > 0 && !has;)
        has = is_address(&table[i].gid, own);
    return 1 + (w->options.node >= 0 && rdma_sysfs_node(rail) == w->options.node) + 2 * has;
}

/* The best active port of all devices; in `name` as the user would ask for it. */
static bool find_best(struct wire *w, struct ibv_device **list, int n,
                      const struct sockaddr_storage *own, char *name, size_t len)
{
    int most = 0;

    for (int i = 0; i < n; i++) {
        struct rdma_rail rail = {.own = has_connections(list[i]) ? ibv_open_device(list[i]) : NULL};
        if (!rail.own)
            continue;
        snprintf(rail.device, sizeof(rail.device), "%s", ibv_get_device_name(list[i]));
        if (ibv_query_device(rail.own, &rail.attr))
            rail.attr.phys_port_cnt = 0;
        for (unsigned port = 1; port <= rail.attr.phys_port_cnt; port++) {
            int value = worth_of_rail(w, &rail, port, own);
            if (value > most)
                snprintf(name, len, "%.48s:%u", rail.device, port);
            most = value > most ? value : most;
        }
        ibv_close_device(rail.own);
    }
    return most > 0;
}

static int open_all(struct wire *w, struct ibv_device **list, int n)
{
    struct rdma *r = rdma_of(w);
    char names[128], *save = NULL;
    int err = 0;

    snprintf(names, sizeof(names), "%s", w->options.device);
    if (!*names && !find_best(w, list, n, &r->own, names, sizeof(names))) {
        char any[64];
        snprintf(any, sizeof(any), "%s", ibv_get_device_name(list[0]));
        err = open_named(w, &r->rails[r->n_rails++], list, n, any); /* says what is wrong */
        return err ? err : rdma_fail(w, -ENODEV, "no port of any RDMA device is active");
    }
    for (char *name = strtok_r(names, "+", &save); name && !err;
         name = strtok_r(NULL, "+", &save)) {
        if (r->n_rails == NIC_RAILS_MAX)
            return rdma_fail(w, -EINVAL, "more than %d devices", NIC_RAILS_MAX);
        struct rdma_rail *rail = &r->rails[r->n_rails++];
        err = open_named(w, rail, list, n, name);
        if (!err)
            err = finish(w, rail);
    }
    return err;
}

int rdma_devices_open(struct wire *w)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    char name[64];
    int err;

    if (list && n)
        err = open_all(w, list, n);
    else if (kernel_has(name, sizeof(name)))
        err = rdma_fail(w, -ENODEV, NO_PROVIDER, name);
    else
        err = rdma_fail(w, -ENODEV, NO_DEVICE);
    if (list)
        ibv_free_device_list(list);
    return err;
}

void rdma_devices_close(struct rdma *r)
{
    for (unsigned i = 0; i < r->n_rails; i++) {
        struct rdma_rail *rail = &r->rails[i];
        if (rail->pd)
            ibv_dealloc_pd(rail->pd);
        if (rail->anchor)
            rdma_destroy_id(rail->anchor);
        if (rail->own)
            ibv_close_device(rail->own);
    }
}

static void say_port(const struct rdma_rail *rail, unsigned port, backend_say_fn *say, void *arg)
{
    char name[64], text[160];
    struct backend b = {.name = name};
    struct ibv_port_attr attr;

    snprintf(name, sizeof(name), "%.48s:%u", rail->device, port);
    if (ibv_query_port(rail->own, (uint8_t)port, &attr)) {
        b.why = "its state cannot be read";
    } else if (attr.state != IBV_PORT_ACTIVE) {
        snprintf(text, sizeof(text), "port is %s", ibv_port_state_str(attr.state));
        b.why = text;
    } else {
        snprintf(text, sizeof(text), "%s, %s, MTU %u",
                 rail->own->device->transport_type == IBV_TRANSPORT_IWARP ? "iWARP"
                 : attr.link_layer == IBV_LINK_LAYER_ETHERNET             ? "RoCE"
                                                                          : "InfiniBand",
                 rail->driver, mtu_bytes(attr.active_mtu));
        b.state = BACKEND_PRESENT;
        b.what = text;
    }
    say(arg, &b);
}

void rdma_devices_say(backend_say_fn *say, void *arg)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);

    if (!list || !n)
        say(arg, &(struct backend){.name = "rdma", .why = NO_DEVICE});
    for (int i = 0; list && i < n; i++) {
        struct rdma_rail rail = {.own = ibv_open_device(list[i])};
        snprintf(rail.device, sizeof(rail.device), "%s", ibv_get_device_name(list[i]));
        if (!rail.own || ibv_query_device(rail.own, &rail.attr)) {
            say(arg, &(struct backend){.name = rail.device,
                                       .why = "it cannot be opened; see /dev/infiniband"});
        } else {
            rdma_sysfs_driver(&rail);
            if (!has_connections(list[i]))
                say(arg, &(struct backend){.name = rail.device,
                                           .why = "it has no reliable connections (RC)"});
            for (unsigned p = 1; has_connections(list[i]) && p <= rail.attr.phys_port_cnt; p++)
                say_port(&rail, p, say, arg);
        }
        if (rail.own)
            ibv_close_device(rail.own);
    }
    if (list)
        ibv_free_device_list(list);
}
