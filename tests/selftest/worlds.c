/* SPDX-License-Identifier: Apache-2.0 */
/* Making nights: see worlds.h. */
#include "tests/selftest/worlds.h"

#include <math.h>
#include <string.h>

/* libc's erand48(), without a call: state times a, plus c, modulo 2^48. */
static double uniform(struct dice *d)
{
    d->state = (d->state * 0x5deece66d + 0xb) & 0xffffffffffff;
    return (double)d->state * 0x1p-48;
}

void dice_seed(struct dice *d, uint64_t seed)
{
    *d = (struct dice){.state = (seed & 0xffffffff) << 16 | 0x330e};
    for (int i = 0; i < 16; i++)
        uniform(d);
}

static double normal(struct dice *d)
{
    if (d->kept) {
        d->kept = false;
        return d->other;
    }
    double r = sqrt(-2 * log(1 - uniform(d))), angle = 2 * M_PI * uniform(d);

    d->kept = true;
    d->other = r * sin(angle);
    return r * cos(angle);
}

static double t3(struct dice *d)
{
    double x = normal(d), y = normal(d), z = normal(d);

    return normal(d) / sqrt(x * x + y * y + z * z);
}

/* A log-normal of sigma 1 that points down, with standard deviation 1. */
static double skewed(struct dice *d)
{
    return (exp(0.5) - exp(normal(d))) / sqrt((M_E - 1) * M_E);
}

static double shaped(struct dice *d, enum world_shape shape)
{
    return shape == SHAPE_T3 ? t3(d) : shape == SHAPE_SKEWED ? skewed(d) : normal(d);
}

static size_t below(struct dice *d, size_t n)
{
    return (size_t)(uniform(d) * (double)n);
}

static void choose_lost(const struct world *w, struct dice *d, struct truth *truth)
{
    size_t order[WORLD_CASES];

    memset(truth->lost, 0, sizeof(truth->lost));
    for (size_t c = 0; c < w->cases; c++)
        order[c] = c;
    for (size_t i = 0; i < truth->n_lost && i < w->cases; i++) {
        size_t k = i + below(d, w->cases - i), chosen = order[k];

        order[k] = order[i];
        truth->lost[chosen] = true;
    }
}

static double factor(const struct world *w, struct dice *d)
{
    return w->mixed > 0 ? pow(w->mixed, 2 * uniform(d) - 1) : 1;
}

/* What nights differ by, of spread 1, as one case or many share it. */
static void chain(const struct world *w, struct dice *d, size_t nights, double *x)
{
    for (size_t t = 0; t < nights; t++) {
        double now = shaped(d, w->shape);

        x[t] = t && w->hang > 0 ? w->hang * x[t - 1] + sqrt(1 - w->hang * w->hang) * now : now;
    }
}

static double level_of(const struct world *w, struct dice *d, size_t c)
{
    return c < w->level_cases && uniform(d) < 0.5 ? -w->gap : 0;
}

static void add_order(const struct world *w, size_t c, struct nights *out)
{
    for (size_t l = 0; l < WORLD_LAUNCHES; l++) {
        bool a_first = (l + c) % 2 == 0; /* balanced per case, and over the cases */

        out->first[c][l] = a_first;
        out->values[c][a_first][l] *= 1 - w->order;
        out->fast[c][a_first][l] *= 1 - w->order;
    }
}

/* What is the same for both figures of a case. */
struct scale {
    double spread, nightly;
};

static void figure_make(const struct world *w, struct dice *d, const struct truth *truth, size_t c,
                        const struct scale *scale, const double *common,
                        double values[][WORLD_LAUNCHES])
{
    size_t nights = w->baselines + 1;
    double own[WORLD_NIGHTS];

    chain(w, d, nights, own);
    for (size_t t = 0; t < nights; t++) {
        double at = w->night * scale->nightly *
                        (sqrt(w->shared) * common[t] + sqrt(1 - w->shared) * own[t]) +
                    (w->level_launches ? 0 : level_of(w, d, c));

        if (truth->lost[c])
            at += (t + 1 == nights && truth->loss > 0 ? log(1 - truth->loss) : 0) +
                  (w->slip > 0 ? (double)t * log(1 - w->slip) : 0);
        for (size_t l = 0; l < WORLD_LAUNCHES; l++)
            values[t][l] = 100 * exp(at + w->launch * scale->spread * shaped(d, w->shape) +
                                     (w->level_launches ? level_of(w, d, c) : 0));
    }
}

void world_make(const struct world *w, struct dice *d, struct truth *truth, struct nights *out)
{
    size_t nights = w->baselines + 1;
    double common[WORLD_NIGHTS] = {0};
    struct dice apart = *d; /* so that the medians are the same with and without fast figures */

    apart.state ^= 0x5a5a0000;
    choose_lost(w, d, truth);
    for (size_t c = 0; c < w->cases; c++) {
        struct scale scale = {.spread = factor(w, d)};

        scale.nightly = w->mixed_nights ? factor(w, d) : 1;
        if (w->shared > 0 && (c == 0 || (w->group && c % w->group == 0)))
            chain(w, d, nights, common);
        figure_make(w, d, truth, c, &scale, common, out->values[c]);
        if (c % 2)
            figure_make(w, &apart, truth, c, &scale, common, out->fast[c]);
        else
            memcpy(out->fast[c], out->values[c], sizeof(out->fast[c]));
        if (w->in_turn)
            add_order(w, c, out);
    }
}
