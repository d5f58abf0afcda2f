/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: see figure.h. */
#include "core/figure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/bench.h"
#include "core/units.h"

static void bug(const struct figure *f, const char *what)
{
    fprintf(stderr, "figure '%s': %s\n", f->metric, what);
    abort();
}

struct figure *point_figure(struct point *pt, const char *metric, const char *unit)
{
    struct figure **at = &pt->figures, *f = calloc(1, sizeof(*f));

    if (!f) {
        point_reason(pt, -ENOMEM, "out of memory for the row of '%s'", metric);
        return NULL;
    }
    snprintf(f->metric, sizeof(f->metric), "%s", metric);
    snprintf(f->unit, sizeof(f->unit), "%s", unit);
    if (!units_find(f->unit))
        bug(f, "its unit is not in the table");
    while (*at)
        at = &(*at)->next;
    *at = f;
    return f;
}

void figure_set(struct figure *f, const char *column, const char *value)
{
    size_t i = 0;

    if (!f)
        return;
    while (i < FIGURE_SET_MAX && f->set[i].column[0])
        i++;
    if (i == FIGURE_SET_MAX)
        bug(f, "too many columns are set");
    snprintf(f->set[i].column, sizeof(f->set[i].column), "%s", column);
    snprintf(f->set[i].value, sizeof(f->set[i].value), "%s", value);
}

void figure_value(struct figure *f, double value)
{
    if (!f)
        return;
    if (f->n == FIGURE_VALUES_MAX)
        bug(f, "too many values");
    f->values[f->n++] = value;
}

void figure_remark(struct figure *f, const char *remark)
{
    if (f)
        snprintf(f->remark, sizeof(f->remark), "%s", remark);
}

void figures_release(struct point *pt)
{
    while (pt->figures) {
        struct figure *next = pt->figures->next;
        free(pt->figures);
        pt->figures = next;
    }
}
