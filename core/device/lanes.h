/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers of a transfer between two ends: a lane for each direction, with the memory it comes from
 * at one end and the memory it goes to at the other. Lane 0 goes from end 0 to end 1, lane 1 back.
 */
#ifndef PLUMB_CORE_DEVICE_LANES_H
#define PLUMB_CORE_DEVICE_LANES_H

#include "core/device/device.h"

struct lanes {
    struct place ends[2];
    size_t bytes;  /* of one message */
    unsigned used; /* lanes: 1 or 2 */
    struct {
        struct device_buffer src, dst;
    } lane[2];
};

/* Allocates what ends, bytes and used ask for, bound to its nodes where there are several, untouched.
 * 0 or -errno with *error. */
int lanes_alloc(struct lanes *l, const struct topo *topo, enum device_memory memory, char *error,
                size_t len);
void lanes_free(struct lanes *l); /* also what an alloc left half-way; a zeroed one is left alone */

/* What an end sends from and receives in; NULL where it does not. */
void *lanes_out(const struct lanes *l, unsigned end);
void *lanes_in(const struct lanes *l, unsigned end);

/* Touches an end's memory: the pattern of `seed` to be sent, something else to be overwritten. */
void lanes_fill(const struct lanes *l, unsigned end, uint64_t seed);
/* Is what an end received the other's pattern? The first wrong byte, or PATTERN_RIGHT. */
size_t lanes_check(const struct lanes *l, unsigned end, uint64_t seed);

/* Where an end's pages lie, for a process in which they are touched. */
void lanes_where(const struct lanes *l, unsigned end, struct device_where *where);

#endif
