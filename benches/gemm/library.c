/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries and places, and what a case asks of them: see library.h. */
#include "benches/gemm/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/place.h"

/* ---- Libraries and ceilings of a process ---- */

#define LIBRARIES_MAX 8

struct slot {
    const struct gemm_library *library; /* NULL: not used yet */
    struct gemm_engine *engine;
    int err;
    char why[GEMM_WHY_BYTES];
};

struct known_ceiling {
    enum gemm_dtype dtype;
    unsigned threads, first_cpu;
    struct gemm_ceiling value;
};

struct gemm_pool {
    struct cpu_features features;
    struct slot slots[LIBRARIES_MAX];
    struct known_ceiling *ceilings;
    size_t n_ceilings;
};

int gemm_pool_open(struct gemm_pool **pool)
{
    *pool = calloc(1, sizeof(**pool));
    if (!*pool)
        return -ENOMEM;
    cpu_features_read(&(*pool)->features);
    return 0;
}

void gemm_pool_close(struct gemm_pool *pool)
{
    for (int i = 0; pool && i < LIBRARIES_MAX; i++)
        if (pool->slots[i].engine)
            pool->slots[i].library->close(pool->slots[i].engine);
    if (pool)
        free(pool->ceilings);
    free(pool);
}

struct gemm_engine *gemm_pool_engine(struct gemm_pool *pool, const struct gemm_library *library,
                                     const char *file, int *err, char *why)
{
    struct slot *slot = pool->slots;

    while (slot->library && slot->library != library)
        slot++;
    if (!slot->library) {
        slot->library = library;
        slot->engine = library->open(file, &slot->err, slot->why);
    }
    *err = slot->err;
    memcpy(why, slot->why, GEMM_WHY_BYTES);
    return slot->engine;
}

static struct known_ceiling *ceiling_slot(struct gemm_pool *pool, enum gemm_dtype dtype,
                                          const struct gemm_threads *threads)
{
    for (size_t i = 0; i < pool->n_ceilings; i++) {
        struct known_ceiling *known = &pool->ceilings[i];
        if (known->dtype == dtype && known->threads == threads->n &&
            known->first_cpu == threads->cpus[0])
            return known;
    }
    struct known_ceiling *grown =
        realloc(pool->ceilings, (pool->n_ceilings + 1) * sizeof(*pool->ceilings));
    if (!grown)
        return NULL;
    pool->ceilings = grown;
    grown[pool->n_ceilings] = (struct known_ceiling){
        .dtype = dtype, .threads = threads->n, .first_cpu = threads->cpus[0]};
    return &grown[pool->n_ceilings++];
}

int gemm_pool_ceiling(struct gemm_pool *pool, enum gemm_dtype dtype,
                      const struct gemm_threads *threads, bool again, struct gemm_ceiling *out)
{
    struct known_ceiling *known = ceiling_slot(pool, dtype, threads);
    int err = known ? 0 : -ENOMEM;

    if (!err && (!known->value.source || again)) {
        const struct ceiling_loop *loops[CEILING_LOOPS_MAX];
        struct ceiling_rate best;

        err = ceiling_measure(loops, ceiling_loops(dtype, &pool->features, loops), threads->topo,
                              threads->cpus, threads->n, &best);
        if (!err && best.operations_per_ns > known->value.operations_per_ns)
            known->value = (struct gemm_ceiling){best.operations_per_ns, best.loop->source};
    }
    if (!err)
        *out = known->value;
    return err;
}

/* ---- The table of matrix libraries and what they share ---- */

const struct gemm_library *const gemm_libraries[] = {
    &gemm_onednn, &gemm_openblas, &gemm_openblas_best, &gemm_cublaslt, &gemm_cublaslt_best, NULL};

const char *const gemm_library_names[] = {"auto",     "onednn",        "openblas", "openblas-best",
                                          "cublaslt", "cublaslt-best", NULL};

const struct gemm_where *const gemm_wheres[] = {&gemm_on_host, &gemm_on_gpu, NULL};

const struct gemm_library *gemm_library_for(const struct gemm_where *where, enum gemm_dtype dtype)
{
    for (const struct gemm_library *const *at = gemm_libraries; *at; at++)
        if ((*at)->where == where && (*at)->dtypes >> dtype & 1)
            return *at;
    return NULL;
}

unsigned gemm_types_of(const struct gemm_where *where)
{
    unsigned types = 0;

    for (const struct gemm_library *const *at = gemm_libraries; *at; at++)
        types |= (*at)->where == where ? (*at)->dtypes : 0;
    return types;
}

static bool is_steered_by(const struct gemm_library *library, const char *variable)
{
    size_t name = strcspn(variable, "=");
    static const char threads[] = "_NUM_THREADS";
    size_t end = sizeof(threads) - 1;

    if (!library->steered_by || (name > end && !strncmp(variable + name - end, threads, end)))
        return false;
    for (const char *const *at = library->steered_by; *at; at++)
        if (!strncmp(variable, *at, strlen(*at)))
            return true;
    return false;
}

#define VALUE_SHOWN 60 /* bytes of a variable */

const char *gemm_steering(const struct gemm_library *library, const char *const *environment,
                          char *text, size_t len)
{
    size_t at = 0;

    text[0] = 0;
    for (; environment && *environment && at + 1 < len; environment++)
        if (is_steered_by(library, *environment)) {
            int n =
                snprintf(text + at, len - at, "%s%.*s", at ? ", " : "", VALUE_SHOWN, *environment);
            at += n > 0 ? (size_t)n : 0;
        }
    return text;
}

int gemm_why(char *why, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, GEMM_WHY_BYTES, format, args);
    va_end(args);
    return err;
}

void *gemm_dlopen(const char *file, const char *const *names, const char *package, int *err,
                  char *why)
{
    const char *const one[] = {file, NULL};
    const char *const *try = file ? one : names;
    void *handle = NULL;

    for (; *try && !handle; try++)
        handle = dlopen(*try, RTLD_NOW | RTLD_LOCAL);
    *err = 0;
    if (!handle && file) {
        const char *text = dlerror();
        *err = gemm_why(why, -ENODEV, "cannot open library '%s': %s", file, text ? text : "");
    } else if (!handle) {
        *err = gemm_why(why, -ENODEV, "library '%s' is not here: install Debian package '%s'",
                        names[0], package);
    }
    return handle;
}

int gemm_dlsym(void *handle, const struct gemm_symbol *symbols, void *table, char *why)
{
    for (; symbols->name; symbols++) {
        void *at = dlsym(handle, symbols->name);
        if (!at && !symbols->optional)
            return gemm_why(why, -ENODEV,
                            "this library has no function '%s': it is another one or too old",
                            symbols->name);
        memcpy((char *)table + symbols->offset, &at, sizeof(at));
    }
    return 0;
}

/* ---- From what is asked for to what can be done ---- */

int gemm_where_find(const char *device, const struct gemm_where **where, unsigned *index,
                    char *error, size_t len)
{
    struct place place;
    int err = place_parse(device, PLACE_WHOLE | PLACE_GPU, &place, error, len);

    for (const struct gemm_where *const *at = gemm_wheres; !err && *at; at++)
        if ((*at)->gpu == place.gpu) {
            *where = *at;
            *index = place.index;
            return 0;
        }
    if (!err)
        snprintf(error, len, "'%s' multiplies no matrices", device);
    return err ? err : -EINVAL;
}

const char *gemm_types_text(char *const *devices, size_t n, char *text, size_t len)
{
    bool leads = false;
    unsigned types = 0, index;
    char error[160];

    text[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const struct gemm_where *where;
        if (gemm_where_find(devices[i], &where, &index, error, sizeof(error)))
            continue;
        types |= gemm_types_of(where);
        leads |= where->gpu;
    }
    for (int t = 0; leads && t < GEMM_DTYPES; t++)
        if (types >> t & 1)
            snprintf(text + strlen(text), len - strlen(text), "%s%s", *text ? "," : "",
                     gemm_dtypes[t].name);
    return text;
}

static int no_library(struct point *pt, const struct gemm_where *where,
                      const struct gemm_library *asked, enum gemm_dtype dtype)
{
    const char *type = gemm_dtypes[dtype].name;
    const struct gemm_library *other = gemm_library_for(where, dtype);

    if (asked && asked->where != where)
        return point_reason(pt, -EOPNOTSUPP, "%s does not run on %s: take --library auto",
                            asked->name, where->name);
    if (asked && other)
        return point_reason(pt, -EOPNOTSUPP, "%s has no %s product: take --library %s", asked->name,
                            type, other->name);
    for (const struct gemm_where *const *at = gemm_wheres; *at; at++)
        if (gemm_library_for(*at, dtype))
            return point_reason(pt, -EOPNOTSUPP,
                                "no library for %s has %s products: take --device %s", where->name,
                                type, (*at)->gpu ? "cuda" : "host");
    return -EOPNOTSUPP;
}

int gemm_resolve(struct point *pt, const struct gemm_asked *asked, const struct gemm_where *where,
                 struct gemm_request *q)
{
    enum gemm_dtype dtype = (enum gemm_dtype)asked->dtype;

    q->library =
        asked->library ? gemm_libraries[asked->library - 1] : gemm_library_for(where, dtype);
    if (!q->library || q->library->where != where || !(q->library->dtypes >> dtype & 1))
        return no_library(pt, where, q->library, dtype);
    q->form = gemm_form_find(where->forms, dtype, (enum gemm_sums)asked->sums);
    if (!q->form)
        return point_reason(pt, -EOPNOTSUPP,
                            "%s products are not summed as '%s' on %s: take --accumulate default",
                            gemm_dtypes[dtype].name, gemm_sums_names[asked->sums], where->name);
    enum gemm_layout layout = asked->layout ? (enum gemm_layout)asked->layout : q->form->layout;
    if ((layout == GEMM_NT && !where->transposes) ||
        (layout == GEMM_NN && q->form->layout == GEMM_NT))
        return point_reason(pt, -EOPNOTSUPP, "%s products on %s take B as %s alone: --layout %s",
                            gemm_dtypes[dtype].name, where->name,
                            where->transposes ? "n x k" : "k x n", where->transposes ? "nt" : "nn");
    q->b_is_nk = layout == GEMM_NT;
    q->data = (enum gpu_data)asked->data;
    q->threads = (unsigned)asked->threads;
    q->file = asked->files[q->library->file];
    point_option(pt, "library", "%s", q->library->name);
    point_option(pt, "layout", "%s", gemm_layout_names[layout]);
    point_option(pt, "accumulate", "%s", q->form->accumulate);
    return 0;
}

int gemm_begin(const struct gemm_where *where, struct gemm_run *run, const struct gemm_shape *shape,
               bool brief)
{
    const struct gemm_form *form = run->request.form;

    if (form->k_max && shape->k > form->k_max)
        return point_reason(run->pt, -EOPNOTSUPP, "%s sums may overflow where k is over %llu",
                            gemm_dtypes[form->dtype].name, (unsigned long long)form->k_max);
    return where->begin(run, shape, brief);
}
