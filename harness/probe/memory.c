/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory there is and in which pages it comes. */
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/probe/facts.h"

static const char hugetlb[] = "sys/kernel/mm/hugepages";

long long meminfo_bytes(const char *text, const char *key)
{
    char field[64];
    size_t digits;

    if (!text_field(text, key, field, sizeof(field)))
        return -1;
    digits = strspn(field, "0123456789");
    if (!digits || digits > 15 || strcmp(field + digits, " kB") != 0)
        return -1;
    return atoll(field) * 1024;
}

/* "total_bytes"; "swap_bytes", which may be 0. */
static void memory_total(struct probe *p, json_t *memory)
{
    char text[8192];
    int rc = sys_read(p->root, text, sizeof(text), NULL, "proc/meminfo");
    long long total = rc ? 0 : meminfo_bytes(text, "MemTotal"),
              swap = rc ? -1 : meminfo_bytes(text, "SwapTotal");

    fact_set(memory, "total_bytes", total > 0 ? json_integer(total) : NULL, "/proc/meminfo%s%s",
             rc ? ": " : " has no MemTotal", rc ? fact_errno(rc) : "");
    fact_set(memory, "swap_bytes", swap >= 0 ? json_integer(swap) : NULL, "/proc/meminfo%s%s",
             rc ? ": " : " has no SwapTotal", rc ? fact_errno(rc) : "");
}

static void memory_hugetlb(struct probe *p, json_t *memory)
{
    static const struct fact_file counts[] = {{"pages", "nr_hugepages", FACT_NUMBER},
                                              {"free", "free_hugepages", FACT_NUMBER}};
    struct names names;
    int rc = sys_list(p->root, &names, "%s", hugetlb);
    json_t *sizes;

    if (rc && !probe_absent(p, "%s", hugetlb)) {
        fact_set_unknown(memory, "hugetlb", "/%s: %s", hugetlb, fact_errno(rc));
        return;
    }
    sizes = fact_list(memory, "hugetlb");
    if (rc)
        fact_set_text(memory, "hugetlb_why", "this kernel has no pools of huge pages");
    for (size_t i = 0; i < names.count; i++) {
        unsigned long long kib;
        json_t *size;

        if (sscanf(names.name[i], "hugepages-%llukB", &kib) != 1 || kib > 1ULL << 40)
            continue;
        size = fact_append(sizes);
        fact_set_number(size, "page_bytes", (long long)kib * 1024);
        fact_set_files(p, size, path_join(hugetlb, names.name[i]).s, FACT_FILES(counts));
    }
    names_free(&names);
}

void probe_memory(struct probe *p)
{
    static const struct fact_file pages[] = {{"enabled", "enabled", FACT_CHOSEN},
                                             {"defrag", "defrag", FACT_CHOSEN}};
    json_t *memory = fact_object(p->machine, "memory");

    memory_total(p, memory);
    fact_set_files(p, fact_object(memory, "transparent_huge_pages"),
                   "sys/kernel/mm/transparent_hugepage", FACT_FILES(pages));
    memory_hugetlb(p, memory);
    fact_set_file(p, memory, "overcommit_mode", FACT_NUMBER, "proc/sys/vm/overcommit_memory");
    probe_dmi_memory(p, memory);
}

/* NUMA nodes, each as its own files tell it: a node without CPUs has none, whoever is near it. */

#define NODES "sys/devices/system/node"

enum { TEXT_MAX = 65536 };

/* The numbers of a list that is nothing but numbers and blanks; NULL where it is not. */
static json_t *number_list(char *text)
{
    json_t *list = json_array();
    char *save = NULL;

    for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        if (digits_number(word) < 0) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, json_integer(digits_number(word)));
    }
    if (json_array_size(list))
        return list;
    json_decref(list);
    return NULL;
}

/* A file that fills the buffer may have been cut, and a cut list is none. */
static int read_whole(const struct probe *p, const char *path, char *text)
{
    size_t length;
    int rc = sys_read(p->root, text, TEXT_MAX, &length, "%s", path);

    return rc ? rc : length == TEXT_MAX - 1 ? -EFBIG : 0;
}

static void set_distances(struct probe *p, json_t *node, const char *folder, char *text)
{
    struct path path = path_join(folder, "distance");
    int rc = read_whole(p, path.s, text);
    json_t *list = rc ? NULL : number_list(text);

    if (list)
        json_object_set_new(node, "distances", list);
    else
        fact_set_unknown(node, "distances", "/%s: %s", path.s,
                         rc ? fact_errno(rc) : "no list of numbers");
}

/* cpulist, or the older cpumap. */
static void set_cpus(struct probe *p, json_t *node, const char *folder, char *text)
{
    struct path path = path_join(folder, "cpulist");
    int rc = read_whole(p, path.s, text);
    char *list = NULL;

    text[strcspn(text, "\n")] = '\0';
    if (!rc && cpus_count(text) < 0)
        rc = -EINVAL;
    if (rc && !read_whole(p, path_join(folder, "cpumap").s, text)) {
        hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
        text[strcspn(text, "\n")] = '\0';
        if (text[0] && strspn(text, "0123456789abcdefABCDEF,") == strlen(text) &&
            !hwloc_bitmap_sscanf(cpus, text))
            hwloc_bitmap_list_asprintf(&list, cpus);
        hwloc_bitmap_free(cpus);
    }
    if (!rc || list)
        json_object_set_new(node, "cpus", json_string(list ? list : text));
    else
        fact_set_unknown(node, "cpus", "/%s: %s", path.s, fact_errno(rc));
    free(list);
}

/* "Node 0 MemTotal:       527983468 kB". */
static void set_memory(struct probe *p, json_t *node, const char *folder, char *text)
{
    struct path path = path_join(folder, "meminfo");
    int rc = read_whole(p, path.s, text);
    char *at = rc ? NULL : strstr(text, "MemTotal:");
    unsigned long long kib;

    if (at && sscanf(at, "MemTotal: %15llu kB", &kib) == 1)
        fact_set_number(node, "memory_bytes", (long long)kib * 1024);
    else
        fact_set_unknown(node, "memory_bytes", "/%s: %s", path.s,
                         rc ? fact_errno(rc) : "without MemTotal");
}

/* Those of the folders; where the list of those online counts others, some were not read. */
static int add_nodes(struct probe *p, json_t *list)
{
    struct names names;
    char line[SYS_LINE], *text = xrealloc(NULL, TEXT_MAX);
    int rc = sys_list(p->root, &names, NODES), online = -1;

    for (size_t i = 0; !rc && i < names.count; i++) {
        struct path folder = path_join(NODES, names.name[i]);
        json_t *node;

        if (strncmp(names.name[i], "node", 4) || digits_number(names.name[i] + 4) < 0)
            continue;
        node = fact_append(list);
        fact_set_number(node, "node", digits_number(names.name[i] + 4));
        set_cpus(p, node, folder.s, text);
        set_memory(p, node, folder.s, text);
        set_distances(p, node, folder.s, text);
    }
    names_free(&names);
    free(text);
    if (!rc && !sys_line(p->root, line, sizeof(line), NODES "/online"))
        online = cpus_count(line);
    if (!rc && (!json_array_size(list) || (online >= 0 && online != (int)json_array_size(list))))
        rc = -ENODATA;
    return rc;
}

void probe_numa(struct probe *p)
{
    json_t *numa = fact_object(p->machine, "numa"), *list = json_array();
    int rc;

    fact_set_file(p, numa, "balancing", FACT_BOOL, "proc/sys/kernel/numa_balancing");
    rc = add_nodes(p, list);
    if (!rc)
        json_object_set(numa, "nodes", list);
    else if (probe_absent(p, NODES)) {
        fact_list(numa, "nodes");
        fact_set_text(numa, "nodes_why", "this kernel knows no NUMA nodes");
    } else
        fact_set_unknown(numa, "nodes", "/" NODES ": %s",
                         rc == -ENODATA ? "fewer nodes there than are online" : fact_errno(rc));
    json_decref(list);
}
