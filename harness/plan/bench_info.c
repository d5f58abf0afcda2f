/* SPDX-License-Identifier: Apache-2.0 */
/* What a benchmark says of itself, and which ones there are: see bench_info.h. */
#include "harness/plan/bench_info.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "harness/child.h"
#include "harness/machine/fact.h"
#include "harness/text.h"

/* ---- What benchmarks said of their rows ---- */

static int choice_of(const struct rows_field *f, const char *text)
{
    for (int i = 0; text && f->choices[i]; i++)
        if (!strcmp(f->choices[i], text))
            return i;
    return -1;
}

/* 0 or -EBADMSG. */
static int read_field(const struct rows_field *f, const json_t *entry, char *into)
{
    const json_t *value = json_object_get(entry, f->name);
    const char *text = json_string_value(value);
    void *at = into + f->offset;

    if (!value)
        return f->type == ROWS_TEXT && f->flag == ROWS_NEEDED ? -EBADMSG : 0;
    switch (f->type) {
    case ROWS_TEXT:
        *(const char **)at = text;
        return text ? 0 : -EBADMSG;
    case ROWS_NUMBER:
        *(double *)at = json_number_value(value);
        return json_is_number(value) ? 0 : -EBADMSG;
    case ROWS_FLAG:
        *(unsigned *)at |= json_is_true(value) ? f->flag : 0;
        return json_is_boolean(value) ? 0 : -EBADMSG;
    case ROWS_CHOICE:
        *(int *)at = choice_of(f, text);
        return *(int *)at < 0 ? -EBADMSG : 0;
    }
    return -EBADMSG;
}

static int read_list(const json_t *told, const struct rows_list *list, struct bench_rows *rows,
                     char *error, size_t len)
{
    const json_t *entries = json_object_get(told, list->name), *entry;
    size_t n = json_array_size(entries), i;
    char *table = xcalloc(n + 1, list->size);

    memcpy((char *)rows + list->offset, &table, sizeof(table));
    json_array_foreach (entries, i, entry) {
        for (const struct rows_field *f = list->fields; f->name; f++) {
            if (!read_field(f, entry, table + i * list->size))
                continue;
            snprintf(error, len, "'%s' of entry %zu of its '%s' is not what it is to be", f->name,
                     i + 1, list->name);
            return -EBADMSG;
        }
    }
    return 0;
}

int rows_described_read(const json_t *told, struct bench_rows *rows, char *error, size_t len)
{
    const struct rows_field stage = {.choices = bench_stage_names};
    const json_t *text = json_object_get(told, "stage");
    int found = text ? choice_of(&stage, json_string_value(text)) : 0, err = 0;

    *rows = (struct bench_rows){.stage = found > 0 ? (enum bench_stage)found : STAGE_NONE};
    if (!json_is_object(told) || found < 0) {
        snprintf(error, len, "its stage is none that is known");
        return -EBADMSG;
    }
    for (const struct rows_list *list = rows_lists; !err && list->name; list++)
        err = read_list(told, list, rows, error, len);
    if (err)
        rows_described_release(rows);
    return err;
}

void rows_described_release(struct bench_rows *rows)
{
    for (const struct rows_list *list = rows_lists; list->name; list++) {
        void *table;
        memcpy(&table, (const char *)rows + list->offset, sizeof(table));
        free(table);
    }
    *rows = (struct bench_rows){0};
}

static size_t count_columns(const struct bench_column *columns)
{
    size_t n = 0;

    while (columns[n].name)
        n++;
    return n;
}

static bool has_column(const struct bench_column *columns, const char *name)
{
    for (; columns->name; columns++)
        if (!strcmp(columns->name, name))
            return true;
    return false;
}

void rows_described_add_columns(struct bench_rows *rows, const struct bench_rows *from)
{
    size_t n = count_columns(rows->columns), more = count_columns(from->columns);
    struct bench_column *all =
        xrealloc((void *)rows->columns, (n + more + 1) * sizeof(*rows->columns));

    for (size_t i = 0; i < more; i++)
        if (!has_column(all, from->columns[i].name)) {
            all[n++] = from->columns[i];
            all[n] = (struct bench_column){.name = NULL};
        }
    rows->columns = all;
}

#define DESCRIBE_TIMEOUT_NS 60000000000ull /* a driver may start every GPU of the machine first */
#define WORDS_MAX           64

/* "a,b" */
static char *joined(const json_t *list)
{
    struct buffer all = {0};
    const json_t *text;
    size_t i;

    buffer_text(&all, "");
    json_array_foreach (list, i, text) {
        buffer_text(&all, i ? "," : "");
        buffer_text(&all, fact_word(text));
    }
    return all.text;
}

/* A custom text is judged by the benchmark itself when the plan is made. */
static int accept_any(const char *text, void *value, char *error, size_t len)
{
    (void)text, (void)value, (void)error, (void)len;
    return 0;
}

static int read_option(const json_t *option, struct opt *opt, char **def)
{
    static const struct {
        const char *key;
        unsigned flag;
    } flags[] = {{"list", OPT_LIST}, {"column", OPT_COLUMN}, {"kept", OPT_KEPT}};
    const json_t *choices = json_object_get(option, "choices");

    opt->name = xstrdup(fact_name(option, "name"));
    opt->help = xstrdup(fact_name(option, "help"));
    opt->parse = accept_any;
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
        if (json_is_true(json_object_get(option, flags[i].key)))
            opt->flags |= flags[i].flag;
    opt->min = (uint64_t)json_integer_value(json_object_get(option, "min"));
    opt->max = (uint64_t)json_integer_value(json_object_get(option, "max"));
    if (choices) { /* ended by NULL */
        char **texts = xcalloc(json_array_size(choices) + 1, sizeof(*texts));
        for (size_t i = 0; i < json_array_size(choices); i++)
            texts[i] = xstrdup(fact_word(json_array_get(choices, i)));
        opt->choices = (const char *const *)texts;
    }
    if (json_object_get(option, "left_by"))
        opt->left_by = xstrdup(fact_name(option, "left_by"));
    if (*fact_name(option, "when")) {
        struct opt_scope *scope = xcalloc(1, sizeof(*scope));
        *scope = (struct opt_scope){xstrdup(fact_name(option, "when")),
                                    xstrdup(fact_name(option, "scope"))};
        opt->scope = scope;
    }
    *def = joined(json_object_get(option, "default"));
    for (int t = OPT_FLAG; t <= OPT_CUSTOM; t++) {
        if (!strcmp(opt_type_name((enum opt_type)t), fact_name(option, "type"))) {
            opt->type = (enum opt_type)t;
            return 0;
        }
    }
    return -EINVAL;
}

/* What this program does not know counts as absent. */
static enum backend_state state_of(const char *name)
{
    static const enum backend_state known[] = {BACKEND_PRESENT, BACKEND_DOWN};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(backend_state_name(known[i]), name))
            return known[i];
    return BACKEND_ABSENT;
}

static void read_backend(struct bench_backend *b, const json_t *told)
{
    const char *address = fact_name(told, "address");

    *b = (struct bench_backend){.name = xstrdup(fact_name(told, "name")),
                                .version = xstrdup(fact_name(told, "version")),
                                .what = xstrdup(fact_name(told, "what")),
                                .why = xstrdup(fact_name(told, "why")),
                                .state = state_of(fact_name(told, "state")),
                                .simulated = !strcmp(fact_name(told, "origin"), "simulated")};
    for (size_t i = 0; address[i] && i + 1 < sizeof(b->address); i++)
        b->address[i] = (char)tolower((unsigned char)address[i]);
}

/* 0; -EPROTO or -EBADMSG: that is no description, error may say why. */
static int read_description(struct bench_info *b, json_t *said, char *error, size_t len)
{
    int err = said && json_is_string(json_object_get(said, "bench")) ? 0 : -EPROTO;

    b->help = xstrdup(fact_name(said, "help"));
    b->needs = xstrdup(fact_name(said, "needs"));
    b->origin = xstrdup(fact_name(said, "origin"));
    b->described = json_incref(json_object_get(said, "rows"));
    if (!err) {
        const json_t *options = json_object_get(said, "options");
        size_t n = json_array_size(options), i;
        const json_t *option;

        b->options = xcalloc(n + 1, sizeof(*b->options));
        b->defaults = xcalloc(n + 1, sizeof(*b->defaults));
        b->n_own = n;
        json_array_foreach (options, i, option) {
            if (!err)
                err = read_option(option, &b->options[i], &b->defaults[i]);
            if (!strcmp(fact_name(option, "owner"), "all") && b->n_own == n)
                b->n_own = i;
        }
    }
    if (!err) {
        const json_t *backends = json_object_get(said, "backends");
        const json_t *backend;
        size_t i;

        b->backends = xcalloc(json_array_size(backends), sizeof(*b->backends));
        json_array_foreach (backends, i, backend)
            read_backend(&b->backends[b->n_backends++], backend);
    }
    if (!err)
        err = rows_described_read(b->described, &b->rows, error, len);
    if (err)
        return err;
    b->n_columns = count_columns(b->rows.columns);
    b->columns = xcalloc(b->n_columns + 1, sizeof(*b->columns));
    for (size_t i = 0; i < b->n_columns; i++)
        b->columns[i] = xstrdup(b->rows.columns[i].name);
    return 0;
}

static void bench_info_release(struct bench_info *b)
{
    for (size_t i = 0; b->options && b->options[i].name; i++) {
        free((void *)b->options[i].name);
        free((void *)b->options[i].help);
        free((void *)b->options[i].left_by);
        texts_free((char **)b->options[i].choices);
        if (b->options[i].scope) {
            free((void *)b->options[i].scope->when);
            free((void *)b->options[i].scope->what);
            free((void *)b->options[i].scope);
        }
        free(b->defaults ? b->defaults[i] : NULL);
    }
    for (size_t i = 0; i < b->n_backends; i++) {
        free(b->backends[i].name);
        free(b->backends[i].version);
        free(b->backends[i].what);
        free(b->backends[i].why);
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
    if (b->described)
        rows_described_release(&b->rows);
    json_decref(b->described);
}

bool bench_needs(const struct bench_info *b, const char *what)
{
    size_t n = strlen(what);
    const char *at = b->needs ? strstr(b->needs, what) : NULL;

    return at && (at == b->needs || at[-1] == ' ') && (!at[n] || at[n] == ' ' || at[n] == ',');
}

bool bench_takes_peer(const struct bench_info *b)
{
    return bench_needs(b, "peer") || bench_needs(b, "peer-if-asked");
}

/* Asks one program, whose path it takes over; `words` as below, or NULL. 0, or -errno with what is
 * wrong in error. */
static int bench_info_ask(const char *name, char *path, const char *const *words,
                          struct bench_info *b, char *error, size_t len)
{
    const char *args[WORDS_MAX + 3] = {path};
    struct child_result result = {0};
    char why[200] = "";
    size_t n = 1;

    for (; words && words[n - 1] && n <= WORDS_MAX; n++)
        args[n] = words[n - 1];
    args[n] = "--describe";
    *b = (struct bench_info){.name = xstrdup(name), .path = path};
    int err =
        child_run(&(struct child_spec){.argv = args, .timeout_ns = DESCRIBE_TIMEOUT_NS}, &result);
    if (!err && (result.status != 0 || result.timed_out)) {
        snprintf(error, len, "%s --describe ended with status %d%s%.*s", path, result.status,
                 *result.err.text ? ": " : "", (int)strcspn(result.err.text, "\n"),
                 result.err.text);
        err = -EPROTO;
    } else if (err) {
        snprintf(error, len, "%s: %s", path, strerror(-err));
    }
    if (!err) {
        json_t *said = json_loadb(result.out.text, result.out.size, JSON_REJECT_DUPLICATES, NULL);

        err = read_description(b, said, why, sizeof(why));
        json_decref(said);
        if (err)
            snprintf(error, len, "%s does not describe itself as a benchmark of this version%s%s",
                     path, *why ? ": " : "", why);
    }
    child_result_release(&result);
    if (err)
        bench_info_release(b);
    return err;
}

char **bench_ask_defaults(const struct bench_info *b, const char *const *words, char *error,
                          size_t len)
{
    struct bench_info now;
    char **defaults;
    size_t n = 0, known = 0;

    if (bench_info_ask(b->name, xstrdup(b->path), words, &now, error, len))
        return NULL;
    while (now.options[n].name)
        n++;
    while (b->options[known].name)
        known++;
    defaults = n == known ? now.defaults : NULL;
    if (defaults)
        now.defaults = xcalloc(n + 1, sizeof(*now.defaults)); /* of nothing: they are given away */
    else
        snprintf(error, len, "%s has other options than before: was it rebuilt meanwhile?",
                 b->path);
    bench_info_release(&now);
    return defaults;
}

/* ---- What benchmarks there are ---- */

#define PREFIX       "plumb-"
#define PROGRAMS_MAX 64

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
    int stop = program_folder(own, sizeof(own)) ? 0 : fn(own, arg);

    return stop ? stop : path_folders(fn, arg);
}

struct finding {
    const char *name;
    char *path;
};

static int find_in(const char *folder, void *arg)
{
    struct finding *f = arg;

    f->path = xasprintf("%s/" PREFIX "%s", folder, f->name);
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

/* A program that was found, and what came of asking it. */
struct program {
    const char *name; /* within path */
    char *path;
    struct bench_info info;
    char error[512];
    int err;
    pthread_t thread;
    bool runs; /* in a thread of its own */
};

struct programs {
    struct program all[PROGRAMS_MAX];
    size_t n;
};

static void *ask_program(void *arg)
{
    struct program *p = arg;

    p->err = bench_info_ask(p->name, xstrdup(p->path), NULL, &p->info, p->error, sizeof(p->error));
    return NULL;
}

static bool is_known(const struct programs *programs, const char *name)
{
    for (size_t i = 0; i < programs->n; i++)
        if (!strcmp(programs->all[i].name, name))
            return true;
    return false;
}

static int find_programs(const char *folder, void *arg)
{
    struct programs *programs = arg;
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name + strlen(PREFIX);
        if (!strncmp(entries[i]->d_name, PREFIX, strlen(PREFIX)) && *name && !strchr(name, '.') &&
            !is_known(programs, name) && programs->n < PROGRAMS_MAX) {
            char *path = xasprintf("%s/%s", folder, entries[i]->d_name);
            if (access(path, X_OK)) {
                free(path);
            } else {
                name = strrchr(path, '/') + 1 + strlen(PREFIX);
                programs->all[programs->n++] = (struct program){.name = name, .path = path};
            }
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return 0;
}

void bench_list_load(struct bench_list *list)
{
    struct programs *programs = xcalloc(1, sizeof(*programs));
    struct buffer problems = {0};

    *list = (struct bench_list){0};
    each_folder(find_programs, programs);
    /* All at once: to look for its devices may cost a program a second, and most of it is waiting.
     */
    for (size_t i = 0; i < programs->n; i++) {
        struct program *p = &programs->all[i];
        p->runs = !pthread_create(&p->thread, NULL, ask_program, p);
    }
    for (size_t i = 0; i < programs->n; i++) {
        struct program *p = &programs->all[i];
        if (p->runs)
            pthread_join(p->thread, NULL);
    }
    for (size_t i = 0; i < programs->n; i++) { /* what was too much at once is not so one by one */
        struct program *p = &programs->all[i];
        if (!p->runs || p->err == -EMFILE || p->err == -EAGAIN || p->err == -ENOMEM)
            ask_program(p);
    }
    list->benches = xcalloc(programs->n, sizeof(*list->benches));
    for (size_t i = 0; i < programs->n; i++) {
        struct program *p = &programs->all[i];
        if (!p->err) {
            list->benches[list->n++] = p->info;
        } else {
            buffer_text(&problems, p->error);
            buffer_text(&problems, "\n");
        }
        free(p->path);
    }
    list->problems = problems.text;
    free(programs);
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
