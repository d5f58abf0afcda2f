/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How widely the changes of many cases scatter, told robustly: the biweight scale (Lax 1985,
 * doi:10.1080/01621459.1985.10478164), one step from the median of absolute values. Beyond BEYOND of
 * those a change is taken for a true one and has no say.
 */
#include <math.h>

#include "core/stats.h"
#include "harness/decide/parts.h"

#define BEYOND    6
#define OF_NORMAL 1.046 /* what the formula gives for normal values of spread 1, by simulation */

double unrest_scale(const double *z, size_t n)
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
