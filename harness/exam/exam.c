/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the checks over a machine, and keeps their results: see exam.h. */
#include "harness/exam/exam.h"

#include <fnmatch.h>
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
    const json_t *one, *adapter; /* what is judged; NULL: the machine. The device of a port */
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

/* The value of what stands in braces; other: where there is none, or 0. */
static const char *slot(struct exam *x, const char *name, const char *other,
                        const struct exam_span *span)
{
    const json_t *fact = fact_at(x->one, name);
    const char *text;

    if (!*name)
        return x->subject;
    if (span && !strcmp(name, "when"))
        return span->text;
    if (span && !strcmp(name, "bad"))
        return exam_format(x, "%.0f", span->bad);
    if (span && !strcmp(name, "all"))
        return exam_format(x, "%.0f", span->all);
    if (span && !strcmp(name, "percent"))
        return exam_format(x, "%.1f", 100 * span->bad / span->all);
    fact = fact ? fact : fact_at(x->machine, name);
    text = json_is_number(fact) ? exam_format(x, "%.0f", json_number_value(fact)) : fact_word(fact);
    return *text && strcmp(text, "0") != 0 ? text : *other ? other : text;
}

const char *exam_fill(struct exam *x, const char *text, const struct exam_span *span)
{
    const char *filled = "", *open, *end;

    for (; (open = strchr(text, '{')) && (end = strchr(open, '}')); text = end + 1) {
        int n = (int)strcspn(open + 1, "|}"), rest = (int)(end - open) - n - 2;
        const char *name = exam_format(x, "%.*s", n, open + 1),
                   *other = rest > 0 ? exam_format(x, "%.*s", rest, open + n + 2) : "";

        filled = exam_format(x, "%s%.*s%s", filled, (int)(open - text), text,
                             slot(x, name, other, span));
    }
    return *filled ? exam_format(x, "%s%s", filled, text) : text;
}

/* ---- Facts */

const json_t *exam_get(struct exam *x, const json_t *object, const char *path)
{
    const json_t *fact = fact_at(object ? object : x->machine, path);

    json_object_set_new(object ? x->own : x->common, path,
                        fact ? json_deep_copy(fact) : json_null());
    return json_is_null(fact) ? NULL : fact;
}

double exam_value(struct exam *x, const json_t *object, const char *path, double other)
{
    const json_t *fact = exam_get(x, object, path);

    return json_is_number(fact) ? json_number_value(fact) : other;
}

const json_t *exam_fact(struct exam *x, const json_t *object, const char *path)
{
    const json_t *fact = exam_get(x, object, path);

    if (!fact)
        exam_unknown(x, "%s: %s", path, fact_why(object ? object : x->machine, path));
    return fact;
}

static const char *why_no_nvml(const struct exam *x)
{
    return fact_word(exam_peek(x, "gpus.nvml_why"));
}

const json_t *exam_nvml(struct exam *x, const json_t *gpu, const char *path)
{
    const json_t *value = exam_get(x, gpu, path);

    if (!value && *why_no_nvml(x))
        exam_unknown(x, "%s", why_no_nvml(x));
    return value || *why_no_nvml(x) ? value : exam_fact(x, gpu, path);
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
    const json_t *list = exam_peek(x, path);
    const char *subject = x->subject;

    x->subject = "machine";
    if (!list || json_is_null(list))
        exam_unknown(x, "%s: %s", path, fact_why(x->machine, path));
    x->subject = subject;
    return json_is_array(list) ? list : NULL;
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

const json_t *exam_peek(const struct exam *x, const char *path)
{
    return fact_at(x->machine, path);
}

const json_t *exam_machine(const struct exam *x)
{
    return x->machine;
}

const json_t *exam_device(const struct exam *x, const char *address)
{
    return fact_one_of(exam_peek(x, "pci"), "address", address);
}

const char *exam_variable(const struct exam *x, const char *name)
{
    return fact_name(exam_peek(x, "library_settings"), name);
}

double exam_allowed(struct exam *x)
{
    return fact_cpus(fact_word(exam_get(x, NULL, "virtualization.limits.allowed_cpus")));
}

bool exam_launched(struct exam *x)
{
    return json_is_string(exam_get(x, NULL, "launcher"));
}

const char *exam_job_cpus(struct exam *x, const char *own)
{
    const json_t *peers = exam_get(x, NULL, "rank.peers");
    const char *all = own;

    FACT_EACH (peers, peer)
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
    return fact_one_of(exam_peek(x, "network"), "name", name);
}

bool exam_is_nic(const json_t *device)
{
    return fact_fits("ethernet|infiniband", fact_name(device, "kind"));
}

bool exam_is_gpu(const json_t *device)
{
    return fact_is(device, "kind", "gpu");
}

bool exam_same_board(const json_t *a, const json_t *b)
{
    static const char *const ids[] = {"vendor_id", "device_id", "subsystem_vendor_id",
                                      "subsystem_device_id"};

    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
        if (!*fact_name(a, ids[i]) || !fact_is(b, ids[i], fact_name(a, ids[i])))
            return false;
    return true;
}

bool exam_is_hardware(const json_t *device)
{
    return fact_fits("physical|passthrough|sriov-vf", fact_name(device, "nature"));
}

bool exam_is_active(const json_t *port)
{
    return fact_is(port, "state", "ACTIVE");
}

double exam_port_gbits(const json_t *device)
{
    double most = 0;

    FACT_EACH (json_object_get(device, "ports"), port)
        if (exam_is_active(port))
            most = fmax(most, fact_number(port, "rate_gbits_per_s", 0));
    return most;
}

size_t exam_nvidia_gpus(const struct exam *x)
{
    size_t n = 0;

    FACT_EACH (exam_peek(x, "gpus.devices"), gpu)
        n += fact_is(gpu, "driver", "nvidia");
    return n;
}

bool exam_has_nvidia(struct exam *x)
{
    return exam_nvidia_gpus(x) > 0;
}

size_t exam_cpu_nodes(const struct exam *x)
{
    size_t n = 0;

    FACT_EACH (exam_peek(x, "numa.nodes"), node)
        n += *fact_name(node, "cpus") != '\0';
    return n;
}

bool exam_nic_is_real(const json_t *nic)
{
    return fact_is(nic, "state", "up") && !fact_is(nic, "kind", "loopback") &&
           json_is_false(json_object_get(nic, "virtual"));
}

double exam_nic_gbits(const json_t *nic)
{
    return exam_nic_is_real(nic) || fact_is(nic, "kind", "bond")
               ? fact_number(nic, "speed_gbits_per_s", 0)
               : 0;
}

double exam_nic_speed(struct exam *x, const json_t *nic)
{
    exam_get(x, nic, "speed_gbits_per_s");
    return exam_nic_gbits(nic);
}

bool exam_does_rdma(const struct exam *x, const json_t *device)
{
    const json_t *ports = json_object_get(device, "ports");

    if (fact_is(device, "nature", "software"))
        return false;
    if (!fact_one_of(exam_peek(x, "network"), "driver", "hv_netvsc") || !json_array_size(ports))
        return true;
    FACT_EACH (ports, port)
        if (!fact_is(port, "link_layer", "Ethernet"))
            return true;
    return false;
}

bool exam_contained(const struct exam *x)
{
    const char *container = fact_word(exam_peek(x, "virtualization.container"));

    return *container && strcmp(container, "none") != 0;
}

bool exam_has_adapter(const struct exam *x, bool (*which)(const json_t *device))
{
    FACT_EACH (exam_peek(x, "rdma"), device)
        if (exam_does_rdma(x, device) && (!which || which(device)))
            return true;
    return false;
}

double exam_fastest_nic(const struct exam *x)
{
    double most = 0;

    FACT_EACH (exam_peek(x, "network"), nic)
        most = fmax(most, exam_nic_gbits(nic));
    return most;
}

double exam_fastest_port(const struct exam *x)
{
    double most = 0;

    FACT_EACH (exam_peek(x, "rdma"), device)
        if (exam_does_rdma(x, device))
            most = fmax(most, exam_port_gbits(device));
    return most;
}

double exam_fastest(const struct exam *x)
{
    return fmax(exam_fastest_nic(x), exam_fastest_port(x));
}

/* Of NUMA distances; a node itself is 10, and another socket 20 or more. */
enum { NEAR_MOST = 15 };

bool exam_near(const struct exam *x, double node, double other)
{
    const json_t *nodes = exam_peek(x, "numa.nodes"), *distances = NULL, *distance = NULL;

    FACT_EACH (nodes, one)
        if (fact_number(one, "node", -1) == node)
            distances = json_object_get(one, "distances");
    for (size_t i = 0; i < json_array_size(nodes); i++)
        if (fact_number(json_array_get(nodes, i), "node", -1) == other)
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
    return fact_is(device, "kind", "nvme");
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
    r->cost = x->check->cost;
    r->remedy = x->check->remedy ? exam_fill(x, x->check->remedy, NULL) : "";
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
    x->latest->remedy = exam_fill(x, format_all(x, format, args), NULL);
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

struct exam_result *exam_price_rest(struct exam *x, double rest, double whole, const char *of,
                                    const char *unit)
{
    return exam_price(x, 1 - rest / whole, of, "1 - %.4g/%.4g %s", rest, whole, unit);
}

/* ---- The exam */

static bool judge_fact(struct exam *x, const json_t *one)
{
    const struct exam_check *check = x->check;
    const char *path = check->fact, *text;
    double number;
    bool flag, is_flag = fact_fits("true|false", check->bad ? check->bad : ""), found;

    if (check->each == EXAM_NVIDIA && !exam_nvml(x, one, path))
        return false;
    if (check->below > 0) {
        if (!exam_number(x, one, path, &number))
            return false;
        found = number < check->below;
    } else if (is_flag) {
        if (!exam_flag(x, one, path, &flag))
            return false;
        found = flag == !strcmp(check->bad, "true");
    } else {
        if (!(text = exam_text(x, one, path)))
            return false;
        found = check->bad ? fact_fits(check->bad, text) : !fact_fits(check->good, text);
    }
    if (found)
        exam_found(x, "%s", exam_fill(x, check->found, NULL));
    return true;
}

static void judge_one(struct exam *x, const json_t *one, const char *subject)
{
    const struct exam_check *check = x->check;
    struct exam_result **before = x->end;
    bool is_about;

    if (check->which && !check->which(one))
        return;
    x->subject = subject;
    x->one = one;
    if (check->judge)
        is_about = check->judge(x);
    else if (check->judge_one)
        is_about = check->judge_one(x, one);
    else if (check->fact)
        is_about = judge_fact(x, one);
    else
        is_about = exam_events(x, one, check->events) != EXAM_NOT_READ;
    if (is_about && !*before)
        add(x, EXAM_FINE);
}

static void judge_each(struct exam *x)
{
    static const char *const lists[] = {
        [EXAM_GPUS] = "gpus.devices", [EXAM_NVIDIA] = "gpus.devices", [EXAM_DEVICES] = "pci",
        [EXAM_NICS] = "network",      [EXAM_RDMA] = "rdma",           [EXAM_PORTS] = "rdma",
        [EXAM_KNOWN_PORTS] = "rdma"};
    enum exam_each each = x->check->each;
    const json_t *list = exam_list(x, lists[each]);

    FACT_EACH (list, one) {
        const char *address = fact_name(one, "address"), *name = fact_name(one, "name");

        if (each == EXAM_PORTS || each == EXAM_KNOWN_PORTS) {
            x->subject = name;
            if (each == EXAM_KNOWN_PORTS && !exam_fact(x, one, "ports"))
                continue;
            x->adapter = one;
            FACT_EACH (json_object_get(one, "ports"), port)
                judge_one(x, port, exam_format(x, "%s:%.0f", name, fact_number(port, "port", 0)));
        } else if (each != EXAM_NVIDIA || fact_is(one, "driver", "nvidia"))
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
        if (check->subject)
            judge_one(x, NULL, check->subject);
        else
            judge_each(x);
    }
    x->subject = "machine";
    x->one = NULL;
    if (!*before)
        add(x, EXAM_NOT_APPLICABLE);
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
        if (fact_fits(all[i].variables, variable))
            return fact_fits(all[i].pipes, pipe);
    return true;
}

bool exam_explains(const struct exam *x, const struct exam_result *r, const char *pipe)
{
    const json_t *device = exam_device(x, r->subject);

    if (!fact_fits(r->check->pipes, pipe) || is_disk(device) || !variable_slows(r->subject, pipe))
        return false;
    if (exam_is_nic(device))
        return fact_fits(EXAM_LINES, pipe);
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
