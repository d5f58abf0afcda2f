/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the data themselves say of chance: comparisons in which nothing changed, made by the same method.
 *
 * With several baselines each is held against the others of its block. With one, what moved the other way stands for it: of
 * two runs that are alike, either may be the lower one. If the method's assumptions held, the p of these would be uniform.
 * Where small ones are more frequent, by heavy tails, runs on two levels or cases that move together, their tail is fitted
 * (Hill 1975, doi:10.1214/aos/1176343247, on p) and every p is read by it. It is never made smaller.
 */
#include "harness/decide/parts.h"

#include <math.h>
#include <stdlib.h>

#include "core/dist.h"

#define TAIL_LEAST 4
#define TAIL_CASES 20 /* of fewer the smallest four are no tail */
#define TAIL_PRIOR 2  /* so many values of a uniform p are counted with it */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* How far a fitted factor is off is told by its own error; what is left counts for more than it says, since what is to be
 * bounded lies further out than all that was seen. */
void tail_fit(double *p, size_t n, const struct tail_rule *rule, struct tail *t)
{
    size_t k = n / rule->one_in > TAIL_LEAST ? n / rule->one_in : TAIL_LEAST;
    double sum = TAIL_PRIOR;

    *t = (struct tail){.factor = 1};
    if (n < TAIL_CASES)
        return;
    qsort(p, n, sizeof(*p), ascending);
    t->share = (double)k / (double)n;
    t->edge = fmax(p[k], P_LEAST);
    for (size_t i = 0; i < k; i++)
        sum += log(t->edge / fmax(p[i], P_LEAST));
    double weight = (double)k + TAIL_PRIOR, over = sum / weight - 1 - rule->dead / sqrt(weight);

    t->factor = 1 + rule->more * fmax(0, over);
}

/* Above the edge in proportion: a p that a tenth of those without a change had, or less, is no smaller than a tenth. */
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

/* How far each run of A is from the mean of its block, at its place among A's runs; NaN: it has no value, or stands alone. */
void deviations(const struct decide_case *c, bool in_order, struct run_mean *means, double *out)
{
    size_t n = spread_means(&c->a, means), at = 0, r = 0;
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

double deviation_p(const struct measure *m, const struct prior *runs, double floor, double off)
{
    double df = m->between_df - 1;
    double squares = fmax(m->between * m->between_df - off * off, 0);
    double variance = fmax(prior_moderate(runs, df > 0 ? squares / df : 0, &df), floor);

    return df > 0 && variance > 0 ? dist_t_cdf(off / sqrt(variance), df) : NAN;
}
