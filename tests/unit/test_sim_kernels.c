/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device's kernels: what they do to the data, and how long they take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/sim_bench.h"

#ifdef SIM_BENCH

#define COUNT 1000

struct arrays {
    CUdeviceptr dst, a, b, sum;
    float *out; /* pinned */
};

static void fill(struct bench *b, CUdeviceptr at, uint32_t type, uint64_t count, uint64_t seed)
{
    struct gpu_fill_args args = {(void *)at, count, 3, seed, type, GPU_RANDOM};

    launch(b, 0, "fill", 4, 256, &args);
}

static struct arrays arrays(struct bench *b, uint32_t type)
{
    struct arrays x = {take(b, 0, 8 * COUNT), take(b, 0, 8 * COUNT), take(b, 0, 8 * COUNT),
                       take(b, 0, 8), pinned(b, 8 * COUNT)};

    fill(b, x.a, type, COUNT, 1);
    fill(b, x.b, type, COUNT, 2);
    return x;
}

static struct gpu_pass_args pass(const struct arrays *x, uint64_t bytes)
{
    return (struct gpu_pass_args){.dst = (void *)x->dst,
                                  .a = (void *)x->a,
                                  .b = (void *)x->b,
                                  .bytes = bytes,
                                  .passes = 3,
                                  .scalar = 0.3,
                                  .sum = (void *)x->sum};
}

/* Element i of an array of that seed. */
static double value(uint32_t type, uint64_t seed, uint64_t i)
{
    return gpu_value_of_bits(type, gpu_value_bits(type, GPU_RANDOM, seed, 3 + i));
}

static void passes_of_f32(void **state)
{
    static const char *const names[] = {"write_f32_u1", "copy_f32_u2", "scale_f32_u4_cs",
                                        "add_f32_u8", "triad_f32_u1"};
    struct bench *b = *state;
    struct gpu_pass_args args;
    struct arrays x;

    open_bench(b, 1, PLAIN, NULL);
    x = arrays(b, GPU_F32);
    args = pass(&x, 4 * COUNT);
    for (unsigned op = 0; op < 5; op++) {
        launch(b, 0, names[op], 2, 64, &args);
        copy(b, 0, ptr(x.out), x.dst, 4 * COUNT);
        wait(b, 0);
        for (uint64_t i = 0; i < COUNT; i++) {
            float a = (float)value(GPU_F32, 1, i), c = (float)value(GPU_F32, 2, i), s = 0.3f;
            float wanted[] = {s, a, s * a, a + c, fmaf(s, c, a)};

            assert_memory_equal(&x.out[i], &wanted[op], sizeof(float));
        }
    }
}

static void triad_of_f64_is_fused(void **state)
{
    struct bench *b = *state;
    struct gpu_pass_args args;
    struct arrays x;

    open_bench(b, 1, PLAIN, NULL);
    x = arrays(b, GPU_F64);
    args = pass(&x, 8 * COUNT);
    launch(b, 0, "triad_f64_u4", 2, 64, &args);
    copy(b, 0, ptr(x.out), x.dst, 8 * COUNT);
    wait(b, 0);
    for (uint64_t i = 0; i < COUNT; i++) {
        double wanted = fma(0.3, value(GPU_F64, 2, i), value(GPU_F64, 1, i));

        assert_memory_equal((double *)x.out + i, &wanted, sizeof(wanted));
    }
}

/* The sum grows with each pass and each launch. */
static void reading_adds_up(void **state)
{
    struct bench *b = *state;
    struct gpu_pass_args args;
    uint64_t wanted = 0, *out;
    struct arrays x;

    open_bench(b, 1, PLAIN, NULL);
    x = arrays(b, GPU_F32);
    args = pass(&x, 4 * COUNT);
    out = (uint64_t *)x.out;
    for (uint64_t i = 0; i < COUNT; i++)
        wanted += gpu_value_bits(GPU_F32, GPU_RANDOM, 1, 3 + i);
    assert_int_equal(b->d.cuMemsetD32Async(x.sum, 0, 2, b->stream[0]), 0);
    launch(b, 0, "read_f32_u1", 2, 64, &args);
    args.passes = 2;
    launch(b, 0, "read_f32_u4_cs", 2, 64, &args);
    copy(b, 0, ptr(out), x.sum, 8);
    wait(b, 0);
    assert_int_equal(*out, 5 * wanted);
    fill(b, x.a, GPU_F32, COUNT, 1); /* the same again: it is read anew, with the same result */
    launch(b, 0, "read_f32_u1", 2, 64, &args);
    copy(b, 0, ptr(out), x.sum, 8);
    wait(b, 0);
    assert_int_equal(*out, 7 * wanted);
}

static void copies_and_fills(void **state)
{
    static const uint32_t types[] = {GPU_U64, GPU_F16, GPU_BF16, GPU_E4M3, GPU_E5M2, GPU_S8};
    struct bench *b = *state;
    struct gpu_copy_args args;
    unsigned char *out;
    struct arrays x;

    open_bench(b, 1, PLAIN, NULL);
    x = arrays(b, GPU_F32);
    out = (unsigned char *)x.out;
    for (unsigned t = 0; t < 6; t++) {
        unsigned bytes = gpu_value_bytes(types[t]);

        fill(b, x.a, types[t], 99, 9);
        args = (struct gpu_copy_args){(char *)x.dst + 1, (void *)x.a, 99 * bytes, 1};
        launch(b, 0, "copy1", 1, 32, &args);
        copy(b, 0, ptr(out), x.dst, 100 * bytes);
        wait(b, 0);
        for (uint64_t i = 0; i < 99; i++) {
            uint64_t bits = gpu_value_bits(types[t], GPU_RANDOM, 9, 3 + i);

            assert_memory_equal(out + 1 + i * bytes, &bits, bytes);
        }
    }
    args = (struct gpu_copy_args){(void *)x.dst, (void *)x.b, 4 * COUNT, 2};
    launch(b, 0, "copy16", 1, 32, &args);
    copy(b, 0, ptr(out), x.dst, 4 * COUNT);
    wait(b, 0);
    assert_true(((float *)out)[7] == (float)value(GPU_F32, 2, 7));
}

#define FIGURES                                                                                    \
    PLAIN "[gpu]\nhbm_gbps = 100\nl2_gbps = 400\nl2_bytes = 1M\ninflight_bytes = 1M\n"             \
          "streaming_factor = 1.05\nl1_ns = 20\nl2_ns = 100\nhbm_ns = 300\nl1_bytes = 64K\n"

static void rates_of_passes(void **state)
{
    struct bench *b = *state;
    struct gpu_pass_args args;

    open_bench(b, 1, FIGURES, NULL);
    args = (struct gpu_pass_args){.dst = (void *)take(b, 0, 4 * MIB),
                                  .a = (void *)take(b, 0, 4 * MIB),
                                  .b = (void *)take(b, 0, 4 * MIB),
                                  .bytes = 4 * MIB,
                                  .passes = 2,
                                  .sum = (void *)take(b, 0, 8)};
    about(12.0 * MIB * 2 / kernel_ns(b, "triad_f32_u2", 160, 256, &args), 100, 0.01);
    about(8.0 * MIB * 2 / kernel_ns(b, "copy_f64_u4", 120, 256, &args), 100, 0.01);
    about(4.0 * MIB * 2 / kernel_ns(b, "read_f32_u8", 80, 256, &args), 100, 0.01);
    about(12.0 * MIB * 2 / kernel_ns(b, "triad_f32_u2_cs", 160, 256, &args), 105, 0.01);
    /* 20 processors of 8 blocks of 256 threads with 16 bytes each: 640 KiB in flight, of 1 MiB */
    about(12.0 * MIB * 2 / kernel_ns(b, "triad_f32_u1", 160, 256, &args), 62.5, 0.01);
    /* a second wave of one block */
    about(12.0 * MIB * 2 / kernel_ns(b, "triad_f32_u2", 161, 256, &args), 100 * 161 / 320.0, 0.01);
    /* what fits the cache: the first pass fetches it, the others do not */
    args.bytes = MIB / 4;
    args.passes = 4;
    about(kernel_ns(b, "triad_f32_u2", 160, 256, &args), MIB * 0.75 / 100 + MIB * 2.25 / 400, 0.01);
    about(MIB * 3.0 / kernel_ns(b, "triad_f32_u2", 160, 256, &args), 400, 0.01);
}

static double chase_ns(struct bench *b, CUdeviceptr at, CUdeviceptr end, uint64_t hops)
{
    struct gpu_chase_args args = {(void *)at, hops, (void *)end};

    return kernel_ns(b, "chase", 1, 1, &args) / (double)hops;
}

static void chains_of_each_level(void **state)
{
    static const struct {
        uint64_t bytes;
        double ns;
    } sets[] = {{32768, 20}, {512 * 1024, 100}, {8 * MIB, 300}};
    struct bench *b = *state;
    uint64_t *next, *end;
    CUdeviceptr at;

    open_bench(b, 1, FIGURES, NULL);
    at = take(b, 0, 8 * MIB);
    next = pinned(b, 8 * MIB);
    end = pinned(b, 8);
    for (unsigned s = 0; s < 3; s++) {
        uint64_t n = sets[s].bytes / 8;

        for (uint64_t i = 0; i < n; i++)
            next[i] = at + 8 * ((i + n / 2 + 1) % n);
        copy(b, 0, at, ptr(next), sets[s].bytes);
        about(chase_ns(b, at, ptr(end), 1000), sets[s].ns, 0.01);
        assert_int_equal(*end, at + 8 * (1000 * (n / 2 + 1) % n));
    }
}

/* Follows a chain whose first word leads to `to`. */
static CUresult chase_to(struct bench *b, CUdeviceptr at, uint64_t to, uint64_t hops)
{
    struct gpu_chase_args args = {(void *)at, hops, pinned(b, 8)};
    uint64_t *first = pinned(b, 8);

    *first = to;
    copy(b, 0, at, ptr(first), 8);
    launch(b, 0, "chase", 1, 1, &args);
    return b->d.cuStreamSynchronize(b->stream[0]);
}

static void chains_that_lead_out(void **state)
{
    static const struct {
        int64_t offset;
        CUresult rc;
    } ways[] = {{0, 0},
                {4088, 0},
                {4096, CUDA_ERROR_ILLEGAL_ADDRESS},
                {-8, CUDA_ERROR_ILLEGAL_ADDRESS},
                {4089, CUDA_ERROR_ILLEGAL_ADDRESS},
                {12, CUDA_ERROR_MISALIGNED_ADDRESS},
                {3, CUDA_ERROR_MISALIGNED_ADDRESS}};
    struct bench *b = *state;
    CUdeviceptr at;

    for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        open_bench(b, 1, PLAIN, NULL);
        at = take(b, 0, 4096);
        assert_int_equal(chase_to(b, at, at + (uint64_t)ways[i].offset, 1), 0); /* not loaded */
        assert_int_equal(chase_to(b, at, at + (uint64_t)ways[i].offset, 2), ways[i].rc);
        close_bench(b);
    }
}

static void kernels_over_links(void **state)
{
    struct bench *b = *state;
    struct gpu_copy_args args;
    CUdeviceptr here, there;

    open_bench(b, 2,
               FIGURES "[machine]\ngpus = 2\n[gpu]\nsm_copy_factor = 0.9\nh2d_gbps = 10\n"
                       "[link 0 1]\nkind = nvlink\ngbps = 40\n",
               NULL);
    there = take(b, 1, MIB);
    here = take(b, 0, MIB);
    assert_int_equal(b->d.cuCtxEnablePeerAccess(b->context[1], 0), 0);
    args = (struct gpu_copy_args){(void *)here, (void *)there, MIB, 2};
    about(2.0 * MIB / kernel_ns(b, "copy16", 160, 256, &args), 36, 0.01);
    args.src = pinned(b, MIB);
    about(2.0 * MIB / kernel_ns(b, "copy16", 160, 256, &args), 9, 0.01);
}

static void managed_pages_come_by_faults(void **state)
{
    struct gpu_pass_args args = {.bytes = MIB, .passes = 1, .scalar = 2};
    struct bench *b = *state;
    CUdeviceptr at;
    float *host;

    open_bench(b, 1, FIGURES "[gpu]\nh2d_gbps = 10\nfault_factor = 0.5\n", NULL);
    use(b, 0);
    assert_int_equal(b->d.cuMemAllocManaged(&at, MIB, CU_MEM_ATTACH_GLOBAL), 0);
    args.dst = (void *)at;
    host = (float *)at;
    about(kernel_ns(b, "write_f32_u8", 160, 256, &args), MIB / 5.0 + MIB / 100.0, 0.01);
    assert_true(host[77] == 2);
    about(kernel_ns(b, "write_f32_u8", 160, 256, &args), MIB / 400.0, 0.01);
}

static void occupancy_and_names(void **state)
{
    struct bench *b = *state;
    CUfunction function;
    int blocks = 0;

    open_bench(b, 1, PLAIN, NULL);
    assert_int_equal(b->d.cuModuleGetFunction(&function, b->module[0], "copy_f32_u3"),
                     CUDA_ERROR_NOT_FOUND);
    assert_int_equal(b->d.cuModuleGetFunction(&function, b->module[0], "copy_f32_u8"), 0);
    assert_int_equal(b->d.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0),
                     0);
    assert_int_equal(blocks, 4); /* 64 registers a thread */
    assert_int_equal(b->d.cuModuleGetFunction(&function, b->module[0], "copy_f32_u1"), 0);
    assert_int_equal(b->d.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0),
                     0);
    assert_int_equal(blocks, 8);
    assert_int_equal(b->d.cuModuleLoadData(&b->module[1], "no fatbin at all"),
                     CUDA_ERROR_INVALID_IMAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(passes_of_f32),
        SIM_TEST(triad_of_f64_is_fused),
        SIM_TEST(reading_adds_up),
        SIM_TEST(copies_and_fills),
        SIM_TEST(rates_of_passes),
        SIM_TEST(chains_of_each_level),
        SIM_TEST(chains_that_lead_out),
        SIM_TEST(kernels_over_links),
        SIM_TEST(managed_pages_come_by_faults),
        SIM_TEST(occupancy_and_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
