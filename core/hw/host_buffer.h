/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the host: bound to a NUMA node where that is asked for, on pages of the size that is
 * asked for, and where its pages lie in truth. Safe from several threads.
 */
#ifndef PLUMB_CORE_HW_HOST_BUFFER_H
#define PLUMB_CORE_HW_HOST_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct topo;

enum host_pages {
    HOST_PAGES_BASE,    /* pages of the smallest size */
    HOST_PAGES_THP,     /* transparent huge pages: asked for, not sure */
    HOST_PAGES_HUGETLB, /* from the reserved pool: sure, or an error */
};

struct host_buffer {
    void *at; /* starts on a huge page; NULL: not allocated */
    size_t bytes;
    enum host_pages memory;
    void *map; /* host_alloc's own */
    size_t map_bytes;
};

/* What the system says about where the pages of buffers lie. */
#define HOST_NODES_MAX 16
struct host_where {
    bool huge_known; /* the share on huge pages could be read */
    uint64_t resident_bytes, huge_bytes;
    bool nodes_known;   /* so could the nodes */
    uint64_t looked_at; /* pages asked for, evenly spread; those not touched yet are left out */
    uint64_t elsewhere; /* of them on nodes above HOST_NODES_MAX */
    uint64_t on_node[HOST_NODES_MAX];
};

/* Memory that could be taken now without harm, in bytes; UINT64_MAX when not known. */
uint64_t host_available(void);

/* Zero-filled and untouched where possible (HOST_PAGES_HUGETLB is populated): the first thread to
 * write decides the node, unless `node` (the system's number) binds it; -1 does not. 0 or -errno
 * with *error (what failed and what to do, no full stop, no newline): -EOPNOTSUPP means "not here",
 * any other is final. */
int host_alloc(struct host_buffer *buffer, const struct topo *topo, size_t bytes,
               enum host_pages pages, int node, char *error, size_t len);
void host_free(struct host_buffer *buffer); /* a zeroed or freed one is left alone */

/* Where the pages of n buffers lie, all together. Never fails: see the *_known. */
void host_where(const struct host_buffer *buffers, size_t n, struct host_where *where);

/* "node0 256/256 pages looked at, 100 % on huge pages": from move_pages and smaps. What the system
 * does not tell is said to be unknown. Returns text. */
const char *host_where_text(const struct host_where *where, char *text, size_t len);

/* The share of the resident pages that are huge, 0 to 1; NaN when not known. */
double host_huge_share(const struct host_where *where);

#endif
