/* SPDX-License-Identifier: Apache-2.0 */
/* Where the runs lie that plumb history is asked for: see pick.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/history/pick.h"

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
