/* SPDX-License-Identifier: Apache-2.0 */
/* The fabric over shared memory: see fabric_shm.h. */
#include "core/wire/fabric_shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/hw/machine.h"

static void backends(backend_say_fn *say, void *arg)
{
    say(arg, &(struct backend){.name = "shm",
                               .state = BACKEND_PRESENT,
                               .what = "between processes of this machine"});
}

static int shm_open_fabric(struct fabric *f)
{
    struct fabric_shm *s = calloc(1, sizeof(*s));

    f->state = s;
    if (!s)
        return fabric_fail(f, -ENOMEM, "out of memory");
    s->fd = -1;
    s->wait_ns = FABRIC_JOIN_NS;
    if (f->options.device[0])
        return fabric_fail(f, -EOPNOTSUPP, "shared memory uses no device: leave '%.60s' to others",
                           f->options.device);
    return 0;
}

/* Where it is not known which machine a rank is on, join finds out. */
static int shm_link(struct fabric *f, struct fabric_link *l)
{
    const struct world_member *own = world_member(f->world, world_rank(f->world));
    const struct world_member *peer = world_member(f->world, l->peer);
    char name[128];

    if (own->machine[0] && peer->machine[0] && !machine_same(own->machine, peer->machine))
        return fabric_fail(f, -EOPNOTSUPP,
                           "shared memory is for ranks of one machine: %s is on another",
                           world_name(f->world, l->peer, name, sizeof(name)));
    struct fabric_shm_link *sl = calloc(1, sizeof(*sl));
    if (!sl)
        return fabric_fail(f, -ENOMEM, "out of memory");
    sl->pid = sl->pidfd = -1;
    l->state = sl;
    return 0;
}

/* Peers that wait for this rank are told that it will not come. */
static void leave(struct fabric_shm_link *sl)
{
    if (sl->in)
        atomic_store(&sl->in->receiver_ended, 1);
    if (sl->out)
        atomic_store(&sl->out->sender_ended, 1);
    if (sl->peer_head) {
        fabric_shm_wake(sl->peer_head, FABRIC_SHM_FOR_DATA | FABRIC_SHM_FOR_ROOM);
        munmap(sl->peer_head, sl->peer_map_bytes);
    }
    if (sl->pidfd >= 0)
        close(sl->pidfd);
    free(sl);
}

static void shm_close(struct fabric *f)
{
    struct fabric_shm *s = fabric_shm_of(f);

    if (!s)
        return;
    for (unsigned i = 0; i < f->n_links; i++)
        leave(f->links[i].state);
    if (s->head)
        munmap(s->head, s->map_bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
    f->state = NULL;
}

static void describe(const struct fabric *f, char *text, size_t len)
{
    size_t bytes = fabric_shm_of(f)->ring_bytes;

    snprintf(text, len, "rings of %zu KiB", bytes >> 10);
}

static int rail(const struct fabric *f, struct net_rail *rail)
{
    *rail = (struct net_rail){.name = "shm", .kind = "shm", .node = -1};
    describe(f, rail->text, sizeof(rail->text));
    snprintf(rail->line_source, sizeof(rail->line_source),
             "not known: two copies by the ranks' own CPUs, not a line");
    return 0;
}

const struct fabric_ops fabric_shm = {
    .name = "shm",
    .help = "memory that ranks of one machine share",
    .backends = backends,
    .open = shm_open_fabric,
    .link = shm_link,
    .card = fabric_shm_card,
    .join = fabric_shm_join,
    .send = fabric_shm_send,
    .receive = fabric_shm_receive,
    .progress = fabric_shm_progress,
    .describe = describe,
    .rail = rail,
    .close = shm_close,
};
