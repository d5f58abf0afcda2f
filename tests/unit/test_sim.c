/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device (tests/sim): order, effects that come when the host waits, and wrong
 * addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/sim_bench.h"

#ifdef SIM_BENCH

#include <glob.h>

static void effects_come_when_the_host_waits(void **state)
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
static void nothing_stale(void **state)
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
static void all_bear_the_mark(void **state)
{
    glob_t found;

    (void)state;
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
static void an_error_lasts_until_a_reset(void **state)
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
static void addresses_are_checked(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(effects_come_when_the_host_waits),
        SIM_TEST(nothing_stale),
        cmocka_unit_test(all_bear_the_mark),
        SIM_TEST(an_error_lasts_until_a_reset),
        SIM_TEST(addresses_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
