/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a run folder so that a kill at any instant loses at most the launch that was running.
 *
 * A launch is committed in this order: its samples and its rows are appended, then the nine bytes
 * of its state in plan.csv are overwritten in place. Until that last step its rows are a tail that
 * belongs to nobody: readers leave it out, and opening the folder to go on cuts it off. A disk that
 * is full cuts the append short: it is undone, and the launch stays to do. Data is synced to the
 * disk at least every STORE_SYNC_NS and at the end; after a loss of power a launch whose rows did
 * not reach the disk is found by their missing, and is run again.
 */
#ifndef PLUMB_HARNESS_STORE_H
#define PLUMB_HARNESS_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/plan/plan.h"

#define STORE_SYNC_NS 100000000ull

struct store;

/* What one launch leaves. Texts may be empty. */
struct launch_record {
    enum launch_state state;
    unsigned n_rows;
    const char *header;  /* of BENCH.csv, with its line end */
    const char *rows;    /* lines */
    const char *samples; /* lines for samples/BENCH.csv */
    const char *log;     /* what the launch wrote to stderr */
};

/* Where a run goes: the folder that was named, without slashes at its end, or (NULL) one of the
 * suite's name, kind ("-against") and the time in 'results', which is made. New text, or NULL with
 * error. */
char *store_path(const char *out, const char *suite, const char *kind, char *error, size_t len);

/* Makes the folder with run.json and plan.csv. 0; -EEXIST: there already; other -errno, error set.
 * The plan must outlive the store. */
int store_create(const char *path, const json_t *meta, struct plan *plan, struct store **store,
                 char *error, size_t len);

/* Opens a folder to go on: reads the plan, cuts off torn tails, sets launches whose rows are
 * missing back to todo. -EBADMSG: damaged. -EBUSY: another plumb writes there. *plan is the
 * caller's to release, after the store. */
int store_open(const char *path, struct plan *plan, struct store **store, char *error, size_t len);

/* Before any commit to a folder that was opened: takes back a launch that was committed, so that it
 * is to do. 0 or -errno with error. */
int store_redo(struct store *store, size_t launch, char *error, size_t len);

/* The same of all launches that failed or were late, but for those that gave wrong data. */
int store_retry(struct store *store, char *error, size_t len);

/* Commits one launch. On an error the launch stays to do, the files are as before, and error says
 * what to do. */
int store_commit(struct store *store, size_t launch, const struct launch_record *record,
                 char *error, size_t len);

/* Writes the plan anew, with the launches that were added to its end since. 0 or -errno with error.
 */
int store_extend(struct store *store, char *error, size_t len);

/* Replaces run.json whole. */
int store_meta(struct store *store, const json_t *meta, char *error, size_t len);

/* Syncs and closes. 0 or -errno of the last sync. NULL is fine. */
int store_close(struct store *store);

/* Time spent in this module so far. */
uint64_t store_spent_ns(const struct store *store);

#endif
