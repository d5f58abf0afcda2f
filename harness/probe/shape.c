/* SPDX-License-Identifier: Apache-2.0 */
/* Cores, packages and caches as the files name them: see shape.h. */
#include "harness/probe/shape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS "sys/devices/system/cpu"

enum { MASK = 16384, INDEXES_MAX = 16 };

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t distinct(struct names *masks)
{
    size_t count = 0;

    if (masks->count)
        qsort(masks->name, masks->count, sizeof(*masks->name), by_text);
    for (size_t i = 0; i < masks->count; i++)
        count += i == 0 || strcmp(masks->name[i], masks->name[i - 1]) != 0;
    return count;
}

static void say_lacking(char *lacking, const char *path, int rc)
{
    if (!lacking[0])
        snprintf(lacking, TREE_LINE, "/%.160s: %.60s", path, fact_errno(rc));
}

/* Adds the mask in a file, with a label before it; masks of machines with many CPUs are long. */
static int add_mask(const struct tree *tree, struct names *masks, const char *label,
                    const char *path)
{
    char text[MASK], entry[MASK + 64];
    int rc = tree_read(tree, path, text, sizeof(text), NULL);

    text[strcspn(text, "\n")] = '\0';
    if (!rc && !text[0])
        rc = -ENODATA;
    if (!rc)
        snprintf(entry, sizeof(entry), "%s%s", label, text);
    return rc ? rc : names_add(masks, entry);
}

/* Under its name of today or the one before Linux 5.2. */
static void add_topology(const struct tree *tree, const char *cpu, const char *file,
                         const char *older, struct names *masks)
{
    struct path folder = tree_join(tree_join(CPUS, cpu).s, "topology");

    if (add_mask(tree, masks, "", tree_join(folder.s, file).s))
        add_mask(tree, masks, "", tree_join(folder.s, older).s);
}

static void add_cache(const struct tree *tree, const char *index, struct names *masks,
                      char *lacking)
{
    char label[64], level[16], type[32];
    struct path map = tree_join(index, "shared_cpu_map");
    int rc = tree_line_at(tree, index, "type", type, sizeof(type));

    if (rc) {
        say_lacking(lacking, tree_join(index, "type").s, rc);
        return;
    }
    if (strcmp(type, "Data") != 0 && strcmp(type, "Unified") != 0)
        return;
    rc = tree_line_at(tree, index, "level", level, sizeof(level));
    if (rc) {
        say_lacking(lacking, tree_join(index, "level").s, rc);
        return;
    }
    snprintf(label, sizeof(label), "%s %s ", level, type);
    rc = add_mask(tree, masks, label, map.s);
    if (rc)
        say_lacking(lacking, map.s, rc);
}

static void add_caches(const struct tree *tree, const char *cpu, struct names *masks, char *lacking)
{
    struct path folder = tree_join(tree_join(CPUS, cpu).s, "cache");
    struct names names;

    tree_list(tree, folder.s, &names);
    for (size_t i = 0; i < names.count && i < INDEXES_MAX; i++)
        if (!strncmp(names.name[i], "index", 5))
            add_cache(tree, tree_join(folder.s, names.name[i]).s, masks, lacking);
    names_free(&names);
}

/* "cpu12" of an online CPU; the folders beside it are cpufreq and cpuidle. */
static bool is_cpu(const char *name)
{
    return !strncmp(name, "cpu", 3) && digits_number(name + 3) >= 0;
}

size_t shape_masks(const struct tree *tree, enum shape shape, char *lacking)
{
    struct names cpus, masks = {0};
    size_t count;

    lacking[0] = '\0';
    tree_list(tree, CPUS, &cpus);
    for (size_t i = 0; i < cpus.count; i++) {
        if (!is_cpu(cpus.name[i]))
            continue;
        if (shape == SHAPE_CORES)
            add_topology(tree, cpus.name[i], "core_cpus", "thread_siblings", &masks);
        else if (shape == SHAPE_PACKAGES)
            add_topology(tree, cpus.name[i], "package_cpus", "core_siblings", &masks);
        else
            add_caches(tree, cpus.name[i], &masks, lacking);
    }
    count = distinct(&masks);
    names_free(&cpus);
    names_free(&masks);
    return count;
}
