/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts are this machine, and where the others are: see hosts.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "harness/hosts/hosts.h"

static socklen_t size_of(const struct sockaddr *a)
{
    return a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static bool numeric(const struct sockaddr *a, char text[HOSTS_ADDRESSES])
{
    return (a->sa_family == AF_INET || a->sa_family == AF_INET6) &&
           !getnameinfo(a, size_of(a), text, HOSTS_ADDRESSES, NULL, 0, NI_NUMERICHOST);
}

static bool is_loopback(const char *address)
{
    return !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

/* The first address of a name. 0 or getaddrinfo()'s code. */
static int look_up(const char *name, char address[HOSTS_ADDRESSES])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int code = getaddrinfo(name, NULL, &hints, &found);

    if (!code && !numeric(found->ai_addr, address))
        code = EAI_FAIL;
    if (found)
        freeaddrinfo(found);
    return code;
}

/* Does an interface of this machine have it? */
static bool is_own(const struct ifaddrs *own, const char *address)
{
    char text[HOSTS_ADDRESSES];

    for (; own; own = own->ifa_next)
        if (own->ifa_addr && numeric(own->ifa_addr, text) && !strcmp(text, address))
            return true;
    return false;
}

static bool is_own_name(const char *name)
{
    char own[HOSTS_NAME_MAX] = "";

    if (!strcmp(name, "localhost"))
        return true;
    if (gethostname(own, sizeof(own) - 1) || !*own)
        return false;
    size_t short_len = strcspn(own, ".");
    return !strcasecmp(name, own) ||
           (strlen(name) == short_len && !strncasecmp(name, own, short_len));
}

/* Another user of this machine is reached as another machine would be. */
void hosts_mark_here(struct hosts *hosts)
{
    struct ifaddrs *own = NULL;
    char address[HOSTS_ADDRESSES];

    if (getifaddrs(&own))
        own = NULL;
    for (size_t i = 0; i < hosts->n; i++) {
        struct host *h = &hosts->all[i];
        h->here = !strchr(h->name, '@') &&
                  (is_own_name(h->name) || (!look_up(h->name, address) && is_own(own, address)));
    }
    if (own)
        freeifaddrs(own);
}

static int look_up_one(struct host *h, bool alone, char *error, size_t len)
{
    const char *at = strchr(h->name, '@'), *name = at ? at + 1 : h->name;
    char address[HOSTS_ADDRESSES];
    int code = h->address ? 0 : look_up(name, address);

    if (code) {
        snprintf(error, len,
                 "host '%s': its address is not known here (%s): write it in the hosts file, '%s "
                 "address=ADDR'",
                 h->name, gai_strerror(code), h->name);
        return -EINVAL;
    }
    if (!h->address)
        h->address = strdup(address);
    if (!h->address) {
        snprintf(error, len, "out of memory");
        return -ENOMEM;
    }
    if (!is_loopback(h->address) || alone)
        return 0;
    snprintf(error, len,
             "host '%s': '%s' is an address of loopback, where no other host reaches it: write "
             "another in the hosts file, '%s address=ADDR'",
             h->name, h->address, h->name);
    return -EINVAL;
}

/* Loopback is right where all of them are one machine: its own names, or all on loopback. */
static bool all_on_loopback(const struct hosts *hosts)
{
    char address[HOSTS_ADDRESSES];

    for (size_t i = 0; i < hosts->n; i++) {
        const struct host *h = &hosts->all[i];
        const char *is = h->address;
        if (!is && !look_up(h->name, address))
            is = address;
        if (!h->here && (!is || !is_loopback(is)))
            return false;
    }
    return true;
}

int hosts_look_up(struct hosts *hosts, char *error, size_t len)
{
    bool alone = all_on_loopback(hosts);
    int err = 0;

    for (size_t i = 0; !err && i < hosts->n; i++)
        err = look_up_one(&hosts->all[i], alone, error, len);
    return err;
}
