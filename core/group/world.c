/* SPDX-License-Identifier: Apache-2.0 */
/* What all worlds have: see world.h. */
#include "core/group/world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/group/handshake.h"
#include "core/group/secret.h"
#include "core/group/world_host.h"
#include "core/group/world_parts.h"
#include "core/hw/machine.h"

#define OTHER_FILES 256 /* what a program may have open besides its channels */

int world_fail(int err, char *error, size_t len, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, len, format, args);
    va_end(args);
    return err;
}

/* A channel is an open file, and many systems let a process have 1024 unless it asks for more. */
static void make_room(unsigned size)
{
    struct rlimit limit;
    rlim_t want = (rlim_t)size + OTHER_FILES;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= want)
        return;
    limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int world_new(struct world **world, const char *group, unsigned rank, unsigned size, char *error,
              size_t len)
{
    size_t bytes = size * sizeof(struct world_member);

    if (size < 1 || size > WORLD_RANKS_MAX)
        return world_fail(-EINVAL, error, len, "%u processes are not possible: 1 to %u are", size,
                          WORLD_RANKS_MAX);
    if (rank >= size)
        return world_fail(-EINVAL, error, len,
                          "rank %u is out of range: %u processes are numbered from 0 to %u", rank,
                          size, size - 1);
    struct world *w = calloc(1, sizeof(*w) + size * sizeof(w->channels[0]));
    void *members = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!w || members == MAP_FAILED) {
        if (members != MAP_FAILED)
            munmap(members, bytes);
        free(w);
        return world_fail(-ENOMEM, error, len, "out of memory for %u processes", size);
    }
    make_room(size);
    w->group = group;
    w->rank = rank;
    w->size = size;
    w->members = members;
    *world = w;
    return 0;
}

void world_free(struct world *w)
{
    if (!w)
        return;
    munmap(w->members, w->size * sizeof(*w->members));
    secret_wipe(w->key, sizeof(w->key));
    free(w);
}

void world_close(struct world *w)
{
    if (!w)
        return;
    channel_end_children(w->channels, w->size);
    for (unsigned i = 0; i < w->size; i++)
        channel_close(w->channels[i]);
    world_free(w);
}

void world_adopt(struct world *w, unsigned rank, struct channel *c)
{
    w->channels[rank] = c;
    world_name(w, rank, channel_base(c)->peer, sizeof(channel_base(c)->peer));
}

void world_self(struct world_member *m)
{
    char host[WORLD_NAME_MAX + 1] = "";

    memset(m, 0, sizeof(*m));
    if (gethostname(host, sizeof(host) - 1))
        snprintf(host, sizeof(host), "no name");
    shake_text(m->host, sizeof(m->host), host, sizeof(host));
    _Static_assert(sizeof(m->machine) >= MACHINE_ID_BYTES, "a machine's name fits");
    machine_id(m->machine);
    m->network = host_network();
    m->pid = getpid();
}

static int same_node(const struct world_member *a, const struct world_member *b)
{
    /* What is not known is nobody's: host names alone are often alike. */
    return machine_same(a->machine, b->machine) && !strcmp(a->host, b->host) &&
           a->network == b->network;
}

/* Node and seat of `m`, after those before it. Returns how many nodes there are now. */
static unsigned number_one(struct world_member *all, struct world_member *m, unsigned nodes)
{
    m->node = nodes;
    m->local = m->seat = 0;
    for (const struct world_member *o = all; o < m; o++) {
        if (machine_same(o->machine, m->machine))
            m->seat++;
        if (same_node(o, m)) {
            m->node = o->node;
            m->local++;
        }
    }
    return m->node == nodes ? nodes + 1 : nodes;
}

void world_number(struct world *w)
{
    struct world_member *all = w->members;

    w->nodes = 0;
    for (unsigned i = 0; i < w->size; i++)
        w->nodes = number_one(all, &all[i], w->nodes);
    /* The last of a machine knows how many they are. */
    for (unsigned i = w->size; i-- > 0;) {
        all[i].seats = all[i].seat + 1;
        for (unsigned k = i + 1; k < w->size && all[i].seats == all[i].seat + 1; k++)
            if (machine_same(all[i].machine, all[k].machine))
                all[i].seats = all[k].seats;
    }
}

unsigned world_rank(const struct world *w)
{
    return w->rank;
}

unsigned world_size(const struct world *w)
{
    return w->size;
}

const struct world_member *world_member(const struct world *w, unsigned rank)
{
    return rank < w->size ? &w->members[rank] : NULL;
}

unsigned world_nodes(const struct world *w)
{
    return w->nodes;
}

const char *world_group(const struct world *w)
{
    return w->group;
}

const uint8_t *world_key(const struct world *w)
{
    return w->key;
}

struct channel *world_channel(struct world *w, unsigned rank)
{
    return rank < w->size ? w->channels[rank] : NULL;
}

const char *world_name(const struct world *w, unsigned rank, char *text, size_t len)
{
    if (rank < w->size && w->members[rank].host[0])
        snprintf(text, len, "rank %u (%s)", rank, w->members[rank].host);
    else
        snprintf(text, len, "rank %u", rank);
    return text;
}

int world_alive(struct world *w, unsigned *rank, char *error, size_t len)
{
    for (unsigned i = 0; i < w->size; i++) {
        if (!w->channels[i] || !channel_alive(w->channels[i]))
            continue;
        *rank = i;
        return world_fail(-ECONNRESET, error, len, "%s", channel_error(w->channels[i]));
    }
    return 0;
}
