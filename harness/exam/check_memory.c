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
        struct exam_result *r;

        known += rated > 0 && running > 0;
        if (!(running > 0) || running >= rated)
            continue;
        exam_get(x, module, "rated_mt_s");
        exam_get(x, module, "running_mt_s");
        r = exam_found(x, MEMORY, "the modules run at %.0f of their rated %.0f MT/s", running,
                       rated);
        exam_price(x, r, 1 - running / rated, "memory bandwidth", "1 - %.0f/%.0f MT/s", running,
                   rated);
        exam_remedy(x, r,
                    "set the memory speed in the firmware; fewer modules per channel run faster");
        return;
    }
    if (known)
        exam_fine(x, MEMORY);
}

static void look_sizes(struct exam *x)
{
    const json_t *modules, *module;
    double size = 0;
    size_t i;

    if (!exam_metal(x))
        return;
    modules = exam_list(x, "memory.modules");
    json_array_foreach (modules, i, module) {
        double other = exam_value(module, "size_bytes", 0);

        if (size > 0 && other > 0 && other != size) {
            exam_get(x, module, "size_bytes");
            exam_remedy(x,
                        exam_found(x, MEMORY, "modules differ in size: a part has fewer channels"),
                        "put modules of one size into all channels");
            return;
        }
        size = other > 0 ? other : size;
    }
    if (size > 0)
        exam_fine(x, MEMORY);
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
    const char *allowed, *memory, *near = "";
    size_t i;

    if (json_array_size(nodes) < 2)
        return;
    allowed = exam_text(x, MEMORY, NULL, "virtualization.limits.allowed_cpus");
    if (!allowed)
        return;
    distance_of(x, "gpus", json_object_get(exam_machine(x), "pci"), is_gpu, allowed);
    distance_of(x, "network", json_object_get(exam_machine(x), "network"), is_fast, allowed);
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
     .pipes = "Memory|Latency|Matrix core",
     .cost = {EXAM_CITED, 0.04, 0.1, .controlled = true, .of = "random reads of 1.3 GiB",
              .source = "https://github.com/VectorDB-NTU/RaBitQ-Library/pull/72"},
     .look = look_huge_pages},
    {.id = "memory-speed",
     .question = "Do the memory modules run at their rated speed?",
     .seen = "the firmware's table of modules, if it is readable",
     .more = "root: /sys/firmware/dmi/tables/DMI",
     .pipes = "Memory|Copies|Network*",
     .look = look_speed},
    {.id = "memory-sizes",
     .question = "Are the memory modules of one size, so that all channels share all memory?",
     .seen = "the firmware's table of modules, if it is readable",
     .more = "root: /sys/firmware/dmi/tables/DMI",
     .pipes = "Memory|Copies|Network*",
     .look = look_sizes},
    {.id = "far-memory",
     .question = "Is the process near its memory, a GPU and a fast adapter?",
     .seen = "Cpus_allowed_list and Mems_allowed_list in /proc/self/status, numa_node of devices",
     .pipes = "Memory|Latency|GPU copies|Copies|Network|Collectives|Gradients|Allreduce*",
     .look = look_far},
    {.id = NULL},
};
