/* SPDX-License-Identifier: Apache-2.0 */
/* memory on a GPU: bandwidth by its own kernels, and by the driver's copy and set. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/memory/memory_work.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/gpu.h"
#include "core/hw/place.h"
#include "core/row.h"
#include "core/search.h"

enum { MEMORY_BOTH, MEMORY_TUNED, MEMORY_PLAIN };

enum { MEMORY_KERNEL, MEMORY_DRIVER };

/* ---- The search for the best launch shape ---- */

#define GPU_ACCESS_BYTES 16u
#define GPU_PLAIN_BLOCK  256u

#define CANDIDATES_MAX 512
#define GRID_MAX       INT32_MAX /* blocks in x, of every GPU since 2012 */

static const unsigned unrolls[] = {1, 2, 4, 8};
static const unsigned block_sizes[] = {128, 256, 512, 1024};

struct shapes {
    const struct gpu_tune_space *space;
    struct gpu_shape *all;
    unsigned n;
};

/* Blocks until each access of the array has a thread. */
static unsigned cover(const struct gpu_tune_space *space, const struct gpu_shape *shape)
{
    uint64_t each = (uint64_t)shape->block * shape->unroll * GPU_ACCESS_BYTES;
    uint64_t grid = (space->bytes + each - 1) / each;

    return grid > GRID_MAX ? GRID_MAX : grid ? (unsigned)grid : 1;
}

int gpu_shape_plain(const struct gpu_tune_space *space, struct gpu_shape *shape)
{
    *shape = (struct gpu_shape){.unroll = 1, .block = GPU_PLAIN_BLOCK};
    unsigned each = space->blocks_per_sm(space->arg, shape);
    uint64_t resident = (uint64_t)each * space->sms;

    shape->grid = cover(space, shape);
    if (space->resident && shape->grid > resident)
        shape->grid = (unsigned)resident;
    return each ? 0 : -EOPNOTSUPP;
}

static void add(struct shapes *s, struct gpu_shape shape, uint64_t grid)
{
    const struct gpu_shape *last = s->n ? &s->all[s->n - 1] : NULL;
    unsigned most = cover(s->space, &shape);

    shape.grid = grid < most ? (unsigned)grid : most;
    bool again = last && last->unroll == shape.unroll && last->streaming == shape.streaming &&
                 last->block == shape.block && last->grid == shape.grid;
    if (!again && s->n < CANDIDATES_MAX)
        s->all[s->n++] = shape;
}

static void list_candidates(struct shapes *s)
{
    for (size_t u = 0; u < sizeof(unrolls) / sizeof(unrolls[0]); u++)
        for (size_t b = 0; b < sizeof(block_sizes) / sizeof(block_sizes[0]); b++)
            for (int streaming = 0; streaming < 2; streaming++) {
                /* 1, 2, 4, ... blocks on each SM, as many as fit, and as many as cover it all. */
                struct gpu_shape shape = {unrolls[u], streaming, block_sizes[b], 0};
                unsigned each = s->space->blocks_per_sm(s->space->arg, &shape);
                for (unsigned k = 1; k < each; k *= 2)
                    add(s, shape, (uint64_t)k * s->space->sms);
                if (each)
                    add(s, shape, (uint64_t)each * s->space->sms);
                if (each && !s->space->resident)
                    add(s, shape, GRID_MAX);
            }
}

const char *gpu_shape_word(const struct gpu_shape *shape, char *text, size_t len)
{
    snprintf(text, len, "%ux%ux%u%s", shape->unroll, shape->block, shape->grid,
             shape->streaming ? "cs" : "");
    return text;
}

bool gpu_shape_read(const struct gpu_tune_space *space, const char *word, struct gpu_shape *shape)
{
    struct shapes s = {.space = space, .all = xcalloc(CANDIDATES_MAX, sizeof(*s.all))};
    bool found = false;
    char one[48];

    list_candidates(&s);
    for (unsigned i = 0; i < s.n && !found; i++) {
        found = !strcmp(gpu_shape_word(&s.all[i], one, sizeof(one)), word);
        *shape = s.all[i];
    }
    free(s.all);
    return found;
}

/* A run of a search. */
static int time_shape(void *arg, unsigned i, uint64_t passes, struct search_run *run)
{
    struct shapes *s = arg;
    int err = s->space->time(s->space->arg, &s->all[i], &run->ns);

    (void)passes;
    run->cost = (double)run->ns;
    return err;
}

int gpu_tune(const struct gpu_tune_space *space, uint64_t budget_ns, struct gpu_tuned *best)
{
    struct shapes s = {.space = space, .all = xcalloc(CANDIDATES_MAX, sizeof(*s.all))};
    struct search search = {
        .policy = &search_halving, .run = time_shape, .arg = &s, .budget_ns = budget_ns};
    struct search_result found;

    list_candidates(&s);
    search.n = s.n;
    int err = search_run(&search, &found);
    *best = (struct gpu_tuned){.shape = s.all[found.best],
                               .tried = found.tried,
                               .of = s.n,
                               .decided = found.stop == SEARCH_DECIDED && found.steady};
    free(s.all);
    return err;
}

struct gpu_passes {
    const struct memory_params *params;
    struct gpu *gpu;
    struct gpu_timer timer;
    struct gpu_arrays arrays;
    bool inside; /* all passes of a run are inside one launch */
    uint64_t tune_passes;
};

/* One row: a kernel with its shape, or the driver. */
struct gpu_variant {
    const char *name; /* of the launch: "tuned", "plain"; "": the driver's */
    struct gpu_shape shape;
    char text[64];             /* of the shape */
    char tuning[48];           /* the choice of a search, for later launches; "" */
    struct gpu_kernel *kernel; /* NULL: the driver's */
    double scalar;             /* of the last run */
};

/* ---- What bandwidth and latency share ---- */

#define L1_SURE_BYTES  ((uint64_t)32 << 10)
#define L1_NEVER_BYTES ((uint64_t)512 << 10)
#define GDDR_BITS_MAX  512u
#define KEPT_FREE      16u /* a 16th of the memory that is free is left alone */

/* A set so many times L2 takes next to nothing from it: with less, marked stores and random order
 * leave up to a quarter there, and a row in HBM would be faster than HBM. */
#define PAST_L2 8

const char *gpu_memory_level(const struct gpu_facts *facts, uint64_t set_bytes)
{
    if (!facts->l2_bytes)
        return "";
    if (set_bytes <= facts->l2_bytes / 2)
        return "L2";
    if (set_bytes < PAST_L2 * facts->l2_bytes)
        return "";
    return facts->memory_bus_bits > GDDR_BITS_MAX ? "HBM" : "DRAM";
}

const char *gpu_latency_level(const struct gpu_facts *facts, uint64_t set_bytes)
{
    if (set_bytes <= L1_SURE_BYTES)
        return "L1";
    return set_bytes < L1_NEVER_BYTES ? "" : gpu_memory_level(facts, set_bytes);
}

static int check_room(struct point *pt, struct gpu *gpu, uint64_t set_bytes)
{
    uint64_t free_bytes;
    int err = gpu_ops(gpu)->free_bytes(gpu, &free_bytes);

    if (err)
        return point_gpu_failed(pt, gpu, err);
    if (set_bytes > free_bytes - free_bytes / KEPT_FREE)
        return point_reason(pt, -EOPNOTSUPP, "not enough memory: %llu MiB of the GPU's are free",
                            (unsigned long long)(free_bytes >> 20));
    return 0;
}

int gpu_memory_open(struct point *pt, const struct memory_params *p, uint64_t set_bytes,
                    struct gpu **gpu)
{
    char error[160];
    struct place place;
    int err = place_find(p->device, point_topo(pt), &place, error, sizeof(error));

    *gpu = NULL;
    if (err)
        return point_reason(pt, err, "%s", error);
    point_option(pt, "device", "%s", place_name(place).text);
    point_column(pt, "working_set", "%llu", (unsigned long long)set_bytes);
    err = point_gpu(pt, place.index, gpu);
    if (err)
        return err;
    const struct gpu_facts *facts = &gpu_base(*gpu)->facts;
    point_column(pt, "address", "%s", facts->address);
    point_option(pt, "level", "%s",
                 p->op == MEMORY_LATENCY ? gpu_latency_level(facts, set_bytes)
                                         : gpu_memory_level(facts, set_bytes));
    return check_room(pt, *gpu, set_bytes);
}

/* ---- Runs and launch shapes ---- */

#define TUNE_NS     3000000000u /* of one search */
#define TUNE_RUN_NS 100000u     /* of one timing in it, at least */
#define TUNE_PASSES ((uint64_t)1 << 20)
#define WAKE_NS     50000000u /* work before it: an idle GPU takes some ms to raise its clocks */
#define KEPT_RUNS   5         /* of a kept shape and of the plain one */
#define KEPT_SLOWER 1.02      /* than the plain one: it is not kept any longer */

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

/* The timed thing: so many passes. 0, or -errno with the reason in gpu_error(). */
static int gpu_variant_run(struct gpu_passes *m, const struct gpu_variant *v, uint64_t passes,
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

static int time_passes(void *arg, const struct gpu_shape *shape, uint64_t *ns)
{
    struct gpu_passes *m = arg;
    struct gpu_variant v = {.shape = *shape, .scalar = 2};
    int err = find_kernel(m, shape, &v.kernel);

    return err ? err : gpu_variant_run(m, &v, m->tune_passes, ns);
}

/* Where all passes are inside a launch (see memory_work.h), and for reads, which add up into one
 * word at the end of each block: with more blocks that would be what is timed. */
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
                                   .time = time_passes};
}

/* As many passes as a short run of the plain shape takes; runs of them until the clocks are up. */
static int choose_tune_passes(struct gpu_passes *m, const struct gpu_tune_space *space)
{
    struct gpu_shape plain;
    uint64_t ns = 0, end_ns = clock_now_ns() + WAKE_NS;
    int err = gpu_shape_plain(space, &plain);

    for (m->tune_passes = 1; !err && m->tune_passes < TUNE_PASSES; m->tune_passes *= 2) {
        err = time_passes(m, &plain, &ns);
        if (ns >= TUNE_RUN_NS)
            break;
    }
    while (!err && clock_now_ns() < end_ns)
        err = time_passes(m, &plain, &ns);
    return err;
}

static int search(struct gpu_passes *m, struct gpu_tuned *tuned)
{
    struct gpu_tune_space space = space_of(m);
    int err = choose_tune_passes(m, &space);

    return err ? err : gpu_tune(&space, TUNE_NS, tuned);
}

/* The least times of both shapes, in turn. */
static int time_both(struct gpu_passes *m, const struct gpu_shape shapes[2], uint64_t least_ns[2])
{
    uint64_t ns;
    int err = 0;

    least_ns[0] = least_ns[1] = UINT64_MAX;
    for (int i = 0; !err && i < 2 * KEPT_RUNS; i++) {
        int which = (i + i / 2) % 2; /* 0 1 1 0 */
        err = time_passes(m, &shapes[which], &ns);
        if (!err && ns < least_ns[which])
            least_ns[which] = ns;
    }
    return err;
}

/* Takes the shape that an earlier launch chose, unless it is slower here than the plain one.
 * *found: it is taken. */
static int take_kept(struct point *pt, struct gpu_passes *m, struct gpu_shape *shape, bool *found)
{
    const struct gpu_tune_space space = space_of(m);
    struct gpu_shape both[2];
    uint64_t ns[2];

    *found = false;
    if (!strcmp(m->params->tuning, "auto"))
        return 0;
    if (!gpu_shape_read(&space, m->params->tuning, &both[1]))
        return point_reason(pt, 0,
                            "the launch shape of an earlier launch is none of those here: "
                            "searched again");
    int err = choose_tune_passes(m, &space);
    if (!err)
        err = gpu_shape_plain(&space, &both[0]);
    if (!err)
        err = time_both(m, both, ns);
    if (err)
        return err;
    *found = (double)ns[1] <= KEPT_SLOWER * (double)ns[0];
    *shape = both[1];
    return *found ? 0
                  : point_reason(pt, 0,
                                 "the launch shape of an earlier launch is slower here than the "
                                 "plain one: searched again");
}

static int find_tuned(struct point *pt, struct gpu_passes *m, struct gpu_variant *v)
{
    struct memory_session *session = pt->bench_state;
    bool found;
    char key[64];
    int err = take_kept(pt, m, &v->shape, &found);

    if (err)
        return err;
    if (found) {
        snprintf(v->tuning, sizeof(v->tuning), "%s", m->params->tuning);
        return 0;
    }
    /* What the choice is for: number `index` is the GPU's in this process. */
    snprintf(key, sizeof(key), "%u/%s/%s/%" PRIu64 "%s", gpu_base(m->gpu)->index,
             memory_ops[m->params->op], memory_types[m->params->dtype], m->arrays.bytes,
             must_be_resident(m) ? "/resident" : "");
    struct gpu_tuning *known = session->tunings;
    while (known < session->tunings + session->n_tunings && strcmp(known->key, key) != 0)
        known++;
    if (known == session->tunings + session->n_tunings) {
        struct gpu_tuning fresh = {.key = ""};

        err = search(m, &fresh.tuned);
        if (err)
            return err;
        memcpy(fresh.key, key, sizeof(key));
        known = ARRAY_ADD(session->tunings, session->n_tunings);
        *known = fresh;
    }
    const struct gpu_tuned *tuned = &known->tuned;
    if (tuned->tried < tuned->of)
        point_reason(pt, 0, "the search for the best launch ran out of time: %u of %u shapes tried",
                     tuned->tried, tuned->of);
    v->shape = tuned->shape;
    if (tuned->decided)
        gpu_shape_word(&v->shape, v->tuning, sizeof(v->tuning));
    return 0;
}

/* The shape and the kernel of a variant, by its name; the tuned one is searched for once in a
 * process. A remark in the reason where the search was cut short. Errors as above. */
static int gpu_variant_choose(struct point *pt, struct gpu_passes *m, struct gpu_variant *v)
{
    struct gpu_tune_space space = space_of(m);
    int err = 0;

    if (!*v->name)
        return 0;
    if (!strcmp(v->name, memory_launches[MEMORY_TUNED]))
        err = find_tuned(pt, m, v);
    else
        err = gpu_shape_plain(&space, &v->shape);
    snprintf(v->text, sizeof(v->text), "u%u%s %u threads x %u blocks", v->shape.unroll,
             v->shape.streaming ? " cs" : "", v->shape.block, v->shape.grid);
    return err ? err : find_kernel(m, &v->shape, &v->kernel);
}

/* A pass over a set that L2 holds takes less than a launch, so that all passes of a sample
 * are inside one; and samples are longer, since the faster of two kinds of launch must be
 * long enough, too. */
#define L2_SAMPLE_NS 2000000u
#define VARIANTS_MAX 2

struct state {
    struct gpu_passes passes;
    struct gpu_variant variants[VARIANTS_MAX];
    unsigned n_variants;
    uint64_t runs;
    uint64_t pass_sum; /* what a pass of KERNEL_READ adds */
    bool wrong;        /* a sample's sum was not right */
};

/* A series for each kind of launch, with its columns. */
static void list_variants(struct point *pt, struct state *st)
{
    const struct memory_params *p = st->passes.params;
    int first = p->launch == MEMORY_PLAIN ? MEMORY_PLAIN : MEMORY_TUNED;
    int last = p->launch == MEMORY_TUNED ? MEMORY_TUNED : MEMORY_PLAIN;

    if (p->engine == MEMORY_DRIVER)
        last = first;
    for (int launch = first; launch <= last; launch++) {
        struct gpu_variant *v = &st->variants[st->n_variants];
        struct series *s = point_series(pt, "bandwidth", "GB/s", 0);
        v->name = p->engine == MEMORY_DRIVER ? "" : memory_launches[launch];
        st->n_variants++;
        s->set[0].column = "launch";
        s->set[0].value = v->name;
        s->set[1].column = "shape";
        s->set[1].value = v->text;
        s->set[2].column = "tuning";
        s->set[2].value = v->tuning;
    }
}

static int setup_device(struct point *pt, struct state *st)
{
    const struct memory_params *p = st->passes.params;
    const struct gpu_facts *facts = &gpu_base(st->passes.gpu)->facts;
    uint64_t set_bytes =
        gpu_arrays_bytes((enum kernel_op)p->op, p->size) * kernel_arrays((enum kernel_op)p->op);
    int type = p->engine == MEMORY_DRIVER ? KERNEL_F32 : p->dtype; /* it sets words of 32 bits */
    int err = gpu_timer_open(&st->passes.timer, st->passes.gpu, pt->watch);

    st->passes.inside = p->engine == MEMORY_KERNEL && set_bytes <= facts->l2_bytes;
    pt->sample_ns = st->passes.inside ? L2_SAMPLE_NS : pt->sample_ns;
    if (!err)
        err = gpu_arrays_open(&st->passes.arrays, st->passes.gpu, st->passes.timer.stream,
                              (enum kernel_op)p->op, (enum kernel_type)type, p->size,
                              pt->common->seed);
    for (unsigned i = 0; !err && i < st->n_variants; i++) {
        err = gpu_variant_choose(pt, &st->passes, &st->variants[i]);
        pt->series[i].quantity = (double)set_bytes;
    }
    if (!err)
        err = gpu_arrays_poison(&st->passes.arrays);
    if (!err && !kernel_stores((enum kernel_op)p->op))
        st->pass_sum = gpu_arrays_sum(&st->passes.arrays);
    if (!err && p->inject == MEMORY_CORRUPT && !kernel_stores((enum kernel_op)p->op))
        err = gpu_arrays_spoil(&st->passes.arrays);
    return err ? point_gpu_failed(pt, st->passes.gpu, err) : 0;
}

static int setup(struct point *pt)
{
    static const struct bench_rule rules[] = {{"engine=driver op=read,scale,add,triad",
                                               "the driver has a copy and a set: --op copy,write"},
                                              {NULL, NULL}};
    const struct memory_params *p = pt->params;
    struct state *st = pt->state = xcalloc(1, sizeof(*st));
    enum kernel_op op = (enum kernel_op)p->op;

    st->passes.params = p;
    list_variants(pt, st);
    point_column(pt, "bytes_rule", "stream");
    int err = point_refuse(pt, rules);
    uint64_t array_bytes = gpu_arrays_bytes(op, p->size);
    if (!err && !array_bytes)
        err = point_reason(pt, -EOPNOTSUPP, "the size is less than %u bytes for each array",
                           GPU_ARRAYS_LINE);
    if (!err)
        err = gpu_memory_open(pt, p, array_bytes * kernel_arrays(op), &st->passes.gpu);
    return err ? err : setup_device(pt, st);
}

/* A scalar of its own for every run: what the check finds was written by the last one. */
static int sample_variant(struct state *st, struct gpu_variant *v, uint64_t inner, uint64_t *ns)
{
    bool reads = !kernel_stores((enum kernel_op)st->passes.params->op);
    int err = reads ? gpu_arrays_clear_sum(&st->passes.arrays) : 0;
    uint64_t sum = 0;

    v->scalar = (double)(3 + st->runs++ % 5);
    if (!err)
        err = gpu_variant_run(&st->passes, v, inner, ns);
    if (err || !reads)
        return err;
    /* Each sample's sum of its own: errors of several cannot make up for one another. */
    err = gpu_arrays_read_sum(&st->passes.arrays, &sum);
    st->wrong |= !err && sum != st->pass_sum * inner;
    return err;
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    struct state *st = pt->state;
    int err = 0;

    for (unsigned i = 0; !err && i < st->n_variants; i++)
        err = sample_variant(st, &st->variants[i], inner, &ns[i]);
    return err ? point_gpu_failed(pt, st->passes.gpu, err) : 0;
}

static int explain(struct point *pt, struct state *st, int err, const char *error)
{
    if (err == -EBADMSG)
        return point_reason(pt, err, "%s", error);
    return err ? point_gpu_failed(pt, st->passes.gpu, err) : 0;
}

static int check(struct point *pt)
{
    struct state *st = pt->state;
    char error[160] = "", text[160];
    int err = 0;

    if (*gpu_timer_disagreement(&st->passes.timer, text, sizeof(text)))
        point_reason(pt, 0, "%s", text);
    if (!kernel_stores((enum kernel_op)st->passes.params->op))
        return explain(pt, st, st->wrong ? -EBADMSG : 0,
                       "wrong data: the sum of what was read is not that of what was written");
    if (st->passes.params->inject == MEMORY_CORRUPT)
        err = gpu_arrays_spoil(&st->passes.arrays);
    if (!err) /* as the last sample left it */
        err = gpu_arrays_check(&st->passes.arrays, st->variants[st->n_variants - 1].scalar, error,
                               sizeof(error));
    /* One more run, over what is no number: what is right afterwards was written by it. */
    for (unsigned i = 0; !err && i < st->n_variants; i++) {
        uint64_t ns;
        err = gpu_arrays_poison(&st->passes.arrays);
        if (!err)
            err = gpu_variant_run(&st->passes, &st->variants[i], 1, &ns);
        if (!err)
            err =
                gpu_arrays_check(&st->passes.arrays, st->variants[i].scalar, error, sizeof(error));
    }
    return explain(pt, st, err, error);
}

static int evidence(struct point *pt)
{
    struct state *st = pt->state;
    const struct gpu_facts *facts = &gpu_base(st->passes.gpu)->facts;

    evidence_add(pt->evidence, sizeof(pt->evidence), "%s, %u SMs, L2 of %" PRIu64 " KiB",
                 facts->name, facts->sms, facts->l2_bytes >> 10);
    if (kernel_stores((enum kernel_op)st->passes.params->op))
        evidence_add(pt->evidence, sizeof(pt->evidence), "%.3g %% of the result compared",
                     100.0 * (double)gpu_arrays_looked_at(&st->passes.arrays) /
                         (double)st->passes.arrays.bytes);
    else
        evidence_add(pt->evidence, sizeof(pt->evidence), "the sum of every sample compared");
    return 0;
}

static void teardown(struct point *pt)
{
    struct state *st = pt->state;

    if (!st)
        return;
    gpu_arrays_close(&st->passes.arrays);
    gpu_timer_close(&st->passes.timer);
    free(st);
}

static const struct device_work gpu_bandwidth_work = {
    .setup = setup,
    .sample = sample,
    .check = check,
    .evidence = evidence,
    .teardown = teardown,
};

/* The other hooks are never asked for: setup hands the point on. */
static int setup_either(struct point *pt)
{
    const struct memory_params *p = pt->params;

    return work_setup(pt, p->op == MEMORY_LATENCY ? &gpu_latency_work : &gpu_bandwidth_work);
}

const struct device_work gpu_memory_work = {.setup = setup_either};
