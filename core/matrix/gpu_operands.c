/* SPDX-License-Identifier: Apache-2.0 */
/* Operands and forms of products on a GPU: see gpu_operands.h. */
#include "core/matrix/gpu_operands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

int gpu_operands_poison(struct gpu_operands *o)
{
    uint32_t word = o->config.form->c == GEMM_EL_S32 ? 0x80000000u : 0xffffffffu;

    return gpu_ops(o->gpu)->set(o->stream, o->c, word, o->c_stride * o->sets);
}

/* The strides are set. */
static int open_sets(struct gpu_operands *o)
{
    const struct gpu_ops *ops = gpu_ops(o->gpu);
    const struct gemm_form *form = o->config.form;
    int err;

    if ((err = ops->alloc(o->gpu, GPU_DEVICE, o->a_stride * o->sets, &o->a)) ||
        (err = ops->alloc(o->gpu, GPU_DEVICE, o->b_stride * o->sets, &o->b)) ||
        (err = ops->alloc(o->gpu, GPU_DEVICE, o->c_stride * o->sets, &o->c)) ||
        (err = fill(o, o->a, o->a_stride * o->sets, form->a, SEED_OF_A)) ||
        (err = fill(o, o->b, o->b_stride * o->sets, form->b, SEED_OF_B)) ||
        (err = gpu_operands_poison(o)))
        return err;
    return ops->stream_wait(o->stream);
}

int gpu_operands_open(struct gpu_operands *o, struct gpu *gpu, struct gpu_stream *stream,
                      const struct gpu_operands_config *config, uint64_t sets)
{
    *o = (struct gpu_operands){.config = *config, .gpu = gpu, .stream = stream, .sets = sets};
    set_strides(o, config);
    return open_sets(o);
}

static void set_shared_strides(struct gpu_operands *o, const struct gemm_form *form,
                               const struct gemm_shape *shapes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct gpu_operands_config one = {.form = form, .shape = shapes[i]};
        struct gpu_operands s = {0};
        set_strides(&s, &one);
        o->a_stride = s.a_stride > o->a_stride ? s.a_stride : o->a_stride;
        o->b_stride = s.b_stride > o->b_stride ? s.b_stride : o->b_stride;
        o->c_stride = s.c_stride > o->c_stride ? s.c_stride : o->c_stride;
    }
}

uint64_t gpu_operands_shared_bytes(const struct gemm_form *form, const struct gemm_shape *shapes,
                                   size_t n)
{
    struct gpu_operands o = {.sets = 1};

    set_shared_strides(&o, form, shapes, n);
    return gpu_operands_bytes(&o);
}

int gpu_operands_share(struct gpu_operands *o, struct gpu *gpu, struct gpu_stream *stream,
                       const struct gpu_operands_config *config, const struct gemm_shape *shapes,
                       size_t n)
{
    *o = (struct gpu_operands){.config = *config, .gpu = gpu, .stream = stream, .sets = 1};
    set_shared_strides(o, config->form, shapes, n);
    return open_sets(o);
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

uint64_t gpu_operands_bytes(const struct gpu_operands *o)
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

struct gpu_gemm_problem gpu_operands_problem(const struct gemm_form *form,
                                             const struct gemm_shape *shape, bool b_is_nk)
{
    static const enum gpu_gemm_c c[] = {[GEMM_EL_F64] = GPU_GEMM_C_F64,
                                        [GEMM_EL_F32] = GPU_GEMM_C_F32,
                                        [GEMM_EL_F16] = GPU_GEMM_C_F16,
                                        [GEMM_EL_BF16] = GPU_GEMM_C_BF16,
                                        [GEMM_EL_S32] = GPU_GEMM_C_S32};

    return (struct gpu_gemm_problem){.a = gpu_value_of_element(form->a),
                                     .b = gpu_value_of_element(form->b),
                                     .c = c[form->c],
                                     .compute = (enum gpu_gemm_compute)form->compute,
                                     .b_is_nk = b_is_nk,
                                     .m = shape->m,
                                     .n = shape->n,
                                     .k = shape->k};
}
