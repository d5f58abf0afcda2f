/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the processor: its clock, and how much of it may be used. See exam.h. */
#include <stdlib.h>
#include <string.h>

#include "harness/exam/exam.h"

/* ---- Clock */

#define SET_GOVERNOR                                                                               \
    "echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"

static bool judge_preference(struct exam *x)
{
    const json_t *list = exam_fact(x, NULL, "cpu.clock.energy_preferences");

    FACT_EACH (list, one)
        if (fact_fits("power|balance_power", fact_word(one))) {
            exam_found(x, "the energy preference is \"%s\": the clock rises late", fact_word(one));
            return exam_remedy(
                x, "echo performance | sudo tee "
                   "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference");
        }
    return list;
}

/* A clock of `low` in place of full clocks costs at least what it is below the base clock, and at
 * most what it is below the highest, which few cores at a time reach. */
static void price_clock(struct exam *x, double low, double high)
{
    double base = exam_value(x, NULL, "cpu.clock.base_mhz", 0);

    exam_price(x, 1 - low / high, "CPU speed", "1 - %.0f/%.0f MHz at most", low, high)->cost.low =
        base > low && base <= high ? 1 - low / base : 0;
}

static bool judge_governor(struct exam *x)
{
    const json_t *governors = exam_fact(x, NULL, "cpu.clock.governors"), *drivers;
    const char *first = fact_word(json_array_get(governors, 0));

    if (!json_array_size(governors)) /* the firmware or hypervisor steers the clock */
        return false;
    if (json_array_size(governors) > 1)
        return exam_found(x, "CPUs differ in their governor: \"%s\", \"%s\"", first,
                          fact_word(json_array_get(governors, 1)));
    drivers = exam_fact(x, NULL, "cpu.clock.drivers");
    if (!drivers)
        return false;
    if (!strcmp(first, "performance"))
        return true;
    /* In their active mode these steer the clock themselves: there "powersave" is no lowest clock,
     * and the preference says how soon the clock rises. Of other drivers it is the lowest that the
     * limits allow. */
    if (fact_has_word(drivers, "intel_pstate") || fact_has_word(drivers, "amd-pstate-epp"))
        return judge_preference(x);
    if (!strcmp(first, "powersave")) {
        double floor = exam_value(x, NULL, "cpu.clock.floor_mhz", 0),
               most = exam_value(x, NULL, "cpu.clock.max_mhz", 0);

        exam_found(x, "the governor \"powersave\" keeps the lowest clock");
        if (floor > 0 && most > floor)
            price_clock(x, floor, most);
        return true;
    }
    return exam_found(x, "the governor \"%s\" raises the clock only after load was seen", first);
}

static bool has_governors(struct exam *x)
{
    return json_array_size(exam_list(x, "cpu.clock.governors")) > 0;
}

/* Rounding, and what firmware keeps for itself. */
#define CAP_SHARE 0.95

/* The highest clock that is allowed; without boost, against the base clock. */
static bool judge_cap(struct exam *x)
{
    const json_t *boost = exam_get(x, NULL, "cpu.clock.boost");
    double cap, most;

    if (!has_governors(x) || !exam_number(x, NULL, "cpu.clock.cap_mhz", &cap) ||
        !exam_number(x, NULL, "cpu.clock.cap_of_mhz", &most) ||
        (json_is_false(boost) && !exam_number(x, NULL, "cpu.clock.base_mhz", &most)))
        return false;
    if (cap < CAP_SHARE * most) {
        exam_found(x, "the clock may not rise above %.0f of %.0f MHz", cap, most);
        price_clock(x, cap, most);
        exam_remedy(x, "sudo cpupower frequency-set -u %.0fMHz", most);
    }
    return true;
}

static bool judge_boost(struct exam *x)
{
    bool boost;

    if (!exam_flag(x, NULL, "cpu.clock.boost", &boost))
        return false;
    if (!boost) {
        const json_t *drivers = exam_get(x, NULL, "cpu.clock.drivers");

        exam_found(x, "boost clocks are switched off");
        if (fact_has_word(drivers, "intel_pstate"))
            exam_remedy(x, "echo 0 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo");
    }
    return true;
}

/* Reading these needs no system call. */
#define FAST_CLOCKS                                                                                \
    "tsc|tsc-early|arch_sys_counter|timebase|kvm-clock|hyperv_clocksource_tsc_page|tod|Constant|"  \
    "riscv_clocksource"

static bool judge_clock_source(struct exam *x)
{
    const char *name = exam_text(x, NULL, "host.clocksource");

    if (!name)
        return false;
    if (fact_fits(FAST_CLOCKS, name))
        return true;
    if (!strcmp(name, "xen")) /* by the age of kernel and host */
        return exam_unknown(x, "whether reading \"xen\" takes a system call");
    exam_found(x, "reading the time from \"%s\" is slow", name);
    if (fact_has_word(exam_get(x, NULL, "host.clocksources"), "tsc"))
        exam_remedy(x, "echo tsc | sudo tee "
                       "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    return true;
}

/* ---- How much may be used */

/* From where the group is set: in a container there are no units of its host's systemd. */
static void remedy_group(struct exam *x, const char *docker, const char *systemd)
{
    const char *container =
        json_string_value(exam_get(x, NULL, "virtualization.container")); /* NULL: not known */

    if (!container || !strcmp(container, "none"))
        exam_remedy(x, "sudo systemctl set-property UNIT %s", systemd);
    else if (!strcmp(container, "docker") || !strcmp(container, "podman"))
        exam_remedy(x, "%s update %s CONTAINER", container, docker);
    else if (!strcmp(container, "kubernetes"))
        exam_remedy(x, "in the pod's resources leave limits.cpu out, or give whole CPUs where the "
                       "nodes have the static CPU manager");
    else
        exam_remedy(x, "start the %s container without this limit of CPUs", container);
}

/* Of quota and set, the smaller one decides: the other costs nothing beside it. Where the set leaves
 * out CPUs as well, the price is that of both, which no measurement within the set can show. */
static bool judge_quota(struct exam *x)
{
    const json_t *fact = exam_fact(x, NULL, "virtualization.limits.cpu_quota");
    double threads, usable = exam_allowed(x), quota = json_number_value(fact);

    if (!fact || !exam_number(x, NULL, "cpu.threads", &threads))
        return false;
    if (usable <= 0 || usable > threads)
        usable = threads;
    if (!json_is_number(fact) || quota >= usable)
        return true;
    exam_found(x,
               "the control group allows the time of %.3g of %.0f CPUs: threads beyond are paused",
               quota, threads);
    exam_price(x, 1 - quota / threads, "CPU throughput of all threads", "1 - %.3g/%.0f CPUs", quota,
               threads)
        ->keeps_price = usable < threads;
    if (usable < threads)
        remedy_group(x, exam_format(x, "--cpus %.0f --cpuset-cpus 0-%.0f", threads, threads - 1),
                     exam_format(x, "CPUQuota= AllowedCPUs=0-%.0f", threads - 1));
    else
        remedy_group(x, exam_format(x, "--cpus %.0f", threads), "CPUQuota=");
    return true;
}

/* Each rank has a part, as it should; what all ranks of the host leave is lost. */
static bool judge_ranks(struct exam *x, const char *own, double threads)
{
    const char *list = exam_job_cpus(x, own);
    double all = list ? fact_cpus(list) : 0;

    if (!list) {
        exam_unknown(x, "which CPUs the other ranks of this host may use")->matters = false;
    } else if (all < threads) {
        exam_found(x, "all ranks of this host may use %.0f of %.0f CPUs", all, threads);
        exam_price_rest(x, all, threads, "CPU throughput of all threads", "CPUs");
        exam_remedy(x, "mpirun --map-by numa --bind-to numa (srun --cpus-per-task=N)");
    }
    return true;
}

static bool judge_cpus(struct exam *x)
{
    const char *list = exam_text(x, NULL, "virtualization.limits.allowed_cpus"), *set;
    double threads, allowed = list ? fact_cpus(list) : 0;
    const json_t *quota;

    if (!list || !exam_number(x, NULL, "cpu.threads", &threads))
        return false;
    if (allowed <= 0 || allowed >= threads)
        return true;
    quota = exam_fact(x, NULL, "virtualization.limits.cpu_quota");
    if (!quota)
        return false;
    if (json_is_number(quota) && json_number_value(quota) < allowed)
        return exam_not_applicable(x, "the quota is less than these CPUs: see cpu-quota");
    if (exam_launched(x))
        return judge_ranks(x, list, threads);
    exam_found(x, "only %.0f of %.0f CPUs may be used: %s", allowed, threads, list);
    exam_price_rest(x, allowed, threads, "CPU throughput of all threads", "CPUs");
    set = json_string_value(exam_get(x, NULL, "virtualization.limits.cpuset"));
    if (!set || fact_cpus(set) <= allowed) /* else its own mask is narrow */
        remedy_group(x, exam_format(x, "--cpuset-cpus 0-%.0f", threads - 1),
                     exam_format(x, "AllowedCPUs=0-%.0f", threads - 1));
    return true;
}

/* ---- Mitigations */

/* Those that make each system call slow; nearly all machines have the cheap ones. "IBPB on VMEXIT
 * only" is of hosts of guests. */
#define HEAVY "Mitigation: IBRS|Mitigation: IBRS[;,]*|Mitigation: IBPB|Mitigation: IBPB[;,]*"

static bool judge_mitigations(struct exam *x)
{
    const json_t *all = exam_fact(x, NULL, "host.mitigations");
    const char *name;
    json_t *state;

    json_object_foreach ((json_t *)all, name, state) {
        exam_about(x, name);
        if (fact_fits(HEAVY, fact_word(state)))
            exam_found(x, "\"%s\" makes system calls and interrupts slow", fact_word(state));
    }
    exam_about(x, "kernel");
    return all;
}

const struct exam_check exam_processor[] = {
    {.id = "governor",
     .question = "Does the clock governor allow full clocks at once?",
     .seen = "/sys/devices/system/cpu/cpufreq: scaling_governor, scaling_driver, "
             "energy_performance_preference",
     .pipes = EXAM_CPUS,
     .remedy = SET_GOVERNOR,
     .subject = "processor",
     .judge = judge_governor},
    {.id = "clock-limit",
     .question = "May the clock rise to the highest that the CPUs can do?",
     .seen = "scaling_max_freq in /sys/devices/system/cpu/cpufreq, intel_pstate/max_perf_pct",
     .pipes = EXAM_CPUS,
     .subject = "processor",
     .judge = judge_cap},
    {.id = "boost",
     .question = "Are boost clocks on?",
     .seen = "/sys/devices/system/cpu/cpufreq/boost, intel_pstate/no_turbo",
     .pipes = "Matrix core|Latency|Caches|Training step",
     .remedy = "echo 1 | sudo tee /sys/devices/system/cpu/cpufreq/boost",
     .when = has_governors,
     .subject = "processor",
     .judge = judge_boost},
    {.id = "clock-source",
     .question = "Is the clock read without a system call?",
     .seen = "/sys/devices/system/clocksource/clocksource0/current_clocksource",
     .pipes = "Latency|Network latency|Allreduce latency|GPU latency|GPU launch",
     .remedy = "sudo dmesg | grep -i tsc",
     .subject = "clock",
     .judge = judge_clock_source},
    {.id = "cpu-quota",
     .question = "May all CPUs be used all of the time?",
     .seen = "cpu.max or cpu.cfs_quota_us of the process's control groups",
     .pipes = EXAM_CPUS,
     .matters = true,
     .measured = "*",
     .subject = "processor",
     .judge = judge_quota},
    {.id = "cpu-set",
     .question = "May the process run on all CPUs?",
     .seen = "Cpus_allowed_list in /proc/self/status",
     .pipes = "Matrix core|Memory|Network*|Copies|Between two processes|" EXAM_GROUP,
     .matters = true,
     .remedy = "start it without taskset, numactl or CPUAffinity=",
     .subject = "processor",
     .judge = judge_cpus},
    {.id = "mitigations",
     .question = "Do mitigations of CPU faults make each system call slow?",
     .seen = "/sys/devices/system/cpu/vulnerabilities",
     .pipes = "Latency|Copies|Network*|Allreduce latency|Between two processes",
     .remedy = "boot with mitigations=off, only where all users are trusted",
     .subject = "kernel",
     .judge = judge_mitigations},
    {.id = NULL},
};
