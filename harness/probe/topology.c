/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets, cores, threads and caches, from hwloc. hwloc trusts the files it reads; a recorded tree
 * is looked through first, so that a pipe, an endless file or an absurd processor number is an
 * answer here and not a hang or an abort there. Of objects that do not fit together hwloc drops
 * some without a word, and of those whose files lack it has none: each count is held against the
 * files.
 */
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hw/topo.h"
#include "harness/probe/facts.h"

enum shape { SHAPE_CORES, SHAPE_PACKAGES, SHAPE_CACHES };

/* ---- Cores, packages and caches as the files name them ---- */

#define CPUS "sys/devices/system/cpu"

enum { MASK = 16384, INDEXES_MAX = 16 };

/* Adds the mask in a file, with a label before it; masks of machines with many CPUs are long. */
static int add_mask(const struct probe *p, json_t *masks, const char *label, const char *folder,
                    const char *file)
{
    char text[MASK], entry[MASK + 64];
    int rc = sys_read(p->root, text, sizeof(text), NULL, "%s/%s", folder, file);

    text[strcspn(text, "\n")] = '\0';
    if (!rc && !text[0])
        rc = -ENODATA;
    snprintf(entry, sizeof(entry), "%s%s", label, text);
    if (!rc)
        json_object_set_new(masks, entry, json_true());
    return rc;
}

static void add_cache(const struct probe *p, const char *index, json_t *masks, char *lacking)
{
    char label[64], level[16], type[32];
    const char *file = "type";
    int rc = sys_line(p->root, type, sizeof(type), "%s/type", index);

    if (!rc && strcmp(type, "Data") != 0 && strcmp(type, "Unified") != 0)
        return;
    if (!rc)
        rc = sys_line(p->root, level, sizeof(level), "%s/%s", index, file = "level");
    if (!rc) {
        snprintf(label, sizeof(label), "%s %s ", level, type);
        rc = add_mask(p, masks, label, index, file = "shared_cpu_map");
    }
    if (rc && !lacking[0])
        snprintf(lacking, SYS_LINE, "/%.160s: %.60s", path_join(index, file).s, fact_errno(rc));
}

/* How many different sets of CPUs the files of all CPUs name for cores, packages, or data and
 * unified caches (each level by itself). lacking, of SYS_LINE bytes: the first file that should be
 * there and could not be read, with why; "" where there is none. */
static size_t shape_masks(const struct probe *p, enum shape shape, char *lacking)
{
    /* The file's name of today, and the one before Linux 5.2. */
    static const char *const files[][2] = {[SHAPE_CORES] = {"core_cpus", "thread_siblings"},
                                           [SHAPE_PACKAGES] = {"package_cpus", "core_siblings"}};
    json_t *masks = json_object();
    struct names cpus, indexes;
    size_t count;

    lacking[0] = '\0';
    sys_list(p->root, &cpus, CPUS);
    for (size_t i = 0; i < cpus.count; i++) {
        struct path folder = path_join(path_join(CPUS, cpus.name[i]).s,
                                       shape == SHAPE_CACHES ? "cache" : "topology");

        /* "cpu12" of an online CPU; the folders beside it are cpufreq and cpuidle. */
        if (strncmp(cpus.name[i], "cpu", 3) || digits_number(cpus.name[i] + 3) < 0)
            continue;
        if (shape != SHAPE_CACHES) {
            if (add_mask(p, masks, "", folder.s, files[shape][0]))
                add_mask(p, masks, "", folder.s, files[shape][1]);
            continue;
        }
        sys_list(p->root, &indexes, "%s", folder.s);
        for (size_t k = 0; k < indexes.count && k < INDEXES_MAX; k++)
            if (!strncmp(indexes.name[k], "index", 5))
                add_cache(p, path_join(folder.s, indexes.name[k]).s, masks, lacking);
        names_free(&indexes);
    }
    count = json_object_size(masks);
    names_free(&cpus);
    json_decref(masks);
    return count;
}

enum { CPUS_MAX = 65536, FILE_MAX = 65536, CPUINFO_MAX = 64 << 20, DEPTH_MAX = 9 };
#define NODES "sys/devices/system/node"

/* Names such as cpu12 must carry a sane number: hwloc sizes its sets by it. Others, such as a
 * device tree's 24091000.qcom, are addresses. */
static bool number_is_sane(const char *name)
{
    size_t letters = strcspn(name, "0123456789");

    if (!(letters == 3 && !strncmp(name, "cpu", 3)) && !(letters == 4 && !strncmp(name, "node", 4)))
        return true;
    return strtoul(name + letters, NULL, 10) < CPUS_MAX;
}

/*
 * hwloc follows links as the kernel does, out of the tree if they lead there. A path is sound where
 * that is the very thing that is found inside the tree, a file no larger than the limit, or a folder
 * of such. Links to folders are not followed further down: nothing hwloc reads here lies behind one.
 * 0 also where nothing is there. depth: so many folders below it may be looked at; -1: it must be a
 * file.
 */
static int vet(const struct probe *p, const char *path, off_t limit, int depth)
{
    struct path there = path_join(p->root, path);
    struct stat st, outside, self;
    struct names names;
    int rc;

    if (stat(there.s, &outside) || lstat(there.s, &self))
        return 0;
    if (sys_stat(p->root, &st, "%s", path) || st.st_dev != outside.st_dev ||
        st.st_ino != outside.st_ino)
        return -EXDEV;
    if (!S_ISDIR(st.st_mode))
        return S_ISREG(st.st_mode) && st.st_size <= limit ? 0 : -EINVAL;
    if (depth < 0)
        return -EINVAL;
    if (depth < DEPTH_MAX && S_ISLNK(self.st_mode))
        return 0;
    if (!depth)
        return -ELOOP;
    rc = sys_list(p->root, &names, "%s", path);
    if (!rc && names.count >= SYS_NAMES)
        rc = -EINVAL; /* there may be more, unseen */
    for (size_t i = 0; !rc && i < names.count; i++)
        rc = number_is_sane(names.name[i])
                 ? vet(p, path_join(path, names.name[i]).s, FILE_MAX, depth - 1)
                 : -EINVAL;
    names_free(&names);
    return rc;
}

static int vet_all(const struct probe *p)
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
    int rc = vet(p, "proc/cpuinfo", CPUINFO_MAX, -1);
    char line[SYS_LINE];

    for (size_t i = 0; !rc && i < sizeof(files) / sizeof(*files); i++)
        rc = vet(p, files[i], FILE_MAX, -1);
    for (size_t i = 0; !rc && i < 2; i++) { /* the lists of CPUs and nodes that are online */
        rc = sys_line(p->root, line, sizeof(line), "%s/online", folders[i]);
        rc = rc == -ENOENT ? 0 : !rc && cpus_count(line) < 0 ? -EINVAL : rc;
    }
    for (size_t i = 0; !rc && i < sizeof(folders) / sizeof(*folders); i++)
        rc = vet(p, folders[i], FILE_MAX, DEPTH_MAX);
    return rc;
}

/* Sets a variable and keeps what was there; value NULL unsets. */
static void environment_swap(const char *name, const char *value, char **before)
{
    const char *was = getenv(name);

    if (before)
        *before = was ? xstrdup(was) : NULL;
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* hwloc takes another root only from the environment. "linux,stop": never our own machine instead.
 */
static int load_recorded(const struct probe *p, hwloc_topology_t topology)
{
    static const char *const names[] = {"HWLOC_FSROOT", "HWLOC_COMPONENTS", "HWLOC_HIDE_ERRORS"};
    char *before[3];
    const char *values[] = {p->root, "linux,stop", "2"};
    int rc = vet_all(p);

    if (rc)
        return rc;
    for (size_t i = 0; i < 3; i++)
        environment_swap(names[i], values[i], &before[i]);
    rc = hwloc_topology_load(topology) ? -ENODATA : 0;
    for (size_t i = 0; i < 3; i++) {
        environment_swap(names[i], before[i], NULL);
        free(before[i]);
    }
    return rc;
}

static int topology_load(const struct probe *p, hwloc_topology_t *topology)
{
    int rc;

    topo_without_plugins();
    if (hwloc_topology_init(topology))
        alloc_fail(1);
    hwloc_topology_set_flags(*topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_io_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (p->root)
        rc = load_recorded(p, *topology);
    else
        rc = hwloc_topology_load(*topology) ? -ENODATA : 0;
    if (!rc && !hwloc_topology_is_thissystem(*topology) != !!p->root)
        rc = -EREMOTE;
    if (rc)
        hwloc_topology_destroy(*topology);
    return rc;
}

/* ---- counts ---- */

/* The processors that objects of a type hold together, and how many objects there are. */
static size_t covered(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_bitmap_t cpus)
{
    size_t count = 0;

    hwloc_bitmap_zero(cpus);
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, type, o)); count++)
        hwloc_bitmap_or(cpus, cpus, o->cpuset);
    return count;
}

static void set_count(struct probe *p, json_t *cpu, const char *key, hwloc_topology_t topology,
                      hwloc_obj_type_t type)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    size_t count = covered(topology, type, cpus), masks;
    char lacking[SYS_LINE] = "";

    masks = shape_masks(p, type == HWLOC_OBJ_CORE ? SHAPE_CORES : SHAPE_PACKAGES, lacking);
    if (!count)
        fact_set_unknown(cpu, key, "the kernel does not say");
    else if (lacking[0])
        fact_set_unknown(cpu, key, "%s", lacking);
    else if (!hwloc_bitmap_isequal(cpus, hwloc_get_root_obj(topology)->cpuset))
        fact_set_unknown(cpu, key, "the files say it of some CPUs only");
    else if (masks && masks != count)
        fact_set_unknown(cpu, key, "the files name %zu, of which %zu fit together", masks, count);
    else
        fact_set_number(cpu, key, (long long)count);
    hwloc_bitmap_free(cpus);
}

/* Before 5.20 Linux gave each cluster of an ARM device tree the id of a package. They are one chip
 * where their cores are of different types, or where the tree's map has clusters and no sockets. */
static bool clusters_are_packages(const struct probe *p)
{
    char text[65536], first[32], part[32];

    if (read_cpuinfo(p, text, sizeof(text)) || !text_field(text, "CPU part", first, sizeof(first)))
        return false;
    for (const char *at = text; (at = strstr(at, "\nCPU part")) != NULL; at++)
        if (text_field(at + 1, "CPU part", part, sizeof(part)) && strcmp(part, first) != 0)
            return true;
    return sys_exists(p->root, "proc/device-tree/cpus/cpu-map/cluster0") &&
           !sys_exists(p->root, "proc/device-tree/cpus/cpu-map/socket0");
}

/* ---- caches ---- */

/* Known to be the same, or not known to be another: a cache whose size could not be read stays one
 * of those beside it, and takes their size with it. */
static bool may_equal(const json_t *a, const json_t *b, const char *key)
{
    const json_t *one = json_object_get(a, key), *other = json_object_get(b, key);

    return json_is_null(one) || json_is_null(other) || json_equal(one, other);
}

static json_t *find_cache(json_t *caches, const json_t *like)
{
    static const char *const keys[] = {"level", "type", "size_bytes", "shared_by_threads"};
    json_t *cache;
    size_t i;

    json_array_foreach (caches, i, cache) {
        bool same = true;

        for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
            same = same && may_equal(cache, like, keys[k]);
        if (same)
            return cache;
    }
    return NULL;
}

/* hwloc writes 0 for what it could not read. */
static void set_cache_size(json_t *cache, const char *key, const char *file, long long value)
{
    fact_set(cache, key, value > 0 ? json_integer(value) : NULL,
             "the cache's file \"%s\" could not be read", file);
}

static void add_cache_topology(json_t *caches, hwloc_obj_t object)
{
    const struct hwloc_cache_attr_s *attr = &object->attr->cache;
    json_t *cache = json_object(), *same;

    fact_set_number(cache, "level", attr->depth);
    fact_set_text(cache, "type",
                  attr->type == HWLOC_OBJ_CACHE_DATA          ? "data"
                  : attr->type == HWLOC_OBJ_CACHE_INSTRUCTION ? "instruction"
                                                              : "unified");
    set_cache_size(cache, "size_bytes", "size", (long long)attr->size);
    set_cache_size(cache, "line_bytes", "coherency_line_size", attr->linesize);
    fact_set_number(cache, "shared_by_threads", hwloc_bitmap_weight(object->cpuset));
    fact_set_number(cache, "count", 1);
    same = find_cache(caches, cache);
    if (same) {
        fact_set_number(same, "count", fact_integer(same, "count", 0) + 1);
        /* Where one of them was not read, that of all is not known. */
        static const char *const keys[] = {"size_bytes", "line_bytes"};

        for (size_t k = 0; k < 2; k++)
            if (!json_equal(json_object_get(same, keys[k]), json_object_get(cache, keys[k])))
                fact_set_unknown(same, keys[k],
                                 "that of one of them could not be read, or differs");
        json_decref(cache);
    } else {
        json_array_append_new(caches, cache);
    }
}

/* A level that some CPUs show and others do not: how many there are of it is not known, unless the
 * others are known to have none. */
static void check_level(struct probe *p, json_t *caches, hwloc_topology_t topology, int level)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    json_t *cache;
    size_t i;

    if (covered(topology, (hwloc_obj_type_t)level, cpus) && p->root &&
        !hwloc_bitmap_isequal(cpus, hwloc_get_root_obj(topology)->cpuset))
        json_array_foreach (caches, i, cache)
            if (fact_integer(cache, "level", 0) == level - HWLOC_OBJ_L1CACHE + 1)
                fact_set_unknown(cache, "count", "the files show it for some CPUs only");
    hwloc_bitmap_free(cpus);
}

/* Data and unified caches, L1 first; instruction caches bound none of our pipes. */
static void add_caches_topology(struct probe *p, hwloc_topology_t topology)
{
    json_t *caches = json_array();
    char lacking[SYS_LINE] = "";
    size_t masks = shape_masks(p, SHAPE_CACHES, lacking), objects = 0;

    for (int level = HWLOC_OBJ_L1CACHE; level <= HWLOC_OBJ_L5CACHE; level++) {
        for (hwloc_obj_t o = NULL;
             (o = hwloc_get_next_obj_by_type(topology, (hwloc_obj_type_t)level, o)); objects++)
            add_cache_topology(caches, o);
        check_level(p, caches, topology, level);
    }
    if (!lacking[0] && masks != objects)
        snprintf(lacking, sizeof(lacking), "the files name %zu, of which %zu fit together", masks,
                 objects);
    if (lacking[0] || (!objects && !probe_absent(p, CPUS "/cpu0/cache"))) {
        fact_set_unknown(p->machine, "caches", "%s",
                         lacking[0] ? lacking : "/" CPUS "/cpu0/cache: not read");
        json_decref(caches);
        return;
    }
    json_object_set_new(p->machine, "caches", caches);
    if (!objects)
        fact_set_text(p->machine, "caches_why", "the kernel shows no cache");
}

static const char *load_error(int rc)
{
    if (rc == -ENODATA)
        return "hwloc cannot read the processor's topology";
    if (rc == -EREMOTE)
        return "hwloc describes another machine than the one asked for: unset its HWLOC_ variables";
    if (rc == -EACCES || rc == -EPERM)
        return "/sys/devices/system or /proc/cpuinfo is not readable without root";
    return "/sys/devices/system or /proc/cpuinfo holds what no kernel shows: hwloc is kept from it";
}

void probe_topology(struct probe *p)
{
    json_t *cpu = json_object_get(p->machine, "cpu");
    hwloc_topology_t topology;
    int rc = topology_load(p, &topology);

    if (rc) {
        fact_set_unknown(cpu, "sockets|cores|threads", "%s", load_error(rc));
        fact_set_unknown(p->machine, "caches", "%s", load_error(rc));
        probe_numa(p);
        return;
    }
    set_count(p, cpu, "sockets", topology, HWLOC_OBJ_PACKAGE);
    if (fact_integer(cpu, "sockets", 1) > 1 && clusters_are_packages(p))
        fact_set_number(cpu, "sockets", 1);
    set_count(p, cpu, "cores", topology, HWLOC_OBJ_CORE);
    /* Each online CPU has a folder that hwloc counts; where the list names more, some were not read. */
    int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU), online = -1;
    char line[SYS_LINE];

    if (!sys_line(p->root, line, sizeof(line), CPUS "/online"))
        online = cpus_count(line);
    fact_set(cpu, "threads",
             count > 0 && (online < 0 || online == count) ? json_integer(count) : NULL,
             "%d of the %d CPUs online show a topology", count, online);
    add_caches_topology(p, topology);
    probe_numa(p);
    hwloc_topology_destroy(topology);
}
