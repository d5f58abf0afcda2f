/* SPDX-License-Identifier: Apache-2.0 */
/* From addresses to interfaces: see nic.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/hw/nic.h"

struct address {
    int family; /* AF_UNSPEC: none */
    size_t len;
    unsigned char bytes[16];
};

/* IPv4 in IPv6's clothes is IPv4. */
static struct address address_of(const struct sockaddr *s)
{
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct address a = {.family = s ? s->sa_family : AF_UNSPEC};

    if (a.family == AF_INET) {
        a.len = 4;
        memcpy(a.bytes, &((const struct sockaddr_in *)(const void *)s)->sin_addr, 4);
    } else if (a.family == AF_INET6) {
        a.len = 16;
        memcpy(a.bytes, &((const struct sockaddr_in6 *)(const void *)s)->sin6_addr, 16);
    } else
        a.family = AF_UNSPEC;
    if (a.len == 16 && !memcmp(a.bytes, mapped, 12)) {
        a.family = AF_INET;
        a.len = 4;
        memmove(a.bytes, a.bytes + 12, 4);
    }
    return a;
}

/* Of a loopback interface every address of its network is this machine's. */
static bool has_address(const struct ifaddrs *i, const struct address *a)
{
    struct address own = address_of(i->ifa_addr), mask = address_of(i->ifa_netmask);
    bool whole_net = (i->ifa_flags & IFF_LOOPBACK) && own.family == AF_INET && mask.len == 4;

    if (own.family != a->family)
        return false;
    for (size_t k = 0; k < a->len; k++)
        if ((own.bytes[k] ^ a->bytes[k]) & (whole_net ? mask.bytes[k] : 0xff))
            return false;
    return true;
}

/* A link-local address says which interface it is on. */
static unsigned scope_of(const struct sockaddr *s)
{
    return s && s->sa_family == AF_INET6
               ? ((const struct sockaddr_in6 *)(const void *)s)->sin6_scope_id
               : 0;
}

int nic_of_address(const struct sockaddr *address, char *name, size_t len)
{
    struct address a = address_of(address);
    struct ifaddrs *all = NULL;
    unsigned scope = scope_of(address);
    char scoped[IF_NAMESIZE] = "";
    int rc = -ENODEV;

    if (a.family == AF_UNSPEC)
        return -EINVAL;
    if (scope && !if_indextoname(scope, scoped))
        return -ENODEV;
    if (getifaddrs(&all))
        return -errno;
    for (const struct ifaddrs *i = all; i && rc; i = i->ifa_next)
        if (i->ifa_addr && has_address(i, &a) && (!scope || !strcmp(i->ifa_name, scoped))) {
            snprintf(name, len, "%s", i->ifa_name);
            rc = 0;
        }
    freeifaddrs(all);
    return rc;
}

static int carrier(const struct ifaddrs *all, const char *name)
{
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        if (!strcmp(i->ifa_name, name))
            return i->ifa_flags & IFF_RUNNING ? 0 : 1;
    return -ENODEV;
}

int nic_is_down(const char *name)
{
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all))
        return -errno;
    int down = carrier(all, name);
    freeifaddrs(all);
    return down;
}

bool nic_is_cut(const struct sockaddr *own, char *why, size_t len)
{
    char name[IF_NAMESIZE];
    int err = nic_of_address(own, name, sizeof(name));

    if (!err && nic_is_down(name) == 1)
        snprintf(why, len, "its interface '%s' is down", name);
    else if (err == -ENODEV)
        snprintf(why, len, "no interface of it has its address any more");
    else
        return false;
    return true;
}

struct route_request {
    struct nlmsghdr header;
    struct rtmsg route;
    char attributes[128];
};

static void add_attribute(struct route_request *q, int type, const void *data, size_t len)
{
    struct rtattr *a = (struct rtattr *)(void *)((char *)q + NLMSG_ALIGN(q->header.nlmsg_len));

    a->rta_type = (unsigned short)type;
    a->rta_len = (unsigned short)RTA_LENGTH(len);
    memcpy(RTA_DATA(a), data, len);
    q->header.nlmsg_len = NLMSG_ALIGN(q->header.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/* The index of the interface in an answer; 0: none. */
static unsigned answered_interface(const char *answer, ssize_t n, int *rc)
{
    const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)answer;
    const struct rtattr *a;
    int left;

    *rc = -EPROTO;
    if (n < (ssize_t)sizeof(*h) || !NLMSG_OK(h, (size_t)n))
        return 0;
    if (h->nlmsg_type == NLMSG_ERROR) {
        *rc = ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
        return 0;
    }
    *rc = 0;
    a = RTM_RTA((struct rtmsg *)NLMSG_DATA(h));
    left = (int)RTM_PAYLOAD(h);
    for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
        if (a->rta_type == RTA_OIF)
            return *(const unsigned *)RTA_DATA(a);
    return 0;
}

static int ask(const struct route_request *q, unsigned *index)
{
    char answer[4096] __attribute__((aligned(NLMSG_ALIGNTO)));
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), rc = 0;
    ssize_t n;

    if (fd < 0)
        return -errno;
    if (send(fd, q, q->header.nlmsg_len, 0) < 0 || (n = recv(fd, answer, sizeof(answer), 0)) < 0)
        rc = -errno;
    else
        *index = answered_interface(answer, n, &rc);
    close(fd);
    return rc;
}

int nic_of_route(const struct sockaddr *local, const struct sockaddr *peer, char *name, size_t len)
{
    struct address to = address_of(peer), from = address_of(local);
    struct route_request q = {.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                                         .nlmsg_type = RTM_GETROUTE,
                                         .nlmsg_flags = NLM_F_REQUEST},
                              .route = {.rtm_family = (unsigned char)to.family,
                                        .rtm_dst_len = (unsigned char)(8 * to.len)}};
    unsigned scope = scope_of(peer), index = 0;
    char found[IF_NAMESIZE];
    int rc;

    if (to.family == AF_UNSPEC)
        return -EINVAL;
    add_attribute(&q, RTA_DST, to.bytes, to.len);
    if (from.family == to.family) {
        q.route.rtm_src_len = (unsigned char)(8 * from.len);
        add_attribute(&q, RTA_SRC, from.bytes, from.len);
    }
    if (scope)
        add_attribute(&q, RTA_OIF, &scope, sizeof(scope));
    rc = ask(&q, &index);
    if (rc)
        return rc;
    if (!index || !if_indextoname(index, found))
        return -ENODEV;
    snprintf(name, len, "%s", found);
    return 0;
}
