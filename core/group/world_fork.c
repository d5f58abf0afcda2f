/* SPDX-License-Identifier: Apache-2.0 */
/* A world of this process and its children: see world.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>

#include "core/group/secret.h"
#include "core/group/world_parts.h"

#define GO 0x574fu /* the members are all written down */
#define GO_WAIT_NS                                                                                 \
    120000000000u /* the parent still forks the others; should it die, this process does */

struct birth {
    struct world *w;
    unsigned rank;
    world_fn *fn;
    void *arg;
};

/* In the child: the parent's channels to the children before this one are none of its own. */
static void be_a_rank(struct world *w, unsigned rank, struct channel *to_parent)
{
    for (unsigned i = 0; i < w->size; i++) {
        channel_forget(w->channels[i]);
        w->channels[i] = NULL;
    }
    w->rank = rank;
    world_adopt(w, 0, to_parent);
    mprotect(w->members, w->size * sizeof(*w->members), PROT_READ);
}

static int be_born(struct channel *to_parent, void *arg)
{
    const struct birth *b = arg;
    uint32_t nodes = 0;
    uint16_t type = 0;
    size_t n = 0;

    be_a_rank(b->w, b->rank, to_parent);
    int err = channel_recv(to_parent, &type, &nodes, sizeof(nodes), &n, GO_WAIT_NS);
    if (!err && (type != GO || n != sizeof(nodes)))
        err = -EPROTO;
    b->w->nodes = nodes;
    return err ? err : b->fn(b->w, b->arg);
}

static int bear(struct world *w, unsigned rank, world_fn *fn, void *arg, char *error, size_t len)
{
    struct birth b = {.w = w, .rank = rank, .fn = fn, .arg = arg};
    struct channel *c = NULL;
    int err = channel_fork(&c, be_born, &b);

    if (err)
        return world_fail(
            err, error, len, "cannot start rank %u of %u: %s%s", rank, w->size, strerror(-err),
            err == -EAGAIN   ? " (a limit of processes: 'ulimit -u', or the container's)"
            : err == -EMFILE ? " (a limit of open files: 'ulimit -n')"
                             : "");
    w->members[rank].pid = channel_child(c);
    world_adopt(w, rank, c);
    return 0;
}

/* All but the processes' numbers is known before there are any. */
static void write_members(struct world *w)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    world_self(&w->members[0]);
    memcpy(&w->members[0].address, &loopback, sizeof(loopback));
    for (unsigned i = 1; i < w->size; i++)
        w->members[i] = w->members[0];
    world_number(w);
}

int world_fork(struct world **world, unsigned size, world_fn *fn, void *arg, char *error,
               size_t len)
{
    struct world *w = NULL;
    int err = world_new(&w, "local", 0, size, error, len);

    if (err)
        return err;
    write_members(w);
    err = secret_random(w->key, sizeof(w->key));
    if (err)
        world_fail(err, error, len, "no random numbers: %s", strerror(-err));
    for (unsigned i = 1; i < size && !err; i++)
        err = bear(w, i, fn, arg, error, len);
    for (unsigned i = 1; i < size && !err; i++) {
        uint32_t nodes = w->nodes;
        err = channel_send(w->channels[i], GO, &nodes, sizeof(nodes));
        if (err)
            world_fail(err, error, len, "%s", channel_error(w->channels[i]));
    }
    if (err) {
        world_close(w);
        return err;
    }
    *world = w;
    return 0;
}
