// SPDX-License-Identifier: Apache-2.0
// Tests of the shape sets: the reader, and the arithmetic of every set in configs/shapes against
// the models' published sizes.
#include "harness/plan/suite.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DIR_SHAPES "configs/shapes"

static void load(const char *name, struct shape_set *set)
{
    char path[512], err[1024] = "";
    snprintf(path, sizeof(path), DIR_SHAPES "/%s.yaml", name);
    if (shapes_load(path, set, err, sizeof(err)))
        fail_msg("%s", err);
}

// Multiply-adds of one pass over this many units.
static int64_t macs(const struct shape_set *set, int64_t units)
{
    int64_t sum = 0;
    for (size_t i = 0; i < set->count; i++)
        if (set->shapes[i].units == units)
            sum += set->shapes[i].m * set->shapes[i].n * set->shapes[i].k * set->shapes[i].count;
    return sum;
}

static int64_t weights(const struct shape_set *set)
{
    int64_t sum = 0;
    for (size_t i = 0; i < set->count; i++)
        if (set->shapes[i].units == set->shapes[0].units)
            sum += set->shapes[i].n * set->shapes[i].k * set->shapes[i].count;
    return sum;
}

static const struct shape *find(const struct shape_set *set, const char *name, int64_t units)
{
    for (size_t i = 0; i < set->count; i++)
        if (!strcmp(set->shapes[i].name, name) && set->shapes[i].units == units)
            return &set->shapes[i];
    fail_msg("no shape %s with %d units", name, (int)units);
    return NULL;
}

// 53 convolutions and one dense layer; 23454912 + 2048000 weights are the model's 25557032
// parameters less 53120 of the batch normalisations and 1000 biases; 4.09e9 is torchvision's figure
// for v1.5, 3.8e9 the paper's.
static void resnet50_adds_up(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t macs;
    } sets[] = {{"resnet50", 4089184256}, {"resnet50-v1", 3857973248}};
    for (size_t i = 0; i < 2; i++) {
        struct shape_set set;
        int64_t layers = 0;
        load(sets[i].name, &set);
        assert_int_equal(weights(&set), 25557032 - 53120 - 1000);
        assert_int_equal(macs(&set, 1), sets[i].macs);
        assert_int_equal(macs(&set, 32), 32 * sets[i].macs);
        for (size_t s = 0; s < set.count; s++)
            layers += set.shapes[s].units == 1 ? set.shapes[s].count : 0;
        assert_int_equal(layers, 54);
        assert_int_equal(find(&set, "conv1", 32)->m, 32 * 112 * 112);
        assert_string_equal(set.unit, "image");
        shapes_free(&set);
    }
}

// A block of the first transformers has 4 h^2 weights in attention and 8 h^2 in its MLP of 4 h.
static void transformers_have_12_h2_a_layer(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t h, layers;
    } sets[] = {{"gpt2-small", 768, 12},
                {"bert-large", 1024, 24},
                {"gpt3-6.7b", 4096, 32},
                {"gpt3-175b", 12288, 96}};
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
        struct shape_set set;
        load(sets[i].name, &set);
        assert_int_equal(weights(&set), 12 * sets[i].h * sets[i].h * sets[i].layers);
        assert_int_equal(find(&set, "qkv", 128)->n, 3 * sets[i].h);
        assert_int_equal(macs(&set, 128), 128 * weights(&set));
        shapes_free(&set);
    }
}

// With the embeddings and the norms, the weights are the number of parameters of the published
// checkpoints.
static void llamas_have_their_published_size(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t h, layers, vocabulary, parameters;
    } sets[] = {{"llama2-7b", 4096, 32, 32000, 6738415616},
                {"llama3-8b", 4096, 32, 128256, 8030261248},
                {"llama3-70b", 8192, 80, 128256, 70553706496}};
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
        struct shape_set set;
        load(sets[i].name, &set);
        int64_t rest = 2 * sets[i].vocabulary * sets[i].h + (2 * sets[i].layers + 1) * sets[i].h;
        assert_int_equal(weights(&set) + rest, sets[i].parameters);
        shapes_free(&set);
    }
}

static void every_set_loads_under_its_own_name(void **state)
{
    (void)state;
    int seen = 0;
    DIR *dir = opendir(DIR_SHAPES);
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir));) {
        struct shape_set set;
        size_t len = strlen(d->d_name);
        if (len < 6 || strcmp(d->d_name + len - 5, ".yaml"))
            continue;
        d->d_name[len - 5] = 0;
        load(d->d_name, &set);
        assert_string_equal(set.name, d->d_name);
        assert_true(set.count > 0 && strlen(set.about) > 20 && strlen(set.source) > 20);
        shapes_free(&set);
        seen++;
    }
    closedir(dir);
    assert_true(seen >= 9);
}

#define HEAD "name: s\nabout: a\nsource: b\nunit: token\n"
#define ROW  "shapes:\n  - {name: x, m: 3, n: 5, k: 7, count: 2}\n"

static void units_multiply_m(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "units: [2, 10]\n" ROW "  - {name: y, m: 1, n: 2, k: 4, count: 1}\n";
    struct shape_set set;
    char err[256], buf[64];
    assert_int_equal(shapes_load_buffer("t", text, strlen(text), &set, err, sizeof(err)), 0);
    assert_int_equal(set.count, 4);
    assert_string_equal(set.shapes[1].name, "y");
    shape_text(&set.shapes[0], buf, sizeof(buf));
    assert_string_equal(buf, "6x5x7");
    shape_text(&set.shapes[2], buf, sizeof(buf));
    assert_string_equal(buf, "30x5x7");
    shape_text(&set.shapes[3], buf, sizeof(buf));
    assert_string_equal(buf, "10x2x4");
    assert_int_equal(set.shapes[2].units, 10);
    assert_int_equal(set.shapes[2].count, 2);
    shapes_free(&set);
    assert_null(set.shapes);
}

static void refused(const char *text, const char *message)
{
    struct shape_set set;
    char err[512] = "";
    int rc = shapes_load_buffer("t", text, strlen(text), &set, err, sizeof(err));
    if (!rc)
        shapes_free(&set);
    assert_int_equal(rc, -EINVAL);
    assert_string_equal(err, message);
    assert_null(set.shapes);
}

static void faults_are_named(void **state)
{
    (void)state;
    refused(HEAD ROW, "t:1: \"the top level\" lacks the key \"units\"");
    refused(HEAD "units: [1]\n", "t:1: \"the top level\" lacks the key \"shapes\"");
    refused(HEAD "units: [1]\n" ROW "extra: 1\n",
            "t:8: unknown key \"extra\", allowed: name, about, source, unit, units, shapes");
    refused(HEAD "units: []\n" ROW, "t:5: \"units\" has 0 values, allowed: 1 to 16");
    refused(HEAD "units: [2, 2]\n" ROW, "t:5: \"units\" wants rising values");
    refused(HEAD "units: [0]\n" ROW, "t:5: \"units\" is 0, allowed: 1 to 16777216");
    refused(HEAD "units: [1]\nshapes: []\n", "t:6: \"shapes\" has 0 entries, allowed: 1 to 1000");
    refused(HEAD "units: [1]\nshapes:\n  - {name: x, m: 0, n: 5, k: 7, count: 2}\n",
            "t:7: \"m\" is 0, allowed: 1 to 2147483648");
    refused(HEAD "units: [1]\nshapes:\n  - {name: x, m: 1, n: 5, k: 7}\n",
            "t:7: \"shapes\" lacks the key \"count\"");
    refused(HEAD "units: [1]\n" ROW "  - {name: x, m: 1, n: 5, k: 7, count: 1}\n",
            "t:8: shape \"x\" stands twice");
    refused(HEAD "units: [1]\n" ROW "  - {name: z, m: 3, n: 5, k: 7, count: 1}\n",
            "t:8: shape \"z\" is the same product as \"x\", add up their counts");
    refused(HEAD "units: [1]\nshapes:\n  - {name: X y, m: 1, n: 5, k: 7, count: 1}\n",
            "t:7: \"X y\" wants small letters, digits, \"-\" and \".\"");
    refused(HEAD "units: [1, 1000]\nshapes:\n  - {name: x, m: 2147483648, n: 5, k: 7, count: 1}\n",
            "t:7: shape \"x\" with 1000 units has m beyond 2147483648");
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    struct shape_set set;
    char err[256];
    assert_int_equal(shapes_load("/nonexistent.yaml", &set, err, sizeof(err)), -ENOENT);
    assert_string_equal(err, "/nonexistent.yaml: cannot be read: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet50_adds_up),
        cmocka_unit_test(transformers_have_12_h2_a_layer),
        cmocka_unit_test(llamas_have_their_published_size),
        cmocka_unit_test(every_set_loads_under_its_own_name),
        cmocka_unit_test(units_multiply_m),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
