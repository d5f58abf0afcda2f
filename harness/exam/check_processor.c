/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the processor: its clock, and how much of it may be used. See exam.h. */
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "harness/exam/exam.h"

#define PROCESSOR "processor"

static bool has_word(const json_t *list, const char *word)
{
    const json_t *entry;
    size_t i;

    json_array_foreach (list, i, entry)
        if (json_is_string(entry) && !strcmp(json_string_value(entry), word))
            return true;
    return false;
}

static const char *word_at(const json_t *list, size_t i)
{
    const char *word = json_string_value(json_array_get(list, i));

    return word ? word : "";
}

static bool is_word(const char *word, const char *const *words)
{
    while (*words && strcmp(*words, word) != 0)
        words++;
    return *words;
}

/* ---- Clock */

#define SET_GOVERNOR                                                                               \
    "echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"

/* In their active mode intel_pstate and amd-pstate steer the clock themselves: there "powersave" is
 * no lowest clock, and the preference says how soon the clock rises. */
static bool steers_itself(const json_t *drivers)
{
    return has_word(drivers, "intel_pstate") || has_word(drivers, "amd-pstate-epp");
}

static void look_preference(struct exam *x)
{
    static const char *const slow[] = {"power", "balance_power", NULL};
    const json_t *list = exam_fact(x, PROCESSOR, NULL, "cpu.clock.energy_preferences");
    size_t i = 0;

    if (!list)
        return;
    while (i < json_array_size(list) && !is_word(word_at(list, i), slow))
        i++;
    if (i < json_array_size(list))
        exam_remedy(x,
                    exam_found(x, PROCESSOR,
                               "the energy preference is \"%s\": the clock rises late",
                               word_at(list, i)),
                    "echo performance | sudo tee "
                    "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference");
    else
        exam_fine(x, PROCESSOR);
}

/* A clock of `low` in place of full clocks costs at least what it is below the base clock, and at
 * most what it is below the highest, which few cores at a time reach. */
static void price_clock(struct exam *x, struct exam_result *r, double low, double high)
{
    double base = json_number_value(exam_get(x, NULL, "cpu.clock.base_mhz"));

    exam_price(x, r, 1 - low / high, "CPU speed", "1 - %.0f/%.0f MHz at most", low, high);
    r->cost.low = base > low && base <= high ? 1 - low / base : 0;
}

/* "powersave" of other drivers is the lowest clock that the limits allow. */
static void find_lowest_clock(struct exam *x)
{
    double floor = json_number_value(exam_get(x, NULL, "cpu.clock.floor_mhz")),
           most = json_number_value(exam_get(x, NULL, "cpu.clock.max_mhz"));
    struct exam_result *r =
        exam_found(x, PROCESSOR, "the governor \"powersave\" keeps the lowest clock");

    if (floor > 0 && most > floor)
        price_clock(x, r, floor, most);
    exam_remedy(x, r, SET_GOVERNOR);
}

static void look_governor(struct exam *x)
{
    const json_t *governors = exam_fact(x, PROCESSOR, NULL, "cpu.clock.governors"), *drivers;
    const char *first = word_at(governors, 0);

    if (!json_array_size(governors)) /* the firmware or hypervisor steers the clock */
        return;
    if (json_array_size(governors) > 1) {
        exam_remedy(x,
                    exam_found(x, PROCESSOR, "CPUs differ in their governor: \"%s\", \"%s\"", first,
                               word_at(governors, 1)),
                    SET_GOVERNOR);
        return;
    }
    drivers = exam_fact(x, PROCESSOR, NULL, "cpu.clock.drivers");
    if (!drivers)
        return;
    if (!strcmp(first, "performance"))
        exam_fine(x, PROCESSOR);
    else if (steers_itself(drivers))
        look_preference(x);
    else if (!strcmp(first, "powersave"))
        find_lowest_clock(x);
    else
        exam_remedy(x,
                    exam_found(x, PROCESSOR,
                               "the governor \"%s\" raises the clock only after load was seen",
                               first),
                    SET_GOVERNOR);
}

/* Rounding, and what firmware keeps for itself. */
#define CAP_SHARE 0.95

/* The highest clock that is allowed; without boost, against the base clock. */
static void look_cap(struct exam *x)
{
    const json_t *boost = exam_get(x, NULL, "cpu.clock.boost");
    double cap, most;
    struct exam_result *r;

    if (!json_array_size(exam_list(x, "cpu.clock.governors")))
        return;
    if (!exam_number(x, PROCESSOR, NULL, "cpu.clock.cap_mhz", &cap) ||
        !exam_number(x, PROCESSOR, NULL, "cpu.clock.cap_of_mhz", &most))
        return;
    if (json_is_false(boost) && !exam_number(x, PROCESSOR, NULL, "cpu.clock.base_mhz", &most))
        return;
    if (cap >= CAP_SHARE * most) {
        exam_fine(x, PROCESSOR);
        return;
    }
    r = exam_found(x, PROCESSOR, "the clock may not rise above %.0f of %.0f MHz", cap, most);
    price_clock(x, r, cap, most);
    exam_remedy(x, r, "sudo cpupower frequency-set -u %.0fMHz", most);
}

static void look_boost(struct exam *x)
{
    bool boost;

    if (!json_array_size(exam_list(x, "cpu.clock.governors")))
        return;
    if (!exam_flag(x, PROCESSOR, NULL, "cpu.clock.boost", &boost))
        return;
    if (boost)
        exam_fine(x, PROCESSOR);
    else
        exam_remedy(x, exam_found(x, PROCESSOR, "boost clocks are switched off"),
                    has_word(exam_get(x, NULL, "cpu.clock.drivers"), "intel_pstate")
                        ? "echo 0 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
                        : "echo 1 | sudo tee /sys/devices/system/cpu/cpufreq/boost");
}

/* Reading these needs no system call. */
static void look_clock_source(struct exam *x)
{
    static const char *const fast[] = {"tsc",      "tsc-early", "arch_sys_counter",
                                       "timebase", "kvm-clock", "hyperv_clocksource_tsc_page",
                                       "tod",      "Constant",  "riscv_clocksource",
                                       NULL};
    const char *name = exam_text(x, "clock", NULL, "host.clocksource");
    struct exam_result *r;

    if (!name)
        return;
    if (is_word(name, fast)) {
        exam_fine(x, "clock");
        return;
    }
    if (!strcmp(name, "xen")) { /* by the age of kernel and host */
        exam_unknown(x, "clock", "whether reading \"xen\" takes a system call");
        return;
    }
    r = exam_found(x, "clock", "reading the time from \"%s\" is slow", name);
    if (has_word(exam_get(x, NULL, "host.clocksources"), "tsc"))
        exam_remedy(x, r,
                    "echo tsc | sudo tee "
                    "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    else
        exam_remedy(x, r, "sudo dmesg | grep -i tsc");
}

/* ---- How much may be used */

/* From where the group is set: in a container there are no units of its host's systemd. */
static void remedy_group(struct exam *x, struct exam_result *r, const char *docker,
                         const char *systemd)
{
    const char *container =
        json_string_value(exam_get(x, NULL, "virtualization.container")); /* NULL: not known */

    if (!container || !strcmp(container, "none"))
        exam_remedy(x, r, "sudo systemctl set-property UNIT %s", systemd);
    else if (!strcmp(container, "docker") || !strcmp(container, "podman"))
        exam_remedy(x, r, "%s update %s CONTAINER", container, docker);
    else if (!strcmp(container, "kubernetes"))
        exam_remedy(x, r,
                    "in the pod's resources leave limits.cpu out, or give whole CPUs where the "
                    "nodes have the static CPU manager");
    else
        exam_remedy(x, r, "start the %s container without this limit of CPUs", container);
}

/* Does the control group allow more CPUs than this process may use? Then its own mask is narrow. */
static bool is_mask(struct exam *x, double allowed)
{
    const char *set = json_string_value(exam_get(x, NULL, "virtualization.limits.cpuset"));

    return set && exam_cpus(set) > allowed;
}

/* Of quota and set, the smaller one decides: the other costs nothing beside it. Where the set leaves
 * out CPUs as well, the price is that of both, which no measurement within the set can show. */
static void find_quota(struct exam *x, double quota, double usable, double threads)
{
    struct exam_result *r = exam_found(
        x, PROCESSOR,
        "the control group allows the time of %.3g of %.0f CPUs: threads beyond are paused", quota,
        threads);

    exam_price(x, r, 1 - quota / threads, "CPU throughput of all threads", "1 - %.3g/%.0f CPUs",
               quota, threads);
    r->keeps_price = usable < threads;
    if (usable < threads)
        remedy_group(x, r, exam_format(x, "--cpus %.0f --cpuset-cpus 0-%.0f", threads, threads - 1),
                     exam_format(x, "CPUQuota= AllowedCPUs=0-%.0f", threads - 1));
    else
        remedy_group(x, r, exam_format(x, "--cpus %.0f", threads), "CPUQuota=");
}

static void look_quota(struct exam *x)
{
    const json_t *quota = exam_fact(x, PROCESSOR, NULL, "virtualization.limits.cpu_quota");
    double threads, usable = exam_allowed(x), cpus = json_number_value(quota);

    if (!quota || !exam_number(x, PROCESSOR, NULL, "cpu.threads", &threads))
        return;
    if (usable <= 0 || usable > threads)
        usable = threads;
    if (!json_is_number(quota) || cpus >= usable)
        exam_fine(x, PROCESSOR);
    else
        find_quota(x, cpus, usable, threads);
}

/* How many different ones. */
static double count_cpus(const char *list)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    int n = hwloc_bitmap_list_sscanf(cpus, list) ? 0 : hwloc_bitmap_weight(cpus);

    hwloc_bitmap_free(cpus);
    return n;
}

/* Each rank has a part, as it should; what all ranks of the host leave is lost. */
static void look_ranks(struct exam *x, const char *own, double threads)
{
    const char *list = exam_job_cpus(x, own);
    double all = list ? count_cpus(list) : 0;
    struct exam_result *r;

    if (!list) {
        exam_unknown(x, PROCESSOR, "which CPUs the other ranks of this host may use")->matters =
            false;
    } else if (all >= threads) {
        exam_fine(x, PROCESSOR);
    } else {
        r = exam_found(x, PROCESSOR, "all ranks of this host may use %.0f of %.0f CPUs", all,
                       threads);
        exam_price(x, r, 1 - all / threads, "CPU throughput of all threads", "1 - %.0f/%.0f CPUs",
                   all, threads);
        exam_remedy(x, r, "mpirun --map-by numa --bind-to numa (srun --cpus-per-task=N)");
    }
}

static void look_cpus(struct exam *x)
{
    const char *list = exam_text(x, PROCESSOR, NULL, "virtualization.limits.allowed_cpus");
    double threads, allowed = list ? exam_cpus(list) : 0;
    const json_t *quota;
    struct exam_result *r;

    if (!list || !exam_number(x, PROCESSOR, NULL, "cpu.threads", &threads))
        return;
    if (allowed <= 0 || allowed >= threads) {
        exam_fine(x, PROCESSOR);
        return;
    }
    quota = exam_fact(x, PROCESSOR, NULL, "virtualization.limits.cpu_quota");
    if (!quota)
        return;
    if (json_is_number(quota) && json_number_value(quota) < allowed) {
        exam_not_applicable(x, PROCESSOR, "the quota is less than these CPUs: see cpu-quota");
        return;
    }
    if (exam_launched(x)) {
        look_ranks(x, list, threads);
        return;
    }
    r = exam_found(x, PROCESSOR, "only %.0f of %.0f CPUs may be used: %s", allowed, threads, list);
    exam_price(x, r, 1 - allowed / threads, "CPU throughput of all threads", "1 - %.0f/%.0f CPUs",
               allowed, threads);
    if (is_mask(x, allowed))
        exam_remedy(x, r, "start it without taskset, numactl or CPUAffinity=");
    else
        remedy_group(x, r, exam_format(x, "--cpuset-cpus 0-%.0f", threads - 1),
                     exam_format(x, "AllowedCPUs=0-%.0f", threads - 1));
}

/* ---- Mitigations */

/* Those that make each system call slow; nearly all machines have the cheap ones. */
static bool is_heavy(const char *state)
{
    static const char *const heavy[] = {"Mitigation: IBRS", "Mitigation: IBPB", NULL};

    for (size_t i = 0; heavy[i]; i++) {
        size_t n = strlen(heavy[i]);

        /* "IBPB on VMEXIT only" is of hosts of guests. */
        if (!strncmp(state, heavy[i], n) && (!state[n] || strchr(";,", state[n])))
            return true;
    }
    return false;
}

static void look_mitigations(struct exam *x)
{
    const json_t *all = exam_fact(x, "kernel", NULL, "host.mitigations");
    bool any = false;
    const char *name;
    json_t *state;

    json_object_foreach ((json_t *)all, name, state) {
        const char *text = json_string_value(state);

        if (!text || !is_heavy(text))
            continue;
        any = true;
        exam_remedy(x, exam_found(x, name, "\"%s\" makes system calls and interrupts slow", text),
                    "boot with mitigations=off, only where all users are trusted");
    }
    if (all && !any)
        exam_fine(x, "kernel");
}

const struct exam_check exam_processor[] = {
    {.id = "governor",
     .question = "Does the clock governor allow full clocks at once?",
     .seen = "/sys/devices/system/cpu/cpufreq: scaling_governor, scaling_driver, "
             "energy_performance_preference",
     .pipes = "Matrix core|Memory|Caches|Latency|Copies|Between two processes|Network*|" EXAM_GROUP,
     .look = look_governor},
    {.id = "clock-limit",
     .question = "May the clock rise to the highest that the CPUs can do?",
     .seen = "scaling_max_freq in /sys/devices/system/cpu/cpufreq, intel_pstate/max_perf_pct",
     .pipes = "Matrix core|Memory|Caches|Latency|Copies|Between two processes|Network*|" EXAM_GROUP,
     .look = look_cap},
    {.id = "boost",
     .question = "Are boost clocks on?",
     .seen = "/sys/devices/system/cpu/cpufreq/boost, intel_pstate/no_turbo",
     .pipes = "Matrix core|Latency|Caches|Training step",
     .look = look_boost},
    {.id = "clock-source",
     .question = "Is the clock read without a system call?",
     .seen = "/sys/devices/system/clocksource/clocksource0/current_clocksource",
     .pipes = "Latency|Network latency|Allreduce latency|GPU latency|GPU launch",
     .look = look_clock_source},
    {.id = "cpu-quota",
     .question = "May all CPUs be used all of the time?",
     .seen = "cpu.max or cpu.cfs_quota_us of the process's control groups",
     .pipes = "Matrix core|Memory|Caches|Latency|Copies|Between two processes|Network*|" EXAM_GROUP,
     .matters = true,
     .measured = "*",
     .look = look_quota},
    {.id = "cpu-set",
     .question = "May the process run on all CPUs?",
     .seen = "Cpus_allowed_list in /proc/self/status",
     .pipes = "Matrix core|Memory|Network*|Copies|Between two processes|" EXAM_GROUP,
     .matters = true,
     .look = look_cpus},
    {.id = "mitigations",
     .question = "Do mitigations of CPU faults make each system call slow?",
     .seen = "/sys/devices/system/cpu/vulnerabilities",
     .pipes = "Latency|Copies|Network*|Allreduce latency|Between two processes",
     .look = look_mitigations},
    {.id = NULL},
};
