/* SPDX-License-Identifier: Apache-2.0 */
/* memory on a GPU without one: the search for a launch shape, the levels, and the arrays and their
 * check, on a device that is this process' own memory. */
#include "benches/memory/memory_work.h"
#include "core/rng.h"
#include "tests/unit/fake_gpu.h"
#include "tests/unit/unit.h"

#define SMS    10u
#define SECOND UINT64_C(1000000000)

/* A device whose time for a shape is known. */
struct model {
    struct gpu_shape best;
    double noise; /* up to this share longer */
    struct rng rng;
    unsigned calls, too_large;
    bool runs_nothing;
    unsigned broken_block; /* blocks of so many threads do not run */
    int err;               /* of the call number err_at */
    unsigned err_at;
};

static unsigned model_blocks_per_sm(void *arg, const struct gpu_shape *shape)
{
    struct model *m = arg;

    return shape->block == m->broken_block || m->runs_nothing ? 0 : 2048 / shape->block;
}

static int model_time(void *arg, const struct gpu_shape *shape, uint64_t *ns)
{
    struct model *m = arg;
    double away = fabs(log2((double)shape->unroll / m->best.unroll)) +
                  fabs(log2((double)shape->block / m->best.block)) +
                  fabs(log2((double)shape->grid / m->best.grid)) +
                  (shape->streaming != m->best.streaming);

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

/* Through noise of 10 %, wherever the best is, the plain shape included. */
TEST(test_tune_finds_the_best)
{
    static const struct {
        struct gpu_shape best;
        uint64_t bytes;
        bool resident;
        double noise;
    } cases[] = {
        {{4, true, 512, 2 * SMS}, 1 << 30, false, 0.1},
        {{1, false, 1024, SMS}, 1 << 30, false, 0},
        {{8, false, 128, 16 * SMS}, 1 << 30, true, 0},
        {{2, true, 256, (1 << 30) / (256 * 2 * 16)}, 1 << 30, false, 0},
        {{1, false, 256, (1 << 30) / (256 * 16)}, 1 << 30, false, 0},
        {{2, false, 256, 8 * SMS}, 1 << 30, true, 0.1},
        {{1, false, 1024, 4}, 65536, true, 0}, /* 4096 accesses: no more than 4 such blocks */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (uint64_t seed = 0; seed < (cases[i].noise > 0 ? 4 : 1); seed++) {
            struct model m = {.best = cases[i].best, .noise = cases[i].noise};
            struct gpu_tune_space space = space_of(&m, cases[i].bytes, cases[i].resident);
            struct gpu_tuned tuned;
            rng_seed(&m.rng, seed);
            assert_int_equal(gpu_tune(&space, 60 * SECOND, &tuned), 0);
            assert_int_equal(tuned.tried, tuned.of);
            assert_true(cases[i].bytes > 65536 || tuned.of < 100); /* the same are listed once */
            assert_int_equal(tuned.shape.unroll, m.best.unroll);
            assert_int_equal(tuned.shape.streaming, m.best.streaming);
            assert_int_equal(tuned.shape.block, m.best.block);
            assert_int_equal(tuned.shape.grid, m.best.grid);
            assert_true(!cases[i].resident || !m.too_large);
        }
}

/* When its time is over, or at an error. */
TEST(test_tune_stops)
{
    struct model m = {.best = {4, true, 512, 2 * SMS}, .broken_block = 1024};
    struct gpu_tune_space space = space_of(&m, 1 << 30, false);
    struct gpu_tuned tuned;

    rng_seed(&m.rng, 7);
    assert_int_equal(gpu_tune(&space, 1, &tuned), 0);
    assert_int_equal(tuned.tried, 1);
    assert_true(tuned.of > 50 && tuned.shape.grid > 0);

    m = (struct model){.best = m.best, .err = -EIO, .err_at = 20};
    assert_int_equal(gpu_tune(&space, 60 * SECOND, &tuned), -EIO);
    assert_int_equal(m.calls, 20);
}

TEST(test_plain_shape)
{
    struct model m = {.runs_nothing = false};
    struct gpu_tune_space space = space_of(&m, 1 << 20, false);
    struct gpu_shape shape, read;
    struct gpu_tuned tuned;
    char word[48];

    assert_int_equal(gpu_shape_plain(&space, &shape), 0);
    assert_true(shape.unroll == 1 && !shape.streaming && shape.block == 256 && shape.grid == 256);
    assert_true(gpu_shape_read(&space, gpu_shape_word(&shape, word, sizeof(word)), &read));
    assert_true(read.unroll == 1 && !read.streaming && read.block == 256 && read.grid == 256);
    space.bytes += 16; /* one access more: one block more */
    assert_int_equal(gpu_shape_plain(&space, &shape), 0);
    assert_int_equal(shape.grid, 257);
    space.resident = true;
    assert_int_equal(gpu_shape_plain(&space, &shape), 0);
    assert_int_equal(shape.grid, SMS * 8);
    assert_false(gpu_shape_read(&space, word, &read)); /* more blocks than run at a time */
    shape = (struct gpu_shape){4, true, 512, 2 * SMS};
    assert_true(gpu_shape_read(&space, gpu_shape_word(&shape, word, sizeof(word)), &read));
    assert_true(read.unroll == 4 && read.streaming && read.block == 512 && read.grid == 2 * SMS);
    assert_false(gpu_shape_read(&space, "3x512x264", &read));
    assert_false(gpu_shape_read(&space, "4x512x265cs", &read));
    assert_false(gpu_shape_read(&space, "", &read));
    m.runs_nothing = true;
    assert_int_equal(gpu_shape_plain(&space, &shape), -EOPNOTSUPP);
    assert_int_equal(gpu_tune(&space, SECOND, &tuned), -EOPNOTSUPP);
}

TEST(test_levels)
{
    static const struct {
        const char *(*level)(const struct gpu_facts *f, uint64_t bytes);
        uint64_t bytes;
        const char *is;
    } cases[] = {
        {gpu_memory_level, 2 << 20, "L2"},        {gpu_memory_level, (2 << 20) + 1, ""},
        {gpu_memory_level, (32 << 20) - 1, ""},   {gpu_memory_level, 32 << 20, "HBM"},
        {gpu_latency_level, 32768, "L1"},         {gpu_latency_level, 32769, ""},
        {gpu_latency_level, (512 << 10) - 1, ""}, {gpu_latency_level, 512 << 10, "L2"},
        {gpu_latency_level, 1 << 30, "HBM"},
    };
    struct gpu_facts f = {.l2_bytes = 4 << 20, .memory_bus_bits = 5120};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_string_equal(cases[i].level(&f, cases[i].bytes), cases[i].is);
    f.memory_bus_bits = 512;
    assert_string_equal(gpu_memory_level(&f, 32 << 20), "DRAM");
    f.l2_bytes = 0; /* not told: nothing is claimed */
    assert_string_equal(gpu_memory_level(&f, 1024), "");
    assert_string_equal(gpu_memory_level(&f, 1 << 30), "");
}

struct fake {
    struct gpu gpu;
    struct gpu_stream stream;
};

static void open_arrays(struct gpu_arrays *x, struct fake *f, int op, int type, uint64_t size)
{
    *f = (struct fake){.gpu = fake_gpu(1)};
    f->stream.gpu = &f->gpu;
    assert_int_equal(gpu_arrays_open(x, &f->gpu, &f->stream, (enum kernel_op)op,
                                     (enum kernel_type)type, size, 5),
                     0);
}

/* What the kernels do, from their description: f32 in float, f64 in double, triad rounded once. */
static void perform(struct gpu_arrays *x, double s)
{
    for (uint64_t i = 0; i < x->bytes / gpu_value_bytes(x->type); i++)
        if (x->type == GPU_F32) {
            float fs = (float)s, a = x->a ? ((float *)x->a)[i] : 0,
                  b = x->b ? ((float *)x->b)[i] : 0;
            const float all[] = {0, fs, a, fs * a, a + b, fmaf(fs, b, a)};
            ((float *)x->dst)[i] = all[x->op];
        } else {
            double a = x->a ? ((double *)x->a)[i] : 0, b = x->b ? ((double *)x->b)[i] : 0;
            const double all[] = {0, s, a, s * a, a + b, fma(s, b, a)};
            ((double *)x->dst)[i] = all[x->op];
        }
}

static int wrong(struct gpu_arrays *x, double scalar)
{
    char error[160];

    return gpu_arrays_check(x, scalar, error, sizeof(error));
}

static void is_checked(struct gpu_arrays *x)
{
    uint64_t last = x->bytes / gpu_value_bytes(x->type) - 1;
    const uint64_t places[] = {0, last / 2, last};
    char error[160], entry[32];

    assert_true(!x->b || memcmp(x->a, x->b, x->bytes) != 0);
    assert_int_equal(wrong(x, 3), -EBADMSG); /* not written yet */
    perform(x, 3);
    assert_int_equal(wrong(x, 3), 0);
    for (size_t i = 0; i < 3; i++) { /* the least significant bit of one entry */
        char *at = (char *)x->dst + places[i] * gpu_value_bytes(x->type);
        *at ^= 1;
        assert_int_equal(gpu_arrays_check(x, 3, error, sizeof(error)), -EBADMSG);
        snprintf(entry, sizeof(entry), "entry %llu ", (unsigned long long)places[i]);
        assert_non_null(strstr(error, entry));
        *at ^= 1;
    }
    if (x->op == KERNEL_WRITE || x->op == KERNEL_SCALE || x->op == KERNEL_TRIAD)
        assert_int_equal(wrong(x, 4), -EBADMSG);
    assert_int_equal(gpu_arrays_spoil(x), 0);
    assert_int_equal(wrong(x, 3), -EBADMSG);
    perform(x, 3);
    assert_int_equal(gpu_arrays_poison(x), 0);
    assert_int_equal(wrong(x, 3), -EBADMSG);
}

/* Of small arrays, of more than one window, and of more than what is compared: there the first and
 * the last entry are, in any case. */
TEST(test_check_finds_one_bit)
{
    const uint64_t sizes[] = {3 * 12800, 3 << 20 | 3 * 128};
    struct gpu_arrays x;
    struct fake f;

    for (int op = KERNEL_WRITE; op < KERNEL_OPS; op++)
        for (int type = 0; type < KERNEL_TYPES; type++) {
            open_arrays(&x, &f, op, type, sizes[op == KERNEL_TRIAD]);
            is_checked(&x);
            gpu_arrays_close(&x);
            assert_int_equal(f.gpu.opened, 0);
        }
    open_arrays(&x, &f, KERNEL_COPY, KERNEL_F64, 2 * (GPU_ARRAYS_CHECKED + (16 << 20)));
    memcpy(x.dst, x.a, x.bytes);
    assert_int_equal(wrong(&x, 3), 0);
    assert_int_equal(gpu_arrays_looked_at(&x), GPU_ARRAYS_CHECKED);
    for (int last = 0; last < 2; last++) {
        char *at = (char *)x.dst + (last ? x.bytes - 8 : 0);
        *at ^= 1;
        assert_int_equal(wrong(&x, 3), -EBADMSG);
        *at ^= 1;
    }
    gpu_arrays_close(&x);
}

/* Below a period, and one and a half. */
TEST(test_sum_of_what_is_read)
{
    struct gpu_arrays x;
    struct fake f;
    uint64_t found;

    for (int type = 0; type < KERNEL_TYPES; type++) {
        uint64_t size = type ? (uint64_t)96 << 20 : 1 << 20, sum = 0;
        open_arrays(&x, &f, KERNEL_READ, type, size);
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
}

/* Never more than was asked, nor a line less; nothing is left behind where memory runs out. */
TEST(test_memory_of_arrays)
{
    struct gpu_arrays x;

    for (int op = 0; op < KERNEL_OPS; op++)
        for (uint64_t size = 1024; size < 4096; size += 97) {
            uint64_t each = gpu_arrays_bytes((enum kernel_op)op, size),
                     n = kernel_arrays((enum kernel_op)op);
            assert_true(each * n <= size && size - each * n < n * GPU_ARRAYS_LINE + n);
            assert_true(each % GPU_ARRAYS_LINE == 0);
        }
    assert_int_equal(gpu_arrays_bytes(KERNEL_TRIAD, 383), 0);
    for (unsigned at = 1; at <= 5; at++) {
        struct gpu gpu = fake_gpu(1);
        gpu.fail_at = at;
        assert_int_equal(gpu_arrays_open(&x, &gpu, NULL, KERNEL_TRIAD, KERNEL_F64, 1 << 20, 5),
                         -EIO);
        assert_int_equal(gpu.opened, 0);
        gpu_arrays_close(&x);
    }
}
