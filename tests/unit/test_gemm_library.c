/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the matrix libraries behind their ops tables: right results, threads where they belong,
 * and a clear word where a library is missing. What changes the process runs in a child. */
#include "benches/gemm/library.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/hw/topo.h"

#define SEED   3
#define ABSENT 77 /* exit code of a child that has nothing to test */

/* Runs fn in a child; fails with its exit code, skips on ABSENT. */
static void in_child(int (*fn)(void))
{
    int status;

    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(fn());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == ABSENT)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a child: leaves with the line's number, which the parent then shows. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static void missing_library_names_its_package(void **state)
{
    static const char *const names[] = {"libnot-here-at-all.so.7", NULL};
    char why[GEMM_WHY_BYTES] = "";
    int err = 0;

    (void)state;
    assert_null(gemm_dlopen(NULL, names, "libnot-here7", &err, why));
    assert_int_equal(err, -ENODEV);
    assert_non_null(strstr(why, "'libnot-here-at-all.so.7'"));
    assert_non_null(strstr(why, "package 'libnot-here7'"));
    for (const struct gemm_library *const *l = gemm_libraries; *l; l++) {
        if ((*l)->gpu)
            continue;
        why[0] = 0;
        assert_null((*l)->open("/nowhere/lib.so", &err, why));
        assert_int_equal(err, -ENODEV);
        assert_non_null(strstr(why, "'/nowhere/lib.so'"));
    }
    assert_null(gemm_onednn.open("libm.so.6", &err, why)); /* a library, but not this one */
    assert_int_equal(err, -ENODEV);
    assert_non_null(strstr(why, "dnnl_version"));
}

static void every_type_has_a_library(void **state)
{
    size_t n = 0;

    (void)state;
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
    assert_ptr_equal(gemm_library_for(&gemm_on_gpu, GEMM_F64), &gemm_cublaslt);
    assert_true(gemm_onednn.dtypes & gemm_openblas.dtypes & 1u << GEMM_F32);
    assert_string_equal(gemm_library_names[0], "auto");
    for (; gemm_libraries[n]; n++)
        assert_string_equal(gemm_library_names[n + 1], gemm_libraries[n]->name);
    assert_null(gemm_library_names[n + 1]);
}

static void better_kernels_by_features(void **state)
{
    const struct cpu_features avx512 = {.avx2 = true, .fma = true, .avx512f = true, .avx512 = true};
    const struct cpu_features avx2 = {.avx2 = true, .fma = true}, none = {0};
    const struct cpu_features half = {.avx2 = true, .fma = true, .avx512f = true}; /* F alone */
    const struct cpu_features sve = {.neon = true, .sve = true}, neon = {.neon = true};

    (void)state;
    assert_string_equal(openblas_better_core(&avx512, "Haswell"), "SKYLAKEX");
    assert_string_equal(openblas_better_core(&avx512, "Zen"), "SKYLAKEX");
    assert_string_equal(openblas_better_core(&avx512, "Prescott"), "SKYLAKEX");
    assert_null(openblas_better_core(&avx512, "SkylakeX"));
    assert_null(openblas_better_core(&avx512, "Cooperlake"));
    assert_null(openblas_better_core(&avx512, "SapphireRapids"));
    assert_null(openblas_better_core(&avx512, "OfTheFuture"));
    assert_null(openblas_better_core(&half, "Haswell"));
    assert_null(openblas_better_core(&avx2, "Haswell"));
    assert_null(openblas_better_core(&avx2, "Zen"));
    assert_string_equal(openblas_better_core(&avx2, "Sandybridge"), "HASWELL");
    assert_string_equal(openblas_better_core(&avx2, "Barcelona"), "HASWELL");
    assert_null(openblas_better_core(&none, "Prescott"));
    assert_string_equal(openblas_better_core(&sve, "armv8"), "NEOVERSEV1");
    assert_null(openblas_better_core(&sve, "neoversev1"));
    assert_null(openblas_better_core(&neon, "armv8"));
}

struct machine {
    struct topo *topo;
    unsigned cpus[2];
    struct gemm_threads threads;
};

static int machine_open(struct machine *m, unsigned n)
{
    EXPECT(!topo_open(&m->topo));
    if (topo_cpus(m->topo) < n)
        return ABSENT;
    EXPECT(!topo_spread(m->topo, -1, n, m->cpus));
    m->threads = (struct gemm_threads){m->topo, m->cpus, n};
    return 0;
}

/* Right results of one library for all its types, on n threads. */
static int results_of(const struct gemm_library *library, unsigned n)
{
    static const struct gemm_shape shapes[] = {{1, 1, 1}, {37, 53, 41}, {130, 70, 257}};
    char why[GEMM_WHY_BYTES] = "";
    struct gemm_problem p;
    struct gemm_check c;
    struct machine m;
    int err = machine_open(&m, n);

    if (err)
        return err;
    struct gemm_engine *e = library->open(NULL, &err, why);
    if (err == -ENODEV || err == -EOPNOTSUPP)
        return ABSENT;
    EXPECT(e && e->kernel[0]);
    EXPECT(!library->bind(e, &m.threads, why));
    for (int type = 0; type < GEMM_DTYPES; type++)
        for (size_t s = 0; s < 3 && library->dtypes >> type & 1; s++) {
            EXPECT(!gemm_problem_open(&p, type, &shapes[s], SEED));
            if (type == GEMM_INT8)
                ((uint8_t *)p.a)[0] = 130; /* unsigned: as s8 it would be -126 */
            struct gemm_product *product = library->prepare(e, &p, &err, why);
            if (err == -EOPNOTSUPP) /* bf16 on a CPU for which the library has no kernel */
                continue;
            EXPECT(!err);
            EXPECT(!library->run(product, 2));
            EXPECT(!gemm_check_result(&p, SEED, &c));
            library->finish(product);
            gemm_problem_close(&p);
        }
    library->close(e);
    return 0;
}

static int onednn_results_1(void)
{
    return results_of(&gemm_onednn, 1);
}

static int onednn_results_2(void)
{
    return results_of(&gemm_onednn, 2);
}

static int openblas_results_1(void)
{
    return results_of(&gemm_openblas, 1);
}

static int openblas_results_2(void)
{
    return results_of(&gemm_openblas, 2);
}

/* How many tasks of this process may run on `cpu` alone. */
static unsigned tasks_bound_to(unsigned cpu)
{
    struct task_list tasks = {0};
    unsigned bound = 0;

    if (tasks_read(&tasks))
        return 0;
    for (size_t i = 0; i < tasks.n; i++) {
        char path[64], line[256], want[32];
        snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tasks.ids[i]);
        snprintf(want, sizeof(want), "Cpus_allowed_list:\t%u\n", cpu);
        FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
            bound += !strcmp(line, want);
        if (f)
            fclose(f);
    }
    free(tasks.ids);
    return bound;
}

/* Two threads, one on each CPU: none elsewhere, and both at work. Then one, on the other CPU. */
static int threads_of(const struct gemm_library *library)
{
    const struct gemm_shape shape = {512, 512, 512};
    char why[GEMM_WHY_BYTES] = "";
    struct task_times begin, end;
    struct gemm_problem p;
    struct machine m;
    int err = machine_open(&m, 2);

    if (err)
        return err;
    struct gemm_engine *e = library->open(NULL, &err, why);
    if (err == -ENODEV)
        return ABSENT;
    EXPECT(e);
    EXPECT(!library->bind(e, &m.threads, why));
    EXPECT(!gemm_problem_open(&p, GEMM_F32, &shape, SEED));
    struct gemm_product *product = library->prepare(e, &p, &err, why);
    EXPECT(product);
    EXPECT(!task_times_read(&begin));
    bool both = false;
    /* A machine that is busy gives each its share late. */
    for (uint64_t end_ns = clock_now_ns() + 20000000000; !both && clock_now_ns() < end_ns;) {
        EXPECT(!library->run(product, 8));
        EXPECT(!task_times_read(&end));
        both = task_times_since(&begin, &end, m.cpus[0]) >= 0.02 &&
               task_times_since(&begin, &end, m.cpus[1]) >= 0.02;
    }
    EXPECT(both);
    for (int i = 0; i < 2; i++)
        EXPECT(tasks_bound_to(m.cpus[i]) == 1);
    library->finish(product);
    unsigned other = m.cpus[1];
    const struct gemm_threads one = {m.topo, &other, 1};
    EXPECT(!library->bind(e, &one, why));
    product = library->prepare(e, &p, &err, why);
    EXPECT(product && !library->run(product, 3));
    EXPECT(sched_getcpu() == (int)other);
    return 0;
}

static int onednn_threads(void)
{
    return threads_of(&gemm_onednn);
}

static int openblas_threads(void)
{
    return threads_of(&gemm_openblas);
}

/* Makes OpenBLAS choose lesser kernels; both instances then live side by side, each order. */
static int both_kernel_sets(bool best_first)
{
    struct cpu_features f;
    char why[GEMM_WHY_BYTES] = "";
    int err = 0;

    cpu_features_read(&f);
    const char *lesser = f.avx512 ? "Haswell" : "Nehalem",
               *better = f.avx512 ? "SkylakeX" : "Haswell";
    if (!f.avx2 || !f.fma)
        return ABSENT;
    setenv("OPENBLAS_CORETYPE", lesser, 1);
    struct gemm_engine *plain = NULL, *best = NULL;
    for (int i = 0; i < 2; i++) {
        if ((i == 0) == best_first)
            best = gemm_openblas_best.open(NULL, &err, why);
        else
            plain = gemm_openblas.open(NULL, &err, why);
        if (err == -ENODEV)
            return ABSENT;
        EXPECT(!err);
    }
    EXPECT(plain && strstr(plain->kernel, lesser));
    EXPECT(strstr(plain->remark, lesser) && strstr(plain->remark, "openblas-best"));
    EXPECT(best && strstr(best->kernel, better));
    EXPECT(!best->remark[0]);
    const char *now = getenv("OPENBLAS_CORETYPE");
    EXPECT(now && !strcmp(now, lesser)); /* put back */
    struct machine m;
    if (!machine_open(&m, 2)) { /* each instance knows its own threads */
        EXPECT(!gemm_openblas.bind(plain, &m.threads, why));
        EXPECT(!gemm_openblas_best.bind(best, &m.threads, why));
    }
    return 0;
}

static int openblas_best_results(void)
{
    struct cpu_features f;

    cpu_features_read(&f);
    setenv("OPENBLAS_CORETYPE", f.avx512 ? "Haswell" : "Nehalem", 1);
    return results_of(&gemm_openblas_best, 2);
}

static int plain_then_best(void)
{
    return both_kernel_sets(false);
}

static int best_then_plain(void)
{
    return both_kernel_sets(true);
}

/* Where the default fits there is nothing better to measure. */
static int nothing_better(void)
{
    struct cpu_features f;
    char why[GEMM_WHY_BYTES] = "";
    int err = 0;

    cpu_features_read(&f);
    if (!f.avx512)
        return ABSENT;
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
    struct gemm_engine *e = gemm_openblas_best.open(NULL, &err, why);
    if (err == -ENODEV)
        return ABSENT;
    EXPECT(!e && err == -EOPNOTSUPP && strstr(why, "'SkylakeX'"));
    return 0;
}

#define CHILD_TEST(name)                                                                           \
    static void name##_in_child(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        in_child(name);                                                                            \
    }
CHILD_TEST(onednn_results_1)
CHILD_TEST(onednn_results_2)
CHILD_TEST(openblas_results_1)
CHILD_TEST(openblas_results_2)
CHILD_TEST(onednn_threads)
CHILD_TEST(openblas_threads)
CHILD_TEST(plain_then_best)
CHILD_TEST(best_then_plain)
CHILD_TEST(openblas_best_results)
CHILD_TEST(nothing_better)

static void cpu_lists(void **state)
{
    const unsigned cpus[] = {8, 0, 2, 1, 3};
    char text[32], tight[6];

    (void)state;
    assert_string_equal(topo_cpus_text(cpus, 5, text, sizeof(text)), "0-3,8");
    assert_string_equal(topo_cpus_text(cpus, 1, text, sizeof(text)), "8");
    assert_string_equal(topo_cpus_text(cpus, 5, tight, sizeof(tight)), "0-3,8");
    const unsigned odd[] = {1, 3, 5, 7};
    assert_string_equal(topo_cpus_text(odd, 4, tight, sizeof(tight)), "1,3..");
}

static void task_times_follow_the_task(void **state)
{
    struct task_time before[] = {{10, 0, 1.0}, {11, 0, 2.0}},
                     after[] = {{10, 0, 1.5}, {11, 1, 2.25}, {12, 1, 0.5}};
    const struct task_times begin = {before, 2}, now = {after, 3};

    (void)state;
    assert_true(task_times_since(&begin, &now, 0) == 0.5);
    assert_true(task_times_since(&begin, &now, 1) == 0.75); /* it moved; a new one counts whole */
    assert_true(task_times_since(&begin, &now, 2) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_library_names_its_package),
        cmocka_unit_test(every_type_has_a_library),
        cmocka_unit_test(better_kernels_by_features),
        cmocka_unit_test(onednn_results_1_in_child),
        cmocka_unit_test(onednn_results_2_in_child),
        cmocka_unit_test(openblas_results_1_in_child),
        cmocka_unit_test(openblas_results_2_in_child),
        cmocka_unit_test(onednn_threads_in_child),
        cmocka_unit_test(openblas_threads_in_child),
        cmocka_unit_test(plain_then_best_in_child),
        cmocka_unit_test(best_then_plain_in_child),
        cmocka_unit_test(openblas_best_results_in_child),
        cmocka_unit_test(nothing_better_in_child),
        cmocka_unit_test(cpu_lists),
        cmocka_unit_test(task_times_follow_the_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
