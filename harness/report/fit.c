/* SPDX-License-Identifier: Apache-2.0 */
/* The latency-bandwidth model: see fit.h. */
#include "harness/report/fit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/dist.h"

#define CONFIDENCE 0.95

/* Of exchanges between halves: of the power of two at or below n, and two more messages for those beyond it. */
static struct fit_terms halves(double n, bool whole)
{
    double steps = floor(log2(n) + 1e-9), power = exp2(steps), more = n > power ? 2 : 0;

    return whole ? (struct fit_terms){steps + more, steps + more}
                 : (struct fit_terms){2 * steps + more, 2 * (power - 1) / power + more};
}

bool fit_terms(const char *op, const char *algorithm, double ranks, struct fit_terms *terms)
{
    double share = (ranks - 1) / ranks;

    if (!(ranks >= 2))
        return false;
    if (!strcmp(op, "allreduce")) {
        if (!strcmp(algorithm, "halving") || !strcmp(algorithm, "doubling"))
            *terms = halves(ranks, !strcmp(algorithm, "doubling"));
        else
            *terms = (struct fit_terms){2 * (ranks - 1), 2 * share};
        return true;
    }
    if (!strcmp(op, "send-receive"))
        *terms = (struct fit_terms){1, 1};
    else if (!strcmp(op, "reduce-scatter") || !strcmp(op, "all-gather") ||
             !strcmp(op, "all-to-all"))
        *terms = (struct fit_terms){ranks - 1, share};
    else
        return false;
    return true;
}

/* The columns of the relative problem: x a + y b = 1. */
static bool columns_of(const struct fit *fit, const struct fit_point *p, double *x, double *y)
{
    struct fit_terms terms;

    if (!(p->time_us > 0) || !(p->bytes > 0) ||
        !fit_terms(fit->op, fit->algorithm, p->ranks, &terms))
        return false;
    *x = terms.messages / p->time_us;
    *y = terms.bytes * p->bytes / p->time_us;
    return true;
}

struct sums {
    double xx, xy, yy, x, y;
    size_t n;
};

static void solve(struct fit *fit, const struct sums *s)
{
    double det = s->xx * s->yy - s->xy * s->xy;

    fit->a_us = (s->yy * s->x - s->xy * s->y) / det;
    fit->b_us = (s->xx * s->y - s->xy * s->x) / det;
    fit->inverse[0][0] = s->yy / det;
    fit->inverse[0][1] = fit->inverse[1][0] = -s->xy / det;
    fit->inverse[1][1] = s->xx / det;
    fit->without_a = fit->a_us < 0;
    fit->without_b = !fit->without_a && fit->b_us < 0;
    if (!fit->without_a && !fit->without_b)
        return;
    memset(fit->inverse, 0, sizeof(fit->inverse));
    fit->a_us = fit->without_a ? 0 : s->x / s->xx;
    fit->b_us = fit->without_b ? 0 : s->y / s->yy;
    fit->inverse[fit->without_a][fit->without_a] = 1 / (fit->without_a ? s->yy : s->xx);
}

static double freedom(const struct fit *fit)
{
    return (double)fit->n - (fit->without_a || fit->without_b ? 1 : 2);
}

static double student(const struct fit *fit)
{
    return dist_t_quantile((1 + CONFIDENCE) / 2, freedom(fit));
}

static bool is_taken(const struct fit *fit, const struct fit_point *p,
                     bool (*take)(const struct fit_point *p, const void *arg), const void *arg,
                     double *x, double *y)
{
    return (!take || take(p, arg)) && columns_of(fit, p, x, y);
}

static void take_spread(struct fit *fit, double squares)
{
    double half;

    fit->spread = sqrt(squares / freedom(fit));
    half = student(fit) * fit->spread * sqrt(fit->inverse[0][0]);
    fit->low_us = fmax(fit->a_us - half, 0);
    fit->high_us = fit->a_us + half;
    half = student(fit) * fit->spread * sqrt(fit->inverse[1][1]);
    fit->b_low_us = fmax(fit->b_us - half, 0);
    fit->b_high_us = fit->b_us + half;
}

int fit_make(const char *op, const char *algorithm, const struct fit_point *points, size_t n,
             bool (*take)(const struct fit_point *p, const void *arg), const void *arg,
             struct fit *fit)
{
    struct fit_terms terms;
    struct sums s = {0};
    double x, y, squares = 0;

    *fit = (struct fit){.op = op, .algorithm = algorithm};
    if (!fit_terms(op, algorithm, 2, &terms))
        return -EOPNOTSUPP;
    for (size_t i = 0; i < n; i++) {
        if (!is_taken(fit, &points[i], take, arg, &x, &y))
            continue;
        s.xx += x * x;
        s.xy += x * y;
        s.yy += y * y;
        s.x += x;
        s.y += y;
        s.n++;
    }
    if (s.n < FIT_POINTS_MIN)
        return -ENODATA;
    if (!(s.xx * s.yy - s.xy * s.xy > FIT_TOLD_APART * s.xx * s.yy))
        return -EDOM;
    fit->n = s.n;
    solve(fit, &s);
    for (size_t i = 0; i < n; i++)
        if (is_taken(fit, &points[i], take, arg, &x, &y))
            squares += pow(1 - fit->a_us * x - fit->b_us * y, 2);
    take_spread(fit, squares);
    return 0;
}

struct fit_prediction fit_predict(const struct fit *fit, double ranks, double bytes)
{
    struct fit_prediction p = {NAN, NAN, NAN};
    struct fit_terms t;
    double x, y, variance, half;

    if (!fit_terms(fit->op, fit->algorithm, ranks, &t))
        return p;
    p.time_us = t.messages * fit->a_us + t.bytes * bytes * fit->b_us;
    x = t.messages / p.time_us;
    y = t.bytes * bytes / p.time_us;
    variance =
        x * x * fit->inverse[0][0] + 2 * x * y * fit->inverse[0][1] + y * y * fit->inverse[1][1];
    half = student(fit) * fit->spread * sqrt(1 + variance);
    p.low_us = p.time_us * fmax(1 - half, 0);
    p.high_us = p.time_us * (1 + half);
    return p;
}
