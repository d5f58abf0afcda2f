/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs of life over channels: a thread sends one over each, twice a second, whatever the process is at. So the other end knows
 * within seconds who was stopped, hangs whole or was cut off, and need not wait for an answer that takes long.
 */
#ifndef PLUMB_CORE_GROUP_BEAT_H
#define PLUMB_CORE_GROUP_BEAT_H

#include "core/group/channel.h"

/* Whoever is lost, stopped, hangs or is late is named within so long, by whoever is left: what each waits for adds up to less. */
#define BEAT_NAMED_NS 10000000000u

/* Without a sign of life for so long: of a peer that is led, and of the one who leads, whose word goes first. TCP sends again what was lost after 0.2, 0.6,
 * 1.4, 3.0 and 6.2 s: the one who leads is given the last of these. */
#define BEAT_LED_NS     5000000000u
#define BEAT_LEADING_NS 6500000000u

struct beat;

/* Over these, until beat_end(), which goes before they are closed; `silent_ns`: what is expected of the others. Channels that cannot, and NULL, are left
 * out. 0 or -errno: then there is none. */
int beat_start(struct beat **b, struct channel *const *channels, unsigned n, uint64_t silent_ns);
void beat_end(struct beat *b); /* NULL is left alone */

#endif
