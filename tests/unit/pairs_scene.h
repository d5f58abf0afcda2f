/* SPDX-License-Identifier: Apache-2.0 */
/* Runs to be paired, for tests: folders "a", "b" ... below one scratch folder, written row by row. */
#ifndef PLUMB_TESTS_PAIRS_SCENE_H
#define PLUMB_TESTS_PAIRS_SCENE_H

#include "harness/compare/pairs.h"
#include "tests/unit/built_benches.h"
#include "tests/unit/fake_run.h"
#include "tests/unit/unit.h"

#define SCENE_PLAN "state,rows,order,case,repeat,bench,arguments,timeout_s,margin\n"

struct scene_run {
    const struct fake_run *root;
    const char *name, *bench;
    const char *const *params;
    size_t n_params, order;
    FILE *rows, *plan;
};

static inline int scene_make(void **state)
{
    struct fake_run *f = malloc(sizeof(*f));

    fake_run_init(f);
    *state = f;
    return 0;
}

static inline int scene_remove(void **state)
{
    fake_run_release(*state);
    free(*state);
    return 0;
}

static inline void scene_file(const struct fake_run *root, const char *run, const char *name,
                              const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", root->path, run);
    mkdir(path, 0755);
    snprintf(path, sizeof(path), "%s/%s", run, name);
    fake_run_write(root, path, text);
}

/* run.json of a run of the benchmarks as they were built; `more`: further members, or "". */
static inline void scene_meta(const struct fake_run *root, const char *run, const char *more)
{
    static char *told;

    if (!told) {
        struct bench_list list = built_benches();
        json_t *all = json_object();

        for (size_t i = 0; i < list.n; i++)
            json_object_set(all, list.benches[i].name, list.benches[i].described);
        told = json_dumps(all, 0);
        json_decref(all);
        bench_list_release(&list);
    }
    char *text = NULL;
    assert_true(asprintf(&text, "{\"schema\": 3, \"benchmarks\": %s, %s}\n", told, more) > 0);
    scene_file(root, run, "run.json", text);
    free(text);
}

static inline struct scene_run scene_begin(const struct fake_run *root, const char *name,
                                           const char *bench, const char *const *params, size_t n)
{
    struct scene_run r = {root, name, bench, params, n, 0, NULL, NULL};
    char path[256];

    scene_meta(root, name, "\"run\": \"one\", \"machine\": {}");
    snprintf(path, sizeof(path), "%s/%s.csv", name, bench);
    r.rows = fake_run_open(root, path, "w");
    snprintf(path, sizeof(path), "%s/plan.csv", name);
    r.plan = fake_run_open(root, path, "w");
    fputs(SCENE_PLAN, r.plan);
    row_print_csv_header(r.rows, params, n);
    return r;
}

static inline void scene_launch_as(struct scene_run *r, const char *state, unsigned rows,
                                   const char *case_id, uint64_t repeat, const char *arguments,
                                   const char *margin)
{
    fprintf(r->plan, "%s,%04u,%zu,%s,%llu,%s,%s,60,%s\n", state, rows, ++r->order, case_id,
            (unsigned long long)repeat, r->bench, arguments, margin);
}

static inline void scene_launch(struct scene_run *r, const char *state, unsigned rows,
                                const char *case_id, uint64_t repeat, const char *margin)
{
    char arguments[64];

    snprintf(arguments, sizeof(arguments), "--case %s", case_id);
    scene_launch_as(r, state, rows, case_id, repeat, arguments, margin);
}

static inline void scene_row(struct scene_run *r, struct row *row, const char *const *values)
{
    row->param_names = r->params;
    row->n_params = r->n_params;
    for (size_t i = 0; i < r->n_params; i++)
        row->params[i] = values[i];
    row_print_csv(r->rows, row);
}

static inline void scene_end(struct scene_run *r)
{
    fclose(r->rows);
    fclose(r->plan);
}

struct scene_paths {
    char a[128], b[128];
};

static inline struct scene_paths scene_paths(const struct fake_run *root, const char *a,
                                             const char *b)
{
    struct scene_paths p;

    snprintf(p.a, sizeof(p.a), "%s/%s", root->path, a);
    snprintf(p.b, sizeof(p.b), "%s/%s", root->path, b);
    return p;
}

/* The error, and what was said of it. */
static inline int scene_load(struct pairs *p, const struct fake_run *root, const char *a,
                             const char *b, const struct pairs_options *options, char *error,
                             size_t len)
{
    struct scene_paths paths = scene_paths(root, a, b);
    const char *side_a[] = {paths.a}, *side_b[] = {paths.b};

    *error = 0;
    return pairs_load(p, side_a, 1, side_b, 1, options, error, len);
}

static inline struct pairs scene_pairs(const struct fake_run *root, const char *a, const char *b)
{
    static const struct pairs_options options = {.margin = 0.05};
    struct pairs p;
    char error[512];

    if (scene_load(&p, root, a, b, &options, error, sizeof(error)))
        fail_msg("%s", error);
    return p;
}

#endif
