/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a machine: see facts.h. */
#include "harness/report/facts.h"

#include <stdio.h>
#include <string.h>

#include "harness/report/show.h"

/* ---- Values ---- */

const char *shown_value(struct pool *pool, const json_t *value)
{
    const char *text = "";

    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        return pool_text(pool, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value))
        return pool_text(pool, "%.6g", json_real_value(value));
    if (json_is_boolean(value))
        return json_is_true(value) ? "on" : "off";
    for (size_t i = 0; i < json_array_size(value); i++) {
        size_t k = 0;

        while (!json_equal(json_array_get(value, k), json_array_get(value, i)))
            k++;
        if (k == i)
            text = show_joined(pool, text, shown_value(pool, json_array_get(value, i)));
    }
    return text;
}

const char *shown_counted(struct pool *pool, const char *const *texts, size_t n)
{
    const char *text = "";

    for (size_t i = 0; i < n; i++) {
        size_t before = 0, same = 0;

        for (size_t k = 0; k < n; k++) {
            bool like = !strcmp(texts[k], texts[i]);
            same += like;
            before += like && k < i;
        }
        if (!before && *texts[i])
            text = pool_text(pool, "%s%s%s%s", text, *text ? "; " : "",
                             same > 1 ? pool_text(pool, "%zu x ", same) : "", texts[i]);
    }
    return text;
}

static const char *size_text(struct pool *pool, const json_t *value)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double bytes = json_number_value(value);
    size_t u = 0;

    if (!json_is_number(value))
        return "";
    for (; bytes >= 1023.5 && u < 4; u++) /* what is rounded to 1024 is 1 of the next unit */
        bytes /= 1024;
    return pool_text(pool, bytes < 100 ? "%.3g %s" : "%.0f %s", bytes, units[u]);
}

static const char *value_at(struct pool *pool, const json_t *object, const char *path)
{
    return shown_value(pool, fact_at(object, path));
}

/* "400 Gb/s", or "" where it is not known. */
static const char *with_unit(struct pool *pool, const char *text, const char *unit)
{
    return *text ? pool_text(pool, "%s%s", text, unit) : text;
}

/* ---- Texts of their own ---- */

/* As their makers write them. */
static const char *guest_text(struct pool *pool, const json_t *hypervisor)
{
    static const char *const known[][2] = {{"kvm", "KVM"},
                                           {"qemu", "QEMU"},
                                           {"qemu-tcg", "QEMU (TCG)"},
                                           {"xen", "Xen"},
                                           {"vmware", "VMware"},
                                           {"virtualbox", "VirtualBox"},
                                           {"hyper-v", "Hyper-V"},
                                           {"nitro", "Nitro"},
                                           {"firecracker", "Firecracker"},
                                           {"parallels", "Parallels"}};
    const char *name = shown_value(pool, hypervisor);

    if (!strcmp(name, "none"))
        return "bare metal";
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(known[i][0], name))
            name = known[i][1];
    return with_unit(pool, name, " guest");
}

const char *shown_nature(struct pool *pool, const json_t *machine)
{
    const char *host = guest_text(pool, fact_at(machine, "virtualization.hypervisor")),
               *container = fact_name(machine, "virtualization.container");

    if (!*container || !strcmp(container, "none"))
        return host;
    return *host ? pool_text(pool, "%s on %s", container, host) : container;
}

static const char *container_text(struct pool *pool, const json_t *container)
{
    const char *name = shown_value(pool, container);

    return strcmp(name, "none") ? name : "no container";
}

static const char *count_text(struct pool *pool, const json_t *list)
{
    return json_is_array(list) ? pool_text(pool, "%zu", json_array_size(list)) : "";
}

/* Family and model number of x86; elsewhere, the maker has other numbers. Names that are sold are
 * given to several. */
static const char *processor_text(struct pool *pool, const json_t *cpu)
{
    const char *vendor = value_at(pool, cpu, "vendor"), *family = value_at(pool, cpu, "family"),
               *model = value_at(pool, cpu, "model_number");

    if (!*vendor)
        return "";
    return pool_text(pool, "%s%s%s%s%s", vendor, *family ? " family " : "", family,
                     *model ? " model " : "", model);
}

static const char *caches_text(struct pool *pool, const json_t *list)
{
    const char *text = "";

    FACT_EACH (list, cache) {
        const char *size = size_text(pool, json_object_get(cache, "size_bytes"));
        const char *level = value_at(pool, cache, "level");
        const char *count = with_unit(pool, value_at(pool, cache, "count"), " x ");

        if (*size && *level)
            text = show_joined(pool, text, pool_text(pool, "L%s %s%s", level, count, size));
    }
    return text;
}

static const char *pages_text(struct pool *pool, const json_t *list)
{
    const char *text = "";

    FACT_EACH (list, one) {
        const char *pages = value_at(pool, one, "pages"),
                   *size = size_text(pool, json_object_get(one, "page_bytes"));

        if (*pages && strcmp(pages, "0") != 0)
            text = show_joined(pool, text, pool_text(pool, "%s of %s", pages, size));
    }
    return *text || !json_is_array(list) ? text : "none";
}

/* Interfaces that are up, or whose state is not told. */
static const char *interface_text(struct pool *pool, const json_t *nic)
{
    const char *text = value_at(pool, nic, "driver"),
               *speed = with_unit(pool, value_at(pool, nic, "speed_gbits_per_s"), " Gb/s"),
               *mtu = value_at(pool, nic, "mtu");

    if (fact_true(nic, "virtual") || fact_is(nic, "state", "down"))
        return "";
    text = show_joined(pool, *text ? text : "no driver named", value_at(pool, nic, "nature"));
    text = show_joined(pool, text, speed);
    return *mtu ? pool_text(pool, "%s, MTU %s", text, mtu) : text;
}

static const char *rdma_text(struct pool *pool, const json_t *device)
{
    const char *text = value_at(pool, device, "driver"),
               *firmware = value_at(pool, device, "firmware");

    text = show_joined(pool, *text ? text : "no driver named", value_at(pool, device, "nature"));
    if (*firmware)
        text = pool_text(pool, "%s, firmware %s", text, firmware);
    FACT_EACH (json_object_get(device, "ports"), port) {
        text = show_joined(pool, text, value_at(pool, port, "link_layer"));
        text = show_joined(pool, text,
                           with_unit(pool, value_at(pool, port, "rate_gbits_per_s"), " Gb/s"));
        text = show_joined(pool, text, value_at(pool, port, "state"));
    }
    return text;
}

static const char *gpu_text(struct pool *pool, const json_t *gpu)
{
    const char *name = value_at(pool, gpu, "name"), *nature = value_at(pool, gpu, "nature");

    return pool_text(pool, "%s (%s)", *name ? name : "without a name",
                     *nature ? nature : "nature not known");
}

const char *shown_link(struct pool *pool, const json_t *device)
{
    const char *width = value_at(pool, device, "link.now_width");
    const char *rate = value_at(pool, device, "link.now_gt_s");
    const char *generation = value_at(pool, device, "link.generation");

    if (!*width || !*rate)
        return "";
    return *generation ? pool_text(pool, "PCIe %s.0 x%s", generation, width)
                       : pool_text(pool, "x%s, %s GT/s", width, rate);
}

/* ---- The table ---- */

#define ON_MEMORY "Memory, Copies, GPU memory"
#define ON_PCIE   "PCIe, Network, Collectives"
#define ON_GPU    "GPU matrix core, GPU memory, GPU launch, PCIe, NVLink"
#define ON_NVLINK "NVLink, Collectives"
#define GPUS      "machine.gpus.devices[]"

/* What differs is told in this order. The program may be what is under test, and what was asked of
 * it is no environment; the suite's text is. A link that is idle may be slower. */
const struct shown_fact shown_facts[] = {
    {"virtualisation", "machine.virtualization.hypervisor", .pipes = "", .text = guest_text,
     .page = true, .weight = 2},
    {"container", "machine.virtualization.container", .pipes = "", .text = container_text,
     .page = true},
    {"NUMA nodes", "machine.numa.nodes", .pipes = ON_MEMORY ", " ON_PCIE, .text = count_text,
     .page = true},
    {"processor", "machine.cpu", .pipes = "Matrix core, " ON_MEMORY ", " ON_NETWORK,
     .text = processor_text, .page = true, .weight = 8},
    {"caches", "machine.caches", .pipes = "Matrix core, " ON_MEMORY, .text = caches_text,
     .page = true},
    {"CPU features", "machine.cpu.features", .pipes = "Matrix core, Memory", .is = "",
     .between = ", ", .page = true},
    {"CPU quota", "machine.virtualization.limits.cpu_quota", .unit = " CPUs", .pipes = "",
     .page = true},
    {"memory allowed", "machine.virtualization.limits.memory_bytes", .unit = "B",
     .pipes = ON_MEMORY, .page = true},
    {"CPUs allowed", "machine.virtualization.limits.allowed_cpus", .pipes = "", .page = true},
    {"vendor", "machine.host.vendor", .pipes = "", .page = true},
    {"product", "machine.host.product", .pipes = "", .page = true},
    {"BIOS", "machine.host.bios", .pipes = ""},
    {"architecture", "machine.host.architecture", .pipes = "", .page = true, .weight = 16},
    {"CPU model", "machine.cpu.model", .pipes = "", .page = true, .weight = 1},
    {"CPU stepping", "machine.cpu.stepping", .pipes = ""},
    {"CPU microcode", "machine.cpu.microcode", .pipes = ""},
    {"sockets", "machine.cpu.sockets", .pipes = "", .page = true},
    {"cores", "machine.cpu.cores", .pipes = "", .page = true, .weight = 3},
    {"threads", "machine.cpu.threads", .pipes = "", .page = true},
    {"SMT", "machine.cpu.smt.control", .pipes = ""},
    {"CPU clock, highest", "machine.cpu.clock.max_mhz", .unit = " MHz", .pipes = "", .page = true},
    {"CPU clock, base", "machine.cpu.clock.base_mhz", .unit = " MHz", .pipes = ""},
    {"CPU governor", "machine.cpu.clock.governors", .pipes = "", .page = true},
    {"CPU clock's driver", "machine.cpu.clock.drivers", .pipes = ""},
    {"CPU energy preference", "machine.cpu.clock.energy_preferences", .pipes = ""},
    {"CPU boost", "machine.cpu.clock.boost", .pipes = ""},
    {"NUMA balancing", "machine.numa.balancing", .pipes = ON_MEMORY},
    {"memory", "machine.memory.total_bytes", .unit = "B", .pipes = ON_MEMORY, .page = true,
     .weight = 2},
    {"memory channels", "machine.memory.channels", .pipes = ON_MEMORY, .page = true},
    {"memory's peak rate", "machine.memory.peak_gbytes_per_s", .unit = " GB/s", .pipes = ON_MEMORY,
     .page = true},
    {"transparent huge pages", "machine.memory.transparent_huge_pages.enabled", .pipes = ON_MEMORY,
     .page = true},
    {"huge pages' defragmentation", "machine.memory.transparent_huge_pages.defrag",
     .pipes = ON_MEMORY},
    {"kernel", "machine.host.kernel", .pipes = "", .page = true},
    {"kernel options", "machine.host.kernel_options", .pipes = ""},
    {"distribution", "machine.host.distro", .pipes = "", .page = true},
    {"clock source", "machine.host.clocksource", .pipes = "GPU launch, " ON_NETWORK},
    {"NVIDIA driver", "machine.gpus.driver_version", .pipes = ON_GPU, .page = true},
    {"NVIDIA driver's kind", "machine.gpus.driver_flavour", .pipes = ON_GPU},
    {"CUDA of the driver", "machine.gpus.cuda_version", .pipes = ON_GPU},
    {"CUDA runtime", "machine.gpus.cuda.toolkit_version", .pipes = ON_GPU},
    {"CUDA toolkit", "machine.gpus.toolkit_version", .pipes = ON_GPU},
    {"confidential computing", "machine.gpus.confidential_computing", .pipes = ON_GPU},
    {"NVSwitches", "machine.gpus.nvswitches", .pipes = ON_NVLINK},
    {"GPUDirect by DMA-BUF", "machine.gpus.gpudirect.dma_buf", .pipes = ON_NETWORK},
    {"peer memory module", "machine.gpus.peer_memory_module", .pipes = ON_NETWORK},
    {"GDRCopy", "machine.gpus.gpudirect.gdrcopy", .pipes = ON_NETWORK},
    {"library settings", "library_settings", .pipes = "", .is = "=", .between = " ", .page = true},
    {"plumb version", "version", .pipes = "", .aside = true},
    {"plumb commit", "commit", .pipes = "", .aside = true},
    {"compiler", "compiler", .pipes = "", .aside = true},
    {"compiler flags", "flags", .pipes = "", .aside = true},
    {"suite", "suite", .pipes = "", .aside = true},
    {"cases chosen (--only)", "only", .pipes = "", .aside = true},
    {"processes (--processes)", "processes", .pipes = "", .aside = true},
    {"suite's text, by its hash", "config_hash", .pipes = ""},
    {"huge pages reserved", "machine.memory.hugetlb", .pipes = ON_MEMORY, .text = pages_text},
    {"CPU mitigations", "machine.host.mitigations", .pipes = "Copies, GPU launch, " ON_NETWORK,
     .is = ": ", .between = "; "},
    {"PCIe link of", "machine.pci", .pipes = ON_PCIE, .aside = true, .models = true},
    {"network interfaces", "machine.network[]", .pipes = ON_NETWORK, .text = interface_text,
     .page = true},
    {"RDMA devices", "machine.rdma[]", .pipes = ON_NETWORK, .text = rdma_text, .page = true},
    {"GPUs", GPUS, .pipes = ON_GPU, .text = gpu_text, .page = true, .weight = 8},
    {"GPU clock, highest", GPUS ".sm_max_mhz", .unit = " MHz",
     .pipes = "GPU matrix core, GPU memory, GPU launch"},
    {"GPU memory clock", GPUS ".memory_max_mhz", .unit = " MHz", .pipes = "GPU memory"},
    {"GPU multiprocessors", GPUS ".sms", .pipes = "GPU matrix core, GPU memory"},
    {"GPU power limit", GPUS ".power_limit_watts", .unit = " W",
     .pipes = "GPU matrix core, GPU memory"},
    {"GPU ECC", GPUS ".ecc", .pipes = "GPU memory"},
    {"GPU MIG", GPUS ".mig.enabled", .pipes = ON_GPU},
    {"GPU persistence mode", GPUS ".persistence_mode", .pipes = "GPU launch"},
    {"GPU virtualisation", GPUS ".virtualization", .pipes = ON_GPU},
    {"GPU compute mode", GPUS ".compute_mode", .pipes = ON_GPU},
    {"GPU NUMA node", GPUS ".numa_node", .pipes = "PCIe"},
    {"GPU BAR1 covers its memory", GPUS ".bar1_covers_memory", .pipes = ON_NETWORK},
    {"NVLinks of a GPU", GPUS ".nvlink.links", .pipes = ON_NVLINK},
    {"NVLinks of a GPU that are up", GPUS ".nvlink.active", .pipes = ON_NVLINK},
    {"NVLink fabric", GPUS ".fabric.state", .pipes = ON_NVLINK},
    {.what = NULL},
};

static const char *one_text(struct pool *pool, const struct shown_fact *f, const json_t *value)
{
    if (f->text)
        return f->text(pool, value);
    if (f->unit && !strcmp(f->unit, "B") && json_is_number(value))
        return size_text(pool, value);
    if (json_is_array(value) && !json_array_size(value))
        return "none";
    /* "none" has no unit */
    return with_unit(pool, shown_value(pool, value),
                     f->unit && json_is_number(value) ? f->unit : "");
}

/* Of devices, by kind and number: "2 x NVIDIA H200 (physical)". */
static const char *devices_text(struct pool *pool, const struct shown_fact *f, const json_t *list,
                                const char *path)
{
    const char **texts = pool_alloc(pool, json_array_size(list), sizeof(*texts)), *text;
    size_t n = 0;

    FACT_EACH (list, one)
        texts[n++] = one_text(pool, f, fact_at(one, path));
    text = shown_counted(pool, texts, n);
    return !*text && json_is_array(list) && (f->text || !n) ? "none" : text;
}

/* Is the member otherwise in one of the runs? Of a flag: it is known not to be there. */
static bool is_otherwise(const struct shown_fact *f, const char *name, const json_t *value,
                         const json_t *const *others, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *other = json_object_get(fact_at(others[i], f->path), name);

        if (*f->is ? !json_equal(value, other) : json_is_false(other))
            return true;
    }
    return !n;
}

static const char *members_text(struct pool *pool, const struct shown_fact *f, const json_t *own,
                                const json_t *const *others, size_t n)
{
    const char *name, *text = "";
    json_t *value;

    json_object_foreach ((json_t *)own, name, value) {
        const char *said = *f->is ? shown_value(pool, value) : "";

        if (is_otherwise(f, name, value, others, n) && (*f->is ? *said : json_is_true(value)))
            text = pool_text(pool, "%s%s%s%s%s", text, *text ? f->between : "", name, f->is, said);
    }
    return !*text && json_is_object(own) && strcmp(f->path, "host.mitigations") ? "none" : text;
}

const char *shown_text(struct pool *pool, const struct shown_fact *f, const json_t *meta,
                       const json_t *const *others, size_t n)
{
    const char *each = strstr(f->path, "[]");
    const json_t *value;

    if (each) {
        value = fact_at(meta, pool_text(pool, "%.*s", (int)(each - f->path), f->path));
        return devices_text(pool, f, value, each[2] ? each + 3 : "");
    }
    value = fact_at(meta, f->path);
    return f->is ? members_text(pool, f, value, others, n) : one_text(pool, f, value);
}
