/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headlines: one line a pipe (or two, or one per data type), the best case that the headlines of
 * the benchmarks let in, for each run by itself, and a plain sentence on it.
 *
 * "Best" is taken over cases that were measured and are ok or noisy; how many there were is said.
 */
#ifndef PLUMB_REPORT_HEADLINE_H
#define PLUMB_REPORT_HEADLINE_H

#include "harness/report/contrast.h"
#include "harness/report/matrix.h"
#include "harness/report/model.h"
#include "harness/report/scaling.h"
#include "harness/report/scaling_buckets.h"
#include "harness/report/scaling_ranks.h"
#include "harness/report/told.h"

enum mood { MOOD_GOOD, MOOD_OPEN, MOOD_WARN, MOOD_BAD }; /* open: nothing to judge by */

struct verdict {
    enum mood mood;
    const char *sentence; /* "normal: 92 % of the limit; noisy ..." */
    size_t judged,
        shared; /* bytes of it: the judgement that it begins with, "normal"; behind that and ": " the share that a line of
                              figures shows too, "92 % of the limit". 0: it says none, or something else first */
    bool low;
};

struct headline_run {
    const struct report_case *best; /* NULL: not measured */
    const struct report_point *point;
    const char *
        what; /* the parameters of `best` that vary among the candidates, and its size: "onednn, 4096" */
    size_t
        candidates; /* measured cases that it is the best of: the more, the luckier is the best */
    struct verdict verdict;
};

struct headline {
    const char *pipe, *label;
    const struct report_bench *bench;
    const struct bench_headline *rule; /* NULL: made without */
    struct headline_run *runs;         /* one a run */
};

struct headlines {
    struct headline *all;
    size_t n;
    const char
        *unheaded; /* pipes whose benchmark has rows, none of which makes a headline of it; or "" */
    const char *missing; /* pipes that no run measured: "copies, matrix core"; or "" */
    const char *no_gpu;  /* every case on a GPU was skipped: why; or "" */
    struct contrasts contrasts;
    struct matrices matrices;
    struct scalings scalings;
    struct stragglers stragglers;
    struct bucket_sweeps buckets;
};

/* "size 64K, best of 3": `what`, and of how many cases it is the best, where there are several. */
const char *headline_what(struct pool *pool, const struct headline_run *run);

/* Everything lives in the report's pool. 0 or -ENOMEM. */
int headlines_make(struct report *r, struct headlines *out);

/* What the probe found amiss with the device that the case names by its address; "" where nothing.
 */
const char *verdict_device_findings(struct report *r, size_t run, const struct report_bench *b,
                                    const struct report_case *c);

/* False of what is simulated, modelled or of unknown origin: it says nothing about this machine, so
 * that it is neither normal nor low. */
bool point_is_measured(const struct report_point *p);

/* The one note on ceilings that were others before the samples than after, of a run: "" where none was.
 * Lines that it concerns say "note 1". */
const char *headlines_unsteady_text(struct report *r, size_t run);

/* "no GPU: no driver: install it": one line, and no alarm. */
const char *headlines_no_gpu_text(struct pool *pool, const struct headlines *h);

/* The sentence on one point; rule NULL: its share of the limit is said, and not judged. */
struct verdict verdict_no_case(struct pool *pool); /* of a run that lacks the case */
struct verdict verdict_make(struct report *r, size_t run, const struct report_bench *b,
                            const struct report_case *c, const struct bench_headline *rule);

#endif
