/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A figure: what a point tells beside its series, a row of its own. It has no time series: one value, or some few that
 * were taken while the series were sampled (blocks of a second). Its row has no stop rule: `samples` says how many
 * values there are, the value is their median, and with enough of them it has an interval.
 */
#ifndef PLUMB_CORE_FIGURE_H
#define PLUMB_CORE_FIGURE_H

#include <stddef.h>

#define FIGURE_VALUES_MAX 64
#define FIGURE_SET_MAX    4

struct point;

struct figure {
    char metric[32], unit[16]; /* the unit: a name of units_table */
    struct {
        char column[24], value[64];
    } set[FIGURE_SET_MAX]; /* columns whose value is this figure's own */
    double values[FIGURE_VALUES_MAX];
    size_t n;
    char remark[128]; /* why its value is to be taken with care: the row is noisy; "" */
    struct figure *next;
};

/* Adds one to the point and returns it; NULL: out of memory (said in the reason; the calls below leave NULL alone).
 * Those without a value give no row. */
struct figure *point_figure(struct point *pt, const char *metric, const char *unit);
void figure_set(struct figure *f, const char *column, const char *value);
void figure_value(struct figure *f, double value); /* those beyond FIGURE_VALUES_MAX abort: a bug */

void figure_remark(struct figure *f, const char *remark);

void figures_release(struct point *pt);

#endif
