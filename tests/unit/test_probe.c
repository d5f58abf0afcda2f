// SPDX-License-Identifier: Apache-2.0
/*
 * The probe: the machines of tests/machines against their expected output, and its conclusions one by one on
 * trees that hold only the evidence.
 */
#include "harness/probe/probe.h"
#include "tests/unit/machines.h"
#include "tests/unit/probe_cases.h"

#include <errno.h>

#define PCI_DEVICE "sys/bus/pci/devices/0000:00:03.0"
#define DMI(vendor, product)                                                                       \
    {"sys/class/dmi/id/sys_vendor", vendor "\n"},                                                  \
    {                                                                                              \
        "sys/class/dmi/id/product_name", product "\n"                                              \
    }

/* ---- recorded machines ---- */

static char *read_text(const char *machine, const char *file)
{
    char path[512], *text = calloc(1, 1 << 20);
    FILE *f;

    snprintf(path, sizeof(path), MACHINES_EXPECTED "/%s/%s", machine, file);
    f = fopen(path, "r");
    if (!f)
        fail_msg("cannot open \"%s\": run this from the root of the source", path);
    if (!fread(text, 1, (1 << 20) - 1, f))
        fail_msg("\"%s\" is empty", path);
    fclose(f);
    return text;
}

/* Shows the first line that differs: a whole page is hard to compare by eye. */
static void assert_same_text(const char *machine, const char *file, const char *got)
{
    char *expected = read_text(machine, file);
    size_t line = 0, i = 0, at = 0;

    for (; got[i] && got[i] == expected[i]; i++)
        if (got[i] == '\n') {
            line++;
            at = i + 1;
        }
    if (got[i] != expected[i])
        fail_msg("%s/%s line %zu:\n got      \"%.*s\"\n expected \"%.*s\"", machine, file, line + 1,
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

static void test_recorded_machines(void **state)
{
    (void)state;
    assert_true(machines_each(check_machine, NULL) >= 8);
}

/* ---- conclusions ---- */

static const struct virtual_case {
    const char *hypervisor; /* NULL: unknown */
    char guest;             /* 'y', 'n', or '?' */
    struct file files[6];
} virtual_cases[] = {
    {"none", 'n', {{"proc/cpuinfo", METAL_CPU}, DMI("Dell Inc.", "PowerEdge R760")}},
    {"none", 'n', {{"proc/cpuinfo", METAL_CPU}, DMI("Amazon EC2", "c7i.metal-24xl")}},
    {"none", 'n', {{"proc/cpuinfo", METAL_CPU}, DMI("Google", "Google Compute Engine")}},
    {"none", 'n', {{"proc/cpuinfo", "Features\t: fp asimd\n"}, DMI("Amazon EC2", "c7g.metal")}},
    {"nitro", 'y', {{"proc/cpuinfo", "Features\t: fp asimd\n"}, DMI("Amazon EC2", "c7g.large")}},
    {"nitro", 'y', {{"proc/cpuinfo", GUEST_CPU}, DMI("Amazon EC2", "p5.48xlarge")}},
    {"kvm", 'y', {{"proc/cpuinfo", "Features\t: fp asimd\n"}, DMI("oVirt", "oVirt Node")}},
    {"kvm", 'y', {{"proc/cpuinfo", "Features\t: fp asimd\n"}, DMI("oVirt", "RHEL")}},
    {"kvm",
     'y',
     {{"proc/cpuinfo", "Features\t: fp asimd\n"},
      DMI("Red Hat", "RHEL"),
      {"sys/class/dmi/id/product_family", "RHV\n"}}},
    {"kvm",
     'y',
     {{"proc/cpuinfo", "Features\t: fp asimd\n"}, DMI("Scaleway", "SCW-COPARM1-2C-8G")}},
    {"none", 'n', {{"proc/cpuinfo", METAL_CPU}, DMI("Scaleway", "C2")}},
    {"qemu",
     'y',
     {{"proc/cpuinfo", "Features\t: fp asimd\n"},
      DMI("OpenStack Foundation", "OpenStack Nova"),
      {"sys/class/dmi/id/chassis_asset_tag", "HUAWEICLOUD\n"}}},
    {"hyper-v",
     'y',
     {{"proc/cpuinfo", GUEST_CPU}, DMI("Microsoft Corporation", "Virtual Machine")}},
    {"vmware", 'y', {{"proc/cpuinfo", GUEST_CPU}, DMI("VMware, Inc.", "VMware20,1")}},
    {"virtualbox", 'y', {{"proc/cpuinfo", GUEST_CPU}, DMI("innotek GmbH", "VirtualBox")}},
    {"kvm",
     'y',
     {{"proc/cpuinfo", GUEST_CPU},
      DMI("QEMU", "Standard PC (i440FX + PIIX, 1996)"),
      {"plumb/hypervisor-vendor", "KVM\n"}}},
    /* KVM that poses as Hyper-V for Windows guests. */
    {"qemu",
     'y',
     {{"proc/cpuinfo", GUEST_CPU},
      DMI("QEMU", "Standard PC (Q35 + ICH9, 2009)"),
      {"plumb/hypervisor-vendor", "Microsoft\n"}}},
    /* A guest from which the hypervisor hides the CPU flag. */
    {"vmware", 'y', {{"proc/cpuinfo", METAL_CPU}, DMI("VMware, Inc.", "VMware7,1")}},
    {"kvm", 'y', {{"proc/cpuinfo", "Features\t: fp\n"}, DMI("QEMU", "KVM Virtual Machine")}},
    /* Under macOS too QEMU calls it so. */
    {"qemu", 'y', {{"proc/cpuinfo", "Features\t: fp\n"}, DMI("QEMU", "QEMU Virtual Machine")}},
    {"qemu-tcg",
     'y',
     {{"proc/cpuinfo", "model name\t: QEMU TCG CPU version 2.5+\n" GUEST_CPU},
      DMI("QEMU", "Standard PC (Q35 + ICH9, 2009)")}},
    {"cloud-hypervisor", 'y', {{"proc/cpuinfo", GUEST_CPU}, DMI("Cloud Hypervisor", "cloud")}},
    {"xen", 'y', {{"proc/cpuinfo", GUEST_CPU}, {"sys/hypervisor/type", "xen\n"}}},
    {"xen",
     'n',
     {{"proc/cpuinfo", METAL_CPU},
      {"sys/hypervisor/type", "xen\n"},
      {"proc/xen/capabilities", "control_d\n"}}},
    {"kvm", 'y', {{"proc/device-tree/hypervisor/compatible", "linux,kvm\n"}}},
    {"firecracker",
     'y',
     {{"proc/cpuinfo", GUEST_CPU},
      {"proc/cmdline", "reboot=k virtio_mmio.device=4K@0xd0000000:5\n"}}},
    {"firecracker",
     'y',
     {{"proc/cpuinfo", GUEST_CPU}, {"sys/bus/acpi/devices/VMGENCTR:00/hid", "VMGENCTR\n"}}},
    /* Guests that hide the CPU flag, by their product. */
    {"virtualbox", 'y', {{"proc/cpuinfo", METAL_CPU}, DMI("innotek GmbH", "VirtualBox")}},
    {"virtualbox",
     'y',
     {{"proc/cpuinfo", METAL_CPU}, {"sys/class/dmi/id/bios_vendor", "innotek GmbH\n"}}},
    {"virtualbox",
     'y',
     {{"proc/cpuinfo", METAL_CPU}, {"sys/class/dmi/id/board_name", "VirtualBox\n"}}},
    {"apple",
     'y',
     {{"proc/cpuinfo", "Features\t: fp\n"},
      DMI("Apple Inc.", "Apple Virtualization Generic Platform")}},
    {"kvm", 'y', {{"proc/cpuinfo", METAL_CPU}, DMI("KubeVirt", "None")}},
    {"kvm", 'y', {{"proc/cpuinfo", "Features\t: fp\n"}, DMI("Hetzner", "vServer")}},
    {"kvm", 'y', {{"proc/cpuinfo", METAL_CPU}, DMI("Tencent Cloud", "CVM")}},
    {NULL, '?', {{"proc/cpuinfo", METAL_CPU}, DMI("Tencent Cloud", "S5.LARGE8")}},
    {"qemu",
     'y',
     {{"proc/cpuinfo", METAL_CPU},
      DMI("Some Cloud", "Server"),
      {"sys/class/dmi/id/product_version", "pc-i440fx-8.2\n"}}},
    /* Of the machine of its own, what would speak against it was not read. */
    {NULL, '?', {{"proc/cpuinfo", METAL_CPU}}},
    {NULL, '?', {{"proc/cpuinfo", METAL_CPU}, {"sys/class/dmi/id/sys_vendor", "Dell Inc.\n"}}},
    {NULL, '?', {{"proc/cpuinfo", "Features\t: fp\n"}, DMI("Dell Inc.", "PowerEdge R760")}},
    /* A device that hypervisors make, where nothing else speaks of one, and one that names its maker. */
    {NULL,
     '?',
     {{"proc/cpuinfo", METAL_CPU},
      DMI("Dell Inc.", "PowerEdge R760"),
      {PCI_DEVICE "/vendor", "0x1af4\n"},
      {PCI_DEVICE "/device", "0x1041\n"}}},
    {NULL,
     '?',
     {{"proc/cpuinfo", METAL_CPU},
      DMI("Dell Inc.", "PowerEdge R760"),
      {"sys/bus/virtio/devices/virtio0/device", "0x0001\n"}}},
    {"virtualbox",
     'y',
     {{"proc/cpuinfo", METAL_CPU},
      DMI("Dell Inc.", "PowerEdge R760"),
      {PCI_DEVICE "/vendor", "0x80ee\n"},
      {PCI_DEVICE "/device", "0xbeef\n"}}},
    /* A device whose maker could not be read may be one of these. */
    {NULL,
     '?',
     {{"proc/cpuinfo", METAL_CPU},
      DMI("Dell Inc.", "PowerEdge R760"),
      {PCI_DEVICE "/device", "0x1041\n"}}},
    {NULL, 'y', {{"proc/cpuinfo", GUEST_CPU}}},
    {NULL, '?', {{"proc/cpuinfo", "Features\t: fp asimd\n"}}},
};

static void test_hypervisors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(virtual_cases) / sizeof(*virtual_cases); i++) {
        const struct virtual_case *c = &virtual_cases[i];
        json_t *machine = probe_files(c->files, 6);
        const json_t *v = json_object_get(machine, "virtualization");
        const json_t *guest = json_object_get(v, "guest");
        char answer = json_is_true(guest) ? 'y' : json_is_false(guest) ? 'n' : '?';

        if (strcmp(text_in(v, "hypervisor"), c->hypervisor ? c->hypervisor : "(null)") ||
            answer != c->guest)
            fail_msg("case %zu: hypervisor %s, guest %c; expected %s, %c", i,
                     text_in(v, "hypervisor"), answer, c->hypervisor ? c->hypervisor : "(null)",
                     c->guest);
        if (!c->hypervisor)
            assert_true(json_is_string(json_object_get(v, "hypervisor_why")));
        assert_true(json_array_size(json_object_get(v, "because")) > 0);
        json_decref(machine);
    }
}

#define EXT4                                                                                       \
    {                                                                                              \
        "proc/mounts", "/dev/sda1 / ext4 rw 0 0\n"                                                 \
    }

static const struct container_case {
    const char *container; /* "(null)": unknown */
    struct file files[4];
} container_cases[] = {
    {"none", {{"proc/2/comm", "kthreadd\n"}, EXT4}},
    /* A disk image made from a container image. */
    {"none", {{".dockerenv", ""}, {"proc/2/comm", "kthreadd\n"}, EXT4}},
    {"docker", {{".dockerenv", ""}, {"proc/mounts", "overlay / overlay rw 0 0\n"}}},
    {"docker", {{"proc/self/cgroup", "0::/docker/0123456789abcdef\n"}}},
    {"docker", {{"proc/1/cgroup", "0::/system.slice/docker-0123456789ab.scope\n"}}},
    {"none",
     {{"proc/self/cgroup", "0::/system.slice/docker.service\n"},
      {"proc/2/comm", "kthreadd\n"},
      EXT4}},
    /* Services of a host, named by their users. */
    {"none",
     {{"proc/self/cgroup", "0::/system.slice/actions.runner.build-machine-1.service\n"},
      {"proc/2/comm", "kthreadd\n"},
      EXT4}},
    {"none",
     {{"proc/self/cgroup", "0::/system.slice/docker-compose-runner.service\n"},
      {"proc/2/comm", "kthreadd\n"},
      EXT4}},
    {"none",
     {{"proc/self/cgroup", "0::/user.slice/docker-test.slice/libpod-conmon-0123456789ab.scope\n"},
      {"proc/2/comm", "kthreadd\n"},
      EXT4}},
    {"docker", {{"proc/self/cgroup", "0::/docker/0123456789abcdef/system.slice/cron.service\n"}}},
    {"docker", {{"proc/1/cgroup", "5:cpu:/docker/0123456789abcdef\n"}}},
    {"podman", {{"proc/self/cgroup", "0::/user.slice/libpod-0123456789ab.scope/container\n"}}},
    {"kubernetes", {{"proc/1/cgroup", "2:cpu:/kubepods/burstable/pod0a/0123456789abcdef\n"}}},
    {"systemd-nspawn", {{"proc/1/cgroup", "0::/machine.slice/machine-a.scope/init.scope\n"}}},
    {"lxc", {{"proc/1/cgroup", "0::/lxc.payload.web/init.scope\n"}}},
    {"lxc", {{"proc/1/cgroup", "7:cpu:/lxc/web\n"}}},
    {"podman", {{"run/.containerenv", ""}}},
    {"kubernetes", {{"proc/self/cgroup", "0::/kubepods.slice/kubepods-pod1.slice\n"}}},
    {"kubernetes", {{"run/secrets/kubernetes.io/token", "x\n"}}},
    {"systemd-nspawn", {{"run/systemd/container", "systemd-nspawn\n"}}},
    /* What would tell was not read, or speaks both ways. */
    {"(null)", {{"proc/2/comm", "kthreadd\n"}}},
    {"(null)", {EXT4}},
    {"(null)", {{".dockerenv", ""}, EXT4}},
    {"(null)", {{"proc/mounts", "overlay / overlay rw 0 0\n"}}},
    {"(null)", {{"proc/mounts", "overlay / overlay rw 0 0\n"}, {"proc/2/comm", "kthreadd\n"}}},
    {"(null)", {{"proc/uptime", "1 1\n"}}},
};

static void test_containers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(container_cases) / sizeof(*container_cases); i++) {
        json_t *machine = probe_files(container_cases[i].files, 4);
        const char *got = text_in(json_object_get(machine, "virtualization"), "container");

        if (strcmp(got, container_cases[i].container))
            fail_msg("case %zu: \"%s\", expected \"%s\"", i, got, container_cases[i].container);
        json_decref(machine);
    }
}

/* The environment of process 1 holds NUL bytes between its variables. */
static void test_container_from_environment(void **state)
{
    static const char environment[] = "SECRET=mine\0container=lxc\0TERM=x\0";
    struct scratch s;
    json_t *machine;
    char *dump;

    (void)state;
    scratch_open(&s);
    scratch_bytes(&s, "proc/1/environ", environment, sizeof(environment) - 1);
    assert_int_equal(probe_machine(s.root, &machine), 0);
    assert_string_equal(text_in(json_object_get(machine, "virtualization"), "container"), "lxc");
    dump = json_dumps(machine, 0);
    assert_null(strstr(dump, "SECRET"));
    free(dump);
    json_decref(machine);
    scratch_close(&s);
}

#define V2 "sys/fs/cgroup/"
#define V1 "sys/fs/cgroup/cpu,cpuacct/"

/* The tightest limit on the way up holds, in both versions; "none" is known, and null is not. */
static const struct limit_case {
    const char *cpus, *bytes; /* as JSON writes them */
    struct file files[8];
} limit_cases[] = {
    {"1.5",
     "4096",
     {{"proc/self/cgroup", "0::/a/b\n"},
      {V2 "a/b/cpu.max", "max 100000\n"},
      {V2 "a/cpu.max", "150000 100000\n"},
      {V2 "a/b/memory.max", "8192\n"},
      {V2 "a/memory.max", "4096\n"},
      {"plumb/absent", V2 "cpu.max\n" V2 "memory.max\n"}}},
    {"\"none\"",
     "\"none\"",
     {{"proc/self/cgroup", "0::/a\n"},
      {V2 "a/cpu.max", "max 100000\n"},
      {V2 "a/memory.max", "max\n"},
      {"plumb/absent", V2 "cpu.max\n" V2 "memory.max\n"}}},
    /* The parent's could be tighter. */
    {"null",
     "null",
     {{"proc/self/cgroup", "0::/a/b\n"},
      {V2 "a/b/cpu.max", "150000 100000\n"},
      {V2 "a/b/memory.max", "4096\n"},
      {"plumb/absent", V2 "cpu.max\n" V2 "memory.max\n"}}},
    {"null", "null", {{"proc/self/cgroup", "0::/\n"}}},
    {"null", "null", {{"proc/uptime", "1 1\n"}}},
    {"3.5",
     "\"none\"",
     {{"proc/self/cgroup", "4:memory:/\n3:cpu,cpuacct:/x\n"},
      {V1 "cpu.cfs_quota_us", "-1\n"},
      {V1 "x/cpu.cfs_quota_us", "350000\n"},
      {V1 "x/cpu.cfs_period_us", "100000\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}}},
    /* A quota without its period. */
    {"null",
     "\"none\"",
     {{"proc/self/cgroup", "4:memory:/\n3:cpu,cpuacct:/x\n"},
      {V1 "cpu.cfs_quota_us", "-1\n"},
      {V1 "x/cpu.cfs_quota_us", "350000\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}}},
    /* Each controller is in a hierarchy of its own: memory in v1's, cpu in v2's, */
    {"\"none\"",
     "2147483648",
     {{"proc/self/cgroup", "4:memory:/\n0::/\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n"},
      {"plumb/absent", V2 "cpu.max\n" V2 "memory.max\n"}}},
    /* the same where v2's has a folder of its own, */
    {"1.5",
     "2147483648",
     {{"proc/self/cgroup", "4:memory:/b\n0::/a\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"sys/fs/cgroup/memory/b/memory.limit_in_bytes", "2147483648\n"},
      {V2 "unified/a/cpu.max", "150000 100000\n"},
      {V2 "unified/a/memory.max", "4096\n"},
      {"plumb/absent", V2 "cpu.max\n" V2 "unified/cpu.max\n"}}},
    /* and the other way round; */
    {"3.5",
     "4096",
     {{"proc/self/cgroup", "3:cpu,cpuacct:/x\n0::/a\n"},
      {V1 "cpu.cfs_quota_us", "-1\n"},
      {V1 "x/cpu.cfs_quota_us", "350000\n"},
      {V1 "x/cpu.cfs_period_us", "100000\n"},
      {V2 "a/cpu.max", "100000 100000\n"},
      {V2 "a/memory.max", "4096\n"},
      {"plumb/absent", V2 "memory.max\n"}}},
    /* where v2's file was not read, nothing is known. */
    {"3.5",
     "null",
     {{"proc/self/cgroup", "3:cpu,cpuacct:/x\n0::/a\n"},
      {V1 "cpu.cfs_quota_us", "-1\n"},
      {V1 "x/cpu.cfs_quota_us", "350000\n"},
      {V1 "x/cpu.cfs_period_us", "100000\n"}}},
};

static void test_control_group_limits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(limit_cases) / sizeof(*limit_cases); i++) {
        const struct limit_case *c = &limit_cases[i];
        json_t *machine = probe_files(c->files, 8);
        const json_t *limits = in(machine, "virtualization", "limits");
        char *cpus = json_dumps(json_object_get(limits, "cpu_quota"), JSON_ENCODE_ANY),
             *bytes = json_dumps(json_object_get(limits, "memory_bytes"), JSON_ENCODE_ANY);

        if (strcmp(cpus, c->cpus) || strcmp(bytes, c->bytes))
            fail_msg("case %zu: %s CPUs, %s bytes", i, cpus, bytes);
        char *text = printed(machine);
        if (!strcmp(cpus, "null")) { /* people are told why, too */
            const char *why = json_string_value(json_object_get(limits, "cpu_quota_why"));
            assert_non_null(why);
            assert_non_null(strstr(text, "CPU quota ? ("));
            assert_non_null(strstr(strstr(text, "CPU quota ? ("), why));
        }
        assert_true(!strcmp(cpus, "\"none\"") == (strstr(text, "no CPU quota") != NULL));
        free(text);
        free(cpus);
        free(bytes);
        json_decref(machine);
    }
}

/* Policies differ on processors with two kinds of cores: the widest range is told. */
static void test_clock_of_two_policies(void **state)
{
#define POLICY "sys/devices/system/cpu/cpufreq/policy"
    static const struct file files[] = {
        {POLICY "0/scaling_governor", "performance\n"},
        {POLICY "0/cpuinfo_max_freq", "3800000\n"},
        {POLICY "0/cpuinfo_min_freq", "800000\n"},
        {POLICY "8/scaling_governor", "powersave\n"},
        {POLICY "8/cpuinfo_max_freq", "5000000\n"},
        {POLICY "8/cpuinfo_min_freq", "400000\n"},
    };
    json_t *machine = probe_files(files, 6);
    const json_t *clock = in(machine, "cpu", "clock");

    (void)state;
    assert_float_equal(json_number_value(json_object_get(clock, "max_mhz")), 5000, 1e-9);
    assert_float_equal(json_number_value(json_object_get(clock, "min_mhz")), 400, 1e-9);
    assert_int_equal(json_array_size(json_object_get(clock, "governors")), 2);
    assert_true(finds(machine, "governor"));
    json_decref(machine);
}

/* Options that move results are told; the rest of the line may hold secrets. */
static void test_kernel_options(void **state)
{
    static const struct file files[] = {
        {"proc/cmdline", "root=/dev/sda1 isolcpus=2-7 token=abc nosmt -- mitigations=off\n"}};
    json_t *machine = probe_files(files, 1);
    const json_t *options = in(machine, "host", "kernel_options");

    (void)state;
    assert_int_equal(json_array_size(options), 2);
    assert_string_equal(json_string_value(json_array_get(options, 0)), "isolcpus=2-7");
    assert_string_equal(json_string_value(json_array_get(options, 1)), "nosmt");
    json_decref(machine);
}

static void test_what_is_no_tree(void **state)
{
    struct scratch s;
    json_t *machine;

    (void)state;
    scratch_open(&s);
    assert_int_equal(probe_machine("/nonexistent", &machine), -ENOENT);
    assert_null(machine);
    assert_int_equal(probe_machine(s.root, &machine), -ENODATA);
    scratch_put(&s, "file", "x");
    assert_int_equal(probe_machine(scratch_path(&s, "file"), &machine), -ENOTDIR);
    scratch_close(&s);
}

/* The running machine: whatever it is, the object is whole and prints. */
static void test_this_machine(void **state)
{
    static const char *const sections[] = {"host", "virtualization", "cpu",      "caches",
                                           "numa", "memory",         "pci",      "network",
                                           "rdma", "gpus",           "proximity"};
    json_t *machine;
    char *text;

    (void)state;
    assert_int_equal(probe_machine(NULL, &machine), 0);
    for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
        assert_non_null(json_object_get(machine, sections[i]));
    text = printed(machine);
    assert_non_null(strstr(text, "PROCESSOR"));
    free(text);
    json_decref(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_machines),
        cmocka_unit_test(test_hypervisors),
        cmocka_unit_test(test_containers),
        cmocka_unit_test(test_container_from_environment),
        cmocka_unit_test(test_control_group_limits),
        cmocka_unit_test(test_clock_of_two_policies),
        cmocka_unit_test(test_kernel_options),
        cmocka_unit_test(test_what_is_no_tree),
        cmocka_unit_test(test_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
