/* SPDX-License-Identifier: Apache-2.0 */
/* Topology: where threads are put, on this machine and on made-up ones (hwloc's synthetic topologies). */
#include <sched.h>

#include "core/hw/topo.h"
#include "tests/unit/unit.h"

/* Two packages with a NUMA node each, of three cores with two threads; CPU numbers as Linux gives them: first threads
 * first. */
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

TEST(test_two_sockets)
{
    static const int nodes[] = {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, -1};
    struct topo *topo = open_synthetic(TWO_SOCKETS), *bare = open_synthetic("[numa] core:2 pu:1");

    assert_int_equal(topo_cpus(topo), 12);
    assert_int_equal(topo_cores(topo), 6);
    assert_int_equal(topo_nodes(topo), 2);
    assert_int_equal(topo_node_id(topo, 1), 1);
    for (int i = 0; i < 13; i++)
        assert_int_equal(topo_node_of_cpu(topo, (unsigned)i), nodes[i]);
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

/* One thread a core first, also where the system numbers both threads of a core side by side. */
TEST(test_spread)
{
    static const struct {
        const char *topology;
        int node;
        unsigned n;
        int err;
        unsigned want[12];
    } cases[] = {
        {TWO_SOCKETS, -1, 4, 0, {0, 1, 2, 3}},
        {TWO_SOCKETS, -1, 12, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
        {TWO_SOCKETS, 1, 2, 0, {3, 4}},
        {TWO_SOCKETS, 1, 6, 0, {3, 4, 5, 9, 10, 11}},
        {TWO_SOCKETS, -1, 13, -ERANGE, {0}},
        {TWO_SOCKETS, 1, 7, -ERANGE, {0}},
        {TWO_SOCKETS, 2, 1, -ERANGE, {0}},
        {"pack:1 [numa] core:3 pu:2", -1, 3, 0, {0, 2, 4}},
        {"pack:1 [numa] core:3 pu:2", -1, 6, 0, {0, 2, 4, 1, 3, 5}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct topo *topo = open_synthetic(cases[i].topology);
        unsigned cpus[16];

        memset(cpus, 0xff, sizeof(cpus));
        int err = topo_spread(topo, cases[i].node, cases[i].n, cpus);
        topo_close(topo);
        assert_int_equal(err, cases[i].err);
        if (err)
            continue;
        assert_memory_equal(cpus, cases[i].want, cases[i].n * sizeof(*cpus));
        assert_true(cpus[cases[i].n] == (unsigned)-1); /* and not one more */
    }
}

/* Only what this process may use, and each once; the process's mask is the machine. hwloc opens no plugin, which says
 * something only where libhwloc-plugins is installed. */
TEST(test_this_machine)
{
    struct topo *topo;
    cpu_set_t mine, now, one;
    unsigned cpus[CPU_SETSIZE];
    char line[512];

    assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
    now = mine;
    assert_int_equal(topo_open(&topo), 0);
    assert_non_null(topo_hwloc(topo));
    unsigned n = topo_cpus(topo);
    assert_int_equal(n, CPU_COUNT(&mine));
    assert_in_range(topo_cores(topo), 1, n);
    assert_true(topo_nodes(topo) >= 1);
    assert_int_equal(topo_spread(topo, -1, n, cpus), 0);
    for (unsigned i = 0; i < n; i++) {
        assert_true(CPU_ISSET(cpus[i], &now));
        CPU_CLR(cpus[i], &now);
    }
    assert_int_equal(topo_spread(topo, -1, n + 1, cpus), -ERANGE);
    unsigned last = cpus[n - 1];
    int bad = topo_bind_self(topo, 1000000), err = topo_bind_self(topo, last);
    sched_getaffinity(0, sizeof(one), &one);
    topo_close(topo);
    assert_int_equal(topo_open(&topo), 0);
    unsigned cpus_bound = topo_cpus(topo), cores_bound = topo_cores(topo);
    int too_many = topo_spread(topo, -1, 2, cpus), first = topo_spread(topo, -1, 1, cpus);
    topo_close(topo);
    topo_close(NULL);
    assert_int_equal(sched_setaffinity(0, sizeof(mine), &mine), 0);
    assert_int_equal(err, 0);
    assert_true(bad < 0);
    assert_true(CPU_COUNT(&one) == 1 && CPU_ISSET(last, &one));
    assert_int_equal(cpus_bound, 1);
    assert_int_equal(cores_bound, 1);
    assert_int_equal(first, 0);
    assert_int_equal(cpus[0], last);
    assert_int_equal(too_many, -ERANGE);
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps))
        assert_false(strstr(line, "/hwloc_") || strstr(line, "/libX11"));
    fclose(maps);
}
