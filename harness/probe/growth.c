/* SPDX-License-Identifier: Apache-2.0 */
/* How the counters of a machine grew between two readings: see probe.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "harness/probe/facts.h"
#include "harness/probe/probe.h"

/* ---- Two readings ---- */

/* What an entry is known by: a PCI function, also a GPU, by its address, a port by its number. */
static const char *key_of(const json_t *one)
{
    return json_object_get(one, "address") ? "address"
           : json_object_get(one, "name")  ? "name"
                                           : "port";
}

static const json_t *find_like(const json_t *list, const json_t *one)
{
    const char *key = key_of(one);

    FACT_EACH (list, other)
        if (json_equal(json_object_get(other, key), json_object_get(one, key)))
            return other;
    return NULL;
}

/* What is smaller than it was has begun anew, and what lacks was not read: neither grew. */
static void add_one(json_t *grown, const char *key, const json_t *before, const json_t *after)
{
    const json_t *was = json_object_get(before, key), *value = json_object_get(after, key);
    json_int_t more = json_integer_value(value) - json_integer_value(was);
    double longer = json_number_value(value) - json_number_value(was);

    if (json_is_integer(value) && json_is_integer(was) && more >= 0)
        json_object_set_new(grown, key, json_integer(more));
    else if (json_is_real(value) && json_is_real(was) && longer >= 0)
        fact_set_real(grown, key, longer);
}

static void set_grown(json_t *object, const json_t *before, const json_t *after)
{
    static const char *const counters[] = {"counters", "hw_counters", "pause_counters"};
    static const char *const times[] = {"wanted_cpu_seconds", "stolen_cpu_seconds"}; /* of load */
    json_t *grown = json_object();

    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
        const char *key;
        json_t *value;

        json_object_foreach ((json_t *)json_object_get(after, counters[i]), key, value)
            add_one(grown, key, json_object_get(before, counters[i]),
                    json_object_get(after, counters[i]));
    }
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
        add_one(grown, times[i], before, after);
    add_one(grown, "replays", json_object_get(before, "pcie"), json_object_get(after, "pcie"));
    if (json_object_size(grown))
        json_object_set(object, "grown", grown);
    else
        json_object_del(object, "grown");
    json_decref(grown);
}

static void set_each(json_t *list, const json_t *before, const json_t *after)
{
    json_t *one, *ports;
    size_t i;

    json_array_foreach (list, i, one) {
        const json_t *was = find_like(before, one), *is = find_like(after, one);

        set_grown(one, was, is);
        ports = json_object_get(one, "ports");
        if (ports)
            set_each(ports, json_object_get(was, "ports"), json_object_get(is, "ports"));
    }
}

static double uptime_of(const json_t *machine)
{
    return fact_number(machine, "load.uptime_seconds", 0);
}

static json_t *gpus_of(const json_t *machine)
{
    return (json_t *)fact_at(machine, "gpus.devices");
}

void probe_growth(json_t *machine, const json_t *before, const json_t *after)
{
    static const char *const lists[] = {"network", "rdma", "pci"};
    double seconds = uptime_of(after) - uptime_of(before);
    json_t *load = json_object_get(machine, "load");

    if (!load || uptime_of(before) <= 0 || seconds <= 0)
        return;
    fact_set_real(load, "watched_seconds", seconds);
    set_grown(load, json_object_get(before, "load"), json_object_get(after, "load"));
    set_grown((json_t *)fact_at(machine, "virtualization.limits"),
              fact_at(before, "virtualization.limits"), fact_at(after, "virtualization.limits"));
    set_each(gpus_of(machine), gpus_of(before), gpus_of(after));
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        set_each(json_object_get(machine, lists[i]), json_object_get(before, lists[i]),
                 json_object_get(after, lists[i]));
}

/* ---- The second reading ---- */

/* Where the object's folder is in the second reading: in a recording below another one, which has no
 * links. */
static bool place(const struct probe *p, const char *below, const char *folder, const char *name,
                  char *path, size_t size)
{
    char real[SYS_PATH];

    return name && !strchr(name, '/') &&
           !sys_resolve(p->root, real, sizeof(real), "%s/%s", folder, name) &&
           (size_t)snprintf(path, size, "%s%s", below, real) < size;
}

/* ports: those of the device, as they were at first. */
static void device_again(const struct probe *p, json_t *now, const char *device,
                         const json_t *ports)
{
    json_t *list = fact_list(now, "ports");
    char path[SYS_PATH];

    FACT_EACH (ports, port) {
        json_t *one = fact_append(list);
        fact_set_number(one, "port", fact_integer(port, "port", 0));
        if ((size_t)snprintf(path, sizeof(path), "%s/ports/%lld", device,
                             fact_integer(port, "port", 0)) < sizeof(path))
            rdma_fill_counters(p, one, path);
    }
}

typedef void again_fn(const struct probe *p, json_t *now, const char *path, const json_t *arg);

static void function_again(const struct probe *p, json_t *now, const char *path,
                           const json_t *unused)
{
    const char *slash = strrchr(path, '/');
    char port[SYS_PATH], address[PCI_ADDRESS];
    size_t n = slash ? (size_t)(slash - path) : 0;

    (void)unused;
    snprintf(port, sizeof(port), "%.*s", (int)n, path);
    pci_fill_counters(p, now, path, pci_function_of(port, n, address) == n && n ? port : NULL);
}

/* The driver of a GPU tells what it counts, and no file. */
static json_t *gpus_again(const json_t *machine)
{
    json_t *all = json_array();
    struct nvml *nvml = NULL;
    char why[256];

    if (fact_true(machine, "gpus.nvml"))
        nvml_open(&nvml, why, sizeof(why));
    FACT_EACH (gpus_of(machine), one) {
        const char *address = fact_string(one, "address");
        struct nvml_device *device = nvml && address ? nvml_find(nvml, address) : NULL;
        json_t *now = device ? json_object() : NULL;

        if (!now)
            continue;
        json_array_append_new(all, now);
        fact_set_text(now, "address", address);
        nvml_fill_counters(nvml, device, now);
    }
    nvml_close(nvml);
    return all;
}

/* The entries of a list by their names, with their counters of now. asked NULL: each one's ports. */
static json_t *list_again(const struct probe *p, const char *below, const char *folder,
                          const json_t *list, again_fn *again, const json_t *asked)
{
    json_t *all = json_array();
    char path[SYS_PATH];

    FACT_EACH (list, one) {
        const char *key = key_of(one), *name = fact_string(one, key);
        json_t *now = fact_append(all);
        fact_set_text(now, key, name ? name : "");
        if (place(p, below, folder, name, path, sizeof(path)))
            again(p, now, path, asked ? asked : json_object_get(one, "ports"));
    }
    return all;
}

void probe_again(const struct probe *p, const char *below, json_t *machine)
{
    char line[SYS_LINE];
    double seconds;
    json_t *now, *load, *asked;

    if (sys_line(p->root, line, sizeof(line), "%s/proc/uptime", *below ? below : ".") ||
        sscanf(line, "%lf", &seconds) != 1 || uptime_of(machine) <= 0)
        return;
    now = json_object();
    load = fact_object(now, "load");
    fact_set_real(load, "uptime_seconds", seconds);
    load_fill_steal(p, load, below);
    limits_fill_counters(p, fact_object(fact_object(now, "virtualization"), "limits"), below);
    asked = net_asked(p, below);
    json_object_set_new(now, "network",
                        list_again(p, below, "sys/class/net", json_object_get(machine, "network"),
                                   net_fill_counters, asked));
    json_object_set_new(now, "rdma",
                        list_again(p, below, "sys/class/infiniband",
                                   json_object_get(machine, "rdma"), device_again, NULL));
    json_decref(asked);
    json_object_set_new(now, "pci",
                        list_again(p, below, "sys/bus/pci/devices", json_object_get(machine, "pci"),
                                   function_again, NULL));
    if (!p->root)
        json_object_set_new(fact_object(now, "gpus"), "devices", gpus_again(machine));
    probe_growth(machine, machine, now);
    json_decref(now);
}

void probe_watch(json_t *machine, double seconds)
{
    struct timespec rest = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    const struct probe p = {.root = NULL};

    while (nanosleep(&rest, &rest) && errno == EINTR)
        continue;
    probe_again(&p, "", machine);
}
