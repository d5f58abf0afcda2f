/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA module's table over a device: a simulated one, or with PLUMB_TEST_GPU=real the first of this
 * machine. Errors that are made on purpose are test_cuda_errors.c's.
 */
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

#include "core/clock.h"
#include "core/hw/gpu_kernels.h"
#include "cuda_fixture.h"

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

static void to_device(struct cuda_fixture *bed, void *dst, const void *src, size_t bytes)
{
    OK(bed, bed->ops->copy(bed->stream, dst, src, bytes));
    OK(bed, bed->ops->stream_wait(bed->stream));
}

#define to_host to_device

static void launch(struct cuda_fixture *bed, const char *name, unsigned grid, unsigned block,
                   const void *args)
{
    struct gpu_kernel *kernel;

    OK(bed, bed->ops->kernel(bed->gpu, name, &kernel));
    OK(bed, bed->ops->launch(bed->stream, kernel, grid, block, args));
}

static void facts(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    const struct gpu_facts *f = &gpu_base(bed->gpu)->facts;
    unsigned domain, bus, device;
    struct gpu_facts other;
    uint64_t free_bytes;

    assert_string_equal(bed->ops->name, "cuda");
    assert_string_equal(bed->ops->origin(), cuda_fixture_real() ? "measured" : "simulated");
    assert_true(bed->ops->count() >= 1);
    assert_true(f->name[0] && f->major >= 7 && f->sms && f->copy_engines);
    assert_int_equal(sscanf(f->address, "%x:%x:%x.0", &domain, &bus, &device), 3);
    assert_int_equal(strspn(f->address, "0123456789abcdef:."), strlen(f->address));
    assert_int_equal(strlen(f->uuid), 40);
    assert_true(f->memory_bytes && f->l2_bytes && f->clock_mhz > 0 && f->memory_bus_bits);
    assert_true(f->driver_version >= 10000 && f->toolkit_version >= 11000);
    OK(bed, bed->ops->free_bytes(bed->gpu, &free_bytes));
    assert_in_range(free_bytes, 1, f->memory_bytes);
    OK(bed, bed->ops->driver_call(bed->gpu));
    assert_int_equal(bed->ops->facts(bed->ops->count(), &other), -ENODEV);
}

/* What tests/sim/machines/eight.conf says. */
static void facts_of_the_simulated_machine(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    struct gpu_facts f;
    struct gpu_link link;

    if (cuda_fixture_real()) {
        print_message("this machine's GPUs are real\n");
        skip();
    }
    assert_int_equal(bed->ops->count(), 8);
    assert_int_equal(bed->ops->facts(4, &f), 0);
    assert_string_equal(f.address, "0000:9a:00.0");
    assert_int_equal(f.numa_node, 1);
    assert_int_equal(bed->ops->facts(0, &f), 0);
    assert_int_equal(f.numa_node, 0);
    assert_int_equal(bed->ops->link(0, 1, &link), 0);
    assert_true(link.access && link.atomics); /* NVLink */
    assert_int_equal(bed->ops->link(0, 7, &link), 0);
    assert_true(link.access && !link.atomics); /* PCIe */
    assert_int_equal(bed->ops->link(3, 4, &link), 0);
    assert_false(link.access || link.atomics);
    assert_int_equal(bed->ops->link(0, 8, &link), -EINVAL);
}

static void memory_of_every_kind(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    const enum gpu_memory kinds[] = {GPU_DEVICE, GPU_PINNED, GPU_WRITE_COMBINED, GPU_MANAGED};
    unsigned char out[999], in[999];
    void *at = bed;

    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (unsigned char)gpu_hash(SEED, i);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        at = take(bed, kinds[i], sizeof(out));
        memset(in, 0, sizeof(in));
        to_device(bed, at, out, sizeof(out));
        to_host(bed, in, at, sizeof(in));
        assert_memory_equal(in, out, sizeof(out));
        bed->ops->free(bed->gpu, kinds[i], at);
        assert_int_equal(bed->ops->alloc(bed->gpu, kinds[i], 0, &at), -EINVAL);
        assert_non_null(strstr(gpu_error(bed->gpu), "0 bytes"));
        assert_null(at);
        bed->ops->free(bed->gpu, kinds[i], NULL);
    }
    assert_int_equal(bed->ops->copy(bed->stream, out, in, 0), -EINVAL);
    assert_int_equal(bed->ops->set(bed->stream, out, 0, 6), -EINVAL);
}

static void too_much_memory(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    void *at;

    assert_int_equal(bed->ops->alloc(bed->gpu, GPU_DEVICE, (size_t)1 << 44, &at), -ENOMEM);
    assert_null(at);
    assert_non_null(strstr(gpu_error(bed->gpu), "cuMemAlloc: "));
    assert_non_null(strstr(gpu_error(bed->gpu), "asked for 16.0 TiB"));
    assert_non_null(strstr(gpu_error(bed->gpu), " are free"));
    assert_false(gpu_base(bed->gpu)->lost);
    bed->ops->free(bed->gpu, GPU_DEVICE, take(bed, GPU_DEVICE, 4096)); /* goes on */
}

static void host_memory_pinned(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    size_t bytes = 64 << 10;
    char *host = aligned_alloc(4096, bytes);
    void *device = take(bed, GPU_DEVICE, bytes);
    uint32_t word;

    assert_non_null(host);
    OK(bed, bed->ops->pin(bed->gpu, host, bytes));
    OK(bed, bed->ops->set(bed->stream, device, 0xfeedbeef, bytes));
    to_host(bed, host, device, bytes);
    memcpy(&word, host + bytes - 4, 4);
    assert_int_equal(word, 0xfeedbeef);
    bed->ops->unpin(bed->gpu, host);
    assert_int_equal(bed->ops->pin(bed->gpu, host, 0), -EINVAL);
    bed->ops->free(bed->gpu, GPU_DEVICE, device);
    free(host);
}

static void managed_memory_moves(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    size_t bytes = 256 << 10;
    uint32_t *at;

    if (!gpu_base(bed->gpu)->facts.managed_concurrent) {
        print_message("this GPU does not move managed memory by page faults\n");
        skip();
    }
    at = take(bed, GPU_MANAGED, bytes);
    OK(bed, bed->ops->prefetch(bed->stream, at, bytes, true));
    OK(bed, bed->ops->set(bed->stream, at, 12345, bytes));
    OK(bed, bed->ops->prefetch(bed->stream, at, bytes, false));
    OK(bed, bed->ops->stream_wait(bed->stream));
    assert_int_equal(at[0], 12345);
    assert_int_equal(at[bytes / 4 - 1], 12345);
    bed->ops->free(bed->gpu, GPU_MANAGED, at);
}

static void memory_in_order(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    uint32_t in[4] = {0};
    void *at;

    OK(bed, bed->ops->alloc_ordered(bed->stream, sizeof(in), &at));
    OK(bed, bed->ops->set(bed->stream, at, 77, sizeof(in)));
    to_host(bed, in, at, sizeof(in));
    OK(bed, bed->ops->free_ordered(bed->stream, at));
    OK(bed, bed->ops->stream_wait(bed->stream));
    assert_int_equal(in[3], 77);
}

/* What lies in element i of an array before and after an operation. */
static double value(bool wide, uint64_t seed, uint64_t i)
{
    uint32_t type = wide ? GPU_F64 : GPU_F32;

    return gpu_value_of_bits(type, gpu_value_bits(type, GPU_RANDOM, seed, i));
}

static double expected(const char *op, bool wide, double s, uint64_t i)
{
    double a = value(wide, 1, i), b = value(wide, 2, i);

    if (!strcmp(op, "write"))
        return wide ? s : (double)(float)s;
    if (!strcmp(op, "copy"))
        return a;
    if (!strcmp(op, "scale"))
        return wide ? s * a : (double)((float)s * (float)a);
    if (!strcmp(op, "add"))
        return wide ? a + b : (double)((float)a + (float)b);
    return wide ? fma(s, b, a) : (double)fmaf((float)s, (float)b, (float)a);
}

static double element(const void *array, bool wide, uint64_t i)
{
    return wide ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

struct arrays {
    void *dst, *a, *b, *sum;
    size_t bytes;
};

static void fill(struct cuda_fixture *bed, void *at, uint32_t type, uint64_t count, uint64_t seed)
{
    const struct gpu_fill_args args = {
        .dst = at, .count = count, .seed = seed, .type = type, .kind = GPU_RANDOM};

    launch(bed, "fill", 5, 96, &args);
}

static void check_operation(struct cuda_fixture *bed, const struct arrays *x, const char *op,
                            bool wide, const char *name)
{
    const double s = 0.3;
    const struct gpu_pass_args args = {
        .dst = x->dst, .a = x->a, .b = x->b, .bytes = x->bytes, .passes = 2, .scalar = s};
    char *host = malloc(x->bytes + 16);

    assert_non_null(host);
    OK(bed, bed->ops->set(bed->stream, x->dst, 0xabababab, x->bytes + 16));
    launch(bed, name, 3, 64, &args);
    to_host(bed, host, x->dst, x->bytes + 16);
    for (uint64_t i = 0; i < x->bytes / (wide ? 8 : 4); i++)
        if (element(host, wide, i) != expected(op, wide, s, i))
            fail_msg("%s: element %llu is %.17g, not %.17g", name, (unsigned long long)i,
                     element(host, wide, i), expected(op, wide, s, i));
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
    to_host(bed, host, x->a, x->bytes);
    for (size_t i = 0; i < x->bytes / 4; i++)
        want += host[i];
    OK(bed, bed->ops->set(bed->stream, x->sum, 0, 8));
    launch(bed, name, 3, 40, &args); /* its last warp is not full */
    to_host(bed, &got, x->sum, 8);
    assert_true(got == 3 * want);
    free(host);
}

/* Sizes: less than a step of all threads, and several tiles with a rest. */
static void memory_operations(void **state)
{
    static const char *const ops[] = {"read", "write", "copy", "scale", "add", "triad"};
    static const size_t sizes[] = {16, 1024 + 48, 65536 + 16 * 7};
    struct cuda_fixture *bed = bed_of(state);
    struct arrays x = {.sum = take(bed, GPU_DEVICE, 8)};
    char name[64];

    x.dst = take(bed, GPU_DEVICE, 1 << 17);
    x.a = take(bed, GPU_DEVICE, 1 << 17);
    x.b = take(bed, GPU_DEVICE, 1 << 17);
    for (unsigned n = 0; n < 6 * 2 * GPU_KERNEL_UNROLLS * 2; n++) {
        const char *op = ops[n % 6];
        bool wide = n / 6 % 2, streaming = n / 12 % 2;
        snprintf(name, sizeof(name), "%s_%s_u%u%s", op, wide ? "f64" : "f32", 1u << n / 24,
                 streaming ? "_cs" : "");
        fill(bed, x.a, wide ? GPU_F64 : GPU_F32, (1 << 17) / (wide ? 8 : 4), 1);
        fill(bed, x.b, wide ? GPU_F64 : GPU_F32, (1 << 17) / (wide ? 8 : 4), 2);
        x.bytes = sizes[n % 3];
        if (n % 6)
            check_operation(bed, &x, op, wide, name);
        else
            check_read(bed, &x, name);
    }
    bed->ops->free(bed->gpu, GPU_DEVICE, x.dst);
    bed->ops->free(bed->gpu, GPU_DEVICE, x.a);
    bed->ops->free(bed->gpu, GPU_DEVICE, x.b);
    bed->ops->free(bed->gpu, GPU_DEVICE, x.sum);
}

static void filling(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    unsigned char *host = malloc(8 * 1000);
    void *at = take(bed, GPU_DEVICE, 8 * 1000);

    assert_non_null(host);
    for (uint32_t type = 0; type < GPU_VALUES; type++) {
        unsigned size = gpu_value_bytes(type);
        const struct gpu_fill_args args = {
            .dst = at, .count = 999, .first = 5, .seed = SEED, .type = type, .kind = GPU_RANDOM};
        OK(bed, bed->ops->set(bed->stream, at, 0, 8 * 1000));
        launch(bed, "fill", 3, 96, &args);
        to_host(bed, host, at, 8 * 1000);
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t want = i < 999 ? gpu_value_bits(type, GPU_RANDOM, SEED, 5 + i) : 0, got = 0;
            memcpy(&got, host + i * size, size);
            assert_true(got == want);
        }
    }
    bed->ops->free(bed->gpu, GPU_DEVICE, at);
    free(host);
}

static void copying_kernels(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    unsigned char out[1000], in[1003];
    unsigned char *src = take(bed, GPU_DEVICE, 1024), *dst = take(bed, GPU_DEVICE, 1024);
    struct gpu_copy_args args = {.dst = dst + 1, .src = src + 2, .bytes = 997, .passes = 1};

    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (unsigned char)gpu_hash(SEED, i);
    to_device(bed, src, out, sizeof(out));
    OK(bed, bed->ops->set(bed->stream, dst, 0, 1024));
    launch(bed, "copy1", 2, 64, &args);
    to_host(bed, in, dst, sizeof(in));
    assert_int_equal(in[0], 0);
    assert_memory_equal(in + 1, out + 2, 997);
    assert_int_equal(in[998], 0);
    args = (struct gpu_copy_args){.dst = dst, .src = src, .bytes = 992, .passes = 2};
    OK(bed, bed->ops->set(bed->stream, dst, 0, 1024));
    launch(bed, "copy16", 1, 32, &args);
    to_host(bed, in, dst, sizeof(in));
    assert_memory_equal(in, out, 992);
    assert_int_equal(in[992], 0);
    bed->ops->free(bed->gpu, GPU_DEVICE, src);
    bed->ops->free(bed->gpu, GPU_DEVICE, dst);
}

static void chasing(void **state)
{
    static const unsigned next[] = {3, 0, 1, 4, 2};
    struct cuda_fixture *bed = bed_of(state);
    uint64_t words[5], got;
    uint64_t *at = take(bed, GPU_DEVICE, sizeof(words)), *end = take(bed, GPU_DEVICE, 8);
    struct gpu_chase_args args = {.start = at + 1, .end = end};

    for (unsigned i = 0; i < 5; i++)
        words[i] = (uintptr_t)(at + next[i]);
    to_device(bed, at, words, sizeof(words));
    for (unsigned hops = 0, place = 1; hops < 30; hops++, place = next[place]) {
        args.hops = hops; /* whole blocks of loads and what is left over */
        got = 9;
        launch(bed, hops % 2 ? "chase_cg" : "chase", 8, 64, &args);
        to_host(bed, &got, end, 8);
        assert_int_equal(got, (uintptr_t)(at + place));
    }
    bed->ops->free(bed->gpu, GPU_DEVICE, at);
    bed->ops->free(bed->gpu, GPU_DEVICE, end);
}

static void kernels_and_their_shapes(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    const struct gpu_empty_args none = {0};
    struct gpu_kernel *kernel, *again;
    unsigned blocks = 9;

    OK(bed, bed->ops->kernel(bed->gpu, "triad_f64_u1", &kernel));
    OK(bed, bed->ops->kernel(bed->gpu, "triad_f64_u1", &again));
    assert_ptr_equal(kernel, again);
    OK(bed, bed->ops->occupancy(kernel, 256, &blocks));
    assert_in_range(blocks, 1, gpu_base(bed->gpu)->facts.max_threads_per_sm / 256);
    OK(bed, bed->ops->occupancy(kernel, 2048, &blocks)); /* no GPU has such blocks */
    assert_int_equal(blocks, 0);
    assert_int_equal(bed->ops->kernel(bed->gpu, "no_such", &kernel), -EINVAL);
    assert_non_null(strstr(gpu_error(bed->gpu), "'no_such'"));
    OK(bed, bed->ops->kernel(bed->gpu, "empty", &kernel));
    assert_int_equal(bed->ops->launch(bed->stream, kernel, 0, 32, &none), -EINVAL);
    OK(bed, bed->ops->launch(bed->stream, kernel, 1, 32, &none));
    OK(bed, bed->ops->stream_wait(bed->stream));
}

static void events_and_their_times(void **state)
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

static void holding(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    struct gpu_event *done;
    double ns;

    OK(bed, bed->ops->event_open(bed->gpu, &done));
    for (int i = 0; i < 3; i++) { /* each hold anew, after the last was released */
        OK(bed, bed->ops->hold(bed->stream));
        OK(bed, bed->ops->event_record(done, bed->stream));
        assert_int_equal(bed->ops->event_query(done), -EAGAIN);
        assert_int_equal(bed->ops->stream_query(bed->stream), -EAGAIN);
        if (!i)
            assert_int_equal(bed->ops->event_elapsed(done, done, &ns), -EAGAIN);
        OK(bed, bed->ops->release(bed->stream));
        OK(bed, bed->ops->stream_wait(bed->stream));
        OK(bed, bed->ops->event_query(done));
        OK(bed, bed->ops->stream_query(bed->stream));
    }
    bed->ops->event_close(done);
}

/* A hold that nobody releases: seconds, not for ever; and it is said, once. */
static void hold_that_is_forgotten(void **state)
{
    struct cuda_fixture *bed = bed_of(state);

    OK(bed, bed->ops->hold(bed->stream));
    assert_int_equal(bed->ops->stream_wait(bed->stream), -ETIMEDOUT);
    assert_non_null(strstr(gpu_error(bed->gpu), "held for 10 s"));
    OK(bed, bed->ops->stream_wait(bed->stream));
    OK(bed, bed->ops->hold(bed->stream)); /* the next one holds */
    assert_int_equal(bed->ops->stream_query(bed->stream), -EAGAIN);
    OK(bed, bed->ops->release(bed->stream));
    OK(bed, bed->ops->stream_wait(bed->stream));
}

/* Closed while it is held: it ends. */
static void closing_a_held_stream(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    struct gpu_stream *stream;

    OK(bed, bed->ops->stream_open(bed->gpu, &stream));
    OK(bed, bed->ops->hold(stream));
    uint64_t from_ns = clock_now_ns();
    bed->ops->stream_close(stream);
    assert_true(clock_now_ns() - from_ns < GPU_HOLD_NS / 2); /* not by giving up */
    bed->ops->stream_close(NULL);
}

static void one_stream_after_another(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    struct gpu_stream *second;
    struct gpu_event *first_done;
    uint32_t got = 0;
    void *at = take(bed, GPU_DEVICE, 4);

    OK(bed, bed->ops->stream_open(bed->gpu, &second));
    OK(bed, bed->ops->event_open(bed->gpu, &first_done));
    OK(bed, bed->ops->hold(bed->stream));
    OK(bed, bed->ops->set(bed->stream, at, 1, 4));
    OK(bed, bed->ops->event_record(first_done, bed->stream));
    OK(bed, bed->ops->stream_after(second, first_done));
    OK(bed, bed->ops->set(second, at, 2, 4));
    assert_int_equal(bed->ops->stream_query(second), -EAGAIN); /* only the first is held */
    OK(bed, bed->ops->release(bed->stream));
    OK(bed, bed->ops->stream_wait(second));
    to_host(bed, &got, at, 4);
    assert_int_equal(got, 2);
    bed->ops->stream_close(second);
    bed->ops->event_close(first_done);
    bed->ops->free(bed->gpu, GPU_DEVICE, at);
}

static void graphs(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    const struct gpu_empty_args none = {0};
    struct gpu_kernel *empty;
    struct gpu_graph *graph;
    uint32_t got[2] = {0};
    uint32_t *at = take(bed, GPU_DEVICE, 8);

    OK(bed, bed->ops->kernel(bed->gpu, "empty", &empty));
    OK(bed, bed->ops->set(bed->stream, at, 5, 8));
    OK(bed, bed->ops->graph_begin(bed->stream));
    OK(bed, bed->ops->set(bed->stream, at, 6, 4));
    OK(bed, bed->ops->launch(bed->stream, empty, 1, 1, &none));
    OK(bed, bed->ops->copy(bed->stream, at + 1, at, 4));
    OK(bed, bed->ops->graph_end(bed->stream, &graph));
    to_host(bed, got, at, 8);
    assert_int_equal(got[0], 5); /* kept, not done */
    for (int i = 0; i < 2; i++) {
        OK(bed, bed->ops->set(bed->stream, at, 5, 8));
        OK(bed, bed->ops->graph_launch(bed->stream, graph));
        to_host(bed, got, at, 8);
        assert_int_equal(got[0], 6);
        assert_int_equal(got[1], 6);
    }
    bed->ops->graph_close(graph);
    bed->ops->graph_close(NULL);
    assert_true(bed->ops->graph_end(bed->stream, &graph) < 0); /* none was begun */
    assert_null(graph);
    bed->ops->free(bed->gpu, GPU_DEVICE, at);
}

static void peers(void **state)
{
    struct cuda_fixture *bed = bed_of(state);
    struct gpu_link link;
    struct gpu *other;
    char error[GPU_ERROR_BYTES];
    uint32_t got = 0;
    void *here = take(bed, GPU_DEVICE, 16), *there;

    assert_int_equal(bed->ops->link(0, 0, &link), -EINVAL);
    if (bed->ops->count() < 2) {
        bed->ops->free(bed->gpu, GPU_DEVICE, here);
        print_message("there is one GPU alone\n");
        skip();
    }
    assert_int_equal(bed->ops->link(0, 1, &link), 0);
    assert_int_equal(gpus_get(bed->gpus, 1, &other, error, sizeof(error)), 0);
    assert_int_equal(bed->ops->peer(bed->gpu, bed->gpu, true), -EINVAL);
    assert_int_equal(bed->ops->alloc(other, GPU_DEVICE, 16, &there), 0);
    OK(bed, bed->ops->set(bed->stream, here, 42, 16));
    OK(bed, bed->ops->copy(bed->stream, there, here, 16)); /* with peer access or without */
    if (link.access) {
        const struct gpu_copy_args args = {.dst = here, .src = there, .bytes = 16, .passes = 1};
        OK(bed, bed->ops->peer(bed->gpu, other, true));
        OK(bed, bed->ops->peer(bed->gpu, other, true)); /* twice does no harm */
        OK(bed, bed->ops->set(bed->stream, here, 0, 16));
        launch(bed, "copy16", 1, 32, &args);
    }
    to_host(bed, &got, here, 4);
    assert_int_equal(got, 42);
    if (link.access) {
        OK(bed, bed->ops->peer(bed->gpu, other, false));
        OK(bed, bed->ops->peer(bed->gpu, other, false));
    }
    bed->ops->free(other, GPU_DEVICE, there);
    bed->ops->free(bed->gpu, GPU_DEVICE, here);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts),
        cmocka_unit_test(facts_of_the_simulated_machine),
        cmocka_unit_test(memory_of_every_kind),
        cmocka_unit_test(too_much_memory),
        cmocka_unit_test(host_memory_pinned),
        cmocka_unit_test(managed_memory_moves),
        cmocka_unit_test(memory_in_order),
        cmocka_unit_test(memory_operations),
        cmocka_unit_test(filling),
        cmocka_unit_test(copying_kernels),
        cmocka_unit_test(chasing),
        cmocka_unit_test(kernels_and_their_shapes),
        cmocka_unit_test(events_and_their_times),
        cmocka_unit_test(holding),
        cmocka_unit_test(hold_that_is_forgotten),
        cmocka_unit_test(closing_a_held_stream),
        cmocka_unit_test(one_stream_after_another),
        cmocka_unit_test(graphs),
        cmocka_unit_test(peers),
    };

    return cmocka_run_group_tests(tests, open_bed, close_bed);
}
