// SPDX-License-Identifier: Apache-2.0
/*
 * Sockets, cores, threads, caches and NUMA NODES, from hwloc. hwloc trusts the files it reads; a
 * recorded tree is looked through first, so that a pipe, an endless file or an absurd processor
 * number is an answer here and not a hang or an abort there.
 */
#include "harness/probe/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/topo.h"

enum { CPUS_MAX = 65536, FILE_MAX = 65536, CPUINFO_MAX = 64 << 20, DEPTH_MAX = 8 };

#define CPUS  "sys/devices/system/cpu"
#define NODES "sys/devices/system/node"

/*
 * hwloc follows links as the kernel does, out of the tree if they lead there. A path is sound where
 * that is the very thing that the walk inside the tree finds. -ENOENT: nothing there for hwloc.
 */
static int vet_path(const struct tree *tree, const char *path, struct stat *st)
{
    struct stat outside;

    if (fstatat(tree->fd, path, &outside, 0))
        return -ENOENT;
    if (tree_stat(tree, path, st) || st->st_dev != outside.st_dev || st->st_ino != outside.st_ino)
        return -EXDEV;
    return 0;
}

static int vet_file(const struct tree *tree, const char *path, off_t limit)
{
    struct stat st;
    int rc = vet_path(tree, path, &st);

    if (rc)
        return rc == -ENOENT ? 0 : rc;
    return S_ISREG(st.st_mode) && st.st_size <= limit ? 0 : -EINVAL;
}

/* Names such as cpu12 must carry a sane number: hwloc sizes its sets by it. */
static bool number_is_sane(const char *name)
{
    size_t letters = strcspn(name, "0123456789");

    if (strncmp(name, "cpu", letters) && strncmp(name, "node", letters))
        return true;
    return strtoul(name + letters, NULL, 10) < CPUS_MAX;
}

static int vet_folder(const struct tree *tree, const char *path, int depth);

/* Links to folders are not followed: nothing hwloc reads here lies behind one. */
static int vet_entry(const struct tree *tree, const char *path, int depth)
{
    char target[TREE_LINE];
    struct stat st;
    int rc = vet_path(tree, path, &st);

    if (rc)
        return rc == -ENOENT ? 0 : rc;
    if (!S_ISDIR(st.st_mode))
        return vet_file(tree, path, FILE_MAX);
    if (!tree_link(tree, path, target, sizeof(target)))
        return 0;
    return depth ? vet_folder(tree, path, depth - 1) : -ELOOP;
}

static int vet_folder(const struct tree *tree, const char *path, int depth)
{
    struct names names = {0};
    struct stat st;
    int rc = vet_path(tree, path, &st);

    if (!rc)
        rc = tree_list(tree, path, &names);
    if (!rc && names.count >= TREE_NAMES)
        rc = -EINVAL; /* there may be more, unseen */
    for (size_t i = 0; !rc && i < names.count; i++)
        rc = number_is_sane(names.name[i])
                 ? vet_entry(tree, tree_join(path, names.name[i]).s, depth)
                 : -EINVAL;
    names_free(&names);
    return rc == -ENOENT ? 0 : rc;
}

static int vet_list(const struct tree *tree, const char *folder)
{
    char line[TREE_LINE];
    int rc = tree_line_at(tree, folder, "online", line, sizeof(line));

    if (rc)
        return rc == -ENOENT ? 0 : rc;
    return cpulist_count(line, CPUS_MAX) < 0 ? -EINVAL : 0;
}

static int vet(const struct tree *tree)
{
    static const char *const files[] = {"proc/mounts", "proc/meminfo", "proc/self/cpuset",
                                        "proc/self/cgroup", "proc/hwloc-nofile-info"};
    static const char *const folders[] = {CPUS,
                                          NODES,
                                          "sys/kernel/mm/hugepages",
                                          "sys/devices/virtual/dmi/id",
                                          "sys/class/dmi/id",
                                          "sys/bus/dax/devices",
                                          "proc/driver/nvidia/gpus",
                                          "proc/device-tree"};
    int rc = vet_file(tree, "proc/cpuinfo", CPUINFO_MAX);

    for (size_t i = 0; !rc && i < sizeof(files) / sizeof(*files); i++)
        rc = vet_file(tree, files[i], FILE_MAX);
    rc = rc ? rc : vet_list(tree, CPUS);
    rc = rc ? rc : vet_list(tree, NODES);
    for (size_t i = 0; !rc && i < sizeof(folders) / sizeof(*folders); i++)
        rc = vet_folder(tree, folders[i], DEPTH_MAX);
    return rc;
}

/* Sets a variable and keeps what was there; value NULL unsets. */
static void environment_swap(const char *name, const char *value, char **before)
{
    const char *was = getenv(name);

    if (before)
        *before = was ? strdup(was) : NULL;
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* hwloc takes another root only from the environment. "linux,stop": never our own machine instead. */
static int load_recorded(const struct tree *tree, hwloc_topology_t topology)
{
    static const char *const names[] = {"HWLOC_FSROOT", "HWLOC_COMPONENTS", "HWLOC_HIDE_ERRORS"};
    char root[64], *before[3];
    const char *values[] = {root, "linux,stop", "2"};
    int rc = vet(tree);

    if (rc)
        return rc;
    snprintf(root, sizeof(root), "/proc/self/fd/%d", tree->fd);
    for (size_t i = 0; i < 3; i++)
        environment_swap(names[i], values[i], &before[i]);
    rc = hwloc_topology_load(topology) ? -ENODATA : 0;
    for (size_t i = 0; i < 3; i++) {
        environment_swap(names[i], before[i], NULL);
        free(before[i]);
    }
    return rc;
}

static int topology_load(const struct tree *tree, hwloc_topology_t *topology)
{
    int rc;

    topo_without_plugins();
    if (hwloc_topology_init(topology))
        return -ENOMEM;
    hwloc_topology_set_flags(*topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_io_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (!tree->live)
        rc = load_recorded(tree, *topology);
    else
        rc = hwloc_topology_load(*topology) ? -ENODATA : 0;
    if (!rc && !hwloc_topology_is_thissystem(*topology) != !tree->live)
        rc = -EREMOTE;
    if (rc)
        hwloc_topology_destroy(*topology);
    return rc;
}

static void set_count(json_t *cpu, const char *key, hwloc_topology_t topology,
                      hwloc_obj_type_t type)
{
    int count = hwloc_get_nbobjs_by_type(topology, type);

    if (count > 0)
        fact_set_number(cpu, key, count);
    else
        fact_set_unknown(cpu, key, "the kernel does not say");
}

static json_t *find_cache(json_t *caches, const json_t *like)
{
    static const char *const keys[] = {"level", "size_bytes", "shared_by_threads"};
    json_t *cache;
    size_t i;

    json_array_foreach (caches, i, cache) {
        bool same = true;

        for (size_t k = 0; k < 3; k++)
            same = same && fact_integer(cache, keys[k], -1) == fact_integer(like, keys[k], -1);
        if (same && !strcmp(fact_string(cache, "type"), fact_string(like, "type")))
            return cache;
    }
    return NULL;
}

static void add_cache(json_t *caches, hwloc_obj_t object)
{
    const struct hwloc_cache_attr_s *attr = &object->attr->cache;
    json_t *cache = json_object(), *same;

    fact_set_number(cache, "level", attr->depth);
    fact_set_text(cache, "type",
                  attr->type == HWLOC_OBJ_CACHE_DATA          ? "data"
                  : attr->type == HWLOC_OBJ_CACHE_INSTRUCTION ? "instruction"
                                                              : "unified");
    fact_set_number(cache, "size_bytes", (long long)attr->size);
    fact_set_number(cache, "line_bytes", attr->linesize);
    fact_set_number(cache, "shared_by_threads", hwloc_bitmap_weight(object->cpuset));
    fact_set_number(cache, "count", 1);
    same = find_cache(caches, cache);
    if (same) {
        fact_set_number(same, "count", fact_integer(same, "count", 0) + 1);
        json_decref(cache);
    } else {
        json_array_append_new(caches, cache);
    }
}

/* Data and unified caches, L1 first; instruction caches bound none of our pipes. */
static void add_caches(struct probe *p, hwloc_topology_t topology)
{
    json_t *caches = fact_list(p->machine, "caches");

    for (int level = HWLOC_OBJ_L1CACHE; level <= HWLOC_OBJ_L5CACHE; level++)
        for (hwloc_obj_t o = NULL;
             (o = hwloc_get_next_obj_by_type(topology, (hwloc_obj_type_t)level, o));)
            add_cache(caches, o);
    if (!json_array_size(caches))
        fact_set_text(p->machine, "caches_why",
                      "the kernel shows no cache: the hypervisor hides them");
}

/* hwloc drops the distances of a single node, so they are read here. */
static void node_distances(struct probe *p, json_t *node, unsigned index)
{
    char path[TREE_LINE], line[TREE_LINE * 2], *save = NULL;
    json_t *list;

    snprintf(path, sizeof(path), "%s/node%u/distance", NODES, index);
    if (tree_line(&p->tree, path, line, sizeof(line))) {
        fact_set_unknown(node, "distances", "/%s: not there", path);
        return;
    }
    list = fact_list(node, "distances");
    for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
        json_array_append_new(list, json_integer(strtol(word, NULL, 10)));
}

static void add_node(struct probe *p, json_t *list, hwloc_obj_t object)
{
    json_t *node = json_object();
    char *set = NULL;

    json_array_append_new(list, node);
    fact_set_number(node, "node", object->os_index);
    hwloc_bitmap_list_asprintf(&set, object->cpuset);
    fact_set_text(node, "cpus", set);
    free(set);
    if (object->attr->numanode.local_memory)
        fact_set_number(node, "memory_bytes", (long long)object->attr->numanode.local_memory);
    else
        fact_set_unknown(node, "memory_bytes", "the node has no memory, or its meminfo is hidden");
    node_distances(p, node, object->os_index);
}

static void add_numa(struct probe *p, hwloc_topology_t topology)
{
    json_t *numa = fact_object(p->machine, "numa"), *list;
    long long balancing;

    if (!tree_number(&p->tree, "proc/sys/kernel/numa_balancing", &balancing))
        fact_set_bool(numa, "balancing", balancing != 0);
    else
        fact_set_unknown(numa, "balancing", "the kernel has no such switch");
    list = fact_list(numa, "nodes");
    if (!tree_exists(&p->tree, NODES)) {
        fact_set_text(numa, "nodes_why", "/sys/devices/system/node: not there");
        return;
    }
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, o));)
        add_node(p, list, o);
}

static void topology_unknown(struct probe *p, json_t *cpu, const char *why)
{
    static const char *const counts[] = {"sockets", "cores", "threads"};

    for (size_t i = 0; i < 3; i++)
        fact_set_unknown(cpu, counts[i], "%s", why);
    fact_set_unknown(p->machine, "caches", "%s", why);
    fact_set_unknown(p->machine, "numa", "%s", why);
}

static const char *load_error(int rc)
{
    if (rc == -ENODATA)
        return "hwloc cannot read the processor's topology";
    if (rc == -EREMOTE)
        return "hwloc describes another machine than the one asked for: unset its HWLOC_ variables";
    return "/sys/devices/system or /proc/cpuinfo holds what no kernel shows: hwloc is kept from it";
}

void probe_topology(struct probe *p)
{
    json_t *cpu = json_object_get(p->machine, "cpu");
    hwloc_topology_t topology;
    int rc = topology_load(&p->tree, &topology);

    if (rc) {
        topology_unknown(p, cpu, load_error(rc));
        return;
    }
    set_count(cpu, "sockets", topology, HWLOC_OBJ_PACKAGE);
    set_count(cpu, "cores", topology, HWLOC_OBJ_CORE);
    set_count(cpu, "threads", topology, HWLOC_OBJ_PU);
    add_caches(p, topology);
    add_numa(p, topology);
    hwloc_topology_destroy(topology);
}
