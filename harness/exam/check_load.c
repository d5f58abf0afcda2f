/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what else takes the CPUs, and of how they rest. See exam.h. */
#include <stdlib.h>
#include <string.h>

#include "harness/exam/exam.h"

/* Below, it is a system's own work: half a CPU, or a twentieth of all. */
#define LOAD_CPUS  0.5
#define LOAD_SHARE 0.05

static bool is_load(double tasks, double cpus)
{
    return tasks >= LOAD_CPUS && tasks >= LOAD_SHARE * cpus;
}

/*
 * The average counts tasks that wait for a disk, and a run of this suite that has just ended; both
 * take no CPU now. So other tasks must also run at this moment. What they cost depends on their
 * weights and control groups, which the average does not tell: --measure prices it.
 */
static bool judge_load(struct exam *x)
{
    double tasks, cpus, running;

    if (!exam_number(x, NULL, "load.average_1min", &tasks) ||
        !exam_number(x, NULL, "cpu.threads", &cpus))
        return false;
    exam_get(x, NULL, "load.cpu_pressure");
    if (!is_load(tasks, cpus))
        return true;
    if (!exam_number(x, NULL, "load.running_tasks", &running))
        return false;
    if (is_load(running - 1, cpus)) /* the reader itself runs */
        exam_found(x,
                   "on average %.2g tasks wanted the %.0f CPUs in the last minute, and %.0f do "
                   "now",
                   tasks, cpus, running - 1);
    return true;
}

/* Between two readings, or since boot, of which the start-up alone shows little. A burst of one second
 * may end with it. */
#define STEAL_SECONDS 120

static const struct exam_part stealing = {
    "stolen_cpu_seconds", "wanted_cpu_seconds", 0.01, 0.05, 0.1, 10};

static bool judge_steal(struct exam *x)
{
    double wanted, stolen;
    struct exam_span span;
    enum exam_when when;

    if (exam_metal(x) || !exam_number(x, NULL, "load.wanted_cpu_seconds", &wanted) ||
        !exam_number(x, NULL, "load.stolen_cpu_seconds", &stolen))
        return false;
    when = exam_part_when(x, exam_peek(x, "load"), &stealing, stolen, wanted, &span);
    if (span.all == wanted && wanted < STEAL_SECONDS)
        return exam_unknown(x, "the guest wanted only %.0f s of CPU time since boot", wanted);
    if (when == EXAM_NOW) {
        exam_found(x, "of the CPU time that the guest wanted, other guests got %.1f %%, %s",
                   100 * span.bad / span.all, span.text);
        exam_price(x, span.bad / span.all, "CPU time", "%.4g of %.4g s, %s", span.bad, span.all,
                   span.text);
    } else if (when == EXAM_UNDATED) {
        exam_unknown(x,
                     "of the CPU time that the guest wanted, others got %.1f %% %s%s: plumb "
                     "doctor --watch 1m, under load, tells",
                     100 * span.bad / span.all, span.text,
                     span.brief ? ", perhaps in one burst" : ", now or long ago");
    }
    return true;
}

/* How often the control group's time was used up before its period ended: between two readings, or
 * since it was made, which is at boot or later. */
static bool judge_throttled(struct exam *x)
{
    static const struct exam_part pauses = {"throttled_periods", "periods", 0.01, 0.3, 3, 100};
    const json_t *counters = exam_fact(x, NULL, "virtualization.limits.counters");
    struct exam_span span;
    enum exam_when when;

    if (!counters)
        return false;
    when = exam_part_when(x, exam_peek(x, "virtualization.limits"), &pauses,
                          fact_number(counters, "throttled_periods", 0),
                          fact_number(counters, "periods", 0), &span);
    if (when == EXAM_NOW)
        exam_found(x, "the CPU quota paused it in %.0f %% of its periods of work, %s",
                   100 * span.bad / span.all, span.text);
    else if (when == EXAM_UNDATED)
        exam_unknown(x,
                     "the CPU quota paused it in %.0f %% of its periods of work, %s%s: plumb "
                     "doctor --watch 1m tells",
                     100 * span.bad / span.all, span.text, span.brief ? "" : " or later");
    return true;
}

/* The scheduler starts no thread on these by itself, and moves none between them. */
static bool judge_isolated(struct exam *x)
{
    const char *isolated = exam_text(x, NULL, "cpu.isolated_cpus"),
               *allowed =
                   isolated ? exam_text(x, NULL, "virtualization.limits.allowed_cpus") : NULL;

    if (allowed && fact_common(isolated, allowed))
        exam_found(x, "of its CPUs %s, the kernel isolates %s: threads there are not balanced",
                   allowed, isolated);
    return allowed;
}

/*
 * By Linux' tables (drivers/idle/intel_idle.c) no server needs 400 us: longer ones are states of the
 * whole package, of notebooks and desktops, which rest so by design (C7 to C10). From 150 us on, as C6 of servers needs by that table, what it costs
 * is for --measure to say. Tables of ACPI have no times: EPYC's C2 is given as 30 to 800 us, and
 * needs about 10.
 */
#define WAKE_US     400
#define MAY_COST_US 150

static bool judge_idle(struct exam *x)
{
    const json_t *states = exam_fact(x, NULL, "cpu.idle.states"), *deepest = NULL;
    const char *driver, *name;
    double most = 0;

    FACT_EACH (states, state) {
        double us;

        if (!exam_number(x, state, "exit_latency_us", &us))
            return false;
        if (!fact_true(state, "disabled") && us > most) {
            most = us;
            deepest = state;
        }
    }
    if (!states || most < MAY_COST_US)
        return states;
    driver = exam_text(x, NULL, "cpu.idle.driver");
    if (!driver)
        return false;
    name = fact_name(deepest, "name");
    if (*name == 'C' && atoi(name + 1) >= 7) /* "C8", "C10", "C7s": of no server of today */
        return exam_not_applicable(x, "notebooks and desktops rest in %s: --measure=idle-states",
                                   name);
    if (most < WAKE_US || strcmp(driver, "intel_idle") != 0 ||
        strstr(name, "ACPI")) /* else these are the firmware's times */
        return exam_unknown(
            x, "how long state %s takes: %s says %.0f us; plumb doctor --measure=idle-states", name,
            driver, most);
    exam_found(x, "an idle CPU may need %.0f us to wake up (state %s)", most, name);
    return exam_remedy(x, "sudo cpupower idle-set -D %d", WAKE_US);
}

const struct exam_check exam_load[] = {
    {.id = "other-load",
     .question = "Are the CPUs free of other programs?",
     .seen = "/proc/loadavg: tasks of the last minute, and tasks that run now",
     .pipes = EXAM_CPUS,
     .measured = "*",
     .remedy = "stop them, or measure when they are done (to see them: top -b -n1 | head -15)",
     .subject = "processor",
     .judge = judge_load},
    {.id = "steal",
     .question = "Does the hypervisor leave the guest its CPU time?",
     .seen = "steal in /proc/stat, twice",
     .pipes = EXAM_CPUS,
     .measured = "*",
     .remedy = "on the host, give the guest CPUs of its own (virsh vcpupin)",
     .subject = "processor",
     .judge = judge_steal},
    {.id = "throttled",
     .question = "Is the control group rarely paused because its quota was used up?",
     .seen = "nr_throttled in cpu.stat of the control groups, twice",
     .pipes = EXAM_CPUS,
     .remedy = "raise cpu.max of the control group (docker: --cpus)",
     .subject = "processor",
     .judge = judge_throttled},
    {.id = "isolated-cpus",
     .question = "Does the scheduler balance all CPUs that the process may use?",
     .seen = "/sys/devices/system/cpu/isolated, Cpus_allowed_list in /proc/self/status",
     .pipes = EXAM_CPUS,
     .remedy = "bind each thread (taskset), or boot without isolcpus=",
     .subject = "processor",
     .judge = judge_isolated},
    {.id = "idle-states",
     .question = "Do idle CPUs of a server wake up fast?",
     .seen = "/sys/devices/system/cpu/cpu0/cpuidle",
     .pipes = "Network*|Between two processes|" EXAM_GROUP,
     .measured = "*",
     .metal = true,
     .subject = "processor",
     .judge = judge_idle},
    {.id = NULL},
};
