/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By which address a port is reached. RoCE has a table of GIDs, one or more for each address of its interface;
 * the best: RoCE v2 with the channel's own IPv4 address, v2 with another one, v2 with an IPv6 address, with
 * a link-local one, then v1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <string.h>

#include "core/wire/rdma/rdma.h"

#define GIDS_MAX 256

static bool is_v4(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return !memcmp(gid->raw, mapped, sizeof(mapped));
}

static bool is_link_local(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
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
    return is_v4(&g->gid) ? 5 : is_link_local(&g->gid) ? 3 : 4;
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

bool rdma_gid_has(struct ibv_context *context, unsigned port, const struct sockaddr_storage *own)
{
    struct ibv_gid_entry table[GIDS_MAX];

    for (unsigned i = read_table(context, port, table); i-- > 0;)
        if (is_address(&table[i].gid, own))
            return true;
    return false;
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

static int no_such(struct net_end *e, const struct rdma_rail *rail,
                   const struct ibv_gid_entry *table, unsigned n)
{
    char text[240];

    return rdma_fail(e, -EINVAL, "'%s:%u' has no GID %d; it has %s", rail->device, rail->port,
                     e->point->rdma.gid_index, table_text(table, n, text, sizeof(text)));
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

/* The IPv4 address, else the IPv6 one, of an interface: by its number, or by its MAC (an iWARP GID begins
 * with it). */
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

static void find_address(struct rdma_rail *rail, const struct ibv_gid_entry *g)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&rail->address;

    memset(&rail->address, 0, sizeof(rail->address));
    if (is_v4(&g->gid)) {
        v4->sin_family = AF_INET;
        memcpy(&v4->sin_addr, g->gid.raw + 12, 4);
    } else {
        interface_address(g->ndev_ifindex, g->gid.raw, &rail->address);
    }
}

/* Each of a port's VLANs has GIDs of its own. */
static bool has_tag(const struct net_end *e, const struct ibv_gid_entry *g)
{
    char name[IF_NAMESIZE];

    return g->ndev_ifindex && if_indextoname(g->ndev_ifindex, name) &&
           rdma_of(e)->core->has_tag(NULL, name);
}

int rdma_gid_choose(struct net_end *e, struct rdma_rail *rail, const struct sockaddr_storage *own)
{
    struct ibv_gid_entry table[GIDS_MAX];
    unsigned n = read_table(rail->own, rail->port, table);
    const struct ibv_gid_entry *g = best(table, n, e->point->rdma.gid_index, own);

    if (!g &&
        (e->point->rdma.gid_index >= 0 || rail->port_attr.link_layer != IBV_LINK_LAYER_INFINIBAND))
        return e->point->rdma.gid_index >= 0
                   ? no_such(e, rail, table, n)
                   : rdma_fail(e, -ENODEV,
                               "'%s:%u' has no GID: give its interface an address, and bring it up",
                               rail->device, rail->port);
    if (g) {
        rail->gid = g->gid;
        rail->gid_index = g->gid_index;
        find_address(rail, g);
    }
    if (rail->own->device->transport_type == IBV_TRANSPORT_IWARP)
        rail->protocol = RDMA_IWARP;
    else if (rail->port_attr.link_layer != IBV_LINK_LAYER_ETHERNET)
        rail->protocol = RDMA_INFINIBAND;
    else
        rail->protocol = g->gid_type == IBV_GID_TYPE_ROCE_V2 ? RDMA_ROCE_2 : RDMA_ROCE_1;
    rail->vlan = (rail->protocol == RDMA_ROCE_1 || rail->protocol == RDMA_ROCE_2) && has_tag(e, g);
    return 0;
}

bool rdma_gid_in_use(const struct rdma_rail *rail)
{
    return rail->protocol != RDMA_IWARP &&
           (rail->protocol != RDMA_INFINIBAND || !rail->port_attr.lid);
}

void rdma_gid_text(const struct rdma_rail *rail, char *text, size_t len)
{
    char address[INET6_ADDRSTRLEN];

    if (rail->protocol == RDMA_IWARP)
        snprintf(text, len, "iWARP");
    else if (!rdma_gid_in_use(rail))
        snprintf(text, len, "LID %u", rail->port_attr.lid);
    else
        snprintf(text, len, "GID %u (%s, %s)", rail->gid_index,
                 type_name(rail->protocol == RDMA_ROCE_2   ? IBV_GID_TYPE_ROCE_V2
                           : rail->protocol == RDMA_ROCE_1 ? IBV_GID_TYPE_ROCE_V1
                                                           : IBV_GID_TYPE_IB),
                 gid_address(&rail->gid, address));
}
