/* SPDX-License-Identifier: Apache-2.0 */
/* A world over sockets, inside: see world.h. */
#ifndef PLUMB_CORE_GROUP_WORLD_SOCK_H
#define PLUMB_CORE_GROUP_WORLD_SOCK_H

#include <stdbool.h>

#include "core/group/meet_serve.h"
#include "core/group/world_parts.h"

#define GATHER_PLACES  SERVE_PLACES
#define GATHER_KEEP_NS 250000000u /* nobody has to make way for others before that */

/* One that connected and is no rank yet. */
struct gather_place {
    bool taken;
    int fd;
    uint64_t since_ns; /* it came, or has proved itself */
    struct sockaddr_storage address;
    struct shake shake;
    struct channel *c; /* once it has proved itself: owns fd */
};

struct gather {
    const struct world_meeting *m;
    struct world *w;
    unsigned missing;
    uint64_t until_ns, looked_ns; /* looked: whether those that have come are still there */
    int listeners[MEET_LISTENERS_MAX];
    size_t n_listeners;
    struct serve_log log;
    struct gather_place places[GATHER_PLACES];
};

/* Lets in who has proved itself and said its rank, or turns it away; its channel is not the place's any more. */
void gather_judge(struct gather *g, struct gather_place *p, const struct world_hello *h);
/* Those that have come and gone may come again. */
void gather_look(struct gather *g);
/* "ranks 1, 4-6 and 9 of 12" */
void gather_missing(const struct world *w, char *text, size_t len);

/* The world's key, of the secret and what rank 0 has thrown. */
void world_sock_key(struct world *w, const struct meet_secret *secret,
                    const uint8_t nonce[WORLD_KEY_BYTES]);

#endif
