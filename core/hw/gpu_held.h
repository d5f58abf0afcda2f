/* SPDX-License-Identifier: Apache-2.0 */
/* When the GPUs of a case were held back, and by what: what gpu_watch.c found out, for each sample. */
#ifndef PLUMB_CORE_HW_GPU_HELD_H
#define PLUMB_CORE_HW_GPU_HELD_H

#include <stddef.h>
#include <stdint.h>

#include "core/hw/nvml.h"

/* Reasons that hold a device back; others only bound its clocks. */
#define GPU_HELD_BACK                                                                              \
    (NVML_REASON_POWER_CAP | NVML_REASON_SW_THERMAL | NVML_REASON_HW_THERMAL |                     \
     NVML_REASON_POWER_BRAKE | NVML_REASON_HW_SLOWDOWN | NVML_REASON_BOARD_LIMIT)

#define GPU_HELD_WINDOWS 512

struct gpu_held {
    struct {
        uint64_t from_ns, to_ns;
        unsigned reasons;
    } windows[GPU_HELD_WINDOWS]; /* in order of both ends; they may overlap */
    size_t n;
    unsigned always;
};

/* Held back at some time between these, neither of which is before the one added last. When there
 * are too many, the last one becomes longer: it may say too much, never too little. 0: nothing is added. */
void gpu_held_add(struct gpu_held *held, uint64_t from_ns, uint64_t to_ns, unsigned reasons);
unsigned gpu_held_between(const struct gpu_held *held, uint64_t from_ns, uint64_t to_ns);

#endif
