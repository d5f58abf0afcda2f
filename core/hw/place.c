/* SPDX-License-Identifier: Apache-2.0 */
/* Places and placement, as options name them: see place.h. */
#include "core/hw/place.h"

#include <errno.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hw/gpu.h"
#include "core/hw/topo.h"
#include "core/option.h"
#include "core/units.h"

/* ---- Names of places ---- */

/* What a place may be part of, in the order in which they are offered. */
static const struct whole {
    const char *prefix; /* of its parts' names: node0, cuda:0 */
    const char *all;    /* the word for all of its parts */
    bool gpu;           /* a number follows ':', and need not be given */
    unsigned kind;      /* PLACE_* */
} wholes[] = {{"node", "nodes", false, PLACE_PART}, {"cuda", "gpus", true, PLACE_GPU}};
#define WHOLES (sizeof(wholes) / sizeof(*wholes))

static const char host[] = "host";

/* Reads "1", ":1" or, as 0, "": a number has one way to be written. */
static int parse_index(const char *text, unsigned *index)
{
    uint64_t value = 0;

    if (*text == ':' && text[1])
        text++;
    if (*text && (units_parse_u64(text, &value) || value > INT32_MAX))
        return -EINVAL;
    if (*text == '0' && text[1])
        return -EINVAL;
    *index = (unsigned)value;
    return 0;
}

struct place_name place_name(struct place place)
{
    struct place_name name;

    snprintf(name.text, sizeof(name.text), "%s%s%u", wholes[place.gpu].prefix, place.gpu ? ":" : "",
             place.index);
    return name;
}

/* What it may be called, and, where one of these is near, which was meant. */
static int no_place(const char *name, unsigned kinds, bool known, char *error, size_t len)
{
    size_t digits = strlen(name), at, n = 0;
    unsigned index = 0;
    struct place_name parts[WHOLES];
    const char *names[2 * WHOLES + 2] = {NULL};

    while (digits && strchr("0123456789", name[digits - 1]))
        digits--;
    while (name[digits] == '0')
        digits++;
    if (parse_index(name + digits, &index))
        index = 0;
    at = (size_t)snprintf(error, len, "'%.40s' is %s:", name,
                          !known               ? "not a place"
                          : kinds == PLACE_GPU ? "no GPU"
                                               : "no device of its own");
    if (kinds & PLACE_WHOLE)
        names[n++] = host;
    for (size_t i = 0; i < WHOLES; i++) {
        if (!(kinds & wholes[i].kind))
            continue;
        parts[i] = place_name((struct place){wholes[i].gpu, index});
        names[n++] = parts[i].text;
        names[n++] = wholes[i].all;
    }
    for (size_t i = 0; i < n && at < len; i++)
        at += (size_t)snprintf(error + at, len - at, "%s%s", i ? ", " : " ", names[i]);
    const char *near = known ? NULL : opts_nearest(name, names);
    if (near && at < len)
        snprintf(error + at, len - at, "; did you mean '%s'?", near);
    return -EINVAL;
}

int place_parse(const char *name, unsigned kinds, struct place *place, char *error, size_t len)
{
    unsigned kind = 0, index = 0;

    if (!strcmp(name, host)) {
        *place = (struct place){.gpu = false};
        kind = PLACE_WHOLE;
    }
    for (size_t i = 0; !kind && i < WHOLES; i++) {
        size_t prefix = strlen(wholes[i].prefix);
        if (strncmp(name, wholes[i].prefix, prefix) || parse_index(name + prefix, &index) ||
            (!name[prefix] && !wholes[i].gpu))
            continue;
        *place = (struct place){wholes[i].gpu, index};
        kind = wholes[i].kind;
    }
    /* What takes parts of the host takes it as a whole, too: as the first of them. */
    if (kind & kinds || (kind == PLACE_WHOLE && kinds & PLACE_PART))
        return 0;
    return no_place(name, kinds, kind != 0, error, len);
}

static int read_place(const char *text, unsigned kinds, void *value, char *error, size_t len)
{
    struct place place;

    *(const char **)value = text;
    return place_parse(text, kinds, &place, error, len);
}

int place_read_any(const char *text, void *value, char *error, size_t len)
{
    return read_place(text, PLACE_ANY, value, error, len);
}

int place_read_device(const char *text, void *value, char *error, size_t len)
{
    return read_place(text, PLACE_WHOLE | PLACE_GPU, value, error, len);
}

int place_read_gpu(const char *text, void *value, char *error, size_t len)
{
    return read_place(text, PLACE_GPU, value, error, len);
}

static int find_node(const struct topo *topo, unsigned index, char *error, size_t len)
{
    size_t at = 0;

    if (placement_has_node(topo, (int)index))
        return 0;
    at += (size_t)snprintf(error, len, "this machine has no NUMA node %u: it shows", index);
    for (unsigned i = 0; i < topo_nodes(topo) && at < len; i++)
        at += (size_t)snprintf(error + at, len - at, "%s node%u", i ? "," : "",
                               topo_node_id(topo, i));
    return -ENODEV;
}

int place_find(const char *name, const struct topo *topo, struct place *place, char *error,
               size_t len)
{
    int err = place_parse(name, PLACE_ANY, place, error, len);

    if (err)
        return err;
    if (!strcmp(name, host)) {
        place->index = topo_node_id(topo, 0);
        return 0;
    }
    return place->gpu ? 0 : find_node(topo, place->index, error, len);
}

static void list_nodes(char *list, size_t len)
{
    struct topo *topo = NULL;
    size_t at = 0;

    snprintf(list, len, "node0");
    if (topo_open(&topo))
        return;
    for (unsigned i = 0; i < topo_nodes(topo) && at + 16 < len; i++)
        at +=
            (size_t)snprintf(list + at, len - at, "%snode%u", at ? "," : "", topo_node_id(topo, i));
    topo_close(topo);
}

/* Where there is no GPU the first one's name is kept, and its row says why. */
static void list_gpus(char *list, size_t len)
{
    struct gpus *gpus = gpus_open();
    unsigned n = gpus_count(gpus);
    size_t at = 0;

    snprintf(list, len, PLACE_GPU_PREFIX "0");
    for (unsigned i = 0; i < n && at + 16 < len; i++)
        at += (size_t)snprintf(list + at, len - at, "%s" PLACE_GPU_PREFIX "%u", at ? "," : "", i);
    gpus_close(gpus);
}

/* Another name of a place: its one name in `list`. */
static bool is_alias(const char *word, char *list, size_t len)
{
    struct place place = {0};

    if (!strcmp(word, host) || place_parse(word, PLACE_ANY, &place, list, len))
        return false;
    snprintf(list, len, "%s", place_name(place).text);
    return strcmp(list, word) != 0;
}

bool place_words(const char *word, char *list, size_t len)
{
    if (!strcmp(word, "nodes"))
        list_nodes(list, len);
    else if (!strcmp(word, "gpus"))
        list_gpus(list, len);
    else if (!strcmp(word, "gpu"))
        snprintf(list, len, PLACE_GPU_PREFIX "0");
    else
        return is_alias(word, list, len);
    return true;
}

bool place_words_of_nodes(const char *word, char *list, size_t len)
{
    if (strcmp(word, host) != 0)
        return place_words(word, list, len);
    list_nodes(list, len);
    list[strcspn(list, ",")] = 0;
    return true;
}

const char *place_all_nodes(void)
{
    static char text[256]; /* made once, then read only */

    list_nodes(text, sizeof(text));
    return text;
}

/* ---- Placement ---- */

int place_parse_word(const char *text, const struct place_word *words, void *value, char *error,
                     size_t len)
{
    uint64_t number;
    int *out = value;

    for (const struct place_word *w = words; w->name; w++)
        if (!strcmp(text, w->name)) {
            *out = w->value;
            return 0;
        }
    if (!units_parse_u64(text, &number) && number <= 65535) {
        *out = (int)number;
        return 0;
    }
    snprintf(error, len, "'%s' is not a node: a number", text);
    for (const struct place_word *w = words; w->name; w++)
        snprintf(error + strlen(error), len - strlen(error), " or %s", w->name);
    return -EINVAL;
}

int placement_parse_node(const char *text, void *value, char *error, size_t len)
{
    static const struct place_word words[] = {{"any", PLACEMENT_ANY}, {NULL, 0}};

    return place_parse_word(text, words, value, error, len);
}

int placement_parse_memory(const char *text, void *value, char *error, size_t len)
{
    static const struct place_word words[] = {
        {"local", PLACEMENT_LOCAL}, {"remote", PLACEMENT_REMOTE}, {NULL, 0}};

    return place_parse_word(text, words, value, error, len);
}

/* Usable cores of a node; with `node` < 0 all. */
static unsigned cores_of(const struct topo *topo, int node)
{
    hwloc_topology_t hwloc = topo_hwloc(topo);
    hwloc_obj_t at = node < 0 ? NULL : hwloc_get_numanode_obj_by_os_index(hwloc, (unsigned)node);
    unsigned n = topo_cores(topo);

    if (node >= 0) {
        int inside =
            at ? hwloc_get_nbobjs_inside_cpuset_by_type(hwloc, at->cpuset, HWLOC_OBJ_CORE) : 0;
        n = inside > 0 && (unsigned)inside < n ? (unsigned)inside : n;
    }
    return n;
}

bool placement_has_node(const struct topo *topo, int node)
{
    for (unsigned i = 0; i < topo_nodes(topo); i++)
        if ((int)topo_node_id(topo, i) == node)
            return true;
    return false;
}

/* Another node than the one that all CPUs are on; -1 when there is none. */
static int other_node(const struct topo *topo, const struct placement *p)
{
    int mine = topo_node_of_cpu(topo, p->cpus[0]);

    for (unsigned i = 1; i < p->threads; i++)
        if (topo_node_of_cpu(topo, p->cpus[i]) != mine)
            return -1;
    for (unsigned i = 0; mine >= 0 && i < topo_nodes(topo); i++)
        if ((int)topo_node_id(topo, i) != mine)
            return (int)topo_node_id(topo, i);
    return -1;
}

static int resolve_memory(const struct topo *topo, int memory, struct placement *p, char *error,
                          size_t len)
{
    p->memory_node = memory;
    if (memory >= 0 && !placement_has_node(topo, memory)) {
        snprintf(error, len, "this machine has no NUMA node %d for memory", memory);
        return -EOPNOTSUPP;
    }
    if (memory != PLACEMENT_REMOTE)
        return 0;
    p->memory_node = other_node(topo, p);
    if (p->memory_node >= 0)
        return 0;
    if (topo_nodes(topo) < 2)
        snprintf(error, len, "no remote memory: this machine shows one NUMA node");
    else
        snprintf(error, len,
                 "the threads are on several NUMA nodes, so no memory is remote to "
                 "all: choose one with --node");
    return -EOPNOTSUPP;
}

int placement_resolve(const struct topo *topo, unsigned threads, int node, int memory,
                      struct placement *p, char *error, size_t len)
{
    *p = (struct placement){.threads = threads};
    if (node >= 0 && !placement_has_node(topo, node)) {
        snprintf(error, len, "this machine has no NUMA node %d for threads", node);
        return -EOPNOTSUPP;
    }
    if (!threads)
        p->threads = cores_of(topo, node);
    p->cpus = xcalloc(p->threads, sizeof(*p->cpus));
    while (!threads && p->threads > 1 && topo_spread(topo, node, p->threads, p->cpus))
        p->threads--; /* the affinity mask leaves fewer on this node */
    if (topo_spread(topo, node, p->threads, p->cpus)) {
        snprintf(error, len, "%u threads, but only %u CPUs may be used%s", p->threads,
                 topo_cpus(topo), node >= 0 ? ", on this node fewer" : "");
        return -EOPNOTSUPP;
    }
    return resolve_memory(topo, memory, p, error, len);
}

void placement_release(struct placement *p)
{
    free(p->cpus);
    *p = (struct placement){0};
}
