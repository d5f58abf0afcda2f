/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs may stand on which side: see pairs.h. */
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/units.h"
#include "harness/compare/pairs.h"
#include "harness/store/run_folder.h"

/* ---- Which run folders a path means ---- */

struct dated_run {
    char *path, *started;
};

/* By their start, which is ISO 8601; of one second by name. */
static int compare_starts(const void *x, const void *y)
{
    const struct dated_run *a = x, *b = y;
    int d = strcmp(a->started, b->started);

    return d ? d : strcmp(a->path, b->path);
}

/* Its start. A run.json that is no JSON is left to run_folder_load(), which says why. */
static int date(struct dated_run *run, char *path, char *error, size_t len)
{
    char *file = xasprintf("%s/run.json", path);
    json_t *meta = json_load_file(file, JSON_REJECT_DUPLICATES, NULL);
    const char *started = json_string_value(json_object_get(meta, "started_utc"));
    int err = json_is_object(meta) && !run_schema_fits(meta, file, error, len) ? -EPROTO : 0;

    *run = (struct dated_run){path, xstrdup(started ? started : "")};
    json_decref(meta);
    free(file);
    return err;
}

int run_paths_add(struct run_paths *paths, const char *path, char *error, size_t len)
{
    struct run_paths found = {0};
    struct stat st;
    int err = 0;

    if (stat(path, &st)) {
        err = errno == ENOTDIR ? -ENOENT : -errno;
        snprintf(error, len, "there is no run folder '%s': %s", path, strerror(errno));
        return err;
    }
    err = run_folders_in(path, &found);
    if (err) {
        snprintf(error, len, "cannot read '%s': %s", path, strerror(-err));
        err = err == -ENOTDIR ? -ENOENT : err;
    } else if (!found.n) {
        snprintf(error, len,
                 "'%s' is neither a run folder nor a folder of them: no run.json is there", path);
        err = -ENOENT;
    }
    struct dated_run *runs = xcalloc(found.n, sizeof(*runs));
    size_t n = 0;

    while (!err && n < found.n) {
        err = date(&runs[n], found.all[n], error, len);
        n++;
    }
    if (!err)
        qsort(runs, n, sizeof(*runs), compare_starts);
    for (size_t i = 0; i < n; i++) {
        if (!err)
            *ARRAY_ADD(paths->all, paths->n) = xstrdup(runs[i].path);
        free(runs[i].started);
    }
    free(runs);
    run_paths_release(&found);
    return err;
}

static const json_t *meta_of(const struct pairs *p, size_t run)
{
    return p->report.runs[run].meta;
}

/* What run.json says of the run of two targets that it is part of; "" where it says nothing. */
static const char *sides_against(const struct pairs *p, size_t run, const char *key)
{
    const json_t *against = json_object_get(meta_of(p, run), "against");
    const char *text = json_string_value(json_object_get(against, key));

    return text ? text : "";
}

static bool are_the_two_targets(const struct pairs *p, size_t x, size_t y)
{
    const char *pair = sides_against(p, x, "pair");

    return *pair && !strcmp(pair, sides_against(p, y, "pair")) &&
           strcmp(sides_against(p, x, "side"), sides_against(p, y, "side")) != 0;
}

/* The run of the other side that was measured in turn with this one (plumb run --against);
 * SIZE_MAX: none there. */
static size_t sides_partner(const struct pairs *p, size_t run)
{
    bool of_a = run < p->n_a;

    for (size_t other = of_a ? p->n_a : 0; other < (of_a ? p->report.n_runs : p->n_a); other++)
        if (are_the_two_targets(p, run, other))
            return other;
    return SIZE_MAX;
}

static bool has_partner(const struct pairs *p, size_t run)
{
    size_t partner = sides_partner(p, run);

    return partner != SIZE_MAX && sides_partner(p, partner) == run;
}

bool sides_in_turn(const struct pairs *p)
{
    bool all = true;

    for (size_t run = 0; all && run < p->report.n_runs; run++)
        all = has_partner(p, run);
    return all;
}

size_t pairs_without_partner(const struct pairs *p, size_t *first)
{
    size_t n = 0;

    *first = SIZE_MAX;
    for (size_t run = 0; run < p->report.n_runs; run++) {
        if (has_partner(p, run))
            continue;
        *first = n++ ? *first : run;
    }
    return n < p->report.n_runs ? n : 0;
}

bool pairs_is_level(const struct pairs *p, size_t run)
{
    return run >= p->n_a || !p->roles || p->roles[run] == PAIRS_LEVEL;
}

int sides_refuse_mixed(const struct pairs *p, char *error, size_t len)
{
    for (size_t x = 0; x < p->report.n_runs; x++)
        for (size_t y = x + 1; y < p->report.n_runs; y++) {
            if ((x < p->n_a) != (y < p->n_a) || !pairs_is_level(p, x) || !pairs_is_level(p, y) ||
                !are_the_two_targets(p, x, y))
                continue;
            snprintf(error, len,
                     "'%.300s' and '%.300s' are the two targets of one plumb run --against, and "
                     "would be averaged on one side: name the folder of both alone to hold b "
                     "against a (plumb compare PAIR), or one of the two on each side",
                     p->report.runs[x].path, p->report.runs[y].path);
            return -EPROTO;
        }
    return 0;
}

static bool same_text(const json_t *x, const json_t *y, const char *key)
{
    const json_t *value = json_object_get(x, key);

    return json_is_string(value) && json_equal(value, json_object_get(y, key));
}

bool pairs_same_run(const struct run_folder *x, const struct run_folder *y)
{
    char *real_x = realpath(x->path, NULL), *real_y = realpath(y->path, NULL);
    bool same = real_x && real_y && !strcmp(real_x, real_y);

    free(real_x);
    free(real_y);
    return same ||
           (same_text(x->meta, y->meta, "run") && same_text(x->meta, y->meta, "started_utc") &&
            same_text(json_object_get(json_object_get(x->meta, "machine"), "host"),
                      json_object_get(json_object_get(y->meta, "machine"), "host"), "hostname"));
}

static bool is_same_run(const struct pairs *p, size_t x, size_t y)
{
    return pairs_same_run(&p->report.runs[x], &p->report.runs[y]);
}

int sides_refuse_twice(const struct pairs *p, char *error, size_t len)
{
    for (size_t x = 0; x < p->report.n_runs; x++)
        for (size_t y = x + 1; y < (x < p->n_a ? p->n_a : p->report.n_runs); y++) {
            const char *path_x = p->report.runs[x].path, *path_y = p->report.runs[y].path;

            if (!is_same_run(p, x, y))
                continue;
            if (!strcmp(path_x, path_y))
                snprintf(error, len,
                         "'%.300s' is named twice on one side: its launches would count as those "
                         "of two runs, so name it once",
                         path_x);
            else
                snprintf(error, len,
                         "'%.300s' and '%.300s' on one side are the same run: its launches would "
                         "count as those of two, so leave one out",
                         path_x, path_y);
            return -EEXIST;
        }
    return 0;
}

int pairs_refuse_same(const struct pairs *p, char *error, size_t len)
{
    for (size_t x = 0; x < p->n_a; x++)
        for (size_t y = p->n_a; y < p->report.n_runs; y++) {
            if (!is_same_run(p, x, y))
                continue;
            snprintf(error, len,
                     "the same run is on both sides, in '%.300s' and in '%.300s': name two runs",
                     p->report.runs[x].path, p->report.runs[y].path);
            return -EEXIST;
        }
    return 0;
}

const char *pairs_unfinished(const struct pairs *p, size_t *n)
{
    const char *first = "";

    *n = 0;
    for (size_t run = 0; run < p->report.n_runs; run++) {
        const char *state = json_string_value(json_object_get(meta_of(p, run), "state"));

        if (!state || !strcmp(state, "complete"))
            continue;
        first = *n ? first : state;
        ++*n;
    }
    return first;
}

/* ---- Launches that were measured in turn, side by side ---- */

/* The row of that launch whose value counts; SIZE_MAX: none. *twice: there are several. */
static size_t partner_of(const struct report_rows *rows, const struct report_point *p,
                         const char *repeat, double steal_limit, bool *twice)
{
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < p->n_rows; i++) {
        if (!row_counts(rows, p->rows[i], steal_limit) ||
            strcmp(row_text(rows, p->rows[i], FIELD_REPEAT), repeat) != 0)
            continue;
        *twice |= found != SIZE_MAX;
        found = p->rows[i];
    }
    return found;
}

static int compare_turns(const void *x, const void *y)
{
    const struct planned_turn *a = x, *b = y;
    int d = strcmp(a->case_id, b->case_id);

    return d ? d : strcmp(a->repeat, b->repeat);
}

void turns_read(struct pairing *g)
{
    struct pool *pool = &g->p->report.pool;
    size_t n = g->p->report.n_runs;

    g->turns = pool_alloc(pool, n, sizeof(*g->turns));
    for (size_t i = 0; i < n; i++) {
        size_t lines = g->p->report.runs[i].plan.n_rows;

        g->turns[i].all = pool_alloc(pool, lines, sizeof(*g->turns[i].all));
        struct run_turns *turns = &g->turns[i];
        const struct table *plan = &g->p->report.runs[i].plan;

        if (table_column(plan, "turn") != TABLE_NO_COLUMN) {
            for (turns->n = 0; turns->n < plan->n_rows; turns->n++) {
                struct planned_turn *t = &turns->all[turns->n];

                *t = (struct planned_turn){.case_id = table_text(plan, turns->n, "case"),
                                           .repeat = table_text(plan, turns->n, "repeat")};
                if (!launch_turn_parse(table_text(plan, turns->n, "turn"), &t->turn))
                    t->turn = TURN_NONE;
            }
            qsort(turns->all, turns->n, sizeof(*turns->all), compare_turns);
        }
    }
}

static enum launch_turn turn_of_row(const struct run_turns *turns, const struct report_rows *rows,
                                    size_t row)
{
    const struct planned_turn key = {.case_id = row_text(rows, row, FIELD_CASE),
                                     .repeat = row_text(rows, row, FIELD_REPEAT)};
    const struct planned_turn *found =
        bsearch(&key, turns->all, turns->n, sizeof(key), compare_turns);

    return found ? found->turn : TURN_NONE;
}

/* A case in one pair of runs: what each has, and the launches that both have, each beside its
 * partner. */
struct turn_side {
    unsigned boot;
    const struct report_rows *rows;
    const struct report_point *point;
    const struct run_turns *turns;
    double *values, *sustained;
    bool *first;
};

struct turn {
    struct turn_side a, b;
    size_t n;
    bool unknown; /* of a launch, who went first */
};

static struct turn_side side_of(const struct pairing *g, size_t run, const struct report_bench *b,
                                const struct report_case *c, size_t most)
{
    struct pool *pool = &g->p->report.pool;

    return (struct turn_side){g->boots[run],
                              &b->rows[run],
                              &c->points[run],
                              &g->turns[run],
                              pool_alloc(pool, most, sizeof(double)),
                              pool_alloc(pool, most, sizeof(double)),
                              pool_alloc(pool, most, sizeof(bool))};
}

static void add_launches(struct turn *t, double limit, bool *twice)
{
    for (size_t i = 0; i < t->a.point->n_rows; i++) {
        size_t row = t->a.point->rows[i];
        const char *repeat = row_text(t->a.rows, row, FIELD_REPEAT);
        size_t own = partner_of(t->a.rows, t->a.point, repeat, limit, twice);
        size_t other = partner_of(t->b.rows, t->b.point, repeat, limit, twice);

        if (own == row && other != SIZE_MAX) {
            enum launch_turn a = turn_of_row(t->a.turns, t->a.rows, own);
            enum launch_turn b = turn_of_row(t->b.turns, t->b.rows, other);

            t->unknown |= !a || !b || a == b;
            t->a.values[t->n] = row_number(t->a.rows, own, FIELD_VALUE);
            t->b.values[t->n] = row_number(t->b.rows, other, FIELD_VALUE);
            t->a.sustained[t->n] = row_number(t->a.rows, own, FIELD_SUSTAINED);
            t->b.sustained[t->n] = row_number(t->b.rows, other, FIELD_SUSTAINED);
            t->a.first[t->n] = a == TURN_FIRST;
            t->b.first[t->n++] = b == TURN_FIRST;
        }
    }
}

static struct decide_run run_of(const struct turn *t, const struct turn_side *side)
{
    return (struct decide_run){.values = side->values,
                               .sustained =
                                   are_known(side->sustained, t->n) ? side->sustained : NULL,
                               .n = t->n,
                               .boot = side->boot,
                               .went_first = t->unknown ? NULL : side->first};
}

bool launches_align(struct pairing *g, const struct report_bench *b, const struct report_case *c,
                    struct decide_case *decide)
{
    struct pool *pool = &g->p->report.pool;
    size_t n = g->p->n_a, all = 0;
    struct decide_run *runs_a = pool_alloc(pool, n, sizeof(*runs_a));
    struct decide_run *runs_b = pool_alloc(pool, n, sizeof(*runs_b));
    bool twice = false;

    for (size_t i = 0; i < n; i++) {
        size_t run = g->a.first + i, most = c->points[run].n_rows;
        struct turn t = {.a = side_of(g, run, b, c, most),
                         .b = side_of(g, sides_partner(g->p, run), b, c, most)};

        add_launches(&t, g->options->steal_limit, &twice);
        runs_a[i] = run_of(&t, &t.a);
        runs_b[i] = run_of(&t, &t.b);
        all += t.n;
    }
    if (twice || all < 2)
        return false;
    decide->a = (struct decide_side){runs_a, n};
    decide->b = (struct decide_side){runs_b, n};
    return true;
}
