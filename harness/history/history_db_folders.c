/* SPDX-License-Identifier: Apache-2.0 */
/* A history out of run folders, by a database in memory: see history_db.h. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "harness/compare/pairs.h"
#include "harness/history/history_db.h"
#include "harness/plan/plan.h"

int history_read_folders(const char *const *paths, size_t n, const char *const *only,
                         struct history *h, char *error, size_t len)
{
    struct run_paths runs = {0};
    struct history_db *db = NULL;
    char **left_out = NULL;
    size_t n_left_out = 0;
    int err = 0;

    *h = (struct history){0};
    for (size_t i = 0; !err && i < n; i++) {
        err = run_folders_in(paths[i], &runs);
        if (err)
            snprintf(error, len, "cannot read '%s': %s", paths[i], strerror(-err));
    }
    if (!err && !runs.n) {
        snprintf(error, len, "no run folder in '%s': plumb run makes them", n ? paths[0] : "");
        err = -ENOENT;
    }
    if (!err)
        db = history_db_open_memory(&err, error, len);
    /* A run that cannot be read must not take the others with it, and one in which nothing was
     * measured has nothing to say. */
    for (size_t i = 0; !err && i < runs.n; i++) {
        struct history_judged judged = {.good = true};
        enum history_added how;
        char why[512] = "";
        int why_not = history_db_add(db, runs.all[i], &judged, &how, why, sizeof(why));

        if (why_not && why_not != -EINVAL)
            *ARRAY_ADD(left_out, n_left_out) =
                strstr(why, runs.all[i]) ? xstrdup(why) : xasprintf("'%s': %s", runs.all[i], why);
    }
    if (!err && n_left_out == runs.n) {
        if (runs.n == 1)
            snprintf(error, len, "there is no other run: nothing is shown");
        else
            snprintf(error, len, "none of the %zu runs there can be read: nothing is shown",
                     runs.n);
        err = -EBADMSG;
    }
    if (!err)
        err = history_db_read(db, "", "", only, h, error, len);
    h->judged = false;
    h->left_out = pool_alloc(&h->pool, n_left_out, sizeof(*h->left_out));
    for (size_t i = 0; i < n_left_out; i++) {
        h->left_out[h->n_left_out++] = pool_text(&h->pool, "%s", left_out[i]);
        free(left_out[i]);
    }
    free(left_out);
    history_db_close(db);
    run_paths_release(&runs);
    return err;
}

void history_release(struct history *h)
{
    pool_release(&h->pool);
    *h = (struct history){0};
}

void history_choice_release(struct history_choice *choice)
{
    pool_release(&choice->pool);
    *choice = (struct history_choice){0};
}

/* ---- A folder for the while ---- */

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

int scratch_make(char **folder, char *error, size_t len)
{
    const char *root = getenv("TMPDIR");

    *folder = xasprintf("%s/plumb-history-XXXXXX", root && *root ? root : "/tmp");
    if (mkdtemp(*folder))
        return 0;
    int err = -errno;

    snprintf(error, len, "cannot make a folder '%s': %s: set TMPDIR to one that can be written",
             *folder, strerror(-err));
    free(*folder);
    *folder = NULL;
    return err;
}

void scratch_remove(char *folder)
{
    if (folder)
        nftw(folder, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
    free(folder);
}
