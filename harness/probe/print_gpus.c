/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that people read: the GPUs, and their PCIe links and ways to each other. */
#include <stdlib.h>
#include <string.h>

#include "harness/probe/facts.h"

enum { MATRIX_MAX = GRID_COLUMNS - 2 };

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

static void print_gpu_links(FILE *out, const json_t *machine, const json_t *list)
{
    const json_t *gpu, *uplink;
    struct grid table;
    size_t i, k, from = 0;

    grid_init(&table, "GPU|PCIE LINK, UP TO THE ROOT|NOW|AT BEST|NOTE");
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

static void print_gpu_pairs(FILE *out, const json_t *gpus)
{
    const json_t *pairs = json_object_get(gpus, "pairs"), *list = json_object_get(gpus, "devices");
    const json_t *gpu, *pair;
    const char *address[MATRIX_MAX];
    size_t i, k, n = 0, known = 0;
    char heading[16 * MATRIX_MAX + 32] = "GPU TO GPU|";
    struct grid table;

    json_array_foreach (pairs, k, pair)
        known += fact_string(pair, "relation") || fact_string(pair, "p2p_read") ||
                 fact_integer(pair, "nvlinks", 0);
    json_array_foreach (list, i, gpu) /* those that have pairs */
        if (n < MATRIX_MAX && (fact_one_of(pairs, "a", print_text(gpu, "address")) ||
                               fact_one_of(pairs, "b", print_text(gpu, "address"))))
            address[n++] = print_text(gpu, "address");
    if (!known)
        return;
    for (i = 0; i < n; i++)
        snprintf(heading + strlen(heading), sizeof(heading) - strlen(heading), "|%zu", i);
    grid_init(&table, heading);
    for (i = 0; i < n; i++) {
        grid_cell(&table, "%s", address[i]);
        grid_cell(&table, "%zu", i);
        for (k = 0; k < n; k++)
            if (k == i)
                grid_cell(&table, ".");
            else
                cell_pair(&table, find_pair(pairs, address[i], address[k]));
    }
    fputc('\n', out);
    grid_finish(out, &table);
    fputs("  NVn: n NVLinks; PIX, PXB, PHB, NODE, SYS: over PCIe; in brackets: no peer access\n",
          out);
    if (json_array_size(list) > MATRIX_MAX)
        fprintf(out, "  of %zu GPUs the first %d; --json has all\n", json_array_size(list),
                MATRIX_MAX);
}

static const char *yes_no(const json_t *object, const char *key, const char *yes, const char *no)
{
    const json_t *value = json_object_get(object, key);

    return json_is_true(value) ? yes : json_is_false(value) ? no : "?";
}

/* ---- the nearest adapter ---- */

/* Where in "proximity" a GPU's entries are: they stand together, in the order of the GPUs. */
struct near {
    const json_t *list;
    size_t from, to;
};

static void find_near(struct near *near, const char *gpu)
{
    size_t n = json_array_size(near->list), i = near->to;

    for (size_t k = 0; k < n; k++, i++) /* goes on from where the last one ended */
        if (!strcmp(print_text(json_array_get(near->list, i % n), "gpu"), gpu))
            break;
    near->from = near->to = n ? i % n : 0;
    while (near->to < n && !strcmp(print_text(json_array_get(near->list, near->to), "gpu"), gpu))
        near->to++;
}

/* All adapters with this relation to the GPU, by name; those for RDMA alone where there are any. */
static void list_related(const json_t *machine, const struct near *near, const char *relation,
                         char *text, size_t size)
{
    const json_t *rdma = json_object_get(machine, "rdma"), *device;
    bool rdma_only = false;
    size_t used = 0, k;

    json_array_foreach (rdma, k, device)
        rdma_only = rdma_only || fact_string(device, "pci");

    for (size_t i = near->from; i < near->to && used < size; i++) {
        const json_t *pair = json_array_get(near->list, i);
        const char *nic = print_text(pair, "nic"),
                   *name = fact_string(fact_one_of(rdma, "pci", nic), "name");

        if (strcmp(print_text(pair, "relation"), relation) != 0)
            continue;
        if (rdma_only && !name)
            continue;
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", name ? name : nic);
    }
}

static void cell_nearest(struct grid *table, const json_t *machine, struct near *near,
                         const char *gpu)
{
    static const char *const order[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    char text[256] = "";

    find_near(near, gpu);
    for (size_t o = 0; o < sizeof(order) / sizeof(*order); o++) {
        list_related(machine, near, order[o], text, sizeof(text));
        if (text[0]) {
            grid_cell(table, "%s: %s", order[o], text);
            return;
        }
    }
    grid_cell(table, "-");
}

/* ---- what they are ---- */

static void identity_row(struct grid *table, const json_t *machine, struct near *near,
                         const json_t *gpu)
{
    const json_t *mig = json_object_get(gpu, "mig");
    double bytes = fact_number(gpu, "memory_bytes", 0),
           peak = fact_number(gpu, "memory_gbytes_per_s", 0);
    char buf[32];

    grid_keys(table, gpu, "address|cuda|name|nature|compute_capability|sms", "-");
    grid_cell(table, "%s", bytes > 0 ? print_bytes(bytes, buf) : "?");
    grid_cell(table, peak > 0 ? "%.0f GB/s" : "-", peak);
    if (mig && fact_true(mig, "enabled"))
        grid_cell(table, "%zu slices", json_array_size(json_object_get(mig, "instances")));
    else
        grid_cell(table, "-");
    grid_keys(table, gpu, "numa_node", "-");
    cell_nearest(table, machine, near, print_text(gpu, "address"));
}

static void print_identities(FILE *out, const json_t *machine, const json_t *list)
{
    struct near near = {.list = json_object_get(machine, "proximity")};
    const json_t *gpu;
    struct grid table;
    size_t i;

    grid_init(&table, "ADDRESS|CUDA|NAME|NATURE|CC|SMS|MEMORY|PEAK|MIG|NUMA|NEAREST ADAPTER");
    json_array_foreach (list, i, gpu)
        identity_row(&table, machine, &near, gpu);
    grid_finish(out, &table);
}

/* "700 W", or "500 of 700 W" where it is set below what the card starts with. */
static void cell_power(struct grid *table, const json_t *gpu)
{
    double limit = fact_number(gpu, "power_limit_watts", 0),
           usual = fact_number(gpu, "power_default_watts", 0);

    if (limit <= 0)
        grid_cell(table, "?");
    else if (usual > 0 && usual != limit)
        grid_cell(table, "%.0f of %.0f W", limit, usual);
    else
        grid_cell(table, "%.0f W", limit);
}

static void state_row(struct grid *table, const json_t *gpu)
{
    const json_t *nvlink = json_object_get(gpu, "nvlink"),
                 *errors = json_object_get(gpu, "ecc_errors");
    long long corrected = fact_integer(errors, "corrected", 0),
              uncorrected = fact_integer(errors, "uncorrected", 0);
    double bar1 = fact_number(gpu, "bar1_bytes", 0);
    char buf[32];

    grid_keys(table, gpu, "address", "-");
    cell_power(table, gpu);
    grid_cell(table, "%s", yes_no(gpu, "persistence_mode", "on", "off"));
    if (corrected || uncorrected)
        grid_cell(table, "on, %lld + %lld errors", corrected, uncorrected);
    else
        grid_cell(table, "%s", yes_no(gpu, "ecc", "on", "off"));
    grid_cell(table, "%s", bar1 > 0 ? print_bytes(bar1, buf) : "?");
    grid_keys(table, gpu, "compute_mode|virtualization", "?");
    if (fact_integer(nvlink, "links", 0))
        grid_cell(table, "%lld of %lld, %.0f GB/s", fact_integer(nvlink, "active", 0),
                  fact_integer(nvlink, "links", 0), fact_number(nvlink, "gbytes_per_s", 0));
    else
        grid_cell(table, "%s", json_is_object(nvlink) ? "none" : "?");
}

static void print_states(FILE *out, const json_t *list)
{
    const json_t *gpu;
    struct grid table;
    size_t i;

    if (!fact_one_of(list, "source", "nvml"))
        return;
    grid_init(&table, "ADDRESS|POWER LIMIT|PERSISTENCE|ECC|BAR1|COMPUTE|VIRTUAL|NVLINK");
    fputc('\n', out);
    json_array_foreach (list, i, gpu)
        state_row(&table, gpu);
    grid_finish(out, &table);
}

/* ---- all of it ---- */

static void print_driver(FILE *out, const json_t *gpus)
{
    const char *flavour = fact_string(gpus, "driver_flavour");
    const char *stand_in = fact_true(gpus, "simulated") ? "; a stand-in, for tests: simulated" : "";
    const char *modules = !flavour                       ? ""
                          : strcmp(flavour, "open") != 0 ? ", proprietary kernel modules"
                                                         : ", open kernel modules";

    if (fact_true(gpus, "nvml"))
        print_line(out, "driver", "%s%s, CUDA up to %s (NVML)%s",
                   print_text(gpus, "driver_version"), modules, print_text(gpus, "cuda_version"),
                   stand_in);
    else if (json_array_size(json_object_get(gpus, "devices")))
        print_line(out, "driver", "%s%s; %s",
                   fact_string(gpus, "driver_version") ? print_text(gpus, "driver_version")
                                                       : print_text(gpus, "driver_version_why"),
                   modules, print_text(gpus, "nvml_why"));
    else if (json_is_array(json_object_get(gpus, "devices")))
        print_line(out, "none", "no GPU on the PCI bus; %s", print_text(gpus, "nvml_why"));
    else
        print_line(out, "?", "%s; %s", print_text(gpus, "devices_why"),
                   print_text(gpus, "nvml_why"));
}

static void print_cuda(FILE *out, const json_t *machine, const json_t *gpus)
{
    const json_t *cuda = json_object_get(gpus, "cuda");
    const char *toolkit = fact_string(gpus, "toolkit_version");
    char here[64] = "no toolkit here";

    if (toolkit)
        snprintf(here, sizeof(here), "toolkit here %s", toolkit);
    if (fact_true(cuda, "works"))
        print_line(out, "CUDA", "%lld device%s; built with %s, driver for up to %s; %s%s",
                   fact_integer(cuda, "devices", 0),
                   fact_integer(cuda, "devices", 0) == 1 ? "" : "s",
                   print_text(cuda, "toolkit_version"), print_text(cuda, "driver_version"), here,
                   fact_true(cuda, "simulated") ? "; simulated" : "");
    else if (strcmp(print_text(machine, "source"), "recorded tree") != 0)
        print_line(out, "CUDA", "not usable: %s", print_text(cuda, "works_why"));
}

static void print_fabric(FILE *out, const json_t *gpus)
{
    const json_t *gpu;
    size_t i, members = 0, complete = 0;

    if (fact_integer(gpus, "nvswitches", 0))
        print_line(out, "NVSwitches", "%lld", fact_integer(gpus, "nvswitches", 0));
    json_array_foreach (json_object_get(gpus, "devices"), i, gpu) {
        const json_t *fabric = json_object_get(gpu, "fabric");

        members += json_is_object(fabric);
        complete += !strcmp(print_text(fabric, "state"), "completed");
    }
    if (members)
        print_line(out, "NVLink fabric", "complete for %zu of %zu GPUs", complete, members);
}

void print_gpus(FILE *out, const json_t *machine)
{
    const json_t *gpus = json_object_get(machine, "gpus"), *list = json_object_get(gpus, "devices"),
                 *direct = json_object_get(gpus, "gpudirect");

    fprintf(out, "\nGPUS\n");
    print_driver(out, gpus);
    if (!json_array_size(list))
        return;
    print_cuda(out, machine, gpus);
    if (json_is_object(direct))
        print_line(out, "GPUDirect", "RDMA: nvidia_peermem %s, DMA-BUF %s; GDRCopy %s; Storage %s",
                   yes_no(gpus, "peer_memory_module", "loaded", "not loaded"),
                   yes_no(direct, "dma_buf", "yes", "no"), yes_no(direct, "gdrcopy", "yes", "no"),
                   yes_no(direct, "storage", "yes", "no"));
    print_fabric(out, gpus);
    print_identities(out, machine, list);
    if (!json_is_array(json_object_get(machine, "proximity")))
        print_line(out, "nearest", "? (%s)", print_text(machine, "proximity_why"));
    print_states(out, list);
    print_gpu_links(out, machine, list);
    print_gpu_pairs(out, gpus);
}
