/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the benchmark `allreduce`: see work.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/allreduce/work.h"
#include "core/hw/machine.h"
#include "core/hw/nic.h"
#include "core/row.h"
#include "core/stats.h"
#include "core/wire/wires.h"

/* What busbw is held against: the line of the nodes' links, and what it leaves to the operation
 * (work.h). */

#define EACH_NODE ", the most that any algorithm gets through each node's link"

struct bound {
    double gbps;      /* of busbw; NAN: of no node's links it is known what they carry */
    const char *link; /* limit_link of the one that `source` names */
    char source[LINKS_SOURCE_BYTES];
};

/* All nodes need their links: named is the one whose are the first to be full. */
static struct bound nodes_bound(const struct collective_work *w, bool own)
{
    const struct session_node *nodes;
    const struct world *world = w->ranks.world;
    unsigned n = session_nodes(w->ranks.session, &nodes), unknown = 0, named = 0;
    bool may_add = true;
    double gbps[WORLD_RANKS_MAX]; /* by the world's numbers of its nodes */
    struct links_rate rate;
    struct bound b = {.gbps = NAN};
    unsigned members[WORLD_RANKS_MAX];

    place_root_first(w->members, w->size, collective_each(&w->point), w->point.root, members);
    for (unsigned i = 0; i < world_nodes(world); i++)
        gbps[i] = NAN;
    for (unsigned i = 0; i < n; i++) {
        links_rate(w->ranks.session, world, w->members, w->n, own, &nodes[i], &rate);
        gbps[rate.node] = rate.gbps;
        named = i ? named : rate.node;
        unknown += isnan(rate.gbps);
        may_add = may_add && rate.may_add;
    }
    if (!n) {
        snprintf(b.source, sizeof(b.source), LINKS_TOO_EARLY);
        return b;
    }
    b.gbps = links_bound(world, w->point.op, members, w->size, gbps, may_add, &named);
    for (unsigned i = 0; i < n; i++) {
        links_rate(w->ranks.session, world, w->members, w->n, own, &nodes[i], &rate);
        if (rate.node != named)
            continue;
        b.link = rate.link;
        memcpy(b.source, rate.source, sizeof(b.source));
    }
    if (may_add && !isnan(b.gbps) &&
        links_bound(world, w->point.op, members, w->size, gbps, false, &named) < b.gbps) {
        b.gbps = NAN;
        evidence_add(b.source, sizeof(b.source),
                     "not known: InfiniBand's switches may add (SHARP), and the library does not "
                     "say whether they did");
    }
    if (unknown && unknown < n)
        evidence_add(b.source, sizeof(b.source), "of %u of %u nodes it is not known", unknown, n);
    return b;
}

/* After the proof of the path: session_end() has it. */
void rows_limit(struct point *pt, struct collective_work *w)
{
    unsigned most, fewest, nodes = links_nodes(w->ranks.world, w->members, w->n, &most, &fewest);
    bool own = collective_find(w->point.backend)->own;
    struct bound b = {.gbps = NAN};

    if (session_report(w->ranks.session, 0) && session_report(w->ranks.session, 0)->gpu_shared)
        snprintf(b.source, sizeof(b.source),
                 "ranks share a GPU: this is a rehearsal, and no link's bandwidth");
    else if (nodes < 2)
        snprintf(b.source, sizeof(b.source), "one node: no link between nodes");
    else if (!own && links_simulated(w->ranks.session, w->n))
        snprintf(b.source, sizeof(b.source), "simulated: no link carried the bytes");
    else
        b = nodes_bound(w, own);
    snprintf(w->limit_source, sizeof(w->limit_source), "%s%s", b.source,
             isnan(b.gbps) ? "" : EACH_NODE);
    for (size_t i = 0; i < pt->n_series; i++) {
        if (strcmp(pt->series[i].metric, "busbw") != 0)
            continue;
        pt->series[i].limit_source = w->limit_source;
        pt->series[i].limit_kind = LIMIT_SYSFS;
        pt->series[i].limit_link = b.link;
        pt->series[i].limit_scope = isnan(b.gbps) ? NULL : LIMIT_SCOPE_NODE;
        if (b.gbps > 0)
            pt->series[i].limit = b.gbps;
    }
}

#define MACHINE_LEAST 0.97 /* of its threads: ticks are coarse */
#define READING_MOST  0.25 /* of the CPU time around the operations: what reading it may cost */
#define LATE_LEAST    0.05 /* of the operations: what the late one waited less than the others */
#define LATE_NS       1e5  /* the same: less is how a system wakes its processes */

/* All of them are the slowest member's time, told three ways. */
void rows_series(struct point *pt, struct collective_work *w)
{
    double bytes = (double)w->vector_bytes, factor = collective_bus_factor(w->point.op, w->size);

    pt->n_series = 0;
    point_series(pt, "time", "us", 0);
    if (bytes > 0)
        point_series(pt, "algbw", "GB/s", bytes);
    if (bytes > 0 && factor > 0)
        point_series(pt, "busbw", "GB/s", bytes * factor);
    if (bytes > 0)
        point_column(pt, "vector_bytes", "%llu", (unsigned long long)w->vector_bytes);
}

int rows_late(const struct collective_times *times, unsigned n, uint64_t slowest)
{
    double idle[WORLD_RANKS_MAX], sorted[WORLD_RANKS_MAX];
    unsigned late = 0;

    if (n < 2)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        /* What a member did not spend at work: at the barrier before it all, waiting in the operations
         * or for a link to take what it sends, as far as its backend tells, and after its own end
         * until the last one's. */
        const struct collective_times *t = &times[i];
        idle[i] = sorted[i] =
            (double)(t->slack_ns + t->waited_ns + t->blocked_ns + (slowest - t->ns));
        late = idle[i] < idle[late] ? i : late;
    }
    qsort(sorted, n, sizeof(*sorted), stats_ascending);
    return sorted[n / 2] - sorted[0] > fmax(LATE_NS, LATE_LEAST * (double)slowest) ? (int)late : -1;
}

/* The members' begins and ends are of one clock on each machine, or a sample would seem to last
 * longer than rank 0 saw it. */
static void count_spans(struct collective_work *w, const struct collective_times *times,
                        uint64_t wall_ns)
{
    for (unsigned i = 0; i < w->n_machines; i++)
        w->machines[i].begin_ns = w->machines[i].end_ns = 0;
    for (unsigned i = 0; i < w->n; i++) {
        struct collective_machine *m = &w->machines[w->machine[i]];
        if (!m->end_ns || times[i].begin_ns < m->begin_ns)
            m->begin_ns = times[i].begin_ns;
        if (times[i].end_ns > m->end_ns)
            m->end_ns = times[i].end_ns;
        m->cpu_ns += (double)times[i].span_cpu_ns;
    }
    for (unsigned i = 0; i < w->n_machines; i++) {
        struct collective_machine *m = &w->machines[i];
        m->span_ns += (double)(m->end_ns - m->begin_ns);
        w->clocks_differ |= m->end_ns - m->begin_ns > wall_ns;
    }
}

void rows_count(struct collective_work *w, const struct collective_times *times, uint64_t slowest,
                uint64_t wall_ns)
{
    for (unsigned i = 0; i < w->n; i++) {
        struct collective_member *m = &w->each[i];
        m->ns += (double)times[i].ns;
        m->waited_ns += (double)times[i].waited_ns;
        m->blocked_ns += (double)times[i].blocked_ns;
        m->slack_ns += (double)times[i].slack_ns;
        m->cpu_ns += (double)times[i].cpu_ns;
        m->reading_ns += (double)times[i].reading_ns;
    }
    count_spans(w, times, wall_ns);
    w->samples++;
    int late = rows_late(times, w->n, slowest);
    if (late >= 0)
        w->each[late].late++;
}

static struct figure *add_figure(struct point *pt, const struct collective_work *w,
                                 const char *metric, const char *unit, const char *scope,
                                 int member)
{
    struct figure *f = point_figure(pt, metric, unit);
    char rank[16] = "";

    if (member >= 0) {
        snprintf(rank, sizeof(rank), "%u", w->members[member]);
        figure_set(f, "rank", rank);
        figure_set(f, "rank_host", world_member(w->ranks.world, w->members[member])->host);
    }
    figure_set(f, "scope", scope);
    return f;
}

static void add_lateness(struct point *pt, const struct collective_work *w)
{
    bool own = collective_find(w->point.backend)->own;

    for (unsigned i = 0; i < w->n && w->n > 1 && w->samples; i++) {
        const struct collective_member *m = &w->each[i];
        struct figure *late = add_figure(pt, w, "late_share", "percent", "", (int)i);
        /* What was seen of a member's own GPU; what it could not read is not known. Rank 0's is
         * watched by its point. NULL: its backend uses none. */
        if (late && collective_find(w->point.backend)->device_memory)
            late->gpu = w->members[i] ? session_gpu(w->ranks.session, i) : &pt->seen;
        figure_value(late, 100.0 * (double)m->late / (double)w->samples);
        if (!own || !(m->ns > 0))
            continue;
        figure_value(add_figure(pt, w, "waited_share", "percent", "", (int)i),
                     100 * m->waited_ns / m->ns);
        figure_value(add_figure(pt, w, "blocked_share", "percent", "", (int)i),
                     100 * m->blocked_ns / m->ns);
    }
}

/* Bytes that all members together put on their wires, if no wire carries anything twice: what net
 * counts, too. busbw's factor is of one member's wire; in a broadcast each but the root gets the
 * vector once. */
static double wire_gb(const struct collective_work *w)
{
    bool each = w->point.op == COLLECTIVE_BROADCAST || w->point.op == COLLECTIVE_REDUCE;
    unsigned wires = each ? w->size - 1 : collective_has_root(w->point.op) ? 1 : w->size;

    return wires * collective_bus_factor(w->point.op, w->size) * (double)w->vector_bytes *
           (double)w->operations / 1e9;
}

/* Of the operations alone. Where what the readings cost is no small part of it, what is left is not
 * theirs to tell. */
static void add_per_gb(struct point *pt, const struct collective_work *w)
{
    double cpu = 0, reading = 0;

    for (unsigned i = 0; i < w->n; i++) {
        cpu += w->each[i].cpu_ns;
        reading += w->each[i].reading_ns;
    }
    if (!(wire_gb(w) > 0))
        return;
    if (!(cpu > 0) || reading > READING_MOST * cpu) {
        point_reason(pt, 0,
                     "no CPU seconds per GB: the operations are too short, %.0f %% of what the "
                     "CPUs spent around them went into reading their clocks",
                     fmin(100 * reading / cpu, 100));
        return;
    }
    figure_value(add_figure(pt, w, "cpu_per_gb", "s/GB", "threads", -1),
                 (cpu - reading) / 1e9 / wire_gb(w));
}

/* No machine's threads can take more CPUs than it has: their time is of one span. Returns their CPU
 * seconds. */
static double add_cores(struct point *pt, const struct collective_work *w)
{
    double cores = 0, seconds = 0;

    for (unsigned i = 0; i < w->n_machines; i++) {
        const struct collective_machine *m = &w->machines[i];
        cores += m->span_ns > 0 ? m->cpu_ns / m->span_ns : NAN;
        seconds += m->cpu_ns / 1e9;
    }
    if (w->clocks_differ)
        point_reason(pt, 0,
                     "no CPU cores of the threads: ranks of one machine have different clocks");
    else if (w->n_machines && !isnan(cores))
        figure_value(add_figure(pt, w, "cpu_cores", "cores", "threads", -1), cores);
    return seconds;
}

/* Each machine is told at the first of its nodes. Where one is not known the sum is not, either. */
void rows_machines(const struct session_node *nodes, unsigned n, const unsigned *machine,
                   unsigned machines, double *busy, double *softirq)
{
    *busy = *softirq = 0;
    for (unsigned k = 0; k < machines; k++) {
        double one = NAN, its_softirq = NAN;
        for (unsigned i = 0; i < n && isnan(one); i++)
            if (machine[nodes[i].member] == k) {
                one = nodes[i].busy_cores;
                its_softirq = nodes[i].softirq_cores;
            }
        *busy += one;
        *softirq += its_softirq;
    }
}

static void add_cpu(struct point *pt, const struct collective_work *w)
{
    const struct session_node *nodes;
    unsigned n = session_nodes(w->ranks.session, &nodes);
    double threads = add_cores(pt, w), machine, softirq;

    add_per_gb(pt, w);
    rows_machines(nodes, n, w->machine, w->n_machines, &machine, &softirq);
    /* Ticks say nothing of a time that has few of them. And a machine cannot have done less than
     * the threads on it: then others did less than before it all, and what was taken off is too
     * much. */
    bool sound = cpu_ticks_tell(session_seconds(w->ranks.session)) &&
                 machine * session_seconds(w->ranks.session) >= MACHINE_LEAST * threads;
    if (machine > 0 && sound)
        figure_value(add_figure(pt, w, "cpu_cores", "cores", "machine", -1), machine);
    if (machine > 0 && sound && softirq >= 0)
        figure_value(add_figure(pt, w, "cpu_cores", "cores", "softirq", -1), softirq);
}

/* Facts that count are added up over the members, others are the first member's. */
static void add_facts(struct point *pt, const struct collective_work *w)
{
    const struct collective_report *first = session_report(w->ranks.session, 0);

    for (unsigned i = 0; first && i < first->n_facts && i < WIRE_FACTS_MAX; i++) {
        const struct wire_fact *fact = &first->facts[i];
        bool counts = !strcmp(fact->unit, "count");
        double sum = fact->value;
        for (unsigned m = 1; counts && m < w->n; m++) {
            const struct collective_report *told = session_report(w->ranks.session, m);
            for (unsigned k = 0; told && k < told->n_facts && k < WIRE_FACTS_MAX; k++)
                if (!strcmp(told->facts[k].metric, fact->metric))
                    sum += told->facts[k].value;
        }
        figure_value(add_figure(pt, w, fact->metric, fact->unit, counts ? "all" : "", -1), sum);
    }
}

/*
 * What a GPU's links leave busbw at most, as a share of their rate each way, where all bytes go over
 * links of GPUs of one node. 0: not known.
 *
 * All of them must send, or one must send or get, what busbw counts: 1. But for an allreduce in which
 * switches add (NVLS; kernels that load sums): who adds reads its part of all vectors through the
 * switch, its own too, and what it stores comes back to it: (n+1)/n S each way, in place of
 * 2 (n-1)/n S (docs/measuring.md).
 */
static double per_link(const struct collective_work *w, const struct collective_report *told)
{
    if (w->point.op == COLLECTIVE_GATHER || w->point.op == COLLECTIVE_SCATTER)
        return 0; /* the root's links alone carry all, and limits are those of the slowest GPU */
    if (w->point.op != COLLECTIVE_ALLREDUCE)
        return 1;
    if (w->point.aggregated > 1) /* what was told is of single calls */
        return 0;
    return told->switches_add ? 2.0 * (w->size - 1) / (w->size + 1) : told->members_add ? 1 : 0;
}

static void set_gpus(struct point *pt, const struct collective_work *w,
                     const struct collective_report *told)
{
    unsigned most, fewest;
    char text[sizeof(pt->columns[0])] = ""; /* of a few more than eight GPUs */
    size_t used = 0;

    if (w->size < 2 || told->gpu_shared || !collective_find(w->point.backend)->device_memory ||
        links_nodes(w->ranks.world, w->members, w->n, &most, &fewest) > 1)
        return;
    for (unsigned i = 0; i < w->n && used < sizeof(text); i++) {
        const char *address = session_gpu_address(w->ranks.session, i);
        if (!address || !*address)
            return;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? "+" : "", address);
    }
    if (used >= sizeof(text))
        return;
    point_column(pt, "gpu_addresses", "%s", text);
    if (per_link(w, told) > 0)
        point_column(pt, "busbw_per_link", "%.6g", per_link(w, told));
}

static void set_columns(struct point *pt, const struct collective_work *w)
{
    const struct collective_report *told = session_report(w->ranks.session, 0);

    if (!told)
        return;
    point_column(pt, "chosen", "%s", told->algorithm);
    set_gpus(pt, w, told);
    if (told->gpu_shared)
        point_column(pt, "rehearsal", "yes");
    if (told->library_algorithm[0])
        point_column(pt, "library_algorithm", "%s", told->library_algorithm);
    if (told->library_protocol[0])
        point_column(pt, "library_protocol", "%s", told->library_protocol);
    if (told->library_channels)
        point_column(pt, "library_channels", "%u", told->library_channels);
    point_column(pt, "pages", "%s", session_pages(w->ranks.session));
    point_column(pt, "detail", "%s", told->detail);
}

#define OVERLAP_BLOCKS 16

/* How much of the shorter one of operation and product went on beside the other: 100 % where both
 * together take as long as the longer. Each sample has all three, one after another; medians of
 * blocks of samples, so that there is an interval. */
static void overlap_figures(struct point *pt, const struct collective_work *w)
{
    const struct collective_overlap *o = &w->overlap;
    size_t blocks = o->n < OVERLAP_BLOCKS ? o->n : OVERLAP_BLOCKS,
           each = blocks ? o->n / blocks : 0;
    struct figure *alone, *work, *share;

    if (!blocks)
        return;
    alone = point_figure(pt, "operation_alone", "us");
    work = point_figure(pt, "product_alone", "us");
    share = point_figure(pt, "overlap", "percent");
    for (size_t i = 0; i < blocks; i++) {
        double a = stats_median(o->alone_ns + i * each, each),
               p = stats_median(o->work_ns + i * each, each);
        double both = stats_median(o->both_ns + i * each, each);
        figure_value(alone, a / 1e3);
        figure_value(work, p / 1e3);
        figure_value(share, 100 * (a + p - both) / fmin(a, p));
    }
}

void rows_finish(struct point *pt, struct collective_work *w)
{
    const struct collective_params *p = pt->params;

    if (!session_report(w->ranks.session, 0))
        return;
    for (unsigned i = 0; i < w->n; i++)
        if (session_report(w->ranks.session, i) && session_report(w->ranks.session, i)->simulated)
            pt->origin = "simulated"; /* whoever of them it was */
    set_columns(pt, w);
    rows_limit(pt, w);
    overlap_figures(pt, w);
    add_lateness(pt, w);
    if (!p->no_cpu && !p->gap_ns && !p->overlap)
        add_cpu(pt, w);
    add_facts(pt, w);
}
