/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a benchmark answers to --describe: one JSON object, from which the harness knows all that it knows of it.
 *
 *   bench, help, needs, origin   as in struct bench
 *   backends   a list of {name, state (present, absent, down), version, what, why, address, origin (simulated)}:
 *              core/backend.h; what is not known is not there
 *   options    a list of {name, owner (own, all), letter, type, list, column, kept, default (a list), min, max, choices,
 *              help, when, scope}; what an option has not is not there
 *   rows       {stage, columns, metrics, headlines, contrasts, plots, pipes, limits}: core/bench_rows.h. Its columns are
 *              all columns of parameters, in the order of the rows
 */
#ifndef PLUMB_CORE_DESCRIBE_H
#define PLUMB_CORE_DESCRIBE_H

#include <stdio.h>

#include "core/bench.h"

/* backends: also those, which may start devices. */
void describe_bench(const struct bench *b, const struct opts *o, bool backends, FILE *out);

#endif
