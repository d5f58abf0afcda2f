/* SPDX-License-Identifier: Apache-2.0 */
/* What a benchmark says of itself: see bench_info.h. Which ones there are is in bench_list.c. */
#include "harness/plan/bench_info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "harness/child.h"
#include "harness/store/table.h"
#include "harness/text.h"

#define DESCRIBE_TIMEOUT_NS 60000000000ull /* a driver may start every GPU of the machine first */
#define WORDS_MAX           64

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

static const struct opt_scope *read_scope(const char *when, const char *what)
{
    struct opt_scope *scope = *when ? calloc(1, sizeof(*scope)) : NULL;

    if (scope)
        *scope = (struct opt_scope){strdup(when), strdup(what)};
    return scope;
}

static void free_scope(const struct opt_scope *scope)
{
    if (!scope)
        return;
    free((void *)scope->when);
    free((void *)scope->what);
    free((void *)scope);
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
    if (!strcmp(table_text(t, row, "kept"), "1"))
        opt->flags |= OPT_KEPT;
    if (units_parse_u64(table_text(t, row, "min"), &opt->min))
        opt->min = 0;
    if (units_parse_u64(table_text(t, row, "max"), &opt->max))
        opt->max = 0;
    opt->choices = (const char *const *)split(table_text(t, row, "choices"), ';', &n_choices);
    opt->scope = read_scope(table_text(t, row, "when"), table_text(t, row, "scope"));
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

void bench_info_release(struct bench_info *b)
{
    for (size_t i = 0; b->options && b->options[i].name; i++) {
        free((void *)b->options[i].name);
        free((void *)b->options[i].help);
        texts_free((char **)b->options[i].choices);
        free_scope(b->options[i].scope);
        free(b->defaults ? b->defaults[i] : NULL);
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

bool bench_needs(const struct bench_info *b, const char *what)
{
    size_t n = strlen(what);
    const char *at = b->needs ? strstr(b->needs, what) : NULL;

    return at && (at == b->needs || at[-1] == ' ') && (!at[n] || at[n] == ' ' || at[n] == ',');
}

int bench_info_ask(const char *name, char *path, const char *const *words, struct bench_info *b,
                   char *error, size_t len)
{
    const char *args[WORDS_MAX + 3] = {path};
    struct child_result result = {0};
    size_t n = 1;

    for (; words && words[n - 1] && n <= WORDS_MAX; n++)
        args[n] = words[n - 1];
    args[n] = "--describe";
    *b = (struct bench_info){.name = strdup(name), .path = path};
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

char **bench_ask_defaults(const struct bench_info *b, const char *const *words, char *error,
                          size_t len)
{
    struct bench_info now;
    char *path = strdup(b->path), **defaults;
    size_t n = 0, known = 0;

    if (!path || bench_info_ask(b->name, path, words, &now, error, len))
        return NULL;
    while (now.options[n].name)
        n++;
    while (b->options[known].name)
        known++;
    defaults = n == known ? now.defaults : NULL;
    if (defaults)
        now.defaults = calloc(n + 1, sizeof(*now.defaults)); /* of nothing: they are given away */
    else
        snprintf(error, len, "%s has other options than before: was it rebuilt meanwhile?",
                 b->path);
    bench_info_release(&now);
    return defaults;
}
