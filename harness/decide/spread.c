/* SPDX-License-Identifier: Apache-2.0 */
/* From the launches of a case to its change and to what is seen to vary. */
#include "harness/decide/spread.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/stats.h"

/* Values are written with 9 digits: launches that agree to the last one have this variance, not 0.
 */
#define VARIANCE_LEAST 1e-18

#define BEST_SHARE  0.6 /* of a run's launches: three of five */
#define RANKED_MOST 64  /* launches; of more the first ones are ranked */

/* One side as it is read. */
struct half {
    double mean;                /* of its runs' means that are its level */
    double low, high;           /* the outermost of the last `best_of` of these; of all without */
    double anchor;              /* mean of its anchors' means */
    size_t runs, anchors;       /* that have a value; in all, with those that tell spread alone: */
    size_t all, launches;       /* launches of the last one that is its level */
    double squares, df;         /* of launches around their run's mean */
    double between, between_df; /* squares of runs' means around their block's */
    double inverse, widest;     /* sum of 1 / launches; see struct measure */
};

static bool has_logarithm(double x)
{
    return isfinite(x) && x > 0;
}

/* Ranked: how far launch i is from the best one; BEST_SHARE of all launches count, the last one of
 * them in part. */
struct ranked {
    double x[RANKED_MOST];
    size_t n;
    double count; /* launches that count */
};

static void rank(const struct decide_run *run, struct ranked *r)
{
    r->n = run->n < RANKED_MOST ? run->n : RANKED_MOST;
    r->count = BEST_SHARE * (double)r->n;
    for (size_t i = 0; i < r->n; i++) {
        double x = log(run->values[i]);
        size_t k = i;

        for (; k > 0 && run->best * (x - r->x[k - 1]) > 0; k--)
            r->x[k] = r->x[k - 1];
        r->x[k] = x;
    }
}

static double ranked_mean(const struct ranked *r)
{
    double sum = 0;

    for (size_t i = 0; i < r->n; i++)
        sum += r->x[i] * fmax(0, fmin(1, r->count - (double)i));
    return sum / r->count;
}

/* A run's centre: of all its launches, or of its best ones. */
static double run_mean_of(const struct decide_run *run)
{
    struct ranked r;

    if (!run->best)
        return stats_log_mean(run->values, run->n);
    rank(run, &r);
    return ranked_mean(&r);
}

/*
 * What the launches of a run say of the variance of its mean, as squares and degrees of freedom of
 * one launch. Of a mean of the best ones it is that of a trimmed mean: launches that do not count
 * stand where the last one stands that does (Yuen 1974, doi:10.1093/biomet/61.1.165).
 */
static void add_ranked_squares(const struct decide_run *run, struct half *h)
{
    struct ranked r;
    double of = 0, squares = 0;

    rank(run, &r);
    size_t last = (size_t)ceil(r.count) - 1;

    for (size_t i = 0; i < r.n; i++)
        of += r.x[i < last ? i : last] / (double)r.n;
    for (size_t i = 0; i < r.n; i++)
        squares += pow(r.x[i < last ? i : last] - of, 2);
    if (last > 0) {
        h->squares += squares / ((double)r.n - 1) / (BEST_SHARE * BEST_SHARE) * (double)last;
        h->df += (double)last;
    }
}

static void run_read(const struct decide_run *run, double mean, struct half *h)
{
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; i < run->n; i++) {
        double x = log(run->values[i]);

        low = fmin(low, x);
        high = fmax(high, x);
        h->squares += run->best ? 0 : pow(x - mean, 2);
    }
    if (run->best)
        add_ranked_squares(run, h);
    else
        h->df += (double)run->n - 1;
    h->inverse += 1 / (double)run->n;
    h->widest = fmax(h->widest, high - low);
    h->all++;
}

static enum decide_obstacle side_check(const struct decide_side *side)
{
    size_t launches = 0;

    for (size_t r = 0; r < side->n; r++) {
        for (size_t i = 0; i < side->runs[r].n; i++) {
            if (!has_logarithm(side->runs[r].values[i]))
                return OBSTACLE_BAD_VALUE;
        }
        launches += side->runs[r].role == DECIDE_LEVEL ? side->runs[r].n : 0;
    }
    return launches ? OBSTACLE_NONE : OBSTACLE_NO_VALUE;
}

size_t spread_runs(const struct decide_side *side)
{
    size_t n = 0;

    for (size_t r = 0; r < side->n; r++)
        n += side->runs[r].n > 0;
    return n;
}

static size_t spread_means(const struct decide_side *side, struct run_mean *means)
{
    bool breaks = false;
    size_t n = 0;

    for (size_t r = 0; r < side->n; r++) {
        breaks |= side->runs[r].breaks;
        if (side->runs[r].n == 0)
            continue;
        means[n++] = (struct run_mean){run_mean_of(&side->runs[r]), breaks};
        breaks = false;
    }
    return n;
}

/* The stretch from `from` on without a break, and its first block: as even as they come out. */
static size_t block_end(const struct run_mean *means, size_t n, size_t from, size_t most)
{
    size_t end = from + 1;

    while (end < n && !means[end].breaks)
        end++;
    size_t length = end - from, blocks = (length + most - 1) / most;

    return from + length / blocks;
}

size_t spread_block(const struct run_mean *means, size_t n, size_t from, bool in_order,
                    struct block *b)
{
    size_t end = block_end(means, n, from, in_order ? SPREAD_BLOCK : SIZE_MAX / 2);

    *b = (struct block){.n = end - from};
    for (size_t i = from; i < end; i++) {
        double off = means[i].mean - b->mean;

        b->mean += off / (double)(i - from + 1);
        b->squares += off * (means[i].mean - b->mean);
    }
    return end;
}

static void read_blocks(const struct run_mean *means, size_t n, bool in_order, struct half *h)
{
    struct block b;

    for (size_t at = 0; at < n;) {
        at = spread_block(means, n, at, in_order, &b);
        h->between += b.squares;
        h->between_df += (double)b.n - 1;
    }
}

static void add_mean(double *mean, size_t *n, double x)
{
    *mean += (x - *mean) / (double)++*n;
}

/* The level, and the best of the last so many runs of it. */
static void read_levels(const struct decide_side *side, const struct run_mean *means,
                        unsigned best_of, struct half *h)
{
    size_t left = h->all;

    h->low = INFINITY;
    h->high = -INFINITY;
    for (size_t r = side->n; r-- > 0;) {
        const struct decide_run *run = &side->runs[r];
        double mean = run->n ? means[--left].mean : NAN;

        if (!run->n || run->role == DECIDE_SPREAD)
            continue;
        if (run->role == DECIDE_ANCHOR) {
            add_mean(&h->anchor, &h->anchors, mean);
            continue;
        }
        h->launches = h->runs ? h->launches : run->n;
        add_mean(&h->mean, &h->runs, mean);
        if (best_of && h->runs > best_of)
            continue;
        h->low = fmin(h->low, mean);
        h->high = fmax(h->high, mean);
    }
}

static void side_read(const struct decide_side *side, unsigned best_of, bool in_order,
                      struct run_mean *means, struct half *h)
{
    size_t n = spread_means(side, means), at = 0;

    *h = (struct half){0};
    for (size_t r = 0; r < side->n; r++)
        if (side->runs[r].n)
            run_read(&side->runs[r], means[at++].mean, h);
    read_blocks(means, n, in_order, h);
    read_levels(side, means, best_of, h);
}

/* Of a side whose runs are known to differ by so much, launches are not what matters. */
static size_t launches_of_one_run(const struct half *h)
{
    return h->runs == 1 && !(h->between_df > 0) ? h->launches : SIZE_MAX;
}

static double ratio_or_0(double above, double below)
{
    return below > 0 ? fmax(above / below, VARIANCE_LEAST) : 0;
}

static void combine(const struct half *a, const struct half *b, bool higher_is_better,
                    struct measure *m)
{
    double sign = higher_is_better ? 1 : -1;

    m->a = a->mean;
    m->b = b->mean;
    m->d = sign * (b->mean - a->mean);
    m->anchors = a->anchors;
    m->anchor_d = a->anchors ? sign * (b->mean - a->anchor) : NAN;
    m->between_df = a->between_df + b->between_df;
    m->by_runs = m->between_df > 0;
    m->units_a = m->by_runs ? a->runs : a->launches;
    m->units_b = m->by_runs ? b->runs : b->launches;
    m->within_df = a->df + b->df;
    m->within = ratio_or_0(a->squares + b->squares, m->within_df);
    m->between = ratio_or_0(a->between + b->between, m->between_df);
    m->inverse_launches = (a->inverse + b->inverse) / (double)(a->all + b->all);
    m->widest = fmax(a->widest, b->widest);
    m->unbalance = 1;
    size_t few_a = launches_of_one_run(a), few_b = launches_of_one_run(b);

    m->fewest = few_a < few_b ? few_a : few_b;
}

/* Every run of A has its partner, and as many launches as that. */
static bool are_pairs(const struct decide_case *c)
{
    if (!c->paired || c->best_of || c->a.n != c->b.n)
        return false;
    for (size_t r = 0; r < c->a.n; r++)
        if (c->a.runs[r].n != c->b.runs[r].n)
            return false;
    return true;
}

/* What differences, or means of them, came to. */
struct changes {
    size_t n;
    double mean, squares, low, high; /* squares around the mean */
    double df,
        unbalance; /* of the squares; the error is that of n launches times the root of this */
};

static void add_change(struct changes *all, double x)
{
    double off = x - all->mean;

    all->low = all->n ? fmin(all->low, x) : x;
    all->high = all->n ? fmax(all->high, x) : x;
    all->mean += off / (double)++all->n;
    all->squares += off * (x - all->mean);
}

/* Who goes second may always lose: half of the change from either order is free of that. */
static bool read_orders(const struct decide_run *a, const struct decide_run *b, struct changes *all)
{
    struct changes by[2] = {{.n = 0}, {.n = 0}};

    if (!a->went_first || a->n < ORDER_LEAST)
        return false;
    for (size_t i = 0; i < a->n; i++)
        add_change(&by[a->went_first[i]], log(b->values[i] / a->values[i]));
    if (!by[0].n || !by[1].n)
        return false;
    double low = fmin(by[0].low - by[0].mean, by[1].low - by[1].mean);
    double high = fmax(by[0].high - by[0].mean, by[1].high - by[1].mean);

    *all = (struct changes){.n = a->n,
                            .mean = (by[0].mean + by[1].mean) / 2,
                            .squares = by[0].squares + by[1].squares,
                            .df = (double)a->n - 2};
    all->low = all->mean + low;
    all->high = all->mean + high;
    all->unbalance = (double)a->n / 4 * (1 / (double)by[0].n + 1 / (double)by[1].n);
    return true;
}

static struct changes launches_read(const struct decide_run *a, const struct decide_run *b)
{
    struct changes all = {.n = 0};

    if (read_orders(a, b, &all))
        return all;
    for (size_t i = 0; i < a->n; i++)
        add_change(&all, log(b->values[i] / a->values[i]));
    all.df = (double)all.n - 1;
    all.unbalance = 1;
    return all;
}

/* Launches that stood next to each other share what drifts, and so do the runs that they are of:
 * only their differences vary, from launch to launch and, of several pairs of runs, from pair to
 * pair. Half of these' variance is a launch's or a run's, so that the error of a mean is as it is
 * without pairs. */
static void pair_up(const struct decide_case *c, struct measure *m)
{
    struct changes of_runs = {.n = 0}, last = {.n = 0};
    double squares = 0, df = 0, unbalance = 0;

    if (!are_pairs(c))
        return;
    for (size_t r = 0; r < c->a.n; r++) {
        if (c->a.runs[r].n == 0)
            continue;
        last = launches_read(&c->a.runs[r], &c->b.runs[r]);
        squares += last.squares;
        df += last.df;
        unbalance += last.unbalance;
        add_change(&of_runs, last.mean);
    }
    m->paired = true;
    m->d = c->higher_is_better ? of_runs.mean : -of_runs.mean;
    m->within_df = df;
    m->within = ratio_or_0(squares / 2, df);
    m->between_df = (double)of_runs.n - 1;
    m->between = ratio_or_0(of_runs.squares / 2, m->between_df);
    m->by_runs = of_runs.n > 1;
    m->unbalance = unbalance / (double)of_runs.n;
    if (m->by_runs) { /* of runs' means the launches' orders are a part that is small */
        m->inverse_launches *= m->unbalance;
        m->unbalance = 1;
    }
    m->widest = m->by_runs ? of_runs.high - of_runs.low : last.high - last.low;
    m->fewest = m->by_runs ? of_runs.n : last.n;
}

/* The others say what varies, and are not in the mean. */
static void hold_against_best(const struct decide_case *c, const struct half *a, struct measure *m)
{
    m->a = c->higher_is_better ? a->high : a->low;
    m->d = c->higher_is_better ? m->b - m->a : m->a - m->b;
    m->best = m->by_runs;
    m->units_a = m->best ? 1 : m->units_a;
}

static size_t count_launches(const struct decide_side *side)
{
    size_t n = 0;

    for (size_t r = 0; r < side->n; r++)
        n += side->runs[r].n;
    return n;
}

enum decide_obstacle spread_measure(const struct decide_case *c, bool in_order,
                                    struct run_mean *means, struct measure *m)
{
    enum decide_obstacle a = side_check(&c->a), b = side_check(&c->b);
    struct half half_a, half_b;

    *m = (struct measure){.a = NAN, .b = NAN, .d = NAN, .anchor_d = NAN};
    if (a == OBSTACLE_BAD_VALUE || b == OBSTACLE_BAD_VALUE)
        return OBSTACLE_BAD_VALUE;
    if (a == OBSTACLE_NO_VALUE || b == OBSTACLE_NO_VALUE)
        return OBSTACLE_NO_VALUE;
    side_read(&c->b, 0, in_order, means, &half_b);
    side_read(&c->a, c->best_of, in_order, means, &half_a);
    combine(&half_a, &half_b, c->higher_is_better, m);
    pair_up(c, m);
    m->level_d = m->d;
    m->level_units = m->units_a;
    if (c->best_of)
        hold_against_best(c, &half_a, m);
    if (c->alone_is_open && (count_launches(&c->a) == 1 || count_launches(&c->b) == 1))
        return OBSTACLE_ONE_LAUNCH;
    return m->within_df > 0 || m->between_df > 0 ? OBSTACLE_NONE : OBSTACLE_ONE_LAUNCH;
}

/* How the spreads of a suite's cases scatter: variance_i ~ variance * F(df_i, freedom), by maximum
 * likelihood. What is below the median variance is counted (by F's distribution function), not
 * believed. */

/* Beyond the last but one a suite cannot tell the difference; the last is as good as infinite. */
static const double freedoms[] = {0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 1e4};
#define N_FREEDOMS (sizeof(freedoms) / sizeof(freedoms[0]))

struct spread {
    double variance, df;
};

struct fit {
    const struct spread *all; /* ascending in variance; the censored ones again ascending in df */
    size_t n, censored;
    double threshold;
    double logs, weight; /* of those not censored: (df / 2 - 1) log variance, and df / 2, summed */
};

static int by_variance(const void *a, const void *b)
{
    double x = ((const struct spread *)a)->variance, y = ((const struct spread *)b)->variance;

    return (x > y) - (x < y);
}

static int by_df(const void *a, const void *b)
{
    double x = ((const struct spread *)a)->df, y = ((const struct spread *)b)->df;

    return (x > y) - (x < y);
}

/* log P(F(df, freedom) <= x) */
static double log_below(double x, double df, double freedom)
{
    double p = dist_beta_cdf(df * x / (df * x + freedom), df / 2, freedom / 2);

    return log(fmax(p, 1e-300));
}

/* The part of log density of F at x that does not hang on x */
static double log_scale(double df, double freedom)
{
    int sign;

    return lgamma_r((df + freedom) / 2, &sign) - lgamma_r(df / 2, &sign) -
           lgamma_r(freedom / 2, &sign) + df / 2 * log(df / freedom);
}

/* Of all that are not censored, what hangs on neither variance. */
static double log_scales(const struct fit *f, double freedom)
{
    double df = NAN, same = NAN, sum = 0;

    for (size_t i = f->censored; i < f->n; i++) {
        if (f->all[i].df != df) {
            df = f->all[i].df;
            same = log_scale(df, freedom);
        }
        sum += same;
    }
    return sum;
}

/* One logarithm is taken of many factors: it takes longer than all the rest. */
static double log_tails(const struct fit *f, double freedom, double variance)
{
    const double large = 1e100;
    double sum = 0, product = 1;

    for (size_t i = f->censored; i < f->n; i++) {
        double df = f->all[i].df;

        product *= 1 + df * (f->all[i].variance / variance) / freedom;
        if (product < large && i + 1 < f->n && f->all[i + 1].df == df)
            continue;
        sum += (df + freedom) / 2 * log(product);
        product = 1;
    }
    return sum;
}

/* scales: log_scales() for this freedom */
static double log_likelihood(const struct fit *f, double freedom, double scales,
                             double log_variance)
{
    double variance = exp(log_variance), sum = 0, df = NAN, same = NAN;

    for (size_t i = 0; i < f->censored; i++) {
        if (f->all[i].df != df) {
            df = f->all[i].df;
            same = log_below(f->threshold / variance, df, freedom);
        }
        sum += same;
    }
    return sum + scales + f->logs - f->weight * log_variance - log_tails(f, freedom, variance);
}

/* The best log variance for these degrees of freedom, by golden section. */
static double best_variance(const struct fit *f, double freedom, double *likelihood)
{
    const double golden = 0.6180339887498949;
    double low = log(f->threshold) - 6, high = log(f->threshold) + 6;
    double x = high - golden * (high - low), y = low + golden * (high - low);
    double scales = log_scales(f, freedom);
    double at_x = log_likelihood(f, freedom, scales, x);
    double at_y = log_likelihood(f, freedom, scales, y);

    while (high - low > 0.01) {
        if (at_x > at_y) {
            high = y;
            y = x;
            at_y = at_x;
            x = high - golden * (high - low);
            at_x = log_likelihood(f, freedom, scales, x);
        } else {
            low = x;
            x = y;
            at_x = at_y;
            y = low + golden * (high - low);
            at_y = log_likelihood(f, freedom, scales, y);
        }
    }
    *likelihood = fmax(at_x, at_y);
    return at_x > at_y ? x : y;
}

static void fit_best(const struct fit *f, struct prior *out)
{
    double best = -INFINITY;

    for (size_t i = 0; i < N_FREEDOMS; i++) {
        double likelihood, at = best_variance(f, freedoms[i], &likelihood);

        if (likelihood > best) {
            best = likelihood;
            out->freedom = freedoms[i];
            out->variance = exp(at);
        }
    }
}

int prior_fit(const double *variances, const double *df, size_t n, struct prior *out)
{
    struct spread *all = malloc((n ? n : 1) * sizeof(*all));
    struct fit f = {.all = all};
    double total = 0;

    *out = (struct prior){.most = INFINITY};
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (df[i] > 0)
            all[f.n++] = (struct spread){fmax(variances[i], VARIANCE_LEAST), df[i]};
    }
    if (f.n >= DECIDE_PRIOR_CASES) {
        qsort(all, f.n, sizeof(*all), by_variance);
        f.censored = f.n / 2;
        f.threshold = all[f.censored].variance;
        qsort(all, f.censored, sizeof(*all), by_df);
        for (size_t i = f.censored; i < f.n; i++) {
            total += all[i].df;
            f.logs += (all[i].df / 2 - 1) * log(all[i].variance);
            f.weight += all[i].df / 2;
        }
        fit_best(&f, out);
        out->most = total;
    }
    free(all);
    return 0;
}

double prior_moderate(const struct prior *prior, double variance, double *df)
{
    double together = prior->freedom + *df;

    if (prior->freedom > 0)
        variance = (prior->freedom * prior->variance + *df * variance) / together;
    /* No case is known better than the whole suite; nor worse than by itself. */
    *df = fmax(*df, fmin(together, prior->most));
    return variance;
}

/* ---- What runs differ by, in a suite of too few cases for a fit ---- */

/* Variance of a run's mean by its launches alone; 0 where they do not tell it. */
static double of_launches(const struct measure *m, const struct prior *launches)
{
    double df = m->within_df;

    return df > 0 ? prior_moderate(launches, m->within, &df) * m->inverse_launches : 0;
}

static bool has_a_say(const struct measure *m)
{
    return m->by_runs && !m->paired && m->between_df > 0;
}

void few_share(struct measure *m, const size_t *judged, size_t n, const struct prior *launches,
               double *ratios)
{
    double sum = 0, df = 0;

    for (size_t k = 0; k < n; k++) {
        const struct measure *c = &m[judged[k]];
        double alone = of_launches(c, launches);

        ratios[k] = has_a_say(c) && alone > 0 ? c->between / alone : NAN;
        if (isnan(ratios[k]))
            continue;
        sum += c->between_df * ratios[k];
        df += c->between_df;
    }
    for (size_t k = 0; k < n; k++) {
        struct measure *c = &m[judged[k]];

        if (isnan(ratios[k]) || !(df > c->between_df))
            continue;
        double others = df - c->between_df, ratio = (sum - c->between_df * ratios[k]) / others;
        double lent = fmin(FEW_SHARE * others, FEW_FREEDOM), together = lent + c->between_df;

        c->between =
            (lent * ratio * of_launches(c, launches) + c->between_df * c->between) / together;
        c->between_df = together;
    }
}
