/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the search for change points keep what it promises? Made-up series of nightly runs, seeded: how
 * many false alarms each kind of noise raises when the series is looked at after every run, and how soon a
 * true step is found. Prints tables; exit 1 where a promise is broken.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/selftest/history_noise.h"
#include "tests/selftest/history_parts.h"

#define YEAR            365
#define RUNS_MAX        400
#define PROMISED_A_YEAR 0.01 /* false alarms, a case */
#define PROMISED_FOUND  0.95 /* of steps of 3 %, with the 5th run of the new level */
#define PROMISED_RUNS   5
#define PROMISED_AFTER  55 /* runs before the step */
#define PROMISED_STEP   0.03
#define SEED            20250101

static void add_step(double *x, size_t n, size_t at, double step)
{
    for (size_t i = 0; i < n; i++)
        x[i] = exp(x[i]) * (i >= at ? 1 + step : 1);
}

/* A search can fail only where memory is short. */
struct change_point *history_find(const double *x, size_t n, size_t *n_points)
{
    struct change_point *points;

    if (change_points(x, n, &points, n_points)) {
        fputs("history: the search failed\n", stderr);
        exit(2);
    }
    return points;
}

#define WIDTH_NAME 28
#define WIDTH_CELL 10

void history_head(const struct effort *e, const char *title, const char *columns)
{
    size_t n = 0;

    if (e->said->tap)
        return;
    printf(e->markdown ? "\n### %s\n\n" : "\n%s\n", title);
    for (const char *c = columns, *end; *c; c = *end ? end + 1 : end, n++) {
        end = c + strcspn(c, "|");
        if (e->markdown)
            printf("| %.*s ", (int)(end - c), c);
        else
            printf("%-*.*s", n ? WIDTH_CELL : WIDTH_NAME, (int)(end - c), c);
    }
    fputs(e->markdown ? "|\n|" : "", stdout);
    for (size_t i = 0; e->markdown && i < n; i++)
        fputs("---|", stdout);
    putchar('\n');
}

void history_name(const struct effort *e, const char *name)
{
    if (!e->said->tap)
        printf(e->markdown ? "| %s " : "%-28s", name);
}

void history_cell(const struct effort *e, const char *format, double value)
{
    char text[32];

    snprintf(text, sizeof(text), format, value);
    if (!e->said->tap)
        printf(e->markdown ? "| %s " : "%-10s", text);
}

void history_end(const struct effort *e)
{
    if (!e->said->tap)
        puts(e->markdown ? "|" : "");
}

void history_promise(const struct effort *e, const char *what, size_t wrong, size_t of,
                     double share)
{
    promise_tell(e->said, promise_breaks(e->said, wrong, of, share), "%s: %zu of %zu", what, wrong,
                 of);
}

/* outlier: one run of each series is far off, 50 % down, or up. */
static size_t alarms_of(noise_make *make, bool outlier, size_t series, struct rng *rng)
{
    double x[YEAR];
    size_t alarms = 0;

    for (size_t i = 0; i < series; i++) {
        size_t n;

        make(rng, x, YEAR);
        add_step(x, YEAR, YEAR, 0);
        if (outlier)
            x[rng_below(rng, YEAR)] *= i % 2 ? 0.5 : 1.5;
        free(history_find(x, YEAR, &n));
        alarms += n;
    }
    return alarms;
}

static void print_alarms(const struct effort *e, const char *name, const char *what, bool promised,
                         size_t alarms, size_t series)
{
    char text[64];

    history_name(e, name);
    history_cell(e, "%.0f", (double)alarms);
    history_cell(e, "%.2f", 100 * (double)alarms / (double)series);
    history_cell(e, promised ? "%.0f" : "none", 100 * PROMISED_A_YEAR);
    if (!e->said->tap)
        printf(e->markdown ? "| %s " : "%s", what);
    history_end(e);
    snprintf(text, sizeof(text), "false alarms a year, %s", name);
    if (promised)
        history_promise(e, text, alarms, series, PROMISED_A_YEAR);
}

static void false_alarms(const struct effort *e, struct rng *rng)
{
    char title[160];
    const struct noise_kind *k = noise_kinds;

    snprintf(title, sizeof(title),
             "False alarms: %zu cases (%zu where nothing is promised) over a year of nightly runs, "
             "each looked at after every run",
             e->series, e->series_open);
    history_head(e, title, "noise|alarms|a year|promised|what it is");
    for (; k->name; k++) {
        size_t series = k->promised ? e->series : e->series_open;

        rng_seed(rng, SEED + (uint64_t)(k - noise_kinds)); /* the same whatever went before */
        if (k->promised || e->all)
            print_alarms(e, k->name, k->what, k->promised, alarms_of(k->make, false, series, rng),
                         series);
    }
    rng_seed(rng, SEED + (uint64_t)(k - noise_kinds));
    print_alarms(e, "one run", "gaussian, and one run is 50 % off", true,
                 alarms_of(noise_kinds[0].make, true, e->series, rng), e->series);
    if (!e->said->tap)
        puts(e->markdown ? "\n`a year`: false alarms a year for 100 cases."
                         : "(a year: for 100 cases)");
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
        points = history_find(x, length, &n_points);
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

static void print_found(const struct effort *e, const char *name, const struct found *found,
                        bool promised)
{
    double of = (double)e->steps / 100;

    history_name(e, name);
    for (size_t d = 0; d < DELAYS; d++)
        history_cell(e, "%.1f %%", (double)found->by[d] / of);
    history_cell(e, "%.1f %%", (double)found->near / of);
    history_end(e);
    for (size_t d = 0; promised && d < DELAYS; d++)
        if (delays[d] == PROMISED_RUNS)
            history_promise(e, "steps that are not found in time", e->steps - found->by[d],
                            e->steps, 1 - PROMISED_FOUND);
}

static const char columns[] = "3 runs|4|5|6|8|12|place";

static void steps_by_place(const struct effort *e, struct rng *rng)
{
    static const size_t places[] = {15, 25, 40, PROMISED_AFTER, 120, 250};
    char title[160], head[64], name[32];

    snprintf(
        title, sizeof(title),
        "A step of 3 %% in gaussian noise of 1 %%: found in %% of %zu series, by how many runs of "
        "the new level there are",
        e->steps);
    snprintf(head, sizeof(head), "runs before|%s", columns);
    history_head(e, title, head);
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        bool promised = places[i] == PROMISED_AFTER;

        if (places[i] > PROMISED_AFTER && !e->all)
            break;
        struct found found =
            find_steps(noise_kinds[0].make, places[i], PROMISED_STEP, e->steps, rng);

        snprintf(name, sizeof(name), "%zu", places[i]);
        print_found(e, name, &found, promised);
    }
}

static void steps_by_size(const struct effort *e, struct rng *rng)
{
    static const double sizes[] = {0.01, 0.015, 0.02, 0.03, 0.05, 0.10};
    char title[160], head[64], name[32];

    snprintf(title, sizeof(title), "Steps of other sizes after %d runs, in the same noise",
             PROMISED_AFTER);
    snprintf(head, sizeof(head), "step|%s", columns);
    history_head(e, title, head);
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
    history_head(e, title, head);
    for (const struct noise_kind *k = noise_kinds + 1; k->name; k++) {
        struct found found = find_steps(k->make, PROMISED_AFTER, PROMISED_STEP, e->steps, rng);

        print_found(e, k->name, &found, false);
    }
}

int main(int argc, char **argv)
{
    struct promises said = {.tests = 0};
    struct effort e = {
        .said = &said, .series = 2000, .series_open = 1000, .steps = 3000, .slips = 400};
    struct rng rng;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--short")) {
            said.brief = true;
        } else if (!strcmp(argv[i], "--markdown")) {
            e.markdown = true;
        } else if (!strcmp(argv[i], "--tap")) {
            said.tap = true;
        } else {
            fputs("usage: history [--short] [--markdown] [--tap]\n", stderr);
            return 2;
        }
    }
    if (said.brief) {
        e.series = 100;
        e.steps = 300;
        e.slips = 60;
    }
    e.all = !said.brief && !said.tap;
    setvbuf(stdout, NULL, _IOLBF, 0); /* the full form takes minutes: each line when it is known */
    false_alarms(&e, &rng);
    rng_seed(&rng, SEED);
    steps_by_place(&e, &rng);
    if (e.all) {
        steps_by_size(&e, &rng);
        steps_by_noise(&e, &rng);
    }
    rng_seed(&rng, SEED);
    history_slips(&e, &rng);
    if (e.all) {
        history_some_slip(&e, &rng);
        history_short_levels(&e, &rng);
    }
    return promise_end(&said, "history");
}
