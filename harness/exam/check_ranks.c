/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of where a job's processes run, for a doctor that the job's launcher starts. See exam.h. */
#include <stdlib.h>
#include <string.h>

#include "harness/exam/exam.h"

/* ---- The GPU of a rank */

static const json_t *numbered_gpu(const struct exam *x, size_t index)
{
    FACT_EACH (exam_peek(x, "gpus.devices"), gpu)
        if (fact_is(gpu, "driver", "nvidia") && !index--)
            return gpu;
    return NULL;
}

enum { VISIBLE_MAX = 64 };

/* "0,2,3" into numbers; 0: UUIDs, or too many. */
static size_t read_visible(const char *list, size_t *numbers)
{
    size_t n = 0;

    while (*list && n < VISIBLE_MAX) {
        char *end;
        unsigned long number = strtoul(list, &end, 10);

        if (end == list || (*end && *end != ','))
            return 0;
        numbers[n++] = number;
        list = end + (*end == ',');
    }
    return *list ? 0 : n;
}

/* The GPU of a local rank as most programs choose it: its number, of those that it sees. */
static const json_t *gpu_of(struct exam *x, size_t local)
{
    const char *visible = fact_name(exam_get(x, NULL, "rank"), "visible_devices");
    size_t numbers[VISIBLE_MAX], n = read_visible(visible, numbers), shown = 0;

    FACT_EACH (exam_peek(x, "gpus.devices"), gpu)
        shown += *fact_name(gpu, "cuda") != '\0';
    if (shown) /* CUDA was asked */
        return fact_one_of(exam_peek(x, "gpus.devices"), "cuda",
                           exam_format(x, "cuda:%zu", local % shown));
    if (*visible)
        return n ? numbered_gpu(x, numbers[local % n]) : NULL;
    return numbered_gpu(x, local % exam_nvidia_gpus(x));
}

static bool judge_gpu(struct exam *x, size_t local, const char *cpus)
{
    const json_t *gpu = gpu_of(x, local);
    const char *address;
    bool near = false;
    double node;

    if (!gpu)
        return exam_unknown(x, "which GPU a rank has by CUDA_VISIBLE_DEVICES");
    address = fact_word(exam_get(x, gpu, "address"));
    if (!exam_number(x, gpu, "numa_node", &node))
        return false;
    if (node < 0)
        return exam_unknown(x, "no NUMA node is given for GPU %s", address);
    FACT_EACH (exam_peek(x, "numa.nodes"), one) /* the node, or another of its socket */
        near |= exam_near(x, node, fact_number(one, "node", -1)) &&
                fact_common(fact_name(one, "cpus"), cpus);
    if (!near) {
        exam_found(x, "local rank %zu runs on CPUs %s, far from GPU %s on NUMA node %.0f", local,
                   cpus, address, node);
        exam_remedy(x,
                    "numactl --cpunodebind=%.0f --membind=%.0f COMMAND for this rank (srun "
                    "--gpu-bind=closest)",
                    node, node);
    }
    return true;
}

/* ---- All ranks of the host */

/* How many nodes have one of these CPUs: a list, or lists of several ranks. */
static size_t count_nodes(const struct exam *x, const json_t *cpus)
{
    size_t n = 0;

    FACT_EACH (exam_peek(x, "numa.nodes"), node) {
        bool used = fact_common(fact_name(node, "cpus"), fact_word(cpus));

        FACT_EACH (cpus, peer)
            used = used || fact_common(fact_name(node, "cpus"), fact_word(peer));
        n += used;
    }
    return n;
}

static bool judge_spread(struct exam *x, double size)
{
    const json_t *peers = exam_fact(x, NULL, "rank.peers");
    size_t all = exam_cpu_nodes(x);
    double most;

    if (!peers)
        return false;
    /* a job that was given CPUs of one node has its ranks nowhere else */
    if (count_nodes(x, peers) != 1 ||
        count_nodes(x, exam_get(x, NULL, "virtualization.limits.cpuset")) == 1)
        return true;
    exam_found(x, "all %.0f ranks of this host run on one of its %zu NUMA nodes", size, all);
    /* Two ranks reach two nodes at best; and one core may not use up what its node has. */
    most = size < (double)all ? size : (double)all;
    exam_price(x, 1 - 1 / most, "memory bandwidth of all ranks",
               "at most 1 - 1/%.0f: %.0f ranks, %zu NUMA nodes, if they are alike", most, size, all)
        ->cost.low = 0;
    return true;
}

static bool judge_map(struct exam *x)
{
    const char *cpus;
    double local, size;

    if (!exam_get(x, NULL, "rank") || exam_cpu_nodes(x) < 2)
        return false;
    cpus = exam_text(x, NULL, "virtualization.limits.allowed_cpus");
    if (!cpus || !exam_number(x, NULL, "rank.local", &local))
        return false;
    if (exam_has_nvidia(x)) /* which places each rank: all may be on one node for good reason */
        return judge_gpu(x, fact_whole(local), cpus);
    exam_about(x, "ranks");
    return exam_number(x, NULL, "rank.local_size", &size) && size > 1 && judge_spread(x, size);
}

const struct exam_check exam_ranks[] = {
    {.id = "rank-map",
     .question = "Does each rank run near its GPU, and do all use each NUMA node?",
     .seen = "variables of launchers, CUDA_VISIBLE_DEVICES, Cpus_allowed_list of the ranks: start "
             "plumb doctor by mpirun or srun",
     .pipes = "Memory|GPU copies|PCIe|" EXAM_GROUP,
     .remedy = "mpirun --map-by numa --bind-to numa (srun --distribution=*:cyclic)",
     .subject = "rank",
     .judge = judge_map},
    {.id = NULL},
};
