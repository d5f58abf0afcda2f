/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a schedule over a fabric: messages are cut into segments, so that a long one is passed on
 * before all of it has come; reductions go into the result segment by segment while further ones
 * are on their way. One thread.
 */
#ifndef PLUMB_CORE_COLLECTIVE_ENGINE_H
#define PLUMB_CORE_COLLECTIVE_ENGINE_H

#include "core/collective/schedule.h"
#include "core/wire/fabric.h"

struct engine;

/* What a message is cut to, chosen by its length, the hops that it makes (of the schedule), and the
 * transport: the same in all members, since these are. `asked`: by the user; 0: chosen. A multiple
 * of 64 bytes, or all of the message. */
uint64_t engine_segment(const char *transport, uint64_t longest_bytes, unsigned hops,
                        uint64_t asked);

/* Bytes of memory that an engine needs beside input and result: scratch of the schedule and slots
 * that wait to be reduced. */
size_t engine_spare_bytes(const struct collective *c, const struct schedule *schedule,
                          uint64_t segment_bytes);

/* The schedule is left alone until close. Memory is the caller's, and the caller's to register by
 * fabric_memory(): input, result, and `spare`, as much as engine_spare_bytes() says, on a cache
 * line; engines that run one after another may share it. */
int engine_open(struct engine **e, struct collective *c, struct fabric *f,
                const struct schedule *schedule, void *spare, uint64_t segment_bytes);
void engine_close(struct engine *e); /* NULL is left alone */
/* Links to all peers: after all memory is known to the fabric and before fabric_join(). */
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

#endif
