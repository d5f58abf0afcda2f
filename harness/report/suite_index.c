/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of a run's plan: see suite_index.h. */
#include "harness/report/suite_index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/units.h"

static int compare_case(const void *x, const void *y)
{
    const struct suite_entry *a = x, *b = y;
    int d = strcmp(a->case_id, b->case_id);

    return d ? d : strcmp(a->bench, b->bench);
}

static int compare_arguments(const void *x, const void *y)
{
    const struct suite_entry *a = *(struct suite_entry *const *)x,
                             *b = *(struct suite_entry *const *)y;
    int d = strcmp(a->bench, b->bench);

    d = d ? d : strcmp(a->arguments, b->arguments);
    for (size_t i = 0; !d && i < 3; i++)
        d = strcmp(a->hosts[i], b->hosts[i]);
    return d;
}

static void read_launch(const struct table *plan, const size_t columns[8], size_t row,
                        struct suite_entry *e)
{
    const char *state = table_cell(plan, row, columns[0]);

    *e = (struct suite_entry){.n_done = !strcmp(state, "done"),
                              .n_skipped = !strcmp(state, "skip"),
                              .n_failed = !strcmp(state, "fail"),
                              .n_late = !strcmp(state, "late"),
                              .n_todo = !strcmp(state, "todo"),
                              .reason = "",
                              .bench = table_cell(plan, row, columns[1]),
                              .case_id = table_cell(plan, row, columns[2]),
                              .arguments = table_cell(plan, row, columns[3])};
    for (size_t i = 0; i < 3; i++)
        e->hosts[i] = table_cell(plan, row, columns[4 + i]);
    if (units_parse_double(table_cell(plan, row, columns[7]), &e->margin) ||
        !(e->margin > 0 && e->margin < 1))
        e->margin = NAN;
}

/* Launches of one case become one entry. */
static size_t merge_launches(struct suite_entry *all, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct suite_entry *e = kept ? &all[kept - 1] : NULL;

        if (!e || compare_case(e, &all[i])) {
            all[kept++] = all[i];
            continue;
        }
        e->n_done += all[i].n_done;
        e->n_skipped += all[i].n_skipped;
        e->n_failed += all[i].n_failed;
        e->n_late += all[i].n_late;
        e->n_todo += all[i].n_todo;
    }
    return kept;
}

/* Why a launch has no value is in its rows. */
static void take_reasons(const struct run_folder *run, struct suite_index *index)
{
    for (size_t k = 0; k < run->n_benches; k++) {
        const struct table *t = &run->benches[k].rows;
        size_t status = table_column(t, "status"), reason = table_column(t, "reason");
        size_t number = table_column(t, "case");

        for (size_t row = 0; row < t->n_rows; row++) {
            const char *text = table_cell(t, row, status);
            if (!strcmp(text, "ok") || !strcmp(text, "noisy"))
                continue;
            struct suite_entry *e = (struct suite_entry *)suite_entry_of(
                index, run->benches[k].name, table_cell(t, row, number));
            if (e && !*e->reason)
                e->reason = table_cell(t, row, reason);
        }
    }
}

void suite_index_make(const struct run_folder *run, struct suite_index *index)
{
    static const char *const names[8] = {"state", "bench", "case",  "arguments",
                                         "from",  "to",    "hosts", "margin"};
    const struct table *plan = &run->plan;
    size_t columns[8];

    *index =
        (struct suite_index){.by_case = xcalloc(plan->n_rows, sizeof(*index->by_case)),
                             .by_arguments = xcalloc(plan->n_rows, sizeof(*index->by_arguments))};
    for (size_t i = 0; i < 8; i++)
        columns[i] = table_column(plan, names[i]);
    for (size_t i = 0; i < plan->n_rows; i++)
        read_launch(plan, columns, i, &index->by_case[i]);
    qsort(index->by_case, plan->n_rows, sizeof(*index->by_case), compare_case);
    index->n = merge_launches(index->by_case, plan->n_rows);
    for (size_t i = 0; i < index->n; i++)
        index->by_arguments[i] = &index->by_case[i];
    take_reasons(run, index);
    qsort(index->by_arguments, index->n, sizeof(*index->by_arguments), compare_arguments);
}

void suite_index_release(struct suite_index *index)
{
    free(index->by_case);
    free(index->by_arguments);
    *index = (struct suite_index){0};
}

const struct suite_entry *suite_entry_of(const struct suite_index *index, const char *bench,
                                         const char *case_id)
{
    struct suite_entry key = {.bench = bench, .case_id = case_id};

    return bsearch(&key, index->by_case, index->n, sizeof(key), compare_case);
}

const struct suite_entry *suite_entry_like(const struct suite_index *index,
                                           const struct suite_entry *entry)
{
    struct suite_entry *const *found = bsearch(&entry, index->by_arguments, index->n,
                                               sizeof(*index->by_arguments), compare_arguments);

    return found ? *found : NULL;
}
