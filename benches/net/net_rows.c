/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the benchmark `net`: see net_work.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/net/net_work.h"
#include "core/hw/machine.h"
#include "core/row_facts.h"

#define BUSY_CORES    0.95 /* of a thread: it has no time left */
#define MACHINE_LEAST 0.97 /* of its threads: ticks are coarse */
#define STALLS        0.95 /* of the median: what an average below says */
#define IDLE_CORES    0.1  /* that others keep busy: no idle machine */
#define THREADS_SHOWN 8    /* with more, rows of each would hide the rest */

static const char *const sides[] = {"own", "peer"};

static void add_rate(struct point *pt, struct net_session *s, const char *direction,
                     const char *rail)
{
    bool messages = s->point.count_messages;
    struct series *series = point_series(pt, messages ? "message_rate" : "bandwidth",
                                         messages ? "Mop/s" : "GB/s", NET_QUANTITY);

    series->set[0].column = "direction";
    series->set[0].value = direction;
    series->set[1].column = "rail";
    series->set[1].value = rail;
}

/* Latency is of one message, on a connection of its own. */
void net_rows_series_of(struct point *pt, struct net_session *s, const struct net_rate_name *rates,
                        unsigned n)
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

static void set_limits(struct point *pt, struct net_session *s)
{
    for (unsigned i = 0; i < s->n_rates && i < pt->n_series; i++) {
        double gbps = s->rates[i].limit_gbps; /* of payload; message rates are limited by it, too */
        double scale = s->point.count_messages ? 1e3 / (double)s->point.message_bytes : 1;
        if (gbps > 0)
            pt->series[i].limit = gbps * scale;
        pt->series[i].limit_kind = s->rates[i].limit_kind;
        pt->series[i].limit_link = s->rates[i].limit_link;
        pt->series[i].limit_source = s->rates[i].limit_source;
    }
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
    const struct net_rails *own = &net_lead_report(s->lead, NET_OWN)->rails,
                           *peer = &net_lead_report(s->lead, NET_PEER)->rails;
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
                 net_lead_same_machine(s->lead) ? "same machine" : net_lead_host(s->lead));
}

/* Whether threads and buffers are where they were asked to be: not where the peer's own command
 * line says another node, or where no CPU of the device's may be used. */
static bool is_as_asked(int asked, const struct net_rails *rails)
{
    int near = rails->rails[0].node, used = rails->memory_node;

    if (asked == NET_NODE_NEAR)
        return used == near;
    return asked == NET_NODE_FAR ? used != near : used == asked;
}

static void show_node(struct point *pt, const char *option, int asked,
                      const struct net_rails *rails)
{
    if (is_as_asked(asked, rails))
        return;
    if (rails->memory_node < 0)
        point_option(pt, option, "%s", "any");
    else
        point_option(pt, option, "%d", rails->memory_node);
}

/* Threads and buffers have one place, which cannot be near devices of two nodes. */
static void tell_nodes(struct point *pt, struct net_session *s)
{
    for (int side = 0; side < NET_SIDES; side++) {
        const struct net_rails *rails = &net_lead_report(s->lead, side)->rails;
        for (unsigned i = 1; i < rails->n; i++)
            if (rails->rails[i].node != rails->rails[0].node)
                point_reason(pt, 0,
                             "devices of %s are on nodes %d and %d: threads and buffers are near "
                             "the first",
                             side == NET_OWN ? "this end" : "the peer", rails->rails[0].node,
                             rails->rails[i].node);
    }
}

void net_rows_series(struct point *pt, struct net_session *s)
{
    const struct net_params *p = pt->params;

    s->n_rates = s->point.ping ? 0 : net_lead_rates(s->lead, s->rates);
    s->cpu_limit[0] = 0;
    net_rows_series_of(pt, s, s->rates, s->n_rates);
    set_limits(pt, s);
    set_columns(pt, s);
    show_node(pt, "node", p->node, &net_lead_report(s->lead, NET_OWN)->rails);
    show_node(pt, "peer_node", p->peer_node, &net_lead_report(s->lead, NET_PEER)->rails);
    tell_nodes(pt, s);
    for (int side = 0; side < NET_SIDES; side++) /* of this end the GPU itself has said so */
        if (net_lead_report(s->lead, side)->rails.rails[0].simulated)
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
static void add_cost(struct point *pt, const struct net_cost *costs, unsigned n, const char *side,
                     const char *scope, double (*of)(const struct net_cost *), const char *remark)
{
    struct figure *per_gb = NULL, *cores = NULL;

    for (unsigned i = 0; i < n; i++)
        if (!(of(&costs[i]) >=
              0)) /* not measured; or others did less than before it all, and nobody knows what */
            return;
    if (!n)
        return;
    if (costs[0].bytes > 0)
        per_gb = add_figure(pt, "cpu_per_gb", "s/GB", side, scope);
    cores = add_figure(pt, "cpu_cores", "cores", side, scope);
    for (unsigned i = 0; i < n; i++) {
        figure_value(per_gb, of(&costs[i]) / (costs[i].bytes / 1e9));
        figure_value(cores, of(&costs[i]) / costs[i].cpu_seconds);
    }
    figure_remark(per_gb, remark);
    figure_remark(cores, remark);
}

static double of_threads(const struct net_cost *c)
{
    return c->threads_s;
}

static double of_machine(const struct net_cost *c)
{
    return c->machine_s;
}

static double of_softirq(const struct net_cost *c)
{
    return c->softirq_s;
}

static void add_threads(struct point *pt, struct net_session *s, enum net_side side)
{
    double cores[NET_WORKERS_MAX];
    unsigned n = net_lead_threads(s->lead, side, cores);

    for (unsigned i = 0; i < n; i++) {
        char scope[24];
        if (cores[i] >= BUSY_CORES && !s->cpu_limit[0] && !net_lead_polls(s->lead))
            snprintf(s->cpu_limit, sizeof(s->cpu_limit), "a thread of %s end is %.0f %% busy",
                     side == NET_OWN ? "this" : "the peer's", 100 * cores[i]);
        if (n < 2 || n > THREADS_SHOWN)
            continue;
        snprintf(scope, sizeof(scope), "thread %u", i);
        figure_value(add_figure(pt, "cpu_cores", "cores", sides[side], scope), cores[i]);
    }
}

/* What others did before is taken off; that they did as much meanwhile nobody knows. */
static const char *idle_remark(const struct net_lead *lead, enum net_side side, char *text,
                               size_t len)
{
    double cores = net_lead_idle_cores(lead, side);

    text[0] = 0;
    if (cores > IDLE_CORES)
        snprintf(text, len, "%.2f cores were busy with other work before, which is taken off",
                 cores);
    return text;
}

/* Ticks say nothing of a time that has few of them. And a machine cannot have done less than the
 * threads on it: then others did less than before it all, and what was taken off is too much. */
static bool machine_is_sound(struct net_session *s, enum net_side side)
{
    struct net_cost own[NET_BLOCKS], other[NET_BLOCKS];
    unsigned n = net_lead_costs(s->lead, side, own);
    double machine = 0, threads = 0, seconds = 0;

    net_lead_costs(s->lead, side == NET_OWN ? NET_PEER : NET_OWN, other);
    for (unsigned i = 0; i < n; i++) {
        machine += own[i].machine_s;
        seconds += own[i].seconds;
        threads += own[i].threads_s;
        threads += net_lead_same_machine(s->lead) ? other[i].threads_s : 0;
    }
    return cpu_ticks_tell(seconds) && machine >= MACHINE_LEAST * threads; /* not of NAN */
}

/* Of one machine with both ends on it, the figures are those of both. */
static void add_costs(struct point *pt, struct net_session *s)
{
    struct net_cost costs[NET_BLOCKS];
    char remark[128];
    bool same = net_lead_same_machine(s->lead);

    for (int side = 0; side < NET_SIDES; side++) {
        unsigned n = net_lead_costs(s->lead, side, costs);
        add_cost(pt, costs, n, sides[side], "threads", of_threads, "");
        if ((!same || side == NET_OWN) && machine_is_sound(s, side)) {
            add_cost(pt, costs, n, same ? "both" : sides[side], "machine", of_machine,
                     idle_remark(s->lead, side, remark, sizeof(remark)));
            add_cost(pt, costs, n, same ? "both" : sides[side], "softirq", of_softirq, "");
        }
        add_threads(pt, s, side);
    }
}

static void add_facts(struct point *pt, const struct net_report *report, const char *side)
{
    for (unsigned i = 0; i < report->n_facts && i < NET_FACTS_MAX; i++) {
        const struct net_fact *fact = &report->facts[i];
        figure_value(add_figure(pt, fact->metric, fact->unit, side, ""), fact->value);
    }
}

/* Latency under load means something beside the load alone. */
static void add_load(struct point *pt, struct net_session *s)
{
    struct net_cost costs[NET_BLOCKS];
    unsigned n = net_lead_costs(s->lead, NET_OWN, costs);
    struct figure *load = n ? point_figure(pt, "load_bandwidth", "GB/s") : NULL;

    for (unsigned i = 0; i < n; i++)
        figure_value(load, costs[i].bytes / costs[i].seconds / 1e9);
}

/* As other programs have it: it stays below the median of the windows where the rate stalls, since
 * a stall is one window, however long. */
static void add_average(struct point *pt, struct net_session *s)
{
    double gbps = net_lead_average(s->lead);

    if (gbps > 0)
        figure_value(point_figure(pt, "average_bandwidth", "GB/s"), gbps);
    if (net_lead_longest_ns(s->lead))
        figure_value(point_figure(pt, "longest_window", "ms"),
                     (double)net_lead_longest_ns(s->lead) / 1e6);
}

void net_rows_figures(struct point *pt, struct net_session *s)
{
    const struct net_params *p = pt->params;

    if (s->point.connections && !s->point.ping)
        add_average(pt, s);
    if (s->point.connections && s->point.ping)
        add_load(pt, s);
    else if (s->point.connections && !p->no_cpu)
        add_costs(pt, s);
    if (s->point.connections)
        for (int side = 0; side < NET_SIDES; side++)
            add_facts(pt, net_lead_report(s->lead, side), sides[side]);
    set_columns(pt, s); /* the rails' text may know more now */
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void net_rows_judge(struct point *pt, struct net_session *s)
{
    struct net_windows *w = &s->windows;
    double average = net_lead_average(s->lead), median;

    if (!w->n || !(average > 0))
        return;
    qsort(w->ns, w->n, sizeof(*w->ns), ascending);
    median = NET_QUANTITY / w->ns[w->n / 2];
    if (s->point.count_messages)
        median *= (double)s->point.message_bytes;
    if (average >= STALLS * median)
        return;
    pt->noisy = true;
    point_reason(
        pt, 0,
        "it stalls: all bytes over all of the time are %.4g GB/s, %.0f %% of the median of "
        "the samples; the longest of them took %.0f ms",
        average, 100 * average / median, (double)net_lead_longest_ns(s->lead) / 1e6);
}

void net_rows_evidence(struct point *pt, struct net_session *s)
{
    for (int side = 0; side < NET_SIDES; side++) {
        const struct path_proof *proof = &net_lead_report(s->lead, side)->proof;
        pt->carriers |= proof->carriers;
        if (proof->text[0])
            evidence_add(pt->evidence, sizeof(pt->evidence), "%s: %s", sides[side], proof->text);
    }
    if (s->cpu_limit[0])
        evidence_add(pt->evidence, sizeof(pt->evidence), "%s", s->cpu_limit);
}
