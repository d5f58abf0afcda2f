/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the benchmark `allreduce`: see work_state.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/allreduce/work_state.h"
#include "core/hw/machine.h"
#include "core/row_facts.h"

#define MACHINE_LEAST 0.97 /* of its threads: ticks are coarse */
#define READING_MOST  0.25 /* of the CPU time around the operations: what reading it may cost */
#define LATE_LEAST    0.05 /* of the operations: what the late one waited less than the others */
#define LATE_NS       1e5  /* the same: less is how a system wakes its processes */

/* All of them are the slowest member's time, told three ways. */
void rows_series(struct point *pt, struct collective_work *w)
{
    double bytes = (double)w->vector_bytes, factor = collective_bus_factor(w->point.op, w->n);

    pt->n_series = 0;
    point_series(pt, "time", "us", 0);
    if (bytes > 0)
        point_series(pt, "algbw", "GB/s", bytes);
    if (bytes > 0 && factor > 0)
        point_series(pt, "busbw", "GB/s", bytes * factor);
    if (bytes > 0)
        point_column(pt, "vector_bytes", "%llu", (unsigned long long)w->vector_bytes);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* What a member did not spend at work: at the barrier before it all, waiting in the operations or for a link to take what it sends, as far as its
 * backend tells, and after its own end until the last one's. */
static double idle_ns(const struct collective_times *t, uint64_t slowest)
{
    return (double)(t->slack_ns + t->waited_ns + t->blocked_ns + (slowest - t->ns));
}

int rows_late(const struct collective_times *times, unsigned n, uint64_t slowest)
{
    double idle[WORLD_RANKS_MAX], sorted[WORLD_RANKS_MAX];
    unsigned late = 0;

    if (n < 2)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        idle[i] = sorted[i] = idle_ns(&times[i], slowest);
        late = idle[i] < idle[late] ? i : late;
    }
    qsort(sorted, n, sizeof(*sorted), ascending);
    return sorted[n / 2] - sorted[0] > fmax(LATE_NS, LATE_LEAST * (double)slowest) ? (int)late : -1;
}

/* The members' begins and ends are of one clock on each machine, or a sample would seem to last longer than rank 0 saw it. */
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
        figure_set(f, "rank_host", world_member(w->world, w->members[member])->host);
    }
    figure_set(f, "scope", scope);
    return f;
}

static void add_lateness(struct point *pt, const struct collective_work *w)
{
    bool own = collective_find(w->point.backend)->own;

    for (unsigned i = 0; i < w->n && w->n > 1 && w->samples; i++) {
        const struct collective_member *m = &w->each[i];
        figure_value(add_figure(pt, w, "late_share", "percent", "", (int)i),
                     100.0 * (double)m->late / (double)w->samples);
        if (!own || !(m->ns > 0))
            continue;
        figure_value(add_figure(pt, w, "waited_share", "percent", "", (int)i),
                     100 * m->waited_ns / m->ns);
        figure_value(add_figure(pt, w, "blocked_share", "percent", "", (int)i),
                     100 * m->blocked_ns / m->ns);
    }
}

/* Bytes that all members together put on their wires, if no wire carries anything twice: what net counts, too. busbw's factor is of
 * one member's wire; in a broadcast each but the root gets the vector once. */
static double wire_gb(const struct collective_work *w)
{
    unsigned wires = w->point.op == COLLECTIVE_BROADCAST ? w->n - 1 : w->n;

    return wires * collective_bus_factor(w->point.op, w->n) * (double)w->vector_bytes *
           (double)w->operations / 1e9;
}

/* Of the operations alone. Where what the readings cost is no small part of it, what is left is not theirs to tell. */
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

/* No machine's threads can take more CPUs than it has: their time is of one span. Returns their CPU seconds. */
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
    unsigned n = session_nodes(w->session, &nodes);
    double threads = add_cores(pt, w), machine, softirq;

    add_per_gb(pt, w);
    rows_machines(nodes, n, w->machine, w->n_machines, &machine, &softirq);
    /* Ticks say nothing of a time that has few of them. And a machine cannot have done less than the threads on it: then others did less than
     * before it all, and what was taken off is too much. */
    bool sound = cpu_ticks_tell(session_seconds(w->session)) &&
                 machine * session_seconds(w->session) >= MACHINE_LEAST * threads;
    if (machine > 0 && sound)
        figure_value(add_figure(pt, w, "cpu_cores", "cores", "machine", -1), machine);
    if (machine > 0 && sound && softirq >= 0)
        figure_value(add_figure(pt, w, "cpu_cores", "cores", "softirq", -1), softirq);
}

/* Facts that count are added up over the members, others are the first member's. */
static void add_facts(struct point *pt, const struct collective_work *w)
{
    const struct collective_told *first = session_told(w->session, 0);

    for (unsigned i = 0; first && i < first->n_facts && i < NET_FACTS_MAX; i++) {
        const struct net_fact *fact = &first->facts[i];
        bool counts = !strcmp(fact->unit, "count");
        double sum = fact->value;
        for (unsigned m = 1; counts && m < w->n; m++) {
            const struct collective_told *told = session_told(w->session, m);
            for (unsigned k = 0; told && k < told->n_facts && k < NET_FACTS_MAX; k++)
                if (!strcmp(told->facts[k].metric, fact->metric))
                    sum += told->facts[k].value;
        }
        figure_value(add_figure(pt, w, fact->metric, fact->unit, counts ? "all" : "", -1), sum);
    }
}

static void set_columns(struct point *pt, const struct collective_work *w)
{
    const struct collective_told *told = session_told(w->session, 0);

    if (!told)
        return;
    point_column(pt, "chosen", "%s", told->algorithm);
    point_column(pt, "detail", "%s", told->detail);
}

void rows_finish(struct point *pt, struct collective_work *w)
{
    const struct collective_params *p = pt->params;

    if (!session_told(w->session, 0))
        return;
    for (unsigned i = 0; i < w->n; i++)
        if (session_told(w->session, i) && session_told(w->session, i)->simulated)
            pt->origin = "simulated"; /* whoever of them it was */
    set_columns(pt, w);
    rows_limit(pt, w);
    work_overlap_figures(pt, w);
    add_lateness(pt, w);
    if (!p->no_cpu && !p->gap_ns && !p->overlap)
        add_cpu(pt, w);
    add_facts(pt, w);
}

static size_t evidence_bytes(const struct session_node *node)
{
    return strlen(node->host) + strlen(node->proof.text) + 4; /* ": " and ", " */
}

/* What does not fit is left out whole: half a figure is another figure. The first is cut. */
static void add_proof(struct point *pt, const struct session_node *node, bool *any)
{
    if (*any && strlen(pt->evidence) + evidence_bytes(node) >= sizeof(pt->evidence))
        return;
    evidence_add(pt->evidence, sizeof(pt->evidence), "%s: %s", node->host, node->proof.text);
    *any = true;
}

/* The worst first: there may be more nodes than room. */
void rows_evidence(struct point *pt, struct collective_work *w)
{
    static const enum path_verdict order[] = {PATH_ELSEWHERE, PATH_UNKNOWN, PATH_PROVED};
    const struct session_node *nodes;
    unsigned n = session_nodes(w->session, &nodes), proved = 0, silent = 0;
    size_t bytes = 0;
    bool any = false;

    pt->carriers = session_told(w->session, 0) ? session_told(w->session, 0)->carriers : 0;
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
            if (nodes[i].proof.text[0] && nodes[i].proof.verdict == order[v])
                add_proof(pt, &nodes[i], &any);
}
