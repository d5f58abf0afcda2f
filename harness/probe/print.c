/* SPDX-License-Identifier: Apache-2.0 */
/* The table that people read: the machine, its processor and memory. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "harness/probe/facts.h"
#include "harness/probe/probe.h"

const char *print_text(const json_t *object, const char *key)
{
    const char *text = fact_string(object, key);

    return text ? text : "?";
}

const char *print_integer(const json_t *object, const char *key, char buf[24])
{
    const json_t *value = json_object_get(object, key);

    if (json_is_integer(value))
        snprintf(buf, 24, "%lld", (long long)json_integer_value(value));
    else
        strcpy(buf, "?");
    return buf;
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
    if (!fact_string(v, "container"))
        print_line(out, "container", "? (%s)", print_text(v, "container_why"));
    else
        print_line(out, "container", "%s", container);
    if (strcmp(container, "none"))
        print_because(out, json_object_get(v, "container_because"));
}

#define LIMIT_LEN 256

/* A limit's text where it is one, "no ..." where it is known that there is none, else why it is not
 * known. */
static const char *limit_text(const json_t *limits, const char *key, const char *what,
                              const char *value, char buf[LIMIT_LEN])
{
    char why_key[32];

    snprintf(why_key, sizeof(why_key), "%s_why", key);
    if (json_is_number(json_object_get(limits, key)))
        snprintf(buf, LIMIT_LEN, "%s %s", value, strcmp(what, "CPU quota") ? "memory" : "CPUs");
    else if (fact_string(limits, key))
        snprintf(buf, LIMIT_LEN, "no %s", what);
    else
        snprintf(buf, LIMIT_LEN, "%s ? (%s)", what, print_text(limits, why_key));
    return buf;
}

static void print_limits(FILE *out, const json_t *machine)
{
    const json_t *limits = json_object_get(json_object_get(machine, "virtualization"), "limits");
    char quota[32], bytes[32], text[2][LIMIT_LEN];

    snprintf(quota, sizeof(quota), "%.4g", fact_number(limits, "cpu_quota", 0));
    print_bytes(fact_number(limits, "memory_bytes", 0), bytes);
    print_line(out, "limits", "%s, %s; CPUs %s may be used",
               limit_text(limits, "cpu_quota", "CPU quota", quota, text[0]),
               limit_text(limits, "memory_bytes", "memory limit", bytes, text[1]),
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

static void print_machine(FILE *out, const json_t *machine)
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

    if (!json_array_size(json_object_get(clock, "drivers")) &&
        fact_number(clock, "max_mhz", 0) <= 0) {
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
    char label[32], buf[32], number[2][24];
    size_t i;

    json_array_foreach (caches, i, cache) {
        long long by = fact_integer(cache, "shared_by_threads", 0);

        snprintf(label, sizeof(label), "L%lld %s", fact_integer(cache, "level", 0),
                 strcmp(print_text(cache, "type"), "data") ? "" : "data");
        print_line(out, label, "%s x %s, %s %lld thread%s, lines of %s B",
                   print_integer(cache, "count", number[0]),
                   fact_number(cache, "size_bytes", 0) > 0
                       ? print_bytes(fact_number(cache, "size_bytes", 0), buf)
                       : "?",
                   by > 1 ? "shared by" : "for", by, by == 1 ? "" : "s",
                   print_integer(cache, "line_bytes", number[1]));
    }
    if (!json_array_size(caches))
        print_line(out, "caches", "? (%s)", print_text(machine, "caches_why"));
}

/* "2 sockets", "1 core", "? threads". */
static void print_count(const json_t *cpu, const char *key, const char *one, char buf[48])
{
    char number[24];

    snprintf(buf, 48, "%s %s%s", print_integer(cpu, key, number), one,
             fact_integer(cpu, key, 0) == 1 ? "" : "s");
}

static void print_processor(FILE *out, const json_t *machine)
{
    const json_t *cpu = json_object_get(machine, "cpu");
    char family[96] = "", number[3][24], count[3][48];

    fprintf(out, "\nPROCESSOR\n");
    if (fact_integer(cpu, "family", -1) >= 0)
        snprintf(family, sizeof(family), ", family %s, model %s, stepping %s",
                 print_integer(cpu, "family", number[0]),
                 print_integer(cpu, "model_number", number[1]),
                 print_integer(cpu, "stepping", number[2]));
    print_line(out, "model", "%s (%s%s)", print_text(cpu, "model"), print_text(cpu, "vendor"),
               family);
    print_count(cpu, "sockets", "socket", count[0]);
    print_count(cpu, "cores", "core", count[1]);
    print_count(cpu, "threads", "thread", count[2]);
    if (fact_integer(cpu, "threads", 0) > 0)
        print_line(out, "shape", "%s, %s, %s; SMT control %s", count[0], count[1], count[2],
                   print_text(json_object_get(cpu, "smt"), "control"));
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
    char buf[32], speed[32], slots[24];

    if (!json_array_size(modules)) {
        print_line(out, "modules", "? (%s)", print_text(memory, "modules_why"));
        return;
    }
    snprintf(speed, sizeof(speed), "%lld MT/s", fact_integer(first, "running_mt_s", 0));
    print_line(out, "modules", "%zu, in %s slots; the first: %s %s, %s", json_array_size(modules),
               print_integer(memory, "module_slots", slots),
               fact_number(first, "size_bytes", 0) > 0
                   ? print_bytes(fact_number(first, "size_bytes", 0), buf)
                   : "size ?",
               print_text(first, "type"),
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
    char pools[256] = "", buf[32], number[24];
    size_t i;

    json_array_foreach (json_object_get(memory, "hugetlb"), i, size) {
        size_t used = strlen(pools);

        snprintf(pools + used, sizeof(pools) - used, "%s %s of %s", used ? "," : "; hugetlb",
                 print_integer(size, "pages", number),
                 print_bytes(fact_number(size, "page_bytes", 0), buf));
    }
    print_line(out, "huge pages", "transparent: %s, defrag: %s%s", print_text(thp, "enabled"),
               print_text(thp, "defrag"), pools);
}

enum { DISTANCES_MAX = 64 };

/* "10 21", the first of them where there are very many. */
static void print_distances(FILE *out, const json_t *node)
{
    const json_t *list = json_object_get(node, "distances"), *d;
    size_t i;

    fputs(", distances", out);
    json_array_foreach (list, i, d)
        if (i < DISTANCES_MAX)
            fprintf(out, " %lld", (long long)json_integer_value(d));
    if (!json_array_size(list))
        fputs(" ?", out);
    if (json_array_size(list) > DISTANCES_MAX)
        fprintf(out, " ... (the first %d of %zu; --json has all)", DISTANCES_MAX,
                json_array_size(list));
    fputc('\n', out);
}

static void print_nodes(FILE *out, const json_t *machine)
{
    const json_t *numa = json_object_get(machine, "numa"), *node;
    char label[32], buf[32];
    size_t i;

    json_array_foreach (json_object_get(numa, "nodes"), i, node) {
        const json_t *bytes = json_object_get(node, "memory_bytes");
        const char *cpus = print_text(node, "cpus");

        snprintf(label, sizeof(label), "node %lld", fact_integer(node, "node", -1));
        fprintf(out, "  %-14s CPUs %s, %s", label, *cpus ? cpus : "none",
                json_is_integer(bytes) ? print_bytes(json_number_value(bytes), buf) : "memory ?");
        print_distances(out, node);
    }
    if (!json_array_size(json_object_get(numa, "nodes")))
        print_line(out, "nodes", "? (%s)",
                   json_is_object(numa) ? print_text(numa, "nodes_why")
                                        : print_text(machine, "numa_why"));
}

static void print_memory(FILE *out, const json_t *machine)
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
    fprintf(out, "\n  ?: not known; plumb probe --json has the reason\n");
    return ferror(out) ? -EIO : 0;
}
