/* SPDX-License-Identifier: Apache-2.0 */
/* Pairing the cases of two sets of runs: see pairs.h. */
#include "harness/compare/pairs.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/units.h"
#include "harness/plan/plan.h"
#include "harness/report/cases.h"
#include "harness/report/described.h"
#include "harness/report/show.h"

/* ---- Labels of cases ---- */

/* Which parameters differ among the cases of one metric. */
struct variety {
    const char *metric;
    const struct report_case *first;
    bool *differs;
    size_t n_cases;
};

static struct variety *variety_of(struct variety *all, size_t *n, const struct report_case *c)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(all[i].metric, c->metric))
            return &all[i];
    return &all[(*n)++];
}

static struct variety *list_varieties(struct pool *pool, const struct report_bench *b, size_t *n)
{
    struct variety *all = pool_alloc(pool, b->n_cases, sizeof(*all));

    *n = 0;
    for (size_t k = 0; k < b->n_cases; k++) {
        const struct report_case *c = &b->cases[k];
        struct variety *t = variety_of(all, n, c);

        if (!t->n_cases++) {
            t->metric = c->metric;
            t->first = c;
            t->differs = pool_alloc(pool, b->n_params, sizeof(bool));
        }
        for (size_t i = 0; i < b->n_params; i++)
            t->differs[i] = t->differs[i] || strcmp(c->asked[i], t->first->asked[i]) != 0;
    }
    return all;
}

/* Of a case that stands alone, what the plots are drawn by. */
static bool is_said(const struct report_bench *b, const struct report_case *c, size_t param,
                    const struct variety *t)
{
    const struct bench_plot *hint = described_plot_of(b, c);

    if (!*c->asked[param] || !case_is_made_by(b, c, param) ||
        described_ignores(b, hint, b->params[param]) ||
        (hint && hint->square && word_in(hint->square, b->params[param]) &&
         strcmp(hint->x, b->params[param]) != 0 && described_is_square(hint, b, c)))
        return false;
    if (t->n_cases > 1)
        return t->differs[param];
    return !hint || !strcmp(hint->x, b->params[param]) || word_in(hint->lines, b->params[param]);
}

static bool is_ambiguous(const struct report_bench *b, const struct report_case *c, size_t param,
                         const struct variety *t)
{
    for (size_t i = 0; i < b->n_params; i++)
        if (i != param && !strcmp(c->asked[i], c->asked[param]) && is_said(b, c, i, t))
            return true;
    return false;
}

static const char *size_text(struct pool *pool, const struct report_bench *b, size_t param,
                             const char *value)
{
    char size[32];
    uint64_t bytes;

    if (!described_flag(b, b->params[param], COLUMN_BYTES) || units_parse_u64(value, &bytes))
        return "";
    return pool_text(pool, "%s", units_format_bytes(bytes, size, sizeof(size)));
}

/* "triad", "64 KiB", "2 threads", "node 1", "from node0"; full: always with its name. */
static const char *param_text(struct pool *pool, const struct report_bench *b, size_t param,
                              const char *value, bool full)
{
    const char *name = b->params[param], *size = size_text(pool, b, param, value);
    size_t len = strlen(name);
    double number;

    if (*size)
        return !full && !strcmp(name, "size") ? size : pool_text(pool, "%s %s", name, size);
    if (full)
        return pool_text(pool, "%s %s", name, value);
    if (!units_parse_double(value, &number) && len > 1 && name[len - 1] == 's')
        return pool_text(pool, "%s %.*s", value, (int)(strcmp(value, "1") ? len : len - 1), name);
    return show_named_param(pool, b, param, value);
}

static int compare_labels(const void *x, const void *y)
{
    const struct pair *a = *(struct pair *const *)x, *b = *(struct pair *const *)y;

    return strcmp(a->label, b->label);
}

/* Labels of all cases; those of two cases never read the same. */
static void pairs_label(struct pairs *p)
{
    struct pool *pool = &p->report.pool;
    struct variety *all = NULL;
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++) {
        struct pair *pair = &p->all[i];

        if (!i || pair->bench != p->all[i - 1].bench)
            all = list_varieties(pool, pair->bench, &n);
        const struct variety *t = variety_of(all, &n, pair->c);
        const char *text = "";

        for (size_t j = 0; j < pair->bench->n_params; j++)
            if (is_said(pair->bench, pair->c, j, t))
                text = show_joined(pool, text,
                                   param_text(pool, pair->bench, j, pair->c->asked[j],
                                              is_ambiguous(pair->bench, pair->c, j, t)));
        pair->label = pool_text(pool, "%s%s%s%s%s", pair->bench->name, *text ? " " : "", text,
                                *pair->c->metric ? ": " : "", pair->c->metric);
    }
    /* Two cases whose labels read the same are told apart by their keys. */
    struct pair **sorted = xcalloc(p->n, sizeof(*sorted));

    for (size_t i = 0; i < p->n; i++)
        sorted[i] = &p->all[i];
    qsort(sorted, p->n, sizeof(*sorted), compare_labels);
    for (size_t i = 0; i < p->n;) {
        size_t end = i + 1;
        const char *label = sorted[i]->label;

        while (end < p->n && !strcmp(sorted[end]->label, label))
            end++;
        for (size_t k = i; k < end && end > i + 1; k++)
            sorted[k]->label = sorted[k]->key;
        i = end;
    }
    free(sorted);
}

/* ---- Names: of the labels' parameters those that are needed to tell the decided cases apart, and
 * the metric where it is not the benchmark's first ---- */

/* Decided cases of one benchmark and metric. */
struct named {
    struct pair **all;
    size_t n;
    bool *kept; /* its parameters */
};

static int compare_sums(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

/* Do the kept parameters, but this one, tell all of them apart? FNV-1a of their values. */
static bool tells_apart(const struct named *g, size_t but, uint64_t *sums)
{
    for (size_t i = 0; i < g->n; i++) {
        sums[i] = 0xcbf29ce484222325u;
        for (size_t k = 0; k < g->all[i]->bench->n_params; k++)
            for (const char *c = g->kept[k] && k != but ? g->all[i]->c->asked[k] : ""; *c; c++)
                sums[i] = (sums[i] ^ (unsigned char)*c ^ k << 8) * 0x100000001b3u;
    }
    qsort(sums, g->n, sizeof(*sums), compare_sums);
    for (size_t i = 1; i < g->n; i++)
        if (sums[i] == sums[i - 1])
            return false;
    return true;
}

/* The ends of a copy, or of a link, are said both. */
static bool is_end(const struct report_bench *b, size_t param)
{
    return word_in("source destination from to", b->params[param]);
}

/* How many values it has, up to three: who has few of them says least. */
static size_t count_values(const struct named *g, size_t param)
{
    const char *seen[2] = {NULL};
    size_t n = 0;

    for (size_t i = 0; i < g->n && n < 3; i++) {
        const char *text = g->all[i]->c->asked[param];
        bool known = false;

        for (size_t k = 0; k < n && k < 2; k++)
            known = known || !strcmp(seen[k], text);
        if (!known && n < 2)
            seen[n] = text;
        n += !known;
    }
    return n;
}

static void name_group(struct pool *pool, const struct named *g, const struct variety *t)
{
    const struct report_bench *b = g->all[0]->bench;
    uint64_t *sums = pool_alloc(pool, g->n, sizeof(*sums));

    for (size_t k = 0; k < b->n_params; k++)
        for (size_t i = 0; i < g->n && !g->kept[k]; i++)
            g->kept[k] = is_said(b, g->all[i]->c, k, t);
    if (!tells_apart(g, b->n_params, sums))
        return;
    for (size_t values = 1; values <= 3; values++)
        for (size_t k = b->n_params; k-- > 0;)
            if (g->kept[k] && count_values(g, k) == values && (values == 1 || !is_end(b, k)) &&
                tells_apart(g, k, sums))
                g->kept[k] = false;
    for (size_t i = 0; i < g->n; i++) {
        const struct report_case *c = g->all[i]->c;
        const char *text = "";

        for (size_t k = 0; k < b->n_params; k++)
            if (g->kept[k] && *c->asked[k])
                text = show_joined(pool, text,
                                   param_text(pool, b, k, c->asked[k], is_ambiguous(b, c, k, t)));
        if (*text) /* else the label says what the one case is */
            g->all[i]->name = pool_join(pool, b->name, " ", text);
        if (*text && b->described && b->described->metrics->name &&
            strcmp(c->metric, b->described->metrics->name) != 0)
            g->all[i]->name = pool_join(pool, g->all[i]->name, ": ", c->metric);
    }
}

static int compare_names(const void *x, const void *y)
{
    const struct pair *a = *(struct pair *const *)x, *b = *(struct pair *const *)y;

    return strcmp(a->name, b->name);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && !strcmp(text + n - m, end);
}

/* Of those that are called alike, the first metric as well. */
static void add_metrics(struct pool *pool, struct pair **all, size_t n)
{
    qsort(all, n, sizeof(*all), compare_names);
    for (size_t i = 0, end; i < n; i = end) {
        const char *name = all[i]->name;

        for (end = i + 1; end < n && !strcmp(all[end]->name, name); end++)
            ;
        for (size_t k = i; k < end && end > i + 1; k++)
            if (!ends_with(name, all[k]->c->metric))
                all[k]->name = pool_join(pool, name, ": ", all[k]->c->metric);
    }
}

/* Those of a metric among n pairs. */
static struct named group_of(struct pool *pool, struct pair **all, size_t n, const char *metric)
{
    struct named g = {.all = pool_alloc(pool, n, sizeof(*all)),
                      .kept = pool_alloc(pool, all[0]->bench->n_params, sizeof(bool))};

    for (size_t i = 0; i < n; i++)
        if (!strcmp(all[i]->c->metric, metric))
            g.all[g.n++] = all[i];
    return g;
}

static void pairs_name(struct pairs *p)
{
    struct pool *pool = &p->report.pool;
    struct pair **all = pool_alloc(pool, p->n, sizeof(*all));
    size_t n_all = 0, n;

    for (size_t i = 0; i < p->n; i++) {
        p->all[i].name = p->all[i].label;
        if (p->all[i].state == PAIR_READY)
            all[n_all++] = &p->all[i];
    }
    /* Pairs of a benchmark stand together. */
    for (size_t begin = 0, end; begin < n_all; begin = end) {
        struct variety *metrics = list_varieties(pool, all[begin]->bench, &n);

        for (end = begin; end < n_all && all[end]->bench == all[begin]->bench; end++)
            ;
        for (size_t i = 0; i < n; i++) {
            struct named g = group_of(pool, &all[begin], end - begin, metrics[i].metric);

            if (g.n)
                name_group(pool, &g, &metrics[i]);
        }
        add_metrics(pool, &all[begin], end - begin);
    }
}

static int add_paths(struct run_paths *runs, const char *const *paths, size_t n, char *error,
                     size_t len)
{
    int err = 0;

    for (size_t i = 0; !err && i < n; i++)
        err = run_paths_add(runs, paths[i], error, len);
    return err;
}

/* Of several reasons, those of B first: it is what is asked about. */
static void judge_state(struct pairing *g, struct pair *pair, size_t n_a, size_t n_b)
{
    struct pool *pool = &g->p->report.pool;
    struct lost a = lost_reason(g, pair, &g->a, &pair->failed_a);
    struct lost b = lost_reason(g, pair, &g->b, &pair->failed_b);

    pair->differs = "";
    pair->reason = b.text;
    pair->code = *b.code ? b.code : a.code;
    const char *taken_a = side_taken(g, pair, &g->a), *taken_b = side_taken(g, pair, &g->b);
    pair->taken = show_joined(pool, taken_a, taken_b);
    if ((n_a || *taken_a) && (n_b || *taken_b)) { /* both measured it */
        const char *refused = pair_refusal(g, pair);

        pair->state = *refused                 ? PAIR_REFUSED
                      : n_a && n_b             ? PAIR_READY
                      : !n_b && pair->failed_b ? PAIR_LOST_B /* worse than disturbed */
                                               : PAIR_TAKEN;
        if (*refused)
            pair->reason = refused;
        else if (pair->state == PAIR_TAKEN)
            pair->reason =
                pool_text(pool, "%s%sothers took the CPU in %s", pair->failed_b ? b.text : "",
                          pair->failed_b ? "; " : "", pair->taken);
    } else if ((n_a && is_left_out(g, pair, &g->b)) || (n_b && is_left_out(g, pair, &g->a))) {
        pair->state = PAIR_LEFT_OUT;
        pair->reason = pool_text(
            pool,
            "a figure beside the samples that %s could not tell, such as for other work on "
            "the machine",
            n_a ? g->b.name : g->a.name);
    } else if (n_a) {
        pair->state = PAIR_LOST_B;
    } else if (n_b) {
        pair->state = PAIR_LOST_A;
        pair->reason = a.text;
    } else {
        pair->state = PAIR_LOST_BOTH;
        /* What both sides say alike is said once, behind their names. */
        bool alike = a.of_all && b.of_all && !strcmp(a.of_all, b.of_all);
        pair->reason = alike ? pool_text(pool, "%s and %s%s", g->a.name, g->b.name, a.of_all)
                             : pool_text(pool, "%s; %s", a.text, b.text);
    }
}

static size_t count_of(const struct decide_side *side, bool positive)
{
    size_t n = 0;

    for (size_t r = 0; r < side->n; r++)
        for (size_t i = 0; i < side->runs[r].n; i++)
            n += (side->runs[r].values[i] > 0) == positive;
    return n;
}

/* Those of the case itself, where it has some. */
static const enum pairs_role *roles_of(const struct pairs_options *o, const char *key)
{
    for (size_t i = 1; i < o->n_roles; i++)
        if (!strcmp(o->roles[i].key, key))
            return o->roles[i].runs;
    return o->n_roles ? o->roles[0].runs : NULL;
}

/* A case of runs alone that have no part in the level: nobody asks for it any more. */
static bool is_bygone(const struct pairing *g, const struct pair *pair)
{
    const struct pairs *p = g->p;
    bool has_rows = !g->a.roles || pair->state != PAIR_LOST_BOTH || pair->failed_b;

    for (size_t run = 0; run < p->report.n_runs && !has_rows; run++)
        has_rows = pair->c->points[run].n_rows && (run >= p->n_a || side_has(&g->a, run));
    return !has_rows;
}

static bool is_imported(const struct pairing *g, const struct report_case *c)
{
    for (size_t run = 0; run < g->p->report.n_runs; run++)
        if (!strcmp(c->points[run].origin, "imported"))
            return true;
    return false;
}

static void make_pair(struct pairing *g, const struct report_bench *b, const struct report_case *c,
                      struct pair *pair)
{
    struct pool *pool = &g->p->report.pool;

    *pair = (struct pair){.bench = b, .c = c, .label = "", .code = ""};
    pair->pipe = described_pipe(&g->p->report, b, c);
    pair->key = case_key(pool, b, c);
    g->a.roles = roles_of(g->options, pair->key);
    pair->decide.higher_is_better = c->more_is_better;
    pair->decide.decision = DECISION_INCONCLUSIVE; /* until it is decided */
    pair->decide.ratio = pair->decide.low = pair->decide.high = NAN;
    pair->decide.margin = pair_margin(g, pair);
    pair->decide.alone_is_open = is_imported(g, c);
    size_t n_a = side_values(g, &g->a, b, c, &pair->decide.a);
    size_t n_b = side_values(g, &g->b, b, c, &pair->decide.b);
    pair->decide.paired = g->p->in_turn && launches_align(g, b, c, &pair->decide);
    judge_state(g, pair, n_a, n_b);
    /* A rate that came to nothing has no ratio, and is the greatest loss there is. */
    size_t n = count_of(&pair->decide.b, false);

    if (pair->state != PAIR_READY || !pair->decide.higher_is_better || !n || pair->failed_b ||
        !count_of(&pair->decide.a, true))
        return;
    pair->failed_b = true;
    pair->reason = pool_text(&g->p->report.pool, "%zu of %zu launches of %s came to 0 or below", n,
                             n + count_of(&pair->decide.b, true), g->b.name);
}

static void pair_cases(struct pairing *g)
{
    struct pairs *p = g->p;
    size_t most = 0;

    for (size_t i = 0; i < p->report.n_benches; i++)
        most += p->report.benches[i].n_cases;
    p->all = pool_alloc(&p->report.pool, most, sizeof(*p->all));
    for (size_t i = 0; i < p->report.n_benches; i++) {
        const struct report_bench *b = &p->report.benches[i];

        for (size_t k = 0; k < b->n_cases; k++)
            if (described_is_judged(&p->report, b, &b->cases[k]) &&
                !is_told_elsewhere(g, b, &b->cases[k])) {
                make_pair(g, b, &b->cases[k], &p->all[p->n]);
                p->n += !is_bygone(g, &p->all[p->n]);
            }
    }
    pairs_label(p);
    pairs_name(p);
    /* Those that are asked for come first. */
    struct pair *others = pool_alloc(&p->report.pool, p->n, sizeof(*others));
    size_t n = 0, n_others = 0;

    p->n_all = p->n;
    for (size_t i = 0; i < p->n_all; i++)
        if (only_keeps(g->options->only,
                       &(struct only_case){.key = p->all[i].key, .label = p->all[i].label}))
            p->all[n++] = p->all[i];
        else
            others[n_others++] = p->all[i];
    if (n_others)
        memcpy(&p->all[n], others, n_others * sizeof(*others));
    p->n = n;
}

int pairs_decide(struct pairs *p, const struct decide_options *options)
{
    struct decide_case *cases = xcalloc(p->n_all, sizeof(*cases));
    size_t n = 0, n_wanted = 0;

    for (size_t i = 0; i < p->n_all; i++)
        if (p->all[i].state == PAIR_READY)
            cases[n++] = p->all[i].decide;
    int err = decide_suite(cases, n, options, &p->overall);
    n = 0;
    for (size_t i = 0; !err && i < p->n_all; i++) {
        if (p->all[i].state == PAIR_READY)
            p->all[i].decide = cases[n++];
        n_wanted = i < p->n ? n : n_wanted;
    }
    if (!err)
        decide_count(cases, n_wanted, &p->overall);
    free(cases);
    return err;
}

static int has_rows(const struct pairs *p, char *error, size_t len)
{
    if (p->report.n_rows)
        return 0;
    snprintf(error, len, "the runs hold no row: neither '%s' nor '%s' has measured anything yet",
             p->report.runs[0].path, p->report.runs[p->n_a].path);
    return -EINVAL;
}

static int load_runs(struct pairs *p, const char *const *a, size_t n_a, const char *const *b,
                     size_t n_b, char *error, size_t len)
{
    struct run_paths runs = {0};
    int err = add_paths(&runs, a, n_a, error, len);

    p->n_a = runs.n;
    if (!err)
        err = add_paths(&runs, b, n_b, error, len);
    p->n_b = runs.n - p->n_a;
    if (!err && (!p->n_a || !p->n_b)) {
        snprintf(error, len, "a comparison needs a run on each side");
        err = -ENOENT;
    }
    if (!err)
        err = report_load_joined(&p->report, (const char *const *)runs.all, runs.n, error, len);
    if (!err)
        err = has_rows(p, error, len);
    if (!err)
        err = sides_refuse_mixed(p, error, len);
    if (!err)
        err = sides_refuse_twice(p, error, len);
    run_paths_release(&runs);
    return err;
}

int pairs_load(struct pairs *p, const char *const *a, size_t n_a, const char *const *b, size_t n_b,
               const struct pairs_options *options, char *error, size_t len)
{
    struct pairing g = {.p = p, .options = options};

    *p = (struct pairs){.roles = options->n_roles ? options->roles[0].runs : NULL,
                        .name_b = options->name_b ? options->name_b : "B",
                        .steal_limit = options->steal_limit,
                        .as_measured = options->as_measured};
    int err = load_runs(p, a, n_a, b, n_b, error, len);
    if (err)
        return err;
    p->in_turn = sides_in_turn(p);
    g.a = (struct side){options->name_a ? options->name_a : "A", 0, p->n_a, NULL};
    g.b = (struct side){options->name_b ? options->name_b : "B", p->n_a, p->report.n_runs, NULL};
    g.plans = pool_alloc(&p->report.pool, p->report.n_runs, sizeof(*g.plans));
    for (size_t i = 0; i < p->report.n_runs; i++)
        suite_index_make(&p->report.runs[i], &g.plans[i]);
    boots_number(&g);
    if (p->in_turn)
        turns_read(&g);
    pair_cases(&g);
    for (size_t i = 0; i < p->report.n_runs; i++)
        suite_index_release(&g.plans[i]);
    err = pairs_decide(p, &options->decide);
    if (err)
        snprintf(error, len, "a margin of %g or an option of the decision is out of range",
                 options->margin);
    return err;
}

void pairs_release(struct pairs *p)
{
    report_release(&p->report);
    *p = (struct pairs){0};
}
