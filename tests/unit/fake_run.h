/* SPDX-License-Identifier: Apache-2.0 */
/* Run folders for tests: a folder in /tmp, files written into it, rows with every column. */
#ifndef PLUMB_TESTS_FAKE_RUN_H
#define PLUMB_TESTS_FAKE_RUN_H

#include <ftw.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/row.h"

#define FAKE_PLAN_HEADER "state,rows,order,case,repeat,bench,arguments,timeout_s\n"

struct fake_run {
    char path[64];
};

static inline void fake_run_init(struct fake_run *f)
{
    strcpy(f->path, "/tmp/plumb-test-XXXXXX");
    if (!mkdtemp(f->path))
        abort();
}

static inline int fake_run_unlink(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline void fake_run_release(struct fake_run *f)
{
    nftw(f->path, fake_run_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

static inline FILE *fake_run_open(const struct fake_run *f, const char *name, const char *mode)
{
    char path[512];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    out = fopen(path, mode);
    if (!out)
        abort();
    return out;
}

static inline void fake_run_write(const struct fake_run *f, const char *name, const char *text)
{
    FILE *out = fake_run_open(f, name, "w");

    fputs(text, out);
    fclose(out);
}

static inline void fake_run_append(const struct fake_run *f, const char *name, const char *text)
{
    FILE *out = fake_run_open(f, name, "a");

    fputs(text, out);
    fclose(out);
}

/* A row of a launch in which 10 samples were taken; everything else is the test's to change. */
static inline void fake_row_init(struct row *row, const char *case_id, uint64_t repeat,
                                 const char *metric, const char *unit, double value)
{
    row_init(row);
    row->metric = metric;
    row->unit = unit;
    row->value = value;
    row->summary.ci_low = 0.99 * value;
    row->summary.ci_high = 1.01 * value;
    row->summary.confidence = 0.95;
    row->samples = 10;
    row->stop = "converged";
    row->origin = "measured";
    row->status = "ok";
    row->case_id = case_id;
    row->repeat = repeat;
    row->run = "fake";
    row->host = "host";
}

/* The value of launch i of FAKE_LAUNCHES of one case, whose 95 % interval ends at value / 1.01 and
 * 1.01 value: Student's t with 2 degrees of freedom, on logarithms. */
#define FAKE_LAUNCHES 3
static inline double fake_launch(double value, unsigned i)
{
    return value * exp(((double)i - 1) * log(1.01) * sqrt(3) / 4.302652729911275);
}

#endif
