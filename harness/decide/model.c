/* SPDX-License-Identifier: Apache-2.0 */
/* From the repetitions of a suite to variance components: see model.h. */
#include "harness/decide/model.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"

/* Values are written with 9 digits: repetitions that agree to the last one have this variance. */
#define VARIANCE_LEAST 1e-18

/* ---- How variances scatter over a suite ---- */

#define PRIOR_CASES 10   /* fewer give no fit */
#define FEW_FREEDOM 1.25 /* of fewer: so many degrees at most are lent, and this share of theirs */
#define NORMAL      1e9  /* degrees of freedom */
#define FEW_SHARE   0.5
#define EM_ROUNDS   30

/* The last is as good as infinite. */
static const double freedoms[] = {0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 1e4};
/* Of the trend's two parts the first, as a multiple of the median base. */
static const double adds[] = {0, 0.1, 0.3, 1, 3, 10, 100};
#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

struct fit {
    const struct variance *x;
    const double *base;
    double *scaled; /* df times the variance over (add + base); 0 where df is 0 */
    size_t n;
    double add; /* the trend is times (add + base) */
};

static void set_add(struct fit *f, double add)
{
    f->add = add;
    for (size_t i = 0; i < f->n; i++)
        f->scaled[i] = f->x[i].df > 0 ? f->x[i].df * (f->x[i].value / (add + f->base[i])) : 0;
}

/* The likeliest factor for these degrees of freedom: the fixed point of a weighted mean (EM). */
static double best_times(const struct fit *f, double freedom)
{
    double times = 0;

    for (int round = 0; round < EM_ROUNDS; round++) {
        double above = 0, below = 0, before = times;

        for (size_t i = 0; i < f->n; i++) {
            double df = f->x[i].df > 0 ? f->x[i].df : 0, scaled = f->scaled[i];

            above += before > 0 ? scaled * (df + freedom) * before / (freedom * before + scaled)
                                : scaled;
            below += df;
        }
        times = above / below;
        if (fabs(times - before) < 1e-3 * times)
            break;
    }
    return times;
}

static double log_likelihood(const struct fit *f, double freedom, double times)
{
    double sum = 0, of_df = NAN, gammas = 0;

    for (size_t i = 0; i < f->n; i++) {
        double df = f->x[i].df, ratio = f->x[i].value / (times * (f->add + f->base[i]));

        if (!(df > 0))
            continue;
        if (df != of_df) {
            of_df = df;
            int sign;
            gammas = lgamma_r((df + freedom) / 2, &sign) - lgamma_r(df / 2, &sign) -
                     lgamma_r(freedom / 2, &sign) + df / 2 * log(df / freedom);
        }
        sum += gammas + df / 2 * log(ratio) - (df + freedom) / 2 * log1p(df * ratio / freedom);
    }
    return sum;
}

/* The likeliest, or the lightest tail that is within `alike` of it in log likelihood. */
static void fit_best(struct fit *f, double middle, double alike, struct prior *out)
{
    double best[N_OF(freedoms)], most = -INFINITY;
    struct prior at[N_OF(freedoms)] = {{0}};

    for (size_t k = 0; k < N_OF(freedoms); k++)
        best[k] = -INFINITY;
    for (size_t a = 0; a < N_OF(adds); a++) {
        set_add(f, adds[a] * middle);
        for (size_t k = 0; k < N_OF(freedoms); k++) {
            double times = best_times(f, freedoms[k]);
            double likelihood = log_likelihood(f, freedoms[k], times);

            if (!(likelihood > best[k]))
                continue;
            best[k] = likelihood;
            at[k] = (struct prior){.add = times * f->add, .times = times, .freedom = freedoms[k]};
            most = fmax(most, likelihood);
        }
    }
    bool chosen = false;
    for (size_t k = 0; k < N_OF(freedoms); k++)
        if (best[k] > -INFINITY && best[k] >= most - fabs(alike) && !(alike < 0 && chosen)) {
            *out = at[k];
            chosen = true;
        }
}

struct prior prior_fit(const struct variance *x, const double *base, size_t n, double alike,
                       double lend)
{
    struct fit f = {.x = x, .base = base, .scaled = xcalloc(n, sizeof(*f.scaled)), .n = n};
    struct prior out = {.most = INFINITY};
    double *known = xcalloc(n, sizeof(*known)), total = 0, largest = 0;
    size_t cases = 0;

    set_add(&f, 0);
    for (size_t i = 0; i < n; i++) {
        if (!(x[i].df > 0))
            continue;
        known[cases++] = base[i];
        total += x[i].df;
        largest = fmax(largest, x[i].df);
    }
    if (cases >= PRIOR_CASES) {
        fit_best(&f, stats_median(known, cases), alike, &out);
        out.most = total;
    } else if (cases && lend > 0) {
        out = (struct prior){0, cases > 1 ? best_times(&f, NORMAL) : 1, lend, INFINITY};
    } else if (cases > 1 && lend == 0) {
        out = (struct prior){.times = best_times(&f, NORMAL), .most = total};
        out.freedom = fmin(FEW_FREEDOM, FEW_SHARE * (total - largest));
    }
    free(f.scaled);
    free(known);
    return out;
}

struct variance prior_moderate(const struct prior *p, struct variance own, double base)
{
    double trend = p->add + p->times * base, together = p->freedom + own.df;

    if (!(together > 0))
        return own;
    return (struct variance){(p->freedom * trend + own.df * own.value) / together,
                             fmax(own.df, fmin(together, p->most))};
}

/* How often a case of the suite has such a variance, or a larger one. */
static double chance_above(const struct prior *p, struct variance own, double base)
{
    double x = own.df * own.value / (p->add + p->times * base);

    /* P(F(own.df, freedom) > value / trend) */
    return own.df > 0 && p->freedom > 0
               ? dist_beta_cdf(p->freedom / (p->freedom + x), p->freedom / 2, own.df / 2)
               : 1;
}

#define ONE_OF_THEM 10

/* A case that scatters as hardly any other of the suite could is not one of them: it is moderated
 * less (Phipson and others 2016, doi:10.1214/16-AOAS920). */
static struct variance moderate_robustly(const struct prior *p, struct variance own, double base,
                                         size_t n)
{
    struct prior less = *p;

    less.freedom *= fmin(1, ONE_OF_THEM * (double)n * chance_above(p, own, base));
    return prior_moderate(&less, own, base);
}

/* ---- A case as it is read ---- */

/* One side. */
struct half {
    double mean;        /* of its runs' means */
    double squares, df; /* of repetitions around their run's mean */
    double between;     /* squares of runs' means around theirs */
    double inverse, widest;
    size_t runs, fewest; /* repetitions, where it is one run */
};

static void half_read(const struct decide_side *side, struct run_mean *means, struct half *h)
{
    *h = (struct half){.fewest = SIZE_MAX};
    for (size_t r = 0; r < side->n; r++) {
        const struct decide_run *run = &side->runs[r];

        if (!run->n)
            continue;
        double mean = stats_log_mean(run->values, run->n), off = mean - h->mean;
        if (means)
            means[h->runs] = (struct run_mean){mean, run->n, r, run->role, run->boot, false};
        double squares = 0, low = INFINITY, high = -INFINITY;

        for (size_t i = 0; i < run->n; i++) {
            double x = log(run->values[i]);

            low = fmin(low, x);
            high = fmax(high, x);
            squares += (x - mean) * (x - mean);
        }
        h->widest = fmax(h->widest, high - low);
        h->squares += squares;
        h->df += (double)run->n - 1;
        h->inverse += 1 / (double)run->n;
        h->fewest = h->runs ? SIZE_MAX : run->n;
        h->mean += off / (double)++h->runs;
        h->between += off * (mean - h->mean);
    }
    if (h->runs)
        h->inverse /= (double)h->runs;
}

static enum decide_obstacle side_check(const struct decide_side *side)
{
    size_t n = 0;

    for (size_t r = 0; r < side->n; r++) {
        for (size_t i = 0; i < side->runs[r].n; i++)
            if (!isfinite(side->runs[r].values[i]) || !(side->runs[r].values[i] > 0))
                return OBSTACLE_BAD_VALUE;
        n += side->runs[r].role == DECIDE_LEVEL ? side->runs[r].n : 0;
    }
    return n ? OBSTACLE_NONE : OBSTACLE_NO_VALUE;
}

/* ---- Pairs: what varies are differences ---- */

#define ORDER_LEAST 3 /* pairs of repetitions from which on who went first is taken out */

static bool are_pairs(const struct decide_case *c)
{
    if (!c->paired || c->a.n != c->b.n)
        return false;
    for (size_t r = 0; r < c->a.n; r++)
        if (c->a.runs[r].n != c->b.runs[r].n)
            return false;
    return true;
}

/* What differences came to. */
struct changes {
    size_t n;
    double mean, squares, low, high; /* squares around the mean */
};

static void add_change(struct changes *all, double x)
{
    double off = x - all->mean;

    all->low = all->n ? fmin(all->low, x) : x;
    all->high = all->n ? fmax(all->high, x) : x;
    all->mean += off / (double)++all->n;
    all->squares += off * (x - all->mean);
}

/* Who goes second may always lose: the mean of both orders' changes is free of that. Sets df, and
 * adds to *unbalance how the two orders' numbers widen the error. */
static struct changes pair_read(const struct decide_run *a, const struct decide_run *b, double *df,
                                double *unbalance)
{
    struct changes all = {.n = 0}, by[2] = {{.n = 0}, {.n = 0}};

    for (size_t i = 0; i < a->n; i++) {
        double x = log(b->values[i] / a->values[i]);

        add_change(&all, x);
        if (a->went_first)
            add_change(&by[a->went_first[i]], x);
    }
    *df = (double)all.n - 1;
    if (a->n < ORDER_LEAST || !by[0].n || !by[1].n) {
        *unbalance += 1;
        return all;
    }
    *df -= 1;
    *unbalance += (double)a->n / 4 * (1 / (double)by[0].n + 1 / (double)by[1].n);
    all.mean = (by[0].mean + by[1].mean) / 2;
    all.squares = by[0].squares + by[1].squares;
    all.low = all.mean + fmin(by[0].low - by[0].mean, by[1].low - by[1].mean);
    all.high = all.mean + fmax(by[0].high - by[0].mean, by[1].high - by[1].mean);
    return all;
}

/* Half of a difference's variance is a repetition's, or a run's, so that all else is as without
 * pairs. */
static void pairs_read(const struct decide_case *c, struct measure *m, struct half *a)
{
    struct changes runs = {.n = 0}, last = {.n = 0};
    double squares = 0, all_df = 0, unbalance = 0;

    for (size_t r = 0; r < c->a.n; r++) {
        double df;

        if (!c->a.runs[r].n)
            continue;
        last = pair_read(&c->a.runs[r], &c->b.runs[r], &df, &unbalance);
        squares += last.squares;
        all_df += df;
        m->runs[runs.n] = (struct run_mean){.mean = -last.mean, .n = last.n, .at = r};
        add_change(&runs, last.mean);
    }
    m->paired = true;
    m->n = m->n_b = runs.n;
    m->b = 0;
    m->squares_b = 0;
    m->unbalance = unbalance / (double)runs.n;
    m->widest = runs.n > 1 ? runs.high - runs.low : last.high - last.low;
    m->fewest = runs.n > 1 ? runs.n : last.n;
    a->squares = squares / 2;
    a->df = all_df;
}

/* ---- The resolution of values that were rounded ---- */

#define DIGITS_LEAST 1e-7 /* of the largest value: rows have nine digits */
#define STEP_MOST    0.05
#define SPAN_MOST    4 /* values that are farther apart have no step in common to speak of */
#define TIED         3 /* times that each value is there in the mean */

/*
 * The step that values were rounded to, as difference of logarithms: where each value is there TIED
 * times in the mean, the smallest one between two of them (a rate of rounded times has no step in
 * common); else the step that all differences are multiples of. Two values may be counts, or modes:
 * they have no step larger than STEP_MOST. scratch: room for all values of the case.
 */
static double resolution_of(const struct decide_case *c, double *scratch)
{
    const struct decide_side *sides[2] = {&c->a, &c->b};
    double step = 0;
    size_t n = 0, different = 1;

    for (int s = 0; s < 2; s++)
        for (size_t r = 0; r < sides[s]->n; r++) {
            const struct decide_run *run = &sides[s]->runs[r];

            if (run->n)
                memcpy(scratch + n, run->values, run->n * sizeof(*scratch));
            n += run->n;
        }
    qsort(scratch, n, sizeof(*scratch), stats_ascending);
    double least = DIGITS_LEAST * scratch[n - 1], gap = INFINITY;

    for (size_t i = 1; i < n; i++) {
        double next = scratch[i] - scratch[i - 1];

        if (!(next > least))
            continue;
        different++;
        gap = fmin(gap, log(scratch[i] / scratch[i - 1]));
        /* The largest step that both are multiples of (Euclid); below `least` there is none. */
        double y = fmin(next, step);
        double x = fmax(next, step);
        while (y > least) {
            double rest = fabs(remainder(x, y));

            x = y;
            y = rest;
        }
        step = x;
    }
    if (different == 2)
        return fmin(gap, STEP_MOST);
    if (different > 2 && TIED * different <= n)
        return gap;
    return scratch[n - 1] > SPAN_MOST * scratch[0] ? 0 : log1p(step / scratch[0]);
}

/* ---- Runs that lie apart, and the spread of the others ---- */

#define STRANGE_LEVEL 0.0005 /* of all runs of a case */
#define STRANGE_LEAST 3      /* runs */

/* A variance by the median absolute deviation, with what makes its mean right for few values and
 * its degrees of freedom (both by simulation of normal values, to 3 %). */
static struct variance variance_by_mad(double *x, size_t n, double *middle)
{
    double few = n % 2 ? 2.8 : 6;

    *middle = stats_median(x, n);
    for (size_t i = 0; i < n; i++)
        x[i] = fabs(x[i] - *middle);
    double mad = STATS_MAD_TO_SD * stats_median(x, n);
    return (struct variance){mad * mad * (1 + few / (double)(n * n)), 0.39 * (double)(n - 1)};
}

static size_t runs_of(const struct measure *m, enum decide_role role, double *x)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        if (m->runs[i].role == role && !m->runs[i].strange)
            x[n++] = m->runs[i].mean;
    return n;
}

static double least_variance(const struct measure *m)
{
    return fmax(VARIANCE_LEAST, m->resolution * m->resolution / 12);
}

static double floor_of(const struct measure *m)
{
    return fmax(m->w_a, least_variance(m));
}

/* Marks the run farthest off, if no normal run would be so far. */
static bool mark_strange(struct measure *m, enum decide_role role, struct variance spread,
                         double middle, size_t n)
{
    struct run_mean *far = NULL;
    double error = sqrt(spread.value * (1 + M_PI / 2 / (double)(n - 1))) + m->resolution;

    for (size_t i = 0; i < m->n; i++) {
        struct run_mean *r = &m->runs[i];

        if (r->role == role && !r->strange &&
            (!far || fabs(r->mean - middle) > fabs(far->mean - middle)))
            far = r;
    }
    if (!far)
        return false;
    far->strange =
        dist_t_cdf(-fabs(far->mean - middle) / error, spread.df) < STRANGE_LEVEL / 2 / (double)n;
    return far->strange;
}

static void leave_out_strange(struct model *m, enum decide_role role)
{
    double *x = m->z;

    for (size_t k = 0; k < m->n_judged; k++) {
        struct measure *c = &m->all[m->judged[k]];
        size_t n = c->paired ? 0 : runs_of(c, role, x);
        double middle;

        m->x[k] = (struct variance){0, 0};
        m->base[k] = floor_of(c);
        if (n >= STRANGE_LEAST)
            m->x[k] = variance_by_mad(x, n, &middle);
        m->x[k].value = fmax(m->x[k].value, m->base[k]);
    }
    const struct prior prior = prior_fit(m->x, m->base, m->n_judged, 0, 0);
    for (size_t k = 0; k < m->n_judged; k++) {
        struct measure *c = &m->all[m->judged[k]];
        size_t n = c->paired ? 0 : runs_of(c, role, x), most = n / 4 ? n / 4 : 1;
        double middle;

        if (n < STRANGE_LEAST)
            continue;
        struct variance own = variance_by_mad(x, n, &middle);
        own.value = fmax(own.value, m->base[k]);
        own = prior_moderate(&prior, own, m->base[k]);
        for (size_t out = 0; out < most && mark_strange(c, role, own, middle, n); out++)
            continue;
    }
}

/* Squares of runs' means around those of their boot, of each role; *df. */
static double squares_of_runs(const struct measure *m, double *df)
{
    double squares = 0;

    *df = 0;
    for (size_t i = 0; i < m->n; i++) {
        const struct run_mean *first = &m->runs[i];
        struct changes group = {.n = 0};

        for (size_t k = 0; k < m->n; k++) {
            const struct run_mean *r = &m->runs[k];
            bool same =
                !r->strange && r->role == first->role && (!m->boot || r->boot == first->boot);

            if (same && k < i)
                break; /* it was counted by that one */
            if (same)
                add_change(&group, r->mean);
        }
        if (first->strange || !group.n)
            continue;
        squares += group.squares;
        *df += (double)group.n - 1;
    }
    return squares;
}

/* v, and whether any case has a spread of its own within a boot: else boots cannot be told from
 * runs, and are left out of account. */
static void spread_runs(struct model *m)
{
    double known = 0;

    for (int with_boots = 1; with_boots >= 0 && !(known > 0); with_boots--)
        for (size_t k = 0; k < m->n_judged; k++) {
            struct measure *c = &m->all[m->judged[k]];

            if (!with_boots)
                c->boot = 0;
            double df, squares = squares_of_runs(c, &df);
            df += c->paired ? 0 : (double)c->n_b - 1;
            squares = (squares + c->squares_b) / (c->paired ? 2 : 1);
            m->base[k] = floor_of(c);
            m->x[k] = (struct variance){df > 0 ? fmax(squares / df, VARIANCE_LEAST) : 0, df};
            c->own_runs = df;
            c->own_squares = squares;
            known += df;
        }
    m->of_runs = prior_fit(m->x, m->base, m->n_judged, 0, 0);
    for (size_t k = 0; k < m->n_judged; k++) {
        struct measure *c = &m->all[m->judged[k]];

        c->v = moderate_robustly(&m->of_runs, m->x[k], m->base[k], m->n_judged);
        c->by_runs = c->v.df > 0;
        if (!c->by_runs)
            c->v = (struct variance){c->w_a, c->s_a.df};
        c->v.value = fmax(c->v.value, floor_of(c));
    }
}

struct variance suite_model_v_without(const struct model *m, const struct measure *c, double off,
                                      size_t n)
{
    double left = fmax(0, c->own_squares - off * off * (double)n / ((double)n - 1));
    double df = c->own_runs - 1;
    struct variance own = {df > 0 ? fmax(left / df, VARIANCE_LEAST) : 0, df};
    struct variance v = moderate_robustly(&m->of_runs, own, floor_of(c), m->n_judged);

    v.value = fmax(v.value, floor_of(c));
    return v;
}

/* ---- Boots ---- */

/* Calls for each boot of these runs: its number of runs and mean. */
struct boot {
    unsigned boot;
    struct changes runs;
};

/* The boots of A's runs of a role (of all with role -1), room for m->n of them. */
static size_t boots_of(const struct measure *m, int role, struct boot *boots)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++) {
        const struct run_mean *r = &m->runs[i];
        size_t k = 0;

        if (r->strange || (role >= 0 && (int)r->role != role))
            continue;
        while (k < n && m->boot && boots[k].boot != r->boot)
            k++;
        if (k == n)
            boots[n++] = (struct boot){.boot = m->boot ? r->boot : 0};
        add_change(&boots[k].runs, r->mean);
    }
    return n;
}

static void spread_boots(struct model *m, struct boot *boots)
{
    for (size_t k = 0; k < m->n_judged; k++) {
        const struct measure *c = &m->all[m->judged[k]];
        size_t n = c->boot ? boots_of(c, -1, boots) : 0;
        struct changes means = {.n = 0};
        double inverse = 0;

        for (size_t b = 0; b < n; b++) {
            add_change(&means, boots[b].runs.mean);
            inverse += 1 / (double)boots[b].runs.n / (double)n;
        }
        m->base[k] = c->v.value * (n ? inverse : 1);
        m->x[k] = (struct variance){0, n > 1 ? (double)n - 1 : 0};
        if (n > 1)
            m->x[k].value = fmax(means.squares / (double)(n - 1), VARIANCE_LEAST);
    }
    const struct prior prior = prior_fit(m->x, m->base, m->n_judged, 0, 0);
    for (size_t k = 0; k < m->n_judged; k++) {
        struct measure *c = &m->all[m->judged[k]];

        c->boots = moderate_robustly(&prior, m->x[k], m->base[k], m->n_judged);
        c->boots.value = fmax(0, c->boots.value - m->base[k]);
        c->others_boots = prior_moderate(&prior, (struct variance){0, 0}, m->base[k]);
        c->others_boots.value = fmax(0, c->others_boots.value - m->base[k]);
    }
}

/* A's level as B's machine is to have it: the mean of the runs of B's boot, and that of the other
 * boots, weighted by the inverse of their variances (the best linear unbiased prediction). */
static struct level level_of(const struct measure *m, enum decide_role role, struct boot *boots)
{
    struct level l = {.runs = 0};
    struct changes others = {.n = 0};
    double inverse = 0, v = m->v.value, same = NAN, by_same = 0;
    size_t n = boots_of(m, (int)role, boots);

    for (size_t b = 0; b < n; b++) {
        l.runs += boots[b].runs.n;
        l.boots++;
        if (!m->boot || boots[b].boot == m->boot) {
            same = boots[b].runs.mean;
            by_same = 1 / (double)boots[b].runs.n;
            continue;
        }
        add_change(&others, boots[b].runs.mean);
        inverse += 1 / (double)boots[b].runs.n;
    }
    if (!others.n) {
        l.mean = same;
        l.by_v = by_same;
        return l;
    }
    double n_o = (double)others.n, by_others = inverse / n_o / n_o, by_boots = 1 + 1 / n_o;
    double far = m->boots.df > 0 ? m->boots.value * by_boots + v * by_others : INFINITY;
    double near = isnan(same) ? INFINITY : v * by_same;
    double part = isnan(same) ? 1 : isinf(far) ? 0 : near / (near + far); /* of the others */

    l.mean = (part > 0 ? part * others.mean : 0) + (part < 1 ? (1 - part) * same : 0);
    l.by_v = part * part * by_others + (1 - part) * (1 - part) * by_same;
    l.by_boots = part * part * by_boots;
    l.new_boot = isnan(same) && !(m->boots.df > 0);
    return l;
}

/* ---- All of it ---- */

static void allocate(struct model *m, const struct decide_case *cases, size_t n)
{
    size_t runs = 1, most = 16;

    for (size_t i = 0; i < n; i++) {
        size_t values = 0;

        for (int s = 0; s < 2; s++) {
            const struct decide_side *side = s ? &cases[i].b : &cases[i].a;

            for (size_t r = 0; r < side->n; r++)
                values += side->runs[r].n;
        }

        runs += cases[i].a.n;
        most = values > most ? values : most;
    }
    most = most > n ? most : n;
    m->n = n;
    m->all = xcalloc(n, sizeof(*m->all));
    m->judged = xcalloc(n, sizeof(*m->judged));
    m->runs = xcalloc(runs, sizeof(*m->runs));
    m->x = xcalloc(n, sizeof(*m->x));
    m->base = xcalloc(n, sizeof(*m->base));
    m->z = xcalloc(most, sizeof(*m->z));
    m->df = xcalloc(n, sizeof(*m->df));
    m->proven = xcalloc(n, sizeof(*m->proven));
}

void suite_model_release(struct model *m)
{
    free(m->all);
    free(m->judged);
    free(m->runs);
    free(m->x);
    free(m->base);
    free(m->z);
    free(m->df);
    free(m->proven);
    *m = (struct model){.n = 0};
}

static size_t repetitions_of(const struct decide_side *side)
{
    size_t n = 0;

    for (size_t r = 0; r < side->n; r++)
        n += side->runs[r].n;
    return n;
}

/* Reads a case; s_a and s_b are its own. */
static enum decide_obstacle read_case(struct model *model, const struct decide_case *c,
                                      struct measure *m, bool in_time)
{
    enum decide_obstacle a = side_check(&c->a), b = side_check(&c->b);
    struct half of_a, of_b;

    if (a || b)
        return a == OBSTACLE_BAD_VALUE || b == OBSTACLE_BAD_VALUE ? OBSTACLE_BAD_VALUE
                                                                  : OBSTACLE_NO_VALUE;
    half_read(&c->a, m->runs, &of_a);
    half_read(&c->b, NULL, &of_b);
    m->sign = c->higher_is_better ? 1 : -1;
    m->n = of_a.runs;
    m->n_b = of_b.runs;
    m->b = of_b.mean;
    m->squares_b = of_b.between;
    m->inverse_a = of_a.inverse;
    m->inverse_b = of_b.inverse;
    m->widest = fmax(of_a.widest, of_b.widest);
    m->fewest = of_a.fewest < of_b.fewest ? of_a.fewest : of_b.fewest;
    m->unbalance = 1;
    if (are_pairs(c))
        pairs_read(c, m, &of_a);
    /* B's boot, where all runs of the case tell theirs and B is one run. */
    unsigned boot = 0;

    for (size_t r = 0; r < c->b.n; r++)
        if (c->b.runs[r].n)
            boot = m->n_b == 1 ? c->b.runs[r].boot : 0;
    for (size_t i = 0; i < m->n; i++)
        boot = m->runs[i].boot ? boot : 0;
    m->boot = in_time && !m->paired ? boot : 0;
    /* The side of more repetitions stands for the case; of as many, both. */
    double of_one = of_a.df >= of_b.df ? of_a.squares : 0;
    double squares = of_one + (of_b.df >= of_a.df ? of_b.squares : 0);
    double df = (of_a.df >= of_b.df ? of_a.df : 0) + (of_b.df >= of_a.df ? of_b.df : 0);

    if (m->paired) {
        squares = of_a.squares;
        df = of_a.df;
    }
    m->s = (struct variance){df > 0 ? squares / df : 0, df};
    m->s_df = fmax(of_a.df, of_b.df);
    m->resolution = resolution_of(c, model->z);
    if (4 * m->s.value > m->resolution * m->resolution)
        m->resolution = 0; /* what scatters by half a step is as good as not rounded */
    m->s_a = (struct variance){of_a.df > 0 ? of_a.squares / of_a.df : 0, of_a.df};
    m->s_b =
        m->paired ? m->s_a : (struct variance){of_b.df > 0 ? of_b.squares / of_b.df : 0, of_b.df};
    if (c->alone_is_open && (repetitions_of(&c->a) == 1 || repetitions_of(&c->b) == 1))
        return OBSTACLE_ONE_LAUNCH;
    return of_a.df > 0 || of_b.df > 0 || of_a.runs > 1 || of_b.runs > 1 ? OBSTACLE_NONE
                                                                        : OBSTACLE_ONE_LAUNCH;
}

#define MODES_LEVEL 0.05
#define SIDE_LENDS  4 /* a side's repetitions scatter as the case's, but for a factor */
#define TAILS_ALIKE 1 /* some cases may be noisier tonight: the heaviest tail that is likely */

/* That of one side, against the case's. */
static void moderate_side(struct model *m, bool of_b)
{
    for (size_t k = 0; k < m->n_judged; k++) {
        const struct measure *c = &m->all[m->judged[k]];

        m->x[k] = of_b ? c->s_b : c->s_a;
        m->x[k].value = fmax(m->x[k].value, least_variance(c));
        m->base[k] = c->s.value;
    }
    const struct prior prior = prior_fit(m->x, m->base, m->n_judged, -TAILS_ALIKE, SIDE_LENDS);
    for (size_t k = 0; k < m->n_judged; k++) {
        struct measure *c = &m->all[m->judged[k]];
        struct variance s = moderate_robustly(&prior, m->x[k], m->base[k], m->n_judged);
        bool modes = chance_above(&prior, m->x[k], m->base[k]) < MODES_LEVEL;

        /* Few repetitions may all have met one of two modes: that they agree makes nothing surer.
         */
        if (m->x[k].df < c->s_df)
            s.value = fmax(s.value, c->s.value);
        *(of_b ? &c->s_b : &c->s_a) = s.df > 0 && !c->paired ? s : c->s;
        *(of_b ? &c->modes_b : &c->modes_a) = modes ? fmax(0, m->x[k].value - s.value) : 0;
    }
}

/* A case of which nothing tells how it scatters. */
static void drop_unknown(struct model *m, struct decide_case *cases)
{
    size_t n = 0;

    for (size_t k = 0; k < m->n_judged; k++) {
        size_t i = m->judged[k];

        if (m->all[i].v.df > 0)
            m->judged[n++] = i;
        else
            cases[i].obstacle = OBSTACLE_ONE_LAUNCH;
    }
    m->n_judged = n;
}

void suite_model_make(struct model *m, struct decide_case *cases, size_t n, bool in_time)
{
    size_t most = 1;

    allocate(m, cases, n);
    struct run_mean *runs = m->runs;
    for (size_t i = 0; i < n; i++) {
        m->all[i].runs = runs;
        runs += cases[i].a.n;
        most = cases[i].a.n > most ? cases[i].a.n : most;
        cases[i].obstacle = read_case(m, &cases[i], &m->all[i], in_time);
        if (cases[i].obstacle == OBSTACLE_NONE)
            m->judged[m->n_judged++] = i;
    }
    /* The variance of repetitions in the case as a whole, against those of the other cases. */
    for (size_t k = 0; k < m->n_judged; k++) {
        const struct measure *c = &m->all[m->judged[k]];

        m->x[k] = c->s;
        m->x[k].value = fmax(c->s.value, least_variance(c));
        m->base[k] = 1;
    }
    const struct prior prior = prior_fit(m->x, m->base, m->n_judged, -TAILS_ALIKE, -1);
    for (size_t k = 0; k < m->n_judged; k++)
        m->all[m->judged[k]].s = moderate_robustly(&prior, m->x[k], m->base[k], m->n_judged);
    moderate_side(m, false);
    moderate_side(m, true);
    for (size_t k = 0; k < m->n_judged; k++) {
        struct measure *c = &m->all[m->judged[k]];

        c->w_a = c->s_a.value * c->inverse_a * c->unbalance;
        c->w_b = c->s_b.value * c->inverse_b * c->unbalance;
    }
    leave_out_strange(m, DECIDE_LEVEL);
    leave_out_strange(m, DECIDE_ANCHOR);
    spread_runs(m);
    drop_unknown(m, cases);
    struct boot *boots = xcalloc(most, sizeof(*boots));
    spread_boots(m, boots);
    for (size_t k = 0; k < m->n_judged; k++) {
        struct measure *c = &m->all[m->judged[k]];

        c->level = level_of(c, DECIDE_LEVEL, boots);
        c->anchor = level_of(c, DECIDE_ANCHOR, boots);
    }
    free(boots);
}
