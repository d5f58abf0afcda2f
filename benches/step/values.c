/* SPDX-License-Identifier: Apache-2.0 */
/* What a step's rows say: see work.h, and docs/step.md for the formulas. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/step/run.h"
#include "benches/step/work.h"
#include "core/alloc.h"
#include "core/stats.h"
#include "core/text.h"

#define FASTER 1    /* percent: cores that others leave may run as much faster */
#define LAST   0.98 /* of the slowest rank's time: whoever takes as long ends last */

static double sums_ns(const struct collective_times *t)
{
    return (double)(t->own_ns[STEP_NS_SUMS] + t->own_ns[STEP_NS_TAIL]);
}

/* ---- What the rows are made of, for whoever would compute them again ---- */

static void put(FILE *to, unsigned job, const char *what, uint64_t sample, unsigned rank,
                double value)
{
    fprintf(to, "%u,%s,%" PRIu64 ",%u,%.17g\n", job, what, sample, rank, value);
}

int raw_begin(struct step_work *w, const char *path)
{
    w->job++;
    if (w->raw || !*path)
        return 0;
    w->raw = fopen(path, "we");
    if (!w->raw)
        return -errno;
    fprintf(w->raw, "job,what,sample,rank,value\n");
    return 0;
}

static void raw_sample(const struct step_work *w, const struct collective_times *times,
                       uint64_t alone_ns)
{
    static const struct {
        const char *name;
        enum step_count count;
    } counts[] = {{"compute", STEP_NS_COMPUTE},
                  {"sums", STEP_NS_SUMS},
                  {"pipe", STEP_NS_PIPE},
                  {"tail", STEP_NS_TAIL},
                  {"update", STEP_NS_UPDATE}};

    for (unsigned rank = 0; w->raw && rank < w->n; rank++) {
        put(w->raw, w->job, "whole", w->samples, rank, (double)times[rank].ns);
        put(w->raw, w->job, "alone", w->samples, rank, (double)alone_ns);
        for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
            put(w->raw, w->job, counts[i].name, w->samples, rank,
                (double)times[rank].own_ns[counts[i].count]);
    }
}

static void raw_sent(const struct step_work *w, unsigned rank, double bytes)
{
    if (w->raw)
        put(w->raw, w->job, "sent", w->samples, rank, bytes);
}

int raw_end(struct step_work *w)
{
    int err = w->raw ? stream_finish(w->raw) : 0;

    w->raw = NULL;
    return err;
}

/* ---- A sample ---- */

/* What the communication adds to the step: what waits for it longest is held up by others, so of the
 * ranks that end last, the one that waits least. */
static double exposed_ns(const struct step_work *w, const struct collective_times *times)
{
    double least = INFINITY, last = 0;

    for (unsigned i = 0; i < w->n; i++)
        last = fmax(last, (double)times[i].ns);
    for (unsigned i = 0; i < w->n; i++)
        if ((double)times[i].ns >= LAST * last)
            least = fmin(least, sums_ns(&times[i]));
    return least;
}

/* Of all ranks: what they wait for other stages, and for the end of the step. Who waits while the last
 * rank waits for sums waits for these: nobody's wait is more than what they leave of the step. */
static double bubble_ns(const struct step_work *w, const struct collective_times *times,
                        uint64_t slowest, double exposed)
{
    double sum = 0;

    for (unsigned i = 0; i < w->n; i++)
        sum += fmin((double)times[i].own_ns[STEP_NS_PIPE] + (double)(slowest - times[i].ns),
                    (double)slowest - exposed);
    return sum / w->n;
}

void values_count(struct step_work *w, const struct collective_times *times, uint64_t slowest,
                  uint64_t alone_ns)
{
    struct step_shares *s = &w->shares;

    w->samples++;
    raw_sample(w, times, alone_ns);
    if (s->n == STEP_SAMPLES || !slowest)
        return;
    s->step_ns[s->n] = (double)slowest;
    s->alone_ns[s->n] = (double)alone_ns;
    /* By how much the slowest compute is slower than alone. */
    double most = 0;
    for (unsigned i = 0; i < w->n; i++)
        most = fmax(most, (double)times[i].own_ns[STEP_NS_COMPUTE]);
    s->slowdown[s->n] = alone_ns ? 100 * (most / (double)alone_ns - 1) : 0;
    s->update_ns[s->n] = 0;
    for (unsigned i = 0; i < w->n; i++)
        s->update_ns[s->n] = fmax(s->update_ns[s->n], (double)times[i].own_ns[STEP_NS_UPDATE]);
    for (unsigned i = 0; i < w->n && w->waits_ms; i++)
        w->waits_ms[i * STEP_SAMPLES + s->n] =
            (sums_ns(&times[i]) + (double)times[i].own_ns[STEP_NS_PIPE]) / 1e6;
    double exposed = fmin(exposed_ns(w, times), (double)slowest);
    s->exposed[s->n] = 100 * exposed / (double)slowest;
    s->bubble[s->n++] = 100 * bubble_ns(w, times, slowest, exposed) / (double)slowest;
}

double values_compute_ns(const struct step_shares *s)
{
    double least = INFINITY;

    for (size_t i = 0; i < s->n; i++)
        least = fmin(least, s->alone_ns[i] * fmin(1, 1 + s->slowdown[i] / 100));
    return s->n ? least : 0;
}

bool values_was_disturbed(const double *slowdown, size_t n)
{
    struct median_ci ci;

    if (stats_ci_median(slowdown, n, 0.95, &ci) || isnan(ci.high)) {
        ci.high = n ? slowdown[0] : 0; /* so few have none: all of them */
        for (size_t i = 1; i < n; i++)
            ci.high = fmax(ci.high, slowdown[i]);
    }
    return ci.high < -FASTER;
}

/* Where block i begins; of `blocks`, where the last ends. Each has an odd number of samples, whose
 * median is as often above the true one as below it, however skewed they are: of two it is their
 * mean. The last alone has an even number, if the others leave that. */
static size_t block_begin(size_t n, size_t blocks, size_t i)
{
    size_t least = (n / blocks - 1) | 1, pairs = (n - blocks * least) / 2;

    return i == blocks ? n : i * least + 2 * (i * pairs / blocks);
}

static double block_median(const double *values, size_t n, size_t blocks, size_t i)
{
    size_t begin = block_begin(n, blocks, i);

    return stats_median(values + begin, block_begin(n, blocks, i + 1) - begin);
}

/* Returns the median of the blocks' medians, which is the value of a figure that has them. f: NULL: none has. */
static double add_blocks(struct figure *f, const double *values, size_t n)
{
    size_t blocks = n < FIGURE_VALUES_MAX ? n : FIGURE_VALUES_MAX;
    double medians[FIGURE_VALUES_MAX];

    for (size_t i = 0; i < blocks; i++) {
        medians[i] = block_median(values, n, blocks, i);
        if (f)
            figure_value(f, medians[i]);
    }
    return stats_median(medians, blocks);
}

static double samples_of(const struct step_work *w)
{
    return (double)w->spec.batch * step_dp(&w->spec);
}

static struct figure *add_figure(struct point *pt, const struct step_work *w, const char *metric,
                                 const char *unit, unsigned member)
{
    struct figure *f = point_figure(pt, metric, unit);
    char rank[16];

    snprintf(rank, sizeof(rank), "%u", w->members[member]);
    figure_set(f, "rank", rank);
    figure_set(f, "rank_host", world_member(w->ranks.world, w->members[member])->host);
    return f;
}

static void add_one(struct figure *f, double value, const char *why_alone)
{
    figure_value(f, value);
    snprintf(f->note, sizeof(f->note), "%s", why_alone);
}

/* What each rank waited in a step, and sent over all of its links, as the transport counted it. */
static void add_ranks(struct point *pt, struct step_work *w)
{
    for (unsigned i = 0; i < w->n && w->n > 1 && w->samples; i++) {
        const struct collective_report *told = session_report(w->ranks.session, i);
        double bytes = 0;
        bool exact = told && told->n_flows;
        if (w->waits_ms)
            add_blocks(add_figure(pt, w, "waited", "ms", i), &w->waits_ms[i * STEP_SAMPLES],
                       w->shares.n);
        for (uint32_t k = 0; told && k < told->n_flows; k++) {
            bytes += told->flows[k].out_bytes;
            exact = exact && told->flows[k].exact;
        }
        if (exact)
            add_one(add_figure(pt, w, "sent", "MB", i), bytes / 1e6 / (double)w->samples,
                    "counted over all steps together: it has no interval");
        if (exact)
            raw_sent(w, i, bytes);
    }
}

/* ---- The limit ---- */

int values_traffic(const struct step_spec *spec, const struct step_layer *layers,
                   const struct world *world, bool on_the_way, struct step_traffic *t)
{
    size_t each = collective_type_bytes((enum collective_type)spec->type);
    int err = 0;

    *t = (struct step_traffic){0};
    for (unsigned rank = 0; rank < spec->ranks && !err; rank++) {
        struct step_plan plan;
        err = step_plan_make(&plan, spec, layers, rank);
        for (size_t i = 0; i < plan.n_ops && !err; i++) {
            const struct step_part *part = &plan.parts[plan.ops[i].part];
            enum collective_op op = (enum collective_op)part->op;
            if (plan.ops[i].kind != STEP_CALL || part->me) /* of all members the first */
                continue;
            double bytes = (double)(part->calls[plan.ops[i].call].count * each);
            t->total += bytes * links_total(world, op, part->members, part->n, on_the_way);
            for (unsigned node = 0; node < world_nodes(world); node++) {
                struct collective_load load =
                    collective_load(world, op, part->members, part->n, 0, node);
                t->out[node] += bytes * load.out;
                t->in[node] += bytes * load.in;
            }
        }
        step_plan_release(&plan);
    }
    return err;
}

double values_network_ns(const struct step_traffic *t, const double *gbps, unsigned nodes,
                         unsigned *named)
{
    double longest = 0, sum = 0;

    for (unsigned node = 0; node < nodes; node++) {
        double most = fmax(t->out[node], t->in[node]);
        sum += most > 0 ? gbps[node] : 0; /* NAN: nothing is known of all together */
        if (most / gbps[node] > longest) {
            longest = most / gbps[node];
            *named = node;
        }
    }
    return fmax(longest, isnan(sum) || !(sum > 0) ? 0 : t->total / sum);
}

/* What the links of nodes carry: gbps[node], NAN where it is not known, and the words of each. */
struct node_rates {
    double gbps[WORLD_RANKS_MAX];
    struct links_rate rates[WORLD_RANKS_MAX];
    bool may_add; /* switches behind all of them may add */
};

/* false: ranks are on one node, or some bytes went over no real link. */
static bool read_rates(const struct step_work *w, struct node_rates *r)
{
    const struct session_node *nodes;
    unsigned n = session_nodes(w->ranks.session, &nodes);
    bool own = collective_find(w->backend)->own;
    struct links_rate rate;

    r->may_add = true;
    for (unsigned i = 0; i < world_nodes(w->ranks.world); i++)
        r->gbps[i] = NAN;
    for (unsigned i = 0; i < n; i++) {
        links_rate(w->ranks.session, w->ranks.world, w->members, w->n, own, &nodes[i], &rate);
        r->rates[rate.node] = rate;
        r->gbps[rate.node] = rate.gbps;
        r->may_add = r->may_add && rate.may_add;
    }
    return n > 1 && (own || !links_simulated(w->ranks.session, w->n));
}

/* Stages of one node compute alone all at once, and in the step in turn: cores, memory and clock rates
 * are shared when alone, and perhaps not in the step. */
static bool stages_share(const struct step_work *w)
{
    const struct step_spec *s = &w->spec;

    for (unsigned i = 0; i < w->n && !collective_find(w->backend)->device_memory; i++)
        for (unsigned k = 0; k < i; k++)
            if (i / s->tp % s->pp != k / s->tp % s->pp &&
                world_member(w->ranks.world, w->members[i])->node ==
                    world_member(w->ranks.world, w->members[k])->node)
                return true;
    return false;
}

/* The limit of the throughput, which w->limit_source explains; link: what is full first; NULL: compute
 * bounds it, which is stated, or was measured. */
static void set_throughput(struct point *pt, struct step_work *w, double limit,
                           const struct links_rate *link)
{
    for (size_t i = 0; i < pt->n_series; i++) {
        if (strcmp(pt->series[i].metric, "throughput") != 0)
            continue;
        pt->series[i].limit = limit;
        pt->series[i].limit_kind = link                            ? LIMIT_SYSFS
                                   : w->spec.compute == STEP_TIMED ? LIMIT_TOLD
                                                                   : LIMIT_MEASURED;
        pt->series[i].limit_link = link ? link->link : NULL;
        pt->series[i].limit_source = w->limit_source;
    }
}

/* No step is shorter than the compute of the rank that has most of it, and a pipeline's bubble: of
 * real compute, than the shortest that was seen. And none is shorter than the nodes' links need for
 * what any algorithm must move. */
static void set_limit(struct point *pt, struct step_work *w)
{
    bool timed = w->spec.compute == STEP_TIMED;
    struct node_rates *r = xcalloc(1, sizeof(*r));
    bool known = read_rates(w, r);
    double compute = timed ? w->least_ns : values_compute_ns(&w->shares), network = 0;
    struct step_traffic traffic;
    unsigned named = 0;

    if (known && !values_traffic(&w->spec, w->layers, w->ranks.world, r->may_add, &traffic))
        network = values_network_ns(&traffic, r->gbps, world_nodes(w->ranks.world), &named);
    bool linked = network > compute;

    if (linked)
        snprintf(w->limit_source, sizeof(w->limit_source),
                 "%.4g ms that the nodes' links need at least, all compute hidden; %s",
                 network / 1e6, r->rates[named].source);
    else
        snprintf(w->limit_source, sizeof(w->limit_source),
                 w->spec.pp == 1 ? "compute alone, all communication hidden"
                 : timed         ? "compute and the pipeline's bubble, all communication hidden"
                                 : "the slowest stage's compute, without the pipeline's bubble");
    if (fmax(compute, network) > 0)
        set_throughput(pt, w, samples_of(w) * 1e9 / fmax(compute, network),
                       linked ? &r->rates[named] : NULL);
    free(r);
}

/* Both passes of the whole model on one rank: of real compute, where each rank does that. */
static void add_compute(struct point *pt, struct step_work *w)
{
    const struct step_spec *s = &w->spec;
    struct figure *alone = point_figure(pt, "compute_alone", "ms");

    if (s->compute == STEP_TIMED) {
        figure_value(alone, w->longest_ns / 1e6);
        point_column(pt, "compute_ms", "%.9g", w->passes_ns / 1e6);
        return;
    }
    for (size_t i = 0; i < w->shares.n; i++)
        w->shares.alone_ns[i] /= 1e6;
    double alone_ms = add_blocks(alone, w->shares.alone_ns, w->shares.n);
    if (!stages_share(w)) {
        struct figure *f = point_figure(pt, "compute_slowdown", "percent");
        add_blocks(f, w->shares.slowdown, w->shares.n);
        if (values_was_disturbed(f->values, f->n)) {
            figure_remark(f, "compute was slower alone than in the step: other work disturbed it");
            figure_remark(alone, f->remark);
        }
    }
    double update_ns = add_blocks(NULL, w->shares.update_ns, w->shares.n);
    if (s->tp == 1 && s->pp == 1)
        point_column(pt, "compute_ms", "%.9g", alone_ms - update_ns / 1e6);
}

/* The update, of the rank that has most of it. */
static void add_update(struct point *pt, struct step_work *w)
{
    struct step_shares *s = &w->shares;

    if (!(w->update_bytes > 0))
        return;
    struct figure *f = point_figure(pt, "update_time", "ms");
    for (size_t i = 0; i < s->n; i++)
        s->update_ns[i] /= 1e6;
    double ms = w->update_ns / 1e6;
    if (w->spec.compute == STEP_TIMED)
        figure_value(f, ms);
    else
        ms = add_blocks(f, s->update_ns, s->n);
    point_column(pt, "update_ms", "%.9g", ms);
    figure_value(point_figure(pt, "update_moved", "MB"), w->update_bytes / 1e6);
}

/* Of the rank that needs most. */
static void add_memory(struct point *pt, const struct step_work *w)
{
    struct model_memory most = step_memory(&w->spec, w->layers, 0);

    for (unsigned rank = 1; rank < w->n; rank++) {
        struct model_memory m = step_memory(&w->spec, w->layers, rank);
        most = model_memory_all(&m) > model_memory_all(&most) ? m : most;
    }
    const struct {
        const char *name;
        double bytes;
    } parts[] = {{"parameters", most.parameters},
                 {"gradients", most.gradients},
                 {"update", most.update},
                 {"activations", most.activations},
                 {"all", model_memory_all(&most)}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        struct figure *f = point_figure(pt, "memory", "MB");
        figure_set(f, "part", parts[i].name);
        figure_value(f, parts[i].bytes / 1e6);
    }
}

void values_finish(struct point *pt, struct step_work *w)
{
    const struct collective_report *told = session_report(w->ranks.session, 0);
    bool timed = w->spec.compute == STEP_TIMED;

    if (!told)
        return;
    if (links_simulated(w->ranks.session, w->n)) {
        pt->origin = "simulated";
        point_column(pt, "simulated", timed ? "compute and network" : "network");
    }
    point_column(pt, "chosen", "%s", told->algorithm);
    point_column(pt, "detail", "%s", told->detail);
    set_limit(pt, w);
    if (!w->shares.n)
        return;
    add_compute(pt, w);
    add_update(pt, w);
    add_memory(pt, w);
    if (w->n > 1)
        add_blocks(point_figure(pt, "exposed", "percent"), w->shares.exposed, w->shares.n);
    if (w->spec.pp > 1)
        add_blocks(point_figure(pt, "bubble", "percent"), w->shares.bubble, w->shares.n);
    add_ranks(pt, w);
}
