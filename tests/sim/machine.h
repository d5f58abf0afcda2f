/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine that the simulated libraries show, read from the file $PLUMB_SIM_MACHINE. README.md lists
 * the keys; machine_keys.c is their table.
 */
#ifndef PLUMB_TESTS_SIM_MACHINE_H
#define PLUMB_TESTS_SIM_MACHINE_H

#include "tests/sim/fault.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_GPUS     16
#define SIM_NODES    8
#define SIM_SWITCHES 16
#define SIM_FAULTS   16

enum sim_type { SIM_F64, SIM_F32, SIM_TF32, SIM_F16, SIM_BF16, SIM_FP8, SIM_S8, SIM_TYPES };
enum sim_link_kind { SIM_PCIE, SIM_NVLINK, SIM_NO_LINK };
enum sim_virtualization { SIM_BARE, SIM_PASSTHROUGH, SIM_VGPU };

struct sim_gpu {
    char name[96], address[24], uuid[48], capability[8], switch_name[24];
    unsigned numa_node;
    int at_switch; /* -1: none */
    unsigned sms, copy_engines, max_threads_per_sm, pcie_gen, pcie_width, pcie_gen_max,
        pcie_width_max, nvlink_version, virtualization, cores, compute_mode, fabric_state;
    uint64_t memory_bytes, reserved_bytes, l1_bytes, l2_bytes, memory_bus_bits, inflight_bytes;
    uint64_t mig_instances;
    uint64_t ecc_corrected, ecc_uncorrected, pcie_replays;
    bool ecc, ecc_flips, remap_pending, remap_failed, fabric_degraded;
    bool integrated, managed, managed_concurrent, host_register, mig;
    bool rdma, dmabuf, rdma_flush, fabric, imex, multicast;
    double clock_mhz, memory_clock_mhz, power_limit_watts, power_default_watts, power_watts,
        temperature_c;
    double h2d_gbps, d2h_gbps, both_gbps, pageable_factor, write_combined_factor, prefetch_factor,
        fault_factor;
    double h2d_latency_us, d2h_latency_us, pageable_latency_us, d2d_latency_us, memset_latency_us;
    double hbm_gbps, l2_gbps, d2d_gbps, memset_gbps, streaming_factor;
    double l1_ns, l2_ns, hbm_ns, host_ns;
    double held_reliability_s;
    double sm_copy_factor, copy1_factor, submit_us, kernel_us, graph_node_us, call_us, context_us,
        lazy_load_us;
    double hiccup_us, gemm_us, gemm_tflops[SIM_TYPES], gemm_best_factor, gemm_zeros_factor;
    uint64_t hiccup_every, gemm_best_candidate, gemm_candidates;
};

struct sim_link {
    unsigned kind; /* enum sim_link_kind */
    uint64_t lanes, dark_lanes;
    bool write_one_way;
    double lane_gbps, gbps, both_gbps, pcie_gbps, read_factor, latency_us, hop_ns;
};

struct sim_switch {
    char name[24];
    double uplink_gbps;
};

struct sim_machine {
    unsigned gpus, host_node, switches;
    uint64_t driver_version;
    char driver[24], nvml_lacks[160];
    bool confidential;
    double host_gbps, cross_gbps, remote_factor, p2p_switch_gbps, p2p_bridge_gbps, p2p_cross_gbps,
        staged_factor, nvswitch_gbps;
    struct sim_gpu gpu[SIM_GPUS];
    struct sim_link link[SIM_GPUS][SIM_GPUS]; /* [lower][higher] */
    struct sim_switch at[SIM_SWITCHES];
    cpu_set_t cpus[SIM_NODES]; /* of each node; empty: not said */
    struct sim_fault fault[SIM_FAULTS];
    unsigned faults;
};

/* Reads the file and the faults of the environment. 0, or -1 with a sentence. */
int sim_machine_read(struct sim_machine *m, char *error, size_t len);

const struct sim_link *sim_link(const struct sim_machine *m, unsigned i, unsigned j);

/* The node that host memory is on that the calling thread takes. */
unsigned sim_host_node(const struct sim_machine *m);

/* The keys of a section: sets the field of `object` that `key` names. 0, or -1 with a sentence. */
struct sim_keys;
extern const struct sim_keys sim_machine_keys, sim_gpu_keys, sim_link_keys, sim_switch_keys;
int sim_key_set(const struct sim_keys *keys, void *object, const char *key, const char *value,
                char *error, size_t len);
void sim_key_defaults(const struct sim_keys *keys, void *object);

#endif
