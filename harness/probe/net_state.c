/* SPDX-License-Identifier: Apache-2.0 */
/* The state of network interfaces beside what they are, and the settings of TCP. */
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/probe/facts.h"

enum { ASKED = 1 << 20, INTERRUPTS = 16 << 20, CPUS_MAX = 65536 };

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
    json_t *list = json_object_get(nic, "qdiscs"), *other;
    size_t i;

    if (!list)
        list = fact_list(nic, "qdiscs");
    json_array_foreach (list, i, other)
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

static char *asked_text(const struct tree *tree, const char *below)
{
    char path[TREE_PATH];
    char *text = NULL;
    size_t size = 0;
    FILE *out;

    if (!tree->live) {
        text = xrealloc(NULL, ASKED);
        snprintf(path, sizeof(path), "%splumb/net", below);
        if (tree_read(tree, path, text, ASKED, NULL))
            text[0] = '\0';
        return text;
    }
    out = open_memstream(&text, &size);
    if (!out)
        alloc_fail(1);
    net_ask(out);
    fclose(out);
    return text;
}

json_t *net_asked(const struct tree *tree, const char *below)
{
    char *text = asked_text(tree, below), *save = NULL;
    json_t *all = json_object();

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        take_line(all, line);
    free(text);
    return all;
}

static void copy_asked(json_t *nic, const json_t *asked)
{
    static const char *const keys[] = {"max_mtu", "qdiscs", "pause", "rings", "line"};
    const json_t *own = json_object_get(asked, fact_string(nic, "name"));

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        fact_set(nic, keys[i], json_incref(json_object_get(own, keys[i])),
                 "the driver gives none, or it was not recorded");
}

/* ---- interrupts ---- */

char *net_interrupts(const struct tree *tree)
{
    char *text = xrealloc(NULL, INTERRUPTS);

    if (!tree_read(tree, "proc/interrupts", text, INTERRUPTS, NULL))
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
    hwloc_bitmap_t own = hwloc_bitmap_alloc();
    char folder[32], line[TREE_LINE];
    int rc;

    snprintf(folder, sizeof(folder), "proc/irq/%d", irq);
    rc = tree_line_at(&p->tree, folder, effective, line, sizeof(line));
    if (rc && tree_absent_at(&p->tree, folder, effective)) /* before Linux 4.15 */
        rc = tree_line_at(&p->tree, folder, "smp_affinity_list", line, sizeof(line));
    if (!rc && (cpulist_count(line, CPUS_MAX) <= 0 || hwloc_bitmap_list_sscanf(own, line)))
        rc = -EINVAL;
    if (!rc)
        hwloc_bitmap_or(cpus, cpus, own);
    hwloc_bitmap_free(own);
    return rc;
}

/* The NUMA nodes of these CPUs; null where those of a node are not known. */
static void set_nodes(struct probe *p, json_t *interrupts, hwloc_const_bitmap_t cpus)
{
    const json_t *nodes = json_object_get(json_object_get(p->machine, "numa"), "nodes"), *node;
    json_t *list = json_array();
    hwloc_bitmap_t own = hwloc_bitmap_alloc();
    bool known = json_is_array(nodes);
    size_t i;

    json_array_foreach (nodes, i, node) {
        const char *text = fact_string(node, "cpus");

        known = known && text && !hwloc_bitmap_list_sscanf(own, text);
        if (known && hwloc_bitmap_intersects(own, cpus))
            json_array_append_new(list, json_integer(fact_integer(node, "node", -1)));
    }
    fact_set_if(interrupts, "numa_nodes", known, list, "the CPUs of the NUMA nodes are not known");
    hwloc_bitmap_free(own);
}

static void set_cpus(struct probe *p, json_t *interrupts, hwloc_const_bitmap_t cpus, int rc)
{
    char *list = NULL;

    if (!rc && hwloc_bitmap_list_asprintf(&list, cpus) >= 0) {
        fact_set_text(interrupts, "cpus", list);
        set_nodes(p, interrupts, cpus);
    } else {
        fact_set_unknown(interrupts, "cpus|numa_nodes", "/proc/irq: %s", fact_errno(rc));
    }
    free(list);
}

/* "38:  1  2  PCI-MSIX-0000:00:03.0  1-edge  virtio2-input.0": by the interface, its function or
 * its virtio device. Which CPU took how many is left: the affinity of today counts. */
static void set_interrupts(struct probe *p, json_t *nic, const char *path, const char *text)
{
    const char *address = fact_string(nic, "pci"), *name = fact_string(nic, "name");
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    char device[TREE_LINE] = "", line[TREE_LINE];
    long long count = 0;
    int rc = 0;

    tree_link_at(&p->tree, path, "device", device, sizeof(device));
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
        set_cpus(p, interrupts, cpus, rc);
    }
    hwloc_bitmap_free(cpus);
}

/* ---- queues, counters, bonds ---- */

static void set_queues(struct probe *p, json_t *nic, const char *path)
{
    struct path folder = tree_join(path, "queues");
    long long receive = 0, send = 0;
    struct names names;
    int rc = tree_list(&p->tree, folder.s, &names);

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

/* "layer3+4 1", "balance-rr 0": the word. */
static void set_first_word(struct probe *p, json_t *object, const char *key, struct path path)
{
    char line[TREE_LINE];
    int rc = tree_line(&p->tree, path.s, line, sizeof(line));

    line[strcspn(line, " ")] = '\0';
    fact_set_text_or(object, key, rc ? NULL : line, "/%s: %s", path.s, fact_errno(rc));
}

static void set_bond(struct probe *p, json_t *nic, const char *path)
{
    struct path folder = tree_join(path, "bonding");
    json_t *bond;

    if (!tree_exists(&p->tree, folder.s))
        return;
    bond = fact_object(nic, "bond");
    set_first_word(p, bond, "mode", tree_join(folder.s, "mode"));
    set_first_word(p, bond, "hash_policy", tree_join(folder.s, "xmit_hash_policy"));
    fact_set_words(bond, "members", &p->tree, tree_join(folder.s, "slaves").s);
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

void net_fill_counters(const struct tree *tree, json_t *nic, const char *path, const json_t *asked)
{
    static const char *const files[] = {"rx_packets",        "tx_packets",    "rx_errors",
                                        "tx_errors",         "rx_dropped",    "tx_dropped",
                                        "rx_missed_errors",  "rx_crc_errors", "rx_fifo_errors",
                                        "tx_carrier_errors", "collisions",    NULL};
    json_t *counters;

    fact_set_counters(nic, "counters", tree, tree_join(path, "statistics").s, files);
    set_pauses(nic, json_object_get(json_object_get(asked, fact_string(nic, "name")), "counts"));
    counters = json_object_get(nic, "counters");
    if (json_is_object(counters))
        fact_set_file_number(counters, "carrier_changes", tree,
                             tree_join(path, "carrier_changes").s);
}

/* Whether it is silent when asked for an address of another interface: all's or its own setting. */
static void set_arp(struct probe *p, json_t *nic)
{
    static const char base[] = "proc/sys/net/ipv4/conf";
    const char *names[] = {"all", fact_string(nic, "name")};
    long long most = 0;

    for (size_t i = 0; i < 2; i++) {
        struct path folder = tree_join(base, names[i]);
        long long value;
        int rc = tree_number_at(&p->tree, folder.s, "arp_ignore", &value);

        if (rc) {
            fact_set_unknown(nic, "arp_ignore", "/%s/arp_ignore: %s", folder.s, fact_errno(rc));
            return;
        }
        most = value > most ? value : most;
    }
    fact_set_number(nic, "arp_ignore", most);
}

void net_fill_state(struct probe *p, json_t *nic, const char *path, const json_t *asked,
                    const char *interrupts)
{
    set_arp(p, nic);
    copy_asked(nic, asked);
    set_queues(p, nic, path);
    set_interrupts(p, nic, path, interrupts);
    set_bond(p, nic, path);
    net_fill_counters(&p->tree, nic, path, asked);
}

/* ---- TCP ---- */

/* "4096\t131072\t6291456": the last, up to which a socket's buffer grows by itself. */
static void set_largest(struct probe *p, json_t *tcp, const char *key, const char *path)
{
    long long least, usual, most;
    char text[128];
    int rc = tree_read(&p->tree, path, text, sizeof(text), NULL);

    if (!rc && sscanf(text, "%lld %lld %lld", &least, &usual, &most) == 3 && most > 0)
        fact_set_number(tcp, key, most);
    else
        fact_set_unknown(tcp, key, "/%s: %s", path, rc ? fact_errno(rc) : "not three numbers");
}

struct subnets {
    struct {
        char name[64], network[40]; /* address and mask, as the file has them */
    } all[256];
    size_t n;
};

static void add_subnet(struct subnets *s, const char *name, const char *address, const char *mask)
{
    if (s->n == sizeof(s->all) / sizeof(*s->all))
        return;
    snprintf(s->all[s->n].name, sizeof(s->all[s->n].name), "%s", name);
    snprintf(s->all[s->n].network, sizeof(s->all[s->n].network), "%s %s", address, mask);
    s->n++;
}

/* Is that network one of an earlier interface, whose list it then is in? */
static bool was_listed(const struct subnets *s, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (!strcmp(s->all[i].network, s->all[at].network))
            return true;
    return false;
}

/* A list for each network that several interfaces are in; the first is the one that sends to it. */
static void set_shared(json_t *tcp, const struct subnets *s)
{
    json_t *list = fact_list(tcp, "shared_subnets"), *names;

    for (size_t i = 0; i < s->n; i++) {
        if (was_listed(s, i))
            continue;
        names = json_array();
        for (size_t k = i; k < s->n; k++)
            if (!strcmp(s->all[i].network, s->all[k].network))
                json_array_append_new(names, fact_text(s->all[k].name));
        if (json_array_size(names) > 1)
            json_array_append(list, names);
        json_decref(names);
    }
}

/* The interfaces of routes to everywhere, and of networks that several are in, IPv4; addresses are
 * not kept. */
static void set_routes(struct probe *p, json_t *tcp)
{
    char *text = xrealloc(NULL, TREE_NAMES), name[64], destination[16], gateway[16], mask[16],
         *save = NULL;
    struct subnets subnets = {.n = 0};
    int rc = tree_read(&p->tree, "proc/net/route", text, TREE_NAMES, NULL);
    json_t *list;

    if (rc) {
        fact_set_unknown(tcp, "default_interfaces|shared_subnets", "/proc/net/route: %s",
                         fact_errno(rc));
        free(text);
        return;
    }
    list = fact_list(tcp, "default_interfaces");
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "%63s %15s %15s %*s %*s %*s %*s %15s", name, destination, gateway, mask) !=
            4)
            continue;
        if (!strcmp(destination, "00000000") && !strcmp(mask, "00000000"))
            json_array_append_new(list, fact_text(name));
        else if (strspn(gateway, "0") == strlen(gateway) && strcmp(name, "Iface") != 0)
            add_subnet(&subnets, name, destination, mask);
    }
    set_shared(tcp, &subnets);
    free(text);
}

void probe_tcp(struct probe *p)
{
    json_t *tcp = fact_object(p->machine, "tcp");
    const struct tree *t = &p->tree;

    fact_set_line(tcp, "congestion_control", t, "proc/sys/net/ipv4/tcp_congestion_control");
    fact_set_words(tcp, "congestion_controls", t,
                   "proc/sys/net/ipv4/tcp_available_congestion_control");
    fact_set_line(tcp, "default_qdisc", t, "proc/sys/net/core/default_qdisc");
    fact_set_file_number(tcp, "timestamps", t, "proc/sys/net/ipv4/tcp_timestamps");
    fact_set_file_number(tcp, "window_scaling", t, "proc/sys/net/ipv4/tcp_window_scaling");
    fact_set_file_number(tcp, "receive_max_bytes", t, "proc/sys/net/core/rmem_max");
    fact_set_file_number(tcp, "send_max_bytes", t, "proc/sys/net/core/wmem_max");
    set_largest(p, tcp, "receive_auto_bytes", "proc/sys/net/ipv4/tcp_rmem");
    set_largest(p, tcp, "send_auto_bytes", "proc/sys/net/ipv4/tcp_wmem");
    set_routes(p, tcp);
}
