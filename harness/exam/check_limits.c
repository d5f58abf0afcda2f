/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the limits of a process, and of what the kernel does to its memory. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

static const char all[] = "memory";

#define MIB (1024. * 1024)
#define GIB (1024. * MIB)

/* Of a container, those that the host has and NVML does not show were not given to it. */
static size_t count_gpus(const struct exam *x)
{
    const json_t *gpus = json_object_get(exam_machine(x), "gpus");

    if (exam_contained(x) && json_is_false(json_object_get(gpus, "nvml")))
        return 0;
    return json_array_size(json_object_get(gpus, "devices"));
}

static bool has_rdma(const struct exam *x)
{
    const json_t *device;
    size_t i;

    json_array_foreach (json_object_get(exam_machine(x), "rdma"), i, device)
        if (exam_does_rdma(x, device) || exam_is(device, "nature", "software"))
            return true;
    return false;
}

/* Nodes of memory alone (of a GPU, CXL) have no CPU that balancing could move a page to. */
static size_t count_cpu_nodes(struct exam *x)
{
    const json_t *node;
    size_t i, count = 0;

    json_array_foreach (exam_list(x, "numa.nodes"), i, node)
        count += *exam_name(node, "cpus") != '\0';
    return count;
}

/*
 * It unmaps pages to see who uses them. Where programs place their memory themselves, as those of
 * GPUs do, it can only cost; others may gain. It is Linux' default, and costs most programs little.
 * The one controlled figure is 33 % of two allreduces at once on GPUs of AMD
 * (https://github.com/ROCm/rccl/issues/1562). So it is no price of this machine.
 */
static void look_balancing(struct exam *x)
{
    bool balancing;

    if (count_cpu_nodes(x) < 2)
        return;
    if (!exam_flag(x, all, NULL, "numa.balancing", &balancing))
        return;
    if (!balancing || !count_gpus(x))
        exam_fine(x, all);
    else
        exam_remedy(
            x,
            exam_found(x, all,
                       "automatic NUMA balancing is on: it unmaps pages of running programs"),
            "sudo sysctl kernel.numa_balancing=0");
}

/* Percent of the last minute; and swap that is used while little memory is left. */
#define PRESSURE_PERCENT 1
#define LITTLE_SHARE     0.05

static void look_pressure(struct exam *x)
{
    double percent, used = 0, left = 0, total = 0;
    const json_t *limit = exam_get(x, NULL, "virtualization.limits.memory_bytes");
    struct exam_result *r;

    if (!exam_number(x, all, NULL, "load.memory_pressure.percent_60s", &percent) ||
        !exam_number(x, all, NULL, "load.swap_used_bytes", &used) ||
        !exam_number(x, all, NULL, "load.memory_available_bytes", &left) ||
        !exam_number(x, all, NULL, "memory.total_bytes", &total))
        return;
    if (percent >= PRESSURE_PERCENT) {
        r = exam_found(x, all, "programs waited for memory in %.1f %% of the last minute", percent);
        exam_price(x, r, percent / 100, "time of programs that wait for memory",
                   "/proc/pressure/memory, some avg60");
        exam_remedy(x, r, "ps -eo rss,pid,user,comm --sort=-rss | head");
    } else if (used > 0 && left < LITTLE_SHARE * total) {
        exam_remedy(x,
                    exam_found(x, all, "%.1f GiB are swapped out, and %.1f GiB of memory are left",
                               used / GIB, left / GIB),
                    "ps -eo rss,pid,user,comm --sort=-rss | head");
    } else if (json_is_number(limit) && json_number_value(limit) < total) {
        exam_unknown(x, all, "memory.pressure of the control group, which may hold %.3g GiB",
                     json_number_value(limit) / GIB);
    } else {
        exam_fine(x, all);
    }
}

/* Devices that the host has and the container was not given register nothing. */
static bool lacks_devices(const struct exam *x)
{
    return exam_contained(x) &&
           json_is_false(
               json_object_get(json_object_get(exam_machine(x), "process"), "verbs_device_opens"));
}

/* A registration locks its buffer: below this, those of collectives fail or are cut. */
#define LOCKED_LEAST GIB

static void look_locked(struct exam *x)
{
    const json_t *limit;
    bool may;

    if (!has_rdma(x) || lacks_devices(x) ||
        !exam_flag(x, "process", NULL, "process.may_lock_memory", &may))
        return;
    limit = exam_fact(x, "process", NULL, "process.locked_memory_bytes");
    if (!limit)
        return;
    if (may || !json_is_number(limit) || json_number_value(limit) >= LOCKED_LEAST)
        exam_fine(x, "process");
    else
        exam_remedy(x,
                    exam_found(x, "process",
                               "only %.4g MiB may be locked: RDMA cannot register larger buffers",
                               json_number_value(limit) / MIB),
                    "ulimit -l unlimited (docker: --ulimit memlock=-1)");
}

/* What NCCL's guide asks for in containers, whose default is 64 MiB. */
#define SHARED_LEAST GIB
#define SHARED_FREE  (64 * MIB)

static void look_shared(struct exam *x)
{
    double bytes, left;

    if (!exam_number(x, "/dev/shm", NULL, "process.shared_memory_bytes", &bytes) ||
        !exam_number(x, "/dev/shm", NULL, "load.shared_memory_free_bytes", &left))
        return;
    if (count_gpus(x) > 1 && bytes < SHARED_LEAST)
        exam_remedy(x,
                    exam_found(x, "/dev/shm",
                               "it holds %.4g MiB: NCCL's processes share more than that",
                               bytes / MIB),
                    "docker run --shm-size=1g, or sudo mount -o remount,size=50%% /dev/shm");
    else if (left < SHARED_FREE && bytes > SHARED_FREE)
        exam_remedy(x, exam_found(x, "/dev/shm", "%.4g MiB are free there", left / MIB),
                    "ls -lS /dev/shm | head");
    else
        exam_fine(x, "/dev/shm");
}

/* Below every distribution's default. */
#define FILES_LEAST 1024

static void look_files(struct exam *x)
{
    const json_t *limit = exam_fact(x, "process", NULL, "process.open_files");

    if (!limit)
        return;
    if (!json_is_number(limit) || json_number_value(limit) >= FILES_LEAST)
        exam_fine(x, "process");
    else
        exam_remedy(
            x,
            exam_found(x, "process",
                       "only %.0f files may be open: each connection of a collective is one",
                       json_number_value(limit)),
            "ulimit -n 65536");
}

const struct exam_check exam_limits[] = {
    {.id = "numa-balancing",
     .question = "Do pages of programs that use GPUs stay where they are?",
     .seen = "/proc/sys/kernel/numa_balancing",
     .pipes = "GPU copies|PCIe|" EXAM_GROUP,
     .look = look_balancing},
    {.id = "memory-pressure",
     .question = "Is there memory enough for all that runs?",
     .seen = "/proc/pressure/memory, /proc/meminfo",
     .pipes = "Memory|Copies|GPU copies|PCIe|Training step",
     .look = look_pressure},
    {.id = "locked-memory",
     .question = "May programs lock the memory that RDMA needs?",
     .seen = "/proc/self/limits, CapEff in /proc/self/status",
     .pipes = "Network*|GPU memory by RDMA|" EXAM_GROUP,
     .look = look_locked},
    {.id = "shared-memory",
     .question = "Is /dev/shm large enough for collectives?",
     .seen = "statvfs of /dev/shm",
     .pipes = EXAM_GROUP,
     .look = look_shared},
    {.id = "open-files",
     .question = "May the process open enough files?",
     .seen = "/proc/self/limits",
     .pipes = EXAM_GROUP,
     .look = look_files},
    {.id = NULL},
};
