/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/selftest/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "core/units.h"
#include "harness/decide/spread.h"
#include "harness/store/run_folder.h"
#include "tests/selftest/noise.h"

struct launch {
    double *samples; /* logarithms around their median; higher is better */
    size_t n;
    double median;
};

struct recorded {
    char id[192]; /* folder, benchmark, case and row */
    struct launch *launches;
    size_t n;
    double spread; /* between launches */
};

struct replay {
    struct recorded *cases;
    size_t n;
    double *shape; /* launches off their case's mean, in its spreads */
    size_t n_shape;
};

static void *grown(void *array, size_t n, size_t size)
{
    void *more = realloc(array, (n + 1) * size);

    if (!more)
        abort();
    return more;
}

/* +1, -1: lower is better, 0: the launch has no such row, or nothing that can be used. */
static int direction(const struct run_bench *b, const char *case_id, const char *repeat, size_t row)
{
    const struct table *t = &b->rows;
    size_t at = 0;

    for (size_t i = 0; i < t->n_rows; i++) {
        if (strcmp(table_text(t, i, "case"), case_id) || strcmp(table_text(t, i, "repeat"), repeat))
            continue;
        if (at++ < row)
            continue;
        const struct unit *unit = units_find(table_text(t, i, "unit"));

        return !unit ? 0 : unit->higher_is_better ? 1 : -1;
    }
    return 0;
}

static struct recorded *recorded_of(struct replay *replay, const char *id)
{
    for (size_t i = 0; i < replay->n; i++) {
        if (!strcmp(replay->cases[i].id, id))
            return &replay->cases[i];
    }
    replay->cases = grown(replay->cases, replay->n, sizeof(*replay->cases));
    struct recorded *c = &replay->cases[replay->n++];

    *c = (struct recorded){0};
    snprintf(c->id, sizeof(c->id), "%s", id);
    return c;
}

/* Lines from..to of the samples are one launch's row. */
static void launch_add(struct replay *replay, const char *path, const struct run_bench *b,
                       const struct table *t, size_t from, size_t to)
{
    size_t row = (size_t)table_number(t, from, "row");
    int sign = direction(b, table_text(t, from, "case"), table_text(t, from, "repeat"), row);
    struct launch launch = {.n = to - from};
    char id[192];

    if (launch.n < REPLAY_SAMPLES || sign == 0)
        return;
    launch.samples = grown(NULL, launch.n, sizeof(*launch.samples));
    for (size_t i = from; i < to; i++)
        launch.samples[i - from] = sign * log(table_number(t, i, "value"));
    launch.median = stats_median(launch.samples, launch.n);
    if (!isfinite(launch.median)) {
        free(launch.samples);
        return;
    }
    for (size_t i = 0; i < launch.n; i++)
        launch.samples[i] -= launch.median;
    snprintf(id, sizeof(id), "%s %s %s %zu", path, b->name, table_text(t, from, "case"), row);
    struct recorded *c = recorded_of(replay, id);

    c->launches = grown(c->launches, c->n, sizeof(*c->launches));
    c->launches[c->n++] = launch;
}

static bool is_same_launch(const struct table *t, size_t a, size_t b)
{
    static const char *const key[] = {"case", "repeat", "row"};

    for (size_t i = 0; i < 3; i++) {
        if (strcmp(table_text(t, a, key[i]), table_text(t, b, key[i])))
            return false;
    }
    return true;
}

static int bench_load(struct replay *replay, const char *path, const struct run_bench *b)
{
    struct table t;
    char file[4096], error[256];

    snprintf(file, sizeof(file), "%s/samples/%s.csv", path, b->name);
    if (table_load(file, &t, error, sizeof(error)))
        return 0; /* a benchmark that keeps none */
    for (size_t from = 0, to; from < t.n_rows; from = to) {
        for (to = from + 1; to < t.n_rows && is_same_launch(&t, from, to); to++)
            ;
        launch_add(replay, path, b, &t, from, to);
    }
    table_release(&t);
    return 0;
}

static int folder_load(struct replay *replay, const char *path)
{
    struct run_folder run;
    char error[512];

    if (run_folder_load(path, &run, error, sizeof(error))) {
        fprintf(stderr, "selftest: %s\n", error);
        return -1;
    }
    for (size_t i = 0; i < run.n_benches; i++)
        bench_load(replay, path, &run.benches[i]);
    run_folder_release(&run);
    return 0;
}

static void recorded_release(struct recorded *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->launches[i].samples);
    free(c->launches);
}

static double variance_of(const struct recorded *c, double *mean)
{
    double squares = 0;

    *mean = 0;
    for (size_t k = 0; k < c->n; k++)
        *mean += c->launches[k].median / (double)c->n;
    for (size_t k = 0; k < c->n; k++)
        squares += pow(c->launches[k].median - *mean, 2);
    return squares / (double)(c->n - 1);
}

/* Cases of one launch are left out. */
static void drop_single(struct replay *replay)
{
    size_t kept = 0;

    for (size_t i = 0; i < replay->n; i++) {
        if (replay->cases[i].n < 2)
            recorded_release(&replay->cases[i]);
        else
            replay->cases[kept++] = replay->cases[i];
    }
    replay->n = kept;
}

/* Three launches in their own spread all lie at its edges, and would look like two levels: so each
 * case's spread is moderated by the others', and the shape is of launches in that. */
static void settle(struct replay *replay)
{
    double *variances = grown(NULL, replay->n, sizeof(double)), mean, squares = 0;
    double *df = grown(NULL, replay->n, sizeof(double));
    struct prior prior;

    for (size_t i = 0; i < replay->n; i++) {
        variances[i] = variance_of(&replay->cases[i], &mean);
        df[i] = (double)replay->cases[i].n - 1;
    }
    if (prior_fit(variances, df, replay->n, &prior))
        abort();
    for (size_t i = 0; i < replay->n; i++) {
        struct recorded *c = &replay->cases[i];

        c->spread = sqrt(prior_moderate(&prior, variance_of(c, &mean), &df[i]));
        for (size_t k = 0; k < c->n && c->spread > 0; k++) {
            double off = (c->launches[k].median - mean) / c->spread;

            replay->shape = grown(replay->shape, replay->n_shape, sizeof(*replay->shape));
            replay->shape[replay->n_shape++] = off;
            squares += off * off;
        }
    }
    for (size_t k = 0; k < replay->n_shape; k++)
        replay->shape[k] /= sqrt(squares / (double)replay->n_shape);
    free(variances);
    free(df);
}

struct replay *replay_load(char *const *folders, size_t n)
{
    struct replay *replay = calloc(1, sizeof(*replay));

    for (size_t i = 0; replay && i < n; i++) {
        if (folder_load(replay, folders[i])) {
            replay_release(replay);
            return NULL;
        }
    }
    if (!replay)
        return NULL;
    drop_single(replay);
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
    for (size_t i = 0; i < replay->n; i++)
        recorded_release(&replay->cases[i]);
    free(replay->cases);
    free(replay->shape);
    free(replay);
}

size_t replay_cases(const struct replay *replay)
{
    return replay->n;
}

double replay_spread(const struct replay *replay)
{
    double *spreads = grown(NULL, replay->n, sizeof(*spreads)), median;

    for (size_t i = 0; i < replay->n; i++)
        spreads[i] = replay->cases[i].spread;
    median = stats_median(spreads, replay->n);
    free(spreads);
    return median;
}

void replay_launch(const struct replay *replay, struct rng *r, size_t c, double *samples)
{
    const struct recorded *of = &replay->cases[c % replay->n];
    const struct launch *launch = &of->launches[rng_below(r, of->n)];
    double level = of->spread * replay->shape[rng_below(r, replay->n_shape)];
    size_t start = rng_below(r, launch->n);

    for (size_t i = 0; i < SUITE_SAMPLES; i++)
        samples[i] = level + launch->samples[(start + i) % launch->n];
}
