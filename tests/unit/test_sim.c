/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device (tests/sim): order, effects that come when the host waits, and wrong
 * addresses. Each on a machine of lines of text, with the simulated driver loaded for it alone. */
#if !__has_include(<cuda.h>) || defined(SIM_ABSENT)

TEST(needs_cuda)
{
    print_message("the simulated device was not built: it needs nvcc and cuda.h\n");
    skip();
}

#else

#include <dlfcn.h>
#include <glob.h>

#include "core/hw/cuda/gpu_cuda.h"
#include "core/hw/gpu_kernels.h"
#include "tests/unit/unit.h"

#ifndef SIM_DIR
#define SIM_DIR "build/sim" /* the Makefile says it in full */
#endif
#define GPUS 8
#define MIB  (1024 * 1024)

/* No latencies, so that a rate is one. */
#define PLAIN                                                                                      \
    "[gpu]\nh2d_latency_us = 0\nd2h_latency_us = 0\nd2d_latency_us = 0\nkernel_us = 0\n"           \
    "memset_latency_us = 0\npageable_latency_us = 0\ngemm_us = 0\n[link all]\nlatency_us = 0\n"

struct bench {
    struct cuda_driver d;
    CUcontext context[GPUS];
    CUstream stream[GPUS];
    CUmodule module[GPUS];
    uint32_t *words; /* pinned: [0] the go word, [1] gave up */
    uint32_t turn;
    char path[64];
};

/* A machine of these lines, and n devices of it, each with a stream. */
static void open_raw(struct bench *b, const char *lines, const char *faults)
{
    FILE *file;

    snprintf(b->path, sizeof(b->path), "/tmp/plumb-sim-%d.conf", (int)getpid());
    file = fopen(b->path, "w");
    if (!file)
        fail_msg("cannot write '%s'", b->path);
    fputs(lines, file);
    if (!strstr(lines, "lazy_load_us")) /* kernels are launched behind a hold, as they come */
        fputs("\n[gpu]\nlazy_load_us = 0\n", file);
    fclose(file);
    setenv("PLUMB_SIM_MACHINE", b->path, 1);
    setenv("PLUMB_SIM_FAULT", faults ? faults : "", 1);
    if (!b->d.library)
        b->d.library = dlopen(SIM_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!b->d.library)
        fail_msg("%s", dlerror());
#define FIND(name)                                                                                 \
    *(void **)&b->d.name = dlsym(b->d.library, SYMBOL(name));                                      \
    if (!b->d.name)                                                                                \
        fail_msg("no %s", SYMBOL(name));
#define TEXT(x)   #x
#define SYMBOL(x) TEXT(x)
    CUDA_FUNCTIONS(FIND)
}

static void use(struct bench *b, unsigned gpu)
{
    assert_int_equal(b->d.cuCtxSetCurrent(b->context[gpu]), CUDA_SUCCESS);
}

static const uint32_t image[8] = {0xba55ed50u, 1, 16}; /* a header of machine code */

static void open_bench(struct bench *b, unsigned n, const char *lines, const char *faults)
{
    open_raw(b, lines, faults);
    assert_int_equal(b->d.cuInit(0), CUDA_SUCCESS);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(b->d.cuDevicePrimaryCtxRetain(&b->context[i], (CUdevice)i), CUDA_SUCCESS);
        use(b, i);
        assert_int_equal(b->d.cuStreamCreate(&b->stream[i], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        assert_int_equal(b->d.cuModuleLoadData(&b->module[i], image), CUDA_SUCCESS);
    }
    use(b, 0);
    assert_int_equal(b->d.cuMemHostAlloc((void **)&b->words, 4096, CU_MEMHOSTALLOC_PORTABLE),
                     CUDA_SUCCESS);
    b->words[0] = b->words[1] = 0;
}

/* What a test opened is closed, so that the next one has the library anew. */
static int setup(void **state)
{
    *state = calloc(1, sizeof(struct bench));
    return *state ? 0 : -1;
}

/* A test may open another machine after this. */
static void close_bench(struct bench *b)
{
    for (unsigned i = 0; i < GPUS; i++)
        if (b->context[i])
            b->d.cuDevicePrimaryCtxRelease((CUdevice)i);
    if (b->d.library)
        dlclose(b->d.library);
    if (b->path[0])
        unlink(b->path);
    memset(b, 0, sizeof(*b));
}

static int teardown(void **state)
{
    if (*state)
        close_bench(*state);
    free(*state);
    return 0;
}

static CUdeviceptr take(struct bench *b, unsigned gpu, size_t bytes)
{
    CUdeviceptr at = 0;

    use(b, gpu);
    assert_int_equal(b->d.cuMemAlloc(&at, bytes), CUDA_SUCCESS);
    return at;
}

static void *pinned(struct bench *b, size_t bytes)
{
    void *at = NULL;

    assert_int_equal(b->d.cuMemHostAlloc(&at, bytes, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
    return at;
}

static CUdeviceptr ptr(const void *at)
{
    return (CUdeviceptr)(uintptr_t)at;
}

static void launch(struct bench *b, unsigned gpu, const char *name, unsigned grid, unsigned block,
                   void *args)
{
    CUfunction function;
    void *params[] = {args};

    use(b, gpu);
    assert_int_equal(b->d.cuModuleGetFunction(&function, b->module[gpu], name), CUDA_SUCCESS);
    assert_int_equal(
        b->d.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, b->stream[gpu], params, NULL),
        CUDA_SUCCESS);
}

static void hold(struct bench *b, unsigned gpu, uint32_t turn)
{
    struct gpu_spin_args args = {b->words, turn, b->words + 1, 2000000000u};

    launch(b, gpu, "spin", 1, 1, &args);
}

static void copy(struct bench *b, unsigned gpu, CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    use(b, gpu);
    assert_int_equal(b->d.cuMemcpyAsync(dst, src, bytes, b->stream[gpu]), CUDA_SUCCESS);
}

static void wait(struct bench *b, unsigned gpu)
{
    use(b, gpu);
    assert_int_equal(b->d.cuStreamSynchronize(b->stream[gpu]), CUDA_SUCCESS);
}

TEST_WITH(effects_come_when_the_host_waits, setup, teardown)
{
    struct bench *b = *state;
    uint32_t *from, *to;
    CUdeviceptr there;

    open_bench(b, 1, PLAIN, NULL);
    from = pinned(b, 4096);
    to = pinned(b, 4096);
    there = take(b, 0, 4096);
    from[7] = 1;
    to[7] = 0;
    copy(b, 0, there, ptr(from), 4096);
    copy(b, 0, ptr(to), there, 4096);
    usleep(3000); /* both are long over by the device's time */
    assert_int_equal(to[7], 0);
    from[7] = 2; /* a program that did not wait: the copy takes what it finds */
    wait(b, 0);
    assert_int_equal(to[7], 2);
}

/* What was copied before is copied again when either side has changed since. */
TEST_WITH(nothing_stale, setup, teardown)
{
    struct bench *b = *state;
    CUdeviceptr x, y;
    uint32_t *in, *out;

    open_bench(b, 1, PLAIN, NULL);
    in = pinned(b, 4096);
    out = pinned(b, 4096);
    x = take(b, 0, 4096);
    y = take(b, 0, 4096);
    for (uint32_t round = 1; round < 4; round++) {
        in[9] = round;
        copy(b, 0, x, ptr(in), 4096);
        copy(b, 0, y, x, 4096);
        copy(b, 0, y, x, 4096);
        copy(b, 0, ptr(out), y, 4096);
        wait(b, 0);
        assert_int_equal(out[9], round);
        assert_int_equal(b->d.cuMemsetD32Async(y, 77, 1024, b->stream[0]), 0);
        copy(b, 0, ptr(out), y, 4096);
        wait(b, 0);
        assert_int_equal(out[9], 77);
    }
    out[9] = 5;
    copy(b, 0, ptr(out), y, 4096); /* the host changed what it goes to */
    wait(b, 0);
    assert_int_equal(out[9], 77);
}

/* Each simulated library bears the mark by which what is measured on it is called simulated. */
TEST(all_bear_the_mark)
{
    glob_t found;

    assert_int_equal(glob(SIM_DIR "/lib*.so.*", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 2);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        void *library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);

        assert_non_null(library);
        assert_non_null(dlsym(library, "plumb_simulated"));
        dlclose(library);
    }
    globfree(&found);
}

static CUresult drain(struct bench *b)
{
    use(b, 0);
    return b->d.cuStreamSynchronize(b->stream[0]);
}

static void touch(struct bench *b, CUdeviceptr at)
{
    struct gpu_pass_args args = {.dst = (void *)at, .bytes = 4096, .passes = 1};

    launch(b, 0, "write_f32_u1", 1, 32, &args);
}

/* After an error every call fails, until a reset. */
static void reopen(struct bench *b, unsigned gpu)
{
    CUcontext again;

    assert_int_equal(b->d.cuDevicePrimaryCtxReset((CUdevice)gpu), 0);
    assert_int_equal(b->d.cuCtxSetCurrent(b->context[gpu]), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(b->d.cuDevicePrimaryCtxRelease((CUdevice)gpu), 0);
    assert_int_equal(b->d.cuDevicePrimaryCtxRetain(&again, (CUdevice)gpu), 0);
    b->context[gpu] = again;
    use(b, gpu);
    assert_int_equal(b->d.cuStreamCreate(&b->stream[gpu], 0), 0);
    assert_int_equal(b->d.cuModuleLoadData(&b->module[gpu], image), 0);
}

/* After a wrong address every call fails until a reset, and the other device goes on. */
TEST_WITH(an_error_lasts_until_a_reset, setup, teardown)
{
    struct bench *b = *state;
    CUdeviceptr freed, there;

    open_bench(b, 2, "[machine]\ngpus = 2\n" PLAIN, "peer_refused:gpu=1");
    there = take(b, 1, 4096);
    use(b, 1);
    assert_int_equal(b->d.cuCtxEnablePeerAccess(b->context[0], 0),
                     CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    freed = take(b, 0, 4096);
    assert_int_equal(b->d.cuMemFree(freed), 0);
    assert_int_not_equal(take(b, 0, 4096), freed);
    assert_int_equal(b->d.cuMemFree(freed), CUDA_ERROR_INVALID_VALUE);
    touch(b, there); /* a peer's memory, not enabled */
    assert_int_equal(drain(b), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(b->d.cuMemAlloc(&freed, 8), CUDA_ERROR_ILLEGAL_ADDRESS);
    use(b, 1);
    assert_int_equal(b->d.cuCtxSynchronize(), 0);
    reopen(b, 0);
    assert_int_equal(b->d.cuCtxEnablePeerAccess(b->context[1], 0), 0);
    touch(b, there);
    assert_int_equal(drain(b), 0);
    b->words = pinned(b, 4096);
    b->words[0] = 0;
    hold(b, 1, 1);
    use(b, 0);
    assert_int_equal(b->d.cuMemFreeHost(b->words), 0); /* what a held stream looks at */
    use(b, 1);
    assert_int_equal(b->d.cuStreamSynchronize(b->stream[1]), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* A write, a copy and a chain that leave memory of 4096 bytes, or are askew. */
TEST_WITH(addresses_are_checked, setup, teardown)
{
    static const struct {
        char way;
        int64_t offset;
        CUresult rc;
    } cases[] = {{'w', 8, CUDA_ERROR_ILLEGAL_ADDRESS},    {'w', -4088, CUDA_ERROR_ILLEGAL_ADDRESS},
                 {'a', 8, CUDA_ERROR_MISALIGNED_ADDRESS}, {'f', 0, CUDA_ERROR_ILLEGAL_ADDRESS},
                 {'c', 0, CUDA_ERROR_ILLEGAL_ADDRESS},    {'l', 4088, 0},
                 {'l', 4096, CUDA_ERROR_ILLEGAL_ADDRESS}, {'l', -8, CUDA_ERROR_ILLEGAL_ADDRESS},
                 {'l', 12, CUDA_ERROR_MISALIGNED_ADDRESS}};
    struct bench *b = *state;

    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char way = cases[i].way;
        open_bench(b, 1, PLAIN, NULL);
        CUdeviceptr at = take(b, 0, way == 'a' ? 8192 : 4096), other = take(b, 0, 4096);
        uint64_t *first = pinned(b, 8);
        struct gpu_chase_args chain = {(void *)at, 2, first};
        if (way == 'f' || way == 'c') /* freed before */
            assert_int_equal(b->d.cuMemFree(at), 0);
        if (way == 'c') {
            copy(b, 0, other, at, 16);
        } else if (way == 'l') {
            *first = at + (uint64_t)cases[i].offset;
            copy(b, 0, at, ptr(first), 8);
            launch(b, 0, "chase", 1, 1, &chain);
        } else {
            touch(b, at + (uint64_t)cases[i].offset);
        }
        assert_int_equal(drain(b), cases[i].rc);
        close_bench(b);
    }
}

#endif
