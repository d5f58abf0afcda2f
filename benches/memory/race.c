/* SPDX-License-Identifier: Apache-2.0 */
/* Races: see race.h. */
#include "benches/memory/race.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define RUN_NS 500000u /* a shorter run does not count: the start weighs in it */

struct runner {
    unsigned way;
    uint64_t passes, spent_ns;
    int runs;
    double gbps, second; /* the best two of all its runs */
};

/* A stage ends for a runner when it has made so many runs and spent so long in them, in all. Then who
 * reached less than `behind` of the best leaves, and of the others all but the best `most`. Where runs are
 * short, in caches, a stage is many of them. */
static const struct stage {
    int runs;
    uint64_t ns;
    double behind;
    unsigned most;
} stages[] = {{1, 2000000, 0.5, RACE_WAYS_MAX}, {2, 5000000, 0.8, 2}, {3, 20000000, 0, 1}};

#define LAST_STAGE (&stages[sizeof(stages) / sizeof(stages[0]) - 1])

static void run(race_fn *fn, void *arg, struct runner *r, const struct stage *stage)
{
    uint64_t ns = 0;

    while (r->runs < stage->runs || r->spent_ns < stage->ns) {
        double bytes = fn(arg, r->way, r->passes, &ns);
        if (!(bytes > 0))
            return;
        if (ns < RUN_NS) {
            r->passes *= 2;
            continue;
        }
        double gbps = bytes * (double)r->passes / (double)ns;
        r->second = fmax(r->second, fmin(gbps, r->gbps));
        r->gbps = fmax(r->gbps, gbps);
        r->spent_ns += ns;
        r->runs++;
    }
}

/* A best run that no other one comes near may be a lucky one among disturbed ones, and a better one still to
 * come: the winner goes on until there is a second one, or these many. */
#define NEAR      0.97
#define MOST_RUNS 8

static double confirmed(race_fn *fn, void *arg, struct runner *r)
{
    while (r->gbps > 0 && r->runs < MOST_RUNS && r->second < NEAR * r->gbps)
        run(fn, arg, r, &(struct stage){.runs = r->runs + 1});
    return r->gbps;
}

/* By rate, and by number where rates are equal. */
static int compare(const void *x, const void *y)
{
    const struct runner *a = x, *b = y;

    if (a->gbps != b->gbps)
        return a->gbps < b->gbps ? 1 : -1;
    return a->way < b->way ? -1 : 1;
}

/* Sorts them, the best one first. Returns how many go on. */
static unsigned who_goes_on(struct runner *r, unsigned n, const struct stage *stage)
{
    unsigned stay = 0;

    qsort(r, n, sizeof(*r), compare);
    while (stay < n && stay < stage->most && r[stay].gbps >= stage->behind * r[0].gbps)
        stay++;
    return stay;
}

double race_best(race_fn *fn, void *arg, unsigned ways, unsigned *best)
{
    struct runner r[RACE_WAYS_MAX];
    unsigned n = ways < RACE_WAYS_MAX ? ways : RACE_WAYS_MAX;

    for (unsigned i = 0; i < n; i++)
        r[i] = (struct runner){.way = i, .passes = 1};
    for (const struct stage *stage = stages; n && stage <= LAST_STAGE; stage++) {
        for (unsigned i = 0; i < n; i++)
            run(fn, arg, &r[i], stage);
        n = who_goes_on(r, n, stage);
    }
    *best = n ? r[0].way : 0;
    return n ? confirmed(fn, arg, &r[0]) : 0;
}

double race_alone(race_fn *fn, void *arg, unsigned way)
{
    struct runner r = {.way = way, .passes = 1};

    run(fn, arg, &r, LAST_STAGE);
    return confirmed(fn, arg, &r);
}
