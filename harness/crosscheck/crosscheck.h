/* SPDX-License-Identifier: Apache-2.0 */
/* plumb crosscheck: our figures against those of outside programs, in turn on the same machine. The
 * method is in docs/crosscheck.md. */
#ifndef PLUMB_HARNESS_CROSSCHECK_H
#define PLUMB_HARNESS_CROSSCHECK_H

#include <stdio.h>

#include "harness/crosscheck/compare.h"
#include "harness/crosscheck/witness.h"
#include "harness/run/progress.h"
#include "harness/text.h"

int cmd_crosscheck(int argc, char **argv); /* the exit status */

/* ---- The state of a plumb crosscheck: comparisons, and what they run with ---- */

enum comparison_state {
    COMPARISON_TODO,
    COMPARISON_DONE,
    COMPARISON_ABSENT,  /* the program is not on PATH */
    COMPARISON_SKIPPED, /* cannot run here: no RDMA device, ... */
    COMPARISON_FAILED,
};

struct comparison {
    const struct witness *w;
    enum comparison_state state;
    char version[32], reason[512];
    double *ours, *theirs, *printed; /* a figure a pair; theirs in our unit and definition */
    size_t pairs;
    struct ours last; /* of our last run: its CPUs are the witness' CPUs */
    struct judgement judgement;
};

struct crosscheck_options {
    const char *only, *device, *out;
    uint64_t pairs, seconds, timeout_ns;
    bool json, csv, help;
};

struct crosscheck {
    struct crosscheck_options options;
    char device[64], device_port[8]; /* of RDMA; "" where there is none */
    char *folder;                    /* where all goes */
    FILE *pairs_file;                /* pairs.csv in it */
    struct comparison *comparisons;
    size_t n;
    struct progress progress;
    const volatile int *cancel;
    char error[512];
};

/* compare.c: runs all pairs of one comparison and judges them. A witness that fails is no error; 0,
 * -ECANCELED, or -errno with c->error when nothing can go on (the folder cannot be written,
 * memory). */
int comparison_run(struct crosscheck *c, struct comparison *m);

/* Keeps a text as log/NAME-PAIR-WHAT. 0 or -errno with c->error. */
int crosscheck_keep(struct crosscheck *c, const struct comparison *m, const char *what,
                    const struct buffer *text);
int crosscheck_keep_pair(struct crosscheck *c, const struct comparison *m, bool ours_first);

/* ---- Printing (show.c): the table, a comparison at a time; CSV; JSON ---- */

void show_begin(FILE *out, const struct crosscheck *c);
void show_comparison(FILE *out, const struct crosscheck *c, const struct comparison *m);
void show_end(FILE *out, const struct crosscheck *c);
void show_csv(FILE *out, const struct crosscheck *c);
int show_json(FILE *out, const struct crosscheck *c); /* 0 or -ENOMEM */

#endif
