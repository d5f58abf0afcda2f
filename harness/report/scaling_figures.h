/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plots of the section on scaling: time and bus bandwidth over ranks, of up to three sizes, with every backend and transport in one plot, the ideal and
 * the fitted model beside; and a model's gradients over the size of a bucket.
 */
#ifndef PLUMB_REPORT_SCALING_FIGURES_H
#define PLUMB_REPORT_SCALING_FIGURES_H

#include "harness/report/headline.h"
#include "harness/report/series.h"

/* Adds them to *figures, at most SCALING_PLOTS_MAX; what had no room is told in its note. Everything lives in the report's pool. 0 or -ENOMEM. */
int scaling_figures(struct report *r, const struct headlines *h, struct figures *figures);

/* The latter alone; `before`: how many figures there were before the first of this section. */
int bucket_figures(struct report *r, const struct bucket_sweeps *all, size_t before,
                   struct figures *figures);

#endif
