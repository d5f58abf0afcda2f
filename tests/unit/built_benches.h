/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmarks as they were built beside the tests, by what they say of themselves. */
#ifndef PLUMB_TESTS_BUILT_BENCHES_H
#define PLUMB_TESTS_BUILT_BENCHES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "harness/plan/bench_info.h"

static inline struct bench_list built_benches(void)
{
    struct bench_list list;
    char folder[4000] = "", path[4100];

    assert_int_equal(program_folder(folder, sizeof(folder)), 0);
    snprintf(path, sizeof(path), "%s/../bin", folder);
    assert_int_equal(setenv("PATH", path, 1), 0);
    bench_list_load(&list);
    if (!list.n || *(list.problems ? list.problems : ""))
        fail_msg("no benchmarks in '%s': make units. %s", path, list.problems ? list.problems : "");
    return list;
}

static inline const struct bench_rows *rows_of(const struct bench_list *list, const char *bench)
{
    const struct bench_info *b = bench_list_find(list, bench);

    if (!b)
        fail_msg("there is no benchmark '%s'", bench);
    return &b->rows;
}

#endif
