/* SPDX-License-Identifier: Apache-2.0 */
/* The table that people read: the PCIe links of each GPU up to the root, and how GPUs reach one
 * another. */
#include "harness/probe/facts.h"
#include "harness/probe/grid.h"
#include "harness/probe/print.h"

#include <string.h>

enum { MATRIX_MAX = GRID_COLUMNS - 2 };

static void finish(FILE *out, struct grid *table)
{
    grid_print(out, table);
    grid_release(table);
}

/* ---- PCIe, link by link ---- */

static void cell_link_side(struct grid *table, const json_t *link, const char *side)
{
    static const char *const keys[] = {"gt_s", "width", "gbytes_per_s"};
    bool now = !strcmp(side, "now");
    char key[3][32];

    for (int i = 0; i < 3; i++)
        snprintf(key[i], sizeof(key[i]), "%s_%s", side, keys[i]);
    long long generation = fact_integer(link, now ? "generation" : "best_generation", 0);
    if (!now && !fact_integer(link, key[1], 0))
        grid_cell(table, "?");
    else if (generation)
        grid_cell(table, "gen %lld x%lld, %.1f GB/s", generation, fact_integer(link, key[1], 0),
                  fact_number(link, key[2], 0));
    else
        grid_cell(table, "%.1f GT/s x%lld", fact_number(link, key[0], 0),
                  fact_integer(link, key[1], 0));
}

/* What is lost, of lanes or of speed. A GPU's own link slows down while it has nothing to do. */
static const char *lost(bool fewer_lanes, bool slower, bool own)
{
    return fewer_lanes ? "lanes lost" : !slower ? "-" : own ? "slow while idle?" : "slow";
}

static void link_row(struct grid *table, const char *gpu, const json_t *link)
{
    bool fewer = fact_integer(link, "now_width", 0) < fact_integer(link, "best_width", 0);
    bool known = json_is_boolean(json_object_get(link, "downtrained"));

    grid_cell(table, "%s", gpu);
    grid_cell(table, "%s to %s", print_text(link, "device"), print_text(link, "port"));
    cell_link_side(table, link, "now");
    cell_link_side(table, link, "best");
    grid_cell(table, "%s",
              known ? lost(fewer, fact_true(link, "downtrained"), *gpu != 0) : "best not known");
}

/* Where the bus shows no link, in a guest say, NVML may. */
static void nvml_link_row(struct grid *table, const json_t *gpu)
{
    const json_t *pcie = json_object_get(gpu, "pcie");
    static const char *const keys[2][2] = {{"generation", "width"},
                                           {"max_generation", "max_width"}};
    long long value[2][2];

    if (!json_is_object(pcie))
        return;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            value[i][k] = fact_integer(pcie, keys[i][k], 0);
    grid_cell(table, "%s", print_text(gpu, "address"));
    grid_cell(table, "by NVML; the way up is hidden");
    for (int i = 0; i < 2; i++) {
        char text[2][24];

        for (int k = 0; k < 2; k++)
            snprintf(text[k], sizeof(text[k]), value[i][k] ? "%lld" : "?", value[i][k]);
        grid_cell(table, "gen %s x%s", text[0], text[1]);
    }
    grid_cell(table, "%s",
              lost(value[0][1] && value[0][1] < value[1][1],
                   value[0][0] && value[0][0] < value[1][0], true));
}

/* GPUs stand in the order of the PCI list: the search goes on from where the last one ended. */
static const json_t *pci_entry(const json_t *list, const char *address, size_t *from)
{
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n; i++) {
        const json_t *device = json_array_get(list, (*from + i) % n);

        if (strcmp(print_text(device, "address"), address) != 0)
            continue;
        *from = (*from + i) % n;
        return device;
    }
    return NULL;
}

void print_gpu_links(FILE *out, const json_t *machine, const json_t *list)
{
    const json_t *gpu, *uplink;
    struct grid table;
    size_t i, k, from = 0;

    if (grid_init(&table, "GPU|PCIE LINK, UP TO THE ROOT|NOW|AT BEST|NOTE"))
        return;
    json_array_foreach (list, i, gpu) {
        const json_t *device =
            pci_entry(json_object_get(machine, "pci"), print_text(gpu, "address"), &from);
        const json_t *link = json_object_get(device, "link");

        if (json_is_object(link))
            link_row(&table, print_text(gpu, "address"), link);
        else
            nvml_link_row(&table, gpu);
        json_array_foreach (json_object_get(device, "uplinks"), k, uplink)
            link_row(&table, "", uplink);
    }
    if (table.rows > 1) {
        fputc('\n', out);
        grid_print(out, &table);
    }
    grid_release(&table);
}

/* ---- between GPUs ---- */

static const json_t *find_pair(const json_t *pairs, const char *a, const char *b)
{
    const json_t *pair;
    size_t i;

    json_array_foreach (pairs, i, pair)
        if ((!strcmp(print_text(pair, "a"), a) && !strcmp(print_text(pair, "b"), b)) ||
            (!strcmp(print_text(pair, "a"), b) && !strcmp(print_text(pair, "b"), a)))
            return pair;
    return NULL;
}

/* "NV18" for 18 NVLinks, else the way over PCIe; in brackets where there is no peer access. */
static void cell_pair(struct grid *table, const json_t *pair)
{
    long long links = fact_integer(pair, "nvlinks", 0);
    const char *read = fact_string(pair, "p2p_read"), *write = fact_string(pair, "p2p_write");
    bool refused = (read && strcmp(read, "ok") != 0) || (write && strcmp(write, "ok") != 0);
    char way[32];

    if (links)
        snprintf(way, sizeof(way), "NV%lld", links);
    else
        snprintf(way, sizeof(way), "%s",
                 !fact_string(pair, "relation") && json_object_get(pair, "nvlinks") &&
                         !json_is_null(json_object_get(pair, "nvlinks"))
                     ? "PCIe"
                     : print_text(pair, "relation"));
    grid_cell(table, refused ? "(%s)" : "%s", way);
}

static bool is_known(const json_t *pairs)
{
    const json_t *pair;
    size_t i;

    json_array_foreach (pairs, i, pair)
        if (fact_string(pair, "relation") || fact_string(pair, "p2p_read") ||
            fact_integer(pair, "nvlinks", 0))
            return true;
    return false;
}

static bool is_in_pairs(const json_t *pairs, const char *address)
{
    const json_t *pair;
    size_t i;

    json_array_foreach (pairs, i, pair)
        if (!strcmp(print_text(pair, "a"), address) || !strcmp(print_text(pair, "b"), address))
            return true;
    return false;
}

/* The GPUs that have pairs, by address; at most MATRIX_MAX. */
static size_t list_paired(const json_t *list, const json_t *pairs, const char **address)
{
    const json_t *gpu;
    size_t i, n = 0;

    json_array_foreach (list, i, gpu)
        if (n < MATRIX_MAX && is_in_pairs(pairs, print_text(gpu, "address")))
            address[n++] = print_text(gpu, "address");
    return n;
}

void print_gpu_pairs(FILE *out, const json_t *gpus)
{
    const json_t *pairs = json_object_get(gpus, "pairs"), *list = json_object_get(gpus, "devices");
    const char *address[MATRIX_MAX];
    size_t n = list_paired(list, pairs, address);
    char heading[16 * MATRIX_MAX + 32] = "GPU TO GPU|";
    struct grid table;

    if (!is_known(pairs))
        return;
    for (size_t i = 0; i < n; i++)
        snprintf(heading + strlen(heading), sizeof(heading) - strlen(heading), "|%zu", i);
    if (grid_init(&table, heading))
        return;
    for (size_t i = 0; i < n; i++) {
        grid_cell(&table, "%s", address[i]);
        grid_cell(&table, "%zu", i);
        for (size_t k = 0; k < n; k++)
            if (k == i)
                grid_cell(&table, ".");
            else
                cell_pair(&table, find_pair(pairs, address[i], address[k]));
    }
    fputc('\n', out);
    finish(out, &table);
    fputs("  NVn: n NVLinks; PIX, PXB, PHB, NODE, SYS: over PCIe; in brackets: no peer access\n",
          out);
    if (json_array_size(list) > MATRIX_MAX)
        fprintf(out, "  of %zu GPUs the first %d; --json has all\n", json_array_size(list),
                MATRIX_MAX);
}
