/* SPDX-License-Identifier: Apache-2.0 */
/* Topology: where threads are put, on this machine and on made-up ones (hwloc's synthetic
 * topologies). */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/hw/topo.h"

/* Two packages with a NUMA node each, of three cores with two threads; CPU numbers as Linux gives
 * them: first threads first. */
#define TWO_SOCKETS                                                                                \
    "pack:2 [numa(memory=8GB)] l3:1(size=33554432) l2:3(size=1048576) l1d:1(size=32768) core:1 "   \
    "pu:2(indexes=0,6,1,7,2,8,3,9,4,10,5,11)"

static struct topo *open_synthetic(const char *description)
{
    struct topo *topo = NULL;

    setenv("HWLOC_SYNTHETIC", description, 1);
    setenv("HWLOC_THISSYSTEM", "0", 1);
    assert_int_equal(topo_open(&topo), 0);
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_THISSYSTEM");
    return topo;
}

static void check_spread(const struct topo *topo, int node, unsigned n, const unsigned *want)
{
    unsigned cpus[64];

    memset(cpus, 0xff, sizeof(cpus));
    assert_int_equal(topo_spread(topo, node, n, cpus), 0);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(cpus[i], want[i]);
    assert_true(cpus[n] == (unsigned)-1); /* and not one more */
}

static void test_counts_of_two_sockets(void **state)
{
    struct topo *topo = open_synthetic(TWO_SOCKETS);

    (void)state;
    assert_int_equal(topo_cpus(topo), 12);
    assert_int_equal(topo_cores(topo), 6);
    assert_int_equal(topo_nodes(topo), 2);
    assert_int_equal(topo_node_id(topo, 0), 0);
    assert_int_equal(topo_node_id(topo, 1), 1);
    assert_int_equal(topo_node_of_cpu(topo, 2), 0);
    assert_int_equal(topo_node_of_cpu(topo, 3), 1);
    assert_int_equal(topo_node_of_cpu(topo, 8), 0); /* second thread of core 2 */
    assert_int_equal(topo_node_of_cpu(topo, 11), 1);
    assert_int_equal(topo_node_of_cpu(topo, 12), -1);
    topo_close(topo);
}

static void test_one_thread_a_core_first(void **state)
{
    struct topo *topo = open_synthetic(TWO_SOCKETS);
    const unsigned all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const unsigned of_node_1[] = {3, 4, 5, 9, 10, 11};
    unsigned cpus[16];

    (void)state;
    check_spread(topo, -1, 1, all);
    check_spread(topo, -1, 4, all);
    check_spread(topo, -1, 6, all);
    check_spread(topo, -1, 8, all);
    check_spread(topo, -1, 12, all);
    check_spread(topo, 1, 2, of_node_1);
    check_spread(topo, 1, 6, of_node_1);
    assert_int_equal(topo_spread(topo, -1, 13, cpus), -ERANGE);
    assert_int_equal(topo_spread(topo, 1, 7, cpus), -ERANGE);
    assert_int_equal(topo_spread(topo, 2, 1, cpus), -ERANGE); /* no such node */
    topo_close(topo);
}

/* Where the system numbers both threads of a core side by side, the second ones still wait. */
static void test_siblings_side_by_side(void **state)
{
    struct topo *topo = open_synthetic("pack:1 [numa] core:3 pu:2");
    const unsigned want[] = {0, 2, 4, 1, 3, 5};

    (void)state;
    check_spread(topo, -1, 3, want);
    check_spread(topo, -1, 6, want);
    topo_close(topo);
}

static void test_caches(void **state)
{
    struct topo *topo = open_synthetic(TWO_SOCKETS);
    struct topo *bare = open_synthetic("[numa] core:2 pu:1");

    (void)state;
    assert_true(topo_cache_bytes(topo, 1) == 32 << 10);
    assert_true(topo_cache_bytes(topo, 2) == 1 << 20);
    assert_true(topo_cache_bytes(topo, 3) == 32 << 20);
    assert_true(topo_cache_bytes(topo, 4) == 0);
    assert_true(topo_last_cache_bytes(topo) == 64 << 20); /* of both packages */
    assert_true(topo_cache_bytes(bare, 1) == 0);          /* hidden is 0, not a guess */
    assert_true(topo_last_cache_bytes(bare) == 0);
    topo_close(bare);
    topo_close(topo);
}

static void test_this_machine(void **state)
{
    struct topo *topo;
    cpu_set_t mine;
    unsigned cpus[CPU_SETSIZE];

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
    assert_int_equal(topo_open(&topo), 0);
    assert_non_null(topo_hwloc(topo));
    unsigned n = topo_cpus(topo);
    assert_int_equal(n, CPU_COUNT(&mine));
    assert_in_range(topo_cores(topo), 1, n);
    assert_true(topo_nodes(topo) >= 1);
    assert_int_equal(topo_spread(topo, -1, n, cpus), 0);
    for (unsigned i = 0; i < n; i++) {
        assert_true(CPU_ISSET(cpus[i], &mine)); /* only what this process may use */
        CPU_CLR(cpus[i], &mine);                /* and each once */
    }
    assert_int_equal(topo_spread(topo, -1, n + 1, cpus), -ERANGE);
    topo_close(topo);
    topo_close(NULL);
}

static void test_affinity_mask_is_the_machine(void **state)
{
    cpu_set_t before, one;
    struct topo *topo;
    unsigned cpus[2];
    int last = -1;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    for (int i = 0; i < CPU_SETSIZE; i++)
        last = CPU_ISSET(i, &before) ? i : last;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(topo_open(&topo), 0);
    unsigned n = topo_cpus(topo), cores = topo_cores(topo);
    int too_many = topo_spread(topo, -1, 2, cpus);
    int first = topo_spread(topo, -1, 1, cpus);
    topo_close(topo);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(n, 1);
    assert_int_equal(cores, 1);
    assert_int_equal(first, 0);
    assert_int_equal(cpus[0], last);
    assert_int_equal(too_many, -ERANGE);
}

static void test_binding(void **state)
{
    cpu_set_t before, now;
    struct topo *topo;
    unsigned cpu;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(topo_open(&topo), 0);
    assert_int_equal(topo_spread(topo, -1, 1, &cpu), 0);
    int err = topo_bind_self(topo, cpu), bad = topo_bind_self(topo, 1000000);
    sched_getaffinity(0, sizeof(now), &now);
    sched_setaffinity(0, sizeof(before), &before);
    topo_close(topo);
    assert_int_equal(err, 0);
    assert_true(bad < 0);
    assert_int_equal(CPU_COUNT(&now), 1);
    assert_true(CPU_ISSET(cpu, &now));
}

/* Says something only where libhwloc-plugins is installed. */
static void test_no_plugins(void **state)
{
    struct topo *topo;
    char line[512];

    (void)state;
    assert_int_equal(topo_open(&topo), 0);
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps))
        if (strstr(line, "/hwloc_") || strstr(line, "/libX11"))
            fail_msg("hwloc has opened a plugin: %s", line);
    fclose(maps);
    topo_close(topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_of_two_sockets),
        cmocka_unit_test(test_one_thread_a_core_first),
        cmocka_unit_test(test_siblings_side_by_side),
        cmocka_unit_test(test_caches),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_affinity_mask_is_the_machine),
        cmocka_unit_test(test_binding),
        cmocka_unit_test(test_no_plugins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
