/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks said of their rows: see rows_told.h. */
#include "harness/plan/rows_told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The path is from the root of the sources, where make runs. */
__asm__(".pushsection .rodata.benches_before,\"a\"\n"
        "benches_before:\n"
        ".incbin \"harness/plan/benches-before.json\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char benches_before[];

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

static void set_table(struct bench_rows *rows, const struct rows_list *list, const void *table)
{
    memcpy((char *)rows + list->offset, &table, sizeof(table));
}

static void *table_of(const struct bench_rows *rows, const struct rows_list *list)
{
    void *table;

    memcpy(&table, (const char *)rows + list->offset, sizeof(table));
    return table;
}

static int read_list(const json_t *told, const struct rows_list *list, struct bench_rows *rows,
                     char *error, size_t len)
{
    const json_t *entries = json_object_get(told, list->name), *entry;
    size_t n = json_array_size(entries), i;
    char *table = calloc(n + 1, list->size);

    set_table(rows, list, table);
    if (!table)
        return -ENOMEM;
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

int rows_told_read(const json_t *told, struct bench_rows *rows, char *error, size_t len)
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
        rows_told_release(rows);
    return err;
}

void rows_told_release(struct bench_rows *rows)
{
    for (const struct rows_list *list = rows_lists; list->name; list++)
        free(table_of(rows, list));
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

int rows_told_add_columns(struct bench_rows *rows, const struct bench_rows *from)
{
    size_t n = count_columns(rows->columns), more = count_columns(from->columns);
    struct bench_column *all =
        realloc((void *)rows->columns, (n + more + 1) * sizeof(*rows->columns));

    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < more; i++)
        if (!has_column(all, from->columns[i].name)) {
            all[n++] = from->columns[i];
            all[n] = (struct bench_column){.name = NULL};
        }
    rows->columns = all;
    return 0;
}

json_t *rows_told_before(void)
{
    return json_loads(benches_before, 0, NULL);
}
