/* SPDX-License-Identifier: Apache-2.0 */
/* Products on the host's CPUs, by one thread: see products.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/step/products.h"
#include "core/alloc.h"
#include "core/hw/host_buffer.h"

#define SEED        11
#define MEMORY_MOST 0.8 /* of what is available, of all ranks that share it */

struct shape { /* of several products of the plan */
    struct gemm_problem problem;
    struct gemm_product *ready;
};

#define VECTOR 16 /* floats of a line */
struct vector {
    float x __attribute__((vector_size(VECTOR * sizeof(float))));
};

struct host {
    struct gemm_engine *engine;
    struct gemm_problem operands;
    struct shape *shapes;
    size_t n;
    struct vector *arrays[4]; /* of the update: parameters, gradients, moments */
    size_t vectors;           /* of each */
    bool adam;
    char name[96];
};

/* ---- The library ---- */

static int dtype_of(enum collective_type type, enum gemm_dtype *dtype, char *why)
{
    switch (type) {
    case COLLECTIVE_F32:
        *dtype = GEMM_F32;
        return 0;
    case COLLECTIVE_F64:
        *dtype = GEMM_F64;
        return 0;
    case COLLECTIVE_BF16:
        *dtype = GEMM_BF16;
        return 0;
    default:
        return gemm_why(why, -EOPNOTSUPP,
                        "no library multiplies %s on the host's CPUs: take --dtype f32, bf16 or "
                        "f64, or --compute timed",
                        collective_type_names[type]);
    }
}

static const struct gemm_threads one_thread = {NULL, NULL, 1};

/* One that is here, and whose kernels this CPU has. */
static struct gemm_engine *open_library(enum gemm_dtype dtype, int *err, char *why)
{
    const struct gemm_shape small = {16, 16, 16};
    struct gemm_problem p;

    *err = gemm_problem_open(&p, dtype, &small, SEED);
    if (*err)
        return NULL;
    *err = -ELIBACC;
    for (const struct gemm_library *const *at = gemm_host_libraries; *at; at++) {
        if (!((*at)->dtypes >> dtype & 1))
            continue;
        struct gemm_engine *e = (*at)->open(NULL, err, why);
        struct gemm_product *product = NULL;
        if (e && !(*err = (*at)->bind(e, &one_thread, why)))
            product = (*at)->prepare(e, &p, err, why);
        if (product) {
            (*at)->finish(product);
            gemm_problem_close(&p);
            return e;
        }
        if (e)
            (*at)->close(e);
    }
    gemm_problem_close(&p);
    return NULL;
}

int products_library(enum collective_type type, char *kernel, size_t len, char why[GEMM_WHY_BYTES])
{
    enum gemm_dtype dtype = GEMM_F32;
    int err = dtype_of(type, &dtype, why);
    struct gemm_engine *e = err ? NULL : open_library(dtype, &err, why);

    if (!e)
        return err;
    snprintf(kernel, len, "%s %s", e->library->name, e->kernel);
    e->library->close(e);
    return 0;
}

/* ---- Operands ---- */

static int open_operands(struct host *p, enum gemm_dtype dtype, const struct products_need *need,
                         char *why)
{
    double bytes = gemm_shared_bytes(dtype, need->shapes, need->n) * need->sharing;
    double have = (double)host_available();

    if (bytes > MEMORY_MOST * have)
        return gemm_why(why, -EOPNOTSUPP,
                        "the operands of %u ranks need %.1f GB of memory, %.1f GB are available: "
                        "give a lower --batch",
                        need->sharing, bytes * 1e-9, have * 1e-9);
    int err = gemm_problem_share(&p->operands, dtype, need->shapes, need->n, SEED);
    if (err)
        return gemm_why(why, err, "out of memory");
    p->shapes = xcalloc(need->n, sizeof(*p->shapes));
    p->n = need->n;
    for (size_t i = 0; i < p->n; i++) {
        p->shapes[i].problem = p->operands;
        p->shapes[i].problem.shape = need->shapes[i];
    }
    return 0;
}

/* ---- The update ---- */

static int open_arrays(struct host *p, const struct products_need *need, char *why)
{
    unsigned arrays = need->adam ? 4 : 2;
    double bytes = need->updated * sizeof(float) * arrays * need->sharing;
    double have = (double)host_available();

    p->adam = need->adam;
    p->vectors = ((size_t)need->updated + VECTOR - 1) / VECTOR;
    if (bytes > MEMORY_MOST * have)
        return gemm_why(why, -EOPNOTSUPP,
                        "the parameters of %u ranks need %.1f GB of memory to be updated, %.1f GB "
                        "are available: give another --model, or --update none",
                        need->sharing, bytes * 1e-9, have * 1e-9);
    for (unsigned i = 0; i < arrays && p->vectors; i++) {
        p->arrays[i] = aligned_alloc(sizeof(struct vector), p->vectors * sizeof(struct vector));
        if (!p->arrays[i])
            return gemm_why(why, -ENOMEM, "out of memory");
        for (size_t k = 0; k < p->vectors * VECTOR; k++)
            ((float *)p->arrays[i])[k] = (float)(k % 251 + 1) * 0x1p-10f;
    }
    return 0;
}

static void sgd(struct host *p)
{
    struct vector *w = p->arrays[0];
    const struct vector *g = p->arrays[1];

    for (size_t i = 0; i < p->vectors; i++)
        w[i].x -= g[i].x * 0x1p-10f;
}

static void adam(struct host *p)
{
    struct vector *w = p->arrays[0], *m = p->arrays[2], *v = p->arrays[3];
    const struct vector *g = p->arrays[1];

    for (size_t i = 0; i < p->vectors; i++) {
        m[i].x = m[i].x * 0.9f + g[i].x * 0.1f;
        v[i].x = v[i].x * 0.999f + g[i].x * g[i].x * 0.001f;
        w[i].x -= m[i].x * v[i].x * 0x1p-10f;
    }
}

static int host_update(void *state, char *why)
{
    struct host *p = state;

    (void)why;
    (p->adam ? adam : sgd)(p);
    return 0;
}

/* ---- The place ---- */

static int host_open(void **state, const struct products_need *need, char *why)
{
    struct host *p = *state = xcalloc(1, sizeof(*p));
    enum gemm_dtype dtype = GEMM_F32;
    int err = dtype_of(need->type, &dtype, why);

    if (!err)
        p->engine = open_library(dtype, &err, why);
    if (!err)
        err = open_operands(p, dtype, need, why);
    return err ? err : open_arrays(p, need, why);
}

static void host_close(void *state)
{
    struct host *p = state;

    for (size_t i = 0; i < p->n; i++)
        p->engine->library->finish(p->shapes[i].ready);
    if (p->engine)
        p->engine->library->close(p->engine);
    gemm_problem_close(&p->operands);
    for (int i = 0; i < 4; i++)
        free(p->arrays[i]);
    free(p->shapes);
    free(p);
}

static const char *host_name(void *state)
{
    struct host *p = state;

    snprintf(p->name, sizeof(p->name), "%s %s", p->engine->library->name, p->engine->kernel);
    return p->name;
}

/* Libraries choose kernels for the threads that the caller has. */
static int host_ready(void *state, char *why)
{
    struct host *p = state;
    const struct gemm_library *library = p->engine->library;
    int err = library->bind(p->engine, &one_thread, why);

    for (size_t i = 0; i < p->n && !err; i++)
        p->shapes[i].ready = library->prepare(p->engine, &p->shapes[i].problem, &err, why);
    return err;
}

static int host_run(void *state, size_t shape, uint64_t count, char *why)
{
    struct host *p = state;
    int err = p->engine->library->run(p->shapes[shape].ready, count);

    return err ? gemm_why(why, err, "%s: %s", p->engine->library->name, strerror(-err)) : 0;
}

static int host_check(void *state, size_t shape, struct gemm_check *c, char *why)
{
    struct host *p = state;
    struct gemm_problem *problem = &p->shapes[shape].problem;
    int err = p->engine->library->bind(p->engine, &one_thread, why); /* this is another thread */

    gemm_problem_unwrite(problem);
    if (!err)
        err = host_run(state, shape, 1, why);
    return err ? err : gemm_check_result(problem, SEED, c);
}

const struct products_place products_on_host = {.open = host_open,
                                                .close = host_close,
                                                .name = host_name,
                                                .ready = host_ready,
                                                .run = host_run,
                                                .update = host_update,
                                                .check = host_check};
