/* SPDX-License-Identifier: Apache-2.0 */
/* What people read: the GPUs, and their PCIe links and ways to each other. */
#include <string.h>

#include "harness/probe/facts.h"
#include "harness/probe/print.h"

/* ---- PCIe, link by link ---- */

/* "gen 4 x16, 31.5 GB/s" of what it runs at, or of what both ends could do. */
static const char *side_text(struct print *p, const json_t *link, bool now)
{
    long long generation = fact_integer(link, now ? "generation" : "best_generation", 0);
    long long width = fact_integer(link, now ? "now_width" : "best_width", 0);

    if (!now && !width)
        return "?";
    if (!generation)
        return pool_text(p->pool, "%.1f GT/s x%lld",
                         fact_number(link, now ? "now_gt_s" : "best_gt_s", 0), width);
    return pool_text(p->pool, "gen %lld x%lld, %.1f GB/s", generation, width,
                     fact_number(link, now ? "now_gbytes_per_s" : "best_gbytes_per_s", 0));
}

/* What is lost, of lanes or of speed. A GPU's own link slows down while it has nothing to do. */
static const char *lost(bool fewer_lanes, bool slower, bool own)
{
    return fewer_lanes ? "lanes lost" : !slower ? "" : own ? "slow while idle?" : "slow";
}

static void link_row(struct rows *t, const char *then, const json_t *link)
{
    bool fewer = fact_integer(link, "now_width", 0) < fact_integer(link, "best_width", 0);
    bool known = json_is_boolean(json_object_get(link, "downtrained"));

    rows_print(t, "%s%s to %s", then, print_text(link, "device"), print_text(link, "port"));
    rows_cell(t, side_text(t->p, link, true));
    rows_cell(t, side_text(t->p, link, false));
    rows_cell(t, known ? lost(fewer, fact_true(link, "downtrained"), !*then) : "best not known");
}

static void print_gpu_links(struct print *p, const json_t *list)
{
    struct rows t = rows_begin(p, "PCIE LINK, FROM GPU TO ROOT|NOW|AT BEST|NOTE");

    FACT_EACH (list, gpu) {
        const char *address = print_text(gpu, "address");
        const json_t *device = fact_one_of(json_object_get(p->machine, "pci"), "address", address);
        const json_t *link = json_object_get(device, "link"), *pcie = json_object_get(gpu, "pcie");

        if (json_is_object(link))
            link_row(&t, "", link);
        else if (json_is_object(pcie)) { /* where the bus shows no link, in a guest say */
            long long width = fact_integer(pcie, "width", 0),
                      speed = fact_integer(pcie, "generation", 0);

            rows_print(&t, "%s by NVML; the way up is hidden", address);
            rows_print(&t, "gen %s x%s", print_integer(p, pcie, "generation"),
                       print_integer(p, pcie, "width"));
            rows_print(&t, "gen %s x%s", print_integer(p, pcie, "max_generation"),
                       print_integer(p, pcie, "max_width"));
            rows_cell(&t, lost(width && width < fact_integer(pcie, "max_width", 0),
                               speed && speed < fact_integer(pcie, "max_generation", 0), true));
        }
        FACT_EACH (json_object_get(device, "uplinks"), uplink)
            link_row(&t, "then ", uplink);
    }
}

/* ---- between GPUs ---- */

static const json_t *find_pair(const json_t *pairs, const char *a, const char *b)
{
    FACT_EACH (pairs, pair)
        if ((fact_is(pair, "a", a) && fact_is(pair, "b", b)) ||
            (fact_is(pair, "a", b) && fact_is(pair, "b", a)))
            return pair;
    return NULL;
}

/* "NV18" for 18 NVLinks, else the way over PCIe; in brackets where there is no peer access. */
static const char *pair_text(struct print *p, const json_t *pair)
{
    long long links = fact_integer(pair, "nvlinks", 0);
    const char *read = fact_string(pair, "p2p_read"), *write = fact_string(pair, "p2p_write");
    bool refused = (read && strcmp(read, "ok") != 0) || (write && strcmp(write, "ok") != 0);
    const char *way = links ? pool_text(p->pool, "NV%lld", links) : fact_string(pair, "relation");

    if (!way)
        way = json_is_integer(json_object_get(pair, "nvlinks")) ? "PCIe" : "?";
    return refused ? pool_text(p->pool, "(%s)", way) : way;
}

static void print_gpu_pairs(struct print *p, const json_t *gpus)
{
    enum { MATRIX_MAX = 18 };
    const json_t *pairs = json_object_get(gpus, "pairs"), *list = json_object_get(gpus, "devices");
    const char *address[MATRIX_MAX], *names = "GPU TO GPU|";
    size_t n = 0, known = 0;

    FACT_EACH (pairs, pair)
        known += fact_string(pair, "relation") || fact_string(pair, "p2p_read") ||
                 fact_integer(pair, "nvlinks", 0);
    FACT_EACH (list, gpu) /* those that have pairs */
        if (n < MATRIX_MAX && (fact_one_of(pairs, "a", print_text(gpu, "address")) ||
                               fact_one_of(pairs, "b", print_text(gpu, "address")))) {
            names = pool_text(p->pool, "%s|%zu", names, n);
            address[n++] = print_text(gpu, "address");
        }
    if (!known)
        return;
    struct rows t = rows_begin(p, names);
    for (size_t i = 0; i < n; i++) {
        rows_cell(&t, address[i]);
        rows_print(&t, "%zu", i);
        for (size_t k = 0; k < n; k++)
            rows_cell(&t, k == i ? "." : pair_text(p, find_pair(pairs, address[i], address[k])));
    }
    document_paragraph(
        p->d, "NVn: n NVLinks; PIX, PXB, PHB, NODE, SYS: over PCIe; in brackets: no peer access");
    if (json_array_size(list) > MATRIX_MAX)
        document_paragraph(p->d, pool_text(p->pool, "of %zu GPUs the first %d; --json has all",
                                           json_array_size(list), MATRIX_MAX));
}

static const char *yes_no(const json_t *object, const char *key, const char *yes, const char *no)
{
    const json_t *value = json_object_get(object, key);

    return json_is_true(value) ? yes : json_is_false(value) ? no : "?";
}

/* ---- what they are ---- */

/* The nearest adapters, by name: "PIX: mlx5_0 mlx5_1"; those for RDMA alone where there are any. */
static const char *nearest_text(struct print *p, const char *gpu)
{
    static const char *const order[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    const json_t *rdma = json_object_get(p->machine, "rdma");
    const char *text[5] = {"", "", "", "", ""};
    bool rdma_only = false;

    FACT_EACH (rdma, device)
        rdma_only = rdma_only || fact_string(device, "pci");
    FACT_EACH (json_object_get(p->machine, "proximity"), pair) {
        const char *nic = print_text(pair, "nic"),
                   *name = fact_string(fact_one_of(rdma, "pci", nic), "name");

        if (!fact_is(pair, "gpu", gpu) || (rdma_only && !name))
            continue;
        for (size_t o = 0; o < 5; o++)
            if (fact_is(pair, "relation", order[o]))
                text[o] =
                    pool_text(p->pool, "%s%s%s", text[o], *text[o] ? " " : "", name ? name : nic);
    }
    for (size_t o = 0; o < 5; o++)
        if (*text[o])
            return pool_text(p->pool, "%s: %s", order[o], text[o]);
    return "";
}

static void print_identities(struct print *p, const json_t *list)
{
    struct rows t =
        rows_begin(p, "ADDRESS|>CUDA|NAME|NATURE|>CC|>SMS|MEMORY|>PEAK|>MIG|>NUMA|NEAREST ADAPTER");

    FACT_EACH (list, gpu) {
        const json_t *mig = json_object_get(gpu, "mig");
        double peak = fact_number(gpu, "memory_gbytes_per_s", 0);

        rows_keys(&t, gpu, "address|cuda|name|nature|compute_capability|sms", "");
        rows_cell(&t, print_bytes(p, gpu, "memory_bytes"));
        rows_cell(&t, peak > 0 ? pool_text(p->pool, "%.0f GB/s", peak) : "");
        rows_cell(&t, fact_true(mig, "enabled")
                          ? pool_text(p->pool, "%zu slices",
                                      json_array_size(json_object_get(mig, "instances")))
                          : "");
        rows_keys(&t, gpu, "numa_node", "");
        rows_cell(&t, nearest_text(p, print_text(gpu, "address")));
    }
}

static void print_states(struct print *p, const json_t *list)
{
    struct rows t =
        rows_begin(p, "ADDRESS|POWER LIMIT|PERSISTENCE|ECC|BAR1|>COMPUTE|>VIRTUAL|>NVLINK");

    if (!fact_one_of(list, "source", "nvml"))
        return;
    FACT_EACH (list, gpu) {
        const json_t *nvlink = json_object_get(gpu, "nvlink"),
                     *errors = json_object_get(gpu, "ecc_errors");
        long long corrected = fact_integer(errors, "corrected", 0),
                  uncorrected = fact_integer(errors, "uncorrected", 0);
        double limit = fact_number(gpu, "power_limit_watts", 0),
               usual = fact_number(gpu, "power_default_watts", 0);

        rows_keys(&t, gpu, "address", "");
        /* "700 W", or "500 of 700 W" where it is set below what the card starts with. */
        if (limit <= 0)
            rows_cell(&t, "?");
        else if (usual > 0 && usual != limit)
            rows_print(&t, "%.0f of %.0f W", limit, usual);
        else
            rows_print(&t, "%.0f W", limit);
        rows_cell(&t, yes_no(gpu, "persistence_mode", "on", "off"));
        if (corrected || uncorrected)
            rows_print(&t, "on, %lld + %lld errors", corrected, uncorrected);
        else
            rows_cell(&t, yes_no(gpu, "ecc", "on", "off"));
        rows_cell(&t, print_bytes(p, gpu, "bar1_bytes"));
        rows_keys(&t, gpu, "compute_mode|virtualization", "?");
        if (fact_integer(nvlink, "links", 0))
            rows_print(&t, "%lld of %lld, %.0f GB/s", fact_integer(nvlink, "active", 0),
                       fact_integer(nvlink, "links", 0), fact_number(nvlink, "gbytes_per_s", 0));
        else
            rows_cell(&t, json_is_object(nvlink) ? "none" : "?");
    }
}

/* ---- all of it ---- */

static void print_driver(struct print *p, const json_t *gpus)
{
    const char *flavour = fact_string(gpus, "driver_flavour"),
               *version = fact_string(gpus, "driver_version");
    const char *modules = !flavour                       ? ""
                          : strcmp(flavour, "open") != 0 ? ", proprietary kernel modules"
                                                         : ", open kernel modules";

    if (fact_true(gpus, "nvml"))
        print_line(p, "driver", "%s%s, CUDA up to %s (NVML)%s", version ? version : "?", modules,
                   print_text(gpus, "cuda_version"),
                   fact_true(gpus, "simulated") ? "; a stand-in, for tests: simulated" : "");
    else if (json_array_size(json_object_get(gpus, "devices")))
        print_line(p, "driver", "%s%s; %s",
                   version ? version : print_text(gpus, "driver_version_why"), modules,
                   print_text(gpus, "nvml_why"));
    else if (json_is_array(json_object_get(gpus, "devices")))
        print_line(p, "none", "no GPU on the PCI bus; %s", print_text(gpus, "nvml_why"));
    else
        print_line(p, "?", "%s; %s", print_text(gpus, "devices_why"), print_text(gpus, "nvml_why"));
}

static void print_cuda(struct print *p, const json_t *gpus)
{
    const json_t *cuda = json_object_get(gpus, "cuda");
    const char *toolkit = fact_string(gpus, "toolkit_version");

    if (fact_true(cuda, "works"))
        print_line(p, "CUDA", "%s; built with %s, driver for up to %s; %s%s%s",
                   print_count(p, cuda, "devices", "device"), print_text(cuda, "toolkit_version"),
                   print_text(cuda, "driver_version"),
                   toolkit ? "toolkit here " : "no toolkit here", toolkit ? toolkit : "",
                   fact_true(cuda, "simulated") ? "; simulated" : "");
    else if (!fact_is(p->machine, "source", "recorded tree"))
        print_line(p, "CUDA", "not usable: %s", print_text(cuda, "works_why"));
}

static void print_fabric(struct print *p, const json_t *gpus)
{
    size_t members = 0, complete = 0;

    if (fact_integer(gpus, "nvswitches", 0))
        print_line(p, "NVSwitches", "%lld", fact_integer(gpus, "nvswitches", 0));
    FACT_EACH (json_object_get(gpus, "devices"), gpu) {
        const json_t *fabric = json_object_get(gpu, "fabric");

        members += json_is_object(fabric);
        complete += fact_is(fabric, "state", "completed");
    }
    if (members)
        print_line(p, "NVLink fabric", "complete for %zu of %zu GPUs", complete, members);
}

void print_gpus(struct print *p)
{
    const json_t *gpus = json_object_get(p->machine, "gpus"),
                 *list = json_object_get(gpus, "devices"),
                 *direct = json_object_get(gpus, "gpudirect");

    document_heading(p->d, 2, "GPUS", "");
    print_driver(p, gpus);
    if (!json_array_size(list))
        return;
    print_cuda(p, gpus);
    if (json_is_object(direct))
        print_line(p, "GPUDirect", "RDMA: nvidia_peermem %s, DMA-BUF %s; GDRCopy %s; Storage %s",
                   yes_no(gpus, "peer_memory_module", "loaded", "not loaded"),
                   yes_no(direct, "dma_buf", "yes", "no"), yes_no(direct, "gdrcopy", "yes", "no"),
                   yes_no(direct, "storage", "yes", "no"));
    print_fabric(p, gpus);
    if (!json_is_array(json_object_get(p->machine, "proximity")))
        print_line(p, "nearest", "? (%s)", print_text(p->machine, "proximity_why"));
    print_identities(p, list);
    print_states(p, list);
    print_gpu_links(p, list);
    print_gpu_pairs(p, gpus);
}
