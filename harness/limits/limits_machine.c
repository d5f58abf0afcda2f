// SPDX-License-Identifier: Apache-2.0
// The limits of one machine, joined from the probe's facts and the hardware figures: see
// limits_machine() in harness/limits/limits.h.
#include "harness/limits/limits_table.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROCE_PAYLOAD 4096 // the largest path MTU; a smaller one stays below the limit
#define IB_OVERHEAD                                                                                \
    26 // LRH 8, BTH 12, ICRC 4, VCRC 2 (InfiniBand Architecture 1.2.1, chapters 7 and 9)
#define LABEL_CHARS 64

struct joiner {
    const struct limits *l;
    const json_t *machine;
    json_t *out;
    int rc;
};

struct limit_key {
    char text[256];
};

// ---- reading facts: an absent or odd one is passed over

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

// A positive number, else 0.
static double number(const json_t *object, const char *key)
{
    double value = json_number_value(json_object_get(object, key));
    return value > 0 ? value : 0;
}

// A positive whole number of things, else 0.
static int count(const json_t *object, const char *key)
{
    double value = number(object, key);
    return value < 1e6 ? (int)value : 0;
}

// A text that becomes a part of a key: one that is too long for that counts as absent.
static const char *label(const json_t *object, const char *key)
{
    const char *s = text(object, key);
    return s && *s && strlen(s) <= LABEL_CHARS ? s : NULL;
}

static bool is_one_of(const char *s, const char *const list[])
{
    for (; s && *list; list++)
        if (!strcmp(s, *list))
            return true;
    return false;
}

// All of one piece of hardware belongs to this machine.
static bool is_whole(const json_t *device)
{
    static const char *const whole[] = {"physical", "passthrough", NULL};
    return is_one_of(text(device, "nature"), whole);
}

static bool has_real_port(const json_t *device)
{
    static const char *const real[] = {"physical", "passthrough", "sriov-vf", NULL};
    return is_one_of(text(device, "nature"), real);
}

static const json_t *pci_device(const struct joiner *j, const char *address)
{
    const json_t *device;
    size_t i;
    json_array_foreach (json_object_get(j->machine, "pci"), i, device) {
        const char *at = text(device, "address");
        if (address && at && !strcmp(at, address))
            return device;
    }
    return NULL;
}

// "10de:2330" of the function at this address; "" when it is not known.
static struct limit_key pci_id(const struct joiner *j, const char *address)
{
    const json_t *device = pci_device(j, address);
    const char *vendor = text(device, "vendor_id"), *id = text(device, "device_id");
    struct limit_key key = {""};
    if (vendor && id)
        snprintf(key.text, sizeof(key.text), "%s:%s", vendor, id);
    return key;
}

// ---- writing limits

__attribute__((format(printf, 1, 2))) static struct limit_key key_of(const char *fmt, ...)
{
    struct limit_key key;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(key.text, sizeof(key.text), fmt, ap);
    va_end(ap);
    return key;
}

__attribute__((format(printf, 6, 7))) static void add(struct joiner *j, struct limit_key key,
                                                      double value, const char *unit,
                                                      const char *source, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    json_t *detail = json_vsprintf(fmt, ap);
    va_end(ap);
    json_t *limit = json_pack("{s:s, s:f, s:s, s:s, s:o}", "key", key.text, "value", value, "unit",
                              unit, "source", source, "detail", detail);
    if (!limit || json_array_append_new(j->out, limit))
        j->rc = -ENOMEM;
}

static void add_dram(struct joiner *j)
{
    const json_t *memory = json_object_get(j->machine, "memory");
    double peak = number(memory, "peak_gbytes_per_s");
    if (peak > 0)
        add(j, key_of("dram.gbytes_per_s"), peak, "GB/s", "sysfs",
            "%.0f channels, from the firmware's memory table (SMBIOS)", number(memory, "channels"));
}

static void add_link(struct joiner *j, const char *address, const char *name, double gt_s,
                     int width, const char *what)
{
    double rate = 0;
    int gen = limits_pcie_gen(j->l, gt_s);
    if (gen > 0 && !limits_pcie(j->l, gen, width, 0, &rate))
        add(j, key_of("pcie.%s.%s", address, name), rate, "GB/s", "sysfs",
            "%s: generation %d x%d, one direction, before packet headers", what, gen, width);
}

static void add_pcie(struct joiner *j, const json_t *device)
{
    const json_t *link = json_object_get(device, "link");
    const char *address = label(device, "address"), *kind = text(device, "kind");
    int width = count(link, "now_width"), best_width = count(link, "best_width");
    double now = number(link, "now_gt_s"), best = number(link, "best_gt_s");
    double path = number(device, "path_gbytes_per_s"), own = number(link, "now_gbytes_per_s");
    bool gpu = kind && !strcmp(kind, "gpu");
    if (!address || !link)
        return;
    if (gpu && best > now)
        add_link(j, address, "gbytes_per_s", best, width, "width as it is, speed of a busy GPU");
    else
        add_link(j, address, "gbytes_per_s", now, width, "link as it is");
    add_link(j, address, "best_gbytes_per_s", best, best_width, "what both ends could do");
    if (path > 0 && path < own)
        add(j, key_of("pcie.%s.path_gbytes_per_s", address), path, "GB/s", "sysfs",
            "the slowest link on the way to the root, one direction, before packet headers");
}

static void add_chip(struct joiner *j, const json_t *nic, const char *name)
{
    const char *entry, *source, *unit;
    double value;
    struct limit_key id = pci_id(j, text(nic, "pci"));
    if (!is_whole(nic) || limits_nic_by_pci(j->l, id.text, &entry))
        return;
    if (!limits_lookup(j->l, key_of("%s.port_gbits_per_s", entry).text, &value, &unit, &source))
        add(j, key_of("net.%s.chip_gbits_per_s", name), value, unit, "datasheet",
            "fastest port of any card with this chip (%s): %s", entry, source);
}

static void add_nic(struct joiner *j, const json_t *nic)
{
    const char *name = label(nic, "name"), *kind = text(nic, "kind");
    double speed = number(nic, "speed_gbits_per_s");
    int mtu = count(nic, "mtu");
    if (!name || !has_real_port(nic))
        return;
    if (speed > 0)
        add(j, key_of("net.%s.gbits_per_s", name), speed, "Gb/s", "sysfs",
            "link speed, one direction");
    if (speed > 0 && mtu >= 576 && kind && !strcmp(kind, "ethernet"))
        add(j, key_of("net.%s.tcp_gbits_per_s", name), speed * limits_tcp_fraction(mtu, 0), "Gb/s",
            "sysfs", "payload of TCP over IPv4 at the link speed, MTU %d", mtu);
    add_chip(j, nic, name);
}

// The kernel states InfiniBand's signalling rate below EDR: "56 Gb/sec (4X FDR)" carries 54.5, and
// "4X FDR" says which rate it is.
static double infiniband_rate(const struct joiner *j, const json_t *port)
{
    const char *lanes = text(port, "lanes");
    char rate[16] = "";
    int width = 0;
    double gbits = 0;
    if (!lanes || sscanf(lanes, "%2dX %15s", &width, rate) != 2)
        return 0;
    for (char *c = rate; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return limits_infiniband(j->l, rate, width, &gbits) ? 0 : gbits;
}

static void add_port(struct joiner *j, const char *name, const json_t *port)
{
    const char *layer = text(port, "link_layer"), *lanes = text(port, "lanes");
    int index = count(port, "port");
    double rate = number(port, "rate_gbits_per_s");
    bool infiniband = layer && !strcmp(layer, "InfiniBand");
    if (infiniband)
        rate = infiniband_rate(j, port);
    if (!layer || rate <= 0)
        return;
    double payload = infiniband ? (double)ROCE_PAYLOAD / (ROCE_PAYLOAD + IB_OVERHEAD)
                                : limits_roce_fraction(ROCE_PAYLOAD);
    add(j, key_of("rdma.%s.%d.gbits_per_s", name, index), rate, "Gb/s", "sysfs",
        "data rate of %s (%s), one direction", layer, lanes ? lanes : "lanes unknown");
    add(j, key_of("rdma.%s.%d.payload_gbits_per_s", name, index), rate * payload, "Gb/s", "sysfs",
        "payload of packets of %d bytes at the data rate", ROCE_PAYLOAD);
}

static void add_rdma(struct joiner *j, const json_t *device)
{
    const char *name = label(device, "name");
    const json_t *port;
    size_t i;
    if (!name || !has_real_port(device))
        return;
    json_array_foreach (json_object_get(device, "ports"), i, port) {
        add_port(j, name, port);
    }
}

// ---- GPUs

static const char *gpu_entry(const struct joiner *j, const json_t *gpu)
{
    const char *entry = NULL, *name = text(gpu, "name");
    if (!is_whole(gpu) || json_is_true(json_object_get(json_object_get(gpu, "mig"), "enabled")))
        return NULL;
    if (!limits_gpu_by_pci(j->l, pci_id(j, text(gpu, "address")).text, &entry))
        return entry;
    return name && !limits_gpu_by_name(j->l, name, &entry) ? entry : NULL;
}

struct gpu_figures {
    struct joiner *joiner;
    const char *entry;
    const char *except; // a figure that NVML gave, or NULL
    size_t index;
};

static int add_figure(const struct limit_figure *f, void *data)
{
    struct gpu_figures *g = data;
    size_t len = strlen(g->entry);
    if (strncmp(f->key, g->entry, len) || f->key[len] != '.')
        return 0;
    const char *name = f->key + len + 1;
    if (g->except && !strcmp(name, g->except))
        return 0;
    add(g->joiner, key_of("gpu.%zu.%s", g->index, name), f->value, f->unit, "datasheet",
        "%s: %s%s%s", g->entry, f->source, f->note ? "; " : "", f->note ? f->note : "");
    return 0;
}

static void add_gpu(struct joiner *j, const json_t *gpu, size_t index)
{
    const json_t *nvlink = json_object_get(gpu, "nvlink");
    const char *entry = gpu_entry(j, gpu);
    double links = number(nvlink, "gbytes_per_s"), memory = number(gpu, "memory_gbytes_per_s");
    if (links > 0)
        add(j, key_of("gpu.%zu.nvlink_gbytes_per_s", index), links, "GB/s", "nvml",
            "%.0f active links, one direction", number(nvlink, "active"));
    if (entry)
        limits_each(
            j->l, add_figure,
            &(struct gpu_figures){j, entry, links > 0 ? "nvlink_gbytes_per_s" : NULL, index});
    else if (memory > 0 && is_whole(gpu))
        add(j, key_of("gpu.%zu.memory_gbytes_per_s", index), memory, "GB/s", "nvml",
            "memory clock x bus width; this model is not in configs/hardware, or is cut by MIG");
}

static void add_all(struct joiner *j)
{
    const json_t *item, *gpus = json_object_get(j->machine, "gpus");
    size_t i;
    add_dram(j);
    json_array_foreach (json_object_get(j->machine, "pci"), i, item) {
        add_pcie(j, item);
    }
    json_array_foreach (json_object_get(j->machine, "network"), i, item) {
        add_nic(j, item);
    }
    json_array_foreach (json_object_get(j->machine, "rdma"), i, item) {
        add_rdma(j, item);
    }
    json_array_foreach (json_object_get(gpus, "devices"), i, item) {
        add_gpu(j, item, i);
    }
}

int limits_machine(const struct limits *l, const json_t *machine, json_t **out)
{
    struct joiner j = {.l = l, .machine = machine};
    *out = NULL;
    if (!json_is_object(machine))
        return -EINVAL;
    j.out = json_array();
    if (!j.out)
        return -ENOMEM;
    add_all(&j);
    if (j.rc)
        json_decref(j.out);
    else
        *out = j.out;
    return j.rc;
}
