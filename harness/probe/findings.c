/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a buyer should know before reading a single number. Each rule reads the finished facts and
 * adds at most a few sentences; lost PCIe lanes are found where links are read (pcireport.c), GPUs
 * in findings.c.
 */
#include <stdio.h>
#include <string.h>

#include "harness/probe/facts.h"

/* ---- What a buyer should know of the GPUs before reading a single number ---- */

static bool says(const json_t *object, const char *key, const char *text)
{
    const char *value = fact_string(object, key);

    return value && !strcmp(value, text);
}

static void find_driver(struct probe *p, const json_t *gpu, const char *address)
{
    const char *driver = fact_string(gpu, "driver");

    if (!driver) /* not known */
        return;
    if (!strcmp(driver, "none"))
        fact_find(p, SEVERITY_WARN, address, "%s (gpu) has no driver: it cannot be used", address);
    else if (!strcmp(driver, "nouveau"))
        fact_find(p, SEVERITY_WARN, address, "%s (gpu) is driven by nouveau: CUDA cannot use it",
                  address);
    else if (!strcmp(driver, "vfio-pci"))
        fact_find(p, SEVERITY_INFO, address, "%s (gpu) is set aside for a guest (vfio-pci)",
                  address);
}

static void find_share(struct probe *p, const json_t *gpu, const char *address)
{
    if (says(gpu, "nature", "vgpu"))
        fact_find(p, SEVERITY_INFO, address,
                  "%s is a vGPU: other guests may share the GPU behind it", address);
    if (fact_true(json_object_get(gpu, "mig"), "enabled"))
        fact_find(p, SEVERITY_INFO, address,
                  "%s has MIG enabled: a program sees one slice of it, not the whole", address);
    if (says(gpu, "compute_mode", "prohibited"))
        fact_find(p, SEVERITY_WARN, address,
                  "%s is closed to programs (compute mode prohibited): as root, nvidia-smi -c 0",
                  address);
    else if (says(gpu, "compute_mode", "exclusive process"))
        fact_find(p, SEVERITY_INFO, address,
                  "%s takes one program at a time (compute mode exclusive process)", address);
}

static void find_power(struct probe *p, const json_t *gpu, const char *address)
{
    double limit = fact_number(gpu, "power_limit_watts", 0),
           usual = fact_number(gpu, "power_default_watts", 0);

    if (limit > 0 && limit < usual)
        fact_find(p, SEVERITY_WARN, address,
                  "%s may draw %.0f W of its usual %.0f W: large matrix products will be slower",
                  address, limit, usual);
    if (json_is_false(json_object_get(gpu, "persistence_mode")) && probe_on_metal(p))
        fact_find(p, SEVERITY_INFO, address,
                  "%s is without persistence mode: each first program waits for the driver to wake "
                  "it (nvidia-smi -pm 1, as root)",
                  address);
}

/* Through which other devices reach the GPU's memory. */
static void find_window(struct probe *p, const json_t *gpu, const char *address)
{
    double bytes = fact_number(gpu, "bar1_bytes", 0), best = fact_number(gpu, "bar1_best_bytes", 0);

    if (best > bytes && bytes > 0)
        fact_find(p, SEVERITY_INFO, address,
                  "%s shows other devices %.4g GiB of its memory at a time (BAR1) and could show "
                  "%.4g: switch resizable BAR on in the firmware",
                  address, bytes / (1 << 30), best / (1 << 30));
    else if (json_is_false(json_object_get(gpu, "bar1_covers_memory")))
        fact_find(p, SEVERITY_INFO, address,
                  "%s shows other devices %.4g of its %.4g GiB of memory at a time (BAR1)", address,
                  bytes / (1 << 30), fact_number(gpu, "memory_bytes", 0) / (1 << 30));
}

static void find_memory(struct probe *p, const json_t *gpu, const char *address)
{
    const json_t *errors = json_object_get(gpu, "ecc_errors"),
                 *rows = json_object_get(gpu, "remapped_rows");
    long long uncorrected = fact_integer(errors, "uncorrected", 0);

    if (json_is_false(json_object_get(gpu, "ecc")))
        fact_find(p, SEVERITY_INFO, address, "%s runs without ECC", address);
    if (uncorrected)
        fact_find(p, SEVERITY_WARN, address,
                  "%s has had %lld uncorrected memory errors since its driver was loaded", address,
                  uncorrected);
    if (fact_true(rows, "failed"))
        fact_find(p, SEVERITY_WARN, address,
                  "%s has no spare rows left for bad memory: have it replaced", address);
    else if (fact_true(rows, "pending"))
        fact_find(p, SEVERITY_WARN, address,
                  "%s has bad memory that the next reset of the GPU takes out of use", address);
    find_window(p, gpu, address);
}

/* Where the bus shows the link, pcireport.c has found it. */
static void find_hidden_link(struct probe *p, const json_t *gpu, const char *address)
{
    const json_t *pcie = json_object_get(gpu, "pcie");
    const struct pci_device *d = p->pci ? pci_find(p->pci, address) : NULL;
    long long width = fact_integer(pcie, "width", 0), most = fact_integer(pcie, "max_width", 0);

    if (d && json_is_object(json_object_get(d->json, "link")))
        return;
    if (width && width < most)
        fact_find(p, SEVERITY_WARN, address,
                  "%s runs at x%lld of x%lld lanes by NVML: look at seating, riser and the slot's "
                  "bifurcation",
                  address, width, most);
}

static void find_links(struct probe *p, const json_t *gpu, const char *address)
{
    const json_t *nvlink = json_object_get(gpu, "nvlink"), *fabric = json_object_get(gpu, "fabric");
    long long links = fact_integer(nvlink, "links", 0), active = fact_integer(nvlink, "active", 0);

    if (active && active < links)
        fact_find(p, SEVERITY_WARN, address, "%s has %lld of %lld NVLinks active", address, active,
                  links);
    if (json_is_object(fabric) && !says(fabric, "state", "completed"))
        fact_find(p, SEVERITY_WARN, address,
                  "%s waits for the NVLink fabric (%s): CUDA starts only when nvidia-fabricmanager "
                  "has set it up",
                  address, fact_string(fabric, "state") ? fact_string(fabric, "state") : "?");
    else if (fact_integer(fabric, "status", 0))
        fact_find(p, SEVERITY_WARN, address,
                  "%s could not join the NVLink fabric (NVML error %lld): see nvidia-fabricmanager",
                  address, fact_integer(fabric, "status", 0));
    if (fact_true(fabric, "degraded"))
        fact_find(p, SEVERITY_WARN, address, "%s: its NVLink fabric has lost bandwidth", address);
    find_hidden_link(p, gpu, address);
}

/* Once for all pairs, with the first as an example. */
static void find_pairs(struct probe *p, const json_t *gpus)
{
    const json_t *pairs = json_object_get(gpus, "pairs"), *pair, *first = NULL;
    size_t i, refused = 0;

    json_array_foreach (pairs, i, pair) {
        const char *read = fact_string(pair, "p2p_read");

        if (!read || !strcmp(read, "ok"))
            continue;
        refused++;
        first = first ? first : pair;
    }
    if (refused)
        fact_find(
            p, SEVERITY_INFO, "gpus",
            "%zu of %zu pairs of GPUs have no peer access (first %s and %s: %s): their copies "
            "go through the machine's memory",
            refused, json_array_size(pairs), fact_string(first, "a"), fact_string(first, "b"),
            fact_string(first, "p2p_read"));
}

/* An adapter in hardware, which could reach GPU memory by itself. */
static bool has_real_rdma(const struct probe *p)
{
    const json_t *list = json_object_get(p->machine, "rdma"), *device;
    size_t i;

    json_array_foreach (list, i, device)
        if (says(device, "nature", "physical") || says(device, "nature", "passthrough") ||
            says(device, "nature", "sriov-vf"))
            return true;
    return false;
}

static void find_rdma_to_gpus(struct probe *p, const json_t *gpus)
{
    const json_t *dma_buf = json_object_get(json_object_get(gpus, "gpudirect"), "dma_buf");

    if (!has_real_rdma(p) || !json_is_false(json_object_get(gpus, "peer_memory_module")) ||
        json_is_true(dma_buf))
        return;
    if (json_is_false(dma_buf))
        fact_find(
            p, SEVERITY_WARN, "gpus",
            "nvidia_peermem is not loaded, and this driver has no DMA-BUF: adapters reach GPU "
            "memory through the machine's (modprobe nvidia_peermem, as root)");
    else
        fact_find(p, SEVERITY_INFO, "gpus",
                  "nvidia_peermem is not loaded: RDMA straight from GPU memory then needs DMA-BUF, "
                  "of which is not known whether it is there");
}

static void find_cuda(struct probe *p, const json_t *gpus)
{
    const json_t *cuda = json_object_get(gpus, "cuda");

    if (p->tree.live && json_is_false(json_object_get(cuda, "works")))
        fact_find(p, SEVERITY_WARN, "gpus", "CUDA cannot be used here: %s",
                  fact_string(cuda, "works_why"));
    if (fact_true(gpus, "confidential_computing"))
        fact_find(
            p, SEVERITY_INFO, "gpus",
            "confidential computing is on: copies to and from GPUs are encrypted on their way, "
            "far below what the link could do");
    if (fact_true(gpus, "simulated") || fact_true(cuda, "simulated"))
        fact_find(p, SEVERITY_WARN, "gpus",
                  "the GPUs' libraries are stand-ins, for tests: nothing of what they say is real");
}

/* findings.c: sentences on GPUs, among the findings. */
static void probe_gpu_findings(struct probe *p)
{
    const json_t *gpus = json_object_get(p->machine, "gpus"), *gpu;
    bool nvidia = false;
    size_t i;

    json_array_foreach (json_object_get(gpus, "devices"), i, gpu) {
        const char *address = fact_string(gpu, "address");

        nvidia = nvidia || says(gpu, "driver", "nvidia");
        find_driver(p, gpu, address);
        find_share(p, gpu, address);
        find_power(p, gpu, address);
        find_memory(p, gpu, address);
        find_links(p, gpu, address);
    }
    if (!nvidia)
        return;
    find_cuda(p, gpus);
    find_pairs(p, gpus);
    find_rdma_to_gpus(p, gpus);
}

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

/* In their active mode intel_pstate and amd-pstate steer the clock themselves under any governor.
 */
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
        fact_find(p, SEVERITY_INFO, "numa",
                  "%.1f GiB of the machine's %.1f GiB belong to no NUMA node",
                  (total - sum) / (1 << 30), total / (1 << 30));
    if (json_array_size(nodes) > 1 && json_is_true(at(p, "numa", "balancing")))
        fact_find(p, SEVERITY_INFO, "numa",
                  "automatic NUMA balancing is on: pages move while being measured");
}

static void find_memory_findings(struct probe *p)
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
    find_memory_findings(p);
    find_limits(p);
    find_places(p);
    find_peer_path(p);
    probe_gpu_findings(p);
    find_rdma(p);
}
