/* SPDX-License-Identifier: Apache-2.0 */
/* Runs and launch shapes: see gpu_memory_run.h. */
#include "benches/memory/gpu_memory_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"

#define TUNE_NS     3000000000u /* of one search */
#define TUNE_RUN_NS 100000u     /* of one timing in it, at least */
#define TUNE_PASSES ((uint64_t)1 << 20)
#define WAKE_NS     50000000u /* work before it: an idle GPU takes some ms to raise its clocks */

/* What is queued, again and again. */
struct work {
    struct gpu_passes *m;
    const struct gpu_variant *variant;
    struct gpu_pass_args args;
    uint32_t word;
};

static int queue_kernel(void *arg, struct gpu_stream *stream, uint64_t i)
{
    struct work *w = arg;

    (void)i;
    return gpu_ops(w->m->gpu)->launch(stream, w->variant->kernel, w->variant->shape.grid,
                                      w->variant->shape.block, &w->args);
}

static int queue_driver_copy(void *arg, struct gpu_stream *stream, uint64_t i)
{
    struct work *w = arg;

    (void)i;
    return gpu_ops(w->m->gpu)->copy(stream, w->args.dst, w->args.a, w->args.bytes);
}

static int queue_driver_set(void *arg, struct gpu_stream *stream, uint64_t i)
{
    struct work *w = arg;

    (void)i;
    return gpu_ops(w->m->gpu)->set(stream, w->args.dst, w->word, w->args.bytes);
}

static struct work work_of(struct gpu_passes *m, const struct gpu_variant *v, uint64_t passes)
{
    const struct gpu_arrays *x = &m->arrays;
    struct work w = {.m = m, .variant = v};
    float narrow = (float)v->scalar;

    w.args = (struct gpu_pass_args){.dst = x->dst,
                                    .a = x->a,
                                    .b = x->b,
                                    .bytes = x->bytes,
                                    .passes = m->inside ? passes : 1,
                                    .scalar = v->scalar,
                                    .sum = x->sum};
    memcpy(&w.word, &narrow, sizeof(w.word));
    return w;
}

int gpu_variant_run(struct gpu_passes *m, const struct gpu_variant *v, uint64_t passes,
                    uint64_t *ns)
{
    struct work w = work_of(m, v, passes);
    gpu_queue_fn *queue = v->kernel                      ? queue_kernel
                          : m->params->op == KERNEL_COPY ? queue_driver_copy
                                                         : queue_driver_set;

    return gpu_timer_run(&m->timer, queue, &w, m->inside ? 1 : passes, 1, ns);
}

static int find_kernel(struct gpu_passes *m, const struct gpu_shape *shape,
                       struct gpu_kernel **kernel)
{
    char name[40];

    snprintf(name, sizeof(name), "%s_%s_u%u%s", memory_ops[m->params->op],
             memory_types[m->params->dtype], shape->unroll, shape->streaming ? "_cs" : "");
    return gpu_ops(m->gpu)->kernel(m->gpu, name, kernel);
}

static unsigned occupancy(void *arg, const struct gpu_shape *shape)
{
    struct gpu_passes *m = arg;
    struct gpu_kernel *kernel;
    unsigned blocks;

    if (find_kernel(m, shape, &kernel) || gpu_ops(m->gpu)->occupancy(kernel, shape->block, &blocks))
        return 0;
    return blocks;
}

static int time_shape(void *arg, const struct gpu_shape *shape, uint64_t *ns)
{
    struct gpu_passes *m = arg;
    struct gpu_variant v = {.shape = *shape, .scalar = 2};
    int err = find_kernel(m, shape, &v.kernel);

    return err ? err : gpu_variant_run(m, &v, m->tune_passes, ns);
}

/* Where all passes are inside a launch (see gpu_tune.h), and for reads, which add up into one word at
 * the end of each block: with more blocks that would be what is timed. */
static bool must_be_resident(const struct gpu_passes *m)
{
    return m->inside || !kernel_stores((enum kernel_op)m->params->op);
}

static struct gpu_tune_space space_of(struct gpu_passes *m)
{
    return (struct gpu_tune_space){.bytes = m->arrays.bytes,
                                   .sms = gpu_base(m->gpu)->facts.sms,
                                   .resident = must_be_resident(m),
                                   .blocks_per_sm = occupancy,
                                   .arg = m,
                                   .time = time_shape};
}

/* As many passes as a short run of the plain shape takes; runs of them until the clocks are up. */
static int choose_tune_passes(struct gpu_passes *m, const struct gpu_tune_space *space)
{
    struct gpu_shape plain;
    uint64_t ns = 0, end_ns = clock_now_ns() + WAKE_NS;
    int err = gpu_shape_plain(space, &plain);

    for (m->tune_passes = 1; !err && m->tune_passes < TUNE_PASSES; m->tune_passes *= 2) {
        err = time_shape(m, &plain, &ns);
        if (ns >= TUNE_RUN_NS)
            break;
    }
    while (!err && clock_now_ns() < end_ns)
        err = time_shape(m, &plain, &ns);
    return err;
}

static int search(struct gpu_passes *m, struct gpu_tuned *tuned)
{
    struct gpu_tune_space space = space_of(m);
    int err = choose_tune_passes(m, &space);

    return err ? err : gpu_tune(&space, TUNE_NS, tuned);
}

static int find_tuned(struct point *pt, struct gpu_passes *m, struct gpu_shape *shape)
{
    struct memory_session *session = pt->bench_state;
    struct gpu_tuned fresh;
    char key[64];

    snprintf(key, sizeof(key), "%u/%s/%s/%" PRIu64, gpu_base(m->gpu)->index,
             memory_ops[m->params->op], memory_types[m->params->dtype], m->arrays.bytes);
    const struct gpu_tuned *tuned = gpu_tunings_find(&session->tunings, key);
    int err = 0;
    if (!tuned) {
        err = search(m, &fresh);
        if (!err)
            err = gpu_tunings_add(&session->tunings, key, &fresh);
        tuned = &fresh;
    }
    if (err)
        return err;
    if (tuned->tried < tuned->of)
        point_reason(pt, 0, "the search for the best launch ran out of time: %u of %u shapes tried",
                     tuned->tried, tuned->of);
    *shape = tuned->shape;
    return 0;
}

int gpu_variant_choose(struct point *pt, struct gpu_passes *m, struct gpu_variant *v)
{
    struct gpu_tune_space space = space_of(m);
    int err = 0;

    if (!*v->name)
        return 0;
    if (!strcmp(v->name, memory_launches[MEMORY_TUNED]))
        err = find_tuned(pt, m, &v->shape);
    else
        err = gpu_shape_plain(&space, &v->shape);
    gpu_shape_text(&v->shape, v->text, sizeof(v->text));
    return err ? err : find_kernel(m, &v->shape, &v->kernel);
}
