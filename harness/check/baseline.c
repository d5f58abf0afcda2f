/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a baseline: see check.h. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/units.h"
#include "harness/check/check.h"
#include "harness/compare/pairs.h"
#include "harness/history/history_db.h"
#include "harness/report/show.h"
#include "harness/store/run_folder.h"
#include "harness/text.h"

#define NAMED_MAX 4 /* run folders that are left out; */
#define TOLD_MAX  3 /* and accepted changes in the line: the JSON has all */

struct baseline_search {
    struct baseline *b;
    const struct baseline_asked *asked;
    struct run_folder run; /* that is judged */
    char *error;
    size_t len;
};

__attribute__((format(printf, 3, 4))) static int fail(struct baseline_search *f, int err,
                                                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(f->error, f->len, format, args);
    va_end(args);
    return err;
}

/* Room for what was chosen. */
static void init_baseline(struct baseline *b)
{
    b->paths = pool_alloc(&b->pool, b->choice.n, sizeof(*b->paths));
    b->names = pool_alloc(&b->pool, b->choice.n, sizeof(*b->names));
}

/* ---- run folders: a history in memory ---- */

static bool is_same(const char *x, const char *y)
{
    struct stat a, b;

    return !stat(x, &a) && !stat(y, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Why that run is no baseline: "n3 (interrupted)", "n4 (of host two)"; NULL: it is one. Only those
 * that were measured to their end are: what a baseline lacks would not be missed. What run.json does
 * not say is the same as anything. */
static const char *why_not(const struct baseline_search *f, const struct run_folder *folder)
{
    const struct history_run own = history_run_of(&f->run), r = history_run_of(folder);
    const char *state = json_string_value(json_object_get(folder->meta, "state"));
    bool whole = !state || !strcmp(state, "complete"), here = !strcmp(r.host, own.host);

    if (whole && here && !strcmp(r.suite, own.suite))
        return NULL;
    return pool_text(&f->b->pool, "%.40s (%s%.40s)", r.name,
                     !whole  ? ""
                     : !here ? "of host "
                             : "of suite ",
                     !whole  ? state
                     : !here ? r.host
                             : r.suite);
}

/* list: of the runs that are left out; "": none is. */
static int choose_folders(struct baseline_search *f, struct history_db *db,
                          const struct run_paths *paths, const char *list)
{
    const struct history_run run = history_run_of(&f->run);
    struct baseline *b = f->b;
    int err = history_db_choose(db, &run, &(struct history_sieve){.later = true}, &b->choice,
                                f->error, f->len);

    if (err)
        return err;
    init_baseline(b);
    for (; b->n < b->choice.n; b->n++) {
        const char *path = pool_text(&b->pool, "%s", paths->all[b->choice.runs[b->n].id - 1]);
        const char *slash = strrchr(path, '/');

        b->paths[b->n] = path;
        b->names[b->n] = slash && slash[1] ? slash + 1 : path;
    }
    if (!b->n && !*list)
        return fail(f, -EINVAL,
                    "'%s' holds no run but '%s' itself: name another run, or a folder of runs",
                    f->asked->spec, f->asked->run);
    if (!b->n)
        return fail(f, -EINVAL,
                    "'%.400s' holds no complete run of host '%.60s' and suite '%.60s': %s; plumb "
                    "run --resume goes on with a run; plumb compare holds runs of two machines "
                    "against each other",
                    f->asked->spec, run.host, run.suite, list);
    b->text = b->n == 1 ? pool_text(&b->pool, "one run, '%s'", b->paths[0])
                        : pool_text(&b->pool, "%zu runs in '%s'", b->n, f->asked->spec);
    b->against = pool_text(&b->pool, b->n == 1 ? "'%s'" : "the runs in '%s'",
                           b->n == 1 ? b->paths[0] : f->asked->spec);
    if (*list)
        b->text = pool_text(&b->pool, "%s; left out: %s", b->text, list);
    return 0;
}

static int find_folders(struct baseline_search *f)
{
    struct run_paths paths = {0};
    int err = run_paths_add(&paths, f->asked->spec, f->error, f->len);
    struct history_db *db = err ? NULL : history_db_open_memory(&err, f->error, f->len);
    const char **list = pool_alloc(&f->b->pool, paths.n, sizeof(*list));
    size_t n = 0;

    /* Run number i of the paths has the id i + 1. */
    for (size_t i = 0; !err && i < paths.n; i++) {
        struct run_folder folder = {0};

        if (is_same(paths.all[i], f->asked->run))
            continue;
        err = run_folder_load(paths.all[i], &folder, f->error, f->len);
        list[n] = err ? NULL : why_not(f, &folder);
        if (list[n])
            n++;
        else if (!err)
            err = history_db_add_folder(db, &folder, (int64_t)i + 1, f->error, f->len);
        run_folder_release(&folder);
    }
    if (!err)
        err = choose_folders(f, db, &paths, pool_list(&f->b->pool, list, n, NAMED_MAX, ", "));
    history_db_close(db);
    run_paths_release(&paths);
    return err;
}

/* ---- the history ---- */

/* Why the history has no baseline for this run, and what to do. */
static void advise(struct baseline_search *f, struct history_db *db, const struct history_run *run,
                   size_t n_taken)
{
    struct baseline *b = f->b;
    struct pool *pool = &b->pool;
    const char *elsewhere = "";
    struct history_run *runs = NULL;
    size_t n = 0, n_earlier = 0, n_later = 0, n_elsewhere = 0;

    if (db && history_db_runs(db, "", run->suite, pool, &runs, &n, f->error, f->len))
        n = 0;
    for (size_t i = 0; i < n; i++) {
        bool here = !strcmp(runs[i].host, run->host);
        int order = strcmp(runs[i].started_utc, run->started_utc);

        elsewhere = here ? elsewhere : runs[i].host;
        n_elsewhere += !here;
        n_earlier += here && order < 0;
        n_later += here && order >= 0 && strcmp(runs[i].name, run->name) != 0;
    }
    b->text = pool_text(pool,
                        "nothing: the history '%s' has no good run of suite '%s' on host '%s' from "
                        "before this one",
                        f->asked->history, run->suite, run->host);
    if (n_taken)
        b->advice = pool_text(pool, "%zu left out, as " STEAL_WHY "; --steal 100%% leaves none out",
                              n_taken);
    else if (n_earlier)
        b->advice =
            pool_text(pool,
                      "its %zu before this one regressed, or are incomplete: plumb check RUN "
                      "--accept makes one the first of a new reference",
                      n_earlier);
    else if (n_later)
        b->advice =
            pool_text(pool,
                      "its %zu began later: judge runs in the order of their start, or hold "
                      "this one against a run folder by --baseline RUN",
                      n_later);
    else
        b->advice = f->asked->update ? "the next run will have a baseline"
                                     : "begin with this run by --update-baseline";
    /* Another name of this machine every night would never have a baseline: that must not go
     * unseen. */
    if (n_elsewhere)
        b->advice = pool_text(pool,
                              "%s; it has %zu of other hosts, such as '%s', which are other "
                              "machines: is this one called otherwise every time?",
                              b->advice, n_elsewhere, elsewhere);
}

static int take_runs(struct baseline_search *f, struct history_db *db)
{
    const struct history_run run = history_run_of(&f->run);
    struct baseline *b = f->b;
    struct history_choice *c = &b->choice;
    const struct history_sieve sieve = {.most = b->runs_most, .steal_limit = f->asked->steal_limit};
    const char *last = "";
    int err = history_db_choose(db, &run, &sieve, c, f->error, f->len);

    if (!err && !c->n_level) {
        advise(f, db, &run, c->n_taken);
        return 0;
    }
    if (!err)
        err = scratch_make(&b->folder, f->error, f->len);
    init_baseline(b);
    for (; !err && b->n < c->n; b->n++) {
        const char *folder = pool_text(&b->pool, "%s/%zu", b->folder, b->n);

        b->paths[b->n] = folder;
        b->names[b->n] = pool_text(&b->pool, "%s", c->runs[b->n].name);
        if (c->roles[0].runs[b->n] == PAIRS_LEVEL)
            last = b->names[b->n];
        err = mkdir(folder, 0700)
                  ? fail(f, -errno, "cannot make a folder '%s': %s", folder, strerror(errno))
                  : history_db_restore(db, c->runs[b->n].id, folder, f->error, f->len);
    }
    if (err)
        return err;
    b->text =
        pool_text(&b->pool, "%s of the history '%s', %s%s", show_count(&b->pool, c->n_level, "run"),
                  f->asked->history, c->n_level == 1 ? "" : "the last is ", last);
    b->against = c->n_level == 1 ? "the last good night"
                                 : pool_text(&b->pool, "the last %zu good nights", c->n_level);
    if (c->n_anchor)
        b->text = pool_text(&b->pool, "%s; and the first %zu", b->text, c->n_anchor);
    /* The newest are what the level stands on. */
    for (size_t i = c->n_accepted > TOLD_MAX ? c->n_accepted - TOLD_MAX : 0; i < c->n_accepted; i++)
        b->text = pool_text(&b->pool, "%s; accepted: %s", b->text,
                            history_acceptance_text(&b->pool, &c->accepted[i]));
    if (c->n_taken)
        b->text = pool_text(&b->pool, "%s; %zu more left out, as " STEAL_WHY " in all repetitions",
                            b->text, c->n_taken);
    return 0;
}

static int find_history(struct baseline_search *f)
{
    const struct history_run r = history_run_of(&f->run);
    const char *colon = strchr(f->asked->spec, ':');
    uint64_t count = BASELINE_LAST;
    int err = 0;

    if (colon && (units_parse_u64(colon + 1, &count) || !count || count > HISTORY_WHOLE_RUNS))
        return fail(f, -EINVAL,
                    "--baseline '%s': how many runs of the history? 1 to %d, such as history:%d",
                    f->asked->spec, HISTORY_WHOLE_RUNS, BASELINE_LAST);
    f->b->runs_most = count;
    struct history_db *db = history_db_open(f->asked->history, false, &err, f->error, f->len);

    if (db) {
        err = take_runs(f, db);
    } else if (err == -ENOENT && f->asked->update) {
        advise(f, NULL, &r, 0);
        err = 0;
    } else if (err == -ENOENT) {
        fail(f, err,
             "there is no history '%s' yet: add --update-baseline, which begins one with this run; "
             "or hold it against a run folder by --baseline RUN",
             f->asked->history);
    }
    history_db_close(db);
    return err;
}

bool baseline_is_history(const char *spec)
{
    return !strcmp(spec, "history") || !strncmp(spec, "history:", 8);
}

int baseline_find(struct baseline *b, const struct baseline_asked *asked, char *error, size_t len)
{
    struct baseline_search f = {.b = b, .asked = asked, .error = error, .len = len};

    *b = (struct baseline){.text = "", .advice = "", .against = ""};
    struct run_paths run = {0}; /* which tells another schema from damage */
    int err = run_paths_add(&run, asked->run, error, len);

    run_paths_release(&run);
    if (!err)
        err = run_folder_load(asked->run, &f.run, error, len);
    if (!err)
        err = baseline_is_history(asked->spec) ? find_history(&f) : find_folders(&f);
    run_folder_release(&f.run);
    return err;
}

void baseline_release(struct baseline *b)
{
    scratch_remove(b->folder);
    history_choice_release(&b->choice);
    pool_release(&b->pool);
    *b = (struct baseline){0};
}
