/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmarks of the runs said of their rows (core/bench_rows.h), and the questions that a
 * report asks of it. Nothing here knows a benchmark by name; one that said nothing is reported all
 * the same.
 *
 * Where runs differ in what they were told, the last run counts; columns that it does not know are
 * as the run before it has them.
 */
#ifndef PLUMB_REPORT_DESCRIBED_H
#define PLUMB_REPORT_DESCRIBED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/condition.h"
#include "harness/plan/bench_info.h"
#include "harness/report/model.h"

/* Fills in r->described from r->runs. 0, or -EBADMSG: a run.json is damaged, error says where. */
int described_load(struct report *r, char *error, size_t len);
void described_release(struct described *described);

/* What this benchmark said; empty tables where it said nothing. */
const struct bench_rows *described_of(const struct described *described, const char *bench);

/* What the metric is, for who meets its name first; "" where nothing is told. */
const char *described_says(const struct report_bench *b, const char *metric);

/* Where it stands in a report: less stands before. */
unsigned described_order(enum bench_stage stage);

/* NULL when there is none. */
const struct bench_plot *described_plot(const struct report_bench *b, bool gpu);
/* That for one case. */
const struct bench_plot *described_plot_of(const struct report_bench *b,
                                           const struct report_case *c);

/* The terms of the case's operation; NULL where none are told. */
const struct bench_terms *described_terms(const struct report_bench *b,
                                          const struct report_case *c);

/* Has the parameter this flag of enum COLUMN_..? Where nothing is told of the benchmark, the
 * parameters that have "bytes" in their names are sizes. */
bool described_flag(const struct report_bench *b, const char *param, unsigned flag);
/* The parameter that, where it was asked for, makes this one an outcome; NULL: none. */
const char *described_sought_by(const struct report_bench *b, const char *param);
/* Is it left out of plots and descriptions? */
bool described_ignores(const struct report_bench *b, const struct bench_plot *plot,
                       const char *param);

/* Whether the case's parameters that the plot calls square are equal; true where there are none. */
bool described_is_square(const struct bench_plot *plot, const struct report_bench *b,
                         const struct report_case *c);

/* The part of the machine that a case measures, for comparing: "Matrix core", "Memory", "PCIe" ...
 * Fewer than the headlines' pipes, and one for each case. */
const char *described_pipe(const struct report *r, const struct report_bench *b,
                           const struct report_case *c);

/* Does comparing runs judge it? Not where its metric says why not. A metric of which nothing is
 * told is judged where it was sampled, and not where it is a figure beside the samples (a row
 * without a stop rule). */
bool described_is_judged(const struct report *r, const struct report_bench *b,
                         const struct report_case *c);
/* Has it values, and all of them beside the samples? A launch may leave such a row out (CPU time of
 * a machine that was busy with other work before), and has not failed by that. */
bool described_is_figure(const struct report *r, const struct report_bench *b,
                         const struct report_case *c);
/* Of a case's values, by its metric, or else by its unit: is more of it better? */
bool described_more_is_better(const struct report_bench *b, const struct report_case *c);

/* Does the condition hold for the case? NULL holds. Of a case whose launches all died before they
 * could say what they measure, where its parameters let it be. */
bool described_matches(const struct report_bench *b, const struct report_case *c,
                       const char *where);

/* A place such as cuda:0. */
bool place_is_gpu(const char *place);
/* One of the case's places is a GPU. */
bool case_is_gpu(const struct report_bench *b, const struct report_case *c);
/* The GPU of a case on one: its place, or the end of a copy with the host; "" of pairs, and of
 * none. */
const char *case_gpu(const struct report_bench *b, const struct report_case *c);
/* Both ends are GPUs, and not one and the same. */
bool case_is_pair(const struct report_bench *b, const struct report_case *c);

#endif
