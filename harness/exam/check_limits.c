/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the limits of a process, and of what the kernel does to its memory. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

#define MIB (1024. * 1024)
#define GIB (1024. * MIB)

/* Of a container, those that the host has and NVML does not show were not given to it. */
static size_t count_gpus(const struct exam *x)
{
    if (exam_contained(x) && json_is_false(exam_peek(x, "gpus.nvml")))
        return 0;
    return json_array_size(exam_peek(x, "gpus.devices"));
}

/* Devices that the host has and the container was not given register nothing. */
static bool has_rdma(struct exam *x)
{
    if (exam_contained(x) && json_is_false(exam_peek(x, "process.verbs_device_opens")))
        return false;
    return exam_has_adapter(x, NULL) || fact_one_of(exam_peek(x, "rdma"), "nature", "software");
}

/* Nodes of memory alone have no CPU that balancing could move a page to. */
static bool has_nodes(struct exam *x)
{
    return exam_list(x, "numa.nodes") && exam_cpu_nodes(x) > 1;
}

/*
 * It unmaps pages to see who uses them. Where programs place their memory themselves, as those of
 * GPUs do, it can only cost; others may gain. It is Linux' default, and costs most programs little.
 * The one controlled figure is 33 % of two allreduces at once on GPUs of AMD
 * (https://github.com/ROCm/rccl/issues/1562). So it is no price of this machine.
 */
static bool judge_balancing(struct exam *x)
{
    bool balancing;

    if (!exam_flag(x, NULL, "numa.balancing", &balancing))
        return false;
    if (balancing && count_gpus(x))
        exam_found(x, "automatic NUMA balancing is on: it unmaps pages of running programs");
    return true;
}

/* Percent of the last minute; and swap that is used while little memory is left. */
#define PRESSURE_PERCENT 1
#define LITTLE_SHARE     0.05

static bool judge_pressure(struct exam *x)
{
    double percent, used = 0, left = 0, total = 0;
    const json_t *limit = exam_get(x, NULL, "virtualization.limits.memory_bytes");

    if (!exam_number(x, NULL, "load.memory_pressure.percent_60s", &percent) ||
        !exam_number(x, NULL, "load.swap_used_bytes", &used) ||
        !exam_number(x, NULL, "load.memory_available_bytes", &left) ||
        !exam_number(x, NULL, "memory.total_bytes", &total))
        return false;
    if (percent >= PRESSURE_PERCENT) {
        exam_found(x, "programs waited for memory in %.1f %% of the last minute", percent);
        exam_price(x, percent / 100, "time of programs that wait for memory",
                   "/proc/pressure/memory, some avg60");
    } else if (used > 0 && left < LITTLE_SHARE * total) {
        exam_found(x, "%.1f GiB are swapped out, and %.1f GiB of memory are left", used / GIB,
                   left / GIB);
    } else if (json_is_number(limit) && json_number_value(limit) < total) {
        exam_unknown(x, "memory.pressure of the control group, which may hold %.3g GiB",
                     json_number_value(limit) / GIB);
    }
    return true;
}

/* A registration locks its buffer: below this, those of collectives fail or are cut. */
#define LOCKED_LEAST GIB

static bool judge_locked(struct exam *x)
{
    const json_t *limit;
    bool may;

    if (!exam_flag(x, NULL, "process.may_lock_memory", &may))
        return false;
    limit = exam_fact(x, NULL, "process.locked_memory_bytes");
    if (!may && json_is_number(limit) && json_number_value(limit) < LOCKED_LEAST)
        exam_found(x, "only %.4g MiB may be locked: RDMA cannot register larger buffers",
                   json_number_value(limit) / MIB);
    return limit;
}

/* What NCCL's guide asks for in containers, whose default is 64 MiB. */
#define SHARED_LEAST GIB
#define SHARED_FREE  (64 * MIB)

static bool judge_shared(struct exam *x)
{
    double bytes, left;

    if (!exam_number(x, NULL, "process.shared_memory_bytes", &bytes) ||
        !exam_number(x, NULL, "load.shared_memory_free_bytes", &left))
        return false;
    if (count_gpus(x) > 1 && bytes < SHARED_LEAST) {
        exam_found(x, "it holds %.4g MiB: NCCL's processes share more than that", bytes / MIB);
    } else if (left < SHARED_FREE && bytes > SHARED_FREE) {
        exam_found(x, "%.4g MiB are free there", left / MIB);
        exam_remedy(x, "ls -lS /dev/shm | head");
    }
    return true;
}

/* Below every distribution's default. */
#define FILES_LEAST 1024

static bool judge_files(struct exam *x)
{
    const json_t *limit = exam_fact(x, NULL, "process.open_files");

    if (json_is_number(limit) && json_number_value(limit) < FILES_LEAST)
        exam_found(x, "only %.0f files may be open: each connection of a collective is one",
                   json_number_value(limit));
    return limit;
}

const struct exam_check exam_limits[] = {
    {.id = "numa-balancing",
     .question = "Do pages of programs that use GPUs stay where they are?",
     .seen = "/proc/sys/kernel/numa_balancing",
     .pipes = "GPU copies|PCIe|" EXAM_GROUP,
     .remedy = "sudo sysctl kernel.numa_balancing=0",
     .when = has_nodes,
     .subject = "memory",
     .judge = judge_balancing},
    {.id = "memory-pressure",
     .question = "Is there memory enough for all that runs?",
     .seen = "/proc/pressure/memory, /proc/meminfo",
     .pipes = "Memory|Copies|GPU copies|PCIe|Training step",
     .remedy = "ps -eo rss,pid,user,comm --sort=-rss | head",
     .subject = "memory",
     .judge = judge_pressure},
    {.id = "locked-memory",
     .question = "May programs lock the memory that RDMA needs?",
     .seen = "/proc/self/limits, CapEff in /proc/self/status",
     .pipes = EXAM_LINES,
     .remedy = "ulimit -l unlimited (docker: --ulimit memlock=-1)",
     .when = has_rdma,
     .subject = "process",
     .judge = judge_locked},
    {.id = "shared-memory",
     .question = "Is /dev/shm large enough for collectives?",
     .seen = "statvfs of /dev/shm",
     .pipes = EXAM_GROUP,
     .remedy = "docker run --shm-size=1g, or sudo mount -o remount,size=50% /dev/shm",
     .subject = "/dev/shm",
     .judge = judge_shared},
    {.id = "open-files",
     .question = "May the process open enough files?",
     .seen = "/proc/self/limits",
     .pipes = EXAM_GROUP,
     .remedy = "ulimit -n 65536",
     .subject = "process",
     .judge = judge_files},
    {.id = NULL},
};
