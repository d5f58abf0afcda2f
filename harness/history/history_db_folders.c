/* SPDX-License-Identifier: Apache-2.0 */
/* A history out of run folders, by a database in memory: see history_db.h. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "harness/compare/pairs.h"
#include "harness/history/history_db.h"
#include "harness/plan/plan.h"

static bool is_run(const char *path)
{
    char *file = xasprintf("%s/run.json", path);
    bool found = !access(file, F_OK);

    free(file);
    return found;
}

int history_list_runs(struct run_paths *runs, const char *path)
{
    struct dirent **names = NULL;
    int n = is_run(path) ? 0 : scandir(path, &names, NULL, alphasort);

    if (n < 0)
        return -errno;
    if (!names)
        *ARRAY_ADD(runs->all, runs->n) = xstrdup(path);
    for (int i = 0; i < n; i++) {
        char *inner = xasprintf("%s/%s", path, names[i]->d_name);

        if (names[i]->d_name[0] != '.' && is_run(inner))
            *ARRAY_ADD(runs->all, runs->n) = inner;
        else
            free(inner);
        free(names[i]);
    }
    free(names);
    return 0;
}

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
        err = history_list_runs(&runs, paths[i]);
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

struct scratch {
    pid_t keeper;
    char path[4096];
};

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* A process that removes the folder where this one ends before it has done so, even if it is killed. */
static pid_t start_keeper(const char *path)
{
    pid_t own = getpid(), keeper = fork();
    sigset_t all;

    if (keeper)
        return keeper;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    while (getppid() == own)
        sigwaitinfo(&all, NULL);
    nftw(path, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

int scratch_make(char **folder, char *error, size_t len)
{
    const char *root = getenv("TMPDIR");
    struct scratch *s = xcalloc(1, sizeof(*s));

    *folder = NULL;
    snprintf(s->path, sizeof(s->path), "%s/plumb-history-XXXXXX", root && *root ? root : "/tmp");
    if (mkdtemp(s->path)) {
        s->keeper = start_keeper(s->path);
        *folder = s->path;
        return 0;
    }
    int err = -errno;
    snprintf(error, len, "cannot make a folder '%s': %s: set TMPDIR to one that can be written",
             s->path, strerror(-err));
    free(s);
    return err;
}

void scratch_remove(char *folder)
{
    struct scratch *s = folder ? (void *)(folder - offsetof(struct scratch, path)) : NULL;

    if (!s)
        return;
    nftw(folder, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
    if (s->keeper > 0) {
        kill(s->keeper, SIGKILL);
        waitpid(s->keeper, NULL, 0);
    }
    free(s);
}
