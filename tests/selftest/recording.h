/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded launches, with their samples: from run folders, and from tables of noise
 * (scripts/record-noise). Samples are logarithms, turned round where lower is better.
 *
 * A table of noise has these columns, and a line for each launch of a case:
 *
 *   run,id,steal,switches,median,q0..q31
 *
 * id names benchmark, arguments and metric. steal is the CPU steal in percent, switches the
 * involuntary context switches per second. The median is a logarithm. (i + 0.5) / 32 of the samples
 * are at or below qi, in 0.001 of a logarithm from the median.
 */
#ifndef PLUMB_SELFTEST_RECORDING_H
#define PLUMB_SELFTEST_RECORDING_H

#include <stddef.h>
#include <stdio.h>

#define RECORDING_QUANTILES 32

struct recorded_launch {
    double *samples; /* in the order of time; of a table of noise ascending */
    size_t n;
    size_t run; /* counts over the recording, in the order in which runs were added */
    double steal, switches;
};

struct recorded_case {
    char id[256];  /* benchmark, arguments, metric, and the row where there are several */
    size_t source; /* counts folders and tables, as they were added */
    struct recorded_launch *launches;
    size_t n;
};

struct recording {
    struct recorded_case *cases;
    size_t n, n_runs;
};

/* Adds the launches of a run folder that have `least` samples or more. Runs of one source are of
 * one machine and suite: their launches of a case stand together. 0; -1, with a message on stderr:
 * it cannot be read. Aborts where memory is short. */
int recording_add_run(struct recording *r, const char *path, size_t source, size_t least);
int recording_add_table(struct recording *r, const char *path, size_t source);
/* Leaves out the cases that have fewer launches. */
void recording_keep(struct recording *r, size_t launches);
void recording_release(struct recording *r);

/* Writes everything as a table of noise. */
void recording_write(const struct recording *r, FILE *to);

#endif
