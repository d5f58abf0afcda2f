/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of choices.h: shared by harness/report/choices*.c alone. */
#ifndef PLUMB_REPORT_CHOICES_PARTS_H
#define PLUMB_REPORT_CHOICES_PARTS_H

#include "harness/report/choices.h"

#define CHOICES_MAX 8

/* A case in the making. */
struct group {
    const char *key;
    struct report_case c;
    size_t place;  /* of the report's case that its first row is of */
    size_t number; /* from 1; 0: it is that case still */
    size_t n_sources;
    const struct report_case *source; /* the last of the report's cases that it is made of */
    bool in_a, in_b;                  /* sides that have rows of it */
    struct group *joined;             /* another, in which its rows are; NULL: none */
    bool differs;                     /* launches of one case of a suite chose differently */
};

struct ref {
    size_t run, row;
    const struct report_case *source;
    struct group *group;
};

struct making {
    struct report *r;
    const struct suite_index *plans; /* one a run */
    size_t n_a;                      /* runs of the one side, in a comparison */
    const bool *apart;               /* of each of them; NULL: none is of neither side */
    struct report_bench *b;
    size_t choices[CHOICES_MAX], n_choices; /* parameters */
    struct group **groups;                  /* in the order of the suite */
    size_t n, n_refs;
    struct ref *refs;
    void *by_key;
};

/* Puts the rows of a benchmark's cases into groups. n_choices is 0 where it chooses nothing, and then there are none. 0 or
 * -ENOMEM; choices_end() in any case. */
int choices_begin(struct making *m, struct report *r, const struct suite_index *plans, size_t n_a,
                  const bool *apart, size_t bench);
void choices_end(struct making *m);

/* Rows by their groups, in the order of the suite, and by time. For qsort(). */
int choices_compare(const void *x, const void *y);

/* The groups that rows are in become the benchmark's cases. 0 or -ENOMEM. */
int choices_fill(struct making *m);

#endif
