/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headlines: one line a pipe (or two, or one per data type), the best case, or of places that are alike the median, that the headlines of
 * the benchmarks let in, for each run by itself, and the verdict on it.
 *
 * "Best" is taken over cases that were measured and are ok or noisy; how many there were is said.
 * A case beside it that failed or gave wrong data decides the verdict: nothing hides it.
 */
#ifndef PLUMB_REPORT_HEADLINE_H
#define PLUMB_REPORT_HEADLINE_H

#include "harness/document/document.h"
#include "harness/report/comparisons.h"
#include "harness/report/described.h"
#include "harness/report/gpus.h"
#include "harness/report/jobs.h"
#include "harness/report/matrix.h"
#include "harness/report/model.h"
#include "harness/report/scaling.h"
#include "harness/report/siblings.h"

/* Cases that differ in one thing, side by side: random data and zeros, the library's own choice and
 * the best of its candidates, near and far host memory, one GPU alone and all at once. Which ones,
 * the benchmark says. */

struct contrast {
    const struct bench_contrast *rule;
    const struct report_bench *bench;
    size_t run;
    const struct report_case *base, *other; /* both were measured in the run */
    double change;                          /* of the other against the base: -0.23 */
    size_t comparison;                      /* its number */
    const char *sentence;                   /* of contrasts_judge() */
};

struct contrasts {
    struct contrast *all; /* by rule, then by run */
    size_t n;
};

/* Everything lives in the report's pool. */
void contrasts_ask(struct report *r, struct comparisons *q, struct contrasts *out);
void contrasts_judge(struct report *r, const struct comparisons *q, struct contrasts *all);

/* The sentences on a case; "" where there is none. Of a rule that has none on it, the first one on
 * any other case of `among` (flags, one a case of the benchmark). */
const char *contrast_remarks(struct report *r, const struct contrasts *contrasts,
                             const struct report_bench *b, const bool *among,
                             const struct report_case *c, size_t run);

enum verdict_kind {
    VERDICT_NORMAL,
    VERDICT_LOW,
    VERDICT_SLOW,      /* beside its like: another GPU, another pair */
    VERDICT_ABOVE,     /* the limit */
    VERDICT_UNDECIDED, /* the interval reaches across what is called low, or there is none */
    VERDICT_NOT_JUDGED,
    VERDICT_NO_LIMIT,
    VERDICT_NOT_MEASURED,
    VERDICT_OTHER_ORIGIN, /* simulated, modelled: no fact on this machine */
    VERDICT_PARTLY_FAILED,
    VERDICT_FAILED,
    VERDICT_WRONG
};

struct verdict_remark {
    struct verdict_remark *next;
    const char *text;
};

struct verdict {
    enum verdict_kind kind;
    const char *word; /* of the kind */
    enum tone tone;
    const char *range; /* inconclusive: the shares of the limit that it may have, "31 % to 76 %" */
    double low_below;  /* the share of the limit, in %, that it was judged by; 0: it was not */
    bool two_levels;   /* the value is not one level */
    const char *machine_changed; /* the remark that its ceiling changed with it; NULL: it did not */
    const char *look;            /* the last remark that somebody should look into; NULL: none */
    const struct report_case *look_case; /* the case that `look` is on; NULL: the best one */
    const char *findings; /* low: what the probe found that may explain it; "" where nothing */
    struct verdict_remark *remarks; /* what is to be known beside value, interval, share, word */
};

/* Cases of the test that gave wrong data, or launches of which failed: the best of the others is
 * no proof that the component is healthy. */
struct headline_lost {
    const struct report_case *first; /* the first of the worst, and not `best`; NULL: none */
    size_t wrong, failed, cases;     /* `cases`: all that were not just skipped, with `best` */
    const char *text;                /* "wrong data in 1 of 2 cases"; "" where none */
};

struct headline_run {
    /* The one that is shown: of places that are alike (GPUs, pairs) that of the median; NULL: not measured */
    const struct report_case *best;
    const struct report_point *point;
    /* the parameters of `best` that vary among the candidates, and its size: "onednn, 4096" */
    const char *what;
    /* measured cases that it is the best of: the more, the luckier is the best */
    size_t candidates;
    /* Places that do the same, and how many of them have a value. `best` is of their median, of two in
     * the middle the better. One alone is none */
    struct like *likes;
    size_t n_likes, alike;
    bool of_pairs;       /* they are pairs of GPUs or hosts */
    const char *slow;    /* "node2", "cuda:2 -> cuda:3 and 1 more": pairs or hosts that are; "" */
    const char *outside; /* "cuda:6 at 134 % of its limit": where the median is not; "" */
    bool is_job; /* it is the job that the run is about (jobs.h), and not the best of them */
    struct headline_lost lost;
    struct verdict verdict;
};

struct headline {
    const char *pipe, *label;
    const char *component; /* in the words of a comparison: described_pipe() */
    const struct report_bench *bench;
    const struct bench_headline *rule; /* NULL: made without */
    struct headline_run *runs;         /* one a run */
};

struct headlines {
    struct headline *all;
    size_t n;
    /* pipes whose benchmark has rows, none of which makes a headline of it; or "" */
    const char *unheaded;
    const char *missing; /* pipes that no run measured: "copies, matrix core"; or "" */
    const char *no_gpu;  /* every case on a GPU was skipped: why; or "" */
    struct comparisons comparisons;
    struct contrasts contrasts;
    struct matrices matrices;
    struct siblings siblings;
    struct scalings scalings;
    struct stragglers stragglers;
    struct run_jobs jobs;
};

/* "GPUs", "pairs" or "links": what those that are alike are. */
const char *headline_places(const struct headline_run *h);
/* What a matrix is of: the name of the line that has its median, or its own title. */
const char *headline_matrix_name(struct pool *pool, const struct headlines *h,
                                 const struct matrix *m);
/* "triad 1 GiB, 8 GPUs": the case, as its line is called. */
const char *headline_name(struct pool *pool, const struct headline *h, size_t run);

/* Everything lives in the report's pool. */
void headlines_make(struct report *r, struct headlines *out);

/* What the probe found amiss with the device that the case names by its address; "" where nothing.
 */
const char *verdict_device_findings(struct report *r, size_t run, const struct report_bench *b,
                                    const struct report_case *c);

/* False of what is simulated, modelled or of unknown origin: it says nothing about this machine, so
 * that it is neither normal nor low. */
bool point_is_measured(const struct report_point *p);

/* Adds a remark behind the others; "" adds none. */
void verdict_remark(struct pool *pool, struct verdict *v, const char *text);

/* Of one launch at least. */
bool point_is_wrong(const struct report_point *p);
bool point_has_failed(const struct report_point *p);

/* The worst case of a test decides, whatever was found of the best one. */
void verdict_lost_cases(struct pool *pool, struct verdict *v, const struct headline_lost *lost);

/* Adds a remark that somebody should look into: what is normal by its limit is "slow" then. c: the
 * case to look at, or NULL. */
void verdict_look(struct pool *pool, struct verdict *v, const char *text,
                  const struct report_case *c);

/* rule NULL: its share of the limit is shown, and not judged. */
struct verdict verdict_no_case(struct pool *pool); /* of a run that lacks the case */
struct verdict verdict_make(struct report *r, size_t run, const struct report_bench *b,
                            const struct report_case *c, const struct bench_headline *rule);

/* ---- What stands beside the best case of a line; used by headline.c alone ---- */

/* What one line is looked for among. */
struct search {
    struct report *r;
    const struct report_bench *bench;
    const struct bench_headline *rule; /* NULL: a metric alone */
    bool *in;                          /* which cases of the bench match */
    bool *at_in; /* of these, which are at the place that the rule asks for, in one run */
};

/* Adds to the verdict of h. `out`: with what was made before the lines, and the lines so far. */
void headline_remarks(const struct search *s, const struct headlines *out, size_t run,
                      struct headline_run *h);

#endif
