/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses of this machine the connections start from: see tcp.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/wire/tcp/tcp.h"

static const void *bytes_of(const struct sockaddr *a)
{
    return a->sa_family == AF_INET
               ? (const void *)&((const struct sockaddr_in *)(const void *)a)->sin_addr
               : (const void *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
}

static bool is_ip(const struct sockaddr *a)
{
    return a && (a->sa_family == AF_INET || a->sa_family == AF_INET6);
}

/* All of 127.0.0.0/8 belongs to the loopback interface, which lists one address of it. */
static bool is_loopback(const struct sockaddr *a)
{
    return a->sa_family == AF_INET && *(const uint8_t *)bytes_of(a) == 127;
}

static socklen_t length_of(const struct sockaddr *a)
{
    return a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

const char *tcp_address_text(const struct sockaddr_storage *a, char *text, size_t len)
{
    char host[64] = "?", port[8] = "?";

    getnameinfo((const struct sockaddr *)a, length_of((const struct sockaddr *)a), host,
                sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(text, len, "%s port %s", host, port);
    return text;
}

/* The interface that has this address; NULL: none of this machine. */
static const struct ifaddrs *owner_of(const struct ifaddrs *all, const struct sockaddr *a)
{
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        if ((is_ip(i->ifa_addr) && is_ip(a) && i->ifa_addr->sa_family == a->sa_family &&
             !memcmp(bytes_of(i->ifa_addr), bytes_of(a), a->sa_family == AF_INET ? 4 : 16)) ||
            (is_loopback(a) && is_ip(i->ifa_addr) && i->ifa_flags & IFF_LOOPBACK))
            return i;
    return NULL;
}

/* "lo eth0": interfaces with an address, each once. */
static const char *list_interfaces(const struct ifaddrs *all, char *text, size_t len)
{
    size_t at = 0;

    text[0] = 0;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        const struct ifaddrs *before = all;
        if (!is_ip(i->ifa_addr))
            continue;
        while (before != i && !(is_ip(before->ifa_addr) && !strcmp(before->ifa_name, i->ifa_name)))
            before = before->ifa_next;
        if (before == i && at < len)
            at += (size_t)snprintf(text + at, len - at, "%s%s", at ? " " : "", i->ifa_name);
    }
    return text;
}

static int take(struct wire *w, const struct sockaddr *a, const char *interface, bool named)
{
    struct tcp_rail *rail = &tcp_of(w)->rails[w->n_rails];

    if (w->n_rails == NIC_RAILS_MAX)
        return wire_fail(w, -EINVAL, "at most %d interfaces can be used at once", NIC_RAILS_MAX);
    memcpy(&rail->address, a, length_of(a));
    if (a->sa_family == AF_INET)
        ((struct sockaddr_in *)&rail->address)->sin_port = 0;
    else
        ((struct sockaddr_in6 *)&rail->address)->sin6_port = 0;
    rail->address_bytes = length_of(a);
    rail->named = named;
    rail->listener = -1;
    snprintf(rail->interface, sizeof(rail->interface), "%s", interface);
    w->n_rails++;
    return 0;
}

/* The address of an interface: of the world's family where it is known, IPv4 before IPv6, none
 * that holds for its link alone where there is another. */
static const struct ifaddrs *best_address(const struct ifaddrs *all, const char *name, int family)
{
    const struct ifaddrs *best = NULL;
    int best_rank = 0;

    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (!is_ip(i->ifa_addr) || strcmp(i->ifa_name, name) != 0 ||
            (family && i->ifa_addr->sa_family != family))
            continue;
        bool link = i->ifa_addr->sa_family == AF_INET6 &&
                    IN6_IS_ADDR_LINKLOCAL(
                        &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr);
        int rank = i->ifa_addr->sa_family == AF_INET ? 3 : link ? 1 : 2;
        if (rank > best_rank) {
            best = i;
            best_rank = rank;
        }
    }
    return best;
}

static int take_interface(struct wire *w, const struct ifaddrs *all, const char *name, int family)
{
    const struct ifaddrs *i = best_address(all, name, family);
    const char *kind = family == AF_INET ? "IPv4 " : family == AF_INET6 ? "IPv6 " : "";

    for (const struct ifaddrs *any = all; any; any = any->ifa_next)
        if (!strcmp(any->ifa_name, name) && !(any->ifa_flags & IFF_UP))
            return wire_fail(w, -EINVAL, "interface '%s' is down: ip link set %s up", name, name);
    if (!i)
        return wire_fail(w, -EINVAL, "interface '%s' has no %saddress", name, kind);
    return take(w, i->ifa_addr, name, true);
}

/* Of an address that no interface has. The loopback interface has its own only while it is up. */
static int no_owner(struct wire *w, const struct ifaddrs *all, const struct sockaddr *a)
{
    char host[64] = "?", names[160];

    getnameinfo(a, length_of(a), host, sizeof(host), NULL, 0, NI_NUMERICHOST);
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        if (is_loopback(a) && i->ifa_flags & IFF_LOOPBACK && !(i->ifa_flags & IFF_UP))
            return wire_fail(w, -ENODEV, "interface '%s' is down: ip link set %s up", i->ifa_name,
                             i->ifa_name);
    return wire_fail(w, -EINVAL, "'%s' is no address of this machine: it has %s", host,
                     list_interfaces(all, names, sizeof(names)));
}

/* An interface's name, or an address of one. */
static int take_device(struct wire *w, const struct ifaddrs *all, const char *text, int family)
{
    struct addrinfo want = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found = NULL;
    char names[160];

    if (if_nametoindex(text))
        return take_interface(w, all, text, family);
    if (getaddrinfo(text, NULL, &want, &found))
        return wire_fail(w, -EINVAL, "no network interface '%s' here: there are %s", text,
                         list_interfaces(all, names, sizeof(names)));
    const struct ifaddrs *owner = owner_of(all, found->ai_addr);
    int err =
        owner ? take(w, found->ai_addr, owner->ifa_name, false) : no_owner(w, all, found->ai_addr);
    freeaddrinfo(found);
    return err;
}

/* As the world has them. Between two addresses of one machine that is the loopback interface,
 * whatever interface has the addresses. */
static int take_chosen(struct wire *w, const struct ifaddrs *all, const struct tcp_route *route)
{
    const struct sockaddr *a = (const struct sockaddr *)&route->own;
    const struct ifaddrs *owner = owner_of(all, a);

    if (!owner)
        return no_owner(w, all, a);
    if (owner_of(all, (const struct sockaddr *)&route->peer))
        for (const struct ifaddrs *i = all; i; i = i->ifa_next)
            if (i->ifa_flags & IFF_LOOPBACK)
                return take(w, a, i->ifa_name, false);
    return take(w, a, owner->ifa_name, false);
}

static uint32_t mtu_of(const char *interface)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int mtu = 0;

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", interface);
    if (fd >= 0 && !ioctl(fd, SIOCGIFMTU, &request))
        mtu = request.ifr_mtu;
    if (fd >= 0)
        close(fd);
    return mtu > 0 ? (uint32_t)mtu : 0;
}

static int take_all(struct wire *w, const struct ifaddrs *all, const struct tcp_route *route)
{
    char list[128], *rest = NULL;
    int err = 0;

    if (!route->devices[0])
        return take_chosen(w, all, route);
    if (strlen(route->devices) >= sizeof(list))
        return wire_fail(w, -EINVAL, "'%.80s' is no interface", route->devices);
    snprintf(list, sizeof(list), "%s", route->devices);
    for (char *one = strtok_r(list, "+", &rest); one && !err; one = strtok_r(NULL, "+", &rest))
        err = take_device(w, all, one, route->own.ss_family);
    return err;
}

int tcp_find_rails(struct wire *w, const struct tcp_route *route)
{
    unsigned first = w->n_rails;
    struct ifaddrs *all = NULL;

    int err = getifaddrs(&all)
                  ? wire_fail(w, -errno, "network interfaces cannot be listed: %s", strerror(errno))
                  : take_all(w, all, route);
    freeifaddrs(all);
    for (unsigned i = first; i < w->n_rails && !err; i++) {
        struct nic_rail *rail = &w->rails[i];
        *rail = (struct nic_rail){.node = -1,
                                  .protocol = NIC_TCP,
                                  .ipv6 = tcp_of(w)->rails[i].address.ss_family == AF_INET6};
        snprintf(rail->name, sizeof(rail->name), "%s", tcp_of(w)->rails[i].interface);
        rail->mtu_bytes = mtu_of(rail->name);
        nic_fill(NULL, rail, rail->name);
    }
    return err;
}

void tcp_backends(backend_say_fn *say, void *arg)
{
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all))
        return;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        char host[64], what[128];
        if (!is_ip(i->ifa_addr) || best_address(all, i->ifa_name, 0) != i ||
            getnameinfo(i->ifa_addr, length_of(i->ifa_addr), host, sizeof(host), NULL, 0,
                        NI_NUMERICHOST))
            continue;
        snprintf(what, sizeof(what), "%s, MTU %u", host, mtu_of(i->ifa_name));
        say(arg, &(struct backend){.name = i->ifa_name,
                                   .state = i->ifa_flags & IFF_UP ? BACKEND_PRESENT : BACKEND_DOWN,
                                   .what = what});
    }
    freeifaddrs(all);
}
