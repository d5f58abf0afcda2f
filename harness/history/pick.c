/* SPDX-License-Identifier: Apache-2.0 */
/* What plumb history is asked for: see pick.h. */
#include "harness/history/pick.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/plan/only.h"

/* --- since --- */

static int since_days(const char *text, size_t digits, time_t now, struct tm *t)
{
    long days = digits <= 5 ? strtol(text, NULL, 10) : 0;
    time_t then = now - (time_t)days * 86400;

    return days && gmtime_r(&then, t) ? 0 : -EINVAL;
}

/* Whole parts of a start, as far as they go. */
static bool is_shaped(const char *text)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:ddZ";
    size_t n = strlen(text);

    if (n != 4 && n != 7 && n != 10 && n != 16 && n != 19 && n != 20)
        return false;
    for (size_t i = 0; i < n; i++)
        if (shape[i] == 'd' ? !isdigit((unsigned char)text[i]) : text[i] != shape[i])
            return false;
    return true;
}

/* There is no 30th of February. */
static int since_date(const char *text, struct tm *t)
{
    struct tm asked = {.tm_mon = 1, .tm_mday = 1};

    if (!is_shaped(text) ||
        sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &asked.tm_year, &asked.tm_mon, &asked.tm_mday,
               &asked.tm_hour, &asked.tm_min, &asked.tm_sec) < 1)
        return -EINVAL;
    asked.tm_year -= 1900;
    asked.tm_mon--;
    *t = asked;
    timegm(t);
    return t->tm_year == asked.tm_year && t->tm_mon == asked.tm_mon &&
                   t->tm_mday == asked.tm_mday && t->tm_hour == asked.tm_hour &&
                   t->tm_min == asked.tm_min && t->tm_sec == asked.tm_sec
               ? 0
               : -EINVAL;
}

int pick_since(const char *text, time_t now, char *since, size_t len)
{
    size_t digits = strspn(text, "0123456789");
    struct tm t;
    int err = digits && !strcmp(text + digits, "d") ? since_days(text, digits, now, &t)
                                                    : since_date(text, &t);

    return err ? err : strftime(since, len, "%Y-%m-%dT%H:%M:%SZ", &t) ? 0 : -EINVAL;
}

/* --- what is left --- */

enum { BY_HOST, BY_SUITE, BY_CASE, BY_SINCE, FILTERS };

struct picking {
    const struct history *whole;
    const struct trend_filter *filter;
    const char *pattern;
};

/* Do the first n filters let it in? */
static bool lets_in(const struct picking *p, const struct history_series *s, int n)
{
    const char *only[] = {p->pattern, NULL};
    const struct trend_filter *f = p->filter;

    return s->n && (n <= BY_HOST || !*f->host || !strcmp(s->host, f->host)) &&
           (n <= BY_SUITE || !*f->suite || !strcmp(s->suite, f->suite)) &&
           (n <= BY_CASE ||
            only_keeps(only, &(struct only_case){.key = s->key, .label = s->label})) &&
           (n <= BY_SINCE || strcmp(s->runs[s->n - 1]->started_utc, f->since) >= 0);
}

static size_t count_left(const struct picking *p, int n)
{
    size_t left = 0;

    for (size_t i = 0; i < p->whole->n_series; i++)
        left += lets_in(p, &p->whole->series[i], n);
    return left;
}

/* "'a', 'b'": hosts or suites that the filters before leave, each once. */
static void list_names(const struct picking *p, int filter, char *names, size_t len)
{
    size_t used = 0;

    *names = '\0';
    for (size_t i = 0; i < p->whole->n_series && used < len; i++) {
        const struct history_series *s = &p->whole->series[i];
        char name[128];

        snprintf(name, sizeof(name), "'%.100s'", filter == BY_HOST ? s->host : s->suite);
        if (lets_in(p, s, filter) && !strstr(names, name))
            used += (size_t)snprintf(names + used, len - used, "%s%s", used ? ", " : "", name);
    }
}

static const struct history_series *first_left(const struct picking *p, int n)
{
    for (size_t i = 0; i < p->whole->n_series; i++)
        if (lets_in(p, &p->whole->series[i], n))
            return &p->whole->series[i];
    return NULL;
}

static const char *newest_start(const struct picking *p, int n)
{
    const char *newest = "";

    for (size_t i = 0; i < p->whole->n_series; i++) {
        const struct history_series *s = &p->whole->series[i];

        if (lets_in(p, s, n) && strcmp(s->runs[s->n - 1]->started_utc, newest) > 0)
            newest = s->runs[s->n - 1]->started_utc;
    }
    return newest;
}

void pick_explain(const struct history *whole, const struct trend_filter *filter,
                  const char *pattern, const char *said, char *error, size_t len)
{
    const struct picking p = {whole, filter, pattern};
    char names[512];
    int n = 0;

    while (n < FILTERS && count_left(&p, n + 1))
        n++;
    if (!whole->n_series) {
        snprintf(error, len,
                 "no case there: plumb run makes runs, plumb check RUN --update-baseline keeps "
                 "them");
    } else if (n == BY_HOST || n == BY_SUITE) {
        list_names(&p, n, names, sizeof(names));
        snprintf(error, len, "no case there: --%s '%s' leaves none; there is %s",
                 n == BY_HOST ? "host" : "suite", n == BY_HOST ? filter->host : filter->suite,
                 names);
    } else if (n == BY_CASE) {
        snprintf(error, len,
                 "no case there: --case '%s' stands in the label or key of none of %zu, such as "
                 "'%s', '%s'",
                 pattern, count_left(&p, n), first_left(&p, n)->label, first_left(&p, n)->key);
    } else {
        snprintf(error, len,
                 "no case there: --since '%s' leaves none; the newest run that has one began %s",
                 said, newest_start(&p, n));
    }
}

/* ---- Where the runs lie that plumb history is asked for ---- */

#define FOLDER "results"
#define BEGIN                                                                                      \
    "plumb run SUITE --out " FOLDER "/NAME makes a run, plumb check RUN --update-baseline begins " \
    "the history " FOLDER "/history.db"

static bool is_file(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool is_run(const char *folder, const char *name)
{
    char *path = NULL;
    bool is = asprintf(&path, "%s/%s/run.json", folder, name) >= 0 && !access(path, F_OK);

    free(path);
    return is;
}

/* A run, or a folder in which one lies. */
static bool holds_run(const char *path)
{
    bool holds = is_run(path, ".");
    DIR *dir = holds ? NULL : opendir(path);
    struct dirent *entry;

    while (dir && !holds && (entry = readdir(dir)) != NULL)
        holds = entry->d_name[0] != '.' && is_run(path, entry->d_name);
    if (dir)
        closedir(dir);
    return holds;
}

/* NULL: it is not there. */
static char *inside(const char *folder, const char *name, bool (*is)(const char *))
{
    char *path = NULL;

    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return NULL;
    if (is(path))
        return path;
    free(path);
    return NULL;
}

static int look_inside(struct pick_source *s, const char *folder, char *error, size_t len)
{
    s->found = inside(folder, "history.db", is_file);
    if (s->found) {
        s->db = s->found;
        return 0;
    }
    s->found = inside(folder, "runs", is_folder);
    if (s->found && holds_run(s->found)) {
        s->paths = (const char *const *)&s->found;
        return 0;
    }
    snprintf(error, len,
             "no run folder in '%s', and no history.db: plumb run makes runs, plumb check RUN "
             "--update-baseline --history '%s/history.db' begins a history",
             folder, folder);
    return -ENOENT;
}

static int take_default(struct pick_source *s, char *error, size_t len)
{
    s->as_folder = FOLDER;
    s->paths = &s->as_folder;
    s->n = 1;
    s->found = inside(FOLDER, "history.db", is_file);
    s->db = s->found;
    if (s->db || holds_run(FOLDER))
        return 0;
    if (is_folder(FOLDER))
        return look_inside(s, FOLDER, error, len);
    snprintf(error, len,
             "there is no folder '" FOLDER "' here, and no history in it: " BEGIN
             "; or name a history, or a folder of runs");
    return -ENOENT;
}

int pick_source(struct pick_source *s, const char *const *args, size_t n, char *error, size_t len)
{
    *s = (struct pick_source){.paths = args, .n = n};
    if (!n)
        return take_default(s, error, len);
    if (n == 1 && is_file(args[0])) {
        s->db = args[0];
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_file(args[i]))
            continue;
        snprintf(error, len, "'%s' is a file: name one database alone, or run folders", args[i]);
        return -EINVAL;
    }
    if (n > 1 || !is_folder(args[0]) || holds_run(args[0]))
        return 0; /* what is not there the reader names */
    return look_inside(s, args[0], error, len);
}

void pick_source_release(struct pick_source *s)
{
    free(s->found);
    *s = (struct pick_source){0};
}
