/* SPDX-License-Identifier: Apache-2.0 */
/* From parts and a job to times with intervals: see forecast.h. */
#include "harness/forecast/forecast.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define CACHE_SIZE 64

/* Buckets of a model are of few sizes, and their laws are asked again for each end. */
struct cache {
    struct {
        enum bench_part_of what;
        bool inside;
        double ranks, bytes;
        struct law_value value;
    } known[CACHE_SIZE];
    size_t n;
};

/* What a part costs where it is at one end of its interval: end -1, 0 or 1 of one source. */
struct costing {
    const struct forecast *f;
    struct cache *cache;
    double ranks;
    enum forecast_source source;
    int end;
    /* of all laws that were asked */
    enum law_refusal refused;
    enum bench_part_of refused_of;
    struct law_value worst;
    enum bench_part_of worst_of;
    double far; /* the doublings of `worst` */
    double crowding;
};

static bool is_at(const struct costing *v, enum forecast_source source)
{
    return v->end && v->source == source;
}

/* The slowest of n normal deviates lies about sqrt(2 ln n) above their mean. What one host's
 * samples differ by, and what hosts do, are two reasons. */
static double slowest(const struct costing *v, double ranks)
{
    double jitter = v->f->parts->jitter, nodes = ranks / v->f->per_node;

    if (v->end < 0 || ranks < 2)
        return 1;
    if (is_at(v, SOURCE_SLOWEST))
        return exp(sqrt(2 * log(ranks)) * hypot(isnan(jitter) ? 0 : jitter, FORECAST_JITTER));
    if (is_at(v, SOURCE_SLOW_HOST) && nodes > 1)
        return exp(FORECAST_SLOW_HOST * log2(nodes));
    return 1;
}

/* How many times as fast a part is; what it is swapped for may reach less of its limit. */
static double times_of(const struct costing *v, enum swap_part part)
{
    double times = v->f->swap.times[part];

    if (!(times > 0))
        return 1;
    return is_at(v, SOURCE_SWAP_NETWORK + part) ? times * exp(-FORECAST_SWAPPED * v->end) : times;
}

/* Products and memory of CPUs are measured with all cores of a node, which its ranks share. */
static double sharing(const struct costing *v)
{
    return v->f->parts->gpu ? 1 : v->f->per_node;
}

static double product_s(const void *arg, double m, double n, double k, double count)
{
    const struct costing *v = arg;
    const struct parts *p = v->f->parts;
    double s = parts_product_s(p, m, n, k, count), by = 0;

    if (is_at(v, SOURCE_PRODUCT))
        by = parts_product_off(p, m, n, k) * v->end;
    return s * exp(by) * slowest(v, v->ranks) * sharing(v) / times_of(v, SWAP_PRODUCTS);
}

static double stream_s(const void *arg, double bytes)
{
    const struct costing *v = arg;
    const struct parts *p = v->f->parts;
    double rate = p->stream;

    if (is_at(v, SOURCE_STREAM) && p->stream_low > 0)
        rate = v->end > 0 ? p->stream_low : p->stream_high;
    return bytes / rate * sharing(v) / times_of(v, SWAP_MEMORY);
}

/* All of its groups are inside the node, then. */
static bool is_on_one_node(const struct costing *v)
{
    return v->ranks <= v->f->per_node;
}

static bool is_other_network(const struct costing *v)
{
    return v->f->swap.times[SWAP_NETWORK] > 0 && !is_on_one_node(v);
}

static struct law_value ask(const struct costing *v, enum bench_part_of what, bool inside,
                            double ranks, double bytes)
{
    struct cache *c = v->cache;
    size_t n = c->n < CACHE_SIZE ? c->n : CACHE_SIZE;

    for (size_t i = 0; i < n; i++)
        if (c->known[i].what == what && c->known[i].inside == inside &&
            c->known[i].ranks == ranks && c->known[i].bytes == bytes)
            return c->known[i].value;
    n = c->n++ % CACHE_SIZE;
    c->known[n].what = what;
    c->known[n].inside = inside;
    c->known[n].ranks = ranks;
    c->known[n].bytes = bytes;
    struct part_law of = inside && v->f->parts->inside[what].law.n ? v->f->parts->inside[what]
                                                                   : v->f->parts->laws[what];
    of.law.core_known = v->f->core_known;
    of.law.core_other = !inside && is_other_network(v);
    of.law.crowd = inside ? 0 : v->ranks;
    struct law_value value = law_at(&of.law, ranks, bytes);
    bool one_node = of.nodes == 1; /* 0: not known */
    if (of.nodes > 0 && one_node != inside && value.refused != LAW_NOTHING)
        value.refused = LAW_NODE;
    else if (of.nodes > 1 && of.per_node > 0 && of.per_node != v->f->per_node && !value.refused)
        value.refused = LAW_PLACED;
    return c->known[n].value = value;
}

/* Of all messages of a time: more of it, where it is longer. NaN: not known, and they matter. */
static double messages_us(const struct costing *v, const struct law_value *at, double us)
{
    double times = v->f->swap.times[SWAP_NETWORK];
    double of = at->messages_us, high = at->messages_high_us;

    if (!(of > 0) && !(high <= FORECAST_SWAPPED * at->us / times))
        return NAN;
    if (is_at(v, SOURCE_SWAP_NETWORK))
        of = v->end > 0 ? fmin(isnan(high) ? at->us : high, at->us)
                        : (at->messages_low_us > 0 ? at->messages_low_us : 0);
    return of * us / at->us;
}

/* Each tensor-parallel group is a whole node, and gradients are summed between nodes. */
static bool is_nested(const struct forecast *f, double ranks)
{
    return f->per_node > 1 && f->job.tp == f->per_node && f->job.pp == 1 && f->job.ep == 1 &&
           ranks > f->per_node;
}

/* The ranks of a node are in as many sums, one from each node, which share its links: together they
 * move as many bytes over them as one sum of all their vectors over so many nodes. `at` is of that
 * sum over all ranks, whose terms are of more ranks. At the high end it counts as it is. */
static struct law_value between_nodes(const struct costing *v, enum bench_part_of what,
                                      const struct law_value *at)
{
    const struct bench_terms *terms = v->f->parts->laws[what].law.terms;
    struct law_value value = *at;
    struct fit_terms all, nodes;

    if (at->refused || !terms || !fit_terms(terms, v->ranks, &all) ||
        !fit_terms(terms, v->ranks / v->f->per_node, &nodes))
        return value;
    double messages = at->messages_us > 0 ? fmin(at->messages_us, at->us) : 0;
    double shorter =
        (messages * nodes.messages / all.messages + (at->us - messages) * nodes.bytes / all.bytes) /
        at->us;
    value.us *= shorter;
    value.low_us *= shorter;
    value.messages_us *= nodes.messages / all.messages;
    value.messages_low_us *= nodes.messages / all.messages;
    return value;
}

static double message_us(const struct part_law *law, double ranks, double bytes)
{
    double sum = 0, n = 0;

    for (size_t i = 0; i < law->law.n; i++) {
        const struct fit_point *p = &law->law.points[i];

        if (p->ranks != ranks || p->bytes != bytes)
            continue;
        sum += log(p->time_us);
        n++;
    }
    return n > 0 ? exp(sum / n) : NAN;
}

/* The fewest measured ranks from `least` on, or the most below. */
static double measured_ranks(const struct part_law *law, double least, bool up)
{
    double best = NAN;

    for (size_t i = 0; i < law->law.n; i++) {
        double ranks = law->law.points[i].ranks;

        if (up ? ranks >= least && !(ranks >= best) : ranks <= least && !(ranks <= best))
            best = ranks;
    }
    return best;
}

/* How much longer a message takes if `to` ranks send at once, in place of `from`: of measured times
 * at the largest vector that both have. NaN: `to` or more ranks were not measured. */
static double parts_crowding(const struct part_law *messages, double from, double to)
{
    double few = measured_ranks(messages, from, false), many = measured_ranks(messages, to, true);
    double most = 0, longer = NAN;

    for (size_t i = 0; i < messages->law.n; i++) {
        double bytes = messages->law.points[i].bytes;
        double ratio = message_us(messages, many, bytes) / message_us(messages, few, bytes);

        if (bytes <= most || isnan(ratio))
            continue;
        most = bytes;
        longer = ratio;
    }
    return longer;
}

/* Other groups of the job send at the same time: by how much they hold up each other, as messages
 * show. Where each group is a node, they share nothing but the node's links, which is counted. */
static double crowding(const struct costing *v, double ranks)
{
    const struct part_law *laws = is_on_one_node(v) ? v->f->parts->inside : v->f->parts->laws;

    if (ranks >= v->ranks || is_nested(v->f, v->ranks))
        return 1;
    double per_node = is_on_one_node(v) ? 0 : laws[JOB_MESSAGE].per_node; /* 0: any */
    bool placed = !(per_node > 0) || per_node == v->f->per_node;
    double longer = placed ? parts_crowding(&laws[JOB_MESSAGE], ranks, v->ranks) : NAN;
    return isnan(longer) ? NAN : fmax(1, longer);
}

/* Not known: upwards as much as a core with half the rate. */
static double crowded_us(struct costing *v, double us, double crowded, bool up)
{
    if (!isnan(crowded)) {
        v->crowding = isnan(v->crowding) ? NAN : fmax(v->crowding, crowded);
        return us * crowded;
    }
    v->crowding = NAN;
    return up && !v->f->core_known ? us * exp(LAW_CORE) : us;
}

static double group_s(const void *arg, enum bench_part_of what, bool inner, double ranks,
                      double bytes)
{
    struct costing *v = (struct costing *)arg;
    enum forecast_source mine = inner ? SOURCE_PARALLEL : SOURCE_NETWORK;
    bool nested = is_nested(v->f, v->ranks);
    bool other = is_other_network(v) && !(inner && nested);
    struct law_value at = nested && !inner
                              ? ask(v, what, false, v->ranks, bytes * v->f->per_node)
                              : ask(v, what, nested || is_on_one_node(v), ranks, bytes);

    if (nested && !inner)
        at = between_nodes(v, what, &at);

    if (!at.refused && other && isnan(messages_us(v, &at, at.us)))
        at.refused = LAW_MESSAGES;
    bool worse = at.refused && !v->refused;

    if (worse) {
        v->refused = at.refused;
        v->refused_of = what;
    }
    if (worse || (!v->refused && at.doublings >= v->far)) {
        v->worst = at;
        v->worst_of = what;
        v->far = at.doublings;
    }
    if (at.refused)
        return at.refused == LAW_NOTHING ? NAN : 0;
    double us = !is_at(v, mine) ? at.us : v->end > 0 ? at.high_us : at.low_us;
    us = crowded_us(v, us, crowding(v, ranks), is_at(v, mine) && v->end > 0);
    /* a host that was not measured may have a slow link as well */
    if (is_at(v, SOURCE_SLOW_HOST) && v->end > 0)
        us *= exp(FORECAST_SLOW_HOST * at.doublings);
    /* A swapped network has other bytes a second; the time of a message stays. What a node does
     * inside stays as well. */
    double messages = messages_us(v, &at, us);

    return (other ? (messages + (us - messages) / times_of(v, SWAP_NETWORK)) : us) * 1e-6;
}

/* Of the shorter of two works a share h is hidden. Where both go on at the rate r of each alone,
 * the shorter ends after s / r, and the other needs its whole length and s (1 / r - 1) more: so
 * h = 2 - 1 / r. */
static double together(const struct costing *v)
{
    const struct parts *p = v->f->parts;
    double hidden = isnan(p->hidden) ? 0.5 : p->hidden;

    if (is_at(v, SOURCE_OVERLAP)) {
        if (isnan(p->hidden))
            hidden = v->end > 0 ? 0 : 1;
        else
            hidden = v->end > 0 ? p->hidden_low : p->hidden_high;
    }
    return 1 / (2 - fmax(0, fmin(1, hidden)));
}

static double call_s(const struct costing *v)
{
    const struct parts *p = v->f->parts;

    if (is_at(v, SOURCE_CALL) && p->call_low_s > 0)
        return v->end > 0 ? p->call_high_s : p->call_low_s;
    return p->call_s;
}

/* What one rank's step takes beside its operations. */
static double host_s(const struct costing *v)
{
    const struct part_host *h = &v->f->parts->host;

    if (isnan(h->s))
        return 0;
    return fmax(0, !is_at(v, SOURCE_HOST) ? h->s : v->end > 0 ? h->high_s : h->low_s);
}

/* Compute that is given, of ranks that share the model: by how much longer, or shorter. It was measured
 * on one host, and others differ by two deviations. */
static double divided(const struct costing *v, const struct step_job *job)
{
    double hosts = 2 * FORECAST_JITTER, split = FORECAST_DIVIDED * log2(job->tp),
           spread = FORECAST_DIVIDED * log2(job->ep);
    bool shared = job->tp > 1 || job->pp > 1 || job->ep > 1;

    if (!is_at(v, SOURCE_DIVIDED) || !shared || v->f->compute_stated)
        return 1;
    return v->end > 0 ? exp(hosts + split) : exp(-hosts - spread);
}

static int one(struct costing *v, const struct step_job *of, struct step_time *time)
{
    struct step_job job = *of;
    struct step_costs costs = {.product = product_s,
                               .stream = stream_s,
                               .group = group_s,
                               .arg = v,
                               .call_s = call_s(v),
                               .together = together(v),
                               .network = together(v),
                               /* a framework may wait for each message of a pipeline */
                               .waits = is_at(v, SOURCE_PARALLEL) && v->end > 0,
                               .apart = is_nested(v->f, v->ranks)};

    /* The figure does not say which of the two is slowed: at the low end compute alone. */
    if (is_at(v, SOURCE_OVERLAP) && v->end < 0)
        costs.network = 1;

    job.compute_s *= slowest(v, v->ranks) * divided(v, of);
    int err = step_time(&job, &costs, time);
    time->step_s += host_s(v);
    return err;
}

static enum forecast_bound bound_of(const struct step_time *t)
{
    double most = t->compute_s + t->bubble_s;
    enum forecast_bound bound = BOUND_COMPUTE;

    if (t->exposed_s > most) {
        most = t->exposed_s;
        bound = BOUND_NETWORK;
    }
    if (t->parallel_s > most) {
        most = t->parallel_s;
        bound = BOUND_PARALLEL;
    }
    return t->update_s > most ? BOUND_UPDATE : bound;
}

static int add_ends(const struct forecast *f, struct cache *cache, const struct step_job *job,
                    struct forecast_point *p)
{
    double low = 0, high = 0, widest = -1;

    for (int source = 0; source < SOURCES; source++) {
        for (int end = 0; end < 2; end++) {
            struct costing v = {.f = f,
                                .cache = cache,
                                .ranks = p->ranks,
                                .source = (enum forecast_source)source,
                                .end = 2 * end - 1};
            struct step_time t;
            int err = one(&v, job, &t);

            if (err)
                return err;
            p->ends_s[source][end] = t.step_s;
        }
        double down = log(p->time.step_s / fmin(p->ends_s[source][0], p->time.step_s));
        double up = log(fmax(p->ends_s[source][1], p->time.step_s) / p->time.step_s);
        low += down * down;
        high += up * up;
        if (down + up > widest)
            p->widest = (enum forecast_source)source;
        widest = fmax(widest, down + up);
    }
    p->low_s = p->time.step_s * exp(-sqrt(low));
    p->high_s = p->time.step_s * exp(sqrt(high));
    return 0;
}

/* Without a GPU, runs tell the memory of a whole node. */
double forecast_memory(const struct forecast *f)
{
    return f->memory_bytes > 0         ? f->memory_bytes
           : f->swap.memory_bytes != 0 ? f->swap.memory_bytes
                                       : f->parts->memory_bytes / (f->parts->gpu ? 1 : f->per_node);
}

int forecast_point(const struct forecast *f, double ranks, struct forecast_point *p)
{
    struct step_job job = f->job;
    struct cache cache = {.n = 0};
    struct costing v = {.f = f, .cache = &cache, .ranks = ranks, .crowding = 1};

    job.dp = floor(ranks / job.tp / job.pp);
    *p = (struct forecast_point){
        .ranks = ranks, .dp = job.dp, .low_s = NAN, .high_s = NAN, .samples_s = NAN};
    if (job.dp < 1)
        return -EINVAL;
    bool scattered = job.zero >= 2 && job.micro > 1 && job.pp > 1;
    /* Laws are of groups of all ranks of their nodes. A group inside one node has no link between
     * nodes, and several groups of one node share its link, or its memory: no law prices these. One
     * group that is the whole node was measured. */
    bool whole =
        ranks == f->per_node && (f->job.tp == ranks || f->job.pp == ranks || f->job.ep == ranks);
    /* Ranks of a node share its link: how much that costs depends on how many they are. On one node
     * there is no link between nodes. */
    const struct part_law *sum = &f->parts->laws[f->job.zero ? JOB_SCATTER : JOB_SUM];

    bool grouped = f->per_node > 1 && !whole && !is_nested(f, ranks) &&
                   (f->job.tp > 1 || f->job.pp > 1 || f->job.ep > 1),
         placed = ranks < 2 || !sum->law.n || !(sum->nodes > 0) ? true
                  : sum->nodes < 2                              ? ranks <= f->per_node
                                                                : sum->per_node == f->per_node;
    bool divided = job.dp * job.tp * job.pp == ranks && fmod(job.dp, job.ep) == 0;
    if (grouped || scattered || !divided || !placed) {
        p->refused = scattered  ? LAW_MICRO
                     : !divided ? LAW_DIVIDED
                     : grouped  ? LAW_GROUPS
                                : LAW_PLACED;
        p->refused_of = JOB_SUM;
        p->time.step_s = NAN;
        return 0;
    }
    int err = one(&v, &job, &p->time);
    p->refused = v.refused;
    p->refused_of = v.refused_of;
    p->law = v.worst;
    p->law_of = v.worst_of;
    p->crowding = v.crowding;
    p->host_s = host_s(&v);
    /* Activations can be computed again: what remains without them must be there. */
    const struct model_memory *m = &p->time.memory;
    double of = forecast_memory(f);
    if (!err && !p->refused && of > 0 && m->parameters + m->gradients + m->update > of) {
        p->refused = LAW_MEMORY;
        p->time.step_s = NAN;
    }
    if (err || p->refused || isnan(p->time.step_s))
        return err;
    p->bound = bound_of(&p->time);
    p->samples_s = job.dp * job.batch / p->time.step_s;
    return add_ends(f, &cache, &job, p);
}

void forecast_use(struct forecast *f, const struct parts *parts, double per_node)
{
    const struct part_law *sum = &parts->laws[f->job.zero ? JOB_SCATTER : JOB_SUM];

    f->parts = parts;
    f->per_node = per_node > 0 ? per_node : sum->per_node > 0 ? sum->per_node : 1;
}

int forecast_make(struct forecast *f, const double *nodes, struct forecast_point *points, size_t n)
{
    int err = 0;

    f->points = points;
    f->n = n;
    for (size_t i = 0; !err && i < n; i++) {
        err = forecast_point(f, nodes[i] * f->per_node, &points[i]);
        points[i].nodes = nodes[i];
    }
    return err;
}

bool forecast_is_given(const struct forecast_point *p)
{
    return !isnan(p->low_s);
}

double forecast_rate(const struct forecast_point *p, double step_s)
{
    return p->samples_s * p->time.step_s / step_s;
}

const struct forecast_point *forecast_base(const struct forecast *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (forecast_is_given(&f->points[i]))
            return &f->points[i];
    return NULL;
}

double forecast_efficiency(const struct forecast *f, const struct forecast_point *p)
{
    const struct forecast_point *base = forecast_base(f);

    return base ? p->samples_s / p->ranks / (base->samples_s / base->ranks) : NAN;
}
