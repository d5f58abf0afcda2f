/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of GPUs. Most facts come from NVML, and so need the NVIDIA driver. See exam.h. */
#include <math.h>
#include <string.h>

#include "harness/exam/exam.h"

/* Is there a device that would reach GPU memory: an adapter, or another GPU? */
static bool has_reader(struct exam *x)
{
    return exam_nvidia_gpus(x) > 1 || exam_has_adapter(x, exam_is_hardware);
}

/* ---- Each GPU */

/* GPUs of other makers do not run CUDA. */
static bool driver_of(struct exam *x, const json_t *gpu)
{
    const char *driver = exam_text(x, gpu, "driver"),
               *maker = fact_name(exam_device(x, exam_judged(x)), "vendor_id");

    if (!driver)
        return false;
    if (*maker && strcmp(maker, "10de") != 0)
        return exam_not_applicable(x, "no GPU of NVIDIA");
    if (!strcmp(driver, "none")) {
        exam_found(x, "the GPU has no driver: no program can use it");
        exam_remedy(x, "sudo modprobe nvidia");
    } else if (!strcmp(driver, "nouveau")) {
        exam_found(x, "nouveau drives the GPU: CUDA cannot use it");
        exam_remedy(x, "install the NVIDIA driver, which replaces nouveau");
    } else if (!strcmp(driver, "vfio-pci") || !strcmp(driver, "pci-stub")) {
        exam_found(x, "%s keeps the GPU for a guest: no program here can use it", driver);
    } else if (strcmp(driver, "nvidia") != 0 && strcmp(driver, "nvgpu") != 0) {
        exam_unknown(x, "whether CUDA can use a GPU by driver %s", driver);
    }
    return true;
}

static bool power_of(struct exam *x, const json_t *gpu)
{
    const json_t *limit = exam_nvml(x, gpu, "power_limit_watts"),
                 *usual = limit ? exam_nvml(x, gpu, "power_default_watts") : NULL;
    double now = json_number_value(limit), best = json_number_value(usual);

    if (usual && now < best)
        exam_found(x, "the power limit is %.0f W, by default %.0f W", now, best);
    return usual;
}

static bool memory_of(struct exam *x, const json_t *gpu)
{
    const json_t *errors = exam_nvml(x, gpu, "ecc_errors"),
                 *rows = errors ? exam_get(x, gpu, "remapped_rows") : NULL;
    double uncorrected = fact_number(errors, "uncorrected", 0);

    if (fact_true(rows, "failed")) {
        exam_found(x, "no spare rows are left for faulty memory");
        exam_remedy(x, "have GPU {} replaced");
    } else if (fact_true(rows, "pending")) {
        exam_found(x, "faulty memory stays in use until the next reset");
        exam_remedy(x, "sudo nvidia-smi -i {} -r");
    }
    if (uncorrected > 0)
        exam_found(x, "%.0f uncorrected memory errors since the driver was loaded", uncorrected);
    return errors;
}

static bool mig_of(struct exam *x, const json_t *gpu)
{
    const json_t *mig = exam_nvml(x, gpu, "mig");
    double sms = fact_number(gpu, "sms", 0), most = 0;

    if (!fact_true(mig, "enabled"))
        return mig;
    FACT_EACH (json_object_get(mig, "instances"), slice)
        most = fmax(most, fact_number(slice, "sms", 0));
    exam_found(x, "MIG is on: a program sees one slice of the GPU");
    if (sms > most && most > 0)
        exam_price_rest(x, most, sms, "GPU compute of one program", "multiprocessors");
    return true;
}

/* What makes a GPU slow, and not only bounds it: an idle one rests, and at full load each meets its
 * power limit. */
#define SLOWDOWNS "hardware slowdown|temperature (driver)|temperature (hardware)|power brake"

static bool throttle_of(struct exam *x, const json_t *gpu)
{
    const json_t *reasons = exam_nvml(x, gpu, "clock_reasons");

    FACT_EACH (reasons, one)
        if (fact_fits(SLOWDOWNS, fact_word(one)))
            return exam_found(x, "its clocks are held down now: %s", json_string_value(one));
    if (fact_has_word(reasons, "idle"))
        exam_unknown(x, "the GPU is idle: look again under load");
    return reasons;
}

/* HBM has bits of its own for it. Of GDDR, whose bus is narrower than HBM's, part of capacity and
 * bandwidth goes to it. Where the maker ships it on, it is as it should be. */
#define GDDR_BITS 512

static bool ecc_of(struct exam *x, const json_t *gpu)
{
    const json_t *ecc = exam_nvml(x, gpu, "ecc");
    double bits;

    if (!ecc || !exam_number(x, gpu, "memory_bus_bits", &bits))
        return false;
    if (json_is_true(ecc) && bits <= GDDR_BITS && json_is_false(exam_get(x, gpu, "ecc_default")))
        exam_found(x, "ECC was switched on, and takes part of the bandwidth of its GDDR memory");
    return true;
}

#define GIB (1024. * 1024 * 1024)

static bool window_of(struct exam *x, const json_t *gpu)
{
    const json_t *size = exam_fact(x, gpu, "bar1_bytes");
    double bytes = json_number_value(size), best;

    if (!size)
        return false;
    best = exam_value(x, gpu, "bar1_best_bytes", 0);
    if (bytes > 0 && best > bytes)
        exam_found(x, "other devices reach %.4g GiB of its memory at a time (BAR1), not %.4g GiB",
                   bytes / GIB, best / GIB);
    else if (json_is_false(exam_get(x, gpu, "bar1_covers_memory")))
        exam_found(x, "other devices reach %.4g of its %.4g GiB of memory at a time (BAR1)",
                   bytes / GIB, fact_number(gpu, "memory_bytes", 0) / GIB);
    return true;
}

/* Against the most that are active on a GPU of this name: bridges may wire a part of the links for
 * good. */
static bool nvlink_of(struct exam *x, const json_t *gpu)
{
    const json_t *nvlink = exam_nvml(x, gpu, "nvlink");
    double links = fact_number(nvlink, "links", 0), active = fact_number(nvlink, "active", 0),
           most = 0;

    if (!nvlink || !links || !active) /* none, or no bridge is on them */
        return false;
    FACT_EACH (exam_peek(x, "gpus.devices"), other)
        if (fact_is(other, "name", fact_name(gpu, "name")))
            most = fmax(most, fact_number(other, "nvlink.active", 0));
    if (active < links && active >= most) {
        exam_unknown(x, "whether more than %.0f of its %.0f NVLinks are wired", active, links);
    } else if (active < links) {
        exam_found(x, "%.0f NVLinks are active, on another of these GPUs %.0f", active, most);
        exam_price_rest(x, active, most, "NVLink bandwidth", "links");
    }
    return true;
}

static bool fabric_of(struct exam *x, const json_t *gpu)
{
    const json_t *fabric = json_object_get(gpu, "fabric");
    const char *state;

    if (!json_is_object(fabric)) {
        /* beside NVSwitches, a GPU of which NVML was not asked may be in a fabric */
        if (fact_number(exam_peek(x, "gpus"), "nvswitches", 0) > 0 &&
            !json_is_true(exam_peek(x, "gpus.nvml")))
            exam_nvml(x, gpu, "fabric");
        return false;
    }
    exam_get(x, gpu, "fabric");
    state = exam_text(x, fabric, "state");
    if (!state)
        return false;
    if (strcmp(state, "completed") != 0) {
        exam_found(x, "the NVLink fabric is not ready (%s): CUDA cannot start", state);
        exam_remedy(x, "sudo systemctl restart nvidia-fabricmanager");
    } else if (fact_number(fabric, "status", 0) > 0) {
        exam_found(x, "the GPU could not join the NVLink fabric (error %.0f)",
                   fact_number(fabric, "status", 0));
    }
    if (fact_true(fabric, "degraded"))
        exam_found(x, "the NVLink fabric has lost bandwidth");
    return true;
}

/* Where the bus does not show the link, NVML may: check_bus.c looks at the others. */
static bool lanes_of(struct exam *x, const json_t *gpu)
{
    double width, most;

    if (json_is_object(json_object_get(exam_device(x, exam_judged(x)), "link")) ||
        !exam_number(x, gpu, "pcie.width", &width) ||
        !exam_number(x, gpu, "pcie.max_width", &most) || !(most > 0))
        return false;
    if (width < most) {
        exam_found(x, "the PCIe link runs at x%.0f of x%.0f lanes", width, most);
        exam_price_rest(x, width, most, "bandwidth of the PCIe link", "lanes");
    }
    return true;
}

/* ---- All GPUs together */

static bool judge_cuda(struct exam *x)
{
    const json_t *works;

    if (!fact_is(exam_machine(x), "source", "this machine"))
        return false;
    works = exam_fact(x, NULL, "gpus.cuda.works");
    if (json_is_false(works))
        exam_found(x, "CUDA does not work: %s", fact_name(exam_peek(x, "gpus.cuda"), "works_why"));
    return works;
}

static bool judge_peers(struct exam *x)
{
    const json_t *pairs = exam_peek(x, "gpus.pairs"), *first = NULL;
    size_t refused = 0, known = 0, all = json_array_size(pairs);

    FACT_EACH (pairs, pair) {
        const char *read = fact_name(pair, "p2p_read");

        known += *read != 0;
        if (!*read || !strcmp(read, "ok"))
            continue;
        refused++;
        first = first ? first : pair;
    }
    if (refused)
        exam_found(x, "%zu of %zu pairs of GPUs have no peer access (%s and %s: %s)", refused, all,
                   fact_name(first, "a"), fact_name(first, "b"), fact_name(first, "p2p_read"));
    else if (all && !known)
        exam_unknown(x, "%s", fact_name(json_array_get(pairs, 0), "p2p_read_why"));
    return all;
}

static bool judge_rdma(struct exam *x)
{
    const json_t *module, *dma_buf;

    if (!exam_has_adapter(x, exam_is_hardware))
        return false;
    module = exam_get(x, NULL, "gpus.peer_memory_module");
    dma_buf = exam_get(x, NULL, "gpus.gpudirect.dma_buf");
    if (json_is_false(module) && json_is_false(dma_buf))
        exam_found(x, "adapters cannot reach GPU memory: no nvidia_peermem and no DMA-BUF");
    else if (!json_is_true(module) && !json_is_true(dma_buf))
        exam_fact(x, NULL, module ? "gpus.gpudirect.dma_buf" : "gpus.peer_memory_module");
    return true;
}

const struct exam_check exam_gpu[] = {
    {.id = "gpu-driver",
     .question = "Has each GPU a driver that CUDA can use?",
     .seen = "driver of each PCI function",
     .pipes = "GPU*|PCIe|Training step",
     .remedy = "sudo driverctl unset-override {}, if no guest needs it",
     .each = EXAM_GPUS,
     .judge_one = driver_of},
    {.id = "gpu-cuda",
     .question = "Does CUDA work?",
     .seen = "libcuda, asked by this build's module",
     .pipes = "GPU*|PCIe|Training step",
     .matters = true,
     .remedy = "plumb list",
     .when = exam_has_nvidia,
     .subject = "gpus",
     .judge = judge_cuda},
    {.id = "gpu-mode",
     .question = "May programs use each GPU?",
     .seen = "NVML: compute mode",
     .pipes = "GPU*|PCIe|Training step",
     .remedy = "sudo nvidia-smi -i {} -c 0",
     .each = EXAM_NVIDIA,
     .fact = "compute_mode",
     .bad = "prohibited",
     .found = "compute mode \"prohibited\": no program can use it"},
    {.id = "gpu-power",
     .question = "May each GPU draw its default power?",
     .seen = "NVML: enforced and default power limit",
     .pipes = "GPU matrix core|GPU memory|Training step",
     .remedy = "sudo nvidia-smi -i {} -pl {power_default_watts}",
     .each = EXAM_NVIDIA,
     .judge_one = power_of},
    {.id = "gpu-throttle",
     .question = "Are the clocks of each GPU free of slowdowns?",
     .seen = "NVML: reasons of the current clocks",
     .pipes = "GPU*|PCIe|Training step",
     .remedy = "nvidia-smi -i {} -q -d PERFORMANCE,TEMPERATURE,POWER",
     .each = EXAM_NVIDIA,
     .judge_one = throttle_of},
    {.id = "gpu-ecc",
     .question = "Does ECC take no bandwidth of GPU memory?",
     .seen = "NVML: ECC mode and its default, width of the memory bus",
     .pipes = "GPU memory|Training step",
     .cost = {EXAM_CITED, 0.15, 0.15, .controlled = true, .of = "rendering rate of GDDR GPUs",
              .source = "https://support.chaos.com/hc/en-us/articles/"
                        "24886637113617-ECC-State-for-Nvidia-GPUs-Error-Correcting-Code"},
     .remedy = "sudo nvidia-smi -i {} -e 0, where wrong bits may go unseen",
     .each = EXAM_NVIDIA,
     .judge_one = ecc_of},
    {.id = "gpu-persistence",
     .question = "Does the driver stay loaded without programs?",
     .seen = "NVML: persistence mode",
     .pipes = "GPU launch",
     .remedy = "sudo nvidia-smi -i {} -pm 1",
     .metal = true, /* in a guest the hypervisor's settings decide */
     .each = EXAM_NVIDIA,
     .fact = "persistence_mode",
     .bad = "false",
     .found = "persistence mode is off: each first program waits for the driver"},
    {.id = "gpu-memory",
     .question = "Is the memory of each GPU without faults?",
     .seen = "NVML: uncorrected ECC errors, remapped rows",
     .pipes = "GPU memory",
     .remedy = "sudo nvidia-smi -i {} -r, and have it replaced if they come again",
     .each = EXAM_NVIDIA,
     .judge_one = memory_of},
    {.id = "gpu-mig",
     .question = "Does a program see the whole GPU?",
     .seen = "NVML: MIG mode and instances",
     .pipes = "GPU*|PCIe|Training step",
     .remedy = "sudo nvidia-smi -i {} -mig 0",
     .each = EXAM_NVIDIA,
     .judge_one = mig_of},
    {.id = "gpu-bar",
     .question = "Can other devices reach all of each GPU's memory?",
     .seen = "NVML: BAR1; resource and resource*_resize of the PCI function",
     .pipes = "GPU peers|PCIe|GPU memory by RDMA|" EXAM_GROUP,
     .remedy = "switch resizable BAR and decoding above 4 GiB on in the firmware",
     .when = has_reader,
     .each = EXAM_NVIDIA,
     .judge_one = window_of},
    {.id = "gpu-lanes",
     .question = "Has the link of each GPU all its lanes, where the bus does not show it?",
     .seen = "NVML: current and highest link width",
     .pipes = "GPU copies|GPU peers|PCIe|GPU memory by RDMA|" EXAM_GROUP,
     .remedy = "reseat {}, check its riser and the slot's bifurcation in the firmware",
     .each = EXAM_NVIDIA,
     .judge_one = lanes_of},
    {.id = "gpu-nvlink",
     .question = "Are all NVLinks active?",
     .seen = "NVML: state of each link",
     .pipes = "GPU peers|PCIe|" EXAM_GROUP,
     .remedy = "nvidia-smi nvlink -s -i {}",
     .each = EXAM_NVIDIA,
     .judge_one = nvlink_of},
    {.id = "gpu-fabric",
     .question = "Is the NVLink fabric ready and whole?",
     .seen = "NVML: fabric state and health",
     .pipes = "GPU peers|PCIe|" EXAM_GROUP,
     .remedy = "sudo journalctl -u nvidia-fabricmanager",
     .each = EXAM_NVIDIA,
     .judge_one = fabric_of},
    {.id = "gpu-peers",
     .question = "Do GPUs reach each other's memory?",
     .seen = "NVML: peer access of each pair",
     .pipes = "GPU peers|PCIe|" EXAM_GROUP,
     .remedy = "nvidia-smi topo -p2p r",
     .subject = "gpus",
     .judge = judge_peers},
    {.id = "gpu-rdma",
     .question = "Can RDMA adapters reach GPU memory?",
     .seen = "module nvidia_peermem; DMA-BUF: open kernel modules, Linux 5.12 or newer",
     .pipes = "GPU memory by RDMA|" EXAM_GROUP,
     .matters = true,
     .cost = {EXAM_CITED, 0.12, 0.17, .controlled = true,
              .of = "bandwidth of collectives between hosts",
              .source = "https://github.com/NVIDIA/nccl/issues/1579"},
     .remedy = "sudo modprobe nvidia_peermem",
     .when = exam_has_nvidia,
     .subject = "gpus",
     .judge = judge_rdma},
    {.id = "gpu-encryption",
     .question = "Are copies between host and GPU free of encryption?",
     .seen = "NVML: confidential computing",
     .pipes = "GPU copies|PCIe|Training step",
     .cost = {EXAM_CITED, 0.13, 0.27, .controlled = true, .of = "throughput of LLM serving",
              .source = "https://arxiv.org/abs/2606.23969"},
     .remedy = "sudo nvidia-smi conf-compute -srs 0, or the GPU's CC mode off on the host",
     .when = exam_has_nvidia,
     .subject = "gpus",
     .fact = "gpus.confidential_computing",
     .bad = "true",
     .found = "confidential computing is on: copies between host and GPU are encrypted"},
    {.id = NULL},
};
