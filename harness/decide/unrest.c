/* SPDX-License-Identifier: Apache-2.0 */
/* What a suite as a whole says of its runs: see decide.h. */
#include "harness/decide/spread.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"

/* Of normal values it is known as well as 0.8 n values would tell; of cases that are not alike,
 * less. */
#define UNREST_FREEDOM 0.65
#define P_LEAST        1e-300

/*
 * What the data themselves say of chance: comparisons in which nothing changed, made by the same
 * method.
 *
 * With several baselines each is held against the others of its block. With one, what moved the
 * other way stands for it: of two runs that are alike, either may be the lower one. If the method's
 * assumptions held, the p of these would be uniform. Where small ones are more frequent, by heavy
 * tails, runs on two levels or cases that move together, their tail is fitted (Hill 1975,
 * doi:10.1214/aos/1176343247, on p) and every p is read by it. It is never made smaller.
 */

#define TAIL_LEAST 4
#define TAIL_CASES 20 /* of fewer the smallest four are no tail */
#define TAIL_PRIOR 2  /* so many values of a uniform p are counted with it */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Moves the k smallest of p[0..n) to its front, in no order (Hoare 1961). */
static void smallest_first(double *p, size_t n, size_t k)
{
    size_t low = 0, high = n;

    while (high - low > 1) {
        double a = p[low], b = p[low + (high - low) / 2], c = p[high - 1];
        double pivot = fmax(fmin(a, b), fmin(fmax(a, b), c));
        size_t i = low, equal = low, end = high;

        while (equal < end) {
            double x = p[equal];

            if (x < pivot) {
                p[equal++] = p[i];
                p[i++] = x;
            } else if (x > pivot) {
                p[equal] = p[--end];
                p[end] = x;
            } else {
                equal++;
            }
        }
        if (k > i && k <= equal)
            return;
        low = k <= i ? low : equal;
        high = k <= i ? i : high;
    }
}

/* How far a fitted factor is off is told by its own error; what is left counts for more than it
 * says, since what is to be bounded lies further out than all that was seen. */
void tail_fit(double *p, size_t n, const struct tail_rule *rule, struct tail *t)
{
    size_t k = n / rule->one_in > TAIL_LEAST ? n / rule->one_in : TAIL_LEAST;
    double sum = TAIL_PRIOR;

    *t = (struct tail){.factor = 1};
    if (n < TAIL_CASES)
        return;
    smallest_first(p, n, k + 1);
    qsort(p, k + 1, sizeof(*p), ascending);
    t->share = (double)k / (double)n;
    t->edge = fmax(p[k], P_LEAST);
    for (size_t i = 0; i < k; i++)
        sum += log(t->edge / fmax(p[i], P_LEAST));
    double weight = (double)k + TAIL_PRIOR, over = sum / weight - 1 - rule->dead / sqrt(weight);

    t->factor = 1 + rule->more * fmax(0, over);
}

/* Above the edge in proportion: a p that a tenth of those without a change had, or less, is no
 * smaller than a tenth. */
static double read_one(const struct tail *t, double p)
{
    if (!(t->edge > 0))
        return p;
    double part = p / t->edge;

    return fmax(p, fmin(1, t->share * (part < 1 ? pow(part, 1 / t->factor) : part)));
}

double tail_read(const struct tail t[2], double p)
{
    return fmax(read_one(&t[0], p), read_one(&t[1], p));
}

static double nominal_one(const struct tail *t, double p)
{
    if (!(t->edge > 0))
        return p;
    double part = p / t->share;

    return fmin(p, t->edge * (part < 1 ? pow(part, t->factor) : part));
}

double tail_nominal(const struct tail t[2], double p)
{
    return fmin(nominal_one(&t[0], p), nominal_one(&t[1], p));
}

/* How far each run of A is from the mean of its block, at its place among A's runs; NaN: it has no
 * value, or stands alone. */
void deviations(const struct decide_case *c, bool in_order, const struct run_mean *means,
                double *out)
{
    size_t n = spread_runs(&c->a), at = 0, r = 0;
    struct block b;

    for (size_t i = 0; i < c->a.n; i++)
        out[i] = NAN;
    while (at < n) {
        size_t from = at;

        at = spread_block(means, n, at, in_order, &b);
        for (size_t i = from; i < at; i++, r++) {
            while (c->a.runs[r].n == 0)
                r++;
            /* scaled to the spread of one run */
            if (b.n > 1)
                out[r] = (means[i].mean - b.mean) * sqrt((double)b.n / (double)(b.n - 1)) *
                         (c->higher_is_better ? 1 : -1);
        }
    }
}

/* Such a deviation by what the others scatter; floor: what launches alone make of the variance. */
static struct change deviation_of(const struct measure *m, const struct prior *runs, double floor,
                                  double off)
{
    double df = m->between_df - 1;
    double squares = fmax(m->between * m->between_df - off * off, 0);
    double variance = fmax(prior_moderate(runs, df > 0 ? squares / df : 0, &df), floor);

    return (struct change){df > 0 && variance > 0 ? off / sqrt(variance) : NAN, df};
}

#define BEYOND    6
#define OF_NORMAL 1.046 /* what the formula gives for normal values of spread 1, by simulation */
#define ENOUGH    1.01  /* of the scale that is left */
#define ROUNDS    60

#define MOVED          2.5 /* scores beyond this are a move, for `together` */
#define MOVED_AMID     1.5 /* the same by errors that are widened, also by such a move */
#define TOGETHER_LEAST 5
#define TOGETHER_LEVEL 0.02
#define SWAY_SEEN      3 /* standard errors of the median from which on a common move is seen */

/*
 * How widely the changes of many cases scatter, told robustly: the biweight scale (Lax 1985,
 * doi:10.1080/01621459.1985.10478164), one step from the median of absolute values. Beyond BEYOND
 * of those a change is taken for a true one and has no say.
 */
static double scale(const double *z, size_t n)
{
    double median = stats_median(z, n), above = 0, below = 0;

    if (!(median > 0))
        return 0;
    for (size_t i = 0; i < n; i++) {
        double u = z[i] / (BEYOND * median), v = 1 - u * u;

        if (u >= 1)
            continue;
        above += z[i] * z[i] * pow(v, 4);
        below += v * (1 - 5 * u * u);
    }
    return sqrt((double)n * above) / fabs(below) / OF_NORMAL;
}

static double normal_score(double t, double df)
{
    double p = fmax(dist_t_cdf(-fabs(t), df), P_LEAST);

    return copysign(dist_normal_quantile(p), t);
}

/* A score of a large t grows far slower than t: divided once by what scores scatter by, they would
 * scatter still. */
double unrest_scale(const struct change *x, size_t n, double *scratch)
{
    double k = 1;

    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < n; i++)
            scratch[i] = fabs(normal_score(x[i].t / k, x[i].df));
        double left = scale(scratch, n);

        if (!(left > ENOUGH))
            break;
        k *= left;
    }
    return k;
}

/* Against the mean of A's runs: against the best of them all cases would have lost. */
static struct change change_of(const struct work *w, size_t i)
{
    const struct measure *m = &w->m[i];
    const struct known *k = &w->known[i];
    double error = m->best
                       ? sqrt(k->variance * (1 / (double)m->level_units + 1 / (double)m->units_b))
                       : k->error;

    return (struct change){m->level_d / error, k->freedom};
}

double anchor_error(const struct measure *m, const struct known *k)
{
    return sqrt(k->variance * (1 / (double)m->anchors + 1 / (double)m->units_b));
}

static struct change anchor_change(const struct work *w, size_t i)
{
    return (struct change){w->m[i].anchor_d / anchor_error(&w->m[i], &w->known[i]),
                           w->known[i].freedom};
}

/* The changes of the cases that stand by runs, or by one run a side. */
static size_t changes_of(struct work *w, bool by_runs, bool anchor)
{
    size_t n = 0;

    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];

        if (w->m[i].by_runs == by_runs && !(anchor && !w->m[i].anchors))
            w->changes[n++] = anchor ? anchor_change(w, i) : change_of(w, i);
    }
    return n;
}

/* Far more cases moved one way than the other, and none of them says why. */
static void ask_together(struct work *w, const struct decide_case *cases, double far,
                         struct decide_overall *overall)
{
    size_t n = 0;

    overall->n_down = overall->n_up = 0;
    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];
        struct change x = change_of(w, i);
        double z = normal_score(x.t, x.df);

        w->known[i].down = z < -far && !cases[i].accepted;
        if (cases[i].accepted)
            continue;
        overall->n_down += z < -far;
        overall->n_up += z > far;
        if (w->known[i].down)
            w->x[n++] = w->m[i].level_d;
    }
    overall->together =
        overall->n_down >= TOGETHER_LEAST && overall->n_down > overall->n_up &&
        dist_fair_binomial_cdf(overall->n_up, overall->n_down + overall->n_up) < TOGETHER_LEVEL;
    overall->moved = n ? exp(stats_median(w->x, n)) : NAN;
}

static void know_again(struct work *w)
{
    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];

        known_with(&w->judge, &w->m[i], &w->known[i], 0, &w->known[i]);
    }
}

/* Of the cases with one run a side: how much more their changes differ than launches do. */
static void ask_unrest(struct work *w, struct decide_overall *overall)
{
    size_t n = changes_of(w, false, false);

    if (n)
        w->judge.most_df = UNREST_FREEDOM * (double)n;
    if (n && n < DECIDE_UNREST_CASES)
        overall->runs_unknown = w->judge.runs_unknown = true;
    else if (n)
        overall->unrest = w->judge.unrest = unrest_scale(w->changes, n, w->x);
}

static double variance_in_blocks(const struct run_mean *means, size_t n, size_t *blocks)
{
    double squares = 0, df = 0;
    struct block b;

    *blocks = 0;
    for (size_t at = 0; at < n; ++*blocks) {
        at = spread_block(means, n, at, true, &b);
        squares += b.squares;
        df += (double)b.n - 1;
    }
    return df > 0 ? squares / df : 0;
}

/* The same around one straight line for each stretch without a break. */
static double variance_around_lines(const struct run_mean *means, size_t n, size_t *stretches)
{
    double squares = 0, df = 0;
    struct block b;

    *stretches = 0;
    for (size_t at = 0; at < n; ++*stretches) {
        size_t from = at;
        double cross = 0;

        at = spread_block(means, n, at, false, &b);
        for (size_t i = from; i < at; i++)
            cross += ((double)(i - from) - (double)(b.n - 1) / 2) * means[i].mean;
        double m = (double)b.n, spread = m * (m * m - 1) / 12;

        squares += b.n > 2 ? fmax(0, b.squares - cross * cross / spread) : 0;
        df += b.n > 2 ? m - 2 : 0;
    }
    return df > 0 ? squares / df : 0;
}

/*
 * Runs near each other in time are more alike than others where the machine wanders. The blocks
 * that tell the spread are short, so as to leave out what a case slips by, and tell it too small
 * then. The median over the cases says by how much.
 */
static double ask_wander(struct work *w, const struct decide_case *cases)
{
    size_t n = 0, blocks, stretches;

    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k], runs = spread_runs(&cases[i].a);
        const struct run_mean *means = &w->means[i * w->most_runs];
        double near = variance_in_blocks(means, runs, &blocks);
        double all = variance_around_lines(means, runs, &stretches);

        if (near > 0 && all > 0 && blocks > stretches)
            w->x[n++] = all / near;
    }
    return n >= DECIDE_UNREST_CASES ? fmax(1, sqrt(stats_median(w->x, n))) : 1;
}

/* The median over the cases of how far a run is from its block, in units of a run's spread; NaN:
 * none knows. */
static double sway_of_run(struct work *w, size_t run)
{
    size_t n = 0;

    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];
        double off = w->off[i * w->n_runs + run];

        if (!isnan(off) && w->m[i].by_runs)
            w->x[n++] = off / sqrt(w->known[i].variance);
    }
    return n >= DECIDE_UNREST_CASES ? stats_median(w->x, n) : NAN;
}

/*
 * Where all cases of a run move together, each one's spread between few runs is told by a few
 * common moves, and the fit over the cases believes that it is told by many. So a common move of B
 * is no proof where it is not far larger than the baselines' own: they then widen all errors as far
 * as B moved.
 */
static double ask_sway(struct work *w, bool anchor)
{
    size_t n = changes_of(w, true, anchor), n_runs = 0;
    double squares = 0, df = 0;

    if (n < DECIDE_UNREST_CASES)
        return 1;
    for (size_t k = 0; k < n; k++)
        w->y[k] = w->changes[k].t;
    double middle = fabs(stats_median(w->y, n)), least = M_PI / 2 / (double)n;

    for (size_t run = 0; run < w->n_runs; run++) {
        double x = sway_of_run(w, run);

        if (isnan(x))
            continue;
        squares += x * x;
        n_runs++;
    }
    for (size_t k = 0; k < w->judge.n_judged; k++)
        df = fmax(df, w->m[w->judged[k]].between_df);
    double usual = n_runs ? sqrt(fmax(squares / (double)n_runs, least)) : INFINITY;
    bool seen = middle > SWAY_SEEN * sqrt(least);
    bool far = df > 0 && middle > -dist_t_quantile(w->judge.alarm_level / 2, df) * usual;

    return seen && !far ? unrest_scale(w->changes, n, w->x) : 1;
}

static void read_deviations(struct work *w, const struct decide_case *cases)
{
    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];

        for (size_t run = 0; run < w->n_runs; run++)
            w->off[i * w->n_runs + run] = NAN;
        if (w->m[i].by_runs && !w->m[i].paired)
            deviations(&cases[i], w->in_order, &w->means[i * w->most_runs], &w->off[i * w->n_runs]);
    }
}

static double launches_floor(const struct work *w, const struct measure *m)
{
    double df = m->within_df;

    return df > 0 ? prior_moderate(&w->launches, m->within, &df) * m->inverse_launches : 0;
}

/* One-sided p of comparisons in which nothing changed, of losses and of gains; of one run a side they are the other
 * side's. Either tail tells both. */
static void add_chance(struct change x, double *losses, double *gains, size_t *n)
{
    double tail = dist_t_cdf(-fabs(x.t), x.df);

    losses[*n] = x.t < 0 ? tail : 1 - tail;
    gains[(*n)++] = x.t > 0 ? tail : 1 - tail;
}

static size_t chance_of(struct work *w, double *losses, double *gains)
{
    size_t n = 0;

    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];
        const struct measure *m = &w->m[i];
        const double *off = &w->off[i * w->n_runs];
        double floor = m->by_runs ? launches_floor(w, m) : 0;

        if (!m->by_runs)
            add_chance(change_of(w, i), gains, losses, &n);
        for (size_t run = 0; m->by_runs && run < w->n_runs; run++) {
            struct change x = {NAN, NAN};

            if (!isnan(off[run]))
                x = deviation_of(m, &w->runs, floor, off[run]);
            if (!isnan(x.t))
                add_chance(x, losses, gains, &n);
        }
    }
    return n;
}

/* What lay on this side alone, and of runs also what lay on both. Of one run a side there is less
 * to go by. scratch: 2 n */
static void fit_tails(const double *chance, size_t n, bool of_runs, double *scratch,
                      struct tail tails[2])
{
    static const struct tail_rule one_run = {20, 0, 2}, one_side = {20, 1, 3}, both = {50, 1, 3};

    for (size_t i = 0; i < n; i++) {
        scratch[i] = chance[i];
        scratch[n + i] = 1 - chance[i];
    }
    if (of_runs)
        tail_fit(scratch, 2 * n, &both, &tails[1]);
    memcpy(scratch, chance, n * sizeof(*scratch));
    tail_fit(scratch, n, of_runs ? &one_side : &one_run, &tails[0]);
}

static void fit_both_tails(struct work *w)
{
    size_t room = w->n * (w->n_runs + 1);
    double *losses = w->chance, *gains = losses + room, *scratch = gains + room;
    size_t n = chance_of(w, losses, gains);
    bool of_runs = w->judge.n_judged && w->m[w->judged[0]].by_runs;

    fit_tails(losses, n, of_runs, scratch, w->judge.losses);
    fit_tails(gains, n, of_runs, scratch, w->judge.gains);
}

void ask_suite(struct work *w, const struct decide_case *cases, struct decide_overall *overall)
{
    read_deviations(w, cases);
    ask_together(w, cases, MOVED, overall);
    ask_unrest(w, overall);
    double wander = ask_wander(w, cases);

    w->judge.sway = fmax(ask_sway(w, false), wander);
    w->judge.anchor_sway =
        fmax(ask_sway(w, true), sqrt(2 * wander * wander - 1)); /* both ends wander */
    know_again(w);
    if (!overall
             ->together) /* where runs differ by far more than launches all cases moved by these */
        ask_together(w, cases, MOVED_AMID, overall);
    fit_both_tails(w);
}

/* Holm 1979, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6,
 * 65. */

struct candidate {
    double p;
    size_t i;
};

static int by_p(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return (x->p > y->p) - (x->p < y->p);
}

int holm(const double *p, size_t n, double level, bool *proven)
{
    struct candidate *order = malloc((n ? n : 1) * sizeof(*order));

    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct candidate){p[i], i};
        proven[i] = false;
    }
    qsort(order, n, sizeof(*order), by_p);
    for (size_t k = 0; k < n && order[k].p <= level / (double)(n - k); k++)
        proven[order[k].i] = true;
    free(order);
    return 0;
}
