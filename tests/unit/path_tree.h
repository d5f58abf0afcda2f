/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up machines for the tests of a path's proof: what their counters say. */
#ifndef PLUMB_TESTS_PATH_TREE_H
#define PLUMB_TESTS_PATH_TREE_H

#include <math.h>

#include "core/hw/path.h"
#include "core/row.h"
#include "tests/unit/scratch_tree.h"

#define GB 1e9

struct interface {
    const char *name;
    double in, out;
};

static inline void put_interfaces(const struct scratch *s, const struct interface *list)
{
    char text[4096] = "Inter-|   Receive                            |  Transmit\n"
                      " face |bytes    packets errs drop fifo frame compressed multicast|bytes\n";

    for (; list->name; list++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "%6s: %.0f 7 1 2 3 4 5 6 %.0f 8 1 2 3 4 5 6\n", list->name, list->in, list->out);
    scratch_put(s, "proc/net/dev", text);
}
#define INTERFACES(s, ...) put_interfaces(s, (const struct interface[]){__VA_ARGS__, {0}})

static inline void put_count(const struct scratch *s, const char *device, const char *file,
                             double value)
{
    char path[256], text[32];

    snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports/1/%s", device, file);
    snprintf(text, sizeof(text), "%.0f\n", value);
    scratch_put(s, path, text);
}

/* Data of a port in the units that the kernel gives: four bytes. */
static inline void put_port(const struct scratch *s, const char *device, double in, double out)
{
    put_count(s, device, "counters/port_rcv_data", floor(in / 4));
    put_count(s, device, "counters/port_xmit_data", floor(out / 4));
}

/* An adapter at a PCI address, with its driver, link layer and interface (NULL: none). */
static inline void put_adapter(const struct scratch *s, const char *device, const char *driver,
                               const char *layer, const char *interface)
{
    char path[256], text[256];

    snprintf(path, sizeof(path),
             "sys/devices/pci0000:00/0000:3b:00.0/infiniband/%s/ports/1/link_layer", device);
    snprintf(text, sizeof(text), "%s\n", layer);
    scratch_put(s, path, text);
    scratch_link(s, "sys/devices/pci0000:00/0000:3b:00.0/driver", driver);
    snprintf(path, sizeof(path), "sys/class/infiniband/%s", device);
    snprintf(text, sizeof(text), "../../devices/pci0000:00/0000:3b:00.0/infiniband/%s", device);
    scratch_link(s, path, text);
    if (!interface)
        return;
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:3b:00.0/net/%s/type", interface);
    scratch_put(s, path, "1\n");
}

/* An interface at a PCI address, with its driver (NULL: it is there already) and its speed. */
static inline void put_speed(const struct scratch *s, const char *name, const char *slot,
                             const char *driver, const char *speed)
{
    char path[256], text[256];

    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/net/%s/speed", slot, name);
    scratch_put(s, path, speed);
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/net/%s/type", slot, name);
    scratch_put(s, path, "1\n");
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/net/%s/mtu", slot, name);
    scratch_put(s, path, "1500\n");
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/driver", slot);
    if (driver) /* else it is there */
        scratch_link(s, path, driver);
    snprintf(path, sizeof(path), "sys/devices/pci0000:00/0000:%s/net/%s/device", slot, name);
    scratch_link(s, path, "../..");
    snprintf(path, sizeof(path), "sys/class/net/%s", name);
    snprintf(text, sizeof(text), "../../devices/pci0000:00/0000:%s/net/%s", slot, name);
    scratch_link(s, path, text);
}

/* A device in software over an interface. */
static inline void put_rxe(const struct scratch *s, double in_packets, double out_packets)
{
    scratch_put(s, "sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n");
    scratch_put(s, "sys/class/infiniband/rxe0/parent", "eth0\n");
    put_count(s, "rxe0", "hw_counters/rcvd_pkts", in_packets);
    put_count(s, "rxe0", "hw_counters/sent_pkts", out_packets);
}

static inline void put_lower(const struct scratch *s, const char *upper, const char *lower)
{
    char path[256];

    snprintf(path, sizeof(path), "sys/class/net/%s/lower_%s", upper, lower);
    scratch_put(s, path, "");
}

static inline struct path *begin(const struct scratch *s)
{
    return path_begin_at(s->root, 0);
}

#define SCRATCH(s)                                                                                 \
    struct scratch s;                                                                              \
    (void)state;                                                                                   \
    scratch_open(&s)

#endif
