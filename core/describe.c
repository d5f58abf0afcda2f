/* SPDX-License-Identifier: Apache-2.0 */
/* What a benchmark says of itself: see describe.h. */
#include "core/describe.h"

#include <string.h>

#include "core/json_out.h"
#include "core/runner.h"

static void say_backend(void *arg, const struct backend *b)
{
    struct json_out *j = arg;

    json_out_open(j, NULL, '{');
    json_out_text(j, "name", b->name);
    json_out_text(j, "state", backend_state_name(b->state));
    if (b->version)
        json_out_text(j, "version", b->version);
    if (b->what)
        json_out_text(j, "what", b->what);
    if (b->why)
        json_out_text(j, "why", b->why);
    if (b->address)
        json_out_text(j, "address", b->address);
    if (b->simulated)
        json_out_text(j, "origin", "simulated");
    json_out_close(j, '}');
}

static void say_option(struct json_out *j, const struct opt *opt, const struct opt_values *v,
                       bool own)
{
    char letter[2] = {opt->letter, 0};
    size_t n = 0;

    while (opt->choices && opt->choices[n])
        n++;
    json_out_open(j, NULL, '{');
    json_out_text(j, "name", opt->name);
    json_out_text(j, "owner", own ? "own" : "all");
    if (opt->letter)
        json_out_text(j, "letter", letter);
    json_out_text(j, "type", opt_type_name(opt->type));
    json_out_flag(j, "list", opt->flags & OPT_LIST);
    json_out_flag(j, "column", opt->flags & OPT_COLUMN);
    json_out_flag(j, "kept", opt->flags & OPT_KEPT);
    json_out_texts(j, "default", (const char *const *)v->texts, v->n);
    if (opt->max) {
        json_out_u64(j, "min", opt->min);
        json_out_u64(j, "max", opt->max);
    } else if (opt->min) {
        json_out_u64(j, "min", opt->min);
    }
    if (n)
        json_out_texts(j, "choices", opt->choices, n);
    json_out_text(j, "help", opt->help);
    if (opt->scope) {
        json_out_text(j, "when", opt->scope->when);
        json_out_text(j, "scope", opt->scope->what);
    }
    json_out_close(j, '}');
}

static void say_options(struct json_out *j, const struct opts *o)
{
    size_t own = 0; /* the first table is the program's own */

    while (o->tables[0][own].name)
        own++;
    json_out_open(j, "options", '[');
    for (size_t i = 0; i < o->n; i++)
        say_option(j, opts_at(o, i), &o->values[i], i < own);
    json_out_close(j, ']');
}

static void say_field(struct json_out *j, const struct rows_field *f, const char *entry)
{
    const void *at = entry + f->offset;

    if (f->type == ROWS_TEXT && *(const char *const *)at)
        json_out_text(j, f->name, *(const char *const *)at);
    else if (f->type == ROWS_NUMBER && *(const double *)at != 0)
        json_out_real(j, f->name, *(const double *)at);
    else if (f->type == ROWS_FLAG && *(const unsigned *)at & f->flag)
        json_out_flag(j, f->name, true);
    else if (f->type == ROWS_CHOICE && *(const int *)at)
        json_out_text(j, f->name, f->choices[*(const int *)at]);
}

static void say_list(struct json_out *j, const struct rows_list *list, const char *entry)
{
    json_out_open(j, list->name, '[');
    for (; entry && *(const char *const *)entry; entry += list->size) {
        json_out_open(j, NULL, '{');
        for (const struct rows_field *f = list->fields; f->name; f++)
            say_field(j, f, entry);
        json_out_close(j, '}');
    }
    json_out_close(j, ']');
}

static bool is_of_option(const struct opt *opt, const char *column)
{
    size_t i = 0;

    for (; opt->name[i]; i++)
        if (column[i] != (opt->name[i] == '-' ? '_' : opt->name[i]))
            return false;
    return !column[i];
}

/* Of a column that an option has, too, the option says the rest. */
static struct bench_column column_of(const struct bench *b, const char *name)
{
    struct bench_column column = {.name = name};

    for (const struct bench_column *own = bench_columns(b); own->name; own++)
        if (!strcmp(own->name, name))
            column = *own;
    for (const struct opt *opt = b->options; opt && opt->name; opt++) {
        if (!is_of_option(opt, name))
            continue;
        column.flags |= opt->type == OPT_SIZE ? COLUMN_BYTES : 0;
        column.flags |= opt->flags & OPT_PLACE ? COLUMN_PLACE : 0;
        column.left_by = opt->left_by;
    }
    return column;
}

static void say_rows(struct json_out *j, const struct bench *b)
{
    struct bench_rows rows = b->rows ? *b->rows : (struct bench_rows){0};
    struct bench_column columns[ROW_PARAMS_MAX + 1] = {{.name = NULL}};
    struct runner_columns names;

    runner_columns(b, &names);
    for (size_t i = 0; i < names.n; i++)
        columns[i] = column_of(b, names.list[i]);
    rows.columns = columns;
    json_out_open(j, "rows", '{');
    if (rows.stage)
        json_out_text(j, "stage", bench_stage_names[rows.stage]);
    for (const struct rows_list *list = rows_lists; list->name; list++) {
        const char *entries;

        memcpy(&entries, (const char *)&rows + list->offset, sizeof(entries));
        say_list(j, list, entries);
    }
    json_out_close(j, '}');
}

void describe_bench(const struct bench *b, const struct opts *o, bool backends, FILE *out)
{
    struct json_out j = {.out = out};

    json_out_open(&j, NULL, '{');
    json_out_text(&j, "bench", b->name);
    json_out_text(&j, "help", b->help);
    json_out_text(&j, "needs", b->needs ? b->needs : "");
    json_out_text(&j, "origin", b->origin ? b->origin : "measured");
    json_out_open(&j, "backends", '[');
    if (b->backends && backends)
        b->backends(say_backend, &j);
    json_out_close(&j, ']');
    say_options(&j, o);
    say_rows(&j, b);
    json_out_close(&j, '}');
}
