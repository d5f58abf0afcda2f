// SPDX-License-Identifier: Apache-2.0
// Incomplete beta function, and the binomial, normal and Student distributions from it.
#include "core/dist.h"

#include <math.h>

// The continued fraction by Lentz's method; converges fast where x < (a + 1) / (a + b + 2).
static double beta_fraction(double x, double a, double b)
{
    const double tiny = 1e-300;
    double c = 1;
    double d = 1 / (1 - (a + b) * x / (a + 1));
    double h = d;

    for (int m = 1; m <= 10000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (d == 0 ? tiny : d);
        c = c == 0 ? tiny : c;
        h *= d * c;
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (d == 0 ? tiny : d);
        c = c == 0 ? tiny : c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return h;
}

double dist_beta_cdf(double x, double a, double b)
{
    if (!(a > 0 && b > 0 && x >= 0 && x <= 1))
        return NAN;
    if (x == 0 || x == 1)
        return x;
    int sign;
    double log_front = lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) +
                       a * log(x) + b * log1p(-x);

    if (x < (a + 1) / (a + b + 2))
        return exp(log_front) * beta_fraction(x, a, b) / a;
    return 1 - exp(log_front) * beta_fraction(1 - x, b, a) / b;
}

double dist_fair_binomial_cdf(size_t k, size_t n)
{
    if (k >= n)
        return 1;
    return dist_beta_cdf(0.5, (double)(n - k), (double)k + 1);
}

double dist_normal_quantile(double p)
{
    if (!(p > 0 && p < 1))
        return NAN;
    double tail = p < 0.5 ? p : 1 - p;
    double t = sqrt(-2 * log(tail));
    // Abramowitz and Stegun 26.2.23 is good to 4.5e-4; Newton's steps on the exact tail do the
    // rest.
    double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));

    for (int i = 0; i < 4; i++) {
        double density = exp(-x * x / 2) / sqrt(2 * M_PI);
        x += (erfc(x / M_SQRT2) / 2 - tail) / density;
    }
    return p < 0.5 ? -x : x;
}

double dist_t_cdf(double t, double df)
{
    if (isnan(t) || !(df > 0))
        return NAN;
    if (isinf(df))
        return erfc(-t / M_SQRT2) / 2;
    double tail = dist_beta_cdf(df / (df + t * t), df / 2, 0.5) / 2;

    return t < 0 ? tail : 1 - tail;
}

static double t_density(double t, double df)
{
    int sign;
    double log_scale = lgamma_r((df + 1) / 2, &sign) - lgamma_r(df / 2, &sign) - log(df * M_PI) / 2;

    return exp(log_scale - (df + 1) / 2 * log1p(t * t / df));
}

double dist_t_quantile(double p, double df)
{
    if (!(p > 0 && p < 1 && df > 0))
        return NAN;
    if (isinf(df) || p == 0.5)
        return dist_normal_quantile(p);
    double tail = p < 0.5 ? p : 1 - p;
    double t = dist_normal_quantile(1 - tail);

    // The normal quantile lies below, and above 0 the distribution function is concave, so that
    // Newton's steps climb to the answer and never pass it.
    for (int i = 0; i < 200; i++) {
        double upper = dist_beta_cdf(df / (df + t * t), df / 2, 0.5) / 2;
        double step = (upper - tail) / t_density(t, df);

        t += step;
        if (!(fabs(step) > 1e-13 * fabs(t)))
            break;
    }
    return p < 0.5 ? -t : t;
}
