/* SPDX-License-Identifier: Apache-2.0 */
/* The plot of one case's history: its values, its levels as lines, and a mark at the run of each step. */
#ifndef PLUMB_HISTORY_TREND_PLOT_H
#define PLUMB_HISTORY_TREND_PLOT_H

#include "harness/history/trend.h"
#include "harness/report/plot.h"

/* All lives in the history's pool. */
void trend_plot(const struct trends *all, const struct trend *t, size_t number, struct plot *plot);

#endif
