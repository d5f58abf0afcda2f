/* SPDX-License-Identifier: Apache-2.0 */
/* The noises: see history_noise.h. */
#include "tests/selftest/history_noise.h"

#include <math.h>

static void gaussian(struct rng *rng, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 0.01 * rng_normal(rng);
}

/* Skewed: the exponential of a normal of 0.5, moved to mean 0 and 1 %. */
static void log_normal(struct rng *rng, double *x, size_t n)
{
    const double s = 0.5, mean = exp(s * s / 2), sd = mean * sqrt(expm1(s * s));

    for (size_t i = 0; i < n; i++)
        x[i] = 0.01 * (mean - exp(s * rng_normal(rng))) / sd;
}

/* Student's t with 3 degrees of freedom, of 1 %. */
static void heavy(struct rng *rng, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;

        for (int k = 0; k < 3; k++)
            sum += pow(rng_normal(rng), 2);
        x[i] = 0.01 * rng_normal(rng) / sqrt(sum / 3) / sqrt(3);
    }
}

/* Losses with a Pareto tail of index 3. */
static void pareto(struct rng *rng, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 0.01 * (1.5 - pow(1 - rng_double(rng), -1.0 / 3)) / sqrt(0.75);
}

static void outliers(struct rng *rng, double *x, size_t n)
{
    gaussian(rng, x, n);
    for (size_t i = 0; i < n; i++)
        if (rng_double(rng) < 0.02)
            x[i] -= 0.10 + 0.10 * rng_double(rng);
}

static void ar(struct rng *rng, double *x, size_t n, double phi, double sd)
{
    double now = sd * rng_normal(rng);

    for (size_t i = 0; i < n; i++) {
        x[i] = now;
        now = phi * now + sd * sqrt(1 - phi * phi) * rng_normal(rng);
    }
}

static void ar_03(struct rng *rng, double *x, size_t n)
{
    ar(rng, x, n, 0.3, 0.01);
}

static void ar_06(struct rng *rng, double *x, size_t n)
{
    ar(rng, x, n, 0.6, 0.01);
}

static void season(struct rng *rng, double *x, size_t n, double period, double swing, double sd)
{
    double phase = 2 * M_PI * rng_double(rng);

    for (size_t i = 0; i < n; i++)
        x[i] = swing * sin(2 * M_PI * (double)i / period + phase) + sd * rng_normal(rng);
}

static void week(struct rng *rng, double *x, size_t n)
{
    season(rng, x, n, 7, 0.005, 0.01);
}

static void month(struct rng *rng, double *x, size_t n)
{
    season(rng, x, n, 30, 0.005, 0.01);
}

static void quarter(struct rng *rng, double *x, size_t n)
{
    season(rng, x, n, 90, 0.005, 0.01);
}

static void year(struct rng *rng, double *x, size_t n)
{
    season(rng, x, n, 365, 0.005, 0.01);
}

static void year_wide(struct rng *rng, double *x, size_t n)
{
    season(rng, x, n, 365, 0.02, 0.01);
}

/* A random walk that turns back at `most` either way. */
static void walk(struct rng *rng, double *x, size_t n, double most, double sd)
{
    double at = most * (2 * rng_double(rng) - 1);

    for (size_t i = 0; i < n; i++) {
        at += most / 10 * rng_normal(rng);
        at = at > most ? 2 * most - at : at < -most ? -2 * most - at : at;
        x[i] = at + sd * rng_normal(rng);
    }
}

static void walk_narrow(struct rng *rng, double *x, size_t n)
{
    walk(rng, x, n, 0.005, 0.01);
}

static void walk_wide(struct rng *rng, double *x, size_t n)
{
    walk(rng, x, n, 0.01, 0.005);
}

static void month_wide(struct rng *rng, double *x, size_t n)
{
    season(rng, x, n, 30, 0.01, 0.005);
}

static void two(struct rng *rng, double *x, size_t n, double share)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (rng_double(rng) < share ? -0.05 : 0) + 0.004 * rng_normal(rng);
}

static void two_even(struct rng *rng, double *x, size_t n)
{
    two(rng, x, n, 0.4);
}

static void two_rare(struct rng *rng, double *x, size_t n)
{
    two(rng, x, n, 0.1);
}

static void rising(struct rng *rng, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (0.005 + 0.015 * (double)i / (double)n) * rng_normal(rng);
}

const struct noise_kind noise_kinds[] = {
    {"gaussian", "1 %", gaussian, true},
    {"log-normal", "skewed, 1 %", log_normal, false},
    {"heavy", "Student's t of 3 degrees of freedom, 1 %", heavy, false},
    {"pareto", "losses with a Pareto tail of index 3, 1 %", pareto, false},
    {"outliers", "1 %, and one run in 50 is 10 to 20 % down", outliers, false},
    {"AR(1) 0.3", "1 %, correlated from run to run", ar_03, false},
    {"AR(1) 0.6", "1 %, correlated from run to run", ar_06, false},
    {"week", "a swing of 0.5 % either way in 7 runs, under 1 %", week, true},
    {"month", "the same in 30 runs", month, false},
    {"quarter", "the same in 90 runs", quarter, false},
    {"year", "the same in 365 runs", year, false},
    {"walk", "a random walk within 0.5 % either way, under 1 %", walk_narrow, false},
    {"wide month", "a swing of 1 % either way in 30 runs, under 0.5 %", month_wide, false},
    {"wide walk", "a random walk within 1 % either way, under 0.5 %", walk_wide, false},
    {"two levels", "5 % apart, the lower one in 40 % of runs", two_even, false},
    {"rare level", "5 % apart, the lower one in 10 % of runs", two_rare, false},
    {"rising", "from 0.5 % to 2 %", rising, false},
    {"wide year", "a swing of 2 % either way in 365 runs, under 1 %", year_wide, false},
    {NULL, NULL, NULL, false},
};
