// SPDX-License-Identifier: Apache-2.0
/*
 * Ground truth for each check of plumb doctor: a machine with the fault, the same one without it, and
 * the same one of which the fact was not recorded. A machine of tests/machines is changed by files of
 * its tree (a path with '/'), or, for what no tree holds, by facts of the probe's object (a path with
 * '.'). A check without all three fails the test.
 */
#include <math.h>

#include "harness/exam/exam.h"
#include "tests/unit/machines.h"
#include "tests/unit/probe_cases.h"

#define METAL "nvlink-8gpu"
#define GUEST "kvm-sriov"

#define CPUS   "sys/devices/system/cpu/"
#define GPU    "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0/"
#define IB     "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0/"
#define PORT   IB "infiniband/mlx5_0/ports/1/"
#define SWITCH "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/"
#define ETH    "sys/devices/pci0000:00/0000:00:1c.0/0000:02:00.0/"
#define ENO1   ETH "net/eno1/"
#define VF     "sys/devices/pci0000:00/0000:00:05.0/"
#define UPTIME "proc/uptime"
#define LATER  "plumb/later/"
#define STATUS "Cpus_allowed_list:\t"
#define MEMS   "Mems_allowed_list:\t"
#define LIMITS(locked, files)                                                                      \
    "Max locked memory " locked " unlimited bytes\nMax open files " files " 1048576 files\n"

#define DDR(mt_s)                                                                                  \
    "{\"type\": \"DDR5\", \"size_bytes\": 1024, \"rated_mt_s\": 4800, \"running_mt_s\": " mt_s "}"
#define MODULE      DDR("4800")
#define SLOW_MODULE DDR("4400")

#define ON(cpus)                                                                                   \
    {                                                                                              \
        "virtualization.limits.allowed_cpus", "\"" cpus "\""                                       \
    }
#define RANK_OF(local, visible) "{\"local\": " local ", \"visible_devices\": \"" visible "\"}"
#define NEAR(relation)                                                                             \
    "[{\"gpu\": \"0000:18:00.0\", \"nic\": \"0000:19:00.0\", \"relation\": \"" relation "\"}, "
#define OTHER_PIX    "{\"gpu\": \"0000:98:00.0\", \"nic\": \"0000:99:00.0\", \"relation\": \"PIX\"}]"
#define PEERS(peers) "{\"local\": 0, \"local_size\": 2, \"peers\": " peers "}"

#define STAT_OF(busy, stolen) "cpu " busy " 0 10000 950000 0 0 0 " stolen " 0 0\n"
#define STAT(busy, stolen)                                                                         \
    {                                                                                              \
        "proc/stat", STAT_OF(busy, stolen)                                                         \
    }
#define STAT_LATER(busy, stolen)                                                                   \
    {                                                                                              \
        LATER "proc/stat", STAT_OF(busy, stolen)                                                   \
    }
/* Of a machine without it. */
#define TWICE                                                                                      \
    {UPTIME, "1000000.00 1.00\n"},                                                                 \
    {                                                                                              \
        LATER UPTIME, "1000002.00 1.00\n"                                                          \
    }
#define GROUP                "sys/fs/cgroup/user.slice/"
#define PERIODS(all, paused) "nr_periods " all "\nnr_throttled " paused "\n"
#define NO_ROOT_STAT                                                                               \
    {                                                                                              \
        "sys/fs/cgroup/cpu.stat", "usage_usec 1\n"                                                 \
    }
#define GROUP_LATER(all, paused)                                                                   \
    {                                                                                              \
        LATER GROUP "cpu.stat", PERIODS(all, paused)                                               \
    }
#define AER(kind, n)       GPU "aer_dev_" kind, n
#define AER_LATER(kind, n) LATER AER(kind, n)

#define ONCE                                                                                       \
    {                                                                                              \
        LATER UPTIME, NULL                                                                         \
    }
#define LINE(own, partner, duplex)                                                                 \
    {                                                                                              \
        "plumb/net", "eno1 line own_gbits_per_s=" own " offered_gbits_per_s=" own                  \
                     " partner_gbits_per_s=" partner " full_duplex=" duplex "\n"                   \
    }
#define PAUSED(us) "eno1 counts rx_prio3_pause=7 rx_prio3_pause_duration=" us " rx_prio4_pause=0\n"

#define COPIED(us) "eno1 counts pfc_pri3_rx_duration_us=" us "\n"
/* Frames of priority 3, their time, and frames of all priorities together. */
#define WORKING(frames, us)                                                                        \
    "eno1 counts rx_prio3_pause=" frames " rx_prio3_pause_duration=" us                            \
    " rx_pause_ctrl_phy=" frames "\n"

#define LAUNCHED                                                                                   \
    {                                                                                              \
        "launcher", "\"OMPI_COMM_WORLD_SIZE\""                                                     \
    }
#define LENT                                                                                       \
    {"pci.3.driver", "\"vfio-pci\""}, {"pci.4.driver", "\"vfio-pci\""},                            \
    {                                                                                              \
        "pci.4.acs_redirect", "true"                                                               \
    }

struct change {
    const char *path, *value; /* of a file its text, of a fact its JSON; NULL: not recorded */
};

static const struct fault {
    const char *check, *machine, *subject;
    struct change first[5];   /* so that the question applies, and all is well */
    struct change fault[4];   /* then */
    struct change missing[4]; /* in place of the fault; none: then the check does not apply */
} faults[] = {
    /* processor */
    {"governor", METAL, "processor",
     .fault = {{CPUS "cpufreq/policy0/scaling_driver", "acpi-cpufreq\n"},
               {CPUS "cpufreq/policy0/scaling_governor", "powersave\n"}},
     .missing = {{CPUS "cpufreq/policy0/scaling_governor", NULL}}},
    {"governor", METAL, "processor",
     .first = {{CPUS "cpufreq/policy0/scaling_governor", "powersave\n"}},
     .fault = {{"cpu.clock.energy_preferences", "[\"performance\", \"power\"]"}},
     .missing = {{"cpu.clock.energy_preferences", NULL}}},
    {"clock-limit", METAL, "processor",
     .fault = {{CPUS "cpufreq/policy0/scaling_max_freq", "800000\n"}},
     .missing = {{CPUS "cpufreq/policy0/scaling_max_freq", NULL}}},
    {"clock-limit", METAL, "processor", .fault = {{CPUS "intel_pstate/max_perf_pct", "50\n"}}},
    {"boost", METAL, "processor", .fault = {{CPUS "intel_pstate/no_turbo", "1\n"}},
     .missing = {{CPUS "intel_pstate/no_turbo", NULL}}},
    {"clock-source", METAL, "clock",
     .fault = {{"sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"}},
     .missing = {{"sys/devices/system/clocksource/clocksource0/current_clocksource", NULL}}},
    {"clock-source", METAL, "clock", .fault = {{"host.clocksource", "\"hpet\""}},
     .missing = {{"host.clocksource", "\"xen\""}}},
    {"cpu-set", METAL, "processor",
     .first = {LAUNCHED, {"rank", PEERS("[\"0-15\", \"16-31\"]")}, ON("0-15")},
     .fault = {{"rank", PEERS("[\"0\", \"1\"]")}, ON("0")}, .missing = {{"rank", PEERS("null")}}},
    {"cpu-quota", METAL, "processor",
     .fault = {{"sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n"}},
     .missing = {{"sys/fs/cgroup/user.slice/cpu.max", NULL}}},
    {"cpu-set", METAL, "processor", .fault = {{"proc/self/status", STATUS "0-3\n"}},
     .missing = {{"proc/self/status", NULL}}},
    {"mitigations", METAL, NULL, .fault = {{CPUS "vulnerabilities/retbleed", "Mitigation: IBRS\n"}},
     .missing = {{"host.mitigations", NULL}}},
    /* load */
    {"other-load", METAL, "processor", .fault = {{"proc/loadavg", "4.00 1.00 1.00 5/400 4711\n"}},
     .missing = {{"proc/loadavg", NULL}}},
    /* Of 20 CPU seconds that were wanted between two readings, 0.5 are 2.5 %. */
    {"steal", GUEST, "processor",
     .first = {TWICE, STAT("40000", "100"), STAT_LATER("42000", "110")},
     .fault = {STAT_LATER("41950", "150")}, .missing = {{"proc/stat", NULL}}},
    /* Within two seconds, 20 %; 4 % may be one burst. */
    {"steal", GUEST, "processor",
     .first = {TWICE, STAT("40000", "100"), STAT_LATER("40380", "102")},
     .fault = {STAT_LATER("40320", "180")}, .missing = {STAT_LATER("40300", "112")}},
    /* Since a boot of today; since an older one it may be long ago. */
    {"steal", GUEST, "processor", .first = {STAT("40000", "100"), {UPTIME, "1000000.00 1.00\n"}},
     .fault = {STAT("40000", "100000"), {UPTIME, "36000.00 1.00\n"}},
     .missing = {STAT("40000", "100000")}},
    {"throttled", METAL, "processor",
     .first = {{GROUP "cpu.stat", PERIODS("100", "0")}, NO_ROOT_STAT, GROUP_LATER("110", "0")},
     .fault = {GROUP_LATER("110", "4")}, .missing = {{GROUP "cpu.stat", NULL}}},
    /* Two of ten periods may be one burst; of two hundred, eight are too many. */
    {"throttled", METAL, "processor",
     .first = {{GROUP "cpu.stat", PERIODS("100", "0")}, NO_ROOT_STAT, GROUP_LATER("300", "1")},
     .fault = {GROUP_LATER("300", "8")},
     .missing = {{GROUP "cpu.stat", PERIODS("100", "20")}, GROUP_LATER("110", "22")}},
    {"throttled", METAL, "processor",
     .first = {{GROUP "cpu.stat", PERIODS("100", "0")}, NO_ROOT_STAT, ONCE},
     .fault = {{GROUP "cpu.stat", PERIODS("100", "40")}, {UPTIME, "36000.00 1.00\n"}},
     .missing = {{GROUP "cpu.stat", PERIODS("100", "40")}}},
    {"isolated-cpus", METAL, "processor", .fault = {{CPUS "isolated", "8-15\n"}},
     .missing = {{CPUS "isolated", NULL}}},
    {"idle-states", METAL, "processor", .first = {{CPUS "cpu0/cpuidle/state3/latency", "133\n"}},
     .fault = {{CPUS "cpu0/cpuidle/state3/latency", "890\n"}},
     .missing = {{CPUS "cpu0/cpuidle/state3/latency", NULL}}},
    /* limits */
    {"huge-pages", METAL, "memory",
     .fault = {{"sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"}},
     .missing = {{"sys/kernel/mm/transparent_hugepage/enabled", NULL}}},
    {"memory-speed", METAL, "memory", .fault = {{"memory.modules.0.running_mt_s", "4000"}},
     .missing = {{"memory.modules", NULL}}},
    {"memory-sizes", METAL, "memory", .fault = {{"memory.modules.0.size_bytes", "17179869184"}},
     .missing = {{"memory.modules", NULL}}},
    {"far-memory", METAL, "memory", .first = {{"proc/self/status", STATUS "0-7\n" MEMS "0-1\n"}},
     .fault = {{"proc/self/status", STATUS "0-7\n" MEMS "1\n"}},
     .missing = {{"proc/self/status", STATUS "0-7\n"}}},
    {"far-memory", METAL, "gpus", .first = {{"pci", "[{\"kind\": \"gpu\", \"numa_node\": 1}]"}},
     .fault = {{"virtualization.limits.allowed_cpus", "\"0-7,16\""}}},
    {"far-memory", METAL, "network",
     .first = {{"network", "[{\"state\": \"up\", \"speed_gbits_per_s\": 100, \"numa_node\": 0}]"}},
     .fault = {{"virtualization.limits.allowed_cpus", "\"8-15,24\""}}},
    /* All at the same speed, below their own: the processor may allow no more. */
    {"memory-speed", METAL, "memory", .first = {{"memory.modules", "[" MODULE "]"}},
     .fault = {{"memory.modules", "[" MODULE ", " SLOW_MODULE "]"}},
     .missing = {{"memory.modules", "[" SLOW_MODULE ", " SLOW_MODULE "]"}}},
    {"memory-sizes", METAL, "memory",
     .first = {{"memory.module_slots", "4"}, {"memory.modules", "[" MODULE ", " MODULE "]"}},
     .fault = {{"memory.modules", "[" MODULE "]"}}, .missing = {{"memory.module_slots", "16"}}},
    {"rdma-port", METAL, "mlx5_0:1", .fault = {{PORT "state", "2: INIT\n"}},
     .missing = {{PORT "state", NULL}}},
    {"rdma-gid", GUEST, "mlx5_0:1",
     .fault = {{VF "infiniband/mlx5_0/ports/1/gid_attrs/types/1", "IB/RoCE v1\n"},
               {VF "infiniband/mlx5_0/ports/1/gid_attrs/types/3", "IB/RoCE v1\n"}},
     .missing = {{VF "infiniband/mlx5_0/ports/1/gids/1", NULL}}},
    {"rdma-software", METAL, "mlx5_0", .fault = {{"rdma.0.nature", "\"software\""}},
     .missing = {{"rdma.0.nature", NULL}}},
    {"numa-balancing", METAL, "memory", .fault = {{"proc/sys/kernel/numa_balancing", "1\n"}},
     .missing = {{"proc/sys/kernel/numa_balancing", NULL}}},
    {"memory-pressure", METAL, "memory",
     .fault = {{"proc/pressure/memory", "some avg10=9.00 avg60=5.00 avg300=1.00 total=9\n"}},
     .missing = {{"proc/pressure/memory", NULL}}},
    {"memory-pressure", METAL, "memory",
     .fault = {{"proc/pressure/memory", "some avg10=9.00 avg60=5.00 avg300=1.00 total=9\n"}},
     .missing = {{"virtualization.limits.memory_bytes", "1073741824"}}},
    {"locked-memory", METAL, "process",
     .fault = {{"proc/self/limits", LIMITS("8388608", "1048576")}},
     .missing = {{"proc/self/limits", NULL}}},
    /* The right is one of a user namespace alone. */
    {"locked-memory", METAL, "process",
     .fault = {{"proc/self/limits", LIMITS("8388608", "1048576")},
               {"proc/self/status", STATUS "0-31\nCapEff:\t0000000000004000\n"},
               {"proc/self/uid_map", "0 1000 1\n"}}},
    {"shared-memory", METAL, "/dev/shm", .fault = {{"plumb/shm", "67108864 67108864\n"}},
     .missing = {{"plumb/shm", NULL}}},
    {"open-files", METAL, "process", .fault = {{"proc/self/limits", LIMITS("unlimited", "256")}},
     .missing = {{"proc/self/limits", NULL}}},
    /* bus, pcie */
    {"pcie-link", METAL, "0000:18:00.0", .fault = {{GPU "current_link_width", "8\n"}},
     .missing = {{GPU "current_link_width", NULL}}},
    {"pcie-slot", METAL, "0000:18:00.0", .fault = {{SWITCH "max_link_width", "8\n"}},
     .missing = {{GPU "max_link_width", NULL}}},
    /* InfiniBand without IPoIB. */
    {"pcie-slot", METAL, "0000:19:00.0", .first = {{"network", "[]"}},
     .fault = {{"pci.4.link.best_width", "4"}, {"pci.4.link.best_gbytes_per_s", "15.754"}},
     .missing = {{"pci.4.link.best_width", "4"},
                 {"pci.4.link.best_gbytes_per_s", "15.754"},
                 {"rdma", "[]"}}},
    {"acs", METAL, "0000:18:00.0", .fault = {{"pci.3.acs_redirect", "true"}},
     .missing = {{"pci.3.acs_redirect", NULL}}},
    {"iommu", METAL, "0000:18:00.0", .fault = {{"sys/kernel/iommu_groups/24/type", "DMA\n"}},
     .missing = {{"sys/kernel/iommu_groups/24/type", NULL}}},
    {"device-node", METAL, "0000:18:00.0", .fault = {{GPU "numa_node", "-1\n"}},
     .missing = {{GPU "numa_node", NULL}}},
    {"pcie-errors", METAL, "0000:18:00.0",
     .fault = {{AER_LATER("correctable", "RxErr 5000\nTOTAL_ERR_COR 5000\n")}},
     .missing = {{AER("correctable", NULL)}}},
    /* Many since an older boot, none or a few of them between the readings. */
    {"pcie-errors", METAL, "0000:18:00.0",
     .fault = {{AER_LATER("correctable", "TOTAL_ERR_COR 101\n")}},
     .missing = {{AER("correctable", "TOTAL_ERR_COR 5000000\n")},
                 {AER_LATER("correctable", "TOTAL_ERR_COR 5000090\n")}}},
    {"pcie-errors", METAL, "0000:18:00.0", .first = {ONCE},
     .fault = {{AER("nonfatal", "TOTAL_ERR_NONFATAL 90\n")}, {UPTIME, "36000.00 1.00\n"}},
     .missing = {{AER("nonfatal", "TOTAL_ERR_NONFATAL 90\n")}, {UPTIME, NULL}}},
    {"pcie-errors", METAL, "0000:18:00.0",
     .fault = {{AER_LATER("fatal", "TOTAL_ERR_FATAL 1\n")}, {UPTIME, "999990.00 1.00\n"}},
     .missing = {{AER("fatal", "TOTAL_ERR_FATAL 1\n")},
                 {AER_LATER("fatal", "TOTAL_ERR_FATAL 1\n")}}},
    /* Those on the way out are counted by the port above. */
    {"pcie-errors", METAL, "0000:18:00.0",
     .first = {{SWITCH "aer_dev_correctable", "TOTAL_ERR_COR 0\n"},
               {LATER SWITCH "aer_dev_correctable", "TOTAL_ERR_COR 0\n"}},
     .fault = {{LATER SWITCH "aer_dev_correctable", "TOTAL_ERR_COR 5000\n"}},
     .missing = {{SWITCH "aer_dev_correctable", "TOTAL_ERR_COR 5000\n"}}},
    {"gpu-adapter", METAL, "0000:18:00.0",
     .first = {{"proximity", "[{\"gpu\": \"0000:18:00.0\", \"nic\": \"0000:19:00.0\","
                             " \"relation\": \"NODE\"}, {\"gpu\": \"0000:18:00.0\","
                             " \"nic\": \"0000:99:00.0\", \"relation\": \"SYS\"}]"}},
     .fault = {{"proximity.0.relation", "\"SYS\""}}, .missing = {{"proximity.0.relation", NULL}}},
    /* Of two such boards, the other one is below the switch of its GPU. */
    {"gpu-adapter", METAL, "0000:18:00.0", .first = {{"proximity", NEAR("PIX") OTHER_PIX}},
     .fault = {{"proximity.0.relation", "\"NODE\""}}, .missing = {{"proximity.0.relation", NULL}}},
    {"read-request", METAL, "0000:18:00.0", .first = {{"pci.3.max_read_request_bytes", "4096"}},
     .fault = {{"pci.3.max_read_request_bytes", "128"}},
     .missing = {{"pci.3.max_read_request_bytes", NULL}}},
    {"relaxed-ordering", METAL, "0000:19:00.0", .first = {{"pci.4.relaxed_ordering", "true"}},
     .fault = {{"pci.4.relaxed_ordering", "false"}}, .missing = {{"pci.4.relaxed_ordering", NULL}}},
    /* gpu */
    {"gpu-driver", METAL, "0000:18:00.0", .fault = {{"gpus.devices.0.driver", "\"nouveau\""}},
     .missing = {{"gpus.devices.0.driver", NULL}}},
    {"gpu-driver", METAL, "0000:18:00.0", .fault = {{"gpus.devices.0.driver", "\"vfio-pci\""}},
     .missing = {{"gpus.devices.0.driver", "\"simpledrm\""}}},
    {"gpu-cuda", METAL, "gpus",
     .first = {{"source", "\"this machine\""}, {"gpus.cuda.works", "true"}},
     .fault = {{"gpus.cuda.works", "false"}}, .missing = {{"gpus.cuda.works", NULL}}},
    {"gpu-mode", METAL, "0000:18:00.0", .first = {{"gpus.devices.0.compute_mode", "\"default\""}},
     .fault = {{"gpus.devices.0.compute_mode", "\"prohibited\""}},
     .missing = {{"gpus.devices.0.compute_mode", NULL}}},
    {"gpu-power", METAL, "0000:18:00.0",
     .first = {{"gpus.devices.0.power_limit_watts", "700"},
               {"gpus.devices.0.power_default_watts", "700"}},
     .fault = {{"gpus.devices.0.power_limit_watts", "500"}},
     .missing = {{"gpus.devices.0.power_limit_watts", NULL}}},
    {"gpu-throttle", METAL, "0000:18:00.0",
     .first = {{"gpus.devices.0.clock_reasons", "[\"power cap\"]"}},
     .fault = {{"gpus.devices.0.clock_reasons", "[\"temperature (hardware)\"]"}},
     .missing = {{"gpus.devices.0.clock_reasons", NULL}}},
    {"gpu-throttle", METAL, "0000:18:00.0", .first = {{"gpus.devices.0.clock_reasons", "[]"}},
     .fault = {{"gpus.devices.0.clock_reasons", "[\"idle\", \"hardware slowdown\"]"}},
     .missing = {{"gpus.devices.0.clock_reasons", "[\"idle\"]"}}},
    {"gpu-held", METAL, "0000:18:00.0",
     .first = {{"gpus.nvml", "true"},
               {"gpus.devices.0.persistence_mode", "true"},
               {"gpus.devices.0.counters", "{\"held_by_power_seconds\": 900000}"}},
     .fault = {{"gpus.devices.0.grown", "{\"held_by_heat_seconds\": 1.5}"},
               {"gpus.devices.0.counters", "{\"held_by_heat_seconds\": 1.5}"}},
     .missing = {{"gpus.devices.0.counters", NULL}}},
    {"gpu-held", METAL, "0000:18:00.0",
     .first = {{"gpus.nvml", "true"},
               {"gpus.devices.0.persistence_mode", "true"},
               {"gpus.devices.0.counters", "{\"held_by_heat_seconds\": 50}"}},
     .fault = {{"gpus.devices.0.counters", "{\"held_by_reliability_seconds\": 2100}"},
               {"load.uptime_seconds", "80000"}},
     .missing = {{"gpus.devices.0.counters", "{\"held_by_reliability_seconds\": 2100}"},
                 {"load.uptime_seconds", NULL}}},
    {"gpu-held", METAL, "0000:18:00.0",
     .first = {{"gpus.nvml", "true"},
               {"gpus.devices.0.persistence_mode", "true"},
               {"gpus.devices.0.counters", "{\"held_by_hardware_heat_seconds\": 50}"}},
     .fault = {{"gpus.devices.0.counters", "{\"held_by_hardware_heat_seconds\": 2100}"},
               {"load.uptime_seconds", "80000"}},
     .missing = {{"gpus.devices.0.counters", "{\"held_by_hardware_heat_seconds\": 2100}"},
                 {"load.uptime_seconds", NULL}}},
    /* The share is one of all time, and the GPU may have worked for a part of it. */
    {"gpu-held", METAL, "0000:18:00.0",
     .first = {{"gpus.nvml", "true"},
               {"gpus.devices.0.persistence_mode", "true"},
               {"gpus.devices.0.counters", "{\"held_by_heat_seconds\": 50}"}},
     .fault = {{"gpus.devices.0.counters", "{\"held_by_heat_seconds\": 90}"},
               {"load.uptime_seconds", "36000"}},
     .missing = {{"gpus.devices.0.counters", "{\"held_by_heat_seconds\": 90000}"}}},
    {"gpu-replays", METAL, "0000:18:00.0",
     .first = {{"gpus.nvml", "true"},
               {"gpus.devices.0.persistence_mode", "true"},
               {"gpus.devices.0.pcie", "{\"replays\": 90}"}},
     .fault = {{"gpus.devices.0.pcie.replays", "500"},
               {"gpus.devices.0.grown", "{\"replays\": 200}"}},
     .missing = {{"gpus.devices.0.pcie.replays", NULL}}},
    {"gpu-ecc", METAL, "0000:18:00.0",
     .first = {{"gpus.devices.0.ecc", "true"},
               {"gpus.devices.0.ecc_default", "false"},
               {"gpus.devices.0.memory_bus_bits", "5120"}},
     .fault = {{"gpus.devices.0.memory_bus_bits", "384"}},
     .missing = {{"gpus.devices.0.ecc", NULL}}},
    {"gpu-persistence", METAL, "0000:18:00.0",
     .first = {{"gpus.devices.0.persistence_mode", "true"}},
     .fault = {{"gpus.devices.0.persistence_mode", "false"}},
     .missing = {{"gpus.devices.0.persistence_mode", NULL}}},
    {"gpu-memory", METAL, "0000:18:00.0",
     .first = {{"gpus.devices.0.ecc_errors", "{\"uncorrected\": 0}"}},
     .fault = {{"gpus.devices.0.ecc_errors", "{\"uncorrected\": 3}"}},
     .missing = {{"gpus.devices.0.ecc_errors", NULL}}},
    {"gpu-mig", METAL, "0000:18:00.0",
     .first = {{"gpus.devices.0.mig", "{\"enabled\": false, \"instances\": []}"}},
     .fault = {{"gpus.devices.0.mig", "{\"enabled\": true, \"instances\": []}"}},
     .missing = {{"gpus.devices.0.mig", NULL}}},
    {"gpu-bar", METAL, "0000:18:00.0",
     .fault = {{"gpus.devices.0.bar1_best_bytes", "274877906944"}},
     .missing = {{"gpus.devices.0.bar1_bytes", NULL}}},
    {"gpu-lanes", METAL, "0000:18:00.0",
     .first = {{"pci.3.link", "null"},
               {"gpus.devices.0.pcie", "{\"width\": 16, \"max_width\": 16}"}},
     .fault = {{"gpus.devices.0.pcie.width", "8"}},
     .missing = {{"gpus.devices.0.pcie.width", NULL}}},
    {"gpu-fabric", METAL, "0000:18:00.0",
     .first = {{"gpus.devices.0.fabric", "{\"state\": \"completed\", \"status\": 0}"}},
     .fault = {{"gpus.devices.0.fabric.state", "\"in progress\""}},
     .missing = {{"gpus.devices.0.fabric.state", NULL}}},
    {"gpu-fabric", METAL, "0000:18:00.0",
     .first = {{"gpus.devices.0.fabric", "{\"state\": \"completed\", \"status\": 0}"}},
     .fault = {{"gpus.devices.0.fabric.status", "5"}},
     .missing = {{"gpus.devices.0.fabric", NULL}}},
    {"gpu-encryption", METAL, "gpus", .first = {{"gpus.confidential_computing", "false"}},
     .fault = {{"gpus.confidential_computing", "true"}},
     .missing = {{"gpus.confidential_computing", NULL}}},
    {"gpu-nvlink", METAL, "0000:18:00.0",
     .first = {{"gpus.devices.0.nvlink", "{\"links\": 18, \"active\": 18}"},
               {"gpus.devices.1.nvlink", "{\"links\": 18, \"active\": 18}"}},
     .fault = {{"gpus.devices.0.nvlink", "{\"links\": 18, \"active\": 17}"}},
     .missing = {{"gpus.devices.0.nvlink", NULL}}},
    /* Three bridges wire 12 of 18 for good. */
    {"gpu-nvlink", METAL, "0000:18:00.0",
     .first = {{"gpus.devices.0.nvlink", "{\"links\": 18, \"active\": 18}"},
               {"gpus.devices.1.nvlink", "{\"links\": 18, \"active\": 12}"}},
     .fault = {{"gpus.devices.0.nvlink", "{\"links\": 18, \"active\": 6}"}},
     .missing = {{"gpus.devices.0.nvlink", "{\"links\": 18, \"active\": 12}"}}},
    {"gpu-peers", METAL, "gpus",
     .first = {{"gpus.pairs", "[{\"a\": \"x\", \"b\": \"y\", \"p2p_read\": \"ok\"}]"}},
     .fault = {{"gpus.pairs.0.p2p_read", "\"chipset not supported\""}},
     .missing = {{"gpus.pairs.0.p2p_read", NULL}}},
    {"gpu-rdma", METAL, "gpus",
     .fault = {{"gpus.peer_memory_module", "false"}, {"gpus.gpudirect.dma_buf", "false"}},
     .missing = {{"gpus.peer_memory_module", NULL}, {"gpus.gpudirect.dma_buf", NULL}}},
    {"gpu-storage", METAL, "gpus",
     .first = {{"etc/cufile.json", "{}\n"}, {"sys/module/nvidia_fs/version", "2.17\n"}},
     .fault = {{"gpus.gpudirect.storage", "false"}}, .missing = {{"gpus.gpudirect.storage", NULL}}},
    /* network */
    {"mtu", METAL, "eno1", .fault = {{ENO1 "mtu", "1400\n"}}, .missing = {{ENO1 "mtu", NULL}}},
    {"shaping", METAL, "eno1", .fault = {{"plumb/net", "eno1 qdisc tbf rate_gbits_per_s=1.0\n"}},
     .missing = {{"plumb/net", NULL}}},
    /* A discipline that may hold back, whose rates are not read. */
    {"shaping", METAL, "eno1", .fault = {{"plumb/net", "eno1 qdisc tbf rate_gbits_per_s=1.0\n"}},
     .missing = {{"plumb/net", "eno1 qdisc htb\n"}}},
    {"congestion", METAL, "tcp", .fault = {{"proc/sys/net/ipv4/tcp_congestion_control", "bbr\n"}},
     .missing = {{"proc/sys/net/ipv4/tcp_congestion_control", NULL}}},
    {"tcp-buffers", METAL, "tcp", .fault = {{"proc/sys/net/ipv4/tcp_rmem", "4096 65536 65536\n"}},
     .missing = {{"proc/sys/net/ipv4/tcp_rmem", NULL}}},
    {"default-interface", METAL, "network",
     .first = {{"rdma", "[]"}, {"tcp.default_interfaces", "[\"ib0\"]"}},
     .fault = {{"tcp.default_interfaces", "[\"eno1\"]"}},
     .missing = {{"tcp.default_interfaces", NULL}}},
    /* By an interface of software, whose speed is not known; and a device of software is no RDMA. */
    {"default-interface", METAL, "network",
     .first = {{"rdma.0.nature", "\"software\""},
               {"rdma.1.nature", "\"software\""},
               {"tcp.default_interfaces", "[\"ib0\"]"}},
     .fault = {{"tcp.default_interfaces", "[\"eno1\"]"}},
     .missing = {{"tcp.default_interfaces", "[\"eno1\"]"},
                 {"network.0.kind", "\"vlan\""},
                 {"network.0.virtual", "true"}}},
    /* NCCL's are beginnings of names; a name that is not here, and one of a slow interface. */
    {"chosen-interface", METAL, NULL,
     .first = {{"library_settings", "{\"NCCL_SOCKET_IFNAME\": \"ib\"}"}},
     .fault = {{"library_settings", "{\"NCCL_SOCKET_IFNAME\": \"=ib\"}"}},
     .missing = {{"library_settings", NULL}}},
    {"chosen-interface", METAL, NULL,
     .first = {{"rdma", "[]"}, {"library_settings", "{\"GLOO_SOCKET_IFNAME\": \"ib0\"}"}},
     .fault = {{"library_settings", "{\"GLOO_SOCKET_IFNAME\": \"eno1\"}"}},
     .missing = {{"network", NULL}}},
    {"chosen-interface", METAL, NULL,
     .first = {{"library_settings", "{\"UCX_NET_DEVICES\": \"mlx5_0:1,mlx5_1:1\"}"}},
     .fault = {{"library_settings", "{\"UCX_NET_DEVICES\": \"eno1\"}"}}},
    {"chosen-interface", METAL, NULL,
     .first = {{"library_settings", "{\"NCCL_IB_HCA\": \"mlx5\"}"}},
     .fault = {{"library_settings", "{\"NCCL_IB_HCA\": \"mlx5_7\"}"}}},
    {"shared-subnet", METAL, "eno1",
     .fault = {{"proc/net/route", "eno1 0001A8C0 0 1 0 0 100 00FFFFFF 0 0 0\n"
                                  "ib0 0001A8C0 0 1 0 0 101 00FFFFFF 0 0 0\n"}},
     .missing = {{"proc/net/route", NULL}}},
    {"shared-subnet", METAL, "eno1", .fault = {{"tcp.shared_subnets", "[[\"eno1\", \"ib0\"]]"}},
     .missing = {{"tcp.shared_subnets", "[[\"eno1\", \"ib0\"]]"}, {"network.0.arp_ignore", NULL}}},
    {"packet-loss", METAL, "eno1", .fault = {{LATER ENO1 "statistics/rx_missed_errors", "5000\n"}},
     .missing = {{ENO1 "statistics/rx_missed_errors", NULL}}},
    /* Without a second reading: since a boot of today, or of last week. */
    {"packet-loss", METAL, "eno1", .first = {{LATER UPTIME, NULL}},
     .fault = {{ENO1 "statistics/rx_crc_errors", "5000\n"}, {UPTIME, "36000.00 1.00\n"}},
     .missing = {{ENO1 "statistics/rx_crc_errors", "5000\n"}}},
    /* These drivers count a full ring as dropped. */
    {"packet-loss", METAL, "eno1", .first = {{"network.0.driver", "\"ena\""}},
     .fault = {{"network.0.grown.rx_missed_errors", "5000"}},
     .missing = {{"network.0.counters.rx_dropped", "500000"}}},
    /* A port of 200 Gb/s: the adapters beside it do not set it aside. */
    {"line-rate", METAL, "eno1", .first = {{ENO1 "speed", "200000\n"}, LINE("200", "200", "1")},
     .fault = {{ENO1 "speed", "100000\n"}}, .missing = {{"plumb/net", NULL}}},
    {"line-rate", METAL, "eno1", .first = {{ENO1 "speed", "200000\n"}, LINE("200", "200", "1")},
     .fault = {LINE("200", "200", "0")}, .missing = {{ENO1 "speed", NULL}}},
    /* The other end does not tell what it can do. */
    {"line-rate", METAL, "eno1", .first = {{ENO1 "speed", "100000\n"}, LINE("200", "100", "1")},
     .fault = {LINE("200", "400", "1")},
     .missing = {{"plumb/net", "eno1 line own_gbits_per_s=200 full_duplex=1\n"}}},
    {"line-rate", METAL, "eno1", .first = {{ENO1 "speed", "200000\n"}, LINE("200", "200", "1")},
     .fault = {{ENO1 "speed", "100000\n"}},
     .missing = {{ENO1 "speed", "100000\n"}, {"network.0.driver", "\"mlx5_core\""}}},
    /* No other end does less than the line runs at. */
    {"line-rate", METAL, "eno1", .first = {{ENO1 "speed", "200000\n"}, LINE("200", "200", "1")},
     .fault = {{ENO1 "speed", "100000\n"}},
     .missing = {{ENO1 "speed", "100000\n"}, LINE("200", "50", "1")}},
    {"pause-frames", METAL, "eno1",
     .first = {{"plumb/net", PAUSED("9")}, {LATER "plumb/net", PAUSED("9")}},
     .fault = {{LATER "plumb/net", PAUSED("500009")}}, .missing = {{"plumb/net", NULL}}},
    /* 4 % of two seconds may be one burst; 2 % of twelve are too much. */
    {"pause-frames", METAL, "eno1",
     .first = {{"plumb/net", PAUSED("9")}, {LATER "plumb/net", PAUSED("9")}},
     .fault = {{LATER "plumb/net", PAUSED("240009")}, {LATER UPTIME, "1000012.00 1.00\n"}},
     .missing = {{LATER "plumb/net", PAUSED("80009")}}},
    /* A driver that copies its counters once a second. */
    {"pause-frames", METAL, "eno1",
     .first = {{"plumb/net", COPIED("9")},
               {LATER "plumb/net", COPIED("9")},
               {"network.0.driver", "\"bnxt_en\""}},
     .fault = {{LATER "plumb/net", COPIED("500009")}, {LATER UPTIME, "1000006.00 1.00\n"}},
     .missing = {{LATER "plumb/net", COPIED("500009")}}},
    /* The time that a priority stood still, of two seconds; or of all since a boot. */
    {"pause-frames", METAL, "eno1",
     .first = {{"plumb/net", PAUSED("9")}, {LATER "plumb/net", PAUSED("9")}},
     .fault = {{LATER "plumb/net", PAUSED("500009")}},
     .missing = {{"plumb/net", PAUSED("100000000")}, {LATER "plumb/net", PAUSED("100000000")}}},
    {"pause-frames", METAL, "eno1", .first = {ONCE, {"plumb/net", PAUSED("9")}},
     .fault = {{"plumb/net", PAUSED("900000000")}, {UPTIME, "36000.00 1.00\n"}},
     .missing = {{"plumb/net", PAUSED("900000000")}}},
    {"link-flaps", METAL, "eno1", .fault = {{LATER ENO1 "carrier_changes", "8\n"}},
     .missing = {{ENO1 "carrier_changes", NULL}}},
    /* One bad night, long ago; once more now may be who sets the machine up. */
    {"link-flaps", METAL, "eno1",
     .fault = {{ENO1 "carrier_changes", "240\n"}, {LATER ENO1 "carrier_changes", "246\n"}},
     .missing = {{ENO1 "carrier_changes", "240\n"}, {LATER ENO1 "carrier_changes", "240\n"}}},
    {"link-flaps", METAL, "eno1", .fault = {{LATER ENO1 "carrier_changes", "8\n"}},
     .missing = {{ENO1 "carrier_changes", "240\n"}, {LATER ENO1 "carrier_changes", "242\n"}}},
    /* Those of a boot are not told apart a minute after it. */
    {"link-flaps", METAL, "eno1", .first = {ONCE},
     .fault = {{ENO1 "carrier_changes", "40\n"}, {UPTIME, "36000.00 1.00\n"}},
     .missing = {{ENO1 "carrier_changes", "40\n"}, {UPTIME, "60.00 1.00\n"}}},
    {"link-flaps", METAL, "eno1", .first = {ONCE},
     .fault = {{ENO1 "carrier_changes", "40\n"}, {UPTIME, "36000.00 1.00\n"}},
     .missing = {{ENO1 "carrier_changes", "40\n"}, {UPTIME, NULL}}},
    {"interrupts", METAL, "ib0",
     .fault = {{"proc/irq/64/effective_affinity_list", "9\n"},
               {"proc/irq/65/effective_affinity_list", "9\n"}},
     .missing = {{"proc/irq/64/effective_affinity_list", NULL}}},
    {"bond", "downtrained", "bond0",
     .first = {{"sys/devices/virtual/net/bond0/operstate", "up\n"},
               {"sys/devices/virtual/net/bond0/bonding/mode", "802.3ad 4\n"},
               {"sys/devices/virtual/net/bond0/bonding/xmit_hash_policy", "layer3+4 1\n"},
               {"sys/devices/virtual/net/bond0/bonding/slaves", "eno1 eno2\n"}},
     .fault = {{"sys/devices/virtual/net/bond0/bonding/mode", "balance-rr 0\n"}},
     .missing = {{"sys/devices/virtual/net/bond0/bonding/mode", NULL}}},
    {"bond", METAL, "eno1",
     .first = {{"network.0.kind", "\"bond\""},
               {"network.0.speed_gbits_per_s", "200"},
               {"network.0.bond", "{\"mode\": \"802.3ad\", \"hash_policy\": \"layer3+4\","
                                  " \"members\": [\"ib0\", \"ib1\"]}"}},
     .fault = {{"network.0.bond.hash_policy", "\"layer2+3\""}},
     .missing = {{"network.0.bond.hash_policy", NULL}}},
    /* ports */
    {"rdma-rate", METAL, "mlx5_0:1", .fault = {{PORT "rate", "100 Gb/sec (1X NDR)\n"}},
     .missing = {{PORT "rate", NULL}}},
    {"rdma-mtu", GUEST, "mlx5_0:1", .fault = {{VF "net/ens5/mtu", "1500\n"}},
     .missing = {{VF "net/ens5/mtu", NULL}}},
    {"rdma-loss", METAL, "mlx5_0:1", .fault = {{LATER PORT "hw_counters/packet_seq_err", "5000\n"}},
     .missing = {{PORT "hw_counters/packet_seq_err", NULL}}},
    {"rdma-loss", METAL, "mlx5_0:1", .first = {{PORT "link_layer", "Ethernet\n"}},
     .fault = {{LATER PORT "hw_counters/out_of_sequence", "5000\n"}},
     .missing = {{PORT "hw_counters/out_of_sequence", NULL}}},
    {"rdma-loss", METAL, "mlx5_0:1", .first = {{LATER UPTIME, NULL}},
     .fault = {{PORT "hw_counters/packet_seq_err", "5000\n"}, {UPTIME, "36000.00 1.00\n"}},
     .missing = {{PORT "hw_counters/packet_seq_err", "5000\n"}}},
    {"rdma-pause", METAL, "mlx5_0:1",
     .first = {{PORT "link_layer", "Ethernet\n"},
               {LATER PORT "hw_counters/packet_seq_err", "5000\n"}},
     .fault = {{"network.1.pause", "{\"rx\": 0, \"tx\": 0}"}},
     .missing = {{"network.1.pause", NULL}}},
    {"rdma-congestion", METAL, "mlx5_0:1", .first = {{PORT "link_layer", "Ethernet\n"}},
     .fault = {{LATER PORT "hw_counters/np_ecn_marked_roce_packets", "500000\n"}},
     .missing = {{PORT "hw_counters/np_ecn_marked_roce_packets", NULL}}},
    {"rdma-congestion", METAL, "mlx5_0:1",
     .first = {{LATER UPTIME, NULL}, {PORT "link_layer", "Ethernet\n"}},
     .fault = {{PORT "hw_counters/np_ecn_marked_roce_packets", "50000\n"},
               {UPTIME, "36000.00 1.00\n"}},
     .missing = {{PORT "hw_counters/np_ecn_marked_roce_packets", "50000\n"}}},
    {"rdma-line", METAL, "mlx5_0:1", .fault = {{LATER PORT "counters/link_downed", "5\n"}},
     .missing = {{PORT "counters/link_downed", NULL}}},
    {"rdma-line", METAL, "mlx5_0:1", .first = {ONCE},
     .fault = {{PORT "counters/link_downed", "50\n"}, {UPTIME, "36000.00 1.00\n"}},
     .missing = {{PORT "counters/link_downed", "50\n"}, {UPTIME, NULL}}},
    /* A counter of 8 bits is full, and grows no more: an hour later, too. */
    {"rdma-line", METAL, "mlx5_0:1", .fault = {{LATER PORT "counters/link_downed", "5\n"}},
     .missing = {{PORT "counters/link_downed", "255\n"},
                 {LATER PORT "counters/link_downed", "255\n"},
                 {LATER UPTIME, "1009000.00 1.00\n"}}},
    /* As one of 16 bits does. */
    {"rdma-line", METAL, "mlx5_0:1", .fault = {{LATER PORT "counters/port_rcv_errors", "5000\n"}},
     .missing = {{PORT "counters/port_rcv_errors", "65535\n"},
                 {LATER PORT "counters/port_rcv_errors", "65535\n"},
                 {LATER PORT "counters/port_rcv_packets", "90000000\n"}}},
    /* 1e-12 of 400 Gb/s in 36000 seconds: 14400 bits. A counter of 16 bits stops far above. */
    {"rdma-line", METAL, "mlx5_0:1", .first = {ONCE},
     .fault = {{PORT "counters/symbol_error", "14500\n"}, {UPTIME, "36000.00 1.00\n"}},
     .missing = {{PORT "counters/symbol_error", "65535\n"}}},
    {"rdma-line", METAL, "mlx5_0:1", .fault = {{LATER PORT "counters/symbol_error", "101\n"}},
     .missing = {{PORT "counters/symbol_error", "65535\n"},
                 {LATER PORT "counters/symbol_error", "65535\n"}}},
    /* libraries */
    {"sockets", METAL, "process", .first = {{"plumb/verbs", "1 1\n"}},
     .fault = {{"plumb/verbs", "0 1\n"}}, .missing = {{"plumb/verbs", NULL}}},
    {"sockets", METAL, "process", .first = {{"plumb/verbs", "1 1\n"}},
     .fault = {{"plumb/verbs", "1 0\n"}}},
    {"sockets", METAL, NULL, .first = {{"plumb/verbs", "1 1\n"}, {"library_settings", "{}"}},
     .fault = {{"library_settings", "{\"NCCL_IB_DISABLE\": \"1\"}"}},
     .missing = {{"library_settings", NULL}}},
    {"settings", METAL, NULL, .first = {{"library_settings", "{\"NCCL_PROTO\": \"^LL\"}"}},
     .fault = {{"library_settings", "{\"NCCL_PROTO\": \"LL,LL128\"}"}},
     .missing = {{"library_settings", NULL}}},
    {"settings", METAL, NULL,
     .first = {{"library_settings", "{\"OPENBLAS_CORETYPE\": \"SKYLAKEX\"}"}},
     .fault = {{"library_settings", "{\"OPENBLAS_CORETYPE\": \"Haswell\"}"}},
     .missing = {{"library_settings", NULL}}},
    {"settings", "kvm-sriov", NULL,
     .first = {{"library_settings", "{\"OPENBLAS_CORETYPE\": \"Haswell\"}"}},
     .fault = {{"library_settings", "{\"OPENBLAS_CORETYPE\": \"PRESCOTT\"}"}},
     .missing = {{"library_settings", NULL}}},
    {"settings", METAL, NULL, .first = {{"library_settings", "{\"NCCL_DEBUG\": \"INFO\"}"}},
     .fault = {{"library_settings", "{\"MKL_ENABLE_INSTRUCTIONS\": \"AVX2\"}"}},
     .missing = {{"library_settings", NULL}}},
    {"threads", METAL, NULL, .first = {{"library_settings", "{\"OMP_NUM_THREADS\": \"16\"}"}},
     .fault = {{"library_settings", "{\"OMP_NUM_THREADS\": \"4\"}"}},
     .missing = {{"library_settings", NULL}}},
    {"threads", METAL, NULL, .first = {{"library_settings", "{\"OMP_THREAD_LIMIT\": \"64\"}"}},
     .fault = {{"library_settings", "{\"OMP_THREAD_LIMIT\": \"2\"}"}}},
    {"threads", METAL, NULL, .first = {{"library_settings", "{\"OMP_PROC_BIND\": \"close\"}"}},
     .fault = {{"library_settings", "{\"OMP_PROC_BIND\": \"PRIMARY\"}"}}},
    /* Two GPUs on node 0, and CPUs 0-7,16-23 there; the others are on node 1. Local rank 5 has the
     * sixth GPU, of CUDA_VISIBLE_DEVICES the second of "5,0". */
    {"rank-map", METAL, "rank", .first = {{"rank", "{\"local\": 5, \"local_size\": 8}"}, ON("8-9")},
     .fault = {ON("0-1")}, .missing = {{"virtualization.limits.allowed_cpus", NULL}}},
    {"rank-map", METAL, "rank", .first = {{"rank", RANK_OF("1", "5,0")}, ON("0-1")},
     .fault = {ON("8-9")}, .missing = {{"rank", RANK_OF("1", "GPU-4f2a")}}},
    {"rank-map", METAL, "rank", .first = {{"rank", "{\"local\": 0}"}, ON("0-1")},
     .fault = {ON("8-9")}, .missing = {{"gpus.devices.0.numa_node", NULL}}},
    /* As CUDA numbers those that it shows. */
    {"rank-map", METAL, "rank",
     .first = {{"rank", "{\"local\": 1}"},
               ON("8-9"),
               {"gpus.devices.7.cuda", "\"cuda:1\""},
               {"gpus.devices.0.cuda", "\"cuda:0\""}},
     .fault = {ON("0-1")}},
    {"rank-map", METAL, "ranks",
     .first = {{"gpus.devices", "[]"}, {"rank", PEERS("[\"0-7\", \"8-15\"]")}},
     .fault = {{"rank", PEERS("[\"0-3\", \"4-7\"]")}}, .missing = {{"rank", PEERS("null")}}},
    /* guest */
    {"nccl-topology", GUEST, "gpus",
     .first = {{"pci.0.kind", "\"gpu\""},
               {"pci.0.nature", "\"passthrough\""},
               {"pci.1.kind", "\"gpu\""},
               {"pci.1.nature", "\"passthrough\""},
               {"gpus.nccl_topology_file", "true"}},
     .fault = {{"gpus.nccl_topology_file", "false"}},
     .missing = {{"gpus.nccl_topology_file", NULL}}},
    /* A host that lends a GPU and the adapter below its switch to guests, looked at by root. */
    {"peer-translation", METAL, "0000:19:00.0",
     .first = {LENT, {"pci.4.acs_direct_translated", "true"}},
     .fault = {{"pci.4.acs_direct_translated", "false"}},
     .missing = {{"pci.4.acs_direct_translated", NULL}}},
    {"peer-translation", METAL, "0000:19:00.0",
     .first = {LENT, {"pci.4.acs_direct_translated", "true"}},
     .fault = {{"pci.4.translation_services", "\"none\""}},
     .missing = {{"pci.4.translation_services", NULL}}},
    /* Off, it may be for want of a guest that runs. */
    {"peer-translation", METAL, "0000:19:00.0",
     .first = {LENT, {"pci.4.acs_direct_translated", "true"}},
     .fault = {{"pci.4.translation_services", "\"none\""}},
     .missing = {{"pci.4.translation_services", "false"}}},
    {"peer-translation", METAL, "0000:19:00.0", .first = {LENT, {"pci.4.acs_redirect", "false"}},
     .fault = {{"pci.4.acs_redirect", "true"}, {"pci.4.acs_direct_translated", "false"}},
     .missing = {{"pci.4.acs_redirect", NULL}}},
};

/* ---- changing a machine */

static bool is_file(const char *path)
{
    return strchr(path, '/') != NULL;
}

/* Copies of the machines, each made once; what is changed is put back. */
static struct copy {
    const char *machine;
    struct scratch s;
    json_t *as_it_is; /* what a probe tells of it while nothing is changed; NULL: none has yet */
} copies[16];         /* more than there are machines: the last has no name */

static struct copy *copy_of(const char *machine)
{
    struct copy *c = copies;
    char command[512];

    while (c->machine && strcmp(c->machine, machine) != 0)
        c++;
    if (!c->machine) {
        c->machine = machine;
        scratch_open(&c->s);
        snprintf(command, sizeof(command), "cp -aH " MACHINE("%s") " %s/root", machine, c->s.root);
        assert_int_equal(system(command), 0);
    }
    return c;
}

/* What is put there to stay makes it another machine. */
static void has_changed(struct copy *c)
{
    json_decref(c->as_it_is);
    c->as_it_is = NULL;
}

static int drop_copies(void **state)
{
    (void)state;
    for (struct copy *c = copies; c->machine; c++) {
        has_changed(c);
        scratch_close(&c->s);
    }
    return 0;
}

/* The file as it is goes to a stash, from which undo_file() brings it back. */
static void change_file(const struct scratch *s, const struct change *c, size_t number)
{
    char path[1024], stash[128];

    snprintf(stash, sizeof(stash), "%s/stash%zu", s->root, number);
    snprintf(path, sizeof(path), "root/%s", c->path);
    rename(scratch_path(s, path), stash);
    if (c->value)
        scratch_put(s, path, c->value);
}

static void undo_file(const struct scratch *s, const struct change *c, size_t number)
{
    char path[1024], stash[128];

    snprintf(stash, sizeof(stash), "%s/stash%zu", s->root, number);
    snprintf(path, sizeof(path), "root/%s", c->path);
    unlink(scratch_path(s, path));
    rename(stash, scratch_path(s, path));
}

/* The object or list that holds the last part of the path, which is *key. */
static json_t *holder(json_t *value, const char *path, char *key, size_t len)
{
    while (strchr(path, '.')) {
        size_t n = strcspn(path, ".");

        snprintf(key, len, "%.*s", (int)n, path);
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(key))
                                     : json_object_get(value, key);
        path += n + 1;
    }
    snprintf(key, len, "%s", path);
    return value;
}

static void change_fact(json_t *machine, const struct change *c)
{
    char key[64], why[80];
    json_t *object = holder(machine, c->path, key, sizeof(key));

    if (!json_is_object(object))
        fail_msg("no object holds \"%s\"", c->path);
    snprintf(why, sizeof(why), "%s_why", key);
    json_object_del(object, why);
    if (!c->value) {
        json_object_set_new(object, key, json_null());
        json_object_set_new(object, why, json_string("taken away"));
    } else {
        json_object_set_new(object, key, json_loads(c->value, JSON_DECODE_ANY, NULL));
        assert_non_null(json_object_get(object, key));
    }
}

#define SIZE(list) (sizeof(list) / sizeof(*(list)))

enum { CHANGES_MAX = 16 };

static json_t *probed(const struct copy *c)
{
    char root[128];
    json_t *machine;

    snprintf(root, sizeof(root), "%s/root", c->s.root);
    assert_int_equal(probe_machine(root, &machine), 0);
    return machine;
}

/* The machine, with `first` and then `then` changed: files before it is probed, facts after it. */
static json_t *changed(const struct fault *f, const struct change *then, size_t n_then)
{
    struct copy *c = copy_of(f->machine);
    const struct change *all[CHANGES_MAX];
    json_t *machine;
    size_t n = 0, files = 0;

    for (size_t i = 0; i < SIZE(f->first) && f->first[i].path; i++)
        all[n++] = &f->first[i];
    for (size_t i = 0; i < n_then && then[i].path; i++)
        all[n++] = &then[i];
    for (size_t i = 0; i < n; i++)
        if (is_file(all[i]->path)) {
            change_file(&c->s, all[i], i);
            files++;
        }
    if (files) {
        machine = probed(c);
    } else {
        c->as_it_is = c->as_it_is ? c->as_it_is : probed(c);
        machine = json_deep_copy(c->as_it_is);
        assert_non_null(machine);
    }
    for (size_t i = n; i-- > 0;)
        if (is_file(all[i]->path))
            undo_file(&c->s, all[i], i);
    for (size_t i = 0; i < n; i++)
        if (!is_file(all[i]->path))
            change_fact(machine, all[i]);
    return machine;
}

/* ---- what the check says */

/* The state of its worst result for the subject, or for the machine, of which a list was not
 * recorded (NULL: any): found, then unknown, then fine. */
static enum exam_state worst_of(struct exam *x, const struct fault *f)
{
    enum exam_state worst = EXAM_NOT_APPLICABLE;

    for (const struct exam_result *r = exam_results(x); r; r = r->next) {
        if (strcmp(r->check->id, f->check) != 0 ||
            (f->subject && strcmp(r->subject, f->subject) != 0 &&
             strcmp(r->subject, "machine") != 0))
            continue;
        if (r->state == EXAM_FOUND || (r->state == EXAM_UNKNOWN && worst != EXAM_FOUND) ||
            worst == EXAM_NOT_APPLICABLE)
            worst = r->state;
        if (strstr(r->text, "e+0"))
            fail_msg("%s: a number for machines: \"%s\"", f->check, r->text);
    }
    return worst;
}

static size_t expect(const struct fault *f, const char *what, const struct change *then, size_t n,
                     enum exam_state expected)
{
    json_t *machine = changed(f, then, n);
    struct exam *x = exam_new(machine);
    enum exam_state state = worst_of(x, f);

    if (state != expected)
        print_error("%s %s: %s, expected %s\n", f->check, what, exam_state_name(state),
                    exam_state_name(expected));
    exam_free(x);
    json_decref(machine);
    return state != expected;
}

static void test_each_fault_is_found(void **state)
{
    size_t wrong = 0;

    (void)state;
    for (size_t i = 0; i < SIZE(faults); i++) {
        const struct fault *f = &faults[i];

        wrong += expect(f, "without the fault", NULL, 0, EXAM_FINE);
        wrong += expect(f, "with the fault", f->fault, SIZE(f->fault), EXAM_FOUND);
        if (f->missing[0].path)
            wrong += expect(f, "without the fact", f->missing, SIZE(f->missing), EXAM_UNKNOWN);
    }
    assert_int_equal(wrong, 0);
}

/* With the fault, without it, and without the fact. */
static bool has_cases(const char *id)
{
    for (size_t i = 0; i < SIZE(faults); i++)
        if (!strcmp(faults[i].check, id) && faults[i].fault[0].path && faults[i].missing[0].path)
            return true;
    return false;
}

static void test_each_check_has_its_cases(void **state)
{
    size_t lacking = 0;

    (void)state;
    for (const struct exam_area *area = exam_areas; area->name; area++)
        for (const struct exam_check *c = area->checks; c->id; c++)
            if (!has_cases(c->id)) {
                print_error("check \"%s\" lacks a machine with its fault, or without its fact\n",
                            c->id);
                lacking++;
            }
    assert_int_equal(lacking, 0);
}

/* ---- ports of a switch, by the bytes of their configuration */

/* Access control: 04 and 08 send requests and completions to the root, 40 lets pass what is
 * translated. 1d is what Linux sets, and 5d with the remedy of peer-translation. */
static const struct control {
    unsigned root, gpu, adapter; /* of the root's port, and of those above both */
    enum exam_state acs, peers;  /* of the adapter, its own, and lent */
} controls[] = {
    {0x00, 0x00, 0x00, EXAM_FINE, EXAM_FINE},   {0x1d, 0x00, 0x00, EXAM_FINE, EXAM_FINE},
    {0x1d, 0x1d, 0x1d, EXAM_FOUND, EXAM_FOUND}, {0x00, 0x1d, 0x1d, EXAM_FOUND, EXAM_FOUND},
    {0x1d, 0x5d, 0x5d, EXAM_FOUND, EXAM_FINE},  {0x5d, 0x1d, 0x1d, EXAM_FOUND, EXAM_FOUND},
};

static void put_control(struct copy *c, const char *folder, unsigned control)
{
    unsigned char config[264] = {[0x100] = 0x0d, [0x102] = 1, [0x104] = 0x1f};
    char path[512];

    config[0x106] = (unsigned char)control;
    snprintf(path, sizeof(path), "root/%sconfig", folder);
    scratch_bytes(&c->s, path, config, sizeof(config));
    has_changed(c);
}

static void put_controls(const struct control *c)
{
    struct copy *metal = copy_of(METAL);

    put_control(metal, "sys/devices/pci0000:15/0000:15:01.0/", c->root);
    put_control(metal, SWITCH, c->gpu);
    put_control(metal, "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/",
                c->adapter);
}

static void test_traffic_turns_at_the_switch(void **state)
{
    static const struct change lent[] = {{"pci.3.driver", "\"vfio-pci\""},
                                         {"pci.4.driver", "\"vfio-pci\""}};
    const struct fault acs = {.check = "acs", .machine = METAL, .subject = "0000:19:00.0"},
                       peers = {.check = "peer-translation",
                                .machine = METAL,
                                .subject = "0000:19:00.0"};
    size_t wrong = 0;

    (void)state;
    for (size_t i = 0; i < SIZE(controls); i++) {
        char what[64];

        snprintf(what, sizeof(what), "%02x %02x %02x", controls[i].root, controls[i].gpu,
                 controls[i].adapter);
        put_controls(&controls[i]);
        wrong += expect(&acs, what, NULL, 0, controls[i].acs);
        wrong += expect(&peers, what, lent, SIZE(lent), controls[i].peers);
    }
    put_controls(&controls[0]);
    assert_int_equal(wrong, 0);
}

/* A second switch, of ports 21:00.0 and 21:01.0, below port 17:02.0 of the first one: the GPU 1a:00.0
 * below the one, an adapter below the other. */
#define FIRST  "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/"
#define OUTER  FIRST "0000:17:02.0/"
#define SECOND OUTER "0000:20:00.0/"
#define INNER  SECOND "0000:21:00.0/"
#define BESIDE SECOND "0000:21:01.0/"

/* Copies the plain files of a function's folder, and lists it on the bus. */
static void put_function(const struct scratch *s, const char *from, const char *to)
{
    char command[2048];
    int n = (int)strlen(to) - 1;

    snprintf(command, sizeof(command),
             "cd %s/root && mkdir -p %s && find %s -maxdepth 1 -type f -exec cp -t %s {} + && "
             "ln -sfn ../../../../%.*s sys/bus/pci/devices/",
             s->root, to, from, to, n, to);
    assert_int_equal(system(command), 0);
}

static void put_second_switch(const struct scratch *s)
{
    char command[1024];

    put_function(s, FIRST, SECOND);
    put_function(s, FIRST "0000:17:00.0/", INNER);
    put_function(s, FIRST "0000:17:00.0/", BESIDE);
    put_function(s, OUTER "0000:1a:00.0/", INNER "0000:1a:00.0/");
    put_function(s, FIRST "0000:17:01.0/0000:19:00.0/", BESIDE "0000:23:00.0/");
    snprintf(command, sizeof(command), "rm -r %s/root/" OUTER "0000:1a:00.0", s->root);
    assert_int_equal(system(command), 0);
}

/* Traffic of that GPU turns at the second switch to the adapter beside it, and at the first one to the
 * others. The port between the switches counts only where something is below the first one, too. */
static void test_traffic_turns_at_two_levels(void **state)
{
    static const struct {
        unsigned outer, inner, beside, first; /* first: of the ports right below the first switch */
        bool alone;                           /* nothing else is below the first switch */
        enum exam_state gpu, adapter, other; /* other: of an adapter right below the first switch */
    } cases[] = {
        {0x00, 0x00, 0x00, 0x00, false, EXAM_FINE, EXAM_FINE, EXAM_FINE},
        {0x1d, 0x00, 0x00, 0x00, false, EXAM_FOUND, EXAM_FOUND, EXAM_FINE},
        {0x00, 0x1d, 0x00, 0x00, false, EXAM_FOUND, EXAM_FINE, EXAM_FINE},
        {0x00, 0x00, 0x1d, 0x00, false, EXAM_FINE, EXAM_FOUND, EXAM_FINE},
        {0x00, 0x00, 0x00, 0x1d, false, EXAM_FINE, EXAM_FINE, EXAM_FOUND},
        {0x1d, 0x00, 0x00, 0x00, true, EXAM_FINE, EXAM_FINE, EXAM_NOT_APPLICABLE},
        {0x00, 0x1d, 0x00, 0x00, true, EXAM_FOUND, EXAM_FINE, EXAM_NOT_APPLICABLE},
    };
    struct copy *metal = copy_of(METAL);
    const struct scratch *s = &metal->s;
    const char *const subjects[] = {"0000:1a:00.0", "0000:23:00.0", "0000:19:00.0"};
    size_t wrong = 0;

    (void)state;
    put_second_switch(s);
    for (size_t i = 0; i < SIZE(cases); i++) {
        const enum exam_state states[] = {cases[i].gpu, cases[i].adapter, cases[i].other};
        char command[1024];

        put_control(metal, OUTER, cases[i].outer);
        put_control(metal, INNER, cases[i].inner);
        put_control(metal, BESIDE, cases[i].beside);
        put_control(metal, FIRST "0000:17:00.0/", cases[i].first);
        put_control(metal, FIRST "0000:17:01.0/", cases[i].first);
        for (int k = 0; cases[i].alone && k < 2; k++) {
            snprintf(command, sizeof(command),
                     "rm -rf %s/root/" FIRST
                     "0000:17:0%d.0 %s/root/sys/bus/pci/devices/0000:1%d:00.0",
                     s->root, k, s->root, 8 + k);
            assert_int_equal(system(command), 0);
            has_changed(metal);
        }
        for (size_t k = 0; k < SIZE(subjects) - cases[i].alone; k++) {
            const struct fault acs = {.check = "acs", .machine = METAL, .subject = subjects[k]};
            char what[64];

            snprintf(what, sizeof(what), "case %zu: %s", i, subjects[k]);
            wrong += expect(&acs, what, NULL, 0, states[k]);
        }
    }
    assert_int_equal(wrong, 0);
}

/* ---- costs by a closed form */

#define BOND(mode, policy, a, b)                                                                   \
    "[{\"name\": \"bond0\", \"kind\": \"bond\", \"state\": \"up\", \"bond\": {\"mode\": \"" mode   \
    "\", \"hash_policy\": \"" policy "\", \"members\": [\"eth0\", \"eth1\"]}},"                    \
    " {\"name\": \"eth0\", \"state\": \"" a "\"}, {\"name\": \"eth1\", \"state\": \"" b "\"}]"

#define RANKS(n) "{\"local\": 0, \"local_size\": " n ", \"peers\": [\"0\", \"1\"]}"
#define NODE(n)  "{\"node\": " n ", \"cpus\": \"" n "0-" n "9\"}"
#define EIGHT_NODES                                                                                \
    {"gpus.devices", "[]"},                                                                        \
    {                                                                                              \
        "numa.nodes", "[{\"node\": 0, \"cpus\": \"0-9\"}," NODE("1") "," NODE("2") "," NODE(       \
                          "3") "," NODE("4") "," NODE("5") "," NODE("6") "," NODE("7") "]"         \
    }
#define NIC(name, gbits)                                                                           \
    "{\"name\": \"" name "\", \"kind\": \"ethernet\", \"state\": \"up\", \"virtual\": false,"      \
    " \"speed_gbits_per_s\": " gbits "}"
#define TWO_SPEEDS "[" NIC("eno1", "1") ", " NIC("eth1", "400") "]"

static const struct price {
    const char *check, *machine;
    struct change fault;
    double lost; /* -1: found, and not priced */
} prices[] = {
    /* Payload of full frames: MTU - 52 of MTU + 38 bytes; at 9000: 8948 of 9038. A slow interface
     * is asked for 1500 bytes, a fast one for 9000. */
    {"mtu", METAL, {ENO1 "mtu", "1400\n"}, 1 - (1348. / 1438) / (1448. / 1538)},
    {"mtu", METAL, {ENO1 "speed", "25000\n"}, 1 - (1448. / 1538) / (8948. / 9038)},
    {"cpu-quota", METAL, {"sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n"}, 1 - 2. / 32},
    {"cpu-set", METAL, {"proc/self/status", STATUS "0-7\n"}, 1 - 8. / 32},
    /* Of eight CPUs of twelve, the time of two and a half: one loss; of six: the set's alone. */
    {"cpu-quota", "docker-quota", {"virtualization.limits.cpu_quota", "2.5"}, 1 - 2.5 / 12},
    {"cpu-set", "docker-quota", {"virtualization.limits.cpu_quota", "9"}, 1 - 8. / 12},
    /* An idle CPU loses nothing: of the time that was wanted, 19 parts of 20 were stolen. */
    {"shaping", METAL, {"plumb/net", "eno1 qdisc tbf rate_gbits_per_s=1.0\n"}, 0.9},
    /* 16 lanes of 5 GT/s in 8b/10b, of 32 GT/s in 128b/130b. */
    {"pcie-slot",
     METAL,
     {SWITCH "max_link_speed", "5.0 GT/s PCIe\n"},
     1 - (5. * 8 / 10) / (32. * 128 / 130)},
    /* Between two hosts, addresses do not differ: one of two members takes all. */
    {"bond", "downtrained", {"network", BOND("802.3ad", "layer2+3", "up", "up")}, 0.5},
    {"bond", "downtrained", {"network", BOND("802.3ad", "layer3+4", "up", "down")}, 0.5},
    {"bond", "downtrained", {"network", BOND("802.3ad", "layer3+4", "lowerlayerdown", "up")}, 0.5},
    /* One member alone sends. */
    {"bond", "downtrained", {"network", BOND("active-backup", "layer2", "up", "down")}, -1},
    {"rdma-rate", METAL, {PORT "rate", "100 Gb/sec (1X NDR)\n"}, 0.75},
    {"rdma-rate", METAL, {PORT "rate", "200 Gb/sec (4X HDR)\n"}, 0.5},
    /* A message of 1 MiB: 1024 packets of 1024 and 82 bytes, or 256 of 4096 and 82; RETH 16 once. */
    {"rdma-mtu",
     GUEST,
     {VF "net/ens5/mtu", "1500\n"},
     1 - (256 * (4096. + 82) + 16) / (1024 * (1024. + 82) + 16)},
};

/* A bound, of which the least is 0; and what is lost: of the library that reads the variable. */
static const struct priced {
    bool at_most;
    const char *of;
    struct change also[3];
    struct price price;
} more_prices[] = {
    /* On eight nodes two ranks use two at best, and sixteen ranks all. */
    {true,
     "memory bandwidth of all ranks",
     {EIGHT_NODES},
     {"rank-map", METAL, {"rank", RANKS("2")}, 0.5}},
    {true,
     "memory bandwidth of all ranks",
     {EIGHT_NODES},
     {"rank-map", METAL, {"rank", RANKS("16")}, 0.875}},
    {false,
     "bandwidth of Gloo",
     {{"rdma", "[]"}, {"network", TWO_SPEEDS}},
     {"chosen-interface",
      METAL,
      {"library_settings", "{\"GLOO_SOCKET_IFNAME\": \"eno1\"}"},
      1 - 1. / 400}},
    {false,
     "network bandwidth",
     {{ENO1 "speed", "100000\n"}},
     {"line-rate", METAL, LINE("200", "200", "1"), 0.5}},
    {true,
     "bandwidth of priority 3 that it sends",
     {{"plumb/net", PAUSED("9")}},
     {"pause-frames", METAL, {LATER "plumb/net", PAUSED("500009")}, 0.25}},
    {true,
     "bandwidth that it receives",
     {{"plumb/net", "eno1 counts tx_global_pause_duration=0\n"}},
     {"pause-frames",
      METAL,
      {LATER "plumb/net", "eno1 counts tx_global_pause_duration=400000\n"},
      0.2}},
    /* Of 400 s that were wanted between the readings, 380 were stolen; or since a boot of today. */
    {false,
     "CPU time",
     {TWICE, STAT("40000", "100")},
     {"steal", GUEST, STAT_LATER("42000", "38100"), 0.95}},
    {false,
     "CPU time",
     {{UPTIME, "36000.00 1.00\n"}},
     {"steal", GUEST, {"proc/stat", "cpu 4000 0 1000 9900000 0 0 0 95000 0 0\n"}, 0.95}},
    /* Both slow: NCCL's is first. */
    {false,
     "bandwidth of NCCL",
     {{"rdma", "[]"}, {"network", TWO_SPEEDS}},
     {"chosen-interface",
      METAL,
      {"library_settings", "{\"GLOO_SOCKET_IFNAME\": \"eno1\", \"NCCL_SOCKET_IFNAME\": \"eno1\"}"},
      1 - 1. / 400}},
};

static void expect_price(const struct price *p, const struct priced *more)
{
    struct fault f = {.check = p->check, .machine = p->machine};
    const struct exam_result *r;
    json_t *machine;
    struct exam *x;

    if (more)
        memcpy(f.first, more->also, sizeof(more->also));
    machine = changed(&f, &p->fault, 1);
    x = exam_new(machine);
    r = exam_results(x);
    while (r && (r->state != EXAM_FOUND || strcmp(r->check->id, f.check) != 0))
        r = r->next;
    assert_non_null(r);
    assert_int_equal(r->cost.basis, p->lost < 0 ? EXAM_NOT_PRICED : EXAM_COMPUTED);
    if (fabs(r->cost.high - fmax(p->lost, 0)) > 1e-4 ||
        fabs(r->cost.low - (more && more->at_most ? 0 : r->cost.high)) > 1e-9)
        fail_msg("%s: a loss of %.5f to %.5f, expected %.5f", f.check, r->cost.low, r->cost.high,
                 p->lost);
    if (more)
        assert_string_equal(r->cost.of, more->of);
    exam_free(x);
    json_decref(machine);
}

static void test_prices(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZE(prices); i++)
        expect_price(&prices[i], NULL);
    for (size_t i = 0; i < SIZE(more_prices); i++)
        expect_price(&more_prices[i].price, &more_prices[i]);
}

/* Where the facts give no closed form, no figure is shown. */
static const struct calm {
    const char *check, *machine;
    struct change change[5];
} unpriced[] = {
    /* The tasks may be niced, or in another control group. */
    {"other-load", METAL, {{"proc/loadavg", "8.00 1.00 1.00 9/400 4711\n"}}},
    /* The default of Linux: a figure of other GPUs would put it before all else. */
    {"numa-balancing", METAL, {{"proc/sys/kernel/numa_balancing", "1\n"}}},
};

static void test_what_cannot_be_computed_is_not_priced(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZE(unpriced); i++) {
        const struct fault f = {.check = unpriced[i].check, .machine = unpriced[i].machine};
        json_t *machine = changed(&f, unpriced[i].change, SIZE(unpriced[i].change));
        struct exam *x = exam_new(machine);
        const struct exam_result *r = exam_results(x);

        while (r && (r->state != EXAM_FOUND || strcmp(r->check->id, f.check) != 0))
            r = r->next;
        assert_non_null(r);
        assert_int_equal(r->cost.basis, EXAM_NOT_PRICED);
        exam_free(x);
        json_decref(machine);
    }
}

/* The figure of the IOMMU is one of an adapter of 200 Gb/s: none of slower ones, and none of GPUs. */
static void test_a_figure_is_cited_where_it_holds(void **state)
{
    static const struct {
        struct change change[3];
        enum exam_basis basis;
    } cases[] = {
        {{{"sys/kernel/iommu_groups/25/type", "DMA\n"}}, EXAM_CITED},
        {{{"sys/kernel/iommu_groups/25/type", "DMA\n"},
          {PORT "rate", "200 Gb/sec (4X HDR)\n"},
          {"network.1.speed_gbits_per_s", "200.0"}},
         EXAM_CITED},
        {{{"sys/kernel/iommu_groups/25/type", "DMA\n"},
          {PORT "rate", "100 Gb/sec (4X EDR)\n"},
          {"network.1.speed_gbits_per_s", "100.0"}},
         EXAM_NOT_PRICED},
        {{{"sys/kernel/iommu_groups/24/type", "DMA\n"}}, EXAM_NOT_PRICED},
    };
    const struct fault f = {.check = "iommu", .machine = METAL};

    (void)state;
    for (size_t i = 0; i < SIZE(cases); i++) {
        json_t *machine = changed(&f, cases[i].change, SIZE(cases[i].change));
        struct exam *x = exam_new(machine);
        const struct exam_result *r = exam_results(x);

        while (r && (r->state != EXAM_FOUND || strcmp(r->check->id, f.check) != 0))
            r = r->next;
        assert_non_null(r);
        assert_int_equal(r->cost.basis, cases[i].basis);
        exam_free(x);
        json_decref(machine);
    }
}

/* ---- what is common, and costs nothing here */

static const struct calm calms[] = {
    {"mtu", METAL, {{ENO1 "mtu", "1500\n"}, {ENO1 "speed", "1000\n"}}},
    {"mtu", METAL, {{ENO1 "mtu", "9000\n"}}},
    /* The smaller of quota and set is the one that costs. */
    {"cpu-set", "docker-quota", {{"virtualization.limits.cpu_quota", "2.5"}}},
    {"cpu-quota", "docker-quota", {{"virtualization.limits.cpu_quota", "9"}}},
    /* A rank that its launcher bound, beside others: each near another device. */
    {"cpu-set",
     METAL,
     {LAUNCHED, {"rank", PEERS("[\"0-7,16-23\", \"8-15,24-31\"]")}, ON("0-7,16-23")}},
    {"far-memory",
     METAL,
     {LAUNCHED,
      {"rank", PEERS("[\"0-7\", \"8-15\"]")},
      ON("0-7"),
      {"pci", "[{\"kind\": \"gpu\", \"numa_node\": 1}]"}}},
    {"far-memory",
     METAL,
     {LAUNCHED, ON("0-7"), {"pci", "[{\"kind\": \"gpu\", \"numa_node\": 1}]"}}},
    /* Clocks of other processors that are read without a system call. */
    {"clock-source", METAL, {{"host.clocksource", "\"riscv_clocksource\""}}},
    {"clock-source", METAL, {{"host.clocksource", "\"tod\""}}},
    /* A processor without AVX-512; a protocol that is left out is not one that is forced. */
    {"settings",
     METAL,
     {{"library_settings", "{\"MKL_ENABLE_INSTRUCTIONS\": \"AVX2\"}"},
      {"cpu.features.avx512f", "false"}}},
    {"settings", METAL, {{"library_settings", "{\"NCCL_PROTO\": \"^LL128\"}"}}},
    /* Loopback is up, though the kernel does not know its state. */
    {"chosen-interface",
     METAL,
     {{"network.0.name", "\"lo\""},
      {"network.0.kind", "\"loopback\""},
      {"network.0.state", "\"unknown\""},
      {"library_settings", "{\"NCCL_SOCKET_IFNAME\": \"lo\"}"}}},
    /* What a hypervisor makes is near no node. */
    {"device-node", METAL, {{GPU "numa_node", "-1\n"}, {"pci.3.nature", "\"paravirtual\""}}},
    {"mtu", METAL, {{ENO1 "mtu", "1400\n"}, {ENO1 "operstate", "down\n"}}},
    {"mtu", GUEST, {{"sys/devices/pci0000:00/0000:00:03.0/virtio0/net/ens3/mtu", "1400\n"}}},
    /* Tunnels leave room for their headers; what a hypervisor's network carries is not known. */
    {"mtu", "docker-quota", {{"network.0.mtu", "1450"}}},
    {"mtu", METAL, {{"network.0.kind", "\"vxlan\""}, {"network.0.mtu", "1450"}}},
    {"mtu", GUEST, {{VF "net/ens5/mtu", "1500\n"}}},
    {"locked-memory",
     METAL,
     {{"proc/self/limits", LIMITS("8388608", "1024")},
      {"proc/self/status", STATUS "0-31\nCapEff:\t0000000000004000\n"},
      {"proc/self/uid_map", "         0          0 4294967295\n"}}},
    {"locked-memory", METAL, {{"proc/self/limits", LIMITS("8388608", "1024")}, {"rdma", "[]"}}},
    {"shared-memory", METAL, {{"plumb/shm", "67108864 67108864\n"}, {"gpus.devices", "[]"}}},
    {"open-files", METAL, {{"proc/self/limits", LIMITS("unlimited", "1024")}}},
    {"numa-balancing", METAL, {{"proc/sys/kernel/numa_balancing", "1\n"}, {"gpus.devices", "[]"}}},
    /* Without boost the base clock, 3700 MHz, is the highest. */
    {"clock-limit",
     METAL,
     {{CPUS "intel_pstate/no_turbo", "1\n"},
      {CPUS "cpufreq/policy0/scaling_max_freq", "3700000\n"}}},
    /* Notebooks and desktops rest deeply by design; firmware's times are not to be believed. */
    /* A place of a socket has room; an adapter of another board is there for storage. */
    {"threads",
     METAL,
     {{"library_settings", "{\"OMP_PROC_BIND\": \"primary\", \"OMP_PLACES\": \"sockets\"}"}}},
    {"gpu-adapter",
     METAL,
     {{"proximity", NEAR("NODE") OTHER_PIX}, {"pci.4.subsystem_device_id", "\"0040\""}}},
    {"idle-states",
     METAL,
     {{CPUS "cpu0/cpuidle/state3/name", "C10\n"}, {CPUS "cpu0/cpuidle/state3/latency", "890\n"}}},
    {"idle-states",
     METAL,
     {{CPUS "cpu0/cpuidle/state3/name", "C3_ACPI\n"},
      {CPUS "cpu0/cpuidle/state3/latency", "1048\n"}}},
    /* A guest of Azure, of which an Ethernet function is the fast way of its interface. */
    {"sockets", GUEST, {{"plumb/verbs", "1 0\n"}, {"network.0.driver", "\"hv_netvsc\""}}},
    {"sockets",
     GUEST,
     {{"network.0.driver", "\"hv_netvsc\""}, {"library_settings", "{\"NCCL_IB_DISABLE\": \"1\"}"}}},
    {"rdma-mtu", GUEST, {{VF "net/ens5/mtu", "1500\n"}, {"network.0.driver", "\"hv_netvsc\""}}},
    {"locked-memory",
     GUEST,
     {{"proc/self/limits", LIMITS("8388608", "1048576")},
      {"process.may_lock_memory", "false"},
      {"network.0.driver", "\"hv_netvsc\""}}},
    /* A pod that was not given the adapters, which /sys shows, or the GPUs. */
    {"sockets", METAL, {{"plumb/verbs", "0 0\n"}, {"virtualization.container", "\"kubernetes\""}}},
    {"locked-memory",
     METAL,
     {{"plumb/verbs", "0 0\n"},
      {"proc/self/limits", LIMITS("8388608", "1048576")},
      {"virtualization.container", "\"kubernetes\""}}},
    {"shared-memory",
     METAL,
     {{"plumb/shm", "67108864 67108864\n"},
      {"gpus.nvml", "false"},
      {"virtualization.container", "\"kubernetes\""}}},
    /* One CPU is enough for 1 Gb/s. */
    {"interrupts",
     METAL,
     {{"network.0.interrupts", "{\"count\": 8, \"cpus\": \"9\", \"numa_nodes\": [1]}"},
      {"network.0.queues", "{\"receive\": 8, \"send\": 8}"},
      {"network.0.speed_gbits_per_s", "1"}}},
    /* A bond for management beside fast adapters. */
    {"bond",
     METAL,
     {{"network.0.kind", "\"bond\""},
      {"network.0.bond", "{\"mode\": \"802.3ad\", \"hash_policy\": \"layer2\","
                         " \"members\": [\"ib0\", \"ib1\"]}"}}},
    /* IP over InfiniBand carries no data beside RDMA. */
    {"shared-subnet", METAL, {{"tcp.shared_subnets", "[[\"ib0\", \"ib1\"]]"}}},
    /* ACPI's table has no times. */
    {"idle-states",
     METAL,
     {{CPUS "cpuidle/current_driver", "acpi_idle\n"},
      {CPUS "cpu0/cpuidle/state3/latency", "800\n"}}},
    {"numa-balancing",
     METAL,
     {{"proc/sys/kernel/numa_balancing", "1\n"}, {"numa.nodes.1.cpus", "\"\""}}},
    /* Persistent memory beside it. */
    {"memory-sizes",
     METAL,
     {{"memory.modules.0.type", "\"Logical non-volatile device\""},
      {"memory.modules.0.size_bytes", "1099511627776"}}},
    {"memory-pressure", METAL, {{"load.swap_used_bytes", "1073741824"}}},
    /* The only CPU takes all interrupts. */
    {"interrupts",
     METAL,
     {{"cpu.threads", "1"},
      {"proc/irq/64/effective_affinity_list", "0\n"},
      {"proc/irq/65/effective_affinity_list", "0\n"}}},
    /* The interface is at node 0; node 1 is of the same socket. */
    {"interrupts",
     METAL,
     {{"network.1.interrupts.numa_nodes", "[1]"},
      {"network.2.interrupts", "null"},
      {"numa.nodes.0.distances", "[10, 12]"}}},
    {"packet-loss", METAL, {{ENO1 "statistics/rx_dropped", "900000\n"}}},
    /* What guests have, ACS keeps apart; a guest without a GPU has no peers. */
    {"acs", METAL, {LENT, {"pci.3.acs_redirect", "true"}}},
    {"peer-translation", GUEST, {{"pci.1.translation_services", "false"}}},
    {"peer-translation", METAL, {{"pci.4.translation_services", "false"}}},
    /* A port for management, beside adapters of 400 Gb/s. */
    {"line-rate", METAL, {{ENO1 "speed", "1000\n"}}},
    {"line-rate", METAL, {{ENO1 "speed", "1000\n"}, LINE("10", "10", "0")}},
    /* Frames of a healthy network, and a frame that a driver's new start took back. */
    {"pause-frames", METAL, {{LATER "plumb/net", "eno1 counts rx_flow_control_xoff=180\n"}}},
    {"pause-frames", METAL, {{LATER "plumb/net", "eno1 counts rx_flow_control_xoff=0\n"}}},
    {"packet-loss", METAL, {{ENO1 "statistics/rx_missed_errors", "20\n"}}},
    {"other-load", METAL, {{"proc/loadavg", "0.60 1.00 1.00 5/400 4711\n"}}},
    /* They wait for a disk, or have ended: none but the reader runs. */
    {"other-load", METAL, {{"proc/loadavg", "40.00 9.00 3.00 1/400 4711\n"}}},
    {"default-interface", METAL, {{"tcp.default_interfaces", "[\"eno1\"]"}}},
    {"settings", METAL, {{"library_settings", "{\"NCCL_DEBUG\": \"INFO\", \"NCCL_ALGO\": \"\"}"}}},
    {"sockets", METAL, {{"library_settings", "{\"NCCL_IB_DISABLE\": \"0\"}"}}},
    {"sockets", METAL, {{"library_settings", "{\"NCCL_IB_DISABLE\": \"1\"}"}, {"rdma", "[]"}}},
    {"settings", METAL, {{"library_settings", "{\"CUDA_DEVICE_MAX_CONNECTIONS\": \"1\"}"}}},
    {"threads",
     METAL,
     {{"library_settings", "{\"OMP_NUM_THREADS\": \"1\"}"}, {"launcher", "\"LOCAL_WORLD_SIZE\""}}},
    {"threads",
     METAL,
     {{"library_settings", "{\"OMP_NUM_THREADS\": \"2\"}"},
      {"virtualization.limits.allowed_cpus", "\"4-5\""}}},
    /* Sockets only set connections up; lists of what is left out; two networks; arp_ignore is set. */
    {"chosen-interface", METAL, {{"library_settings", "{\"NCCL_SOCKET_IFNAME\": \"eno1\"}"}}},
    {"chosen-interface",
     METAL,
     {{"library_settings", "{\"NCCL_SOCKET_IFNAME\": \"^docker0,lo\"}"}}},
    /* The data goes by NCCL's. */
    {"chosen-interface",
     METAL,
     {{"rdma", "[]"},
      {"network", TWO_SPEEDS},
      {"library_settings",
       "{\"GLOO_SOCKET_IFNAME\": \"eno1\", \"NCCL_SOCKET_IFNAME\": \"=eth1\"}"}}},
    {"chosen-interface",
     METAL,
     {{"library_settings", "{\"OMPI_MCA_btl_tcp_if_include\": \"10.0.0.0/8\"}"}, {"rdma", "[]"}}},
    {"default-interface",
     METAL,
     {{"rdma", "[]"},
      {"tcp.default_interfaces", "[\"eno1\"]"},
      {"library_settings", "{\"NCCL_SOCKET_IFNAME\": \"ib0\"}"}}},
    {"shared-subnet",
     METAL,
     {{"proc/net/route", "eno1 0001A8C0 0 1 0 0 100 00FFFFFF 0 0 0\n"
                         "ib0 0002A8C0 0 1 0 0 101 00FFFFFF 0 0 0\n"
                         "ib1 00000000 0102A8C0 3 0 0 0 00000000 0 0 0\n"}}},
    {"shared-subnet",
     METAL,
     {{"tcp.shared_subnets", "[[\"eno1\", \"ib0\"]]"},
      {"proc/sys/net/ipv4/conf/all/arp_ignore", "1\n"}}},
    {"shared-subnet",
     METAL,
     {{"tcp.shared_subnets", "[[\"eno1\", \"wlan0\"]]"},
      {"network.1.name", "\"wlan0\""},
      {"network.1.kind", "\"wifi\""}}},
    /* Not bound; one node was all that the job was given; other nodes of the same socket. */
    {"rank-map", METAL, {{"rank", "{\"local\": 5}"}, ON("0-31")}},
    {"rank-map",
     METAL,
     {{"gpus.devices", "[]"},
      {"rank", PEERS("[\"0-3\", \"4-7\"]")},
      {"virtualization.limits.cpuset", "\"0-7\""}}},
    {"rank-map", METAL, {{"gpus.devices", "[]"}, {"rank", PEERS("[\"0-15\", \"0-15\"]")}}},
    {"rank-map",
     METAL,
     {{"rank", "{\"local\": 0}"}, ON("8-9"), {"numa.nodes.0.distances", "[10, 12]"}}},
    {"gpu-ecc",
     METAL,
     {{"gpus.devices.0.ecc", "true"},
      {"gpus.devices.0.ecc_default", "true"},
      {"gpus.devices.0.memory_bus_bits", "384"}}},
    /* An adapter of 25 Gb/s has one lane, and calls it EDR. */
    {"rdma-rate",
     METAL,
     {{PORT "rate", "25 Gb/sec (1X EDR)\n"},
      {PORT "link_layer", "Ethernet\n"},
      {"rdma.1.ports", "[]"}}},
    /* One device id comes at several rates: two boards, or Ethernet beside InfiniBand. */
    {"rdma-rate",
     METAL,
     {{PORT "rate", "200 Gb/sec (4X HDR)\n"}, {"pci.4.subsystem_device_id", "\"0040\""}}},
    {"rdma-rate",
     METAL,
     {{PORT "rate", "200 Gb/sec (4X HDR)\n"}, {PORT "link_layer", "Ethernet\n"}}},
    /* The second port has no cable; iWARP has no packets of RoCE. */
    {"rdma-mtu",
     GUEST,
     {{VF "net/ens5/mtu", "1500\n"}, {VF "infiniband/mlx5_0/ports/1/state", "1: DOWN\n"}}},
    {"rdma-mtu",
     GUEST,
     {{VF "net/ens5/mtu", "1500\n"}, {VF "infiniband/mlx5_0/node_type", "4: RNIC\n"}}},
    /* Adaptive routing of InfiniBand changes the order of packets, and the adapter allows it. */
    {"rdma-loss", METAL, {{PORT "hw_counters/out_of_sequence", "10000\n"}}},
    {"link-flaps", METAL, {{ENO1 "carrier_changes", "40\n"}, {ENO1 "phy80211", "\n"}}},
    {"rdma-line", METAL, {{PORT "counters/link_downed", "2\n"}}},
    {"pcie-errors", METAL, {{GPU "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 2\n"}}},
    /* A good line of 400 Gb/s makes 35 a day. */
    {"rdma-line", METAL, {{PORT "counters/symbol_error", "101\n"}}},
    {"rdma-line",
     METAL,
     {{PORT "counters/port_rcv_errors", "101\n"},
      {PORT "counters/port_rcv_packets", "100000000000000\n"}}},
    {"rdma-pause",
     METAL,
     {{PORT "link_layer", "Ethernet\n"}, {"network.1.pause", "{\"rx\": 0, \"tx\": 0}"}}},
    {"pcie-errors", METAL, {{GPU "aer_dev_correctable", "TOTAL_ERR_COR 12\n"}}},
    {"steal", METAL, {{"proc/stat", "cpu 40000 0 10000 850000 0 0 0 100000 0 0\n"}}},
    /* A minute since boot shows no mean. */
    {"steal", GUEST, {{"proc/stat", "cpu 4000 0 1000 900000 0 0 0 1000 0 0\n"}}},
    {"steal", METAL, {{"proc/stat", "cpu 400 0 100 8500 0 0 0 1000 0 0\n"}}},
    /* The processor's own GPU, a GPU alone, and no fast adapter. */
    {"iommu",
     METAL,
     {{"pci", "[{\"address\": \"0000:00:02.0\", \"kind\": \"gpu\", \"nature\": \"physical\", "
              "\"link\": null,"
              " \"iommu_group\": 1, \"iommu_type\": \"DMA-FQ\"}]"}}},
    {"iommu",
     METAL,
     {{"pci", "[{\"address\": \"0000:01:00.0\", \"kind\": \"gpu\", \"nature\": \"physical\","
              " \"link\": {}, \"iommu_group\": 1, \"iommu_type\": \"DMA-FQ\"}]"}}},
    {"gpu-driver", METAL, {{"gpus.devices.0.driver", "\"i915\""}, {"pci.3.vendor_id", "\"8086\""}}},
    {"gpu-bar",
     METAL,
     {{"gpus.devices",
       "[{\"address\": \"0000:18:00.0\", \"driver\": \"nvidia\", \"bar1_bytes\": 268435456,"
       " \"bar1_best_bytes\": 8589934592}]"},
      {"rdma", "[]"}}},
    {"nccl-topology", GUEST, {{"pci.0.kind", "\"gpu\""}, {"pci.0.nature", "\"passthrough\""}}},
};

#define DAYS_400                                                                                   \
    {                                                                                              \
        UPTIME, "34560000.00 1.00\n"                                                               \
    }
#define GIVEN_GPU                                                                                  \
    {                                                                                              \
        "pci.2.nature", "\"passthrough\""                                                          \
    }
#define LITTLE                                                                                     \
    {LATER PORT "counters/port_rcv_packets", "1000020\n"},                                         \
    {                                                                                              \
        LATER PORT "counters/port_xmit_packets", "1000020\n"                                       \
    }
#define HELD(days)                                                                                 \
    {                                                                                              \
        "gpus.devices.0.counters", "{\"held_by_heat_seconds\": " days "}"                          \
    }
#define NVML(persistence)                                                                          \
    {"gpus.nvml", "true"},                                                                         \
    {                                                                                              \
        "gpus.devices.0.persistence_mode", persistence                                             \
    }

/* So many in 400 days are few. In the last night they are a machine that fails: one reading does not
 * tell. */
static const struct calm undated[] = {
    {"gpu-held", METAL, {NVML("true"), HELD("68040"), {"load.uptime_seconds", "34560000"}}},
    {"gpu-replays",
     METAL,
     {NVML("true"),
      {"gpus.devices.0.pcie", "{\"replays\": 3900}"},
      {"load.uptime_seconds", "34560000"}}},
    {"pcie-errors", METAL, {{GPU "aer_dev_correctable", "TOTAL_ERR_COR 3999\n"}, DAYS_400}},
    {"pcie-errors", METAL, {{GPU "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 20\n"}, DAYS_400}},
    {"link-flaps", METAL, {{ENO1 "carrier_changes", "112\n"}, DAYS_400}},
    {"rdma-line", METAL, {{PORT "counters/link_downed", "56\n"}, DAYS_400}},
    /* InfiniBand allows 1440 in an hour of 400 Gb/s. */
    {"rdma-line", METAL, {{PORT "counters/symbol_error", "1500\n"}, DAYS_400}},
    /* The ports are the host's; and without root nothing of the adapter is known. */
    {"peer-translation", GUEST, {GIVEN_GPU, {"pci.1.translation_services", "true"}}},
    {"peer-translation", GUEST, {GIVEN_GPU}},
    /* Nor does a guest see what shares a switch: off is the default, and none may be hidden. */
    {"peer-translation", GUEST, {GIVEN_GPU, {"pci.1.translation_services", "false"}}},
    {"peer-translation", GUEST, {GIVEN_GPU, {"pci.1.translation_services", "\"none\""}}},
    /* Frames alone do not tell how long they stopped it. */
    {"pause-frames", METAL, {{LATER "plumb/net", "eno1 counts rx_flow_control_xoff=5007\n"}}},
    {"pause-frames",
     METAL,
     {{"plumb/net", "eno1 counts tx_flow_control_xoff=500000\n"},
      {LATER "plumb/net", "eno1 counts tx_flow_control_xoff=500000\n"}}},
    {"pause-frames",
     METAL,
     {ONCE,
      {"plumb/net", "eno1 counts tx_flow_control_xoff=90000000\n"},
      {UPTIME, "36000.00 1.00\n"}}},
    /* A share of all packets since boot is old, or of last night. */
    {"packet-loss", METAL, {ONCE, {ENO1 "statistics/rx_missed_errors", "5000\n"}, DAYS_400}},
    {"packet-loss", METAL, {ONCE, {ENO1 "statistics/rx_crc_errors", "5000\n"}, {UPTIME, NULL}}},
    {"rdma-loss", METAL, {ONCE, {PORT "hw_counters/packet_seq_err", "5000\n"}}},
    {"rdma-line", METAL, {ONCE, {PORT "counters/port_rcv_errors", "5000\n"}}},
    /* A peer that ended: of 40 packets since a boot of today. */
    {"rdma-loss",
     METAL,
     {ONCE,
      {PORT "hw_counters/local_ack_timeout_err", "110\n"},
      {UPTIME, "36000.00 1.00\n"},
      {PORT "counters/port_rcv_packets", "20\n"},
      {PORT "counters/port_xmit_packets", "20\n"}}},
    /* Nine times the limit of a packet in 100000, and fewer than a hundred. */
    {"packet-loss",
     METAL,
     {{LATER ENO1 "statistics/rx_missed_errors", "95\n"},
      {LATER ENO1 "statistics/rx_packets", "2010000\n"},
      {LATER ENO1 "statistics/tx_packets", "1000000\n"}}},
    /* Few of all packets; many, had they come within an hour. */
    {"packet-loss",
     METAL,
     {ONCE,
      {ENO1 "statistics/rx_missed_errors", "5000\n"},
      {ENO1 "statistics/rx_packets", "1000000000\n"}}},
    /* The second reading saw too little: two packets, or a counter that began anew. */
    {"packet-loss",
     METAL,
     {{ENO1 "statistics/rx_missed_errors", "5000\n"},
      {LATER ENO1 "statistics/rx_missed_errors", "5000\n"},
      {LATER ENO1 "statistics/rx_packets", "1000001\n"},
      {LATER ENO1 "statistics/tx_packets", "1000001\n"}}},
    {"packet-loss", METAL, {{ENO1 "statistics/rx_missed_errors", "5000\n"}}},
    /* Without persistence mode, the driver counts from 0 each time that a program starts. */
    {"gpu-held", METAL, {NVML("false"), HELD("0")}},
    {"gpu-replays", METAL, {NVML("false"), {"gpus.devices.0.pcie", "{\"replays\": 0}"}}},
    {"gpu-held", METAL, {NVML("null"), HELD("0")}},
};

/* Nor would they be many, had they all come in the last hour. */
static const struct calm few[] = {
    {"gpu-held", METAL, {NVML("true"), HELD("50"), {"load.uptime_seconds", "34560000"}}},
    {"gpu-replays", METAL, {NVML("true"), {"gpus.devices.0.pcie", "{\"replays\": 90}"}}},
    {"pcie-errors", METAL, {{GPU "aer_dev_correctable", "TOTAL_ERR_COR 90\n"}, DAYS_400}},
    {"pcie-errors", METAL, {{GPU "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 2\n"}, DAYS_400}},
    {"link-flaps", METAL, {{ENO1 "carrier_changes", "18\n"}, DAYS_400}},
    {"rdma-line", METAL, {{PORT "counters/link_downed", "10\n"}, DAYS_400}},
    {"rdma-line", METAL, {{PORT "counters/symbol_error", "1400\n"}, DAYS_400}},
    /* A peer that ended: of 40 packets in two seconds. */
    {"rdma-loss", METAL, {LITTLE, {LATER PORT "hw_counters/local_ack_timeout_err", "110\n"}}},
    /* Messages of 1 MiB: 257 million packets sent, and a million answers. 150 of 258 million were lost. */
    {"rdma-loss",
     METAL,
     {{LATER PORT "hw_counters/packet_seq_err", "150\n"},
      {LATER PORT "counters/port_xmit_packets", "258000000\n"},
      {LATER PORT "counters/port_rcv_packets", "2000000\n"}}},
    /* 2500 frames a second that stop it for 50 us of two seconds; all of them of priorities. */
    {"pause-frames",
     METAL,
     {{"plumb/net", WORKING("7", "9")}, {LATER "plumb/net", WORKING("5007", "59")}}},
    {"pause-frames",
     METAL,
     {{"plumb/net", "eno1 counts rx_prio3_pause=7 rx_pause_ctrl_phy=7\n"},
      {LATER "plumb/net", "eno1 counts rx_prio3_pause=9 rx_pause_ctrl_phy=5007\n"}}},
    /* Of four million packets between the readings none was lost. */
    {"packet-loss",
     METAL,
     {{ENO1 "statistics/rx_missed_errors", "5000\n"},
      {LATER ENO1 "statistics/rx_missed_errors", "5000\n"}}},
    /* Usual traffic of an hour is 3.6e9 packets, of which 36000 may be lost. */
    {"packet-loss",
     METAL,
     {ONCE,
      {ENO1 "statistics/rx_missed_errors", "35000\n"},
      {ENO1 "statistics/rx_packets", "1000000000000\n"}}},
};

/* What is unknown of the line's going down hides no packets that it damaged. */
static const struct calm still_found[] = {
    {"rdma-line",
     METAL,
     {{PORT "counters/link_downed", "56\n"},
      {LATER PORT "counters/port_rcv_errors", "5000000\n"},
      DAYS_400,
      {LATER UPTIME, "34560002.00 1.00\n"}}},
    /* Nor do packets of an unknown time that it damaged hide its symbol errors. */
    {"rdma-line",
     METAL,
     {{PORT "counters/port_rcv_errors", "5000000\n"},
      {PORT "counters/symbol_error", "20000000\n"},
      {LATER PORT "counters/symbol_error", "20005000\n"}}},
    {"rdma-line",
     METAL,
     {{PORT "counters/link_downed", "56\n"},
      {PORT "counters/symbol_error", "20000000\n"},
      {LATER PORT "counters/symbol_error", "20005000\n"}}},
    /* More than the limit of all the time since a boot of today: whenever its driver was loaded. */
    {"gpu-held", METAL, {NVML("false"), HELD("300"), {"load.uptime_seconds", "36000"}}},
};

/* Of the subject whose counter was changed. */
static size_t expect_state(const struct calm *c, enum exam_state expected)
{
    struct fault f = {.check = c->check, .machine = c->machine, .subject = "0000:18:00.0"};

    if (!strcmp(c->check, "link-flaps") || !strcmp(c->check, "packet-loss") ||
        !strcmp(c->check, "pause-frames"))
        f.subject = "eno1";
    if (!strcmp(c->check, "peer-translation"))
        f.subject = "0000:00:05.0";
    if (!strncmp(c->check, "rdma-", 5))
        f.subject = "mlx5_0:1";
    return expect(&f, c->change[0].path, c->change, SIZE(c->change), expected);
}

static void test_counts_without_dates(void **state)
{
    size_t wrong = 0;

    (void)state;
    for (size_t i = 0; i < SIZE(undated); i++)
        wrong += expect_state(&undated[i], EXAM_UNKNOWN);
    for (size_t i = 0; i < SIZE(few); i++)
        wrong += expect_state(&few[i], EXAM_FINE);
    for (size_t i = 0; i < SIZE(still_found); i++)
        wrong += expect_state(&still_found[i], EXAM_FOUND);
    assert_int_equal(wrong, 0);
}

static void test_what_is_common_is_not_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZE(calms); i++) {
        const struct fault f = {.check = calms[i].check, .machine = calms[i].machine};
        json_t *machine = changed(&f, calms[i].change, SIZE(calms[i].change));
        struct exam *x = exam_new(machine);

        if (worst_of(x, &f) == EXAM_FOUND)
            fail_msg("case %zu: %s finds %s", i, f.check, calms[i].change[0].path);
        exam_free(x);
        json_decref(machine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_check_has_its_cases),
        cmocka_unit_test(test_each_fault_is_found),
        cmocka_unit_test(test_traffic_turns_at_the_switch),
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_what_cannot_be_computed_is_not_priced),
        cmocka_unit_test(test_a_figure_is_cited_where_it_holds),
        cmocka_unit_test(test_counts_without_dates),
        cmocka_unit_test(test_what_is_common_is_not_found),
        cmocka_unit_test(test_traffic_turns_at_two_levels), /* the last: it rebuilds the machine */
    };

    return cmocka_run_group_tests(tests, NULL, drop_copies);
}
