/* SPDX-License-Identifier: Apache-2.0 */
/* A forecast as a document: see forecast.h. */
#include <math.h>
#include <string.h>

#include "core/units.h"
#include "harness/forecast/forecast.h"
#include "harness/text.h"

struct showing {
    struct pool *pool;
    struct document *d;
    const struct forecast *f;
};

static const char *const bound_names[BOUNDS] = {"compute", "network", "parallel groups", "update"};
static const char *const source_names[SOURCES] = {
    [SOURCE_PRODUCT] = "the rate of matrix products",
    [SOURCE_DIVIDED] = "compute as it was given, of ranks that share the model",
    [SOURCE_STREAM] = "memory bandwidth",
    [SOURCE_CALL] = "the cost of a launch",
    [SOURCE_NETWORK] = ("sums at more ranks than were measured, and what the core of the network "
                        "carries (--core full)"),
    [SOURCE_PARALLEL] = "operations inside parallel groups",
    [SOURCE_OVERLAP] = "how much of a sum is hidden behind compute",
    [SOURCE_HOST] = "what a step takes beside its operations",
    [SOURCE_SLOWEST] = "the slowest of so many ranks",
    [SOURCE_SLOW_HOST] = "a slow host among those that were not measured",
    [SOURCE_SWAP_NETWORK] = "the network that was swapped in",
    [SOURCE_SWAP_PRODUCTS] = "the rate of products that was swapped in",
    [SOURCE_SWAP_MEMORY] = "the memory that was swapped in",
};

const char *forecast_bound_name(enum forecast_bound bound)
{
    return bound_names[bound];
}

/* Why there is no forecast: its word in the JSON, and the sentence, of the part that lacks; those that
 * have figures of their own are in why(). */
static const struct {
    const char *code, *text;
} refusals[LAW_REFUSALS] = {
    [LAW_GIVEN] = {"", ""},
    [LAW_NOTHING] = {"not measured", "%s: not measured"},
    [LAW_ONE] = {"one number of ranks", NULL},
    [LAW_FEW] = {"too few points", "%s: too few points; measure three sizes or more"},
    [LAW_SHAPE] = {"no law", "%s: the measured times follow no line; measure more sizes and "
                             "launches"},
    [LAW_POINT] = {"one time apart", NULL},
    [LAW_BREAK] = {"change of regime", NULL},
    [LAW_FAR] = {"too far", NULL},
    [LAW_BYTES] = {"too many bytes", "%s: a vector is far larger than all that were measured; "
                                     "measure larger sizes"},
    [LAW_NODE] = {"one node", NULL},
    [LAW_GROUPS] = {"groups in nodes", "--tp, --pp and --ep beside several ranks a node: several "
                                       "groups of one node share its memory or its link, which is "
                                       "not modelled"},
    [LAW_MICRO] = {"sharded micro-batches", "ZeRO 2 and 3 with several micro-batches in a "
                                            "pipeline: each scatters and gathers, which is not "
                                            "modelled"},
    [LAW_PLACED] = {"other ranks of a node", "%s: measured with other numbers of ranks on a node, "
                                             "or on one node alone, where ranks share no link "
                                             "between nodes"},
    [LAW_MESSAGES] = {"unknown messages", "%s: their sizes do not tell the time of messages, which "
                                          "another network leaves, from that of bytes; measure "
                                          "smaller sizes"},
    [LAW_MEMORY] = {"does not fit", NULL},
    [LAW_DIVIDED] = {"unequal groups", "--tp, --pp and --ep do not divide these ranks into equal "
                                       "groups"},
};

const char *forecast_refusal_name(enum law_refusal refusal)
{
    return refusals[refusal].code;
}

static const char *seconds(struct pool *pool, double s)
{
    static const struct {
        double below, times;
        const char *unit;
    } units[] = {{1e-3, 1e6, "us"}, {1, 1e3, "ms"}, {600, 1, "s"}, {HUGE_VAL, 1 / 60., "min"}};
    size_t i = 0;

    while (i + 1 < sizeof(units) / sizeof(*units) && s >= units[i].below)
        i++;
    return isnan(s)
               ? "unknown"
               : pool_text(pool, "%s %s", document_number(pool, s * units[i].times), units[i].unit);
}

static const char *command_of(const struct forecast *f, enum bench_part_of what)
{
    const char *command = f->parts->measure[what];

    return *command ? command : "no installed benchmark measures it";
}

static const char *part_name(enum bench_part_of what)
{
    static const char *const names[JOB_PARTS] = {
        [JOB_PRODUCT] = "the rate of matrix products",
        [JOB_STREAM] = "memory bandwidth",
        [JOB_CALL] = "the cost of a launch",
        [JOB_SUM] = "sums over ranks",
        [JOB_SCATTER] = "scattered sums over ranks",
        [JOB_GATHER] = "gathering over ranks",
        [JOB_EXCHANGE] = "the exchange of all ranks with all",
        [JOB_MESSAGE] = "messages between neighbours",
        [JOB_OVERLAP] = "how much of a sum is hidden behind compute",
        [JOB_STEP] = "a measured step",
    };

    return names[what];
}

/* The number of ranks nearest to what was measured from which this point is not too far. */
static double measure_at(const struct forecast_point *p)
{
    double ranks = log2(p->law.ranks);

    return exp2(p->law.ranks < p->law.most_ranks ? floor(ranks + LAW_DOUBLINGS + 1e-9)
                                                 : ceil(ranks - LAW_DOUBLINGS - 1e-9));
}

static double kept(const struct forecast_point *p)
{
    return 1e-9 * (p->time.memory.parameters + p->time.memory.gradients + p->time.memory.update);
}

/* On more ranks it may be less. */
static const char *memory_why(struct pool *pool, const struct forecast_point *first,
                              const struct forecast_point *last)
{
    const char *most = pool_text(pool, "%.3g", kept(first)),
               *least = pool_text(pool, "%.3g", kept(last));

    return pool_text(pool,
                     "parameters, gradients and optimizer take %s GB of a rank, which its "
                     "device does not have",
                     strcmp(least, most) != 0 ? pool_text(pool, "%s to %s", least, most) : least);
}

/* Why there is no forecast at this point: a sentence. "" where there is one. */
static const char *why(struct pool *pool, const struct forecast_point *p)
{
    const struct law_value *v = &p->law;
    const char *what = part_name(p->refused_of);
    char size[32];

    switch (p->refused) {
    case LAW_ONE:
        return pool_text(pool, "%s: measured at %.0f ranks alone; measure at two numbers or more",
                         what, v->most_ranks);
    case LAW_POINT:
        units_format_bytes((uint64_t)v->at_bytes, size, sizeof(size));
        return pool_text(pool,
                         "%s: %s on %.0f ranks took %.2g times as long as all other times say; "
                         "measure that again, in more launches",
                         what, size, v->at_ranks, v->at_ratio);
    case LAW_BREAK:
        return pool_text(pool, "%s: another regime at %.0f ranks; measure beyond it", what,
                         v->at_ranks);
    case LAW_FAR:
        return v->ranks < v->most_ranks
                   ? pool_text(pool,
                               "%s: more than three doublings below the ranks that were measured",
                               what)
                   : pool_text(pool,
                               "more than three doublings beyond the %.0f ranks that were measured",
                               v->most_ranks);
    case LAW_NODE:
        return pool_text(pool, "%s: %s", what,
                         p->nodes > 1
                             ? "measured inside one node alone, which shows no link between nodes"
                             : "not measured inside one node");
    case LAW_MEMORY:
        return memory_why(pool, p, p);
    default:
        return pool_text(pool, refusals[p->refused].text, what);
    }
}

const char *forecast_why(struct pool *pool, const struct forecast *f,
                         const struct forecast_point *p)
{
    if (p->refused && p->refused != LAW_NOTHING)
        return why(pool, p);
    for (int what = 1; what < JOB_PARTS; what++)
        if (p->time.lacks & 1u << what)
            return pool_text(pool, "%s: not measured (%s)", part_name((enum bench_part_of)what),
                             command_of(f, (enum bench_part_of)what));
    return "";
}

/* ---- the answer ---- */

/* Adds "ZeRO 1" to a list of what is not the default. */
static const char *add_way(struct pool *pool, const char *ways, const char *format, double n,
                           double default_n)
{
    return n > default_n ? pool_join(pool, ways, ", ", pool_text(pool, format, n)) : ways;
}

const char *forecast_ways(struct pool *pool, const char *ways, double zero, double tp, double pp,
                          double micro, double ep)
{
    ways = add_way(pool, ways, "ZeRO %.0f", zero, 0);
    ways = add_way(pool, ways, "tensor parallel %.0f", tp, 1);
    ways = add_way(pool, ways, "%.0f stages", pp, 1);
    ways = add_way(pool, ways, "%.0f micro-batches", micro, 1);
    return add_way(pool, ways, "experts over %.0f", ep, 1);
}

static void answer_trust(const struct showing *s, const struct forecast_point *p)
{
    const struct law_value *v = &p->law;
    const char *text;

    if (p->law_of != JOB_NONE && !isnan(v->held_out))
        text = pool_text(s->pool,
                         "%s at %.0f ranks, predicted from up to %.0f: %s times the measured time; "
                         "%s",
                         p->law_of == JOB_SUM ? "sums" : part_name(p->law_of), v->most_ranks,
                         v->held_from, document_number(s->pool, v->held_out),
                         v->doublings > 0
                             ? pool_text(s->pool, "the answer is %.1f doublings %s", v->doublings,
                                         v->ranks < v->most_ranks ? "below the fewest" : "beyond")
                             : "the answer is not beyond");
    else
        text = "nothing was held out: no number of ranks could be predicted from fewer";
    document_answer(s->d, "Held out", "", TONE_NONE, text);
    document_answer_more(
        s->d, pool_text(s->pool, "most of the interval is from %s", source_names[p->widest]), "");
    if (p->widest == SOURCE_NETWORK && v->doublings > 0)
        document_answer_more(s->d, "narrower with more ranks, or with more launches",
                             pool_text(s->pool, "%s --repeat 5", command_of(s->f, JOB_SUM)));
}

static const char *bytes_text(struct pool *pool, double bytes)
{
    return pool_text(pool, "%s GB", document_number(pool, bytes * 1e-9));
}

/* Where activations alone make it too much, they can be computed again. */
static void answer_memory(const struct showing *s, const struct forecast_point *p)
{
    const struct model_memory *m = &p->time.memory;
    double all = model_memory_all(m), of = forecast_memory(s->f);
    bool tight = of > 0 && all > of && all - m->activations <= of;
    const char *text = pool_text(s->pool, "%s a rank at least", bytes_text(s->pool, all));

    if (!(all > 0))
        return;
    if (of > 0 && isfinite(of))
        text = pool_text(s->pool, "%s, of %s", text, bytes_text(s->pool, of));
    document_answer(s->d, "Memory", "", of > 0 && all > of ? TONE_LOW : TONE_NONE, text);
    document_answer_more(
        s->d,
        pool_text(s->pool, "parameters %s, gradients %s, optimizer %s, activations %s",
                  bytes_text(s->pool, m->parameters), bytes_text(s->pool, m->gradients),
                  bytes_text(s->pool, m->update), bytes_text(s->pool, m->activations)),
        "");
    if (tight)
        document_answer_more(s->d,
                             "it fits only if activations are computed again, which takes time "
                             "that is not in the forecast",
                             "--micro, a smaller --batch");
    else if (of > 0 && all > of && p->refused != LAW_MEMORY)
        document_answer_more(s->d, "it does not fit, even without activations: divide the model",
                             "--zero 3, --tp, --pp");
}

/* ---- points that have no forecast for the same reason */

static bool is_refused(const struct forecast_point *p)
{
    return p->refused && p->refused != LAW_NOTHING;
}

static bool is_same_reason(struct pool *pool, const struct forecast_point *x,
                           const struct forecast_point *y)
{
    if (forecast_is_given(x) || forecast_is_given(y) || x->refused != y->refused)
        return false;
    return x->refused == LAW_MEMORY || !strcmp(why(pool, x), why(pool, y));
}

/* The last of the points from `first` on, one after another, that have its reason. */
static size_t last_of(const struct showing *s, size_t first)
{
    const struct forecast_point *points = s->f->points;
    size_t last = first;

    while (last + 1 < s->f->n && is_same_reason(s->pool, &points[first], &points[last + 1]))
        last++;
    return last;
}

/* "128 to 1024": so many numbers. */
static const char *span_text(struct pool *pool, double from, double to, size_t n)
{
    return n == 1   ? pool_text(pool, "%.0f", from)
           : n == 2 ? pool_text(pool, "%.0f and %.0f", from, to)
                    : pool_text(pool, "%.0f to %.0f", from, to);
}

/* Several points with one reason, in the order of their nodes. */
struct refused {
    const struct forecast_point *first, *last;
    const char *nodes; /* "1, 3, 128 to 1024 nodes" */
    const char *why;
};

/* False: an earlier point has the same reason. */
static bool collect(const struct showing *s, size_t first, struct refused *out)
{
    const struct forecast_point *points = s->f->points;
    size_t last;

    for (size_t i = 0; i < first; i++)
        if (is_same_reason(s->pool, &points[i], &points[first]))
            return false;
    *out = (struct refused){.first = &points[first], .nodes = ""};
    for (size_t i = first; i < s->f->n; i = last + 1) {
        last = last_of(s, i);
        if (!is_same_reason(s->pool, &points[i], &points[first]))
            continue;
        out->last = &points[last];
        out->nodes =
            pool_join(s->pool, out->nodes, ", ",
                      span_text(s->pool, points[i].nodes, points[last].nodes, last - i + 1));
    }
    out->nodes = pool_text(s->pool, "%s node%s", out->nodes,
                           out->first == out->last && out->first->nodes == 1 ? "" : "s");
    out->why = out->first->refused == LAW_MEMORY ? memory_why(s->pool, out->first, out->last)
                                                 : why(s->pool, out->first);
    return true;
}

static void answer_group(const struct showing *s, const struct refused *r)
{
    const struct forecast *f = s->f;
    const struct forecast_point *p = r->first;

    document_answer(s->d, "Refused", "", TONE_LOW, pool_text(s->pool, "%s: %s", r->nodes, r->why));
    if (p->refused == LAW_MICRO)
        document_answer_more(s->d, "a forecast needs one micro-batch, one stage, or ZeRO 0 or 1",
                             "--micro 1");
    else if (p->refused == LAW_PLACED)
        document_answer_more(
            s->d,
            f->parts->laws[p->refused_of].nodes < 2
                ? "measure on several nodes"
                : pool_text(s->pool, "measure with %.3g ranks on each node, or say --per-node %.3g",
                            f->per_node, f->parts->laws[p->refused_of].per_node),
            command_of(f, p->refused_of));
    else if (p->refused == LAW_GROUPS) {
        /* What no law prices, a measured step of the same kind shows. */
        const struct step_job *job = &s->f->job;

        document_answer_more(s->d,
                             pool_text(s->pool,
                                       "a forecast needs one rank a node, or --tp %.0f alone",
                                       s->f->per_node),
                             "--per-node 1");
        document_answer_more(
            s->d, "a measured step shows these groups",
            pool_text(
                s->pool,
                "plumb run SUITE --hosts FILE --slots %.0f, with bench: step, model: %s, tp: %.0f, "
                "pp: %.0f, ep: %.0f",
                s->f->per_node, job->model->name, job->tp, job->pp, job->ep));
    } else if (p->refused == LAW_DIVIDED)
        document_answer_more(s->d,
                             pool_text(s->pool, "choose ranks that are a multiple of %.0f",
                                       f->job.tp * f->job.pp * f->job.ep),
                             "--nodes");
    else if (p->refused == LAW_MEMORY)
        document_answer_more(s->d, "divide the model, or state the memory",
                             "--zero 3, --tp, --pp, --memory SIZE");
    else {
        /* From fewer ranks than are needed for the farthest the nearest has a forecast. */
        double near = measure_at(r->first), far = measure_at(r->last);

        document_answer_more(
            s->d,
            r->first->refused != LAW_FAR ? "measure"
            : r->first->law.ranks < r->first->law.most_ranks
                ? pool_text(s->pool, "measure at %.0f ranks", near)
            : near == far ? pool_text(s->pool, "measure at %.0f ranks", far)
                          : pool_text(s->pool, "measure at %.0f ranks for %s, at %.0f for all",
                                      near, text_count((size_t)r->first->nodes, "node").text, far),
            command_of(f, p->refused_of));
    }
}

static void answer(const struct showing *s, const struct forecast_point *p)
{
    const struct step_job *job = &s->f->job;
    const char *text = pool_text(s->pool, "%s, %.6g %s%s a rank", job->model->name, job->batch,
                                 job->model->unit, job->batch == 1 ? "" : "s");

    if (job->sequence)
        text = pool_text(s->pool, "%s of %.0f tokens", text, (double)job->sequence);
    text = forecast_ways(s->pool, text, job->zero, job->tp, job->pp, job->micro, job->ep);
    document_answer(s->d, "Job", "", TONE_NONE, text);
    document_answer_more(s->d, pool_text(s->pool, "parts measured in %s", s->f->parts->machine),
                         "");
    if (s->f->swap.text)
        document_answer(s->d, "Swapped", "", TONE_NONE, forecast_swap_text(s->pool, &s->f->swap));
    if (forecast_is_given(p)) {
        document_answer(s->d, "Step", "", TONE_NONE,
                        pool_text(s->pool, "%s (%s to %s) on %.0f ranks",
                                  seconds(s->pool, p->time.step_s), seconds(s->pool, p->low_s),
                                  seconds(s->pool, p->high_s), p->ranks));
        document_answer(s->d, "Rate", "", TONE_NONE,
                        pool_text(s->pool, "%s samples/s (%s to %s)",
                                  document_number(s->pool, p->samples_s),
                                  document_number(s->pool, forecast_rate(p, p->high_s)),
                                  document_number(s->pool, forecast_rate(p, p->low_s))));
        const struct forecast *f = s->f;

        text = "";
        for (size_t i = 0, last = SIZE_MAX; i < f->n; i++) {
            const struct forecast_point *at = &f->points[i];

            if (!forecast_is_given(at) || (last != SIZE_MAX && f->points[last].bound == at->bound))
                continue;
            const struct step_time *t = &at->time;
            const double parts[BOUNDS] = {t->compute_s + t->bubble_s, t->exposed_s, t->parallel_s,
                                          t->update_s};

            text = pool_join(
                s->pool, text, "; ",
                pool_text(s->pool, "%s from %s on (%s of the step)", bound_names[at->bound],
                          text_count((size_t)at->nodes, "node").text,
                          document_percent(s->pool, 100 * parts[at->bound] / t->step_s)));
            last = i;
        }
        document_answer(s->d, "Bound by", "", TONE_NONE, text);
        answer_trust(s, p);
    }
    answer_memory(s, p);
    forecast_answer_checks(s->pool, s->d, s->f);
    struct refused r;

    for (size_t i = 0; i < s->f->n; i++)
        if (is_refused(&s->f->points[i]) && collect(s, i, &r))
            answer_group(s, &r);
    /* A part that the step needs, or that makes its interval narrower. */
    const struct forecast *f = s->f;
    unsigned lacks = 0;

    for (size_t i = 0; i < f->n; i++)
        lacks |= f->points[i].time.lacks;
    for (int what = 1; what < JOB_PARTS; what++)
        if (lacks & 1u << what) {
            document_answer(s->d, "Missing", "", TONE_LOW, part_name((enum bench_part_of)what));
            document_answer_more(s->d, "measure", command_of(f, (enum bench_part_of)what));
        }
}

/* ---- the table ---- */

static const struct document_column columns[] = {
    {.name = "Nodes", .number = true},
    {.name = "Ranks", .number = true, .place = COLUMN_GOES_LAST},
    {.name = "Step ms", .number = true},
    {.name = "+/-"},
    {.name = "Samples/s", .number = true},
    {.name = "Efficiency", .number = true},
    {.name = "Compute ms", .number = true, .place = COLUMN_GOES_FIRST},
    {.name = "Waits for sums ms", .number = true, .place = COLUMN_GOES_FIRST},
    {.name = "Bound by"},
};

#define COLUMNS (sizeof(columns) / sizeof(*columns))

/* Those that have no forecast for one reason, one after another, are one row. */
static void add_row(const struct showing *s, struct document_table *t, size_t first, size_t last)
{
    const struct forecast_point *p = &s->f->points[first], *to = &s->f->points[last];
    struct cell *row = document_row(t);

    row[0] = cell_text(span_text(s->pool, p->nodes, to->nodes, last - first + 1));
    row[1] = cell_text(span_text(s->pool, p->ranks, to->ranks, last - first + 1));
    if (forecast_is_given(p)) {
        row[2] = cell_value(1e3 * p->time.step_s, "");
        row[3] = cell_interval(p->time.step_s, p->low_s, p->high_s);
        row[4] = cell_value(p->samples_s, "");
        row[5] = cell_text(document_percent(s->pool, 100 * forecast_efficiency(s->f, p)));
        row[6] = cell_value(1e3 * (p->time.compute_s + p->time.bubble_s), "");
        row[7] = cell_value(1e3 * p->time.exposed_s, "");
        row[8] = cell_word(bound_names[p->bound], TONE_NONE);
        return;
    }
    row[8] = cell_word(is_refused(p) ? "refused" : "unknown", TONE_LOW);
    cell_note(&row[8], document_note(s->d, p->refused == LAW_MEMORY ? memory_why(s->pool, p, to)
                                                                    : why(s->pool, p)));
}

static void table(const struct showing *s)
{
    const struct forecast_point *base = forecast_base(s->f);
    struct document_column *named = pool_alloc(s->pool, COLUMNS, sizeof(*named));

    memcpy(named, columns, sizeof(columns));
    if (base)
        named[5].name = pool_text(s->pool, "Efficiency against %s",
                                  text_count((size_t)base->nodes, "node").text);
    struct document_table *t = document_table(s->d, named, COLUMNS);
    for (size_t i = 0, last; i < s->f->n; i = last + 1) {
        last = last_of(s, i);
        add_row(s, t, i, last);
    }
    document_notes(s->d);
}

/* ---- parts and assumptions ---- */

static void show_parts(const struct showing *s, const struct forecast_point *p_answer)
{
    const struct parts *p = s->f->parts;

    document_heading(s->d, 2, "Parts", "parts");
    if (p->n_products && isnan(s->f->job.compute_s))
        document_item(
            s->d, pool_text(s->pool, "products: %s in %s%s",
                            text_count(p->n_products, "shape").text, p->dtype,
                            isnan(p->product_spread)
                                ? "; how well one stands for others is not known"
                                : pool_text(s->pool, "; one predicted from the others is off by %s",
                                            document_percent(s->pool, 100 * p->product_spread))));
    if (!isnan(s->f->job.compute_s))
        document_item(s->d, pool_text(s->pool, "forward and backward passes: %s, as was said",
                                      seconds(s->pool, s->f->job.compute_s)));
    if (!isnan(p->stream))
        document_item(s->d, pool_text(s->pool, "memory: %s GB/s",
                                      document_number(s->pool, p->stream * 1e-9)));
    if (!isnan(p->call_s))
        document_item(s->d, pool_text(s->pool, "a launch: %s", seconds(s->pool, p->call_s)));
    for (int what = JOB_SUM; what <= JOB_MESSAGE; what++)
        if (p->laws[what].law.n)
            document_item(s->d, pool_text(s->pool, "%s: %s", part_name((enum bench_part_of)what),
                                          p->laws[what].label));
    const struct part_host *h = &s->f->parts->host;

    document_item(
        s->d, isnan(h->s)
                  ? pool_text(s->pool,
                              "what a step takes beside its operations: not measured, so "
                              "nothing (%s)",
                              command_of(s->f, JOB_STEP))
                  : pool_text(s->pool,
                              "what a step takes beside its operations: %s, of measured steps "
                              "%son one rank",
                              seconds(s->pool, fmax(0, h->s)), h->other ? "of other models " : ""));
    if (isnan(p_answer->crowding))
        document_item(s->d, pool_text(s->pool,
                                      "groups that send at once: messages of %.0f ranks were not "
                                      "measured, so up to twice as long: %s",
                                      p_answer->ranks, command_of(s->f, JOB_MESSAGE)));
    else if (p_answer->crowding > 1)
        document_item(s->d,
                      pool_text(s->pool, "groups that send at once: messages take %s times as long",
                                document_number(s->pool, p_answer->crowding)));
    document_item(s->d,
                  isnan(p->hidden)
                      ? pool_text(s->pool, "overlap: not known, so between nothing and all: %s",
                                  command_of(s->f, JOB_OVERLAP))
                      : pool_text(s->pool, "overlap: %s of the shorter is hidden",
                                  document_percent(s->pool, 100 * p->hidden)));
}

static void show_assumptions(const struct showing *s)
{
    document_heading(s->d, 2, "Assumptions", "assumptions");
    document_item(s->d, s->f->core_known
                            ? "the core of the network carries all that the nodes send at once, as "
                              "was said"
                            : "nothing is known of the network's core: the interval allows for "
                              "one that carries less (--core full)");
    document_item(s->d, "each rank has the same work, and data is there when a step begins");
    document_item(s->d, pool_text(s->pool,
                                  "the slowest host that was not measured computes %.0f %% slower "
                                  "at most, for each doubling of the nodes",
                                  100 * FORECAST_SLOW_HOST));
    if (!isnan(s->f->job.compute_s) && (s->f->job.tp > 1 || s->f->job.pp > 1 || s->f->job.ep > 1))
        document_item(s->d, pool_text(s->pool,
                                      "compute that was given divides evenly, within %.0f %% for "
                                      "each doubling of --tp or --ep, and %.0f %% between hosts",
                                      100 * FORECAST_DIVIDED, 200 * FORECAST_JITTER));
    document_item(s->d, "a product's rate is that of measured shapes near to it");
    if (!s->f->parts->gpu && s->f->per_node > 1)
        document_item(s->d, pool_text(s->pool,
                                      "products and memory were measured with all cores of a node: "
                                      "%.0f ranks share these rates",
                                      s->f->per_node));
    if (s->f->swap.text)
        document_item(s->d, pool_text(s->pool,
                                      "what was swapped in reaches the same share of its limit, "
                                      "within %.0f %%; the times of messages and launches stay",
                                      100 * FORECAST_SWAPPED));
    if (s->f->swap.times[SWAP_NETWORK] > 0)
        document_item(s->d, "PCIe of a node carries the rate of the link that was swapped in");
    document_item(s->d, "docs/forecast.md has the model, and what it cannot know");
}

void forecast_show(struct pool *pool, struct document *d, const struct forecast *f,
                   size_t answer_at)
{
    struct showing s = {pool, d, f};
    const struct plot *plot = forecast_plot(pool, f);

    answer(&s, &f->points[answer_at]);
    table(&s);
    if (plot)
        document_figure(d, plot, "");
    forecast_show_checks(pool, d, f);
    show_parts(&s, &f->points[answer_at]);
    show_assumptions(&s);
}
