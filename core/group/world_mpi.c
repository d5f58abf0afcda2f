/* SPDX-License-Identifier: Apache-2.0 */
/* A world of what mpirun or srun started together: see world.h. */
#include <errno.h>
#include <string.h>

#include "core/group/mpi.h"
#include "core/group/secret.h"
#include "core/group/world_host.h"
#include "core/group/world_parts.h"

#define START_NS 60000000000u /* ranks of one job may start a minute apart */

static int reach(struct world *w, unsigned rank, char *error, size_t len)
{
    char name[WORLD_NAME_MAX + 32];
    int err = mpi_channel(&w->channels[rank], rank);

    if (err)
        return world_fail(err, error, len, "cannot reach %s by MPI: %s",
                          world_name(w, rank, name, sizeof(name)), strerror(-err));
    return 0;
}

/* Rank 0 hears from one who it is. */
static int hear_one(struct world *w, unsigned rank, char *error, size_t len)
{
    struct world_hello h;
    int err = reach(w, rank, error, len);

    if (err)
        return err;
    err = world_hello_recv(w->channels[rank], &h, START_NS);
    if (!err && (h.rank != rank || h.size != w->size))
        err = -EPROTO;
    if (err)
        return world_fail(err, error, len, "'%s' has not said who it is: %s",
                          channel_peer(w->channels[rank]), strerror(-err));
    w->members[rank] = h.member;
    world_adopt(w, rank, w->channels[rank]);
    return 0;
}

static int lead(struct world *w, char *error, size_t len)
{
    int err = secret_random(w->key, sizeof(w->key));

    if (err)
        return world_fail(err, error, len, "no random numbers: %s", strerror(-err));
    for (unsigned i = 1; i < w->size && !err; i++)
        err = hear_one(w, i, error, len);
    world_number(w);
    for (unsigned i = 1; i < w->size && !err; i++)
        err = world_tell(w, i, w->key, error, len);
    return err;
}

static int follow(struct world *w, char *error, size_t len)
{
    struct world_hello h = {.rank = w->rank, .size = w->size, .member = w->members[w->rank]};
    int err = reach(w, 0, error, len);

    if (err)
        return err;
    err = world_hello_send(w->channels[0], &h);
    if (err)
        return world_fail(err, error, len, "%s", channel_error(w->channels[0]));
    err = world_hear(w, w->channels[0], w->key, 2 * (uint64_t)START_NS, NULL, error, len);
    if (!err)
        world_adopt(w, 0, w->channels[0]);
    return err;
}

int world_mpi(struct world **world, char *error, size_t len)
{
    struct world *w = NULL;
    unsigned rank = 0, size = 0;
    int err = mpi_begin(&rank, &size, error, len);

    if (!err)
        err = world_new(&w, "mpi", rank, size, error, len);
    if (err)
        return err;
    world_self(&w->members[rank]);
    host_first_address(&w->members[rank].address);
    err = rank ? follow(w, error, len) : lead(w, error, len);
    if (err) {
        world_close(w);
        return err;
    }
    *world = w;
    return 0;
}
