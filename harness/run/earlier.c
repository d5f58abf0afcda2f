/* SPDX-License-Identifier: Apache-2.0 */
/* What launches took in the last run of a suite: see earlier.h. */
#include "harness/run/earlier.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "harness/run/run.h"
#include "harness/store/run_folder.h"

/* ---- Which run ---- */

static bool says(const json_t *meta, const char *member, const char *text)
{
    const char *value = json_string_value(json_object_get(meta, member));

    return value && !strcmp(value, text);
}

/* Takes this run for the last one, if it is newer than that. */
static void look_at(struct earlier *e, const char *path, const char *suite, const char *processes)
{
    char *file = xasprintf("%s/run.json", path), error[512];
    struct stat st;
    json_t *meta = NULL;

    if (!stat(file, &st) && st.st_mtime > e->time && strlen(path) < sizeof(e->run) &&
        !run_meta_load(path, &meta, error, sizeof(error)) && says(meta, "state", "complete") &&
        says(meta, "suite", suite) && says(meta, "processes", processes) &&
        !run_meta_same(meta, error, sizeof(error))) {
        strcpy(e->run, path);
        e->time = st.st_mtime;
    }
    json_decref(meta);
    free(file);
}

/* ---- Its launches ---- */

/* By the number of a case: "bench arguments". */
static json_t *launches_of(const struct table *plan)
{
    json_t *all = json_object();

    for (size_t i = 0; i < plan->n_rows; i++) {
        const char *state = table_text(plan, i, "state");
        if ((!strcmp(state, "done") || !strcmp(state, "skip")) && !*table_text(plan, i, "from") &&
            !*table_text(plan, i, "hosts"))
            json_object_set_new(all, table_text(plan, i, "case"),
                                json_sprintf("%s %s", table_text(plan, i, "bench"),
                                             table_text(plan, i, "arguments")));
    }
    return all;
}

static void add(json_t *sums, const char *key, double value)
{
    json_object_set_new(sums, key, json_real(json_real_value(json_object_get(sums, key)) + value));
}

/* All rows of a launch have its time. */
static void read_rows(struct earlier *e, const json_t *launches, const struct table *t)
{
    for (size_t row = 0; row < t->n_rows; row++) {
        const char *status = table_text(t, row, "status");
        const char *key = json_string_value(json_object_get(launches, table_text(t, row, "case")));
        double seconds = table_number(t, row, "launch_s");
        if (!key || !strcmp(status, "failed") || !strcmp(status, "wrong") || !isfinite(seconds))
            continue;
        add(e->seconds, key, seconds);
        add(e->launches, key, 1);
    }
}

void earlier_load(struct earlier *e, const char *const *folders, const char *suite,
                  const char *processes)
{
    struct run_folder run;
    char error[512];

    *e = (struct earlier){.seconds = json_object(), .launches = json_object()};
    for (; *folders; folders++) {
        DIR *dir = opendir(*folders);
        for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
            char *path = xasprintf("%s/%s", *folders, entry->d_name);
            if (entry->d_name[0] != '.')
                look_at(e, path, suite, processes);
            free(path);
        }
        if (dir)
            closedir(dir);
    }
    if (!*e->run || run_folder_load(e->run, &run, error, sizeof(error)))
        return;
    json_t *launches = launches_of(&run.plan);
    for (size_t i = 0; i < run.n_benches; i++)
        read_rows(e, launches, &run.benches[i].rows);
    json_decref(launches);
    run_folder_release(&run);
}

void earlier_release(struct earlier *e)
{
    json_decref(e->seconds);
    json_decref(e->launches);
    *e = (struct earlier){0};
}

double earlier_seconds(const struct earlier *e, const struct launch *l)
{
    char *key = xasprintf("%s %s", l->bench, l->arguments);
    double n = launch_has_hosts(l) ? 0 : json_real_value(json_object_get(e->launches, key));
    double seconds = json_real_value(json_object_get(e->seconds, key));

    free(key);
    return n > 0 ? seconds / n : NAN;
}
