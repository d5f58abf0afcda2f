/* SPDX-License-Identifier: Apache-2.0 */
/* memory on a GPU without one: the search for a launch shape, the levels, and the arrays and their
 * check, on a device that is this process' own memory. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "benches/memory/memory_work.h"
#include "core/rng.h"

#define SMS    10u
#define SECOND UINT64_C(1000000000)

/* A device whose time for a shape is known. */
struct model {
    struct gpu_shape best;
    double noise; /* up to this share longer */
    struct rng rng;
    unsigned calls, too_large;
    unsigned broken_block; /* blocks of so many threads do not run */
    int err;               /* of the call number err_at */
    unsigned err_at;
};

static unsigned model_blocks_per_sm(void *arg, const struct gpu_shape *shape)
{
    struct model *m = arg;

    return shape->block == m->broken_block ? 0 : 2048 / shape->block;
}

static double distance(double a, double b)
{
    return fabs(log2(a) - log2(b));
}

static int model_time(void *arg, const struct gpu_shape *shape, uint64_t *ns)
{
    struct model *m = arg;
    double away = distance(shape->unroll, m->best.unroll) + distance(shape->block, m->best.block) +
                  distance(shape->grid, m->best.grid) + (shape->streaming != m->best.streaming);

    m->calls++;
    m->too_large += shape->grid > SMS * 2048 / shape->block ? 1 : 0;
    assert_true(shape->block != m->broken_block);
    *ns = (uint64_t)(1e6 * (1 + 0.03 * away) * (1 + m->noise * rng_double(&m->rng)));
    return m->err_at && m->calls >= m->err_at ? m->err : 0;
}

static struct gpu_tune_space space_of(struct model *m, uint64_t bytes, bool resident)
{
    return (struct gpu_tune_space){.bytes = bytes,
                                   .sms = SMS,
                                   .resident = resident,
                                   .blocks_per_sm = model_blocks_per_sm,
                                   .arg = m,
                                   .time = model_time};
}

static void finds(struct gpu_shape best, uint64_t bytes, bool resident, double noise, uint64_t seed)
{
    struct model m = {.best = best, .noise = noise};
    struct gpu_tune_space space = space_of(&m, bytes, resident);
    struct gpu_tuned tuned;

    rng_seed(&m.rng, seed);
    assert_int_equal(gpu_tune(&space, 60 * SECOND, &tuned), 0);
    assert_int_equal(tuned.tried, tuned.of);
    assert_int_equal(tuned.shape.unroll, best.unroll);
    assert_int_equal(tuned.shape.streaming, best.streaming);
    assert_int_equal(tuned.shape.block, best.block);
    assert_int_equal(tuned.shape.grid, best.grid);
    assert_true(!resident || !m.too_large);
}

static void test_tune_finds_the_best(void **state)
{
    (void)state;
    finds((struct gpu_shape){4, true, 512, 2 * SMS}, 1 << 30, false, 0, 7);
    finds((struct gpu_shape){1, false, 1024, SMS}, 1 << 30, false, 0, 7);
    finds((struct gpu_shape){8, false, 128, 16 * SMS}, 1 << 30, true, 0, 7);
    finds((struct gpu_shape){2, true, 256, (1 << 30) / (256 * 2 * 16)}, 1 << 30, false, 0, 7);
    /* the plain one, where it is the best */
    finds((struct gpu_shape){1, false, 256, (1 << 30) / (256 * 16)}, 1 << 30, false, 0, 7);
}

static void test_tune_through_noise(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        finds((struct gpu_shape){4, true, 512, 2 * SMS}, 1 << 30, false, 0.1, seed);
        finds((struct gpu_shape){2, false, 256, 8 * SMS}, 1 << 30, true, 0.1, seed);
    }
}

static void test_tune_small_arrays(void **state)
{
    /* 64 KiB: 4096 accesses, no more than 4 blocks of 1024 threads */
    struct model m = {.best = {1, false, 1024, 4}};
    struct gpu_tune_space space = space_of(&m, 65536, true);
    struct gpu_tuned tuned;

    (void)state;
    rng_seed(&m.rng, 7);
    assert_int_equal(gpu_tune(&space, 60 * SECOND, &tuned), 0);
    assert_int_equal(tuned.shape.grid, 4);
    assert_true(tuned.of < 100); /* those that are the same are listed once */
}

static void test_shapes_as_words(void **state)
{
    struct model m = {.best = {4, true, 512, 2 * SMS}};
    struct gpu_tune_space wide = space_of(&m, 1 << 30, false), narrow = space_of(&m, 1 << 30, true);
    const struct gpu_shape shape = {4, true, 512, 2 * SMS}, all = {1, false, 256, (1 << 30) / 4096};
    struct gpu_shape read;
    char word[48];

    (void)state;
    assert_true(gpu_shape_read(&wide, gpu_shape_word(&shape, word, sizeof(word)), &read));
    assert_true(read.unroll == shape.unroll && read.streaming == shape.streaming);
    assert_true(read.block == shape.block && read.grid == shape.grid);
    assert_true(gpu_shape_read(&wide, gpu_shape_word(&all, word, sizeof(word)), &read));
    assert_false(gpu_shape_read(&narrow, word, &read)); /* more blocks than run at a time */
    assert_false(gpu_shape_read(&wide, "3x512x264", &read));
    assert_false(gpu_shape_read(&wide, "4x512x265cs", &read));
    assert_false(gpu_shape_read(&wide, "", &read));
}

static void test_tune_stops(void **state)
{
    struct model m = {.best = {4, true, 512, 2 * SMS}, .broken_block = 1024};
    struct gpu_tune_space space = space_of(&m, 1 << 30, false);
    struct gpu_tuned tuned;

    (void)state;
    rng_seed(&m.rng, 7);
    assert_int_equal(gpu_tune(&space, 1, &tuned), 0); /* no time: one was tried */
    assert_int_equal(tuned.tried, 1);
    assert_true(tuned.of > 50 && tuned.shape.grid > 0);

    m.err = -EIO;
    m.err_at = 20;
    m.calls = 0;
    assert_int_equal(gpu_tune(&space, 60 * SECOND, &tuned), -EIO);
    assert_int_equal(m.calls, 20);
}

static unsigned runs_nothing(void *arg, const struct gpu_shape *shape)
{
    (void)arg;
    (void)shape;
    return 0;
}

static void test_plain_shape(void **state)
{
    struct model m = {.err = 0};
    struct gpu_tune_space space = space_of(&m, 1 << 20, false);
    struct gpu_shape shape;
    struct gpu_tuned tuned;
    char text[64];

    (void)state;
    assert_int_equal(gpu_shape_plain(&space, &shape), 0);
    assert_string_equal(gpu_shape_text(&shape, text, sizeof(text)), "u1 256 threads x 256 blocks");
    space.bytes += 16; /* one access more: one block more */
    assert_int_equal(gpu_shape_plain(&space, &shape), 0);
    assert_int_equal(shape.grid, 257);
    space.resident = true;
    assert_int_equal(gpu_shape_plain(&space, &shape), 0);
    assert_int_equal(shape.grid, SMS * 8);
    shape = (struct gpu_shape){4, true, 128, 7};
    assert_string_equal(gpu_shape_text(&shape, text, sizeof(text)), "u4 cs 128 threads x 7 blocks");
    space.blocks_per_sm = runs_nothing;
    assert_int_equal(gpu_shape_plain(&space, &shape), -EOPNOTSUPP);
    assert_int_equal(gpu_tune(&space, SECOND, &tuned), -EOPNOTSUPP);
}

static void test_tunings_are_kept(void **state)
{
    struct gpu_tunings t = {0};
    struct gpu_tuned one = {.shape = {4, true, 512, 20}, .tried = 3, .of = 4};

    (void)state;
    assert_null(gpu_tunings_find(&t, "0/copy/f32/4096"));
    for (int i = 0; i < 100; i++) {
        char key[64];
        snprintf(key, sizeof(key), "0/copy/f32/%d", i);
        one.tried = (unsigned)i;
        assert_int_equal(gpu_tunings_add(&t, key, &one), 0);
    }
    assert_int_equal(gpu_tunings_find(&t, "0/copy/f32/77")->tried, 77);
    assert_null(gpu_tunings_find(&t, "0/copy/f32/100"));
    gpu_tunings_release(&t);
}

static void test_levels(void **state)
{
    struct gpu_facts f = {.l2_bytes = 4 << 20, .memory_bus_bits = 512};

    (void)state;
    assert_string_equal(gpu_memory_level(&f, 2 << 20), "L2");
    assert_string_equal(gpu_memory_level(&f, (2 << 20) + 1), "");
    assert_string_equal(gpu_memory_level(&f, 4 << 20), "");
    assert_string_equal(gpu_memory_level(&f, (32 << 20) - 1), "");
    assert_string_equal(gpu_memory_level(&f, 32 << 20), "DRAM");
    f.memory_bus_bits = 5120;
    assert_string_equal(gpu_memory_level(&f, 1 << 30), "HBM");
    assert_string_equal(gpu_latency_level(&f, 32768), "L1");
    assert_string_equal(gpu_latency_level(&f, 32769), "");
    assert_string_equal(gpu_latency_level(&f, (512 << 10) - 1), "");
    assert_string_equal(gpu_latency_level(&f, 512 << 10), "L2");
    assert_string_equal(gpu_latency_level(&f, 1 << 30), "HBM");
    f.l2_bytes = 0; /* not told: nothing is claimed */
    assert_string_equal(gpu_memory_level(&f, 1024), "");
    assert_string_equal(gpu_memory_level(&f, 1 << 30), "");
}

/* A GPU that is this process' memory: what gpu_arrays needs of one. */
struct gpu {
    struct gpu_base base;
    unsigned allocations, fails_at; /* the allocation that fails; 0: none */
};
struct gpu_kernel {
    int unused;
};

static int fake_alloc(struct gpu *gpu, enum gpu_memory kind, size_t bytes, void **at)
{
    (void)kind;
    if (gpu->fails_at && gpu->allocations + 1 == gpu->fails_at)
        return -ENOMEM;
    gpu->allocations++;
    *at = malloc(bytes);
    return *at ? 0 : -ENOMEM;
}

static void fake_free(struct gpu *gpu, enum gpu_memory kind, void *at)
{
    (void)kind;
    gpu->allocations -= at ? 1 : 0;
    free(at);
}

static int fake_wait(struct gpu_stream *stream)
{
    (void)stream;
    return 0;
}

static int fake_copy(struct gpu_stream *stream, void *dst, const void *src, size_t bytes)
{
    (void)stream;
    memcpy(dst, src, bytes);
    return 0;
}

static int fake_set(struct gpu_stream *stream, void *dst, uint32_t word, size_t bytes)
{
    (void)stream;
    for (size_t i = 0; i < bytes / 4; i++)
        ((uint32_t *)dst)[i] = word;
    return 0;
}

static int fake_kernel(struct gpu *gpu, const char *name, struct gpu_kernel **kernel)
{
    static struct gpu_kernel fill;

    (void)gpu;
    assert_string_equal(name, "fill");
    *kernel = &fill;
    return 0;
}

static int fake_launch(struct gpu_stream *stream, struct gpu_kernel *kernel, unsigned grid,
                       unsigned block, const void *args)
{
    const struct gpu_fill_args *a = args;
    unsigned each = gpu_value_bytes(a->type);

    (void)stream;
    (void)kernel;
    assert_true(grid > 0 && block > 0);
    for (uint64_t i = 0; i < a->count; i++) {
        uint64_t bits = gpu_value_bits(a->type, a->kind, a->seed, a->first + i);
        memcpy((char *)a->dst + i * each, &bits, each); /* little-endian, as the GPU is */
    }
    return 0;
}

static const struct gpu_ops fake_ops = {.name = "fake",
                                        .alloc = fake_alloc,
                                        .free = fake_free,
                                        .stream_wait = fake_wait,
                                        .copy = fake_copy,
                                        .set = fake_set,
                                        .kernel = fake_kernel,
                                        .launch = fake_launch};

static struct gpu fake_gpu(void)
{
    return (struct gpu){.base = {.ops = &fake_ops, .facts = {.sms = 4, .l2_bytes = 1 << 20}}};
}

static void get(const struct gpu_arrays *x, const void *at, uint64_t i, double *value)
{
    *value = x->type == GPU_F32 ? (double)((const float *)at)[i] : ((const double *)at)[i];
}

/* What the kernels do, from their description: f32 in float, f64 in double, triad rounded once. */
static void perform(struct gpu_arrays *x, double scalar)
{
    for (uint64_t i = 0; i < x->bytes / gpu_value_bytes(x->type); i++) {
        double a = 0, b = 0;
        if (x->a)
            get(x, x->a, i, &a);
        if (x->b)
            get(x, x->b, i, &b);
        if (x->type == GPU_F32) {
            float s = (float)scalar, fa = (float)a, fb = (float)b;
            const float all[] = {0, s, fa, s * fa, fa + fb, fmaf(s, fb, fa)};
            ((float *)x->dst)[i] = all[x->op];
        } else {
            const double all[] = {0, scalar, a, scalar * a, a + b, fma(scalar, b, a)};
            ((double *)x->dst)[i] = all[x->op];
        }
    }
}

static void each_stored(void (*what)(struct gpu_arrays *x, struct gpu *gpu), uint64_t size)
{
    for (int op = KERNEL_WRITE; op < KERNEL_OPS; op++)
        for (int type = 0; type < KERNEL_TYPES; type++) {
            struct gpu gpu = fake_gpu();
            struct gpu_arrays x;
            assert_int_equal(gpu_arrays_open(&x, &gpu, NULL, (enum kernel_op)op,
                                             (enum kernel_type)type, size, 5),
                             0);
            what(&x, &gpu);
            gpu_arrays_close(&x);
            assert_int_equal(gpu.allocations, 0);
        }
}

static void is_checked(struct gpu_arrays *x, struct gpu *gpu)
{
    char error[160] = "";
    uint64_t last = x->bytes / gpu_value_bytes(x->type) - 1;

    (void)gpu;
    assert_true(!x->b || memcmp(x->a, x->b, x->bytes) != 0);
    assert_int_equal(gpu_arrays_check(x, 3, error, sizeof(error)), -EBADMSG); /* not written yet */
    perform(x, 3);
    assert_int_equal(gpu_arrays_check(x, 3, error, sizeof(error)), 0);
    const uint64_t places[] = {0, last / 2, last};
    for (size_t i = 0; i < 3; i++) { /* the least significant bit of one entry */
        char *at = (char *)x->dst + places[i] * gpu_value_bytes(x->type), want[160];
        *at ^= 1;
        assert_int_equal(gpu_arrays_check(x, 3, error, sizeof(error)), -EBADMSG);
        snprintf(want, sizeof(want), "wrong data: entry %llu is", (unsigned long long)places[i]);
        assert_memory_equal(error, want, strlen(want));
        *at ^= 1;
    }
    if (x->op == KERNEL_WRITE || x->op == KERNEL_SCALE || x->op == KERNEL_TRIAD)
        assert_int_equal(gpu_arrays_check(x, 4, error, sizeof(error)), -EBADMSG);
    assert_int_equal(gpu_arrays_spoil(x), 0);
    assert_int_equal(gpu_arrays_check(x, 3, error, sizeof(error)), -EBADMSG);
    perform(x, 3);
    assert_int_equal(gpu_arrays_poison(x), 0);
    assert_int_equal(gpu_arrays_check(x, 3, error, sizeof(error)), -EBADMSG);
}

static void test_check_finds_one_bit(void **state)
{
    (void)state;
    each_stored(is_checked, 3 * 12800);
    each_stored(is_checked, 3 << 20 | 3 * 128); /* more than one window */
}

/* Arrays longer than what is compared: the first and the last entry are, in any case. */
static void test_check_of_windows(void **state)
{
    struct gpu gpu = fake_gpu();
    struct gpu_arrays x;
    char error[160];

    (void)state;
    assert_int_equal(gpu_arrays_open(&x, &gpu, NULL, KERNEL_COPY, KERNEL_F64,
                                     2 * (GPU_ARRAYS_CHECKED + (16 << 20)), 5),
                     0);
    memcpy(x.dst, x.a, x.bytes);
    assert_int_equal(gpu_arrays_check(&x, 3, error, sizeof(error)), 0);
    assert_int_equal(gpu_arrays_looked_at(&x), GPU_ARRAYS_CHECKED);
    for (int last = 0; last < 2; last++) {
        char *at = (char *)x.dst + (last ? x.bytes - 8 : 0);
        *at ^= 1;
        assert_int_equal(gpu_arrays_check(&x, 3, error, sizeof(error)), -EBADMSG);
        *at ^= 1;
    }
    gpu_arrays_close(&x);
}

static void test_sum_of_what_is_read(void **state)
{
    struct gpu gpu = fake_gpu();
    struct gpu_arrays x;
    uint64_t found;

    (void)state;
    for (int type = 0; type < KERNEL_TYPES; type++)
        for (int large = 0; large < 2; large++) { /* below a period, and one and a half */
            uint64_t size = large ? (uint64_t)96 << 20 : 1 << 20, sum = 0;
            assert_int_equal(
                gpu_arrays_open(&x, &gpu, NULL, KERNEL_READ, (enum kernel_type)type, size, 5), 0);
            assert_null(x.dst);
            for (uint64_t i = 0; i < x.bytes / 4; i++)
                sum += ((uint32_t *)x.a)[i];
            assert_int_equal(gpu_arrays_sum(&x), sum);
            assert_int_equal(gpu_arrays_clear_sum(&x), 0);
            *x.sum += 5;
            assert_int_equal(gpu_arrays_read_sum(&x, &found), 0);
            assert_int_equal(found, 5);
            gpu_arrays_spoil(&x);
            for (uint64_t i = 0; i < x.bytes / 4; i++)
                sum -= ((uint32_t *)x.a)[i];
            assert_int_not_equal(sum, 0);
            gpu_arrays_close(&x);
        }
    assert_int_equal(gpu.allocations, 0);
}

static void test_arrays_out_of_memory(void **state)
{
    struct gpu_arrays x;

    (void)state;
    for (unsigned at = 1; at <= 5; at++) {
        struct gpu gpu = fake_gpu();
        gpu.fails_at = at;
        assert_int_equal(gpu_arrays_open(&x, &gpu, NULL, KERNEL_TRIAD, KERNEL_F64, 1 << 20, 5),
                         -ENOMEM);
        assert_int_equal(gpu.allocations, 0); /* nothing is left behind */
        gpu_arrays_close(&x);
    }
}

static void test_arrays_hold_no_more_than_asked(void **state)
{
    (void)state;
    for (int op = 0; op < KERNEL_OPS; op++)
        for (uint64_t size = 1024; size < 100000; size += 997) {
            uint64_t each = gpu_arrays_bytes((enum kernel_op)op, size),
                     n = kernel_arrays((enum kernel_op)op);
            assert_true(each * n <= size && size - each * n < n * GPU_ARRAYS_LINE + n);
            assert_true(each % GPU_ARRAYS_LINE == 0);
        }
    assert_int_equal(gpu_arrays_bytes(KERNEL_TRIAD, 383), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tune_finds_the_best),
        cmocka_unit_test(test_tune_through_noise),
        cmocka_unit_test(test_tune_small_arrays),
        cmocka_unit_test(test_tune_stops),
        cmocka_unit_test(test_shapes_as_words),
        cmocka_unit_test(test_plain_shape),
        cmocka_unit_test(test_tunings_are_kept),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_check_finds_one_bit),
        cmocka_unit_test(test_check_of_windows),
        cmocka_unit_test(test_sum_of_what_is_read),
        cmocka_unit_test(test_arrays_out_of_memory),
        cmocka_unit_test(test_arrays_hold_no_more_than_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
