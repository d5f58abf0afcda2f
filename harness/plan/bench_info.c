/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks there are: see bench_info.h. */
#include "harness/plan/bench_info.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/units.h"
#include "harness/child.h"
#include "harness/store/table.h"
#include "harness/text.h"

#define PREFIX              "plumb-"
#define DESCRIBE_TIMEOUT_NS 20000000000ull

int program_folder(char *path, size_t len)
{
    ssize_t n = readlink("/proc/self/exe", path, len - 1);

    if (n < 0)
        return -errno;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    return 0;
}

/* Calls fn for the program's own folder, then each of PATH, until it returns non-zero. */
static int each_folder(int (*fn)(const char *folder, void *arg), void *arg)
{
    char own[4096];
    const char *env = getenv("PATH");
    int stop = program_folder(own, sizeof(own)) ? 0 : fn(own, arg);
    char *path = strdup(env ? env : ""), *save = path;

    for (char *folder; !stop && (folder = strsep(&save, ":")) != NULL;)
        if (*folder)
            stop = fn(folder, arg);
    free(path);
    return stop;
}

struct finding {
    const char *name;
    char *path;
};

static int find_in(const char *folder, void *arg)
{
    struct finding *f = arg;

    if (asprintf(&f->path, "%s/" PREFIX "%s", folder, f->name) < 0) {
        f->path = NULL;
        return 1;
    }
    if (!access(f->path, X_OK))
        return 1;
    free(f->path);
    f->path = NULL;
    return 0;
}

char *bench_find_program(const char *name)
{
    struct finding f = {.name = name};

    if (!*name || strchr(name, '/'))
        return NULL;
    each_folder(find_in, &f);
    return f.path;
}

static char **split(const char *text, char separator, size_t *n)
{
    char **parts = NULL, *copy = strdup(text), *save = copy;
    char delimiters[2] = {separator, 0};

    *n = 0;
    for (char *part; copy && *copy && (part = strsep(&save, delimiters)) != NULL;) {
        char **grown = realloc(parts, (*n + 2) * sizeof(*parts));
        if (!grown)
            break;
        parts = grown;
        parts[(*n)++] = strdup(part);
        parts[*n] = NULL;
    }
    free(copy);
    return parts;
}

static int type_of(const char *name, enum opt_type *type)
{
    for (int t = OPT_FLAG; t <= OPT_CUSTOM; t++) {
        if (!strcmp(opt_type_name((enum opt_type)t), name)) {
            *type = (enum opt_type)t;
            return 0;
        }
    }
    return -EINVAL;
}

/* A custom text is judged by the benchmark itself when the plan is made. */
static int accept_any(const char *text, void *value, char *error, size_t len)
{
    (void)text, (void)value, (void)error, (void)len;
    return 0;
}

static int read_option(const struct table *t, size_t row, struct opt *opt, char **def)
{
    size_t n_choices;
    char *semicolon;

    opt->name = strdup(table_text(t, row, "name"));
    opt->help = strdup(table_text(t, row, "help"));
    opt->parse = accept_any;
    if (!strcmp(table_text(t, row, "list"), "1"))
        opt->flags |= OPT_LIST;
    if (!strcmp(table_text(t, row, "column"), "1"))
        opt->flags |= OPT_COLUMN;
    if (units_parse_u64(table_text(t, row, "min"), &opt->min))
        opt->min = 0;
    if (units_parse_u64(table_text(t, row, "max"), &opt->max))
        opt->max = 0;
    opt->choices = (const char *const *)split(table_text(t, row, "choices"), ';', &n_choices);
    *def = strdup(table_text(t, row, "default"));
    for (semicolon = *def; semicolon && (semicolon = strchr(semicolon, ';')) != NULL;)
        *semicolon = ',';
    return type_of(table_text(t, row, "type"), &opt->type);
}

static int read_options(struct bench_info *b, const char *csv, char *error, size_t len)
{
    struct table t;
    int err = table_parse(b->path, csv, strlen(csv), &t, error, len);

    if (err)
        return err;
    b->options = calloc(t.n_rows + 1, sizeof(*b->options));
    b->defaults = calloc(t.n_rows + 1, sizeof(*b->defaults));
    if (!b->options || !b->defaults)
        err = -ENOMEM;
    b->n_own = SIZE_MAX;
    for (size_t i = 0; !err && i < t.n_rows; i++) {
        err = read_option(&t, i, &b->options[i], &b->defaults[i]);
        if (!strcmp(table_text(&t, i, "owner"), "all") && b->n_own == SIZE_MAX)
            b->n_own = i;
    }
    if (b->n_own == SIZE_MAX)
        b->n_own = t.n_rows;
    table_release(&t);
    return err;
}

static int add_backend(struct bench_info *b, const char *text)
{
    struct bench_backend *grown = realloc(b->backends, (b->n_backends + 1) * sizeof(*grown));
    size_t name_len = strcspn(text, " ");

    if (!grown)
        return -ENOMEM;
    b->backends = grown;
    grown[b->n_backends++] =
        (struct bench_backend){.name = strndup(text, name_len),
                               .state = strdup(text[name_len] ? text + name_len + 1 : "")};
    return 0;
}

/* The lines "# key value" before the table. Returns where the table begins. */
static char *read_head(struct bench_info *b, char *text)
{
    while (text[0] == '#' && text[1] == ' ') {
        char *line = strsep(&text, "\n") + 2;
        char *key = strsep(&line, " ");
        const char *value = line ? line : "";
        if (!strcmp(key, "needs") && !b->needs)
            b->needs = strdup(value);
        else if (!strcmp(key, "origin") && !b->origin)
            b->origin = strdup(value);
        else if (!strcmp(key, "help") && !b->help)
            b->help = strdup(value);
        else if (!strcmp(key, "columns") && !b->columns)
            b->columns = split(value, ';', &b->n_columns);
        else if (!strcmp(key, "backend"))
            add_backend(b, value);
        if (!text)
            return NULL;
    }
    return text;
}

static void bench_info_release(struct bench_info *b)
{
    for (size_t i = 0; b->options && b->options[i].name; i++) {
        free((void *)b->options[i].name);
        free((void *)b->options[i].help);
        texts_free((char **)b->options[i].choices);
        free(b->defaults[i]);
    }
    for (size_t i = 0; i < b->n_backends; i++) {
        free(b->backends[i].name);
        free(b->backends[i].state);
    }
    free(b->options);
    free(b->defaults);
    free(b->backends);
    texts_free(b->columns);
    free(b->name);
    free(b->path);
    free(b->help);
    free(b->needs);
    free(b->origin);
}

/* Takes over path. 0, or -errno with what is wrong in error. */
static int ask(const char *name, char *path, struct bench_info *b, char *error, size_t len)
{
    const char *args[] = {path, "--describe", NULL};
    struct child_result result = {0};

    *b = (struct bench_info){.name = strdup(name), .path = path};
    int err =
        child_run(&(struct child_spec){.argv = args, .timeout_ns = DESCRIBE_TIMEOUT_NS}, &result);
    if (!err && (result.status != 0 || result.timed_out)) {
        snprintf(error, len, "%s --describe ended with status %d", path, result.status);
        err = -EPROTO;
    } else if (err) {
        snprintf(error, len, "%s: %s", path, strerror(-err));
    }
    char *csv = err ? NULL : read_head(b, result.out.text);
    if (!err && (!csv || !b->columns || !b->help)) {
        snprintf(error, len, "%s does not describe itself as a benchmark of this version", path);
        err = -EPROTO;
    }
    if (!err)
        err = read_options(b, csv, error, len);
    child_result_release(&result);
    if (err)
        bench_info_release(b);
    return err;
}

static int add_program(struct bench_list *list, const char *name, char *path)
{
    struct bench_info *grown = realloc(list->benches, (list->n + 1) * sizeof(*grown));
    char error[512] = "";

    if (!grown) {
        free(path);
        return -ENOMEM;
    }
    list->benches = grown;
    if (!ask(name, path, &grown[list->n], error, sizeof(error))) {
        list->n++;
        return 0;
    }
    char *problems = NULL;
    if (asprintf(&problems, "%s%s\n", list->problems ? list->problems : "", error) < 0)
        return -ENOMEM;
    free(list->problems);
    list->problems = problems;
    return 0;
}

static int list_folder(const char *folder, void *arg)
{
    struct bench_list *list = arg;
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort), err = 0;

    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name + strlen(PREFIX);
        char *path = NULL;
        if (!err && !strncmp(entries[i]->d_name, PREFIX, strlen(PREFIX)) && *name &&
            !strchr(name, '.') && !bench_list_find(list, name) &&
            asprintf(&path, "%s/%s", folder, entries[i]->d_name) >= 0) {
            if (access(path, X_OK))
                free(path);
            else
                err = add_program(list, name, path);
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return err;
}

int bench_list_load(struct bench_list *list)
{
    *list = (struct bench_list){0};
    int err = each_folder(list_folder, list);
    if (err)
        bench_list_release(list);
    return err;
}

void bench_list_release(struct bench_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        bench_info_release(&list->benches[i]);
    free(list->benches);
    free(list->problems);
    *list = (struct bench_list){0};
}

const struct bench_info *bench_list_find(const struct bench_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->benches[i].name, name))
            return &list->benches[i];
    return NULL;
}
