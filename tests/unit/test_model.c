/* SPDX-License-Identifier: Apache-2.0 */
/* core/model: files that are models, files that are none, and the models of configs/models against
 * what is published of them. */
#include "core/model.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/fake_run.h"

static struct model loaded(const char *name)
{
    struct model m;
    char error[512] = "";

    if (model_load(name, &m, error, sizeof(error)))
        fail_msg("%s", error);
    return m;
}

static size_t tensors(const struct model *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_layers; i++)
        n += m->layers[i].parameters > 0;
    return n;
}

/* As the sources of the files say; of BERT, GPT-2 and the image models as PyTorch counts them. */
static void test_totals_are_exact(void **state)
{
    static const struct {
        const char *name, *unit;
        uint64_t parameters, sequence, experts;
        size_t tensors;
        unsigned blocks;
    } models[] = {{"resnet50", "image", 25557032, 0, 0, 161, 18},
                  {"vgg16", "image", 138357544, 0, 0, 32, 16},
                  {"bert-large", "sequence", 335141888, 512, 0, 391, 26},
                  {"gpt2-xl", "sequence", 1557611200, 1024, 0, 580, 50},
                  {"llama3-8b", "sequence", 8030261248, 8192, 0, 291, 34},
                  {"llama3-70b", "sequence", 70553706496, 8192, 0, 723, 82},
                  {"mixtral-8x7b", "sequence", 46702792704, 4096, 8, 323, 34},
                  {"dlrm", "sample", 24036595969, 0, 0, 42, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
        struct model m = loaded(models[i].name);

        assert_string_equal(m.name, models[i].name);
        assert_string_equal(m.unit, models[i].unit);
        assert_int_equal(m.parameters, models[i].parameters);
        assert_int_equal(m.sequence, models[i].sequence);
        assert_int_equal(m.experts, models[i].experts);
        assert_int_equal(tensors(&m), models[i].tensors);
        assert_int_equal(m.layers[m.n_layers - 1].block + 1, models[i].blocks);
        model_release(&m);
    }
}

struct sums {
    double forward, backward, kept, column_sums, row_sums;
};

static struct sums sums_of(const struct model *m, uint64_t sequence)
{
    struct sums s = {0};

    for (size_t i = 0; i < m->n_layers; i++) {
        const struct model_layer *l = &m->layers[i];
        s.forward += model_forward_flop(l, sequence);
        s.backward += model_backward_flop(l, sequence);
        s.kept += model_size_value(l->output, sequence);
        *(l->split == MODEL_COLUMN ? &s.column_sums : &s.row_sums) +=
            model_size_value(l->sum, sequence);
    }
    return s;
}

/* Multiply-adds of an image: ResNet-50 4.09e9 and VGG-16 15.47e9 (torchvision); of the first layer
 * no gradient of the input. */
static void test_operations_of_an_image(void **state)
{
    struct model resnet = loaded("resnet50"), vgg = loaded("vgg16");
    struct sums a = sums_of(&resnet, 0), b = sums_of(&vgg, 0);

    (void)state;
    assert_true(a.forward == 2 * 4089184256.);
    assert_true(a.backward == 4 * 4089184256. - 2. * 112 * 112 * 64 * 147);
    assert_true(b.forward == 2 * 15470264320.);
    model_release(&resnet);
    model_release(&vgg);
}

/* The outputs of ResNet-50's convolutions are 11.1 million (I. Radosavovic and others, Designing
 * Network Design Spaces, arXiv:2003.13678, 2020, table of complexity). */
static void test_outputs_of_convolutions(void **state)
{
    struct model m = loaded("resnet50");
    double kept = 0;

    (void)state;
    for (size_t i = 0; i < m.n_layers; i++)
        if (strstr(m.layers[i].name, "conv") || strstr(m.layers[i].name, "downsample.0"))
            kept += model_size_value(m.layers[i].output, 0);
    assert_true(fabs(kept - 11.1e6) < .05e6);
    model_release(&m);
}

static double border(const struct model *m, size_t last, uint64_t sequence)
{
    double output = 0;

    for (size_t i = 0; i <= last; i++)
        if (m->layers[i].output.factor)
            output = model_size_value(m->layers[i].output, sequence);
    return output;
}

/* Over the border between blocks goes what the next block takes in: of transformers tokens x width. Of
 * images the tables of the papers: feature maps behind pooling (VGG: table 1; ResNet: the
 * output sizes of table 1). */
static void test_borders_of_blocks(void **state)
{
    static const struct {
        const char *name;
        double token, image[18];
    } models[] = {
        {"bert-large", 1024, {0}},
        {"gpt2-xl", 1600, {0}},
        {"llama3-8b", 4096, {0}},
        {"llama3-70b", 8192, {0}},
        {"mixtral-8x7b", 4096, {0}},
        {"dlrm", 0, {27 * 128}},
        {"vgg16",
         0,
         {224 * 224 * 64, 112 * 112 * 64, 112 * 112 * 128, 56 * 56 * 128, 56 * 56 * 256,
          56 * 56 * 256, 28 * 28 * 256, 28 * 28 * 512, 28 * 28 * 512, 14 * 14 * 512, 14 * 14 * 512,
          14 * 14 * 512, 7 * 7 * 512, 4096, 4096}},
        {"resnet50",
         0,
         {56 * 56 * 64, 56 * 56 * 256, 56 * 56 * 256, 56 * 56 * 256, 28 * 28 * 512, 28 * 28 * 512,
          28 * 28 * 512, 28 * 28 * 512, 14 * 14 * 1024, 14 * 14 * 1024, 14 * 14 * 1024,
          14 * 14 * 1024, 14 * 14 * 1024, 14 * 14 * 1024, 7 * 7 * 2048, 7 * 7 * 2048, 2048}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
        struct model m = loaded(models[i].name);
        unsigned blocks = 0;
        for (size_t k = 0; k + 1 < m.n_layers; k++) {
            if (m.layers[k].block == m.layers[k + 1].block)
                continue;
            double wanted = models[i].token > 0 ? 64 * models[i].token : models[i].image[blocks];
            if (border(&m, k, 64) != wanted)
                fail_msg("%s, block %u: %.0f, must be %.0f", m.name, blocks, border(&m, k, 64),
                         wanted);
            blocks++;
        }
        model_release(&m);
    }
}

/*
 * A layer of a transformer with width h, heads a and s tokens, in closed form: 24 s h^2 + 4 s^2 h
 * operations forward (D. Narayanan and others, arXiv:2104.04473, section 3 and appendix), 2 sums of
 * s h in each direction, one more of the embedding and of the head (M. Shoeybi and others,
 * arXiv:1909.08053, section 3), and it keeps 34 s h +
 * 5 a s^2 bytes of 16-bit numbers, of which 2 s h + a s^2 are masks (V. Korthikanti and others,
 * arXiv:2205.05198, section 4.1).
 */
static void test_a_transformer_in_closed_form(void **state)
{
    static const struct {
        const char *name;
        double layers, h, a, outside; /* operations outside of the layers, of a token, forward */
        double kept_outside;          /* numbers of a token */
        double heads;                 /* over the vocabulary, which sum their input's gradient */
    } models[] = {{"bert-large", 24, 1024, 16, 0, 0, 0},
                  {"gpt2-xl", 48, 1600, 25, 2 * 50257. * 1600, 50257, 1}};
    const double s = 384;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        double h = models[i].h, layers = models[i].layers;
        struct model m = loaded(models[i].name);
        struct sums x = sums_of(&m, (uint64_t)s);
        double forward = layers * (24 * s * h * h + 4 * s * s * h) + s * models[i].outside;
        double kept = layers * (16 * s * h + 2 * models[i].a * s * s) + s * models[i].kept_outside;

        if (!models[i].outside)
            forward += 2 * h * h; /* the pooler, of one token */
        assert_true(fabs(x.forward / forward - 1) < 1e-12);
        assert_true(fabs(x.backward / (2 * forward) - 1) < 1e-12);
        assert_true(fabs(x.column_sums / ((layers * 2 + models[i].heads) * s * h) - 1) < 1e-12);
        assert_true(fabs(x.row_sums / ((layers * 2 + 1) * s * h) - 1) < 1e-12);
        /* and what is kept of embeddings and the end: less than two layers' vectors */
        assert_true(x.kept >= kept && x.kept <= kept + 3 * s * h);
        model_release(&m);
    }
}

/* Operations of a token without attention are 2 for each parameter that it meets: 13 B of Mixtral's
 * 47 B (the paper), all of Llama but the embedding. */
static void test_a_token_meets_its_parameters(void **state)
{
    static const struct {
        const char *name;
        double met, off;
    } models[] = {{"llama3-8b", 8030261248. - 128256. * 4096, 1e-3},
                  {"llama3-70b", 70553706496. - 128256. * 8192, 1e-3},
                  {"mixtral-8x7b", 12.88e9 - 32000. * 4096, 1e-2}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct model m = loaded(models[i].name);
        double flop = 0;

        for (size_t k = 0; k < m.n_layers; k++)
            if (m.layers[k].parameters)
                flop += model_forward_flop(&m.layers[k], 1000) / 1000;
        assert_true(fabs(flop / (2 * models[i].met) - 1) < models[i].off);
        model_release(&m);
    }
}

static void test_blocks_are_repeated(void **state)
{
    struct fake_run f;
    char path[256];

    (void)state;
    fake_run_init(&f);
    fake_run_write(&f, "m.csv",
                   "sequence,7\nblock,layer,parameters,m,n,k,output\n0,in,5\n1..3,b.{}.a,2,S,3,2*2,"
                   "2*S*S\n1..3,b.{}.b,1\n4,out,4\n,last,6\n");
    snprintf(path, sizeof(path), "%s/m.csv", f.path);
    struct model m = loaded(path);
    static const struct {
        const char *name;
        unsigned block;
        uint64_t parameters;
    } layers[] = {{"in", 0, 5},    {"b.0.a", 1, 2}, {"b.0.b", 1, 1},
                  {"b.1.a", 2, 2}, {"b.1.b", 2, 1}, {"b.2.a", 3, 2},
                  {"b.2.b", 3, 1}, {"out", 4, 4},   {"last", 4, 6}};
    assert_int_equal(m.n_layers, 9);
    for (size_t i = 0; i < 9; i++) {
        assert_string_equal(m.layers[i].name, layers[i].name);
        assert_int_equal(m.layers[i].block, layers[i].block);
        assert_int_equal(m.layers[i].parameters, layers[i].parameters);
    }
    assert_int_equal(m.parameters, 24);
    assert_true(model_forward_flop(&m.layers[5], 10) == 2. * 10 * 3 * 4);
    assert_true(model_size_value(m.layers[5].output, 10) == 200);
    model_release(&m);
    fake_run_release(&f);
}

static void check_refused(struct fake_run *f, const char *text, int err, const char *word)
{
    char path[256], error[512] = "";
    struct model m;

    fake_run_write(f, "m.csv", text);
    snprintf(path, sizeof(path), "%s/m.csv", f->path);
    assert_int_equal(model_load(path, &m, error, sizeof(error)), err);
    if (!strstr(error, word))
        fail_msg("'%s' lacks '%s'", error, word);
    model_release(&m);
}

static void test_what_is_no_model_is_refused(void **state)
{
    static const char *const files[][2] = {
        {"a,1\n", "line 1: it names a column that no model has"},
        {"# x\nlayer,parameters\na,1\nb,-2\n", "line 4"},
        {"layer,parameters\na,0\n", "neither parameters nor a product"},
        {"layer,parameters\na,1.5\n", "line 2"},
        {"layer,parameters\n,5\n", "line 2: a layer has a name"},
        {"layer,parameters\na,9999999999999999\n", "line 2"},
        {"layer,parameters\n", "no layer"},
        {"", "no layer"},
        {"layer,parameters\na,1,2\n", "more cells"},
        {"layer\na\n", "layer and parameters must be there"},
        {"layer,layer,parameters\na,a,1\n", "twice"},
        {"unit,parrot\nlayer,parameters\na,1\n", "image, sequence or sample"},
        {"sequence,0\nlayer,parameters\na,1\n", "no number"},
        {"layer,parameters,m\na,1,2\n", "all or none"},
        {"layer,parameters,m,n,k\na,1,2,3,x\n", "or products"},
        {"layer,parameters,m,n,k\na,1,2,3,0\n", "or products"},
        {"layer,parameters,output\na,1,S\n", "sequence,TOKENS"},
        {"sequence,4\nlayer,parameters,output\na,1,S*S*S\n", "or products"},
        {"layer,parameters,kind\na,1,round\n", "dense, expert or table"},
        {"layer,parameters,kind\na,1,expert\n", "experts,NUMBER"},
        {"layer,parameters,split\na,1,round\n", "column or row"},
        {"layer,parameters,sum\na,1,5\n", "of a layer that is split"},
        {"block,layer,parameters\n1,a,1\n0,b,1\n", "comes before"},
        {"block,layer,parameters\n1..3,a,1\n2,b,1\n", "comes before"},
        {"block,layer,parameters\n3..1,a,1\n", "no range"},
        {"block,layer,parameters\n1..2000,a,1\n", "no range"},
        {"block,layer,parameters\nx,a,1\n", "no range"}};
    struct fake_run f;
    char error[512] = "";
    struct model m;

    (void)state;
    fake_run_init(&f);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        check_refused(&f, files[i][0], -EBADMSG, files[i][1]);
    assert_int_equal(model_load("alexnet", &m, error, sizeof(error)), -ENOENT);
    assert_non_null(strstr(error, "no model 'alexnet'"));
    model_release(&m);
    fake_run_release(&f);
}

static void test_too_many_layers_are_refused(void **state)
{
    struct fake_run f;
    char path[256], error[512] = "";
    struct model m;
    FILE *out;

    (void)state;
    fake_run_init(&f);
    out = fake_run_open(&f, "m.csv", "w");
    fputs("layer,parameters\n", out);
    for (int i = 0; i <= MODEL_LAYERS_MAX; i++)
        fprintf(out, "l%d,1\n", i);
    fclose(out);
    snprintf(path, sizeof(path), "%s/m.csv", f.path);
    assert_int_equal(model_load(path, &m, error, sizeof(error)), -E2BIG);
    model_release(&m);
    check_refused(&f,
                  "block,layer,parameters\n0..1023,a,1\n0..1023,b,1\n0..1023,c,1\n0..1023,d,1\n"
                  "0..1023,e,1\n",
                  -E2BIG, "over 4096");
    fake_run_release(&f);
}

static void test_the_environment_names_the_folder(void **state)
{
    struct fake_run f;
    char path[256], error[512] = "";
    struct model m;

    (void)state;
    fake_run_init(&f);
    snprintf(path, sizeof(path), "%s/models", f.path);
    assert_int_equal(mkdir(path, 0777), 0);
    fake_run_write(&f, "models/tiny.csv", "layer,parameters\na,7\nb,8");
    setenv("PLUMB_CONFIGS", f.path, 1);
    m = loaded("tiny");
    assert_int_equal(m.parameters, 15);
    assert_string_equal(m.name, "tiny");
    model_release(&m);
    assert_int_equal(model_load("resnet50", &m, error, sizeof(error)), -ENOENT);
    model_release(&m);
    /* which models there are, and which may be meant */
    fake_run_write(&f, "models/small.csv", "layer,parameters\na,7\n");
    fake_run_write(&f, "models/notes.txt", "");
    fake_run_write(&f, "models/.csv", "");
    assert_string_equal(error, "no model 'resnet50': the models are tiny; or give the path of a "
                               "model's file");
    static const char *const cases[][2] = {
        {"tinny", "no model 'tinny': did you mean 'tiny'? the models are small, tiny; or give the "
                  "path of a model's file"},
        {"gone/smal.csv", "no model 'gone/smal.csv': did you mean 'small'? the models are small, "
                          "tiny; or give the path of a model's file"},
        {"other", "no model 'other': the models are small, tiny; or give the path of a model's "
                  "file"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(model_load(cases[i][0], &m, error, sizeof(error)), -ENOENT);
        assert_string_equal(error, cases[i][1]);
        model_release(&m);
    }
    setenv("PLUMB_CONFIGS", "/nowhere", 1);
    assert_int_equal(model_load("tiny", &m, error, sizeof(error)), -ENOENT);
    assert_string_equal(error, "no model 'tiny': give the path of a model's file");
    model_release(&m);
    unsetenv("PLUMB_CONFIGS");
    fake_run_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_totals_are_exact),
        cmocka_unit_test(test_operations_of_an_image),
        cmocka_unit_test(test_outputs_of_convolutions),
        cmocka_unit_test(test_borders_of_blocks),
        cmocka_unit_test(test_a_transformer_in_closed_form),
        cmocka_unit_test(test_a_token_meets_its_parameters),
        cmocka_unit_test(test_blocks_are_repeated),
        cmocka_unit_test(test_what_is_no_model_is_refused),
        cmocka_unit_test(test_too_many_layers_are_refused),
        cmocka_unit_test(test_the_environment_names_the_folder),
    };

    unsetenv("PLUMB_CONFIGS");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
