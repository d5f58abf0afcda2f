/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA module's table over a device: a simulated one, or with PLUMB_TEST_GPU=real the first of this
 * machine. Errors that are made on purpose are test_cuda_errors.c's.
 */
#include "core/clock.h"
#include "core/hw/gpu_kernels.h"
#include "cuda_fixture.h"
#include "tests/unit/unit.h"

#define SEED 7

/* The group's tests are skipped where there is nothing to test. */
static int open_bed(void **state)
{
    static struct cuda_fixture bed;

    *state = &bed;
    return cuda_fixture_open("eight", &bed);
}

static int close_bed(void **state)
{
    cuda_fixture_close(*state);
    return 0;
}

static struct cuda_fixture *bed_of(void **state)
{
    struct cuda_fixture *bed = *state;

    if (!bed->ops) {
        print_message(
            "neither the module and the simulated device were built, nor is there a GPU\n");
        skip();
    }
    return bed;
}

static void *take(struct cuda_fixture *bed, enum gpu_memory kind, size_t bytes)
{
    void *at = NULL;

    OK(bed, bed->ops->alloc(bed->gpu, kind, bytes, &at));
    assert_non_null(at);
    return at;
}

static void copied(struct cuda_fixture *bed, void *dst, const void *src, size_t bytes)
{
    OK(bed, bed->ops->copy(bed->stream, dst, src, bytes));
    OK(bed, bed->ops->stream_wait(bed->stream));
}

static void launch(struct cuda_fixture *bed, const char *name, unsigned grid, unsigned block,
                   const void *args)
{
    struct gpu_kernel *kernel;

    OK(bed, bed->ops->kernel(bed->gpu, name, &kernel));
    OK(bed, bed->ops->launch(bed->stream, kernel, grid, block, args));
}

TEST(memory_of_every_kind)
{
    struct cuda_fixture *bed = bed_of(state);
    const enum gpu_memory kinds[] = {GPU_DEVICE, GPU_PINNED, GPU_WRITE_COMBINED, GPU_MANAGED};
    const struct gpu_facts *facts = &gpu_base(bed->gpu)->facts;
    uint32_t out[250], in[250], last = 0, *at;
    char *host = aligned_alloc(4096, 65536);

    for (size_t i = 0; i < 250; i++)
        out[i] = (uint32_t)gpu_hash(SEED, i);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i] == GPU_MANAGED && !facts->managed)
            continue;
        at = take(bed, kinds[i], sizeof(out));
        memset(in, 0, sizeof(in));
        copied(bed, at, out, sizeof(out));
        copied(bed, in, at, sizeof(in));
        assert_memory_equal(in, out, sizeof(out));
        bed->ops->free(bed->gpu, kinds[i], at);
        assert_int_equal(bed->ops->alloc(bed->gpu, kinds[i], 0, (void **)&at), -EINVAL);
        assert_null(at);
        bed->ops->free(bed->gpu, kinds[i], NULL);
    }
    assert_int_equal(bed->ops->copy(bed->stream, out, in, 0), -EINVAL);
    assert_int_equal(bed->ops->set(bed->stream, out, 0, 6), -EINVAL);
    OK(bed, bed->ops->alloc_ordered(bed->stream, sizeof(in), (void **)&at));
    OK(bed, bed->ops->set(bed->stream, at, 77, sizeof(in)));
    copied(bed, in, at, sizeof(in));
    OK(bed, bed->ops->free_ordered(bed->stream, at));
    OK(bed, bed->ops->stream_wait(bed->stream));
    assert_int_equal(in[249], 77);
    assert_non_null(host); /* the host's own, pinned afterwards */
    at = take(bed, GPU_DEVICE, 65536);
    OK(bed, bed->ops->set(bed->stream, at, 0xfeedbeef, 65536));
    if (facts->host_register)
        OK(bed, bed->ops->pin(bed->gpu, host, 65536));
    copied(bed, host, at, 65536);
    memcpy(&last, host + 65532, 4);
    assert_int_equal(last, 0xfeedbeef);
    if (facts->host_register)
        bed->ops->unpin(bed->gpu, host);
    assert_int_equal(bed->ops->pin(bed->gpu, host, 0), -EINVAL);
    bed->ops->free(bed->gpu, GPU_DEVICE, at);
    free(host);
}

/* What an operation with the scalar 0.3 leaves in element i. */
static double expected(char op, bool wide, uint64_t i)
{
    uint32_t type = wide ? GPU_F64 : GPU_F32;
    double a = gpu_value_of_bits(type, gpu_value_bits(type, GPU_RANDOM, 1, i)),
           b = gpu_value_of_bits(type, gpu_value_bits(type, GPU_RANDOM, 2, i)), s = 0.3;
    float fa = (float)a, fb = (float)b, fs = (float)s;

    switch (op) {
    case 'w':
        return wide ? s : (double)fs;
    case 'c':
        return a;
    case 's':
        return wide ? s * a : (double)(fs * fa);
    case 'a':
        return wide ? a + b : (double)(fa + fb);
    default:
        return wide ? fma(s, b, a) : (double)fmaf(fs, fb, fa);
    }
}

struct arrays {
    void *dst, *a, *b, *sum;
    size_t bytes;
};

static void check_operation(struct cuda_fixture *bed, const struct arrays *x, const char *name)
{
    const struct gpu_pass_args args = {
        .dst = x->dst, .a = x->a, .b = x->b, .bytes = x->bytes, .passes = 2, .scalar = 0.3};
    bool wide = strstr(name, "f64");
    char *host = malloc(x->bytes + 16);

    assert_non_null(host);
    OK(bed, bed->ops->set(bed->stream, x->dst, 0xabababab, x->bytes + 16));
    launch(bed, name, 3, 64, &args);
    copied(bed, host, x->dst, x->bytes + 16);
    for (uint64_t i = 0; i < x->bytes / (wide ? 8 : 4); i++) {
        double got = wide ? ((double *)(void *)host)[i] : (double)((float *)(void *)host)[i];
        if (got != expected(name[0], wide, i))
            fail_msg("%s: element %llu is %.17g, not %.17g", name, (unsigned long long)i, got,
                     expected(name[0], wide, i));
    }
    for (int i = 0; i < 16; i++) /* not a byte beyond */
        assert_int_equal((unsigned char)host[x->bytes + i], 0xab);
    free(host);
}

static void check_read(struct cuda_fixture *bed, const struct arrays *x, const char *name)
{
    const struct gpu_pass_args args = {.a = x->a, .bytes = x->bytes, .passes = 3, .sum = x->sum};
    uint32_t *host = malloc(x->bytes);
    uint64_t want = 0, got = 0;

    assert_non_null(host);
    copied(bed, host, x->a, x->bytes);
    for (size_t i = 0; i < x->bytes / 4; i++)
        want += host[i];
    OK(bed, bed->ops->set(bed->stream, x->sum, 0, 8));
    launch(bed, name, 3, 40, &args); /* its last warp is not full */
    copied(bed, &got, x->sum, 8);
    assert_true(got == 3 * want);
    free(host);
}

/* Sizes: less than a step of all threads, and several tiles with a rest. */
TEST(memory_operations)
{
    static const char *const ops[] = {"read", "write", "copy", "scale", "add", "triad"};
    static const size_t sizes[] = {16, 1024 + 48, 65536 + 16 * 7};
    struct cuda_fixture *bed = bed_of(state);
    void *at[3] = {take(bed, GPU_DEVICE, 1 << 17), take(bed, GPU_DEVICE, 1 << 17),
                   take(bed, GPU_DEVICE, 1 << 17)};
    struct arrays x = {.dst = at[0], .a = at[1], .b = at[2], .sum = take(bed, GPU_DEVICE, 8)};
    char name[64];

    for (unsigned wide = 0; wide < 2; wide++) {
        for (unsigned i = 1; i < 3; i++) {
            struct gpu_fill_args args = {.dst = at[i],
                                         .count = (1 << 17) / (wide ? 8 : 4),
                                         .seed = i,
                                         .type = wide ? GPU_F64 : GPU_F32,
                                         .kind = GPU_RANDOM};
            launch(bed, "fill", 5, 96, &args);
        }
        for (unsigned n = 0; n < 6 * GPU_KERNEL_UNROLLS * 2; n++) {
            snprintf(name, sizeof(name), "%s_%s_u%u%s", ops[n % 6], wide ? "f64" : "f32",
                     1u << n / 12, n / 6 % 2 ? "_cs" : "");
            x.bytes = sizes[(n + n / 6) % 3];
            if (n % 6)
                check_operation(bed, &x, name);
            else
                check_read(bed, &x, name);
        }
    }
    for (unsigned i = 0; i < 3; i++)
        bed->ops->free(bed->gpu, GPU_DEVICE, at[i]);
    bed->ops->free(bed->gpu, GPU_DEVICE, x.sum);
}

TEST(filling_and_copying)
{
    struct cuda_fixture *bed = bed_of(state);
    unsigned char out[8 * 1000], in[8 * 1000];
    unsigned char *src = take(bed, GPU_DEVICE, sizeof(out)), *dst = take(bed, GPU_DEVICE, 1024);
    struct gpu_copy_args args = {.dst = dst + 1, .src = src + 2, .bytes = 997, .passes = 1};

    for (uint32_t type = 0; type < GPU_VALUES; type++) {
        unsigned size = gpu_value_bytes(type);
        const struct gpu_fill_args fill = {
            .dst = src, .count = 999, .first = 5, .seed = SEED, .type = type, .kind = GPU_RANDOM};
        OK(bed, bed->ops->set(bed->stream, src, 0, sizeof(out)));
        launch(bed, "fill", 3, 96, &fill);
        copied(bed, out, src, sizeof(out));
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t want = i < 999 ? gpu_value_bits(type, GPU_RANDOM, SEED, 5 + i) : 0, got = 0;
            memcpy(&got, out + i * size, size);
            assert_true(got == want);
        }
    }
    OK(bed, bed->ops->set(bed->stream, dst, 0, 1024));
    launch(bed, "copy1", 2, 64, &args);
    copied(bed, in, dst, 1024);
    assert_memory_equal(in + 1, out + 2, 997);
    assert_true(!in[0] && !in[998]);
    args = (struct gpu_copy_args){.dst = dst, .src = src, .bytes = 992, .passes = 2};
    OK(bed, bed->ops->set(bed->stream, dst, 0, 1024));
    launch(bed, "copy16", 1, 32, &args);
    copied(bed, in, dst, 1024);
    assert_memory_equal(in, out, 992);
    assert_int_equal(in[992], 0);
    bed->ops->free(bed->gpu, GPU_DEVICE, src);
    bed->ops->free(bed->gpu, GPU_DEVICE, dst);
}

TEST(kernels_and_their_shapes)
{
    struct cuda_fixture *bed = bed_of(state);
    const struct gpu_facts *f = &gpu_base(bed->gpu)->facts;
    const struct gpu_empty_args none = {0};
    struct gpu_kernel *kernel, *again;
    unsigned blocks = 9;

    assert_string_equal(bed->ops->origin(), cuda_fixture_real() ? "measured" : "simulated");
    assert_true(f->name[0] && f->major >= 7 && f->sms && f->memory_bytes && f->l2_bytes);
    OK(bed, bed->ops->kernel(bed->gpu, "triad_f64_u1", &kernel));
    OK(bed, bed->ops->kernel(bed->gpu, "triad_f64_u1", &again));
    assert_ptr_equal(kernel, again);
    OK(bed, bed->ops->occupancy(kernel, 256, &blocks));
    assert_in_range(blocks, 1, f->max_threads_per_sm / 256);
    OK(bed, bed->ops->occupancy(kernel, 2048, &blocks)); /* no GPU has such blocks */
    assert_int_equal(blocks, 0);
    assert_int_equal(bed->ops->kernel(bed->gpu, "no_such", &kernel), -EINVAL);
    OK(bed, bed->ops->kernel(bed->gpu, "empty", &kernel));
    assert_int_equal(bed->ops->launch(bed->stream, kernel, 0, 32, &none), -EINVAL);
    OK(bed, bed->ops->launch(bed->stream, kernel, 1, 32, &none));
    OK(bed, bed->ops->stream_wait(bed->stream));
}

TEST(events_and_their_times)
{
    struct cuda_fixture *bed = bed_of(state);
    struct gpu_event *begin, *end;
    void *at = take(bed, GPU_DEVICE, 1 << 20);
    double ns = -1;

    OK(bed, bed->ops->event_open(bed->gpu, &begin));
    OK(bed, bed->ops->event_open(bed->gpu, &end));
    uint64_t from_ns = clock_now_ns();
    OK(bed, bed->ops->event_record(begin, bed->stream));
    OK(bed, bed->ops->set(bed->stream, at, 1, 1 << 20));
    OK(bed, bed->ops->event_record(end, bed->stream));
    OK(bed, bed->ops->event_wait(end));
    OK(bed, bed->ops->event_query(end));
    double host_ns = (double)(clock_now_ns() - from_ns);
    OK(bed, bed->ops->event_elapsed(begin, end, &ns));
    assert_true(ns > 0 && ns < 1.1 * host_ns + 10000); /* the two clocks' units are one */
    bed->ops->event_close(begin);
    bed->ops->event_close(end);
    bed->ops->event_close(NULL);
    bed->ops->free(bed->gpu, GPU_DEVICE, at);
}

/* Each hold anew, after the last was released; another stream goes on, and follows by an event. Closed
 * while it is held, a stream ends, and not by giving up. */
TEST(holding)
{
    struct cuda_fixture *bed = bed_of(state);
    uint32_t got = 0, *at = take(bed, GPU_DEVICE, 4);
    struct gpu_stream *second;
    struct gpu_event *done;
    double ns;

    OK(bed, bed->ops->event_open(bed->gpu, &done));
    OK(bed, bed->ops->stream_open(bed->gpu, &second));
    for (uint32_t i = 1; i < 4; i++) {
        OK(bed, bed->ops->hold(bed->stream));
        OK(bed, bed->ops->set(bed->stream, at, 7, 4));
        OK(bed, bed->ops->event_record(done, bed->stream));
        OK(bed, bed->ops->stream_after(second, done));
        OK(bed, bed->ops->set(second, at, i, 4));
        assert_int_equal(bed->ops->event_query(done), -EAGAIN);
        assert_int_equal(bed->ops->stream_query(bed->stream), -EAGAIN);
        assert_int_equal(bed->ops->stream_query(second), -EAGAIN); /* only the first is held */
        if (i == 1)
            assert_int_equal(bed->ops->event_elapsed(done, done, &ns), -EAGAIN);
        OK(bed, bed->ops->release(bed->stream));
        OK(bed, bed->ops->stream_wait(second));
        OK(bed, bed->ops->event_query(done));
        OK(bed, bed->ops->stream_query(bed->stream));
        copied(bed, &got, at, 4);
        assert_int_equal(got, i);
    }
    OK(bed, bed->ops->hold(second));
    uint64_t from_ns = clock_now_ns();
    bed->ops->stream_close(second);
    assert_true(clock_now_ns() - from_ns < GPU_HOLD_NS);
    bed->ops->stream_close(NULL);
    bed->ops->event_close(done);
    bed->ops->free(bed->gpu, GPU_DEVICE, at);
}

/* A hold that nobody releases: seconds, not for ever; and it is said, once. */
TEST(hold_that_is_forgotten)
{
    struct cuda_fixture *bed = bed_of(state);

    OK(bed, bed->ops->hold(bed->stream));
    assert_int_equal(bed->ops->stream_wait(bed->stream), -ETIMEDOUT);
    OK(bed, bed->ops->stream_wait(bed->stream));
    OK(bed, bed->ops->hold(bed->stream)); /* the next one holds */
    assert_int_equal(bed->ops->stream_query(bed->stream), -EAGAIN);
    OK(bed, bed->ops->release(bed->stream));
    OK(bed, bed->ops->stream_wait(bed->stream));
}

TESTS_WITH(open_bed, close_bed);
