/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two machines' devices, which are matched by what they are, not by their
 * address: see pairs.h. */
#include <stdlib.h>
#include <string.h>

#include "harness/compare/pairs.h"
#include "harness/report/show.h"

typedef const char *device_text_fn(struct pool *pool, const json_t *device); /* "" : not counted */

static const char *text_at(struct pool *pool, const json_t *device, const char *path)
{
    return differ_text(pool, differ_find(device, path));
}

/* "400 Gb/s", or "" where it is not known. */
static const char *with_unit(struct pool *pool, const char *text, const char *unit)
{
    return *text && *unit ? pool_text(pool, "%s %s", text, unit) : text;
}

/* The devices of one kind, by the list of the machine that has them. */
struct device_list {
    const char *path;
    device_text_fn *text;
};

static const char *list_text(const struct differ *d, const json_t *run, const void *arg)
{
    const struct device_list *list = arg;
    const json_t *found = differ_find(run, list->path);
    size_t n = json_array_size(found);
    const char **texts = pool_alloc(d->pool, n, sizeof(*texts));

    for (size_t i = 0; i < n; i++)
        texts[i] = list->text(d->pool, json_array_get(found, i));
    const char *text = differ_counted(d->pool, texts, n);
    return !*text && json_is_array(found) ? "none" : text;
}

static void add_list(struct differ *d, const char *what, const char *path, device_text_fn *text,
                     const char *pipes)
{
    const struct device_list list = {path, text};

    differ_fact(d, what, list_text, &list, pipes);
}

/* Interfaces that are up, or whose state is not told. */
static const char *interface_text(struct pool *pool, const json_t *nic)
{
    const char *state = text_at(pool, nic, "state");
    const char *text = text_at(pool, nic, "driver"), *mtu = text_at(pool, nic, "mtu");

    if (json_is_true(json_object_get(nic, "virtual")) || !strcmp(state, "down"))
        return "";
    text = show_joined(pool, *text ? text : "no driver named", text_at(pool, nic, "nature"));
    text =
        show_joined(pool, text, with_unit(pool, text_at(pool, nic, "speed_gbits_per_s"), "Gb/s"));
    return *mtu ? pool_text(pool, "%s, MTU %s", text, mtu) : text;
}

static const char *rdma_text(struct pool *pool, const json_t *device)
{
    const char *driver = text_at(pool, device, "driver");
    const char *firmware = text_at(pool, device, "firmware");
    const char *text =
        show_joined(pool, *driver ? driver : "no driver named", text_at(pool, device, "nature"));

    if (*firmware)
        text = pool_text(pool, "%s, firmware %s", text, firmware);
    const json_t *ports = json_object_get(device, "ports"), *port;
    const char *all = "";
    size_t i;

    json_array_foreach (ports, i, port) {
        all = show_joined(pool, all, text_at(pool, port, "link_layer"));
        all = show_joined(pool, all,
                          with_unit(pool, text_at(pool, port, "rate_gbits_per_s"), "Gb/s"));
        all = show_joined(pool, all, text_at(pool, port, "state"));
    }
    return show_joined(pool, text, all);
}

static const char *gpu_name(struct pool *pool, const json_t *gpu)
{
    const char *name = text_at(pool, gpu, "name"), *nature = text_at(pool, gpu, "nature");

    return pool_text(pool, "%s (%s)", *name ? name : "without a name",
                     *nature ? nature : "nature not known");
}

/* A figure of GPUs by its place. */
static const struct gpu_fact {
    const char *what, *path, *unit, *pipes;
} gpu_facts[] = {
    {"GPU clock, highest", "sm_max_mhz", "MHz", "GPU matrix core, GPU memory, GPU launch"},
    {"GPU memory clock", "memory_max_mhz", "MHz", "GPU memory"},
    {"GPU multiprocessors", "sms", "", "GPU matrix core, GPU memory"},
    {"GPU power limit", "power_limit_watts", "W", "GPU matrix core, GPU memory"},
    {"GPU ECC", "ecc", "", "GPU memory"},
    {"GPU MIG", "mig.enabled", "", ON_GPU},
    {"GPU persistence mode", "persistence_mode", "", "GPU launch"},
    {"GPU virtualisation", "virtualization", "", ON_GPU},
    {"GPU compute mode", "compute_mode", "", ON_GPU},
    {"GPU NUMA node", "numa_node", "", "PCIe"},
    {"GPU BAR1 covers its memory", "bar1_covers_memory", "", ON_NETWORK},
    {"NVLinks of a GPU", "nvlink.links", "", "NVLink, Collectives"},
    {"NVLinks of a GPU that are up", "nvlink.active", "", "NVLink, Collectives"},
    {"NVLink fabric", "fabric.state", "", "NVLink, Collectives"},
};

#define GPUS "machine.gpus.devices"

static const char *gpu_fact_text(const struct differ *d, const json_t *run, const void *fact)
{
    const struct gpu_fact *f = fact;
    const json_t *gpus = differ_find(run, GPUS);
    size_t n = json_array_size(gpus);
    const char **texts = pool_alloc(d->pool, n, sizeof(*texts));

    for (size_t i = 0; i < n; i++)
        texts[i] = with_unit(d->pool, text_at(d->pool, json_array_get(gpus, i), f->path), f->unit);
    return differ_listed(gpus, differ_counted(d->pool, texts, n));
}

/* Disks and bridges feed no pipe that is measured. */
static bool is_of_a_pipe(struct pool *pool, const json_t *device)
{
    static const char *const kinds[] = {"gpu", "ethernet", "infiniband", "nvswitch", "fpga"};
    const char *kind = text_at(pool, device, "kind");

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strcmp(kinds[i], kind))
            return true;
    return false;
}

/* What a device is, the same on every machine: its kind and numbers. */
static const char *model_of(struct pool *pool, const json_t *device)
{
    return pool_text(pool, "%s %s:%s", text_at(pool, device, "kind"),
                     text_at(pool, device, "vendor_id"), text_at(pool, device, "device_id"));
}

static const char *link_text(struct pool *pool, const json_t *device)
{
    const char *width = text_at(pool, device, "link.now_width");
    const char *rate = text_at(pool, device, "link.now_gt_s");
    const char *generation = text_at(pool, device, "link.generation");

    if (!*width || !*rate)
        return "";
    return *generation ? pool_text(pool, "PCIe %s.0 x%s", generation, width)
                       : pool_text(pool, "x%s, %s GT/s", width, rate);
}

#define PCI         "machine.pci"
#define DEVICES_MAX 512 /* of a damaged file there may be any number */

/* The links of all devices of one model. */
static const char *links_text(const struct differ *d, const json_t *run, const void *model)
{
    const json_t *list = differ_find(run, PCI);
    size_t n = json_array_size(list);
    const char **texts = pool_alloc(d->pool, n, sizeof(*texts));
    bool there = false;

    for (size_t i = 0; i < n; i++) {
        const json_t *device = json_array_get(list, i);
        bool like = !strcmp(model_of(d->pool, device), model);

        there = there || like;
        texts[i] = like ? link_text(d->pool, device) : "";
    }
    if (!there && json_is_array(list))
        return "none";
    return differ_counted(d->pool, texts, n);
}

void differ_devices(struct differ *d)
{
    const char **known = pool_alloc(d->pool, DEVICES_MAX, sizeof(*known));
    size_t n_known = 0;

    /* A link that is idle may be slower. Also where a device is on one side alone. */
    d->aside = true;
    for (size_t i = 0; i < d->n_runs; i++) {
        /* Those of one run that no run before it has. */
        const json_t *list = differ_find(d->runs[i], PCI);
        size_t n = json_array_size(list) < DEVICES_MAX ? json_array_size(list) : DEVICES_MAX;

        for (size_t j = 0; j < n; j++) {
            const json_t *device = json_array_get(list, j);
            const char *model = model_of(d->pool, device), *name = text_at(d->pool, device, "name");
            size_t k = 0;

            while (k < n_known && strcmp(known[k], model) != 0)
                k++;
            if (!is_of_a_pipe(d->pool, device) || k < n_known || k == DEVICES_MAX)
                continue;
            known[n_known++] = model;
            differ_fact(d, pool_text(d->pool, "PCIe link of %s", *name ? name : model), links_text,
                        model, ON_PCIE);
        }
    }
    d->aside = false;
    add_list(d, "network interfaces", "machine.network", interface_text, ON_NETWORK);
    add_list(d, "RDMA devices", "machine.rdma", rdma_text, ON_NETWORK);
    add_list(d, "GPUs", GPUS, gpu_name, ON_GPU);
    for (size_t i = 0; i < sizeof(gpu_facts) / sizeof(*gpu_facts); i++)
        differ_fact(d, gpu_facts[i].what, gpu_fact_text, &gpu_facts[i], gpu_facts[i].pipes);
}
