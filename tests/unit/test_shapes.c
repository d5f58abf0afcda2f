// SPDX-License-Identifier: Apache-2.0
// Tests of the shape sets: the reader, and the arithmetic of every set in configs/shapes against
// the models' published sizes.
#include "harness/plan/suite.h"
#include "tests/unit/unit.h"

#include <dirent.h>

#define DIR_SHAPES "configs/shapes"

static void load(const char *name, struct shape_set *set)
{
    char path[512], err[1024] = "";
    snprintf(path, sizeof(path), DIR_SHAPES "/%s.yaml", name);
    if (shapes_load(path, set, err, sizeof(err)))
        fail_msg("%s", err);
}

// ResNet-50: 53 convolutions and one dense layer; the weights are the model's parameters less 53120 of the batch normalisations and 1000 biases; 4.09e9 is
// torchvision's figure for v1.5, 3.8e9 the paper's. A block of the first transformers has 4 h^2 weights in attention and 8 h^2 in its MLP of 4 h; with the
// embeddings and the norms Llama's weights are those of the published checkpoints.
TEST(sets_have_the_published_sizes)
{
    static const struct {
        const char *name;
        int64_t weights, units, macs; // multiply-adds of that many units
    } sets[] = {
        {"resnet50", 25557032 - 53120 - 1000, 32, 32 * 4089184256},
        {"resnet50-v1", 25557032 - 53120 - 1000, 1, 3857973248},
        {"gpt2-small", INT64_C(12) * 768 * 768 * 12, 128, INT64_C(128) * 12 * 768 * 768 * 12},
        {"bert-large", INT64_C(12) * 1024 * 1024 * 24, 128, INT64_C(128) * 12 * 1024 * 1024 * 24},
        {"gpt3-6.7b", INT64_C(12) * 4096 * 4096 * 32, 0, 0},
        {"gpt3-175b", INT64_C(12) * 12288 * 12288 * 96, 0, 0},
        {"llama2-7b", 6738415616 - 2 * 32000 * 4096 - 65 * 4096, 0, 0},
        {"llama3-8b", 8030261248 - 2 * 128256 * 4096 - 65 * 4096, 0, 0},
        {"llama3-70b", 70553706496 - INT64_C(2) * 128256 * 8192 - 161 * 8192, 0, 0}};
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
        struct shape_set set;
        int64_t weights = 0, macs = 0;
        load(sets[i].name, &set);
        for (size_t k = 0; k < set.count; k++) {
            const struct shape *s = &set.shapes[k];
            weights += s->units == set.shapes[0].units ? s->n * s->k * s->count : 0;
            macs += s->units == sets[i].units ? s->m * s->n * s->k * s->count : 0;
        }
        assert_int_equal(weights, sets[i].weights);
        assert_int_equal(macs, sets[i].macs);
        shapes_free(&set);
    }
}

TEST(every_set_loads_under_its_own_name)
{
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

TEST(units_multiply_m)
{
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

// Each fault has its line, and the name or the bound.
TEST(faults_are_named)
{
    static const char *const cases[][3] = {
        {HEAD "units: [1]\n", "t:1:", "\"shapes\""},
        {HEAD "units: []\n" ROW, "t:5:", "1 to 16"},
        {HEAD "units: [2, 2]\n" ROW, "t:5:", "rising"},
        {HEAD "units: [1]\nshapes: []\n", "t:6:", "1 to 1000"},
        {HEAD "units: [1]\nshapes:\n  - {name: x, m: 0, n: 5, k: 7, count: 2}\n",
         "t:7:", "1 to 2147483648"},
        {HEAD "units: [1]\nshapes:\n  - {name: x, m: 1, n: 5, k: 7}\n", "t:7:", "\"count\""},
        {HEAD "units: [1]\n" ROW "  - {name: x, m: 1, n: 5, k: 7, count: 1}\n", "t:8:", "twice"},
        {HEAD "units: [1]\n" ROW "  - {name: z, m: 3, n: 5, k: 7, count: 1}\n", "t:8:", "\"x\""},
        {HEAD "units: [1]\nshapes:\n  - {name: X y, m: 1, n: 5, k: 7, count: 1}\n",
         "t:7:", "\"X y\""},
        {HEAD "units: [1, 1000]\nshapes:\n  - {name: x, m: 2147483648, n: 5, k: 7, count: 1}\n",
         "t:7:", "beyond 2147483648"}};
    struct shape_set set;
    char err[512] = "";
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(
            shapes_load_buffer("t", cases[i][0], strlen(cases[i][0]), &set, err, sizeof(err)),
            -EINVAL);
        if (strncmp(err, cases[i][1], 4) || !strstr(err, cases[i][2]))
            fail_msg("case %zu: %s", i, err);
        assert_null(set.shapes);
    }
    assert_int_equal(shapes_load("/nonexistent.yaml", &set, err, sizeof(err)), -ENOENT);
}
