/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of GPUs. Most facts come from NVML, and so need the NVIDIA driver. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

static const json_t *gpus_of(const struct exam *x)
{
    return json_object_get(exam_machine(x), "gpus");
}

/* A fact that NVML knows, or an unknown with the reason why there is no NVML. */
static const json_t *fact_of(struct exam *x, const json_t *gpu, const char *path)
{
    const char *why = exam_name(gpus_of(x), "nvml_why");
    const json_t *value = exam_get(x, gpu, path);

    if (!value && *why)
        exam_unknown(x, exam_name(gpu, "address"), "%s", why);
    else if (!value)
        exam_fact(x, exam_name(gpu, "address"), gpu, path);
    return value;
}

static size_t count_nvidia(const struct exam *x)
{
    const json_t *gpu;
    size_t n = 0, i;

    json_array_foreach (json_object_get(gpus_of(x), "devices"), i, gpu)
        n += exam_is(gpu, "driver", "nvidia");
    return n;
}

/* An adapter in hardware, which could reach GPU memory by itself. */
static bool has_rdma(const struct exam *x)
{
    const json_t *device;
    size_t i;

    json_array_foreach (json_object_get(exam_machine(x), "rdma"), i, device)
        if (exam_does_rdma(x, device) &&
            (exam_is(device, "nature", "physical") || exam_is(device, "nature", "passthrough") ||
             exam_is(device, "nature", "sriov-vf")))
            return true;
    return false;
}

/* ---- Each GPU. `look_gpu` adds one result, or none. */

typedef void look_gpu(struct exam *x, const json_t *gpu, const char *address);

static void each_gpu(struct exam *x, look_gpu *look)
{
    const json_t *devices = exam_list(x, "gpus.devices"), *gpu;
    size_t i;

    json_array_foreach (devices, i, gpu)
        look(x, gpu, exam_name(gpu, "address"));
}

/* The same for those that the NVIDIA driver runs. */
static void each_nvidia(struct exam *x, look_gpu *look)
{
    const json_t *devices = exam_list(x, "gpus.devices"), *gpu;
    size_t i;

    json_array_foreach (devices, i, gpu)
        if (exam_is(gpu, "driver", "nvidia"))
            look(x, gpu, exam_name(gpu, "address"));
}

static bool is_for_guests(const char *driver)
{
    return !strcmp(driver, "vfio-pci") || !strcmp(driver, "pci-stub");
}

/* GPUs of other makers do not run CUDA. */
static void driver_of(struct exam *x, const json_t *gpu, const char *address)
{
    const char *driver = exam_text(x, address, gpu, "driver"),
               *maker = exam_name(exam_device(x, address), "vendor_id");

    if (!driver)
        return;
    if (*maker && strcmp(maker, "10de") != 0)
        exam_not_applicable(x, address, "no GPU of NVIDIA");
    else if (!strcmp(driver, "none"))
        exam_remedy(x, exam_found(x, address, "the GPU has no driver: no program can use it"),
                    "sudo modprobe nvidia");
    else if (!strcmp(driver, "nouveau"))
        exam_remedy(x, exam_found(x, address, "nouveau drives the GPU: CUDA cannot use it"),
                    "install the NVIDIA driver, which replaces nouveau");
    else if (is_for_guests(driver))
        exam_remedy(x,
                    exam_found(x, address,
                               "%s keeps the GPU for a guest: no program here can use it", driver),
                    "sudo driverctl unset-override %s, if no guest needs it", address);
    else if (!strcmp(driver, "nvidia") || !strcmp(driver, "nvgpu"))
        exam_fine(x, address);
    else
        exam_unknown(x, address, "whether CUDA can use a GPU by driver %s", driver);
}

static void look_driver(struct exam *x)
{
    each_gpu(x, driver_of);
}

static void power_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *limit = fact_of(x, gpu, "power_limit_watts"), *usual;
    struct exam_result *r;

    if (!limit)
        return;
    usual = fact_of(x, gpu, "power_default_watts");
    if (!usual)
        return;
    if (json_number_value(limit) >= json_number_value(usual)) {
        exam_fine(x, address);
        return;
    }
    r = exam_found(x, address, "the power limit is %.0f W, by default %.0f W",
                   json_number_value(limit), json_number_value(usual));
    exam_remedy(x, r, "sudo nvidia-smi -i %s -pl %.0f", address, json_number_value(usual));
}

static void look_power(struct exam *x)
{
    each_nvidia(x, power_of);
}

static void persistence_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *mode = fact_of(x, gpu, "persistence_mode");

    if (!mode)
        return;
    if (json_is_false(mode))
        exam_remedy(x,
                    exam_found(x, address,
                               "persistence mode is off: each first program waits for the driver"),
                    "sudo nvidia-smi -i %s -pm 1", address);
    else
        exam_fine(x, address);
}

/* In a guest the hypervisor's settings decide. */
static void look_persistence(struct exam *x)
{
    if (exam_metal(x))
        each_nvidia(x, persistence_of);
}

static void memory_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *errors = fact_of(x, gpu, "ecc_errors"), *rows;
    double uncorrected = exam_value(errors, "uncorrected", 0);

    if (!errors)
        return;
    rows = exam_get(x, gpu, "remapped_rows");
    if (json_is_true(json_object_get(rows, "failed")))
        exam_remedy(x, exam_found(x, address, "no spare rows are left for faulty memory"),
                    "have GPU %s replaced", address);
    else if (json_is_true(json_object_get(rows, "pending")))
        exam_remedy(x, exam_found(x, address, "faulty memory stays in use until the next reset"),
                    "sudo nvidia-smi -i %s -r", address);
    if (uncorrected > 0)
        exam_remedy(x,
                    exam_found(x, address,
                               "%.0f uncorrected memory errors since the driver was loaded",
                               uncorrected),
                    "sudo nvidia-smi -i %s -r, and have it replaced if they come again", address);
    if (!exam_has(x, address))
        exam_fine(x, address);
}

static void look_memory(struct exam *x)
{
    each_nvidia(x, memory_of);
}

/* The multiprocessors of the largest slice. */
static double largest_slice(const json_t *mig)
{
    const json_t *slice;
    double most = 0;
    size_t i;

    json_array_foreach (json_object_get(mig, "instances"), i, slice)
        most = exam_value(slice, "sms", 0) > most ? exam_value(slice, "sms", 0) : most;
    return most;
}

static void mig_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *mig = fact_of(x, gpu, "mig");
    double sms = exam_value(gpu, "sms", 0), most = largest_slice(mig);
    struct exam_result *r;

    if (!mig)
        return;
    if (!json_is_true(json_object_get(mig, "enabled"))) {
        exam_fine(x, address);
        return;
    }
    r = exam_found(x, address, "MIG is on: a program sees one slice of the GPU");
    if (sms > most && most > 0)
        exam_price(x, r, 1 - most / sms, "GPU compute of one program",
                   "1 - %.0f/%.0f multiprocessors", most, sms);
    exam_remedy(x, r, "sudo nvidia-smi -i %s -mig 0", address);
}

static void look_mig(struct exam *x)
{
    each_nvidia(x, mig_of);
}

static void mode_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *mode = fact_of(x, gpu, "compute_mode");

    if (!mode)
        return;
    if (exam_is(gpu, "compute_mode", "prohibited"))
        exam_remedy(x, exam_found(x, address, "compute mode \"prohibited\": no program can use it"),
                    "sudo nvidia-smi -i %s -c 0", address);
    else
        exam_fine(x, address);
}

static void look_mode(struct exam *x)
{
    each_nvidia(x, mode_of);
}

/* What makes a GPU slow, and not only bounds it: an idle one rests, and at full load each meets its
 * power limit. */
static bool is_slowdown(const char *reason)
{
    static const char *const reasons[] = {"hardware slowdown", "temperature (driver)",
                                          "temperature (hardware)", "power brake"};

    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        if (!strcmp(reason, reasons[i]))
            return true;
    return false;
}

static bool is_among(const json_t *reasons, const char *reason)
{
    const json_t *one;
    size_t i;

    json_array_foreach (reasons, i, one)
        if (json_is_string(one) && !strcmp(json_string_value(one), reason))
            return true;
    return false;
}

static void throttle_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *reasons = fact_of(x, gpu, "clock_reasons"), *one;
    size_t i;

    json_array_foreach (reasons, i, one)
        if (json_is_string(one) && is_slowdown(json_string_value(one))) {
            exam_remedy(
                x,
                exam_found(x, address, "its clocks are held down now: %s", json_string_value(one)),
                "nvidia-smi -i %s -q -d PERFORMANCE,TEMPERATURE,POWER", address);
            return;
        }
    if (is_among(reasons, "idle"))
        exam_unknown(x, address, "the GPU is idle: look again under load");
    else if (reasons)
        exam_fine(x, address);
}

static void look_throttle(struct exam *x)
{
    each_nvidia(x, throttle_of);
}

/* HBM has bits of its own for it. Of GDDR, whose bus is narrower than HBM's, part of capacity and
 * bandwidth goes to it. Where the maker ships it on, it is as it should be. */
#define GDDR_BITS 512

static void ecc_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *ecc = fact_of(x, gpu, "ecc");
    double bits;

    if (!ecc || !exam_number(x, address, gpu, "memory_bus_bits", &bits))
        return;
    if (!json_is_true(ecc) || bits > GDDR_BITS || !json_is_false(exam_get(x, gpu, "ecc_default")))
        exam_fine(x, address);
    else
        exam_remedy(
            x,
            exam_found(x, address,
                       "ECC was switched on, and takes part of the bandwidth of its GDDR memory"),
            "sudo nvidia-smi -i %s -e 0, where wrong bits may go unseen", address);
}

static void look_ecc(struct exam *x)
{
    each_nvidia(x, ecc_of);
}

#define GIB (1024. * 1024 * 1024)

static void window_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *size = exam_fact(x, address, gpu, "bar1_bytes");
    double bytes = json_number_value(size), best = exam_value(gpu, "bar1_best_bytes", 0);

    if (!size)
        return;
    exam_get(x, gpu, "bar1_best_bytes");
    if (bytes > 0 && best > bytes)
        exam_remedy(x,
                    exam_found(x, address,
                               "other devices reach %.4g GiB of its memory at a time (BAR1), not "
                               "%.4g GiB",
                               bytes / GIB, best / GIB),
                    "switch resizable BAR and decoding above 4 GiB on in the firmware");
    else if (json_is_false(exam_get(x, gpu, "bar1_covers_memory")))
        exam_remedy(
            x,
            exam_found(x, address,
                       "other devices reach %.4g of its %.4g GiB of memory at a time (BAR1)",
                       bytes / GIB, exam_value(gpu, "memory_bytes", 0) / GIB),
            "switch resizable BAR and decoding above 4 GiB on in the firmware");
    else
        exam_fine(x, address);
}

/* One GPU without an adapter that does RDMA has no device that would reach its memory. */
static void look_window(struct exam *x)
{
    if (count_nvidia(x) > 1 || has_rdma(x))
        each_nvidia(x, window_of);
}

/* The most that are active on a GPU of this name: bridges may wire a part of the links for good. */
static double most_active(const struct exam *x, const char *name)
{
    const json_t *gpu;
    double most = 0;
    size_t i;

    json_array_foreach (json_object_get(gpus_of(x), "devices"), i, gpu) {
        double active = exam_value(json_object_get(gpu, "nvlink"), "active", 0);

        if (exam_is(gpu, "name", name) && active > most)
            most = active;
    }
    return most;
}

static void nvlink_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *nvlink = fact_of(x, gpu, "nvlink");
    double links = exam_value(nvlink, "links", 0), active = exam_value(nvlink, "active", 0),
           most = most_active(x, exam_name(gpu, "name"));
    struct exam_result *r;

    if (!nvlink || !links || !active) /* none, or no bridge is on them */
        return;
    if (active >= links) {
        exam_fine(x, address);
        return;
    }
    if (active >= most) {
        exam_unknown(x, address, "whether more than %.0f of its %.0f NVLinks are wired", active,
                     links);
        return;
    }
    r = exam_found(x, address, "%.0f NVLinks are active, on another of these GPUs %.0f", active,
                   most);
    exam_price(x, r, 1 - active / most, "NVLink bandwidth", "1 - %.0f/%.0f links", active, most);
    exam_remedy(x, r, "nvidia-smi nvlink -s -i %s", address);
}

static void look_nvlink(struct exam *x)
{
    each_nvidia(x, nvlink_of);
}

/* Beside NVSwitches, a GPU of which NVML was not asked may be in a fabric. */
static bool may_be_in_fabric(const struct exam *x)
{
    return exam_value(gpus_of(x), "nvswitches", 0) > 0 &&
           !json_is_true(json_object_get(gpus_of(x), "nvml"));
}

static void fabric_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *fabric = json_object_get(gpu, "fabric");
    const char *state;

    if (!json_is_object(fabric)) {
        if (may_be_in_fabric(x))
            fact_of(x, gpu, "fabric");
        return;
    }
    exam_get(x, gpu, "fabric");
    state = exam_text(x, address, fabric, "state");
    if (!state)
        return;
    if (strcmp(state, "completed") != 0)
        exam_remedy(
            x,
            exam_found(x, address, "the NVLink fabric is not ready (%s): CUDA cannot start", state),
            "sudo systemctl restart nvidia-fabricmanager");
    else if (exam_value(fabric, "status", 0) > 0)
        exam_remedy(x,
                    exam_found(x, address, "the GPU could not join the NVLink fabric (error %.0f)",
                               exam_value(fabric, "status", 0)),
                    "sudo journalctl -u nvidia-fabricmanager");
    if (json_is_true(json_object_get(fabric, "degraded")))
        exam_remedy(x, exam_found(x, address, "the NVLink fabric has lost bandwidth"),
                    "sudo journalctl -u nvidia-fabricmanager");
    if (!exam_has(x, address))
        exam_fine(x, address);
}

static void look_fabric(struct exam *x)
{
    each_nvidia(x, fabric_of);
}

/* Where the bus does not show the link, NVML may: check_bus.c looks at the others. */
static void lanes_of(struct exam *x, const json_t *gpu, const char *address)
{
    const json_t *device;
    struct exam_result *r;
    double width, most;
    size_t i;

    json_array_foreach (json_object_get(exam_machine(x), "pci"), i, device)
        if (exam_is(device, "address", address) && json_is_object(json_object_get(device, "link")))
            return;
    if (!exam_number(x, address, gpu, "pcie.width", &width) ||
        !exam_number(x, address, gpu, "pcie.max_width", &most) || !(most > 0))
        return;
    if (width >= most) {
        exam_fine(x, address);
        return;
    }
    r = exam_found(x, address, "the PCIe link runs at x%.0f of x%.0f lanes", width, most);
    exam_price(x, r, 1 - width / most, "bandwidth of the PCIe link", "1 - %.0f/%.0f lanes", width,
               most);
    exam_remedy(x, r, "reseat %s, check its riser and the slot's bifurcation in the firmware",
                address);
}

static void look_lanes(struct exam *x)
{
    each_nvidia(x, lanes_of);
}

/* ---- All GPUs together */

static void look_cuda(struct exam *x)
{
    const json_t *works;

    if (!count_nvidia(x) || !exam_is(exam_machine(x), "source", "this machine"))
        return;
    works = exam_get(x, NULL, "gpus.cuda.works");
    if (json_is_false(works))
        exam_remedy(x,
                    exam_found(x, "gpus", "CUDA does not work: %s",
                               exam_name(json_object_get(gpus_of(x), "cuda"), "works_why")),
                    "plumb list");
    else if (works)
        exam_fine(x, "gpus");
    else
        exam_fact(x, "gpus", NULL, "gpus.cuda.works");
}

static void look_peers(struct exam *x)
{
    const json_t *pair, *first = NULL;
    size_t i, refused = 0, known = 0, all = 0;

    json_array_foreach (json_object_get(gpus_of(x), "pairs"), i, pair) {
        const char *read = exam_name(pair, "p2p_read");

        all++;
        known += *read != 0;
        if (!*read || !strcmp(read, "ok"))
            continue;
        refused++;
        first = first ? first : pair;
    }
    if (refused)
        exam_remedy(x,
                    exam_found(x, "gpus",
                               "%zu of %zu pairs of GPUs have no peer access (%s and %s: %s)",
                               refused, all, exam_name(first, "a"), exam_name(first, "b"),
                               exam_name(first, "p2p_read")),
                    "nvidia-smi topo -p2p r");
    else if (known)
        exam_fine(x, "gpus");
    else if (all)
        exam_unknown(
            x, "gpus", "%s",
            exam_name(json_array_get(json_object_get(gpus_of(x), "pairs"), 0), "p2p_read_why"));
}

static void look_rdma(struct exam *x)
{
    const json_t *module, *dma_buf;

    if (!count_nvidia(x) || !has_rdma(x))
        return;
    module = exam_get(x, NULL, "gpus.peer_memory_module");
    dma_buf = exam_get(x, NULL, "gpus.gpudirect.dma_buf");
    if (json_is_true(module) || json_is_true(dma_buf))
        exam_fine(x, "gpus");
    else if (json_is_false(module) && json_is_false(dma_buf))
        exam_remedy(
            x,
            exam_found(x, "gpus",
                       "adapters cannot reach GPU memory: no nvidia_peermem and no DMA-BUF"),
            "sudo modprobe nvidia_peermem");
    else
        exam_fact(x, "gpus", NULL, module ? "gpus.gpudirect.dma_buf" : "gpus.peer_memory_module");
}

static void look_confidential(struct exam *x)
{
    bool on;

    if (!count_nvidia(x) || !exam_flag(x, "gpus", NULL, "gpus.confidential_computing", &on))
        return;
    if (!on)
        exam_fine(x, "gpus");
    else
        exam_remedy(x,
                    exam_found(x, "gpus",
                               "confidential computing is on: copies between host and GPU are "
                               "encrypted"),
                    "sudo nvidia-smi conf-compute -srs 0, or the GPU's CC mode off on the host");
}

const struct exam_check exam_gpu[] = {
    {.id = "gpu-driver",
     .question = "Has each GPU a driver that CUDA can use?",
     .seen = "driver of each PCI function",
     .pipes = "GPU*|PCIe|Training step",
     .look = look_driver},
    {.id = "gpu-cuda",
     .question = "Does CUDA work?",
     .seen = "libcuda, asked by this build's module",
     .pipes = "GPU*|PCIe|Training step",
     .matters = true,
     .look = look_cuda},
    {.id = "gpu-mode",
     .question = "May programs use each GPU?",
     .seen = "NVML: compute mode",
     .pipes = "GPU*|PCIe|Training step",
     .look = look_mode},
    {.id = "gpu-power",
     .question = "May each GPU draw its default power?",
     .seen = "NVML: enforced and default power limit",
     .pipes = "GPU matrix core|GPU memory|Training step",
     .look = look_power},
    {.id = "gpu-throttle",
     .question = "Are the clocks of each GPU free of slowdowns?",
     .seen = "NVML: reasons of the current clocks",
     .pipes = "GPU*|PCIe|Training step",
     .look = look_throttle},
    {.id = "gpu-ecc",
     .question = "Does ECC take no bandwidth of GPU memory?",
     .seen = "NVML: ECC mode and its default, width of the memory bus",
     .pipes = "GPU memory|Training step",
     .cost = {EXAM_CITED, 0.15, 0.15, .controlled = true, .of = "rendering rate of GDDR GPUs",
              .source = "https://support.chaos.com/hc/en-us/articles/"
                        "24886637113617-ECC-State-for-Nvidia-GPUs-Error-Correcting-Code"},
     .look = look_ecc},
    {.id = "gpu-persistence",
     .question = "Does the driver stay loaded without programs?",
     .seen = "NVML: persistence mode",
     .pipes = "GPU launch",
     .look = look_persistence},
    {.id = "gpu-memory",
     .question = "Is the memory of each GPU without faults?",
     .seen = "NVML: uncorrected ECC errors, remapped rows",
     .pipes = "GPU memory",
     .look = look_memory},
    {.id = "gpu-mig",
     .question = "Does a program see the whole GPU?",
     .seen = "NVML: MIG mode and instances",
     .pipes = "GPU*|PCIe|Training step",
     .look = look_mig},
    {.id = "gpu-bar",
     .question = "Can other devices reach all of each GPU's memory?",
     .seen = "NVML: BAR1; resource and resource*_resize of the PCI function",
     .pipes = "GPU peers|PCIe|GPU memory by RDMA|" EXAM_GROUP,
     .look = look_window},
    {.id = "gpu-lanes",
     .question = "Has the link of each GPU all its lanes, where the bus does not show it?",
     .seen = "NVML: current and highest link width",
     .pipes = "GPU copies|GPU peers|PCIe|GPU memory by RDMA|" EXAM_GROUP,
     .look = look_lanes},
    {.id = "gpu-nvlink",
     .question = "Are all NVLinks active?",
     .seen = "NVML: state of each link",
     .pipes = "GPU peers|PCIe|" EXAM_GROUP,
     .look = look_nvlink},
    {.id = "gpu-fabric",
     .question = "Is the NVLink fabric ready and whole?",
     .seen = "NVML: fabric state and health",
     .pipes = "GPU peers|PCIe|" EXAM_GROUP,
     .look = look_fabric},
    {.id = "gpu-peers",
     .question = "Do GPUs reach each other's memory?",
     .seen = "NVML: peer access of each pair",
     .pipes = "GPU peers|PCIe|" EXAM_GROUP,
     .look = look_peers},
    {.id = "gpu-rdma",
     .question = "Can RDMA adapters reach GPU memory?",
     .seen = "module nvidia_peermem; DMA-BUF: open kernel modules, Linux 5.12 or newer",
     .pipes = "GPU memory by RDMA|" EXAM_GROUP,
     .matters = true,
     .cost = {EXAM_CITED, 0.12, 0.17, .controlled = true,
              .of = "bandwidth of collectives between hosts",
              .source = "https://github.com/NVIDIA/nccl/issues/1579"},
     .look = look_rdma},
    {.id = "gpu-encryption",
     .question = "Are copies between host and GPU free of encryption?",
     .seen = "NVML: confidential computing",
     .pipes = "GPU copies|PCIe|Training step",
     .cost = {EXAM_CITED, 0.13, 0.27, .controlled = true, .of = "throughput of LLM serving",
              .source = "https://arxiv.org/abs/2606.23969"},
     .look = look_confidential},
    {.id = NULL},
};
