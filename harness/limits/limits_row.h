/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of a row: rows for which this machine has a physical limit (memory channels, a GPU's
 * rate, a link's) get it, in place of a ceiling that the benchmark measured. Which rows, which
 * limit says the benchmark (struct bench_limit).
 *
 * Of rows on GPUs the column `address` (two addresses, joined by '+', of what goes between GPUs)
 * says which ones of the machine they were; what a column does not say, or the limits do not know,
 * gives no limit. Between the host and a GPU it is the chip-to-chip link, where there is one, else
 * the slowest of the PCIe link and the way to the root.
 *
 * A simulated row never gets a datasheet's figure.
 */
#ifndef PLUMB_HARNESS_LIMITS_ROW_H
#define PLUMB_HARNESS_LIMITS_ROW_H

#include <jansson.h>

#include "core/bench_rows.h"
#include "harness/table.h"

struct joined_limit {
    double value;
    char source[320];
    const char *kind, *link; /* for limit_kind and limit_link: see core/row.h */
    double percent;          /* of the row's value; NaN where it has none */
    double raised_from; /* the limit that the value exceeded as the rule allows; NaN: it did not */
};

/* `limits`: the list of run.json (see limits_machine); `cores` of the whole machine, 0 where they
 * are not known; `rules` the benchmark's, ended as bench_rows.h says. 1 and *out filled in when a
 * rule fits and the limit is known, in the row's unit, else 0. */
int limits_row(const json_t *limits, double cores, const struct bench_limit *rules,
               const struct table *rows, size_t row, struct joined_limit *out);

#endif
