/* SPDX-License-Identifier: Apache-2.0 */
/* Names of places, and what is said where no GPU can be reached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>

#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"
#include "core/hw/place.h"
#include "core/hw/topo.h"

static int setup(void **state)
{
    return topo_open((struct topo **)state);
}

static int teardown(void **state)
{
    topo_close(*state);
    return 0;
}

static void assert_gpu(struct topo *topo, const char *name, unsigned index)
{
    struct place place = {0};
    char error[160] = "";

    assert_int_equal(place_find(name, topo, &place, error, sizeof(error)), 0);
    assert_true(place.gpu);
    assert_int_equal(place.index, index);
}

static void test_names(void **state)
{
    static const char *const wrong[] = {
        "cuda:",   "cuda:x",  "cuda-1", "cuda:1x",          "node",
        "nodes",   "gpu0",    "",       "cuda:01",          "cuda00",
        "node:01", "node0x1", "HOST",   "cuda:99999999999", NULL};
    struct place place;
    char error[160];

    assert_gpu(*state, "cuda", 0);
    assert_gpu(*state, "cuda:0", 0);
    assert_gpu(*state, "cuda:12", 12);
    assert_gpu(*state, "cuda3", 3);
    assert_int_equal(place_find("host", *state, &place, error, sizeof(error)), 0);
    assert_false(place.gpu);
    for (size_t i = 0; wrong[i]; i++) {
        assert_int_equal(place_find(wrong[i], *state, &place, error, sizeof(error)), -EINVAL);
        assert_non_null(strstr(error, "is not a place"));
    }
    assert_int_equal(place_find("node4000", *state, &place, error, sizeof(error)), -ENODEV);
}

static void assert_refused(const char *name, unsigned kinds, const char *message)
{
    struct place place;
    char error[160] = "";

    assert_int_equal(place_parse(name, kinds, &place, error, sizeof(error)), -EINVAL);
    assert_string_equal(error, message);
}

static void test_what_is_meant_is_suggested(void **state)
{
    (void)state;
    assert_refused("foo", PLACE_ANY, "'foo' is not a place: host, node0, nodes, cuda:0, gpus");
    assert_refused("cuda:", PLACE_GPU,
                   "'cuda:' is not a place: cuda:0, gpus; did you mean 'cuda:0'?");
    assert_refused("cud:3", PLACE_GPU,
                   "'cud:3' is not a place: cuda:3, gpus; did you mean 'cuda:3'?");
    assert_refused("cuda:07", PLACE_WHOLE | PLACE_GPU,
                   "'cuda:07' is not a place: host, cuda:7, gpus; did you mean 'cuda:7'?");
    assert_refused("hots", PLACE_WHOLE | PLACE_GPU,
                   "'hots' is not a place: host, cuda:0, gpus; did you mean 'host'?");
    assert_refused("host", PLACE_GPU, "'host' is no GPU: cuda:0, gpus");
    assert_refused("node1", PLACE_WHOLE | PLACE_GPU,
                   "'node1' is no device of its own: host, cuda:1, gpus");
}

static void test_a_place_has_one_name(void **state)
{
    static const char *const names[][2] = {
        {"cuda", "cuda:0"}, {"cuda7", "cuda:7"}, {"node:1", "node1"}, {"gpu", "cuda:0"}};
    static const char *const own[] = {"cuda:0", "node1", "host", "cuda:01", "moon"};
    char list[160];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(place_words(names[i][0], list, sizeof(list)));
        assert_string_equal(list, names[i][1]);
    }
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        assert_false(place_words(own[i], list, sizeof(list)));
    setenv("HWLOC_SYNTHETIC", "pack:3 [numa(memory=8GB)] core:1 pu:1", 1);
    assert_true(place_words_of_nodes("host", list, sizeof(list)));
    assert_string_equal(list, "node0");
    unsetenv("HWLOC_SYNTHETIC");
    assert_false(place_words_of_nodes("node0", list, sizeof(list)));
}

static void refused(const char *module, const char *because)
{
    struct gpus *gpus = gpus_open();
    struct gpu *gpu;
    const char *why;
    char error[GPU_ERROR_BYTES];

    setenv("PLUMB_CUDA_MODULE", module, 1);
    assert_null(gpus_module(gpus, &why));
    assert_non_null(strstr(why, because));
    assert_int_equal(gpus_get(gpus, 0, &gpu, error, sizeof(error)), -ENODEV);
    assert_string_equal(error, why);
    assert_int_equal(gpus_count(gpus), 0);
    gpus_close(gpus);
    unsetenv("PLUMB_CUDA_MODULE");
}

static void test_module_that_is_none(void **state)
{
    Dl_info library; /* the C library's file: sound, and no module */

    (void)state;
    assert_true(dladdr(dlsym(RTLD_DEFAULT, "qsort"), &library) != 0);
    refused("/nonexistent/plumb-cuda.so",
            "does not load: '/nonexistent/plumb-cuda.so' cannot be read (No such file or "
            "directory): name another in PLUMB_CUDA_MODULE");
    refused(library.dli_fname, GPU_MODULE_SYMBOL);
}

/* The mean of many is near 0 and the spread that of a uniform number; no two runs alike. */
static void test_values_are_spread(void **state)
{
    (void)state;
    for (uint32_t type = GPU_F64; type < GPU_S8; type++) {
        double sum = 0, squares = 0, n = 100000;
        for (uint64_t i = 0; i < 100000; i++) {
            double v = gpu_value_of_bits(type, gpu_value_bits(type, GPU_RANDOM, 7, i));
            assert_true(v > -1 && v < 1 && v != 0);
            sum += v;
            squares += v * v;
        }
        assert_true(sum / n > -0.01 && sum / n < 0.01);
        assert_true(squares / n > 0.27 &&
                    squares / n < 0.346); /* 1/3, less where the grid is coarse */
    }
    assert_true(gpu_hash(1, 2) != gpu_hash(2, 1));
    assert_int_equal(gpu_value_bits(GPU_F32, GPU_ZEROS, 7, 3), 0);
}

/* Bits of known numbers, by the standards' own tables. */
static void test_values_of_known_bits(void **state)
{
    (void)state;
    assert_true(gpu_value_of_bits(GPU_F64, 0x3fe8000000000000) == 0.75);
    assert_true(gpu_value_of_bits(GPU_F32, 0xbf400000) == -0.75);
    assert_true(gpu_value_of_bits(GPU_F16, 0x3a00) == 0.75);
    assert_true(gpu_value_of_bits(GPU_BF16, 0xbf40) == -0.75);
    assert_true(gpu_value_of_bits(GPU_E4M3, 0x34) == 0.75);  /* 0 0110 100: 2^-1 x 1.5 */
    assert_true(gpu_value_of_bits(GPU_E5M2, 0xba) == -0.75); /* 1 01110 10 */
    assert_true(gpu_value_of_bits(GPU_S8, 0xff) == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test(test_what_is_meant_is_suggested),
        cmocka_unit_test(test_a_place_has_one_name),
        cmocka_unit_test(test_module_that_is_none),
        cmocka_unit_test(test_values_are_spread),
        cmocka_unit_test(test_values_of_known_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
