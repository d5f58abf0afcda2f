/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which figure of a run shows the smallest loss? Recorded runs, drawn again: some are the baseline,
 * one is judged. The threshold of each estimator is its quantile where nothing changed, on one half
 * of the runs. The smallest loss that is found is measured on the other half, with losses planted
 * in its samples. See docs/statistics.md.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/rng.h"
#include "core/stats.h"
#include "tests/selftest/recording.h"

#define FALSE_ALARMS 0.01
#define POWER        0.95
#define BASELINES    5
#define LAUNCHES     5 /* of a run */
#define RUNS_LEAST   8 /* of a case: fewer make no halves */
#define DRAWS        1000
#define REPLICATES   40
#define INTERVAL     0.95

/* ---- Estimators: a figure of a launch, and one of a run's launches ---- */

enum figure { MEDIAN, Q75, Q90, Q95, FASTEST_HALF, FASTEST, MEAN_TIME, FIGURES };
enum over { OVER_MEAN, OVER_MEDIAN, OVER_BEST, OVER_BEST_HALF, OVER_QUIET, OVERS };

struct estimator {
    const char *name;
    enum figure figure;
    enum over over;
    int second; /* estimator that is judged as well, with half of the alarms each; -1: none */
};

static const struct estimator estimators[] = {
    {"median", MEDIAN, OVER_MEAN, -1},
    {"25 % quantile of time", Q75, OVER_MEAN, -1},
    {"10 % quantile of time", Q90, OVER_MEAN, -1},
    {"5 % quantile of time", Q95, OVER_MEAN, -1},
    {"mean of the fastest half", FASTEST_HALF, OVER_MEAN, -1},
    {"fastest sample", FASTEST, OVER_MEAN, -1},
    {"mean time", MEAN_TIME, OVER_MEAN, -1},
    {"median; launches weighted", MEDIAN, OVER_QUIET, -1},
    {"median; median launch", MEDIAN, OVER_MEDIAN, -1},
    {"median; best three launches", MEDIAN, OVER_BEST_HALF, -1},
    {"median; best launch", MEDIAN, OVER_BEST, -1},
    {"25 % quantile; best launch", Q75, OVER_BEST, -1},
    {"5 % quantile; best three", Q95, OVER_BEST_HALF, -1},
    {"5 % quantile; best launch", Q95, OVER_BEST, -1},
    {"pair: median, 5 % quantile", MEDIAN, OVER_MEAN, 3},
    {"pair: median, best launch", MEDIAN, OVER_MEAN, 10},
    {"pair: median, 25 %; best launch", MEDIAN, OVER_MEAN, 11},
    {"pair: median, 5 %; best three", MEDIAN, OVER_MEAN, 12},
    {"pair: median, 5 %; best launch", MEDIAN, OVER_MEAN, 13},
};
#define ESTIMATORS (sizeof(estimators) / sizeof(estimators[0]))

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

static double mean_of(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* All figures of a launch; x is sorted. Samples are logarithms and higher is better: a low quantile
 * of time is a high one of these. */
static void figures_of(double *x, size_t n, double out[FIGURES])
{
    double time = 0;

    qsort(x, n, sizeof(*x), ascending);
    out[MEDIAN] = stats_quantile_sorted(x, n, 0.5);
    out[Q75] = stats_quantile_sorted(x, n, 0.75);
    out[Q90] = stats_quantile_sorted(x, n, 0.90);
    out[Q95] = stats_quantile_sorted(x, n, 0.95);
    out[FASTEST_HALF] = mean_of(x + n / 2, n - n / 2);
    out[FASTEST] = x[n - 1];
    for (size_t i = 0; i < n; i++)
        time += exp(-x[i]) / (double)n;
    // cppcheck-suppress invalidFunctionArg ; n is at least one
    out[MEAN_TIME] = -log(time);
}

/* ---- Losses ---- */

enum shape { ALL, SOME_SAMPLES, SLOW_HALF, FAST_HALF, SOME_LAUNCHES, SHAPES };
static const char *const shape_names[SHAPES] = {
    [ALL] = "all samples",
    [SOME_SAMPLES] = "30 % of the samples",
    [SLOW_HALF] = "the slower half of the samples",
    [FAST_HALF] = "the faster half of the samples",
    [SOME_LAUNCHES] = "40 % of the launches",
};
static const double losses[] = {0,    0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07,
                                0.10, 0.14,  0.20, 0.28,  0.40, 0.55, 0.70, 0.85};
#define LOSSES      (sizeof(losses) / sizeof(losses[0]))
#define FAST_SHARE  0.5
#define SHARE_TIMES 0.3
#define SHARE_RUNS  0.4

/* x: a launch's samples; ascending for the halves. */
static void plant(double *x, size_t n, enum shape shape, double loss, struct rng *r)
{
    double off = log1p(-loss);
    bool hit = rng_double(r) < SHARE_RUNS;

    if (shape == SLOW_HALF || shape == FAST_HALF)
        qsort(x, n, sizeof(*x), ascending);
    for (size_t i = 0; i < n; i++) {
        bool slow = shape == ALL             ? true
                    : shape == SOME_LAUNCHES ? hit
                    : shape == SOME_SAMPLES  ? rng_double(r) < SHARE_TIMES
                                             : (shape == SLOW_HALF) == (i < n - n / 2);

        x[i] += slow ? off : 0;
    }
}

/* ---- A case, drawn again and again ---- */

struct subject {
    const struct recorded_case *of;
    size_t n_runs, runs[4096];        /* the first launch of each run, and behind the last one */
    double (*value)[LOSSES][FIGURES]; /* of each launch, with each loss */
    double *weight;
};

static bool subject_init(struct subject *s, const struct recorded_case *c)
{
    *s = (struct subject){.of = c};
    for (size_t i = 0; i < c->n && s->n_runs + 1 < sizeof(s->runs) / sizeof(s->runs[0]); i++) {
        if (i == 0 || c->launches[i].run != c->launches[i - 1].run)
            s->runs[s->n_runs++] = i;
    }
    s->runs[s->n_runs] = c->n;
    s->value = calloc(c->n + 1, sizeof(*s->value)); /* of none may be NULL */
    s->weight = calloc(c->n + 1, sizeof(*s->weight));
    if (!s->value || !s->weight)
        abort();
    for (size_t i = 0; i < c->n; i++) /* 1 % of steal, or 100 switches a second, halve it */
        s->weight[i] = 1 / (1 + c->launches[i].steal + c->launches[i].switches / 100);
    return s->n_runs >= RUNS_LEAST;
}

static void subject_plant(struct subject *s, enum shape shape, struct rng *r)
{
    for (size_t i = 0; i < s->of->n; i++) {
        const struct recorded_launch *l = &s->of->launches[i];
        double *x = calloc(l->n, sizeof(*x));
        struct rng same = *r;

        if (!x)
            abort();
        for (size_t k = 0; k < LOSSES; k++) {
            struct rng draw = same;

            memcpy(x, l->samples, l->n * sizeof(*x));
            plant(x, l->n, shape, losses[k], &draw);
            figures_of(x, l->n, s->value[i][k]);
        }
        for (size_t k = 0; k < l->n + 1; k++)
            rng_double(r);
        free(x);
    }
}

static void subject_release(struct subject *s)
{
    free(s->value);
    free(s->weight);
}

/* Sorts few numbers. */
static void insert_sort(double *x, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && x[k] < x[k - 1]; k--) {
            double t = x[k];

            x[k] = x[k - 1];
            x[k - 1] = t;
        }
}

/* A run's figure, over the launches `at`. */
static double run_figure(const struct subject *s, const size_t at[LAUNCHES], size_t loss,
                         const struct estimator *e)
{
    double x[LAUNCHES], sum = 0, weights = 0;

    for (size_t i = 0; i < LAUNCHES; i++) {
        x[i] = s->value[at[i]][loss][e->figure];
        sum += e->over == OVER_QUIET ? x[i] * s->weight[at[i]] : x[i];
        weights += e->over == OVER_QUIET ? s->weight[at[i]] : 1;
    }
    if (e->over == OVER_MEAN || e->over == OVER_QUIET)
        return sum / weights;
    insert_sort(x, LAUNCHES);
    return e->over == OVER_BEST     ? x[LAUNCHES - 1]
           : e->over == OVER_MEDIAN ? x[LAUNCHES / 2]
                                    : mean_of(x + LAUNCHES / 2, LAUNCHES - LAUNCHES / 2);
}

/* Which launches a draw takes: of whole runs of one half, their launches drawn again. */
struct draw {
    size_t at[BASELINES + 1][LAUNCHES];
};

static void draw_make(const struct subject *s, const size_t *half, size_t n, struct draw *d,
                      struct rng *r)
{
    for (size_t k = 0; k <= BASELINES; k++) {
        size_t run = half[rng_below(r, n)], first = s->runs[run], last = s->runs[run + 1];

        for (size_t i = 0; i < LAUNCHES; i++)
            d->at[k][i] = first + rng_below(r, last - first);
    }
}

static double change(const struct subject *s, const struct draw *d, size_t loss, size_t estimator)
{
    const struct estimator *e = &estimators[estimator];
    double a = 0;

    for (size_t k = 0; k < BASELINES; k++)
        a += run_figure(s, d->at[k], 0, e) / BASELINES;
    return run_figure(s, d->at[BASELINES], loss, e) - a;
}

/* Where so many of the draws without a change lie below. */
static double threshold(const struct subject *s, const struct draw *draws, size_t estimator,
                        double alarms, double *scratch)
{
    for (size_t i = 0; i < DRAWS; i++)
        scratch[i] = change(s, &draws[i], 0, estimator);
    qsort(scratch, DRAWS, sizeof(*scratch), ascending);
    return stats_quantile_sorted(scratch, DRAWS, alarms);
}

static double found(const struct subject *s, const struct draw *draws, size_t loss,
                    size_t estimator, const double bound[2])
{
    int second = estimators[estimator].second;
    size_t n = 0;

    for (size_t i = 0; i < DRAWS; i++)
        n += change(s, &draws[i], loss, estimator) < bound[0] ||
             (second >= 0 && change(s, &draws[i], loss, (size_t)second) < bound[1]);
    return (double)n / DRAWS;
}

/* The smallest loss that is found with POWER; INFINITY: none is. Loss is interpolated between those
 * that are planted. */
static double smallest(const struct subject *s, const struct draw *test, size_t estimator,
                       const double bound[2])
{
    double before = found(s, test, 0, estimator, bound);

    for (size_t k = 1; k < LOSSES; k++) {
        double now = found(s, test, k, estimator, bound);

        if (now >= POWER)
            return before >= POWER ? losses[k]
                                   : losses[k - 1] + (losses[k] - losses[k - 1]) *
                                                         (POWER - before) / (now - before);
        before = now;
    }
    return INFINITY;
}

/* ---- Results ---- */

struct result {
    double loss[REPLICATES][SHAPES]; /* smallest that is found */
    double alarms[REPLICATES];       /* on the half that did not set the threshold */
};

static void replicate(const struct subject *s, enum shape shape, size_t at, struct result *results,
                      struct rng *r)
{
    static struct draw calibrate[DRAWS], test[DRAWS];
    static double scratch[DRAWS];
    uint32_t order[4096];
    size_t halves[2][4096], n = s->n_runs / 2, sizes[2] = {n, s->n_runs - n};

    for (size_t i = 0; i < s->n_runs; i++)
        order[i] = (uint32_t)i;
    rng_shuffle_u32(r, order, s->n_runs);
    for (size_t i = 0; i < s->n_runs; i++)
        halves[i >= n][i < n ? i : i - n] = order[i];
    for (size_t i = 0; i < DRAWS; i++) {
        draw_make(s, halves[0], sizes[0], &calibrate[i], r);
        draw_make(s, halves[1], sizes[1], &test[i], r);
    }
    for (size_t e = 0; e < ESTIMATORS; e++) {
        int second = estimators[e].second;
        double alarms = FALSE_ALARMS / (second < 0 ? 1 : 2), bound[2] = {0};

        bound[0] = threshold(s, calibrate, e, alarms, scratch);
        if (second >= 0)
            bound[1] = threshold(s, calibrate, (size_t)second, alarms, scratch);
        results[e].loss[at][shape] = smallest(s, test, e, bound);
        results[e].alarms[at] = found(s, test, 0, e, bound);
    }
}

static double quantile_of(const double *x, size_t n, double p)
{
    double sorted[REPLICATES];

    memcpy(sorted, x, n * sizeof(*x));
    qsort(sorted, n, sizeof(*sorted), ascending);
    return sorted[(size_t)lround(p * (double)(n - 1))];
}

static void print_loss(double loss)
{
    if (isfinite(loss))
        printf(" %6.1f", 100 * loss);
    else
        printf("   >85 ");
}

static void case_show(const char *id, const struct result *results)
{
    printf("%s\n%-33s alarms", id, "");
    for (size_t k = 0; k < SHAPES; k++)
        printf("  %s", shape_names[k]);
    putchar('\n');
    for (size_t e = 0; e < ESTIMATORS; e++) {
        printf("  %-31s %5.1f ", estimators[e].name, 100 * mean_of(results[e].alarms, REPLICATES));
        for (size_t k = 0; k < SHAPES; k++) {
            double x[REPLICATES];

            for (size_t i = 0; i < REPLICATES; i++)
                x[i] = results[e].loss[i][k];
            print_loss(quantile_of(x, REPLICATES, 0.5));
            printf(" (");
            print_loss(quantile_of(x, REPLICATES, (1 - INTERVAL) / 2));
            print_loss(quantile_of(x, REPLICATES, (1 + INTERVAL) / 2));
            printf(" )");
        }
        putchar('\n');
    }
    fflush(stdout);
}

/* Ratio of each estimator's smallest loss to the median's, over the cases: geometric mean. */
struct summary_of {
    double log_ratio[SHAPES];
    size_t n[SHAPES], hidden[SHAPES], better[SHAPES];
};

static void sum_up(const struct result *results, struct summary_of *sums)
{
    for (size_t e = 0; e < ESTIMATORS; e++) {
        for (size_t k = 0; k < SHAPES; k++) {
            double x[2][REPLICATES];

            for (size_t i = 0; i < REPLICATES; i++) {
                x[0][i] = results[0].loss[i][k];
                x[1][i] = results[e].loss[i][k];
            }
            double own = quantile_of(x[1], REPLICATES, 0.5),
                   of = quantile_of(x[0], REPLICATES, 0.5);

            if (isfinite(of) && !isfinite(own))
                sums[e].hidden[k]++;
            if (!isfinite(of) || !isfinite(own))
                continue;
            sums[e].log_ratio[k] += log(own / of);
            sums[e].better[k] += own < of;
            sums[e].n[k]++;
        }
    }
}

static void sums_show(const struct summary_of *sums)
{
    puts("smallest loss found, as a ratio to the median's: geometric mean over the cases,\n"
         "cases that are better / cases, + cases in which the loss stays hidden");
    for (size_t e = 0; e < ESTIMATORS; e++) {
        printf("  %-31s", estimators[e].name);
        for (size_t k = 0; k < SHAPES; k++)
            printf("  %5.2f %2zu/%2zu +%zu", exp(sums[e].log_ratio[k] / (double)sums[e].n[k]),
                   sums[e].better[k], sums[e].n[k], sums[e].hidden[k]);
        putchar('\n');
    }
}

static void case_run(const struct recorded_case *c, struct rng *r, struct summary_of *sums)
{
    static struct result results[ESTIMATORS];
    static struct subject s;

    if (subject_init(&s, c)) {
        for (int shape = 0; shape < SHAPES; shape++) {
            subject_plant(&s, (enum shape)shape, r);
            for (size_t i = 0; i < REPLICATES; i++)
                replicate(&s, (enum shape)shape, i, results, r);
        }
        case_show(c->id, results);
        sum_up(results, sums);
    }
    subject_release(&s);
}

static int usage(FILE *to)
{
    fputs("usage: estimators [--write FILE] [--only TEXT] RUN|TABLE...\n\n"
          "The smallest loss that estimators of a run find, on recorded noise.\n\n"
          "  --write FILE   write the launches as a table of noise, and stop\n"
          "  --only TEXT    cases whose name has TEXT\n"
          "  RUN            run folders of one machine; TABLE: of scripts/record-noise\n\n"
          "exit: 0, or 2: wrong usage, or a file that cannot be read\n",
          to);
    return 2;
}

static int load(struct recording *r, const char *path)
{
    struct stat st;

    if (!stat(path, &st) && S_ISREG(st.st_mode))
        return recording_add_table(r, path, 0);
    return recording_add_run(r, path, 0, 2);
}

int main(int argc, char **argv)
{
    struct recording recording = {0};
    struct summary_of sums[ESTIMATORS] = {0};
    const char *only = "", *write = NULL;
    struct rng r;
    int i;

    for (i = 1; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
        if (!strcmp(argv[i], "--only"))
            only = argv[i + 1];
        else if (!strcmp(argv[i], "--write"))
            write = argv[i + 1];
        else
            return usage(stderr);
    }
    if (i >= argc)
        return usage(stderr);
    for (; i < argc; i++) {
        if (load(&recording, argv[i]))
            return 2;
    }
    FILE *to = write ? fopen(write, "w") : NULL;

    if (write && !to) {
        perror(write);
        return 2;
    }
    if (to)
        recording_write(&recording, to);
    rng_seed(&r, 1);
    for (size_t k = 0; !to && k < recording.n; k++) {
        if (strstr(recording.cases[k].id, only))
            case_run(&recording.cases[k], &r, sums);
    }
    if (to)
        fclose(to);
    else
        sums_show(sums);
    recording_release(&recording);
    return 0;
}
