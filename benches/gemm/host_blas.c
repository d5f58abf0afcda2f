/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products on the host's CPUs: operands in its memory, threads bound, the host's clock, and
 * a ceiling measured on the same CPUs; and the libraries and places that a case may ask for. See
 * library.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benches/gemm/library.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/host_buffer.h"
#include "core/hw/place.h"
#include "core/hw/topo.h"

struct gemm_ceiling {
    double operations_per_ns; /* of all threads together */
    double own_per_ns;        /* by instructions of the type itself; 0: there are none */
    const char *source;       /* for limit_source; static */
};

/* ---- Libraries and ceilings of a process ---- */

struct gemm_known_ceiling {
    enum gemm_dtype dtype;
    unsigned threads, first_cpu;
    struct gemm_ceiling value;
};

void gemm_pool_release(struct gemm_pool *pool)
{
    for (int i = 0; i < GEMM_LIBRARIES_MAX; i++)
        if (pool->slots[i].engine)
            pool->slots[i].library->close(pool->slots[i].engine);
    free(pool->ceilings);
}

/* The opened library, or NULL with *err and the reason as its open() left them. `file` counts at
 * the first call for a library. The caller must be able to use all CPUs: see library.h. */
static struct gemm_engine *gemm_pool_engine(struct gemm_pool *pool,
                                            const struct gemm_library *library, const char *file,
                                            int *err, char *why)
{
    __typeof__(pool->slots[0]) *slot = pool->slots;

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

/* The ceiling of a type with n threads on these CPUs, measured at the first call, or again when
 * `again` is set: then the higher of both is kept. 0 or -errno of ceiling_measure(). */
static int gemm_pool_ceiling(struct gemm_pool *pool, enum gemm_dtype dtype,
                             const struct gemm_threads *threads, bool again,
                             struct gemm_ceiling *out)
{
    struct gemm_known_ceiling *known = pool->ceilings, *end = known + pool->n_ceilings;
    int err = 0;

    while (known < end && (known->dtype != dtype || known->threads != threads->n ||
                           known->first_cpu != threads->cpus[0]))
        known++;
    if (known == end) {
        known = ARRAY_ADD(pool->ceilings, pool->n_ceilings);
        *known = (struct gemm_known_ceiling){
            .dtype = dtype, .threads = threads->n, .first_cpu = threads->cpus[0]};
    }
    if (!known->value.source || again) {
        const struct ceiling_loop *loops[CEILING_LOOPS_MAX];
        struct cpu_features features;
        struct ceiling_rate best;

        cpu_features_read(&features);
        err = ceiling_measure(loops, ceiling_loops(dtype, &features, loops), threads->topo,
                              threads->cpus, threads->n, &best);
        if (!err && best.operations_per_ns > known->value.operations_per_ns)
            known->value =
                (struct gemm_ceiling){best.operations_per_ns, best.own_per_ns, best.loop->source};
    }
    if (!err)
        *out = known->value;
    return err;
}

/* ---- The table of matrix libraries and what they share ---- */

const struct gemm_library *const gemm_libraries[] = {&gemm_onednn, &gemm_openblas, &gemm_cublaslt,
                                                     &gemm_cublaslt_best, NULL};

const char *const gemm_library_names[] = {"auto",     "onednn",        "openblas",
                                          "cublaslt", "cublaslt-best", NULL};

const struct gemm_where *const gemm_wheres[] = {&gemm_on_host, &gemm_on_gpu, NULL};

const struct gemm_library *gemm_library_for(const struct gemm_where *where, enum gemm_dtype dtype)
{
    for (const struct gemm_library *const *at = gemm_libraries; *at; at++)
        if ((*at)->gpu == where->gpu && (*at)->dtypes >> dtype & 1)
            return *at;
    return NULL;
}

unsigned gemm_types_of(const struct gemm_where *where)
{
    unsigned types = 0;

    for (const struct gemm_library *const *at = gemm_libraries; *at; at++)
        types |= (*at)->gpu == where->gpu ? (*at)->dtypes : 0;
    return types;
}

#define VALUE_SHOWN 60 /* bytes of a variable */

/* The environment's variables that steer a library, but for numbers of threads, which are set by
 * --threads: "OPENBLAS_CORETYPE=Haswell, OMP_WAIT_POLICY=active"; "" where there is none. Returns
 * text. */
static const char *steering_text(const struct gemm_library *library, char *text, size_t len)
{
    static const char threads[] = "_NUM_THREADS";
    size_t end = sizeof(threads) - 1, used = 0;

    text[0] = 0;
    for (char **at = environ; library->steered_by && at && *at && used + 1 < len; at++) {
        const char *const *prefix = library->steered_by;
        size_t name = strcspn(*at, "=");

        while (*prefix && strncmp(*at, *prefix, strlen(*prefix)) != 0)
            prefix++;
        if (*prefix && (name <= end || strncmp(*at + name - end, threads, end) != 0))
            used += (size_t)snprintf(text + used, len - used, "%s%.*s", used ? ", " : "",
                                     VALUE_SHOWN, *at);
    }
    return text;
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

    if (asked && asked->gpu != where->gpu)
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
    if (!q->library || q->library->gpu != where->gpu || !(q->library->dtypes >> dtype & 1))
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
    q->algorithm = asked->algorithm;
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

#define SLOW_UNIT                                                                                  \
    0.9 /* of the limit: a unit that is slower by more than the two measurements differ */

struct host_run {
    struct gemm_run base;
    struct gemm_engine *engine; /* the pool's */
    struct gemm_product *product;
    struct gemm_threads threads;
    unsigned *cpus;
    struct gemm_problem problem;
    double fastest_ns; /* of one product */
    double own_rate;   /* the most by instructions of the type itself, as the limit; 0: unknown */
    uint64_t begin_ns;
    struct task_times begin; /* when sampling began */
};

int gemm_has_cpus(struct point *pt, unsigned threads)
{
    unsigned cpus = topo_cpus(point_topo(pt));

    return threads <= cpus ? 0
                           : point_reason(pt, -EOPNOTSUPP, "%u threads asked for, %u CPUs usable",
                                          threads, cpus);
}

static int place(struct host_run *r)
{
    struct point *pt = r->base.pt;
    struct topo *topo = point_topo(pt);
    unsigned n = r->base.request.threads;
    char text[64];

    if (!topo)
        return -EIO;
    int err = gemm_has_cpus(pt, n);
    if (err)
        return err;
    r->cpus = xcalloc(n, sizeof(*r->cpus));
    err = topo_spread(topo, -1, n, r->cpus);
    if (err)
        return err;
    r->threads = (struct gemm_threads){topo, r->cpus, n};
    point_column(pt, "cpus", "%s", topo_cpus_text(r->cpus, n, text, sizeof(text)));
    return threads_unbind_self(topo); /* for the library to see them all when it is opened */
}

static int open_engine(struct host_run *r)
{
    const struct gemm_request *q = &r->base.request;
    struct point *pt = r->base.pt;
    char why[GEMM_WHY_BYTES] = "", steering[200];
    int err;

    r->engine = gemm_pool_engine(pt->bench_state, q->library, q->file, &err, why);
    if (!r->engine)
        return point_reason(pt, err, "%s", why);
    if (r->engine->remark[0])
        point_reason(pt, 0, "%s", r->engine->remark);
    if (*steering_text(q->library, steering, sizeof(steering)))
        point_reason(pt, 0, "environment variables affect %s: %s", q->library->name, steering);
    return 0;
}

static int host_open(struct point *pt, const struct gemm_request *request, struct gemm_run **run)
{
    struct host_run *r = xcalloc(1, sizeof(*r));

    *run = &r->base;
    r->base = (struct gemm_run){.pt = pt, .request = *request};
    int err = place(r);
    return err ? err : open_engine(r);
}

static void host_close(struct gemm_run *run)
{
    struct host_run *r = (struct host_run *)run;

    free(r->begin.list);
    free(r->cpus);
    free(r);
}

static int measure_limit(struct host_run *r, bool again)
{
    struct point *pt = r->base.pt;
    struct gemm_ceiling ceiling;
    int err = gemm_pool_ceiling(pt->bench_state, r->base.request.form->dtype, &r->threads, again,
                                &ceiling);

    if (err)
        return point_reason(pt, err, "no ceiling: cannot start bound threads: %s", strerror(-err));
    struct series *s = &pt->series[0];
    s->limit = ceiling.operations_per_ns * 1e-3; /* 1e9 a second in 1e12 a second */
    s->limit_kind = LIMIT_MEASURED;
    s->limit_source = ceiling.source;
    r->own_rate = ceiling.own_per_ns * 1e-3;
    s->parts = (struct limit_parts){.rate = {s->limit}, .share = 1};
    ceiling_place(s->parts.place[0], "multiply-adds", r->threads.cpus, r->threads.n, "%s",
                  gemm_dtype_names[r->base.request.form->dtype]);
    return 0;
}

static int host_limit(struct gemm_run *run)
{
    return measure_limit((struct host_run *)run, false);
}

static int prepare(struct host_run *r)
{
    struct point *pt = r->base.pt;
    char why[GEMM_WHY_BYTES] = "";
    int err = r->engine->library->bind(r->engine, &r->threads, why);

    if (!err)
        r->product = r->engine->library->prepare(r->engine, &r->problem, &err, why);
    if (err)
        return point_reason(pt, err, "%s", why);
    point_column(pt, "kernel", "%s", r->engine->kernel);
    return 0;
}

static int host_begin(struct gemm_run *run, const struct gemm_shape *shape, bool brief)
{
    struct host_run *r = (struct host_run *)run;
    const struct gemm_request *q = &run->request;
    double packed = (double)shape->k * (double)shape->n * gemm_element_bytes(q->form->b);
    double need = gemm_bytes(q->form, shape) + packed, have = (double)host_available();

    (void)brief;
    run->shape = *shape;
    if (need > 0.9 * have)
        return point_reason(run->pt, -EOPNOTSUPP, "needs %.1f GB of memory, %.1f GB are available",
                            need * 1e-9, have * 1e-9);
    int err = gemm_problem_open(&r->problem, q->form->dtype, shape, run->pt->common->seed);
    if (err)
        return err;
    if (q->data == GPU_ZEROS)
        gemm_problem_zero(&r->problem);
    err = prepare(r);
    if (err)
        return err;
    r->fastest_ns = 0;
    r->begin_ns = clock_now_ns();
    free(r->begin.list);
    return task_times_read(&r->begin);
}

static void host_end(struct gemm_run *run)
{
    struct host_run *r = (struct host_run *)run;

    if (r->engine)
        r->engine->library->finish(r->product);
    r->product = NULL;
    gemm_problem_close(&r->problem);
}

static int host_sample(struct gemm_run *run, uint64_t inner, uint64_t *ns)
{
    struct host_run *r = (struct host_run *)run;
    uint64_t begin_ns = clock_now_ns();
    int err = r->engine->library->run(r->product, inner);

    *ns = clock_now_ns() - begin_ns;
    double one_ns = (double)*ns / (double)inner;
    if (!r->fastest_ns || one_ns < r->fastest_ns)
        r->fastest_ns = one_ns;
    return err;
}

/* The ceiling must not be beaten: if it was, it was disturbed, or the library knows better
 * instructions. */
static void check_limit(struct host_run *r)
{
    struct point *pt = r->base.pt;
    double best = pt->series[0].quantity / r->fastest_ns * 1e-3;

    if (best > pt->series[0].limit)
        measure_limit(r, true);
    if (best > 1.01 * pt->series[0].limit)
        point_reason(pt, 0,
                     "the fastest sample is %.0f %% of the measured ceiling: the ceiling is too "
                     "low here",
                     100 * best / pt->series[0].limit);
}

static bool is_slow_unit(const struct host_run *r)
{
    return r->own_rate > 0 && r->own_rate < SLOW_UNIT * r->base.pt->series[0].limit;
}

static int host_check(struct gemm_run *run, bool spoil, struct gemm_check *out)
{
    struct host_run *r = (struct host_run *)run;

    check_limit(r);
    if (is_slow_unit(
            r)) /* a library that keeps to them cannot come near the limit of faster ones */
        point_reason(run->pt, 0, "this CPU's own %s instructions are slower than its f32 ones",
                     gemm_dtype_names[run->request.form->dtype]);
    if (spoil)
        ((unsigned char *)r->problem.c)[gemm_element_bytes(r->problem.form->c) - 1] ^= 0x40;
    return gemm_check_result(&r->problem, run->pt->common->seed, out);
}

/* Which CPUs did the work: their CPU time since the end of set-up. */
static int host_evidence(struct gemm_run *run)
{
    struct host_run *r = (struct host_run *)run;
    struct point *pt = run->pt;
    struct task_times now;
    double low = 0, high = 0, elapsed_s = (double)(clock_now_ns() - r->begin_ns) * 1e-9;
    char text[64];
    int err = task_times_read(&now);

    for (unsigned i = 0; !err && i < r->threads.n; i++) {
        double used = task_times_since(&r->begin, &now, r->cpus[i]);
        low = !i || used < low ? used : low;
        high = used > high ? used : high;
    }
    if (!err)
        snprintf(pt->evidence, sizeof(pt->evidence),
                 "CPU time on %s: %.2f to %.2f s each in %.2f s",
                 topo_cpus_text(r->cpus, r->threads.n, text, sizeof(text)), low, high, elapsed_s);
    if (!err && is_slow_unit(r)) {
        size_t used = strlen(pt->evidence);

        snprintf(pt->evidence + used, sizeof(pt->evidence) - used,
                 "; %s instructions reach %.3g %s at most",
                 gemm_dtype_names[run->request.form->dtype], r->own_rate, pt->series[0].unit);
    }
    free(now.list);
    return err;
}

static unsigned host_units(const struct gemm_run *run)
{
    return run->request.threads;
}

static void host_backends(backend_say_fn *say, void *arg)
{
    for (const struct gemm_library *const *at = gemm_libraries; *at; at++) {
        char why[GEMM_WHY_BYTES] = "";
        int err;
        if ((*at)->gpu)
            continue;
        struct gemm_engine *engine = (*at)->open(NULL, &err, why);
        say(arg, &(struct backend){.name = (*at)->name,
                                   .state = engine ? BACKEND_PRESENT : BACKEND_ABSENT,
                                   .version = engine ? engine->kernel : NULL,
                                   .why = engine ? NULL : why});
        if (engine)
            (*at)->close(engine);
    }
}

const struct gemm_where gemm_on_host = {
    .name = "the host's CPUs",
    .forms = gemm_host_forms,
    .open = host_open,
    .close = host_close,
    .begin = host_begin,
    .end = host_end,
    .sample = host_sample,
    .check = host_check,
    .evidence = host_evidence,
    .limit = host_limit,
    .units = host_units,
    .backends = host_backends,
};
