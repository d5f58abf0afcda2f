/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS: see library.h. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/hw/topo.h"
#include "core/matrix/library.h"

/* ---- OpenBLAS' kernel sets ---- */

/* Names as openblas_get_corename() gives them (driver/others/dynamic.c, dynamic_arm64.c). */
static const char *const with_avx2[] = {"Haswell", "Zen", "Excavator", NULL};
static const char *const before_avx2[] = {
    "Unknown",   "Katmai",       "Coppermine",  "Northwood",  "Prescott",    "Banias",
    "Atom",      "Core2",        "Penryn",      "Dunnington", "Nehalem",     "Athlon",
    "Opteron",   "Opteron_SSE3", "Barcelona",   "Nano",       "Sandybridge", "Bobcat",
    "Bulldozer", "Piledriver",   "Steamroller", NULL};
static const char *const without_sve[] = {"armv8",     "cortexa53", "cortexa55",  "cortexa57",
                                          "cortexa72", "cortexa73", "neoversen1", NULL};

static bool is_one_of(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (!strcasecmp(*names, name))
            return true;
    return false;
}

const char *openblas_better_core(const struct cpu_features *f, const char *current)
{
    bool old = is_one_of(before_avx2, current);

    /* Cooperlake and SapphireRapids differ from SkylakeX in bf16 alone, and every release since
     * 0.3.0 knows SkylakeX. */
    if (f->avx512 && (old || is_one_of(with_avx2, current)))
        return "SKYLAKEX";
    if (f->avx2 && f->fma && old)
        return "HASWELL";
    if (f->sve && is_one_of(without_sve, current))
        return "NEOVERSEV1";
    return NULL;
}

/* ---- Matrix products by OpenBLAS: cblas_sgemm and cblas_dgemm ---- */

/* cblas.h */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };
/* openblas_get_parallel() */
enum { PARALLEL_NONE, PARALLEL_PTHREAD, PARALLEL_OPENMP };

struct openblas_api {
    char *(*config)(void);
    char *(*core)(void);
    int (*parallel)(void);
    int (*threads)(void);
    void (*set_threads)(int n);
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                  int lda, const double *b, int ldb, double beta, double *c, int ldc);
};

struct openblas {
    struct gemm_engine base;
    struct openblas_api api;
    void *handle;
    struct task_list workers; /* the threads that this instance has started, in their order */
};

struct openblas_product {
    struct gemm_product base;
    const struct gemm_problem *problem;
};

#define AT(member) offsetof(struct openblas_api, member)

static int set_threads(struct openblas *e, const void *n, char *why);

static const struct gemm_symbol symbols[] = {
    {"openblas_get_config", AT(config), 0},
    {"openblas_get_corename", AT(core), 0},
    {"openblas_get_parallel", AT(parallel), 0},
    {"openblas_get_num_threads", AT(threads), 0},
    {"openblas_set_num_threads", AT(set_threads), 0},
    {"cblas_sgemm", AT(sgemm), 0},
    {"cblas_dgemm", AT(dgemm), 0},
    {NULL, 0, 0},
};

static void openblas_close(struct gemm_engine *base)
{
    struct openblas *e = (struct openblas *)base;

    if (e->handle && e->api.parallel && e->api.parallel() == PARALLEL_OPENMP)
        omp_release(e->handle);
    free(e->workers.ids);
    free(e);
}

static int load_default(struct openblas *e, const void *file, char *why)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", NULL};
    int err;

    e->handle = gemm_dlopen(file, names, "libopenblas0", &err, why);
    return err ? err : gemm_dlsym(e->handle, symbols, &e->api, why);
}

/* Says so when the kernels are below what the CPU has. */
static void remark_core(struct openblas *e)
{
    struct cpu_features features;
    const char *better;

    cpu_features_read(&features);
    better = openblas_better_core(&features, e->api.core());
    if (better)
        gemm_why(e->base.remark, 0,
                 "OpenBLAS runs its '%s' kernels%s, below %s: set OPENBLAS_CORETYPE=%s",
                 e->api.core(), getenv("OPENBLAS_CORETYPE") ? " (OPENBLAS_CORETYPE is set)" : "",
                 cpu_features_widest(&features), better);
}

/* Something that may start threads of the library. */
typedef int act_fn(struct openblas *e, const void *arg, char *why);

/* Runs `act` and adds the threads that it has started to e->workers. */
static int noting_workers(struct openblas *e, act_fn *act, const void *arg, char *why)
{
    struct task_list before = {0}, after = {0};
    int err = tasks_read(&before);

    if (err)
        gemm_why(why, err, "cannot read /proc/self/task: %s", strerror(-err));
    else if (!(err = act(e, arg, why)) && !(err = tasks_read(&after)))
        tasks_add_new(&e->workers, &before, &after);
    free(before.ids);
    free(after.ids);
    return err;
}

static struct gemm_engine *openblas_open(const char *file, int *err, char *why)
{
    struct openblas *e = xcalloc(1, sizeof(*e));

    e->base.library = &gemm_openblas;
    *err = noting_workers(e, load_default, file, why);
    if (*err) {
        openblas_close(&e->base);
        return NULL;
    }
    remark_core(e);
    /* "0.3.21 Haswell" from "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...". */
    char version[32] = "";
    if (sscanf(e->api.config(), "OpenBLAS %31s", version) != 1)
        snprintf(version, sizeof(version), "unknown version");
    snprintf(e->base.kernel, sizeof(e->base.kernel), "%s %s", version, e->api.core());
    return &e->base;
}

static int set_threads(struct openblas *e, const void *n, char *why)
{
    (void)why;
    e->api.set_threads((int)*(const unsigned *)n);
    return 0;
}

/* Worker i takes part i + 1 of the work (blas_server.c); one that a smaller number of threads
 * leaves idle may still step in for another, so it is kept on the same CPUs. */
static int bind_workers(struct openblas *e, const struct gemm_threads *t, char *why)
{
    int err = t->topo ? topo_bind_self(t->topo, t->cpus[0]) : 0;

    for (size_t i = 0; t->topo && !err && i < e->workers.n; i++)
        err = task_bind(t->topo, e->workers.ids[i], t->cpus[(i + 1) % t->n]);
    if (err)
        return gemm_why(why, err, "cannot bind a thread of OpenBLAS: %s", strerror(-err));
    if (e->workers.n + 1 < t->n)
        return gemm_why(why, -EOPNOTSUPP, "OpenBLAS has started %zu of %u threads",
                        e->workers.n + 1, t->n);
    return 0;
}

static int openblas_bind(struct gemm_engine *base, const struct gemm_threads *threads, char *why)
{
    struct openblas *e = (struct openblas *)base;
    int kind = e->api.parallel(), err;

    if (kind == PARALLEL_NONE && threads->n > 1)
        return gemm_why(why, -EOPNOTSUPP,
                        "this OpenBLAS has no threads: install Debian package "
                        "'libopenblas0-pthread', or take --threads 1");
    err = noting_workers(e, set_threads, &threads->n, why);
    if (err)
        return err;
    if (kind != PARALLEL_NONE && e->api.threads() != (int)threads->n)
        return gemm_why(why, -EOPNOTSUPP, "this OpenBLAS runs at most %d threads, not %u",
                        e->api.threads(), threads->n);
    if (kind == PARALLEL_OPENMP)
        return omp_bind(e->handle, threads, why);
    return bind_workers(e, threads, why);
}

static struct gemm_product *openblas_prepare(struct gemm_engine *e, const struct gemm_problem *p,
                                             int *err, char *why)
{
    struct openblas_product *product = xcalloc(1, sizeof(*product));

    *err = 0;
    (void)why;
    product->base.engine = e;
    product->problem = p;
    return &product->base;
}

static int openblas_run(struct gemm_product *product, uint64_t inner)
{
    const struct openblas *e = (const struct openblas *)product->engine;
    const struct gemm_problem *p = ((struct openblas_product *)product)->problem;
    int m = (int)p->shape.m, n = (int)p->shape.n, k = (int)p->shape.k;

    if (p->dtype == GEMM_F64)
        for (; inner; inner--)
            e->api.dgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1, p->a, k, p->b, n, 0,
                         p->c, n);
    else
        for (; inner; inner--)
            e->api.sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1, p->a, k, p->b, n, 0,
                         p->c, n);
    return 0;
}

static void openblas_finish(struct gemm_product *product)
{
    free(product);
}

static const char *const steers[] = {"OPENBLAS_", "GOTO_", "OMP_", "GOMP_", NULL};

const struct gemm_library gemm_openblas = {
    .name = "openblas",
    .dtypes = 1u << GEMM_F64 | 1u << GEMM_F32,
    .file = GEMM_FILE_OPENBLAS,
    .steered_by = steers,
    .open = openblas_open,
    .bind = openblas_bind,
    .prepare = openblas_prepare,
    .run = openblas_run,
    .finish = openblas_finish,
    .close = openblas_close,
};
