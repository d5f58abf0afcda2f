/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every output of a run begins with, so that one screen answers: what was measured, how far it
 * can be trusted, which part is weakest and what to do, what is healthy, what is not known. At most
 * twelve lines of 80 columns. Then one table, and remarks as numbered notes under it.
 *
 * Only what was measured on this machine is called weak or healthy.
 */
#ifndef PLUMB_REPORT_SUMMARY_H
#define PLUMB_REPORT_SUMMARY_H

#include "harness/document/document.h"
#include "harness/report/headline.h"

/* 0 or -ENOMEM. */
int summary_answers(struct report *r, const struct headlines *h, size_t run, struct document *d);
/* Each test with value, interval, share of the limit and a word, of all runs; notes; what has no
 * line. */
void summary_table(struct report *r, const struct headlines *h, struct document *d);
/* The answers of each run, under its name where there are several, and the table. 0 or -ENOMEM. */
int summary_all(struct report *r, const struct headlines *h, struct document *d);

#endif
