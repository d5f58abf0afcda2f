/* SPDX-License-Identifier: Apache-2.0 */
/* The peer: what it does as the leader asks (lead.h), and who it is (net_work.h). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benches/net/net_work.h"
#include "core/alloc.h"
#include "core/group/channel.h"
#include "core/group/notice.h"
#include "core/group/pair.h"
#include "core/hw/gpu.h"
#include "core/hw/machine.h"
#include "core/hw/place.h"
#include "core/hw/rail.h"
#include "core/program.h"

/* ---- What it does: request by request, until the leader says goodbye ---- */

#define IDLE_MOST_NS 10000000000u /* that it may ask to watch the idle machine */

/* How far a point has come. */
enum state { NOTHING, OPENED, ADDRESSED, JOINED, STARTED, STOPPED, DRAINED };

struct server {
    struct talk_server talk;
    const struct net_service *service;
    struct topo *topo;
    bool same_machine;
    struct net_order order; /* of the point that is open */
    struct net_end end;
    bool open;
};

static struct server *of(struct talk_server *t)
{
    return t->arg;
}

static int hello(struct talk_server *t)
{
    struct net_hello asked, *own = t->body;

    memcpy(&asked, t->in.bytes, sizeof(asked));
    asked.machine[sizeof(asked.machine) - 1] = 0;
    *own = (struct net_hello){.idle_ns = asked.idle_ns, .idle_cores = NAN, .idle_softirq = NAN};
    machine_id(own->machine);
    gethostname(own->host, sizeof(own->host) - 1);
    of(t)->same_machine = machine_same(own->machine, asked.machine);
    if (asked.idle_ns && asked.idle_ns <= IDLE_MOST_NS && !of(t)->same_machine)
        cpu_watch(asked.idle_ns, &own->idle_cores, &own->idle_softirq);
    return 0;
}

static int open_point(struct talk_server *t)
{
    struct server *s = of(t);
    struct net_order *o = &s->order;
    struct rail rail;

    if (s->open)
        return -EPROTO;
    memcpy(o, t->in.bytes, sizeof(*o));
    o->point.transport[sizeof(o->point.transport) - 1] = 0;
    o->point.tcp.congestion[sizeof(o->point.tcp.congestion) - 1] = 0;
    o->local.devices[sizeof(o->local.devices) - 1] = 0;
    o->local.memory[sizeof(o->local.memory) - 1] = 0;
    if (o->n_cpus > NET_WORKERS_MAX)
        return -EPROTO;
    /* What this end's own command line says goes before what the leader asks. */
    const struct net_local *own = s->service->own;
    if (own && own->devices[0])
        memcpy(o->local.devices, own->devices, sizeof(own->devices));
    if (own && own->node != NET_NODE_NEAR)
        o->local.node = own->node;
    if (own && own->memory[0])
        memcpy(o->local.memory, own->memory, sizeof(own->memory));
    int err = net_rail_find(&o->local, &rail, t->error, sizeof(t->error));
    if (err)
        return err;
    s->open = true;
    err = net_end_open(&s->end, o, t->channel, s->topo, false, s->same_machine);
    if (!err)
        net_end_rails(&s->end, t->body);
    return err;
}

static int address(struct talk_server *t)
{
    char own[NET_ADDRESS_MAX];
    size_t n = 0;
    int err = net_address(&of(t)->end, own, &n);

    if (!err && !talk_body(t, n))
        err = -EMSGSIZE;
    if (!err)
        memcpy(t->body, own, n);
    return err;
}

static int join(struct talk_server *t)
{
    return net_join(&of(t)->end, t->in.bytes, t->in.len);
}

static int start(struct talk_server *t)
{
    struct net_end *e = &of(t)->end;

    e->path = path_begin();
    int err = net_workers_start(e);
    return err || !e->point->ping ? err : net_pong_start(e);
}

static int read_end(struct talk_server *t)
{
    uint32_t flags = 0;

    memcpy(&flags, t->in.bytes, sizeof(flags));
    net_read(&of(t)->end, t->body, flags);
    return atomic_load(&of(t)->end.error_code);
}

static int stop(struct talk_server *t)
{
    struct net_end *e = &of(t)->end;
    uint64_t *sent = talk_body(t, e->point->connections * sizeof(*sent));

    net_facts_take(e);
    return net_workers_stop(e, sent);
}

static int drain(struct talk_server *t)
{
    struct net_end *e = &of(t)->end;

    if (t->in.len != e->point->connections * sizeof(uint64_t))
        return -EPROTO;
    int err = net_workers_drain(e, (const void *)t->in.bytes);
    int pong_err = net_pong_end(e);
    return err ? err : pong_err;
}

static int prove(struct talk_server *t)
{
    struct net_end *e = &of(t)->end;

    if (t->in.len != (e->point->connections + 1u) * sizeof(uint64_t))
        return -EPROTO;
    net_prove_end(e, (const void *)t->in.bytes);
    net_received(e, talk_body(t, t->in.len));
    return 0;
}

static int check(struct talk_server *t)
{
    return net_check(&of(t)->end);
}

static int report(struct talk_server *t)
{
    net_report_make(&of(t)->end, t->body);
    return 0;
}

static int close_point(struct talk_server *t)
{
    struct server *s = of(t);

    if (s->open)
        net_end_close(&s->end);
    s->open = false;
    return 0;
}

const struct talk_request net_requests[NET_REQUESTS] = {
    [NET_ASK_HELLO] = {sizeof(struct net_hello), sizeof(struct net_hello), NOTHING, NOTHING,
                       NOTHING, TALK_NEVER, hello},
    [NET_ASK_OPEN] = {sizeof(struct net_order), sizeof(struct net_rails), NOTHING, NOTHING, OPENED,
                      TALK_NEVER, open_point},
    [NET_ASK_ADDRESS] = {0, TALK_ANY, OPENED, OPENED, ADDRESSED, TALK_NEVER, address},
    [NET_ASK_JOIN] = {TALK_ANY, 0, ADDRESSED, ADDRESSED, JOINED, TALK_NEVER, join},
    [NET_ASK_START] = {0, 0, JOINED, JOINED, STARTED, TALK_NEVER, start},
    [NET_ASK_READ] = {sizeof(uint32_t), sizeof(struct net_reading), OPENED, DRAINED, TALK_STAYS,
                      TALK_NEVER, read_end},
    [NET_ASK_STOP] = {0, TALK_ANY, STARTED, STARTED, STOPPED, TALK_NEVER, stop},
    [NET_ASK_DRAIN] = {TALK_ANY, 0, STOPPED, STOPPED, DRAINED, TALK_NEVER, drain},
    [NET_ASK_PROVE] = {TALK_ANY, TALK_ANY, DRAINED, DRAINED, DRAINED, TALK_NEVER, prove},
    [NET_ASK_CHECK] = {0, 0, DRAINED, DRAINED, DRAINED, TALK_NEVER, check},
    [NET_ASK_REPORT] = {0, sizeof(struct net_report), DRAINED, DRAINED, DRAINED, TALK_NEVER,
                        report},
    [NET_ASK_CLOSE] = {0, 0, NOTHING, DRAINED, NOTHING, TALK_NEVER, close_point},
};

/* Both ends must have the same: it changes with the layout of what they send as it is. */
static uint32_t protocol(void)
{
    static const uint32_t layout[] = {
        9, /* of the requests: raise it when their order or meaning changes */
        sizeof(struct net_hello),
        sizeof(struct net_order),
        sizeof(struct net_rails),
        sizeof(struct net_report),
        sizeof(struct net_reading),
    };

    return meet_protocol(layout, sizeof(layout) / sizeof(*layout));
}

/* A thread may have failed while nothing was asked. */
static int before(struct talk_server *t, const struct talk_request *r)
{
    return r->from > NOTHING ? atomic_load(&of(t)->end.error_code) : 0;
}

static void failed(struct talk_server *t)
{
    if (of(t)->open)
        snprintf(t->error, sizeof(t->error), "%s", of(t)->end.error);
}

int net_serve(struct channel *c, void *arg)
{
    struct server *s = xcalloc(1, sizeof(*s));

    s->service = arg;
    s->talk = (struct talk_server){.channel = c,
                                   .requests = net_requests,
                                   .n_requests = NET_REQUESTS,
                                   .arg = s,
                                   .before = before,
                                   .failed = failed};
    int err = topo_open(&s->topo);
    if (!err)
        err = talk_serve(&s->talk);
    if (s->open)
        net_end_close(&s->end);
    topo_close(s->topo);
    free(s);
    return err == -EHOSTUNREACH ? err : err ? 1 : 0;
}

/* ---- Who it is ---- */

void net_peer_locals(const struct net_params *p, struct net_local *own, struct net_local *peers)
{
    uint32_t rail = p->rail && *p->rail ? (uint32_t)atoi(p->rail) + 1 : 0;

    *own = (struct net_local){.node = p->node, .rail = rail};
    *peers = (struct net_local){.node = p->peer_node, .rail = rail};
    snprintf(own->devices, sizeof(own->devices), "%s", p->device ? p->device : "");
    snprintf(peers->devices, sizeof(peers->devices), "%s", p->peer_device ? p->peer_device : "");
    snprintf(own->memory, sizeof(own->memory), "%s", p->memory ? p->memory : "");
    snprintf(peers->memory, sizeof(peers->memory), "%s", p->peer_memory ? p->peer_memory : "");
}

/* A peer that is to have its buffers in a GPU's memory cannot be forked from a process that
 * has used one. */
static int check_fork(const struct net_params *p, char *error, size_t len)
{
    bool rail = p->rail && *p->rail;

    if (!gpus_used() || !(rail || net_peer_gpu(p->peer_memory)))
        return 0;
    snprintf(error, len,
             "--%s %s: another peer would have to be forked, but this process has used a "
             "GPU by now, and what it forks cannot: measure this case by a command of its own, or "
             "start the peer by %s --listen",
             rail ? "rail" : "peer-memory", rail ? p->rail : p->peer_memory,
             program_invocation_short_name);
    return -EBUSY;
}

bool net_peer_gpu(const char *memory)
{
    struct place place;
    char error[256];

    if (!memory || !*memory)
        return false;
    return !strcmp(memory, NET_MEMORY_RAIL) ||
           (!place_parse(memory, PLACE_WHOLE | PLACE_GPU, &place, error, sizeof(error)) &&
            place.gpu);
}

int net_peer_open(struct channel **c, const struct net_params *p, struct meet_secret *secret,
                  const volatile int *cancel, char *error, size_t len)
{
    struct net_service of_a_child = {.own = NULL};
    int err;

    if (pair_kind(&p->meet) == PAIR_NONE) {
        err = check_fork(p, error, len);
        if (!err)
            err = channel_fork(c, net_serve, &of_a_child);
    } else {
        err = pair_open(c, &p->meet, protocol(), secret, cancel, error, len);
    }
    if (err && !error[0])
        snprintf(error, len, "cannot start the peer: %s", strerror(-err));
    return err;
}

int net_peer_serve(const struct net_params *p, const volatile int *cancel)
{
    struct net_local own, peers;
    struct net_service listener = {.own = &own}, rank = {.own = &peers};

    net_peer_locals(p, &own, &peers); /* of two ranks with one command line, rank 1 has its part */
    if (p->meet.listen && own.rail) {
        notice_error(-EINVAL,
                     "--rail is the leader's to say: a listener takes the rail of the same number");
        return EXIT_USAGE;
    }
    if (p->meet.listen && !strcmp(own.memory, "host")) /* by default: then the leader says it */
        own.memory[0] = 0;
    return pair_serve(&p->meet,
                      &(struct pair_service){.protocol = protocol(),
                                             .fn = net_serve,
                                             .listener = &listener,
                                             .rank = &rank,
                                             .forks = true},
                      cancel);
}
