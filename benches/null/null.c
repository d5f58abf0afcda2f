/* SPDX-License-Identifier: Apache-2.0 */
/*
 * null: measures nothing. Its samples are drawn from a known distribution, so that the path from a
 * sample to a report can be tested against the truth, and so that the harness can be timed alone.
 * Its rows say origin=simulated.
 *
 * Timed: nothing, sample() -> disturbance() makes up the time.
 */
#include "core/bench/bench.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/rng.h"

enum noise { NOISE_NONE, NOISE_NORMAL, NOISE_LOGNORMAL, NOISE_AR1, NOISE_TWO_LEVELS };
enum fault {
    FAULT_NONE,
    FAULT_SKIP,
    FAULT_FAIL,
    FAULT_WRONG,
    FAULT_CRASH,
    FAULT_HANG,
    FAULT_GARBAGE
};

struct params {
    uint64_t number, level_ns, sleep_ns;
    double spread, loss;
    int noise, fault;
};

struct state {
    struct rng rng;
    double last;   /* of the autoregressive noise */
    double median; /* of the noise, so that --level is that of the samples */
};

#define AR1_PHI      0.9
#define SECOND_LEVEL 1.1
#define SECOND_SHARE 0.3

static double below(double x, double level, double spread)
{
    return spread > 0 ? 0.5 * erfc((level - x) / spread / sqrt(2)) : x >= level;
}

/* Of 1 and SECOND_LEVEL mixed, each with normal noise: where half of the samples lie below. */
static double median_of_levels(double spread)
{
    double low = 1, high = SECOND_LEVEL;

    for (int i = 0; i < 60; i++) {
        double x = (low + high) / 2;
        double share = (1 - SECOND_SHARE) * below(x, 1, spread) +
                       SECOND_SHARE * below(x, SECOND_LEVEL, spread);

        *(share < 0.5 ? &low : &high) = x;
    }
    return low;
}

static double disturbance(const struct params *p, struct state *s)
{
    double z = p->noise == NOISE_NONE ? 0 : rng_normal(&s->rng);

    switch (p->noise) {
    case NOISE_LOGNORMAL:
        return exp(p->spread * z);
    case NOISE_AR1:
        s->last = AR1_PHI * s->last + sqrt(1 - AR1_PHI * AR1_PHI) * z;
        return 1 + p->spread * s->last;
    case NOISE_TWO_LEVELS:
        return ((rng_double(&s->rng) < SECOND_SHARE ? SECOND_LEVEL : 1) + p->spread * z) /
               s->median;
    default:
        return 1 + p->spread * z;
    }
}

/* Every case, and every repetition of one, has draws of its own. */
static uint64_t seed_of(const struct point *pt)
{
    const struct params *p = pt->params;
    uint64_t spread,
        state = pt->common->seed,
        parts[] = {pt->repeat, p->number, p->level_ns, (uint64_t)p->noise, (uint64_t)p->fault};

    memcpy(&spread, &p->spread, sizeof(spread));
    state = rng_splitmix64(&state) ^ spread;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        state = rng_splitmix64(&state) ^ parts[i];
    return state;
}

static int setup(struct point *pt)
{
    const struct params *p = pt->params;
    struct state *s = pt->state = xcalloc(1, sizeof(*s));

    rng_seed(&s->rng, seed_of(pt));
    s->median = median_of_levels(p->spread);
    s->last = rng_normal(&s->rng);
    point_series(pt, "time", "us", 0);
    if (p->fault == FAULT_SKIP)
        return point_reason(pt, -EOPNOTSUPP, "asked to be skipped");
    if (p->fault == FAULT_FAIL)
        return point_reason(pt, -EIO, "asked to fail");
    if (p->fault == FAULT_GARBAGE)
        puts("this is \"not a row");
    return 0;
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    const struct params *p = pt->params;

    if (p->fault == FAULT_CRASH)
        raise(SIGSEGV);
    if (p->fault == FAULT_HANG)
        pause();
    if (p->sleep_ns)
        usleep((useconds_t)(p->sleep_ns / 1000));
    double level = (double)p->level_ns * (1 + p->loss);
    double value = level * disturbance(p, pt->state) * (double)inner;
    *ns = value < 1 ? 1 : (uint64_t)llround(value);
    return 0;
}

static int check(struct point *pt)
{
    const struct params *p = pt->params;

    return p->fault == FAULT_WRONG ? point_reason(pt, -EBADMSG, "asked to be wrong") : 0;
}

static void teardown(struct point *pt)
{
    free(pt->state);
}

static const char *const noises[] = {"none", "normal", "lognormal", "ar1", "two-levels", NULL};
static const char *const faults[] = {"none",  "skip", "fail",    "wrong",
                                     "crash", "hang", "garbage", NULL};

#define AT(field) .offset = offsetof(struct params, field)

static const struct opt options[] = {
    {.name = "number",
     OPT_OF(OPT_U64, OPT_SWEPT, number, "1"),
     .help = "any number; each value is a separate case"},
    {.name = "level",
     OPT_NUMBER(OPT_DURATION, OPT_SWEPT, level_ns, "100us", 1, 1000000000000),
     .help = "true median of the simulated time"},
    {.name = "noise",
     OPT_WORD(OPT_SWEPT, noise, "normal", noises),
     .help =
         "distribution of the samples. two-levels: 30 % are 10 % higher; ar1: correlated, phi 0.9"},
    {.name = "spread",
     OPT_OF(OPT_FRACTION, OPT_SWEPT, spread, "1%"),
     .help = "standard deviation as a share of the level"},
    {.name = "sleep",
     OPT_OF(OPT_DURATION, 0, sleep_ns, "0s"),
     .help = "time to sleep in each sample"},
    {.name = "loss",
     OPT_OF(OPT_FRACTION, 0, loss, "0%"),
     .help = "add this share to the level, in no column: the case stays the same, to rehearse a "
             "loss"},
    {.name = "fault",
     OPT_WORD(OPT_SWEPT, fault, "none", faults),
     .help = "a fault to simulate, to test the harness"},
    {.name = NULL},
};

static const struct bench_metric metrics[] = {{.name = "time", .units = "us"}, {.name = NULL}};
static const struct bench_rows rows = {.metrics = metrics};

const struct bench bench = {
    .name = "null",
    .help = "measures nothing: simulated samples of a known distribution, to test the suite",
    .about = "Each sample is drawn from the distribution of --noise around --level, and no\n"
             "clock is read. Rows have origin=simulated. Use it to test the statistics with a\n"
             "known truth, and to time the harness alone.",
    .needs = "",
    .options = options,
    .params_size = sizeof(struct params),
    .rows = &rows,
    .origin = "simulated",
    .setup = setup,
    .sample = sample,
    .check = check,
    .teardown = teardown,
};
