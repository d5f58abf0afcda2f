/* SPDX-License-Identifier: Apache-2.0 */
/* What mpirun or srun started: how many, channels between them, a world of them. See mpi.h and
 * world.h. */
#include "core/group/mpi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/backend.h"
#include "core/clock.h"
#include "core/group/channel.h"
#include "core/group/meet.h"
#include "core/group/secret.h"
#include "core/group/world.h"

/* ---- What the environment tells of a launcher ---- */

/* Of all processes that were started together. What is per node (MPI_LOCALNRANKS, PALS_LOCAL_SIZE)
 * is not among them. */
static const char *const sizes[] = {
    "OMPI_COMM_WORLD_SIZE", /* Open MPI: mpirun */
    "PMI_SIZE",             /* PMI-1: MPICH's and Intel's mpiexec, PALS, Flux */
    "MV2_COMM_WORLD_SIZE",  /* MVAPICH2 */
    "SLURM_STEP_NUM_TASKS", /* srun */
    "FLUX_JOB_SIZE",        /* flux run, with or without PMI-1 */
    "JSM_NAMESPACE_SIZE",   /* LSF: jsrun */
    NULL,
};

/* Which process this is, by launchers that may leave it at that. */
static const char *const ranks[] = {
    "PMIX_RANK",       "PALS_RANKID",     "PMI_RANK", "FLUX_TASK_RANK",
    "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL,
};

static unsigned number(const char *name)
{
    const char *text = getenv(name);
    long n = text ? strtol(text, NULL, 10) : 0;

    return n > 0 && n < (1 << 30) ? (unsigned)n : 0;
}

/* The variable whose size counts: a launcher of one process may have been started by one of several.
 * NULL: none tells it. */
static const char *told_by(void)
{
    const char *by = NULL;

    for (size_t i = 0; sizes[i] && (!by || number(by) < 2); i++)
        by = number(sizes[i]) > (by ? number(by) : 0) ? sizes[i] : by;
    return by;
}

/* torchrun sets all of these. WORLD_SIZE and RANK alone are set in each pod of a job of Kubernetes,
 * for a torchrun or the like to come. */
bool mpi_torchrun(void)
{
    return (!told_by() || number(told_by()) < 2) && number("WORLD_SIZE") > 1 && getenv("RANK") &&
           getenv("LOCAL_RANK");
}

const char *mpi_launcher(void)
{
    return mpi_torchrun() ? "WORLD_SIZE" : told_by();
}

unsigned mpi_launched(void)
{
    return mpi_launcher() ? number(mpi_launcher()) : 1;
}

const char *mpi_unknown(void)
{
    if (mpi_launcher())
        return NULL;
    for (size_t i = 0; ranks[i]; i++)
        if (getenv(ranks[i]))
            return ranks[i];
    return number("WORLD_SIZE") > 1 && getenv("RANK") ? "RANK" : NULL;
}

bool mpi_unknown_text(char *text, size_t len)
{
    const char *name = mpi_unknown();

    if (name)
        snprintf(text, len,
                 "a launcher set %s, but nothing tells how many processes it started: each would "
                 "measure for itself. Start them by mpirun or srun; where this one is alone all "
                 "the same, leave %s out (env -u %s)",
                 name, name, name);
    return name != NULL;
}

#define START_NS 60000000000u /* ranks of one job may start a minute apart */

static const struct module_kind kind = {
    .file = "plumb-mpi.so",
    .environment = "PLUMB_MPI_MODULE",
    .what = "MPI module",
    .unbuilt =
        "this build has none: install an MPI (libopenmpi-dev or libmpich-dev) and build again",
    .symbol = MPI_MODULE_SYMBOL,
};

struct mpi_hello { /* both ranks send it, as it is: one build, one layout */
    uint64_t layout;
    char host[64];
    struct sockaddr_storage
        address;      /* of the first interface that is not loopback; AF_UNSPEC: none */
    uint64_t network; /* which network namespace this is, of which boot */
    int32_t pid;
    uint8_t key[SECRET_KEY_BYTES]; /* rank 0's is the one that counts */
};

struct mpi_frame {
    uint16_t type;
    char data[CHANNEL_FRAME_MAX];
};

struct mpi_link {
    struct channel_base base;
    const struct mpi_module *mpi;
    unsigned rank; /* the other one */
    struct mpi_hello own, peer;
    uint8_t key[SECRET_KEY_BYTES];
    struct mpi_frame in, out;
};

const struct mpi_module *mpi_module_find(char *error, size_t len)
{
    const struct mpi_module *mpi = module_open(&kind, error, len);

    if (mpi && mpi->abi != MPI_MODULE_ABI) {
        snprintf(error, len,
                 "plumb-mpi.so is of another build than this program: build both again");
        return NULL;
    }
    return mpi;
}

/* A launcher of another MPI than the module's starts each process as a world of its own. */
int mpi_begin(unsigned *rank, unsigned *size, char *error, size_t len)
{
    const struct mpi_module *mpi = mpi_module_find(error, len);
    char version[128];
    int err = mpi ? mpi->begin(rank, size, error, len) : -EOPNOTSUPP;

    if (mpi_torchrun() && (err || *size != mpi_launched())) {
        snprintf(error, len,
                 "torchrun started %u processes (WORLD_SIZE, RANK, LOCAL_RANK), but they cannot "
                 "find each other: it is no launcher of MPI; start them by mpirun or srun, or "
                 "without any: --listen on one, --leader on the others",
                 mpi_launched());
        return -EOPNOTSUPP;
    }
    if (!err && *size != mpi_launched()) {
        mpi->version(version, sizeof(version));
        snprintf(
            error, len,
            "the launcher started %u processes, but this is rank %u of %u: the launcher is not "
            "of the MPI that this build has (%s); take its mpirun, or build a module for the "
            "launcher's: make mpi-module MPICC=... (with srun, try --mpi=pmix)",
            mpi_launched(), *rank, *size, version);
        err = -EOPNOTSUPP;
    }
    return err;
}

void mpi_end(void)
{
    char error[256];
    const struct mpi_module *mpi =
        mpi_launched() > 1 ? mpi_module_find(error, sizeof(error)) : NULL;

    if (mpi)
        mpi->end();
}

static struct mpi_link *of(struct channel *c)
{
    return (struct mpi_link *)c;
}

static int say(struct mpi_link *l, int err, const char *what)
{
    if (err == -ETIMEDOUT)
        snprintf(l->base.error, sizeof(l->base.error),
                 "%s has not %s in time: it hangs or was cut off", l->base.peer, what);
    return err;
}

static int mpi_send(struct channel *c, uint16_t type, const void *data, size_t len,
                    uint64_t wait_ns)
{
    struct mpi_link *l = of(c);

    if (len > CHANNEL_FRAME_MAX)
        return -EMSGSIZE;
    l->out.type = type;
    if (len)
        memcpy(l->out.data, data, len);
    return say(l,
               l->mpi->send(l->rank, &l->out, offsetof(struct mpi_frame, data) + len,
                            fd_until(wait_ns), l->base.error, sizeof(l->base.error)),
               "taken a message");
}

static int mpi_recv(struct channel *c, uint16_t *type, void *data, size_t size, size_t *len,
                    uint64_t wait_ns)
{
    struct mpi_link *l = of(c);
    size_t n = 0;
    int err = l->mpi->receive(l->rank, &l->in, sizeof(l->in), &n, wait_ns ? fd_until(wait_ns) : 0,
                              l->base.error, sizeof(l->base.error));

    if (err)
        return say(l, err, "answered");
    if (n < offsetof(struct mpi_frame, data))
        return -EPROTO;
    *len = n - offsetof(struct mpi_frame, data);
    *type = l->in.type;
    if (*len > size)
        return -EMSGSIZE;
    memcpy(data, l->in.data, *len);
    return 0;
}

/* The launcher ends all ranks when one dies. */
static int mpi_alive(struct channel *c)
{
    (void)c;
    return 0;
}

/* Two ranks of one network namespace reach each other by loopback. */
static int mpi_address(struct channel *c, struct sockaddr_storage *own,
                       struct sockaddr_storage *peer)
{
    struct mpi_link *l = of(c);
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (l->own.network && l->own.network == l->peer.network) {
        memset(own, 0, sizeof(*own));
        memcpy(own, &loopback, sizeof(loopback));
        *peer = *own;
        return 0;
    }
    if (l->own.address.ss_family == AF_UNSPEC || l->peer.address.ss_family == AF_UNSPEC)
        return -EOPNOTSUPP;
    *own = l->own.address;
    *peer = l->peer.address;
    return 0;
}

static int mpi_token(struct channel *c, const char *purpose, uint32_t number,
                     uint8_t token[CHANNEL_TOKEN_BYTES])
{
    secret_token(token, of(c)->key, purpose, number);
    return 0;
}

static void mpi_close(struct channel *c)
{
    free(of(c));
}

static const struct channel_ops ops = {
    .name = "mpi",
    .send = mpi_send,
    .recv = mpi_recv,
    .alive = mpi_alive,
    .address = mpi_address,
    .token = mpi_token,
    .close = mpi_close,
};

static int greet(struct mpi_link *l, unsigned rank)
{
    size_t n = 0;

    l->own = (struct mpi_hello){.layout = sizeof(struct mpi_hello), .pid = getpid()};
    gethostname(l->own.host, sizeof(l->own.host) - 1);
    host_first_address(&l->own.address);
    l->own.network = host_network();
    int err = secret_random(l->own.key, sizeof(l->own.key));
    if (!err)
        err = l->mpi->send(rank, &l->own, sizeof(l->own), fd_until(START_NS), l->base.error,
                           sizeof(l->base.error));
    if (!err)
        err = l->mpi->receive(rank, &l->peer, sizeof(l->peer), &n, fd_until(START_NS),
                              l->base.error, sizeof(l->base.error));
    if (!err && (n != sizeof(l->peer) || l->peer.layout != l->own.layout))
        err = -EPROTO;
    l->peer.host[sizeof(l->peer.host) - 1] = 0;
    memcpy(l->key, rank ? l->own.key : l->peer.key, sizeof(l->key));
    snprintf(l->base.peer, sizeof(l->base.peer), "rank %u on %s (pid %d)", rank, l->peer.host,
             l->peer.pid);
    return err;
}

static int mpi_channel(struct channel **c, unsigned rank)
{
    char error[256];
    struct mpi_link *l = xcalloc(1, sizeof(*l));

    l->base.ops = &ops;
    l->rank = rank;
    l->mpi = mpi_module_find(error, sizeof(error));
    snprintf(l->base.peer, sizeof(l->base.peer), "rank %u", rank);
    int err = l->mpi ? greet(l, rank) : -EOPNOTSUPP;
    if (err) {
        free(l);
        return err;
    }
    *c = (struct channel *)l;
    return 0;
}

/* ---- A world of what mpirun or srun started together ---- */

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
        err = world_tell(w, i, error, len);
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
    err = world_hear(w, w->channels[0], 2 * (uint64_t)START_NS, NULL, error, len);
    if (!err)
        world_adopt(w, 0, w->channels[0]);
    return err;
}

/* ---- The same world by sockets: they give signs of life while a rank waits inside of MPI ---- */

#define CONNECT_NS 5000000000u /* for one to reach rank 0 */
#define GATHER_NS  6000000000u /* for all */

/* From rank 0 to each, by MPI: where it listens. Then, a byte: whether all have come. */
struct mpi_meeting {
    struct meet_secret secret; /* of this launch alone */
    struct sockaddr_storage address;
    uint64_t network;
    uint32_t port; /* 0: nowhere */
};

struct mpi_gathering {
    const struct mpi_module *mpi;
    unsigned size;
    struct mpi_meeting meeting;
    bool told;
};

static int send_to_all(const struct mpi_gathering *g, const void *data, size_t n, char *error,
                       size_t len)
{
    int err = 0;

    for (unsigned rank = 1; rank < g->size && !err; rank++)
        err = g->mpi->send(rank, data, n, fd_until(START_NS), error, len);
    return err;
}

static void tell_port(void *arg, const char *address, uint16_t port)
{
    struct mpi_gathering *g = arg;
    char error[256];

    (void)address;
    g->meeting.port = port;
    g->told = true;
    send_to_all(g, &g->meeting, sizeof(g->meeting), error, sizeof(error));
}

static uint32_t meeting_protocol(void)
{
    static const uint32_t layout[] = {1, sizeof(struct world_member)};

    return meet_protocol(layout, 2);
}

/* *world NULL: not all could come, and all know it. */
static int gather(struct world **world, const struct mpi_module *mpi, unsigned size, char *error,
                  size_t len)
{
    char why[MEET_ERROR_BYTES];
    struct mpi_gathering g = {.mpi = mpi, .size = size, .meeting = {.network = host_network()}};
    struct world_meeting m = {.address = "::",
                              .size = size,
                              .secret = &g.meeting.secret,
                              .protocol = meeting_protocol(),
                              .wait_ns = GATHER_NS,
                              .ready = tell_port,
                              .arg = &g};

    host_first_address(&g.meeting.address);
    int err = secret_random(g.meeting.secret.bytes, sizeof(g.meeting.secret.bytes));
    if (!err)
        err = world_gather(world, &m, why, sizeof(why));
    if (err && !g.told) { /* not where this machine has no IPv6 */
        m.address = "0.0.0.0";
        err = world_gather(world, &m, why, sizeof(why));
    }
    if (err && !g.told)
        tell_port(&g, NULL, 0);
    uint8_t all = !err;
    secret_wipe(&g.meeting.secret, sizeof(g.meeting.secret));
    return send_to_all(&g, &all, sizeof(all), error, len);
}

static int join(struct world **world, const struct mpi_module *mpi, unsigned rank, unsigned size,
                char *error, size_t len)
{
    struct mpi_meeting to;
    char host[INET6_ADDRSTRLEN] = "127.0.0.1", why[MEET_ERROR_BYTES];
    size_t n = 0;
    uint8_t all = 0;
    int err = mpi->receive(0, &to, sizeof(to), &n, fd_until(START_NS), error, len);

    if (err || n != sizeof(to))
        return err ? err : -EPROTO;
    const void *at = to.address.ss_family == AF_INET6
                         ? (const void *)&((struct sockaddr_in6 *)&to.address)->sin6_addr
                         : (const void *)&((struct sockaddr_in *)&to.address)->sin_addr;
    bool near = to.network && to.network == host_network();
    const struct world_meeting m = {.address = host,
                                    .port = (uint16_t)to.port,
                                    .rank = rank,
                                    .size = size,
                                    .secret = &to.secret,
                                    .protocol = meeting_protocol(),
                                    .wait_ns = CONNECT_NS};
    if (to.port && (near || inet_ntop(to.address.ss_family, at, host, sizeof(host))))
        world_join(world, &m, why, sizeof(why));
    secret_wipe(&to, sizeof(to));
    err = mpi->receive(0, &all, sizeof(all), &n, fd_until(START_NS + GATHER_NS), error, len);
    if (!err && all && !*world)
        err = world_fail(-EPROTO, error, len, "rank 0 was reached, and is gone: %s", why);
    if (!all && *world) {
        world_close(*world);
        *world = NULL;
    }
    return err;
}

int world_mpi(struct world **world, char *error, size_t len)
{
    struct world *w = NULL;
    unsigned rank = 0, size = 0;
    int err = mpi_begin(&rank, &size, error, len);

    if (!err && size > 1)
        err = rank ? join(&w, mpi_module_find(error, len), rank, size, error, len)
                   : gather(&w, mpi_module_find(error, len), size, error, len);
    if (!err && w) {
        w->group = "mpi";
        *world = w;
        return 0;
    }
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

int mpi_peer(struct channel **c, char *error, size_t len)
{
    struct world *w = NULL;
    int err = world_mpi(&w, error, len);

    if (err)
        return err;
    *c = w->channels[!w->rank];
    w->channels[!w->rank] = NULL;
    world_close(w);
    return 0;
}
