/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured ceilings: those of this process, so that each is measured once, and how a row's limit is made
 * of them, so that all rows of a run can share the best of each.
 */
#ifndef PLUMB_CORE_CEILINGS_H
#define PLUMB_CORE_CEILINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/hw/topo.h"

#define CEILING_PLACE 160 /* characters of a place, with the NUL */

/* What a limit is made of: the best rates of one or two paths. Zeroed: nothing is told. */
struct limit_parts {
    /* What each rate is one of: the path, its CPUs, memory and size. The same text in two rows of a run:
     * the same ceiling. "": the limit has no such part, or its place cannot be told. */
    char place[2][CEILING_PLACE];
    double rate[2]; /* in the row's unit */
    double
        share; /* of the row's value: what goes by the first path, 0 to 1; the rest goes by the second */
    double
        fill; /* what the first carries besides, in the same measure, if the second is not faster */
};

/* No row can be faster than its work on either path:
 *   1 / max(share / rate[0] + min(fill / rate[0], (1 - share) / rate[1]), (1 - share) / rate[1]) */
double limit_of_parts(const struct limit_parts *parts);

/* "loads, CPUs 0-3, <detail>": a place. "" where the CPUs are too many ranges to be told. */
void ceiling_place(char place[CEILING_PLACE], const char *path, const unsigned *cpus, unsigned n,
                   const char *detail, ...) __attribute__((format(printf, 5, 6)));

/* Two measurements of one limit, before the samples and after, differ by more than this share of the
 * higher one: the machine changed meanwhile. NaN: not measured twice. */
#define CEILING_UNSTEADY 0.1
double ceiling_change(double before, double after); /* a share; NaN */

struct ceilings { /* zeroed: empty */
    struct ceiling {
        char key[CEILING_PLACE + 8]; /* what was measured: parameters as text */
        double value;
    } * all;
    size_t n;
};

/* 0 with *value, or -ENOENT. */
int ceilings_find(const struct ceilings *c, const char *key, double *value);
int ceilings_add(struct ceilings *c, const char *key, double value); /* 0 or -ENOMEM */
/* The same, or where the key is there with a lower value, this one. */
int ceilings_raise(struct ceilings *c, const char *key, double value);
void ceilings_release(struct ceilings *c);

#endif
