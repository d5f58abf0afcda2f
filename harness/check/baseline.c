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
#include "harness/store/run_folder.h"
#include "harness/text.h"

#define BASELINE_ANCHORS 10 /* the first since the start: what slipped slowly shows against these */

#define BASELINE_SPREAD 20 /* others, which tell how runs differ */

struct sift_list {
    size_t n;
    char names[320]; /* "n3 (interrupted), n4 (stopped)"; the first few */
};

struct sift {
    char host[128], suite[128]; /* of the run that is judged; "": not known */
    struct sift_list unfinished, hosts, suites;
};

/* Which run folders may be a baseline of a run: those of runs that came to their end. Those of
 * another host or suite are told by name. The history does both by itself. */

#define NAMED_MAX 4

/* What run.json does not say is the same as anything. */
static void keep(char *to, size_t len, const char *text)
{
    snprintf(to, len, "%s", strcmp(text, "unknown") != 0 ? text : "");
}

static void sift_init(struct sift *s, const char *run)
{
    struct run_folder folder = {0};
    char error[256];

    *s = (struct sift){0};
    if (!run_folder_load(run, &folder, error, sizeof(error))) {
        struct history_run r = history_run_of(&folder);

        keep(s->host, sizeof(s->host), r.host);
        keep(s->suite, sizeof(s->suite), r.suite);
    }
    run_folder_release(&folder);
}

static void add(struct sift_list *list, const char *name, const char *what)
{
    size_t used = strlen(list->names), len = sizeof(list->names) - used;

    if (list->n++ < NAMED_MAX)
        snprintf(list->names + used, len, "%s%.40s (%.30s)", used ? ", " : "", name, what);
}

static bool is_other(const char *own, const char *other)
{
    return *own && strcmp(other, "unknown") != 0 && strcmp(own, other) != 0;
}

/* Is this run folder a baseline? One that cannot be read is: who loads it says why it cannot. */
static bool sift_takes(struct sift *s, const char *path)
{
    struct run_folder folder = {0};
    char error[256];
    bool takes = true;

    if (!run_folder_load(path, &folder, error, sizeof(error))) {
        struct history_run r = history_run_of(&folder);
        const char *state = json_string_value(json_object_get(folder.meta, "state"));

        takes = !state || !strcmp(state, "complete");
        if (!takes)
            add(&s->unfinished, r.name, state);
        else if (is_other(s->host, r.host))
            add(&s->hosts, r.name, r.host);
        else if (is_other(s->suite, r.suite))
            add(&s->suites, r.name, r.suite);
    }
    run_folder_release(&folder);
    return takes;
}

static void tell(const struct sift_list *list, const char *what, char *text, size_t len)
{
    size_t used = strlen(text);

    if (!list->n)
        return;
    used += (size_t)snprintf(text + used, len - used, "; %zu %s: %s", list->n, what, list->names);
    if (list->n > NAMED_MAX && used < len)
        snprintf(text + used, len - used, " and %zu more", list->n - NAMED_MAX);
}

/* Adds what was found to a sentence: "; left out, as ...". */
static void sift_tell(const struct sift *s, char *text, size_t len)
{
    tell(&s->unfinished, "left out, as not measured to the end", text, len);
    tell(&s->hosts, "of another host, whose levels may be others", text, len);
    tell(&s->suites, "of another suite", text, len);
}

#define TOLD_MAX 3 /* accepted levels in the line; the JSON has all */

struct finding {
    struct baseline *b;
    const struct baseline_asked *asked;
    char *error;
    size_t len;
};

__attribute__((format(printf, 3, 4))) static int fail(struct finding *f, int err,
                                                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(f->error, f->len, format, args);
    va_end(args);
    return err;
}

static int add_baseline(struct finding *f, const char *path, const char *name)
{
    struct baseline *b = f->b;
    char **paths = reallocarray(b->paths, b->n + 2, sizeof(*paths));

    if (paths)
        b->paths = paths;
    char **names = paths ? reallocarray(b->names, b->n + 2, sizeof(*names)) : NULL;
    if (!names)
        return fail(f, -ENOMEM, "out of memory");
    b->names = names;
    paths[b->n] = strdup(path);
    names[b->n] = strdup(name);
    b->n++;
    paths[b->n] = names[b->n] = NULL;
    return paths[b->n - 1] && names[b->n - 1] ? 0 : fail(f, -ENOMEM, "out of memory");
}

/* --- run folders --- */

static bool is_same(const char *x, const char *y)
{
    struct stat a, b;

    return !stat(x, &a) && !stat(y, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

/* What a baseline that was not measured to its end lacks would not be missed in the run, either. */
static int refuse_unfinished(struct finding *f, const struct sift *sift)
{
    return fail(
        f, -EINVAL,
        "'%.400s' is no baseline, as it was not measured to the end: %s; plumb run --resume "
        "goes on with a run, or name another",
        f->asked->spec, sift->unfinished.names);
}

static int find_folders(struct finding *f)
{
    struct run_paths runs = {0};
    struct sift sift;
    int err = run_paths_add(&runs, f->asked->spec, f->error, f->len);

    sift_init(&sift, f->asked->run);
    for (size_t i = 0; !err && i < runs.n; i++)
        if (!is_same(runs.all[i], f->asked->run) && sift_takes(&sift, runs.all[i]))
            err = add_baseline(f, runs.all[i], base_name(runs.all[i]));
    if (!err && !f->b->n && sift.unfinished.n)
        err = refuse_unfinished(f, &sift);
    else if (!err && !f->b->n)
        err = fail(f, -EINVAL,
                   "'%s' holds no run but '%s' itself: name another run, or a folder of runs",
                   f->asked->spec, f->asked->run);
    if (f->b->n == 1)
        snprintf(f->b->text, sizeof(f->b->text), "one run, '%.400s'", f->b->paths[0]);
    else
        snprintf(f->b->text, sizeof(f->b->text), "%zu runs in '%.400s'", f->b->n, f->asked->spec);
    sift_tell(&sift, f->b->text, sizeof(f->b->text));
    run_paths_release(&runs);
    return err;
}

/* --- the history --- */

static int restore(struct finding *f, struct history_db *db, const struct history_run *run)
{
    char *folder = NULL;
    int err = 0;

    if (asprintf(&folder, "%s/%zu", f->b->folder, f->b->n) < 0)
        return fail(f, -ENOMEM, "out of memory");
    if (mkdir(folder, 0700))
        err = fail(f, -errno, "cannot make a folder '%s': %s", folder, strerror(errno));
    if (!err)
        err = history_db_restore(db, run->id, folder, f->error, f->len);
    if (!err)
        err = add_baseline(f, folder, run->name);
    free(folder);
    return err;
}

/* The history's runs of the same suite, as one of this host sees them. */
struct others {
    size_t earlier, later,
        elsewhere; /* of this host, before and from this run on; of other hosts */
    size_t taken;  /* baselines that are left out: others took the CPU in all their launches */
    bool itself;
    char first[64], host[128]; /* start of this host's first; one of the other hosts */
};

static void count_others(struct finding *f, struct history_db *db, const struct history_run *run,
                         struct others *o)
{
    struct history_run *runs = NULL;
    size_t n = 0;

    *o = (struct others){0};
    if (db && history_db_runs(db, "", run->suite, 0, &runs, &n, f->error, f->len))
        n = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(runs[i].host, run->host) != 0) {
            if (!o->elsewhere++)
                snprintf(o->host, sizeof(o->host), "%s", runs[i].host);
            continue;
        }
        if (!o->earlier && !o->later)
            snprintf(o->first, sizeof(o->first), "%s", runs[i].started_utc);
        int order = strcmp(runs[i].started_utc, run->started_utc);
        bool itself = !order && !strcmp(runs[i].name, run->name);
        o->itself |= itself; /* it was judged before */
        o->earlier += order < 0;
        o->later += order >= 0 && !itself;
    }
    history_runs_release(runs, n);
}

/* Why the history has no baseline for this run. */
static void say_why(struct finding *f, const struct history_run *run, const struct others *o)
{
    char *text = f->b->text;
    size_t len = sizeof(f->b->text);

    if (o->taken)
        snprintf(text, len,
                 "nothing: %zu baseline%s of the history '%.200s' %s left out, as " STEAL_WHY
                 " in all %s launches",
                 o->taken, o->taken == 1 ? "" : "s", f->asked->history,
                 o->taken == 1 ? "is" : "are", o->taken == 1 ? "its" : "their");
    else if (o->earlier)
        snprintf(
            text, len,
            "nothing: of the %zu run%s that the history '%.200s' has from before this one none "
            "is a baseline",
            o->earlier, o->earlier == 1 ? "" : "s", f->asked->history);
    else if (o->later)
        snprintf(
            text, len,
            "nothing: the history '%.150s' has %zu run%s of suite '%.60s' on host '%.60s', but "
            "none that began before this one (%.30s): the first of them began %.30s",
            f->asked->history, o->later, o->later == 1 ? "" : "s", run->suite, run->host,
            run->started_utc, o->first);
    else
        snprintf(text, len, "nothing: the history '%.300s' has %s", f->asked->history,
                 o->itself ? "no run of this suite and host but this one" : "no baseline yet");
}

static void append(char *to, size_t len, const char *format, va_list args)
{
    size_t used = strlen(to);

    vsnprintf(to + used, len - used, format, args);
}

#define APPENDS(name, member)                                                                      \
    __attribute__((format(printf, 2, 3))) static void name(struct finding *f, const char *format,  \
                                                           ...)                                    \
    {                                                                                              \
        va_list args;                                                                              \
                                                                                                   \
        va_start(args, format);                                                                    \
        append(f->b->member, sizeof(f->b->member), format, args);                                  \
        va_end(args);                                                                              \
    }
APPENDS(add_text, text)
APPENDS(add_advice, advice)

static void advise(struct finding *f, struct history_db *db, const struct history_run *run,
                   size_t n_taken)
{
    const struct baseline_asked *a = f->asked;
    struct others o;

    count_others(f, db, run, &o);
    o.taken = n_taken;
    say_why(f, run, &o);
    if (o.taken)
        add_advice(f, "a run during which neighbours leave this machine its CPU will be a "
                      "baseline; --steal 100%% leaves none out");
    else if (o.earlier)
        add_advice(
            f, "runs that regressed or are incomplete are no baseline: plumb check RUN --accept "
               "makes one the start of later ones");
    else if (o.later)
        add_advice(f, "judge runs in the order of their start, or hold this one against a run "
                      "folder by --baseline RUN");
    else if (a->update)
        add_advice(f,
                   "the next run of suite '%.100s' on host '%.100s' will have a baseline in "
                   "'%.300s'",
                   run->suite, run->host, a->history);
    else
        add_advice(
            f,
            "the history '%.300s' has no baseline for suite '%.100s' on host '%.100s': begin "
            "with this run by --update-baseline",
            a->history, run->suite, run->host);
    /* Another name of this machine every night would never have a baseline: that must not go
     * unseen. */
    if (o.elsewhere)
        add_advice(f,
                   "; it has %zu of other hosts, such as '%.100s', which are other machines' "
                   "levels: is this one called otherwise every time?",
                   o.elsewhere, o.host);
}

static void tell_taken(struct finding *f, size_t n)
{
    if (n)
        add_text(f, "; %zu more %s left out, as " STEAL_WHY " in all %s launches", n,
                 n == 1 ? "is" : "are", n == 1 ? "its" : "their");
}

/* "; beside them ..." of runs that are no level. */
static void tell_others(struct finding *f, const struct history_choice *c)
{
    if (c->n_anchor || c->n_spread)
        add_text(f, "; beside %s ", c->n_level == 1 ? "it" : "them");
    if (c->n_anchor)
        add_text(f, "%zu older since the start%s", c->n_anchor, c->n_spread ? ", and " : "");
    if (c->n_spread)
        add_text(f, "%zu that only tell%s how runs differ", c->n_spread,
                 c->n_spread == 1 ? "s" : "");
}

/* The newest are what the level stands on. */
static void tell_accepted(struct finding *f, const struct history_choice *c)
{
    for (size_t i = c->n_accepted > TOLD_MAX ? c->n_accepted - TOLD_MAX : 0; i < c->n_accepted; i++)
        add_text(f, "; accepted: %.300s",
                 history_acceptance_text(&f->b->choice.pool, &c->accepted[i]));
}

static int take_all(struct finding *f, struct history_db *db, struct history_choice *c)
{
    const char *last = "";
    int err = scratch_make(&f->b->folder, f->error, f->len);

    for (size_t i = 0; !err && i < c->n; i++) {
        err = restore(f, db, &c->runs[i]);
        if (c->roles[0].runs[i].role == DECIDE_LEVEL)
            last = c->runs[i].name;
    }
    if (err)
        return err;
    snprintf(f->b->text, sizeof(f->b->text), "%zu run%s of the history '%.300s', %s%.100s",
             c->n_level, c->n_level == 1 ? "" : "s", f->asked->history,
             c->n_level == 1 ? "" : "the last is ", last);
    tell_others(f, c);
    tell_accepted(f, c);
    tell_taken(f, c->n_taken);
    return 0;
}

static int take_runs(struct finding *f, struct history_db *db, const struct run_folder *run,
                     size_t n)
{
    const struct history_sieve sieve = {.most = n,
                                        .anchors = BASELINE_ANCHORS,
                                        .spread = BASELINE_SPREAD,
                                        .steal_limit = f->asked->steal_limit,
                                        .meta = run->meta};
    const struct history_run r = history_run_of(run);
    struct history_choice *c = &f->b->choice;
    int err = history_db_choose(db, &r, &sieve, c, f->error, f->len);

    f->b->runs_most = n;

    if (!err && c->n)
        err = take_all(f, db, c);
    else if (!err)
        advise(f, db, &r, c->n_taken);
    return err;
}

static int open_history(struct finding *f, const struct run_folder *run, size_t n)
{
    const struct history_run r = history_run_of(run);
    int err;
    struct history_db *db = history_db_open(f->asked->history, false, &err, f->error, f->len);

    if (db) {
        err = take_runs(f, db, run, n);
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

static int count_of(struct finding *f, size_t *n)
{
    const char *colon = strchr(f->asked->spec, ':');
    uint64_t count = f->asked->least;

    if (colon && (units_parse_u64(colon + 1, &count) || !count || count > 1000))
        return fail(f, -EINVAL,
                    "--baseline '%s': how many runs of the history? 1 to 1000, such as history:%d",
                    f->asked->spec, BASELINE_LAST);
    *n = count;
    return 0;
}

static int find_history(struct finding *f)
{
    struct run_folder run = {0};
    size_t n = 0;
    int err = count_of(f, &n);

    if (!err)
        err = run_folder_load(f->asked->run, &run, f->error, f->len);
    if (!err)
        err = open_history(f, &run, n);
    run_folder_release(&run);
    return err;
}

bool baseline_is_history(const char *spec)
{
    return !strcmp(spec, "history") || !strncmp(spec, "history:", 8);
}

size_t baseline_levels(const struct baseline *b)
{
    return b->choice.n_roles ? b->choice.n_level : b->n;
}

int baseline_find(struct baseline *b, const struct baseline_asked *asked, char *error, size_t len)
{
    struct finding f = {b, asked, error, len};

    *b = (struct baseline){0};
    return baseline_is_history(asked->spec) ? find_history(&f) : find_folders(&f);
}

void baseline_release(struct baseline *b)
{
    scratch_remove(b->folder);
    texts_free(b->paths);
    texts_free(b->names);
    history_choice_release(&b->choice);
    *b = (struct baseline){0};
}
