/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of libraries that choose sockets: see sockets.h. */
#include "core/collective/sockets.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef bool is_fn(const char *word);

/* How many words of a list are such; of a NULL or empty one none. */
static unsigned count(const char *list, is_fn *is)
{
    unsigned n = 0;
    char word[64];

    for (const char *at = list ? list : ""; *at; at += *at != 0) {
        size_t len = strcspn(at, ",;: ");
        snprintf(word, sizeof(word), "%.*s", (int)(len < sizeof(word) ? len : 63), at);
        n += *word && is(word);
        at += len;
    }
    return n;
}

static bool is_any(const char *word, const char *const words[])
{
    for (; *words; words++)
        if (!strncmp(word, *words, strlen(*words)))
            return true;
    return false;
}

/* By their beginnings: rc_mlx5, verbs;ofi_rxm. */
static bool is_rdma(const char *word)
{
    static const char *const words[] = {
        "rc",  "dc",  "ud",  "ib",  "all", "gga",    "cuda_ib", "srd",   "efa",  "cxi",     "verbs",
        "psm", "opx", "ucx", "mlx", "uct", "openib", "ofi",     "usnic", "ugni", "portals", NULL};

    return strcmp(word, "ofi_rxm") != 0 && strcmp(word, "ofi_rxd") != 0 &&
           strncmp(word, "udp", 3) != 0 && is_any(word, words);
}

static bool is_sockets(const char *word)
{
    static const char *const words[] = {"tcp", "sockets", "udp", "net", NULL};

    return is_any(word, words);
}

static bool is_all_of_infiniband(const char *word)
{
    return !strcmp(word, "ib");
}

static bool only_sockets(const char *list)
{
    if (list && *list == '^')
        return count(list + 1, is_all_of_infiniband) > 0;
    return count(list, is_sockets) && !count(list, is_rdma);
}

static bool is_interface(const char *word)
{
    return if_nametoindex(word) != 0;
}

static bool is_word(const char *word)
{
    return *word != 0;
}

/* UCX's devices: a port is "mlx5_0:1". What is nothing here, a port without its number too, chooses nothing. */
static bool only_interfaces(const char *list)
{
    return list && count(list, is_interface) && count(list, is_interface) == count(list, is_word);
}

static const char *say(char *text, size_t len, const char *name, const char *value)
{
    snprintf(text, len, "%s=%.24s", name, value);
    return text;
}

static bool names_rdma(const char *btl)
{
    return *btl != '^' && count(btl, is_rdma);
}

const char *sockets_of_mpi(const char *pml, const char *btl, char *text, size_t len)
{
    static const char *const layers[] = {"UCX_TLS", "FI_PROVIDER", "I_MPI_OFI_PROVIDER"};
    const char *devices = getenv("UCX_NET_DEVICES");

    for (size_t i = 0; i < sizeof(layers) / sizeof(*layers); i++)
        if (only_sockets(getenv(layers[i])))
            return say(text, len, layers[i], getenv(layers[i]));
    if (only_interfaces(devices))
        return say(text, len, "UCX_NET_DEVICES", devices);
    if (*btl != '^' && only_sockets(btl))
        return say(text, len, "btl", btl);
    if (!strcmp(pml, "ob1") && !names_rdma(btl))
        return say(text, len, "pml", pml);
    text[0] = 0;
    return text;
}

const char *sockets_of_nccl(char *text, size_t len)
{
    const char *disable = getenv("NCCL_IB_DISABLE"), *net = getenv("NCCL_NET");

    if (disable && strtol(disable, NULL, 0) != 0)
        return say(text, len, "NCCL_IB_DISABLE", disable);
    if (net && !strcasecmp(net, "Socket"))
        return say(text, len, "NCCL_NET", net);
    text[0] = 0;
    return text;
}
