/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the search for change points keep what it promises? Made-up series of nightly runs, seeded: how
 * many false alarms each kind of noise raises when the series is looked at after every run, and how soon a
 * true step is found. Prints tables; exit 1 where a promise is broken by more than chance explains.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "harness/history/change.h"
#include "tests/selftest/history_noise.h"

#define YEAR            365
#define RUNS_MAX        400
#define PROMISED_A_YEAR 1.0  /* false alarms, per 100 cases */
#define PROMISED_FOUND  0.95 /* of steps of 3 %, with the 5th run of the new level */
#define PROMISED_RUNS   5
#define PROMISED_AFTER  55 /* runs before the step */
#define PROMISED_STEP   0.03
#define SURE            3.3 /* standard deviations by which a promise must be missed */
#define SEED            20250101

struct effort {
    size_t series;      /* years of each kind of noise that is promised */
    size_t series_open; /* and of each that is not */
    size_t steps;
    bool markdown;
};

static void add_step(double *x, size_t n, size_t at, double step)
{
    for (size_t i = 0; i < n; i++)
        x[i] = exp(x[i]) * (i >= at ? 1 + step : 1);
}

/* A search can fail only where memory is short. */
static struct change_point *find(const double *x, size_t n, size_t *n_points)
{
    struct change_point *points;

    if (change_points(x, n, NULL, &points, n_points)) {
        fputs("history: the search failed\n", stderr);
        exit(2);
    }
    return points;
}

static void print_head(const struct effort *e, const char *title, const char *columns)
{
    printf(e->markdown ? "\n%s\n\n" : "\n%s\n", title);
    if (!e->markdown) {
        for (const char *c = columns; *c; c += strcspn(c, "|") + (c[strcspn(c, "|")] == '|'))
            printf("%-*.*s", c == columns ? 14 : 10, (int)strcspn(c, "|"), c);
        putchar('\n');
        return;
    }
    printf("| %s |\n|", columns);
    for (const char *c = columns; c; c = strchr(c + 1, '|'))
        fputs("---|", stdout);
    putchar('\n');
}

static size_t alarms_of(const struct noise_kind *kind, size_t series, struct rng *rng)
{
    double x[YEAR];
    size_t alarms = 0, n;

    for (size_t i = 0; i < series; i++) {
        kind->make(rng, x, YEAR);
        add_step(x, YEAR, YEAR, 0);
        free(find(x, YEAR, &n));
        alarms += n;
    }
    return alarms;
}

/* One run of a series without change is far off: 50 % down, or up. */
static size_t alarms_of_outlier(size_t series, struct rng *rng)
{
    double x[YEAR];
    size_t alarms = 0, n;

    for (size_t i = 0; i < series; i++) {
        noise_kinds[0].make(rng, x, YEAR);
        add_step(x, YEAR, YEAR, 0);
        x[rng_below(rng, YEAR)] *= i % 2 ? 0.5 : 1.5;
        free(find(x, YEAR, &n));
        alarms += n;
    }
    return alarms;
}

static bool print_alarms(const struct effort *e, const char *name, const char *what, bool promised,
                         size_t alarms, size_t series)
{
    double expected = PROMISED_A_YEAR * (double)series / 100;
    bool broken = promised && (double)alarms > expected + SURE * sqrt(expected) + 1;

    printf(e->markdown ? "| %s | %zu | %.2f | %s | %s |\n" : "%-14s%-10zu%-10.2f%-10s%s\n", name,
           alarms, 100 * (double)alarms / (double)series,
           broken     ? "BROKEN"
           : promised ? "1"
                      : "none",
           what);
    return broken;
}

static bool false_alarms(const struct effort *e, struct rng *rng)
{
    bool broken = false;
    char title[160];

    snprintf(title, sizeof(title),
             "False alarms: %zu cases (%zu where nothing is promised) over a year of nightly runs, "
             "each looked at after every run",
             e->series, e->series_open);
    print_head(e, title, "noise|alarms|a year|promised|what it is");
    for (const struct noise_kind *k = noise_kinds; k->name; k++) {
        size_t series = k->promised ? e->series : e->series_open;

        rng_seed(rng, SEED + (uint64_t)(k - noise_kinds)); /* the same whatever went before */
        if (series)
            broken |=
                print_alarms(e, k->name, k->what, k->promised, alarms_of(k, series, rng), series);
    }
    broken |= print_alarms(e, "one run", "gaussian, and one run is 50 % off", true,
                           alarms_of_outlier(e->series, rng), e->series);
    puts(e->markdown ? "\n`a year`: false alarms a year for 100 cases."
                     : "(a year: for 100 cases)");
    return broken;
}

#define DELAYS 6
static const size_t delays[DELAYS] = {3, 4, 5, 6, 8, 12};

struct found {
    size_t by[DELAYS]; /* told with so many runs of the new level */
    size_t near;       /* and its place is within one run of the true one */
};

static struct found find_steps(noise_make *make, size_t after, double step, size_t n,
                               struct rng *rng)
{
    struct found found = {0};
    double x[RUNS_MAX];

    for (size_t i = 0; i < n; i++) {
        size_t length = after + delays[DELAYS - 1], n_points;
        struct change_point *points;

        make(rng, x, length);
        add_step(x, length, after, i % 2 ? step : -step);
        points = find(x, length, &n_points);
        /* What was told before the step was false. */
        for (size_t p = 0; p < n_points; p++) {
            if (points[p].seen < after)
                continue;
            for (size_t d = 0; d < DELAYS; d++)
                found.by[d] += points[p].seen - after < delays[d];
            found.near += points[p].at + 1 >= after && points[p].at <= after + 1;
            break;
        }
        free(points);
    }
    return found;
}

static bool print_found(const struct effort *e, const char *name, const struct found *found,
                        bool promised)
{
    double n = (double)e->steps, need = PROMISED_FOUND * n;
    bool broken = false;

    printf(e->markdown ? "| %s " : "%-14s", name);
    for (size_t d = 0; d < DELAYS; d++) {
        printf(e->markdown ? "| %.1f %% " : "%-10.1f", 100 * (double)found->by[d] / n);
        broken |= promised && delays[d] == PROMISED_RUNS &&
                  (double)found->by[d] < need - SURE * sqrt(need * (1 - PROMISED_FOUND));
    }
    printf(e->markdown ? "| %.1f %% |%s\n" : "%-10.1f%s\n", 100 * (double)found->near / n,
           broken ? " BROKEN" : "");
    return broken;
}

static const char columns[] = "3 runs|4|5|6|8|12|place";

static bool steps_by_place(const struct effort *e, struct rng *rng)
{
    static const size_t places[] = {15, 25, 40, PROMISED_AFTER, 120, 250};
    char title[160], head[64], name[32];
    bool broken = false;

    snprintf(
        title, sizeof(title),
        "A step of 3 %% in gaussian noise of 1 %%: found in %% of %zu series, by how many runs of "
        "the new level there are",
        e->steps);
    snprintf(head, sizeof(head), "runs before|%s", columns);
    print_head(e, title, head);
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        struct found found =
            find_steps(noise_kinds[0].make, places[i], PROMISED_STEP, e->steps, rng);

        snprintf(name, sizeof(name), "%zu", places[i]);
        broken |= print_found(e, name, &found, places[i] == PROMISED_AFTER);
    }
    return broken;
}

static void steps_by_size(const struct effort *e, struct rng *rng)
{
    static const double sizes[] = {0.01, 0.015, 0.02, 0.03, 0.05, 0.10};
    char title[160], head[64], name[32];

    snprintf(title, sizeof(title), "Steps of other sizes after %d runs, in the same noise",
             PROMISED_AFTER);
    snprintf(head, sizeof(head), "step|%s", columns);
    print_head(e, title, head);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct found found =
            find_steps(noise_kinds[0].make, PROMISED_AFTER, sizes[i], e->steps, rng);

        snprintf(name, sizeof(name), "%g %%", sizes[i] * 100);
        print_found(e, name, &found, false);
    }
}

static void steps_by_noise(const struct effort *e, struct rng *rng)
{
    char title[160], head[64];

    snprintf(title, sizeof(title), "A step of 3 %% after %d runs, in the other noises",
             PROMISED_AFTER);
    snprintf(head, sizeof(head), "noise|%s", columns);
    print_head(e, title, head);
    for (const struct noise_kind *k = noise_kinds + 1; k->name; k++) {
        struct found found = find_steps(k->make, PROMISED_AFTER, PROMISED_STEP, e->steps, rng);

        print_found(e, k->name, &found, false);
    }
}

int main(int argc, char **argv)
{
    struct effort e = {.series = 100, .steps = 600};
    struct rng rng;
    bool alarms, missed, full = false, tap = false;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--full")) {
            full = true;
        } else if (!strcmp(argv[i], "--markdown")) {
            e.markdown = true;
        } else if (!strcmp(argv[i], "--tap")) {
            tap = true;
        } else {
            fputs("usage: history [--full] [--markdown] [--tap]\n", stderr);
            return 2;
        }
    }
    if (full) {
        e.series = 2000;
        e.series_open = 1000;
        e.steps = 3000;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* the full form takes minutes: each line when it is known */
    alarms = false_alarms(&e, &rng);
    rng_seed(&rng, SEED);
    missed = steps_by_place(&e, &rng);
    if (full) {
        steps_by_size(&e, &rng);
        steps_by_noise(&e, &rng);
    }
    printf("\nhistory: %s\n", alarms || missed ? "a promise is BROKEN" : "every promise holds");
    if (tap)
        printf("1..2\n%s 1 - false alarms\n%s 2 - steps are found\n", alarms ? "not ok" : "ok",
               missed ? "not ok" : "ok");
    return alarms || missed;
}
