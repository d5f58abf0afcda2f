/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the host's memory. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

#define MEMORY "memory"

static void look_huge_pages(struct exam *x)
{
    const char *mode = exam_text(x, MEMORY, NULL, "memory.transparent_huge_pages.enabled");

    if (!mode)
        return;
    if (strcmp(mode, "never") != 0)
        exam_fine(x, MEMORY);
    else
        exam_remedy(x,
                    exam_found(x, MEMORY,
                               "transparent huge pages are off: large buffers pay for small pages"),
                    "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
}

/* A module whose `key` is known to be above that of this one, of the same kind; NULL: none is. */
static const json_t *module_above(const json_t *modules, const json_t *one, const char *key)
{
    const json_t *other;
    size_t i;

    json_array_foreach (modules, i, other)
        if (exam_is(one, "type", exam_name(other, "type")) && exam_value(one, key, 0) > 0 &&
            exam_value(other, key, 0) > exam_value(one, key, 0))
            return other;
    return NULL;
}

static void look_at_speed(struct exam *x, const json_t *modules, const json_t *module)
{
    double rated = exam_value(module, "rated_mt_s", 0),
           running = exam_value(module, "running_mt_s", 0);
    const json_t *faster = module_above(modules, module, "running_mt_s");

    exam_get(x, module, "rated_mt_s");
    exam_get(x, module, "running_mt_s");
    if (faster)
        exam_remedy(x,
                    exam_found(x, MEMORY,
                               "a module runs at %.0f of its rated %.0f MT/s, and others at %.0f",
                               running, rated, exam_value(faster, "running_mt_s", 0)),
                    "set the memory speed in the firmware; fewer modules per channel run faster");
    else /* many a processor is made for less than its modules are */
        exam_unknown(x, MEMORY,
                     "the modules run at %.0f of their rated %.0f MT/s: whether the processor "
                     "allows more is not known",
                     running, rated);
}

/* The first module that runs below its rate decides: all of a channel run at one speed. */
static void look_speed(struct exam *x)
{
    const json_t *modules, *module;
    size_t i, known = 0;

    if (!exam_metal(x)) /* a hypervisor makes the modules up */
        return;
    modules = exam_list(x, "memory.modules");
    json_array_foreach (modules, i, module) {
        double rated = exam_value(module, "rated_mt_s", 0),
               running = exam_value(module, "running_mt_s", 0);

        known += rated > 0 && running > 0;
        if (!(running > 0) || running >= rated)
            continue;
        look_at_speed(x, modules, module);
        return;
    }
    if (known)
        exam_fine(x, MEMORY);
}

/* One module fills one channel. Of two slots to a channel, half hold a module where all are used. */
static void look_at_slots(struct exam *x, size_t filled)
{
    double slots;

    if (!exam_number(x, MEMORY, NULL, "memory.module_slots", &slots))
        return;
    if (filled == 1 && slots > 1)
        exam_remedy(x,
                    exam_found(x, MEMORY,
                               "one of %.0f slots holds a module: all memory has one channel",
                               slots),
                    "put modules of one size into all channels");
    else if ((double)filled * 2 < slots)
        exam_unknown(x, MEMORY, "only %zu of %.0f slots hold a module: channels may be empty",
                     filled, slots);
    else
        exam_fine(x, MEMORY);
}

static void look_sizes(struct exam *x)
{
    const json_t *modules, *module;
    size_t i;

    if (!exam_metal(x))
        return;
    modules = exam_list(x, "memory.modules");
    json_array_foreach (modules, i, module)
        if (module_above(modules, module, "size_bytes")) {
            exam_get(x, module, "size_bytes");
            exam_remedy(x,
                        exam_found(x, MEMORY, "modules differ in size: a part has fewer channels"),
                        "put modules of one size into all channels");
            return;
        }
    if (json_array_size(modules))
        look_at_slots(x, json_array_size(modules));
}

/* ---- Near and far */

/* From here on, an adapter is there for data. */
#define FAST_GBITS_PER_S 25

/* CPUs of the node; "": not known, or it has none. */
static const char *cpus_of(const json_t *nodes, double number)
{
    const json_t *node;
    size_t i;

    json_array_foreach (nodes, i, node)
        if (exam_value(node, "node", -1) == number)
            return exam_name(node, "cpus");
    return "";
}

static bool is_gpu(const json_t *device)
{
    return exam_is(device, "kind", "gpu") && !exam_is(device, "nature", "emulated");
}

static bool is_fast(const json_t *nic)
{
    return exam_is(nic, "state", "up") &&
           exam_value(nic, "speed_gbits_per_s", 0) >= FAST_GBITS_PER_S;
}

/* A process near one of several devices has chosen that one. Those whose node is not given are no
 * reason to find anything (device-node). */
static void distance_of(struct exam *x, const char *subject, const json_t *devices,
                        bool wanted(const json_t *), const char *allowed)
{
    const json_t *nodes = exam_list(x, "numa.nodes"), *device;
    const char *near = "";
    size_t i;

    json_array_foreach (devices, i, device) {
        const char *cpus = cpus_of(nodes, exam_value(device, "numa_node", -1));

        if (!wanted(device) || !*cpus)
            continue;
        near = cpus;
        if (exam_common(cpus, allowed)) {
            exam_fine(x, subject);
            return;
        }
    }
    if (*near)
        exam_remedy(x,
                    exam_found(x, subject,
                               "all CPUs that the process may use, %s, are on other NUMA nodes",
                               allowed),
                    "taskset -c %s COMMAND; in a control group: cpuset.cpus", near);
}

static void look_far(struct exam *x)
{
    const json_t *nodes = exam_list(x, "numa.nodes"), *node;
    const char *allowed, *job, *memory, *near = "";
    size_t i;

    if (json_array_size(nodes) < 2)
        return;
    allowed = exam_text(x, MEMORY, NULL, "virtualization.limits.allowed_cpus");
    if (!allowed)
        return;
    job = exam_job_cpus(x, allowed); /* some rank is near: rank-map looks at each one's GPU */
    if (job) {
        distance_of(x, "gpus", json_object_get(exam_machine(x), "pci"), is_gpu, job);
        distance_of(x, "network", json_object_get(exam_machine(x), "network"), is_fast, job);
    }
    memory = exam_text(x, MEMORY, NULL, "virtualization.limits.allowed_memory_nodes");
    if (!memory)
        return;
    json_array_foreach (nodes, i, node) {
        const char *number = exam_format(x, "%.0f", exam_value(node, "node", -1));

        if (!exam_common(exam_name(node, "cpus"), allowed))
            continue;
        near = number;
        if (exam_common(number, memory)) {
            exam_fine(x, MEMORY);
            return;
        }
    }
    if (*near)
        exam_remedy(x,
                    exam_found(x, MEMORY,
                               "the process may take memory of NUMA nodes %s alone, and has CPUs "
                               "on others",
                               memory),
                    "in its control group, set cpuset.mems to %s", near);
}

const struct exam_check exam_memory[] = {
    {.id = "huge-pages",
     .question = "Can large buffers have huge pages?",
     .seen = "/sys/kernel/mm/transparent_hugepage/enabled",
     .pipes = "Memory|Latency|Matrix core|Training step",
     .cost = {EXAM_CITED, 0.04, 0.1, .controlled = true, .of = "random reads of 1.3 GiB",
              .source = "https://github.com/VectorDB-NTU/RaBitQ-Library/pull/72"},
     .look = look_huge_pages},
    {.id = "memory-speed",
     .question = "Does each memory module run at its rated speed?",
     .seen = "the firmware's table of modules, if it is readable",
     .more = "root: /sys/firmware/dmi/tables/DMI",
     .pipes = "Memory|Copies|Network*|Training step",
     .look = look_speed},
    {.id = "memory-sizes",
     .question = "Are the memory modules of one size, and more than one?",
     .seen = "the firmware's table of modules, if it is readable",
     .more = "root: /sys/firmware/dmi/tables/DMI",
     .pipes = "Memory|Copies|Network*|Training step",
     .look = look_sizes},
    {.id = "far-memory",
     .question = "Is the process near its memory, a GPU and a fast adapter?",
     .seen = "Cpus_allowed_list and Mems_allowed_list in /proc/self/status, numa_node of devices",
     .pipes = "Memory|Latency|Copies|GPU copies|PCIe|Network*|GPU memory by RDMA|" EXAM_GROUP,
     .look = look_far},
    {.id = NULL},
};
