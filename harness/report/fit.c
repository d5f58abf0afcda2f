/* SPDX-License-Identifier: Apache-2.0 */
/* The latency-bandwidth model: see scaling.h. */
#include "harness/report/scaling.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"

#define CONFIDENCE  0.95
#define CHANCE      0.01 /* that a group of points of a sound model is called off */
#define FREEDOM_MIN 3    /* of the noise that groups are held against */
#define THETA_STEP  0.25
#define THETA_ROOM  16 /* beyond the points: there one of the terms is 1e-7 of the other */
#define ROUNDS      50
#define FORMULA_MAX 200 /* characters: so many parentheses in one another at most */

/* ---- the formulas of struct bench_terms: NaN where one cannot be read */

struct formula {
    const char *at;
    double n;
};

static char next(struct formula *f)
{
    f->at += strspn(f->at, " ");
    return *f->at;
}

static double value_of(const char *name, size_t len, double n)
{
    const double steps = floor(log2(n) + 1e-9), p = exp2(steps);
    const struct {
        const char *name;
        double value;
    } all[] = {{"n", n}, {"p", p}, {"steps", steps}, {"beyond", n > p}};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (strlen(all[i].name) == len && !memcmp(all[i].name, name, len))
            return all[i].value;
    return NAN;
}

static double sum_of(struct formula *f);

static double operand(struct formula *f)
{
    const char *from;
    double value = 0;

    if (next(f) == '(') {
        f->at++;
        value = sum_of(f);
        return next(f) == ')' ? (f->at++, value) : NAN;
    }
    from = f->at;
    while (isdigit((unsigned char)*f->at))
        value = 10 * value + (*f->at++ - '0');
    if (f->at > from)
        return value;
    while (islower((unsigned char)*f->at))
        f->at++;
    return value_of(from, (size_t)(f->at - from), f->n);
}

static double product_of(struct formula *f)
{
    double value = operand(f);

    while (next(f) == '*' || *f->at == '/')
        value = *f->at++ == '*' ? value * operand(f) : value / operand(f);
    return value;
}

static double sum_of(struct formula *f)
{
    double value = product_of(f);

    while (next(f) == '+' || *f->at == '-')
        value = *f->at++ == '+' ? value + product_of(f) : value - product_of(f);
    return value;
}

static double formula_value(const char *text, double n)
{
    struct formula f = {text, n};
    double value = strlen(text) <= FORMULA_MAX ? sum_of(&f) : NAN;

    return next(&f) ? NAN : value;
}

bool fit_terms(const struct bench_terms *of, double ranks, struct fit_terms *terms)
{
    if (!of || !(ranks >= 2))
        return false;
    *terms = (struct fit_terms){formula_value(of->messages, ranks), formula_value(of->bytes, ranks),
                                formula_value(of->bus, ranks)};
    return terms->messages > 0 && terms->bytes > 0 && terms->bus > 0;
}

/* ---- the fit */

/* A point in logarithms; how far it is off the model, and the model's slopes in a and b there. */
struct taken {
    double ranks, bytes, log_messages, log_bytes, log_us, off, x, y;
};

static bool take_point(const struct fit *fit, const struct fit_point *p, struct taken *t)
{
    struct fit_terms terms;

    if (!(p->time_us > 0) || !(p->bytes > 0) || !fit_terms(fit->terms, p->ranks, &terms))
        return false;
    *t = (struct taken){.ranks = p->ranks,
                        .bytes = p->bytes,
                        .log_messages = log(terms.messages),
                        .log_bytes = log(terms.bytes * p->bytes),
                        .log_us = log(p->time_us)};
    return true;
}

/* ln(x + y) of their logarithms; -HUGE_VAL is none of it. */
static double log_sum(double x, double y)
{
    return fmax(x, y) + log1p(exp(fmin(x, y) - fmax(x, y)));
}

/* With a and b given by their logarithms. */
static double log_model(const struct taken *t, double log_a, double log_b)
{
    return log_sum(t->log_messages + log_a, t->log_bytes + log_b);
}

/* The squares that are left where b / a is exp(theta), with the best a, or the best b where a is 0.
 * *scale: the logarithm of that. */
static double squares_at(const struct taken *t, size_t n, double theta, double *scale)
{
    bool without_a = theta == HUGE_VAL;
    double mean = 0, squares = 0;

    for (size_t i = 0; i < n; i++)
        mean += (t[i].log_us - log_model(&t[i], without_a ? -HUGE_VAL : 0, without_a ? 0 : theta)) /
                (double)n;
    for (size_t i = 0; i < n; i++)
        squares += pow(
            t[i].log_us - log_model(&t[i], without_a ? -HUGE_VAL : 0, without_a ? 0 : theta) - mean,
            2);
    *scale = mean;
    return squares;
}

/* Of one unknown: all of its range is looked at, then the best place narrowed down. */
static double best_theta(const struct taken *t, size_t n)
{
    double low = HUGE_VAL, high = -HUGE_VAL, best = 0, least = HUGE_VAL, scale;

    for (size_t i = 0; i < n; i++) {
        low = fmin(low, t[i].log_messages - t[i].log_bytes - THETA_ROOM);
        high = fmax(high, t[i].log_messages - t[i].log_bytes + THETA_ROOM);
    }
    size_t steps = (size_t)((high - low) / THETA_STEP);
    for (size_t i = 0; i <= steps; i++) {
        double theta = low + (double)i * THETA_STEP, squares = squares_at(t, n, theta, &scale);
        best = squares < least ? theta : best;
        least = fmin(least, squares);
    }
    low = best - THETA_STEP;
    high = best + THETA_STEP;
    for (int i = 0; i < ROUNDS; i++) {
        double third = (high - low) / 3;
        if (squares_at(t, n, low + third, &scale) < squares_at(t, n, high - third, &scale))
            high -= third;
        else
            low += third;
    }
    return (low + high) / 2;
}

static void solve(struct fit *fit, const struct taken *t, size_t n)
{
    double theta = best_theta(t, n), scale, scale_a, scale_b;
    double squares = squares_at(t, n, theta, &scale);
    double only_a = squares_at(t, n, -HUGE_VAL, &scale_a);
    double only_b = squares_at(t, n, HUGE_VAL, &scale_b);

    fit->without_a = only_b <= squares && only_b <= only_a;
    fit->without_b = !fit->without_a && only_a <= squares;
    fit->a_us = fit->without_a ? 0 : exp(fit->without_b ? scale_a : scale);
    fit->b_us = fit->without_b ? 0 : exp(fit->without_a ? scale_b : scale + theta);
}

static void look_at_fit(const struct fit *fit, struct taken *t)
{
    for (size_t i = 0; i < fit->n; i++) {
        double model = log_model(&t[i], log(fit->a_us), log(fit->b_us));
        t[i].off = t[i].log_us - model;
        t[i].x = exp(t[i].log_messages - model);
        t[i].y = exp(t[i].log_bytes - model);
    }
}

/* Both unknowns count, also where one of them is 0: what it might be makes the other uncertain. */
static void invert(struct fit *fit, const struct taken *t)
{
    double xx = 0, xy = 0, yy = 0;

    for (size_t i = 0; i < fit->n; i++) {
        xx += t[i].x * t[i].x;
        xy += t[i].x * t[i].y;
        yy += t[i].y * t[i].y;
    }
    double det = xx * yy - xy * xy;
    fit->inverse[0][0] = yy / det;
    fit->inverse[0][1] = fit->inverse[1][0] = -xy / det;
    fit->inverse[1][1] = xx / det;
}

/* 1 - r^2 of the two columns, of the relative errors. */
static bool tells_apart(const struct taken *t, size_t n)
{
    double xx = 0, xy = 0, yy = 0;

    for (size_t i = 0; i < n; i++) {
        double x = exp(t[i].log_messages - t[i].log_us), y = exp(t[i].log_bytes - t[i].log_us);
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    return xx * yy - xy * xy > FIT_TOLD_APART * xx * yy;
}

static double freedom(const struct fit *fit)
{
    return (double)fit->n - 2;
}

static double student(const struct fit *fit)
{
    return dist_t_quantile((1 + CONFIDENCE) / 2, freedom(fit));
}

static void take_spread(struct fit *fit, const struct taken *t)
{
    double squares = 0;

    for (size_t i = 0; i < fit->n; i++) {
        squares += t[i].off * t[i].off;
        if (!i || fabs(t[i].off) > fabs(log(fit->farthest.ratio)))
            fit->farthest = (struct fit_off){1, t[i].ranks, t[i].bytes, exp(t[i].off)};
    }
    fit->spread = sqrt(squares / freedom(fit));
}

static void take_intervals(struct fit *fit)
{
    double half = student(fit) * fit->spread * sqrt(fit->inverse[0][0]);

    fit->low_us = fmax(fit->a_us - half, 0);
    fit->high_us = fit->a_us + half;
    half = student(fit) * fit->spread * sqrt(fit->inverse[1][1]);
    fit->b_low_us = fmax(fit->b_us - half, 0);
    fit->b_high_us = fit->b_us + half;
    if (fit->group.n)
        fit->low_us = fit->high_us = fit->b_low_us = fit->b_high_us = NAN;
}

/* --- groups: the points of one n, or of one size --- */

/* What a fit of its own makes of each group, in the logarithms: of one n an a and b, of one size a
 * factor. */
struct groups {
    bool by_size;
    size_t unknowns;
    double squares;         /* that are left */
    const struct taken *of; /* in the group that is farthest off, by its own fit: its first point */
    size_t members;
    double most; /* how far that is at its farthest point */
};

static bool is_of(const struct groups *g, const struct taken *t, const struct taken *group)
{
    return g->by_size ? t->bytes == group->bytes : t->ranks == group->ranks;
}

/* The slopes in the group's own a and b that its points lie off by. */
static struct line {
    double a, b;
    size_t unknowns;
} line_of(const struct groups *g, const struct fit *fit, const struct taken *t, size_t first)
{
    double xx = 0, xy = 0, yy = 0, xr = 0, yr = 0, sum = 0, members = 0;

    for (size_t i = first; i < fit->n; i++) {
        if (!is_of(g, &t[i], &t[first]))
            continue;
        xx += t[i].x * t[i].x;
        xy += t[i].x * t[i].y;
        yy += t[i].y * t[i].y;
        xr += t[i].x * t[i].off;
        yr += t[i].y * t[i].off;
        sum += t[i].off;
        members++;
    }
    double det = xx * yy - xy * xy, mean = sum / members;
    if (g->by_size || !(det > FIT_TOLD_APART * xx * yy))
        return (struct line){mean * fit->a_us, mean * fit->b_us, 1};
    return (struct line){(yy * xr - xy * yr) / det, (xx * yr - xy * xr) / det, 2};
}

static bool is_first(const struct groups *g, const struct taken *t, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (is_of(g, &t[k], &t[i]))
            return false;
    return true;
}

static void add_group(struct groups *g, const struct fit *fit, const struct taken *t, size_t first)
{
    struct line line = line_of(g, fit, t, first);
    double most = 0;
    size_t members = 0;

    for (size_t i = first; i < fit->n; i++) {
        if (!is_of(g, &t[i], &t[first]))
            continue;
        double own = line.a * t[i].x + line.b * t[i].y;
        g->squares += (t[i].off - own) * (t[i].off - own);
        most = fabs(own) > fabs(most) ? own : most;
        members++;
    }
    g->unknowns += line.unknowns;
    if (fabs(most) <= fabs(g->most))
        return;
    g->of = &t[first];
    g->members = members;
    g->most = most;
}

/* Is what the groups' own fits take off the squares more than chance does? By the F distribution,
 * whose tail is I(left / all) of half the freedoms. */
static void judge_groups(struct fit *fit, const struct taken *t, bool by_size)
{
    struct groups g = {.by_size = by_size};
    double all = fit->spread * fit->spread * freedom(fit);

    for (size_t i = 0; i < fit->n; i++)
        if (is_first(&g, t, i))
            add_group(&g, fit, t, i);
    if (g.unknowns <= 2 || fit->n < g.unknowns + FREEDOM_MIN ||
        fabs(g.most) <= log(FIT_GROUP_MOST) ||
        (fit->group.n && fabs(g.most) <= fabs(log(fit->group.ratio))))
        return;
    if (dist_beta_cdf(fmin(g.squares / all, 1), (double)(fit->n - g.unknowns) / 2,
                      (double)(g.unknowns - 2) / 2) < CHANCE)
        fit->group = (struct fit_off){g.members, by_size ? 0 : g.of->ranks,
                                      by_size ? g.of->bytes : 0, exp(g.most)};
}

int fit_make(const struct bench_terms *terms, const struct fit_point *points, size_t n,
             bool (*take)(const struct fit_point *p, const void *arg), const void *arg,
             struct fit *fit)
{
    struct fit_terms of_two;
    int err = 0;

    *fit = (struct fit){.terms = terms};
    if (!fit_terms(terms, 2, &of_two))
        return -EOPNOTSUPP;
    struct taken *taken = xcalloc(n, sizeof(*taken));
    for (size_t i = 0; i < n; i++)
        fit->n += (!take || take(&points[i], arg)) && take_point(fit, &points[i], &taken[fit->n]);
    if (fit->n < FIT_POINTS_MIN)
        err = -ENODATA;
    else if (!tells_apart(taken, fit->n))
        err = -EDOM;
    if (!err) {
        solve(fit, taken, fit->n);
        look_at_fit(fit, taken);
        invert(fit, taken);
        take_spread(fit, taken);
        judge_groups(fit, taken, false);
        judge_groups(fit, taken, true);
        take_intervals(fit);
    }
    free(taken);
    return err;
}

bool fit_describes(const struct fit *fit)
{
    return fit->spread <= FIT_DESCRIBES && fabs(log(fit->farthest.ratio)) <= log(FIT_POINT_MOST);
}

struct fit_prediction fit_predict(const struct fit *fit, double ranks, double bytes)
{
    struct fit_prediction p = {NAN, NAN, NAN};
    struct fit_terms t;
    double x, y, variance, half;

    if (!fit_terms(fit->terms, ranks, &t))
        return p;
    p.time_us = t.messages * fit->a_us + t.bytes * bytes * fit->b_us;
    if (fit->group.n)
        return p;
    x = t.messages / p.time_us;
    y = t.bytes * bytes / p.time_us;
    variance =
        x * x * fit->inverse[0][0] + 2 * x * y * fit->inverse[0][1] + y * y * fit->inverse[1][1];
    half = student(fit) * fit->spread * sqrt(1 + variance);
    p.low_us = p.time_us * exp(-half);
    p.high_us = p.time_us * exp(half);
    return p;
}
