/* SPDX-License-Identifier: Apache-2.0 */
/* The leader's side of a point's life: see lead.h. */
#include "benches/net/lead.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/hw/machine.h"
#include "core/hw/nic.h"
#include "core/units.h"

/* Opening, connecting and checking have deadlines of their own at the peer, of WIRE_STILL_NS for
 * each step. Signs of life say meanwhile that it is there. */
#define STEP_WAIT_NS (3 * WIRE_STILL_NS)

#define WHY_WAIT_NS 1200000000u /* for the peer's view of an error: two signs of life */

_Static_assert(WIRE_STILL_NS + WHY_WAIT_NS < BEAT_NAMED_NS, "who hangs is named in time");

static bool is_loss(int err)
{
    static const int losses[] = {-ETIMEDOUT,   -ECONNRESET, -EPIPE,       -EHOSTUNREACH,
                                 -ENETUNREACH, -ENETDOWN,   -ECONNABORTED};

    for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++)
        if (err == losses[i])
            return true;
    return false;
}

/* A peer that is lost is not to blame where this end's own link is down: the one of the channel, or
 * of what was measured. */
static bool is_cut(const struct net_lead *l, char *why, size_t len)
{
    const struct net_rails *rails = &l->reports[NET_OWN].rails;

    if (!l->same_machine && l->address.ss_family != AF_UNSPEC &&
        nic_is_cut((const void *)&l->address, why, len))
        return true;
    for (unsigned i = 0; i < rails->n; i++)
        if (nic_is_down(rails->rails[i].name) == 1) {
            snprintf(why, len, "its interface '%.64s' is down", rails->rails[i].name);
            return true;
        }
    return false;
}

const char *net_lead_error(struct net_lead *l)
{
    char why[160];

    if (!is_loss(l->err) || !is_cut(l, why, sizeof(why)))
        return l->error;
    snprintf(l->said, sizeof(l->said), "%s, which leads, is cut off: %s", l->channel->own, why);
    return l->said;
}

int net_lead_fail(struct net_lead *l, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(l->error, sizeof(l->error), format, args);
    va_end(args);
    l->err = err;
    return err;
}

int net_lead_send(struct net_lead *l, enum net_request request, const void *data, size_t len)
{
    int err = talk_post(&l->talk, NET_PEER, (uint16_t)request, data, len);

    return err ? net_lead_fail(l, err, "%s", channel_error(l->channel)) : 0;
}

/* Once this end has failed the peer has had its time: it answers soon, or gives signs of life. */
static bool has_had_its_time(void *arg)
{
    struct net_lead *l = arg;

    return l->talk.beat && atomic_load(&l->end.error_code) &&
           channel_quiet_ns(l->channel) >= WHY_WAIT_NS;
}

int net_lead_reply(struct net_lead *l, void *data, size_t size, size_t *len, uint64_t wait_ns)
{
    const struct talk_patience patience = {.quiet_ns = wait_ns, .heed = has_had_its_time, .arg = l};
    int err = talk_take(&l->talk, NET_PEER, &patience, data, size, len);
    bool own = err == -ETIMEDOUT && atomic_load(&l->end.error_code);

    l->peer_failed |= err && !l->talk.peers[NET_PEER].gone;
    return err ? net_lead_fail(l, err, "%s%s%.120s", l->talk.said, own ? "; this end: " : "",
                               own ? l->end.error : "")
               : 0;
}

static int net_lead_ask(struct net_lead *l, enum net_request request, void *data, size_t size)
{
    int err = net_lead_send(l, request, NULL, 0);

    return err ? err : net_lead_reply(l, data, size, NULL, STEP_WAIT_NS);
}

/* An error at this end is often that the connection broke: why it broke, the peer may know. */
int net_lead_own(struct net_lead *l, int err)
{
    struct net_reading reading;
    char own[NET_ERROR_BYTES];

    if (!err)
        return 0;
    snprintf(own, sizeof(own), "%s", l->end.error[0] ? l->end.error : strerror(-err));
    if (channel_unheard(l->channel, BEAT_LED_NS, l->peer_error, sizeof(l->peer_error))) {
        talk_lose(&l->talk, NET_PEER, -EHOSTUNREACH, l->peer_error);
        return net_lead_fail(l, -EHOSTUNREACH, "%s", l->peer_error);
    }
    uint32_t flags = 0;
    if (l->talk.broken || net_lead_send(l, NET_ASK_READ, &flags, sizeof(flags)) ||
        !net_lead_reply(l, &reading, sizeof(reading), NULL, WHY_WAIT_NS))
        return net_lead_fail(l, err, "%s", own);
    snprintf(l->peer_error, sizeof(l->peer_error), "%.380s", l->error);
    return net_lead_fail(l, err, "%s; %s", own, l->peer_error);
}

static int greet(struct net_lead *l, uint64_t idle_ns)
{
    struct net_hello own = {.idle_ns = idle_ns, .idle_cores = NAN, .idle_softirq = NAN};

    machine_id(own.machine);
    gethostname(own.host, sizeof(own.host) - 1);
    int err = net_lead_send(l, NET_ASK_HELLO, &own, sizeof(own));
    if (err)
        return err;
    if (idle_ns)
        cpu_watch(idle_ns, &own.idle_cores, &own.idle_softirq);
    err = net_lead_reply(l, &l->hello[NET_PEER], sizeof(own), NULL, idle_ns + CHANNEL_WAIT_NS);
    l->hello[NET_OWN] = own;
    l->hello[NET_PEER].machine[sizeof(own.machine) - 1] = 0;
    l->same_machine = machine_same(own.machine, l->hello[NET_PEER].machine);
    if (l->same_machine) {
        l->hello[NET_PEER].idle_cores = own.idle_cores;
        l->hello[NET_PEER].idle_softirq = own.idle_softirq;
    }
    l->hello[NET_PEER].host[sizeof(own.host) - 1] = 0;
    return err;
}

int net_lead_open(struct net_lead **lead, struct channel *c, const struct topo *topo,
                  uint64_t idle_ns)
{
    struct net_lead *l = *lead = xcalloc(1, sizeof(*l));

    l->channel = c;
    l->topo = topo;
    struct sockaddr_storage peer;
    if (channel_address(c, &l->address, &peer))
        l->address.ss_family = AF_UNSPEC;
    struct channel *const channels[NET_SIDES] = {[NET_PEER] = c};
    int err = talk_open(&l->talk, channels, NET_SIDES, net_requests, NET_REQUESTS);
    if (err)
        return net_lead_fail(l, err, "no signs of life can be given: %s", strerror(-err));
    return greet(l, idle_ns);
}

void net_lead_close(struct net_lead *l)
{
    if (!l)
        return;
    net_lead_finish(l);
    talk_close(&l->talk);
    channel_close(l->channel);
    free(l);
}

/* What the other end reports is whole: texts end, numbers are within bounds, units are known. */

#define END(text) ((text)[sizeof(text) - 1] = 0)

static bool rails_sound(struct net_rails *rails)
{
    if (!rails->n || rails->n > NIC_RAILS_MAX || rails->n_cpus > NET_WORKERS_MAX)
        return false;
    for (unsigned i = 0; i < rails->n; i++) {
        struct nic_rail *r = &rails->rails[i];
        END(r->name);
        END(r->text);
        END(r->line_source);
    }
    return true;
}

static bool report_sound(struct net_report *report)
{
    END(report->proof.text);
    if (report->n_facts > WIRE_FACTS_MAX || !rails_sound(&report->rails))
        return false;
    for (unsigned i = 0; i < report->n_facts; i++) {
        END(report->facts[i].metric);
        END(report->facts[i].unit);
        if (!units_find(report->facts[i].unit))
            return false;
    }
    return true;
}

/* This end first: it says what CPUs it takes of a machine that both share. */
static int open_both(struct net_lead *l, const struct net_local *peers)
{
    struct net_order order = {.point = l->order.point, .local = *peers};
    int err = net_end_open(&l->end, &l->order, l->channel, l->topo, true, l->same_machine);

    if (err)
        return net_lead_fail(l, err, "%s", l->end.error);
    if (order.point.inject == NET_CORRUPT)
        order.point.seed++;
    if (l->same_machine) {
        order.n_cpus = l->end.n_cpus;
        for (unsigned i = 0; i < l->end.n_cpus; i++)
            order.cpus[i] = l->end.cpus[i];
    }
    err = net_lead_send(l, NET_ASK_OPEN, &order, sizeof(order));
    l->peer_open = !err;
    if (!err)
        err = net_lead_reply(l, &l->reports[NET_PEER].rails, sizeof(struct net_rails), NULL,
                             STEP_WAIT_NS);
    if (!err && !rails_sound(&l->reports[NET_PEER].rails))
        err = net_lead_fail(l, -EPROTO, "%s reported devices that cannot be",
                            channel_peer(l->channel));
    if (!err && l->reports[NET_PEER].rails.n != l->end.n_rails)
        err = net_lead_fail(l, -EINVAL,
                            "this end has %u devices, %s has %u: give as many on both sides",
                            l->end.n_rails, channel_peer(l->channel), l->reports[NET_PEER].rails.n);
    net_end_rails(&l->end, &l->reports[NET_OWN].rails);
    return err;
}

static int connect_both(struct net_lead *l)
{
    char theirs[NET_ADDRESS_MAX], own[NET_ADDRESS_MAX];
    size_t n_theirs = 0, n_own = 0;
    int err = net_lead_send(l, NET_ASK_ADDRESS, NULL, 0);

    int own_err = err ? 0 : net_address(&l->end, own, &n_own);
    if (!err)
        err = net_lead_reply(l, theirs, sizeof(theirs), &n_theirs, STEP_WAIT_NS);
    if (err || own_err)
        return err ? err : net_lead_own(l, own_err);
    err = net_lead_send(l, NET_ASK_JOIN, own, n_own);
    own_err = err ? 0 : net_join(&l->end, theirs, n_theirs);
    if (!err)
        err = net_lead_reply(l, NULL, 0, NULL, STEP_WAIT_NS);
    if (own_err && !(err && l->peer_failed))
        return net_lead_fail(l, own_err, "%s", l->end.error);
    return err;
}

int net_lead_begin(struct net_lead *l, const struct net_point *point, const struct net_local *own,
                   const struct net_local *peers)
{
    l->order = (struct net_order){.point = *point, .local = *own};
    l->error[0] = 0;
    l->err = 0;
    l->peer_failed = false;
    l->open = true;
    l->n_blocks = 0;
    l->block_ns = NET_BLOCK_NS;
    memset(l->reports, 0, sizeof(l->reports));
    int err = open_both(l, peers);
    if (!err)
        err = connect_both(l);
    if (!err) {
        l->end.path = path_begin(); /* bytes may come as soon as the peer starts */
        err = net_lead_ask(l, NET_ASK_START, NULL, 0);
    }
    if (!err)
        err = net_lead_own(l, net_workers_start(&l->end));
    net_end_rails(&l->end, &l->reports[NET_OWN].rails); /* address() and join() may know more */
    if (!err)
        err = net_lead_first_reading(l);
    if (err)
        net_lead_finish(l);
    return err;
}

/* The peer's end first: what is still under way then ends here with an error that nobody reads. */
void net_lead_finish(struct net_lead *l)
{
    char error[sizeof(l->error)];
    int err = l->err;

    if (!l->open)
        return;
    memcpy(error, l->error, sizeof(error));
    atomic_store(&l->end.give_up, true);
    if (l->peer_open && !l->talk.broken)
        net_lead_ask(l, NET_ASK_CLOSE, NULL, 0);
    l->peer_open = false;
    net_end_close(&l->end);
    memcpy(l->error, error, sizeof(error));
    l->err = err;
    l->open = false;
}

/* ---- The end of a point: stopped, drained, proved, checked ---- */

/* Messages that are under way are finished: as long as one on each connection takes at the rate
 * of before, twice. */
static uint64_t finish_wait_ns(const struct net_lead *l)
{
    double gbps = net_lead_average(l);
    double bytes = (double)l->end.point->message_bytes * l->end.point->connections;
    double ns = gbps > 0 ? 2 * bytes / gbps : 0;

    return STEP_WAIT_NS + (ns < 3.6e12 ? (uint64_t)ns : 3600000000000u);
}

static int stop_both(struct net_lead *l)
{
    uint64_t theirs[NET_CONNECTIONS_MAX], own[NET_CONNECTIONS_MAX];
    size_t size = l->end.point->connections * sizeof(*own);
    uint64_t ns;
    int err = l->end.point->ping ? net_ping(&l->end, true, &ns) : 0;

    err = net_lead_own(l, err);
    if (!err)
        err = net_lead_send(l, NET_ASK_STOP, NULL, 0);
    if (err)
        return err;
    net_facts_take(&l->end);
    int own_err = net_workers_stop(&l->end, own);
    err = net_lead_reply(l, theirs, size, NULL, finish_wait_ns(l));
    if (!err)
        err = net_lead_own(l, own_err);
    if (!err)
        err = net_lead_send(l, NET_ASK_DRAIN, own, size);
    if (err)
        return err;
    own_err = net_workers_drain(&l->end, theirs);
    err = net_lead_reply(l, NULL, 0, NULL, finish_wait_ns(l));
    return err ? err : net_lead_own(l, own_err);
}

static int prove_both(struct net_lead *l)
{
    uint64_t theirs[NET_CONNECTIONS_MAX + 1], own[NET_CONNECTIONS_MAX + 1];
    size_t size = (l->end.point->connections + 1u) * sizeof(*own);

    net_received(&l->end, own);
    int err = net_lead_send(l, NET_ASK_PROVE, own, size);
    if (!err)
        err = net_lead_reply(l, theirs, size, NULL, STEP_WAIT_NS);
    if (!err)
        net_prove_end(&l->end, theirs);
    return err;
}

static int check_both(struct net_lead *l)
{
    int err = net_lead_send(l, NET_ASK_CHECK, NULL, 0);

    if (err)
        return err;
    int own_err = net_check(&l->end);
    err = net_lead_reply(l, NULL, 0, NULL, finish_wait_ns(l));
    if (own_err == -EBADMSG || (own_err && !err))
        return net_lead_fail(l, own_err, "%s", l->end.error);
    return err;
}

int net_lead_end(struct net_lead *l)
{
    int err = net_lead_last_reading(l);

    if (!err)
        err = stop_both(l);
    if (!err)
        err = prove_both(l);
    if (!err)
        err = check_both(l);
    if (!err)
        err = net_lead_ask(l, NET_ASK_REPORT, &l->reports[NET_PEER], sizeof(l->reports[NET_PEER]));
    if (!err && !report_sound(&l->reports[NET_PEER]))
        err = net_lead_fail(l, -EPROTO, "%s reported what cannot be", channel_peer(l->channel));
    if (err)
        return err;
    net_report_make(&l->end, &l->reports[NET_OWN]);
    for (int side = 0; side < NET_SIDES; side++)
        if (l->reports[side].proof.verdict == PATH_ELSEWHERE)
            return net_lead_fail(l, -EBADMSG, "the bytes went another way: at %s, %s",
                                 side == NET_OWN ? "this end" : channel_peer(l->channel),
                                 l->reports[side].proof.text);
    return 0;
}
