/* SPDX-License-Identifier: Apache-2.0 */
/* The HTML page, section by section; between report.c and the page_*.c files. */
#ifndef PLUMB_REPORT_PAGE_H
#define PLUMB_REPORT_PAGE_H

#include <stdio.h>

#include "harness/report/headline.h"
#include "harness/report/report.h"
#include "harness/report/series.h"

struct page {
    FILE *out;
    struct report *r;
    const struct headlines *headlines;
    const struct figures *figures;
    const struct report_section *verdicts; /* against a baseline; NULL: there is none */
    bool unfolded;                         /* all sections but the rows, so that paper has them */
};

void page_write(const struct page *page);

/* A section that is folded: what nobody needs for an answer. Paper shows it where it is
 * unfolded. */
void page_fold(const struct page *page, const char *id, const char *title);
/* " open" of a <details>, or "". */
const char *page_open(const struct page *page);
void page_fold_end(const struct page *page);

void page_contrasts(const struct page *page); /* nothing where there are none; so page_matrices */
void page_matrices(const struct page *page);
void page_machine(const struct page *page);
bool page_has_matrices(const struct page *page, bool hosts); /* between hosts, or between GPUs */
bool page_has_scaling(const struct page *page);
void page_scaling(const struct page *page);
void page_plots(const struct page *page);
bool page_has_plots(const struct page *page);
void page_lead(const struct page *page); /* the first charts, which stand beside the table */
void page_figure(const struct page *page, size_t figure);
void page_quality(const struct page *page);
void page_rows(const struct page *page);
void page_again(const struct page *page);

/* Of a run between hosts: which they are, what started things there, which pairs the rows are
 * of. Else nothing. */
void page_hosts_line(const struct page *page, size_t run);  /* for the head */
void page_hosts_table(const struct page *page, size_t run); /* for the machine's section */

/* A word as a shell takes it. */
const char *shell_word(struct pool *pool, const char *word);

/* The metric of a case and the parameters that tell it apart: "bandwidth: triad, size 64K,
 * threads 2". */
const char *case_text(struct report *r, const struct report_bench *b, const struct report_case *c);

#endif
