// SPDX-License-Identifier: Apache-2.0
/* Reading a tree that is not trusted: links, odd files, junk. Nothing may crash, hang or lead outside. */
#include "harness/probe/facts.h"
#include "harness/probe/probe.h"
#include "tests/unit/scratch_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CPU0 "sys/devices/system/cpu/cpu0"

static struct tree open_tree(const struct scratch *s)
{
    struct tree tree;

    assert_int_equal(tree_open(&tree, s->root), 0);
    return tree;
}

static void test_links_stay_inside(void **state)
{
    static const struct {
        const char *link, *target, *resolved;
    } cases[] = {
        {"a/one", "../b/file", "b/file"},
        {"a/two", "/b/file", "b/file"},
        {"a/three", "../../../../../../b/file", "b/file"},
        {"a/four", "one", "b/file"},
        {"a/five", "./.././b//file", "b/file"},
        {"a/etc", "/etc/passwd", NULL},
        {"a/up", "../../../../../../etc/passwd", NULL},
        {"a/self", "self", NULL},
        {"a/ping", "pong", NULL},
        {"a/pong", "ping", NULL},
        {"a/deep", "deep/deep", NULL},
    };
    struct scratch s;
    struct tree tree;
    char got[TREE_PATH], line[TREE_LINE];

    (void)state;
    scratch_open(&s);
    scratch_put(&s, "b/file", "inside\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        scratch_link(&s, cases[i].link, cases[i].target);
    tree = open_tree(&s);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int rc = tree_resolve(&tree, cases[i].link, got, sizeof(got));

        if (!cases[i].resolved) {
            assert_true(rc == -ENOENT || rc == -ELOOP || rc == -ENAMETOOLONG);
            assert_false(tree_exists(&tree, cases[i].link));
            continue;
        }
        assert_int_equal(rc, 0);
        assert_string_equal(got, cases[i].resolved);
        assert_int_equal(tree_line(&tree, cases[i].link, line, sizeof(line)), 0);
        assert_string_equal(line, "inside");
    }
    assert_int_equal(tree_resolve(&tree, "a/self", got, sizeof(got)), -ELOOP);
    assert_int_equal(tree_resolve(&tree, "", got, sizeof(got)), -ENOENT);
    tree_close(&tree);
    scratch_close(&s);
}

static void test_odd_files(void **state)
{
    struct scratch s;
    struct tree tree;
    char line[TREE_LINE], big[8192], small[16], path[3000];
    long long value;
    size_t length;

    (void)state;
    scratch_open(&s);
    memset(big, 'x', sizeof(big));
    scratch_bytes(&s, "big", big, sizeof(big));
    scratch_put(&s, "junk", "\x1b[31m\xff\xc3 \x01 end \nsecond");
    scratch_put(&s, "empty", "");
    scratch_put(&s, "hex", "0x10de\n");
    scratch_put(&s, "decimal", "-12\n");
    scratch_put(&s, "trailing", "-12 rest\n");
    scratch_put(&s, "huge", "99999999999999999999\n");
    scratch_put(&s, "word", "many\n");
    scratch_folder(&s, "folder");
    assert_int_equal(mkfifo(scratch_path(&s, "pipe"), 0644), 0);
    tree = open_tree(&s);

    assert_int_equal(tree_read(&tree, "big", small, sizeof(small), &length), 0);
    assert_int_equal(length, sizeof(small) - 1);
    assert_int_equal(strlen(small), sizeof(small) - 1);
    assert_int_equal(tree_line(&tree, "junk", line, sizeof(line)), 0);
    assert_string_equal(line, "?[31m?? ? end");
    assert_int_equal(tree_line(&tree, "empty", line, sizeof(line)), -ENODATA);
    assert_int_equal(tree_line(&tree, "pipe", line, sizeof(line)), -EINVAL);
    assert_int_equal(tree_line(&tree, "folder", line, sizeof(line)), -EINVAL);
    assert_int_equal(tree_number(&tree, "hex", &value), 0);
    assert_int_equal(value, 0x10de);
    assert_int_equal(tree_number(&tree, "decimal", &value), 0);
    assert_int_equal(value, -12);
    assert_int_equal(tree_number(&tree, "trailing", &value), -EINVAL);
    assert_int_equal(tree_number(&tree, "huge", &value), -EINVAL);
    assert_int_equal(tree_number(&tree, "word", &value), -EINVAL);
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(tree_line(&tree, path, line, sizeof(line)), -ENAMETOOLONG);
    assert_string_equal(tree_join(path, "x").s, "");
    tree_close(&tree);
    scratch_close(&s);
}

static void test_names(void **state)
{
    struct scratch s;
    struct tree tree;
    struct names names;
    char name[64];

    (void)state;
    scratch_open(&s);
    scratch_folder(&s, "d/cpu10");
    scratch_folder(&s, "d/cpu9");
    scratch_folder(&s, "d/.hidden");
    scratch_folder(&s, "d/\x1b[2J");
    scratch_link(&s, "driver", "../../bus/pci/drivers/mlx5_core");
    scratch_link(&s, "odd", "x/\x1b[2J");
    tree = open_tree(&s);
    assert_int_equal(tree_list(&tree, "d", &names), 0);
    assert_int_equal(names.count, 2);
    assert_string_equal(names.name[0], "cpu9");
    assert_string_equal(names.name[1], "cpu10");
    names_free(&names);
    assert_int_equal(tree_list(&tree, "absent", &names), -ENOENT);
    /* Where a link points is told although nothing is there. */
    assert_int_equal(tree_link(&tree, "driver", name, sizeof(name)), 0);
    assert_string_equal(name, "mlx5_core");
    assert_int_equal(tree_link(&tree, "odd", name, sizeof(name)), -EINVAL);
    assert_int_equal(tree_link(&tree, "d", name, sizeof(name)), -EINVAL);
    tree_close(&tree);
    scratch_close(&s);
}

static void test_cpu_lists(void **state)
{
    (void)state;
    assert_int_equal(cpulist_count("0-3", 8), 4);
    assert_int_equal(cpulist_count("0,2,4-7", 8), 6);
    assert_int_equal(cpulist_count("", 8), 0);
    assert_int_equal(cpulist_count("0-8", 8), -EINVAL);
    assert_int_equal(cpulist_count("3-1", 8), -EINVAL);
    assert_int_equal(cpulist_count("0-", 8), -EINVAL);
    assert_int_equal(cpulist_count("a", 8), -EINVAL);
    assert_int_equal(cpulist_count("0 1", 8), -EINVAL);
    assert_int_equal(cpulist_count("0-99999999999999999999", 8), -EINVAL);
}

static void put_cpu(const struct scratch *s)
{
    scratch_put(s, "sys/devices/system/cpu/online", "0\n");
    scratch_put(s, CPU0 "/topology/core_cpus", "1\n");
    scratch_put(s, CPU0 "/topology/package_cpus", "1\n");
    scratch_put(s, CPU0 "/topology/physical_package_id", "0\n");
    scratch_put(s, "proc/cpuinfo", "flags\t: fpu\n");
}

/* What hwloc makes of the tree, or why it was kept from it. */
static long long threads_of(const struct scratch *s)
{
    json_t *machine, *cpu;
    long long threads;

    assert_int_equal(probe_machine(s->root, &machine), 0);
    cpu = json_object_get(machine, "cpu");
    threads = fact_integer(cpu, "threads", -1);
    if (threads < 0)
        assert_non_null(fact_string(cpu, "threads_why"));
    json_decref(machine);
    return threads;
}

/* hwloc opens files and follows links as they are: each of these would hang it or show it our own
 * machine. The alarm ends a test that hangs. */
static void test_what_hwloc_must_not_read(void **state)
{
    static const struct {
        const char *path, *target, *text; /* a link to target, a file with text, or a pipe */
    } cases[] = {
        {"sys/devices/system/cpu/online", NULL, NULL},
        {CPU0 "/topology/core_cpus", NULL, NULL},
        {CPU0 "/topology/core_cpus", "/dev/zero", NULL},
        {CPU0 "/topology/core_cpus", "../../../../../../../../../../../../dev/zero", NULL},
        {"proc/cpuinfo", "/dev/zero", NULL},
        {"proc/meminfo", NULL, NULL},
        {"proc/mounts", "/dev/zero", NULL},
        {"sys/devices/system/node", "/sys/devices/system/node", NULL},
        {"sys/class/dmi/id/sys_vendor", NULL, NULL},
        {"sys/devices/system/cpu/online", NULL, "0-2000000000\n"},
        {"sys/devices/system/cpu/cpu2000000000/topology/core_cpus", NULL, "1\n"},
    };

    (void)state;
    alarm(60);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct scratch s;
        const char *path;

        scratch_open(&s);
        put_cpu(&s);
        assert_int_equal(threads_of(&s), 1);
        path = scratch_path(&s, cases[i].path);
        unlink(path);
        if (cases[i].text)
            scratch_put(&s, cases[i].path, cases[i].text);
        else if (cases[i].target)
            assert_int_equal(symlink(cases[i].target, path), 0);
        else
            assert_int_equal(mkfifo(path, 0644), 0);
        if (threads_of(&s) != -1)
            fail_msg("case %zu (%s) was let through", i, cases[i].path);
        scratch_close(&s);
    }
    alarm(0);
}

/* A link that leads to one file here and, for the kernel, to another of the same file system. */
static void test_link_with_two_meanings(void **state)
{
    struct scratch s;
    char target[256];

    (void)state;
    scratch_open(&s);
    put_cpu(&s);
    snprintf(target, sizeof(target), "%s/outside", s.root);
    scratch_put(&s, "outside", "0\n");
    scratch_put(&s, target + 1, "0\n");
    unlink(scratch_path(&s, "sys/devices/system/cpu/online"));
    scratch_link(&s, "sys/devices/system/cpu/online", target);
    assert_int_equal(threads_of(&s), -1);
    scratch_close(&s);
}

static void test_cache(void **state)
{
    struct scratch s;
    json_t *machine, *cache;

    (void)state;
    scratch_open(&s);
    put_cpu(&s);
    scratch_put(&s, CPU0 "/cache/index2/shared_cpu_map", "1\n");
    scratch_put(&s, CPU0 "/cache/index2/level", "2\n");
    scratch_put(&s, CPU0 "/cache/index2/type", "Unified\n");
    scratch_put(&s, CPU0 "/cache/index2/size", "512K\n");
    scratch_put(&s, CPU0 "/cache/index2/coherency_line_size", "128\n");
    assert_int_equal(probe_machine(s.root, &machine), 0);
    cache = json_array_get(json_object_get(machine, "caches"), 0);
    assert_int_equal(fact_integer(cache, "level", -1), 2);
    assert_int_equal(fact_integer(cache, "size_bytes", -1), 524288);
    assert_int_equal(fact_integer(cache, "line_bytes", -1), 128);
    json_decref(machine);
    scratch_close(&s);
}

/* Nothing of hwloc's environment may remain, or what was there may change. */
static void test_environment_is_put_back(void **state)
{
    struct scratch s;

    (void)state;
    setenv("HWLOC_COMPONENTS", "mine", 1);
    unsetenv("HWLOC_FSROOT");
    scratch_open(&s);
    put_cpu(&s);
    assert_int_equal(threads_of(&s), 1);
    assert_string_equal(getenv("HWLOC_COMPONENTS"), "mine");
    assert_null(getenv("HWLOC_FSROOT"));
    unsetenv("HWLOC_COMPONENTS");
    scratch_close(&s);
}

static void put_network_device(const struct scratch *s, const char *path)
{
    static const char *const files[][2] = {{"class", "0x020000\n"},
                                           {"current_link_speed", "8.0 GT/s\n"},
                                           {"max_link_speed", "8.0 GT/s\n"},
                                           {"current_link_width", "8\n"},
                                           {"max_link_width", "8\n"}};

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        scratch_put(s, tree_join(path, files[i][0]).s, files[i][1]);
}

/* Two functions, each below the other: the way up must end. */
static void test_pci_circle(void **state)
{
    struct scratch s;
    json_t *machine;

    (void)state;
    alarm(60);
    scratch_open(&s);
    scratch_put(&s, "proc/cpuinfo", "flags\t: fpu\n");
    put_network_device(&s, "sys/devices/0000:01:00.0/0000:02:00.0");
    put_network_device(&s, "sys/devices/0000:02:00.0/0000:01:00.0");
    scratch_link(&s, "sys/bus/pci/devices/0000:01:00.0",
                 "../../../devices/0000:02:00.0/0000:01:00.0");
    scratch_link(&s, "sys/bus/pci/devices/0000:02:00.0",
                 "../../../devices/0000:01:00.0/0000:02:00.0");
    assert_int_equal(probe_machine(s.root, &machine), 0);
    assert_int_equal(json_array_size(json_object_get(machine, "pci")), 2);
    json_decref(machine);
    scratch_close(&s);
    alarm(0);
}

/* A function that is its own parent, and addresses that are none. */
static void test_pci_junk(void **state)
{
    struct scratch s;
    json_t *machine;

    (void)state;
    scratch_open(&s);
    scratch_put(&s, "sys/devices/0000:01:00.0/0000:01:00.0/class", "0x020000\n");
    scratch_link(&s, "sys/bus/pci/devices/0000:01:00.0",
                 "../../../devices/0000:01:00.0/0000:01:00.0");
    scratch_link(&s, "sys/bus/pci/devices/0000:02:00.0", "0000:02:00.0");
    scratch_put(&s, "sys/bus/pci/devices/zz/class", "0x020000\n");
    scratch_put(&s, "sys/bus/pci/devices/0000:03:00.0extra/class", "0x020000\n");
    scratch_put(&s, "sys/bus/pci/devices/0000:04:00.0", "a file\n");
    scratch_put(&s, "usr/share/misc/pci.ids", "\xff\n\n\t\n10de\n10de  \n\t2330");
    assert_int_equal(probe_machine(s.root, &machine), 0);
    assert_int_equal(json_array_size(json_object_get(machine, "pci")), 1);
    json_decref(machine);
    scratch_close(&s);
}

static double peak(const void *table, size_t size, const char **channels_why)
{
    static char why[TREE_LINE];
    struct scratch s;
    json_t *machine, *memory;
    double value;

    scratch_open(&s);
    put_cpu(&s);
    scratch_put(&s, "sys/class/dmi/id/sys_vendor", "Dell Inc.\n");
    scratch_put(&s, "sys/class/dmi/id/product_name", "PowerEdge R760\n");
    scratch_bytes(&s, "sys/firmware/dmi/tables/DMI", table, size);
    assert_int_equal(probe_machine(s.root, &machine), 0);
    memory = json_object_get(machine, "memory");
    value = fact_number(memory, "peak_gbytes_per_s", -1);
    snprintf(why, sizeof(why), "%s", fact_string(memory, "channels_why") ?: "");
    *channels_why = why;
    json_decref(machine);
    scratch_close(&s);
    return value;
}

struct plug {
    const char *locator;
    unsigned mts;
};

enum { PLUGS = 3 };

/* Modules of 64 bits and 8 GiB, up to the first without a locator. Returns the table's size. */
static size_t put_modules(unsigned char *table, const struct plug *plugs)
{
    unsigned char *at = table;

    for (int i = 0; i < PLUGS && plugs[i].locator; i++) {
        memset(at, 0, 40);
        at[0] = 17, at[1] = 40;
        at[0x0a] = 64;
        at[0x0d] = 0x20; /* 8192 MiB */
        at[0x10] = 1;
        at[0x20] = plugs[i].mts & 0xff, at[0x21] = (unsigned char)(plugs[i].mts >> 8);
        strcpy((char *)at + 40, plugs[i].locator);
        at += 40 + strlen(plugs[i].locator) + 1;
        *at++ = 0;
    }
    return (size_t)(at - table);
}

static void test_memory_modules(void **state)
{
    static const struct {
        struct plug plugs[PLUGS];
        double gbytes_per_s; /* -1: channels unknown */
    } cases[] = {
        {{{"DIMM_A1", 3200}, {"DIMM_B1", 3200}}, 51.2},
        {{{"DIMM_A1", 3200}, {"DIMM_B1", 1600}}, 25.6},
        {{{"DIMM_A1", 1600}, {"DIMM_B1", 3200}}, 25.6},
        {{{"DIMM_A1", 3200}, {"DIMM_A2", 3200}}, 25.6},
        {{{"DIMM_A1", 3200}, {"DIMM_A2", 3200}, {"DIMM_A3", 3200}}, -1},
        {{{"P0 CHANNEL A", 3200}, {"P0 CHANNEL B", 3200}}, 51.2},
        {{{"CPU0_Channel3_DIMM0", 3200}, {"CPU0_Channel3_DIMM1", 3200}}, 25.6},
        {{{"CPU0_Channel1_DIMM0", 3200}, {"CPU0_Channel10_DIMM0", 3200}}, 51.2},
        {{{"P1-DIMMA1", 3200}, {"P2-DIMMA1", 3200}}, 51.2},
        {{{"A1", 3200}, {"A2", 3200}}, -1}, /* Dell: the letter is the socket */
        {{{"PROC 1 DIMM 1", 3200}, {"PROC 1 DIMM 2", 3200}}, -1},
        {{{"", 3200}, {"", 3200}}, -1},
        {{{"DIMM_A1", 0}, {"DIMM_B1", 3200}}, -1},
    };
    unsigned char table[512];
    const char *why;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        double got = peak(table, put_modules(table, cases[i].plugs), &why);

        if (got != cases[i].gbytes_per_s)
            fail_msg("case %zu: %.1f GB/s (%s)", i, got, why);
    }
    /* Cut anywhere, it must not read past the end. */
    for (size_t size = put_modules(table, cases[0].plugs), cut = 0; cut < size; cut++)
        peak(table, cut, &why);
    memset(table, 0xff, sizeof(table));
    assert_true(peak(table, sizeof(table), &why) < 0);
}

/* Per lane and direction, from the PCIe base specification's rates and codings. */
static void test_link_rates(void **state)
{
    (void)state;
    assert_float_equal(pci_gbytes_per_s(2.5, 1), 0.25, 1e-9);
    assert_float_equal(pci_gbytes_per_s(5, 8), 4.0, 1e-9);
    assert_float_equal(pci_gbytes_per_s(8, 16), 15.754, 1e-3);
    assert_float_equal(pci_gbytes_per_s(16, 16), 31.508, 1e-3);
    assert_float_equal(pci_gbytes_per_s(32, 16), 63.015, 1e-3);
    assert_float_equal(pci_gbytes_per_s(64, 16), 118.0, 1e-3);
}

static void test_what_steers_libraries(void **state)
{
    static const char *const variables[] = {"HOME=/root",
                                            "OMP_NUM_THREADS=4",
                                            "OMPI_MCA_btl=tcp",
                                            "OMPI_MCA_orte_uri=1.2.3.4",
                                            "NCCL_API_TOKEN=x",
                                            "LD_PRELOAD=a.so",
                                            "LD_PRELOADED=b",
                                            "MKL_EMPTY=",
                                            "CUDA_VISIBLE_DEVICES=3",
                                            "UCX_TLS=\xff",
                                            NULL};
    json_t *found = probe_settings(variables);
    json_t *want =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "OMP_NUM_THREADS", "4", "OMPI_MCA_btl", "tcp",
                  "LD_PRELOAD", "a.so", "MKL_EMPTY", "", "UCX_TLS", "(not UTF-8)");

    (void)state;
    assert_true(json_equal(found, want));
    json_decref(found);
    json_decref(want);
    found = probe_settings(NULL);
    assert_int_equal(json_object_size(found), 0);
    json_decref(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links_stay_inside),
        cmocka_unit_test(test_odd_files),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_cpu_lists),
        cmocka_unit_test(test_what_hwloc_must_not_read),
        cmocka_unit_test(test_link_with_two_meanings),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_environment_is_put_back),
        cmocka_unit_test(test_pci_circle),
        cmocka_unit_test(test_pci_junk),
        cmocka_unit_test(test_memory_modules),
        cmocka_unit_test(test_link_rates),
        cmocka_unit_test(test_what_steers_libraries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
