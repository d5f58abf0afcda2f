/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the simulated device (tests/sim): a machine made of lines of text, with the simulated
 * driver loaded for it alone, and the calls that every test makes. Include cmocka's headers first. Without
 * cuda.h it is a main() that skips, and SIM_BENCH is not defined.
 */
#ifndef PLUMB_TESTS_UNIT_SIM_BENCH_H
#define PLUMB_TESTS_UNIT_SIM_BENCH_H

#if !__has_include(<cuda.h>) || defined(SIM_ABSENT)

static void needs_cuda(void **state)
{
    (void)state;
    print_message("the simulated device was not built: it needs nvcc and cuda.h\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(needs_cuda)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
#define SIM_BENCH

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/hw/cuda/gpu_cuda.h"
#include "core/hw/gpu_kernels.h"

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
static inline void open_raw(struct bench *b, const char *lines, const char *faults)
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

static inline void use(struct bench *b, unsigned gpu)
{
    assert_int_equal(b->d.cuCtxSetCurrent(b->context[gpu]), CUDA_SUCCESS);
}

static const uint32_t image[8] = {0xba55ed50u, 1, 16}; /* a header of machine code */

static inline void open_bench(struct bench *b, unsigned n, const char *lines, const char *faults)
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

/* For cmocka: the state is a struct bench; what a test opened is closed, so that the next one has the
 * library anew. */
static inline int setup(void **state)
{
    *state = calloc(1, sizeof(struct bench));
    return *state ? 0 : -1;
}

/* A test may open another machine after this. */
static inline void close_bench(struct bench *b)
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

static inline int teardown(void **state)
{
    if (*state)
        close_bench(*state);
    free(*state);
    return 0;
}

#define SIM_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static inline CUdeviceptr take(struct bench *b, unsigned gpu, size_t bytes)
{
    CUdeviceptr at = 0;

    use(b, gpu);
    assert_int_equal(b->d.cuMemAlloc(&at, bytes), CUDA_SUCCESS);
    return at;
}

static inline void *pinned(struct bench *b, size_t bytes)
{
    void *at = NULL;

    assert_int_equal(b->d.cuMemHostAlloc(&at, bytes, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
    return at;
}

static inline CUdeviceptr ptr(const void *at)
{
    return (CUdeviceptr)(uintptr_t)at;
}

static inline void launch(struct bench *b, unsigned gpu, const char *name, unsigned grid,
                          unsigned block, void *args)
{
    CUfunction function;
    void *params[] = {args};

    use(b, gpu);
    assert_int_equal(b->d.cuModuleGetFunction(&function, b->module[gpu], name), CUDA_SUCCESS);
    assert_int_equal(
        b->d.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, b->stream[gpu], params, NULL),
        CUDA_SUCCESS);
}

static inline void hold(struct bench *b, unsigned gpu, uint32_t turn)
{
    struct gpu_spin_args args = {b->words, turn, b->words + 1, 2000000000u};

    launch(b, gpu, "spin", 1, 1, &args);
}

static inline void release(struct bench *b, uint32_t turn)
{
    __atomic_store_n(b->words, turn, __ATOMIC_RELEASE);
}

static inline void copy(struct bench *b, unsigned gpu, CUdeviceptr dst, CUdeviceptr src,
                        size_t bytes)
{
    use(b, gpu);
    assert_int_equal(b->d.cuMemcpyAsync(dst, src, bytes, b->stream[gpu]), CUDA_SUCCESS);
}

static inline void wait(struct bench *b, unsigned gpu)
{
    use(b, gpu);
    assert_int_equal(b->d.cuStreamSynchronize(b->stream[gpu]), CUDA_SUCCESS);
}

#endif
#endif
