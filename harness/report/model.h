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

enum row_field {
    FIELD_METRIC,
    FIELD_UNIT,
    FIELD_VALUE,
    FIELD_SUSTAINED,
    FIELD_VALUE_IS,
    FIELD_DIFFERS,
    FIELD_MEAN,
    FIELD_P05,
    FIELD_P95,
    FIELD_P999,
    FIELD_SAMPLES,
    FIELD_LEVEL_LOW,
    FIELD_LEVEL_LOW_SHARE,
    FIELD_LEVEL_HIGH,
    FIELD_LEVEL_HIGH_SHARE,
    FIELD_NOISE,
    FIELD_LIMIT,
    FIELD_LIMIT_KIND,
    FIELD_LIMIT_LINK,
    FIELD_LIMIT_SCOPE,
    FIELD_LIMIT_RAISED_FROM,
    FIELD_LIMIT_SOURCE,
    FIELD_PERCENT,
    FIELD_CEILING_PLACE,
    FIELD_CEILING,
    FIELD_CEILING_SHARE,
    FIELD_CEILING_FILL,
    FIELD_CEILING2_PLACE,
    FIELD_CEILING2,
    FIELD_LIMIT_BEFORE,
    FIELD_LIMIT_AFTER,
    FIELD_CARRIER,
    FIELD_CARRIER_DEVICE,
    FIELD_ORIGIN,
    FIELD_STATUS,
    FIELD_CODE,
    FIELD_REASON,
    FIELD_ELAPSED,
    FIELD_STEAL,
    FIELD_INVOLUNTARY,
    FIELD_MHZ_LOW,
    FIELD_MHZ_HIGH,
    FIELD_THROTTLE,
    FIELD_QUOTA,
    FIELD_QUOTA_PERCENT,
    FIELD_GPU_MHZ_LOW,
    FIELD_GPU_MHZ_HIGH,
    FIELD_GPU_TEMPERATURE,
    FIELD_GPU_WATTS,
    FIELD_GPU_MEAN_WATTS,
    FIELD_GPU_ENERGY_S,
    FIELD_CPU_WATTS,
    FIELD_GPU_THROTTLE,
    FIELD_GPU_THROTTLED,
    FIELD_DISTURBED,
    FIELD_CASE,
    FIELD_REPEAT,
    FIELD_HOST,
    FIELDS
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
    size_t n_twice;     /* launches that measured their ceiling before and after the samples */
    size_t n_unsteady;  /* launches whose ceiling was another one after the samples */
    double unsteady;    /* by the largest share; 0: none */
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
    const char *const *params; /* texts, in the order of the benchmark's parameters */
    const char *metric, *unit;
    struct report_point *points; /* one a run */
    bool more_is_better;         /* of its values: by its metric, or else by its unit */
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
    /* the same: the parameter that makes it an outcome where that is set; n_params: none */
    size_t *sought_by;
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
/* The same from one run that is read already, which stays the caller's. */
int report_take(struct report *r, const struct run_folder *run);
void report_release(struct report *r);

/* What plumb doctor says of the machine of a run. It is the report's. */
struct exam *report_exam(struct report *r, size_t run);

struct report_bench *report_bench(const struct report *r, const char *name); /* NULL: none */

double report_number(const char *text); /* of "0.5", "64K" or "1024"; NaN: it is no number */
const char *report_param(const struct report_bench *b, const struct report_case *c,
                         const char *name); /* "" where there is none */

#endif
