/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a matrix product, from those that were measured: see forecast.h. */
#include <math.h>

#include "core/stats.h"
#include "harness/forecast/forecast.h"

/* The rate of a shape, without the measured one number `but`. */
static double rate_of(const struct parts *p, double m, double n, double k, size_t but)
{
    double sum = 0, weights = 0;

    for (size_t i = 0; i < p->n_products; i++) {
        const struct part_product *at = &p->products[i];
        double x = log(m / at->m), y = log(n / at->n), z = log(k / at->k);
        double square = x * x + y * y + z * z;

        if (i == but)
            continue;
        if (square < 1e-12)
            return at->flops;
        sum += log(at->flops) / (square * square);
        weights += 1 / (square * square);
    }
    return weights > 0 ? exp(sum / weights) : NAN;
}

/* How far the nearest measured shape is, as a logarithm. */
static double distance_of(const struct parts *p, double m, double n, double k, size_t but)
{
    double least = HUGE_VAL;

    for (size_t i = 0; i < p->n_products; i++) {
        const struct part_product *at = &p->products[i];
        double x = log(m / at->m), y = log(n / at->n), z = log(k / at->k);

        if (i != but)
            least = fmin(least, x * x + y * y + z * z);
    }
    return sqrt(least);
}

double parts_product_off(const struct parts *p, double m, double n, double k)
{
    double far = distance_of(p, m, n, k, p->n_products) / p->product_apart;

    return isnan(p->product_spread) ? NAN
                                    : dist_t_quantile(0.975, (double)p->n_products - 1) *
                                          p->product_spread * fmax(1, far);
}

double parts_product_s(const struct parts *p, double m, double n, double k, double count)
{
    if (p->n_products < PARTS_SHAPES)
        return NAN;
    return 2 * m * n * k * count / rate_of(p, m, n, k, p->n_products);
}

void parts_product_spread(struct parts *p)
{
    double squares = 0, jitter = 0, known = 0;

    p->product_apart = 0;
    for (size_t i = 0; i < p->n_products; i++) {
        const struct part_product *at = &p->products[i];
        double off = log(rate_of(p, at->m, at->n, at->k, i) / at->flops);

        squares += off * off;
        jitter += isnan(at->jitter) ? 0 : at->jitter;
        known += !isnan(at->jitter);
        p->product_apart = fmax(p->product_apart, distance_of(p, at->m, at->n, at->k, i));
    }
    p->jitter = known ? jitter / known : NAN;
    p->product_spread =
        p->n_products >= PARTS_SHAPES ? sqrt(squares / (double)(p->n_products - 1)) : NAN;
}
