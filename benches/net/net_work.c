/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of the benchmark `net`: from options to a point that runs, and its rows. */
#include "benches/net/net_work.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/gpu_watch.h"
#include "core/hw/machine.h"
#include "core/hw/place.h"
#include "core/hw/rail.h"
#include "core/hw/topo.h"
#include "core/row.h"
#include "core/stats.h"
#include "core/wire/wires.h"

enum net_way { NET_WAY_FORWARD, NET_WAY_REVERSE, NET_WAY_BOTH };

/* ---- The rows of the benchmark `net` ---- */

#define BUSY_CORES    0.95 /* of a thread: it has no time left */
#define MACHINE_LEAST 0.97 /* of its threads: ticks are coarse */
#define STALLS        0.95 /* of the median: what an average below says */
#define IDLE_CORES    0.1  /* that others keep busy: no idle machine */
#define THREADS_SHOWN 8    /* with more, rows of each would hide the rest */
#define BYTE_BITS     8    /* rates are bytes a ns until a row has them, in Gb/s as links' rates */

static const char *const sides[] = {"own", "peer"};

static void add_rate(struct point *pt, struct net_session *s, const char *direction,
                     const char *rail)
{
    const struct net_params *p = pt->params;
    bool messages = s->point.count_messages;
    struct series *series = point_series(pt, messages ? "message_rate" : "bandwidth",
                                         messages ? "Mop/s" : "Gb/s", NET_QUANTITY);

    series->set[0].column = "direction";
    series->set[0].value = direction;
    series->set[1].column = "rail";
    series->set[1].value = !*rail && p->rail ? p->rail : rail;
}

/* The series of a point: of these rates, or (n 0) of the directions as asked for. Latency is of one
 * message, on a connection of its own. */
static void net_rows_series_of(struct point *pt, struct net_session *s,
                               const struct net_rate_name *rates, unsigned n)
{
    pt->n_series = 0;
    if (s->point.ping) {
        bool loaded = s->point.connections > 0;
        point_series(pt, loaded ? "loaded_latency" : "latency", "us", 0);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        add_rate(pt, s, rates[i].direction, rates[i].rail);
    for (int d = 0; !n && d < NET_DIRECTIONS; d++)
        if (s->point.stream[d])
            add_rate(pt, s, net_direction_word(&s->point, (enum net_direction)d), "");
}

static void cpus_text(const struct net_rails *rails, char *text, size_t len)
{
    size_t at = 0;

    text[0] = 0;
    for (unsigned i = 0; i < rails->n_cpus && at + 8 < len; i++)
        at += (size_t)snprintf(text + at, len - at, "%s%u", i ? " " : "", rails->cpus[i]);
}

static void set_columns(struct point *pt, struct net_session *s)
{
    const struct net_rails *own = &s->lead->reports[NET_OWN].rails,
                           *peer = &s->lead->reports[NET_PEER].rails;
    char from[40], to[40], names[2][128] = {"", ""};

    for (unsigned i = 0; i < own->n; i++) {
        evidence_add(names[0], sizeof(names[0]), "%s %s", own->rails[i].name, own->rails[i].text);
        evidence_add(names[1], sizeof(names[1]), "%s %s", peer->rails[i].name, peer->rails[i].text);
    }
    snprintf(pt->carrier_device, sizeof(pt->carrier_device), "%.63s", own->rails[0].name);
    pt->carrier_gid = own->rails[0].gid;
    cpus_text(own, from, sizeof(from));
    cpus_text(peer, to, sizeof(to));
    point_column(pt, "cpus", "%s>%s", from, to);
    point_column(pt, "detail", "%s", names[0]);
    point_column(pt, "peer_detail", "%s", names[1]);
    point_column(pt, "peer_host", "%s",
                 s->lead->same_machine ? "same machine" : s->lead->hello[NET_PEER].host);
}

static void show_node(struct point *pt, const char *option, int asked,
                      const struct net_rails *rails)
{
    /* Whether threads and buffers are where they were asked to be: not where the peer's own command
     * line says another node, or where no CPU of the device's may be used. */
    int near = rails->rails[0].node, used = rails->memory_node;

    if (asked == NET_NODE_NEAR  ? used == near
        : asked == NET_NODE_FAR ? used != near
                                : used == asked)
        return;
    if (used < 0)
        point_option(pt, option, "%s", "any");
    else
        point_option(pt, option, "%d", used);
}

/* Threads and buffers have one place, which cannot be near devices of two nodes. */
static void tell_nodes(struct point *pt, struct net_session *s)
{
    for (int side = 0; side < NET_SIDES; side++) {
        const struct net_rails *rails = &s->lead->reports[side].rails;
        for (unsigned i = 1; i < rails->n; i++)
            if (rails->rails[i].node != rails->rails[0].node)
                point_reason(pt, 0,
                             "devices of %s are on nodes %d and %d: threads and buffers are near "
                             "the first",
                             side == NET_OWN ? "this end" : "the peer", rails->rails[0].node,
                             rails->rails[i].node);
    }
}

void net_rows_limits(struct point *pt, const struct net_session *s)
{
    for (unsigned i = 0; i < s->n_rates && i < pt->n_series; i++) {
        double gbps = s->rates[i].limit_gbps; /* of payload; message rates are limited by it, too */
        double scale = s->point.count_messages ? 1e3 / (double)s->point.message_bytes : BYTE_BITS;
        if (gbps > 0)
            pt->series[i].limit = gbps * scale;
        pt->series[i].limit_kind = s->rates[i].limit_kind;
        pt->series[i].limit_link = s->rates[i].limit_link;
        pt->series[i].limit_source = s->rates[i].limit_source;
    }
}

/* The series of a point: of these rates, or (n 0) of the directions as asked for. */
static void net_rows_series(struct point *pt, struct net_session *s)
{
    const struct net_params *p = pt->params;

    s->n_rates = s->point.ping ? 0 : net_lead_rates(s->lead, s->rates);
    s->cpu_limit[0] = 0;
    net_rows_series_of(pt, s, s->rates, s->n_rates);
    net_rows_limits(pt, s);
    set_columns(pt, s);
    show_node(pt, "node", p->node, &s->lead->reports[NET_OWN].rails);
    show_node(pt, "peer_node", p->peer_node, &s->lead->reports[NET_PEER].rails);
    tell_nodes(pt, s);
    for (int side = 0; side < NET_SIDES; side++) /* of this end the GPU itself has said so */
        if (s->lead->reports[side].rails.rails[0].simulated)
            pt->origin = "simulated";
}

static struct figure *add_figure(struct point *pt, const char *metric, const char *unit,
                                 const char *side, const char *scope)
{
    struct figure *f = point_figure(pt, metric, unit);

    figure_set(f, "side", side);
    figure_set(f, "scope", scope);
    return f;
}

/* What one side's threads, or a machine, spent: by blocks of about a second. */
static void add_cost(struct point *pt, const struct net_lead *l, enum net_side side,
                     enum net_spent what, const char *remark)
{
    static const char *const scopes[] = {[NET_SPENT_THREADS] = "threads",
                                         [NET_SPENT_MACHINE] = "machine",
                                         [NET_SPENT_SOFTIRQ] = "softirq"};
    const char *whose = l->same_machine && what != NET_SPENT_THREADS ? "both" : sides[side];
    const struct net_cost *costs = l->blocks[side];
    struct figure *per_gb = NULL, *cores = NULL;
    unsigned n = l->n_blocks;

    for (unsigned i = 0; i < n; i++)
        if (!(costs[i].spent_s[what] >=
              0)) /* not measured; or others did less than before it all, and nobody knows what */
            return;
    if (!n)
        return;
    if (costs[0].bytes > 0)
        per_gb = add_figure(pt, "cpu_per_gb", "s/GB", whose, scopes[what]);
    cores = add_figure(pt, "cpu_cores", "cores", whose, scopes[what]);
    for (unsigned i = 0; i < n; i++) {
        figure_value(per_gb, costs[i].spent_s[what] / (costs[i].bytes / 1e9));
        figure_value(cores, costs[i].spent_s[what] / costs[i].cpu_seconds);
    }
    figure_remark(per_gb, remark);
    figure_remark(cores, remark);
}

static void add_threads(struct point *pt, struct net_session *s, enum net_side side)
{
    double cores[NET_WORKERS_MAX];
    unsigned n = net_lead_threads(s->lead, side, cores);

    for (unsigned i = 0; i < n; i++) {
        char scope[24];
        if (cores[i] >= BUSY_CORES && !s->cpu_limit[0] && !s->lead->end.traits.busy)
            snprintf(s->cpu_limit, sizeof(s->cpu_limit), "a thread of %s end is %.0f %% busy",
                     side == NET_OWN ? "this" : "the peer's", 100 * cores[i]);
        if (n < 2 || n > THREADS_SHOWN)
            continue;
        snprintf(scope, sizeof(scope), "thread %u", i);
        figure_value(add_figure(pt, "cpu_cores", "cores", sides[side], scope), cores[i]);
    }
}

/* Ticks say nothing of a time that has few of them. And a machine cannot have done less than the
 * threads on it: then others did less than before it all, and what was taken off is too much. */
static bool machine_is_sound(const struct net_lead *l, enum net_side side)
{
    const struct net_cost *own = l->blocks[side], *other = l->blocks[NET_PEER - side];
    double machine = 0, threads = 0, seconds = 0;

    for (unsigned i = 0; i < l->n_blocks; i++) {
        machine += own[i].spent_s[NET_SPENT_MACHINE];
        seconds += own[i].seconds;
        threads += own[i].spent_s[NET_SPENT_THREADS];
        threads += l->same_machine ? other[i].spent_s[NET_SPENT_THREADS] : 0;
    }
    return cpu_ticks_tell(seconds) && machine >= MACHINE_LEAST * threads; /* not of NAN */
}

/* Of one machine with both ends on it, the figures are those of both. */
static void add_costs(struct point *pt, struct net_session *s)
{
    const struct net_lead *l = s->lead;
    char remark[128];

    for (int side = 0; side < NET_SIDES; side++) {
        add_cost(pt, l, side, NET_SPENT_THREADS, "");
        if ((!l->same_machine || side == NET_OWN) && machine_is_sound(l, side)) {
            /* What others did before is taken off; that they did as much meanwhile nobody knows. */
            double idle = l->hello[side].idle_cores;
            remark[0] = 0;
            if (idle > IDLE_CORES)
                snprintf(remark, sizeof(remark),
                         "%.2f cores were busy with other work before, which is taken off", idle);
            add_cost(pt, l, side, NET_SPENT_MACHINE, remark);
            add_cost(pt, l, side, NET_SPENT_SOFTIRQ, "");
        }
        add_threads(pt, s, side);
    }
}

/* Latency under load means something beside the load alone. */
static void add_load(struct point *pt, const struct net_lead *l)
{
    struct figure *load = l->n_blocks ? point_figure(pt, "load_bandwidth", "Gb/s") : NULL;

    for (unsigned i = 0; i < l->n_blocks; i++) {
        const struct net_cost *c = &l->blocks[NET_OWN][i];
        figure_value(load, BYTE_BITS * c->bytes / c->seconds / 1e9);
    }
}

/* As other programs have it: it stays below the median of the windows where the rate stalls, since
 * a stall is one window, however long. */
static void add_average(struct point *pt, struct net_session *s)
{
    double gbps = net_lead_average(s->lead);

    if (gbps > 0)
        figure_value(point_figure(pt, "average_bandwidth", "Gb/s"), BYTE_BITS * gbps);
    if (s->lead->longest_ns)
        figure_value(point_figure(pt, "longest_window", "ms"), (double)s->lead->longest_ns / 1e6);
}

/* CPU cost, the load's rate, the transport's facts. */
static void net_rows_figures(struct point *pt, struct net_session *s)
{
    const struct net_params *p = pt->params;

    if (s->point.connections && !s->point.ping)
        add_average(pt, s);
    if (s->point.connections && s->point.ping)
        add_load(pt, s->lead);
    else if (s->point.connections && !p->no_cpu)
        add_costs(pt, s);
    for (int side = 0; side < NET_SIDES && s->point.connections; side++) {
        const struct net_report *report = &s->lead->reports[side];
        for (unsigned i = 0; i < report->n_facts && i < WIRE_FACTS_MAX; i++) {
            const struct wire_fact *fact = &report->facts[i];
            figure_value(add_figure(pt, fact->metric, fact->unit, sides[side], ""), fact->value);
        }
    }
    set_columns(pt, s); /* the rails' text may know more now */
}

/* A stream that stalls: its median alone does not show it. */
static void net_rows_judge(struct point *pt, struct net_session *s)
{
    struct net_windows *w = &s->windows;
    double average = net_lead_average(s->lead), median;

    if (!w->n || !(average > 0))
        return;
    qsort(w->ns, w->n, sizeof(*w->ns), stats_ascending);
    median = NET_QUANTITY / w->ns[w->n / 2];
    if (s->point.count_messages)
        median *= (double)s->point.message_bytes;
    if (average >= STALLS * median)
        return;
    pt->noisy = true;
    point_reason(
        pt, 0,
        "it stalls: all bytes over all of the time are %.4g Gb/s, %.0f %% of the median of "
        "the samples; the longest of them took %.0f ms",
        BYTE_BITS * average, 100 * average / median, (double)s->lead->longest_ns / 1e6);
}

int net_bench_evidence(struct point *pt)
{
    struct net_session *s = pt->bench_state;

    for (int side = 0; side < NET_SIDES; side++) {
        const struct path_proof *proof = &s->lead->reports[side].proof;
        pt->carriers |= proof->carriers;
        if (proof->text[0])
            evidence_add(pt->evidence, sizeof(pt->evidence), "%s: %s", sides[side], proof->text);
    }
    if (s->cpu_limit[0])
        evidence_add(pt->evidence, sizeof(pt->evidence), "%s", s->cpu_limit);
    return 0;
}

/* "mlx5_0" is its port 1. */
static size_t device_chars(const char *name)
{
    size_t n = strcspn(name, "+"), port = strcspn(name, ":+");

    return n == port + 2 && !strncmp(name + port, ":1", 2) ? port : n;
}

int net_parse_devices(const char *text, void *value, char *error, size_t len)
{
    const char *next;

    *(const char **)value = text;
    if (strlen(text) >= sizeof(((struct net_local *)NULL)->devices)) {
        snprintf(error, len, "'%.40s...' is too long a list of devices", text);
        return -EINVAL;
    }
    for (const char *one = text; *one; one = next + (*next == '+')) {
        next = one + strcspn(one, "+");
        for (const char *other = next; *other; other += strcspn(other, "+")) {
            size_t n = device_chars(one);
            if (n != device_chars(++other) || strncmp(one, other, n) != 0)
                continue;
            snprintf(error, len, "'%s' names '%.*s' twice: each device once", text, (int)n, one);
            return -EINVAL;
        }
    }
    return 0;
}

int net_parse_memory(const char *text, void *value, char *error, size_t len)
{
    *(const char **)value = text;
    return strcmp(text, NET_MEMORY_RAIL) != 0 ? place_read_device(text, value, error, len) : 0;
}

#define WINDOW_NS       20000000u   /* of a stream's sample */
#define IDLE_NS         1000000000u /* how long the idle machines are watched */
#define LATENCY_SAMPLES 10000       /* for a percentile to p99.9 */

static bool is_latency(const struct net_params *p)
{
    return p->pattern == NET_LATENCY || p->pattern == NET_LOADED_LATENCY;
}

void net_bench_close(struct point *ctx)
{
    struct net_session *s = ctx->bench_state;

    bool broken = s->lead && s->lead->talk.broken;
    net_lead_close(s->lead);
    if (!broken) /* a rank that hangs would be waited for without end: the launcher ends it */
        pair_end();
    free(s->windows.ns);
}

/* One peer for all points; another one where it was lost. */
static int need_lead(struct point *pt, struct net_session *s)
{
    const struct net_params *p = pt->params;
    struct channel *c = NULL;
    char error[512] = "";

    if (s->lead && s->lead->talk.broken) {
        net_lead_close(s->lead);
        s->lead = NULL;
    }
    if (s->lead)
        return 0;
    if (s->unreachable) /* as often as it was given time for */
        return point_reason(pt, s->unreachable, "%s", s->why_unreachable);
    int err = net_peer_open(&c, p, &s->secret, pt->cancel, error, sizeof(error));
    if (err && pair_kind(&p->meet) == PAIR_NONE)
        return point_reason(pt, err, "%s", error); /* nothing was waited for */
    if (err) {
        s->unreachable = err;
        snprintf(s->why_unreachable, sizeof(s->why_unreachable), "%s", error);
        return point_reason(pt, err, "%s", error);
    }
    err = net_lead_open(&s->lead, c, point_topo(pt), p->no_cpu ? 0 : IDLE_NS);
    if (err)
        point_reason(pt, err, "%s", s->lead ? net_lead_error(s->lead) : strerror(-err));
    if (err) {
        net_lead_close(s->lead);
        s->lead = NULL;
    }
    return err;
}

static struct wire_traits traits_of(const struct net_point *p)
{
    const struct wire_options options = {.tcp = p->tcp, .rdma = p->rdma};

    return wire_traits_of(wire_find(p->transport), &options);
}

/* The point that these parameters mean. */
static void net_point_of(const struct net_params *p, uint64_t seed, struct net_point *point)
{
    bool streams = p->pattern != NET_LATENCY;

    *point = (struct net_point){.ping = is_latency(p),
                                .count_messages = p->pattern == NET_MESSAGE_RATE,
                                .inject = (uint8_t)p->inject,
                                .seed = seed};
    snprintf(point->transport, sizeof(point->transport), "%s", wire_names[p->transport]);
    point->stream[NET_FORWARD] = streams && p->way != NET_WAY_REVERSE;
    point->stream[NET_REVERSE] = streams && p->way != NET_WAY_FORWARD;
    if (streams) {
        point->connections = (uint32_t)p->streams;
        point->threads = (uint32_t)(p->threads ? p->threads : 1);
        point->message_bytes = p->pattern == NET_LOADED_LATENCY ? p->load_size : p->size;
    }
    if (point->ping)
        point->ping_bytes = p->size;
    point->tcp = (struct wire_tcp_options){.mode = (uint32_t)p->mode,
                                           .zerocopy = p->zerocopy,
                                           .spin = p->wait == 1,
                                           .busy_poll_us = (uint32_t)p->busy_poll_us,
                                           .buffer_bytes = p->buffer_bytes,
                                           .data_port = (uint32_t)p->data_port,
                                           .segment_bytes = (uint32_t)p->segment_bytes};
    snprintf(point->tcp.congestion, sizeof(point->tcp.congestion), "%s",
             p->congestion ? p->congestion : "");
    point->rdma = (struct wire_rdma_options){.verb = (uint32_t)p->verb,
                                             .connect = (uint32_t)p->connect,
                                             .depth = (uint32_t)p->depth,
                                             .signal_every = (uint32_t)p->signal_every,
                                             .inline_bytes = p->inline_bytes,
                                             .events = p->completion == 1,
                                             .mtu = (uint32_t)p->mtu,
                                             .gid_index = p->gid_index,
                                             .timeout = (uint32_t)p->timeout,
                                             .retry = (uint32_t)p->retry,
                                             .relaxed = p->relaxed == 1};
    if (traits_of(point).way == WIRE_BLOCK && !p->threads)
        point->threads = point->connections;
}

/* The thread that pings stays where it is: near the other end or far from it makes a latency
 * of its own. */
static int bind_leader(struct point *pt, struct net_session *s)
{
    const struct net_rails *rails = &s->lead->reports[NET_OWN].rails;
    unsigned cpu =
        rails->cpus[rails->n_cpus - 1]; /* beside streams: not a worker's, if there is another */
    int err = topo_bind_self(point_topo(pt), cpu);

    if (err)
        return point_reason(pt, err, "cannot bind this thread to CPU %u: %s", cpu, strerror(-err));
    s->bound = true;
    return 0;
}

/* The GPU that this end's buffers are on: is it there, is it a stand-in; and its clocks are
 * watched. The end opens it by itself. */
static int need_gpu(struct point *pt, const struct net_local *own)
{
    const struct net_params *p = pt->params;
    char error[256] = "";
    struct place place;
    struct gpu *gpu;

    if (!wire_find(wire_names[p->transport])->windows || !own->memory[0])
        return 0;
    int err = place_parse(own->memory, PLACE_WHOLE | PLACE_GPU, &place, error, sizeof(error));
    if (err)
        return point_reason(pt, err, "%s", error);
    return place.gpu ? point_gpu(pt, place.index, &gpu) : 0;
}

/* Which device and GPU the rail's number means at this end. Where programs can use no GPU rails
 * are numbered otherwise: the peer is to have one, too, or none, and as many rails. */
static int need_rail(struct point *pt, struct net_local *own, struct net_local *peers)
{
    char error[256] = "";
    struct rail rail;
    int err = net_rail_find(own, &rail, error, sizeof(error));

    if (own->rail && rail.port[0]) {
        point_column(pt, "rail_device", "%s", rail.port);
        point_column(pt, "rail_way", "%s", rail.way);
    }
    peers->paired = rail.gpu >= 0 ? NET_PAIRED_GPU : NET_PAIRED_BARE;
    peers->paired_of = rail.of;
    peers->paired_seat = rail.seat;
    peers->paired_seats = rail.seats;
    if (rail.gpu >= 0)
        point_column(pt, "rail_gpu", PLACE_GPU_PREFIX "%d", rail.gpu);
    return err ? point_reason(pt, err, "%s", error) : 0;
}

/* Connects. Where a GPU's memory is sent from or received into, whether adapters could register it
 * is a column: what else cannot be done here says nothing of it. */
static int begin_point(struct point *pt, struct net_session *s, const struct net_local *own,
                       const struct net_local *peers)
{
    int err = net_lead_begin(s->lead, &s->point, own, peers);

    const struct net_report *theirs = &s->lead->reports[NET_PEER];
    if (own->rail && theirs->rails.n)
        point_column(pt, "rail_peer_device", "%s", theirs->rails.rails[0].name);
    if (net_peer_gpu(own->memory) || net_peer_gpu(peers->memory))
        point_column(pt, "gpu_direct", "%s",
                     !err                       ? "yes"
                     : err == WIRE_UNREGISTERED ? "refused"
                                                : "");
    if (err == WIRE_UNREGISTERED)
        err = -EOPNOTSUPP;
    return err ? point_reason(pt, err, "%s", net_lead_error(s->lead)) : 0;
}

int net_bench_possible(struct point *pt)
{
    const struct net_params *p = pt->params;
    bool alone = pair_kind(&p->meet) == PAIR_NONE; /* the peer is on this machine */
    const int nodes[] = {p->node, alone ? p->peer_node : NET_NODE_NEAR};
    struct net_point point;

    if (!point_topo(pt))
        return -EIO;
    net_point_of(p, pt->common->seed, &point);
    for (size_t i = 0; i < 2; i++)
        if (nodes[i] >= 0 && !placement_has_node(point_topo(pt), nodes[i]))
            return point_reason(pt, -EOPNOTSUPP, "this machine has no NUMA node %d", nodes[i]);
    if (p->segment_bytes && (p->segment_bytes < 88 || p->segment_bytes > 32767))
        return point_reason(pt, -EOPNOTSUPP, "--segment: Linux takes 88 to 32767 bytes");
    if (traits_of(&point).way == WIRE_BLOCK && point.threads != point.connections)
        return point_reason(pt, -EOPNOTSUPP,
                            "with --mode blocking each of the %u streams has a thread: leave "
                            "--threads out, or take --mode epoll",
                            point.connections);
    if (point.threads > NET_WORKERS_MAX / 2)
        return point_reason(pt, -EOPNOTSUPP,
                            "%u streams want as many threads, there are %d at most: --mode epoll "
                            "--threads 2, say",
                            point.connections, NET_WORKERS_MAX / 2);
    return 0;
}

int net_bench_setup(struct point *pt)
{
    const struct net_params *p = pt->params;
    struct net_session *s = pt->bench_state;
    struct net_local own, peers;

    if (!point_topo(pt))
        return -EIO;
    pt->sample_ns = 0; /* one operation, or one window, a sample */
    if (is_latency(p) && pt->min_samples < LATENCY_SAMPLES)
        pt->min_samples = LATENCY_SAMPLES;
    s->begun = false;
    s->samples = s->windows.n = 0;
    net_point_of(p, pt->common->seed, &s->point);
    if (s->point.connections)
        point_option(pt, "threads", "%u", s->point.threads);
    if (p->pattern == NET_LATENCY && p->samples_chosen)
        pt->max_samples = 10 * LATENCY_SAMPLES;
    net_rows_series_of(pt, s, NULL, 0); /* so that a row that fails says what it was to measure */
    int err = net_bench_possible(pt);
    if (!err)
        err = need_lead(pt, s); /* which may fork: before a driver is started here */
    net_peer_locals(p, &own, &peers);
    if (!err)
        err = need_rail(pt, &own, &peers);
    if (!err)
        err = need_gpu(pt, &own);
    if (!err)
        err = begin_point(pt, s, &own, &peers);
    if (err)
        return err;
    net_rows_series(pt, s);
    if (s->point.connections)
        point_option(pt, "threads", "%u", s->lead->end.n_shares);
    return s->point.ping ? bind_leader(pt, s) : 0;
}

/* The warm-up is over. */
int net_bench_begin(struct point *pt)
{
    struct net_session *s = pt->bench_state;
    int err = net_lead_mark(s->lead);

    s->begun = true;
    return err ? point_reason(pt, err, "%s", net_lead_error(s->lead)) : 0;
}

static int windows_add(struct net_windows *w, uint64_t ns)
{
    if (w->n == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 1024;
        double *more = realloc(w->ns, capacity * sizeof(*more));
        if (!more)
            return -ENOMEM;
        w->ns = more;
        w->capacity = capacity;
    }
    w->ns[w->n++] = (double)ns;
    return 0;
}

int net_bench_sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    const struct net_params *p = pt->params;
    struct net_session *s = pt->bench_state;
    int err = 0;

    if (!s->point.ping)
        err = net_lead_stream(s->lead, WINDOW_NS, pt->cancel, ns);
    if (!s->point.ping && pt->watch)
        gpu_watch_look(pt->watch); /* the workers go on meanwhile */
    for (uint64_t i = 0, one; s->point.ping && i < inner && !err; i++) {
        err = net_lead_ping(s->lead, &one);
        ns[0] = i ? ns[0] + one : one;
    }
    if (!s->point.ping && s->begun && !err)
        err = windows_add(&s->windows, ns[pt->n_series - 1]);
    s->samples += s->begun;
    if (p->iterations && s->begun)
        pt->enough = (s->point.ping ? s->samples : net_lead_messages(s->lead)) >= p->iterations;
    return err ? point_reason(pt, err, "%s", net_lead_error(s->lead)) : 0;
}

int net_bench_check(struct point *pt)
{
    const struct net_params *p = pt->params;
    struct net_session *s = pt->bench_state;
    int err = net_lead_end(s->lead);

    if (err)
        return point_reason(pt, err, "%s", net_lead_error(s->lead));
    /* Samples are kept in memory: a time or a number may be asked for that takes more than there is
     * room for. */
    if ((p->duration_ns || p->iterations) && !pt->enough && s->samples >= pt->max_samples)
        point_reason(pt, 0,
                     "it ended at %llu samples (--max-samples), before the %s that was asked for",
                     (unsigned long long)s->samples, p->iterations ? "number" : "time");
    net_rows_figures(pt, s);
    net_rows_judge(pt, s);
    return 0;
}

void net_bench_teardown(struct point *pt)
{
    struct net_session *s = pt->bench_state;

    if (s->lead)
        net_lead_finish(s->lead);
    if (s->bound)
        topo_unbind_self(point_topo(pt));
    s->bound = false;
}
