/* SPDX-License-Identifier: Apache-2.0 */
/* What people read: the devices but GPUs, a table for each kind, and the findings. */
#include <string.h>

#include "harness/exam/exam.h"
#include "harness/probe/facts.h"
#include "harness/probe/print.h"

struct rows rows_begin(struct print *p, const char *names)
{
    struct rows t = {.p = p, .n = 1};

    for (const char *c = names; *c; c++)
        t.n += *c == '|';
    t.columns = pool_alloc(p->pool, t.n, sizeof(*t.columns));
    for (size_t i = 0; i < t.n; i++) {
        size_t first = *names == '>', n = strcspn(names, "|");

        t.columns[i].place = first ? COLUMN_GOES_FIRST : COLUMN_STAYS;
        t.columns[i].name = pool_text(p->pool, "%.*s", (int)(n - first), names + first);
        names += n + (names[n] == '|');
    }
    return t;
}

void rows_cell(struct rows *t, const char *text)
{
    if (!t->table)
        t->table = document_table(t->p->d, t->columns, t->n);
    if (!t->at)
        t->row = document_row(t->table);
    t->row[t->at] = cell_text(text);
    t->at = (t->at + 1) % t->n;
}

void rows_keys(struct rows *t, const json_t *object, const char *keys, const char *other)
{
    for (; *keys; keys += *keys == '|') {
        size_t n = strcspn(keys, "|");
        const char *key = pool_text(t->p->pool, "%.*s", (int)n, keys);
        const json_t *value = json_object_get(object, key);

        rows_cell(t, json_is_integer(value)  ? print_integer(t->p, object, key)
                     : json_is_string(value) ? json_string_value(value)
                                             : other);
        keys += n;
    }
}

/* The heading of a section, and the list of it; where that is empty, a line says why. */
static const json_t *begin(struct print *p, const char *title, const char *key, const char *none)
{
    const json_t *list = json_object_get(p->machine, key);
    const char *why = fact_string(p->machine, pool_text(p->pool, "%s_why", key));

    document_heading(p->d, 2, title, "");
    if (!json_array_size(list))
        print_line(p, json_is_array(list) ? "none" : "?", "%s", why ? why : none);
    return list;
}

/* What they are, and how they are connected. */
void print_pci(struct print *p)
{
    const json_t *list =
        begin(p, "PCI DEVICES", "pci", "no GPU, network adapter, NVMe or NVSwitch on the bus");
    struct rows what = rows_begin(p, "ADDRESS|KIND|NAME|DRIVER");
    struct rows how = rows_begin(p, "ADDRESS|NATURE|LINK NOW|COULD BE|NUMA|SR-IOV");

    FACT_EACH (list, device) {
        const char *name = fact_string(device, "name");

        rows_keys(&what, device, "address", "");
        rows_keys(&what, device, "kind", "?");
        rows_cell(&what, name ? name
                              : pool_text(p->pool, "%s:%s", print_text(device, "vendor_id"),
                                          print_text(device, "device_id")));
        rows_keys(&what, device, "driver", "");
    }
    FACT_EACH (list, device) {
        const json_t *link = json_object_get(device, "link"),
                     *sriov = json_object_get(device, "sriov");
        const char *now = "", *best = "";

        if (json_is_object(link))
            now = pool_text(p->pool, "%.1f GT/s x%lld", fact_number(link, "now_gt_s", 0),
                            fact_integer(link, "now_width", 0));
        if (fact_true(link, "downtrained"))
            best = pool_text(p->pool, "%.1f GT/s x%lld", fact_number(link, "best_gt_s", 0),
                             fact_integer(link, "best_width", 0));
        rows_keys(&how, device, "address|nature", "");
        rows_cell(&how, now);
        rows_cell(&how, best);
        rows_keys(&how, device, "numa_node", "");
        if (!json_is_object(sriov))
            rows_cell(&how, sriov ? "?" : "");
        else if (fact_is(sriov, "role", "vf"))
            rows_print(&how, "of %s", print_text(sriov, "physical_function"));
        else
            rows_print(&how, "%s of %s VFs", print_integer(p, sriov, "vfs"),
                       print_integer(p, sriov, "total_vfs"));
    }
}

void print_network(struct print *p)
{
    const json_t *list = begin(p, "NETWORK", "network", "no interface");
    struct rows t = rows_begin(p, "NAME|KIND|NATURE|SPEED|STATE|MTU|>DRIVER|>NUMA|>PCI");

    FACT_EACH (list, nic) {
        double speed = fact_number(nic, "speed_gbits_per_s", 0);

        rows_keys(&t, nic, "name", "");
        rows_keys(&t, nic, "kind", "?");
        rows_keys(&t, nic, "nature", "");
        if (speed > 0)
            rows_print(&t, "%.4g Gb/s%s", speed, fact_string(nic, "speed_why") ? " nominal" : "");
        else
            rows_cell(&t, fact_true(nic, "virtual") ? "" : "?");
        rows_keys(&t, nic, "state|mtu|driver|numa_node|pci", "");
    }
}

/* The indices that a user must choose between, by type: "v1: 0 2, v2: 1 3". */
static const char *gids_text(struct print *p, const json_t *port)
{
    static const struct {
        const char *type, *label;
    } types[] = {{"IB/RoCE v1", "v1"}, {"RoCE v2", "v2"}};
    const char *text = "";

    for (size_t t = 0; t < 2; t++) {
        const char *label = pool_text(p->pool, "%s%s:", *text ? ", " : "", types[t].label);

        FACT_EACH (json_object_get(port, "gids"), gid)
            if (fact_is(gid, "type", types[t].type)) {
                text = pool_text(p->pool, "%s%s %lld", text, label, fact_integer(gid, "index", -1));
                label = "";
            }
    }
    return text;
}

void print_rdma(struct print *p)
{
    const json_t *list = begin(p, "RDMA", "rdma", "no RDMA device");
    struct rows t =
        rows_begin(p, "NAME|PORT|STATE|RATE|>LAYER|>NATURE|DRIVER|>FIRMWARE|>NUMA|>PCI|>GIDS");

    FACT_EACH (list, device) {
        const json_t *ports = json_object_get(device, "ports"), *port;
        size_t k = 0;

        do { /* a device without a port has a row, too */
            port = json_array_get(ports, k);
            double rate = fact_number(port, "rate_gbits_per_s", 0);

            rows_keys(&t, device, "name", "");
            rows_keys(&t, port, "port|state", "");
            rows_cell(&t, rate > 0 ? pool_text(p->pool, "%.4g Gb/s", rate) : "?");
            rows_keys(&t, port, "link_layer", "");
            rows_keys(&t, device, "nature|driver|firmware|numa_node|pci", "");
            rows_cell(&t, gids_text(p, port));
        } while (++k < json_array_size(ports));
    }
}

/* Of this value and all in it: a fact that is null says why beside it, "X_why". */
static size_t n_unknown(const json_t *value)
{
    size_t n = 0, i;
    const char *key;
    json_t *child;

    json_array_foreach ((json_t *)value, i, child)
        n += n_unknown(child);
    json_object_foreach ((json_t *)value, key, child) {
        char why[128];

        snprintf(why, sizeof(why), "%s_why", key);
        n += n_unknown(child) + (json_is_null(child) && json_object_get(value, why));
    }
    return n;
}

void print_findings(struct print *p)
{
    struct exam *x = exam_new(p->machine);
    size_t unknown = n_unknown(p->machine);

    document_heading(p->d, 2, "FINDINGS", "");
    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        if (r->state == EXAM_FOUND && !exam_repeats(x, r))
            print_line(p, r->check->id, "%s", exam_sentence(x, r));
    if (exam_count(x, EXAM_FOUND))
        print_line(p, "", "plumb doctor: what each costs, and its remedy");
    else if (unknown)
        print_line(p, "none",
                   "nothing to hold back a measurement in what was read; %zu facts are unknown",
                   unknown);
    else
        print_line(p, "none", "nothing found that would hold back a measurement");
    exam_free(x);
}
