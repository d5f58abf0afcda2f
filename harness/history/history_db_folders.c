/* SPDX-License-Identifier: Apache-2.0 */
/* A history out of run folders, without a database: see history_db.h. */
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

#include "harness/compare/pairs.h"
#include "harness/history/history_db.h"
#include "harness/plan/plan.h"
#include "harness/text.h"

struct folders {
    char **all; /* NULL-ended */
    size_t n;
};

struct reading {
    struct history *h;
    const char *const *only;
    struct history_entries entries;
    char *error;
    size_t len;
};

static int folders_add(struct folders *f, char *path)
{
    char **more = path ? reallocarray(f->all, f->n + 2, sizeof(*more)) : NULL;

    if (!more) {
        free(path);
        return -ENOMEM;
    }
    f->all = more;
    f->all[f->n++] = path;
    f->all[f->n] = NULL;
    return 0;
}

static bool is_run(const char *path)
{
    char *file;
    bool found = asprintf(&file, "%s/run.json", path) >= 0;

    if (!found)
        return false;
    found = !access(file, F_OK);
    free(file);
    return found;
}

/* A run, or the runs in a folder. */
static int list(struct folders *f, const char *path)
{
    struct dirent **names = NULL;
    int err = 0, n = is_run(path) ? 0 : scandir(path, &names, NULL, alphasort);

    if (n < 0)
        return -errno;
    if (!names)
        return folders_add(f, strdup(path));
    for (int i = 0; i < n; i++) {
        char *inner = NULL;

        if (!err && names[i]->d_name[0] != '.' &&
            asprintf(&inner, "%s/%s", path, names[i]->d_name) >= 0) {
            if (is_run(inner))
                err = folders_add(f, inner);
            else
                free(inner);
        }
        free(names[i]);
    }
    free(names);
    return err;
}

static const char *keep(struct reading *r, const char *text)
{
    return pool_text(&r->h->pool, "%s", text);
}

static int take_case(struct reading *r, const struct pairs *p, size_t place, size_t run)
{
    const struct pair *pair = &p->all[place];
    const struct decide_run *from = &pair->decide.b.runs[0];
    const struct history_run *of = &r->h->runs[run];
    struct history_entry entry = {
        .key = keep(r, pair->key),
        .label = keep(r, pair->label),
        .pipe = keep(r, pair->pipe),
        .unit = keep(r, pair->c->unit),
        .host = of->host,
        .suite = of->suite,
        .higher_is_better = pair->decide.higher_is_better,
        .place = place,
        .run = run,
        .launches = pool_alloc(&r->h->pool, from->n, sizeof(double)),
        .steals = steal_of_launches(&r->h->pool, pair, p->n_a, from->n),
        .n_launches = from->n,
        .outcomes = history_outcomes(&r->h->pool, p, pair),
    };

    if (!entry.launches)
        return -ENOMEM;
    memcpy(entry.launches, from->values, from->n * sizeof(double));
    return history_entries_add(&r->entries, &entry);
}

/* Most nights are of one and the same machine and program, which is kept once. */
static const char *environment_of(struct reading *r, const json_t *meta)
{
    struct pool mine = {0};
    const char *text = history_environment(&mine, meta), *kept = NULL;

    for (size_t i = r->h->n_runs; text && !kept && i-- > 0;)
        if (r->h->runs[i].environment && !strcmp(r->h->runs[i].environment, text))
            kept = r->h->runs[i].environment;
    if (text && !kept)
        kept = keep(r, text);
    pool_release(&mine);
    return kept;
}

/* Copies the texts of a run into the history. */
static void keep_run(struct reading *r, const struct history_run *from, const json_t *meta)
{
    const char *environment = environment_of(r, meta);
    struct history_run *to = &r->h->runs[r->h->n_runs++];

    *to = (struct history_run){
        .id = (int64_t)r->h->n_runs,
        .name = keep(r, from->name),
        .host = keep(r, from->host),
        .suite = keep(r, from->suite),
        .started_utc = keep(r, from->started_utc),
        .version = keep(r, from->version),
        .commit = keep(r, from->commit),
        .standing = from->standing,
        .environment = environment,
    };
}

static bool is_there(const struct history *h, const struct history_run *run)
{
    for (size_t i = 0; i < h->n_runs; i++)
        if (!strcmp(h->runs[i].name, run->name) && !strcmp(h->runs[i].host, run->host) &&
            !strcmp(h->runs[i].started_utc, run->started_utc))
            return true;
    return false;
}

/* One that cannot be read must not take the others with it. */
static int leave_out(struct reading *r, const char *path, const char *why)
{
    struct history *h = r->h;
    bool named = strstr(why, path) != NULL;

    h->left_out[h->n_left_out++] = pool_text(&h->pool, "%s%s%s%s", named ? "" : "'",
                                             named ? "" : path, named ? "" : "': ", why);
    return 0;
}

static int take_run(struct reading *r, const char *path)
{
    struct pairs p = {0};
    char why[512] = "";
    int err = history_cases(&p, path, why, sizeof(why));
    struct history_run run = {0};

    if (!err)
        run = history_run_of(&p.report.runs[0]);
    if (!err && !is_there(r->h, &run)) {
        keep_run(r, &run, p.report.runs[0].meta);
        for (size_t i = 0; !err && i < p.n; i++)
            if (p.all[i].state == PAIR_READY &&
                only_keeps(r->only,
                           &(struct only_case){.key = p.all[i].key, .label = p.all[i].label}))
                err = take_case(r, &p, i, r->h->n_runs - 1);
    }
    pairs_release(&p);
    /* A run in which nothing was measured has nothing to say here. */
    if (!err || err == -EINVAL || err == -ENOMEM)
        return err == -ENOMEM ? err : 0;
    return leave_out(r, path, why);
}

static int compare_runs(const void *a, const void *b)
{
    const struct history_run *x = a, *y = b;
    int d = strcmp(x->started_utc, y->started_utc);

    return d ? d : (x->id > y->id) - (x->id < y->id);
}

/* Into time order; entries name their run by its index. */
static int sort_runs(struct reading *r)
{
    struct history *h = r->h;
    size_t *place = calloc(h->n_runs + 1, sizeof(*place));

    if (!place)
        return -ENOMEM;
    if (h->n_runs)
        qsort(h->runs, h->n_runs, sizeof(*h->runs), compare_runs);
    for (size_t i = 0; i < h->n_runs; i++)
        place[h->runs[i].id - 1] = i;
    for (size_t i = 0; i < r->entries.n; i++)
        r->entries.all[i].run = place[r->entries.all[i].run];
    free(place);
    return 0;
}

static int list_all(struct folders *f, const char *const *paths, size_t n, char *error, size_t len)
{
    int err = 0;

    for (size_t i = 0; !err && i < n; i++) {
        err = list(f, paths[i]);
        if (err)
            snprintf(error, len, "cannot read '%s': %s", paths[i], strerror(-err));
    }
    if (!err && !f->n) {
        snprintf(error, len, "no run folder in '%s': plumb run makes them", n ? paths[0] : "");
        err = -ENOENT;
    }
    return err;
}

static int none_left(struct reading *r, size_t n)
{
    if (n == 1)
        snprintf(r->error, r->len, "there is no other run: nothing is shown");
    else
        snprintf(r->error, r->len, "none of the %zu runs there can be read: nothing is shown", n);
    return -EBADMSG;
}

int history_read_folders(const char *const *paths, size_t n, const char *const *only,
                         struct history *h, char *error, size_t len)
{
    struct reading r = {.h = h, .only = only, .error = error, .len = len};
    struct folders f = {0};

    *h = (struct history){0};
    int err = list_all(&f, paths, n, error, len);
    if (!err) {
        h->runs = pool_alloc(&h->pool, f.n, sizeof(*h->runs));
        h->left_out = pool_alloc(&h->pool, f.n, sizeof(*h->left_out));
        err = h->runs && h->left_out ? 0 : -ENOMEM;
    }
    for (size_t i = 0; !err && i < f.n; i++)
        err = take_run(&r, f.all[i]);
    if (!err && h->n_left_out == f.n)
        err = none_left(&r, f.n);
    if (!err)
        err = sort_runs(&r);
    if (!err)
        err = history_build(h, &r.entries);
    if (err == -ENOMEM)
        snprintf(error, len, "out of memory");
    free(r.entries.all);
    texts_free(f.all);
    return err;
}

void history_release(struct history *h)
{
    pool_release(&h->pool);
    *h = (struct history){0};
}

void history_choice_release(struct history_choice *choice)
{
    history_runs_release(choice->runs, choice->n);
    pool_release(&choice->pool);
    *choice = (struct history_choice){0};
}

void history_runs_release(struct history_run *runs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *texts[] = {runs[i].name,        runs[i].host,    runs[i].suite,
                               runs[i].started_utc, runs[i].version, runs[i].commit,
                               runs[i].environment, runs[i].state};

        for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
            free((char *)texts[k]);
    }
    free(runs);
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
    struct scratch *s = calloc(1, sizeof(*s));

    *folder = NULL;
    if (!s) {
        snprintf(error, len, "out of memory");
        return -ENOMEM;
    }
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
