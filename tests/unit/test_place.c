/* SPDX-License-Identifier: Apache-2.0 */
/* Names of places, and what is said where no GPU can be reached. */
#include <dlfcn.h>

#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"
#include "core/hw/place.h"
#include "core/hw/topo.h"
#include "tests/unit/unit.h"

#define N(list) (sizeof(list) / sizeof(*(list)))

TEST(test_names)
{
    static const struct {
        const char *name;
        int err;
        bool gpu;
        unsigned index;
    } cases[] = {{"cuda", 0, true, 0},       {"cuda:0", 0, true, 0},
                 {"cuda:12", 0, true, 12},   {"cuda3", 0, true, 3},
                 {"host", 0, false, 0},      {"node4000", -ENODEV, 0, 0},
                 {"cuda:", -EINVAL, 0, 0},   {"cuda:x", -EINVAL, 0, 0},
                 {"cuda-1", -EINVAL, 0, 0},  {"cuda:1x", -EINVAL, 0, 0},
                 {"node", -EINVAL, 0, 0},    {"nodes", -EINVAL, 0, 0},
                 {"gpu0", -EINVAL, 0, 0},    {"", -EINVAL, 0, 0},
                 {"cuda:01", -EINVAL, 0, 0}, {"cuda00", -EINVAL, 0, 0},
                 {"node:01", -EINVAL, 0, 0}, {"node0x1", -EINVAL, 0, 0},
                 {"HOST", -EINVAL, 0, 0},    {"cuda:99999999999", -EINVAL, 0, 0}};
    struct topo *topo;

    assert_int_equal(topo_open(&topo), 0);
    for (size_t i = 0; i < N(cases); i++) {
        struct place place = {0};
        char error[160] = "";

        if (place_find(cases[i].name, topo, &place, error, sizeof(error)) != cases[i].err)
            fail_msg("'%s': %s", cases[i].name, error);
        if (cases[i].err)
            continue;
        assert_int_equal(place.gpu, cases[i].gpu);
        assert_int_equal(place.index, cases[i].index);
    }
    topo_close(topo);
}

/* What is meant is suggested, and no kind of place that is of no use. */
TEST(test_what_is_meant_is_suggested)
{
    static const struct {
        const char *name;
        unsigned kinds;
        const char *meant, *lacks;
    } cases[] = {
        {"cuda:", PLACE_GPU, "mean 'cuda:0'", "host"},
        {"cud:3", PLACE_GPU, "mean 'cuda:3'", "node"},
        {"cuda:07", PLACE_WHOLE | PLACE_GPU, "mean 'cuda:7'", "node"},
        {"hots", PLACE_WHOLE | PLACE_GPU, "mean 'host'", "node"},
        {"host", PLACE_GPU, "cuda:0", "node"},
        {"node1", PLACE_WHOLE | PLACE_GPU, "cuda:1", "mean"},
    };

    for (size_t i = 0; i < N(cases); i++) {
        struct place place;
        char error[160] = "";

        assert_int_equal(place_parse(cases[i].name, cases[i].kinds, &place, error, sizeof(error)),
                         -EINVAL);
        if (!strstr(error, cases[i].meant) || strstr(error, cases[i].lacks))
            fail_msg("%s", error);
    }
}

TEST(test_a_place_has_one_name)
{
    static const char *const names[][2] = {
        {"cuda", "cuda:0"}, {"cuda7", "cuda:7"}, {"node:1", "node1"}, {"gpu", "cuda:0"}};
    static const char *const own[] = {"cuda:0", "node1", "host", "cuda:01", "moon"};
    char list[160];

    for (size_t i = 0; i < N(names); i++) {
        assert_true(place_words(names[i][0], list, sizeof(list)));
        assert_string_equal(list, names[i][1]);
    }
    for (size_t i = 0; i < N(own); i++)
        assert_false(place_words(own[i], list, sizeof(list)));
    setenv("HWLOC_SYNTHETIC", "pack:3 [numa(memory=8GB)] core:1 pu:1", 1);
    assert_true(place_words_of_nodes("host", list, sizeof(list)));
    assert_string_equal(list, "node0");
    unsetenv("HWLOC_SYNTHETIC");
    assert_false(place_words_of_nodes("node0", list, sizeof(list)));
}

/* A module that is not there, and a sound file that is no module: the C library's. */
TEST(test_module_that_is_none)
{
    Dl_info library;

    assert_true(dladdr(dlsym(RTLD_DEFAULT, "qsort"), &library) != 0);
    const char *const modules[][2] = {{"/nonexistent/plumb-cuda.so", "/nonexistent/plumb-cuda.so"},
                                      {library.dli_fname, GPU_MODULE_SYMBOL}};
    for (size_t i = 0; i < N(modules); i++) {
        struct gpus *gpus = gpus_open();
        struct gpu *gpu;
        const char *why;
        char error[GPU_ERROR_BYTES];

        setenv("PLUMB_CUDA_MODULE", modules[i][0], 1);
        assert_null(gpus_module(gpus, &why));
        assert_non_null(strstr(why, modules[i][1]));
        assert_int_equal(gpus_get(gpus, 0, &gpu, error, sizeof(error)), -ENODEV);
        assert_string_equal(error, why);
        assert_int_equal(gpus_count(gpus), 0);
        gpus_close(gpus);
        unsetenv("PLUMB_CUDA_MODULE");
    }
}

/* The mean of many is near 0 and the spread that of a uniform number, 1/3, less where the grid is coarse. */
TEST(test_values_are_spread)
{
    for (uint32_t type = GPU_F64; type < GPU_S8; type++) {
        double sum = 0, squares = 0, n = 20000;
        for (uint64_t i = 0; i < 20000; i++) {
            double v = gpu_value_of_bits(type, gpu_value_bits(type, GPU_RANDOM, 7, i));
            assert_true(v > -1 && v < 1 && v != 0);
            sum += v;
            squares += v * v;
        }
        assert_true(sum / n > -0.01 && sum / n < 0.01);
        assert_true(squares / n > 0.27 && squares / n < 0.346);
    }
    assert_true(gpu_hash(1, 2) != gpu_hash(2, 1));
    assert_int_equal(gpu_value_bits(GPU_F32, GPU_ZEROS, 7, 3), 0);
}

/* Bits of known numbers, by the standards' own tables. */
TEST(test_values_of_known_bits)
{
    assert_true(gpu_value_of_bits(GPU_F64, 0x3fe8000000000000) == 0.75);
    assert_true(gpu_value_of_bits(GPU_F32, 0xbf400000) == -0.75);
    assert_true(gpu_value_of_bits(GPU_F16, 0x3a00) == 0.75);
    assert_true(gpu_value_of_bits(GPU_BF16, 0xbf40) == -0.75);
    assert_true(gpu_value_of_bits(GPU_E4M3, 0x34) == 0.75);  /* 0 0110 100: 2^-1 x 1.5 */
    assert_true(gpu_value_of_bits(GPU_E5M2, 0xba) == -0.75); /* 1 01110 10 */
    assert_true(gpu_value_of_bits(GPU_S8, 0xff) == -1);
}
