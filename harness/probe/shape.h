/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's files say of cores, packages, caches and NUMA nodes, read without hwloc: to hold
 * hwloc's counts against, and for what it changes (it gives a node without CPUs its neighbour's).
 */
#ifndef PLUMB_PROBE_SHAPE_H
#define PLUMB_PROBE_SHAPE_H

#include "harness/probe/facts.h"

enum shape { SHAPE_CORES, SHAPE_PACKAGES, SHAPE_CACHES };

/*
 * How many different sets of CPUs the files of all CPUs name for cores, packages, or data and unified
 * caches (each level by itself). lacking, of TREE_LINE bytes: the first file that should be there and
 * could not be read, with why; "" where there is none.
 */
size_t shape_masks(const struct tree *tree, enum shape shape, char *lacking);

/* "numa". */
void probe_numa(struct probe *p);

#endif
