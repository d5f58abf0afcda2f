/* SPDX-License-Identifier: Apache-2.0 */
/* What a run is held against: run folders, or runs of the history, which become folders for the
 * while. */
#ifndef PLUMB_CHECK_BASELINE_H
#define PLUMB_CHECK_BASELINE_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/history/history_db.h"

#define BASELINE_LAST 10 /* runs of the history, unless it is said */

struct baseline {
    char **paths, **names;        /* NULL-ended, oldest first */
    size_t n;                     /* 0: there is none yet; `advice` says what to do */
    struct history_choice choice; /* of runs of the history: what each is for */
    char *folder;                 /* where runs of the history lie meanwhile; NULL */
    char text[2048], advice[1024];
};

struct baseline_asked {
    const char *spec;    /* PATH, "history" or "history:N" */
    const char *history; /* its file */
    const char *run;     /* the run that is to be judged: it is never its own baseline */
    bool update;         /* the run will be added to the history */
    double steal_limit;  /* as in harness/compare/pairs.h */
    size_t least;        /* runs that are needed of the history, where the spec does not say */
};

bool baseline_is_history(const char *spec);
/* How many are runs that the run is held against. Others tell how runs differ, or of a slow slip.
 */
size_t baseline_levels(const struct baseline *b);

/* 0; -EINVAL (the spec, or nothing is left of it) and others as pairs_load() and history_db_open().
 * *b is to be released in any case. */
int baseline_find(struct baseline *b, const struct baseline_asked *asked, char *error, size_t len);
/* Once the runs are loaded, what lies in the temporary folder may go. */
void baseline_release(struct baseline *b);

#endif
