/* SPDX-License-Identifier: Apache-2.0 */
/* Slow slips, and levels that go back: see history_parts.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/selftest/history_parts.h"

#define RUNS_MAX 300
#define SOON     60 /* nights of slip */
#define NIGHTS   120
#define PROMISED_FOUND                                                                             \
    0.95 /* of slips of 0.3 % a night in noise of 1 %, by the time they have lost 6 % */
#define PROMISED_RATE  0.003
#define PROMISED_NOISE 0.01
#define PROMISED_LOST  0.06
#define REPAIRED_BY    5

static const size_t places[] = {20, 60, 120};
#define PLACES (sizeof(places) / sizeof(*places))

static void make_noise(struct rng *rng, double *x, size_t n, double noise)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 100 * exp(noise * rng_normal(rng));
}

/* From run `from` on each loses the rate of the one before, or gains it. */
static void add_slip(double *x, size_t n, size_t from, double rate, bool up)
{
    double factor = 1;

    for (size_t i = from; i < n; i++) {
        factor *= up ? 1 / (1 - rate) : 1 - rate;
        x[i] *= factor;
    }
}

struct slips {
    size_t named, soon, in_time, more;
    double *nights; /* until it was told; of those named */
};

static double lost_by(double rate, double nights)
{
    return 1 - pow(1 - rate, nights);
}

static void count_slip(struct slips *s, const struct change_point *points, size_t n, size_t after,
                       double rate)
{
    const struct change_point *p = NULL;

    for (size_t i = 0; i < n; i++) {
        if (points[i].seen < after)
            continue; /* a false alarm */
        s->more += p != NULL;
        p = p ? p : &points[i];
    }
    if (!p)
        return;
    s->nights[s->named++] = (double)(p->seen - after + 1);
    s->soon += p->seen < after + SOON;
    s->in_time += lost_by(rate, (double)(p->seen - after + 1)) <= PROMISED_LOST;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_slip(const struct effort *e, double noise, size_t after, double rate,
                       struct rng *rng)
{
    struct slips s = {.nights = malloc(e->slips * sizeof(double))};
    bool promised = noise == PROMISED_NOISE && rate == PROMISED_RATE;
    char name[64];

    for (size_t i = 0; s.nights && i < e->slips; i++) {
        double x[RUNS_MAX];
        size_t n = after + NIGHTS, n_points;

        make_noise(rng, x, n, noise);
        add_slip(x, n, after, rate, i % 2);
        struct change_point *points = history_find(x, n, &n_points);
        count_slip(&s, points, n_points, after, rate);
        free(points);
    }
    if (!s.nights)
        exit(2);
    qsort(s.nights, s.named, sizeof(*s.nights), by_value);
    double of = (double)e->slips / 100, median = s.named ? s.nights[s.named / 2] : 0;
    double late = s.named ? s.nights[s.named * 95 / 100] : 0;
    snprintf(name, sizeof(name), "%g %%, %zu, %g %%", 100 * noise, after, 100 * rate);
    history_name(e, name);
    history_cell(e, "%.1f %%", (double)s.soon / of);
    history_cell(e, "%.1f %%", (double)s.named / of);
    history_cell(e, "%.0f", median);
    history_cell(e, "%.0f", late);
    history_cell(e, "%.1f %%", 100 * lost_by(rate, median));
    history_cell(e, "%.1f %%", 100 * lost_by(rate, late));
    history_cell(e, "%.1f %%", (double)s.in_time / of);
    history_cell(e, "%.1f", (double)(s.named + s.more) / (double)e->slips);
    history_end(e);
    free(s.nights);
    if (promised)
        history_promise(e, "slips that have lost more before they are told", e->slips - s.in_time,
                        e->slips, 1 - PROMISED_FOUND);
}

void history_slips(const struct effort *e, struct rng *rng)
{
    static const double noises[] = {0.01, 0.005, 0.02},
                        rates[] = {0.003, 0.0005, 0.001, 0.002, 0.005};
    char title[200];

    snprintf(title, sizeof(title),
             "Slips: told in %% of %zu series, %d and %d nights after they began, by noise, nights "
             "before and change a night",
             e->slips, SOON, NIGHTS);
    history_head(e, title,
                 "noise, before, a night|60 nights|120 nights|median|95 %|lost|95 %|by 6 %|steps");
    for (size_t i = 0; i < (e->all ? 3 : 1); i++)
        for (size_t k = 0; k < PLACES; k++)
            for (size_t r = 0; r < (e->all ? 5 : 1); r++)
                print_slip(e, noises[i], places[k], rates[r], rng);
}

/* Of 40 cases 8 lose 0.3 % a night for 60 nights, from the first on. */
void history_some_slip(const struct effort *e, struct rng *rng)
{
    size_t rounds = e->slips / 4, all = 0, named = 0, others = 0;

    for (size_t i = 0; i < rounds; i++) {
        size_t of_round = 0;

        for (size_t k = 0; k < 40; k++) {
            double x[SOON];
            size_t n_points;

            make_noise(rng, x, SOON, 0.01);
            add_slip(x, SOON, k < 8 ? 0 : SOON, 0.003, false);
            free(history_find(x, SOON, &n_points));
            of_round += k < 8 && n_points;
            others += k >= 8 && n_points;
        }
        named += of_round;
        all += of_round == 8;
    }
    printf(
        "\nOf 40 cases 8 lose 0.3 %% a night for 60 nights, from the first on, in noise of 1 %%: "
        "in %zu of %zu histories all 8 are named; %zu of %zu that lose are named, and %zu of "
        "%zu that do not.\n",
        all, rounds, named, 8 * rounds, others, 32 * rounds);
}

void history_short_levels(const struct effort *e, struct rng *rng)
{
    static const double sizes[] = {0.03, 0.05, 0.1, 0.2, 0.5};
    static const size_t lengths[] = {1, 2, 3, 4, 5, 7};
    double of = (double)e->slips / 100;
    char title[160], name[32];

    snprintf(title, sizeof(title),
             "Levels that go back, after 60 runs in noise of 1 %%: named in %% of %zu series, by "
             "the runs that they hold",
             e->slips);
    history_head(e, title, "loss|1 run|2 runs|3|4|5|7");
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        snprintf(name, sizeof(name), "%g %%", 100 * sizes[s]);
        history_name(e, name);
        for (size_t l = 0; l < sizeof(lengths) / sizeof(*lengths); l++) {
            size_t named = 0;

            for (size_t i = 0; i < e->slips; i++) {
                double x[100];
                size_t n_points;

                make_noise(rng, x, 100, 0.01);
                for (size_t t = 60; t < 60 + lengths[l]; t++)
                    x[t] *= 1 - sizes[s];
                free(history_find(x, 100, &n_points));
                named += n_points > 0;
            }
            history_cell(e, "%.1f %%", (double)named / of);
        }
        history_end(e);
    }
}
