/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's products of matrices: see products.h. */
#include "benches/step/products.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
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

struct products {
    struct step_spec spec;
    const struct step_layer *layers;
    struct gemm_engine *engine;
    struct gemm_problem operands;
    struct shape *shapes;
    size_t n;
    struct vector *arrays[4]; /* of the update: parameters, gradients, moments */
    size_t vectors;           /* of each */
    bool is_ready;
};

static uint64_t divided(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

unsigned step_products(const struct step_spec *s, const struct step_layer *l, enum step_kind kind,
                       struct step_product out[STEP_PRODUCTS_MOST])
{
    uint64_t samples = s->batch / s->micro, m = l->m, n = l->n, k = l->k, count = l->count;
    bool many = count > 1, split = s->tp > 1 && l->split != MODEL_WHOLE;
    unsigned products = 0;

    if (!m || !n || !k)
        return 0;
    if (many)
        count = divided(count, split ? s->tp : 1) * samples;
    else
        m *= samples;
    if (split && !many && l->split == MODEL_COLUMN)
        n = divided(n, s->tp);
    if (split && !many && l->split == MODEL_ROW)
        k = divided(k, s->tp);
    if (kind == STEP_FORWARD)
        out[products++] = (struct step_product){{m, n, k}, count};
    if (kind == STEP_BACKWARD && l->backward > 1)
        out[products++] = (struct step_product){{m, k, n}, count * (l->backward - 1)};
    if (kind == STEP_BACKWARD && l->backward)
        out[products++] = (struct step_product){{k, n, m}, count};
    return products;
}

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
    *err = -ENODEV;
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

/* ---- Shapes and operands ---- */

static struct shape *find(const struct products *p, const struct gemm_shape *shape)
{
    for (size_t i = 0; i < p->n; i++)
        if (!memcmp(&p->shapes[i].problem.shape, shape, sizeof(*shape)))
            return &p->shapes[i];
    return NULL;
}

static int add_shape(struct products *p, const struct gemm_shape *shape, char *why)
{
    struct shape *grown;

    if (find(p, shape))
        return 0;
    if (shape->m > INT_MAX || shape->n > INT_MAX || shape->k > INT_MAX)
        return gemm_why(why, -EOPNOTSUPP, "a product of %llu x %llu x %llu: give a lower --batch",
                        (unsigned long long)shape->m, (unsigned long long)shape->n,
                        (unsigned long long)shape->k);
    grown = realloc(p->shapes, (p->n + 1) * sizeof(*grown));
    if (!grown)
        return gemm_why(why, -ENOMEM, "out of memory");
    p->shapes = grown;
    grown[p->n++] = (struct shape){.problem.shape = *shape};
    return 0;
}

static int list_shapes(struct products *p, const struct step_plan *plan, char *why)
{
    struct step_product products[STEP_PRODUCTS_MOST];
    int err = 0;

    for (size_t i = 0; i < plan->n_ops && !err; i++) {
        const struct step_op *op = &plan->ops[i];
        for (unsigned l = 0; op->lane == LANE_COMPUTE && l < op->n_layers && !err; l++) {
            const struct step_layer *layer = &p->layers[op->first_layer + l];
            unsigned n = step_products(&p->spec, layer, (enum step_kind)op->kind, products);
            for (unsigned k = 0; k < n && !err; k++)
                err = add_shape(p, &products[k].shape, why);
        }
    }
    return err;
}

static int open_operands(struct products *p, enum gemm_dtype dtype, unsigned sharing, char *why)
{
    struct gemm_shape *all = malloc((p->n + 1) * sizeof(*all));

    if (!all)
        return gemm_why(why, -ENOMEM, "out of memory");
    for (size_t i = 0; i < p->n; i++)
        all[i] = p->shapes[i].problem.shape;
    double need = gemm_shared_bytes(dtype, all, p->n) * sharing;
    double have = (double)host_available();
    int err = 0;
    if (need > MEMORY_MOST * have)
        err = gemm_why(why, -EOPNOTSUPP,
                       "the operands of %u ranks need %.1f GB of memory, %.1f GB are available: "
                       "give a lower --batch",
                       sharing, need * 1e-9, have * 1e-9);
    if (!err && (err = gemm_problem_share(&p->operands, dtype, all, p->n, SEED)))
        gemm_why(why, err, "out of memory");
    free(all);
    for (size_t i = 0; i < p->n && !err; i++) {
        struct gemm_shape shape = p->shapes[i].problem.shape;
        p->shapes[i].problem = p->operands;
        p->shapes[i].problem.shape = shape;
    }
    return err;
}

/* ---- The update ---- */

static unsigned arrays_of(const struct step_spec *s)
{
    return s->update == UPDATE_ADAM ? 4 : 2;
}

static int open_arrays(struct products *p, const struct step_plan *plan, char *why)
{
    double elements = 0;

    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].kind == STEP_UPDATE)
            elements = plan->ops[i].bytes / step_update_bytes[p->spec.update];
    p->vectors = ((size_t)elements + VECTOR - 1) / VECTOR;
    for (unsigned i = 0; i < arrays_of(&p->spec) && p->vectors; i++) {
        p->arrays[i] = aligned_alloc(sizeof(struct vector), p->vectors * sizeof(struct vector));
        if (!p->arrays[i])
            return gemm_why(why, -ENOMEM, "no memory for an update of %.0f parameters", elements);
        for (size_t k = 0; k < p->vectors * VECTOR; k++)
            ((float *)p->arrays[i])[k] = (float)(k % 251 + 1) * 0x1p-10f;
    }
    return 0;
}

static void sgd(struct products *p)
{
    struct vector *w = p->arrays[0];
    const struct vector *g = p->arrays[1];

    for (size_t i = 0; i < p->vectors; i++)
        w[i].x -= g[i].x * 0x1p-10f;
}

static void adam(struct products *p)
{
    struct vector *w = p->arrays[0], *m = p->arrays[2], *v = p->arrays[3];
    const struct vector *g = p->arrays[1];

    for (size_t i = 0; i < p->vectors; i++) {
        m[i].x = m[i].x * 0.9f + g[i].x * 0.1f;
        v[i].x = v[i].x * 0.999f + g[i].x * g[i].x * 0.001f;
        w[i].x -= m[i].x * v[i].x * 0x1p-10f;
    }
}

int products_open(struct products **to, const struct step_spec *s, const struct step_layer *layers,
                  const struct step_plan *plan, unsigned sharing, char why[GEMM_WHY_BYTES])
{
    struct products *p = calloc(1, sizeof(*p));
    enum gemm_dtype dtype = GEMM_F32;

    *to = p;
    if (!p)
        return gemm_why(why, -ENOMEM, "out of memory");
    p->spec = *s;
    p->layers = layers;
    int err = dtype_of((enum collective_type)s->type, &dtype, why);
    if (!err)
        err = list_shapes(p, plan, why);
    if (!err)
        err = open_arrays(p, plan, why);
    if (err || !p->n) /* a server */
        return err;
    p->engine = open_library(dtype, &err, why);
    return p->engine ? open_operands(p, dtype, sharing, why) : err;
}

void products_close(struct products *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n && p->engine; i++)
        p->engine->library->finish(p->shapes[i].ready);
    if (p->engine)
        p->engine->library->close(p->engine);
    gemm_problem_close(&p->operands);
    for (int i = 0; i < 4; i++)
        free(p->arrays[i]);
    free(p->shapes);
    free(p);
}

/* ---- The work ---- */

/* By the thread that multiplies: libraries choose kernels for the threads that it has. */
static int make_ready(struct products *p, char *why)
{
    const struct gemm_library *library = p->engine->library;
    int err = library->bind(p->engine, &one_thread, why);

    for (size_t i = 0; i < p->n && !err; i++)
        p->shapes[i].ready = library->prepare(p->engine, &p->shapes[i].problem, &err, why);
    p->is_ready = !err;
    return err;
}

static int run_layers(struct products *p, const struct step_op *op, const _Atomic int *stop,
                      char *why)
{
    struct step_product products[STEP_PRODUCTS_MOST];
    int err = 0;

    if (op->kind == STEP_UPDATE)
        (p->spec.update == UPDATE_ADAM ? adam : sgd)(p);
    for (unsigned l = 0; l < op->n_layers; l++) {
        /* a backward pass begins at its last layer */
        unsigned at = op->kind == STEP_FORWARD ? l : op->n_layers - 1 - l;
        const struct step_layer *layer = &p->layers[op->first_layer + at];
        unsigned n = step_products(&p->spec, layer, (enum step_kind)op->kind, products);
        for (unsigned k = 0; k < n && !err && !atomic_load(stop); k++)
            err = p->engine->library->run(find(p, &products[k].shape)->ready, products[k].count);
    }
    return err ? gemm_why(why, err, "%s: %s", p->engine->library->name, strerror(-err)) : 0;
}

int products_run(struct products *p, const struct step_op *op, double times,
                 const _Atomic int *stop, char why[GEMM_WHY_BYTES])
{
    int err = p->is_ready || !p->engine ? 0 : make_ready(p, why);
    uint64_t begin_ns = clock_now_ns();

    if (err || !p->engine)
        return err;
    err = run_layers(p, op, stop, why);
    double once_ns = (double)(clock_now_ns() - begin_ns);
    while (!err && !atomic_load(stop) &&
           (double)(clock_now_ns() - begin_ns) < (times - 0.5) * once_ns)
        err = run_layers(p, op, stop, why);
    return err;
}

int products_check(struct products *p, char why[GEMM_WHY_BYTES])
{
    int err = p->engine && p->is_ready ? p->engine->library->bind(p->engine, &one_thread, why) : 0;

    for (size_t i = 0; p->is_ready && i < p->n && !err; i++) {
        struct shape *s = &p->shapes[i];
        struct gemm_check c = {0};
        gemm_problem_unwrite(&s->problem);
        err = p->engine->library->run(s->ready, 1);
        if (!err)
            err = gemm_check_result(&s->problem, SEED, &c);
        if (err == -EBADMSG)
            gemm_why(why, err,
                     "a product of %llu x %llu x %llu: entry (%zu, %zu) is %.9g, not %.9g",
                     (unsigned long long)s->problem.shape.m, (unsigned long long)s->problem.shape.n,
                     (unsigned long long)s->problem.shape.k, c.row, c.column, c.got, c.want);
        else if (err)
            gemm_why(why, err, "the products cannot be checked: %s", strerror(-err));
    }
    return err;
}
