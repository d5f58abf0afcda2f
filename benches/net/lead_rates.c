/* SPDX-License-Identifier: Apache-2.0 */
/* From both ends' readings to rates and costs: see lead.h and net.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "benches/net/lead.h"
#include "core/clock.h"
#include "core/hw/nic.h"
#include "core/wire/wires.h"

#define AGAIN_NS                                                                                   \
    1000000u /* until the next look, where nothing had arrived; twice as long each time, */
#define AGAIN_MOST_NS 20000000u /* up to this */
#define CLUMPS                                                                                     \
    8 /* messages of each connection that a window holds at least, where whole ones are counted */

/* The end whose tallies count a direction. */
static enum net_side counter_of(const struct net_lead *l, int direction)
{
    return net_counted_by_sender(&l->end) == (direction == NET_FORWARD) ? NET_OWN : NET_PEER;
}

static const struct net_rate *rate_of(const struct net_lead *l, const struct net_readings *pair,
                                      int direction, unsigned rail)
{
    return &pair->of[counter_of(l, direction)].rates[direction][rail];
}

static int read_both(struct net_lead *l, struct net_readings *pair, uint32_t flags)
{
    struct net_readings now;
    int err = net_lead_send(l, NET_ASK_READ, &flags, sizeof(flags));

    net_read(&l->end, &now.of[NET_OWN], flags);
    if (!err)
        err = net_lead_reply(l, &now.of[NET_PEER], sizeof(now.of[NET_PEER]), NULL, CHANNEL_WAIT_NS);
    int own_err = atomic_load(&l->end.error_code);
    if (own_err)
        return net_lead_own(l, own_err);
    if (err)
        return err;
    /* It proved who it is, not that it is sound. */
    const struct net_reading *r = &now.of[NET_PEER], *last = &l->last.of[NET_PEER];
    bool sound = r->n_workers <= NET_WORKERS_MAX && r->now_ns >= last->now_ns;
    for (int d = 0; d < NET_DIRECTIONS; d++)
        for (unsigned i = 0; i < NIC_RAILS_MAX; i++)
            sound &= r->rates[d][i].bytes >= last->rates[d][i].bytes &&
                     r->rates[d][i].messages >= last->rates[d][i].messages;
    if (!sound)
        return net_lead_fail(l, -EPROTO, "%s reported readings that cannot be",
                             channel_peer(l->channel));
    *pair = now;
    return 0;
}

/* Does each rate have arrivals between the two? A rate needs two moments: the first reading has
 * none before it. */
static bool all_moved(const struct net_lead *l, const struct net_readings *from,
                      const struct net_readings *to)
{
    /* Connections that share a line fairly end their messages at about the same time. Where a
     * message counts when it is whole, a window of few of them would begin or end in the middle of
     * such a clump. */
    unsigned rails = l->end.n_rails;
    uint64_t enough =
        l->end.ops->streams ? 0 : CLUMPS * ((l->end.point->connections + rails - 1) / rails);

    for (int d = 0; d < NET_DIRECTIONS; d++)
        for (unsigned rail = 0; l->end.point->stream[d] && rail < rails; rail++) {
            const struct net_rate *a = rate_of(l, from, d, rail), *b = rate_of(l, to, d, rail);
            if (!a->last_ns || b->bytes <= a->bytes || b->last_ns <= a->last_ns ||
                b->messages - a->messages < enough)
                return false;
        }
    return true;
}

static bool all_began(const struct net_lead *l, const struct net_readings *pair)
{
    for (int d = 0; d < NET_DIRECTIONS; d++)
        for (unsigned rail = 0; l->end.point->stream[d] && rail < l->end.n_rails; rail++)
            if (!rate_of(l, pair, d, rail)->last_ns)
                return false;
    return true;
}

static void sleep_until(uint64_t until_ns, const volatile int *cancel)
{
    for (uint64_t now_ns = clock_now_ns(); now_ns < until_ns && !(cancel && *cancel);
         now_ns = clock_now_ns()) {
        struct timespec t = {.tv_sec = (time_t)((until_ns - now_ns) / 1000000000u),
                             .tv_nsec = (long)((until_ns - now_ns) % 1000000000u)};
        nanosleep(&t, NULL);
    }
}

static void pause_for(uint64_t *again_ns, const volatile int *cancel)
{
    sleep_until(clock_now_ns() + *again_ns, cancel);
    *again_ns = 2 * *again_ns < AGAIN_MOST_NS ? 2 * *again_ns : AGAIN_MOST_NS;
}

static int still(struct net_lead *l)
{
    return net_lead_fail(
        l, -ETIMEDOUT,
        "nothing has arrived for %.3g s between this end and %s: is the link up, and "
        "does nothing on the way drop it",
        (double)net_still_ns(&l->end) / 1e9, channel_peer(l->channel));
}

int net_lead_first_reading(struct net_lead *l)
{
    struct clock_wait wait = {0};
    uint64_t again_ns = AGAIN_NS;

    l->last = (struct net_readings){0};
    int err = read_both(l, &l->last, NET_READ_MACHINE);
    while (!err && net_streams(l->end.point) && !all_began(l, &l->last)) {
        if (clock_waited_ns(&wait) > net_still_ns(&l->end))
            return still(l);
        pause_for(&again_ns, NULL);
        err = read_both(l, &l->last, NET_READ_MACHINE);
    }
    l->last_ns = clock_now_ns();
    l->mark = l->block = l->final = l->last;
    return err;
}

static double bytes_between(const struct net_lead *l, const struct net_readings *from,
                            const struct net_readings *to)
{
    double bytes = 0;

    for (int d = 0; d < NET_DIRECTIONS; d++)
        for (unsigned rail = 0; l->end.point->stream[d] && rail < l->end.n_rails; rail++)
            bytes += (double)(rate_of(l, to, d, rail)->bytes - rate_of(l, from, d, rail)->bytes);
    return bytes;
}

/* The kernel's counts may go back a little. */
static double seconds_between(uint64_t a_ns, uint64_t b_ns)
{
    return (double)(int64_t)(b_ns - a_ns) / 1e9;
}

/* All that CPUs did between two readings was done in that time: no thread takes more than
 * one of them. */
static double cpu_seconds(const struct net_reading *a, const struct net_reading *b)
{
    return (double)(b->now_ns - a->from_ns) / 1e9;
}

static struct net_cost cost_between(const struct net_lead *l, enum net_side side,
                                    const struct net_readings *from, const struct net_readings *to)
{
    const struct net_reading *a = &from->of[side], *b = &to->of[side];
    struct net_cost cost = {.bytes = bytes_between(l, from, to),
                            .seconds = (double)(b->now_ns - a->now_ns) / 1e9,
                            .cpu_seconds = cpu_seconds(a, b)};

    for (unsigned i = 0; i < b->n_workers && i < NET_WORKERS_MAX; i++)
        cost.spent_s[NET_SPENT_THREADS] += seconds_between(a->worker_ns[i], b->worker_ns[i]);
    cost.spent_s[NET_SPENT_MACHINE] = cost.spent_s[NET_SPENT_SOFTIRQ] = NAN;
    if (a->machine_known &&
        b->machine_known) { /* less what it does when idle: NAN where that was not measured */
        const struct net_hello *h = &l->hello[side];
        cost.spent_s[NET_SPENT_MACHINE] =
            seconds_between(a->busy_ns, b->busy_ns) - h->idle_cores * cost.seconds;
        cost.spent_s[NET_SPENT_SOFTIRQ] =
            seconds_between(a->softirq_ns, b->softirq_ns) - h->idle_softirq * cost.seconds;
    }
    return cost;
}

/* Twice as long, half as many: nothing is left out however long a point runs. */
static void merge_blocks(struct net_lead *l)
{
    for (unsigned i = 0; i < NET_BLOCKS / 2; i++)
        for (int side = 0; side < NET_SIDES; side++) {
            struct net_cost sum = l->blocks[side][2 * i], *next = &l->blocks[side][2 * i + 1];
            sum.bytes += next->bytes;
            sum.seconds += next->seconds;
            sum.cpu_seconds += next->cpu_seconds;
            for (int k = 0; k < NET_SPENT; k++)
                sum.spent_s[k] += next->spent_s[k];
            l->blocks[side][i] = sum;
        }
    l->n_blocks = NET_BLOCKS / 2;
    l->block_ns *= 2;
}

static void end_block(struct net_lead *l, uint64_t at_least_ns)
{
    if (l->last.of[NET_OWN].now_ns - l->block.of[NET_OWN].now_ns < at_least_ns)
        return;
    if (l->n_blocks == NET_BLOCKS)
        merge_blocks(l);
    for (int side = 0; side < NET_SIDES; side++)
        l->blocks[side][l->n_blocks] = cost_between(l, side, &l->block, &l->last);
    l->n_blocks++;
    l->block = l->last;
}

int net_lead_mark(struct net_lead *l)
{
    struct net_readings now = {0};
    int err = read_both(l, &now, NET_READ_MACHINE | NET_READ_MARK);

    if (err)
        return err;
    l->mark = l->block = now;
    l->n_blocks = 0;
    l->block_ns = NET_BLOCK_NS;
    l->longest_ns = 0;
    return 0;
}

int net_lead_last_reading(struct net_lead *l)
{
    int err = read_both(l, &l->final, NET_READ_MACHINE);

    if (!err && net_streams(l->end.point)) {
        l->last = l->final;
        end_block(l, l->n_blocks ? NET_BLOCK_NS / 2 : 1);
    }
    return err;
}

static uint64_t to_ns(double per_ns)
{
    return (uint64_t)llround(NET_QUANTITY / per_ns);
}

static void fill_rates(const struct net_lead *l, const struct net_readings *from,
                       const struct net_readings *to, uint64_t *ns)
{
    double all = 0;
    unsigned n = 0;

    for (int d = 0; d < NET_DIRECTIONS; d++) {
        double sum = 0;
        if (!l->end.point->stream[d])
            continue;
        for (unsigned rail = 0; rail < l->end.n_rails; rail++) {
            const struct net_rate *a = rate_of(l, from, d, rail), *b = rate_of(l, to, d, rail);
            /* Bytes, or messages, a nanosecond: time and bytes belong together, so messages are
             * bytes over their size. */
            double one = (double)(b->bytes - a->bytes) / (double)(b->last_ns - a->last_ns);
            if (l->end.point->count_messages)
                one /= (double)l->end.point->message_bytes;
            ns[n++] = to_ns(one);
            sum += one;
        }
        if (l->end.n_rails > 1)
            ns[n++] = to_ns(sum);
        all += sum;
    }
    if (l->end.point->stream[NET_FORWARD] && l->end.point->stream[NET_REVERSE])
        ns[n++] = to_ns(all);
}

/* What the machine spends is looked at once a block: the look itself costs. */
static uint32_t flags_now(const struct net_lead *l)
{
    return clock_now_ns() - l->block.of[NET_OWN].now_ns >= l->block_ns ? NET_READ_MACHINE : 0;
}

int net_lead_stream(struct net_lead *l, uint64_t window_ns, const volatile int *cancel,
                    uint64_t *ns)
{
    struct net_readings now = {0};
    uint64_t begin_ns = l->last_ns, again_ns = AGAIN_NS, moved = 0;
    struct clock_wait wait = {0};
    uint32_t flags;
    int err;

    sleep_until(l->last_ns + window_ns, cancel);
    while (!(err = read_both(l, &now, flags = flags_now(l))) && !all_moved(l, &l->last, &now)) {
        uint64_t bytes = (uint64_t)bytes_between(l, &l->last, &now);
        if (bytes != moved)
            wait = (struct clock_wait){0};
        moved = bytes;
        if (cancel && *cancel)
            return -EINTR;
        if (clock_waited_ns(&wait) > net_still_ns(&l->end))
            return still(l);
        pause_for(&again_ns, cancel);
    }
    if (err)
        return err;
    fill_rates(l, &l->last, &now, ns);
    l->last = now;
    l->last_ns = clock_now_ns();
    if (l->last_ns - begin_ns > l->longest_ns)
        l->longest_ns = l->last_ns - begin_ns;
    if (flags & NET_READ_MACHINE)
        end_block(l, l->block_ns);
    return 0;
}

double net_lead_average(const struct net_lead *l)
{
    double gbps = 0;

    for (int d = 0; d < NET_DIRECTIONS; d++) {
        enum net_side side = counter_of(l, d);
        double ns = (double)(l->final.of[side].now_ns - l->mark.of[side].now_ns);
        for (unsigned rail = 0; l->end.point->stream[d] && ns > 0 && rail < l->end.n_rails; rail++)
            gbps += (double)(rate_of(l, &l->final, d, rail)->bytes -
                             rate_of(l, &l->mark, d, rail)->bytes) /
                    ns;
    }
    return gbps;
}

uint64_t net_lead_messages(const struct net_lead *l)
{
    uint64_t n = 0;

    for (int d = 0; d < NET_DIRECTIONS; d++)
        for (unsigned rail = 0; l->end.point->stream[d] && rail < l->end.n_rails; rail++)
            n += rate_of(l, &l->last, d, rail)->messages - rate_of(l, &l->mark, d, rail)->messages;
    return n;
}

int net_lead_ping(struct net_lead *l, uint64_t *ns)
{
    /* Signs of life are taken between pings, so that they do not fill the channel. */
    if (talk_watch(&l->talk))
        return net_lead_fail(l, l->talk.peers[NET_PEER].cut ? -EHOSTUNREACH : -ECONNRESET, "%s",
                             l->talk.loss);
    int err = net_ping(&l->end, false, ns);
    if (err)
        return net_lead_own(l, err);
    if (!net_ping_is_read(&l->end))
        *ns /= 2;
    return 0;
}

unsigned net_lead_threads(struct net_lead *l, enum net_side side, double *cores)
{
    const struct net_reading *a = &l->mark.of[side], *b = &l->final.of[side];
    double seconds = cpu_seconds(a, b);

    for (unsigned i = 0; cores && i < b->n_workers && i < NET_WORKERS_MAX; i++)
        cores[i] = seconds_between(a->worker_ns[i], b->worker_ns[i]) / seconds;
    return b->n_workers;
}

/* ---- The names of rates, and their limits ---- */

/* The slower end's line is the limit. */
static void limit_of(struct net_lead *l, unsigned rail, struct net_rate_name *name)
{
    const struct net_point *p = l->end.point;
    const struct wire_load load = {.verb = (enum rdma_verb)p->rdma.verb,
                                   .message_bytes = p->message_bytes,
                                   .mtu = p->rdma.mtu,
                                   .threads = net_rail_threads(p, 1, p->connections)};
    char source[200];

    name->limit_gbps = NAN;
    name->limit_source[0] = 0;
    for (int side = 0; side < NET_SIDES; side++) {
        const struct nic_rail *r = &l->reports[side].rails.rails[rail];
        double gbps = wire_limit_gbps(r, &load, source, sizeof(source));
        if (!(isnan(name->limit_gbps) || gbps < name->limit_gbps))
            continue;
        if (isnan(gbps) && name->limit_source[0])
            continue;
        name->limit_gbps = gbps;
        name->limit_kind = wire_limit_kind(r);
        name->limit_link = wire_limit_link(r, &load);
        memcpy(name->limit_source, source, sizeof(name->limit_source));
    }
}

static struct net_rate_name *add_name(struct net_rate_name *names, unsigned *n,
                                      const char *direction, const char *rail)
{
    struct net_rate_name *name = &names[(*n)++];

    *name = (struct net_rate_name){.direction = direction, .limit_gbps = 0};
    snprintf(name->rail, sizeof(name->rail), "%s", rail);
    return name;
}

const char *net_direction_word(const struct net_point *p, enum net_direction d)
{
    static const char *const words[][NET_DIRECTIONS] = {{"forward", "reverse"},
                                                        {"both-forward", "both-reverse"}};

    return words[p->stream[NET_FORWARD] && p->stream[NET_REVERSE]][d];
}

/* A sum's limit is the sum of its parts', where all are known: else the first that is
 * not says why. */
static void add_part(struct net_rate_name *sum, const struct net_rate_name *part)
{
    if (!sum->limit_source[0] || (isnan(part->limit_gbps) && !isnan(sum->limit_gbps))) {
        memcpy(sum->limit_source, part->limit_source, sizeof(sum->limit_source));
        sum->limit_kind = part->limit_kind;
        sum->limit_link = part->limit_link;
    }
    sum->limit_gbps += part->limit_gbps;
}

/* Each rail of a direction, and behind them their sum where there are several. */
static unsigned add_direction(struct net_lead *l, enum net_direction d, const char *shared,
                              struct net_rate_name *names, unsigned n)
{
    const char *word = net_direction_word(l->end.point, d);
    struct net_rate_name sum = {.direction = word, .rail = "all"};

    for (unsigned rail = 0; rail < l->end.n_rails; rail++) {
        struct net_rate_name *name =
            add_name(names, &n, word, l->end.n_rails > 1 ? l->end.rails[rail].name : "");
        limit_of(l, rail, name);
        add_part(&sum, name);
    }
    if (*shared && !isnan(sum.limit_gbps)) {
        sum.limit_gbps = NAN;
        snprintf(sum.limit_source, sizeof(sum.limit_source), "%s", shared);
    }
    if (l->end.n_rails > 1)
        names[n++] = sum;
    return n;
}

unsigned net_lead_rates(struct net_lead *l, struct net_rate_name *names)
{
    const uint8_t *streams = l->end.point->stream;
    unsigned n = 0, forward = 0;
    char shared[200];

    /* Where an end's devices share what carries their bytes, limits of each are no limit together:
     * why, of the first such end; else "". */
    shared[0] = 0;
    for (int side = 0; side < NET_SIDES && !shared[0]; side++) {
        const struct net_rails *rails = &l->reports[side].rails;
        char why[160];
        if (nic_rails_add_up(rails->rails, rails->n, why, sizeof(why)))
            snprintf(shared, sizeof(shared), "no limit: at %s, %s",
                     side == NET_OWN ? "this end" : "the peer", why);
    }
    if (streams[NET_FORWARD])
        forward = n = add_direction(l, NET_FORWARD, shared, names, n);
    if (streams[NET_REVERSE])
        n = add_direction(l, NET_REVERSE, shared, names, n);
    if (streams[NET_FORWARD] && streams[NET_REVERSE]) {
        struct net_rate_name *sum = add_name(names, &n, "sum", l->end.n_rails > 1 ? "all" : "");
        add_part(sum, &names[forward - 1]);
        add_part(sum, &names[n - 2]);
    }
    return n;
}
