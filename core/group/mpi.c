/* SPDX-License-Identifier: Apache-2.0 */
/* What mpirun or srun started: how many, and a world of them. See mpi.h and world.h. */
#include "core/group/mpi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* ---- A world of what mpirun or srun started together ----
 *
 * MPI tells the ranks where rank 0 listens, and they come there. Their channels are sockets, which give
 * signs of life while a rank waits inside of MPI. */

#define GATHER_NS 60000000000u /* for all to reach rank 0 */
#define AGAIN_NS  100000000u   /* between two tries */
#define ADDRESSES 16u

/* From rank 0 to each, by MPI: where it listens. */
struct mpi_meeting {
    struct meet_secret secret; /* of this launch alone */
    struct sockaddr_storage addresses[ADDRESSES];
    uint64_t network;
    uint32_t n, port; /* 0: nowhere */
};

struct mpi_gathering {
    const struct mpi_module *mpi;
    unsigned size;
    struct mpi_meeting meeting;
    bool told;
};

static void tell_port(void *arg, const char *address, uint16_t port)
{
    struct mpi_gathering *g = arg;
    char error[256];
    int err = 0;

    (void)address;
    g->meeting.port = port;
    g->told = true;
    for (unsigned rank = 1; rank < g->size && !err; rank++) /* who is not told does not come */
        err = g->mpi->send(rank, &g->meeting, sizeof(g->meeting), fd_until(START_NS), error,
                           sizeof(error));
}

static uint32_t meeting_protocol(void)
{
    static const uint32_t layout[] = {3, sizeof(struct world_member)};

    return meet_protocol(layout, 2);
}

static int gather(struct world **world, const struct mpi_module *mpi, unsigned size, char *error,
                  size_t len)
{
    char why[MEET_ERROR_BYTES] = "";
    struct mpi_gathering g = {.mpi = mpi, .size = size, .meeting = {.network = host_network()}};
    struct world_meeting m = {.address = "::",
                              .size = size,
                              .secret = &g.meeting.secret,
                              .protocol = meeting_protocol(),
                              .wait_ns = GATHER_NS,
                              .ready = tell_port,
                              .arg = &g};

    g.meeting.n = host_addresses(g.meeting.addresses, ADDRESSES);
    int err = secret_random(g.meeting.secret.bytes, sizeof(g.meeting.secret.bytes));
    if (!err)
        err = world_gather(world, &m, why, sizeof(why));
    if (err && !g.told) { /* not where this machine has no IPv6 */
        m.address = "0.0.0.0";
        err = world_gather(world, &m, why, sizeof(why));
    }
    if (err && !g.told)
        tell_port(&g, NULL, 0);
    secret_wipe(&g.meeting.secret, sizeof(g.meeting.secret));
    if (err && g.meeting.port)
        return group_fail(err, error, len,
                          "%s to port %u of rank 0; is a firewall between the hosts", why,
                          g.meeting.port);
    return err ? group_fail(err, error, len, "%s", why) : 0;
}

/* By whichever of rank 0's addresses leads there: it may have some that are its own machine's alone. */
static int join(struct world **world, const struct mpi_module *mpi, unsigned rank, unsigned size,
                char *error, size_t len)
{
    struct mpi_meeting to;
    char host[INET6_ADDRSTRLEN] = "127.0.0.1", why[MEET_ERROR_BYTES] = "it listens nowhere";
    struct world_meeting m = {.address = host,
                              .rank = rank,
                              .size = size,
                              .secret = &to.secret,
                              .protocol = meeting_protocol()};
    size_t n = 0;
    int err = mpi->receive(0, &to, sizeof(to), &n, fd_until(START_NS), why, sizeof(why));

    if (err || n != sizeof(to))
        return group_fail(err ? err : -EPROTO, error, len,
                          "rank 0 did not say by MPI where it listens: %s",
                          err == -EIO ? why : strerror(err ? -err : EPROTO));
    bool near = to.network && to.network == host_network();
    uint64_t until_ns = fd_until(GATHER_NS);
    m.port = (uint16_t)to.port;
    err = -ECONNREFUSED;
    while (err && to.port) {
        for (unsigned i = 0; i < (near ? 1 : to.n) && i < ADDRESSES && err; i++) {
            const struct sockaddr_storage *a = &to.addresses[i];
            const void *at = a->ss_family == AF_INET6
                                 ? (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr
                                 : (const void *)&((const struct sockaddr_in *)a)->sin_addr;
            if (near || inet_ntop(a->ss_family, at, host, sizeof(host)))
                err = world_join(world, &m, why, sizeof(why));
        }
        if (clock_now_ns() + AGAIN_NS >= until_ns)
            break;
        if (err)
            nanosleep(&(struct timespec){.tv_nsec = AGAIN_NS}, NULL);
    }
    secret_wipe(&to, sizeof(to));
    return err ? group_fail(err, error, len,
                            "rank 0 is not reached by TCP: %s; is a firewall between the hosts",
                            why)
               : 0;
}

int world_mpi(struct world **world, char *error, size_t len)
{
    unsigned rank = 0, size = 0;
    int err = mpi_begin(&rank, &size, error, len);

    if (!err)
        err = rank ? join(world, mpi_module_find(error, len), rank, size, error, len)
                   : gather(world, mpi_module_find(error, len), size, error, len);
    if (!err)
        (*world)->group = "mpi";
    return err;
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
