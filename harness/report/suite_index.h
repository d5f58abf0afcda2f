/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of a run's suite, by its plan, to find a case of one run in another. */
#ifndef PLUMB_REPORT_SUITE_INDEX_H
#define PLUMB_REPORT_SUITE_INDEX_H

#include "harness/store/run_folder.h"

/* A case of a suite in one run, by its plan: what its launches came to. */
struct suite_entry {
    const char *bench, *arguments, *hosts[3], *case_id;
    size_t n_done, n_skipped, n_failed, n_late, n_todo;
    double margin;      /* NaN: the suite says none */
    const char *reason; /* of its first row without a value; "" */
};

struct suite_index {
    struct suite_entry *by_case; /* sorted by benchmark and number */
    struct suite_entry **by_arguments;
    size_t n;
};

void suite_index_make(const struct run_folder *run, struct suite_index *index);
void suite_index_release(struct suite_index *index);
const struct suite_entry *suite_entry_of(const struct suite_index *index, const char *bench,
                                         const char *case_id);
/* The same case in another run: of the same benchmark, arguments and hosts. NULL: it has none. */
const struct suite_entry *suite_entry_like(const struct suite_index *index,
                                           const struct suite_entry *entry);

#endif
