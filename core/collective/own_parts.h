/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of our own backends: own.c (their life), own_tell.c (what is said of them). */
#ifndef PLUMB_CORE_COLLECTIVE_OWN_PARTS_H
#define PLUMB_CORE_COLLECTIVE_OWN_PARTS_H

#include "core/collective/engine.h"

struct own_call { /* all calls of one count */
    uint64_t count;
    struct schedule schedule;
    struct engine *engine;
    uint64_t segment_bytes;
};

struct own {
    struct fabric *fabric;
    struct own_call *calls, barrier; /* of each distinct count */
    unsigned n_calls;
    uint64_t segment_bytes, longest_bytes; /* of the longest */
    struct engine *running;
    void *spare;  /* of whichever engine runs */
    void *tokens; /* of the barrier */
    size_t spare_bytes, tokens_bytes;
};

int own_supports(const struct collective_point *p, unsigned n, char *why, size_t len);
void own_tell(struct collective *c, struct collective_told *told);

#endif
