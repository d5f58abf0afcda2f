// SPDX-License-Identifier: Apache-2.0
/*
 * What a buyer should know before reading a single number. Each rule reads the finished facts and adds
 * at most a few sentences; lost PCIe lanes are found where links are read (pcilink.c), GPUs in findings_gpu.c.
 */
#include "harness/probe/gpu_parts.h"
#include "harness/probe/pci.h"

#include <stdio.h>
#include <string.h>

static const json_t *at(const struct probe *p, const char *section, const char *key)
{
    return json_object_get(json_object_get(p->machine, section), key);
}

static bool has_word(const json_t *list, const char *word)
{
    const json_t *entry;
    size_t i;

    json_array_foreach (list, i, entry)
        if (json_is_string(entry) && !strcmp(json_string_value(entry), word))
            return true;
    return false;
}

static const char *entry_text(const json_t *list, size_t i)
{
    const char *text = json_string_value(json_array_get(list, i));

    return text ? text : "?";
}

/* In their active mode intel_pstate and amd-pstate steer the clock themselves under any governor. */
static void find_governor(struct probe *p)
{
    const json_t *clock = at(p, "cpu", "clock");
    const json_t *governors = json_object_get(clock, "governors");
    const json_t *preferences = json_object_get(clock, "energy_preferences");
    bool active = has_word(json_object_get(clock, "drivers"), "intel_pstate") ||
                  has_word(json_object_get(clock, "drivers"), "amd-pstate-epp");

    if (has_word(governors, "powersave") && active) {
        if (json_array_size(preferences) && !has_word(preferences, "performance"))
            fact_find(p, SEVERITY_INFO, "cpu",
                      "the clock governor is powersave with energy preference \"%s\": set "
                      "\"performance\" for steady results",
                      entry_text(preferences, 0));
    } else if (json_array_size(governors) && !has_word(governors, "performance") &&
               json_is_array(json_object_get(clock, "drivers"))) {
        fact_find(p, has_word(governors, "powersave") ? SEVERITY_WARN : SEVERITY_INFO, "cpu",
                  "the clock governor is \"%s\": set \"performance\" for steady results",
                  entry_text(governors, 0));
    }
    if (json_array_size(governors) > 1)
        fact_find(p, SEVERITY_WARN, "cpu",
                  "processors differ in their clock governor: \"%s\", \"%s\"",
                  entry_text(governors, 0), entry_text(governors, 1));
    if (json_is_false(json_object_get(clock, "boost")))
        fact_find(p, SEVERITY_INFO, "cpu", "boost clocks are switched off");
}

/* Known to hold nothing: a list that could not be read is null. */
static bool is_empty(const json_t *list)
{
    return json_is_array(list) && !json_array_size(list);
}

static void find_cpu(struct probe *p)
{
    const json_t *cpu = json_object_get(p->machine, "cpu");
    const json_t *caches = json_object_get(p->machine, "caches");

    find_governor(p);
    if (fact_integer(json_object_get(cpu, "smt"), "active", 0) == 1)
        fact_find(p, SEVERITY_INFO, "cpu",
                  "SMT is on: two threads share a core, so threads beyond the cores add little");
    if (p->guest && is_empty(json_object_get(json_object_get(cpu, "clock"), "drivers")))
        fact_find(p, SEVERITY_INFO, "cpu", "the hypervisor hides the CPU's clock and its governor");
    if (p->guest && is_empty(caches))
        fact_find(p, SEVERITY_WARN, "cpu", "the hypervisor hides the caches");
}

static bool starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* Reading these needs no system call, or a short one; the others cost a trap each. */
static void find_clocksource(struct probe *p)
{
    const char *name = fact_string(json_object_get(p->machine, "host"), "clocksource");

    if (!name || !strcmp(name, "tsc") || !strcmp(name, "arch_sys_counter") ||
        !strcmp(name, "timebase"))
        return;
    if (!strcmp(name, "kvm-clock") || starts(name, "hyperv_clocksource"))
        fact_find(p, SEVERITY_INFO, "clock",
                  "the clock source is \"%s\", not tsc: fast, but steered by the hypervisor", name);
    else
        fact_find(p, SEVERITY_WARN, "clock",
                  "the clock source is \"%s\", not tsc: each reading of the clock is slow", name);
}

static void find_numa(struct probe *p)
{
    const json_t *nodes = at(p, "numa", "nodes"), *node;
    double total = fact_number(json_object_get(p->machine, "memory"), "total_bytes", 0), sum = 0;
    bool all = true;
    size_t i;

    json_array_foreach (nodes, i, node) {
        sum += fact_number(node, "memory_bytes", 0);
        all = all && json_is_integer(json_object_get(node, "memory_bytes"));
    }
    if (all && sum > 0 && total > 0 && sum < 0.9 * total)
        fact_find(
            p, SEVERITY_INFO, "numa",
            "the NUMA nodes show %.1f GiB of the machine's %.1f GiB: the rest has no place yet",
            sum / (1 << 30), total / (1 << 30));
    if (json_array_size(nodes) > 1 && json_is_true(at(p, "numa", "balancing")))
        fact_find(p, SEVERITY_INFO, "numa",
                  "automatic NUMA balancing is on: pages move while being measured");
}

static void find_memory(struct probe *p)
{
    const char *thp = fact_string(at(p, "memory", "transparent_huge_pages"), "enabled");
    const json_t *modules = at(p, "memory", "modules"), *module;
    long long rated = 0, running = 0, size = 0;
    bool slow = false, mixed = false;
    size_t i;

    if (thp && !strcmp(thp, "never"))
        fact_find(p, SEVERITY_INFO, "memory",
                  "transparent huge pages are off (never): large buffers pay for small pages");
    if (!probe_on_metal(p)) /* a hypervisor makes the modules up */
        return;
    json_array_foreach (modules, i, module) {
        long long r = fact_integer(module, "rated_mt_s", 0);
        long long n = fact_integer(module, "running_mt_s", 0);
        long long s = fact_integer(module, "size_bytes", 0);

        if (r && n && n < r && !slow) {
            slow = true;
            rated = r;
            running = n;
        }
        mixed = mixed || (size && s != size);
        size = s;
    }
    if (slow)
        fact_find(p, SEVERITY_INFO, "memory", "the memory runs at %lld of its rated %lld MT/s",
                  running, rated);
    if (mixed)
        fact_find(
            p, SEVERITY_WARN, "memory",
            "memory modules differ in size: part of the memory is interleaved over fewer channels");
}

static void find_limits(struct probe *p)
{
    const json_t *limits = at(p, "virtualization", "limits");
    double quota = fact_number(limits, "cpu_quota", 0);
    long long threads = fact_integer(json_object_get(p->machine, "cpu"), "threads", 0);
    long long total = fact_integer(json_object_get(p->machine, "memory"), "total_bytes", 0);
    long long bytes = fact_integer(limits, "memory_bytes", 0);
    const char *allowed = fact_string(limits, "allowed_cpus");
    int count = allowed ? cpulist_count(allowed, 65536) : -1;

    if (quota > 0 && threads && quota < (double)threads)
        fact_find(p, SEVERITY_WARN, "limits",
                  "the control group allows %.2g CPUs of %lld: threads beyond it are paused", quota,
                  threads);
    if (count > 0 && count < threads)
        fact_find(p, SEVERITY_WARN, "limits", "only %d of %lld CPUs may be used here (%s)", count,
                  threads, allowed);
    if (bytes && total && bytes < total)
        fact_find(p, SEVERITY_INFO, "limits",
                  "the control group allows %.1f GiB of %.1f GiB memory", (double)bytes / (1 << 30),
                  (double)total / (1 << 30));
}

/* The kinds between which data moves without the processor. */
static bool takes_part(const char *kind)
{
    return !strcmp(kind, "gpu") || !strcmp(kind, "infiniband") || !strcmp(kind, "ethernet");
}

/* "" where the class could not be read. */
static const char *kind_text(const json_t *device)
{
    const char *kind = fact_string(device, "kind");

    return kind ? kind : "";
}

/* A device that matters whose NUMA node is not told, on a machine where it could matter. */
static void find_places(struct probe *p)
{
    const json_t *list = json_object_get(p->machine, "pci"), *d;
    size_t nodes = json_array_size(at(p, "numa", "nodes")), i;

    json_array_foreach (list, i, d) {
        const char *kind = kind_text(d), *nature = fact_string(d, "nature");
        const struct pci_device *device = pci_find(p->pci, fact_string(d, "address"));
        bool gpu = !strcmp(kind, "gpu");

        if (!device || !device->no_node || !takes_part(kind))
            continue;
        if (nodes > 1 && strcmp(nature, "emulated"))
            fact_find(p, SEVERITY_WARN, fact_string(d, "address"),
                      "%s (%s) has no NUMA node though there are %zu: its place must be found by "
                      "measuring",
                      fact_string(d, "address"), kind, nodes);
        else if (p->guest && gpu)
            fact_find(
                p, SEVERITY_INFO, fact_string(d, "address"),
                "%s (gpu) has no NUMA node: the hypervisor does not tell which processors and "
                "adapters are near it",
                fact_string(d, "address"));
    }
}

static size_t count_kind(struct probe *p, const char *kind)
{
    const json_t *list = json_object_get(p->machine, "pci"), *d;
    size_t count = 0, i;

    json_array_foreach (list, i, d)
        count += !strcmp(kind_text(d), kind);
    return count;
}

/* Peer-to-peer copies go by the root and its IOMMU, instead of straight through the switch. */
static void find_peer_path(struct probe *p)
{
    const json_t *list = json_object_get(p->machine, "pci"), *d;
    size_t redirected = 0, translated = 0, i;
    const char *first = NULL, *type = NULL;

    if (!count_kind(p, "gpu") || !probe_on_metal(p))
        return;
    json_array_foreach (list, i, d) {
        const char *t = fact_string(d, "iommu_type");

        if (!takes_part(kind_text(d)) || !strcmp(fact_string(d, "nature"), "sriov-vf"))
            continue;
        if (fact_true(d, "acs_redirect") && json_array_size(json_object_get(d, "uplinks"))) {
            redirected++;
            first = first ? first : fact_string(d, "address");
        }
        if (t && starts(t, "DMA")) {
            translated++;
            type = t;
        }
    }
    if (redirected)
        fact_find(
            p, SEVERITY_WARN, first,
            "ACS sends peer-to-peer traffic of %zu GPUs and adapters (first %s) up to the root "
            "instead of through their switch: GPU-to-adapter copies are slowed",
            redirected, first);
    if (translated)
        fact_find(
            p, SEVERITY_INFO, "iommu",
            "the IOMMU translates (type %s) for %zu GPUs and adapters: iommu=pt avoids its cost "
            "in peer-to-peer copies",
            type, translated);
}

/* Known to have none: one whose type could not be read may be one. */
static bool lacks_roce_v2(const json_t *port)
{
    const json_t *gids = json_object_get(port, "gids"), *gid;
    size_t i;

    json_array_foreach (gids, i, gid)
        if (!fact_string(gid, "type") || !strcmp(fact_string(gid, "type"), "RoCE v2"))
            return false;
    return json_is_array(gids);
}

static void find_port(struct probe *p, const char *name, const json_t *device, const json_t *port)
{
    const char *state = fact_string(port, "state"), *layer = fact_string(port, "link_layer");
    const char *driver = fact_string(device, "driver");
    long long number = fact_integer(port, "port", 0);

    if (state && strcmp(state, "ACTIVE"))
        fact_find(p, SEVERITY_WARN, name, "%s port %lld is %s, not ACTIVE", name, number, state);
    else if (layer && !strcmp(layer, "Ethernet") && driver && strcmp(driver, "siw") &&
             strcmp(driver, "efa") && lacks_roce_v2(port))
        fact_find(p, SEVERITY_WARN, name, "%s port %lld has no RoCE v2 GID: it cannot be routed",
                  name, number);
}

static void find_rdma(struct probe *p)
{
    const json_t *list = json_object_get(p->machine, "rdma"), *device, *port;
    size_t i, k;

    json_array_foreach (list, i, device) {
        const char *name = fact_string(device, "name"), *nature = fact_string(device, "nature");

        if (nature && !strcmp(nature, "software"))
            fact_find(p, SEVERITY_INFO, name,
                      "%s is RDMA in software: the processor does the work of an adapter", name);
        json_array_foreach (json_object_get(device, "ports"), k, port)
            find_port(p, name, device, port);
    }
}

void probe_findings(struct probe *p)
{
    find_cpu(p);
    find_clocksource(p);
    find_numa(p);
    find_memory(p);
    find_limits(p);
    find_places(p);
    find_peer_path(p);
    probe_gpu_findings(p);
    find_rdma(p);
}
