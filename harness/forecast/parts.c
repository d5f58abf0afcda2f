/* SPDX-License-Identifier: Apache-2.0 */
/* The measured parts of a machine, from the rows of runs: see forecast.h. */
#include "harness/forecast/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/condition.h"
#include "core/row.h"
#include "core/stats.h"
#include "core/units.h"
#include "harness/report/described.h"
#include "harness/text.h"

struct parts_reading {
    struct report *r;
    const struct bench_list *benches;
    const char *over;
    double per_node;
    size_t most; /* values of all runs in all cases */
    struct scalings scalings;
    struct parts *parts;
    double stream_size;               /* the largest */
    const struct scaling_series *sum; /* the way of sums that was chosen; NULL */
    double overlap_size, overlap_ranks;
};

static double number_of(const struct report_bench *b, const struct report_case *c, const char *name)
{
    double value;

    return units_parse_double(report_param(b, c, name), &value) ? NAN : value;
}

static const struct bench_part *part_of(const struct parts_reading *in,
                                        const struct report_bench *b, const struct report_case *c)
{
    const struct bench_part *part = described_of(&in->r->described, b->name)->parts;

    while (part->where && !described_matches(b, c, part->where))
        part++;
    return part->where ? part : NULL;
}

/* A value in the unit's base: operations, bytes, seconds. NaN: none was measured. */
static double base_of(const struct report_case *c, double value)
{
    const struct unit *unit = units_find(c->unit);

    if (!unit)
        return NAN;
    /* a rate's scale turns 1/ns into its unit, a time's ns */
    return unit->rate ? value / unit->scale * 1e9 : value / unit->scale * 1e-9;
}

static bool is_measured(const struct report_point *p)
{
    return p->n_values && isfinite(p->value) && strcmp(p->status, "wrong") != 0;
}

static bool is_usable(const struct report_point *p)
{
    return is_measured(p) && p->value > 0;
}

/* ---- the time of a product, from those that were measured ---- */

/* The square of the distance of two shapes, in logarithms. */
static double square_of(const struct part_product *at, double m, double n, double k)
{
    double x = log(m / at->m), y = log(n / at->n), z = log(k / at->k);

    return x * x + y * y + z * z;
}

/* The rate of a shape, without the measured one number `but`. */
static double rate_of(const struct parts *p, double m, double n, double k, size_t but)
{
    double sum = 0, weights = 0;

    for (size_t i = 0; i < p->n_products; i++) {
        const struct part_product *at = &p->products[i];
        double square = square_of(at, m, n, k);

        if (i == but)
            continue;
        if (square < 1e-12)
            return at->flops;
        sum += log(at->flops) / (square * square);
        weights += 1 / (square * square);
    }
    return weights > 0 ? exp(sum / weights) : NAN;
}

/* How far the nearest measured shape is, as a logarithm. */
static double distance_of(const struct parts *p, double m, double n, double k, size_t but)
{
    double least = HUGE_VAL;

    for (size_t i = 0; i < p->n_products; i++) {
        if (i != but)
            least = fmin(least, square_of(&p->products[i], m, n, k));
    }
    return sqrt(least);
}

double parts_product_off(const struct parts *p, double m, double n, double k)
{
    double far = distance_of(p, m, n, k, p->n_products) / p->product_apart;

    return isnan(p->product_spread) ? NAN
                                    : dist_t_quantile(0.975, (double)p->n_products - 1) *
                                          p->product_spread * fmax(1, far);
}

double parts_product_s(const struct parts *p, double m, double n, double k, double count)
{
    if (p->n_products < PARTS_SHAPES)
        return NAN;
    return 2 * m * n * k * count / rate_of(p, m, n, k, p->n_products);
}

void parts_product_spread(struct parts *p)
{
    double squares = 0, jitter = 0, known = 0;

    p->product_apart = 0;
    for (size_t i = 0; i < p->n_products; i++) {
        const struct part_product *at = &p->products[i];
        double off = log(rate_of(p, at->m, at->n, at->k, i) / at->flops);

        squares += off * off;
        jitter += isnan(at->jitter) ? 0 : at->jitter;
        known += !isnan(at->jitter);
        p->product_apart = fmax(p->product_apart, distance_of(p, at->m, at->n, at->k, i));
    }
    p->jitter = known ? jitter / known : NAN;
    p->product_spread =
        p->n_products >= PARTS_SHAPES ? sqrt(squares / (double)(p->n_products - 1)) : NAN;
}

/* ---- every case of one kind of part ---- */

typedef void each_fn(struct parts_reading *in, const struct report_bench *b,
                     const struct report_case *c, const struct report_point *p);

static void each_case(struct parts_reading *in, enum bench_part_of what, each_fn *fn)
{
    for (size_t i = 0; i < in->r->n_benches; i++) {
        const struct report_bench *b = &in->r->benches[i];

        for (size_t k = 0; k < b->n_cases; k++) {
            const struct report_case *c = &b->cases[k];
            const struct bench_part *part = part_of(in, b, c);

            for (size_t run = 0; part && part->of == what && run < in->r->n_runs; run++)
                /* Two works that slow each other down hide nothing, or less: that may be below 0. */
                if (is_usable(&c->points[run]) ||
                    (what == JOB_OVERLAP && is_measured(&c->points[run])))
                    fn(in, b, c, &c->points[run]);
        }
    }
}

/* ---- products ---- */

static void look_for_gpu(struct parts_reading *in, const struct report_bench *b,
                         const struct report_case *c, const struct report_point *p)
{
    (void)p;
    in->parts->gpu |= case_is_gpu(b, c);
}

#define P05_TO_P95 3.29 /* in deviations of a normal distribution */

/* A limit that was no more than the same work again is none. */
static double limit_of(const struct report_case *c, const struct report_point *p)
{
    return p->reference ? NAN : base_of(c, p->limit);
}

/* Of GPUs or of hosts, as products are. */
static void take_memory(struct parts_reading *in, bool gpu, const json_t *device, const char *path)
{
    double bytes = fact_number(device, path, 0);

    if (gpu == in->parts->gpu && bytes > 0)
        in->parts->memory_bytes = fmin(in->parts->memory_bytes, bytes);
}

static void find_device(struct parts_reading *in, const json_t *meta, bool *several)
{
    const char *rate = pool_text(&in->r->pool, "%s_tflops", in->parts->dtype);

    FACT_EACH (fact_at(meta, "limits"), limit) {
        const char *figure = strrchr(fact_name(limit, "key"), '.');

        if (!figure || !fact_is(limit, "source", "nvml"))
            continue;
        in->parts->products_clocked |= !strcmp(figure + 1, rate);
        in->parts->memory_clocked |= !strcmp(figure + 1, "memory_gbytes_per_s");
    }
    FACT_EACH (fact_at(meta, "machine.gpus.devices"), gpu) {
        const char *name = json_string_value(json_object_get(gpu, "name"));

        *several |= !name || (in->parts->device && strcmp(name, in->parts->device) != 0);
        in->parts->device = name;
        take_memory(in, true, gpu, "memory_bytes");
    }
    take_memory(in, false, meta, "machine.memory.total_bytes");
}

/* Of one shape the fastest way. */
static void add_product(struct parts_reading *in, const struct report_bench *b,
                        const struct report_case *c, const struct report_point *p)
{
    struct parts *parts = in->parts;
    struct part_product *at = parts->products,
                        found = {number_of(b, c, "m"), number_of(b, c, "n"), number_of(b, c, "k"),
                                 base_of(c, p->value), limit_of(c, p),       NAN};

    if (case_is_gpu(b, c) != parts->gpu || strcmp(report_param(b, c, "dtype"), parts->dtype) != 0 ||
        !(found.m * found.n * found.k > 0))
        return;
    while (at < parts->products + parts->n_products &&
           !(at->m == found.m && at->n == found.n && at->k == found.k))
        at++;
    if (at == parts->products + parts->n_products)
        parts->n_products++;
    else if (at->flops >= found.flops)
        return;
    /* The widest scatter of its launches. */
    const struct report_rows *rows = &b->rows[p - c->points];

    for (size_t i = 0; i < p->n_rows; i++) {
        double low = row_number(rows, p->rows[i], FIELD_P05);
        double high = row_number(rows, p->rows[i], FIELD_P95);

        if (low > 0 && high >= low)
            found.jitter = fmax(found.jitter, log(high / low) / P05_TO_P95);
    }
    *at = found;
}

/* The products of p->dtype. */
static void list_products(struct parts_reading *in)
{
    struct parts *p = in->parts;

    p->products = pool_alloc(&in->r->pool, in->most, sizeof(*p->products));
    p->n_products = 0;
    each_case(in, JOB_PRODUCT, add_product);
}

/* Of the data types that a network is trained in, the fastest; one of which too few shapes were
 * measured only where that holds of all. NULL: none was measured. */
static void choose_dtype(struct parts_reading *in)
{
    static const char *const trained[] = {"f32", "tf32", "bf16", "f16"};
    struct parts *p = in->parts;
    const char *best = NULL;
    double most = 0;
    bool best_known = false;

    for (size_t i = 0; i < sizeof(trained) / sizeof(*trained); i++) {
        double rate = 0;

        p->dtype = trained[i];
        list_products(in);
        for (size_t k = 0; k < p->n_products; k++)
            rate = fmax(rate, p->products[k].flops);
        bool known = p->n_products >= PARTS_SHAPES;
        if (known > best_known || (known == best_known && rate > most)) {
            best = trained[i];
            most = rate;
            best_known = known;
        }
    }
    p->dtype = best;
}

static void read_products(struct parts_reading *in, const char *dtype)
{
    struct parts *p = in->parts;
    bool several = false;

    each_case(in, JOB_PRODUCT, look_for_gpu);
    if (dtype)
        p->dtype = dtype;
    else
        choose_dtype(in);
    if (!p->dtype)
        return;
    list_products(in);
    for (size_t run = 0; run < in->r->n_runs; run++)
        find_device(in, in->r->runs[run].meta, &several);
    if (several)
        p->device = NULL;
    parts_product_spread(p);
}

static double element_bytes(const char *dtype)
{
    return word_in("f64 i64", dtype)        ? 8
           : word_in("bf16 f16", dtype)     ? 2
           : word_in("i8 e4m3 e5m2", dtype) ? 1
                                            : 4;
}

double parts_element_bytes(const struct parts *p)
{
    return p->dtype ? element_bytes(p->dtype) : 4;
}

/* ---- memory, calls, overlap, steps ---- */

static double size_of(const struct report_bench *b, const struct report_case *c)
{
    double set = number_of(b, c, "working_set");

    return set > 0 ? set : number_of(b, c, "size");
}

/* What lies in memory is far larger than what lies in caches: sizes of half the largest and more
 * count, and of these the fastest. */
static void look_for_size(struct parts_reading *in, const struct report_bench *b,
                          const struct report_case *c, const struct report_point *p)
{
    (void)p;
    if (case_is_gpu(b, c) == in->parts->gpu)
        in->stream_size = fmax(in->stream_size, size_of(b, c));
}

static void add_stream(struct parts_reading *in, const struct report_bench *b,
                       const struct report_case *c, const struct report_point *p)
{
    struct parts *parts = in->parts;
    double rate = base_of(c, p->value);

    if (case_is_gpu(b, c) != parts->gpu || size_of(b, c) < in->stream_size / 2 ||
        parts->stream >= rate)
        return;
    parts->stream = rate;
    parts->stream_limit =
        parts->gpu
            ? limit_of(c, p)
            : 1e9 * fact_number(fact_one_of(fact_at(in->r->runs[p - c->points].meta, "limits"),
                                            "key", "dram.gbytes_per_s"),
                                "value", NAN);
    parts->stream_low = isnan(p->low) ? rate : base_of(c, p->low);
    parts->stream_high = isnan(p->high) ? rate : base_of(c, p->high);
}

static void add_call(struct parts_reading *in, const struct report_bench *b,
                     const struct report_case *c, const struct report_point *p)
{
    struct parts *parts = in->parts;
    double s = base_of(c, p->value);

    if (case_is_gpu(b, c) != parts->gpu || parts->call_s <= s)
        return;
    parts->call_s = s;
    parts->call_low_s = isnan(p->low) ? s : base_of(c, p->low);
    parts->call_high_s = isnan(p->high) ? s : base_of(c, p->high);
}

static bool is_same_way(const struct parts_reading *in, const struct report_bench *b,
                        const struct report_case *c)
{
    static const char *const names[] = {"backend", "transport"};

    for (size_t i = 0; in->sum && i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(report_param(b, c, names[i]),
                   report_param(in->sum->bench, in->sum->first, names[i])) != 0)
            return false;
    return !in->over || described_matches(b, c, in->over);
}

/* Of the way that sums go, the largest vector's, where it matters, and of these the most ranks'. */
static void add_overlap(struct parts_reading *in, const struct report_bench *b,
                        const struct report_case *c, const struct report_point *p)
{
    struct parts *parts = in->parts;
    double size = number_of(b, c, "size"), ranks = number_of(b, c, "ranks");
    bool first = isnan(parts->hidden);

    if (!is_same_way(in, b, c) || !(isnan(p->high) || p->low > 0 || p->high < 100))
        return;
    if (!first &&
        (size < in->overlap_size || (size == in->overlap_size && ranks < in->overlap_ranks)))
        return;
    in->overlap_size = size;
    in->overlap_ranks = ranks;
    parts->hidden = p->value / 100;
    parts->hidden_low = isnan(p->high) ? parts->hidden : p->low / 100;
    parts->hidden_high = isnan(p->high) ? parts->hidden : p->high / 100;
}

static double number_or(const struct report_bench *b, const struct report_case *c, const char *name,
                        double otherwise)
{
    double value = number_of(b, c, name);

    return value > 0 ? value : otherwise;
}

static struct part_step step_of(const struct report_bench *b, const struct report_case *c,
                                const struct report_point *p)
{
    double ranks = number_of(b, c, "ranks"), prefetch = number_of(b, c, "prefetch");
    const char *update = report_param(b, c, "update");
    bool none = !*update || !strcmp(update, "none");

    return (struct part_step){.model = report_param(b, c, "model"),
                              .s = base_of(c, p->value),
                              .low_s = base_of(c, p->low),
                              .high_s = base_of(c, p->high),
                              .ranks = ranks,
                              .nodes = number_or(b, c, "nodes", 1),
                              .batch = number_of(b, c, "batch"),
                              .tp = number_or(b, c, "tp", 1),
                              .pp = number_or(b, c, "pp", 1),
                              .ep = number_or(b, c, "ep", 1),
                              .micro = number_or(b, c, "micro_batches", 1),
                              .zero = number_or(b, c, "zero", 0),
                              .prefetch = prefetch >= 0 ? prefetch : 1,
                              .bucket = number_or(b, c, "bucket", 0),
                              .element_bytes = element_bytes(report_param(b, c, "dtype")),
                              .sequence = (uint64_t)number_or(b, c, "seq", 0),
                              .other_order = !strcmp(report_param(b, c, "schedule"), "gpipe") &&
                                             number_or(b, c, "pp", 1) > 1,
                              .overlap = strcmp(report_param(b, c, "overlap"), "none") != 0,
                              .compute_s = number_of(b, c, "compute_ms") * 1e-3,
                              .update = update,
                              .update_s = none ? 0 : number_of(b, c, "update_ms") * 1e-3,
                              .simulated = !strcmp(p->origin, "simulated")};
}

static void add_step(struct parts_reading *in, const struct report_bench *b,
                     const struct report_case *c, const struct report_point *p)
{
    struct parts *parts = in->parts;
    struct part_step step = step_of(b, c, p);

    if (!(step.ranks > 0) || !(step.batch > 0))
        return;
    step.other_way = !is_same_way(in, b, c);
    parts->steps[parts->n_steps++] = step;
}

/* ---- operations between ranks ---- */

/* Two series of different runs are points of one where all says the same but the run. */
static bool is_same(const struct scaling_series *x, const struct scaling_series *y)
{
    if (x->bench != y->bench)
        return false;
    for (size_t i = 0; i < x->bench->n_params; i++) {
        const char *name = x->bench->params[i];

        if (!x->bench->follows[i] && strcmp(name, "ranks") != 0 && strcmp(name, "size") != 0 &&
            strcmp(x->first->params[i], y->first->params[i]) != 0)
            return false;
    }
    return true;
}

static bool has_value(const struct scaling_series *s, const struct scaling_cell *cell)
{
    return cell->time && is_usable(&cell->time->points[s->run]) &&
           cell->time->points[s->run].two == TWO_NOT;
}

static double nodes_of(const struct scaling_series *s, const struct scaling_cell *cell)
{
    double nodes = number_of(s->bench, cell->time, "nodes");

    return nodes > 0 ? nodes : 1;
}

/* What a node's links carry. Bus bandwidth counts the bytes that ranks of one node exchange, too:
 * all but 1 / ranks of them leave a rank, and all but 1 / nodes a node. */
static double node_limit(const struct scaling_series *s, const struct scaling_cell *cell,
                         double ranks)
{
    const struct report_point *p = &cell->bus->points[s->run];
    double nodes = nodes_of(s, cell), limit = base_of(cell->bus, p->limit);

    return strcmp(p->limit_scope, LIMIT_SCOPE_NODE) != 0 || nodes < 2
               ? limit
               : limit * (1 - 1 / nodes) / (1 - 1 / ranks);
}

/* The most nodes, from `least` to `most`, and of these the most ranks of each, or `want` of each
 * where it is above 0. */
static void find_place(const struct scaling_series *s, double least, double most, double want,
                       struct part_law *law)
{
    for (size_t i = 0; i < s->n_sizes * s->n_ranks; i++) {
        const struct scaling_cell *cell = &s->cells[i];
        double ranks = s->ranks[i % s->n_ranks];

        if (!has_value(s, cell) || nodes_of(s, cell) < least || nodes_of(s, cell) > most)
            continue;
        double nodes = nodes_of(s, cell);
        if (want > 0 && ranks / nodes != want)
            continue;
        if (nodes > law->nodes || (nodes == law->nodes && ranks > law->per_node * nodes)) {
            law->nodes = nodes;
            law->per_node = ranks / nodes;
        }
    }
}

/* Adds the points of a series that are on `least` to `most` nodes. Ranks of a node share its link:
 * between nodes only points of the place's ranks a node are of one law. */
static void add_points(const struct scaling_series *s, double least, double most,
                       struct part_law *law)
{
    struct fit_point *points = (struct fit_point *)law->law.points;

    for (size_t i = 0; i < s->n_sizes * s->n_ranks; i++) {
        const struct scaling_cell *cell = &s->cells[i];
        double ranks = s->ranks[i % s->n_ranks];

        if (!has_value(s, cell) || nodes_of(s, cell) < least || nodes_of(s, cell) > most ||
            (law->nodes > 1 && ranks / nodes_of(s, cell) != law->per_node))
            continue;
        points[law->law.n++] = (struct fit_point){ranks, scaling_bytes(s->bench, cell->time),
                                                  scaling_time_us(cell->time, s->run)};
        if (cell->bus && cell->bus->points[s->run].limit > 0)
            law->limit = node_limit(s, cell, ranks);
    }
}

static double time_at_most(const struct part_law *law)
{
    const struct fit_point *best = NULL;

    for (size_t i = 0; i < law->law.n; i++) {
        const struct fit_point *p = &law->law.points[i];

        if (!best || p->ranks > best->ranks || (p->ranks == best->ranks && p->bytes > best->bytes))
            best = p;
    }
    return best ? best->time_us / best->bytes : HUGE_VAL;
}

static double ranks_of(const struct part_law *law)
{
    double most = 0;

    for (size_t i = 0; i < law->law.n; i++)
        most = fmax(most, law->law.points[i].ranks);
    return most;
}

/* More nodes win, then more ranks, then the faster. */
static bool is_better(const struct part_law *x, const struct part_law *y)
{
    if (!y->law.n || x->nodes != y->nodes)
        return !y->law.n || x->nodes > y->nodes;
    if (ranks_of(x) != ranks_of(y))
        return ranks_of(x) > ranks_of(y);
    return time_at_most(x) < time_at_most(y);
}

/* Of all series that differ in their run alone. */
static struct part_law make_law(struct parts_reading *in, const struct scaling_series *s,
                                double least, double most)
{
    struct part_law own = {
        .law = {.terms = s->terms}, .limit = NAN, .link_gbits = NAN, .links = NAN};
    struct part_law *law = &own;
    size_t n = 1;

    for (size_t i = 0; i < in->scalings.n; i++)
        n += in->scalings.all[i].n_sizes * in->scalings.all[i].n_ranks;
    law->law.points = pool_alloc(&in->r->pool, n, sizeof(*law->law.points));
    for (size_t i = 0; least > 1 && i < in->scalings.n; i++)
        if (is_same(s, &in->scalings.all[i]))
            find_place(&in->scalings.all[i], least, most, in->per_node, law);
    bool none = !(law->nodes > 0);
    for (size_t i = 0; none && i < in->scalings.n; i++)
        if (is_same(s, &in->scalings.all[i]))
            find_place(&in->scalings.all[i], least, most, 0, law);
    for (size_t i = 0; i < in->scalings.n; i++)
        if (is_same(s, &in->scalings.all[i]))
            add_points(&in->scalings.all[i], least, most, law);
    const char *backend = report_param(s->bench, s->first, "backend");
    const char *transport = report_param(s->bench, s->first, "transport");
    law->label = pool_text(&in->r->pool, "%s, up to %.0f ranks on %s",
                           pool_join(&in->r->pool, backend, " over ", transport), ranks_of(law),
                           text_count((size_t)law->nodes, "node").text);
    return own;
}

/* Inside one node the way of several nodes need not be the fastest. */
static void read_law(struct parts_reading *in, const struct scaling_series *s,
                     enum bench_part_of kind)
{
    /* Where ranks are on several nodes, those of one node have no link between nodes. */
    double most = 1;

    for (size_t k = 0; k < in->scalings.n; k++) {
        const struct scaling_series *of = &in->scalings.all[k];

        for (size_t i = 0; is_same(s, of) && i < of->n_sizes * of->n_ranks; i++)
            if (has_value(of, &of->cells[i]))
                most = fmax(most, nodes_of(of, &of->cells[i]));
    }
    struct part_law law = make_law(in, s, most > 1 ? 2 : 1, HUGE_VAL);
    struct part_law inside = make_law(in, s, 1, 1);

    if (inside.law.n && is_better(&inside, &in->parts->inside[kind]))
        in->parts->inside[kind] = inside;
    if (!law.law.n || !is_better(&law, &in->parts->laws[kind]))
        return;
    parts_find_link(in->r, &law);
    in->parts->laws[kind] = law;
    if (kind == JOB_SUM)
        in->sum = s;
}

/* ---- all ---- */

void parts_read(struct report *r, const struct bench_list *benches, const char *dtype,
                const char *over, double per_node, struct parts *parts)
{
    struct parts_reading in = {
        .r = r, .benches = benches, .over = over, .per_node = per_node, .parts = parts};

    *parts = (struct parts){.product_spread = NAN,
                            .jitter = NAN,
                            .stream = NAN,
                            .stream_limit = NAN,
                            .call_s = NAN,
                            .call_low_s = NAN,
                            .call_high_s = NAN,
                            .hidden = NAN,
                            .host = {NAN, NAN, NAN, false},
                            .host_waits = {NAN, NAN, NAN, false},
                            .memory_bytes = NAN};
    parts->machine = "";
    for (size_t i = 0; i < r->n_runs; i++)
        parts->machine = pool_join(&r->pool, parts->machine, ", ", r->names[i]);
    for (size_t i = 0; i < r->n_benches; i++)
        in.most += r->benches[i].n_cases * r->n_runs;
    parts->steps = pool_alloc(&r->pool, in.most, sizeof(*parts->steps));
    read_products(&in, dtype);
    scalings_make(in.r, 1, &in.scalings);
    for (size_t i = 0; i < in.scalings.n; i++) {
        const struct scaling_series *s = &in.scalings.all[i];
        const struct bench_part *part = part_of(&in, s->bench, s->first);

        if (part && part->of != JOB_NONE &&
            (!in.over || described_matches(s->bench, s->first, in.over)))
            read_law(&in, s, part->of);
    }
    each_case(&in, JOB_STREAM, look_for_size);
    each_case(&in, JOB_STREAM, add_stream);
    each_case(&in, JOB_CALL, add_call);
    each_case(&in, JOB_OVERLAP, add_overlap);
    each_case(&in, JOB_STEP, add_step);
    for (int what = 0; what < JOB_PARTS; what++)
        in.parts->measure[what] = "";
    for (size_t i = 0; i < in.benches->n; i++)
        for (const struct bench_part *p = in.benches->benches[i].rows.parts; p->where; p++)
            if (!*in.parts->measure[p->of])
                in.parts->measure[p->of] = p->measure;
}
