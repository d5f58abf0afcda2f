/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what the driver of a GPU counted since it was loaded. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

/* An unknown with the reason where NVML cannot be asked. */
static bool has_nvml(struct exam *x)
{
    const char *why = fact_word(exam_peek(x, "gpus.nvml_why"));

    if (*why && json_is_null(exam_peek(x, "gpus.nvml")))
        return !exam_unknown(x, "%s", why);
    return true;
}

/* The driver counts since it was loaded, which no fact dates: at boot, or later. Without persistence
 * mode it starts anew, and counts from 0, with each first program. */
static bool counts_all(struct exam *x, const json_t *gpu)
{
    bool persistent;

    if (!exam_flag(x, gpu, "persistence_mode", &persistent))
        return false;
    if (!persistent)
        exam_unknown(x,
                     "without persistence mode, its driver counts from 0 with each first program");
    return true;
}

static bool held_of(struct exam *x, const json_t *gpu)
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

    if (!has_nvml(x) || !exam_fact(x, gpu, "counters"))
        return false;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
        /* Seconds: a fault are 60 s, and more than 0.2 % of the time; half a second of a second or
         * two. The driver does not count how long the GPU was busy: a share that is low may be most
         * of its work. */
        const char *const keys[] = {reasons[i].key, NULL};
        const struct exam_rate rate = {"counters", keys, 0.002 * 86400, 60, 0.5};
        enum exam_when when = exam_rate_when(x, gpu, &rate, &span);

        if (when == EXAM_NOT_READ)
            return false;
        if (when == EXAM_FEW || (worst == EXAM_NOW && when == EXAM_UNDATED) ||
            (worst == when && span.bad <= most.bad))
            continue;
        worst = when;
        most = span;
        by = reasons[i].by;
    }
    if (worst == EXAM_FEW)
        return counts_all(x, gpu);
    if (worst == EXAM_NOW)
        exam_found(x, "%s held its clocks down for %.*f s %s", by, most.bad < 100, most.bad,
                   most.text);
    else
        exam_share_undated(x, &most, exam_format(x, "seconds held by %s in", by));
    return true;
}

/* As PCIe errors that were corrected: each repeats a packet. */
static bool replays_of(struct exam *x, const json_t *gpu)
{
    static const char *const replays[] = {"replays", NULL};
    static const struct exam_rate rate = {"pcie", replays, 10, 100, 100};
    static const struct exam_event repeated[] = {
        {.rate = &rate,
         .found = "its PCIe link repeated {bad} packets {when}",
         .undated = "repeated PCIe packets in"},
        {.found = NULL}};
    enum exam_when when = has_nvml(x) ? exam_events(x, gpu, repeated) : EXAM_NOT_READ;

    return when == EXAM_FEW ? counts_all(x, gpu) : when != EXAM_NOT_READ;
}

const struct exam_check exam_gpu_counters[] = {
    {.id = "gpu-held",
     .question = "Was each GPU rarely held back by heat, power supply, board or voltage?",
     .seen = "NVML, twice: seconds for which each reason held the clocks down; persistence mode",
     .pipes = "GPU*|PCIe|Training step",
     .counts = true,
     .remedy = "nvidia-smi -i {} -q -d PERFORMANCE,TEMPERATURE,POWER; look at fans, air and "
               "power supplies",
     .each = EXAM_NVIDIA,
     .judge_one = held_of},
    {.id = "gpu-replays",
     .question = "Does the PCIe link of each GPU rarely repeat packets?",
     .seen = "NVML, twice: PCIe replays; persistence mode",
     .pipes = EXAM_BUS,
     .counts = true,
     .remedy = "reseat {}, and look at its riser, cable and retimer",
     .each = EXAM_NVIDIA,
     .judge_one = replays_of},
    {.id = NULL},
};
