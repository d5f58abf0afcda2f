/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products by OpenBLAS: cblas_sgemm and cblas_dgemm, in two libraries: as it comes, and with
 * kernels that fit the CPU where the ones it chose do not (see openblas_core.h).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/blas/library.h"
#include "core/blas/openblas_core.h"
#include "core/blas/private_copy.h"
#include "core/blas/threads.h"

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
    const struct gemm_problem *problem; /* from prepare to finish */
};

#define AT(member) offsetof(struct openblas_api, member)

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

/* "0.3.21 Haswell" from "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...". */
static void name_kernel(struct openblas *e)
{
    char version[32] = "";

    if (sscanf(e->api.config(), "OpenBLAS %31s", version) != 1)
        snprintf(version, sizeof(version), "unknown version");
    snprintf(e->base.kernel, sizeof(e->base.kernel), "%s %s", version, e->api.core());
}

static int load_default(struct openblas *e, const void *file, char *why)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", NULL};
    int err;

    e->handle = gemm_dlopen(file, names, "libopenblas0", &err, why);
    return err ? err : gemm_dlsym(e->handle, symbols, &e->api, why);
}

static const char *better_core(const struct openblas *e)
{
    struct cpu_features features;

    cpu_features_read(&features);
    return openblas_better_core(&features, e->api.core());
}

/* Says so when the kernels are below what the CPU has. */
static void remark_core(struct openblas *e)
{
    struct cpu_features features;
    const char *better = better_core(e), *asked = getenv("OPENBLAS_CORETYPE");

    cpu_features_read(&features);
    if (better)
        gemm_why(e->base.remark, 0,
                 "OpenBLAS runs its '%s' kernels%s, below this CPU's %s: --library openblas-best "
                 "takes '%s'",
                 e->api.core(), asked ? " (OPENBLAS_CORETYPE is set)" : "",
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
        err = tasks_add_new(&e->workers, &before, &after);
    free(before.ids);
    free(after.ids);
    return err;
}

static int load_plain(struct openblas *e, const char *file, char *why)
{
    int err = noting_workers(e, load_default, file, why);

    if (!err)
        remark_core(e);
    return err;
}

static int load_copy(struct openblas *e, const void *core, char *why)
{
    const char *reason;
    void *function;
    int err;

    memcpy(&function, &e->api.core, sizeof(function));
    void *copy = private_copy_open(function, "OPENBLAS_CORETYPE", core, &err, &reason);
    if (!copy)
        return gemm_why(why, err, "cannot load OpenBLAS a second time: %s", reason);
    dlclose(e->handle);
    e->handle = copy;
    err = gemm_dlsym(copy, symbols, &e->api, why);
    if (!err && strcasecmp(e->api.core(), core))
        err = gemm_why(why, -EOPNOTSUPP, "this OpenBLAS has no '%s' kernels: it takes '%s'",
                       (const char *)core, e->api.core());
    return err;
}

/* Loads the default first: it knows its file, and which kernels it would take. It is let go again,
 * else its threads would be taken for another instance's when that one is opened later. */
static int load_best(struct openblas *e, const char *file, char *why)
{
    int err = load_default(e, file, why);
    const char *core = err ? NULL : better_core(e);

    if (err)
        return err;
    if (core)
        return noting_workers(e, load_copy, core, why);
    gemm_why(why, 0, "OpenBLAS' own choice, '%s', fits this CPU: library openblas measures it",
             e->api.core());
    dlclose(e->handle);
    e->handle = NULL;
    return -EOPNOTSUPP;
}

typedef int load_fn(struct openblas *e, const char *file, char *why);

static struct gemm_engine *open_as(const struct gemm_library *library, load_fn *load,
                                   const char *file, int *err, char *why)
{
    struct openblas *e = calloc(1, sizeof(*e));

    if (!e) {
        *err = gemm_why(why, -ENOMEM, "out of memory");
        return NULL;
    }
    e->base.library = library;
    *err = load(e, file, why);
    if (*err) {
        openblas_close(&e->base);
        return NULL;
    }
    name_kernel(e);
    return &e->base;
}

static struct gemm_engine *openblas_open(const char *file, int *err, char *why)
{
    return open_as(&gemm_openblas, load_plain, file, err, why);
}

static struct gemm_engine *openblas_best_open(const char *file, int *err, char *why)
{
    return open_as(&gemm_openblas_best, load_best, file, err, why);
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
    int err = topo_bind_self(t->topo, t->cpus[0]);

    for (size_t i = 0; !err && i < e->workers.n; i++)
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

static int openblas_prepare(struct gemm_engine *base, const struct gemm_problem *p, char *why)
{
    (void)why;
    ((struct openblas *)base)->problem = p;
    return 0;
}

static int openblas_run(struct gemm_engine *base, uint64_t inner)
{
    const struct openblas *e = (const struct openblas *)base;
    const struct gemm_problem *p = e->problem;
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

static void openblas_finish(struct gemm_engine *base)
{
    ((struct openblas *)base)->problem = NULL;
}

static const char *const steers[] = {"OPENBLAS_", "GOTO_", "OMP_", "GOMP_", NULL};
/* Its kernels are what --library openblas-best says. */
static const char *const steers_best[] = {"OPENBLAS_BLOCK", "GOTO_", "OMP_", "GOMP_", NULL};

const struct gemm_library gemm_openblas = {
    .name = "openblas",
    .where = &gemm_on_host,
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

const struct gemm_library gemm_openblas_best = {
    .name = "openblas-best",
    .where = &gemm_on_host,
    .dtypes = 1u << GEMM_F64 | 1u << GEMM_F32,
    .file = GEMM_FILE_OPENBLAS,
    .steered_by = steers_best,
    .open = openblas_best_open,
    .bind = openblas_bind,
    .prepare = openblas_prepare,
    .run = openblas_run,
    .finish = openblas_finish,
    .close = openblas_close,
};
