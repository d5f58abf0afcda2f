/* SPDX-License-Identifier: Apache-2.0 */
/* Faults on demand: "kind:after=N:gpu=I:key=value"; README.md lists them. */
#ifndef PLUMB_TESTS_SIM_FAULT_H
#define PLUMB_TESTS_SIM_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_fault_kind {
    SIM_OUT_OF_MEMORY,
    SIM_LAUNCH_FAILED,
    SIM_ILLEGAL_ADDRESS,
    SIM_ECC,
    SIM_LOST,
    SIM_HANG,
    SIM_CORRUPT,
    SIM_PEER_REFUSED,
    SIM_SLOW_LINK,
    SIM_THROTTLE,
    SIM_NO_DEVICE,
    SIM_OLD_DRIVER,
    SIM_NO_MANAGED,
    SIM_NO_KERNEL,
    SIM_NO_NVML,
    SIM_ERROR,
    SIM_FAULT_KINDS
};

struct sim_fault {
    enum sim_fault_kind kind;
    int gpu, peer;                            /* -1: any */
    uint64_t after, times, above_bytes, seen; /* times 0: no end */
    uint64_t from_ms, for_ms;                 /* since the library started; 0: no end */
    char call[40], kernel[40];                /* "": any */
    char reason[16];
    double factor;
    int code, version;
};

struct sim_machine;

/* Adds the faults of `text`, commas between them. 0, or -1 with a sentence. */
int sim_faults_add(struct sim_machine *m, const char *text, char *error, size_t len);

/* What is about to happen. */
struct sim_event {
    int gpu, peer; /* -1: none */
    const char *call, *kernel;
    uint64_t bytes;
};

/* The fault of this kind that strikes now, or NULL. Counts: `after` times it does not strike. */
struct sim_fault *sim_fault_strikes(struct sim_machine *m, enum sim_fault_kind kind,
                                    struct sim_event event);
/* Whether one is there for the device (and peer), without counting. */
const struct sim_fault *sim_fault_has(const struct sim_machine *m, enum sim_fault_kind kind,
                                      int gpu, int peer);
/* For how much of the time since the start, `running_ns` ago, it held; and whether it does now. */
double sim_fault_held_ns(const struct sim_fault *fault, double running_ns);
bool sim_fault_holds(const struct sim_fault *fault, double running_ns);

#endif
