/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The noise ledger: what the machine did beside the measurement. Taken before and after a case; the
 * difference goes into its rows.
 *
 * Sources: /proc/stat (steal), getrusage and /proc/PID (switches, faults; this process and its
 * children, those that still run included), a timed chain of dependent additions (CPU clock, since
 * guests hide it), /sys/devices/system/cpu/cpuN/thermal_throttle, the cgroup's cpu.stat (quota
 * throttling), /sys/class/powercap (energy of processor packages).
 */
#ifndef PLUMB_CORE_LEDGER_H
#define PLUMB_CORE_LEDGER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Each is NaN where the system does not tell. */
struct ledger {
    double elapsed_s;
    /* Of the time in which CPUs had work, and at least that of one CPU: another guest had them. An
     * idle CPU loses nothing, so that of all CPUs' time it would be the less the fewer are used. One
     * tick is what rounding may make, and never more than 1 % */
    double steal_percent;
    double ctx_involuntary; /* this process was pushed off a CPU: count */
    double ctx_voluntary;
    double faults_major, faults_minor;
    double cpu_mhz_low, cpu_mhz_high; /* the lowest and highest of the measured clock */
    double
        throttle_events; /* thermal throttling of cores and of packages, as each CPU counts them */
    double quota_throttled_ms; /* time this cgroup stood still for its CPU quota, over its CPUs */
    /* The same, of the CPU time that the cgroup wanted: what it used, and that. Whatever it runs on,
     * one CPU or all, both are counted over the same ones. Both are of the group that has the quota,
     * which may be above this process's own */
    double quota_percent;
    double cpu_watts; /* of all processor packages and their memory, by their counters: the mean */
};

/* The GPUs of one case, over all of them, as gpu_watch.h saw them: NaN and "" where it is not
 * known. */
struct gpu_ledger {
    double clock_mhz_low, clock_mhz_high; /* of the SMs, while at work */
    double memory_clock_mhz;              /* the lowest */
    double temperature_c, power_watts;    /* the highest */
    double mean_watts;   /* by energy counters while sampling: the highest of any device */
    double energy_s;     /* the time that this is the mean of, of that device */
    double throttled_ms; /* longest time a device was held back, by its own counters */
    double looks, throttled_looks;     /* how often it was looked at; and found held back */
    double samples, throttled_samples; /* set by who has them: all, and those of gpu_watch_held() */
    double ecc_errors;                 /* corrected and uncorrected, new ones */
    double pcie_replays;               /* packets sent again over PCIe, new ones */
    char throttle[96];                 /* by what: "power cap, thermal slowdown" */
    char clocks_set
        [72]; /* settings that bound its clocks, which is no throttling: "application clocks" */
    unsigned seen; /* both, as bits of gpu_watch_reasons() */
};

/* Counters of energy, of each processor package and of its memory: RAPL. */
#define LEDGER_ENERGIES 32
struct ledger_energy {
    unsigned n; /* 0: there are none, or they cannot be read: often only root may */
    double joules[LEDGER_ENERGIES], range[LEDGER_ENERGIES]; /* range: where it begins at 0 again */
};

struct ledger_mark {
    uint64_t at_ns;
    double steal_ticks, total_ticks, idle_ticks, ctx_involuntary, ctx_voluntary, faults_major,
        faults_minor;
    double cpu_mhz, throttle_events, quota_throttled_ms, quota_used_ms;
    struct ledger_energy energy;
};

/* Time of some CPUs, in ticks. NaN where the system does not tell. */
struct ledger_ticks {
    double steal, idle, total;
};

/* Of /proc/stat, the sum over these CPUs. */
void ledger_ticks(FILE *stat, const unsigned *cpus, unsigned n, struct ledger_ticks *out);

/* From a folder such as /sys/devices/system/cpu, of so many CPUs: how often cores and packages were
 * too hot, as each of their CPUs counts it; NaN: not told. A package's heat is no core's. */
double ledger_throttles(const char *folder, long cpus);

/* The two of the quota, of the cgroup that /proc/self/cgroup below this root names, or in version 2
 * of the innermost one above it that has a quota; "": of this system. NaN where it does not tell: the
 * root of version 2 has no quota. */
void ledger_quota(const char *root, struct ledger_mark *mark);

/* From a folder such as /sys/class/powercap. */
void ledger_energy(const char *folder, struct ledger_energy *out);

/* The mean of all counters together, W. NaN: not known, or so long that one may have wrapped more
 * than once. */
double ledger_watts(const struct ledger_energy *before, const struct ledger_energy *after,
                    double elapsed_s);

void ledger_mark(struct ledger_mark *mark); /* about 0.2 ms */
void ledger_between(const struct ledger_mark *before, const struct ledger_mark *after,
                    struct ledger *out);
void ledger_none(struct ledger *out); /* all NaN */

/* The sentence for a row that was disturbed, or "" when it was not: "steal 3.1 %, clock 2600 to
 * 3400 MHz". The thresholds are in ledger.c and in docs/measuring.md. */
const char *ledger_disturbance(const struct ledger *l, char *text, size_t len);

/* The core clock in MHz, measured: the best of several chains of dependent one-cycle additions; NaN
 * on an unknown architecture. */
double ledger_cpu_mhz(void);

#endif
