/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole job among the rows of a benchmark: how fast it is, what bounds it, and which of the other
 * ways that were measured are ways to do the same. What these are, the benchmark says (struct
 * bench_job, bench_bound and bench_advice). Pure functions, for the report of a run.
 *
 *   the job     of each value of job.by, of its cases at the most of job.at, the first one: what comes
 *               behind it are other ways. If that one failed, no other way takes its place: it is the
 *               same at the most of job.at that has a value, and else it has none
 *   its bound   the largest of its shares. A share is the row that agrees with the job's in all
 *               columns that make a case, but in its metric; what these leave is the share with
 *               BOUND_REST. Without any share there is no bound
 *   other ways  cases that differ from the job's in the column of one advice alone
 */
#ifndef PLUMB_CORE_JOB_H
#define PLUMB_CORE_JOB_H

#include <stdbool.h>
#include <stddef.h>

#include "core/bench_rows.h"

struct job_row {
    const char *metric, *unit;
    const char *const *params; /* texts, in the order of the columns; NULL: none */
    double value;              /* NaN: none */
    bool failed;               /* and it should have one: it failed, or its data are wrong */
};

struct job_rows {
    const struct bench_rows *told;
    const char *const *columns;
    size_t n_columns;
    const struct job_row *rows; /* in the order of the suite */
    size_t n;
};

#define JOB_WAYS_MAX 256

struct job_way {
    size_t row;
    const struct bench_advice *advice;
};

struct job {
    const struct bench_job *rule;
    size_t row;                      /* of its rate; of a job without a value: of what failed */
    size_t failed;                   /* the row of the job that failed; rows->n: it did not */
    const char *name;                /* its value of rule->by */
    const struct bench_bound *bound; /* NULL: no share is known */
    double share;                    /* of the time, in percent */
    double lost;                     /* all shares but the rest, in percent; NaN: none is known */
    bool stated;                     /* if it is simulated, rule->stated says what of it is */
    double scaled; /* rate for each of rule->at, in percent of that at the least of it; NaN: none */
    struct job_way ways[JOB_WAYS_MAX]; /* with a value */
    size_t n_ways;
};

/* Fills in at most `most` and returns how many, in the order of their rows. */
size_t jobs_find(const struct job_rows *rows, struct job *jobs, size_t most);

const char *job_param(const struct job_rows *rows, size_t row, const char *column); /* or "" */

/* "bounded by the network: 61 % of the step waits for sums"; "" where no share is known. */
const char *job_bound_text(const struct job *job, char *text, size_t len);
/* "buckets of 1 MiB": the value of the way's column, sizes in words. */
const char *job_way_text(const struct job_rows *rows, const struct job_way *way, char *text,
                         size_t len);
/* Options that measure what was not: "--bucket 1M,25M,100M"; "" where no way can save much: all but the
 * rest of the job's time is under rule->gain. */
const char *job_unmeasured_text(const struct job_rows *rows, const struct job *job, char *text,
                                size_t len);
/* "2 ranks": of its row, or of any other; "" where that does not say on how many. */
const char *job_on_text(const struct job_rows *rows, const struct job *job, size_t row, char *text,
                        size_t len);

#endif
