/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of libraries that choose sockets: see library.h. */
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/collective/library.h"

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
        "rc",  "dc",    "ud",  "ib",    "all",  "gga",     "cuda_ib", "srd",    "efa",
        "cxi", "verbs", "psm", "opx",   "ucx",  "mlx",     "uct",     "openib", "ofi",
        "ofa", "dapl",  "tmi", "usnic", "ugni", "portals", NULL};

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

static const char *say(char *text, size_t len, const char *name, const char *value)
{
    snprintf(text, len, "%s=%.24s", name, value);
    return text;
}

/* The end of the list, which is gone, may name RDMA. */
#define CUT(text) (strlen(text) >= sizeof(text) - 1)

static bool of_ucx(char *text, size_t len)
{
    const char *layers = getenv("UCX_TLS"), *devices = getenv("UCX_NET_DEVICES");

    if (only_sockets(layers))
        say(text, len, "UCX_TLS", layers);
    /* UCX's devices: a port is "mlx5_0:1". What is nothing here, a port without its number too,
     * chooses nothing. */
    else if (devices && count(devices, is_interface) &&
             count(devices, is_interface) == count(devices, is_word))
        say(text, len, "UCX_NET_DEVICES", devices);
    return text[0] != 0;
}

static bool of_libfabric(const struct mpi_settings *s, char *text, size_t len)
{
    static const char *const names[] = {"FI_PROVIDER", "I_MPI_OFI_PROVIDER",
                                        "MPIR_CVAR_OFI_USE_PROVIDER"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !text[0]; i++)
        if (only_sockets(getenv(names[i])))
            say(text, len, names[i], getenv(names[i]));
    if (!text[0] && !CUT(s->providers) && only_sockets(s->providers))
        say(text, len, "mtl_ofi_provider_include", s->providers);
    return text[0] != 0;
}

static bool of_btl(const struct mpi_settings *s, char *text, size_t len)
{
    if (CUT(s->btl))
        return false;
    if (*s->btl != '^' && only_sockets(s->btl))
        say(text, len, "btl", s->btl);
    else if (!strcmp(s->pml, "ob1") && (*s->btl == '^' || !count(s->btl, is_rdma)))
        say(text, len, "pml", s->pml);
    return text[0] != 0;
}

/* Open MPI's pml ucx is UCX alone, cm libfabric or another library of its kind, ob1 the btls. */
const char *sockets_of_mpi(const struct mpi_settings *s, char *text, size_t len)
{
    const char *fabrics = getenv("I_MPI_FABRICS");
    bool ucx = !strcmp(s->pml, "ucx"), cm = !strcmp(s->pml, "cm"), ob1 = !strcmp(s->pml, "ob1");

    text[0] = 0;
    if (CUT(s->pml)) /* which layer heeds what is not known */
        return text;
    if ((cm || ob1 || !of_ucx(text, len)) && (ucx || ob1 || !of_libfabric(s, text, len)) &&
        (ucx || cm || !of_btl(s, text, len)) && !*s->pml && only_sockets(fabrics))
        say(text, len, "I_MPI_FABRICS", fabrics);
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
