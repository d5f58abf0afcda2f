/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the host's memory. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

/* A module whose `key` is known to be above that of this one, of the same kind; NULL: none is. */
static const json_t *module_above(const json_t *modules, const json_t *one, const char *key)
{
    FACT_EACH (modules, other)
        if (fact_is(one, "type", fact_name(other, "type")) && fact_number(one, key, 0) > 0 &&
            fact_number(other, key, 0) > fact_number(one, key, 0))
            return other;
    return NULL;
}

/* The first module that runs below its rate decides: all of a channel run at one speed. */
static bool judge_speed(struct exam *x)
{
    const json_t *modules = exam_list(x, "memory.modules"), *faster;
    size_t known = 0;

    FACT_EACH (modules, module) {
        double rated = fact_number(module, "rated_mt_s", 0),
               running = fact_number(module, "running_mt_s", 0);

        known += rated > 0 && running > 0;
        if (!(running > 0) || running >= rated)
            continue;
        exam_get(x, module, "rated_mt_s");
        exam_get(x, module, "running_mt_s");
        faster = module_above(modules, module, "running_mt_s");
        if (faster)
            return exam_found(x, "a module runs at %.0f of its rated %.0f MT/s, and others at %.0f",
                              running, rated, fact_number(faster, "running_mt_s", 0));
        /* many a processor is made for less than its modules are */
        return exam_unknown(x,
                            "the modules run at %.0f of their rated %.0f MT/s: whether the "
                            "processor allows more is not known",
                            running, rated);
    }
    return known;
}

static bool judge_sizes(struct exam *x)
{
    const json_t *modules = exam_list(x, "memory.modules");
    size_t filled = json_array_size(modules);
    double slots;

    FACT_EACH (modules, module)
        if (module_above(modules, module, "size_bytes")) {
            exam_get(x, module, "size_bytes");
            return exam_found(x, "modules differ in size: a part has fewer channels");
        }
    if (!filled || !exam_number(x, NULL, "memory.module_slots", &slots))
        return false;
    /* One module fills one channel. Of two slots to a channel, half hold a module where all are
     * used. */
    if (filled == 1 && slots > 1)
        exam_found(x, "one of %.0f slots holds a module: all memory has one channel", slots);
    else if ((double)filled * 2 < slots)
        exam_unknown(x, "only %zu of %.0f slots hold a module: channels may be empty", filled,
                     slots);
    return true;
}

/* ---- Near and far */

/* From here on, an adapter is there for data. */
#define FAST_GBITS_PER_S 25

static bool is_gpu(const json_t *device)
{
    return exam_is_gpu(device) && !fact_is(device, "nature", "emulated");
}

static bool is_fast(const json_t *nic)
{
    return fact_is(nic, "state", "up") &&
           fact_number(nic, "speed_gbits_per_s", 0) >= FAST_GBITS_PER_S;
}

/* A process near one of several devices has chosen that one. Those whose node is not given are no
 * reason to find anything (device-node). */
static void judge_distance(struct exam *x, const char *list, bool wanted(const json_t *),
                           const char *allowed)
{
    const json_t *nodes = exam_peek(x, "numa.nodes");
    const char *near = "";

    FACT_EACH (exam_peek(x, list), device)
        FACT_EACH (nodes, node) {
            const char *cpus = fact_name(node, "cpus");

            if (!wanted(device) || !*cpus ||
                fact_number(node, "node", -1) != fact_number(device, "numa_node", -1))
                continue;
            near = cpus;
            if (fact_common(cpus, allowed)) {
                exam_fine(x);
                return;
            }
        }
    if (*near) {
        exam_found(x, "all CPUs that the process may use, %s, are on other NUMA nodes", allowed);
        exam_remedy(x, "taskset -c %s COMMAND; in a control group: cpuset.cpus", near);
    }
}

static bool judge_far(struct exam *x)
{
    const json_t *nodes = exam_list(x, "numa.nodes");
    const char *allowed, *job, *memory, *near = "";

    if (json_array_size(nodes) < 2)
        return false;
    allowed = exam_text(x, NULL, "virtualization.limits.allowed_cpus");
    if (!allowed)
        return false;
    job = exam_job_cpus(x, allowed); /* some rank is near: rank-map looks at each one's GPU */
    if (job) {
        exam_about(x, "gpus");
        judge_distance(x, "pci", is_gpu, job);
        exam_about(x, "network");
        judge_distance(x, "network", is_fast, job);
        exam_about(x, "memory");
    }
    memory = exam_text(x, NULL, "virtualization.limits.allowed_memory_nodes");
    if (!memory)
        return false;
    FACT_EACH (nodes, node) {
        const char *number = exam_format(x, "%.0f", fact_number(node, "node", -1));

        if (!fact_common(fact_name(node, "cpus"), allowed))
            continue;
        near = number;
        if (fact_common(number, memory)) {
            exam_fine(x);
            return false;
        }
    }
    if (*near) {
        exam_found(x, "the process may take memory of NUMA nodes %s alone, and has CPUs on others",
                   memory);
        exam_remedy(x, "in its control group, set cpuset.mems to %s", near);
    }
    return false;
}

const struct exam_check exam_memory[] = {
    {.id = "huge-pages",
     .question = "Can large buffers have huge pages?",
     .seen = "/sys/kernel/mm/transparent_hugepage/enabled",
     .pipes = "Memory|Latency|Matrix core|Training step",
     .cost = {EXAM_CITED, 0.04, 0.1, .controlled = true, .of = "random reads of 1.3 GiB",
              .source = "https://github.com/VectorDB-NTU/RaBitQ-Library/pull/72"},
     .remedy = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
     .subject = "memory",
     .fact = "memory.transparent_huge_pages.enabled",
     .bad = "never",
     .found = "transparent huge pages are off: large buffers pay for small pages"},
    {.id = "memory-speed",
     .question = "Does each memory module run at its rated speed?",
     .seen = "the firmware's table of modules, if it is readable",
     .more = "root: /sys/firmware/dmi/tables/DMI",
     .pipes = "Memory|Copies|Network*|Training step",
     .remedy = "set the memory speed in the firmware; fewer modules per channel run faster",
     .metal = true, /* a hypervisor makes the modules up */
     .subject = "memory",
     .judge = judge_speed},
    {.id = "memory-sizes",
     .question = "Are the memory modules of one size, and more than one?",
     .seen = "the firmware's table of modules, if it is readable",
     .more = "root: /sys/firmware/dmi/tables/DMI",
     .pipes = "Memory|Copies|Network*|Training step",
     .remedy = "put modules of one size into all channels",
     .metal = true,
     .subject = "memory",
     .judge = judge_sizes},
    {.id = "far-memory",
     .question = "Is the process near its memory, a GPU and a fast adapter?",
     .seen = "Cpus_allowed_list and Mems_allowed_list in /proc/self/status, numa_node of devices",
     .pipes = "Memory|Latency|Copies|GPU copies|PCIe|Network*|GPU memory by RDMA|" EXAM_GROUP,
     .subject = "memory",
     .judge = judge_far},
    {.id = NULL},
};
