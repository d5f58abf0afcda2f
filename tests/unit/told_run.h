/* SPDX-License-Identifier: Apache-2.0 */
/* run.json of runs that are made up, with what the built benchmarks say of their rows. */
#ifndef PLUMB_TESTS_TOLD_RUN_H
#define PLUMB_TESTS_TOLD_RUN_H

#include "tests/unit/built_benches.h"
#include "tests/unit/fake_run.h"

static char *told_benchmarks;

static inline int told_ask(void **state)
{
    struct bench_list list = built_benches();
    json_t *all = json_object();

    (void)state;
    for (size_t i = 0; i < list.n; i++)
        json_object_set(all, list.benches[i].name, list.benches[i].described);
    told_benchmarks = json_dumps(all, 0);
    json_decref(all);
    bench_list_release(&list);
    return told_benchmarks ? 0 : -1;
}

static inline int told_forget(void **state)
{
    (void)state;
    free(told_benchmarks);
    return 0;
}

/* rest: its other members, "\"machine\": {}". */
static inline void told_write(const struct fake_run *f, const char *rest)
{
    FILE *out = fake_run_open(f, "run.json", "w");

    fprintf(out, "{\"schema\": 3, \"run\": \"one\", %s, \"benchmarks\": %s}\n", rest,
            told_benchmarks);
    fclose(out);
}

#endif
