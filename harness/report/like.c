/* SPDX-License-Identifier: Apache-2.0 */
/* Is it normal for such hardware? A run beside the nearest reference: see reference.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report/described.h"
#include "harness/report/facts.h"
#include "harness/report/headline.h"
#include "harness/report/reference.h"
#include "harness/report/show.h"

#define NEAR_CORES 1.5  /* as many times the cores at most */
#define MARGIN     0.05 /* what differs by less is alike */
#define NAMED_MAX  3    /* components; the CSV of plumb compare --to has all cases */

/* ---- how near a machine is */

/* Vector units, the widest first: a processor that lacks one is another one for products. */
static const struct {
    const char *feature, *name;
} units[] = {{"amx_tile", "AMX"}, {"avx512f", "AVX-512"}, {"avx2", "AVX2"}, {"sve", "SVE"}};

static const char *unit_of(const json_t *meta)
{
    const json_t *features = fact_at(meta, "machine.cpu.features");

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (json_is_true(json_object_get(features, units[i].feature)))
            return units[i].name;
    return "";
}

static bool same_fact(const json_t *a, const json_t *b, const char *path)
{
    const json_t *x = fact_at(a, path);

    return x && !json_is_null(x) && json_equal(x, fact_at(b, path));
}

struct nearness {
    int cpu; /* 2: the same processor; 1: a similar one; 0: another one, and its cases say nothing */
    bool gpu; /* the first GPU of both is of one model */
};

static struct nearness nearness_of(const json_t *a, const json_t *b)
{
    const char *gpu = fact_name(json_array_get(fact_at(a, "machine.gpus.devices"), 0), "name");
    const char *its = fact_name(json_array_get(fact_at(b, "machine.gpus.devices"), 0), "name");
    double cores =
        fact_number(a, "machine.cpu.cores", NAN) / fact_number(b, "machine.cpu.cores", NAN);
    struct nearness near = {.gpu = *gpu && !strcmp(gpu, its)};

    if (!same_fact(a, b, "machine.host.architecture") || !same_fact(a, b, "machine.cpu.vendor") ||
        !(cores <= NEAR_CORES && cores >= 1 / NEAR_CORES))
        return near;
    if (same_fact(a, b, "machine.cpu.family") && same_fact(a, b, "machine.cpu.model_number"))
        near.cpu = 2;
    else
        near.cpu = !strcmp(unit_of(a), unit_of(b));
    return near;
}

/* "same processor, which shows AVX-512 there", "similar: AVX-512, 2 cores". */
static const char *nearness_text(struct pool *pool, struct nearness near, const json_t *run,
                                 const json_t *reference)
{
    const char *gpu = near.gpu ? "same GPU" : "", *unit = unit_of(reference);

    if (!near.cpu)
        return gpu;
    if (near.cpu == 2 && strcmp(unit, unit_of(run)) != 0)
        return show_joined(
            pool, pool_text(pool, "same processor, %s there", *unit ? unit : "no vector unit"),
            gpu);
    if (near.cpu == 2)
        return show_joined(pool, "same processor", gpu);
    return show_joined(pool,
                       pool_text(pool, "similar: %s%s%.0f cores", unit, *unit ? ", " : "",
                                 fact_number(reference, "machine.cpu.cores", 0)),
                       gpu);
}

/* ---- the cases of both */

/* How many times as fast the run is as the reference, in the cases of a component. */
struct component {
    const char *name;
    double low, high; /* of the cases' ratios */
    bool differs;     /* the interval of a case lies beyond the margin */
    bool doubtful;    /* a ratio lies beyond it, and the interval does not */
};

struct components {
    struct component *all;
    size_t n;
    const char *lacking; /* those in which the run has no value of a case of the reference; "" */
};

static struct component *component_of(struct components *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->all[i].name, name))
            return &c->all[i];
    c->all[c->n] = (struct component){.name = name, .low = INFINITY, .high = 0};
    return &c->all[c->n++];
}

/* Half of the interval of a point's logarithm; INFINITY where there is none. */
static double half_width(const struct report_point *p)
{
    double half = log(p->high / p->low) / 2;

    return half >= 0 ? half : INFINITY;
}

static void add_case(struct components *all, const char *pipe, const struct report_case *c)
{
    const struct report_point *ours = &c->points[1], *theirs = &c->points[0];
    double change = log(ours->value / theirs->value) * (c->more_is_better ? 1 : -1);
    double half = hypot(half_width(ours), half_width(theirs)), margin = -log(1 - MARGIN);
    struct component *part = component_of(all, pipe);
    bool beyond = fabs(change) > margin;

    part->low = fmin(part->low, exp(change));
    part->high = fmax(part->high, exp(change));
    part->differs |= beyond && fabs(change) - half > margin;
    part->doubtful |= beyond && !(fabs(change) - half > margin);
}

static bool pairs_up(const struct report *r, const struct report_bench *b,
                     const struct report_case *c, struct nearness near)
{
    const struct report_point *p = c->points;

    return (case_is_gpu(b, c) ? near.gpu : near.cpu > 0) && described_is_judged(r, b, c) &&
           p[0].n_values && p[1].n_values && point_is_measured(&p[0]) && point_is_measured(&p[1]) &&
           p[0].value > 0 && p[1].value > 0 && !strcmp(p[0].carrier_device, p[1].carrier_device);
}

/* Was it tried in the run, and has no value? */
static bool is_lacking(const struct report *r, const struct report_bench *b,
                       const struct report_case *c, struct nearness near)
{
    return (case_is_gpu(b, c) ? near.gpu : near.cpu > 0) && described_is_judged(r, b, c) &&
           c->points[0].n_values && c->points[1].n_rows && !c->points[1].n_values;
}

static const char *with_name(struct pool *pool, const char *list, const char *name)
{
    return show_lists(list, name) ? list : show_joined(pool, list, pool_text(pool, "%s", name));
}

/* Cases that agree in all parameters, also in those that are outcomes. */
static struct components compare_with(struct pool *pool, const char *reference, const char *run,
                                      struct nearness near)
{
    const char *paths[] = {reference, run};
    struct components all = {.lacking = ""};
    struct report r;
    char error[512];
    size_t most = 0;

    if (!report_load(&r, paths, 2, error, sizeof(error))) {
        for (size_t b = 0; b < r.n_benches; b++)
            most += r.benches[b].n_cases;
        all.all = pool_alloc(pool, most, sizeof(*all.all));
        for (size_t b = 0; b < r.n_benches; b++)
            for (size_t i = 0; i < r.benches[b].n_cases; i++) {
                const struct report_bench *bench = &r.benches[b];
                const struct report_case *c = &bench->cases[i];

                if (is_lacking(&r, bench, c, near))
                    all.lacking = with_name(pool, all.lacking, described_pipe(&r, bench, c));
                if (pairs_up(&r, bench, c, near))
                    add_case(&all, pool_text(pool, "%s", described_pipe(&r, bench, c)), c);
            }
    }
    report_release(&r);
    return all;
}

/* ---- in words */

static const char *range_text(struct pool *pool, double low, double high)
{
    const char *from = pool_text(pool, "%.2f", low), *to = pool_text(pool, "%.2f", high);

    return strcmp(from, to) ? pool_text(pool, "%s to %s", from, to) : from;
}

/* The slowest component first. */
static int by_low(const void *x, const void *y)
{
    const struct component *a = x, *b = y;

    return (a->low > b->low) - (a->low < b->low);
}

/* "Memory 0.70, Network 0.81 to 1.30 (inconclusive); all else 0.97 to 1.02". */
static const char *components_text(struct pool *pool, const struct components *all)
{
    struct show_list list = {.pool = pool, .max = NAMED_MAX};
    double low = INFINITY, high = 0;

    qsort(all->all, all->n, sizeof(*all->all), by_low);
    for (size_t i = 0; i < all->n; i++) {
        const struct component *c = &all->all[i];

        if (c->differs || c->doubtful) {
            show_list_add(&list,
                          pool_text(pool, "%s %s%s", c->name, range_text(pool, c->low, c->high),
                                    c->differs ? "" : " (inconclusive)"));
            continue;
        }
        low = fmin(low, c->low);
        high = fmax(high, c->high);
    }
    const char *text = show_list_text(&list);

    if (list.n < all->n)
        text = pool_text(pool, "%s%s %s", text, list.n ? "; all other pairs" : "all pairs",
                         range_text(pool, low, high));
    return *all->lacking ? pool_text(pool, "%s; not in this run: %s", text, all->lacking) : text;
}

static bool is_nearer(struct nearness a, struct nearness b)
{
    return a.gpu != b.gpu ? a.gpu : a.cpu > b.cpu;
}

void like_answer(struct report *r, size_t run, struct document *d)
{
    const char *path = r->runs[run].path;
    const struct reference *nearest = NULL;
    struct nearness near = {0};
    struct references all;
    char error[512];

    /* The list has the nearest by all facts first. */
    if (!references_load(&all, path, error, sizeof(error)))
        for (size_t i = 0; i < all.n; i++) {
            struct nearness one = nearness_of(all.all[i].meta, all.run);

            if (!reference_is_own(all.run, all.all[i].meta) && is_nearer(one, near)) {
                nearest = &all.all[i];
                near = one;
            }
        }
    struct components parts = nearest ? compare_with(&r->pool, nearest->path, path, near)
                                      : (struct components){.lacking = ""};
    if (parts.n)
        document_answer(d, "Compared", "", TONE_NONE,
                        pool_text(&r->pool, "like %s of %.10s (%s): %s", nearest->name,
                                  fact_name(nearest->meta, "started_utc"),
                                  nearness_text(&r->pool, near, all.run, nearest->meta),
                                  components_text(&r->pool, &parts)));
    references_release(&all);
}
