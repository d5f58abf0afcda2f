/* SPDX-License-Identifier: Apache-2.0 */
/* From a link's figures to the payload that it can carry, and from the probe's facts to the limits
 * of one machine: see limits.h. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/nic.h"
#include "core/hw/nvml.h"
#include "harness/exam/exam.h"
#include "harness/limits/limits.h"

struct joiner {
    const struct limits *l;
    const json_t *machine;
    json_t *out;
    int rc;
};

struct limit_key {
    char text[256];
};

/* ---- Facts and keys ---- */

#define LABEL_CHARS 64

/* An absent fact is passed over, and so is one that cannot be. */
static double limits_number(const json_t *object, const char *path)
{
    return fmax(fact_number(object, path, 0), 0);
}

static int limits_count(const json_t *object, const char *path)
{
    double value = limits_number(object, path);
    return value < 1e6 ? (int)value : 0;
}

/* A text that becomes a part of a key: one that is too long for that counts as absent. */
static const char *limits_label(const json_t *object, const char *key)
{
    const char *s = fact_name(object, key);
    return *s && strlen(s) <= LABEL_CHARS ? s : NULL;
}

/* All of one piece of hardware belongs to this machine. */
static bool limits_is_whole(const json_t *device)
{
    return fact_fits("physical|passthrough", fact_name(device, "nature"));
}

/* "10de:2330" of the function at this address; "" when it is not known. */
static struct limit_key limits_pci_id(const struct joiner *j, const char *address)
{
    const json_t *device = fact_one_of(json_object_get(j->machine, "pci"), "address", address);
    const char *vendor = fact_name(device, "vendor_id"), *id = fact_name(device, "device_id");
    struct limit_key key = {""};
    if (*vendor && *id)
        snprintf(key.text, sizeof(key.text), "%s:%s", vendor, id);
    return key;
}

static __attribute__((format(printf, 1, 2))) struct limit_key limits_key(const char *fmt, ...)
{
    struct limit_key key;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(key.text, sizeof(key.text), fmt, ap);
    va_end(ap);
    return key;
}

static __attribute__((format(printf, 6, 7))) void limits_add(struct joiner *j, struct limit_key key,
                                                             double value, const char *unit,
                                                             const char *source, const char *fmt,
                                                             ...)
{
    va_list ap;
    va_start(ap, fmt);
    json_t *detail = json_vsprintf(fmt, ap);
    va_end(ap);
    json_t *limit = json_pack("{s:s, s:f, s:s, s:s, s:o}", "key", key.text, "value", value, "unit",
                              unit, "source", source, "detail", detail);
    if (!limit || json_array_append_new(j->out, limit))
        j->rc = -EINVAL;
}

/* ---- From a link's figures to its payload: limits.h has the formulas ---- */

#define PCIE_WIDTH_MAX 32
#define IB_WIDTH_MAX   12

/* Of one direction, before packet headers; 0: not known. */
static double pcie_gbytes_per_s(double gt_s, int width)
{
    return width < 1 || width > PCIE_WIDTH_MAX
               ? 0
               : framing_pcie_gbps(&(struct nic_pcie){gt_s, fact_whole(width), 0}) / 8;
}

/* ---- One GPU: figures of its datasheet, or for parts and unknown models those of NVML ---- */

/* What is known of the GPU that limits are written for. */
struct gpu_join {
    struct joiner *j;
    const json_t *gpu;
    size_t index;
    const char *entry;  // of the datasheet, or NULL
    const char *except; // a figure that NVML gave, or NULL
};

// A stand-in may bear any name.
static bool is_simulated(const struct joiner *j, const json_t *gpu)
{
    return fact_is(gpu, "nature", "simulated") ||
           json_is_true(fact_at(j->machine, "gpus.simulated"));
}

// All of one GPU. A simulated one is what its description says: a whole one, or a vGPU.
static bool is_whole(const struct joiner *j, const json_t *gpu)
{
    if (json_is_true(fact_at(gpu, "mig.enabled")))
        return false;
    return is_simulated(j, gpu) ? fact_fits("none|passthrough", fact_name(gpu, "virtualization"))
                                : limits_is_whole(gpu);
}

// A row names its GPU by the PCI address, so each of its limits does.
static void add_gpu_limit(const struct gpu_join *g, const char *name, double value,
                          const char *unit, const char *source, const char *detail)
{
    const char *address = limits_label(g->gpu, "address");
    size_t before = json_array_size(g->j->out);
    limits_add(g->j, limits_key("gpu.%zu.%s", g->index, name), value, unit, source, "%s", detail);
    if (address && json_array_size(g->j->out) > before)
        json_object_set_new(json_array_get(g->j->out, before), "address", json_string(address));
}

// ---- What follows from the clocks that the driver tells

// "sm.cc-9-0.bf16_per_clock" of compute capability 9.0.
static double per_clock(const struct gpu_join *g, const char *type)
{
    const char *capability = fact_name(g->gpu, "compute_capability");
    int major, minor;
    double value = 0;
    if (sscanf(capability, "%3d.%3d", &major, &minor) != 2)
        return 0;
    struct limit_key key = limits_key("sm.cc-%d-%d.%s_per_clock", major, minor, type);
    return limits_lookup(g->j->l, key.text, &value, NULL, NULL) ? 0 : value;
}

static const struct clocked {
    const char *name, *type, *unit; // type NULL: the memory
} clocked[] = {
    {"f64_tflops", "f64", "TFLOP/s"},   {"f32_tflops", "f32", "TFLOP/s"},
    {"tf32_tflops", "tf32", "TFLOP/s"}, {"f16_tflops", "f16", "TFLOP/s"},
    {"bf16_tflops", "bf16", "TFLOP/s"}, {"fp8_tflops", "fp8", "TFLOP/s"},
    {"int8_tops", "int8", "TOP/s"},     {"memory_gbytes_per_s", NULL, "GB/s"},
};

// What one GPU reaches at its highest clocks, in T operations or GB a second; 0: not known.
static double clock_rate(const struct gpu_join *g, const struct clocked *c, char detail[256])
{
    double sms = limits_number(g->gpu, "sms"), mhz = limits_number(g->gpu, "sm_max_mhz"),
           each = c->type ? per_clock(g, c->type) : 0;
    if (!c->type) {
        snprintf(detail, 256, "memory clock x bus width");
        return limits_number(g->gpu, c->name);
    }
    snprintf(detail, 256,
             "%.0f multiprocessors x %.0f MHz at most x %.0f operations a clock (compute "
             "capability %s)",
             sms, mhz, each, fact_name(g->gpu, "compute_capability"));
    return sms * mhz * 1e6 * each / 1e12;
}

// ---- Figures of the datasheet

/*
 * Datasheets state some rates at a lower clock than the highest, or round them down: bf16 of the
 * H100 SXM5 is stated at 1830 of 1980 MHz. A limit errs upwards. Where a datasheet states less than
 * that by more than this, the model has units that are cut (H20), and the datasheet counts.
 */
#define STATED_BELOW_CLOCK 1.25

static int add_figure(const struct limit_figure *f, void *data)
{
    const struct gpu_join *g = data;
    size_t len = strlen(g->entry);
    char detail[1024], how[256];
    if (strncmp(f->key, g->entry, len) || f->key[len] != '.')
        return 0;
    const char *name = f->key + len + 1;
    if (g->except && !strcmp(name, g->except))
        return 0;
    for (size_t i = 0; i < sizeof(clocked) / sizeof(*clocked); i++) {
        double value = strcmp(clocked[i].name, name) ? 0 : clock_rate(g, &clocked[i], how);
        if (value > f->value && value <= STATED_BELOW_CLOCK * f->value) {
            snprintf(detail, sizeof(detail), "%s; %s: %g %s is at a lower clock, or rounded", how,
                     g->entry, f->value, f->unit);
            add_gpu_limit(g, name, value, f->unit, "nvml", detail);
            return 0;
        }
    }
    snprintf(detail, sizeof(detail), "%s: %s%s%s", g->entry, f->source, f->note ? "; " : "",
             f->note ? f->note : "");
    add_gpu_limit(g, name, f->value, f->unit, "datasheet", detail);
    return 0;
}

static void add_from_nvml(const struct gpu_join *g)
{
    char how[256], detail[320];
    if (!is_whole(g->j, g->gpu)) // the whole is no limit of a share
        return;
    for (const struct clocked *c = clocked; c < clocked + sizeof(clocked) / sizeof(*c); c++) {
        double value = clock_rate(g, c, how);
        snprintf(detail, sizeof(detail), "%s%s", how,
                 c->type                      ? ""
                 : is_simulated(g->j, g->gpu) ? ", of a simulated GPU"
                                              : "; this model is not in configs/hardware");
        if (value > 0)
            add_gpu_limit(g, c->name, value, c->unit, "nvml", detail);
    }
}

// Where the PCI bus does not show the link: a GPU in a guest, for one.
static void add_link(const struct gpu_join *g)
{
    const char *address = limits_label(g->gpu, "address");
    int gen = limits_count(g->gpu, "pcie.max_generation"),
        width = limits_count(g->gpu, "pcie.width");
    double rate = pcie_gbytes_per_s(framing_pcie_gt_s(gen), width);
    if (!address || !rate)
        return;
    struct limit_key key = limits_key("pcie.%s.gbytes_per_s", address);
    if (!fact_one_of(g->j->out, "key", key.text))
        limits_add(g->j, key, rate, "GB/s", "nvml",
                   "width as it is, generation of a busy GPU: generation %d x%d, one direction, "
                   "before packet headers",
                   gen, width);
}

/* ---- NVLink ---- */

// What n links of a GPU carry of data, of what NVML says that they signal.
static double nvlink_data(const json_t *gpu, double links, double signalled)
{
    double version = limits_number(gpu, "nvlink.version");
    return nvlink_data_gbps(version, links, signalled);
}

/* The NVLinks between two GPUs. */
static void limits_add_gpu_pair(struct joiner *j, const json_t *pair)
{
    const char *a = limits_label(pair, "a"), *b = limits_label(pair, "b");
    double rate = limits_number(pair, "nvlink_gbytes_per_s");
    if (!a || !b || rate == 0)
        return;
    rate = nvlink_data(fact_one_of(fact_at(j->machine, "gpus.devices"), "address", a),
                       limits_count(pair, "nvlinks"), rate);
    limits_add(j, limits_key("p2p.%s+%s.nvlink_gbytes_per_s", a, b), rate, "GB/s", "nvml",
               "%d NVLinks between the two%s, one direction", limits_count(pair, "nvlinks"),
               fact_is(pair, "nvlink_via", "nvswitch") ? " over switches" : "");
}

/* All limits of GPU number `index`. */
static void limits_add_gpu(struct joiner *j, const json_t *gpu, size_t index)
{
    double links = limits_number(gpu, "nvlink.gbytes_per_s");
    struct gpu_join g = {
        .j = j, .gpu = gpu, .index = index, .except = links > 0 ? "nvlink_gbytes_per_s" : NULL};
    struct limit_key id = limits_pci_id(j, fact_name(gpu, "address"));
    if (is_whole(j, gpu) && !is_simulated(j, gpu)) {
        g.entry = limits_device(j->l, "gpu", id.text, NULL);
        g.entry = g.entry ? g.entry : limits_device(j->l, "gpu", NULL, fact_name(gpu, "name"));
    }
    if (links > 0) {
        double active = limits_number(g.gpu, "nvlink.active");
        char detail[96];
        snprintf(detail, sizeof(detail), "%.0f active links, one direction; %.4g GB/s signalled",
                 active, links);
        add_gpu_limit(&g, "nvlink_gbytes_per_s", nvlink_data(g.gpu, active, links), "GB/s", "nvml",
                      detail);
    }
    if (g.entry)
        limits_each(j->l, add_figure, &g);
    else
        add_from_nvml(&g);
    add_link(&g);
}

#define ROCE_PAYLOAD 4096 // the largest path MTU; a smaller one stays below the limit
#define SAME_RATE    1e-3 // the hardware figures' rates and the probe's are rounded

/* Returns the rate; 0: not known. */
static double add_pcie_link(struct joiner *j, const char *address, const char *name, double gt_s,
                            int width, const char *what)
{
    const char *generation = framing_pcie_generation(gt_s);
    double rate = pcie_gbytes_per_s(gt_s, width);
    if (rate > 0)
        limits_add(j, limits_key("pcie.%s.%s", address, name), rate, "GB/s", "sysfs",
                   "%s: generation %.1s x%d, one direction, before packet headers", what,
                   generation, width);
    return rate;
}

// The slowest link above the device's own; 0: there is none, or not all are known. The fact
// "path_gbytes_per_s" has the device's own in it, which a GPU slows when idle.
static double slowest_uplink(const json_t *device)
{
    double least = 0;
    FACT_EACH (json_object_get(device, "uplinks"), uplink) {
        double rate = limits_number(uplink, "now_gbytes_per_s");
        if (rate <= 0)
            return 0;
        least = least > 0 && least < rate ? least : rate;
    }
    return least;
}

static void add_pcie(struct joiner *j, const json_t *device)
{
    const json_t *link = json_object_get(device, "link");
    const char *address = limits_label(device, "address");
    int width = limits_count(link, "now_width"), best_width = limits_count(link, "best_width");
    double now = limits_number(link, "now_gt_s"), best = limits_number(link, "best_gt_s");
    double most =
        best > 0 ? best : limits_number(link, "max_gt_s"); // of the device alone: a bound too
    double path = slowest_uplink(device), own;
    if (!address || !link)
        return;
    if (fact_is(device, "kind", "gpu") && most > now)
        own = add_pcie_link(j, address, "gbytes_per_s", most, width,
                            "width as it is, speed of a busy GPU");
    else
        own = add_pcie_link(j, address, "gbytes_per_s", now, width, "link as it is");
    add_pcie_link(j, address, "best_gbytes_per_s", best, best_width, "what both ends could do");
    if (path > 0 && (own <= 0 || path < own * (1 - SAME_RATE)))
        limits_add(j, limits_key("pcie.%s.path_gbytes_per_s", address), path, "GB/s", "sysfs",
                   "the slowest link above the device's own, one direction, before packet "
                   "headers");
}

static void add_nic(struct joiner *j, const json_t *nic)
{
    const char *name = limits_label(nic, "name");
    double speed = limits_number(nic, "speed_gbits_per_s");
    int mtu = limits_count(nic, "mtu");
    if (!name || !exam_is_hardware(nic))
        return;
    if (speed > 0)
        limits_add(j, limits_key("net.%s.gbits_per_s", name), speed, "Gb/s", "sysfs",
                   "link speed, one direction");
    if (speed > 0 && mtu >= 576 && fact_is(nic, "kind", "ethernet"))
        limits_add(j, limits_key("net.%s.tcp_gbits_per_s", name),
                   speed * framing_tcp_fraction(&(struct framing_tcp){.mtu = fact_whole(mtu)}),
                   "Gb/s", "sysfs", "payload of TCP over IPv4 at the link speed, MTU %d", mtu);
    struct limit_key id = limits_pci_id(j, fact_name(nic, "pci"));
    const char *entry = limits_device(j->l, "nic", id.text, NULL), *source, *unit;
    double value;
    if (limits_is_whole(nic) && entry &&
        !limits_lookup(j->l, limits_key("%s.port_gbits_per_s", entry).text, &value, &unit, &source))
        limits_add(j, limits_key("net.%s.chip_gbits_per_s", name), value, unit, "datasheet",
                   "fastest port of any card with this chip (%s): %s", entry, source);
}

// The kernel states InfiniBand's signalling rate below EDR: "56 Gb/sec (4X FDR)" carries 54.5, and
// "4X FDR" says which rate it is.
static double infiniband_rate(const struct joiner *j, const json_t *port)
{
    char rate[16] = "";
    int width = 0;
    double lane = 0;
    if (sscanf(fact_name(port, "lanes"), "%2dX %15s", &width, rate) != 2)
        return 0;
    for (char *c = rate; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    struct limit_key key = limits_key("infiniband.%s.lane_data_gbits_per_s", rate);
    bool known =
        width > 0 && width <= IB_WIDTH_MAX && !limits_lookup(j->l, key.text, &lane, NULL, NULL);
    return known ? lane * width : 0;
}

static void add_port(struct joiner *j, const char *name, const json_t *port)
{
    const char *layer = fact_name(port, "link_layer"), *lanes = fact_name(port, "lanes");
    int index = limits_count(port, "port");
    double rate = limits_number(port, "rate_gbits_per_s");
    bool infiniband = !strcmp(layer, "InfiniBand");
    if (infiniband)
        rate = infiniband_rate(j, port);
    if (!*layer || rate <= 0)
        return;
    double payload =
        ROCE_PAYLOAD / (ROCE_PAYLOAD + (double)framing_packet_bytes(
                                           infiniband ? FRAMING_INFINIBAND : FRAMING_ROCE_V2_IPV4));
    limits_add(j, limits_key("rdma.%s.%d.gbits_per_s", name, index), rate, "Gb/s", "sysfs",
               "data rate of %s (%s), one direction", layer, *lanes ? lanes : "lanes unknown");
    limits_add(j, limits_key("rdma.%s.%d.payload_gbits_per_s", name, index), rate * payload, "Gb/s",
               "sysfs", "payload of packets of %d bytes at the data rate", ROCE_PAYLOAD);
}

static void add_all(struct joiner *j)
{
    double peak = limits_number(j->machine, "memory.peak_gbytes_per_s");
    size_t index = 0;
    if (peak > 0)
        limits_add(j, limits_key("dram.gbytes_per_s"), peak, "GB/s", "sysfs",
                   "%.0f channels, from the firmware's memory table (SMBIOS)",
                   limits_number(j->machine, "memory.channels"));
    FACT_EACH (fact_at(j->machine, "pci"), device)
        add_pcie(j, device);
    FACT_EACH (fact_at(j->machine, "network"), nic)
        add_nic(j, nic);
    FACT_EACH (fact_at(j->machine, "rdma"), device) {
        const char *name = limits_label(device, "name");
        if (!name || !exam_is_hardware(device))
            continue;
        FACT_EACH (fact_at(device, "ports"), port)
            add_port(j, name, port);
    }
    FACT_EACH (fact_at(j->machine, "gpus.devices"), gpu)
        limits_add_gpu(j, gpu, index++);
    FACT_EACH (fact_at(j->machine, "gpus.pairs"), pair)
        limits_add_gpu_pair(j, pair);
}

int limits_machine(const struct limits *l, const json_t *machine, json_t **out)
{
    struct joiner j = {.l = l, .machine = machine};
    *out = NULL;
    if (!json_is_object(machine))
        return -EINVAL;
    j.out = json_array();
    add_all(&j);
    if (j.rc)
        json_decref(j.out);
    else
        *out = j.out;
    return j.rc;
}
