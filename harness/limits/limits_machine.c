// SPDX-License-Identifier: Apache-2.0
// The limits of one machine, joined from the probe's facts and the hardware figures: see
// limits_machine() in harness/limits/limits.h. Those of its GPUs are in limits_gpu.c.
#include "harness/limits/limits_join.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ROCE_PAYLOAD 4096 // the largest path MTU; a smaller one stays below the limit
#define SAME_RATE    1e-3 // the hardware figures' rates and the probe's are rounded
#define IB_OVERHEAD                                                                                \
    26 // LRH 8, BTH 12, ICRC 4, VCRC 2 (InfiniBand Architecture 1.2.1, chapters 7 and 9)

static bool has_real_port(const json_t *device)
{
    static const char *const real[] = {"physical", "passthrough", "sriov-vf", NULL};
    return limits_is_one_of(limits_text(device, "nature"), real);
}

static void add_dram(struct joiner *j)
{
    const json_t *memory = json_object_get(j->machine, "memory");
    double peak = limits_number(memory, "peak_gbytes_per_s");
    if (peak > 0)
        limits_add(j, limits_key("dram.gbytes_per_s"), peak, "GB/s", "sysfs",
                   "%.0f channels, from the firmware's memory table (SMBIOS)",
                   limits_number(memory, "channels"));
}

/* Returns the rate; 0: not known. */
static double add_link(struct joiner *j, const char *address, const char *name, double gt_s,
                       int width, const char *what)
{
    double rate = 0;
    int gen = limits_pcie_gen(j->l, gt_s);
    if (gen <= 0 || limits_pcie(j->l, gen, width, 0, &rate))
        return 0;
    limits_add(j, limits_key("pcie.%s.%s", address, name), rate, "GB/s", "sysfs",
               "%s: generation %d x%d, one direction, before packet headers", what, gen, width);
    return rate;
}

// The slowest link above the device's own; 0: there is none, or not all are known. The fact
// "path_gbytes_per_s" has the device's own in it, which a GPU slows when idle.
static double slowest_uplink(const json_t *device)
{
    const json_t *uplink;
    double least = 0;
    size_t i;
    json_array_foreach (json_object_get(device, "uplinks"), i, uplink) {
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
    const char *address = limits_label(device, "address"), *kind = limits_text(device, "kind");
    int width = limits_count(link, "now_width"), best_width = limits_count(link, "best_width");
    double now = limits_number(link, "now_gt_s"), best = limits_number(link, "best_gt_s");
    double most =
        best > 0 ? best : limits_number(link, "max_gt_s"); // of the device alone: a bound too
    double path = slowest_uplink(device), own;
    bool gpu = kind && !strcmp(kind, "gpu");
    if (!address || !link)
        return;
    if (gpu && most > now)
        own = add_link(j, address, "gbytes_per_s", most, width,
                       "width as it is, speed of a busy GPU");
    else
        own = add_link(j, address, "gbytes_per_s", now, width, "link as it is");
    add_link(j, address, "best_gbytes_per_s", best, best_width, "what both ends could do");
    if (path > 0 && (own <= 0 || path < own * (1 - SAME_RATE)))
        limits_add(j, limits_key("pcie.%s.path_gbytes_per_s", address), path, "GB/s", "sysfs",
                   "the slowest link above the device's own, one direction, before packet "
                   "headers");
}

static void add_chip(struct joiner *j, const json_t *nic, const char *name)
{
    const char *entry, *source, *unit;
    double value;
    struct limit_key id = limits_pci_id(j, limits_text(nic, "pci"));
    if (!limits_is_whole(nic) || limits_nic_by_pci(j->l, id.text, &entry))
        return;
    if (!limits_lookup(j->l, limits_key("%s.port_gbits_per_s", entry).text, &value, &unit, &source))
        limits_add(j, limits_key("net.%s.chip_gbits_per_s", name), value, unit, "datasheet",
                   "fastest port of any card with this chip (%s): %s", entry, source);
}

static void add_nic(struct joiner *j, const json_t *nic)
{
    const char *name = limits_label(nic, "name"), *kind = limits_text(nic, "kind");
    double speed = limits_number(nic, "speed_gbits_per_s");
    int mtu = limits_count(nic, "mtu");
    if (!name || !has_real_port(nic))
        return;
    if (speed > 0)
        limits_add(j, limits_key("net.%s.gbits_per_s", name), speed, "Gb/s", "sysfs",
                   "link speed, one direction");
    if (speed > 0 && mtu >= 576 && kind && !strcmp(kind, "ethernet"))
        limits_add(j, limits_key("net.%s.tcp_gbits_per_s", name),
                   speed * limits_tcp_fraction(mtu, 0), "Gb/s", "sysfs",
                   "payload of TCP over IPv4 at the link speed, MTU %d", mtu);
    add_chip(j, nic, name);
}

// The kernel states InfiniBand's signalling rate below EDR: "56 Gb/sec (4X FDR)" carries 54.5, and
// "4X FDR" says which rate it is.
static double infiniband_rate(const struct joiner *j, const json_t *port)
{
    const char *lanes = limits_text(port, "lanes");
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
    const char *layer = limits_text(port, "link_layer"), *lanes = limits_text(port, "lanes");
    int index = limits_count(port, "port");
    double rate = limits_number(port, "rate_gbits_per_s");
    bool infiniband = layer && !strcmp(layer, "InfiniBand");
    if (infiniband)
        rate = infiniband_rate(j, port);
    if (!layer || rate <= 0)
        return;
    double payload = infiniband ? (double)ROCE_PAYLOAD / (ROCE_PAYLOAD + IB_OVERHEAD)
                                : limits_roce_fraction(ROCE_PAYLOAD);
    limits_add(j, limits_key("rdma.%s.%d.gbits_per_s", name, index), rate, "Gb/s", "sysfs",
               "data rate of %s (%s), one direction", layer, lanes ? lanes : "lanes unknown");
    limits_add(j, limits_key("rdma.%s.%d.payload_gbits_per_s", name, index), rate * payload, "Gb/s",
               "sysfs", "payload of packets of %d bytes at the data rate", ROCE_PAYLOAD);
}

static void add_rdma(struct joiner *j, const json_t *device)
{
    const char *name = limits_label(device, "name");
    const json_t *port;
    size_t i;
    if (!name || !has_real_port(device))
        return;
    json_array_foreach (json_object_get(device, "ports"), i, port) {
        add_port(j, name, port);
    }
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
        limits_add_gpu(j, item, i);
    }
    json_array_foreach (json_object_get(gpus, "pairs"), i, item) {
        limits_add_gpu_pair(j, item);
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
