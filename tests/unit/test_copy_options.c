/* SPDX-License-Identifier: Apache-2.0 */
/* What copy's options make of places: words that stand for several, and defaults that follow them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "benches/copy/copy_work.h"
#include "core/option.h"

enum { PLACE = 2 }; /* places in the table */

static const struct opt table[] = {
    {.name = "engine",
     .type = OPT_CHOICE,
     .flags = OPT_LIST,
     .def = "memcpy,shm",
     .choices = copy_engines},
    {.name = "memory", .type = OPT_STRING, .flags = OPT_LIST, .def = "pageable"},
    {.name = "source",
     .type = OPT_STRING,
     .flags = OPT_LIST,
     .def = "node0",
     .expand = place_words},
    {.name = "destination",
     .type = OPT_STRING,
     .flags = OPT_LIST,
     .def = "node0",
     .expand = place_words},
    {.name = NULL},
};
static const struct opt *const tables[] = {table, NULL};

/* The engines that are taken with these arguments, as one text. */
static const char *engines_with(const char *option, const char *value)
{
    static char text[64];
    char *argv[] = {"copy", (char *)option, (char *)value, NULL};
    struct opts o;

    assert_int_equal(opts_init(&o, tables), 0);
    assert_int_equal(opts_parse(&o, option ? 3 : 1, argv), 0);
    assert_int_equal(copy_defaults(&o), 0);
    const struct opt_values *v = opts_values(&o, "engine");
    snprintf(text, sizeof(text), "%s%s%s", v->texts[0], v->n > 1 ? "," : "",
             v->n > 1 ? v->texts[1] : "");
    opts_release(&o);
    return text;
}

static void test_engines_follow_the_places(void **state)
{
    (void)state;
    assert_string_equal(engines_with(NULL, NULL), "memcpy,shm");
    assert_string_equal(engines_with("--source", "node1"), "memcpy,shm");
    assert_string_equal(engines_with("--source", "cuda:0"), "auto");
    assert_string_equal(engines_with("--destination", "node0,cuda"), "auto");
    assert_string_equal(engines_with("--engine", "pipe"), "pipe");
}

static void test_words_for_places(void **state)
{
    struct opt_values v = {0};
    char error[160];

    (void)state;
    setenv("HWLOC_SYNTHETIC", "pack:3 [numa(memory=8GB)] core:1 pu:1", 1);
    setenv("PLUMB_CUDA_MODULE", "/nowhere/none.so",
           1); /* no GPU: its name stays, and its row says why */
    assert_int_equal(
        opt_values_read(&table[PLACE], "nodes, gpus,gpu,node7", &v, error, sizeof(error)), 0);
    const char *const want[] = {"node0", "node1", "node2", "cuda:0", "node7"};
    assert_int_equal(v.n, 5);
    for (size_t i = 0; i < v.n; i++) {
        assert_string_equal(v.texts[i], want[i]);
        free(v.texts[i]);
    }
    free(v.texts);
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("PLUMB_CUDA_MODULE");
}

static void test_a_gpu_and_itself_is_no_pair(void **state)
{
    struct copy_params p = {.source = "cuda:1", .destination = "cuda:1"};
    struct point pt = {.params = &p};

    (void)state;
    assert_false(copy_wanted(&pt));
    p.destination = "cuda:0";
    assert_true(copy_wanted(&pt));
    p.destination = "node0";
    assert_true(copy_wanted(&pt));
    p.source = "node0"; /* a node and itself is a copy like any other */
    assert_true(copy_wanted(&pt));
    p.source = p.destination = "cuda:x";
    assert_true(copy_wanted(&pt)); /* its row will say what is wrong */
    topo_close(pt.topo_loaded);
}

static void test_who_runs_it(void **state)
{
    struct place host = {.gpu = false}, gpu = {.gpu = true};

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct place ends[2] = {i & 1 ? gpu : host, i & 2 ? gpu : host};
        assert_ptr_equal(copy_work_of(ends), i ? &gpu_copy_work : &host_copy_work);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engines_follow_the_places),
        cmocka_unit_test(test_words_for_places),
        cmocka_unit_test(test_a_gpu_and_itself_is_no_pair),
        cmocka_unit_test(test_who_runs_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
