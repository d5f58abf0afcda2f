/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products on the host's CPUs: operands in its memory, threads bound, the host's clock, and
 * a ceiling measured on the same CPUs. See library.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benches/gemm/library.h"
#include "core/clock.h"
#include "core/hw/host_buffer.h"
#include "core/hw/topo.h"

struct host_run {
    struct gemm_run base;
    struct gemm_engine *engine; /* the pool's */
    struct gemm_threads threads;
    unsigned *cpus;
    struct gemm_problem problem;
    double fastest_ns; /* of one product */
    uint64_t begin_ns;
    struct task_times begin; /* when sampling began */
};

static int place(struct host_run *r)
{
    struct point *pt = r->base.pt;
    struct topo *topo = point_topo(pt);
    unsigned n = r->base.request.threads;
    char text[64];

    if (!topo)
        return -EIO;
    if (n > topo_cpus(topo))
        return point_reason(pt, -EOPNOTSUPP, "%u threads asked for, %u CPUs usable", n,
                            topo_cpus(topo));
    r->cpus = calloc(n, sizeof(*r->cpus));
    if (!r->cpus)
        return -ENOMEM;
    int err = topo_spread(topo, -1, n, r->cpus);
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
    if (*gemm_steering(q->library, (const char *const *)environ, steering, sizeof(steering)))
        point_reason(pt, 0, "the environment steers %s: %s", q->library->name, steering);
    return 0;
}

static int host_open(struct point *pt, const struct gemm_request *request, struct gemm_run **run)
{
    struct host_run *r = calloc(1, sizeof(*r));

    *run = r ? &r->base : NULL;
    if (!r)
        return -ENOMEM;
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
    s->parts = (struct limit_parts){.rate = {s->limit}, .share = 1};
    ceiling_place(s->parts.place[0], "multiply-adds", r->threads.cpus, r->threads.n, "%s",
                  gemm_dtype_names[r->base.request.form->dtype]);
    return 0;
}

static int host_limit(struct gemm_run *run)
{
    return measure_limit((struct host_run *)run, false);
}

static int admit(const struct host_run *r, const struct gemm_shape *shape)
{
    const struct gemm_form *form = r->base.request.form;
    double need = gemm_bytes(form, shape) +
                  (double)shape->k * (double)shape->n * gemm_element_bytes(form->b); /* packed */
    uint64_t have = host_available();

    if (need > 0.9 * (double)have)
        return point_reason(r->base.pt, -EOPNOTSUPP,
                            "needs %.1f GB of memory, %.1f GB are available", need * 1e-9,
                            (double)have * 1e-9);
    return 0;
}

static int prepare(struct host_run *r)
{
    struct point *pt = r->base.pt;
    char why[GEMM_WHY_BYTES] = "";
    int err = r->engine->library->bind(r->engine, &r->threads, why);

    if (!err)
        err = r->engine->library->prepare(r->engine, &r->problem, why);
    if (err)
        return point_reason(pt, err, "%s", why);
    point_column(pt, "kernel", "%s", r->engine->kernel);
    return 0;
}

static int host_begin(struct gemm_run *run, const struct gemm_shape *shape, bool brief)
{
    struct host_run *r = (struct host_run *)run;
    const struct gemm_request *q = &run->request;
    int err = admit(r, shape);

    (void)brief;
    run->shape = *shape;
    if (!err)
        err = gemm_problem_open(&r->problem, q->form->dtype, shape, run->pt->common->seed);
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
        r->engine->library->finish(r->engine);
    gemm_problem_close(&r->problem);
}

static int host_sample(struct gemm_run *run, uint64_t inner, uint64_t *ns)
{
    struct host_run *r = (struct host_run *)run;
    uint64_t begin_ns = clock_now_ns();
    int err = r->engine->library->run(r->engine, inner);

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

static int host_check(struct gemm_run *run, bool spoil, struct gemm_check *out)
{
    struct host_run *r = (struct host_run *)run;

    check_limit(r);
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
        if ((*at)->where != &gemm_on_host)
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
