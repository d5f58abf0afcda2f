/* SPDX-License-Identifier: Apache-2.0 */
/* gemm: dense matrix products by the libraries that people use, against a measured ceiling. */
#include "core/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/blas/library.h"
#include "core/blas/matrix.h"
#include "core/blas/pool.h"
#include "core/blas/threads.h"
#include "core/clock.h"
#include "core/device/device.h"

#define DEFAULT_SIZE 1024

enum fault { FAULT_NONE, FAULT_ENTRY };

struct params {
    int dtype, library, fault;
    uint64_t size, threads;  /* size 0: not given */
    struct gemm_shape shape; /* m 0: not given */
    const char *onednn_file, *openblas_file;
};

struct state {
    struct gemm_engine *engine; /* the pool's */
    struct gemm_threads threads;
    unsigned *cpus;
    struct gemm_problem problem;
    double fastest_ns; /* of one product */
    uint64_t begin_ns;
    struct task_times begin; /* when sampling began */
};

static int open_pool(struct point *ctx)
{
    struct gemm_pool *pool;
    int err = gemm_pool_open(&pool);

    ctx->bench_state = pool;
    return err;
}

static void close_pool(struct point *ctx)
{
    gemm_pool_close(ctx->bench_state);
}

static void list_backends(bench_say_fn *say, void *arg)
{
    for (const struct gemm_library *const *at = gemm_libraries; *at; at++) {
        char why[GEMM_WHY_BYTES] = "", state[GEMM_WHY_BYTES + 16];
        int err;
        struct gemm_engine *engine = (*at)->open(NULL, &err, why);
        snprintf(state, sizeof(state), "%s: %s", engine ? "present" : "absent",
                 engine ? engine->kernel : why);
        say(arg, (*at)->name, state);
        if (engine)
            (*at)->close(engine);
    }
}

static const struct gemm_library *first_for(int dtype)
{
    const struct gemm_library *const *at = gemm_libraries;

    while (!((*at)->dtypes >> dtype & 1))
        at++;
    return *at;
}

static const struct gemm_library *choose_library(const struct params *p)
{
    return p->library ? gemm_libraries[p->library - 1] : first_for(p->dtype); /* 0: auto */
}

static struct gemm_shape choose_shape(const struct params *p)
{
    uint64_t size = p->size ? p->size : DEFAULT_SIZE;

    return p->shape.m ? p->shape : (struct gemm_shape){size, size, size};
}

/* What can be said of a point before anything is tried. */
static void describe(struct point *pt, const struct gemm_shape *shape,
                     const struct gemm_library *library)
{
    const struct params *p = pt->params;
    const struct gemm_dtype_info *type = &gemm_dtypes[p->dtype];
    struct series *s = point_series(pt, "throughput", type->unit, gemm_operations(shape));

    s->set[0].column = "library"; /* its name also where auto was asked for */
    s->set[0].value = library->name;
    point_column(pt, "m", "%llu", (unsigned long long)shape->m);
    point_column(pt, "n", "%llu", (unsigned long long)shape->n);
    point_column(pt, "k", "%llu", (unsigned long long)shape->k);
    point_column(pt, "accumulate", "%s", type->accumulate);
}

/* Is this a point at all, and is there room for it? */
static int admit(struct point *pt, const struct gemm_library *library,
                 const struct gemm_shape *shape)
{
    const struct params *p = pt->params;
    const struct gemm_dtype_info *type = &gemm_dtypes[p->dtype];
    double need = gemm_bytes(p->dtype, shape) +
                  (double)shape->k * (double)shape->n * type->b_bytes; /* packed */

    if (p->size && p->shape.m)
        return point_reason(pt, -EINVAL, "--size and --shape exclude each other: give one");
    if (!(library->dtypes >> p->dtype & 1))
        return point_reason(pt, -EOPNOTSUPP, "%s has no %s product: take --library %s",
                            library->name, type->name, first_for(p->dtype)->name);
    if (type->k_max && shape->k > type->k_max)
        return point_reason(pt, -EOPNOTSUPP, "%s sums may overflow where k is over %llu",
                            type->name, (unsigned long long)type->k_max);
    uint64_t have = device_host.available();
    if (need > 0.9 * (double)have)
        return point_reason(pt, -EOPNOTSUPP, "needs %.1f GB of memory, %.1f GB are available",
                            need * 1e-9, (double)have * 1e-9);
    return 0;
}

static int place(struct point *pt, struct state *s)
{
    const struct params *p = pt->params;
    struct topo *topo = point_topo(pt);
    char text[64];

    if (!topo)
        return -EIO;
    if (p->threads > topo_cpus(topo))
        return point_reason(pt, -EOPNOTSUPP, "%llu threads asked for, %u CPUs usable",
                            (unsigned long long)p->threads, topo_cpus(topo));
    s->cpus = calloc(p->threads, sizeof(*s->cpus));
    if (!s->cpus)
        return -ENOMEM;
    int err = topo_spread(topo, -1, (unsigned)p->threads, s->cpus);
    if (err)
        return err;
    s->threads = (struct gemm_threads){topo, s->cpus, (unsigned)p->threads};
    point_column(pt, "cpus", "%s", cpus_text(s->cpus, s->threads.n, text, sizeof(text)));
    return threads_unbind_self(topo); /* for the library to see them all when it is opened */
}

static int set_limit(struct point *pt, const struct state *s, bool again)
{
    const struct params *p = pt->params;
    struct gemm_ceiling ceiling;
    int err =
        gemm_pool_ceiling(pt->bench_state, (enum gemm_dtype)p->dtype, &s->threads, again, &ceiling);

    if (err)
        return point_reason(pt, err, "no ceiling: cannot start bound threads: %s", strerror(-err));
    pt->series[0].limit = ceiling.operations_per_ns * 1e-3; /* 1e9 a second in 1e12 a second */
    pt->series[0].limit_source = ceiling.source;
    return 0;
}

static int open_engine(struct point *pt, struct state *s, const struct gemm_library *library)
{
    const struct params *p = pt->params;
    const char *file = library == &gemm_onednn ? p->onednn_file : p->openblas_file;
    char why[GEMM_WHY_BYTES] = "";
    int err;

    s->engine = gemm_pool_engine(pt->bench_state, library, file, &err, why);
    if (!s->engine)
        return point_reason(pt, err, "%s", why);
    if (s->engine->remark[0])
        point_reason(pt, 0, "%s", s->engine->remark);
    return 0;
}

static int prepare(struct point *pt, struct state *s)
{
    char why[GEMM_WHY_BYTES] = "";
    int err = s->engine->library->bind(s->engine, &s->threads, why);

    if (!err)
        err = s->engine->library->prepare(s->engine, &s->problem, why);
    if (err)
        return point_reason(pt, err, "%s", why);
    point_column(pt, "kernel", "%s", s->engine->kernel);
    return 0;
}

static int setup(struct point *pt)
{
    const struct params *p = pt->params;
    const struct gemm_library *library = choose_library(p);
    struct gemm_shape shape = choose_shape(p);
    struct state *s = calloc(1, sizeof(*s));
    int err;

    describe(pt, &shape, library);
    if (!s)
        return -ENOMEM;
    pt->state = s;
    if ((err = admit(pt, library, &shape)) || (err = place(pt, s)) ||
        (err = open_engine(pt, s, library)) || (err = set_limit(pt, s, false)) ||
        (err =
             gemm_problem_open(&s->problem, (enum gemm_dtype)p->dtype, &shape, pt->common->seed)) ||
        (err = prepare(pt, s)))
        return err;
    s->begin_ns = clock_now_ns();
    return task_times_read(&s->begin);
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    struct state *s = pt->state;
    uint64_t begin_ns = clock_now_ns();
    int err = s->engine->library->run(s->engine, inner);

    *ns = clock_now_ns() - begin_ns;
    double one_ns = (double)*ns / (double)inner;
    if (!s->fastest_ns || one_ns < s->fastest_ns)
        s->fastest_ns = one_ns;
    return err;
}

/* The ceiling must not be beaten: if it was, it was disturbed, or the library knows better
 * instructions. */
static void check_limit(struct point *pt, const struct state *s)
{
    double best = pt->series[0].quantity / s->fastest_ns * 1e-3;

    if (best > pt->series[0].limit)
        set_limit(pt, s, true);
    if (best > 1.01 * pt->series[0].limit)
        point_reason(pt, 0,
                     "the fastest sample is %.0f %% of the measured ceiling: the ceiling is too "
                     "low here",
                     100 * best / pt->series[0].limit);
}

static int check(struct point *pt)
{
    const struct params *p = pt->params;
    struct state *s = pt->state;
    struct gemm_check c;

    check_limit(pt, s);
    if (p->fault == FAULT_ENTRY)
        ((unsigned char *)s->problem.c)[gemm_dtypes[p->dtype].c_bytes - 1] ^= 0x40;
    int err = gemm_check_result(&s->problem, pt->common->seed, &c);
    if (err == -EBADMSG)
        point_reason(pt, 0, "%zu of %zu entries are wrong: C[%zu][%zu] is %.9g, not %.9g +/- %.2g",
                     c.wrong, c.entries, c.row, c.column, c.got, c.want, c.bound);
    return err;
}

/* Which CPUs did the work: their CPU time since the end of setup. */
static int evidence(struct point *pt)
{
    const struct state *s = pt->state;
    struct task_times now;
    double low = 0, high = 0, elapsed_s = (double)(clock_now_ns() - s->begin_ns) * 1e-9;
    char text[64];
    int err = task_times_read(&now);

    for (unsigned i = 0; !err && i < s->threads.n; i++) {
        double used = task_times_since(&s->begin, &now, s->cpus[i]);
        low = !i || used < low ? used : low;
        high = used > high ? used : high;
    }
    if (!err)
        snprintf(pt->evidence, sizeof(pt->evidence),
                 "CPU time on %s: %.2f to %.2f s each in %.2f s",
                 cpus_text(s->cpus, s->threads.n, text, sizeof(text)), low, high, elapsed_s);
    free(now.list);
    return err;
}

static void teardown(struct point *pt)
{
    struct state *s = pt->state;

    if (!s)
        return;
    if (s->engine)
        s->engine->library->finish(s->engine);
    gemm_problem_close(&s->problem);
    free(s->begin.list);
    free(s->cpus);
    free(s);
}

static const char *default_threads(void)
{
    static char text[16] = "1";
    struct topo *topo;

    if (!topo_open(&topo)) {
        snprintf(text, sizeof(text), "%u", topo_cores(topo));
        topo_close(topo);
    }
    return text;
}

static const char *const dtypes[] = {"f64", "f32", "bf16", "int8", NULL}; /* enum gemm_dtype */
static const char *const libraries[] = {"auto", "onednn", "openblas", "openblas-best", NULL};
static const char *const faults[] = {"none", "entry", NULL};

#define AT(member) offsetof(struct params, member)

static const struct opt options[] = {
    {.name = "dtype",
     .letter = 'd',
     .type = OPT_CHOICE,
     .flags = OPT_LIST | OPT_COLUMN,
     .offset = AT(dtype),
     .def = "f32,f64,bf16,int8",
     .choices = dtypes,
     .help = "element type: bf16 is summed in f32; int8 is u8 x s8, summed in s32"},
    {.name = "library",
     .letter = 'l',
     .type = OPT_CHOICE,
     .flags = OPT_LIST | OPT_COLUMN,
     .offset = AT(library),
     .def = "auto",
     .choices = libraries,
     .help = "who multiplies; auto: onednn, and openblas for f64; openblas-best: with the kernels "
             "that fit this CPU, where openblas takes lesser ones"},
    {.name = "threads",
     .letter = 't',
     .type = OPT_U64,
     .flags = OPT_LIST | OPT_COLUMN,
     .offset = AT(threads),
     .make_default = default_threads,
     .min = 1,
     .max = 4096,
     .help = "one bound to each CPU, whole cores first; default: the cores of the affinity mask"},
    {.name = "size",
     .letter = 's',
     .type = OPT_U64,
     .flags = OPT_LIST,
     .offset = AT(size),
     .min = 1,
     .max = GEMM_DIM_MAX,
     .help = "square products, m = n = k; 1024 when neither this nor --shape is given"},
    {.name = "shape",
     .type = OPT_CUSTOM,
     .flags = OPT_LIST,
     .offset = AT(shape),
     .arg = "MxNxK",
     .parse = gemm_shape_parse,
     .help = "products of A (m x k) and B (k x n), in place of --size: 2048x6144x4096"},
    {.name = "onednn-file",
     .type = OPT_STRING,
     .offset = AT(onednn_file),
     .arg = "FILE",
     .help = "this libdnnl.so, not the system's"},
    {.name = "openblas-file",
     .type = OPT_STRING,
     .offset = AT(openblas_file),
     .arg = "FILE",
     .help = "this libopenblas.so, not the system's"},
    {.name = "inject",
     .type = OPT_CHOICE,
     .flags = OPT_HIDDEN,
     .offset = AT(fault),
     .def = "none",
     .choices = faults,
     .help = "spoil the result, to test the check"},
    {.name = NULL},
};

static const char *const columns[] = {"m", "n", "k", "accumulate", "cpus", "kernel", NULL};

const struct bench bench = {
    .name = "gemm",
    .help = "dense matrix products (GEMM): what the matrix units give through the usual libraries",
    .about =
        "Times C = A B on row-major matrices of random values: the library's call alone, repeated. "
        "What a user does once\n"
        "is done before: oneDNN's primitive is made and B reordered into its layout (as a "
        "model's weights are); OpenBLAS packs\n"
        "inside of each call. 2mnk operations count for a product. The limit is measured on the "
        "same CPUs by a loop that only\n"
        "multiplies and adds registers. C is checked against f64 on up to 1024 entries, int8 "
        "exactly.",
    .needs = "",
    .options = options,
    .params_size = sizeof(struct params),
    .columns = columns,
    .setup = setup,
    .sample = sample,
    .check = check,
    .evidence = evidence,
    .teardown = teardown,
    .backends = list_backends,
    .open = open_pool,
    .close = close_pool,
    .sample_ns = 5 * BENCH_SAMPLE_DEFAULT, /* threads start and end some us apart */
};
