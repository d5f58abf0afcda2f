/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler: see sampler.h. */
#include "core/sampler.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/levels.h"
#include "core/stats.h"

#define STEADY_CHANGE 0.01
/* one step of calibration at most: a first, cold operation may mislead */
#define INNER_GROWTH      16
#define CALIBRATION_STEPS 40
/* What the longest series has of the time between samples, so that this is the time of the work; two
 * clocks differ a little. */
#define COVERED_LEAST 0.5
#define COVERED_MOST  1.01
#define TELL_NS       150000000u /* from one tell() to the next */
#define CHECK_EVERY_SHARE                                                                          \
    8 /* the interval is looked at again when an eighth more samples are there */

struct sampling {
    const struct sampler_config *config;
    sampler_fn *fn;
    void *arg;
    struct samples *out;
    uint64_t
        look_ns; /* CPU time of the last look: it lies between samples if another one follows */
};

static bool cancelled(const struct sampling *s)
{
    return s->config->cancel && *s->config->cancel;
}

const char *sampler_stop_name(enum sampler_stop stop)
{
    static const char *const names[] = {"converged", "time", "samples", "interrupted"};

    return names[stop];
}

/* One sample that is counted as discarded; *ns: the slowest of its series. */
static int warm_sample(struct sampling *s, uint64_t *slowest_ns)
{
    uint64_t ns[SAMPLER_SERIES_MAX] = {0};
    int err = s->fn(s->arg, s->out->inner, ns);

    if (err)
        return err;
    s->out->discarded++;
    *slowest_ns = 0;
    for (size_t i = 0; i < s->out->n_series; i++)
        if (ns[i] > *slowest_ns)
            *slowest_ns = ns[i];
    return 0;
}

/* Finds how many operations make a sample of the wanted length. One that is long enough must be so
 * twice: the first may have been cold. */
static int calibrate(struct sampling *s)
{
    const struct sampler_config *c = s->config;
    bool long_before = false;
    uint64_t ns;

    s->out->inner = 1;
    for (int step = 0; c->sample_ns && step < CALIBRATION_STEPS && !cancelled(s); step++) {
        int err = warm_sample(s, &ns);
        if (err)
            return err;
        bool is_long = ns >= c->sample_ns;
        if (is_long && long_before)
            return 0;
        long_before = is_long;
        if (is_long)
            continue;
        double factor = ns ? (double)c->sample_ns / (double)ns * 1.1 : INNER_GROWTH;
        if (factor > INNER_GROWTH)
            factor = INNER_GROWTH;
        uint64_t next = (uint64_t)ceil((double)s->out->inner * factor);
        if (c->max_inner && next > c->max_inner)
            next = c->max_inner;
        if (next == s->out->inner)
            return 0;
        s->out->inner = next;
    }
    return 0;
}

bool sampler_is_steady(const double *last, size_t n)
{
    double first = stats_median(last, n / 2), second = stats_median(last + n / 2, n / 2),
           deviation[2 * SAMPLER_WINDOW];

    for (size_t i = 0; i < n; i++)
        deviation[i] = fabs(last[i] - (i < n / 2 ? first : second));
    /* The standard error of the difference of two medians of n/2 samples, from the median absolute
     * deviation. */
    double noise = STATS_MAD_TO_SD * 1.2533 * stats_median(deviation, n) * sqrt(4.0 / (double)n);
    double change = fabs(first - second);
    return change <= STEADY_CHANGE * fabs(second) || change <= noise;
}

static int warm_up(struct sampling *s)
{
    double last[2 * SAMPLER_WINDOW];
    uint64_t end_ns = clock_now_ns() + s->config->warmup_ns, ns;
    size_t n = 0;

    while (!cancelled(s)) {
        int err = warm_sample(s, &ns);
        if (err)
            return err;
        if (n == 2 * SAMPLER_WINDOW)
            memmove(last, last + 1, --n * sizeof(last[0]));
        last[n++] = (double)ns;
        if (n == 2 * SAMPLER_WINDOW && sampler_is_steady(last, n)) {
            s->out->steady = true;
            return 0;
        }
        if (clock_now_ns() >= end_ns)
            return 0;
    }
    return 0;
}

static int grow(struct samples *out)
{
    uint64_t capacity = out->capacity ? out->capacity * 2 : 256;
    uint64_t *end_ns = realloc(out->end_ns, capacity * sizeof(*end_ns));

    if (!end_ns)
        return -ENOMEM;
    out->end_ns = end_ns;
    for (size_t i = 0; i < out->n_series; i++) {
        double *grown = realloc(out->ns[i], capacity * sizeof(double));
        if (!grown)
            return -ENOMEM;
        out->ns[i] = grown;
    }
    out->capacity = capacity;
    return 0;
}

static int keep_one(struct sampling *s)
{
    struct samples *out = s->out;
    uint64_t ns[SAMPLER_SERIES_MAX] = {0};
    int err = out->n == out->capacity ? grow(out) : 0;

    if (err || (err = s->fn(s->arg, out->inner, ns)))
        return err;
    for (size_t i = 0; i < out->n_series; i++)
        out->ns[i][out->n] = (double)ns[i];
    out->end_ns[out->n++] = clock_now_ns();
    out->own_ns += s->look_ns;
    s->look_ns = 0;
    return 0;
}

/* A level that was hardly left, or a wander of which little was seen, has a narrow interval,
 * too. */
static enum sampler_doubt look(const struct sampling *s, size_t series)
{
    struct samples *out = s->out;
    const double *ns = out->ns[series];
    struct median_ci ci;
    struct levels levels;

    out->independent[series] = NAN;
    if (!out->n || stats_ci_samples(ns, out->n, s->config->confidence, &ci))
        return SAMPLER_WIDE;
    out->independent[series] = ci.effective_n; /* NaN: all are equal */
    if (!(fmax(ci.high - ci.median, ci.median - ci.low) <= s->config->width * ci.median))
        return SAMPLER_WIDE;
    if (ci.effective_n < STATS_INDEPENDENT_MIN)
        return SAMPLER_DEPENDENT;
    if (levels_of_samples(ns, out->n, &levels) || !levels.two)
        return SAMPLER_SURE;
    out->changes[series] = levels_changes(ns, out->n, &levels);
    return out->changes[series] < STATS_INDEPENDENT_MIN ? SAMPLER_FEW_CHANGES : SAMPLER_SURE;
}

static bool converged(const struct sampling *s)
{
    for (size_t i = 0; i < s->out->n_series; i++)
        if (look(s, i) != SAMPLER_SURE)
            return false;
    return true;
}

/* Time that goes by between two samples, and is the sampler's own. */
static void tell(struct sampling *s, uint64_t *next_ns)
{
    uint64_t begin_ns = clock_cpu_ns();

    s->config->tell(s->arg, s->out);
    s->look_ns += clock_cpu_ns() - begin_ns;
    *next_ns = clock_now_ns() + TELL_NS;
}

/* Takes samples until one of the four reasons to stop, which goes into out->stop. */
static int collect(struct sampling *s)
{
    const struct sampler_config *c = s->config;
    struct samples *out = s->out;
    uint64_t next_check = c->min_samples, tell_ns;

    out->begin_ns = clock_now_ns();
    tell_ns = out->begin_ns + TELL_NS;
    for (;;) {
        out->stop = SAMPLER_INTERRUPTED;
        if (cancelled(s))
            return 0;
        int err = keep_one(s);
        if (err)
            return err;
        if (c->tell && out->end_ns[out->n - 1] >= tell_ns)
            tell(s, &tell_ns);
        out->stop = SAMPLER_CONVERGED;
        if (out->n >= next_check) {
            uint64_t begin_ns = clock_cpu_ns();
            bool enough = converged(s);

            s->look_ns += clock_cpu_ns() - begin_ns;
            if (enough)
                return 0;
            next_check = out->n + out->n / CHECK_EVERY_SHARE + 1;
        }
        out->stop = SAMPLER_SAMPLES;
        if ((c->max_samples && out->n >= c->max_samples) || (c->enough && *c->enough))
            return 0;
        out->stop = SAMPLER_TIME;
        if (clock_now_ns() - out->begin_ns >= c->budget_ns)
            return 0;
    }
}

int sampler_run(const struct sampler_config *config, sampler_fn *fn, void *arg, size_t n_series,
                struct samples *out)
{
    struct sampling s = {.config = config, .fn = fn, .arg = arg, .out = out};
    int err;

    *out = (struct samples){.n_series = n_series, .inner = 1, .stop = SAMPLER_INTERRUPTED};
    if (!n_series || n_series > SAMPLER_SERIES_MAX)
        return -EINVAL;
    if ((err = calibrate(&s)) || (err = warm_up(&s)) ||
        (config->begin && (err = config->begin(arg))))
        return err;
    err = collect(&s);
    for (size_t i = 0; i < n_series; i++)
        out->doubt[i] = err ? SAMPLER_WIDE : look(&s, i);
    return err;
}

double samples_stretch(const struct samples *s)
{
    if (!s->n)
        return NAN;
    double *between = xcalloc(s->n, sizeof(*between));

    for (uint64_t i = 0; i < s->n; i++)
        between[i] = (double)(s->end_ns[i] - (i ? s->end_ns[i - 1] : s->begin_ns));
    /* Of the longest series: the share of the usual time from one sample's end to the next
     * one's. */
    double usual = stats_median(between, s->n), share = 0;
    for (size_t i = 0; i < s->n_series; i++)
        share = fmax(share, stats_median(s->ns[i], s->n) / usual);
    double all = (double)(s->end_ns[s->n - 1] - s->begin_ns) - (double)s->own_ns;

    free(between);
    return share >= COVERED_LEAST && share <= COVERED_MOST && all > 0 ? all / ((double)s->n * usual)
                                                                      : NAN;
}

void samples_release(struct samples *s)
{
    for (size_t i = 0; i < SAMPLER_SERIES_MAX; i++)
        free(s->ns[i]);
    free(s->end_ns);
    *s = (struct samples){0};
}
