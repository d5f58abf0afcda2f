/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs side by side: see gpus.h. */
#include "harness/report/gpus.h"

#include <math.h>
#include <string.h>

#include "harness/report/cases_group.h"
#include "harness/report/described.h"
#include "harness/report/headline.h"
#include "harness/report/show.h"

#define GPUS_MAX  128
#define NAMED_MAX 3 /* GPUs that failed */

/* The parameter that says which GPU it is, and the host's end of a copy; false: not one GPU alone.
 */
static bool find_ends(const struct report_bench *b, const struct report_case *c, const char **gpu,
                      const char **host)
{
    static const char *const names[] = {"device", "source", "destination"};
    static const char *const others[] = {"", "destination", "source"};

    for (size_t i = 0; i < 3 && !case_is_pair(b, c); i++)
        if (place_is_gpu(report_param(b, c, names[i]))) {
            *gpu = names[i];
            *host = others[i];
            return true;
        }
    return false;
}

/* A launch that died or was skipped may lack what it did not come to know. */
static bool is_unknown(const struct report_case *c, size_t run, const char *text)
{
    return !*text && c->points[run].n_rows && !c->points[run].n_values;
}

static bool agree(const struct report_case *x, const struct report_case *y, size_t run,
                  const char *of_x, const char *of_y)
{
    return !strcmp(of_x, of_y) || is_unknown(x, run, of_x) || is_unknown(y, run, of_y);
}

/* Do they agree in all but which GPU it is, and where on the host it copies from or to? */
static bool same_work(const struct report_bench *b, size_t run, const struct report_case *x,
                      const struct report_case *y, const char *gpu, const char *host)
{
    if (!agree(x, y, run, x->metric, y->metric) || !agree(x, y, run, x->unit, y->unit))
        return false;
    for (size_t i = 0; i < b->n_params; i++) {
        const char *name = b->params[i];
        bool may = b->follows[i] || !strcmp(name, gpu) || !strcmp(name, host) ||
                   !strcmp(name, "node"); /* the host's, from which it is driven */

        if (!may && !agree(x, y, run, x->params[i], y->params[i]))
            return false;
    }
    return place_is_gpu(report_param(b, y, gpu)) && !place_is_gpu(report_param(b, y, host));
}

/* One GPU's best; where it has no value, a case that failed, or else one that was skipped. */
struct of_gpu {
    const char *name;
    const struct report_case *best;
};

static bool has_failed(const struct report_case *c, size_t run)
{
    return strcmp(c->points[run].status, "skipped") != 0;
}

static bool tells_more(const struct report_case *c, const struct report_case *than, size_t run)
{
    if (!case_has_value(c, run))
        return !case_has_value(than, run) && has_failed(c, run) && !has_failed(than, run);
    return !case_has_value(than, run) ||
           case_is_better(c, c->points[run].value, than->points[run].value);
}

static void take(struct of_gpu *all, size_t *n, const char *name, const struct report_case *c,
                 size_t run)
{
    size_t i = 0;

    while (i < *n && strcmp(all[i].name, name) != 0)
        i++;
    if (i == *n && *n < GPUS_MAX)
        all[(*n)++] = (struct of_gpu){name, c};
    else if (i < *n && tells_more(c, all[i].best, run))
        all[i].best = c;
}

/* "cuda:5 failed, 4 skipped" */
static void note_lost(struct report *r, const struct of_gpu *all, size_t run, struct gpus *out)
{
    const char *failed = "";
    size_t skipped;

    out->lost = "";
    for (size_t i = 0; i < out->all; i++) {
        if (case_has_value(all[i].best, run) || !has_failed(all[i].best, run))
            continue;
        out->failed++;
        failed = show_joined(&r->pool, failed, all[i].name);
    }
    skipped = out->all - out->n - out->failed;
    if (out->failed > NAMED_MAX)
        failed = pool_text(&r->pool, "%zu", out->failed);
    if (out->failed)
        out->lost = pool_text(&r->pool, "%s failed", failed);
    if (skipped)
        out->lost = show_joined(&r->pool, out->lost, pool_text(&r->pool, "%zu skipped", skipped));
}

/* ---- What is asked ---- */

static bool is_of_a_gpu(const struct report_bench *b, size_t run, const struct report_case *c,
                        const void *arg)
{
    const char *gpu, *host;

    return c->points[run].n_values && c->points[run].value > 0 &&
           !point_is_wrong(&c->points[run]) && find_ends(b, c, &gpu, &host) &&
           !place_is_gpu(report_param(b, c, host)) && described_is_judged(arg, b, c);
}

/* All but which GPU it is, and where on the host it copies from or to. */
static const char *what_it_does(const struct report_bench *b, const struct report_case *c,
                                size_t column, const void *arg)
{
    const char *gpu = "", *host = "";

    (void)arg;
    find_ends(b, c, &gpu, &host);
    if (column < b->n_params && !strcmp(b->params[column], gpu))
        return "a GPU";
    return cases_but(b, c, column,
                     column < b->n_params && !strcmp(b->params[column], host) ? host : "node");
}

static const char about[] = "GPUs"; /* of the topics */

/* The best case of each GPU is its place. */
static void ask_group(struct comparisons *q, const struct report_bench *b, size_t run,
                      const struct case_group *all)
{
    struct of_gpu gpus[GPUS_MAX];
    const struct report_case *cases[GPUS_MAX];
    size_t place[GPUS_MAX], other[GPUS_MAX], n = 0;
    const char *gpu, *host;

    for (size_t i = 0; i < all->n; i++)
        if (find_ends(b, all->cases[i], &gpu, &host))
            take(gpus, &n, report_param(b, all->cases[i], gpu), all->cases[i], run);
    for (size_t i = 0; i < n; i++) {
        cases[i] = gpus[i].best;
        place[i] = i;
        other[i] = COMPARISON_NONE;
    }
    comparisons_add_group(q, &(struct comparison_group){cases, place, other, n, n, false},
                          GPUS_MARGIN, NULL);
    for (size_t i = 0; i < all->n; i++)
        comparisons_like(q, all->cases[i], n - 1);
}

void gpus_ask(struct report *r, struct comparisons *q)
{
    for (const struct report_bench *b = r->benches; b < r->benches + r->n_benches; b++)
        for (size_t run = 0; run < r->n_runs; run++) {
            struct case_groups groups =
                cases_group(&r->pool, b, run, is_of_a_gpu, r, what_it_does, NULL);

            comparisons_topic(q, about, b, run, true);
            for (size_t i = 0; i < groups.n; i++)
                ask_group(q, b, run, &groups.all[i]);
        }
}

/* ---- What is found ---- */

static size_t gather(const struct report_bench *b, size_t run, const struct report_case *c,
                     struct of_gpu *all)
{
    const char *gpu, *host;
    size_t n = 0;

    if (!find_ends(b, c, &gpu, &host) || !case_has_value(c, run))
        return 0;
    for (size_t i = 0; i < b->n_cases; i++)
        if (b->cases[i].points[run].n_rows && same_work(b, run, c, &b->cases[i], gpu, host))
            take(all, &n, report_param(b, &b->cases[i], gpu), &b->cases[i], run);
    return n;
}

static const struct comparison *comparison_on(const struct comparisons *q,
                                              const struct report_bench *b, size_t run,
                                              const struct report_case *c)
{
    size_t n;
    const struct comparison *all = comparisons_about(q, about, b, run, &n);

    for (size_t i = 0; i < n; i++)
        if (all[i].c == c)
            return &all[i];
    return NULL;
}

size_t gpus_likes(const struct comparisons *q, const struct report_bench *b, size_t run,
                  const struct report_case *c, struct like *out, size_t room)
{
    struct of_gpu all[GPUS_MAX];
    size_t n = gather(b, run, c, all);

    n = n < room ? n : room;
    for (size_t i = 0; i < n; i++)
        out[i] = (struct like){all[i].name, all[i].best, comparison_on(q, b, run, all[i].best)};
    return n;
}

struct gpus gpus_of(struct report *r, const struct comparisons *q, const struct report_bench *b,
                    size_t run, const struct report_case *c)
{
    struct gpus out = {.worst_gpu = "", .lost = ""};
    const struct report_case *best = NULL;
    struct of_gpu all[GPUS_MAX];

    out.all = gather(b, run, c, all);
    if (!out.all)
        return out;
    out.alike = true;
    for (size_t i = 0; i < out.all; i++) {
        const struct report_case *own = all[i].best;
        const struct comparison *on = comparison_on(q, b, run, own);
        double value = own->points[run].value;

        if (!case_has_value(own, run))
            continue;
        out.n++;
        out.alike = out.alike && on && on->decision == DECISION_EQUIVALENT;
        out.slow = out.slow || (on && on->slow);
        if (!best || case_is_better(own, value, out.best)) {
            best = own;
            out.best = value;
        }
        if (out.worst_case && !case_is_better(own, out.worst, value))
            continue;
        out.worst = value;
        out.worst_case = own;
        out.worst_gpu = all[i].name;
        out.looks_slow = on && on->looks_slow;
    }
    out.alike = out.alike && fabs(out.worst / out.best - 1) < COMPARISONS_SAME;
    note_lost(r, all, run, &out);
    return out;
}
