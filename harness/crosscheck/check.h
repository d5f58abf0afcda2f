/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a plumb crosscheck: comparisons, and what they run with. */
#ifndef PLUMB_HARNESS_CROSSCHECK_CHECK_H
#define PLUMB_HARNESS_CROSSCHECK_CHECK_H

#include <stdio.h>

#include "harness/crosscheck/judge.h"
#include "harness/crosscheck/ours.h"
#include "harness/crosscheck/tandem.h"
#include "harness/crosscheck/witness.h"
#include "harness/run/progress.h"

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

struct check_options {
    const char *only, *device, *out;
    uint64_t pairs, seconds, timeout_ns;
    bool json, csv, help;
};

struct check {
    struct check_options options;
    char device[64], device_port[8]; /* of RDMA; "" where there is none */
    char *folder;                    /* where all goes */
    FILE *pairs_file;                /* pairs.csv in it */
    struct comparison *comparisons;
    size_t n;
    struct progress progress;
    const volatile int *cancel;
    char error[512];
};

/* Makes the comparisons that --only leaves, and says of each whether its program is here. 0; -ENOENT:
 * --only leaves none; -ENOMEM. With c->error. */
int check_plan(struct check *c);
/* Runs all pairs of one comparison and judges them. A witness that fails is no error; 0, -ECANCELED,
 * or -errno with c->error when nothing can go on (the folder cannot be written, memory). */
int comparison_run(struct check *c, struct comparison *m);
void check_release(struct check *c);

/* Makes the folder, log/ in it and pairs.csv. 0 or -errno with c->error. */
int check_open_folder(struct check *c);
int check_close_folder(struct check *c);
/* Keeps a text as log/NAME-PAIR-WHAT. 0 or -errno with c->error. */
int check_keep(struct check *c, const struct comparison *m, const char *what,
               const struct buffer *text);
int check_keep_pair(struct check *c, const struct comparison *m, bool ours_first);

#define CHECK_PATH_MAX 4096
/* folder/name */
const char *check_path(const struct check *c, const char *name, char path[CHECK_PATH_MAX]);

/* Printing: the table a comparison at a time, CSV, JSON. */
void show_begin(FILE *out, const struct check *c);
void show_comparison(FILE *out, const struct check *c, const struct comparison *m);
void show_end(FILE *out, const struct check *c);
void show_csv(FILE *out, const struct check *c);
int show_json(FILE *out, const struct check *c); /* 0 or -ENOMEM */
const char *show_state(const struct comparison *m);
const char *show_verdict(const struct comparison *m); /* "" where there is none */
double show_printed(const struct comparison *m);      /* median of what the witness prints */
/* Ours over theirs, if the name of the unit that it prints is believed. */
double show_printed_ratio(const struct comparison *m);

#endif
