/* SPDX-License-Identifier: Apache-2.0 */
/* What a buyer should know of the GPUs before reading a single number. */
#include "harness/probe/gpu_parts.h"
#include "harness/probe/pci.h"

#include <string.h>

static bool says(const json_t *object, const char *key, const char *text)
{
    const char *value = fact_string(object, key);

    return value && !strcmp(value, text);
}

static void find_driver(struct probe *p, const json_t *gpu, const char *address)
{
    const char *driver = fact_string(gpu, "driver");

    if (!driver) /* not known */
        return;
    if (!strcmp(driver, "none"))
        fact_find(p, SEVERITY_WARN, address, "%s (gpu) has no driver: it cannot be used", address);
    else if (!strcmp(driver, "nouveau"))
        fact_find(p, SEVERITY_WARN, address, "%s (gpu) is driven by nouveau: CUDA cannot use it",
                  address);
    else if (!strcmp(driver, "vfio-pci"))
        fact_find(p, SEVERITY_INFO, address, "%s (gpu) is set aside for a guest (vfio-pci)",
                  address);
}

static void find_share(struct probe *p, const json_t *gpu, const char *address)
{
    if (says(gpu, "nature", "vgpu"))
        fact_find(p, SEVERITY_INFO, address,
                  "%s is a vGPU: other guests may share the GPU behind it", address);
    if (fact_true(json_object_get(gpu, "mig"), "enabled"))
        fact_find(p, SEVERITY_INFO, address,
                  "%s has MIG enabled: a program sees one slice of it, not the whole", address);
    if (says(gpu, "compute_mode", "prohibited"))
        fact_find(p, SEVERITY_WARN, address,
                  "%s is closed to programs (compute mode prohibited): as root, nvidia-smi -c 0",
                  address);
    else if (says(gpu, "compute_mode", "exclusive process"))
        fact_find(p, SEVERITY_INFO, address,
                  "%s takes one program at a time (compute mode exclusive process)", address);
}

static void find_power(struct probe *p, const json_t *gpu, const char *address)
{
    double limit = fact_number(gpu, "power_limit_watts", 0),
           usual = fact_number(gpu, "power_default_watts", 0);

    if (limit > 0 && limit < usual)
        fact_find(p, SEVERITY_WARN, address,
                  "%s may draw %.0f W of its usual %.0f W: large matrix products will be slower",
                  address, limit, usual);
    if (json_is_false(json_object_get(gpu, "persistence_mode")) && probe_on_metal(p))
        fact_find(p, SEVERITY_INFO, address,
                  "%s is without persistence mode: each first program waits for the driver to wake "
                  "it (nvidia-smi -pm 1, as root)",
                  address);
}

/* Through which other devices reach the GPU's memory. */
static void find_window(struct probe *p, const json_t *gpu, const char *address)
{
    double bytes = fact_number(gpu, "bar1_bytes", 0), best = fact_number(gpu, "bar1_best_bytes", 0);

    if (best > bytes && bytes > 0)
        fact_find(p, SEVERITY_INFO, address,
                  "%s shows other devices %.4g GiB of its memory at a time (BAR1) and could show "
                  "%.4g: switch resizable BAR on in the firmware",
                  address, bytes / (1 << 30), best / (1 << 30));
    else if (json_is_false(json_object_get(gpu, "bar1_covers_memory")))
        fact_find(p, SEVERITY_INFO, address,
                  "%s shows other devices %.4g of its %.4g GiB of memory at a time (BAR1)", address,
                  bytes / (1 << 30), fact_number(gpu, "memory_bytes", 0) / (1 << 30));
}

static void find_memory(struct probe *p, const json_t *gpu, const char *address)
{
    const json_t *errors = json_object_get(gpu, "ecc_errors"),
                 *rows = json_object_get(gpu, "remapped_rows");
    long long uncorrected = fact_integer(errors, "uncorrected", 0);

    if (json_is_false(json_object_get(gpu, "ecc")))
        fact_find(p, SEVERITY_INFO, address, "%s runs without ECC", address);
    if (uncorrected)
        fact_find(p, SEVERITY_WARN, address,
                  "%s has had %lld uncorrected memory errors since its driver was loaded", address,
                  uncorrected);
    if (fact_true(rows, "failed"))
        fact_find(p, SEVERITY_WARN, address,
                  "%s has no spare rows left for bad memory: have it replaced", address);
    else if (fact_true(rows, "pending"))
        fact_find(p, SEVERITY_WARN, address,
                  "%s has bad memory that the next reset of the GPU takes out of use", address);
    find_window(p, gpu, address);
}

/* Where the bus shows the link, pcilink.c has found it. */
static void find_hidden_link(struct probe *p, const json_t *gpu, const char *address)
{
    const json_t *pcie = json_object_get(gpu, "pcie");
    const struct pci_device *d = p->pci ? pci_find(p->pci, address) : NULL;
    long long width = fact_integer(pcie, "width", 0), most = fact_integer(pcie, "max_width", 0);

    if (d && json_is_object(json_object_get(d->json, "link")))
        return;
    if (width && width < most)
        fact_find(p, SEVERITY_WARN, address,
                  "%s runs at x%lld of x%lld lanes by NVML: look at seating, riser and the slot's "
                  "bifurcation",
                  address, width, most);
}

static void find_links(struct probe *p, const json_t *gpu, const char *address)
{
    const json_t *nvlink = json_object_get(gpu, "nvlink"), *fabric = json_object_get(gpu, "fabric");
    long long links = fact_integer(nvlink, "links", 0), active = fact_integer(nvlink, "active", 0);

    if (active && active < links)
        fact_find(p, SEVERITY_WARN, address, "%s has %lld of %lld NVLinks active", address, active,
                  links);
    if (json_is_object(fabric) && !says(fabric, "state", "completed"))
        fact_find(p, SEVERITY_WARN, address,
                  "%s waits for the NVLink fabric (%s): CUDA starts only when nvidia-fabricmanager "
                  "has set it up",
                  address, fact_string(fabric, "state") ? fact_string(fabric, "state") : "?");
    else if (fact_integer(fabric, "status", 0))
        fact_find(p, SEVERITY_WARN, address,
                  "%s could not join the NVLink fabric (NVML error %lld): see nvidia-fabricmanager",
                  address, fact_integer(fabric, "status", 0));
    if (fact_true(fabric, "degraded"))
        fact_find(p, SEVERITY_WARN, address, "%s: its NVLink fabric has lost bandwidth", address);
    find_hidden_link(p, gpu, address);
}

/* Once for all pairs, with the first as an example. */
static void find_pairs(struct probe *p, const json_t *gpus)
{
    const json_t *pairs = json_object_get(gpus, "pairs"), *pair, *first = NULL;
    size_t i, refused = 0;

    json_array_foreach (pairs, i, pair) {
        const char *read = fact_string(pair, "p2p_read");

        if (!read || !strcmp(read, "ok"))
            continue;
        refused++;
        first = first ? first : pair;
    }
    if (refused)
        fact_find(
            p, SEVERITY_INFO, "gpus",
            "%zu of %zu pairs of GPUs have no peer access (first %s and %s: %s): their copies "
            "go through the machine's memory",
            refused, json_array_size(pairs), fact_string(first, "a"), fact_string(first, "b"),
            fact_string(first, "p2p_read"));
}

/* An adapter in hardware, which could reach GPU memory by itself. */
static bool has_real_rdma(const struct probe *p)
{
    const json_t *list = json_object_get(p->machine, "rdma"), *device;
    size_t i;

    json_array_foreach (list, i, device)
        if (says(device, "nature", "physical") || says(device, "nature", "passthrough") ||
            says(device, "nature", "sriov-vf"))
            return true;
    return false;
}

static void find_rdma_to_gpus(struct probe *p, const json_t *gpus)
{
    const json_t *dma_buf = json_object_get(json_object_get(gpus, "gpudirect"), "dma_buf");

    if (!has_real_rdma(p) || !json_is_false(json_object_get(gpus, "peer_memory_module")) ||
        json_is_true(dma_buf))
        return;
    if (json_is_false(dma_buf))
        fact_find(
            p, SEVERITY_WARN, "gpus",
            "nvidia_peermem is not loaded, and this driver has no DMA-BUF: adapters reach GPU "
            "memory through the machine's (modprobe nvidia_peermem, as root)");
    else
        fact_find(p, SEVERITY_INFO, "gpus",
                  "nvidia_peermem is not loaded: RDMA straight from GPU memory then needs DMA-BUF, "
                  "of which is not known whether it is there");
}

static void find_cuda(struct probe *p, const json_t *gpus)
{
    const json_t *cuda = json_object_get(gpus, "cuda");

    if (p->tree.live && json_is_false(json_object_get(cuda, "works")))
        fact_find(p, SEVERITY_WARN, "gpus", "CUDA cannot be used here: %s",
                  fact_string(cuda, "works_why"));
    if (fact_true(gpus, "confidential_computing"))
        fact_find(
            p, SEVERITY_INFO, "gpus",
            "confidential computing is on: copies to and from GPUs are encrypted on their way, "
            "far below what the link could do");
    if (fact_true(gpus, "simulated") || fact_true(cuda, "simulated"))
        fact_find(p, SEVERITY_WARN, "gpus",
                  "the GPUs' libraries are stand-ins, for tests: nothing of what they say is real");
}

void probe_gpu_findings(struct probe *p)
{
    const json_t *gpus = json_object_get(p->machine, "gpus"), *gpu;
    bool nvidia = false;
    size_t i;

    json_array_foreach (json_object_get(gpus, "devices"), i, gpu) {
        const char *address = fact_string(gpu, "address");

        nvidia = nvidia || says(gpu, "driver", "nvidia");
        find_driver(p, gpu, address);
        find_share(p, gpu, address);
        find_power(p, gpu, address);
        find_memory(p, gpu, address);
        find_links(p, gpu, address);
    }
    if (!nvidia)
        return;
    find_cuda(p, gpus);
    find_pairs(p, gpus);
    find_rdma_to_gpus(p, gpus);
}
