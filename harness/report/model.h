/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a report speaks of: every case of every benchmark, with the launches of each run combined to
 * one point.
 *
 * A case is one choice of parameters and one metric. Its launches in one run are combined so:
 *   value     the centre of the launches' medians (stats_centre()): their geometric mean; launches that
 *             are wrong, failed or skipped have none
 *   interval  over the launches' medians (stats_ci_launches()); of one launch there is none
 *   levels    two where the launches' medians fall on two levels, else where a launch's samples do
 *   limit     the highest of the launches' limits, each made of the best ceilings that any case of the run
 *             measured at the same place: a launch on a machine in a bad state finds a low one; percent is
 *             value / limit. A reference where a launch's is: no verdict hangs on it
 *   status    the worst of the launches: ok, skipped, noisy, failed, wrong. A launch that died belongs to
 *             every metric of its case of the suite
 */
#ifndef PLUMB_REPORT_MODEL_H
#define PLUMB_REPORT_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/bench_rows.h"
#include "core/levels.h"
#include "harness/document/pool.h"
#include "harness/exam/exam.h"
#include "harness/store/run_folder.h"

/* clang-format off */
/* The columns that code reads by name. */
#define ROW_FIELDS(X) \
    X(METRIC, "metric") \
    X(UNIT, "unit") \
    X(VALUE, "value") \
    X(SUSTAINED, "sustained") \
    X(VALUE_IS, "value_is") \
    X(DIFFERS, "differs") \
    X(MEAN, "mean") \
    X(P05, "p05") \
    X(P95, "p95") \
    X(P999, "p999") \
    X(SAMPLES, "samples") \
    X(LEVEL_LOW, "level_low") \
    X(LEVEL_LOW_SHARE, "level_low_share") \
    X(LEVEL_HIGH, "level_high") \
    X(LEVEL_HIGH_SHARE, "level_high_share") \
    X(NOISE, "noise_kind") \
    X(LIMIT, "limit") \
    X(LIMIT_KIND, "limit_kind") \
    X(LIMIT_LINK, "limit_link") \
    X(LIMIT_SCOPE, "limit_scope") \
    X(LIMIT_RAISED_FROM, "limit_raised_from") \
    X(LIMIT_SOURCE, "limit_source") \
    X(PERCENT, "percent_of_limit") \
    X(CEILING_PLACE, "ceiling_place") \
    X(CEILING, "ceiling") \
    X(CEILING_SHARE, "ceiling_share") \
    X(CEILING_FILL, "ceiling_fill") \
    X(CEILING2_PLACE, "ceiling2_place") \
    X(CEILING2, "ceiling2") \
    X(CARRIER, "carrier") \
    X(CARRIER_DEVICE, "carrier_device") \
    X(ORIGIN, "origin") \
    X(STATUS, "status") \
    X(CODE, "code") \
    X(REASON, "reason") \
    X(ELAPSED, "elapsed_s") \
    X(STEAL, "steal_percent") \
    X(INVOLUNTARY, "ctx_involuntary") \
    X(MHZ_LOW, "cpu_mhz_low") \
    X(MHZ_HIGH, "cpu_mhz_high") \
    X(THROTTLE, "throttle_events") \
    X(QUOTA, "quota_throttled_ms") \
    X(QUOTA_PERCENT, "quota_percent") \
    X(GPU_MHZ_LOW, "gpu_clock_mhz_low") \
    X(GPU_MHZ_HIGH, "gpu_clock_mhz_high") \
    X(GPU_TEMPERATURE, "gpu_temperature_c") \
    X(GPU_WATTS, "gpu_power_watts") \
    X(GPU_MEAN_WATTS, "gpu_mean_watts") \
    X(GPU_ENERGY_S, "gpu_energy_s") \
    X(CPU_WATTS, "cpu_watts") \
    X(GPU_THROTTLE, "gpu_throttle") \
    X(GPU_THROTTLED, "gpu_throttled_ms") \
    X(DISTURBED, "disturbed") \
    X(CASE, "case") \
    X(REPEAT, "repeat") \
    X(HOST, "host")
/* clang-format on */

enum row_field {
#define FIELD_NUMBER(name, column) FIELD_##name,
    ROW_FIELDS(FIELD_NUMBER) FIELDS
};

/* The rows of one benchmark in one run; table is NULL where that run has none. */
struct report_rows {
    const struct table *table;
    size_t fields[FIELDS]; /* columns */
    size_t *params;        /* columns of the benchmark's parameters; TABLE_NO_COLUMN: not there */
    double *limits; /* of each row, by the best ceilings that the run measured at its place; NaN */
    const char **limits_from; /* "op read": the other cases whose ceilings these are made of; "" */
    double *middle_limits;    /* the median of the limits that are made as this row's; NaN: none */
};

const char *row_text(const struct report_rows *rows, size_t row, enum row_field field);
double row_number(const struct report_rows *rows, size_t row, enum row_field field); /* or NaN */

enum report_two { TWO_NOT, TWO_SAMPLES, TWO_LAUNCHES };

struct report_range {
    double low, high;
};

/* A case in one run. */
struct report_point {
    const size_t *rows; /* of that run's table; none: the run lacks the case */
    size_t n_rows, n_values, n_noisy, n_disturbed; /* launches; those with a value; ... */
    double value, low, high, limit, percent;       /* NaN: not measured, unknown */
    struct { /* all work over all time, where that is worse than value by over 2 % */
        double value, low, high; /* NaN: it is not, or not known; low, high: over launches */
        const char *cause;       /* "the CPU quota held it 20 % of the time" */
    } sustained;
    double p999;        /* the launches' 99.9 % quantiles: their median */
    size_t n_throttled; /* launches in which a GPU was held back */
    /* Of the ceilings that the launches measured themselves, and the values in % of these; NaN. The
     * machine changed: the ceilings differ much, and the values follow them. */
    struct report_range own, own_percent;
    bool machine_changed;
    double middle_limit; /* the median of the limits that are made as this one; NaN: none */
    bool reference;      /* the limit is none, but what the same work reached: core/row.h */
    size_t n_two;        /* launches whose own samples fall on two levels */
    struct report_range share_low; /* of these: the shares of samples on the lower level */
    enum report_two two;
    struct levels levels;
    const char *limit_link, *limit_scope, *status, *origin; /* "" where there is none */
    const char *limit_from; /* whose ceilings make the limit, where other cases' do: "op read" */
    const char *carrier_device, *throttle;         /* by what: "power cap" */
    const char *limit_source, *reason, *disturbed; /* sentences, to be shown: no code reads them */
    /* NULL or ""; where launches chose differently: "isa avx512 in 3 of 5 launches, avx2 in 2" */
    const char *chose;
};

struct report_case {
    /* Texts, in the order of the benchmark's parameters: as people read them, what was used where it
     * was left to the benchmark ("" where launches differ) */
    const char *const *params;
    const char *metric, *unit;
    struct report_point *points; /* one a run */
    bool more_is_better;         /* of its values: by its metric, or else by its unit */
    const char *const *asked;    /* the same as requested, which makes the case; "": left */
};

/* What the benchmarks of the runs said of their rows: described.h. */
struct told_bench {
    const char *name;
    struct bench_rows rows;
};

struct told_headline {
    const char *bench;
    const struct bench_headline *rule;
};

struct described {
    struct told_bench *benches; /* in the order of a report */
    size_t n;
    struct told_headline *headlines; /* of all of them, in that order */
    size_t n_headlines;
};

struct report_bench {
    const char *name;
    const struct bench_rows *described; /* never NULL */
    const char **params;                /* names */
    bool *follows; /* one a parameter: it follows from others, and makes no case */
    /* the same: it does, and decides which quantity was measured. Runs side by side then show two
     * cases; held against each other (report_load_joined()) they are one, that is refused */
    bool *splits;
    /* the same: the parameter that makes it an outcome where that was asked for, and the one that
     * says what was chosen for it; n_params: none */
    size_t *sought_by, *used;
    size_t n_params;
    struct report_rows *rows; /* one a run */
    struct report_case *cases;
    size_t n_cases;
};

struct report {
    struct pool pool;
    struct run_folder *runs;
    const char **names; /* of the runs, each once: A, B (2) */
    size_t n_runs, n_rows;
    struct described described;
    bool borrowed; /* the runs are the caller's */
    struct report_bench *benches;
    size_t n_benches;
    struct exam **exams; /* of the runs' machines: report_exam() */
};

/* Reads the folders and combines. 0 or as run_folder_load(), with error set; *r is to be released
 * in any case. */
int report_load(struct report *r, const char *const *paths, size_t n, char *error, size_t len);
/* The same for who pairs the cases of two sides: what was used never makes a case. */
int report_load_joined(struct report *r, const char *const *paths, size_t n, char *error,
                       size_t len);
/* The same from one run that is read already, which stays the caller's. */
int report_take(struct report *r, const struct run_folder *run);
void report_release(struct report *r);

/* What plumb doctor says of the machine of a run. It is the report's. */
struct exam *report_exam(struct report *r, size_t run);

/* Has it a value in the run? */
static inline bool case_has_value(const struct report_case *c, size_t run)
{
    return c->points[run].n_values > 0;
}

static inline bool case_is_better(const struct report_case *c, double value, double than)
{
    return c->more_is_better ? value > than : value < than;
}

struct report_bench *report_bench(const struct report *r, const char *name); /* NULL: none */

double report_number(const char *text); /* of "0.5", "64K" or "1024"; NaN: it is no number */
const char *report_param(const struct report_bench *b, const struct report_case *c,
                         const char *name); /* "" where there is none */

#endif
