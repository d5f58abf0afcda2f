/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs and cases plumb history is asked for: where they lie, and what to say where none is
 * left. */
#ifndef PLUMB_HISTORY_PICK_H
#define PLUMB_HISTORY_PICK_H

#include <time.h>

#include "harness/history/trend.h"

/* Where the runs lie. */
struct pick_source {
    const char *db;           /* a database; NULL: the folders */
    const char *const *paths; /* n of them */
    size_t n;
    char *found;           /* what was found in a folder that was named; NULL */
    const char *as_folder; /* "results" without any name */
};

/* n arguments: a database alone, or run folders, or folders of them; none: what is in results/. A
 * folder without a run of its own stands for the history.db or the runs/ in it. 0, -ENOENT,
 * -EINVAL, -ENOMEM with error set; to be released in any case. */
int pick_source(struct pick_source *s, const char *const *args, size_t n, char *error, size_t len);
void pick_source_release(struct pick_source *s);

#define PICK_SINCE_BYTES 32

/* "2025", "2025-01", "2025-01-31", "2025-01-31T02:00" and on, or "30d", days before `now`, as
 * started_utc is written. -EINVAL: no such date. */
int pick_since(const char *text, time_t now, char *since, size_t len);

/* Which filter leaves no case of a history that was read without them, and what there is instead.
 * `said`: --since as the user wrote it. */
void pick_explain(const struct history *whole, const struct trend_filter *filter,
                  const char *pattern, const char *said, char *error, size_t len);

#endif
