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
#include "harness/machine/fact.h"
#include "harness/run/run.h"
#include "harness/store/run_folder.h"

#define RUNS_MAX 64 /* that are looked at, the newest ones */

/* ---- Which run ---- */

struct seen {
    char *path;
    time_t time;
};

static int by_time(const void *a, const void *b)
{
    time_t x = ((const struct seen *)a)->time, y = ((const struct seen *)b)->time;

    return (x < y) - (x > y); /* the newest first */
}

/* Of all cases, or of those of the same --only. */
static bool is_like(const char *path, const char *suite, const char *only, const char *processes)
{
    json_t *meta = NULL;
    char error[512];
    bool like =
        !run_meta_load(path, &meta, error, sizeof(error)) && fact_is(meta, "state", "complete") &&
        fact_is(meta, "suite", suite) && fact_is(meta, "processes", processes) &&
        !run_meta_same(meta, error, sizeof(error)) &&
        (!json_is_string(json_object_get(meta, "only")) || (only && fact_is(meta, "only", only)));

    json_decref(meta);
    return like;
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

void earlier_load(struct earlier *e, const char *const *folders, const char *suite,
                  const char *only, const char *processes)
{
    struct run_folder run;
    struct seen *all = NULL;
    size_t n = 0;
    char error[512];

    *e = (struct earlier){.seconds = json_object(), .launches = json_object()};
    for (; *folders; folders++) {
        /* All run folders below `folder`. */
        DIR *dir = opendir(*folders);
        struct stat st;

        for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
            char *file = xasprintf("%s/%s/run.json", (*folders), entry->d_name);
            if (entry->d_name[0] != '.' && !stat(file, &st))
                *ARRAY_ADD(all, n) =
                    (struct seen){xasprintf("%s/%s", (*folders), entry->d_name), st.st_mtime};
            free(file);
        }
        if (dir)
            closedir(dir);
    }
    if (n)
        qsort(all, n, sizeof(*all), by_time);
    for (size_t i = 0; i < n && i < RUNS_MAX && !*e->run; i++)
        if (strlen(all[i].path) < sizeof(e->run) && is_like(all[i].path, suite, only, processes))
            strcpy(e->run, all[i].path);
    for (size_t i = 0; i < n; i++)
        free(all[i].path);
    free(all);
    if (!*e->run || run_folder_load(e->run, &run, error, sizeof(error)))
        return;
    json_t *launches = launches_of(&run.plan);
    for (size_t i = 0; i < run.n_benches; i++) {
        /* All rows of a launch have its time. */
        const struct table *t = &run.benches[i].rows;
        for (size_t row = 0; row < t->n_rows; row++) {
            const char *status = table_text(t, row, "status");
            const char *key =
                json_string_value(json_object_get(launches, table_text(t, row, "case")));
            double seconds = table_number(t, row, "launch_s");
            if (!key || !strcmp(status, "failed") || !strcmp(status, "wrong") || !isfinite(seconds))
                continue;
            add(e->seconds, key, seconds);
            add(e->launches, key, 1);
        }
    }
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
