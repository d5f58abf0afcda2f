/* SPDX-License-Identifier: Apache-2.0 */
/* What people read: the machine, its processor and memory. */
#include "harness/probe/print.h"

#include <string.h>

#include "harness/probe/facts.h"
#include "harness/probe/probe.h"

const char *print_text(const json_t *object, const char *key)
{
    const char *text = fact_string(object, key);

    return text ? text : "?";
}

const char *print_integer(struct print *p, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) ? pool_text(p->pool, "%lld", (long long)json_integer_value(value))
                                  : "?";
}

const char *print_bytes(struct print *p, const json_t *object, const char *key)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double bytes = fact_number(object, key, -1);
    size_t unit = 0;
    char buf[32];

    if (bytes < 0)
        return "?";
    for (; bytes >= 1024 && unit < 5; unit++)
        bytes /= 1024;
    snprintf(buf, sizeof(buf), "%.2f", bytes);
    while (strchr(buf, '.') && strchr(".0", buf[strlen(buf) - 1]))
        buf[strlen(buf) - 1] = '\0';
    return pool_text(p->pool, "%s %s", buf, units[unit]);
}

const char *print_count(struct print *p, const json_t *object, const char *key, const char *one)
{
    return pool_text(p->pool, "%s %s%s", print_integer(p, object, key), one,
                     fact_integer(object, key, 0) == 1 ? "" : "s");
}

/* The texts of a list with blanks between; "?" where there are none. */
static const char *print_joined(struct print *p, const json_t *list)
{
    const char *text = "";

    FACT_EACH (list, entry)
        if (json_is_string(entry))
            text = pool_text(p->pool, "%s%s%s", text, *text ? " " : "", json_string_value(entry));
    return *text ? text : "?";
}

static void print_because(struct print *p, const json_t *list)
{
    FACT_EACH (list, entry)
        if (json_is_string(entry))
            print_line(p, "", "- %s", json_string_value(entry));
}

static void print_virtualization(struct print *p, const json_t *v)
{
    const json_t *guest = json_object_get(v, "guest");
    const char *hypervisor = fact_string(v, "hypervisor"), *container = fact_string(v, "container");

    if (json_is_true(guest) && hypervisor)
        print_line(p, "nature", "virtual: a guest of %s", hypervisor);
    else if (json_is_true(guest))
        print_line(p, "nature", "virtual: a guest of unknown (%s)",
                   print_text(v, "hypervisor_why"));
    else if (json_is_false(guest))
        print_line(p, "nature", "bare metal%s",
                   hypervisor && strcmp(hypervisor, "none") ? " (control domain)" : "");
    else
        print_line(p, "nature", "unknown: %s", print_text(v, "hypervisor_why"));
    print_because(p, json_object_get(v, "because"));
    if (container)
        print_line(p, "container", "%s", container);
    else
        print_line(p, "container", "? (%s)", print_text(v, "container_why"));
    if (!container || strcmp(container, "none") != 0)
        print_because(p, json_object_get(v, "container_because"));
}

/* A limit's text where it is one, "no ..." where it is known that there is none, else why it is not
 * known. */
static const char *limit_text(struct print *p, const json_t *limits, const char *key,
                              const char *what, const char *value)
{
    const char *why = print_text(limits, pool_text(p->pool, "%s_why", key));

    return json_is_number(json_object_get(limits, key)) ? value
           : fact_string(limits, key)                   ? pool_text(p->pool, "no %s", what)
                                      : pool_text(p->pool, "%s ? (%s)", what, why);
}

/* Names the vulnerable ones; the rest are counted. */
static void print_mitigations(struct print *p, const json_t *host)
{
    json_t *all = json_object_get(host, "mitigations"), *entry;
    const char *key, *names = "";
    size_t fine = 0, mitigated = 0;

    if (!json_is_object(all)) {
        print_line(p, "mitigations", "? (%s)", print_text(host, "mitigations_why"));
        return;
    }
    json_object_foreach (all, key, entry) {
        const char *text = json_string_value(entry);

        if (text && !strncmp(text, "Vulnerable", 10))
            names = pool_text(p->pool, "%s%s%s", names, *names ? ", " : "; vulnerable: ", key);
        else if (text && !strncmp(text, "Not affected", 12))
            fine++;
        else
            mitigated += text != NULL;
    }
    print_line(p, "mitigations", "%zu not affected, %zu mitigated%s", fine, mitigated, names);
}

static void print_machine(struct print *p)
{
    const json_t *host = json_object_get(p->machine, "host");
    const json_t *v = json_object_get(p->machine, "virtualization");
    const json_t *limits = json_object_get(v, "limits"), *options;
    const char *product = fact_string(host, "product");

    document_heading(
        p->d, 2, fact_is(p->machine, "source", "recorded tree") ? "MACHINE (recorded)" : "MACHINE",
        "");
    print_line(p, "host", "%s: %s, Linux %s %s", print_text(host, "hostname"),
               print_text(host, "distro"), print_text(host, "kernel"),
               print_text(host, "architecture"));
    if (product)
        print_line(p, "product", "%s %s, firmware %s", print_text(host, "vendor"), product,
                   print_text(host, "bios"));
    else
        print_line(p, "product", "? (%s)", print_text(host, "product_why"));
    print_virtualization(p, v);
    print_line(p, "limits", "%s, %s; CPUs %s may be used",
               limit_text(p, limits, "cpu_quota", "CPU quota",
                          pool_text(p->pool, "%.4g CPUs", fact_number(limits, "cpu_quota", 0))),
               limit_text(p, limits, "memory_bytes", "memory limit",
                          pool_text(p->pool, "%s memory", print_bytes(p, limits, "memory_bytes"))),
               print_text(limits, "allowed_cpus"));
    print_line(p, "clock source", "%s (of %s)", print_text(host, "clocksource"),
               print_joined(p, json_object_get(host, "clocksources")));
    print_mitigations(p, host);
    options = json_object_get(host, "kernel_options");
    if (json_array_size(options))
        print_line(p, "kernel options", "%s", print_joined(p, options));
}

static void print_features(struct print *p, const json_t *cpu)
{
    json_t *features = json_object_get(cpu, "features"), *has;
    const char *key, *words[2] = {"", ""};

    if (!json_is_object(features)) {
        print_line(p, "vectors", "? (%s)", print_text(cpu, "features_why"));
        return;
    }
    json_object_foreach (features, key, has) {
        const char **list = &words[json_is_true(has)];

        *list = pool_text(p->pool, "%s%s%s", *list, **list ? " " : "", key);
    }
    print_line(p, "vectors", "%s", *words[1] ? words[1] : "none we look for");
    if (*words[0])
        print_line(p, "", "without %s", words[0]);
}

static const char *mhz(struct print *p, const json_t *clock, const char *key)
{
    double value = fact_number(clock, key, -1);

    return value > 0 ? pool_text(p->pool, "%.0f MHz", value) : "?";
}

static void print_clock(struct print *p, const json_t *cpu)
{
    const json_t *clock = json_object_get(cpu, "clock"), *boost = json_object_get(clock, "boost"),
                 *drivers = json_object_get(clock, "drivers");

    if (!json_array_size(drivers) && fact_number(clock, "max_mhz", 0) <= 0)
        print_line(p, "clock", "? (%s)", print_text(clock, "drivers_why"));
    else
        print_line(p, "clock", "base %s, max %s, boost %s; governor %s, driver %s",
                   mhz(p, clock, "base_mhz"), mhz(p, clock, "max_mhz"),
                   json_is_true(boost)    ? "on"
                   : json_is_false(boost) ? "off"
                                          : "?",
                   print_joined(p, json_object_get(clock, "governors")), print_joined(p, drivers));
}

static void print_caches(struct print *p)
{
    const json_t *caches = json_object_get(p->machine, "caches");

    FACT_EACH (caches, cache)
        print_line(p,
                   pool_text(p->pool, "L%lld%s", fact_integer(cache, "level", 0),
                             fact_is(cache, "type", "data") ? " data" : ""),
                   "%s x %s, %s %s, lines of %s B", print_integer(p, cache, "count"),
                   print_bytes(p, cache, "size_bytes"),
                   fact_integer(cache, "shared_by_threads", 0) > 1 ? "shared by" : "for",
                   print_count(p, cache, "shared_by_threads", "thread"),
                   print_integer(p, cache, "line_bytes"));
    if (!json_array_size(caches))
        print_line(p, "caches", "? (%s)", print_text(p->machine, "caches_why"));
}

static void print_processor(struct print *p)
{
    const json_t *cpu = json_object_get(p->machine, "cpu");
    const char *family = "";

    document_heading(p->d, 2, "PROCESSOR", "");
    if (fact_integer(cpu, "family", -1) >= 0)
        family = pool_text(p->pool, ", family %s, model %s, stepping %s",
                           print_integer(p, cpu, "family"), print_integer(p, cpu, "model_number"),
                           print_integer(p, cpu, "stepping"));
    print_line(p, "model", "%s (%s%s)", print_text(cpu, "model"), print_text(cpu, "vendor"),
               family);
    if (fact_integer(cpu, "threads", 0) > 0)
        print_line(p, "shape", "%s, %s, %s; SMT control %s",
                   print_count(p, cpu, "sockets", "socket"), print_count(p, cpu, "cores", "core"),
                   print_count(p, cpu, "threads", "thread"), print_text(cpu, "smt.control"));
    else
        print_line(p, "shape", "? (%s)", print_text(cpu, "threads_why"));
    print_features(p, cpu);
    print_clock(p, cpu);
    print_caches(p);
}

static void print_modules(struct print *p, const json_t *memory)
{
    const json_t *modules = json_object_get(memory, "modules");
    const json_t *first = json_array_get(modules, 0);
    long long speed = fact_integer(first, "running_mt_s", 0);
    double peak = fact_number(memory, "peak_gbytes_per_s", 0);

    if (!json_array_size(modules)) {
        print_line(p, "modules", "? (%s)", print_text(memory, "modules_why"));
        return;
    }
    print_line(
        p, "modules", "%zu, in %s slots; the first: %s %s, %s", json_array_size(modules),
        print_integer(p, memory, "module_slots"),
        fact_number(first, "size_bytes", 0) > 0 ? print_bytes(p, first, "size_bytes") : "size ?",
        print_text(first, "type"), speed > 0 ? pool_text(p->pool, "%lld MT/s", speed) : "speed ?");
    if (peak > 0)
        print_line(p, "peak", "%.1f GB/s (%lld channels)", peak,
                   fact_integer(memory, "channels", 0));
    else
        print_line(p, "peak", "? (%s)", print_text(memory, "peak_gbytes_per_s_why"));
}

/* "10 21", the first of them where there are very many. */
static const char *distances(struct print *p, const json_t *node)
{
    enum { DISTANCES_MAX = 64 };
    const json_t *list = json_object_get(node, "distances");
    size_t n = json_array_size(list);
    const char *text = n ? "" : " ?";

    for (size_t i = 0; i < n && i < DISTANCES_MAX; i++)
        text = pool_text(p->pool, "%s %lld", text,
                         (long long)json_integer_value(json_array_get(list, i)));
    return n > DISTANCES_MAX ? pool_text(p->pool, "%s ... (the first %d of %zu; --json has all)",
                                         text, DISTANCES_MAX, n)
                             : text;
}

static void print_memory(struct print *p)
{
    const json_t *memory = json_object_get(p->machine, "memory");
    const json_t *numa = json_object_get(p->machine, "numa"),
                 *nodes = json_object_get(numa, "nodes");

    document_heading(p->d, 2, "MEMORY", "");
    print_line(p, "total", "%s",
               fact_number(memory, "total_bytes", 0) > 0 ? print_bytes(p, memory, "total_bytes")
                                                         : print_text(memory, "total_bytes_why"));
    print_modules(p, memory);
    const json_t *thp = json_object_get(memory, "transparent_huge_pages");
    const char *pools = "";
    FACT_EACH (json_object_get(memory, "hugetlb"), size)
        pools = pool_text(p->pool, "%s%s %s of %s", pools, *pools ? "," : "; hugetlb",
                          print_integer(p, size, "pages"), print_bytes(p, size, "page_bytes"));
    print_line(p, "huge pages", "transparent: %s, defrag: %s%s", print_text(thp, "enabled"),
               print_text(thp, "defrag"), pools);
    FACT_EACH (nodes, node) {
        const char *cpus = print_text(node, "cpus");

        print_line(p, pool_text(p->pool, "node %lld", fact_integer(node, "node", -1)),
                   "CPUs %s, %s, distances%s", *cpus ? cpus : "none",
                   fact_number(node, "memory_bytes", -1) >= 0 ? print_bytes(p, node, "memory_bytes")
                                                              : "memory ?",
                   distances(p, node));
    }
    if (!json_array_size(nodes))
        print_line(p, "nodes", "? (%s)",
                   json_is_object(numa) ? print_text(numa, "nodes_why")
                                        : print_text(p->machine, "numa_why"));
}

int probe_print(FILE *out, const json_t *machine)
{
    struct document_terminal terminal = document_terminal_of(out);
    struct pool pool = {0};
    struct print p = {document_new(&pool), &pool, machine};
    int rc;

    print_machine(&p);
    print_processor(&p);
    print_memory(&p);
    print_pci(&p);
    print_network(&p);
    print_rdma(&p);
    print_gpus(&p);
    print_findings(&p);
    document_paragraph(p.d, "?: not known; plumb probe --json has the reason");
    rc = document_write_terminal(p.d, &terminal, out);
    pool_release(&pool);
    return rc;
}
