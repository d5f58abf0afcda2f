/* SPDX-License-Identifier: Apache-2.0 */
/* How a point ends: stopped, drained, proved, checked, told about. See lead.h and order.h. */
#include <errno.h>

#include "benches/net/lead_state.h"

static void beat(void *arg)
{
    struct net_lead *l = arg;

    if (!l->broken)
        net_lead_send(l, NET_ASK_BEAT, NULL, 0);
}

/* Messages that are under way are finished: as long as one on each connection takes at the rate of before, twice. */
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
    int err = l->end.point->ping ? l->end.ops->ping(&l->end, true, &ns) : 0;

    err = net_lead_own(l, err);
    if (!err)
        err = net_lead_send(l, NET_ASK_STOP, NULL, 0);
    if (err)
        return err;
    net_facts_take(&l->end);
    int own_err = net_workers_stop(&l->end, own, beat, l);
    err = net_lead_reply(l, NET_ASK_STOP, theirs, size, NULL, finish_wait_ns(l));
    if (!err)
        err = net_lead_own(l, own_err);
    if (!err)
        err = net_lead_send(l, NET_ASK_DRAIN, own, size);
    if (err)
        return err;
    own_err = net_workers_drain(&l->end, theirs, beat, l);
    err = net_lead_reply(l, NET_ASK_DRAIN, NULL, 0, NULL, finish_wait_ns(l));
    return err ? err : net_lead_own(l, own_err);
}

static int prove_both(struct net_lead *l)
{
    uint64_t theirs[NET_CONNECTIONS_MAX + 1], own[NET_CONNECTIONS_MAX + 1];
    size_t size = (l->end.point->connections + 1u) * sizeof(*own);

    net_received(&l->end, own);
    int err = net_lead_send(l, NET_ASK_PROVE, own, size);
    if (!err)
        err = net_lead_reply(l, NET_ASK_PROVE, theirs, size, NULL, STEP_WAIT_NS);
    if (!err)
        net_prove_end(&l->end, theirs);
    return err;
}

static int check_both(struct net_lead *l)
{
    int err = net_lead_send(l, NET_ASK_CHECK, NULL, 0);

    if (err)
        return err;
    int own_err = l->end.ops->check(&l->end);
    err = net_lead_reply(l, NET_ASK_CHECK, NULL, 0, NULL, finish_wait_ns(l));
    if (own_err == -EBADMSG || (own_err && !err))
        return net_lead_fail(l, own_err, "%s", l->end.error);
    return err;
}

static int judge_path(struct net_lead *l)
{
    for (int side = 0; side < NET_SIDES; side++)
        if (l->told[side].proof.verdict == PATH_ELSEWHERE)
            return net_lead_fail(l, -EBADMSG, "the bytes went another way: at %s, %s",
                                 side == NET_OWN ? "this end" : channel_peer(l->channel),
                                 l->told[side].proof.text);
    return 0;
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
        err = net_lead_ask(l, NET_ASK_TELL, &l->told[NET_PEER], sizeof(l->told[NET_PEER]));
    if (!err && !net_told_sound(&l->told[NET_PEER]))
        err = net_lead_fail(l, -EPROTO, "%s told what cannot be", channel_peer(l->channel));
    if (!err) {
        net_tell(&l->end, &l->told[NET_OWN]);
        err = judge_path(l);
    }
    return err;
}
