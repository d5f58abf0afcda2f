/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load latency of the host's memory: two chains of pointers through one buffer, in turns. One goes through all
 * lines at random and pays for the translation of nearly every load; the other goes page by page and pays for
 * one in 32. And whether the hardware translates by small pages, which a guest is not told.
 */
#ifndef PLUMB_BENCHES_MEMORY_HOST_LATENCY_H
#define PLUMB_BENCHES_MEMORY_HOST_LATENCY_H

#include "benches/memory/chase.h"
#include "benches/memory/memory_work.h"
#include "core/hw/host_buffer.h"
#include "core/hw/place.h"
#include "core/team.h"

/* So many times the last cache serves a sixteenth of the loads at most. */
#define LATENCY_FAR_TIMES 16u

enum { LATENCY_RANDOM, LATENCY_BY_PAGE, LATENCY_CHAINS };

struct host_latency {
    struct host_buffer buffer;
    struct chase chains[LATENCY_CHAINS];
    bool small_pages; /* the hardware's; of too little memory not told: false */
};

/* Allocates and builds. The chain is shorter than asked where half of the memory is less, and says so, as it
 * does where it is no 16 times the last cache. 0 or -errno, with the reason set. */
int host_latency_open(struct host_latency *l, struct point *pt, const struct memory_params *p,
                      const struct placement *place);
void host_latency_sample(struct host_latency *l, struct team *team, uint64_t inner, uint64_t *ns);
int host_latency_check(const struct host_latency *l, struct point *pt);
/* Where the system here set huge pages, by `share` of the memory, and the hardware has small ones: a remark. */
void host_latency_judge_pages(const struct host_latency *l, struct point *pt, double share);
void host_latency_close(struct host_latency *l);

#endif
