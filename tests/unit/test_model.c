/* SPDX-License-Identifier: Apache-2.0 */
/* core/model: files that are models, files that are none, and the models of configs/models against
 * what is published of them. */
#include "core/model.h"
#include "tests/unit/unit.h"

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
TEST(test_totals_are_exact)
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

/*
 * A layer of a transformer with width h, heads a and s tokens, in closed form: 24 s h^2 + 4 s^2 h
 * operations forward (D. Narayanan and others, arXiv:2104.04473, section 3 and appendix), 2 sums of
 * s h in each direction, one more of the embedding and of the head (M. Shoeybi and others,
 * arXiv:1909.08053, section 3), and it keeps 34 s h +
 * 5 a s^2 bytes of 16-bit numbers, of which 2 s h + a s^2 are masks (V. Korthikanti and others,
 * arXiv:2205.05198, section 4.1).
 */
TEST(test_a_transformer_in_closed_form)
{
    static const struct {
        const char *name;
        double layers, h, a, outside; /* operations outside of the layers, of a token, forward */
        double kept_outside;          /* numbers of a token */
        double heads;                 /* over the vocabulary, which sum their input's gradient */
    } models[] = {{"bert-large", 24, 1024, 16, 0, 0, 0},
                  {"gpt2-xl", 48, 1600, 25, 2 * 50257. * 1600, 50257, 1}};
    const double s = 384;
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

TEST(test_blocks_are_repeated)
{
    struct fake_run f;
    char path[256];
    fake_run_init(&f);
    fake_run_write(&f, "m.csv",
                   "sequence,7\nblock,layer,parameters,m,n,k,output\n0,in,5\n1..3,b.{}.a,2,S,3,2*2,"
                   "2*S*S\n1..3,b.{}.b,1\n4,out,4\n,last,6\n");
    snprintf(path, sizeof(path), "%s/m.csv", f.path);
    struct model m = loaded(path);
    static const char *const names[] = {"in",    "b.0.a", "b.0.b", "b.1.a", "b.1.b",
                                        "b.2.a", "b.2.b", "out",   "last"};
    static const unsigned blocks[] = {0, 1, 1, 2, 2, 3, 3, 4, 4},
                          parameters[] = {5, 2, 1, 2, 1, 2, 1, 4, 6};
    assert_int_equal(m.n_layers, 9);
    for (size_t i = 0; i < 9; i++) {
        assert_string_equal(m.layers[i].name, names[i]);
        assert_int_equal(m.layers[i].block, blocks[i]);
        assert_int_equal(m.layers[i].parameters, parameters[i]);
    }
    assert_int_equal(m.parameters, 24);
    assert_true(model_forward_flop(&m.layers[5], 10) == 2. * 10 * 3 * 4);
    assert_true(model_size_value(m.layers[5].output, 10) == 200);
    model_release(&m);
    fake_run_release(&f);
}

static void refused_file(struct fake_run *f, const char *name, int err, const char *word)
{
    char path[256], error[512] = "";
    struct model m;

    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    assert_int_equal(model_load(path, &m, error, sizeof(error)), err);
    assert_says(error, word);
    model_release(&m);
}

static void check_refused(struct fake_run *f, const char *text, int err, const char *word)
{
    fake_run_write(f, "m.csv", text);
    refused_file(f, "m.csv", err, word);
}

/* Each refusal names its line, or the words that it has. */
TEST(test_what_is_no_model_is_refused)
{
    static const char *const files[][2] = {
        {"a,1\n", "line 1"},
        {"# x\nlayer,parameters\na,1\nb,-2\n", "line 4"},
        {"layer,parameters\na,0\n", "line 2"},
        {"layer,parameters\na,1.5\n", "line 2"},
        {"layer,parameters\n,5\n", "line 2"},
        {"layer,parameters\na,9999999999999999\n", "line 2"},
        {"layer,parameters\n", "no layer"},
        {"layer,parameters\na,1,2\n", "more cells"},
        {"layer\na\n", "parameters"},
        {"layer,layer,parameters\na,a,1\n", "twice"},
        {"unit,parrot\nlayer,parameters\na,1\n", "image"},
        {"sequence,0\nlayer,parameters\na,1\n", "no number"},
        {"layer,parameters,m\na,1,2\n", "all or none"},
        {"layer,parameters,m,n,k\na,1,2,3,x\n", "line 2"},
        {"layer,parameters,m,n,k\na,1,2,3,0\n", "line 2"},
        {"layer,parameters,output\na,1,S\n", "sequence"},
        {"sequence,4\nlayer,parameters,output\na,1,S*S*S\n", "line 3"},
        {"layer,parameters,kind\na,1,round\n", "dense"},
        {"layer,parameters,kind\na,1,expert\n", "experts"},
        {"layer,parameters,split\na,1,round\n", "column"},
        {"layer,parameters,sum\na,1,5\n", "split"},
        {"block,layer,parameters\n1,a,1\n0,b,1\n", "line 3"},
        {"block,layer,parameters\n1..3,a,1\n2,b,1\n", "line 3"},
        {"block,layer,parameters\n3..1,a,1\n", "range"},
        {"block,layer,parameters\n1..2000,a,1\n", "range"},
        {"block,layer,parameters\nx,a,1\n", "range"}};
    struct fake_run f;
    FILE *out;
    fake_run_init(&f);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        check_refused(&f, files[i][0], -EBADMSG, files[i][1]);
    check_refused(
        &f,
        "block,layer,parameters\n0..1023,a,1\n0..1023,b,1\n0..1023,c,1\n0..1023,d,1\n0..1023,e,1\n",
        -E2BIG, "4096");
    out = fake_run_open(&f, "n.csv", "w");
    fputs("layer,parameters\n", out);
    for (int i = 0; i <= MODEL_LAYERS_MAX; i++)
        fprintf(out, "l%d,1\n", i);
    fclose(out);
    refused_file(&f, "n.csv", -E2BIG, "");
    refused_file(&f, "alexnet", -ENOENT, "alexnet");
    fake_run_release(&f);
}

TEST(test_the_environment_names_the_folder)
{
    struct fake_run f;
    char path[256], error[512] = "";
    struct model m;
    fake_run_init(&f);
    snprintf(path, sizeof(path), "%s/models", f.path);
    assert_int_equal(mkdir(path, 0777), 0);
    fake_run_write(&f, "models/tiny.csv", "layer,parameters\na,7\nb,8");
    setenv("PLUMB_CONFIGS", f.path, 1);
    m = loaded("tiny");
    assert_int_equal(m.parameters, 15);
    model_release(&m);
    assert_int_equal(model_load("resnet50", &m, error, sizeof(error)), -ENOENT);
    model_release(&m);
    assert_non_null(strstr(error, "tiny")); /* what there is */
    assert_int_equal(model_load("tinny", &m, error, sizeof(error)), -ENOENT);
    assert_non_null(strstr(error, "did you mean 'tiny'"));
    model_release(&m);
    unsetenv("PLUMB_CONFIGS");
    fake_run_release(&f);
}

/* Multiply-adds of an image: ResNet-50 4.09e9 and VGG-16 15.47e9 (torchvision); of the first layer no gradient of the input.
 * Without attention, a token's are those of each parameter that it meets: all of Llama but the embedding, 13 B of Mixtral's 47 B. */
TEST(test_operations_of_published_models)
{
    static const struct {
        const char *name;
        double met, off;
    } models[] = {{"llama3-8b", 8030261248. - 128256. * 4096, 1e-3},
                  {"llama3-70b", 70553706496. - 128256. * 8192, 1e-3},
                  {"mixtral-8x7b", 12.88e9 - 32000. * 4096, 1e-2}};
    struct model resnet = loaded("resnet50"), vgg = loaded("vgg16");
    struct sums a = sums_of(&resnet, 0), b = sums_of(&vgg, 0);
    assert_true(a.forward == 2 * 4089184256.);
    assert_true(a.backward == 4 * 4089184256. - 2. * 112 * 112 * 64 * 147);
    assert_true(b.forward == 2 * 15470264320.);
    model_release(&resnet);
    model_release(&vgg);
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

static int own_configs(void **state)
{
    (void)state;
    return unsetenv("PLUMB_CONFIGS");
}
TESTS_WITH(own_configs, NULL);
