/* SPDX-License-Identifier: Apache-2.0 */
/* The state of network interfaces beside what they are, and the settings of TCP. */
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/probe/facts.h"

enum { ASKED = 1 << 20, INTERRUPTS = 16 << 20 };

/* ---- what only a running kernel tells: see net_ask() ---- */

/* "rate_gbits_per_s=1.5": the number under its name. */
static void add_value(json_t *object, char *word)
{
    char *equals = strchr(word, '='), *end;
    double value;

    if (!equals || equals == word)
        return;
    *equals = '\0';
    value = strtod(equals + 1, &end);
    if (end == equals + 1 || *end || !(value >= 0 && value < 1e15))
        return;
    if (strchr(equals + 1, '.'))
        fact_set_real(object, word, value);
    else
        fact_set_number(object, word, (long long)value);
}

/* The children of a multi-queue discipline are alike: each kind once. */
static void add_qdisc(json_t *nic, json_t *qdisc)
{
    json_t *list = json_object_get(nic, "qdiscs");

    if (!list)
        list = fact_list(nic, "qdiscs");
    FACT_EACH (list, other)
        if (json_equal(other, qdisc)) {
            json_decref(qdisc);
            return;
        }
    json_array_append_new(list, qdisc);
}

/* "eth0 qdisc tbf rate_gbits_per_s=1.0", cut at its blanks. */
static void take_line(json_t *all, char *line)
{
    char *save = NULL, *name = strtok_r(line, " ", &save), *key = strtok_r(NULL, " ", &save),
         *word = strtok_r(NULL, " ", &save);
    json_t *nic = name ? json_object_get(all, name) : NULL, *values;

    if (!word)
        return;
    if (!nic)
        nic = fact_object(all, name);
    if (!strcmp(key, "max_mtu") && digits_number(word) > 0) {
        fact_set_number(nic, key, digits_number(word));
        return;
    }
    values = json_object();
    if (!strcmp(key, "qdisc"))
        fact_set_text(values, "kind", word);
    else
        add_value(values, word);
    while ((word = strtok_r(NULL, " ", &save)))
        add_value(values, word);
    if (!strcmp(key, "qdisc"))
        add_qdisc(nic, values);
    else if (!strcmp(key, "pause") || !strcmp(key, "rings") || !strcmp(key, "line") ||
             !strcmp(key, "counts"))
        json_object_set_new(nic, key, values);
    else
        json_decref(values);
}

json_t *net_asked(const struct probe *p, const char *below)
{
    char *text = NULL, *save = NULL;
    json_t *all = json_object();
    size_t size = 0;

    if (p->root) {
        text = xrealloc(NULL, ASKED);
        sys_read(p->root, text, ASKED, NULL, "%splumb/net", below);
    } else {
        FILE *out = open_memstream(&text, &size);

        if (!out)
            alloc_fail(1);
        net_ask(out);
        fclose(out);
    }
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        take_line(all, line);
    free(text);
    return all;
}

/* ---- interrupts ---- */

char *net_interrupts(const struct probe *p)
{
    char *text = xrealloc(NULL, INTERRUPTS);

    if (!sys_read(p->root, text, INTERRUPTS, NULL, "proc/interrupts"))
        return text;
    free(text);
    return NULL;
}

/* Vectors that carry no packets. */
static bool is_service(const char *line)
{
    static const char *const words[] = {"-config", "_async", "-async", "_cmd", "_pages", "-mgmnt"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

/* The word stands in the line by itself or before a "-": "eth0-TxRx-3", not "eth01". */
static bool names_it(const char *line, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = strstr(line, word); n && at; at = strstr(at + 1, word))
        if ((at == line || strchr(" -@:", at[-1])) && (!at[n] || strchr(" -@:", at[n])))
            return true;
    return false;
}

/* The CPUs that one interrupt goes to, added to `cpus`. 0 or -errno. */
static int add_cpus(struct probe *p, int irq, hwloc_bitmap_t cpus)
{
    static const char effective[] = "effective_affinity_list";
    hwloc_bitmap_t own;
    char folder[32], line[SYS_LINE];
    int rc;

    snprintf(folder, sizeof(folder), "proc/irq/%d", irq);
    rc = sys_line(p->root, line, sizeof(line), "%s/%s", folder, effective);
    if (rc && probe_absent(p, "%s/%s", folder, effective)) /* before Linux 4.15 */
        rc = sys_line(p->root, line, sizeof(line), "%s/smp_affinity_list", folder);
    if (rc)
        return rc;
    own = fact_cpu_set(line);
    rc = hwloc_bitmap_iszero(own) ? -EINVAL : 0;
    hwloc_bitmap_or(cpus, cpus, own);
    hwloc_bitmap_free(own);
    return rc;
}

/* The NUMA nodes of these CPUs; null where those of a node are not known. */
static void set_nodes(struct probe *p, json_t *interrupts, hwloc_const_bitmap_t cpus)
{
    const json_t *nodes = fact_at(p->machine, "numa.nodes");
    json_t *list = json_array();
    bool known = json_is_array(nodes);

    FACT_EACH (nodes, node) {
        const char *text = fact_string(node, "cpus");
        hwloc_bitmap_t own = fact_cpu_set(text ? text : "");

        known = known && text;
        if (known && hwloc_bitmap_intersects(own, cpus))
            json_array_append_new(list, json_integer(fact_integer(node, "node", -1)));
        hwloc_bitmap_free(own);
    }
    fact_set_if(interrupts, "numa_nodes", known, list, "the CPUs of the NUMA nodes are not known");
}

/* "38:  1  2  PCI-MSIX-0000:00:03.0  1-edge  virtio2-input.0": by the interface, its function or
 * its virtio device. Which CPU took how many is left: the affinity of today counts. */
static void set_interrupts(struct probe *p, json_t *nic, const char *path, const char *text)
{
    const char *address = fact_string(nic, "pci"), *name = fact_string(nic, "name");
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    char device[SYS_LINE] = "", line[SYS_LINE], *list = NULL;
    long long count = 0;
    int rc = 0;

    sys_link(p->root, device, sizeof(device), "%s/device", path);
    if (strncmp(device, "virtio", 6))
        device[0] = '\0';
    for (const char *at = text; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
        size_t n = strcspn(at, "\n"), words = strcspn(at, ":") + 1;
        int irq;

        if (words >= n || sscanf(at, " %d:", &irq) != 1)
            continue;
        words += strspn(at + words, " 0123456789\t") - 1;
        snprintf(line, sizeof(line), "%.*s", (int)(n - words), at + words);
        if (is_service(line) || !(names_it(line, name) || names_it(line, device) ||
                                  (address && names_it(line, address))))
            continue;
        count++;
        if (!rc)
            rc = add_cpus(p, irq, cpus);
    }
    if (!text || !count) {
        fact_set_unknown(nic, "interrupts", "%s",
                         fact_true(nic, "virtual") ? "a software interface has none"
                         : text                    ? "/proc/interrupts names none for it"
                                                   : "/proc/interrupts: not readable here");
    } else {
        json_t *interrupts = fact_object(nic, "interrupts");

        fact_set_number(interrupts, "count", count);
        if (!rc && hwloc_bitmap_list_asprintf(&list, cpus) >= 0) {
            fact_set_text(interrupts, "cpus", list);
            set_nodes(p, interrupts, cpus);
        } else {
            fact_set_unknown(interrupts, "cpus|numa_nodes", "/proc/irq: %s", fact_errno(rc));
        }
    }
    free(list);
    hwloc_bitmap_free(cpus);
}

/* ---- queues, counters, bonds ---- */

static void set_queues(struct probe *p, json_t *nic, const char *path)
{
    struct path folder = path_join(path, "queues");
    long long receive = 0, send = 0;
    struct names names;
    int rc = sys_list(p->root, &names, "%s", folder.s);

    for (size_t i = 0; i < names.count; i++) {
        receive += !strncmp(names.name[i], "rx-", 3);
        send += !strncmp(names.name[i], "tx-", 3);
    }
    names_free(&names);
    if (rc || !receive || !send) {
        fact_set_unknown(nic, "queues", "/%s: %s", folder.s, rc ? fact_errno(rc) : "empty");
        return;
    }
    json_t *queues = fact_object(nic, "queues");
    fact_set_number(queues, "receive", receive);
    fact_set_number(queues, "send", send);
}

/* mlx5's "rx_pause_ctrl_phy" counts the frames of priorities, too. */
static bool is_counted_twice(const json_t *counts, const char *name)
{
    const char *other, *start = strncmp(name, "rx", 2) != 0 ? "tx_priority" : "rx_priority";
    char key[NET_PAUSE_KEY];
    json_t *value;

    if (!strstr(name, "_pause_ctrl_phy"))
        return false;
    json_object_foreach ((json_t *)counts, other, value)
        if (net_pause_key(other, key) && !strncmp(key, start, strlen(start)))
            return true;
    return false;
}

/* Some drivers have two names for one counter: they are alike. */
static void set_pauses(json_t *nic, const json_t *counts)
{
    json_t *pauses = json_object(), *value;
    const char *name;
    char key[NET_PAUSE_KEY];

    json_object_foreach ((json_t *)counts, name, value)
        if (net_pause_key(name, key) && json_is_integer(value) &&
            json_integer_value(value) >= fact_integer(pauses, key, 0) &&
            !is_counted_twice(counts, name))
            json_object_set(pauses, key, value);
    fact_set_if(nic, "pause_counters", json_object_size(pauses), pauses,
                "the driver counts none, or it was not recorded");
}

void net_fill_counters(const struct probe *p, json_t *nic, const char *path, const json_t *asked)
{
    static const char *const files[] = {"rx_packets",        "tx_packets",    "rx_errors",
                                        "tx_errors",         "rx_dropped",    "tx_dropped",
                                        "rx_missed_errors",  "rx_crc_errors", "rx_fifo_errors",
                                        "tx_carrier_errors", "collisions",    NULL};
    json_t *counters;

    fact_set_counters(p, nic, "counters", files, path_join(path, "statistics").s);
    set_pauses(nic, json_object_get(json_object_get(asked, fact_string(nic, "name")), "counts"));
    counters = json_object_get(nic, "counters");
    if (json_is_object(counters))
        fact_set_file(p, counters, "carrier_changes", FACT_NUMBER, "%s/carrier_changes", path);
}

/* Whether it is silent when asked for an address of another interface: all's or its own setting. */
static void set_arp(struct probe *p, json_t *nic)
{
    const char *names[] = {"all", fact_string(nic, "name")};
    long long most = 0;

    for (size_t i = 0; i < 2; i++) {
        if (fact_set_file(p, nic, "arp_ignore", FACT_NUMBER, "proc/sys/net/ipv4/conf/%s/arp_ignore",
                          names[i]))
            return;
        most =
            fact_integer(nic, "arp_ignore", 0) > most ? fact_integer(nic, "arp_ignore", 0) : most;
    }
    fact_set_number(nic, "arp_ignore", most);
}

void net_fill_state(struct probe *p, json_t *nic, const char *path, const json_t *asked,
                    const char *interrupts)
{
    static const char *const keys[] = {"max_mtu", "qdiscs", "pause", "rings", "line"};
    const json_t *own = json_object_get(asked, fact_string(nic, "name"));
    static const struct fact_file bond[] = {{"mode", "mode", FACT_WORD},
                                            {"hash_policy", "xmit_hash_policy", FACT_WORD},
                                            {"members", "slaves", FACT_WORDS}};

    set_arp(p, nic);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        fact_set(nic, keys[i], json_incref(json_object_get(own, keys[i])),
                 "the driver gives none, or it was not recorded");
    set_queues(p, nic, path);
    set_interrupts(p, nic, path, interrupts);
    if (sys_exists(p->root, "%s/bonding", path))
        fact_set_files(p, fact_object(nic, "bond"), path_join(path, "bonding").s, FACT_FILES(bond));
    net_fill_counters(p, nic, path, asked);
}

/* ---- TCP ---- */

/* The interfaces of routes to everywhere, and a list for each network that several are in, of which
 * the first sends to it; IPv4. Addresses are not kept. */
static void set_routes(struct probe *p, json_t *tcp)
{
    char *text = xrealloc(NULL, SYS_NAMES), name[64], destination[16], gateway[16], mask[16],
         network[40], *save = NULL;
    int rc = sys_read(p->root, text, SYS_NAMES, NULL, "proc/net/route");
    json_t *list, *names, *networks = json_object();
    const char *key;

    if (rc)
        fact_set_unknown(tcp, "default_interfaces|shared_subnets", "/proc/net/route: %s",
                         fact_errno(rc));
    list = rc ? NULL : fact_list(tcp, "default_interfaces");
    for (char *line = strtok_r(text, "\n", &save); line && !rc;
         line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "%63s %15s %15s %*s %*s %*s %*s %15s", name, destination, gateway, mask) !=
            4)
            continue;
        snprintf(network, sizeof(network), "%s %s", destination, mask);
        names = json_object_get(networks, network);
        if (!strcmp(network, "00000000 00000000"))
            json_array_append_new(list, fact_text(name));
        else if (strspn(gateway, "0") == strlen(gateway) && strcmp(name, "Iface") != 0)
            json_array_append_new(names ? names : fact_list(networks, network), fact_text(name));
    }
    list = rc ? NULL : fact_list(tcp, "shared_subnets");
    json_object_foreach (networks, key, names)
        if (json_array_size(names) > 1)
            json_array_append(list, names);
    json_decref(networks);
    free(text);
}

void probe_tcp(struct probe *p)
{
    static const struct fact_file files[] = {
        {"congestion_control", "ipv4/tcp_congestion_control", FACT_LINE},
        {"congestion_controls", "ipv4/tcp_available_congestion_control", FACT_WORDS},
        {"default_qdisc", "core/default_qdisc", FACT_LINE},
        {"timestamps", "ipv4/tcp_timestamps", FACT_NUMBER},
        {"window_scaling", "ipv4/tcp_window_scaling", FACT_NUMBER},
        {"receive_max_bytes", "core/rmem_max", FACT_NUMBER},
        {"send_max_bytes", "core/wmem_max", FACT_NUMBER},
        /* up to which a socket's buffer grows by itself */
        {"receive_auto_bytes", "ipv4/tcp_rmem", FACT_LARGEST},
        {"send_auto_bytes", "ipv4/tcp_wmem", FACT_LARGEST}};
    json_t *tcp = fact_object(p->machine, "tcp");

    fact_set_files(p, tcp, "proc/sys/net", FACT_FILES(files));
    set_routes(p, tcp);
}
