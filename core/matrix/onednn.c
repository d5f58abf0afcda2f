/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products by oneDNN: a matmul primitive whose weights (B) are in the layout that the
 * library asks for, reordered once in prepare, as a framework does with the weights of a model.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/hw/topo.h"
#include "core/matrix/library.h"

/*
 * ---- The part of oneDNN's C interface that a matrix product needs ----
 *
 * The same text serves releases 2 and 3, so that neither's header is needed to build. The values
 * are from oneapi/dnnl/dnnl_types.h and dnnl_common_types.h, and the same in both. Two things
 * differ. A memory descriptor is a struct of the caller's in 2 and an opaque object in 3 (here a
 * pointer in both). And 2 describes a matmul in two steps.
 */

#define DNNL_DIMS_MAX 12

/* In release 2: dnnl_memory_desc_t has 696 bytes and dnnl_matmul_desc_t 2800. */
#define DNNL2_MEMORY_DESC_ROOM 2048
#define DNNL2_MATMUL_DESC_ROOM 16384

enum { DNNL_SUCCESS = 0, DNNL_UNIMPLEMENTED = 3 };
enum { DNNL_BF16 = 2, DNNL_F32 = 3, DNNL_S32 = 4, DNNL_S8 = 5, DNNL_U8 = 6 };
enum { DNNL_TAG_ANY = 1, DNNL_TAG_AB = 3 };
enum { DNNL_CPU = 1, DNNL_STREAM_IN_ORDER = 1 };
enum { DNNL_QUERY_IMPL_INFO_STR = 8, DNNL_QUERY_WEIGHTS_MD = 131 };
enum { DNNL_ARG_SRC = 1, DNNL_ARG_DST = 17, DNNL_ARG_WEIGHTS = 33 };
enum { DNNL_RUNTIME_SEQ = 1, DNNL_RUNTIME_OMP = 2 }; /* dnnl_config.h */

#define DNNL_ALLOCATE ((void *)(size_t)-1)

struct dnnl_version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
};

struct dnnl_arg {
    int arg;
    void *memory;
};

struct dnnl_api {
    const struct dnnl_version *(*version)(void);
    int (*engine_create)(void **engine, int kind, size_t index);
    int (*engine_destroy)(void *engine);
    int (*stream_create)(void **stream, void *engine, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);
    int (*memory_create)(void **memory, const void *md, void *engine, void *data);
    int (*memory_destroy)(void *memory);
    int (*primitive_create)(void **primitive, const void *pd);
    int (*primitive_destroy)(void *primitive);
    int (*primitive_execute)(const void *primitive, void *stream, int n,
                             const struct dnnl_arg *args);
    int (*pd_destroy)(void *pd);
    int (*pd_query)(const void *pd, int what, int index, void *result);
    const void *(*pd_query_md)(const void *pd, int what, int index);
    int (*reorder_pd_create)(void **pd, const void *from, void *from_engine, const void *to,
                             void *to_engine, const void *attr);
    /* release 2 */
    int (*md2_init)(void *md, int n, const int64_t *dims, int type, int tag);
    int (*matmul2_init)(void *desc, const void *src, const void *weights, const void *bias,
                        const void *dst);
    int (*pd2_create)(void **pd, const void *desc, const void *attr, void *engine,
                      const void *hint);
    /* release 3 */
    int (*md3_create)(void **md, int n, const int64_t *dims, int type, int tag);
    int (*md3_destroy)(void *md);
    int (*matmul3_create)(void **pd, void *engine, const void *src, const void *weights,
                          const void *bias, const void *dst, const void *attr);
};

/* ---- Products ---- */

struct onednn {
    struct gemm_engine base;
    struct dnnl_api api;
    void *handle, *engine, *stream;
    bool release3;
};

struct onednn_product {
    struct gemm_product base;
    void *matmul, *a, *b, *c;
};

/* Element types of A, B and C. */
static const int types[GEMM_DTYPES][3] = {
    [GEMM_F32] = {DNNL_F32, DNNL_F32, DNNL_F32},
    [GEMM_BF16] = {DNNL_BF16, DNNL_BF16, DNNL_F32},
    [GEMM_INT8] = {DNNL_U8, DNNL_S8, DNNL_S32},
};

#define AT(member) offsetof(struct dnnl_api, member)

static const struct gemm_symbol symbols[] = {
    {"dnnl_version", AT(version), 0},
    {"dnnl_engine_create", AT(engine_create), 0},
    {"dnnl_engine_destroy", AT(engine_destroy), 0},
    {"dnnl_stream_create", AT(stream_create), 0},
    {"dnnl_stream_destroy", AT(stream_destroy), 0},
    {"dnnl_stream_wait", AT(stream_wait), 0},
    {"dnnl_memory_create", AT(memory_create), 0},
    {"dnnl_memory_destroy", AT(memory_destroy), 0},
    {"dnnl_primitive_create", AT(primitive_create), 0},
    {"dnnl_primitive_destroy", AT(primitive_destroy), 0},
    {"dnnl_primitive_execute", AT(primitive_execute), 0},
    {"dnnl_primitive_desc_destroy", AT(pd_destroy), 0},
    {"dnnl_primitive_desc_query", AT(pd_query), 0},
    {"dnnl_primitive_desc_query_md", AT(pd_query_md), 0},
    {"dnnl_reorder_primitive_desc_create", AT(reorder_pd_create), 0},
    {"dnnl_memory_desc_init_by_tag", AT(md2_init), 1},
    {"dnnl_matmul_desc_init", AT(matmul2_init), 1},
    {"dnnl_primitive_desc_create", AT(pd2_create), 1},
    {"dnnl_memory_desc_create_with_tag", AT(md3_create), 1},
    {"dnnl_memory_desc_destroy", AT(md3_destroy), 1},
    {"dnnl_matmul_primitive_desc_create", AT(matmul3_create), 1},
    {NULL, 0, 0},
};

static int failed(char *why, const char *call, int status)
{
    static const char *const names[] = {"success",
                                        "out of memory",
                                        "invalid arguments",
                                        "unimplemented",
                                        "no further implementation",
                                        "runtime error"};
    int known = status >= 0 && status < (int)(sizeof(names) / sizeof(names[0]));

    return gemm_why(why, status == DNNL_UNIMPLEMENTED ? -EOPNOTSUPP : -EIO,
                    "oneDNN: %s failed with %d (%s)", call, status,
                    known ? names[status] : "unknown");
}

/* Calls into oneDNN inside of functions that have `why` and a label `out`. */
#define CHECK(call)                                                                                \
    do {                                                                                           \
        int status_ = (call);                                                                      \
        if (status_ != DNNL_SUCCESS) {                                                             \
            err = failed(why, #call, status_);                                                     \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

static void onednn_close(struct gemm_engine *base)
{
    struct onednn *e = (struct onednn *)base;

    if (e->stream)
        e->api.stream_destroy(e->stream);
    if (e->engine)
        e->api.engine_destroy(e->engine);
    if (e->handle)
        omp_release(e->handle);
    free(e);
}

static int start(struct onednn *e, const char *file, char *why)
{
    static const char *const names[] = {"libdnnl.so.2", "libdnnl.so.3", "libdnnl.so", NULL};
    int err = 0;

    e->handle = gemm_dlopen(file, names, "libdnnl2 (or libdnnl3)", &err, why);
    if (err || (err = gemm_dlsym(e->handle, symbols, &e->api, why)))
        goto out;
    const struct dnnl_version *v = e->api.version();
    e->release3 = v->major >= 3;
    bool complete = e->release3 ? e->api.md3_create && e->api.md3_destroy && e->api.matmul3_create
                                : e->api.md2_init && e->api.matmul2_init && e->api.pd2_create;
    if (v->major < 2 || !complete) {
        err = gemm_why(why, -ELIBACC, "oneDNN %d.%d is not a release this program knows: 2 or 3",
                       v->major, v->minor);
        goto out;
    }
    snprintf(e->base.kernel, sizeof(e->base.kernel), "%d.%d.%d", v->major, v->minor, v->patch);
    CHECK(e->api.engine_create(&e->engine, DNNL_CPU, 0));
    CHECK(e->api.stream_create(&e->stream, e->engine, DNNL_STREAM_IN_ORDER));
out:
    return err;
}

static struct gemm_engine *onednn_open(const char *file, int *err, char *why)
{
    struct onednn *e = xcalloc(1, sizeof(*e));

    e->base.library = &gemm_onednn;
    *err = start(e, file, why);
    if (*err) {
        onednn_close(&e->base);
        return NULL;
    }
    return &e->base;
}

static int onednn_bind(struct gemm_engine *base, const struct gemm_threads *threads, char *why)
{
    struct onednn *e = (struct onednn *)base;
    unsigned runtime = e->api.version()->cpu_runtime;

    if (runtime == DNNL_RUNTIME_OMP)
        return omp_bind(e->handle, threads, why);
    if (runtime == DNNL_RUNTIME_SEQ && threads->n == 1)
        return threads->topo ? topo_bind_self(threads->topo, threads->cpus[0]) : 0;
    return gemm_why(why, -EOPNOTSUPP,
                    "this oneDNN does not run on OpenMP: its threads cannot be bound");
}

/* Three row-major descriptors; B also in the layout of the library's choice. */
struct descriptors {
    void *a, *b, *b_any, *c;
    struct {
        _Alignas(16) unsigned char bytes[DNNL2_MEMORY_DESC_ROOM];
    } room[4]; /* release 2 */
};

static int describe(struct onednn *e, void **md, void *room, uint64_t rows, uint64_t columns,
                    int type, int tag)
{
    int64_t dims[DNNL_DIMS_MAX] = {(int64_t)rows, (int64_t)columns};

    if (e->release3)
        return e->api.md3_create(md, 2, dims, type, tag);
    *md = room;
    return e->api.md2_init(room, 2, dims, type, tag);
}

static int describe_all(struct onednn *e, const struct gemm_problem *p, struct descriptors *d,
                        char *why)
{
    const struct gemm_shape *s = &p->shape;
    const int *t = types[p->dtype];
    int err = 0;

    CHECK(describe(e, &d->a, &d->room[0], s->m, s->k, t[0], DNNL_TAG_AB));
    CHECK(describe(e, &d->b, &d->room[1], s->k, s->n, t[1], DNNL_TAG_AB));
    CHECK(describe(e, &d->b_any, &d->room[2], s->k, s->n, t[1],
                   p->b_stays ? DNNL_TAG_ANY : DNNL_TAG_AB));
    CHECK(describe(e, &d->c, &d->room[3], s->m, s->n, t[2], DNNL_TAG_AB));
out:
    return err;
}

/* B in the layout that the matmul wants: r->b. */
static int pack(struct onednn *e, struct onednn_product *r, const struct gemm_problem *p,
                const struct descriptors *d, const void *matmul, char *why)
{
    void *pd = NULL, *reorder = NULL, *plain = NULL;
    const void *wanted = e->api.pd_query_md(matmul, DNNL_QUERY_WEIGHTS_MD, 0);
    int err = wanted ? 0 : failed(why, "the layout of B", -1);

    if (err)
        return err;
    if (!p->b_stays) {
        CHECK(e->api.memory_create(&r->b, d->b, e->engine, p->b));
        return 0;
    }
    CHECK(e->api.memory_create(&plain, d->b, e->engine, p->b));
    CHECK(e->api.memory_create(&r->b, wanted, e->engine, DNNL_ALLOCATE));
    CHECK(e->api.reorder_pd_create(&pd, d->b, e->engine, wanted, e->engine, NULL));
    CHECK(e->api.primitive_create(&reorder, pd));
    const struct dnnl_arg args[] = {{DNNL_ARG_SRC, plain}, {DNNL_ARG_DST, r->b}};
    CHECK(e->api.primitive_execute(reorder, e->stream, 2, args));
    CHECK(e->api.stream_wait(e->stream));
out:
    if (reorder)
        e->api.primitive_destroy(reorder);
    if (pd)
        e->api.pd_destroy(pd);
    if (plain)
        e->api.memory_destroy(plain);
    return err;
}

static void onednn_finish(struct gemm_product *product)
{
    struct onednn_product *r = (struct onednn_product *)product;

    if (!r)
        return;
    const struct onednn *e = (const struct onednn *)r->base.engine;
    void *memories[] = {r->a, r->b, r->c};
    if (r->matmul)
        e->api.primitive_destroy(r->matmul);
    for (int i = 0; i < 3; i++)
        if (memories[i])
            e->api.memory_destroy(memories[i]);
    free(r);
}

static int make_product(struct onednn *e, struct onednn_product *r, const struct gemm_problem *p,
                        char *why)
{
    struct descriptors d = {0};
    void *pd = NULL;
    int status, err = describe_all(e, p, &d, why);

    if (err)
        goto out;
    if (e->release3) {
        status = e->api.matmul3_create(&pd, e->engine, d.a, d.b_any, NULL, d.c, NULL);
    } else {
        _Alignas(16) unsigned char desc[DNNL2_MATMUL_DESC_ROOM];
        status = e->api.matmul2_init(desc, d.a, d.b_any, NULL, d.c);
        status = status ? status : e->api.pd2_create(&pd, desc, NULL, e->engine, NULL);
    }
    if (status) {
        err = status == DNNL_UNIMPLEMENTED
                  ? gemm_why(why, -EOPNOTSUPP, "oneDNN has no %s product for this CPU",
                             gemm_dtypes[p->dtype].name)
                  : failed(why, "matmul", status);
        goto out;
    }
    const struct dnnl_version *v = e->api.version();
    const char *name = NULL;
    if (e->api.pd_query(pd, DNNL_QUERY_IMPL_INFO_STR, 0, &name) || !name)
        name = "";
    snprintf(e->base.kernel, sizeof(e->base.kernel), "%d.%d.%d %s", v->major, v->minor, v->patch,
             name);
    CHECK(e->api.primitive_create(&r->matmul, pd));
    CHECK(e->api.memory_create(&r->a, d.a, e->engine, p->a));
    CHECK(e->api.memory_create(&r->c, d.c, e->engine, p->c));
    err = pack(e, r, p, &d, pd, why);
out:
    if (pd)
        e->api.pd_destroy(pd);
    void *all[] = {d.a, d.b, d.b_any, d.c};
    for (int i = 0; e->release3 && i < 4; i++)
        if (all[i])
            e->api.md3_destroy(all[i]);
    return err;
}

static struct gemm_product *onednn_prepare(struct gemm_engine *e, const struct gemm_problem *p,
                                           int *err, char *why)
{
    struct onednn_product *r = xcalloc(1, sizeof(*r));

    r->base.engine = e;
    *err = make_product((struct onednn *)e, r, p, why);
    if (!*err)
        return &r->base;
    onednn_finish(&r->base);
    return NULL;
}

static int onednn_run(struct gemm_product *product, uint64_t inner)
{
    struct onednn_product *r = (struct onednn_product *)product;
    const struct onednn *e = (const struct onednn *)r->base.engine;
    const struct dnnl_arg args[] = {
        {DNNL_ARG_SRC, r->a}, {DNNL_ARG_WEIGHTS, r->b}, {DNNL_ARG_DST, r->c}};
    int status = 0;

    for (; inner && !status; inner--)
        status = e->api.primitive_execute(r->matmul, e->stream, 3, args);
    if (!status)
        status = e->api.stream_wait(e->stream);
    return status ? -EIO : 0;
}

static const char *const steers[] = {"ONEDNN_", "DNNL_", "MKLDNN_", "OMP_",
                                     "GOMP_",   "KMP_",  "MKL_",    NULL};

const struct gemm_library gemm_onednn = {
    .name = "onednn",
    .dtypes = 1u << GEMM_F32 | 1u << GEMM_BF16 | 1u << GEMM_INT8,
    .file = GEMM_FILE_ONEDNN,
    .steered_by = steers,
    .open = onednn_open,
    .bind = onednn_bind,
    .prepare = onednn_prepare,
    .run = onednn_run,
    .finish = onednn_finish,
    .close = onednn_close,
};
