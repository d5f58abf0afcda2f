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

struct parts_reading {
    struct report *r;
    const struct bench_list *benches;
    const char *over;
    double per_node;
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

static bool is_usable(const struct report_point *p)
{
    return p->n_values && p->value > 0 && strcmp(p->status, "wrong") != 0;
}

/* Two works that slow each other down hide nothing, or less. */
static bool is_usable_as(enum bench_part_of what, const struct report_point *p)
{
    return what == JOB_OVERLAP
               ? p->n_values && isfinite(p->value) && strcmp(p->status, "wrong") != 0
               : is_usable(p);
}

/* ---- every case of one kind of part ---- */

typedef void each_fn(struct parts_reading *in, const struct report_bench *b,
                     const struct report_case *c, const struct report_point *p,
                     const struct bench_part *part);

static void each_case(struct parts_reading *in, enum bench_part_of what, each_fn *fn)
{
    for (size_t i = 0; i < in->r->n_benches; i++) {
        const struct report_bench *b = &in->r->benches[i];

        for (size_t k = 0; k < b->n_cases; k++) {
            const struct report_case *c = &b->cases[k];
            const struct bench_part *part = part_of(in, b, c);

            for (size_t run = 0; part && part->of == what && run < in->r->n_runs; run++)
                if (is_usable_as(what, &c->points[run]))
                    fn(in, b, c, &c->points[run], part);
        }
    }
}

/* ---- products ---- */

static void look_for_gpu(struct parts_reading *in, const struct report_bench *b,
                         const struct report_case *c, const struct report_point *p,
                         const struct bench_part *part)
{
    (void)p;
    (void)part;
    in->parts->gpu |= case_is_gpu(b, c);
}

static void count_product(struct parts_reading *in, const struct report_bench *b,
                          const struct report_case *c, const struct report_point *p,
                          const struct bench_part *part)
{
    (void)p;
    (void)part;
    in->parts->n_products += case_is_gpu(b, c) == in->parts->gpu &&
                             !strcmp(report_param(b, c, "dtype"), in->parts->dtype);
}

#define P05_TO_P95 3.29 /* in deviations of a normal distribution */

/* A limit that was no more than the same work again is none. */
static double limit_of(const struct report_case *c, const struct report_point *p)
{
    return p->reference ? NAN : base_of(c, p->limit);
}

/* Of GPUs or of hosts, as products are. */
static void take_memory(struct parts_reading *in, bool gpu, const json_t *device, const char *name)
{
    double bytes = json_number_value(json_object_get(device, name));

    if (gpu == in->parts->gpu && bytes > 0)
        in->parts->memory_bytes = fmin(in->parts->memory_bytes, bytes);
}

static void find_device(struct parts_reading *in, const json_t *meta, bool *several)
{
    const json_t *machine = json_object_get(meta, "machine"), *limit, *gpu;
    const char *rate = pool_text(&in->r->pool, "%s_tflops", in->parts->dtype);
    size_t i;

    json_array_foreach (json_object_get(meta, "limits"), i, limit) {
        const char *key = json_string_value(json_object_get(limit, "key"));
        const char *source = json_string_value(json_object_get(limit, "source"));
        const char *figure = key ? strrchr(key, '.') : NULL;

        if (!figure || !source || strcmp(source, "nvml") != 0)
            continue;
        in->parts->products_clocked |= !strcmp(figure + 1, rate);
        in->parts->memory_clocked |= !strcmp(figure + 1, "memory_gbytes_per_s");
    }
    json_array_foreach (json_object_get(json_object_get(machine, "gpus"), "devices"), i, gpu) {
        const char *name = json_string_value(json_object_get(gpu, "name"));

        *several |= !name || (in->parts->device && strcmp(name, in->parts->device) != 0);
        in->parts->device = name;
        take_memory(in, true, gpu, "memory_bytes");
    }
    take_memory(in, false, json_object_get(machine, "memory"), "total_bytes");
}

/* Of one shape the fastest way. */
static void add_product(struct parts_reading *in, const struct report_bench *b,
                        const struct report_case *c, const struct report_point *p,
                        const struct bench_part *part)
{
    struct parts *parts = in->parts;
    struct part_product *at = parts->products, found = {number_of(b, c, "m"),
                                                        number_of(b, c, "n"),
                                                        number_of(b, c, "k"),
                                                        base_of(c, p->value),
                                                        limit_of(c, p),
                                                        NAN,
                                                        NAN,
                                                        NAN};

    (void)part;
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
    /* Of the launches of a case the widest. */
    size_t run = (size_t)(p - c->points);
    double most = NAN;

    for (size_t i = 0; i < p->n_rows; i++) {
        double low = row_number(&b->rows[run], p->rows[i], FIELD_P05);
        double high = row_number(&b->rows[run], p->rows[i], FIELD_P95);

        if (low > 0 && high >= low)
            most = fmax(most, log(high / low) / P05_TO_P95);
    }
    found.jitter = most;
    /* Of its launches the mean, and the time of the shortest. */
    const struct report_rows *rows = &b->rows[p - c->points];
    double sum = 0, n = 0;

    for (size_t i = 0; i < p->n_rows; i++) {
        double watts =
            row_number(rows, p->rows[i], parts->gpu ? FIELD_GPU_MEAN_WATTS : FIELD_CPU_WATTS);

        if (!(watts > 0))
            continue;
        sum += watts;
        n++;
        found.watts_s =
            fmin(found.watts_s,
                 row_number(rows, p->rows[i], parts->gpu ? FIELD_GPU_ENERGY_S : FIELD_ELAPSED));
    }
    found.watts = n > 0 ? sum / n : NAN;
    *at = found;
}

/* The products of p->dtype. */
static void list_products(struct parts_reading *in)
{
    struct parts *p = in->parts;

    p->n_products = 0;
    each_case(in, JOB_PRODUCT, count_product);
    p->products = pool_alloc(&in->r->pool, p->n_products, sizeof(*p->products));
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
    p->power = parts_power(p);
}

double parts_element_bytes(const struct parts *p)
{
    return p->dtype && word_in("bf16 f16", p->dtype) ? 2 : 4;
}

/* ---- memory, calls, overlap, steps ---- */

struct best {
    double size, value;
};

static double size_of(const struct report_bench *b, const struct report_case *c)
{
    double set = number_of(b, c, "working_set");

    return set > 0 ? set : number_of(b, c, "size");
}

/* What lies in memory is far larger than what lies in caches: sizes of half the largest and more
 * count, and of these the fastest. */
static void look_for_size(struct parts_reading *in, const struct report_bench *b,
                          const struct report_case *c, const struct report_point *p,
                          const struct bench_part *part)
{
    (void)p;
    (void)part;
    if (case_is_gpu(b, c) == in->parts->gpu)
        in->stream_size = fmax(in->stream_size, size_of(b, c));
}

/* The rate of all channels of the host's memory. The limit of a row is less where the row counts
 * fewer bytes than move. */
static double channels_of(const json_t *meta)
{
    const json_t *limit;
    size_t i;

    json_array_foreach (json_object_get(meta, "limits"), i, limit) {
        const char *key = json_string_value(json_object_get(limit, "key"));

        if (key && !strcmp(key, "dram.gbytes_per_s"))
            return 1e9 * json_number_value(json_object_get(limit, "value"));
    }
    return NAN;
}

static void add_stream(struct parts_reading *in, const struct report_bench *b,
                       const struct report_case *c, const struct report_point *p,
                       const struct bench_part *part)
{
    struct parts *parts = in->parts;
    double rate = base_of(c, p->value);

    (void)part;
    if (case_is_gpu(b, c) != parts->gpu || size_of(b, c) < in->stream_size / 2 ||
        parts->stream >= rate)
        return;
    parts->stream = rate;
    parts->stream_limit =
        parts->gpu ? limit_of(c, p) : channels_of(in->r->runs[p - c->points].meta);
    parts->stream_low = isnan(p->low) ? rate : base_of(c, p->low);
    parts->stream_high = isnan(p->high) ? rate : base_of(c, p->high);
}

static void add_call(struct parts_reading *in, const struct report_bench *b,
                     const struct report_case *c, const struct report_point *p,
                     const struct bench_part *part)
{
    struct parts *parts = in->parts;
    double s = base_of(c, p->value);

    (void)part;
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
                        const struct report_case *c, const struct report_point *p,
                        const struct bench_part *part)
{
    struct parts *parts = in->parts;
    double size = number_of(b, c, "size"), ranks = number_of(b, c, "ranks");
    bool first = isnan(parts->hidden);

    (void)part;
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

static double element_bytes(const char *dtype)
{
    return word_in("f64 i64", dtype)        ? 8
           : word_in("bf16 f16", dtype)     ? 2
           : word_in("i8 e4m3 e5m2", dtype) ? 1
                                            : 4;
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
                              .servers = number_or(b, c, "ps", 0),
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
                     const struct report_case *c, const struct report_point *p,
                     const struct bench_part *part)
{
    struct parts *parts = in->parts;
    struct part_step step = step_of(b, c, p);

    (void)part;
    if (!(step.ranks > 0) || !(step.batch > 0))
        return;
    step.other_way = !is_same_way(in, b, c);
    struct part_step *longer = pool_alloc(&in->r->pool, parts->n_steps + 1, sizeof(*longer));
    if (parts->n_steps)
        memcpy(longer, parts->steps, parts->n_steps * sizeof(*longer));
    longer[parts->n_steps++] = step;
    parts->steps = longer;
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
    law->label = pool_text(&in->r->pool, "%s%s%s, up to %.0f ranks on %.0f node%s", backend,
                           *transport ? " over " : "", transport, ranks_of(law), law->nodes,
                           law->nodes == 1 ? "" : "s");
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
                            .power = {NAN, NAN, NAN},
                            .stream = NAN,
                            .stream_limit = NAN,
                            .call_s = NAN,
                            .call_low_s = NAN,
                            .call_high_s = NAN,
                            .hidden = NAN,
                            .host = {NAN, NAN, NAN, false},
                            .host_waits = {NAN, NAN, NAN, false},
                            .memory_bytes = NAN};
    parts->machine = r->names[0];
    for (size_t i = 1; i < r->n_runs; i++)
        parts->machine = pool_text(&r->pool, "%s, %s", parts->machine, r->names[i]);
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
