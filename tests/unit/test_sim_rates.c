/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device: copies take as long as the description says, and share what they go over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/sim_bench.h"

#ifdef SIM_BENCH

#include <pthread.h>
#include <sched.h>

static void copies_have_their_rates(void **state)
{
    struct bench *b = *state;
    CUdeviceptr here, there;
    void *host;

    open_bench(b, 1, PLAIN "[gpu]\nh2d_gbps = 10\nd2h_gbps = 8\nd2d_gbps = 40\n", NULL);
    here = take(b, 0, 4 * MIB);
    there = take(b, 0, 4 * MIB);
    host = pinned(b, 4 * MIB);
    about(rate(b, 0, here, ptr(host), 4 * MIB), 10, 0.01);
    about(rate(b, 0, ptr(host), here, 4 * MIB), 8, 0.01);
    about(rate(b, 0, there, here, 4 * MIB), 40, 0.01);
}

static void latency_comes_first(void **state)
{
    struct bench *b = *state;
    CUdeviceptr here;
    void *host;

    open_bench(b, 1, "[gpu]\nh2d_latency_us = 7\nh2d_gbps = 10\n", NULL);
    here = take(b, 0, MIB);
    host = pinned(b, MIB);
    about(8 / rate(b, 0, here, ptr(host), 8), 7000, 0.01);
    about(MIB / rate(b, 0, here, ptr(host), MIB), 7000 + MIB / 10.0, 0.01);
}

/* Both ways between two streams; the sums. */
static void both_directions_share(void **state)
{
    struct bench *b = *state;
    CUdeviceptr here, there;
    struct timed t[2];
    CUstream first;
    void *host[2];

    open_bench(b, 1, PLAIN "[gpu]\nh2d_gbps = 10\nd2h_gbps = 10\nboth_gbps = 16\n", NULL);
    here = take(b, 0, 4 * MIB);
    there = take(b, 0, 4 * MIB);
    host[0] = pinned(b, 4 * MIB);
    host[1] = pinned(b, 4 * MIB);
    t[0] = timed_begin(b, 0, 1);
    copy(b, 0, here, ptr(host[0]), 4 * MIB);
    timed_end(&t[0]);
    first = b->stream[0];
    assert_int_equal(b->d.cuStreamCreate(&b->stream[0], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    t[1] = timed_begin(b, 0, 1);
    copy(b, 0, ptr(host[1]), there, 4 * MIB);
    timed_end(&t[1]);
    release(b, 1);
    about(4 * MIB / timed_ns(&t[1]), 8, 0.01);
    b->stream[0] = first;
    about(4 * MIB / timed_ns(&t[0]), 8, 0.01);
}

static void an_uplink_is_shared(void **state)
{
    struct bench *b = *state;
    CUdeviceptr here[2];
    struct timed t[2];
    double first = 0, second = 0;
    void *host;

    open_bench(b, 2,
               "[machine]\ngpus = 2\n[switch s]\nuplink_gbps = 12\n" PLAIN
               "[gpu]\nswitch = s\nh2d_gbps = 10\n",
               NULL);
    host = pinned(b, 4 * MIB);
    for (unsigned i = 0; i < 2; i++)
        here[i] = take(b, i, 4 * MIB);
    /* 6 and 6 GB/s; when the first is done the second has the rest at its own 10. A thread that this machine lets wait
     * begins later than the other: then once more. */
    for (unsigned go = 0; go < 20 && !is_about(first, 2 * MIB / 6.0, 0.01); go++) {
        uint32_t turn = ++b->turn;

        for (unsigned i = 0; i < 2; i++) {
            t[i] = timed_begin(b, i, turn);
            copy(b, i, here[i], ptr(host), 2 * MIB * (i + 1));
            timed_end(&t[i]);
        }
        release(b, turn);
        first = timed_ns(&t[0]);
        second = timed_ns(&t[1]);
    }
    about(first, 2 * MIB / 6.0, 0.01);
    about(second, 2 * MIB / 6.0 + 2 * MIB / 10.0, 0.01);
}

#define EIGHT                                                                                      \
    PLAIN "[machine]\ngpus = 8\np2p_switch_gbps = 11\np2p_bridge_gbps = 9\np2p_cross_gbps = 7\n"   \
          "[switch a]\n[gpu 0]\nswitch = a\n[gpu 1]\nswitch = a\n[gpu 2]\nswitch = a\n"            \
          "[gpu 4]\nnuma_node = 1\n[link 0 1]\nkind = nvlink\ngbps = 40\nboth_gbps = 60\n"         \
          "[link 0 5]\nkind = none\n[gpu]\nh2d_gbps = 12\nd2h_gbps = 12\nboth_gbps = 24\n"

static void peers_have_their_links(void **state)
{
    static const struct {
        unsigned to;
        double gbps;
    } links[] = {{1, 40}, {2, 11}, {3, 9}, {4, 7}};
    struct bench *b = *state;
    CUdeviceptr at[6];
    int can = 0;

    open_bench(b, 6, EIGHT, NULL);
    for (unsigned i = 0; i < 6; i++)
        at[i] = take(b, i, MIB);
    for (unsigned i = 0; i < 4; i++) {
        unsigned to = links[i].to;

        about(rate(b, 0, at[to], at[0], MIB), 12 * 0.45, 0.01); /* through the host */
        use(b, 0);
        assert_int_equal(b->d.cuCtxEnablePeerAccess(b->context[to], 0), CUDA_SUCCESS);
        assert_int_equal(b->d.cuCtxEnablePeerAccess(b->context[to], 0),
                         CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
        about(rate(b, 0, at[to], at[0], MIB), links[i].gbps, 0.01);
        about(rate(b, 0, at[0], at[to], MIB), links[i].gbps, 0.01);
        about(rate(b, to, at[to], at[0], MIB), 12 * 0.45, 0.01); /* the other has not enabled it */
        use(b, 0);
        assert_int_equal(b->d.cuCtxDisablePeerAccess(b->context[to]), CUDA_SUCCESS);
        about(rate(b, 0, at[to], at[0], MIB), 12 * 0.45, 0.01);
    }
    assert_int_equal(b->d.cuDeviceCanAccessPeer(&can, 0, 5), CUDA_SUCCESS);
    assert_int_equal(can, 0);
    use(b, 0);
    assert_int_equal(b->d.cuCtxEnablePeerAccess(b->context[5], 0),
                     CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

/* Host memory of another node: what is bound to that node's CPUs takes it there. */
static void remote_memory_is_slower(void **state)
{
    struct bench *b = *state;
    CUdeviceptr here;

    open_bench(b, 1, PLAIN "[machine]\nremote_factor = 0.5\nhost_node = 1\n[gpu]\nh2d_gbps = 10\n",
               NULL);
    here = take(b, 0, MIB);
    about(rate(b, 0, here, ptr(pinned(b, MIB)), MIB), 5, 0.01);
}

static void node_of_the_thread(void **state)
{
    struct bench *b = *state;
    cpu_set_t before, one;
    char lines[512];
    CUdeviceptr here;
    unsigned cpu = 0;
    void *at;

    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    snprintf(lines, sizeof(lines),
             PLAIN "[machine]\nremote_factor = 0.5\n[node 1]\ncpus = %u\n[gpu]\nh2d_gbps = 10\n",
             cpu);
    open_bench(b, 1, lines, NULL);
    here = take(b, 0, MIB);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    at = pinned(b, MIB);
    sched_setaffinity(0, sizeof(before), &before);
    about(rate(b, 0, here, ptr(at), MIB), 5, 0.01);
}

/* A large one keeps its call until it is done, so that it cannot be held. */
static double pageable_rate(struct bench *b, CUdeviceptr dst, const void *src, size_t bytes)
{
    CUevent begin = event(b, 0), end = event(b, 0);
    float ms = 0;

    assert_int_equal(b->d.cuEventRecord(begin, b->stream[0]), CUDA_SUCCESS);
    copy(b, 0, dst, ptr(src), bytes);
    assert_int_equal(b->d.cuEventRecord(end, b->stream[0]), CUDA_SUCCESS);
    wait(b, 0);
    assert_int_equal(b->d.cuEventElapsedTime(&ms, begin, end), CUDA_SUCCESS);
    return (double)bytes / ((double)ms * 1e6);
}

static void kinds_of_host_memory(void **state)
{
    struct bench *b = *state;
    CUdeviceptr here, managed;
    double best = 0;
    struct timed t;
    void *combined, *pages;

    open_bench(b, 1,
               PLAIN "[gpu]\nh2d_gbps = 10\npageable_factor = 0.02\nwrite_combined_factor = 0.8\n"
                     "prefetch_factor = 0.5\n",
               NULL);
    here = take(b, 0, MIB);
    assert_int_equal(b->d.cuMemHostAlloc(&combined, MIB, CU_MEMHOSTALLOC_WRITECOMBINED), 0);
    about(rate(b, 0, here, ptr(combined), MIB), 8, 0.01);
    assert_int_equal(b->d.cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL), 0);
    for (unsigned i = 0; i < 2; i++) { /* the second time it is there already */
        t = timed_begin(b, 0, ++b->turn);
        assert_int_equal(cuda_driver_prefetch(&b->d, managed, MIB, 0, b->stream[0]), 0);
        timed_end(&t);
        release(b, b->turn);
        if (!i)
            about(MIB / timed_ns(&t), 5, 0.01);
        else
            assert_true(timed_ns(&t) < 1000);
    }
    pages = calloc(1, MIB);
    assert_int_equal(b->d.cuMemHostRegister(pages, MIB, 0), 0);
    about(rate(b, 0, here, ptr(pages), MIB), 10, 0.01);
    assert_int_equal(b->d.cuMemHostRegister(pages, 8, 0),
                     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    assert_int_equal(b->d.cuMemHostUnregister(pages), 0);
    for (unsigned i = 0; i < 20; i++) { /* the program's own time is in it */
        double one = pageable_rate(b, here, pages, MIB);

        best = one > best ? one : best;
    }
    about(best, 0.2, 0.1);
    free(pages);
}

/* What is said of one GPU holds, wherever it stands; so does what the including file says. */
static void descriptions_build_on_one_another(void **state)
{
    struct bench *b = *state;
    char lines[256], path[96];
    FILE *file;

    snprintf(path, sizeof(path), "/tmp/plumb-sim-%d.base", (int)getpid());
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(PLAIN "[machine]\ngpus = 2\n[gpu 1]\nh2d_gbps = 5\n[gpu]\nd2h_gbps = 8\nh2d_gbps = 7\n",
          file);
    fclose(file);
    snprintf(lines, sizeof(lines), "include = %s\n[gpu]\nh2d_gbps = 10\n", strrchr(path, '/') + 1);
    open_bench(b, 2, lines, NULL);
    unlink(path);
    about(rate(b, 0, take(b, 0, MIB), ptr(pinned(b, MIB)), MIB), 10, 0.01);
    about(rate(b, 1, take(b, 1, MIB), ptr(pinned(b, MIB)), MIB), 5, 0.01);
    about(rate(b, 1, ptr(pinned(b, MIB)), take(b, 1, MIB), MIB), 8, 0.01);
}

struct one_device {
    struct bench *b;
    unsigned gpu;
    CUdeviceptr at;
    void *host;
    double gbps;
};

static void *copy_on_one(void *arg)
{
    struct one_device *one = arg;
    struct bench *b = one->b;
    CUevent begin = event(b, one->gpu), end = event(b, one->gpu);
    float ms = 0;

    b->d.cuEventRecord(begin, b->stream[one->gpu]);
    for (unsigned i = 0; i < 10; i++)
        copy(b, one->gpu, one->at, ptr(one->host), MIB);
    b->d.cuEventRecord(end, b->stream[one->gpu]);
    wait(b, one->gpu);
    b->d.cuEventElapsedTime(&ms, begin, end);
    one->gbps = 10.0 * MIB / ((double)ms * 1e6);
    return NULL;
}

/* A thread for each device; they are at it at the same time, for the most part. */
static void threads_share_too(void **state)
{
    struct bench *b = *state;
    struct one_device one[2];
    pthread_t thread[2];

    open_bench(b, 2,
               "[machine]\ngpus = 2\n[switch s]\nuplink_gbps = 0.4\n" PLAIN
               "[gpu]\nswitch = s\nh2d_gbps = 0.3\n",
               NULL);
    for (unsigned i = 0; i < 2; i++)
        one[i] = (struct one_device){b, i, take(b, i, MIB), pinned(b, MIB), 0};
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, copy_on_one, &one[i]), 0);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    about(one[0].gbps, 0.2, 0.4); /* 0.3 alone: how much they overlap is the machine's affair */
    assert_true(one[0].gbps < 0.29 && one[1].gbps < 0.29);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(copies_have_their_rates),
        SIM_TEST(latency_comes_first),
        SIM_TEST(both_directions_share),
        SIM_TEST(an_uplink_is_shared),
        SIM_TEST(peers_have_their_links),
        SIM_TEST(remote_memory_is_slower),
        SIM_TEST(node_of_the_thread),
        SIM_TEST(kinds_of_host_memory),
        SIM_TEST(descriptions_build_on_one_another),
        SIM_TEST(threads_share_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
