/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb report: one self-contained HTML page and plots of one run, or of several side by side.
 *
 * DIR/report.html holds everything it shows; DIR/plots/ has each of its charts as a file, and
 * DIR/summary.csv and summary.json a line of each case.
 */
#ifndef PLUMB_REPORT_REPORT_H
#define PLUMB_REPORT_REPORT_H

#include <stdio.h>

#include "harness/store/run_folder.h"

#define REPORT_RUNS_MAX 16

/* Who can judge a run against a baseline. The report knows nothing of it, and is handed it by the
 * command of harness/compare/compare.h. */
struct report_judge {
    /* 0 with *verdicts set, or -errno as of report_make() with error set. */
    int (*open)(const char *run, const char *baseline, void **verdicts, char *error, size_t len);
    void (*section)(FILE *out, void *verdicts); /* <section id='verdicts'> */
    void (*line)(FILE *out, void *verdicts);    /* one sentence for a terminal */
    void (*close)(void *verdicts);
};

/* plumb report. Exit code: 0 good, 2 usage or no run there, 4 it could not be written, 5 a run
 * folder is damaged. argv[0] is "report". */
int report_command(int argc, char **argv, const struct report_judge *judge);

/* A section of the page that another room writes. */
struct report_section {
    void (*write)(FILE *out, void *context);
    void *context;
};

/* out_dir NULL: the folder of the run, of which there must be one alone. verdicts: behind the
 * headlines; NULL: none. unfolded: all sections of the page but its rows and its verdicts, so that
 * they are printed. 0, or -errno with error set: -ENOENT: no run folder; -EBADMSG: a damaged one;
 * -EINVAL: several runs without out_dir, or too many; other: a file could not be written. The page is
 * replaced whole or not at all. */
int report_make(const char *const *runs, size_t n, const char *out_dir,
                const struct report_section *verdicts, bool unfolded, char *error, size_t len);

/* The answers and the table for a comment or a wiki. 0, or -errno with error set, as above. */
int report_markdown(FILE *out, const char *const *runs, size_t n, char *error, size_t len);

/* Which cases of the plan should be measured once more, at most `room` of them in `cases`: first
 * what looks slow among its like (GPUs, pairs, rails) and is not proven, up to AGAIN_MOST launches;
 * then the slowest of its like that has a single launch, since one launch may stall. 0 or -errno. */
#define AGAIN_MOST    5
#define AGAIN_SLOWEST 2
int report_again(const struct run_folder *run, unsigned *cases, size_t room, size_t *n);

/* The answers and the table that end a run. notes: with all that is to be known beside them. 0 or -errno. */
int report_summary(FILE *out, const struct run_folder *run, bool notes);

/* The same of several runs: a column a run. */
int report_runs(FILE *out, const char *const *runs, size_t n);

#endif
