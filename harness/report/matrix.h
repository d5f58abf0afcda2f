/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between GPUs, and links between hosts, as matrices: a row for each source, a column for each
 * destination, one matrix for each choice of the other parameters. And which pairs and hosts are slow
 * (comparisons.h).
 *
 * Pairs are held against those of their kind: where the machine's facts say the same (as many NVLinks,
 * or the same way over the PCI bus), and where their rows say the same of the path. A slow host shows in
 * all of its links, and a slow link in one: hosts are held against each other by the links from them
 * and to them together, and by those from them and to them alone. Where one way alone is slow, that is
 * said.
 */
#ifndef PLUMB_REPORT_MATRIX_H
#define PLUMB_REPORT_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/report/comparisons.h"
#include "harness/report/model.h"

enum links_way { LINKS_BOTH, LINKS_FROM, LINKS_TO, LINKS_WAYS };

struct slow_host {
    size_t host;
    enum links_way way;              /* which of its links are slow */
    const struct comparison *others; /* what they carry of those between other hosts */
};

struct matrix_cell {
    const struct report_case *c; /* NULL: not in this run */
    const struct report_point *point;
    const char *relation; /* "4 NVLinks", "PIX", says the probe; "" where it is not known */
    const char *path;     /* the row's own word */
    const char *kind;     /* both */
    size_t asked;         /* number of its comparison with the others of its kind */
    const struct comparison *others; /* that, decided; NULL: there are none */
    bool slow, looks_slow;
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
    size_t measured, slow, looks_slow;
    size_t *asked[LINKS_WAYS]; /* numbers of the hosts' comparisons */
    struct slow_host *slow_hosts;
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
void matrices_ask(struct comparisons *q, struct matrices *all);
void matrices_judge(const struct comparisons *q, struct matrices *all);

/* "node0 -> node3, node1 -> node2 and 5 more": which look slow; "": none. */
const char *matrix_looks_slow_text(struct report *r, const struct matrix *m);

bool matrix_has_value(const struct matrix_cell *cell);
/* It is slow, or looks slow, or is a link of a slow host. */
bool matrix_is_marked(const struct matrix *m, size_t cell);
/* " (simulated)" where any of it is. */
const char *matrix_origin(struct report *r, const struct matrix *m);
/* The first of its kind that has a value. */
bool matrix_begins_kind(const struct matrix *m, size_t cell);

/* "node3", "cuda:2 -> cuda:3 and 1 more": hosts that are slow, or pairs; "": none. */
const char *matrix_slow_names(struct report *r, const struct matrix *m);

/* A slow pair that no slow host explains. */
bool matrix_is_listed(const struct matrix *m, size_t cell);

/* Of slow host number i: "node3: its 3 links carry 0.53 of the others'". */
const char *matrix_host_text(struct report *r, const struct matrix *m, size_t i);

bool matrix_holds(const struct matrix *m, const struct report_case *c, size_t run);

/* The pairs of the case's kind, and how many there are. */
struct like *matrix_likes(struct report *r, const struct matrix *m, const struct report_case *of,
                          size_t *n);

/* Of the pairs with the path of this case, kind by kind where they are of several: "14 pairs: 91.5
 * to 18.9, slowest: cuda:1 -> cuda:6, 1 slow for its kind". *slow: how many are. */
const char *matrix_summary(struct report *r, const struct matrix *m, const struct report_case *c,
                           size_t *slow);

/* "cuda:2 -> cuda:5 carries 0.60 (0.58 to 0.62) of the other pairs of its kind (4 NVLinks)". */
const char *matrix_slow_text(struct report *r, const struct matrix *m, size_t cell);

#endif
