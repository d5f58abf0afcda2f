/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting cases into plots: see series.h. */
#include "harness/report/series.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/report/show.h"

/* ---- Dimensions ---- */

struct met_value {
    const char *text;
    double number;
    size_t first; /* case in which it is first met */
};

static int by_text(const void *x, const void *y)
{
    const struct met_value *a = x, *b = y;
    int d = strcmp(a->text, b->text);

    return d ? d : (a->first > b->first) - (a->first < b->first);
}

static int by_number(const void *x, const void *y)
{
    const struct met_value *a = x, *b = y;

    return (a->number > b->number) - (a->number < b->number);
}

static int by_first(const void *x, const void *y)
{
    const struct met_value *a = x, *b = y;

    return (a->first > b->first) - (a->first < b->first);
}

/* The values, each once, in their final order; returns how many. */
static size_t list_values(struct met_value *found, size_t n, bool *numeric)
{
    size_t kept = 0;

    qsort(found, n, sizeof(*found), by_text);
    for (size_t i = 0; i < n; i++)
        if (!i || strcmp(found[kept - 1].text, found[i].text) != 0)
            found[kept++] = found[i];
    *numeric = true;
    for (size_t i = 0; i < kept; i++) {
        found[i].number = report_number(found[i].text);
        *numeric = *numeric && !isnan(found[i].number);
    }
    qsort(found, kept, sizeof(*found), *numeric ? by_number : by_first);
    return kept;
}

struct place {
    const char *text;
    size_t index;
};

static int by_place(const void *x, const void *y)
{
    return strcmp(((const struct place *)x)->text, ((const struct place *)y)->text);
}

static void index_cases(struct dimension *d, const struct report_bench *b, const size_t *cases,
                        size_t n)
{
    struct place *places = xcalloc(d->n_values, sizeof(*places));

    for (size_t i = 0; i < d->n_values; i++)
        places[i] = (struct place){d->values[i], i};
    qsort(places, d->n_values, sizeof(*places), by_place);
    for (size_t i = 0; i < n; i++) {
        struct place wanted = {b->cases[cases[i]].params[d->param], 0};
        struct place *at = bsearch(&wanted, places, d->n_values, sizeof(*places), by_place);

        d->of_case[i] = at ? at->index : 0;
    }
    free(places);
}

/* The parameter's values over the cases; "" is a value too, but no number. */
static void dimension_make(struct pool *pool, const struct report_bench *b, const size_t *cases,
                           size_t n, size_t param, struct dimension *d)
{
    struct met_value *found = xcalloc(n, sizeof(*found));
    bool numeric = false;

    *d = (struct dimension){.param = param};
    for (size_t i = 0; i < n; i++)
        found[i] = (struct met_value){b->cases[cases[i]].params[param], NAN, i};
    d->n_values = list_values(found, n, &numeric);
    d->values = pool_alloc(pool, d->n_values, sizeof(*d->values));
    d->numbers = pool_alloc(pool, d->n_values, sizeof(*d->numbers));
    d->of_case = pool_alloc(pool, n, sizeof(*d->of_case));
    for (size_t i = 0; i < d->n_values; i++) {
        d->values[i] = found[i].text;
        d->numbers[i] = found[i].number;
    }
    if (!numeric)
        d->numbers = NULL;
    index_cases(d, b, cases, n);
    free(found);
}

/* All cases in one class. */
static struct classes classes_make(struct pool *pool, size_t n_cases)
{
    return (struct classes){.of_case = pool_alloc(pool, n_cases, sizeof(size_t)), .n = 1};
}

struct member {
    size_t class, value, index;
};

static int by_class(const void *x, const void *y)
{
    const struct member *a = x, *b = y;

    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Members of a new class stand together, its first case foremost. */
static void renumber(struct classes *classes, const struct member *members, size_t n)
{
    size_t head = 0;

    for (size_t i = 0; i < n; i++) {
        if (!i || members[i].class != members[i - 1].class ||
            members[i].value != members[i - 1].value)
            head = i;
        classes->of_case[members[i].index] = members[head].index;
    }
    /* now each case knows the first case of its class: count those in order */
    classes->n = 0;
    for (size_t i = 0; i < n; i++) {
        size_t first = classes->of_case[i];

        classes->of_case[i] = first == i ? classes->n++ : classes->of_case[first];
    }
}

/* Splits each class by the dimension's values, and numbers the classes by their first case. Are
 * there more than before? If not, the dimension follows from those that made the classes. */
static bool classes_refine(struct classes *classes, const struct dimension *d, size_t n_cases)
{
    struct member *members = xcalloc(n_cases, sizeof(*members));
    size_t before = classes->n;

    for (size_t i = 0; i < n_cases; i++)
        members[i] = (struct member){classes->of_case[i], d->of_case[i], i};
    qsort(members, n_cases, sizeof(*members), by_class);
    renumber(classes, members, n_cases);
    free(members);
    return classes->n > before;
}

#define GPUS_DRAWN     2 /* more of them: one is drawn */
#define GPUS_FOUND_MAX 128
#define PAIRS_DRAWN    6 /* of GPUs, as lines; more are in matrices alone */
#define HOSTS_DRAWN                                                                                \
    3 /* the same of hosts, each pair of which has lines of what the CPUs spend and TCP says, too */
#define GUESSED_X_MIN                                                                              \
    3 /* values that make a numeric parameter worth an axis where no rule says so */

size_t group_lines_max(const struct group *g)
{
    size_t each = 2 * SERIES_LINES_MAX / g->r->n_runs;

    return each < 4 ? 4 : each > SERIES_LINES_MAX ? SERIES_LINES_MAX : each;
}

static void choose_x(struct group *g)
{
    for (size_t i = 0; !g->listed && i < g->bench->n_params; i++) {
        const struct dimension *d = &g->dims[i];
        bool named = g->hint && !strcmp(g->bench->params[i], g->hint->x);

        if (!d->numbers || d->n_values < (named ? 2 : GUESSED_X_MIN))
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

static bool comes_before(const struct group *g, const struct dimension *a,
                         const struct dimension *b)
{
    const char *words = g->hint ? g->hint->lines : "";
    size_t x = rank_in(words, g->bench->params[a->param]);
    size_t y = rank_in(words, g->bench->params[b->param]);

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

        if (d == g->x || d->n_values < 2 ||
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
    while (g->n_lines > 1 && most_lines(g) > room) {
        g->facets[g->n_facets++] = g->lines[--g->n_lines];
        classify(g);
    }
}

static void plan(struct group *g)
{
    g->dims = pool_alloc(&g->r->pool, g->bench->n_params, sizeof(*g->dims));
    for (size_t i = 0; i < g->bench->n_params; i++)
        dimension_make(&g->r->pool, g->bench, g->cases, g->n, i, &g->dims[i]);
    choose_x(g);
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

static void make_figures(struct group *g, struct figures *out, size_t *left_out)
{
    size_t made = 0, number = g->facet_of.n > 1;

    for (size_t facet = 0; facet < g->facet_of.n; facet++) {
        struct figure_word word;

        if (made == SERIES_PLOTS_MAX || out->n == REPORT_PLOTS_MAX) {
            ++*left_out;
            continue;
        }
        enum figure_kind kind = figure_make(g, facet, number, &out->all[out->n], &word);
        if (kind == FIGURE_WORD && out->n_words < REPORT_WORDS_MAX)
            out->words[out->n_words++] = word;
        else if (kind == FIGURE_WORD)
            ++*left_out;
        if (kind != FIGURE_PLOT)
            continue;
        make_name_unique(g->r, out);
        out->n++;
        made++;
        number++;
    }
}

/* Rows between two GPUs, or two hosts. */
static bool is_pair(const struct report_bench *b, const struct report_case *c, bool gpu)
{
    return gpu ? case_is_pair(b, c) : *report_param(b, c, "from") && *report_param(b, c, "to");
}

static bool same_pair(const struct report_bench *b, const struct report_case *x,
                      const struct report_case *y, bool gpu)
{
    const char *from = gpu ? "source" : "from", *to = gpu ? "destination" : "to";

    return !strcmp(report_param(b, x, from), report_param(b, y, from)) &&
           !strcmp(report_param(b, x, to), report_param(b, y, to));
}

/* Ordered pairs that were measured, at most one more than are drawn. */
static size_t count_pairs(const struct report_bench *b, bool gpu)
{
    const struct report_case *found[PAIRS_DRAWN + 1];
    size_t n = 0;

    for (size_t i = 0; i < b->n_cases && n <= PAIRS_DRAWN; i++) {
        const struct report_case *c = &b->cases[i];
        bool is_new = is_pair(b, c, gpu);

        for (size_t k = 0; k < n && is_new; k++)
            is_new = !same_pair(b, c, found[k], gpu);
        if (is_new)
            found[n++] = c;
    }
    return n;
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
static const char *gpu_to_draw(const struct group *g)
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
    return n > GPUS_DRAWN ? found[0] : "";
}

static bool is_drawn(const struct group *g, const struct report_case *c, bool skip_pairs)
{
    const char *own;

    if (!is_of_group(g, c))
        return false;
    if (!g->gpu)
        return !skip_pairs || !is_pair(g->bench, c, false);
    own = case_gpu(g->bench, c);
    return *own ? !*g->gpu_drawn || !strcmp(own, g->gpu_drawn) : !skip_pairs;
}

/* The cases of one metric and unit, from case number `first` on, which is the first of them. */
static void collect(struct group *g, size_t first)
{
    const struct report_bench *b = g->bench;

    bool skip_pairs = count_pairs(b, g->gpu) > (g->gpu ? PAIRS_DRAWN : HOSTS_DRAWN);

    g->metric = b->cases[first].metric;
    g->unit = b->cases[first].unit;
    g->gpu_drawn = gpu_to_draw(g);
    g->cases = pool_alloc(&g->r->pool, b->n_cases, sizeof(*g->cases));
    for (size_t i = first; i < b->n_cases; i++)
        if (is_drawn(g, &b->cases[i], skip_pairs))
            g->cases[g->n++] = i;
}

/* One value alone is no plot. */
static bool is_worth_it(const struct group *g)
{
    size_t values = 0;

    for (size_t i = 0; i < g->n; i++)
        for (size_t run = 0; run < g->r->n_runs; run++)
            values += g->bench->cases[g->cases[i]].points[run].n_values > 0;
    return values > 1;
}

static bool is_first_of_its_metric(const struct report_bench *b, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (!strcmp(b->cases[i].metric, b->cases[index].metric) &&
            !strcmp(b->cases[i].unit, b->cases[index].unit))
            return false;
    return true;
}

static void add_group(struct report *r, const struct report_bench *b, size_t first, bool gpu,
                      bool listed, struct figures *out, size_t *left_out)
{
    struct group g = {
        .r = r, .bench = b, .hint = described_plot(b, gpu), .gpu = gpu, .listed = listed};

    if (g.hint && g.hint->undrawn && word_in(g.hint->undrawn, b->cases[first].metric))
        return;
    collect(&g, first);
    if (!is_worth_it(&g))
        return;
    plan(&g);
    make_figures(&g, out, left_out);
}

void figures_make(struct report *r, struct figures *out)
{
    size_t left_out = 0;

    *out = (struct figures){.left_out = ""};
    for (const struct report_bench *b = r->benches; b < r->benches + r->n_benches; b++)
        for (size_t i = 0; i < b->n_cases; i++)
            if (is_first_of_its_metric(b, i))
                for (int kind = 0; kind < 4; kind++)
                    add_group(r, b, i, kind < 2, kind % 2, out, &left_out);
    if (left_out)
        out->left_out = pool_text(&r->pool,
                                  "%zu more plots are left out, so that the page stays readable; "
                                  "their rows are in the tables below",
                                  left_out);
}
