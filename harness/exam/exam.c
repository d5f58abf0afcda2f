/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the checks over a machine, and keeps their results: see exam.h. */
#include "harness/exam/exam.h"

#include <fnmatch.h>
#include <hwloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/document/pool.h"
#include "harness/document/utf8.h"

const struct exam_area exam_areas[] = {
    {"processor", exam_processor},
    {"load", exam_load},
    {"limits", exam_limits},
    {"memory", exam_memory},
    {"bus", exam_bus},
    {"bus", exam_pcie},
    {"network", exam_network},
    {"network", exam_interfaces},
    {"network", exam_lines},
    {"rdma", exam_rdma},
    {"rdma", exam_ports},
    {"gpu", exam_gpu},
    {"gpu", exam_gpu_counters},
    {"libraries", exam_libraries},
    {"libraries", exam_ranks},
    {"guest", exam_guests},
    {NULL, NULL},
};

struct exam {
    struct pool pool;
    const json_t *machine;
    const struct exam_check *check; /* whose judge runs now */
    const char *area, *subject;
    const json_t *adapter;
    json_t *common, *own; /* evidence: facts of the machine, and of the next result's subject */
    struct exam_result *results, **end, *latest;
};

/* ---- Texts */

/* Facts may come from a file of somebody else: only what is printable is kept. */
static const char *printable(struct exam *x, const char *text)
{
    char *kept =
        pool_alloc(&x->pool, 3 * strlen(text) + 1, 1); /* a replacement takes three bytes */
    size_t n, used, at = 0;

    for (; *text; text += used, at += n) {
        const char *c = utf8_printable(text, &n, &used);

        memcpy(kept + at, c, n);
    }
    return kept;
}

static const char *format_all(struct exam *x, const char *format, va_list args)
{
    char *text = xvasprintf(format, args);
    const char *kept = printable(x, text);

    free(text);
    return kept;
}

const char *exam_format(struct exam *x, const char *format, ...)
{
    const char *text;
    va_list args;

    va_start(args, format);
    text = format_all(x, format, args);
    va_end(args);
    return text;
}

/* ---- Facts */

struct fact {
    const json_t *value; /* NULL: absent, or null */
    const char *why;     /* then */
};

/* Follows "cpu.clock.boost". What is null on the way has the reason for all below it. */
static struct fact follow(struct exam *x, const json_t *object, const char *path)
{
    const char *at = path;

    for (;;) {
        size_t n = strcspn(at, ".");
        const char *key = pool_text(&x->pool, "%.*s", (int)n, at);
        const json_t *value = json_object_get(object, key);

        if (!value || json_is_null(value)) {
            const char *why = exam_name(object, exam_format(x, "%s_why", key));

            return (struct fact){NULL, *why ? why : "not recorded"};
        }
        if (!at[n])
            return (struct fact){value, NULL};
        object = value;
        at += n + 1;
    }
}

static struct fact read_fact(struct exam *x, const json_t *object, const char *path)
{
    struct fact fact = follow(x, object ? object : x->machine, path);

    json_object_set_new(object ? x->own : x->common, path,
                        fact.value ? json_deep_copy(fact.value) : json_null());
    return fact;
}

const json_t *exam_get(struct exam *x, const json_t *object, const char *path)
{
    return read_fact(x, object, path).value;
}

const json_t *exam_fact(struct exam *x, const json_t *object, const char *path)
{
    struct fact fact = read_fact(x, object, path);

    if (!fact.value)
        exam_unknown(x, "%s: %s", path, fact.why);
    return fact.value;
}

/* A fact of another type than the probe writes: a recording that was changed. */
static bool is_type(struct exam *x, const char *path, bool is, const char *type)
{
    if (!is)
        exam_unknown(x, "%s: recorded, but not as a %s", path, type);
    return is;
}

const char *exam_text(struct exam *x, const json_t *object, const char *path)
{
    const json_t *fact = exam_fact(x, object, path);

    return fact && is_type(x, path, json_is_string(fact), "text") ? json_string_value(fact) : NULL;
}

bool exam_number(struct exam *x, const json_t *object, const char *path, double *value)
{
    const json_t *fact = exam_fact(x, object, path);

    if (!fact || !is_type(x, path, json_is_number(fact), "number"))
        return false;
    *value = json_number_value(fact);
    return true;
}

bool exam_flag(struct exam *x, const json_t *object, const char *path, bool *value)
{
    const json_t *fact = exam_fact(x, object, path);

    if (!fact || !is_type(x, path, json_is_boolean(fact), "flag"))
        return false;
    *value = json_is_true(fact);
    return true;
}

bool exam_sum(struct exam *x, const json_t *object, const char *counters, const char *const *keys,
              double *total)
{
    const json_t *all = exam_fact(x, object, counters);
    double one;

    for (*total = 0; all && *keys; keys++) {
        if (!json_object_get(all, *keys))
            continue;
        if (!exam_number(x, all, *keys, &one))
            return false;
        *total += one;
    }
    return all != NULL;
}

const json_t *exam_list(struct exam *x, const char *path)
{
    struct fact fact = follow(x, x->machine, path);
    const char *subject = x->subject;

    x->subject = "machine";
    if (!fact.value)
        exam_unknown(x, "%s: %s", path, fact.why);
    x->subject = subject;
    return json_is_array(fact.value) ? fact.value : NULL;
}

const char *exam_judged(const struct exam *x)
{
    return x->subject;
}

void exam_about(struct exam *x, const char *subject)
{
    x->subject = subject;
}

const json_t *exam_adapter(const struct exam *x)
{
    return x->adapter;
}

const json_t *exam_at(const json_t *value, const char *path)
{
    for (; value && *path; path += *path == '.') {
        size_t n = strcspn(path, ".");
        char key[64];

        snprintf(key, sizeof(key), "%.*s", (int)n, path);
        value = json_object_get(value, key);
        path += n;
    }
    return value;
}

const json_t *exam_peek(const struct exam *x, const char *path)
{
    return exam_at(x->machine, path);
}

const char *exam_string(const json_t *value)
{
    const char *text = json_string_value(value);

    return text ? text : "";
}

const char *exam_name(const json_t *object, const char *key)
{
    return exam_string(json_object_get(object, key));
}

double exam_value(const json_t *object, const char *key, double other)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : other;
}

bool exam_is(const json_t *object, const char *key, const char *text)
{
    return !strcmp(exam_name(object, key), text);
}

bool exam_passes(const char *key)
{
    static const char *const keys[] = {
        "because",  "container_because", "load", "counters", "hw_counters", "clock_reasons",
        "findings", "pause_counters",    "rank", "grown",    NULL};
    size_t n = strlen(key), i = 0;

    while (keys[i] && strcmp(keys[i], key) != 0)
        i++;
    return keys[i] || (n > 4 && !strcmp(key + n - 4, "_why"));
}

const json_t *exam_machine(const struct exam *x)
{
    return x->machine;
}

const json_t *exam_one_of(const json_t *list, const char *key, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (*text && exam_is(one, key, text))
            return one;
    return NULL;
}

const json_t *exam_device(const struct exam *x, const char *address)
{
    return exam_one_of(exam_peek(x, "pci"), "address", address);
}

bool exam_has_word(const json_t *list, const char *word)
{
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (json_is_string(one) && !strcmp(json_string_value(one), word))
            return true;
    return false;
}

static hwloc_bitmap_t read_cpus(const char *list)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();

    if (hwloc_bitmap_list_sscanf(cpus, list) || hwloc_bitmap_weight(cpus) < 0)
        hwloc_bitmap_zero(cpus);
    return cpus;
}

bool exam_common(const char *one, const char *other)
{
    hwloc_bitmap_t a = read_cpus(one), b = read_cpus(other);
    bool common = hwloc_bitmap_intersects(a, b);

    hwloc_bitmap_free(a);
    hwloc_bitmap_free(b);
    return common;
}

double exam_cpus(const char *list)
{
    hwloc_bitmap_t cpus = read_cpus(list);
    int n = hwloc_bitmap_weight(cpus);

    hwloc_bitmap_free(cpus);
    return n;
}

double exam_allowed(struct exam *x)
{
    const json_t *list = exam_get(x, NULL, "virtualization.limits.allowed_cpus");

    return json_is_string(list) ? exam_cpus(json_string_value(list)) : 0;
}

bool exam_launched(struct exam *x)
{
    return json_is_string(exam_get(x, NULL, "launcher"));
}

const char *exam_job_cpus(struct exam *x, const char *own)
{
    const json_t *peers = exam_get(x, NULL, "rank.peers"), *peer;
    const char *all = own;
    size_t i;

    json_array_foreach (peers, i, peer)
        if (json_is_string(peer))
            all = exam_format(x, "%s,%s", all, json_string_value(peer));
    return peers || !exam_launched(x) ? all : NULL;
}

bool exam_has(const struct exam *x, const char *subject)
{
    for (const struct exam_result *r = x->results; r; r = r->next)
        if (r->check == x->check && !strcmp(r->subject, subject))
            return true;
    return false;
}

const json_t *exam_nic(const struct exam *x, const char *name)
{
    return exam_one_of(exam_peek(x, "network"), "name", name);
}

bool exam_is_hardware(const json_t *device)
{
    return exam_fits("physical|passthrough|sriov-vf", exam_name(device, "nature"));
}

bool exam_is_active(const json_t *port)
{
    return exam_is(port, "state", "ACTIVE");
}

size_t exam_nvidia_gpus(const struct exam *x)
{
    const json_t *gpu;
    size_t i, n = 0;

    json_array_foreach (exam_peek(x, "gpus.devices"), i, gpu)
        n += exam_is(gpu, "driver", "nvidia");
    return n;
}

bool exam_has_nvidia(struct exam *x)
{
    return exam_nvidia_gpus(x) > 0;
}

size_t exam_cpu_nodes(const struct exam *x)
{
    const json_t *node;
    size_t i, n = 0;

    json_array_foreach (exam_peek(x, "numa.nodes"), i, node)
        n += *exam_name(node, "cpus") != '\0';
    return n;
}

bool exam_nic_is_real(const json_t *nic)
{
    return exam_is(nic, "state", "up") && !exam_is(nic, "kind", "loopback") &&
           json_is_false(json_object_get(nic, "virtual"));
}

double exam_nic_gbits(const json_t *nic)
{
    return exam_nic_is_real(nic) || exam_is(nic, "kind", "bond")
               ? exam_value(nic, "speed_gbits_per_s", 0)
               : 0;
}

bool exam_does_rdma(const struct exam *x, const json_t *device)
{
    const json_t *ports = json_object_get(device, "ports"), *port;
    size_t i;

    if (exam_is(device, "nature", "software"))
        return false;
    if (!exam_one_of(exam_peek(x, "network"), "driver", "hv_netvsc") || !json_array_size(ports))
        return true;
    json_array_foreach (ports, i, port)
        if (!exam_is(port, "link_layer", "Ethernet"))
            return true;
    return false;
}

bool exam_contained(const struct exam *x)
{
    const char *container = exam_string(exam_peek(x, "virtualization.container"));

    return *container && strcmp(container, "none") != 0;
}

double exam_fastest(const struct exam *x)
{
    const json_t *one, *port;
    double most = 0;
    size_t i, k;

    json_array_foreach (exam_peek(x, "network"), i, one)
        most = fmax(most, exam_nic_gbits(one));
    json_array_foreach (exam_peek(x, "rdma"), i, one)
        json_array_foreach (json_object_get(one, "ports"), k, port)
            if (exam_does_rdma(x, one) && exam_is_active(port))
                most = fmax(most, exam_value(port, "rate_gbits_per_s", 0));
    return most;
}

/* Of NUMA distances; a node itself is 10, and another socket 20 or more. */
enum { NEAR_MOST = 15 };

bool exam_near(const struct exam *x, double node, double other)
{
    const json_t *nodes = exam_peek(x, "numa.nodes"), *one;
    const json_t *distances = NULL, *distance = NULL;
    size_t i;

    json_array_foreach (nodes, i, one)
        if (exam_value(one, "node", -1) == node)
            distances = json_object_get(one, "distances");
    json_array_foreach (nodes, i, one)
        if (exam_value(one, "node", -1) == other)
            distance = json_array_get(distances, i);
    return node == other ||
           (json_is_integer(distance) && json_integer_value(distance) <= NEAR_MOST);
}

bool exam_guest(const struct exam *x)
{
    return json_is_true(exam_peek(x, "virtualization.guest"));
}

bool exam_metal(const struct exam *x)
{
    return json_is_false(exam_peek(x, "virtualization.guest"));
}

/* ---- Results */

static bool is_disk(const json_t *device)
{
    return exam_is(device, "kind", "nvme");
}

static struct exam_result *add(struct exam *x, enum exam_state state)
{
    struct exam_result *r = pool_alloc(&x->pool, 1, sizeof(*r));

    *r = (struct exam_result){.check = x->check,
                              .area = x->area,
                              .state = state,
                              .subject = printable(x, x->subject),
                              .text = "",
                              .remedy = "",
                              .matters = x->check->matters,
                              .aside = is_disk(exam_device(x, x->subject)),
                              .evidence = json_copy(x->common)};
    json_object_update(r->evidence, x->own);
    json_object_clear(x->own);
    *x->end = r;
    x->end = &r->next;
    return x->latest = r;
}

struct exam_result *exam_fine(struct exam *x)
{
    return add(x, EXAM_FINE);
}

#define ADD_SENTENCE(x, state, format)                                                             \
    struct exam_result *r = add(x, state);                                                         \
    va_list args;                                                                                  \
                                                                                                   \
    va_start(args, format);                                                                        \
    r->text = format_all(x, format, args);                                                         \
    va_end(args)

struct exam_result *exam_found(struct exam *x, const char *format, ...)
{
    ADD_SENTENCE(x, EXAM_FOUND, format);
    const char *remedy = x->check->remedy ? x->check->remedy : "", *name = strstr(remedy, "{}");

    r->cost = x->check->cost;
    r->remedy = name ? exam_format(x, "%.*s%s%s", (int)(name - remedy), remedy, x->subject,
                                   name + strlen("{}"))
                     : remedy;
    return r;
}

struct exam_result *exam_unknown(struct exam *x, const char *format, ...)
{
    ADD_SENTENCE(x, EXAM_UNKNOWN, format);
    return r;
}

struct exam_result *exam_not_applicable(struct exam *x, const char *format, ...)
{
    ADD_SENTENCE(x, EXAM_NOT_APPLICABLE, format);
    return r;
}

struct exam_result *exam_remedy(struct exam *x, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    x->latest->remedy = format_all(x, format, args);
    va_end(args);
    return x->latest;
}

struct exam_result *exam_price(struct exam *x, double share, const char *of, const char *formula,
                               ...)
{
    va_list args;

    va_start(args, formula);
    x->latest->cost = (struct exam_cost){.basis = EXAM_COMPUTED,
                                         .low = share,
                                         .high = share,
                                         .of = of,
                                         .source = format_all(x, formula, args)};
    va_end(args);
    return x->latest;
}

/* ---- The exam */

static void judge_one(struct exam *x, const json_t *one, const char *subject)
{
    const struct exam_check *check = x->check;
    struct exam_result **before = x->end;

    if (check->which && !check->which(one))
        return;
    x->subject = subject;
    if ((check->judge ? check->judge(x) : check->judge_one(x, one)) && !*before)
        add(x, EXAM_FINE);
}

static void judge_ports(struct exam *x, const json_t *device)
{
    const char *name = exam_name(device, "name");
    const json_t *port;
    size_t i;

    x->subject = name;
    if (x->check->each == EXAM_KNOWN_PORTS && !exam_fact(x, device, "ports"))
        return;
    x->adapter = device;
    json_array_foreach (json_object_get(device, "ports"), i, port)
        judge_one(x, port, exam_format(x, "%s:%.0f", name, exam_value(port, "port", 0)));
}

static void judge_each(struct exam *x)
{
    static const char *const lists[] = {
        [EXAM_GPUS] = "gpus.devices", [EXAM_NVIDIA] = "gpus.devices", [EXAM_DEVICES] = "pci",
        [EXAM_NICS] = "network",      [EXAM_RDMA] = "rdma",           [EXAM_PORTS] = "rdma",
        [EXAM_KNOWN_PORTS] = "rdma"};
    enum exam_each each = x->check->each;
    const json_t *list = exam_list(x, lists[each]), *one;
    size_t i;

    json_array_foreach (list, i, one) {
        const char *address = exam_name(one, "address"), *name = exam_name(one, "name");

        if (each == EXAM_PORTS || each == EXAM_KNOWN_PORTS)
            judge_ports(x, one);
        else if (each != EXAM_NVIDIA || exam_is(one, "driver", "nvidia"))
            judge_one(x, one, *address ? address : *name ? name : "?");
    }
}

static void run_check(struct exam *x, const struct exam_area *area, const struct exam_check *check)
{
    struct exam_result **before = x->end;

    x->area = area->name;
    x->check = check;
    json_object_clear(x->common);
    json_object_clear(x->own);
    if ((!check->metal || exam_metal(x)) && (!check->when || check->when(x))) {
        if (check->judge)
            judge_one(x, NULL, check->subject);
        else
            judge_each(x);
    }
    x->subject = "machine";
    if (!*before)
        add(x, EXAM_NOT_APPLICABLE);
}

static const char *why_no_nvml(const struct exam *x)
{
    return exam_string(exam_peek(x, "gpus.nvml_why"));
}

bool exam_lacks_gpus(const struct exam *x)
{
    return exam_nvidia_gpus(x) && !json_is_true(exam_peek(x, "gpus.nvml")) && *why_no_nvml(x);
}

struct exam *exam_new(const json_t *machine)
{
    struct exam *x = xcalloc(1, sizeof(*x));

    x->machine = machine;
    x->end = &x->results;
    x->common = json_object();
    x->own = json_object();
    for (const struct exam_area *area = exam_areas; area->name; area++)
        for (const struct exam_check *check = area->checks; check->id; check++)
            run_check(x, area, check);
    /* One fact of a GPU more or less is no alarm; no fact at all is. */
    for (struct exam_result *r = exam_lacks_gpus(x) ? x->results : NULL; r; r = r->next)
        if (r->state == EXAM_UNKNOWN && !strcmp(r->text, why_no_nvml(x)))
            r->matters = true;
    exam_sort(x);
    return x;
}

void exam_free(struct exam *x)
{
    if (!x)
        return;
    for (struct exam_result *r = x->results; r; r = r->next)
        json_decref(r->evidence);
    json_decref(x->common);
    json_decref(x->own);
    pool_release(&x->pool);
    free(x);
}

struct exam_result *exam_results(struct exam *x)
{
    return x->results;
}

double exam_loss(const struct exam_cost *cost)
{
    double middle = (cost->low + cost->high) / 2;

    if (cost->basis == EXAM_NOT_PRICED)
        return -1;
    return cost->of_time ? middle / (1 + middle) : middle;
}

bool exam_before(const struct exam_result *a, const struct exam_result *b)
{
    static const int place[] = {
        [EXAM_FOUND] = 0, [EXAM_UNKNOWN] = 1, [EXAM_FINE] = 2, [EXAM_NOT_APPLICABLE] = 3};

    if (a->state != b->state)
        return place[a->state] < place[b->state];
    if (a->state == EXAM_FOUND && a->aside != b->aside)
        return b->aside;
    if (a->state == EXAM_FOUND)
        return exam_loss(&a->cost) > exam_loss(&b->cost);
    return a->state == EXAM_UNKNOWN && a->matters && !b->matters;
}

void exam_sort(struct exam *x)
{
    struct exam_result *sorted = NULL, *next;

    for (struct exam_result *r = x->results; r; r = next) {
        struct exam_result **at = &sorted;

        next = r->next;
        while (*at && !exam_before(r, *at))
            at = &(*at)->next;
        r->next = *at;
        *at = r;
    }
    x->results = sorted;
}

size_t exam_count(const struct exam *x, enum exam_state state)
{
    size_t n = 0;

    for (const struct exam_result *r = x->results; r; r = r->next)
        n += r->state == state;
    return n;
}

bool exam_measurable(const struct exam_check *check, const char *subject)
{
    return check->measured && (!subject || !fnmatch(check->measured, subject, FNM_EXTMATCH));
}

bool exam_fits(const char *patterns, const char *name)
{
    for (const char *at = patterns ? patterns : ""; *at; at += *at == '|') {
        size_t n = strcspn(at, "|");
        char pattern[64];

        if ((size_t)snprintf(pattern, sizeof(pattern), "%.*s", (int)n, at) < sizeof(pattern) &&
            !fnmatch(pattern, name, 0))
            return true;
        at += n;
    }
    return false;
}

/* What a variable of its library can slow. */
static bool variable_slows(const char *variable, const char *pipe)
{
    static const struct {
        const char *variables, *pipes;
    } all[] = {
        {"NCCL_*|GLOO_*|OMPI_*", EXAM_GROUP},
        {"OPENBLAS_*|GOTO_*|MKL_*|DNNL_*|ONEDNN_*|BLIS_*|OMP_*", "Matrix core|Training step"},
        {"CUDA_*", "GPU*|PCIe|Training step"}};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (exam_fits(all[i].variables, variable))
            return exam_fits(all[i].pipes, pipe);
    return true;
}

bool exam_explains(const struct exam *x, const struct exam_result *r, const char *pipe)
{
    const json_t *device = exam_device(x, r->subject);

    if (!exam_fits(r->check->pipes, pipe) || is_disk(device) || !variable_slows(r->subject, pipe))
        return false;
    if (exam_is(device, "kind", "ethernet") || exam_is(device, "kind", "infiniband"))
        return exam_fits("Network*|GPU memory by RDMA|" EXAM_GROUP, pipe);
    return true;
}

const struct exam_check *exam_find(const char *id, const char **area)
{
    for (const struct exam_area *a = exam_areas; a->name; a++)
        for (const struct exam_check *check = a->checks; check->id; check++)
            if (!strcmp(check->id, id)) {
                if (area)
                    *area = a->name;
                return check;
            }
    return NULL;
}
