/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/selftest/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/stats.h"
#include "harness/decide/spread.h"
#include "tests/selftest/noise.h"
#include "tests/selftest/recording.h"

struct replay {
    struct recording all; /* once settled, samples are around their launch's median */
    double *spreads;      /* of each case: between launches */
    double *shape;        /* launches off their case's mean, in its spreads */
    size_t n_shape;
};

static double *numbers(size_t n)
{
    double *all = calloc(n + 1, sizeof(*all));

    if (!all)
        abort();
    return all;
}

static double launch_median(const struct recorded_launch *launch)
{
    return stats_median(launch->samples, launch->n);
}

static double variance_of(const struct recorded_case *c, double *mean)
{
    double squares = 0;

    *mean = 0;
    for (size_t k = 0; k < c->n; k++)
        *mean += launch_median(&c->launches[k]) / (double)c->n;
    for (size_t k = 0; k < c->n; k++)
        squares += pow(launch_median(&c->launches[k]) - *mean, 2);
    return squares / (double)(c->n - 1);
}

/* Adds the case's launches to the shape. */
static void add_shape(struct replay *replay, const struct recorded_case *c, double mean,
                      double spread)
{
    for (size_t k = 0; k < c->n && spread > 0; k++)
        replay->shape[replay->n_shape++] = (launch_median(&c->launches[k]) - mean) / spread;
}

static void centre(struct recorded_case *c)
{
    for (size_t k = 0; k < c->n; k++) {
        double median = launch_median(&c->launches[k]);

        for (size_t i = 0; i < c->launches[k].n; i++)
            c->launches[k].samples[i] -= median;
    }
}

static size_t count_launches(const struct recording *all)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        n += all->cases[i].n;
    return n;
}

/* Three launches in their own spread all lie at its edges, and would look like two levels: so each
 * case's spread is moderated by the others', and the shape is of launches in that. */
static void settle(struct replay *replay)
{
    const size_t n = replay->all.n;
    double *variances = numbers(n), *df = numbers(n), *means = numbers(n), squares = 0;
    struct prior prior;

    replay->spreads = numbers(n);
    replay->shape = numbers(count_launches(&replay->all));
    for (size_t i = 0; i < n; i++) {
        variances[i] = variance_of(&replay->all.cases[i], &means[i]);
        df[i] = (double)replay->all.cases[i].n - 1;
    }
    if (prior_fit(variances, df, n, &prior))
        abort();
    for (size_t i = 0; i < n; i++) {
        struct recorded_case *c = &replay->all.cases[i];

        replay->spreads[i] = sqrt(prior_moderate(&prior, variances[i], &df[i]));
        add_shape(replay, c, means[i], replay->spreads[i]);
        centre(c);
    }
    for (size_t k = 0; k < replay->n_shape; k++)
        squares += replay->shape[k] * replay->shape[k];
    for (size_t k = 0; k < replay->n_shape; k++)
        replay->shape[k] /= sqrt(squares / (double)replay->n_shape);
    free(variances);
    free(df);
    free(means);
}

struct replay *replay_load(char *const *folders, size_t n)
{
    struct replay *replay = calloc(1, sizeof(*replay));

    for (size_t i = 0; replay && i < n; i++) {
        if (recording_add_run(&replay->all, folders[i], i, REPLAY_SAMPLES)) {
            replay_release(replay);
            return NULL;
        }
    }
    if (!replay)
        return NULL;
    recording_keep(&replay->all, 2);
    settle(replay);
    if (replay->n_shape)
        return replay;
    fprintf(stderr, "selftest: no case of the run folders has two launches of %d samples\n",
            REPLAY_SAMPLES);
    replay_release(replay);
    return NULL;
}

void replay_release(struct replay *replay)
{
    if (!replay)
        return;
    recording_release(&replay->all);
    free(replay->spreads);
    free(replay->shape);
    free(replay);
}

size_t replay_cases(const struct replay *replay)
{
    return replay->all.n;
}

double replay_spread(const struct replay *replay)
{
    return stats_median(replay->spreads, replay->all.n);
}

void replay_launch(const struct replay *replay, struct rng *r, size_t c, double *samples)
{
    size_t at = c % replay->all.n;
    const struct recorded_case *of = &replay->all.cases[at];
    const struct recorded_launch *launch = &of->launches[rng_below(r, of->n)];
    double level = replay->spreads[at] * replay->shape[rng_below(r, replay->n_shape)];
    size_t start = rng_below(r, launch->n);

    for (size_t i = 0; i < SUITE_SAMPLES; i++)
        samples[i] = level + launch->samples[(start + i) % launch->n];
}
