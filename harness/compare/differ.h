/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of pairs_machine_differences(): see pairs.h. Whatever a run.json holds, these tell or
 * are "". */
#ifndef PLUMB_COMPARE_DIFFER_H
#define PLUMB_COMPARE_DIFFER_H

#include <jansson.h>

#include "harness/compare/pairs.h"

#define ON_MEMORY  "Memory, Copies, GPU memory"
#define ON_PCIE    "PCIe, Network, Collectives"
#define ON_NETWORK "Network, Collectives"
#define ON_GPU     "GPU matrix core, GPU memory, GPU launch, PCIe, NVLink"

/* A growing list in the report's pool, and the runs that are held against each other: those of A,
 * then those of B. */
struct differ {
    struct pool *pool;
    const json_t **runs; /* their run.json */
    size_t n_runs, n_a;
    struct machine_difference *all;
    size_t n, room;
    bool aside; /* what is added now is not of the environment */
    struct environment_word
        *word; /* only that is asked for, and of the last run against the others; NULL */
};

/* A list that is there and empty says so where the environment is asked for. */
const char *differ_listed(const struct differ *d, const json_t *list, const char *text);

/* What one run says of a thing: see differ_fact(). "" where it does not tell. */
typedef const char *differ_text_fn(const struct differ *d, const json_t *run, const void *arg);

/* Adds the thing, unless all runs of both sides say the same of it. Of a side whose runs differ
 * among themselves it is told how many say what. */
void differ_fact(struct differ *d, const char *what, differ_text_fn *text, const void *arg,
                 const char *pipes);

/* A value of JSON as people write it: a list's different members each once, true as "on"; "" for
 * null. */
const char *differ_text(struct pool *pool, const json_t *value);
/* The value behind "cpu.clock.max_mhz". */
const json_t *differ_find(const json_t *object, const char *path);
/* "2 x a; b": each text once, with how often. */
const char *differ_counted(struct pool *pool, const char *const *texts, size_t n);

void differ_devices(struct differ *d); /* of the machines */

#endif
