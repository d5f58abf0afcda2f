/* SPDX-License-Identifier: Apache-2.0 */
/* Series out of single values: what reading a database and reading folders have in common. */
#ifndef PLUMB_HISTORY_DB_BUILD_H
#define PLUMB_HISTORY_DB_BUILD_H

#include <stddef.h>

#include "harness/compare/pairs.h"
#include "harness/history/history_db.h"

/* A case in one run. Its texts live in the history's pool. */
struct history_entry {
    const char *key, *label, *pipe, *host, *suite, *unit;
    bool higher_is_better;
    size_t place; /* in the order of the suite */
    size_t run;   /* index in h->runs */
    double *launches;
    const double *steals; /* as in history_series; NULL: not known of any */
    size_t n_launches;
    const char *outcomes; /* NULL: not kept */
};

struct history_entries {
    struct history_entry *all;
    size_t n, room;
};

int history_entries_add(struct history_entries *e, const struct history_entry *entry);
/* Makes h->series out of the entries, whose order changes. h->runs is there, in time order. */
int history_build(struct history *h, struct history_entries *e);

/* What a run is, out of its run.json; the texts are the run folder's, "" or "unknown" where it does
 * not say. */
struct history_run history_run_of(const struct run_folder *run);

/* run.json without what is of each run alone (its name, times, the suite's text), as JSON that is
 * the same where that is: what pairs_machine_differences() tells differences by. NULL: there is
 * none, or no memory. */
const char *history_environment(struct pool *pool, const json_t *meta);

/* What was not asked for but found in a case's rows, such as the library's version and kernel, or
 * what the benchmark chose where the launch left it the choice, as JSON: {"kernel": ["2.6.3
 * avx512"], "isa": ["avx2", "avx512"]}, each of its launches' values once, with
 * HISTORY_CHOICES_KEPT. NULL: no memory. */
const char *history_outcomes(struct pool *pool, const struct pairs *p, const struct pair *pair);
/* Do these, "" for none, say the same of the case? Outcomes without HISTORY_CHOICES_KEPT do where
 * all but the choices is the same: of these they say nothing. */
bool history_same_outcomes(struct pool *pool, const struct pairs *p, const struct pair *pair,
                           const char *kept);

/* A case by its key alone, for people: "null noise=none number=1: time". The same in every run, as
 * labels are not, which leave out what does not vary in a run. */
const char *history_case_name(struct pool *pool, const char *key);

/* "run lost, all cases (jo, 2026-01-05T02:00:00Z): driver 580 costs 3 %"; a few cases are named. */
const char *history_acceptance_text(struct pool *pool, const struct history_acceptance *a);
/* What was accepted, for plumb history: lines, nothing where there is none, and an array. */
void history_print_accepted(FILE *out, struct history *h);
json_t *history_accepted_json(struct history *h);

/* The cases of one run alone, each READY one with its launches on both sides. As pairs_load(). */
int history_cases(struct pairs *p, const char *path, char *error, size_t len);

/* ---- A folder for the while: runs of the history lie there while they are read as folders ---- */

/* In $TMPDIR, else /tmp. *folder is the caller's, for scratch_remove(). 0; -ENOMEM or other -errno
 * with error set: *folder is NULL. */
int scratch_make(char **folder, char *error, size_t len);
/* With all that lies in it; NULL is let be. */
void scratch_remove(char *folder);

#endif
