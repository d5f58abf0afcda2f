// SPDX-License-Identifier: Apache-2.0
/*
 * What could not be read is unknown: never 0, none or physical, and nothing that is there is refused
 * for how it looks. Each case is a tree with that alone.
 */
#include "harness/probe/probe.h"
#include "tests/unit/probe_cases.h"

#define CPUS  "sys/devices/system/cpu/"
#define NODES "sys/devices/system/node/"
#define ROOT  "sys/devices/pci0000:00/"
#define ONE   ROOT "0000:00:05.0"

static json_t *probe_and_close(struct scratch *s)
{
    json_t *machine;

    assert_int_equal(probe_machine(s->root, &machine), 0);
    scratch_close(s);
    return machine;
}

static void put_cpu(const struct scratch *s, int cpu, const char *core, const char *package)
{
    char path[128];

    snprintf(path, sizeof(path), CPUS "cpu%d/topology/core_cpus", cpu);
    scratch_put(s, path, core);
    snprintf(path, sizeof(path), CPUS "cpu%d/topology/package_cpus", cpu);
    if (package)
        scratch_put(s, path, package);
    snprintf(path, sizeof(path), CPUS "cpu%d/topology/physical_package_id", cpu);
    scratch_put(s, path, cpu < 2 ? "0\n" : "1\n");
}

/* Four CPUs, two packages. */
static void open_machine(struct scratch *s)
{
    static const char *const cores[] = {"1\n", "2\n", "4\n", "8\n"};

    scratch_open(s);
    put_metal(s);
    scratch_put(s, CPUS "online", "0-3\n");
    for (int i = 0; i < 4; i++)
        put_cpu(s, i, cores[i], i < 2 ? "3\n" : "c\n");
}

static void is_unknown(const json_t *object, const char *key)
{
    char why[64];

    snprintf(why, sizeof(why), "%s_why", key);
    if (!json_is_null(json_object_get(object, key)) ||
        !json_is_string(json_object_get(object, why)))
        fail_msg("\"%s\" is known, or has no reason", key);
}

static bool prints(const json_t *machine, const char *words)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    bool found;

    assert_int_equal(probe_print(f, machine), 0);
    fclose(f);
    found = strstr(text, words) != NULL;
    free(text);
    return found;
}

/* ---- nothing is refused for its looks ---- */

static void test_names_and_links(void **state)
{
    struct scratch s;
    json_t *machine;

    (void)state;
    open_machine(&s);
    scratch_put(&s, "proc/device-tree/soc/24091000.qcom/reg", "1\n");
    scratch_link(&s, CPUS "self", ".");
    scratch_link(&s, "sys/class/dmi/id/subsystem", ".");
    machine = probe_and_close(&s);
    assert_int_equal(json_integer_value(in(machine, "cpu", "threads")), 4);
    assert_int_equal(json_integer_value(in(machine, "cpu", "sockets")), 2);
    json_decref(machine);
}

static const struct cpuinfo_case {
    const char *text, *vendor, *model, *feature;
} cpuinfo_cases[] = {
    {"system type\t\t: generic-loongson-machine\n\nprocessor\t\t: 0\nCPU Family\t\t: "
     "Loongson-64bit\n"
     "Model Name\t\t: Loongson-3A5000\nFeatures\t\t: cpucfg lam ual fpu lsx lasx\n",
     "(null)", "Loongson-3A5000", "lasx"},
    {"Processor\t: ARMv7 Processor rev 10 (v7l)\nprocessor\t: 0\n\nprocessor\t: 1\n\n"
     "Features\t: swp half thumb vfp neon vfpv3\nCPU implementer\t: 0x41\nCPU part\t: 0xc09\n",
     "ARM", "(null)", "neon"},
    {"processor\t: 0\ncpu\t\t: POWER9 (architected), altivec supported\n\nmodel\t\t: "
     "IBM,9009-42A\n",
     "(null)", "POWER9 (architected), altivec supported", NULL},
};

/* Blank lines stand in it, and words where x86 has numbers. */
static void test_cpuinfo_of_other_architectures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cpuinfo_cases) / sizeof(*cpuinfo_cases); i++) {
        const struct cpuinfo_case *c = &cpuinfo_cases[i];
        struct scratch s;
        json_t *machine;
        const json_t *cpu;

        open_machine(&s);
        scratch_put(&s, "proc/cpuinfo", c->text);
        machine = probe_and_close(&s);
        cpu = json_object_get(machine, "cpu");
        assert_int_equal(json_integer_value(json_object_get(cpu, "threads")), 4);
        assert_string_equal(text_in(cpu, "vendor"), c->vendor);
        assert_string_equal(text_in(cpu, "model"), c->model);
        is_unknown(cpu, "model_number");
        if (c->feature)
            assert_true(json_is_true(in(cpu, "features", c->feature)));
        json_decref(machine);
    }
}

/* ---- processors, caches, nodes ---- */

/* A package whose file lacks, and packages that overlap, of which hwloc drops one. */
static void test_packages_that_do_not_fit(void **state)
{
    struct scratch s;
    json_t *machine;

    (void)state;
    open_machine(&s);
    unlink(scratch_path(&s, CPUS "cpu2/topology/package_cpus"));
    unlink(scratch_path(&s, CPUS "cpu3/topology/package_cpus"));
    machine = probe_and_close(&s);
    is_unknown(json_object_get(machine, "cpu"), "sockets");
    assert_int_equal(json_integer_value(in(machine, "cpu", "cores")), 4);
    assert_true(prints(machine, "? sockets, 4 cores, 4 threads"));
    json_decref(machine);

    open_machine(&s);
    for (int i = 2; i < 4; i++)
        put_cpu(&s, i, i == 2 ? "4\n" : "8\n", "e\n");
    machine = probe_and_close(&s);
    is_unknown(json_object_get(machine, "cpu"), "sockets");
    json_decref(machine);
}

static void put_cache(const struct scratch *s, int cpu, const char *map)
{
    static const char *const files[][2] = {{"level", "1\n"}, {"type", "Data\n"}};
    char path[128];

    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), CPUS "cpu%d/cache/index0/%s", cpu, files[i][0]);
        scratch_put(s, path, files[i][1]);
    }
    snprintf(path, sizeof(path), CPUS "cpu%d/cache/index0/shared_cpu_map", cpu);
    scratch_put(s, path, map);
}

static void test_cache_without_a_size(void **state)
{
    static const char *const maps[] = {"1\n", "2\n", "4\n", "8\n"};
    struct scratch s;
    json_t *machine;
    const json_t *cache;

    (void)state;
    open_machine(&s);
    for (int i = 0; i < 4; i++)
        put_cache(&s, i, maps[i]);
    machine = probe_and_close(&s);
    cache = json_array_get(json_object_get(machine, "caches"), 0);
    assert_int_equal(json_integer_value(json_object_get(cache, "count")), 4);
    is_unknown(cache, "size_bytes");
    is_unknown(cache, "line_bytes");
    assert_true(prints(machine, "4 x ?, for 1 thread, lines of ? B"));
    json_decref(machine);

    open_machine(&s); /* one of four without its map */
    for (int i = 0; i < 4; i++)
        put_cache(&s, i, maps[i]);
    unlink(scratch_path(&s, CPUS "cpu2/cache/index0/shared_cpu_map"));
    machine = probe_and_close(&s);
    is_unknown(machine, "caches");
    json_decref(machine);
}

/* Memory without CPUs beside two nodes with them: it has none, and not its neighbour's. */
static void test_node_without_cpus(void **state)
{
    static const char *const lists[] = {"0-1\n", "2-3\n", "\n"}, *const maps[] = {"3\n", "c\n",
                                                                                  "0\n"};
    static const char *const rows[] = {"10 20 17\n", "20 10 28\n", "17 28 10\n"};
    struct scratch s;
    json_t *machine, *nodes;
    char path[128];

    (void)state;
    open_machine(&s);
    scratch_put(&s, NODES "online", "0-2\n");
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), NODES "node%d/cpulist", i);
        if (i != 1) /* an old kernel's node has the map alone */
            scratch_put(&s, path, lists[i]);
        snprintf(path, sizeof(path), NODES "node%d/cpumap", i);
        scratch_put(&s, path, maps[i]);
        snprintf(path, sizeof(path), NODES "node%d/distance", i);
        scratch_put(&s, path, rows[i]);
    }
    machine = probe_and_close(&s);
    nodes = json_object_get(json_object_get(machine, "numa"), "nodes");
    assert_int_equal(json_array_size(nodes), 3);
    assert_string_equal(text_in(json_array_get(nodes, 0), "cpus"), "0-1");
    assert_string_equal(text_in(json_array_get(nodes, 1), "cpus"), "2-3");
    assert_string_equal(text_in(json_array_get(nodes, 2), "cpus"), "");
    is_unknown(json_array_get(nodes, 0), "memory_bytes");
    json_decref(machine);
}

static size_t distances_of(size_t n, bool *printed)
{
    struct scratch s;
    json_t *machine, *node;
    char *text = calloc(n + 1, 4), last[16];
    size_t count;

    for (size_t i = 0; i < n; i++)
        sprintf(text + strlen(text), "%zu ", i % 90 + 10);
    snprintf(last, sizeof(last), " %zu\n", (n - 1) % 90 + 10);
    open_machine(&s);
    scratch_put(&s, NODES "node0/distance", text);
    scratch_put(&s, NODES "node0/cpulist", "0-3\n");
    machine = probe_and_close(&s);
    node = json_array_get(json_object_get(json_object_get(machine, "numa"), "nodes"), 0);
    count = json_array_size(json_object_get(node, "distances"));
    *printed = prints(machine, last);
    free(text);
    json_decref(machine);
    return count;
}

static void test_distances_are_whole(void **state)
{
    bool printed;

    (void)state;
    assert_int_equal(distances_of(1000, &printed), 1000);
    assert_int_equal(distances_of(64, &printed), 64);
    assert_true(printed);
}

/* ---- devices ---- */

static void put_function(const struct scratch *s, const char *path, const char *vendor,
                         const char *class_code)
{
    char link[128], target[256], file[256];

    snprintf(link, sizeof(link), "sys/bus/pci/devices/%s", strrchr(path, '/') + 1);
    snprintf(target, sizeof(target), "../../../%s", path + strlen("sys/"));
    scratch_link(s, link, target);
    snprintf(file, sizeof(file), "%s/class", path);
    scratch_put(s, file, class_code);
    snprintf(file, sizeof(file), "%s/vendor", path);
    if (vendor)
        scratch_put(s, file, vendor);
    else
        scratch_folder(s, path);
}

static void test_device_without_ids(void **state)
{
    static const char *const ids[] = {"vendor_id", "device_id", "subsystem_vendor_id",
                                      "subsystem_device_id"};
    struct scratch s;
    json_t *machine;
    const json_t *d;

    (void)state;
    open_machine(&s);
    put_function(&s, ONE, NULL, "0x020000\n");
    machine = probe_and_close(&s);
    d = json_array_get(json_object_get(machine, "pci"), 0);
    for (size_t i = 0; i < 4; i++)
        is_unknown(d, ids[i]);
    is_unknown(d, "driver");
    is_unknown(d, "link");
    assert_string_equal(text_in(d, "nature"), "unknown");
    json_decref(machine);
}

/* Virtual functions on a host: by the other's link, by the id, and where nothing tells, not known. */
static void test_virtual_functions_on_a_host(void **state)
{
    struct scratch s;
    json_t *machine;
    const json_t *list;

    (void)state;
    open_machine(&s);
    put_function(&s, ROOT "0000:00:05.0", "0x15b3\n", "0x020000\n");
    put_function(&s, ROOT "0000:00:05.1", "0x15b3\n", "0x020000\n");
    put_function(&s, ROOT "0000:00:05.2", "0x15b3\n", "0x020000\n");
    put_function(&s, ROOT "0000:00:05.3", "0x15b3\n", "0x020000\n");
    scratch_put(&s, ROOT "0000:00:05.2/device", "0x101e\n");
    scratch_link(&s, ROOT "0000:00:05.0/virtfn0", "../0000:00:05.1");
    machine = probe_and_close(&s);
    list = json_object_get(machine, "pci");
    assert_string_equal(text_in(json_array_get(list, 0), "nature"), "physical");
    assert_string_equal(text_in(json_array_get(list, 1), "nature"), "sriov-vf");
    assert_string_equal(text_in(json_array_get(list, 2), "nature"), "sriov-vf");
    assert_string_equal(text_in(json_array_get(list, 3), "nature"), "unknown");
    json_decref(machine);
}

/* An adapter for 16 lanes at x8: its port may have no more, but the list does not have the port. */
static void test_link_without_its_port(void **state)
{
    static const char *const files[][2] = {{"/current_link_speed", "16.0 GT/s PCIe\n"},
                                           {"/current_link_width", "8\n"},
                                           {"/max_link_speed", "16.0 GT/s PCIe\n"},
                                           {"/max_link_width", "16\n"}};
    const char *path = ROOT "0000:00:01.0/0000:01:00.0";
    char file[256];
    struct scratch s;
    json_t *machine;
    const json_t *d, *link;

    (void)state;
    open_machine(&s);
    put_function(&s, path, "0x15b3\n", "0x020000\n");
    for (size_t i = 0; i < 4; i++) {
        snprintf(file, sizeof(file), "%s%s", path, files[i][0]);
        scratch_put(&s, file, files[i][1]);
    }
    machine = probe_and_close(&s);
    d = json_array_get(json_object_get(machine, "pci"), 0);
    link = json_object_get(d, "link");
    assert_int_equal(json_integer_value(json_object_get(link, "now_width")), 8);
    is_unknown(link, "downtrained");
    is_unknown(link, "best_width");
    is_unknown(d, "path_gbytes_per_s");
    assert_false(finds(machine, "pcie-link"));
    json_decref(machine);
}

static void test_gpus_that_the_bus_does_not_show(void **state)
{
    struct scratch s;
    json_t *machine;
    const json_t *gpus;

    (void)state;
    open_machine(&s); /* nothing but the node */
    scratch_put(&s, "dev/nvidia0", "");
    machine = probe_and_close(&s);
    is_unknown(json_object_get(machine, "gpus"), "devices");
    assert_false(prints(machine, "no GPU on the PCI bus"));
    json_decref(machine);

    open_machine(&s); /* the driver is bound, and its module's version was not read */
    put_function(&s, ONE, "0x10de\n", "0x030200\n");
    scratch_link(&s, ONE "/driver", "../../../bus/pci/drivers/nvidia");
    machine = probe_and_close(&s);
    gpus = json_object_get(machine, "gpus");
    assert_int_equal(json_array_size(json_object_get(gpus, "devices")), 1);
    is_unknown(gpus, "driver_version");
    is_unknown(gpus, "peer_memory_module");
    assert_false(prints(machine, "not loaded"));
    json_decref(machine);
}

static void test_interface_with_odd_numbers(void **state)
{
    struct scratch s;
    json_t *machine;
    const json_t *nic;

    (void)state;
    open_machine(&s);
    scratch_put(&s, "sys/class/net/eth0/mtu", "-5 nonsense\n");
    scratch_put(&s, "sys/class/net/eth1/mtu", "-5\n");
    machine = probe_and_close(&s);
    for (size_t i = 0; i < 2; i++) {
        nic = json_array_get(json_object_get(machine, "network"), i);
        is_unknown(nic, "mtu");
        is_unknown(nic, "kind");
        assert_string_equal(text_in(nic, "nature"), "unknown");
    }
    json_decref(machine);
}

/* ---- absence ---- */

/* Nothing was read but the processor: nothing is said to be absent. */
static void test_nothing_is_absent_unread(void **state)
{
    static const char *const top[] = {"pci", "network", "rdma", "caches"};
    struct scratch s;
    json_t *machine;
    const json_t *limits, *clock;

    (void)state;
    open_machine(&s);
    machine = probe_and_close(&s);
    for (size_t i = 0; i < 4; i++)
        is_unknown(machine, top[i]);
    limits = in(machine, "virtualization", "limits");
    clock = in(machine, "cpu", "clock");
    is_unknown(json_object_get(machine, "virtualization"), "container");
    is_unknown(limits, "cpu_quota");
    is_unknown(limits, "memory_bytes");
    is_unknown(clock, "drivers");
    is_unknown(json_object_get(machine, "gpus"), "devices");
    is_unknown(json_object_get(machine, "gpus"), "nvml");
    assert_false(prints(machine, "no RDMA"));
    assert_false(prints(machine, "no cpufreq"));
    assert_false(prints(machine, "no CPU quota"));
    json_decref(machine);
}

/* What the recording says is not there is known not to be. */
static void test_what_is_told_to_be_absent(void **state)
{
    struct scratch s;
    json_t *machine;

    (void)state;
    open_machine(&s);
    scratch_put(&s, "plumb/absent", "sys/class/infiniband\n" CPUS "cpufreq\nsys/module\n");
    machine = probe_and_close(&s);
    assert_true(json_is_array(json_object_get(machine, "rdma")));
    assert_true(json_is_array(json_object_get(in(machine, "cpu", "clock"), "drivers")));
    assert_true(json_is_false(in(machine, "gpus", "peer_memory_module")));
    json_decref(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_links),
        cmocka_unit_test(test_cpuinfo_of_other_architectures),
        cmocka_unit_test(test_packages_that_do_not_fit),
        cmocka_unit_test(test_cache_without_a_size),
        cmocka_unit_test(test_node_without_cpus),
        cmocka_unit_test(test_distances_are_whole),
        cmocka_unit_test(test_device_without_ids),
        cmocka_unit_test(test_virtual_functions_on_a_host),
        cmocka_unit_test(test_link_without_its_port),
        cmocka_unit_test(test_gpus_that_the_bus_does_not_show),
        cmocka_unit_test(test_interface_with_odd_numbers),
        cmocka_unit_test(test_nothing_is_absent_unread),
        cmocka_unit_test(test_what_is_told_to_be_absent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
