/* SPDX-License-Identifier: Apache-2.0 */
/* Products on a GPU: see library.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/gemm/library.h"
#include "core/backend.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_choice.h"
#include "core/hw/gpu_kernels.h"
#include "core/search.h"

/* ---- Operands in a GPU's memory ---- */

#define ALIGN_BYTES 256u /* what every kernel of the libraries is content with */
#define FILL_BLOCK  256u
#define FILL_BLOCKS 16u /* for each multiprocessor, at most */
#define SEED_OF_A   1u
#define SEED_OF_B   2u

enum gpu_value gpu_value_of_element(enum gemm_element type)
{
    static const enum gpu_value values[] = {
        [GEMM_EL_F64] = GPU_F64,   [GEMM_EL_F32] = GPU_F32,   [GEMM_EL_F16] = GPU_F16,
        [GEMM_EL_BF16] = GPU_BF16, [GEMM_EL_E4M3] = GPU_E4M3, [GEMM_EL_E5M2] = GPU_E5M2,
        [GEMM_EL_U8] = GPU_VALUES, [GEMM_EL_S8] = GPU_S8,     [GEMM_EL_S32] = GPU_VALUES};

    return values[type];
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

static void set_strides(struct gpu_operands *o, const struct gpu_operands_config *c)
{
    const struct gemm_shape *s = &c->shape;

    o->a_stride = round_up(s->m * s->k * gemm_element_bytes(c->form->a));
    o->b_stride = round_up(s->k * s->n * gemm_element_bytes(c->form->b));
    o->c_stride = round_up(s->m * s->n * gemm_element_bytes(c->form->c));
}

uint64_t gpu_operands_sets(const struct gpu_operands_config *config, uint64_t l2_bytes,
                           uint64_t room, uint64_t *set_bytes)
{
    struct gpu_operands o;

    set_strides(&o, config);
    uint64_t one = o.a_stride + o.b_stride + o.c_stride;
    uint64_t want = 1 + (GPU_OPERANDS_CACHES * l2_bytes + one - 1) / one, fit = room / one;
    *set_bytes = one;
    return want < fit ? want : fit;
}

static int fill(struct gpu_operands *o, void *at, uint64_t bytes, enum gemm_element type,
                uint64_t seed)
{
    const struct gpu_ops *ops = gpu_ops(o->gpu);
    enum gpu_value value = gpu_value_of_element(type);
    const struct gpu_fill_args args = {.dst = at,
                                       .count = bytes / gpu_value_bytes(value),
                                       .seed = gpu_hash(o->config.seed, seed),
                                       .type = value,
                                       .kind = o->config.data};
    uint64_t blocks = (args.count + FILL_BLOCK - 1) / FILL_BLOCK;
    uint64_t most = (uint64_t)FILL_BLOCKS * (gpu_base(o->gpu)->facts.sms + 1);
    struct gpu_kernel *kernel;
    int err = ops->kernel(o->gpu, "fill", &kernel);

    return err ? err
               : ops->launch(o->stream, kernel, (unsigned)(blocks < most ? blocks : most),
                             FILL_BLOCK, &args);
}

/* Fills every C with what no product gives (NaN; INT32_MIN): an entry that is not written is
 * found. */
static int gpu_operands_poison(struct gpu_operands *o)
{
    uint32_t word = o->config.form->c == GEMM_EL_S32 ? 0x80000000u : 0xffffffffu;

    return gpu_ops(o->gpu)->set(o->stream, o->c, word, o->c_stride * o->sets);
}

int gpu_operands_open(struct gpu_operands *o, struct gpu *gpu, struct gpu_stream *stream,
                      const struct gpu_operands_config *config, uint64_t sets)
{
    const struct gpu_ops *ops = gpu_ops(gpu);
    int err;

    *o = (struct gpu_operands){.config = *config, .gpu = gpu, .stream = stream, .sets = sets};
    set_strides(o, config);
    if ((err = ops->alloc(gpu, GPU_DEVICE, o->a_stride * sets, &o->a)) ||
        (err = ops->alloc(gpu, GPU_DEVICE, o->b_stride * sets, &o->b)) ||
        (err = ops->alloc(gpu, GPU_DEVICE, o->c_stride * sets, &o->c)) ||
        (err = fill(o, o->a, o->a_stride * sets, config->form->a, SEED_OF_A)) ||
        (err = fill(o, o->b, o->b_stride * sets, config->form->b, SEED_OF_B)) ||
        (err = gpu_operands_poison(o)))
        return err;
    return ops->stream_wait(stream);
}

void gpu_operands_close(struct gpu_operands *o)
{
    void *all[] = {o->a, o->b, o->c};

    for (int i = 0; o->gpu && i < 3; i++)
        if (all[i])
            gpu_ops(o->gpu)->free(o->gpu, GPU_DEVICE, all[i]);
    free(o->rows);
    *o = (struct gpu_operands){0};
}

static uint64_t gpu_operands_bytes(const struct gpu_operands *o)
{
    return (o->a_stride + o->b_stride + o->c_stride) * o->sets;
}

/* Element i of an operand in the set that is checked. */
static double value(const struct gpu_operands *o, enum gemm_element type, uint64_t stride,
                    uint64_t seed, uint64_t i)
{
    enum gpu_value v = gpu_value_of_element(type);
    uint64_t at = o->checked_set * (stride / gpu_value_bytes(v)) + i;

    return gpu_value_of_bits(v,
                             gpu_value_bits(v, o->config.data, gpu_hash(o->config.seed, seed), at));
}

static void a_row(const void *arg, size_t row, double *out)
{
    const struct gpu_operands *o = arg;
    uint64_t k = o->config.shape.k;

    for (uint64_t l = 0; l < k; l++)
        out[l] = value(o, o->config.form->a, o->a_stride, SEED_OF_A, row * k + l);
}

static void b_column(const void *arg, size_t column, double *out)
{
    const struct gpu_operands *o = arg;
    uint64_t k = o->config.shape.k, n = o->config.shape.n;

    for (uint64_t l = 0; l < k; l++)
        out[l] = value(o, o->config.form->b, o->b_stride, SEED_OF_B,
                       o->config.b_is_nk ? column * k + l : l * n + column);
}

static double c_at(const void *arg, size_t row, size_t column)
{
    const struct gpu_operands *o = arg;
    size_t i = 0;

    while (i < o->n_rows && o->row[i] != row)
        i++;
    return i == o->n_rows
               ? (double)NAN
               : gemm_element_at(o->config.form->c, o->rows, i * o->config.shape.n + column);
}

static int copy_rows(struct gpu_operands *o)
{
    size_t bytes = o->config.shape.n * gemm_element_bytes(o->config.form->c);
    const char *c = gpu_operands_c(o, o->checked_set);
    int err = 0;

    free(o->rows);
    o->rows = malloc(o->n_rows * bytes);
    if (!o->rows)
        return -ENOMEM;
    for (size_t i = 0; !err && i < o->n_rows; i++)
        err = gpu_ops(o->gpu)->copy(o->stream, o->rows + i * bytes, c + o->row[i] * bytes, bytes);
    return err ? err : gpu_ops(o->gpu)->stream_wait(o->stream);
}

static int fetch_rows(void *arg, const size_t *rows, size_t n)
{
    struct gpu_operands *o = arg;

    memcpy(o->row, rows, n * sizeof(*rows));
    o->n_rows = n;
    int err = copy_rows(o);
    if (!err && o->spoil) /* the high bits of C[0][0], which every check looks at */
        o->rows[gemm_element_bytes(o->config.form->c) - 1] ^= 0x40;
    return err;
}

int gpu_operands_check(struct gpu_operands *o, uint64_t set, bool spoil, struct gemm_check *out)
{
    const struct gemm_source source = {.shape = o->config.shape,
                                       .rounding = o->config.form->rounding,
                                       .a_row = a_row,
                                       .b_column = b_column,
                                       .c_at = c_at,
                                       .fetch = fetch_rows,
                                       .arg = o};

    o->checked_set = set;
    o->spoil = spoil;
    return gemm_check_source(&source, o->config.seed, out);
}

/* ---- What products on a GPU are made of ---- */

/* Sums on matrix units: f32's roundoff also where they cut, see gemm_error_bound(). 8-bit floating
 * sums on Hopper have 14 bits; fast: for the whole product, else until they go over to f32, a few
 * hundred terms at most. */
#define FP8_SUM 0x1p-13
#define FP8_RUN 512

/* TYPE by the kind of sums SUMS: entries ENTRIES, computed as COMPUTE; then how it is rounded. */
#define FORM(TYPE, SUMS, ENTRIES, LAYOUT, COMPUTE, ...)                                            \
    {                                                                                              \
        .dtype = GEMM_##TYPE, .sums = GEMM_SUMS_##SUMS, GEMM_ENTRIES ENTRIES,                      \
        .layout = GEMM_##LAYOUT, .compute = GPU_GEMM_##COMPUTE, .rounding = {                      \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define FP8_SUMS .sum = FP8_SUM, .narrow = true, .c = 0x1p-8

const struct gemm_form gemm_gpu_forms[] = {
    FORM(F64, DEFAULT, (F64, F64, F64, "f64"), NN, F64, .sum = 0x1p-53),
    FORM(F32, F32, (F32, F32, F32, "f32"), NN, F32, .sum = 0x1p-24),
    FORM(TF32, F32, (F32, F32, F32, "f32"), NN, TF32, .sum = 0x1p-24, .input = 0x1p-10),
    FORM(F16, F32, (F16, F16, F16, "f32"), NN, F32_SUM, .sum = 0x1p-24, .c = 0x1p-11),
    FORM(F16, F16, (F16, F16, F16, "f16"), NN, F16_SUM, .sum = 0x1p-11, .narrow = true,
         .c = 0x1p-11),
    FORM(BF16, F32, (BF16, BF16, BF16, "f32"), NN, F32_SUM, .sum = 0x1p-24, .c = 0x1p-8),
    FORM(E4M3, FAST, (E4M3, E4M3, BF16, "f32 fast"), NT, F32_FAST, FP8_SUMS),
    FORM(E4M3, F32, (E4M3, E4M3, BF16, "f32"), NT, F32_SUM, FP8_SUMS, .run = FP8_RUN),
    /* No library multiplies two e5m2. */
    FORM(E5M2, FAST, (E5M2, E4M3, BF16, "f32 fast"), NT, F32_FAST, FP8_SUMS),
    FORM(E5M2, F32, (E5M2, E4M3, BF16, "f32"), NT, F32_SUM, FP8_SUMS, .run = FP8_RUN),
    {.dtype = GEMM_INT8,
     GEMM_ENTRIES(S8, S8, S32, "s32"),
     .layout = GEMM_NT,
     .k_max = 133144, /* 127 * 127 * k < 2^31 */
     .compute = GPU_GEMM_S32_SUM},
    {.accumulate = NULL},
};

/*
 * ---- Matrix products on a GPU by its module's library (cuBLASLt): operands in its memory, its own
 * events for a clock. Two libraries by name: what the library's heuristics choose, which is what a
 * user gets, and the fastest of all that they answer. ----
 */

#define CANDIDATES       32         /* of the heuristics' answers */
#define CONTEST_NS       2000000000 /* for choosing among them */
#define CONTEST_BRIEF_NS 100000000
#define CONTEST_EACH_NS  2000000.0 /* of one time at least, but for long products */
#define CONTEST_MOST     64        /* products in it */
#define ROOM_SHARE       0.9       /* of free memory: the driver keeps some for itself */
#define KERNELS_EACH     3         /* of a product: split sums add a fill and a reduction */

struct gpu_run {
    struct gemm_run base;
    struct gpu *gpu;
    struct gpu_gemm *gemm;
    struct gpu_timer timer;
    struct gpu_operands operands;
    bool planned;
    unsigned candidate, tried, answers;
    double gap;           /* of the contest */
    const unsigned *ways; /* candidates of the contest by its numbers; NULL: the same */
    bool decided;         /* `candidate` is the outcome of a whole contest, here or earlier */
    bool kept;            /* ... earlier */
    uint64_t products;    /* so far: number i takes set i mod sets */
};

static int gpu_failed(const struct gpu_run *r, int err)
{
    return point_gpu_failed(r->base.pt, r->gpu, err);
}

static const struct gpu_gemm_ops *gemm_ops(const struct gpu_run *r)
{
    return gpu_ops(r->gpu)->gemm;
}

static int open_library(struct gpu_run *r)
{
    struct point *pt = r->base.pt;

    if (!gemm_ops(r))
        return point_reason(pt, -ENODEV,
                            "the GPU module has no library for matrix products: build it where "
                            "cublasLt.h is");
    int err = gemm_ops(r)->open(r->gpu, &r->gemm);
    if (err)
        return gpu_failed(r, err);
    if (!strcmp(gpu_ops(r->gpu)->origin(),
                "simulated")) /* this library may be, where the driver is not */
        pt->origin = "simulated";
    point_column(pt, "kernel", "%s", gemm_ops(r)->version(r->gemm));
    err = gpu_timer_open(&r->timer, r->gpu, pt->watch);
    return err ? gpu_failed(r, err) : 0;
}

static int gpu_open(struct point *pt, const struct gemm_request *request, struct gemm_run **run)
{
    struct gpu_run *r = calloc(1, sizeof(*r));

    *run = r ? &r->base : NULL;
    if (!r)
        return -ENOMEM;
    r->base = (struct gemm_run){.pt = pt, .request = *request};
    int err = point_gpu(pt, request->index, &r->gpu);
    if (err)
        return err;
    point_option(pt, "device", "%s:%u", gpu_ops(r->gpu)->name, request->index);
    point_column(pt, "address", "%s", gpu_base(r->gpu)->facts.address);
    return open_library(r);
}

static void gpu_end(struct gemm_run *run)
{
    struct gpu_run *r = (struct gpu_run *)run;

    if (r->planned)
        gemm_ops(r)->unplan(r->gemm);
    r->planned = false;
    gpu_operands_close(&r->operands);
}

static void gpu_close(struct gemm_run *run)
{
    struct gpu_run *r = (struct gpu_run *)run;

    if (r->gpu)
        gpu_timer_close(&r->timer);
    if (r->gemm)
        gemm_ops(r)->close(r->gemm);
    free(r);
}

/* Room for at least one set of operands, said before anything is allocated. */
static int open_operands(struct gpu_run *r)
{
    const struct gemm_request *q = &r->base.request;
    struct point *pt = r->base.pt;
    const struct gpu_operands_config config = {.form = q->form,
                                               .shape = r->base.shape,
                                               .b_is_nk = q->b_is_nk,
                                               .data = q->data,
                                               .seed = pt->common->seed};
    uint64_t free_bytes = 0, set_bytes, l2_bytes = gpu_base(r->gpu)->facts.l2_bytes;
    int err = gpu_ops(r->gpu)->free_bytes(r->gpu, &free_bytes);

    if (err)
        return gpu_failed(r, err);
    uint64_t sets = gpu_operands_sets(&config, l2_bytes,
                                      (uint64_t)(ROOM_SHARE * (double)free_bytes), &set_bytes);
    if (!sets)
        return point_reason(pt, -EOPNOTSUPP,
                            "needs %.2f GB of GPU memory; %.2f GB are free, of which %.0f %% are "
                            "taken at most",
                            (double)set_bytes * 1e-9, (double)free_bytes * 1e-9, 100 * ROOM_SHARE);
    err = gpu_operands_open(&r->operands, r->gpu, r->timer.stream, &config, sets);
    return err ? gpu_failed(r, err) : 0;
}

/* Too small a memory for operands that L2 cannot hold: the row must not pass for a usual one. */
static void remark_cached(const struct gpu_run *r)
{
    uint64_t bytes = gpu_operands_bytes(&r->operands), l2 = gpu_base(r->gpu)->facts.l2_bytes;

    if (bytes - bytes / r->operands.sets < GPU_OPERANDS_CACHES * l2)
        point_reason(r->base.pt, 0,
                     "only %llu sets of operands fit into the memory: L2 may hold part of them",
                     (unsigned long long)r->operands.sets);
}

static int queue_product(void *arg, struct gpu_stream *stream, uint64_t i)
{
    struct gpu_run *r = arg;
    const struct gpu_operands *o = &r->operands;
    uint64_t set = (r->products + i) % o->sets;

    return gemm_ops(r)->run(r->gemm, r->candidate, stream, gpu_operands_a(o, set),
                            gpu_operands_b(o, set), gpu_operands_c(o, set));
}

static int gpu_sample(struct gemm_run *run, uint64_t inner, uint64_t *ns)
{
    struct gpu_run *r = (struct gpu_run *)run;
    int err = gpu_timer_run(&r->timer, queue_product, r, inner, KERNELS_EACH, ns);

    r->products += inner;
    return err ? gpu_failed(r, err) : 0;
}

/* Once without a held stream: drivers load a kernel when it is first used, and wait for the device
 * to do so, which a held stream would keep from ever being idle. */
static int run_loose(struct gpu_run *r)
{
    int err = queue_product(r, r->timer.stream, 0);

    r->products++;
    return err ? err : gpu_ops(r->gpu)->stream_wait(r->timer.stream);
}

/* A run of the contest: the time of one product. */
static int time_candidate(void *arg, unsigned i, uint64_t passes, struct search_run *run)
{
    struct gpu_run *r = arg;
    uint64_t all_ns = 0, n = 1;

    (void)passes;
    r->candidate = r->ways ? r->ways[i] : i;
    int err = run_loose(r);
    if (err && err != -ENOMEM && !gpu_base(r->gpu)->lost)
        return -EOPNOTSUPP; /* an answer of the heuristics that does not run: the others may */
    if (!err)
        err = gpu_timer_run(&r->timer, queue_product, r, 1, KERNELS_EACH, &all_ns);
    if (err)
        return err;
    double fit = CONTEST_EACH_NS / (double)all_ns;
    if (fit > 1) { /* too short to tell */
        n = fit > CONTEST_MOST ? CONTEST_MOST : (uint64_t)fit + 1;
        err = gpu_timer_run(&r->timer, queue_product, r, n, KERNELS_EACH, &all_ns);
    }
    r->products += n;
    *run = (struct search_run){.cost = (double)all_ns / (double)n, .ns = all_ns};
    return err;
}

static int hold_contest(struct gpu_run *r, unsigned n, bool brief, struct search_result *result)
{
    const struct search contest = {.policy = &search_contest,
                                   .n = n,
                                   .run = time_candidate,
                                   .arg = r,
                                   .budget_ns = brief ? CONTEST_BRIEF_NS : CONTEST_NS};
    int err = search_run(&contest, result);

    return err ? gpu_failed(r, err) : 0;
}

/* What a choice depends on beside device and driver. */
static const char *problem_text(const struct gpu_run *r, char *text, size_t len)
{
    const struct gemm_request *q = &r->base.request;
    const struct gemm_shape *s = &r->base.shape;

    snprintf(text, len, "%s, %llu bytes: %d %s %d %d, %llu x %llu x %llu",
             gemm_ops(r)->version(r->gemm),
             (unsigned long long)gemm_ops(r)->workspace_bytes(r->gemm), (int)q->form->dtype,
             q->form->accumulate, q->b_is_nk, (int)q->data, (unsigned long long)s->m,
             (unsigned long long)s->n, (unsigned long long)s->k);
    return text;
}

static const char *candidate_text(const struct gpu_run *r, unsigned i, char text[20])
{
    snprintf(text, 20, "%016llx", (unsigned long long)gemm_ops(r)->identity(r->gemm, i));
    return text;
}

/* The candidate that an earlier launch chose for the same product on the same device; n: none. */
static unsigned find_kept(const struct gpu_run *r, unsigned n)
{
    char problem[160], what[GPU_CHOICE_BYTES], one[20];
    unsigned i = 0;

    if (!gpu_choice_read(r->gpu, problem_text(r, problem, sizeof(problem)),
                         r->base.request.algorithm, what))
        return n;
    while (i < n && strcmp(candidate_text(r, i, one), what) != 0)
        i++;
    return i;
}

/* Takes what an earlier launch chose, if it is no slower here than the heuristics' choice. Leaves
 * r->decided false if there is no such choice. */
static int take_kept(struct gpu_run *r, unsigned n)
{
    unsigned kept = find_kept(r, n), ways[] = {0, kept};
    struct search_result result = {.best = 1};
    int err = 0;

    if (!strcmp(r->base.request.algorithm, GPU_CHOICE_AUTO))
        return 0;
    if (kept == n)
        return point_reason(r->base.pt, 0,
                            "the algorithm of an earlier launch is for another device, driver, "
                            "library or product: searched again");
    r->ways = ways;
    if (kept)
        err = hold_contest(r, 2, false, &result);
    r->ways = NULL;
    if (!err && !result.best && result.tried < 2 && !result.refused) /* no time to compare them */
        result = (struct search_result){.best = 1, .gap = NAN};
    if (err || !result.best)
        return err ? err
                   : point_reason(r->base.pt, 0,
                                  "the algorithm of an earlier launch is not faster here than the "
                                  "heuristics' choice: searched again");
    r->candidate = kept;
    r->gap = kept ? result.gap : 0;
    r->kept = r->decided = true;
    if (!kept && (err = run_loose(r)))
        gpu_failed(r, err);
    return err;
}

static int choose_candidate(struct gpu_run *r, unsigned n, bool brief)
{
    struct search_result result;
    int err = brief ? 0 : take_kept(r, n);

    if (err || r->decided)
        return err;
    err = hold_contest(r, n, brief, &result);
    if (err)
        return err;
    r->candidate = result.best;
    r->tried = result.tried;
    r->gap = result.gap;
    r->decided = result.stop == SEARCH_DECIDED && result.steady;
    return 0;
}

static int plan(struct gpu_run *r, unsigned *n)
{
    const struct gemm_request *q = &r->base.request;
    const struct gemm_form *f = q->form;
    static const enum gpu_gemm_c c[] = {[GEMM_EL_F64] = GPU_GEMM_C_F64,
                                        [GEMM_EL_F32] = GPU_GEMM_C_F32,
                                        [GEMM_EL_F16] = GPU_GEMM_C_F16,
                                        [GEMM_EL_BF16] = GPU_GEMM_C_BF16,
                                        [GEMM_EL_S32] = GPU_GEMM_C_S32};
    const struct gpu_gemm_problem problem = {.a = gpu_value_of_element(f->a),
                                             .b = gpu_value_of_element(f->b),
                                             .c = c[f->c],
                                             .compute = (enum gpu_gemm_compute)f->compute,
                                             .b_is_nk = q->b_is_nk,
                                             .m = r->base.shape.m,
                                             .n = r->base.shape.n,
                                             .k = r->base.shape.k};

    r->planned = true;
    int err = gemm_ops(r)->plan(r->gemm, &problem, q->library->candidates, n);
    return err ? gpu_failed(r, err) : 0;
}

/* What is left in C by others than the choice is not its result. */
static int forget_results(struct gpu_run *r)
{
    int err = gpu_operands_poison(&r->operands);

    if (!err)
        err = gpu_ops(r->gpu)->stream_wait(r->timer.stream);
    return err ? gpu_failed(r, err) : 0;
}

/* For later launches of the case, unless the contest was cut short or disturbed. */
static void show_choice(const struct gpu_run *r)
{
    char problem[160], what[20], text[GPU_CHOICE_BYTES];

    if (!r->decided)
        return;
    gpu_choice_print(r->gpu, problem_text(r, problem, sizeof(problem)),
                     candidate_text(r, r->candidate, what), text);
    /* What was searched for again is not by the earlier choice, though it came to the same. */
    if (r->kept || strcmp(text, r->base.request.algorithm) != 0)
        point_column(r->base.pt, "algorithm", "%s", text);
}

static void show_gap(const struct gpu_run *r)
{
    struct point *pt = r->base.pt;
    char choice[160], first[160], of[48];

    if (!isnan(r->gap))
        point_column(pt, "gap_percent", "%.2f", 100 * r->gap);
    if (r->kept) /* the launch that chose has said how */
        return;
    point_column(pt, "candidates", "%u", r->tried);
    if (r->tried == r->answers)
        snprintf(of, sizeof(of), "the best of %u", r->tried);
    else
        snprintf(of, sizeof(of), "the best of the %u of %u that ran in time", r->tried, r->answers);
    if (isnan(r->gap))
        point_reason(pt, 0, "%s: the heuristics' choice itself does not run", of);
    else if (r->candidate)
        point_reason(pt, 0, "%s, %.2g %% over the heuristics' choice: %s, not %s", of, 100 * r->gap,
                     gemm_ops(r)->describe(r->gemm, r->candidate, choice, sizeof(choice)),
                     gemm_ops(r)->describe(r->gemm, 0, first, sizeof(first)));
    else
        point_reason(pt, 0, "the heuristics' choice is %s", of);
}

static int gpu_begin(struct gemm_run *run, const struct gemm_shape *shape, bool brief)
{
    struct gpu_run *r = (struct gpu_run *)run;
    unsigned n = 0;
    int err;

    run->shape = *shape;
    r->candidate = 0;
    if ((err = plan(r, &n)) || (err = open_operands(r)))
        return err;
    r->answers = n;
    r->tried = 1;
    r->gap = 0;
    r->kept = r->decided = false;
    if (n > 1)
        err = choose_candidate(r, n, brief);
    else if ((err = run_loose(r)))
        gpu_failed(r, err);
    if (err)
        return err;
    remark_cached(r);
    if (run->request.library->candidates > 1 && !brief) {
        show_gap(r);
        show_choice(r);
    }
    r->products = 0;
    return forget_results(r);
}

static int gpu_check(struct gemm_run *run, bool spoil, struct gemm_check *out)
{
    struct gpu_run *r = (struct gpu_run *)run;
    uint64_t last = (r->products - 1) % r->operands.sets;
    int err = gpu_operands_check(&r->operands, last, spoil, out);

    return err && err != -EBADMSG && err != -ENOMEM ? gpu_failed(r, err) : err;
}

static int gpu_evidence(struct gemm_run *run)
{
    struct gpu_run *r = (struct gpu_run *)run;
    struct point *pt = run->pt;
    const struct gpu_facts *facts = &gpu_base(r->gpu)->facts;
    char text[160];

    snprintf(pt->evidence, sizeof(pt->evidence),
             "%s at %s: %llu products on %llu sets of operands, %.3g GB; L2 holds %.3g MB; %s",
             facts->name, facts->address, (unsigned long long)r->products,
             (unsigned long long)r->operands.sets, (double)gpu_operands_bytes(&r->operands) * 1e-9,
             (double)facts->l2_bytes * 1e-6,
             gemm_ops(r)->describe(r->gemm, r->candidate, text, sizeof(text)));
    if (*gpu_timer_disagreement(&r->timer, text, sizeof(text)))
        point_reason(pt, 0, "%s", text);
    return 0;
}

static unsigned gpu_units(const struct gemm_run *run)
{
    return gpu_base(((const struct gpu_run *)run)->gpu)->facts.sms;
}

/* The library as the first GPU has it; `text` is for its words. */
static struct backend library_backend(struct gpus *gpus, char text[GPU_ERROR_BYTES])
{
    struct backend b = {.why = "out of memory"};
    const struct gpu_ops *ops = gpus ? gpus_module(gpus, &b.why) : NULL;
    struct gpu_gemm *gemm = NULL;
    struct gpu *gpu;

    if (!ops)
        return b;
    b.why = text;
    b.simulated = !strcmp(ops->origin(), "simulated");
    snprintf(text, GPU_ERROR_BYTES, "there is no GPU");
    if (!ops->gemm) {
        b.why = "the GPU module was built without cublasLt.h";
    } else if (!gpus_get(gpus, 0, &gpu, text, GPU_ERROR_BYTES)) {
        bool opens = !ops->gemm->open(gpu, &gemm);
        snprintf(text, GPU_ERROR_BYTES, "%s", opens ? ops->gemm->version(gemm) : gpu_error(gpu));
        b.state = opens ? BACKEND_PRESENT : BACKEND_ABSENT;
        b.version = opens ? text : NULL;
        b.why = opens ? NULL : text;
    }
    if (gemm)
        ops->gemm->close(gemm);
    return b;
}

static void gpu_backends(backend_say_fn *say, void *arg)
{
    struct gpus *gpus = gpus_open();
    char text[GPU_ERROR_BYTES];
    struct backend library = library_backend(gpus, text);

    for (const struct gemm_library *const *at = gemm_libraries; *at; at++) {
        library.name = (*at)->name;
        if ((*at)->gpu)
            say(arg, &library);
    }
    gpus_say_on(gpus, say, arg);
    gpus_close(gpus);
}

const struct gemm_where gemm_on_gpu = {
    .name = "a GPU",
    .gpu = true,
    .forms = gemm_gpu_forms,
    .transposes = true,
    .open = gpu_open,
    .close = gpu_close,
    .begin = gpu_begin,
    .end = gpu_end,
    .sample = gpu_sample,
    .check = gpu_check,
    .evidence = gpu_evidence,
    .units = gpu_units,
    .backends = gpu_backends,
};

const struct gemm_library gemm_cublaslt = {
    .name = "cublaslt",
    .gpu = true,
    .dtypes = (1u << GEMM_DTYPES) - 1,
    .candidates = 1,
};

const struct gemm_library gemm_cublaslt_best = {
    .name = "cublaslt-best",
    .gpu = true,
    .dtypes = (1u << GEMM_DTYPES) - 1,
    .candidates = CANDIDATES,
};
