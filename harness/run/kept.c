/* SPDX-License-Identifier: Apache-2.0 */
/* Choices that are kept for a run: see launch.h. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/option.h"
#include "core/units.h"
#include "harness/run/launch.h"
#include "harness/store/run_folder.h"
#include "harness/text.h"

#define NAME_MAX_BYTES 64

/* The column of an option: its name with '_' for '-'. False: it is too long for one. */
static bool column_of(const struct opt *opt, char column[NAME_MAX_BYTES])
{
    if (strlen(opt->name) >= NAME_MAX_BYTES)
        return false;
    strcpy(column, opt->name);
    for (char *at = column; (at = strchr(at, '-')) != NULL;)
        *at = '_';
    return true;
}

static bool is_left(const char *arguments, const char *column, const char *def)
{
    size_t len;
    const char *given = argument_value(arguments, column, &len);

    return !given || (strlen(def) == len && !memcmp(given, def, len));
}

/* The one value that these rows tell; "": none does, or they differ. */
static const char *agreed(const struct table *t, size_t first, size_t n, const char *column)
{
    const char *value = "";

    for (size_t row = first; row < first + n; row++) {
        const char *cell = table_param(t, row, column);
        if (*cell && *value && strcmp(cell, value) != 0)
            return "";
        value = *cell ? cell : value;
    }
    return value;
}

/* Is it one value of the option, as a plan writes it, and a choice? */
static bool is_choice(const struct opt *opt, const char *def, const char *value)
{
    struct opt_values read = {0};
    char error[256];
    bool fits = *value && !strchr(value, ' ') && strcmp(value, def) != 0 &&
                !opt_values_read(opt, value, &read, error, sizeof(error)) && read.n == 1 &&
                !strcmp(read.texts[0], value);

    for (size_t i = 0; i < read.n; i++)
        free(read.texts[i]);
    free(read.texts);
    return fits;
}

char *kept_choices(const struct bench_info *b, const struct launch *l, const struct table *t,
                   size_t first, size_t n)
{
    char *text = xstrdup("");

    for (size_t i = 0; b->options[i].name; i++) {
        const struct opt *opt = &b->options[i];
        char column[NAME_MAX_BYTES];
        if (!(opt->flags & OPT_KEPT) || !column_of(opt, column) ||
            !is_left(l->arguments, column, b->defaults[i]))
            continue;
        const char *value = agreed(t, first, n, column);
        if (!is_choice(opt, b->defaults[i], value))
            continue;
        char *longer = xasprintf("%s%s--%s %s", text, *text ? " " : "", opt->name, value);
        free(text);
        text = longer;
    }
    return text;
}

static const char *find(const struct kept *k, const struct launch *l)
{
    for (size_t i = 0; i < k->n && !launch_has_hosts(l); i++)
        if (k->cases[i].case_number == l->case_number)
            return k->cases[i].arguments;
    return NULL;
}

const char *kept_of(const struct kept *k, const struct launch *l)
{
    const char *arguments = find(k, l);

    return arguments ? arguments : "";
}

/* Does a row tell any value of an option that is kept? */
static bool tells_any(const struct bench_info *b, const struct table *t, size_t first, size_t n)
{
    char column[NAME_MAX_BYTES];

    for (size_t i = 0; b->options[i].name; i++)
        for (size_t row = first; b->options[i].flags & OPT_KEPT && row < first + n; row++)
            if (column_of(&b->options[i], column) && *table_param(t, row, column))
                return true;
    return false;
}

void kept_learn(struct kept *k, const struct bench_info *b, const struct launch *l,
                const struct table *t, size_t first, size_t n)
{
    if (launch_has_hosts(l) || find(k, l) || !tells_any(b, t, first, n))
        return;
    *ARRAY_ADD(k->cases, k->n) =
        (struct kept_case){l->case_number, kept_choices(b, l, t, first, n)};
}

void kept_release(struct kept *k)
{
    for (size_t i = 0; i < k->n; i++)
        free(k->cases[i].arguments);
    free(k->cases);
    *k = (struct kept){0};
}

static const struct launch *launch_of(const struct plan *plan, const struct table *t, size_t row)
{
    uint64_t number, repeat;

    if (units_parse_u64(table_text(t, row, "case"), &number) ||
        units_parse_u64(table_text(t, row, "repeat"), &repeat))
        return NULL;
    for (size_t i = 0; i < plan->n; i++)
        if (plan->launches[i].case_number == number && plan->launches[i].repeat == repeat)
            return &plan->launches[i];
    return NULL;
}

int kept_load(struct kept *k, const struct bench_list *benches, const struct plan *plan,
              const char *path, char *error, size_t len)
{
    struct run_folder folder;
    int err = run_folder_load(path, &folder, error, len);

    if (err)
        return err;
    for (size_t i = 0; i < folder.n_benches; i++) {
        const struct bench_info *b = bench_list_find(benches, folder.benches[i].name);
        const struct table *t = &folder.benches[i].rows;
        /* Rows stand in the order in which launches ended, those of one launch together. */
        for (size_t row = 0; b && row < t->n_rows;) {
            const struct launch *l = launch_of(plan, t, row);
            size_t n = l && l->rows && l->rows <= t->n_rows - row ? l->rows : 1;
            if (l && l->state == LAUNCH_DONE)
                kept_learn(k, b, l, t, row, n);
            row += n;
        }
    }
    run_folder_release(&folder);
    return 0;
}
