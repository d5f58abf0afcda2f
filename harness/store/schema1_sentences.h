/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of schema 1 had sentences where later ones have columns. Here, and nowhere else, such
 * sentences are read: once, when a folder of schema 1 is loaded, so that all that follows finds the
 * columns of today (docs/schema.md). Runs of schema 2 and on never come here.
 */
#ifndef PLUMB_HARNESS_SCHEMA1_SENTENCES_H
#define PLUMB_HARNESS_SCHEMA1_SENTENCES_H

#include "harness/table.h"

/* Adds to the rows of a benchmark the columns that schema 1 lacked, and takes out of `reason`,
 * `gpu_throttle` and `path` what these now say. A column that is there already is filled in where
 * it is empty. 0; -ENOMEM, and the rows are as they were. */
int schema1_derive(struct table *rows);

#endif
