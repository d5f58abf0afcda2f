/* SPDX-License-Identifier: Apache-2.0 */
/* What each machine is. */
#include <jansson.h>
#include <string.h>

#include "core/units.h"
#include "harness/document/html.h"
#include "harness/document/pool.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

struct machine_fact {
    const char *name;
    const char *(*text)(struct pool *pool, const json_t *machine);
};

/* ---- The machine in sentences ---- */

static long long integer_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *size_of(struct pool *pool, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    double bytes = (double)json_integer_value(value);
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;

    if (!json_is_integer(value) || bytes <= 0)
        return "";
    for (bytes /= 1024; bytes >= 1024 && u < 3; u++)
        bytes /= 1024;
    return pool_text(pool, "%.4g %s", bytes, units[u]);
}

/* What is known of it, or why it is not. */
static const char *or_why(struct pool *pool, const json_t *object, const char *key,
                          const char *text)
{
    const char *why = meta_text(object, pool_text(pool, "%s_why", key));

    if (*text)
        return text;
    return *why ? pool_text(pool, "not known: %s", why) : "";
}

static const char *counted(struct pool *pool, long long n, const char *one, const char *many)
{
    return n > 0 ? pool_text(pool, "%lld %s", n, n == 1 ? one : many) : "";
}

static const char *fact_model(struct pool *pool, const json_t *machine)
{
    const json_t *host = json_object_get(machine, "host");
    const char *vendor = meta_text(host, "vendor"), *product = meta_text(host, "product");

    return or_why(pool, host, "product",
                  *vendor && *product ? pool_text(pool, "%s %s", vendor, product) : product);
}

static const char *fact_nature(struct pool *pool, const json_t *machine)
{
    const json_t *v = json_object_get(machine, "virtualization");
    const char *name = meta_text(v, "hypervisor"), *container = meta_text(v, "container");
    const char *text;

    if (!*name)
        return or_why(pool, v, "hypervisor", "");
    text = strcmp(name, "none") ? pool_text(pool, "virtual: %s", name) : "bare metal";
    if (*container && strcmp(container, "none") != 0)
        text = pool_text(pool, "%s, in a container: %s", text, container);
    return text;
}

static const char *fact_cpu(struct pool *pool, const json_t *machine)
{
    const json_t *cpu = json_object_get(machine, "cpu");
    const char *text = or_why(pool, cpu, "model", meta_text(cpu, "model"));

    if (json_is_integer(json_object_get(cpu, "family")) &&
        json_is_integer(json_object_get(cpu, "model_number")))
        text = pool_text(pool, "%s (family %lld, model %lld)", text, integer_of(cpu, "family"),
                         integer_of(cpu, "model_number"));
    text = show_joined(pool, text, counted(pool, integer_of(cpu, "sockets"), "socket", "sockets"));
    text = show_joined(pool, text, counted(pool, integer_of(cpu, "cores"), "core", "cores"));
    return show_joined(pool, text, counted(pool, integer_of(cpu, "threads"), "thread", "threads"));
}

static const char *fact_units(struct pool *pool, const json_t *machine)
{
    json_t *features = json_object_get(json_object_get(machine, "cpu"), "features"), *has;
    const char *text = "", *name;

    json_object_foreach (features, name, has)
        if (json_is_true(has))
            text = show_joined(pool, text, name);
    return text;
}

static const char *fact_clock(struct pool *pool, const json_t *machine)
{
    const json_t *clock = json_object_get(json_object_get(machine, "cpu"), "clock");
    const json_t *governors = json_object_get(clock, "governors"), *max;
    const char *text = "";
    json_t *governor;
    size_t i;

    max = json_object_get(clock, "max_mhz");
    if (json_is_number(max))
        text = pool_text(pool, "up to %.0f MHz", json_number_value(max));
    json_array_foreach (governors, i, governor)
        text = show_joined(
            pool, text,
            pool_text(pool, "governor %s",
                      json_string_value(governor) ? json_string_value(governor) : "unknown"));
    return or_why(pool, clock, "drivers", text);
}

static const char *fact_caches(struct pool *pool, const json_t *machine)
{
    json_t *cache;
    const char *text = "";
    size_t i;

    json_array_foreach (json_object_get(machine, "caches"), i, cache) {
        long long n = integer_of(cache, "count"), shared = integer_of(cache, "shared_by_threads");

        text = show_joined(
            pool, text,
            pool_text(pool, "L%lld %s%s%s", integer_of(cache, "level"),
                      n > 1 ? pool_text(pool, "%lld x ", n) : "",
                      *size_of(pool, cache, "size_bytes") ? size_of(pool, cache, "size_bytes")
                                                          : "of a size not known",
                      shared > 1 ? pool_text(pool, " (for %lld threads each)", shared) : ""));
    }
    return or_why(pool, machine, "caches", text);
}

static const char *fact_memory(struct pool *pool, const json_t *machine)
{
    const json_t *memory = json_object_get(machine, "memory");
    const json_t *nodes = json_object_get(json_object_get(machine, "numa"), "nodes");
    const json_t *peak = json_object_get(memory, "peak_gbytes_per_s");
    const char *text = or_why(pool, memory, "total_bytes", size_of(pool, memory, "total_bytes"));
    const char *pages = meta_text(json_object_get(memory, "transparent_huge_pages"), "enabled");

    text = show_joined(pool, text,
                       counted(pool, (long long)json_array_size(nodes), "NUMA node", "NUMA nodes"));
    text = show_joined(pool, text,
                       counted(pool, integer_of(memory, "channels"), "channel", "channels"));
    if (json_is_number(peak))
        text =
            show_joined(pool, text, pool_text(pool, "at most %.4g GB/s", json_number_value(peak)));
    if (*pages)
        text = show_joined(pool, text, pool_text(pool, "transparent huge pages: %s", pages));
    return text;
}

/* A number in words; "no ..." where it is known that there is none, or why it is not known. */
static const char *limit_text(struct pool *pool, const json_t *limits, const char *key,
                              const char *what, const char *value)
{
    const json_t *limit = json_object_get(limits, key);
    const char *why = or_why(pool, limits, key, "");

    if (json_is_number(limit))
        return pool_text(pool, "%s: %s", what, value);
    if (json_is_string(limit))
        return pool_text(pool, "no %s", what);
    return *why ? pool_text(pool, "%s %s", what, why) : "";
}

static const char *fact_limits(struct pool *pool, const json_t *machine)
{
    const json_t *limits = json_object_get(json_object_get(machine, "virtualization"), "limits");
    const char *allowed = meta_text(limits, "allowed_cpus");
    double cpus = json_number_value(json_object_get(limits, "cpu_quota"));
    const char *text =
        limit_text(pool, limits, "cpu_quota", "CPU quota", pool_text(pool, "%.4g CPUs", cpus));

    text = show_joined(pool, text,
                       limit_text(pool, limits, "memory_bytes", "memory limit",
                                  size_of(pool, limits, "memory_bytes")));
    return *allowed ? show_joined(pool, text, pool_text(pool, "CPUs %s may be used", allowed))
                    : text;
}

static const char *gpu_text(struct pool *pool, const json_t *gpu)
{
    const char *name = meta_text(gpu, "name"), *nature = meta_text(gpu, "nature");

    return pool_text(pool, "%s (%s)", *name ? name : "a GPU without a name",
                     *nature ? nature : "nature not known");
}

/* "8 x NVIDIA H200 (physical)": like ones together, in the order of their first. */
static const char *fact_gpus(struct pool *pool, const json_t *machine)
{
    const json_t *gpus = json_object_get(machine, "gpus"),
                 *devices = json_object_get(gpus, "devices");
    const char *text = "", *driver = meta_text(gpus, "driver_version");
    size_t n = json_array_size(devices);

    for (size_t i = 0; i < n; i++) {
        const char *own = gpu_text(pool, json_array_get(devices, i));
        size_t same = 0, before = 0;

        for (size_t k = 0; k < n; k++) {
            bool like = !strcmp(gpu_text(pool, json_array_get(devices, k)), own);
            same += like;
            before += like && k < i;
        }
        if (!before)
            text = show_joined(pool, text, same > 1 ? pool_text(pool, "%zu x %s", same, own) : own);
    }
    if (*text && *driver)
        text = pool_text(pool, "%s; driver %s", text, driver);
    if (*text || !json_is_object(gpus))
        return text;
    return json_is_array(devices) ? "none found" : or_why(pool, gpus, "devices", "");
}

static const char *fact_network(struct pool *pool, const json_t *machine)
{
    const char *text = "";
    json_t *nic;
    size_t i;

    json_array_foreach (json_object_get(machine, "network"), i, nic) {
        const json_t *speed = json_object_get(nic, "speed_gbits_per_s");
        const char *driver = meta_text(nic, "driver");

        if (json_is_true(json_object_get(nic, "virtual")))
            continue;
        text = show_joined(pool, text,
                           pool_text(pool, "%s (%s%s%s)", meta_text(nic, "name"),
                                     *driver ? driver : "no driver named", ", ",
                                     json_is_number(speed)
                                         ? pool_text(pool, "%.4g Gb/s", json_number_value(speed))
                                         : "speed not known"));
    }
    return or_why(pool, machine, "network", text);
}

static const char *fact_software(struct pool *pool, const json_t *machine)
{
    const json_t *host = json_object_get(machine, "host");
    const char *text = meta_text(host, "distro");

    if (*meta_text(host, "kernel"))
        text = show_joined(pool, text, pool_text(pool, "kernel %s", meta_text(host, "kernel")));
    return show_joined(pool, text, meta_text(host, "architecture"));
}

/* ends with a NULL name */
static const struct machine_fact machine_facts[] = {
    {"virtual or bare metal", fact_nature},
    {"machine", fact_model},
    {"CPU", fact_cpu},
    {"vector units", fact_units},
    {"clock", fact_clock},
    {"caches", fact_caches},
    {"memory", fact_memory},
    {"limits of CPU time and memory", fact_limits},
    {"GPUs", fact_gpus},
    {"network", fact_network},
    {"software", fact_software},
    {NULL, NULL},
};

static const json_t *machine_of(const struct page *page, size_t run)
{
    return json_object_get(page->r->runs[run].meta, "machine");
}

static void write_facts(const struct page *page)
{
    struct pool *pool = &page->r->pool;
    size_t n = page->r->n_runs;
    struct document_column *columns = pool_alloc(pool, n + 1, sizeof(*columns));
    struct document *d = document_new(pool);

    columns[0].name = "";
    for (size_t i = 0; i < n; i++)
        columns[i + 1].name = n > 1 ? page->r->names[i] : "";
    struct document_table *t = document_table(d, columns, n + 1);
    for (const struct machine_fact *fact = machine_facts; fact->name; fact++) {
        struct cell *cells = document_row(t);

        cells[0] = cell_text(fact->name);
        for (size_t i = 0; i < n; i++) {
            const char *text = fact->text(pool, machine_of(page, i));

            cells[i + 1] = cell_text(*text ? text : "not recorded");
        }
    }
    document_write_html(d, page->out);
}

static void write_because(const struct page *page, size_t run, const char *key, const char *title)
{
    const json_t *nature = json_object_get(machine_of(page, run), "virtualization");
    const json_t *because = json_object_get(nature, key);
    json_t *sentence;
    size_t i;

    if (!json_array_size(because))
        return;
    html_print(page->out, "<p>%s</p>\n<ul>", title);
    json_array_foreach (because, i, sentence)
        if (json_is_string(sentence))
            html_element(page->out, "li", json_string_value(sentence));
    fputs("</ul>\n", page->out);
}

static void write_evidence(const struct page *page, size_t run)
{
    FILE *out = page->out;

    html_print(out, "<details%s><summary>Evidence that says so%s%s</summary>\n", page_open(page),
               page->r->n_runs > 1 ? ": " : "", page->r->n_runs > 1 ? page->r->names[run] : "");
    write_because(page, run, "because", "Virtual or bare metal, because");
    write_because(page, run, "container_because", "Container or not, because");
    fputs("</details>\n", out);
}

/* What a user has set, maybe without knowing it, and what is measured is therefore not the library
 * alone. */
static void write_settings(const struct page *page, size_t run)
{
    json_t *settings = json_object_get(page->r->runs[run].meta, "library_settings"), *value;
    bool several = page->r->n_runs > 1;
    const char *name;

    if (!json_object_size(settings))
        return;
    html_print(page->out,
               "<p>Variables of the environment that steer libraries%s%s:", several ? ", " : "",
               several ? page->r->names[run] : "");
    json_object_foreach (settings, name, value)
        html_print(page->out, " <code>%s=%s</code>", name,
                   json_is_string(value) ? json_string_value(value) : "");
    fputs("</p>\n", page->out);
}

static void write_findings(const struct page *page, size_t run)
{
    struct exam *x = report_exam(page->r, run);
    char cost[512];

    if (!exam_count(x, EXAM_FOUND))
        return;
    html_print(page->out, "<h3>Findings%s%s</h3>\n<ul class='findings'>\n",
               page->r->n_runs > 1 ? ": " : "", page->r->n_runs > 1 ? page->r->names[run] : "");
    for (const struct exam_result *r = exam_results(x); r; r = r->next) {
        if (r->state != EXAM_FOUND || exam_repeats(x, r))
            continue;
        exam_cost_text(&r->cost, cost, sizeof(cost));
        html_print(page->out, "<li class='warn'>%s. Cost: %s.", exam_sentence(x, r), cost);
        if (*r->remedy)
            html_print(page->out, " Remedy: <code>%s</code>", r->remedy);
        fputs("</li>\n", page->out);
    }
    fputs("</ul>\n", page->out);
}

void page_machine(const struct page *page)
{
    FILE *out = page->out;

    html_print(out, "<section id='machine'>\n<h2>%s</h2>\n",
               page->r->n_runs > 1 ? "The machines" : "The machine");
    for (size_t i = 0; i < page->r->n_runs; i++)
        page_hosts_table(page, i);
    write_facts(page);
    for (size_t i = 0; i < page->r->n_runs; i++) {
        write_findings(page, i);
        write_settings(page, i);
        write_evidence(page, i);
    }
    fputs("</section>\n", out);
}
