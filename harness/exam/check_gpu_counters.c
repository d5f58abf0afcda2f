/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what the driver of a GPU counted since it was loaded. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

typedef void look_gpu(struct exam *x, const json_t *gpu, const char *address);

/* Each that the NVIDIA driver runs; an unknown with the reason where NVML cannot be asked. */
static void each_nvidia(struct exam *x, look_gpu *look)
{
    const json_t *gpus = json_object_get(exam_machine(x), "gpus"),
                 *devices = exam_list(x, "gpus.devices"), *gpu;
    const char *why = exam_name(gpus, "nvml_why");
    size_t i;

    json_array_foreach (devices, i, gpu) {
        const char *address = exam_name(gpu, "address");

        if (!exam_is(gpu, "driver", "nvidia"))
            continue;
        if (*why && json_is_null(json_object_get(gpus, "nvml")))
            exam_unknown(x, address, "%s", why);
        else
            look(x, gpu, address);
    }
}

/* The driver counts since it was loaded, which no fact dates: at boot, or later. Without persistence
 * mode it starts anew, and counts from 0, with each first program. */
static void few_of(struct exam *x, const json_t *gpu, const char *address)
{
    bool persistent;

    if (!exam_flag(x, address, gpu, "persistence_mode", &persistent))
        return;
    if (persistent)
        exam_fine(x, address);
    else
        exam_unknown(x, address,
                     "without persistence mode, its driver counts from 0 with each first program");
}

/* Seconds: a fault are 60 s, and more than 0.2 % of the time; half a second of a second or two. The
 * driver does not count how long the GPU was busy: a share that is low may be most of its work. */
static enum exam_when held_when(struct exam *x, const json_t *gpu, const char *address,
                                const char *key, struct exam_span *span)
{
    const char *const keys[] = {key, NULL};
    const struct exam_rate rate = {"counters", keys, 0.002 * 86400, 60, 0.5};

    return exam_rate_when(x, address, gpu, &rate, span);
}

static void find_held(struct exam *x, const char *address, const char *by,
                      const struct exam_span *span)
{
    exam_remedy(x,
                exam_found(x, address, "%s held its clocks down for %.*f s %s", by, span->bad < 100,
                           span->bad, span->text),
                "nvidia-smi -i %s -q -d PERFORMANCE,TEMPERATURE,POWER; look at fans, air and "
                "power supplies",
                address);
}

static void held_of(struct exam *x, const json_t *gpu, const char *address)
{
    /* At full load each GPU meets its power limit: that is no fault (gpu-power looks at the limit). */
    static const struct {
        const char *key, *by;
    } reasons[] = {{"held_by_heat_seconds", "heat"},
                   {"held_by_hardware_heat_seconds", "heat (by the hardware)"},
                   {"held_by_power_brake_seconds", "the power supply (power brake)"},
                   {"held_by_board_limit_seconds", "the limits of its board"},
                   {"held_by_reliability_seconds", "voltage (reliability)"}};
    struct exam_span span, most = {0};
    enum exam_when worst = EXAM_FEW;
    const char *by = "";

    if (!exam_fact(x, address, gpu, "counters"))
        return;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
        enum exam_when when = held_when(x, gpu, address, reasons[i].key, &span);

        if (when == EXAM_NOT_READ)
            return;
        if (when == EXAM_FEW || (worst == EXAM_NOW && when == EXAM_UNDATED) ||
            (worst == when && span.bad <= most.bad))
            continue;
        worst = when;
        most = span;
        by = reasons[i].by;
    }
    if (worst == EXAM_FEW)
        few_of(x, gpu, address);
    else if (worst == EXAM_NOW)
        find_held(x, address, by, &most);
    else
        exam_share_undated(x, address, &most, exam_format(x, "seconds held by %s in", by));
}

static void look_held(struct exam *x)
{
    each_nvidia(x, held_of);
}

/* As PCIe errors that were corrected: each repeats a packet. */
static void replays_of(struct exam *x, const json_t *gpu, const char *address)
{
    static const char *const replays[] = {"replays", NULL};
    static const struct exam_rate rate = {"pcie", replays, 10, 100, 100};
    struct exam_span span;
    enum exam_when when = exam_rate_when(x, address, gpu, &rate, &span);

    if (when == EXAM_FEW)
        few_of(x, gpu, address);
    else if (when == EXAM_UNDATED)
        exam_share_undated(x, address, &span, "repeated PCIe packets in");
    else if (when == EXAM_NOW)
        exam_remedy(
            x,
            exam_found(x, address, "its PCIe link repeated %.0f packets %s", span.bad, span.text),
            "reseat %s, and look at its riser, cable and retimer", address);
}

static void look_replays(struct exam *x)
{
    each_nvidia(x, replays_of);
}

const struct exam_check exam_gpu_counters[] = {
    {.id = "gpu-held",
     .question = "Was each GPU rarely held back by heat, power supply, board or voltage?",
     .seen = "NVML, twice: seconds for which each reason held the clocks down; persistence mode",
     .pipes = "GPU*|PCIe|Training step",
     .counts = true,
     .look = look_held},
    {.id = "gpu-replays",
     .question = "Does the PCIe link of each GPU rarely repeat packets?",
     .seen = "NVML, twice: PCIe replays; persistence mode",
     .pipes = "GPU copies|GPU peers|PCIe|GPU memory by RDMA|Network*|" EXAM_GROUP,
     .counts = true,
     .look = look_replays},
    {.id = NULL},
};
