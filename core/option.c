/* SPDX-License-Identifier: Apache-2.0 */
/* Options: the table, the command line and --help. Values and ranges are read in option_value.c. */
#include "core/option.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "core/units.h"

#define HELP_NAME 30 /* columns of an option's name in --help; a longer one has a line of its own */

const struct opt *opts_at(const struct opts *o, size_t i)
{
    for (const struct opt *const *t = o->tables; *t; t++)
        for (const struct opt *opt = *t; opt->name; opt++)
            if (i-- == 0)
                return opt;
    return NULL;
}

static size_t index_of(const struct opts *o, const char *name, size_t name_len)
{
    for (size_t i = 0; i < o->n; i++) {
        const char *have = opts_at(o, i)->name;
        if (strlen(have) == name_len && !strncmp(have, name, name_len))
            return i;
    }
    return SIZE_MAX;
}

const struct opt_values *opts_values(const struct opts *o, const char *name)
{
    size_t i = index_of(o, name, strlen(name));

    return i == SIZE_MAX ? NULL : &o->values[i];
}

static void values_clear(struct opt_values *v)
{
    for (size_t i = 0; i < v->n; i++)
        free(v->texts[i]);
    free(v->texts);
    *v = (struct opt_values){0};
}

void opts_release(struct opts *o)
{
    for (size_t i = 0; o->values && i < o->n; i++)
        values_clear(&o->values[i]);
    free(o->values);
    free(o->args);
    o->values = NULL;
    o->args = NULL;
    o->n = o->n_args = 0;
}

static int set_at(struct opts *o, size_t i, const char *text)
{
    struct opt_values fresh = {0};
    int err = opt_values_read(opts_at(o, i), text, &fresh, o->error, sizeof(o->error));

    if (err) {
        values_clear(&fresh);
        return err;
    }
    values_clear(&o->values[i]);
    o->values[i] = fresh;
    return 0;
}

static const char *default_of(const struct opt *opt)
{
    return opt->make_default ? opt->make_default() : opt->def;
}

int opts_init(struct opts *o, const struct opt *const *tables)
{
    *o = (struct opts){.tables = tables};
    while (opts_at(o, o->n))
        o->n++;
    o->values = xcalloc(o->n, sizeof(*o->values));
    for (size_t i = 0; i < o->n; i++) {
        const char *def = default_of(opts_at(o, i));
        int err = def ? set_at(o, i, def) : 0;
        if (err)
            return err;
    }
    return 0;
}

static bool is_tried(const struct opt *opt, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = opt->tried; at && *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == len && !memcmp(at, name, n))
            return true;
        at += n;
    }
    return false;
}

static int unknown_option(struct opts *o, const char *name, size_t len)
{
    const char **names = xcalloc(o->n + 1, sizeof(*names));
    char text[64], tried[128];

    snprintf(text, sizeof(text), "%.*s", (int)(len < 63 ? len : 63), name);
    for (size_t i = 0; i < o->n; i++)
        names[i] = opts_at(o, i)->name;
    const char *near = opts_nearest(text, names);
    free(names);
    /* "'--source' or '--destination'": the options that are looked for under this name. */
    size_t at = 0;
    tried[0] = 0;
    for (size_t i = 0; i < o->n && at < sizeof(tried); i++)
        if (is_tried(opts_at(o, i), text))
            at += (size_t)snprintf(tried + at, sizeof(tried) - at, "%s'--%s'", at ? " or " : "",
                                   opts_at(o, i)->name);
    if (tried[0])
        snprintf(o->error, sizeof(o->error), "unknown option '--%s': here it is %s", text, tried);
    else if (near)
        snprintf(o->error, sizeof(o->error), "unknown option '--%s': did you mean '--%s'?", text,
                 near);
    else
        snprintf(o->error, sizeof(o->error), "unknown option '--%s': see --help", text);
    return -EINVAL;
}

int opts_set(struct opts *o, const char *name, const char *text)
{
    size_t i = index_of(o, name, strlen(name));

    if (i == SIZE_MAX)
        return unknown_option(o, name, strlen(name));
    int err = set_at(o, i, text);
    o->values[i].given = !err;
    return err;
}

int opts_imply(struct opts *o, const char *name, const char *text)
{
    int err = opts_set(o, name, text);

    if (!err)
        o->values[index_of(o, name, strlen(name))].given = false;
    return err;
}

int opts_default(struct opts *o, const char *name, const char *text)
{
    const struct opt_values *v = opts_values(o, name);

    return !text || (v && v->given) ? 0 : opts_imply(o, name, text);
}

/* Handles argv[*at], an option; moves *at on when the value is the next word. */
static int parse_one(struct opts *o, int argc, char **argv, int *at)
{
    const char *word = argv[*at], *value = NULL;
    size_t i = SIZE_MAX;

    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        i = index_of(o, word + 2, len);
        if (i == SIZE_MAX)
            return unknown_option(o, word + 2, len);
        value = word[2 + len] ? word + 3 + len : NULL;
    } else {
        for (size_t k = 0; k < o->n && i == SIZE_MAX; k++)
            if (opts_at(o, k)->letter && opts_at(o, k)->letter == word[1])
                i = k;
        if (i == SIZE_MAX) {
            snprintf(o->error, sizeof(o->error), "unknown option '-%c': see --help", word[1]);
            return -EINVAL;
        }
        value = word[2] ? word + 2 : NULL;
    }
    const struct opt *opt = opts_at(o, i);
    if (!value && opt->type == OPT_FLAG)
        value = "yes";
    if (!value && *at + 1 < argc)
        value = argv[++*at];
    if (!value) {
        snprintf(o->error, sizeof(o->error), "option '--%s' wants a value: %s", opt->name,
                 opt->help);
        return -EINVAL;
    }
    struct opt_values *v = &o->values[i];
    unsigned times = v->times;
    int err = 0;

    if (opt->flags & OPT_AGAIN) {
        v->texts = xrealloc(v->texts, (v->n + 2) * sizeof(*v->texts));
        v->texts[v->n++] = xstrdup(value);
        v->texts[v->n] = NULL;
    } else {
        err = set_at(o, i, value);
    }
    v->given = !err;
    v->times = times + 1;
    return err;
}

int opts_parse(struct opts *o, int argc, char **argv)
{
    bool options = true;

    o->args = xcalloc((size_t)argc + 1, sizeof(*o->args));
    for (int at = 1; at < argc; at++) {
        if (options && !strcmp(argv[at], "--")) {
            options = false;
        } else if (options && argv[at][0] == '-' && argv[at][1]) {
            int err = parse_one(o, argc, argv, &at);
            if (err)
                return err;
        } else {
            o->args[o->n_args++] = argv[at];
        }
    }
    return 0;
}

int opts_apply(struct opts *o, const struct opt *table, const size_t *pick, void *params)
{
    size_t first = 0;

    for (const struct opt *const *t = o->tables; *t != table; t++)
        for (const struct opt *opt = *t; opt->name; opt++)
            first++;
    for (size_t i = 0; table[i].name; i++) {
        const struct opt_values *v = &o->values[first + i];
        if (!v->n)
            continue;
        int err = opt_value_read(&table[i], v->texts[pick ? pick[i] : 0],
                                 (char *)params + table[i].offset, o->error, sizeof(o->error));
        if (err)
            return err;
    }
    return 0;
}

int opts_apply_default(struct opts *o, const struct opt *opt, void *params)
{
    const char *def = default_of(opt);
    char first[256];

    if (!def)
        return 0;
    snprintf(first, sizeof(first), "%.*s", (int)strcspn(def, opt->flags & OPT_LIST ? "," : ""),
             def);
    char *range = opt->flags & OPT_LIST ? strstr(first, "..") : NULL;
    if (range)
        *range = 0;
    bool kept = opt->type == OPT_STRING || opt->type == OPT_CUSTOM; /* the text, not what it says */
    return opt_value_read(opt, kept ? def : first, (char *)params + opt->offset, o->error,
                          sizeof(o->error));
}

const char *opt_type_name(enum opt_type type)
{
    static const char *const names[] = {"flag",   "integer", "size",   "duration", "fraction",
                                        "number", "choice",  "string", "custom"};

    return names[type];
}

/* What stands behind the option's name in --help. */
static void argument_text(const struct opt *opt, char *text, size_t len)
{
    static const char *const by_type[] = {"",  "N", "SIZE", "TIME", "SHARE",
                                          "X", "",  "TEXT", "TEXT"};

    text[0] = 0;
    if (opt->type == OPT_FLAG)
        return;
    if (opt->arg || opt->type != OPT_CHOICE) {
        snprintf(text, len, " %s%s", opt->arg ? opt->arg : by_type[opt->type],
                 opt->flags & OPT_LIST ? ",.." : "");
        return;
    }
    size_t at = 0;
    for (size_t i = 0; opt->choices[i] && at < len; i++)
        at += (size_t)snprintf(text + at, len - at, "%c%s", i ? '|' : ' ', opt->choices[i]);
    if (opt->flags & OPT_LIST && at < len)
        snprintf(text + at, len - at, ",..");
}

static void default_text(const struct opt *opt, const struct opt_values *v, char *text, size_t len)
{
    size_t at = 0;

    text[0] = 0;
    for (size_t i = 0; i < v->n && at < len; i++) {
        char size[24];
        uint64_t bytes;
        const char *one = v->texts[i];
        if (opt->type == OPT_SIZE && !units_parse_size(one, &bytes))
            one = units_format_size(bytes, size, sizeof(size));
        if (v->n > 6 && i == 2 && i < v->n - 1) {
            at += (size_t)snprintf(text + at, len - at, ",..");
            i = v->n - 2;
            continue;
        }
        at += (size_t)snprintf(text + at, len - at, "%s%s", i ? "," : "", one);
    }
}

void opts_help(const struct opts *o, FILE *out)
{
    for (size_t i = 0; i < o->n; i++) {
        const struct opt *opt = opts_at(o, i);
        char left[256], argument[200], def[160], text[1024];
        if (i && opt == o->tables[1])
            fputc('\n', out); /* what is the program's own stands apart from what all share */
        if (opt->flags & OPT_HIDDEN)
            continue;
        argument_text(opt, argument, sizeof(argument));
        if (opt->letter)
            snprintf(left, sizeof(left), "-%c, --%s%s", opt->letter, opt->name, argument);
        else
            snprintf(left, sizeof(left), "    --%s%s", opt->name, argument);
        default_text(opt, &o->values[i], def, sizeof(def));
        if (strlen(left) > HELP_NAME)
            fprintf(out, "  %s\n  %-*s", left, HELP_NAME, "");
        else
            fprintf(out, "  %-*s", HELP_NAME, left);
        if (def[0] && opt->type != OPT_FLAG)
            snprintf(text, sizeof(text), "%s [%s]", opt->help, def);
        else
            snprintf(text, sizeof(text), "%s", opt->help);
        /* The text beside an option's name, in as many lines as it takes. */
        const size_t indent = 2 + HELP_NAME + 2, width = wrap_width(out) - indent;
        size_t next, n = wrap_take(text, width, &next);
        fprintf(out, "  %.*s\n", (int)n, text);
        wrap_print(out, text + next, indent, indent + width);
    }
}
