/* SPDX-License-Identifier: Apache-2.0 */
/* Ratios and verdicts: see judge.h. */
#include "harness/crosscheck/judge.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/stats.h"

/* What a definition that was got wrong multiplies by. */
static const struct {
    double factor;
    const char *text;
} mistakes[] = {
    {1.048576, "2^20 against 1e6 bytes"},
    {1.073741824, "2^30 against 1e9 bytes"},
    {1.024, "2^10 against 1e3 bytes"},
    {2, "half against whole round trips, or one direction against two"},
    {8, "bits against bytes"},
    {1000, "a thousand in the unit"},
};

static bool within(const struct judgement *j, double centre, double margin)
{
    return j->low >= centre * (1 - margin) && j->high <= centre * (1 + margin);
}

/* Narrower than the margin: 2.4 % and 4.9 % are near enough to real differences as it is. */
static const char *suspect(const struct judgement *j, double margin)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        double f = mistakes[i].factor, near = fmin(margin, (f - 1) / 5);
        if (within(j, f, near) || within(j, 1 / f, near))
            return mistakes[i].text;
    }
    return NULL;
}

static enum verdict verdict_of(const struct judgement *j, double margin, bool higher_is_better)
{
    if (isnan(j->low) || isnan(j->high))
        return VERDICT_UNDECIDED;
    if (within(j, 1, margin))
        return VERDICT_AGREE;
    if (j->low <= 1 && j->high >= 1)
        return VERDICT_UNDECIDED;
    return (j->low > 1) == higher_is_better ? VERDICT_BETTER : VERDICT_WORSE;
}

/* The width of an interval goes with one over the root of the number of pairs. */
static size_t pairs_wanted(const struct judgement *j, double margin)
{
    double times = (j->high - j->low) / 2 / margin;

    if (isnan(times))
        return JUDGE_PAIRS_MIN;
    double wanted = ceil((double)j->pairs * fmax(times * times, 1.2));
    return wanted < 1e6 ? (size_t)wanted : 0;
}

int judge(const double *ours, const double *theirs, size_t pairs, double margin,
          bool higher_is_better, struct judgement *j)
{
    double *ratios = pairs ? malloc(pairs * sizeof(*ratios)) : NULL;
    struct median_ci ci;
    int err = !pairs ? -EINVAL : ratios ? 0 : -ENOMEM;

    *j = (struct judgement){.pairs = pairs, .verdict = VERDICT_UNDECIDED};
    for (size_t i = 0; !err && i < pairs; i++) {
        if (!(ours[i] > 0) || !(theirs[i] > 0) || !isfinite(ours[i]) || !isfinite(theirs[i]))
            err = -EINVAL;
        else
            ratios[i] = ours[i] / theirs[i];
    }
    if (!err)
        err = stats_ci_median(ratios, pairs, JUDGE_CONFIDENCE, &ci);
    if (!err) {
        j->ours = stats_median(ours, pairs);
        j->theirs = stats_median(theirs, pairs);
        j->ratio = ci.median;
        j->low = ci.low;
        j->high = ci.high;
        j->verdict = verdict_of(j, margin, higher_is_better);
        if (j->verdict == VERDICT_BETTER || j->verdict == VERDICT_WORSE)
            j->suspect = suspect(j, margin);
        if (j->verdict == VERDICT_UNDECIDED)
            j->pairs_wanted = pairs_wanted(j, margin);
    }
    free(ratios);
    return err;
}
