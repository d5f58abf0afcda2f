/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes part, and how their bytes go: see ranks.h. */
#include "core/session/ranks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/backend.h"
#include "core/group/mpi.h"
#include "core/group/notice.h"
#include "core/hw/gpu.h"
#include "core/program.h"

#define IDLE_NS 1000000000u /* how long idle machines are watched */
#define OWN     "backend=" COLLECTIVE_OWN_WORDS

const struct opt_scope way_by_own = {OWN, "our own algorithms"};
const struct opt_scope way_by_tcp = {OWN " transport=tcp", "our own algorithms over TCP"};
const struct opt_scope way_by_rdma = {OWN " transport=rdma", "our own algorithms over RDMA"};
const struct opt_scope way_by_library = {"backend=" COLLECTIVE_LIBRARY_WORDS, "libraries"};

static void fill_transport(const struct way_params *p, struct collective_point *c)
{
    snprintf(c->transport, sizeof(c->transport), "%s", wire_names[p->transport]);
    c->tcp = (struct wire_tcp_options){.busy_poll_us = (uint32_t)p->busy_poll_us,
                                       .buffer_bytes = p->buffer_bytes,
                                       .data_port = (uint32_t)p->data_port};
    snprintf(c->tcp.congestion, sizeof(c->tcp.congestion), "%s",
             p->congestion ? p->congestion : "");
    c->rdma = (struct wire_rdma_options){.events = p->completion == 1,
                                         .mtu = (uint32_t)p->mtu,
                                         .gid_index = p->gid_index,
                                         .inline_bytes = -1};
}

void way_fill(const struct way_params *w, struct collective_point *c)
{
    const struct collective_ops *ops = collective_find(collective_names[w->backend]);

    snprintf(c->backend, sizeof(c->backend), "%s", ops->name);
    snprintf(c->device, sizeof(c->device), "%s", w->device ? w->device : "");
    snprintf(c->algorithm, sizeof(c->algorithm), "%s", w->algorithm ? w->algorithm : "");
    c->segment_bytes = w->segment;
    if (ops->own)
        fill_transport(w, c);
}

/* Who takes part: children of this process, ranks that find each other by sockets, or those of an
 * MPI launcher. By options and environment. */
enum group { GROUP_LOCAL, GROUP_SOCK, GROUP_MPI };

static enum group group_of(const struct ranks_params *p)
{
    if (p->leader || p->listen)
        return GROUP_SOCK;
    return mpi_launched() > 1 ? GROUP_MPI : GROUP_LOCAL;
}

static struct world_meeting meeting_of(const struct ranks_params *p,
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
                                  .ready = notice_listening};
}

/* Rank 0: its world, made at the first call. 0, or -errno with error. */
static int need_world(struct ranks *r, const struct ranks_params *p, const volatile int *cancel,
                      char *error, size_t len)
{
    if (r->world)
        return 0;
    switch (group_of(p)) {
    case GROUP_SOCK: {
        struct world_meeting m = meeting_of(p, &r->secret, cancel);
        int err = meet_secret_need(p->secret_file, &r->secret, error, len);
        return err ? err : world_gather(&r->world, &m, error, len);
    }
    case GROUP_MPI:
        return world_mpi(&r->world, error, len);
    default:
        return world_fork(&r->world, (unsigned)p->np, session_serve, &r->service, error, len);
    }
}

void ranks_leave(struct ranks *r)
{
    bool broken = r->session && session_broken(r->session);
    bool mpi = r->world && !strcmp(world_group(r->world), "mpi");

    session_close(r->session);
    world_close(r->world);
    r->session = NULL;
    r->world = NULL;
    if (mpi &&
        !broken) /* a rank that hangs would be waited for without end: the launcher ends it */
        mpi_end();
}

static int serve(const struct ranks_params *p, const struct session_service *service,
                 const volatile int *cancel, char *error, size_t len)
{
    struct world *world = NULL;
    int err;

    if (group_of(p) == GROUP_MPI) {
        err = world_mpi(&world, error, len);
    } else {
        struct meet_secret secret = {0};
        struct world_meeting m = meeting_of(p, &secret, cancel);
        err = meet_secret_need(p->secret_file, &secret, error, len);
        err = err ? err : world_join(&world, &m, error, len);
    }
    if (err)
        return err;
    struct session_service own = *service;
    bool mpi = !strcmp(world_group(world), "mpi");
    int status = session_serve(world, &own);
    world_close(world);
    if (mpi && !status)
        mpi_end();
    return status;
}

static int tell(int err, const char *error)
{
    notice_error(err, error[0] ? error : strerror(-err));
    return meet_exit(err);
}

/* Where this process is another rank: serves, and returns the exit status; -1: it is rank 0. */
static int serve_other(const struct ranks_params *p, const struct session_service *service,
                       const volatile int *cancel)
{
    char error[512] = "";
    /* Is this process another rank than 0, by the options or by the launcher? -errno with error: it
     * cannot be told. */
    unsigned rank = 0, size = 0;
    int status = p->leader != NULL;

    if (group_of(p) == GROUP_MPI) {
        status = mpi_begin(&rank, &size, error, sizeof(error));
        status = status ? status : rank > 0;
    }
    if (!status)
        return -1;
    if (status > 0)
        status = serve(p, service, cancel, error, sizeof(error));
    return status < 0 ? tell(status, error) : status;
}

/* --who: a line for each rank. Returns the exit status. */
static int print_who(const struct ranks_params *p, const volatile int *cancel)
{
    struct ranks *r = xcalloc(1, sizeof(*r));
    char error[512] = "";
    int err = need_world(r, p, cancel, error, sizeof(error));

    if (!err)
        err = session_open(&r->session, r->world, NULL, 0);
    if (err)
        tell(err, error);
    else
        puts("rank,node,host,pid,machine_ranks,group");
    for (unsigned i = 0; !err && i < world_size(r->world); i++) {
        const struct world_member *m = world_member(r->world, i);
        printf("%u,%u,%s,%d,%u,%s\n", i, m->node, m->host, m->pid, m->machine_ranks,
               world_group(r->world));
    }
    ranks_leave(r);
    free(r);
    return meet_exit(err);
}

__attribute__((format(printf, 1, 2))) static int wrong_usage(const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return tell(-EINVAL, text);
}

int ranks_instead(const struct opts *o, const struct ranks_params *p,
                  const struct session_service *service, const volatile int *cancel)
{
    char unknown[320];

    if (p->leader && !p->port)
        return wrong_usage("--port 0 is no port that a leader listens on");
    if (p->leader && !p->rank)
        return wrong_usage("--leader HOST is for ranks 1 and on: say which by --rank, or leave "
                           "--leader out and --listen on this one");
    if (p->rank >= p->np || (p->rank && group_of(p) == GROUP_LOCAL))
        return wrong_usage("--rank %llu of %llu: ranks that are started by hand are 0 to %llu, "
                           "and those from 1 on have a --leader",
                           (unsigned long long)p->rank, (unsigned long long)p->np,
                           (unsigned long long)p->np - 1);
    if (group_of(p) == GROUP_MPI && p->np != mpi_launched())
        return wrong_usage("--np %llu, but the launcher started %u: leave --np out, and take "
                           "--ranks for fewer",
                           (unsigned long long)p->np, mpi_launched());
    if (group_of(p) == GROUP_LOCAL && !opts_values(o, "np")->given &&
        mpi_unknown_text(unknown, sizeof(unknown)))
        return wrong_usage("%s. Or give --listen to one and --leader to the others; --np N is for "
                           "N processes of this one alone",
                           unknown);
    int status = serve_other(p, service, cancel);
    return status < 0 && p->who ? print_who(p, cancel) : status;
}

int ranks_possible(struct point *pt, const struct ranks_params *p, uint64_t ranks)
{
    return ranks <= p->np
               ? 0
               : point_reason(
                     pt, -EOPNOTSUPP,
                     "a communicator of %llu ranks, but there are %llu: give --np %llu, or "
                     "start more",
                     (unsigned long long)ranks, (unsigned long long)p->np,
                     (unsigned long long)ranks);
}

static int open_session(struct point *pt, struct ranks *r, const struct ranks_params *p, bool watch)
{
    char error[512] = "";
    int err = need_world(r, p, pt->cancel, error, sizeof(error));

    /* Whoever started the ranks one by one looks there, and may try another port. */
    if (err && group_of(p) == GROUP_SOCK)
        notice_error(err, error);
    if (!err)
        err = session_open(&r->session, r->world, point_topo(pt), watch ? IDLE_NS : 0);
    if (err && !error[0])
        snprintf(error, sizeof(error), "%s",
                 r->session ? session_error(r->session) : strerror(-err));
    if (!err && r->service.find)
        session_find(r->session, r->service.find);
    if (err)
        ranks_leave(r);
    return err ? point_reason(pt, err, "%s", error) : 0;
}

/*
 * Ranks that were lost, and the points that are left. Processes that were forked here are started
 * anew, if they can be: a child of a process that has used a GPU cannot use it. Ranks that came by
 * sockets are kept: those that are left serve on, and a communicator with a lost one fails by its
 * name. Of a launcher's ranks none is left: it ends them all.
 */
static void count_losses(struct ranks *r)
{
    const char *group = world_group(r->world);
    bool mpi = !strcmp(group, "mpi");

    if (!session_broken(r->session))
        return;
    if (mpi && !r->unreachable) {
        r->unreachable = -EPIPE;
        snprintf(r->why_unreachable, sizeof(r->why_unreachable),
                 "a rank was lost in an earlier case: %s", session_loss(r->session));
    }
    if (mpi || (!strcmp(group, "local") && !gpus_used()))
        ranks_leave(r);
}

/* Command lines that share a process may ask for different numbers of processes. */
static bool has_other_size(const struct ranks *r, const struct ranks_params *p)
{
    return !strcmp(world_group(r->world), "local") && world_size(r->world) != p->np && !gpus_used();
}

/* One world for all points, as long as it can be kept. */
int ranks_need(struct point *pt, struct ranks *r, const struct ranks_params *p, bool watch)
{
    if (r->session)
        count_losses(r);
    if (r->session && has_other_size(r, p))
        ranks_leave(r);
    if (r->session)
        return 0;
    if (r->unreachable)
        return point_reason(pt, r->unreachable, "%s", r->why_unreachable);
    int err = open_session(pt, r, p, watch);
    if (err && err != -EINTR) {
        r->unreachable = err;
        snprintf(r->why_unreachable, sizeof(r->why_unreachable), "%s", pt->reason);
    }
    return err;
}

static size_t evidence_bytes(const struct session_node *node)
{
    return strlen(node->host) + strlen(node->proof.text) + 4; /* ": " and ", " */
}

/* The worst first: there may be more nodes than room. */
int ranks_evidence(struct point *pt)
{
    const struct ranks *r = pt->bench_state;
    static const enum path_verdict order[] = {PATH_ELSEWHERE, PATH_UNKNOWN, PATH_PROVED};
    const struct session_node *nodes;
    unsigned n = session_nodes(r->session, &nodes), proved = 0, silent = 0;
    size_t bytes = 0;
    bool any = false;

    pt->carriers = session_report(r->session, 0) ? session_report(r->session, 0)->carriers : 0;
    bool told =
        pt->carriers != 0; /* what a library says that it connected goes before the counters */
    for (unsigned i = 0; i < n; i++) {
        pt->carriers |= told ? 0 : nodes[i].proof.carriers;
        proved += nodes[i].proof.verdict == PATH_PROVED && nodes[i].proof.text[0];
        silent += !nodes[i].proof.text[0];
        bytes += evidence_bytes(&nodes[i]);
    }
    if (n > silent && (n > 2 || (n == 2 && bytes >= sizeof(pt->evidence))))
        evidence_add(pt->evidence, sizeof(pt->evidence), "%u of %u nodes proved", proved, n);
    for (unsigned v = 0; v < 3; v++)
        for (unsigned i = 0; i < n; i++)
            if (nodes[i].proof.text[0] && nodes[i].proof.verdict == order[v]) {
                /* What does not fit is left out whole: half a figure is another figure. */
                if (any && strlen(pt->evidence) + evidence_bytes(&nodes[i]) >= sizeof(pt->evidence))
                    continue;
                evidence_add(pt->evidence, sizeof(pt->evidence), "%s: %s", nodes[i].host,
                             nodes[i].proof.text);
                any = true;
            }
    return 0;
}

void ranks_teardown(struct point *pt)
{
    const struct ranks *r = pt->bench_state;

    if (r->session)
        session_finish(r->session);
}

void way_backends(backend_say_fn *say, void *arg)
{
    for (size_t i = 0; collective_names[i]; i++) {
        const struct collective_ops *ops = collective_find(collective_names[i]);
        if (ops->backends)
            ops->backends(say, arg);
        else
            say(arg, &(struct backend){.name = ops->name, .state = BACKEND_PRESENT});
    }
    wire_backends(say, arg);
}

#define LOCAL_MOST 4 /* processes that nobody asked for */

/* Processes, where the command line does not say: what the launcher started, as many as a
 * communicator wants, or a few. */
static unsigned default_np(const struct opts *o)
{
    const struct opt_values *ranks = opts_values(o, "ranks");
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned long most = 0;

    if (mpi_launched() > 1)
        return mpi_launched();
    for (size_t i = 0; i < ranks->n; i++) {
        unsigned long n = strtoul(ranks->texts[i], NULL, 10);
        most = n > most ? n : most;
    }
    if (most)
        return (unsigned)most;
    return cpus < 2 ? 2 : cpus > LOCAL_MOST ? LOCAL_MOST : (unsigned)cpus;
}

/* 0 among the ranks stands for 1, 2, 4, ... and all. */
static int set_ranks(struct opts *o, unsigned np)
{
    const struct opt_values *ranks = opts_values(o, "ranks");
    char text[256] = "";
    size_t at = 0;

    for (size_t i = 0; i < ranks->n; i++)
        if (!strcmp(ranks->texts[i], "0"))
            at = 1;
    if (!at)
        return 0;
    at = 0;
    for (unsigned n = 1; n < np; n *= 2)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%u,", n);
    snprintf(text + at, sizeof(text) - at, "%u", np);
    return opts_imply(o, "ranks", text);
}

int ranks_defaults(struct opts *o)
{
    char text[24];

    snprintf(text, sizeof(text), "%u", default_np(o));
    int err = opts_default(o, "np", text);
    if (!err)
        err = set_ranks(o, (unsigned)strtoul(opts_values(o, "np")->texts[0], NULL, 10));
    /* Between machines shared memory is no way; a launcher's MPI is what people compare with. */
    bool far =
        opts_values(o, "leader")->given || opts_values(o, "listen")->given || mpi_launched() > 1;
    return !err && far ? opts_default(o, "transport", "tcp,rdma") : err;
}
