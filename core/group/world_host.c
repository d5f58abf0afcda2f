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

void host_first_address(struct sockaddr_storage *address)
{
    struct ifaddrs *list = NULL;

    memset(address, 0, sizeof(*address));
    if (getifaddrs(&list))
        return;
    for (struct ifaddrs *i = list; i && !address->ss_family; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) &&
            !(i->ifa_flags & IFF_LOOPBACK))
            memcpy(address, i->ifa_addr, sizeof(struct sockaddr_in));
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
