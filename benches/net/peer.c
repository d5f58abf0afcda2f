/* SPDX-License-Identifier: Apache-2.0 */
/* Who is the peer: see net_work.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/net/net_work.h"
#include "core/group/channel.h"
#include "core/group/meet.h"
#include "core/group/mpi.h"
#include "core/group/notice.h"
#include "core/hw/gpu.h"
#include "core/hw/place.h"
#include "core/program.h"

void net_peer_locals(const struct net_params *p, struct net_local *own, struct net_local *peers)
{
    *own = (struct net_local){.node = p->node};
    *peers = (struct net_local){.node = p->peer_node};
    snprintf(own->devices, sizeof(own->devices), "%s", p->device ? p->device : "");
    snprintf(peers->devices, sizeof(peers->devices), "%s", p->peer_device ? p->peer_device : "");
    snprintf(own->memory, sizeof(own->memory), "%s", p->memory ? p->memory : "");
    snprintf(peers->memory, sizeof(peers->memory), "%s", p->peer_memory ? p->peer_memory : "");
}

enum net_group net_peer_kind(const struct net_params *p)
{
    if (p->host || p->listen)
        return NET_GROUP_SOCK;
    return mpi_launched() > 1 ? NET_GROUP_MPI : NET_GROUP_LOCAL;
}

static int connect_peer(struct channel **c, const struct net_params *p, struct net_secret *known,
                        const volatile int *cancel, char *error, size_t len)
{
    struct meet_connect m = {.host = p->host,
                             .port = (uint16_t)p->port,
                             .secret = &known->secret,
                             .protocol = net_protocol(),
                             .wait_ns = p->wait_ns,
                             .cancel = cancel};
    int err = known->loaded ? 0 : meet_secret_need(p->secret_file, &known->secret, error, len);

    known->loaded = !err;
    return err ? err : meet_connect(&m, c, error, len);
}

/* A child as the peer. */
static int net_peer_fork(struct channel **c, const struct net_local *own)
{
    struct net_service service = {.own = own};

    return channel_fork(c, net_serve, &service);
}

/* Which rank this is, once in a process. */
static int join_world(unsigned *rank, char *error, size_t len)
{
    unsigned size = 0;
    int err = mpi_begin(rank, &size, error, len);

    if (!err && size != 2) {
        snprintf(
            error, len,
            "it takes two processes, the launcher started %u: mpirun -np 2, one on each machine "
            "(--map-by node)",
            size);
        err = -EINVAL;
    }
    return err;
}

/* A peer that is to have its buffers in a GPU's memory cannot be forked from a process that
 * has used one. */
static int check_fork(const struct net_params *p, char *error, size_t len)
{
    if (!gpus_used() || !net_peer_gpu(p->peer_memory))
        return 0;
    snprintf(error, len,
             "--peer-memory %s: another peer would have to be forked, but this process has used a "
             "GPU by now, and what it forks cannot: measure this case by a command of its own, or "
             "start the peer by %s --listen",
             p->peer_memory, program_invocation_short_name);
    return -EBUSY;
}

bool net_peer_gpu(const char *memory)
{
    struct place place;
    char error[256];

    return memory && *memory &&
           !place_parse(memory, PLACE_WHOLE | PLACE_GPU, &place, error, sizeof(error)) && place.gpu;
}

int net_peer_open(struct channel **c, const struct net_params *p, struct net_secret *secret,
                  const volatile int *cancel, char *error, size_t len)
{
    unsigned rank = 0;
    int err;

    switch (net_peer_kind(p)) {
    case NET_GROUP_SOCK:
        return connect_peer(c, p, secret, cancel, error, len);
    case NET_GROUP_MPI:
        err = join_world(&rank, error, len);
        if (!err)
            err = mpi_peer(c, error, len);
        break;
    default:
        err = check_fork(p, error, len);
        if (!err)
            err = net_peer_fork(c, NULL);
    }
    if (err && !error[0])
        snprintf(error, len, "cannot start the peer: %s", strerror(-err));
    return err;
}

void net_peer_end(void)
{
    mpi_end();
}

static void say_ready(void *arg, const char *address, uint16_t port)
{
    (void)arg;
    notice_send(&(struct notice){.kind = NOTICE_LISTENING}, "%s: listening on %s port %u",
                program_invocation_short_name, address, port);
}

static int listen_for(const struct net_params *p, const volatile int *cancel, char *error,
                      size_t len)
{
    struct meet_secret secret;
    struct net_local own, peers;
    struct net_service service = {.own = &own};
    const char *address = p->listen && strcmp(p->listen, "loopback") != 0 ? p->listen : NULL;
    struct meet_listen l = {.address = address,
                            .port = (uint16_t)p->port,
                            .secret = &secret,
                            .protocol = net_protocol(),
                            .runs = p->runs,
                            .cancel = cancel,
                            .ready = say_ready};
    int err = meet_secret_need(p->secret_file, &secret, error, len);

    net_peer_locals(p, &own, &peers);
    if (!strcmp(own.memory, "host")) /* by default: then it is the leader's to say */
        own.memory[0] = 0;
    if (!err)
        err = meet_serve(&l, net_serve, &service, error, len);
    return err == -EINTR ? 0 : err;
}

/* One of a launcher's processes, it may be, of which each would have a peer of its own, and measure
 * beside the others. */
static int check_alone(enum net_group kind, char *error, size_t len)
{
    char unknown[320];

    if (kind != NET_GROUP_LOCAL || !mpi_unknown_text(unknown, sizeof(unknown)))
        return 0;
    snprintf(error, len, "%s. Or give --listen to one, and its host to the other", unknown);
    return -EINVAL;
}

static int serve_rank(const struct net_params *p, char *error, size_t len)
{
    struct net_local own, peers;
    struct net_service service = {.own = &own};
    struct channel *c = NULL;
    int err = mpi_peer(&c, error, len);

    /* One command line for both ranks: the peer's part is its own. */
    net_peer_locals(p, &peers, &own);
    if (!err && net_serve(c, &service))
        err = -EIO;
    channel_close(c);
    mpi_end();
    return err;
}

/* What the command line or its files are to blame for. */
static int exit_of(int err)
{
    static const int usage[] = {-EINVAL, -EADDRINUSE, -EACCES, -EOPNOTSUPP, -ENOENT};

    for (size_t i = 0; i < sizeof(usage) / sizeof(*usage); i++)
        if (err == usage[i])
            return EXIT_USAGE;
    return err ? EXIT_INCOMPLETE : EXIT_GOOD;
}

/* A leader without its secret is refused before anything is measured. On standard input it stands
 * once, for the meeting. */
static int check_secret(const struct net_params *p, char *error, size_t len)
{
    bool is_stdin = p->secret_file && !strcmp(p->secret_file, "-");
    struct meet_secret secret;

    return p->host && !is_stdin ? meet_secret_need(p->secret_file, &secret, error, len) : 0;
}

int net_peer_serve(const struct net_params *p, const volatile int *cancel)
{
    enum net_group kind = net_peer_kind(p);
    char error[MEET_ERROR_BYTES] = "";
    unsigned rank = 0;
    bool lead = !p->listen;
    int err;

    if (kind == NET_GROUP_MPI) {
        err = join_world(&rank, error, sizeof(error));
        lead = !err && !rank;
        if (!err && rank)
            err = serve_rank(p, error, sizeof(error));
    } else {
        err = check_alone(kind, error, sizeof(error));
        if (!err)
            err = lead ? check_secret(p, error, sizeof(error))
                       : listen_for(p, cancel, error, sizeof(error));
    }
    if (err)
        notice_error(err, error[0] ? error : strerror(-err));
    return lead && !err ? -1 : exit_of(err);
}
