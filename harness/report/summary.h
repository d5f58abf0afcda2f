/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every output of a run begins with, so that one screen answers: what is wrong and where, on which
 * machine, how far it can be trusted, what was not tested. Then one line a test, and matrices of GPUs and hosts.
 *
 * Of equal things (GPUs, pairs, links) a line shows the median; the worst is named among the problems.
 * The words of a table are those that ask for something: of what is normal it has none.
 */
#ifndef PLUMB_REPORT_SUMMARY_H
#define PLUMB_REPORT_SUMMARY_H

#include "harness/document/document.h"
#include "harness/report/headline.h"
#include "harness/report/model.h"

/* "AMD EPYC (family 26, model 2)"; "" where it is not known. */
const char *summary_cpu(struct report *r, size_t run);
/* "cuda:2 -> cuda:3 carries 0.50 ...; ...": links, hosts, rails and GPUs that are behind their like in
 * the run, the first of them; "looks slow: ..." where none is proven to be; "". */
const char *summary_slow(struct report *r, const struct headlines *h, size_t run);
void summary_answers(struct report *r, const struct headlines *h, size_t run, bool notes,
                     struct document *d);
/* Each test with value, interval, share of the limit and a word, of all runs. notes: with all that is
 * to be known beside them; else each line says what it says alone. */
void summary_table(struct report *r, const struct headlines *h, bool notes, struct document *d);
/* A table of what each GPU reached. */
void summary_gpus(struct report *r, const struct headlines *h, struct document *d);
/* That table, and a matrix of pairs and of hosts, where a terminal has room. */
void summary_places(struct report *r, const struct headlines *h, struct document *d);
/* A line of each case in each run, for pandas or a spreadsheet: what it is, its value, interval, limit,
 * word and code. csv, json: either may be NULL. */
void summary_lines(FILE *csv, FILE *json, struct report *r, const struct headlines *h);
/* The answers of each run, under its name where there are several, and the table. */
void summary_all(struct report *r, const struct headlines *h, bool notes, struct document *d);

/*
 * How far a run can be trusted: by the smallest loss that it could have shown, and by what
 * disturbed it.
 *
 *   smallest  of each judged case that was measured, the loss that plumb compare would prove, 19
 *             times in 20, between this run and another one like it (harness/decide/decide.h,
 *             `detectable`). Of all cases the median; a case of a single launch shows no loss at all. One
 *             that is alike with three others or more (GPUs, pairs) is held against these in the run,
 *             and is left out of the median
 *   grade     A up to 2 %, B up to 5 %, C up to 10 %, else D
 *   repeats   launches of each case that reach the next grade, if nothing else changes: errors
 *             shrink with the root of their number. Below DECIDE_FEW_LAUNCHES a loss must also
 *             exceed the widest spread of any case: that many launches, and the grade is not known
 */

#define TRUST_REPEATS_MAX 50 /* more are no advice */

struct trust {
    char grade;      /* 'A' to 'D'; 0: nothing was measured */
    double smallest; /* 0.05: 5 %; 1: no loss could have been shown */
    double next;     /* the loss of the next grade; NaN: there is none */
    size_t cases;    /* that were counted */
    size_t launches; /* of each, in the median */
    size_t fewest_launches, most_launches;
    size_t single;          /* cases of a single launch */
    size_t alike;           /* such cases that are left out: held against their like */
    size_t repeats;         /* 0: more than TRUST_REPEATS_MAX, or none are needed */
    double minutes;         /* that these take, by what the run took; NaN: not known */
    size_t rows, disturbed; /* measured ones; those that were disturbed */
    /* Of the disturbed rows, at most; 0: not by this. Of steal, in rows, cases, or all short cases of
     * 1 s of CPU time or more: the kernel counts it in ticks of 10 ms. */
    double steal_percent, clock_percent, quota_ms;
    /* Rows with steal; with thermal throttling; with involuntary switches. */
    size_t stolen, throttled, switched;
};

struct trust trust_make(struct report *r, const struct comparisons *q, size_t run);
/* How long the benchmarks would take with so many launches of every case, by what those of each case
 * took in this run. NaN: not known. */
double trust_minutes(struct report *r, size_t run, double repeats);
/* The run's command with more repetitions. */
const char *trust_command(struct report *r, size_t run);
/* Its line of the answers: grade, loss, what disturbed the run, and what to do. */
void trust_answer(struct report *r, const struct comparisons *q, size_t run, bool notes,
                  struct document *d);

#endif
