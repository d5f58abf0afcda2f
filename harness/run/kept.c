/* SPDX-License-Identifier: Apache-2.0 */
/* Choices that are kept for a run: see launch.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    size_t at = table_column(t, column);
    const char *value = "";

    for (size_t row = first; row < first + n; row++) {
        const char *cell = table_cell(t, row, at);
        if (*cell && *value && strcmp(cell, value) != 0)
            return "";
        value = *cell ? cell : value;
    }
    return value;
}

/* Does a row tell any value of an option that is kept? */
static bool tells_any(const struct bench_info *b, const struct table *t, size_t first, size_t n)
{
    char column[NAME_MAX_BYTES];

    for (size_t i = 0; b->options[i].name; i++)
        for (size_t row = first; b->options[i].flags & OPT_KEPT && row < first + n; row++)
            if (column_of(&b->options[i], column) && *table_text(t, row, column))
                return true;
    return false;
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
    struct buffer text = {0};
    int err = buffer_add(&text, "", 0);

    for (size_t i = 0; !err && b->options[i].name; i++) {
        const struct opt *opt = &b->options[i];
        char column[NAME_MAX_BYTES], one[512];
        if (!(opt->flags & OPT_KEPT) || !column_of(opt, column) ||
            !is_left(l->arguments, column, b->defaults[i]))
            continue;
        const char *value = agreed(t, first, n, column);
        if (!is_choice(opt, b->defaults[i], value))
            continue;
        int size = snprintf(one, sizeof(one), "%s--%s %s", text.size ? " " : "", opt->name, value);
        if ((size_t)size < sizeof(one))
            err = buffer_add(&text, one, (size_t)size);
    }
    if (err)
        buffer_release(&text);
    return text.text;
}

static struct kept_case *find(const struct kept *k, unsigned case_number)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->cases[i].case_number == case_number)
            return &k->cases[i];
    return NULL;
}

static bool keeps_any(const struct bench_info *b)
{
    for (size_t i = 0; b->options[i].name; i++)
        if (b->options[i].flags & OPT_KEPT)
            return true;
    return false;
}

int kept_learn(struct kept *k, const struct bench_info *b, const struct launch *l,
               const struct table *t, size_t first, size_t n)
{
    if (!keeps_any(b) || launch_has_hosts(l) || find(k, l->case_number) ||
        !tells_any(b, t, first, n))
        return 0;
    struct kept_case *grown = realloc(k->cases, (k->n + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    k->cases = grown;
    char *arguments = kept_choices(b, l, t, first, n);
    if (!arguments)
        return -ENOMEM;
    k->cases[k->n++] = (struct kept_case){l->case_number, l->repeat, arguments};
    return 0;
}

const struct kept_case *kept_of(const struct kept *k, const struct launch *l)
{
    const struct kept_case *c = launch_has_hosts(l) ? NULL : find(k, l->case_number);

    return c && *c->arguments ? c : NULL;
}

/* "--isa avx2 --threads 4" */
bool kept_used(const struct kept_case *c, const struct table *t, size_t row)
{
    const char *at = c ? c->arguments : "";
    bool used = false;

    while (!strncmp(at, "--", 2)) {
        size_t name = strcspn(at + 2, " "), value = strcspn(at + 3 + name, " ");
        const char *given = at + 3 + name;
        struct opt opt = {0};
        char text[NAME_MAX_BYTES], column[NAME_MAX_BYTES];
        snprintf(text, sizeof(text), "%.*s", (int)name, at + 2);
        opt.name = text;
        const char *cell = column_of(&opt, column) ? table_text(t, row, column) : "";
        used |= *cell != 0;
        if (*cell && (strlen(cell) != value || strncmp(cell, given, value) != 0))
            return false;
        at = given + value + (given[value] == ' ');
    }
    return used;
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

/* Rows stand in the order in which launches ended, those of one launch together. */
static int learn_table(struct kept *k, const struct bench_info *b, const struct plan *plan,
                       const struct table *t)
{
    int err = 0;

    for (size_t row = 0; !err && row < t->n_rows;) {
        const struct launch *l = launch_of(plan, t, row);
        size_t n = l && l->rows && l->rows <= t->n_rows - row ? l->rows : 1;
        if (l && l->state == LAUNCH_DONE)
            err = kept_learn(k, b, l, t, row, n);
        row += n;
    }
    return err;
}

int kept_load(struct kept *k, const struct bench_list *benches, const struct plan *plan,
              const char *path, char *error, size_t len)
{
    struct run_folder folder;
    int err = run_folder_load(path, &folder, error, len);

    if (err)
        return err;
    for (size_t i = 0; !err && i < folder.n_benches; i++) {
        const struct bench_info *b = bench_list_find(benches, folder.benches[i].name);
        if (b && keeps_any(b))
            err = learn_table(k, b, plan, &folder.benches[i].rows);
    }
    if (err)
        snprintf(error, len, "out of memory");
    run_folder_release(&folder);
    return err;
}

json_t *kept_options(const struct bench_list *benches)
{
    json_t *all = json_object();

    for (size_t i = 0; i < benches->n; i++) {
        const struct bench_info *b = &benches->benches[i];
        json_t *names = keeps_any(b) ? json_array() : NULL;
        for (size_t k = 0; names && b->options[k].name; k++)
            if (b->options[k].flags & OPT_KEPT)
                json_array_append_new(names, json_string(b->options[k].name));
        if (names)
            json_object_set_new(all, b->name, names);
    }
    return all;
}
