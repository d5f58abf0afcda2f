/* SPDX-License-Identifier: Apache-2.0 */
/* plumb import: the command. See import.h. */
#include "harness/import/import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/option.h"
#include "core/program.h"
#include "core/text.h"
#include "harness/command.h"
#include "harness/plan/plan.h"
#include "harness/run/run.h"
#include "harness/store/store.h"
#include "harness/text.h"

#define KNOWN_MAX 32

struct options {
    const char *out, *set;
    bool any_version, help;
};

struct importing {
    struct options options;
    struct import_known known[KNOWN_MAX + 1];
    struct import_file *files;
    struct buffer *texts; /* of the files */
    size_t n;
    struct bench_list benches;
    struct plan plan;
    json_t *command; /* the words of the command line, as they were given */
    char path[4096], name[256], error[1024];
};

#define AT(member) offsetof(struct options, member)

static const struct opt table[] = {
    {OPTION("out", OPT_STRING, out, "DIR", "run folder to make; default: results/imported-TIME"),
     .letter = 'o'},
    {OPTION("set", OPT_STRING, set, "COLUMN=VALUE",
            "what is known and not in the files; may be repeated: --set size=512M"),
     .flags = OPT_AGAIN},
    {OPTION("any-version", OPT_FLAG, any_version, NULL,
            "read outputs of versions that are not known here, too")},
    {OPTION("help", OPT_FLAG, help, NULL, "show this text"), .letter = 'h'},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{
    puts(
        "plumb import: rows of a run folder out of what programs of others printed\n"
        "\n"
        "usage: plumb import FILE... [--out DIR] [--set COLUMN=VALUE]...\n"
        "\n"
        "Reads outputs of nvbandwidth and nccl-tests (text and JSON), perftest's ib_* (text and\n"
        "JSON), iperf3 (JSON) and OSU's benchmarks. A run that a vendor sent can then be compared\n"
        "with one that was measured here. Each file is a launch: several files of one program and\n"
        "case are launches of one case.\n");
    opts_help(o, stdout);
    puts("\n"
         "examples:\n"
         "  plumb import vendor/all_reduce.json --out results/vendor\n"
         "  plumb import nvbandwidth.json --set size=512M --out results/vendor\n"
         "  plumb import old-nccl-tests.txt --set collective=all_reduce\n"
         "  plumb compare results/vendor results/here\n"
         "\n"
         "exit: 0 all files are in the folder; 2 usage; 4 the folder cannot be written;\n"
         "      5 a file is damaged, cut off, of an unknown version or of another program, or has "
         "no\n"
         "        case here: then no folder is made");
}

/* ---- What the user knows ---- */

/* Each --set of the command line. */
static int take_known(struct importing *im, const struct opt_values *set)
{
    for (size_t i = 0; i < set->n; i++) {
        char *word = set->texts[i], *at = strchr(word, '=');

        if (!at || at == word || !at[1] || i == KNOWN_MAX) {
            snprintf(im->error, sizeof(im->error), "--set takes COLUMN=VALUE, not '%.100s'", word);
            return -EINVAL;
        }
        *at = 0;
        im->known[i] = (struct import_known){.column = word, .value = at + 1};
    }
    return 0;
}

/* ---- Files ---- */

static const char *why_left(struct pool *pool, const struct import_left *left)
{
    return left->lack == LACK_PURPOSE ? left->why
           : left->lack == LACK_NAME
               ? pool_text(pool, "the file does not state its %s: add --set %.*s=VALUE", left->why,
                           (int)strcspn(left->why, ","), left->why)
               : "no benchmark has such a case";
}

static int read_file(struct importing *im, size_t i)
{
    struct import_file *f = &im->files[i];
    int err = file_read(f->path, FOREIGN_BYTES_MAX, &im->texts[i]);

    if (err) {
        snprintf(im->error, sizeof(im->error), "cannot read '%.300s': %s", f->path, strerror(-err));
        return err;
    }
    for (size_t k = 0; k < i; k++)
        if (im->texts[k].size == im->texts[i].size && im->texts[i].size &&
            !memcmp(im->texts[k].text, im->texts[i].text, im->texts[i].size)) {
            snprintf(im->error, sizeof(im->error), "'%.300s' is the same as '%.300s'", f->path,
                     im->files[k].path);
            return -EINVAL;
        }
    err = foreign_read(f->path, im->texts[i].text ? im->texts[i].text : "", im->texts[i].size,
                       im->options.any_version, &f->output, im->error, sizeof(im->error));
    if (err == -EPROTO)
        strncat(im->error, "; --any-version reads it all the same",
                sizeof(im->error) - strlen(im->error) - 1);
    if (!err)
        err = import_rows_make(f, &im->benches, im->known, im->error, sizeof(im->error));
    if (!err && !f->n_rows) {
        struct pool *pool = &f->output.pool;
        const char *all = "";

        for (size_t j = 0; j < f->n_left; j++)
            all =
                pool_join(pool, all, "; ",
                          pool_text(pool, "%s (%s)", why_left(pool, &f->left[j]), f->left[j].such));
        snprintf(im->error, sizeof(im->error), "'%.300s': not imported: %.600s", f->path, all);
        err = -ENOENT;
    }
    return err;
}

/* ---- The plan: a launch for each file and benchmark ---- */

/* The same cases are one case of the plan, launched again. */
static void number_launch(struct importing *im, const char **keys, const char *key)
{
    struct launch *l = &im->plan.launches[im->plan.n];
    unsigned most = 0;

    l->repeat = 1;
    for (size_t i = 0; i < im->plan.n; i++) {
        const struct launch *o = &im->plan.launches[i];

        most = o->case_number > most ? o->case_number : most;
        if (!strcmp(keys[i], key)) {
            l->case_number = o->case_number;
            l->repeat = o->repeat + 1;
        }
    }
    if (!l->case_number)
        l->case_number = most + 1;
    keys[im->plan.n] = key;
}

/* The values that the rows have of a column, each once, "8,64"; "" where one is not known. */
static const char *values_text(struct pool *pool, const struct import_rows *r, size_t column)
{
    const char *text = "";

    for (size_t i = 0; i < r->n; i++) {
        const char *value = r->rows[i].params[column];
        bool seen = false;

        if (strchr(value, '*') || strchr(value, ' '))
            return "";
        for (size_t k = 0; k < i; k++)
            seen = seen || !strcmp(r->rows[k].params[column], value);
        if (*value && !seen)
            text = pool_join(pool, text, ",", value);
    }
    return text;
}

/* Options of our benchmark that measure these cases, as far as the file tells. */
static char *arguments_of(struct import_file *f, const struct import_rows *r)
{
    struct pool *pool = &f->output.pool;
    const char *text = "";

    for (size_t i = 0; i < r->bench->n_columns; i++)
        for (const struct opt *o = r->bench->options; o->name; o++) {
            const char *values = values_text(pool, r, i);
            char name[64];

            snprintf(name, sizeof(name), "%s", r->bench->columns[i]);
            for (char *at = name; (at = strchr(at, '_')) != NULL;)
                *at = '-';
            if (!(o->flags & OPT_COLUMN) || strcmp(o->name, name) != 0 || !*values)
                continue;
            text = pool_join(pool, text, " ",
                             pool_join(pool, pool_text(pool, "--%s", name), " ",
                                       o->type == OPT_FLAG ? "" : values));
        }
    return xstrdup(text);
}

static void make_plan(struct importing *im)
{
    size_t most = 0;

    for (size_t i = 0; i < im->n; i++)
        most += im->files[i].n_benches;
    const char **keys = xcalloc(most, sizeof(*keys));
    im->plan.launches = xcalloc(most, sizeof(*im->plan.launches));
    for (size_t i = 0; i < im->n; i++)
        for (size_t k = 0; k < im->files[i].n_benches; k++) {
            struct import_rows *r = &im->files[i].benches[k];
            struct launch *l = &im->plan.launches[im->plan.n];

            number_launch(im, keys,
                          pool_text(&im->files[i].output.pool, "%s %s%s",
                                    im->files[i].output.format->program, r->bench->name, r->key));
            l->bench = xstrdup(r->bench->name);
            l->arguments = arguments_of(&im->files[i], r);
            l->from = xstrdup("");
            l->to = xstrdup("");
            l->hosts = xstrdup("");
            im->plan.n++;
        }
    free(keys);
}

/* ---- The folder ---- */

/* The machine is not this one. Where no file says when it was measured, the time is that of the
 * import: runs are ordered by it. */
static json_t *make_meta(const struct importing *im)
{
    json_t *meta = json_object(), *files = json_array(), *told = json_object();
    char utc[24];
    const char *first = "";

    for (size_t i = 0; i < im->n; i++) {
        const char *at = im->files[i].output.started;
        if (*at && (!*first || strcmp(at, first) < 0))
            first = at;
    }
    const char *now = clock_utc(utc, sizeof(utc)), *started = first;

    for (size_t i = 0; i < im->n; i++) {
        const struct import_file *f = &im->files[i];
        const struct foreign_output *out = &f->output;

        json_array_append_new(files, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i}", "file",
                                               f->name, "program", out->format->program, "format",
                                               out->format->kind, "version", out->version,
                                               "command", out->command, "host", out->host,
                                               "started", out->started, "rows", (int)f->n_rows));
    }
    for (size_t i = 0; i < im->benches.n; i++)
        json_object_set(told, im->benches.benches[i].name, im->benches.benches[i].described);
    json_object_set_new(meta, "schema", json_integer(ROW_SCHEMA_VERSION));
    json_object_set_new(meta, "program", json_string("plumbline"));
    json_object_set_new(meta, "version", json_string(PLUMB_VERSION));
    json_object_set_new(meta, "run", json_string(im->name));
    json_object_set_new(meta, "suite", json_string("imported"));
    json_object_set_new(meta, "only", json_null());
    json_object_set(meta, "command", im->command);
    json_object_set_new(meta, "started_utc", json_string(*started ? started : now));
    json_object_set_new(meta, "finished_utc", json_null());
    json_object_set_new(meta, "imported_utc", json_string(now));
    json_object_set_new(meta, "state", json_string("complete"));
    json_object_set_new(meta, "imported", files);
    json_object_set_new(meta, "machine", json_null());
    json_object_set_new(meta, "limits", json_array());
    json_object_set_new(meta, "benchmarks", told);
    return meta;
}

static int choose_path(struct importing *im)
{
    char *path = store_path(im->options.out, "imported", "", im->error, sizeof(im->error));

    if (!path)
        return -EACCES;
    snprintf(im->path, sizeof(im->path), "%s", path);
    free(path);
    const char *slash = strrchr(im->path, '/');
    snprintf(im->name, sizeof(im->name), "%.255s", slash ? slash + 1 : im->path);
    return 0;
}

static enum launch_state state_of(const struct import_rows *r)
{
    enum launch_state state = LAUNCH_SKIP;

    for (size_t i = 0; i < r->n; i++) {
        const char *status = r->rows[i].status;

        if (!strcmp(status, "wrong") || !strcmp(status, "failed"))
            return LAUNCH_FAIL;
        if (strcmp(status, "skipped") != 0)
            state = LAUNCH_DONE;
    }
    return state;
}

static int commit(struct importing *im, struct store *store, size_t launch, struct import_rows *r)
{
    struct launch *l = &im->plan.launches[launch];
    char *header = NULL, *rows = NULL, number[16];
    size_t header_size, rows_size;
    FILE *head = open_memstream(&header, &header_size), *to = open_memstream(&rows, &rows_size);

    if (!head || !to)
        alloc_fail(BUFSIZ);
    row_print_csv_header(head, r->names, r->bench->n_columns);
    snprintf(number, sizeof(number), "%u", l->case_number);
    for (size_t i = 0; i < r->n; i++) {
        r->rows[i].run = im->name;
        r->rows[i].case_id = number;
        r->rows[i].repeat = l->repeat;
        row_print_csv(to, &r->rows[i]);
    }
    if (fclose(head) || fclose(to))
        alloc_fail(rows_size);
    int err = store_commit(store, launch,
                           &(struct launch_record){.state = state_of(r),
                                                   .n_rows = (unsigned)r->n,
                                                   .header = header,
                                                   .rows = rows,
                                                   .samples = "",
                                                   .log = ""},
                           im->error, sizeof(im->error));
    free(header);
    free(rows);
    return err;
}

static int write_folder(struct importing *im)
{
    struct store *store = NULL;
    size_t launch = 0;
    json_t *meta = make_meta(im);
    int err = store_create(im->path, meta, &im->plan, &store, im->error, sizeof(im->error));

    for (size_t i = 0; !err && i < im->n; i++)
        for (size_t k = 0; !err && k < im->files[i].n_benches; k++)
            err = commit(im, store, launch++, &im->files[i].benches[k]);
    if (err == -EEXIST)
        snprintf(im->error, sizeof(im->error),
                 "'%.300s' is there already: name another folder with --out", im->path);
    int close_err = store_close(store);
    json_decref(meta);
    return err ? err : close_err;
}

/* ---- What was done ---- */

static void print_file(struct import_file *f, const char *last_unknown)
{
    const struct foreign_output *out = &f->output;

    printf("%s: %s, %s", f->name,
           pool_join(&f->output.pool, out->format->program, " ", out->version),
           text_count(f->n_rows, "row").text);
    for (size_t i = 0; i < f->n_benches; i++)
        printf("%s%s", i ? ", " : " of ", f->benches[i].bench->name);
    putchar('\n');
    for (size_t i = 0; i < f->n_left; i++) {
        const struct import_left *left = &f->left[i];

        wrap_print(stdout,
                   pool_text(&f->output.pool, "left out: %s, such as %s: %s",
                             text_count(left->n, "result").text, left->such,
                             why_left(&f->output.pool, left)),
                   4, 80);
    }
    if (*f->unknown && strcmp(f->unknown, last_unknown) != 0) {
        char text[600];
        snprintf(text, sizeof(text), "not told, so that any value fits: %s", f->unknown);
        wrap_print(stdout, text, 4, 80);
    }
}

static int import(struct importing *im, char **paths)
{
    int err = 0;

    bench_list_load(&im->benches);
    for (size_t i = 0; !err && i < im->n; i++) {
        const char *path = paths[i], *slash = strrchr(path, '/');

        im->files[i].path = path;
        im->files[i].name = slash ? slash + 1 : path;
        err = read_file(im, i);
    }
    for (const struct import_known *k = im->known; !err && k->column; k++)
        if (!k->used) {
            snprintf(im->error, sizeof(im->error), "no benchmark of these files has a column '%s'",
                     k->column);
            err = -EINVAL;
        }
    if (err)
        return err == -EINVAL ? EXIT_USAGE : EXIT_DAMAGED;
    err = choose_path(im);
    if (!err) {
        make_plan(im);
        err = write_folder(im);
    }
    if (err)
        return err == -EEXIST ? EXIT_USAGE : EXIT_INCOMPLETE;
    for (size_t i = 0; i < im->n; i++)
        print_file(&im->files[i], i ? im->files[i - 1].unknown : "");
    printf("run folder: %s\n", im->path);
    return EXIT_GOOD;
}

static int run(const struct opts *o, void *context)
{
    struct importing *im = context;
    int status = EXIT_USAGE;

    if (!o->n_args) {
        snprintf(im->error, sizeof(im->error), "it takes files: see --help");
    } else if (!take_known(im, opts_values(o, "set"))) {
        im->n = o->n_args;
        im->files = xcalloc(im->n, sizeof(*im->files));
        im->texts = xcalloc(im->n, sizeof(*im->texts));
        status = import(im, o->args);
    }
    if (status != EXIT_GOOD)
        fprintf(stderr, "plumb import: %s\n", im->error);
    for (size_t i = 0; i < im->n; i++) {
        foreign_release(&im->files[i].output);
        buffer_release(&im->texts[i]);
    }
    free(im->files);
    free(im->texts);
    plan_release(&im->plan);
    bench_list_release(&im->benches);
    return status;
}

int cmd_import(int argc, char **argv)
{
    struct importing im = {.command = run_meta_command(argc, argv)};
    const struct command command = {.name = "import",
                                    .table = table,
                                    .options = &im.options,
                                    .help = &im.options.help,
                                    .print_help = print_help,
                                    .run = run,
                                    .context = &im};
    int status = command_run(&command, argc, argv);

    json_decref(im.command);
    return status;
}
