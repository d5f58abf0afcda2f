/* SPDX-License-Identifier: Apache-2.0 */
/* What runs differ by, in a suite of too few cases for a fit: see decide.h. */
#include "harness/decide/parts.h"

#include <math.h>

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
