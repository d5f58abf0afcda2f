// SPDX-License-Identifier: Apache-2.0
/* The probe of the machines of tests/machines against their expected output, of this one, and of trees that are not
 * trusted: links, odd files, junk. Nothing may crash, hang or lead outside. */
#include "harness/probe/facts.h"
#include "harness/probe/probe.h"
#include "tests/unit/machines.h"
#include "tests/unit/probe_cases.h"
#include "tests/unit/unit.h"

#include <fcntl.h>

#define N(list) (sizeof(list) / sizeof(*(list)))

/* ---- recorded machines */

/* Shows the first line that differs: a whole page is hard to compare by eye. */
static void assert_same_text(const char *machine, const char *file, const char *got)
{
    char path[512], *expected = calloc(1, 1 << 20);
    size_t line = 0, i = 0, at = 0;

    snprintf(path, sizeof(path), MACHINES_EXPECTED "/%s/%s", machine, file);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(expected, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    for (; got[i] && got[i] == expected[i]; i++)
        if (got[i] == '\n') {
            line++;
            at = i + 1;
        }
    if (got[i] != expected[i])
        fail_msg("%s line %zu:\n got      \"%.*s\"\n expected \"%.*s\"", path, line + 1,
                 (int)strcspn(got + at, "\n"), got + at, (int)strcspn(expected + at, "\n"),
                 expected + at);
    free(expected);
}

static char *printed(const json_t *machine)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_int_equal(probe_print(f, machine), 0);
    fclose(f);
    return text;
}

static void check_machine(const char *name, void *arg)
{
    char root[512], *json, *line_end, *text;
    json_t *machine;

    (void)arg;
    snprintf(root, sizeof(root), MACHINE("%s"), name);
    assert_int_equal(probe_machine(root, &machine), 0);
    json = json_dumps(machine, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    line_end = realloc(json, strlen(json) + 2);
    strcat(line_end, "\n");
    assert_same_text(name, "expected.json", line_end);
    text = printed(machine);
    assert_same_text(name, "expected.txt", text);
    free(line_end);
    free(text);
    json_decref(machine);
}

TEST(test_recorded_machines)
{
    assert_true(machines_each(check_machine, NULL) >= 8);
}

/* Whatever it is, the object is whole and prints. */
TEST(test_this_machine)
{
    static const char *const sections[] = {"host", "virtualization", "cpu",      "caches",
                                           "numa", "memory",         "pci",      "network",
                                           "rdma", "gpus",           "proximity"};
    json_t *machine;

    assert_int_equal(probe_machine(NULL, &machine), 0);
    for (size_t i = 0; i < N(sections); i++)
        assert_non_null(json_object_get(machine, sections[i]));
    free(printed(machine));
    json_decref(machine);
}

/* Nothing was read but a processor: nobody is told that something is absent. */
TEST(test_nothing_is_printed_absent_unread)
{
    static const char *const words[] = {"no RDMA", "no cpufreq", "no CPU quota",
                                        "no GPU on the PCI bus", "not loaded"};
    json_t *machine = probe_files("proc/cpuinfo=flags\t: fpu|dev/nvidia0=", NULL);
    char *text = printed(machine);

    for (size_t i = 0; i < N(words); i++)
        assert_null(strstr(text, words[i]));
    free(text);
    json_decref(machine);
}

/* ---- reading a tree */

TEST(test_what_is_no_tree)
{
    struct scratch s;
    json_t *machine;

    scratch_open(&s);
    assert_int_equal(probe_machine("/nonexistent", &machine), -ENOENT);
    assert_null(machine);
    assert_int_equal(probe_machine(s.root, &machine), -ENODATA);
    scratch_put(&s, "file", "x");
    assert_int_equal(probe_machine(scratch_path(&s, "file"), &machine), -ENOTDIR);
    scratch_close(&s);
}

TEST(test_links_stay_inside)
{
    static const struct {
        const char *link, *target;
        bool inside;
    } cases[] = {
        {"a/one", "../b/file", true},
        {"a/two", "/b/file", true},
        {"a/three", "../../../../../../b/file", true},
        {"a/four", "one", true},
        {"a/five", "./.././b//file", true},
        {"a/etc", "/etc/passwd", false},
        {"a/up", "../../../../../../etc/passwd", false},
        {"a/self", "self", false},
        {"a/ping", "pong", false},
        {"a/pong", "ping", false},
        {"a/deep", "deep/deep", false},
    };
    struct scratch s;
    char got[SYS_PATH], line[SYS_LINE];

    scratch_open(&s);
    scratch_put(&s, "b/file", "inside\n");
    for (size_t i = 0; i < N(cases); i++)
        scratch_link(&s, cases[i].link, cases[i].target);
    for (size_t i = 0; i < N(cases); i++) {
        int rc = sys_resolve(s.root, got, sizeof(got), "%s", cases[i].link);

        if (!cases[i].inside) {
            assert_true(rc == -ENOENT || rc == -ELOOP || rc == -ENAMETOOLONG);
            assert_false(sys_exists(s.root, "%s", cases[i].link));
            continue;
        }
        assert_int_equal(rc, 0);
        assert_string_equal(got, "b/file");
        assert_int_equal(sys_line(s.root, line, sizeof(line), "%s", cases[i].link), 0);
        assert_string_equal(line, "inside");
    }
    assert_int_equal(sys_resolve(s.root, got, sizeof(got), "a/self"), -ELOOP);
    assert_int_equal(sys_resolve(s.root, got, sizeof(got), "%s", ""), -ENOENT);
    scratch_close(&s);
}

TEST(test_odd_files)
{
    static const struct {
        const char *text;
        int err;
        long long value;
    } numbers[] = {{"0x10de\n", 0, 0x10de},    {"-12\n", 0, -12},
                   {"-12 rest\n", -EINVAL, 0}, {"99999999999999999999\n", -EINVAL, 0},
                   {"many\n", -EINVAL, 0},     {"", -ENODATA, 0}};
    struct scratch s;
    char line[SYS_LINE], big[8192], small[16], path[3000];
    size_t length;

    scratch_open(&s);
    for (size_t i = 0; i < N(numbers); i++) {
        long long value = 0;

        scratch_put(&s, "number", numbers[i].text);
        assert_int_equal(sys_number(s.root, &value, "number"), numbers[i].err);
        assert_true(numbers[i].err || value == numbers[i].value);
    }
    memset(big, 'x', sizeof(big));
    scratch_bytes(&s, "big", big, sizeof(big));
    assert_int_equal(sys_read(s.root, small, sizeof(small), &length, "big"), 0);
    assert_int_equal(length, sizeof(small) - 1);
    assert_int_equal(strlen(small), sizeof(small) - 1);
    scratch_put(&s, "junk", "\x1b[31m\xff\xc3 \x01 end \nsecond");
    assert_int_equal(sys_line(s.root, line, sizeof(line), "junk"), 0);
    assert_string_equal(line, "?[31m?? ? end");
    scratch_folder(&s, "folder");
    assert_int_equal(sys_line(s.root, line, sizeof(line), "folder"), -EINVAL);
    assert_int_equal(mkfifo(scratch_path(&s, "pipe"), 0644), 0);
    assert_int_equal(sys_line(s.root, line, sizeof(line), "pipe"), -EINVAL);
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(sys_line(s.root, line, sizeof(line), "%s", path), -ENAMETOOLONG);
    assert_string_equal(path_join(path, "x").s, "");
    scratch_close(&s);
}

/* In the order of their numbers, without hidden ones and those that would steer a terminal. */
TEST(test_names)
{
    struct scratch s;
    struct names names;
    char name[64];

    scratch_open(&s);
    put_files(
        &s,
        "d/cpu10|d/cpu9|d/.hidden|d/\x1b[2J|driver>../../bus/pci/drivers/mlx5_core|odd>x/\x1b[2J",
        NULL);
    assert_int_equal(sys_list(s.root, &names, "d"), 0);
    assert_int_equal(names.count, 2);
    assert_string_equal(names.name[0], "cpu9");
    assert_string_equal(names.name[1], "cpu10");
    names_free(&names);
    assert_int_equal(sys_list(s.root, &names, "absent"), -ENOENT);
    /* Where a link points is told although nothing is there. */
    assert_int_equal(sys_link(s.root, name, sizeof(name), "driver"), 0);
    assert_string_equal(name, "mlx5_core");
    assert_int_equal(sys_link(s.root, name, sizeof(name), "odd"), -EINVAL);
    assert_int_equal(sys_link(s.root, name, sizeof(name), "d"), -EINVAL);
    scratch_close(&s);
}

TEST(test_cpu_lists)
{
    static const char *const wrong[] = {"0-65536", "3-1", "0-",
                                        "a",       "0 1", "0-99999999999999999999"};

    assert_int_equal(cpus_count("0-3"), 4);
    assert_int_equal(cpus_count("0,2,4-7"), 6);
    assert_int_equal(cpus_count(""), 0);
    for (size_t i = 0; i < N(wrong); i++)
        assert_int_equal(cpus_count(wrong[i]), -EINVAL);
}

#define CPU0 "sys/devices/system/cpu/cpu0"
#define ONE_CPU                                                                                    \
    "sys/devices/system/cpu/online=0|" CPU0 "/topology/core_cpus=1|" CPU0                          \
    "/topology/package_cpus=1|" CPU0 "/topology/physical_package_id=0|proc/cpuinfo=flags\t: fpu|"

/* What hwloc makes of the tree; -1, with a reason, where it was kept from it. */
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

/* hwloc opens files and follows links as they are: each of these would hang it or show it our own machine. The alarm
 * ends a test that hangs. */
TEST(test_what_hwloc_must_not_read)
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
    struct scratch s;
    char target[256];

    alarm(300);
    for (size_t i = 0; i < N(cases); i++) {
        scratch_open(&s);
        put_files(&s, ONE_CPU, NULL);
        assert_int_equal(threads_of(&s), 1);
        const char *path = scratch_path(&s, cases[i].path);
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
    /* A link that leads to one file here and, for the kernel, to another of the same file system. */
    scratch_open(&s);
    put_files(&s, ONE_CPU "outside=0", NULL);
    snprintf(target, sizeof(target), "%s/outside", s.root);
    scratch_put(&s, target + 1, "0\n");
    unlink(scratch_path(&s, "sys/devices/system/cpu/online"));
    scratch_link(&s, "sys/devices/system/cpu/online", target);
    assert_int_equal(threads_of(&s), -1);
    scratch_close(&s);
    alarm(0);
}

/* Nothing of hwloc's environment may remain, or what was there may change. */
TEST(test_environment_is_put_back)
{
    setenv("HWLOC_COMPONENTS", "mine", 1);
    unsetenv("HWLOC_FSROOT");
    json_t *machine = probe_files(ONE_CPU, NULL);
    assert_int_equal(json_integer_value(in(machine, "cpu", "threads")), 1);
    assert_string_equal(getenv("HWLOC_COMPONENTS"), "mine");
    assert_null(getenv("HWLOC_FSROOT"));
    unsetenv("HWLOC_COMPONENTS");
    json_decref(machine);
}

/* Two functions, each below the other, and one that is its own parent: the way up must end. Addresses that are none
 * are left out. */
TEST(test_pci_circles_and_junk)
{
#define SPEEDS(path)                                                                               \
    "sys/devices/" path "/class=0x020000|sys/devices/" path "/current_link_speed=8.0 GT/s|"        \
    "sys/devices/" path "/max_link_speed=8.0 GT/s|sys/devices/" path "/current_link_width=8|"      \
    "sys/devices/" path "/max_link_width=8|"
    static const char files[] =
        SPEEDS("0000:01:00.0/0000:02:00.0") SPEEDS("0000:02:00.0/0000:01:00.0") SPEEDS(
            "0000:05:00.0/0000:05:00.0") "sys/bus/pci/devices/0000:01:00.0>../../../devices/"
                                         "0000:02:00.0/0000:01:00.0|"
                                         "sys/bus/pci/devices/0000:02:00.0>../../../devices/"
                                         "0000:01:00.0/0000:02:00.0|"
                                         "sys/bus/pci/devices/0000:05:00.0>../../../devices/"
                                         "0000:05:00.0/0000:05:00.0|"
                                         "sys/bus/pci/devices/0000:06:00.0>0000:06:00.0|sys/bus/"
                                         "pci/devices/zz/class=0x020000|"
                                         "sys/bus/pci/devices/0000:03:00.0extra/class=0x020000|"
                                         "sys/bus/pci/devices/0000:04:00.0=a "
                                         "file|proc/cpuinfo=flags\t: fpu|"
                                         "usr/share/misc/pci.ids=\xff\n\n\t\n10de\n10de  \n\t2330";

    alarm(300);
    json_t *machine = probe_files(files, NULL);
    assert_int_equal(json_array_size(json_object_get(machine, "pci")), 3);
    json_decref(machine);
    alarm(0);
}

/* ---- memory modules */

static double peak(const void *table, size_t size)
{
    struct scratch s;

    scratch_open(&s);
    put_files(&s, ONE_CPU METAL_MAKER, NULL);
    scratch_bytes(&s, "sys/firmware/dmi/tables/DMI", table, size);
    json_t *machine = probe_and_close(&s);
    double value = fact_number(json_object_get(machine, "memory"), "peak_gbytes_per_s", -1);
    json_decref(machine);
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

TEST(test_memory_modules)
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

    for (size_t i = 0; i < N(cases); i++) {
        double got = peak(table, put_modules(table, cases[i].plugs));

        if (got != cases[i].gbytes_per_s)
            fail_msg("case %zu: %.1f GB/s", i, got);
    }
    /* Cut anywhere, it must not read past the end. */
    for (size_t size = put_modules(table, cases[0].plugs), cut = 0; cut < size; cut += 3)
        peak(table, cut);
    memset(table, 0xff, sizeof(table));
    assert_true(peak(table, sizeof(table)) < 0);
}

TEST(test_what_steers_libraries)
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
    json_t *found = probe_settings(variables), *none = probe_settings(NULL);
    json_t *want =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "OMP_NUM_THREADS", "4", "OMPI_MCA_btl", "tcp",
                  "LD_PRELOAD", "a.so", "MKL_EMPTY", "", "UCX_TLS", "(not UTF-8)");

    assert_true(json_equal(found, want));
    assert_int_equal(json_object_size(none), 0);
    json_decref(found);
    json_decref(want);
    json_decref(none);
}
