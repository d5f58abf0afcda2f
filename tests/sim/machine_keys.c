/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a description, their defaults, and how they are read. */
#include "tests/sim/machine.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field { TEXT, NUMBER, SIZE, REAL, FLAG, CHOICE };

struct sim_key {
    const char *name;
    enum field field;
    size_t at, room;
    const char *preset;
    const char *choices; /* words with blanks between, in the order of their enum */
};

struct sim_keys {
    size_t count;
    const struct sim_key *keys;
};

#define AT(thing, member)   offsetof(struct sim_##thing, member)
#define ROOM(thing, member) sizeof(((struct sim_##thing *)0)->member)
#define KEY(thing, member, field, preset)                                                          \
    {                                                                                              \
#member, field, AT(thing, member), ROOM(thing, member), preset, NULL                       \
    }
#define WORDS(thing, member, preset, words)                                                        \
    {                                                                                              \
#member, CHOICE, AT(thing, member), ROOM(thing, member), preset, words                     \
    }
#define RATE(word, type, preset)                                                                   \
    {                                                                                              \
        "gemm_" word "_tflops", REAL, AT(gpu, gemm_tflops) + (type) * sizeof(double),              \
            sizeof(double), preset, NULL                                                           \
    }

static const struct sim_key machine_table[] = {
    KEY(machine, gpus, NUMBER, "1"),
    KEY(machine, driver_version, SIZE, "13000"),
    KEY(machine, driver, TEXT, "580.00"),
    KEY(machine, nvml_lacks, TEXT, ""),
    KEY(machine, confidential, FLAG, "no"),
    KEY(machine, host_node, NUMBER, "0"),
    KEY(machine, host_gbps, REAL, "200"),
    KEY(machine, cross_gbps, REAL, "100"),
    KEY(machine, remote_factor, REAL, "0.8"),
    KEY(machine, p2p_switch_gbps, REAL, "1000"),
    KEY(machine, p2p_bridge_gbps, REAL, "1000"),
    KEY(machine, p2p_cross_gbps, REAL, "1000"),
    KEY(machine, staged_factor, REAL, "0.45"),
    KEY(machine, nvswitch_gbps, REAL, "0"),
};

static const struct sim_key gpu_table[] = {
    KEY(gpu, name, TEXT, "Simulated GPU"),
    KEY(gpu, address, TEXT, ""),
    KEY(gpu, uuid, TEXT, ""),
    KEY(gpu, capability, TEXT, "9.0"),
    {"switch", TEXT, AT(gpu, switch_name), ROOM(gpu, switch_name), "", NULL},
    KEY(gpu, numa_node, NUMBER, "0"),
    KEY(gpu, sms, NUMBER, "20"),
    KEY(gpu, cores, NUMBER, "0"),
    KEY(gpu, compute_mode, NUMBER, "0"),
    KEY(gpu, copy_engines, NUMBER, "3"),
    KEY(gpu, max_threads_per_sm, NUMBER, "2048"),
    KEY(gpu, memory_bytes, SIZE, "4G"),
    KEY(gpu, reserved_bytes, SIZE, "64M"),
    KEY(gpu, l1_bytes, SIZE, "128K"),
    KEY(gpu, l2_bytes, SIZE, "4M"),
    KEY(gpu, clock_mhz, REAL, "1500"),
    KEY(gpu, memory_clock_mhz, REAL, "1000"),
    KEY(gpu, memory_bus_bits, SIZE, "512"),
    KEY(gpu, ecc, FLAG, "yes"),
    KEY(gpu, ecc_flips, FLAG, "no"),
    KEY(gpu, remap_pending, FLAG, "no"),
    KEY(gpu, remap_failed, FLAG, "no"),
    KEY(gpu, integrated, FLAG, "no"),
    KEY(gpu, managed, FLAG, "yes"),
    KEY(gpu, managed_concurrent, FLAG, "yes"),
    KEY(gpu, host_register, FLAG, "yes"),
    KEY(gpu, rdma, FLAG, "yes"),
    KEY(gpu, dmabuf, FLAG, "yes"),
    KEY(gpu, rdma_flush, FLAG, "no"),
    KEY(gpu, fabric, FLAG, "no"),
    KEY(gpu, fabric_state, NUMBER, "0"),
    KEY(gpu, fabric_degraded, FLAG, "no"),
    KEY(gpu, multicast, FLAG, "no"),
    KEY(gpu, imex, FLAG, "yes"),
    KEY(gpu, pcie_gen, NUMBER, "4"),
    KEY(gpu, pcie_width, NUMBER, "8"),
    KEY(gpu, pcie_gen_max, NUMBER, "0"),
    KEY(gpu, pcie_width_max, NUMBER, "0"),
    KEY(gpu, mig, FLAG, "no"),
    KEY(gpu, mig_instances, SIZE, "2"),
    WORDS(gpu, virtualization, "none", "none passthrough vgpu"),
    KEY(gpu, power_limit_watts, REAL, "300"),
    KEY(gpu, power_default_watts, REAL, "0"),
    KEY(gpu, power_watts, REAL, "200"),
    KEY(gpu, temperature_c, REAL, "50"),
    KEY(gpu, ecc_corrected, SIZE, "0"),
    KEY(gpu, ecc_uncorrected, SIZE, "0"),
    KEY(gpu, pcie_replays, SIZE, "0"),
    KEY(gpu, h2d_gbps, REAL, "13"),
    KEY(gpu, d2h_gbps, REAL, "12.5"),
    KEY(gpu, both_gbps, REAL, "22"),
    KEY(gpu, pageable_factor, REAL, "0.5"),
    KEY(gpu, write_combined_factor, REAL, "1"),
    KEY(gpu, prefetch_factor, REAL, "0.9"),
    KEY(gpu, fault_factor, REAL, "0.3"),
    KEY(gpu, h2d_latency_us, REAL, "1.5"),
    KEY(gpu, d2h_latency_us, REAL, "1.5"),
    KEY(gpu, pageable_latency_us, REAL, "4"),
    KEY(gpu, d2d_latency_us, REAL, "1.2"),
    KEY(gpu, memset_latency_us, REAL, "1"),
    KEY(gpu, hbm_gbps, REAL, "115"),
    KEY(gpu, l2_gbps, REAL, "350"),
    KEY(gpu, d2d_gbps, REAL, "52"),
    KEY(gpu, memset_gbps, REAL, "100"),
    KEY(gpu, inflight_bytes, SIZE, "1M"),
    KEY(gpu, streaming_factor, REAL, "1.02"),
    KEY(gpu, l1_ns, REAL, "30"),
    KEY(gpu, l2_ns, REAL, "200"),
    KEY(gpu, hbm_ns, REAL, "500"),
    KEY(gpu, host_ns, REAL, "1500"),
    KEY(gpu, sm_copy_factor, REAL, "0.95"),
    KEY(gpu, copy1_factor, REAL, "0.1"),
    KEY(gpu, submit_us, REAL, "2"),
    KEY(gpu, kernel_us, REAL, "2"),
    KEY(gpu, graph_node_us, REAL, "1"),
    KEY(gpu, call_us, REAL, "0"),
    KEY(gpu, context_us, REAL, "0"),
    KEY(gpu, lazy_load_us, REAL, "100"),
    KEY(gpu, hiccup_every, SIZE, "0"),
    KEY(gpu, hiccup_us, REAL, "0"),
    KEY(gpu, gemm_us, REAL, "1.5"),
    RATE("f64", SIM_F64, "0.25"),
    RATE("f32", SIM_F32, "0.5"),
    RATE("tf32", SIM_TF32, "1"),
    RATE("f16", SIM_F16, "2"),
    RATE("bf16", SIM_BF16, "2"),
    RATE("fp8", SIM_FP8, "4"),
    RATE("s8", SIM_S8, "4"),
    KEY(gpu, gemm_best_candidate, SIZE, "2"),
    KEY(gpu, gemm_best_factor, REAL, "1.08"),
    KEY(gpu, gemm_candidates, SIZE, "6"),
    KEY(gpu, gemm_zeros_factor, REAL, "1.15"),
    KEY(gpu, held_reliability_s, REAL, "0"),
    KEY(gpu, nvlink_version, NUMBER, "4"),
};

static const struct sim_key link_table[] = {
    WORDS(link, kind, "pcie", "pcie nvlink none"),
    KEY(link, lanes, SIZE, "4"),
    KEY(link, dark_lanes, SIZE, "0"),
    KEY(link, write_one_way, FLAG, "no"),
    KEY(link, lane_gbps, REAL, "12.5"),
    KEY(link, gbps, REAL, "45"),
    KEY(link, both_gbps, REAL, "0"),
    KEY(link, pcie_gbps, REAL, "0"),
    KEY(link, read_factor, REAL, "1"),
    KEY(link, latency_us, REAL, "2"),
    KEY(link, hop_ns, REAL, "900"),
};

static const struct sim_key switch_table[] = {
    KEY(switch, uplink_gbps, REAL, "1000"),
};

#define KEYS(table)                                                                                \
    {                                                                                              \
        sizeof(table) / sizeof(*(table)), table                                                    \
    }
const struct sim_keys sim_machine_keys = KEYS(machine_table), sim_gpu_keys = KEYS(gpu_table),
                      sim_link_keys = KEYS(link_table), sim_switch_keys = KEYS(switch_table);

static int set_text(const struct sim_key *key, char *at, const char *value)
{
    if (strlen(value) >= key->room)
        return -ERANGE;
    snprintf(at, key->room, "%s", value);
    return 0;
}

static int set_size(uint64_t *at, const char *value)
{
    static const char units[] = "KMGT";
    const char *unit;
    char *end;

    errno = 0;
    *at = strtoull(value, &end, 10);
    if (end == value || *value == '-' || errno)
        return -EINVAL;
    if (!*end)
        return 0;
    unit = strchr(units, *end);
    if (!unit || end[1])
        return -EINVAL;
    *at <<= 10 * (unit - units + 1);
    return 0;
}

static int set_number(unsigned *at, const char *value)
{
    uint64_t wide;
    int rc = set_size(&wide, value);

    if (!rc && wide > 1u << 30)
        rc = -ERANGE;
    if (!rc)
        *at = (unsigned)wide;
    return rc;
}

static int set_real(double *at, const char *value)
{
    char *end;

    *at = strtod(value, &end);
    return end == value || *end || !isfinite(*at) || *at < 0 ? -EINVAL : 0;
}

static int set_flag(bool *at, const char *value)
{
    *at = !strcmp(value, "yes");
    return *at || !strcmp(value, "no") ? 0 : -EINVAL;
}

static int set_choice(const struct sim_key *key, unsigned *at, const char *value)
{
    const char *word = key->choices;

    for (unsigned i = 0; *word; i++) {
        size_t len = strcspn(word, " ");

        if (strlen(value) == len && !strncmp(word, value, len)) {
            *at = i;
            return 0;
        }
        word += len + (word[len] == ' ');
    }
    return -EINVAL;
}

static int set_field(const struct sim_key *key, void *object, const char *value)
{
    void *at = (char *)object + key->at;

    switch (key->field) {
    case TEXT:
        return set_text(key, at, value);
    case NUMBER:
        return set_number(at, value);
    case SIZE:
        return set_size(at, value);
    case REAL:
        return set_real(at, value);
    case FLAG:
        return set_flag(at, value);
    case CHOICE:
        return set_choice(key, at, value);
    }
    return -EINVAL;
}

int sim_key_set(const struct sim_keys *keys, void *object, const char *key, const char *value,
                char *error, size_t len)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->keys[i].name, key))
            continue;
        if (!set_field(&keys->keys[i], object, value))
            return 0;
        snprintf(error, len, "'%s' is no value of '%s'", value, key);
        return -1;
    }
    snprintf(error, len, "unknown key '%s'", key);
    return -1;
}

void sim_key_defaults(const struct sim_keys *keys, void *object)
{
    for (size_t i = 0; i < keys->count; i++)
        set_field(&keys->keys[i], object, keys->keys[i].preset);
}
