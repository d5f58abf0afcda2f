/* SPDX-License-Identifier: Apache-2.0 */
/* Which end of a pair this process is, and how it meets the other: see pair.h. */
#include "core/group/pair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/group/mpi.h"
#include "core/group/notice.h"
#include "core/program.h"

int pair_defaults(struct opts *o)
{
    int err = o->n_args == 1 ? opts_set(o, "host", o->args[0]) : 0;

    if (!err && o->n_args == 1)
        o->n_args = 0;
    if (err || !opts_values(o, "host")->n)
        return err;
    const char *host = opts_values(o, "host")->texts[0], *why = meet_refuse_host(host);
    if (why)
        snprintf(o->error, sizeof(o->error), "'%s' %s", host, why);
    else if (!strcmp(opts_values(o, "port")->texts[0], "0"))
        snprintf(o->error, sizeof(o->error), "--port 0: a HOST listens on a port from 1 to 65535");
    else
        return 0;
    return -EINVAL;
}

enum pair_kind pair_kind(const struct pair_params *p)
{
    if (p->host || p->listen)
        return PAIR_SOCK;
    return mpi_launched() > 1 ? PAIR_MPI : PAIR_NONE;
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

int pair_open(struct channel **c, const struct pair_params *p, uint32_t protocol,
              struct meet_secret *secret, const volatile int *cancel, char *error, size_t len)
{
    const struct meet_connect m = {.host = p->host,
                                   .port = (uint16_t)p->port,
                                   .secret = secret,
                                   .protocol = protocol,
                                   .wait_ns = p->wait_ns,
                                   .cancel = cancel};
    bool sock = pair_kind(p) == PAIR_SOCK;
    unsigned rank = 0;
    int err =
        sock ? meet_secret_need(p->secret_file, secret, error, len) : join_world(&rank, error, len);

    if (err)
        return err;
    return sock ? meet_connect(&m, c, error, len) : mpi_peer(c, error, len);
}

void pair_end(void)
{
    mpi_end();
}

static int listen_for(const struct pair_params *p, const struct pair_service *service,
                      const volatile int *cancel, char *error, size_t len)
{
    struct meet_secret secret = {0};
    const char *address = p->listen && strcmp(p->listen, "loopback") != 0 ? p->listen : NULL;
    struct meet_listen l = {.address = address,
                            .port = (uint16_t)p->port,
                            .secret = &secret,
                            .protocol = service->protocol,
                            .runs = p->runs,
                            .cancel = cancel,
                            .ready = notice_listening};
    int err = meet_secret_need(p->secret_file, &secret, error, len);

    if (!err)
        err = meet_serve(&l, service->fn, service->listener, error, len);
    return err == -EINTR ? 0 : err;
}

/* A leader without its secret is refused before anything is measured. On standard input it stands
 * once, for the meeting. */
static int check_secret(const struct pair_params *p, char *error, size_t len)
{
    bool is_stdin = p->secret_file && !strcmp(p->secret_file, "-");
    struct meet_secret secret = {0};

    return p->host && !is_stdin ? meet_secret_need(p->secret_file, &secret, error, len) : 0;
}

int pair_serve(const struct pair_params *p, const struct pair_service *service,
               const volatile int *cancel)
{
    enum pair_kind kind = pair_kind(p);
    char error[MEET_ERROR_BYTES] = "";
    unsigned rank = 0;
    bool lead = !p->listen;
    int err = 0;

    if (kind == PAIR_MPI) {
        err = join_world(&rank, error, sizeof(error));
        lead = !err && !rank;
        if (!err && rank) {
            struct channel *c = NULL;
            err = mpi_peer(&c, error, sizeof(error));
            if (!err && service->fn(c, service->rank))
                err = -EIO;
            channel_close(c);
            mpi_end();
        }
    } else {
        /* One of a launcher's processes, it may be, of which each would have a peer of its own, and
         * measure beside the others. */
        char unknown[320];
        if (service->forks && kind == PAIR_NONE && mpi_unknown_text(unknown, sizeof(unknown))) {
            snprintf(error, sizeof(error), "%s. Or give --listen to one, and its host to the other",
                     unknown);
            err = -EINVAL;
        }
        if (!err)
            err = lead ? check_secret(p, error, sizeof(error))
                       : listen_for(p, service, cancel, error, sizeof(error));
    }
    if (err)
        notice_error(err, error[0] ? error : strerror(-err));
    return lead && !err ? -1 : meet_exit(err);
}
