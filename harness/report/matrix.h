/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between GPUs as matrices: a row for each source, a column for each destination, one matrix
 * for each choice of the other parameters. And pairs that are slow for their kind.
 *
 * Pairs are of one kind where the machine's facts say so (as many NVLinks, or the same way over the
 * PCI bus), and where their rows say the same of the path. A kind has at least MATRIX_KIND_MIN
 * pairs. A pair seems slow where its value is more than MATRIX_SLOW behind the median of its kind.
 * It is slow where the better end of its interval over the launches is, too; else it is vague. A
 * single launch has no interval.
 */
#ifndef PLUMB_REPORT_MATRIX_H
#define PLUMB_REPORT_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/report/model.h"

/*
 * Which host is behind the others, by what the links between them carry. Pure.
 *
 * A link is as fast as the slower of its ends lets it be, so that a slow host shows in all of its
 * links, and a slow link in one. A host's level is the upper median of its links: with a strict
 * majority of hosts that are fine, at least half of a fine host's links go to such. A host is slow
 * where
 *   - its level is more than LINKS_SLOW below that of the middle host (the lower middle of an even
 *     number: half of the hosts are no majority), and
 *   - the median of its links to hosts that are not slow, at least two where there are as many, is
 *     below the median of the links between these by more than LINKS_SLOW and by more than
 *     LINKS_NOISE standard deviations of them (from the median absolute deviation),
 * judged over all of its links, then over those from it and those to it by themselves, where there
 * are links both ways.
 */

#define LINKS_SLOW  0.10
#define LINKS_NOISE 3.0

struct link {
    size_t from, to; /* hosts */
    double value;    /* above 0, the more the better: 1 / time for a latency */
};

enum links_way { LINKS_BOTH, LINKS_FROM, LINKS_TO };

struct slow_host {
    size_t host;
    enum links_way way; /* which of its links are slow */
    size_t links;       /* other hosts that they go to, or come from */
    double ratio;       /* what they carry of the others' */
};

/* Fills `slow`, which has room for n_hosts, in the order of the hosts; returns how many there are.
 * With fewer than three hosts nothing can be told. */
size_t links_judge(const struct link *links, size_t n, size_t n_hosts, struct slow_host *slow);

#define MATRIX_SLOW     0.15
#define MATRIX_KIND_MIN 4

struct matrix_cell {
    const struct report_case *c; /* NULL: not in this run */
    const struct report_point *point;
    const char *relation; /* "4 NVLinks", "PIX", says the probe; "" where it is not known */
    const char *path;     /* the row's own word */
    const char *kind;     /* both */
    double kind_median;   /* NaN: too few of it, or no value */
    bool slow;
    bool vague; /* it seems slow, and its interval does not prove it */
    bool named; /* an end of it is a host that is named as slow: that says it all */
};

struct matrix {
    const struct report_bench *bench;
    size_t run;
    const char *metric, *unit;
    bool more_is_better;
    const char *title; /* the other parameters that are set */
    bool hosts;        /* between hosts; else between GPUs */
    const char **ends; /* names, by number */
    size_t n;
    struct matrix_cell *cells; /* n x n: [source * n + destination] */
    size_t measured, slow, vague;
    struct slow_host *slow_hosts; /* of hosts */
    size_t n_slow_hosts;
    double high; /* the highest value */
};

struct matrices {
    struct matrix *all;
    size_t n;
};

/* Of every run and benchmark in which two GPUs or more copied to one another. Everything lives in
 * the report's pool. */
void matrices_make(struct report *r, struct matrices *out);

/* "2 pairs seem slow, not proven: node0 -> node3, node1 -> node2; measure again with a higher
 * --repeat"; "": none. */
const char *matrix_vague_text(struct report *r, const struct matrix *m);

bool matrix_has_value(const struct matrix_cell *cell);

/* A slow pair that no slow host explains. */
bool matrix_is_listed(const struct matrix *m, size_t cell);

/* Of slow host number i: "node3: its 3 links carry 0.53 of the others'". */
const char *matrix_host_text(struct report *r, const struct matrix *m, size_t i);

bool matrix_holds(const struct matrix *m, const struct report_case *c, size_t run);

/* Of the pairs with the path of this case, kind by kind where they are of several: "14 pairs: 91.5
 * to 18.9, slowest: cuda:1 -> cuda:6, 1 slow for its kind". *slow: how many are. */
const char *matrix_summary(struct report *r, const struct matrix *m, const struct report_case *c,
                           size_t *slow);

/* "cuda:2 -> cuda:5 is 40 % below the median of its kind (4 NVLinks, 24.1 GB/s)". */
const char *matrix_slow_text(struct report *r, const struct matrix *m, size_t cell);

#endif
