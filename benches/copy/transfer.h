/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers of a transfer between two ends: a lane for each direction, with the memory it
 * comes from at one end and the memory it goes to at the other. Lane 0 goes from end 0 to end 1,
 * lane 1 back.
 *
 * Messages between two ends, timed and checked: within this process by memcpy, a thread for each
 * direction, or between two processes by a transport.
 *
 * Before each run the senders change what they send, after it the receivers look for the change;
 * the times hold neither.
 */
#ifndef PLUMB_BENCHES_COPY_TRANSFER_H
#define PLUMB_BENCHES_COPY_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "benches/copy/transport.h"
#include "core/hw/host_buffer.h"
#include "core/hw/place.h"

struct lanes {
    struct place ends[2];
    size_t bytes;  /* of one message */
    unsigned used; /* lanes: 1 or 2 */
    struct {
        struct host_buffer src, dst;
    } lane[2];
};

/* Allocates what ends, bytes and used ask for, bound to its nodes where there are several,
 * untouched. 0 or -errno with *error. */
int lanes_alloc(struct lanes *l, const struct topo *topo, enum host_pages memory, char *error,
                size_t len);
void lanes_free(struct lanes *l); /* also what an alloc left half-way; a zeroed one is left alone */

/* What an end sends from and receives in; NULL where it does not. */
void *lanes_out(const struct lanes *l, unsigned end);
void *lanes_in(const struct lanes *l, unsigned end);

/* Touches an end's memory: the pattern of `seed` to be sent, something else to be overwritten. */
void lanes_fill(const struct lanes *l, unsigned end, uint64_t seed);
/* Is what an end received the other's pattern? The first wrong byte, or PATTERN_RIGHT. */
size_t lanes_check(const struct lanes *l, unsigned end, uint64_t seed);

struct transfer;

enum transfer_fault { TRANSFER_SOUND, TRANSFER_CORRUPT, TRANSFER_PEER_DIES }; /* for tests */

struct transfer_config {
    const struct topo *topo;
    const struct lanes *lanes; /* allocated, untouched; must outlive the transfer */
    unsigned cpus[2]; /* of the ends; a memcpy forward runs on the first, back on the other */
    const struct transport_ops *transport; /* NULL: memcpy */
    bool settle; /* each run begins a moment late, when the receiver waits already: for latency */
    uint64_t seed;
    enum transfer_fault fault;
};

/* 0, -errno of the transport's open, or as transfer_run(): one message has been moved. */
int transfer_open(struct transfer **t, const struct transfer_config *config);
void transfer_close(struct transfer *t); /* no process is left; NULL is left alone */

/* Moves `count` messages in each direction that there is. ns[0]: from the sender's start until
 * the receiver has the last byte, forward; with two lanes also ns[1]: back, ns[2]: from the
 * first start to the last arrival. 0; -ECONNRESET: the other process died, -ETIMEDOUT: it
 * stood still; -errno. */
int transfer_run(struct transfer *t, uint64_t count, uint64_t ns[3]);

/* Sends one message of fresh data and compares all of it. Errors as above; wrong
 * data is counted. */
int transfer_verify(struct transfer *t, uint64_t seed);
uint64_t transfer_wrong(const struct transfer *t); /* messages found wrong so far */

/* Where each end's pages lie, asked in the process that uses them. */
int transfer_where(struct transfer *t, struct host_where where[2]);
const char *transfer_describe(const struct transfer *t, char *text, size_t len);

#endif
