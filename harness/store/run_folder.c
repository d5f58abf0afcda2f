/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a run folder: see run_folder.h. */
#include "harness/store/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/row.h"
#include "core/units.h"
#include "harness/machine/fact.h"
#include "harness/plan/plan.h"
#include "harness/text.h"

#define FILE_BYTES_MAX ((size_t)16 << 30)

struct error {
    char *text;
    size_t len;
};

__attribute__((format(printf, 3, 4))) static int fail(struct error e, int code, const char *format,
                                                      ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(e.text, e.len, format, args);
    va_end(args);
    return code;
}

/* A file of a run folder that is not there makes the folder a damaged one. */
static int read_file(const char *path, struct buffer *b, struct error e)
{
    int err = file_read(path, FILE_BYTES_MAX, b);

    if (err == -ENOENT)
        return fail(e, -EBADMSG, "\"%s\" is missing from the run folder", path);
    if (err)
        return fail(e, err, "cannot read \"%s\": %s", path, strerror(-err));
    return 0;
}

bool run_schema_fits(const json_t *meta, const char *path, char *error, size_t len)
{
    const json_t *schema = json_object_get(meta, "schema");

    if (!json_is_integer(schema))
        snprintf(
            error, len,
            "\"%s\" is no JSON object with a schema number: it is damaged, or of another program",
            path);
    else if (json_integer_value(schema) != ROW_SCHEMA_VERSION)
        snprintf(error, len,
                 "\"%s\" has schema %" JSON_INTEGER_FORMAT
                 ", and this program reads schema %d: use the program that made it, or measure "
                 "again",
                 path, json_integer_value(schema), ROW_SCHEMA_VERSION);
    else
        return true;
    return false;
}

int run_folder_meta(const char *path, json_t **meta, char *error, size_t len)
{
    struct error e = {error, len};
    struct buffer text = {0};
    json_error_t at;

    *meta = NULL;
    /* A folder without run.json is no run folder; one with it that lacks something is a damaged
     * one. Of a folder that cannot be searched, neither is known. */
    if (!run_folder_is(path))
        return errno == EACCES ? fail(e, -EACCES, "cannot read \"%s\": %s", path, strerror(EACCES))
               : access(path, F_OK)
                   ? fail(e, -ENOENT, "there is no run folder \"%s\"", path)
                   : fail(e, -ENOENT, "\"%s\" is no run folder: it has no run.json", path);
    char *file = xasprintf("%s/run.json", path);
    int err = read_file(file, &text, e);

    if (!err) {
        *meta = json_loadb(text.text, text.size, JSON_REJECT_DUPLICATES, &at);
        if (!*meta)
            err = fail(e, -EBADMSG, "\"%s\" is damaged at line %d: %s", file, at.line, at.text);
        else if (!run_schema_fits(*meta, file, e.text, e.len))
            err = -EBADMSG;
    }
    if (err) {
        json_decref(*meta);
        *meta = NULL;
    }
    buffer_release(&text);
    free(file);
    return err;
}

static const char *const plan_columns[] = {"state", "rows",      "order",     "case", "repeat",
                                           "bench", "arguments", "timeout_s", NULL};

/* A name that goes into a path: nothing that could leave the folder. */
static bool is_bench_name(const char *text)
{
    return *text && strlen(text) < sizeof(((struct run_bench *)0)->name) &&
           !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-")];
}

static int check_plan(const struct table *plan, const char *path, struct error e)
{
    enum launch_state known;
    uint64_t rows;

    for (size_t i = 0; plan_columns[i]; i++)
        if (table_column(plan, plan_columns[i]) == TABLE_NO_COLUMN)
            return fail(e, -EBADMSG, "\"%s\" is damaged: it has no column \"%s\"", path,
                        plan_columns[i]);
    for (size_t i = 0; i < plan->n_rows; i++) {
        const char *state = table_text(plan, i, "state"), *count = table_text(plan, i, "rows");

        if (!launch_state_parse(state, &known) || !is_bench_name(table_text(plan, i, "bench")))
            return fail(e, -EBADMSG, "\"%s\" is damaged: launch %zu has state \"%s\", bench \"%s\"",
                        path, i + 1, state, table_text(plan, i, "bench"));
        if (known != LAUNCH_TODO && units_parse_u64(count, &rows))
            return fail(e, -EBADMSG, "\"%s\" is damaged: launch %zu has \"%s\" rows", path, i + 1,
                        count);
    }
    return 0;
}

/* One launch of the plan, with its rows counted. */
struct plan_line {
    const char *case_id, *repeat, *bench;
    size_t line; /* of the plan */
    uint64_t promised, found;
    bool finished;
};

static int compare_launches(const void *a, const void *b)
{
    const struct plan_line *x = a, *y = b;
    int d = strcmp(x->bench, y->bench);

    d = d ? d : strcmp(x->case_id, y->case_id);
    return d ? d : strcmp(x->repeat, y->repeat);
}

struct plan_lines {
    struct plan_line *all; /* sorted */
    size_t n;
};

static struct plan_lines list_launches(const struct table *plan)
{
    struct plan_lines out = {.all = xcalloc(plan->n_rows, sizeof(*out.all))};
    size_t columns[5];

    for (size_t k = 0; k < 5; k++)
        columns[k] =
            table_column(plan, (const char *[]){"state", "rows", "case", "repeat", "bench"}[k]);
    for (size_t i = 0; i < plan->n_rows; i++) {
        struct plan_line *l = &out.all[out.n++];

        l->line = i;
        l->finished = strcmp(table_cell(plan, i, columns[0]), "todo") != 0;
        if (l->finished)
            units_parse_u64(table_cell(plan, i, columns[1]), &l->promised);
        l->case_id = table_cell(plan, i, columns[2]);
        l->repeat = table_cell(plan, i, columns[3]);
        l->bench = table_cell(plan, i, columns[4]);
    }
    qsort(out.all, out.n, sizeof(*out.all), compare_launches);
    return out;
}

static bool is_lost(const struct plan_line *l)
{
    return l->finished && l->found != l->promised;
}

/* Counts the rows of each launch, and leaves those of launches that are whole. */
static void keep_committed(struct run_bench *b, const struct plan_lines *launches)
{
    struct plan_line **owner = xcalloc(b->rows.n_rows, sizeof(*owner)); /* NULL: of none */
    bool *keep = xcalloc(b->rows.n_rows, sizeof(*keep));
    size_t case_column = table_column(&b->rows, "case");
    size_t repeat_column = table_column(&b->rows, "repeat");

    for (size_t i = 0; i < b->rows.n_rows; i++) {
        const struct plan_line key = {.bench = b->name,
                                      .case_id = table_cell(&b->rows, i, case_column),
                                      .repeat = table_cell(&b->rows, i, repeat_column)};

        owner[i] = bsearch(&key, launches->all, launches->n, sizeof(key), compare_launches);
        if (owner[i])
            owner[i]->found++;
    }
    for (size_t i = 0; i < b->rows.n_rows; i++)
        keep[i] = owner[i] && owner[i]->finished && !is_lost(owner[i]);
    table_keep(&b->rows, keep);
    free(keep);
    free(owner);
}

/* Without these nothing can be told of a row; any other may be missing, and is empty then. */
static const char *const needed_columns[] = {
    "metric", "unit",   "value",  "ci_low", "ci_high", "confidence", "samples", "limit",    "stop",
    "origin", "status", "reason", "run",    "case",    "repeat",     "host",    "time_utc", NULL,
};

/* ---- Launches that ended and whose rows are not all there ---- */

/* The row of such a launch, with what is known of it. */
static void add_lost_row(const struct run_folder *run, struct run_bench *b,
                         const struct plan_line *l)
{
    static const char *const of_plan[] = {"case", "repeat", "from", "to", "hosts"};
    size_t row = table_add_row(&b->rows), len;
    char text[256];

    for (size_t i = 0; i < table_column(&b->rows, "metric"); i++) { /* parameters stand before it */
        const char *column = b->rows.columns[i];
        const char *given =
            argument_value(table_text(&run->plan, l->line, "arguments"), column, &len);

        if (!given || memchr(given, ',', len))
            continue;
        snprintf(text, sizeof(text), "%.*s", (int)len, given);
        table_set(&b->rows, row, column, text);
    }
    for (size_t i = 0; i < sizeof(of_plan) / sizeof(*of_plan); i++)
        table_set(&b->rows, row, of_plan[i], table_text(&run->plan, l->line, of_plan[i]));
    if (l->found > l->promised)
        snprintf(text, sizeof(text),
                 "%s.csv has %" PRIu64 " rows of it, and plan.csv promises %" PRIu64
                 "; plumb run --resume measures it again",
                 b->name, l->found, l->promised);
    else
        snprintf(text, sizeof(text),
                 "its rows are missing: %s.csv has %" PRIu64 " of %" PRIu64
                 "; plumb run --resume measures it again",
                 b->name, l->found, l->promised);
    table_set(&b->rows, row, "reason", text);
    table_set(&b->rows, row, "status", "failed");
    table_set(&b->rows, row, "origin", "measured");
    table_set(&b->rows, row, "run", fact_name(run->meta, "run"));
    table_set(&b->rows, row, "host", fact_name(run->meta, "machine.host.hostname"));
}

/* Nobody may take such a launch for one that was not asked for: it has failed, with a row that says
 * why. */
static int tell_lost(struct run_folder *run, struct run_bench *b, const struct plan_lines *launches,
                     struct error e)
{
    for (size_t i = 0; i < launches->n; i++) {
        const struct plan_line *l = &launches->all[i];

        if (strcmp(l->bench, b->name) != 0 || !is_lost(l))
            continue;
        if (!b->rows.n_columns) {
            /* A file that lost its header, too, has the columns that are needed. */
            char text[512] = "";

            for (size_t k = 0; needed_columns[k]; k++)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", k ? "," : "",
                         needed_columns[k]);
            strcat(text, "\n");
            table_release(&b->rows);
            int err = table_parse(b->name, text, strlen(text), &b->rows, e.text, e.len);
            if (err)
                return err;
        }
        run->n_lost_rows += (size_t)l->promised;
        table_set(&run->plan, l->line, "state", "fail");
        add_lost_row(run, b, l);
    }
    return 0;
}

static int load_bench(struct run_folder *run, struct run_bench *b,
                      const struct plan_lines *launches, struct error e)
{
    char *path = xasprintf("%s/%s.csv", run->path, b->name);
    struct buffer text = {0};
    int err = 0, torn;

    bool promised = false; /* a benchmark whose launches all ended without a row has no file */

    for (size_t i = 0; i < launches->n; i++)
        promised |= launches->all[i].promised && !strcmp(launches->all[i].bench, b->name);
    if (promised || !access(path, F_OK))
        err = read_file(path, &text, e);
    if (!err)
        err = table_parse_tail(path, text.text ? text.text : "", text.size, &b->rows, &torn, e.text,
                               e.len);
    for (size_t i = 0; !err && b->rows.n_columns && needed_columns[i]; i++)
        if (table_column(&b->rows, needed_columns[i]) == TABLE_NO_COLUMN)
            err = fail(e, -EBADMSG, "\"%s\" is damaged: it has no column \"%s\"", path,
                       needed_columns[i]);
    if (!err) {
        keep_committed(b, launches);
        err = tell_lost(run, b, launches, e);
    }
    buffer_release(&text);
    free(path);
    return err;
}

static int load_benches(struct run_folder *run, struct error e)
{
    struct plan_lines launches = list_launches(&run->plan);
    int err = 0;

    run->benches = xcalloc(launches.n, sizeof(*run->benches));
    for (size_t i = 0; !err && i < launches.n; i++) {
        struct run_bench *b = &run->benches[run->n_benches];

        if (i && !strcmp(launches.all[i].bench, launches.all[i - 1].bench))
            continue;
        run->n_benches++;
        strcpy(b->name, launches.all[i].bench);
        err = load_bench(run, b, &launches, e);
    }
    free(launches.all);
    return err;
}

bool run_folder_is(const char *path)
{
    char *file = xasprintf("%s/run.json", path);
    bool is = !access(file, F_OK);

    free(file);
    return is;
}

int run_folders_in(const char *path, struct run_paths *paths)
{
    struct dirent **names = NULL;

    if (run_folder_is(path)) {
        *ARRAY_ADD(paths->all, paths->n) = xstrdup(path);
        return 0;
    }
    int n = scandir(path, &names, NULL, alphasort);
    if (n < 0)
        return -errno;
    for (int i = 0; i < n; i++) {
        char *inner = xasprintf("%s/%s", path, names[i]->d_name);

        if (names[i]->d_name[0] != '.' && run_folder_is(inner))
            *ARRAY_ADD(paths->all, paths->n) = inner;
        else
            free(inner);
        free(names[i]);
    }
    free(names);
    return 0;
}

void run_paths_release(struct run_paths *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        free(paths->all[i]);
    free(paths->all);
    *paths = (struct run_paths){0};
}

int run_folder_load(const char *path, struct run_folder *run, char *error, size_t len)
{
    struct error e = {error, len};

    *run = (struct run_folder){0};
    int err = run_folder_meta(path, &run->meta, error, len);
    if (err)
        return err;
    run->path = xstrdup(path);
    char *file = xasprintf("%s/plan.csv", path);
    struct buffer text = {0};

    err = read_file(file, &text, e);
    if (!err)
        err = table_parse(file, text.text, text.size, &run->plan, e.text, e.len);
    if (!err)
        err = check_plan(&run->plan, file, e);
    buffer_release(&text);
    free(file);
    if (!err)
        err = load_benches(run, e);
    if (err)
        run_folder_release(run);
    return err;
}

void run_folder_release(struct run_folder *run)
{
    for (size_t i = 0; i < run->n_benches; i++)
        table_release(&run->benches[i].rows);
    free(run->benches);
    table_release(&run->plan);
    json_decref(run->meta);
    free(run->path);
    *run = (struct run_folder){0};
}
