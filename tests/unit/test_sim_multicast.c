/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device's multicast objects: each rule of the driver's manual left out once, and what
 * one store does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/sim_bench.h"

#ifdef SIM_BENCH

#define OBJECT ((size_t)2 * MIB)
#define SHARED 1

#define MACHINE                                                                                    \
    "[machine]\ngpus = 3\n[gpu]\nmulticast = yes\n[gpu 2]\nmulticast = no\n" PLAIN "kind = "       \
    "nvlink\n"

#define REFUSED(call) assert_int_not_equal((call), CUDA_SUCCESS)
#define DONE(call)    assert_int_equal((call), CUDA_SUCCESS)

static void open_multicast(struct bench *b)
{
    open_bench(b, 3, MACHINE, NULL);
#define FIND_MORE(name) FIND(name)
    CUDA_BY_HANDLE(FIND_MORE)
    FIND(cuMulticastCreate)
    FIND(cuMulticastAddDevice)
    FIND(cuMulticastBindMem)
    FIND(cuMulticastUnbind)
    FIND(cuMulticastGetGranularity)
}

static CUmemGenericAllocationHandle memory_of(struct bench *b, unsigned gpu, int kind)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = (CUmemAllocationHandleType)kind,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)gpu}};
    CUmemGenericAllocationHandle handle = 0;

    use(b, gpu);
    DONE(b->d.cuMemCreate(&handle, OBJECT, &prop, 0));
    return handle;
}

static CUresult map(struct bench *b, unsigned gpu, CUmemGenericAllocationHandle handle,
                    size_t alignment, CUdeviceptr *at)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)gpu},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    use(b, gpu);
    DONE(b->d.cuMemAddressReserve(at, OBJECT, alignment, 0, 0));
    CUresult rc = b->d.cuMemMap(*at, OBJECT, 0, handle, 0);
    return rc ? rc : b->d.cuMemSetAccess(*at, OBJECT, &access, 1);
}

static void rules(void **state)
{
    const struct cuda_multicast odd = {2, OBJECT / 2, SHARED, 0}, right = {2, OBJECT, SHARED, 0};
    CUmemGenericAllocationHandle object, first, second, unshared;
    struct bench *b = *state;
    CUdeviceptr all;

    open_multicast(b);
    REFUSED(b->d.cuMulticastCreate(&object, &odd));
    DONE(b->d.cuMulticastCreate(&object, &right));
    REFUSED(b->d.cuMulticastAddDevice(object, 2)); /* has no multicast */
    DONE(b->d.cuMulticastAddDevice(object, 0));
    REFUSED(b->d.cuMulticastAddDevice(object, 0));
    first = memory_of(b, 0, SHARED);
    REFUSED(b->d.cuMulticastBindMem(object, 0, first, 0, OBJECT, 0)); /* one is not added yet */
    REFUSED(map(b, 0, object, OBJECT, &all));
    DONE(b->d.cuMulticastAddDevice(object, 1));
    DONE(b->d.cuMulticastBindMem(object, 0, first, 0, OBJECT, 0));
    unshared = memory_of(b, 1, 0);
    REFUSED(b->d.cuMulticastBindMem(object, 0, unshared, 0, OBJECT, 0));
    second = memory_of(b, 1, SHARED);
    REFUSED(b->d.cuMulticastBindMem(object, 0, second, 0, OBJECT / 2, 0));
    DONE(b->d.cuMulticastBindMem(object, 0, second, 0, OBJECT, 0));
    REFUSED(map(b, 0, object, 0, &all)); /* room that may lie anywhere */
    DONE(map(b, 0, object, OBJECT, &all));
    REFUSED(b->d.cuMulticastUnbind(object, 1, 0, OBJECT / 2));
    DONE(b->d.cuMulticastUnbind(object, 1, 0, OBJECT));
    REFUSED(b->d.cuMulticastUnbind(object, 1, 0, OBJECT));
}

struct team {
    CUdeviceptr all, at[2], src;
};

static struct team team(struct bench *b)
{
    const struct cuda_multicast properties = {2, OBJECT, SHARED, 0};
    CUmemGenericAllocationHandle object;
    struct team t;

    DONE(b->d.cuMulticastCreate(&object, &properties));
    for (unsigned i = 0; i < 2; i++)
        DONE(b->d.cuMulticastAddDevice(object, (int)i));
    for (unsigned i = 0; i < 2; i++) {
        CUmemGenericAllocationHandle memory = memory_of(b, i, SHARED);
        DONE(b->d.cuMulticastBindMem(object, 0, memory, 0, OBJECT, 0));
        DONE(map(b, i, memory, 0, &t.at[i]));
    }
    DONE(map(b, 0, object, OBJECT, &t.all));
    t.src = take(b, 0, 4096);
    return t;
}

/* The same store, again and again: what stood there meanwhile must not stay. */
static void one_store_reaches_all(void **state)
{
    struct bench *b = *state;
    open_multicast(b);
    struct team t = team(b);
    struct gpu_fill_args fill = {(void *)t.src, 512, 0, 7, GPU_U64, GPU_RANDOM};
    struct gpu_copy_args args = {(void *)(t.all + 8192), (void *)t.src, 4096, 1};
    uint64_t *seen = pinned(b, 8);

    launch(b, 0, "fill", 4, 256, &fill);
    for (unsigned round = 1; round < 4; round++) {
        for (unsigned i = 0; i < 2; i++) {
            use(b, i);
            DONE(b->d.cuMemsetD32Async(t.at[i], round, 8192, b->stream[i]));
            wait(b, i);
        }
        launch(b, 0, "multicast16", 1, 256, &args);
        wait(b, 0);
        for (unsigned i = 0; i < 2; i++) {
            copy(b, i, ptr(seen), t.at[i] + 8192 + 2048, 8);
            wait(b, i);
            assert_int_equal(*seen, gpu_hash(7, 256));
            copy(b, i, ptr(seen), t.at[i] + 8192 + 4096, 8);
            wait(b, i);
            assert_int_equal(*seen, round * UINT64_C(0x100000001));
        }
    }
}

static void nothing_else_goes_there(void **state)
{
    struct bench *b = *state;

    for (unsigned way = 0; way < 5; way++) {
        open_multicast(b);
        struct team t = team(b);
        struct gpu_copy_args to = {(void *)t.all, (void *)t.src, 4096, 1},
                             from = {(void *)t.src, (void *)t.all, 4096, 1},
                             plain = {(void *)t.at[0], (void *)t.src, 4096, 1};
        if (way == 0)
            launch(b, 0, "copy16", 1, 256, &to);
        else if (way == 1)
            launch(b, 0, "multicast16", 1, 256, &from);
        else if (way == 2)
            launch(b, 0, "multicast16", 1, 256, &plain);
        else if (way == 3)
            copy(b, 0, t.all, t.src, 64);
        else
            DONE(b->d.cuMemsetD32Async(t.all, 1, 64, b->stream[0]));
        use(b, 0);
        assert_int_equal(b->d.cuStreamSynchronize(b->stream[0]), CUDA_ERROR_ILLEGAL_ADDRESS);
        close_bench(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(rules),
        SIM_TEST(one_store_reaches_all),
        SIM_TEST(nothing_else_goes_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
