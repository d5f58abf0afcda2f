/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of worlds ask a rank. */
#ifndef PLUMB_TESTS_WORLDS_H
#define PLUMB_TESTS_WORLDS_H

#include "core/group/world.h"
#include "tests/unit/meetings.h"

#define RANKS 8 /* at most, that report */

/* What a rank knows, as it tells it to the test. */
struct report {
    int err;
    char error[MEET_ERROR_BYTES];
    unsigned rank, size, nodes, sockets;
    uint8_t key[WORLD_KEY_BYTES];
    struct world_member members[RANKS];
};

static inline void report_world(struct report *r, const struct world *w)
{
    unsigned n = world_size(w) < RANKS ? world_size(w) : RANKS;

    r->rank = world_rank(w);
    r->size = world_size(w);
    r->nodes = world_nodes(w);
    r->sockets = count_sockets(getpid());
    memcpy(r->key, world_key(w), sizeof(r->key));
    for (unsigned i = 0; i < n; i++)
        r->members[i] = *world_member(w, i);
}

/* Until somebody is missed, for some time. */
static inline int missed(struct world *w, unsigned *rank, char *error)
{
    uint64_t until_ns = clock_now_ns() + 120 * SECOND_NS;
    int err = 0;

    while (!err && clock_now_ns() < until_ns) {
        usleep(10000);
        err = world_alive(w, rank, error, MEET_ERROR_BYTES);
    }
    return err;
}

#endif
