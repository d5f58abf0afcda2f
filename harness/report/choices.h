/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a benchmark chose where the launch left it the choice (described_left_by(): the vector unit, a
 * thread a core) makes no case by itself: launches that chose differently are launches of one case,
 * and a value that was asked for makes a case of its own, though the benchmark chose the same
 * elsewhere. Which it was is in the arguments of the run's plan; of a launch that is in no plan
 * nobody knows, and it is taken as asked for.
 */
#ifndef PLUMB_REPORT_CHOICES_H
#define PLUMB_REPORT_CHOICES_H

#include "harness/report/model.h"
#include "harness/store/run_folder.h"

/* ---- What a run was asked for, by its plan: the cases of its suite ---- */

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

/* For a report: cases that the launches of one run split by what they chose become one, whose
 * parameter is "" and whose point says what they `chose`. What all of a run chose alike stays in
 * the case. */
void choices_unite(struct report *r);

/* For a comparison of the first n_a runs with the others: no case has what was left to the
 * benchmark, its parameters are "" there. What one side was asked for, and all launches of the
 * other chose of themselves, is one case. apart: of each run of the first whether it is of neither
 * side in this; NULL: none is. One plan a run. */
void choices_as_asked(struct report *r, const struct suite_index *plans, size_t n_a,
                      const bool *apart);

#endif
