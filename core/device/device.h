/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where buffers live. A device is a const table of operations; the host is the only one so far. A
 * place is a device and one of its parts: "node0" is the memory of the host's NUMA node 0.
 *
 * Errors: 0 or -errno; -ENODEV and -EOPNOTSUPP mean "not here", any other is final. Where a call takes
 * `error`, it writes what failed and what to do about it: no full stop, no newline.
 */
#ifndef PLUMB_CORE_DEVICE_DEVICE_H
#define PLUMB_CORE_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/device/work.h"
#include "core/topo.h"

struct gpu;
struct point;

enum device_memory {
    DEVICE_BASE,    /* pages of the smallest size */
    DEVICE_THP,     /* transparent huge pages: asked for, not sure */
    DEVICE_HUGETLB, /* from the reserved pool: sure, or an error */
};

struct device_buffer {
    void *at; /* starts on a huge page; NULL: not allocated */
    size_t bytes;
    enum device_memory memory;
    void *map; /* the table's own */
    size_t map_bytes;
};

/* What the system says about where the pages of buffers lie. */
#define DEVICE_NODES_MAX 16
struct device_where {
    bool huge_known; /* the share on huge pages could be read */
    uint64_t resident_bytes, huge_bytes;
    bool nodes_known;   /* so could the nodes */
    uint64_t looked_at; /* pages asked for, evenly spread; those not touched yet are left out */
    uint64_t elsewhere; /* of them on nodes above DEVICE_NODES_MAX */
    uint64_t on_node[DEVICE_NODES_MAX];
};

struct device_ops {
    const char *name; /* of its places: "node" for node0, node1, ...; "cuda" for cuda:0, ... */

    /* What benchmarks do on it; NULL: cannot. `leads`: its copies serve also those between it and a
     * device that does not lead. */
    const struct device_work *memory, *copy;
    bool leads;
    /* Opens part `index` for calls to a GPU, as point_gpu(); NULL: it is none. */
    int (*gpu)(struct point *pt, unsigned index, struct gpu **gpu);

    /* Is part `index` here? 0, or -ENODEV with *error saying what there is. What follows is for the
     * device's own code and may be NULL in a device that has its own. */
    int (*probe)(const struct topo *topo, unsigned index, char *error, size_t len);

    /* Memory that could be taken now without harm, in bytes; UINT64_MAX when not known. */
    uint64_t (*available)(void);

    /* Zero-filled and untouched where possible (DEVICE_HUGETLB is populated): the first thread to
     * write decides the node, unless `node` (the system's number) binds it; -1 does not. Safe from
     * several threads. */
    int (*alloc)(struct device_buffer *buffer, const struct topo *topo, size_t bytes,
                 enum device_memory memory, int node, char *error, size_t len);
    void (*free)(struct device_buffer *buffer); /* a zeroed or freed one is left alone */

    /* Where the pages of n buffers lie, all together. Never fails: see the *_known. */
    void (*where)(const struct device_buffer *buffers, size_t n, struct device_where *where);
};

extern const struct device_ops device_host; /* also "host", the machine as a whole: index 0 */
extern const struct device_ops device_gpu;  /* through gpu.h */

struct place {
    const struct device_ops *device;
    unsigned index;
};

/* Which places an option takes. */
#define PLACE_WHOLE 1u /* "host" */
#define PLACE_PART  2u /* "node0": what does not lead and has several parts */
#define PLACE_GPU   4u /* "cuda:0": what leads */
#define PLACE_ANY   7u

/* For conditions of options (option_scope.h): the value is one of these, in its one name. */
#define PLACES_OF_HOST "host,node*"
#define PLACES_OF_GPUS "cuda:*"

/* Reads a name, without a look at the machine ("cuda" is cuda:0, "host" part 0). 0, or -EINVAL with
 * *error naming the choices and the nearest of them. */
int place_parse(const char *name, unsigned kinds, struct place *place, char *error, size_t len);

/* As struct opt's `parse`, with a const char * for a value: any place; host or a GPU; a GPU. */
int place_read_any(const char *text, void *value, char *error, size_t len);
int place_read_device(const char *text, void *value, char *error, size_t len);
int place_read_gpu(const char *text, void *value, char *error, size_t len);

/* Reads a name and probes the place ("host" is its first node; whether a GPU is there shows when it
 * is opened). -ENODEV with *error when it is not here, -EINVAL when the name is none of a place. */
int place_find(const char *name, const struct topo *topo, struct place *place, char *error,
               size_t len);

/* Words for places, as struct opt's `expand`: "nodes" is every node, "gpus" every GPU, "gpu" the first
 * one; a place's other names ("cuda", "node:1") become its one name. */
bool place_words(const char *word, char *list, size_t len);
/* The same where the host is a number of nodes: "host" is the first one. */
bool place_words_of_nodes(const char *word, char *list, size_t len);
const char *place_all_nodes(void); /* for struct opt's make_default */

#endif
