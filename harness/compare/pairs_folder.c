/* SPDX-License-Identifier: Apache-2.0 */
/* Which run folders a path means: see pairs_parts.h. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/row.h"
#include "harness/compare/pairs_parts.h"

struct found {
    char *path, *started;
};

struct found_list {
    struct found *all;
    size_t n, room;
};

static void found_release(struct found_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->all[i].path);
        free(list->all[i].started);
    }
    free(list->all);
    *list = (struct found_list){0};
}

static bool is_run(const char *path)
{
    char *meta;
    bool is = asprintf(&meta, "%s/run.json", path) >= 0;

    if (is) {
        is = !access(meta, F_OK);
        free(meta);
    }
    return is;
}

static int no_memory(char *error, size_t len)
{
    snprintf(error, len, "out of memory");
    return -ENOMEM;
}

static int check_schema(const json_t *meta, const char *path, char *error, size_t len)
{
    const json_t *schema = json_object_get(meta, "schema");

    if (!json_is_integer(schema) || json_integer_value(schema) < 1) {
        snprintf(error, len,
                 "'%s/run.json' names no schema: it is not of this program, or was damaged", path);
        return -EPROTO;
    }
    if (json_integer_value(schema) > ROW_SCHEMA_VERSION) {
        snprintf(error, len,
                 "'%s/run.json' has schema %" JSON_INTEGER_FORMAT
                 ", this program reads up to %d: compare with the program that made it, or a newer "
                 "one",
                 path, json_integer_value(schema), ROW_SCHEMA_VERSION);
        return -EPROTO;
    }
    return 0;
}

/* When the run was started; a run.json that is no JSON is left to run_folder_load(), which says why. */
static int read_start(const char *path, char **started, char *error, size_t len)
{
    char *file;
    int err = 0;

    if (asprintf(&file, "%s/run.json", path) < 0)
        return no_memory(error, len);
    json_t *meta = json_load_file(file, JSON_REJECT_DUPLICATES, NULL);
    free(file);
    if (json_is_object(meta))
        err = check_schema(meta, path, error, len);
    const char *text = json_string_value(json_object_get(meta, "started_utc"));
    if (!err && !(*started = strdup(text ? text : "")))
        err = no_memory(error, len);
    json_decref(meta);
    return err;
}

static int add_found(struct found_list *list, const char *path, char *error, size_t len)
{
    struct found f = {0};

    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        struct found *grown = realloc(list->all, room * sizeof(*grown));
        if (!grown)
            return no_memory(error, len);
        list->all = grown;
        list->room = room;
    }
    int err = read_start(path, &f.started, error, len);
    if (!err && !(f.path = strdup(path)))
        err = no_memory(error, len);
    list->all[list->n++] = f;
    return err;
}

static int add_if_run(struct found_list *list, const char *folder, const char *name, char *error,
                      size_t len)
{
    char *path;
    int err = 0;

    if (*name == '.')
        return 0;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return no_memory(error, len);
    if (is_run(path))
        err = add_found(list, path, error, len);
    free(path);
    return err;
}

static int list_folder(struct found_list *list, const char *path, char *error, size_t len)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int err = 0;

    if (!dir) {
        err = -errno;
        snprintf(error, len, "cannot read '%s': %s", path, strerror(-err));
        return err == -ENOTDIR ? -ENOENT : err;
    }
    while (!err && (entry = readdir(dir)) != NULL)
        err = add_if_run(list, path, entry->d_name, error, len);
    closedir(dir);
    if (!err && !list->n) {
        snprintf(error, len,
                 "'%s' is neither a run folder nor a folder of them: no run.json is there", path);
        err = -ENOENT;
    }
    return err;
}

/* By their start, which is ISO 8601; of one second by name. */
static int compare_found(const void *x, const void *y)
{
    const struct found *a = x, *b = y;
    int d = strcmp(a->started, b->started);

    return d ? d : strcmp(a->path, b->path);
}

static int take_found(struct run_paths *paths, struct found_list *list, char *error, size_t len)
{
    char **grown = realloc(paths->all, (paths->n + list->n + 1) * sizeof(*grown));

    if (!grown)
        return no_memory(error, len);
    paths->all = grown;
    for (size_t i = 0; i < list->n; i++) {
        paths->all[paths->n++] = list->all[i].path;
        list->all[i].path = NULL;
    }
    return 0;
}

int run_paths_add(struct run_paths *paths, const char *path, char *error, size_t len)
{
    struct found_list list = {0};
    struct stat st;
    int err = 0;

    if (stat(path, &st)) {
        err = errno == ENOTDIR ? -ENOENT : -errno;
        snprintf(error, len, "there is no run folder '%s': %s", path, strerror(errno));
        return err;
    }
    err = is_run(path) ? add_found(&list, path, error, len) : list_folder(&list, path, error, len);
    if (!err && list.n)
        qsort(list.all, list.n, sizeof(*list.all), compare_found);
    if (!err)
        err = take_found(paths, &list, error, len);
    found_release(&list);
    return err;
}

void run_paths_release(struct run_paths *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        free(paths->all[i]);
    free(paths->all);
    *paths = (struct run_paths){0};
}
