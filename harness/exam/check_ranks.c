/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of where a job's processes run, for a doctor that the job's launcher starts. See exam.h. */
#include <stdlib.h>
#include <string.h>

#include "harness/exam/exam.h"

static const char subject[] = "rank";

static const json_t *nodes_of(const struct exam *x)
{
    return json_object_get(json_object_get(exam_machine(x), "numa"), "nodes");
}

static size_t count_cpu_nodes(const struct exam *x)
{
    const json_t *node;
    size_t i, n = 0;

    json_array_foreach (nodes_of(x), i, node)
        n += *exam_name(node, "cpus") != '\0';
    return n;
}

/* Is one of these CPUs on the node, or on another of its socket? */
static bool is_near(const struct exam *x, double own, const char *cpus)
{
    const json_t *node;
    size_t i;

    json_array_foreach (nodes_of(x), i, node)
        if (exam_near(x, own, exam_value(node, "node", -1)) &&
            exam_common(exam_name(node, "cpus"), cpus))
            return true;
    return false;
}

/* ---- The GPU of a rank */

static const json_t *gpus_of(const struct exam *x)
{
    return json_object_get(json_object_get(exam_machine(x), "gpus"), "devices");
}

static size_t count_gpus(const struct exam *x)
{
    const json_t *gpu;
    size_t i, n = 0;

    json_array_foreach (gpus_of(x), i, gpu)
        n += exam_is(gpu, "driver", "nvidia");
    return n;
}

/* Number `index` of those that CUDA shows here; NULL: CUDA was not asked. */
static const json_t *shown_gpu(struct exam *x, size_t index)
{
    const char *name = exam_format(x, "cuda:%zu", index);
    const json_t *gpu;
    size_t i;

    json_array_foreach (gpus_of(x), i, gpu)
        if (exam_is(gpu, "cuda", name))
            return gpu;
    return NULL;
}

static size_t count_shown(const struct exam *x)
{
    const json_t *gpu;
    size_t i, n = 0;

    json_array_foreach (gpus_of(x), i, gpu)
        n += *exam_name(gpu, "cuda") != '\0';
    return n;
}

static const json_t *numbered_gpu(const struct exam *x, size_t index)
{
    const json_t *gpu;
    size_t i;

    json_array_foreach (gpus_of(x), i, gpu)
        if (exam_is(gpu, "driver", "nvidia") && !index--)
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
    const char *visible = exam_name(exam_get(x, NULL, "rank"), "visible_devices");
    size_t numbers[VISIBLE_MAX], n = read_visible(visible, numbers);

    if (count_shown(x))
        return shown_gpu(x, local % count_shown(x));
    if (*visible)
        return n ? numbered_gpu(x, numbers[local % n]) : NULL;
    return numbered_gpu(x, local % count_gpus(x));
}

static void look_gpu(struct exam *x, size_t local, const char *cpus)
{
    const json_t *gpu = gpu_of(x, local);
    double node;

    if (!gpu) {
        exam_unknown(x, subject, "which GPU a rank has by CUDA_VISIBLE_DEVICES");
        return;
    }
    exam_get(x, gpu, "address");
    if (!exam_number(x, subject, gpu, "numa_node", &node))
        return;
    if (node < 0)
        exam_unknown(x, subject, "no NUMA node is given for GPU %s", exam_name(gpu, "address"));
    else if (is_near(x, node, cpus))
        exam_fine(x, subject);
    else
        exam_remedy(x,
                    exam_found(x, subject,
                               "local rank %zu runs on CPUs %s, far from GPU %s on NUMA node %.0f",
                               local, cpus, exam_name(gpu, "address"), node),
                    "numactl --cpunodebind=%.0f --membind=%.0f COMMAND for this rank (srun "
                    "--gpu-bind=closest)",
                    node, node);
}

/* ---- All ranks of the host */

/* How many nodes of CPUs the ranks run on together; 0: not known. */
static size_t count_used(const struct exam *x, const json_t *peers)
{
    const json_t *node, *peer;
    size_t i, k, n = 0;

    json_array_foreach (nodes_of(x), i, node) {
        bool used = false;

        json_array_foreach (peers, k, peer)
            used = used || (json_is_string(peer) &&
                            exam_common(exam_name(node, "cpus"), json_string_value(peer)));
        n += used;
    }
    return n;
}

/* Whether the job was given CPUs of one node only: then its ranks can be nowhere else. */
static bool is_given_one(struct exam *x)
{
    const json_t *given = exam_get(x, NULL, "virtualization.limits.cpuset"), *node;
    size_t i, n = 0;

    json_array_foreach (nodes_of(x), i, node)
        n +=
            json_is_string(given) && exam_common(exam_name(node, "cpus"), json_string_value(given));
    return n == 1;
}

static void look_spread(struct exam *x, double size)
{
    const json_t *peers = exam_fact(x, "ranks", NULL, "rank.peers");
    size_t all = count_cpu_nodes(x), used = peers ? count_used(x, peers) : 0;
    struct exam_result *r;
    double most;

    if (!peers)
        return;
    if (used != 1 || is_given_one(x)) {
        exam_fine(x, "ranks");
        return;
    }
    r = exam_found(x, "ranks", "all %.0f ranks of this host run on one of its %zu NUMA nodes", size,
                   all);
    /* Two ranks reach two nodes at best; and one core may not use up what its node has. */
    most = size < (double)all ? size : (double)all;
    exam_price(x, r, 1 - 1 / most, "memory bandwidth of all ranks",
               "at most 1 - 1/%.0f: %.0f ranks, %zu NUMA nodes, if they are alike", most, size,
               all);
    r->cost.low = 0;
    exam_remedy(x, r, "mpirun --map-by numa --bind-to numa (srun --distribution=*:cyclic)");
}

static void look_map(struct exam *x)
{
    const char *cpus;
    double local, size;

    if (!exam_get(x, NULL, "rank") || count_cpu_nodes(x) < 2)
        return;
    cpus = exam_text(x, subject, NULL, "virtualization.limits.allowed_cpus");
    if (!cpus || !exam_number(x, subject, NULL, "rank.local", &local))
        return;
    if (count_gpus(x)) { /* which places each rank: all may be on one node for good reason */
        look_gpu(x, (size_t)local, cpus);
        return;
    }
    if (exam_number(x, "ranks", NULL, "rank.local_size", &size) && size > 1)
        look_spread(x, size);
}

const struct exam_check exam_ranks[] = {
    {.id = "rank-map",
     .question = "Does each rank run near its GPU, and do all use each NUMA node?",
     .seen = "variables of launchers, CUDA_VISIBLE_DEVICES, Cpus_allowed_list of the ranks: start "
             "plumb doctor by mpirun or srun",
     .pipes = "Memory|GPU copies|PCIe|" EXAM_GROUP,
     .look = look_map},
    {.id = NULL},
};
