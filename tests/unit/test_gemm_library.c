/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the matrix libraries behind their ops tables. */
#include "benches/gemm/library.h"
#include "tests/unit/unit.h"

TEST(missing_library_names_its_package)
{
    static const char *const names[] = {"libnot-here-at-all.so.7", NULL};
    char why[GEMM_WHY_BYTES] = "";
    int err = 0;

    assert_null(gemm_dlopen(NULL, names, "libnot-here7", &err, why));
    assert_int_equal(err, -ELIBACC);
    assert_true(strstr(why, names[0]) && strstr(why, "'libnot-here7'"));
    assert_null(gemm_onednn.open("libm.so.6", &err, why)); /* a library, but not this one */
    assert_int_equal(err, -ELIBACC);
    assert_non_null(strstr(why, "dnnl_version"));
}

TEST(every_type_has_a_library)
{
    size_t n = 0;

    assert_int_equal(gemm_types_of(&gemm_on_gpu), (1u << GEMM_DTYPES) - 1);
    for (const struct gemm_where *const *w = gemm_wheres; *w; w++)
        for (int type = 0; type < GEMM_DTYPES; type++) {
            const struct gemm_library *library = gemm_library_for(*w, (enum gemm_dtype)type);
            bool has_form = gemm_form_find((*w)->forms, (enum gemm_dtype)type, GEMM_SUMS_DEFAULT);
            assert_int_equal(library != NULL, has_form);
            assert_true(!library || library->gpu == (*w)->gpu);
        }
    assert_ptr_equal(gemm_library_for(&gemm_on_host, GEMM_F32), &gemm_onednn);
    assert_ptr_equal(gemm_library_for(&gemm_on_host, GEMM_F64), &gemm_openblas);
    for (; gemm_libraries[n]; n++)
        assert_string_equal(gemm_library_names[n + 1], gemm_libraries[n]->name);
    assert_null(gemm_library_names[n + 1]);
}

TEST(better_kernels_by_features)
{
    static const struct cpu_features avx512 = {.avx2 = true,
                                               .fma = true,
                                               .avx512f = true,
                                               .avx512 = true},
                                     half = {.avx2 = true,
                                             .fma = true,
                                             .avx512f = true}, /* F alone */
        avx2 = {.avx2 = true, .fma = true}, none = {0}, sve = {.neon = true, .sve = true},
                                     neon = {.neon = true};
    static const struct {
        const struct cpu_features *f;
        const char *core, *better;
    } cases[] = {{&avx512, "Haswell", "SKYLAKEX"},
                 {&avx512, "Zen", "SKYLAKEX"},
                 {&avx512, "Prescott", "SKYLAKEX"},
                 {&avx512, "SkylakeX", NULL},
                 {&avx512, "Cooperlake", NULL},
                 {&avx512, "OfTheFuture", NULL},
                 {&half, "Haswell", NULL},
                 {&avx2, "Haswell", NULL},
                 {&avx2, "Zen", NULL},
                 {&avx2, "Sandybridge", "HASWELL"},
                 {&avx2, "Barcelona", "HASWELL"},
                 {&none, "Prescott", NULL},
                 {&sve, "armv8", "NEOVERSEV1"},
                 {&sve, "neoversev1", NULL},
                 {&neon, "armv8", NULL}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *better = openblas_better_core(cases[i].f, cases[i].core);
        if (cases[i].better ? !better || strcmp(better, cases[i].better) : better != NULL)
            fail_msg("case %zu: %s", i, better ? better : "none");
    }
}

TEST(task_times_follow_the_task)
{
    struct task_time before[] = {{10, 0, 1.0}, {11, 0, 2.0}},
                     after[] = {{10, 0, 1.5}, {11, 1, 2.25}, {12, 1, 0.5}};
    const struct task_times begin = {before, 2}, now = {after, 3};

    assert_true(task_times_since(&begin, &now, 0) == 0.5);
    assert_true(task_times_since(&begin, &now, 1) == 0.75); /* it moved; a new one counts whole */
    assert_true(task_times_since(&begin, &now, 2) == 0);
}
