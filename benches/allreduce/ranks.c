/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes part: children of this process, ranks that find each other by sockets, or those of an
 * MPI launcher. See work.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/allreduce/work.h"
#include "core/group/mpi.h"
#include "core/group/notice.h"
#include "core/program.h"

enum collective_group collective_group(const struct collective_params *p)
{
    if (p->leader || p->listen)
        return COLLECTIVE_SOCK;
    return mpi_launched() > 1 ? COLLECTIVE_MPI : COLLECTIVE_LOCAL;
}

static void say_ready(void *arg, const char *address, uint16_t port)
{
    (void)arg;
    notice_send(&(struct notice){.kind = NOTICE_LISTENING}, "%s: listening on %s port %u",
                program_invocation_short_name, address, port);
}

static struct world_meeting meeting_of(const struct collective_params *p,
                                       const struct meet_secret *secret, const volatile int *cancel)
{
    const char *address = p->leader ? p->leader : p->listen;

    if (address && !p->leader && !strcmp(address, "loopback"))
        address = NULL;
    return (struct world_meeting){.address = address,
                                  .port = (uint16_t)p->port,
                                  .rank = (unsigned)p->rank,
                                  .size = (unsigned)p->np,
                                  .secret = secret,
                                  .protocol = session_protocol(),
                                  .wait_ns = p->wait_ns,
                                  .cancel = cancel,
                                  .ready = say_ready};
}

static int gather(struct collective_work *w, const struct collective_params *p,
                  const volatile int *cancel, char *error, size_t len)
{
    struct world_meeting m = meeting_of(p, &w->secret, cancel);
    int err = w->has_secret ? 0 : meet_secret_need(p->secret_file, &w->secret, error, len);

    w->has_secret = !err;
    return err ? err : world_gather(&w->world, &m, error, len);
}

int collective_world(struct collective_work *w, const struct collective_params *p,
                     const volatile int *cancel, char *error, size_t len)
{
    if (w->world)
        return 0;
    switch (collective_group(p)) {
    case COLLECTIVE_SOCK:
        return gather(w, p, cancel, error, len);
    case COLLECTIVE_MPI:
        return world_mpi(&w->world, error, len);
    default:
        return world_fork(&w->world, (unsigned)p->np, session_serve, NULL, error, len);
    }
}

void collective_leave(struct collective_work *w)
{
    bool broken = w->session && session_broken(w->session);
    bool mpi = w->world && !strcmp(world_group(w->world), "mpi");

    session_close(w->session);
    world_close(w->world);
    w->session = NULL;
    w->world = NULL;
    if (mpi &&
        !broken) /* a rank that hangs would be waited for without end: the launcher ends it */
        mpi_end();
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

static int join(struct world **world, const struct collective_params *p, const volatile int *cancel,
                char *error, size_t len)
{
    struct meet_secret secret = {0};
    struct world_meeting m = meeting_of(p, &secret, cancel);
    int err = meet_secret_need(p->secret_file, &secret, error, len);

    return err ? err : world_join(world, &m, error, len);
}

static int serve_world(struct world *world, const struct collective_params *p)
{
    struct session_service service = {.device = p->device};
    bool mpi = !strcmp(world_group(world), "mpi");
    int status = session_serve(world, &service);

    world_close(world);
    if (mpi && !status)
        mpi_end();
    return status;
}

/* Is this process another rank than 0, by the options or by the launcher? -errno with error: it
 * cannot be told. */
static int is_other(const struct collective_params *p, char *error, size_t len)
{
    unsigned rank = 0, size = 0;

    if (collective_group(p) != COLLECTIVE_MPI)
        return p->leader != NULL;
    int err = mpi_begin(&rank, &size, error, len);
    return err ? err : rank > 0;
}

static int serve(const struct collective_params *p, const volatile int *cancel, char *error,
                 size_t len)
{
    struct world *world = NULL;
    int err = collective_group(p) == COLLECTIVE_MPI ? world_mpi(&world, error, len)
                                                    : join(&world, p, cancel, error, len);

    return err ? err : serve_world(world, p);
}

static int tell(int err, const char *error)
{
    notice_error(err, error[0] ? error : strerror(-err));
    return exit_of(err);
}

int collective_serve(const struct collective_params *p, const volatile int *cancel)
{
    char error[512] = "";
    int status = is_other(p, error, sizeof(error));

    if (!status)
        return -1;
    if (status > 0)
        status = serve(p, cancel, error, sizeof(error));
    return status < 0 ? tell(status, error) : status;
}

/* As mpirun's users print their hosts before they trust a run. */
static void print_members(const struct world *world)
{
    puts("rank,node,host,pid,machine_ranks,group");
    for (unsigned i = 0; i < world_size(world); i++) {
        const struct world_member *m = world_member(world, i);
        printf("%u,%u,%s,%d,%u,%s\n", i, m->node, m->host, m->pid, m->seats, world_group(world));
    }
}

int collective_who(const struct collective_params *p, const volatile int *cancel)
{
    struct collective_work *w = calloc(1, sizeof(*w));
    char error[512] = "";
    int err = w ? collective_world(w, p, cancel, error, sizeof(error)) : -ENOMEM;

    if (!err)
        err = session_open(&w->session, w->world, NULL, 0);
    if (!err)
        print_members(w->world);
    else
        tell(err, error);
    if (w)
        collective_leave(w);
    free(w);
    return exit_of(err);
}
