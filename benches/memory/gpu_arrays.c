/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in a GPU's memory: see memory_work.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "benches/memory/memory_work.h"

#define STAGING_BYTES ((uint64_t)1 << 20)
#define WINDOWS       (GPU_ARRAYS_CHECKED / STAGING_BYTES)
#define PERIOD_MIN    ((uint64_t)64 << 20)
#define FILL_BLOCK    256u
#define FILL_PER_SM   8u
#define POISON        0xffffffffu /* not a number, in either type */

enum { SEED_A = 1, SEED_B = 2 };

uint64_t gpu_arrays_bytes(enum kernel_op op, uint64_t size)
{
    return size / kernel_arrays(op) / GPU_ARRAYS_LINE * GPU_ARRAYS_LINE;
}

static uint64_t seed_of(const struct gpu_arrays *x, unsigned which)
{
    return 2 * x->seed + which;
}

static int fill(struct gpu_arrays *x, char *at, unsigned which)
{
    uint64_t step = x->period ? x->period : x->bytes;
    struct gpu_kernel *kernel;
    int err = gpu_ops(x->gpu)->kernel(x->gpu, "fill", &kernel);

    for (uint64_t done = 0; !err && done < x->bytes; done += step) {
        uint64_t bytes = x->bytes - done < step ? x->bytes - done : step;
        struct gpu_fill_args args = {.dst = at + done,
                                     .count = bytes / gpu_value_bytes(x->type),
                                     .seed = seed_of(x, which),
                                     .type = x->type,
                                     .kind = GPU_RANDOM};
        err = gpu_ops(x->gpu)->launch(x->stream, kernel, gpu_base(x->gpu)->facts.sms * FILL_PER_SM,
                                      FILL_BLOCK, &args);
    }
    return err;
}

static int take(struct gpu_arrays *x)
{
    const struct gpu_ops *ops = gpu_ops(x->gpu);
    unsigned sources = kernel_arrays(x->op) - (kernel_stores(x->op) ? 1 : 0);
    int err = 0;

    if (kernel_stores(x->op))
        err = ops->alloc(x->gpu, GPU_DEVICE, x->bytes, &x->dst);
    if (!err && sources > 0)
        err = ops->alloc(x->gpu, GPU_DEVICE, x->bytes, &x->a);
    if (!err && sources > 1)
        err = ops->alloc(x->gpu, GPU_DEVICE, x->bytes, &x->b);
    if (!err)
        err = ops->alloc(x->gpu, GPU_DEVICE, sizeof(*x->sum), (void **)&x->sum);
    if (!err)
        err = ops->alloc(x->gpu, GPU_PINNED, STAGING_BYTES, &x->staging);
    return err;
}

static uint64_t period(const struct gpu_arrays *x)
{
    uint64_t bytes = PERIOD_MIN;

    while (bytes < 4 * gpu_base(x->gpu)->facts.l2_bytes)
        bytes *= 2;
    return bytes;
}

int gpu_arrays_open(struct gpu_arrays *x, struct gpu *gpu, struct gpu_stream *stream,
                    enum kernel_op op, enum kernel_type type, uint64_t size, uint64_t seed)
{
    *x = (struct gpu_arrays){.gpu = gpu,
                             .stream = stream,
                             .op = op,
                             .type = type == KERNEL_F32 ? GPU_F32 : GPU_F64,
                             .bytes = gpu_arrays_bytes(op, size),
                             .seed = seed};
    if (!kernel_stores(op))
        x->period = period(x);
    int err = take(x);
    if (!err && x->a)
        err = fill(x, x->a, SEED_A);
    if (!err && x->b)
        err = fill(x, x->b, SEED_B);
    if (!err)
        err = gpu_arrays_clear_sum(x);
    if (!err)
        err = gpu_arrays_poison(x);
    if (err)
        gpu_arrays_close(x);
    return err;
}

void gpu_arrays_close(struct gpu_arrays *x)
{
    if (!x->gpu)
        return;
    const struct gpu_ops *ops = gpu_ops(x->gpu);
    ops->free(x->gpu, GPU_PINNED, x->staging);
    ops->free(x->gpu, GPU_DEVICE, x->sum);
    ops->free(x->gpu, GPU_DEVICE, x->b);
    ops->free(x->gpu, GPU_DEVICE, x->a);
    ops->free(x->gpu, GPU_DEVICE, x->dst);
    *x = (struct gpu_arrays){0};
}

int gpu_arrays_poison(struct gpu_arrays *x)
{
    int err = x->dst ? gpu_ops(x->gpu)->set(x->stream, x->dst, POISON, x->bytes) : 0;

    return err ? err : gpu_ops(x->gpu)->stream_wait(x->stream);
}

static double source(const struct gpu_arrays *x, unsigned which, uint64_t i)
{
    return gpu_value_of_bits(x->type, gpu_value_bits(x->type, GPU_RANDOM, seed_of(x, which), i));
}

/* Rounded once, as the kernels do: f64 by fma(); an f32 result is exact in double (numbers between
 * 2^-6 and 1 with 24 bits, a scalar of 3 bits) and rounded when it becomes a float. */
static double expected(const struct gpu_arrays *x, double scalar, uint64_t i)
{
    switch (x->op) {
    case KERNEL_WRITE:
        return scalar;
    case KERNEL_COPY:
        return source(x, SEED_A, i);
    case KERNEL_SCALE:
        return scalar * source(x, SEED_A, i);
    case KERNEL_ADD:
        return source(x, SEED_A, i) + source(x, SEED_B, i);
    default:
        return fma(scalar, source(x, SEED_B, i), source(x, SEED_A, i));
    }
}

/* Are the n entries at `at`, of which the first is number `first`, right? Returns how many are, up
 * to the first that is not. */
static uint64_t right_entries(const struct gpu_arrays *x, const void *at, uint64_t first,
                              uint64_t n, double scalar)
{
    for (uint64_t i = 0; i < n; i++) {
        double want = expected(x, scalar, first + i);
        bool same = x->type == GPU_F32 ? ((const float *)at)[i] == (float)want
                                       : ((const double *)at)[i] == want;
        if (!same)
            return i;
    }
    return n;
}

static int check_window(struct gpu_arrays *x, uint64_t begin, uint64_t bytes, double scalar,
                        char *error, size_t len)
{
    const struct gpu_ops *ops = gpu_ops(x->gpu);
    unsigned each = gpu_value_bytes(x->type);
    uint64_t first = begin / each, n = bytes / each;
    int err = ops->copy(x->stream, x->staging, (char *)x->dst + begin, bytes);

    err = err ? err : ops->stream_wait(x->stream);
    if (err)
        return err;
    uint64_t right = right_entries(x, x->staging, first, n, scalar);
    if (right == n)
        return 0;
    double got = x->type == GPU_F32 ? ((const float *)x->staging)[right]
                                    : ((const double *)x->staging)[right];
    snprintf(error, len, "wrong data: entry %" PRIu64 " is %.9g, not %.9g", first + right, got,
             expected(x, scalar, first + right));
    return -EBADMSG;
}

int gpu_arrays_check(struct gpu_arrays *x, double scalar, char *error, size_t len)
{
    bool all = x->bytes <= GPU_ARRAYS_CHECKED;
    uint64_t n = all ? (x->bytes + STAGING_BYTES - 1) / STAGING_BYTES : WINDOWS;
    int err = 0;

    for (uint64_t i = 0; !err && i < n; i++) {
        uint64_t begin =
            all ? i * STAGING_BYTES
                : (x->bytes - STAGING_BYTES) / GPU_ARRAYS_LINE * i / (n - 1) * GPU_ARRAYS_LINE;
        uint64_t rest = x->bytes - begin;
        err =
            check_window(x, begin, rest < STAGING_BYTES ? rest : STAGING_BYTES, scalar, error, len);
    }
    return err;
}

uint64_t gpu_arrays_looked_at(const struct gpu_arrays *x)
{
    return x->bytes < GPU_ARRAYS_CHECKED ? x->bytes : GPU_ARRAYS_CHECKED;
}

/* Of the first `bytes` of a period. */
static uint64_t sum_words(const struct gpu_arrays *x, uint64_t bytes)
{
    uint64_t sum = 0, n = bytes / gpu_value_bytes(x->type);

    for (uint64_t i = 0; i < n; i++) {
        uint64_t bits = gpu_value_bits(x->type, GPU_RANDOM, seed_of(x, SEED_A), i);
        sum += (uint32_t)bits + (bits >> 32);
    }
    return sum;
}

uint64_t gpu_arrays_sum(const struct gpu_arrays *x)
{
    uint64_t whole = x->bytes / x->period, rest = x->bytes % x->period;

    return (whole ? whole * sum_words(x, x->period) : 0) + (rest ? sum_words(x, rest) : 0);
}

int gpu_arrays_clear_sum(struct gpu_arrays *x)
{
    return gpu_ops(x->gpu)->set(x->stream, x->sum, 0, sizeof(*x->sum));
}

int gpu_arrays_read_sum(struct gpu_arrays *x, uint64_t *sum)
{
    const struct gpu_ops *ops = gpu_ops(x->gpu);
    int err = ops->copy(x->stream, x->staging, x->sum, sizeof(*sum));

    err = err ? err : ops->stream_wait(x->stream);
    if (!err)
        memcpy(sum, x->staging, sizeof(*sum));
    return err;
}

int gpu_arrays_spoil(struct gpu_arrays *x)
{
    char *at = x->dst ? x->dst : x->a;
    int err = gpu_ops(x->gpu)->set(x->stream, at + x->bytes - 4, POISON, 4);

    return err ? err : gpu_ops(x->gpu)->stream_wait(x->stream);
}
