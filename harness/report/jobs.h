/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole jobs of a run, such as training of a model: how fast, what bounds them, and what to do. What
 * a job is, the benchmark says (struct bench_job); the rules are in core/job.h.
 *
 * Ways to do the same are held against the job (comparisons.h). One is advised where it is proven
 * faster, and its interval is not within the job's `gain` (struct bench_job). Of several it is the one
 * that saves most.
 */
#ifndef PLUMB_REPORT_JOBS_H
#define PLUMB_REPORT_JOBS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/job.h"
#include "harness/document/document.h"
#include "harness/report/comparisons.h"
#include "harness/report/model.h"

struct run_job {
    const struct report_bench *bench;
    size_t run;
    struct job found;
    const struct report_case *c; /* of its rate */
    double value;                /* of it; NaN: the job failed, and there is no other case of it */
    const char *on;              /* "2 ranks" or "" */
    const char *failed;          /* on how many the job failed: "4 ranks" or ""; NULL: it did not */
    const char *bound;           /* "bounded by the network: 61 % of the step waits for it" or "" */
    const char *unmeasured;      /* options that measure other ways; "" */
    size_t *asked;               /* numbers of the comparisons of found.ways */
    const struct report_case *way; /* that is advised, of jobs_judge(); NULL: none */
    const char *advice;            /* "buckets of 1 MiB"; "" */
    double saving, low, high;      /* of the job's time, in percent, 95 % */
};

struct run_jobs {
    struct run_job *all; /* by run, then in the order of the suite */
    size_t n;
};

/* Everything lives in the report's pool. */
void jobs_ask(struct report *r, struct comparisons *q, struct run_jobs *out);
void jobs_judge(struct report *r, const struct comparisons *q, struct run_jobs *all);

/* Is the first case of the suite of a benchmark that has jobs? Then the run is about them. */
bool jobs_lead(const struct report *r, size_t run);

/* "resnet50 is bounded by the network: ...; buckets of 1 MiB would save 9 % (8 % to 10 %)": the first
 * of a run; "": it has none. */
const char *jobs_answer_text(struct report *r, const struct run_jobs *jobs, size_t run);
/* A line for each job of a run. `answered`: the first one's bound and advice were told, and what to do is told with it. */
void jobs_answer(struct report *r, const struct run_jobs *jobs, size_t run, bool answered,
                 struct document *d);

#endif
