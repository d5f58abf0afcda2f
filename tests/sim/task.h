/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the simulated cuBLASLt and NCCL put work into a stream of the simulated driver, which they find by the
 * symbols named here.
 */
#ifndef PLUMB_TESTS_SIM_TASK_H
#define PLUMB_TESTS_SIM_TASK_H

#include "tests/sim/machine.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_RANGES     4
#define SIM_TASK_BYTES 160

struct sim_range {
    uintptr_t at;
    uint64_t bytes;
    bool write;
};

struct sim_task {
    char name[16]; /* as faults call it */
    struct sim_range range[SIM_RANGES];
    unsigned ranges;
    double ns,
        zeros_factor; /* how long; and how much faster when all that it reads begins with zeros */
    unsigned char args[SIM_TASK_BYTES]; /* all that the result hangs on, the rest 0 */
    /* at[i]: where the host finds the bytes of range i. */
    void (*run)(const void *args, void *const at[SIM_RANGES]);
    /* NULL, or: it takes its time only from when this says so, which is asked again and again once the task could begin, with the
     * lock held. What other processes do may be waited for so; run() then counts as new each time. */
    bool (*ready)(const void *args, void *const at[SIM_RANGES]);
};

CUresult plumb_sim_submit(CUstream stream, const struct sim_task *task);
/* What is put into it becomes a part of a graph: it is run as often as that is launched. */
bool plumb_sim_captures(CUstream stream);
const struct sim_machine *plumb_sim_machine(void);
/* The current device; -1: there is none. */
int plumb_sim_current(void);
/* Makes it another one, as a library does that knows its device; returns the one before. */
int plumb_sim_turn(int gpu);
/* Uncorrectable errors of a device so far. For the simulated NVML. */
uint64_t plumb_sim_ecc_errors(unsigned gpu);

#endif
