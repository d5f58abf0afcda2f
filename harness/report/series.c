/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting cases into plots: see series.h. */
#include "harness/report/series.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/report/cases_group.h"
#include "harness/report/show.h"

/* ---- Dimensions ---- */

struct number {
    double value;
    size_t index;
};

static int by_value(const void *x, const void *y)
{
    const struct number *a = x, *b = y;

    return a->value != b->value ? (a->value < b->value ? -1 : 1)
                                : (a->index > b->index) - (a->index < b->index);
}

/* By size, where all are numbers. */
static void sort_values(struct dimension *d, size_t n)
{
    struct number *numbers = xcalloc(d->n_values, sizeof(*numbers));
    const char **values = xcalloc(d->n_values, sizeof(*values));
    size_t *place = xcalloc(d->n_values, sizeof(*place));

    for (size_t i = 0; i < d->n_values; i++)
        numbers[i] = (struct number){d->numbers[i], i};
    memcpy(values, d->values, d->n_values * sizeof(*values));
    qsort(numbers, d->n_values, sizeof(*numbers), by_value);
    for (size_t i = 0; i < d->n_values; i++) {
        place[numbers[i].index] = i;
        d->values[i] = values[numbers[i].index];
        d->numbers[i] = numbers[i].value;
    }
    for (size_t i = 0; i < n; i++)
        d->of_case[i] = place[d->of_case[i]];
    free(place);
    free(values);
    free(numbers);
}

/* The parameter's values over the cases; "" is a value too, but no number. */
static void dimension_make(struct pool *pool, const struct report_bench *b, const size_t *cases,
                           size_t n, size_t param, struct dimension *d)
{
    bool numeric = true;

    *d = (struct dimension){.param = param,
                            .values = pool_alloc(pool, n, sizeof(*d->values)),
                            .numbers = pool_alloc(pool, n, sizeof(*d->numbers)),
                            .of_case = pool_alloc(pool, n, sizeof(*d->of_case))};
    for (size_t i = 0; i < n; i++) {
        const char *text = b->cases[cases[i]].params[param];
        size_t at = 0;

        while (at < d->n_values && strcmp(d->values[at], text) != 0)
            at++;
        d->of_case[i] = at;
        if (at < d->n_values)
            continue;
        d->values[at] = text;
        d->numbers[at] = report_number(text);
        numeric = numeric && !isnan(d->numbers[at]);
        d->n_values++;
    }
    if (numeric)
        sort_values(d, n);
    else
        d->numbers = NULL;
}

/* All cases in one class. */
static struct classes classes_make(struct pool *pool, size_t n_cases)
{
    return (struct classes){.of_case = pool_alloc(pool, n_cases, sizeof(size_t)), .n = 1};
}

/* Splits each class by the dimension's values, and numbers the classes by their first case. Are
 * there more than before? If not, the dimension follows from those that made the classes. */
static bool classes_refine(struct classes *classes, const struct dimension *d, size_t n_cases)
{
    size_t before = classes->n, *numbers = xcalloc(before * d->n_values, sizeof(*numbers));

    classes->n = 0;
    for (size_t i = 0; i < n_cases; i++) {
        size_t *number = &numbers[classes->of_case[i] * d->n_values + d->of_case[i]];

        *number = *number ? *number : ++classes->n;
        classes->of_case[i] = *number - 1;
    }
    free(numbers);
    return classes->n > before;
}

#define GPUS_DRAWN     2 /* more of them: one is drawn */
#define GPUS_FOUND_MAX 128
#define PAIRS_DRAWN    6 /* of GPUs, as lines; more are in matrices alone */
#define HOSTS_DRAWN                                                                                \
    3 /* the same of hosts, each pair of which has lines of what the CPUs spend and TCP says, too */
#define LINE_POINTS_MIN 4 /* fewer are listed: between them a line says nothing */

size_t group_lines_max(const struct group *g)
{
    size_t each = 2 * SERIES_LINES_MAX / g->r->n_runs;

    each = each < 4 ? 4 : each > SERIES_LINES_MAX ? SERIES_LINES_MAX : each;
    return g->overlays && each > OVERLAID_MAX ? OVERLAID_MAX : each;
}

static void choose_x(struct group *g)
{
    for (size_t i = 0; !g->listed && i < g->bench->n_params; i++) {
        const struct dimension *d = &g->dims[i];
        bool named = g->hint && !strcmp(g->bench->params[i], g->hint->x);

        if (!d->numbers || d->n_values < LINE_POINTS_MIN)
            continue;
        if (named) {
            g->x = d;
            return;
        }
        if (!g->x || d->n_values > g->x->n_values)
            g->x = d;
    }
}

/* Where a word stands in a list of words; far behind where it does not. */
static size_t rank_in(const char *words, const char *word)
{
    size_t rank = 0;

    for (; *words; words += strcspn(words, " "), words += *words == ' ', rank++)
        if (strcspn(words, " ") == strlen(word) && !memcmp(words, word, strlen(word)))
            return rank;
    return 1000;
}

/* The column that the hint has as x; of listed cases the least telling. */
static bool is_x(const struct group *g, size_t param)
{
    return g->hint && !strcmp(g->bench->params[param], g->hint->x);
}

/* x says the same. */
static bool is_side(const struct group *g, size_t param)
{
    return g->hint && g->hint->square && !g->listed && !is_x(g, param) &&
           word_in(g->hint->square, g->bench->params[param]);
}

static bool comes_before(const struct group *g, const struct dimension *a,
                         const struct dimension *b)
{
    const char *words = g->hint ? g->hint->lines : "";
    size_t x = rank_in(words, g->bench->params[a->param]);
    size_t y = rank_in(words, g->bench->params[b->param]);

    bool last = is_x(g, a->param);

    if (last != is_x(g, b->param))
        return !last;
    if (x != y)
        return x < y;
    return a->n_values != b->n_values ? a->n_values > b->n_values : a->param < b->param;
}

/* The parameters that vary, the best first. */
static size_t list_candidates(const struct group *g, const struct dimension **candidates)
{
    size_t n = 0;

    for (size_t i = 0; i < g->bench->n_params; i++) {
        const struct dimension *d = &g->dims[i];
        size_t at = n;

        if (d == g->x || d->n_values < 2 || is_side(g, i) ||
            described_ignores(g->bench, g->hint, g->bench->params[i]))
            continue;
        for (; at && comes_before(g, d, candidates[at - 1]); at--)
            candidates[at] = candidates[at - 1];
        candidates[at] = d;
        n++;
    }
    return n;
}

/* Those of them that do not follow from x and the ones before. */
static void choose_lines(struct group *g)
{
    const struct dimension **candidates =
        pool_alloc(&g->r->pool, g->bench->n_params, sizeof(*candidates));
    struct classes seen = classes_make(&g->r->pool, g->n);

    g->lines = candidates;
    if (g->x)
        classes_refine(&seen, g->x, g->n);
    for (size_t i = 0, n = list_candidates(g, candidates); i < n; i++)
        if (classes_refine(&seen, candidates[i], g->n))
            g->lines[g->n_lines++] = candidates[i];
}

static void classify(struct group *g)
{
    g->facet_of = classes_make(&g->r->pool, g->n);
    for (size_t i = 0; i < g->n_facets; i++)
        classes_refine(&g->facet_of, g->facets[i], g->n);
    g->line_of = classes_make(&g->r->pool, g->n);
    memcpy(g->line_of.of_case, g->facet_of.of_case, g->n * sizeof(size_t));
    g->line_of.n = g->facet_of.n;
    for (size_t i = 0; i < g->n_lines; i++)
        classes_refine(&g->line_of, g->lines[i], g->n);
}

static size_t most_lines(const struct group *g)
{
    size_t *lines = xcalloc(g->facet_of.n, sizeof(*lines)), most = 0;
    bool *seen = xcalloc(g->line_of.n, sizeof(*seen));

    for (size_t i = 0; i < g->n; i++) {
        size_t line = g->line_of.of_case[i], facet = g->facet_of.of_case[i];

        lines[facet] += !seen[line];
        seen[line] = true;
        most = lines[facet] > most ? lines[facet] : most;
    }
    free(seen);
    free(lines);
    return most;
}

/* Takes parameters from the lines, the least telling first, until the lines fit in a plot. */
static void choose_facets(struct group *g)
{
    size_t room = g->x ? group_lines_max(g) : SERIES_CATEGORIES_MAX;

    g->facets = pool_alloc(&g->r->pool, g->bench->n_params, sizeof(*g->facets));
    classify(g);
    while (g->place == FIGURE_AMONG_PLOTS && g->n_lines > 1 && most_lines(g) > room) {
        g->facets[g->n_facets++] = g->lines[--g->n_lines];
        classify(g);
    }
}

static size_t longest_line(const struct group *g)
{
    size_t *points = xcalloc(g->line_of.n, sizeof(*points)), longest = 0;

    for (size_t i = 0; i < g->n; i++) {
        size_t n = ++points[g->line_of.of_case[i]];
        longest = n > longest ? n : longest;
    }
    free(points);
    return longest;
}

void group_plan(struct group *g)
{
    g->dims = pool_alloc(&g->r->pool, g->bench->n_params, sizeof(*g->dims));
    for (size_t i = 0; i < g->bench->n_params; i++)
        dimension_make(&g->r->pool, g->bench, g->cases, g->n, i, &g->dims[i]);
    choose_x(g);
    choose_lines(g);
    choose_facets(g);
    if (!g->x || longest_line(g) >= LINE_POINTS_MIN)
        return;
    g->x = NULL;
    g->n_lines = g->n_facets = 0;
    choose_lines(g);
    choose_facets(g);
}

/* Two metrics may come to the same file name. */
static void make_name_unique(struct report *r, struct figures *figures)
{
    struct figure *last = &figures->all[figures->n];

    for (size_t i = 0; i < figures->n; i++)
        if (!strcmp(figures->all[i].plot.name, last->plot.name)) {
            last->plot.name = pool_text(&r->pool, "%s_%zu", last->plot.name, figures->n);
            return;
        }
}

/* The hierarchy of the memory first, then what has a limit, then other rates, then times. What was
 * counted beside the samples stands apart. */
static unsigned rank_of(const struct report *r, const struct figure *f, const struct report_case *c)
{
    unsigned kind = f->caches && c->more_is_better ? 0 : f->limits ? 1 : c->more_is_better ? 2 : 3;

    if (!c->more_is_better && described_is_figure(r, f->bench, c))
        return FIGURE_ASIDE;
    return kind * (STAGES + 1) + described_order(f->bench->described->stage);
}

static void note_undrawn(const struct group *g, size_t facet, struct figures *out)
{
    struct undrawn u = {.bench = g->bench};

    for (size_t i = 0; i < g->n; i++) {
        const struct report_case *c = &g->bench->cases[g->cases[i]];

        if (g->facet_of.of_case[i] != facet || !c->points[0].n_values)
            continue;
        u.c = u.c ? u.c : c;
        u.n++;
    }
    if (u.c && out->n_undrawn < UNDRAWN_MAX)
        out->undrawn[out->n_undrawn++] = u;
}

static void make_figures(struct group *g, struct figures *out, size_t *left_out)
{
    size_t made = 0, number = g->facet_of.n > 1;

    for (size_t facet = 0; facet < g->facet_of.n; facet++) {
        if (made == SERIES_PLOTS_MAX || out->n == REPORT_PLOTS_MAX) {
            ++*left_out;
            continue;
        }
        if (!figure_make(g, facet, number, &out->all[out->n])) {
            note_undrawn(g, facet, out);
            continue;
        }
        make_name_unique(g->r, out);
        out->all[out->n].rank = rank_of(g->r, &out->all[out->n], &g->bench->cases[g->cases[0]]);
        out->n++;
        made++;
        number++;
    }
}

static bool is_gpu_pair(const struct report_bench *b, size_t run, const struct report_case *c,
                        const void *arg)
{
    (void)run;
    (void)arg;
    return case_is_pair(b, c);
}

static bool is_host_pair(const struct report_bench *b, size_t run, const struct report_case *c,
                         const void *arg)
{
    (void)run;
    (void)arg;
    return *report_param(b, c, "from") && *report_param(b, c, "to");
}

/* Ordered pairs of GPUs, or of hosts, that are more than are drawn as lines. */
static bool has_many_pairs(const struct group *g)
{
    struct pool *pool = &g->r->pool;

    return g->gpu
               ? cases_group(pool, g->bench, 0, is_gpu_pair, NULL, cases_by, "source destination")
                         .n > PAIRS_DRAWN
               : cases_group(pool, g->bench, 0, is_host_pair, NULL, cases_by, "from to").n >
                     HOSTS_DRAWN;
}

/* Is it of the group, whichever GPU it is on? */
static bool is_of_group(const struct group *g, const struct report_case *c)
{
    if (g->hint && g->hint->elsewhere && described_matches(g->bench, c, g->hint->elsewhere))
        return false;
    return !strcmp(c->metric, g->metric) && !strcmp(c->unit, g->unit) &&
           case_is_gpu(g->bench, c) == g->gpu &&
           described_is_square(g->hint, g->bench, c) != g->listed;
}

/* GPUs of one model draw the same lines: of many, one stands for all. */
static const char *gpu_to_draw(struct group *g)
{
    const struct report_bench *b = g->bench;
    const char *found[GPUS_FOUND_MAX];
    size_t n = 0;

    for (size_t i = 0; i < b->n_cases && n < GPUS_FOUND_MAX; i++) {
        const char *gpu = case_gpu(b, &b->cases[i]);
        bool is_new = *gpu && is_of_group(g, &b->cases[i]);

        for (size_t k = 0; k < n && is_new; k++)
            is_new = strcmp(gpu, found[k]) != 0;
        if (is_new)
            found[n++] = gpu;
    }
    for (size_t k = 1; k < n; k++) /* the shuffled plan may begin with any */
        if (strlen(found[k]) < strlen(found[0]) ||
            (strlen(found[k]) == strlen(found[0]) && strcmp(found[k], found[0]) < 0))
            found[0] = found[k];
    g->other_gpus = n > GPUS_DRAWN ? n - 1 : 0;
    return n > GPUS_DRAWN ? found[0] : "";
}

static bool is_node_pair(const struct report_bench *b, size_t run, const struct report_case *c,
                         const void *arg)
{
    const struct group *g = arg;

    return is_of_group(g, c) && !strncmp(report_param(b, c, "source"), "node", 4) &&
           !strncmp(report_param(b, c, "destination"), "node", 4) && c->points[run].value > 0;
}

static double mean_of(const struct case_group *cases)
{
    double sum = 0;

    for (size_t i = 0; i < cases->n; i++)
        sum += log(cases->cases[i]->points[0].value) / (double)cases->n;
    return cases->cases[0]->more_is_better ? -sum : sum;
}

static int by_mean(const void *x, const void *y)
{
    double a = mean_of(x), b = mean_of(y);

    return (a > b) - (a < b);
}

/* Pairs of NUMA nodes are much alike: of many, three stand for all. */
static void choose_nodes(struct group *g)
{
    struct case_groups pairs =
        cases_group(&g->r->pool, g->bench, 0, is_node_pair, g, cases_by, "source destination");

    if (g->gpu || pairs.n <= NODES_DRAWN)
        return;
    qsort(pairs.all, pairs.n, sizeof(*pairs.all), by_mean);
    for (size_t i = 0; i < NODES_DRAWN; i++)
        g->nodes_drawn[i] = pairs.all[i * (pairs.n - 1) / (NODES_DRAWN - 1)].cases[0];
    g->node_pairs = pairs.n;
}

static bool is_other_node(const struct group *g, const struct report_case *c)
{
    bool other = g->node_pairs && is_node_pair(g->bench, 0, c, g);

    for (size_t i = 0; i < NODES_DRAWN && other; i++)
        other = strcmp(report_param(g->bench, c, "source"),
                       report_param(g->bench, g->nodes_drawn[i], "source")) != 0 ||
                strcmp(report_param(g->bench, c, "destination"),
                       report_param(g->bench, g->nodes_drawn[i], "destination")) != 0;
    return other;
}

static bool is_drawn(const struct group *g, const struct report_case *c, bool skip_pairs)
{
    const char *own;

    if (!is_of_group(g, c) || is_other_node(g, c))
        return false;
    if (!g->gpu)
        return !skip_pairs || !is_host_pair(g->bench, 0, c, NULL);
    own = case_gpu(g->bench, c);
    return *own ? !*g->gpu_drawn || !strcmp(own, g->gpu_drawn) : !skip_pairs;
}

/* The cases of one metric and unit that are drawn. */
static void collect(struct group *g, const struct case_group *all)
{
    const struct report_bench *b = g->bench;
    bool skip_pairs = has_many_pairs(g);

    g->metric = all->cases[0]->metric;
    g->unit = all->cases[0]->unit;
    g->gpu_drawn = gpu_to_draw(g);
    choose_nodes(g);
    g->cases = pool_alloc(&g->r->pool, all->n, sizeof(*g->cases));
    for (size_t i = 0; i < all->n; i++)
        if (is_drawn(g, all->cases[i], skip_pairs))
            g->cases[g->n++] = (size_t)(all->cases[i] - b->cases);
}

static void add_group(struct report *r, const struct report_bench *b, const struct case_group *all,
                      bool gpu, bool listed, struct figures *out, size_t *left_out)
{
    struct group g = {
        .r = r, .bench = b, .hint = described_plot(b, gpu), .gpu = gpu, .listed = listed};

    if (g.hint && g.hint->undrawn && word_in(g.hint->undrawn, all->cases[0]->metric))
        return;
    collect(&g, all);
    if (!g.n)
        return;
    group_plan(&g);
    make_figures(&g, out, left_out);
}

static void sort_figures(struct figures *figures)
{
    for (size_t i = 1; i < figures->n; i++) {
        struct figure f = figures->all[i];
        size_t at = i;

        for (; at && figures->all[at - 1].rank > f.rank; at--)
            figures->all[at] = figures->all[at - 1];
        figures->all[at] = f;
    }
}

void figures_make(struct report *r, struct figures *out)
{
    size_t left_out = 0;

    *out = (struct figures){.left_out = ""};
    for (const struct report_bench *b = r->benches; b < r->benches + r->n_benches; b++) {
        struct case_groups metrics =
            cases_group(&r->pool, b, 0, NULL, NULL, cases_by, "metric unit");

        for (size_t i = 0; i < metrics.n; i++)
            for (int kind = 0; kind < 4; kind++)
                add_group(r, b, &metrics.all[i], kind < 2, kind % 2, out, &left_out);
    }
    sort_figures(out);
    if (left_out)
        out->left_out = pool_text(&r->pool,
                                  "%zu more plots are left out, so that the page stays readable; "
                                  "their rows are in the tables below",
                                  left_out);
}
