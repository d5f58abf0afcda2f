/* SPDX-License-Identifier: Apache-2.0 */
/* What path.c (collects), path_relations.c (which devices move the same bytes) and path_judge.c share. Others use path.h. */
#ifndef PLUMB_CORE_NET_PATH_PARTS_H
#define PLUMB_CORE_NET_PATH_PARTS_H

#include "core/net/counters.h"
#include "core/net/nic.h"
#include "core/net/path.h"

struct path_device {
    char name[64];
    bool claimed, port;
    bool same_bytes; /* moves bytes that another device of the list counts: never "elsewhere" */
    struct nic_port facts; /* of a port */
    struct moved moved;
    double claim[COUNTER_WAYS];
    double message_bytes, mtu_bytes;
    double got[COUNTER_WAYS]; /* of a claimed device: what is held to have gone through it */
};

struct path_view {
    const char *root;
    struct path_device *list;
    size_t n;
};

struct path_device *path_find(const struct path_view *v, const char *name); /* or NULL */

/* Marks the devices that move the same bytes as another. */
void path_relate(struct path_view *v);

/* The verdict over all claimed devices. *lacking: bytes are missing, so that it may be worth to look again. */
void path_judge(struct path_view *v, struct path_proof *proof, bool *lacking);

#endif
