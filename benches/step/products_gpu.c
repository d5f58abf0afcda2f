/* SPDX-License-Identifier: Apache-2.0 */
/* Products on the rank's GPU, by its module's library: see products.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/step/products.h"
#include "core/alloc.h"
#include "core/hw/gpu.h"
#include "core/matrix/gpu_operands.h"

#define SEED        11
#define MEMORY_MOST 0.9          /* of what is free */
#define UPDATE_MOST (1ull << 30) /* of the arrays that an update copies, again and again */

struct device {
    struct gpus *gpus;
    struct gpu *gpu;
    struct gpu_stream *stream;
    const struct gemm_form *form;
    struct gemm_shape *shapes;
    struct gpu_gemm **gemms; /* one for each shape: one has one plan */
    size_t n;
    struct gpu_operands operands;
    void *from, *to; /* of the update */
    uint64_t room, copied;
    char name[96];
};

static int failed(const struct device *d, int err, char *why)
{
    return gemm_why(why, err, "%s", gpu_error(d->gpu));
}

/* The same GPU as the backend's; of a rank that is alone, the first. */
static int find_gpu(struct device *d, const char *address, char *why)
{
    const char *reason;
    char error[GPU_ERROR_BYTES] = "there is no GPU";
    struct gpu_facts facts;
    unsigned i = 0;

    d->gpus = gpus_open();
    const struct gpu_ops *ops = gpus_module(d->gpus, &reason);
    if (!ops)
        return gemm_why(why, -ENODEV, "%s", reason);
    while (i < gpus_count(d->gpus) && *address &&
           (ops->facts(i, &facts) || strcmp(facts.address, address) != 0))
        i++;
    int err = gpus_get(d->gpus, i, &d->gpu, error, sizeof(error));
    if (err)
        return gemm_why(why, err, "%s", error);
    return ops->gemm ? 0
                     : gemm_why(why, -ENODEV,
                                "the GPU module has no library for matrix products: "
                                "build it where cublasLt.h is");
}

static int find_form(struct device *d, enum collective_type type, char *why)
{
    static const struct {
        enum collective_type type;
        enum gemm_dtype dtype;
    } all[] = {{COLLECTIVE_F32, GEMM_F32},
               {COLLECTIVE_F16, GEMM_F16},
               {COLLECTIVE_BF16, GEMM_BF16},
               {COLLECTIVE_F64, GEMM_F64}};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all) && !d->form; i++)
        if (all[i].type == type)
            d->form = gemm_form_find(gemm_gpu_forms, all[i].dtype, GEMM_SUMS_DEFAULT);
    return d->form ? 0
                   : gemm_why(why, -EOPNOTSUPP,
                              "products of %s train no model here: take --dtype f32, f16, bf16 or "
                              "f64",
                              collective_type_names[type]);
}

static int open_operands(struct device *d, const struct products_need *need, char *why)
{
    const struct gpu_operands_config config = {
        .form = d->form, .data = GPU_RANDOM, .seed = SEED, .shape = need->shapes[0]};
    uint64_t free_bytes = 0, bytes = gpu_operands_shared_bytes(d->form, need->shapes, need->n);
    int err = gpu_ops(d->gpu)->free_bytes(d->gpu, &free_bytes);

    if (err)
        return failed(d, err, why);
    if ((double)bytes > MEMORY_MOST * (double)free_bytes)
        return gemm_why(why, -EOPNOTSUPP,
                        "the operands need %.1f GB of GPU memory, %.1f GB are free: give a lower "
                        "--batch",
                        (double)bytes * 1e-9, (double)free_bytes * 1e-9);
    err = gpu_operands_share(&d->operands, d->gpu, d->stream, &config, need->shapes, need->n);
    return err ? failed(d, err, why) : 0;
}

/* A copy reads and writes: half as many bytes move as many. */
static int open_update(struct device *d, const struct products_need *need, char *why)
{
    const struct gpu_ops *ops = gpu_ops(d->gpu);
    int err = 0;

    d->copied =
        (uint64_t)(need->updated *
                   model_update_bytes(need->adam ? UPDATE_ADAM : UPDATE_SGD, sizeof(float)) / 2);
    d->room = d->copied < UPDATE_MOST ? d->copied : UPDATE_MOST;
    if (d->room && (err = ops->alloc(d->gpu, GPU_DEVICE, d->room, &d->from)) == 0)
        err = ops->alloc(d->gpu, GPU_DEVICE, d->room, &d->to);
    return err ? failed(d, err, why) : 0;
}

static int device_open(void **state, const struct products_need *need, char *why)
{
    struct device *d = *state = xcalloc(1, sizeof(*d));
    int err = find_gpu(d, need->gpu, why);

    if (!err)
        err = find_form(d, need->type, why);
    if (err)
        return err;
    d->shapes = xmemdup(need->shapes, need->n * sizeof(*d->shapes));
    d->gemms = xcalloc(need->n, sizeof(struct gpu_gemm *));
    d->n = need->n;
    err = gpu_ops(d->gpu)->stream_open(d->gpu, &d->stream);
    if (err)
        return failed(d, err, why);
    err = open_operands(d, need, why);
    return err ? err : open_update(d, need, why);
}

static void device_close(void *state)
{
    struct device *d = state;

    if (d->gpu) {
        const struct gpu_ops *ops = gpu_ops(d->gpu);
        for (size_t i = 0; i < d->n && d->gemms[i]; i++) {
            ops->gemm->unplan(d->gemms[i]);
            ops->gemm->close(d->gemms[i]);
        }
        gpu_operands_close(&d->operands);
        ops->free(d->gpu, GPU_DEVICE, d->from);
        ops->free(d->gpu, GPU_DEVICE, d->to);
        if (d->stream)
            ops->stream_close(d->stream);
    }
    gpus_close(d->gpus);
    free(d->shapes);
    free(d->gemms);
    free(d);
}

static const char *device_name(void *state)
{
    struct device *d = state;

    snprintf(d->name, sizeof(d->name), "%s",
             d->n && d->gemms[0] ? gpu_ops(d->gpu)->gemm->version(d->gemms[0]) : "");
    return d->name;
}

static bool device_simulated(const void *state)
{
    const struct device *d = state;

    return d->gpu && !strcmp(gpu_ops(d->gpu)->origin(), "simulated");
}

static int device_wait(void *state, char *why)
{
    struct device *d = state;
    int err = gpu_ops(d->gpu)->stream_wait(d->stream);

    return err ? failed(d, err, why) : 0;
}

static int device_run(void *state, size_t shape, uint64_t count, char *why)
{
    struct device *d = state;
    const struct gpu_operands *o = &d->operands;
    int err = 0;

    for (; count && !err; count--)
        err = gpu_ops(d->gpu)->gemm->run(d->gemms[shape], 0, d->stream, o->a, o->b, o->c);
    return err ? failed(d, err, why) : 0;
}

/* The heuristics' first choice, which is what a framework takes; and its kernels are loaded. */
static int device_ready(void *state, char *why)
{
    struct device *d = state;
    const struct gpu_gemm_ops *gemm = gpu_ops(d->gpu)->gemm;
    int err = 0;

    for (size_t i = 0; i < d->n && !err; i++) {
        const struct gpu_gemm_problem problem =
            gpu_operands_problem(d->form, &d->shapes[i], d->form->layout == GEMM_NT);
        unsigned n = 0;
        if ((err = gemm->open(d->gpu, &d->gemms[i])) ||
            (err = gemm->plan(d->gemms[i], &problem, 1, &n)))
            failed(d, err, why);
        if (!err)
            err = device_run(d, i, 1, why);
    }
    return err ? err : device_wait(d, why);
}

static int device_update(void *state, char *why)
{
    struct device *d = state;
    int err = 0;

    for (uint64_t at = 0; at < d->copied && !err; at += d->room) {
        uint64_t bytes = d->copied - at < d->room ? d->copied - at : d->room;
        err = gpu_ops(d->gpu)->copy(d->stream, d->to, d->from, bytes);
    }
    return err ? failed(d, err, why) : 0;
}

static int device_check(void *state, size_t shape, struct gemm_check *c, char *why)
{
    struct device *d = state;
    int err = gpu_operands_poison(&d->operands);

    if (err)
        return failed(d, err, why);
    err = device_run(d, shape, 1, why);
    if (!err)
        err = device_wait(d, why);
    if (err)
        return err;
    d->operands.config.shape = d->shapes[shape];
    err = gpu_operands_check(&d->operands, 0, false, c);
    return err && err != -EBADMSG && err != -ENOMEM ? failed(d, err, why) : err;
}

const struct products_place products_on_gpu = {.open = device_open,
                                               .close = device_close,
                                               .name = device_name,
                                               .simulated = device_simulated,
                                               .ready = device_ready,
                                               .run = device_run,
                                               .update = device_update,
                                               .wait = device_wait,
                                               .check = device_check};
