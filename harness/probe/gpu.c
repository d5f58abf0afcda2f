/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs: what NVML says on the machine we run on, else what PCI and the driver's /proc files say,
 * and then that NVML is absent. Settles whether a GPU in a guest is a whole one or a vGPU.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/probe/facts.h"

/* The ways of data into GPU memory that go round the processor, as far as kernel modules tell. */

/* Under its name of today, or the one before: not loaded where neither is. */
static void set_peer_memory(struct probe *p, json_t *gpus)
{
    static const char key[] = "peer_memory_module";

    fact_set_there(p, gpus, key, "sys/module/nvidia_peermem");
    if (json_is_true(json_object_get(gpus, key)) ||
        (json_is_null(json_object_get(gpus, key)) &&
         !sys_exists(p->root, "sys/module/nv_peer_mem")))
        return;
    json_object_del(gpus, "peer_memory_module_why");
    fact_set_there(p, gpus, key, "sys/module/nv_peer_mem");
}

/* Linux hands GPU memory to other drivers (DMA-BUF) from 5.12 on; NVIDIA's does so in its open
 * kernel modules (GPUDirect RDMA and GPUDirect Storage, NVIDIA GPU Operator's documentation). */
static void set_dma_buf(struct probe *p, const json_t *gpus, json_t *direct)
{
    const char *kernel = fact_string(p->machine, "host.kernel");
    const char *flavour = fact_string(gpus, "driver_flavour");
    json_t *because = json_array();
    int major = 0, minor = 0;
    bool numbered = kernel && sscanf(kernel, "%3d.%3d", &major, &minor) == 2;
    bool young = major > 5 || (major == 5 && minor >= 12);

    if (flavour)
        fact_say(because, "/proc/driver/nvidia/version: the %s kernel modules", flavour);
    if (numbered)
        fact_say(because, "Linux %d.%d; DMA-BUF for RDMA came with 5.12", major, minor);
    if (flavour && strcmp(flavour, "open") != 0)
        fact_set_bool(direct, "dma_buf", false);
    else if (!flavour || !numbered)
        fact_set_unknown(direct, "dma_buf", "%s",
                         flavour ? "the kernel's version is not known"
                                 : fact_string(gpus, "driver_flavour_why"));
    else if (young)
        fact_set_bool(direct, "dma_buf", true);
    else
        fact_set_unknown(direct, "dma_buf",
                         "this kernel is older than 5.12; a distribution may have brought it back");
    json_object_set_new(direct, "because", because);
}

/*
 * GPUDirect Storage: whether its settings let it copy through the machine's memory where nvidia_fs
 * cannot serve. Its file is JSON with comments, and true is its default (NVIDIA, cuFile API
 * reference). "none": no such file, so it is not installed.
 */
static void set_compatible(struct probe *p, json_t *direct)
{
    static const char path[] = "etc/cufile.json", key[] = "\"allow_compat_mode\"";
    char text[16384], word[8] = "true";
    int rc = sys_read(p->root, text, sizeof(text), NULL, "%s", path);
    const char *at = rc ? NULL : strstr(text, key);

    if (rc && probe_absent(p, "%s", path))
        fact_set_text(direct, "storage_compatible", "none");
    else if (rc)
        fact_set_unknown(direct, "storage_compatible", "/%s: %s", path, fact_errno(rc));
    else if (at && sscanf(at + sizeof(key) - 1, " : %7[a-z]", word) != 1)
        fact_set_unknown(direct, "storage_compatible", "/%s: no word behind %s", path, key);
    else
        fact_set_bool(direct, "storage_compatible", !strcmp(word, "true"));
}

/* "driver_flavour", "peer_memory_module" and "gpudirect"; the file that tells NCCL of a guest how
 * its host is wired (NCCL, "Environment variables": NCCL_TOPO_FILE). */
static void probe_gpudirect(struct probe *p, json_t *gpus)
{
    json_t *direct;

    /* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14 ..." */
    static const char path[] = "proc/driver/nvidia/version";
    char line[SYS_LINE];
    int rc = sys_line(p->root, line, sizeof(line), "%s", path);

    fact_set(gpus, "driver_flavour",
             rc ? NULL : fact_text(strstr(line, "Open Kernel Module") ? "open" : "proprietary"),
             "/%s: %s", path, fact_errno(rc));
    set_peer_memory(p, gpus);
    direct = fact_object(gpus, "gpudirect");
    set_dma_buf(p, gpus, direct);
    fact_set_there(p, direct, "gdrcopy", "sys/module/gdrdrv");
    fact_set_there(p, direct, "storage", "sys/module/nvidia_fs");
    set_compatible(p, direct);
    fact_set_there(p, gpus, "nccl_topology_file", "var/run/nvidia-topologyd/virtualTopology.xml");
}

enum { GPUS_MAX = 256 };

static void set_nature(json_t *gpu, struct pci_device *d, const char *nature)
{
    fact_set_text(gpu, "nature", nature);
    if (d && d->json)
        fact_set_text(d->json, "nature", nature);
}

/* "NVIDIA A100-4-20C", "GRID T4-16Q", "NVIDIA A100-1-5CME": a profile of so many GB, kind Q, C, B,
 * A. */
static bool is_vgpu_name(const char *name)
{
    const char *dash = strrchr(name, '-');
    size_t digits;

    if (!dash)
        return false;
    digits = strspn(dash + 1, "0123456789");
    if (!digits || !dash[1 + digits] || !strchr("QCBA", dash[1 + digits]))
        return false;
    dash += 2 + digits;
    return !*dash || !strcmp(dash, "ME") || (isdigit((unsigned char)dash[0]) && !dash[1]);
}

/* A GPU in a guest whose nature PCI alone could not tell. */
static void judge_by_name(json_t *gpu, struct pci_device *d, const char *name)
{
    json_t *because = json_object_get(gpu, "because");

    if (is_vgpu_name(name)) {
        fact_say(because, "the driver calls it \"%s\": a vGPU profile", name);
        set_nature(gpu, d, "vgpu");
    } else {
        fact_say(because, "the driver calls it \"%s\": no vGPU profile, so a whole GPU", name);
        set_nature(gpu, d, "passthrough");
    }
}

static void judge_by_nvml(const struct probe *p, json_t *gpu, struct pci_device *d,
                          const struct nvml *nvml)
{
    const char *mode = fact_string(gpu, "virtualization"), *name = fact_string(gpu, "name");
    json_t *because = json_object_get(gpu, "because");

    if (mode)
        fact_say(because, "NVML's virtualization mode is \"%s\"", mode);
    else
        fact_say(because, "NVML gives no virtualization mode");
    if (nvml->simulated) {
        fact_say(because, "the NVML here is a stand-in, for tests");
        set_nature(gpu, d, "simulated");
    } else if (mode && !strcmp(mode, "vgpu"))
        set_nature(gpu, d, "vgpu");
    else if (mode && !strcmp(mode, "passthrough"))
        set_nature(gpu, d, "passthrough");
    else if (p->guest && name)
        judge_by_name(gpu, d, name);
    else if (probe_on_metal(p) && !d)
        set_nature(gpu, d, "physical");
}

static void set_driver_name(struct probe *p, json_t *gpu, struct pci_device *d)
{
    char text[4096], model[SYS_LINE];

    if (sys_read(p->root, text, sizeof(text), NULL, "proc/driver/nvidia/gpus/%s/information",
                 d->address) ||
        !text_field(text, "Model", model, sizeof(model)))
        return;
    json_object_del(gpu, "name_why");
    fact_set_text(gpu, "name", model);
    if (p->guest && fact_is(gpu, "nature", "unknown"))
        judge_by_name(gpu, d, fact_string(gpu, "name"));
}

/* From the PCI function, with why where it is null. */
static void copy_fact(json_t *gpu, const struct pci_device *d, const char *key)
{
    json_t *value = d ? json_object_get(d->json, key) : NULL;
    char why[64];

    snprintf(why, sizeof(why), "%s_why", key);
    fact_set(gpu, key, json_is_null(value) ? NULL : json_incref(value), "%s",
             d && fact_string(d->json, why) ? fact_string(d->json, why)
                                            : "the PCI bus does not show it");
}

static json_t *add_gpu(json_t *list, struct pci_device *d, const char *address)
{
    json_t *gpu = fact_append(list);
    fact_set_text(gpu, "address", address);
    copy_fact(gpu, d, "name");
    copy_fact(gpu, d, "driver");
    copy_fact(gpu, d, "numa_node");
    fact_set_text(gpu, "nature", d ? fact_string(d->json, "nature") : "unknown");
    /* Shared with the PCI entry, so that what is learnt here is told there too. */
    json_object_set_new(gpu, "because",
                        d ? json_incref(json_object_get(d->json, "because")) : json_array());
    return gpu;
}

json_t *gpu_add_unseen(json_t *list, const char *address, const char *source)
{
    json_t *gpu = add_gpu(list, NULL, address);

    json_object_del(gpu, "driver_why");
    fact_set_text(gpu, "driver", "nvidia"); /* the libraries show no others */
    fact_set_text(gpu, "source", source);
    return gpu;
}

/* The largest of a function's six regions, each a line "FIRST LAST FLAGS": its number and size. Of
 * NVIDIA's that is the window with which other devices reach the GPU's memory (its BAR1; region 1,
 * or 2 where the region before it has two places). */
static bool largest_region(const struct probe *p, const struct pci_device *d, int *number,
                           unsigned long long *bytes)
{
    unsigned long long first, last;
    char text[2048], *line = text;

    *bytes = 0;
    if (sys_read(p->root, text, sizeof(text), NULL, "%s/resource", d->path))
        return false;
    for (int i = 0; line && i < 6; i++) {
        if (sscanf(line, "%llx %llx", &first, &last) == 2 && last > first &&
            last - first >= *bytes && last - first < 1ull << 60) {
            *number = i;
            *bytes = last - first + 1;
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return *bytes > 0;
}

/* What the window is, and the largest it could be: a bit for each size from 1 MiB on, hexadecimal.
 */
static void set_window(struct probe *p, json_t *gpu, const struct pci_device *d)
{
    long long memory = fact_integer(gpu, "memory_bytes", 0);
    unsigned long long bytes, sizes;
    char file[32], line[64];
    int number = 0;
    bool told = json_is_integer(json_object_get(gpu, "bar1_bytes"));

    if (d->vendor != 0x10de)
        return;
    if (!largest_region(p, d, &number, &bytes)) {
        if (!told)
            fact_set_unknown(gpu, "bar1_bytes", "neither NVML nor the kernel shows the window");
        fact_set_unknown(gpu, "bar1_best_bytes", "the kernel does not show the window");
        return;
    }
    if (!told) {
        json_object_del(gpu, "bar1_bytes_why");
        fact_set_number(gpu, "bar1_bytes", (long long)bytes);
        if (memory)
            fact_set_bool(gpu, "bar1_covers_memory", (long long)bytes >= memory);
    }
    snprintf(file, sizeof(file), "resource%d_resize", number);
    if (!sys_line(p->root, line, sizeof(line), "%s/%s", d->path, file) &&
        (sizes = strtoull(line, NULL, 16)) != 0 && sizes >> 43 == 0)
        fact_set_number(gpu, "bar1_best_bytes", 1LL << (63 - __builtin_clzll(sizes) + 20));
    else if (!probe_absent(p, "%s/%s", d->path, file))
        fact_set_unknown(gpu, "bar1_best_bytes", "/%s/%s: no sizes there", d->path, file);
}

static void add_from_pci(struct probe *p, json_t *list, struct pci_device *d,
                         const struct nvml *nvml, const char *why)
{
    json_t *gpu = add_gpu(list, d, d->address);
    struct nvml_device *device = nvml ? nvml_find(nvml, d->address) : NULL;

    fact_set_text(gpu, "source", device ? "nvml" : "pci");
    if (device) {
        nvml_fill_gpu(nvml, device, gpu);
        judge_by_nvml(p, gpu, d, nvml);
        set_window(p, gpu, d);
        return;
    }
    if (nvml)
        why = "NVML does not show this GPU to us: it may be set aside or kept from this container";
    set_driver_name(p, gpu, d);
    /* amdgpu tells the memory in sysfs. */
    long long bytes;

    if (!sys_number(p->root, &bytes, "%s/mem_info_vram_total", d->path) && bytes > 0)
        fact_set_number(gpu, "memory_bytes", bytes);
    else
        fact_set_unknown(gpu, "memory_bytes", "%s",
                         d->vendor == 0x10de ? why : "its driver does not show it in sysfs");
    set_window(p, gpu, d);
    fact_set_unknown(gpu, "nvlink", "%s", d->vendor == 0x10de ? why : "not an NVIDIA GPU");
}

/* GPUs that NVML shows and the PCI bus does not. */
static void add_from_nvml(struct probe *p, json_t *list, const struct nvml *nvml)
{
    char address[32];

    for (unsigned i = 0; i < nvml_count(nvml) && i < GPUS_MAX; i++) {
        struct nvml_device *device;
        json_t *gpu;

        if (nvml_address(nvml, i, address, sizeof(address)))
            continue;
        if (p->pci && pci_find(p->pci, address) && pci_find(p->pci, address)->json)
            continue;
        device = nvml_find(nvml, address);
        if (!device)
            continue;
        gpu = gpu_add_unseen(list, address, "nvml");
        nvml_fill_gpu(nvml, device, gpu);
        judge_by_nvml(p, gpu, NULL, nvml);
    }
}

/* The module tells its version; that it is not loaded needs all of its traces to be absent. */
static void set_driver_version(struct probe *p, json_t *gpus)
{
    static const char version[] = "sys/module/nvidia/version";
    char line[SYS_LINE];
    int rc = sys_line(p->root, line, sizeof(line), "%s", version);
    bool none = probe_absent(p, "sys/module/nvidia") && probe_absent(p, "proc/driver/nvidia");

    if (!rc)
        fact_set_text(gpus, "driver_version", line);
    else if (none)
        fact_set_unknown(gpus, "driver_version", "the nvidia module is not loaded");
    else
        fact_set_unknown(gpus, "driver_version", "/%s: %s", version, fact_errno(rc));
}

static struct nvml *open_nvml(struct probe *p, json_t *gpus, char *why, size_t size)
{
    struct nvml *nvml = NULL;

    snprintf(why, size, "NVML cannot be asked about a recorded machine");
    if (!p->root)
        nvml_open(&nvml, why, size);
    fact_set(gpus, "nvml", !p->root ? json_boolean(nvml != NULL) : NULL, "%s", why);
    if (nvml) {
        if (nvml->simulated)
            fact_set_bool(gpus, "simulated", true);
        nvml_fill_system(nvml, gpus);
        return nvml;
    }
    fact_set_text(gpus, "nvml_why", why);
    set_driver_version(p, gpus);
    return NULL;
}

static long long count_kind(const struct pci *pci, const char *kind)
{
    long long count = 0;

    for (size_t i = 0; i < pci->count; i++)
        count += pci_is(&pci->device[i], kind);
    return count;
}

/* ---- GPUs of which the PCI bus shows nothing ---- */

/* NVIDIA's driver lists those that it drives, by address. */
static void add_from_driver(struct probe *p, json_t *list, const char *why)
{
    struct names names;

    sys_list(p->root, &names, "proc/driver/nvidia/gpus");
    for (size_t i = 0; i < names.count && i < GPUS_MAX; i++) {
        struct pci_device *d = p->pci ? pci_find(p->pci, names.name[i]) : NULL;
        struct pci_device unseen = {.path = "proc/driver/nvidia/gpus"};
        json_t *gpu;

        if ((d && d->json) || strlen(names.name[i]) >= sizeof(unseen.address))
            continue;
        strcpy(unseen.address, names.name[i]);
        gpu = gpu_add_unseen(list, names.name[i], "driver");
        set_driver_name(p, gpu, &unseen);
        fact_set_unknown(gpu, "memory_bytes", "%s", why);
        fact_set_unknown(gpu, "nvlink", "%s", why);
    }
    names_free(&names);
}

static const char some_unread[] = "what some PCI functions are could not be read: they may be GPUs";

/* Why an empty list does not mean that there is none; NULL where it does. */
static const char *why_not_none(struct probe *p)
{
    if (sys_exists(p->root, "dev/nvidia0"))
        return "/dev/nvidia0 is there, though nothing else shows the GPU";
    if (!p->pci)
        return "/sys/bus/pci/devices could not be read";
    return count_kind(p->pci, pci_kind_unknown) ? some_unread : NULL;
}

void probe_gpus(struct probe *p)
{
    json_t *gpus = fact_object(p->machine, "gpus"), *list;
    char why[SYS_LINE];
    struct nvml *nvml = open_nvml(p, gpus, why, sizeof(why));

    probe_gpudirect(p, gpus);
    fact_set(gpus, "nvswitches",
             p->pci && !count_kind(p->pci, pci_kind_unknown)
                 ? json_integer(count_kind(p->pci, "nvswitch"))
                 : NULL,
             "not all of the PCI bus could be read");
    list = fact_list(gpus, "devices");
    for (size_t i = 0; p->pci && i < p->pci->count; i++)
        if (pci_is(&p->pci->device[i], "gpu"))
            add_from_pci(p, list, &p->pci->device[i], nvml, why);
    if (nvml)
        add_from_nvml(p, list, nvml);
    else
        add_from_driver(p, list, why);
    probe_cuda(p, gpus);
    if (!json_array_size(list) && !nvml && why_not_none(p))
        fact_set_unknown(gpus, "devices", "%s", why_not_none(p));
    else if (p->pci && count_kind(p->pci, pci_kind_unknown))
        fact_set_text(gpus, "devices_why", some_unread);
    probe_gpu_pairs(p, gpus, nvml, why);
    nvml_close(nvml);
}
