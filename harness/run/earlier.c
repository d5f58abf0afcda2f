/* SPDX-License-Identifier: Apache-2.0 */
/* What launches took in kept runs: see earlier.h. */
#include "harness/run/earlier.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/program.h"
#include "harness/run/run.h"
#include "harness/store/run_folder.h"

/* ---- Which runs ---- */

static const json_t *at(const json_t *machine, const char *object, const char *member)
{
    return json_object_get(json_object_get(machine, object), member);
}

static bool same_gpus(const json_t *a, const json_t *b)
{
    const json_t *x = at(a, "gpus", "devices"), *y = at(b, "gpus", "devices");
    bool same = json_array_size(x) == json_array_size(y);

    for (size_t i = 0; same && i < json_array_size(x); i++)
        same = json_equal(json_object_get(json_array_get(x, i), "address"),
                          json_object_get(json_array_get(y, i), "address")) &&
               json_equal(json_object_get(json_array_get(x, i), "name"),
                          json_object_get(json_array_get(y, i), "name"));
    return same &&
           json_is_true(at(a, "gpus", "simulated")) == json_is_true(at(b, "gpus", "simulated"));
}

/* Are both the same machine, as far as that decides how long a launch takes? */
static bool same_machine(const json_t *a, const json_t *b)
{
    static const char *const facts[][2] = {
        {"host", "hostname"}, {"cpu", "model"}, {"cpu", "threads"}, {"cpu", "cores"}};
    bool same = json_is_object(a) && json_is_object(b);

    for (size_t i = 0; same && i < sizeof(facts) / sizeof(facts[0]); i++) {
        const json_t *x = at(a, facts[i][0], facts[i][1]), *y = at(b, facts[i][0], facts[i][1]);
        same = x == y || (x && y && json_equal(x, y));
    }
    return same && same_gpus(a, b);
}

struct found {
    char *path;
    time_t time;
};

struct founds {
    struct found *all;
    size_t n;
};

static int newest_first(const void *x, const void *y)
{
    const struct found *a = x, *b = y;

    return a->time != b->time ? (a->time < b->time) - (a->time > b->time)
                              : strcmp(a->path, b->path);
}

static int add_found(struct founds *f, const char *folder, const char *name)
{
    struct stat st;
    char *path = NULL, *file = NULL;
    int err = -ENOMEM;

    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return -ENOMEM;
    if (asprintf(&file, "%s/run.json", path) < 0)
        goto done;
    err = 0;
    if (stat(file, &st))
        goto done;
    struct found *grown = realloc(f->all, (f->n + 1) * sizeof(*grown));
    err = grown ? 0 : -ENOMEM;
    if (err)
        goto done;
    f->all = grown;
    f->all[f->n++] = (struct found){path, st.st_mtime};
    path = NULL;
done:
    free(file);
    free(path);
    return err;
}

static int list(struct founds *f, const char *folder)
{
    DIR *dir = opendir(folder);
    int err = 0;

    for (struct dirent *entry; dir && !err && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            err = add_found(f, folder, entry->d_name);
    if (dir)
        closedir(dir);
    return err;
}

static bool is_like(const char *path, const json_t *machine, const char *processes)
{
    json_t *meta = NULL;
    char error[512];
    bool like = false;

    if (!run_meta_load(path, &meta, error, sizeof(error))) {
        const char *version = json_string_value(json_object_get(meta, "version"));
        like = version && !strcmp(version, PLUMB_VERSION) &&
               !strcmp(run_meta_processes(meta), processes) &&
               same_machine(json_object_get(meta, "machine"), machine);
    }
    json_decref(meta);
    return like;
}

/* ---- Their launches ---- */

static int add_launch(struct earlier *e, const char *bench, const char *arguments, bool first,
                      bool skipped, double seconds)
{
    struct earlier_launch *grown = realloc(e->all, (e->n + 1) * sizeof(*grown));
    char *key = NULL;

    if (!grown)
        return -ENOMEM;
    e->all = grown;
    if (asprintf(&key, "%s %s", bench, arguments) < 0)
        return -ENOMEM;
    e->all[e->n++] = (struct earlier_launch){key, first, skipped, seconds};
    return 0;
}

/* The line of the plan with this launch of this benchmark; SIZE_MAX: none. */
static size_t planned(const struct table *plan, const char *bench, const char *case_id,
                      const char *repeat)
{
    size_t columns[] = {table_column(plan, "bench"), table_column(plan, "case"),
                        table_column(plan, "repeat")};

    for (size_t i = 0; i < plan->n_rows; i++)
        if (!strcmp(table_cell(plan, i, columns[1]), case_id) &&
            !strcmp(table_cell(plan, i, columns[2]), repeat) &&
            !strcmp(table_cell(plan, i, columns[0]), bench))
            return i;
    return SIZE_MAX;
}

static bool counts(const struct table *plan, size_t line)
{
    const char *state = line == SIZE_MAX ? "" : table_text(plan, line, "state");

    return (!strcmp(state, "done") || !strcmp(state, "skip")) && !*table_text(plan, line, "from") &&
           !*table_text(plan, line, "hosts");
}

/* Rows of a launch stand together, and all have its time. */
static int read_bench(struct earlier *e, const struct table *plan, const struct run_bench *b)
{
    const struct table *t = &b->rows;
    size_t columns[] = {table_column(t, "case"), table_column(t, "repeat")};
    int err = 0;

    for (size_t row = 0; !err && row < t->n_rows; row++) {
        const char *case_id = table_cell(t, row, columns[0]),
                   *repeat = table_cell(t, row, columns[1]);
        double seconds = table_number(t, row, "launch_s");
        if (!isfinite(seconds) || (row && !strcmp(table_cell(t, row - 1, columns[0]), case_id) &&
                                   !strcmp(table_cell(t, row - 1, columns[1]), repeat)))
            continue;
        size_t line = planned(plan, b->name, case_id, repeat);
        if (counts(plan, line))
            err = add_launch(e, b->name, table_text(plan, line, "arguments"), !strcmp(repeat, "1"),
                             !strcmp(table_text(plan, line, "state"), "skip"), seconds);
    }
    return err;
}

static int read_run(struct earlier *e, const char *path)
{
    struct run_folder run;
    char error[512];
    size_t before = e->n;
    int err = run_folder_load(path, &run, error, sizeof(error));

    if (err)
        return err == -ENOMEM ? err : 0;
    for (size_t i = 0; !err && i < run.n_benches; i++)
        err = read_bench(e, &run.plan, &run.benches[i]);
    run_folder_release(&run);
    if (e->n > before && !e->n_runs++)
        snprintf(e->newest, sizeof(e->newest), "%s", path);
    return err;
}

static int compare(const void *x, const void *y)
{
    const struct earlier_launch *a = x, *b = y;
    int d = strcmp(a->key, b->key);

    if (!d)
        d = (a->first > b->first) - (a->first < b->first);
    return d ? d : (a->skipped > b->skipped) - (a->skipped < b->skipped);
}

int earlier_load(struct earlier *e, const char *const *folders, const json_t *machine,
                 const char *processes)
{
    struct founds f = {0};
    int err = 0;

    *e = (struct earlier){0};
    for (; !err && *folders; folders++)
        err = list(&f, *folders);
    if (f.n)
        qsort(f.all, f.n, sizeof(*f.all), newest_first);
    for (size_t i = 0; !err && i < f.n && i < EARLIER_LOOKED_MAX && e->n_runs < EARLIER_RUNS_MAX;
         i++)
        if ((!i || strcmp(f.all[i].path, f.all[i - 1].path) != 0) &&
            is_like(f.all[i].path, machine, processes))
            err = read_run(e, f.all[i].path);
    if (e->n)
        qsort(e->all, e->n, sizeof(*e->all), compare);
    for (size_t i = 0; i < f.n; i++)
        free(f.all[i].path);
    free(f.all);
    return err;
}

void earlier_release(struct earlier *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->all[i].key);
    free(e->all);
    *e = (struct earlier){0};
}

/* ---- How long one takes ---- */

/* The mean of all that compare alike; NaN: there is none. */
static double mean_of(const struct earlier *e, const struct earlier_launch *like)
{
    const struct earlier_launch *hit =
        e->n ? bsearch(like, e->all, e->n, sizeof(*e->all), compare) : NULL;
    size_t from, to;

    if (!hit)
        return NAN;
    for (from = to = (size_t)(hit - e->all); from && !compare(&e->all[from - 1], like);)
        from--;
    while (to < e->n && !compare(&e->all[to], like))
        to++;
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += e->all[i].seconds;
    return sum / (double)(to - from);
}

double earlier_seconds(const struct earlier *e, const struct launch *l)
{
    char *key = NULL;
    double seconds = NAN;

    if (launch_has_hosts(l) || asprintf(&key, "%s %s", l->bench, l->arguments) < 0)
        return NAN;
    for (int skipped = 0; skipped < 2 && isnan(seconds); skipped++) {
        seconds = mean_of(e, &(struct earlier_launch){key, l->repeat == 1, skipped, 0});
        if (isnan(seconds) && l->repeat != 1)
            seconds = mean_of(e, &(struct earlier_launch){key, true, skipped, 0});
    }
    free(key);
    return seconds;
}
