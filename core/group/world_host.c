/* SPDX-License-Identifier: Apache-2.0 */
/* Where in the network this process is: see world_host.h. */
#include "core/group/world_host.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

void host_first_address(struct sockaddr_storage *address)
{
    struct ifaddrs *list = NULL;
    int best = 0;

    memset(address, 0, sizeof(*address));
    if (getifaddrs(&list))
        return;
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (worth(i) <= best)
            continue;
        best = worth(i);
        memcpy(address, i->ifa_addr,
               best == 3 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    }
    freeifaddrs(list);
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
