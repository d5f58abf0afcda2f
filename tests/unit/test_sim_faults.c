/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device when something is wrong: descriptions, pointers, and faults on demand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/sim_bench.h"

#ifdef SIM_BENCH

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

static void no_description_no_device(void **state)
{
    struct bench *b = *state;

    open_raw(b, PLAIN, NULL);
    unsetenv("PLUMB_SIM_MACHINE");
    assert_int_equal(b->d.cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void bad_descriptions(void **state)
{
    static const char *const bad[] = {
        "[gpu]\nhbm = 3\n", "[gpus]\n",          "x = 1\n",           "[gpu 99]\n",
        "[link 1 1]\n",     "[gpu]\nsms = -1\n", "[gpu]\necc = on\n", "[machine]\ngpus = 17\n"};
    struct bench *b = *state;

    for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        open_raw(b, bad[i], NULL);
        assert_int_equal(b->d.cuInit(0), CUDA_ERROR_NO_DEVICE);
    }
    open_raw(b, PLAIN, "no_such_fault");
    assert_int_equal(b->d.cuInit(0), CUDA_ERROR_NO_DEVICE);
    open_raw(b, PLAIN, "ecc:gpu=x");
    assert_int_equal(b->d.cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void nothing_starts(void **state)
{
    struct bench *b = *state;
    int version = 0;

    open_raw(b, PLAIN, "no_device");
    assert_int_equal(b->d.cuInit(0), CUDA_ERROR_NO_DEVICE);
    setenv("PLUMB_SIM_FAULT", "not_permitted", 1);
    assert_int_equal(b->d.cuInit(0), CUDA_ERROR_OPERATING_SYSTEM);
    setenv("PLUMB_SIM_FAULT", "old_driver:version=11080", 1);
    assert_int_equal(b->d.cuDriverGetVersion(&version), 0);
    assert_int_equal(version, 11080);
}

static void errors_by_number(void **state)
{
    struct bench *b = *state;
    CUdeviceptr at;

    open_bench(b, 1, PLAIN, "error:call=cuMemAlloc:code=999:after=1");
    assert_int_equal(b->d.cuMemAlloc(&at, 8), 0);
    assert_int_equal(b->d.cuMemAlloc(&at, 8), 999);
}

static void freed_memory(void **state)
{
    struct bench *b = *state;
    CUdeviceptr freed, other;

    open_bench(b, 1, PLAIN, NULL);
    freed = take(b, 0, 4096);
    assert_int_equal(b->d.cuMemFree(freed), 0);
    other = take(b, 0, 4096);
    assert_int_not_equal(freed, other);
    assert_int_equal(b->d.cuMemFree(freed), CUDA_ERROR_INVALID_VALUE);
    touch(b, freed);
    assert_int_equal(drain(b), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(b->d.cuMemAlloc(&other, 8), CUDA_ERROR_ILLEGAL_ADDRESS);
    reopen(b, 0);
    other = take(b, 0, 4096);
    touch(b, other);
    assert_int_equal(drain(b), 0);
}

static void a_copy_of_freed_memory(void **state)
{
    struct bench *b = *state;
    CUdeviceptr freed, other;

    open_bench(b, 1, PLAIN, NULL);
    freed = take(b, 0, 4096);
    other = take(b, 0, 4096);
    assert_int_equal(b->d.cuMemFree(freed), 0);
    copy(b, 0, other, freed, 16);
    assert_int_equal(drain(b), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void beyond_the_end_and_askew(void **state)
{
    struct bench *b = *state;
    CUdeviceptr at;

    open_bench(b, 1, PLAIN, NULL);
    at = take(b, 0, 4096);
    touch(b, at + 8);
    assert_int_equal(drain(b), CUDA_ERROR_ILLEGAL_ADDRESS); /* its end is beyond */
    reopen(b, 0);
    at = take(b, 0, 8192);
    touch(b, at + 8);
    assert_int_equal(drain(b), CUDA_ERROR_MISALIGNED_ADDRESS);
}

static void peers_are_out_of_reach(void **state)
{
    struct bench *b = *state;
    CUdeviceptr there;

    open_bench(b, 2, "[machine]\ngpus = 2\n" PLAIN, "peer_refused:gpu=1");
    there = take(b, 1, 4096);
    use(b, 1);
    assert_int_equal(b->d.cuCtxEnablePeerAccess(b->context[0], 0),
                     CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    touch(b, there);
    assert_int_equal(drain(b), CUDA_ERROR_ILLEGAL_ADDRESS);
    use(b, 1);
    assert_int_equal(b->d.cuCtxSynchronize(), 0); /* the other device goes on */
    reopen(b, 0);
    use(b, 0);
    assert_int_equal(b->d.cuCtxEnablePeerAccess(b->context[1], 0), 0);
    touch(b, there);
    assert_int_equal(drain(b), 0);
}

static void memory_runs_out(void **state)
{
    struct bench *b = *state;
    size_t left, total;
    CUdeviceptr at;

    open_bench(b, 1, PLAIN "[gpu]\nmemory_bytes = 256M\nreserved_bytes = 56M\n",
               "out_of_memory:call=cuMemAllocManaged:above=1000");
    assert_int_equal(b->d.cuMemGetInfo(&left, &total), 0);
    assert_int_equal(left, 200 * MIB);
    assert_int_equal(b->d.cuMemAlloc(&at, 150 * MIB), 0);
    assert_int_equal(b->d.cuMemAlloc(&at, 51 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(b->d.cuMemAlloc(&at, 50 * MIB), 0);
    assert_int_equal(b->d.cuMemAlloc(&at, 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(b->d.cuMemAllocManaged(&at, 1001, CU_MEM_ATTACH_GLOBAL),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(b->d.cuMemAllocManaged(&at, 1000, CU_MEM_ATTACH_GLOBAL), 0);
}

static void kernels_fail(void **state)
{
    static const struct {
        const char *fault;
        CUresult error;
    } faults[] = {{"launch_failed:after=1", CUDA_ERROR_LAUNCH_FAILED},
                  {"illegal_address:kernel=write_f32_u1:after=1", CUDA_ERROR_ILLEGAL_ADDRESS},
                  {"ecc:after=1:gpu=0", CUDA_ERROR_ECC_UNCORRECTABLE}};
    struct bench *b = *state;
    CUdeviceptr at;

    for (unsigned i = 0; i < 3; i++) {
        open_bench(b, 1, PLAIN, faults[i].fault);
        at = take(b, 0, 4096);
        touch(b, at);
        assert_int_equal(drain(b), 0);
        touch(b, at);
        assert_int_equal(drain(b), faults[i].error);
        assert_int_equal(drain(b), faults[i].error);
        reopen(b, 0);
        touch(b, take(b, 0, 4096));
        assert_int_equal(drain(b), 0); /* it strikes once */
        close_bench(b);
    }
}

static void a_lost_device_stays_lost(void **state)
{
    struct bench *b = *state;
    CUcontext context;
    CUdeviceptr at;

    open_bench(b, 2, "[machine]\ngpus = 2\n" PLAIN, "lost:gpu=0:after=1");
    at = take(b, 0, 4096);
    touch(b, at);
    assert_int_equal(drain(b), 0);
    touch(b, at);
    assert_int_equal(drain(b), CUDA_ERROR_UNKNOWN);
    assert_int_equal(b->d.cuMemAlloc(&at, 8), CUDA_ERROR_UNKNOWN);
    assert_int_equal(b->d.cuDevicePrimaryCtxReset(0), 0);
    assert_int_equal(b->d.cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
    take(b, 1, 4096);
    b->context[0] = NULL;
}

/* Data that a failing operation should have brought is not there. */
static void a_failed_kernel_does_nothing(void **state)
{
    struct bench *b = *state;
    uint32_t *out;
    CUdeviceptr at;

    open_bench(b, 1, PLAIN, "launch_failed");
    out = pinned(b, 4096);
    at = take(b, 0, 4096);
    out[0] = 1;
    touch(b, at);
    copy(b, 0, ptr(out), at, 4096);
    assert_int_equal(drain(b), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(out[0], 1);
}

static void one_byte_goes_wrong(void **state)
{
    struct bench *b = *state;
    unsigned char *in, *out;
    unsigned wrong = 0;
    CUdeviceptr at;

    open_bench(b, 1, PLAIN, "corrupt:kernel=copy:after=1:times=1");
    in = pinned(b, 4096);
    out = pinned(b, 4096);
    at = take(b, 0, 4096);
    memset(in, 3, 4096);
    copy(b, 0, at, ptr(in), 4096);
    copy(b, 0, ptr(out), at, 4096);
    assert_int_equal(drain(b), 0);
    for (unsigned i = 0; i < 4096; i++)
        wrong += out[i] != 3;
    assert_int_equal(wrong, 1);
    copy(b, 0, ptr(out), at, 4096);
    assert_int_equal(drain(b), 0);
    assert_memory_equal(in, out, 4096);
}

static void something_hangs(void **state)
{
    struct bench *b = *state;
    CUdeviceptr at;

    open_bench(b, 1, PLAIN, "hang:kernel=write_f32_u1");
    at = take(b, 0, 4096);
    touch(b, at);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(b->d.cuStreamQuery(b->stream[0]), CUDA_ERROR_NOT_READY);
        usleep(1000);
    }
}

static void a_link_is_slow(void **state)
{
    struct bench *b = *state;
    CUdeviceptr at[3];

    open_bench(b, 3, "[machine]\ngpus = 3\n" PLAIN "[link all]\nkind = nvlink\ngbps = 40\n",
               "slow_link:gpu=2:peer=0:factor=0.25");
    for (unsigned i = 0; i < 3; i++)
        at[i] = take(b, i, MIB);
    for (unsigned i = 1; i < 3; i++) {
        use(b, 0);
        assert_int_equal(b->d.cuCtxEnablePeerAccess(b->context[i], 0), 0);
        about(rate(b, 0, at[i], at[0], MIB), i == 2 ? 10 : 40, 0.01);
        about(rate(b, 0, at[0], at[i], MIB), i == 2 ? 10 : 40, 0.01);
    }
}

static void no_managed_memory(void **state)
{
    struct bench *b = *state;
    CUdeviceptr at;
    int managed = 1;

    open_bench(b, 1, PLAIN, "no_managed,no_kernel:kernel=empty");
    assert_int_equal(b->d.cuDeviceGetAttribute(&managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0), 0);
    assert_int_equal(managed, 0);
    assert_int_equal(b->d.cuMemAllocManaged(&at, 8, CU_MEM_ATTACH_GLOBAL),
                     CUDA_ERROR_NOT_SUPPORTED);
    CUfunction function;
    assert_int_equal(b->d.cuModuleGetFunction(&function, b->module[0], "empty"),
                     CUDA_ERROR_NOT_FOUND);
    assert_int_equal(b->d.cuModuleGetFunction(&function, b->module[0], "spin"), 0);
}

/* What a held stream looks at is another device's to free. */
static void the_word_is_freed(void **state)
{
    struct bench *b = *state;

    open_bench(b, 2, "[machine]\ngpus = 2\n" PLAIN, NULL);
    hold(b, 1, 1);
    assert_int_equal(b->d.cuStreamQuery(b->stream[1]), CUDA_ERROR_NOT_READY);
    use(b, 0);
    assert_int_equal(b->d.cuMemFreeHost(b->words), 0);
    use(b, 1);
    assert_int_equal(b->d.cuStreamSynchronize(b->stream[1]), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* A handle that is gone is known for one. */
static void handles_go(void **state)
{
    struct bench *b = *state;
    CUstream stream;
    CUevent e;

    open_bench(b, 1, PLAIN, NULL);
    assert_int_equal(b->d.cuStreamCreate(&stream, 0), 0);
    assert_int_equal(b->d.cuStreamDestroy(stream), 0);
    assert_int_equal(b->d.cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    e = event(b, 0);
    assert_int_equal(b->d.cuEventDestroy(e), 0);
    assert_int_equal(b->d.cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(b->d.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(b->d.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

/* As CUDA has it: a driver that was started is of no use to a child, which learns so from each call. */
static void a_forked_child_has_no_driver(void **state)
{
    struct bench *b = *state;
    CUresult told[3] = {0};
    int ends[2], count = 0;

    open_bench(b, 1, PLAIN, NULL);
    assert_int_equal(pipe(ends), 0);
    if (!fork()) {
        told[0] = b->d.cuInit(0);
        told[1] = b->d.cuDeviceGetCount(&count);
        told[2] = b->d.cuCtxSetCurrent(b->context[0]);
        _exit(write(ends[1], told, sizeof(told)) != sizeof(told));
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], told, sizeof(told)), sizeof(told));
    close(ends[0]);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(told[i], CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(b->d.cuDeviceGetCount(&count), 0); /* the parent goes on */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(no_description_no_device),
        SIM_TEST(bad_descriptions),
        SIM_TEST(nothing_starts),
        SIM_TEST(errors_by_number),
        SIM_TEST(freed_memory),
        SIM_TEST(a_copy_of_freed_memory),
        SIM_TEST(beyond_the_end_and_askew),
        SIM_TEST(peers_are_out_of_reach),
        SIM_TEST(memory_runs_out),
        SIM_TEST(kernels_fail),
        SIM_TEST(a_lost_device_stays_lost),
        SIM_TEST(a_failed_kernel_does_nothing),
        SIM_TEST(one_byte_goes_wrong),
        SIM_TEST(something_hangs),
        SIM_TEST(a_link_is_slow),
        SIM_TEST(no_managed_memory),
        SIM_TEST(the_word_is_freed),
        SIM_TEST(handles_go),
        SIM_TEST(a_forked_child_has_no_driver),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
