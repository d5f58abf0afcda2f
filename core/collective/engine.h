/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a schedule over a wire: messages are cut into segments, so that a long one is passed on
 * before all of it has come; reductions go into the result segment by segment while further ones
 * are on their way. One thread.
 */
#ifndef PLUMB_CORE_COLLECTIVE_ENGINE_H
#define PLUMB_CORE_COLLECTIVE_ENGINE_H

#include "core/collective/collective.h"
#include "core/wire/wire.h"

/*
 * What one member does in one operation of ours: a list of actions. Pure: no clock, no transport,
 * no memory of the operation; what the engine runs over a wire can be run over nothing at all by a
 * test.
 *
 * Actions on one link (the same peer, the same way) happen in the order of the list, and the peer's
 * list has their counterparts in the same order with the same counts. Beyond that order comes from
 * data alone: an action begins when what it reads has been written by those before it in the list,
 * and what it writes has been read by those before it. Everything else may go on at the same time.
 *
 * Algorithms, n members, S bytes, a + S b a message:
 *
 *   ring      reduce-scatter then all-gather around the ring: 2 (n-1) a + 2 (n-1)/n S b, on any n
 *             (Patarasuk and Yuan, 2009)
 *   halving   reduce-scatter by recursive halving, all-gather by recursive doubling: 2 log2(n) a +
 *             2 (n-1)/n S b (Rabenseifner, 2004); n that is no power of two: the members beyond it
 *             hand their vector to a partner first, and get the result at the end
 *   doubling  whole vectors exchanged by recursive doubling: log2(n) (a + S b): for small ones; has
 *             no reduce-scatter
 *   broadcast, reduce: a chain (ring), a binomial tree (halving, doubling); gather, scatter: blocks to
 *     and from member 0, each by itself; all-to-all: n - 1 exchanges,
 *     with m + k and m - k in step k; send-receive: one
 */

enum schedule_algorithm { SCHEDULE_RING, SCHEDULE_HALVING, SCHEDULE_DOUBLING };

enum action_kind {
    ACTION_SEND,    /* elements of `source` from `from` on to peer */
    ACTION_RECEIVE, /* from peer to `target` from `first` on */
    ACTION_REDUCE,  /* from peer: target[first] = source[from] (+) what came */
    ACTION_COPY,    /* target[first] = source[from] */
};
/* Three places of elements, none of which overlaps another. In place there is no input: the result
 * is the one vector. */
enum action_space { SPACE_INPUT, SPACE_RESULT, SPACE_SCRATCH, SPACES };

struct action {
    uint8_t kind, source, target;
    uint32_t peer; /* member */
    uint64_t from; /* the first element of source */
    uint64_t first, count;
};

struct schedule {
    struct action *actions;
    size_t n;
    unsigned members, me;
    uint64_t scratch; /* elements of scratch that the actions use */
    uint64_t longest; /* no message of any member is longer, in elements: the same in all members */
    /* That the whole vector makes, each segment passed on as soon as it has come (a chain); 1 where
     * no member waits for more. The same in all members. */
    unsigned hops;
};

/* Of the point: op, in_place and root. count as in collective.h. In place all positions are those of
 * the one vector, and what would copy an element to itself is left out. 0, or -EOPNOTSUPP: this
 * algorithm has no such op. Release it in any case. */
int schedule_make(struct schedule *s, enum schedule_algorithm algorithm,
                  const struct collective_point *p, uint64_t count, unsigned members, unsigned me);
void schedule_release(struct schedule *s);

/* A barrier: who has got an element of everyone knows that everyone has come (Bruck, 1997:
 * ceil(log2 n) messages each way). The result: `members` elements, this member's own first. */
void schedule_barrier(struct schedule *s, unsigned members, unsigned me);

struct engine;

/* What a message is cut to, chosen by its length, the hops that it makes (of the schedule), and the
 * transport: the same in all members, since these are. `asked`: by the user; 0: chosen. A multiple
 * of 64 bytes, or all of the message. */
uint64_t engine_segment(const struct wire_ops *transport, uint64_t longest_bytes, unsigned hops,
                        uint64_t asked);

/* Bytes of memory that an engine needs beside input and result: scratch of the schedule and slots
 * that wait to be reduced. */
size_t engine_spare_bytes(const struct collective *c, const struct schedule *schedule,
                          uint64_t segment_bytes);

/* The schedule is left alone until close. Memory is the caller's, and the caller's to register by
 * wire_memory(): input, result, and `spare`, as much as engine_spare_bytes() says, on a cache
 * line; engines that run one after another may share it. */
struct engine *engine_open(struct collective *c, struct wire *f, const struct schedule *schedule,
                           void *spare, uint64_t segment_bytes);
void engine_close(struct engine *e); /* NULL is left alone */
/* Links to all peers: after all memory is known to the wire and before wire_join(). */
int engine_link(struct engine *e);

/* One operation, with the schedule's elements from `input` and `result` on: begin, then progress
 * until it says 1. 0: not yet, after at most wait_ns; -errno with c->error. Adds to c->waited_ns
 * (what had to come was not here, and all that could go had gone) and c->blocked_ns (what was
 * posted to go had not gone); the time in which the transport moves what ends a wait is part of
 * that wait. */
int engine_begin(struct engine *e, void *input, void *result);
int engine_progress(struct engine *e, uint64_t wait_ns);
/* Calls c->attend where it is time: the answer of that, or 0. For who calls progress. */
int engine_attend(struct engine *e);
/* All of it, with attend. */
int engine_run(struct engine *e, void *input, void *result);

/* ---- Which actions of a schedule wait for which others ---- */

/* Elements begin to end of an action (its own count of them) want the action `earlier` to have done
 * those that are `shift` further on in it. */
struct dep {
    uint32_t earlier;
    int64_t shift;
    uint64_t begin, end;
};

/* Of action i: all[first[i]] to all[first[i + 1]]. */
struct deps {
    struct dep *all;
    size_t n, *first;
};

/* As many as actions that meet in a place, not as pairs of actions. */
void deps_make(struct deps *d, const struct schedule *s);
void deps_release(struct deps *d);

#endif
