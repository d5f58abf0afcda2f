/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bare loop that plumb-gemm is held against: f32 C = A B on square matrices by oneDNN or
 * OpenBLAS, linked directly, as one would write it in an afternoon. Nothing of Plumbline's is in
 * here. Built and run by scripts/crosscheck.
 *
 *   gemm_loop onednn|sgemm|openblas SIZE SECONDS
 *
 * onednn: a matmul primitive with B reordered before; sgemm: dnnl_sgemm; openblas: cblas_sgemm.
 * Threads as the libraries choose. Prints the median and the best GFLOP/s of the calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>

#define CALLS_MAX 100000

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(dnnl_status_t status, const char *what)
{
    if (status != dnnl_success) {
        fprintf(stderr, "gemm_loop: %s failed with %d\n", what, (int)status);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

static float *matrix(size_t n, int random)
{
    float *data = aligned_alloc(4096, (n * n * sizeof(float) + 4095) / 4096 * 4096);

    if (!data)
        exit(1);
    unsigned state = 1; /* a linear congruence will do: the data only must not be constant */
    for (size_t i = 0; i < n * n; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = random ? (float)(state >> 8) / (float)(1u << 23) - 1 : 0;
    }
    return data;
}

struct job {
    size_t n;
    float *a, *b, *c;
    dnnl_stream_t stream;
    dnnl_primitive_t matmul;
    dnnl_exec_arg_t args[3];
};

static void run_onednn(struct job *j)
{
    CHECK(dnnl_primitive_execute(j->matmul, j->stream, 3, j->args));
    CHECK(dnnl_stream_wait(j->stream));
}

static void run_sgemm(struct job *j)
{
    dnnl_dim_t n = (dnnl_dim_t)j->n;

    CHECK(dnnl_sgemm('N', 'N', n, n, n, 1, j->a, n, j->b, n, 0, j->c, n));
}

static void run_openblas(struct job *j)
{
    int n = (int)j->n;

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, j->a, n, j->b, n, 0, j->c,
                n);
}

/* A matmul primitive on row-major A and C, and B in the layout that it asks for. */
static void prepare_onednn(struct job *j)
{
    dnnl_dims_t dims = {(dnnl_dim_t)j->n, (dnnl_dim_t)j->n};
    dnnl_memory_desc_t plain, any;
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t pd, reorder_pd;
    dnnl_primitive_t reorder;
    dnnl_memory_t a, b, b_plain, c;
    dnnl_engine_t engine;

    CHECK(dnnl_engine_create(&engine, dnnl_cpu, 0));
    CHECK(dnnl_stream_create(&j->stream, engine, dnnl_stream_in_order));
    CHECK(dnnl_memory_desc_init_by_tag(&plain, 2, dims, dnnl_f32, dnnl_ab));
    CHECK(dnnl_memory_desc_init_by_tag(&any, 2, dims, dnnl_f32, dnnl_format_tag_any));
    CHECK(dnnl_matmul_desc_init(&desc, &plain, &any, NULL, &plain));
    CHECK(dnnl_primitive_desc_create(&pd, &desc, NULL, engine, NULL));
    CHECK(dnnl_primitive_create(&j->matmul, pd));
    const dnnl_memory_desc_t *packed = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    CHECK(dnnl_memory_create(&a, &plain, engine, j->a));
    CHECK(dnnl_memory_create(&b_plain, &plain, engine, j->b));
    CHECK(dnnl_memory_create(&b, packed, engine, DNNL_MEMORY_ALLOCATE));
    CHECK(dnnl_memory_create(&c, &plain, engine, j->c));
    CHECK(dnnl_reorder_primitive_desc_create(&reorder_pd, &plain, engine, packed, engine, NULL));
    CHECK(dnnl_primitive_create(&reorder, reorder_pd));
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, b_plain}, {DNNL_ARG_TO, b}};
    CHECK(dnnl_primitive_execute(reorder, j->stream, 2, args));
    CHECK(dnnl_stream_wait(j->stream));
    j->args[0] = (dnnl_exec_arg_t){DNNL_ARG_SRC, a};
    j->args[1] = (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, b};
    j->args[2] = (dnnl_exec_arg_t){DNNL_ARG_DST, c};
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Prints the median and the best of the calls in GFLOP/s. */
static void measure(void (*run)(struct job *), struct job *j, double seconds)
{
    static double times[CALLS_MAX];
    size_t calls = 0;

    for (double end = now_s() + seconds / 4; now_s() < end;) /* warm-up */
        run(j);
    for (double end = now_s() + seconds; now_s() < end && calls < CALLS_MAX; calls++) {
        double begin = now_s();
        run(j);
        times[calls] = now_s() - begin;
    }
    qsort(times, calls, sizeof(times[0]), ascending);
    double n = (double)j->n, median = (times[(calls - 1) / 2] + times[calls / 2]) / 2;
    printf("%.3f %.3f\n", 2 * n * n * n / median * 1e-9, 2 * n * n * n / times[0] * 1e-9);
}

int main(int argc, char **argv)
{
    void (*run)(struct job *) = NULL;

    if (argc == 4 && !strcmp(argv[1], "onednn"))
        run = run_onednn;
    else if (argc == 4 && !strcmp(argv[1], "sgemm"))
        run = run_sgemm;
    else if (argc == 4 && !strcmp(argv[1], "openblas"))
        run = run_openblas;
    if (!run || atoi(argv[2]) < 1 || atof(argv[3]) <= 0) {
        fputs("usage: gemm_loop onednn|sgemm|openblas SIZE SECONDS\n", stderr);
        return 2;
    }
    struct job j = {.n = (size_t)atoi(argv[2])};
    j.a = matrix(j.n, 1);
    j.b = matrix(j.n, 1);
    j.c = matrix(j.n, 0);
    if (run == run_onednn)
        prepare_onednn(&j);
    measure(run, &j, atof(argv[3]));
    return 0;
}
