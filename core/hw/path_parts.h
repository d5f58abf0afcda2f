/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What path.c (collects), path_relations.c (which devices move the same bytes), path_carried.c (what is held to have gone through a
 * claimed device), path_judge.c, path_wires.c (which links carried it, with nothing claimed), path_sockets.c and path_words.c share. Others use
 * path.h.
 */
#ifndef PLUMB_CORE_HW_PATH_PARTS_H
#define PLUMB_CORE_HW_PATH_PARTS_H

#include "core/hw/counters.h"
#include "core/hw/nic.h"
#include "core/hw/path.h"

#define PATH_MET           0.98 /* of a claim: it is met */
#define PATH_TOO_FEW_BYTES 1e6  /* tell nothing */

/* What is judged by: claims in bytes, or in messages that took a packet each. */
enum path_measure { PATH_BYTES, PATH_PACKETS, PATH_MEASURES };

struct path_device {
    char name[64];
    bool claimed, port, at_least;
    bool in_set;     /* claimed, but with others: see path_view.set */
    bool same_bytes; /* moves bytes that another device of the list counts: never "elsewhere" */
    struct nic_port facts; /* of a port */
    struct moved moved;
    double claim[PATH_MEASURES][COUNTER_WAYS];
    double message_bytes, mtu_bytes;
    /* Of a claimed device: what is held to have gone through it; NAN: nothing tells. */
    double got[PATH_MEASURES][COUNTER_WAYS];
};

struct path_view {
    const char *root;
    struct path_device *list;
    size_t n;
    enum path_measure by; /* the one that is being judged by */
    /* What is claimed of all devices together that are in_set: `claim`, and by path_carry() `got`; name "": nothing. Not in the list. */
    struct path_device set;
};

struct path_words;

struct path_device *path_find(const struct path_view *v, const char *name); /* or NULL */

/* Fills in `got` of all claimed devices. */
void path_carry(struct path_view *v);
bool path_is_none(const struct path_device *d);         /* no device is named: shared memory */
double path_segment_bytes(const struct path_device *d); /* payload of a full packet of a claim */

/* The verdict over all claimed devices. *lacking: some is missing, so that it may be worth to look again. */
void path_judge(struct path_view *v, struct path_proof *proof, bool *lacking);

/* What a device moved by the view's measure; NULL: not known. */
static inline const double *path_moved(const struct path_view *v, const struct path_device *d)
{
    if (v->by == PATH_PACKETS)
        return d->moved.packets_known ? d->moved.packets : NULL;
    return d->moved.known ? d->moved.bytes : NULL;
}

static inline double path_sum(const double ways[COUNTER_WAYS])
{
    return ways[COUNTER_OUT] + ways[COUNTER_IN];
}

/* See path_wires(). Of a view without claims. *lacking: as of path_judge(). */
void path_find_wires(const struct path_view *v, const double least[COUNTER_WAYS],
                     struct path_wires *wires, bool *lacking);

/* Whether sockets did, where RDMA could: path_wires.sockets and what belongs to it. */
void path_find_sockets(const struct path_view *v, const double least[COUNTER_WAYS],
                       struct path_wires *wires);

/* A text that grows, and of what kind the first device is that it says moved something. */
struct path_words {
    char *text;
    size_t len, used;
    unsigned carriers;
};

/* The text says that this device moved something: the first one counts. */
void path_carried_by(struct path_words *w, const struct path_device *d);

void path_say(struct path_words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct path_amount {
    char text[32];
};

/* "12.4 GB", "10000 packets". */
struct path_amount path_amount(const struct path_view *v, double amount);

#endif
