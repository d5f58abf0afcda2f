/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers of a transfer between two ends: a lane for each direction, with the memory it
 * comes from at one end and the memory it goes to at the other. Lane 0 goes from end 0 to end 1,
 * lane 1 back.
 *
 * Messages between two ends, timed and checked: within this process by memcpy, a thread for each
 * direction, or between two processes over a wire (core/wire/wire.h).
 *
 * Before each run the senders change what they send, after it the receivers look for the change;
 * the times hold neither.
 */
#ifndef PLUMB_BENCHES_COPY_TRANSFER_H
#define PLUMB_BENCHES_COPY_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/hw/host_buffer.h"
#include "core/hw/place.h"
#include "core/wire/wire.h"

/*
 * Two processes that start together, as tightly as can be: this one (rank 0) and one peer that it
 * forks (rank 1), which share a page of control and what the caller wants to share. What is timed
 * hangs on that start.
 *
 * The peer lives and dies with its parent (channel_fork()). A peer that dies, fails or stands still
 * ends a wait in the parent with an error.
 */

struct group;

/* CLOCK_MONOTONIC_RAW is one clock for all processes of a machine, so times of both ranks
 * compare. */
struct group_times {
    uint64_t begin_ns;   /* this rank began to send, or to wait */
    uint64_t arrived_ns; /* the last byte for this rank was in its buffer; 0: it received none */
};

/* What both ranks run together, after a common start. Returns 0 or -errno; after an error the peer
 * is gone. */
typedef int group_fn(struct group *g, void *arg, uint64_t count, struct group_times *times);

/* Forks the peer. Both are bound to their CPUs; `arg` is what group_run() hands to the functions,
 * in the peer as it was at the fork; `shared_bytes` of zeroed memory are common. `topo` and `cpus`
 * must outlive it. 0 or -errno. */
int group_open(struct group **g, const struct topo *topo, const unsigned cpus[2], void *arg,
               size_t shared_bytes);
void group_close(struct group *g); /* ends the peer and waits for it; NULL is left alone */

unsigned group_rank(const struct group *g);

/* Rank 0: both run fn(g, arg, count, &times[rank]). 0, or the first error: fn's own, the peer's,
 * -ECONNRESET when the peer died, -ETIMEDOUT when nothing moved for GROUP_STILL_NS. */
int group_run(struct group *g, group_fn *fn, uint64_t count, struct group_times times[2]);

#define GROUP_STILL_NS 8000000000u

/* Of a loop that waits for the other rank: zeroed at its start, and when something moved. */
struct group_wait {
    uint64_t turns, since_ns;
};
/* One turn: spins, now and then lets others run, and looks whether the other is still there, and
 * moves. 0 or an error as above. */
int group_pause(struct group *g, struct group_wait *wait);

/* A wire of one link to the other rank, for messages of up to `bytes`, to both or to rank 1 alone.
 * The rings that it needs lie on the node, or with -1 where the rank runs. */
struct group_link {
    struct world *world;
    struct wire *wire;
};
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

struct transfer;

enum transfer_fault { TRANSFER_SOUND, TRANSFER_CORRUPT, TRANSFER_PEER_DIES }; /* for tests */

struct transfer_config {
    const struct topo *topo;
    const struct lanes *lanes; /* allocated, untouched; must outlive the transfer */
    unsigned cpus[2]; /* of the ends; a memcpy forward runs on the first, back on the other */
    const struct wire_ops *wire; /* NULL: memcpy */
    bool settle; /* each run begins a moment late, when the receiver waits already: for latency */
    uint64_t seed;
    enum transfer_fault fault;
};

/* 0, -errno of the wire's hooks, or as transfer_run(): one message has been moved. */
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
