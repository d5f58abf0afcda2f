/* SPDX-License-Identifier: Apache-2.0 */
/* From measures of all cases to decisions over the suite: see decide.h for the method. */
#include "harness/decide/decide.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/dist.h"
#include "core/stats.h"
#include "harness/decide/parts.h"

struct work {
    struct measure *m; /* one a case, all of them */
    struct known *known;
    size_t *judged; /* the cases that have a value and a spread */
    double *x, *y;  /* scratch, one a case */
    bool *proven;
    struct judge judge;
};

static int work_init(struct work *w, size_t n)
{
    n = n ? n : 1;
    w->m = calloc(n, sizeof(*w->m));
    w->known = calloc(n, sizeof(*w->known));
    w->judged = calloc(n, sizeof(*w->judged));
    w->x = calloc(n, sizeof(*w->x));
    w->y = calloc(n, sizeof(*w->y));
    w->proven = calloc(n, sizeof(*w->proven));
    return w->m && w->known && w->judged && w->x && w->y && w->proven ? 0 : -ENOMEM;
}

static void work_release(struct work *w)
{
    free(w->m);
    free(w->known);
    free(w->judged);
    free(w->x);
    free(w->y);
    free(w->proven);
}

static int options_read(const struct decide_options *options, struct judge *j)
{
    j->alarm_level = options->alarm_level == 0 ? DECIDE_ALARM_LEVEL : options->alarm_level;
    j->confidence = options->confidence == 0 ? DECIDE_CONFIDENCE : options->confidence;
    j->unrest = 1;
    j->b_stays = options->b_stays;
    if (!(j->alarm_level > 0 && j->alarm_level < 0.5 && j->confidence > 0 && j->confidence < 1))
        return -EINVAL;
    return 0;
}

static void case_clear(struct decide_case *c)
{
    c->decision = DECISION_INCONCLUSIVE;
    c->obstacle = OBSTACLE_NONE;
    c->proven = c->beyond = c->by_runs = c->by_pairs = c->more_of_a = false;
    c->a_value = c->b_value = c->ratio = c->low = c->high = NAN;
    c->p_worse = c->p_better = c->error = c->freedom = c->smallest = NAN;
    c->more_launches = 0;
}

/* Every case's own figures; which cases can be judged. */
static int measure_all(struct work *w, struct decide_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct decide_case *c = &cases[i];

        if (!(c->margin >= 0 && c->margin < 1))
            return -EINVAL;
        case_clear(c);
        c->obstacle = spread_measure(c, &w->m[i]);
        c->a_value = exp(w->m[i].a);
        c->b_value = exp(w->m[i].b);
        c->ratio = exp(w->m[i].d);
        c->by_runs = w->m[i].by_runs;
        if (c->obstacle != OBSTACLE_NONE)
            continue;
        w->judged[w->judge.n_judged++] = i;
        w->judge.widest = fmax(w->judge.widest, w->m[i].widest);
    }
    return 0;
}

/* The prior over launches' spreads, or over runs'. */
static int fit(struct work *w, bool of_runs, struct prior *prior)
{
    size_t n = w->judge.n_judged;

    for (size_t k = 0; k < n; k++) {
        const struct measure *m = &w->m[w->judged[k]];

        w->x[k] = of_runs ? m->between : m->within;
        w->y[k] = of_runs ? m->between_df : m->within_df;
    }
    return prior_fit(w->x, w->y, n, prior);
}

static void know(const struct judge *j, const struct measure *m, const struct prior *launches,
                 const struct prior *runs, struct known *k)
{
    double df = m->within_df, of_launches = df > 0 ? prior_moderate(launches, m->within, &df) : 0;

    k->variance = of_launches;
    k->df = df;
    if (m->by_runs) {
        k->df = m->between_df;
        k->variance =
            fmax(prior_moderate(runs, m->between, &k->df), of_launches * m->inverse_launches);
    }
    known_with(j, m, k, 0, k);
}

/* In a suite of several runs, cases that one run a side alone has (they are new, or were lost in the others): runs vary
 * for them, too. By how much is the other cases' word: the fit's, or without one the largest. */
static void lend_runs(struct work *w, const struct prior *runs)
{
    const struct measure *most = NULL;

    for (size_t k = 0; k < w->judge.n_judged; k++) {
        const struct measure *m = &w->m[w->judged[k]];

        if (m->by_runs && (!most || m->between > most->between))
            most = m;
    }
    for (size_t k = 0; most && k < w->judge.n_judged; k++) {
        struct measure *m = &w->m[w->judged[k]];

        if (m->by_runs)
            continue;
        m->by_runs = true;
        m->units_a = m->units_b = 1;
        m->fewest = m->paired ? 1 : m->fewest;
        m->between = runs->freedom > 0 ? 0 : most->between;
        m->between_df = runs->freedom > 0 ? 0 : most->between_df;
    }
}

static int know_all(struct work *w, struct decide_overall *overall)
{
    struct prior launches, runs;
    int err = fit(w, false, &launches);

    err = err ? err : fit(w, true, &runs);
    if (err)
        return err;
    if (!(runs.freedom > 0))
        few_share(w->m, w->judged, w->judge.n_judged, &launches, w->x);
    lend_runs(w, &runs);
    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];

        know(&w->judge, &w->m[i], &launches, &runs, &w->known[i]);
        overall->by_runs |= w->m[i].by_runs;
    }
    const struct prior *told = runs.freedom > 0 ? &runs : &launches;

    overall->prior_freedom = told->freedom > 0 ? told->freedom : NAN;
    return 0;
}

/* The normal score of t: how unlikely, where the tails' degrees of freedom no longer matter. */
static double normal_score(double t, double df)
{
    double p = fmin(fmax(dist_t_cdf(t, df), 1e-12), 1 - 1e-12);

    return dist_normal_quantile(p);
}

/* Of the cases with one run a side: how much more their changes differ than launches do. */
static void unrest_ask(struct work *w, struct decide_overall *overall)
{
    size_t n = 0;

    for (size_t k = 0; k < w->judge.n_judged; k++) {
        if (!w->m[w->judged[k]].by_runs)
            w->x[n++] = w->m[w->judged[k]].d;
    }
    if (n < DECIDE_UNREST_CASES)
        return;
    double middle = stats_median(w->x, n);

    n = 0;
    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];

        if (!w->m[i].by_runs)
            w->y[n++] =
                fabs(normal_score((w->m[i].d - middle) / w->known[i].error, w->known[i].freedom));
    }
    overall->unrest = w->judge.unrest = fmax(1, unrest_scale(w->y, n));
    w->judge.most_df = UNREST_FREEDOM * (double)n;
    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];

        known_with(&w->judge, &w->m[i], &w->known[i], 0, &w->known[i]);
    }
}

static void case_fill(const struct work *w, struct quantiles *q, size_t i, struct decide_case *c)
{
    const struct known *k = &w->known[i];
    double d = w->m[i].d, half = k->error * quantile(q, 0.5 + w->judge.confidence / 2, k->freedom);

    c->by_runs = w->m[i].by_runs;
    c->by_pairs = w->m[i].paired;
    c->error = k->error;
    c->freedom = k->freedom;
    c->low = exp(d - half);
    c->high = exp(d + half);
    c->p_worse = dist_t_cdf(d / k->error, k->freedom);
    c->p_better = dist_t_cdf(-d / k->error, k->freedom);
}

/* Proof over the suite, on one side. */
static int prove(struct work *w, struct decide_case *cases, bool loss)
{
    size_t n = w->judge.n_judged;
    int err;

    for (size_t k = 0; k < n; k++) {
        const struct decide_case *c = &cases[w->judged[k]];

        /* Held against the best of several by chance, everything looks like a loss. */
        w->x[k] = loss ? c->p_worse * (c->best_of > 1 ? c->best_of : 1) : c->p_better;
    }
    err = holm(w->x, n, w->judge.alarm_level, w->proven);
    for (size_t k = 0; !err && k < n; k++)
        cases[w->judged[k]].proven |= w->proven[k];
    return err;
}

static void case_decide(const struct work *w, size_t i, struct decide_case *c)
{
    double d = w->m[i].d, edge = -log1p(-c->margin);
    bool few = c->proven && is_few(&w->judge, &w->m[i], 0) && !(fabs(d) > w->judge.widest);

    c->proven = c->proven && !few;
    c->beyond = log(c->high) < -edge || log(c->low) > edge;
    if (is_equivalent(&w->judge, d, c->margin, &w->known[i]))
        c->decision = DECISION_EQUIVALENT;
    else if (c->proven)
        c->decision = d < 0 ? DECISION_WORSE : DECISION_BETTER;
    else if (few)
        c->obstacle = OBSTACLE_FEW;
}

static void count(const struct decide_case *cases, size_t n, struct decide_overall *overall)
{
    size_t counts[4] = {0};

    for (size_t i = 0; i < n; i++)
        counts[cases[i].decision]++;
    overall->n_equivalent = counts[DECISION_EQUIVALENT];
    overall->n_better = counts[DECISION_BETTER];
    overall->n_worse = counts[DECISION_WORSE];
    overall->n_inconclusive = counts[DECISION_INCONCLUSIVE];
    overall->decision = overall->n_worse                    ? DECISION_WORSE
                        : overall->n_inconclusive || n == 0 ? DECISION_INCONCLUSIVE
                        : overall->n_better                 ? DECISION_BETTER
                                                            : DECISION_EQUIVALENT;
}

static int judge_all(struct work *w, struct decide_case *cases)
{
    struct quantiles q = {.next = 0};
    int err;

    for (size_t k = 0; k < w->judge.n_judged; k++)
        case_fill(w, &q, w->judged[k], &cases[w->judged[k]]);
    err = prove(w, cases, true);
    err = err ? err : prove(w, cases, false);
    for (size_t k = 0; !err && k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];

        case_decide(w, i, &cases[i]);
        power_fill(&w->judge, &w->m[i], &w->known[i], &q, &cases[i]);
    }
    return err;
}

int decide_suite(struct decide_case *cases, size_t n, const struct decide_options *options,
                 struct decide_overall *overall)
{
    struct work w = {0};
    int err;

    *overall = (struct decide_overall){.unrest = NAN, .prior_freedom = NAN};
    err = options_read(options, &w.judge);
    err = err ? err : work_init(&w, n);
    err = err ? err : measure_all(&w, cases, n);
    err = err ? err : know_all(&w, overall);
    if (!err && options->unchanged)
        unrest_ask(&w, overall);
    err = err ? err : judge_all(&w, cases);
    overall->n_judged = w.judge.n_judged;
    count(cases, err ? 0 : n, overall);
    work_release(&w);
    return err;
}
