// SPDX-License-Identifier: Apache-2.0
/* The table that people read: the machine, its processor and memory. */
#include "harness/probe/print.h"
#include "harness/probe/facts.h"
#include "harness/probe/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

const char *print_text(const json_t *object, const char *key)
{
    const char *text = fact_string(object, key);

    return text ? text : "?";
}

const char *print_bytes(double bytes, char buf[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;

    while (bytes >= 1024 && unit < 5) {
        bytes /= 1024;
        unit++;
    }
    snprintf(buf, 32, "%.2f", bytes);
    buf[strspn(buf, "-0123456789") + 3] = '\0';
    while (strchr(buf, '.') && strchr(".0", buf[strlen(buf) - 1]))
        buf[strlen(buf) - 1] = '\0';
    snprintf(buf + strlen(buf), 32 - strlen(buf), " %s", units[unit]);
    return buf;
}

void print_line(FILE *out, const char *label, const char *format, ...)
{
    va_list args;

    fprintf(out, "  %-14s ", label);
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    fputc('\n', out);
}

/* Joins a list of texts with blanks. */
static const char *joined(const json_t *list, char *buf, size_t size)
{
    const json_t *entry;
    size_t i, used = 0;

    buf[0] = '\0';
    json_array_foreach (list, i, entry)
        if (json_is_string(entry) && used < size)
            used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? " " : "",
                                     json_string_value(entry));
    return buf[0] ? buf : "?";
}

static void print_because(FILE *out, const json_t *list)
{
    const json_t *entry;
    size_t i;

    json_array_foreach (list, i, entry)
        if (json_is_string(entry))
            print_line(out, "", "- %s", json_string_value(entry));
}

static void print_virtualization(FILE *out, const json_t *machine)
{
    const json_t *v = json_object_get(machine, "virtualization");
    const json_t *guest = json_object_get(v, "guest");
    const char *hypervisor = fact_string(v, "hypervisor"), *container = print_text(v, "container");

    if (json_is_true(guest))
        print_line(out, "nature", "virtual: a guest of %s%s%s",
                   hypervisor ? hypervisor : "unknown (",
                   hypervisor ? "" : print_text(v, "hypervisor_why"), hypervisor ? "" : ")");
    else if (json_is_false(guest))
        print_line(out, "nature", "bare metal%s",
                   hypervisor && strcmp(hypervisor, "none") ? " (control domain)" : "");
    else
        print_line(out, "nature", "unknown: %s", print_text(v, "hypervisor_why"));
    print_because(out, json_object_get(v, "because"));
    print_line(out, "container", "%s", container);
    if (strcmp(container, "none"))
        print_because(out, json_object_get(v, "container_because"));
}

static void print_limits(FILE *out, const json_t *machine)
{
    const json_t *limits = json_object_get(json_object_get(machine, "virtualization"), "limits");
    double quota = fact_number(limits, "cpu_quota", 0),
           bytes = fact_number(limits, "memory_bytes", 0);
    char cpus[32] = "no CPU quota", memory[64] = "no memory limit", buf[32];

    if (quota > 0)
        snprintf(cpus, sizeof(cpus), "%.4g CPUs", quota);
    if (bytes > 0)
        snprintf(memory, sizeof(memory), "%s memory", print_bytes(bytes, buf));
    print_line(out, "limits", "%s, %s; CPUs %s may be used", cpus, memory,
               print_text(limits, "allowed_cpus"));
}

/* Names the vulnerable ones; the rest are counted. */
static void print_mitigations(FILE *out, const json_t *host)
{
    json_t *all = json_object_get(host, "mitigations"), *entry;
    char names[256] = "";
    size_t fine = 0, mitigated = 0, used = 0;
    const char *key;

    if (!json_is_object(all)) {
        print_line(out, "mitigations", "? (%s)", print_text(host, "mitigations_why"));
        return;
    }
    json_object_foreach (all, key, entry) {
        const char *text = json_string_value(entry);

        if (!text)
            continue;
        if (!strncmp(text, "Not affected", 12))
            fine++;
        else if (!strncmp(text, "Vulnerable", 10) && used < sizeof(names))
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                     used ? ", " : "; vulnerable: ", key);
        else
            mitigated++;
    }
    print_line(out, "mitigations", "%zu not affected, %zu mitigated%s", fine, mitigated, names);
}

void print_machine(FILE *out, const json_t *machine)
{
    const json_t *host = json_object_get(machine, "host");
    const char *product = fact_string(host, "product");
    char buf[512];

    fprintf(out, "MACHINE%s\n",
            strcmp(print_text(machine, "source"), "recorded tree") ? "" : " (recorded)");
    print_line(out, "host", "%s: %s, Linux %s %s", print_text(host, "hostname"),
               print_text(host, "distro"), print_text(host, "kernel"),
               print_text(host, "architecture"));
    if (product)
        print_line(out, "product", "%s %s, firmware %s", print_text(host, "vendor"), product,
                   print_text(host, "bios"));
    else
        print_line(out, "product", "? (%s)", print_text(host, "product_why"));
    print_virtualization(out, machine);
    print_limits(out, machine);
    print_line(out, "clock source", "%s (of %s)", print_text(host, "clocksource"),
               joined(json_object_get(host, "clocksources"), buf, sizeof(buf)));
    print_mitigations(out, host);
    if (json_array_size(json_object_get(host, "kernel_options")))
        print_line(out, "kernel options", "%s",
                   joined(json_object_get(host, "kernel_options"), buf, sizeof(buf)));
}

static void print_features(FILE *out, const json_t *cpu)
{
    json_t *features = json_object_get(cpu, "features"), *has;
    const char *key;
    char words[2][256] = {"", ""};

    if (!json_is_object(features)) {
        print_line(out, "vectors", "? (%s)", print_text(cpu, "features_why"));
        return;
    }
    json_object_foreach (features, key, has) {
        char *list = words[json_is_true(has) ? 0 : 1];
        size_t used = strlen(list);

        snprintf(list + used, sizeof(words[0]) - used, "%s%s", used ? " " : "", key);
    }
    print_line(out, "vectors", "%s", words[0][0] ? words[0] : "none we look for");
    if (words[1][0])
        print_line(out, "", "without %s", words[1]);
}

static const char *mhz(const json_t *clock, const char *key, char buf[32])
{
    double value = fact_number(clock, key, -1);

    if (value > 0)
        snprintf(buf, 32, "%.0f MHz", value);
    else
        strcpy(buf, "?");
    return buf;
}

static void print_clock(FILE *out, const json_t *cpu)
{
    const json_t *clock = json_object_get(cpu, "clock"), *boost = json_object_get(clock, "boost");
    char base[32], max[32], drivers[128], governors[128];

    if (!json_array_size(json_object_get(clock, "drivers"))) {
        print_line(out, "clock", "? (%s)", print_text(clock, "drivers_why"));
        return;
    }
    print_line(out, "clock", "base %s, max %s, boost %s; governor %s, driver %s",
               mhz(clock, "base_mhz", base), mhz(clock, "max_mhz", max),
               json_is_true(boost)    ? "on"
               : json_is_false(boost) ? "off"
                                      : "?",
               joined(json_object_get(clock, "governors"), governors, sizeof(governors)),
               joined(json_object_get(clock, "drivers"), drivers, sizeof(drivers)));
}

static void print_caches(FILE *out, const json_t *machine)
{
    const json_t *caches = json_object_get(machine, "caches"), *cache;
    char label[32], buf[32];
    size_t i;

    json_array_foreach (caches, i, cache) {
        long long by = fact_integer(cache, "shared_by_threads", 0);

        snprintf(label, sizeof(label), "L%lld %s", fact_integer(cache, "level", 0),
                 strcmp(print_text(cache, "type"), "data") ? "" : "data");
        print_line(out, label, "%lld x %s, %s %lld thread%s, lines of %lld B",
                   fact_integer(cache, "count", 0),
                   print_bytes(fact_number(cache, "size_bytes", 0), buf),
                   by > 1 ? "shared by" : "for", by, by == 1 ? "" : "s",
                   fact_integer(cache, "line_bytes", 0));
    }
    if (!json_array_size(caches))
        print_line(out, "caches", "? (%s)", print_text(machine, "caches_why"));
}

void print_processor(FILE *out, const json_t *machine)
{
    const json_t *cpu = json_object_get(machine, "cpu");
    long long sockets = fact_integer(cpu, "sockets", -1), cores = fact_integer(cpu, "cores", -1),
              threads = fact_integer(cpu, "threads", -1);
    char family[96] = "";

    fprintf(out, "\nPROCESSOR\n");
    if (fact_integer(cpu, "family", -1) >= 0)
        snprintf(family, sizeof(family), ", family %lld, model %lld, stepping %lld",
                 fact_integer(cpu, "family", -1), fact_integer(cpu, "model_number", -1),
                 fact_integer(cpu, "stepping", -1));
    print_line(out, "model", "%s (%s%s)", print_text(cpu, "model"), print_text(cpu, "vendor"),
               family);
    if (threads > 0)
        print_line(out, "shape", "%lld socket%s, %lld core%s, %lld thread%s; SMT control %s",
                   sockets, sockets == 1 ? "" : "s", cores, cores == 1 ? "" : "s", threads,
                   threads == 1 ? "" : "s", print_text(json_object_get(cpu, "smt"), "control"));
    else
        print_line(out, "shape", "? (%s)", print_text(cpu, "threads_why"));
    print_features(out, cpu);
    print_clock(out, cpu);
    print_caches(out, machine);
}

static void print_modules(FILE *out, const json_t *memory)
{
    const json_t *modules = json_object_get(memory, "modules");
    const json_t *first = json_array_get(modules, 0);
    double peak = fact_number(memory, "peak_gbytes_per_s", 0);
    char buf[32], speed[32];

    if (!json_array_size(modules)) {
        print_line(out, "modules", "? (%s)", print_text(memory, "modules_why"));
        return;
    }
    snprintf(speed, sizeof(speed), "%lld MT/s", fact_integer(first, "running_mt_s", 0));
    print_line(out, "modules", "%zu, in %lld slots; the first: %s %s, %s", json_array_size(modules),
               fact_integer(memory, "module_slots", 0),
               print_bytes(fact_number(first, "size_bytes", 0), buf), print_text(first, "type"),
               fact_integer(first, "running_mt_s", 0) > 0 ? speed : "speed ?");
    if (peak > 0)
        print_line(out, "peak", "%.1f GB/s (%lld channels)", peak,
                   fact_integer(memory, "channels", 0));
    else
        print_line(out, "peak", "? (%s)", print_text(memory, "peak_gbytes_per_s_why"));
}

static void print_pages(FILE *out, const json_t *memory)
{
    const json_t *thp = json_object_get(memory, "transparent_huge_pages"), *size;
    char pools[256] = "", buf[32];
    size_t i;

    json_array_foreach (json_object_get(memory, "hugetlb"), i, size) {
        size_t used = strlen(pools);

        snprintf(pools + used, sizeof(pools) - used, "%s %lld of %s", used ? "," : "; hugetlb",
                 fact_integer(size, "pages", 0),
                 print_bytes(fact_number(size, "page_bytes", 0), buf));
    }
    print_line(out, "huge pages", "transparent: %s, defrag: %s%s", print_text(thp, "enabled"),
               print_text(thp, "defrag"), pools);
}

static void print_nodes(FILE *out, const json_t *machine)
{
    const json_t *numa = json_object_get(machine, "numa"), *node, *d;
    char label[32], distances[128], buf[32];
    size_t i, k;

    json_array_foreach (json_object_get(numa, "nodes"), i, node) {
        double bytes = fact_number(node, "memory_bytes", 0);
        const char *cpus = print_text(node, "cpus");
        size_t used = 0;

        distances[0] = '\0';
        json_array_foreach (json_object_get(node, "distances"), k, d)
            if (used < sizeof(distances))
                used += (size_t)snprintf(distances + used, sizeof(distances) - used, " %lld",
                                         json_integer_value(d));
        snprintf(label, sizeof(label), "node %lld", fact_integer(node, "node", -1));
        print_line(out, label, "CPUs %s, %s, distances%s", *cpus ? cpus : "none",
                   bytes > 0 ? print_bytes(bytes, buf) : "memory ?", used ? distances : " ?");
    }
    if (!json_array_size(json_object_get(numa, "nodes")))
        print_line(out, "nodes", "? (%s)",
                   json_is_object(numa) ? print_text(numa, "nodes_why")
                                        : print_text(machine, "numa_why"));
}

void print_memory(FILE *out, const json_t *machine)
{
    const json_t *memory = json_object_get(machine, "memory");
    double total = fact_number(memory, "total_bytes", 0);
    char buf[32];

    fprintf(out, "\nMEMORY\n");
    print_line(out, "total", "%s",
               total > 0 ? print_bytes(total, buf) : print_text(memory, "total_bytes_why"));
    print_modules(out, memory);
    print_pages(out, memory);
    print_nodes(out, machine);
}

int probe_print(FILE *out, const json_t *machine)
{
    print_machine(out, machine);
    print_processor(out, machine);
    print_memory(out, machine);
    print_pci(out, machine);
    print_network(out, machine);
    print_rdma(out, machine);
    print_gpus(out, machine);
    print_findings(out, machine);
    fprintf(out, "\n  ? is what could not be learnt; plumb probe --json says why\n");
    return ferror(out) ? -EIO : 0;
}
