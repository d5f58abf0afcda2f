/* SPDX-License-Identifier: Apache-2.0 */
/* The table that people read: the devices but GPUs, a table for each kind, and the findings. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/exam/exam.h"
#include "harness/probe/facts.h"

/* ---- Lays out a table once all of it is known ---- */

void grid_init(struct grid *table, const char *heading)
{
    *table = (struct grid){.columns = 1};
    for (const char *c = heading; *c; c++)
        table->columns += *c == '|';
    while (heading) {
        const char *bar = strchr(heading, '|');

        grid_cell(table, "%.*s", (int)(bar ? (size_t)(bar - heading) : strlen(heading)), heading);
        heading = bar ? bar + 1 : NULL;
    }
}

void grid_release(struct grid *table)
{
    free(table->cell);
    *table = (struct grid){0};
}

void grid_cell(struct grid *table, const char *format, ...)
{
    va_list args;
    int length;

    if (table->filled == table->rows * table->columns)
        table->cell = xrealloc(table->cell, ++table->rows * table->columns * sizeof(*table->cell));
    va_start(args, format);
    length = vsnprintf(table->cell[table->filled], GRID_CELL, format, args);
    va_end(args);
    if (length >= GRID_CELL)
        strcpy(table->cell[table->filled] + GRID_CELL - 4, "...");
    table->filled++;
}

static const char *cell_at(const struct grid *table, size_t row, size_t column)
{
    size_t i = row * table->columns + column;

    return i < table->filled ? table->cell[i] : "";
}

/* The width of a column; 0 where it says nothing. */
static int column_width(const struct grid *table, size_t column)
{
    size_t width = strlen(cell_at(table, 0, column));
    bool says = false;

    for (size_t row = 1; row < table->rows; row++) {
        const char *text = cell_at(table, row, column);

        says = says || strcmp(text, "-");
        width = strlen(text) > width ? strlen(text) : width;
    }
    return says ? (int)width : 0;
}

void grid_print(FILE *out, const struct grid *table)
{
    int width[GRID_COLUMNS];
    size_t last = 0;

    for (size_t i = 0; i < table->columns && i < GRID_COLUMNS; i++) {
        width[i] = column_width(table, i);
        last = width[i] ? i : last;
    }
    for (size_t row = 0; row < table->rows; row++) {
        fputs("  ", out);
        for (size_t i = 0; i < last; i++)
            if (width[i])
                fprintf(out, "%-*s  ", width[i], cell_at(table, row, i));
        fprintf(out, "%s\n", cell_at(table, row, last));
    }
}

void grid_keys(struct grid *table, const json_t *object, const char *keys, const char *other)
{
    for (; *keys; keys += *keys == '|') {
        char key[32];
        size_t n = strcspn(keys, "|");
        const json_t *value;

        snprintf(key, sizeof(key), "%.*s", (int)n, keys);
        value = json_object_get(object, key);
        if (json_is_integer(value))
            grid_cell(table, "%lld", (long long)json_integer_value(value));
        else
            grid_cell(table, "%s", json_is_string(value) ? json_string_value(value) : other);
        keys += n;
    }
}

void grid_finish(FILE *out, struct grid *table)
{
    grid_print(out, table);
    grid_release(table);
}

/* The heading of a section of a list; false where it is empty, and then a line says why. */
static bool begin(FILE *out, const char *title, const json_t *machine, const char *key,
                  const char *none)
{
    const json_t *list = json_object_get(machine, key);
    const char *why;
    char why_key[32];

    fprintf(out, "\n%s\n", title);
    if (json_array_size(list))
        return true;
    snprintf(why_key, sizeof(why_key), "%s_why", key);
    why = fact_string(machine, why_key);
    print_line(out, json_is_array(list) ? "none" : "?", "%s", why ? why : none);
    return false;
}

/* "16.0 GT/s x16" now, and what device and port could do where that is more. */
static void cell_link(struct grid *table, const json_t *device)
{
    const json_t *link = json_object_get(device, "link");

    if (!json_is_object(link)) {
        grid_cell(table, "-");
        return;
    }
    if (fact_true(link, "downtrained"))
        grid_cell(table, "%.1f GT/s x%lld, could be %.1f x%lld", fact_number(link, "now_gt_s", 0),
                  fact_integer(link, "now_width", 0), fact_number(link, "best_gt_s", 0),
                  fact_integer(link, "best_width", 0));
    else
        grid_cell(table, "%.1f GT/s x%lld", fact_number(link, "now_gt_s", 0),
                  fact_integer(link, "now_width", 0));
}

/* "VF of 0000:3b:00.0", "PF, 4 of 8 VFs". */
static void cell_sriov(struct grid *table, const json_t *device)
{
    const json_t *sriov = json_object_get(device, "sriov");
    char now[24], total[24];

    if (!json_is_object(sriov))
        grid_cell(table, sriov ? "?" : "-");
    else if (!strcmp(print_text(sriov, "role"), "vf"))
        grid_cell(table, "of %s", print_text(sriov, "physical_function"));
    else
        grid_cell(table, "%s of %s VFs", print_integer(sriov, "vfs", now),
                  print_integer(sriov, "total_vfs", total));
}

void print_pci(FILE *out, const json_t *machine)
{
    const json_t *list = json_object_get(machine, "pci"), *device;
    struct grid table;
    size_t i;

    if (!begin(out, "PCI DEVICES", machine, "pci",
               "no GPU, network adapter, NVMe or NVSwitch on the bus"))
        return;
    grid_init(&table, "ADDRESS|KIND|NAME|NATURE|LINK NOW|NUMA|DRIVER|SR-IOV");
    json_array_foreach (list, i, device) {
        grid_keys(&table, device, "address", "-");
        grid_keys(&table, device, "kind", "?");
        const char *name = fact_string(device, "name");

        if (name)
            grid_cell(&table, "%s", name);
        else
            grid_cell(&table, "%s:%s", print_text(device, "vendor_id"),
                      print_text(device, "device_id"));
        grid_keys(&table, device, "nature", "-");
        cell_link(&table, device);
        grid_keys(&table, device, "numa_node|driver", "-");
        cell_sriov(&table, device);
    }
    grid_finish(out, &table);
}

void print_network(FILE *out, const json_t *machine)
{
    const json_t *list = json_object_get(machine, "network"), *nic;
    struct grid table;
    size_t i;

    if (!begin(out, "NETWORK", machine, "network", "no interface"))
        return;
    grid_init(&table, "NAME|KIND|NATURE|SPEED|STATE|MTU|DRIVER|NUMA|PCI");
    json_array_foreach (list, i, nic) {
        double speed = fact_number(nic, "speed_gbits_per_s", 0);

        grid_keys(&table, nic, "name", "-");
        grid_keys(&table, nic, "kind", "?");
        grid_keys(&table, nic, "nature", "-");
        if (speed > 0)
            grid_cell(&table, "%.4g Gb/s%s", speed,
                      fact_string(nic, "speed_why") ? " nominal" : "");
        else
            grid_cell(&table, "%s", fact_true(nic, "virtual") ? "-" : "?");
        grid_keys(&table, nic, "state|mtu|driver|numa_node|pci", "-");
    }
    grid_finish(out, &table);
}

/* The indices that a user must choose between, by type: "v1: 0 2, v2: 1 3". */
static void cell_gids(struct grid *table, const json_t *port)
{
    static const struct {
        const char *type, *label;
    } types[] = {{"IB/RoCE v1", "v1"}, {"RoCE v2", "v2"}};
    const json_t *gid;
    char text[256] = "";
    size_t i;

    for (size_t t = 0; t < 2; t++) {
        bool first = true;

        json_array_foreach (json_object_get(port, "gids"), i, gid) {
            size_t used = strlen(text);

            if (strcmp(print_text(gid, "type"), types[t].type))
                continue;
            if (first)
                used += (size_t)snprintf(text + used, sizeof(text) - used,
                                         "%s%s:", used ? ", " : "", types[t].label);
            if (used < sizeof(text))
                snprintf(text + used, sizeof(text) - used, " %lld", fact_integer(gid, "index", -1));
            first = false;
        }
    }
    grid_cell(table, "%s", text[0] ? text : "-");
}

static void rdma_row(struct grid *table, const json_t *device, const json_t *port)
{
    double rate = fact_number(port, "rate_gbits_per_s", 0);

    grid_keys(table, device, "name", "-");
    grid_keys(table, port, "port|state", "-");
    grid_cell(table, rate > 0 ? "%.4g Gb/s" : "?", rate);
    grid_keys(table, port, "link_layer", "-");
    grid_keys(table, device, "nature|driver|firmware|numa_node|pci", "-");
    cell_gids(table, port);
}

void print_rdma(FILE *out, const json_t *machine)
{
    const json_t *list = json_object_get(machine, "rdma"), *device, *port;
    struct grid table;
    size_t i, k;

    if (!begin(out, "RDMA", machine, "rdma", "no RDMA device"))
        return;
    grid_init(&table, "NAME|PORT|STATE|RATE|LAYER|NATURE|DRIVER|FIRMWARE|NUMA|PCI|GIDS");
    json_array_foreach (list, i, device) {
        if (!json_array_size(json_object_get(device, "ports")))
            rdma_row(&table, device, NULL);
        json_array_foreach (json_object_get(device, "ports"), k, port)
            rdma_row(&table, device, port);
    }
    grid_finish(out, &table);
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

void print_findings(FILE *out, const json_t *machine)
{
    struct exam *x = exam_new(machine);
    size_t unknown = n_unknown(machine);

    fprintf(out, "\nFINDINGS\n");
    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        if (r->state == EXAM_FOUND && !exam_repeats(x, r))
            print_line(out, r->check->id, "%s", exam_sentence(x, r));
    if (exam_count(x, EXAM_FOUND))
        print_line(out, "", "plumb doctor: what each costs, and its remedy");
    else if (unknown)
        print_line(out, "none",
                   "nothing to hold back a measurement in what was read; %zu facts are unknown",
                   unknown);
    else
        print_line(out, "none", "nothing found that would hold back a measurement");
    exam_free(x);
}
