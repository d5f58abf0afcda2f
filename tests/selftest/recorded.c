/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plumb check says of recorded runs: each is judged against others of the same machine. Where
 * nothing is planted, every loss is a false alarm. Then each case in turn loses a share of all its
 * samples. Once with the medians alone, once with what launches sustained as well.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/stats.h"
#include "harness/decide/decide.h"
#include "tests/selftest/recording.h"

#define CASES    64
#define RUNS     512
#define LAUNCHES 16
#define MARGIN   0.02

static const double losses[] = {0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.10,
                                0.14, 0.20, 0.28, 0.40, 0.55, 0.70};
#define LOSSES (sizeof(losses) / sizeof(losses[0]))

struct stage {
    size_t n_cases, n_runs, baselines;
    const char *names[CASES];
    double medians[CASES][RUNS][LAUNCHES], sustained[CASES][RUNS][LAUNCHES];
    size_t launches[CASES][RUNS];
    double lost[CASES][2][LAUNCHES];
    struct decide_run a[CASES][RUNS], b[CASES];
    struct decide_case cases[CASES];
    size_t found[2][CASES][LOSSES];
    double smallest[2][CASES];
    size_t suites, alarms[2], named[2];
};

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

/* Samples are logarithms of rates: all work over all time is their harmonic mean. */
static double sustained(const struct recorded_launch *l)
{
    double time = 0;

    for (size_t i = 0; i < l->n; i++)
        time += exp(-l->samples[i]) / (double)l->n;
    return 1 / time;
}

static void take_launch(struct stage *s, size_t c, const struct recorded_launch *l)
{
    size_t *n = &s->launches[c][l->run];

    if (*n >= LAUNCHES || l->run >= RUNS)
        return;
    qsort(l->samples, l->n, sizeof(*l->samples), ascending);
    s->medians[c][l->run][*n] = exp(stats_quantile_sorted(l->samples, l->n, 0.5));
    s->sustained[c][l->run][(*n)++] = sustained(l);
}

static void take(struct stage *s, const struct recording *r)
{
    s->n_runs = r->n_runs < RUNS ? r->n_runs : RUNS;
    for (size_t i = 0; i < r->n && s->n_cases < CASES; i++) {
        s->names[s->n_cases] = r->cases[i].id;
        for (size_t k = 0; k < r->cases[i].n; k++)
            take_launch(s, s->n_cases, &r->cases[i].launches[k]);
        s->n_cases++;
    }
}

static struct decide_run run_of(struct stage *s, size_t c, size_t run, bool both)
{
    return (struct decide_run){.values = s->medians[c][run],
                               .sustained = both ? s->sustained[c][run] : NULL,
                               .n = s->launches[c][run]};
}

/* Runs order[0..baselines) against the run `now`. */
static void set(struct stage *s, const uint32_t *order, size_t now, bool both)
{
    for (size_t c = 0; c < s->n_cases; c++) {
        for (size_t k = 0; k < s->baselines; k++)
            s->a[c][k] = run_of(s, c, order[k], both);
        s->b[c] = run_of(s, c, now, both);
        s->cases[c] = (struct decide_case){.a = {s->a[c], s->baselines},
                                           .b = {&s->b[c], 1},
                                           .margin = MARGIN,
                                           .higher_is_better = true};
    }
}

static void judge(struct stage *s)
{
    const struct decide_options options = {.unchanged = true, .b_stays = true};
    struct decide_overall overall;

    if (decide_suite(s->cases, s->n_cases, &options, &overall))
        abort();
}

static void lose(struct stage *s, size_t c, size_t now, double loss)
{
    for (size_t l = 0; l < s->launches[c][now]; l++) {
        s->lost[c][0][l] = s->medians[c][now][l] * (1 - loss);
        s->lost[c][1][l] = s->sustained[c][now][l] * (1 - loss);
    }
    s->b[c].values = s->lost[c][0];
    s->b[c].sustained = s->b[c].sustained ? s->lost[c][1] : NULL;
}

static void suite(struct stage *s, const uint32_t *order, size_t now, bool both)
{
    size_t worse = 0;

    set(s, order, now, both);
    judge(s);
    for (size_t c = 0; c < s->n_cases; c++) {
        worse += s->cases[c].decision == DECISION_WORSE;
        s->smallest[both][c] += fmin(1, s->cases[c].detectable);
    }
    s->alarms[both] += worse > 0;
    s->named[both] += worse;
    for (size_t c = 0; c < s->n_cases; c++) {
        for (size_t k = 0; k < LOSSES; k++) {
            set(s, order, now, both);
            lose(s, c, now, losses[k]);
            judge(s);
            s->found[both][c][k] += s->cases[c].decision == DECISION_WORSE;
        }
    }
}

static double smallest(const struct stage *s, bool both, size_t c, double power)
{
    double before = 0;

    for (size_t k = 0; k < LOSSES; k++) {
        double now = (double)s->found[both][c][k] / (double)s->suites;

        if (now >= power)
            return k == 0 ? losses[0]
                          : losses[k - 1] +
                                (losses[k] - losses[k - 1]) * (power - before) / (now - before);
        before = now;
    }
    return 1;
}

static void show(const struct stage *s)
{
    double all[2][CASES];

    printf("%zu suites, %zu baselines\nfalse alarms: medians %zu suites (%zu cases), both %zu (%zu)"
           "\n\nloss found in 80 %% and 95 %%: medians; both; mean of the loss said to be "
           "detectable\n",
           s->suites, s->baselines, s->alarms[0], s->named[0], s->alarms[1], s->named[1]);
    for (size_t c = 0; c < s->n_cases; c++) {
        printf("%-70.70s", s->names[c]);
        for (int both = 0; both < 2; both++)
            printf("  %5.1f %5.1f", 100 * smallest(s, both, c, 0.8),
                   100 * smallest(s, both, c, 0.95));
        for (int both = 0; both < 2; both++) {
            all[both][c] = smallest(s, both, c, 0.8);
            printf("  %5.1f", 100 * s->smallest[both][c] / (double)s->suites);
        }
        putchar('\n');
    }
    printf("80 %%, median over the cases: medians %.1f %%, both %.1f %%\n",
           100 * stats_median(all[0], s->n_cases), 100 * stats_median(all[1], s->n_cases));
}

static int write_table(const char *path, char *const *folders)
{
    struct recording all = {0};
    FILE *to;

    for (; *folders; folders++)
        if (recording_add_run(&all, *folders, 0, 2))
            return 2;
    to = fopen(path, "w");
    if (!to) {
        perror(path);
        return 2;
    }
    recording_write(&all, to);
    recording_release(&all);
    return fclose(to) ? 2 : 0;
}

int main(int argc, char **argv)
{
    static struct stage s;
    struct recording recording = {0};
    struct rng r;
    uint32_t order[RUNS];

    if (argc < 4) {
        fputs("usage: recorded BASELINES REPEATS TABLE...\n"
              "       recorded --write TABLE RUN...\n",
              stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--write"))
        return write_table(argv[2], argv + 3);
    for (int i = 3; i < argc; i++) {
        if (recording_add_table(&recording, argv[i], 0))
            return 2;
    }
    s.baselines = strtoul(argv[1], NULL, 10);
    take(&s, &recording);
    if (s.baselines + 1 > s.n_runs) {
        fputs("recorded: too few runs\n", stderr);
        return 2;
    }
    rng_seed(&r, 1);
    for (size_t i = 0; i < strtoul(argv[2], NULL, 10); i++) {
        for (size_t now = 0; now < s.n_runs; now++) {
            size_t n = 0;

            for (uint32_t k = 0; k < s.n_runs; k++) {
                if (k != now)
                    order[n++] = k;
            }
            rng_shuffle_u32(&r, order, n);
            suite(&s, order, now, false);
            suite(&s, order, now, true);
            s.suites++;
        }
    }
    show(&s);
    recording_release(&recording);
    return 0;
}
