/* SPDX-License-Identifier: Apache-2.0 */
/* Between pulse.c (the thread, and who is lost) and pulse_socket.c (connections). */
#ifndef PLUMB_CORE_RANKS_PULSE_PARTS_H
#define PLUMB_CORE_RANKS_PULSE_PARTS_H

#include <poll.h>
#include <pthread.h>

#include "core/ranks/pulse.h"

#define PULSE_NEW_MAX 16 /* connections that have not said who they are */

struct pulse_beat {
    uint64_t come; /* to this request */
};

struct pulse_hello {
    uint32_t rank, reserved;
    uint8_t token[CHANNEL_TOKEN_BYTES];
};

struct pulse_peer {
    int fd; /* -1: none */
    bool heard, gone;
    uint64_t heard_ns;
    struct pulse_beat last;
    size_t have; /* bytes of the next one */
    char in[sizeof(struct pulse_beat)];
};

struct pulse {
    struct world *world;
    bool leads, started;
    bool over; /* atomic */
    pthread_t thread;
    pthread_mutex_t lock;
    int listener; /* -1: none */
    bool at;      /* the last request, still, since then */
    uint64_t come, since_ns, beat_ns, turn_ns;
    uint64_t stood_ns;        /* how long this process itself did nothing, the longest */
    struct pulse_peer *peers; /* rank 0: of every rank; others: rank 0 */
    struct pollfd *fds;
    unsigned n;
    struct {
        int fd;
        size_t have;
        struct pulse_hello hello;
    } fresh[PULSE_NEW_MAX];
    unsigned n_fresh;
};

int pulse_start(struct pulse *p);

/* Those that connect, and those of them that have said who they are. */
void pulse_welcome(struct pulse *p);
void pulse_hear(struct pulse_peer *peer, uint64_t now_ns);
/* It is short, and what does not go out at once is not said: the next one will be. */
void pulse_say(struct pulse_peer *peer, const struct pulse_beat *b);

#endif
