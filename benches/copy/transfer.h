/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers of a transfer between two places of the host: a lane for each direction, with the
 * memory it comes from at one end and the memory it goes to at the other. Lane 0 goes from end 0 to
 * end 1, lane 1 back.
 *
 * Messages over these lanes, timed and checked: by memcpy, a thread for each direction. Before each
 * run what is sent changes, after it the change is looked for; the times hold neither.
 */
#ifndef PLUMB_BENCHES_COPY_TRANSFER_H
#define PLUMB_BENCHES_COPY_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/hw/host_buffer.h"
#include "core/hw/place.h"

struct transfer {
    struct place ends[2];
    size_t bytes;  /* of one message */
    unsigned used; /* lanes: 1 or 2 */
    bool corrupt;  /* for tests: spoil the data */
    struct {
        struct host_buffer src, dst;
    } lane[2];
    struct team *team;
    uint64_t count;
    uint64_t number; /* of the run: what the stamps must say */
    uint64_t wrong;  /* messages found wrong so far */
};

/* Allocates what ends, bytes and used ask for, bound to its nodes where there are several,
 * untouched. 0 or -errno with *error. */
int transfer_alloc(struct transfer *t, const struct topo *topo, enum host_pages memory, char *error,
                   size_t len);
/* Then the threads: forward runs on the first CPU, back on the other. 0 or -errno. */
int transfer_open(struct transfer *t, const struct topo *topo, const unsigned cpus[2],
                  uint64_t seed);
void transfer_close(struct transfer *t); /* however far it came; a zeroed one is left alone */

/* What an end sends from and receives in; NULL where it does not. */
void *transfer_out(const struct transfer *t, unsigned end);
void *transfer_in(const struct transfer *t, unsigned end);

/* Touches an end's memory: the pattern of `seed` to be sent, something else to be overwritten. */
void transfer_fill(const struct transfer *t, unsigned end, uint64_t seed);

/* Moves `count` messages in each direction that there is. ns[0]: of the thread that copies forward;
 * with two lanes also ns[1]: of the one back, ns[2]: from the first start to the last end. */
void transfer_run(struct transfer *t, uint64_t count, uint64_t ns[3]);

/* Copies one message of fresh data and compares all of it. Wrong data is counted. */
void transfer_verify(struct transfer *t, uint64_t seed);

/* Where an end's pages lie. */
void transfer_where(const struct transfer *t, unsigned end, struct host_where *where);

#endif
