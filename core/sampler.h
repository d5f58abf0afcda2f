/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler: warm up until the level is steady, make a sample long against the clock, sample
 * until the interval of the median is as narrow as asked, and made of enough independent samples.
 * Every sample after the warm-up is kept.
 */
#ifndef PLUMB_CORE_SAMPLER_H
#define PLUMB_CORE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLER_SERIES_MAX 24

struct samples;

struct sampler_config {
    double confidence;    /* of the interval, 0.95 */
    double width;         /* wanted: half the interval's width as a share of the median, 0.01 */
    uint64_t min_samples; /* at least STATS_MIN_SAMPLES, see stats.h */
    uint64_t max_samples; /* 0: no bound but the budget */
    uint64_t budget_ns;   /* for the samples */
    uint64_t warmup_ns;   /* bound of the warm-up */
    uint64_t sample_ns;   /* wanted length of one sample; 0: inner stays 1 (latency: one operation a
                             sample) */
    uint64_t max_inner;   /* 0: no bound */
    int (*begin)(
        void *arg);     /* called when the warm-up is over; NULL: nothing. 0 or -errno, as of fn */
    const bool *enough; /* sampling ends, as with max_samples, when it is true; NULL: never */
    void (*tell)(void *arg, const struct samples *so_far); /* now and then; NULL: nobody listens */
    const volatile int *cancel; /* sampling ends when it becomes non-zero; NULL: never */
};

/* What is timed: does `inner` operations and writes how long they took, for each of n_series (two
 * directions and their sum, say), in ns. 0 or -errno, which ends the sampling. */
typedef int sampler_fn(void *arg, uint64_t inner, uint64_t *ns);

enum sampler_stop { SAMPLER_CONVERGED, SAMPLER_TIME, SAMPLER_SAMPLES, SAMPLER_INTERRUPTED };

/* Why a series has not converged; the first that holds. */
enum sampler_doubt {
    SAMPLER_SURE,      /* it has */
    SAMPLER_WIDE,      /* its interval is wider than asked, or there is none */
    SAMPLER_DEPENDENT, /* its samples are worth fewer than STATS_INDEPENDENT_MIN independent ones */
    /* they fall on two levels, with fewer than that many changes between them */
    SAMPLER_FEW_CHANGES,
};

struct samples {
    size_t n_series;
    double *ns[SAMPLER_SERIES_MAX]; /* time of each sample, ns for all its `inner` operations, in
                                       time order */
    uint64_t begin_ns;              /* by clock_now_ns(), when the first was begun */
    uint64_t *end_ns;               /* of each sample; the next one began there or later */
    uint64_t own_ns;                /* CPU time that the sampler itself took between samples */
    uint64_t n, capacity;
    uint64_t discarded; /* samples of calibration and warm-up */
    uint64_t inner;     /* operations in one sample */
    bool steady; /* the warm-up ended because the level was steady, not because its time was over */
    enum sampler_stop stop;
    enum sampler_doubt doubt[SAMPLER_SERIES_MAX]; /* of each series, whatever ended the sampling */
    double independent[SAMPLER_SERIES_MAX]; /* samples that the series is worth; NaN: not known */
    uint64_t changes[SAMPLER_SERIES_MAX];   /* between two levels; of SAMPLER_FEW_CHANGES alone */
};

/* 0, or -errno of fn or -ENOMEM; what was sampled until then is in *out. Release *out in any case.
 */
int sampler_run(const struct sampler_config *config, sampler_fn *fn, void *arg, size_t n_series,
                struct samples *out);
void samples_release(struct samples *s);

/* How many times as long all samples took, from the begin of the first to the end of the last, as
 * if each had been the median one with what usually lies between two: 1.25 where a CPU quota or
 * other guests held the work a fifth of the time, in samples or between them. The sampler's own
 * work (own_ns) is left out. It holds for each series: a median divided by it is a rate over all of
 * the time. NaN: there are no samples; they claim more time than passed, so that they are no times of
 * this machine; or half of the time and more is other work, whose pauses would be taken for the
 * samples'. */
double samples_stretch(const struct samples *s);

/* Same text as the row's `stop`. */
const char *sampler_stop_name(enum sampler_stop stop);

/* Two windows of warm-up samples show a steady level: their medians differ by no more than
 * STEADY_CHANGE or their own noise. Pure; for tests. */
#define SAMPLER_WINDOW 8
bool sampler_is_steady(const double *last, size_t n /* 2 * SAMPLER_WINDOW */);

#endif
