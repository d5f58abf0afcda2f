/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's debug output, switched on, read and switched off: see nccl_log.h. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/collective/nccl_rank.h"
#include "core/row.h"

#define TEXT_MAX (4u << 20) /* of many channels and peers */

/* Ours, NCCL's in its environment; older versions say numbers, which count from 0 in this order. */
static const struct choice {
    const char *name, *nccl;
} algorithms[] = {{"tree", "Tree"},
                  {"ring", "Ring"},
                  {"collnet-direct", "CollnetDirect"},
                  {"collnet-chain", "CollnetChain"},
                  {"nvls", "NVLS"},
                  {"nvls-tree", "NVLSTree"},
                  {"pat", "PAT"}},
  protocols[] = {{"ll", "LL"}, {"ll128", "LL128"}, {"simple", "Simple"}};
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

int nccl_log_algorithm(const char *asked, const char **algorithm, const char **protocol, char *why,
                       size_t len)
{
    size_t n = strcspn(asked, "/");

    *algorithm = *protocol = NULL;
    for (size_t i = 0; i < COUNT(algorithms); i++)
        if (strlen(algorithms[i].name) == n && !strncmp(asked, algorithms[i].name, n))
            *algorithm = algorithms[i].nccl;
    for (size_t i = 0; asked[n] && i < COUNT(protocols); i++)
        if (!strcmp(asked + n + 1, protocols[i].name))
            *protocol = protocols[i].nccl;
    if (*algorithm && (*protocol || !asked[n]))
        return 0;
    snprintf(why, len,
             "nccl: no such algorithm: '%.48s'; there are tree, ring, collnet-direct, "
             "collnet-chain, nvls, "
             "nvls-tree, pat, with /ll, /ll128 or /simple where the protocol matters",
             asked);
    return -EOPNOTSUPP;
}

void nccl_log_begin(struct nccl_log *s)
{
    char name[48];

    *s = (struct nccl_log){0};
    if (getenv("NCCL_DEBUG") || getenv("NCCL_DEBUG_FILE"))
        return;
    s->fd = memfd_create("plumb-nccl", MFD_CLOEXEC);
    if (s->fd < 1)
        return;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", s->fd);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "INIT,NET,P2P,SHM,TUNING", 1);
    setenv("NCCL_DEBUG_FILE", name, 1);
    if (!nccl_debug_again()) /* it could not be switched off again */
        nccl_log_close(s);
}

static void unset(void)
{
    unsetenv("NCCL_DEBUG");
    unsetenv("NCCL_DEBUG_SUBSYS");
    unsetenv("NCCL_DEBUG_FILE");
}

void nccl_log_close(struct nccl_log *s)
{
    if (s->fd < 1)
        return;
    unset();
    close(s->fd);
    s->fd = 0;
}

void nccl_log_end(struct nccl_log *s)
{
    if (s->fd < 1)
        return;
    char *text = xcalloc(1, TEXT_MAX + 1);
    size_t n = 0;
    ssize_t got;
    while (n < TEXT_MAX && (got = read(s->fd, text + n, TEXT_MAX - n)) > 0)
        n += (size_t)got;
    nccl_log_parse(s, text);
    free(text);
    unset();
    nccl_debug_again();
}

void nccl_log_check(struct nccl_log *s)
{
    struct stat st;

    s->chatty = s->fd > 0 && !fstat(s->fd, &st) && st.st_size > lseek(s->fd, 0, SEEK_CUR);
    nccl_log_close(s);
}

/* Adds a word to a list, unless it is there. */
static bool add(char *list, size_t len, const char *between, const char *word, size_t n)
{
    char text[64];
    size_t used = strlen(list);

    snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text) - 1), word);
    for (const char *at = list; *text && (at = strstr(at, text)); at++)
        if ((at == list || at[-1] == ' ') && (!at[strlen(text)] || at[strlen(text)] == ' '))
            return false;
    if (!*text || used + strlen(between) + strlen(text) + 1 > len)
        return false;
    snprintf(list + used, len - used, "%s%s", used ? between : "", text);
    return true;
}

/* A transport's name, and what follows it. */
static const struct {
    const char *name;
    unsigned carrier;
    bool network;
} transports[] = {{"NET/IB", CARRIER_RDMA, true},
                  {"NET/Socket", CARRIER_SOCKETS, true},
                  {"NET/", 0, true},
                  {"P2P", CARRIER_PEER, false},
                  {"SHM", CARRIER_SHARED_MEMORY, false}};

/* "[send] via NET/IB/0/GDRDMA", "via P2P/CUMEM", "via SHM/direct/direct": two parts of it. */
static void wire(struct nccl_log *s, const char *line)
{
    const char *via = strstr(line, " via ");

    if (!via || !strstr(line, "Channel"))
        return;
    via += strlen(" via ");
    size_t n = strcspn(via, "/ \r");
    if (via[n] == '/' && strncmp(via, "SHM", 3) != 0)
        n += 1 + strcspn(via + n + 1, "/( \r");
    for (size_t i = 0; i < COUNT(transports); i++)
        if (!strncmp(via, transports[i].name, strlen(transports[i].name))) {
            s->carriers |= transports[i].carrier;
            s->network |= transports[i].network;
            break;
        }
    add(s->wires, sizeof(s->wires), " and ", via, n);
}

/* "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:...", "NET/Socket : Using
 * [0]eth0:10.0.0.1<0>". */
static void network(struct nccl_log *s, const char *line)
{
    const char *using = strstr(line, ": Using [");
    bool ib = strstr(line, "NET/IB") != NULL;

    if (!using || (!ib && !strstr(line, "NET/Socket")))
        return;
    for (const char *at = using; (at = strchr(at, '[')) && isdigit((unsigned char)at[1]);) {
        at = strchr(at, ']');
        if (!at++)
            return;
        if (add(s->devices, sizeof(s->devices), " ", at, strcspn(at, ib ? "/ " : ":/ ")))
            s->n_devices++;
    }
}

/* A name or, in older versions, a number; ours has '-' where theirs has '_'. */
static void name_of(const char *said, const struct choice *names, size_t n_names, char *text,
                    size_t len)
{
    size_t n = strcspn(said, " \r"), i = 0;

    if (isdigit((unsigned char)*said) && (size_t)atoi(said) < n_names) {
        snprintf(text, len, "%s", names[atoi(said)].name);
        return;
    }
    for (; i < n && i + 1 < len; i++)
        text[i] = (char)(said[i] == '_' ? '-' : tolower((unsigned char)said[i]));
    text[i] = 0;
}

/* "AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..3}"; older: "... -> Algo
 * 1 proto 2 time 34.7". */
static void choice(struct nccl_log *s, const char *line)
{
    const char *algorithm = strstr(line, " -> Algo "), *protocol = strstr(line, " proto "),
               *channels = strstr(line, "channel{Lo..Hi}={");
    char one[sizeof(s->chose)], two[16];
    int low, high;

    if (!algorithm || !protocol)
        return;
    name_of(algorithm + strlen(" -> Algo "), algorithms, COUNT(algorithms), one, sizeof(one));
    name_of(protocol + strlen(" proto "), protocols, COUNT(protocols), two, sizeof(two));
    snprintf(s->algorithm, sizeof(s->algorithm), "%s/%s", one, two);
    s->members_add = !strcmp(one, "tree") || !strcmp(one, "ring") || !strcmp(one, "pat");
    s->switches_add = !s->members_add;
    snprintf(s->chose, sizeof(s->chose), "%s", one);
    snprintf(s->protocol, sizeof(s->protocol), "%s", two);
    s->channels = 0;
    if (!channels || sscanf(channels, "channel{Lo..Hi}={%d..%d}", &low, &high) != 2)
        return;
    s->channels = high >= low ? (unsigned)(high - low + 1) : 0;
    snprintf(s->algorithm, sizeof(s->algorithm), "%s/%s, channels %d-%d", one, two, low, high);
}

/* "AllReduce [Symmetric]: 1048576 Bytes -> Kernel AllReduce_RSxLDMC_AGxSTMC nchannels 16 nthreads 512
 * nWorks 1": LDMC loads what the switch adds up (src/sym_kernels.cc, kernelMask_LDMC). */
static void symmetric(struct nccl_log *s, const char *line)
{
    const char *kernel = strstr(line, " -> Kernel "), *channels = strstr(line, " nchannels ");

    if (!kernel || !strstr(line, "[Symmetric]"))
        return;
    kernel += strlen(" -> Kernel ");
    snprintf(s->chose, sizeof(s->chose), "symmetric");
    snprintf(s->protocol, sizeof(s->protocol), "%.*s", (int)strcspn(kernel, " \r"), kernel);
    s->channels = 0;
    if (channels)
        sscanf(channels, " nchannels %u", &s->channels);
    s->switches_add = strstr(s->protocol, "LDMC") != NULL;
    s->members_add = !s->switches_add;
    snprintf(s->algorithm, sizeof(s->algorithm), "symmetric/%s", s->protocol);
}

void nccl_log_parse(struct nccl_log *s, char *text)
{
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        wire(s, line);
        network(s, line);
        choice(s, line);
        symmetric(s, line);
        s->heard = true;
    }
}
