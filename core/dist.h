// SPDX-License-Identifier: Apache-2.0
// The few probability distributions that the statistics stand on. Pure functions.
#ifndef PLUMB_CORE_DIST_H
#define PLUMB_CORE_DIST_H

#include <stddef.h>

// Regularised incomplete beta function I_x(a, b), a, b > 0, x in [0, 1]; NaN outside. Continued
// fraction DLMF 8.17.22 (https://dlmf.nist.gov/8.17). Relative error about 1e-13 for small a and b,
// 1e-10 at a = b = 50,000.
double dist_beta_cdf(double x, double a, double b);

// P(X <= k) for X binomial with n throws of a fair coin: I_1/2(n - k, k + 1) (DLMF 8.17.5).
double dist_fair_binomial_cdf(size_t k, size_t n);

// The x with P(X <= x) = p for a standard normal X; p in (0, 1), NaN outside.
double dist_normal_quantile(double p);

// P(T <= t) for Student's t with df > 0 degrees of freedom (need not be whole).
double dist_t_cdf(double t, double df);

// The t with P(T <= t) = p for Student's t; p in (0, 1), df > 0 (INFINITY: normal), NaN outside.
double dist_t_quantile(double p, double df);

#endif
