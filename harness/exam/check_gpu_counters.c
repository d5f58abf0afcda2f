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

/* The driver counts since it was loaded, which no fact dates: at boot, or later. So a rate over the
 * uptime is the least that it can be. Without persistence mode the driver starts anew, and counts
 * from 0, with each first program. */
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

/* Of the time since boot. The driver does not count how long the GPU was busy: a share of it that is
 * low may be most of the work of a GPU that is rarely used. */
#define HELD_SHARE   0.002
#define HELD_SECONDS 60

static void held_of(struct exam *x, const json_t *gpu, const char *address)
{
    /* At full load each GPU meets its power limit: that is no fault (gpu-power looks at the limit). */
    static const struct {
        const char *key, *by;
    } reasons[] = {{"held_by_heat_seconds", "heat"},
                   {"held_by_power_brake_seconds", "the power supply (power brake)"},
                   {"held_by_board_limit_seconds", "the limits of its board"},
                   {"held_by_reliability_seconds", "voltage (reliability)"}};
    const json_t *counters = exam_fact(x, address, gpu, "counters");
    double most = 0, seconds, days;
    const char *by = "";

    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
        seconds = exam_value(counters, reasons[i].key, 0);
        if (json_object_get(counters, reasons[i].key))
            exam_get(x, counters, reasons[i].key);
        if (seconds > most) {
            most = seconds;
            by = reasons[i].by;
        }
    }
    if (!counters)
        return;
    if (most < HELD_SECONDS) {
        few_of(x, gpu, address);
        return;
    }
    if (!exam_days(x, address, &days))
        return;
    if (most < HELD_SHARE * days * 86400)
        exam_undated(x, address, most / 60, exam_format(x, "minutes held by %s in at most", by),
                     days);
    else
        exam_remedy(
            x,
            exam_found(x, address,
                       "%s held its clocks down for %.0f minutes since its driver was loaded, at "
                       "most %.4g days ago",
                       by, most / 60, days),
            "nvidia-smi -i %s -q -d PERFORMANCE,TEMPERATURE,POWER; look at fans, air and "
            "power supplies",
            address);
}

static void look_held(struct exam *x)
{
    each_nvidia(x, held_of);
}

/* As PCIe errors that were corrected: each repeats a packet. */
#define REPLAYS_MOST    100
#define REPLAYS_PER_DAY 10

static void replays_of(struct exam *x, const json_t *gpu, const char *address)
{
    double replays, days;

    if (!exam_number(x, address, gpu, "pcie.replays", &replays))
        return;
    if (replays <= REPLAYS_MOST) {
        few_of(x, gpu, address);
        return;
    }
    if (!exam_days(x, address, &days))
        return;
    if (replays < REPLAYS_PER_DAY * days)
        exam_undated(x, address, replays, "repeated PCIe packets in at most", days);
    else
        exam_remedy(
            x,
            exam_found(x, address,
                       "its PCIe link repeated %.0f packets since its driver was loaded, at "
                       "most %.4g days ago",
                       replays, days),
            "reseat %s, and look at its riser, cable and retimer", address);
}

static void look_replays(struct exam *x)
{
    each_nvidia(x, replays_of);
}

const struct exam_check exam_gpu_counters[] = {
    {.id = "gpu-held",
     .question = "Was each GPU rarely held back by heat, power supply, board or voltage?",
     .seen = "NVML: seconds for which each reason held the clocks down, since the driver was "
             "loaded, against /proc/uptime; persistence mode",
     .pipes = "GPU*",
     .counts = true,
     .look = look_held},
    {.id = "gpu-replays",
     .question = "Does the PCIe link of each GPU rarely repeat packets?",
     .seen = "NVML: PCIe replays since the driver was loaded, against /proc/uptime; persistence "
             "mode",
     .pipes = "GPU copies|Copies|GPU peers|Network|Collectives|Gradients|Allreduce*",
     .counts = true,
     .look = look_replays},
    {.id = NULL},
};
